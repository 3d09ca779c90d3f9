/* SPDX-License-Identifier: Apache-2.0
 *
 * quant_blocks.h: decoders of one block each, behind quant.c. quant_simple.c has the types of 32 numbers with one scale, quant_k.c
 * the types of 256 numbers with scales of their parts. And the encoders of quant_encode_k.c, behind quant_encode.c.
 */
#ifndef LATH_TENSOR_QUANT_BLOCKS_H
#define LATH_TENSOR_QUANT_BLOCKS_H

#include <string.h>

#include "tensor/dtype.h"

/* The 16 values that IQ4_NL and IQ4_XS choose from. */
extern const int8_t quant_iq4_values[16];

/* The binary16 at p, any alignment. */
static inline float quant_half(const uint8_t *p) { return half_to_f32((uint16_t)(p[0] | p[1] << 8)); }

/* v to the nearest binary16 at p; false when that is infinite. */
static inline bool quant_put_half(uint8_t *p, float v)
{
    const uint16_t h = half_from_f32(v);
    p[0] = (uint8_t)h;
    p[1] = (uint8_t)(h >> 8);
    return (h & 0x7fffu) < 0x7c00u;
}

/* [256] to a block; false when its scales do not fit. */
bool quant_put_q4_k(const float *x, uint8_t *b);
bool quant_put_q6_k(const float *x, uint8_t *b);

void quant_q4_0(const uint8_t *b, float *y);
void quant_q4_1(const uint8_t *b, float *y);
void quant_q5_0(const uint8_t *b, float *y);
void quant_q5_1(const uint8_t *b, float *y);
void quant_q8_0(const uint8_t *b, float *y);
void quant_iq4_nl(const uint8_t *b, float *y);
void quant_mxfp4(const uint8_t *b, float *y);
void quant_q2_k(const uint8_t *b, float *y);
void quant_q3_k(const uint8_t *b, float *y);
void quant_q4_k(const uint8_t *b, float *y);
void quant_q5_k(const uint8_t *b, float *y);
void quant_q6_k(const uint8_t *b, float *y);
void quant_q8_k(const uint8_t *b, float *y);
void quant_iq4_xs(const uint8_t *b, float *y);

#endif
