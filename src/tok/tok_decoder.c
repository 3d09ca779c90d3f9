/* SPDX-License-Identifier: Apache-2.0
 * tok_decoder.c: decoders: from the texts of tokens to text, and tok_decode. The cleanup of the WordPiece decoder is
 * the reference's list of replacements, made on each token by itself.
 */
#include "tok/tok_decode_table.h"

static const struct {
    const char *from, *to;
} cleanups[] = {
    {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},    {" n't", "n't"},
    {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
};

enum { N_CLEANUPS = sizeof(cleanups) / sizeof(cleanups[0]) };

static bool begins_with(tok_string s, size_t at, const char *what)
{
    size_t n = strlen(what);
    return s.n - at >= n && memcmp(s.s + at, what, n) == 0;
}

static bool wants_cleanup(tok_string s)
{
    for (const char *p = s.s; (p = memchr(p, ' ', (size_t)(s.s + s.n - p))); p++) {
        for (int k = 0; k < N_CLEANUPS; k++) {
            if (begins_with(s, (size_t)(p - s.s), cleanups[k].from)) return true;
        }
    }
    return false;
}

lath_status tok_decoder_cleanup(arena *mem, tok_string *s, lath_error *err)
{
    if (!wants_cleanup(*s)) return LATH_OK;
    char *p = arena_strdup(mem, s->s, s->n); /* every replacement makes it shorter or keeps its length: done in place */
    if (!p) return err_nomem(err, s->n);
    tok_string now = {p, s->n};
    for (int k = 0; k < N_CLEANUPS; k++) {
        size_t from = strlen(cleanups[k].from), to = strlen(cleanups[k].to), n = 0;
        for (size_t i = 0; i < now.n;) {
            if (begins_with(now, i, cleanups[k].from)) {
                memcpy(p + n, cleanups[k].to, to);
                n += to;
                i += from;
            } else {
                p[n++] = p[i++];
            }
        }
        now.n = n;
    }
    *s = now;
    return LATH_OK;
}

static lath_status run_wordpiece(const tok_decoder *d, arena *mem, tok_string *v, size_t *n, lath_error *err)
{
    tok_string prefix = d->wordpiece.prefix;
    for (size_t i = 0; i < *n; i++) {
        if (i > 0 && v[i].n >= prefix.n && memcmp(v[i].s, prefix.s, prefix.n) == 0) {
            v[i].s += prefix.n;
            v[i].n -= prefix.n;
        } else if (i > 0) {
            char *s = arena_bytes(mem, v[i].n + 1, 1);
            if (!s) return err_nomem(err, v[i].n + 1);
            s[0] = ' ';
            memcpy(s + 1, v[i].s, v[i].n);
            v[i] = (tok_string){s, v[i].n + 1};
        }
        if (d->wordpiece.cleanup) TRY(tok_decoder_cleanup(mem, &v[i], err));
    }
    return LATH_OK;
}

void tok_decoder_wordpiece_init(tok_decoder *d, tok_string prefix, bool clean)
{
    *d = (tok_decoder){.run = run_wordpiece};
    d->wordpiece.prefix = prefix;
    d->wordpiece.cleanup = clean;
}

lath_status tok_decoder_wordpiece(tok_load *l, const json_value *v, tok_decoder *out)
{
    static const char *const known[] = {"type", "prefix", "cleanup", NULL};
    tok_string prefix;
    bool clean;
    TRY(tok_load_fields(l, v, "decoder", known));
    TRY(tok_load_string(l, v, "decoder", "prefix", &prefix));
    TRY(tok_load_bool(l, v, "decoder", "cleanup", &clean));
    tok_decoder_wordpiece_init(out, prefix, clean);
    return LATH_OK;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* As the reference reads it: two hexadecimal digits, or one behind a plus sign. */
int tok_decoder_byte(tok_string token)
{
    if (token.n != 6 || memcmp(token.s, "<0x", 3) != 0 || token.s[5] != '>') return -1;
    int high = token.s[3] == '+' ? 0 : hex_digit(token.s[3]), low = hex_digit(token.s[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* What stands for an id in decoding: the normalized form of an added token that is matched in normalized text. */
tok_string tok_decoder_text(const tok *t, int32_t id)
{
    tok_string s = {NULL, 0};
    for (size_t i = 0; t->added.patterns_differ && i < t->added.n; i++) {
        if (t->added.v[i].id == id) return t->added.v[i].pattern;
    }
    s.s = tok_vocab_get(&t->vocab, id, &s.n);
    return s;
}

static bool is_special_text(const tok *t, tok_string s)
{
    return s.n && t->added.special_first[(uint8_t)s.s[0]] && map_find(&t->added.special, s.s, s.n, NULL);
}

static lath_status no_token(int32_t id, size_t at, lath_error *err)
{
    return err_set(err, LATH_ERR_INPUT, "id %d (position %zu) is no token", (int)id, at);
}

enum { AHEAD_TEXT = 6, AHEAD_ID = 12 };

/* Vocabularies are larger than caches: asks early for where the text of a token is, then for the text. */
static void look_ahead(const tok_vocab *v, const int32_t *ids, size_t n, size_t i)
{
    if (i + AHEAD_ID >= n) return;
    uint32_t far = (uint32_t)ids[i + AHEAD_ID], near = (uint32_t)ids[i + AHEAD_TEXT];
    if (far < v->n_ids) __builtin_prefetch(&v->by_id[far]);
    if (near < v->n_ids) __builtin_prefetch(v->text.data + v->by_id[near].at);
}

/* Token by token, into out at once. */
static lath_status decode_each(const tok *t, const int32_t *ids, size_t n, bool skip_special, buf *out, lath_error *err)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        look_ahead(&t->vocab, ids, n, i);
        tok_string s = tok_decoder_text(t, ids[i]);
        if (!s.s) return no_token(ids[i], i, err);
        if (skip_special && is_special_text(t, s)) continue;
        t->decoder.put(&t->decoder, s, k++, out);
    }
    return buf_status(out, err);
}

static lath_status gather(const tok *t, const int32_t *ids, size_t n, bool skip_special, tok_string *v, size_t *n_out,
                          lath_error *err)
{
    *n_out = 0;
    for (size_t i = 0; i < n; i++) {
        tok_string s = tok_decoder_text(t, ids[i]);
        if (!s.s) return no_token(ids[i], i, err);
        if (skip_special && is_special_text(t, s)) continue;
        v[(*n_out)++] = s;
    }
    return LATH_OK;
}

lath_status tok_decode(const tok *t, const int32_t *ids, size_t n, bool skip_special, buf *out, lath_error *err)
{
    if (n == 0) return LATH_OK;
    bool done;
    lath_status by_table = tok_decode_table_run(t, ids, n, skip_special, out, &done, err);
    if (done || by_table != LATH_OK) return by_table;
    if (t->decoder.put) return decode_each(t, ids, n, skip_special, out, err);
    lath_status st = LATH_OK;
    arena mem;
    arena_init(&mem, t->alloc);
    tok_string *v = arena_array(&mem, n, sizeof(*v));
    if (!v) {
        st = err_nomem(err, n * sizeof(*v));
        goto done;
    }
    TRY_DONE(gather(t, ids, n, skip_special, v, &n, err));
    if (t->decoder.run) TRY_DONE(t->decoder.run(&t->decoder, &mem, v, &n, err));
    for (size_t i = 0; i < n; i++) {
        if (i && !t->decoder.run) buf_char(out, ' ');
        buf_append(out, v[i].s, v[i].n);
    }
    st = buf_status(out, err);
done:
    arena_deinit(&mem);
    return st;
}
