/* SPDX-License-Identifier: Apache-2.0
 *
 * test_quant_encode.c: encoders against what others make of the same numbers (quant/encoded.bin by tools/ref/make_quant_encode_goldens.py):
 * F16, BF16 and the types of 32 numbers byte for byte with the `gguf` package's quantize; Q4_K and Q6_K with an error no
 * larger than that of ggml's own quantiser, block by block within a tenth. What a type cannot hold is refused.
 */
#include <math.h>

#include "support/test.h"
#include "tensor/quant.h"
#include "tensor/quant_encode.h"

enum { FILE_MAX = 1 << 18 };

static double error_of(dtype t, const float *x, const uint8_t *block)
{
    float y[256];
    double sum = 0;
    quant_decode(t, block, 1, y);
    for (int i = 0; i < 256; i++) sum += ((double)y[i] - (double)x[i]) * ((double)y[i] - (double)x[i]);
    return sqrt(sum);
}

/* Blocks of a type whose scales are searched. */
static void compare_errors(dtype t, const float *x, size_t n, const uint8_t *want, const uint8_t *got)
{
    double ours = 0, theirs = 0;
    for (size_t i = 0; i < n; i++) {
        const double a = error_of(t, x + 256 * i, got + i * dtype_block_bytes(t)),
                     b = error_of(t, x + 256 * i, want + i * dtype_block_bytes(t));
        if (!(a <= b * 1.1)) fail_msg("%s: block %zu: error %g, that of ggml is %g", dtype_name(t), i, a, b);
        ours += a / b;
        theirs += 1;
    }
    printf("%s: error %.4f of ggml's\n", dtype_name(t), ours / theirs);
    assert_true(ours <= theirs * 0.99);
}

static void compare_bytes(dtype t, const uint8_t *want, const uint8_t *got, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (want[i] != got[i])
            fail_msg("%s: block %zu, byte %zu: %02x, want %02x", dtype_name(t), i / dtype_block_bytes(t),
                     i % dtype_block_bytes(t), got[i], want[i]);
    }
}

static void test_blocks(void **state)
{
    (void)state;
    static uint8_t file[FILE_MAX], got[FILE_MAX];
    static float x[FILE_MAX / 4];
    bool seen[DTYPE_COUNT] = {false};
    char path[512];
    snprintf(path, sizeof(path), "%s/unit/tensor/quant/encoded.bin", test_data_dir());
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(file, 1, FILE_MAX, f);
    fclose(f);
    for (size_t at = 0; at < n;) {
        uint32_t head[4];
        dtype t;
        memcpy(head, file + at, sizeof(head));
        at += sizeof(head);
        assert_true(dtype_of_gguf(head[0], &t));
        seen[t] = true;
        const size_t raw = (size_t)head[1] * head[2], numbers = (size_t)head[1] * head[3];
        assert_true(raw < sizeof(got) && at + raw + 4 * numbers <= n);
        memcpy(x, file + at, 4 * numbers);
        assert_true(quant_encode(t, x, head[1], got + 1));
        if (t == DTYPE_Q4_K || t == DTYPE_Q6_K)
            compare_errors(t, x, head[1], file + at + 4 * numbers, got + 1);
        else
            compare_bytes(t, file + at + 4 * numbers, got + 1, raw);
        at += raw + 4 * numbers;
    }
    for (int t = 0; t < DTYPE_COUNT; t++) assert_true(seen[t] == quant_can_encode((dtype)t) || t == DTYPE_F32);
}

/* Blocks that numbers can say exactly come back as they were; zeros and what is under every scale are zeros. */
static void test_exact(void **state)
{
    (void)state;
    float x[256], y[256];
    uint8_t b[1024];
    for (int t = 0; t < DTYPE_COUNT; t++) {
        const dtype type = (dtype)t;
        if (!quant_can_encode(type)) continue;
        const size_t n = 256 / dtype_block_numbers(type);
        for (int tiny = 0; tiny < 2; tiny++) {
            for (int i = 0; i < 256; i++) x[i] = tiny ? (float)(i % 3 - 1) * 1e-42f : 0;
            assert_true(quant_encode(type, x, n, b));
            dtype_to_f32(type, b, 256, y);
            for (int i = 0; i < 256; i++) assert_true(fabsf(y[i]) <= 2e-42f);
        }
    }
    for (int i = 0; i < 256; i++) x[i] = (float)(i % 15) * 0.5f - 3;
    assert_true(quant_encode(DTYPE_Q4_K, x, 1, b));
    quant_decode(DTYPE_Q4_K, b, 1, y);
    for (int i = 0; i < 256; i++) assert_true(fabsf(x[i] - y[i]) < 0.02f);
    for (int i = 0; i < 256; i++) x[i] = (float)(i % 64) * 0.25f - 8;
    assert_true(quant_encode(DTYPE_Q6_K, x, 1, b));
    quant_decode(DTYPE_Q6_K, b, 1, y);
    for (int i = 0; i < 256; i++) assert_true(fabsf(x[i] - y[i]) < 0.07f);
}

static void test_refused(void **state)
{
    (void)state;
    float x[256] = {0};
    uint8_t b[1024];
    static const float bad[] = {INFINITY, -INFINITY, NAN};
    for (int t = 0; t < DTYPE_COUNT; t++) {
        const dtype type = (dtype)t;
        if (!quant_can_encode(type)) {
            assert_false(quant_encode(type, x, 1, b));
            continue;
        }
        const size_t n = 256 / dtype_block_numbers(type);
        for (size_t k = 0; k < 3; k++) {
            x[200] = bad[k];
            assert_false(quant_encode(type, x, n, b));
        }
        x[200] = 3.39e38f;
        assert_true(quant_encode(type, x, n, b) == (type == DTYPE_F32 || type == DTYPE_BF16));
        x[200] = 3.4028235e38f; /* rounded to BF16 it is infinite */
        assert_true(quant_encode(type, x, n, b) == (type == DTYPE_F32));
        x[200] = 65503; /* every type */
        assert_true(quant_encode(type, x, n, b));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks), cmocka_unit_test(test_exact),
                                       cmocka_unit_test(test_refused)};
    return TEST_RUN(tests);
}
