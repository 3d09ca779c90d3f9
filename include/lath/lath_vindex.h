/* SPDX-License-Identifier: Apache-2.0
 *
 * lath_vindex.h: a model's FFNs as an index of features that can be walked. The interface is not stable yet.
 *
 * A feature is a row of the gate and up matrices and a column of the down matrix: how strongly it fires is a product with the row, and what it writes
 * is the column. lath_extract makes an index of a language model: a directory (docs/formats/vindex.md). lath_model_open opens one of level inference or
 * all as a model, whose FFNs are then walked: the FFN tensors of the model that it was made of are not needed. lath_walk_run says which features
 * fired for a prompt, and which tokens they write.
 */
#ifndef LATH_VINDEX_H
#define LATH_VINDEX_H

#include "lath/lath.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What rows are stored as. */
typedef enum lath_row_type {
    LATH_ROWS_AUTO =
        0, /* the type of the model's own where it is one of these; else Q8_0, or F16 where rows are no whole number of blocks */
    LATH_ROWS_F32 = 1,
    LATH_ROWS_F16 = 2,
    LATH_ROWS_BF16 = 3,
    LATH_ROWS_Q8_0 = 4, /* d_model and features must be multiples of 32 */
    LATH_ROWS_Q4_K = 5  /* of 256 */
} lath_row_type;

/* Each has all that is in those before. */
typedef enum lath_vindex_level {
    LATH_VINDEX_BROWSE = 0,    /* gate rows, embeddings, tokens of features, tokenizer: no model runs */
    LATH_VINDEX_ATTENTION = 1, /* and all other tensors but FFNs and output head */
    LATH_VINDEX_INFERENCE = 2, /* and up and down rows and the output head: it opens as a model */
    LATH_VINDEX_ALL =
        3 /* and the down matrices as the model has them: all features of many tokens as fast as without an index */
} lath_vindex_level;

typedef struct lath_extract_options {
    size_t struct_size;
    lath_row_type type;
    lath_vindex_level level;
    int32_t
        resume; /* 1: goes on where an extract of the same model and options was stopped; the result has the same bytes */
    lath_progress_fn progress; /* counts kilobytes of work */
    void *progress_ctx;
} lath_extract_options;
#define LATH_EXTRACT_OPTIONS_INIT                                                          \
    {                                                                                      \
        sizeof(lath_extract_options), LATH_ROWS_AUTO, LATH_VINDEX_INFERENCE, 0, NULL, NULL \
    }

typedef struct lath_extract_result {
    size_t struct_size;
    const char *dtype; /* of the rows; static */
    uint64_t bytes;    /* of all files */
    uint64_t kept;     /* of them, what an earlier run had made */
    uint64_t features; /* of all layers */
    int32_t n_layers;
} lath_extract_result;
#define LATH_EXTRACT_RESULT_INIT                      \
    {                                                 \
        sizeof(lath_extract_result), NULL, 0, 0, 0, 0 \
    }

/* Makes an index of the language model at `model` (a directory or a GGUF file) in `dir`, which must not be there or be empty. It is written as dir.part
 * and renamed when all of it is on the disk; what is stopped before stays as dir.part, for `resume`. Layer by layer; no copy of the model is made.
 * result may be NULL. LATH_ERR_NOT_FOUND, _FORMAT as lath_model_open, and for weights that are not finite or too large for the type; _USAGE: dir is there,
 * dir.part is of something else; _UNSUPPORTED: no language model, layers of experts (above level browse), rows that are no whole number of blocks; _IO: the disk
 * is full; _INTERRUPTED. */
LATH_API lath_status lath_extract(lath_runtime *rt, const char *model, const char *dir,
                                  const lath_extract_options *opts, lath_extract_result *result, lath_error *err);

/* ------------------------------------------------------------------------------------------------------------- an index */

/* Immutable: threads may share it. */
typedef struct lath_vindex lath_vindex;

/* LATH_ERR_NOT_FOUND: there is none, or it is not finished; _FORMAT: damaged, cut, of several parts that do not belong together; _UNSUPPORTED: of
 * another version. The bytes of rows are not read. */
LATH_API lath_status lath_vindex_open(lath_runtime *rt, const char *dir, lath_vindex **out, lath_error *err);
LATH_API void lath_vindex_close(lath_vindex *x); /* NULL is allowed */

