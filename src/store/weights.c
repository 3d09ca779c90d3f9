/* SPDX-License-Identifier: Apache-2.0
 *
 * weights.c: the interface of a weight source, and that of a model directory, over one safetensors file or several shards.
 *
 * With an index the names of all tensors are known at once (name -> shard), the shards' headers are read when a tensor of them is first asked
 * for. A shard that is opened must hold exactly the tensors that the index places in it: so a swapped or foreign file is found whichever tensor
 * was asked for, no tensor is in two shards, and tensors have their numbers (shards in the order of their names, offset order within) before
 * anything is open. As in the reference library model.safetensors comes before an index, and the index's metadata is not used.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "store/weights_shard.h"

static const char SINGLE_NAME[] = "model.safetensors";
static const char INDEX_NAME[] = "model.safetensors.index.json";

static lath_status join(weights *w, const char *dir, const char *name, const char **out, lath_error *err)
{
    *out = file_join_in(&w->memory, dir, name);
    return *out ? LATH_OK : err_nomem(err, strlen(dir) + strlen(name));
}

/* Why there is no weight file that can be read. */
static lath_status no_weights(weights *w, const char *dir, lath_error *err)
{
    static const struct {
        const char *name, *why;
    } others[] = {
        {"pytorch_model.bin", "PyTorch pickles are not supported; convert it to model.safetensors"},
        {"pytorch_model.bin.index.json", "PyTorch pickles are not supported; convert them to model.safetensors"},
        {"tf_model.h5", "TensorFlow weights are not supported; model.safetensors is wanted"},
        {"flax_model.msgpack", "Flax weights are not supported; model.safetensors is wanted"},
        {"adapter_model.safetensors", "adapters are not supported; merge it into its base model"},
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        const char *p;
        TRY(join(w, dir, others[i].name, &p, err));
        if (file_exists(p)) return err_set(err, LATH_ERR_UNSUPPORTED, "%s: %s", p, others[i].why);
    }
    return err_set(err, LATH_ERR_NOT_FOUND, "%s: no %s in it", dir, SINGLE_NAME);
}

/* -------------------------------------------------------------------------------------------------------- the index */

/* A member of weight_map: "tensor": "file in the model's directory". */
static lath_status check_entry(const weights *w, const json_value *v, lath_error *err)
{
    if (memchr(v->key, 0, v->key_len))
        return err_set(err, LATH_ERR_FORMAT, "%s: line %u: \"weight_map\": a zero byte in a name", w->name, v->line);
    if (v->kind != JSON_STRING)
        return err_set(err, LATH_ERR_FORMAT, "%s: line %u: tensor \"%s\": want the name of a file", w->name, v->line,
                       v->key);
    const char *file = v->u.string.data;
    if (v->u.string.len == 0 || memchr(file, 0, v->u.string.len))
        return err_set(err, LATH_ERR_FORMAT, "%s: line %u: tensor \"%s\": no file has such a name", w->name, v->line,
                       v->key);
    if (strchr(file, '/') || strchr(file, '\\') || strcmp(file, ".") == 0 || strcmp(file, "..") == 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: line %u: tensor \"%s\": file \"%s\" is outside the model's directory",
                       w->name, v->line, v->key, file);
    return LATH_OK;
}

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* The names of the shards, sorted, each once: [*n] in scratch. */
static lath_status list_files(const weights *w, arena *scratch, const json_value *entries, const char ***out,
                              int32_t *n, lath_error *err)
{
    const size_t count = entries->u.items.count;
    const char **names = arena_array(scratch, count, sizeof(*names));
    if (!names) return err_nomem(err, count * sizeof(*names));
    size_t k = 0;
    for (const json_value *v = entries->u.items.first; v; v = v->next) {
        TRY(check_entry(w, v, err));
        names[k++] = v->u.string.data;
    }
    qsort(names, k, sizeof(*names), by_text);
    *n = 0;
    for (size_t i = 0; i < k; i++) {
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0) names[(*n)++] = names[i];
    }
    *out = names;
    return LATH_OK;
}

