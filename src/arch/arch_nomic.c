/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_nomic.c: nomic-bert encoders (Nussbaum et al. 2024: nomic-embed-text-v1 and v1.5, CodeRankEmbed, snowflake-arctic-embed-m-long): arch_bert.c's
 * forward with rotary positions instead of a table of positions, and a gated FFN for most. config.json comes in two forms: the checkpoints' own (n_embd,
 * rotary_emb_base, ...), and that of transformers 5 (hidden_size, rope_parameters, ...), which knows less variants. A file may have the fields
 * of both; those that mean the same have to agree. Texts longer than max_trained_positions turn by frequencies of their own where
 * rotary_scaling_factor says so.
 */
#include <math.h>
#include <string.h>

#include "arch/arch_bert.h"
#include "arch/arch_config.h"
#include "arch/arch_rope.h"

/* Bits of arch_model.has. */
enum { HAS_TYPES = 1, HAS_GATE = 2, HAS_NO_GATE = 4, HAS_QKV_BIAS = 8, HAS_FC1_BIAS = 16, HAS_FC2_BIAS = 32 };

#define MODEL(field) offsetof(bert_model, field)
#define LAYER(field) offsetof(bert_layer, field)
#define L "encoder.layers.{}."
#define B "blk.{}."
#define QKV(part, bits) .stack = ARCH_QKV_##part, .when = (bits)
static const arch_weight_row rows[] = {
    ARCH_MAT(MODEL(word), "embeddings.word_embeddings.weight", ARCH_VOCAB, ARCH_D_MODEL, .gguf = "token_embd.weight"),
    ARCH_MAT(MODEL(type), "embeddings.token_type_embeddings.weight", ARCH_TYPES, ARCH_D_MODEL, .when = HAS_TYPES,
             .gguf = "token_types.weight"),
    ARCH_VEC(MODEL(embed_norm.gamma), "emb_ln.weight", ARCH_D_MODEL, .gguf = "token_embd_norm.weight"),
    ARCH_VEC(MODEL(embed_norm.beta), "emb_ln.bias", ARCH_D_MODEL, .gguf = "token_embd_norm.bias"),
    ARCH_MAT(LAYER(attn.q.w), L "attn.Wqkv.weight", ARCH_D_Q, ARCH_D_MODEL, QKV(Q, 0), .gguf = B "attn_qkv.weight"),
    ARCH_VEC(LAYER(attn.q.bias), L "attn.Wqkv.bias", ARCH_D_Q, QKV(Q, HAS_QKV_BIAS)),
    ARCH_MAT(LAYER(attn.k.w), L "attn.Wqkv.weight", ARCH_D_KV, ARCH_D_MODEL, QKV(K, 0), .gguf = B "attn_qkv.weight"),
    ARCH_VEC(LAYER(attn.k.bias), L "attn.Wqkv.bias", ARCH_D_KV, QKV(K, HAS_QKV_BIAS)),
    ARCH_MAT(LAYER(attn.v.w), L "attn.Wqkv.weight", ARCH_D_KV, ARCH_D_MODEL, QKV(V, 0), .gguf = B "attn_qkv.weight"),
    ARCH_VEC(LAYER(attn.v.bias), L "attn.Wqkv.bias", ARCH_D_KV, QKV(V, HAS_QKV_BIAS)),
    ARCH_MAT(LAYER(attn.o.w), L "attn.out_proj.weight", ARCH_D_MODEL, ARCH_D_Q, .gguf = B "attn_output.weight"),
    ARCH_VEC(LAYER(attn.o.bias), L "attn.out_proj.bias", ARCH_D_MODEL, .when = HAS_QKV_BIAS),
    ARCH_VEC(LAYER(attn_norm.gamma), L "norm1.weight", ARCH_D_MODEL, .gguf = B "attn_output_norm.weight"),
    ARCH_VEC(LAYER(attn_norm.beta), L "norm1.bias", ARCH_D_MODEL, .gguf = B "attn_output_norm.bias"),
    ARCH_MAT(LAYER(ffn.up.w), L "mlp.fc11.weight", ARCH_D_FF, ARCH_D_MODEL, .when = HAS_GATE,
             .gguf = B "ffn_up.weight"),
    ARCH_VEC(LAYER(ffn.up.bias), L "mlp.fc11.bias", ARCH_D_FF, .when = HAS_GATE | HAS_FC1_BIAS),
    ARCH_MAT(LAYER(ffn.gate.w), L "mlp.fc12.weight", ARCH_D_FF, ARCH_D_MODEL, .when = HAS_GATE,
             .gguf = B "ffn_gate.weight"),
    ARCH_VEC(LAYER(ffn.gate.bias), L "mlp.fc12.bias", ARCH_D_FF, .when = HAS_GATE | HAS_FC1_BIAS),
    ARCH_MAT(LAYER(ffn.up.w), L "mlp.fc1.weight", ARCH_D_FF, ARCH_D_MODEL, .when = HAS_NO_GATE),
    ARCH_VEC(LAYER(ffn.up.bias), L "mlp.fc1.bias", ARCH_D_FF, .when = HAS_NO_GATE | HAS_FC1_BIAS),
    ARCH_MAT(LAYER(ffn.down.w), L "mlp.fc2.weight", ARCH_D_MODEL, ARCH_D_FF, .gguf = B "ffn_down.weight"),
    ARCH_VEC(LAYER(ffn.down.bias), L "mlp.fc2.bias", ARCH_D_MODEL, .when = HAS_FC2_BIAS),
    ARCH_VEC(LAYER(ffn_norm.gamma), L "norm2.weight", ARCH_D_MODEL, .gguf = B "layer_output_norm.weight"),
    ARCH_VEC(LAYER(ffn_norm.beta), L "norm2.bias", ARCH_D_MODEL, .gguf = B "layer_output_norm.bias"),
};
#undef L
#undef B
#undef QKV

