/* SPDX-License-Identifier: Apache-2.0
 *
 * quant.c: the choice of a block type's decoder, and where the scales of a block are.
 */
#include "tensor/quant.h"

#include <math.h>

#include "tensor/quant_blocks.h"

typedef void (*block_decoder)(const uint8_t *b, float *y);

static block_decoder decoder_of(dtype t)
{
    switch (t) {
    case DTYPE_Q4_0: return quant_q4_0;
    case DTYPE_Q4_1: return quant_q4_1;
    case DTYPE_Q5_0: return quant_q5_0;
    case DTYPE_Q5_1: return quant_q5_1;
    case DTYPE_Q8_0: return quant_q8_0;
    case DTYPE_Q2_K: return quant_q2_k;
    case DTYPE_Q3_K: return quant_q3_k;
    case DTYPE_Q4_K: return quant_q4_k;
    case DTYPE_Q5_K: return quant_q5_k;
    case DTYPE_Q6_K: return quant_q6_k;
    case DTYPE_Q8_K: return quant_q8_k;
    case DTYPE_IQ4_NL: return quant_iq4_nl;
    case DTYPE_IQ4_XS: return quant_iq4_xs;
    case DTYPE_MXFP4: return quant_mxfp4;
    default: return NULL;
    }
}

void quant_decode(dtype t, const void *src, size_t n_blocks, float *dst)
{
    const uint8_t *b = src;
    const block_decoder decode = decoder_of(t);
    for (size_t i = 0; i < n_blocks; i++) decode(b + i * dtype_block_bytes(t), dst + i * dtype_block_numbers(t));
}

/* Of binary16 scales every product of a block is finite in f32; the two types with wider scales can overflow. */
static bool scales_finite(dtype t, const uint8_t *b)
{
    float d;
    switch (t) {
    case DTYPE_Q4_1:
    case DTYPE_Q5_1:
    case DTYPE_Q4_K:
    case DTYPE_Q5_K: return isfinite(quant_half(b)) && isfinite(quant_half(b + 2));
    case DTYPE_Q2_K: return isfinite(quant_half(b + 80)) && isfinite(quant_half(b + 82));
    case DTYPE_Q3_K: return isfinite(quant_half(b + 108));
    case DTYPE_Q6_K: return isfinite(quant_half(b + 208));
    case DTYPE_Q8_K: memcpy(&d, b, sizeof(d)); return isfinite(d * 128.0f);
    case DTYPE_MXFP4: return b[0] <= 252; /* 12 * 2^(e - 128); 255 is NaN (OCP Microscaling Formats 1.0, 5.4.1) */
    default: return isfinite(quant_half(b));
    }
}

int64_t quant_first_nonfinite(dtype t, const void *src, int64_t n_blocks)
{
    const uint8_t *b = src;
    for (int64_t i = 0; i < n_blocks; i++) {
        if (!scales_finite(t, b + (size_t)i * dtype_block_bytes(t))) return i;
    }
    return -1;
}
