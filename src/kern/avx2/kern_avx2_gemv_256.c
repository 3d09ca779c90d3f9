/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx2_gemv_256.c: integer products of the 256-number blocks (layouts: tensor/quant_k.c).
 *
 * The scales of a block's parts are small integers, so a whole block is one exact integer sum: vpmaddubsw gives sums of two products, vpmaddwd with the
 * part's scale in all lanes weighs and adds them. Offsets and minima go through the sums of q that quantize_x left: one vpmaddwd a block. Eight
 * sums of a block as f32 times both scales are added to the row's eight chains. The largest sum, of Q6_K, is 256 * 63 * 127 * 128 < 2^28.
 */
#include "kern/avx2/kern_avx2_gemv.h"
#include "kern/kern_xq.h"

/* The q of a block and their sums. */
typedef struct x_block {
    const unsigned char *q; /* [256] */
    const void *sum16, *sum32;
    float d;
} x_block;

VEC_INLINE __m256i q_at(const x_block *x, int part) { return _mm256_load_si256((const __m256i *)(x->q + 32 * part)); }

/* acc + scale times the products of unsigned codes and q, sixteen pairs. */
VEC_INLINE __m256i add_scaled(__m256i acc, __m256i codes, __m256i q, __m256i scale)
{
    return _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(codes, q), scale));
}

/* The same of signed codes, |code| * 127 * 2 < 2^15. */
VEC_INLINE __m256i add_scaled_signed(__m256i acc, __m256i codes, __m256i q, __m256i scale)
{
    return add_scaled(acc, _mm256_abs_epi8(codes), _mm256_sign_epi8(q, codes), scale);
}

/* Byte `part` of each half of `bytes` as sixteen int16, bytes under 128. */
VEC_INLINE __m256i scale_u8(__m256i bytes, int part)
{
    return _mm256_shuffle_epi8(bytes, _mm256_set1_epi16((short)(0x8000 | part)));
}

/* Int16 `part` of each half in the whole half. */
VEC_INLINE __m256i scale_i16(__m256i words, int part)
{
    return _mm256_shuffle_epi8(words, _mm256_set1_epi16((short)((2 * part + 1) << 8 | 2 * part)));
}

/* Int16 2 i in the low half and 2 i + 1 in the high one, of eight that are in both halves: scales of two parts of 16. */
VEC_INLINE __m256i scale_pair(__m256i words, int i)
{
    const __m256i at =
        _mm256_setr_epi64x(0x0100010001000100, 0x0100010001000100, 0x0302030203020302, 0x0302030203020302);
    return _mm256_shuffle_epi8(words, _mm256_add_epi8(at, _mm256_set1_epi8((char)(4 * i))));
}

/* Numbers 32 part..32 part + 31 of two-bit fields: bytes of 128 numbers, field part % 4. */
VEC_INLINE __m256i two_bits(__m256i bytes, int part)
{
    return _mm256_and_si256(_mm256_srli_epi16(bytes, part % 4 * 2), _mm256_set1_epi8(3));
}

/* Q4_K and Q5_K: eight parts with scale and minimum. */
VEC_INLINE __m256 block_q45(const bool five, const unsigned char *b, const x_block *x, __m256 f)
{
    const __m256i m15 = _mm256_set1_epi8(15), m16 = _mm256_set1_epi8(16);
    const unsigned char *qs = b + (five ? 48 : 16);
    const __m128i sm = gemv_scales_minima(b);
    const __m256i scales = _mm256_broadcastq_epi64(sm);
    const __m128i minima =
        _mm_madd_epi16(_mm_cvtepu8_epi16(_mm_unpackhi_epi64(sm, sm)), _mm_load_si128((const __m128i *)x->sum32));
    const __m256i high = five ? gemv_load(b + 16) : m15;
    __m256i acc = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m256i v = gemv_load(qs + 32 * i);
        __m256i v0 = _mm256_and_si256(v, m15), v1 = _mm256_and_si256(_mm256_srli_epi16(v, 4), m15);
        if (five) {
            v0 = _mm256_or_si256(
                v0,
                _mm256_and_si256(i < 2 ? _mm256_slli_epi16(high, 4 - 2 * i) : _mm256_srli_epi16(high, 2 * i - 4), m16));
            v1 = _mm256_or_si256(
                v1,
                _mm256_and_si256(i < 2 ? _mm256_slli_epi16(high, 3 - 2 * i) : _mm256_srli_epi16(high, 2 * i - 3), m16));
        }
        acc = add_scaled(acc, v0, q_at(x, 2 * i), scale_u8(scales, 2 * i));
        acc = add_scaled(acc, v1, q_at(x, 2 * i + 1), scale_u8(scales, 2 * i + 1));
    }
    const __m128 d = _mm_mul_ps(_mm_cvtph_ps(_mm_cvtsi32_si128((int)gemv_u32(b))), _mm_set1_ps(x->d)); /* d, dmin */
    f = _mm256_fmadd_ps(_mm256_broadcastss_ps(d), _mm256_cvtepi32_ps(acc), f);
    /* Lanes 4..7: minus a NaN or zero times 0, which is what the line above has as well. */
    return _mm256_fnmadd_ps(_mm256_broadcastss_ps(_mm_movehdup_ps(d)),
                            _mm256_cvtepi32_ps(_mm256_zextsi128_si256(minima)), f);
}

