/* SPDX-License-Identifier: Apache-2.0
 * test_map.c: 100,000 keys, keys that are prefixes of each other or differ in one byte, keys with zero bytes,
 * growth, and what add and set promise. */
#include "base/map.h"

#include "support/test.h"

enum { N = 100000, KEY = 24 };

static lath_error err;

static void test_empty(void **state)
{
    map m;
    uint64_t v = 5;
    (void)state;
    map_init(&m, alloc_default());
    assert_false(map_find(&m, "a", 1, &v));
    assert_int_equal(v, 5);
    assert_int_equal(m.count, 0);
    map_deinit(&m);
    map_deinit(&m); /* twice is harmless */
    assert_false(map_find(&m, "a", 1, NULL));
}

static void test_add_set(void **state)
{
    map m;
    bool existed = true;
    uint64_t v = 0;
    (void)state;
    map_init(&m, alloc_default());
    assert_ok(map_add(&m, "key", 3, 1, &existed, &err), err);
    assert_false(existed);
    assert_ok(map_add(&m, "key", 3, 2, &existed, &err), err);
    assert_true(existed);
    assert_true(map_find(&m, "key", 3, &v));
    assert_int_equal(v, 1); /* add changes nothing */
    assert_ok(map_set(&m, "key", 3, 3, &err), err);
    assert_true(map_find(&m, "key", 3, &v));
    assert_int_equal(v, 3);
    assert_int_equal(m.count, 1);
    assert_ok(map_set(&m, "", 0, 9, &err), err);
    assert_true(map_find(&m, "", 0, &v));
    assert_int_equal(v, 9);
    assert_ok(map_add(&m, "k\0", 2, UINT64_MAX, NULL, &err), err);
    assert_ok(map_add(&m, "k\0a", 3, 8, NULL, &err), err);
    assert_ok(map_add(&m, "k", 1, 7, NULL, &err), err);
    assert_true(map_find(&m, "k\0", 2, &v) && v == UINT64_MAX);
    assert_true(map_find(&m, "k\0a", 3, &v) && v == 8);
    assert_true(map_find(&m, "k", 1, &v) && v == 7);
    assert_false(map_find(&m, "ke", 2, NULL));
    assert_false(map_find(&m, "keyy", 4, NULL));
    assert_int_equal(m.count, 5);
    map_deinit(&m);
}

static void test_many(void **state)
{
    map m;
    uint64_t v;
    bool existed;
    (void)state;
    char(*keys)[KEY] = malloc((size_t)N * KEY);
    assert_non_null(keys);
    map_init(&m, alloc_default());
    for (int i = 0; i < N; i++) snprintf(keys[i], KEY, "encoder.layer.%d", i);
    for (int i = 0; i < N; i++) {
        assert_ok(map_add(&m, keys[i], strlen(keys[i]), (uint64_t)i * 3, &existed, &err), err);
        assert_false(existed);
    }
    assert_int_equal(m.count, N);
    assert_true(m.n_slots >= 2 * N && (m.n_slots & (m.n_slots - 1)) == 0);
    for (int i = 0; i < N; i++) {
        char other[KEY]; /* another address with the same bytes */
        snprintf(other, KEY, "encoder.layer.%d", i);
        assert_true(map_find(&m, other, strlen(other), &v));
        assert_int_equal(v, i * 3);
        assert_false(map_find(&m, other, strlen(other) + 1, NULL));
    }
    for (int i = N; i < 2 * N; i++) {
        char other[KEY];
        snprintf(other, KEY, "encoder.layer.%d", i);
        assert_false(map_find(&m, other, strlen(other), NULL));
    }
    for (int i = 0; i < N; i++) {
        assert_ok(map_add(&m, keys[i], strlen(keys[i]), 1, &existed, &err), err);
        assert_true(existed);
    }
    assert_int_equal(m.count, N);
    map_deinit(&m);
    free(keys);
}

/* Every prefix of one long run of equal bytes, and long keys that differ in their last byte only. */
static void test_prefixes(void **state)
{
    enum { LONG = 3000 };
    static char run[LONG + 1], tails[256][512];
    map m;
    uint64_t v;
    (void)state;
    memset(run, 'a', LONG);
    map_init(&m, alloc_default());
    for (size_t n = 0; n <= LONG; n++) assert_ok(map_add(&m, run, n, n, NULL, &err), err);
    for (int i = 0; i < 256; i++) {
        memset(tails[i], 'a', sizeof(tails[i]) - 1);
        tails[i][sizeof(tails[i]) - 1] = (char)i;
        assert_ok(map_set(&m, tails[i], sizeof(tails[i]), 100000 + (uint64_t)i, &err), err);
    }
    for (size_t n = 0; n <= LONG; n++) {
        assert_true(map_find(&m, run, n, &v));
        assert_int_equal(v, n == sizeof(tails[0]) ? 100000 + 'a' : n);
    }
    for (int i = 0; i < 256; i++) {
        assert_true(map_find(&m, tails[i], sizeof(tails[i]), &v));
        assert_int_equal(v, 100000 + i);
    }
    assert_int_equal(m.count, LONG + 1 + 255);
    map_deinit(&m);
}

static void test_reserve(void **state)
{
    map m;
    (void)state;
    char keys[1000][8];
    map_init(&m, alloc_default());
    assert_ok(map_reserve(&m, 1000, &err), err);
    size_t slots = m.n_slots;
    const map_slot *at = m.slots;
    for (int i = 0; i < 1000; i++) {
        snprintf(keys[i], sizeof(keys[i]), "%d", i);
        assert_ok(map_add(&m, keys[i], strlen(keys[i]), 1, NULL, &err), err);
    }
    assert_int_equal(m.n_slots, slots); /* nothing moved */
    assert_ptr_equal(m.slots, at);
    assert_ok(map_reserve(&m, 10, &err), err);
    assert_int_equal(m.n_slots, slots);
    assert_int_equal(map_reserve(&m, SIZE_MAX / 2 + 1, &err), LATH_ERR_NOMEM);
    assert_true(map_find(&m, "999", 3, NULL));
    map_deinit(&m);
}

static void *refuse(void *ctx, size_t size, size_t align)
{
    int *left = ctx;
    return (*left)-- > 0 ? alloc_default()->alloc(NULL, size, align) : NULL;
}

static void test_no_memory(void **state)
{
    int left = 1;
    lath_allocator a = *alloc_default();
    map m;
    char keys[100][4];
    int added = 0;
    (void)state;
    a.ctx = &left;
    a.alloc = refuse;
    map_init(&m, &a);
    lath_status st = LATH_OK;
    for (int i = 0; i < 100 && st == LATH_OK; i++) {
        snprintf(keys[i], sizeof(keys[i]), "%d", i);
        st = map_add(&m, keys[i], strlen(keys[i]), (uint64_t)i, NULL, &err);
        added += st == LATH_OK;
    }
    assert_int_equal(st, LATH_ERR_NOMEM);
    assert_true(added >= 8 && added < 100);
    for (int i = 0; i < added; i++) assert_true(map_find(&m, keys[i], strlen(keys[i]), NULL)); /* as it was */
    assert_false(map_find(&m, keys[added], strlen(keys[added]), NULL));
    assert_int_equal(m.count, added);
    map_deinit(&m);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),    cmocka_unit_test(test_add_set), cmocka_unit_test(test_many),
        cmocka_unit_test(test_prefixes), cmocka_unit_test(test_reserve), cmocka_unit_test(test_no_memory),
    };
    return TEST_RUN(tests);
}
