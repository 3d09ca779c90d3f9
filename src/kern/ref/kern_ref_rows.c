/* SPDX-License-Identifier: Apache-2.0
 * kern_ref_rows.c: the ways into and out of panels (gather, pool), and first_nonfinite. */
#include <math.h>
#include <string.h>

#include "kern/ref/kern_ref.h"
#include "tensor/quant.h"

void kern_ref_gather(const kern_gather_args *a)
{
    float sum[DTYPE_MAX_BLOCK], v[DTYPE_MAX_BLOCK];
    for (int32_t lane = 0; lane < KERN_LANES; lane++) {
        for (int64_t f0 = 0; f0 < a->d; f0 += DTYPE_MAX_BLOCK) {
            const int64_t n = a->d - f0 < DTYPE_MAX_BLOCK ? a->d - f0 : DTYPE_MAX_BLOCK;
            memset(sum, 0, sizeof(sum));
            for (int32_t s = 0; s < a->n_sources && lane < a->n_lanes; s++) {
                const kern_gather_source *src = &a->sources[s];
                const unsigned char *row =
                    (const unsigned char *)src->table + (size_t)src->index[lane] * dtype_bytes(src->type, a->d);
                dtype_to_f32(src->type, row + dtype_bytes(src->type, f0), (size_t)n, v);
                for (int64_t i = 0; i < n; i++) sum[i] = s ? sum[i] + v[i] : v[i];
            }
            for (int64_t i = 0; i < n; i++) a->y[(f0 + i) * KERN_LANES + lane] = sum[i] * a->scale;
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
    const int64_t numbers = (int64_t)dtype_block_numbers(type);
    if (dtype_is_block(type)) {
        const int64_t block = quant_first_nonfinite(type, x, n / numbers);
        return block < 0 ? -1 : block * numbers;
    }
    for (int64_t i = 0; i < n; i++) {
        float v;
        dtype_to_f32(type, p + dtype_bytes(type, i), 1, &v);
        if (!isfinite(v)) return i;
    }
    return -1;
}

void kern_ref_to_half(size_t n, const float *x, uint16_t *y)
{
    for (size_t i = 0; i < n; i++) y[i] = half_from_f32(x[i]);
}

void kern_ref_from_half(size_t n, const uint16_t *x, float *y)
{
    for (size_t i = 0; i < n; i++) y[i] = half_to_f32(x[i]);
}
