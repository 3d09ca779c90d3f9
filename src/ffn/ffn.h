/* SPDX-License-Identifier: Apache-2.0
 *
 * ffn.h: the FFN of every layer behind one interface. A forward calls ffn_forward and knows nothing about how the values come about.
 */
#ifndef LATH_FFN_H
#define LATH_FFN_H

#include "base/buf.h"
#include "base/clock.h"
#include "nn/nn.h"

typedef struct ffn ffn;

/* The matrices of a layer that is one FFN of features. */
typedef struct ffn_parts {
    nn_linear_w *gate, *up, *down; /* [d_ff, d_model] or NULL: not gated, [d_ff, d_model], [d_model, d_ff] */
    kern_fn fn;
    int64_t d_ff;
} ffn_parts;

typedef struct ffn_ops {
    const char *name; /* "dense" */
    /* Floats of the memory that forward needs for n_tok tokens. */
    size_t (*memory_floats)(const ffn *self, const backend_ops *ops, int64_t n_tok);
    /* out = FFN of `layer` at x. x, out: [n_tok, d_model], apart. */
    lath_status (*forward)(ffn *self, const fwd *f, int32_t layer, view x, float *memory, view out);
    /* The layer's matrices, borrowed; false: it is not one FFN of features. NULL: of no layer. */
    bool (*parts)(ffn *self, int32_t layer, ffn_parts *out);
    /* What the layer's FFN is, for people: "walk of DIR, k=512". NULL: its name. */
    void (*describe)(const ffn *self, int32_t layer, buf *out);
    /* Nothing of the layer behind attention is to run: asked by architectures whose blocks do more with the FFN's sum than add it. NULL: all runs. */
    bool (*left_out)(const ffn *self, int32_t layer);
    /* Frees itself and what it owns. NULL: the model owns it. */
    void (*close)(ffn *self);
} ffn_ops;

struct ffn {
    const ffn_ops *ops;
};

static inline size_t ffn_memory_floats(const ffn *self, const backend_ops *ops, int64_t n_tok)
{
    return self->ops->memory_floats(self, ops, n_tok);
}
static inline lath_status ffn_forward(ffn *self, const fwd *f, int32_t layer, view x, float *memory, view out)
{
    return self->ops->forward(self, f, layer, x, memory, out);
}
static inline bool ffn_get_parts(ffn *self, int32_t layer, ffn_parts *out)
{
    return self->ops->parts && self->ops->parts(self, layer, out);
}

static inline void ffn_describe(const ffn *self, int32_t layer, buf *out)
{
    if (self->ops->describe)
        self->ops->describe(self, layer, out);
    else
        buf_str(out, self->ops->name);
}
/* self may be NULL. */
static inline void ffn_close(ffn *self)
{
    if (self && self->ops->close) self->ops->close(self);
}

/* `of` for those who close what they were given: whoever lends it closes it, after them. */
typedef struct ffn_borrowed {
    ffn base;
    ffn *of;
} ffn_borrowed;
void ffn_borrow(ffn_borrowed *b, ffn *of);

/* What the FFN of a layer did in a run. */
typedef struct ffn_took {
    const char *path; /* the last one; static */
    uint64_t calls, tokens;
    uint64_t features; /* that went into a result, of all tokens together */
    double seconds;    /* in the layer's FFN, whoever computed */
} ffn_took;
/* Said by whoever computes, not by who only passes on: n_tok tokens went through n_features in all. */
static inline void ffn_note(const fwd *f, int32_t layer, const char *path, int64_t n_tok, int64_t n_features)
{
    if (!f->took) return;
    ffn_took *t = &f->took[layer];
    t->path = path;
    t->calls++;
    t->tokens += (uint64_t)n_tok;
    t->features += (uint64_t)n_features;
}

/* The last path of the layer gets another name: that of whoever asked for it to be taken. */
static inline void ffn_note_path(const fwd *f, int32_t layer, const char *path)
{
    if (f->took) f->took[layer].path = path;
}

/* What a forward calls: the FFN of this run, f->ffn, in memory of its own, or else the model's `own` in `memory`. */
static inline lath_status ffn_run(const fwd *f, ffn *own, int32_t layer, view x, float *memory, view out)
{
    TRY(trace_emit(f, TRACE_FFN_IN, layer, x));
    const double begin = f->took ? clock_now() : 0;
    const lath_status st =
        f->ffn ? ffn_forward(f->ffn, f, layer, x, f->ffn_memory, out) : ffn_forward(own, f, layer, x, memory, out);
    if (f->took) f->took[layer].seconds += clock_now() - begin;
    return st;
}
/* The run leaves the FFN of the layer out, its norms included. */
static inline bool ffn_left_out(const fwd *f, int32_t layer)
{
    return f->ffn && f->ffn->ops->left_out && f->ffn->ops->left_out(f->ffn, layer);
}

/* All features: down(fn(up(x))) (Vaswani et al. 2017, 3.3), or down(fn(gate(x)) * up(x)) where there is a gate (Shazeer 2020). */
typedef struct ffn_dense_layer {
    nn_linear_w gate, up, down; /* [d_ff, d_model] or absent, [d_ff, d_model], [d_model, d_ff] */
} ffn_dense_layer;
typedef struct ffn_dense {
    ffn base;
    kern_fn fn;
    char *first;   /* ffn_dense_layer of layer 0, borrowed: a member of the architecture's layer struct */
    size_t stride; /* bytes from layer to layer */
    int64_t d_ff;
    bool gated;
} ffn_dense;
/* The hidden features of all tokens, [n_tok, d_ff] in `memory` of ffn_hidden_floats, before anybody has seen them. */
size_t ffn_hidden_floats(const ffn_parts *p, const backend_ops *ops, int64_t n_tok);
lath_status ffn_hidden(const fwd *f, const ffn_parts *p, view x, float *memory, view *hidden);
void ffn_dense_init(ffn_dense *d, kern_fn fn, int64_t d_ff, bool gated, ffn_dense_layer *first, size_t stride);

/* Mixture of experts (Shazeer et al. 2017): of E small gated FFNs each token takes the `top` that a router, a softmax over E, finds likeliest, weighted with
 * what the router gives them; `normalize`: so that they add up to 1. Only those are computed. Layers that are not sparse are another FFN's. What a
 * token gets does not depend on the others of its batch: it adds its experts in rising order. Some have one more expert that all tokens go through (Dai et al.
 * 2024), whose weight is a sigmoid of its own router. */
typedef struct ffn_moe_layer {
    weight router;            /* [E, d_model] */
    weight shared_router;     /* [1, d_model] */
    ffn_dense_layer shared;   /* hidden features: d_shared */
    weight *gate, *up, *down; /* [E] of [d_expert, d_model], [d_expert, d_model], [d_model, d_expert] */
} ffn_moe_layer;
typedef struct ffn_moe {
    ffn base;
    ffn *other;         /* of the layers that are not sparse */
    const bool *sparse; /* [n_layers] */
    char *first;        /* ffn_moe_layer of layer 0, borrowed: a member of the architecture's layer struct */
    size_t stride;      /* bytes from layer to layer */
    kern_fn fn;
    bool normalize;
    int32_t n_experts, top;              /* top <= n_experts */
    int64_t d_model, d_expert, d_shared; /* d_shared 0: no shared expert */
} ffn_moe;
/* Sets `base`; the caller sets the rest. */
void ffn_moe_init(ffn_moe *m);
/* The experts of a layer, borrowed; NULL: self is no mixture, or the layer is not sparse. */
const ffn_moe_layer *ffn_moe_get_layer(const ffn *self, int32_t layer, int32_t *n_experts);

#endif
