/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_bert.c: BERT encoders (Devlin et al. 2018): token, position and type embeddings, post-norm blocks, bidirectional attention. Also MiniLM, BGE, E5,
 * GTE and every other model whose config.json says model_type "bert".
 */
#include <math.h>
#include <string.h>

#include "arch/arch.h"

typedef struct bert_layer {
    nn_attention_w attn;
    op_norm attn_norm, ffn_norm;
    ffn_dense_layer ffn;
} bert_layer;

typedef struct bert_model {
    weight word, position, type; /* [vocab, d], [positions, d], [types, d] */
    op_norm embed_norm;
    double eps;
    kern_fn fn;
    ffn_dense ffn;
} bert_model;

#define MODEL(field) offsetof(bert_model, field)
#define LAYER(field) offsetof(bert_layer, field)
#define L "encoder.layer.{}."
static const arch_weight_row bert_rows[] = {
    ARCH_MAT(MODEL(word), "embeddings.word_embeddings.weight", ARCH_VOCAB, ARCH_D_MODEL),
    ARCH_MAT(MODEL(position), "embeddings.position_embeddings.weight", ARCH_POSITIONS, ARCH_D_MODEL),
    ARCH_MAT(MODEL(type), "embeddings.token_type_embeddings.weight", ARCH_TYPES, ARCH_D_MODEL),
    ARCH_VEC(MODEL(embed_norm.gamma), "embeddings.LayerNorm.weight", ARCH_D_MODEL,
             .hf_old = "embeddings.LayerNorm.gamma"),
    ARCH_VEC(MODEL(embed_norm.beta), "embeddings.LayerNorm.bias", ARCH_D_MODEL, .hf_old = "embeddings.LayerNorm.beta"),
    ARCH_MAT(LAYER(attn.q.w), L "attention.self.query.weight", ARCH_D_MODEL, ARCH_D_MODEL),
    ARCH_VEC(LAYER(attn.q.bias), L "attention.self.query.bias", ARCH_D_MODEL),
    ARCH_MAT(LAYER(attn.k.w), L "attention.self.key.weight", ARCH_D_MODEL, ARCH_D_MODEL),
    ARCH_VEC(LAYER(attn.k.bias), L "attention.self.key.bias", ARCH_D_MODEL),
    ARCH_MAT(LAYER(attn.v.w), L "attention.self.value.weight", ARCH_D_MODEL, ARCH_D_MODEL),
    ARCH_VEC(LAYER(attn.v.bias), L "attention.self.value.bias", ARCH_D_MODEL),
    ARCH_MAT(LAYER(attn.o.w), L "attention.output.dense.weight", ARCH_D_MODEL, ARCH_D_MODEL),
    ARCH_VEC(LAYER(attn.o.bias), L "attention.output.dense.bias", ARCH_D_MODEL),
    ARCH_VEC(LAYER(attn_norm.gamma), L "attention.output.LayerNorm.weight", ARCH_D_MODEL,
             .hf_old = L "attention.output.LayerNorm.gamma"),
    ARCH_VEC(LAYER(attn_norm.beta), L "attention.output.LayerNorm.bias", ARCH_D_MODEL,
             .hf_old = L "attention.output.LayerNorm.beta"),
    ARCH_MAT(LAYER(ffn.up.w), L "intermediate.dense.weight", ARCH_D_FF, ARCH_D_MODEL),
    ARCH_VEC(LAYER(ffn.up.bias), L "intermediate.dense.bias", ARCH_D_FF),
    ARCH_MAT(LAYER(ffn.down.w), L "output.dense.weight", ARCH_D_MODEL, ARCH_D_FF),
    ARCH_VEC(LAYER(ffn.down.bias), L "output.dense.bias", ARCH_D_MODEL),
    ARCH_VEC(LAYER(ffn_norm.gamma), L "output.LayerNorm.weight", ARCH_D_MODEL, .hf_old = L "output.LayerNorm.gamma"),
    ARCH_VEC(LAYER(ffn_norm.beta), L "output.LayerNorm.bias", ARCH_D_MODEL, .hf_old = L "output.LayerNorm.beta"),
};
#undef L

