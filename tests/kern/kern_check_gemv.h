/* SPDX-License-Identifier: Apache-2.0
 * kern_check_gemv.h: quantize_x and gemv, part of test_kern.c: every weight type, floats and integers. */
#ifndef LATH_TESTS_KERN_CHECK_GEMV_H
#define LATH_TESTS_KERN_CHECK_GEMV_H

#include "kern_check.h"

/* ------------------------------------------------------------------------------ quantize_x */

/* Where the parts of a quantised row are (kern_xq.h), counted here from its description. */
typedef struct xq_view {
    const int8_t *q;
    const float *d;
    const float *sum;             /* blocks of 32 */
    const int16_t *sum16, *sum32; /* blocks of 256 */
    int64_t numbers;              /* of a block */
} xq_view;

static xq_view xq_of(dtype type, int64_t k, const unsigned char *xq)
{
    const size_t d = ((size_t)k + 63) / 64 * 64;
    xq_view v = {.q = (const int8_t *)xq, .d = (const float *)(const void *)(xq + d)};
    v.numbers = (int64_t)dtype_block_numbers(type);
    const size_t behind = d + ((size_t)(k / v.numbers) * 4 + 63) / 64 * 64;
    v.sum = (const float *)(const void *)(xq + behind);
    v.sum16 = (const int16_t *)(const void *)(xq + behind);
    v.sum32 = (const int16_t *)(const void *)(xq + behind + ((size_t)k / 16 * 2 + 63) / 64 * 64);
    return v;
}

static int sum_of(const int8_t *q, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) sum += q[i];
    return sum;
}

/* Activations whose blocks are: of any size from tiny to huge, all zero, or hold a NaN or an infinity. */
static void fill_odd_activations(check *c, int64_t k, int64_t numbers, float *x)
{
    for (int64_t b = 0; b < k / numbers; b++) {
        const int64_t what = rng_int(&c->rng, 0, 9), at = b * numbers + rng_int(&c->rng, 0, numbers - 1);
        const float size =
            what == 0 ? 0.0f : ldexpf(1.0f, (int)rng_int(&c->rng, what == 1 ? -149 : -30, what == 1 ? 127 : 10));
        for (int64_t i = 0; i < numbers; i++) x[b * numbers + i] = rng_float(&c->rng, size);
        if (what == 2) x[at] = NAN;
        if (what == 3) x[at] = rng_int(&c->rng, 0, 1) ? INFINITY : -INFINITY;
        if (what == 4) x[at] = size; /* the block's largest, exactly 127 */
    }
}

static void quantize_x_case(check *c, dtype type, int64_t blocks)
{
    const int64_t numbers = (int64_t)dtype_block_numbers(type), k = blocks * numbers;
    const size_t bytes = kern_xq_bytes(type, k);
    WHERE(c, "quantize_x %s %s k=%d", c->t->isa, dtype_name(type), (int)k);
    float *x = oracle_floats(k);
    unsigned char *xq[2];
    fill_odd_activations(c, k, numbers, x);
    for (int v = 0; v < 2; v++) {
        xq[v] = aligned_alloc(64, bytes + 64);
        assert_non_null(xq[v]);
        memset(xq[v], v ? 0x55 : 0xaa, bytes + 64);
        (v ? c->ref : c->t)->quantize_x(type, k, x, xq[v]);
        for (int i = 0; i < 64; i++) assert_int_equal(xq[v][bytes + (size_t)i], v ? 0x55 : 0xaa);
    }
    assert_memory_equal(xq[0], xq[1], bytes);
    const xq_view v = xq_of(type, k, xq[0]);
    for (int64_t b = 0; b < blocks; b++) {
        float largest = 0;
        for (int64_t i = 0; i < numbers; i++) /* NaN wins */
            largest =
                isnan(x[b * numbers + i]) || fabsf(x[b * numbers + i]) > largest ? fabsf(x[b * numbers + i]) : largest;
        for (int64_t i = 0; i < numbers && !isnan(largest); i++)
            if (isnan(x[b * numbers + i])) largest = NAN;
        if (!isfinite(largest)) {
            assert_true(isnan(v.d[b]));
        } else {
            const bool tiny = largest <= 0x1p-120f;
            check_value(c, v.d[b], tiny ? 0.0 : (double)(largest / 127.0f), v.d[b], 1.0);
            for (int64_t i = b * numbers; i < (b + 1) * numbers; i++) {
                const double error = fabs((double)x[i] - (double)v.q[i] * (double)v.d[b]);
                if (tiny ? v.q[i] != 0 : !(error <= (double)v.d[b] * 0.50002) || v.q[i] < -127)
                    fail_msg("%s: %.9g became %d times %.9g", c->where, (double)x[i], v.q[i], (double)v.d[b]);
            }
        }
        for (int64_t i = b * numbers; i < (b + 1) * numbers; i += 32) {
            if (numbers == 32) assert_true(v.sum[i / 32] == (float)sum_of(v.q + i, 32));
            if (numbers == 32) continue;
            assert_int_equal(v.sum32[i / 32], sum_of(v.q + i, 32));
            assert_int_equal(v.sum16[i / 16], sum_of(v.q + i, 16));
            assert_int_equal(v.sum16[i / 16 + 1], sum_of(v.q + i + 16, 16));
        }
    }
    free(x), free(xq[0]), free(xq[1]);
    c->cases++;
}

