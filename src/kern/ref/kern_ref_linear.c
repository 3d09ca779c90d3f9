/* SPDX-License-Identifier: Apache-2.0
 * kern_ref_linear.c: the product with row-major weights.
 *
 * Sixteen accumulators, one a lane; k rising; multiply, round, add, round. Weights become f32 in blocks on the
 * stack. */
#include <string.h>

#include "kern/kern_xq.h"
#include "kern/ref/kern_ref.h"

enum { LINEAR_BLOCK = DTYPE_MAX_BLOCK };

/* The lanes of feature k of panel p: as they are, or what their bytes stand for. */
static void features(const kern_linear_args *a, int64_t p, int64_t k, float to[KERN_LANES])
{
    if (!a->xq) {
        memcpy(to, a->x + p * a->x_stride + k * KERN_LANES, KERN_LANES * sizeof(float));
        return;
    }
    const unsigned char *u = (const unsigned char *)a->xq + p * a->xq_stride;
    const float *d = (const float *)(const void *)(u + kern_xq_panel_d(a->k));
    const int64_t block = kern_xq_kind_of(a->type) == KERN_XQ_32 ? 32 : 256;
    for (int i = 0; i < KERN_LANES; i++)
        to[i] = (float)(u[(k / 4 * KERN_LANES + i) * 4 + k % 4] - 128) * d[k / block * KERN_LANES + i];
}

/* y[16] = fn(bias + sum_k w[k] * x[k][16]) of row n and panel p. */
static void linear_row(const kern_linear_args *a, int64_t n, int64_t p)
{
    float *y = a->y + p * a->y_stride + n * KERN_LANES, xk[KERN_LANES];
    const unsigned char *w = (const unsigned char *)a->w + n * a->w_stride;
    float sum[KERN_LANES], block[LINEAR_BLOCK];
    for (int i = 0; i < KERN_LANES; i++) sum[i] = a->bias ? a->bias[n] : 0.0f;
    for (int64_t k0 = 0; k0 < a->k; k0 += LINEAR_BLOCK) {
        int64_t kn = a->k - k0 < LINEAR_BLOCK ? a->k - k0 : LINEAR_BLOCK;
        dtype_to_f32(a->type, w + dtype_bytes(a->type, k0), (size_t)kn, block);
        for (int64_t k = 0; k < kn; k++) {
            features(a, p, k0 + k, xk);
            for (int i = 0; i < KERN_LANES; i++) sum[i] += block[k] * xk[i];
        }
    }
    kern_ref_map(a->fn, KERN_LANES, sum, y);
}

void kern_ref_linear(const kern_linear_args *a)
{
    for (int64_t n = a->n0; n < a->n1; n++)
        for (int64_t p = a->p0; p < a->p1; p++) linear_row(a, n, p);
}
