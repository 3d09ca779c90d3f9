/* SPDX-License-Identifier: Apache-2.0
 * arch_decoder.c: the weights and sizes that Llama, Mistral, Qwen and Gemma name alike. */
#include "arch/arch_decoder.h"

#include <math.h>
#include <string.h>

#define MODEL(field) offsetof(prenorm_model, field)
#define LAYER(field) offsetof(prenorm_layer, field)
#define A "layers.{}.self_attn."
#define F "layers.{}.mlp."
#define N "layers.{}."
#define B "blk.{}."
const arch_weight_row decoder_rows[] = {
    ARCH_MAT(MODEL(embed), "embed_tokens.weight", ARCH_VOCAB, ARCH_D_MODEL, .gguf = "token_embd.weight"),
    ARCH_MAT(MODEL(lm_head), "lm_head.weight", ARCH_VOCAB, ARCH_D_MODEL, .head = true, .gguf = "output.weight"),
    ARCH_VEC(MODEL(final_norm.gamma), "norm.weight", ARCH_D_MODEL, .gguf = "output_norm.weight"),
    ARCH_VEC(LAYER(attn_norm.gamma), N "input_layernorm.weight", ARCH_D_MODEL, .gguf = B "attn_norm.weight"),
    ARCH_VEC(LAYER(ffn_norm.gamma), N "post_attention_layernorm.weight", ARCH_D_MODEL, .when = DECODER_PRE_ONLY,
             .gguf = B "ffn_norm.weight"),
    ARCH_VEC(LAYER(attn_post_norm.gamma), N "post_attention_layernorm.weight", ARCH_D_MODEL, .when = DECODER_POST_NORMS,
             .gguf = B "post_attention_norm.weight"),
    ARCH_VEC(LAYER(ffn_norm.gamma), N "pre_feedforward_layernorm.weight", ARCH_D_MODEL, .when = DECODER_POST_NORMS,
             .gguf = B "ffn_norm.weight"),
    ARCH_VEC(LAYER(ffn_post_norm.gamma), N "post_feedforward_layernorm.weight", ARCH_D_MODEL,
             .when = DECODER_POST_NORMS, .gguf = B "post_ffw_norm.weight"),
    ARCH_MAT(LAYER(attn.q.w), A "q_proj.weight", ARCH_D_Q, ARCH_D_MODEL, .gguf = B "attn_q.weight"),
    ARCH_MAT(LAYER(attn.k.w), A "k_proj.weight", ARCH_D_KV, ARCH_D_MODEL, .gguf = B "attn_k.weight"),
    ARCH_MAT(LAYER(attn.v.w), A "v_proj.weight", ARCH_D_KV, ARCH_D_MODEL, .gguf = B "attn_v.weight"),
    ARCH_MAT(LAYER(attn.o.w), A "o_proj.weight", ARCH_D_MODEL, ARCH_D_Q, .gguf = B "attn_output.weight"),
    ARCH_VEC(LAYER(attn.q.bias), A "q_proj.bias", ARCH_D_Q, .when = DECODER_QKV_BIAS, .gguf = B "attn_q.bias"),
    ARCH_VEC(LAYER(attn.k.bias), A "k_proj.bias", ARCH_D_KV, .when = DECODER_QKV_BIAS, .gguf = B "attn_k.bias"),
    ARCH_VEC(LAYER(attn.v.bias), A "v_proj.bias", ARCH_D_KV, .when = DECODER_QKV_BIAS, .gguf = B "attn_v.bias"),
    ARCH_VEC(LAYER(attn.o.bias), A "o_proj.bias", ARCH_D_MODEL, .when = DECODER_O_BIAS, .gguf = B "attn_output.bias"),
    ARCH_VEC(LAYER(attn.q_norm.gamma), A "q_norm.weight", ARCH_HEAD_DIM, .when = DECODER_QK_NORM,
             .gguf = B "attn_q_norm.weight"),
    ARCH_VEC(LAYER(attn.k_norm.gamma), A "k_norm.weight", ARCH_HEAD_DIM, .when = DECODER_QK_NORM,
             .gguf = B "attn_k_norm.weight"),
    ARCH_MAT(LAYER(ffn.gate.w), F "gate_proj.weight", ARCH_D_FF, ARCH_D_MODEL, .when = DECODER_DENSE,
             .gguf = B "ffn_gate.weight"),
    ARCH_MAT(LAYER(ffn.up.w), F "up_proj.weight", ARCH_D_FF, ARCH_D_MODEL, .when = DECODER_DENSE,
             .gguf = B "ffn_up.weight"),
    ARCH_MAT(LAYER(ffn.down.w), F "down_proj.weight", ARCH_D_MODEL, ARCH_D_FF, .when = DECODER_DENSE,
             .gguf = B "ffn_down.weight"),
    ARCH_VEC(LAYER(ffn.gate.bias), F "gate_proj.bias", ARCH_D_FF, .when = DECODER_MLP_BIAS, .gguf = B "ffn_gate.bias"),
    ARCH_VEC(LAYER(ffn.up.bias), F "up_proj.bias", ARCH_D_FF, .when = DECODER_MLP_BIAS, .gguf = B "ffn_up.bias"),
    ARCH_VEC(LAYER(ffn.down.bias), F "down_proj.bias", ARCH_D_MODEL, .when = DECODER_MLP_BIAS,
             .gguf = B "ffn_down.bias"),
    ARCH_MAT(LAYER(moe.router), F "gate.weight", ARCH_EXPERTS, ARCH_D_MODEL, .when = DECODER_MOE,
             .gguf = B "ffn_gate_inp.weight"),
    ARCH_MAT(LAYER(moe.gate), F "experts.{}.gate_proj.weight", ARCH_D_EXPERT, ARCH_D_MODEL, .when = DECODER_MOE,
             .experts = true, .gguf = B "ffn_gate_exps.weight"),
    ARCH_MAT(LAYER(moe.up), F "experts.{}.up_proj.weight", ARCH_D_EXPERT, ARCH_D_MODEL, .when = DECODER_MOE,
             .experts = true, .gguf = B "ffn_up_exps.weight"),
    ARCH_MAT(LAYER(moe.down), F "experts.{}.down_proj.weight", ARCH_D_MODEL, ARCH_D_EXPERT, .when = DECODER_MOE,
             .experts = true, .gguf = B "ffn_down_exps.weight"),
};
#undef A
#undef F
#undef N
#undef B
_Static_assert(sizeof(decoder_rows) / sizeof(decoder_rows[0]) == DECODER_N_ROWS, "DECODER_N_ROWS");
const char *const decoder_prefixes[] = {"model.", "", "language_model.model.", "model.language_model.", NULL};

