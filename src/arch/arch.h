/* SPDX-License-Identifier: Apache-2.0
 *
 * arch.h: what an architecture is to the engine. A family is one file (arch_X.c) and one line in arch_list.h; its arch_desc holds everything: the
 * configuration's parse and validation, the declarative table of its weights, and the forward.
 */
#ifndef LATH_ARCH_H
#define LATH_ARCH_H

#include "base/json.h"
#include "base/log.h"
#include "ffn/ffn.h"
#include "nn/nn.h"
#include "store/weights.h"

/* What every architecture tells the engine about a model. */
typedef struct arch_dims {
    int32_t n_layers, n_heads, n_kv_heads, vocab_size;
    int32_t n_positions;   /* rows of the position table; 0: none */
    int32_t max_positions; /* the longest sequence */
    int32_t pos0;          /* position of a text's first token */
    int32_t pad_id;        /* id that takes no position (RoBERTa: it gets pos0 - 1 and counts for nothing); -1: none */
    int32_t n_types;       /* 0: the model has none, those of tokens count for nothing */
    int32_t n_tasks;       /* rows of a table of task types */
    int32_t n_experts;     /* of the layers that have some */
    int32_t n_top_experts; /* of them, those that a token goes through */
    int32_t n_buckets;     /* of a relative position bias */
    int64_t d_model, d_ff, head_dim;
    int64_t d_expert;                         /* hidden features of one */
    int64_t d_shared;                         /* of the expert that all tokens go through; 0: there is none */
    int32_t n_k_heads, n_v_heads, conv_width; /* of gated delta nets; 0: none */
    int64_t d_k, d_v;                         /* of one of their heads */
    int64_t d_embed;                          /* of the embedding tables; d_model for most */
    const char *activation;
} arch_dims;

/* Which dimension a weight's shape names. D_Q = n_heads * head_dim, D_KV = n_kv_heads * head_dim. */
typedef enum arch_dim {
    ARCH_DIM_NONE,
    ARCH_D_MODEL,
    ARCH_D_FF,
    ARCH_VOCAB,
    ARCH_POSITIONS,
    ARCH_TYPES,
    ARCH_D_Q,
    ARCH_D_KV,
    ARCH_HEAD_DIM,
    ARCH_HEADS,
    ARCH_BUCKETS,
    ARCH_TASKS,
    ARCH_D_EMBED,
    ARCH_EXPERTS,
    ARCH_D_EXPERT,
    ARCH_D_SHARED,
    ARCH_ONE,
    ARCH_D_Q_GATED,  /* queries and gates */
    ARCH_D_CHANNELS, /* of a gated delta net: q, k and v */
    ARCH_D_VALUES,   /* v */
    ARCH_D_MIXED,    /* q, k, v and z */
    ARCH_D_V,        /* of a head */
    ARCH_V_HEADS,
    ARCH_V_GATES /* two for each head */
} arch_dim;
typedef enum arch_kind { ARCH_MATRIX, ARCH_VECTOR } arch_kind;

/* Where a weight's rows are in its tensor: alone, a part of queries, keys and values on top of each other, or one of two halves. */
typedef enum arch_stack {
    ARCH_ALONE,
    ARCH_QKV_Q,
    ARCH_QKV_K,
    ARCH_QKV_V,
    ARCH_FIRST_HALF,
    ARCH_SECOND_HALF
} arch_stack;

/* A weight: where it goes in the family's struct, what it is called in the file, its shape. A name with "{}" is of every layer; that is where
 * its number stands. */
