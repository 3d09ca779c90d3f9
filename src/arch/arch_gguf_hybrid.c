/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_gguf_hybrid.c: keys of GGUF files of Qwen3.5 and Qwen3-Next, whose layers are of two kinds. The gated delta rule has the keys of state space
 * models: "ssm.state_size" is the size of a key head, "ssm.group_count" the number of key heads, "ssm.time_step_rank" that of value heads, "ssm.inner_size"
 * the value heads together. "block_count" counts the blocks that predict further tokens, too ("nextn_predict_layers", the last ones), which are not read.
 */
#include "arch/arch_gguf_reading.h"

#include <stdio.h>

#include "store/gguf.h"

enum { MAX_LAYERS = 1024, USUAL_INTERVAL = 4, MAX_SECTIONS = 4 };

/* Those of experts come last: ARCH_GGUF_N_DENSE rows are without. */
const arch_gguf_row arch_gguf_hybrid[ARCH_GGUF_N_HYBRID] = {
    {"block_count", KEY_READ, "num_hidden_layers", true},
    {"nextn_predict_layers", KEY_READ, NULL, false},
    {"attention.recurrent_layers", KEY_READ, "layer_types", false},
    {"full_attention_interval", KEY_READ, NULL, false},
    {"ssm.conv_kernel", KEY_SIZE, "linear_conv_kernel_dim", true},
    {"ssm.state_size", KEY_SIZE, "linear_key_head_dim", true},
    {"ssm.group_count", KEY_SIZE, "linear_num_key_heads", true},
    {"ssm.time_step_rank", KEY_SIZE, "linear_num_value_heads", true},
    {"ssm.inner_size", KEY_READ, "linear_value_head_dim", true},
    {"rope.dimension_sections", KEY_READ, NULL, false},
    {"feed_forward_length", KEY_EACH, "intermediate_size", false}, /* of dense layers: there may be none */
    {"expert_count", KEY_SIZE, "num_experts", true},
    {"expert_used_count", KEY_SIZE, "num_experts_per_tok", true},
    {"expert_feed_forward_length", KEY_EACH, "moe_intermediate_size", true},
    {"expert_shared_feed_forward_length", KEY_SIZE, "shared_expert_intermediate_size", true},
};

/* The layers that are computed; blocks that predict further tokens stand behind them. */
static lath_status read_layers(arch_gguf_reading *r, int64_t *blocks)
{
    int64_t further = 0;
    *blocks = r->n_layers;
    TRY(arch_key_size(r, "nextn_predict_layers", &further));
    if (further >= r->n_layers)
        return arch_key_bad(r, LATH_ERR_FORMAT, "nextn_predict_layers", "as many as there are blocks, or more");
    r->n_layers -= further;
    arch_field_int(r, r->config, "num_hidden_layers", r->n_layers);
    return LATH_OK;
}

/* A bool for each block, true where it is of the delta rule; else every n-th layer, from the n-th on, is full attention. */
static lath_status read_kinds(arch_gguf_reading *r, int64_t blocks)
{
    static const char key[] = "attention.recurrent_layers", interval_key[] = "full_attention_interval";
    const gguf_value *v = arch_key_get(r, key);
    int64_t interval = USUAL_INTERVAL;
    TRY(arch_key_size(r, interval_key, &interval));
    if (interval == 0) return arch_key_bad(r, LATH_ERR_FORMAT, interval_key, "want 1 or more");
    if (v && (v->kind != GGUF_ARRAY || v->as.array.kind != GGUF_BOOL || v->as.array.count != (uint64_t)blocks))
        return arch_key_bad(r, LATH_ERR_FORMAT, key, "want a bool for each block");
    if (r->n_layers > MAX_LAYERS) return LATH_OK; /* parse() says so */
    const uint8_t *at = v ? v->as.array.data : NULL;
    json_value *list = arch_field_put(r, r->config, "layer_types", JSON_ARRAY);
    for (int64_t i = 0; i < r->n_layers; i++) {
        const bool recurrent = v ? gguf_next(v, &at).as.u != 0 : (i + 1) % interval != 0;
        arch_field_text(r, list, NULL, recurrent ? "linear_attention" : "full_attention");
    }
    return LATH_OK;
}

static lath_status read_value_heads(arch_gguf_reading *r)
{
    int64_t heads = 0, inner = 0;
    TRY(arch_key_size(r, "ssm.time_step_rank", &heads));
    TRY(arch_key_size(r, "ssm.inner_size", &inner));
    if (heads == 0) return arch_key_bad(r, LATH_ERR_FORMAT, "ssm.time_step_rank", "want 1 or more");
    if (inner == 0 || inner % heads != 0)
        return arch_key_bad(r, LATH_ERR_FORMAT, "ssm.inner_size", "want a multiple of ssm.time_step_rank");
    arch_field_int(r, r->config, "linear_value_head_dim", inner / heads);
    return LATH_OK;
}

/* How rotary pairs are dealt out to a picture's axes: the positions of a text are the same on all. */
static lath_status check_sections(const arch_gguf_reading *r)
{
    static const char key[] = "rope.dimension_sections";
    const gguf_value *v = arch_key_get(r, key);
    if (!v) return LATH_OK;
    bool good = v->kind == GGUF_ARRAY && v->as.array.count > 0 && v->as.array.count <= MAX_SECTIONS;
    const uint8_t *at = good ? v->as.array.data : NULL;
    for (uint64_t i = 0; good && i < v->as.array.count; i++) {
        const gguf_value item = gguf_next(v, &at);
        int64_t n;
        good = gguf_whole(&item, INT32_MAX, &n);
    }
    return good ? LATH_OK : arch_key_bad(r, LATH_ERR_FORMAT, key, "want whole numbers, four at most");
}

/* Some layer that is computed has this tensor. */
static bool has_tensor(const arch_gguf_reading *r, const char *part)
{
    char name[64];
    for (int64_t i = 0; i < r->n_layers && i < MAX_LAYERS; i++) {
        snprintf(name, sizeof(name), "blk.%d.%s", (int)i, part);
        if (arch_key_tensor(r, name)) return true;
    }
    return false;
}

lath_status arch_gguf_finish_qwen35(arch_gguf_reading *r)
{
    int64_t blocks;
    TRY(read_layers(r, &blocks));
    TRY(read_kinds(r, blocks));
    TRY(read_value_heads(r));
    /* Where config.json says nothing a quarter of a head turns; where these files say nothing all of it does. */
    if (!json_get(r->config, "partial_rotary_factor")) arch_field_real(r, r->config, "partial_rotary_factor", 1);
    if (!json_get(r->config, "attention_bias") && has_tensor(r, "attn_q.bias"))
        arch_field_flag(r, "attention_bias", true);
    return check_sections(r);
}

lath_status arch_gguf_finish_qwen3next(arch_gguf_reading *r)
{
    arch_field_flag(r, "norm_topk_prob", true); /* files do not say it; readers of such files take it so */
    arch_field_int(r, r->config, "decoder_sparse_step", 1);
    TRY(arch_gguf_finish_qwen35(r));
    if (has_tensor(r, "ssm_in.weight")) r->stored &= ~(uint32_t)ARCH_STORED_SPLIT_Z; /* older files, as in the folder */
    return LATH_OK;
}
