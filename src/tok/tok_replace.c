/* SPDX-License-Identifier: Apache-2.0
 * tok_replace.c: Replace, as normalizer and as decoder: every match of a string or of a regular expression becomes a
 * text, whose characters all have the origin of the last one matched. "x{2,}", two or more of an ASCII character,
 * which most files have, and trimming spaces are searches of their own.
 */
#include "base/buf.h"
#include "base/unicode.h"
#include "tok/tok_change.h"
#include "tok/tok_regex.h"

typedef struct replacer {
    const tok_regex *regex; /* NULL: see run */
    bool run;               /* two or more of the character `what` */
    bool trim;              /* spaces at the beginning and at the end; else the string `what` */
    tok_string what;        /* empty: matches between all characters */
    tok_string with;
} replacer;

typedef struct finder {
    const replacer *r;
    const char *s;
    size_t n, at; /* where the next search begins */
    size_t b, e;  /* the match */
    bool found;
    tok_regex_find regex;
} finder;

/* Between characters, at the beginning and at the end. */
static bool next_empty(finder *f)
{
    if (f->n == 0 || f->at > f->n) return false;
    f->b = f->e = f->at;
    size_t len = 1;
    if (f->at < f->n) uni_next(f->s + f->at, &len);
    f->at += len;
    return true;
}

static bool next_run(finder *f)
{
    char c = f->r->what.s[0];
    while (f->at < f->n) {
        const char *p = memchr(f->s + f->at, c, f->n - f->at);
        if (!p) break;
        f->b = (size_t)(p - f->s);
        for (f->e = f->b + 1; f->e < f->n && f->s[f->e] == c;) f->e++;
        f->at = f->e;
        if (f->e - f->b > 1) return true;
    }
    return false;
}

static bool next_trim(finder *f)
{
    if (f->at == f->n) return false;
    if (f->at == 0 && f->s[0] == ' ') {
        for (f->b = f->e = 0; f->e < f->n && f->s[f->e] == ' ';) f->e++;
        f->at = f->e;
        return true;
    }
    for (f->b = f->e = f->n; f->b > f->at && f->s[f->b - 1] == ' ';) f->b--;
    f->at = f->n;
    return f->b < f->e;
}

static bool next_string(finder *f)
{
    const char *p = f->at < f->n ? memmem(f->s + f->at, f->n - f->at, f->r->what.s, f->r->what.n) : NULL;
    if (!p) return false;
    f->b = (size_t)(p - f->s);
    f->at = f->e = f->b + f->r->what.n;
    return true;
}

static lath_status next_match(finder *f, lath_error *err)
{
    if (f->r->regex) {
        TRY(tok_regex_next(&f->regex, &f->found, err));
        f->b = f->regex.b;
        f->e = f->regex.e;
    } else if (f->r->run || f->r->trim) {
        f->found = f->r->run ? next_run(f) : next_trim(f);
    } else {
        f->found = f->r->what.n ? next_string(f) : next_empty(f);
    }
    return LATH_OK;
}

/* Finds the first match. */
static lath_status begin(finder *f, const replacer *r, const char *s, size_t n, lath_error *err)
{
    *f = (finder){.r = r, .s = s, .n = n};
    if (n == 0) return LATH_OK; /* nothing matches in an empty text */
    if (r->regex) TRY(tok_regex_begin(&f->regex, r->regex, s, n, err));
    return next_match(f, err);
}

static void end(finder *f)
{
    if (f->r->regex && f->n) tok_regex_end(&f->regex);
}

/* -------------------------------------------------------------------------------------------------------- normalizer */

static bool is_one_char(const char *s, size_t n)
{
    size_t len;
    if (n == 0) return false;
    uni_next(s, &len);
    return len == n;
}

static lath_status put_match(tok_change *k, const replacer *r, size_t b, size_t e)
{
    if (is_one_char(r->with.s, r->with.n) && is_one_char(k->t->s + b, e - b))
        return tok_change_put_bytes(k, r->with.s, r->with.n, 0);
    tok_change_skip(k, e);
    for (size_t i = 0, len; i < r->with.n; i += len) {
        uni_next(r->with.s + i, &len);
        TRY(tok_change_put_bytes(k, r->with.s + i, len, 1));
    }
    return LATH_OK;
}

static lath_status replace_text(finder *f, tok_work *w, tok_text *t)
{
    tok_change k;
    TRY(tok_change_begin(&k, w, t, t->n + t->n / 4));
    while (f->found) {
        TRY(tok_change_copy(&k, f->b - k.i));
        TRY(put_match(&k, f->r, f->b, f->e));
        TRY(next_match(f, w->err));
    }
    TRY(tok_change_copy(&k, t->n - k.i));
    *t = tok_change_text(&k);
    return LATH_OK;
}

