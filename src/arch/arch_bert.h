/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_bert.h: what the forward of BERT-like encoders (arch_bert.c) and the tables of the families that share it (arch_bert_families.c) know of
 * each other: the weights of a model, some of which a family does not have.
 */
#ifndef LATH_ARCH_BERT_H
#define LATH_ARCH_BERT_H

#include "arch/arch.h"

typedef struct bert_layer {
    nn_attention_w attn;
    op_norm attn_norm, ffn_norm;
    ffn_dense_layer ffn;
} bert_layer;

typedef struct bert_model {
    weight word; /* [vocab, d_embed] */
    weight position, type,
        task; /* [positions, d_embed], [types, d_embed], [task types, d_embed]; absent in families without */
    op_norm embed_norm;
    nn_linear_w project; /* [d_model, d_embed]; absent where the widths are the same */
    weight buckets;    /* [buckets, n_heads], what attention adds to a score by distance; absent in families without */
    const float *bias; /* made of it, as op_attention wants it, in the model's arena; NULL without */
    int64_t bias_reach;
    nn_rope rope; /* n_pairs 0: queries and keys are not turned */
    double eps;
    kern_fn fn;
    ffn_dense ffn;
} bert_model;

lath_status bert_finish(arch_model *m, lath_error *err);
size_t bert_state_floats(const arch_model *m, const backend_ops *ops, int64_t n_tok);
lath_status bert_forward(arch_model *m, const fwd *f, float *state, view *out);

/* A family: its symbol, model_type, prefixes of names, parse function and table. */
#define BERT_FAMILY(symbol, type, before, read, table) \
    extern const arch_desc symbol;                     \
    const arch_desc symbol = {                         \
        .name = (type),                                \
        .prefixes = (before),                          \
        .parse = (read),                               \
        .rows = (table),                               \
        .n_rows = sizeof(table) / sizeof((table)[0]),  \
        .model_size = sizeof(bert_model),              \
        .layer_size = sizeof(bert_layer),              \
        .finish = bert_finish,                         \
        .state_floats = bert_state_floats,             \
        .forward = bert_forward,                       \
    }

#endif
