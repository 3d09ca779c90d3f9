/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_decoder.h: what Llama, Mistral, Qwen, Gemma and others name alike: the table of weights and the sizes. A family's file reads what is its own.
 */
#ifndef LATH_ARCH_DECODER_H
#define LATH_ARCH_DECODER_H

#include "arch/arch_config.h"
#include "arch/arch_prenorm.h"

/* Bits of arch_model.has. */
enum {
    DECODER_QKV_BIAS = 1,
    DECODER_O_BIAS = 2,
    DECODER_MLP_BIAS = 4,
    DECODER_QK_NORM = 8,
    DECODER_POST_NORMS = 16, /* norms of what attention and FFN give, too */
    DECODER_PRE_ONLY = 32,   /* the norm before the FFN is called post_attention_layernorm */
    DECODER_DENSE = 64,      /* of a layer: one FFN; experts */
    DECODER_MOE = 128
};

enum { DECODER_N_ROWS = 28 };

/* Sizes, activation and what else every family names alike, into m->dims, m->lm_head and m->weights. head_dim and n_kv_heads default to
 * d_model / n_heads and n_heads; m->lm_head.tied and eps (0: 1e-6) are what they are before. */
lath_status decoder_parse(arch_model *m, const json_value *config, const char *name, const char *activation_key,
                          int64_t head_dim_default, lath_error *err);
/* The same for a configuration that calls sizes otherwise. */
lath_status decoder_parse_sizes(arch_model *m, const json_value *config, const char *name, const arch_size_keys *keys,
                                const char *activation_key, int64_t head_dim_default, lath_error *err);
/* "sliding_window", where it is in use, of the layers that "layer_types" names, else of those from `first` on. */
lath_status decoder_window(arch_model *m, const json_value *config, const char *name, bool in_use, int64_t first,
                           lath_error *err);
/* One rotation for all layers; `theta`: its base where the configuration has none. */
lath_status decoder_one_rope(arch_model *m, const json_value *config, const char *name, double theta, lath_error *err);
/* The same; `partial`: of each head, what turns where the configuration does not say. */
lath_status decoder_partial_rope(arch_model *m, const json_value *config, const char *name, double theta,
                                 double partial, lath_error *err);
/* All of a Qwen but `has`: sizes, a window of the upper layers, the rotation. */
lath_status decoder_parse_qwen(arch_model *m, const json_value *config, const char *name, int64_t head_dim,
                               lath_error *err);
/* Experts and which layers have them; w->moe.normalize is what it is before where the configuration does not say. */
lath_status decoder_parse_experts(arch_model *m, const json_value *config, const char *name, lath_error *err);
/* The parts of an arch_desc. */
extern const arch_weight_row decoder_rows[];
extern const char *const decoder_prefixes[];
extern const arch_unused decoder_unused[];
uint32_t decoder_layer_has(const arch_model *m, int32_t layer);

#define DECODER_DESC_OF(type, parse_function, table, n)                                                          \
    {                                                                                                            \
        .name = (type), .prefixes = decoder_prefixes, .parse = (parse_function), .rows = (table), .n_rows = (n), \
        .model_size = sizeof(prenorm_model), .layer_size = sizeof(prenorm_layer), .finish = prenorm_finish,      \
        .state_floats = prenorm_state_floats, .forward = prenorm_forward, .window = prenorm_window,              \
        .layer_has = decoder_layer_has, .stale = prenorm_stale, .recurrent = prenorm_recurrent,                  \
        .unused = decoder_unused                                                                                 \
    }
#define DECODER_DESC(type, parse_function) DECODER_DESC_OF(type, parse_function, decoder_rows, DECODER_N_ROWS)

#endif
