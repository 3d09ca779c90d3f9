/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx512_vec.h: what the kernels of this ISA need of 512-bit vectors, vec512_*: intrinsics in the product, and pairs of AVX2 vectors where
 * KERN_AVX512_EMULATED is defined, so that the tests run the same kernels on machines without it.
 */
#ifndef LATH_KERN_AVX512_VEC_H
#define LATH_KERN_AVX512_VEC_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define VEC512_INLINE static inline __attribute__((always_inline))

/* Floats: set1, load and store (64-byte aligned; _any: any alignment), fma (x y + z, rounded once), mul, pair (two halves), firsts and seconds (those halves of two vectors), from_half (sixteen binary16 at any alignment), all (the first of four everywhere), spread4 (float i in the lanes of
 * quarter i), quarter (four lanes).
 * Integers: bytes (64, any alignment), quarters (16 bytes four times), halves (32 and 32 bytes), rows (16 bytes of four rows), words (an int16 for
 * each quarter), low (zeros behind); right, right_each, left_each (shifts of words); less (a - b, int32); lookup (VPSHUFB); pick (word i is word
 * at[i] of 16); add_where (n to the bytes whose bit is set);
 * dot2: sums of two products of unsigned u and signed s, saturated to int16 (VPMADDUBSW);
 * dot4: sum + sums of four such products, int32 (VPDPBUSD); weigh: sum + sums of two products of int16, int32 (VPDPWSSD). */

#if defined(KERN_AVX512_EMULATED)

typedef struct vec512_f32 {
    __m256 a, b;
} vec512_f32;
/* 64 bytes: integers of any width. */
typedef struct vec512_int {
    __m256i a, b;
} vec512_int;

