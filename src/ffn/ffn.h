/* SPDX-License-Identifier: Apache-2.0
 *
 * ffn.h: the FFN of every layer behind one interface. A forward calls ffn_forward and knows nothing about how the values come about.
 */
#ifndef LATH_FFN_H
#define LATH_FFN_H

#include "nn/nn.h"

typedef struct ffn ffn;

typedef struct ffn_ops {
    const char *name; /* "dense" */
    /* out = FFN of `layer` at x. x, out: [n_tok, d_model], apart; scratch: [n_tok, self->scratch_features]. */
    lath_status (*forward)(ffn *self, const fwd *f, int32_t layer, view x, view scratch, view out);
} ffn_ops;

struct ffn {
    const ffn_ops *ops;
    int64_t scratch_features; /* of forward's scratch */
};

static inline lath_status ffn_forward(ffn *self, const fwd *f, int32_t layer, view x, view scratch, view out)
{
    return self->ops->forward(self, f, layer, x, scratch, out);
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
} ffn_dense;
void ffn_dense_init(ffn_dense *d, kern_fn fn, int64_t d_ff, ffn_dense_layer *first, size_t stride);

#endif
