/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx2_delta_row.c: the gated delta rule of one head and one token in two passes over S: S^T k and S^T q together, then
 *
 *     d = beta (v - decay S^T k);  y = decay S^T q + (k . q) d;  S = decay S + k d^T
 *
 * The second pass finds in the caches what the first has read, so S comes from memory once and goes back once. A strip of columns is in no order that
 * the machine foresees: each asks for the next one, the last for the first one behind S, the next head's. */
#include <string.h>

#include "kern/avx2/kern_avx2_delta.h"
#include "kern/avx2/kern_avx2_math.h"

static float dot(int64_t n, const float *x, const float *y)
{
    float part[8] = {0}, sum = 0.0f;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int l = 0; l < 8; l++) part[l] += x[i + l] * y[i + l];
    for (int l = 0; l < 8; l++) sum += part[l];
    for (; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* Columns f and on, of which `used` are of the state: all, or the last ones in a strip of their own. */
static void columns_of(const kern_delta_row_args *a, const delta_passes *passes, int64_t f, int64_t used, float decay,
                       float kq)
{
    _Alignas(64) float by_k[DELTA_MAX_WIDTH], by_q[DELTA_MAX_WIDTH], d[DELTA_MAX_WIDTH] = {0};
    const bool whole = used == passes->width;
    float *s = whole ? a->state + f : a->scratch;
    const int64_t stride = whole ? a->d_v : passes->width;
    for (int64_t i = 0; !whole && i < a->d_k; i++) {
        memset(s + i * stride, 0, (size_t)stride * sizeof(float));
        memcpy(s + i * stride, a->state + i * a->d_v + f, (size_t)used * sizeof(float));
    }
    const float *ahead = a->state + (f + passes->width < a->d_v ? f + passes->width : a->d_k * a->d_v);
    passes->read(a->d_k, s, stride, ahead, a->k, a->q, by_k, by_q);
    for (int64_t c = 0; c < used; c++) {
        d[c] = a->beta * (a->v[f + c] - decay * by_k[c]);
        a->y[f + c] = decay * by_q[c] + kq * d[c];
    }
    passes->write(a->d_k, s, stride, decay, a->k, d);
    for (int64_t i = 0; !whole && i < a->d_k; i++)
        memcpy(a->state + i * a->d_v + f, s + i * stride, (size_t)used * sizeof(float));
}

void kern_avx2_delta_row_by(const kern_delta_row_args *a, const delta_passes *passes)
{
    const float kq = dot(a->d_k, a->k, a->q);
    float decay = a->g;
    kern_avx2_map(KERN_FN_EXP, 1, &decay, &decay);
    for (int64_t f = 0; f < a->d_v; f += passes->width) {
        while (passes->width > KERN_DELTA_COLUMNS && a->d_v - f < passes->width) passes++;
        columns_of(a, passes, f, a->d_v - f < passes->width ? a->d_v - f : passes->width, decay, kq);
    }
}

/* ------------------------------------------------------------------------------ eight lanes, 32 columns */

#define STRIP_EACH(DO) DO(0) DO(1) DO(2) DO(3)

static void read_strip(int64_t d_k, const float *s, int64_t s_stride, const float *ahead, const float *k,
                       const float *q, float *by_k, float *by_q)
{
#define DO(i) __m256 k##i = _mm256_setzero_ps(), q##i = k##i;
    STRIP_EACH(DO)
#undef DO
    for (int64_t row = 0; row < d_k; row++, s += s_stride, ahead += s_stride) {
        _mm_prefetch((const char *)ahead, _MM_HINT_T1), _mm_prefetch((const char *)(ahead + 16), _MM_HINT_T1);
        const __m256 ek = _mm256_broadcast_ss(k + row), eq = _mm256_broadcast_ss(q + row);
#define DO(i)                                          \
    {                                                  \
        const __m256 v = _mm256_loadu_ps(s + 8 * (i)); \
        k##i = _mm256_fmadd_ps(ek, v, k##i);           \
        q##i = _mm256_fmadd_ps(eq, v, q##i);           \
    }
        STRIP_EACH(DO)
#undef DO
    }
#define DO(i) _mm256_store_ps(by_k + 8 * (i), k##i), _mm256_store_ps(by_q + 8 * (i), q##i);
    STRIP_EACH(DO)
#undef DO
}

static void write_strip(int64_t d_k, float *s, int64_t s_stride, float decay, const float *k, const float *d)
{
    const __m256 keep = _mm256_set1_ps(decay);
#define DO(i) const __m256 d##i = _mm256_load_ps(d + 8 * (i));
    STRIP_EACH(DO)
#undef DO
    for (int64_t row = 0; row < d_k; row++, s += s_stride) {
        const __m256 e = _mm256_broadcast_ss(k + row);
#define DO(i) \
    _mm256_storeu_ps(s + 8 * (i), _mm256_fmadd_ps(e, d##i, _mm256_mul_ps(keep, _mm256_loadu_ps(s + 8 * (i)))));
        STRIP_EACH(DO)
#undef DO
    }
}

const delta_passes kern_avx2_delta_strip = {KERN_DELTA_COLUMNS, read_strip, write_strip};

void kern_avx2_delta_row(const kern_delta_row_args *a) { kern_avx2_delta_row_by(a, &kern_avx2_delta_strip); }
