/* SPDX-License-Identifier: Apache-2.0
 *
 * lath_inspect.h: looking into a model while it runs, and changing what happens there. This header is the manual. It is not stable yet: names and structs may change
 * from one version to the next, and what is said here holds for the library it came with only.
 *
 *     lath_hooks     functions and edits at named points of the forward: see a value, replace it, ablate, steer, patch
 *     lath_ffn       what stands in for the model's FFNs: sparse, walked over an index, cached, skipped, another in each layer, your own function
 *     lath_trace     what a run had at these points, kept: residual stream, what each block added, heads, weights of attention, features; the logit lens, an answer's
 *                    way through the layers, and what each head gave to its logit
 *     lath_store     such vectors in files
 *
 * Hooks and FFNs are for sessions (lath_session_set_hooks, lath_session_set_ffn: predict, generate) and for traces (lath_trace_options). There is one forward; it passes
 * the points below, which cost nothing while nobody looks.
 *
 * A layer passes them in this order. x is the residual stream, [tokens, d_model].
 *
 *     pre-norm     x [EMBED | RESIDUAL of the layer before]    norm(x) [ATTN_IN]   x += a [ATTN_OUT] -> x [MIDDLE]
 *                                                              norm(x) [FFN_IN]    x += f [FFN_OUT]  -> x [RESIDUAL]
 *     post-norm    x [EMBED | RESIDUAL of the layer before]    x [ATTN_IN]         x = norm(x + a [ATTN_OUT]) [MIDDLE]
 *                                                              x [FFN_IN]          x = norm(x + f [FFN_OUT])  [RESIDUAL]
 *
 * So in a pre-norm model RESIDUAL = RESIDUAL of the layer before + ATTN_OUT + FFN_OUT: norms of what is added (Gemma) and factors (Granite) are in them already. In a
 * post-norm one the two norms add something, too: MIDDLE - (x + ATTN_OUT) and RESIDUAL - (MIDDLE + FFN_OUT). A layer that a `gain` stands in for passes RESIDUAL only.
 *
 * Rules of lath.h hold here: errors, options, lifetime (hooks, FFNs and traces go before their model; a session before the hooks and the FFN that it has), strings.
 *   Threads   one thread at a time uses an object; hooks and an FFN are in use while a session or a trace that has them runs. Hooks are called on the thread that
 *             called, between the operations of the forward: what they do delays it, and they call nothing of the session or trace that runs.
 *   Layers    count from 0. -1 is the embeddings, where a residual stream is meant.
 *   Positions count from 0, the first token of the sequence.
 *   Rows      are plain float arrays, row by row.
 */
#ifndef LATH_INSPECT_H
#define LATH_INSPECT_H

#include "lath/lath.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------------------------- points */

typedef enum lath_point {
    LATH_POINT_EMBED = 0,    /* of layer -1: the residual stream before the first layer */
    LATH_POINT_ATTN_IN = 1,  /* what attention reads; to be seen only */
    LATH_POINT_HEADS = 2,    /* what each head gives before the output projection, side by side: [n_heads * head_dim] */
    LATH_POINT_ATTN_OUT = 3, /* what attention adds to the stream */
    LATH_POINT_MIDDLE = 4,   /* the stream between attention and FFN */
    LATH_POINT_FFN_IN = 5,   /* what the FFN reads; to be seen only */
    LATH_POINT_FFN_ACT =
        6, /* the FFN's hidden features before the product with down: [d_ff]; of experts one by one, [d_expert] each */
    LATH_POINT_FFN_OUT = 7,  /* what the FFN adds to the stream */
    LATH_POINT_RESIDUAL = 8, /* the stream behind the layer */
    LATH_POINT_FINAL =
        9 /* of layer -1: behind the final norm, what the output head reads; post-norm models have none */
} lath_point;
/* "embed", "attn_in", ...; NULL for a number that is none. Static. Any thread. */
LATH_API const char *lath_point_name(lath_point point);

enum {
    LATH_LAYERS_ALL = -2,   /* every layer (of hooks) */
    LATH_POSITION_ALL = -1, /* every position */
    LATH_POSITION_LAST = -2 /* the last position of each call: of the prompt, then each token that is added alone */
};

