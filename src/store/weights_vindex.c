/* SPDX-License-Identifier: Apache-2.0
 *
 * weights_vindex.c: a vindex as a weight source. The first of its files has the tensors, by name; the others, whose rows a walk reads, are files without
 * any: so that the source knows all addresses that it is answerable for.
 */
#include <string.h>

#include "base/error.h"
#include "store/weights_shard.h"

static void add_shard(weights *w, const file_map *f, const tensor *tensors, int32_t n)
{
    shard *s = &w->shards[w->n_shards++];
    *s = (shard){.path = f->path, .bytes = f->size, .first = w->count, .n = n, .tensors = tensors, .map = f};
    s->gguf = vindex_meta(w->vindex);
    w->count += n;
}

lath_status weights_open_vindex(weights *w, const char *dir, lath_error *err)
{
    int32_t n;
    TRY(vindex_open(w->alloc, dir, w->mode, &w->vindex, err));
    w->name = vindex_name(w->vindex);
    w->shards = arena_array(&w->memory, VINDEX_N_FILES, sizeof(*w->shards));
    if (!w->shards) return err_nomem(err, VINDEX_N_FILES * sizeof(*w->shards));
    const tensor *tensors = vindex_tensors(w->vindex, &n);
    const file_map *f = vindex_map(w->vindex, VINDEX_TENSORS);
    if (!f) return err_set(err, LATH_ERR_FORMAT, "%s: no tensors in it", w->name);
    add_shard(w, f, tensors, n);
    for (int32_t i = 0; i < VINDEX_N_FILES; i++)
        if (i != VINDEX_TENSORS && (f = vindex_map(w->vindex, (vindex_file)i))) add_shard(w, f, tensors, 0);
    TRY(map_reserve(&w->by_name, (size_t)n, err));
    for (int32_t i = 0; i < n; i++) {
        bool existed;
        TRY(map_add(&w->by_name, tensors[i].name, strlen(tensors[i].name), (uint64_t)i, &existed, err));
        if (existed) return err_set(err, LATH_ERR_FORMAT, "%s: tensor \"%s\" is there twice", w->name, tensors[i].name);
    }
    return LATH_OK;
}
