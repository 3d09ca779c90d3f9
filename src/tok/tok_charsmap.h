/* SPDX-License-Identifier: Apache-2.0
 * tok_charsmap.h: the character map of SentencePiece: a double-array trie over UTF-8 whose values are places in a text
 * of 0-terminated replacements. From untrusted bytes: every look-up is checked.
 *
 *     u32 bytes of the trie | u32 units[] | replacements */
#ifndef LATH_TOK_CHARSMAP_H
#define LATH_TOK_CHARSMAP_H

#include "tok/tok_parts.h"

typedef struct tok_charsmap {
    const uint32_t *units; /* [n_units], at least one */
    size_t n_units;
    const char *text; /* [n_text], terminated */
    size_t n_text;
    uint64_t bmp[1024]; /* a bit for each character below U+10000 that begins with an entry */
} tok_charsmap;

/* Copies what it needs. LATH_ERR_FORMAT. */
lath_status tok_charsmap_load(tok_load *l, const json_value *at, const char *bytes, size_t n, tok_charsmap **out);
/* What the shortest (or longest) entry that s[0..n) begins with becomes; NULL: there is none. *used: bytes of the
 * entry. */
const char *tok_charsmap_find(const tok_charsmap *m, const char *s, size_t n, bool longest, size_t *used, size_t *len);

static inline bool tok_charsmap_may(const tok_charsmap *m, uint32_t c)
{
    return c >= 0x10000 || m->bmp[c >> 6] >> (c & 63) & 1;
}

/* The Precompiled normalizer over a loaded map. */
void tok_precompiled_init(tok_normalizer *n, const tok_charsmap *m);

#endif