/* All shards must be there, and not be empty, before the first is opened. */
static lath_status find_shards(weights *w, const char *dir, const char *const *names, lath_error *err)
{
    w->shards = arena_array(&w->memory, (size_t)w->n_shards, sizeof(*w->shards));
    if (!w->shards) return err_nomem(err, (size_t)w->n_shards * sizeof(*w->shards));
    for (int32_t i = 0; i < w->n_shards; i++) {
        shard *s = &w->shards[i];
        TRY(join(w, dir, names[i], &s->path, err));
        if (!file_exists(s->path))
            return err_set(err, LATH_ERR_NOT_FOUND, "%s: no such file (%s names it)", s->path, INDEX_NAME);
        TRY(file_size(s->path, &s->bytes, err));
        if (s->bytes == 0) return err_set(err, LATH_ERR_FORMAT, "%s: the file is empty", s->path);
    }
    return LATH_OK;
}

static lath_status read_map(weights *w, const char *dir, arena *scratch, const json_value *entries, lath_error *err)
{
    const char **names = NULL;
    TRY(list_files(w, scratch, entries, &names, &w->n_shards, err));
    TRY(find_shards(w, dir, names, err));
    TRY(map_reserve(&w->by_name, entries->u.items.count, err));
    for (const json_value *v = entries->u.items.first; v; v = v->next) {
        const char **at = bsearch(&v->u.string.data, names, (size_t)w->n_shards, sizeof(*names), by_text);
        const char *key = arena_strdup(&w->memory, v->key, v->key_len);
        if (!key) return err_nomem(err, v->key_len);
        TRY(map_add(&w->by_name, key, v->key_len, (uint64_t)(at - names), NULL, err));
        w->shards[at - names].n++;
    }
    for (int32_t i = 0; i < w->n_shards; i++) {
        w->shards[i].first = w->count;
        w->count += w->shards[i].n;
    }
    return LATH_OK;
}

static lath_status read_index(weights *w, const char *dir, lath_error *err)
{
    json_value *root;
    arena scratch; /* the tree, gone when the names are known */
    arena_init(&scratch, w->alloc);
    lath_status st = json_load(&scratch, w->name, NULL, &root, err);
    if (st != LATH_OK) goto done;
    const json_value *entries = json_get(root, "weight_map");
    if (root->kind != JSON_OBJECT)
        st = err_set(err, LATH_ERR_FORMAT, "%s: want a JSON object", w->name);
    else if (!entries)
        st = err_set(err, LATH_ERR_FORMAT, "%s: no \"weight_map\" in it", w->name);
    else if (entries->kind != JSON_OBJECT)
        st = err_set(err, LATH_ERR_FORMAT, "%s: line %u: \"weight_map\": want an object", w->name, entries->line);
    else if (entries->u.items.count == 0)
        st = err_set(err, LATH_ERR_FORMAT, "%s: line %u: \"weight_map\": no tensors in it", w->name, entries->line);
    else
        st = read_map(w, dir, &scratch, entries, err);
done:
    arena_deinit(&scratch);
    return st;
}

/* ----------------------------------------------------------------------------------------------------------- shards */

/* An opened shard against the index: no tensor more, none less. */
static lath_status check_shard(const weights *w, const shard *s, const safetensors *file, lath_error *err)
{
    const uint64_t number = (uint64_t)(s - w->shards);
    for (int32_t i = 0; i < safetensors_count(file); i++) {
        const char *name = safetensors_at(file, i)->name;
        uint64_t at;
        if (!map_find(&w->by_name, name, strlen(name), &at))
            return err_set(err, LATH_ERR_FORMAT, "%s: tensor \"%s\" is in it, but not in %s", s->path, name,
                           INDEX_NAME);
        if (at != number)
            return err_set(err, LATH_ERR_FORMAT, "%s: tensor \"%s\" is in it, but %s places it in %s", s->path, name,
                           INDEX_NAME, w->shards[at].path);
    }
    if (safetensors_count(file) == s->n) return LATH_OK;
    for (size_t i = 0; i < w->by_name.n_slots; i++) {
        const map_slot *slot = &w->by_name.slots[i];
        if (slot->key && slot->value == number && !safetensors_find(file, slot->key))
            return err_set(err, LATH_ERR_FORMAT, "%s: no tensor \"%s\" in it (%s places it there)", s->path, slot->key,
                           INDEX_NAME);
    }
    return LATH_OK;
}

