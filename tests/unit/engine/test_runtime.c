/* SPDX-License-Identifier: Apache-2.0
 * test_runtime.c: the runtime's contract: options, threads, ISA, allocator; and the calls that need nothing but it
 * (version, dot products, cosine). */
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "lath/lath.h"
#include "support/test.h"

static lath_error err;

static void test_version(void **state)
{
    char want[32];
    (void)state;
    snprintf(want, sizeof(want), "%d.%d.%d", LATH_VERSION_MAJOR, LATH_VERSION_MINOR, LATH_VERSION_PATCH);
    assert_string_equal(lath_version(), want);
}

static void test_arguments(void **state)
{
    lath_runtime *rt = NULL;
    lath_runtime_options o = LATH_RUNTIME_OPTIONS_INIT;
    (void)state;
    assert_int_equal(lath_runtime_create(NULL, NULL, &err), LATH_ERR_USAGE);
    assert_int_equal(err.status, LATH_ERR_USAGE);
    assert_int_equal(lath_runtime_create(NULL, NULL, NULL), LATH_ERR_USAGE);
    static const size_t sizes[] = {0, 1, sizeof(o) - 1, sizeof(o) + 1, SIZE_MAX};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        o.struct_size = sizes[i];
        assert_int_equal(lath_runtime_create(&o, &rt, &err), LATH_ERR_USAGE);
        assert_non_null(strstr(err.msg, "version"));
    }
    o = (lath_runtime_options)LATH_RUNTIME_OPTIONS_INIT;
    static const int32_t threads[] = {-1, 257, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++) {
        o.n_threads = threads[i];
        assert_int_equal(lath_runtime_create(&o, &rt, &err), LATH_ERR_USAGE);
        char want[64];
        snprintf(want, sizeof(want), "threads: %d, want 0 to 256", threads[i]);
        assert_string_equal(err.msg, want);
    }
    assert_null(rt);
    lath_runtime_destroy(NULL);
}

static void test_threads(void **state)
{
    static const int32_t threads[] = {1, 2, 5, 256};
    (void)state;
    for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++) {
        lath_runtime_options o = LATH_RUNTIME_OPTIONS_INIT;
        lath_runtime *rt = NULL;
        o.n_threads = threads[i];
        assert_ok(lath_runtime_create(&o, &rt, &err), err);
        assert_int_equal(lath_runtime_threads(rt), threads[i]);
        lath_runtime_destroy(rt);
    }
    lath_runtime *a = NULL, *b = NULL; /* several are independent */
    assert_ok(lath_runtime_create(NULL, &a, &err), err);
    assert_ok(lath_runtime_create(NULL, &b, NULL), err);
    assert_true(lath_runtime_threads(a) >= 1);
    lath_runtime_destroy(a);
    assert_true(strlen(lath_runtime_isa(b)) > 0);
    lath_runtime_destroy(b);
}

static void test_isa(void **state)
{
    lath_runtime_options o = LATH_RUNTIME_OPTIONS_INIT;
    lath_runtime *rt = NULL;
    (void)state;
    o.n_threads = 1;
    o.isa = LATH_ISA_REF;
    assert_ok(lath_runtime_create(&o, &rt, &err), err);
    assert_string_equal(lath_runtime_isa(rt), "ref");
    lath_runtime_destroy(rt);
    rt = NULL;
    static const lath_isa none[] = {(lath_isa)-1, (lath_isa)6, (lath_isa)1000};
    for (size_t i = 0; i < 3; i++) {
        o.isa = none[i];
        assert_int_equal(lath_runtime_create(&o, &rt, &err), LATH_ERR_USAGE);
        assert_non_null(strstr(err.msg, "isa: no such value"));
    }
#if defined(__x86_64__)
    o.isa = LATH_ISA_NEON;
#else
    o.isa = LATH_ISA_AVX2;
#endif
    assert_int_equal(lath_runtime_create(&o, &rt, &err), LATH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "isa: "));
    assert_null(rt);
#if defined(__x86_64__)
    for (int isa = LATH_ISA_AVX2; isa <= LATH_ISA_AMX; isa++) { /* a ceiling: what the machine lacks is no error */
        o.isa = (lath_isa)isa;
        assert_ok(lath_runtime_create(&o, &rt, &err), err);
        lath_runtime_destroy(rt);
    }
#endif
}

static atomic_long blocks;

static void *count_alloc(void *ctx, size_t size, size_t align)
{
    assert_ptr_equal(ctx, &blocks);
    atomic_fetch_add(&blocks, 1);
    return alloc_default()->alloc(NULL, size, align);
}

