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
    int32_t *ids, *type_ids, *pos; /* [n_tok] */
    int32_t *begin, *end;          /* [n_tok] the tokens that token t may see: its own text's */
    int32_t *start;                /* [n_seq + 1] */
} batch;

typedef enum trace_point {
#define TRACE(name, text) TRACE_##name,
#include "nn/trace.def"
#undef TRACE
    TRACE_COUNT
} trace_point;

/* Sees the value x of a point; layer is -1 for points outside layers. */
typedef struct trace_sink {
    lath_status (*see)(void *ctx, stream *s, trace_point point, int32_t layer, view x);
    void *ctx;
} trace_sink;

/* One run of a forward. */
typedef struct fwd {
    stream *s;
    const batch *b;
    const trace_sink *trace; /* NULL: off */
} fwd;

static inline lath_status trace_emit(const fwd *f, trace_point point, int32_t layer, view x)
{
    if (__builtin_expect(f->trace != NULL, 0)) return f->trace->see(f->trace->ctx, f->s, point, layer, x);
    return LATH_OK;
}

/* y = fn(x W^T + b). */
typedef struct nn_linear_w {
    weight w;
    vec bias;
} nn_linear_w;
lath_status nn_linear(const fwd *f, nn_linear_w *w, kern_fn fn, view x, view y);

/* Multi-head attention without causal mask, each text for itself (Vaswani et al. 2017, 3.2).
 * x: [n_tok, d_model] -> out: [n_tok, d_model]; qkv: [n_tok, 3 * n_heads * head_dim] and ctx: [n_tok, n_heads * head_dim] are scratch. */
typedef struct nn_attention_w {
    nn_linear_w q, k, v, o;
    int32_t n_heads;
    int64_t head_dim;
} nn_attention_w;
lath_status nn_attention_bidir(const fwd *f, nn_attention_w *w, view x, view qkv, view ctx, view out);

/* y = LN(x + r); r may be NULL; y may be x. */
lath_status nn_layer_norm(const fwd *f, view x, const view *r, const op_norm *norm, view y);

/* The elementwise function that `hidden_act` or an activation class of PyTorch names ("gelu", "gelu_new", "torch.nn.modules.activation.Tanh");
 * false when lath has none of that name. */
bool nn_activation(const char *name, kern_fn *out);

#endif
