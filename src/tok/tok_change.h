/* SPDX-License-Identifier: Apache-2.0
 * tok_change.h: writing normalized text as the reference's NormalizedString.transform does: each character comes with a
 * number: 0: it replaces the next character of the input; above 0: it is new and shares the origin of what is before;
 * below 0: it replaces the next character, and that many behind it are gone.
 *
 * While every character so far has replaced one of the same length, nothing is written down about origins. */
#ifndef LATH_TOK_CHANGE_H
#define LATH_TOK_CHANGE_H

#include "base/utf8.h"
#include "tok/tok_parts.h"

typedef struct tok_change {
    tok_work *w;
    const tok_text *t; /* the input */
    size_t i;          /* bytes of it that are replaced or gone */
    tok_textbuf *b;
} tok_change;

/* want: bytes that will come, about. */
static inline lath_status tok_change_begin(tok_change *k, tok_work *w, const tok_text *t, size_t want)
{
    *k = (tok_change){.w = w, .t = t};
    TRY(tok_textbuf_take(w, want + 16, t->base, &k->b));
    k->b->aligned = t->from != NULL;
    return LATH_OK;
}

static inline tok_text tok_change_text(const tok_change *k) { return tok_textbuf_text(k->b); }

static inline size_t tok_change_next(const tok_change *k, size_t i)
{
    if (i == k->t->n) return i;
    for (i++; i < k->t->n && ((uint8_t)k->t->s[i] & 0xC0) == 0x80; i++) {
    }
    return i;
}

static inline size_t tok_change_before(const tok_change *k, size_t i)
{
    if (i == 0) return i;
    for (i--; i > 0 && ((uint8_t)k->t->s[i] & 0xC0) == 0x80; i--) {
    }
    return i;
}

/* One character in UTF-8: len bytes at s. */
static inline lath_status tok_change_put_bytes(tok_change *k, const char *s, size_t len, long change)
{
    tok_textbuf *b = k->b;
    if (b->cap - b->n < 4) TRY(tok_textbuf_grow(k->w, b, 64));
    size_t end = change > 0 ? k->i : tok_change_next(k, k->i);
    if (!b->aligned && (change != 0 || end - k->i != len)) tok_textbuf_align(b);
    if (b->aligned) {
        size_t from_at = change > 0 ? tok_change_before(k, k->i) : k->i;
        bool none = from_at == end;
        uint32_t from = none ? k->t->base : tok_text_from(k->t, from_at);
        uint32_t to = none ? k->t->base : tok_text_to(k->t, end);
        for (size_t j = 0; j < len; j++) {
            b->from[b->n + j] = from;
            b->to[b->n + j] = to;
        }
    }
    for (size_t j = 0; j < len; j++) b->s[b->n + j] = s[j];
    b->n += len;
    k->i = end;
    for (; change < 0 && k->i < k->t->n; change++) k->i = tok_change_next(k, k->i);
    return LATH_OK;
}

static inline lath_status tok_change_put(tok_change *k, uint32_t c, long change)
{
    char bytes[4];
    return tok_change_put_bytes(k, bytes, utf8_encode(c, bytes), change);
}

/* len bytes (whole characters) of the input at k->i as they are. */
lath_status tok_change_copy(tok_change *k, size_t len);

/* Characters at k->i up to byte `end` of the input are gone, without one before them that is said to stand for them. */
static inline void tok_change_skip(tok_change *k, size_t end)
{
    if (end > k->i) {
        tok_textbuf_align(k->b);
        k->i = end;
    }
}

#endif