/* --------------------------------------------------------------------------------------------------- configuration */

/* The file has the checkpoints' own fields. */
static bool is_own_form(const json_value *c) { return json_present(json_get(c, "n_embd")); }

/* A size under the name of either form, which have to agree where both are there. Ceilings keep absurd numbers out of the arithmetic. */
static lath_status want_size(const json_value *c, const char *own, const char *other, const char *name, int64_t most,
                             int64_t *out, lath_error *err)
{
    int64_t a = 0, b = 0;
    TRY(json_get_int(c, own, name, 1, most, &a, err));
    TRY(json_get_int(c, other, name, 1, most, &b, err));
    if (a && b && a != b)
        return err_set(err, LATH_ERR_FORMAT, "%s: %s %lld and %s %lld differ", name, own, (long long)a, other,
                       (long long)b);
    *out = a ? a : b;
    return *out ? LATH_OK : err_set(err, LATH_ERR_FORMAT, "%s: no \"%s\" in it", name, is_own_form(c) ? own : other);
}

static lath_status parse_sizes(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    int64_t vocab, d, layers, heads, ff, types = 2, positions = 0;
    TRY(want_size(c, "vocab_size", "vocab_size", name, 1 << 24, &vocab, err));
    TRY(want_size(c, "n_embd", "hidden_size", name, 1 << 16, &d, err));
    TRY(want_size(c, "n_layer", "num_hidden_layers", name, 1024, &layers, err));
    TRY(want_size(c, "n_head", "num_attention_heads", name, 1 << 12, &heads, err));
    TRY(want_size(c, "n_inner", "intermediate_size", name, 1 << 18, &ff, err));
    TRY(json_get_int(c, "type_vocab_size", name, 0, 1 << 10, &types, err));
    /* Checkpoints with both say 8192 and 2048, and take 8192. */
    TRY(json_get_int(c, "max_position_embeddings", name, 1, 1 << 24, &positions, err));
    TRY(json_get_int(c, "n_positions", name, 1, 1 << 24, &positions, err));
    if (positions == 0) return err_set(err, LATH_ERR_FORMAT, "%s: no \"n_positions\" in it", name);
    int64_t head_dim = d / heads, kv_heads = heads;
    TRY(json_get_int(c, "head_dim", name, 1, 1 << 16, &head_dim, err));
    TRY(json_get_int(c, "num_heads_kv", name, 1, 1 << 12, &kv_heads, err));
    if (head_dim * heads != d)
        return err_set(err, LATH_ERR_FORMAT, "%s: %lld features are not %lld heads of %lld", name, (long long)d,
                       (long long)heads, (long long)head_dim);
    if (kv_heads != heads)
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: num_heads_kv %lld is not supported", name, (long long)kv_heads);
    m->has |= types ? HAS_TYPES : 0;
    m->dims = (arch_dims){
        .n_layers = (int32_t)layers,
        .n_heads = (int32_t)heads,
        .n_kv_heads = (int32_t)heads,
        .vocab_size = (int32_t)vocab,
        .max_positions = (int32_t)positions,
        .pad_id = -1,
        .n_types = (int32_t)types,
        .d_model = d,
        .d_embed = d,
        .d_ff = ff,
        .head_dim = head_dim,
    };
    return LATH_OK;
}

