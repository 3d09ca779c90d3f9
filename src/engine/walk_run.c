/* SPDX-License-Identifier: Apache-2.0
 *
 * walk_run.c: one text through a model whose FFNs are walked, and which features scored highest at its last token. What each FFN read is kept at its trace
 * point; the scores of the layers that are asked for are one product each, behind the run.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "engine/walk.h"

struct lath_walk {
    const lath_allocator *alloc;
    arena mem;
    int32_t n_layers, top;
    lath_walk_feature **layers; /* [n_layers] of [top]; NULL: not asked for */
    float *logits;
    size_t vocab;
    double seconds, ffn_seconds;
};

typedef struct walking {
    const lath_model *m;
    const vindex *x;
    lath_walk *w;
    const lath_walk_options *o;
    int32_t end_layer;
    ffn_walk_source source;
    ffn *ffn;
    packer pack;
    stream s;
    float *memory; /* | state | the walk's own | rows | logits, scores | scratch | */
    size_t bytes;
    float *ffn_memory, *rows, *out;
    ffn_took *took;
    int64_t n_tok;
} walking;

/* --------------------------------------------------------------------------------------------------------------- checks */

static lath_status check_layers(walking *k, lath_error *err)
{
    const lath_walk_options *o = k->o;
    const int32_t n = k->m->arch.dims.n_layers;
    k->end_layer = o->end_layer ? o->end_layer : n;
    if (o->first_layer < 0 || k->end_layer > n || o->first_layer >= k->end_layer)
        return err_set(err, LATH_ERR_USAGE, "layers %d to %d: the model has layers 0 to %d", o->first_layer,
                       k->end_layer - 1, n - 1);
    for (int32_t i = o->first_layer; i < k->end_layer; i++)
        if (o->top < 1 || o->top > vindex_features(k->x, i))
            return err_set(err, LATH_ERR_USAGE, "top %d: layer %d has %lld features", o->top, i,
                           (long long)vindex_features(k->x, i));
    return LATH_OK;
}

static lath_status check_ids(const lath_model *m, const int32_t *ids, size_t n, lath_error *err)
{
    if (n == 0) return err_set(err, LATH_ERR_INPUT, "no tokens");
    if (n > (size_t)m->max_tokens)
        return err_set(err, LATH_ERR_WINDOW, "%zu tokens, the model's window has %d", n, m->max_tokens);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= m->arch.dims.vocab_size)
            return err_set(err, LATH_ERR_INPUT, "token %zu: id %d, the model has %d embedding rows", i, ids[i],
                           m->arch.dims.vocab_size);
    return LATH_OK;
}

/* --------------------------------------------------------------------------------------------------------------- memory */

static int64_t widest(const vindex *x)
{
    int64_t n = vindex_get_facts(x)->vocab_size;
    for (int32_t i = 0; i < vindex_get_facts(x)->n_layers; i++)
        if (vindex_features(x, i) > n) n = vindex_features(x, i);
    return n;
}

