/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_bert.c: the forward of BERT-like encoders (Devlin et al. 2018): embeddings that are added up and normed, post-norm blocks, bidirectional
 * attention. What the families (arch_bert_families.c) have more or less of: token types, task types, a projection of the embeddings (Clark et al.
 * 2020), a bias of the scores by distance (Song et al. 2020), rotary positions (Su et al. 2021), gated FFNs (Shazeer 2020). How a text's positions count is the packer's work.
 */
#include "arch/arch_bert.h"

#include <math.h>
#include <string.h>

/* The bucket of the distance query - key: 16 each way, one a distance below 8, then twice as many per doubling until
 * all from 128 on share the last (Raffel et al. 2020, as MPNet has it: 32 buckets whatever the configuration says). The
 * reference takes 8 + floor(8 log(n / 8) / log(16)) = 8 + floor(log2(n^2 / 64)). */
static int32_t bucket_of(int64_t distance)
{
    enum { ONE_WAY = 16, EXACT = 8 };
    const int32_t side = distance < 0 ? ONE_WAY : 0;
    const int64_t n = distance < 0 ? -distance : distance;
    int32_t b = EXACT;
    if (n < EXACT) return side + (int32_t)n;
    while (b < ONE_WAY - 1 && n * n >= (int64_t)EXACT * EXACT << (b - EXACT + 1)) b++;
    return side + b;
}

/* The bias by head and distance, over the scale that attention applies after adding it. */
static lath_status make_bias(arch_model *m, bert_model *w, lath_error *err)
{
    const int64_t heads = m->dims.n_heads, reach = m->dims.max_positions - 1, width = 2 * reach + 1;
    const double over_scale = sqrt((double)m->dims.head_dim);
    vec table;
    TRY(vec_init(&table, m->mem, w->buckets.t, w->buckets.file, 0, w->buckets.rows * heads, err));
    float *bias = arena_array(m->mem, (size_t)heads, (size_t)width * sizeof(float));
    if (!bias) return err_nomem(err, (size_t)heads * (size_t)width * sizeof(float));
    for (int64_t distance = -reach; distance <= reach; distance++) {
        const float *row = table.data + bucket_of(distance) * heads;
        for (int64_t h = 0; h < heads; h++) bias[h * width + reach + distance] = (float)((double)row[h] * over_scale);
    }
    w->bias = bias;
    w->bias_reach = reach;
    return LATH_OK;
}

lath_status bert_finish(arch_model *m, lath_error *err)
{
    bert_model *w = m->weights;
    bert_layer *layers = m->layers;
    w->embed_norm.eps = (float)w->eps;
    for (int32_t i = 0; i < m->dims.n_layers; i++) {
        bert_layer *l = &layers[i];
        l->attn.n_heads = l->attn.n_kv_heads = m->dims.n_heads;
        l->attn.head_dim = m->dims.head_dim;
        l->attn.scale = (float)(1 / sqrt((double)m->dims.head_dim));
        l->attn_norm.eps = l->ffn_norm.eps = (float)w->eps;
    }
    ffn_dense_init(&w->ffn, w->fn, m->dims.d_ff, layers[0].ffn.gate.w.t, &layers[0].ffn, sizeof(bert_layer));
    m->ffn = &w->ffn.base;
    return w->buckets.t ? make_bias(m, w, err) : LATH_OK;
}

/* Activations of a batch: x and delta of d_model, and one block that holds embeddings of another width first, then Q, K, V and the heads' results
 * during attention, the hidden features during the FFN:
 *     | x [n, d] | delta [n, d] | wide [n, max(d_embed, 4 d, d_ff or 2 d_ff)] | rope | */
typedef struct bert_state {
    view embed, x, delta, qkv, ctx;
    float *wide;    /* the FFN's memory */
    int32_t *zeros; /* [n_tok] until delta is written */
    float *turns;   /* memory of the rotary table */
    nn_rope_table rope;
} bert_state;

static size_t wide_floats(const arch_model *m, const backend_ops *ops, int64_t n_tok)
{
    const int64_t widths[] = {m->dims.d_embed, 4 * m->dims.d_model};
    size_t most = ffn_memory_floats(m->ffn, ops, n_tok);
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        const size_t n = ops->view_floats(n_tok, widths[i]);
        if (n > most) most = n;
    }
    return most;
}

size_t bert_state_floats(const arch_model *m, const backend_ops *ops, int64_t n_tok)
{
    const bert_model *w = m->weights;
    const size_t rope = w->rope.n_pairs ? nn_rope_floats(&w->rope, ops, n_tok) : 0;
    return 2 * ops->view_floats(n_tok, m->dims.d_model) + wide_floats(m, ops, n_tok) + rope;
}

