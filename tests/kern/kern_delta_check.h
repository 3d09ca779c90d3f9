/* SPDX-License-Identifier: Apache-2.0
 * kern_delta_check.h: the checks of delta, delta_row, conv and conv_row, a part of test_kern.c. */
#ifndef LATH_TESTS_KERN_DELTA_CHECK_H
#define LATH_TESTS_KERN_DELTA_CHECK_H

#include "kern_check.h"

/* ------------------------------------------------------------------------------ the gated delta rule */

typedef enum delta_kind {
    DELTA_WEAK,   /* decays of 0.99 and more, beta of any size */
    DELTA_STRONG, /* decays of about 1e-4 */
    DELTA_MIXED,  /* 1, anything between, and below the smallest number down to 0 */
    DELTA_ENDS,   /* beta next to 0 and 1 */
    DELTA_KINDS
} delta_kind;

/* A text of n tokens, and in double what the recurrence makes of it. */
typedef struct delta_text {
    int64_t d_k, d_v, n;
    float *q, *k, *v, *g, *beta, *state; /* rows; the state before the first token */
    double *y, *y_scale, *s, *s_scale;   /* [n][d_v], [n][d_v], the state behind the last token, [d_v] */
} delta_text;

static inline double *oracle_doubles(int64_t n)
{
    double *p = calloc((size_t)n, sizeof(double));
    assert_non_null(p);
    return p;
}

/* Random numbers of L2 norm `norm`. */
static inline void delta_unit(oracle_rng *r, int64_t d, float norm, float *x)
{
    double squares = 0;
    for (int64_t i = 0; i < d; i++) x[i] = rng_float(r, 1.0f), squares += (double)x[i] * (double)x[i];
    for (int64_t i = 0; i < d; i++) x[i] = (float)((double)x[i] / sqrt(squares + 1e-6) * (double)norm);
}

static inline float delta_log_decay(oracle_rng *r, delta_kind kind)
{
    static const float mixed[] = {0.0f, -0.5f, -3.0f, -87.4f, -95.0f, -200.0f, -1e30f, -INFINITY, -1e-6f, -1e-3f};
    if (kind == DELTA_STRONG) return -9.2f + rng_float(r, 1.0f);
    if (kind == DELTA_MIXED) return mixed[rng_int(r, 0, 9)];
    return -0.005f + rng_float(r, 0.005f);
}

/* Scales: every token adds to a column of S at most |k_i| beta (|v_j| + sum of |S k|); what it added decays with S. */
static inline void delta_oracle(delta_text *x)
{
    double *size = oracle_doubles(x->d_k * x->d_v);
    for (int64_t i = 0; i < x->d_k * x->d_v; i++) x->s[i] = (double)x->state[i], size[i] = fabs(x->s[i]);
    for (int64_t t = 0; t < x->n; t++) {
        const float *q = x->q + t * x->d_k, *k = x->k + t * x->d_k, *v = x->v + t * x->d_v;
        const double decay = exp((double)x->g[t]), beta = (double)x->beta[t];
        for (int64_t j = 0; j < x->d_v; j++) {
            double known = 0, sum = fabs((double)v[j]), y = 0, q_size = 0;
            x->s_scale[j] = 0;
            for (int64_t i = 0; i < x->d_k; i++) {
                double *s = &x->s[i * x->d_v + j];
                *s *= decay, size[i * x->d_v + j] *= decay;
                known += *s * (double)k[i], sum += fabs(*s * (double)k[i]);
            }
            for (int64_t i = 0; i < x->d_k; i++) {
                const int64_t at = i * x->d_v + j;
                x->s[at] += (double)k[i] * beta * ((double)v[j] - known);
                size[at] += fabs((double)k[i]) * beta * sum;
                x->s_scale[j] = fmax(x->s_scale[j], size[at]);
                y += x->s[at] * (double)q[i], q_size += fabs((double)q[i]);
            }
            x->y[t * x->d_v + j] = y, x->y_scale[t * x->d_v + j] = x->s_scale[j] * q_size;
        }
    }
    free(size);
}

