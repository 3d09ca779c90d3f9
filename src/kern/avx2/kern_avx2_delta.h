/* SPDX-License-Identifier: Apache-2.0
 * kern_avx2_delta.h: the gated delta rule in products of registers, which kern_avx512_delta.c has larger ones of. */
#ifndef LATH_KERN_AVX2_DELTA_H
#define LATH_KERN_AVX2_DELTA_H

#include "kern/avx2/kern_avx2.h"

/* A product of a panel w [.][16] with rows x, for r < rows and two strips of 16 columns; each sum is one chain in step order, rows of x and y are at any
 * alignment:
 *
 *     tokens are rows    y[r][c] += scale[r] (sum over s < steps of w[s][r] x[s][c])
 *     tokens are steps   y[r][c] = keep y[r][c] + sum over s < steps of w[r][s] x[s][c] */
typedef struct delta_product {
    int64_t rows, steps;
    const float *w;
    const float *x[2]; /* of the strips */
    int64_t x_stride;
    float *y[2];
    int64_t y_stride;
    const float *scale; /* NULL: tokens are steps */
    float keep;
} delta_product;

typedef struct delta_tiles {
    void (*product)(const delta_product *p);
    /* y[c] += sum over s < steps of w[s * 16] x[s * columns + c] for c < columns, a multiple of 32; s rising */
    void (*row)(int64_t columns, int64_t steps, const float *w, const float *x, float *y);
} delta_tiles;

void kern_avx2_delta_by(const kern_delta_args *a, const delta_tiles *tiles);

/* The two passes of a single token over `width` columns of a state, whose rows are s_stride apart. */
enum { DELTA_MAX_WIDTH = 128 };
typedef struct delta_passes {
    int64_t width; /* DELTA_MAX_WIDTH or KERN_DELTA_COLUMNS */
    /* by_k[c] = sum over i of s[i][c] k[i], by_q[c] of s[i][c] q[i]; each one chain, i rising. Columns ahead[i] are asked for meanwhile. */
    void (*read)(int64_t d_k, const float *s, int64_t s_stride, const float *ahead, const float *k, const float *q,
                 float *by_k, float *by_q);
    /* s[i][c] = decay s[i][c] + k[i] d[c] */
    void (*write)(int64_t d_k, float *s, int64_t s_stride, float decay, const float *k, const float *d);
} delta_passes;

/* passes: the widest first, the last one of KERN_DELTA_COLUMNS. */
void kern_avx2_delta_row_by(const kern_delta_row_args *a, const delta_passes *passes);
extern const delta_passes kern_avx2_delta_strip;

#endif
