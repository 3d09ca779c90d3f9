/* SPDX-License-Identifier: Apache-2.0
 *
 * test_f32_text.c: the fast float printer against the C library: for every number it takes, the text is the shortest of
 * %.6g to %.9g that strtof reads back as the same float.
 */
#include "base/f32_text.h"

#include <math.h>

#include "support/test.h"

static void by_printf(float v, char *out, size_t size)
{
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(out, size, "%.*g", digits, (double)v);
        if (strtof(out, NULL) == v) return;
    }
}

/* 1 when it was taken. */
static int check(float v)
{
    char want[48], got[F32_TEXT_BYTES + 1];
    const size_t n = f32_text(v, got);
    if (n == 0) return 0;
    if (n > F32_TEXT_BYTES) fail_msg("%zu bytes", n);
    got[n] = 0;
    by_printf(v, want, sizeof(want));
    if (strcmp(want, got) != 0) fail_msg("%a: \"%s\", want \"%s\"", (double)v, got, want);
    return 1;
}

static float of_bits(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

static void test_random_bits(void **state)
{
    uint32_t seed = 7;
    (void)state;
    for (int i = 0; i < 400000; i++) {
        seed = seed * 1664525u + 1013904223u;
        check(of_bits(seed ^ seed >> 16));
    }
}

/* Exponents of the range it is for: nearly all have to be taken. */
static void test_range(void **state)
{
    uint32_t seed = 9;
    int taken = 0, all = 0;
    (void)state;
    for (int i = 0; i < 400000; i++) {
        seed = seed * 1664525u + 1013904223u;
        const float v = of_bits((seed & 0x807FFFFFu) | (114u + seed % 32u) << 23); /* 2^-13 .. 2^18 */
        all++;
        taken += check(v);
    }
    if (taken < all / 1000 * 999) fail_msg("%d of %d taken", taken, all);
}

static void test_borders(void **state)
{
    static const float centres[] = {1e-4f, 1e-3f, 1e-2f, 0.1f,  1,      10,        100,         1e3f,   1e4f,
                                    1e5f,  1e6f,  0.5f,  0.25f, 123456, 999999.5f, 0.99999994f, 8388608};
    (void)state;
    for (size_t i = 0; i < sizeof(centres) / sizeof(centres[0]); i++) {
        uint32_t bits;
        memcpy(&bits, &centres[i], sizeof(bits));
        for (uint32_t k = 0; k < 2000; k++) {
            check(of_bits(bits - 1000 + k));
            check(-of_bits(bits - 1000 + k));
        }
    }
    assert_int_equal(check(1), 1);
    assert_int_equal(check(-0.5f), 1);
    assert_int_equal(check(100000), 1);
}

/* Every float that is a short decimal: the ties and middles lie here. */
static void test_short_decimals(void **state)
{
    (void)state;
    for (int scale = 1; scale <= 100000000; scale *= 10) {
        for (int m = 1; m < 20000; m++) check((float)m / (float)scale);
    }
    for (int i = 1; i < 1 << 20; i += 3) check((float)i / 1048576);
}

static void test_refused(void **state)
{
    static const float others[] = {0, -0.0f, 9e-5f, 1e6f, -1e30f, 1e-45f, INFINITY, -INFINITY, NAN};
    char out[F32_TEXT_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) assert_int_equal(f32_text(others[i], out), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_bits),    cmocka_unit_test(test_range),   cmocka_unit_test(test_borders),
        cmocka_unit_test(test_short_decimals), cmocka_unit_test(test_refused),
    };
    return TEST_RUN(tests);
}
