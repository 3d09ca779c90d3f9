/* SPDX-License-Identifier: Apache-2.0
 *
 * session.h: one sequence of tokens through a language model, with what the model keeps of it. Two blocks, made at creation:
 *     keys and values   | layer 0: k, v | layer 1: k, v | ...   (layers with a window keep their window and a chunk)
 *     work              | activations | logits | scratch | arrays of a batch | the tokens themselves |
 * and two more where layers recur: their states, and snapshots of these (snapshots.h).
 */
#ifndef LATH_SESSION_H
#define LATH_SESSION_H

#include "engine/engine.h"
#include "engine/snapshots.h"

struct lath_session {
    const lath_model *model;
    int32_t ctx, chunk; /* tokens that it may hold; tokens of a batch at most */
    int32_t n;          /* tokens that it holds */
    int32_t written;    /* positions that have been written since it was last empty */
    int32_t turned;     /* tokens that it held when what is kept was last added to: see arch_desc.stale */
    int32_t slack;      /* positions beyond its window that every layer keeps at least */
    bool has_logits;    /* those of the last token are there */
    stream whole, step; /* many tokens; one */
    kv_layer *kv;       /* [n_layers] without slots where a layer recurs */
    float **recurrent;  /* [n_layers] states of the layers that recur; NULL for the others */
    bool half;          /* keys and values are kept as F16 */
    int32_t *ids;       /* [ctx] the tokens */
    batch b;            /* of up to chunk tokens */
    float *state, *last,
        *logits; /* activations; hidden states of up to BACKEND_ROWS_MOST tokens; their logits, rows of vocab */
    int64_t logits_stride;
    int64_t last_row; /* of logits: the last token's */
    void *kv_block, *work_block;
    float *recurrent_block;
    size_t kv_bytes, work_bytes, recurrent_floats;
    snapshots snaps;            /* of `recurrent` */
    uint64_t snapshot_budget;   /* bytes; 0: the usual */
    const trace_sink *trace;    /* NULL: nobody looks inside */
    const struct lath_ffn *ffn; /* that stands in for the model's own; NULL: none */
    float *ffn_memory;          /* that it works in */
    size_t ffn_bytes;
    lath_session_stats stats;
    lath_progress_fn progress; /* may be NULL */
    void *progress_ctx;
    double asked;   /* when it was called last */
    int32_t wanted; /* tokens that there will be behind the call that is going on */
};

/* Sees the logits [vocab] of token `at`. */
typedef lath_status (*session_see)(void *ctx, int32_t at, const float *logits, lath_error *err);

/* Appends n tokens; with `see`, whose calls come in order, the logits of each. What is kept is computed again where the model turns a sequence of the new
 * length otherwise. When it fails the session is as before, or empty where a layer's window has been overwritten; where layers recur as at the last snapshot,
 * which for n > 1 is as before if there is room for one. */
lath_status session_append(lath_session *s, const int32_t *ids, int32_t n, session_see see, void *ctx, lath_error *err);

#endif
