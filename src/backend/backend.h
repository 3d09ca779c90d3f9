/* SPDX-License-Identifier: Apache-2.0
 *
 * backend.h: the op table, and the stream that ops run on.
 *
 * An op works on views of activations, [n_tok, d] of a packed batch, whose memory layout is the backend's own. The CPU backend (backend_cpu.c) runs
 * an op at once on the thread pool; one that enqueues would return before it is done. The caller is the leader of an open pool region.
 *
 * Weights are borrowed from the map in the file's dtype; the first op that reads one checks that it is finite (once, by name).
 */
#ifndef LATH_BACKEND_H
#define LATH_BACKEND_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/pool.h"
#include "kern/kern.h"
#include "tensor/tensor.h"

/* A matrix [rows, cols] in a weight file: a tensor, or some rows of one that holds several matrices. */
typedef struct weight {
    const tensor *t;  /* NULL: an optional one that is absent */
    const char *file; /* for messages */
    const void *data; /* of the first row */
    int64_t row0;     /* of the tensor */
    int64_t rows, cols;
    atomic_bool finite; /* has been checked */
} weight;

/* A vector of a weight file as f32: straight from the map, or a small converted copy. Finite (checked when bound). */
typedef struct vec {
    const float *data; /* NULL: absent */
    int64_t n;
} vec;

typedef struct stream stream;

/* y[t] = scale * sum over sources of table[index[t]]. Indices are in range. */
typedef struct op_gather_source {
    weight *table;        /* [rows, d] */
    const int32_t *index; /* [n_tok] */
} op_gather_source;
typedef struct op_gather {
    const op_gather_source *sources;
    int32_t n_sources;
    float scale; /* 1: none */
    view y;
} op_gather;

/* y = fn(x W^T + b); several parts share x and run as one pass. */
typedef struct op_linear {
    weight *w; /* [y.d, x.d] */
    vec bias;  /* [y.d] or absent */
    kern_fn fn;
    view y;
} op_linear;

typedef enum op_norm_kind { NORM_LAYER, NORM_RMS } op_norm_kind;
typedef struct op_norm {
    op_norm_kind kind;
    vec gamma, beta; /* beta: absent for RMS, may be for LAYER */
    float eps;
} op_norm;

/* y = norm(x + r); *sum = x + r. With n_groups > 1, x is as many groups of features behind each other, each normed by
 * itself with the same gamma. */
typedef struct op_norm_args {
    view x;
    const view *r, *sum; /* NULL: nothing to add; not wanted. sum may be x */
    const op_norm *norm;
    int64_t n_groups;
    view y; /* may be x */
} op_norm_args;

/* y = out fn(in x), element by element. */
typedef struct op_map {
    kern_fn fn;
    float in, out; /* 1: none */
    view x, y;     /* y may be x */
} op_map;

/* Angles of rotary embeddings: cosine[t][i] = scale cos(pos[t] inv_freq[i]), sine likewise, for i < n_pairs. The angle is
 * rounded to f32, as the reference implementation's is. */
typedef struct op_rope_table {
    const int32_t *pos;    /* [n_tok] */
    const float *inv_freq; /* [n_pairs], or several such sets behind each other */
    float scale;
    view cosine, sine;  /* [n_tok, n_pairs] */
    const int32_t *set; /* [n_tok] the set that a token takes; NULL: all the first */
} op_rope_table;

/* Turns the pairs of every head in place (kern.h says which features are a pair). */
typedef struct op_rope {
    view x; /* [n_tok, n_heads * head_dim] */
    int64_t head_dim;
    view cosine, sine; /* [n_tok, n_pairs] */
    bool interleaved;
} op_rope;