static void adopt(shard *s, safetensors *file)
{
    s->st = file;
    s->map = safetensors_file(file);
    s->tensors = safetensors_at(file, 0);
}

static lath_status open_shard(weights *w, shard *s, lath_error *err)
{
    safetensors *file;
    if (s->tensors) return LATH_OK;
    TRY(safetensors_open(w->alloc, s->path, w->mode, &file, err));
    lath_status st = check_shard(w, s, file, err);
    if (st != LATH_OK) {
        safetensors_close(file);
        return st;
    }
    adopt(s, file);
    return LATH_OK;
}

static lath_status open_single(weights *w, lath_error *err)
{
    shard *s = w->shards = arena_zero(&w->memory, sizeof(*s));
    if (!s) return err_nomem(err, sizeof(*s));
    w->n_shards = 1;
    s->path = w->name;
    safetensors *file;
    TRY(safetensors_open(w->alloc, s->path, w->mode, &file, err));
    adopt(s, file);
    s->bytes = s->map->size;
    s->n = w->count = safetensors_count(file);
    return LATH_OK;
}

/* The shard that a tensor of this source is in. */
static const shard *shard_of(const weights *w, const tensor *t)
{
    const uintptr_t at = (uintptr_t)t;
    for (int32_t i = 0; i < w->n_shards; i++) {
        const shard *s = &w->shards[i];
        if (!s->tensors || s->n == 0) continue;
        const uintptr_t begin = (uintptr_t)s->tensors;
        if (at >= begin && at < begin + (size_t)s->n * sizeof(tensor)) return s;
    }
    return NULL;
}

/* -------------------------------------------------------------------------------------------------------- interface */

static lath_status open_dir(weights *w, const char *dir, lath_error *err)
{
    TRY(join(w, dir, SINGLE_NAME, &w->name, err));
    if (file_exists(w->name)) {
        TRY(open_single(w, err));
    } else {
        TRY(join(w, dir, INDEX_NAME, &w->name, err));
        if (!file_exists(w->name)) return no_weights(w, dir, err);
        w->has_index = true;
        TRY(read_index(w, dir, err));
    }
    return LATH_OK;
}

static lath_status open_any(weights *w, const char *path, bool is_file, lath_error *err)
{
    if (is_file)
        TRY(weights_open_gguf(w, path, err));
    else if (vindex_is_dir(path))
        TRY(weights_open_vindex(w, path, err));
    else
        TRY(open_dir(w, path, err));
    w->used = arena_array(&w->memory, (size_t)w->count, sizeof(bool));
    return w->used ? LATH_OK : err_nomem(err, (size_t)w->count);
}

static lath_status open_as(const lath_allocator *alloc, const char *path, bool is_file, file_mode mode, weights **out,
                           lath_error *err)
{
    weights *w = alloc_zero(alloc, sizeof(*w));
    if (!w) return err_nomem(err, sizeof(*w));
    w->alloc = alloc;
    w->mode = mode;
    arena_init(&w->memory, alloc);
    map_init(&w->by_name, alloc);
    lath_status st = open_any(w, path, is_file, err);
    if (st != LATH_OK)
        weights_close(w);
    else
        *out = w;
    return st;
}

lath_status weights_open(const lath_allocator *alloc, const char *path, file_mode mode, weights **out, lath_error *err)
{
    return open_as(alloc, path, gguf_is_name(path) && !file_is_dir(path), mode, out, err);
}

lath_status weights_open_file(const lath_allocator *alloc, const char *path, file_mode mode, weights **out,
                              lath_error *err)
{
    return open_as(alloc, path, true, mode, out, err);
}

