/* SPDX-License-Identifier: Apache-2.0
 * kern_avx2.h: the kernels for x86-64 with AVX2, FMA3 and F16C, kern_avx2_<slot>, and what they share. Compiled with
 * these extensions on; only kern_table.c calls in, after CPUID. */
#ifndef LATH_KERN_AVX2_H
#define LATH_KERN_AVX2_H

#include "kern/kern.h"

#define KERN(slot, result, args, tolerance) result kern_avx2_##slot args;
#include "kern/kern.def"
#undef KERN

/* Overwrites the slots, block sizes and scratch size that this ISA wins. */
void kern_avx2_overlay(kern_table *t);

enum {
    KERN_AVX2_ROWS = 6,         /* rows of the 16-lane tile */
    KERN_AVX2_NARROW_ROWS = 12, /* rows of the 8-lane tile */
    KERN_AVX2_CHUNK = 512,      /* not f32: weights of a row that are f32 at a time; whole blocks */
    KERN_AVX2_GROUP = 16        /* most panels of one pass over the weights */
};

/* linear where a->xq is given. */
void kern_avx2_linear_q(const kern_linear_args *a);

/* The first `vectors` (1 or 2) eights of y[0], y[stride], ... = fn of those of x[0], x[16], ...; `rows` rows. */
void kern_avx2_map_rows(kern_fn fn, int rows, int vectors, const float *x, float *y, int64_t stride);

#endif
