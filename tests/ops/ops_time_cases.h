/* SPDX-License-Identifier: Apache-2.0
 *
 * ops_time_cases.h: cases of test_ops.c for ops that run along time, against the definition in double. A batch of several texts keeps nothing; one text goes through
 * in several calls, each behind what the ones before have kept. The table of few tokens always keeps. */
#ifndef LATH_TESTS_OPS_TIME_CASES_H
#define LATH_TESTS_OPS_TIME_CASES_H

enum { CALLS = 3 };

/* One way through: all texts of the shape at once (calls 1, nothing kept), or one text of calls * n_tok tokens. */
typedef struct passage {
    int32_t calls;
    bool keeps;
    int32_t one[2]; /* start of the one text */
} passage;

static passage make_passage(const env *e, const shape *s, bool keeps)
{
    (void)e;
    return (passage){.calls = keeps ? CALLS : 1, .keeps = keeps, .one = {0, (int32_t)s->n_tok}};
}

static op_sequences sequences(const passage *p, const shape *s, int32_t call)
{
    if (p->keeps) return (op_sequences){p->one, 1, call * s->n_tok};
    return (op_sequences){s->start, s->n_seq, 0};
}

/* First token of the text that token t is of. */
static int64_t first_token(const passage *p, const shape *s, int64_t t) { return p->keeps ? 0 : s->begin[t]; }

static bool can_go(const env *e, bool keeps) { return keeps || e->ops != backend_cpu_rows(); }

static void check_conv(const passage *p, const shape *s, const op_conv *a, const float *x, int64_t at, const float *got)
{
    const int64_t d = a->x.d;
    for (int64_t t = 0; t < s->n_tok; t++) {
        for (int64_t f = 0; f < d; f++) {
            double sum = 0, size = 0;
            for (int32_t i = 0; i < a->width; i++) {
                const int64_t from = at + t - (a->width - 1) + i;
                if (from < first_token(p, s, t)) continue;
                const double term = (double)a->taps[i * d + f] * (double)x[from * d + f];
                sum += term;
                size += fabs(term);
            }
            close_to("conv", got[t * d + f], sum / (1 + exp(-sum)), 1e-6 * size + 1e-7);
        }
    }
}

static void conv_with(env *e, const shape *s, int32_t width, bool keeps)
{
    const passage p = make_passage(e, s, keeps);
    const float *taps = rnd_floats(e, width * s->d, 1), *x = rnd_floats(e, p.calls * s->n_tok * s->d, 2);
    float *kept = rnd_floats(e, (width - 1) * s->d, 9); /* of a text before: no part of this one */
    for (int32_t call = 0; call < p.calls; call++) {
        view in = make_view(e, s->n_tok, s->d + 2);
        op_conv a = {.x = e->ops->slice(in, 1, s->d),
                     .y = make_view(e, s->n_tok, s->d),
                     .taps = taps,
                     .width = width,
                     .seq = sequences(&p, s, call),
                     .kept = keeps ? kept : NULL};
        put(e, a.x, x + call * s->n_tok * s->d);
        assert_ok(e->ops->conv(&e->s, &a), e->err);
        check_conv(&p, s, &a, x, call * s->n_tok, get(e, a.y));
    }
}

static void case_conv(env *e, const shape *s)
{
    static const int32_t widths[] = {2, 4, 7};
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
        for (int keeps = 0; keeps < 2; keeps++)
            if (can_go(e, keeps)) conv_with(e, s, widths[i], keeps);
}

typedef struct delta_shape {
    int32_t n_k, n_v;
    int64_t d_k, d_v, group;
    bool tiled;
    float rate; /* the strongest */
} delta_shape;

/* Everything that the rule has to know of the tokens so far, as rows. */
typedef struct delta_rows {
    const delta_shape *h;
    const float *q, *k, *v, *gates, *rate, *dt;
} delta_rows;

/* The rule, step by step, for one head of the values: state S [d_k][d_v] and what comes out at token t. */
static void delta_step(const delta_rows *r, int64_t t, int32_t head, double *S, double *y)
{
    const delta_shape *h = r->h;
    const int64_t d_k = h->d_k, d_v = h->d_v;
    const int32_t key = h->tiled ? head % h->n_k : head / (h->n_v / h->n_k);
    const float *q = r->q + (t * h->n_k + key) * d_k, *k = r->k + (t * h->n_k + key) * d_k,
                *v = r->v + (t * h->n_v + head) * d_v,
                *gates = r->gates + t * 2 * h->n_v + head / h->group * 2 * h->group + head % h->group;
    const double beta = 1 / (1 + exp(-(double)gates[0])),
                 decay = exp((double)r->rate[head] * log1p(exp((double)gates[h->group] + (double)r->dt[head])));
    for (int64_t j = 0; j < d_v; j++) {
        double had = 0;
        for (int64_t i = 0; i < d_k; i++) {
            S[i * d_v + j] *= decay;
            had += S[i * d_v + j] * (double)k[i];
        }
        y[j] = 0;
        for (int64_t i = 0; i < d_k; i++) {
            S[i * d_v + j] += (double)k[i] * beta * ((double)v[j] - had);
            y[j] += S[i * d_v + j] * (double)q[i];
        }
    }
}

