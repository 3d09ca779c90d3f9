/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx512_vec.h: what the kernels of this ISA need of 512-bit vectors, vec512_*: intrinsics in the product, and plain C where
 * KERN_AVX512_EMULATED is defined, so that the tests run the same kernels on machines without it.
 */
#ifndef LATH_KERN_AVX512_VEC_H
#define LATH_KERN_AVX512_VEC_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define VEC512_INLINE static inline __attribute__((always_inline))

#if defined(KERN_AVX512_EMULATED)

typedef struct vec512_f32 {
    float v[16];
} vec512_f32;

VEC512_INLINE vec512_f32 vec512_set1(float f)
{
    vec512_f32 r;
    for (int i = 0; i < 16; i++) r.v[i] = f;
    return r;
}

VEC512_INLINE vec512_f32 vec512_load(const float *p)
{
    vec512_f32 r;
    memcpy(r.v, p, sizeof(r.v));
    return r;
}

VEC512_INLINE void vec512_store(float *p, vec512_f32 x) { memcpy(p, x.v, sizeof(x.v)); }

/* a b + c, rounded once. */
VEC512_INLINE vec512_f32 vec512_fma(vec512_f32 a, vec512_f32 b, vec512_f32 c)
{
    for (int i = 0; i < 16; i++) c.v[i] = __builtin_fmaf(a.v[i], b.v[i], c.v[i]);
    return c;
}

#else

typedef __m512 vec512_f32;

VEC512_INLINE vec512_f32 vec512_set1(float f) { return _mm512_set1_ps(f); }
VEC512_INLINE vec512_f32 vec512_load(const float *p) { return _mm512_load_ps(p); } /* 64-byte aligned */
VEC512_INLINE void vec512_store(float *p, vec512_f32 x) { _mm512_store_ps(p, x); }
VEC512_INLINE vec512_f32 vec512_fma(vec512_f32 a, vec512_f32 b, vec512_f32 c) { return _mm512_fmadd_ps(a, b, c); }

#endif

/* The float at any alignment in all lanes. */
VEC512_INLINE vec512_f32 vec512_broadcast(const unsigned char *p)
{
    float f;
    memcpy(&f, p, sizeof(f));
    return vec512_set1(f);
}

#endif
