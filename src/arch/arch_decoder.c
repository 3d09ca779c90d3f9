/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_decoder.c: weights and forward of the pre-norm decoder (Radford et al. 2019, Touvron et al. 2023):
 *
 *     x = scale embed[id]
 *     x += [norm] Attention(norm(x));  x += [norm] FFN(norm(x))      each layer; norms in brackets: Gemma only
 *     out = norm(x)
 *
 * The sum that updates x and the norm that reads it next run as one pass, so a layer begins with its input normed already.
 */
#include "arch/arch_decoder.h"

#include <math.h>
#include <string.h>

#define MODEL(field) offsetof(decoder_model, field)
#define LAYER(field) offsetof(decoder_layer, field)
#define A "layers.{}.self_attn."
#define F "layers.{}.mlp."
#define N "layers.{}."
const arch_weight_row decoder_rows[] = {
    ARCH_MAT(MODEL(embed), "embed_tokens.weight", ARCH_VOCAB, ARCH_D_MODEL),
    ARCH_VEC(MODEL(final_norm.gamma), "norm.weight", ARCH_D_MODEL),
    ARCH_VEC(LAYER(attn_norm.gamma), N "input_layernorm.weight", ARCH_D_MODEL),
    ARCH_VEC(LAYER(ffn_norm.gamma), N "post_attention_layernorm.weight", ARCH_D_MODEL, .when = DECODER_PRE_ONLY),
    ARCH_VEC(LAYER(attn_post_norm.gamma), N "post_attention_layernorm.weight", ARCH_D_MODEL,
             .when = DECODER_POST_NORMS),
    ARCH_VEC(LAYER(ffn_norm.gamma), N "pre_feedforward_layernorm.weight", ARCH_D_MODEL, .when = DECODER_POST_NORMS),
    ARCH_VEC(LAYER(ffn_post_norm.gamma), N "post_feedforward_layernorm.weight", ARCH_D_MODEL,
             .when = DECODER_POST_NORMS),
    ARCH_MAT(LAYER(attn.q.w), A "q_proj.weight", ARCH_D_Q, ARCH_D_MODEL),
    ARCH_MAT(LAYER(attn.k.w), A "k_proj.weight", ARCH_D_KV, ARCH_D_MODEL),
    ARCH_MAT(LAYER(attn.v.w), A "v_proj.weight", ARCH_D_KV, ARCH_D_MODEL),
    ARCH_MAT(LAYER(attn.o.w), A "o_proj.weight", ARCH_D_MODEL, ARCH_D_Q),
    ARCH_VEC(LAYER(attn.q.bias), A "q_proj.bias", ARCH_D_Q, .when = DECODER_QKV_BIAS),
    ARCH_VEC(LAYER(attn.k.bias), A "k_proj.bias", ARCH_D_KV, .when = DECODER_QKV_BIAS),
    ARCH_VEC(LAYER(attn.v.bias), A "v_proj.bias", ARCH_D_KV, .when = DECODER_QKV_BIAS),
    ARCH_VEC(LAYER(attn.o.bias), A "o_proj.bias", ARCH_D_MODEL, .when = DECODER_O_BIAS),
    ARCH_VEC(LAYER(attn.q_norm.gamma), A "q_norm.weight", ARCH_HEAD_DIM, .when = DECODER_QK_NORM),
    ARCH_VEC(LAYER(attn.k_norm.gamma), A "k_norm.weight", ARCH_HEAD_DIM, .when = DECODER_QK_NORM),
    ARCH_MAT(LAYER(ffn.gate.w), F "gate_proj.weight", ARCH_D_FF, ARCH_D_MODEL),
    ARCH_MAT(LAYER(ffn.up.w), F "up_proj.weight", ARCH_D_FF, ARCH_D_MODEL),
    ARCH_MAT(LAYER(ffn.down.w), F "down_proj.weight", ARCH_D_MODEL, ARCH_D_FF),
    ARCH_VEC(LAYER(ffn.gate.bias), F "gate_proj.bias", ARCH_D_FF, .when = DECODER_MLP_BIAS),
    ARCH_VEC(LAYER(ffn.up.bias), F "up_proj.bias", ARCH_D_FF, .when = DECODER_MLP_BIAS),
    ARCH_VEC(LAYER(ffn.down.bias), F "down_proj.bias", ARCH_D_MODEL, .when = DECODER_MLP_BIAS),
};
#undef A
#undef F
#undef N
_Static_assert(sizeof(decoder_rows) / sizeof(decoder_rows[0]) == DECODER_N_ROWS, "DECODER_N_ROWS");
const char *const decoder_prefixes[] = {"model.", "", "language_model.model.", NULL};

