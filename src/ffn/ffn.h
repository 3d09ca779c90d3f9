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
    /* out = FFN of `layer` at x. x, out: [n_tok, d_model], apart; scratch: [n_tok, d_ff]. */
    lath_status (*forward)(ffn *self, const fwd *f, int32_t layer, view x, view scratch, view out);
} ffn_ops;

struct ffn {
    const ffn_ops *ops;
};

static inline lath_status ffn_forward(ffn *self, const fwd *f, int32_t layer, view x, view scratch, view out)
{
    return self->ops->forward(self, f, layer, x, scratch, out);
}

/* down(fn(up(x))): the plain two-matrix FFN. */
typedef struct ffn_dense_layer {
    nn_linear_w up, down; /* [d_ff, d_model], [d_model, d_ff] */
} ffn_dense_layer;
typedef struct ffn_dense {
    ffn base;
    kern_fn fn;
    char *
        first; /* ffn_dense_layer of layer 0, borrowed: a member of the architecture's layer struct, `stride` bytes from layer to layer */
    size_t stride;
} ffn_dense;
void ffn_dense_init(ffn_dense *d, kern_fn fn, ffn_dense_layer *first, size_t stride);

#endif
