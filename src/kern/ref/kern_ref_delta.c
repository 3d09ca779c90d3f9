/* SPDX-License-Identifier: Apache-2.0
 * kern_ref_delta.c: the gated delta rule (Yang et al. 2024, "Gated Delta Networks", eq. 10) token by token, and the causal convolution before it. */
#include <math.h>

#include "kern/ref/kern_ref.h"

/* One token; element i of a vector is at [i * step]: 16 in panels, 1 in rows. */
typedef struct delta_token {
    int64_t d_k, d_v, step;
    const float *q, *k, *v;
    float g, beta;
    float *state, *y;
} delta_token;

/* Columns of the state do not meet. */
static void delta_step(const delta_token *t)
{
    const float decay = expf(t->g);
    for (int64_t j = 0; j < t->d_v; j++) {
        float *s = t->state + j, known = 0.0f, y = 0.0f;
        for (int64_t i = 0; i < t->d_k; i++) {
            s[i * t->d_v] *= decay;
            known += s[i * t->d_v] * t->k[i * t->step];
        }
        const float d = t->beta * (t->v[j * t->step] - known);
        for (int64_t i = 0; i < t->d_k; i++) {
            s[i * t->d_v] += t->k[i * t->step] * d;
            y += s[i * t->d_v] * t->q[i * t->step];
        }
        t->y[j * t->step] = y;
    }
}

void kern_ref_delta(const kern_delta_args *a)
{
    for (int64_t t = 0; t < a->n; t++)
        delta_step(&(delta_token){a->d_k, a->d_v, KERN_LANES, a->q + t, a->k + t, a->v + t, a->g[t], a->beta[t],
                                  a->state, a->y + t});
    for (int64_t i = 0; i < a->d_v * KERN_LANES; i++)
        if (i % KERN_LANES >= a->n) a->y[i] = 0.0f;
}

void kern_ref_delta_row(const kern_delta_row_args *a)
{
    delta_step(&(delta_token){a->d_k, a->d_v, 1, a->q, a->k, a->v, a->g, a->beta, a->state, a->y});
}

static float silu(float x)
{
    kern_ref_map(KERN_FN_SILU, 1, &x, &x);
    return x;
}

/* Feature f, `at` tokens behind lane 0, which may be negative. */
static float conv_tap(const kern_conv_args *a, int64_t f, int64_t at)
{
    return at >= 0 ? a->x[f * KERN_LANES + at] : a->before[f * a->before_feature + (a->width - 1 + at) * a->before_tap];
}

void kern_ref_conv(const kern_conv_args *a)
{
    for (int64_t f = 0; f < a->d; f++) {
        for (int64_t t = 0; t < KERN_LANES; t++) {
            float sum = 0.0f;
            for (int32_t j = 0; j < a->width; j++)
                if (j >= a->width - a->have[t]) sum += a->w[j * a->d + f] * conv_tap(a, f, t - (a->width - 1) + j);
            a->y[f * KERN_LANES + t] = silu(sum);
        }
    }
}

void kern_ref_conv_row(const kern_conv_row_args *a)
{
    for (int64_t f = 0; f < a->d; f++) {
        float *kept = a->state + f, sum = 0.0f;
        const float x = a->x[f];
        const int64_t last = a->width - 1;
        for (int64_t j = 0; j < last; j++) sum += a->w[j * a->d + f] * kept[j * a->d];
        for (int64_t j = 0; j + 1 < last; j++) kept[j * a->d] = kept[(j + 1) * a->d];
        kept[(last - 1) * a->d] = x;
        a->y[f] = silu(sum + a->w[last * a->d + f] * x);
    }
}
