/* SPDX-License-Identifier: Apache-2.0
 * tok_metaspace.c: Metaspace: spaces become a visible mark (U+2581), a mark is put before the text, and words begin at
 * marks; as a decoder it turns marks into spaces. This is the form that writes the changed text; before a Unigram
 * model nothing is written (tok_unigram.c).
 */
#include "tok/tok_metaspace.h"

#include "base/unicode.h"
#include "tok/tok_change.h"

static const char *const known[] = {"type",    "replacement", "add_prefix_space", "prepend_scheme", "split",
                                    "str_rep", NULL};

/* The span with marks; a mark before it has the origin of its first character. */
static lath_status write_span(const tok_metaspace *m, tok_change *k, size_t b, size_t e)
{
    const char *s = k->t->s;
    tok_change_skip(k, b);
    if (tok_metaspace_prepends(m, k->t, b, e)) {
        size_t first = tok_change_next(k, b);
        TRY(tok_change_put_bytes(k, m->mark, m->n_mark, 0));
        TRY(tok_change_put_bytes(k, s + b, first - b, 1));
    }
    while (k->i < e) {
        const char *space = memchr(s + k->i, ' ', e - k->i);
        TRY(tok_change_copy(k, space ? (size_t)(space - s) - k->i : e - k->i));
        if (space) TRY(tok_change_put_bytes(k, m->mark, m->n_mark, 0));
    }
    return LATH_OK;
}

/* Spans of the written text: one before each mark. */
static lath_status cut(const tok_metaspace *m, tok_work *w, const char *s, size_t b, size_t e)
{
    while (m->split && b < e) {
        const char *next = memmem(s + b + 1, e - b - 1, m->mark, m->n_mark);
        if (!next) break;
        TRY(tok_spans_push(w, &w->spare, b, (size_t)(next - s)));
        b = (size_t)(next - s);
    }
    return tok_spans_push(w, &w->spare, b, e);
}

static lath_status run(const tok_splitter *p, tok_work *w, tok_text *t)
{
    const tok_metaspace *m = p->param;
    tok_change k;
    w->spare.n = 0;
    TRY(tok_change_begin(&k, w, t, t->n + t->n / 2));
    for (size_t i = 0; i < w->spans.n; i++) {
        size_t b = k.b->n;
        TRY(write_span(m, &k, w->spans.v[i].b, w->spans.v[i].e));
        TRY(cut(m, w, k.b->s, b, k.b->n));
    }
    *t = tok_change_text(&k);
    tok_spans s = w->spans;
    w->spans = w->spare;
    w->spare = s;
    return LATH_OK;
}

const tok_metaspace *tok_metaspace_of(const tok_splitter *p) { return p->run == run ? p->param : NULL; }

/* ---------------------------------------------------------------------------------------------------------- loading */

static lath_status load_scheme(tok_load *l, const json_value *v, const char *what, tok_prepend *out)
{
    static const char *const names[] = {"never", "first", "always"};
    const json_value *s = json_get(v, "prepend_scheme"), *old = json_get(v, "add_prefix_space");
    *out = TOK_PREPEND_ALWAYS;
    if (s) {
        int k = 0;
        while (k < 3 && !json_is_string(s, names[k])) k++;
        if (k == 3) return TOK_FAIL(l, s, LATH_ERR_FORMAT, "%s: this \"prepend_scheme\" is not known", what);
        *out = (tok_prepend)k;
    }
    if (!json_present(old)) return LATH_OK;
    if (old->kind != JSON_BOOL)
        return TOK_FAIL(l, old, LATH_ERR_FORMAT, "%s: \"add_prefix_space\": want true or false", what);
    if (!old->u.boolean && *out != TOK_PREPEND_NEVER)
        return TOK_FAIL(l, old, LATH_ERR_FORMAT, "%s: \"add_prefix_space\" does not go with \"prepend_scheme\"", what);
    return LATH_OK;
}

