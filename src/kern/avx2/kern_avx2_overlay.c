/* SPDX-License-Identifier: Apache-2.0
 * kern_avx2_overlay.c: the slots of this ISA: all of them. */
#include "kern/avx2/kern_avx2.h"

void kern_avx2_overlay(kern_table *t)
{
    t->row_block = KERN_AVX2_ROWS;
    t->panel_group = KERN_AVX2_GROUP;
    t->linear_scratch = (size_t)KERN_AVX2_ROWS * KERN_AVX2_CHUNK;
#define KERN(slot, result, args, tolerance) t->slot = kern_avx2_##slot;
#include "kern/kern.def"
#undef KERN
}
