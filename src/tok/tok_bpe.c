/* SPDX-License-Identifier: Apache-2.0
 * tok_bpe.c: words to tokens. A word that the cache knows is done; else its symbols are merged, in units where it may
 * be cut (tok_bpe_seam.c).
 *
 * Lengths and not places of symbols are kept, as in the reference: a character that has no token and no stand-in is
 * gone, and those behind it move up.
 */
#include "tok/tok_bpe.h"
#include "base/unicode.h"
#include "base/utf8.h"
#include "tok/tok_bytelevel.h"

enum {
    BLOCK = 512,
    UNITS = 64,
    AHEAD = 8 /* a power of two */,
    WHOLE_MOST = 256 /* bytes of a token as written, on the stack */
};

/* One call of the model. Short words are on the stack, long ones in scratch. */
typedef struct job {
    const tok_bpe *m;
    tok_work *w;
    const tok_text *t;
    tok_encoding *out;
    int32_t *sym;  /* [cap] */
    uint32_t *len; /* [cap] bytes of the text */
    size_t cap;
    tok_merge_space space;
} job;

/* ------------------------------------------------------------------------------------------------------------ emitting */

static lath_status make_room(job *j, size_t more)
{
    tok_encoding *e = j->out;
    return e->capacity - e->n < more ? tok_encoding_grow(j->m->alloc, e, more, j->w->err) : LATH_OK;
}

/* There is room. The token covers the bytes [b, e) of the text; its offsets those of all characters that it has part
 * in. */
static inline void emit(job *j, int32_t id, size_t b, size_t e)
{
    const tok_text *t = j->t;
    tok_encoding *out = j->out;
    out->ids[out->n] = id;
    out->offsets[2 * out->n] = tok_text_from(t, b);
    out->offsets[2 * out->n + 1] = tok_text_to(t, e);
    out->n++;
}

static inline void emit_rounded(job *j, int32_t id, size_t b, size_t e)
{
    const tok_text *t = j->t;
    if (e > t->n) e = t->n; /* a suffix that fell back to bytes may count more than there are */
    if (b >= e) b = e ? e - 1 : 0;
    while (b > 0 && ((uint8_t)t->s[b] & 0xC0) == 0x80) b--;
    while (e < t->n && ((uint8_t)t->s[e] & 0xC0) == 0x80) e++;
    emit(j, id, b, e);
}

static lath_status emit_parts(job *j, const tok_cached *c, size_t b)
{
    TRY(make_room(j, TOK_CACHE_MOST));
    for (uint32_t k = 0; k < c->n; k++) {
        emit_rounded(j, c->id[k], b, b + c->len[k]);
        b += c->len[k];
    }
    return LATH_OK;
}

static inline lath_status emit_cached(job *j, const tok_cached *c, size_t b, size_t e)
{
    if (c->n != 1 || c->len[0] != e - b) return emit_parts(j, c, b); /* characters without a token may be missing */
    TRY(make_room(j, 1));
    emit(j, c->id[0], b, e);
    return LATH_OK;
}

