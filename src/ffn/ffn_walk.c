/* SPDX-License-Identifier: Apache-2.0
 *
 * ffn_walk.c: see ffn_walk.h. Scores are one product over all tokens; then a token at a time, since each has features of its own.
 */
#include "ffn/ffn_walk.h"

#include <string.h>

enum { TOGETHER = 32 };

typedef struct ffn_walk {
    ffn base;
    ffn_walk_source src;
    int64_t k, most; /* chosen ones, 0: all; features of the widest layer */
    ffn *own;        /* or NULL */
    const lath_allocator *alloc;
} ffn_walk;

static size_t round_up(int64_t n) { return (size_t)(n + 15) / 16 * 16; }

/* --------------------------------------------------------------------------------------------------------------- choice */

/* A radix selection of the k-th largest magnitude: as integers, magnitudes of floats are in order. Three digits of 11, 10 and 10 bits from the top, each a histogram
 * of the numbers that have the digits before it. */
static uint32_t magnitude(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof(u));
    return u & 0x7fffffff;
}

/* The k-th largest magnitude; *ties: how many that are equal to it are among the k largest. */
static uint32_t kth_largest(const float *scores, int64_t n, int64_t k, int64_t *ties)
{
    static const int shift[] = {20, 10, 0}, bits[] = {11, 10, 10};
    uint32_t prefix = 0;
    for (int digit = 0; digit < 3; digit++) {
        const uint32_t mask = (1u << bits[digit]) - 1;
        int32_t count[1 << 11] = {0};
        for (int64_t i = 0; i < n; i++) {
            const uint32_t m = magnitude(scores[i]);
            if (digit == 0 || m >> shift[digit - 1] == prefix) count[m >> shift[digit] & mask]++;
        }
        uint32_t at = mask;
        while (count[at] < k) k -= count[at--];
        prefix = prefix << bits[digit] | at;
    }
    *ties = k;
    return prefix;
}

void ffn_walk_choose(const float *scores, int64_t n, int64_t k, int32_t *chosen)
{
    int64_t ties = 0, done = 0;
    if (k <= 0) return;
    const uint32_t least = kth_largest(scores, n, k, &ties);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t m = magnitude(scores[i]);
        if (m > least || (m == least && ties-- > 0)) chosen[done++] = (int32_t)i;
    }
}

/* ---------------------------------------------------------------------------------------------------------------- memory */

/* One token's, behind the views of all: x [d], what comes out [d], scores [features]; of the chosen ones their scores, up, and indices [k]; a view of them; what add_features wants. */
typedef struct token_work {
    float *x, *y, *scores, *gate, *up;
    int32_t *chosen;
    float *seen, *sums;
} token_work;

static size_t views_floats(const ffn_walk *w, const backend_ops *ops, int64_t n_tok)
{
    return ops->view_floats(n_tok, w->k ? w->most : 2 * w->most);
}

/* Tokens that take all rows of down in one pass over it. */
static int64_t together(int64_t n_tok) { return n_tok < TOGETHER ? n_tok : TOGETHER; }

static size_t walk_memory_floats(const ffn *self, const backend_ops *ops, int64_t n_tok)
{
    const ffn_walk *w = (const ffn_walk *)self;
    const size_t views = views_floats(w, ops, n_tok), sums = op_features_floats(w->src.d_model);
    if (!w->k)
        return views + round_up(together(n_tok) * w->most) + (size_t)(together(n_tok) * op_row_floats(w->src.d_model)) +
               sums;
    return views + 2 * round_up(w->src.d_model) + round_up(w->most) + 3 * round_up(w->k) + ops->view_floats(1, w->k) +
           sums;
}

static token_work make_token_work(const ffn_walk *w, const backend_ops *ops, float *memory)
{
    const size_t d = round_up(w->src.d_model), k = round_up(w->k);
    token_work t = {.x = memory, .y = memory + d, .scores = memory + 2 * d};
    t.gate = t.scores + round_up(w->most);
    t.up = t.gate + k;
    t.chosen = (int32_t *)(void *)(t.up + k);
    t.seen = t.up + 2 * k;
    t.sums = t.seen + ops->view_floats(1, w->k);
    return t;
}

static void start_sum(const ffn_walk_layer *l, int64_t d, float *y)
{
    if (l->down_bias.data)
        memcpy(y, l->down_bias.data, (size_t)d * sizeof(float));
    else
        memset(y, 0, (size_t)d * sizeof(float));
}

