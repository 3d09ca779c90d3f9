/* SPDX-License-Identifier: Apache-2.0
 * chat_value.c: the state of a rendering, strings with their origin, lists and dicts. */
#include "chat/chat_value.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/utf8.h"
#include "chat/chat_text.h"

/* --------------------------------------------------------------------------------------------------------------- state */

lath_status render_fail(render *r, lath_status st, const char *fmt, ...)
{
    char what[200];
    va_list args;
    if (r->st == LATH_OK) {
        va_start(args, fmt);
        vsnprintf(what, sizeof(what), fmt, args);
        va_end(args);
        /* A text that is cut must not end within a character. */
        what[utf8_first_invalid(what, strlen(what))] = 0;
        r->st = err_set(r->err, st, "%s: line %u: %s", r->t->name, r->line, what);
    }
    return r->st;
}

lath_status render_step(render *r, size_t n)
{
    r->steps -= (int64_t)n;
    if (r->steps >= 0) return r->st;
    return render_fail(r, LATH_ERR_LIMIT, "the template does more work than is allowed");
}

lath_status render_enter(render *r)
{
    if (++r->depth <= RENDER_DEPTH_MOST) return LATH_OK;
    return render_fail(r, LATH_ERR_LIMIT, "nested or recursive too deep");
}

void *render_bytes(render *r, size_t size)
{
    if (r->st != LATH_OK) return NULL;
    if (size > r->most - r->used) {
        render_fail(r, LATH_ERR_LIMIT, "the template takes more memory than is allowed");
        return NULL;
    }
    r->used += size;
    r->steps -= (int64_t)(size >> 8);
    void *p = arena_zero(&r->mem, size);
    if (!p) r->st = err_nomem(r->err, size);
    return p;
}

void *render_array(render *r, size_t n, size_t size)
{
    size_t bytes;
    if (!size_mul(n, size, &bytes)) bytes = SIZE_MAX;
    return render_bytes(r, bytes);
}

/* ------------------------------------------------------------------------------------------------------------- strings */

void text_init(text_out *o, render *r) { *o = (text_out){.r = r}; }

static bool text_grow(text_out *o, size_t more)
{
    size_t cap;
    if (o->r->st != LATH_OK) return false;
    if (o->n + more <= o->cap) return true;
    if (!size_add(o->n, more, &cap) || cap > INT32_MAX) {
        render_fail(o->r, LATH_ERR_LIMIT, "a string of 2 GiB or more");
        return false;
    }
    if (cap < o->cap * 2) cap = o->cap * 2;
    if (cap < 64) cap = 64;
    char *s = render_bytes(o->r, cap);
    uint8_t *marks = o->marks ? render_bytes(o->r, cap) : NULL;
    if (!s || (o->marks && !marks)) return false;
    if (o->n) memcpy(s, o->s, o->n);
    if (o->n && marks) memcpy(marks, o->marks, o->n);
    o->s = s;
    o->marks = marks;
    o->cap = cap;
    return true;
}

void text_put(text_out *o, const char *s, size_t n, const uint8_t *marks, bool content)
{
    if (n == 0 || !text_grow(o, n)) return;
    if (o->n == 0 && !marks) o->content = content;
    if (!o->marks && (marks || content != o->content)) {
        o->marks = render_bytes(o->r, o->cap);
        if (!o->marks) return;
        memset(o->marks, o->content, o->n);
    }
    memcpy(o->s + o->n, s, n);
    if (o->marks && marks)
        memcpy(o->marks + o->n, marks, n);
    else if (o->marks)
        memset(o->marks + o->n, content, n);
    o->n += n;
    o->r->steps -= (int64_t)(n >> 6);
}

void text_part(text_out *o, const chat_str *s, size_t begin, size_t end)
{
    text_put(o, s->s + begin, end - begin, s->marks ? s->marks + begin : NULL, s->content);
}

void text_str(text_out *o, const chat_str *s) { text_part(o, s, 0, s->n); }
void text_own(text_out *o, const char *s) { text_put(o, s, strlen(s), NULL, false); }
void text_char(text_out *o, char c, bool content) { text_put(o, &c, 1, NULL, content); }

lath_status text_fill(text_out *o, char c, int64_t n)
{
    render *r = o->r;
    if (n <= 0) return r->st;
    /* Before a byte is written: a width of a billion is no reason to fill the memory first. */
    if ((uint64_t)n > r->most - r->used)
        return render_fail(r, LATH_ERR_LIMIT, "the template takes more memory than is allowed");
    TRY(render_step(r, (size_t)n >> 6));
    for (int64_t i = 0; i < n && r->st == LATH_OK; i++) text_char(o, c, false);
    return r->st;
}

void text_cp(text_out *o, uint32_t c, bool content)
{
    char s[4];
    text_put(o, s, utf8_encode(c, s), NULL, content);
}

static lath_status finish(render *r, const char *s, size_t n, const uint8_t *marks, bool content, value *out)
{
    chat_str *v = render_bytes(r, sizeof(*v));
    if (!v) return r->st;
    *v = (chat_str){.s = s ? s : "", .marks = marks, .n = (uint32_t)n, .content = content};
    v->n_chars = (uint32_t)chat_count(v->s, n);
    *out = (value){.kind = V_STR, .u.str = v};
    return LATH_OK;
}