/* -------------------------------------------------------------------------------------------------------- configuration */

lath_status decoder_parse(arch_model *m, const json_value *c, const char *name, const char *activation_key,
                          int64_t head_dim_default, lath_error *err)
{
    decoder_model *w = m->weights;
    int64_t vocab = 0, d = 0, layers = 0, heads = 0, ff = 0, positions = 0, kv = 0, head_dim = 0;
    const struct {
        const char *key;
        int64_t max, *out;
        bool required;
    } ints[] = {
        {"vocab_size", 1 << 24, &vocab, true},        {"hidden_size", 1 << 16, &d, true},
        {"num_hidden_layers", 1024, &layers, true},   {"num_attention_heads", 1 << 12, &heads, true},
        {"intermediate_size", 1 << 20, &ff, true},    {"max_position_embeddings", INT32_MAX / 2, &positions, true},
        {"num_key_value_heads", 1 << 12, &kv, false}, {"head_dim", 1 << 12, &head_dim, false},
    };
    for (size_t i = 0; i < sizeof(ints) / sizeof(ints[0]); i++) {
        TRY(json_get_int(c, ints[i].key, name, 1, ints[i].max, ints[i].out, err));
        if (*ints[i].out == 0 && ints[i].required)
            return err_set(err, LATH_ERR_FORMAT, "%s: no \"%s\" in it", name, ints[i].key);
    }
    if (kv == 0) kv = heads;
    if (head_dim == 0) head_dim = head_dim_default;
    if (head_dim == 0 && d % heads != 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: hidden_size %lld is no multiple of num_attention_heads %lld", name,
                       (long long)d, (long long)heads);
    if (head_dim == 0) head_dim = d / heads;
    if (heads % kv != 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: num_attention_heads %lld is no multiple of num_key_value_heads %lld",
                       name, (long long)heads, (long long)kv);
    const char *act = NULL;
    w->eps = 1e-6;
    TRY(json_get_real(c, "rms_norm_eps", name, &w->eps, err));
    if (!(w->eps >= 0 && w->eps < 1)) return err_set(err, LATH_ERR_FORMAT, "%s: rms_norm_eps is out of range", name);
    TRY(json_get_str(c, "hidden_act", name, &act, err));
    TRY(json_get_str(c, activation_key, name, &act, err));
    if (!act) return err_set(err, LATH_ERR_FORMAT, "%s: no \"%s\" in it", name, activation_key);
    if (!nn_activation(act, &w->fn))
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: %s \"%s\" is not supported", name, activation_key, act);
    bool causal = true;
    TRY(json_get_bool(c, "is_causal", name, &causal, err));
    w->bidirectional = !causal;
    w->embed_scale = 1;
    w->attn_scale = 1 / sqrt((double)head_dim);
    const char *kept = arena_strdup(m->mem, act, strlen(act));
    if (!kept) return err_nomem(err, strlen(act));
    m->dims = (arch_dims){
        .n_layers = (int32_t)layers,
        .n_heads = (int32_t)heads,
        .n_kv_heads = (int32_t)kv,
        .vocab_size = (int32_t)vocab,
        .max_positions = (int32_t)positions,
        .pad_id = -1,
        .d_model = d,
        .d_ff = ff,
        .head_dim = head_dim,
        .activation = kept,
    };
    return LATH_OK;
}

static lath_status listed_kinds(const arch_model *m, const json_value *list, const char *name, uint8_t *kinds,
                                lath_error *err)
{
    if (list->kind != JSON_ARRAY || list->u.items.count != (size_t)m->dims.n_layers)
        return err_set(err, LATH_ERR_FORMAT, "%s: line %u: \"layer_types\": want an array of %d strings", name,
                       list->line, m->dims.n_layers);
    int32_t i = 0;
    for (const json_value *v = list->u.items.first; v; v = v->next, i++) {
        if (json_is_string(v, "sliding_attention"))
            kinds[i] = DECODER_SLIDING;
        else if (!json_is_string(v, "full_attention"))
            return err_set(err, LATH_ERR_UNSUPPORTED, "%s: line %u: layer type %.60s is not supported", name, v->line,
                           v->kind == JSON_STRING ? v->u.string.data : "that is no string");
    }
    return LATH_OK;
}

