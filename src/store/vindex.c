/* SPDX-License-Identifier: Apache-2.0
 *
 * vindex.c: the reader of a vindex: index.json (vindex_text.c), then the data files, whose sizes and headers are checked against it.
 */
#include "store/vindex.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "store/vindex_parts.h"

static const char INDEX_NAME[] = "index.json", META_NAME[] = "gguf.keys", PART_SUFFIX[] = ".part";
enum { INDEX_BYTES_MOST = 64 << 20 };

bool vindex_is_dir(const char *dir)
{
    char path[4096];
    const int n = snprintf(path, sizeof(path), "%s/%s", dir, INDEX_NAME);
    return n > 0 && (size_t)n < sizeof(path) && file_exists(path);
}

/* ---------------------------------------------------------------------------------------------------------------- files */

static lath_status check_header(const vindex *x, const vindex_listed *f, lath_error *err)
{
    vindex_header h;
    const char *path = f->map.path;
    if (f->map.size != f->bytes)
        return err_set(err, LATH_ERR_FORMAT, "%s: %zu bytes, %s says %llu: cut or of another index", path, f->map.size,
                       INDEX_NAME, (unsigned long long)f->bytes);
    if (f->map.size < sizeof(h)) return err_set(err, LATH_ERR_FORMAT, "%s: too short for its header", path);
    memcpy(&h, f->map.data, sizeof(h));
    if (memcmp(h.magic, "LVIX", 4) != 0) return err_set(err, LATH_ERR_FORMAT, "%s: no file of an index", path);
    if (h.version != VINDEX_VERSION)
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: version %u; this program reads version %d", path, h.version,
                       VINDEX_VERSION);
    if (h.kind != (uint32_t)f->kind || h.bytes != f->bytes)
        return err_set(err, LATH_ERR_FORMAT, "%s: its header is that of another file", path);
    if (memcmp(h.source, x->facts.identity, sizeof(h.source)) != 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: of the index of another model", path);
    return LATH_OK;
}

static lath_status open_file(vindex *x, vindex_listed *f, file_mode mode, lath_error *err)
{
    uint64_t size;
    const char *path = file_join_in(&x->mem, x->dir, f->name);
    if (!path) return err_nomem(err, strlen(f->name));
    if (f->kind >= 0) {
        TRY(file_map_open(&f->map, x->alloc, path, mode, err));
        return check_header(x, f, err);
    }
    TRY(file_size(path, &size, err));
    if (size == f->bytes) return LATH_OK;
    return err_set(err, LATH_ERR_FORMAT, "%s: %llu bytes, %s says %llu: cut or changed", path, (unsigned long long)size,
                   INDEX_NAME, (unsigned long long)f->bytes);
}

/* Offsets of tensors become addresses. */
static void bind_data(vindex *x)
{
    for (int32_t l = 0; l < x->facts.n_layers; l++) {
        for (int32_t k = 0; k < VINDEX_TENSORS; k++) {
            tensor *t = &x->layers[l].rows[k];
            if (t->rank) t->data = x->files[x->at[k]].map.data + (uintptr_t)t->data;
        }
    }
    for (int32_t i = 0; i < x->n_tensors; i++)
        x->tensors[i].data = x->files[x->at[VINDEX_TENSORS]].map.data + (uintptr_t)x->tensors[i].data;
}

static lath_status open_meta(vindex *x, file_mode mode, lath_error *err)
{
    if (!x->facts.gguf_names) return LATH_OK;
    const char *path = file_join_in(&x->mem, x->dir, META_NAME);
    if (!path) return err_nomem(err, sizeof(META_NAME));
    return gguf_open(x->alloc, path, mode, &x->meta, err);
}

/* An index that is being made, or whose making was stopped, lies beside. */
static lath_status no_index(const vindex *x, lath_error *err)
{
    char part[4096];
    const int n = snprintf(part, sizeof(part), "%s%s", x->dir, PART_SUFFIX);
    if (!file_exists(x->dir) && n > 0 && (size_t)n < sizeof(part) && file_is_dir(part))
        return err_set(err, LATH_ERR_NOT_FOUND, "%s: no index yet: %s is one that is not finished", x->dir, part);
    if (!file_exists(x->dir)) return err_set(err, LATH_ERR_NOT_FOUND, "%s: no such directory", x->dir);
    return err_set(err, LATH_ERR_NOT_FOUND, "%s: no index: there is no %s in it", x->dir, INDEX_NAME);
}

static lath_status open_all(vindex *x, const char *dir, file_mode mode, buf *text, lath_error *err)
{
    x->dir = arena_strdup(&x->mem, dir, strlen(dir));
    x->name = x->dir ? file_join_in(&x->mem, dir, INDEX_NAME) : NULL;
    if (!x->name) return err_nomem(err, strlen(dir));
    if (!file_exists(x->name)) return no_index(x, err);
    TRY(file_read(text, x->name, INDEX_BYTES_MOST, err));
    TRY(vindex_read_text(x, text->data ? text->data : "", text->len, true, err));
    for (int32_t i = 0; i < x->n_files; i++) TRY(open_file(x, &x->files[i], mode, err));
    bind_data(x);
    return open_meta(x, mode, err);
}

