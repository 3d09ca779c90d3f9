/* SPDX-License-Identifier: Apache-2.0
 *
 * nn.h: building blocks of a forward. A forward (arch/) is straight-line code over views; what it runs on is one `fwd`.
 */
#ifndef LATH_NN_H
#define LATH_NN_H

#include "backend/backend.h"

/* A packed batch: texts one behind the other, no padding. Arrays of tokens are readable up to the next multiple of 16. */
typedef struct batch {
    int64_t n_tok;
    int32_t n_seq;
    int32_t past;   /* tokens of the sequence (then there is one) that came in earlier batches and are kept: fwd.kv */
    int32_t length; /* of that sequence with the batches that belong to this one; 0: no others do */
    int32_t *ids, *type_ids, *pos; /* [n_tok] */
    int32_t *begin,
        *end;       /* [n_tok] the tokens that token t may see, its own text's; counted from the first that is kept */
    int32_t *start; /* [n_seq + 1] */
} batch;

typedef enum trace_point {
#define TRACE(name, replace, text) TRACE_##name,
#include "nn/trace.def"
#undef TRACE
    TRACE_COUNT
} trace_point;

/* A value that passes a point. Where trace.def lets it be replaced, the sink may write to x with the backend's ops (write_rows, clear, copy, ..., on slices of it, too)
 * and then sets `changed`: what the forward has made of x already is made again. */
typedef struct trace_event {
    trace_point point;
    int32_t layer;        /* -1: of none */
    int32_t expert;       /* whose hidden features x are, the number of experts: the shared one's; -1: of none */
    int32_t n_heads;      /* of HEADS: how many x holds, side by side; else 0 */
    const int32_t *token; /* [x.n_tok] the tokens of the batch that the rows of x are; NULL: all of them, in order */
    const int32_t
        *feature; /* [x.d] of FFN_ACT: the features that the columns of x are, rising; NULL: all of them, in order */
    view x;
    bool changed;
} trace_event;

typedef struct fwd fwd;

/* Whoever looks into a forward. It runs on the leader, between ops: what it does delays the forward and nothing else. */
typedef struct trace_sink {
    lath_status (*see)(void *ctx, const fwd *f, trace_event *e);
    /* The arguments of attention, which is done: for op attention_weights. NULL: nobody wants to know. */
    lath_status (*attend)(void *ctx, const fwd *f, int32_t layer, const op_attention *a);
    void *ctx;
} trace_sink;

/* One run of a forward. */
struct fwd {
    stream *s;
    const batch *b;
    const trace_sink *trace; /* NULL: off */
    kv_layer *kv;            /* [n_layers] what the sequence keeps; NULL: nothing is kept */
    float *const *recurrent; /* [n_layers] state of the layers that recur; NULL where kv is */
    struct ffn *ffn;         /* ffn.h: what stands in for the model's own FFN in all layers; NULL: nothing */
    float *ffn_memory;       /* that it works in: ffn_memory_floats of it */
    struct ffn_took *took;   /* ffn.h: [n_layers] what the FFN of each layer did; NULL: nobody asks */
    const float
        *gains; /* [n_layers] not 0: the layer multiplies the stream by it and does nothing else; NULL: none does */
    /* The layers that run, first_layer <= i < end_layer; end_layer 0: all from the first on. What the layers before would have made is for the sink to write, at
     * the point that it passes: RESIDUAL of layer first_layer - 1. Where layers behind are left out the hidden state is the residual stream. First and end both
     * n_layers: only what is behind the last layer, token by token. */
    int32_t first_layer, end_layer;
};

static inline lath_status trace_emit(const fwd *f, trace_point point, int32_t layer, view x)
{
    if (__builtin_expect(f->trace == NULL, 1)) return LATH_OK;
    trace_event e = {.point = point, .layer = layer, .expert = -1, .x = x};
    return f->trace->see(f->trace->ctx, f, &e);
}

/* x: [n_tok, n_heads * head_dim] before the output projection. */
static inline lath_status trace_emit_heads(const fwd *f, int32_t layer, int32_t n_heads, view x)
{
    if (__builtin_expect(f->trace == NULL, 1)) return LATH_OK;
    trace_event e = {.point = TRACE_HEADS, .layer = layer, .expert = -1, .n_heads = n_heads, .x = x};
    return f->trace->see(f->trace->ctx, f, &e);
}

