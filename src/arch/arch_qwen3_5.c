/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_qwen3_5.c: Qwen3.5 and Qwen3-Next: three of four layers are gated delta nets (nn_delta), the others see all, with a gate behind attention and a part of
 * each head that turns. Norms are of 1 + weight, but that of a delta net's heads. Some have experts, one of which all tokens go through. Of models that see images
 * and videos, too, the text part: for text alone their three axes of positions are one.
 */
#include <math.h>

#include "arch/arch_decoder.h"

#define MODEL(field) offsetof(prenorm_model, field)
#define LAYER(field) offsetof(prenorm_layer, field)
#define N "layers.{}."
#define A "layers.{}.self_attn."
#define L "layers.{}.linear_attn."
#define F "layers.{}.mlp."
#define B "blk.{}."

/* Bits of a layer, beside those of arch_decoder.h: it sees all; it is a delta net, whose products (gates) are one by one, or mixed by heads. */
enum {
    HAS_ATTENTION = 1 << 16,
    HAS_DELTA = 1 << 17,
    HAS_PLAIN = 1 << 18,
    HAS_MIXED = 1 << 19,
    HAS_PLAIN_GATES = 1 << 20,
    HAS_MIXED_GATES = 1 << 21,
    HAS_SHARED = 1 << 22
};

