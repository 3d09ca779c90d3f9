/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx2_decode.c: rows of weights to f32, and the products of what blocks decode to with floats (layouts and operations: tensor/quant_simple.c, tensor/quant_k.c).
 *
 * Multiplications, additions and their order are those of dtype_to_f32, so the bits are as well; no fused ones. A block is taken 32 numbers at a time:
 * codes as 32 signed bytes, each eight widened, converted and put through the block's multiply and add.
 */
#include "kern/avx2/kern_avx2_decode.h"

#include "kern/avx2/kern_avx2_gemv.h"

/* Eight of the codes as f32. */
VEC_INLINE __m256 eight_codes(__m256i codes, const int i)
{
    const __m128i half = i < 2 ? _mm256_castsi256_si128(codes) : _mm256_extracti128_si256(codes, 1);
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(i % 2 ? _mm_unpackhi_epi64(half, half) : half));
}

/* Where the numbers of a block go: to `to`, or into the sums of their products with x, even and odd eights apart. */
typedef struct sink {
    float *to;
    const float *x;
    __m256 even, odd;
} sink;

/* Numbers 8 i to 8 i + 7. */
VEC_INLINE void put_eight(const bool dot, sink *s, const int i, __m256 v)
{
    if (!dot)
        _mm256_store_ps(s->to + 8 * i, v);
    else if (i % 2)
        s->odd = _mm256_fmadd_ps(v, _mm256_load_ps(s->x + 8 * i), s->odd);
    else
        s->even = _mm256_fmadd_ps(v, _mm256_load_ps(s->x + 8 * i), s->even);
}

/* Numbers 32 j to 32 j + 31: d * code. */
VEC_INLINE void put(const bool dot, sink *s, const int j, __m256i codes, __m256 d)
{
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) put_eight(dot, s, 4 * j + i, _mm256_mul_ps(d, eight_codes(codes, i)));
}

/* d * code + m. */
VEC_INLINE void put_add(const bool dot, sink *s, const int j, __m256i codes, __m256 d, __m256 m)
{
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) put_eight(dot, s, 4 * j + i, _mm256_add_ps(_mm256_mul_ps(d, eight_codes(codes, i)), m));
}

/* Two parts of 16: their own d and, with `minimum`, m to take off. */
VEC_INLINE void put_parts(const bool dot, sink *s, const int j, const bool minimum, __m256i codes, __m256 d0, __m256 d1,
                          __m256 m0, __m256 m1)
{
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m256 v = _mm256_mul_ps(i < 2 ? d0 : d1, eight_codes(codes, i));
        put_eight(dot, s, 4 * j + i, minimum ? _mm256_sub_ps(v, i < 2 ? m0 : m1) : v);
    }
}

VEC_INLINE __m256 half_at(const unsigned char *p)
{
    return _mm256_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(gemv_u16(p))));
}

VEC_INLINE __m256 power_at(const unsigned char *p) /* MXFP4's scale */
{
    const uint32_t e = p[0];
    return _mm256_castsi256_ps(_mm256_set1_epi32((int)(e < 2 ? 0x00200000u << e : (e - 1) << 23)));
}

VEC_INLINE __m256i less(__m256i codes, int offset) { return _mm256_sub_epi8(codes, _mm256_set1_epi8((char)offset)); }

VEC_INLINE void decode_32(const bool dot, const dtype type, const unsigned char *b, sink *s)
{
    switch (type) {
    case DTYPE_Q4_0: put(dot, s, 0, less(gemv_nibbles(b + 2), 8), half_at(b)); break;
    case DTYPE_Q4_1: put_add(dot, s, 0, gemv_nibbles(b + 4), half_at(b), half_at(b + 2)); break;
    case DTYPE_Q5_0:
        put(dot, s, 0, less(_mm256_or_si256(gemv_nibbles(b + 6), gemv_fifths(b + 2)), 16), half_at(b));
        break;
    case DTYPE_Q5_1:
        put_add(dot, s, 0, _mm256_or_si256(gemv_nibbles(b + 8), gemv_fifths(b + 4)), half_at(b), half_at(b + 2));
        break;
    case DTYPE_IQ4_NL: put(dot, s, 0, _mm256_shuffle_epi8(gemv_iq4_table(), gemv_nibbles(b + 2)), half_at(b)); break;
    case DTYPE_MXFP4: put(dot, s, 0, _mm256_shuffle_epi8(gemv_mxfp4_table(), gemv_nibbles(b + 1)), power_at(b)); break;
    default: put(dot, s, 0, gemv_load(b + 2), half_at(b)); break;
    }
}

