/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_llama.c: Llama (Touvron et al. 2023), Mistral (Jiang et al. 2023: every layer slides), Qwen2 and Qwen3 (biases on queries, keys and
 * values; norms of their heads instead), Qwen3-Embedding among them. What differs is which biases, norms and windows there are.
 */
#include "arch/arch_decoder.h"

static lath_status parse_llama(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    TRY(decoder_parse(m, c, name, "hidden_act", 0, err));
    m->has = DECODER_PRE_ONLY;
    TRY(arch_read_flag(m, c, name, "attention_bias", false, DECODER_QKV_BIAS | DECODER_O_BIAS, err));
    TRY(arch_read_flag(m, c, name, "mlp_bias", false, DECODER_MLP_BIAS, err));
    TRY(decoder_window(m, c, name, false, 0, err));
    return decoder_one_rope(m, c, name, 1e4, err);
}

static lath_status parse_mistral(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    TRY(decoder_parse(m, c, name, "hidden_act", 0, err));
    m->has = DECODER_PRE_ONLY;
    TRY(decoder_window(m, c, name, true, 0, err));
    return decoder_one_rope(m, c, name, 1e4, err);
}

static lath_status parse_qwen2(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    m->has = DECODER_PRE_ONLY | DECODER_QKV_BIAS;
    return decoder_parse_qwen(m, c, name, 0, err);
}

static lath_status parse_qwen3(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    m->has = DECODER_PRE_ONLY | DECODER_QK_NORM;
    TRY(arch_read_flag(m, c, name, "attention_bias", false, DECODER_QKV_BIAS | DECODER_O_BIAS, err));
    return decoder_parse_qwen(m, c, name, 128, err);
}

extern const arch_desc arch_llama, arch_mistral, arch_qwen2, arch_qwen3;
const arch_desc arch_llama = DECODER_DESC("llama", parse_llama);
const arch_desc arch_mistral = DECODER_DESC("mistral", parse_mistral);
const arch_desc arch_qwen2 = DECODER_DESC("qwen2", parse_qwen2);
const arch_desc arch_qwen3 = DECODER_DESC("qwen3", parse_qwen3);
