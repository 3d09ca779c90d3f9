/* SPDX-License-Identifier: Apache-2.0
 * tok_precompiled.c: the Precompiled normalizer: SentencePiece's character map as the reference applies it. A grapheme
 * cluster of under 6 bytes that begins with an entry becomes what the shortest such entry says, all of it; in other
 * clusters each character by itself. Sums of changes (tok_change.h) are the reference's too: characters that vanish
 * count for the last one written, and at the beginning of the text for nobody.
 */
#include "base/unicode_text.h"
#include "tok/tok_change.h"
#include "tok/tok_charsmap.h"

enum { WHOLE_MOST = 5 };

/* Changes wait, one at a time: what follows may add to it. */
typedef struct writer {
    tok_change k;
    const tok_charsmap *m;
    bool modified; /* before that the output is the input, and nothing has been written */
    bool waits;
    char last[4]; /* the character that waits */
    size_t n_last;
    long change;
} writer;

static lath_status flush(writer *o)
{
    if (!o->waits) return LATH_OK;
    o->waits = false;
    return tok_change_put_bytes(&o->k, o->last, o->n_last, o->change);
}

static lath_status put(writer *o, const char *s, size_t len, long change)
{
    TRY(flush(o));
    memcpy(o->last, s, len);
    o->n_last = len;
    o->change = change;
    o->waits = true;
    return LATH_OK;
}

/* The input before byte i is as it was. */
static lath_status begin(writer *o, tok_work *w, const tok_text *t, size_t i)
{
    o->modified = true;
    TRY(tok_change_begin(&o->k, w, t, t->n + t->n / 8));
    if (i == 0) return LATH_OK;
    size_t last = i - 1;
    while (((uint8_t)t->s[last] & 0xC0) == 0x80) last--;
    TRY(tok_change_copy(&o->k, last));
    return put(o, t->s + last, i - last, 0);
}

static size_t count_chars(const char *s, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) k += ((uint8_t)s[i] & 0xC0) != 0x80;
    return k;
}

/* What stood for `old` characters becomes s[0..n). */
static lath_status replace(writer *o, size_t old, const char *s, size_t n)
{
    size_t fresh = count_chars(s, n), len;
    for (size_t i = 0, c = 0; i < n; i += len, c++) {
        uni_next(s + i, &len);
        TRY(put(o, s + i, len, fresh > old && c >= old ? 1 : 0));
    }
    if (fresh < old && o->waits) o->change += (long)fresh - (long)old;
    return LATH_OK;
}

/* The characters of [i, e), each by itself. */
static lath_status put_chars(writer *o, tok_work *w, const tok_text *t, size_t i, size_t e)
{
    for (size_t len, used, n; i < e; i += len) {
        uint32_t c = uni_next(t->s + i, &len);
        const char *to = tok_charsmap_may(o->m, c) ? tok_charsmap_find(o->m, t->s + i, len, false, &used, &n) : NULL;
        if (to) {
            if (!o->modified) TRY(begin(o, w, t, i));
            TRY(replace(o, 1, to, n));
        } else if (o->modified) {
            TRY(put(o, t->s + i, len, 0));
        }
    }
    return LATH_OK;
}

/* How many bytes from i on are ASCII characters that stay, each a cluster of its own. */
static size_t plain_ascii(const tok_charsmap *m, const tok_text *t, size_t i)
{
    size_t b = i;
    while (i + 1 < t->n && (uint8_t)t->s[i] < 0x80 && (uint8_t)t->s[i + 1] < 0x80 &&
           !tok_charsmap_may(m, (uint8_t)t->s[i]) && t->s[i] != '\r')
        i++;
    return i - b;
}