/* f + d times eight integers. */
VEC_INLINE __m256 add_block(__m256 f, uint16_t half, float dx, __m256i acc)
{
    const __m256 d = _mm256_broadcastss_ps(_mm_mul_ss(_mm_cvtph_ps(_mm_cvtsi32_si128(half)), _mm_set_ss(dx)));
    return _mm256_fmadd_ps(d, _mm256_cvtepi32_ps(acc), f);
}

/* The low or high half of 16 int16 in both halves. */
VEC_INLINE __m256i both_halves(__m256i words, const int high)
{
    return high ? _mm256_permute4x64_epi64(words, 0xee) : _mm256_permute4x64_epi64(words, 0x44);
}

VEC_INLINE __m256 block_q6(const unsigned char *b, const x_block *x, __m256 f)
{
    const __m256i m15 = _mm256_set1_epi8(15), m48 = _mm256_set1_epi8(48);
    const __m256i scales = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(b + 192)));
    __m256i acc = _mm256_setzero_si256();
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        const __m256i sc = both_halves(scales, h), l0 = gemv_load(b + 64 * h), l1 = gemv_load(b + 64 * h + 32),
                      qh = gemv_load(b + 128 + 32 * h);
        const __m256i v0 = _mm256_or_si256(_mm256_and_si256(l0, m15), _mm256_and_si256(_mm256_slli_epi16(qh, 4), m48));
        const __m256i v1 = _mm256_or_si256(_mm256_and_si256(l1, m15), _mm256_and_si256(_mm256_slli_epi16(qh, 2), m48));
        const __m256i v2 = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(l0, 4), m15), _mm256_and_si256(qh, m48));
        const __m256i v3 = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(l1, 4), m15),
                                           _mm256_and_si256(_mm256_srli_epi16(qh, 2), m48));
        acc = add_scaled(acc, v0, q_at(x, 4 * h), scale_pair(sc, 0));
        acc = add_scaled(acc, v1, q_at(x, 4 * h + 1), scale_pair(sc, 1));
        acc = add_scaled(acc, v2, q_at(x, 4 * h + 2), scale_pair(sc, 2));
        acc = add_scaled(acc, v3, q_at(x, 4 * h + 3), scale_pair(sc, 3));
    }
    const __m256i offset = _mm256_madd_epi16(scales, _mm256_load_si256((const __m256i *)x->sum16));
    return add_block(f, gemv_u16(b + 208), x->d, _mm256_sub_epi32(acc, _mm256_slli_epi32(offset, 5)));
}

VEC_INLINE __m256 block_q3(const unsigned char *b, const x_block *x, __m256 f)
{
    const __m256i m4 = _mm256_set1_epi8(4), high = gemv_load(b);
    const __m256i scales = _mm256_cvtepi8_epi16(gemv_scales_q3(b));
    __m256i acc = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int part = 0; part < 8; part++) {
        const __m256i bit =
            _mm256_and_si256(part < 2 ? _mm256_slli_epi16(high, 2 - part) : _mm256_srli_epi16(high, part - 2), m4);
        const __m256i v = _mm256_or_si256(two_bits(gemv_load(b + 32 + part / 4 * 32), part), bit);
        acc = add_scaled(acc, v, q_at(x, part), scale_pair(both_halves(scales, part / 4), part % 4));
    }
    const __m256i offset = _mm256_madd_epi16(scales, _mm256_load_si256((const __m256i *)x->sum16));
    return add_block(f, gemv_u16(b + 108), x->d, _mm256_sub_epi32(acc, _mm256_slli_epi32(offset, 2)));
}