/* What would make another model of it. */
static lath_status refuse_variants(const json_value *c, const char *name, lath_error *err)
{
    static const struct {
        const char *key;
        bool usual;
    } flags[] = {
        {"prenorm", false},
        {"parallel_block", false},
        {"causal", false},
        {"use_rms_norm", false},
        {"norm_mlp", false},
        {"rotary_head_dim", false},
        {"scale_attn_weights", true},
        {"scale_attn_by_inverse_layer_idx", false},
    };
    static const char *const counts[] = {"num_experts", "moe_every_n_layers", "img_size"};
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        bool on = flags[i].usual;
        TRY(json_get_bool(c, flags[i].key, name, &on, err));
        if (on != flags[i].usual)
            return err_set(err, LATH_ERR_UNSUPPORTED, "%s: %s %s is not supported", name, flags[i].key,
                           on ? "true" : "false");
    }
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        int64_t n = 0;
        TRY(json_get_int(c, counts[i], name, INT32_MIN, INT32_MAX, &n, err));
        if (n > 0)
            return err_set(err, LATH_ERR_UNSUPPORTED, "%s: %s %lld: %s is not supported", name, counts[i], (long long)n,
                           i == 2 ? "an encoder of images" : "a mixture of experts");
    }
    if (json_present(json_get(c, "rotary_emb_scale_base")))
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: rotary_emb_scale_base is not supported", name);
    return LATH_OK;
}

/* Biases: there by default in the checkpoints' own form, never in the other. */
static lath_status parse_biases(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    const bool usual = is_own_form(c);
    TRY(arch_read_flag(m, c, name, "qkv_proj_bias", usual, HAS_QKV_BIAS, err));
    TRY(arch_read_flag(m, c, name, "mlp_fc1_bias", usual, HAS_FC1_BIAS, err));
    return arch_read_flag(m, c, name, "mlp_fc2_bias", usual, HAS_FC2_BIAS, err);
}

/* The checkpoints' own names stand for a gate or none, and for its function; those of transformers always have a gate. */
static lath_status parse_activation(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    static const struct {
        const char *own, *act;
        bool gated;
    } kinds[] = {{"swiglu", "silu", true}, {"geglu", "gelu", true}, {"glu", "sigmoid", true}, {"gelu", "gelu", false}};
    bert_model *w = m->weights;
    const char *own = NULL, *act = NULL, *meant = NULL;
    bool gated = true;
    TRY(json_get_str(c, "activation_function", name, &own, err));
    TRY(json_get_str(c, "hidden_act", name, &act, err));
    for (size_t i = 0; own && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].own, own) != 0) continue;
        meant = kinds[i].act;
        gated = kinds[i].gated;
    }
    if (own && !meant)
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: activation_function \"%.60s\" is not supported", name, own);
    if (!own && is_own_form(c)) return err_set(err, LATH_ERR_FORMAT, "%s: no \"activation_function\" in it", name);
    if (!meant) meant = act ? act : "silu";
    kern_fn fn;
    if (!nn_activation(meant, &w->fn) || (act && !nn_activation(act, &fn)))
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: hidden_act \"%.60s\" is not supported", name, act ? act : meant);
    if (act && fn != w->fn)
        return err_set(err, LATH_ERR_FORMAT, "%s: activation_function \"%s\" and hidden_act \"%s\" differ", name, own,
                       act);
    m->has |= gated ? HAS_GATE : HAS_NO_GATE;
    m->dims.activation = arena_strdup(m->mem, meant, strlen(meant));
    return m->dims.activation ? LATH_OK : err_nomem(err, strlen(meant));
}

