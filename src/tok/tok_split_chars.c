/* SPDX-License-Identifier: Apache-2.0
 * tok_split_chars.c: pre-tokenizers that look at characters one by one: Digits, CharDelimiterSplit, UnicodeScripts and
 * FixedLength. */
#include "base/unicode_text.h"
#include "tok/tok_parts.h"

static void swap_spans(tok_work *w)
{
    tok_spans s = w->spans;
    w->spans = w->spare;
    w->spare = s;
}

static const char *const type_only[] = {"type", NULL};

/* ----------------------------------------------------------------------------------------------------------- digits */

static bool is_number(uint32_t c) { return c < 0x80 ? c >= '0' && c <= '9' : (uni_text_flags(c) & UNI_NUMERIC) != 0; }

/* Numbers apart from the rest: runs of them, or one by one. */
static lath_status split_digits(tok_work *w, const tok_text *t, bool each)
{
    w->spare.n = 0;
    for (size_t k = 0; k < w->spans.n; k++) {
        size_t b = w->spans.v[k].b, e = w->spans.v[k].e, piece = b, len;
        bool was = false;
        for (size_t i = b; i < e; i += len) {
            bool is = is_number(uni_next(t->s + i, &len));
            if (i > piece && (is != was || (is && each))) {
                TRY(tok_spans_push(w, &w->spare, piece, i));
                piece = i;
            }
            was = is;
        }
        if (piece < e) TRY(tok_spans_push(w, &w->spare, piece, e));
    }
    swap_spans(w);
    return LATH_OK;
}

static lath_status run_digits(const tok_splitter *p, tok_work *w, tok_text *t)
{
    (void)p;
    return split_digits(w, t, false);
}

static lath_status run_digits_each(const tok_splitter *p, tok_work *w, tok_text *t)
{
    (void)p;
    return split_digits(w, t, true);
}

lath_status tok_split_digits(tok_load *l, const json_value *v, tok_splitter *out)
{
    static const char *const known[] = {"type", "individual_digits", NULL};
    bool each;
    TRY(tok_load_fields(l, v, "pre_tokenizer", known));
    TRY(tok_load_bool(l, v, "pre_tokenizer", "individual_digits", &each));
    *out = (tok_splitter){.run = each ? run_digits_each : run_digits};
    return LATH_OK;
}

/* -------------------------------------------------------------------------------------------------------- delimiter */

static lath_status run_delimiter(const tok_splitter *p, tok_work *w, tok_text *t)
{
    const tok_string *d = p->param;
    w->spare.n = 0;
    for (size_t k = 0; k < w->spans.n; k++) {
        size_t b = w->spans.v[k].b, e = w->spans.v[k].e;
        while (b < e) {
            const char *at = memmem(t->s + b, e - b, d->s, d->n);
            size_t end = at ? (size_t)(at - t->s) : e;
            if (b < end) TRY(tok_spans_push(w, &w->spare, b, end));
            b = end + d->n;
        }
    }
    swap_spans(w);
    return LATH_OK;
}

lath_status tok_split_delimiter(tok_load *l, const json_value *v, tok_splitter *out)
{
    static const char *const known[] = {"type", "delimiter", NULL};
    tok_string *d = tok_load_array(l, 1, sizeof(*d));
    if (!d) return err_nomem(l->err, sizeof(*d));
    TRY(tok_load_fields(l, v, "pre_tokenizer", known));
    TRY(tok_load_string(l, v, "pre_tokenizer", "delimiter", d));
    size_t len = 0;
    if (d->n) uni_next(d->s, &len);
    if (d->n == 0 || len != d->n)
        return TOK_FAIL(l, json_get(v, "delimiter"), LATH_ERR_FORMAT,
                        "pre_tokenizer: want one character as \"delimiter\"");
    *out = (tok_splitter){.run = run_delimiter, .param = d};
    return LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------------- scripts */

/* Kana is Han, as is the prolonged sound mark; a space goes with everything. */
static uint32_t script_of(uint32_t c, const uint32_t *kana)
{
    if (c == ' ') return 0;
    uint32_t s = uni_script(c);
    return c == 0x30FC || s == kana[0] || s == kana[1] ? kana[2] : s;
}

/* A word begins where the script changes; what is before the first character of a script goes, as in the reference. */
static lath_status run_scripts(const tok_splitter *p, tok_work *w, tok_text *t)
{
    (void)p;
    const uint32_t kana[3] = {uni_script(0x3042), uni_script(0x30A2), uni_script(0x4E2D)};
    w->spare.n = 0;
    for (size_t k = 0; k < w->spans.n; k++) {
        size_t e = w->spans.v[k].e, piece = e, len;
        uint32_t last = 0;
        for (size_t i = w->spans.v[k].b; i < e; i += len) {
            uint32_t s = script_of(uni_next(t->s + i, &len), kana);
            if (s == 0 || s == last) continue;
            if (last) TRY(tok_spans_push(w, &w->spare, piece, i));
            piece = i;
            last = s;
        }
        if (piece < e) TRY(tok_spans_push(w, &w->spare, piece, e));
    }
    swap_spans(w);
    return LATH_OK;
}

lath_status tok_split_scripts(tok_load *l, const json_value *v, tok_splitter *out)
{
    *out = (tok_splitter){.run = run_scripts};
    return tok_load_fields(l, v, "pre_tokenizer", type_only);
}

/* ----------------------------------------------------------------------------------------------------- fixed length */

static lath_status run_fixed(const tok_splitter *p, tok_work *w, tok_text *t)
{
    size_t most = *(const size_t *)p->param;
    w->spare.n = 0;
    for (size_t k = 0; k < w->spans.n; k++) {
        size_t b = w->spans.v[k].b, e = w->spans.v[k].e, n = 0;
        for (size_t i = b; i < e; i++) {
            if (((uint8_t)t->s[i] & 0xC0) == 0x80) continue;
            if (n == most) {
                TRY(tok_spans_push(w, &w->spare, b, i));
                b = i;
                n = 0;
            }
            n++;
        }
        if (b < e) TRY(tok_spans_push(w, &w->spare, b, e));
    }
    swap_spans(w);
    return LATH_OK;
}

lath_status tok_split_fixed(tok_load *l, const json_value *v, tok_splitter *out)
{
    static const char *const known[] = {"type", "length", NULL};
    int64_t n = 5;
    size_t *most = tok_load_array(l, 1, sizeof(*most));
    if (!most) return err_nomem(l->err, sizeof(*most));
    TRY(tok_load_fields(l, v, "pre_tokenizer", known));
    TRY(json_get_int(v, "length", l->name, 1, INT64_MAX, &n, l->err));
    *most = (size_t)n;
    *out = (tok_splitter){.run = run_fixed, .param = most};
    return LATH_OK;
}
