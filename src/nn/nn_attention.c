/* SPDX-License-Identifier: Apache-2.0
 * nn_attention.c: softmax(Q K^T / sqrt(head_dim)) V and its projections (Vaswani et al. 2017). */
#include <math.h>

#include "nn/nn.h"

lath_status nn_attention_bidir(const fwd *f, nn_attention_w *w, view x, view qkv, view ctx, view out)
{
    const backend_ops *ops = f->s->ops;
    int64_t d = w->n_heads * w->head_dim;
    view q = ops->slice(qkv, 0, d), k = ops->slice(qkv, d, d), v = ops->slice(qkv, 2 * d, d); /* [n_tok, d] each */
    op_linear parts[] = {
        {&w->q.w, w->q.bias, KERN_FN_NONE, q},
        {&w->k.w, w->k.bias, KERN_FN_NONE, k},
        {&w->v.w, w->v.bias, KERN_FN_NONE, v},
    };
    TRY(ops->linear(f->s, x, parts, 3));
    op_attention a = {
        .q = q,
        .k = k,
        .v = v,
        .out = ctx,
        .n_heads = w->n_heads,
        .n_kv_heads = w->n_heads,
        .head_dim = w->head_dim,
        .begin = f->b->begin,
        .end = f->b->end,
        .scale = (float)(1.0 / sqrt((double)w->head_dim)),
    };
    TRY(ops->attention(f->s, &a));
    return nn_linear(f, &w->o, KERN_FN_NONE, ctx, out);
}
