/* SPDX-License-Identifier: Apache-2.0
 * chat_filters_list.c: filters of lists and dicts. What is a generator in jinja2 is worked out at once here and can be read once. */
#include <string.h>

#include "chat/chat_call.h"
#include "chat/chat_text.h"

/* ---------------------------------------------------------------------------------------------------------- attributes */

static bool all_digits(const chat_str *s)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->s[i] < '0' || s->s[i] > '9') return false;
    }
    return s->n > 0;
}

/* v by a path "a.b.0"; an int is one step; none is v itself. */
static lath_status by_path(render *r, value v, value path, const value *absent, value *out)
{
    size_t from = 0;
    *out = v;
    if (path.kind == V_NONE) return LATH_OK;
    if (path.kind != V_STR) {
        TRY(value_item(r, v, path, out));
        if (absent && out->kind == V_UNDEFINED) *out = *absent;
        return LATH_OK;
    }
    const chat_str *s = path.u.str;
    for (size_t i = 0; i <= s->n; i++) {
        value part;
        int64_t number;
        bool ok;
        if (i < s->n && s->s[i] != '.') continue;
        TRY(str_slice(r, s, from, i, &part));
        if (all_digits(part.u.str)) {
            TRY(text_to_int(r, part.u.str, 10, &number, &ok));
            part = value_int(number);
        }
        TRY(value_item(r, *out, part, out));
        if (absent && out->kind == V_UNDEFINED) *out = *absent;
        from = i + 1;
    }
    return LATH_OK;
}

static lath_status lowered(render *r, value *v)
{
    return v->kind == V_STR ? str_change_case(r, v->u.str, CASE_LOWER, v) : LATH_OK;
}

/* What unique, min and max compare. */
static lath_status key_of(render *r, value v, value path, bool case_sensitive, value *out)
{
    TRY(by_path(r, v, path, NULL, out));
    return case_sensitive ? LATH_OK : lowered(r, out);
}

/* What sort compares: a list of the attributes "a,b", of one also where there is none. */
static lath_status sort_key_of(render *r, value v, const value_list *paths, bool case_sensitive, value *out)
{
    TRY(value_new_list(r, V_LIST, paths->n, out));
    for (size_t i = 0; i < paths->n; i++) TRY(key_of(r, v, paths->v[i], case_sensitive, &out->u.list->v[i]));
    return LATH_OK;
}

/* The attributes that sort is given. */
static lath_status sort_paths(render *r, value path, value *out)
{
    value by;
    bool unsafe;
    if (path.kind == V_STR) {
        TRY(str_own(r, ",", &by));
        const args a = {.v = &by, .n = 1, .what = "split"};
        return chat_find_method(V_STR, "split", 5, &unsafe)->fn(r, path, &a, out);
    }
    TRY(value_new_list(r, V_LIST, 1, out));
    out->u.list->v[0] = path;
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------- sorting */

typedef struct keyed {
    value key, v;
} keyed;

/* Stable; equal elements keep their order backwards too, as Python has it. */
static lath_status merge_sort(render *r, keyed *v, keyed *other, size_t n, bool backwards)
{
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t low = 0; low < n; low += 2 * width) {
            const size_t mid = low + width < n ? low + width : n, high = mid + width < n ? mid + width : n;
            for (size_t i = low, j = mid, k = low; k < high; k++) {
                int order = -1;
                if (i < mid && j < high) TRY(value_compare(r, v[j].key, v[i].key, "sort", &order));
                if (order == 2) order = 0;
                const bool right = i == mid || (j < high && (backwards ? order > 0 : order < 0));
                other[k] = right ? v[j++] : v[i++];
            }
        }
        memcpy(v, other, n * sizeof(*v));
    }
    return LATH_OK;
}

static lath_status sort_keyed(render *r, keyed *v, size_t n, bool backwards, value *out)
{
    keyed *other = render_array(r, n, sizeof(*other));
    if (!other) return r->st;
    TRY(merge_sort(r, v, other, n, backwards));
    TRY(value_new_list(r, V_LIST, n, out));
    for (size_t i = 0; i < n; i++) out->u.list->v[i] = v[i].v;
    return LATH_OK;
}

static lath_status f_sort(render *r, value v, const args *a, value *out)
{
    value x[3] = {value_bool(false), value_bool(false), VALUE_NONE}, *items, paths;
    size_t n;
    TRY(args_read(r, a, "reverse case_sensitive attribute", 0, x));
    TRY(sort_paths(r, x[2], &paths));
    TRY(value_items(r, v, &items, &n));
    keyed *k = render_array(r, n, sizeof(*k));
    if (!k) return r->st;
    for (size_t i = 0; i < n; i++) {
        k[i].v = items[i];
        TRY(sort_key_of(r, items[i], paths.u.list, value_truth(x[1]), &k[i].key));
    }
    return sort_keyed(r, k, n, value_truth(x[0]), out);
}