static void check_quantize_x(check *c)
{
    for (int type = 0; type < DTYPE_COUNT; type++) {
        assert_true((kern_xq_bytes((dtype)type, 256) > 0) == dtype_is_block((dtype)type));
        for (int64_t blocks = 1; dtype_is_block((dtype)type) && blocks <= 21; blocks++)
            quantize_x_case(c, (dtype)type, blocks);
    }
}

/* ------------------------------------------------------------------------------ gemv */

/* A product of n_x rows, some of them with a NaN or an infinity. */
typedef struct gemv_case {
    dtype type;
    int64_t k, rows;
    int32_t n_x;
    bool integers;
} gemv_case;

/* What y[m][n] should be, without fn: scale, what rounding is relative to; bound, what 8-bit activations may change. */
typedef struct gemv_want {
    double sum, exact, scale, bound, bias; /* exact: with the activations before they were quantised */
} gemv_want;

static gemv_want gemv_sum(const gemv_case *g, const double *w, const float *x, const unsigned char *xq)
{
    gemv_want want = {0};
    const int64_t numbers = (int64_t)dtype_block_numbers(g->type);
    for (int64_t k0 = 0; k0 < g->k; k0 += numbers) {
        double range = 0.0;
        const xq_view v = g->integers ? xq_of(g->type, g->k, xq) : (xq_view){0};
        for (int64_t k = k0; k < k0 + numbers; k++) range = fmax(range, fabs(w[k]));
        for (int64_t k = k0; k < k0 + numbers; k++) {
            const double d = g->integers ? (double)v.d[k0 / numbers] : 0.0;
            const double activation = g->integers ? (double)v.q[k] * d : (double)x[k];
            want.sum += w[k] * activation;
            want.exact += w[k] * (double)x[k];
            want.scale += (g->integers ? range : fabs(w[k])) * fabs(activation);
            want.bound += fabs(w[k]) * d * 0.5001;
        }
    }
    return want;
}

/* odd: the row holds a NaN or an infinity. Integers: then NaN, whatever it was; floats: as the arithmetic has it. */
static void gemv_compare(check *c, const gemv_case *g, kern_fn fn, bool odd, const gemv_want *w, float got, float ref)
{
    const double result = oracle_fn(fn, w->sum + w->bias);
    const double scale = fmax(w->scale + fabs(w->bias), fn != KERN_FN_NONE ? 0.1 * fabs(result) : 0.0);
    if (odd) {
        if (g->integers ? !isnan(got) : fn == KERN_FN_NONE && isfinite(got))
            fail_msg("%s: %g of NaN or infinity", c->where, (double)got);
        return;
    }
    check_value(c, got, result, ref, (scale + 1e-7) * fmax(1.0, fn == KERN_FN_EXP ? result : 1.0));
    if (!g->integers || fn != KERN_FN_NONE) return;
    if (fabs((double)got - w->exact - w->bias) > w->bound + 1e-5 * scale)
        fail_msg("%s: %g, exact %g, bound %g", c->where, (double)got, w->exact + w->bias, w->bound);
}

