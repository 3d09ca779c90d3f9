/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_prenorm.c: the forward of pre-norm blocks (Radford et al. 2019, Touvron et al. 2023, Warner et al. 2024):
 *
 *     x = [norm] scale embed[id]
 *     x += [scale] [norm] Attention(norm(x));  x += [scale] [norm] FFN(norm(x))      each layer; in brackets: some families
 *     out = norm(x)
 *
 * The sum that updates x and the norm that reads it next run as one pass, so a layer begins with its input normed already. Where the embeddings are
 * normed and the first layer has no norm of its own, its attention reads x itself.
 */
#include "arch/arch_prenorm.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------ kinds of layers */

static lath_status listed_kinds(const arch_model *m, const json_value *list, const char *name, uint8_t *kinds,
                                lath_error *err)
{
    if (list->kind != JSON_ARRAY || list->u.items.count != (size_t)m->dims.n_layers)
        return err_set(err, LATH_ERR_FORMAT, "%s: line %u: \"layer_types\": want an array of %d strings", name,
                       list->line, m->dims.n_layers);
    const bool recurs = ((const prenorm_model *)m->weights)->recurs;
    int32_t i = 0;
    for (const json_value *v = list->u.items.first; v; v = v->next, i++) {
        if (json_is_string(v, recurs ? "linear_attention" : "sliding_attention"))
            kinds[i] = recurs ? PRENORM_RECURS : PRENORM_SLIDING;
        else if (!json_is_string(v, "full_attention"))
            return err_set(err, LATH_ERR_UNSUPPORTED, "%s: line %u: layer type %.60s is not supported", name, v->line,
                           v->kind == JSON_STRING ? v->u.string.data : "that is no string");
    }
    return LATH_OK;
}

lath_status prenorm_layer_kinds(arch_model *m, const json_value *config, const char *name,
                                bool (*slides)(int64_t ctx, int32_t layer), int64_t ctx, lath_error *err)
{
    prenorm_model *w = m->weights;
    const uint8_t other = w->recurs ? PRENORM_RECURS : PRENORM_SLIDING;
    const json_value *list = json_get(config, "layer_types");
    w->kinds = arena_zero(m->mem, (size_t)m->dims.n_layers);
    if (!w->kinds) return err_nomem(err, (size_t)m->dims.n_layers);
    if (json_present(list))
        TRY(listed_kinds(m, list, name, w->kinds, err));
    else
        for (int32_t i = 0; i < m->dims.n_layers; i++) w->kinds[i] = slides(ctx, i) ? other : PRENORM_FULL;
    for (int32_t i = 0; i < m->dims.n_layers; i++)
        if (w->kinds[i] < PRENORM_N_KINDS) w->uses[w->kinds[i]] = true;
    if (w->uses[PRENORM_SLIDING] && w->reach < 0)
        return err_set(err, LATH_ERR_FORMAT, "%s: layers with a sliding window, but no \"sliding_window\"", name);
    return LATH_OK;
}

/* -------------------------------------------------------------------------------------------------------------- weights */

/* A norm's weights as the product takes them: offset + weight. */
static lath_status finish_norm(const arch_model *m, op_norm *n, lath_error *err)
{
    const prenorm_model *w = m->weights;
    n->kind = w->norm_kind;
    n->eps = (float)w->eps;
    if (!n->gamma.data || w->norm_offset == 0) return LATH_OK;
    float *shifted = arena_array(m->mem, (size_t)n->gamma.n, sizeof(float));
    if (!shifted) return err_nomem(err, (size_t)n->gamma.n * sizeof(float));
    for (int64_t i = 0; i < n->gamma.n; i++) shifted[i] = w->norm_offset + n->gamma.data[i];
    n->gamma.data = shifted;
    return LATH_OK;
}

/* A decay that is stored as such is -exp(A_log): one above 0 is A_log itself, or of a state that grows. */
static lath_status check_decay(const vec *decay, int32_t layer, lath_error *err)
{
    for (int64_t h = 0; h < decay->n; h++) {
        if (decay->data[h] > 0)
            return err_set(err, LATH_ERR_FORMAT, "tensor \"blk.%d.ssm_a\": element %lld is %g, want -exp(A_log)", layer,
                           (long long)h, (double)decay->data[h]);
    }
    return LATH_OK;
}

