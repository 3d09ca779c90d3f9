/* SPDX-License-Identifier: Apache-2.0
 *
 * quant.h: the block types of dtype.def: reference decode (behind dtype_to_f32) and the check of scales. A block holds its numbers as small integers
 * with one or more scales.
 */
#ifndef LATH_TENSOR_QUANT_H
#define LATH_TENSOR_QUANT_H

#include "tensor/dtype.h"

/* n_blocks blocks of a type that dtype_is_block at src (any alignment) to dst: [n_blocks * dtype_block_numbers(t)]. */
void quant_decode(dtype t, const void *src, size_t n_blocks, float *dst);
/* The first of n_blocks blocks whose scales are not finite, or so large that a number can overflow, or -1. */
int64_t quant_first_nonfinite(dtype t, const void *src, int64_t n_blocks);

#endif