static void gemv_run(check *c, gemv_case g)
{
    oracle_rng *r = &c->rng;
    const kern_fn fn = (kern_fn)rng_int(r, 0, KERN_FN_COUNT - 1);
    const int64_t total = g.rows + rng_int(r, 0, 3), n0 = rng_int(r, 0, total - g.rows), n1 = n0 + g.rows;
    const int64_t row_elements = g.k + rng_int(r, 0, 3) * (int64_t)dtype_block_numbers(g.type);
    const int64_t x_stride = (g.k + 15) / 16 * 16 + 16 * rng_int(r, 0, 2), y_stride = total + rng_int(r, 0, 2);
    const int64_t xq_stride = (int64_t)kern_xq_bytes(g.type, g.k) + 64 * rng_int(r, 0, 2);
    const size_t row_bytes = dtype_bytes(g.type, row_elements);
    const bool has_bias = rng_int(r, 0, 1);
    WHERE(c, "gemv %s %s k=%d rows=%d..%d n_x=%d %s bias=%d integers=%d", c->t->isa, dtype_name(g.type), (int)g.k,
          (int)n0, (int)n1, g.n_x, oracle_fn_name(fn), has_bias, g.integers);
    unsigned char *w_base,
        *w = oracle_elements(r, g.type, total * row_elements, 1.0f / sqrtf((float)g.k), (int)rng_int(r, 0, 3), &w_base);
    float *bias = oracle_floats(total), *x = oracle_floats(g.n_x * x_stride), *y[2];
    unsigned char *xq = aligned_alloc(64, (size_t)(g.n_x * xq_stride) + 64);
    double *numbers = malloc((size_t)(total * g.k) * sizeof(double));
    assert_true(xq && numbers);
    for (int64_t i = 0; i < total; i++) bias[i] = rng_float(r, 1.0f);
    for (int32_t m = 0; m < g.n_x; m++) {
        for (int64_t i = 0; i < g.k; i++) x[m * x_stride + i] = rng_float(r, 2.0f);
        if (m % 3 == 2) x[m * x_stride + rng_int(r, 0, g.k - 1)] = m % 2 ? NAN : INFINITY;
        if (g.integers) c->ref->quantize_x(g.type, g.k, x + m * x_stride, xq + m * xq_stride);
    }
    for (int v = 0; v < 2; v++) {
        const kern_table *t = v ? c->ref : c->t;
        y[v] = oracle_floats(g.n_x * y_stride + 1) + 1;
        t->gemv(&(kern_gemv_args){w, g.type, (int64_t)row_bytes, NULL, has_bias ? bias : NULL, g.integers ? NULL : x,
                                  x_stride, g.integers ? xq : NULL, xq_stride, g.n_x, y[v], y_stride, g.k, n0, n1, fn});
    }
    if (!has_bias) {
        int32_t *index = calloc((size_t)total + 1, sizeof(*index));
        float *chosen = oracle_floats(g.n_x * y_stride + 1);
        assert_non_null(index);
        for (int64_t n = n0; n < n1; n++) index[n] = (int32_t)rng_int(r, n0, n1 - 1);
        c->t->gemv(&(kern_gemv_args){w, g.type, (int64_t)row_bytes, index, NULL, g.integers ? NULL : x, x_stride,
                                     g.integers ? xq : NULL, xq_stride, g.n_x, chosen, y_stride, g.k, n0, n1, fn});
        for (int32_t m = 0; m < g.n_x; m++) /* chosen rows: their bits */
            for (int64_t n = n0; n < n1; n++)
                assert_memory_equal(&chosen[m * y_stride + n], &y[0][m * y_stride + index[n]], sizeof(float));
        free(index), free(chosen);
    }
    for (int64_t n = 0; n < total; n++) oracle_numbers(g.type, w + (size_t)n * row_bytes, g.k, numbers + n * g.k);
    for (int32_t m = 0; m < g.n_x; m++) {
        for (int64_t n = 0; n < y_stride; n++) {
            const float got = y[0][m * y_stride + n];
            if (n < n0 || n >= n1) {
                if (!isnan(got)) fail_msg("%s: wrote row %d", c->where, (int)n);
                continue;
            }
            gemv_want want = gemv_sum(&g, numbers + n * g.k, x + m * x_stride, xq + m * xq_stride);
            want.bias = has_bias ? (double)bias[n] : 0.0;
            gemv_compare(c, &g, fn, m % 3 == 2, &want, got, y[1][m * y_stride + n]);
        }
    }
    free(w_base), free(bias), free(x), free(y[0] - 1), free(y[1] - 1), free(xq), free(numbers);
    c->cases++;
}