VEC512_INLINE vec512_f32 vec512_set1(float f) { return (vec512_f32){_mm256_set1_ps(f), _mm256_set1_ps(f)}; }
VEC512_INLINE vec512_f32 vec512_load(const float *p) { return (vec512_f32){_mm256_load_ps(p), _mm256_load_ps(p + 8)}; }
VEC512_INLINE void vec512_store(float *p, vec512_f32 x) { _mm256_store_ps(p, x.a), _mm256_store_ps(p + 8, x.b); }
VEC512_INLINE vec512_f32 vec512_load_any(const float *p)
{
    return (vec512_f32){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
VEC512_INLINE void vec512_store_any(float *p, vec512_f32 x) { _mm256_storeu_ps(p, x.a), _mm256_storeu_ps(p + 8, x.b); }
VEC512_INLINE vec512_f32 vec512_fma(vec512_f32 x, vec512_f32 y, vec512_f32 z)
{
    return (vec512_f32){_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
VEC512_INLINE vec512_f32 vec512_mul(vec512_f32 x, vec512_f32 y)
{
    return (vec512_f32){_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
}
VEC512_INLINE vec512_f32 vec512_pair(__m256 a, __m256 b) { return (vec512_f32){a, b}; }
VEC512_INLINE vec512_f32 vec512_firsts(vec512_f32 x, vec512_f32 y) { return (vec512_f32){x.a, y.a}; }
VEC512_INLINE vec512_f32 vec512_seconds(vec512_f32 x, vec512_f32 y) { return (vec512_f32){x.b, y.b}; }
VEC512_INLINE vec512_f32 vec512_from_half(const void *p)
{
    const __m128i *half = p;
    return (vec512_f32){_mm256_cvtph_ps(_mm_loadu_si128(half)), _mm256_cvtph_ps(_mm_loadu_si128(half + 1))};
}
VEC512_INLINE __m256i vec512_load_half(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }
VEC512_INLINE vec512_int vec512_bytes(const void *p)
{
    return (vec512_int){vec512_load_half(p), vec512_load_half((const uint8_t *)p + 32)};
}
VEC512_INLINE vec512_int vec512_zero(void) { return (vec512_int){_mm256_setzero_si256(), _mm256_setzero_si256()}; }
VEC512_INLINE vec512_int vec512_set1_u8(int x)
{
    return (vec512_int){_mm256_set1_epi8((char)x), _mm256_set1_epi8((char)x)};
}
VEC512_INLINE vec512_int vec512_quarters_of(__m128i v)
{
    return (vec512_int){_mm256_broadcastsi128_si256(v), _mm256_broadcastsi128_si256(v)};
}
VEC512_INLINE vec512_int vec512_quarters(const void *p)
{
    return vec512_quarters_of(_mm_loadu_si128((const __m128i *)p));
}
VEC512_INLINE vec512_int vec512_halves(const void *p, const void *q)
{
    return (vec512_int){vec512_load_half(p), vec512_load_half(q)};
}
VEC512_INLINE vec512_int vec512_rows(const unsigned char *p, int64_t gap)
{
    const __m128i r0 = _mm_loadu_si128((const __m128i *)p), r1 = _mm_loadu_si128((const __m128i *)(p + gap));
    const __m128i r2 = _mm_loadu_si128((const __m128i *)(p + 2 * gap)),
                  r3 = _mm_loadu_si128((const __m128i *)(p + 3 * gap));
    return (vec512_int){_mm256_set_m128i(r1, r0), _mm256_set_m128i(r3, r2)};
}
VEC512_INLINE vec512_int vec512_words(int q0, int q1, int q2, int q3)
{
    return (vec512_int){_mm256_set_m128i(_mm_set1_epi16((short)q1), _mm_set1_epi16((short)q0)),
                        _mm256_set_m128i(_mm_set1_epi16((short)q3), _mm_set1_epi16((short)q2))};
}
VEC512_INLINE vec512_int vec512_and(vec512_int x, vec512_int y)
{
    return (vec512_int){_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)};
}
VEC512_INLINE vec512_int vec512_or(vec512_int x, vec512_int y)
{
    return (vec512_int){_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)};
}
VEC512_INLINE vec512_int vec512_xor(vec512_int x, vec512_int y)
{
    return (vec512_int){_mm256_xor_si256(x.a, y.a), _mm256_xor_si256(x.b, y.b)};
}
VEC512_INLINE vec512_int vec512_less(vec512_int x, vec512_int y)
{
    return (vec512_int){_mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b)};
}
VEC512_INLINE vec512_int vec512_right(vec512_int x, const int n)
{
    return (vec512_int){_mm256_srli_epi16(x.a, n), _mm256_srli_epi16(x.b, n)};
}
/* Words each by its own count: AVX2 has it for int32 only. */
VEC512_INLINE __m256i vec512_shift_half(__m256i v, __m256i n, const int left)
{
    const __m256i m = _mm256_set1_epi32(0xffff), n0 = _mm256_and_si256(n, m), n1 = _mm256_srli_epi32(n, 16);
    const __m256i v0 = _mm256_and_si256(v, m), v1 = _mm256_srli_epi32(v, 16);
    const __m256i r0 = left ? _mm256_sllv_epi32(v0, n0) : _mm256_srlv_epi32(v0, n0),
                  r1 = left ? _mm256_sllv_epi32(v1, n1) : _mm256_srlv_epi32(v1, n1);
    return _mm256_or_si256(_mm256_and_si256(r0, m), _mm256_slli_epi32(r1, 16));
}
VEC512_INLINE vec512_int vec512_right_each(vec512_int x, vec512_int n)
{
    return (vec512_int){vec512_shift_half(x.a, n.a, 0), vec512_shift_half(x.b, n.b, 0)};
}
VEC512_INLINE vec512_int vec512_left_each(vec512_int x, vec512_int n)
{
    return (vec512_int){vec512_shift_half(x.a, n.a, 1), vec512_shift_half(x.b, n.b, 1)};
}
VEC512_INLINE vec512_int vec512_dot2(vec512_int u, vec512_int s)
{
    return (vec512_int){_mm256_maddubs_epi16(u.a, s.a), _mm256_maddubs_epi16(u.b, s.b)};
}
VEC512_INLINE vec512_int vec512_weigh(vec512_int sum, vec512_int x, vec512_int y)
{
    return (vec512_int){_mm256_add_epi32(sum.a, _mm256_madd_epi16(x.a, y.a)),
                        _mm256_add_epi32(sum.b, _mm256_madd_epi16(x.b, y.b))};
}
/* Even and odd bytes apart: sums of two products of words cannot overflow. */
VEC512_INLINE __m256i vec512_dot4_half(__m256i sum, __m256i u, __m256i s)
{
    const __m256i m = _mm256_set1_epi16(0xff), even = _mm256_srai_epi16(_mm256_slli_epi16(s, 8), 8);
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_and_si256(u, m), even));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_srli_epi16(u, 8), _mm256_srai_epi16(s, 8)));
}
VEC512_INLINE vec512_int vec512_dot4(vec512_int sum, vec512_int u, vec512_int s)
{
    return (vec512_int){vec512_dot4_half(sum.a, u.a, s.a), vec512_dot4_half(sum.b, u.b, s.b)};
}
/* dot4_by: narrow: no s beyond 64, so sums of two products are int16. Else x is signed, -127 to 127, and gives its sign to s. */
enum { VEC512_SIGNED_WIDE = 1 };
VEC512_INLINE __m256i vec512_signed_half(__m256i sum, __m256i x, __m256i s)
{
    const __m256i two = _mm256_maddubs_epi16(_mm256_abs_epi8(s), _mm256_sign_epi8(x, s));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(two, _mm256_set1_epi16(1)));
}
VEC512_INLINE vec512_int vec512_dot4_by(const int narrow, vec512_int sum, vec512_int u, vec512_int s)
{
    if (!narrow) return (vec512_int){vec512_signed_half(sum.a, u.a, s.a), vec512_signed_half(sum.b, u.b, s.b)};
    const vec512_int two = {_mm256_maddubs_epi16(u.a, s.a), _mm256_maddubs_epi16(u.b, s.b)};
    return vec512_weigh(sum, two, (vec512_int){_mm256_set1_epi16(1), _mm256_set1_epi16(1)});
}
VEC512_INLINE vec512_int vec512_set1_i32(int x) { return (vec512_int){_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
VEC512_INLINE vec512_f32 vec512_add(vec512_f32 x, vec512_f32 y)
{
    return (vec512_f32){_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
}
VEC512_INLINE vec512_int vec512_lookup(vec512_int t, vec512_int at)
{
    return (vec512_int){_mm256_shuffle_epi8(t.a, at.a), _mm256_shuffle_epi8(t.b, at.b)};
}
VEC512_INLINE vec512_int vec512_pick(__m256i w, vec512_int at)
{
    uint16_t from[16], to[32];
    memcpy(from, &w, 32), memcpy(to, &at, 64);
    for (int i = 0; i < 32; i++) to[i] = from[to[i] % 16];
    return vec512_bytes(to);
}
VEC512_INLINE vec512_int vec512_low(__m256i w) { return (vec512_int){w, _mm256_setzero_si256()}; }
VEC512_INLINE vec512_int vec512_add_where(vec512_int x, uint64_t where, int n)
{
    uint8_t v[64];
    memcpy(v, &x, 64);
    for (int i = 0; i < 64; i++) v[i] = (uint8_t)(v[i] + (where >> i & 1 ? n : 0));
    return vec512_bytes(v);
}
VEC512_INLINE vec512_f32 vec512_to_f32(vec512_int x)
{
    return (vec512_f32){_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)};
}
VEC512_INLINE vec512_f32 vec512_spread4(__m128 s)
{
    const __m256i at = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
    const __m256 v = _mm256_castps128_ps256(s);
    return (vec512_f32){_mm256_permutevar8x32_ps(v, at),
                        _mm256_permutevar8x32_ps(v, _mm256_add_epi32(at, _mm256_set1_epi32(2)))};
}
VEC512_INLINE vec512_f32 vec512_all(__m128 s)
{
    return (vec512_f32){_mm256_broadcastss_ps(s), _mm256_broadcastss_ps(s)};
}
VEC512_INLINE __m128 vec512_quarter(vec512_f32 x, const int i)
{
    const __m256 half = i < 2 ? x.a : x.b;
    return i % 2 ? _mm256_extractf128_ps(half, 1) : _mm256_castps256_ps128(half);
}

#else

typedef __m512 vec512_f32;

VEC512_INLINE vec512_f32 vec512_set1(float f) { return _mm512_set1_ps(f); }
VEC512_INLINE vec512_f32 vec512_load(const float *p) { return _mm512_load_ps(p); } /* 64-byte aligned */
VEC512_INLINE void vec512_store(float *p, vec512_f32 x) { _mm512_store_ps(p, x); }
VEC512_INLINE vec512_f32 vec512_load_any(const float *p) { return _mm512_loadu_ps(p); }
VEC512_INLINE void vec512_store_any(float *p, vec512_f32 x) { _mm512_storeu_ps(p, x); }
VEC512_INLINE vec512_f32 vec512_fma(vec512_f32 a, vec512_f32 b, vec512_f32 c) { return _mm512_fmadd_ps(a, b, c); }

VEC512_INLINE vec512_f32 vec512_mul(vec512_f32 x, vec512_f32 y) { return _mm512_mul_ps(x, y); }
VEC512_INLINE vec512_f32 vec512_pair(__m256 a, __m256 b) { return _mm512_insertf32x8(_mm512_castps256_ps512(a), b, 1); }
VEC512_INLINE vec512_f32 vec512_firsts(vec512_f32 x, vec512_f32 y) { return _mm512_shuffle_f32x4(x, y, 0x44); }
VEC512_INLINE vec512_f32 vec512_seconds(vec512_f32 x, vec512_f32 y) { return _mm512_shuffle_f32x4(x, y, 0xee); }
VEC512_INLINE vec512_f32 vec512_from_half(const void *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

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
VEC512_INLINE vec512_int vec512_right_each(vec512_int a, vec512_int n) { return _mm512_srlv_epi16(a, n); }
VEC512_INLINE vec512_int vec512_left_each(vec512_int a, vec512_int n) { return _mm512_sllv_epi16(a, n); }
VEC512_INLINE vec512_int vec512_dot4(vec512_int acc, vec512_int u, vec512_int s)
{
    return _mm512_dpbusd_epi32(acc, u, s);
}
enum { VEC512_SIGNED_WIDE = 0 };
VEC512_INLINE vec512_int vec512_dot4_by(const int narrow, vec512_int sum, vec512_int u, vec512_int s)
{
    (void)narrow;
    return _mm512_dpbusd_epi32(sum, u, s);
}
VEC512_INLINE vec512_int vec512_set1_i32(int x) { return _mm512_set1_epi32(x); }
VEC512_INLINE vec512_f32 vec512_add(vec512_f32 x, vec512_f32 y) { return _mm512_add_ps(x, y); }
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

/* The four bytes at any alignment in all lanes. */
VEC512_INLINE vec512_int vec512_spread_i32(const void *p)
{
    int32_t v;
    memcpy(&v, p, sizeof(v));
    return vec512_set1_i32(v);
}

#endif
