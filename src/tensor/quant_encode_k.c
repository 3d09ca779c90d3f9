/* SPDX-License-Identifier: Apache-2.0
 *
 * quant_encode_k.c: encoders of Q4_K and Q6_K (layouts: quant_k.c). A part of a block has a scale (Q4_K: and a minimum) that is itself a small
 * integer times a scale of the block, so the best numbers, part scales and block scales depend on each other. What is minimised is the squared
 * error of the block, by descent (Lloyd 1982, with a linear decoder):
 *
 *   1. each part alone, with a free scale: from a few starting scales, numbers are rounded, then the scale that fits them best is solved for
 *      (least squares), and so on; the best of all is kept;
 *   2. the block's scale is set by the largest part; every part tries the integers next to its own scale and keeps the best;
 *   3. with all integers fixed the block's scales are solved for, and step 2 is done again.
 *
 * Everything is f32 in a fixed order. Sums run in four lanes that are added at the end: compilers make vectors of that.
 */
#include <math.h>

#include "tensor/quant_blocks.h"

/* Spans under LEAST are zero in a block of any scale that binary16 has; no block reaches MOST. Between them nothing here overflows. */
static const float LEAST = 1e-12f, MOST = 1e8f;

static bool in_range(const float *x)
{
    bool good = true;
    for (int i = 0; i < 256; i++) good &= fabsf(x[i]) < MOST;
    return good;
}

/* To the nearest whole number, ties to even, for |v| < 2^22: the sum has no bits left for fractions. */
static inline float nearest(float v) { return (v + 12582912.0f) - 12582912.0f; }

static inline float between(float v, float low, float high)
{
    v = v < low ? low : v;
    return v > high ? high : v;
}

static float sum(const float *x, int n)
{
    float s[4] = {0};
    for (int i = 0; i < n; i += 4) {
        for (int k = 0; k < 4; k++) s[k] += x[i + k];
    }
    return (s[0] + s[1]) + (s[2] + s[3]);
}

static float dot(const float *x, const float *y, int n)
{
    float s[4] = {0};
    for (int i = 0; i < n; i += 4) {
        for (int k = 0; k < 4; k++) s[k] += x[i + k] * y[i + k];
    }
    return (s[0] + s[1]) + (s[2] + s[3]);
}

/* ---------------------------------------------------------------------------------------------------------------- Q4_K */

enum { PARTS4 = 8, LEN4 = 32, MOST4 = 15, MOST_SCALE4 = 63 };

/* y = scale * q - low, scale and low not negative. */
typedef struct line {
    float scale, low, error; /* error: of the squares, without the sum of x^2 */
} line;

/* Numbers 0..15 of x under a line. */
static void round_numbers(const float *x, float inverse, float low, float *q)
{
    for (int i = 0; i < LEN4; i++) q[i] = between(nearest((x[i] + low) * inverse), 0, MOST4);
}

/* The line of least squared error for given numbers; false when they are all the same. */
static bool fit_line(const float *x, float sum_x, const float *q, line *out)
{
    const float n = LEN4, sq = sum(q, LEN4), sqq = dot(q, q, LEN4), sxq = dot(x, q, LEN4);
    const float det = n * sqq - sq * sq;
    if (!(det > 0)) return false;
    float scale = (n * sxq - sq * sum_x) / det, low = (sq * sxq - sqq * sum_x) / det;
    if (low < 0) {
        low = 0;
        scale = sxq / sqq;
    }
    if (!(scale > 0)) return false;
    out->scale = scale;
    out->low = low;
    out->error = scale * (scale * sqq - 2 * sxq - 2 * low * sq) + low * (2 * sum_x + n * low);
    return true;
}

