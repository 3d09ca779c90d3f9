/* SPDX-License-Identifier: Apache-2.0
 * tok_encode.c: a text through the pipeline (tok_parts.h) into an encoding, and the template around it. Tokens are
 * emitted in their final place: the template's first tokens are reserved before, so that an encoding is written once.
 */
#include "tok/tok_parts.h"

#include "base/checked.h"
#include "base/utf8.h"

enum { TEXT_MOST = 1 << 30 }; /* bytes of one text: offsets are 32 bits, and normalized text may be longer */

tok_text tok_text_slice(const tok_text *t, size_t b, size_t e)
{
    return (tok_text){t->s + b, e - b, t->from ? t->from + b : NULL, t->to ? t->to + b : NULL, t->base + (uint32_t)b};
}

/* The three arrays have one capacity. When one of them cannot grow, all keep their old size as far as callers can
 * see. */
lath_status tok_encoding_grow(const lath_allocator *alloc, tok_encoding *e, size_t more, lath_error *err)
{
    size_t cap, old = e->capacity;
    if (!size_add(e->n, more, &cap)) return err_nomem(err, SIZE_MAX);
    if (cap < old * 2) cap = old * 2;
    if (cap < 64) cap = 64;
    int32_t *ids = alloc_array(alloc, cap, sizeof(*ids)), *types = alloc_array(alloc, cap, sizeof(*types));
    uint32_t *offsets = alloc_array(alloc, cap, 2 * sizeof(*offsets));
    if (!ids || !types || !offsets) {
        alloc_release(alloc, ids, cap * sizeof(*ids));
        alloc_release(alloc, types, cap * sizeof(*types));
        alloc_release(alloc, offsets, cap * 2 * sizeof(*offsets));
        return err_nomem(err, cap * 16);
    }
    if (e->n) {
        memcpy(ids, e->ids, e->n * sizeof(*ids));
        memcpy(types, e->type_ids, e->n * sizeof(*types));
        memcpy(offsets, e->offsets, e->n * 2 * sizeof(*offsets));
    }
    alloc_release(alloc, e->ids, old * sizeof(*ids));
    alloc_release(alloc, e->type_ids, old * sizeof(*types));
    alloc_release(alloc, e->offsets, old * 2 * sizeof(*offsets));
    *e = (tok_encoding){ids, types, offsets, e->n, e->n_untruncated, cap};
    return LATH_OK;
}

void tok_encoding_release(const tok *t, tok_encoding *e)
{
    alloc_release(t->alloc, e->ids, e->capacity * sizeof(*e->ids));
    alloc_release(t->alloc, e->type_ids, e->capacity * sizeof(*e->type_ids));
    alloc_release(t->alloc, e->offsets, e->capacity * 2 * sizeof(*e->offsets));
    *e = (tok_encoding){0};
}

/* --------------------------------------------------------------------------------------------------------------- the
 * text */

typedef struct pipe {
    tok_text text; /* raw for the first split, normalized for the second */
    bool parse_special;
    bool cut_forged; /* see tok_encode_text */
} pipe;

static lath_status emit_added(tok_work *w, const tok_text *t, size_t b, size_t e, const tok_added_token *token)
{
    TRY(tok_emit(w, w->t->alloc, token->id, tok_text_from(t, b), tok_text_to(t, e)));
    tok_trim_mark(w, t->s + b, e - b, true);
    return LATH_OK;
}

/* A piece of normalized text without added tokens: words, then tokens. */
static lath_status encode_plain(tok_work *w, tok_text t)
{
    w->spans.n = 0;
    TRY(tok_spans_push(w, &w->spans, 0, t.n));
    w->pair = 2;
    if (w->t->splitter.run) TRY(w->t->splitter.run(&w->t->splitter, w, &t));
    return w->t->model.run(&w->t->model, w, &t);
}

/* The same with a cut behind the first character of every spelling of a special token that the model knows: it never sees
 * one in a piece. */
static lath_status encode_cut(tok_work *w, tok_text t)
{
    const tok_trie *trie = &w->t->added.forged;
    size_t done = 0;
    for (size_t i = tok_trie_next(trie, t.s, 0, t.n); i < t.n; i = tok_trie_next(trie, t.s, i, t.n)) {
        int32_t index;
        size_t len = tok_trie_longest(trie, t.s + i, t.n - i, &index);
        for (i++; i < t.n && ((uint8_t)t.s[i] & 0xC0) == 0x80;) i++;
        if (len == 0 || i == t.n) continue;
        TRY(encode_plain(w, tok_text_slice(&t, done, i)));
        done = i;
    }
    return done < t.n ? encode_plain(w, tok_text_slice(&t, done, t.n)) : LATH_OK;
}

