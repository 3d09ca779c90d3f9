/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx512_gemv.c: integer products of single tokens with the block types that models mostly come in; the others and floats are those of AVX2
 * (kern_avx2_gemv.c drives both).
 *
 * Blocks of 32: four rows share a vector, 16 codes in each quarter, so a step is one conversion and one FMA for four rows, and each row has four chains.
 * VPDPBUSD wants unsigned codes and does not saturate: Q8_0 and IQ4_NL go with 128 added, the offset comes off with the sums of q as it does in AVX2.
 * Blocks of 256: a row at a time, 64 codes a vector; VPMADDUBSW and VPDPWSSD weigh the parts with their scales.
 */
#include "kern/avx2/kern_avx2_gemv.h"
#include "kern/avx512/kern_avx512.h"
#include "kern/avx512/kern_avx512_vec.h"
#include "kern/kern_xq.h"

/* ------------------------------------------------------------------------------------------------------- blocks of 32 */

/* The fifth bits of 16 codes of four rows. */
VEC512_INLINE uint64_t fifths(const unsigned char *w, int64_t gap)
{
    return gemv_u16(w) | (uint64_t)gemv_u16(w + gap) << 16 | (uint64_t)gemv_u16(w + 2 * gap) << 32 |
           (uint64_t)gemv_u16(w + 3 * gap) << 48;
}

/* What is taken from a code as dot32 has it. */
VEC512_INLINE float code_offset(const dtype type)
{
    switch (type) {
    case DTYPE_Q4_0: return 8.0f;
    case DTYPE_Q5_0: return 16.0f;
    case DTYPE_MXFP4: return 12.0f;
    case DTYPE_Q8_0:
    case DTYPE_IQ4_NL: return 128.0f;
    default: return 0.0f;
    }
}

/* Bytes before the halves of codes, and before their fifth bits. */
VEC512_INLINE int codes_at(const dtype type)
{
    switch (type) {
    case DTYPE_Q4_1: return 4;
    case DTYPE_Q5_0: return 6;
    case DTYPE_Q5_1: return 8;
    case DTYPE_MXFP4: return 1;
    default: return 2;
    }
}

/* The table of a type whose halves are indices, unsigned: its values plus code_offset. */
VEC512_INLINE vec512_int code_table(const dtype type)
{
    static const uint8_t iq4[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};
    static const uint8_t mxfp4[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
    return vec512_quarters(type == DTYPE_IQ4_NL ? iq4 : mxfp4);
}

/* The sums of the products of four rows' codes with q: four of each row. */
VEC512_INLINE vec512_int rows_sums(const dtype type, const unsigned char *w, int64_t gap, const unsigned char *q)
{
    const vec512_int m15 = vec512_set1_u8(15);
    vec512_int low, high;
    if (type == DTYPE_Q8_0) {
        low = vec512_xor(vec512_rows(w + 2, gap), vec512_set1_u8(128));
        high = vec512_xor(vec512_rows(w + 18, gap), vec512_set1_u8(128));
    } else {
        const vec512_int both = vec512_rows(w + codes_at(type), gap);
        low = vec512_and(both, m15);
        high = vec512_and(vec512_right(both, 4), m15);
    }
    if (type == DTYPE_Q5_0 || type == DTYPE_Q5_1) {
        const unsigned char *bits = w + codes_at(type) - 4;
        low = vec512_add_where(low, fifths(bits, gap), 16);
        high = vec512_add_where(high, fifths(bits + 2, gap), 16);
    }
    if (type == DTYPE_IQ4_NL || type == DTYPE_MXFP4) {
        low = vec512_lookup(code_table(type), low);
        high = vec512_lookup(code_table(type), high);
    }
    return vec512_dot4(vec512_dot4(vec512_zero(), low, vec512_quarters(q)), high, vec512_quarters(q + 16));
}

VEC512_INLINE void dot32(const dtype type, const int64_t bytes, const unsigned char *w, int64_t gap, int64_t k,
                         const unsigned char *xq, float *sums)
{
    const bool minimum = type == DTYPE_Q4_1 || type == DTYPE_Q5_1;
    const float *d = (const float *)(const void *)(xq + kern_xq_d(k)),
                *sum = (const float *)(const void *)(xq + kern_xq32_sum(k));
    vec512_f32 f = vec512_set1(0.0f);
    __m128 c = _mm_setzero_ps();
    for (int64_t b = 0; b < k / 32; b++, w += bytes) {
        const __m128 dx = _mm_broadcast_ss(d + b);
        const __m128 s = _mm_mul_ps(type == DTYPE_MXFP4 ? gemv_scales_e8m0(w, gap) : gemv_scales_half(w, gap), dx);
        if (b % (bytes > 32 ? 2 : 4) == 0) gemv_ask(w, gap);
        if (minimum) c = _mm_fmadd_ps(_mm_mul_ps(gemv_scales_half(w + 2, gap), dx), _mm_broadcast_ss(sum + b), c);
        if (code_offset(type) > 0.0f) c = _mm_fmadd_ps(s, _mm_broadcast_ss(sum + b), c);
        f = vec512_fma(vec512_spread4(s), vec512_to_f32(rows_sums(type, w, gap, xq + 32 * b)), f);
    }
    const __m128 low = _mm_hadd_ps(vec512_quarter(f, 0), vec512_quarter(f, 1)),
                 high = _mm_hadd_ps(vec512_quarter(f, 2), vec512_quarter(f, 3));
    __m128 all = _mm_hadd_ps(low, high);
    if (minimum) all = _mm_add_ps(all, c);
    if (code_offset(type) > 0.0f) all = _mm_fnmadd_ps(_mm_set1_ps(code_offset(type)), c, all);
    _mm_storeu_ps(sums, all);
}

#define DOT_32(type) GEMV_DOT(dot32, type)
GEMV_TYPES_32(DOT_32)

/* ------------------------------------------------------------------------------------------------------ blocks of 256 */

/* The q of a block, 64 in a vector as the type's codes come, and their sums. */
typedef struct x_block {
    vec512_int q0, q1, q2, q3;
    const void *sum16, *sum32;
    float d;
} x_block;

/* Sums of a row: what is added, what is taken off. */
typedef struct row_sums {
    vec512_f32 f;
    __m128 minima;
} row_sums;

VEC512_INLINE float half_at(const unsigned char *p)
{
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(gemv_u16(p))));
}