static lath_status pair_of(render *r, const dict_entry *e, value *out)
{
    TRY(value_new_list(r, V_TUPLE, 2, out));
    out->u.list->v[0] = e->key;
    out->u.list->v[1] = e->value;
    return LATH_OK;
}

static lath_status f_dictsort(render *r, value v, const args *a, value *out)
{
    value x[3] = {value_bool(false), VALUE_NONE, value_bool(false)};
    TRY(str_own(r, "key", &x[1]));
    TRY(args_read(r, a, "case_sensitive by reverse", 0, x));
    if (v.kind != V_DICT) return fail_type(r, a->what, v);
    const bool by_key = x[1].kind == V_STR && str_is(x[1].u.str, "key");
    if (!by_key && !(x[1].kind == V_STR && str_is(x[1].u.str, "value")))
        return render_fail(r, LATH_ERR_INPUT, "dictsort: by \"key\" or \"value\"");
    const value_dict *d = v.u.dict;
    keyed *k = render_array(r, d->n, sizeof(*k));
    if (!k) return r->st;
    for (size_t i = 0; i < d->n; i++) {
        k[i].key = by_key ? d->v[i].key : d->v[i].value;
        if (!value_truth(x[0])) TRY(lowered(r, &k[i].key));
        TRY(pair_of(r, &d->v[i], &k[i].v));
    }
    return sort_keyed(r, k, d->n, value_truth(x[2]), out);
}

static lath_status extreme(render *r, value v, const args *a, bool largest, value *out)
{
    value x[2] = {value_bool(false), VALUE_NONE}, *items, key, best;
    size_t n;
    int order;
    TRY(args_read(r, a, "case_sensitive attribute", 0, x));
    TRY(value_items(r, v, &items, &n));
    if (n == 0) return value_undefined_text(r, "the smallest or largest of nothing", out);
    TRY(key_of(r, items[0], x[1], value_truth(x[0]), &best));
    *out = items[0];
    for (size_t i = 1; i < n; i++) {
        TRY(key_of(r, items[i], x[1], value_truth(x[0]), &key));
        TRY(value_compare(r, key, best, a->what, &order));
        if (order == 2 || (largest ? order <= 0 : order >= 0)) continue;
        best = key;
        *out = items[i];
    }
    return LATH_OK;
}

static lath_status f_min(render *r, value v, const args *a, value *out) { return extreme(r, v, a, false, out); }
static lath_status f_max(render *r, value v, const args *a, value *out) { return extreme(r, v, a, true, out); }

/* ------------------------------------------------------------------------------------------------- choosing, mapping */

static lath_status take_list(render *r, value_kind kind, value *v, size_t n, value *out)
{
    value_list *l = render_bytes(r, sizeof(*l));
    if (!v) v = render_array(r, 0, sizeof(*v)); /* never NULL */
    if (!l || !v) return r->st;
    *l = (value_list){.v = v, .n = n};
    *out = (value){.kind = kind, .u.list = l};
    return LATH_OK;
}

static lath_status f_unique(render *r, value v, const args *a, value *out)
{
    value x[2] = {value_bool(false), VALUE_NONE}, *items;
    size_t n, kept = 0;
    TRY(args_read(r, a, "case_sensitive attribute", 0, x));
    TRY(value_items(r, v, &items, &n));
    value *keys = render_array(r, n, sizeof(*keys)), *left = render_array(r, n, sizeof(*left));
    if (!keys || !left) return r->st;
    for (size_t i = 0; i < n; i++) {
        bool seen = false, hashable;
        TRY(key_of(r, items[i], x[1], value_truth(x[0]), &keys[kept]));
        TRY(value_hashable(r, keys[kept], &hashable));
        if (!hashable) return render_fail(r, LATH_ERR_INPUT, "unique: of %s", value_type(keys[kept]));
        for (size_t k = 0; k < kept && !seen; k++) TRY(value_equal(r, keys[k], keys[kept], &seen));
        if (!seen) left[kept++] = items[i];
    }
    return take_list(r, V_ITERATOR, left, kept, out);
}

