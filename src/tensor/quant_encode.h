/* SPDX-License-Identifier: Apache-2.0
 *
 * quant_encode.h: f32 numbers into blocks of GGUF element types. F16 and BF16 round to nearest, ties to even; the types of 32 numbers
 * are those of the `gguf` package's quantize, byte for byte; Q4_K and Q6_K search the scales of least squared error (quant_encode_k.c).
 * The result is the same on every machine.
 */
#ifndef LATH_TENSOR_QUANT_ENCODE_H
#define LATH_TENSOR_QUANT_ENCODE_H

#include "tensor/dtype.h"

/* F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q6_K. */
bool quant_can_encode(dtype t);
/* x: [n_blocks * dtype_block_numbers(t)] to n_blocks blocks at dst (any alignment). False when a number is not finite or larger than the type
 * can say: then the blocks mean nothing. */
bool quant_encode(dtype t, const float *x, size_t n_blocks, void *dst);

#endif
