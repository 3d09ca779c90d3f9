/* SPDX-License-Identifier: Apache-2.0
 * kern_avx2_norm.c: layer norm, RMS norm and L2 norm over the features of each lane.
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
