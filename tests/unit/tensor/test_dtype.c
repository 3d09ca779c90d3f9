/* SPDX-License-Identifier: Apache-2.0
 * test_dtype.c: the type table, half and bfloat16 to f32 over all 65536 bit patterns against IEEE 754's
 * definition (sign * 2^e * fraction), f32 to half around every half, and the 8-bit floats over all codes against what
 * PyTorch makes of them. */
#include <float.h>
#include <math.h>

#include "f8_values.h"
#include "support/test.h"
#include "tensor/tensor.h"

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

/* The value of a 16-bit float of `fraction` fraction bits; NaN apart. */
static double value16(uint16_t h, int fraction, int bias)
{
    const int top = (1 << (15 - fraction)) - 1, e = h >> fraction & top, m = h & ((1 << fraction) - 1);
    const double v = e == top ? (m ? (double)NAN : (double)INFINITY)
                     : e      ? ldexp(m + (1 << fraction), e - bias - fraction)
                              : ldexp(m, 1 - bias - fraction);
    return h & 0x8000 ? -v : v;
}

static void check16(dtype t, int fraction, int bias)
{
    uint16_t all[65536];
    float *bulk = malloc(65536 * sizeof(float));
    unsigned char *odd = malloc(65536 * 2 + 1);
    assert_non_null(bulk);
    assert_non_null(odd);
    for (uint32_t h = 0; h < 65536; h++) all[h] = (uint16_t)h;
    memcpy(odd + 1, all, sizeof(all));
    dtype_to_f32(t, odd + 1, 65536, bulk);
    for (uint32_t h = 0; h < 65536; h++) {
        const double want = value16((uint16_t)h, fraction, bias);
        const float one = t == DTYPE_F16 ? half_to_f32((uint16_t)h) : bf16_to_f32((uint16_t)h);
        assert_int_equal(bits_of(one), bits_of(bulk[h]));
        if (isnan(want)) {
            assert_true(isnan(one));
        } else {
            assert_true((double)one == want); /* exact */
            assert_int_equal(bits_of(one) >> 31, h >> 15);
        }
    }
    free(bulk), free(odd);
}

static void test_half(void **state)
{
    (void)state;
    check16(DTYPE_F16, 10, 15);
    assert_true(half_to_f32(0x3c00) == 1.0f && half_to_f32(0x7bff) == 65504.0f && half_to_f32(0x0001) == 0x1p-24f &&
                half_to_f32(0xc000) == -2.0f);
}

/* Every half comes back; between two neighbours the middle goes to the even one, what lies beside it to the nearer. */
static void test_half_from_f32(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7c00; h++) {
        const double a = value16((uint16_t)h, 10, 15), b = h == 0x7bff ? 65536.0 : value16((uint16_t)(h + 1), 10, 15);
        const float middle = (float)((a + b) / 2); /* exact: 12 bits */
        const uint32_t even = h % 2 ? h + 1 : h;
        for (uint32_t sign = 0; sign <= 0x8000; sign += 0x8000) {
            const float one = sign ? -1.0f : 1.0f;
            assert_int_equal(half_from_f32(one * (float)a), sign | h);
            assert_int_equal(half_from_f32(one * middle), sign | even);
            assert_int_equal(half_from_f32(one * nextafterf(middle, 0.0f)), sign | h);
            assert_int_equal(half_from_f32(one * nextafterf(middle, INFINITY)), sign | (h + 1));
        }
    }
    assert_int_equal(half_from_f32(INFINITY), 0x7c00);
    assert_int_equal(half_from_f32(-FLT_MAX), 0xfc00);
    assert_int_equal(half_from_f32(FLT_TRUE_MIN), 0);
    assert_true(isnan(half_to_f32(half_from_f32(NAN))) && isnan(half_to_f32(half_from_f32(-NAN))));
}

static void test_bf16(void **state)
{
    (void)state;
    check16(DTYPE_BF16, 7, 127);
    assert_true(bf16_to_f32(0x3f80) == 1.0f && bf16_to_f32(0xc049) == -3.140625f && bf16_to_f32(0x0001) == 0x1p-133f);
}

static void check8(dtype t, float (*one)(uint8_t), const uint32_t want[256])
{
    uint8_t all[256];
    float bulk[256];
    for (int c = 0; c < 256; c++) all[c] = (uint8_t)c;
    dtype_to_f32(t, all, 256, bulk);
    for (int c = 0; c < 256; c++) {
        const float v = one((uint8_t)c);
        if (want[c] == F8_NAN ? !isnan(v) : bits_of(v) != want[c])
            fail_msg("%s code %02x: got %08x, want %08x", dtype_name(t), c, bits_of(v), want[c]);
        assert_int_equal(bits_of(bulk[c]), bits_of(v));
    }
}

