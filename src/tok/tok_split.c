/* SPDX-License-Identifier: Apache-2.0
 * tok_split.c: pre-tokenizers: splitting normalized text into words. A splitter reads the spans that there are and
 * leaves finer ones; empty spans never arise. Bytes are looked up in a table of classes; only characters outside
 * ASCII are decoded.
 */
#include "tok/tok_parts.h"

#include "base/unicode.h"

/* What a character is to a splitter. */
enum { INSIDE, SPACE, ALONE, OTHER, NOT_ASCII };

static uint8_t bert_class(uint32_t flags) { return flags & UNI_SPACE ? SPACE : flags & UNI_PUNCT ? ALONE : INSIDE; }
static uint8_t space_class(uint32_t flags) { return flags & UNI_SPACE ? SPACE : INSIDE; }
static uint8_t punct_class(uint32_t flags) { return flags & UNI_PUNCT ? ALONE : INSIDE; }
static uint8_t word_class(uint32_t flags) { return flags & UNI_SPACE ? SPACE : flags & UNI_WORD ? INSIDE : OTHER; }

typedef uint8_t (*class_fn)(uint32_t flags);

static void fill_classes(tok_splitter *p, class_fn f)
{
    for (uint32_t c = 0; c < 256; c++) p->ascii[c] = c < 0x80 ? f(uni_flags(c)) : NOT_ASCII;
}

/* Class of the character at s, whose length goes to *len. Each splitter has its own, so that the call is inlined. */
static inline uint8_t class_at(const tok_splitter *p, class_fn f, const char *s, size_t *len)
{
    uint8_t k = p->ascii[(uint8_t)*s];
    *len = 1;
    return k == NOT_ASCII ? f(uni_flags(uni_next(s, len))) : k;
}

static void swap_spans(tok_work *w)
{
    tok_spans s = w->spans;
    w->spans = w->spare;
    w->spare = s;
}

lath_status tok_spans_grow(tok_work *w, tok_spans *s)
{
    size_t cap = s->cap ? s->cap * 2 : 256;
    tok_span *v = arena_bytes(w->scratch, cap * sizeof(*v), 16);
    if (!v) return err_nomem(w->err, cap * sizeof(*v));
    if (s->n) memcpy(v, s->v, s->n * sizeof(*v));
    s->v = v;
    s->cap = cap;
    return LATH_OK;
}

/* White space is removed, what is ALONE is a word of its own. */
static inline lath_status split_words(const tok_splitter *p, class_fn f, tok_work *w, const tok_text *t)
{
    w->spare.n = 0;
    for (size_t k = 0; k < w->spans.n; k++) {
        size_t i = w->spans.v[k].b, end = w->spans.v[k].e, word = i, len;
        while (i < end) {
            uint8_t class = class_at(p, f, t->s + i, &len);
            if (class != INSIDE) {
                if (word < i) TRY(tok_spans_push(w, &w->spare, word, i));
                if (class == ALONE) TRY(tok_spans_push(w, &w->spare, i, i + len));
                word = i + len;
            }
            i += len;
        }
        if (word < end) TRY(tok_spans_push(w, &w->spare, word, end));
    }
    swap_spans(w);
    return LATH_OK;
}

static lath_status run_bert(const tok_splitter *p, tok_work *w, tok_text *t)
{
    return split_words(p, bert_class, w, t);
}
static lath_status run_space(const tok_splitter *p, tok_work *w, tok_text *t)
{
    return split_words(p, space_class, w, t);
}
static lath_status run_punct_isolated(const tok_splitter *p, tok_work *w, tok_text *t)
{
    return split_words(p, punct_class, w, t);
}

/* Runs of \w and runs of what is neither \w nor white space. */
static lath_status run_whitespace(const tok_splitter *p, tok_work *w, tok_text *t)
{
    w->spare.n = 0;
    for (size_t k = 0; k < w->spans.n; k++) {
        size_t i = w->spans.v[k].b, end = w->spans.v[k].e, run = i, len;
        uint8_t kind = SPACE;
        for (; i < end; i += len) {
            uint8_t class = class_at(p, word_class, t->s + i, &len);
            if (class == kind) continue;
            if (kind != SPACE) TRY(tok_spans_push(w, &w->spare, run, i));
            run = i;
            kind = class;
        }
        if (kind != SPACE) TRY(tok_spans_push(w, &w->spare, run, end));
    }
    swap_spans(w);
    return LATH_OK;
}

/* One piece of a span that is covered by matches and the text between them, in order. */
typedef struct piece {
    size_t b, e;
    bool match;
} piece;

/* Puts pieces together as the behaviour says; emits a piece when it is known to be complete. For PREVIOUS a match
 * joins what is before it unless that is a match too; for NEXT, read from the right, the mirror image; for CONTIGUOUS
 * neighbours of one kind join. */
