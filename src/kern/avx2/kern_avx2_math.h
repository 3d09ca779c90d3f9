/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx2_math.h: elementary functions on eight floats. `linear`, `map` and `attention` use these and no others, so a value has the same
 * bits wherever it is computed.
 *
 * exp: Cody & Waite reduction x = n ln 2 + r, |r| <= ln 2 / 2, then e^r = 1 + r + r^2 q(r); polynomials by weighted minimax fit, their error is
 * below 4e-9 relative. n comes from adding 1.5 * 2^23, which leaves it in the low bits of the sum.
 */
#ifndef LATH_KERN_AVX2_MATH_H
#define LATH_KERN_AVX2_MATH_H

#include <immintrin.h>

#include "kern/kern.h"

#define VEC_INLINE static inline __attribute__((always_inline))

VEC_INLINE __m256 vec_abs(__m256 x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x); }

/* c0 + c1 x + c2 x^2 ...: one Horner step, p * x + c. */
VEC_INLINE __m256 vec_step(__m256 p, __m256 x, float c) { return _mm256_fmadd_ps(p, x, _mm256_set1_ps(c)); }

/* Adding it rounds to an integer and leaves that integer in the low bits. */
#define VEC_MAGIC 12582912.0f

/* e^r for |r| <= ln 2 / 2, and round(x log2 e) + VEC_MAGIC in *shifted. */
VEC_INLINE __m256 vec_exp_reduced(__m256 x, __m256 *shifted)
{
    const __m256 t = _mm256_fmadd_ps(x, _mm256_set1_ps(1.44269504f), _mm256_set1_ps(VEC_MAGIC));
    const __m256 n = _mm256_sub_ps(t, _mm256_set1_ps(VEC_MAGIC));
    __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0x1.62e4p-1f), x); /* exact: 14 bits times 8 */
    r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0x1.7f7d1cp-20f), r);
    __m256 q = _mm256_set1_ps(0.0013950634747743607f);
    q = vec_step(q, r, 0.00836897362023592f);
    q = vec_step(q, r, 0.04166620224714279f);
    q = vec_step(q, r, 0.166665181517601f);
    q = vec_step(q, r, 0.5f);
    *shifted = t;
    return _mm256_add_ps(_mm256_fmadd_ps(q, _mm256_mul_ps(r, r), r), _mm256_set1_ps(1.0f));
}

/* p * 2^n for normal results, n in the low bits of `shifted`: added to the exponent field. */
VEC_INLINE __m256 vec_scale_normal(__m256 p, __m256 shifted)
{
    return _mm256_castsi256_ps(
        _mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_castps_si256(shifted), 23)));
}

/* e^x for every x: subnormal results are right, 0 below them, infinity above 88.73; NaN stays. */
VEC_INLINE __m256 vec_exp(__m256 x)
{
    __m256 t;
    x = _mm256_max_ps(_mm256_set1_ps(-104.0f),
                      _mm256_min_ps(_mm256_set1_ps(89.0f), x)); /* NaN is the second operand: it passes */
    const __m256 p = vec_exp_reduced(x, &t);
    /* 2^n in two factors, since n reaches from -150 to 128. */
    const __m256i n = _mm256_sub_epi32(_mm256_castps_si256(t), _mm256_castps_si256(_mm256_set1_ps(VEC_MAGIC)));
    const __m256i half = _mm256_srai_epi32(n, 1), bias = _mm256_set1_epi32(127);
    const __m256i s1 = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    const __m256i s2 = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(n, half), bias), 23);
    return _mm256_mul_ps(_mm256_mul_ps(p, _mm256_castsi256_ps(s1)), _mm256_castsi256_ps(s2));
}

/* e^x for x <= 0, exactly 0 below -87 (where it is under 1.7e-38); NaN stays. The cheap one of softmax. */
VEC_INLINE __m256 vec_exp_weight(__m256 x)
{
    __m256 t;
    const __m256 p = vec_exp_reduced(x, &t);
    return _mm256_and_ps(vec_scale_normal(p, t), _mm256_cmp_ps(x, _mm256_set1_ps(-87.0f), _CMP_NLT_UQ));
}