static lath_status emit_symbols(job *j, size_t n, size_t b)
{
    TRY(make_room(j, n));
    for (size_t k = 0; k < n; k++) {
        emit_rounded(j, j->sym[k], b, b + j->len[k]);
        b += j->len[k];
    }
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------- symbols */

static lath_status reserve(job *j, size_t n)
{
    if (n <= j->cap) return LATH_OK;
    size_t cap = n * 2;
    int32_t *sym = arena_bytes(j->w->scratch, cap * sizeof(*sym), 16);
    uint32_t *len = arena_bytes(j->w->scratch, cap * sizeof(*len), 16);
    if (!sym || !len) return err_nomem(j->w->err, cap * 8);
    j->sym = sym;
    j->len = len;
    j->cap = cap;
    return LATH_OK;
}

/* An unknown token that waits: a second one may join it. */
typedef struct unknown {
    bool some;
    uint32_t len;
} unknown;

static void put(job *j, size_t *n, int32_t sym, uint32_t len)
{
    j->sym[*n] = sym;
    j->len[(*n)++] = len;
}

static void put_unknown(job *j, size_t *n, unknown *u)
{
    if (u->some) put(j, n, j->m->unk, u->len);
    *u = (unknown){false, 0};
}

/* The character has no symbol: its bytes, or the unknown token, or nothing. text is the character as it is looked up,
 * with prefix and suffix. A waiting unknown token stays behind byte tokens: so it is in the reference. */
static lath_status put_fallback(job *j, size_t *n, const char *text, size_t n_text, uint32_t len, unknown *u)
{
    const tok_bpe *m = j->m;
    bool all = m->byte_fallback;
    for (size_t k = 0; k < n_text && all; k++) all = m->fallback[(uint8_t)text[k]] >= 0;
    if (all) {
        for (size_t k = 0; k < n_text; k++) put(j, n, m->fallback[(uint8_t)text[k]], 1);
        return LATH_OK;
    }
    if (m->unk == TOK_BPE_UNK_MISSING)
        return err_set(j->w->err, LATH_ERR_FORMAT, "the tokenizer's unk_token is not in its vocabulary");
    if (m->unk < 0) return LATH_OK;
    if (u->some && !m->fuse_unk) put_unknown(j, n, u);
    *u = (unknown){true, u->len + len};
    return LATH_OK;
}

static int32_t symbol_of(const tok_bpe *m, const char *s, size_t len)
{
    if (len == 1) return m->ascii[(uint8_t)*s];
    return tok_vocab_find(m->vocab, s, len);
}

/* Symbols of the characters [b, e), each with what stands before and behind it. */
static lath_status affixed_symbols(job *j, size_t b, size_t e, size_t *n)
{
    const tok_bpe *m = j->m;
    const char *s = j->t->s;
    unknown u = {false, 0};
    size_t chars = 0;
    char text[2 * TOK_AFFIX_MOST + 4];
    for (size_t i = b; i < e; i++) chars += ((uint8_t)s[i] & 0xC0) != 0x80;
    TRY(reserve(j, m->byte_fallback ? e - b + chars * m->prefix.n + m->suffix.n : chars));
    for (size_t i = b, len; i < e; i += len) {
        size_t k = 0;
        uni_next(s + i, &len);
        if (i > b && m->prefix.n) memcpy(text, m->prefix.s, m->prefix.n);
        if (i > b) k = m->prefix.n;
        memcpy(text + k, s + i, len);
        k += len;
        if (i + len == e && m->suffix.n) {
            memcpy(text + k, m->suffix.s, m->suffix.n);
            k += m->suffix.n;
        }
        int32_t id = tok_vocab_find(m->vocab, text, k);
        if (id < 0) {
            TRY(put_fallback(j, n, text, k, (uint32_t)len, &u));
        } else {
            put_unknown(j, n, &u);
            put(j, n, id, (uint32_t)len);
        }
    }
    put_unknown(j, n, &u);
    return LATH_OK;
}

static lath_status make_symbols(job *j, size_t b, size_t e, size_t *n)
{
    const tok_bpe *m = j->m;
    const char *s = j->t->s;
    unknown u = {false, 0};
    *n = 0;
    if (m->prefix.n || m->suffix.n) return affixed_symbols(j, b, e, n);
    TRY(reserve(j, e - b));
    if (m->bytes) {
        for (size_t i = b; i < e; i++) put(j, n, m->ascii[(uint8_t)s[i]], 1);
        return LATH_OK;
    }
    for (size_t i = b, len; i < e; i += len) {
        uni_next(s + i, &len);
        int32_t id = symbol_of(m, s + i, len);
        if (id < 0) {
            TRY(put_fallback(j, n, s + i, len, (uint32_t)len, &u));
        } else {
            put_unknown(j, n, &u);
            put(j, n, id, (uint32_t)len);
        }
    }
    put_unknown(j, n, &u);
    return LATH_OK;
}

/* --------------------------------------------------------------------------------------------------------------- words */

/* The id of the whole word; -1: the vocabulary does not have it. */
static lath_status whole_word(job *j, size_t b, size_t n, int32_t *id)
{
    const tok_bpe *m = j->m;
    const char *s = j->t->s + b;
    char small[WHOLE_MOST], *text = small;
    size_t k = 0;
    *id = -1;
    if (n > m->vocab->max_len) return LATH_OK;
    if (!m->bytes) {
        *id = tok_vocab_find(m->vocab, s, n);
        return LATH_OK;
    }
    if (2 * n > sizeof(small)) text = arena_bytes(j->w->scratch, 2 * n, 1);
    if (!text) return err_nomem(j->w->err, 2 * n);
    for (size_t i = 0; i < n; i++) k += utf8_encode(tok_byte_to_char((uint8_t)s[i]), text + k);
    *id = tok_vocab_find(m->vocab, text, k);
    return LATH_OK;
}

/* Merges the unit [b, e) and emits it; key: not NULL: keeps it in the cache. */
static lath_status encode_unit(job *j, size_t b, size_t e, const tok_cache_key *key)
{
    size_t n = 0;
    TRY(make_symbols(j, b, e, &n));
    if (n == 0) return LATH_OK;
    if (n <= TOK_BPE_SHORT)
        n = tok_bpe_merge_short(&j->m->merges, j->m->bytes ? j->t->s + b : NULL, j->sym, j->len, n);
    else
        TRY(tok_bpe_merge_long(&j->m->merges, &j->space, j->w->scratch, j->sym, j->len, &n, j->w->err));
    if (key) tok_bpe_cache_put(j->m->cache, key, j->sym, j->len, n);
    return emit_symbols(j, n, b);
}

/* Whether the word is looked up as it is. Long words in other scripts than Latin seldom come again, their units do; and
 * where words are not words but whole texts, only units are worth keeping. */
static inline bool is_kept(const tok_bpe *m, const char *s, size_t n)
{
    if (m->seams && !m->bytes) return false;
    if (n <= TOK_CACHE_SMALL) return true;
    return n <= TOK_CACHE_LARGE && !(m->seams && ((uint8_t)s[0] | (uint8_t)s[1]) >= 0x80);
}

static lath_status new_word(job *j, size_t b, size_t e, const tok_cache_key *key);

/* Words, or units of words, in the text's bytes from `base` on. Keys are made some words ahead of their use, so that what
 * the cache reads has come from memory by then. */
static lath_status run_spans(job *j, size_t base, const tok_span *v, size_t n, bool units)
{
    tok_cache_key keys[AHEAD];
    const tok_text *t = j->t;
    bool marked = units && j->m->ignore_merges; /* a unit is not looked up whole: it may come out otherwise */
    for (size_t k = 0, made = 0; k < n; k++) {
        for (; made < n && made < k + AHEAD; made++) {
            size_t b = base + v[made].b, len = v[made].e - v[made].b;
            tok_cache_key *key = &keys[made % AHEAD];
            key->n_words = 0;
            if (!(units ? len <= TOK_CACHE_LARGE : is_kept(j->m, t->s + b, len))) continue;
            tok_bpe_cache_key(t->s + b, len, t->n - b, marked, key);
            tok_bpe_cache_prefetch(j->m->cache, key);
        }
        const tok_cache_key *key = &keys[k % AHEAD];
        tok_cached hit;
        size_t b = base + v[k].b, e = base + v[k].e;
        if (key->n_words && tok_bpe_cache_find(j->m->cache, key, &hit)) {
            TRY(emit_cached(j, &hit, b, e));
            continue;
        }
        if (key->n_words == 0) key = NULL;
        TRY(units ? encode_unit(j, b, e, key) : new_word(j, b, e, key));
    }
    return LATH_OK;
}

static lath_status cut_word(job *j, size_t b, size_t e)
{
    tok_span block[UNITS];
    for (size_t i = b; i < e;) {
        size_t n = 0;
        for (; n < UNITS && i < e; n++) {
            size_t end = tok_seams_next(j->m, j->t->s, i, e);
            block[n] = (tok_span){(uint32_t)i, (uint32_t)end};
            i = end;
        }
        TRY(run_spans(j, 0, block, n, true));
    }
    return LATH_OK;
}

/* A word that the cache does not know. */
static lath_status new_word(job *j, size_t b, size_t e, const tok_cache_key *key)
{
    const tok_bpe *m = j->m;
    if (m->ignore_merges) {
        int32_t id;
        TRY(whole_word(j, b, e - b, &id));
        if (id >= 0) {
            uint32_t len = (uint32_t)(e - b);
            if (key) tok_bpe_cache_put(m->cache, key, &id, &len, 1);
            TRY(make_room(j, 1));
            emit(j, id, b, e);
            return LATH_OK;
        }
    }
    if (m->seams && !key) return cut_word(j, b, e);
    return encode_unit(j, b, e, key);
}

static lath_status run_pattern(job *j, size_t b, size_t e)
{
    tok_span block[BLOCK];
    const char *s = j->t->s + b;
    for (size_t at = 0; at < e - b;) {
        size_t n = j->m->pattern->split(s, e - b, &at, block, BLOCK);
        TRY(run_spans(j, b, block, n, false));
    }
    return LATH_OK;
}

lath_status tok_bpe_run(const tok_model *model, tok_work *w, const tok_text *t)
{
    int32_t sym[TOK_BPE_SHORT];
    uint32_t len[TOK_BPE_SHORT];
    job j = {.m = model->param, .w = w, .t = t, .out = w->out, .sym = sym, .len = len, .cap = TOK_BPE_SHORT};
    if (!j.m->pattern) return run_spans(&j, 0, w->spans.v, w->spans.n, false);
    for (size_t k = 0; k < w->spans.n; k++) TRY(run_pattern(&j, w->spans.v[k].b, w->spans.v[k].e));
    return LATH_OK;
}
