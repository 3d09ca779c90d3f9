/* SPDX-License-Identifier: Apache-2.0
 * tok_patterns.h: split patterns that many files have, as programs. A pattern is known by its exact text; what the
 * program does is proved equal to the reference's regular expression by tests over all code points and random text.
 * The matches of each of them cover the whole text. */
#ifndef LATH_TOK_PATTERNS_H
#define LATH_TOK_PATTERNS_H

#include "tok/tok_parts.h"

typedef struct tok_pattern {
    const char *name;
    /* Matches of s[*at..n) in order, at most `most`; *at moves behind them. s[0..n) is the whole text. */
    size_t (*split)(const char *s, size_t n, size_t *at, tok_span *out, size_t most);
} tok_pattern;

/* NULL: not known. */
const tok_pattern *tok_pattern_find(tok_string regex);
/* GPT-2's, which ByteLevel has built in. */
const tok_pattern *tok_pattern_gpt2(void);

#endif
