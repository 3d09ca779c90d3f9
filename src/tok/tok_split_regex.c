/* SPDX-License-Identifier: Apache-2.0
 * tok_split_regex.c: the Split pre-tokenizer: a string or a pattern says where to split, a behaviour what becomes of
 * the matches. Patterns that are known as programs (tok_patterns.h) run as such.
 */
#include "tok/tok_split_regex.h"

typedef struct splitter {
    const tok_regex *regex; /* NULL where the pattern is known */
    const tok_pattern *known;
    bool invert; /* what lies between the matches is the match */
} splitter;

enum { BLOCK = 256 };

/* ---------------------------------------------------------------------------------------------------- the behaviours */

/* Matches and the text between them come in order; words go to w->spare. */
typedef struct joiner {
    tok_work *w;
    tok_split_kind behavior;
    bool open, match; /* a word is being put together; the part that it ended with was a match */
    size_t b, e;
} joiner;

static lath_status flush(joiner *j)
{
    bool some = j->open && j->b < j->e;
    j->open = false;
    return some ? tok_spans_push(j->w, &j->w->spare, j->b, j->e) : LATH_OK;
}

static lath_status put(joiner *j, size_t b, size_t e, bool match)
{
    bool joins = false;
    switch (j->behavior) {
    case TOK_SPLIT_REMOVED:
        if (match || b == e) return LATH_OK;
        return tok_spans_push(j->w, &j->w->spare, b, e);
    case TOK_SPLIT_ISOLATED: return b == e ? LATH_OK : tok_spans_push(j->w, &j->w->spare, b, e);
    case TOK_SPLIT_PREVIOUS: joins = match && j->open && !j->match; break;
    case TOK_SPLIT_NEXT: joins = !match && j->open && j->match; break;
    case TOK_SPLIT_CONTIGUOUS: joins = j->open && j->match == match; break;
    }
    if (joins) {
        j->e = e;
    } else {
        TRY(flush(j));
        j->open = true;
        j->b = b;
        j->e = e;
    }
    j->match = match;
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------- search */

static lath_status split_by_regex(const splitter *x, joiner *j, const tok_text *t, size_t b, size_t e)
{
    tok_regex_find f;
    bool found = false;
    size_t done = 0;
    lath_status st = tok_regex_begin(&f, x->regex, t->s + b, e - b, j->w->err);
    if (st != LATH_OK) goto done;
    for (;;) {
        TRY_DONE(tok_regex_next(&f, &found, j->w->err));
        if (!found) break;
        if (done < f.b) TRY_DONE(put(j, b + done, b + f.b, x->invert));
        TRY_DONE(put(j, b + f.b, b + f.e, !x->invert));
        done = f.e;
    }
    if (done < e - b) TRY_DONE(put(j, b + done, e, x->invert));
    st = flush(j);
done:
    tok_regex_end(&f);
    return st;
}

static lath_status split_by_program(const splitter *x, joiner *j, const tok_text *t, size_t b, size_t e)
{
    tok_span block[BLOCK];
    for (size_t at = 0; at < e - b;) {
        size_t n = x->known->split(t->s + b, e - b, &at, block, BLOCK);
        for (size_t k = 0; k < n; k++) TRY(put(j, b + block[k].b, b + block[k].e, !x->invert));
    }
    return flush(j);
}

static lath_status run(const tok_splitter *p, tok_work *w, tok_text *t)
{
    const splitter *x = p->param;
    joiner j = {.w = w, .behavior = p->behavior};
    w->spare.n = 0;
    for (size_t k = 0; k < w->spans.n; k++) {
        size_t b = w->spans.v[k].b, e = w->spans.v[k].e;
        TRY(x->known ? split_by_program(x, &j, t, b, e) : split_by_regex(x, &j, t, b, e));
    }
    tok_spans s = w->spans;
    w->spans = w->spare;
    w->spare = s;
    return LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------------- loading */

const tok_pattern *tok_split_regex_isolates(const tok_splitter *p)
{
    if (p->run != run) return NULL;
    const splitter *x = p->param;
    bool all = x->invert ? p->behavior == TOK_SPLIT_REMOVED : p->behavior == TOK_SPLIT_ISOLATED;
    return all ? x->known : NULL;
}

bool tok_split_regex_at_space(const tok_splitter *p)
{
    const splitter *x = p->param;
    if (p->run != run || x->invert || !x->regex) return false;
    tok_string s = tok_regex_string(x->regex);
    return s.n == 1 && s.s[0] == ' ';
}

static lath_status load_behavior(tok_load *l, const json_value *v, tok_split_kind *out)
{
    static const struct {
        const char *name;
        tok_split_kind kind;
    } names[] = {
        {"Removed", TOK_SPLIT_REMOVED},
        {"Isolated", TOK_SPLIT_ISOLATED},
        {"MergedWithPrevious", TOK_SPLIT_PREVIOUS},
        {"MergedWithNext", TOK_SPLIT_NEXT},
        {"Contiguous", TOK_SPLIT_CONTIGUOUS},
    };
    const json_value *m = json_get(v, "behavior");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!json_is_string(m, names[i].name)) continue;
        *out = names[i].kind;
        return LATH_OK;
    }
    return TOK_FAIL(l, m ? m : v, LATH_ERR_FORMAT, "pre_tokenizer: Split without a \"behavior\" that is known");
}

lath_status tok_split_regex(tok_load *l, const json_value *v, tok_splitter *out)
{
    static const char *const known[] = {"type", "pattern", "behavior", "invert", NULL};
    TRY(tok_load_fields(l, v, "pre_tokenizer", known));
    splitter *x = tok_load_array(l, 1, sizeof(*x));
    if (!x) return err_nomem(l->err, sizeof(*x));
    *out = (tok_splitter){.run = run, .param = x};
    TRY(load_behavior(l, v, &out->behavior));
    TRY(tok_load_bool(l, v, "pre_tokenizer", "invert", &x->invert));
    const json_value *p = json_get(v, "pattern"), *regex = json_get(p, "Regex");
    if (regex && regex->kind == JSON_STRING)
        x->known = tok_pattern_find((tok_string){regex->u.string.data, regex->u.string.len});
    if (x->known && p->u.items.count == 1) return LATH_OK;
    x->known = NULL;
    bool is_regex;
    return tok_regex_load_pattern(l, v, "pre_tokenizer", &x->regex, NULL, &is_regex);
}
