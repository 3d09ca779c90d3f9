/* SPDX-License-Identifier: Apache-2.0
 * tok_metaspace.h: what the Metaspace pre-tokenizer does, for the model that does it on the way (tok_unigram.c). */
#ifndef LATH_TOK_METASPACE_H
#define LATH_TOK_METASPACE_H

#include "tok/tok_parts.h"

typedef enum tok_prepend { TOK_PREPEND_NEVER, TOK_PREPEND_FIRST, TOK_PREPEND_ALWAYS } tok_prepend;

typedef struct tok_metaspace {
    char mark[5]; /* the character that stands for a space, terminated */
    size_t n_mark;
    tok_prepend prepend;
    bool split; /* before each mark */
} tok_metaspace;

/* m is of the tokenizer's memory. */
void tok_split_metaspace_init(tok_splitter *out, const tok_metaspace *m);
void tok_decoder_metaspace_init(tok_decoder *out, const tok_metaspace *m);
/* NULL when p is another splitter. */
const tok_metaspace *tok_metaspace_of(const tok_splitter *p);

/* s[0..n) begins with a space or a mark. */
static inline bool tok_metaspace_at(const tok_metaspace *m, const char *s, size_t n)
{
    return n && (*s == ' ' || (*s == m->mark[0] && n >= m->n_mark && memcmp(s, m->mark, m->n_mark) == 0));
}

/* A mark is put before the span [b, e) of t. */
static inline bool tok_metaspace_prepends(const tok_metaspace *m, const tok_text *t, size_t b, size_t e)
{
    return m->prepend != TOK_PREPEND_NEVER && !tok_metaspace_at(m, t->s + b, e - b) &&
           (m->prepend == TOK_PREPEND_ALWAYS || tok_text_from(t, b) == 0);
}

#endif