/* 1 / (1 + e^-x), with e^-|x| so that nothing overflows; returned as numerator and denominator. */
VEC_INLINE __m256 vec_sigmoid_parts(__m256 x, __m256 *denominator)
{
    const __m256 one = _mm256_set1_ps(1.0f);
    const __m256 e = vec_exp(_mm256_or_ps(_mm256_set1_ps(-0.0f), x));
    *denominator = _mm256_add_ps(one, e);
    return _mm256_blendv_ps(one, e, x);
}

VEC_INLINE __m256 vec_sigmoid(__m256 x)
{
    __m256 d;
    const __m256 n = vec_sigmoid_parts(x, &d);
    return _mm256_div_ps(n, d);
}

VEC_INLINE __m256 vec_silu(__m256 x)
{
    __m256 d;
    x = _mm256_max_ps(_mm256_set1_ps(-200.0f), x); /* the limit at -infinity is -0, not NaN */
    const __m256 n = vec_sigmoid_parts(x, &d);
    return _mm256_div_ps(_mm256_mul_ps(x, n), d);
}

/* x sigmoid(2u) = x (1 + tanh u) / 2, u = sqrt(2 / pi) (x + 0.044715 x^3). */
VEC_INLINE __m256 vec_gelu_tanh(__m256 x)
{
    __m256 d;
    x = _mm256_max_ps(_mm256_set1_ps(-200.0f), x);
    const __m256 cubic = vec_step(_mm256_mul_ps(_mm256_set1_ps(0.044715f), x), x, 1.0f);
    const __m256 u2 = _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(1.5957691216057308f), x), cubic);
    const __m256 n = vec_sigmoid_parts(u2, &d);
    return _mm256_div_ps(_mm256_mul_ps(x, n), d);
}

/* x Phi(x) = max(x, 0) - |x| Phi(-|x|), and Phi(-a) = 2^P(a) / 2 with P(a) = log2 erfc(a / sqrt 2) = a Q(a): Q is smooth, a minimax polynomial of
 * degree 9 on [0, 5.5] (error of the product below 1e-9), and falls for ever behind. No division, and the tail keeps its relative accuracy. */
VEC_INLINE __m256 vec_gelu(__m256 x)
{
    const __m256 a = _mm256_min_ps(_mm256_set1_ps(13.0f), vec_abs(x));
    __m256 q = _mm256_set1_ps(-5.3993421289533217e-08f);
    q = vec_step(q, a, 1.3470355497702258e-06f);
    q = vec_step(q, a, -1.487202007410815e-05f);
    q = vec_step(q, a, 9.307115396950394e-05f);
    q = vec_step(q, a, -0.0003201693471055478f);
    q = vec_step(q, a, 5.68195573578123e-05f);
    q = vec_step(q, a, 0.0069032334722578526f);
    q = vec_step(q, a, -0.05242511257529259f);
    q = vec_step(q, a, -0.45922282338142395f);
    q = vec_step(q, a, -1.151104211807251f);
    const __m256 p = _mm256_max_ps(_mm256_set1_ps(-125.0f), _mm256_mul_ps(q, a));
    const __m256 t = _mm256_add_ps(p, _mm256_set1_ps(VEC_MAGIC));
    const __m256 r = _mm256_sub_ps(p, _mm256_sub_ps(t, _mm256_set1_ps(VEC_MAGIC)));
    __m256 e = _mm256_set1_ps(0.0001547630236018449f); /* 2^r = 1 + r e(r), |r| <= 1/2 */
    e = vec_step(e, r, 0.001340027549304068f);
    e = vec_step(e, r, 0.009618003852665424f);
    e = vec_step(e, r, 0.055503278970718384f);
    e = vec_step(e, r, 0.24022650718688965f);
    e = vec_step(e, r, 0.6931471824645996f);
    e = vec_scale_normal(vec_step(e, r, 1.0f), t);
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
    const __m256 e = vec_exp_weight(_mm256_mul_ps(_mm256_set1_ps(-2.0f), a));
    const __m256 far = _mm256_div_ps(_mm256_sub_ps(one, e), _mm256_add_ps(one, e));
    const __m256 is_far = _mm256_cmp_ps(a, _mm256_set1_ps(0.55f), _CMP_GT_OQ);
    return _mm256_blendv_ps(p, _mm256_or_ps(far, _mm256_and_ps(x, _mm256_set1_ps(-0.0f))), is_far);
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
