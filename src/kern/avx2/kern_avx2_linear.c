/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx2_linear.c: the product of row-major weights with panels of tokens.
 *
 * Loops, outermost first (Goto & van de Geijn 2008, with the weights unpacked and the panels as they are):
 *
 *     group of 16 panels    a chunk of its x stays in L2 while the weights pass by
 *     chunk of k            x: 24-32 KB a panel; sums go on in y, which changes no bit: f32 in memory is what the register held
 *     block of 6 rows       its chunk of weights, 12 KB, comes from L3 or DRAM once and stays in L1 for the group
 *     panel                 one tile
 *
 * A last panel of up to 8 lanes takes 12 rows x 8 lanes. f16 and bf16 rows become f32 in scratch once a block. Bias starts the first chunk,
 * the activation ends the last one.
 */
#include "kern/avx2/kern_avx2.h"
#include "kern/avx2/kern_avx2_tile.h"

typedef enum tile_start { START_ZERO, START_BIAS, START_SUM } tile_start;

/* One tile of one chunk. */
typedef struct tile_job {
    const unsigned char *w;
    int64_t w_stride; /* bytes */
    const float *x;
    float *y;
    const float *bias;
    int64_t k;
    tile_start start;
} tile_job;

#define TILE_FUNCTION(width, rows)                                     \
    static void tile##width##_rows##rows(const tile_job *j)            \
    {                                                                  \
        tile##width t;                                                 \
        if (j->start == START_ZERO)                                    \
            tile##width##_zero(&t);                                    \
        else if (j->start == START_BIAS)                               \
            tile##width##_bias(rows, &t, j->bias);                     \
        else                                                           \
            tile##width##_load(rows, &t, j->y);                        \
        tile##width##_fma(rows, &t, j->w, j->w_stride, 4, j->x, j->k); \
        tile##width##_store(rows, &t, j->y);                           \
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
TILE_FUNCTION(8, 7)
TILE_FUNCTION(8, 8)
TILE_FUNCTION(8, 9)
TILE_FUNCTION(8, 10)
TILE_FUNCTION(8, 11)
TILE_FUNCTION(8, 12)

typedef void (*tile_function)(const tile_job *j);
static const tile_function tile16_of[KERN_AVX2_ROWS + 1] = {NULL,         tile16_rows1, tile16_rows2, tile16_rows3,
                                                            tile16_rows4, tile16_rows5, tile16_rows6};
static const tile_function tile8_of[KERN_AVX2_NARROW_ROWS + 1] = {
    NULL,        tile8_rows1, tile8_rows2, tile8_rows3,  tile8_rows4,  tile8_rows5, tile8_rows6,
    tile8_rows7, tile8_rows8, tile8_rows9, tile8_rows10, tile8_rows11, tile8_rows12};

/* `rows` rows of kn weights of type F16 or BF16 as f32 with stride KERN_AVX2_CHUNK. */
static void rows_to_f32(dtype type, const unsigned char *w, int64_t w_stride, int rows, int64_t kn, float *to)
{
    for (int r = 0; r < rows; r++, w += w_stride, to += KERN_AVX2_CHUNK) {
        int64_t i = 0;
        if (type == DTYPE_F16) {
            for (; i + 8 <= kn; i += 8)
                _mm256_store_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(w + 2 * i))));
        } else {
            for (; i + 8 <= kn; i += 8) {
                const __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(w + 2 * i)));
                _mm256_store_ps(to + i, _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16)));
            }
        }
        dtype_to_f32(type, w + 2 * i, (size_t)(kn - i), to + i);
    }
}

/* The part of a call that stays the same for the blocks of one chunk and one group of panels. */
typedef struct linear_pass {
    const kern_linear_args *a;
    int64_t k0, kn;     /* the chunk */
    int64_t p0, p_full; /* panels with the wide tile: p0 <= p < p_full */
    bool narrow;        /* panel p_full takes the 8-lane tile */
    tile_start start;
    kern_fn fn; /* NONE before the last chunk */
} linear_pass;

static void block_panels(const linear_pass *s, tile_job *j, int64_t n, int rows, const unsigned char *w)
{
    const kern_linear_args *a = s->a;
    for (int r = 0; r < rows; r += KERN_AVX2_ROWS) {
        const int tile_rows = rows - r < KERN_AVX2_ROWS ? rows - r : KERN_AVX2_ROWS;
        const tile_function tile = tile16_of[tile_rows];
        j->w = w + r * j->w_stride;
        j->bias = a->bias ? a->bias + n + r : NULL;
        for (int64_t p = s->p0; p < s->p_full; p++) {
            j->x = a->x + p * a->x_stride + s->k0 * KERN_LANES;
            j->y = a->y + p * a->y_stride + (n + r) * KERN_LANES;
            tile(j);
            if (s->fn != KERN_FN_NONE) kern_avx2_apply_rows(s->fn, tile_rows, 2, j->y);
        }
    }
    if (s->narrow) {
        j->w = w;
        j->bias = a->bias ? a->bias + n : NULL;
        j->x = a->x + s->p_full * a->x_stride + s->k0 * KERN_LANES;
        j->y = a->y + s->p_full * a->y_stride + n * KERN_LANES;
        tile8_of[rows](j);
        if (s->fn != KERN_FN_NONE) kern_avx2_apply_rows(s->fn, rows, 1, j->y);
    }
}

static void pass_rows(const linear_pass *s)
{
    const kern_linear_args *a = s->a;
    const int block = s->narrow ? KERN_AVX2_NARROW_ROWS : KERN_AVX2_ROWS;
    tile_job j = {.k = s->kn, .start = s->start};
    for (int64_t n = a->n0; n < a->n1; n += block) {
        const int rows = (int)(a->n1 - n < block ? a->n1 - n : block);
        const unsigned char *w = (const unsigned char *)a->w + n * a->w_stride + s->k0 * (int64_t)dtype_size(a->type);
        j.w_stride = a->w_stride;
        if (a->type != DTYPE_F32) {
            rows_to_f32(a->type, w, a->w_stride, rows, s->kn, a->scratch);
            w = (const unsigned char *)a->scratch;
            j.w_stride = KERN_AVX2_CHUNK * (int64_t)sizeof(float);
        }
        block_panels(s, &j, n, rows, w);
    }
}

void kern_avx2_linear(const kern_linear_args *a)
{
    /* Equal chunks, a multiple of 16 each. One chunk even for k = 0, which is bias alone. */
    const int64_t chunks = a->k > KERN_AVX2_CHUNK ? (a->k + KERN_AVX2_CHUNK - 1) / KERN_AVX2_CHUNK : 1;
    const int64_t chunk = ((a->k + chunks - 1) / chunks + 15) / 16 * 16;
    for (int64_t p = a->p0; p < a->p1; p += KERN_AVX2_GROUP) {
        const int64_t p_end = a->p1 - p < KERN_AVX2_GROUP ? a->p1 : p + KERN_AVX2_GROUP;
        const bool narrow = p_end == a->p1 && a->last_lanes <= 8;
        int64_t k0 = 0;
        do {
            const int64_t kn = a->k - k0 < chunk ? a->k - k0 : chunk;
            const bool last = k0 + kn >= a->k;
            linear_pass s = {a, k0, kn, p, p_end - narrow, narrow, START_SUM, last ? a->fn : KERN_FN_NONE};
            if (k0 == 0) s.start = a->bias ? START_BIAS : START_ZERO;
            pass_rows(&s);
            k0 += kn;
        } while (k0 < a->k);
    }
}
