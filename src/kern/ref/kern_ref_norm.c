/* SPDX-License-Identifier: Apache-2.0
 * kern_ref_norm.c: layer norm (Ba et al. 2016, "Layer Normalization", eq. 3) in two passes, and division by the L2
 * norm. */
#include <math.h>

#include "kern/ref/kern_ref.h"

/* One lane of one panel; element i of a vector is at [i * 16]. */
static void layer_norm_lane(const kern_layer_norm_args *a, const float *x, const float *r, float *y)
{
    float sum = 0.0f, squares = 0.0f;
    for (int64_t i = 0; i < a->d; i++) {
        float v = r ? x[i * KERN_LANES] + r[i * KERN_LANES] : x[i * KERN_LANES];
        y[i * KERN_LANES] = v; /* y may be x or r: element i of both has been read */
        sum += v;
    }
    float mean = sum / (float)a->d;
    for (int64_t i = 0; i < a->d; i++) {
        float c = y[i * KERN_LANES] - mean;
        squares += c * c;
    }
    float inverse = 1.0f / sqrtf(squares / (float)a->d + a->eps);
    for (int64_t i = 0; i < a->d; i++)
        y[i * KERN_LANES] = (y[i * KERN_LANES] - mean) * inverse * a->gamma[i] + a->beta[i];
}

void kern_ref_layer_norm(const kern_layer_norm_args *a)
{
    for (int64_t p = a->p0; p < a->p1; p++) {
        int lanes = p == a->p1 - 1 ? a->last_lanes : KERN_LANES;
        for (int i = 0; i < lanes; i++)
            layer_norm_lane(a, a->x + p * a->x_stride + i, a->r ? a->r + p * a->r_stride + i : NULL,
                            a->y + p * a->y_stride + i);
    }
}

void kern_ref_l2_normalize(int64_t d, int32_t lanes, float *x)
{
    for (int32_t i = 0; i < lanes; i++) {
        float sum = 0.0f;
        for (int64_t f = 0; f < d; f++) sum += x[f * KERN_LANES + i] * x[f * KERN_LANES + i];
        float norm = fmaxf(sqrtf(sum), 1e-12f);
        for (int64_t f = 0; f < d; f++) x[f * KERN_LANES + i] /= norm;
    }
}