static lath_status finish_delta(const arch_model *m, nn_delta_w *d, int32_t layer, lath_error *err)
{
    const prenorm_model *w = m->weights;
    d->n_k_heads = m->dims.n_k_heads;
    d->n_v_heads = m->dims.n_v_heads;
    d->d_k = m->dims.d_k;
    d->d_v = m->dims.d_v;
    d->width = m->dims.conv_width;
    d->norm.kind = NORM_RMS;
    d->norm.eps = (float)w->eps;
    d->tiled = m->stored & ARCH_STORED_TILED_HEADS;
    d->decay = m->stored & ARCH_STORED_DECAY;
    if (d->decay) TRY(check_decay(&d->a_log, layer, err));
    return nn_delta_init(d, m->mem, err);
}

static lath_status finish_layer(const arch_model *m, int32_t layer, lath_error *err)
{
    const prenorm_model *w = m->weights;
    prenorm_layer *l = (prenorm_layer *)m->layers + layer;
    const bool recurs = w->kinds[layer] == PRENORM_RECURS;
    if (recurs) TRY(finish_delta(m, &l->delta, layer, err));
    op_norm *const norms[] = {&l->attn_norm,     &l->attn_post_norm, &l->ffn_norm,
                              &l->ffn_post_norm, &l->attn.q_norm,    &l->attn.k_norm};
    for (size_t i = 0; i < sizeof(norms) / sizeof(norms[0]); i++) TRY(finish_norm(m, norms[i], err));
    l->attn.n_heads = m->dims.n_heads;
    l->attn.n_kv_heads = m->dims.n_kv_heads;
    l->attn.head_dim = m->dims.head_dim;
    l->attn.scale = (float)w->attn_scale;
    l->attn.softcap = w->attn_softcap;
    return w->gated && !recurs ? nn_attention_gate_init(&l->attn, m->mem, err) : LATH_OK;
}

static void finish_moe(arch_model *m, prenorm_layer *layers)
{
    prenorm_model *w = m->weights;
    w->moe.other = &w->dense.base;
    w->moe.sparse = w->sparse;
    w->moe.first = (char *)&layers[0].moe;
    w->moe.stride = sizeof(prenorm_layer);
    w->moe.fn = w->fn;
    w->moe.n_experts = m->dims.n_experts;
    w->moe.d_model = m->dims.d_model;
    w->moe.d_expert = m->dims.d_expert;
    w->moe.d_shared = m->dims.d_shared;
    ffn_moe_init(&w->moe);
    m->ffn = &w->moe.base;
}

static void heads_out(const arch_model *m, int32_t layer, arch_heads_out *out)
{
    const prenorm_model *w = m->weights;
    prenorm_layer *l = (prenorm_layer *)m->layers + layer;
    out->o = w->kinds[layer] == PRENORM_RECURS ? &l->delta.o : &l->attn.o;
    out->post_norm = l->attn_post_norm.gamma.data ? &l->attn_post_norm : NULL;
    out->scale = w->residual_scale;
}

lath_status prenorm_finish(arch_model *m, lath_error *err)
{
    prenorm_model *w = m->weights;
    prenorm_layer *layers = m->layers;
    if (m->stored & ARCH_STORED_WHOLE_NORMS) w->norm_offset = 0;
    if (m->stored & ARCH_STORED_ROPE_PAIRS)
        for (int k = 0; k < PRENORM_N_KINDS; k++) w->ropes[k].interleaved = true;
    for (int32_t i = 0; i < m->dims.n_layers; i++) TRY(finish_layer(m, i, err));
    TRY(finish_norm(m, &w->embed_norm, err));
    TRY(finish_norm(m, &w->final_norm, err));
    /* A family that has experts has gates, and so has a model whose matrices are left out (arch_source.no_ffn): no other is extracted. */
    const bool gated = w->sparse || layers[0].ffn.gate.w.t || !layers[0].ffn.up.w.t;
    ffn_dense_init(&w->dense, w->fn, m->dims.d_ff, gated, &layers[0].ffn, sizeof(prenorm_layer));
    m->ffn = &w->dense.base;
    if (w->sparse) finish_moe(m, layers);
    m->final_norm = &w->final_norm;
    m->heads_out = heads_out;
    return LATH_OK;
}

/* -------------------------------------------------------------------------------------------------------------- forward */

/* Activations of a batch: the residual stream, its norm, what a block adds, and one block that holds Q, K, V and the heads' results during
 * attention, the hidden features during the FFN; then what the layers of each kind share:
 *     | x [n, d] | h [n, d] | delta [n, d] | wide | masks and rope tables by kind | */
