/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_modernbert.c: ModernBERT encoders (Warner et al. 2024): token embeddings alone, pre-norm blocks, rotary positions, gated FFN. Some layers see all of
 * a text, the others a window of it; each kind turns by angles of its own. The first block has no norm before its attention: the embeddings'
 * norm stands there.
 */
#include <math.h>
#include <string.h>

#include "arch/arch.h"
#include "arch/arch_rope.h"

/* Bits of arch_model.has. */
enum { HAS_ATTENTION_BIAS = 1, HAS_MLP_BIAS = 2, HAS_NORM_BIAS = 4 };

/* Kinds of layers. */
enum { FULL, SLIDING, N_KINDS };

typedef struct modernbert_layer {
    op_norm attn_norm, ffn_norm; /* attn_norm: absent in layer 0 */
    nn_attention_w attn;
    ffn_dense_layer ffn;
} modernbert_layer;

typedef struct modernbert_model {
    weight word; /* [vocab, d] */
    op_norm embed_norm, final_norm;
    double eps;
    kern_fn fn;
    uint8_t *kinds;     /* [n_layers] */
    bool uses[N_KINDS]; /* some layer is of this kind */
    nn_rope ropes[N_KINDS];
    int64_t reach; /* a sliding layer's token sees this many tokens before and behind it */
    ffn_dense ffn;
} modernbert_model;

#define MODEL(field) offsetof(modernbert_model, field)
#define LAYER(field) offsetof(modernbert_layer, field)
#define L "layers.{}."
#define QKV_BIAS(part) .stack = ARCH_QKV_##part, .when = HAS_ATTENTION_BIAS
static const arch_weight_row rows[] = {
    ARCH_MAT(MODEL(word), "embeddings.tok_embeddings.weight", ARCH_VOCAB, ARCH_D_MODEL),
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

/* Sizes are required; ceilings keep absurd numbers out of the arithmetic. */
static lath_status parse_sizes(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    int64_t vocab = 0, d = 0, layers = 0, heads = 0, ff = 0, positions = 0;
    const struct {
        const char *key;
        int64_t max, *out;
    } ints[] = {
        {"vocab_size", 1 << 24, &vocab},      {"hidden_size", 1 << 16, &d},
        {"num_hidden_layers", 1024, &layers}, {"num_attention_heads", 1 << 12, &heads},
        {"intermediate_size", 1 << 18, &ff},  {"max_position_embeddings", 1 << 24, &positions},
    };
    for (size_t i = 0; i < sizeof(ints) / sizeof(ints[0]); i++) {
        TRY(json_get_int(c, ints[i].key, name, 1, ints[i].max, ints[i].out, err));
        if (*ints[i].out == 0) return err_set(err, LATH_ERR_FORMAT, "%s: no \"%s\" in it", name, ints[i].key);
    }
    int64_t head_dim = d / heads;
    TRY(json_get_int(c, "head_dim", name, 1, 1 << 16, &head_dim, err));
    if (head_dim * heads != d)
        return err_set(err, LATH_ERR_FORMAT, "%s: hidden_size %lld is not num_attention_heads %lld times %lld", name,
                       (long long)d, (long long)heads, (long long)head_dim);
    if (head_dim % 2 != 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: heads of %lld features cannot be turned in pairs", name,
                       (long long)head_dim);
    m->dims = (arch_dims){
        .n_layers = (int32_t)layers,
        .n_heads = (int32_t)heads,
        .n_kv_heads = (int32_t)heads,
        .vocab_size = (int32_t)vocab,
        .max_positions = (int32_t)positions,
        .pad_id = -1,
        .d_model = d,
        .d_ff = ff,
        .head_dim = head_dim,
    };
    return LATH_OK;
}

static lath_status parse_flags(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    static const struct {
        const char *key;
        uint32_t bit;
    } flags[] = {{"attention_bias", HAS_ATTENTION_BIAS}, {"mlp_bias", HAS_MLP_BIAS}, {"norm_bias", HAS_NORM_BIAS}};
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        bool on = false;
        TRY(json_get_bool(c, flags[i].key, name, &on, err));
        if (on) m->has |= flags[i].bit;
    }
    return LATH_OK;
}

static lath_status parse_activation(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    modernbert_model *w = m->weights;
    const char *act = "gelu";
    TRY(json_get_str(c, "hidden_activation", name, &act, err));
    if (!nn_activation(act, &w->fn))
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: hidden_activation \"%s\" is not supported", name, act);
    m->dims.activation = arena_strdup(m->mem, act, strlen(act));
    if (!m->dims.activation) return err_nomem(err, strlen(act));
    w->eps = 1e-5;
    TRY(json_get_real(c, "norm_eps", name, &w->eps, err));
    if (!(w->eps >= 0 && w->eps < 1)) return err_set(err, LATH_ERR_FORMAT, "%s: norm_eps is out of range", name);
    return LATH_OK;
}

