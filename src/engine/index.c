/* SPDX-License-Identifier: Apache-2.0
 *
 * index.c: the vector index files of the public header, over store/vecindex. index_search.c searches them.
 */
#include "engine/index.h"

enum { ROWS_AT_ONCE = 256 };

struct lath_index_writer {
    const lath_runtime *rt;
    int64_t d;
    vecindex_writer *w;
};

/* The file's own types and the public ones say the same; this is where they meet. */
static vecindex_key key_to_store(const lath_index_key *k)
{
    return (vecindex_key){{k->model[0], k->model[1]}, k->settings, {k->corpus[0], k->corpus[1]}, k->corpus_bytes};
}

static lath_index_key key_to_public(const vecindex_key *k)
{
    return (lath_index_key){{k->model[0], k->model[1]}, k->settings, {k->corpus[0], k->corpus[1]}, k->corpus_bytes};
}

/* ----------------------------------------------------------------------------------------------------------- writer */

lath_status lath_index_create_with(lath_runtime *rt, const char *path, const lath_index_key *key, int64_t d,
                                   const lath_index_options *opts, lath_index_writer **out, lath_error *err)
{
    static const lath_index_options defaults = LATH_INDEX_OPTIONS_INIT;
    err_clear(err);
    if (!opts) opts = &defaults;
    if (!rt || !path || !key || !out) return err_set(err, LATH_ERR_USAGE, "lath_index_create: an argument is missing");
    if (opts->struct_size != sizeof(*opts))
        return err_set(err, LATH_ERR_USAGE, "lath_index_create: options of another version");
    lath_index_writer *w = alloc_zero(&rt->alloc, sizeof(*w));
    if (!w) return err_nomem(err, sizeof(*w));
    w->rt = rt;
    w->d = d;
    const vecindex_key k = key_to_store(key);
    const lath_status st = vecindex_create(&rt->alloc, path, &k, (vecindex_type)opts->type, d, &w->w, err);
    if (st != LATH_OK) {
        alloc_release(&rt->alloc, w, sizeof(*w));
        return st;
    }
    *out = w;
    return LATH_OK;
}

lath_status lath_index_create(lath_runtime *rt, const char *path, const lath_index_key *key, int64_t d,
                              lath_index_writer **out, lath_error *err)
{
    return lath_index_create_with(rt, path, key, d, NULL, out, err);
}

/* What a call adds: vectors, or rows of another index. */
typedef struct addition {
    const float *vectors; /* [n, d] or NULL */
    const lath_index *from;
    uint64_t first;
    const lath_span *spans;     /* [n], or */
    const lath_index_row *rows; /* [n] */
} addition;

static lath_status add_some(lath_index_writer *w, const addition *a, size_t at, size_t n, lath_error *err)
{
    vecindex_entry some[ROWS_AT_ONCE];
    for (size_t i = 0; i < n; i++) {
        const lath_index_row r = a->rows ? a->rows[at + i] : (lath_index_row){a->spans[at + i], {0, 0}};
        some[i] = (vecindex_entry){r.span.offset, r.span.len, {r.text[0], r.text[1]}};
    }
    if (a->from) return vecindex_copy(w->w, &a->from->x, a->first + at, some, n, err);
    return vecindex_add(w->w, a->vectors + at * (size_t)w->d, some, n, err);
}

static lath_status add_all(lath_index_writer *w, const addition *a, size_t n, lath_error *err)
{
    for (size_t at = 0; at < n; at += ROWS_AT_ONCE) {
        const lath_status st = add_some(w, a, at, n - at < ROWS_AT_ONCE ? n - at : ROWS_AT_ONCE, err);
        if (st != LATH_OK && err && err->item >= 0) err->item += (int64_t)at;
        if (st != LATH_OK) return st;
    }
    return LATH_OK;
}

lath_status lath_index_add(lath_index_writer *w, const float *vectors, const lath_span *spans, size_t n,
                           lath_error *err)
{
    err_clear(err);
    if (!w || (n && (!vectors || !spans)))
        return err_set(err, LATH_ERR_USAGE, "lath_index_add: an argument is missing");
    return add_all(w, &(addition){.vectors = vectors, .spans = spans}, n, err);
}

lath_status lath_index_add_rows(lath_index_writer *w, const float *vectors, const lath_index_row *rows, size_t n,
                                lath_error *err)
{
    err_clear(err);
    if (!w || (n && (!vectors || !rows)))
        return err_set(err, LATH_ERR_USAGE, "lath_index_add_rows: an argument is missing");
    return add_all(w, &(addition){.vectors = vectors, .rows = rows}, n, err);
}

