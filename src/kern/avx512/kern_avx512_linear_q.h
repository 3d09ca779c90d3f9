/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx512_linear_q.h: the product of rows of blocks with panels in 8 bits, on 512-bit vectors; kern_avx2_linear_q.c has it on pairs of vectors.
 *
 * Six rows become signed bytes in scratch, CODES_CHUNK numbers at a time, with the scales of their groups of 16 or 32 numbers (kern_avx2_codes.h). A step
 * takes four numbers of a row, in every lane, and four bytes of every token: VPDPBUSD adds four products a lane to an int32. At the end of a
 * group these become f32 and, times the scales of weights and tokens, are added to the row's sums:
 *
 *     tile: 6 rows x 16 lanes of one or two panels      8 steps (a group of 32): 64 loads, 96 VPDPBUSD, 36 for the scales
 *
 * x is unsigned, q + 128 (AVX2 takes q itself for codes beyond 64): what that adds, 128 times the sum of the group's codes, is where a group's int32 start from. Sums of integers are exact;
 * those of groups are one chain a lane in rising order, whatever the tile, the panel and the range of rows. Rows are read as six long streams. */
#ifndef LATH_KERN_AVX512_LINEAR_Q_H
#define LATH_KERN_AVX512_LINEAR_Q_H

#include "kern/avx2/kern_avx2.h"
#include "kern/avx2/kern_avx2_codes.h"
#include "kern/avx512/kern_avx512_vec.h"
#include "kern/kern_xq.h"

enum { Q_ROWS = 6, Q_PANELS = 2, Q_GROUP_PANELS = 32 };

/* Rows of codes times one or two panels, the numbers k0 to k0 + k. */
typedef struct q_tile {
    const row_codes *rows;
    const unsigned char *u; /* of number k0 */
    const float *d, *sum;   /* of the panel's first block and part */
    int64_t panel;          /* bytes from panel to panel */
    int64_t k0, k, block;   /* block: numbers that share a d */
    float *to;              /* from where sums go on */
    int64_t to_stride, to_panel;
} q_tile;

#define Q_EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)

VEC512_INLINE const float *q_other(const float *p, int64_t bytes)
{
    return (const float *)(const void *)((const unsigned char *)(const void *)p + bytes);
}

