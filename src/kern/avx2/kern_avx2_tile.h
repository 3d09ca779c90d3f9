/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx2_tile.h: the two register tiles that every product here is made of.
 *
 *     tile16: up to  6 rows x 16 lanes, 12 accumulators      tile8: up to 12 rows x 8 lanes, 12 accumulators
 *
 * A step reads one x row ([16] floats, a feature or key of all lanes), broadcasts one element of each row of w, and
 * multiply-adds: 12 FMAs, enough to cover their latency on two ports. `rows` is a constant at every call after
 * inlining, the accumulators of rows behind it vanish. gcc 12 keeps an array of vectors in memory, hence the names.
 * Every element is one chain of FMAs in step order, so its bits do not depend on the tile. */
#ifndef LATH_KERN_AVX2_TILE_H
#define LATH_KERN_AVX2_TILE_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "kern/avx2/kern_avx2.h"
#include "kern/avx2/kern_avx2_drive.h"

#define TILE_INLINE static inline __attribute__((always_inline))

/* The element at any alignment in all lanes; compiles to one vbroadcastss. */
TILE_INLINE __m256 tile_broadcast(const unsigned char *p)
{
    float f;
    memcpy(&f, p, sizeof(f));
    return _mm256_set1_ps(f);
}

/* w: element (row, step) is at w + row * row_bytes + step * step_bytes. x: step k at x + k * 16 (fma_by: or other strides). y: row i at y + i *
 * y_stride. */
typedef struct tile16 {
    __m256 a0, b0, a1, b1, a2, b2, a3, b3, a4, b4, a5, b5;
} tile16;

#define TILE16_EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)
#define TILE8_EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)

/* Four steps a turn. Written out by hand gcc 12 mixes them and sends an accumulator through memory; this way it does
 * not. */
#if defined(__clang__)
#define TILE_UNROLL _Pragma("clang loop unroll_count(4)")
#else
#define TILE_UNROLL _Pragma("GCC unroll 4")
#endif

TILE_INLINE void tile_ask(const int rows, tile_ahead *ahead)
{
    const char *p = (const char *)ahead->at;
    for (int i = 0; i < rows; i++, p += ahead->row_bytes) _mm_prefetch(p, _MM_HINT_T0);
    ahead->at += ahead->step;
}

TILE_INLINE void tile16_zero(tile16 *t)
{
#define DO(i) t->a##i = t->b##i = _mm256_setzero_ps();
    TILE16_EACH(DO)
#undef DO
}

/* Rows start from bias[0], bias[stride], ... */
TILE_INLINE void tile16_bias(const int rows, tile16 *t, const float *bias, int64_t stride)
{
#define DO(i) \
    if (rows > i) t->a##i = t->b##i = tile_broadcast((const unsigned char *)bias + 4 * i * stride);
    TILE16_EACH(DO)
#undef DO
}

TILE_INLINE void tile16_load(const int rows, tile16 *t, const float *y, int64_t y_stride)
{
#define DO(i) \
    if (rows > i) t->a##i = _mm256_load_ps(y + i * y_stride), t->b##i = _mm256_load_ps(y + i * y_stride + 8);
    TILE16_EACH(DO)
#undef DO
}

/* Times one factor a lane: scale[0] for lanes 0..7, scale[1] for the others. */
TILE_INLINE void tile16_scale(const int rows, tile16 *t, const __m256 *scale)
{
#define DO(i) \
    if (rows > i) t->a##i = _mm256_mul_ps(t->a##i, scale[0]), t->b##i = _mm256_mul_ps(t->b##i, scale[1]);
    TILE16_EACH(DO)
#undef DO
}

