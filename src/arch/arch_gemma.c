/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_gemma.c: Gemma 3 text models (Gemma Team 2025), EmbeddingGemma among them, which looks both ways: norms before and behind each block, of
 * 1 + weight; embeddings times sqrt(d_model); queries and keys normed head by head; most layers slide, and turn by angles of their own.
 */
#include <math.h>

#include "arch/arch_decoder.h"

/* Every `pattern`-th layer sees everything. */
static bool pattern_slides(int64_t pattern, int32_t layer) { return (layer + 1) % pattern != 0; }

static lath_status parse_layers(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    prenorm_model *w = m->weights;
    int64_t pattern = 6;
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
        [PRENORM_FULL] = {"full_attention", "rope_theta", true, 1e6, m->dims.head_dim, m->dims.max_positions},
        [PRENORM_SLIDING] = {"sliding_attention", "rope_local_base_freq", false, 1e4, m->dims.head_dim,
                             m->dims.max_positions},
    };
    for (int k = 0; k < PRENORM_N_KINDS; k++) TRY(arch_rope_parse(c, name, &specs[k], m->mem, &w->ropes[k], err));
    return LATH_OK;
}

/* A cap on logits; 0 where there is none. */
static lath_status parse_cap(const json_value *c, const char *name, const char *key, float *out, lath_error *err)
{
    double cap = 0;
    *out = 0;
    if (!json_present(json_get(c, key))) return LATH_OK;
    TRY(json_get_real(c, key, name, &cap, err));
    if (!(cap >= 1e-3 && cap <= 1e6)) return err_set(err, LATH_ERR_FORMAT, "%s: %s is out of range", name, key);
    *out = (float)cap;
    return LATH_OK;
}

static lath_status parse_gemma3(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    prenorm_model *w = m->weights;
    double query_scalar = 256;
    m->lm_head.tied = true; /* as the reference's default */
    TRY(decoder_parse(m, c, name, "hidden_activation", 256, err));
    TRY(json_get_real(c, "query_pre_attn_scalar", name, &query_scalar, err));
    if (!(query_scalar >= 1e-6 && query_scalar <= 1e12)) /* else nothing of the scores, or infinities */
        return err_set(err, LATH_ERR_FORMAT, "%s: query_pre_attn_scalar is out of range", name);
    if (json_present(json_get(c, "attn_logit_softcapping")))
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: attn_logit_softcapping is not supported", name);
    TRY(parse_cap(c, name, "final_logit_softcapping", &m->lm_head.softcap, err));
    m->has = DECODER_POST_NORMS | DECODER_QK_NORM;
    TRY(arch_read_flag(m, c, name, "attention_bias", false, DECODER_QKV_BIAS | DECODER_O_BIAS, err));
    w->norm_offset = 1;
    w->embed_scale = (float)sqrt((double)m->dims.d_model);
    w->attn_scale = 1 / sqrt(query_scalar);
    TRY(parse_layers(m, c, name, err));
    return parse_ropes(m, c, name, err);
}

extern const arch_desc arch_gemma3_text;
const arch_desc arch_gemma3_text = DECODER_DESC("gemma3_text", parse_gemma3);
