/* SPDX-License-Identifier: Apache-2.0
 * kern_avx2_linear_q.c: products of blocks with panels in 8 bits (kern_avx512_linear_q.h) on pairs of AVX2 vectors, and these panels. */
#define KERN_AVX512_EMULATED
#include "kern/avx512/kern_avx512_linear_q.h"

#include "kern/avx2/kern_avx2_math.h"

void kern_avx2_linear_q(const kern_linear_args *a) { linear_q(a); }

/* Eight lanes of `n` numbers: 127 / the largest magnitude, 0 where that is tiny or the block holds a NaN or an infinity; the scale. */
VEC_INLINE __m256 lanes_inverse(const float *x, int n, __m256 *d)
{
    const __m256 infinity = _mm256_set1_ps(__builtin_inff());
    __m256 largest = _mm256_setzero_ps(), bad = _mm256_setzero_ps();
    for (int i = 0; i < n; i++) {
        const __m256 v = vec_abs(_mm256_load_ps(x + i * KERN_LANES));
        largest = _mm256_max_ps(largest, v);
        bad = _mm256_or_ps(bad, _mm256_cmp_ps(v, infinity, _CMP_NLT_UQ));
    }
    const __m256 zero = _mm256_or_ps(bad, _mm256_cmp_ps(largest, _mm256_set1_ps(KERN_XQ_TINY), _CMP_LE_OQ));
    const __m256 scale = _mm256_andnot_ps(zero, _mm256_div_ps(largest, _mm256_set1_ps(127.0f)));
    *d = _mm256_blendv_ps(scale, _mm256_set1_ps(__builtin_nanf("")), bad);
    return _mm256_andnot_ps(zero, _mm256_div_ps(_mm256_set1_ps(127.0f), largest));
}

/* q of one number of eight lanes; NaN and infinity times 0 are no numbers: 0. */
VEC_INLINE __m256i lanes_q(const float *x, __m256 inverse)
{
    const __m256 v = _mm256_mul_ps(_mm256_load_ps(x), inverse);
    return _mm256_cvtps_epi32(_mm256_and_ps(v, _mm256_cmp_ps(v, v, _CMP_ORD_Q)));
}

/* Half a panel. */
VEC_INLINE void quantize_half(const int block, const int part, int64_t k, const float *x, unsigned char *u, float *d,
                              float *sum)
{
    const __m256i middle = _mm256_set1_epi32((int)0x80808080u), byte = _mm256_set1_epi32(0xff);
    for (int64_t b = 0; b < k / block; b++, d += KERN_LANES) {
        __m256 scale;
        const __m256 inverse = lanes_inverse(x, block, &scale);
        _mm256_store_ps(d, scale);
        for (int i = 0; i < block; i += part, sum += KERN_LANES) {
            __m256i total = _mm256_setzero_si256();
            for (int j = 0; j < part; j += 4, x += 4 * KERN_LANES, u += 64) {
                const __m256i q0 = lanes_q(x, inverse), q1 = lanes_q(x + KERN_LANES, inverse);
                const __m256i q2 = lanes_q(x + 2 * KERN_LANES, inverse), q3 = lanes_q(x + 3 * KERN_LANES, inverse);
                total = _mm256_add_epi32(total, _mm256_add_epi32(_mm256_add_epi32(q0, q1), _mm256_add_epi32(q2, q3)));
                const __m256i low =
                    _mm256_or_si256(_mm256_and_si256(q0, byte), _mm256_slli_epi32(_mm256_and_si256(q1, byte), 8));
                const __m256i high =
                    _mm256_or_si256(_mm256_slli_epi32(_mm256_and_si256(q2, byte), 16), _mm256_slli_epi32(q3, 24));
                _mm256_store_si256((__m256i *)u, _mm256_xor_si256(_mm256_or_si256(low, high), middle)); /* q + 128 */
            }
            _mm256_store_ps(sum, _mm256_mul_ps(scale, _mm256_cvtepi32_ps(total)));
        }
    }
}

void kern_avx2_quantize_panel(dtype type, int64_t k, const float *x, void *xq)
{
    const kern_xq_kind kind = kern_xq_kind_of(type);
    unsigned char *u = xq;
    float *d = (float *)(void *)(u + kern_xq_panel_d(k)), *sum = (float *)(void *)(u + kern_xq_panel_sum(kind, k));
    for (int half = 0; half < KERN_LANES; half += 8) {
        if (kind == KERN_XQ_32)
            quantize_half(32, 32, k, x + half, u + 4 * half, d + half, sum + half);
        else
            quantize_half(256, 16, k, x + half, u + 4 * half, d + half, sum + half);
    }
}
