/* SPDX-License-Identifier: Apache-2.0
 *
 * inspect_trace.c: a run of one text whose values are kept. All tokens are one batch; hooks act first, then what they leave is read out. Memory is laid out, counted and
 * compared with the limit before anything runs:
 *
 *     the trace's   | start | final | of each layer: rows of its points, weights of attention, parts of hidden features |
 *     the run's     | activations of the forward | what the FFN works in | scratch of the workers |
 */
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "engine/inspect.h"

enum { ALIGN = 64 };
static const uint64_t MOST_BYTES = (uint64_t)4 << 30;
static const double ASK_SECONDS = 0.05;

/* --------------------------------------------------------------------------------------------------------------- options */

static lath_status check_rising(const char *what, const int32_t *list, size_t n, int64_t first, int64_t end,
                                lath_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (list[i] < first || list[i] >= end)
            return err_set(err, LATH_ERR_USAGE, "lath_trace_run: %s %d, there are %lld to %lld", what, list[i],
                           (long long)first, (long long)end - 1);
        if (i && list[i] <= list[i - 1])
            return err_set(err, LATH_ERR_USAGE, "lath_trace_run: %s %d behind %d: want them rising", what, list[i],
                           list[i - 1]);
    }
    return LATH_OK;
}

static lath_status check_start(const lath_model *m, const lath_trace_options *o, size_t n, lath_error *err)
{
    const int64_t d = m->arch.dims.d_model;
    if (!o->start && o->first_layer)
        return err_set(err, LATH_ERR_USAGE, "lath_trace_run: layer %d is the first: want the stream before it (start)",
                       o->first_layer);
    const int64_t bad = o->start ? m->rt->kern.first_nonfinite(DTYPE_F32, o->start, (int64_t)n * d) : -1;
    if (bad < 0) return LATH_OK;
    return err_item(err, LATH_ERR_INPUT, bad / d, "start: number %lld of position %lld is not finite",
                    (long long)(bad % d), (long long)(bad / d));
}

static lath_status check_objects(const lath_model *m, const lath_trace_options *o, size_t n, lath_error *err)
{
    if (o->hooks && o->hooks->model != m)
        return err_set(err, LATH_ERR_USAGE, "lath_trace_run: the hooks are of another model");
    if (o->ffn && o->ffn->model != m)
        return err_set(err, LATH_ERR_USAGE, "lath_trace_run: the FFN is of another model");
    return o->hooks ? hooks_check_positions(o->hooks, (int64_t)n, "the text has", err) : LATH_OK;
}

static lath_status check_options(const lath_model *m, const lath_trace_options *o, size_t n, lath_error *err)
{
    const int32_t layers = m->arch.dims.n_layers, end = o->end_layer ? o->end_layer : layers;
    if (o->struct_size != sizeof(*o)) return err_set(err, LATH_ERR_USAGE, "lath_trace_run: options of another version");
    if (o->first_layer < 0 || end > layers || o->first_layer >= end)
        return err_set(err, LATH_ERR_USAGE, "lath_trace_run: layers from %d up to %d, the model has %d", o->first_layer,
                       end, layers);
    if (o->what >= 2 * LATH_TRACE_INPUTS)
        return err_set(err, LATH_ERR_USAGE, "lath_trace_run: what: no such bits: %#x", o->what);
    if (o->positions && (o->all_positions || o->n_positions == 0))
        return err_set(err, LATH_ERR_USAGE, "lath_trace_run: positions: %s",
                       o->all_positions ? "a list and all of them" : "an empty list");
    if (o->positions) TRY(check_rising("position", o->positions, o->n_positions, 0, (int64_t)n, err));
    if (o->layers) TRY(check_rising("layer", o->layers, o->n_layers, o->first_layer, end, err));
    TRY(check_start(m, o, n, err));
    return check_objects(m, o, n, err);
}

static lath_status check_ids(const lath_model *m, const int32_t *ids, size_t n, lath_error *err)
{
    const arch_dims *d = &m->arch.dims;
    if (n > (size_t)d->max_positions)
        return err_set(err, LATH_ERR_WINDOW, "%zu tokens, the model's window is %d", n, d->max_positions);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= d->vocab_size)
            return err_item(err, LATH_ERR_INPUT, (int64_t)i, "token %zu: id %d, the model has %d embedding rows", i,
                            ids[i], d->vocab_size);
    return LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------------------- layout */

/* Places in one block, counted while base is NULL. */
typedef struct layout {
    char *base;
    size_t bytes;
    bool over;
} layout;

