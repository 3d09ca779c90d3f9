/* SPDX-License-Identifier: Apache-2.0
 * kern_avx512_overlay.c: the slots of this ISA; the others stay those of AVX2. */
#include "kern/avx512/kern_avx512.h"

#include "kern/avx2/kern_avx2_drive.h"

void KERN_AVX512(overlay)(kern_table *t)
{
    t->row_block = LINEAR_MAX_ROWS;
    t->linear_scratch = (size_t)LINEAR_MAX_ROWS * KERN_AVX2_CHUNK;
    t->linear = KERN_AVX512(linear);
    t->gemv = KERN_AVX512(gemv);
    t->attention = KERN_AVX512(attention);
    t->attention_row = KERN_AVX512(attention_row);
    t->delta = KERN_AVX512(delta);
    t->delta_row = KERN_AVX512(delta_row);
}