static lath_status join_pieces(tok_split_kind behavior, tok_work *w, const piece *v, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t k = i;
        bool joins = i + 1 < n && v[i].match != v[i + 1].match;
        if (behavior == TOK_SPLIT_PREVIOUS || behavior == TOK_SPLIT_NEXT) {
            if (joins && v[i].match == (behavior == TOK_SPLIT_NEXT)) k = i + 1;
        } else if (behavior == TOK_SPLIT_CONTIGUOUS) {
            while (k + 1 < n && v[k + 1].match == v[i].match) k++;
        }
        if (behavior != TOK_SPLIT_REMOVED || !v[i].match) TRY(tok_spans_push(w, &w->spare, v[i].b, v[k].e));
        i = k + 1;
    }
    return LATH_OK;
}

/* Punctuation with a behaviour other than isolated. */
static lath_status run_punct(const tok_splitter *p, tok_work *w, tok_text *t)
{
    w->spare.n = 0;
    for (size_t k = 0; k < w->spans.n; k++) {
        size_t b = w->spans.v[k].b, end = w->spans.v[k].e, len, n = 0;
        piece *v = arena_bytes(w->scratch, (end - b) * sizeof(*v), 16);
        if (!v) return err_nomem(w->err, (end - b) * sizeof(*v));
        for (size_t i = b; i < end; i += len) {
            bool match = class_at(p, punct_class, t->s + i, &len) == ALONE;
            if (!match && n && !v[n - 1].match)
                v[n - 1].e = i + len;
            else
                v[n++] = (piece){i, i + len, match};
        }
        TRY(join_pieces(p->behavior, w, v, n));
    }
    swap_spans(w);
    return LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------------- loading */

static const char *const type_only[] = {"type", NULL};

void tok_split_bert_init(tok_splitter *p)
{
    *p = (tok_splitter){.run = run_bert};
    fill_classes(p, bert_class);
}

lath_status tok_split_bert(tok_load *l, const json_value *v, tok_splitter *out)
{
    tok_split_bert_init(out);
    return tok_load_fields(l, v, "pre_tokenizer", type_only);
}

lath_status tok_split_whitespace_split(tok_load *l, const json_value *v, tok_splitter *out)
{
    *out = (tok_splitter){.run = run_space};
    fill_classes(out, space_class);
    return tok_load_fields(l, v, "pre_tokenizer", type_only);
}

lath_status tok_split_whitespace(tok_load *l, const json_value *v, tok_splitter *out)
{
    *out = (tok_splitter){.run = run_whitespace};
    fill_classes(out, word_class);
    return tok_load_fields(l, v, "pre_tokenizer", type_only);
}

static lath_status load_behavior(tok_load *l, const json_value *v, tok_split_kind *out)
{
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
    const json_value *m = json_get(v, "behavior");
    *out = TOK_SPLIT_ISOLATED;
    if (!m) return LATH_OK;
    for (int i = 0; i < 5; i++) {
        if (!json_is_string(m, names[i])) continue;
        *out = (tok_split_kind)i;
        return LATH_OK;
    }
    return TOK_FAIL(l, m, LATH_ERR_UNSUPPORTED, "pre_tokenizer: this \"behavior\" is not supported");
}

lath_status tok_split_punctuation(tok_load *l, const json_value *v, tok_splitter *out)
{
    static const char *const known[] = {"type", "behavior", NULL};
    TRY(tok_load_fields(l, v, "pre_tokenizer", known));
    *out = (tok_splitter){.run = run_punct};
    fill_classes(out, punct_class);
    TRY(load_behavior(l, v, &out->behavior));
    if (out->behavior == TOK_SPLIT_ISOLATED) out->run = run_punct_isolated;
    return LATH_OK;
}

static lath_status run_sequence(const tok_splitter *p, tok_work *w, tok_text *t)
{
    for (size_t i = 0; i < p->n_items; i++) TRY(p->items[i].run(&p->items[i], w, t));
    return LATH_OK;
}

lath_status tok_split_sequence(tok_load *l, const json_value *v, tok_splitter *out)
{
    static const char *const known[] = {"type", "pretokenizers", NULL};
    TRY(tok_load_fields(l, v, "pre_tokenizer", known));
    const json_value *list = json_get(v, "pretokenizers");
    if (!list || list->kind != JSON_ARRAY)
        return TOK_FAIL(l, v, LATH_ERR_FORMAT, "pre_tokenizer: want a list \"pretokenizers\"");
    tok_splitter *items = tok_load_array(l, list->u.items.count, sizeof(*items));
    if (!items) return err_nomem(l->err, list->u.items.count * sizeof(*items));
    size_t n = 0;
    for (const json_value *m = list->u.items.first; m; m = m->next) TRY(tok_load_splitter(l, m, &items[n++]));
    *out = (tok_splitter){.run = run_sequence, .items = items, .n_items = n};
    return LATH_OK;
}
