/* SPDX-License-Identifier: Apache-2.0
 *
 * backend_cpu_delta.c: ops that run along time: the causal convolution and the gated delta rule, for both tables.
 *
 * On panels a sequence goes through the delta rule in chunks of 16 tokens, counted from its first one: so its bits do not depend on where in the batch it lies. A
 * chunk that is a panel is read where it is; one that lies across two panels, or beside another sequence, goes through a copy. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "backend/backend_cpu.h"

enum { LANES = KERN_LANES };

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* ----------------------------------------------------------------------------------------------------------- convolution */

typedef struct conv_job {
    const stream *s;
    const op_conv *a;
} conv_job;

/* Task: a panel. */
static void conv_task(void *ctx, int64_t p, int32_t worker)
{
    (void)worker;
    const conv_job *j = ctx;
    const op_conv *a = j->a;
    const int64_t n = smaller(a->x.n_tok - p * LANES, LANES);
    static const float nothing[KERN_CONV_WIDTH - 1] = {0};
    int32_t have[LANES] = {0};
    for (int32_t i = 0; i < a->seq.n_seq; i++) {
        const int64_t begin = a->seq.start[i], end = smaller(a->seq.start[i + 1], p * LANES + n);
        for (int64_t t = begin > p * LANES ? begin : p * LANES; t < end; t++)
            have[t - p * LANES] = (int32_t)smaller(a->width, t - begin + a->seq.past + 1);
    }
    kern_conv_args k = {
        .d = a->x.d,
        .width = a->width,
        .w = a->taps,
        .x = a->x.data + p * a->x.stride,
        .have = have,
        .y = a->y.data + p * a->y.stride,
    };
    if (p > 0) {
        k.before = k.x - a->x.stride + LANES - (a->width - 1);
        k.before_feature = LANES;
        k.before_tap = 1;
    } else if (a->kept) {
        k.before = a->kept;
        k.before_feature = 1;
        k.before_tap = a->x.d;
    } else {
        k.before = nothing; /* may be read, though no tap of it counts */
        k.before_tap = 1;
    }
    j->s->kern->conv(&k);
}

/* 0 is what was before a sequence; what is kept may be of another. */
static void forget(const op_conv *a) { memset(a->kept, 0, (size_t)((a->width - 1) * a->x.d) * sizeof(float)); }

/* The newest width - 1 of what was kept and x. */
static void keep_newest(const op_conv *a)
{
    const int64_t d = a->x.d, n = a->x.n_tok, most = a->width - 1;
    const int64_t old = n < most ? most - n : 0;
    if (a->seq.past == 0) forget(a);
    memmove(a->kept, a->kept + (most - old) * d, (size_t)(old * d) * sizeof(float));
    for (int64_t i = old; i < most; i++) {
        const int64_t t = n - most + i;
        const float *from = a->x.data + t / LANES * a->x.stride + t % LANES;
        for (int64_t f = 0; f < d; f++) a->kept[i * d + f] = from[f * LANES];
    }
}

lath_status cpu_conv_panels(stream *s, const op_conv *a)
{
    assert(a->width >= 2 && a->width <= KERN_CONV_WIDTH && (a->seq.past == 0 || a->kept));
    assert(!a->kept || a->seq.n_seq == 1);
    conv_job j = {s, a};
    TRY(cpu_run(s, conv_task, &j, cpu_ceil_div(a->x.n_tok, LANES)));
    if (a->kept) keep_newest(a);
    return LATH_OK;
}

