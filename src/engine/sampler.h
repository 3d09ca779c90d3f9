/* SPDX-License-Identifier: Apache-2.0
 *
 * sampler.h: which token comes next, as lath_sample_options says it. A sampler owns its working memory (made once: choosing allocates
 * nothing), the random generator and the counts of tokens so far. One thread at a time.
 */
#ifndef LATH_ENGINE_SAMPLER_H
#define LATH_ENGINE_SAMPLER_H

#include "base/arena.h"
#include "base/rng.h"
#include "engine/ranking.h"
#include "kern/kern.h"
#include "lath/lath.h"

/* A token of prompt or text: how often it is there, and where it stands in `listed`. */
typedef struct sampler_seen {
    uint32_t count;
    int32_t at;
} sampler_seen;

typedef struct sampler {
    arena mem;
    const kern_table *kern;
    lath_sample_options o; /* bias is the sampler's copy */
    rng rng;
    int32_t n_vocab;
    size_t n_blocks;    /* of 64 ids */
    float *v;           /* [n_blocks * 64] logits on their way; -infinity: never, and behind the end */
    float *w;           /* [n_blocks * 64] weights exp((v - largest) / t) */
    float *block_max;   /* [n_blocks] */
    float largest;      /* of v */
    rank_key *keys;     /* [n_blocks * 64] */
    sampler_seen *seen; /* [n_vocab], NULL without penalties */
    int32_t *listed;    /* [n_listed] ids with a count */
    size_t n_listed;
} sampler;

/* LATH_ERR_USAGE: an option out of range, named; opts NULL is all defaults. Deinit also after a failure. */
lath_status sampler_init(sampler *s, const lath_allocator *alloc, const kern_table *kern, int32_t n_vocab,
                         const lath_sample_options *opts, lath_error *err);
void sampler_deinit(sampler *s); /* of a zeroed one, too */
size_t sampler_bytes(const sampler *s);

/* These tokens are now part of the prompt or text; those outside the vocabulary do not matter. */
void sampler_accept(sampler *s, const int32_t *ids, size_t n);
/* And these, accepted before, no longer are. */
void sampler_rewind(sampler *s, const int32_t *ids, size_t n);
/* None is. The generator begins anew. */
void sampler_reset(sampler *s);

/* Chooses among the ids whose bit is set (mask: 32 ids a word, bit id % 32 of word id / 32; NULL: all). logits: [n_vocab], as the
 * model gives them. Does not accept it. LATH_ERR_FORMAT: a logit is NaN or +infinity. LATH_ERR_INPUT: no id is left: all of
 * them are masked or -infinity. */
lath_status sampler_pick(sampler *s, const float *logits, const uint32_t *mask, int32_t *id, lath_error *err);

/* The k most probable tokens, best first, of equal ones the lower id; k <= n_vocab; and the logprob of one of them (chosen may be
 * NULL). Errors as sampler_pick. */
lath_status sampler_top_logprobs(sampler *s, const float *logits, size_t k, lath_token_logprob *top,
                                 lath_token_logprob *chosen, lath_error *err);

#endif