/* Keys and values that one sequence keeps in one layer: position p of it is in slot p % n_slots. How they lie there is the backend's own. */
typedef struct kv_layer {
    void *k, *v;               /* 64-byte aligned; kv_numbers of each */
    int64_t n_slots, head_dim; /* n_slots: a multiple of 16 */
    int32_t n_kv_heads;
    bool half; /* kept as F16, rounded to the nearest; else as F32 */
} kv_layer;
static inline size_t kv_numbers(const kv_layer *kv) { return (size_t)(kv->n_kv_heads * kv->n_slots * kv->head_dim); }
static inline size_t kv_size(const kv_layer *kv) { return kv->half ? 2 : sizeof(float); } /* of a number */

/* softmax(cap((q k^T + bias) scale)) v, cap(s) = softcap tanh(s / softcap) where softcap is not 0; head h of q goes with head h / (n_heads / n_kv_heads)
 * of k and v. Token t sees keys begin[t] <= j < end[t]: tokens of the batch, or positions of the sequence that `kv` keeps (those of the batch are
 * among them: kv_append comes first). */
typedef struct op_attention {
    view q, k, v, out;  /* [n_tok, heads * head_dim]; k and v unused where there is a kv */
    const kv_layer *kv; /* NULL: keys and values are the batch's */
    int32_t n_heads, n_kv_heads;
    int64_t head_dim;
    const int32_t *begin, *end; /* [n_tok] */
    float scale, softcap;
    /* NULL, or [n_heads][2 * bias_reach + 1]: by head and distance q - k + bias_reach; tokens that see each other are no
     * further apart than bias_reach. */
    const float *bias;
    int64_t bias_reach;
} op_attention;

/* The tokens of a batch, sequence by sequence, for what runs along time; of a single one, whose `past` tokens went before, the rest is in what is kept. */
typedef struct op_sequences {
    const int32_t *start; /* [n_seq + 1] */
    int32_t n_seq;
    int64_t past;
} op_sequences;

/* Causal depthwise convolution over time, then SiLU: y[t][f] = silu(sum over i < width of taps[i][f] x[t - (width - 1) + i][f]), each sequence for itself: before its
 * first token is 0. */
typedef struct op_conv {
    view x, y;         /* [n_tok, d], apart */
    const float *taps; /* [width][d], the oldest first */
    int32_t width;     /* 2 to KERN_CONV_WIDTH */
    op_sequences seq;
    float *kept; /* [width - 1][d] the newest of x that went before, and afterwards; NULL: nothing is kept */
} op_conv;

/* The gated delta rule (Yang et al. 2024), head by head of the values, along each sequence, with a state S: [d_k, d_v] that is 0 before its first token:
 *     g = rate softplus(a + dt), beta = sigmoid(b):    S = e^g S;  S += k (beta (v - S^T k))^T;  y = S^T q
 * Head h of the values goes with head h / (n_v_heads / n_k_heads) of q and k, or with h mod n_k_heads where they are `tiled`. */
typedef struct op_delta {
    view q, k, v; /* [n_tok, n_k_heads * d_k] twice, [n_tok, n_v_heads * d_v] */
    view gates;   /* [n_tok, 2 n_v_heads]: groups of b of so many heads and a of the same */
    int64_t gate_group;
    const float *rate, *dt; /* [n_v_heads] rate <= 0 */
    int32_t n_k_heads, n_v_heads;
    int64_t d_k, d_v;
    bool tiled;
    op_sequences seq;
    float *state; /* [n_v_heads][d_k][d_v] kept; NULL: nothing is */
    view y;       /* [n_tok, n_v_heads * d_v]; not q, k or v */
} op_delta;

/* y[i] = reduce over tokens start[i] + skip <= t < start[i + 1] of x: every sequence is longer than skip. */
typedef struct op_pool {
    kern_pool_mode mode;
    view x, y;            /* y: [n_seq, d] */
    const int32_t *start; /* [n_seq + 1] */
    int64_t skip;
} op_pool;

/* Rows of a matrix of features: those that were chosen for one token, whose numbers stand in plain rows of memory (64-byte aligned). */
typedef struct op_features {
    weight *w;            /* [features, d] */
    const int32_t *index; /* [n] in range; NULL: rows 0 .. n - 1 */
    int64_t n;
} op_features;
/* Floats from a row of add_all_features' y to the next. */
static inline int64_t op_row_floats(int64_t d) { return (d + 15) / 16 * 16; }
/* Floats of memory that add_features works in. */
enum { OP_FEATURES_PARTS = 8 };
static inline size_t op_features_floats(int64_t d) { return (size_t)(OP_FEATURES_PARTS * ((d + 15) / 16 * 16)); }

