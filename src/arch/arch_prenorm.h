/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_prenorm.h: stacks of pre-norm blocks with rotary positions and (mostly) a gated FFN: Llama, Mistral, Qwen, Gemma, ModernBERT. A family's file reads its
 * configuration into a prenorm_model and has the table of its weights; layers, masks and the one forward are here.
 */
#ifndef LATH_ARCH_PRENORM_H
#define LATH_ARCH_PRENORM_H

#include "arch/arch.h"
#include "arch/arch_rope.h"

typedef struct prenorm_layer {
    op_norm attn_norm, ffn_norm;           /* of what goes in; attn_norm may be absent in layer 0: see embed_norm */
    op_norm attn_post_norm, ffn_post_norm; /* of what comes out; absent for most */
    nn_attention_w attn;
    nn_delta_w delta; /* of the layers that recur, in its place */
    ffn_dense_layer ffn;
    ffn_moe_layer moe; /* of the layers that have experts, in its place */
} prenorm_layer;

/* What a layer sees: all, or a window; or what its state has kept of all. */
enum { PRENORM_FULL, PRENORM_SLIDING, PRENORM_N_KINDS, PRENORM_RECURS = PRENORM_N_KINDS };

typedef struct prenorm_model {
    weight embed;       /* [vocab, d_model] */
    weight lm_head;     /* [vocab, d_model]; absent where tied */
    op_norm embed_norm; /* of the embeddings; absent for most */
    op_norm final_norm;
    op_norm_kind norm_kind;
    double eps;
    float embed_scale, norm_offset; /* norms are of offset + weight */
    float residual_scale;           /* of what a block adds; 1: none */
    double attn_scale;
    float attn_softcap; /* of the scaled scores; 0: none */
    kern_fn fn;
    bool bidirectional;
    bool gated;     /* what attention gives is multiplied by a gate: nn_attention_w.gated */
    int64_t reach;  /* tokens that a token of a sliding layer sees behind it (and before it, where bidirectional) */
    uint8_t *kinds; /* [n_layers] */
    bool recurs;    /* layers that do not see all are gated delta nets */
    bool *unturned; /* [n_layers] layers without rotation; NULL: all have it */
    bool uses[PRENORM_N_KINDS];     /* some layer is of this kind */
    nn_rope ropes[PRENORM_N_KINDS]; /* by kind of layer */
    bool one_rope;                  /* both kinds turn by the same angles: those of PRENORM_FULL */
    bool *sparse;                   /* [n_layers] layers that have experts; NULL: none has */
    ffn_dense dense;
    ffn_moe moe; /* parse() sets `top` and `normalize` */
} prenorm_model;

/* "layer_types" into kinds; where it is absent, layer i slides (or recurs) if slides(ctx, i). */
lath_status prenorm_layer_kinds(arch_model *m, const json_value *config, const char *name,
                                bool (*slides)(int64_t ctx, int32_t layer), int64_t ctx, lath_error *err);

/* The parts of an arch_desc. */
lath_status prenorm_finish(arch_model *m, lath_error *err);
size_t prenorm_state_floats(const arch_model *m, const backend_ops *ops, int64_t n_tok);
bool prenorm_stale(const arch_model *m, int64_t kept, int64_t length);
int64_t prenorm_recurrent(const arch_model *m, int32_t layer);
lath_status prenorm_window(const arch_model *m, int32_t layer, int64_t *out, lath_error *err);
lath_status prenorm_forward(arch_model *m, const fwd *f, float *state, view *out);

#endif