static inline delta_text delta_text_make(oracle_rng *r, int64_t d_k, int64_t d_v, int64_t n, delta_kind kind)
{
    delta_text x = {.d_k = d_k, .d_v = d_v, .n = n};
    x.q = oracle_floats(n * d_k), x.k = oracle_floats(n * d_k), x.v = oracle_floats(n * d_v);
    x.g = oracle_floats(n), x.beta = oracle_floats(n), x.state = oracle_floats(d_k * d_v);
    x.y = oracle_doubles(n * d_v), x.y_scale = oracle_doubles(n * d_v);
    x.s = oracle_doubles(d_k * d_v), x.s_scale = oracle_doubles(d_v);
    const bool fresh = rng_int(r, 0, 3) == 0;
    for (int64_t i = 0; i < d_k * d_v; i++) x.state[i] = fresh ? 0.0f : rng_float(r, 0.5f);
    for (int64_t t = 0; t < n; t++) {
        static const float ends[] = {0.0f, 1e-20f, 1.0f, 0.9999999f};
        delta_unit(r, d_k, 1.0f / sqrtf((float)d_k), x.q + t * d_k);
        delta_unit(r, d_k, 1.0f, x.k + t * d_k);
        if (t > 0 && rng_int(r, 0, 3) == 0) /* a key again: d is the difference of two values */
            memcpy(x.k + t * d_k, x.k + (t - 1) * d_k, (size_t)d_k * sizeof(float));
        for (int64_t j = 0; j < d_v; j++) x.v[t * d_v + j] = rng_float(r, 2.0f);
        x.g[t] = delta_log_decay(r, kind);
        x.beta[t] = kind == DELTA_ENDS ? ends[rng_int(r, 0, 3)] : 0.5f + rng_float(r, 0.5f);
    }
    delta_oracle(&x);
    return x;
}

static inline void delta_text_free(delta_text *x)
{
    free(x->q), free(x->k), free(x->v), free(x->g), free(x->beta), free(x->state);
    free(x->y), free(x->y_scale), free(x->s), free(x->s_scale);
}

/* Tokens t0 <= t < t1 of a text, as one chunk, in lanes 0 and on; the other lanes are NaN. y: [n][d_v]. */
static inline void delta_chunk(const kern_table *t, const delta_text *x, int64_t t0, int64_t t1, float *state, float *y)
{
    const int64_t wanted = (int64_t)kern_delta_scratch(x->d_k, x->d_v);
    float *q = oracle_floats(x->d_k * 16), *k = oracle_floats(x->d_k * 16), *v = oracle_floats(x->d_v * 16),
          *panel = oracle_floats(x->d_v * 16 + 1), *scratch = oracle_floats(wanted + 8);
    for (int64_t l = 0; l < t1 - t0; l++) {
        for (int64_t i = 0; i < x->d_k; i++)
            q[i * 16 + l] = x->q[(t0 + l) * x->d_k + i], k[i * 16 + l] = x->k[(t0 + l) * x->d_k + i];
        for (int64_t j = 0; j < x->d_v; j++) v[j * 16 + l] = x->v[(t0 + l) * x->d_v + j];
    }
    t->delta(&(kern_delta_args){.d_k = x->d_k,
                                .d_v = x->d_v,
                                .n = t1 - t0,
                                .q = q,
                                .k = k,
                                .v = v,
                                .g = x->g + t0,
                                .beta = x->beta + t0,
                                .state = state,
                                .y = panel,
                                .scratch = scratch});
    for (int64_t i = 0; i < x->d_v * 16; i++) assert_true(i % 16 < t1 - t0 || panel[i] == 0);
    for (int i = 0; i < 8; i++) assert_true(isnan(scratch[wanted + i]));
    assert_true(isnan(panel[x->d_v * 16]));
    for (int64_t l = 0; l < t1 - t0; l++)
        for (int64_t j = 0; j < x->d_v; j++) y[(t0 + l) * x->d_v + j] = panel[j * 16 + l];
    free(q), free(k), free(v), free(panel), free(scratch);
}

/* One token in plain rows; odd ones with y in the place of v. */
static inline void delta_single(const kern_table *t, const delta_text *x, int64_t i, float *state, float *y)
{
    const int64_t wanted = (int64_t)kern_delta_scratch(x->d_k, x->d_v);
    float *scratch = oracle_floats(wanted + 8), *to = y + i * x->d_v;
    const float *v = x->v + i * x->d_v;
    if (i % 2) v = memcpy(to, v, (size_t)x->d_v * sizeof(float));
    t->delta_row(&(kern_delta_row_args){.d_k = x->d_k,
                                        .d_v = x->d_v,
                                        .q = x->q + i * x->d_k,
                                        .k = x->k + i * x->d_k,
                                        .v = v,
                                        .g = x->g[i],
                                        .beta = x->beta[i],
                                        .state = state,
                                        .y = to,
                                        .scratch = scratch});
    for (int j = 0; j < 8; j++) assert_true(isnan(scratch[wanted + j]));
    free(scratch);
}

