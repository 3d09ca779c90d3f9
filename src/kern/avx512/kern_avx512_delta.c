/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx512_delta.c: the gated delta rule of AVX2 (kern_avx2_delta.c, kern_avx2_delta_row.c) in products of 8 rows x 32 lanes, and passes over 128
 * columns, which is S from end to end.
 *
 * Every sum is one chain of FMAs in step order: the bits of AVX2. */
#include "kern/avx2/kern_avx2_delta.h"
#include "kern/avx512/kern_avx512.h"
#include "kern/avx512/kern_avx512_tile.h"

VEC512_INLINE void finish(vec512_f32 sum, float keep, const float *scale, float *y)
{
    const vec512_f32 by = vec512_set1(scale ? *scale : keep), old = vec512_load_any(y);
    vec512_store_any(y, scale ? vec512_fma(by, sum, old) : vec512_fma(by, old, sum));
}

VEC512_INLINE void product_tile(const int rows, const bool tokens_are_rows, const delta_product *p, int64_t row)
{
    const float *scale = tokens_are_rows ? p->scale + row : NULL;
    const unsigned char *w = (const unsigned char *)(p->w + (tokens_are_rows ? row : row * KERN_LANES));
    float *ya = p->y[0] + row * p->y_stride, *yb = p->y[1] + row * p->y_stride;
    tile512 t;
    tile_zero(&t);
    if (tokens_are_rows)
        tile_fma(rows, 2, &t, w, 4, 64, p->x, p->x_stride, p->steps);
    else
        tile_fma(rows, 2, &t, w, 64, 4, p->x, p->x_stride, p->steps);
#define DO(i)                                                                                \
    if (rows > i) {                                                                          \
        finish(t.a##i, p->keep, tokens_are_rows ? scale + (i) : NULL, ya + (i)*p->y_stride); \
        finish(t.b##i, p->keep, tokens_are_rows ? scale + (i) : NULL, yb + (i)*p->y_stride); \
    }
    TILE_EACH8(DO)
#undef DO
}

VEC512_INLINE void product_tiles(const bool tokens_are_rows, const delta_product *p)
{
    int64_t row = 0;
    for (; row + 8 <= p->rows; row += 8) product_tile(8, tokens_are_rows, p, row);
    for (; row + 4 <= p->rows; row += 4) product_tile(4, tokens_are_rows, p, row);
    for (; row + 2 <= p->rows; row += 2) product_tile(2, tokens_are_rows, p, row);
    for (; row < p->rows; row++) product_tile(1, tokens_are_rows, p, row);
}

static void product(const delta_product *p)
{
    if (p->scale)
        product_tiles(true, p);
    else
        product_tiles(false, p);
}

/* Vectors of a row: 8 or 2. */
VEC512_INLINE void row_tile(const int vectors, int64_t columns, int64_t steps, const float *w, const float *x, float *y)
{
#define DO(i) vec512_f32 a##i = vec512_load(y + (i < vectors ? i : 0) * KERN_LANES);
    TILE_EACH8(DO)
#undef DO
    for (int64_t s = 0; s < steps; s++, w += KERN_LANES, x += columns) {
        const vec512_f32 e = vec512_set1(*w);
#define DO(i) \
    if (vectors > i) a##i = vec512_fma(e, vec512_load(x + (i)*KERN_LANES), a##i);
        TILE_EACH8(DO)
#undef DO
    }
#define DO(i) \
    if (vectors > i) vec512_store(y + (i)*KERN_LANES, a##i);
    TILE_EACH8(DO)
#undef DO
}

static void row(int64_t columns, int64_t steps, const float *w, const float *x, float *y)
{
    int64_t c = 0;
    for (; c + 128 <= columns; c += 128) row_tile(8, columns, steps, w, x + c, y + c);
    for (; c < columns; c += KERN_DELTA_COLUMNS) row_tile(2, columns, steps, w, x + c, y + c);
}

void KERN_AVX512(delta)(const kern_delta_args *a) { kern_avx2_delta_by(a, &(delta_tiles){product, row}); }

/* ------------------------------------------------------------------------------ one token, 128 columns */

static void read_wide(int64_t d_k, const float *s, int64_t s_stride, const float *ahead, const float *k, const float *q,
                      float *by_k, float *by_q)
{
    (void)ahead; /* lies behind s: the machine is there by itself */
#define DO(i) vec512_f32 k##i = vec512_set1(0.0f), q##i = k##i;
    TILE_EACH8(DO)
#undef DO
    for (int64_t row = 0; row < d_k; row++, s += s_stride, ahead += s_stride) {
        const vec512_f32 ek = vec512_set1(k[row]), eq = vec512_set1(q[row]);
#define DO(i)                                                     \
    {                                                             \
        const vec512_f32 v = vec512_load_any(s + (i)*KERN_LANES); \
        k##i = vec512_fma(ek, v, k##i);                           \
        q##i = vec512_fma(eq, v, q##i);                           \
    }
        TILE_EACH8(DO)
#undef DO
    }
#define DO(i) vec512_store(by_k + (i)*KERN_LANES, k##i), vec512_store(by_q + (i)*KERN_LANES, q##i);
    TILE_EACH8(DO)
#undef DO
}

static void write_wide(int64_t d_k, float *s, int64_t s_stride, float decay, const float *k, const float *d)
{
    const vec512_f32 keep = vec512_set1(decay);
#define DO(i) const vec512_f32 d##i = vec512_load(d + (i)*KERN_LANES);
    TILE_EACH8(DO)
#undef DO
    for (int64_t row = 0; row < d_k; row++, s += s_stride) {
        const vec512_f32 e = vec512_set1(k[row]);
#define DO(i)                                                                             \
    {                                                                                     \
        float *at = s + (i)*KERN_LANES;                                                   \
        vec512_store_any(at, vec512_fma(e, d##i, vec512_mul(keep, vec512_load_any(at)))); \
    }
        TILE_EACH8(DO)
#undef DO
    }
}

void KERN_AVX512(delta_row)(const kern_delta_row_args *a)
{
    const delta_passes passes[] = {{DELTA_MAX_WIDTH, read_wide, write_wide}, kern_avx2_delta_strip};
    kern_avx2_delta_row_by(a, passes);
}
