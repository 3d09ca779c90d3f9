/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx2_math.h: elementary functions on eight floats. `linear`, `map` and `attention` use these and no others, so
 * a value has the same bits wherever it is computed.
 *
 * exp: Cody & Waite reduction x = n ln 2 + r, |r| <= ln 2 / 2, then e^r = 1 + r + r^2 q(r); 2^p needs no reduction
 * but n and r. Polynomials are weighted minimax fits with a relative error below 4e-9. n comes from adding 1.5 *
 * 2^23, which leaves it in the low bits of the sum. */
#ifndef LATH_KERN_AVX2_MATH_H
#define LATH_KERN_AVX2_MATH_H

#include <immintrin.h>

#include "kern/kern.h"

#define VEC_INLINE static inline __attribute__((always_inline))

/* Eight elements of a weight type as f32; `type` is a constant where speed matters. The 8-bit floats go by way of half
 * (dtype.c says how). */
VEC_INLINE __m256 vec_load(const dtype type, const unsigned char *p)
{
    if (type == DTYPE_F32) return _mm256_castsi256_ps(_mm256_loadu_si256((const __m256i *)p));
    if (type == DTYPE_F16) return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
    if (type == DTYPE_BF16)
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
    const __m128i bits = _mm_loadl_epi64((const __m128i *)p), high = _mm_unpacklo_epi8(_mm_setzero_si128(), bits);
    if (type == DTYPE_F8_E5M2) return _mm256_cvtph_ps(high);
    const __m128i rest = _mm_and_si128(_mm_srli_epi16(high, 1), _mm_set1_epi16(0x3f80));
    const __m128i nan = _mm_and_si128(_mm_cmpeq_epi16(rest, _mm_set1_epi16(0x3f80)), _mm_set1_epi16(0x7e00));
    const __m128i half = _mm_or_si128(_mm_or_si128(rest, nan), _mm_and_si128(high, _mm_set1_epi16((short)0x8000)));
    return _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(256.0f));
}

VEC_INLINE __m256 vec_abs(__m256 x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x); }

/* r[i][j] and r[j][i] change places. */
VEC_INLINE void vec_transpose8(__m256 r[8])
{
    const __m256 t0 = _mm256_unpacklo_ps(r[0], r[1]), t1 = _mm256_unpackhi_ps(r[0], r[1]);
    const __m256 t2 = _mm256_unpacklo_ps(r[2], r[3]), t3 = _mm256_unpackhi_ps(r[2], r[3]);
    const __m256 t4 = _mm256_unpacklo_ps(r[4], r[5]), t5 = _mm256_unpackhi_ps(r[4], r[5]);
    const __m256 t6 = _mm256_unpacklo_ps(r[6], r[7]), t7 = _mm256_unpackhi_ps(r[6], r[7]);
    const __m256 u0 = _mm256_shuffle_ps(t0, t2, 0x44), u1 = _mm256_shuffle_ps(t0, t2, 0xee);
    const __m256 u2 = _mm256_shuffle_ps(t1, t3, 0x44), u3 = _mm256_shuffle_ps(t1, t3, 0xee);
    const __m256 u4 = _mm256_shuffle_ps(t4, t6, 0x44), u5 = _mm256_shuffle_ps(t4, t6, 0xee);
    const __m256 u6 = _mm256_shuffle_ps(t5, t7, 0x44), u7 = _mm256_shuffle_ps(t5, t7, 0xee);
    r[0] = _mm256_permute2f128_ps(u0, u4, 0x20);
    r[1] = _mm256_permute2f128_ps(u1, u5, 0x20);
    r[2] = _mm256_permute2f128_ps(u2, u6, 0x20);
    r[3] = _mm256_permute2f128_ps(u3, u7, 0x20);
    r[4] = _mm256_permute2f128_ps(u0, u4, 0x31);
    r[5] = _mm256_permute2f128_ps(u1, u5, 0x31);
    r[6] = _mm256_permute2f128_ps(u2, u6, 0x31);
    r[7] = _mm256_permute2f128_ps(u3, u7, 0x31);
}

/* c0 + c1 x + c2 x^2 ...: one Horner step, p * x + c. */
VEC_INLINE __m256 vec_step(__m256 p, __m256 x, float c) { return _mm256_fmadd_ps(p, x, _mm256_set1_ps(c)); }

/* c0 + c1 x. */
VEC_INLINE __m256 vec_pair(__m256 x, float c0, float c1)
{
    return _mm256_fmadd_ps(_mm256_set1_ps(c1), x, _mm256_set1_ps(c0));
}

/* Adding it rounds to an integer and leaves that integer in the low bits. */
#define VEC_MAGIC 12582912.0f