static bert_state make_state(const arch_model *m, const backend_ops *ops, int64_t n_tok, float *memory)
{
    const bert_model *w = m->weights;
    int64_t d = m->dims.d_model;
    size_t n = ops->view_floats(n_tok, d);
    float *wide = memory + 2 * n;
    bert_state s = {
        .x = ops->make_view(memory, n_tok, d),
        .delta = ops->make_view(memory + n, n_tok, d),
        .qkv = ops->make_view(wide, n_tok, 3 * d),
        .ctx = ops->make_view(wide + 3 * n, n_tok, d),
        .wide = wide,
        .turns = wide + wide_floats(m, ops, n_tok),
        .zeros = (int32_t *)(void *)(memory + n),
    };
    s.embed = w->project.w.t ? ops->make_view(wide, n_tok, m->dims.d_embed) : s.x;
    return s;
}

/* x = LN(word[id] + type[t] + position[p] + task[0]), projected where d_embed is not d_model. */
static lath_status embed(bert_model *w, const fwd *f, const bert_state *s)
{
    op_gather_source sources[4];
    int32_t n = 0;
    sources[n++] = (op_gather_source){&w->word, f->b->ids};
    if (w->type.t) sources[n++] = (op_gather_source){&w->type, f->b->type_ids};
    if (w->position.t) sources[n++] = (op_gather_source){&w->position, f->b->pos};
    if (w->task.t) {
        memset(s->zeros, 0, (size_t)f->b->n_tok * sizeof(*s->zeros));
        sources[n++] = (op_gather_source){&w->task, s->zeros};
    }
    const op_gather g = {sources, n, 1.0f, s->embed};
    TRY(f->s->ops->gather(f->s, &g));
    TRY(nn_norm(f, s->embed, NULL, &w->embed_norm, s->embed));
    if (w->project.w.t) TRY(nn_linear(f, &w->project, KERN_FN_NONE, s->embed, s->x));
    return trace_emit(f, f->first_layer ? TRACE_RESIDUAL : TRACE_EMBED, f->first_layer - 1, s->x);
}

/* One post-norm block (Devlin et al. 2018, after Vaswani et al. 2017, fig. 1). x: [n_tok, d_model], changed in place. */
static lath_status block(const arch_model *m, bert_layer *l, const fwd *f, int32_t i, const bert_state *s)
{
    const bert_model *w = m->weights;
    if (fwd_gain(f, i) != 0) {
        TRY(nn_scale(f, s->x, fwd_gain(f, i)));
        return trace_emit(f, TRACE_RESIDUAL, i, s->x);
    }
    const nn_attention_args args = {.mask = nn_mask_all(f->b),
                                    .rope = s->rope.rope ? &s->rope : NULL,
                                    .bias = w->bias,
                                    .bias_reach = w->bias_reach,
                                    .layer = i};
    TRY(nn_attention(f, &l->attn, &args, s->x, s->qkv, s->ctx, s->delta)); /* delta = Wo MHA(x)     */
    TRY(trace_emit(f, TRACE_ATTN_OUT, i, s->delta));
    TRY(nn_norm(f, s->x, &s->delta, &l->attn_norm, s->x)); /* x = LN(x + delta)      */
    TRY(trace_emit(f, TRACE_MIDDLE, i, s->x));
    if (ffn_left_out(f, i)) return trace_emit(f, TRACE_RESIDUAL, i, s->x);
    TRY(ffn_run(f, m->ffn, i, s->x, s->wide, s->delta)); /* delta = W2 act(W1 x)   */
    TRY(trace_emit(f, TRACE_FFN_OUT, i, s->delta));
    TRY(nn_norm(f, s->x, &s->delta, &l->ffn_norm, s->x)); /* x = LN(x + delta)      */
    return trace_emit(f, TRACE_RESIDUAL, i, s->x);
}

lath_status bert_forward(arch_model *m, const fwd *f, float *state, view *out)
{
    bert_model *w = m->weights;
    bert_state s = make_state(m, f->s->ops, f->b->n_tok, state);
    if (w->rope.n_pairs) TRY(nn_rope_fill(f, &w->rope, s.turns, &s.rope));
    TRY(embed(w, f, &s));
    const int32_t end = f->end_layer ? f->end_layer : m->dims.n_layers;
    for (int32_t i = f->first_layer; i < end; i++) TRY(block(m, (bert_layer *)m->layers + i, f, i, &s));
    *out = s.x;
    return LATH_OK;
}
