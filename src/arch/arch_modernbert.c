/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_modernbert.c: ModernBERT encoders (Warner et al. 2024): token embeddings alone, pre-norm blocks, rotary positions, gated FFN. Some layers see all of
 * a text, the others a window of it; each kind turns by angles of its own. The first block has no norm before its attention: the embeddings'
 * norm stands there.
 */
#include <math.h>
#include <string.h>

#include "arch/arch_config.h"
#include "arch/arch_prenorm.h"

/* Bits of arch_model.has. */
enum { HAS_ATTENTION_BIAS = 1, HAS_MLP_BIAS = 2, HAS_NORM_BIAS = 4 };

#define MODEL(field) offsetof(prenorm_model, field)
#define LAYER(field) offsetof(prenorm_layer, field)
#define L "layers.{}."
#define QKV_BIAS(part) .stack = ARCH_QKV_##part, .when = HAS_ATTENTION_BIAS
static const arch_weight_row rows[] = {
    ARCH_MAT(MODEL(embed), "embeddings.tok_embeddings.weight", ARCH_VOCAB, ARCH_D_MODEL),
    ARCH_VEC(MODEL(embed_norm.gamma), "embeddings.norm.weight", ARCH_D_MODEL),
    ARCH_VEC(MODEL(embed_norm.beta), "embeddings.norm.bias", ARCH_D_MODEL, .when = HAS_NORM_BIAS),
    ARCH_VEC(MODEL(final_norm.gamma), "final_norm.weight", ARCH_D_MODEL),
    ARCH_VEC(MODEL(final_norm.beta), "final_norm.bias", ARCH_D_MODEL, .when = HAS_NORM_BIAS),
    ARCH_VEC(LAYER(attn_norm.gamma), L "attn_norm.weight", ARCH_D_MODEL, .optional = true),
    ARCH_VEC(LAYER(attn_norm.beta), L "attn_norm.bias", ARCH_D_MODEL, .when = HAS_NORM_BIAS, .optional = true),
    ARCH_MAT(LAYER(attn.q.w), L "attn.Wqkv.weight", ARCH_D_Q, ARCH_D_MODEL, .stack = ARCH_QKV_Q),
    ARCH_VEC(LAYER(attn.q.bias), L "attn.Wqkv.bias", ARCH_D_Q, QKV_BIAS(Q)),
    ARCH_MAT(LAYER(attn.k.w), L "attn.Wqkv.weight", ARCH_D_KV, ARCH_D_MODEL, .stack = ARCH_QKV_K),
    ARCH_VEC(LAYER(attn.k.bias), L "attn.Wqkv.bias", ARCH_D_KV, QKV_BIAS(K)),
    ARCH_MAT(LAYER(attn.v.w), L "attn.Wqkv.weight", ARCH_D_KV, ARCH_D_MODEL, .stack = ARCH_QKV_V),
    ARCH_VEC(LAYER(attn.v.bias), L "attn.Wqkv.bias", ARCH_D_KV, QKV_BIAS(V)),
    ARCH_MAT(LAYER(attn.o.w), L "attn.Wo.weight", ARCH_D_MODEL, ARCH_D_Q),
    ARCH_VEC(LAYER(attn.o.bias), L "attn.Wo.bias", ARCH_D_MODEL, .when = HAS_ATTENTION_BIAS),
    ARCH_VEC(LAYER(ffn_norm.gamma), L "mlp_norm.weight", ARCH_D_MODEL),
    ARCH_VEC(LAYER(ffn_norm.beta), L "mlp_norm.bias", ARCH_D_MODEL, .when = HAS_NORM_BIAS),
    ARCH_MAT(LAYER(ffn.gate.w), L "mlp.Wi.weight", ARCH_D_FF, ARCH_D_MODEL, .stack = ARCH_FIRST_HALF),
    ARCH_VEC(LAYER(ffn.gate.bias), L "mlp.Wi.bias", ARCH_D_FF, .stack = ARCH_FIRST_HALF, .when = HAS_MLP_BIAS),
    ARCH_MAT(LAYER(ffn.up.w), L "mlp.Wi.weight", ARCH_D_FF, ARCH_D_MODEL, .stack = ARCH_SECOND_HALF),
    ARCH_VEC(LAYER(ffn.up.bias), L "mlp.Wi.bias", ARCH_D_FF, .stack = ARCH_SECOND_HALF, .when = HAS_MLP_BIAS),
    ARCH_MAT(LAYER(ffn.down.w), L "mlp.Wo.weight", ARCH_D_MODEL, ARCH_D_FF),
    ARCH_VEC(LAYER(ffn.down.bias), L "mlp.Wo.bias", ARCH_D_MODEL, .when = HAS_MLP_BIAS),
};
#undef L
#undef QKV_BIAS

/* --------------------------------------------------------------------------------------------------- configuration */

