/* SPDX-License-Identifier: Apache-2.0
 * kern_avx2_rows.c: the ways into and out of panels (gather, pool), and first_nonfinite.
 *
 * A panel is the transpose of 16 rows: 8 x 8 blocks are turned in registers, after the rows became f32. */
#include <string.h>

#include "kern/avx2/kern_avx2.h"
#include "kern/avx2/kern_avx2_decode.h"
#include "kern/avx2/kern_avx2_math.h"
#include "kern/ref/kern_ref.h"

static const unsigned char *source_row(const kern_gather_source *s, int32_t lane, int64_t d)
{
    return (const unsigned char *)s->table + (size_t)s->index[lane] * dtype_bytes(s->type, d);
}

enum { GATHER_CHUNK = 256 }; /* features of a row that are f32 at a time; whole blocks */

/* Features f0 <= f < f0 + n of a lane's sum over the sources; row, one: [GATHER_CHUNK]. */
static void gather_row(const kern_gather_args *a, int32_t lane, int64_t f0, int64_t n, float *row, float *one)
{
    if (lane >= a->n_lanes) memset(row, 0, (size_t)n * sizeof(float));
    for (int32_t s = 0; s < a->n_sources && lane < a->n_lanes; s++) {
        const kern_gather_source *src = &a->sources[s];
        kern_avx2_to_f32(src->type, source_row(src, lane, a->d) + dtype_bytes(src->type, f0), n, s ? one : row);
        for (int64_t i = 0; s && i < n; i += 8)
            _mm256_store_ps(row + i, _mm256_add_ps(_mm256_load_ps(row + i), _mm256_load_ps(one + i)));
    }
}

void kern_avx2_gather(const kern_gather_args *a)
{
    _Alignas(32) float rows[8][GATHER_CHUNK], one[GATHER_CHUNK];
    const __m256 scale = _mm256_set1_ps(a->scale);              /* a product with 1 changes no bit */
    memset(rows, 0, sizeof(rows)), memset(one, 0, sizeof(one)); /* a last eight of features is read as a whole */
    for (int32_t lane0 = 0; lane0 < KERN_LANES; lane0 += 8) {
        for (int64_t f0 = 0; f0 < a->d; f0 += GATHER_CHUNK) {
            const int64_t n = a->d - f0 < GATHER_CHUNK ? a->d - f0 : GATHER_CHUNK;
            for (int32_t i = 0; i < 8; i++) gather_row(a, lane0 + i, f0, n, rows[i], one);
            for (int64_t f = 0; f < n; f += 8) {
                __m256 r[8];
                for (int i = 0; i < 8; i++) r[i] = _mm256_load_ps(rows[i] + f);
                vec_transpose8(r);
                for (int i = 0; i < 8 && f + i < n; i++)
                    _mm256_store_ps(a->y + (f0 + f + i) * KERN_LANES + lane0, _mm256_mul_ps(r[i], scale));
            }
        }
    }
}

/* How the tokens of a pool call go into the accumulator: acc + v, max(v, acc) or acc + weight * v. */
typedef enum pool_step { POOL_ADD, POOL_MAX, POOL_WEIGH } pool_step;

static pool_step pool_step_of(kern_pool_mode mode)
{
    if (mode == KERN_POOL_MAX) return POOL_MAX;
    return mode == KERN_POOL_WEIGHTED_MEAN ? POOL_WEIGH : POOL_ADD;
}

/* acc and the tokens t0 <= t < t1 of one half panel, in order; x: [8 features][16], its lanes those of the half;
 * weight of token t0. */
VEC_INLINE __m256 pool_half(const pool_step step, __m256 acc, const float *x, int t0, int t1, float weight)
{
    __m256 r[8];
    for (int i = 0; i < 8; i++) r[i] = _mm256_load_ps(x + i * KERN_LANES);
    vec_transpose8(r); /* now [8 tokens][8 features] */
    for (int t = t0; t < t1; t++, weight += 1.0f) {
        if (step == POOL_MAX)
            acc = _mm256_max_ps(r[t], acc);
        else
            acc = step == POOL_ADD ? _mm256_add_ps(acc, r[t]) : _mm256_fmadd_ps(_mm256_set1_ps(weight), r[t], acc);
    }
    return acc;
}

