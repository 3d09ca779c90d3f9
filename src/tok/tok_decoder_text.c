/* SPDX-License-Identifier: Apache-2.0
 * tok_decoder_text.c: decoders that work on the texts of tokens: ByteFallback, Fuse, Strip, CTC and Sequence. */
#include "base/checked.h"
#include "base/unicode.h"
#include "base/utf8.h"
#include "tok/tok_parts.h"

static const char *const type_only[] = {"type", NULL};

/* ---------------------------------------------------------------------------------------------------- byte fallback */

/* A run of k byte tokens becomes its text, or k replacement characters. */
static lath_status close_run(arena *mem, const char *bytes, size_t k, tok_string *v, size_t *n, lath_error *err)
{
    if (k == 0) return LATH_OK;
    if (utf8_first_invalid(bytes, k) < k) {
        for (size_t i = 0; i < k; i++) v[(*n)++] = (tok_string){"\xEF\xBF\xBD", 3};
        return LATH_OK;
    }
    char *s = arena_strdup(mem, bytes, k);
    if (!s) return err_nomem(err, k);
    v[(*n)++] = (tok_string){s, k};
    return LATH_OK;
}

static lath_status run_bytes(const tok_decoder *d, arena *mem, tok_string *v, size_t *n, lath_error *err)
{
    (void)d;
    size_t k = 0, out = 0;
    char *bytes = NULL;
    for (size_t i = 0; i < *n; i++) {
        int b = tok_decoder_byte(v[i]);
        if (b >= 0) {
            if (!bytes) bytes = arena_bytes(mem, *n - i, 1);
            if (!bytes) return err_nomem(err, *n - i);
            bytes[k++] = (char)b;
            continue;
        }
        tok_string token = v[i];
        TRY(close_run(mem, bytes, k, v, &out, err));
        k = 0;
        v[out++] = token;
    }
    TRY(close_run(mem, bytes, k, v, &out, err));
    *n = out;
    return LATH_OK;
}

void tok_decoder_byte_fallback_init(tok_decoder *out)
{
    *out = (tok_decoder){.stream = TOK_STREAM_BYTE_FALLBACK, .run = run_bytes};
}

lath_status tok_decoder_byte_fallback(tok_load *l, const json_value *v, tok_decoder *out)
{
    tok_decoder_byte_fallback_init(out);
    return tok_load_fields(l, v, "decoder", type_only);
}

/* ------------------------------------------------------------------------------------------------------------- fuse */

static lath_status run_fuse(const tok_decoder *d, arena *mem, tok_string *v, size_t *n, lath_error *err)
{
    (void)d;
    size_t total = 0, at = 0;
    if (*n == 1) return LATH_OK;
    for (size_t i = 0; i < *n; i++) {
        if (!size_add(total, v[i].n, &total)) return err_nomem(err, SIZE_MAX);
    }
    char *s = arena_bytes(mem, total + 1, 1);
    if (!s) return err_nomem(err, total);
    for (size_t i = 0; i < *n; i++) {
        memcpy(s + at, v[i].s, v[i].n);
        at += v[i].n;
    }
    if (*n) v[0] = (tok_string){s, total};
    *n = *n > 0;
    return LATH_OK;
}

void tok_decoder_fuse_init(tok_decoder *out) { *out = (tok_decoder){.stream = TOK_STREAM_FUSE, .run = run_fuse}; }

lath_status tok_decoder_fuse(tok_load *l, const json_value *v, tok_decoder *out)
{
    tok_decoder_fuse_init(out);
    return tok_load_fields(l, v, "decoder", type_only);
}

/* ------------------------------------------------------------------------------------------------------------ strip */

static bool begins(tok_string s, tok_string with) { return s.n >= with.n && memcmp(s.s, with.s, with.n) == 0; }

static bool ends(tok_string s, tok_string with)
{
    return s.n >= with.n && memcmp(s.s + s.n - with.n, with.s, with.n) == 0;
}

static lath_status run_strip(const tok_decoder *d, arena *mem, tok_string *v, size_t *n, lath_error *err)
{
    (void)mem;
    (void)err;
    tok_string c = d->strip.content;
    for (size_t i = 0; i < *n; i++) {
        for (size_t k = 0; k < d->strip.start && begins(v[i], c); k++) v[i] = (tok_string){v[i].s + c.n, v[i].n - c.n};
        for (size_t k = 0; k < d->strip.stop && ends(v[i], c); k++) v[i].n -= c.n;
    }
    return LATH_OK;
}

void tok_decoder_strip_init(tok_decoder *out, tok_string content, size_t start, size_t stop)
{
    *out = (tok_decoder){.stream = TOK_STREAM_STRIP, .run = run_strip};
    out->strip.content = content;
    out->strip.start = start;
    out->strip.stop = stop;
}

