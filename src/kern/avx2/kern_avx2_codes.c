/* SPDX-License-Identifier: Apache-2.0
 * kern_avx2_codes.c: rows of blocks as signed bytes with scales (layouts: tensor/quant_simple.c, tensor/quant_k.c). */
#include "kern/avx2/kern_avx2_codes.h"

#include "kern/avx2/kern_avx2_gemv.h"

codes_kind kern_avx2_codes_kind(dtype type)
{
    switch (type) {
    case DTYPE_Q4_1:
    case DTYPE_Q5_1:
    case DTYPE_Q4_K:
    case DTYPE_Q5_K: return (codes_kind){32, true, true};
    case DTYPE_Q2_K: return (codes_kind){16, true, true};
    case DTYPE_Q3_K:
    case DTYPE_Q6_K: return (codes_kind){16, false, true};
    case DTYPE_Q8_0:
    case DTYPE_Q8_K:
    case DTYPE_IQ4_NL:
    case DTYPE_IQ4_XS: return (codes_kind){32, false, false};
    default: return (codes_kind){32, false, true};
    }
}

/* 32 codes from number `at` on, and the offsets of their groups. */
VEC_INLINE void put_codes(row_codes *to, const int group, int64_t at, __m256i codes)
{
    _mm256_store_si256((__m256i *)(to->code + at), codes);
    __m256i s = _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), codes), _mm256_set1_epi16(-128));
    s = _mm256_add_epi32(s, _mm256_shuffle_epi32(s, 0x4e));
    s = _mm256_add_epi32(s, _mm256_shuffle_epi32(s, 0xb1));
    const int32_t low = _mm256_cvtsi256_si32(s), high = _mm_cvtsi128_si32(_mm256_extracti128_si256(s, 1));
    if (group == 32) {
        to->offset[at / 32] = low + high;
    } else {
        to->offset[at / 16] = low;
        to->offset[at / 16 + 1] = high;
    }
}

VEC_INLINE float half_of(const unsigned char *p) { return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(gemv_u16(p)))); }

VEC_INLINE __m256i less(__m256i codes, int offset) { return _mm256_sub_epi8(codes, _mm256_set1_epi8((char)offset)); }

VEC_INLINE void codes_32(const dtype type, const unsigned char *b, int64_t at, row_codes *to)
{
    __m256i v;
    switch (type) {
    case DTYPE_Q4_0: v = less(gemv_nibbles(b + 2), 8); break;
    case DTYPE_Q4_1: v = gemv_nibbles(b + 4); break;
    case DTYPE_Q5_0: v = less(_mm256_or_si256(gemv_nibbles(b + 6), gemv_fifths(b + 2)), 16); break;
    case DTYPE_Q5_1: v = _mm256_or_si256(gemv_nibbles(b + 8), gemv_fifths(b + 4)); break;
    case DTYPE_IQ4_NL: v = _mm256_shuffle_epi8(gemv_iq4_table(), gemv_nibbles(b + 2)); break;
    case DTYPE_MXFP4: v = _mm256_shuffle_epi8(gemv_mxfp4_table(), gemv_nibbles(b + 1)); break;
    default: v = gemv_load(b + 2); break;
    }
    to->scale[at / 32] = type == DTYPE_MXFP4 ? _mm_cvtss_f32(gemv_scales_e8m0(b, 0)) : half_of(b);
    if (type == DTYPE_Q4_1 || type == DTYPE_Q5_1) to->add[at / 32] = half_of(b + 2);
    put_codes(to, 32, at, v);
}

/* d times n (8 or 16) signed bytes. */
VEC_INLINE void put_scales(float *to, const int n, float d, __m128i bytes)
{
    const __m256 v = _mm256_set1_ps(d);
    _mm256_storeu_ps(to, _mm256_mul_ps(v, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))));
    if (n == 16)
        _mm256_storeu_ps(to + 8,
                         _mm256_mul_ps(v, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(bytes, bytes)))));
}

VEC_INLINE void codes_q45(const bool five, const unsigned char *b, int64_t at, row_codes *to)
{
    const __m256i m15 = _mm256_set1_epi8(15), m16 = _mm256_set1_epi8(16), high = five ? gemv_load(b + 16) : m15;
    const __m128i sm = gemv_scales_minima(b);
    put_scales(to->scale + at / 32, 8, half_of(b), sm);
    put_scales(to->add + at / 32, 8, -half_of(b + 2), _mm_unpackhi_epi64(sm, sm));
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
        __m256i v = gemv_load(b + (five ? 48 : 16) + j / 2 * 32);
        v = _mm256_and_si256(j % 2 ? _mm256_srli_epi16(v, 4) : v, m15);
        if (five)
            v = _mm256_or_si256(
                v, _mm256_and_si256(j < 4 ? _mm256_slli_epi16(high, 4 - j) : _mm256_srli_epi16(high, j - 4), m16));
        put_codes(to, 32, at + 32 * j, v);
    }
}