typedef struct arch_weight_row {
    size_t offset; /* of a `weight` or a `vec` in the layer's struct or the model's */
    arch_kind kind;
    const char *hf, *hf_old; /* names in a Hugging Face file; the old one or NULL */
    const char *gguf;        /* name in a GGUF file; NULL: such files have none of the kind */
    arch_dim rows, cols;     /* a vector has no cols */
    arch_stack stack;
    uint32_t
        when; /* 0: always; else bits of the model's `has` or what layer_has says, all of which must be set (a bias that the configuration turns off) */
    bool optional; /* finish() says whether its absence is right */
    bool
        experts; /* one matrix for each expert, into an array that a `weight *` points to: tensors whose number stands at a second "{}", or one tensor
                     of three dimensions in a GGUF file */
    const char
        *hf_stacked; /* of experts: the name of a tensor that has those of all, [E, rows, cols]; NULL: there is none */
    arch_stack stacked; /* which of its rows */
    bool taps;          /* a vector of conv_width numbers for each row: [rows, 1, conv_width], or without the 1 */
    bool head;          /* of the output head: beside the body in the file, and bound by arch_open_lm_head only */
} arch_weight_row;
/* Rows of a table: ARCH_MAT(offset, name, rows, cols, .stack = ARCH_QKV_Q, .when = HAS_BIAS) and the like. */
#define ARCH_MAT(at, name, r, c, ...)                                                            \
    {                                                                                            \
        .offset = (at), .kind = ARCH_MATRIX, .hf = (name), .rows = (r), .cols = (c), __VA_ARGS__ \
    }
#define ARCH_VEC(at, name, r, ...)                                                  \
    {                                                                               \
        .offset = (at), .kind = ARCH_VECTOR, .hf = (name), .rows = (r), __VA_ARGS__ \
    }

/* What weights of some files are stored as that is another form in the others: bits of arch_source.stored. */
enum arch_stored {
    ARCH_STORED_ROPE_PAIRS = 1,  /* rows of queries and keys are in the order in which rotary pairs are neighbours */
    ARCH_STORED_WHOLE_NORMS = 2, /* norms that are of 1 + weight have it added already */
    ARCH_STORED_TILED_HEADS = 4, /* value head h of a delta net has key head h % n_keys, not h / (n_values / n_keys) */
    ARCH_STORED_DECAY = 8,       /* A_log is -exp(A_log) already */
    ARCH_STORED_SPLIT_Z = 16     /* Qwen3-Next's products that are mixed by key heads are two: q, k, v; and z */
};

typedef struct arch_model arch_model;

/* Tensors of the files that a family knows and does not use, by how their names begin; "{}" stands for the numbers of layers that are not the model's. */
enum { ARCH_UNUSED_NAMES = 5 };
typedef struct arch_unused {
    const char *what; /* NULL ends a list */
    const char *names[ARCH_UNUSED_NAMES];
} arch_unused;

typedef struct arch_desc {
    const char *name;
    const char *const *prefixes; /* tried before each name, "" among them; NULL ends */
    /* Reads config.json (`name` leads messages) into m; unknown semantics are errors that name the field. */
    lath_status (*parse)(arch_model *m, const json_value *config, const char *name, lath_error *err);
    const arch_weight_row *rows; /* the first is of the embeddings */
    size_t n_rows;
    size_t model_size, layer_size; /* of the family's structs that rows point into */
    const arch_unused *unused;     /* NULL: it knows of none */
    /* The bits of arch_weight_row.when for one layer; NULL: all have the model's `has`. */
    uint32_t (*layer_has)(const arch_model *m, int32_t layer);
    /* After binding: derived pieces (norms, FFN). */
    lath_status (*finish)(arch_model *m, lath_error *err);
    /* Floats of activations that a batch of n_tok tokens needs. */
    size_t (*state_floats)(const arch_model *m, const backend_ops *ops, int64_t n_tok);
    /* Hidden state of the last layer, [n_tok, d_model], in `state` (zeroed once). With f->kv the batch goes on behind what it keeps. */
    lath_status (*forward)(arch_model *m, const fwd *f, float *state, view *out);
    /* How many positions a token of the layer sees, itself included; 0: all before it. NULL: a forward without f->kv. LATH_ERR_UNSUPPORTED: the
     * model looks ahead, too. */
    lath_status (*window)(const arch_model *m, int32_t layer, int64_t *out, lath_error *err);
    /* Floats of the state of constant size that a layer keeps in the place of keys and values; 0: it keeps those. NULL: all do. */
    int64_t (*recurrent)(const arch_model *m, int32_t layer);
    /* Keys that were turned while the sequence was `kept` tokens long are of no use where it is `length` long. NULL: they always are. */
    bool (*stale)(const arch_model *m, int64_t kept, int64_t length);
} arch_desc;

