/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_smollm3.c: SmolLM3 (Hugging Face 2025): Llama, some of whose layers do not turn queries and keys (Yang et al. 2025, "RNoPE-SWA"); where there is a
 * window, it is those that slide.
 */
#include "arch/arch_decoder.h"

/* "no_rope_layers" has a 1 for each layer that turns; without it every `interval`-th layer does not. */
static lath_status parse_unturned(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    prenorm_model *w = m->weights;
    const json_value *list = json_get(c, "no_rope_layers");
    int64_t interval = 4;
    TRY(json_get_int(c, "no_rope_layer_interval", name, 1, 1024, &interval, err));
    w->unturned = arena_zero(m->mem, (size_t)m->dims.n_layers * sizeof(bool));
    if (!w->unturned) return err_nomem(err, (size_t)m->dims.n_layers * sizeof(bool));
    if (!json_present(list)) {
        for (int32_t i = 0; i < m->dims.n_layers; i++) w->unturned[i] = (i + 1) % interval == 0;
        return LATH_OK;
    }
    bool good = list->kind == JSON_ARRAY && list->u.items.count >= (size_t)m->dims.n_layers;
    int32_t i = 0;
    for (const json_value *v = good ? list->u.items.first : NULL; v && i < m->dims.n_layers; v = v->next, i++) {
        good = good && v->kind == JSON_INT && (v->u.integer == 0 || v->u.integer == 1);
        w->unturned[i] = good && v->u.integer == 0;
    }
    if (good) return LATH_OK;
    return err_set(err, LATH_ERR_FORMAT,
                   "%s: line %u: \"no_rope_layers\": want an array of 0 or 1 for each of %d layers", name, list->line,
                   m->dims.n_layers);
}

/* Where the configuration lists no kinds, the layers that do not turn are those that slide. */
static lath_status parse_kinds(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    prenorm_model *w = m->weights;
    bool slides = false;
    TRY(json_get_bool(c, "use_sliding_window", name, &slides, err));
    TRY(decoder_window(m, c, name, slides, INT32_MAX, err));
    if (json_present(json_get(c, "layer_types")) || w->reach < 0) return LATH_OK;
    for (int32_t i = 0; i < m->dims.n_layers; i++) {
        w->kinds[i] = w->unturned[i] ? PRENORM_SLIDING : PRENORM_FULL;
        w->uses[w->kinds[i]] = true;
    }
    return LATH_OK;
}

static lath_status parse_smollm3(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    m->lm_head.tied = true; /* as the reference's default */
    TRY(decoder_parse(m, c, name, "hidden_act", 0, err));
    m->has = DECODER_PRE_ONLY;
    TRY(arch_read_flag(m, c, name, "attention_bias", false, DECODER_QKV_BIAS | DECODER_O_BIAS, err));
    TRY(arch_read_flag(m, c, name, "mlp_bias", false, DECODER_MLP_BIAS, err));
    TRY(parse_unturned(m, c, name, err));
    TRY(parse_kinds(m, c, name, err));
    return decoder_one_rope(m, c, name, 2e6, err);
}

extern const arch_desc arch_smollm3;
const arch_desc arch_smollm3 = DECODER_DESC("smollm3", parse_smollm3);
