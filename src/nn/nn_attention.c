/* SPDX-License-Identifier: Apache-2.0
 * nn_attention.c: softmax(Q K^T scale) V and its projections (Vaswani et al. 2017), who sees whom, rotary tables. */
#include "nn/nn.h"

#include <math.h>
#include <string.h>

nn_mask nn_mask_all(const batch *b) { return (nn_mask){b->begin, b->end}; }

/* The backend reads the masks of whole panels: what is behind the last token is kept inside, too. */
static int64_t mask_tokens(int64_t n_tok) { return (n_tok + KERN_LANES - 1) / KERN_LANES * KERN_LANES; }

size_t nn_mask_floats(int64_t n_tok)
{
    _Static_assert(sizeof(int32_t) == sizeof(float), "masks lie in the state");
    return (size_t)(2 * mask_tokens(n_tok));
}

nn_mask nn_mask_window(const batch *b, int64_t behind, int64_t ahead, int32_t *memory)
{
    int32_t *begin = memory, *end = memory + mask_tokens(b->n_tok);
    for (int64_t t = 0; t < mask_tokens(b->n_tok); t++) {
        if (t >= b->n_tok) {
            begin[t] = end[t] = 0;
            continue;
        }
        const int64_t at = b->past + t;
        begin[t] = behind >= 0 && at - behind > b->begin[t] ? (int32_t)(at - behind) : b->begin[t];
        end[t] = ahead >= 0 && at + ahead + 1 < b->end[t] ? (int32_t)(at + ahead + 1) : b->end[t];
    }
    return (nn_mask){begin, end};
}

void nn_rope_frequencies(double theta, int64_t n_pairs, float *inv_freq)
{
    const double base = (double)(float)theta;
    for (int64_t i = 0; i < n_pairs; i++) {
        const float exponent = (float)(2 * i) / (float)(2 * n_pairs);
        inv_freq[i] = 1.0f / (float)pow(base, (double)exponent);
    }
}

/* Sets of frequencies that a batch of n_tok tokens needs: everybody's, and that of long texts or one for each of them. */
static int64_t most_sets(const nn_rope *r, int64_t n_tok) { return 2 + n_tok / (r->trained + 1); }

static size_t set_floats(const nn_rope *r, int64_t n_tok)
{
    return (size_t)((most_sets(r, n_tok) * r->n_pairs + KERN_LANES - 1) / KERN_LANES * KERN_LANES);
}

size_t nn_rope_floats(const nn_rope *r, const backend_ops *ops, int64_t n_tok)
{
    size_t n = 2 * ops->view_floats(n_tok, r->n_pairs);
    if (r->trained) n += set_floats(r, n_tok) + (size_t)mask_tokens(n_tok);
    return n;
}

/* The sets of a batch, and which one each token takes; false: all take the first, which is the model's. */
static bool make_sets(const nn_rope *r, const batch *b, float *sets, int32_t *set)
{
    const size_t bytes = (size_t)r->n_pairs * sizeof(float);
    const double d = 2 * (double)r->n_pairs;
    int32_t n = 0;
    bool any = false;
    memcpy(sets, r->inv_freq, bytes);
    if (r->long_freq) memcpy(sets + ++n * r->n_pairs, r->long_freq, bytes);
    for (int32_t i = 0; i < b->n_seq; i++) {
        const int64_t length = b->length ? b->length : b->past + b->start[i + 1] - b->start[i];
        const bool is_long = length > r->trained;
        if (is_long && !r->long_freq) {
            const double longer = r->stretch * (double)length / (double)r->trained - (r->stretch - 1);
            nn_rope_frequencies(r->theta * pow(longer, d / (d - 2)), r->n_pairs, sets + ++n * r->n_pairs);
        }
        for (int32_t t = b->start[i]; t < b->start[i + 1]; t++) set[t] = is_long ? n : 0;
        any |= is_long;
    }
    return any;
}