static lath_status f_map(render *r, value v, const args *a, value *out)
{
    value x[2] = {VALUE_NONE, VALUE_NONE}, *items, *made;
    size_t n;
    bool by_attribute = false;
    for (size_t i = 0; i < a->n_kw && a->n == 0; i++)
        by_attribute |= a->kw[i].n == 9 && memcmp(a->kw[i].name, "attribute", 9) == 0;
    if (by_attribute)
        TRY(args_read(r, a, "attribute default", 1, x));
    else if (a->n == 0)
        return render_fail(r, LATH_ERR_INPUT, "map: by no filter and no attribute");
    TRY(value_truth(v) ? value_items(r, v, &items, &n) : value_items(r, (value){.kind = V_UNDEFINED}, &items, &n));
    made = render_array(r, n, sizeof(*made));
    if (!made) return r->st;
    args rest = {.kw = a->kw, .n_kw = a->n_kw};
    const chat_str *name = NULL;
    if (!by_attribute) {
        TRY(arg_str(r, a, a->v[0], &name));
        rest.v = a->v + 1;
        rest.n = a->n - 1;
    }
    for (size_t i = 0; i < n; i++) {
        TRY(by_attribute ? by_path(r, items[i], x[0], x[1].kind == V_NONE ? NULL : &x[1], &made[i])
                         : call_filter(r, name, items[i], &rest, &made[i]));
    }
    return take_list(r, V_ITERATOR, made, n, out);
}

/* select, reject: by a test (or truth) of the element or its attribute. */
static lath_status choose(render *r, value v, const args *a, bool by_attribute, bool wanted, value *out)
{
    value *items, *left;
    size_t n = 0, kept = 0;
    const size_t off = by_attribute;
    if (!value_truth(v)) return take_list(r, V_ITERATOR, NULL, 0, out);
    if (a->n < off) return render_fail(r, LATH_ERR_INPUT, "%s: by no attribute", a->what);
    TRY(value_items(r, v, &items, &n));
    left = render_array(r, n, sizeof(*left));
    if (!left) return r->st;
    const chat_str *test = NULL;
    const bool tests = a->n > off;
    args rest = {.kw = a->kw, .n_kw = a->n_kw};
    if (tests) {
        TRY(arg_str(r, a, a->v[off], &test));
        rest.v = a->v + off + 1;
        rest.n = a->n - off - 1;
    }
    for (size_t i = 0; i < n; i++) {
        value x;
        bool yes;
        TRY(render_step(r, 1));
        TRY(by_path(r, items[i], by_attribute ? a->v[0] : VALUE_NONE, NULL, &x));
        if (tests)
            TRY(call_test(r, test, x, &rest, &yes));
        else
            yes = value_truth(x);
        if (yes == wanted) left[kept++] = items[i];
    }
    return take_list(r, V_ITERATOR, left, kept, out);
}

static lath_status f_select(render *r, value v, const args *a, value *out) { return choose(r, v, a, false, true, out); }
static lath_status f_reject(render *r, value v, const args *a, value *out)
{
    return choose(r, v, a, false, false, out);
}
static lath_status f_selectattr(render *r, value v, const args *a, value *out)
{
    return choose(r, v, a, true, true, out);
}
static lath_status f_rejectattr(render *r, value v, const args *a, value *out)
{
    return choose(r, v, a, true, false, out);
}

/* --------------------------------------------------------------------------------------------------------------- parts */

static lath_status f_first(render *r, value v, const args *a, value *out)
{
    value *items;
    size_t n;
    TRY(args_none(r, a));
    if (v.kind == V_ITERATOR) {
        value_list *l = v.u.list;
        if (l->at == l->n) return value_undefined_text(r, "the first of nothing", out);
        *out = l->v[l->at++];
        return LATH_OK;
    }
    TRY(value_items(r, v, &items, &n));
    if (n == 0) return value_undefined_text(r, "the first of nothing", out);
    *out = items[0];
    return LATH_OK;
}

static lath_status f_last(render *r, value v, const args *a, value *out)
{
    value *items;
    size_t n;
    TRY(args_none(r, a));
    if (v.kind == V_ITERATOR) return fail_type(r, a->what, v);
    TRY(value_items(r, v, &items, &n));
    if (n == 0) return value_undefined_text(r, "the last of nothing", out);
    *out = items[n - 1];
    return LATH_OK;
}

static lath_status f_list(render *r, value v, const args *a, value *out)
{
    value *items;
    size_t n;
    TRY(args_none(r, a));
    TRY(value_items(r, v, &items, &n));
    return take_list(r, V_LIST, items, n, out);
}

static lath_status f_items(render *r, value v, const args *a, value *out)
{
    TRY(args_none(r, a));
    if (v.kind == V_UNDEFINED) return take_list(r, V_ITERATOR, NULL, 0, out);
    if (v.kind != V_DICT) return fail_type(r, a->what, v);
    TRY(value_new_list(r, V_ITERATOR, v.u.dict->n, out));
    for (size_t i = 0; i < v.u.dict->n; i++) TRY(pair_of(r, &v.u.dict->v[i], &out->u.list->v[i]));
    return LATH_OK;
}