lath_status cpu_conv_rows(stream *s, const op_conv *a)
{
    assert(a->kept && a->seq.n_seq == 1);
    if (a->seq.past == 0) forget(a);
    for (int64_t t = 0; t < a->x.n_tok; t++) {
        const kern_conv_row_args k = {.d = a->x.d,
                                      .width = a->width,
                                      .w = a->taps,
                                      .x = a->x.data + t * a->x.stride,
                                      .state = a->kept,
                                      .y = a->y.data + t * a->y.stride};
        s->kern->conv_row(&k);
    }
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------ delta rule */

typedef struct delta_job {
    const stream *s;
    const op_delta *a;
    int64_t lanes;
    float *scratch; /* of worker 0; the others' follow */
    size_t scratch_floats;
} delta_job;

static size_t round_up(size_t n) { return (n + 15) & ~(size_t)15; }

/* | what the kernel uses | copies of a chunk: q, k, v, y | a state that nobody keeps | */
static size_t panels_floats(int64_t d_k, int64_t d_v) { return (size_t)((2 * d_k + 2 * d_v) * LANES); }

size_t cpu_delta_floats(const op_limits *most)
{
    if (!most->d_k) return 0;
    return round_up(kern_delta_scratch(most->d_k, most->d_v)) + panels_floats(most->d_k, most->d_v) +
           round_up((size_t)(most->d_k * most->d_v));
}

/* One head of one sequence. */
typedef struct delta_head {
    const delta_job *j;
    int64_t v_head, k_head;
    float *scratch, *panels, *state;
} delta_head;

static delta_head head_of(const delta_job *j, int64_t v_head, int32_t worker)
{
    const op_delta *a = j->a;
    float *scratch = j->scratch + j->scratch_floats * (size_t)worker;
    float *panels = scratch + round_up(kern_delta_scratch(a->d_k, a->d_v));
    return (delta_head){
        .j = j,
        .v_head = v_head,
        .k_head = a->tiled ? v_head % a->n_k_heads : v_head / (a->n_v_heads / a->n_k_heads),
        .scratch = scratch,
        .panels = panels,
        .state = a->state ? a->state + v_head * a->d_k * a->d_v : panels + panels_floats(a->d_k, a->d_v),
    };
}

/* log(1 + e^x); above 20 as the reference has it, which is x. */
static float softplus(float x) { return x > 20 ? x : log1pf(expf(x)); }

static float *number_at(view x, int64_t t, int64_t f, int64_t lanes)
{
    return x.data + t / lanes * x.stride + f * lanes + t % lanes;
}

/* Logarithm of the decay, and beta, of one token. */
static void gates_at(const delta_head *h, int64_t t, float *g, float *beta)
{
    const op_delta *a = h->j->a;
    const int64_t group = a->gate_group, at = h->v_head / group * 2 * group + h->v_head % group;
    const float b = *number_at(a->gates, t, at, h->j->lanes), s = *number_at(a->gates, t, at + group, h->j->lanes);
    const float rate = a->rate[h->v_head];
    *g = rate == 0 ? 0 : rate * softplus(s + a->dt[h->v_head]);
    *beta = 1 / (1 + expf(-b));
}

/* d features of n tokens from t0 on, beginning at feature f, to lanes 0 .. n - 1 of a panel, or from there back. */
static void to_panel(view x, int64_t t0, int64_t n, int64_t f, int64_t d, float *panel)
{
    const int64_t lane = t0 % LANES, first = smaller(n, LANES - lane);
    const float *from = x.data + t0 / LANES * x.stride + f * LANES;
    for (int64_t i = 0; i < d; i++) {
        memcpy(panel + i * LANES, from + i * LANES + lane, (size_t)first * sizeof(float));
        if (n > first)
            memcpy(panel + i * LANES + first, from + x.stride + i * LANES, (size_t)(n - first) * sizeof(float));
    }
}

static void from_panel(const float *panel, view x, int64_t t0, int64_t n, int64_t f, int64_t d)
{
    const int64_t lane = t0 % LANES, first = smaller(n, LANES - lane);
    float *to = x.data + t0 / LANES * x.stride + f * LANES;
    for (int64_t i = 0; i < d; i++) {
        memcpy(to + i * LANES + lane, panel + i * LANES, (size_t)first * sizeof(float));
        if (n > first)
            memcpy(to + x.stride + i * LANES, panel + i * LANES + first, (size_t)(n - first) * sizeof(float));
    }
}

/* The chunk of n tokens from t0 on. */
static void run_chunk(const delta_head *h, int64_t t0, int64_t n)
{
    const op_delta *a = h->j->a;
    const int64_t fk = h->k_head * a->d_k, fv = h->v_head * a->d_v, d_k = a->d_k, d_v = a->d_v;
    const bool in_place = t0 % LANES == 0 && (n == LANES || t0 + n == a->q.n_tok);
    float g[LANES], beta[LANES], *q = h->panels, *k = q + d_k * LANES, *v = k + d_k * LANES, *y = v + d_v * LANES;
    for (int64_t t = 0; t < n; t++) gates_at(h, t0 + t, &g[t], &beta[t]);
    if (in_place) {
        q = number_at(a->q, t0, fk, LANES);
        k = number_at(a->k, t0, fk, LANES);
        v = number_at(a->v, t0, fv, LANES);
        y = number_at(a->y, t0, fv, LANES);
    } else {
        to_panel(a->q, t0, n, fk, d_k, q);
        to_panel(a->k, t0, n, fk, d_k, k);
        to_panel(a->v, t0, n, fv, d_v, v);
    }
    const kern_delta_args args = {d_k, d_v, n, q, k, v, g, beta, h->state, y, h->scratch};
    h->j->s->kern->delta(&args);
    if (!in_place) from_panel(y, a->y, t0, n, fv, d_v);
}

/* Task: a head of a sequence. */
static void panels_task(void *ctx, int64_t task, int32_t worker)
{
    const delta_job *j = ctx;
    const op_delta *a = j->a;
    const int64_t i = task / a->n_v_heads, begin = a->seq.start[i], end = a->seq.start[i + 1];
    const delta_head h = head_of(j, task % a->n_v_heads, worker);
    if (a->seq.past == 0) memset(h.state, 0, (size_t)(a->d_k * a->d_v) * sizeof(float));
    for (int64_t t = begin; t < end; t += LANES) run_chunk(&h, t, smaller(LANES, end - t));
}

/* Task: a head. */
static void rows_task(void *ctx, int64_t task, int32_t worker)
{
    const delta_job *j = ctx;
    const op_delta *a = j->a;
    const delta_head h = head_of(j, task, worker);
    if (a->seq.past == 0) memset(h.state, 0, (size_t)(a->d_k * a->d_v) * sizeof(float));
    for (int64_t t = 0; t < a->q.n_tok; t++) {
        kern_delta_row_args k = {
            .d_k = a->d_k,
            .d_v = a->d_v,
            .q = number_at(a->q, t, h.k_head * a->d_k, 1),
            .k = number_at(a->k, t, h.k_head * a->d_k, 1),
            .v = number_at(a->v, t, h.v_head * a->d_v, 1),
            .state = h.state,
            .y = number_at(a->y, t, h.v_head * a->d_v, 1),
            .scratch = h.scratch,
        };
        gates_at(&h, t, &k.g, &k.beta);
        j->s->kern->delta_row(&k);
    }
}

lath_status cpu_delta(stream *s, const op_delta *a, int64_t lanes, float *scratch, size_t scratch_floats)
{
    assert(a->seq.past == 0 || a->state);
    assert(!a->state || a->seq.n_seq == 1);
    delta_job j = {s, a, lanes, scratch, scratch_floats};
    if (lanes == 1) return cpu_run(s, rows_task, &j, a->n_v_heads);
    return cpu_run(s, panels_task, &j, (int64_t)a->seq.n_seq * a->n_v_heads);
}