/* ------------------------------------------------------------------------------------------------------------------ hooks */

typedef struct lath_hooks lath_hooks;

/* A value at a point, as a hook gets it: rows of the positions that the hook is for. */
typedef struct lath_value {
    size_t struct_size;
    lath_point point;
    int32_t layer;
    int32_t expert;  /* of FFN_ACT: whose features they are, the number of experts: the shared one's; -1: of none */
    int32_t n_heads; /* of HEADS: how many a row has, side by side; else 0 */
    size_t n, d;     /* rows, and numbers of a row */
    const int32_t *positions; /* [n] of the rows */
    const int32_t *features;  /* [d] of FFN_ACT where an FFN has chosen features: their numbers; NULL: all, in order */
    float *rows;              /* [n, d] */
} lath_value;
/* 0: it was only seen. 1: rows has been changed and is written back (finite numbers). Negative: the run stops, LATH_ERR_INTERRUPTED. The value is there during the
 * call only. */
typedef int (*lath_hook_fn)(void *ctx, lath_value *value);

/* Hooks of a model; at a point they act in the order in which they were added. LATH_ERR_NOMEM. */
LATH_API lath_status lath_hooks_create(const lath_model *model, lath_hooks **out, lath_error *err);
LATH_API void lath_hooks_destroy(lath_hooks *hooks); /* NULL is allowed */

/* A function at a point of a layer (LATH_LAYERS_ALL: of all) for a position (LATH_POSITION_ALL, _LAST, or one). A point is passed once for each batch, and FFN_ACT
 * of experts once for each expert that got tokens; where no row is of the position the hook is not called.
 * All calls that add: LATH_ERR_USAGE names the layer, head, position or value that is out of range; LATH_ERR_NOMEM. */
LATH_API lath_status lath_hooks_add(lath_hooks *hooks, lath_point point, int32_t layer, int32_t position,
                                    lath_hook_fn fn, void *ctx, lath_error *err);
/* The layer adds nothing: what its attention and its FFN add is 0 at every position (norms of a post-norm layer run). */
LATH_API lath_status lath_hooks_ablate_layer(lath_hooks *hooks, int32_t layer, lath_error *err);
/* The head gives 0 at every position, before the output projection. In a layer with a delta net: a head of the values. */
LATH_API lath_status lath_hooks_ablate_head(lath_hooks *hooks, int32_t layer, int32_t head, lath_error *err);
/* The residual stream behind the layer is 0 there. */
LATH_API lath_status lath_hooks_ablate_position(lath_hooks *hooks, int32_t layer, int32_t position, lath_error *err);
/* alpha * vector [d] is added to the residual stream behind the layer (-1: to the embeddings). The vector is copied. LATH_ERR_INPUT: it has another length
 * than d_model, or a number that is not finite. */
LATH_API lath_status lath_hooks_steer(lath_hooks *hooks, int32_t layer, int32_t position, const float *vector, size_t d,
                                      float alpha, lath_error *err);
/* vector [d] takes the place of the residual stream behind the layer (-1: of the embeddings), as that of another run: lath_trace_get has it. Copied; errors as steer. */
LATH_API lath_status lath_hooks_patch(lath_hooks *hooks, int32_t layer, int32_t position, const float *vector, size_t d,
                                      lath_error *err);

/* How many there are; how often number i (in the order of adding) has been applied since it was added, in rows. */
LATH_API size_t lath_hooks_count(const lath_hooks *hooks);
LATH_API uint64_t lath_hooks_applied(const lath_hooks *hooks, size_t i);
/* For the end of a run: LATH_ERR_USAGE names the first hook that has never been applied, because no token came to its position or its layer never passed the point. */
LATH_API lath_status lath_hooks_check(const lath_hooks *hooks, lath_error *err);

/* hooks: borrowed until they are replaced; NULL: none. What the session holds already stays as it was computed: lath_session_rewind(s, 0) where that is not wanted.
 * LATH_ERR_USAGE: they are of another model, or a position is beyond what the session can hold. */
LATH_API lath_status lath_session_set_hooks(lath_session *s, lath_hooks *hooks, lath_error *err);