/* The factor that takes the layer's place; 0: none does. */
static inline float fwd_gain(const fwd *f, int32_t layer) { return f->gains ? f->gains[layer] : 0; }

/* y = fn(x W^T + b). */
typedef struct nn_linear_w {
    weight w;
    vec bias;
} nn_linear_w;
lath_status nn_linear(const fwd *f, nn_linear_w *w, kern_fn fn, view x, view y);

/* A product whose rows come from several matrices, or lie otherwise in the file than the features are wanted: rows of `w` become features at, at + 1, ... */
typedef struct nn_piece {
    weight w;
    vec bias;
    int64_t at;
} nn_piece;
typedef struct nn_pieces {
    nn_piece *piece;
    int32_t n;
} nn_pieces;
/* Appends rows of `whole`, which has n_groups groups of size[0] + .. + size[n_sizes - 1] rows: part i of group g becomes features
 * at[i] + g size[i], ... Parts that lie side by side in both are one piece. */
lath_status nn_pieces_add(nn_pieces *p, arena *mem, nn_linear_w *whole, int64_t n_groups, int32_t n_sizes,
                          const int64_t *size, const int64_t *at, lath_error *err);
/* y = x W^T + b, as few passes as there can be. */
lath_status nn_project(const fwd *f, const nn_pieces *p, view x, view y);

/* The tokens that each token of a batch may see: begin[t] <= j < end[t]. */
typedef struct nn_mask {
    const int32_t *begin, *end; /* [n_tok] */
} nn_mask;
/* All of its own text: what the batch says. */
nn_mask nn_mask_all(const batch *b);
/* Of its own text those from `behind` tokens before it to `ahead` tokens after it (negative: no limit), into memory for 2 * n_tok
 * numbers. Causal: ahead = 0. */
nn_mask nn_mask_window(const batch *b, int64_t behind, int64_t ahead, int32_t *memory);
/* Floats of a state that nn_mask_window's memory takes. */
size_t nn_mask_floats(int64_t n_tok);

/* Rotary embeddings of a model (Su et al. 2021): the frequencies, and per forward the table of a batch. A text whose last token is at position
 * n - 1 with n > trained turns by other frequencies as a whole: by long_freq where there is such a set (Ding et al. 2024, LongRoPE), else
 * ("dynamic NTK") by those of the base theta (stretch n / trained - (stretch - 1))^(d / (d - 2)), d = 2 n_pairs. */
typedef struct nn_rope {
    float *inv_freq; /* [n_pairs] */
    int64_t n_pairs;
    float scale; /* of cos and sin; 1 for most */
    bool interleaved;
    int64_t trained;  /* 0: the same frequencies at any length */
    float *long_freq; /* [n_pairs] or NULL */
    double theta, stretch;
    int64_t longest; /* positions that the scaling reaches; 0: those of the model */
} nn_rope;
typedef struct nn_rope_table {
    const nn_rope *rope;
    view cosine, sine; /* [n_tok, n_pairs] */
} nn_rope_table;
/* theta^(-2 i / (2 n_pairs)) for i < n_pairs, rounded as the reference implementation rounds it: an angle of thousands of
 * radians shows the difference. */
void nn_rope_frequencies(double theta, int64_t n_pairs, float *inv_freq);
size_t nn_rope_floats(const nn_rope *r, const backend_ops *ops, int64_t n_tok);
/* The table of the batch's positions in `memory`. */
lath_status nn_rope_fill(const fwd *f, const nn_rope *r, float *memory, nn_rope_table *out);

/* Multi-head attention with its projections (Vaswani et al. 2017, 3.2), each text for itself; grouped queries where n_kv_heads < n_heads
 * (Ainslie et al. 2023); queries and keys normed head by head where q_norm and k_norm are there (Henry et al. 2020), then turned by `rope`
 * where it is not NULL. x: [n_tok, d_model] -> out: [n_tok, d_model]; qkv: [n_tok, (n_heads + 2 n_kv_heads) * head_dim] and
 * ctx: [n_tok, n_heads * head_dim] are scratch. Where there is a kv, keys and values are kept in it and all that it holds are seen.
 * Gated attention (Qiu et al. 2025): what the heads give is multiplied by sigmoid(gate(x)) before o; then `gated` says where the rows of queries,
 * keys, values and gates are, q.w has queries and gates head by head, and qkv is n_heads * head_dim wider. */