static lath_status run(const tok_normalizer *norm, tok_work *w, tok_text *t)
{
    finder f;
    lath_status st = begin(&f, norm->param, t->s, t->n, w->err);
    if (st == LATH_OK && f.found) st = replace_text(&f, w, t);
    end(&f);
    return st;
}

/* ---------------------------------------------------------------------------------------------------------- decoder */

static lath_status replace_token(finder *f, arena *mem, tok_string *v, lath_error *err)
{
    buf out;
    size_t copied = 0;
    buf_init(&out, mem->alloc, (size_t)1 << 30);
    lath_status st = LATH_OK;
    while (f->found) {
        buf_append(&out, v->s + copied, f->b - copied);
        buf_append(&out, f->r->with.s, f->r->with.n);
        copied = f->e;
        TRY_DONE(next_match(f, err));
    }
    buf_append(&out, v->s + copied, v->n - copied);
    TRY_DONE(buf_status(&out, err));
    char *to = arena_strdup(mem, out.data ? out.data : "", out.len);
    if (to)
        *v = (tok_string){to, out.len};
    else
        st = err_nomem(err, out.len);
done:
    buf_deinit(&out);
    return st;
}

static lath_status decode_one(const replacer *r, arena *mem, tok_string *v, lath_error *err)
{
    finder f;
    lath_status st = begin(&f, r, v->s, v->n, err);
    if (st == LATH_OK && f.found) st = replace_token(&f, mem, v, err);
    end(&f);
    return st;
}

lath_status tok_replace_all(arena *mem, tok_string *s, tok_string what, tok_string with, lath_error *err)
{
    const replacer r = {.what = what, .with = with};
    return decode_one(&r, mem, s, err);
}

static lath_status decode(const tok_decoder *d, arena *mem, tok_string *v, size_t *n, lath_error *err)
{
    for (size_t i = 0; i < *n; i++) TRY(decode_one(d->param, mem, &v[i], err));
    return LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------------- loading */

/* As a search from every place it takes the square of the spaces. */
static const char trim_pattern[] = "\\A +| +\\z";

/* "x{2,}" where x stands for itself. */
static bool is_run(tok_string p)
{
    return p.n == 5 && memcmp(p.s + 1, "{2,}", 4) == 0 && (uint8_t)p.s[0] < 0x80 && !strchr("\\^$.|?*+()[]{}", p.s[0]);
}

static lath_status load_pattern(tok_load *l, const json_value *v, const char *what, replacer *r)
{
    const json_value *pattern = json_get(v, "pattern");
    if (!pattern || pattern->kind != JSON_OBJECT || pattern->u.items.count != 1)
        return TOK_FAIL(l, pattern ? pattern : v, LATH_ERR_FORMAT, "%s: want \"pattern\": one String or Regex", what);
    if (json_get(pattern, "String")) return tok_load_string(l, pattern, what, "String", &r->what);
    if (!json_get(pattern, "Regex"))
        return TOK_FAIL(l, pattern, LATH_ERR_FORMAT, "%s: want \"pattern\": one String or Regex", what);
    TRY(tok_load_string(l, pattern, what, "Regex", &r->what));
    r->run = is_run(r->what);
    r->trim = strcmp(r->what.s, trim_pattern) == 0;
    return r->run || r->trim ? LATH_OK : tok_regex_load(l, pattern, what, r->what, &r->regex);
}

static lath_status load(tok_load *l, const json_value *v, const char *what, replacer **out)
{
    static const char *const known[] = {"type", "pattern", "content", NULL};
    replacer *r = tok_load_array(l, 1, sizeof(*r));
    if (!r) return err_nomem(l->err, sizeof(*r));
    TRY(tok_load_fields(l, v, what, known));
    TRY(load_pattern(l, v, what, r));
    *out = r;
    return tok_load_string(l, v, what, "content", &r->with);
}

lath_status tok_norm_replace(tok_load *l, const json_value *v, tok_normalizer *out)
{
    replacer *r = NULL;
    TRY(load(l, v, "normalizer", &r));
    *out = (tok_normalizer){.run = run, .param = r};
    return LATH_OK;
}

bool tok_decoder_is_replace(const tok_decoder *d) { return d->run == decode; }

bool tok_norm_replaces(const tok_normalizer *n, tok_string *what, tok_string *with)
{
    const replacer *r = n->param;
    if (n->run != run || r->regex || r->run || r->trim) return false;
    *what = r->what;
    *with = r->with;
    return true;
}

lath_status tok_decoder_replace(tok_load *l, const json_value *v, tok_decoder *out)
{
    replacer *r = NULL;
    TRY(load(l, v, "decoder", &r));
    *out = (tok_decoder){.stream = TOK_STREAM_EACH, .run = decode, .param = r};
    return LATH_OK;
}