/* Every y and the last state; `chunk`: tokens of a chunk, 0: single tokens, -1: chunks of any size with a single token between. */
static inline void delta_case(check *c, int64_t d_k, int64_t d_v, int64_t n, delta_kind kind, int64_t chunk)
{
    delta_text x = delta_text_make(&c->rng, d_k, d_v, n, kind);
    const int64_t shift = rng_int(&c->rng, 0, 1) * rng_int(&c->rng, 0, 15); /* the state at any alignment */
    float *y[2], *base[2];
    WHERE(c, "delta %s d_k=%d d_v=%d n=%d kind=%d chunk=%d", c->t->isa, (int)d_k, (int)d_v, (int)n, (int)kind,
          (int)chunk);
    for (int w = 0; w < 2; w++) {
        const kern_table *t = w ? c->ref : c->t;
        y[w] = oracle_floats(n * d_v), base[w] = oracle_floats(shift + d_k * d_v + 1);
        float *state = base[w] + shift;
        memcpy(state, x.state, (size_t)(d_k * d_v) * sizeof(float));
        for (int64_t at = 0, m; at < n; at += m) {
            m = chunk > 0 ? chunk : chunk == 0 ? 1 : rng_int(&c->rng, 1, 16);
            if (m > n - at) m = n - at;
            if (chunk == 0 || (chunk < 0 && m < 3))
                delta_single(t, &x, at, state, y[w]), m = 1;
            else
                delta_chunk(t, &x, at, at + m, state, y[w]);
        }
        assert_true(isnan(base[w][shift + d_k * d_v]) && (shift == 0 || isnan(state[-1])));
    }
    double most = 0, error = 0;
    for (int64_t i = 0; i < n * d_v; i++) {
        check_value(c, y[0][i], x.y[i], y[1][i], x.y_scale[i]);
        most = fmax(most, fabs(x.y[i])), error = fmax(error, fabs((double)y[0][i] - x.y[i]));
    }
    if (n >= 37 && error > 1e-5 * most) fail_msg("%s: %.3g of %.3g", c->where, error, most);
    for (int64_t i = 0; i < d_k * d_v; i++)
        check_value(c, base[0][shift + i], x.s[i], base[1][shift + i], x.s_scale[i % d_v]);
    for (int w = 0; w < 2; w++) free(y[w]), free(base[w]);
    delta_text_free(&x);
    c->cases++;
}

static inline void delta_cases(check *c, bool single)
{
    static const int64_t sizes[] = {1, 12, 20, 33, 48, 64, 128};
    const int64_t n_sizes = (int64_t)(sizeof(sizes) / sizeof(sizes[0]));
    for (int kind = 0; kind < DELTA_KINDS; kind++) {
        for (int64_t n = 1; n <= 16; n++)
            delta_case(c, sizes[n % n_sizes], sizes[(n + kind + n / n_sizes) % n_sizes], n, (delta_kind)kind,
                       single ? 0 : n);
        for (int64_t i = 0; i < n_sizes; i++)
            delta_case(c, sizes[i], sizes[(i * 3 + kind) % n_sizes], 37, (delta_kind)kind, single ? 0 : 16);
        for (int64_t chunk = single ? 0 : 16; chunk >= (single ? 0 : -1); chunk -= 17)
            delta_case(c, 128, 128, 64, (delta_kind)kind, chunk);
    }
    delta_case(c, 100, 200, 16, DELTA_WEAK, single ? 0 : 16);
}

static inline void check_delta(check *c) { delta_cases(c, false); }

static inline void check_delta_row(check *c) { delta_cases(c, true); }

/* ------------------------------------------------------------------------------ the convolution before it */