/* Of models that see images, too (Gemma 3, Qwen3.5), and of those that guess several tokens at once. */
const arch_unused decoder_unused[] = {
    {"vision tower", {"model.visual.", "visual.", "vision_tower.", "model.vision_tower."}},
    {"projector of images", {"multi_modal_projector.", "model.multi_modal_projector."}},
    {"MTP head", {"mtp.", "model.mtp.", "blk.{}."}},
    {NULL, {NULL}},
};

uint32_t decoder_layer_has(const arch_model *m, int32_t layer)
{
    const prenorm_model *w = m->weights;
    return m->has | (w->sparse && w->sparse[layer] ? DECODER_MOE : DECODER_DENSE);
}

/* -------------------------------------------------------------------------------------------------------- configuration */

lath_status decoder_parse(arch_model *m, const json_value *c, const char *name, const char *activation_key,
                          int64_t head_dim_default, lath_error *err)
{
    return decoder_parse_sizes(m, c, name, &arch_usual_keys, activation_key, head_dim_default, err);
}

lath_status decoder_parse_sizes(arch_model *m, const json_value *c, const char *name, const arch_size_keys *keys,
                                const char *activation_key, int64_t head_dim_default, lath_error *err)
{
    prenorm_model *w = m->weights;
    arch_dims *d = &m->dims;
    int64_t kv = 0, head_dim = 0;
    bool causal = true;
    TRY(arch_read_sizes(c, name, keys, INT32_MAX / 2, d, err));
    TRY(json_get_int(c, "num_key_value_heads", name, 1, 1 << 12, &kv, err));
    TRY(json_get_int(c, "head_dim", name, 1, 1 << 12, &head_dim, err));
    if (kv == 0) kv = d->n_heads;
    if (head_dim == 0) head_dim = head_dim_default ? head_dim_default : d->head_dim;
    if (head_dim == 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: hidden_size %lld is no multiple of num_attention_heads %d", name,
                       (long long)d->d_model, d->n_heads);
    if (d->n_heads % kv != 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: num_attention_heads %d is no multiple of num_key_value_heads %lld",
                       name, d->n_heads, (long long)kv);
    d->n_kv_heads = (int32_t)kv;
    d->head_dim = head_dim;
    w->norm_kind = NORM_RMS;
    if (w->eps == 0) w->eps = 1e-6;
    TRY(arch_read_eps(c, name, "rms_norm_eps", &w->eps, err));
    /* "hidden_act" is the older name of Gemma's. */
    const char *key = json_present(json_get(c, activation_key)) ? activation_key : "hidden_act";
    TRY(arch_read_activation(m, c, name, key, NULL, &w->fn, err));
    TRY(json_get_bool(c, "is_causal", name, &causal, err));
    TRY(json_get_bool(c, "tie_word_embeddings", name, &m->lm_head.tied, err));
    m->lm_head.scale = 1;
    w->bidirectional = !causal;
    w->reach = -1;
    w->embed_scale = w->residual_scale = 1;
    w->attn_scale = 1 / sqrt((double)head_dim);
    return LATH_OK;
}

