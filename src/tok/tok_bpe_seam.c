/* SPDX-License-Identifier: Apache-2.0
 * tok_bpe_seam.c: cutting words into units before merging. Between two characters that no token has side by side no
 * merge can ever join, so the units on both sides are encoded by themselves: text without spaces (Chinese), and models
 * whose word is the whole text (Gemma), come to short units that the cache knows.
 *
 * Byte-level tokens may begin or end inside a character. What such a token joins is marked for all characters that
 * share the bytes.
 */
#include "base/unicode.h"
#include "base/utf8.h"
#include "tok/tok_bpe.h"
#include "tok/tok_bytelevel.h"

enum { MARK = 0x2581, BMP = 0x10000 };

static uint64_t pair_hash(uint32_t a, uint32_t b) { return ((uint64_t)a << 21 | b) * 0x9E3779B97F4A7C15u >> 32; }

static void set_bit(uint64_t *v, uint64_t i) { v[i >> 6] |= (uint64_t)1 << (i & 63); }
static bool has_bit(const uint64_t *v, uint64_t i) { return v[i >> 6] >> (i & 63) & 1; }

/* ----------------------------------------------------------------------------------------------------------- building */

static bool is_continuation(char c) { return ((uint8_t)c & 0xC0) == 0x80; }

static size_t length_of(uint8_t lead) { return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4; }

/* The whole character that ends at s[i]; 0 bytes: only a part of one does. */
static size_t whole_before(const char *s, size_t i, uint32_t *c)
{
    size_t j = i - 1, len;
    while (j > 0 && i - j < 4 && is_continuation(s[j])) j--;
    if (is_continuation(s[j]) || length_of((uint8_t)s[j]) != i - j) return 0;
    *c = uni_next(s + j, &len);
    return len;
}

static size_t whole_behind(const char *s, size_t n, size_t i, uint32_t *c)
{
    size_t len = length_of((uint8_t)s[i]);
    if (len > n - i) return 0;
    for (size_t k = 1; k < len; k++) {
        if (!is_continuation(s[i + k])) return 0;
    }
    *c = uni_next(s + i, &len);
    return len;
}

static void add_pair(tok_seams *x, bool space_is_mark, uint32_t a, uint32_t b)
{
    if ((a | b) >= 128) set_bit(x->pairs, pair_hash(a, b) & x->mask);
    uint32_t low_a = space_is_mark && a == MARK ? ' ' : a, low_b = space_is_mark && b == MARK ? ' ' : b;
    if (low_a < 128 && low_b < 128) x->ascii[low_a][low_b >> 3] |= (uint8_t)(1 << (low_b & 7));
}

/* Marks what the token s[0..n) joins. */
static void add_token(tok_seams *x, const tok_bpe *m, const char *s, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        uint32_t a = 0, b = 0;
        if (is_continuation(s[i])) continue;
        bool left = whole_before(s, i, &a) != 0, right = whole_behind(s, n, i, &b) != 0;
        if (left && right) {
            add_pair(x, m->space_is_mark, a, b);
        } else if (left) {
            if (a < BMP) set_bit(x->behind, a);
        } else if (right) {
            if (b < BMP) set_bit(x->before, b);
        } else {
            uint8_t last = (uint8_t)s[i - 1], first = (uint8_t)s[i];
            x->bytes[last * 32u + (first >> 3)] |= (uint8_t)(1 << (first & 7));
        }
    }
}

static bool is_fallback(const tok_bpe *m, int32_t low, int32_t high, uint64_t id)
{
    if (id < (uint64_t)low || id > (uint64_t)high) return false;
    for (int k = 0; k < 256; k++) {
        if (m->fallback[k] == (int32_t)id) return true;
    }
    return false;
}

static bool merges_fallback(const tok_bpe *m, const tok_merge_table *t)
{
    unsigned bits = m->merges.sym_bits, rank_bits = 64 - 2 * bits;
    int32_t low = INT32_MAX, high = 0;
    for (int k = 0; k < 256; k++) {
        if (m->fallback[k] < low) low = m->fallback[k];
        if (m->fallback[k] > high) high = m->fallback[k];
    }
    for (size_t i = 0; i < t->n_lines * 8; i++) {
        if (t->slots[i] == UINT64_MAX) continue;
        uint64_t key = t->slots[i] >> rank_bits, right = key & (((uint64_t)1 << bits) - 1);
        if (is_fallback(m, low, high, key >> bits) || is_fallback(m, low, high, right)) return true;
    }
    return false;
}