/* `n` products of d with signed bytes, as floats; n 8 or 16. */
VEC_INLINE void scales_f32(const int n, __m256 d, __m128i bytes, float *to)
{
    _mm256_store_ps(to, _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))));
    if (n == 16)
        _mm256_store_ps(to + 8,
                        _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(bytes, bytes)))));
}

VEC_INLINE void decode_q45(const bool dot, const bool five, const unsigned char *b, sink *s)
{
    _Alignas(32) float d[8], m[8];
    const __m256i m15 = _mm256_set1_epi8(15), m16 = _mm256_set1_epi8(16), high = five ? gemv_load(b + 16) : m15;
    const __m128i sm = gemv_scales_minima(b);
    scales_f32(8, half_at(b), sm, d);
    scales_f32(8, half_at(b + 2), _mm_unpackhi_epi64(sm, sm), m);
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
        __m256i v = gemv_load(b + (five ? 48 : 16) + j / 2 * 32);
        v = _mm256_and_si256(j % 2 ? _mm256_srli_epi16(v, 4) : v, m15);
        if (five)
            v = _mm256_or_si256(
                v, _mm256_and_si256(j < 4 ? _mm256_slli_epi16(high, 4 - j) : _mm256_srli_epi16(high, j - 4), m16));
        const __m256 dj = _mm256_broadcast_ss(d + j), mj = _mm256_broadcast_ss(m + j);
        put_parts(dot, s, j, true, v, dj, dj, mj, mj);
    }
}

VEC_INLINE void decode_q6(const bool dot, const unsigned char *b, sink *s)
{
    _Alignas(32) float d[16];
    const __m256i m15 = _mm256_set1_epi8(15), m48 = _mm256_set1_epi8(48);
    const __m256 none = _mm256_setzero_ps();
    scales_f32(16, half_at(b + 208), _mm_loadu_si128((const __m128i *)(b + 192)), d);
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
        const __m256i l = gemv_load(b + j / 4 * 64 + j % 2 * 32), h = gemv_load(b + 128 + j / 4 * 32);
        const __m256i low = _mm256_and_si256(j % 4 < 2 ? l : _mm256_srli_epi16(l, 4), m15);
        const __m256i bits = j % 4 < 2 ? _mm256_slli_epi16(h, 4 - 2 * (j % 4)) : _mm256_srli_epi16(h, 2 * (j % 4) - 4);
        const __m256i v = less(_mm256_or_si256(low, _mm256_and_si256(bits, m48)), 32);
        put_parts(dot, s, j, false, v, _mm256_broadcast_ss(d + 2 * j), _mm256_broadcast_ss(d + 2 * j + 1), none, none);
    }
}

VEC_INLINE __m256i two_bits_at(const unsigned char *qs, int j)
{
    return _mm256_and_si256(_mm256_srli_epi16(gemv_load(qs + j / 4 * 32), j % 4 * 2), _mm256_set1_epi8(3));
}

VEC_INLINE void decode_q3(const bool dot, const unsigned char *b, sink *s)
{
    _Alignas(32) float d[16];
    const __m256i m4 = _mm256_set1_epi8(4), high = gemv_load(b);
    const __m256 none = _mm256_setzero_ps();
    scales_f32(16, half_at(b + 108), gemv_scales_q3(b), d);
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
        const __m256i bit =
            _mm256_and_si256(j < 2 ? _mm256_slli_epi16(high, 2 - j) : _mm256_srli_epi16(high, j - 2), m4);
        const __m256i v = less(_mm256_or_si256(two_bits_at(b + 32, j), bit), 4);
        put_parts(dot, s, j, false, v, _mm256_broadcast_ss(d + 2 * j), _mm256_broadcast_ss(d + 2 * j + 1), none, none);
    }
}

VEC_INLINE void decode_q2(const bool dot, const unsigned char *b, sink *s)
{
    _Alignas(32) float d[16], m[16];
    const __m128i sm = _mm_loadu_si128((const __m128i *)b), m15 = _mm_set1_epi8(15);
    scales_f32(16, half_at(b + 80), _mm_and_si128(sm, m15), d);
    scales_f32(16, half_at(b + 82), _mm_and_si128(_mm_srli_epi16(sm, 4), m15), m);
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++)
        put_parts(dot, s, j, true, two_bits_at(b + 16, j), _mm256_broadcast_ss(d + 2 * j),
                  _mm256_broadcast_ss(d + 2 * j + 1), _mm256_broadcast_ss(m + 2 * j),
                  _mm256_broadcast_ss(m + 2 * j + 1));
}

VEC_INLINE void decode_iq4(const bool dot, const unsigned char *b, sink *s)
{
    _Alignas(32) float d[8];
    scales_f32(8, half_at(b), gemv_scales_iq4(b + 2), d);
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++)
        put(dot, s, j, _mm256_shuffle_epi8(gemv_iq4_table(), gemv_nibbles(b + 8 + 16 * j)), _mm256_broadcast_ss(d + j));
}

