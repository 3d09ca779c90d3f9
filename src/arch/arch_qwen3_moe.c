/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_qwen3_moe.c: Qwen3's mixtures of experts (Yang et al. 2025): Qwen3 with experts in the place of the FFN of some layers or all.
 */
#include "arch/arch_decoder.h"

static lath_status parse_qwen3_moe(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    m->has = DECODER_PRE_ONLY | DECODER_QK_NORM;
    TRY(arch_read_flag(m, c, name, "attention_bias", false, DECODER_QKV_BIAS | DECODER_O_BIAS, err));
    TRY(decoder_parse_qwen(m, c, name, 0, err));
    return decoder_parse_experts(m, c, name, err);
}

extern const arch_desc arch_qwen3_moe;
const arch_desc arch_qwen3_moe = DECODER_DESC("qwen3_moe", parse_qwen3_moe);
