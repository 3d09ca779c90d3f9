/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx2_tile.h: the two register tiles that every product here is made of.
 *
 *     tile16: up to  6 rows x 16 lanes, 12 accumulators      tile8: up to 12 rows x 8 lanes, 12 accumulators
 *
 * A step reads one x row ([16] floats, a feature or key of all lanes), broadcasts one element of each row of w, and multiply-adds: 12 FMAs, enough
 * to cover their latency on two ports. `rows` is a constant at every call after inlining, the accumulators of rows behind it vanish. gcc 12
 * keeps an array of vectors in memory, hence the names. Every element is one chain of FMAs in step order, so its bits do not depend on the tile.
 */
#ifndef LATH_KERN_AVX2_TILE_H
#define LATH_KERN_AVX2_TILE_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "kern/kern.h"

#define TILE_INLINE static inline __attribute__((always_inline))

/* The element at any alignment in all lanes; compiles to one vbroadcastss. */
TILE_INLINE __m256 tile_broadcast(const unsigned char *p)
{
    float f;
    memcpy(&f, p, sizeof(f));
    return _mm256_set1_ps(f);
}

/* w: element (row, step) is at w + row * row_bytes + step * step_bytes. x: step k at x + k * 16. */
typedef struct tile16 {
    __m256 a0, b0, a1, b1, a2, b2, a3, b3, a4, b4, a5, b5;
} tile16;

#define TILE16_EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)
#define TILE8_EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)

TILE_INLINE void tile16_zero(tile16 *t)
{
#define DO(i) t->a##i = t->b##i = _mm256_setzero_ps();
    TILE16_EACH(DO)
#undef DO
}

TILE_INLINE void tile16_bias(const int rows, tile16 *t, const float *bias)
{
#define DO(i) \
    if (rows > i) t->a##i = t->b##i = tile_broadcast((const unsigned char *)bias + 4 * i);
    TILE16_EACH(DO)
#undef DO
}

TILE_INLINE void tile16_load(const int rows, tile16 *t, const float *y)
{
#define DO(i) \
    if (rows > i) t->a##i = _mm256_load_ps(y + 16 * i), t->b##i = _mm256_load_ps(y + 16 * i + 8);
    TILE16_EACH(DO)
#undef DO
}

TILE_INLINE void tile16_store(const int rows, const tile16 *t, float *y)
{
#define DO(i) \
    if (rows > i) _mm256_store_ps(y + 16 * i, t->a##i), _mm256_store_ps(y + 16 * i + 8, t->b##i);
    TILE16_EACH(DO)
#undef DO
}

TILE_INLINE void tile16_fma(const int rows, tile16 *t, const unsigned char *w, int64_t row_bytes, int64_t step_bytes,
                            const float *x, int64_t k)
{
    const unsigned char *w3 = w + 3 * row_bytes;
    for (int64_t i = 0; i < k; i++) {
        const __m256 xa = _mm256_load_ps(x), xb = _mm256_load_ps(x + 8);
        __m256 e;
#define DO(i)                                                                     \
    if (rows > i) {                                                               \
        e = tile_broadcast(i < 3 ? w + i * row_bytes : w3 + (i - 3) * row_bytes); \
        t->a##i = _mm256_fmadd_ps(e, xa, t->a##i);                                \
        t->b##i = _mm256_fmadd_ps(e, xb, t->b##i);                                \
    }
        TILE16_EACH(DO)
#undef DO
        x += KERN_LANES;
        w += step_bytes;
        w3 += step_bytes;
    }
}

/* Eight lanes: x and y point at the first of them, rows are still 16 floats apart. */
typedef struct tile8 {
    __m256 a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11;
} tile8;

TILE_INLINE void tile8_zero(tile8 *t)
{
#define DO(i) t->a##i = _mm256_setzero_ps();
    TILE8_EACH(DO)
#undef DO
}

TILE_INLINE void tile8_bias(const int rows, tile8 *t, const float *bias)
{
#define DO(i) \
    if (rows > i) t->a##i = tile_broadcast((const unsigned char *)bias + 4 * i);
    TILE8_EACH(DO)
#undef DO
}

TILE_INLINE void tile8_load(const int rows, tile8 *t, const float *y)
{
#define DO(i) \
    if (rows > i) t->a##i = _mm256_load_ps(y + 16 * i);
    TILE8_EACH(DO)
#undef DO
}

TILE_INLINE void tile8_store(const int rows, const tile8 *t, float *y)
{
#define DO(i) \
    if (rows > i) _mm256_store_ps(y + 16 * i, t->a##i);
    TILE8_EACH(DO)
#undef DO
}

TILE_INLINE void tile8_fma(const int rows, tile8 *t, const unsigned char *w, int64_t row_bytes, int64_t step_bytes,
                           const float *x, int64_t k)
{
    const unsigned char *w3 = w + 3 * row_bytes, *w6 = w + 6 * row_bytes, *w9 = w + 9 * row_bytes;
    for (int64_t i = 0; i < k; i++) {
        const __m256 xa = _mm256_load_ps(x);
#define DO(i)                                                        \
    if (rows > i)                                                    \
        t->a##i = _mm256_fmadd_ps(tile_broadcast((i < 3   ? w        \
                                                  : i < 6 ? w3       \
                                                  : i < 9 ? w6       \
                                                          : w9) +    \
                                                 i % 3 * row_bytes), \
                                  xa, t->a##i);
        TILE8_EACH(DO)
#undef DO
        x += KERN_LANES;
        w += step_bytes;
        w3 += step_bytes;
        w6 += step_bytes;
        w9 += step_bytes;
    }
}

#endif
