/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx2_gemv.c: products of single rows of activations with row-major weights: streams, bias and activation, and the sums of floats. Integer
 * products: kern_avx2_gemv_32.c, kern_avx2_gemv_256.c.
 *
 * The rows of a call are cut into four long streams, and a step takes one row of each, as in dot_rows (kern_avx2_dot.c says why). A product with one
 * row of activations reads each weight once: memory is the limit, and the target is to keep up with it. With several rows of activations the four
 * rows of weights come from L1 again.
 *
 * Sums of floats: two chains of eight a row, k in turn; what is left behind the sixteens one by one. Blocks with float activations are decoded in
 * registers (kern_avx2_decode.c).
 */
#include "kern/avx2/kern_avx2_gemv.h"
#include "kern/kern_xq.h"

VEC_INLINE float one_weight(const dtype type, const int64_t size, const unsigned char *w, int64_t i)
{
    float v;
    dtype_to_f32(type, w + size * i, 1, &v);
    return v;
}

enum { CHOSEN_AHEAD = 4096 }; /* bytes; the machine guesses less where rows are left out */

/* Four rows. */
typedef struct gemv_four {
    const unsigned char *w0, *w1, *w2, *w3;
} gemv_four;

VEC_INLINE gemv_four four_by_gap(const unsigned char *w, int64_t gap)
{
    return (gemv_four){w, w + gap, w + 2 * gap, w + 3 * gap};
}

VEC_INLINE void ask_four(gemv_four r, int64_t at)
{
    _mm_prefetch((const char *)((uintptr_t)r.w0 + (uintptr_t)at), _MM_HINT_T0);
    _mm_prefetch((const char *)((uintptr_t)r.w1 + (uintptr_t)at), _MM_HINT_T0);
    _mm_prefetch((const char *)((uintptr_t)r.w2 + (uintptr_t)at), _MM_HINT_T0);
    _mm_prefetch((const char *)((uintptr_t)r.w3 + (uintptr_t)at), _MM_HINT_T0);
}

/* Four rows of single floats. Lines are asked for some way ahead, which is in the next rows at last. */
VEC_INLINE void dot_floats(const dtype type, const int64_t size, const bool chosen, gemv_four r, gemv_four next,
                           int64_t k, const float *x, float *sums)
{
    __m256 a0, b0, a1, b1, a2, b2, a3, b3;
    float c0 = 0.0f, c1 = 0.0f, c2 = 0.0f, c3 = 0.0f;
    const int64_t ahead = chosen ? CHOSEN_AHEAD : GEMV_AHEAD, turn = k - ahead / size;
    int64_t i = 0;
    a0 = b0 = a1 = b1 = a2 = b2 = a3 = b3 = _mm256_setzero_ps();
    for (; i + 16 <= k; i += 16) {
        const __m256 xa = _mm256_load_ps(x + i), xb = _mm256_load_ps(x + i + 8);
        const int64_t at = size * i, half = at + 8 * size;
        if (!chosen || i < turn)
            ask_four(r, at + ahead);
        else
            ask_four(next, at + ahead - k * size);
        a0 = _mm256_fmadd_ps(xa, vec_load(type, r.w0 + at), a0),
        b0 = _mm256_fmadd_ps(xb, vec_load(type, r.w0 + half), b0);
        a1 = _mm256_fmadd_ps(xa, vec_load(type, r.w1 + at), a1),
        b1 = _mm256_fmadd_ps(xb, vec_load(type, r.w1 + half), b1);
        a2 = _mm256_fmadd_ps(xa, vec_load(type, r.w2 + at), a2),
        b2 = _mm256_fmadd_ps(xb, vec_load(type, r.w2 + half), b2);
        a3 = _mm256_fmadd_ps(xa, vec_load(type, r.w3 + at), a3),
        b3 = _mm256_fmadd_ps(xb, vec_load(type, r.w3 + half), b3);
    }
    for (; i < k; i++) {
        c0 += x[i] * one_weight(type, size, r.w0, i), c1 += x[i] * one_weight(type, size, r.w1, i);
        c2 += x[i] * one_weight(type, size, r.w2, i), c3 += x[i] * one_weight(type, size, r.w3, i);
    }
    const __m128 all =
        gemv_sums(_mm256_add_ps(a0, b0), _mm256_add_ps(a1, b1), _mm256_add_ps(a2, b2), _mm256_add_ps(a3, b3));
    _mm_storeu_ps(sums, _mm_add_ps(all, _mm_setr_ps(c0, c1, c2, c3)));
}

