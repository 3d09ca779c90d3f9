/* SPDX-License-Identifier: Apache-2.0
 * test_index_api.c: the vector index of the public header: what is written comes back, every search of vectors of
 * length 1 equals a look at all dot products (ties by row), wrong arguments and damaged files are refused, nothing
 * half-written is ever left under the final name. */
#include <math.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lath/lath.h"
#include "support/test.h"
#include "support/tmpdir.h"

enum { N = 40000, D = 5, Q = 3 };
static const double EPS = 1e-6;

static const lath_index_key key = {{1, 2}, 3, {4, 5}, 1000000};
static lath_error err;
static lath_runtime *rt;
static char dir[TMP_PATH], path[TMP_PATH];
static float rows[N * D];
static lath_span spans[N];

static void unit(const float *v, float *out)
{
    double sum = 0;
    for (int k = 0; k < D; k++) sum += (double)v[k] * (double)v[k];
    for (int k = 0; k < D; k++) out[k] = (float)((double)v[k] / sqrt(sum));
}

static int setup(void **state)
{
    lath_runtime_options o = LATH_RUNTIME_OPTIONS_INIT;
    uint32_t x = 7;
    (void)state;
    o.n_threads = 2;
    assert_ok(lath_runtime_create(&o, &rt, &err), err);
    tmp_make(dir);
    tmp_join(path, dir, "corpus.lvi");
    for (size_t i = 0; i < N; i++) { /* of length 1, many of them equal: there are 8^5 directions at most */
        float v[D];
        for (int k = 0; k < D; k++) v[k] = (float)((x = x * 1664525u + 1013904223u) >> 29) - 3.5f;
        unit(v, rows + i * D);
        spans[i] = (lath_span){i * 20, 19};
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tmp_remove(dir);
    lath_runtime_destroy(rt);
    return 0;
}

static void write_index(size_t n, size_t step)
{
    lath_index_writer *w = NULL;
    struct stat st;
    assert_ok(lath_index_create(rt, path, &key, D, &w, &err), err);
    assert_int_equal(stat(lath_index_temp_path(w), &st), 0);
    for (size_t at = 0; at < n; at += step)
        assert_ok(lath_index_add(w, rows + at * D, spans + at, n - at < step ? n - at : step, &err), err);
    assert_ok(lath_index_add(w, NULL, NULL, 0, &err), err);
    assert_ok(lath_index_commit(w, &err), err);
}

static bool same_row(uint64_t a, uint64_t b) { return memcmp(rows + a * D, rows + b * D, D * sizeof(float)) == 0; }

/* Against all scores in double: hits are in order, have their scores, and what is not among them is no better than
 * the last of them (but for the rounding of f32); of equal rows the lower come first, and none of them is left out. */
static void check_hits(const lath_hit *hits, size_t k, const double *score, size_t n)
{
    static bool taken[N];
    memset(taken, 0, sizeof(taken));
    for (size_t r = 0; r < k; r++) {
        const lath_hit *h = &hits[r];
        assert_true(h->row < n && !taken[h->row]);
        taken[h->row] = true;
        assert_true(fabs((double)h->score - score[h->row]) < EPS);
        if (r > 0 && !(h[-1].score > h->score || (h[-1].score == h->score && h[-1].row < h->row)))
            fail_msg("hit %zu is out of order", r);
    }
    for (size_t i = 0; i < n; i++) {
        if (taken[i]) continue;
        assert_true(score[i] < (double)hits[k - 1].score + EPS);
        for (size_t r = 0; r < k && k <= 10; r++) assert_false(i < hits[r].row && same_row(i, hits[r].row));
    }
}

static void check_search(const lath_index *x, size_t n, const float *queries, size_t n_q, size_t k)
{
    static lath_hit hits[Q * N];
    static double score[N];
    assert_ok(lath_index_search(x, queries, n_q, k, hits, &err), err);
    if (k > n) k = n;
    for (size_t q = 0; q < n_q; q++) {
        for (size_t i = 0; i < n; i++) {
            score[i] = 0;
            for (size_t d = 0; d < D; d++) score[i] += (double)queries[q * D + d] * (double)rows[i * D + d];
        }
        check_hits(hits + q * k, k, score, n);
    }
}

static void test_search(void **state)
{
    static const float raw[Q * D] = {1, 2, -1, 0, 3, 0, 0, 0, 0, 1, -1, -1, -1, -1, -1};
    static const size_t sizes[] = {1, 2, 100, 16384, 16385, N}, ks[] = {1, 2, 10, 1000};
    float queries[Q * D];
    (void)state;
    for (int q = 0; q < Q; q++) unit(raw + q * D, queries + q * D);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        write_index(sizes[i], i % 2 ? 777 : sizes[i]);
        for (int load = LATH_LOAD_MAP; load <= LATH_LOAD_COPY; load++) {
            lath_index *x = NULL;
            lath_index_info info = {.struct_size = sizeof(info)};
            lath_span s;
            assert_ok(lath_index_open(rt, path, (lath_load)load, &x, &err), err);
            assert_ok(lath_index_get_info(x, &info, &err), err);
            assert_int_equal(info.n, sizes[i]);
            assert_int_equal(info.d, D);
            assert_memory_equal(&info.key, &key, sizeof(key));
            struct stat st;
            assert_int_equal(stat(path, &st), 0);
            assert_int_equal(info.file_bytes, st.st_size);
            assert_ok(lath_index_get_span(x, sizes[i] - 1, &s, &err), err);
            assert_int_equal(s.offset, (sizes[i] - 1) * 20);
            assert_int_equal(s.len, 19);
            assert_int_equal(lath_index_get_span(x, sizes[i], &s, &err), LATH_ERR_USAGE);
            assert_int_equal(lath_index_get_span(x, UINT64_MAX, &s, &err), LATH_ERR_USAGE);
            for (size_t k = 0; k < 4; k++) check_search(x, sizes[i], queries, Q, ks[k]);
            check_search(x, sizes[i], queries, 1, N + 5); /* more than there are */
            lath_index_close(x);
        }
    }
    lath_index_close(NULL);
}