lath_status nn_rope_fill(const fwd *f, const nn_rope *r, float *memory, nn_rope_table *out)
{
    const backend_ops *ops = f->s->ops;
    const int64_t n_tok = f->b->n_tok;
    const size_t n = ops->view_floats(n_tok, r->n_pairs);
    out->rope = r;
    out->cosine = ops->make_view(memory, n_tok, r->n_pairs);
    out->sine = ops->make_view(memory + n, n_tok, r->n_pairs);
    op_rope_table a = {
        .pos = f->b->pos, .inv_freq = r->inv_freq, .scale = r->scale, .cosine = out->cosine, .sine = out->sine};
    if (r->trained) {
        float *sets = memory + 2 * n;
        int32_t *set = (int32_t *)(void *)(sets + set_floats(r, n_tok));
        if (make_sets(r, f->b, sets, set)) {
            a.inv_freq = sets;
            a.set = set;
        }
    }
    return ops->rope_table(f->s, &a);
}

/* Queries or keys after their projection: norm of each head, then the turn. */
static lath_status prepare_heads(const fwd *f, const op_norm *norm, const nn_rope_table *rope, view x, int64_t head_dim)
{
    const backend_ops *ops = f->s->ops;
    if (norm->gamma.data) {
        const op_norm_args a = {.x = x, .norm = norm, .n_groups = x.d / head_dim, .y = x};
        TRY(ops->norm(f->s, &a));
    }
    if (!rope) return LATH_OK;
    const op_rope a = {x, head_dim, rope->cosine, rope->sine, rope->rope->interleaved};
    return ops->rope(f->s, &a);
}

int64_t nn_attention_width(const nn_attention_w *w)
{
    return ((w->gated.n ? 2 : 1) * w->n_heads + 2 * w->n_kv_heads) * w->head_dim;
}

lath_status nn_attention_gate_init(nn_attention_w *w, arena *mem, lath_error *err)
{
    const int64_t hd = w->head_dim, d_q = w->n_heads * hd, d_kv = w->n_kv_heads * hd;
    const int64_t heads[] = {hd, hd}, to[] = {0, d_q + 2 * d_kv}, at_k = d_q, at_v = d_q + d_kv;
    TRY(nn_pieces_add(&w->gated, mem, &w->q, w->n_heads, 2, heads, to, err));
    TRY(nn_pieces_add(&w->gated, mem, &w->k, 1, 1, &d_kv, &at_k, err));
    return nn_pieces_add(&w->gated, mem, &w->v, 1, 1, &d_kv, &at_v, err);
}

lath_status nn_attention(const fwd *f, nn_attention_w *w, const nn_attention_args *args, view x, view qkv, view ctx,
                         view out)
{
    const backend_ops *ops = f->s->ops;
    const int64_t d_q = w->n_heads * w->head_dim, d_kv = w->n_kv_heads * w->head_dim;
    view q = ops->slice(qkv, 0, d_q), k = ops->slice(qkv, d_q, d_kv), v = ops->slice(qkv, d_q + d_kv, d_kv);
    TRY(trace_emit(f, TRACE_ATTN_IN, args->layer, x));
    if (w->gated.n) {
        TRY(nn_project(f, &w->gated, x, qkv));
    } else {
        op_linear parts[] = {
            {&w->q.w, w->q.bias, KERN_FN_NONE, q},
            {&w->k.w, w->k.bias, KERN_FN_NONE, k},
            {&w->v.w, w->v.bias, KERN_FN_NONE, v},
        };
        TRY(ops->linear(f->s, x, parts, 3));
    }
    TRY(prepare_heads(f, &w->q_norm, args->rope, q, w->head_dim));
    TRY(prepare_heads(f, &w->k_norm, args->rope, k, w->head_dim));
    if (args->kv) TRY(ops->kv_append(f->s, k, v, args->kv, f->b->past));
    op_attention a = {
        .q = q,
        .k = k,
        .v = v,
        .kv = args->kv,
        .out = ctx,
        .n_heads = w->n_heads,
        .n_kv_heads = w->n_kv_heads,
        .head_dim = w->head_dim,
        .begin = args->mask.begin,
        .end = args->mask.end,
        .scale = w->scale,
        .softcap = w->softcap,
        .bias = args->bias,
        .bias_reach = args->bias_reach,
    };
    TRY(ops->attention(f->s, &a));
    if (w->gated.n) TRY(ops->glu(f->s, KERN_FN_SIGMOID, ops->slice(qkv, d_q + 2 * d_kv, d_q), ctx, ctx));
    if (f->trace && f->trace->attend) TRY(f->trace->attend(f->trace->ctx, f, args->layer, &a));
    TRY(trace_emit_heads(f, args->layer, w->n_heads, ctx));
    return nn_linear(f, &w->o, KERN_FN_NONE, ctx, out);
}