/* What the sum over the tokens is divided by; the largest is not divided. */
static float pool_divisor(const kern_pool_args *a)
{
    const int64_t n = a->t1 - a->t0;
    if (a->mode == KERN_POOL_MEAN_SQRT) return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss((float)n)));
    return (float)(a->mode == KERN_POOL_WEIGHTED_MEAN ? n * a->first_weight + n * (n - 1) / 2 : n);
}

/* Features 0..7 of x, the feature's row in panel 0, over all tokens. */
VEC_INLINE __m256 pool_tokens(const pool_step step, const kern_pool_args *a, const float *x)
{
    __m256 acc = step == POOL_MAX ? _mm256_set1_ps(-__builtin_inff()) : _mm256_setzero_ps();
    for (int64_t t = a->t0; t < a->t1;) {
        const int first = (int)(t % 8), last = a->t1 - t < 8 - first ? first + (int)(a->t1 - t) : 8;
        const float *half = x + t / KERN_LANES * a->x_stride + (t % KERN_LANES - first);
        const float weight = (float)(a->first_weight + t - a->t0);
        if (last - first == 8) /* as constants they unroll */
            acc = pool_half(step, acc, half, 0, 8, weight);
        else
            acc = pool_half(step, acc, half, first, last, weight);
        t += last - first;
    }
    return step == POOL_MAX ? acc : _mm256_div_ps(acc, _mm256_set1_ps(pool_divisor(a)));
}

static void pool_blocks(const kern_pool_args *a, int64_t blocks)
{
    for (int64_t f = 0; f < blocks; f += 8) {
        _Alignas(32) float out[8];
        const float *x = a->x + f * KERN_LANES;
        switch (pool_step_of(a->mode)) {
        case POOL_ADD: _mm256_store_ps(out, pool_tokens(POOL_ADD, a, x)); break;
        case POOL_MAX: _mm256_store_ps(out, pool_tokens(POOL_MAX, a, x)); break;
        case POOL_WEIGH: _mm256_store_ps(out, pool_tokens(POOL_WEIGH, a, x)); break;
        }
        for (int i = 0; i < 8; i++) a->y[(f + i) * KERN_LANES] = out[i];
    }
}

/* The features f0 <= f < d, one by one, with the same additions. */
static void pool_rest(const kern_pool_args *a, int64_t f0)
{
    const pool_step step = pool_step_of(a->mode);
    for (int64_t f = f0; f < a->d; f++) {
        const float *x = a->x + f * KERN_LANES;
        float v = step == POOL_MAX ? -__builtin_inff() : 0.0f;
        for (int64_t t = a->t0; t < a->t1; t++) {
            const float one = x[t / KERN_LANES * a->x_stride + t % KERN_LANES];
            if (step == POOL_MAX)
                v = one > v ? one : v;
            else
                v = step == POOL_ADD ? v + one : __builtin_fmaf((float)(a->first_weight + t - a->t0), one, v);
        }
        a->y[f * KERN_LANES] = step == POOL_MAX ? v : v / pool_divisor(a);
    }
}

void kern_avx2_pool(const kern_pool_args *a)
{
    if (a->mode == KERN_POOL_FIRST || a->mode == KERN_POOL_LAST) {
        const int64_t t = a->mode == KERN_POOL_FIRST ? a->t0 : a->t1 - 1;
        const float *x = a->x + t / KERN_LANES * a->x_stride + t % KERN_LANES;
        for (int64_t f = 0; f < a->d; f++) a->y[f * KERN_LANES] = x[f * KERN_LANES];
        return;
    }
    pool_blocks(a, a->d / 8 * 8);
    pool_rest(a, a->d / 8 * 8);
}

/* Number of leading bytes (a multiple of 128) whose elements of `size` bytes are all finite: no element has all bits of
 * `pattern`, which is repeated over the vector. */
