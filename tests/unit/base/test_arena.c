/* SPDX-License-Identifier: Apache-2.0
 * test_arena.c: alignment, zeroing, addresses that stay, requests larger than a chunk, reset that keeps the largest
 * chunk, the count of bytes taken, overflow, out of memory. A counting allocator checks that everything taken is
 * given back with its size. */
#include "base/arena.h"

#include "support/test.h"

typedef struct meter {
    size_t out, blocks, most; /* bytes and blocks not yet released; largest request that is granted (0: any) */
} meter;

static void *meter_alloc(void *ctx, size_t size, size_t align)
{
    meter *m = ctx;
    if (size > (m->most ? m->most : SIZE_MAX / 4)) return NULL; /* a sanitizer ends the program at absurd sizes */
    void *p = alloc_default()->alloc(NULL, size, align);
    if (!p) return NULL;
    memset(p, 0xA5, size);
    m->out += size;
    m->blocks++;
    return p;
}

static void meter_release(void *ctx, void *p, size_t size)
{
    meter *m = ctx;
    m->out -= size;
    m->blocks--;
    alloc_default()->release(NULL, p, size);
}

static meter m;
static lath_allocator alloc;
static arena a;

static int setup(void **state)
{
    (void)state;
    m = (meter){0};
    alloc = (lath_allocator){&m, meter_alloc, NULL, meter_release};
    arena_init(&a, &alloc);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_deinit(&a);
    return m.out == 0 && m.blocks == 0 && a.total == 0 ? 0 : -1;
}

static void test_align(void **state)
{
    (void)state;
    for (size_t align = 1; align <= 64; align *= 2) {
        for (size_t size = 0; size < 200; size++) {
            unsigned char *p = arena_bytes(&a, size, align);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p % align, 0);
            memset(p, 1, size);
            p = arena_zero(&a, size);
            assert_int_equal((uintptr_t)p % 16, 0);
            for (size_t i = 0; i < size; i++) assert_int_equal(p[i], 0);
            memset(p, 2, size);
        }
    }
    assert_int_equal(a.total, m.out);
}

/* Blocks do not overlap and stay what they were while others come. */
static void test_addresses(void **state)
{
    enum { N = 20000 };
    static unsigned char *p[N];
    static size_t size[N];
    uint32_t x = 1;
    (void)state;
    for (size_t i = 0; i < N; i++) {
        x = x * 1664525u + 1013904223u;
        size[i] = i % 997 == 0 ? 100000 : x >> 24;
        p[i] = arena_bytes(&a, size[i], (size_t)1 << (x >> 8) % 7);
        assert_non_null(p[i]);
        memset(p[i], (int)(i & 255), size[i]);
    }
    for (size_t i = 0; i < N; i++) {
        for (size_t k = 0; k < size[i]; k++) assert_int_equal(p[i][k], i & 255);
    }
    assert_int_equal(a.total, m.out);
    assert_true(m.blocks < 60); /* chunks grow */
}

static void test_large(void **state)
{
    (void)state;
    assert_non_null(arena_bytes(&a, 10, 1));
    char *big = arena_bytes(&a, 9u << 20, 64); /* over the largest usual chunk */
    assert_non_null(big);
    assert_int_equal((uintptr_t)big % 64, 0);
    memset(big, 1, 9u << 20);
    size_t before = a.total;
    assert_non_null(arena_bytes(&a, 100, 1)); /* the next chunk is of the usual size again */
    assert_true(a.total - before <= 4u << 20);
    assert_int_equal(a.total, m.out);
}

static void test_reset(void **state)
{
    (void)state;
    arena_reset(&a); /* empty: nothing happens */
    assert_int_equal(m.blocks, 0);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 300; i++) assert_non_null(arena_bytes(&a, 1000, 8));
        assert_non_null(arena_bytes(&a, 8u << 20, 1)); /* the largest is neither first nor last */
        for (int i = 0; i < 10000; i++) assert_non_null(arena_bytes(&a, 1000, 8));
        arena_reset(&a);
        assert_int_equal(m.blocks, 1);
        assert_true(m.out >= 8u << 20 && m.out < 9u << 20);
        assert_int_equal(a.total, m.out);
        assert_non_null(arena_bytes(&a, 8u << 20, 1)); /* fits what was kept */
        assert_int_equal(m.blocks, 1);
        unsigned char *p = arena_zero(&a, 64);
        for (int i = 0; i < 64; i++) assert_int_equal(p[i], 0);
        arena_reset(&a);
    }
    size_t kept = m.out;
    for (int i = 0; i < 100000; i++) { /* scratch that is filled over and over takes nothing more */
        assert_non_null(arena_zero(&a, 5000));
        arena_reset(&a);
    }
    assert_int_equal(m.out, kept);
}

static void test_overflow(void **state)
{
    (void)state;
    assert_null(arena_bytes(&a, SIZE_MAX, 1));
    assert_null(arena_bytes(&a, SIZE_MAX - 64, 64));
    assert_null(arena_zero(&a, SIZE_MAX - 200));
    assert_null(arena_array(&a, SIZE_MAX / 2 + 2, 2));
    assert_null(arena_array(&a, (size_t)1 << 33, (size_t)1 << 31));
    assert_null(arena_strdup(&a, "x", SIZE_MAX));
    assert_non_null(arena_array(&a, 0, 8));
    assert_non_null(arena_array(&a, 3, 8));
}

static void test_no_memory(void **state)
{
    (void)state;
    m.most = 100000;
    char *p = arena_strdup(&a, "kept", 4);
    assert_non_null(p);
    assert_null(arena_bytes(&a, 200000, 1));
    assert_null(arena_array(&a, 300, 1000));
    assert_string_equal(p, "kept");
    assert_non_null(arena_bytes(&a, 1000, 1));
}

static void test_strdup(void **state)
{
    (void)state;
    assert_string_equal(arena_strdup(&a, "hello world", 5), "hello");
    assert_string_equal(arena_strdup(&a, NULL, 0), "");
    const char *p = arena_strdup(&a, "a\0b", 3);
    assert_memory_equal(p, "a\0b", 4);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    static const struct CMUnitTest tests[] = {
        TEST(test_align),    TEST(test_addresses), TEST(test_large),  TEST(test_reset),
        TEST(test_overflow), TEST(test_no_memory), TEST(test_strdup),
    };
    return TEST_RUN(tests);
}