static void check_gemv(check *c)
{
    for (int type = 0; type < DTYPE_COUNT; type++) {
        if (!dtype_is_weight((dtype)type)) continue;
        for (int64_t step = 1; step <= 40; step++) {
            const int64_t k = whole_blocks((dtype)type, dtype_is_block((dtype)type) ? 32 * step : 1 + step * step);
            const gemv_case g = {(dtype)type, k, 1 + step % 11, 1 + (int32_t)(step % 8), false};
            gemv_run(c, g);
            if (kern_xq_bytes((dtype)type, k) > 0) gemv_run(c, (gemv_case){g.type, g.k, g.rows, g.n_x, true});
        }
        gemv_run(c, (gemv_case){(dtype)type, 512, 9, 19, false}); /* more rows than a group */
        if (dtype_is_block((dtype)type)) gemv_run(c, (gemv_case){(dtype)type, 512, 9, 19, true});
    }
}

/* ------------------------------------------------------------------------------ panels in 8 bits */

/* Each lane of a panel is what quantize_x makes of it, and d times the sums. */
static void quantize_panel_case(check *c, dtype type, int64_t blocks)
{
    const int64_t numbers = (int64_t)dtype_block_numbers(type), k = blocks * numbers, part = numbers == 32 ? 32 : 16;
    const size_t bytes = kern_xq_panel_bytes(type, k), d = (size_t)k * 16, sum = d + (size_t)(k / numbers) * 64;
    WHERE(c, "quantize_panel %s %s k=%d", c->t->isa, dtype_name(type), (int)k);
    float *x = oracle_floats(k * 16), *row = oracle_floats(k);
    unsigned char *xq[2], *alone = aligned_alloc(64, kern_xq_bytes(type, k));
    for (int v = 0; v < 2; v++) {
        xq[v] = aligned_alloc(64, bytes + 64);
        assert_true(xq[v] && alone);
        memset(xq[v], v ? 0x55 : 0xaa, bytes + 64);
    }
    for (int lane = 0; lane < 16; lane++) {
        fill_odd_activations(c, k, numbers, row);
        for (int64_t i = 0; i < k; i++) x[i * 16 + lane] = row[i];
    }
    for (int v = 0; v < 2; v++) {
        (v ? c->ref : c->t)->quantize_panel(type, k, x, xq[v]);
        for (int i = 0; i < 64; i++) assert_int_equal(xq[v][bytes + (size_t)i], v ? 0x55 : 0xaa);
    }
    assert_memory_equal(xq[0], xq[1], bytes);
    for (int lane = 0; lane < 16; lane++) {
        for (int64_t i = 0; i < k; i++) row[i] = x[i * 16 + lane];
        c->ref->quantize_x(type, k, row, alone);
        const xq_view v = xq_of(type, k, alone);
        for (int64_t i = 0; i < k; i++) {
            float scale, total;
            memcpy(&scale, xq[0] + d + (size_t)(i / numbers * 16 + lane) * 4, 4);
            memcpy(&total, xq[0] + sum + (size_t)(i / part * 16 + lane) * 4, 4);
            assert_int_equal(xq[0][(i / 4 * 16 + lane) * 4 + i % 4] - 128, v.q[i]);
            assert_memory_equal(&scale, &v.d[i / numbers], 4);
            const float want = v.d[i / numbers] * (float)sum_of(v.q + i / part * part, (int)part);
            assert_true(isnan(want) ? isnan(total) : total == want);
            if (isfinite(want)) check_value(c, total, (double)want, total, 1.0);
        }
    }
    free(x), free(row), free(alone), free(xq[0]), free(xq[1]);
    c->cases++;
}

static void check_quantize_panel(check *c)
{
    for (int type = 0; type < DTYPE_COUNT; type++) {
        assert_true((kern_xq_panel_bytes((dtype)type, 256) > 0) == dtype_is_block((dtype)type));
        for (int64_t blocks = 1; dtype_is_block((dtype)type) && blocks <= 12; blocks += 1 + blocks / 4)
            quantize_panel_case(c, (dtype)type, blocks);
    }
}

