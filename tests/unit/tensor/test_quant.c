/* SPDX-License-Identifier: Apache-2.0
 *
 * test_quant.c: every block type of GGUF (and its floats) against what the `gguf` package makes of the same blocks, bit for bit
 * (quant/blocks.bin by tools/ref/make_quant_goldens.py), at an odd address; NaN of any bits equals NaN.
 */
#include "support/test.h"
#include "tensor/quant.h"

enum { FILE_MAX = 1 << 20 };

static size_t load(uint8_t *data)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/unit/tensor/quant/blocks.bin", test_data_dir());
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(data, 1, FILE_MAX, f);
    fclose(f);
    return n;
}

static void compare(dtype t, const uint8_t *want, const float *got, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float w;
        memcpy(&w, want + 4 * i, sizeof(w));
        if (memcmp(&w, &got[i], sizeof(w)) != 0 && !(w != w && got[i] != got[i]))
            fail_msg("%s: number %zu: %a, want %a", dtype_name(t), i, (double)got[i], (double)w);
    }
}

static void test_blocks(void **state)
{
    (void)state;
    static uint8_t file[FILE_MAX], odd[4096];
    static float got[4096];
    bool seen[DTYPE_COUNT] = {false};
    const size_t n = load(file);
    size_t at = 0;
    while (at < n) {
        uint32_t head[4];
        dtype t;
        memcpy(head, file + at, sizeof(head));
        at += sizeof(head);
        assert_true(dtype_of_gguf(head[0], &t));
        seen[t] = true;
        assert_int_equal(dtype_block_bytes(t), head[2]);
        assert_int_equal(dtype_block_numbers(t), head[3]);
        const size_t raw = (size_t)head[1] * head[2], numbers = (size_t)head[1] * head[3];
        assert_true(raw < sizeof(odd) && numbers <= 4096 && at + raw + 4 * numbers <= n);
        memcpy(odd + 1, file + at, raw);
        dtype_to_f32(t, odd + 1, numbers, got);
        compare(t, file + at + raw, got, numbers);
        at += raw + 4 * numbers;
    }
    for (int t = 0; t < DTYPE_COUNT; t++) {
        if (dtype_is_block((dtype)t) && !seen[t]) fail_msg("%s: not in the file", dtype_name((dtype)t));
    }
}

static void test_rows(void **state)
{
    (void)state;
    size_t bytes = 0;
    dtype t;
    assert_true(dtype_row_bytes(DTYPE_Q4_K, 512, &bytes));
    assert_int_equal(bytes, 288);
    assert_false(dtype_row_bytes(DTYPE_Q4_K, 511, &bytes));
    assert_false(dtype_row_bytes(DTYPE_F32, UINT64_MAX / 2, &bytes));
    assert_false(dtype_of_gguf(4, &t)); /* a type that GGUF gave up */
    assert_false(dtype_of_gguf(UINT32_MAX, &t));
    assert_int_equal(dtype_bytes(DTYPE_Q6_K, 1024), 840);
    for (int i = 0; i < DTYPE_COUNT; i++) { /* no id is taken twice */
        for (uint32_t id = 0; id < 64; id++)
            if (dtype_of_gguf(id, &t) && (int)t == i) assert_int_equal(dtype_is_weight(t), id < 24 || id > 28);
    }
}

static void put_half(uint8_t *p, uint16_t bits)
{
    p[0] = (uint8_t)bits;
    p[1] = (uint8_t)(bits >> 8);
}

/* Each scale of a block set to infinity or NaN is found; the largest finite one is not, and no number of it overflows. */
static void test_scales(void **state)
{
    (void)state;
    static const struct {
        dtype t;
        int at[2];
    } halves[] = {{DTYPE_Q4_0, {0, -1}}, {DTYPE_Q4_1, {0, 2}},    {DTYPE_Q5_0, {0, -1}},   {DTYPE_Q5_1, {0, 2}},
                  {DTYPE_Q8_0, {0, -1}}, {DTYPE_Q2_K, {80, 82}},  {DTYPE_Q3_K, {108, -1}}, {DTYPE_Q4_K, {0, 2}},
                  {DTYPE_Q5_K, {0, 2}},  {DTYPE_Q6_K, {208, -1}}, {DTYPE_IQ4_NL, {0, -1}}, {DTYPE_IQ4_XS, {0, -1}}};
    uint8_t b[3 * 292];
    float y[3 * 256];
    for (size_t i = 0; i < sizeof(halves) / sizeof(halves[0]); i++) {
        const dtype t = halves[i].t;
        const size_t bytes = dtype_block_bytes(t);
        memset(b, 0xff, sizeof(b));
        for (int s = 0; s < 2 && halves[i].at[s] >= 0; s++)
            for (int k = 0; k < 3; k++) put_half(b + (size_t)k * bytes + halves[i].at[s], 0x7bff);
        assert_int_equal(quant_first_nonfinite(t, b, 3), -1);
        quant_decode(t, b, 3, y);
        for (size_t k = 0; k < 3 * dtype_block_numbers(t); k++) assert_true(y[k] - y[k] == 0.0f);
        for (int s = 1; s >= 0; s--) {
            if (halves[i].at[s] < 0) continue;
            put_half(b + (s + 1) * (int)bytes + halves[i].at[s], s ? 0x7c00 : 0xfe01);
            assert_int_equal(quant_first_nonfinite(t, b, 3), s + 1);
        }
    }
    memset(b, 0, sizeof(b));
    memset(b + 292, 0xff, 4);
    assert_int_equal(quant_first_nonfinite(DTYPE_Q8_K, b, 3), 1);
    memcpy(b + 292, &(float){3e36f}, 4); /* finite, but not 128 times that */
    assert_int_equal(quant_first_nonfinite(DTYPE_Q8_K, b, 3), 1);
    memcpy(b + 292, &(float){2.6e36f}, 4);
    assert_int_equal(quant_first_nonfinite(DTYPE_Q8_K, b, 3), -1);
    b[34] = 252;
    assert_int_equal(quant_first_nonfinite(DTYPE_MXFP4, b, 3), -1);
    b[34] = 253;
    assert_int_equal(quant_first_nonfinite(DTYPE_MXFP4, b, 3), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks), cmocka_unit_test(test_rows),
                                       cmocka_unit_test(test_scales)};
    return TEST_RUN(tests);
}
