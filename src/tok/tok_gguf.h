/* SPDX-License-Identifier: Apache-2.0
 * tok_gguf.h: the split patterns of byte-level tokenizers by the names that GGUF files give them. */
#ifndef LATH_TOK_GGUF_H
#define LATH_TOK_GGUF_H

#include "tok/tok.h"

enum {
    TOK_GGUF_ADD_BOS = 1,       /* where the file does not say */
    TOK_GGUF_IGNORE_MERGES = 2, /* a word that is a token is that token */
    TOK_GGUF_NFC = 4,           /* the model's own tokenizer normalizes first */
    TOK_GGUF_RAW = 8            /* merges of UTF-8 text with U+2581 for spaces, not of byte letters */
};

typedef struct tok_gguf_split {
    const char *name;
    const char *const *patterns; /* NULL at the end */
    int flags;
} tok_gguf_split;

/* NULL: not known. */
const tok_gguf_split *tok_gguf_split_find(const char *name);
/* The first name of these patterns and flags (IGNORE_MERGES and NFC count); *exact false: NFC differs. NULL: there is none. */
const tok_gguf_split *tok_gguf_split_match(const tok_string *patterns, size_t n, int flags, bool *exact);

#endif