static void test_f8(void **state)
{
    (void)state;
    check8(DTYPE_F8_E4M3, f8_e4m3_to_f32, f8_e4m3_values);
    check8(DTYPE_F8_E5M2, f8_e5m2_to_f32, f8_e5m2_values);
    assert_true(f8_e4m3_to_f32(0x7e) == 448.0f && f8_e5m2_to_f32(0x7b) == 57344.0f); /* the largest of the standard */
}

static void test_f32_copies_bits(void **state)
{
    (void)state;
    const uint32_t in[4] = {0x7fa00001, 0x80000000, 1, 0x3f800000};
    unsigned char odd[17];
    float out[4];
    memcpy(odd + 1, in, 16);
    dtype_to_f32(DTYPE_F32, odd + 1, 4, out);
    assert_memory_equal(out, in, 16);
    dtype_to_f32(DTYPE_F32, NULL, 0, out); /* nothing of nothing */
}

static void test_table(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        dtype type;
        size_t bytes;
        bool is_float, is_weight;
    } rows[] = {{"F32", DTYPE_F32, 4, true, true},         {"F16", DTYPE_F16, 2, true, true},
                {"BF16", DTYPE_BF16, 2, true, true},       {"F64", DTYPE_F64, 8, true, false},
                {"I64", DTYPE_I64, 8, false, false},       {"I32", DTYPE_I32, 4, false, false},
                {"U8", DTYPE_U8, 1, false, false},         {"BOOL", DTYPE_BOOL, 1, false, false},
                {"I16", DTYPE_I16, 2, false, false},       {"U16", DTYPE_U16, 2, false, false},
                {"F8_E4M3", DTYPE_F8_E4M3, 1, true, true}, {"F8_E5M2", DTYPE_F8_E5M2, 1, true, true}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        dtype t = DTYPE_COUNT;
        assert_true(dtype_parse(rows[i].name, strlen(rows[i].name), &t));
        assert_int_equal(t, rows[i].type);
        assert_string_equal(dtype_name(t), rows[i].name);
        assert_int_equal(dtype_block_bytes(t), rows[i].bytes);
        assert_int_equal(dtype_block_numbers(t), 1);
        assert_int_equal(dtype_is_float(t), rows[i].is_float);
        assert_int_equal(dtype_is_weight(t), rows[i].is_weight);
    }
    dtype t = DTYPE_U8;
    assert_false(dtype_parse("F3", 2, &t));
    assert_false(dtype_parse("F32x", 4, &t));
    assert_false(dtype_parse("f32", 3, &t));
    assert_false(dtype_parse("", 0, &t));
    assert_true(dtype_parse("F32x", 3, &t));  /* the length counts */
    assert_false(dtype_parse("Q4_0", 4, &t)); /* not in safetensors files */
    assert_int_equal(dtype_block_bytes(DTYPE_COUNT), 0);
    assert_int_equal(dtype_block_numbers(DTYPE_COUNT), 1);
    assert_false(dtype_is_weight(DTYPE_COUNT));
    assert_string_equal(dtype_name(DTYPE_COUNT), "?");
}

static void test_shape_text(void **state)
{
    (void)state;
    const int64_t dim[8] = {2, 3, 1000000, 4, 5, 6, 7, INT64_MAX};
    char s[64];
    tensor_shape_text(dim, 0, s, sizeof(s));
    assert_string_equal(s, "[]");
    tensor_shape_text(dim, 3, s, sizeof(s));
    assert_string_equal(s, "[2,3,1000000]");
    tensor_shape_text(dim, 8, s, sizeof(s));
    assert_string_equal(s, "[2,3,1000000,4,5,6,7,9223372036854775807]");
    tensor_shape_text(dim, 3, s, 14); /* just fits */
    assert_string_equal(s, "[2,3,1000000]");
    tensor_shape_text(dim, 3, s, 13);
    assert_string_equal(s, "[2,3...]");
    for (size_t n = 0; n < 50; n++) { /* never past the end, always terminated */
        memset(s, 'x', sizeof(s));
        tensor_shape_text(dim, 8, s, n);
        for (size_t i = n; i < sizeof(s); i++) assert_int_equal(s[i], 'x');
        if (n) assert_true(memchr(s, '\0', n) != NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_half),      cmocka_unit_test(test_half_from_f32),   cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_f8),        cmocka_unit_test(test_f32_copies_bits), cmocka_unit_test(test_table),
        cmocka_unit_test(test_shape_text)};
    return TEST_RUN(tests);
}
