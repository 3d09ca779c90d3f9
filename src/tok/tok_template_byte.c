/* SPDX-License-Identifier: Apache-2.0
 * tok_template_byte.c: the post-processors of byte-level tokenizers: ByteLevel and RobertaProcessing, which can take the
 * spaces at the ends of tokens out of their offsets, and Sequence.
 *
 * Trimming counts characters, as the reference's offsets do: k spaces of a token move its offsets by k characters of
 * the text, whatever they are. Which tokens have spaces is a table of one byte an id.
 */
#include "base/unicode.h"
#include "tok/tok_bytelevel.h"

struct tok_trim {
    bool prefix;           /* a single space of the first token may have been put there: it stays */
    const uint8_t *spaced; /* [n_ids] the token begins or ends with a space */
    size_t n_ids;
};

static bool is_space(uint32_t c) { return c == tok_byte_to_char(' ') || uni_flags(c) & UNI_SPACE; }

static size_t spaces_before(const char *s, size_t n)
{
    size_t k = 0, len;
    for (size_t i = 0; i < n && is_space(uni_next(s + i, &len)); i += len) k++;
    return k;
}

static size_t spaces_behind(const char *s, size_t n)
{
    size_t k = 0, len;
    for (size_t i = n; i > 0 && is_space(uni_before(s, i, &len)); i -= len) k++;
    return k;
}

/* before, behind: spaces at the ends of the token. */
static void trim_token(const tok_trim *x, size_t before, size_t behind, const char *text, bool first, uint32_t o[2])
{
    size_t step;
    if (before == 1 && x->prefix && (first || o[0] == 0)) before = 0;
    for (; before && o[0] < o[1]; before--) {
        uni_next(text + o[0], &step);
        o[0] += (uint32_t)step;
    }
    uint32_t to = o[1];
    for (; behind && to > 0; behind--) {
        uni_before(text, to, &step);
        to -= (uint32_t)step;
    }
    if (behind == 0) o[1] = to > o[0] ? to : o[0];
}

enum { MARKED = 1 << 30, MARK_BITS = 15, MARK_MOST = (1 << MARK_BITS) - 1 };

static size_t at_most(size_t n) { return n < MARK_MOST ? n : MARK_MOST; }

void tok_trim_mark(tok_work *w, const char *s, size_t n, bool spaces_count)
{
    tok_encoding *e = w->out;
    if (!w->t->template.trim || e->n == 0) return;
    size_t before = n && (spaces_count || s[0] != ' ') ? spaces_before(s, n) : 0;
    size_t behind = n && (spaces_count || s[n - 1] != ' ') ? spaces_behind(s, n) : 0;
    e->type_ids[e->n - 1] = (int32_t)(MARKED | at_most(before) << MARK_BITS | at_most(behind));
}

/* Tokens from.. of e, whose offsets are at `offsets`. */
void tok_trim_offsets(const tok *t, const char *text, const tok_encoding *e, size_t from, uint32_t *offsets, size_t n)
{
    const tok_trim *x = t->template.trim;
    for (size_t i = 0; i < n; i++) {
        size_t len, id = (size_t)e->ids[from + i];
        int32_t m = e->type_ids[from + i];
        if (m & MARKED) {
            trim_token(x, (size_t)(m >> MARK_BITS & MARK_MOST), (size_t)(m & MARK_MOST), text, i == 0, offsets + 2 * i);
            continue;
        }
        if (id >= x->n_ids || !x->spaced[id]) continue;
        const char *token = tok_vocab_get(&t->vocab, e->ids[from + i], &len);
        if (token) trim_token(x, spaces_before(token, len), spaces_behind(token, len), text, i == 0, offsets + 2 * i);
    }
}

/* ---------------------------------------------------------------------------------------------------------- loading */

static lath_status set_trim(tok_load *l, bool prefix, tok_template *out)
{
    const tok_vocab *v = &l->t->vocab;
    tok_trim *x = tok_load_array(l, 1, sizeof(*x));
    uint8_t *spaced = tok_load_array(l, v->n_ids, 1);
    if (!x || !spaced) return err_nomem(l->err, v->n_ids);
    for (size_t id = 0; id < v->n_ids; id++) {
        size_t len, n;
        const char *s = tok_vocab_get(v, (int32_t)id, &n);
        if (s && n) spaced[id] = is_space(uni_next(s, &len)) || is_space(uni_before(s, n, &len));
    }
    *x = (tok_trim){prefix, spaced, v->n_ids};
    out->trim = x;
    return LATH_OK;
}

/* *trim and *prefix are true where the file says nothing. */
static lath_status load_flags(tok_load *l, const json_value *v, bool *trim, bool *prefix)
{
    *trim = *prefix = true;
    TRY(json_get_bool(v, "trim_offsets", l->name, trim, l->err));
    return json_get_bool(v, "add_prefix_space", l->name, prefix, l->err);
}

lath_status tok_template_bytelevel(tok_load *l, const json_value *v, tok_template *out)
{
    static const char *const known[] = {"type", "add_prefix_space", "trim_offsets", "use_regex", NULL};
    bool trim, prefix;
    TRY(tok_load_fields(l, v, "post_processor", known));
    TRY(load_flags(l, v, &trim, &prefix));
    return trim ? set_trim(l, prefix, out) : LATH_OK;
}

lath_status tok_template_roberta(tok_load *l, const json_value *v, tok_template *out)
{
    static const char *const known[] = {"type", "sep", "cls", "trim_offsets", "add_prefix_space", NULL};
    int32_t cls, sep;
    bool trim, prefix;
    TRY(tok_load_fields(l, v, "post_processor", known));
    TRY(tok_template_load_pair(l, v, "cls", &cls));
    TRY(tok_template_load_pair(l, v, "sep", &sep));
    TRY(load_flags(l, v, &trim, &prefix));
    TRY(tok_template_roberta_init(l, cls, sep, out));
    return trim ? set_trim(l, prefix, out) : LATH_OK;
}

static bool has_template(const tok_template *t) { return t->single != NULL || t->pair != NULL; }

lath_status tok_template_sequence(tok_load *l, const json_value *v, tok_template *out)
{
    static const char *const known[] = {"type", "processors", NULL};
    TRY(tok_load_fields(l, v, "post_processor", known));
    const json_value *list = json_get(v, "processors");
    if (!list || list->kind != JSON_ARRAY)
        return TOK_FAIL(l, v, LATH_ERR_FORMAT, "post_processor: want a list \"processors\"");
    const tok_trim *trim = NULL;
    for (const json_value *m = list->u.items.first; m; m = m->next) {
        tok_template one = {0};
        TRY(tok_load_template(l, m, &one));
        if ((has_template(&one) && has_template(out)) || (one.trim && (trim || has_template(out))))
            return TOK_FAIL(l, m, LATH_ERR_UNSUPPORTED, "post_processor: this order of processors is not supported");
        if (one.trim) trim = one.trim;
        if (has_template(&one)) *out = one;
    }
    out->trim = trim;
    return LATH_OK;
}