/* Step 1. */
static line search_line(const float *x)
{
    static const float spans[] = {11.5f, 12.5f, 13.5f, 14.5f, 15.5f}; /* how many steps the numbers span at first */
    float low = 0, high = x[0], q[LEN4];
    for (int i = 0; i < LEN4; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    line best = {0, -low, 0};
    if (!(high - low > LEAST)) return best; /* all the same and not positive */
    const float sum_x = sum(x, LEN4);
    best.error = INFINITY;
    for (size_t k = 0; k < sizeof(spans) / sizeof(spans[0]); k++) {
        line at = {(high - low) / spans[k], -low, 0}, now;
        for (int turn = 0; turn < 4; turn++) {
            round_numbers(x, 1 / at.scale, at.low, q);
            if (!fit_line(x, sum_x, q, &now)) break;
            const bool better = turn == 0 || now.error < at.error;
            at = now;
            if (!better) break;
            if (at.error < best.error) best = at;
        }
    }
    return best;
}

/* Squared error of x under integers of a block; q are its numbers. */
static float part_error(const float *x, float scale, float low, float *q)
{
    float s[4] = {0};
    round_numbers(x, scale > 0 ? 1 / scale : 0, low, q);
    for (int i = 0; i < LEN4; i += 4) {
        for (int k = 0; k < 4; k++) {
            const float e = x[i + k] - (scale * q[i + k] - low);
            s[k] += e * e;
        }
    }
    return (s[0] + s[1]) + (s[2] + s[3]);
}

typedef struct block4 {
    float d, dmin;
    int scale[PARTS4], low[PARTS4];
    float q[PARTS4 * LEN4];
    float error;
} block4;

/* Step 2, for the part at x whose own line is known: integers near it. */
static float choose_part(const float *x, const line *own, const block4 *b, int *scale, int *low, float *q)
{
    float best = INFINITY, tried[LEN4];
    const int s0 = b->d > 0 ? (int)between(nearest(own->scale / b->d), 0, MOST_SCALE4) : 0;
    const int l0 = b->dmin > 0 ? (int)between(nearest(own->low / b->dmin), 0, MOST_SCALE4) : 0;
    for (int s = s0 - 1; s <= s0 + 1; s++) {
        for (int l = l0 - 1; l <= l0 + 1; l++) {
            if (s < 0 || s > MOST_SCALE4 || l < 0 || l > MOST_SCALE4) continue;
            const float e = part_error(x, b->d * (float)s, b->dmin * (float)l, tried);
            if (!(e < best)) continue;
            best = e;
            *scale = s;
            *low = l;
            memcpy(q, tried, sizeof(tried));
        }
    }
    return best;
}

static void choose_parts(const float *x, const line *own, block4 *b)
{
    b->error = 0;
    for (int j = 0; j < PARTS4; j++)
        b->error += choose_part(x + j * LEN4, &own[j], b, &b->scale[j], &b->low[j], b->q + j * LEN4);
}

/* Step 3: d and dmin of least error for x = d * (scale q) - dmin * low; as they are where that has no solution. */
static void fit_block4(const float *x, block4 *b)
{
    float aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;
    for (int j = 0; j < PARTS4; j++) {
        const float *xj = x + j * LEN4, *qj = b->q + j * LEN4, s = (float)b->scale[j], l = (float)b->low[j];
        aa += s * s * dot(qj, qj, LEN4);
        ab += s * l * sum(qj, LEN4);
        bb += l * l * LEN4;
        ax += s * dot(xj, qj, LEN4);
        bx += l * sum(xj, LEN4);
    }
    const float det = aa * bb - ab * ab;
    float d = aa > 0 ? ax / aa : 0, dmin = 0;
    if (det > 1e-6f * aa * bb) {
        d = (ax * bb - bx * ab) / det;
        dmin = (ax * ab - bx * aa) / det;
    }
    if (!(d > 0) || dmin < 0) return;
    b->d = half_to_f32(half_from_f32(d));
    if (bb > 0) b->dmin = half_to_f32(half_from_f32(dmin));
}

bool quant_put_q4_k(const float *x, uint8_t *out)
{
    line own[PARTS4];
    block4 best, b = {0};
    float most_scale = 0, most_low = 0;
    if (!in_range(x)) return false;
    for (int j = 0; j < PARTS4; j++) {
        own[j] = search_line(x + j * LEN4);
        most_scale = own[j].scale > most_scale ? own[j].scale : most_scale;
        most_low = own[j].low > most_low ? own[j].low : most_low;
    }
    if (!quant_put_half(out, most_scale / MOST_SCALE4) || !quant_put_half(out + 2, most_low / MOST_SCALE4))
        return false;
    b.d = quant_half(out);
    b.dmin = quant_half(out + 2);
    choose_parts(x, own, &b);
    best = b;
    for (int turn = 0; turn < 2; turn++) {
        fit_block4(x, &b);
        choose_parts(x, own, &b);
        if (!(b.error < best.error)) break;
        best = b;
    }
    quant_put_half(out, best.d);
    quant_put_half(out + 2, best.dmin);
    uint8_t *packed = out + 4;
    for (int j = 0; j < 4; j++) { /* six bits each; the upper two of the last four parts lie above the first four */
        packed[j] = (uint8_t)(best.scale[j] | (best.scale[j + 4] >> 4) << 6);
        packed[j + 4] = (uint8_t)(best.low[j] | (best.low[j + 4] >> 4) << 6);
        packed[j + 8] = (uint8_t)((best.scale[j + 4] & 15) | (best.low[j + 4] & 15) << 4);
    }
    for (int j = 0; j < PARTS4; j += 2) {
        for (int i = 0; i < LEN4; i++)
            out[16 + j / 2 * LEN4 + i] = (uint8_t)((int)best.q[j * LEN4 + i] | (int)best.q[(j + 1) * LEN4 + i] << 4);
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------------------------- Q6_K */

enum { PARTS6 = 16, LEN6 = 16 };

static void round_signed(const float *x, float inverse, float *q)
{
    for (int i = 0; i < LEN6; i++) q[i] = between(nearest(x[i] * inverse), -32, 31);
}

/* Step 1: the scale of least error, of either sign. */
static float search_scale(const float *x)
{
    static const float spans[] = {-33.5f, -32.5f, -31.5f,
                                  -30.5f, 31.4f,  30.5f}; /* the number that the extreme becomes at first */
    float extreme = 0, q[LEN6], best = 0, best_gain = 0;
    for (int i = 0; i < LEN6; i++) extreme = fabsf(x[i]) > fabsf(extreme) ? x[i] : extreme;
    if (!(fabsf(extreme) > LEAST)) return 0;
    for (size_t k = 0; k < sizeof(spans) / sizeof(spans[0]); k++) {
        float scale = extreme / spans[k];
        for (int turn = 0; turn < 2; turn++) {
            round_signed(x, 1 / scale, q);
            const float sqq = dot(q, q, LEN6), sxq = dot(x, q, LEN6);
            if (!(sqq > 0)) break;
            scale = sxq / sqq;
            if (!(sxq * scale > best_gain)) break; /* how much of the sum of x^2 is explained */
            best_gain = sxq * scale;
            best = scale;
        }
    }
    return best;
}

typedef struct block6 {
    float d, error;
    int scale[PARTS6];
    float q[PARTS6 * LEN6];
} block6;

static float scale_error(const float *x, float scale, float *q)
{
    float s[4] = {0};
    round_signed(x, scale != 0 ? 1 / scale : 0, q);
    for (int i = 0; i < LEN6; i += 4) {
        for (int k = 0; k < 4; k++) {
            const float e = x[i + k] - scale * q[i + k];
            s[k] += e * e;
        }
    }
    return (s[0] + s[1]) + (s[2] + s[3]);
}

static void choose_scales(const float *x, const float *own, block6 *b)
{
    float tried[LEN6];
    b->error = 0;
    for (int j = 0; j < PARTS6; j++) {
        float best = INFINITY;
        const int s0 = b->d != 0 ? (int)between(nearest(own[j] / b->d), -128, 127) : 0;
        for (int s = s0 - 1; s <= s0 + 1; s++) {
            if (s < -128 || s > 127) continue;
            const float e = scale_error(x + j * LEN6, b->d * (float)s, tried);
            if (!(e < best)) continue;
            best = e;
            b->scale[j] = s;
            memcpy(b->q + j * LEN6, tried, sizeof(tried));
        }
        b->error += best;
    }
}

static void fit_block6(const float *x, block6 *b)
{
    float aa = 0, ax = 0;
    for (int j = 0; j < PARTS6; j++) {
        const float *xj = x + j * LEN6, *qj = b->q + j * LEN6, s = (float)b->scale[j];
        aa += s * s * dot(qj, qj, LEN6);
        ax += s * dot(xj, qj, LEN6);
    }
    if (aa > 0) b->d = half_to_f32(half_from_f32(ax / aa));
}

bool quant_put_q6_k(const float *x, uint8_t *out)
{
    float own[PARTS6], extreme = 0;
    block6 best, b = {0};
    if (!in_range(x)) return false;
    for (int j = 0; j < PARTS6; j++) {
        own[j] = search_scale(x + j * LEN6);
        extreme = fabsf(own[j]) > fabsf(extreme) ? own[j] : extreme;
    }
    if (!quant_put_half(out + 208, extreme / -128)) return false;
    b.d = quant_half(out + 208);
    choose_scales(x, own, &b);
    best = b;
    for (int turn = 0; turn < 2; turn++) {
        fit_block6(x, &b);
        choose_scales(x, own, &b);
        if (!(b.error < best.error)) break;
        best = b;
    }
    quant_put_half(out + 208, best.d);
    memset(out, 0, 192);
    for (int j = 0; j < PARTS6; j++) out[192 + j] = (uint8_t)(int8_t)best.scale[j];
    for (int i = 0; i < PARTS6 * LEN6; i++) {
        const int half = i / 128, at = i % 128, q = (int)best.q[i] + 32;
        out[half * 64 + at % 64] |= (uint8_t)((q & 15) << (at / 64 * 4));
        out[128 + half * 32 + at % 32] |= (uint8_t)((q >> 4) << (at / 32 * 2));
    }
    return true;
}