VEC_INLINE size_t finite_bytes(const int size, const unsigned char *p, size_t n, __m256i pattern)
{
    size_t i = 0;
    for (; i + 128 <= n; i += 128) {
        __m256i bad = _mm256_setzero_si256();
        for (size_t o = 0; o < 128; o += 32) {
            const __m256i e = _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(p + i + o)), pattern);
            bad = _mm256_or_si256(bad, size == 4   ? _mm256_cmpeq_epi32(e, pattern)
                                       : size == 2 ? _mm256_cmpeq_epi16(e, pattern)
                                                   : _mm256_cmpeq_epi8(e, pattern));
        }
        if (_mm256_movemask_epi8(bad)) break;
    }
    return i;
}

/* The exponent's bits; of E4M3 all but the sign. */
static size_t leading_finite(dtype type, const unsigned char *p, size_t bytes)
{
    switch (type) {
    case DTYPE_F32: return finite_bytes(4, p, bytes, _mm256_set1_epi32(0x7f800000));
    case DTYPE_F16: return finite_bytes(2, p, bytes, _mm256_set1_epi16(0x7c00));
    case DTYPE_BF16: return finite_bytes(2, p, bytes, _mm256_set1_epi16(0x7f80));
    case DTYPE_F8_E4M3: return finite_bytes(1, p, bytes, _mm256_set1_epi8(0x7f));
    case DTYPE_F8_E5M2: return finite_bytes(1, p, bytes, _mm256_set1_epi8(0x7c));
    default: return 0;
    }
}

/* Where a block has its binary16 scales (tensor/quant_*.c); of the two types with others, none. */
static int half_scales(dtype type, int at[2])
{
    switch (type) {
    case DTYPE_Q8_K:
    case DTYPE_MXFP4: return 0;
    case DTYPE_Q4_1:
    case DTYPE_Q5_1:
    case DTYPE_Q4_K:
    case DTYPE_Q5_K: at[0] = 0, at[1] = 2; return 2;
    case DTYPE_Q2_K: at[0] = 80, at[1] = 82; return 2;
    case DTYPE_Q3_K: at[0] = at[1] = 108; return 1;
    case DTYPE_Q6_K: at[0] = at[1] = 208; return 1;
    default: at[0] = at[1] = 0; return 1;
    }
}

/* Number of leading blocks (a multiple of 32) whose binary16 scales are all finite: no exponent has all bits set. */
static int64_t finite_blocks(dtype type, const unsigned char *p, int64_t n)
{
    int at[2];
    const int64_t bytes = (int64_t)dtype_block_bytes(type);
    int64_t i = 0;
    for (const int scales = half_scales(type, at); scales && i + 32 <= n; i += 32) {
        uint32_t bad = 0;
        for (int64_t b = i * bytes; b < (i + 32) * bytes; b += bytes) {
            uint16_t d[2];
            memcpy(&d[0], p + b + at[0], 2), memcpy(&d[1], p + b + at[1], 2);
            bad |= ((d[0] & 0x7c00u) + 0x400) | ((d[1] & 0x7c00u) + 0x400);
        }
        if (bad & 0x8000) break;
    }
    return i;
}

int64_t kern_avx2_first_nonfinite(dtype type, const void *x, int64_t n)
{
    const unsigned char *p = x;
    if (dtype_is_block(type)) {
        const int64_t numbers = (int64_t)dtype_block_numbers(type),
                      first = finite_blocks(type, p, n / numbers) * numbers;
        const int64_t bad = kern_ref_first_nonfinite(type, p + dtype_bytes(type, first), n - first);
        return bad < 0 ? -1 : first + bad;
    }
    const int64_t size = (int64_t)dtype_block_bytes(type);
    for (int64_t i = (int64_t)leading_finite(type, p, (size_t)(n * size)) / size; i < n; i++) {
        float v;
        dtype_to_f32(type, p + i * size, 1, &v);
        if (!(v - v == 0.0f)) return i;
    }
    return -1;
}

void kern_avx2_to_half(size_t n, const float *x, uint16_t *y)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(y + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    kern_ref_to_half(n - i, x + i, y + i);
}

void kern_avx2_from_half(size_t n, const uint16_t *x, float *y)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(x + i))));
    kern_ref_from_half(n - i, x + i, y + i);
}