static void test_arguments(void **state)
{
    lath_index_writer *w = NULL;
    lath_index *x = NULL;
    lath_hit hit;
    lath_index_info info = {.struct_size = sizeof(info)};
    (void)state;
    assert_int_equal(lath_index_create(NULL, path, &key, D, &w, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_index_create(rt, NULL, &key, D, &w, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_index_create(rt, path, NULL, D, &w, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_index_create(rt, path, &key, D, NULL, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_index_create(rt, path, &key, 0, &w, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_index_create(rt, path, &key, -1, &w, &err), LATH_ERR_USAGE);
    assert_null(w);
    assert_int_equal(lath_index_commit(NULL, &err), LATH_ERR_USAGE);
    lath_index_abort(NULL);
    assert_ok(lath_index_create(rt, path, &key, D, &w, &err), err);
    assert_int_equal(lath_index_add(w, NULL, spans, 1, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_index_add(w, rows, NULL, 1, &err), LATH_ERR_USAGE);
    static const lath_span outside[] = {{1000000, 1}, {999999, 2}, {UINT64_MAX, 1}, {1, UINT64_MAX}};
    for (int i = 0; i < 4; i++) assert_int_equal(lath_index_add(w, rows, &outside[i], 1, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_index_add(NULL, rows, spans, 1, &err), LATH_ERR_USAGE);
    lath_index_abort(w);
    write_index(10, 10);
    assert_int_equal(lath_index_open(NULL, path, LATH_LOAD_MAP, &x, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_index_open(rt, NULL, LATH_LOAD_MAP, &x, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_index_open(rt, path, LATH_LOAD_MAP, NULL, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_index_open(rt, path, (lath_load)5, &x, &err), LATH_ERR_USAGE);
    assert_ok(lath_index_open(rt, path, LATH_LOAD_MAP, &x, &err), err);
    assert_int_equal(lath_index_search(NULL, rows, 1, 1, &hit, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_index_search(x, NULL, 1, 1, &hit, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_index_search(x, rows, 1, 1, NULL, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_index_search(x, rows, 1, 0, &hit, &err), LATH_ERR_USAGE);
    assert_ok(lath_index_search(x, NULL, 0, 1, NULL, &err), err);
    info.struct_size = 1;
    assert_int_equal(lath_index_get_info(x, &info, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_index_get_info(x, NULL, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_index_get_span(x, 0, NULL, &err), LATH_ERR_USAGE);
    assert_null(lath_index_file_at(x, &hit));
    lath_index_close(x);
}

/* An abort leaves the old file; a commit replaces it; neither leaves the temporary one. */
static void test_replace(void **state)
{
    lath_index_writer *w = NULL;
    lath_index *x = NULL;
    lath_index_info info = {.struct_size = sizeof(info)};
    char temp[2 * TMP_PATH];
    (void)state;
    write_index(5, 5);
    assert_ok(lath_index_create(rt, path, &key, D, &w, &err), err);
    snprintf(temp, sizeof(temp), "%s", lath_index_temp_path(w));
    assert_int_equal(access(temp, F_OK), 0);
    assert_ok(lath_index_add(w, rows, spans, 3, &err), err);
    lath_index_abort(w);
    assert_int_not_equal(access(temp, F_OK), 0);
    assert_ok(lath_index_open(rt, path, LATH_LOAD_MAP, &x, &err), err);
    assert_ok(lath_index_get_info(x, &info, &err), err);
    assert_int_equal(info.n, 5);
    write_index(8, 3); /* while the old one is open */
    assert_ok(lath_index_get_info(x, &info, &err), err);
    assert_int_equal(info.n, 5);
    lath_index_close(x);
    assert_ok(lath_index_open(rt, path, LATH_LOAD_MAP, &x, &err), err);
    assert_ok(lath_index_get_info(x, &info, &err), err);
    assert_int_equal(info.n, 8);
    lath_index_close(x);
    char nowhere[TMP_PATH];
    tmp_join(nowhere, dir, "no/such/folder.lvi");
    lath_status st = lath_index_create(rt, nowhere, &key, D, &w, &err);
    assert_true(st == LATH_ERR_IO || st == LATH_ERR_NOT_FOUND);
    assert_non_null(strstr(err.msg, "folder.lvi"));
}

/* One bit anywhere, and every length but the whole. */
static void test_damaged(void **state)
{
    size_t size;
    (void)state;
    write_index(7, 7);
    char *bytes = tmp_read(dir, "corpus.lvi", &size);
    for (size_t i = 0; i < size; i++) {
        lath_index *x = NULL;
        bytes[i] ^= (char)(1 << i % 8);
        tmp_write_bytes(dir, "bad.lvi", bytes, size);
        bytes[i] ^= (char)(1 << i % 8);
        char bad[TMP_PATH];
        tmp_join(bad, dir, "bad.lvi");
        lath_status st = lath_index_open(rt, bad, i % 2 ? LATH_LOAD_MAP : LATH_LOAD_COPY, &x, &err);
        if (st == LATH_OK) { /* in rows or entries: refused when they are used */
            lath_hit hits[7];
            lath_span span;
            lath_error first;
            assert_true(i >= 256);
            st = lath_index_search(x, rows, 1, 7, hits, &err);
            if (st == LATH_OK) st = lath_index_get_span(x, 3, &span, &err);
            assert_int_equal(lath_index_verify(x, &first), st);
            assert_string_equal(first.msg, err.msg);
        } else {
            assert_null(x);
        }
        if (st != LATH_ERR_FORMAT && st != LATH_ERR_UNSUPPORTED) fail_msg("byte %zu: status %d", i, (int)st);
        assert_non_null(strstr(err.msg, "bad.lvi"));
        lath_index_close(x);
    }
    for (size_t n = 0; n < size; n += n < 260 ? 1 : 13) {
        lath_index *x = NULL;
        char bad[TMP_PATH];
        tmp_join(bad, dir, "bad.lvi");
        tmp_write_bytes(dir, "bad.lvi", bytes, n);
        assert_int_equal(lath_index_open(rt, bad, LATH_LOAD_MAP, &x, &err), LATH_ERR_FORMAT);
    }
    lath_index *x = NULL;
    char none[TMP_PATH];
    tmp_join(none, dir, "none.lvi");
    assert_int_equal(lath_index_open(rt, none, LATH_LOAD_MAP, &x, &err), LATH_ERR_NOT_FOUND);
    free(bytes);
}

/* No rows at all is an index; NaN scores come last. */
static void test_odd(void **state)
{
    lath_index *x = NULL;
    lath_hit hits[4];
    lath_index_writer *w = NULL;
    (void)state;
    write_index(0, 1);
    assert_ok(lath_index_open(rt, path, LATH_LOAD_MAP, &x, &err), err);
    assert_ok(lath_index_search(x, rows, 1, 5, hits, &err), err);
    lath_index_close(x);
    const float few[] = {NAN, NAN, 0.6f, 0.8f, 0, 1, 0.8f, 0.6f};
    const float up[] = {0, 1};
    assert_ok(lath_index_create(rt, path, &key, 2, &w, &err), err);
    assert_ok(lath_index_add(w, few, spans, 4, &err), err);
    assert_ok(lath_index_commit(w, &err), err);
    assert_ok(lath_index_open(rt, path, LATH_LOAD_MAP, &x, &err), err);
    assert_ok(lath_index_search(x, up, 1, 4, hits, &err), err);
    static const uint64_t want[] = {2, 1, 3, 0};
    for (int i = 0; i < 4; i++) assert_int_equal(hits[i].row, want[i]);
    lath_index_close(x);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search),  cmocka_unit_test(test_arguments), cmocka_unit_test(test_replace),
        cmocka_unit_test(test_damaged), cmocka_unit_test(test_odd),
    };
    return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
