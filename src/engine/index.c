/* SPDX-License-Identifier: Apache-2.0
 *
 * index.c: the vector index of the public header: store/vecindex for the file, dot_rows on the pool for the scores, a
 * bounded heap for the best k. Rows are scored in blocks, so that several queries share a block while it is in cache
 * and scratch stays small. The order of results is total (score, then row), hence independent of blocks and threads.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "store/vecindex.h"

enum { BLOCK_ROWS = 16 * 1024, SPANS_AT_ONCE = 256 };

struct lath_index_writer {
    const lath_runtime *rt;
    int64_t d;
    vecindex_writer *w;
};

struct lath_index {
    lath_runtime *rt;
    vecindex x;
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

lath_status lath_index_create(lath_runtime *rt, const char *path, const lath_index_key *key, int64_t d,
                              lath_index_writer **out, lath_error *err)
{
    err_clear(err);
    if (!rt || !path || !key || !out) return err_set(err, LATH_ERR_USAGE, "lath_index_create: an argument is missing");
    lath_index_writer *w = alloc_zero(&rt->alloc, sizeof(*w));
    if (!w) return err_nomem(err, sizeof(*w));
    w->rt = rt;
    w->d = d;
    const vecindex_key k = key_to_store(key);
    const lath_status st = vecindex_create(&rt->alloc, path, &k, d, &w->w, err);
    if (st != LATH_OK) {
        alloc_release(&rt->alloc, w, sizeof(*w));
        return st;
    }
    *out = w;
    return LATH_OK;
}

lath_status lath_index_add(lath_index_writer *w, const float *vectors, const lath_span *spans, size_t n,
                           lath_error *err)
{
    err_clear(err);
    if (!w || (n && (!vectors || !spans)))
        return err_set(err, LATH_ERR_USAGE, "lath_index_add: an argument is missing");
    for (size_t first = 0; first < n; first += SPANS_AT_ONCE) {
        vecindex_span some[SPANS_AT_ONCE];
        const size_t rows = n - first < SPANS_AT_ONCE ? n - first : SPANS_AT_ONCE;
        for (size_t i = 0; i < rows; i++) some[i] = (vecindex_span){spans[first + i].offset, spans[first + i].len};
        const lath_status st = vecindex_add(w->w, vectors + first * (size_t)w->d, some, rows, err);
        if (st != LATH_OK && err && err->item >= 0) err->item += (int64_t)first;
        if (st != LATH_OK) return st;
    }
    return LATH_OK;
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

lath_status lath_index_get_info(const lath_index *index, lath_index_info *info, lath_error *err)
{
    err_clear(err);
    if (!index || !info || info->struct_size != sizeof(*info))
        return err_set(err, LATH_ERR_USAGE, "lath_index_get_info: info of another version");
    info->n = index->x.n;
    info->d = index->x.d;
    info->file_bytes = index->x.file.size;
    info->key = key_to_public(&index->x.key);
    return LATH_OK;
}

lath_status lath_index_get_span(const lath_index *index, uint64_t row, lath_span *out, lath_error *err)
{
    err_clear(err);
    if (!index || !out || row >= index->x.n)
        return err_set(err, LATH_ERR_USAGE, "lath_index_get_span: no row %llu", (unsigned long long)row);
    *out = (lath_span){index->x.spans[row].offset, index->x.spans[row].len};
    return LATH_OK;
}

const char *lath_index_file_at(const lath_index *index, const void *address)
{
    const file_map *m = &index->x.file;
    const uintptr_t at = (uintptr_t)address, begin = (uintptr_t)m->data;
    return m->mode == FILE_MAP && at >= begin && at - begin < m->size ? m->path : NULL;
}

/* ----------------------------------------------------------------------------------------------------------- search */

/* a comes before b. */
static bool before(lath_hit a, lath_hit b) { return a.score > b.score || (a.score == b.score && a.row < b.row); }

static void swap(lath_hit *a, lath_hit *b)
{
    const lath_hit t = *a;
    *a = *b;
    *b = t;
}

/* Heap of n hits with the last of them in order on top. */
static void sift_down(lath_hit *heap, size_t n, size_t i)
{
    for (;;) {
        size_t last = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < n; child++) {
            if (before(heap[last], heap[child])) last = child;
        }
        if (last == i) return;
        swap(&heap[i], &heap[last]);
        i = last;
    }
}

static void sift_up(lath_hit *heap, size_t i)
{
    while (i > 0 && before(heap[(i - 1) / 2], heap[i])) {
        swap(&heap[i], &heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
}

/* Scores of rows first..first + n into the heap of at most k; *held counts what is in it. */
static void take_best(lath_hit *heap, size_t *held, size_t k, const float *scores, uint64_t first, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const lath_hit hit = {first + i, isnan(scores[i]) ? -INFINITY : scores[i]};
        if (*held < k) {
            heap[*held] = hit;
            sift_up(heap, (*held)++);
        } else if (before(hit, heap[0])) {
            heap[0] = hit;
            sift_down(heap, k, 0);
        }
    }
}

/* Best first, in place. */
static void sort_heap(lath_hit *heap, size_t n)
{
    for (size_t left = n; left > 1; left--) {
        swap(&heap[0], &heap[left - 1]);
        sift_down(heap, left - 1, 0);
    }
}

/* The chosen rows once more in f64, so that equal texts score 1 and near ties stand in their true order; then best
 * first. */
static void rescore(const vecindex *x, const float *query, lath_hit *heap, size_t k)
{
    for (size_t i = 0; i < k; i++) {
        if (heap[i].score > -INFINITY)
            heap[i].score = (float)lath_cosine(query, x->rows + heap[i].row * (uint64_t)x->d, x->d);
        sift_up(heap, i);
    }
    sort_heap(heap, k);
}

lath_status lath_index_search(const lath_index *index, const float *queries, size_t n, size_t k, lath_hit *hits,
                              lath_error *err)
{
    err_clear(err);
    if (!index || (n && (!queries || !hits)) || k < 1)
        return err_set(err, LATH_ERR_USAGE, "lath_index_search: an argument is missing");
    const vecindex *x = &index->x;
    const lath_allocator *alloc = &index->rt->alloc;
    lath_status st = LATH_OK;
    if (k > x->n) k = (size_t)x->n;
    if (k == 0 || n == 0) return LATH_OK;
    float *scores = alloc_bytes(alloc, BLOCK_ROWS * sizeof(*scores), 64);
    size_t *held = alloc_array(alloc, n, sizeof(*held));
    if (!scores || !held) {
        st = err_nomem(err, BLOCK_ROWS * sizeof(*scores) + n * sizeof(*held));
        goto done;
    }
    for (uint64_t first = 0; first < x->n; first += BLOCK_ROWS) {
        const size_t rows = x->n - first < BLOCK_ROWS ? (size_t)(x->n - first) : BLOCK_ROWS;
        for (size_t q = 0; q < n; q++) {
            TRY_DONE(lath_dot_rows(index->rt, queries + q * (size_t)x->d, x->rows + first * (uint64_t)x->d, rows, x->d,
                                   scores, err));
            take_best(hits + q * k, &held[q], k, scores, first, rows);
        }
    }
    for (size_t q = 0; q < n; q++) rescore(x, queries + q * (size_t)x->d, hits + q * k, k);
done:
    alloc_release(alloc, scores, BLOCK_ROWS * sizeof(*scores));
    alloc_release(alloc, held, n * sizeof(*held));
    return st;
}