/* acc + scale times the products of unsigned codes and q. */
VEC512_INLINE vec512_int add_scaled(vec512_int acc, vec512_int codes, vec512_int q, vec512_int scale)
{
    return vec512_weigh(acc, vec512_dot2(codes, q), scale);
}

/* In words: byte i of a quarter of `scales` in the low half, byte j in the high one. */
VEC512_INLINE vec512_int scale_bytes(vec512_int scales, int i, int j)
{
    return vec512_lookup(scales, vec512_words(0x8000 | i, 0x8000 | i, 0x8000 | j, 0x8000 | j));
}

/* Q4_K and Q5_K: q0 has parts 0 and 2, q1 1 and 3, q2 4 and 6, q3 5 and 7. */
VEC512_INLINE row_sums block_q45(const bool five, const unsigned char *b, const x_block *x, row_sums s)
{
    const vec512_int m15 = vec512_set1_u8(15), m16 = vec512_set1_u8(16);
    const vec512_int c0 = vec512_bytes(b + (five ? 48 : 16)), c1 = vec512_bytes(b + (five ? 112 : 80));
    const __m128i sm = gemv_scales_minima(b);
    const vec512_int scales = vec512_quarters_of(sm);
    vec512_int v0 = vec512_and(c0, m15), v1 = vec512_and(vec512_right(c0, 4), m15), acc = vec512_zero();
    vec512_int v2 = vec512_and(c1, m15), v3 = vec512_and(vec512_right(c1, 4), m15);
    if (five) { /* bit j of a byte of qh is the fifth of part j */
        const vec512_int high = vec512_halves(b + 16, b + 16);
        v0 = vec512_or(v0, vec512_and(vec512_left_each(high, vec512_words(4, 4, 2, 2)), m16));
        v1 = vec512_or(v1, vec512_and(vec512_left_each(high, vec512_words(3, 3, 1, 1)), m16));
        v2 = vec512_or(v2, vec512_and(vec512_right_each(high, vec512_words(0, 0, 2, 2)), m16));
        v3 = vec512_or(v3, vec512_and(vec512_right_each(high, vec512_words(1, 1, 3, 3)), m16));
    }
    acc = add_scaled(acc, v0, x->q0, scale_bytes(scales, 0, 2));
    acc = add_scaled(acc, v1, x->q1, scale_bytes(scales, 1, 3));
    acc = add_scaled(acc, v2, x->q2, scale_bytes(scales, 4, 6));
    acc = add_scaled(acc, v3, x->q3, scale_bytes(scales, 5, 7));
    const __m128i m =
        _mm_madd_epi16(_mm_cvtepu8_epi16(_mm_unpackhi_epi64(sm, sm)), _mm_load_si128((const __m128i *)x->sum32));
    const __m128 d = _mm_mul_ps(_mm_cvtph_ps(_mm_cvtsi32_si128((int)gemv_u32(b))), _mm_set1_ps(x->d)); /* d, dmin */
    s.f = vec512_fma(vec512_all(d), vec512_to_f32(acc), s.f);
    s.minima = _mm_fmadd_ps(_mm_broadcastss_ps(_mm_movehdup_ps(d)), _mm_cvtepi32_ps(m), s.minima);
    return s;
}

