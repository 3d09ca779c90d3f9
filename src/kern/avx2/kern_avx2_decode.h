/* SPDX-License-Identifier: Apache-2.0
 * kern_avx2_decode.h: rows of weights to f32, the same bits as dtype_to_f32. */
#ifndef LATH_KERN_AVX2_DECODE_H
#define LATH_KERN_AVX2_DECODE_H

#include "kern/kern.h"

/* n numbers (whole blocks) of a type that dtype_is_weight at `from`, any alignment; to: 32-byte aligned. */
void kern_avx2_to_f32(dtype type, const unsigned char *from, int64_t n, float *to);

#endif
