/* SPDX-License-Identifier: Apache-2.0
 * inspect_trace_get.c: what a trace has kept, asked for by point, layer and position. */
#include <string.h>

#include "engine/inspect.h"

lath_status lath_trace_get_info(const lath_trace *t, lath_trace_info *out, lath_error *err)
{
    err_clear(err);
    if (!t || !out || out->struct_size != sizeof(*out))
        return err_set(err, LATH_ERR_USAGE, "lath_trace_get_info: %s",
                       t && out ? "a struct of another version" : "an argument is missing");
    const arch_model *m = &t->model->arch;
    *out = (lath_trace_info){.struct_size = sizeof(*out),
                             .n_tokens = t->n,
                             .n_positions = t->n_positions,
                             .ids = t->ids,
                             .positions = t->positions,
                             .what = t->what,
                             .n_layers = m->dims.n_layers,
                             .first_layer = t->first_layer,
                             .end_layer = t->end_layer,
                             .n_heads = t->n_heads,
                             .vocab_size = m->lm_head.w ? m->dims.vocab_size : 0,
                             .post_norm = !m->final_norm,
                             .d_model = m->dims.d_model,
                             .bytes = t->bytes,
                             .seconds = t->seconds};
    return LATH_OK;
}

lath_status trace_find(const lath_trace *t, int32_t position, const char *call, size_t *out, lath_error *err)
{
    if (position < 0 || (size_t)position >= t->n)
        return err_set(err, LATH_ERR_USAGE, "%s: position %d, the text has %zu tokens", call, position, t->n);
    if (t->kept_at[position] < 0) return err_set(err, LATH_ERR_USAGE, "%s: position %d was not kept", call, position);
    *out = (size_t)t->kept_at[position];
    return LATH_OK;
}

const float *trace_stream(const lath_trace *t, int32_t layer, size_t i)
{
    const float *rows = layer == t->first_layer - 1 ? t->start : t->layers[layer].rows[TRACE_RESIDUAL];
    return rows ? rows + (int64_t)i * t->model->arch.dims.d_model : NULL;
}

static lath_status say_not_kept(const char *call, trace_point point, int32_t layer, const char *why, lath_error *err)
{
    return err_set(err, LATH_ERR_USAGE, "%s: %s of layer %d %s", call, lath_point_name((lath_point)point), layer, why);
}

/* The layer's rows of the point are there. */
static lath_status check_point(const lath_trace *t, const char *call, trace_point point, int32_t layer, lath_error *err)
{
    if (layer < t->first_layer || layer >= t->end_layer)
        return err_set(err, LATH_ERR_USAGE, "%s: layer %d, there ran %d to %d", call, layer, t->first_layer,
                       t->end_layer - 1);
    if (!t->layers[layer].rows[point]) return say_not_kept(call, point, layer, "was not kept", err);
    return t->layers[layer].passed & 1u << point ? LATH_OK
                                                 : say_not_kept(call, point, layer, "was not passed in this run", err);
}

/* Of no layer: the beginning of the stream, or its end. */
static lath_status get_end(const lath_trace *t, bool final, size_t i, const float **row, lath_error *err)
{
    if (final && !t->final_passed)
        return err_set(err, LATH_ERR_USAGE, "lath_trace_get: final was not passed: %s",
                       t->end_layer < t->model->arch.dims.n_layers ? "the last layers did not run"
                                                                   : "the model has no norm behind its last layer");
    *row = (final ? t->final : t->start) + (int64_t)i * t->model->arch.dims.d_model;
    return LATH_OK;
}

lath_status lath_trace_get(const lath_trace *t, lath_point point, int32_t layer, int32_t position, const float **row,
                           size_t *d, lath_error *err)
{
    size_t i = 0;
    err_clear(err);
    if (!t || !row || !d || !lath_point_name(point))
        return err_set(err, LATH_ERR_USAGE, "lath_trace_get: %s",
                       t && row && d ? "no such point" : "an argument is missing");
    TRY(trace_find(t, position, "lath_trace_get", &i, err));
    *d = (size_t)t->model->arch.dims.d_model;
    const bool starts = (point == LATH_POINT_EMBED && t->first_layer == 0) ||
                        (point == LATH_POINT_RESIDUAL && layer == t->first_layer - 1);
    if (starts || point == LATH_POINT_FINAL) return get_end(t, !starts, i, row, err);
    if (point == LATH_POINT_FFN_ACT)
        return err_set(err, LATH_ERR_USAGE, "lath_trace_get: ffn_act has parts: lath_trace_get_act");
    if (point == LATH_POINT_EMBED)
        return err_set(err, LATH_ERR_USAGE, "lath_trace_get: embed was not passed: layer %d is the first",
                       t->first_layer);
    TRY(check_point(t, "lath_trace_get", (trace_point)point, layer, err));
    const trace_layer *k = &t->layers[layer];
    *d = (size_t)k->d[point];
    *row = k->rows[point] + i * *d;
    return LATH_OK;
}