static void *take(layout *l, size_t count, size_t size)
{
    size_t n;
    void *p = l->base ? l->base + l->bytes : NULL;
    if (!size_mul(count, size, &n) || !size_add(n, ALIGN - 1, &n) || !size_add(l->bytes, n / ALIGN * ALIGN, &l->bytes))
        l->over = true;
    return p;
}

static float *take_rows(layout *l, const lath_trace *t, int64_t d)
{
    size_t n;
    if (!size_mul(t->n_positions, (size_t)d, &n)) l->over = true;
    return take(l, n, sizeof(float));
}

/* Hidden features of a layer that a position may have. */
static int64_t features_of(const arch_model *m, int32_t layer)
{
    ffn_parts p;
    if (ffn_get_parts(m->ffn, layer, &p)) return p.d_ff;
    const int64_t n = m->dims.n_top_experts * m->dims.d_expert + m->dims.d_shared;
    return n > m->dims.d_ff ? n : m->dims.d_ff;
}

/* Keys that a token of the text sees at most. */
static int64_t most_keys(const lath_trace *t, int32_t layer)
{
    const arch_model *m = &t->model->arch;
    const int64_t last = t->positions[t->n_positions - 1] + 1;
    int64_t window = 0;
    if (!m->desc->window || m->desc->window(m, layer, &window, NULL) != LATH_OK) return (int64_t)t->n;
    return window && window < last ? window : last;
}

static void lay_out_weights(layout *l, const lath_trace *t, int32_t layer)
{
    const arch_model *m = &t->model->arch;
    trace_layer *k = &t->layers[layer];
    size_t n;
    if (m->desc->recurrent && m->desc->recurrent(m, layer)) return;
    k->most_keys = most_keys(t, layer);
    if (!size_mul((size_t)k->n_heads, (size_t)k->most_keys, &n) || !size_mul(n, t->n_positions, &n)) l->over = true;
    k->weights = take(l, n, sizeof(float));
    k->first = take(l, t->n_positions, sizeof(int32_t));
    k->keys = take(l, t->n_positions, sizeof(int32_t));
}

static void lay_out_acts(layout *l, const lath_trace *t, trace_layer *k, bool chosen)
{
    size_t n;
    if (!size_mul(t->n_positions, (size_t)t->most_acts, &n)) l->over = true;
    k->acts = take(l, n, sizeof(*k->acts));
    k->n_acts = take(l, t->n_positions, sizeof(int32_t));
    if (chosen) k->features = (int32_t *)(void *)take_rows(l, t, k->d[TRACE_FFN_ACT]);
}

static void lay_out(layout *l, lath_trace *t, const lath_trace_options *o)
{
    const arch_model *m = &t->model->arch;
    const uint32_t streams = 1u << TRACE_ATTN_OUT | 1u << TRACE_MIDDLE | 1u << TRACE_FFN_OUT | 1u << TRACE_RESIDUAL,
                   inputs = t->what & LATH_TRACE_INPUTS ? 1u << TRACE_ATTN_IN | 1u << TRACE_FFN_IN : 0,
                   heads = t->what & LATH_TRACE_HEADS ? 1u << TRACE_HEADS : 0,
                   act = t->what & LATH_TRACE_ACTIVATIONS ? 1u << TRACE_FFN_ACT : 0;
    t->start = take_rows(l, t, m->dims.d_model);
    t->final = take_rows(l, t, m->dims.d_model);
    for (int32_t i = t->first_layer; i < t->end_layer; i++) {
        trace_layer *k = &t->layers[i];
        const uint32_t wants = k->kept                 ? streams | inputs | heads | act
                               : i == t->end_layer - 1 ? 1u << TRACE_RESIDUAL
                                                       : 0;
        for (int p = 0; p < TRACE_COUNT; p++) {
            k->d[p] = p == TRACE_HEADS     ? k->n_heads * inspect_head_size(m, i)
                      : p == TRACE_FFN_ACT ? features_of(m, i)
                                           : m->dims.d_model;
            if (wants & 1u << p) k->rows[p] = take_rows(l, t, k->d[p]);
        }
        if (k->kept && (t->what & LATH_TRACE_WEIGHTS)) lay_out_weights(l, t, i);
        if (k->kept && act) lay_out_acts(l, t, k, o->ffn || m->dims.d_ff == 0 || !m->ffn->ops->parts);
    }
}

/* ------------------------------------------------------------------------------------------------------------- the trace */