#define DOT_FLOATS(type, size)                                                                                      \
    static void dot_##type(const unsigned char *w, int64_t gap, int64_t k, const void *x, float *sums)              \
    {                                                                                                               \
        const gemv_four rows = four_by_gap(w, gap);                                                                 \
        dot_floats(DTYPE_##type, size, false, rows, rows, k, x, sums);                                              \
    }                                                                                                               \
    static void chosen_##type(const gemv_four *rows, const gemv_four *next, int64_t k, const float *x, float *sums) \
    {                                                                                                               \
        dot_floats(DTYPE_##type, size, true, *rows, *next, k, x, sums);                                             \
    }
DOT_FLOATS(F32, 4)
DOT_FLOATS(F16, 2)
DOT_FLOATS(BF16, 2)
DOT_FLOATS(F8_E4M3, 1)
DOT_FLOATS(F8_E5M2, 1)

/* Of rows that lie anywhere; `next` are read behind them. */
typedef void (*chosen_dot)(const gemv_four *rows, const gemv_four *next, int64_t k, const float *x, float *sums);

static chosen_dot chosen_of_floats(dtype type)
{
    switch (type) {
    case DTYPE_F32: return chosen_F32;
    case DTYPE_F16: return chosen_F16;
    case DTYPE_BF16: return chosen_BF16;
    case DTYPE_F8_E4M3: return chosen_F8_E4M3;
    case DTYPE_F8_E5M2: return chosen_F8_E5M2;
    default: return NULL;
    }
}

static gemv_dot dot_of_floats(dtype type)
{
    switch (type) {
    case DTYPE_F32: return dot_F32;
    case DTYPE_F16: return dot_F16;
    case DTYPE_BF16: return dot_BF16;
    case DTYPE_F8_E4M3: return dot_F8_E4M3;
    case DTYPE_F8_E5M2: return dot_F8_E5M2;
    default: return NULL;
    }
}

/* What the products of four rows with all rows of activations need. */
typedef struct gemv_run {
    const kern_gemv_args *a;
    gemv_dot dot;
    const unsigned char *x; /* floats or quantised */
    int64_t x_stride;       /* bytes */
} gemv_run;

/* Rows n, n + step, ... (the first `rows` of four; with fewer, step is 0 and all four are the one). */
static void four_rows(const gemv_run *r, int64_t n, int64_t step, int rows)
{
    const kern_gemv_args *a = r->a;
    const unsigned char *w = (const unsigned char *)a->w + n * a->w_stride;
    for (int32_t m = 0; m < a->n_x; m++) {
        float sums[4], *y = a->y + m * a->y_stride + n;
        r->dot(w, step * a->w_stride, a->k, r->x + m * r->x_stride, sums);
        for (int i = 0; i < rows; i++) y[i * step] = a->bias ? a->bias[n + i * step] + sums[i] : sums[i];
    }
}

enum { GROUP_BYTES = 32 << 10, LINE = 64 };

static const unsigned char *chosen_row(const kern_gemv_args *a, int64_t n)
{
    return (const unsigned char *)a->w + (n < a->n1 ? a->index[n] : a->index[a->n1 - 1]) * a->w_stride;
}

/* Rows n, n + step, n + 2 step, n + 3 step of the chosen ones. */
static gemv_four chosen_four(const kern_gemv_args *a, int64_t n, int64_t step)
{
    return (gemv_four){chosen_row(a, n), chosen_row(a, n + step), chosen_row(a, n + 2 * step),
                       chosen_row(a, n + 3 * step)};
}

/* A row to `to`, while the same lines of another one are asked for. */
static void copy_row(const unsigned char *from, const unsigned char *asked, int64_t bytes, unsigned char *to)
{
    int64_t at = 0;
    for (; at + LINE <= bytes; at += LINE) {
        _mm_prefetch((const char *)asked + at, _MM_HINT_T0);
        _mm256_store_si256((__m256i *)(to + at), _mm256_loadu_si256((const __m256i *)(from + at)));
        _mm256_store_si256((__m256i *)(to + at + 32), _mm256_loadu_si256((const __m256i *)(from + at + 32)));
    }
    memcpy(to + at, from + at, (size_t)(bytes - at));
}

/* Dots take rows at equal distances: blocks are put side by side in L1 first. */
static void chosen_blocks(const gemv_run *r, const gemv_four *rows, const gemv_four *next, unsigned char *group,
                          const unsigned char *x, float *sums)
{
    const kern_gemv_args *a = r->a;
    const int64_t bytes = (int64_t)dtype_bytes(a->type, a->k), gap = (bytes + LINE - 1) / LINE * LINE;
    if (x == r->x) { /* else they are there already */
        copy_row(rows->w0, next->w0, bytes, group);
        copy_row(rows->w1, next->w1, bytes, group + gap);
        copy_row(rows->w2, next->w2, bytes, group + 2 * gap);
        copy_row(rows->w3, next->w3, bytes, group + 3 * gap);
    }
    r->dot(group, gap, a->k, x, sums);
}

static void four_chosen(const gemv_run *r, chosen_dot floats, unsigned char *group, int64_t n, int64_t step, int rows)
{
    const kern_gemv_args *a = r->a;
    const gemv_four four = chosen_four(a, n, step), next = chosen_four(a, n + 1, step);
    const bool fits = 4 * ((int64_t)dtype_bytes(a->type, a->k) + LINE) <= GROUP_BYTES;
    for (int32_t m = 0; m < a->n_x; m++) {
        float sums[4], *y = a->y + m * a->y_stride + n;
        const unsigned char *x = r->x + m * r->x_stride;
        if (floats) {
            floats(&four, &next, a->k, (const float *)(const void *)x, sums);
        } else if (fits && rows == 4) {
            chosen_blocks(r, &four, &next, group, x, sums);
        } else {
            for (int i = 0; i < rows; i++) {
                float same[4];
                r->dot(chosen_row(a, n + i * step), 0, a->k, x, same);
                sums[i] = same[0];
            }
        }
        for (int i = 0; i < rows; i++) y[i * step] = a->bias ? a->bias[n + i * step] + sums[i] : sums[i];
    }
}

static void all_chosen(const gemv_run *r, int64_t part, int64_t rest)
{
    const kern_gemv_args *a = r->a;
    _Alignas(64) unsigned char group[GROUP_BYTES];
    const chosen_dot floats = a->xq ? NULL : chosen_of_floats(a->type);
    for (int64_t i = 0; i < part; i++) four_chosen(r, floats, group, a->n0 + i, part, 4);
    for (int64_t n = rest; n < a->n1; n++) four_chosen(r, floats, group, n, 0, 1);
}

void kern_avx2_gemv_by(const kern_gemv_args *a, gemv_dot dot)
{
    const bool integers = a->xq != NULL;
    const gemv_run r = {a, dot, integers ? a->xq : (const unsigned char *)a->x,
                        integers ? a->xq_stride : a->x_stride * (int64_t)sizeof(float)};
    const int64_t part = (a->n1 - a->n0) / 4, rest = a->n0 + 4 * part;
    if (a->index) all_chosen(&r, part, rest);
    for (int64_t i = 0; i < part && !a->index; i++) four_rows(&r, a->n0 + i, part, 4);
    for (int64_t n = rest; n < a->n1 && !a->index; n++) four_rows(&r, n, 0, 1);
    for (int32_t m = 0; m < a->n_x && a->fn != KERN_FN_NONE; m++) {
        float *y = a->y + m * a->y_stride + a->n0;
        kern_avx2_map(a->fn, (size_t)(a->n1 - a->n0), y, y);
    }
}

void kern_avx2_gemv(const kern_gemv_args *a)
{
    const bool blocks = dtype_is_block(a->type);
    if (!a->xq)
        kern_avx2_gemv_by(a, blocks ? kern_avx2_dot_blocks(a->type) : dot_of_floats(a->type));
    else
        kern_avx2_gemv_by(a, kern_xq_kind_of(a->type) == KERN_XQ_32 ? kern_avx2_dot_32(a->type)
                                                                    : kern_avx2_dot_256(a->type));
}

/* ------------------------------------------------------------------------------------------------------- quantize_x */

/* Eights of the block: |x| of all, and whether all are finite. */
VEC_INLINE float block_largest(const int n, const float *x, bool *finite)
{
    const __m256 infinity = _mm256_set1_ps(__builtin_inff());
    __m256 largest = _mm256_setzero_ps(), bad = _mm256_setzero_ps();
    for (int i = 0; i < n; i += 8) {
        const __m256 v = vec_abs(_mm256_load_ps(x + i));
        largest = _mm256_max_ps(largest, v);
        bad = _mm256_or_ps(bad, _mm256_cmp_ps(v, infinity, _CMP_NLT_UQ)); /* infinity or NaN */
    }
    *finite = _mm256_movemask_ps(bad) == 0;
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(largest), _mm256_extractf128_ps(largest, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

/* 32 numbers times `inverse`, rounded; to q and returned. */
VEC_INLINE __m256i quantize_32(const float *x, __m256 inverse, unsigned char *q)
{
    const __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_load_ps(x), inverse));
    const __m256i b = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_load_ps(x + 8), inverse));
    const __m256i c = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_load_ps(x + 16), inverse));
    const __m256i d = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_load_ps(x + 24), inverse));
    /* Packs work within halves: fours come out as 0 2 4 6 1 3 5 7. */
    const __m256i all = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    const __m256i v = _mm256_permutevar8x32_epi32(all, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_store_si256((__m256i *)q, v);
    return v;
}