static lath_status load(tok_load *l, const json_value *v, const char *what, tok_metaspace **out)
{
    tok_string mark;
    size_t len = 0;
    tok_metaspace *m = tok_load_array(l, 1, sizeof(*m));
    if (!m) return err_nomem(l->err, sizeof(*m));
    TRY(tok_load_fields(l, v, what, known));
    TRY(tok_load_string(l, v, what, "replacement", &mark));
    if (mark.n) uni_next(mark.s, &len);
    if (mark.n == 0 || len != mark.n)
        return TOK_FAIL(l, json_get(v, "replacement"), LATH_ERR_FORMAT, "%s: want one character as \"replacement\"",
                        what);
    memcpy(m->mark, mark.s, len);
    m->n_mark = len;
    TRY(load_scheme(l, v, what, &m->prepend));
    m->split = true;
    TRY(json_get_bool(v, "split", l->name, &m->split, l->err));
    *out = m;
    return LATH_OK;
}

lath_status tok_split_metaspace(tok_load *l, const json_value *v, tok_splitter *out)
{
    tok_metaspace *m = NULL;
    TRY(load(l, v, "pre_tokenizer", &m));
    *out = (tok_splitter){.run = run, .param = m};
    return LATH_OK;
}

void tok_split_metaspace_init(tok_splitter *out, const tok_metaspace *m)
{
    *out = (tok_splitter){.run = run, .param = m};
}

/* ---------------------------------------------------------------------------------------------------------- decoder */

/* Marks become spaces; those of the first token go, unless none was put before the text. */
static lath_status decode(const tok_decoder *d, arena *mem, tok_string *v, size_t *n, lath_error *err)
{
    const tok_metaspace *m = d->param;
    for (size_t i = 0; i < *n; i++) {
        const char *s = v[i].s, *end = s + v[i].n, *at = v[i].n ? memmem(s, v[i].n, m->mark, m->n_mark) : NULL;
        bool drop = i == 0 && m->prepend != TOK_PREPEND_NEVER;
        if (!at) continue;
        if (at == s && drop && !memmem(s + m->n_mark, v[i].n - m->n_mark, m->mark, m->n_mark)) {
            v[i] = (tok_string){s + m->n_mark, v[i].n - m->n_mark};
            continue;
        }
        char *to = arena_bytes(mem, v[i].n, 1);
        if (!to) return err_nomem(err, v[i].n);
        size_t k = 0;
        for (; at; at = s < end ? memmem(s, (size_t)(end - s), m->mark, m->n_mark) : NULL) {
            memcpy(to + k, s, (size_t)(at - s));
            k += (size_t)(at - s);
            if (!drop) to[k++] = ' ';
            s = at + m->n_mark;
        }
        memcpy(to + k, s, (size_t)(end - s));
        v[i] = (tok_string){to, k + (size_t)(end - s)};
    }
    return LATH_OK;
}

static void put_token(const tok_decoder *d, tok_string token, size_t i, buf *out)
{
    const tok_metaspace *m = d->param;
    bool drop = i == 0 && m->prepend != TOK_PREPEND_NEVER;
    char *to = buf_reserve(out, token.n), first = m->mark[0];
    if (!to) return;
    size_t k = 0;
    for (size_t at = 0; at < token.n;) {
        if (token.s[at] != first || token.n - at < m->n_mark || memcmp(token.s + at, m->mark, m->n_mark) != 0) {
            to[k++] = token.s[at++];
            continue;
        }
        if (!drop) to[k++] = ' ';
        at += m->n_mark;
    }
    out->len += k;
}

void tok_decoder_metaspace_init(tok_decoder *out, const tok_metaspace *m)
{
    *out = (tok_decoder){.stream = TOK_STREAM_EACH, .run = decode, .put = put_token, .param = m};
}

lath_status tok_decoder_metaspace(tok_load *l, const json_value *v, tok_decoder *out)
{
    tok_metaspace *m = NULL;
    TRY(load(l, v, "decoder", &m));
    tok_decoder_metaspace_init(out, m);
    return LATH_OK;
}