void lath_trace_close(lath_trace *t)
{
    if (!t) return;
    const lath_allocator *alloc = &t->model->rt->alloc;
    alloc_release(alloc, t->data, t->bytes);
    arena_deinit(&t->mem);
    alloc_release(alloc, t, sizeof(*t));
}

static void set_positions(lath_trace *t, const lath_trace_options *o)
{
    for (size_t i = 0; i < t->n; i++) t->kept_at[i] = -1;
    for (size_t i = 0; i < t->n_positions; i++) {
        t->positions[i] = o->positions ? o->positions[i] : (int32_t)(t->n - t->n_positions + i);
        t->kept_at[t->positions[i]] = (int32_t)i;
    }
}

static void set_layers(lath_trace *t, const lath_trace_options *o)
{
    const arch_model *m = &t->model->arch;
    t->first_layer = o->first_layer;
    t->end_layer = o->end_layer ? o->end_layer : m->dims.n_layers;
    for (size_t i = 0; i < o->n_layers && o->layers; i++) t->layers[o->layers[i]].kept = true;
    for (int32_t i = 0; i < m->dims.n_layers; i++) {
        trace_layer *k = &t->layers[i];
        if (!o->layers) k->kept = i >= t->first_layer && i < t->end_layer;
        k->n_heads = inspect_heads(m, i);
        t->n_kept += k->kept;
        if (k->n_heads > t->n_heads) t->n_heads = k->n_heads;
    }
    t->most_acts = m->dims.n_experts ? m->dims.n_top_experts + 1 : 1;
}

/* Everything but the rows. */
static lath_status begin_trace(lath_trace *t, const int32_t *ids, size_t n, const lath_trace_options *o,
                               lath_error *err)
{
    t->n = n;
    t->n_positions = o->positions ? o->n_positions : o->all_positions ? n : 1;
    t->what = o->what;
    t->ids = arena_array(&t->mem, n, sizeof(*t->ids));
    t->kept_at = arena_array(&t->mem, n, sizeof(*t->kept_at));
    t->positions = arena_array(&t->mem, t->n_positions, sizeof(*t->positions));
    t->layers = arena_array(&t->mem, (size_t)t->model->arch.dims.n_layers, sizeof(*t->layers));
    if (!t->ids || !t->kept_at || !t->positions || !t->layers) return err_nomem(err, n * sizeof(*ids));
    memcpy(t->ids, ids, n * sizeof(*ids));
    set_positions(t, o);
    set_layers(t, o);
    return LATH_OK;
}

/* --------------------------------------------------------------------------------------------------------------- keeping */

/* Rows of the positions. */
static lath_status keep_rows(const lath_trace *t, const fwd *f, view x, float *rows)
{
    if (t->n_positions == t->n) return f->s->ops->read_rows(f->s, x, 0, x.n_tok, rows);
    for (size_t i = 0; i < t->n_positions; i++)
        TRY(f->s->ops->read_rows(f->s, x, t->positions[i], 1, rows + (int64_t)i * x.d));
    return LATH_OK;
}

/* Row `row` of the event as one more part of position i. */
static lath_status keep_act(const lath_trace *t, const fwd *f, const trace_event *e, int64_t row, size_t i)
{
    trace_layer *k = &t->layers[e->layer];
    trace_act *acts = k->acts + i * (size_t)t->most_acts;
    const int64_t d = k->d[TRACE_FFN_ACT];
    int32_t *n = &k->n_acts[i];
    const int32_t at = *n ? acts[*n - 1].at + acts[*n - 1].n : 0;
    if (*n == t->most_acts || at + e->x.d > d || (e->feature && !k->features))
        return err_set(f->s->err, LATH_ERR_UNSUPPORTED, "layer %d: an FFN of more features than the model's: %lld",
                       e->layer, (long long)(at + e->x.d));
    acts[(*n)++] = (trace_act){e->expert, at, (int32_t)e->x.d, e->feature};
    if (e->feature) memcpy(k->features + (int64_t)i * d + at, e->feature, (size_t)e->x.d * sizeof(*e->feature));
    return f->s->ops->read_rows(f->s, e->x, row, 1, k->rows[TRACE_FFN_ACT] + (int64_t)i * d + at);
}

static lath_status keep_acts(const lath_trace *t, const fwd *f, const trace_event *e)
{
    for (int64_t r = 0; e->token && r < e->x.n_tok; r++) {
        const int32_t i = t->kept_at[e->token[r]];
        if (i >= 0) TRY(keep_act(t, f, e, r, (size_t)i));
    }
    for (size_t i = 0; !e->token && i < t->n_positions; i++) TRY(keep_act(t, f, e, t->positions[i], i));
    return LATH_OK;
}