/* r = x - n ln 2, |r| <= ln 2 / 2; q with e^r = 1 + r + r^2 q; n + VEC_MAGIC in *shifted. */
VEC_INLINE __m256 vec_exp_reduce(__m256 x, __m256 *shifted, __m256 *q)
{
    const __m256 t = _mm256_fmadd_ps(x, _mm256_set1_ps(1.44269504f), _mm256_set1_ps(VEC_MAGIC));
    const __m256 n = _mm256_sub_ps(t, _mm256_set1_ps(VEC_MAGIC));
    __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0x1.62e4p-1f), x); /* exact: 14 bits times 8 */
    r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0x1.7f7d1cp-20f), r);
    __m256 p = _mm256_set1_ps(0.0013950634747743607f);
    p = vec_step(p, r, 0.00836897362023592f);
    p = vec_step(p, r, 0.04166620224714279f);
    p = vec_step(p, r, 0.166665181517601f);
    *q = vec_step(p, r, 0.5f);
    *shifted = t;
    return r;
}

/* 2^p for -126 <= p < 127: 2^n 2^r with 2^r = 1 + r e(r), |r| <= 1/2; n is added to the exponent field. */
VEC_INLINE __m256 vec_pow2(__m256 p)
{
    const __m256 t = _mm256_add_ps(p, _mm256_set1_ps(VEC_MAGIC));
    const __m256 r = _mm256_sub_ps(p, _mm256_sub_ps(t, _mm256_set1_ps(VEC_MAGIC)));
    const __m256 r2 = _mm256_mul_ps(r, r);
    const __m256 e12 = vec_pair(r, 0.6931471824645996f, 0.24022650718688965f);
    const __m256 e34 = vec_pair(r, 0.055503278970718384f, 0.009618003852665424f);
    const __m256 e56 = vec_pair(r, 0.001340027549304068f, 0.0001547630236018449f);
    __m256 e = _mm256_fmadd_ps(_mm256_fmadd_ps(e56, r2, e34), r2, e12);
    e = vec_step(e, r, 1.0f);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(e), _mm256_slli_epi32(_mm256_castps_si256(t), 23)));
}

/* 2^p for p < 127, exactly 0 for -infinity and below -125 (2.4e-38); NaN stays. What softmax weighs with. */
VEC_INLINE __m256 vec_pow2_weight(__m256 p)
{
    return _mm256_and_ps(vec_pow2(p), _mm256_cmp_ps(p, _mm256_set1_ps(-125.0f), _CMP_NLT_UQ));
}

/* e^x for every x: subnormal results are right, 0 below them, infinity above 88.73; NaN stays. */
VEC_INLINE __m256 vec_exp(__m256 x)
{
    const __m256 one = _mm256_set1_ps(1.0f);
    __m256 t, q;
    /* NaN is the second operand of both: it passes. */
    x = _mm256_max_ps(_mm256_set1_ps(-104.0f), _mm256_min_ps(_mm256_set1_ps(89.0f), x));
    const __m256 r = vec_exp_reduce(x, &t, &q);
    /* 1 + r in two parts: one rounding of the sum instead of two. */
    const __m256 high = _mm256_add_ps(one, r), low = _mm256_sub_ps(r, _mm256_sub_ps(high, one));
    const __m256 p = _mm256_add_ps(high, _mm256_fmadd_ps(q, _mm256_mul_ps(r, r), low));
    /* 2^n in two factors, since n reaches from -150 to 128. */
    const __m256i n = _mm256_sub_epi32(_mm256_castps_si256(t), _mm256_castps_si256(_mm256_set1_ps(VEC_MAGIC)));
    const __m256i half = _mm256_srai_epi32(n, 1), bias = _mm256_set1_epi32(127);
    const __m256i s1 = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    const __m256i s2 = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(n, half), bias), 23);
    return _mm256_mul_ps(_mm256_mul_ps(p, _mm256_castsi256_ps(s1)), _mm256_castsi256_ps(s2));
}

/* 1 / (1 + e^-x) as n / (1 + e), e = e^-|x|: nothing overflows and small results are right down to subnormals. */
VEC_INLINE __m256 vec_sigmoid(__m256 x)
{
    const __m256 one = _mm256_set1_ps(1.0f);
    const __m256 e = vec_exp(_mm256_or_ps(_mm256_set1_ps(-0.0f), x));
    return _mm256_div_ps(_mm256_blendv_ps(one, e, x), _mm256_add_ps(one, e));
}

/* x / (1 + e^-v). Left of v = -88.7 the exponential is infinite and the result -0. */
VEC_INLINE __m256 vec_gate(__m256 x, __m256 v)
{
    const __m256 e = vec_exp(_mm256_xor_ps(_mm256_set1_ps(-0.0f), v));
    return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0f), e));
}

/* Enough to be -0, and no infinity over infinity. */
VEC_INLINE __m256 vec_far_left(__m256 x) { return _mm256_max_ps(_mm256_set1_ps(-200.0f), x); }

