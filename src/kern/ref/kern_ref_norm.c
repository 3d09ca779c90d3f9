/* SPDX-License-Identifier: Apache-2.0
 * kern_ref_norm.c: layer norm (Ba et al. 2016, "Layer Normalization", eq. 3) in two passes, RMS norm (Zhang & Sennrich
 * 2019, eq. 4), and division by the L2 norm. */
#include <math.h>

#include "kern/ref/kern_ref.h"

/* One group of one lane; element i of a vector is at [i * 16]. `v` is where x + r goes: y, or the caller's sum. */
typedef struct norm_lane {
    const float *x, *r;
    float *v, *y;
} norm_lane;

/* v = x + r. y and v may be x or r: element i of both has been read. */
static void add_lane(int64_t d, const norm_lane *l)
{
    for (int64_t i = 0; i < d; i++)
        l->v[i * KERN_LANES] = l->r ? l->x[i * KERN_LANES] + l->r[i * KERN_LANES] : l->x[i * KERN_LANES];
}

static void layer_norm_lane(const kern_norm_args *a, const norm_lane *l)
{
    float sum = 0.0f, squares = 0.0f;
    add_lane(a->d, l);
    for (int64_t i = 0; i < a->d; i++) sum += l->v[i * KERN_LANES];
    const float mean = sum / (float)a->d;
    for (int64_t i = 0; i < a->d; i++) {
        const float c = l->v[i * KERN_LANES] - mean;
        squares += c * c;
    }
    const float inverse = 1.0f / sqrtf(squares / (float)a->d + a->eps);
    for (int64_t i = 0; i < a->d; i++)
        l->y[i * KERN_LANES] = (l->v[i * KERN_LANES] - mean) * inverse * a->gamma[i] + (a->beta ? a->beta[i] : 0.0f);
}

static void rms_norm_lane(const kern_norm_args *a, const norm_lane *l)
{
    float squares = 0.0f;
    add_lane(a->d, l);
    for (int64_t i = 0; i < a->d; i++) squares += l->v[i * KERN_LANES] * l->v[i * KERN_LANES];
    const float inverse = 1.0f / sqrtf(squares / (float)a->d + a->eps);
    for (int64_t i = 0; i < a->d; i++) l->y[i * KERN_LANES] = l->v[i * KERN_LANES] * inverse * a->gamma[i];
}

static void norm_lanes(const kern_norm_args *a, void (*norm)(const kern_norm_args *a, const norm_lane *l))
{
    for (int64_t p = a->p0; p < a->p1; p++) {
        const int lanes = p == a->p1 - 1 ? a->last_lanes : KERN_LANES;
        for (int64_t at = 0; at < a->n_groups * a->d * KERN_LANES; at += a->d * KERN_LANES) {
            for (int64_t i = at; i < at + lanes; i++) {
                norm_lane l = {.x = a->x + p * a->x_stride + i, .y = a->y + p * a->y_stride + i};
                if (a->r) l.r = a->r + p * a->r_stride + i;
                l.v = a->sum ? a->sum + p * a->x_stride + i : l.y;
                norm(a, &l);
            }
        }
    }
}

void kern_ref_layer_norm(const kern_norm_args *a) { norm_lanes(a, layer_norm_lane); }

void kern_ref_rms_norm(const kern_norm_args *a) { norm_lanes(a, rms_norm_lane); }

void kern_ref_l2_normalize(int64_t d, int32_t lanes, float *x)
{
    for (int32_t i = 0; i < lanes; i++) {
        float sum = 0.0f;
        for (int64_t f = 0; f < d; f++) sum += x[f * KERN_LANES + i] * x[f * KERN_LANES + i];
        float norm = fmaxf(sqrtf(sum), 1e-12f);
        for (int64_t f = 0; f < d; f++) x[f * KERN_LANES + i] /= norm;
    }
}
