/* SPDX-License-Identifier: Apache-2.0
 * chat_compare.c: truth, equality, order and membership of values, and what can be gone through. */
#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "chat/chat_call.h"

bool value_len(value v, size_t *n)
{
    switch (v.kind) {
    case V_UNDEFINED: *n = 0; return true;
    case V_STR: *n = v.u.str->n_chars; return true;
    case V_LIST:
    case V_TUPLE:
    case V_VIEW: *n = v.u.list->n; return true;
    case V_DICT: *n = v.u.dict->n; return true;
    case V_RANGE: *n = v.u.range->n; return true;
    default: return false;
    }
}

bool value_truth(value v)
{
    size_t n;
    switch (v.kind) {
    case V_NONE: return false;
    case V_BOOL: return v.u.boolean;
    case V_INT: return v.u.integer != 0;
    case V_FLOAT: return v.u.real != 0;
    default: return !value_len(v, &n) || n > 0;
    }
}

/* An int and a float, as Python compares them: exactly. -1, 0, 1; 2: not to be ordered (NaN). */
static int compare_int_real(int64_t i, double d)
{
    if (isnan(d)) return 2;
    if (d >= 9223372036854775808.0) return -1;
    if (d < -9223372036854775808.0) return 1;
    const int64_t whole = (int64_t)d;
    if (i != whole) return i < whole ? -1 : 1;
    const double rest = d - (double)whole;
    return rest > 0 ? -1 : rest < 0 ? 1 : 0;
}

static int compare_numbers(value a, value b)
{
    if (value_is_int(a) && value_is_int(b)) {
        const int64_t x = value_integer(a), y = value_integer(b);
        return (x > y) - (x < y);
    }
    if (value_is_int(a)) return compare_int_real(value_integer(a), b.u.real);
    if (value_is_int(b)) {
        const int c = compare_int_real(value_integer(b), a.u.real);
        return c == 2 ? 2 : -c;
    }
    if (isnan(a.u.real) || isnan(b.u.real)) return 2;
    return (a.u.real > b.u.real) - (a.u.real < b.u.real);
}

static lath_status equal_lists(render *r, const value_list *a, const value_list *b, bool *out)
{
    *out = a->n == b->n;
    for (size_t i = 0; i < a->n && *out; i++) TRY(value_equal(r, a->v[i], b->v[i], out));
    return LATH_OK;
}

static lath_status equal_dicts(render *r, const value_dict *a, const value_dict *b, bool *out)
{
    *out = a->n == b->n;
    for (size_t i = 0; i < a->n && *out; i++) {
        const value *other;
        TRY(dict_find(r, b, a->v[i].key, &other));
        *out = other != NULL;
        if (other) TRY(value_equal(r, a->v[i].value, *other, out));
    }
    return LATH_OK;
}

static bool equal_ranges(const value_range *a, const value_range *b)
{
    if (a->n != b->n) return false;
    return a->n == 0 || (a->start == b->start && (a->n == 1 || a->step == b->step));
}

static lath_status equal_nested(render *r, value a, value b, bool *out)
{
    switch (a.kind) {
    case V_LIST:
    case V_TUPLE: return equal_lists(r, a.u.list, b.u.list, out);
    case V_DICT: return equal_dicts(r, a.u.dict, b.u.dict, out);
    case V_VIEW: return render_fail(r, LATH_ERR_UNSUPPORTED, "views of dicts compared");
    default: break;
    }
    return LATH_OK;
}

lath_status value_equal(render *r, value a, value b, bool *out)
{
    *out = false;
    TRY(render_step(r, 1));
    if (value_is_number(a) && value_is_number(b)) {
        *out = compare_numbers(a, b) == 0;
        return LATH_OK;
    }
    if (a.kind != b.kind) return LATH_OK;
    switch (a.kind) {
    case V_UNDEFINED:
    case V_NONE: *out = true; return LATH_OK;
    case V_STR:
        r->steps -= a.u.str->n == b.u.str->n ? a.u.str->n >> 6 : 0;
        *out = str_equal(a.u.str, b.u.str);
        return LATH_OK;
    case V_RANGE: *out = equal_ranges(a.u.range, b.u.range); return LATH_OK;
    case V_METHOD:
        *out = a.u.method->row == b.u.method->row && a.u.method->self.u.list == b.u.method->self.u.list;
        return LATH_OK;
    case V_LIST:
    case V_TUPLE:
    case V_DICT:
    case V_VIEW: break;
    default: *out = a.u.list == b.u.list; return LATH_OK; /* the same object */
    }
    TRY(render_enter(r));
    TRY(equal_nested(r, a, b, out));
    r->depth--;
    return LATH_OK;
}

static lath_status compare_lists(render *r, const value_list *a, const value_list *b, const char *what, int *out)
{
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        bool equal;
        TRY(value_equal(r, a->v[i], b->v[i], &equal));
        if (equal) continue;
        TRY(render_enter(r));
        TRY(value_compare(r, a->v[i], b->v[i], what, out));
        r->depth--;
        return LATH_OK;
    }
    *out = (a->n > b->n) - (a->n < b->n);
    return LATH_OK;
}

