/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_qwen3_moe.c: Qwen3's mixtures of experts (Yang et al. 2025): Qwen3 with experts in the place of the FFN of some layers or all.
 */
#include "arch/arch_decoder.h"

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

static lath_status parse_experts(arch_model *m, const json_value *c, const char *name, lath_error *err)
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
    return LATH_OK;
}

static lath_status parse_qwen3_moe(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    m->has = DECODER_PRE_ONLY | DECODER_QK_NORM;
    TRY(arch_read_flag(m, c, name, "attention_bias", false, DECODER_QKV_BIAS | DECODER_O_BIAS, err));
    TRY(decoder_parse_qwen(m, c, name, 0, err));
    TRY(parse_experts(m, c, name, err));
    return parse_sparse(m, c, name, err);
}

extern const arch_desc arch_qwen3_moe;
const arch_desc arch_qwen3_moe = DECODER_DESC("qwen3_moe", parse_qwen3_moe);