static void check_delta(env *e, const passage *p, const shape *s, const delta_rows *r, const float *got,
                        const float *state)
{
    const delta_shape *h = r->h;
    const int64_t n = p->calls * s->n_tok, size = h->d_k * h->d_v;
    double *S = arena_array(&e->mem, (size_t)size, sizeof(double)), y[64];
    assert_true(S && h->d_v <= 64);
    for (int32_t head = 0; head < h->n_v; head++) {
        for (int64_t t = 0; t < n; t++) {
            if (t == (p->keeps ? 0 : s->begin[t])) memset(S, 0, (size_t)size * sizeof(double));
            delta_step(r, t, head, S, y);
            for (int64_t j = 0; j < h->d_v; j++) close_to("delta", got[(t * h->n_v + head) * h->d_v + j], y[j], 2e-5);
        }
        for (int64_t i = 0; state && i < size; i++) close_to("state", state[head * size + i], S[i], 2e-5);
    }
}

/* Queries and keys as short as they are in a model. */
static float *short_rows(env *e, int64_t n, int64_t d)
{
    float *x = rnd_floats(e, n * d, 1);
    for (int64_t i = 0; i < n; i++) {
        float sum = 1e-6f;
        for (int64_t f = 0; f < d; f++) sum += x[i * d + f] * x[i * d + f];
        for (int64_t f = 0; f < d; f++) x[i * d + f] /= sqrtf(sum);
    }
    return x;
}

static void delta_with(env *e, const shape *s, const delta_shape *h, bool keeps)
{
    const passage p = make_passage(e, s, keeps);
    const int64_t n = p.calls * s->n_tok, dk = h->n_k * h->d_k, dv = h->n_v * h->d_v;
    float *rate = rnd_floats(e, h->n_v, h->rate), *state = rnd_floats(e, h->n_v * h->d_k * h->d_v, 1),
          *got = arena_array(&e->mem, (size_t)(n * dv), sizeof(float));
    for (int32_t i = 0; i < h->n_v; i++) rate[i] = -fabsf(rate[i]);
    const delta_rows r = {.h = h,
                          .q = short_rows(e, n * h->n_k, h->d_k),
                          .k = short_rows(e, n * h->n_k, h->d_k),
                          .v = rnd_floats(e, n * dv, 1),
                          .gates = rnd_floats(e, n * 2 * h->n_v, 3),
                          .rate = rate,
                          .dt = rnd_floats(e, h->n_v, 1)};
    assert_non_null(got);
    for (int32_t call = 0; call < p.calls; call++) {
        const int64_t at = call * s->n_tok;
        const view all = make_view(e, s->n_tok, 2 * dk + dv + 1);
        op_delta a = {.q = e->ops->slice(all, 1, dk),
                      .k = e->ops->slice(all, 1 + dk, dk),
                      .v = e->ops->slice(all, 1 + 2 * dk, dv),
                      .gates = make_view(e, s->n_tok, 2 * h->n_v),
                      .gate_group = h->group,
                      .rate = rate,
                      .dt = r.dt,
                      .n_k_heads = h->n_k,
                      .n_v_heads = h->n_v,
                      .d_k = h->d_k,
                      .d_v = h->d_v,
                      .tiled = h->tiled,
                      .seq = sequences(&p, s, call),
                      .state = keeps ? state : NULL,
                      .y = make_view(e, s->n_tok, dv)};
        put(e, a.q, r.q + at * dk);
        put(e, a.k, r.k + at * dk);
        put(e, a.v, r.v + at * dv);
        put(e, a.gates, r.gates + at * 2 * h->n_v);
        assert_ok(e->ops->delta(&e->s, &a), e->err);
        memcpy(got + at * dv, get(e, a.y), (size_t)(s->n_tok * dv) * sizeof(float));
    }
    check_delta(e, &p, s, &r, got, keeps ? state : NULL);
}

static void case_delta(env *e, const shape *s)
{
    static const delta_shape all[] = {
        {1, 1, 5, 7, 1, false, 0.5f},   {2, 6, 12, 20, 6, false, 2},    {2, 6, 8, 3, 3, false, 2},
        {2, 4, 16, 33, 4, true, 0.01f}, {1, 2, 33, 16, 2, false, 3000},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        for (int keeps = 0; keeps < 2; keeps++)
            if (can_go(e, keeps)) delta_with(e, s, &all[i], keeps);
}

#endif
