/* SPDX-License-Identifier: Apache-2.0
 * kern_ref_rows.c: the ways into and out of panels (gather, pool), and first_nonfinite. */
#include <math.h>
#include <string.h>

#include "kern/ref/kern_ref.h"

void kern_ref_gather(const kern_gather_args *a)
{
    for (int32_t lane = 0; lane < KERN_LANES; lane++) {
        for (int64_t f = 0; f < a->d; f++) {
            float sum = 0.0f;
            for (int32_t s = 0; s < a->n_sources && lane < a->n_lanes; s++) {
                const kern_gather_source *src = &a->sources[s];
                size_t at = ((size_t)src->index[lane] * (size_t)a->d + (size_t)f) * dtype_size(src->type);
                float v;
                dtype_to_f32(src->type, (const unsigned char *)src->table + at, 1, &v);
                sum = s ? sum + v : v;
            }
            a->y[f * KERN_LANES + lane] = sum * a->scale;
        }
    }
}

/* Feature f of token t. */
static float pool_at(const kern_pool_args *a, int64_t t, int64_t f)
{
    return a->x[t / KERN_LANES * a->x_stride + f * KERN_LANES + t % KERN_LANES];
}

/* What the sum over the tokens is divided by. */
static float pool_divisor(const kern_pool_args *a)
{
    const int64_t n = a->t1 - a->t0;
    if (a->mode == KERN_POOL_MEAN_SQRT) return sqrtf((float)n);
    return (float)(a->mode == KERN_POOL_WEIGHTED_MEAN ? n * a->first_weight + n * (n - 1) / 2 : n);
}

void kern_ref_pool(const kern_pool_args *a)
{
    for (int64_t f = 0; f < a->d; f++) {
        float v = 0.0f;
        switch (a->mode) {
        case KERN_POOL_LAST: v = pool_at(a, a->t1 - 1, f); break;
        case KERN_POOL_MAX:
            v = pool_at(a, a->t0, f);
            for (int64_t t = a->t0 + 1; t < a->t1; t++) v = pool_at(a, t, f) > v ? pool_at(a, t, f) : v;
            break;
        case KERN_POOL_WEIGHTED_MEAN:
            for (int64_t t = a->t0; t < a->t1; t++) v += (float)(a->first_weight + t - a->t0) * pool_at(a, t, f);
            v /= pool_divisor(a);
            break;
        case KERN_POOL_MEAN:
        case KERN_POOL_MEAN_SQRT:
            for (int64_t t = a->t0; t < a->t1; t++) v += pool_at(a, t, f);
            v /= pool_divisor(a);
            break;
        case KERN_POOL_FIRST:
        case KERN_POOL_COUNT: v = pool_at(a, a->t0, f); break;
        }
        a->y[f * KERN_LANES] = v;
    }
}

int64_t kern_ref_first_nonfinite(dtype type, const void *x, int64_t n)
{
    const unsigned char *p = x;
    for (int64_t i = 0; i < n; i++) {
        float v;
        dtype_to_f32(type, p + (size_t)i * dtype_size(type), 1, &v);
        if (!isfinite(v)) return i;
    }
    return -1;
}
