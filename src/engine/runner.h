/* SPDX-License-Identifier: Apache-2.0
 *
 * runner.h: token sequences through a model's forward in packed batches, for whoever makes a row of numbers out of each (embed.c vectors,
 * rerank.c logits). Sequences are taken in order; as many as fit the token budget are one batch; a longer one is a batch of its own. The tail
 * makes rows of the hidden state. Working memory is one block, grown when a batch needs more than any before it and then used again:
 *     | activations of the forward | rows a | rows b | scratch of the workers |
 */
#ifndef LATH_RUNNER_H
#define LATH_RUNNER_H

#include "engine/engine.h"

enum { RUNNER_TOKENS_MOST = 1 << 20 }; /* of a batch that a caller may ask for */

typedef struct runner runner;

/* Makes rows [n_seq, d_out] of hidden: [n_tok, d_model] of the batch f->b. r->memory[0] and [1] hold [n_seq, widest] each, for it to use. */
typedef lath_status (*runner_tail)(void *ctx, const runner *r, const fwd *f, view hidden, view *rows);
/* Sees a finished batch: r->pack.b, and its rows in r->out. */
typedef lath_status (*runner_keep)(void *ctx, const runner *r, lath_error *err);

struct runner {
    const lath_model *model;
    const char *item;     /* what a sequence is called in messages: "text" */
    int32_t batch_tokens; /* budget of a batch */
    int64_t widest;       /* numbers of the widest row of the tail */
    int64_t d_out;        /* numbers of a row of the result */
    runner_tail tail;
    runner_keep keep;                     /* NULL: nobody wants to see batches */
    const trace_sink *trace;              /* NULL: nobody wants to see what is inside the forward */
    void *ctx;                            /* of tail and keep */
    double seconds_forward, seconds_tail; /* of all batches so far */
    lath_progress_fn progress;            /* may be NULL */
    void *progress_ctx;
    double asked; /* when progress was asked last while a batch runs */
    packer pack;
    size_t *row; /* [capacity] the row of the result that each packed sequence is for */
    size_t capacity;
    stream stream;
    float *block, *memory[2];
    size_t block_bytes;
    int64_t block_tok, block_seq; /* that the block is large enough for */
    float *out;                   /* of the call that is going on: [total, d_out] */
    size_t total, done;           /* rows of it; those of finished batches */
};

/* batch_tokens 0: chosen for the machine. Nothing is allocated. */
void runner_init(runner *r, const lath_model *m, const char *item, int32_t batch_tokens, int64_t widest, int64_t d_out);
void runner_deinit(runner *r);
uint64_t runner_bytes(const runner *r);
/* Bytes that a runner takes for a batch of the default size of texts of 16 tokens. */
uint64_t runner_batch_bytes(const lath_model *m, int64_t widest);

/* A call: begin, adds, end. Each sequence is for one row of out: [total, d_out]; rows rise; rows that no sequence is for are left as they are.
 * type_ids may be NULL where the model has no types. Ids
 * and types that the model has no embeddings for are LATH_ERR_INPUT with err->item set; LATH_ERR_INTERRUPTED when progress says so. */
void runner_begin(runner *r, float *out, size_t total);
lath_status runner_add(runner *r, size_t row, const int32_t *ids, const int32_t *type_ids, int64_t n, lath_error *err);
lath_status runner_end(runner *r, lath_error *err);

#endif
