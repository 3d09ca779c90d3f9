/* SPDX-License-Identifier: Apache-2.0
 *
 * tok.h: tokenizers, driven by tokenizer.json (or vocab.txt). One pipeline, as the reference (`tokenizers` 0.23) has
 * it:
 *
 *     added tokens split the raw text -> normalizer -> added tokens with "normalized" split again
 *     -> pre-tokenizer -> model -> template
 *
 * A component is a row in a type-name table (tok_types.def) and a file; an unknown type or a field that would change
 * ids is an error that names it. `truncation` and `padding` in the file are ignored. A loaded tokenizer is immutable
 * and shared between threads.
 */
#ifndef LATH_TOK_H
#define LATH_TOK_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"

#include <stdbool.h>

typedef struct tok tok;

/* dir has tokenizer.json, or vocab.txt (with tokenizer_config.json: do_lower_case, strip_accents,
 * tokenize_chinese_chars, special tokens). LATH_ERR_NOT_FOUND when it has neither. */
lath_status tok_open_dir(const lath_allocator *alloc, const char *dir, tok **out, lath_error *err);
/* tokenizer.json from memory (tests, fuzzing); `name` leads messages. */
lath_status tok_open_json(const lath_allocator *alloc, const char *name, const char *json, size_t n, tok **out,
                          lath_error *err);
/* Puts a Lowercase step before the normalizer, as sentence-transformers does for do_lower_case. Before the tokenizer
 * is shared. */
lath_status tok_prepend_lowercase(tok *t, lath_error *err);
void tok_close(tok *t); /* NULL is allowed */

const lath_allocator *tok_allocator(const tok *t);
size_t tok_private_bytes(const tok *t);
/* Largest id + 1. */
int32_t tok_size(const tok *t);
/* The token's text in the vocabulary or among the added tokens (terminated), NULL when no token has this id. len may
 * be NULL. */
const char *tok_token(const tok *t, int32_t id, size_t *len);
/* -1 when absent. */
int32_t tok_id(const tok *t, const char *token, size_t len);
/* Names and flags of added tokens matter to decode and to `info`. */
bool tok_is_special(const tok *t, int32_t id);
/* How many tokens the template adds to a single text. */
int32_t tok_n_template(const tok *t);

/* Arrays grow and are reused from call to call; zero it before the first use. */
typedef struct tok_encoding {
    int32_t *ids, *type_ids;
    uint32_t *offsets; /* [n][2] bytes of the original text; 0,0 for template tokens */
    size_t n, n_untruncated, capacity;
} tok_encoding;

typedef struct tok_encode_options {
    bool add_special, parse_special;
    int64_t max_tokens; /* 0: no limit; cut from the right, template tokens kept */
} tok_encode_options;

/* Valid UTF-8 is required (LATH_ERR_INPUT names the byte offset). Working memory is taken from `scratch` (reset by
 * the caller between calls). */
lath_status tok_encode(const tok *t, arena *scratch, const char *text, size_t n, const tok_encode_options *opts,
                       tok_encoding *out, lath_error *err);
void tok_encoding_release(const tok *t, tok_encoding *e);
/* Appends the text of ids as the decoder of the file gives it. */
lath_status tok_decode(const tok *t, const int32_t *ids, size_t n, bool skip_special, buf *out, lath_error *err);

#endif
