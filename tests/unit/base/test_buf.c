/* SPDX-License-Identifier: Apache-2.0
 * test_buf.c: a growable buffer: appends of every kind, the ceiling, failure that sticks until the buffer is
 * cleared, out of memory. */
#include "base/buf.h"

#include "support/test.h"

static lath_error err;

static void test_append(void **state)
{
    buf b;
    (void)state;
    buf_init(&b, alloc_default(), 1 << 20);
    assert_string_equal(buf_cstr(&b), "");
    buf_append(&b, NULL, 0);
    buf_append(&b, "a\0b", 3);
    buf_str(&b, "cd");
    buf_str(&b, "");
    buf_char(&b, 'e');
    buf_printf(&b, "%d-%s", 42, "f");
    assert_int_equal(b.len, 10);
    assert_memory_equal(buf_cstr(&b), "a\0bcde42-f", 11);
    assert_int_equal(b.len, 10); /* the 0 is not counted */
    buf_char(&b, 'g');
    assert_memory_equal(buf_cstr(&b), "a\0bcde42-fg", 12);
    assert_ok(buf_status(&b, &err), err);
    char *cap = b.data;
    buf_clear(&b);
    assert_int_equal(b.len, 0);
    assert_string_equal(buf_cstr(&b), "");
    assert_ptr_equal(b.data, cap); /* keeps its memory */
    buf_deinit(&b);
    buf_deinit(&b); /* twice is harmless */
}

static void test_growth(void **state)
{
    enum { N = 300000 };
    buf b;
    (void)state;
    buf_init(&b, alloc_default(), SIZE_MAX / 2);
    for (int i = 0; i < N; i++) {
        if (i % 3 == 0)
            buf_char(&b, (char)i);
        else
            buf_append(&b, &(char){(char)i}, 1);
    }
    assert_int_equal(b.len, N);
    for (int i = 0; i < N; i++) assert_int_equal(b.data[i], (char)i);
    assert_true(b.cap >= N && b.cap <= 4 * N);
    buf_clear(&b);
    buf_printf(&b, "%0*d", 5000, 7); /* longer than what is there or not: one call */
    assert_int_equal(b.len, 5000);
    assert_int_equal(b.data[4999], '7');
    buf_deinit(&b);
}

static void test_reserve(void **state)
{
    buf b;
    (void)state;
    buf_init(&b, alloc_default(), 1000);
    buf_str(&b, "ab");
    char *p = buf_reserve(&b, 500);
    assert_ptr_equal(p, b.data + 2);
    assert_int_equal(b.len, 2);
    memset(p, 'x', 500);
    b.len += 500;
    assert_int_equal(buf_cstr(&b)[501], 'x');
    assert_non_null(buf_reserve(&b, 0));
    assert_null(buf_reserve(&b, 499));
    assert_int_equal(buf_status(&b, &err), LATH_ERR_LIMIT);
    buf_deinit(&b);
}

/* Exactly the ceiling fits; one more does not, whichever way it comes, and nothing comes in afterwards. */
static void test_ceiling(void **state)
{
    static const size_t ceilings[] = {1, 2, 10, 255, 256, 257, 300, 1000};
    (void)state;
    for (size_t i = 0; i < sizeof(ceilings) / sizeof(ceilings[0]); i++) {
        size_t ceiling = ceilings[i];
        for (int way = 0; way < 4; way++) {
            buf b;
            buf_init(&b, alloc_default(), ceiling);
            for (size_t k = 0; k < ceiling; k++) buf_char(&b, 'x');
            assert_ok(buf_status(&b, &err), err);
            assert_int_equal(b.len, ceiling);
            assert_true(b.cap <= ceiling);
            if (way == 0) buf_char(&b, 'y');
            if (way == 1) buf_str(&b, "yy");
            if (way == 2) buf_printf(&b, "%s", "y");
            if (way == 3) buf_append(&b, &b, SIZE_MAX); /* the sum overflows */
            assert_true(b.failed && b.over);
            assert_int_equal(b.len, ceiling);
            assert_int_equal(buf_status(&b, &err), LATH_ERR_LIMIT);
            char want[64];
            snprintf(want, sizeof(want), "more than %zu bytes", ceiling);
            assert_string_equal(err.msg, want);
            b.len = 0; /* there would be room, but failure sticks */
            buf_char(&b, 'z');
            buf_printf(&b, "z");
            assert_int_equal(b.len, 0);
            assert_null(buf_reserve(&b, 0));
            assert_string_equal(buf_cstr(&b), "");
            assert_int_equal(buf_status(&b, NULL), LATH_ERR_LIMIT);
            buf_clear(&b);
            buf_char(&b, 'z');
            assert_ok(buf_status(&b, &err), err);
            assert_int_equal(b.len, 1);
            buf_deinit(&b);
        }
    }
}

static void *none(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    (void)size;
    (void)align;
    return NULL;
}

static void *no_more(void *ctx, void *p, size_t old_size, size_t size, size_t align)
{
    (void)ctx;
    (void)p;
    (void)old_size;
    (void)size;
    (void)align;
    return NULL;
}

static void test_no_memory(void **state)
{
    lath_allocator a = *alloc_default();
    buf b;
    (void)state;
    a.resize = no_more;
    buf_init(&b, &a, 1 << 20);
    buf_str(&b, "short");
    for (int i = 0; i < 1000; i++) buf_char(&b, 'x');
    assert_true(b.failed && !b.over);
    assert_memory_equal(b.data, "shortx", 6); /* what was there stays */
    assert_int_equal(buf_status(&b, &err), LATH_ERR_NOMEM);
    buf_deinit(&b);
    a.alloc = none;
    buf_init(&b, &a, 1 << 20);
    buf_printf(&b, "%d", 1);
    assert_int_equal(buf_status(&b, &err), LATH_ERR_NOMEM);
    assert_string_equal(buf_cstr(&b), "");
    buf_deinit(&b);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append),  cmocka_unit_test(test_growth),    cmocka_unit_test(test_reserve),
        cmocka_unit_test(test_ceiling), cmocka_unit_test(test_no_memory),
    };
    return TEST_RUN(tests);
}