lath_status text_finish(text_out *o, value *out)
{
    if (o->r->st != LATH_OK) return o->r->st;
    return finish(o->r, o->s, o->n, o->marks, o->content, out);
}

lath_status str_new(render *r, const char *s, size_t n, bool content, value *out)
{
    text_out o;
    text_init(&o, r);
    text_put(&o, s, n, NULL, content);
    return text_finish(&o, out);
}

lath_status str_own(render *r, const char *s, value *out) { return finish(r, s, strlen(s), NULL, false, out); }

lath_status str_slice(render *r, const chat_str *s, size_t begin, size_t end, value *out)
{
    r->steps -= (int64_t)((end - begin) >> 8);
    TRY(finish(r, s->s + begin, end - begin, s->marks ? s->marks + begin : NULL, s->content, out));
    ((chat_str *)out->u.str)->markup = s->markup;
    return LATH_OK;
}

size_t str_offset(const chat_str *s, size_t i)
{
    size_t at = 0;
    if (s->n == s->n_chars) return i;
    for (; i > 0; i--) {
        at++;
        while (at < s->n && ((uint8_t)s->s[at] & 0xC0) == 0x80) at++;
    }
    return at;
}

bool str_is(const chat_str *s, const char *text) { return strlen(text) == s->n && memcmp(s->s, text, s->n) == 0; }

bool str_equal(const chat_str *a, const chat_str *b) { return a->n == b->n && memcmp(a->s, b->s, a->n) == 0; }

size_t str_find(const chat_str *s, size_t from, size_t to, const chat_str *b)
{
    if (from > to || b->n > to - from) return SIZE_MAX;
    if (b->n == 0) return from;
    const char *p = memmem(s->s + from, to - from, b->s, b->n);
    return p ? (size_t)(p - s->s) : SIZE_MAX;
}

size_t str_rfind(const chat_str *s, size_t from, size_t to, const chat_str *b)
{
    if (from > to || b->n > to - from) return SIZE_MAX;
    for (size_t i = to - b->n + 1; i-- > from;) {
        if (memcmp(s->s + i, b->s, b->n) == 0) return i;
    }
    return SIZE_MAX;
}

/* -------------------------------------------------------------------------------------------------------------- values */

const char *value_type(value v)
{
    static const char *const names[] = {
        [V_UNDEFINED] = "Undefined", [V_NONE] = "None",     [V_BOOL] = "bool",      [V_INT] = "int",
        [V_FLOAT] = "float",         [V_STR] = "str",       [V_LIST] = "list",      [V_TUPLE] = "tuple",
        [V_DICT] = "dict",           [V_RANGE] = "range",   [V_VIEW] = "dict view", [V_ITERATOR] = "generator",
        [V_NAMESPACE] = "namespace", [V_MACRO] = "macro",   [V_METHOD] = "method",  [V_GLOBAL] = "function",
        [V_LOOP] = "loop",           [V_CYCLER] = "cycler", [V_JOINER] = "joiner"};
    return names[v.kind];
}

lath_status value_undefined_name(render *r, const char *name, size_t n, const char *of, value *out)
{
    value_undefined *u = render_bytes(r, sizeof(*u));
    if (!u) return r->st;
    *u = (value_undefined){.name = name, .n = (uint32_t)n, .of = of};
    *out = (value){.kind = V_UNDEFINED, .u.undefined = u};
    return LATH_OK;
}

lath_status value_undefined_text(render *r, const char *text, value *out)
{
    TRY(value_undefined_name(r, "", 0, NULL, out));
    ((value_undefined *)out->u.undefined)->text = text;
    return LATH_OK;
}

lath_status fail_undefined(render *r, value v)
{
    const value_undefined *u = v.u.undefined;
    const int n = u && u->n < 60 ? (int)u->n : 60;
    if (!u) return render_fail(r, LATH_ERR_INPUT, "a value is not defined");
    if (u->text) return render_fail(r, LATH_ERR_INPUT, "%s", u->text);
    if (u->unsafe)
        return render_fail(r, LATH_ERR_INPUT, "\"%.*s\" of %s would change a value, which no template may", n, u->name,
                           u->of);
    if (u->of) return render_fail(r, LATH_ERR_INPUT, "%s has no \"%.*s\"", u->of, n, u->name);
    return render_fail(r, LATH_ERR_INPUT, "\"%.*s\" is not defined", n, u->name);
}

lath_status fail_type(render *r, const char *what, value v)
{
    if (v.kind == V_UNDEFINED) return fail_undefined(r, v);
    return render_fail(r, LATH_ERR_INPUT, "%s: not of a value of the type %s", what, value_type(v));
}

lath_status value_new_list(render *r, value_kind kind, size_t n, value *out)
{
    value_list *l = render_bytes(r, sizeof(*l));
    if (!l) return r->st;
    l->v = render_array(r, n, sizeof(*l->v));
    l->n = n;
    if (!l->v) return r->st;
    *out = (value){.kind = kind, .u.list = l};
    return render_step(r, n / 4);
}

