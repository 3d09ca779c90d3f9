/* SPDX-License-Identifier: Apache-2.0
 * kern_avx2_norm.c: layer norm, RMS norm and L2 norm over the features of each lane.
 *
 * Sums run in four chains (feature % 4) that are added as (0 + 1) + (2 + 3): one chain alone waits for the latency of
 * its additions. The order depends on d only. */
#include <math.h>

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

/* What every norm of one group and one half panel works on; v = x + r goes to y, or to the caller's sum. */
typedef struct norm_half {
    const float *x, *r;
    float *v, *y;
} norm_half;

VEC_INLINE __m256 add_pass(int64_t d, const norm_half *h)
{
    return h->r ? sum_pass(d, h->x, h->r, h->v) : sum_pass(d, h->x, NULL, h->v);
}

VEC_INLINE __m256 norm_inverse(const kern_norm_args *a, __m256 squares)
{
    const __m256 mean = _mm256_div_ps(squares, _mm256_set1_ps((float)a->d));
    return _mm256_div_ps(_mm256_set1_ps(1.0f), _mm256_sqrt_ps(_mm256_add_ps(mean, _mm256_set1_ps(a->eps))));
}

static void layer_norm_half(const kern_norm_args *a, const norm_half *h)
{
    const __m256 mean = _mm256_div_ps(add_pass(a->d, h), _mm256_set1_ps((float)a->d));
    const __m256 inverse = norm_inverse(a, square_pass(a->d, h->v, mean));
    for (int64_t i = 0; i < a->d; i++) {
        const __m256 v = _mm256_mul_ps(_mm256_sub_ps(_mm256_load_ps(h->v + i * 16), mean), inverse);
        const __m256 beta = a->beta ? _mm256_set1_ps(a->beta[i]) : _mm256_setzero_ps();
        _mm256_store_ps(h->y + i * 16, _mm256_fmadd_ps(v, _mm256_set1_ps(a->gamma[i]), beta));
    }
}

static void rms_norm_half(const kern_norm_args *a, const norm_half *h)
{
    const float *v = h->x;
    if (h->r || h->v != h->y) {
        add_pass(a->d, h);
        v = h->v;
    }
    const __m256 inverse = norm_inverse(a, square_pass(a->d, v, _mm256_setzero_ps()));
    for (int64_t i = 0; i < a->d; i++) {
        const __m256 scaled = _mm256_mul_ps(_mm256_load_ps(v + i * 16), inverse);
        _mm256_store_ps(h->y + i * 16, _mm256_mul_ps(scaled, _mm256_set1_ps(a->gamma[i])));
    }
}

VEC_INLINE void norm_panels(const kern_norm_args *a, void (*norm)(const kern_norm_args *a, const norm_half *h))
{
    for (int64_t p = a->p0; p < a->p1; p++) {
        const int lanes = p == a->p1 - 1 ? a->last_lanes : KERN_LANES;
        for (int64_t at = 0; at < a->n_groups * a->d * KERN_LANES; at += a->d * KERN_LANES) {
            for (int64_t i = at; i < at + lanes; i += 8) {
                norm_half h = {.x = a->x + p * a->x_stride + i, .y = a->y + p * a->y_stride + i};
                if (a->r) h.r = a->r + p * a->r_stride + i;
                h.v = a->sum ? a->sum + p * a->x_stride + i : h.y;
                norm(a, &h);
            }
        }
    }
}

void kern_avx2_layer_norm(const kern_norm_args *a) { norm_panels(a, layer_norm_half); }

void kern_avx2_rms_norm(const kern_norm_args *a) { norm_panels(a, rms_norm_half); }

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

/* ----------------------------------------------------------------------------------------------------------- plain rows */

/* Eight of n elements from i on; 0 behind the end. */
VEC_INLINE __m256i row_mask(int64_t left)
{
    const __m256i i = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)(left < 8 ? left : 8)), i);
}

VEC_INLINE float lanes_sum(__m256 v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/* v = x + r into `to`; the sum of (v - shift)^power, power 1 or 2, in four chains of eight lanes. */
VEC_INLINE float row_sum(int64_t d, const float *x, const float *r, float *to, float shift, const int power)
{
    chains c = chains_zero();
    const __m256 s = _mm256_set1_ps(shift);
    for (int64_t i = 0; i < d; i += 8) {
        const __m256i mask = row_mask(d - i);
        __m256 v = _mm256_maskload_ps(x + i, mask);
        if (r) v = _mm256_add_ps(v, _mm256_maskload_ps(r + i, mask));
        if (to) _mm256_maskstore_ps(to + i, mask, v);
        v = _mm256_and_ps(_mm256_sub_ps(v, s), _mm256_castsi256_ps(mask));
        if (power == 2) v = _mm256_mul_ps(v, v);
        switch (i / 8 % 4) {
        case 0: c.c0 = _mm256_add_ps(c.c0, v); break;
        case 1: c.c1 = _mm256_add_ps(c.c1, v); break;
        case 2: c.c2 = _mm256_add_ps(c.c2, v); break;
        default: c.c3 = _mm256_add_ps(c.c3, v); break;
        }
    }
    return lanes_sum(chains_sum(c));
}

/* y = (v - shift) inverse gamma + beta. */
VEC_INLINE void row_scale(const kern_norm_row_args *a, const float *v, float shift, float inverse, float *y)
{
    const __m256 s = _mm256_set1_ps(shift), scale = _mm256_set1_ps(inverse);
    for (int64_t i = 0; i < a->d; i += 8) {
        const __m256i mask = row_mask(a->d - i);
        __m256 x = _mm256_mul_ps(_mm256_sub_ps(_mm256_maskload_ps(v + i, mask), s), scale);
        x = _mm256_mul_ps(x, _mm256_maskload_ps(a->gamma + i, mask));
        if (a->beta) x = _mm256_add_ps(x, _mm256_maskload_ps(a->beta + i, mask));
        _mm256_maskstore_ps(y + i, mask, x);
    }
}

VEC_INLINE void norm_row(const kern_norm_row_args *a, const bool centred)
{
    for (int64_t at = 0; at < a->n_groups * a->d; at += a->d) {
        const float *r = a->r ? a->r + at : NULL;
        const float d = (float)a->d;
        float *v = a->sum ? a->sum + at : a->y + at, mean = 0.0f, squares;
        if (centred) {
            mean = row_sum(a->d, a->x + at, r, v, 0.0f, 1) / d;
            squares = row_sum(a->d, v, NULL, NULL, mean, 2);
        } else {
            squares = row_sum(a->d, a->x + at, r, v, 0.0f, 2);
        }
        row_scale(a, v, mean, 1.0f / sqrtf(squares / d + a->eps), a->y + at);
    }
}

void kern_avx2_layer_norm_row(const kern_norm_row_args *a) { norm_row(a, true); }

void kern_avx2_rms_norm_row(const kern_norm_row_args *a) { norm_row(a, false); }
