/* SPDX-License-Identifier: Apache-2.0
 * tok_regex.h: patterns as tokenizer.json writes them (Oniguruma's syntax in its Ruby flavour), matched by PCRE2. The
 * character classes are those of the reference (base/unicode_regex_tables.h): tok_regex_syntax.c writes each of them
 * out before PCRE2, which knows an older Unicode, sees the pattern. What the two engines read differently is
 * rewritten, or refused by name.
 *
 * A pattern is immutable and shared between threads; each search has its own state. A search that takes too many
 * steps is LATH_ERR_LIMIT. */
#ifndef LATH_TOK_REGEX_H
#define LATH_TOK_REGEX_H

#include "tok/tok_parts.h"

typedef struct tok_regex tok_regex;

/* The pattern belongs to l->t. what: "pre_tokenizer", leads messages. */
lath_status tok_regex_load(tok_load *l, const json_value *at, const char *what, tok_string pattern,
                           const tok_regex **out);
/* A pattern that matches this string only; the empty one matches between all characters. */
lath_status tok_regex_load_string(tok_load *l, tok_string string, const tok_regex **out);
/* {"String": "..."} or {"Regex": "..."} under "pattern" of v. The text goes to *text (may be NULL); *is_regex says
 * which it is. */
lath_status tok_regex_load_pattern(tok_load *l, const json_value *v, const char *what, const tok_regex **out,
                                   tok_string *text, bool *is_regex);
/* The string of tok_regex_load_string; s == NULL: r is another pattern. */
tok_string tok_regex_string(const tok_regex *r);
/* All patterns of a tokenizer (tok_close). */
void tok_regex_release(tok *t);

/* Matches of a text in order, as the reference finds them: from the end of the one before; an empty match where the
 * one before ended is passed over. */
typedef struct tok_regex_find {
    const tok_regex *r;
    const char *s;
    size_t n, at;
    size_t b, e;     /* the match */
    size_t last_end; /* of the match before; SIZE_MAX: there was none */
    void *data, *context, *stack;
} tok_regex_find;

/* s: valid UTF-8; what surrounds it is not seen by the pattern. */
lath_status tok_regex_begin(tok_regex_find *f, const tok_regex *r, const char *s, size_t n, lath_error *err);
/* *found: f->b and f->e are set. */
lath_status tok_regex_next(tok_regex_find *f, bool *found, lath_error *err);
void tok_regex_end(tok_regex_find *f); /* after every tok_regex_begin, also a failed one */

/* The pattern in PCRE2's syntax into out. LATH_ERR_UNSUPPORTED, _FORMAT; the message is about the pattern only. */
lath_status tok_regex_rewrite(const lath_allocator *alloc, tok_string pattern, buf *out, lath_error *err);

#endif
