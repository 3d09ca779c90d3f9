/* SPDX-License-Identifier: Apache-2.0
 * chat_eval.c: expressions to values, and calls of whatever can be called. */
#include <string.h>

#include "chat/chat_call.h"

/* ----------------------------------------------------------------------------------------------------------- arguments */

static size_t count(const node *n)
{
    size_t k = 0;
    for (; n; n = n->next) k++;
    return k;
}

static lath_status add_star_star(render *r, value v, kwarg *kw, size_t *n)
{
    if (v.kind != V_DICT) return fail_type(r, "**", v);
    for (size_t i = 0; i < v.u.dict->n; i++) {
        const value key = v.u.dict->v[i].key;
        if (key.kind != V_STR) return fail_type(r, "the name of an argument", key);
        kw[(*n)++] = (kwarg){key.u.str->s, key.u.str->n, v.u.dict->v[i].value};
    }
    return LATH_OK;
}

/* The arguments of a call, evaluated. */
static lath_status eval_args(render *r, const call_args *a, const char *what, args *out)
{
    value star = VALUE_NONE, star_star = VALUE_NONE, *more = NULL;
    size_t n = count(a->positional), n_more = 0, n_kw = 0;
    *out = (args){.what = what};
    if (!a->positional && !a->keywords && !a->star && !a->star_star) return LATH_OK;
    if (a->star) {
        TRY(eval(r, a->star, &star));
        TRY(value_items(r, star, &more, &n_more));
    }
    if (a->star_star) TRY(eval(r, a->star_star, &star_star));
    for (const keyword *k = a->keywords; k; k = k->next) n_kw++;
    if (star_star.kind == V_DICT) n_kw += star_star.u.dict->n;
    value *v = render_array(r, n + n_more, sizeof(*v));
    kwarg *kw = render_array(r, n_kw, sizeof(*kw));
    if (!v || !kw) return r->st;
    n = 0;
    for (const node *p = a->positional; p; p = p->next) TRY(eval(r, p, &v[n++]));
    if (n_more) memcpy(v + n, more, n_more * sizeof(*v));
    n_kw = 0;
    for (const keyword *k = a->keywords; k; k = k->next) {
        kw[n_kw] = (kwarg){k->name, k->n, VALUE_NONE};
        TRY(eval(r, k->value, &kw[n_kw++].v));
    }
    if (a->star_star) TRY(add_star_star(r, star_star, kw, &n_kw));
    *out = (args){.v = v, .n = n + n_more, .kw = kw, .n_kw = n_kw, .what = what};
    return LATH_OK;
}

/* Index of the word in names ("a b c"); -1: none. */
static int word_at(const char *names, const char *word, size_t n)
{
    for (int i = 0; *names; i++) {
        const size_t len = strcspn(names, " ");
        if (len == n && memcmp(names, word, n) == 0) return i;
        names += len + (names[len] == ' ');
    }
    return -1;
}

static size_t words(const char *names)
{
    size_t n = *names != 0;
    for (; *names; names++) n += *names == ' ';
    return n;
}

lath_status args_read(render *r, const args *a, const char *names, size_t least, value *out)
{
    const size_t most = words(names);
    uint32_t given = 0;
    if (a->n > most) return render_fail(r, LATH_ERR_INPUT, "%s: %zu arguments, at most %zu", a->what, a->n, most);
    for (size_t i = 0; i < a->n; i++) {
        out[i] = a->v[i];
        given |= 1u << i;
    }
    for (size_t k = 0; k < a->n_kw; k++) {
        const int i = word_at(names, a->kw[k].name, a->kw[k].n);
        if (i < 0 || given >> i & 1)
            return render_fail(r, LATH_ERR_INPUT, "%s: the argument \"%.*s\" is %s", a->what,
                               a->kw[k].n > 60 ? 60 : (int)a->kw[k].n, a->kw[k].name,
                               i < 0 ? "not one of its own" : "there twice");
        out[i] = a->kw[k].v;
        given |= 1u << i;
    }
    for (size_t i = 0; i < least; i++) {
        if (!(given >> i & 1)) return render_fail(r, LATH_ERR_INPUT, "%s: an argument is missing", a->what);
    }
    return LATH_OK;
}

