/* SPDX-License-Identifier: Apache-2.0
 *
 * index_search.c: the best k rows of a vector index. A task is a block of rows (at most 128 KiB): it is compared with
 * its checksum when it was not yet, scored with all queries of the group while it lies in L2, and its best go into the
 * worker's own bounded heaps; then the heaps are merged and the candidates scored once more in f64. The order of hits
 * is total (score, then row), so what comes out depends neither on who scored a block nor on when.
 *
 * int8 rows meet queries rounded to 16 bits: q = round(x / s), s = max(max|x| / 32767, sum|x| / (2^24 - 2 - d / 2)).
 * The second bound keeps 128 * sum|q| below 2^31, what the integer kernel asks for; it counts for d over 512 only.
 */
#include <math.h>
#include <string.h>

#include "engine/index.h"

enum {
    PAIR = 2,             /* queries of one kernel call: the block stays in L2 for the next */
    GROUP = 32,           /* most queries of one pass over the rows */
    GAP = 4,              /* rows that are no result are scored along when fewer lie between two that are */
    RESCORE_HITS = 64,    /* of a task */
    SPARE_CANDIDATES = 16 /* beside k + k / 2 */
};
static const size_t HEAP_BYTES = (size_t)64 << 20; /* of all workers' heaps; k decides the group */

typedef struct scan {
    const kern_table *kern;
    const vecindex *x;
    const float *queries; /* [n_q, d] */
    int16_t *q16;         /* [n_q, d] for int8 */
    float *q_scale;       /* [n_q] */
    size_t n_q, k;        /* k: candidates of a query */
    const uint8_t *allowed;
    lath_hit *heaps;                 /* [workers][n_q][k] */
    size_t *held;                    /* [workers][n_q] */
    float *scores;                   /* [workers][PAIR][block_rows] */
    float *row;                      /* [workers][d] */
    atomic_uint_least64_t bad_block; /* the first that is damaged, UINT64_MAX: none */
} scan;

/* ------------------------------------------------------------------------------------------------------------- heap */

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

static void push(lath_hit *heap, size_t *held, size_t k, lath_hit hit)
{
    if (*held < k) {
        heap[*held] = hit;
        sift_up(heap, (*held)++);
    } else if (before(hit, heap[0])) {
        heap[0] = hit;
        sift_down(heap, k, 0);
    }
}

/* Best first, in place. */
static void sort_hits(lath_hit *hits, size_t n)
{
    for (size_t i = 1; i < n; i++) sift_up(hits, i);
    for (size_t left = n; left > 1; left--) {
        swap(&hits[0], &hits[left - 1]);
        sift_down(hits, left - 1, 0);
    }
}

/* ------------------------------------------------------------------------------------------------------------- scan */

/* Scores of rows first .. first + n into the heap of query q. */
static void take_best(const scan *s, size_t worker, size_t q, const float *scores, uint64_t first, size_t n)
{
    const size_t at = worker * s->n_q + q;
    lath_hit *heap = s->heaps + at * s->k;
    size_t *held = &s->held[at];
    for (size_t i = 0; i < n; i++) {
        if (*held == s->k && scores[i] < heap[0].score) continue;
        if (s->allowed && !s->allowed[first + i]) continue;
        push(heap, held, s->k, (lath_hit){first + i, isnan(scores[i]) ? -INFINITY : scores[i]});
    }
}

static void score_pair(const scan *s, size_t q, size_t n_q, const uint8_t *rows, size_t n, float *out)
{
    const vecindex *x = s->x;
    const int64_t stride = (int64_t)x->row_bytes, out_stride = (int64_t)x->block_rows;
    if (x->type == VECINDEX_I8) {
        s->kern->dot_rows_i8(&(kern_dot_rows_i8_args){.q = s->q16 + q * (size_t)x->d,
                                                      .q_stride = x->d,
                                                      .q_scale = s->q_scale + q,
                                                      .rows = rows,
                                                      .row_stride = stride,
                                                      .n = (int64_t)n,
                                                      .d = x->d,
                                                      .n_q = (int32_t)n_q,
                                                      .out = out,
                                                      .out_stride = out_stride});
        return;
    }
    s->kern->dot_rows(&(kern_dot_rows_args){.q = s->queries + q * (size_t)x->d,
                                            .q_stride = x->d,
                                            .rows = rows,
                                            .type = x->type == VECINDEX_F16 ? DTYPE_F16 : DTYPE_F32,
                                            .row_stride = stride,
                                            .n = (int64_t)n,
                                            .d = x->d,
                                            .n_q = (int32_t)n_q,
                                            .out = out,
                                            .out_stride = out_stride});
}

/* Rows first .. first + n with all queries. */
static void scan_rows(const scan *s, size_t worker, uint64_t first, size_t n)
{
    const vecindex *x = s->x;
    float *scores = s->scores + worker * PAIR * (size_t)x->block_rows;
    for (size_t q = 0; q < s->n_q; q += PAIR) {
        const size_t n_q = s->n_q - q < PAIR ? s->n_q - q : PAIR;
        score_pair(s, q, n_q, x->vectors + first * x->row_bytes, n, scores);
        for (size_t i = 0; i < n_q; i++) take_best(s, worker, q + i, scores + i * (size_t)x->block_rows, first, n);
    }
}