static lath_status f_reverse(render *r, value v, const args *a, value *out)
{
    value *items;
    size_t n;
    TRY(args_none(r, a));
    if (v.kind == V_STR) return value_slice(r, v, VALUE_NONE, VALUE_NONE, value_int(-1), out);
    TRY(value_items(r, v, &items, &n));
    /* A generator cannot be reversed and becomes a list. */
    TRY(value_new_list(r, v.kind == V_ITERATOR ? V_LIST : V_ITERATOR, n, out));
    for (size_t i = 0; i < n; i++) out->u.list->v[i] = items[n - 1 - i];
    return LATH_OK;
}

static lath_status f_join(render *r, value v, const args *a, value *out)
{
    value x[2] = {VALUE_NONE, VALUE_NONE}, *items;
    size_t n;
    text_out o;
    const chat_str *by;
    TRY(str_own(r, "", &x[0]));
    TRY(args_read(r, a, "d attribute", 0, x));
    TRY(value_items(r, v, &items, &n));
    TRY(value_to_str(r, x[0], &by));
    text_init(&o, r);
    for (size_t i = 0; i < n; i++) {
        value item;
        TRY(render_step(r, 1));
        TRY(by_path(r, items[i], x[1], NULL, &item));
        if (i) text_str(&o, by);
        TRY(put_value(&o, item));
    }
    return text_finish(&o, out);
}

static lath_status f_sum(render *r, value v, const args *a, value *out)
{
    value x[2] = {VALUE_NONE, value_int(0)}, *items;
    size_t n;
    TRY(args_read(r, a, "attribute start", 0, x));
    TRY(value_items(r, v, &items, &n));
    *out = x[1];
    if (out->kind == V_STR) return fail_type(r, a->what, *out);
    for (size_t i = 0; i < n; i++) {
        value item;
        TRY(by_path(r, items[i], x[0], NULL, &item));
        TRY(value_binary(r, OP_ADD, *out, item, out));
    }
    return LATH_OK;
}

static lath_status f_batch(render *r, value v, const args *a, value *out)
{
    value x[2] = {VALUE_NONE, VALUE_NONE}, *items;
    size_t n;
    int64_t width;
    TRY(args_read(r, a, "linecount fill_with", 1, x));
    TRY(arg_int(r, a, x[0], &width));
    TRY(value_items(r, v, &items, &n));
    if (width < 1) return render_fail(r, LATH_ERR_UNSUPPORTED, "batch: of less than one element");
    const size_t w = (uint64_t)width > n && x[1].kind == V_NONE ? (n ? n : 1) : (size_t)width;
    const size_t lines = n / w + (n % w != 0);
    TRY(value_new_list(r, V_ITERATOR, lines, out));
    for (size_t i = 0; i < lines; i++) {
        const size_t here = n - i * w < w ? n - i * w : w;
        value *line = &out->u.list->v[i];
        TRY(value_new_list(r, V_LIST, x[1].kind == V_NONE ? here : w, line));
        for (size_t k = 0; k < line->u.list->n; k++) line->u.list->v[k] = k < here ? items[i * w + k] : x[1];
    }
    return LATH_OK;
}

static lath_status f_slice(render *r, value v, const args *a, value *out)
{
    value x[2] = {VALUE_NONE, VALUE_NONE}, *items;
    size_t n, at = 0;
    int64_t count;
    TRY(args_read(r, a, "slices fill_with", 1, x));
    TRY(arg_int(r, a, x[0], &count));
    TRY(value_items(r, v, &items, &n));
    if (count < 1) return render_fail(r, LATH_ERR_INPUT, "slice: into less than one part");
    TRY(value_new_list(r, V_ITERATOR, (size_t)count, out));
    const size_t each = n / (size_t)count, extra = n % (size_t)count;
    for (size_t i = 0; i < (size_t)count; i++) {
        const size_t here = each + (i < extra);
        const bool fill = x[1].kind != V_NONE && i >= extra;
        value *part = &out->u.list->v[i];
        TRY(value_new_list(r, V_LIST, here + fill, part));
        for (size_t k = 0; k < here; k++) part->u.list->v[k] = items[at++];
        if (fill) part->u.list->v[here] = x[1];
    }
    return LATH_OK;
}

const filter_row chat_filters_list[] = {{"sort", f_sort},
                                        {"dictsort", f_dictsort},
                                        {"min", f_min},
                                        {"max", f_max},
                                        {"unique", f_unique},
                                        {"map", f_map},
                                        {"select", f_select},
                                        {"reject", f_reject},
                                        {"selectattr", f_selectattr},
                                        {"rejectattr", f_rejectattr},
                                        {"first", f_first},
                                        {"last", f_last},
                                        {"list", f_list},
                                        {"items", f_items},
                                        {"reverse", f_reverse},
                                        {"join", f_join},
                                        {"sum", f_sum},
                                        {"batch", f_batch},
                                        {"slice", f_slice},
                                        {0}};
