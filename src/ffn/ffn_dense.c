/* SPDX-License-Identifier: Apache-2.0
 * ffn_dense.c: W2 fn(W1 x + b1) + b2 with all features (Vaswani et al. 2017, 3.3), or W2 (fn(Wg x) * (W1 x)) where there is a gate
 * (Shazeer 2020, "GLU Variants Improve Transformer"): gate and up run as one pass over x. */
#include "ffn/ffn.h"

size_t ffn_hidden_floats(const ffn_parts *p, const backend_ops *ops, int64_t n_tok)
{
    return ops->view_floats(n_tok, p->gate ? 2 * p->d_ff : p->d_ff);
}

lath_status ffn_hidden(const fwd *f, const ffn_parts *p, view x, float *memory, view *hidden)
{
    const backend_ops *ops = f->s->ops;
    const view all = ops->make_view(memory, x.n_tok, p->gate ? 2 * p->d_ff : p->d_ff), up = ops->slice(all, 0, p->d_ff);
    *hidden = up;
    if (!p->gate) return nn_linear(f, p->up, p->fn, x, up);
    const view gate = ops->slice(all, p->d_ff, p->d_ff);
    const op_linear parts[] = {{&p->gate->w, p->gate->bias, KERN_FN_NONE, gate},
                               {&p->up->w, p->up->bias, KERN_FN_NONE, up}};
    TRY(ops->linear(f->s, x, parts, 2));
    return ops->glu(f->s, p->fn, gate, up, up);
}

static ffn_parts parts_of(const ffn_dense *d, int32_t layer)
{
    ffn_dense_layer *l = (ffn_dense_layer *)(void *)(d->first + (size_t)layer * d->stride);
    return (ffn_parts){
        .gate = d->gated ? &l->gate : NULL, .up = &l->up, .down = &l->down, .fn = d->fn, .d_ff = d->d_ff};
}

static size_t dense_memory_floats(const ffn *self, const backend_ops *ops, int64_t n_tok)
{
    const ffn_parts p = parts_of((const ffn_dense *)self, 0);
    return ffn_hidden_floats(&p, ops, n_tok);
}

static bool dense_parts(ffn *self, int32_t layer, ffn_parts *out)
{
    *out = parts_of((const ffn_dense *)self, layer);
    return true;
}

static lath_status dense_forward(ffn *self, const fwd *f, int32_t layer, view x, float *memory, view out)
{
    const ffn_parts p = parts_of((const ffn_dense *)self, layer);
    view hidden;
    TRY(ffn_hidden(f, &p, x, memory, &hidden));
    TRY(trace_emit(f, TRACE_FFN_ACT, layer, hidden));
    ffn_note(f, layer, "dense", x.n_tok, x.n_tok * p.d_ff);
    return nn_linear(f, p.down, KERN_FN_NONE, hidden, out);
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