/* linear with panels in 8 bits: compared as gemv is, a lane being a row of activations. Every third token has a NaN or an infinity. */
static void linear_q_case(check *c, dtype type, int64_t k, int64_t rows, int64_t panels, int32_t last_lanes)
{
    oracle_rng *r = &c->rng;
    const kern_fn fn = (kern_fn)rng_int(r, 0, KERN_FN_COUNT - 1);
    const int64_t total = rows + rng_int(r, 0, 3), n0 = rng_int(r, 0, total - rows),
                  y_stride = total * 16 + 16 * rng_int(r, 0, 2);
    const int64_t xq_stride = (int64_t)kern_xq_panel_bytes(type, k) + 64 * rng_int(r, 0, 2),
                  tokens = (panels - 1) * 16 + last_lanes;
    const gemv_case g = {type, k, rows, 1, true};
    WHERE(c, "linear %s %s k=%d rows=%d..%d tokens=%d %s integers", c->t->isa, dtype_name(type), (int)k, (int)n0,
          (int)(n0 + rows), (int)tokens, oracle_fn_name(fn));
    unsigned char *w_base, *w = oracle_elements(r, type, total * k, 1.0f, (int)rng_int(r, 0, 3), &w_base);
    unsigned char *xq = aligned_alloc(64, (size_t)(panels * xq_stride)),
                  *alone = aligned_alloc(64, kern_xq_bytes(type, k));
    float *bias = oracle_floats(total), *x = oracle_floats(panels * k * 16), *row = oracle_floats(k), *y[2];
    double *numbers = malloc((size_t)k * sizeof(double));
    assert_true(xq && alone && numbers);
    for (int64_t i = 0; i < total; i++) bias[i] = rng_float(r, 1.0f);
    for (int64_t t = 0; t < tokens; t++) {
        for (int64_t i = 0; i < k; i++) x[panel_at(k * 16, t, i)] = rng_float(r, 2.0f);
        if (t % 3 == 2) x[panel_at(k * 16, t, rng_int(r, 0, k - 1))] = t % 2 ? NAN : INFINITY;
    }
    for (int64_t p = 0; p < panels; p++) c->ref->quantize_panel(type, k, x + p * k * 16, xq + p * xq_stride);
    for (int v = 0; v < 2; v++) {
        const kern_table *t = v ? c->ref : c->t;
        float *scratch = oracle_floats((int64_t)t->linear_scratch + 16);
        y[v] = oracle_floats(panels * y_stride);
        t->linear(&(kern_linear_args){.w = w,
                                      .type = type,
                                      .w_stride = (int64_t)dtype_bytes(type, k),
                                      .bias = bias,
                                      .y = y[v],
                                      .y_stride = y_stride,
                                      .k = k,
                                      .n0 = n0,
                                      .n1 = n0 + rows,
                                      .p1 = panels,
                                      .last_lanes = last_lanes,
                                      .fn = fn,
                                      .scratch = scratch,
                                      .xq = xq,
                                      .xq_stride = xq_stride});
        for (int i = 0; i < 16; i++) assert_true(isnan(scratch[t->linear_scratch + (size_t)i]));
        free(scratch);
    }
    for (int64_t n = 0; n < y_stride / 16; n++) {
        if (n < total) oracle_numbers(type, w + (size_t)n * dtype_bytes(type, k), k, numbers);
        for (int64_t t = 0; t < tokens; t++) {
            const float got = y[0][panel_at(y_stride, t, n)];
            if (n < n0 || n >= n0 + rows) {
                assert_true(isnan(got));
                continue;
            }
            for (int64_t i = 0; i < k; i++) row[i] = x[panel_at(k * 16, t, i)];
            c->ref->quantize_x(type, k, row, alone);
            gemv_want want = gemv_sum(&g, numbers, row, alone);
            want.bias = (double)bias[n];
            gemv_compare(c, &g, fn, t % 3 == 2, &want, got, y[1][panel_at(y_stride, t, n)]);
        }
    }
    free(w_base), free(xq), free(alone), free(bias), free(x), free(row), free(y[0]), free(y[1]), free(numbers);
    c->cases++;
}

static void check_linear_q(check *c)
{
    for (int type = 0; type < DTYPE_COUNT; type++) {
        if (!dtype_is_block((dtype)type)) continue;
        for (int64_t step = 1; step <= 15; step++)
            linear_q_case(c, (dtype)type, whole_blocks((dtype)type, 32 * (step + step * step / 8)), 1 + step % 14,
                          1 + step % 3, (int32_t)rng_int(&c->rng, 1, 16));
        linear_q_case(c, (dtype)type, 1024, 7, 35, 3); /* more than a group of panels */
    }
}

#endif
