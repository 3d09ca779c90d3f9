/* SPDX-License-Identifier: Apache-2.0
 *
 * quant_k.c: decoders of the 256-number blocks. Layouts (ggml-common.h), d and dmin binary16 unless said:
 *
 *     Q2_K scales[16] qs[64] d dmin      Q3_K hmask[32] qs[64] scales[12] d      Q4_K d dmin scales[12] qs[128]
 *     Q5_K d dmin scales[12] qh[32] qs[128]      Q6_K ql[128] qh[64] int8 scales[16] d
 *     Q8_K f32 d, int8 qs[256], int16 sums[16]   IQ4_XS d, u16 scales_h, scales_l[4], qs[128]
 *
 * Parts of 16 (Q2_K, Q3_K, Q6_K) or 32 numbers have a scale, some a minimum.
 */
#include "tensor/quant_blocks.h"

void quant_q2_k(const uint8_t *b, float *y)
{
    const uint8_t *qs = b + 16;
    const float d = quant_half(b + 80), dmin = quant_half(b + 82);
    for (int i = 0; i < 256; i++) {
        const uint8_t sc = b[i / 16];
        const float dl = d * (float)(sc & 15), ml = dmin * (float)(sc >> 4);
        y[i] = dl * (float)(qs[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3) - ml;
    }
}

void quant_q3_k(const uint8_t *b, float *y)
{
    const uint8_t *qs = b + 32, *sc = b + 96;
    const float d = quant_half(b + 108);
    for (int i = 0; i < 256; i++) {
        const int part = i / 16;
        const int low = part < 8 ? sc[part] & 15 : sc[part - 8] >> 4;
        const int scale = (low | (sc[8 + part % 4] >> (part / 4 * 2) & 3) << 4) - 32;
        const int high = b[i % 32] >> (i / 32) & 1; /* not set: 4 less */
        const int q = (qs[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3) - (high ? 0 : 4);
        y[i] = d * (float)scale * (float)q;
    }
}

/* Scale and minimum of part j of 8, six bits each, in 12 bytes. */
static void scale_min(const uint8_t *s, int j, int *sc, int *m)
{
    if (j < 4) {
        *sc = s[j] & 63;
        *m = s[j + 4] & 63;
    } else {
        *sc = (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
        *m = s[j + 4] >> 4 | s[j] >> 6 << 4;
    }
}

void quant_q4_k(const uint8_t *b, float *y)
{
    const float d = quant_half(b), dmin = quant_half(b + 2);
    for (int j = 0; j < 8; j++) {
        const uint8_t *qs = b + 16 + j / 2 * 32;
        int sc, m;
        scale_min(b + 4, j, &sc, &m);
        const float dl = d * (float)sc, ml = dmin * (float)m;
        for (int i = 0; i < 32; i++) y[32 * j + i] = dl * (float)(qs[i] >> (j % 2 * 4) & 15) - ml;
    }
}

void quant_q5_k(const uint8_t *b, float *y)
{
    const uint8_t *qh = b + 16;
    const float d = quant_half(b), dmin = quant_half(b + 2);
    for (int j = 0; j < 8; j++) {
        const uint8_t *qs = b + 48 + j / 2 * 32;
        int sc, m;
        scale_min(b + 4, j, &sc, &m);
        const float dl = d * (float)sc, ml = dmin * (float)m;
        for (int i = 0; i < 32; i++)
            y[32 * j + i] = dl * (float)((qs[i] >> (j % 2 * 4) & 15) | (qh[i] >> j & 1) << 4) - ml;
    }
}

void quant_q6_k(const uint8_t *b, float *y)
{
    const uint8_t *qh = b + 128, *sc = b + 192;
    const float d = quant_half(b + 208);
    for (int i = 0; i < 256; i++) {
        const int half = i / 128, at = i % 128;
        const int low = b[half * 64 + at % 64] >> (at / 64 * 4) & 15;
        const int high = qh[half * 32 + at % 32] >> (at / 32 * 2) & 3;
        y[i] = d * (float)(int8_t)sc[i / 16] * (float)((low | high << 4) - 32);
    }
}

void quant_q8_k(const uint8_t *b, float *y)
{
    float d;
    memcpy(&d, b, sizeof(d));
    for (int i = 0; i < 256; i++) y[i] = d * (float)(int8_t)b[4 + i];
}

void quant_iq4_xs(const uint8_t *b, float *y)
{
    const unsigned scales_h = b[2] | (unsigned)b[3] << 8;
    const float d = quant_half(b);
    for (int j = 0; j < 8; j++) {
        const int low = b[4 + j / 2] >> (j % 2 * 4) & 15, high = (int)(scales_h >> (2 * j) & 3);
        const float dl = d * (float)((low | high << 4) - 32);
        const uint8_t *qs = b + 8 + 16 * j;
        for (int i = 0; i < 32; i++)
            y[32 * j + i] = dl * (float)quant_iq4_values[i < 16 ? qs[i] & 15 : qs[i - 16] >> 4];
    }
}
