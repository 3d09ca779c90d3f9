/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx2_dot.c: dot products of queries with the rows of a vector index.
 *
 * Four products at a time: four rows with one query, or two rows with two queries, so that what is loaded (and
 * converted) is used twice. A product is always the same instructions in the same order, whichever shape it is part of.
 * int8: rows are widened to int16 and multiplied with vpmaddwd, whose 32-bit sums cannot overflow here (kern.h);
 * vpmaddubsw would need 7-bit queries or saturate. Reading memory is the limit: one query needs a fifth of a core's
 * multiplications. The rows of a call are read as four (two queries: two) long streams, a quarter of the call apart:
 * on Zen 3 that reads DRAM at 90 % of its bandwidth, four neighbouring rows at 50. Each stream is prefetched half a
 * kilobyte ahead (a page ahead: 5 to 15 % less, as the quarters of a block are only eight pages long).
 */
#include <string.h>

#include "kern/avx2/kern_avx2.h"
#include "kern/avx2/kern_avx2_math.h"

enum { AHEAD = 512 };

typedef const unsigned char *row_ptr;

/* The cache line AHEAD behind byte i of a row; may lie behind the end of everything. */
VEC_INLINE void fetch_ahead(row_ptr row, int64_t i)
{
    _mm_prefetch((const char *)((uintptr_t)row + (uintptr_t)i + AHEAD), _MM_HINT_T0);
}

/* Eight elements of type F32 or F16 from element i. */
VEC_INLINE __m256 row_eight(const dtype type, row_ptr row, int64_t i)
{
    if (type == DTYPE_F32) return _mm256_castsi256_ps(_mm256_loadu_si256((const __m256i *)(row + 4 * i)));
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(row + 2 * i)));
}

VEC_INLINE float row_one(const dtype type, row_ptr row, int64_t i)
{
    float v;
    dtype_to_f32(type, row + (type == DTYPE_F32 ? 4 : 2) * i, 1, &v);
    return v;
}

