/* SPDX-License-Identifier: Apache-2.0
 * ffn_dense.c: W2 fn(W1 x + b1) + b2 with all features (Vaswani et al. 2017, 3.3), or W2 (fn(Wg x) * (W1 x)) where there is a gate
 * (Shazeer 2020, "GLU Variants Improve Transformer"): gate and up run as one pass over x. */
#include "ffn/ffn.h"

static int64_t scratch_features(const ffn_dense *d) { return d->gated ? 2 * d->d_ff : d->d_ff; }

static size_t dense_memory_floats(const ffn *self, const backend_ops *ops, int64_t n_tok)
{
    return ops->view_floats(n_tok, scratch_features((const ffn_dense *)self));
}

static ffn_dense_layer *layer_at(const ffn_dense *d, int32_t layer)
{
    return (ffn_dense_layer *)(void *)(d->first + (size_t)layer * d->stride);
}

static bool dense_parts(ffn *self, int32_t layer, ffn_parts *out)
{
    const ffn_dense *d = (const ffn_dense *)self;
    ffn_dense_layer *l = layer_at(d, layer);
    *out =
        (ffn_parts){.gate = d->gated ? &l->gate : NULL, .up = &l->up, .down = &l->down, .fn = d->fn, .d_ff = d->d_ff};
    return true;
}

static lath_status dense_forward(ffn *self, const fwd *f, int32_t layer, view x, float *memory, view out)
{
    ffn_dense *d = (ffn_dense *)self;
    ffn_dense_layer *l = layer_at(d, layer);
    const backend_ops *ops = f->s->ops;
    view scratch = ops->make_view(memory, x.n_tok, scratch_features(d)), up = ops->slice(scratch, 0, d->d_ff);
    if (d->gated) {
        view gate = ops->slice(scratch, d->d_ff, d->d_ff);
        op_linear parts[] = {{&l->gate.w, l->gate.bias, KERN_FN_NONE, gate}, {&l->up.w, l->up.bias, KERN_FN_NONE, up}};
        TRY(ops->linear(f->s, x, parts, 2));
        TRY(ops->glu(f->s, d->fn, gate, up, up));
    } else {
        TRY(nn_linear(f, &l->up, d->fn, x, up));
    }
    TRY(trace_emit(f, TRACE_FFN_ACT, layer, up));
    ffn_note(f, layer, "dense", x.n_tok, x.n_tok * d->d_ff);
    return nn_linear(f, &l->down, KERN_FN_NONE, up, out);
}

void ffn_dense_init(ffn_dense *d, kern_fn fn, int64_t d_ff, bool gated, ffn_dense_layer *first, size_t stride)
{
    static const ffn_ops ops = {
        .name = "dense", .memory_floats = dense_memory_floats, .forward = dense_forward, .parts = dense_parts};
    d->base.ops = &ops;
    d->gated = gated;
    d->fn = fn;
    d->d_ff = d_ff;
    d->first = (char *)first;
    d->stride = stride;
}