lath_status tok_decoder_strip(tok_load *l, const json_value *v, tok_decoder *out)
{
    static const char *const known[] = {"type", "content", "start", "stop", NULL};
    tok_string c;
    int64_t start = -1, stop = -1;
    size_t len = 0;
    TRY(tok_load_fields(l, v, "decoder", known));
    TRY(tok_load_string(l, v, "decoder", "content", &c));
    TRY(json_get_int(v, "start", l->name, 0, INT64_MAX, &start, l->err));
    TRY(json_get_int(v, "stop", l->name, 0, INT64_MAX, &stop, l->err));
    if (start < 0 || stop < 0) return TOK_FAIL(l, v, LATH_ERR_FORMAT, "decoder: want \"start\" and \"stop\"");
    if (c.n) uni_next(c.s, &len);
    if (c.n == 0 || len != c.n)
        return TOK_FAIL(l, json_get(v, "content"), LATH_ERR_FORMAT, "decoder: want one character as \"content\"");
    tok_decoder_strip_init(out, c, (size_t)start, (size_t)stop);
    return LATH_OK;
}

/* -------------------------------------------------------------------------------------------------------------- ctc */

typedef struct ctc {
    tok_string pad, delimiter;
    bool cleanup;
} ctc;

static bool same(tok_string a, tok_string b) { return a.n == b.n && memcmp(a.s, b.s, a.n) == 0; }

/* One of several equal tokens stays, without its pad tokens; what is empty then goes. */
static lath_status run_ctc(const tok_decoder *d, arena *mem, tok_string *v, size_t *n, lath_error *err)
{
    static const tok_string nothing = {"", 0}, space = {" ", 1};
    const ctc *c = d->param;
    tok_string before = nothing;
    size_t out = 0;
    for (size_t i = 0; i < *n; i++) {
        tok_string s = v[i];
        if (i && same(s, before)) continue;
        before = s;
        if (c->pad.n) TRY(tok_replace_all(mem, &s, c->pad, nothing, err));
        if (c->cleanup) {
            TRY(tok_decoder_cleanup(mem, &s, err));
            TRY(tok_replace_all(mem, &s, c->delimiter, space, err));
        }
        if (s.n) v[out++] = s;
    }
    *n = out;
    return LATH_OK;
}

lath_status tok_decoder_ctc(tok_load *l, const json_value *v, tok_decoder *out)
{
    static const char *const known[] = {"type", "pad_token", "word_delimiter_token", "cleanup", NULL};
    ctc *c = tok_load_array(l, 1, sizeof(*c));
    if (!c) return err_nomem(l->err, sizeof(*c));
    TRY(tok_load_fields(l, v, "decoder", known));
    TRY(tok_load_string(l, v, "decoder", "pad_token", &c->pad));
    TRY(tok_load_string(l, v, "decoder", "word_delimiter_token", &c->delimiter));
    TRY(tok_load_bool(l, v, "decoder", "cleanup", &c->cleanup));
    *out = (tok_decoder){.stream = TOK_STREAM_PREVIOUS, .run = run_ctc, .param = c};
    return LATH_OK;
}

/* --------------------------------------------------------------------------------------------------------- sequence */

static lath_status run_sequence(const tok_decoder *d, arena *mem, tok_string *v, size_t *n, lath_error *err)
{
    for (size_t i = 0; i < d->n_items; i++) TRY(d->items[i].run(&d->items[i], mem, v, n, err));
    return LATH_OK;
}

void tok_decoder_sequence_init(tok_decoder *out, const tok_decoder *items, size_t n)
{
    *out = (tok_decoder){.stream = TOK_STREAM_SEQUENCE, .run = run_sequence, .items = items, .n_items = n};
}

lath_status tok_decoder_sequence(tok_load *l, const json_value *v, tok_decoder *out)
{
    static const char *const known[] = {"type", "decoders", NULL};
    TRY(tok_load_fields(l, v, "decoder", known));
    const json_value *list = json_get(v, "decoders");
    if (!list || list->kind != JSON_ARRAY) return TOK_FAIL(l, v, LATH_ERR_FORMAT, "decoder: want a list \"decoders\"");
    size_t n = 0, count = list->u.items.count;
    tok_decoder *items = tok_load_array(l, count ? count : 1, sizeof(*items));
    if (!items) return err_nomem(l->err, count * sizeof(*items));
    for (const json_value *m = list->u.items.first; m; m = m->next) TRY(tok_load_decoder(l, m, &items[n++]));
    tok_decoder_sequence_init(out, items, n);
    return LATH_OK;
}