/* Lanes 0..7 added as ((0+4)+(2+6)) + ((1+5)+(3+7)). */
VEC_INLINE float lanes_sum(__m256 v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/* `pairs` (1 or 4) products of a query with one of `rows` different rows, each in two chains of eight and one for what
 * is left. Pointers that are equal are loaded once: the compiler sees it. */
VEC_INLINE void dot_pairs(const dtype type, const int pairs, const int rows, int64_t d, const float *q0,
                          const float *q1, const float *q2, const float *q3, row_ptr r0, row_ptr r1, row_ptr r2,
                          row_ptr r3, float out[4])
{
    __m256 a0, b0, a1, b1, a2, b2, a3, b3;
    float c0 = 0.0f, c1 = 0.0f, c2 = 0.0f, c3 = 0.0f;
    int64_t i = 0;
    a0 = b0 = a1 = b1 = a2 = b2 = a3 = b3 = _mm256_setzero_ps();
    for (; i + 16 <= d; i += 16) {
        const int64_t byte = (type == DTYPE_F32 ? 4 : 2) * i;
        if (rows > 1) fetch_ahead(r0, byte), fetch_ahead(r1, byte);
        if (rows > 2) fetch_ahead(r2, byte), fetch_ahead(r3, byte);
        a0 = _mm256_fmadd_ps(_mm256_loadu_ps(q0 + i), row_eight(type, r0, i), a0);
        b0 = _mm256_fmadd_ps(_mm256_loadu_ps(q0 + i + 8), row_eight(type, r0, i + 8), b0);
        if (pairs == 1) continue;
        a1 = _mm256_fmadd_ps(_mm256_loadu_ps(q1 + i), row_eight(type, r1, i), a1);
        b1 = _mm256_fmadd_ps(_mm256_loadu_ps(q1 + i + 8), row_eight(type, r1, i + 8), b1);
        a2 = _mm256_fmadd_ps(_mm256_loadu_ps(q2 + i), row_eight(type, r2, i), a2);
        b2 = _mm256_fmadd_ps(_mm256_loadu_ps(q2 + i + 8), row_eight(type, r2, i + 8), b2);
        a3 = _mm256_fmadd_ps(_mm256_loadu_ps(q3 + i), row_eight(type, r3, i), a3);
        b3 = _mm256_fmadd_ps(_mm256_loadu_ps(q3 + i + 8), row_eight(type, r3, i + 8), b3);
    }
    for (; i < d; i++) {
        c0 += q0[i] * row_one(type, r0, i);
        if (pairs == 1) continue;
        c1 += q1[i] * row_one(type, r1, i);
        c2 += q2[i] * row_one(type, r2, i);
        c3 += q3[i] * row_one(type, r3, i);
    }
    out[0] = lanes_sum(_mm256_add_ps(a0, b0)) + c0;
    if (pairs == 1) return;
    out[1] = lanes_sum(_mm256_add_ps(a1, b1)) + c1;
    out[2] = lanes_sum(_mm256_add_ps(a2, b2)) + c2;
    out[3] = lanes_sum(_mm256_add_ps(a3, b3)) + c3;
}

VEC_INLINE void dot_one_query(const dtype type, const kern_dot_rows_args *a, int32_t j)
{
    const float *q = a->q + j * a->q_stride;
    float *out = a->out + j * a->out_stride, some[4];
    row_ptr r = a->rows;
    const int64_t s = a->row_stride, part = a->n / 4;
    for (int64_t i = 0; i < part; i++, r += s) {
        dot_pairs(type, 4, 4, a->d, q, q, q, q, r, r + part * s, r + 2 * part * s, r + 3 * part * s, some);
        out[i] = some[0];
        out[i + part] = some[1];
        out[i + 2 * part] = some[2];
        out[i + 3 * part] = some[3];
    }
    r = (row_ptr)a->rows + 4 * part * s;
    for (int64_t i = 4 * part; i < a->n; i++, r += s) {
        dot_pairs(type, 1, 1, a->d, q, q, q, q, r, r, r, r, some);
        out[i] = some[0];
    }
}

VEC_INLINE void dot_two_queries(const dtype type, const kern_dot_rows_args *a, int32_t j)
{
    const float *q = a->q + j * a->q_stride, *p = q + a->q_stride;
    float *out_q = a->out + j * a->out_stride, *out_p = out_q + a->out_stride, out[4];
    row_ptr r = a->rows;
    const int64_t s = a->row_stride, part = a->n / 2;
    for (int64_t i = 0; i < part; i++, r += s) {
        dot_pairs(type, 4, 2, a->d, q, q, p, p, r, r + part * s, r, r + part * s, out);
        out_q[i] = out[0];
        out_q[i + part] = out[1];
        out_p[i] = out[2];
        out_p[i + part] = out[3];
    }
    if (2 * part == a->n) return;
    r = (row_ptr)a->rows + 2 * part * s;
    dot_pairs(type, 1, 1, a->d, q, q, q, q, r, r, r, r, out);
    out_q[2 * part] = out[0];
    dot_pairs(type, 1, 1, a->d, p, p, p, p, r, r, r, r, out);
    out_p[2 * part] = out[0];
}

VEC_INLINE void dot_queries(const dtype type, const kern_dot_rows_args *a)
{
    int32_t j = 0;
    for (; j + 2 <= a->n_q; j += 2) dot_two_queries(type, a, j);
    if (j < a->n_q) dot_one_query(type, a, j);
}

void kern_avx2_dot_rows(const kern_dot_rows_args *a)
{
    if (a->type == DTYPE_F32)
        dot_queries(DTYPE_F32, a);
    else
        dot_queries(DTYPE_F16, a);
}

/* ------------------------------------------------------------------------------------------------------------- int8 */

/* acc + the eight sums of two neighbouring products of v[i..i + 16) and q[i..i + 16). */
VEC_INLINE __m256i madd16(__m256i acc, const int16_t *q, row_ptr v, int64_t i)
{
    const __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(v + i)));
    return _mm256_add_epi32(acc, _mm256_madd_epi16(wide, _mm256_loadu_si256((const __m256i *)(q + i))));
}

