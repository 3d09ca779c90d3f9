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

/* 64 bytes: integers of any width. */
typedef struct vec512_int {
    uint8_t b[64];
} vec512_int;

#define VEC512_LANES(type, v, name) \
    type name[64 / sizeof(type)];   \
    memcpy(name, (v).b, 64)

VEC512_INLINE vec512_int vec512_bytes(const void *p)
{
    vec512_int r;
    memcpy(r.b, p, 64);
    return r;
}

VEC512_INLINE vec512_int vec512_zero(void) { return (vec512_int){{0}}; }

VEC512_INLINE vec512_int vec512_set1_u8(int x)
{
    vec512_int r;
    memset(r.b, x, 64);
    return r;
}

/* 16 or 32 bytes in every quarter or half. */
VEC512_INLINE vec512_int vec512_quarters(const void *p)
{
    vec512_int r;
    for (int i = 0; i < 4; i++) memcpy(r.b + 16 * i, p, 16);
    return r;
}

VEC512_INLINE vec512_int vec512_halves(const void *p, const void *q)
{
    vec512_int r;
    memcpy(r.b, p, 32), memcpy(r.b + 32, q, 32);
    return r;
}

/* 16 bytes of four rows. */
VEC512_INLINE vec512_int vec512_rows(const unsigned char *p, int64_t gap)
{
    vec512_int r;
    for (int i = 0; i < 4; i++) memcpy(r.b + 16 * i, p + i * gap, 16);
    return r;
}

VEC512_INLINE vec512_int vec512_and(vec512_int a, vec512_int b)
{
    for (int i = 0; i < 64; i++) a.b[i] &= b.b[i];
    return a;
}

VEC512_INLINE vec512_int vec512_or(vec512_int a, vec512_int b)
{
    for (int i = 0; i < 64; i++) a.b[i] |= b.b[i];
    return a;
}

VEC512_INLINE vec512_int vec512_xor(vec512_int a, vec512_int b)
{
    for (int i = 0; i < 64; i++) a.b[i] ^= b.b[i];
    return a;
}

/* Words, shifted by a constant or each by its own. */
VEC512_INLINE vec512_int vec512_right(vec512_int a, const int n)
{
    VEC512_LANES(uint16_t, a, w);
    for (int i = 0; i < 32; i++) w[i] = (uint16_t)(w[i] >> n);
    return vec512_bytes(w);
}

VEC512_INLINE vec512_int vec512_left(vec512_int a, const int n)
{
    VEC512_LANES(uint16_t, a, w);
    for (int i = 0; i < 32; i++) w[i] = (uint16_t)(w[i] << n);
    return vec512_bytes(w);
}

VEC512_INLINE vec512_int vec512_right_each(vec512_int a, vec512_int n)
{
    VEC512_LANES(uint16_t, a, w);
    VEC512_LANES(uint16_t, n, c);
    for (int i = 0; i < 32; i++) w[i] = (uint16_t)(w[i] >> c[i]);
    return vec512_bytes(w);
}

VEC512_INLINE vec512_int vec512_left_each(vec512_int a, vec512_int n)
{
    VEC512_LANES(uint16_t, a, w);
    VEC512_LANES(uint16_t, n, c);
    for (int i = 0; i < 32; i++) w[i] = (uint16_t)(w[i] << c[i]);
    return vec512_bytes(w);
}

/* acc + the sums of four products of unsigned u and signed s, in 16 int32 (VPDPBUSD). */
VEC512_INLINE vec512_int vec512_dot4(vec512_int acc, vec512_int u, vec512_int s)
{
    VEC512_LANES(int32_t, acc, sum);
    for (int i = 0; i < 64; i++) sum[i / 4] += u.b[i] * (int8_t)s.b[i];
    return vec512_bytes(sum);
}

/* Sums of two such products, saturated to 32 int16 (VPMADDUBSW). */
VEC512_INLINE vec512_int vec512_dot2(vec512_int u, vec512_int s)
{
    int16_t sum[32];
    for (int i = 0; i < 32; i++) {
        const int v = u.b[2 * i] * (int8_t)s.b[2 * i] + u.b[2 * i + 1] * (int8_t)s.b[2 * i + 1];
        sum[i] = (int16_t)(v > 32767 ? 32767 : v < -32768 ? -32768 : v);
    }
    return vec512_bytes(sum);
}