static const arch_weight_row rows[] = {
    ARCH_MAT(MODEL(embed), "embed_tokens.weight", ARCH_VOCAB, ARCH_D_MODEL, .gguf = "token_embd.weight"),
    ARCH_MAT(MODEL(lm_head), "lm_head.weight", ARCH_VOCAB, ARCH_D_MODEL, .head = true, .gguf = "output.weight"),
    ARCH_VEC(MODEL(final_norm.gamma), "norm.weight", ARCH_D_MODEL, .gguf = "output_norm.weight"),
    ARCH_VEC(LAYER(attn_norm.gamma), N "input_layernorm.weight", ARCH_D_MODEL, .gguf = B "attn_norm.weight"),
    ARCH_VEC(LAYER(ffn_norm.gamma), N "post_attention_layernorm.weight", ARCH_D_MODEL,
             .gguf = B "post_attention_norm.weight"),

    ARCH_MAT(LAYER(attn.q.w), A "q_proj.weight", ARCH_D_Q_GATED, ARCH_D_MODEL, .when = HAS_ATTENTION,
             .gguf = B "attn_q.weight"),
    ARCH_MAT(LAYER(attn.k.w), A "k_proj.weight", ARCH_D_KV, ARCH_D_MODEL, .when = HAS_ATTENTION,
             .gguf = B "attn_k.weight"),
    ARCH_MAT(LAYER(attn.v.w), A "v_proj.weight", ARCH_D_KV, ARCH_D_MODEL, .when = HAS_ATTENTION,
             .gguf = B "attn_v.weight"),
    ARCH_MAT(LAYER(attn.o.w), A "o_proj.weight", ARCH_D_MODEL, ARCH_D_Q, .when = HAS_ATTENTION,
             .gguf = B "attn_output.weight"),
    ARCH_VEC(LAYER(attn.q.bias), A "q_proj.bias", ARCH_D_Q_GATED, .when = HAS_ATTENTION | DECODER_QKV_BIAS,
             .gguf = B "attn_q.bias"),
    ARCH_VEC(LAYER(attn.k.bias), A "k_proj.bias", ARCH_D_KV, .when = HAS_ATTENTION | DECODER_QKV_BIAS,
             .gguf = B "attn_k.bias"),
    ARCH_VEC(LAYER(attn.v.bias), A "v_proj.bias", ARCH_D_KV, .when = HAS_ATTENTION | DECODER_QKV_BIAS,
             .gguf = B "attn_v.bias"),
    ARCH_VEC(LAYER(attn.o.bias), A "o_proj.bias", ARCH_D_MODEL, .when = HAS_ATTENTION | DECODER_O_BIAS,
             .gguf = B "attn_output.bias"),
    ARCH_VEC(LAYER(attn.q_norm.gamma), A "q_norm.weight", ARCH_HEAD_DIM, .when = HAS_ATTENTION,
             .gguf = B "attn_q_norm.weight"),
    ARCH_VEC(LAYER(attn.k_norm.gamma), A "k_norm.weight", ARCH_HEAD_DIM, .when = HAS_ATTENTION,
             .gguf = B "attn_k_norm.weight"),

    ARCH_MAT(LAYER(delta.qkv.w), L "in_proj_qkv.weight", ARCH_D_CHANNELS, ARCH_D_MODEL, .when = HAS_DELTA | HAS_PLAIN,
             .gguf = B "attn_qkv.weight"),
    ARCH_MAT(LAYER(delta.z.w), L "in_proj_z.weight", ARCH_D_VALUES, ARCH_D_MODEL, .when = HAS_DELTA | HAS_PLAIN,
             .gguf = B "attn_gate.weight"),
    ARCH_MAT(LAYER(delta.b.w), L "in_proj_b.weight", ARCH_V_HEADS, ARCH_D_MODEL, .when = HAS_DELTA | HAS_PLAIN_GATES,
             .gguf = B "ssm_beta.weight"),
    ARCH_MAT(LAYER(delta.a.w), L "in_proj_a.weight", ARCH_V_HEADS, ARCH_D_MODEL, .when = HAS_DELTA | HAS_PLAIN_GATES,
             .gguf = B "ssm_alpha.weight"),
    ARCH_MAT(LAYER(delta.qkvz.w), L "in_proj_qkvz.weight", ARCH_D_MIXED, ARCH_D_MODEL, .when = HAS_DELTA | HAS_MIXED,
             .gguf = B "ssm_in.weight"),
    ARCH_MAT(LAYER(delta.ba.w), L "in_proj_ba.weight", ARCH_V_GATES, ARCH_D_MODEL, .when = HAS_DELTA | HAS_MIXED_GATES,
             .gguf = B "ssm_ba.weight"),
    ARCH_VEC(LAYER(delta.conv), L "conv1d.weight", ARCH_D_CHANNELS, .taps = true, .when = HAS_DELTA,
             .gguf = B "ssm_conv1d.weight"),
    ARCH_VEC(LAYER(delta.a_log), L "A_log", ARCH_V_HEADS, .when = HAS_DELTA, .gguf = B "ssm_a"),
    ARCH_VEC(LAYER(delta.dt), L "dt_bias", ARCH_V_HEADS, .when = HAS_DELTA, .gguf = B "ssm_dt.bias"),
    ARCH_VEC(LAYER(delta.norm.gamma), L "norm.weight", ARCH_D_V, .when = HAS_DELTA, .gguf = B "ssm_norm.weight"),
    ARCH_MAT(LAYER(delta.o.w), L "out_proj.weight", ARCH_D_MODEL, ARCH_D_VALUES, .when = HAS_DELTA,
             .gguf = B "ssm_out.weight"),

    ARCH_MAT(LAYER(ffn.gate.w), F "gate_proj.weight", ARCH_D_FF, ARCH_D_MODEL, .when = DECODER_DENSE,
             .gguf = B "ffn_gate.weight"),
    ARCH_MAT(LAYER(ffn.up.w), F "up_proj.weight", ARCH_D_FF, ARCH_D_MODEL, .when = DECODER_DENSE,
             .gguf = B "ffn_up.weight"),
    ARCH_MAT(LAYER(ffn.down.w), F "down_proj.weight", ARCH_D_MODEL, ARCH_D_FF, .when = DECODER_DENSE,
             .gguf = B "ffn_down.weight"),
    ARCH_MAT(LAYER(moe.router), F "gate.weight", ARCH_EXPERTS, ARCH_D_MODEL, .when = DECODER_MOE,
             .gguf = B "ffn_gate_inp.weight"),
    ARCH_MAT(LAYER(moe.gate), F "experts.{}.gate_proj.weight", ARCH_D_EXPERT, ARCH_D_MODEL, .when = DECODER_MOE,
             .experts = true, .hf_stacked = F "experts.gate_up_proj", .stacked = ARCH_FIRST_HALF,
             .gguf = B "ffn_gate_exps.weight"),
    ARCH_MAT(LAYER(moe.up), F "experts.{}.up_proj.weight", ARCH_D_EXPERT, ARCH_D_MODEL, .when = DECODER_MOE,
             .experts = true, .hf_stacked = F "experts.gate_up_proj", .stacked = ARCH_SECOND_HALF,
             .gguf = B "ffn_up_exps.weight"),
    ARCH_MAT(LAYER(moe.down), F "experts.{}.down_proj.weight", ARCH_D_MODEL, ARCH_D_EXPERT, .when = DECODER_MOE,
             .experts = true, .hf_stacked = F "experts.down_proj", .gguf = B "ffn_down_exps.weight"),
    ARCH_MAT(LAYER(moe.shared_router), F "shared_expert_gate.weight", ARCH_ONE, ARCH_D_MODEL,
             .when = DECODER_MOE | HAS_SHARED, .gguf = B "ffn_gate_inp_shexp.weight"),
    ARCH_MAT(LAYER(moe.shared.gate.w), F "shared_expert.gate_proj.weight", ARCH_D_SHARED, ARCH_D_MODEL,
             .when = DECODER_MOE | HAS_SHARED, .gguf = B "ffn_gate_shexp.weight"),
    ARCH_MAT(LAYER(moe.shared.up.w), F "shared_expert.up_proj.weight", ARCH_D_SHARED, ARCH_D_MODEL,
             .when = DECODER_MOE | HAS_SHARED, .gguf = B "ffn_up_shexp.weight"),
    ARCH_MAT(LAYER(moe.shared.down.w), F "shared_expert.down_proj.weight", ARCH_D_MODEL, ARCH_D_SHARED,
             .when = DECODER_MOE | HAS_SHARED, .gguf = B "ffn_down_shexp.weight"),
};

