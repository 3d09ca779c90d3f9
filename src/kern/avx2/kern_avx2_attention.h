/* SPDX-License-Identifier: Apache-2.0
 * kern_avx2_attention.h: attention in tiles of registers, which kern_avx512_attention.c and kern_avx512_attention_row.c have larger ones of. */
#ifndef LATH_KERN_AVX2_ATTENTION_H
#define LATH_KERN_AVX2_ATTENTION_H

#include "kern/avx2/kern_avx2.h"
#include "kern/avx2/kern_avx2_math.h"

typedef struct cluster {
    int32_t lane0, lane1;     /* its lanes */
    int32_t key0, key1;       /* keys that any of them sees */
    int32_t common0, common1; /* keys that all of them see; none where common0 >= common1 */
} cluster;

/* Key j's element of row 0 in the panels at `base`. */
VEC_INLINE const unsigned char *key_at(const kern_attention_args *a, const float *base, int32_t j)
{
    const int32_t p = a->ring ? j / KERN_LANES % a->ring : j / KERN_LANES;
    return (const unsigned char *)(base + (int64_t)p * a->kv_stride + j % KERN_LANES);
}

enum { ATTENTION_MAX_ROWS = 16 };

/* The products of a cluster that lies in both halves of its panel, of at most so many rows. */
typedef struct attention_tiles {
    int score_rows, value_rows;
    /* weight[r][16] = sum_f k[f][r] q[f][16] of `rows` keys of one panel */
    void (*scores)(int rows, const unsigned char *k, const float *q, int64_t head_dim, float *weight);
    /* to[r][16] = (sum over the keys of v[f + r][j] weight[j][16]) * inverse of `rows` features */
    void (*values)(int rows, const kern_attention_args *a, const cluster *c, int64_t f, const __m256 *inverse,
                   float *to);
} attention_tiles;

void kern_avx2_attention_by(const kern_attention_args *a, const attention_tiles *tiles);

/* ------------------------------------------------------------------------------ one token */

enum { ROW_HEADS = KERN_ATTENTION_ROW_HEADS };

/* What the parts of one call share. */
typedef struct row_job {
    const kern_attention_row_args *a;
    int64_t panel0, n_panels; /* of the keys */
    float *weight[ROW_HEADS]; /* [n_panels * 16] */
    float *part[ROW_HEADS];   /* [head_dim][8] */
} row_job;

/* Panel `p`, counted from panel0, of the keys or values at `base`. */
VEC_INLINE const unsigned char *row_panel(const row_job *j, const bool half, const void *base, int64_t p)
{
    const int64_t at = j->panel0 + p;
    return (const unsigned char *)base + (j->a->ring ? at % j->a->ring : at) * j->a->kv_stride * (half ? 2 : 4);
}

/* Products of panels p, p + 1 ... p + score_panels - 1 or value_panels - 1, the latter seen whole and head_dim even; by [half][n_q]. */
typedef void (*row_function)(const row_job *j, int64_t p);
typedef struct row_tiles {
    int score_panels, value_panels;
    row_function scores[2][ROW_HEADS + 1], values[2][ROW_HEADS + 1];
} row_tiles;

/* wider: tiles for as many panels as they fit, or NULL. */
void kern_avx2_attention_row_by(const kern_attention_row_args *a, const row_tiles *wider);

#endif
