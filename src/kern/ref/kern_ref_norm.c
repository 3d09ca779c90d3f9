/* SPDX-License-Identifier: Apache-2.0
 * kern_ref_norm.c: layer norm (Ba et al. 2016, "Layer Normalization", eq. 3) in two passes, RMS norm (Zhang & Sennrich
 * 2019, eq. 4), and division by the L2 norm. */
#include <math.h>

#include "kern/ref/kern_ref.h"

/* One group of one lane; element i of a vector is at [i * step]: 16 in panels, 1 in rows. `v` is where x + r goes: y, or
 * the caller's sum. */
typedef struct norm_lane {
    const float *x, *r, *gamma, *beta;
    float *v, *y;
    int64_t d, step;
    float eps;
} norm_lane;
typedef void (*norm_function)(const norm_lane *l);

/* v = x + r. y and v may be x or r: element i of both has been read. */
static void add_lane(const norm_lane *l)
{
    for (int64_t i = 0; i < l->d * l->step; i += l->step) l->v[i] = l->r ? l->x[i] + l->r[i] : l->x[i];
}

static void layer_norm_lane(const norm_lane *l)
{
    float sum = 0.0f, squares = 0.0f;
    add_lane(l);
    for (int64_t i = 0; i < l->d; i++) sum += l->v[i * l->step];
    const float mean = sum / (float)l->d;
    for (int64_t i = 0; i < l->d; i++) {
        const float c = l->v[i * l->step] - mean;
        squares += c * c;
    }
    const float inverse = 1.0f / sqrtf(squares / (float)l->d + l->eps);
    for (int64_t i = 0; i < l->d; i++)
        l->y[i * l->step] = (l->v[i * l->step] - mean) * inverse * l->gamma[i] + (l->beta ? l->beta[i] : 0.0f);
}

static void rms_norm_lane(const norm_lane *l)
{
    float squares = 0.0f;
    add_lane(l);
    for (int64_t i = 0; i < l->d; i++) squares += l->v[i * l->step] * l->v[i * l->step];
    const float inverse = 1.0f / sqrtf(squares / (float)l->d + l->eps);
    for (int64_t i = 0; i < l->d; i++) l->y[i * l->step] = l->v[i * l->step] * inverse * l->gamma[i];
}

static void norm_lanes(const kern_norm_args *a, norm_function norm)
{
    for (int64_t p = a->p0; p < a->p1; p++) {
        const int lanes = p == a->p1 - 1 ? a->last_lanes : KERN_LANES;
        for (int64_t at = 0; at < a->n_groups * a->d * KERN_LANES; at += a->d * KERN_LANES) {
            for (int64_t i = at; i < at + lanes; i++) {
                norm_lane l = {.x = a->x + p * a->x_stride + i, .y = a->y + p * a->y_stride + i};
                if (a->r) l.r = a->r + p * a->r_stride + i;
                l.v = a->sum ? a->sum + p * a->x_stride + i : l.y;
                l.gamma = a->gamma;
                l.beta = a->beta;
                l.d = a->d;
                l.step = KERN_LANES;
                l.eps = a->eps;
                norm(&l);
            }
        }
    }
}

static void norm_row(const kern_norm_row_args *a, norm_function norm)
{
    for (int64_t at = 0; at < a->n_groups * a->d; at += a->d) {
        norm_lane l = {.x = a->x + at, .y = a->y + at, .gamma = a->gamma, .beta = a->beta};
        if (a->r) l.r = a->r + at;
        l.v = a->sum ? a->sum + at : l.y;
        l.d = a->d;
        l.step = 1;
        l.eps = a->eps;
        norm(&l);
    }
}

void kern_ref_layer_norm(const kern_norm_args *a) { norm_lanes(a, layer_norm_lane); }

void kern_ref_rms_norm(const kern_norm_args *a) { norm_lanes(a, rms_norm_lane); }

void kern_ref_layer_norm_row(const kern_norm_row_args *a) { norm_row(a, layer_norm_lane); }

void kern_ref_rms_norm_row(const kern_norm_row_args *a) { norm_row(a, rms_norm_lane); }

void kern_ref_l2_normalize(int64_t d, int32_t lanes, float *x)
{
    for (int32_t i = 0; i < lanes; i++) {
        float sum = 0.0f;
        for (int64_t f = 0; f < d; f++) sum += x[f * KERN_LANES + i] * x[f * KERN_LANES + i];
        float norm = fmaxf(sqrtf(sum), 1e-12f);
        for (int64_t f = 0; f < d; f++) x[f * KERN_LANES + i] /= norm;
    }
}