lath_status decoder_layer_kinds(arch_model *m, const json_value *config, const char *name,
                                bool (*slides)(int64_t ctx, int32_t layer), int64_t ctx, lath_error *err)
{
    decoder_model *w = m->weights;
    const json_value *list = json_get(config, "layer_types");
    w->kinds = arena_zero(m->mem, (size_t)m->dims.n_layers);
    if (!w->kinds) return err_nomem(err, (size_t)m->dims.n_layers);
    if (json_present(list))
        TRY(listed_kinds(m, list, name, w->kinds, err));
    else
        for (int32_t i = 0; i < m->dims.n_layers; i++) w->kinds[i] = slides(ctx, i) ? DECODER_SLIDING : DECODER_FULL;
    for (int32_t i = 0; i < m->dims.n_layers; i++) w->uses[w->kinds[i]] = true;
    if (w->uses[DECODER_SLIDING] && w->reach < 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: layers with a sliding window, but no \"sliding_window\"", name);
    return LATH_OK;
}

/* -------------------------------------------------------------------------------------------------------------- weights */

/* A norm's weights as the product takes them: offset + weight. */
static lath_status finish_norm(const arch_model *m, op_norm *n, lath_error *err)
{
    const decoder_model *w = m->weights;
    n->kind = NORM_RMS;
    n->eps = (float)w->eps;
    if (!n->gamma.data || w->norm_offset == 0) return LATH_OK;
    float *shifted = arena_array(m->mem, (size_t)n->gamma.n, sizeof(float));
    if (!shifted) return err_nomem(err, (size_t)n->gamma.n * sizeof(float));
    for (int64_t i = 0; i < n->gamma.n; i++) shifted[i] = w->norm_offset + n->gamma.data[i];
    n->gamma.data = shifted;
    return LATH_OK;
}

static lath_status finish_layer(const arch_model *m, decoder_layer *l, lath_error *err)
{
    const decoder_model *w = m->weights;
    op_norm *const norms[] = {&l->attn_norm,     &l->attn_post_norm, &l->ffn_norm,
                              &l->ffn_post_norm, &l->attn.q_norm,    &l->attn.k_norm};
    for (size_t i = 0; i < sizeof(norms) / sizeof(norms[0]); i++) TRY(finish_norm(m, norms[i], err));
    l->attn.n_heads = m->dims.n_heads;
    l->attn.n_kv_heads = m->dims.n_kv_heads;
    l->attn.head_dim = m->dims.head_dim;
    l->attn.scale = (float)w->attn_scale;
    return LATH_OK;
}

lath_status decoder_finish(arch_model *m, lath_error *err)
{
    decoder_model *w = m->weights;
    decoder_layer *layers = m->layers;
    for (int32_t i = 0; i < m->dims.n_layers; i++) TRY(finish_layer(m, &layers[i], err));
    TRY(finish_norm(m, &w->final_norm, err));
    ffn_dense_init(&w->ffn, w->fn, m->dims.d_ff, &layers[0].ffn, sizeof(decoder_layer));
    return LATH_OK;
}

/* -------------------------------------------------------------------------------------------------------------- forward */

/* Activations of a batch: the residual stream, its norm, what a block adds, and one block that holds Q, K, V and the heads' results during
 * attention, the hidden features during the FFN; then what the layers of each kind share:
 *     | x [n, d] | h [n, d] | delta [n, d] | wide | masks and rope tables by kind | */
typedef struct decoder_state {
    view x, h, delta, qkv, ctx, hidden;
    nn_attention_args kinds[DECODER_N_KINDS];
    nn_rope_table ropes[DECODER_N_KINDS];
} decoder_state;

static size_t wide_floats(const arch_model *m, const backend_ops *ops, int64_t n_tok)
{
    const decoder_model *w = m->weights;
    const int64_t d_q = m->dims.n_heads * m->dims.head_dim, d_kv = m->dims.n_kv_heads * m->dims.head_dim;
    const size_t attn = ops->view_floats(n_tok, 2 * d_q + 2 * d_kv);
    const size_t ff = ops->view_floats(n_tok, w->ffn.base.scratch_features);
    return attn > ff ? attn : ff;
}

size_t decoder_state_floats(const arch_model *m, const backend_ops *ops, int64_t n_tok)
{
    const decoder_model *w = m->weights;
    size_t n = 3 * ops->view_floats(n_tok, m->dims.d_model) + wide_floats(m, ops, n_tok);
    for (int k = 0; k < DECODER_N_KINDS; k++)
        if (w->uses[k]) n += nn_mask_floats(n_tok) + nn_rope_floats(&w->ropes[k], ops, n_tok);
    return n;
}

