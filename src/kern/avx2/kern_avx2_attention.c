/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx2_attention.c: softmax(q k^T * scale) v of one head and one panel of queries (Vaswani et al. 2017, eq. 1).
 *
 * The lanes of a panel may belong to several texts. Neighbouring lanes whose key ranges meet form a *cluster*; each
 * cluster is worked out by itself over the keys that any of its lanes sees, and only its lanes are stored. So texts
 * that share a panel cost no masked work (their keys add up to the keys of the panel) and cannot reach each other,
 * not even with NaN. Masks are needed only within a cluster, for keys that some of its lanes do not see (a causal
 * model): such a score becomes -inf, its weight exactly 0.
 *
 *     scores   weight[j][lane] = sum_f k[f][j] q[f][lane]     rows: keys (stride 1), steps: features (stride 16)
 *     softmax  weight = exp((score - max) * scale)            sum in rising key order, f64
 *     values   out[f][lane] = sum_j v[f][j] weight[j][lane]   rows: features (stride 16), steps: keys (stride 1)
 *                                                             over all keys, times 1 / sum at the end
 *
 * Every element is one chain in rising order, so its bits do not depend on where in the batch the text lies. A
 * cluster that lies in one half of the panel computes eight lanes only. */
#include <math.h>

#include "kern/avx2/kern_avx2_attention.h"
#include "kern/avx2/kern_avx2_tile.h"

/* -1 in the lanes lane0 <= i < lane1 of eight, i counted from `first`. */
VEC_INLINE __m256i lane_mask(int32_t first, int32_t lane0, int32_t lane1)
{
    const __m256i i = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(first));
    return _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(lane0), i),
                               _mm256_cmpgt_epi32(_mm256_set1_epi32(lane1), i));
}

/* Keys and values lie in the caches. */
static const tile_ahead no_ahead;

/* Scores of `rows` keys of one panel. */
#define SCORE_TILE(width, rows)                                                                                    \
    static void score##width##_rows##rows(const unsigned char *k, const float *q, int64_t head_dim, float *weight) \
    {                                                                                                              \
        tile##width t;                                                                                             \
        tile##width##_zero(&t);                                                                                    \
        tile##width##_fma(rows, &t, k, 4, 64, q, head_dim, false, no_ahead);                                       \
        tile##width##_store(rows, &t, weight, KERN_LANES);                                                         \
    }
SCORE_TILE(16, 1)
SCORE_TILE(16, 2)
SCORE_TILE(16, 3)
SCORE_TILE(16, 4)
SCORE_TILE(16, 5)
SCORE_TILE(16, 6)
SCORE_TILE(8, 1)
SCORE_TILE(8, 2)
SCORE_TILE(8, 3)
SCORE_TILE(8, 4)
SCORE_TILE(8, 5)
SCORE_TILE(8, 6)
SCORE_TILE(8, 7)
SCORE_TILE(8, 8)

typedef void (*score_function)(const unsigned char *k, const float *q, int64_t head_dim, float *weight);
enum { SCORE_ROWS16 = 6, SCORE_ROWS8 = 8 };
static const score_function score16_of[] = {NULL,          score16_rows1, score16_rows2, score16_rows3,
                                            score16_rows4, score16_rows5, score16_rows6};
static const score_function score8_of[] = {NULL,         score8_rows1, score8_rows2, score8_rows3, score8_rows4,
                                           score8_rows5, score8_rows6, score8_rows7, score8_rows8};

/* to[r][lanes] = (sum over the keys of v[f + r][j] weight[j][lanes]) * inverse of `rows` features; rows of `to` are
 * 16 floats apart. */
#define VALUE_TILE(width, rows)                                                                                \
    static void value##width##_rows##rows(const kern_attention_args *a, const cluster *c, int64_t f, int half, \
                                          const __m256 *inverse, float *to)                                    \
    {                                                                                                          \
        tile##width t;                                                                                         \
        tile##width##_zero(&t);                                                                                \
        const float *v = a->v + f * KERN_LANES, *weight = a->scratch + half * 8;                               \
        for (int32_t j = c->key0, n; j < c->key1; j += n, weight += n * KERN_LANES) {                          \
            n = KERN_LANES - j % KERN_LANES;                                                                   \
            if (n > c->key1 - j) n = c->key1 - j;                                                              \
            tile##width##_fma(rows, &t, key_at(a, v, j), 64, 4, weight, n, false, no_ahead);                   \
        }                                                                                                      \
        tile##width##_scale(rows, &t, inverse + half);                                                         \
        tile##width##_store(rows, &t, to + half * 8, KERN_LANES);                                              \
    }
VALUE_TILE(16, 1)
VALUE_TILE(16, 2)
VALUE_TILE(16, 3)
VALUE_TILE(16, 4)
VALUE_TILE(16, 5)
VALUE_TILE(16, 6)
VALUE_TILE(8, 1)
VALUE_TILE(8, 2)
VALUE_TILE(8, 3)
VALUE_TILE(8, 4)
VALUE_TILE(8, 5)
VALUE_TILE(8, 6)
VALUE_TILE(8, 7)
VALUE_TILE(8, 8)
VALUE_TILE(8, 9)
VALUE_TILE(8, 10)
VALUE_TILE(8, 11)
VALUE_TILE(8, 12)