typedef struct lath_vindex_info {
    size_t struct_size;
    lath_vindex_level level;
    const char *dtype, *model_type, *source; /* of the rows; of the model; the last name of its path */
    int32_t n_layers, vocab_size;
    int64_t d_model;
    uint64_t features, row_bytes; /* of all layers; of their gate, up and down rows */
    uint64_t bytes;               /* of all files */
    uint64_t ffn_bytes;           /* of the model's FFN tensors, which nobody reads any more */
    int32_t ffn_tensors;          /* of them */
} lath_vindex_info;
#define LATH_VINDEX_INFO_INIT                   \
    {                                           \
        .struct_size = sizeof(lath_vindex_info) \
    }
LATH_API lath_status lath_vindex_get_info(const lath_vindex *x, lath_vindex_info *info, lath_error *err);
/* 0: there is no such layer. */
LATH_API int64_t lath_vindex_features(const lath_vindex *x, int32_t layer);

typedef struct lath_token_score {
    int32_t token;
    float score; /* row `token` of the output head times what the feature writes when it fires with 1 */
} lath_token_score;
enum { LATH_FEATURE_TOKENS = 10 };
/* What a feature writes: *n of the tokens it makes likeliest, best first. LATH_ERR_USAGE: there is no such feature. */
LATH_API lath_status lath_vindex_get_tokens(const lath_vindex *x, int32_t layer, int64_t feature,
                                            lath_token_score out[LATH_FEATURE_TOKENS], int32_t *n, lath_error *err);
/* Reads all files and compares them with their checksums; fn (may be NULL) is told of each. Then everything else that an index says is held against its
 * configuration: at level inference and all it is opened as a model. LATH_ERR_FORMAT names what is at fault. */
typedef void (*lath_vindex_verify_fn)(void *ctx, const char *file, uint64_t bytes, int ok);
LATH_API lath_status lath_vindex_verify(const lath_vindex *x, lath_vindex_verify_fn fn, void *ctx, lath_error *err);
/* LATH_ERR_FORMAT: it is the index of another model. A model that was opened from an index is of the model that this was made of. */
LATH_API lath_status lath_vindex_check_model(const lath_vindex *x, const lath_model *model, lath_error *err);

/* ----------------------------------------------------------------------------------------------------------------- walk */

typedef struct lath_walk_options {
    size_t struct_size;
    int64_t k;                      /* features that are walked in each layer; 0: all */
    int32_t top;                    /* features of each layer that are told of */
    int32_t first_layer, end_layer; /* of which layers; end_layer 0: of all from the first on */
} lath_walk_options;
#define LATH_WALK_OPTIONS_INIT                 \
    {                                          \
        sizeof(lath_walk_options), 0, 10, 0, 0 \
    }

typedef struct lath_walk lath_walk;
typedef struct lath_walk_feature {
    int64_t feature;
    float gate; /* what it scored at the last token: its gate row times what the FFN read */
    int32_t n_tokens;
    lath_token_score tokens[LATH_FEATURE_TOKENS]; /* that it writes; where gate is negative it takes away from them */
} lath_walk_feature;

/* Runs the n tokens through the model with all FFNs walked over the index, and keeps which features scored highest (by magnitude) at the last
 * token. The index must be of level inference. LATH_ERR_USAGE: k, top or layers out of range; _INPUT, _WINDOW: the ids. */
LATH_API lath_status lath_walk_run(const lath_model *model, const lath_vindex *index, const int32_t *ids, size_t n,
                                   const lath_walk_options *opts, lath_walk **out, lath_error *err);
LATH_API void lath_walk_close(lath_walk *w); /* NULL is allowed */
/* The features of a layer, largest magnitude first; *n 0: nothing was kept of it. Borrowed from w. */
LATH_API const lath_walk_feature *lath_walk_get_layer(const lath_walk *w, int32_t layer, int32_t *n);
/* Of the next token, [*n]. Borrowed from w. */
LATH_API const float *lath_walk_get_logits(const lath_walk *w, size_t *n);
/* Seconds of the run, of them in FFNs. */
LATH_API double lath_walk_seconds(const lath_walk *w, double *of_ffns);

#ifdef __cplusplus
}
#endif
#endif