/* Every field that the family has; required ones have no default. Ceilings keep absurd numbers out of the arithmetic. */
static lath_status parse(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    bert_model *w = m->weights;
    int64_t vocab = 0, d = 0, layers = 0, heads = 0, ff = 0, positions = 0, types = 0;
    const struct {
        const char *key;
        int64_t max, *out;
    } ints[] = {
        {"vocab_size", 1 << 24, &vocab},      {"hidden_size", 1 << 16, &d},
        {"num_hidden_layers", 1024, &layers}, {"num_attention_heads", 1 << 12, &heads},
        {"intermediate_size", 1 << 18, &ff},  {"max_position_embeddings", 1 << 20, &positions},
        {"type_vocab_size", 1 << 10, &types},
    };
    for (size_t i = 0; i < sizeof(ints) / sizeof(ints[0]); i++) {
        TRY(json_get_int(c, ints[i].key, name, 1, ints[i].max, ints[i].out, err));
        if (*ints[i].out == 0) return err_set(err, LATH_ERR_FORMAT, "%s: no \"%s\" in it", name, ints[i].key);
    }
    if (d % heads != 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: hidden_size %lld is no multiple of num_attention_heads %lld", name,
                       (long long)d, (long long)heads);
    w->eps = 1e-12;
    TRY(json_get_real(c, "layer_norm_eps", name, &w->eps, err));
    if (!(w->eps >= 0 && w->eps < 1)) return err_set(err, LATH_ERR_FORMAT, "%s: layer_norm_eps is out of range", name);
    const char *act = "gelu", *pos = "absolute";
    TRY(json_get_str(c, "hidden_act", name, &act, err));
    TRY(json_get_str(c, "position_embedding_type", name, &pos, err));
    if (!nn_activation(act, &w->fn))
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: hidden_act \"%s\" is not supported", name, act);
    if (strcmp(pos, "absolute") != 0)
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: position_embedding_type \"%s\" is not supported", name, pos);
    bool decoder = false, cross = false;
    TRY(json_get_bool(c, "is_decoder", name, &decoder, err));
    TRY(json_get_bool(c, "add_cross_attention", name, &cross, err));
    if (decoder || cross)
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: %s: a BERT decoder is not supported", name,
                       decoder ? "is_decoder" : "add_cross_attention");
    const char *kept = arena_strdup(m->mem, act, strlen(act));
    if (!kept) return err_nomem(err, strlen(act));
    m->dims = (arch_dims){
        .n_layers = (int32_t)layers,
        .n_heads = (int32_t)heads,
        .n_kv_heads = (int32_t)heads,
        .vocab_size = (int32_t)vocab,
        .n_positions = (int32_t)positions,
        .max_positions = (int32_t)positions,
        .pad_id = -1,
        .n_types = (int32_t)types,
        .d_model = d,
        .d_ff = ff,
        .head_dim = d / heads,
        .activation = kept,
    };
    return LATH_OK;
}

static lath_status finish(arch_model *m, lath_error *err)
{
    bert_model *w = m->weights;
    bert_layer *layers = m->layers;
    (void)err;
    w->embed_norm.eps = (float)w->eps;
    for (int32_t i = 0; i < m->dims.n_layers; i++) {
        bert_layer *l = &layers[i];
        l->attn.n_heads = l->attn.n_kv_heads = m->dims.n_heads;
        l->attn.head_dim = m->dims.head_dim;
        l->attn.scale = (float)(1 / sqrt((double)m->dims.head_dim));
        l->attn_norm.eps = l->ffn_norm.eps = (float)w->eps;
    }
    ffn_dense_init(&w->ffn, w->fn, m->dims.d_ff, &layers[0].ffn, sizeof(bert_layer));
    return LATH_OK;
}

/* Activations of a batch: x and delta of d_model, and one block that holds Q, K, V and the heads' results during attention, the hidden features
 * during the FFN:
 *     | x [n, d] | delta [n, d] | wide [n, max(4 d, d_ff)] | */
