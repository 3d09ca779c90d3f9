/* SPDX-License-Identifier: Apache-2.0
 * tok_wordpiece.c: the WordPiece model: each word is cut greedily into the longest vocabulary entries, those after
 * the first written with a prefix ("##"); a word that cannot be cut whole, or is too long, is one unknown token (Wu
 * et al. 2016, as in the reference).
 *
 * Most words are entries. For the rest the hashes of all prefixes of what is left are made in one pass, and tried
 * from the longest, nearly all being rejected by the vocabulary's filter.
 */
#include "tok/tok_parts.h"

static size_t count_chars(const char *s, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) k += ((uint8_t)s[i] & 0xC0) != 0x80;
    return k;
}

static lath_status reserve_hashes(tok_work *w, size_t n)
{
    if (n <= w->cap_hashes) return LATH_OK;
    size_t cap = n < 256 ? 256 : n * 2;
    w->hashes = arena_bytes(w->scratch, cap * sizeof(*w->hashes), 16);
    if (!w->hashes) return err_nomem(w->err, cap * sizeof(*w->hashes));
    w->cap_hashes = cap;
    return LATH_OK;
}

/* The longest entry that prefix + s[0..n) begins with and that is longer than the prefix; its bytes of s, 0 when
 * there is none. */
static size_t longest_entry(const tok_vocab *v, uint64_t h, const char *prefix, size_t prefix_len, const char *s,
                            size_t n, uint64_t *hashes, int32_t *id)
{
    if (prefix_len >= v->max_len) return 0;
    if (n > v->max_len - prefix_len) n = v->max_len - prefix_len;
    for (size_t i = 0; i < n; i++) {
        h = tok_hash_step(h, (uint8_t)s[i]);
        hashes[i] = h;
    }
    for (size_t len = n; len > 0; len--) {
        if (!tok_vocab_maybe(v, hashes[len - 1])) continue;
        *id = tok_vocab_look(v, hashes[len - 1], prefix, prefix_len, s, len);
        if (*id >= 0) return len;
    }
    return 0;
}

/* Emits the word [b, e) of t, which is no entry as a whole. */
static lath_status cut_word(const tok_model *m, tok_work *w, const tok_text *t, const tok_vocab *v,
                            const lath_allocator *alloc, size_t b, size_t e)
{
    size_t n = e - b, first = w->out->n;
    TRY(reserve_hashes(w, n < v->max_len ? n : v->max_len));
    const char *prefix = "";
    size_t prefix_len = 0;
    uint64_t h = TOK_HASH_START;
    bool known = n <= m->wordpiece.max_chars || count_chars(t->s + b, n) <= m->wordpiece.max_chars;
    for (size_t i = b; known && i < e;) {
        int32_t id = -1;
        size_t len = longest_entry(v, h, prefix, prefix_len, t->s + i, e - i, w->hashes, &id);
        known = len > 0;
        if (known) TRY(tok_emit(w, alloc, id, tok_text_from(t, i), tok_text_to(t, i + len)));
        i += len;
        prefix = m->wordpiece.prefix;
        prefix_len = m->wordpiece.prefix_len;
        h = m->wordpiece.prefix_hash;
    }
    if (known) return LATH_OK;
    w->out->n = first; /* takes back what was emitted */
    return tok_emit(w, alloc, m->wordpiece.unk, tok_text_from(t, b), tok_text_to(t, e));
}

static lath_status run(const tok_model *m, tok_work *w, const tok_text *t)
{
    const tok_vocab *v = &w->t->vocab;
    const lath_allocator *alloc = w->t->alloc;
    for (size_t k = 0; k < w->spans.n; k++) {
        size_t b = w->spans.v[k].b, e = w->spans.v[k].e, n = e - b;
        if (n <= v->max_len && n <= m->wordpiece.max_chars) {
            uint64_t h = TOK_HASH_START;
            for (size_t i = b; i < e; i++) h = tok_hash_step(h, (uint8_t)t->s[i]);
            int32_t id = tok_vocab_look(v, h, "", 0, t->s + b, n);
            if (id >= 0) {
                TRY(tok_emit(w, alloc, id, tok_text_from(t, b), tok_text_to(t, e)));
                continue;
            }
        }
        TRY(cut_word(m, w, t, v, alloc, b, e));
    }
    return LATH_OK;
}

lath_status tok_wordpiece_init(tok_load *l, const json_value *at, tok_string unk, tok_string prefix, size_t max_chars,
                               tok_model *out)
{
    *out = (tok_model){.run = run};
    out->wordpiece.unk = tok_vocab_find(&l->t->vocab, unk.s, unk.n);
    if (out->wordpiece.unk < 0)
        return TOK_FAIL(l, at, LATH_ERR_FORMAT, "model: unk_token \"%.80s\" is not in the vocabulary", unk.s);
    out->wordpiece.prefix = prefix.s;
    out->wordpiece.prefix_len = prefix.n;
    out->wordpiece.prefix_hash = TOK_HASH_START;
    for (size_t i = 0; i < prefix.n; i++)
        out->wordpiece.prefix_hash = tok_hash_step(out->wordpiece.prefix_hash, (uint8_t)prefix.s[i]);
    out->wordpiece.max_chars = max_chars;
    return LATH_OK;
}

lath_status tok_wordpiece(tok_load *l, const json_value *v, tok_model *out)
{
    static const char *const known[] = {"type",  "unk_token", "continuing_subword_prefix", "max_input_chars_per_word",
                                        "vocab", NULL};
    tok_string unk, prefix;
    int64_t most = -1;
    TRY(tok_load_fields(l, v, "model", known));
    TRY(tok_load_string(l, v, "model", "unk_token", &unk));
    TRY(tok_load_string(l, v, "model", "continuing_subword_prefix", &prefix));
    TRY(json_get_int(v, "max_input_chars_per_word", l->name, 0, INT64_MAX, &most, l->err));
    if (most < 0) return TOK_FAIL(l, v, LATH_ERR_FORMAT, "model: \"max_input_chars_per_word\" is missing");
    return tok_wordpiece_init(l, v, unk, prefix, (size_t)most, out);
}