static lath_status keep(lath_trace *t, const fwd *f, const trace_event *e)
{
    if (e->layer == t->first_layer - 1 && (e->point == TRACE_EMBED || e->point == TRACE_RESIDUAL))
        return keep_rows(t, f, e->x, t->start);
    if (e->point == TRACE_FINAL) {
        t->final_passed = true;
        return keep_rows(t, f, e->x, t->final);
    }
    trace_layer *k = &t->layers[e->layer];
    k->passed |= 1u << e->point;
    if (!k->rows[e->point]) return LATH_OK;
    return e->point == TRACE_FFN_ACT ? keep_acts(t, f, e) : keep_rows(t, f, e->x, k->rows[e->point]);
}

/* ------------------------------------------------------------------------------------------------------------------ run */

typedef struct trace_run {
    lath_trace *t;
    const lath_trace_options *o;
    stream s;
    packer pack;
    float *block, *ffn_memory;
    size_t bytes;
    double asked;
} trace_run;

static lath_status run_see(void *ctx, const fwd *f, trace_event *e)
{
    trace_run *r = ctx;
    if (r->o->start && e->layer == r->t->first_layer - 1 && (e->point == TRACE_EMBED || e->point == TRACE_RESIDUAL)) {
        e->changed = true;
        TRY(f->s->ops->write_rows(f->s, e->x, 0, e->x.n_tok, r->o->start));
    }
    if (r->o->hooks) TRY(hooks_see(r->o->hooks, f, e));
    return keep(r->t, f, e);
}

static lath_status run_attend(void *ctx, const fwd *f, int32_t layer, const op_attention *a)
{
    const lath_trace *t = ((trace_run *)ctx)->t;
    trace_layer *k = &t->layers[layer];
    if (!k->weights) return LATH_OK;
    for (size_t i = 0; i < t->n_positions; i++) {
        const int32_t at = t->positions[i];
        k->first[i] = a->begin[at];
        k->keys[i] = a->end[at] - a->begin[at];
        if (k->keys[i] > k->most_keys)
            return err_set(f->s->err, LATH_ERR_UNSUPPORTED, "layer %d: position %d sees %d tokens", layer, at,
                           k->keys[i]);
        TRY(f->s->ops->attention_weights(f->s, a, at, k->weights + (int64_t)i * k->n_heads * k->most_keys));
    }
    return LATH_OK;
}

static bool ask(void *ctx)
{
    trace_run *r = ctx;
    const double now = clock_now();
    if (now - r->asked < ASK_SECONDS) return false;
    r->asked = now;
    return r->o->progress(r->o->progress_ctx, 0, r->t->n) != 0;
}

/* Floats of the run's parts. */
static lath_status plan_run(trace_run *r, size_t parts[3], lath_error *err)
{
    const lath_model *m = r->t->model;
    const int64_t n = (int64_t)r->t->n;
    size_t floats = 0;
    r->s = (stream){.ops = m->rt->ops, .pool = m->rt->pool, .kern = &m->rt->kern, .err = err};
    r->s.integer = m->integer && m->arch.lm_head.w; /* as sessions do */
    r->s.limits = arch_limits(&m->arch, n, n);
    parts[0] = m->arch.desc->state_floats(&m->arch, r->s.ops, n);
    parts[1] = inspect_ffn_floats(r->o->ffn, r->s.ops, n);
    parts[2] = r->s.ops->scratch_floats(&r->s, &r->s.limits);
    for (int i = 0; i < 3; i++) {
        parts[i] = (parts[i] + 15) / 16 * 16;
        if (!size_add(floats, parts[i], &floats)) return err_nomem(err, SIZE_MAX);
    }
    return size_mul(floats, sizeof(float), &r->bytes) ? LATH_OK : err_nomem(err, SIZE_MAX);
}

