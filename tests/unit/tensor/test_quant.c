/* SPDX-License-Identifier: Apache-2.0
 *
 * test_quant.c: every GGUF element type against what the `gguf` package makes of the same blocks, bit for bit
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

static void compare(quant_type t, const uint8_t *want, const float *got, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float w;
        memcpy(&w, want + 4 * i, sizeof(w));
        if (memcmp(&w, &got[i], sizeof(w)) != 0 && !(w != w && got[i] != got[i]))
            fail_msg("%s: number %zu: %a, want %a", quant_name(t), i, (double)got[i], (double)w);
    }
}

static void test_blocks(void **state)
{
    (void)state;
    static uint8_t file[FILE_MAX], odd[4096];
    static float got[4096];
    bool seen[QUANT_COUNT] = {false};
    const size_t n = load(file);
    size_t at = 0;
    while (at < n) {
        uint32_t head[4];
        quant_type t;
        memcpy(head, file + at, sizeof(head));
        at += sizeof(head);
        assert_true(quant_find(head[0], &t));
        seen[t] = true;
        assert_int_equal(quant_bytes(t), head[2]);
        assert_int_equal(quant_numbers(t), head[3]);
        const size_t raw = (size_t)head[1] * head[2], numbers = (size_t)head[1] * head[3];
        assert_true(raw < sizeof(odd) && numbers <= 4096 && at + raw + 4 * numbers <= n);
        memcpy(odd + 1, file + at, raw);
        quant_decode(t, odd + 1, head[1], got);
        compare(t, file + at + raw, got, numbers);
        at += raw + 4 * numbers;
    }
    for (int t = 0; t < QUANT_COUNT; t++) {
        if (!seen[t]) fail_msg("%s: not in the file", quant_name((quant_type)t));
    }
}

static void test_rows(void **state)
{
    (void)state;
    size_t bytes = 0;
    quant_type t;
    assert_true(quant_row_bytes(QUANT_Q4_K, 512, &bytes));
    assert_int_equal(bytes, 288);
    assert_false(quant_row_bytes(QUANT_Q4_K, 511, &bytes));
    assert_false(quant_row_bytes(QUANT_F32, UINT64_MAX / 2, &bytes));
    assert_false(quant_find(4, &t)); /* a type that GGUF gave up */
    assert_false(quant_find(UINT32_MAX, &t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks), cmocka_unit_test(test_rows)};
    return TEST_RUN(tests);
}