/* Two panels of tokens; a sequence starts here and there, the first one also before lane 0 where it has a state. */
static inline void conv_case(check *c, int64_t d, int32_t width, bool from_state)
{
    oracle_rng *r = &c->rng;
    const int64_t n = 32;
    float *w_base = oracle_floats(width * d + 1), *w = w_base + rng_int(r, 0, 1), *x = oracle_floats(2 * d * 16),
          *state = oracle_floats(width * d), *y[2];
    int32_t have[32];
    WHERE(c, "conv %s d=%d width=%d state=%d", c->t->isa, (int)d, width, from_state);
    for (int64_t i = 0; i < width * d; i++) w[i] = rng_float(r, 1.0f);
    for (int64_t i = 0; i < 2 * d * 16; i++) x[i] = rng_float(r, 3.0f);
    for (int64_t i = 0; i < (width - 1) * d; i++) state[i] = rng_float(r, 3.0f);
    for (int64_t t = 0, first = from_state ? -20 : 0; t < n; t++) {
        if (rng_int(r, 0, 9) == 0) first = t;
        have[t] = t - first + 1 < width ? (int32_t)(t - first + 1) : width;
    }
    for (int v = 0; v < 2; v++) {
        y[v] = oracle_floats(2 * d * 16);
        float *unused = oracle_floats((width - 1) * d);
        const float *none = d % 2 ? unused : NULL;
        for (int64_t p = 0; p < 2; p++) {
            kern_conv_args a = {.d = d, .width = width, .w = w, .x = x + p * d * 16, .y = y[v] + p * d * 16};
            a.have = have + p * 16;
            a.before = p ? x + 16 - (width - 1) : from_state ? state : none;
            a.before_feature = p ? 16 : 1, a.before_tap = p ? 1 : d;
            (v ? c->ref : c->t)->conv(&a);
        }
        free(unused);
    }
    for (int64_t t = 0; t < n; t++) {
        for (int64_t f = 0; f < d; f++) {
            double sum = 0, scale = 0;
            for (int32_t j = width - have[t]; j < width; j++) {
                const int64_t at = t - (width - 1) + j;
                const double tap = (double)(at >= 0 ? x[panel_at(d * 16, at, f)] : state[(width - 1 + at) * d + f]);
                sum += (double)w[j * d + f] * tap, scale += fabs((double)w[j * d + f] * tap);
            }
            const int64_t at = panel_at(d * 16, t, f);
            check_value(c, y[0][at], oracle_fn(KERN_FN_SILU, sum), y[1][at], scale + 1e-7);
        }
    }
    free(w_base), free(x), free(state), free(y[0]), free(y[1]);
    c->cases++;
}

static inline void check_conv(check *c)
{
    for (int64_t d = 1; d <= 40; d += 1 + d / 8) {
        for (int32_t width = 2; width <= 16; width += 1 + width / 6)
            conv_case(c, d, width, false), conv_case(c, d, width, true);
        conv_case(c, d, 4, d % 2), conv_case(c, d, 16, d % 2);
    }
    conv_case(c, 384, 4, true);
}

/* Token by token what conv_case has in panels; in place on odd tokens. */
static inline void conv_row_case(check *c, int64_t d, int32_t width)
{
    oracle_rng *r = &c->rng;
    const int64_t n = 20, kept = width - 1;
    float *w = oracle_floats(width * d), *x = oracle_floats((n + kept) * d), *state[2], *y[2];
    WHERE(c, "conv_row %s d=%d width=%d", c->t->isa, (int)d, width);
    for (int64_t i = 0; i < width * d; i++) w[i] = rng_float(r, 1.0f);
    for (int64_t i = 0; i < (n + kept) * d; i++) x[i] = rng_float(r, 3.0f);
    for (int v = 0; v < 2; v++) {
        y[v] = oracle_floats(n * d + 1), state[v] = oracle_floats(kept * d + 1);
        memcpy(state[v], x, (size_t)(kept * d) * sizeof(float));
        for (int64_t t = 0; t < n; t++) {
            const float *in = x + (t + kept) * d;
            if (t % 2) in = memcpy(y[v] + t * d, in, (size_t)d * sizeof(float));
            (v ? c->ref : c->t)->conv_row(&(kern_conv_row_args){d, width, w, in, state[v], y[v] + t * d});
            assert_memory_equal(state[v], x + (t + 1) * d, (size_t)(kept * d) * sizeof(float));
        }
        assert_true(isnan(y[v][n * d]) && isnan(state[v][kept * d]));
    }
    for (int64_t t = 0; t < n; t++) {
        for (int64_t f = 0; f < d; f++) {
            double sum = 0, scale = 0;
            for (int32_t j = 0; j < width; j++) {
                const double term = (double)w[j * d + f] * (double)x[(t + j) * d + f];
                sum += term, scale += fabs(term);
            }
            check_value(c, y[0][t * d + f], oracle_fn(KERN_FN_SILU, sum), y[1][t * d + f], scale + 1e-7);
        }
    }
    free(w), free(x);
    for (int v = 0; v < 2; v++) free(y[v]), free(state[v]);
    c->cases++;
}

static inline void check_conv_row(check *c)
{
    for (int64_t d = 1; d <= 40; d++)
        for (int32_t width = 2; width <= 16; width += 1 + width / 6) conv_row_case(c, d, width);
    conv_row_case(c, 387, 4);
}

#endif