VEC512_INLINE row_sums block_q6(const unsigned char *b, const x_block *x, row_sums s)
{
    const vec512_int m15 = vec512_set1_u8(15), m48 = vec512_set1_u8(48);
    const __m256i scales = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(b + 192)));
    const vec512_int l0 = vec512_bytes(b), l1 = vec512_bytes(b + 64), h0 = vec512_halves(b + 128, b + 128),
                     h1 = vec512_halves(b + 160, b + 160);
    const vec512_int up = vec512_words(4, 4, 2, 2), down = vec512_words(0, 0, 2, 2);
    const vec512_int v0 = vec512_or(vec512_and(l0, m15), vec512_and(vec512_left_each(h0, up), m48));
    const vec512_int v1 = vec512_or(vec512_and(vec512_right(l0, 4), m15), vec512_and(vec512_right_each(h0, down), m48));
    const vec512_int v2 = vec512_or(vec512_and(l1, m15), vec512_and(vec512_left_each(h1, up), m48));
    const vec512_int v3 = vec512_or(vec512_and(vec512_right(l1, 4), m15), vec512_and(vec512_right_each(h1, down), m48));
    vec512_int acc = add_scaled(vec512_zero(), v0, x->q0, vec512_pick(scales, vec512_words(0, 1, 2, 3)));
    acc = add_scaled(acc, v1, x->q1, vec512_pick(scales, vec512_words(4, 5, 6, 7)));
    acc = add_scaled(acc, v2, x->q2, vec512_pick(scales, vec512_words(8, 9, 10, 11)));
    acc = add_scaled(acc, v3, x->q3, vec512_pick(scales, vec512_words(12, 13, 14, 15)));
    const __m256i offset = _mm256_madd_epi16(scales, _mm256_load_si256((const __m256i *)x->sum16));
    acc = vec512_less(acc, vec512_low(_mm256_slli_epi32(offset, 5)));
    s.f = vec512_fma(vec512_set1(half_at(b + 208) * x->d), vec512_to_f32(acc), s.f);
    return s;
}

/* Q2_K and Q3_K: 64 two-bit codes of fields i and i + 1 (of four) of 32 bytes. */
VEC512_INLINE vec512_int two_bits(const unsigned char *p, int i)
{
    return vec512_and(vec512_right_each(vec512_halves(p, p), vec512_words(2 * i, 2 * i, 2 * i + 2, 2 * i + 2)),
                      vec512_set1_u8(3));
}

VEC512_INLINE vec512_int weigh_parts(vec512_int v0, vec512_int v1, vec512_int v2, vec512_int v3, __m256i scales,
                                     const x_block *x)
{
    vec512_int acc = add_scaled(vec512_zero(), v0, x->q0, vec512_pick(scales, vec512_words(0, 1, 2, 3)));
    acc = add_scaled(acc, v1, x->q1, vec512_pick(scales, vec512_words(4, 5, 6, 7)));
    acc = add_scaled(acc, v2, x->q2, vec512_pick(scales, vec512_words(8, 9, 10, 11)));
    return add_scaled(acc, v3, x->q3, vec512_pick(scales, vec512_words(12, 13, 14, 15)));
}

VEC512_INLINE row_sums block_q2(const unsigned char *b, const x_block *x, row_sums s)
{
    const __m128i sm = _mm_loadu_si128((const __m128i *)b), m15 = _mm_set1_epi8(15);
    const __m256i scales = _mm256_cvtepu8_epi16(_mm_and_si128(sm, m15)),
                  minima = _mm256_cvtepu8_epi16(_mm_and_si128(_mm_srli_epi16(sm, 4), m15));
    const vec512_int acc =
        weigh_parts(two_bits(b + 16, 0), two_bits(b + 16, 2), two_bits(b + 48, 0), two_bits(b + 48, 2), scales, x);
    const __m256i m = _mm256_madd_epi16(minima, _mm256_load_si256((const __m256i *)x->sum16));
    const __m128i m4 = _mm_add_epi32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
    const __m128 d =
        _mm_mul_ps(_mm_cvtph_ps(_mm_cvtsi32_si128((int)gemv_u32(b + 80))), _mm_set1_ps(x->d)); /* d, dmin */
    s.f = vec512_fma(vec512_all(d), vec512_to_f32(acc), s.f);
    s.minima = _mm_fmadd_ps(_mm_broadcastss_ps(_mm_movehdup_ps(d)), _mm_cvtepi32_ps(m4), s.minima);
    return s;
}

