/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_granite.c: Granite (IBM 2024): Llama with factors on the embeddings, on the scores in the place of 1 / sqrt(head_dim), on what each block adds
 * and, as a divisor, on the logits (maximal update parametrisation, Yang et al. 2022).
 */
#include "arch/arch_decoder.h"

/* A factor over 0; 1 where there is none. */
static lath_status parse_factor(const json_value *c, const char *name, const char *key, double *out, lath_error *err)
{
    *out = 1;
    TRY(json_get_real(c, key, name, out, err));
    if (*out >= 1e-9 && *out <= 1e9) return LATH_OK;
    return err_set(err, LATH_ERR_FORMAT, "%s: %s is out of range", name, key);
}

static lath_status parse_granite(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    prenorm_model *w = m->weights;
    double embedding, residual, logits;
    TRY(decoder_parse(m, c, name, "hidden_act", 0, err));
    m->has = DECODER_PRE_ONLY;
    TRY(arch_read_flag(m, c, name, "attention_bias", false, DECODER_QKV_BIAS | DECODER_O_BIAS, err));
    TRY(arch_read_flag(m, c, name, "mlp_bias", false, DECODER_MLP_BIAS, err));
    TRY(parse_factor(c, name, "embedding_multiplier", &embedding, err));
    TRY(parse_factor(c, name, "residual_multiplier", &residual, err));
    TRY(parse_factor(c, name, "attention_multiplier", &w->attn_scale, err));
    TRY(parse_factor(c, name, "logits_scaling", &logits, err));
    w->embed_scale = (float)embedding;
    w->residual_scale = (float)residual;
    m->lm_head.scale = (float)(1 / logits);
    TRY(decoder_window(m, c, name, false, 0, err));
    return decoder_one_rope(m, c, name, 1e4, err);
}

extern const arch_desc arch_granite;
const arch_desc arch_granite = DECODER_DESC("granite", parse_granite);