lath_status decoder_one_rope(arch_model *m, const json_value *c, const char *name, double theta, lath_error *err)
{
    return decoder_partial_rope(m, c, name, theta, 0, err);
}

lath_status decoder_partial_rope(arch_model *m, const json_value *c, const char *name, double theta, double partial,
                                 lath_error *err)
{
    prenorm_model *w = m->weights;
    const arch_rope_spec spec = {
        .theta_key = "rope_theta",
        .scaled = true,
        .theta = theta,
        .partial = partial,
        .head_dim = m->dims.head_dim,
        .max_positions = m->dims.max_positions,
    };
    TRY(arch_rope_parse(c, name, &spec, m->mem, &w->ropes[PRENORM_FULL], err));
    w->ropes[PRENORM_SLIDING] = w->ropes[PRENORM_FULL];
    w->one_rope = true;
    const int64_t longest = w->ropes[PRENORM_FULL].longest;
    if (longest > m->dims.max_positions) m->dims.max_positions = (int32_t)longest;
    return LATH_OK;
}

static bool from_layer(int64_t first, int32_t layer) { return layer >= first; }

lath_status decoder_window(arch_model *m, const json_value *c, const char *name, bool in_use, int64_t first,
                           lath_error *err)
{
    prenorm_model *w = m->weights;
    int64_t window = 0;
    if (in_use) TRY(json_get_int(c, "sliding_window", name, 1, INT32_MAX, &window, err));
    /* The reference counts the token itself where it looks back only, and does not where it looks both ways. */
    w->reach = window && w->bidirectional ? window : window - 1;
    return prenorm_layer_kinds(m, c, name, from_layer, window ? first : INT32_MAX, err);
}

lath_status decoder_parse_qwen(arch_model *m, const json_value *c, const char *name, int64_t head_dim, lath_error *err)
{
    bool slides = false;
    int64_t first = 28; /* as the reference's default */
    TRY(decoder_parse(m, c, name, "hidden_act", head_dim, err));
    TRY(json_get_bool(c, "use_sliding_window", name, &slides, err));
    TRY(json_get_int(c, "max_window_layers", name, 0, 1024, &first, err));
    TRY(decoder_window(m, c, name, slides, first, err));
    return decoder_one_rope(m, c, name, 1e4, err);
}

/* -------------------------------------------------------------------------------------------------------------- experts */

/* "mlp_only_layers" are dense, and of the others those whose number (from 1) decoder_sparse_step does not divide. */
static lath_status parse_sparse(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    prenorm_model *w = m->weights;
    const json_value *list = json_get(c, "mlp_only_layers");
    int64_t step = 1;
    TRY(json_get_int(c, "decoder_sparse_step", name, 1, 1024, &step, err));
    w->sparse = arena_zero(m->mem, (size_t)m->dims.n_layers * sizeof(bool));
    if (!w->sparse) return err_nomem(err, (size_t)m->dims.n_layers * sizeof(bool));
    for (int32_t i = 0; i < m->dims.n_layers; i++) w->sparse[i] = (i + 1) % step == 0;
    if (!json_present(list)) return LATH_OK;
    bool good = list->kind == JSON_ARRAY;
    for (const json_value *v = good ? list->u.items.first : NULL; v && good; v = v->next) {
        good = v->kind == JSON_INT && v->u.integer >= 0;
        if (good && v->u.integer < m->dims.n_layers) w->sparse[v->u.integer] = false;
    }
    if (good) return LATH_OK;
    return err_set(err, LATH_ERR_FORMAT, "%s: line %u: \"mlp_only_layers\": want an array of layers", name, list->line);
}

lath_status decoder_parse_experts(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    prenorm_model *w = m->weights;
    int64_t n, top, d_expert;
    const char *key =
        json_present(json_get(c, "num_experts")) ? "num_experts" : "num_local_experts"; /* its newer name */
    TRY(arch_want_size(c, key, name, 1 << 12, &n, err));
    TRY(arch_want_size(c, "num_experts_per_tok", name, 1 << 12, &top, err));
    TRY(arch_want_size(c, "moe_intermediate_size", name, 1 << 18, &d_expert, err));
    TRY(json_get_bool(c, "norm_topk_prob", name, &w->moe.normalize, err));
    if (top > n)
        return err_set(err, LATH_ERR_FORMAT, "%s: num_experts_per_tok %lld of %lld experts", name, (long long)top,
                       (long long)n);
    w->moe.top = m->dims.n_top_experts = (int32_t)top;
    m->dims.n_experts = (int32_t)n;
    m->dims.d_expert = d_expert;
    return parse_sparse(m, c, name, err);
}