/* ------------------------------------------------------------------------------------------------------------------- all */

/* out = hidden times the rows of down, all of them, some tokens at a time. */
static lath_status add_all(const ffn_walk *w, ffn_walk_layer *l, const fwd *f, view hidden, float *memory, view out)
{
    const backend_ops *ops = f->s->ops;
    const int64_t d = w->src.d_model, step = op_row_floats(d), most = together(hidden.n_tok);
    float *by = memory, *y = by + round_up(most * w->most), *sums = y + most * step;
    for (int64_t t = 0, n; t < hidden.n_tok; t += n) {
        n = hidden.n_tok - t < most ? hidden.n_tok - t : most;
        TRY(ops->read_rows(f->s, hidden, t, n, by));
        for (int64_t i = 0; i < n; i++) start_sum(l, d, y + i * step);
        TRY(ops->add_all_features(f->s, &l->down, by, n, y, sums));
        for (int64_t i = 0; i < n; i++) TRY(ops->write_rows(f->s, out, t + i, 1, y + i * step));
    }
    return LATH_OK;
}

static lath_status product(const fwd *f, weight *w, vec bias, view x, view y)
{
    const op_linear part = {w, bias, KERN_FN_NONE, y};
    return f->s->ops->linear(f->s, x, &part, 1);
}

static lath_status walk_all(const ffn_walk *w, ffn_walk_layer *l, const fwd *f, int32_t layer, view x, float *memory,
                            view out)
{
    const backend_ops *ops = f->s->ops;
    const view all = ops->make_view(memory, x.n_tok, l->gate.t ? 2 * l->features : l->features),
               up = ops->slice(all, 0, l->features);
    ffn_parts own;
    if (l->gate.t) {
        const view gate = ops->slice(all, l->features, l->features);
        const op_linear parts[] = {{&l->gate, l->gate_bias, KERN_FN_NONE, gate},
                                   {&l->up, l->up_bias, KERN_FN_NONE, up}};
        TRY(ops->linear(f->s, x, parts, 2));
        TRY(ops->glu(f->s, w->src.fn, gate, up, up));
    } else {
        const op_linear part = {&l->up, l->up_bias, w->src.fn, up};
        TRY(ops->linear(f->s, x, &part, 1));
    }
    TRY(trace_emit(f, TRACE_FFN_ACT, layer, up));
    ffn_note(f, layer, "walk:all", x.n_tok, x.n_tok * l->features);
    if (l->out.t) return product(f, &l->out, l->down_bias, up, out);
    if (w->own && ffn_get_parts(w->own, layer, &own)) return nn_linear(f, own.down, KERN_FN_NONE, up, out);
    return add_all(w, l, f, up, memory + views_floats(w, ops, x.n_tok), out);
}

/* ------------------------------------------------------------------------------------------------------------------- top */

/* The values of the chosen features pass the trace point of hidden features, and may be changed there. */
static lath_status show(const ffn_walk *w, const fwd *f, int32_t layer, int64_t token, const token_work *t,
                        float *values)
{
    const backend_ops *ops = f->s->ops;
    const int32_t of_batch = (int32_t)token;
    if (!f->trace) return LATH_OK;
    trace_event e = {.point = TRACE_FFN_ACT, .layer = layer, .expert = -1, .token = &of_batch, .feature = t->chosen};
    e.x = ops->make_view(t->seen, 1, w->k);
    TRY(ops->write_rows(f->s, e.x, 0, 1, values));
    TRY(f->trace->see(f->trace->ctx, f, &e));
    return e.changed ? ops->read_rows(f->s, e.x, 0, 1, values) : LATH_OK;
}

/* The hidden values of the chosen features, into t->up. */
static lath_status chosen_values(const ffn_walk *w, ffn_walk_layer *l, const fwd *f, const token_work *t)
{
    const op_features rows = {&l->up, t->chosen, w->k};
    for (int64_t i = 0; i < w->k; i++) t->gate[i] = t->scores[t->chosen[i]];
    if (!l->gate.t) {
        f->s->kern->map(w->src.fn, (size_t)w->k, t->gate, t->up);
        return LATH_OK;
    }
    TRY(f->s->ops->dot_features(f->s, &rows, t->x, t->up));
    for (int64_t i = 0; l->up_bias.data && i < w->k; i++) t->up[i] += l->up_bias.data[t->chosen[i]];
    f->s->kern->glu(w->src.fn, (size_t)w->k, t->gate, t->up, t->up);
    return LATH_OK;
}