lath_status args_none(render *r, const args *a)
{
    if (a->n == 0 && a->n_kw == 0) return LATH_OK;
    return render_fail(r, LATH_ERR_INPUT, "%s: takes no arguments", a->what);
}

lath_status arg_int(render *r, const args *a, value v, int64_t *out)
{
    if (!value_is_int(v)) return fail_type(r, a->what, v);
    *out = value_integer(v);
    return LATH_OK;
}

lath_status arg_str(render *r, const args *a, value v, const chat_str **out)
{
    if (v.kind != V_STR) return fail_type(r, a->what, v);
    *out = v.u.str;
    return LATH_OK;
}

/* --------------------------------------------------------------------------------------------------------------- calls */

/* Methods of jinja2's Markup escape what they are given and what they give stays Markup: few of them are here. */
static bool fits_markup(const char *name)
{
    static const char *const names[] = {"strip", "lstrip", "rstrip", "startswith", "endswith", "find", "count"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], name) == 0) return true;
    }
    return false;
}

static lath_status call_method(render *r, const value_method *m, args *a, value *out)
{
    a->what = m->row->name;
    const bool markup = m->self.kind == V_STR && m->self.u.str->markup;
    if (!m->row->fn || (markup && !fits_markup(m->row->name)))
        return render_fail(r, LATH_ERR_UNSUPPORTED, "the method \"%s\" of %s", m->row->name,
                           markup ? "an escaped text" : value_type(m->self));
    return m->row->fn(r, m->self, a, out);
}

lath_status call_value(render *r, value callee, const args *a, value *out)
{
    lath_status st;
    args named = *a;
    TRY(render_enter(r));
    switch (callee.kind) {
    case V_METHOD: st = call_method(r, callee.u.method, &named, out); break;
    case V_GLOBAL:
        named.what = callee.u.global->name;
        if (!callee.u.global->fn)
            return render_fail(r, LATH_ERR_UNSUPPORTED, "the function \"%s\"", callee.u.global->name);
        st = callee.u.global->fn(r, &named, out);
        break;
    case V_MACRO: st = call_macro(r, callee.u.macro, a, out); break;
    case V_LOOP: st = call_loop(r, callee.u.loop, a, out); break;
    case V_CYCLER: TRY(args_none(r, a)); return render_fail(r, LATH_ERR_INPUT, "a cycler called");
    case V_JOINER:
        TRY(args_none(r, a));
        st = callee.u.cycler->at++ ? LATH_OK : str_own(r, "", out);
        if (callee.u.cycler->at > 1) *out = callee.u.cycler->v[0];
        break;
    case V_UNDEFINED: return fail_undefined(r, callee);
    default: return render_fail(r, LATH_ERR_INPUT, "a %s called", value_type(callee));
    }
    r->depth--;
    return st;
}

static const char *name_of_callee(const render *r, const node *n)
{
    return n->kind == N_NAME ? r->t->names[n->id] : n->kind == N_ATTR ? n->str->s : "call";
}

static lath_status eval_call(render *r, const node *n, value *out)
{
    value callee;
    args a;
    TRY(eval(r, n->a, &callee));
    TRY(eval_args(r, &n->args, name_of_callee(r, n->a), &a));
    r->line = n->line;
    return call_value(r, callee, &a, out);
}

static lath_status unknown(render *r, const char *kind, const chat_str *name)
{
    return render_fail(r, LATH_ERR_UNSUPPORTED, "the %s \"%.*s\"", kind, name->n > 60 ? 60 : (int)name->n, name->s);
}