VEC_INLINE __m256 vec_silu(__m256 x)
{
    x = vec_far_left(x);
    return vec_gate(x, x);
}

/* x sigmoid(2u) = x (1 + tanh u) / 2, u = sqrt(2 / pi) (x + 0.044715 x^3). */
VEC_INLINE __m256 vec_gelu_tanh(__m256 x)
{
    x = vec_far_left(x);
    const __m256 cubic = vec_step(_mm256_mul_ps(_mm256_set1_ps(0.044715f), x), x, 1.0f);
    return vec_gate(x, _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(1.5957691216057308f), x), cubic));
}

/* x Phi(x) = max(x, 0) - |x| Phi(-|x|), and Phi(-a) = 2^P(a) / 2 with P(a) = log2 erfc(a / sqrt 2) = a Q(a): Q is
 * smooth, a minimax polynomial of degree 9 on [0, 5.5] (error of the product below 1e-9), and falls for ever behind.
 * No division, and the tail keeps its relative accuracy. */
VEC_INLINE __m256 vec_gelu(__m256 x)
{
    const __m256 a = _mm256_min_ps(_mm256_set1_ps(13.0f), vec_abs(x));
    /* In pairs (Estrin): a shorter chain than Horner's ten steps. */
    const __m256 a2 = _mm256_mul_ps(a, a), a4 = _mm256_mul_ps(a2, a2);
    const __m256 q01 = vec_pair(a, -1.151104211807251f, -0.45922282338142395f);
    const __m256 q23 = vec_pair(a, -0.05242511257529259f, 0.0069032334722578526f);
    const __m256 q45 = vec_pair(a, 5.68195573578123e-05f, -0.0003201693471055478f);
    const __m256 q67 = vec_pair(a, 9.307115396950394e-05f, -1.487202007410815e-05f);
    const __m256 q89 = vec_pair(a, 1.3470355497702258e-06f, -5.3993421289533217e-08f);
    const __m256 q03 = _mm256_fmadd_ps(q23, a2, q01), q47 = _mm256_fmadd_ps(q67, a2, q45);
    const __m256 q = _mm256_fmadd_ps(_mm256_fmadd_ps(q89, a4, q47), a4, q03);
    const __m256 e = vec_pow2(_mm256_max_ps(_mm256_set1_ps(-125.0f), _mm256_mul_ps(q, a)));
    const __m256 tail = _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(0.5f), a), e);
    return _mm256_sub_ps(_mm256_max_ps(_mm256_setzero_ps(), x), tail);
}

/* x + x^3 p(x^2) up to 0.55, (1 - e) / (1 + e) with e = exp(-2|x|) above. */
VEC_INLINE __m256 vec_tanh(__m256 x)
{
    const __m256 a = vec_abs(x), one = _mm256_set1_ps(1.0f), z = _mm256_mul_ps(x, x);
    __m256 p = _mm256_set1_ps(-0.0059057967737317085f);
    p = vec_step(p, z, 0.020805329084396362f);
    p = vec_step(p, z, -0.05378666892647743f);
    p = vec_step(p, z, 0.13331958651542664f);
    p = vec_step(p, z, -0.33333298563957214f);
    p = _mm256_fmadd_ps(_mm256_mul_ps(p, z), x, x);
    const __m256 e = vec_pow2_weight(_mm256_mul_ps(_mm256_set1_ps(-2.88539008f), a));
    const __m256 far = _mm256_div_ps(_mm256_sub_ps(one, e), _mm256_add_ps(one, e));
    const __m256 is_far = _mm256_cmp_ps(a, _mm256_set1_ps(0.55f), _CMP_GT_OQ);
    return _mm256_blendv_ps(p, _mm256_or_ps(far, _mm256_and_ps(x, _mm256_set1_ps(-0.0f))), is_far);
}

/* cap tanh(x by), by = scale / cap: a score of attention between -cap and cap. */
VEC_INLINE __m256 vec_softcap(__m256 x, float by, float cap)
{
    return _mm256_mul_ps(_mm256_set1_ps(cap), vec_tanh(_mm256_mul_ps(_mm256_set1_ps(by), x)));
}

VEC_INLINE __m256 vec_map(const kern_fn fn, __m256 x)
{
    switch (fn) {
    case KERN_FN_RELU: return _mm256_max_ps(_mm256_setzero_ps(), x);
    case KERN_FN_GELU: return vec_gelu(x);
    case KERN_FN_GELU_TANH: return vec_gelu_tanh(x);
    case KERN_FN_SILU: return vec_silu(x);
    case KERN_FN_TANH: return vec_tanh(x);
    case KERN_FN_SIGMOID: return vec_sigmoid(x);
    case KERN_FN_EXP: return vec_exp(x);
    case KERN_FN_NONE:
    case KERN_FN_COUNT: break;
    }
    return x;
}

#endif