static lath_status walk_token(const ffn_walk *w, ffn_walk_layer *l, const fwd *f, int32_t layer, int64_t token, view x,
                              view scores, const token_work *t, view out)
{
    const backend_ops *ops = f->s->ops;
    const op_features down = {&l->down, t->chosen, w->k};
    TRY(ops->read_rows(f->s, scores, token, 1, t->scores));
    TRY(ops->read_rows(f->s, x, token, 1, t->x));
    ffn_walk_choose(t->scores, l->features, w->k, t->chosen);
    TRY(chosen_values(w, l, f, t));
    TRY(show(w, f, layer, token, t, t->up));
    start_sum(l, w->src.d_model, t->y);
    TRY(ops->add_features(f->s, &down, t->up, t->y, t->sums));
    return ops->write_rows(f->s, out, token, 1, t->y);
}

static lath_status walk_forward(ffn *self, const fwd *f, int32_t layer, view x, float *memory, view out)
{
    ffn_walk *w = (ffn_walk *)self;
    ffn_walk_layer *l = &w->src.layers[layer];
    if (w->src.ahead && layer + 1 < w->src.n_layers) w->src.ahead(w->src.ctx, layer + 1);
    if (!w->k) return walk_all(w, l, f, layer, x, memory, out);
    const view scores = f->s->ops->make_view(memory, x.n_tok, l->features);
    const token_work t = make_token_work(w, f->s->ops, memory + views_floats(w, f->s->ops, x.n_tok));
    TRY(product(f, ffn_walk_scores(l), l->gate.t ? l->gate_bias : l->up_bias, x, scores));
    ffn_note(f, layer, "walk:top", x.n_tok, x.n_tok * w->k);
    for (int64_t i = 0; i < x.n_tok; i++) TRY(walk_token(w, l, f, layer, i, x, scores, &t, out));
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------------ open */

static void walk_describe(const ffn *self, int32_t layer, buf *out)
{
    const ffn_walk *w = (const ffn_walk *)self;
    if (w->k)
        buf_printf(out, "walk of %s, k=%lld of %lld features", w->src.name, (long long)w->k,
                   (long long)w->src.layers[layer].features);
    else
        buf_printf(out, "walk of %s, all features", w->src.name);
}

static void walk_close(ffn *self)
{
    ffn_walk *w = (ffn_walk *)self;
    if (w->src.close) w->src.close(w->src.ctx);
    alloc_release(w->alloc, w, sizeof(*w));
}

static lath_status check_source(const ffn_walk_source *src, int64_t k, int32_t first, int32_t last, int64_t *most,
                                lath_error *err)
{
    *most = 0;
    for (int32_t i = first; i <= last; i++) {
        const ffn_walk_layer *l = &src->layers[i];
        if (!l->up.t || !l->down.t)
            return err_set(err, LATH_ERR_UNSUPPORTED, "%s: layer %d has no rows of features to walk over", src->name,
                           i);
        if (k > l->features)
            return err_set(err, LATH_ERR_USAGE, "%s: k of %lld: layer %d has %lld features", src->name, (long long)k, i,
                           (long long)l->features);
        if (l->features > *most) *most = l->features;
    }
    return LATH_OK;
}

lath_status ffn_walk_open(const ffn_walk_source *source, int64_t k, int32_t first, int32_t last, ffn *own,
                          const lath_allocator *alloc, ffn **out, lath_error *err)
{
    static const ffn_ops ops = {.name = "walk",
                                .memory_floats = walk_memory_floats,
                                .forward = walk_forward,
                                .describe = walk_describe,
                                .close = walk_close};
    int64_t most = 0;
    lath_status st = check_source(source, k, first, last, &most, err);
    ffn_walk *w = st == LATH_OK ? alloc_zero(alloc, sizeof(*w)) : NULL;
    if (st == LATH_OK && !w) st = err_nomem(err, sizeof(*w));
    if (st != LATH_OK) {
        if (source->close) source->close(source->ctx);
        return st;
    }
    *w = (ffn_walk){.base = {&ops}, .src = *source, .k = k > 0 ? k : 0, .most = most, .own = own, .alloc = alloc};
    *out = &w->base;
    return LATH_OK;
}