typedef struct prenorm_state {
    view x, h, delta;
    float *wide; /* the memory of attention, of a delta net, of the FFN */
    nn_attention_args kinds[PRENORM_N_KINDS];
    nn_rope_table ropes[PRENORM_N_KINDS];
} prenorm_state;

static size_t wide_floats(const arch_model *m, const backend_ops *ops, int64_t n_tok)
{
    const prenorm_model *w = m->weights;
    const prenorm_layer *layers = m->layers;
    size_t most = ffn_memory_floats(m->ffn, ops, n_tok);
    for (int32_t i = 0; i < m->dims.n_layers; i++) {
        const nn_attention_w *a = &layers[i].attn;
        const size_t n = w->kinds[i] == PRENORM_RECURS ? nn_delta_floats(&layers[i].delta, ops, n_tok)
                                                       : ops->view_floats(n_tok, nn_attention_width(a)) +
                                                             ops->view_floats(n_tok, a->n_heads * a->head_dim);
        if (n > most) most = n;
    }
    return most;
}

size_t prenorm_state_floats(const arch_model *m, const backend_ops *ops, int64_t n_tok)
{
    const prenorm_model *w = m->weights;
    size_t n = 3 * ops->view_floats(n_tok, m->dims.d_model) + wide_floats(m, ops, n_tok);
    for (int k = 0; k < PRENORM_N_KINDS; k++)
        if (w->uses[k]) n += nn_mask_floats(n_tok) + nn_rope_floats(&w->ropes[k], ops, n_tok);
    return n;
}

/* Masks and rope tables of the kinds of layers that the model has, in `memory`. */
static lath_status prepare_kinds(const prenorm_model *w, const fwd *f, float *memory, prenorm_state *s)
{
    for (int k = 0; k < PRENORM_N_KINDS; k++) {
        if (!w->uses[k]) continue;
        const int64_t behind = k == PRENORM_SLIDING ? w->reach : -1, ahead = w->bidirectional ? behind : 0;
        s->kinds[k].mask = nn_mask_window(f->b, behind, ahead, (int32_t *)(void *)memory);
        memory += nn_mask_floats(f->b->n_tok);
        s->kinds[k].rope = &s->ropes[k];
        if (k == PRENORM_SLIDING && w->one_rope && w->uses[PRENORM_FULL]) {
            s->kinds[k].rope = &s->ropes[PRENORM_FULL];
            continue;
        }
        TRY(nn_rope_fill(f, &w->ropes[k], memory, &s->ropes[k]));
        memory += nn_rope_floats(&w->ropes[k], f->s->ops, f->b->n_tok);
    }
    return LATH_OK;
}

static lath_status make_state(const arch_model *m, const fwd *f, float *memory, prenorm_state *s)
{
    const backend_ops *ops = f->s->ops;
    const prenorm_model *w = m->weights;
    const int64_t n_tok = f->b->n_tok, d = m->dims.d_model;
    const size_t n = ops->view_floats(n_tok, d);
    float *wide = memory + 3 * n;
    *s = (prenorm_state){
        .x = ops->make_view(memory, n_tok, d),
        .h = ops->make_view(memory + n, n_tok, d),
        .delta = ops->make_view(memory + 2 * n, n_tok, d),
        .wide = wide,
    };
    return prepare_kinds(w, f, wide + wide_floats(m, ops, n_tok), s);
}

/* x += [scale] [post] delta, which passes `added`; h = norm(x). `sum`: the point of x. */
static lath_status add_block(const prenorm_model *w, const fwd *f, const op_norm *post, const op_norm *norm,
                             trace_point added, trace_point sum, int32_t layer, const prenorm_state *s)
{
    if (post->gamma.data) TRY(nn_norm(f, s->delta, NULL, post, s->delta));
    if (w->residual_scale != 1) TRY(nn_scale(f, s->delta, w->residual_scale));
    TRY(trace_emit(f, added, layer, s->delta));
    return nn_add_norm(f, s->x, s->delta, norm, s->h, sum, layer);
}

/* x *= gain, in the place of a layer. */
static lath_status scale_stream(const fwd *f, const op_norm *next, int32_t i, const prenorm_state *s)
{
    TRY(nn_scale(f, s->x, fwd_gain(f, i)));
    TRY(trace_emit(f, TRACE_RESIDUAL, i, s->x));
    return nn_norm(f, s->x, NULL, next, s->h);
}

