/* SPDX-License-Identifier: Apache-2.0
 *
 * ffn_moe.c: mixture of experts (Shazeer et al. 2017; Fedus et al. 2022). The router's choice is a list of pairs (token, expert); sorted by expert it says which
 * tokens go through each: those are taken out of x as a batch of their own, go through the expert's gated FFN, and are added to their places times what the
 * router gave them.
 *
 *     p = softmax(W x)         top(p): the `top` largest, of equal ones the lower
 *     out = sum over e in top(p), rising, of p_e down_e(fn(gate_e(x)) * up_e(x))
 *           + sigmoid(w x) down(fn(gate(x)) * up(x))      where there is a shared expert
 */
#include <math.h>
#include <string.h>

#include "ffn/ffn.h"

/* One expert's share of a token. */
typedef struct choice {
    int32_t expert;
    float weight;
} choice;

/* What forward works with, in its memory. Pairs are n_tok * top. */
typedef struct moe_work {
    view scores, x, hidden, y; /* [n_tok, E], [n_tok, d_model], [n_tok, 2 d_wide], [n_tok, d_model] */
    float *plain;              /* [n_tok, E] the scores */
    choice *chosen;            /* [n_tok, top] */
    int32_t *first;            /* [E + 1] of an expert's pairs */
    int32_t *token;            /* [pairs] by expert, tokens rising */
    float *weight;             /* [pairs] */
    int32_t layer;
} moe_work;

static size_t round_up(size_t n) { return (n + 15) & ~(size_t)15; }

/* Hidden features of the widest expert. */
static int64_t d_wide(const ffn_moe *m) { return m->d_expert > m->d_shared ? m->d_expert : m->d_shared; }

static size_t moe_memory_floats(const ffn *self, const backend_ops *ops, int64_t n_tok)
{
    const ffn_moe *m = (const ffn_moe *)self;
    const size_t pairs = (size_t)(n_tok * m->top);
    const size_t views = ops->view_floats(n_tok, m->n_experts) + 2 * ops->view_floats(n_tok, m->d_model) +
                         ops->view_floats(n_tok, 2 * d_wide(m));
    const size_t own = views + round_up((size_t)(n_tok * m->n_experts)) + round_up(2 * pairs) +
                       round_up((size_t)m->n_experts + 1) + 2 * round_up(pairs);
    const size_t other = ffn_memory_floats(m->other, ops, n_tok);
    return own > other ? own : other;
}

static moe_work make_work(const ffn_moe *m, const backend_ops *ops, int64_t n_tok, float *memory)
{
    _Static_assert(sizeof(choice) == 2 * sizeof(float) && sizeof(int32_t) == sizeof(float), "floats hold them");
    const size_t pairs = (size_t)(n_tok * m->top);
    moe_work w;
    w.scores = ops->make_view(memory, n_tok, m->n_experts);
    memory += ops->view_floats(n_tok, m->n_experts);
    w.x = ops->make_view(memory, n_tok, m->d_model);
    memory += ops->view_floats(n_tok, m->d_model);
    w.y = ops->make_view(memory, n_tok, m->d_model);
    memory += ops->view_floats(n_tok, m->d_model);
    w.hidden = ops->make_view(memory, n_tok, 2 * d_wide(m));
    memory += ops->view_floats(n_tok, 2 * d_wide(m));
    w.plain = memory;
    w.chosen = (choice *)(void *)(w.plain + round_up((size_t)(n_tok * m->n_experts)));
    w.first = (int32_t *)(void *)((float *)(void *)w.chosen + round_up(2 * pairs));
    w.token = w.first + round_up((size_t)m->n_experts + 1);
    w.weight = (float *)(void *)(w.token + round_up(pairs));
    return w;
}

/* The softmax of n scores in place, and the `top` of it. */
static void choose(const ffn_moe *m, float *p, choice *out)
{
    float largest = p[0], sum = 0, kept = 0;
    for (int32_t e = 1; e < m->n_experts; e++) largest = p[e] > largest ? p[e] : largest;
    for (int32_t e = 0; e < m->n_experts; e++) {
        p[e] = expf(p[e] - largest);
        sum += p[e];
    }
    for (int32_t e = 0; e < m->n_experts; e++) p[e] /= sum;
    for (int32_t i = 0; i < m->top; i++) {
        int32_t best = 0; /* once only, even where all are NaN: an expert has room for each token once */
        for (int32_t e = 1; e < m->n_experts; e++)
            if (p[best] < 0 || p[e] > p[best]) best = e;
        out[i] = (choice){best, p[best]};
        kept += p[best];
        p[best] = -1; /* taken: all others are at least 0, or NaN */
    }
    for (int32_t i = 0; m->normalize && i < m->top; i++) out[i].weight /= kept;
}

/* Router and choice of all tokens, then the pairs by expert. */
static lath_status route(const ffn_moe *m, ffn_moe_layer *l, const fwd *f, view x, const moe_work *w)
{
    const int64_t n_tok = x.n_tok;
    const op_linear part = {.w = &l->router, .fn = KERN_FN_NONE, .y = w->scores};
    TRY(f->s->ops->linear(f->s, x, &part, 1));
    TRY(f->s->ops->read_rows(f->s, w->scores, 0, n_tok, w->plain));
    memset(w->first, 0, ((size_t)m->n_experts + 1) * sizeof(*w->first));
    for (int64_t t = 0; t < n_tok; t++) {
        choice *c = w->chosen + t * m->top;
        choose(m, w->plain + t * m->n_experts, c);
        for (int32_t i = 0; i < m->top; i++) w->first[c[i].expert + 1]++;
    }
    for (int32_t e = 0; e < m->n_experts; e++) w->first[e + 1] += w->first[e];
    /* first[e] moves on to the end of e's pairs while they are put down, and back by a step afterwards. */
    for (int64_t t = 0; t < n_tok; t++) {
        for (int32_t i = 0; i < m->top; i++) {
            const choice *c = w->chosen + t * m->top + i;
            const int32_t at = w->first[c->expert]++;
            w->token[at] = (int32_t)t;
            w->weight[at] = c->weight;
        }
    }
    for (int32_t e = m->n_experts; e > 0; e--) w->first[e] = w->first[e - 1];
    w->first[0] = 0;
    return LATH_OK;
}

