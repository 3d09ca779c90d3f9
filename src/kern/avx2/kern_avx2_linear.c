/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx2_linear.c: the product of row-major weights with panels of tokens.
 *
 * The rows of a call are cut into six long streams, and a block takes one row of each:
 *
 *     | stream 0 | stream 1 | ... | stream 5 |      R = (n1 - n0) / 6 rows each
 *     block b: rows n0 + b, n0 + R + b, ..., n0 + 5 R + b
 *
 * so each stream is read from end to end, which is what the prefetchers of hardware follow; six neighbouring rows are
 * six short streams at half the speed. Loops, outermost first (after Goto & van de Geijn 2008, with nothing packed):
 *
 *     group of panels   as many as keep their x near (1 MB), 16 at most: weights come from L3 or DRAM once a group
 *     block             its rows stay in L1 or L2 for the group
 *     panel             one tile: 6 rows x 16 lanes over the whole of k, x from L1 or L2 at 11 bytes a cycle
 *
 * A last panel of up to 8 lanes takes 6 rows x 8 lanes: six chains of FMAs do not fill the ports, but for so few
 * tokens the weights' way from memory takes longer (and twelve streams whose distance is a multiple of 4 KB share one
 * set of the 8-way L1). Rows of other types than f32 become f32 in scratch, a chunk of k at a time; sums then go on in y, which
 * changes no bit: f32 in memory is what the register held. Bias starts a sum, the activation ends it. */
#include "kern/avx2/kern_avx2.h"
#include "kern/avx2/kern_avx2_decode.h"
#include "kern/avx2/kern_avx2_math.h"
#include "kern/avx2/kern_avx2_tile.h"

/* Bytes from the weights in use to those to ask for: 128 steps, about the time DRAM takes. */
enum { AHEAD_F32 = 512 };

typedef enum tile_start { START_ZERO, START_BIAS, START_SUM } tile_start;

/* One tile. Its rows are w_stride bytes of weights apart. */
typedef struct tile_job {
    const unsigned char *w;
    int64_t w_stride; /* bytes */
    const float *x;
    const float *sum; /* START_SUM: what to go on from */
    int64_t sum_stride;
    float *to;
    int64_t to_stride;
    const float *bias;
    int64_t bias_stride;
    int64_t k;
    tile_start start;
    tile_ahead ahead; /* NULL where the weights were just read */
} tile_job;

#define TILE_FUNCTION(width, rows)                                                          \
    static void tile##width##_rows##rows(const tile_job *j)                                 \
    {                                                                                       \
        tile##width t;                                                                      \
        if (j->start == START_ZERO)                                                         \
            tile##width##_zero(&t);                                                         \
        else if (j->start == START_BIAS)                                                    \
            tile##width##_bias(rows, &t, j->bias, j->bias_stride);                          \
        else                                                                                \
            tile##width##_load(rows, &t, j->sum, j->sum_stride);                            \
        if (j->ahead.at)                                                                    \
            tile##width##_fma(rows, &t, j->w, j->w_stride, 4, j->x, j->k, true, j->ahead);  \
        else                                                                                \
            tile##width##_fma(rows, &t, j->w, j->w_stride, 4, j->x, j->k, false, j->ahead); \
        tile##width##_store(rows, &t, j->to, j->to_stride);                                 \
    }
TILE_FUNCTION(16, 1)
TILE_FUNCTION(16, 2)
TILE_FUNCTION(16, 3)
TILE_FUNCTION(16, 4)
TILE_FUNCTION(16, 5)
TILE_FUNCTION(16, 6)
TILE_FUNCTION(8, 1)
TILE_FUNCTION(8, 2)
TILE_FUNCTION(8, 3)
TILE_FUNCTION(8, 4)
TILE_FUNCTION(8, 5)
TILE_FUNCTION(8, 6)

typedef void (*tile_function)(const tile_job *j);
static const tile_function tile16_of[KERN_AVX2_ROWS + 1] = {NULL,         tile16_rows1, tile16_rows2, tile16_rows3,
                                                            tile16_rows4, tile16_rows5, tile16_rows6};
static const tile_function tile8_of[KERN_AVX2_ROWS + 1] = {NULL,        tile8_rows1, tile8_rows2, tile8_rows3,
                                                           tile8_rows4, tile8_rows5, tile8_rows6};

/* The panels p0 <= p < p1 of one pass over the weights; p_narrow has 8 lanes at most (-1: none has). */
typedef struct panel_group {
    int64_t p0, p1, p_narrow;
} panel_group;

/* Rows n, n + gap, n + 2 gap ... (`rows` of them), the chunk of k that begins at k0, all panels of the group. */
static void block_chunk(const kern_linear_args *a, const panel_group *g, tile_job *j, int64_t n, int64_t gap, int rows,
                        int64_t k0)
{
    _Alignas(64) float before_fn[KERN_AVX2_ROWS * KERN_LANES]; /* y's lines may be far: write them once */
    const bool fn = k0 + j->k >= a->k && a->fn != KERN_FN_NONE;
    for (int64_t p = g->p0; p < g->p1; p++) {
        const bool narrow = p == g->p_narrow;
        float *y = a->y + p * a->y_stride + n * KERN_LANES;
        j->x = a->x + p * a->x_stride + k0 * KERN_LANES;
        j->sum = y;
        j->to = fn ? before_fn : y;
        (narrow ? tile8_of : tile16_of)[rows](j);
        if (fn) kern_avx2_map_rows(a->fn, rows, narrow ? 1 : 2, before_fn, y, gap * KERN_LANES);
        j->ahead.at = NULL; /* the other panels meet the same weights */
    }
}

static void block_rows(const kern_linear_args *a, const panel_group *g, int64_t n, int64_t gap, int rows)
{
    const unsigned char *w = (const unsigned char *)a->w + n * a->w_stride;
    const int64_t chunk = a->type == DTYPE_F32 ? a->k : KERN_AVX2_CHUNK;
    tile_job j = {.sum_stride = gap * KERN_LANES, .bias_stride = gap, .start = a->bias ? START_BIAS : START_ZERO};
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
        block_chunk(a, g, &j, n, gap, rows, k0);
        j.start = START_SUM;
        k0 += j.k;
    } while (k0 < a->k);
}

/* Panels a pass: their x should stay in L2 or close to it. */
static int64_t group_panels(int64_t k)
{
    const int64_t near = 1 << 20, panels = near / (k * KERN_LANES * (int64_t)sizeof(float) + 1);
    return panels < 4 ? 4 : panels > KERN_AVX2_GROUP ? KERN_AVX2_GROUP : panels;
}

void kern_avx2_linear(const kern_linear_args *a)
{
    const int64_t panels = group_panels(a->k);
    for (int64_t p = a->p0; p < a->p1; p += panels) {
        const int64_t p_end = a->p1 - p < panels ? a->p1 : p + panels;
        const panel_group g = {p, p_end, p_end == a->p1 && a->last_lanes <= 8 ? p_end - 1 : -1};
        const int64_t length = (a->n1 - a->n0) / KERN_AVX2_ROWS, rest = a->n0 + length * KERN_AVX2_ROWS;
        for (int64_t b = 0; b < length; b++) block_rows(a, &g, a->n0 + b, length, KERN_AVX2_ROWS);
        if (rest < a->n1) block_rows(a, &g, rest, 1, (int)(a->n1 - rest));
    }
}
