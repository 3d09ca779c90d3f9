/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx2_linear.c: the product of row-major weights with panels of tokens (kern_avx2_drive.h) in tiles of 6 rows x 16 lanes.
 *
 * A last panel of up to 8 lanes takes 6 rows x 8 lanes: six chains of FMAs do not fill the ports, but for so few
 * tokens the weights' way from memory takes longer (and twelve streams whose distance is a multiple of 4 KB share one
 * set of the 8-way L1). x goes by at 11 bytes a cycle. */
#include "kern/avx2/kern_avx2_drive.h"
#include "kern/avx2/kern_avx2_tile.h"

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

static void run_tile(int rows, int panels, bool narrow, const tile_job *j)
{
    (void)panels;
    (narrow ? tile8_of : tile16_of)[rows](j);
}

void kern_avx2_linear(const kern_linear_args *a)
{
    if (a->xq)
        kern_avx2_linear_q(a);
    else
        linear_drive(&(linear_tiles){KERN_AVX2_ROWS, 1, run_tile}, a);
}
