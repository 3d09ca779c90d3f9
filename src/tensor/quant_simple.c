/* SPDX-License-Identifier: Apache-2.0
 *
 * quant_simple.c: decoders of the 32-number blocks. Layouts (ggml-common.h): d and m are binary16, a byte of qs holds
 * number i in its low and number i + 16 in its high half, bit i of qh is the fifth bit of number i.
 *
 *     Q4_0 d qs[16]   Q4_1 d m qs[16]   Q5_0 d qh[4] qs[16]   Q5_1 d m qh[4] qs[16]   Q8_0 d int8[32]
 *     IQ4_NL d qs[16] (indices of a table)   MXFP4 e qs[16] (OCP E2M1 under a power of two, kept doubled over a halved scale)
 */
#include "tensor/quant_blocks.h"

const int8_t quant_iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/* Number i of 32. */
static int nibble(const uint8_t *qs, int i) { return i < 16 ? qs[i] & 15 : qs[i - 16] >> 4; }

static int fifth(const uint8_t *qh, int i) { return (qh[i / 8] >> (i % 8) & 1) << 4; }

void quant_q4_0(const uint8_t *b, float *y)
{
    const float d = quant_half(b);
    for (int i = 0; i < 32; i++) y[i] = d * (float)(nibble(b + 2, i) - 8);
}

void quant_q4_1(const uint8_t *b, float *y)
{
    const float d = quant_half(b), m = quant_half(b + 2);
    for (int i = 0; i < 32; i++) y[i] = d * (float)nibble(b + 4, i) + m;
}

void quant_q5_0(const uint8_t *b, float *y)
{
    const float d = quant_half(b);
    for (int i = 0; i < 32; i++) y[i] = d * (float)((nibble(b + 6, i) | fifth(b + 2, i)) - 16);
}

void quant_q5_1(const uint8_t *b, float *y)
{
    const float d = quant_half(b), m = quant_half(b + 2);
    for (int i = 0; i < 32; i++) y[i] = d * (float)(nibble(b + 8, i) | fifth(b + 4, i)) + m;
}

void quant_q8_0(const uint8_t *b, float *y)
{
    const float d = quant_half(b);
    for (int i = 0; i < 32; i++) y[i] = d * (float)(int8_t)b[2 + i];
}

void quant_iq4_nl(const uint8_t *b, float *y)
{
    const float d = quant_half(b);
    for (int i = 0; i < 32; i++) y[i] = d * (float)quant_iq4_values[nibble(b + 2, i)];
}

void quant_mxfp4(const uint8_t *b, float *y)
{
    static const int8_t doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    const uint32_t e = b[0], bits = e < 2 ? 0x00200000u << e : (e - 1) << 23; /* 2^(e - 128) */
    float d;
    memcpy(&d, &bits, sizeof(d));
    for (int i = 0; i < 32; i++) y[i] = d * (float)doubled[nibble(b + 1, i)];
}
