/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx2_gemv.h: what the files of gemv share. A dot takes four rows of weights, `gap` bytes apart, with one row of activations: products of four
 * rows in turn keep their chains independent, and four rows from distant quarters of a call are four long streams.
 */
#ifndef LATH_KERN_AVX2_GEMV_H
#define LATH_KERN_AVX2_GEMV_H

#include <string.h>

#include "kern/avx2/kern_avx2.h"
#include "kern/avx2/kern_avx2_math.h"

typedef void (*gemv_dot)(const unsigned char *w, int64_t gap, int64_t k, const void *x, float *sums);

/* gemv by a dot of a->type. */
void kern_avx2_gemv_by(const kern_gemv_args *a, gemv_dot dot);

/* The products of blocks with float activations. */
gemv_dot kern_avx2_dot_blocks(dtype type);
/* The integer products with quantised activations; NULL: the type has none. */
gemv_dot kern_avx2_dot_32(dtype type);
gemv_dot kern_avx2_dot_256(dtype type);

/* Of a block: GEMV_BYTES_Q4_0, GEMV_NUMBERS_Q4_0, ... */
enum {
#define DTYPE(name, kind, numbers, bytes, gguf_id) GEMV_BYTES_##name = (bytes), GEMV_NUMBERS_##name = (numbers),
#include "tensor/dtype.def"
#undef DTYPE
};

/* The types of blocks of 32 numbers, and of 256 whose scales are packed alike. */
#define GEMV_TYPES_32(DO) DO(Q4_0) DO(Q4_1) DO(Q5_0) DO(Q5_1) DO(Q8_0) DO(IQ4_NL) DO(MXFP4)
#define GEMV_TYPES_256(DO) DO(Q2_K) DO(Q3_K) DO(Q4_K) DO(Q5_K) DO(Q6_K)
#define GEMV_TYPES(DO) GEMV_TYPES_32(DO) GEMV_TYPES_256(DO) DO(Q8_K) DO(IQ4_XS)

/* dot_TYPE: `dot`, an inline function, with type and bytes as constants. */
#define GEMV_DOT(dot, type)                                                                            \
    static void dot_##type(const unsigned char *w, int64_t gap, int64_t k, const void *x, float *sums) \
    {                                                                                                  \
        dot(DTYPE_##type, GEMV_BYTES_##type, w, gap, k, x, sums);                                      \
    }
#define GEMV_CASE(type) \
    case DTYPE_##type: return dot_##type;

/* Bytes from the block in use to the cache line asked for. */
enum { GEMV_AHEAD = 2048 };

/* Asks for a line of each row; may lie behind the end of everything. */
VEC_INLINE void gemv_ask(const unsigned char *w, int64_t gap)
{
    const uintptr_t at = (uintptr_t)w + GEMV_AHEAD;
    _mm_prefetch((const char *)at, _MM_HINT_NTA);
    _mm_prefetch((const char *)(at + (uintptr_t)gap), _MM_HINT_NTA);
    _mm_prefetch((const char *)(at + 2 * (uintptr_t)gap), _MM_HINT_NTA);
    _mm_prefetch((const char *)(at + 3 * (uintptr_t)gap), _MM_HINT_NTA);
}

/* The sums of the lanes of four vectors: ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)). */
VEC_INLINE __m128 gemv_sums(__m256 a, __m256 b, __m256 c, __m256 d)
{
    const __m256 s = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
    return _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
}

VEC_INLINE __m256i gemv_load(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }

VEC_INLINE uint32_t gemv_u32(const unsigned char *p)
{
    uint32_t u;
    memcpy(&u, p, sizeof(u));
    return u;
}

VEC_INLINE uint16_t gemv_u16(const unsigned char *p)
{
    uint16_t u;
    memcpy(&u, p, sizeof(u));
    return u;
}

/* The binary16 at w, w + gap, w + 2 gap, w + 3 gap. */
VEC_INLINE __m128 gemv_scales_half(const unsigned char *w, int64_t gap)
{
    __m128i h = _mm_cvtsi32_si128(gemv_u16(w));
    h = _mm_insert_epi16(h, gemv_u16(w + gap), 1);
    h = _mm_insert_epi16(h, gemv_u16(w + 2 * gap), 2);
    h = _mm_insert_epi16(h, gemv_u16(w + 3 * gap), 3);
    return _mm_cvtph_ps(h);
}

/* MXFP4's scales there: 2^(e - 128), subnormal for e < 2. */
VEC_INLINE __m128 gemv_scales_e8m0(const unsigned char *w, int64_t gap)
{
    const uint32_t all = w[0] | (uint32_t)w[gap] << 8 | (uint32_t)w[2 * gap] << 16 | (uint32_t)w[3 * gap] << 24;
    const __m128i e = _mm_cvtepu8_epi32(_mm_cvtsi32_si128((int)all));
    const __m128i normal = _mm_slli_epi32(_mm_sub_epi32(e, _mm_set1_epi32(1)), 23);
    const __m128i tiny = _mm_sllv_epi32(_mm_set1_epi32(0x00200000), e);
    return _mm_castsi128_ps(_mm_blendv_epi8(normal, tiny, _mm_cmpgt_epi32(_mm_set1_epi32(2), e)));
}

/* The halves of 16 bytes: low ones in numbers 0..15, high ones in 16..31. */
VEC_INLINE __m256i gemv_nibbles(const unsigned char *p)
{
    const __m128i b = _mm_loadu_si128((const __m128i *)p);
    return _mm256_and_si256(_mm256_inserti128_si256(_mm256_castsi128_si256(b), _mm_srli_epi16(b, 4), 1),
                            _mm256_set1_epi8(15));
}

/* 16 where bit i of the four bytes at p is set. */
VEC_INLINE __m256i gemv_fifths(const unsigned char *p)
{
    const __m256i spread = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3,
                                            3, 3, 3, 3, 3, 3, 3);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201u);
    const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32((int)gemv_u32(p)), spread);
    return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit), _mm256_set1_epi8(16));
}

