/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx2_delta.c: the gated delta rule of one head and one chunk (Yang et al. 2024, "Gated Delta Networks", section 3.3).
 *
 * The tokens of the chunk become rows and the columns of S lanes, as S lies in memory; the columns do not meet.
 *
 *     kk[j][i] = k_j . k_i, kq[j][i] = k_j . q_i   16 x 16, times their decays
 *     x[i] = beta_i v_i - beta_i E_i S^T k_i       two products over d_k, S read once for both
 *     y[i] = E_i S^T q_i
 *     x[i] += sum over j < i of -beta_i E_ij kk[j][i] x[j]     forward substitution: x becomes d
 *     y[i] += sum over j <= i of E_ij kq[j][i] x[j]
 *     S = E S + sum over j of k_j (E_j x[j])^T     a product over the tokens
 *
 * Rows and steps end with the tokens, so lanes behind them reach nothing. E_ij, the decay from token j to token i, is a product of numbers up to 1: it
 * may be 0, and nothing is divided by it. */
#include <string.h>

#include "kern/avx2/kern_avx2_delta.h"
#include "kern/avx2/kern_avx2_math.h"
#include "kern/avx2/kern_avx2_tile.h"

/* ------------------------------------------------------------------------------ the chunk, of any vectors */

typedef float square[KERN_LANES][KERN_LANES];

typedef struct delta_chunk {
    const kern_delta_args *a;
    const delta_tiles *tiles;
    int64_t columns; /* d_v in whole strips */
    float *strip;    /* [d_k][32]: the last columns of S, zeros behind them */
    float *x, *y;    /* [16][columns] */
    float (*kk)[KERN_LANES], (*kq)[KERN_LANES];
    square decay;                               /* [j][i]: E_ij for j <= i */
    float since[KERN_LANES], until[KERN_LANES]; /* E_i; E_(n-1)j */
} delta_chunk;

/* Row j - 1 is row j times the decay of token j, and 1 at token j - 1. What is left of the diagonal is never used. */
static void decays(delta_chunk *c)
{
    const int64_t n = c->a->n;
    float alpha[KERN_LANES] = {0};
    memcpy(alpha, c->a->g, (size_t)n * sizeof(float));
    kern_avx2_map(KERN_FN_EXP, KERN_LANES, alpha, alpha);
    memset(c->decay[n - 1], 0, sizeof(c->decay[0]));
    c->decay[n - 1][n - 1] = 1.0f;
    for (int64_t j = n - 1; j > 0; j--) {
        for (int i = 0; i < KERN_LANES; i++) c->decay[j - 1][i] = c->decay[j][i] * alpha[j];
        c->decay[j - 1][j - 1] = 1.0f;
    }
    for (int i = 0; i < KERN_LANES; i++) c->since[i] = alpha[0] * c->decay[0][i];
    for (int64_t j = 0; j < n; j++) c->until[j] = c->decay[j][n - 1];
}

/* kk and kq with their factors. */
static void coefficients(const delta_chunk *c)
{
    const kern_delta_args *a = c->a;
    float minus[KERN_LANES], one[KERN_LANES];
    memset(c->kk, 0, 2 * sizeof(square));
    for (int64_t i = 0; i < a->n; i++) minus[i] = -a->beta[i], one[i] = 1.0f;
    c->tiles->product(&(delta_product){.rows = a->n,
                                       .steps = a->d_k,
                                       .w = a->k,
                                       .x = {a->k, a->q},
                                       .x_stride = KERN_LANES,
                                       .y = {c->kk[0], c->kq[0]},
                                       .y_stride = KERN_LANES,
                                       .scale = one});
    for (int64_t j = 0; j < a->n; j++) {
        for (int i = 0; i < KERN_LANES; i++) {
            c->kk[j][i] *= minus[i] * c->decay[j][i];
            c->kq[j][i] *= c->decay[j][i];
        }
    }
}

/* Eight rows, times `by`, become eight columns. */
VEC_INLINE void turn8(const float *x, int64_t x_stride, __m256 by, float *y, int64_t y_stride)
{
    __m256 r[8];
    for (int i = 0; i < 8; i++) r[i] = _mm256_mul_ps(_mm256_loadu_ps(x + i * x_stride), by);
    vec_transpose8(r);
    for (int i = 0; i < 8; i++) _mm256_storeu_ps(y + i * y_stride, r[i]);
}