/* The next run of rows at or behind `at` that is scored in one go: begins and ends with an allowed one. */
static bool next_run(const uint8_t *allowed, uint64_t at, uint64_t end, uint64_t *first, uint64_t *behind)
{
    while (at < end && !allowed[at]) at++;
    if (at == end) return false;
    *first = at;
    *behind = at + 1;
    for (uint64_t i = at + 1; i < end && i < *behind + GAP; i++) {
        if (allowed[i]) *behind = i + 1;
    }
    return true;
}

/* Keeps the least block: the error then does not depend on who was first. */
static void note_bad_block(scan *s, uint64_t block)
{
    uint_least64_t seen = atomic_load(&s->bad_block);
    while (block < seen && !atomic_compare_exchange_weak(&s->bad_block, &seen, block)) {
    }
}

static void scan_block(void *ctx, int64_t task, int32_t worker)
{
    scan *s = ctx;
    const uint64_t block = (uint64_t)task, rows = s->x->block_rows, begin = block * rows;
    const uint64_t end = s->x->n - begin < rows ? s->x->n : begin + rows;
    uint64_t first = begin, behind = end;
    if (s->allowed && !next_run(s->allowed, begin, end, &first, &behind)) return;
    if (vecindex_check(s->x, block, NULL) != LATH_OK) {
        note_bad_block(s, block);
        return;
    }
    do scan_rows(s, (size_t)worker, first, (size_t)(behind - first));
    while (s->allowed && next_run(s->allowed, behind, end, &first, &behind));
}

/* The candidates of one query, merged into the first worker's heap; how many. */
static size_t merge(const scan *s, size_t workers, size_t q)
{
    lath_hit *heap = s->heaps + q * s->k;
    for (size_t w = 1; w < workers; w++) {
        const size_t at = w * s->n_q + q;
        for (size_t i = 0; i < s->held[at]; i++) push(heap, &s->held[q], s->k, s->heaps[at * s->k + i]);
    }
    return s->held[q];
}

/* Candidates once more in f64, so that equal texts score 1 and near ties stand in their true order. */
static void rescore_some(void *ctx, int64_t task, int32_t worker)
{
    const scan *s = ctx;
    const size_t chunks = (s->k + RESCORE_HITS - 1) / RESCORE_HITS, q = (size_t)task / chunks;
    const size_t first = (size_t)task % chunks * RESCORE_HITS;
    float *row = s->row + (size_t)worker * (size_t)s->x->d;
    for (size_t i = first; i < s->held[q] && i < first + RESCORE_HITS; i++) {
        lath_hit *hit = &s->heaps[q * s->k + i];
        if (!(hit->score > -INFINITY)) continue;
        vecindex_decode(s->x->type, s->x->d, s->x->vectors + hit->row * s->x->row_bytes, row);
        const float score = (float)lath_cosine(s->queries + q * (size_t)s->x->d, row, s->x->d);
        hit->score = isnan(score) ? -INFINITY : score;
    }
}

/* ---------------------------------------------------------------------------------------------------------- queries */

static void query_to_i16(const float *x, int64_t d, int16_t *q, float *scale)
{
    double most = 0, sum = 0;
    for (int64_t i = 0; i < d; i++) {
        most = fmax(most, fabs((double)x[i]));
        sum += fabs((double)x[i]);
    }
    const double s = fmax(most / 32767.0, sum / (16777214.0 - (double)d / 2));
    *scale = (float)s;
    for (int64_t i = 0; i < d; i++) q[i] = s > 0 ? (int16_t)rint((double)x[i] / s) : 0;
}

static lath_status check_queries(const float *queries, size_t n, int64_t d, lath_error *err)
{
    for (size_t q = 0; q < n; q++) {
        for (int64_t i = 0; i < d; i++) {
            if (!isfinite(queries[q * (size_t)d + (size_t)i]))
                return err_item(err, LATH_ERR_INPUT, (int64_t)q, "query %zu: a number is not finite", q);
        }
    }
    return LATH_OK;
}

/* One pass over the rows for the queries that are set; k hits each. */
static lath_status run_group(const lath_index *index, scan *s, size_t workers, size_t k, lath_hit *hits,
                             lath_error *err)
{
    const size_t d = (size_t)s->x->d;
    pool *p = index->rt->pool;
    memset(s->held, 0, workers * s->n_q * sizeof(*s->held));
    for (size_t q = 0; s->q16 && q < s->n_q; q++)
        query_to_i16(s->queries + q * d, s->x->d, s->q16 + q * d, &s->q_scale[q]);
    pool_enter(p);
    pool_run(p, scan_block, s, (int64_t)s->x->n_blocks);
    for (size_t q = 0; q < s->n_q; q++) (void)merge(s, workers, q);
    pool_run(p, rescore_some, s, (int64_t)(s->n_q * ((s->k + RESCORE_HITS - 1) / RESCORE_HITS)));
    pool_leave(p);
    const uint64_t bad = atomic_load(&s->bad_block);
    if (bad != UINT64_MAX) return vecindex_check(s->x, bad, err);
    for (size_t q = 0; q < s->n_q; q++) {
        sort_hits(s->heaps + q * s->k, s->held[q]);
        memcpy(hits + q * k, s->heaps + q * s->k, k * sizeof(*hits));
    }
    return LATH_OK;
}