/* "layer_types", or every nth layer is full from the first on. */
static lath_status parse_kinds(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    modernbert_model *w = m->weights;
    const json_value *types = json_get(c, "layer_types");
    int64_t every = 3;
    TRY(json_get_int(c, "global_attn_every_n_layers", name, 1, INT32_MAX, &every, err));
    w->kinds = arena_array(m->mem, (size_t)m->dims.n_layers, 1);
    if (!w->kinds) return err_nomem(err, (size_t)m->dims.n_layers);
    if (json_present(types)) {
        if (types->kind != JSON_ARRAY || types->u.items.count != (size_t)m->dims.n_layers)
            return err_set(err, LATH_ERR_FORMAT, "%s: line %u: \"layer_types\": want an array of %d", name, types->line,
                           m->dims.n_layers);
        const json_value *v = types->u.items.first;
        for (int32_t i = 0; i < m->dims.n_layers; i++, v = v->next) {
            const bool full = json_is_string(v, "full_attention");
            if (!full && !json_is_string(v, "sliding_attention"))
                return err_set(err, LATH_ERR_UNSUPPORTED,
                               "%s: line %u: \"layer_types\": want \"full_attention\" or \"sliding_attention\"", name,
                               v->line);
            w->kinds[i] = full ? FULL : SLIDING;
        }
    } else {
        for (int32_t i = 0; i < m->dims.n_layers; i++) w->kinds[i] = i % every ? SLIDING : FULL;
    }
    for (int32_t i = 0; i < m->dims.n_layers; i++) w->uses[w->kinds[i]] = true;
    return LATH_OK;
}