/* ------------------------------------------------------------------------------------------------------------------- FFNs */

typedef struct lath_ffn lath_ffn;

/* What a text says (docs/inside.md):
 *
 *     dense | sparse:K | walk:DIR[,k=K] | cached[:ITEM] | highway | attention-only | gain:G | remote:URL
 *     or one of these for ranges of layers: 0-11=dense,12-=walk:DIR,k=512
 *
 * "dense" is the model's own FFN, experts included. LATH_ERR_USAGE: a name, layer or number that is wrong, named; LATH_ERR_UNSUPPORTED: what the model or its layer
 * cannot have; LATH_ERR_NOT_FOUND, _FORMAT: the directory of an index; LATH_ERR_NETWORK. */
LATH_API lath_status lath_ffn_open(const lath_model *model, const char *spec, lath_ffn **out, lath_error *err);

/* out := FFN(rows) in that layer, both [n, d]; out is zeroed before. Not 0: the run stops with LATH_ERR_INTERRUPTED. Rows are what the FFN reads (FFN_IN); what comes
 * out goes on as the model's own would (norms and factors behind it included). Numbers that are not finite are LATH_ERR_INPUT. */
typedef int (*lath_ffn_fn)(void *ctx, int32_t layer, size_t n, size_t d, const float *rows, float *out);
/* The function is the FFN of every layer. */
LATH_API lath_status lath_ffn_custom(const lath_model *model, lath_ffn_fn fn, void *ctx, lath_ffn **out,
                                     lath_error *err);
LATH_API void lath_ffn_close(lath_ffn *ffn); /* NULL is allowed */

/* NULL: the model's own. LATH_ERR_USAGE: the FFN is of another model, or the session holds tokens (what is kept of them was computed with another FFN:
 * lath_session_rewind(s, 0) first). LATH_ERR_NOMEM: the session is as before. */
LATH_API lath_status lath_session_set_ffn(lath_session *s, lath_ffn *ffn, lath_error *err);

/* What the FFN of a layer is, and what it has done in all runs so far. */
typedef struct lath_ffn_layer {
    size_t struct_size;      /* set it before the call */
    const char *description; /* "walk of DIR, k=512 of 2048 features"; the FFN's */
    const char *
        path; /* the way that the last call went: "dense", "moe", "sparse", "sparse:dense", "walk:top", "walk:all", "cached:hit", "cached:miss",
                                "highway", "attention-only", "remote", "custom", "gain"; NULL: none has come */
    uint64_t calls, tokens;
    uint64_t features; /* that went into results, of all tokens together */
    double seconds;
} lath_ffn_layer;
/* LATH_ERR_USAGE: no such layer, or a struct of another version. */
LATH_API lath_status lath_ffn_get_layer(const lath_ffn *ffn, int32_t layer, lath_ffn_layer *out, lath_error *err);
/* Calls, tokens, features and seconds are 0 again. */
LATH_API void lath_ffn_reset(lath_ffn *ffn);

/* The FFN of one layer by itself: out := FFN(rows), both [n, d_model], rows as FFN_IN has them; norms behind it are not in it. ffn NULL: the model's own. A single
 * row is computed as a step of a session computes it. Any number of threads where ffn is NULL. LATH_ERR_USAGE: no such layer; a layer that a gain stands in for.
 * LATH_ERR_INPUT: err->item is a row with a number that is not finite, before or behind the FFN. */
LATH_API lath_status lath_ffn_run(const lath_model *model, lath_ffn *ffn, int32_t layer, const float *rows, size_t n,
                                  float *out, lath_error *err);

/* ----------------------------------------------------------------------------------------------------------------- traces */

typedef struct lath_trace lath_trace;

/* What is kept beside the residual stream, ATTN_OUT, MIDDLE, FFN_OUT and FINAL. */
enum {
    LATH_TRACE_HEADS = 1, /* HEADS */
    LATH_TRACE_WEIGHTS =
        2, /* weights of attention, computed a second time for each position that is kept; delta nets have none */
    LATH_TRACE_ACTIVATIONS = 4, /* FFN_ACT */
    LATH_TRACE_INPUTS = 8       /* ATTN_IN, FFN_IN */
};