static lath_status make_memory(trace_run *r, lath_error *err)
{
    lath_trace *t = r->t;
    const lath_allocator *alloc = &t->model->rt->alloc;
    const uint64_t most = r->o->max_bytes ? r->o->max_bytes : MOST_BYTES;
    size_t parts[3], all;
    layout l = {0};
    TRY(plan_run(r, parts, err));
    lay_out(&l, t, r->o);
    if (l.over || !size_add(l.bytes, r->bytes, &all)) return err_set(err, LATH_ERR_LIMIT, "the trace is too large");
    if (all > most)
        return err_set(err, LATH_ERR_LIMIT,
                       "the trace takes %.1f MiB and its run %.1f MiB, the limit is %.1f MiB (fewer positions, layers, "
                       "or less of what is kept)",
                       (double)l.bytes / 1048576, (double)r->bytes / 1048576, (double)most / 1048576);
    t->data = alloc_zero(alloc, l.bytes);
    if (!t->data) return err_nomem(err, l.bytes);
    t->bytes = l.bytes;
    l = (layout){.base = t->data};
    lay_out(&l, t, r->o);
    r->block = alloc_bytes(alloc, r->bytes, ALIGN);
    if (!r->block) return err_nomem(err, r->bytes);
    memset(r->block, 0, r->bytes);
    r->ffn_memory = r->block + parts[0];
    r->s.scratch = r->ffn_memory + parts[1];
    packer_init(&r->pack, alloc, &t->model->arch.dims);
    TRY(packer_grow(&r->pack, (int64_t)t->n, 1, err));
    packer_clear(&r->pack);
    packer_add(&r->pack, t->ids, NULL, (int64_t)t->n);
    return LATH_OK;
}

static lath_status forward(trace_run *r, lath_error *err)
{
    const lath_trace *t = r->t;
    const trace_sink sink = {.see = run_see, .attend = t->what & LATH_TRACE_WEIGHTS ? run_attend : NULL, .ctx = r};
    fwd f = {.s = &r->s,
             .b = &r->pack.b,
             .trace = &sink,
             .first_layer = t->first_layer,
             .end_layer = t->end_layer < t->model->arch.dims.n_layers ? t->end_layer : 0};
    view hidden;
    inspect_set_ffn(&f, r->o->ffn, r->ffn_memory);
    r->asked = clock_now();
    pool_enter_until(r->s.pool, r->o->progress ? ask : NULL, r);
    lath_status st = t->model->arch.desc->forward((arch_model *)&t->model->arch, &f, r->block, &hidden);
    pool_leave(r->s.pool);
    if (st == LATH_ERR_INTERRUPTED && (!err || err->status == LATH_OK))
        st = err_set(err, st, "interrupted in a run of %zu tokens", t->n);
    return st;
}

static lath_status check_finite(const lath_trace *t, lath_error *err)
{
    const int64_t d = t->model->arch.dims.d_model;
    const float *x = t->final_passed ? t->final : trace_stream(t, t->end_layer - 1, 0);
    const int64_t bad = t->model->rt->kern.first_nonfinite(DTYPE_F32, x, (int64_t)t->n_positions * d);
    if (bad < 0) return LATH_OK;
    return err_set(err, LATH_ERR_FORMAT,
                   "the stream behind the last layer is not finite at position %d: weights, or what was put into the "
                   "run, are out of range",
                   t->positions[bad / d]);
}

static lath_status run_trace(lath_trace *t, const lath_trace_options *o, lath_error *err)
{
    trace_run r = {.t = t, .o = o};
    const double begin = clock_now();
    lath_status st = make_memory(&r, err);
    if (st == LATH_OK && o->hooks) hooks_begin(o->hooks);
    if (st == LATH_OK) st = forward(&r, err);
    if (st == LATH_OK) st = check_finite(t, err);
    if (st == LATH_OK && o->hooks) st = hooks_check(o->hooks, err);
    t->seconds = clock_now() - begin;
    alloc_release(&t->model->rt->alloc, r.block, r.block ? r.bytes : 0);
    if (r.pack.alloc) packer_deinit(&r.pack);
    return st;
}

lath_status lath_trace_run(const lath_model *model, const int32_t *ids, size_t n, const lath_trace_options *opts,
                           lath_trace **out, lath_error *err)
{
    static const lath_trace_options defaults = LATH_TRACE_OPTIONS_INIT;
    err_clear(err);
    if (!model || !ids || !out || n == 0)
        return err_set(err, LATH_ERR_USAGE, "lath_trace_run: an argument is missing%s", n ? "" : " (no tokens)");
    if (!opts) opts = &defaults;
    TRY(check_ids(model, ids, n, err));
    TRY(check_options(model, opts, n, err));
    lath_trace *t = alloc_zero(&model->rt->alloc, sizeof(*t));
    if (!t) return err_nomem(err, sizeof(*t));
    t->model = model;
    arena_init(&t->mem, &model->rt->alloc);
    lath_status st = begin_trace(t, ids, n, opts, err);
    if (st == LATH_OK) st = run_trace(t, opts, err);
    if (st != LATH_OK)
        lath_trace_close(t);
    else
        *out = t;
    return st;
}
