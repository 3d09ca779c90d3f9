/* SPDX-License-Identifier: Apache-2.0
 * tok_unigram.h: the Unigram model from plain data, for its loaders (tokenizer.json, SentencePiece files). */
#ifndef LATH_TOK_UNIGRAM_H
#define LATH_TOK_UNIGRAM_H

#include "tok/tok_parts.h"

/* scores: [vocabulary's n_ids], all finite, of the vocabulary of l->t, whose id i is the i-th piece; unk: -1 when
 * there is none. */
lath_status tok_unigram_init(tok_load *l, const json_value *at, const double *scores, int32_t unk, bool byte_fallback,
                             tok_model *out);
/* After all is loaded: where Metaspace is the last pre-tokenizer before a Unigram model, it is taken out and the model
 * reads spaces as it would have written them. */
void tok_unigram_fuse(tok *t);

#endif
