/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx2_gemv_32.c: integer products of the 32-number blocks (layouts: tensor/quant_simple.c).
 *
 * A block: 32 codes times 32 q by vpmaddubsw and vpmaddwd into eight sums, exactly; these as f32 times both scales are added to the row's eight chains.
 * vpmaddubsw wants unsigned codes: those of Q4_0, Q5_0 and MXFP4 are taken as they are stored, offset, and the offset times the sum of q is taken off
 * at the end (`c`, four rows in one vector, as are the minima of Q4_1 and Q5_1); Q8_0 and IQ4_NL use |code| times q with the sign of the code, at most
 * 128 * 127 * 2, which is no overflow.
 */
#include "kern/avx2/kern_avx2_gemv.h"
#include "kern/kern_xq.h"

/* Eight sums of four products each of the block's codes, as dot32 wants them, with q. */
VEC_INLINE __m256i block_sums(const dtype type, const unsigned char *w, __m256i q)
{
    __m256i v;
    switch (type) {
    case DTYPE_Q4_0: v = gemv_nibbles(w + 2); break;
    case DTYPE_Q4_1: v = gemv_nibbles(w + 4); break;
    case DTYPE_Q5_0: v = _mm256_or_si256(gemv_nibbles(w + 6), gemv_fifths(w + 2)); break;
    case DTYPE_Q5_1: v = _mm256_or_si256(gemv_nibbles(w + 8), gemv_fifths(w + 4)); break;
    case DTYPE_MXFP4:
        v = _mm256_shuffle_epi8(_mm256_add_epi8(gemv_mxfp4_table(), _mm256_set1_epi8(12)), gemv_nibbles(w + 1));
        break;
    case DTYPE_IQ4_NL: v = _mm256_shuffle_epi8(gemv_iq4_table(), gemv_nibbles(w + 2)); break;
    default: v = gemv_load(w + 2); break;
    }
    if (type == DTYPE_Q8_0 || type == DTYPE_IQ4_NL) {
        q = _mm256_sign_epi8(q, v);
        v = _mm256_abs_epi8(v);
    }
    return _mm256_madd_epi16(_mm256_maddubs_epi16(v, q), _mm256_set1_epi16(1));
}

/* What is taken from a stored code. */
VEC_INLINE float code_offset(const dtype type)
{
    return type == DTYPE_Q4_0 ? 8.0f : type == DTYPE_Q5_0 ? 16.0f : type == DTYPE_MXFP4 ? 12.0f : 0.0f;
}

VEC_INLINE void dot32(const dtype type, const int64_t bytes, const unsigned char *w, int64_t gap, int64_t k,
                      const unsigned char *xq, float *sums)
{
    const bool minimum = type == DTYPE_Q4_1 || type == DTYPE_Q5_1;
    const float *d = (const float *)(const void *)(xq + kern_xq_d(k)),
                *sum = (const float *)(const void *)(xq + kern_xq32_sum(k));
    __m256 f0, f1, f2, f3;
    __m128 c = _mm_setzero_ps();
    f0 = f1 = f2 = f3 = _mm256_setzero_ps();
    for (int64_t b = 0; b < k / 32; b++, w += bytes) {
        const __m256i q = _mm256_load_si256((const __m256i *)(xq + 32 * b));
        const __m128 dx = _mm_broadcast_ss(d + b);
        const __m128 s = _mm_mul_ps(type == DTYPE_MXFP4 ? gemv_scales_e8m0(w, gap) : gemv_scales_half(w, gap), dx);
        const __m256 ss = _mm256_insertf128_ps(_mm256_castps128_ps256(s), s, 1);
        gemv_ask(w, gap);
        if (minimum) c = _mm_fmadd_ps(_mm_mul_ps(gemv_scales_half(w + 2, gap), dx), _mm_broadcast_ss(sum + b), c);
        if (code_offset(type) > 0.0f) c = _mm_fmadd_ps(s, _mm_broadcast_ss(sum + b), c);
        f0 = _mm256_fmadd_ps(_mm256_permute_ps(ss, 0x00), _mm256_cvtepi32_ps(block_sums(type, w, q)), f0);
        f1 = _mm256_fmadd_ps(_mm256_permute_ps(ss, 0x55), _mm256_cvtepi32_ps(block_sums(type, w + gap, q)), f1);
        f2 = _mm256_fmadd_ps(_mm256_permute_ps(ss, 0xaa), _mm256_cvtepi32_ps(block_sums(type, w + 2 * gap, q)), f2);
        f3 = _mm256_fmadd_ps(_mm256_permute_ps(ss, 0xff), _mm256_cvtepi32_ps(block_sums(type, w + 3 * gap, q)), f3);
    }
    __m128 all = gemv_sums(f0, f1, f2, f3);
    if (minimum) all = _mm_add_ps(all, c);
    if (code_offset(type) > 0.0f) all = _mm_fnmadd_ps(_mm_set1_ps(code_offset(type)), c, all);
    _mm_storeu_ps(sums, all);
}

#define DOT(type) GEMV_DOT(dot32, type)
GEMV_TYPES_32(DOT)

gemv_dot kern_avx2_dot_32(dtype type)
{
    switch (type) {
        GEMV_TYPES_32(GEMV_CASE)
    default: return NULL;
    }
}