static lath_status on_normalized(tok_work *w, void *ctx, size_t b, size_t e, const tok_added_token *token)
{
    const pipe *p = ctx;
    if (token) return emit_added(w, &p->text, b, e, token);
    tok_text t = tok_text_slice(&p->text, b, e);
    return p->cut_forged ? encode_cut(w, t) : encode_plain(w, t);
}

static lath_status on_raw(tok_work *w, void *ctx, size_t b, size_t e, const tok_added_token *token)
{
    const pipe *p = ctx;
    if (token) return emit_added(w, &p->text, b, e, token);
    pipe inner = {tok_text_slice(&p->text, b, e), p->parse_special, p->cut_forged};
    w->pair = 0;
    TRY(tok_normalize(w->t, w, &inner.text));
    if (inner.text.n == 0) return LATH_OK;
    const tok_added *a = &w->t->added;
    return tok_added_split(a, &a->normalized, &inner.text, p->parse_special, on_normalized, w, &inner);
}

/* ----------------------------------------------------------------------------------------------------------- the
 * template */

static const tok_piece only_text = {.sequence = 'A'};

/* Writes the pieces around (and copies of) the n tokens that stand at `at` in e. e has room for all. */
static void put_template(tok_encoding *e, const tok_piece *v, size_t n_pieces, size_t at, size_t n, bool tokens,
                         bool types)
{
    size_t k = 0;
    for (size_t i = 0; i < n_pieces; i++) {
        const tok_piece *p = &v[i];
        if (p->sequence) {
            if (k != at) {
                memmove(e->ids + k, e->ids + at, n * sizeof(*e->ids));
                memmove(e->offsets + 2 * k, e->offsets + 2 * at, 2 * n * sizeof(*e->offsets));
            }
            for (size_t j = 0; j < n; j++) e->type_ids[k + j] = types ? p->type_id : 0;
            k += n;
        } else if (tokens) {
            for (size_t j = 0; j < p->n_ids; j++, k++) {
                e->ids[k] = p->ids[j];
                e->type_ids[k] = p->type_id;
                e->offsets[2 * k] = e->offsets[2 * k + 1] = 0;
            }
        }
    }
    e->n = k;
}

/* Tokens before the first text of the template: the text is emitted behind them. */
static size_t lead_of(const tok_piece *v, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n && !v[i].sequence; i++) k += v[i].n_ids;
    return k;
}

static size_t texts_of(const tok_piece *v, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) k += v[i].sequence != 0;
    return k;
}

static bool has_forged(const tok_added *a, const tok_encoding *e, size_t from)
{
    for (size_t i = from; i < e->n; i++) {
        if (a->is_forged[e->ids[i] / 64] >> e->ids[i] % 64 & 1) return true;
    }
    return false;
}

/* Special tokens of one character cannot be cut: unknown. */
static void replace_forged(const tok *t, tok_encoding *e, size_t from)
{
    size_t n = from;
    for (size_t i = from; i < e->n; i++) {
        bool forged = t->added.is_forged[e->ids[i] / 64] >> e->ids[i] % 64 & 1;
        if (forged && t->unk < 0) continue;
        e->ids[n] = forged ? t->unk : e->ids[i];
        e->offsets[2 * n] = e->offsets[2 * i];
        e->offsets[2 * n + 1] = e->offsets[2 * i + 1];
        n++;
    }
    e->n = n;
}

/* Where text is plain in the midst of other text: the same for the tokens of a character that lie in it. */
static void replace_plain(const tok_work *w, tok_encoding *e, size_t from)
{
    size_t n = from;
    for (size_t i = from; i < e->n; i++) {
        const size_t b = e->offsets[2 * i], to = e->offsets[2 * i + 1];
        const bool forged =
            w->t->added.is_forged[e->ids[i] / 64] >> e->ids[i] % 64 & 1 && to - b <= 4 && tok_plain_in(w, b, to) == b;
        if (forged && w->t->unk < 0) continue;
        e->ids[n] = forged ? w->t->unk : e->ids[i];
        e->offsets[2 * n] = e->offsets[2 * i];
        e->offsets[2 * n + 1] = e->offsets[2 * i + 1];
        n++;
    }
    e->n = n;
}