/* UTF-8 sorts as its code points do. */
static int compare_text(const chat_str *a, const chat_str *b)
{
    const size_t n = a->n < b->n ? a->n : b->n;
    const int c = n ? memcmp(a->s, b->s, n) : 0;
    return c ? (c > 0) - (c < 0) : (a->n > b->n) - (a->n < b->n);
}

lath_status value_compare(render *r, value a, value b, const char *what, int *out)
{
    TRY(render_step(r, 1));
    if (value_is_number(a) && value_is_number(b)) {
        *out = compare_numbers(a, b);
        return LATH_OK;
    }
    if (a.kind == V_UNDEFINED) return fail_undefined(r, a);
    if (b.kind == V_UNDEFINED) return fail_undefined(r, b);
    if (a.kind == V_STR && b.kind == V_STR) {
        *out = compare_text(a.u.str, b.u.str);
        return LATH_OK;
    }
    if (a.kind == b.kind && (a.kind == V_LIST || a.kind == V_TUPLE))
        return compare_lists(r, a.u.list, b.u.list, what, out);
    if (a.kind == V_VIEW || b.kind == V_VIEW)
        return render_fail(r, LATH_ERR_UNSUPPORTED, "%s of a view of a dict", what); /* as sets */
    return render_fail(r, LATH_ERR_INPUT, "%s: not between %s and %s", what, value_type(a), value_type(b));
}

static bool range_has(const value_range *g, int64_t i)
{
    if (g->step > 0 ? i < g->start || i >= g->stop : i > g->start || i <= g->stop) return false;
    return (i - g->start) % g->step == 0;
}

static lath_status check_key(render *r, value v)
{
    bool hashable;
    TRY(value_hashable(r, v, &hashable));
    return hashable ? LATH_OK : render_fail(r, LATH_ERR_INPUT, "in: a %s is no key of a dict", value_type(v));
}

lath_status value_contains(render *r, value item, value in, bool *out)
{
    const value *there;
    value *v;
    size_t n;
    *out = false;
    switch (in.kind) {
    case V_STR:
        if (item.kind == V_UNDEFINED) return fail_undefined(r, item);
        if (item.kind != V_STR) return render_fail(r, LATH_ERR_INPUT, "in: a %s cannot be in a str", value_type(item));
        *out = str_find(in.u.str, 0, in.u.str->n, item.u.str) != SIZE_MAX;
        return render_step(r, in.u.str->n >> 6);
    case V_DICT:
        TRY(check_key(r, item));
        TRY(dict_find(r, in.u.dict, item, &there));
        *out = there != NULL;
        return LATH_OK;
    case V_VIEW:
        if (strcmp(in.u.list->view, "dict_keys") == 0) TRY(check_key(r, item));
        break;
    case V_RANGE:
        if (value_is_int(item)) {
            *out = range_has(in.u.range, value_integer(item));
            return LATH_OK;
        }
        break;
    default: break;
    }
    TRY(value_items(r, in, &v, &n));
    for (size_t i = 0; i < n && !*out; i++) {
        TRY(value_equal(r, v[i], item, out));
        if (in.kind == V_ITERATOR) in.u.list->at = i + 1;
    }
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------- going through */

lath_status value_at(render *r, value v, size_t i, value *out)
{
    switch (v.kind) {
    case V_RANGE: *out = value_int(v.u.range->start + (int64_t)i * v.u.range->step); return LATH_OK;
    case V_STR: {
        const size_t at = str_offset(v.u.str, i);
        uint32_t c;
        r->steps -= v.u.str->n == v.u.str->n_chars ? 0 : (int64_t)(at >> 6);
        return str_slice(r, v.u.str, at, at + utf8_decode(v.u.str->s + at, v.u.str->n - at, &c), out);
    }
    default: *out = v.u.list->v[i]; return LATH_OK;
    }
}

static lath_status chars_of(render *r, const chat_str *s, value *v)
{
    uint32_t c;
    for (size_t at = 0, i = 0; at < s->n; i++) {
        const size_t len = utf8_decode(s->s + at, s->n - at, &c);
        TRY(str_slice(r, s, at, at + len, &v[i]));
        at += len;
    }
    return LATH_OK;
}

lath_status value_items(render *r, value v, value **items, size_t *n)
{
    switch (v.kind) {
    case V_LIST:
    case V_TUPLE:
    case V_VIEW:
        *items = v.u.list->v;
        *n = v.u.list->n;
        return LATH_OK;
    case V_ITERATOR:
        *items = v.u.list->v + v.u.list->at;
        *n = v.u.list->n - v.u.list->at;
        v.u.list->at = v.u.list->n;
        return LATH_OK;
    case V_UNDEFINED:
    case V_STR:
    case V_DICT:
    case V_RANGE: break;
    default: return render_fail(r, LATH_ERR_INPUT, "a %s cannot be gone through", value_type(v));
    }
    value_len(v, n);
    TRY(render_step(r, *n));
    *items = render_array(r, *n, sizeof(**items));
    if (!*items) return r->st;
    if (v.kind == V_STR) return chars_of(r, v.u.str, *items);
    for (size_t i = 0; i < *n; i++) {
        if (v.kind == V_DICT)
            (*items)[i] = v.u.dict->v[i].key;
        else
            TRY(value_at(r, v, i, &(*items)[i]));
    }
    return LATH_OK;
}