/* Scales (low eight bytes) and minima of the parts of Q4_K and Q5_K; b: the block. In vectors throughout: gcc makes worse ones of scalar code. */
VEC_INLINE __m128i gemv_scales_minima(const unsigned char *b)
{
    const __m128i v = _mm_loadu_si128((const __m128i *)b); /* d dmin, then three int32 of scales */
    const __m128i low = _mm_shuffle_epi32(v, 0xed),
                  at = _mm_setr_epi8(-1, -1, -1, -1, 4, 5, 6, 7, -1, -1, -1, -1, 8, 9, 10, 11);
    const __m128i mask = _mm_setr_epi32(0x3f3f3f3f, 0x0f0f0f0f, 0x3f3f3f3f, 0x0f0f0f0f);
    const __m128i six = _mm_and_si128(_mm_srlv_epi32(low, _mm_setr_epi32(0, 0, 0, 4)), mask);
    const __m128i top = _mm_and_si128(_mm_srli_epi16(_mm_shuffle_epi8(v, at), 2), _mm_set1_epi8(48));
    return _mm_or_si128(six, top);
}

/* The sixteen signed scales of Q3_K; b: the block. (Vectors are slower here.) */
VEC_INLINE __m128i gemv_scales_q3(const unsigned char *b)
{
    const uint32_t s0 = gemv_u32(b + 96), s1 = gemv_u32(b + 100), s2 = gemv_u32(b + 104), low = 0x0f0f0f0fu,
                   high = 0x30303030u;
    const uint64_t first = ((s0 & low) | (s2 << 4 & high)) | (uint64_t)((s1 & low) | (s2 << 2 & high)) << 32;
    const uint64_t second = ((s0 >> 4 & low) | (s2 & high)) | (uint64_t)((s1 >> 4 & low) | (s2 >> 2 & high)) << 32;
    return _mm_sub_epi8(_mm_set_epi64x((long long)second, (long long)first), _mm_set1_epi8(32));
}

/* The eight signed scales of IQ4_XS, in the low bytes. */
VEC_INLINE __m128i gemv_scales_iq4(const unsigned char *p)
{
    /* Two bits each of the 16 at p, spread to a byte each; four bits each of the 32 behind them. */
    uint64_t h = gemv_u16(p), l = gemv_u32(p + 2);
    h = (h | h << 24) & 0x000000ff000000ffu;
    h = (h | h << 12) & 0x000f000f000f000fu;
    h = (h | h << 6) & 0x0303030303030303u;
    l = (l | l << 16) & 0x0000ffff0000ffffu;
    l = (l | l << 8) & 0x00ff00ff00ff00ffu;
    l = (l | l << 4) & 0x0f0f0f0f0f0f0f0fu;
    return _mm_sub_epi8(_mm_cvtsi64_si128((long long)(l | h << 4)), _mm_set1_epi8(32));
}

VEC_INLINE __m256i gemv_iq4_table(void)
{
    const __m128i t = _mm_setr_epi8(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
    return _mm256_broadcastsi128_si256(t);
}

/* The values of MXFP4, doubled. */
VEC_INLINE __m256i gemv_mxfp4_table(void)
{
    return _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12));
}

#endif
