/* SPDX-License-Identifier: Apache-2.0
 * kern_ref_linear.c: the product with row-major weights.
 *
 * Sixteen accumulators, one a lane; k rising; multiply, round, add, round. Weights become f32 in blocks on the
 * stack. */
#include <string.h>

#include "kern/ref/kern_ref.h"

enum { LINEAR_BLOCK = DTYPE_MAX_BLOCK };

/* y[16] = fn(bias + sum_k w[k] * x[k][16]) of one row and one panel. */
static void linear_row(const kern_linear_args *a, int64_t n, const float *x, float *y)
{
    const unsigned char *w = (const unsigned char *)a->w + n * a->w_stride;
    float sum[KERN_LANES], block[LINEAR_BLOCK];
    for (int i = 0; i < KERN_LANES; i++) sum[i] = a->bias ? a->bias[n] : 0.0f;
    for (int64_t k0 = 0; k0 < a->k; k0 += LINEAR_BLOCK) {
        int64_t kn = a->k - k0 < LINEAR_BLOCK ? a->k - k0 : LINEAR_BLOCK;
        dtype_to_f32(a->type, w + dtype_bytes(a->type, k0), (size_t)kn, block);
        for (int64_t k = 0; k < kn; k++) {
            const float *xk = x + (k0 + k) * KERN_LANES;
            for (int i = 0; i < KERN_LANES; i++) sum[i] += block[k] * xk[i];
        }
    }
    kern_ref_map(a->fn, KERN_LANES, sum, y);
}

void kern_ref_linear(const kern_linear_args *a)
{
    for (int64_t n = a->n0; n < a->n1; n++)
        for (int64_t p = a->p0; p < a->p1; p++)
            linear_row(a, n, a->x + p * a->x_stride, a->y + p * a->y_stride + n * KERN_LANES);
}