/* x[t] = beta_t v_t, zeros behind d_v. Rows behind n hold anything. */
static void turn_in(const delta_chunk *c)
{
    const kern_delta_args *a = c->a;
    _Alignas(32) float beta[KERN_LANES] = {0};
    const int64_t whole = a->d_v / 8 * 8;
    memcpy(beta, a->beta, (size_t)a->n * sizeof(float));
    for (int64_t t = 0; t < a->n; t += 8)
        for (int64_t f = 0; f < whole; f += 8)
            turn8(a->v + f * KERN_LANES + t, KERN_LANES, _mm256_load_ps(beta + t), c->x + t * c->columns + f,
                  c->columns);
    for (int64_t t = 0; t < a->n; t++)
        for (int64_t f = whole; f < c->columns; f++)
            c->x[t * c->columns + f] = f < a->d_v ? a->v[f * KERN_LANES + t] * beta[t] : 0.0f;
}

static void turn_out(const delta_chunk *c)
{
    const kern_delta_args *a = c->a;
    const int64_t whole = a->d_v / 8 * 8;
    for (int64_t t = 0; t < KERN_LANES; t += 8)
        for (int64_t f = 0; f < whole; f += 8)
            turn8(c->y + t * c->columns + f, c->columns, _mm256_set1_ps(1.0f), a->y + f * KERN_LANES + t, KERN_LANES);
    for (int64_t f = whole; f < a->d_v; f++)
        for (int64_t t = 0; t < KERN_LANES; t++) a->y[f * KERN_LANES + t] = c->y[t * c->columns + f];
}

/* What S knows of the keys and the queries, into x and y: S itself, and its last columns in a strip of their own where they are no whole strip. */
static void project(const delta_chunk *c)
{
    const kern_delta_args *a = c->a;
    float minus[KERN_LANES];
    for (int64_t i = 0; i < a->n; i++) minus[i] = -a->beta[i] * c->since[i];
    for (int64_t f = 0; f < c->columns; f += KERN_DELTA_COLUMNS) {
        const bool whole = f + KERN_DELTA_COLUMNS <= a->d_v;
        const float *s = whole ? a->state + f : c->strip;
        for (int64_t i = 0; !whole && i < a->d_k; i++) {
            memset(c->strip + i * KERN_DELTA_COLUMNS, 0, KERN_DELTA_COLUMNS * sizeof(float));
            memcpy(c->strip + i * KERN_DELTA_COLUMNS, a->state + i * a->d_v + f, (size_t)(a->d_v - f) * sizeof(float));
        }
        delta_product p = {.rows = a->n, .steps = a->d_k, .w = a->k};
        p.x[0] = s, p.x[1] = s + KERN_LANES, p.x_stride = whole ? a->d_v : KERN_DELTA_COLUMNS;
        p.y[0] = c->x + f, p.y[1] = c->x + f + KERN_LANES, p.y_stride = c->columns;
        p.scale = minus;
        c->tiles->product(&p);
        p.w = a->q, p.scale = c->since;
        p.y[0] = c->y + f, p.y[1] = c->y + f + KERN_LANES;
        c->tiles->product(&p);
    }
}

static void substitute(const delta_chunk *c)
{
    for (int64_t i = 0; i < c->a->n; i++) {
        c->tiles->row(c->columns, i, &c->kk[0][i], c->x, c->x + i * c->columns);
        c->tiles->row(c->columns, i + 1, &c->kq[0][i], c->x, c->y + i * c->columns);
    }
}

static void update(const delta_chunk *c)
{
    const kern_delta_args *a = c->a;
    for (int64_t j = 0; j < a->n; j++)
        for (int64_t f = 0; f < c->columns; f++) c->x[j * c->columns + f] *= c->until[j];
    for (int64_t f = 0; f < c->columns; f += KERN_DELTA_COLUMNS) {
        const bool whole = f + KERN_DELTA_COLUMNS <= a->d_v;
        float *s = whole ? a->state + f : c->strip;
        c->tiles->product(&(delta_product){.rows = a->d_k,
                                           .steps = a->n,
                                           .w = a->k,
                                           .x = {c->x + f, c->x + f + KERN_LANES},
                                           .x_stride = c->columns,
                                           .y = {s, s + KERN_LANES},
                                           .y_stride = whole ? a->d_v : KERN_DELTA_COLUMNS,
                                           .keep = c->since[a->n - 1]});
        for (int64_t i = 0; !whole && i < a->d_k; i++)
            memcpy(a->state + i * a->d_v + f, s + i * KERN_DELTA_COLUMNS, (size_t)(a->d_v - f) * sizeof(float));
    }
}

