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
} pipe;

static lath_status emit_added(tok_work *w, const tok_text *t, size_t b, size_t e, const tok_added_token *token)
{
    return tok_emit(w, w->t->alloc, token->id, tok_text_from(t, b), tok_text_to(t, e));
}

/* A piece of normalized text without added tokens: words, then tokens. */
static lath_status encode_plain(tok_work *w, tok_text t)
{
    w->spans.n = 0;
    TRY(tok_spans_push(w, &w->spans, 0, t.n));
    if (w->t->splitter.run) TRY(w->t->splitter.run(&w->t->splitter, w, &t));
    return w->t->model.run(&w->t->model, w, &t);
}

static lath_status on_normalized(tok_work *w, void *ctx, size_t b, size_t e, const tok_added_token *token)
{
    const pipe *p = ctx;
    if (token) return emit_added(w, &p->text, b, e, token);
    return encode_plain(w, tok_text_slice(&p->text, b, e));
}

static lath_status on_raw(tok_work *w, void *ctx, size_t b, size_t e, const tok_added_token *token)
{
    const pipe *p = ctx;
    if (token) return emit_added(w, &p->text, b, e, token);
    pipe inner = {tok_text_slice(&p->text, b, e), p->parse_special};
    TRY(tok_normalize(w->t, w, &inner.text));
    if (inner.text.n == 0) return LATH_OK;
    const tok_added *a = &w->t->added;
    return tok_added_split(a, &a->normalized, inner.text.s, inner.text.n, p->parse_special, on_normalized, w, &inner);
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

static lath_status encode_text(const tok *t, arena *scratch, const char *text, size_t n, bool parse_special,
                               tok_encoding *out, lath_error *err)
{
    tok_work w = {.t = t, .scratch = scratch, .out = out, .err = err};
    pipe p = {{.s = text, .n = n}, parse_special};
    return tok_added_split(&t->added, &t->added.raw, text, n, parse_special, on_raw, &w, &p);
}

/* added: tokens of the template, which a limit must leave room for. */
static lath_status check_input(const char *text, size_t n, const tok_encode_options *opts, size_t added,
                               lath_error *err)
{
    if (opts->max_tokens < 0 || (opts->max_tokens > 0 && (uint64_t)opts->max_tokens < added)) {
        return err_set(err, LATH_ERR_USAGE, "a limit of %lld tokens is less than the %zu of the template",
                       (long long)opts->max_tokens, added);
    }
    if (n > TEXT_MOST) return err_set(err, LATH_ERR_LIMIT, "a text of %zu bytes is over the limit of 1 GiB", n);
    size_t bad = utf8_first_invalid(text, n);
    if (bad < n) return err_set(err, LATH_ERR_INPUT, "byte %zu is not valid UTF-8", bad);
    return LATH_OK;
}

lath_status tok_encode(const tok *t, arena *scratch, const char *text, size_t n, const tok_encode_options *opts,
                       tok_encoding *out, lath_error *err)
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
    TRY(encode_text(t, scratch, text, n, opts->parse_special, out, err));
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