/* Masks and rope tables of the kinds of layers that the model has, in `memory`. */
static lath_status prepare_kinds(const decoder_model *w, const fwd *f, float *memory, decoder_state *s)
{
    for (int k = 0; k < DECODER_N_KINDS; k++) {
        if (!w->uses[k]) continue;
        const int64_t behind = k == DECODER_SLIDING ? w->reach : -1, ahead = w->bidirectional ? behind : 0;
        s->kinds[k].mask = nn_mask_window(f->b, behind, ahead, (int32_t *)(void *)memory);
        memory += nn_mask_floats(f->b->n_tok);
        s->kinds[k].rope = &s->ropes[k];
        if (k == DECODER_SLIDING && w->one_rope && w->uses[DECODER_FULL]) {
            s->kinds[k].rope = &s->ropes[DECODER_FULL];
            continue;
        }
        TRY(nn_rope_fill(f, &w->ropes[k], memory, &s->ropes[k]));
        memory += nn_rope_floats(&w->ropes[k], f->s->ops, f->b->n_tok);
    }
    return LATH_OK;
}

static lath_status make_state(const arch_model *m, const fwd *f, float *memory, decoder_state *s)
{
    const backend_ops *ops = f->s->ops;
    const decoder_model *w = m->weights;
    const int64_t n_tok = f->b->n_tok, d = m->dims.d_model, d_q = m->dims.n_heads * m->dims.head_dim,
                  d_qkv = d_q + 2 * m->dims.n_kv_heads * m->dims.head_dim;
    const size_t n = ops->view_floats(n_tok, d);
    float *wide = memory + 3 * n;
    *s = (decoder_state){
        .x = ops->make_view(memory, n_tok, d),
        .h = ops->make_view(memory + n, n_tok, d),
        .delta = ops->make_view(memory + 2 * n, n_tok, d),
        .qkv = ops->make_view(wide, n_tok, d_qkv),
        .ctx = ops->make_view(wide + ops->view_floats(n_tok, d_qkv), n_tok, d_q),
        .hidden = ops->make_view(wide, n_tok, w->ffn.base.scratch_features),
    };
    return prepare_kinds(w, f, wide + wide_floats(m, ops, n_tok), s);
}

/* x += [post] delta, h = norm(x). */
static lath_status add_block(const fwd *f, const op_norm *post, const op_norm *norm, trace_point point, int32_t layer,
                             const decoder_state *s)
{
    if (post->gamma.data) TRY(nn_norm(f, s->delta, NULL, post, s->delta));
    TRY(trace_emit(f, point, layer, s->delta));
    return nn_add_norm(f, s->x, s->delta, norm, s->h);
}

/* s->h holds the norm of s->x that the layer reads; leaves the norm that `next` makes. */
static lath_status block(decoder_model *w, decoder_layer *l, const op_norm *next, const fwd *f, int32_t i,
                         const decoder_state *s)
{
    TRY(nn_attention(f, &l->attn, &s->kinds[w->kinds[i]], s->h, s->qkv, s->ctx, s->delta));
    TRY(add_block(f, &l->attn_post_norm, &l->ffn_norm, TRACE_ATTN_OUT, i, s));
    TRY(trace_emit(f, TRACE_ATTN_NORM, i, s->h));
    TRY(ffn_forward(&w->ffn.base, f, i, s->h, s->hidden, s->delta));
    TRY(add_block(f, &l->ffn_post_norm, next, TRACE_FFN_OUT, i, s));
    return trace_emit(f, TRACE_RESIDUAL, i, s->x);
}

lath_status decoder_forward(arch_model *m, const fwd *f, float *state, view *out)
{
    decoder_model *w = m->weights;
    decoder_layer *layers = m->layers;
    decoder_state s;
    TRY(make_state(m, f, state, &s));
    const op_gather_source source = {&w->embed, f->b->ids};
    const op_gather g = {&source, 1, w->embed_scale, s.x};
    TRY(f->s->ops->gather(f->s, &g));
    TRY(trace_emit(f, TRACE_EMBED, -1, s.x));
    TRY(nn_norm(f, s.x, NULL, &layers[0].attn_norm, s.h));
    for (int32_t i = 0; i < m->dims.n_layers; i++) {
        const op_norm *next = i + 1 < m->dims.n_layers ? &layers[i + 1].attn_norm : &w->final_norm;
        TRY(block(w, &layers[i], next, f, i, &s));
    }
    *out = s.h;
    return LATH_OK;
}
