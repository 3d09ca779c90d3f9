/* SPDX-License-Identifier: Apache-2.0
 * ffn_dense.c: W2 fn(W1 x + b1) + b2 with all features (Vaswani et al. 2017, 3.3). */
#include "ffn/ffn.h"

static lath_status dense_forward(ffn *self, const fwd *f, int32_t layer, view x, view scratch, view out)
{
    ffn_dense *d = (ffn_dense *)self;
    ffn_dense_layer *l = (ffn_dense_layer *)(void *)(d->first + (size_t)layer * d->stride);
    TRY(nn_linear(f, &l->up, d->fn, x, scratch));
    return nn_linear(f, &l->down, KERN_FN_NONE, scratch, out);
}

void ffn_dense_init(ffn_dense *d, kern_fn fn, ffn_dense_layer *first, size_t stride)
{
    static const ffn_ops ops = {"dense", dense_forward};
    d->base.ops = &ops;
    d->fn = fn;
    d->first = (char *)first;
    d->stride = stride;
}