VEC_INLINE void codes_q6(const unsigned char *b, int64_t at, row_codes *to)
{
    const __m256i m15 = _mm256_set1_epi8(15), m48 = _mm256_set1_epi8(48);
    put_scales(to->scale + at / 16, 16, half_of(b + 208), _mm_loadu_si128((const __m128i *)(b + 192)));
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
        const __m256i l = gemv_load(b + j / 4 * 64 + j % 2 * 32), h = gemv_load(b + 128 + j / 4 * 32);
        const __m256i low = _mm256_and_si256(j % 4 < 2 ? l : _mm256_srli_epi16(l, 4), m15);
        const __m256i bits = j % 4 < 2 ? _mm256_slli_epi16(h, 4 - 2 * (j % 4)) : _mm256_srli_epi16(h, 2 * (j % 4) - 4);
        put_codes(to, 16, at + 32 * j, less(_mm256_or_si256(low, _mm256_and_si256(bits, m48)), 32));
    }
}

VEC_INLINE __m256i two_bits_of(const unsigned char *qs, int j)
{
    return _mm256_and_si256(_mm256_srli_epi16(gemv_load(qs + j / 4 * 32), j % 4 * 2), _mm256_set1_epi8(3));
}

VEC_INLINE void codes_q3(const unsigned char *b, int64_t at, row_codes *to)
{
    const __m256i m4 = _mm256_set1_epi8(4), high = gemv_load(b);
    put_scales(to->scale + at / 16, 16, half_of(b + 108), gemv_scales_q3(b));
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
        const __m256i bit =
            _mm256_and_si256(j < 2 ? _mm256_slli_epi16(high, 2 - j) : _mm256_srli_epi16(high, j - 2), m4);
        put_codes(to, 16, at + 32 * j, less(_mm256_or_si256(two_bits_of(b + 32, j), bit), 4));
    }
}

VEC_INLINE void codes_q2(const unsigned char *b, int64_t at, row_codes *to)
{
    const __m128i sm = _mm_loadu_si128((const __m128i *)b), m15 = _mm_set1_epi8(15);
    put_scales(to->scale + at / 16, 16, half_of(b + 80), _mm_and_si128(sm, m15));
    put_scales(to->add + at / 16, 16, -half_of(b + 82), _mm_and_si128(_mm_srli_epi16(sm, 4), m15));
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) put_codes(to, 16, at + 32 * j, two_bits_of(b + 16, j));
}

VEC_INLINE void codes_iq4(const unsigned char *b, int64_t at, row_codes *to)
{
    put_scales(to->scale + at / 32, 8, half_of(b), gemv_scales_iq4(b + 2));
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++)
        put_codes(to, 32, at + 32 * j, _mm256_shuffle_epi8(gemv_iq4_table(), gemv_nibbles(b + 8 + 16 * j)));
}

VEC_INLINE void codes_q8(const unsigned char *b, int64_t at, row_codes *to)
{
    float d;
    memcpy(&d, b, sizeof(d));
    for (int j = 0; j < 8; j++) {
        to->scale[at / 32 + j] = d;
        put_codes(to, 32, at + 32 * j, gemv_load(b + 4 + 32 * j));
    }
}

VEC_INLINE void codes_32s(const dtype type, const int bytes, const unsigned char *b, int64_t n, row_codes *to)
{
    for (int64_t i = 0; i < n; i += 32, b += bytes) codes_32(type, b, i, to);
}

void kern_avx2_codes(dtype type, const unsigned char *from, int64_t n, row_codes *to)
{
    switch (type) {
    case DTYPE_Q4_0: codes_32s(DTYPE_Q4_0, 18, from, n, to); return;
    case DTYPE_Q4_1: codes_32s(DTYPE_Q4_1, 20, from, n, to); return;
    case DTYPE_Q5_0: codes_32s(DTYPE_Q5_0, 22, from, n, to); return;
    case DTYPE_Q5_1: codes_32s(DTYPE_Q5_1, 24, from, n, to); return;
    case DTYPE_Q8_0: codes_32s(DTYPE_Q8_0, 34, from, n, to); return;
    case DTYPE_IQ4_NL: codes_32s(DTYPE_IQ4_NL, 18, from, n, to); return;
    case DTYPE_MXFP4: codes_32s(DTYPE_MXFP4, 17, from, n, to); return;
    default: break;
    }
    for (int64_t i = 0; i < n; i += 256, from += dtype_block_bytes(type)) {
        switch (type) {
        case DTYPE_Q2_K: codes_q2(from, i, to); break;
        case DTYPE_Q3_K: codes_q3(from, i, to); break;
        case DTYPE_Q4_K: codes_q45(false, from, i, to); break;
        case DTYPE_Q5_K: codes_q45(true, from, i, to); break;
        case DTYPE_Q6_K: codes_q6(from, i, to); break;
        case DTYPE_IQ4_XS: codes_iq4(from, i, to); break;
        default: codes_q8(from, i, to); break;
        }
    }
}