typedef struct nn_attention_w {
    nn_linear_w q, k, v, o;
    nn_pieces gated;        /* n = 0: no gate */
    op_norm q_norm, k_norm; /* gamma absent: none */
    int32_t n_heads, n_kv_heads;
    int64_t head_dim;
    float scale;   /* of the scores: 1 / sqrt(head_dim) for most */
    float softcap; /* of the scaled scores; 0: none */
} nn_attention_w;
typedef struct nn_attention_args {
    nn_mask mask;
    const nn_rope_table *rope; /* or NULL */
    const float *bias;         /* or NULL; as op_attention has it */
    int64_t bias_reach;
    kv_layer *kv; /* of this layer, or NULL */
    int32_t layer;
} nn_attention_args;
lath_status nn_attention(const fwd *f, nn_attention_w *w, const nn_attention_args *a, view x, view qkv, view ctx,
                         view out);

/* What attention's view qkv is wide, and its rows where there is a gate. */
int64_t nn_attention_width(const nn_attention_w *w);
lath_status nn_attention_gate_init(nn_attention_w *w, arena *mem, lath_error *err);

/* Gated delta net (Yang, Kautz and Hatamizadeh 2024), in the place of attention: a state of constant size for each head of the values (op_delta) instead of keys
 * and values of all tokens. q, k, v go through a causal convolution (op_conv); q and k of each head have length 1, q then 1 / sqrt(d_k); what comes out is
 * normed head by head and multiplied by silu(z).
 * x: [n_tok, d_model] -> out: [n_tok, d_model]. */
typedef struct nn_delta_w {
    nn_linear_w qkv, z, b,
        a; /* [2 n_k_heads d_k + n_v_heads d_v, d_model], [n_v_heads d_v, d_model], [n_v_heads, d_model] twice */
    nn_linear_w qkvz, ba; /* or, in their place: by head of the keys q, k, its v, its z; and its b, its a */
    nn_linear_w o;        /* [d_model, n_v_heads d_v] */
    vec conv, a_log, dt;  /* [channels * width], [n_v_heads] twice */
    op_norm norm;         /* of d_v features */
    int32_t n_k_heads, n_v_heads, width;
    int64_t d_k, d_v;
    bool tiled; /* op_delta */
    bool decay; /* a_log is -exp(A_log) already */
    /* nn_delta_init makes: */
    nn_pieces in;
    int64_t gate_group;
    const float *taps, *rate; /* [width][channels], [n_v_heads] */
    op_norm q_norm, k_norm;
} nn_delta_w;
lath_status nn_delta_init(nn_delta_w *w, arena *mem, lath_error *err);
/* Floats of the layer's state: the newest inputs of the convolution, then the heads' states. */
int64_t nn_delta_state_floats(const nn_delta_w *w);
/* Floats of the memory that nn_delta works in. */
size_t nn_delta_floats(const nn_delta_w *w, const backend_ops *ops, int64_t n_tok);
/* With the state that f->recurrent has for the layer; where there is none each sequence begins at 0 and nothing is kept. */
lath_status nn_delta(const fwd *f, nn_delta_w *w, int32_t layer, view x, float *memory, view out);

/* y = norm(x + r); r may be NULL; y may be x. */
lath_status nn_norm(const fwd *f, view x, const view *r, const op_norm *norm, view y);
/* x += r, which passes `point`; y = norm(x): the residual stream of pre-norm blocks. */
lath_status nn_add_norm(const fwd *f, view x, view r, const op_norm *norm, view y, trace_point point, int32_t layer);

/* x *= by. */
lath_status nn_scale(const fwd *f, view x, float by);

/* The elementwise function that `hidden_act` or an activation class of PyTorch names ("gelu", "gelu_new", "torch.nn.modules.activation.Tanh");
 * false when lath has none of that name. */
bool nn_activation(const char *name, kern_fn *out);

#endif