typedef void (*value_function)(const kern_attention_args *a, const cluster *c, int64_t f, int half,
                               const __m256 *inverse, float *to);
static const value_function value16_of[KERN_AVX2_ROWS + 1] = {
    NULL, value16_rows1, value16_rows2, value16_rows3, value16_rows4, value16_rows5, value16_rows6};
static const value_function value8_of[KERN_AVX2_NARROW_ROWS + 1] = {
    NULL,         value8_rows1, value8_rows2, value8_rows3,  value8_rows4,  value8_rows5, value8_rows6,
    value8_rows7, value8_rows8, value8_rows9, value8_rows10, value8_rows11, value8_rows12};

/* The halves of the panel that a cluster needs: first <= h < last. */
static int first_half(const cluster *c) { return c->lane0 / 8; }

static int last_half(const cluster *c) { return (c->lane1 + 7) / 8; }

/* Takes n in near-equal pieces of at most `most`: the size of the first. */
static int next_piece(int64_t n, int most)
{
    const int64_t pieces = (n + most - 1) / most;
    return (int)((n + pieces - 1) / pieces);
}

static void cluster_scores(const kern_attention_args *a, const attention_tiles *tiles, const cluster *c)
{
    const bool wide = last_half(c) - first_half(c) == 2;
    const int shift = first_half(c) * 8, most = wide ? tiles->score_rows : SCORE_ROWS8;
    for (int32_t j = c->key0; j < c->key1;) {
        int32_t left = KERN_LANES - j % KERN_LANES;
        if (left > c->key1 - j) left = c->key1 - j;
        for (int rows; left > 0; left -= rows, j += rows) {
            rows = next_piece(left, most);
            const unsigned char *k = key_at(a, a->k, j);
            float *weight = a->scratch + (j - c->key0) * KERN_LANES + shift;
            if (wide)
                tiles->scores(rows, k, a->q, a->head_dim, weight);
            else
                score8_of[rows](k, a->q + shift, a->head_dim, weight);
        }
    }
}

/* Adds what depends on the distance to one half: its lanes are neighbouring distances, which lie side by side. Lanes that do not see a key
 * may be further away than the array goes: those are not read. */
static void add_bias(const kern_attention_args *a, const cluster *c, int half)
{
    const __m256i begin = _mm256_loadu_si256((const __m256i *)(a->begin + half * 8));
    const __m256i end = _mm256_loadu_si256((const __m256i *)(a->end + half * 8));
    const __m256i mine = _mm256_and_si256(lane_mask(half * 8, c->lane0, c->lane1), _mm256_cmpgt_epi32(end, begin));
    const float *bias = a->bias + a->query0 + half * 8;
    float *s = a->scratch + half * 8;
    for (int32_t j = c->key0; j < c->key1; j++, s += KERN_LANES) {
        __m256i seen = mine;
        if (j < c->common0 || j >= c->common1) {
            const __m256i key = _mm256_set1_epi32(j);
            seen = _mm256_and_si256(mine,
                                    _mm256_andnot_si256(_mm256_cmpgt_epi32(begin, key), _mm256_cmpgt_epi32(end, key)));
        }
        _mm256_store_ps(s, _mm256_add_ps(_mm256_load_ps(s), _mm256_maskload_ps(bias - j, seen)));
    }
}

/* Scales and caps the scores of one half. */
static void cap_scores(const kern_attention_args *a, const cluster *c, int half)
{
    const float by = a->scale / a->softcap;
    float *s = a->scratch + half * 8, *end = s + (int64_t)(c->key1 - c->key0) * KERN_LANES;
    for (; s < end; s += KERN_LANES) _mm256_store_ps(s, vec_softcap(_mm256_load_ps(s), by, a->softcap));
}

/* -inf where a lane does not see the key, for the keys key0 <= j < key1. */
static void mask_keys(const kern_attention_args *a, const cluster *c, int half, int32_t key0, int32_t key1)
{
    const __m256i begin = _mm256_loadu_si256((const __m256i *)(a->begin + half * 8));
    const __m256i end = _mm256_loadu_si256((const __m256i *)(a->end + half * 8));
    for (int32_t j = key0; j < key1; j++) {
        float *s = a->scratch + (j - c->key0) * KERN_LANES + half * 8;
        const __m256i key = _mm256_set1_epi32(j);
        const __m256i seen = _mm256_andnot_si256(_mm256_cmpgt_epi32(begin, key), _mm256_cmpgt_epi32(end, key));
        _mm256_store_ps(s, _mm256_blendv_ps(_mm256_set1_ps(-INFINITY), _mm256_load_ps(s), _mm256_castsi256_ps(seen)));
    }
}