/* acc + the sums of two products of int16, in 16 int32 (VPDPWSSD). */
VEC512_INLINE vec512_int vec512_weigh(vec512_int acc, vec512_int a, vec512_int b)
{
    VEC512_LANES(int32_t, acc, sum);
    VEC512_LANES(int16_t, a, v);
    VEC512_LANES(int16_t, b, w);
    for (int i = 0; i < 32; i++) sum[i / 2] += v[i] * w[i];
    return vec512_bytes(sum);
}

/* Byte i of every quarter becomes byte at[i] of the quarter, or 0 where at[i] is negative (VPSHUFB). */
VEC512_INLINE vec512_int vec512_lookup(vec512_int t, vec512_int at)
{
    vec512_int r;
    for (int i = 0; i < 64; i++) r.b[i] = at.b[i] & 0x80 ? 0 : t.b[i / 16 * 16 + at.b[i] % 16];
    return r;
}

/* Word i becomes word at[i] % 16 of the 16 in w. */
VEC512_INLINE vec512_int vec512_pick(__m256i w, vec512_int at)
{
    uint16_t from[16], to[32];
    VEC512_LANES(uint16_t, at, index);
    memcpy(from, &w, 32);
    for (int i = 0; i < 32; i++) to[i] = from[index[i] % 16];
    return vec512_bytes(to);
}

/* Words: those of each quarter are equal. */
VEC512_INLINE vec512_int vec512_words(int q0, int q1, int q2, int q3)
{
    uint16_t w[32];
    for (int i = 0; i < 32; i++) w[i] = (uint16_t)(i < 8 ? q0 : i < 16 ? q1 : i < 24 ? q2 : q3);
    return vec512_bytes(w);
}

VEC512_INLINE vec512_int vec512_quarters_of(__m128i v) { return vec512_quarters(&v); }

/* a - b, int32. */
VEC512_INLINE vec512_int vec512_less(vec512_int a, vec512_int b)
{
    VEC512_LANES(int32_t, a, v);
    VEC512_LANES(int32_t, b, w);
    for (int i = 0; i < 16; i++) v[i] -= w[i];
    return vec512_bytes(v);
}

/* Zeros behind it. */
VEC512_INLINE vec512_int vec512_low(__m256i w)
{
    vec512_int r = {{0}};
    memcpy(r.b, &w, 32);
    return r;
}

/* x is added to the bytes whose bit is set. */
VEC512_INLINE vec512_int vec512_add_where(vec512_int a, uint64_t where, int x)
{
    for (int i = 0; i < 64; i++) a.b[i] = (uint8_t)(a.b[i] + (where >> i & 1 ? x : 0));
    return a;
}

VEC512_INLINE vec512_f32 vec512_to_f32(vec512_int a)
{
    vec512_f32 r;
    VEC512_LANES(int32_t, a, v);
    for (int i = 0; i < 16; i++) r.v[i] = (float)v[i];
    return r;
}

/* Float i in the lanes of quarter i. */
VEC512_INLINE vec512_f32 vec512_spread4(__m128 s)
{
    vec512_f32 r;
    float f[4];
    memcpy(f, &s, 16);
    for (int i = 0; i < 16; i++) r.v[i] = f[i / 4];
    return r;
}

/* The first float everywhere. */
VEC512_INLINE vec512_f32 vec512_all(__m128 s) { return vec512_set1(_mm_cvtss_f32(s)); }

/* Quarter i of the lanes. */
VEC512_INLINE __m128 vec512_quarter(vec512_f32 a, const int i) { return _mm_loadu_ps(a.v + 4 * i); }

#else

typedef __m512 vec512_f32;

VEC512_INLINE vec512_f32 vec512_set1(float f) { return _mm512_set1_ps(f); }
VEC512_INLINE vec512_f32 vec512_load(const float *p) { return _mm512_load_ps(p); } /* 64-byte aligned */
VEC512_INLINE void vec512_store(float *p, vec512_f32 x) { _mm512_store_ps(p, x); }
VEC512_INLINE vec512_f32 vec512_fma(vec512_f32 a, vec512_f32 b, vec512_f32 c) { return _mm512_fmadd_ps(a, b, c); }

typedef __m512i vec512_int;