/* The window "local_attention" is that of both sides together; newer files may say "sliding_window", one side's. */
static lath_status parse_reach(arch_model *m, const json_value *c, const char *name, lath_error *err)
{
    modernbert_model *w = m->weights;
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
    } ropes[N_KINDS] = {
        [FULL] = {"full_attention", "global_rope_theta", 160000},
        [SLIDING] = {"sliding_attention", "local_rope_theta", 10000},
    };
    modernbert_model *w = m->weights;
    TRY(parse_sizes(m, c, name, err));
    TRY(parse_flags(m, c, name, err));
    TRY(parse_activation(m, c, name, err));
    TRY(parse_kinds(m, c, name, err));
    TRY(parse_reach(m, c, name, err));
    for (int k = 0; k < N_KINDS; k++) {
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
    const modernbert_model *w = m->weights;
    const op_norm *n = &((modernbert_layer *)m->layers)[i].attn_norm;
    const char *file = w->word.file;
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
    modernbert_model *w = m->weights;
    modernbert_layer *layers = m->layers;
    w->embed_norm.eps = w->final_norm.eps = (float)w->eps;
    for (int32_t i = 0; i < m->dims.n_layers; i++) {
        modernbert_layer *l = &layers[i];
        TRY(check_attn_norm(m, i, err));
        l->attn.n_heads = l->attn.n_kv_heads = m->dims.n_heads;
        l->attn.head_dim = m->dims.head_dim;
        l->attn.scale = (float)(1 / sqrt((double)m->dims.head_dim));
        l->attn_norm.eps = l->ffn_norm.eps = (float)w->eps;
    }
    ffn_dense_init(&w->ffn, w->fn, m->dims.d_ff, &layers[0].ffn, sizeof(modernbert_layer));
    return LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------------- forward */

/* Activations of a batch: x is the residual stream, h its norm, delta what a sublayer adds; `wide` holds Q, K, V and the heads' results during
 * attention, gate and up during the FFN. Then what layers of a kind share: the window of each token, the rotary tables.
 *     | x [n, d] | h [n, d] | delta [n, d] | wide [n, max(4 d, 2 d_ff)] | window | rope, by kind | */
typedef struct modernbert_state {
    view x, h, delta, qkv, ctx, hidden;
    nn_mask masks[N_KINDS];
    nn_rope_table ropes[N_KINDS];
} modernbert_state;

static size_t wide_floats(const arch_model *m, const backend_ops *ops, int64_t n_tok)
{
    size_t attn = ops->view_floats(n_tok, 4 * m->dims.d_model), ff = ops->view_floats(n_tok, 2 * m->dims.d_ff);
    return attn > ff ? attn : ff;
}

static size_t state_floats(const arch_model *m, const backend_ops *ops, int64_t n_tok)
{
    const modernbert_model *w = m->weights;
    size_t n = 3 * ops->view_floats(n_tok, m->dims.d_model) + wide_floats(m, ops, n_tok);
    if (w->uses[SLIDING]) n += nn_mask_floats(n_tok);
    for (int k = 0; k < N_KINDS; k++) {
        if (w->uses[k]) n += nn_rope_floats(&w->ropes[k], ops, n_tok);
    }
    return n;
}

static lath_status make_state(const arch_model *m, const fwd *f, float *memory, modernbert_state *s)
{
    const modernbert_model *w = m->weights;
    const backend_ops *ops = f->s->ops;
    const int64_t d = m->dims.d_model, n_tok = f->b->n_tok;
    const size_t n = ops->view_floats(n_tok, d);
    float *wide = memory + 3 * n, *at = wide + wide_floats(m, ops, n_tok);
    *s = (modernbert_state){
        .x = ops->make_view(memory, n_tok, d),
        .h = ops->make_view(memory + n, n_tok, d),
        .delta = ops->make_view(memory + 2 * n, n_tok, d),
        .qkv = ops->make_view(wide, n_tok, 3 * d),
        .ctx = ops->make_view(wide + 3 * n, n_tok, d),
        .hidden = ops->make_view(wide, n_tok, w->ffn.base.scratch_features),
        .masks[FULL] = nn_mask_all(f->b),
    };
    if (w->uses[SLIDING]) {
        s->masks[SLIDING] = nn_mask_window(f->b, w->reach, w->reach, (int32_t *)(void *)at);
        at += nn_mask_floats(n_tok);
    }
    for (int k = 0; k < N_KINDS; k++) {
        if (!w->uses[k]) continue;
        TRY(nn_rope_fill(f, &w->ropes[k], at, &s->ropes[k]));
        at += nn_rope_floats(&w->ropes[k], ops, n_tok);
    }
    return LATH_OK;
}

/* One pre-norm block. in: the attention's input, [n_tok, d_model]; x gets both sublayers' results added, h becomes norm(x) for what follows. */
static lath_status block(arch_model *m, const fwd *f, int32_t i, const modernbert_state *s, view in)
{
    modernbert_model *w = m->weights;
    modernbert_layer *l = (modernbert_layer *)m->layers + i;
    const op_norm *next = i + 1 < m->dims.n_layers ? &l[1].attn_norm : &w->final_norm;
    const nn_attention_args args = {.mask = s->masks[w->kinds[i]], .rope = &s->ropes[w->kinds[i]]};
    TRY(nn_attention(f, &l->attn, &args, in, s->qkv, s->ctx, s->delta)); /* delta = Wo MHA(in)            */
    TRY(trace_emit(f, TRACE_ATTN_OUT, i, s->delta));
    TRY(nn_add_norm(f, s->x, s->delta, &l->ffn_norm, s->h)); /* x += delta, h = LN(x)         */
    TRY(trace_emit(f, TRACE_ATTN_NORM, i, s->h));
    TRY(ffn_forward(&w->ffn.base, f, i, s->h, s->hidden, s->delta)); /* delta = Wo (act(Wg h) * Wu h) */
    TRY(trace_emit(f, TRACE_FFN_OUT, i, s->delta));
    TRY(nn_add_norm(f, s->x, s->delta, next, s->h)); /* x += delta, h = LN(x)         */
    return trace_emit(f, TRACE_RESIDUAL, i, s->x);
}

static lath_status forward(arch_model *m, const fwd *f, float *state, view *out)
{
    modernbert_model *w = m->weights;
    modernbert_state s;
    TRY(make_state(m, f, state, &s));
    const op_gather_source source = {&w->word, f->b->ids};
    const op_gather g = {&source, 1, 1.0f, s.x};
    TRY(f->s->ops->gather(f->s, &g));
    TRY(nn_norm(f, s.x, NULL, &w->embed_norm, s.x)); /* x = LN(word[id]) */
    TRY(trace_emit(f, TRACE_EMBED, -1, s.x));
    for (int32_t i = 0; i < m->dims.n_layers; i++) TRY(block(m, f, i, &s, i == 0 ? s.x : s.h));
    *out = s.h;
    return LATH_OK;
}

static const char *const prefixes[] = {"model.", "", NULL};

extern const arch_desc arch_modernbert;
const arch_desc arch_modernbert = {
    .name = "modernbert",
    .prefixes = prefixes,
    .parse = parse,
    .rows = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
    .model_size = sizeof(modernbert_model),
    .layer_size = sizeof(modernbert_layer),
    .finish = finish,
    .state_floats = state_floats,
    .forward = forward,
};