/* Without special tokens parsed, a model that has them among its own (Unigram) may still come to their ids. The reference
 * leaves it at that; here such a text is encoded again, with those spellings cut. */
lath_status tok_encode_text(const tok *t, arena *scratch, const char *text, size_t n, tok_special special,
                            tok_encoding *out, lath_error *err)
{
    tok_work w = {
        .t = t, .scratch = scratch, .plain = special.plain, .n_plain = special.n_plain, .out = out, .err = err};
    const bool guarded = special.parse && special.n_plain && t->added.n_forged;
    pipe p = {{.s = text, .n = n}, special.parse, guarded};
    size_t from = out->n;
    if (t->template.trim && out->capacity > from)
        memset(out->type_ids + from, 0, (out->capacity - from) * sizeof(*out->type_ids)); /* no marks yet */
    TRY(tok_added_split(&t->added, &t->added.raw, &p.text, special.parse, on_raw, &w, &p));
    if (guarded) replace_plain(&w, out, from);
    if (!special.parse && t->added.n_forged && has_forged(&t->added, out, from)) {
        out->n = from;
        p.cut_forged = true;
        TRY(tok_added_split(&t->added, &t->added.raw, &p.text, false, on_raw, &w, &p));
        replace_forged(t, out, from);
    }
    return LATH_OK;
}

lath_status tok_check_text(const char *text, size_t n, lath_error *err)
{
    if (n > TEXT_MOST) return err_set(err, LATH_ERR_LIMIT, "a text of %zu bytes is over the limit of 1 GiB", n);
    size_t bad = utf8_first_invalid(text, n);
    if (bad < n) return err_set(err, LATH_ERR_INPUT, "byte %zu is not valid UTF-8", bad);
    return LATH_OK;
}

/* added: tokens of the template, which a limit must leave room for. */
static lath_status check_input(const char *text, size_t n, const tok_encode_options *opts, size_t added,
                               lath_error *err)
{
    if (opts->max_tokens < 0 || (opts->max_tokens > 0 && (uint64_t)opts->max_tokens < added)) {
        return err_set(err, LATH_ERR_USAGE, "a limit of %lld tokens is less than the %zu of the template",
                       (long long)opts->max_tokens, added);
    }
    return tok_check_text(text, n, err);
}

static lath_status encode(const tok *t, arena *scratch, const char *text, size_t n, const tok_encode_options *opts,
                          tok_special special, tok_encoding *out, lath_error *err)
{
    const tok_piece *pieces = t->template.single ? t->template.single : &only_text;
    size_t n_pieces = t->template.single ? t->template.n_single : 1;
    size_t added = opts->add_special ? t->template.n_added : 0,
           lead = opts->add_special ? lead_of(pieces, n_pieces) : 0;
    size_t texts = texts_of(pieces, n_pieces);
    out->n = out->n_untruncated = 0;
    TRY(check_input(text, n, opts, added, err));

    if (lead > out->capacity) TRY(tok_encoding_grow(t->alloc, out, lead, err));
    out->n = lead;
    TRY(tok_encode_text(t, scratch, text, n, special, out, err));
    if (t->template.trim && out->n > lead) tok_trim_offsets(t, text, out, lead, out->offsets + 2 * lead, out->n - lead);
    size_t n_text = out->n - lead, keep = n_text;
    if (opts->max_tokens > 0 && n_text + added > (size_t)opts->max_tokens) keep = (size_t)opts->max_tokens - added;
    if (texts > 1) keep = keep < n_text ? keep / texts : n_text;
    size_t total = added + keep * texts;
    out->n = lead + n_text;
    if (total > out->capacity) TRY(tok_encoding_grow(t->alloc, out, total - (total < out->n ? total : out->n), err));
    put_template(out, pieces, n_pieces, lead, keep, opts->add_special, opts->add_special || t->template.types_always);
    out->n_untruncated = added + n_text * texts;
    return LATH_OK;
}

lath_status tok_encode(const tok *t, arena *scratch, const char *text, size_t n, const tok_encode_options *opts,
                       tok_encoding *out, lath_error *err)
{
    return encode(t, scratch, text, n, opts, (tok_special){.parse = opts->parse_special}, out, err);
}

lath_status tok_encode_guarded(const tok *t, arena *scratch, const char *text, size_t n, const tok_range *plain,
                               size_t n_plain, tok_encoding *out, lath_error *err)
{
    const tok_encode_options o = {.parse_special = true};
    return encode(t, scratch, text, n, &o, (tok_special){true, plain, n_plain}, out, err);
}
