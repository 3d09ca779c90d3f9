/* SPDX-License-Identifier: Apache-2.0
 *
 * quant_encode.c: the choice of the encoder, and those of the 32-number blocks. A block's scale comes from its largest number (Q8_0, Q4_0,
 * Q5_0) or from its span (Q4_1, Q5_1), in f32 and in the order of operations of the `gguf` package's quantize (and of ggml's
 * quantize_row_*_ref), so that bytes agree.
 */
#include "tensor/quant_encode.h"

#include <math.h>
#include <string.h>

#include "tensor/quant_blocks.h"

/* 1 / d; 0 where that is no number: the block is then one of zeros. */
static float inverse(float d)
{
    const float inv = d != 0 ? 1 / d : 0;
    return isfinite(inv) ? inv : 0;
}

/* The number of the largest magnitude, with its sign; of equal ones the first. */
static float extreme(const float *x)
{
    float most = 0, value = 0;
    for (int i = 0; i < 32; i++) {
        if (fabsf(x[i]) <= most) continue;
        most = fabsf(x[i]);
        value = x[i];
    }
    return value;
}

/* roundf for |v| < 2^31, halves away from zero; compilers make vectors of it. */
static inline int round_away(float v)
{
    const int whole = (int)v;
    const float rest = v - (float)whole;
    return whole + (rest >= 0.5f) - (rest <= -0.5f);
}

static bool put_q8_0(const float *x, uint8_t *b)
{
    const float d = fabsf(extreme(x)) / 127, inv = inverse(d);
    for (int i = 0; i < 32; i++) b[2 + i] = (uint8_t)(int8_t)round_away(x[i] * inv);
    return quant_put_half(b, d);
}

/* Numbers of `bits` bits as the layouts have them: halves of bytes, and the fifth bit in qh. */
static void put_small(const uint8_t *q, int bits, uint8_t *qh, uint8_t *qs)
{
    for (int i = 0; i < 16; i++) qs[i] = (uint8_t)((q[i] & 15) | q[i + 16] << 4);
    if (bits != 5) return;
    memset(qh, 0, 4);
    for (int i = 0; i < 32; i++) qh[i / 8] |= (uint8_t)((q[i] >> 4) << i % 8);
}

/* Q4_0, Q5_0: the extreme becomes the lowest number, of which there is one more than of positive ones. */
static bool put_centred(const float *x, int bits, uint8_t *b)
{
    const int half = 1 << (bits - 1), most = 2 * half - 1;
    const float d = extreme(x) / (float)-half, inv = inverse(d);
    uint8_t q[32];
    for (int i = 0; i < 32; i++) {
        const int v = (int)(x[i] * inv + ((float)half + 0.5f));
        q[i] = (uint8_t)(v > most ? most : v);
    }
    put_small(q, bits, b + 2, bits == 5 ? b + 6 : b + 2);
    return quant_put_half(b, d);
}

/* Q4_1, Q5_1: the least number is the minimum, the span is divided evenly. */
static bool put_spanned(const float *x, int bits, uint8_t *b)
{
    const int most = (1 << bits) - 1;
    float low = x[0], high = x[0];
    for (int i = 1; i < 32; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    const float d = (high - low) / (float)most, inv = inverse(d);
    uint8_t q[32];
    for (int i = 0; i < 32; i++) {
        const int v = (int)((x[i] - low) * inv + 0.5f);
        q[i] = (uint8_t)(v > most ? most : v);
    }
    put_small(q, bits, b + 4, bits == 5 ? b + 8 : b + 4);
    return quant_put_half(b, d) && quant_put_half(b + 2, low);
}

static bool put_q4_0(const float *x, uint8_t *b) { return put_centred(x, 4, b); }
static bool put_q5_0(const float *x, uint8_t *b) { return put_centred(x, 5, b); }
static bool put_q4_1(const float *x, uint8_t *b) { return put_spanned(x, 4, b); }
static bool put_q5_1(const float *x, uint8_t *b) { return put_spanned(x, 5, b); }

/* ------------------------------------------------------------------------------------------------------------ any type */

static bool all_finite(const float *x, size_t n)
{
    uint32_t bits, seen = 0;
    for (size_t i = 0; i < n; i++) {
        memcpy(&bits, &x[i], sizeof(bits));
        bits &= 0x7fffffffu;
        seen = bits > seen ? bits : seen;
    }
    return seen < 0x7f800000u;
}

/* Types of single numbers; a rounded one that is infinite was too large. */
static bool put_floats(dtype t, const float *x, size_t n, uint8_t *b)
{
    bool fits = true;
    if (t == DTYPE_F32) {
        memcpy(b, x, n * sizeof(float));
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        const uint16_t v = t == DTYPE_F16 ? half_from_f32(x[i]) : bf16_from_f32(x[i]);
        fits &= (v & 0x7fffu) < (t == DTYPE_F16 ? 0x7c00u : 0x7f80u);
        b[2 * i] = (uint8_t)v;
        b[2 * i + 1] = (uint8_t)(v >> 8);
    }
    return fits;
}

typedef bool (*block_encoder)(const float *x, uint8_t *b);

static block_encoder encoder_of(dtype t)
{
    switch (t) {
    case DTYPE_Q4_0: return put_q4_0;
    case DTYPE_Q4_1: return put_q4_1;
    case DTYPE_Q5_0: return put_q5_0;
    case DTYPE_Q5_1: return put_q5_1;
    case DTYPE_Q8_0: return put_q8_0;
    case DTYPE_Q4_K: return quant_put_q4_k;
    case DTYPE_Q6_K: return quant_put_q6_k;
    default: return NULL;
    }
}

bool quant_can_encode(dtype t) { return t == DTYPE_F32 || t == DTYPE_F16 || t == DTYPE_BF16 || encoder_of(t) != NULL; }

bool quant_encode(dtype t, const float *x, size_t n_blocks, void *dst)
{
    uint8_t *b = dst;
    const size_t numbers = dtype_block_numbers(t), bytes = dtype_block_bytes(t);
    const block_encoder encode = encoder_of(t);
    if (!quant_can_encode(t) || !all_finite(x, n_blocks * numbers)) return false;
    if (!encode) return put_floats(t, x, n_blocks, b);
    bool fits = true;
    for (size_t i = 0; i < n_blocks; i++) fits &= encode(x + i * numbers, b + i * bytes);
    return fits;
}