static lath_status copy_plain(writer *o, const tok_text *t, size_t i, size_t n)
{
    if (!o->modified || n == 0) return LATH_OK;
    if (n < 8 || o->k.i + (o->waits ? tok_change_next(&o->k, o->k.i) - o->k.i : 0) != i) {
        for (size_t j = 0; j < n; j++) TRY(put(o, t->s + i + j, 1, 0));
        return LATH_OK;
    }
    TRY(flush(o));
    if (o->k.i == i) {
        TRY(tok_change_copy(&o->k, n - 1));
        return put(o, t->s + i + n - 1, 1, 0);
    }
    for (size_t j = 0; j < n; j++) TRY(put(o, t->s + i + j, 1, 0));
    return LATH_OK;
}

static lath_status run(const tok_normalizer *norm, tok_work *w, tok_text *t)
{
    writer o = {.m = norm->param};
    for (size_t i = 0, e; i < t->n; i = e) {
        size_t plain = plain_ascii(o.m, t, i), len;
        TRY(copy_plain(&o, t, i, plain));
        i += plain;
        uint32_t c = uni_next(t->s + i, &len);
        bool may = tok_charsmap_may(o.m, c);
        e = i + len;
        if (e < t->n) e = uni_cluster_end(t->s, t->n, i);
        if (!may && e == i + len) { /* nothing begins with it */
            if (o.modified) TRY(put(&o, t->s + i, len, 0));
            continue;
        }
        size_t used, n;
        const char *to = e - i <= WHOLE_MOST ? tok_charsmap_find(o.m, t->s + i, e - i, false, &used, &n) : NULL;
        if (!to) {
            TRY(put_chars(&o, w, t, i, e));
            continue;
        }
        if (!o.modified) TRY(begin(&o, w, t, i));
        TRY(replace(&o, count_chars(t->s + i, e - i), to, n));
    }
    if (!o.modified) return LATH_OK;
    TRY(flush(&o));
    *t = tok_change_text(&o.k);
    return LATH_OK;
}

void tok_precompiled_init(tok_normalizer *n, const tok_charsmap *m) { *n = (tok_normalizer){.run = run, .param = m}; }

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* RFC 4648 with padding; decoded is as long as *n says afterwards. */
static bool decode_base64(const char *s, size_t len, char *out, size_t *n)
{
    *n = 0;
    if (len % 4 != 0) return false;
    for (size_t i = 0; i < len; i += 4) {
        size_t pad = i + 4 < len ? 0 : (s[i + 3] == '=') + (size_t)(s[i + 3] == '=' && s[i + 2] == '=');
        uint32_t v = 0;
        for (size_t k = 0; k < 4; k++) {
            int d = k < 4 - pad ? base64_digit(s[i + k]) : 0;
            if (d < 0) return false;
            v = v << 6 | (uint32_t)d;
        }
        if (v & ((1u << 8 * pad) - 1)) return false;
        for (size_t k = 0; k < 3 - pad; k++) out[(*n)++] = (char)(v >> (16 - 8 * k));
    }
    return true;
}

lath_status tok_norm_precompiled(tok_load *l, const json_value *v, tok_normalizer *out)
{
    static const char *const known[] = {"type", "precompiled_charsmap", NULL};
    TRY(tok_load_fields(l, v, "normalizer", known));
    const json_value *text = json_get(v, "precompiled_charsmap");
    if (!text || text->kind != JSON_STRING)
        return TOK_FAIL(l, text ? text : v, LATH_ERR_FORMAT, "normalizer: want a string \"precompiled_charsmap\"");
    size_t len = text->u.string.len, n;
    char *bytes = alloc_bytes(l->t->alloc, len + 1, 16);
    if (!bytes) return err_nomem(l->err, len);
    tok_charsmap *m = NULL;
    lath_status st;
    if (decode_base64(text->u.string.data, len, bytes, &n))
        st = tok_charsmap_load(l, text, bytes, n, &m);
    else
        st = TOK_FAIL(l, text, LATH_ERR_FORMAT, "normalizer: \"precompiled_charsmap\" is not base64");
    alloc_release(l->t->alloc, bytes, len + 1);
    if (st == LATH_OK) tok_precompiled_init(out, m);
    return st;
}