static uint32_t layer_has(const arch_model *m, int32_t layer)
{
    const prenorm_model *w = m->weights;
    return decoder_layer_has(m, layer) | (w->kinds[layer] == PRENORM_RECURS ? HAS_DELTA : HAS_ATTENTION);
}

/* -------------------------------------------------------------------------------------------------------- configuration */

static bool recurs(int64_t interval, int32_t layer) { return (layer + 1) % interval != 0; }

/* Sizes of the delta nets, and which layers are some. */
static lath_status parse_delta(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    arch_dims *d = &m->dims;
    int64_t n_k, n_v, width = 4, interval = 4;
    TRY(arch_want_size(c, "linear_num_key_heads", name, 1 << 12, &n_k, err));
    TRY(arch_want_size(c, "linear_num_value_heads", name, 1 << 12, &n_v, err));
    TRY(arch_want_size(c, "linear_key_head_dim", name, 1 << 12, &d->d_k, err));
    TRY(arch_want_size(c, "linear_value_head_dim", name, 1 << 12, &d->d_v, err));
    TRY(json_get_int(c, "linear_conv_kernel_dim", name, 2, KERN_CONV_WIDTH, &width, err));
    TRY(json_get_int(c, "full_attention_interval", name, 1, 1 << 16, &interval, err));
    if (n_v % n_k != 0)
        return err_set(err, LATH_ERR_FORMAT,
                       "%s: linear_num_value_heads %lld is no multiple of linear_num_key_heads %lld", name,
                       (long long)n_v, (long long)n_k);
    d->n_k_heads = (int32_t)n_k;
    d->n_v_heads = (int32_t)n_v;
    d->conv_width = (int32_t)width;
    return prenorm_layer_kinds(m, c, name, recurs, interval, err);
}

/* What the reference's classes have all alike; `keys`: of the sizes. */
static lath_status parse_hybrid(arch_model *m, const json_value *c, const char *name, const arch_size_keys *keys,
                                lath_error *err)
{
    prenorm_model *w = m->weights;
    bool gate = true;
    TRY(arch_read_flag(m, c, name, "attention_bias", false, DECODER_QKV_BIAS | DECODER_O_BIAS, err));
    TRY(decoder_parse_sizes(m, c, name, keys, "hidden_act", 0, err));
    TRY(json_get_bool(c, "attn_output_gate", name, &gate, err));
    if (!gate) return err_set(err, LATH_ERR_UNSUPPORTED, "%s: attn_output_gate false is not supported", name);
    if (w->fn != KERN_FN_SILU)
        return err_set(err, LATH_ERR_UNSUPPORTED,
                       "%s: hidden_act \"%s\" is not supported: it is that of the convolutions, too", name,
                       m->dims.activation);
    w->gated = w->recurs = true;
    w->norm_offset = 1;
    TRY(parse_delta(m, c, name, err));
    return decoder_partial_rope(m, c, name, 1e4, 0.25, err);
}