static lath_status check_head(const char *call, const trace_layer *k, int32_t layer, int32_t head, lath_error *err)
{
    if (head >= 0 && head < k->n_heads) return LATH_OK;
    return err_set(err, LATH_ERR_USAGE, "%s: head %d, layer %d has 0 to %d", call, head, layer, k->n_heads - 1);
}

lath_status lath_trace_get_head(const lath_trace *t, int32_t layer, int32_t position, int32_t head, const float **row,
                                size_t *d, int32_t *n_heads, lath_error *err)
{
    size_t i = 0;
    err_clear(err);
    if (!t || !row || !d) return err_set(err, LATH_ERR_USAGE, "lath_trace_get_head: an argument is missing");
    TRY(trace_find(t, position, "lath_trace_get_head", &i, err));
    TRY(check_point(t, "lath_trace_get_head", TRACE_HEADS, layer, err));
    const trace_layer *k = &t->layers[layer];
    TRY(check_head("lath_trace_get_head", k, layer, head, err));
    *d = (size_t)(k->d[TRACE_HEADS] / k->n_heads);
    *row = k->rows[TRACE_HEADS] + (int64_t)i * k->d[TRACE_HEADS] + head * (int64_t)*d;
    if (n_heads) *n_heads = k->n_heads;
    return LATH_OK;
}

lath_status lath_trace_get_weights(const lath_trace *t, int32_t layer, int32_t position, int32_t head,
                                   const float **out, size_t *n, int32_t *first, lath_error *err)
{
    static const char call[] = "lath_trace_get_weights";
    size_t i = 0;
    err_clear(err);
    if (!t || !out || !n || !first) return err_set(err, LATH_ERR_USAGE, "%s: an argument is missing", call);
    TRY(trace_find(t, position, call, &i, err));
    TRY(check_point(t, call, TRACE_RESIDUAL, layer, err));
    const trace_layer *k = &t->layers[layer];
    if (!(t->what & LATH_TRACE_WEIGHTS) || !k->kept)
        return err_set(err, LATH_ERR_USAGE, "%s: those of layer %d were not kept", call, layer);
    if (!k->weights)
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: layer %d has no weights of attention: it keeps a state", call,
                       layer);
    TRY(check_head(call, k, layer, head, err));
    if (!k->keys[i]) return err_set(err, LATH_ERR_USAGE, "%s: attention of layer %d did not run", call, layer);
    *n = (size_t)k->keys[i];
    *first = k->first[i];
    *out = k->weights + (int64_t)i * k->n_heads * k->most_keys + head * (int64_t)*n;
    return LATH_OK;
}

lath_status lath_trace_get_act(const lath_trace *t, int32_t layer, int32_t position, size_t i, lath_act *out,
                               size_t *n_parts, lath_error *err)
{
    static const char call[] = "lath_trace_get_act";
    size_t at = 0;
    err_clear(err);
    if (!t || !out || out->struct_size != sizeof(*out))
        return err_set(err, LATH_ERR_USAGE, "%s: %s", call,
                       t && out ? "a struct of another version" : "an argument is missing");
    TRY(trace_find(t, position, call, &at, err));
    TRY(check_point(t, call, TRACE_FFN_ACT, layer, err));
    const trace_layer *k = &t->layers[layer];
    if (n_parts) *n_parts = (size_t)k->n_acts[at];
    if (i >= (size_t)k->n_acts[at])
        return err_set(err, LATH_ERR_USAGE, "%s: part %zu, position %d has %d in layer %d", call, i, position,
                       k->n_acts[at], layer);
    const trace_act *a = &k->acts[at * (size_t)t->most_acts + i];
    const int64_t first = (int64_t)at * k->d[TRACE_FFN_ACT] + a->at;
    *out = (lath_act){.struct_size = sizeof(*out),
                      .expert = a->expert,
                      .n = (size_t)a->n,
                      .values = k->rows[TRACE_FFN_ACT] + first,
                      .features = a->chosen ? k->features + first : NULL};
    return LATH_OK;
}

lath_status lath_calibrate_gains(const lath_model *model, const int32_t *ids, size_t n, float *gains, lath_error *err)
{
    lath_trace *t;
    err_clear(err);
    if (!gains) return err_set(err, LATH_ERR_USAGE, "lath_calibrate_gains: an argument is missing");
    TRY(lath_trace_run(model, ids, n, NULL, &t, err));
    double before = 0;
    for (int32_t i = -1; i < model->arch.dims.n_layers; i++) {
        const double norm = inspect_norm(trace_stream(t, i, 0), model->arch.dims.d_model);
        if (i >= 0) gains[i] = before > 0 ? (float)(norm / before) : 1;
        before = norm;
    }
    lath_trace_close(t);
    return LATH_OK;
}
