/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx2_drive.h: the product of row-major weights with panels of tokens, all but its tiles of registers: what kern_avx2_linear.c and
 * kern_avx512_linear.c have in common.
 *
 * The rows of a call are cut into R long streams (6 or 12), and a block takes one row of each:
 *
 *     | stream 0 | stream 1 | ... | stream R - 1 |      L = (n1 - n0) / R rows each
 *     block b: rows n0 + b, n0 + L + b, ..., n0 + (R - 1) L + b
 *
 * so each stream is read from end to end, which is what the prefetchers of hardware follow; neighbouring rows are as many
 * short streams at half the speed. Loops, outermost first (after Goto & van de Geijn 2008, with nothing packed):
 *
 *     group of panels   as many as keep their x near (1 MB), 16 at most: weights come from L3 or DRAM once a group
 *     block             its rows stay in L1 or L2 for the group
 *     panel             one tile: R rows x 16 lanes (of one or two panels) over the whole of k, x from L1 or L2
 *
 * Rows of other types than f32 become f32 in scratch, a chunk of k at a time; sums then go on in y, which
 * changes no bit: f32 in memory is what the register held. Bias starts a sum, the activation ends it. */
#ifndef LATH_KERN_AVX2_DRIVE_H
#define LATH_KERN_AVX2_DRIVE_H

#include "kern/avx2/kern_avx2.h"
#include "kern/avx2/kern_avx2_decode.h"

/* Bytes from the weights in use to those to ask for: 128 steps, about the time DRAM takes. */
enum { AHEAD_F32 = 512 };

/* Weights come as long streams, one a row of the tile. The hardware alone follows them from DRAM at half the speed,
 * so a tile that reads new ones asks for what lies ahead: each row's line at `at`, every 16 steps `step` bytes on. */
typedef struct tile_ahead {
    const unsigned char *at; /* NULL: nothing */
    int64_t row_bytes, step;
} tile_ahead;

enum { TILE_LINE_STEPS = 16 };

typedef enum tile_start { START_ZERO, START_BIAS, START_SUM } tile_start;

/* One tile. Its rows are w_stride bytes of weights apart, its panels x_panel, sum_panel and to_panel floats. */
typedef struct tile_job {
    const unsigned char *w;
    int64_t w_stride; /* bytes */
    const float *x;
    int64_t x_panel;
    const float *sum; /* START_SUM: what to go on from */
    int64_t sum_stride, sum_panel;
    float *to;
    int64_t to_stride, to_panel;
    const float *bias;
    int64_t bias_stride;
    int64_t k;
    tile_start start;
    tile_ahead ahead; /* NULL where the weights were just read */
} tile_job;

/* The tiles of an ISA. */
typedef struct linear_tiles {
    int rows, panels; /* of the largest */
    /* narrow: only the first 8 lanes are used */
    void (*run)(int rows, int panels, bool narrow, const tile_job *j);
} linear_tiles;

enum { LINEAR_MAX_ROWS = 12, LINEAR_MAX_PANELS = 2 };

/* The panels p0 <= p < p1 of one pass over the weights; p_narrow has 8 lanes at most (-1: none has). */
typedef struct panel_group {
    int64_t p0, p1, p_narrow;
} panel_group;

/* Rows n, n + gap, n + 2 gap ... (`rows` of them), the chunk of k that begins at k0, all panels of the group. */
static inline void block_chunk(const linear_tiles *tiles, const kern_linear_args *a, const panel_group *g, tile_job *j,
                               int64_t n, int64_t gap, int rows, int64_t k0)
{
    enum { PANEL = LINEAR_MAX_ROWS * KERN_LANES };
    _Alignas(64) float before_fn[LINEAR_MAX_PANELS * PANEL]; /* y's lines may be far: write them once */
    const bool fn = k0 + j->k >= a->k && a->fn != KERN_FN_NONE;
    for (int64_t p = g->p0, panels; p < g->p1; p += panels) {
        const bool narrow = p == g->p_narrow;
        float *y = a->y + p * a->y_stride + n * KERN_LANES;
        panels = g->p1 - p < tiles->panels ? g->p1 - p : tiles->panels;
        j->x = a->x + p * a->x_stride + k0 * KERN_LANES;
        j->sum = y;
        j->to = fn ? before_fn : y;
        j->to_panel = fn ? PANEL : a->y_stride;
        tiles->run(rows, (int)panels, narrow, j);
        for (int64_t i = 0; fn && i < panels; i++)
            kern_avx2_map_rows(a->fn, rows, narrow ? 1 : 2, before_fn + i * PANEL, y + i * a->y_stride,
                               gap * KERN_LANES);
        j->ahead.at = NULL; /* the other panels meet the same weights */
    }
}

