/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_gte.c: the GTE encoders with rotary positions (Zhang et al. 2024: gte-base-en-v1.5, gte-multilingual-base, snowflake-arctic-embed-m-v2.0):
 * arch_bert.c's forward with a gated FFN and no table of positions. model_type is "gte" in transformers, "new" in the checkpoints' own code.
 */
#include <string.h>

#include "arch/arch_bert.h"
#include "arch/arch_config.h"
#include "arch/arch_rope.h"

/* Bits of arch_model.has. */
enum { HAS_TYPES = 1, HAS_STACK = 2, HAS_NO_STACK = 4 };

#define MODEL(field) offsetof(bert_model, field)
#define LAYER(field) offsetof(bert_layer, field)
#define L "encoder.layer.{}."
#define STACKED(part) .stack = ARCH_QKV_##part, .when = HAS_STACK
static const arch_weight_row rows[] = {
    ARCH_MAT(MODEL(word), "embeddings.word_embeddings.weight", ARCH_VOCAB, ARCH_D_MODEL),
    ARCH_MAT(MODEL(type), "embeddings.token_type_embeddings.weight", ARCH_TYPES, ARCH_D_MODEL, .when = HAS_TYPES),
    ARCH_VEC(MODEL(embed_norm.gamma), "embeddings.LayerNorm.weight", ARCH_D_MODEL),
    ARCH_VEC(MODEL(embed_norm.beta), "embeddings.LayerNorm.bias", ARCH_D_MODEL),
    ARCH_MAT(LAYER(attn.q.w), L "attention.qkv_proj.weight", ARCH_D_Q, ARCH_D_MODEL, STACKED(Q)),
    ARCH_VEC(LAYER(attn.q.bias), L "attention.qkv_proj.bias", ARCH_D_Q, STACKED(Q)),
    ARCH_MAT(LAYER(attn.k.w), L "attention.qkv_proj.weight", ARCH_D_KV, ARCH_D_MODEL, STACKED(K)),
    ARCH_VEC(LAYER(attn.k.bias), L "attention.qkv_proj.bias", ARCH_D_KV, STACKED(K)),
    ARCH_MAT(LAYER(attn.v.w), L "attention.qkv_proj.weight", ARCH_D_KV, ARCH_D_MODEL, STACKED(V)),
    ARCH_VEC(LAYER(attn.v.bias), L "attention.qkv_proj.bias", ARCH_D_KV, STACKED(V)),
    ARCH_MAT(LAYER(attn.q.w), L "attention.q_proj.weight", ARCH_D_Q, ARCH_D_MODEL, .when = HAS_NO_STACK),
    ARCH_VEC(LAYER(attn.q.bias), L "attention.q_proj.bias", ARCH_D_Q, .when = HAS_NO_STACK),
    ARCH_MAT(LAYER(attn.k.w), L "attention.k_proj.weight", ARCH_D_KV, ARCH_D_MODEL, .when = HAS_NO_STACK),
    ARCH_VEC(LAYER(attn.k.bias), L "attention.k_proj.bias", ARCH_D_KV, .when = HAS_NO_STACK),
    ARCH_MAT(LAYER(attn.v.w), L "attention.v_proj.weight", ARCH_D_KV, ARCH_D_MODEL, .when = HAS_NO_STACK),
    ARCH_VEC(LAYER(attn.v.bias), L "attention.v_proj.bias", ARCH_D_KV, .when = HAS_NO_STACK),
    ARCH_MAT(LAYER(attn.o.w), L "attention.o_proj.weight", ARCH_D_MODEL, ARCH_D_Q),
    ARCH_VEC(LAYER(attn.o.bias), L "attention.o_proj.bias", ARCH_D_MODEL),
    ARCH_VEC(LAYER(attn_norm.gamma), L "attn_ln.weight", ARCH_D_MODEL),
    ARCH_VEC(LAYER(attn_norm.beta), L "attn_ln.bias", ARCH_D_MODEL),
    ARCH_MAT(LAYER(ffn.up.w), L "mlp.up_gate_proj.weight", ARCH_D_FF, ARCH_D_MODEL, .stack = ARCH_FIRST_HALF),
    ARCH_MAT(LAYER(ffn.gate.w), L "mlp.up_gate_proj.weight", ARCH_D_FF, ARCH_D_MODEL, .stack = ARCH_SECOND_HALF),
    ARCH_MAT(LAYER(ffn.down.w), L "mlp.down_proj.weight", ARCH_D_MODEL, ARCH_D_FF),
    ARCH_VEC(LAYER(ffn.down.bias), L "mlp.down_proj.bias", ARCH_D_MODEL),
    ARCH_VEC(LAYER(ffn_norm.gamma), L "mlp_ln.weight", ARCH_D_MODEL),
    ARCH_VEC(LAYER(ffn_norm.beta), L "mlp_ln.bias", ARCH_D_MODEL),
};
#undef L
#undef STACKED

