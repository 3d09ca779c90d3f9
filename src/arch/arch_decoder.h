/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_decoder.h: the pre-norm decoder with rotary embeddings, grouped queries and a gated FFN, which Llama, Mistral, Qwen and Gemma are.
 * A family's file reads its configuration into a decoder_model; the table of weights and the one forward are shared.
 */
#ifndef LATH_ARCH_DECODER_H
#define LATH_ARCH_DECODER_H

#include "arch/arch.h"
#include "arch/arch_rope.h"

/* Bits of arch_model.has. */
enum {
    DECODER_QKV_BIAS = 1,
    DECODER_O_BIAS = 2,
    DECODER_MLP_BIAS = 4,
    DECODER_QK_NORM = 8,
    DECODER_POST_NORMS = 16, /* norms of what attention and FFN give, too */
    DECODER_PRE_ONLY = 32    /* the norm before the FFN is called post_attention_layernorm */
};

typedef struct decoder_layer {
    op_norm attn_norm, ffn_norm;           /* of what goes in */
    op_norm attn_post_norm, ffn_post_norm; /* of what comes out; absent for most */
    nn_attention_w attn;
    ffn_dense_layer ffn;
} decoder_layer;

enum { DECODER_N_ROWS = 23 };
enum { DECODER_FULL, DECODER_SLIDING, DECODER_N_KINDS };

typedef struct decoder_model {
    weight embed; /* [vocab, d_model] */
    op_norm final_norm;
    double eps;
    float embed_scale, norm_offset; /* norms are of offset + weight */
    double attn_scale;
    kern_fn fn;
    bool bidirectional;
    int64_t
        reach; /* how many tokens behind it (and before it, where bidirectional) a token sees in a sliding layer; -1: none slides */
    uint8_t *kinds;                 /* [n_layers] DECODER_FULL, DECODER_SLIDING */
    bool uses[DECODER_N_KINDS];     /* some layer is of this kind */
    nn_rope ropes[DECODER_N_KINDS]; /* by kind of layer */
    bool one_rope;                  /* both kinds turn by the same angles */
    ffn_dense ffn;
} decoder_model;

/* Sizes, activation and what else every family names alike, into m->dims and m->weights. head_dim and n_kv_heads default to
 * d_model / n_heads and n_heads. */
lath_status decoder_parse(arch_model *m, const json_value *config, const char *name, const char *activation_key,
                          int64_t head_dim_default, lath_error *err);
/* "layer_types" into kinds; where it is absent, layer i slides if slides(ctx, i). */
lath_status decoder_layer_kinds(arch_model *m, const json_value *config, const char *name,
                                bool (*slides)(int64_t ctx, int32_t layer), int64_t ctx, lath_error *err);

/* The parts of an arch_desc. */
extern const arch_weight_row decoder_rows[];
extern const char *const decoder_prefixes[];
lath_status decoder_finish(arch_model *m, lath_error *err);
size_t decoder_state_floats(const arch_model *m, const backend_ops *ops, int64_t n_tok);
lath_status decoder_forward(arch_model *m, const fwd *f, float *state, view *out);

#define DECODER_DESC(type, parse_function)                                                                  \
    {                                                                                                       \
        .name = (type), .prefixes = decoder_prefixes, .parse = (parse_function), .rows = decoder_rows,      \
        .n_rows = DECODER_N_ROWS, .model_size = sizeof(decoder_model), .layer_size = sizeof(decoder_layer), \
        .finish = decoder_finish, .state_floats = decoder_state_floats, .forward = decoder_forward          \
    }

#endif