typedef struct bert_state {
    view x, delta, qkv, ctx, hidden;
} bert_state;

static size_t wide_floats(const arch_model *m, const backend_ops *ops, int64_t n_tok)
{
    size_t attn = ops->view_floats(n_tok, 4 * m->dims.d_model), ff = ops->view_floats(n_tok, m->dims.d_ff);
    return attn > ff ? attn : ff;
}

static size_t state_floats(const arch_model *m, const backend_ops *ops, int64_t n_tok)
{
    return 2 * ops->view_floats(n_tok, m->dims.d_model) + wide_floats(m, ops, n_tok);
}

static bert_state make_state(const arch_model *m, const backend_ops *ops, int64_t n_tok, float *memory)
{
    int64_t d = m->dims.d_model;
    size_t n = ops->view_floats(n_tok, d);
    float *wide = memory + 2 * n;
    return (bert_state){
        .x = ops->make_view(memory, n_tok, d),
        .delta = ops->make_view(memory + n, n_tok, d),
        .qkv = ops->make_view(wide, n_tok, 3 * d),
        .ctx = ops->make_view(wide + 3 * n, n_tok, d),
        .hidden = ops->make_view(wide, n_tok, m->dims.d_ff),
    };
}

/* x = LN(word[id] + position[p] + type[t]) */
static lath_status embed(bert_model *w, const fwd *f, view x)
{
    const op_gather_source sources[] = {{&w->word, f->b->ids}, {&w->type, f->b->type_ids}, {&w->position, f->b->pos}};
    const op_gather g = {sources, 3, 1.0f, x};
    TRY(f->s->ops->gather(f->s, &g));
    TRY(nn_norm(f, x, NULL, &w->embed_norm, x));
    return trace_emit(f, TRACE_EMBED, -1, x);
}

/* One post-norm block (Devlin et al. 2018, after Vaswani et al. 2017, fig. 1). x: [n_tok, d_model], changed in place. */
static lath_status block(bert_model *w, bert_layer *l, const fwd *f, int32_t i, const bert_state *s)
{
    const nn_attention_args args = {.mask = nn_mask_all(f->b)};
    TRY(nn_attention(f, &l->attn, &args, s->x, s->qkv, s->ctx, s->delta)); /* delta = Wo MHA(x)     */
    TRY(trace_emit(f, TRACE_ATTN_OUT, i, s->delta));
    TRY(nn_norm(f, s->x, &s->delta, &l->attn_norm, s->x)); /* x = LN(x + delta)      */
    TRY(trace_emit(f, TRACE_ATTN_NORM, i, s->x));
    TRY(ffn_forward(&w->ffn.base, f, i, s->x, s->hidden, s->delta)); /* delta = W2 act(W1 x)   */
    TRY(trace_emit(f, TRACE_FFN_OUT, i, s->delta));
    TRY(nn_norm(f, s->x, &s->delta, &l->ffn_norm, s->x)); /* x = LN(x + delta)      */
    return trace_emit(f, TRACE_RESIDUAL, i, s->x);
}

static lath_status forward(arch_model *m, const fwd *f, float *state, view *out)
{
    bert_model *w = m->weights;
    bert_state s = make_state(m, f->s->ops, f->b->n_tok, state);
    TRY(embed(w, f, s.x));
    for (int32_t i = 0; i < m->dims.n_layers; i++) TRY(block(w, (bert_layer *)m->layers + i, f, i, &s));
    *out = s.x;
    return LATH_OK;
}

static const char *const prefixes[] = {"", "bert.", "model.", NULL};

extern const arch_desc arch_bert;
const arch_desc arch_bert = {
    .name = "bert",
    .prefixes = prefixes,
    .parse = parse,
    .rows = bert_rows,
    .n_rows = sizeof(bert_rows) / sizeof(bert_rows[0]),
    .model_size = sizeof(bert_model),
    .layer_size = sizeof(bert_layer),
    .finish = finish,
    .state_floats = state_floats,
    .forward = forward,
};