typedef struct lath_trace_options {
    size_t struct_size;
    const int32_t *positions; /* [n_positions] that are kept, rising; NULL: the last, or with all_positions all */
    size_t n_positions;
    int32_t all_positions;
    uint32_t what;         /* bits of LATH_TRACE_... */
    const int32_t *layers; /* [n_layers] that are kept, rising; NULL: all that run */
    size_t n_layers;
    lath_hooks *hooks; /* or NULL; what they change is what is kept */
    lath_ffn *ffn;     /* or NULL */
    /* The layers that run: first_layer <= i < end_layer; 0: all from the first on. Where they do not begin with the embeddings, or start is there, the residual stream
     * before them is start: [n, d_model]. */
    int32_t first_layer, end_layer;
    const float *start;
    uint64_t max_bytes; /* of the trace and the memory of its run; 0: 4 GiB. LATH_ERR_LIMIT says what it would take */
    lath_progress_fn progress; /* NULL, or called every 50 ms or so with 0 and the number of tokens; not 0: stop */
    void *progress_ctx;
} lath_trace_options;
#define LATH_TRACE_OPTIONS_INIT                                                                   \
    {                                                                                             \
        sizeof(lath_trace_options), NULL, 0, 0, 0, NULL, 0, NULL, NULL, 0, 0, NULL, 0, NULL, NULL \
    }

/* Runs n >= 1 tokens through the model, any architecture, as one text, and keeps what the options say. The trace does not need hooks, FFN or ids afterwards.
 * Numbers are those of a session with LATH_KV_F32 that reads the text in one call (integer products where it has them); a model of few bits may make more of the rounding
 * of LATH_KV_F16 than one expects.
 * LATH_ERR_USAGE: an option is out of range, hooks of a position that the text has not, or that have found no point to act at. LATH_ERR_INPUT: err->item is a token
 * whose id the model has no embedding for, or start has a number that is not finite. LATH_ERR_WINDOW: more tokens than the model's window. LATH_ERR_LIMIT.
 * LATH_ERR_FORMAT: what comes out is not finite. LATH_ERR_INTERRUPTED. */
LATH_API lath_status lath_trace_run(const lath_model *model, const int32_t *ids, size_t n,
                                    const lath_trace_options *opts, lath_trace **out, lath_error *err);
LATH_API void lath_trace_close(lath_trace *trace); /* NULL is allowed */

typedef struct lath_trace_info {
    size_t struct_size; /* set it before the call */
    size_t n_tokens, n_positions;
    const int32_t *ids;       /* [n_tokens] */
    const int32_t *positions; /* [n_positions] that are kept */
    uint32_t what;
    int32_t n_layers;               /* of the model */
    int32_t first_layer, end_layer; /* that ran */
    int32_t n_heads;                /* of the layer that has most */
    int32_t vocab_size;             /* rows of the output head; 0: the model has none */
    int32_t post_norm;              /* 1: norms stand behind the sums */
    int64_t d_model;
    uint64_t bytes; /* that the trace takes */
    double seconds; /* of the run */
} lath_trace_info;
LATH_API lath_status lath_trace_get_info(const lath_trace *trace, lath_trace_info *info, lath_error *err);

/* *row := [*d] numbers of a point at a position, the trace's. RESIDUAL of layer first_layer - 1 is what the first layer read (of layer -1: EMBED). FFN_ACT: see
 * lath_trace_get_act. LATH_ERR_USAGE: it was not kept, or has not been passed (layers that a gain stands in for), named. */
LATH_API lath_status lath_trace_get(const lath_trace *trace, lath_point point, int32_t layer, int32_t position,
                                    const float **row, size_t *d, lath_error *err);
/* What a head gives: a part of the row of HEADS. *n_heads (may be NULL): that the layer has. */
LATH_API lath_status lath_trace_get_head(const lath_trace *trace, int32_t layer, int32_t position, int32_t head,
                                         const float **row, size_t *d, int32_t *n_heads, lath_error *err);
