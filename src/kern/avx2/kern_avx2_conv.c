/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx2_conv.c: the causal convolution of the gated delta net, and SiLU.
 *
 * The taps of a panel are its lanes moved up, with what is before coming in from below. Four taps, as all published models have, are made in
 * registers; others go through a row of 32 floats: 16 before, 16 of the panel. */
#include <string.h>

#include "kern/avx2/kern_avx2.h"
#include "kern/avx2/kern_avx2_math.h"

enum { MAX_WIDTH = 16 };

/* -1 in the lanes that have the tap `back` tokens before them. */
VEC_INLINE __m256 tap_mask(const int32_t *have, int32_t back)
{
    const __m256i n = _mm256_loadu_si256((const __m256i *)have);
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(n, _mm256_set1_epi32(back)));
}

/* Lanes moved up by n < 4; the lowest come from the top of `below`. */
#define LANES_UP(x, below_and_low, n) \
    _mm256_castsi256_ps(_mm256_alignr_epi8(_mm256_castps_si256(x), _mm256_castps_si256(below_and_low), 16 - 4 * (n)))

/* Half a panel: x with the four lanes below it; mask[back - 1] of taps 1 to 3 tokens back. */
VEC_INLINE __m256 conv4_half(const __m256 w[4], __m256 x, __m128 below, const __m256 mask[3], __m256 always)
{
    const __m256 low = _mm256_insertf128_ps(_mm256_castps128_ps256(below), _mm256_castps256_ps128(x), 1);
    __m256 sum = _mm256_mul_ps(w[0], _mm256_and_ps(mask[2], LANES_UP(x, low, 3)));
    sum = _mm256_fmadd_ps(w[1], _mm256_and_ps(mask[1], LANES_UP(x, low, 2)), sum);
    sum = _mm256_fmadd_ps(w[2], _mm256_and_ps(mask[0], LANES_UP(x, low, 1)), sum);
    return vec_silu(_mm256_fmadd_ps(w[3], _mm256_and_ps(always, x), sum));
}

static void conv4(const kern_conv_args *a, const float *before, int64_t feature, int64_t tap)
{
    __m256 mask[2][4];
    for (int h = 0; h < 2; h++)
        for (int back = 0; back < 4; back++) mask[h][back] = tap_mask(a->have + 8 * h, back);
    for (int64_t f = 0; f < a->d; f++) {
        const float *x = a->x + f * KERN_LANES, *b = before + f * feature;
        const __m256 low = _mm256_load_ps(x), high = _mm256_load_ps(x + 8);
        const __m128 below = _mm_setr_ps(0.0f, b[0], b[tap], b[2 * tap]);
        __m256 w[4];
        for (int j = 0; j < 4; j++) w[j] = _mm256_broadcast_ss(a->w + j * a->d + f);
        _mm256_store_ps(a->y + f * KERN_LANES, conv4_half(w, low, below, mask[0] + 1, mask[0][0]));
        _mm256_store_ps(a->y + f * KERN_LANES + 8,
                        conv4_half(w, high, _mm256_extractf128_ps(low, 1), mask[1] + 1, mask[1][0]));
    }
}

void kern_avx2_conv(const kern_conv_args *a)
{
    static const float none = 0.0f; /* read where there is nothing before; it counts for no lane */
    const float *before = a->before ? a->before : &none;
    const int64_t feature = a->before ? a->before_feature : 0, tap_step = a->before ? a->before_tap : 0;
    const int32_t last = a->width - 1;
    if (a->width == 4) {
        conv4(a, before, feature, tap_step);
        return;
    }
    _Alignas(64) float row[2 * KERN_LANES] = {0};
    for (int64_t f = 0; f < a->d; f++) {
        for (int32_t i = 0; i < last; i++) row[KERN_LANES - last + i] = before[f * feature + i * tap_step];
        memcpy(row + KERN_LANES, a->x + f * KERN_LANES, KERN_LANES * sizeof(float));
        for (int h = 0; h < KERN_LANES; h += 8) {
            __m256 sum = _mm256_setzero_ps();
            for (int32_t j = 0; j < a->width; j++) {
                const __m256 tap = _mm256_loadu_ps(row + KERN_LANES + h - last + j);
                sum = _mm256_fmadd_ps(_mm256_broadcast_ss(a->w + j * a->d + f),
                                      _mm256_and_ps(tap_mask(a->have + h, last - j), tap), sum);
            }
            _mm256_store_ps(a->y + f * KERN_LANES + h, vec_silu(sum));
        }
    }
}

/* ------------------------------------------------------------------------------ one token */

/* Eight features, or the last ones: those of the mask. Plain moves where they do: a masked store takes long on some machines. */
VEC_INLINE __m256 load8(const bool some, __m256i mask, const float *p)
{
    return some ? _mm256_maskload_ps(p, mask) : _mm256_loadu_ps(p);
}

VEC_INLINE void store8(const bool some, __m256i mask, float *p, __m256 x)
{
    if (some)
        _mm256_maskstore_ps(p, mask, x);
    else
        _mm256_storeu_ps(p, x);
}

VEC_INLINE void conv_row8(const bool some, const kern_conv_row_args *a, int64_t f, __m256i mask)
{
    const __m256 x = load8(some, mask, a->x + f);
    const int32_t last = a->width - 1;
    float *kept = a->state + f;
    __m256 sum = _mm256_setzero_ps();
    for (int32_t j = 0; j < last; j++, kept += a->d) {
        const __m256 tap = load8(some, mask, kept);
        sum = _mm256_fmadd_ps(load8(some, mask, a->w + j * a->d + f), tap, sum);
        if (j > 0) store8(some, mask, kept - a->d, tap);
    }
    store8(some, mask, kept - a->d, x);
    sum = _mm256_fmadd_ps(load8(some, mask, a->w + last * a->d + f), x, sum);
    store8(some, mask, a->y + f, vec_silu(sum));
}

void kern_avx2_conv_row(const kern_conv_row_args *a)
{
    const int64_t whole = a->d / 8 * 8;
    const __m256i mask =
        _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)(a->d - whole)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    for (int64_t f = 0; f < whole; f += 8) conv_row8(false, a, f, mask);
    if (whole < a->d) conv_row8(true, a, whole, mask);
}
