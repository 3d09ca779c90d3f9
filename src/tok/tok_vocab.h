/* SPDX-License-Identifier: Apache-2.0
 * tok_vocab.h: a vocabulary: byte strings <-> ids. Filled entry by entry while the file is read, then built once;
 * immutable afterwards.
 *
 * The hash is made byte by byte, so that the hashes of all prefixes of a word fall out of one pass over it, and a
 * filter of one bit per hash (small enough for the first-level cache) rejects nearly all strings that are no token:
 * longest-match search needs no trie. */
#ifndef LATH_TOK_VOCAB_H
#define LATH_TOK_VOCAB_H

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"

typedef struct tok_vocab_slot {
    uint32_t tag; /* low half of the hash */
    uint32_t at;  /* offset of the string in text; 0: the slot is empty */
    uint32_t len;
    int32_t id;
} tok_vocab_slot;

typedef struct tok_vocab_text {
    uint32_t at, len; /* at == 0: no token has this id */
} tok_vocab_text;

typedef struct tok_vocab {
    const lath_allocator *alloc;
    buf text;    /* a 0, then all strings, each with a 0 behind */
    buf pending; /* entries until tok_vocab_build */
    size_t count;
    int32_t max_id;        /* -1 when empty */
    size_t max_len;        /* bytes of the longest string */
    tok_vocab_slot *slots; /* [n_slots], a power of two, at most half full */
    size_t n_slots;
    int shift;        /* hash >> shift is the home slot */
    uint64_t *filter; /* [(filter_mask + 1) / 64] */
    uint64_t filter_mask;
    tok_vocab_text *by_id; /* [n_ids] */
    size_t n_ids, cap_ids;
} tok_vocab;

void tok_vocab_init(tok_vocab *v, const lath_allocator *alloc);
void tok_vocab_deinit(tok_vocab *v);
/* Copies s. id >= 0. */
lath_status tok_vocab_add(tok_vocab *v, const char *s, size_t len, int32_t id, lath_error *err);
/* A string that comes twice is an error, or has its last id, its other ids having no text (vocab.txt) or keeping it
 * (lists of pieces). */
typedef enum tok_vocab_twice { TOK_TWICE_ERROR, TOK_TWICE_LAST, TOK_TWICE_LISTED } tok_vocab_twice;
/* An error is also an id that is given twice or that is so far beyond the number of tokens that the file must be
 * damaged. */
lath_status tok_vocab_build(tok_vocab *v, tok_vocab_twice twice, lath_error *err);
/* Gives `id` this text for tok_vocab_get (an added token); look-ups by text are not changed. */
lath_status tok_vocab_name(tok_vocab *v, int32_t id, const char *s, size_t len, lath_error *err);
/* -1 when absent. */
int32_t tok_vocab_find(const tok_vocab *v, const char *s, size_t len);
/* Terminated text of an id, NULL when it is no token. */
const char *tok_vocab_get(const tok_vocab *v, int32_t id, size_t *len);
size_t tok_vocab_bytes(const tok_vocab *v);

#define TOK_HASH_START 0xCBF29CE484222325u
static inline uint64_t tok_hash_step(uint64_t h, uint8_t byte) { return (h ^ byte) * 0x9E3779B97F4A7C15u; }

static inline bool tok_vocab_maybe(const tok_vocab *v, uint64_t h)
{
    uint64_t bit = h >> 24 & v->filter_mask;
    return v->filter[bit >> 6] >> (bit & 63) & 1;
}

/* memcmp == 0 without a call for the short strings that words are. */
static inline bool tok_same_bytes(const char *a, const char *b, size_t n)
{
    uint64_t x, y;
    if (n >= 8) {
        for (size_t i = 0; i + 8 < n; i += 8) {
            memcpy(&x, a + i, 8);
            memcpy(&y, b + i, 8);
            if (x != y) return false;
        }
        memcpy(&x, a + n - 8, 8);
        memcpy(&y, b + n - 8, 8);
        return x == y;
    }
    if (n >= 4) {
        uint32_t p, q, r, s;
        memcpy(&p, a, 4);
        memcpy(&q, b, 4);
        memcpy(&r, a + n - 4, 4);
        memcpy(&s, b + n - 4, 4);
        return p == q && r == s;
    }
    for (size_t i = 0; i < n; i++) {
        if (a[i] != b[i]) return false;
    }
    return true;
}

/* The id of prefix + s[0..len), whose hash is h; -1 when it is no token. */
static inline int32_t tok_vocab_look(const tok_vocab *v, uint64_t h, const char *prefix, size_t prefix_len,
                                     const char *s, size_t len)
{
    size_t i = (size_t)(h >> v->shift);
    uint32_t tag = (uint32_t)h;
    for (;; i = (i + 1) & (v->n_slots - 1)) {
        const tok_vocab_slot *slot = &v->slots[i];
        if (slot->at == 0) return -1;
        if (slot->tag != tag || slot->len != prefix_len + len) continue;
        const char *text = v->text.data + slot->at;
        if (tok_same_bytes(text + prefix_len, s, len) && tok_same_bytes(text, prefix, prefix_len)) return slot->id;
    }
}

#endif