/* rotary_emb_*: the first part of each head turns, pairs far apart or side by side. */
static lath_status parse_own_rope(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    bert_model *w = m->weights;
    const json_value *params = json_get(c, "rope_parameters");
    double fraction = 0, base = 10000, factor = 0, theta;
    int64_t trained = 2048;
    bool interleaved = false;
    TRY(json_get_real(c, "rotary_emb_fraction", name, &fraction, err));
    TRY(json_get_real(c, "rotary_emb_base", name, &base, err));
    TRY(json_get_bool(c, "rotary_emb_interleaved", name, &interleaved, err));
    TRY(json_get_real(c, "rotary_scaling_factor", name, &factor, err));
    TRY(json_get_int(c, "max_trained_positions", name, 1, 1 << 24, &trained, err));
    theta = base;
    TRY(json_get_real(params, "rope_theta", name, &theta, err));
    if (theta != base)
        return err_set(err, LATH_ERR_FORMAT, "%s: rotary_emb_base %g and rope_theta %g differ", name, base, theta);
    if (!(base > 0) || isinf(base)) return err_set(err, LATH_ERR_FORMAT, "%s: rotary_emb_base is out of range", name);
    if (!(fraction > 0 && fraction <= 1))
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: rotary_emb_fraction %g is not supported", name, fraction);
    const double turned = (double)m->dims.head_dim * fraction;
    const int64_t pairs = (int64_t)turned / 2;
    if (pairs < 1 || (double)(2 * pairs) != turned)
        return err_set(err, LATH_ERR_FORMAT, "%s: rotary_emb_fraction %g of heads of %lld features are no pairs", name,
                       fraction, (long long)m->dims.head_dim);
    TRY(arch_rope_init(m->mem, base, pairs, &w->rope, err));
    TRY(arch_rope_check(&w->rope, name, err));
    w->rope.interleaved = interleaved;
    if (factor == 0) return LATH_OK;
    if (!(factor >= 1 && factor < 1e6) || pairs < 2)
        return err_set(err, LATH_ERR_FORMAT, "%s: rotary_scaling_factor %g is out of range", name, factor);
    w->rope.trained = trained;
    w->rope.theta = base;
    w->rope.stretch = factor;
    return LATH_OK;
}

static lath_status parse_rope(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    bert_model *w = m->weights;
    if (is_own_form(c)) return parse_own_rope(m, c, name, err);
    const arch_rope_spec spec = {.theta_key = "rope_theta",
                                 .scaled = true,
                                 .theta = 1000,
                                 .head_dim = m->dims.head_dim,
                                 .max_positions = m->dims.max_positions};
    return arch_rope_parse_whole(c, name, &spec, m->mem, &w->rope, err);
}

static lath_status parse(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    bert_model *w = m->weights;
    TRY(refuse_variants(c, name, err));
    TRY(parse_sizes(m, c, name, err));
    TRY(parse_biases(m, c, name, err));
    TRY(parse_activation(m, c, name, err));
    TRY(parse_rope(m, c, name, err));
    double other = w->eps = is_own_form(c) ? 1e-5 : 1e-12;
    TRY(json_get_real(c, is_own_form(c) ? "layer_norm_epsilon" : "layer_norm_eps", name, &w->eps, err));
    other = w->eps;
    TRY(json_get_real(c, "layer_norm_eps", name, &other, err));
    if (!(w->eps >= 0 && w->eps < 1) || other != w->eps)
        return err_set(err, LATH_ERR_FORMAT, "%s: layer_norm_eps is out of range or not layer_norm_epsilon", name);
    return LATH_OK;
}

static const char *const prefixes[] = {"", "nomic_bert.", "bert.", NULL};

BERT_FAMILY(arch_nomic, "nomic_bert", prefixes, parse, rows);