/* The matrices of one expert, and its hidden features. */
typedef struct expert_w {
    weight *gate, *up, *down;
    int64_t d;
    int32_t layer, number; /* the shared one's: n_experts */
    const int32_t *token;  /* that go through it */
} expert_w;

/* What an expert makes of the tokens of x; `hidden` is memory for them. */
static lath_status gated(const ffn_moe *m, const expert_w *e, const fwd *f, view x, view hidden, view y)
{
    const backend_ops *ops = f->s->ops;
    const view up = ops->slice(hidden, 0, e->d), gate = ops->slice(hidden, e->d, e->d);
    const op_linear in[] = {{.w = e->gate, .fn = KERN_FN_NONE, .y = gate}, {.w = e->up, .fn = KERN_FN_NONE, .y = up}},
                    down = {.w = e->down, .fn = KERN_FN_NONE, .y = y};
    TRY(ops->linear(f->s, x, in, 2));
    TRY(ops->glu(f->s, m->fn, gate, up, up));
    if (f->trace) {
        trace_event act = {.point = TRACE_FFN_ACT, .layer = e->layer, .expert = e->number, .token = e->token, .x = up};
        TRY(f->trace->see(f->trace->ctx, f, &act));
    }
    return ops->linear(f->s, up, &down, 1);
}

/* The n tokens of expert e, whose pairs begin at `first`. */
static lath_status run_expert(const ffn_moe *m, ffn_moe_layer *l, const fwd *f, int32_t e, int64_t first, int64_t n,
                              view x, const moe_work *w, view out)
{
    const backend_ops *ops = f->s->ops;
    const expert_w own = {&l->gate[e], &l->up[e], &l->down[e], m->d_expert, w->layer, e, w->token + first};
    const view in = ops->tokens(w->x, 0, n), y = ops->tokens(w->y, 0, n);
    TRY(ops->take_rows(f->s, x, w->token + first, in));
    TRY(gated(m, &own, f, in, ops->tokens(w->hidden, 0, n), y));
    return ops->add_rows(f->s, y, w->token + first, w->weight + first, out);
}

/* The expert of all tokens. Pairs are done with: their memory (there is at least one a token) is taken again. */
static lath_status run_shared(const ffn_moe *m, ffn_moe_layer *l, const fwd *f, view x, const moe_work *w, view out)
{
    const backend_ops *ops = f->s->ops;
    const expert_w own = {&l->shared.gate.w, &l->shared.up.w, &l->shared.down.w, m->d_shared,
                          w->layer,          m->n_experts,    w->token};
    const view score = ops->slice(w->scores, 0, 1);
    const op_linear router = {.w = &l->shared_router, .fn = KERN_FN_SIGMOID, .y = score};
    TRY(ops->linear(f->s, x, &router, 1));
    TRY(ops->read_rows(f->s, score, 0, x.n_tok, w->weight));
    for (int64_t t = 0; t < x.n_tok; t++) w->token[t] = (int32_t)t;
    TRY(gated(m, &own, f, x, w->hidden, w->y));
    return ops->add_rows(f->s, w->y, w->token, w->weight, out);
}

static bool moe_parts(ffn *self, int32_t layer, ffn_parts *out)
{
    const ffn_moe *m = (const ffn_moe *)self;
    return !m->sparse[layer] && ffn_get_parts(m->other, layer, out);
}

static lath_status moe_forward(ffn *self, const fwd *f, int32_t layer, view x, float *memory, view out)
{
    ffn_moe *m = (ffn_moe *)self;
    if (!m->sparse[layer]) return ffn_forward(m->other, f, layer, x, memory, out);
    ffn_moe_layer *l = (ffn_moe_layer *)(void *)(m->first + (size_t)layer * m->stride);
    moe_work w = make_work(m, f->s->ops, x.n_tok, memory);
    w.layer = layer;
    TRY(route(m, l, f, x, &w));
    ffn_note(f, layer, "moe", x.n_tok, x.n_tok * (m->top * m->d_expert + m->d_shared));
    TRY(f->s->ops->clear(f->s, out));
    for (int32_t e = 0; e < m->n_experts; e++) {
        const int32_t n = w.first[e + 1] - w.first[e];
        if (n > 0) TRY(run_expert(m, l, f, e, w.first[e], n, x, &w, out));
    }
    return m->d_shared ? run_shared(m, l, f, x, &w, out) : LATH_OK;
}

static const ffn_ops moe_ops = {
    .name = "moe", .memory_floats = moe_memory_floats, .forward = moe_forward, .parts = moe_parts};

void ffn_moe_init(ffn_moe *m) { m->base.ops = &moe_ops; }

const ffn_moe_layer *ffn_moe_get_layer(const ffn *self, int32_t layer, int32_t *n_experts)
{
    const ffn_moe *m = (const ffn_moe *)self;
    if (self->ops != &moe_ops || !m->sparse[layer]) return NULL;
    *n_experts = m->n_experts;
    return (const ffn_moe_layer *)(const void *)(m->first + (size_t)layer * m->stride);
}
