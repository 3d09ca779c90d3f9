/* SPDX-License-Identifier: Apache-2.0
 * kern_avx512_tile.h: tiles of up to 16 rows x 16 lanes, or 8 rows x 32. Every element is one chain of FMAs in step order. */
#ifndef LATH_KERN_AVX512_TILE_H
#define LATH_KERN_AVX512_TILE_H

#include "kern/avx512/kern_avx512_vec.h"
#include "kern/kern.h"

/* Row i is a[i], and b[i] of the second 16 lanes. gcc 12 keeps an array of vectors in memory, hence the names. */
typedef struct tile512 {
    vec512_f32 a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, b0, b1, b2, b3, b4, b5, b6, b7;
} tile512;

#define TILE_EACH8(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define TILE_EACH_MORE(DO) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)
#define TILE_EACH(DO) TILE_EACH8(DO) TILE_EACH_MORE(DO)

VEC512_INLINE void tile_zero(tile512 *t)
{
#define DO(i) t->a##i = vec512_set1(0.0f);
    TILE_EACH(DO)
#undef DO
#define DO(i) t->b##i = vec512_set1(0.0f);
    TILE_EACH8(DO)
#undef DO
}

/* Rows times `by`, to y and on. */
VEC512_INLINE void tile_store(const int rows, const tile512 *t, vec512_f32 by, float *y)
{
#define DO(i) \
    if (rows > i) vec512_store(y + (i)*KERN_LANES, vec512_mul(t->a##i, by));
    TILE_EACH(DO)
#undef DO
}

/* t += w x over k steps; element (row, step) of w is at w + row * row_bytes + step * step_bytes, step of x[v] at x[v] + step * x_step, any alignment. Two
 * vectors: the second 16 lanes of up to 8 rows. */
VEC512_INLINE void tile_fma(const int rows, const int vectors, tile512 *t, const unsigned char *w, const int row_bytes,
                            const int step_bytes, const float *const *x, const int64_t x_step, int64_t k)
{
    const float *xa = x[0], *xb = vectors == 2 ? x[1] : xa;
    for (int64_t step = 0; step < k; step++, w += step_bytes, xa += x_step, xb += x_step) {
        const vec512_f32 va = vec512_load_any(xa), vb = vectors == 2 ? vec512_load_any(xb) : va;
#define DO(i)                                                     \
    if (rows > i) {                                               \
        const vec512_f32 e = vec512_broadcast(w + (i)*row_bytes); \
        t->a##i = vec512_fma(e, va, t->a##i);                     \
        if (vectors == 2) t->b##i = vec512_fma(e, vb, t->b##i);   \
    }
        TILE_EACH8(DO)
#undef DO
#define DO(i) \
    if (rows > i) t->a##i = vec512_fma(vec512_broadcast(w + (i)*row_bytes), va, t->a##i);
        TILE_EACH_MORE(DO)
#undef DO
    }
}

#endif