static lath_status eval_filter(render *r, const node *n, value v, value *out)
{
    args a;
    const filter_row *row = n->fn;
    if (!row) return unknown(r, "filter", n->str);
    TRY(eval_args(r, &n->args, row->name, &a));
    r->line = n->line;
    return row->fn(r, v, &a, out);
}

static lath_status eval_test(render *r, const node *n, value *out)
{
    args a;
    value v;
    bool yes = false;
    const test_row *row = n->fn;
    if (!row) return unknown(r, "test", n->str);
    TRY(eval(r, n->a, &v));
    TRY(eval_args(r, &n->args, row->name, &a));
    r->line = n->line;
    TRY(row->fn(r, v, &a, &yes));
    *out = value_bool(yes);
    return LATH_OK;
}

lath_status call_filter(render *r, const chat_str *name, value v, const args *a, value *out)
{
    args named = *a;
    const filter_row *row = chat_find_filter(name->s, name->n);
    if (!row) return unknown(r, "filter", name);
    named.what = row->name;
    return row->fn(r, v, &named, out);
}

lath_status call_test(render *r, const chat_str *name, value v, const args *a, bool *out)
{
    args named = *a;
    const test_row *row = chat_find_test(name->s, name->n);
    if (!row) return unknown(r, "test", name);
    named.what = row->name;
    return row->fn(r, v, &named, out);
}

/* --------------------------------------------------------------------------------------------------------- expressions */

static lath_status eval_name(render *r, const node *n, value *out)
{
    for (const scope *s = r->scope; s; s = s->parent) {
        for (const binding *b = s->first; b; b = b->next) {
            if (b->id != n->id) continue;
            *out = b->v;
            return LATH_OK;
        }
    }
    if (r->is_set[n->id]) {
        *out = r->globals[n->id];
        return LATH_OK;
    }
    const char *name = r->t->names[n->id];
    return value_undefined_name(r, name, strlen(name), NULL, out);
}

static lath_status eval_list(render *r, const node *n, value *out)
{
    size_t i = 0;
    TRY(value_new_list(r, n->kind == N_TUPLE ? V_TUPLE : V_LIST, count(n->list), out));
    for (const node *k = n->list; k; k = k->next) TRY(eval(r, k, &out->u.list->v[i++]));
    return LATH_OK;
}

static lath_status eval_dict(render *r, const node *n, value *out)
{
    value_dict *d;
    TRY(value_new_dict(r, count(n->list) / 2, &d));
    for (const node *k = n->list; k; k = k->next->next) {
        value key, v;
        TRY(eval(r, k, &key));
        TRY(eval(r, k->next, &v));
        TRY(dict_set(r, d, key, v));
    }
    *out = (value){.kind = V_DICT, .u.dict = d};
    return LATH_OK;
}

static lath_status eval_concat(render *r, const node *n, value *out)
{
    text_out o;
    text_init(&o, r);
    for (const node *k = n->list; k; k = k->next) {
        value v;
        TRY(eval(r, k, &v));
        TRY(put_value(&o, v));
    }
    return text_finish(&o, out);
}

/* a < b < c: each operand once, up to the first that does not hold. */
static lath_status eval_compare(render *r, const node *n, value *out)
{
    value left, right;
    TRY(eval(r, n->a, &left));
    for (const node *k = n->list; k; k = k->next) {
        TRY(eval(r, k->a, &right));
        r->line = k->line;
        TRY(value_binary(r, k->op, left, right, out));
        if (!out->u.boolean) return LATH_OK;
        left = right;
    }
    return LATH_OK;
}

static lath_status eval_optional(render *r, const node *n, value *out)
{
    *out = VALUE_NONE;
    return n ? eval(r, n, out) : LATH_OK;
}

