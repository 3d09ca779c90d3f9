/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx512_attention.c: attention of AVX2 (kern_avx2_attention.c) with tiles of 16 rows x 16 lanes: sixteen keys of a panel, or sixteen features.
 *
 * Every element is one chain of FMAs in step order: the bits of AVX2. */
#include "kern/avx2/kern_avx2_attention.h"
#include "kern/avx512/kern_avx512.h"
#include "kern/avx512/kern_avx512_tile.h"

#define ATTENTION_TILES(rows)                                                                                       \
    static void scores_rows##rows(const unsigned char *k, const float *q, int64_t head_dim, float *weight)          \
    {                                                                                                               \
        tile512 t;                                                                                                  \
        tile_zero(&t);                                                                                              \
        tile_fma(rows, 1, &t, k, 4, 64, &q, KERN_LANES, head_dim);                                                  \
        tile_store(rows, &t, vec512_set1(1.0f), weight);                                                            \
    }                                                                                                               \
    static void values_rows##rows(const kern_attention_args *a, const cluster *c, int64_t f, const __m256 *inverse, \
                                  float *to)                                                                        \
    {                                                                                                               \
        const float *v = a->v + f * KERN_LANES, *weight = a->scratch;                                               \
        tile512 t;                                                                                                  \
        tile_zero(&t);                                                                                              \
        for (int32_t j = c->key0, n; j < c->key1; j += n, weight += n * KERN_LANES) {                               \
            n = KERN_LANES - j % KERN_LANES;                                                                        \
            if (n > c->key1 - j) n = c->key1 - j;                                                                   \
            tile_fma(rows, 1, &t, key_at(a, v, j), 64, 4, &weight, KERN_LANES, n);                                  \
        }                                                                                                           \
        tile_store(rows, &t, vec512_pair(inverse[0], inverse[1]), to);                                              \
    }
ATTENTION_TILES(1)
ATTENTION_TILES(2)
ATTENTION_TILES(4)
ATTENTION_TILES(8)
ATTENTION_TILES(16)

/* Rows are taken in powers of two. */
static const struct {
    int rows;
    void (*scores)(const unsigned char *k, const float *q, int64_t head_dim, float *weight);
    void (*values)(const kern_attention_args *a, const cluster *c, int64_t f, const __m256 *inverse, float *to);
} powers[] = {{16, scores_rows16, values_rows16},
              {8, scores_rows8, values_rows8},
              {4, scores_rows4, values_rows4},
              {2, scores_rows2, values_rows2},
              {1, scores_rows1, values_rows1}};

static void scores(int rows, const unsigned char *k, const float *q, int64_t head_dim, float *weight)
{
    for (int i = 0; rows > 0; i++) {
        if (rows < powers[i].rows) continue;
        powers[i].scores(k, q, head_dim, weight);
        rows -= powers[i].rows, k += 4 * powers[i].rows, weight += KERN_LANES * powers[i].rows;
    }
}

static void values(int rows, const kern_attention_args *a, const cluster *c, int64_t f, const __m256 *inverse,
                   float *to)
{
    for (int i = 0; rows > 0; i++) {
        if (rows < powers[i].rows) continue;
        powers[i].values(a, c, f, inverse, to);
        rows -= powers[i].rows, f += powers[i].rows, to += KERN_LANES * powers[i].rows;
    }
}

void KERN_AVX512(attention)(const kern_attention_args *a)
{
    kern_avx2_attention_by(a, &(attention_tiles){ATTENTION_MAX_ROWS, ATTENTION_MAX_ROWS, scores, values});
}