/* *weights := [*n] that the head gives to positions *first, *first + 1, ...; others have none. */
LATH_API lath_status lath_trace_get_weights(const lath_trace *trace, int32_t layer, int32_t position, int32_t head,
                                            const float **weights, size_t *n, int32_t *first, lath_error *err);

/* Hidden features at a position. */
typedef struct lath_act {
    size_t struct_size;
    int32_t expert; /* -1: of none */
    size_t n;
    const float *values;     /* [n] */
    const int32_t *features; /* [n] their numbers; NULL: all, in order */
} lath_act;
/* Part i of the position's: one, or one for each expert that it went through. LATH_ERR_USAGE: there is no part i. *n_parts may be NULL. */
LATH_API lath_status lath_trace_get_act(const lath_trace *trace, int32_t layer, int32_t position, size_t i,
                                        lath_act *out, size_t *n_parts, lath_error *err);

/* The logits [vocab_size] of a position, as the run gave them. LATH_ERR_UNSUPPORTED: the model has no output head; LATH_ERR_USAGE: the last layers did not run. */
LATH_API lath_status lath_trace_logits(const lath_trace *trace, int32_t position, float *logits, lath_error *err);
/* The logit lens: what final norm and output head make of the stream behind each layer. logits: [layers kept, vocab_size], in one matrix product. */
LATH_API lath_status lath_trace_lens(const lath_trace *trace, int32_t position, float *logits, lath_error *err);
/* The same of any rows [n, d_model]: of the embeddings, of what a block adds. LATH_ERR_UNSUPPORTED: the model has no output head. */
LATH_API lath_status lath_lens(const lath_model *model, const float *rows, size_t n, float *logits, lath_error *err);

/* Where a token stands behind a layer. */
typedef struct lath_answer_step {
    int32_t layer;
    int32_t rank; /* by the lens: 1 + tokens with larger logits */
    float logit, prob;
    /* What the layer's attention and FFN added to the token's logit at the end: see lath_trace_attribution. */
    float attn_logit, ffn_logit;
    float residual_norm; /* L2 norm of the stream */
} lath_answer_step;
/* steps: [layers kept]. LATH_ERR_USAGE: the token's id is out of range. Errors else as lath_trace_lens. */
LATH_API lath_status lath_trace_answer(const lath_trace *trace, int32_t position, int32_t token,
                                       lath_answer_step *steps, lath_error *err);

/* Direct logit attribution (Elhage et al. 2021): the logit of a token is a sum over all that was added to the stream, when the final norm's factor is taken as it is at
 * the real stream. With L layers and H = lath_trace_info.n_heads:
 *
 *     logit = constant + embed + sum over layers of (sum over heads + rest + ffn)
 *
 * rest is what a layer added beside its heads and its FFN: the output projection's bias, a gain, what hooks have changed. A norm behind attention (Gemma) is taken with
 * its factor as it was, too. The logit is the one before a softcap. */
typedef struct lath_attribution {
    size_t struct_size;
    float *heads;      /* [L][H] filled where not NULL; 0 where a layer has fewer heads. It wants LATH_TRACE_HEADS */
    float *rest, *ffn; /* [L] twice */
    float embed;       /* what the first layer read */
    float constant;    /* the final norm's bias */
    float logit;       /* the sum */
    float softcapped_logit; /* as lath_trace_logits has it */
} lath_attribution;
/* LATH_ERR_USAGE: layers or heads were not kept, the trace does not reach the end; LATH_ERR_UNSUPPORTED: no output head. heads NULL: rest has what heads gave. */
LATH_API lath_status lath_trace_attribution(const lath_trace *trace, int32_t position, int32_t token,
                                            lath_attribution *out, lath_error *err);

/* gains [n_layers]: by which factor the stream's length grows in each layer at the last token, for `gain:G`. Errors as lath_trace_run. */
LATH_API lath_status lath_calibrate_gains(const lath_model *model, const int32_t *ids, size_t n, float *gains,
                                          lath_error *err);

/* ------------------------------------------------------------------------------------------------------------------ files */

