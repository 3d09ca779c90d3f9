/* SPDX-License-Identifier: Apache-2.0
 * tok_bytelevel.h: the alphabet of byte-level tokenizers (Radford et al. 2019): each byte is written as a visible
 * character, itself where it is one, else U+0100 and so on in order; and ByteLevel as a pre-tokenizer. */
#ifndef LATH_TOK_BYTELEVEL_H
#define LATH_TOK_BYTELEVEL_H

#include "tok/tok_patterns.h"

static inline uint32_t tok_byte_to_char(uint8_t b)
{
    if (b <= 32) return 256u + b;
    if (b >= 127 && b <= 160) return 256u + 33 + (b - 127u);
    return b == 173 ? 256u + 67 : b;
}

/* -1: no byte is written so. */
static inline int tok_char_to_byte(uint32_t c)
{
    if (c >= 256) {
        if (c < 256 + 33) return (int)(c - 256);
        if (c < 256 + 67) return (int)(c - 256 - 33 + 127);
        return c == 256 + 67 ? 173 : -1;
    }
    return (c >= 33 && c <= 126) || (c >= 161 && c != 173) ? (int)c : -1;
}

/* The bytes of a token that is written in this alphabet: their number, or SIZE_MAX when it is not. out: room for n. */
size_t tok_bytelevel_bytes(const char *s, size_t n, char *out);

/* Parameters of the pre-tokenizer. */
typedef struct tok_bytelevel {
    bool prefix; /* a space before words that have none */
    bool regex;  /* splits by GPT-2's pattern */
} tok_bytelevel;

/* NULL: p is another splitter. */
const tok_bytelevel *tok_bytelevel_of(const tok_splitter *p);
/* All that the splitter p does but writing bytes as characters, for a model that reads bytes. */
void tok_bytelevel_keep_bytes(tok_splitter *p);

#endif