static lath_status eval_subscript(render *r, const node *n, value *out)
{
    value v, key, end, step;
    TRY(eval(r, n->a, &v));
    TRY(eval_optional(r, n->b, &key));
    if (n->kind == N_ITEM) return value_item(r, v, key, out);
    TRY(eval_optional(r, n->c, &end));
    TRY(eval_optional(r, n->d, &step));
    return value_slice(r, v, key, end, step, out);
}

static lath_status eval_if_else(render *r, const node *n, value *out)
{
    value yes;
    TRY(eval(r, n->a, &yes));
    if (value_truth(yes)) return eval(r, n->b, out);
    if (n->c) return eval(r, n->c, out);
    return value_undefined_text(r, "an inline if without an else was false", out);
}

static lath_status eval_logic(render *r, const node *n, value *out)
{
    TRY(eval(r, n->a, out));
    const bool yes = value_truth(*out);
    if (n->kind == N_NOT) {
        *out = value_bool(!yes);
        return LATH_OK;
    }
    return yes == (n->kind == N_AND) ? eval(r, n->b, out) : LATH_OK;
}

static lath_status eval_operator(render *r, const node *n, value *out)
{
    value a, b;
    TRY(eval(r, n->a, &a));
    if (n->kind == N_UNARY) return value_unary(r, n->op, a, out);
    TRY(eval(r, n->b, &b));
    r->line = n->line;
    return value_binary(r, n->op, a, b, out);
}

static lath_status eval_node(render *r, const node *n, value *out)
{
    value v;
    switch (n->kind) {
    case N_TUPLE:
    case N_LIST: return eval_list(r, n, out);
    case N_DICT: return eval_dict(r, n, out);
    case N_ATTR:
        TRY(eval(r, n->a, &v));
        r->line = n->line;
        return value_attr(r, v, n->str, out);
    case N_ITEM:
    case N_SLICE: return eval_subscript(r, n, out);
    case N_CALL: return eval_call(r, n, out);
    case N_FILTER: TRY(eval(r, n->a, &v)); return eval_filter(r, n, v, out);
    case N_TEST: return eval_test(r, n, out);
    case N_AND:
    case N_OR:
    case N_NOT: return eval_logic(r, n, out);
    case N_COMPARE: return eval_compare(r, n, out);
    case N_BINARY:
    case N_UNARY: return eval_operator(r, n, out);
    case N_CONCAT: return eval_concat(r, n, out);
    default: return eval_if_else(r, n, out);
    }
}

lath_status eval(render *r, const node *n, value *out)
{
    TRY(render_step(r, 1));
    r->line = n->line;
    switch (n->kind) {
    case N_STRING: *out = (value){.kind = V_STR, .u.str = n->str}; return LATH_OK;
    case N_INT: *out = value_int(n->integer); return LATH_OK;
    case N_FLOAT: *out = value_real(n->real); return LATH_OK;
    case N_BOOL: *out = value_bool(n->integer != 0); return LATH_OK;
    case N_NONE: *out = VALUE_NONE; return LATH_OK;
    case N_NAME: return eval_name(r, n, out);
    default: break;
    }
    TRY(render_enter(r));
    const lath_status st = eval_node(r, n, out);
    r->depth--;
    return st;
}

/* The filters of a block, applied to its text from the inside out. */
lath_status eval_block_filter(render *r, const node *n, value *v)
{
    if (n->a) TRY(eval_block_filter(r, n->a, v));
    return eval_filter(r, n, *v, v);
}

lath_status eval_call_with(render *r, const node *n, value caller, value *out)
{
    value callee;
    args a;
    TRY(eval(r, n->a, &callee));
    TRY(eval_args(r, &n->args, name_of_callee(r, n->a), &a));
    kwarg *kw = render_array(r, a.n_kw + 1, sizeof(*kw));
    if (!kw) return r->st;
    if (a.n_kw) memcpy(kw, a.kw, a.n_kw * sizeof(*kw));
    kw[a.n_kw++] = (kwarg){"caller", 6, caller};
    a.kw = kw;
    return call_value(r, callee, &a, out);
}
