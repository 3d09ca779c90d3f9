/* SPDX-License-Identifier: Apache-2.0
 * nn_delta.c: the gated delta net (Yang, Kautz and Hatamizadeh 2024): a layer that keeps a state of constant size in the place of keys and values. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "nn/nn.h"

static int64_t channels(const nn_delta_w *w) { return 2 * w->n_k_heads * w->d_k + w->n_v_heads * w->d_v; }
static int64_t d_values(const nn_delta_w *w) { return w->n_v_heads * w->d_v; }
/* Of what x is projected to: channels, z, gates. */
static int64_t in_width(const nn_delta_w *w) { return channels(w) + d_values(w) + 2 * (int64_t)w->n_v_heads; }

int64_t nn_delta_state_floats(const nn_delta_w *w)
{
    return (w->width - 1) * channels(w) + w->n_v_heads * w->d_k * w->d_v;
}

/* Rows in the order of the features: q of all heads, k, v, z, b, a. */
static lath_status init_pieces(nn_delta_w *w, arena *mem, lath_error *err)
{
    const int64_t d_qk = w->n_k_heads * w->d_k, d_v = d_values(w), at_z = channels(w), at_gates = at_z + d_v,
                  shared = w->n_v_heads / w->n_k_heads;
    const int64_t n_channels = channels(w), n_heads = w->n_v_heads, n_gates = 2 * n_heads, at_qkv = 0,
                  at_a = at_gates + n_heads;
    if (w->qkvz.w.t) {
        const int64_t size[] = {w->d_k, w->d_k, shared * w->d_v, shared * w->d_v}, at[] = {0, d_qk, 2 * d_qk, at_z};
        TRY(nn_pieces_add(&w->in, mem, &w->qkvz, w->n_k_heads, 4, size, at, err));
    } else {
        TRY(nn_pieces_add(&w->in, mem, &w->qkv, 1, 1, &n_channels, &at_qkv, err));
        TRY(nn_pieces_add(&w->in, mem, &w->z, 1, 1, &d_v, &at_z, err));
    }
    w->gate_group = w->ba.w.t ? shared : n_heads;
    if (w->ba.w.t) return nn_pieces_add(&w->in, mem, &w->ba, 1, 1, &n_gates, &at_gates, err);
    TRY(nn_pieces_add(&w->in, mem, &w->b, 1, 1, &n_heads, &at_gates, err));
    return nn_pieces_add(&w->in, mem, &w->a, 1, 1, &n_heads, &at_a, err);
}

/* x rsqrt(sum x^2 + 1e-6) `scale` as a norm of d features: with eps / d, and sqrt(d) less. */
static lath_status init_length(op_norm *n, arena *mem, int64_t d, double scale, lath_error *err)
{
    float *gamma = arena_array(mem, (size_t)d, sizeof(float));
    if (!gamma) return err_nomem(err, (size_t)d * sizeof(float));
    for (int64_t i = 0; i < d; i++) gamma[i] = (float)(scale / sqrt((double)d));
    *n = (op_norm){.kind = NORM_RMS, .gamma = {gamma, d}, .eps = (float)(1e-6 / (double)d)};
    return LATH_OK;
}

lath_status nn_delta_init(nn_delta_w *w, arena *mem, lath_error *err)
{
    const int64_t n = channels(w);
    TRY(init_pieces(w, mem, err));
    float *taps = arena_array(mem, (size_t)(n * w->width), sizeof(float));
    if (!taps) return err_nomem(err, (size_t)(n * w->width) * sizeof(float));
    for (int64_t f = 0; f < n; f++)
        for (int32_t i = 0; i < w->width; i++) taps[i * n + f] = w->conv.data[f * w->width + i];
    float *rate = arena_array(mem, (size_t)w->n_v_heads, sizeof(float));
    if (!rate) return err_nomem(err, (size_t)w->n_v_heads * sizeof(float));
    for (int32_t h = 0; h < w->n_v_heads; h++) {
        const double a = (double)w->a_log.data[h];
        rate[h] = w->decay ? w->a_log.data[h] : -(float)fmin(exp(a), (double)FLT_MAX);
    }
    w->taps = taps;
    w->rate = rate;
    TRY(init_length(&w->q_norm, mem, w->d_k, 1 / sqrt((double)w->d_k), err));
    return init_length(&w->k_norm, mem, w->d_k, 1, err);
}

size_t nn_delta_floats(const nn_delta_w *w, const backend_ops *ops, int64_t n_tok)
{
    return ops->view_floats(n_tok, in_width(w)) + ops->view_floats(n_tok, channels(w));
}

static lath_status norm_heads(const fwd *f, const op_norm *norm, int64_t n_heads, view x)
{
    const op_norm_args a = {.x = x, .norm = norm, .n_groups = n_heads, .y = x};
    return f->s->ops->norm(f->s, &a);
}

lath_status nn_delta(const fwd *f, nn_delta_w *w, int32_t layer, view x, float *memory, view out)
{
    float *state = f->recurrent ? f->recurrent[layer] : NULL;
    const backend_ops *ops = f->s->ops;
    const int64_t n_tok = x.n_tok, n = channels(w), d_qk = w->n_k_heads * w->d_k, d_v = d_values(w);
    const view in = ops->make_view(memory, n_tok, in_width(w)), raw = ops->slice(in, 0, n),
               mixed = ops->make_view(memory + ops->view_floats(n_tok, in_width(w)), n_tok, n);
    const view q = ops->slice(mixed, 0, d_qk), k = ops->slice(mixed, d_qk, d_qk),
               y = ops->slice(in, 0, d_v); /* in the place of what has been mixed */
    const op_sequences seq = {f->b->start, f->b->n_seq, f->b->past};
    const op_conv conv = {.x = raw, .y = mixed, .taps = w->taps, .width = w->width, .seq = seq, .kept = state};
    const op_delta delta = {
        .q = q,
        .k = k,
        .v = ops->slice(mixed, 2 * d_qk, d_v),
        .gates = ops->slice(in, n + d_v, 2 * (int64_t)w->n_v_heads),
        .gate_group = w->gate_group,
        .rate = w->rate,
        .dt = w->dt.data,
        .n_k_heads = w->n_k_heads,
        .n_v_heads = w->n_v_heads,
        .d_k = w->d_k,
        .d_v = w->d_v,
        .tiled = w->tiled,
        .seq = seq,
        .state = state ? state + (w->width - 1) * n : NULL,
        .y = y,
    };
    TRY(trace_emit(f, TRACE_ATTN_IN, layer, x));
    TRY(nn_project(f, &w->in, x, in));
    TRY(ops->conv(f->s, &conv));
    TRY(norm_heads(f, &w->q_norm, w->n_k_heads, q));
    TRY(norm_heads(f, &w->k_norm, w->n_k_heads, k));
    TRY(ops->delta(f->s, &delta));
    TRY(norm_heads(f, &w->norm, w->n_v_heads, y));
    TRY(ops->glu(f->s, KERN_FN_SILU, ops->slice(in, n, d_v), y, y));
    TRY(trace_emit_heads(f, layer, w->n_v_heads, y));
    return nn_linear(f, &w->o, KERN_FN_NONE, y, out);
}