/* What the layer's attention, or delta net, makes of `in`, into s->delta. */
static lath_status mix(prenorm_model *w, prenorm_layer *l, const fwd *f, int32_t i, const prenorm_state *s, view in)
{
    if (w->kinds[i] == PRENORM_RECURS) return nn_delta(f, &l->delta, i, in, s->wide, s->delta);
    const backend_ops *ops = f->s->ops;
    const int64_t width = nn_attention_width(&l->attn);
    const view qkv = ops->make_view(s->wide, in.n_tok, width),
               ctx = ops->make_view(s->wide + ops->view_floats(in.n_tok, width), in.n_tok,
                                    l->attn.n_heads * l->attn.head_dim);
    nn_attention_args a = s->kinds[w->kinds[i]];
    a.layer = i;
    a.kv = f->kv ? &f->kv[i] : NULL;
    if (w->unturned && w->unturned[i]) a.rope = NULL;
    return nn_attention(f, &l->attn, &a, in, qkv, ctx, s->delta);
}

/* in: what attention reads, [n_tok, d_model]; leaves in s->h the norm that `next` makes. */
static lath_status block(const arch_model *m, prenorm_layer *l, const op_norm *next, const fwd *f, int32_t i,
                         const prenorm_state *s, view in)
{
    prenorm_model *w = m->weights;
    if (fwd_gain(f, i) != 0) return scale_stream(f, next, i, s);
    TRY(mix(w, l, f, i, s, in));
    TRY(add_block(w, f, &l->attn_post_norm, &l->ffn_norm, TRACE_ATTN_OUT, TRACE_MIDDLE, i, s));
    TRY(ffn_run(f, m->ffn, i, s->h, s->wide, s->delta));
    return add_block(w, f, &l->ffn_post_norm, next, TRACE_FFN_OUT, TRACE_RESIDUAL, i, s);
}

int64_t prenorm_recurrent(const arch_model *m, int32_t layer)
{
    const prenorm_model *w = m->weights;
    const prenorm_layer *layers = m->layers;
    return w->kinds[layer] == PRENORM_RECURS ? nn_delta_state_floats(&layers[layer].delta) : 0;
}

lath_status prenorm_window(const arch_model *m, int32_t layer, int64_t *out, lath_error *err)
{
    const prenorm_model *w = m->weights;
    if (w->bidirectional)
        return err_set(err, LATH_ERR_UNSUPPORTED, "a %s model that looks both ways does not generate", m->desc->name);
    *out = w->kinds[layer] == PRENORM_SLIDING ? w->reach + 1 : 0;
    return LATH_OK;
}

/* longrope: a text and a longer one turn by different sets. Dynamic scaling: as in the reference, what a shorter text has turned stays as it is, but
 * there a text cannot become shorter again. */
bool prenorm_stale(const arch_model *m, int64_t kept, int64_t length)
{
    const nn_rope *r = &((const prenorm_model *)m->weights)->ropes[PRENORM_FULL];
    if (r->long_freq) return (kept > r->trained) != (length > r->trained);
    return r->trained && kept > r->trained && length < kept;
}

/* What the residual stream goes through before layer i reads it, behind the last layer before anybody does. */
static const op_norm *norm_before(const arch_model *m, int32_t i)
{
    const prenorm_layer *layers = m->layers;
    return i < m->dims.n_layers ? &layers[i].attn_norm : &((const prenorm_model *)m->weights)->final_norm;
}

lath_status prenorm_forward(arch_model *m, const fwd *f, float *state, view *out)
{
    prenorm_model *w = m->weights;
    prenorm_layer *layers = m->layers;
    prenorm_state s;
    TRY(make_state(m, f, state, &s));
    const op_gather_source source = {&w->embed, f->b->ids};
    const op_gather g = {&source, 1, w->embed_scale, s.x};
    TRY(f->s->ops->gather(f->s, &g));
    if (w->embed_norm.gamma.data) TRY(nn_norm(f, s.x, NULL, &w->embed_norm, s.x));
    const int32_t n = m->dims.n_layers, first = f->first_layer, end = f->end_layer ? f->end_layer : n;
    TRY(trace_emit(f, first ? TRACE_RESIDUAL : TRACE_EMBED, first - 1, s.x));
    const bool normed = norm_before(m, first)->gamma.data;
    if (normed) TRY(nn_norm(f, s.x, NULL, norm_before(m, first), s.h));
    for (int32_t i = first; i < end; i++)
        TRY(block(m, &layers[i], norm_before(m, i + 1), f, i, &s, i > first || normed ? s.h : s.x));
    *out = end < n ? s.x : s.h;
    return end < n ? LATH_OK : trace_emit(f, TRACE_FINAL, -1, s.h);
}
