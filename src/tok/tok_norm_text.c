/* SPDX-License-Identifier: Apache-2.0
 * tok_norm_text.c: the small normalizers: Strip, Prepend and Nmt (SentencePiece's control characters and spaces). */
#include "base/unicode.h"
#include "tok/tok_change.h"

/* ------------------------------------------------------------------------------------------------------------ strip */

typedef struct sides {
    bool left, right;
} sides;

static lath_status run_strip(const tok_normalizer *norm, tok_work *w, tok_text *t)
{
    (void)w;
    const sides *s = norm->param;
    size_t b = 0, e = t->n, len;
    while (s->left && b < e && uni_flags(uni_next(t->s + b, &len)) & UNI_SPACE) b += len;
    while (s->right && e > b && uni_flags(uni_before(t->s, e, &len)) & UNI_SPACE) e -= len;
    *t = tok_text_slice(t, b, e);
    return LATH_OK;
}

lath_status tok_norm_strip(tok_load *l, const json_value *v, tok_normalizer *out)
{
    static const char *const known[] = {"type", "strip_left", "strip_right", NULL};
    sides *s = tok_load_array(l, 1, sizeof(*s));
    if (!s) return err_nomem(l->err, sizeof(*s));
    TRY(tok_load_fields(l, v, "normalizer", known));
    TRY(tok_load_bool(l, v, "normalizer", "strip_left", &s->left));
    TRY(tok_load_bool(l, v, "normalizer", "strip_right", &s->right));
    *out = (tok_normalizer){.run = run_strip, .param = s};
    return LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------------- prepend */

/* All that is put before the text, and its first character, have the origin of that character. */
static lath_status run_prepend(const tok_normalizer *norm, tok_work *w, tok_text *t)
{
    const tok_string *p = norm->param;
    if (t->n == 0) return LATH_OK;
    tok_change k;
    TRY(tok_change_begin(&k, w, t, t->n + p->n));
    size_t first = tok_change_next(&k, 0), len;
    for (size_t i = 0; i < p->n; i += len) {
        uni_next(p->s + i, &len);
        TRY(tok_change_put_bytes(&k, p->s + i, len, i > 0));
    }
    TRY(tok_change_put_bytes(&k, t->s, first, 1));
    k.i = first;
    TRY(tok_change_copy(&k, t->n - first));
    *t = tok_change_text(&k);
    return LATH_OK;
}

void tok_norm_prepend_init(tok_normalizer *out, const tok_string *what)
{
    *out = (tok_normalizer){.run = run_prepend, .param = what};
}

lath_status tok_norm_prepend(tok_load *l, const json_value *v, tok_normalizer *out)
{
    static const char *const known[] = {"type", "prepend", NULL};
    tok_string *p = tok_load_array(l, 1, sizeof(*p));
    if (!p) return err_nomem(l->err, sizeof(*p));
    TRY(tok_load_fields(l, v, "normalizer", known));
    TRY(tok_load_string(l, v, "normalizer", "prepend", p));
    tok_norm_prepend_init(out, p);
    return LATH_OK;
}

/* -------------------------------------------------------------------------------------------------------------- nmt */

static bool nmt_drops(uint32_t c)
{
    return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
}

static bool nmt_blanks(uint32_t c)
{
    return c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
           c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
}

static lath_status run_nmt(const tok_normalizer *norm, tok_work *w, tok_text *t)
{
    (void)norm;
    tok_change k;
    TRY(tok_change_begin(&k, w, t, t->n));
    size_t len;
    for (size_t i = 0; i < t->n; i += len) {
        uint32_t c = uni_next(t->s + i, &len);
        bool drops = nmt_drops(c);
        if (!drops && !nmt_blanks(c)) continue;
        TRY(tok_change_copy(&k, i - k.i));
        if (drops)
            tok_change_skip(&k, i + len);
        else
            TRY(tok_change_put(&k, ' ', 0));
    }
    TRY(tok_change_copy(&k, t->n - k.i));
    *t = tok_change_text(&k);
    return LATH_OK;
}

lath_status tok_norm_nmt(tok_load *l, const json_value *v, tok_normalizer *out)
{
    static const char *const known[] = {"type", NULL};
    *out = (tok_normalizer){.run = run_nmt};
    return tok_load_fields(l, v, "normalizer", known);
}
