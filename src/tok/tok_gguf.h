/* SPDX-License-Identifier: Apache-2.0
 * tok_gguf.h: the split patterns of byte-level tokenizers by the names that GGUF files give them. */
#ifndef LATH_TOK_GGUF_H
#define LATH_TOK_GGUF_H

#include "base/json.h"
#include "base/map.h"
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

/* A BPE vocabulary with its merges, the best first. */
typedef struct tok_gguf_entry {
    tok_string text;
    int64_t id;
} tok_gguf_entry;
typedef struct tok_gguf_merge {
    tok_string left, right;
} tok_gguf_merge;
typedef struct tok_gguf_bpe {
    arena *mem;
    const char *name; /* leads messages */
    const tok_gguf_entry *entries;
    size_t n;
    const tok_gguf_merge *merges;
    size_t n_merges;
    const map *by_text; /* text -> index of its entry */
} tok_gguf_bpe;
/* scores, types: [n_ids]; types are tok_spm_type. LATH_ERR_UNSUPPORTED: the merges say more than an order of pieces. */
lath_status tok_gguf_scores(const tok_gguf_bpe *b, const int32_t *types, size_t n_ids, float *scores, lath_error *err);

/* The arrays of a SentencePiece file, for a model of n_ids rows (0: as many as there are pieces). config: tokenizer_config.json or NULL. */
lath_status tok_arrays_of_spm(arena *mem, const char *path, const json_value *config, int64_t n_ids, tok_arrays *out,
                              lath_error *err);

#endif