TILE_INLINE void tile16_store(const int rows, const tile16 *t, float *y, int64_t y_stride)
{
#define DO(i) \
    if (rows > i) _mm256_store_ps(y + i * y_stride, t->a##i), _mm256_store_ps(y + i * y_stride + 8, t->b##i);
    TILE16_EACH(DO)
#undef DO
}

#define DO(i, row)                                 \
    if (rows > i) {                                \
        const __m256 e = tile_broadcast(row);      \
        t->a##i = _mm256_fmadd_ps(e, xa, t->a##i); \
        t->b##i = _mm256_fmadd_ps(e, xb, t->b##i); \
    }
/* One step, and on to the next. */
/* clang-format off */
#define TILE16_STEP()                                                                                                  \
    do {                                                                                                               \
        const __m256 xa = _mm256_loadu_ps(x), xb = _mm256_loadu_ps(x + 8);                                             \
        DO(0, w) DO(1, w + row_bytes) DO(2, w + 2 * row_bytes)                                                         \
        DO(3, w3) DO(4, w3 + row_bytes) DO(5, w3 + 2 * row_bytes)                                                      \
        x += x_step, w += step_bytes, w3 += step_bytes;                                                                \
    } while (0)
/* clang-format on */

/* t += w x over k steps; step k of x is at x + k * x_step, any alignment. `stream`: ahead is in use. */
TILE_INLINE void tile16_fma_by(const int rows, tile16 *t, const unsigned char *w, int64_t row_bytes,
                               const int64_t step_bytes, const float *x, const int64_t x_step, int64_t k,
                               const bool stream, tile_ahead ahead)
{
    const unsigned char *w3 = w + 3 * row_bytes;
    int64_t i = 0;
    for (; stream && i + TILE_LINE_STEPS <= k; i += TILE_LINE_STEPS) {
        tile_ask(rows, &ahead);
        TILE_UNROLL
        for (int s = 0; s < TILE_LINE_STEPS; s++) TILE16_STEP();
    }
    TILE_UNROLL
    for (; i < k; i++) TILE16_STEP();
}
#undef DO

TILE_INLINE void tile16_fma(const int rows, tile16 *t, const unsigned char *w, int64_t row_bytes,
                            const int64_t step_bytes, const float *x, int64_t k, const bool stream, tile_ahead ahead)
{
    tile16_fma_by(rows, t, w, row_bytes, step_bytes, x, KERN_LANES, k, stream, ahead);
}

/* Eight lanes: x and y point at the first of them, steps are still 16 floats apart. */
typedef struct tile8 {
    __m256 a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11;
} tile8;

TILE_INLINE void tile8_zero(tile8 *t)
{
#define DO(i) t->a##i = _mm256_setzero_ps();
    TILE8_EACH(DO)
#undef DO
}

TILE_INLINE void tile8_bias(const int rows, tile8 *t, const float *bias, int64_t stride)
{
#define DO(i) \
    if (rows > i) t->a##i = tile_broadcast((const unsigned char *)bias + 4 * i * stride);
    TILE8_EACH(DO)
#undef DO
}

TILE_INLINE void tile8_load(const int rows, tile8 *t, const float *y, int64_t y_stride)
{
#define DO(i) \
    if (rows > i) t->a##i = _mm256_load_ps(y + i * y_stride);
    TILE8_EACH(DO)
#undef DO
}

TILE_INLINE void tile8_scale(const int rows, tile8 *t, const __m256 *scale)
{
#define DO(i) \
    if (rows > i) t->a##i = _mm256_mul_ps(t->a##i, scale[0]);
    TILE8_EACH(DO)
#undef DO
}

TILE_INLINE void tile8_store(const int rows, const tile8 *t, float *y, int64_t y_stride)
{
#define DO(i) \
    if (rows > i) _mm256_store_ps(y + i * y_stride, t->a##i);
    TILE8_EACH(DO)
#undef DO
}

#define DO(i, row) \
    if (rows > i) t->a##i = _mm256_fmadd_ps(tile_broadcast(row), xa, t->a##i);
/* clang-format off */
#define TILE8_STEP()                                                                                                   \
    do {                                                                                                               \
        const __m256 xa = _mm256_load_ps(x);                                                                           \
        DO(0, w) DO(1, w + row_bytes) DO(2, w + 2 * row_bytes)                                                         \
        DO(3, w3) DO(4, w3 + row_bytes) DO(5, w3 + 2 * row_bytes)                                                      \
        DO(6, w6) DO(7, w6 + row_bytes) DO(8, w6 + 2 * row_bytes)                                                      \
        DO(9, w9) DO(10, w9 + row_bytes) DO(11, w9 + 2 * row_bytes)                                                    \
        x += KERN_LANES, w += step_bytes, w3 += step_bytes, w6 += step_bytes, w9 += step_bytes;                        \
    } while (0)
/* clang-format on */

TILE_INLINE void tile8_fma(const int rows, tile8 *t, const unsigned char *w, int64_t row_bytes,
                           const int64_t step_bytes, const float *x, int64_t k, const bool stream, tile_ahead ahead)
{
    const unsigned char *w3 = w + 3 * row_bytes, *w6 = w + 6 * row_bytes, *w9 = w + 9 * row_bytes;
    int64_t i = 0;
    for (; stream && i + TILE_LINE_STEPS <= k; i += TILE_LINE_STEPS) {
        tile_ask(rows, &ahead);
        TILE_UNROLL
        for (int s = 0; s < TILE_LINE_STEPS; s++) TILE8_STEP();
    }
    TILE_UNROLL
    for (; i < k; i++) TILE8_STEP();
}
#undef DO

#endif