VEC_INLINE void decode_q8(const bool dot, const unsigned char *b, sink *s)
{
    float d;
    memcpy(&d, b, sizeof(d));
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) put(dot, s, j, gemv_load(b + 4 + 32 * j), _mm256_set1_ps(d));
}

VEC_INLINE void decode_256(const bool dot, const dtype type, const unsigned char *b, sink *s)
{
    switch (type) {
    case DTYPE_Q2_K: decode_q2(dot, b, s); break;
    case DTYPE_Q3_K: decode_q3(dot, b, s); break;
    case DTYPE_Q4_K: decode_q45(dot, false, b, s); break;
    case DTYPE_Q5_K: decode_q45(dot, true, b, s); break;
    case DTYPE_Q6_K: decode_q6(dot, b, s); break;
    case DTYPE_IQ4_XS: decode_iq4(dot, b, s); break;
    default: decode_q8(dot, b, s); break;
    }
}

VEC_INLINE void decode_block(const bool dot, const dtype type, const int numbers, const unsigned char *b, sink *s)
{
    if (numbers == 32)
        decode_32(dot, type, b, s);
    else
        decode_256(dot, type, b, s);
}

VEC_INLINE void decode_blocks(const dtype type, const int numbers, const int bytes, const unsigned char *b, int64_t n,
                              float *to)
{
    sink s = {.to = to, .even = _mm256_setzero_ps(), .odd = _mm256_setzero_ps()};
    for (int64_t i = 0; i < n; i += numbers, b += bytes, s.to += numbers) decode_block(false, type, numbers, b, &s);
}

/* The products of four rows with floats. */
VEC_INLINE void dot_blocks(const dtype type, const int numbers, const int bytes, const unsigned char *w, int64_t gap,
                           int64_t k, const float *x, float *sums)
{
    sink s0 = {.x = x, .even = _mm256_setzero_ps(), .odd = _mm256_setzero_ps()}, s1 = s0, s2 = s0, s3 = s0;
    for (int64_t i = 0; i < k; i += numbers, w += bytes) {
        for (int line = 0; line < bytes; line += 64) gemv_ask(w + line, gap);
        decode_block(true, type, numbers, w, &s0);
        decode_block(true, type, numbers, w + gap, &s1);
        decode_block(true, type, numbers, w + 2 * gap, &s2);
        decode_block(true, type, numbers, w + 3 * gap, &s3);
        s0.x += numbers, s1.x += numbers, s2.x += numbers, s3.x += numbers;
    }
    _mm_storeu_ps(sums, gemv_sums(_mm256_add_ps(s0.even, s0.odd), _mm256_add_ps(s1.even, s1.odd),
                                  _mm256_add_ps(s2.even, s2.odd), _mm256_add_ps(s3.even, s3.odd)));
}

/* Single numbers: eights, and what is left. */
VEC_INLINE void decode_singles(const dtype type, const int64_t size, const unsigned char *from, int64_t n, float *to)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) _mm256_store_ps(to + i, vec_load(type, from + size * i));
    dtype_to_f32(type, from + size * i, (size_t)(n - i), to + i);
}

void kern_avx2_to_f32(dtype type, const unsigned char *from, int64_t n, float *to)
{
    switch (type) {
    case DTYPE_F32: decode_singles(DTYPE_F32, 4, from, n, to); break;
    case DTYPE_F16: decode_singles(DTYPE_F16, 2, from, n, to); break;
    case DTYPE_BF16: decode_singles(DTYPE_BF16, 2, from, n, to); break;
    case DTYPE_F8_E4M3: decode_singles(DTYPE_F8_E4M3, 1, from, n, to); break;
    case DTYPE_F8_E5M2: decode_singles(DTYPE_F8_E5M2, 1, from, n, to); break;
#define DO(type) \
    case DTYPE_##type: decode_blocks(DTYPE_##type, GEMV_NUMBERS_##type, GEMV_BYTES_##type, from, n, to); break;
        GEMV_TYPES(DO)
#undef DO
    default: dtype_to_f32(type, from, (size_t)n, to); break;
    }
}

#define DO(type)                                                                                       \
    static void dot_##type(const unsigned char *w, int64_t gap, int64_t k, const void *x, float *sums) \
    {                                                                                                  \
        dot_blocks(DTYPE_##type, GEMV_NUMBERS_##type, GEMV_BYTES_##type, w, gap, k, x, sums);          \
    }
GEMV_TYPES(DO)
#undef DO

gemv_dot kern_avx2_dot_blocks(dtype type)
{
    switch (type) {
        GEMV_TYPES(GEMV_CASE)
    default: return NULL;
    }
}