/* What a language model makes of its last hidden state: logits = softcap(scale h W^T), softcap(x) = c tanh(x / c). */
typedef struct arch_lm_head {
    weight *w;     /* [vocab, d_model]; NULL: none, or not opened */
    float scale;   /* 1: none */
    float softcap; /* c; 0: none */
    bool tied;     /* where the file has no matrix for it, W is that of the embeddings */
} arch_lm_head;

/* What stands between the heads of a layer and the stream: x += scale post_norm(o(heads)). */
typedef struct arch_heads_out {
    nn_linear_w *o;           /* [d_model, n_heads * size of a head] */
    const op_norm *post_norm; /* NULL: none */
    float scale;              /* 1: none */
} arch_heads_out;

struct arch_model {
    const arch_desc *desc;
    arch_dims dims;
    arch_lm_head lm_head; /* parse() sets all but w */
    arena *mem;           /* the model's memory */
    uint32_t stored;      /* bits of arch_stored, set before parse() */
    uint32_t has;         /* bits that parse() sets for arch_weight_row.when */
    void *weights;        /* the family's struct */
    void *layers;         /* [n_layers] of the family's layer struct */
    ffn *ffn;             /* that the weights make, of all layers: set by finish() */
    /* Of pre-norm blocks, for whoever takes the stream apart: set by finish(). */
    const op_norm *
        final_norm; /* between the stream and the output head; NULL: none, or norms stand behind the sums of each layer */
    void (*heads_out)(const arch_model *m, int32_t layer, arch_heads_out *out);
};

/* What scratch has to be large enough for, for batches of n_tok tokens that see n_keys. */
op_limits arch_limits(const arch_model *m, int64_t n_tok, int64_t n_keys);

/* By config.json's model_type; NULL when lath has none. */
const arch_desc *arch_find(const char *model_type);
/* "bert, ..." for messages, into out. */
void arch_names(buf *out);

/* Where weights are looked up. */
typedef struct arch_source {
    weights *w; /* every tensor that is bound is marked in it */
    const log_sink *log;
    arena *mem;
    uint32_t stored; /* bits of arch_stored */
    bool
        no_ffn; /* matrices of FFNs that have features of their own are not looked up: something else stands in for them */
} arch_source;

/* Parses the configuration, binds every row of the table. Missing, mis-shaped and integer-typed tensors are counted, all named in the log and the
 * first ones in the message. */
lath_status arch_open(const arch_desc *d, const json_value *config, const char *config_name, const arch_source *src,
                      arch_model *m, lath_error *err);

/* Binds the output head of an open model, m->lm_head.w: the head's own matrix where the file has one, else, where it is tied, the embeddings.
 * LATH_ERR_UNSUPPORTED: the family has none. */
lath_status arch_open_lm_head(arch_model *m, const arch_source *src, lath_error *err);

/* Every tensor of an open model that its table names, once, with its name in a GGUF file: first those of no layer, then layer by layer, in the
 * table's order. Those of experts, which are one tensor there, come one behind the other with the expert's number (else 0). The matrix of the output head
 * only where it is the head's own (after arch_open_lm_head). LATH_ERR_UNSUPPORTED: such files have no name for one. */
typedef lath_status (*arch_tensor_fn)(void *ctx, const arch_weight_row *row, const char *gguf_name, const tensor *t,
                                      int32_t expert, lath_error *err);
lath_status arch_each_tensor(const arch_model *m, const arch_source *src, arch_tensor_fn fn, void *ctx,
                             lath_error *err);

/* Numbers of the matrices that a token is multiplied with, and their bytes: without tables that are looked up, without the output head; of experts
 * as many as a token goes through. */
void arch_count_weights(const arch_model *m, uint64_t *n, uint64_t *bytes);

/* One matrix or vector by name with its shape checked: for modules outside an architecture's table (sentence-transformers Dense). */
lath_status arch_bind_linear(const arch_source *src, const char *w_name, const char *bias_name, int64_t rows,
                             int64_t cols, nn_linear_w *out, lath_error *err);

/* A vector of n elements by name. */
lath_status arch_bind_vec(const arch_source *src, const char *name, int64_t n, vec *out, lath_error *err);

#endif
