/* SPDX-License-Identifier: Apache-2.0
 *
 * inspect_hooks.c: hooks are a list; the forward's sink walks over it at each point. An edit of rows (steer, patch, ablate a position) touches its row only, one of a
 * whole point (ablate a layer or a head) is an op, and a function of the caller's gets plain rows and may have them written back.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/inspect.h"
#include "engine/session.h"

typedef enum hook_kind { HOOK_FUNCTION, HOOK_CLEAR, HOOK_CLEAR_HEAD, HOOK_ADD, HOOK_SET } hook_kind;

struct hook {
    hook_kind kind;
    trace_point point, other; /* of HOOK_CLEAR: both of them; else the same */
    int32_t layer;            /* LATH_LAYERS_ALL: all */
    int32_t position, head;
    float alpha;
    float *vector; /* [d_model] of ADD and SET */
    lath_hook_fn fn;
    void *ctx;
    uint64_t applied, before; /* rows; of them, those before the run that goes on */
};

/* ----------------------------------------------------------------------------------------------------------------- names */

static const bool replaceable[TRACE_COUNT] = {
#define TRACE(name, replace, text) [TRACE_##name] = replace,
#include "nn/trace.def"
#undef TRACE
};

#define TRACE(name, replace, text) \
    _Static_assert((int)TRACE_##name == (int)LATH_POINT_##name, "the public points are trace.def's");
#include "nn/trace.def"
#undef TRACE

const char *lath_point_name(lath_point point)
{
    static const char *const names[] = {"embed",  "attn_in", "heads",   "attn_out", "middle",
                                        "ffn_in", "ffn_act", "ffn_out", "residual", "final"};
    _Static_assert(sizeof(names) / sizeof(names[0]) == TRACE_COUNT, "every point has a name");
    return (int)point < 0 || (int)point >= TRACE_COUNT ? NULL : names[point];
}

int32_t inspect_heads(const arch_model *m, int32_t layer)
{
    return m->desc->recurrent && m->desc->recurrent(m, layer) ? m->dims.n_v_heads : m->dims.n_heads;
}

int64_t inspect_head_size(const arch_model *m, int32_t layer)
{
    return m->desc->recurrent && m->desc->recurrent(m, layer) ? m->dims.d_v : m->dims.head_dim;
}

/* ------------------------------------------------------------------------------------------------------------- the rows */

/* The position of row t of the event. Batches that are looked into have one sequence. */
static int32_t position_of(const fwd *f, const trace_event *e, int64_t t)
{
    return f->b->past + (e->token ? e->token[t] : (int32_t)t);
}

/* The row of the event that is the token at `position`, -1: none is. */
static int64_t row_of(const fwd *f, const trace_event *e, int32_t position)
{
    const batch *b = f->b;
    const int32_t last = (b->length ? b->length : b->past + (int32_t)b->n_tok) - 1;
    const int32_t token = (position == LATH_POSITION_LAST ? last : position) - b->past;
    if (!e->token) return token >= 0 && token < e->x.n_tok ? token : -1;
    for (int64_t t = 0; t < e->x.n_tok; t++)
        if (e->token[t] == token) return t;
    return -1;
}

/* *p: room for n things of `size`. */
static lath_status grow(const lath_allocator *alloc, void **p, size_t *cap, size_t n, size_t size, lath_error *err)
{
    if (n <= *cap) return LATH_OK;
    void *more = alloc_array(alloc, n, size);
    if (!more) return err_nomem(err, n * size);
    alloc_release(alloc, *p, *cap * size);
    *p = more;
    *cap = n;
    return LATH_OK;
}

static lath_status grow_rows(lath_hooks *h, size_t n, size_t d, lath_error *err)
{
    const lath_allocator *alloc = &h->model->rt->alloc;
    void *rows = h->rows, *positions = h->positions;
    lath_status st = grow(alloc, &rows, &h->rows_cap, n * d, sizeof(*h->rows), err);
    h->rows = rows;
    if (st == LATH_OK) st = grow(alloc, &positions, &h->positions_cap, n, sizeof(*h->positions), err);
    h->positions = positions;
    return st;
}

/* ---------------------------------------------------------------------------------------------------------------- acting */

/* "residual of layer 3" */
static const char *place(trace_point point, int32_t layer, char out[64])
{
    if (layer == LATH_LAYERS_ALL)
        snprintf(out, 64, "%s of every layer", lath_point_name((lath_point)point));
    else if (layer < 0)
        snprintf(out, 64, "%s", lath_point_name((lath_point)point));
    else
        snprintf(out, 64, "%s of layer %d", lath_point_name((lath_point)point), layer);
    return out;
}

static lath_status write_back(const lath_hooks *h, const fwd *f, trace_event *e, const lath_value *v, int64_t first)
{
    char at[64];
    stream *s = f->s;
    place(e->point, e->layer, at);
    if (!replaceable[e->point]) return err_set(s->err, LATH_ERR_USAGE, "a hook: %s can be seen only", at);
    const int64_t bad = s->kern->first_nonfinite(DTYPE_F32, h->rows, (int64_t)(v->n * v->d));
    if (bad >= 0)
        return err_set(s->err, LATH_ERR_INPUT, "a hook: %s: number %lld of position %d is not finite", at,
                       (long long)(bad % e->x.d), h->positions[bad / e->x.d]);
    e->changed = true;
    return s->ops->write_rows(s, e->x, first, (int64_t)v->n, h->rows);
}

/* A function sees n rows from `first` on. */
static lath_status call(lath_hooks *h, const hook *k, const fwd *f, trace_event *e, int64_t first, int64_t n)
{
    char at[64];
    stream *s = f->s;
    TRY(grow_rows(h, (size_t)n, (size_t)e->x.d, s->err));
    TRY(s->ops->read_rows(s, e->x, first, n, h->rows));
    for (int64_t t = 0; t < n; t++) h->positions[t] = position_of(f, e, first + t);
    lath_value v = {.struct_size = sizeof(v),
                    .point = (lath_point)e->point,
                    .layer = e->layer,
                    .expert = e->expert,
                    .n_heads = e->n_heads,
                    .n = (size_t)n,
                    .d = (size_t)e->x.d,
                    .positions = h->positions,
                    .features = e->feature,
                    .rows = h->rows};
    const int said = k->fn(k->ctx, &v);
    if (said == 0) return LATH_OK;
    if (said == 1) return write_back(h, f, e, &v, first);
    if (said < 0) return err_set(s->err, LATH_ERR_INTERRUPTED, "a hook stopped at %s", place(e->point, e->layer, at));
    return err_set(s->err, LATH_ERR_USAGE, "a hook: it returned %d at %s, want 0, 1 or less than 0", said,
                   place(e->point, e->layer, at));
}

/* row := row + alpha vector, or the vector */
static lath_status change_row(lath_hooks *h, const hook *k, const fwd *f, trace_event *e, int64_t row)
{
    stream *s = f->s;
    const int64_t d = e->x.d;
    e->changed = true;
    if (k->kind == HOOK_SET) return s->ops->write_rows(s, e->x, row, 1, k->vector);
    TRY(grow_rows(h, 1, (size_t)d, s->err));
    TRY(s->ops->read_rows(s, e->x, row, 1, h->rows));
    for (int64_t i = 0; i < d; i++) h->rows[i] += k->alpha * k->vector[i];
    return s->ops->write_rows(s, e->x, row, 1, h->rows);
}

static lath_status act(lath_hooks *h, hook *k, const fwd *f, trace_event *e)
{
    stream *s = f->s;
    const bool all = k->position == LATH_POSITION_ALL;
    const int64_t row = all ? 0 : row_of(f, e, k->position), n = all ? e->x.n_tok : 1;
    if (row < 0) return LATH_OK;
    k->applied += (uint64_t)n;
    if (k->kind == HOOK_FUNCTION) return call(h, k, f, e, row, n);
    if (k->kind == HOOK_ADD || k->kind == HOOK_SET) {
        for (int64_t t = row; t < row + n; t++) TRY(change_row(h, k, f, e, t));
        return LATH_OK;
    }
    const int64_t size = k->kind == HOOK_CLEAR_HEAD ? e->x.d / e->n_heads : e->x.d;
    e->changed = true;
    return s->ops->clear(s, s->ops->slice(e->x, k->head * size, size));
}

lath_status hooks_see(lath_hooks *h, const fwd *f, trace_event *e)
{
    for (size_t i = 0; i < h->n; i++) {
        hook *k = &h->list[i];
        if (e->point != k->point && e->point != k->other) continue;
        if (k->layer == e->layer || k->layer == LATH_LAYERS_ALL) TRY(act(h, k, f, e));
    }
    return LATH_OK;
}

static lath_status sink_see(void *ctx, const fwd *f, trace_event *e) { return hooks_see(ctx, f, e); }

/* ---------------------------------------------------------------------------------------------------------------- adding */

lath_status lath_hooks_create(const lath_model *model, lath_hooks **out, lath_error *err)
{
    err_clear(err);
    if (!model || !out) return err_set(err, LATH_ERR_USAGE, "lath_hooks_create: an argument is missing");
    lath_hooks *h = alloc_zero(&model->rt->alloc, sizeof(*h));
    if (!h) return err_nomem(err, sizeof(*h));
    h->model = model;
    h->sink = (trace_sink){.see = sink_see, .ctx = h};
    *out = h;
    return LATH_OK;
}

void lath_hooks_destroy(lath_hooks *h)
{
    if (!h) return;
    const lath_allocator *alloc = &h->model->rt->alloc;
    for (size_t i = 0; i < h->n; i++)
        alloc_release(alloc, h->list[i].vector, (size_t)h->model->arch.dims.d_model * sizeof(float));
    alloc_release(alloc, h->list, h->capacity * sizeof(*h->list));
    alloc_release(alloc, h->rows, h->rows_cap * sizeof(*h->rows));
    alloc_release(alloc, h->positions, h->positions_cap * sizeof(*h->positions));
    alloc_release(alloc, h, sizeof(*h));
}

static lath_status check_layer(const lath_hooks *h, const char *what, int32_t layer, int32_t least, lath_error *err)
{
    const int32_t n = h->model->arch.dims.n_layers;
    if (layer >= least && layer < n) return LATH_OK;
    return err_set(err, LATH_ERR_USAGE, "%s: layer %d, the model has %d to %d", what, layer, least, n - 1);
}

static lath_status check_position(const lath_hooks *h, const char *what, int32_t position, lath_error *err)
{
    const int32_t most = h->model->arch.dims.max_positions;
    if (position == LATH_POSITION_ALL || position == LATH_POSITION_LAST || (position >= 0 && position < most))
        return LATH_OK;
    return err_set(err, LATH_ERR_USAGE, "%s: position %d, the model's window has 0 to %d", what, position, most - 1);
}

/* Takes the vector, also when it fails. */
static lath_status add(lath_hooks *h, hook k, lath_error *err)
{
    const lath_allocator *alloc = &h->model->rt->alloc;
    if (h->n == h->capacity) {
        const size_t n = h->capacity ? 2 * h->capacity : 8;
        hook *list = alloc_array(alloc, n, sizeof(*list));
        if (!list) {
            alloc_release(alloc, k.vector, (size_t)h->model->arch.dims.d_model * sizeof(float));
            return err_nomem(err, n * sizeof(*list));
        }
        if (h->n) memcpy(list, h->list, h->n * sizeof(*list));
        alloc_release(alloc, h->list, h->capacity * sizeof(*list));
        h->list = list;
        h->capacity = n;
    }
    h->list[h->n++] = k;
    return LATH_OK;
}

lath_status lath_hooks_add(lath_hooks *h, lath_point point, int32_t layer, int32_t position, lath_hook_fn fn, void *ctx,
                           lath_error *err)
{
    err_clear(err);
    if (!h || !fn) return err_set(err, LATH_ERR_USAGE, "lath_hooks_add: an argument is missing");
    const char *name = lath_point_name(point);
    if (!name) return err_set(err, LATH_ERR_USAGE, "lath_hooks_add: no such point: %d", (int)point);
    if (point == LATH_POINT_RESIDUAL && layer == -1) point = LATH_POINT_EMBED;
    if (point == LATH_POINT_EMBED || point == LATH_POINT_FINAL) {
        if (layer != -1 && layer != LATH_LAYERS_ALL)
            return err_set(err, LATH_ERR_USAGE, "%s: layer %d, this point is of no layer (-1)", name, layer);
        layer = -1;
    } else if (layer != LATH_LAYERS_ALL) {
        TRY(check_layer(h, name, layer, 0, err));
    }
    if (point == LATH_POINT_FINAL && !h->model->arch.final_norm)
        return err_set(err, LATH_ERR_UNSUPPORTED, "final: a %s model has no norm behind its last layer",
                       h->model->arch.desc->name);
    TRY(check_position(h, name, position, err));
    return add(h,
               (hook){.kind = HOOK_FUNCTION,
                      .point = (trace_point)point,
                      .other = (trace_point)point,
                      .layer = layer,
                      .position = position,
                      .fn = fn,
                      .ctx = ctx},
               err);
}

lath_status lath_hooks_ablate_layer(lath_hooks *h, int32_t layer, lath_error *err)
{
    err_clear(err);
    if (!h) return err_set(err, LATH_ERR_USAGE, "lath_hooks_ablate_layer: an argument is missing");
    TRY(check_layer(h, "ablate", layer, 0, err));
    return add(h,
               (hook){.kind = HOOK_CLEAR,
                      .point = TRACE_ATTN_OUT,
                      .other = TRACE_FFN_OUT,
                      .layer = layer,
                      .position = LATH_POSITION_ALL},
               err);
}

lath_status lath_hooks_ablate_head(lath_hooks *h, int32_t layer, int32_t head, lath_error *err)
{
    err_clear(err);
    if (!h) return err_set(err, LATH_ERR_USAGE, "lath_hooks_ablate_head: an argument is missing");
    TRY(check_layer(h, "ablate", layer, 0, err));
    const int32_t n = inspect_heads(&h->model->arch, layer);
    if (head < 0 || head >= n)
        return err_set(err, LATH_ERR_USAGE, "ablate: head %d, layer %d has 0 to %d", head, layer, n - 1);
    return add(h,
               (hook){.kind = HOOK_CLEAR_HEAD,
                      .point = TRACE_HEADS,
                      .other = TRACE_HEADS,
                      .layer = layer,
                      .position = LATH_POSITION_ALL,
                      .head = head},
               err);
}

/* An edit of the stream behind a layer. vector NULL: 0. */
static lath_status edit_stream(lath_hooks *h, const char *what, hook_kind kind, int32_t layer, int32_t position,
                               const float *vector, float alpha, lath_error *err)
{
    const size_t bytes = (size_t)h->model->arch.dims.d_model * sizeof(float);
    TRY(check_layer(h, what, layer, -1, err));
    TRY(check_position(h, what, position, err));
    float *copy = alloc_zero(&h->model->rt->alloc, bytes);
    if (!copy) return err_nomem(err, bytes);
    if (vector) memcpy(copy, vector, bytes);
    const trace_point point = layer < 0 ? TRACE_EMBED : TRACE_RESIDUAL;
    return add(h,
               (hook){.kind = kind,
                      .point = point,
                      .other = point,
                      .layer = layer,
                      .position = position,
                      .alpha = alpha,
                      .vector = copy},
               err);
}

static lath_status check_vector(const lath_hooks *h, const char *what, const float *vector, size_t d, lath_error *err)
{
    const int64_t want = h->model->arch.dims.d_model;
    if ((int64_t)d != want)
        return err_set(err, LATH_ERR_INPUT, "%s: a vector of %zu numbers, the model has %lld", what, d,
                       (long long)want);
    const int64_t bad = h->model->rt->kern.first_nonfinite(DTYPE_F32, vector, want);
    return bad < 0 ? LATH_OK
                   : err_set(err, LATH_ERR_INPUT, "%s: number %lld of the vector is not finite", what, (long long)bad);
}

lath_status lath_hooks_ablate_position(lath_hooks *h, int32_t layer, int32_t position, lath_error *err)
{
    err_clear(err);
    if (!h) return err_set(err, LATH_ERR_USAGE, "lath_hooks_ablate_position: an argument is missing");
    return edit_stream(h, "ablate", HOOK_SET, layer, position, NULL, 0, err);
}

lath_status lath_hooks_steer(lath_hooks *h, int32_t layer, int32_t position, const float *vector, size_t d, float alpha,
                             lath_error *err)
{
    err_clear(err);
    if (!h || !vector) return err_set(err, LATH_ERR_USAGE, "lath_hooks_steer: an argument is missing");
    TRY(check_vector(h, "steer", vector, d, err));
    if (!isfinite(alpha)) return err_set(err, LATH_ERR_USAGE, "steer: alpha is not finite");
    for (size_t i = 0; i < d; i++)
        if (!isfinite(alpha * vector[i]))
            return err_set(err, LATH_ERR_INPUT, "steer: alpha times number %zu of the vector is too large for f32", i);
    return edit_stream(h, "steer", HOOK_ADD, layer, position, vector, alpha, err);
}

lath_status lath_hooks_patch(lath_hooks *h, int32_t layer, int32_t position, const float *vector, size_t d,
                             lath_error *err)
{
    err_clear(err);
    if (!h || !vector) return err_set(err, LATH_ERR_USAGE, "lath_hooks_patch: an argument is missing");
    TRY(check_vector(h, "patch", vector, d, err));
    return edit_stream(h, "patch", HOOK_SET, layer, position, vector, 1, err);
}

/* --------------------------------------------------------------------------------------------------------------- a run */

size_t lath_hooks_count(const lath_hooks *h) { return h->n; }

uint64_t lath_hooks_applied(const lath_hooks *h, size_t i) { return i < h->n ? h->list[i].applied : 0; }

void hooks_begin(lath_hooks *h)
{
    for (size_t i = 0; i < h->n; i++) h->list[i].before = h->list[i].applied;
}

static lath_status say_unused(const lath_hooks *h, size_t i, lath_error *err)
{
    char at[64], position[32] = "";
    const hook *k = &h->list[i];
    if (k->position >= 0) snprintf(position, sizeof(position), ", position %d", k->position);
    return err_set(err, LATH_ERR_USAGE, "hook %zu (%s%s) found nothing to act on: the run did not pass it", i,
                   place(k->point, k->layer, at), position);
}

lath_status hooks_check(const lath_hooks *h, lath_error *err)
{
    for (size_t i = 0; i < h->n; i++)
        if (h->list[i].applied == h->list[i].before) return say_unused(h, i, err);
    return LATH_OK;
}

lath_status lath_hooks_check(const lath_hooks *h, lath_error *err)
{
    err_clear(err);
    if (!h) return err_set(err, LATH_ERR_USAGE, "lath_hooks_check: an argument is missing");
    for (size_t i = 0; i < h->n; i++)
        if (h->list[i].applied == 0) return say_unused(h, i, err);
    return LATH_OK;
}

lath_status hooks_check_positions(const lath_hooks *h, int64_t n, const char *where, lath_error *err)
{
    char at[64];
    for (size_t i = 0; i < h->n; i++) {
        const hook *k = &h->list[i];
        if (k->position >= n)
            return err_set(err, LATH_ERR_USAGE, "%s: position %d: %s %lld tokens", place(k->point, k->layer, at),
                           k->position, where, (long long)n);
    }
    return LATH_OK;
}

lath_status lath_session_set_hooks(lath_session *s, lath_hooks *h, lath_error *err)
{
    err_clear(err);
    if (!s) return err_set(err, LATH_ERR_USAGE, "lath_session_set_hooks: a session is missing");
    if (h && h->model != s->model)
        return err_set(err, LATH_ERR_USAGE, "lath_session_set_hooks: the hooks are of another model");
    if (h) TRY(hooks_check_positions(h, s->ctx, "the session holds at most", err));
    s->trace = h ? &h->sink : NULL;
    return LATH_OK;
}