VEC512_INLINE void q_run(const int rows, const int panels, const int group, const bool adds, const bool narrow,
                         const q_tile *t)
{
    vec512_f32 f0, f1, f2, f3, f4, f5, h0, h1, h2, h3, h4, h5;
    const unsigned char *u = t->u;
    const bool is_signed = VEC512_SIGNED_WIDE && !narrow; /* then x is q itself */
    const vec512_int middle = vec512_set1_u8(128);
    f0 = f1 = f2 = f3 = f4 = f5 = h0 = h1 = h2 = h3 = h4 = h5 = vec512_set1(0.0f);
#define DO(r)                                                                        \
    if (rows > r) {                                                                  \
        f##r = vec512_load(t->to + (r)*t->to_stride);                                \
        if (panels == 2) h##r = vec512_load(t->to + (r)*t->to_stride + t->to_panel); \
    }
    Q_EACH(DO)
#undef DO
    for (int64_t g = 0, k = 0; k < t->k; g++, k += group) {
        vec512_int a0, a1, a2, a3, a4, a5, b0, b1, b2, b3, b4, b5;
        a0 = a1 = a2 = a3 = a4 = a5 = b0 = b1 = b2 = b3 = b4 = b5 = vec512_zero();
#define DO(r) \
    if (rows > r) a##r = b##r = vec512_set1_i32(is_signed ? 0 : t->rows[r].offset[g]);
        Q_EACH(DO)
#undef DO
#pragma GCC unroll 8
        for (int step = 0; step < group; step += 4, u += 64) {
            vec512_int x = vec512_bytes(u), y = panels == 2 ? vec512_bytes(u + t->panel) : x;
            if (is_signed) x = vec512_xor(x, middle), y = vec512_xor(y, middle);
#define DO(r)                                                               \
    if (rows > r) {                                                         \
        const vec512_int w = vec512_spread_i32(t->rows[r].code + k + step); \
        a##r = vec512_dot4_by(narrow, a##r, x, w);                          \
        if (panels == 2) b##r = vec512_dot4_by(narrow, b##r, y, w);         \
    }
            Q_EACH(DO)
#undef DO
        }
        const float *d = t->d + (t->k0 + k) / t->block * KERN_LANES,
                    *sum = t->sum + (t->k0 + k) / (t->block == 32 ? 32 : 16) * KERN_LANES;
        const bool two = t->block != 32 && group == 32; /* parts of 16 in a group */
        const vec512_f32 dx = vec512_load(d), dy = panels == 2 ? vec512_load(q_other(d, t->panel)) : dx;
        vec512_f32 sx = dx, sy = dx;
        if (adds) {
            sx = vec512_load(sum);
            if (two) sx = vec512_add(sx, vec512_load(sum + KERN_LANES));
            if (panels == 2) {
                sy = vec512_load(q_other(sum, t->panel));
                if (two) sy = vec512_add(sy, vec512_load(q_other(sum, t->panel) + KERN_LANES));
            }
        }
#define DO(r)                                                                                 \
    if (rows > r) {                                                                           \
        const vec512_f32 s = vec512_set1(t->rows[r].scale[g]);                                \
        f##r = vec512_fma(vec512_to_f32(a##r), vec512_mul(s, dx), f##r);                      \
        if (panels == 2) h##r = vec512_fma(vec512_to_f32(b##r), vec512_mul(s, dy), h##r);     \
        if (adds) f##r = vec512_fma(vec512_set1(t->rows[r].add[g]), sx, f##r);                \
        if (adds && panels == 2) h##r = vec512_fma(vec512_set1(t->rows[r].add[g]), sy, h##r); \
    }
        Q_EACH(DO)
#undef DO
    }
#define DO(r)                                                                        \
    if (rows > r) {                                                                  \
        vec512_store(t->to + (r)*t->to_stride, f##r);                                \
        if (panels == 2) vec512_store(t->to + (r)*t->to_stride + t->to_panel, h##r); \
    }
    Q_EACH(DO)
#undef DO
}

/* The kinds of types (kern_avx2_codes_kind): group of 16 or 32, adds or none, wide where codes are beyond 64. */
#define Q_TILES(name, group, adds, narrow)                  \
    static void name##_6(const int panels, const q_tile *t) \
    {                                                       \
        if (panels == 2)                                    \
            q_run(6, 2, group, adds, narrow, t);            \
        else                                                \
            q_run(6, 1, group, adds, narrow, t);            \
    }                                                       \
    static void name##_1(const int panels, const q_tile *t) \
    {                                                       \
        if (panels == 2)                                    \
            q_run(1, 2, group, adds, narrow, t);            \
        else                                                \
            q_run(1, 1, group, adds, narrow, t);            \
    }
Q_TILES(q_32, 32, false, true)
Q_TILES(q_32_adds, 32, true, true)
Q_TILES(q_32_wide, 32, false, false)
Q_TILES(q_16, 16, false, true)
Q_TILES(q_16_adds, 16, true, true)

typedef struct q_tiles {
    void (*six)(int panels, const q_tile *t);
    void (*one)(int panels, const q_tile *t);
} q_tiles;

static inline q_tiles q_tiles_of(codes_kind kind)
{
    if (kind.group == 16) return kind.adds ? (q_tiles){q_16_adds_6, q_16_adds_1} : (q_tiles){q_16_6, q_16_1};
    if (kind.adds) return (q_tiles){q_32_adds_6, q_32_adds_1};
    return kind.narrow ? (q_tiles){q_32_6, q_32_1} : (q_tiles){q_32_wide_6, q_32_wide_1};
}

/* Rows n, n + gap ... (`rows` of them, 6 or fewer) with the panels p0 <= p < p1. Sums of chunks go on in y. */
static inline void q_block(const kern_linear_args *a, q_tiles tiles, int64_t n, int64_t gap, int rows, int64_t p0,
                           int64_t p1)
{
    const kern_xq_kind kind = kern_xq_kind_of(a->type);
    row_codes *codes = (row_codes *)(void *)a->scratch;
    _Alignas(64) float last[Q_PANELS * Q_ROWS * KERN_LANES]; /* before fn */
    for (int64_t k0 = 0; k0 < a->k; k0 += CODES_CHUNK) {
        const int64_t k = a->k - k0 < CODES_CHUNK ? a->k - k0 : CODES_CHUNK;
        const bool begin = k0 == 0, end = k0 + k >= a->k && a->fn != KERN_FN_NONE;
        const size_t before = dtype_bytes(a->type, k0), bytes = dtype_bytes(a->type, k);
        for (int r = 0; r < rows; r++) {
            const unsigned char *w = (const unsigned char *)a->w + (n + r * gap) * a->w_stride + before;
            for (uintptr_t line = 0; line < bytes; line += 64)
                _mm_prefetch((const char *)((uintptr_t)w + bytes + line), _MM_HINT_T0);
            kern_avx2_codes(a->type, w, k, codes + r);
        }
        for (int64_t p = p0, panels; p < p1; p += panels) {
            const unsigned char *u = (const unsigned char *)a->xq + p * a->xq_stride;
            float *y = a->y + p * a->y_stride + n * KERN_LANES;
            panels = p1 - p < Q_PANELS ? 1 : Q_PANELS;
            q_tile t = {codes,
                        u + k0 * KERN_LANES,
                        (const float *)(const void *)(u + kern_xq_panel_d(a->k)),
                        (const float *)(const void *)(u + kern_xq_panel_sum(kind, a->k)),
                        a->xq_stride,
                        k0,
                        k,
                        kind == KERN_XQ_32 ? 32 : 256,
                        y,
                        gap * KERN_LANES,
                        a->y_stride};
            for (int64_t i = 0; begin && i < panels; i++)
                for (int r = 0; r < rows; r++)
                    vec512_store(y + i * a->y_stride + r * gap * KERN_LANES,
                                 vec512_set1(a->bias ? a->bias[n + r * gap] : 0.0f));
            if (rows == Q_ROWS)
                tiles.six((int)panels, &t);
            else
                for (int r = 0; r < rows; r++, t.rows++, t.to += t.to_stride) tiles.one((int)panels, &t);
            for (int64_t i = 0; end && i < panels; i++) {
                float *yi = y + i * a->y_stride;
                for (int r = 0; r < rows; r++)
                    vec512_store(last + r * KERN_LANES, vec512_load(yi + r * gap * KERN_LANES));
                kern_avx2_map_rows(a->fn, rows, 2, last, yi, gap * KERN_LANES);
            }
        }
    }
}

static inline void linear_q(const kern_linear_args *a)
{
    const q_tiles tiles = q_tiles_of(kern_avx2_codes_kind(a->type));
    const int64_t near = 3 << 18, most = near / (a->xq_stride + 1),
                  panels = most < 4                ? 4
                           : most > Q_GROUP_PANELS ? Q_GROUP_PANELS
                                                   : most / 2 * 2;
    const int64_t length = (a->n1 - a->n0) / Q_ROWS, rest = a->n0 + length * Q_ROWS;
    for (int64_t p = a->p0; p < a->p1; p += panels) {
        const int64_t end = a->p1 - p < panels ? a->p1 : p + panels;
        for (int64_t b = 0; b < length; b++) q_block(a, tiles, a->n0 + b, length, Q_ROWS, p, end);
        if (rest < a->n1) q_block(a, tiles, rest, 1, (int)(a->n1 - rest), p, end);
    }
}

#endif