/* Vectors kept in files that grow at their end and are read where the map has them (docs/formats/trace.md). */
typedef enum lath_store_kind {
    LATH_STORE_TRACE = 0,    /* TRAC: of each token the stream behind each layer and what was added to it */
    LATH_STORE_BOUNDARY = 1, /* BNDX: of each window of a long text the stream at its end */
    LATH_STORE_CONTEXT = 2   /* CTXT: the same, with what some layers added there */
} lath_store_kind;

/* What a file holds. Fields that the kind has not are 0. */
typedef struct lath_store_info {
    size_t struct_size; /* set it before the call */
    lath_store_kind kind;
    int64_t d_model;
    int32_t n_layers;  /* TRACE, CONTEXT */
    int32_t post_norm; /* TRACE: 1: five vectors of a layer, else three (below) */
    int32_t window;    /* BOUNDARY, CONTEXT: tokens of a window at most */
    int32_t
        tier; /* CONTEXT: 1: the stream; 2: what the FFN of each critical layer added, too; 3: what its attention added, too */
    int32_t n_critical; /* at most 8 */
    uint8_t critical[8];
    uint32_t most;               /* BOUNDARY, CONTEXT: records that it has room for; of a new file 0: 10000 */
    size_t n_records, n_vectors; /* how many there are; of each */
    uint32_t n_tokens;           /* TRACE: as n_records; else where the last window ends */
} lath_store_info;

/* A trace of all positions and layers into a new TRACE file, whole or not at all. A layer that a gain stands in for has what it changed as its FFN's part; what
 * hooks have done to a sum is in no part. LATH_ERR_USAGE: positions or layers are not there; LATH_ERR_INPUT: a number is not finite; LATH_ERR_IO, _NOMEM. */
LATH_API lath_status lath_trace_save(const lath_trace *trace, const char *path, lath_error *err);

typedef struct lath_store lath_store;
/* LATH_ERR_NOT_FOUND; LATH_ERR_FORMAT: foreign, cut, damaged, of another version, or a writer was stopped in the middle of a record. Any number of threads read one. */
LATH_API lath_status lath_store_open(lath_runtime *rt, const char *path, lath_store_kind kind, lath_store **out,
                                     lath_error *err);
LATH_API void lath_store_close(lath_store *store); /* NULL is allowed */
LATH_API lath_status lath_store_get_info(const lath_store *store, lath_store_info *info, lath_error *err);
/* Vector v of record i, [d_model], in the map; NULL: there is none.
 *   TRACE      of layer l, -1 the embeddings: v = (l + 1) * parts + part, parts 3: stream, attention, FFN; 5: stream, attention, its norm, FFN, its norm
 *   CONTEXT    0: stream; 1 + c: FFN of critical layer c; 1 + n_critical + c: its attention */
LATH_API const float *lath_store_get(const lath_store *store, size_t i, size_t v);
/* BOUNDARY, CONTEXT: the tokens [*begin, *end) of window i. LATH_ERR_USAGE: there is none. */
LATH_API lath_status lath_store_window(const lath_store *store, size_t i, uint32_t *begin, uint32_t *end,
                                       lath_error *err);
/* The window that has the token, or -1. */
LATH_API int64_t lath_store_find(const lath_store *store, uint32_t token);

typedef struct lath_store_writer lath_store_writer;
/* Goes on with the file, or makes it where there is none, for records as `what` says. One writer at a time. LATH_ERR_USAGE: the file holds something else, or there is no
 * such shape; LATH_ERR_IO: another process writes to it; errors else as lath_store_open. */
LATH_API lath_status lath_store_writer_open(lath_runtime *rt, const char *path, const lath_store_info *what,
                                            lath_store_writer **out, lath_error *err);
/* One more record, [n_vectors, d_model], for n tokens from `begin` on (of a TRACE file both are 0). It is on the disk when this returns; on failure the file is as it
 * was. LATH_ERR_USAGE: the window is too long, empty, or not behind those before; LATH_ERR_INPUT: a number is not finite; LATH_ERR_LIMIT: the file is full; LATH_ERR_IO. */
LATH_API lath_status lath_store_add(lath_store_writer *writer, uint32_t begin, uint32_t n, const float *record,
                                    lath_error *err);
LATH_API void lath_store_writer_close(lath_store_writer *writer); /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