void kern_avx2_delta_by(const kern_delta_args *a, const delta_tiles *tiles)
{
    delta_chunk c = {.a = a, .tiles = tiles, .strip = a->scratch};
    c.columns = (a->d_v + KERN_DELTA_COLUMNS - 1) / KERN_DELTA_COLUMNS * KERN_DELTA_COLUMNS;
    c.x = c.strip + a->d_k * KERN_DELTA_COLUMNS;
    c.y = c.x + KERN_LANES * c.columns;
    c.kk = (float(*)[KERN_LANES])(c.y + KERN_LANES * c.columns);
    c.kq = c.kk + KERN_LANES;
    memset(c.y, 0, (size_t)(KERN_LANES * c.columns) * sizeof(float));
    decays(&c);
    coefficients(&c);
    turn_in(&c);
    project(&c);
    substitute(&c);
    turn_out(&c);
    update(&c);
}

/* ------------------------------------------------------------------------------ eight lanes */

static const tile_ahead no_ahead; /* all of it lies in the caches */

TILE_INLINE void finish8(__m256 sum, float keep, const float *scale, float *y)
{
    const __m256 by = _mm256_set1_ps(scale ? *scale : keep), old = _mm256_loadu_ps(y);
    _mm256_storeu_ps(y, scale ? _mm256_fmadd_ps(by, sum, old) : _mm256_fmadd_ps(by, old, sum));
}

TILE_INLINE void product_tile(const int rows, const bool tokens_are_rows, const delta_product *p, int64_t row)
{
    const float *scale = tokens_are_rows ? p->scale + row : NULL;
    const float *w = p->w + (tokens_are_rows ? row : row * KERN_LANES);
    for (int strip = 0; strip < 2; strip++) {
        float *y = p->y[strip] + row * p->y_stride;
        tile16 t;
        tile16_zero(&t);
        if (tokens_are_rows)
            tile16_fma_by(rows, &t, (const unsigned char *)w, 4, 64, p->x[strip], p->x_stride, p->steps, false,
                          no_ahead);
        else
            tile16_fma_by(rows, &t, (const unsigned char *)w, 64, 4, p->x[strip], p->x_stride, p->steps, false,
                          no_ahead);
#define DO(i)                                                                                  \
    if (rows > i) {                                                                            \
        finish8(t.a##i, p->keep, tokens_are_rows ? scale + i : NULL, y + i * p->y_stride);     \
        finish8(t.b##i, p->keep, tokens_are_rows ? scale + i : NULL, y + i * p->y_stride + 8); \
    }
        TILE16_EACH(DO)
#undef DO
    }
}

TILE_INLINE void product_tiles(const bool tokens_are_rows, const delta_product *p)
{
    int64_t row = 0;
    for (; row + 6 <= p->rows; row += 6) product_tile(6, tokens_are_rows, p, row);
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

/* Eight chains, of 64 columns. */
#define ROW_EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)

TILE_INLINE void row_tile(const int vectors, int64_t columns, int64_t steps, const float *w, const float *x, float *y)
{
#define DO(i) __m256 a##i = vectors > i ? _mm256_load_ps(y + 8 * (i)) : _mm256_setzero_ps();
    ROW_EACH(DO)
#undef DO
    for (int64_t s = 0; s < steps; s++, w += KERN_LANES, x += columns) {
        const __m256 e = _mm256_broadcast_ss(w);
#define DO(i) \
    if (vectors > i) a##i = _mm256_fmadd_ps(e, _mm256_load_ps(x + 8 * (i)), a##i);
        ROW_EACH(DO)
#undef DO
    }
#define DO(i) \
    if (vectors > i) _mm256_store_ps(y + 8 * (i), a##i);
    ROW_EACH(DO)
#undef DO
}

static void row(int64_t columns, int64_t steps, const float *w, const float *x, float *y)
{
    int64_t c = 0;
    for (; c + 64 <= columns; c += 64) row_tile(8, columns, steps, w, x + c, y + c);
    for (; c < columns; c += 32) row_tile(4, columns, steps, w, x + c, y + c);
}

void kern_avx2_delta(const kern_delta_args *a) { kern_avx2_delta_by(a, &(delta_tiles){product, row}); }
