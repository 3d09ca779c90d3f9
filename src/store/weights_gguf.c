/* SPDX-License-Identifier: Apache-2.0
 *
 * weights_gguf.c: a GGUF file, or all parts of a split one, as a weight source. All parts are opened at once: only they know their tensors' names. A
 * part that is missing, has changed places with another or belongs to another model is refused by its name.
 *
 * GGUF writes the length of a row first; a `tensor` has it last, as safetensors does.
 */
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "store/gguf_split.h"
#include "store/weights_shard.h"

static tensor tensor_of(const gguf_tensor *g)
{
    tensor t = {.name = g->name, .type = g->type, .rank = g->rank, .count = 1, .data = g->data, .bytes = g->bytes};
    for (int32_t i = 0; i < g->rank; i++) {
        t.dim[i] = (int64_t)g->dim[g->rank - 1 - i];
        t.count *= t.dim[i]; /* the reader has found that the whole fits into the file */
    }
    return t;
}

/* Tensors of all parts, one behind the other in w->shards' order. */
static lath_status list_tensors(weights *w, lath_error *err)
{
    int64_t count = 0;
    for (int32_t i = 0; i < w->n_shards; i++) count += (int64_t)gguf_n_tensors(w->shards[i].gguf);
    if (count > GGUF_MAX_TENSORS) return err_set(err, LATH_ERR_LIMIT, "%s: too many tensors", w->name);
    tensor *all = arena_array(&w->memory, (size_t)count, sizeof(*all));
    if (!all) return err_nomem(err, (size_t)count * sizeof(*all));
    TRY(map_reserve(&w->by_name, (size_t)count, err));
    for (int32_t i = 0; i < w->n_shards; i++) {
        shard *s = &w->shards[i];
        s->first = w->count;
        s->n = (int32_t)gguf_n_tensors(s->gguf);
        s->tensors = all + s->first;
        for (int32_t k = 0; k < s->n; k++) {
            tensor *t = &all[w->count];
            bool existed;
            *t = tensor_of(gguf_tensor_at(s->gguf, (size_t)k));
            TRY(map_add(&w->by_name, t->name, strlen(t->name), (uint64_t)w->count++, &existed, err));
            if (existed)
                return err_set(err, LATH_ERR_FORMAT, "%s: tensor \"%s\" is in an earlier part, too", s->path, t->name);
        }
    }
    return LATH_OK;
}

static void adopt(shard *s, gguf *g)
{
    s->gguf = g;
    s->map = gguf_file(g);
    s->bytes = s->map->size;
}

/* `first` says what part `no` must say of itself. */
static lath_status check_part(const shard *s, const gguf_split *first, int32_t no, lath_error *err)
{
    gguf_split own;
    TRY(gguf_split_read(s->gguf, &own, err));
    if (own.no != no || own.count != first->count)
        return err_set(err, LATH_ERR_FORMAT, "%s: by its keys it is part %d of %d, by its name part %d of %d", s->path,
                       own.no + 1, own.count, no + 1, first->count);
    if (own.n_tensors != first->n_tensors)
        return err_set(err, LATH_ERR_FORMAT, "%s: it is of a model of %lld tensors, the first part is of one of %lld",
                       s->path, (long long)own.n_tensors, (long long)first->n_tensors);
    return LATH_OK;
}

/* given: the part that was asked for; it becomes the source's. */
static lath_status open_parts(weights *w, gguf *given, const gguf_split *s, lath_error *err)
{
    gguf_split first;
    lath_status st = LATH_OK;
    w->shards = arena_array(&w->memory, (size_t)s->count, sizeof(*w->shards));
    if (!w->shards) {
        gguf_close(given);
        return err_nomem(err, (size_t)s->count * sizeof(*w->shards));
    }
    w->n_shards = s->count;
    adopt(&w->shards[s->no], given);
    w->shards[s->no].path = w->shards[s->no].map->path;
    for (int32_t i = 0; st == LATH_OK && i < s->count && s->count > 1; i++)
        st = gguf_split_path(&w->memory, given, s, i, &w->shards[i].path, err);
    for (int32_t i = 0; st == LATH_OK && i < s->count; i++) {
        gguf *g;
        if (w->shards[i].gguf) continue;
        st = gguf_open(w->alloc, w->shards[i].path, w->mode, &g, err);
        if (st == LATH_ERR_NOT_FOUND)
            st = err_set(err, st, "%s: no such file (a model of %d parts)", w->shards[i].path, s->count);
        if (st == LATH_OK) adopt(&w->shards[i], g);
    }
    if (st == LATH_OK) st = gguf_split_read(w->shards[0].gguf, &first, err);
    for (int32_t i = 0; st == LATH_OK && i < s->count; i++) st = check_part(&w->shards[i], i ? &first : s, i, err);
    return st;
}

lath_status weights_open_gguf(weights *w, const char *path, lath_error *err)
{
    gguf *given;
    gguf_split s;
    TRY(gguf_open(w->alloc, path, w->mode, &given, err));
    lath_status st = gguf_split_read(given, &s, err);
    if (st != LATH_OK) {
        gguf_close(given);
        return st;
    }
    TRY(open_parts(w, given, &s, err));
    w->name = w->shards[0].path;
    TRY(list_tensors(w, err));
    if (s.n_tensors >= 0 && s.n_tensors != w->count)
        return err_set(err, LATH_ERR_FORMAT, "%s: %d parts with %d tensors, key \"split.tensors.count\" says %lld",
                       w->name, w->n_shards, w->count, (long long)s.n_tensors);
    return LATH_OK;
}