/* Every character has symbols, and those of byte fallback are never merged. */
static bool may_cut(const tok_bpe *m)
{
    if (m->prefix.n || m->suffix.n) return false;
    if (m->bytes) return true;
    if (!m->byte_fallback) return false;
    for (int k = 0; k < 256; k++) {
        if (m->fallback[k] < 0) return false;
    }
    return !merges_fallback(m, &m->merges.hot) && !merges_fallback(m, &m->merges.rest);
}

static lath_status make_tables(tok_load *l, size_t n_tokens, tok_seams **out)
{
    size_t bits = 1 << 16; /* a bit a merge: there are fewer pairs than that, and the filter stays near */
    while (bits < n_tokens) bits *= 2;
    tok_seams *x = tok_load_array(l, 1, sizeof(*x));
    if (!x) return err_nomem(l->err, sizeof(*x));
    x->mask = bits - 1;
    x->pairs = tok_load_array(l, bits / 64, sizeof(*x->pairs));
    x->behind = tok_load_array(l, BMP / 64, sizeof(*x->behind));
    x->before = tok_load_array(l, BMP / 64, sizeof(*x->before));
    x->odd = tok_load_array(l, BMP / 64, sizeof(*x->odd));
    x->bytes = tok_load_array(l, 256, 32);
    if (!x->pairs || !x->behind || !x->before || !x->odd || !x->bytes) return err_nomem(l->err, bits / 8);
    *out = x;
    return LATH_OK;
}

static void mark_odd(tok_seams *x)
{
    bool last[256] = {false}, first[256] = {false};
    for (int a = 0; a < 256; a++) {
        for (int b = 0; b < 256; b++) {
            if (x->bytes[a * 32 + (b >> 3)] >> (b & 7) & 1) last[a] = first[b] = true;
        }
    }
    for (uint32_t c = 0; c < BMP; c++) {
        char bytes[4] = {0};
        size_t n = c >= 0xD800 && c <= 0xDFFF ? 0 : utf8_encode(c, bytes);
        bool odd = has_bit(x->behind, c) || has_bit(x->before, c);
        if (n) odd = odd || last[(uint8_t)bytes[n - 1]] || first[(uint8_t)bytes[0]];
        if (odd) set_bit(x->odd, c);
    }
}

lath_status tok_seams_build(tok_load *l, tok_bpe *m)
{
    if (!may_cut(m)) return LATH_OK;
    lath_status st = LATH_OK;
    tok_seams *x = NULL;
    TRY(make_tables(l, m->merges.n, &x));
    char *raw = alloc_bytes(m->alloc, m->vocab->max_len + 1, 1);
    if (!raw) return err_nomem(l->err, m->vocab->max_len);
    int32_t before = -1;
    for (size_t i = 0; i < m->merges.n; i++) {
        size_t n;
        const char *s = tok_vocab_get(m->vocab, m->merges.products[i], &n);
        if (!s || m->merges.products[i] == before) continue; /* all ways to make a token often come together */
        before = m->merges.products[i];
        if (m->bytes) {
            size_t k = tok_bytelevel_bytes(s, n, raw);
            if (k == SIZE_MAX) continue;
            s = raw;
            n = k;
        }
        add_token(x, m, s, n);
    }
    mark_odd(x);
    m->seams = x;
    alloc_release(m->alloc, raw, m->vocab->max_len + 1);
    return st;
}

/* ------------------------------------------------------------------------------------------------------------- asking */

/* One of the characters is odd. */
static bool cuts_odd(const tok_seams *x, uint32_t a, uint32_t b, char last, char first)
{
    if (has_bit(x->behind, a) || has_bit(x->before, b)) return false;
    return !(x->bytes[(uint8_t)last * 32u + ((uint8_t)first >> 3)] >> ((uint8_t)first & 7) & 1);
}

static inline bool cuts(const tok_bpe *m, uint32_t a, uint32_t b, char last, char first)
{
    const tok_seams *x = m->seams;
    if (m->space_is_mark) {
        if (a == ' ') a = MARK;
        if (b == ' ') b = MARK;
    }
    if ((a | b) >= BMP || has_bit(x->pairs, pair_hash(a, b) & x->mask)) return false;
    return !(has_bit(x->odd, a) || has_bit(x->odd, b)) || cuts_odd(x, a, b, last, first);
}

size_t tok_seams_next(const tok_bpe *m, const char *s, size_t b, size_t e)
{
    const tok_seams *x = m->seams;
    size_t len;
    uint32_t a = uni_next(s + b, &len);
    for (size_t i = b + len; i < e; i += len) {
        uint32_t c = uni_next(s + i, &len);
        bool cut = (a | c) < 128 ? !(x->ascii[a][c >> 3] >> (c & 7) & 1) : cuts(m, a, c, s[i - 1], s[i]);
        if (cut) return i;
        a = c;
    }
    return e;
}