/* The third bits of parts i and i + 1 of eight, times four. */
VEC512_INLINE vec512_int third_bits(vec512_int high, int i)
{
    const vec512_int bits = i < 2 ? vec512_left_each(high, vec512_words(2 - i, 2 - i, 1 - i, 1 - i))
                                  : vec512_right_each(high, vec512_words(i - 2, i - 2, i - 1, i - 1));
    return vec512_and(bits, vec512_set1_u8(4));
}

VEC512_INLINE row_sums block_q3(const unsigned char *b, const x_block *x, row_sums s)
{
    const __m256i scales = _mm256_cvtepi8_epi16(gemv_scales_q3(b));
    const vec512_int high = vec512_halves(b, b);
    const vec512_int acc = weigh_parts(vec512_or(two_bits(b + 32, 0), third_bits(high, 0)),
                                       vec512_or(two_bits(b + 32, 2), third_bits(high, 2)),
                                       vec512_or(two_bits(b + 64, 0), third_bits(high, 4)),
                                       vec512_or(two_bits(b + 64, 2), third_bits(high, 6)), scales, x);
    const __m256i offset = _mm256_madd_epi16(scales, _mm256_load_si256((const __m256i *)x->sum16));
    s.f = vec512_fma(vec512_set1(half_at(b + 108) * x->d),
                     vec512_to_f32(vec512_less(acc, vec512_low(_mm256_slli_epi32(offset, 2)))), s.f);
    return s;
}

VEC512_INLINE row_sums block_of(const dtype type, const unsigned char *b, const x_block *x, row_sums s)
{
    switch (type) {
    case DTYPE_Q2_K: return block_q2(b, x, s);
    case DTYPE_Q3_K: return block_q3(b, x, s);
    case DTYPE_Q4_K: return block_q45(false, b, x, s);
    case DTYPE_Q5_K: return block_q45(true, b, x, s);
    default: return block_q6(b, x, s);
    }
}

VEC512_INLINE __m128 lane_sums(row_sums s)
{
    const __m128 low = _mm_add_ps(vec512_quarter(s.f, 0), vec512_quarter(s.f, 1)),
                 high = _mm_add_ps(vec512_quarter(s.f, 2), vec512_quarter(s.f, 3));
    return _mm_sub_ps(_mm_add_ps(low, high), s.minima);
}

VEC512_INLINE void dot256(const dtype type, const int64_t bytes, const unsigned char *w, int64_t gap, int64_t k,
                          const unsigned char *xq, float *sums)
{
    const bool pairs = type == DTYPE_Q4_K || type == DTYPE_Q5_K;
    const float *d = (const float *)(const void *)(xq + kern_xq_d(k));
    row_sums s0 = {vec512_set1(0.0f), _mm_setzero_ps()}, s1 = s0, s2 = s0, s3 = s0;
    for (int64_t b = 0; b < k / 256; b++, w += bytes) {
        const unsigned char *q = xq + 256 * b;
        const x_block x = {pairs ? vec512_halves(q, q + 64) : vec512_bytes(q),
                           pairs ? vec512_halves(q + 32, q + 96) : vec512_bytes(q + 64),
                           pairs ? vec512_halves(q + 128, q + 192) : vec512_bytes(q + 128),
                           pairs ? vec512_halves(q + 160, q + 224) : vec512_bytes(q + 192),
                           xq + kern_xq256_sum16(k) + 32 * b,
                           xq + kern_xq256_sum32(k) + 16 * b,
                           d[b]};
        for (int64_t line = 0; line < bytes; line += 64) gemv_ask(w + line, gap);
        s0 = block_of(type, w, &x, s0);
        s1 = block_of(type, w + gap, &x, s1);
        s2 = block_of(type, w + 2 * gap, &x, s2);
        s3 = block_of(type, w + 3 * gap, &x, s3);
    }
    const __m128 low = _mm_hadd_ps(lane_sums(s0), lane_sums(s1)), high = _mm_hadd_ps(lane_sums(s2), lane_sums(s3));
    _mm_storeu_ps(sums, _mm_hadd_ps(low, high));
}

#define DOT_256(type) GEMV_DOT(dot256, type)
GEMV_TYPES_256(DOT_256)

/* NULL: AVX2's. */
static gemv_dot dot_of(dtype type)
{
    switch (type) {
        GEMV_TYPES_32(GEMV_CASE)
        GEMV_TYPES_256(GEMV_CASE)
    default: return NULL;
    }
}

void KERN_AVX512(gemv)(const kern_gemv_args *a)
{
    const gemv_dot dot = a->xq ? dot_of(a->type) : NULL;
    if (dot)
        kern_avx2_gemv_by(a, dot);
    else
        kern_avx2_gemv(a);
}