static lath_status parse_sizes(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    arch_dims *d = &m->dims;
    int64_t types = 1, head_dim;
    TRY(arch_read_sizes(c, name, &arch_usual_keys, 1 << 24, d, err));
    TRY(json_get_int(c, "type_vocab_size", name, 0, 1 << 10, &types, err));
    head_dim = d->head_dim;
    TRY(json_get_int(c, "head_dim", name, 1, 1 << 16, &head_dim, err));
    if (head_dim == 0 || head_dim != d->head_dim || head_dim % 2 != 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: hidden_size %lld are not num_attention_heads %d of %lld, in pairs",
                       name, (long long)d->d_model, d->n_heads, (long long)head_dim);
    d->n_types = (int32_t)types;
    m->has |= types ? HAS_TYPES : 0;
    return LATH_OK;
}

/* What would make another model of it. */
static lath_status refuse_variants(const json_value *c, const char *name, lath_error *err)
{
    static const struct {
        const char *key, *usual;
    } texts[] = {{"layer_norm_type", "layer_norm"}, {"position_embedding_type", "rope"}};
    static const char *const flags[] = {"logn_attention_scale", "logn_attention_clip1"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *s = texts[i].usual;
        TRY(json_get_str(c, texts[i].key, name, &s, err));
        if (strcmp(s, texts[i].usual) != 0)
            return err_set(err, LATH_ERR_UNSUPPORTED, "%s: %s \"%.60s\" is not supported", name, texts[i].key, s);
    }
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        bool on = false;
        TRY(json_get_bool(c, flags[i], name, &on, err));
        if (on) return err_set(err, LATH_ERR_UNSUPPORTED, "%s: %s is not supported", name, flags[i]);
    }
    return LATH_OK;
}

/* theta: the base where the configuration has none. */
static lath_status parse_family(arch_model *m, const json_value *c, const char *name, double theta, lath_error *err)
{
    bert_model *w = m->weights;
    bool stacked = true;
    TRY(refuse_variants(c, name, err));
    TRY(parse_sizes(m, c, name, err));
    TRY(json_get_bool(c, "pack_qkv", name, &stacked, err));
    m->has |= stacked ? HAS_STACK : HAS_NO_STACK;
    TRY(arch_read_activation(m, c, name, "hidden_act", "gelu", &w->fn, err));
    w->eps = 1e-12;
    TRY(arch_read_eps(c, name, "layer_norm_eps", &w->eps, err));
    const arch_rope_spec spec = {.theta_key = "rope_theta",
                                 .scaled = true,
                                 .theta = theta,
                                 .head_dim = m->dims.head_dim,
                                 .max_positions = m->dims.max_positions};
    return arch_rope_parse_whole(c, name, &spec, m->mem, &w->rope, err);
}

static lath_status parse_gte(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    return parse_family(m, c, name, 160000, err);
}

static lath_status parse_new(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    return parse_family(m, c, name, 10000, err);
}

static const char *const prefixes[] = {"", "new.", "gte.", NULL};

BERT_FAMILY(arch_gte, "gte", prefixes, parse_gte, rows);
BERT_FAMILY(arch_new, "new", prefixes, parse_new, rows);