/* Experts in all layers that are not said to be dense, and one for all tokens. */
static lath_status parse_experts(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    int64_t shared = 512; /* as the reference's default; 0: there is none */
    ((prenorm_model *)m->weights)->moe.normalize = true;
    TRY(decoder_parse_experts(m, c, name, err));
    TRY(json_get_int(c, "shared_expert_intermediate_size", name, 0, 1 << 18, &shared, err));
    m->dims.d_shared = shared;
    if (shared) m->has |= HAS_SHARED;
    return LATH_OK;
}

static lath_status parse_qwen3_5(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    TRY(parse_hybrid(m, c, name, &arch_usual_keys, err));
    m->has |= HAS_PLAIN | HAS_PLAIN_GATES;
    return LATH_OK;
}

static lath_status parse_qwen3_5_moe(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    arch_size_keys keys = arch_usual_keys;
    if (!json_present(json_get(c, keys.d_ff))) keys.d_ff = "moe_intermediate_size"; /* no layer is dense */
    TRY(parse_hybrid(m, c, name, &keys, err));
    m->has |= HAS_PLAIN | HAS_PLAIN_GATES;
    return parse_experts(m, c, name, err);
}

static lath_status parse_qwen3_next(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    TRY(parse_hybrid(m, c, name, &arch_usual_keys, err));
    m->has |= HAS_MIXED_GATES | (m->stored & ARCH_STORED_SPLIT_Z ? HAS_PLAIN : HAS_MIXED);
    return parse_experts(m, c, name, err);
}

/* Of a model that sees images, too: "text_config". What is said outside about tied embeddings counts. */
static lath_status parse_outer(arch_model *m, const json_value *c, const char *name,
                               lath_status (*parse)(arch_model *m, const json_value *c, const char *name,
                                                    lath_error *err),
                               lath_error *err)
{
    const json_value *text = json_get(c, "text_config");
    if (!json_present(text) || text->kind != JSON_OBJECT)
        return err_set(err, LATH_ERR_FORMAT, "%s: want \"text_config\", an object", name);
    TRY(parse(m, text, name, err));
    return json_get_bool(c, "tie_word_embeddings", name, &m->lm_head.tied, err);
}

static lath_status parse_qwen3_5_outer(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    return parse_outer(m, c, name, parse_qwen3_5, err);
}

static lath_status parse_qwen3_5_moe_outer(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    return parse_outer(m, c, name, parse_qwen3_5_moe, err);
}

#define DESC(type, parse_function)                                                                            \
    {                                                                                                         \
        .name = (type), .prefixes = decoder_prefixes, .parse = (parse_function), .rows = rows,                \
        .n_rows = sizeof(rows) / sizeof(rows[0]), .model_size = sizeof(prenorm_model),                        \
        .layer_size = sizeof(prenorm_layer), .finish = prenorm_finish, .state_floats = prenorm_state_floats,  \
        .forward = prenorm_forward, .window = prenorm_window, .layer_has = layer_has, .stale = prenorm_stale, \
        .recurrent = prenorm_recurrent, .unused = decoder_unused                                              \
    }
extern const arch_desc arch_qwen3_next, arch_qwen3_5, arch_qwen3_5_text, arch_qwen3_5_moe, arch_qwen3_5_moe_text;
const arch_desc arch_qwen3_next = DESC("qwen3_next", parse_qwen3_next);
const arch_desc arch_qwen3_5 = DESC("qwen3_5", parse_qwen3_5_outer);
const arch_desc arch_qwen3_5_text = DESC("qwen3_5_text", parse_qwen3_5);
const arch_desc arch_qwen3_5_moe = DESC("qwen3_5_moe", parse_qwen3_5_moe_outer);
const arch_desc arch_qwen3_5_moe_text = DESC("qwen3_5_moe_text", parse_qwen3_5_moe);
