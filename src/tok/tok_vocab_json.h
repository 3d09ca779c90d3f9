/* SPDX-License-Identifier: Apache-2.0
 * tok_vocab_json.h: the older files of byte-level BPE: vocab.json (tokens and ids) and merges.txt, with what
 * tokenizer_config.json says. They become the text of a tokenizer.json with the pipeline of their tokenizer class, which
 * is then read like any other. */
#ifndef LATH_TOK_VOCAB_JSON_H
#define LATH_TOK_VOCAB_JSON_H

#include "base/json.h"
#include "tok/tok.h"

/* Appends tokenizer.json to out. config: tokenizer_config.json, NULL where there is none. LATH_ERR_FORMAT, _UNSUPPORTED
 * (a tokenizer class that is not known), _NOT_FOUND. */
lath_status tok_vocab_json_to_json(const lath_allocator *alloc, const char *dir, const json_value *config, buf *out,
                                   lath_error *err);
/* The tokens that the configuration lists have the ids that it gives them. */
lath_status tok_vocab_json_check(const tok *t, const char *dir, const json_value *config, lath_error *err);

#endif