VEC_INLINE __m256 block_q2(const unsigned char *b, const x_block *x, __m256 f)
{
    const __m128i sm = _mm_loadu_si128((const __m128i *)b), m15 = _mm_set1_epi8(15);
    const __m256i scales = _mm256_cvtepu8_epi16(_mm_and_si128(sm, m15));
    const __m256i minima = _mm256_cvtepu8_epi16(_mm_and_si128(_mm_srli_epi16(sm, 4), m15));
    __m256i acc = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int part = 0; part < 8; part++) {
        const __m256i v = two_bits(gemv_load(b + 16 + part / 4 * 32), part);
        acc = add_scaled(acc, v, q_at(x, part), scale_pair(both_halves(scales, part / 4), part % 4));
    }
    f = add_block(f, gemv_u16(b + 80), x->d, acc);
    return add_block(f, gemv_u16(b + 82), -x->d,
                     _mm256_madd_epi16(minima, _mm256_load_si256((const __m256i *)x->sum16)));
}

VEC_INLINE __m256 block_iq4(const unsigned char *b, const x_block *x, __m256 f)
{
    const __m128i s16 = _mm_cvtepi8_epi16(gemv_scales_iq4(b + 2));
    const __m256i scales = _mm256_broadcastsi128_si256(s16);
    __m256i acc = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int part = 0; part < 8; part++) {
        const __m256i v = _mm256_shuffle_epi8(gemv_iq4_table(), gemv_nibbles(b + 8 + 16 * part));
        acc = add_scaled_signed(acc, v, q_at(x, part), scale_i16(scales, part));
    }
    return add_block(f, gemv_u16(b), x->d, acc);
}

VEC_INLINE __m256 block_q8(const unsigned char *b, const x_block *x, __m256 f)
{
    float d;
    __m256i acc = _mm256_setzero_si256();
    memcpy(&d, b, sizeof(d));
#pragma GCC unroll 8
    for (int part = 0; part < 8; part++)
        acc = add_scaled_signed(acc, gemv_load(b + 4 + 32 * part), q_at(x, part), _mm256_set1_epi16(1));
    return _mm256_fmadd_ps(_mm256_set1_ps(d * x->d), _mm256_cvtepi32_ps(acc), f);
}

VEC_INLINE __m256 block_of(const dtype type, const unsigned char *b, const x_block *x, __m256 f)
{
    switch (type) {
    case DTYPE_Q2_K: return block_q2(b, x, f);
    case DTYPE_Q3_K: return block_q3(b, x, f);
    case DTYPE_Q4_K: return block_q45(false, b, x, f);
    case DTYPE_Q5_K: return block_q45(true, b, x, f);
    case DTYPE_Q6_K: return block_q6(b, x, f);
    case DTYPE_IQ4_XS: return block_iq4(b, x, f);
    default: return block_q8(b, x, f);
    }
}

VEC_INLINE void dot256(const dtype type, const int64_t bytes, const unsigned char *w, int64_t gap, int64_t k,
                       const unsigned char *xq, float *sums)
{
    const float *d = (const float *)(const void *)(xq + kern_xq_d(k));
    __m256 f0, f1, f2, f3;
    f0 = f1 = f2 = f3 = _mm256_setzero_ps();
    for (int64_t b = 0; b < k / 256; b++, w += bytes) {
        const x_block x = {xq + 256 * b, xq + kern_xq256_sum16(k) + 32 * b, xq + kern_xq256_sum32(k) + 16 * b, d[b]};
        for (int64_t line = 0; line < bytes; line += 64) gemv_ask(w + line, gap);
        f0 = block_of(type, w, &x, f0);
        f1 = block_of(type, w + gap, &x, f1);
        f2 = block_of(type, w + 2 * gap, &x, f2);
        f3 = block_of(type, w + 3 * gap, &x, f3);
    }
    _mm_storeu_ps(sums, gemv_sums(f0, f1, f2, f3));
}

#define DOT(type) GEMV_DOT(dot256, type)
GEMV_TYPES_256(DOT)
DOT(Q8_K)
DOT(IQ4_XS)

gemv_dot kern_avx2_dot_256(dtype type)
{
    switch (type) {
        GEMV_TYPES_256(GEMV_CASE)
        GEMV_CASE(Q8_K)
        GEMV_CASE(IQ4_XS)
    default: return NULL;
    }
}