/* What a stream's scratch has to be large enough for. */
typedef struct op_limits {
    int64_t n_tok;    /* tokens of a batch */
    int64_t n_keys;   /* keys that a token sees */
    int64_t head_dim; /* of attention */
    int64_t d;        /* features of the widest view that is multiplied */
    bool half;        /* what is kept is F16 */
    int64_t d_k, d_v; /* of the delta rule; 0: none */
} op_limits;

/* glu: y = fn(gate) * up, y may be gate or up. copy: y = x. clear: y = 0. take_rows: y[i] = x[index[i]] for the tokens of y; add_rows: y[index[i]] +=
 * by[i] x[i] for the tokens of x, no index twice. l2_normalize: each row of x in place. read_rows: rows row0 .. row0 + n - 1 as
 * plain row-major [n, d]; write_rows: back into their places. attention_weights: what the softmax gives token `token` of the batch, [n_heads, end - begin] of
 * that token; a->out is unused. kv_append: the batch's keys and values become positions at, at + 1, ... of the sequence;
 * n_tok <= n_slots. dot_features: y[i] = the product of row index[i] with x [d]; add_features: y [d] += sum over i of by[i] times row
 * index[i], with op_features_floats of memory. add_all_features: the same with all rows of the matrix for n_tok tokens, by: [n_tok, rows], y: rows of op_row_floats(d) floats. Of these two, only rows that are read are looked at for numbers that are not finite. */
typedef struct backend_ops {
    const char *name;
#define OP(name, args) lath_status(*name) args;
#include "backend/ops.def"
#undef OP
    /* Floats that hold n_tok x d activations. */
    size_t (*view_floats)(int64_t n_tok, int64_t d);
    /* The view of n_tok x d activations in `memory` (64-byte aligned, zeroed once). */
    view (*make_view)(float *memory, int64_t n_tok, int64_t d);
    /* Features first .. first + d - 1 of x. */
    view (*slice)(view x, int64_t first, int64_t d);
    /* Tokens first .. first + n - 1 of x; first is a multiple of 16. */
    view (*tokens)(view x, int64_t first, int64_t n);
    /* Floats of scratch that a stream needs. */
    size_t (*scratch_floats)(const struct stream *s, const op_limits *most);
} backend_ops;

/* What one caller's ops run on: the pool and kernels of the runtime, and the caller's own scratch. */
struct stream {
    const backend_ops *ops;
    pool *pool;
    const kern_table *kern;
    float *scratch;   /* 64-byte aligned */
    op_limits limits; /* that it is large enough for */
    bool integer;     /* block weights may be multiplied with 8-bit activations */
    lath_error *err;  /* where ops leave their message */
};

const backend_ops *backend_cpu(void);
/* The same ops for BACKEND_ROWS_MOST tokens at most, as generation takes them: each token's features side by side, weights read once
 * for all of them. Results differ from backend_cpu()'s by rounding. What only whole texts need (pool, l2_normalize, attention without a kv) is
 * not there: NULL. */
enum { BACKEND_ROWS_MOST = 8 };
const backend_ops *backend_cpu_rows(void);

/* Binds rows row0 .. row0 + rows - 1 of a tensor as a weight matrix (the shape is checked by the caller). */
void weight_init(weight *w, const tensor *t, const char *file, int64_t row0, int64_t rows, int64_t cols);
/* Elements first .. first + n - 1 of a tensor as f32: the map itself for an aligned F32 tensor, else a copy in `a`. NaN and infinity are
 * LATH_ERR_FORMAT. */
lath_status vec_init(vec *v, arena *a, const tensor *t, const char *file, int64_t first, int64_t n, lath_error *err);

#endif