/* The arena's parts of the result; the block of the run. */
static lath_status make_room(walking *k, lath_error *err)
{
    const arch_model *a = &k->m->arch;
    const backend_ops *ops = k->m->rt->ops;
    const int64_t n = k->n_tok, d = a->dims.d_model, most = widest(k->x);
    lath_walk *w = k->w;
    k->s = (stream){.ops = ops, .pool = k->m->rt->pool, .kern = &k->m->rt->kern, .err = err};
    k->s.limits = arch_limits(a, n, n);
    const size_t parts[] = {a->desc->state_floats(a, ops, n), ffn_memory_floats(k->ffn, ops, n),
                            ((size_t)(a->dims.n_layers * d) + 15) / 16 * 16,
                            ops->view_floats(1, d) + ops->view_floats(1, most) + ((size_t)most + 15) / 16 * 16,
                            ops->scratch_floats(&k->s, &k->s.limits)};
    size_t floats = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (!size_add(floats, parts[i], &floats)) return err_nomem(err, SIZE_MAX);
    if (!size_mul(floats, sizeof(float), &k->bytes)) return err_nomem(err, SIZE_MAX);
    k->memory = alloc_bytes(w->alloc, k->bytes, 64);
    w->logits = arena_array(&w->mem, (size_t)a->dims.vocab_size, sizeof(float));
    w->layers = arena_array(&w->mem, (size_t)a->dims.n_layers, sizeof(*w->layers));
    k->took = arena_array(&w->mem, (size_t)a->dims.n_layers, sizeof(*k->took));
    if (!k->memory || !w->logits || !w->layers || !k->took) return err_nomem(err, k->bytes);
    memset(k->memory, 0, k->bytes);
    k->ffn_memory = k->memory + parts[0];
    k->rows = k->ffn_memory + parts[1];
    k->out = k->rows + parts[2];
    k->s.scratch = k->out + parts[3];
    w->vocab = (size_t)a->dims.vocab_size;
    w->n_layers = a->dims.n_layers;
    w->top = k->o->top;
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------------ run */

/* A trace_sink.see: what the FFN reads at the last token. */
static lath_status see(void *ctx, const fwd *f, trace_event *e)
{
    walking *k = ctx;
    if (e->point != TRACE_FFN_IN) return LATH_OK;
    return f->s->ops->read_rows(f->s, e->x, e->x.n_tok - 1, 1, k->rows + e->layer * e->x.d);
}

/* The last token's logits, as one token. */
static lath_status last_logits(walking *k, const fwd *f, view hidden)
{
    const backend_ops *ops = k->s.ops;
    const arch_model *a = &k->m->arch;
    float *plain = k->out + ops->view_floats(1, hidden.d) + ops->view_floats(1, a->dims.vocab_size);
    const view x = ops->make_view(k->out, 1, hidden.d),
               y = ops->make_view(k->out + ops->view_floats(1, hidden.d), 1, a->dims.vocab_size);
    TRY(ops->read_rows(&k->s, hidden, hidden.n_tok - 1, 1, plain));
    TRY(ops->write_rows(&k->s, x, 0, 1, plain));
    TRY(arch_lm_head_forward(&a->lm_head, f, x, y));
    return ops->read_rows(&k->s, y, 0, 1, k->w->logits);
}

static int by_gate(const void *a, const void *b)
{
    const lath_walk_feature *x = a, *y = b;
    const float p = fabsf(x->gate), q = fabsf(y->gate);
    if (p != q) return p > q ? -1 : 1;
    return x->feature < y->feature ? -1 : x->feature > y->feature;
}

static void put_feature(const vindex *x, int32_t layer, int64_t feature, float gate, lath_walk_feature *out)
{
    const vindex_token *t = vindex_tokens(x, layer, feature);
    *out = (lath_walk_feature){.feature = feature, .gate = gate};
    for (; out->n_tokens < VINDEX_TOP && t[out->n_tokens].id >= 0 &&
           t[out->n_tokens].id < vindex_get_facts(x)->vocab_size;
         out->n_tokens++)
        out->tokens[out->n_tokens] = (lath_token_score){t[out->n_tokens].id, t[out->n_tokens].product};
}

/* Scores of one layer at the last token, and the highest of them. */
static lath_status fired(walking *k, int32_t layer, int32_t *chosen)
{
    const backend_ops *ops = k->s.ops;
    ffn_walk_layer *l = &k->source.layers[layer];
    const int64_t d = k->source.d_model;
    float *scores = k->out + ops->view_floats(1, d) + ops->view_floats(1, widest(k->x));
    const view x = ops->make_view(k->out, 1, d);
    const op_linear part = {ffn_walk_scores(l), l->gate_bias, KERN_FN_NONE,
                            ops->make_view(k->out + ops->view_floats(1, d), 1, l->features)};
    TRY(ops->write_rows(&k->s, x, 0, 1, k->rows + layer * d));
    TRY(ops->linear(&k->s, x, &part, 1));
    TRY(ops->read_rows(&k->s, part.y, 0, 1, scores));
    lath_walk_feature *out = arena_array(&k->w->mem, (size_t)k->o->top, sizeof(*out));
    if (!out) return err_nomem(k->s.err, (size_t)k->o->top * sizeof(*out));
    ffn_walk_choose(scores, l->features, k->o->top, chosen);
    for (int32_t i = 0; i < k->o->top; i++) put_feature(k->x, layer, chosen[i], scores[chosen[i]], &out[i]);
    qsort(out, (size_t)k->o->top, sizeof(*out), by_gate);
    k->w->layers[layer] = out;
    return LATH_OK;
}

static lath_status run(walking *k, lath_error *err)
{
    arch_model *a = (arch_model *)&k->m->arch;
    const trace_sink sink = {.see = see, .ctx = k};
    const fwd f = {
        .s = &k->s, .b = &k->pack.b, .trace = &sink, .ffn = k->ffn, .ffn_memory = k->ffn_memory, .took = k->took};
    view hidden;
    int32_t *chosen = arena_array(&k->w->mem, (size_t)k->o->top, sizeof(*chosen));
    if (!chosen) return err_nomem(err, (size_t)k->o->top * sizeof(*chosen));
    const double begin = clock_now();
    TRY(a->desc->forward(a, &f, k->memory, &hidden));
    TRY(last_logits(k, &f, hidden));
    k->w->seconds = clock_now() - begin;
    for (int32_t i = 0; i < a->dims.n_layers; i++) k->w->ffn_seconds += k->took[i].seconds;
    for (int32_t i = k->o->first_layer; i < k->end_layer; i++) TRY(fired(k, i, chosen));
    return LATH_OK;
}

static lath_status open_walk(walking *k, const int32_t *ids, size_t n, lath_error *err)
{
    const lath_model *m = k->m;
    TRY(vindex_need(k->x, VINDEX_INFERENCE, "cannot be walked", err));
    TRY(walk_check_model(k->x, m, err));
    if (!m->arch.lm_head.w) return err_set(err, LATH_ERR_UNSUPPORTED, "%s: no language model", m->path);
    TRY(check_layers(k, err));
    TRY(check_ids(m, ids, n, err));
    TRY(walk_source_make(k->x, &m->arch, walk_own(m), &k->w->mem, &k->source, err));
    TRY(ffn_walk_open(&k->source, k->o->k, 0, m->arch.dims.n_layers - 1, m->walk ? NULL : m->arch.ffn, k->w->alloc,
                      &k->ffn, err));
    TRY(packer_grow(&k->pack, k->n_tok, 1, err));
    packer_clear(&k->pack);
    packer_add(&k->pack, ids, NULL, k->n_tok);
    return make_room(k, err);
}

lath_status lath_walk_run(const lath_model *model, const lath_vindex *index, const int32_t *ids, size_t n,
                          const lath_walk_options *opts, lath_walk **out, lath_error *err)
{
    static const lath_walk_options defaults = LATH_WALK_OPTIONS_INIT;
    err_clear(err);
    if (!opts) opts = &defaults;
    if (!model || !index || !ids || !out) return err_set(err, LATH_ERR_USAGE, "lath_walk_run: an argument is missing");
    if (opts->struct_size != sizeof(*opts))
        return err_set(err, LATH_ERR_USAGE, "lath_walk_run: options of another version");
    if (opts->k < 0) return err_set(err, LATH_ERR_USAGE, "k of %lld: at least one feature", (long long)opts->k);
    const lath_allocator *alloc = &model->rt->alloc;
    lath_walk *w = alloc_zero(alloc, sizeof(*w));
    if (!w) return err_nomem(err, sizeof(*w));
    w->alloc = alloc;
    arena_init(&w->mem, alloc);
    walking k = {.m = model, .x = index->x, .w = w, .o = opts, .n_tok = (int64_t)n};
    packer_init(&k.pack, alloc, &model->arch.dims);
    lath_status st = open_walk(&k, ids, n, err);
    if (st == LATH_OK) {
        pool_enter(k.s.pool);
        st = run(&k, err);
        pool_leave(k.s.pool);
    }
    alloc_release(alloc, k.memory, k.bytes);
    ffn_close(k.ffn);
    packer_deinit(&k.pack);
    if (st == LATH_OK)
        *out = w;
    else
        lath_walk_close(w);
    return st;
}

void lath_walk_close(lath_walk *w)
{
    if (!w) return;
    arena_deinit(&w->mem);
    alloc_release(w->alloc, w, sizeof(*w));
}

const lath_walk_feature *lath_walk_get_layer(const lath_walk *w, int32_t layer, int32_t *n)
{
    const lath_walk_feature *l = layer >= 0 && layer < w->n_layers ? w->layers[layer] : NULL;
    *n = l ? w->top : 0;
    return l;
}

const float *lath_walk_get_logits(const lath_walk *w, size_t *n)
{
    *n = w->vocab;
    return w->logits;
}

double lath_walk_seconds(const lath_walk *w, double *of_ffns)
{
    if (of_ffns) *of_ffns = w->ffn_seconds;
    return w->seconds;
}