lath_status vindex_open(const lath_allocator *alloc, const char *dir, file_mode mode, vindex **out, lath_error *err)
{
    buf text;
    vindex *x = alloc_zero(alloc, sizeof(*x));
    if (!x) return err_nomem(err, sizeof(*x));
    x->alloc = alloc;
    arena_init(&x->mem, alloc);
    buf_init(&text, alloc, INDEX_BYTES_MOST + 1);
    const lath_status st = open_all(x, dir, mode, &text, err);
    buf_deinit(&text);
    if (st == LATH_OK)
        *out = x;
    else
        vindex_close(x);
    return st;
}

void vindex_close(vindex *x)
{
    if (!x) return;
    for (int32_t i = 0; i < x->n_files; i++)
        if (x->files[i].kind >= 0) file_map_close(&x->files[i].map);
    gguf_close(x->meta);
    arena_deinit(&x->mem);
    alloc_release(x->alloc, x, sizeof(*x));
}

/* ------------------------------------------------------------------------------------------------------------ contents */

const vindex_facts *vindex_get_facts(const vindex *x) { return &x->facts; }
const char *vindex_dir(const vindex *x) { return x->dir; }
const char *vindex_name(const vindex *x) { return x->name; }
gguf *vindex_meta(const vindex *x) { return x->meta; }
hash128 vindex_hash(const vindex *x) { return x->hash; }

lath_status vindex_need(const vindex *x, vindex_level level, const char *what, lath_error *err)
{
    static const char *const lacks[] = {"", "attention", "the up and down rows and the output head",
                                        "the down matrices"};
    if (x->facts.level >= level) return LATH_OK;
    return err_set(err, LATH_ERR_UNSUPPORTED,
                   "%s: an index of level \"%s\" %s: it does not have %s (lath extract --level %s)", x->dir,
                   vindex_level_name(x->facts.level), what, lacks[level], vindex_level_name(level));
}

const tensor *vindex_rows(const vindex *x, vindex_file file, int32_t layer)
{
    const tensor *t = &x->layers[layer].rows[file];
    return t->rank ? t : NULL;
}

int64_t vindex_features(const vindex *x, int32_t layer) { return x->layers[layer].features; }
int32_t vindex_experts(const vindex *x, int32_t layer) { return x->layers[layer].experts; }

const vindex_token *vindex_tokens(const vindex *x, int32_t layer, int64_t feature)
{
    return (const vindex_token *)x->layers[layer].rows[VINDEX_TOKENS].data + feature * VINDEX_TOP;
}

const tensor *vindex_tensors(const vindex *x, int32_t *n)
{
    *n = x->n_tensors;
    return x->tensors;
}

const file_map *vindex_map(const vindex *x, vindex_file file)
{
    return x->at[file] >= 0 ? &x->files[x->at[file]].map : NULL;
}

uint64_t vindex_bytes(const vindex *x)
{
    uint64_t n = 0;
    for (int32_t i = 0; i < x->n_files; i++) n += x->files[i].bytes;
    return n;
}

size_t vindex_private_bytes(const vindex *x)
{
    size_t n = sizeof(*x) + x->mem.total + (x->meta ? gguf_private_bytes(x->meta) : 0);
    for (int32_t i = 0; i < x->n_files; i++)
        if (x->files[i].kind >= 0 && x->files[i].map.mode == FILE_COPY) n += x->files[i].map.size;
    return n;
}

void vindex_ahead(const vindex *x, int32_t layer)
{
    static const vindex_file files[] = {VINDEX_GATE, VINDEX_UP, VINDEX_DOWN, VINDEX_OUT};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        const tensor *t = vindex_rows(x, files[i], layer);
        if (t && vindex_map(x, files[i])->mode == FILE_MAP) file_ahead(t->data, t->bytes);
    }
}

/* --------------------------------------------------------------------------------------------------------------- verify */

static lath_status verify_file(const vindex *x, const vindex_listed *f, bool *ok, lath_error *err)
{
    char path[4096];
    file_map map = {0};
    snprintf(path, sizeof(path), "%s/%s", x->dir, f->name);
    TRY(file_map_open(&map, x->alloc, path, FILE_MAP, err));
    const hash128 h = hash_128(map.data, map.size, 0);
    *ok = map.size == f->bytes && h.lo == f->hash.lo && h.hi == f->hash.hi;
    file_map_close(&map);
    return LATH_OK;
}

lath_status vindex_verify(const vindex *x, vindex_verify_fn fn, void *ctx, lath_error *err)
{
    lath_status st = LATH_OK;
    for (int32_t i = 0; i < x->n_files; i++) {
        const vindex_listed *f = &x->files[i];
        bool ok = false;
        TRY(verify_file(x, f, &ok, err));
        if (fn) fn(ctx, f->name, f->bytes, ok);
        if (!ok && st == LATH_OK)
            st = err_set(err, LATH_ERR_FORMAT, "%s/%s: its bytes are not those of its checksum: damaged or changed",
                         x->dir, f->name);
    }
    return st;
}
