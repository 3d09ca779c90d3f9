/* SPDX-License-Identifier: Apache-2.0
 * tok_change.c: copying text that a normalizer leaves as it is (tok_change.h). Byte i of a character that kept its
 * length came from all bytes of it; only pieces that end between characters are ever asked for, so byte by byte is as
 * good. */
#include "tok/tok_change.h"

lath_status tok_change_copy(tok_change *k, size_t len)
{
    tok_textbuf *b = k->b;
    const tok_text *t = k->t;
    if (len == 0) return LATH_OK;
    if (b->cap - b->n < len) TRY(tok_textbuf_grow(k->w, b, len));
    memcpy(b->s + b->n, t->s + k->i, len);
    if (b->aligned && t->from) {
        memcpy(b->from + b->n, t->from + k->i, len * sizeof(*b->from));
        memcpy(b->to + b->n, t->to + k->i, len * sizeof(*b->to));
    } else if (b->aligned) {
        uint32_t at = t->base + (uint32_t)k->i;
        for (size_t j = 0; j < len; j++) {
            b->from[b->n + j] = at + (uint32_t)j;
            b->to[b->n + j] = at + (uint32_t)j + 1;
        }
    }
    b->n += len;
    k->i += len;
    return LATH_OK;
}
