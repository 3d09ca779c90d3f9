/* SPDX-License-Identifier: Apache-2.0
 * kern_ref_gemv.c: products of single rows of activations, and their 8-bit blocks.
 *
 * The integer products of kern.h are a sum of integers times scales. Written with the weights as dtype_to_f32 decodes them it is the sum of w[k] times
 * q[k] times the scale of q's block: the same numbers but for rounding, with no knowledge of any block's layout. */
#include <math.h>
#include <string.h>

#include "kern/kern_xq.h"
#include "kern/ref/kern_ref.h"

/* Activations k0 <= k < k0 + n as f32, of row m. */
static void activations(const kern_gemv_args *a, int32_t m, int64_t k0, int64_t n, float *to)
{
    const kern_xq_kind kind = kern_xq_kind_of(a->type);
    if (!a->xq) {
        memcpy(to, a->x + m * a->x_stride + k0, (size_t)n * sizeof(float));
        return;
    }
    const unsigned char *xq = (const unsigned char *)a->xq + m * a->xq_stride;
    const int8_t *q = (const int8_t *)xq;
    const float *d = (const float *)(const void *)(xq + kern_xq_d(a->k));
    for (int64_t i = 0; i < n; i++) to[i] = (float)q[k0 + i] * d[(k0 + i) / (kind == KERN_XQ_32 ? 32 : 256)];
}

void kern_ref_gemv(const kern_gemv_args *a)
{
    enum { BLOCK = 256 };
    for (int64_t n = a->n0; n < a->n1; n++) {
        const unsigned char *w = (const unsigned char *)a->w + (a->index ? a->index[n] : n) * a->w_stride;
        for (int32_t m = 0; m < a->n_x; m++) {
            double sum = a->bias ? (double)a->bias[n] : 0.0;
            float weights[BLOCK], x[BLOCK];
            for (int64_t k0 = 0; k0 < a->k; k0 += BLOCK) {
                const int64_t kn = a->k - k0 < BLOCK ? a->k - k0 : BLOCK;
                dtype_to_f32(a->type, w + dtype_bytes(a->type, k0), (size_t)kn, weights);
                activations(a, m, k0, kn, x);
                for (int64_t k = 0; k < kn; k++) sum += (double)weights[k] * (double)x[k];
            }
            const float v = (float)sum;
            kern_ref_map(a->fn, 1, &v, &a->y[m * a->y_stride + n]);
        }
    }
}

void kern_ref_add_rows(const kern_add_rows_args *a)
{
    enum { BLOCK = 256 };
    for (int64_t f0 = 0; f0 < a->k; f0 += BLOCK) {
        const int64_t n = a->k - f0 < BLOCK ? a->k - f0 : BLOCK;
        double sum[BLOCK];
        float row[BLOCK];
        for (int64_t f = 0; f < n; f++) sum[f] = (double)a->y[f0 + f];
        for (int64_t i = 0; i < a->n; i++) {
            const int64_t r = a->index ? a->index[i] : i;
            dtype_to_f32(a->type, (const unsigned char *)a->rows + r * a->row_stride + dtype_bytes(a->type, a->f0 + f0),
                         (size_t)n, row);
            for (int64_t f = 0; f < n; f++) sum[f] += (double)a->by[i] * (double)row[f];
        }
        for (int64_t f = 0; f < n; f++) a->y[f0 + f] = (float)sum[f];
    }
}

/* One block of n numbers; its scale. */
static float quantize_block(int n, const float *x, int8_t *q)
{
    float largest = 0.0f;
    bool finite = true;
    for (int i = 0; i < n; i++) {
        const float magnitude = fabsf(x[i]);
        finite = finite && isfinite(x[i]);
        largest = magnitude > largest ? magnitude : largest;
    }
    if (!finite || largest <= KERN_XQ_TINY) {
        memset(q, 0, (size_t)n);
        return finite ? 0.0f : NAN;
    }
    const float inverse = 127.0f / largest;
    for (int i = 0; i < n; i++) q[i] = (int8_t)rintf(x[i] * inverse);
    return largest / 127.0f;
}

static int32_t sum_of(int n, const int8_t *q)
{
    int32_t sum = 0;
    for (int i = 0; i < n; i++) sum += q[i];
    return sum;
}

void kern_ref_quantize_x(dtype type, int64_t k, const float *x, void *xq)
{
    unsigned char *to = xq;
    int8_t *q = xq;
    float *d = (float *)(void *)(to + kern_xq_d(k));
    memset(xq, 0, kern_xq_bytes(type, k));
    if (kern_xq_kind_of(type) == KERN_XQ_32) {
        float *sum = (float *)(void *)(to + kern_xq32_sum(k));
        for (int64_t b = 0; b < k / 32; b++) {
            d[b] = quantize_block(32, x + 32 * b, q + 32 * b);
            sum[b] = (float)sum_of(32, q + 32 * b);
        }
    } else {
        int16_t *sum16 = (int16_t *)(void *)(to + kern_xq256_sum16(k)),
                *sum32 = (int16_t *)(void *)(to + kern_xq256_sum32(k));
        for (int64_t b = 0; b < k / 256; b++) d[b] = quantize_block(256, x + 256 * b, q + 256 * b);
        for (int64_t i = 0; i < k / 16; i++) sum16[i] = (int16_t)sum_of(16, q + 16 * i);
        for (int64_t i = 0; i < k / 32; i++) sum32[i] = (int16_t)sum_of(32, q + 32 * i);
    }
}

void kern_ref_quantize_panel(dtype type, int64_t k, const float *x, void *xq)
{
    const kern_xq_kind kind = kern_xq_kind_of(type);
    const int block = kind == KERN_XQ_32 ? 32 : 256, part = kind == KERN_XQ_32 ? 32 : 16;
    unsigned char *u = xq;
    float *d = (float *)(void *)(u + kern_xq_panel_d(k)), *sum = (float *)(void *)(u + kern_xq_panel_sum(kind, k));
    for (int64_t b = 0; b < k / block; b++) {
        for (int lane = 0; lane < KERN_LANES; lane++) {
            float one[256];
            int8_t q[256];
            for (int i = 0; i < block; i++) one[i] = x[(b * block + i) * KERN_LANES + lane];
            const float scale = d[b * KERN_LANES + lane] = quantize_block(block, one, q);
            for (int64_t i = 0; i < block; i++)
                u[((b * block + i) / 4 * KERN_LANES + lane) * 4 + i % 4] = (unsigned char)(q[i] + 128);
            for (int64_t i = 0; i < block; i += part)
                sum[(b * block + i) / part * KERN_LANES + lane] = scale * (float)sum_of(part, q + i);
        }
    }
}
