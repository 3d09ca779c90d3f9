/* SPDX-License-Identifier: Apache-2.0
 *
 * test_index.c: exact search over a vector index, against a plain double-precision scan and sort written here.
 */
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lath/lath.h"
#include "support/test.h"

enum { N = 40000, D = 9, QUERIES = 3 }; /* more rows than the search takes at once */

static char dir[256], path[320];
static lath_runtime *rt;
static float *rows;
static lath_span *spans;
static const lath_index_key key = {{1, 2}, 3, {4, 5}, (uint64_t)N * 10};

static uint32_t seed = 1;
static float next_random(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (float)(int32_t)seed / 2147483648.0f;
}

static void unit_row(float *v)
{
    double s = 0;
    for (int i = 0; i < D; i++) {
        v[i] = next_random();
        s += (double)v[i] * v[i];
    }
    for (int i = 0; i < D; i++) v[i] = (float)(v[i] / sqrt(s));
}

static int set_up(void **state)
{
    const char *tmp = getenv("TMPDIR");
    lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
    lath_index_writer *w;
    lath_error err;
    (void)state;
    snprintf(dir, sizeof(dir), "%s/lath-index-XXXXXX", tmp && *tmp ? tmp : ".");
    if (!mkdtemp(dir)) return -1;
    snprintf(path, sizeof(path), "%s/x.lath", dir);
    rows = malloc((size_t)N * D * sizeof(*rows));
    spans = malloc((size_t)N * sizeof(*spans));
    for (size_t i = 0; i < N; i++) {
        unit_row(rows + i * D);
        spans[i] = (lath_span){i * 10, 9};
    }
    memcpy(rows + (size_t)39000 * D, rows + (size_t)5 * D, D * sizeof(*rows)); /* a tie: the lower row comes first */
    for (int i = 0; i < D; i++) rows[(size_t)100 * D + i] = NAN;
    ro.n_threads = 2;
    if (lath_runtime_create(&ro, &rt, &err) != LATH_OK) return -1;
    if (lath_index_create(rt, path, &key, D, &w, &err) != LATH_OK) return -1;
    if (lath_index_add(w, rows, spans, N, &err) != LATH_OK) return -1;
    return lath_index_commit(w, &err) == LATH_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    lath_runtime_destroy(rt);
    free(rows);
    free(spans);
    unlink(path);
    return rmdir(dir);
}

static const float *sort_query;

static double cosine(const float *a, const float *b)
{
    double ab = 0, aa = 0, bb = 0;
    for (int i = 0; i < D; i++) {
        ab += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    const double c = ab / sqrt(aa * bb);
    return isnan(c) ? -INFINITY : c;
}

static int by_cosine(const void *pa, const void *pb)
{
    const size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
    const double ca = cosine(sort_query, rows + a * D), cb = cosine(sort_query, rows + b * D);
    if (ca != cb) return ca > cb ? -1 : 1;
    return a < b ? -1 : 1;
}

static void check_search(const lath_index *index, size_t n, size_t k)
{
    float queries[QUERIES * D];
    lath_hit *hits = calloc(n * k, sizeof(*hits));
    size_t *order = malloc((size_t)N * sizeof(*order));
    lath_error err;
    memcpy(queries, rows + (size_t)5 * D, D * sizeof(*rows));
    for (size_t q = 1; q < n; q++) unit_row(queries + q * D);
    assert_ok(lath_index_search(index, queries, n, k, hits, &err), err);
    for (size_t q = 0; q < n; q++) {
        for (size_t i = 0; i < N; i++) order[i] = i;
        sort_query = queries + q * D;
        qsort(order, N, sizeof(*order), by_cosine);
        for (size_t i = 0; i < k && i < N; i++) {
            const lath_hit h = hits[q * (k < N ? k : N) + i];
            if (isfinite(h.score)) assert_true(fabs(h.score - cosine(sort_query, rows + order[i] * D)) < 1e-6);
            if (i > 0) assert_true(h.score <= hits[q * (k < N ? k : N) + i - 1].score);
            if (k <= 50) assert_int_equal(h.row, order[i]);
        }
    }
    assert_int_equal(hits[0].row, 5);
    assert_int_equal(hits[1].row, 39000);
    assert_true(hits[0].score == 1.0f && hits[1].score == 1.0f);
    free(hits);
    free(order);
}

static void test_search(void **state)
{
    lath_index *index;
    lath_error err;
    (void)state;
    for (int load = LATH_LOAD_MAP; load <= LATH_LOAD_COPY; load++) {
        assert_ok(lath_index_open(rt, path, (lath_load)load, &index, &err), err);
        check_search(index, 1, 2);
        check_search(index, QUERIES, 50);
        lath_index_close(index);
    }
    assert_ok(lath_index_open(rt, path, LATH_LOAD_MAP, &index, &err), err);
    check_search(index, 1, N + 5);
    lath_index_close(index);
}

static void test_nan_is_last(void **state)
{
    lath_hit *hits = calloc(N, sizeof(*hits));
    lath_index *index;
    lath_error err;
    (void)state;
    assert_ok(lath_index_open(rt, path, LATH_LOAD_MAP, &index, &err), err);
    assert_ok(lath_index_search(index, rows, 1, N, hits, &err), err);
    assert_int_equal(hits[N - 1].row, 100);
    lath_index_close(index);
    free(hits);
}

static void test_info_and_spans(void **state)
{
    lath_index_info info = {.struct_size = sizeof(info)};
    lath_index *index;
    lath_span span;
    struct stat sb;
    lath_error err;
    (void)state;
    assert_ok(lath_index_open(rt, path, LATH_LOAD_MAP, &index, &err), err);
    assert_ok(lath_index_get_info(index, &info, &err), err);
    assert_int_equal(info.n, N);
    assert_int_equal(info.d, D);
    assert_memory_equal(&info.key, &key, sizeof(key));
    assert_int_equal(stat(path, &sb), 0);
    assert_int_equal(info.file_bytes, sb.st_size);
    assert_ok(lath_index_get_span(index, 77, &span, &err), err);
    assert_int_equal(span.offset, 770);
    assert_int_equal(span.len, 9);
    assert_int_equal(lath_index_get_span(index, N, &span, &err), LATH_ERR_USAGE);
    assert_null(lath_index_file_at(index, &info));
    info.struct_size = 3;
    assert_int_equal(lath_index_get_info(index, &info, &err), LATH_ERR_USAGE);
    lath_index_close(index);
}

static void test_bad_calls(void **state)
{
    lath_index *index;
    lath_index_writer *w;
    lath_hit hit;
    lath_error err;
    (void)state;
    assert_int_equal(lath_index_open(rt, dir, LATH_LOAD_MAP, &index, &err), LATH_ERR_NOT_FOUND);
    assert_int_equal(lath_index_open(rt, path, (lath_load)7, &index, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_index_create(rt, path, NULL, D, &w, &err), LATH_ERR_USAGE);
    assert_ok(lath_index_open(rt, path, LATH_LOAD_MAP, &index, &err), err);
    assert_int_equal(lath_index_search(index, rows, 1, 0, &hit, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_index_search(index, NULL, 1, 1, &hit, &err), LATH_ERR_USAGE);
    lath_index_close(index);
    lath_index_close(NULL);
    lath_index_abort(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search),
        cmocka_unit_test(test_nan_is_last),
        cmocka_unit_test(test_info_and_spans),
        cmocka_unit_test(test_bad_calls),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down) != 0;
}