VEC512_INLINE vec512_int vec512_bytes(const void *p) { return _mm512_loadu_si512(p); }
VEC512_INLINE vec512_int vec512_zero(void) { return _mm512_setzero_si512(); }
VEC512_INLINE vec512_int vec512_set1_u8(int x) { return _mm512_set1_epi8((char)x); }
VEC512_INLINE vec512_int vec512_quarters(const void *p)
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)p));
}
VEC512_INLINE vec512_int vec512_halves(const void *p, const void *q)
{
    const __m256i low = _mm256_loadu_si256((const __m256i *)p), high = _mm256_loadu_si256((const __m256i *)q);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
/* Masked broadcasts take their bytes from memory: no shuffles. */
VEC512_INLINE vec512_int vec512_rows(const unsigned char *p, int64_t gap)
{
    vec512_int v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)p));
    v = _mm512_mask_broadcast_i32x4(v, 0x00f0, _mm_loadu_si128((const __m128i *)(p + gap)));
    v = _mm512_mask_broadcast_i32x4(v, 0x0f00, _mm_loadu_si128((const __m128i *)(p + 2 * gap)));
    return _mm512_mask_broadcast_i32x4(v, 0xf000, _mm_loadu_si128((const __m128i *)(p + 3 * gap)));
}
VEC512_INLINE vec512_int vec512_and(vec512_int a, vec512_int b) { return _mm512_and_si512(a, b); }
VEC512_INLINE vec512_int vec512_or(vec512_int a, vec512_int b) { return _mm512_or_si512(a, b); }
VEC512_INLINE vec512_int vec512_xor(vec512_int a, vec512_int b) { return _mm512_xor_si512(a, b); }
VEC512_INLINE vec512_int vec512_right(vec512_int a, const int n) { return _mm512_srli_epi16(a, (unsigned)n); }
VEC512_INLINE vec512_int vec512_left(vec512_int a, const int n) { return _mm512_slli_epi16(a, (unsigned)n); }
VEC512_INLINE vec512_int vec512_right_each(vec512_int a, vec512_int n) { return _mm512_srlv_epi16(a, n); }
VEC512_INLINE vec512_int vec512_left_each(vec512_int a, vec512_int n) { return _mm512_sllv_epi16(a, n); }
VEC512_INLINE vec512_int vec512_dot4(vec512_int acc, vec512_int u, vec512_int s)
{
    return _mm512_dpbusd_epi32(acc, u, s);
}
VEC512_INLINE vec512_int vec512_dot2(vec512_int u, vec512_int s) { return _mm512_maddubs_epi16(u, s); }
VEC512_INLINE vec512_int vec512_weigh(vec512_int acc, vec512_int a, vec512_int b)
{
    return _mm512_dpwssd_epi32(acc, a, b);
}
VEC512_INLINE vec512_int vec512_lookup(vec512_int t, vec512_int at) { return _mm512_shuffle_epi8(t, at); }
VEC512_INLINE vec512_int vec512_pick(__m256i w, vec512_int at)
{
    return _mm512_permutexvar_epi16(at, _mm512_castsi256_si512(w));
}
VEC512_INLINE vec512_int vec512_words(int q0, int q1, int q2, int q3)
{
    const __m512i low = _mm512_inserti32x4(_mm512_set1_epi16((short)q0), _mm_set1_epi16((short)q1), 1);
    return _mm512_inserti32x4(_mm512_inserti32x4(low, _mm_set1_epi16((short)q2), 2), _mm_set1_epi16((short)q3), 3);
}
VEC512_INLINE vec512_int vec512_quarters_of(__m128i v) { return _mm512_broadcast_i32x4(v); }
VEC512_INLINE vec512_int vec512_less(vec512_int a, vec512_int b) { return _mm512_sub_epi32(a, b); }
VEC512_INLINE vec512_int vec512_low(__m256i w) { return _mm512_zextsi256_si512(w); }
VEC512_INLINE vec512_int vec512_add_where(vec512_int a, uint64_t where, int x)
{
    return _mm512_mask_add_epi8(a, where, a, _mm512_set1_epi8((char)x));
}
VEC512_INLINE vec512_f32 vec512_to_f32(vec512_int a) { return _mm512_cvtepi32_ps(a); }
VEC512_INLINE vec512_f32 vec512_spread4(__m128 s)
{
    const __m512i at = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    return _mm512_permutexvar_ps(at, _mm512_castps128_ps512(s));
}
VEC512_INLINE vec512_f32 vec512_all(__m128 s) { return _mm512_broadcastss_ps(s); }
VEC512_INLINE __m128 vec512_quarter(vec512_f32 a, const int i)
{
    return i == 0   ? _mm512_castps512_ps128(a)
           : i == 1 ? _mm512_extractf32x4_ps(a, 1)
           : i == 2 ? _mm512_extractf32x4_ps(a, 2)
                    : _mm512_extractf32x4_ps(a, 3);
}

#endif

/* The float at any alignment in all lanes. */
VEC512_INLINE vec512_f32 vec512_broadcast(const unsigned char *p)
{
    float f;
    memcpy(&f, p, sizeof(f));
    return vec512_set1(f);
}

#endif