static uint64_t count_allowed(const uint8_t *allowed, uint64_t n)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < n; i++) count += allowed[i] != 0;
    return count;
}

/* k hits for each of n queries, 1 <= k <= possible: the rows that may be hits. */
static lath_status search(const lath_index *index, const float *queries, size_t n, size_t k, size_t possible,
                          const uint8_t *allowed, lath_hit *hits, lath_error *err)
{
    const lath_allocator *alloc = &index->rt->alloc;
    const vecindex *x = &index->x;
    const size_t workers = (size_t)pool_size(index->rt->pool), d = (size_t)x->d;
    const size_t wanted = k + k / 2 + SPARE_CANDIDATES;
    scan s = {.kern = &index->rt->kern, .x = x, .k = wanted < possible ? wanted : possible, .allowed = allowed};
    size_t group = HEAP_BYTES / (workers * sizeof(lath_hit)) / s.k;
    group = group < 1 ? 1 : group > GROUP ? GROUP : group;
    group = group < n ? group : n;
    const bool i8 = x->type == VECINDEX_I8;
    lath_status st = LATH_OK;
    atomic_init(&s.bad_block, UINT64_MAX);
    s.heaps = alloc_array(alloc, workers * group, s.k * sizeof(*s.heaps));
    s.held = alloc_array(alloc, workers * group, sizeof(*s.held));
    s.scores = alloc_array(alloc, workers * PAIR, (size_t)x->block_rows * sizeof(*s.scores));
    s.row = alloc_array(alloc, workers, d * sizeof(*s.row));
    s.q16 = i8 ? alloc_array(alloc, group, d * sizeof(*s.q16)) : NULL;
    s.q_scale = i8 ? alloc_array(alloc, group, sizeof(*s.q_scale)) : NULL;
    if (!s.heaps || !s.held || !s.scores || !s.row || (i8 && (!s.q16 || !s.q_scale))) {
        st = err_nomem(err, workers * group * s.k * sizeof(*s.heaps));
        goto done;
    }
    for (size_t q = 0; q < n; q += group) {
        s.queries = queries + q * d;
        s.n_q = n - q < group ? n - q : group;
        TRY_DONE(run_group(index, &s, workers, k, hits + q * k, err));
    }
done:
    alloc_release(alloc, s.heaps, workers * group * s.k * sizeof(*s.heaps));
    alloc_release(alloc, s.held, workers * group * sizeof(*s.held));
    alloc_release(alloc, s.scores, workers * PAIR * (size_t)x->block_rows * sizeof(*s.scores));
    alloc_release(alloc, s.row, workers * d * sizeof(*s.row));
    alloc_release(alloc, s.q16, group * d * sizeof(*s.q16));
    alloc_release(alloc, s.q_scale, group * sizeof(*s.q_scale));
    return st;
}

lath_status lath_index_search_with(const lath_index *index, const float *queries, size_t n,
                                   const lath_index_search_options *opts, lath_hit *hits, size_t *n_hits,
                                   lath_error *err)
{
    static const lath_index_search_options defaults = LATH_INDEX_SEARCH_OPTIONS_INIT;
    err_clear(err);
    if (!opts) opts = &defaults;
    if (!index || !n_hits || (n && (!queries || !hits)))
        return err_set(err, LATH_ERR_USAGE, "lath_index_search: an argument is missing");
    if (opts->struct_size != sizeof(*opts) || opts->k < 1)
        return err_set(err, LATH_ERR_USAGE, "lath_index_search: %s",
                       opts->k < 1 ? "k: want at least 1" : "options of another version");
    const vecindex *x = &index->x;
    const uint64_t possible = opts->allowed ? count_allowed(opts->allowed, x->n) : x->n;
    *n_hits = opts->k < possible ? opts->k : (size_t)possible;
    if (n == 0 || *n_hits == 0) return LATH_OK;
    TRY(check_queries(queries, n, x->d, err));
    return search(index, queries, n, *n_hits, (size_t)possible, opts->allowed, hits, err);
}

lath_status lath_index_search(const lath_index *index, const float *queries, size_t n, size_t k, lath_hit *hits,
                              lath_error *err)
{
    lath_index_search_options o = LATH_INDEX_SEARCH_OPTIONS_INIT;
    size_t n_hits;
    o.k = k;
    return lath_index_search_with(index, queries, n, &o, hits, &n_hits, err);
}
