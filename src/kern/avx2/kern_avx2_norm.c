/* SPDX-License-Identifier: Apache-2.0
 * kern_avx2_norm.c: layer norm and L2 norm over the features of each lane.
 *
 * Sums run in four chains (feature % 4) that are added as (0 + 1) + (2 + 3): one chain alone waits for the latency of
 * its additions. The order depends on d only. */
#include "kern/avx2/kern_avx2.h"
#include "kern/avx2/kern_avx2_math.h"

typedef struct chains {
    __m256 c0, c1, c2, c3;
} chains;

VEC_INLINE chains chains_zero(void)
{
    const __m256 z = _mm256_setzero_ps();
    return (chains){z, z, z, z};
}

VEC_INLINE __m256 chains_sum(chains c) { return _mm256_add_ps(_mm256_add_ps(c.c0, c.c1), _mm256_add_ps(c.c2, c.c3)); }

/* v = x + r into y, its sum returned. Eight lanes; rows are 16 floats apart. */
VEC_INLINE __m256 sum_pass(int64_t d, const float *x, const float *r, float *y)
{
    chains s = chains_zero();
    int64_t i = 0;
#define ONE(c, o)                                                      \
    {                                                                  \
        __m256 v = _mm256_load_ps(x + (i + o) * 16);                   \
        if (r) v = _mm256_add_ps(v, _mm256_load_ps(r + (i + o) * 16)); \
        _mm256_store_ps(y + (i + o) * 16, v);                          \
        c = _mm256_add_ps(c, v);                                       \
    }
    for (; i + 4 <= d; i += 4) {
        ONE(s.c0, 0)
        ONE(s.c1, 1)
        ONE(s.c2, 2)
        ONE(s.c3, 3)
    }
    for (; i < d; i++) ONE(s.c0, 0)
#undef ONE
    return chains_sum(s);
}

/* Sum of (y - mean)^2. */
VEC_INLINE __m256 square_pass(int64_t d, const float *y, __m256 mean)
{
    chains s = chains_zero();
    int64_t i = 0;
#define ONE(c, o)                                                               \
    {                                                                           \
        const __m256 v = _mm256_sub_ps(_mm256_load_ps(y + (i + o) * 16), mean); \
        c = _mm256_fmadd_ps(v, v, c);                                           \
    }
    for (; i + 4 <= d; i += 4) {
        ONE(s.c0, 0)
        ONE(s.c1, 1)
        ONE(s.c2, 2)
        ONE(s.c3, 3)
    }
    for (; i < d; i++) ONE(s.c0, 0)
#undef ONE
    return chains_sum(s);
}

static void layer_norm_half(const kern_layer_norm_args *a, const float *x, const float *r, float *y)
{
    const __m256 count = _mm256_set1_ps((float)a->d), one = _mm256_set1_ps(1.0f);
    const __m256 mean = _mm256_div_ps(r ? sum_pass(a->d, x, r, y) : sum_pass(a->d, x, NULL, y), count);
    const __m256 variance = _mm256_div_ps(square_pass(a->d, y, mean), count);
    const __m256 inverse = _mm256_div_ps(one, _mm256_sqrt_ps(_mm256_add_ps(variance, _mm256_set1_ps(a->eps))));
    for (int64_t i = 0; i < a->d; i++) {
        const __m256 v = _mm256_mul_ps(_mm256_sub_ps(_mm256_load_ps(y + i * 16), mean), inverse);
        _mm256_store_ps(y + i * 16, _mm256_fmadd_ps(v, _mm256_set1_ps(a->gamma[i]), _mm256_set1_ps(a->beta[i])));
    }
}

void kern_avx2_layer_norm(const kern_layer_norm_args *a)
{
    for (int64_t p = a->p0; p < a->p1; p++) {
        const int lanes = p == a->p1 - 1 ? a->last_lanes : KERN_LANES;
        const float *x = a->x + p * a->x_stride, *r = a->r ? a->r + p * a->r_stride : NULL;
        for (int h = 0; h < lanes; h += 8) layer_norm_half(a, x + h, r ? r + h : NULL, a->y + p * a->y_stride + h);
    }
}

static void l2_normalize_half(int64_t d, float *x)
{
    const __m256 sum = square_pass(d, x, _mm256_setzero_ps());
    const __m256 norm = _mm256_max_ps(_mm256_set1_ps(1e-12f), _mm256_sqrt_ps(sum)); /* NaN stays */
    for (int64_t i = 0; i < d; i++) _mm256_store_ps(x + i * 16, _mm256_div_ps(_mm256_load_ps(x + i * 16), norm));
}

void kern_avx2_l2_normalize(int64_t d, int32_t lanes, float *x)
{
    for (int h = 0; h < lanes; h += 8) l2_normalize_half(d, x + h);
}