static inline void block_rows(const linear_tiles *tiles, const kern_linear_args *a, const panel_group *g, int64_t n,
                              int64_t gap, int rows)
{
    const unsigned char *w = (const unsigned char *)a->w + n * a->w_stride;
    const int64_t chunk = a->type == DTYPE_F32 ? a->k : KERN_AVX2_CHUNK;
    tile_job j = {.x_panel = a->x_stride,
                  .sum_stride = gap * KERN_LANES,
                  .sum_panel = a->y_stride,
                  .bias_stride = gap,
                  .start = a->bias ? START_BIAS : START_ZERO};
    j.bias = a->bias ? a->bias + n : NULL;
    const int64_t line = (int64_t)(TILE_LINE_STEPS * dtype_block_bytes(a->type) / dtype_block_numbers(a->type));
    int64_t k0 = 0;
    do { /* once even for k = 0, which is the bias alone */
        j.k = a->k - k0 < chunk ? a->k - k0 : chunk;
        if (a->type == DTYPE_F32) {
            j.w = w;
            j.w_stride = gap * a->w_stride;
            j.ahead = (tile_ahead){w + AHEAD_F32, j.w_stride, 64};
        } else {
            const unsigned char *from = w + dtype_bytes(a->type, k0);
            for (int r = 0; r < rows; r++)
                kern_avx2_to_f32(a->type, from + r * gap * a->w_stride, j.k, a->scratch + r * KERN_AVX2_CHUNK);
            j.w = (const unsigned char *)a->scratch;
            j.w_stride = KERN_AVX2_CHUNK * (int64_t)sizeof(float);
            j.ahead = (tile_ahead){w + dtype_bytes(a->type, k0 + j.k), gap * a->w_stride, line}; /* the next chunk */
        }
        j.to_stride = k0 + j.k >= a->k && a->fn != KERN_FN_NONE ? KERN_LANES : gap * KERN_LANES;
        block_chunk(tiles, a, g, &j, n, gap, rows, k0);
        j.start = START_SUM;
        k0 += j.k;
    } while (k0 < a->k);
}

/* Panels a pass: their x should stay in L2 or close to it. */
static inline int64_t group_panels(int64_t k)
{
    const int64_t near = 1 << 20, panels = near / (k * KERN_LANES * (int64_t)sizeof(float) + 1);
    return panels < 4 ? 4 : panels > KERN_AVX2_GROUP ? KERN_AVX2_GROUP : panels;
}

static inline void linear_drive(const linear_tiles *tiles, const kern_linear_args *a)
{
    const int64_t panels = group_panels(a->k);
    for (int64_t p = a->p0; p < a->p1; p += panels) {
        const int64_t p_end = a->p1 - p < panels ? a->p1 : p + panels;
        const panel_group g = {p, p_end, p_end == a->p1 && a->last_lanes <= 8 ? p_end - 1 : -1};
        const int64_t length = (a->n1 - a->n0) / tiles->rows, rest = a->n0 + length * tiles->rows;
        for (int64_t b = 0; b < length; b++) block_rows(tiles, a, &g, a->n0 + b, length, tiles->rows);
        if (rest < a->n1) block_rows(tiles, a, &g, rest, 1, (int)(a->n1 - rest));
    }
}

#endif