lath_status value_new_dict(render *r, size_t cap, value_dict **out)
{
    value_dict *d = render_bytes(r, sizeof(*d));
    if (!d) return r->st;
    d->v = render_array(r, cap, sizeof(*d->v));
    d->cap = cap;
    *out = d;
    return d->v ? LATH_OK : r->st;
}

lath_status value_hashable(render *r, value v, bool *out)
{
    *out = v.kind != V_LIST && v.kind != V_DICT && v.kind != V_VIEW;
    if (v.kind != V_TUPLE) return LATH_OK;
    TRY(render_enter(r));
    for (size_t i = 0; i < v.u.list->n && *out; i++) TRY(value_hashable(r, v.u.list->v[i], out));
    r->depth--;
    return LATH_OK;
}

const value *dict_find_text(const value_dict *d, const char *s, size_t n)
{
    for (size_t i = 0; i < d->n; i++) {
        const value *k = &d->v[i].key;
        if (k->kind == V_STR && k->u.str->n == n && memcmp(k->u.str->s, s, n) == 0) return &d->v[i].value;
    }
    return NULL;
}

lath_status dict_find(render *r, const value_dict *d, value key, const value **out)
{
    bool equal;
    *out = NULL;
    TRY(render_step(r, d->n / 16));
    if (key.kind == V_STR) {
        *out = dict_find_text(d, key.u.str->s, key.u.str->n);
        return LATH_OK;
    }
    for (size_t i = 0; i < d->n; i++) {
        TRY(value_equal(r, d->v[i].key, key, &equal));
        if (!equal) continue;
        *out = &d->v[i].value;
        return LATH_OK;
    }
    return LATH_OK;
}

lath_status dict_set(render *r, value_dict *d, value key, value v)
{
    bool hashable;
    const value *there;
    TRY(value_hashable(r, key, &hashable));
    if (!hashable) return render_fail(r, LATH_ERR_INPUT, "a %s cannot be the key of a dict", value_type(key));
    TRY(dict_find(r, d, key, &there));
    if (there) {
        *(value *)there = v;
        return LATH_OK;
    }
    if (d->n == d->cap) {
        const size_t cap = d->cap ? d->cap * 2 : 8;
        dict_entry *e = render_array(r, cap, sizeof(*e));
        if (!e) return r->st;
        if (d->n) memcpy(e, d->v, d->n * sizeof(*e));
        d->v = e;
        d->cap = cap;
    }
    d->v[d->n++] = (dict_entry){key, v};
    return LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------------- from JSON */

static lath_status of_object(render *r, const json_value *j, bool content, value *out)
{
    value_dict *d = NULL;
    TRY(value_new_dict(r, j->u.items.count, &d));
    for (const json_value *m = j->u.items.first; m; m = m->next) {
        dict_entry *e = &d->v[d->n++];
        TRY(str_new(r, m->key, m->key_len, content, &e->key));
        TRY(value_of_json(r, m, content, &e->value));
    }
    *out = (value){.kind = V_DICT, .u.dict = d};
    return LATH_OK;
}

static lath_status of_array(render *r, const json_value *j, bool content, value *out)
{
    size_t i = 0;
    TRY(value_new_list(r, V_LIST, j->u.items.count, out));
    for (const json_value *m = j->u.items.first; m; m = m->next)
        TRY(value_of_json(r, m, content, &out->u.list->v[i++]));
    return LATH_OK;
}

lath_status value_of_json(render *r, const json_value *j, bool content, value *out)
{
    lath_status st = LATH_OK;
    TRY(render_enter(r));
    switch (j->kind) {
    case JSON_NULL: *out = VALUE_NONE; break;
    case JSON_BOOL: *out = value_bool(j->u.boolean); break;
    case JSON_INT: *out = value_int(j->u.integer); break;
    case JSON_REAL: *out = value_real(j->u.real); break;
    case JSON_STRING: st = str_new(r, j->u.string.data, j->u.string.len, content, out); break;
    case JSON_ARRAY: st = of_array(r, j, content, out); break;
    case JSON_OBJECT: st = of_object(r, j, content, out); break;
    }
    r->depth--;
    return st;
}

/* A role is the caller's choice, not what somebody wrote: as long as it is a word, templates may build special tokens of it. */
static bool is_word(const chat_str *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const char c = s->s[i];
        if (!((c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c == '-')) return false;
    }
    return s->n > 0 && s->n <= 32;
}

lath_status value_of_messages(render *r, const json_value *j, value *out)
{
    TRY(value_of_json(r, j, true, out));
    if (out->kind != V_LIST) return LATH_OK;
    for (size_t i = 0; i < out->u.list->n; i++) {
        const value m = out->u.list->v[i];
        if (m.kind != V_DICT) continue;
        const value *role = dict_find_text(m.u.dict, "role", 4);
        if (role && role->kind == V_STR && is_word(role->u.str)) ((chat_str *)role->u.str)->content = false;
    }
    return LATH_OK;
}