lath_status lath_index_copy_rows(lath_index_writer *w, const lath_index *from, uint64_t first,
                                 const lath_index_row *rows, size_t n, lath_error *err)
{
    err_clear(err);
    if (!w || !from || (n && !rows))
        return err_set(err, LATH_ERR_USAGE, "lath_index_copy_rows: an argument is missing");
    return add_all(w, &(addition){.from = from, .first = first, .rows = rows}, n, err);
}

const char *lath_index_temp_path(const lath_index_writer *w) { return vecindex_temp_path(w->w); }

lath_status lath_index_commit(lath_index_writer *w, lath_error *err)
{
    err_clear(err);
    if (!w) return err_set(err, LATH_ERR_USAGE, "lath_index_commit: no index");
    const lath_status st = vecindex_commit(w->w, err);
    alloc_release(&w->rt->alloc, w, sizeof(*w));
    return st;
}

void lath_index_abort(lath_index_writer *w)
{
    if (!w) return;
    vecindex_abort(w->w);
    alloc_release(&w->rt->alloc, w, sizeof(*w));
}

/* ----------------------------------------------------------------------------------------------------------- reader */

lath_status lath_index_open(lath_runtime *rt, const char *path, lath_load load, lath_index **out, lath_error *err)
{
    err_clear(err);
    if (!rt || !path || !out) return err_set(err, LATH_ERR_USAGE, "lath_index_open: an argument is missing");
    if (load != LATH_LOAD_MAP && load != LATH_LOAD_COPY)
        return err_set(err, LATH_ERR_USAGE, "lath_index_open: load: no such value: %d", (int)load);
    lath_index *x = alloc_zero(&rt->alloc, sizeof(*x));
    if (!x) return err_nomem(err, sizeof(*x));
    x->rt = rt;
    const lath_status st = vecindex_open(&rt->alloc, path, load == LATH_LOAD_MAP ? FILE_MAP : FILE_COPY, &x->x, err);
    if (st != LATH_OK) {
        alloc_release(&rt->alloc, x, sizeof(*x));
        return st;
    }
    *out = x;
    return LATH_OK;
}

void lath_index_close(lath_index *index)
{
    if (!index) return;
    vecindex_close(&index->x);
    alloc_release(&index->rt->alloc, index, sizeof(*index));
}

lath_status lath_index_verify(const lath_index *index, lath_error *err)
{
    err_clear(err);
    if (!index) return err_set(err, LATH_ERR_USAGE, "lath_index_verify: no index");
    return vecindex_verify(&index->x, err);
}

lath_status lath_index_get_info(const lath_index *index, lath_index_info *info, lath_error *err)
{
    const size_t without_type = offsetof(lath_index_info, type);
    err_clear(err);
    if (!index || !info || (info->struct_size != sizeof(*info) && info->struct_size != without_type))
        return err_set(err, LATH_ERR_USAGE, "lath_index_get_info: info of another version");
    info->n = index->x.n;
    info->d = index->x.d;
    info->file_bytes = index->x.file.size;
    info->key = key_to_public(&index->x.key);
    if (info->struct_size > without_type) info->type = (lath_index_type)index->x.type;
    return LATH_OK;
}

lath_status lath_index_get_row(const lath_index *index, uint64_t row, lath_index_row *out, lath_error *err)
{
    vecindex_entry e;
    err_clear(err);
    if (!index || !out || row >= index->x.n)
        return err_set(err, LATH_ERR_USAGE, "lath_index_get_row: no row %llu", (unsigned long long)row);
    TRY(vecindex_get_entry(&index->x, row, &e, err));
    *out = (lath_index_row){{e.offset, e.len}, {e.text[0], e.text[1]}};
    return LATH_OK;
}

lath_status lath_index_get_span(const lath_index *index, uint64_t row, lath_span *out, lath_error *err)
{
    lath_index_row r;
    err_clear(err);
    if (!out) return err_set(err, LATH_ERR_USAGE, "lath_index_get_span: an argument is missing");
    TRY(lath_index_get_row(index, row, &r, err));
    *out = r.span;
    return LATH_OK;
}

const char *lath_index_file_at(const lath_index *index, const void *address)
{
    const file_map *m = &index->x.file;
    const uintptr_t at = (uintptr_t)address, begin = (uintptr_t)m->data;
    return m->mode == FILE_MAP && at >= begin && at - begin < m->size ? m->path : NULL;
}