/* A block of n numbers; its scale. */
VEC_INLINE float quantize_block(const int n, const float *x, unsigned char *q)
{
    bool finite;
    const float largest = block_largest(n, x, &finite);
    if (!finite || largest <= KERN_XQ_TINY) {
        memset(q, 0, (size_t)n);
        return finite ? 0.0f : __builtin_nanf("");
    }
    const __m256 inverse = _mm256_set1_ps(127.0f / largest);
    for (int i = 0; i < n; i += 32) quantize_32(x + i, inverse, q + i);
    return largest / 127.0f;
}

/* The sums of 16 q each, in all four int32 of a half... as two int32. */
VEC_INLINE void sums_of_16(const unsigned char *q, int32_t sum[2])
{
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), _mm256_load_si256((const __m256i *)q));
    __m256i s = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    s = _mm256_add_epi32(s, _mm256_shuffle_epi32(s, 0x4e));
    s = _mm256_add_epi32(s, _mm256_shuffle_epi32(s, 0xb1));
    sum[0] = _mm256_cvtsi256_si32(s);
    sum[1] = _mm_cvtsi128_si32(_mm256_extracti128_si256(s, 1));
}

void kern_avx2_quantize_x(dtype type, int64_t k, const float *x, void *xq)
{
    unsigned char *q = xq;
    const size_t bytes = kern_xq_bytes(type, k), from = kern_xq_d(k);
    float *d = (float *)(void *)(q + from);
    int32_t sum[2];
    memset(q + k, 0, bytes - (size_t)k);
    if (kern_xq_kind_of(type) == KERN_XQ_32) {
        float *sums = (float *)(void *)(q + kern_xq32_sum(k));
        for (int64_t b = 0; b < k / 32; b++) {
            d[b] = quantize_block(32, x + 32 * b, q + 32 * b);
            sums_of_16(q + 32 * b, sum);
            sums[b] = (float)(sum[0] + sum[1]);
        }
        return;
    }
    int16_t *sum16 = (int16_t *)(void *)(q + kern_xq256_sum16(k)),
            *sum32 = (int16_t *)(void *)(q + kern_xq256_sum32(k));
    for (int64_t b = 0; b < k / 256; b++) d[b] = quantize_block(256, x + 256 * b, q + 256 * b);
    for (int64_t i = 0; i < k / 32; i++) {
        sums_of_16(q + 32 * i, sum);
        sum16[2 * i] = (int16_t)sum[0];
        sum16[2 * i + 1] = (int16_t)sum[1];
        sum32[i] = (int16_t)(sum[0] + sum[1]);
    }
}