static void count_release(void *ctx, void *p, size_t size)
{
    assert_ptr_equal(ctx, &blocks);
    atomic_fetch_sub(&blocks, 1);
    alloc_default()->release(NULL, p, size);
}

static void test_allocator_is_copied(void **state)
{
    lath_runtime *rt = NULL;
    (void)state;
    lath_allocator a = {&blocks, count_alloc, NULL, count_release};
    lath_runtime_options o = LATH_RUNTIME_OPTIONS_INIT;
    o.n_threads = 2;
    o.allocator = &a;
    assert_ok(lath_runtime_create(&o, &rt, &err), err);
    assert_true(atomic_load(&blocks) > 0);
    memset(&a, 0, sizeof(a));
    memset(&o, 0, sizeof(o));
    lath_runtime_destroy(rt);
    assert_int_equal(atomic_load(&blocks), 0);
}

/* -------------------------------------------------------------------------------------------------------------- dot */

static void test_dot(void **state)
{
    enum { N = 3000, D = 67 };
    static float rows[N * D], q[D], out[N], first[N];
    (void)state;
    uint32_t x = 1;
    for (size_t i = 0; i < N * D; i++) rows[i] = (float)(int32_t)(x = x * 1664525u + 1013904223u) * 0x1p-31f;
    for (size_t i = 0; i < D; i++) q[i] = (float)(int32_t)(x = x * 1664525u + 1013904223u) * 0x1p-31f;
    for (int32_t threads = 1; threads <= 3; threads++) {
        lath_runtime_options o = LATH_RUNTIME_OPTIONS_INIT;
        lath_runtime *rt = NULL;
        o.n_threads = threads;
        assert_ok(lath_runtime_create(&o, &rt, &err), err);
        static const size_t counts[] = {0, 1, 2, 1023, 1024, 1025, N};
        for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
            memset(out, 0x7F, sizeof(out));
            assert_ok(lath_dot_rows(rt, q, rows, counts[c], D, out, &err), err);
            for (size_t i = 0; i < counts[c]; i++) {
                double want = 0;
                for (size_t k = 0; k < D; k++) want += (double)q[k] * (double)rows[i * D + k];
                assert_true(fabs(want - (double)out[i]) < 1e-5);
                assert_true(lath_dot(rt, q, rows + i * D, D) == out[i]);
            }
            for (size_t i = counts[c]; i < N; i++) assert_int_equal(((unsigned char *)&out[i])[0], 0x7F);
        }
        if (threads == 1) memcpy(first, out, sizeof(out));
        assert_memory_equal(first, out, sizeof(out));
        assert_int_equal(lath_dot_rows(NULL, q, rows, 1, D, out, &err), LATH_ERR_USAGE);
        assert_int_equal(lath_dot_rows(rt, NULL, rows, 1, D, out, &err), LATH_ERR_USAGE);
        assert_int_equal(lath_dot_rows(rt, q, NULL, 1, D, out, &err), LATH_ERR_USAGE);
        assert_int_equal(lath_dot_rows(rt, q, rows, 1, D, NULL, &err), LATH_ERR_USAGE);
        assert_int_equal(lath_dot_rows(rt, q, rows, 1, 0, out, &err), LATH_ERR_USAGE);
        assert_int_equal(lath_dot_rows(rt, q, rows, 1, -1, out, NULL), LATH_ERR_USAGE);
        assert_ok(lath_dot_rows(rt, NULL, NULL, 0, D, NULL, &err), err);
        lath_runtime_destroy(rt);
    }
}

static void test_cosine(void **state)
{
    static const float a[] = {3, 4, 0}, b[] = {4, -3, 0}, c[] = {-6, -8, 0}, zero[] = {0, 0, 0},
                       big[] = {1e30f, 1e30f, 0}, e[] = {1, 1, 1};
    (void)state;
    assert_true(lath_cosine(a, a, 3) == 1);
    assert_true(lath_cosine(a, b, 3) == 0);
    assert_true(lath_cosine(a, c, 3) == -1);
    assert_true(lath_cosine(a, zero, 3) == 0);
    assert_true(lath_cosine(zero, zero, 3) == 0);
    assert_true(fabs(lath_cosine(big, a, 3) - 7 / (5 * sqrt(2))) < 1e-12); /* f64: no overflow */
    assert_true(fabs(lath_cosine(a, e, 3) - 7 / (5 * sqrt(3))) < 1e-12);
    assert_true(lath_cosine(a, e, 0) == 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version), cmocka_unit_test(test_arguments),           cmocka_unit_test(test_threads),
        cmocka_unit_test(test_isa),     cmocka_unit_test(test_allocator_is_copied), cmocka_unit_test(test_dot),
        cmocka_unit_test(test_cosine),
    };
    return TEST_RUN(tests);
}