static lath_status parse_sizes(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    prenorm_model *w = m->weights;
    arch_dims *d = &m->dims;
    int64_t head_dim;
    TRY(arch_read_sizes(c, name, &arch_usual_keys, 1 << 24, d, err));
    head_dim = d->head_dim;
    TRY(json_get_int(c, "head_dim", name, 1, 1 << 16, &head_dim, err));
    if (head_dim == 0 || head_dim != d->head_dim || head_dim % 2 != 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: hidden_size %lld is not num_attention_heads %d times %lld, in pairs",
                       name, (long long)d->d_model, d->n_heads, (long long)head_dim);
    w->attn_scale = 1 / sqrt((double)head_dim);
    return LATH_OK;
}

static lath_status parse_flags(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    TRY(arch_read_flag(m, c, name, "attention_bias", false, HAS_ATTENTION_BIAS, err));
    TRY(arch_read_flag(m, c, name, "mlp_bias", false, HAS_MLP_BIAS, err));
    return arch_read_flag(m, c, name, "norm_bias", false, HAS_NORM_BIAS, err);
}

/* Every nth layer is full, from the first on. */
static bool slides(int64_t every, int32_t layer) { return layer % every != 0; }

/* The window "local_attention" is that of both sides together; newer files may say "sliding_window", one side's. */
static lath_status parse_reach(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    prenorm_model *w = m->weights;
    int64_t window = 128;
    TRY(json_get_int(c, "local_attention", name, 0, INT32_MAX, &window, err));
    w->reach = window / 2;
    return json_get_int(c, "sliding_window", name, 0, INT32_MAX, &w->reach, err);
}

static lath_status parse(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    static const struct {
        const char *type, *theta_key;
        double theta;
    } ropes[PRENORM_N_KINDS] = {
        [PRENORM_FULL] = {"full_attention", "global_rope_theta", 160000},
        [PRENORM_SLIDING] = {"sliding_attention", "local_rope_theta", 10000},
    };
    prenorm_model *w = m->weights;
    int64_t every = 3;
    TRY(parse_sizes(m, c, name, err));
    TRY(parse_flags(m, c, name, err));
    w->norm_kind = NORM_LAYER;
    w->embed_scale = w->residual_scale = 1;
    w->bidirectional = true;
    w->eps = 1e-5;
    TRY(arch_read_activation(m, c, name, "hidden_activation", "gelu", &w->fn, err));
    TRY(arch_read_eps(c, name, "norm_eps", &w->eps, err));
    TRY(json_get_int(c, "global_attn_every_n_layers", name, 1, INT32_MAX, &every, err));
    TRY(parse_reach(m, c, name, err));
    TRY(prenorm_layer_kinds(m, c, name, slides, every, err));
    for (int k = 0; k < PRENORM_N_KINDS; k++) {
        if (!w->uses[k]) continue;
        const arch_rope_spec spec = {.layer_type = ropes[k].type,
                                     .theta_key = ropes[k].theta_key,
                                     .scaled = true,
                                     .theta = ropes[k].theta,
                                     .head_dim = m->dims.head_dim,
                                     .max_positions = m->dims.max_positions};
        TRY(arch_rope_parse(c, name, &spec, m->mem, &w->ropes[k], err));
    }
    return LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------- after binding */

/* The norm before attention is there in every layer but the first. */
static lath_status check_attn_norm(const arch_model *m, int32_t i, lath_error *err)
{
    const prenorm_model *w = m->weights;
    const op_norm *n = &((prenorm_layer *)m->layers)[i].attn_norm;
    const char *file = w->embed.file;
    if (i == 0 && (n->gamma.data || n->beta.data))
        return err_set(err, LATH_ERR_FORMAT, "%s: tensor \"layers.0.attn_norm.%s\": the first layer has no such norm",
                       file, n->gamma.data ? "weight" : "bias");
    if (i > 0 && (!n->gamma.data || ((m->has & HAS_NORM_BIAS) && !n->beta.data)))
        return err_set(err, LATH_ERR_FORMAT, "%s: no tensor \"layers.%d.attn_norm.%s\"", file, i,
                       n->gamma.data ? "bias" : "weight");
    return LATH_OK;
}

static lath_status finish(arch_model *m, lath_error *err)
{
    for (int32_t i = 0; i < m->dims.n_layers; i++) TRY(check_attn_norm(m, i, err));
    return prenorm_finish(m, err);
}

static const char *const prefixes[] = {"model.", "", NULL};

extern const arch_desc arch_modernbert;
const arch_desc arch_modernbert = {
    .name = "modernbert",
    .prefixes = prefixes,
    .parse = parse,
    .rows = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
    .model_size = sizeof(prenorm_model),
    .layer_size = sizeof(prenorm_layer),
    .finish = finish,
    .state_floats = prenorm_state_floats,
    .forward = prenorm_forward,
};
