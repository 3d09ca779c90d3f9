/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_phi3.c: Phi-3 and Phi-4 (Abdin et al. 2024): Llama whose queries, keys and values are one matrix, gate and up another one; a part of each head may
 * turn, longer texts by other frequencies (longrope).
 */
#include <string.h>

#include "arch/arch_decoder.h"

#define MODEL(field) offsetof(prenorm_model, field)
#define LAYER(field) offsetof(prenorm_layer, field)
#define N "layers.{}."
#define B "blk.{}."
static const arch_weight_row rows[] = {
    ARCH_MAT(MODEL(embed), "embed_tokens.weight", ARCH_VOCAB, ARCH_D_MODEL, .gguf = "token_embd.weight"),
    ARCH_MAT(MODEL(lm_head), "lm_head.weight", ARCH_VOCAB, ARCH_D_MODEL, .head = true, .gguf = "output.weight"),
    ARCH_VEC(MODEL(final_norm.gamma), "norm.weight", ARCH_D_MODEL, .gguf = "output_norm.weight"),
    ARCH_VEC(LAYER(attn_norm.gamma), N "input_layernorm.weight", ARCH_D_MODEL, .gguf = B "attn_norm.weight"),
    ARCH_VEC(LAYER(ffn_norm.gamma), N "post_attention_layernorm.weight", ARCH_D_MODEL, .gguf = B "ffn_norm.weight"),
    ARCH_MAT(LAYER(attn.q.w), N "self_attn.qkv_proj.weight", ARCH_D_Q, ARCH_D_MODEL, .stack = ARCH_QKV_Q,
             .gguf = B "attn_qkv.weight"),
    ARCH_MAT(LAYER(attn.k.w), N "self_attn.qkv_proj.weight", ARCH_D_KV, ARCH_D_MODEL, .stack = ARCH_QKV_K,
             .gguf = B "attn_qkv.weight"),
    ARCH_MAT(LAYER(attn.v.w), N "self_attn.qkv_proj.weight", ARCH_D_KV, ARCH_D_MODEL, .stack = ARCH_QKV_V,
             .gguf = B "attn_qkv.weight"),
    ARCH_MAT(LAYER(attn.o.w), N "self_attn.o_proj.weight", ARCH_D_MODEL, ARCH_D_Q, .gguf = B "attn_output.weight"),
    ARCH_MAT(LAYER(ffn.gate.w), N "mlp.gate_up_proj.weight", ARCH_D_FF, ARCH_D_MODEL, .stack = ARCH_FIRST_HALF,
             .gguf = B "ffn_up.weight"),
    ARCH_MAT(LAYER(ffn.up.w), N "mlp.gate_up_proj.weight", ARCH_D_FF, ARCH_D_MODEL, .stack = ARCH_SECOND_HALF,
             .gguf = B "ffn_up.weight"),
    ARCH_MAT(LAYER(ffn.down.w), N "mlp.down_proj.weight", ARCH_D_MODEL, ARCH_D_FF, .gguf = B "ffn_down.weight"),
};
#undef N
#undef B

static lath_status parse_phi3(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    prenorm_model *w = m->weights;
    const json_value *scaling = json_get(c, "rope_scaling");
    if (!json_present(scaling)) scaling = json_get(c, "rope_parameters");
    const char *const key = json_get(scaling, "rope_type") ? "rope_type" : "type";
    if (json_is_string(json_get(scaling, key),
                       "yarn")) /* what the oldest files call longrope, whose lists the reference takes then */
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: rope type \"yarn\" is not supported for Phi-3", name);
    w->eps = 1e-5; /* as the reference's default */
    TRY(decoder_parse(m, c, name, "hidden_act", 0, err));
    TRY(decoder_window(m, c, name, true, 0, err));
    return decoder_one_rope(m, c, name, 1e4, err);
}

extern const arch_desc arch_phi3;
const arch_desc arch_phi3 = DECODER_DESC_OF("phi3", parse_phi3, rows, sizeof(rows) / sizeof(rows[0]));