/* Scores of one half to weights; 1 / their sum. */
static __m256 softmax_half(const kern_attention_args *a, const cluster *c, int half)
{
    const int64_t n = c->key1 - c->key0;
    float *s = a->scratch + half * 8;
    if (c->common0 < c->common1) {
        mask_keys(a, c, half, c->key0, c->common0);
        mask_keys(a, c, half, c->common1, c->key1);
    } else {
        mask_keys(a, c, half, c->key0, c->key1);
    }
    __m256 largest = _mm256_set1_ps(-INFINITY);
    __m256d sum0 = _mm256_setzero_pd(), sum1 = sum0;
    for (int64_t j = 0; j < n; j++)
        largest = _mm256_max_ps(largest, _mm256_load_ps(s + j * KERN_LANES)); /* a NaN score gives a NaN weight below */
    /* exp((score - largest) scale) = 2^(score c - largest c), c = scale log2 e; what rounding does to largest * c is
     * a factor of all weights. */
    const float scale = a->softcap != 0 ? 1.0f : a->scale;
    const __m256 c2 = _mm256_set1_ps(scale * 1.44269504f), top = _mm256_mul_ps(largest, c2);
    for (int64_t j = 0; j < n; j++) {
        const __m256 w = vec_pow2_weight(_mm256_fmsub_ps(_mm256_load_ps(s + j * KERN_LANES), c2, top));
        _mm256_store_ps(s + j * KERN_LANES, w);
        sum0 = _mm256_add_pd(sum0, _mm256_cvtps_pd(_mm256_castps256_ps128(w)));
        sum1 = _mm256_add_pd(sum1, _mm256_cvtps_pd(_mm256_extractf128_ps(w, 1)));
    }
    const __m256 sum = _mm256_set_m128(_mm256_cvtpd_ps(sum1), _mm256_cvtpd_ps(sum0));
    return _mm256_div_ps(_mm256_set1_ps(1.0f), sum);
}

static void cluster_values(const kern_attention_args *a, const attention_tiles *tiles, const cluster *c,
                           const __m256 *inverse)
{
    _Alignas(64) float part[ATTENTION_MAX_ROWS * KERN_LANES];
    const int half0 = first_half(c), half1 = last_half(c);
    const bool wide = half1 - half0 == 2, whole = c->lane0 == 0 && c->lane1 == a->lanes;
    const int most = wide ? tiles->value_rows : KERN_AVX2_NARROW_ROWS;
    for (int64_t f = 0, rows; f < a->head_dim; f += rows) {
        float *out = a->out + f * KERN_LANES;
        rows = next_piece(a->head_dim - f, most);
        if (wide)
            tiles->values((int)rows, a, c, f, inverse, whole ? out : part);
        else
            value8_of[rows](a, c, f, half0, inverse, whole ? out : part);
        for (int h = half0; h < half1 && !whole; h++) {
            const __m256i mask = lane_mask(h * 8, c->lane0, c->lane1);
            for (int64_t at = h * 8; at < rows * KERN_LANES; at += KERN_LANES)
                _mm256_maskstore_ps(out + at, mask, _mm256_load_ps(part + at));
        }
    }
}

/* The cluster that begins at `lane`, which sees at least one key. Lanes that see none join and change nothing. */
static cluster next_cluster(const kern_attention_args *a, int32_t lane)
{
    cluster c = {lane, lane + 1, a->begin[lane], a->end[lane], a->begin[lane], a->end[lane]};
    for (int32_t i = lane + 1; i < a->lanes; i++) {
        const int32_t begin = a->begin[i], end = a->end[i];
        if (begin < end) {
            if (begin >= c.key1 || end <= c.key0) break;
            if (begin < c.key0) c.key0 = begin;
            if (end > c.key1) c.key1 = end;
            if (begin > c.common0) c.common0 = begin;
            if (end < c.common1) c.common1 = end;
        }
        c.lane1 = i + 1;
    }
    return c;
}

void kern_avx2_attention_by(const kern_attention_args *a, const attention_tiles *tiles)
{
    for (int32_t lane = 0; lane < a->lanes;) {
        if (a->begin[lane] >= a->end[lane]) {
            lane++;
            continue;
        }
        const cluster c = next_cluster(a, lane);
        __m256 inverse[2];
        cluster_scores(a, tiles, &c);
        for (int h = first_half(&c); h < last_half(&c); h++) {
            if (a->bias) add_bias(a, &c, h);
            if (a->softcap != 0) cap_scores(a, &c, h);
            inverse[h] = softmax_half(a, &c, h);
        }
        cluster_values(a, tiles, &c, inverse);
        lane = c.lane1;
    }
    for (int32_t lane = 0; lane < a->lanes; lane++) {
        if (a->begin[lane] < a->end[lane]) continue;
        for (int64_t f = 0; f < a->head_dim; f++) a->out[f * KERN_LANES + lane] = 0.0f;
    }
}

static void scores16(int rows, const unsigned char *k, const float *q, int64_t head_dim, float *weight)
{
    score16_of[rows](k, q, head_dim, weight);
}

static void values16(int rows, const kern_attention_args *a, const cluster *c, int64_t f, const __m256 *inverse,
                     float *to)
{
    value16_of[rows](a, c, f, 0, inverse, to);
}

void kern_avx2_attention(const kern_attention_args *a)
{
    kern_avx2_attention_by(a, &(attention_tiles){SCORE_ROWS16, KERN_AVX2_ROWS, scores16, values16});
}