void weights_close(weights *w)
{
    if (!w) return;
    for (int32_t i = 0; w->shards && i < w->n_shards && !w->vindex; i++) {
        safetensors_close(w->shards[i].st);
        gguf_close(w->shards[i].gguf);
    }
    vindex_close(w->vindex);
    map_deinit(&w->by_name);
    arena_deinit(&w->memory);
    alloc_release(w->alloc, w, sizeof(*w));
}

const char *weights_name(const weights *w) { return w->name; }

int32_t weights_count(const weights *w) { return w->count; }

int32_t weights_count_named(const weights *w, const char *prefix)
{
    const size_t len = strlen(prefix);
    int32_t n = 0;
    for (size_t i = 0; w->has_index && i < w->by_name.n_slots; i++) {
        const map_slot *slot = &w->by_name.slots[i];
        n += slot->key && slot->len >= len && memcmp(slot->key, prefix, len) == 0;
    }
    for (int32_t i = 0; !w->has_index && i < w->count; i++) {
        bool used;
        n += strncmp(weights_at(w, i, &used)->name, prefix, len) == 0;
    }
    return n;
}

lath_status weights_find(weights *w, const char *name, const tensor **out, lath_error *err)
{
    uint64_t at = 0;
    *out = NULL;
    if (w->shards[0].gguf || w->vindex) {
        if (map_find(&w->by_name, name, strlen(name), &at)) *out = w->shards[0].tensors + at;
        return LATH_OK;
    }
    if (w->has_index) {
        if (!map_find(&w->by_name, name, strlen(name), &at)) return LATH_OK;
        TRY(open_shard(w, &w->shards[at], err));
    }
    *out = safetensors_find(w->shards[at].st, name);
    return LATH_OK;
}

const gguf *weights_gguf(const weights *w) { return w->shards[0].gguf; }

vindex *weights_vindex(const weights *w) { return w->vindex; }

const char *weights_file_of(const weights *w, const tensor *t) { return shard_of(w, t)->path; }

void weights_mark_used(weights *w, const tensor *t)
{
    const shard *s = shard_of(w, t);
    w->used[s->first + (t - s->tensors)] = true;
}

lath_status weights_open_all(weights *w, lath_error *err)
{
    for (int32_t i = 0; i < w->n_shards; i++) TRY(open_shard(w, &w->shards[i], err));
    return LATH_OK;
}

const tensor *weights_at(const weights *w, int32_t i, bool *used)
{
    const shard *s = w->shards;
    while (i >= s->first + s->n) s++;
    *used = w->used[i];
    return s->tensors ? s->tensors + (i - s->first) : NULL;
}

int32_t weights_n_files(const weights *w) { return w->n_shards; }

const file_map *weights_file_in_use(const weights *w, int32_t i)
{
    const shard *s = &w->shards[i];
    return s->n > 0 && memchr(w->used + s->first, true, (size_t)s->n) ? s->map : NULL;
}

uint64_t weights_file_bytes(const weights *w)
{
    uint64_t n = 0;
    for (int32_t i = 0; i < w->n_shards; i++) n += w->shards[i].bytes;
    return n;
}

size_t weights_private_bytes(const weights *w)
{
    size_t n = sizeof(*w) + w->memory.total + w->by_name.n_slots * sizeof(*w->by_name.slots);
    for (int32_t i = 0; i < w->n_shards; i++) {
        if (w->shards[i].st) n += safetensors_private_bytes(w->shards[i].st);
        if (w->shards[i].gguf && !w->vindex) n += gguf_private_bytes(w->shards[i].gguf);
    }
    if (w->vindex) n += vindex_private_bytes(w->vindex);
    return n;
}

const char *weights_file_at(const weights *w, const void *address)
{
    for (int32_t i = 0; i < w->n_shards; i++) {
        const file_map *f = w->shards[i].map;
        if (f && f->mode == FILE_MAP && (const uint8_t *)address >= f->data &&
            (const uint8_t *)address < f->data + f->size)
            return f->path;
    }
    return NULL;
}
