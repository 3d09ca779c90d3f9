/* SPDX-License-Identifier: Apache-2.0
 *
 * test_index_types.c: searching f32, f16 and int8 indexes of the same random vectors, on every instruction set. The
 * expected scores are computed here in f64 from the vectors, rounded as docs/formats/index.md says (halves to the
 * nearest of all 65536, int8 from the definition). Threads, the number of queries, and a filter change nothing.
 */
#include <math.h>
#include <stdbool.h>

#include "lath/lath.h"
#include "support/test.h"
#include "support/tmpdir.h"

enum { N = 5000, D = 83, Q = 7, K = 20 };

static const lath_index_key key = {{1, 2}, 3, {4, 5}, 1000000};
static const lath_index_type types[] = {LATH_INDEX_F32, LATH_INDEX_F16, LATH_INDEX_INT8};
static lath_error err;
static char dir[TMP_PATH], path[TMP_PATH];
static float rows[N][D], queries[Q][D];
static double kept[N][D]; /* as the index has them */
static double score[Q][N];

static uint64_t seed = 11;
static double deviate(void)
{
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += (double)((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 11) * 0x1p-53;
    return sum - 6;
}

static void unit(float *v)
{
    double raw[D], sum = 0;
    for (int i = 0; i < D; i++) raw[i] = deviate(), sum += raw[i] * raw[i];
    for (int i = 0; i < D; i++) v[i] = (float)(raw[i] / sqrt(sum));
}

/* The nearest binary16 of |v| < 1, ties to even: a multiple of 2^(e - 10), or of 2^-24 below 2^-14. */
static double round_f16(double v)
{
    int e;
    (void)frexp(v, &e);
    const double step = ldexp(1, e - 1 < -14 ? -24 : e - 1 - 10);
    return nearbyint(v / step) * step;
}

static void keep_row(lath_index_type type, const float *v, double *out)
{
    double most = 0, length = 0, coded = 0;
    for (int i = 0; i < D; i++) most = fmax(most, fabs((double)v[i])), length += (double)v[i] * (double)v[i];
    for (int i = 0; i < D; i++) {
        out[i] = (double)v[i];
        if (type == LATH_INDEX_F16) out[i] = round_f16(out[i]);
        if (type == LATH_INDEX_INT8) out[i] = nearbyint(out[i] / most * 127);
        coded += out[i] * out[i];
    }
    for (int i = 0; i < D && type == LATH_INDEX_INT8; i++) out[i] *= (double)(float)sqrt(length / coded);
}

static double cosine(const float *q, const double *row)
{
    double ab = 0, aa = 0, bb = 0;
    for (int i = 0; i < D; i++) ab += (double)q[i] * row[i], aa += (double)q[i] * (double)q[i], bb += row[i] * row[i];
    return ab / sqrt(aa * bb);
}

static void make(lath_index_type type)
{
    static lath_span spans[N];
    const lath_index_options o = {sizeof(o), type};
    lath_runtime *rt;
    lath_index_writer *w;
    assert_ok(lath_runtime_create(NULL, &rt, &err), err);
    assert_ok(lath_index_create_with(rt, path, &key, D, &o, &w, &err), err);
    assert_ok(lath_index_add(w, rows[0], spans, N, &err), err);
    assert_ok(lath_index_commit(w, &err), err);
    lath_runtime_destroy(rt);
    for (size_t i = 0; i < N; i++) keep_row(type, rows[i], kept[i]);
    for (int q = 0; q < Q; q++)
        for (size_t i = 0; i < N; i++) score[q][i] = cosine(queries[q], kept[i]);
}

/* In order, with their scores; what is left out is no better than the last but for rounding; nothing forbidden. */
static void check_hits(int q, const lath_hit *hits, size_t k, const uint8_t *allowed)
{
    static bool taken[N];
    memset(taken, 0, sizeof(taken));
    for (size_t i = 0; i < k; i++) {
        const lath_hit h = hits[i];
        assert_true(h.row < N && !taken[h.row] && (!allowed || allowed[h.row]));
        taken[h.row] = true;
        if (!(fabs((double)h.score - score[q][h.row]) < 1e-6))
            fail_msg("row %d: score %.9g, want %.9g", (int)h.row, (double)h.score, score[q][h.row]);
        if (i) assert_true(hits[i - 1].score > h.score || (hits[i - 1].score == h.score && hits[i - 1].row < h.row));
    }
    for (size_t i = 0; i < N && k > 0; i++)
        if (!taken[i] && (!allowed || allowed[i])) assert_true(score[q][i] < (double)hits[k - 1].score + 1e-6);
}

static void search(const lath_index *x, const float *query, size_t n, size_t k, const uint8_t *allowed, lath_hit *hits,
                   size_t want)
{
    const lath_index_search_options o = {sizeof(o), k, allowed};
    size_t got = 99;
    assert_ok(lath_index_search_with(x, query, n, &o, hits, &got, &err), err);
    assert_int_equal(got, want);
}

static void check_index(const lath_index *x, lath_hit *hits)
{
    static uint8_t allowed[N];
    lath_hit one[K], filtered[Q * K];
    search(x, queries[0], Q, K, NULL, hits, K);
    for (int q = 0; q < Q; q++) {
        check_hits(q, hits + q * K, K, NULL);
        assert_int_equal(hits[q * K].row, 100 * q); /* a query is that row with a little noise */
        search(x, queries[q], 1, K, NULL, one, K);
        assert_memory_equal(one, hits + q * K, sizeof(one)); /* alone as with others */
    }
    static const int every[] = {1, 2, 3, 7, 150, 2000, N};
    for (size_t e = 0; e < sizeof(every) / sizeof(every[0]); e++) {
        size_t count = 0;
        for (int i = 0; i < N; i++) count += allowed[i] = i % every[e] == every[e] - 1;
        const size_t k = count < K ? count : K;
        search(x, queries[0], Q, K, allowed, filtered, k);
        for (int q = 0; q < Q; q++) check_hits(q, filtered + (size_t)q * k, k, allowed);
    }
    memset(allowed, 0, sizeof(allowed));
    search(x, queries[0], Q, K, allowed, filtered, 0);
    memset(allowed, 2, sizeof(allowed)); /* anything but 0 */
    search(x, queries[0], Q, K, allowed, filtered, K);
    assert_memory_equal(filtered, hits, sizeof(filtered));
}

static void test_types(void **state)
{
    (void)state;
    for (int t = 0; t < 3; t++) {
        make(types[t]);
        for (int isa = LATH_ISA_REF; isa <= LATH_ISA_AMX; isa++) {
            lath_hit first[Q * K], hits[Q * K];
            for (int32_t threads = 1; threads <= 3; threads++) {
                lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
                lath_index_info info = {.struct_size = sizeof(info)};
                lath_runtime *rt;
                lath_index *x;
                ro.n_threads = threads;
                ro.isa = (lath_isa)isa;
                if (lath_runtime_create(&ro, &rt, &err) != LATH_OK) continue; /* of another architecture */
                assert_ok(lath_index_open(rt, path, threads % 2 ? LATH_LOAD_MAP : LATH_LOAD_COPY, &x, &err), err);
                assert_ok(lath_index_get_info(x, &info, &err), err);
                assert_int_equal(info.type, types[t]);
                check_index(x, hits);
                if (threads == 1) memcpy(first, hits, sizeof(hits));
                assert_memory_equal(first, hits, sizeof(hits));
                lath_index_close(x);
                lath_runtime_destroy(rt);
            }
        }
    }
}

/* k over the rows, and over what the heaps of all queries may take together. */
static void test_large_k(void **state)
{
    lath_hit *hits = malloc(Q * N * sizeof(*hits));
    lath_runtime *rt;
    lath_index *x;
    (void)state;
    make(LATH_INDEX_INT8);
    assert_ok(lath_runtime_create(NULL, &rt, &err), err);
    assert_ok(lath_index_open(rt, path, LATH_LOAD_MAP, &x, &err), err);
    search(x, queries[0], Q, N + 1000000, NULL, hits, N);
    for (int q = 0; q < Q; q++) check_hits(q, hits + (size_t)q * N, N, NULL);
    lath_index_close(x);
    lath_runtime_destroy(rt);
    free(hits);
}

static void test_refusals(void **state)
{
    lath_runtime *rt;
    lath_index *x;
    lath_index_writer *w;
    lath_hit hits[K];
    size_t n;
    float bad[2 * D] = {0};
    const lath_span spans[2] = {{0}};
    lath_index_options o = {sizeof(o), LATH_INDEX_F16};
    lath_index_search_options so = LATH_INDEX_SEARCH_OPTIONS_INIT;
    lath_index_info old = {.struct_size = offsetof(lath_index_info, type), .type = (lath_index_type)77};
    (void)state;
    assert_ok(lath_runtime_create(NULL, &rt, &err), err);
    assert_ok(lath_index_open(rt, path, LATH_LOAD_MAP, &x, &err), err);
    bad[D + 3] = NAN;
    assert_int_equal(lath_index_search(x, bad, 2, 1, hits, &err), LATH_ERR_INPUT);
    assert_int_equal(err.item, 1);
    so.k = 0;
    assert_int_equal(lath_index_search_with(x, rows[0], 1, &so, hits, &n, &err), LATH_ERR_USAGE);
    so.k = 1, so.struct_size = 3;
    assert_int_equal(lath_index_search_with(x, rows[0], 1, &so, hits, &n, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_index_search_with(x, rows[0], 1, NULL, hits, NULL, &err), LATH_ERR_USAGE);
    assert_ok(lath_index_get_info(x, &old, &err), err); /* of a caller that knows no type */
    assert_int_equal(old.n, N);
    assert_int_equal((int)old.type, 77);
    lath_index_close(x);
    assert_ok(lath_index_create_with(rt, path, &key, D, &o, &w, &err), err);
    assert_int_equal(lath_index_add(w, bad, spans, 2, &err), LATH_ERR_INPUT);
    assert_int_equal(err.item, 1);
    lath_index_abort(w);
    o.type = (lath_index_type)9;
    assert_int_equal(lath_index_create_with(rt, path, &key, D, &o, &w, &err), LATH_ERR_USAGE);
    o.struct_size = 1;
    assert_int_equal(lath_index_create_with(rt, path, &key, D, &o, &w, &err), LATH_ERR_USAGE);
    lath_runtime_destroy(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_types), cmocka_unit_test(test_large_k),
                                       cmocka_unit_test(test_refusals)};
    tmp_make(dir);
    tmp_join(path, dir, "x.lath");
    for (size_t i = 0; i < N; i++) unit(rows[i]);
    memcpy(rows[4900], rows[37], sizeof(rows[0])); /* a tie */
    for (size_t q = 0; q < Q; q++) {
        unit(queries[q]);
        for (int i = 0; i < D; i++) queries[q][i] = rows[100 * q][i] + 0.3f * queries[q][i];
    }
    const int failed = TEST_RUN(tests);
    tmp_remove(dir);
    return failed;
}
