/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_gemma.c: Gemma 2 (Gemma Team 2024) and Gemma 3 text models (Gemma Team 2025), EmbeddingGemma among them, which looks both ways: norms before
 * and behind each block, of 1 + weight; embeddings times sqrt(d_model). In Gemma 2 every other layer slides, and scores and logits are capped; in
 * Gemma 3 queries and keys are normed head by head instead, most layers slide, and those turn by angles of their own.
 */
#include <math.h>
#include <string.h>

#include "arch/arch_decoder.h"

/* Every `pattern`-th layer sees everything. */
static bool pattern_slides(int64_t pattern, int32_t layer) { return (layer + 1) % pattern != 0; }

/* Window and kinds of layers, where the configuration has no pattern of its own with that one. */
static lath_status parse_layers(arch_model *m, const json_value *c, const char *name, int64_t pattern, lath_error *err)
{
    prenorm_model *w = m->weights;
    bool both_ways = false;
    int64_t window = 4096; /* as the reference's default */
    TRY(json_get_bool(c, "use_bidirectional_attention", name, &both_ways, err));
    TRY(json_get_int(c, "sliding_window", name, 1, INT32_MAX, &window, err));
    TRY(json_get_int(c, "sliding_window_pattern", name, 1, 1024, &pattern, err));
    if (w->bidirectional) /* is_causal */
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: is_causal false is not supported for Gemma", name);
    w->bidirectional = both_ways;
    w->reach = both_ways ? window / 2 : window - 1;
    return prenorm_layer_kinds(m, c, name, pattern_slides, pattern, err);
}

static lath_status parse_ropes(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    prenorm_model *w = m->weights;
    const arch_rope_spec specs[PRENORM_N_KINDS] = {
        [PRENORM_FULL] = {"full_attention", "rope_theta", true, 1e6, 0, m->dims.head_dim, m->dims.max_positions},
        [PRENORM_SLIDING] = {"sliding_attention", "rope_local_base_freq", false, 1e4, 0, m->dims.head_dim,
                             m->dims.max_positions},
    };
    for (int k = 0; k < PRENORM_N_KINDS; k++) TRY(arch_rope_parse(c, name, &specs[k], m->mem, &w->ropes[k], err));
    return LATH_OK;
}

/* A cap on scores or logits: 0, none, where it is null. */
static lath_status parse_cap(const json_value *c, const char *name, const char *key, double usual, float *out,
                             lath_error *err)
{
    const json_value *v = json_get(c, key);
    double cap = usual;
    *out = v ? 0 : (float)usual;
    if (!json_present(v)) return LATH_OK;
    TRY(json_get_real(c, key, name, &cap, err));
    if (!(cap >= 1e-3 && cap <= 1e6)) return err_set(err, LATH_ERR_FORMAT, "%s: %s is out of range", name, key);
    *out = (float)cap;
    return LATH_OK;
}

/* What both have; caps where the configuration says nothing about them. */
static lath_status parse_gemma(arch_model *m, const json_value *c, const char *name, double attn_cap, double final_cap,
                               lath_error *err)
{
    prenorm_model *w = m->weights;
    double query_scalar = 256;
    m->lm_head.tied = true; /* as the reference's default */
    TRY(decoder_parse(m, c, name, "hidden_activation", 256, err));
    TRY(json_get_real(c, "query_pre_attn_scalar", name, &query_scalar, err));
    if (!(query_scalar >= 1e-6 && query_scalar <= 1e12)) /* else nothing of the scores, or infinities */
        return err_set(err, LATH_ERR_FORMAT, "%s: query_pre_attn_scalar is out of range", name);
    TRY(parse_cap(c, name, "attn_logit_softcapping", attn_cap, &w->attn_softcap, err));
    TRY(parse_cap(c, name, "final_logit_softcapping", final_cap, &m->lm_head.softcap, err));
    m->has = DECODER_POST_NORMS;
    TRY(arch_read_flag(m, c, name, "attention_bias", false, DECODER_QKV_BIAS | DECODER_O_BIAS, err));
    w->norm_offset = 1;
    w->embed_scale = (float)sqrt((double)m->dims.d_model);
    w->attn_scale = 1 / sqrt(query_scalar);
    return LATH_OK;
}

static lath_status parse_gemma2(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    TRY(parse_gemma(m, c, name, 50, 30, err));
    TRY(parse_layers(m, c, name, 2, err));
    return decoder_one_rope(m, c, name, 1e4, err);
}

static lath_status parse_gemma3(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    TRY(parse_gemma(m, c, name, 0, 0, err));
    if (((prenorm_model *)m->weights)->attn_softcap != 0) /* which the reference reads and does not apply */
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: attn_logit_softcapping is not supported for Gemma 3", name);
    m->has |= DECODER_QK_NORM;
    TRY(parse_layers(m, c, name, 6, err));
    return parse_ropes(m, c, name, err);
}

/* The text model of one that sees images, too: "text_config", whose file leaves out what is as in the reference's class. */
static const struct {
    const char *key;
    int64_t value;
} text_defaults[] = {
    {"vocab_size", 262208},      {"hidden_size", 2304},
    {"intermediate_size", 9216}, {"num_hidden_layers", 26},
    {"num_attention_heads", 8},  {"num_key_value_heads", 4},
    {"head_dim", 256},           {"max_position_embeddings", 131072},
};

static json_value *put_member(arch_model *m, json_value *object, const char *key, json_kind kind)
{
    json_value *v = arena_zero(m->mem, sizeof(*v));
    if (!v) return NULL;
    v->kind = kind;
    v->key = key;
    v->key_len = strlen(key);
    v->next = object->u.items.first;
    object->u.items.first = v;
    object->u.items.count++;
    return v;
}

static lath_status with_defaults(arch_model *m, const json_value *text, json_value *out, lath_error *err)
{
    *out = *text;
    for (size_t i = 0; i < sizeof(text_defaults) / sizeof(text_defaults[0]); i++) {
        if (json_get(text, text_defaults[i].key)) continue;
        json_value *v = put_member(m, out, text_defaults[i].key, JSON_INT);
        if (!v) return err_nomem(err, sizeof(*v));
        v->u.integer = text_defaults[i].value;
    }
    if (json_get(text, "hidden_activation") || json_get(text, "hidden_act")) return LATH_OK;
    json_value *v = put_member(m, out, "hidden_activation", JSON_STRING);
    if (!v) return err_nomem(err, sizeof(*v));
    v->u.string.data = "gelu_pytorch_tanh";
    v->u.string.len = strlen(v->u.string.data);
    return LATH_OK;
}

static lath_status parse_gemma3_outer(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    const json_value *text = json_get(c, "text_config");
    json_value whole;
    if (!json_present(text) || text->kind != JSON_OBJECT)
        return err_set(err, LATH_ERR_FORMAT, "%s: want \"text_config\", an object", name);
    TRY(with_defaults(m, text, &whole, err));
    TRY(parse_gemma3(m, &whole, name, err));
    return json_get_bool(c, "tie_word_embeddings", name, &m->lm_head.tied, err);
}

extern const arch_desc arch_gemma2, arch_gemma3, arch_gemma3_text;
const arch_desc arch_gemma2 = DECODER_DESC("gemma2", parse_gemma2);
const arch_desc arch_gemma3 = DECODER_DESC("gemma3", parse_gemma3_outer);
const arch_desc arch_gemma3_text = DECODER_DESC("gemma3_text", parse_gemma3);