VEC_INLINE int32_t lanes_sum_i32(__m256i v)
{
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

/* What the vectors left over, and the scales. */
VEC_INLINE float finish_i8(int32_t sum, const int16_t *q, float q_scale, row_ptr row, int64_t i, int64_t d)
{
    const int8_t *v = (const int8_t *)(row + sizeof(float));
    float scale;
    memcpy(&scale, row, sizeof(scale));
    for (; i < d; i++) sum += q[i] * v[i];
    return (float)sum * scale * q_scale;
}

/* Queries j and, with `queries` 2, j + 1, with row i, or with the `rows` = 4 rows i, i + part, i + 2 part, i + 3 part. */
VEC_INLINE void dot_some_i8(const int rows, const int queries, const kern_dot_rows_i8_args *a, int32_t j, int64_t i,
                            int64_t part)
{
    const int64_t head = sizeof(float), s = a->row_stride, d = a->d;
    row_ptr r0 = (row_ptr)a->rows + i * s, r1 = r0 + part * s, r2 = r1 + part * s, r3 = r2 + part * s;
    const int16_t *q = a->q + j * a->q_stride, *p = q + a->q_stride;
    float *out_q = a->out + j * a->out_stride + i, *out_p = out_q + a->out_stride;
    __m256i q0, q1, q2, q3, p0, p1, p2, p3;
    int64_t f = 0;
    q0 = q1 = q2 = q3 = p0 = p1 = p2 = p3 = _mm256_setzero_si256();
    for (; f + 16 <= d; f += 16) {
        if (rows == 4) fetch_ahead(r0, f), fetch_ahead(r1, f), fetch_ahead(r2, f), fetch_ahead(r3, f);
        q0 = madd16(q0, q, r0 + head, f);
        if (queries == 2) p0 = madd16(p0, p, r0 + head, f);
        if (rows == 1) continue;
        q1 = madd16(q1, q, r1 + head, f);
        if (queries == 2) p1 = madd16(p1, p, r1 + head, f);
        q2 = madd16(q2, q, r2 + head, f);
        if (queries == 2) p2 = madd16(p2, p, r2 + head, f);
        q3 = madd16(q3, q, r3 + head, f);
        if (queries == 2) p3 = madd16(p3, p, r3 + head, f);
    }
    const float sq = a->q_scale[j], sp = a->q_scale[j + queries - 1];
    out_q[0] = finish_i8(lanes_sum_i32(q0), q, sq, r0, f, d);
    if (queries == 2) out_p[0] = finish_i8(lanes_sum_i32(p0), p, sp, r0, f, d);
    if (rows == 1) return;
    out_q[part] = finish_i8(lanes_sum_i32(q1), q, sq, r1, f, d);
    out_q[2 * part] = finish_i8(lanes_sum_i32(q2), q, sq, r2, f, d);
    out_q[3 * part] = finish_i8(lanes_sum_i32(q3), q, sq, r3, f, d);
    if (queries == 1) return;
    out_p[part] = finish_i8(lanes_sum_i32(p1), p, sp, r1, f, d);
    out_p[2 * part] = finish_i8(lanes_sum_i32(p2), p, sp, r2, f, d);
    out_p[3 * part] = finish_i8(lanes_sum_i32(p3), p, sp, r3, f, d);
}

VEC_INLINE void dot_queries_i8(const int queries, const kern_dot_rows_i8_args *a, int32_t j)
{
    const int64_t part = a->n / 4;
    for (int64_t i = 0; i < part; i++) dot_some_i8(4, queries, a, j, i, part);
    for (int64_t i = 4 * part; i < a->n; i++) dot_some_i8(1, queries, a, j, i, 0);
}

void kern_avx2_dot_rows_i8(const kern_dot_rows_i8_args *a)
{
    int32_t j = 0;
    for (; j + 2 <= a->n_q; j += 2) dot_queries_i8(2, a, j);
    if (j < a->n_q) dot_queries_i8(1, a, j);
}
