/* SPDX-License-Identifier: Apache-2.0
 * chat_filters.c: filters of single values and texts, and the look-up. Arguments and results are those of jinja2 3.1.6. */
#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "chat/chat_call.h"
#include "chat/chat_text.h"

/* str(v) for a filter that knows nothing of escaped text. */
static lath_status text_of(render *r, const args *a, value v, const chat_str **out)
{
    if (v.kind == V_STR && v.u.str->markup)
        return render_fail(r, LATH_ERR_UNSUPPORTED, "the filter \"%s\" of an escaped text", a->what);
    return value_to_str(r, v, out);
}

/* ---------------------------------------------------------------------------------------------------------------- text */

static lath_status f_trim(render *r, value v, const args *a, value *out)
{
    value chars = VALUE_NONE;
    const chat_str *s, *c = NULL;
    TRY(args_read(r, a, "chars", 0, &chars));
    TRY(value_to_str(r, v, &s));
    if (chars.kind != V_NONE) TRY(arg_str(r, a, chars, &c));
    return str_strip(r, s, c, true, true, out);
}

static lath_status change(render *r, value v, const args *a, str_case how, value *out)
{
    const chat_str *s;
    TRY(args_none(r, a));
    TRY(text_of(r, a, v, &s));
    return str_change_case(r, s, how, out);
}

static lath_status f_upper(render *r, value v, const args *a, value *out) { return change(r, v, a, CASE_UPPER, out); }
static lath_status f_lower(render *r, value v, const args *a, value *out) { return change(r, v, a, CASE_LOWER, out); }
static lath_status f_title(render *r, value v, const args *a, value *out)
{
    return change(r, v, a, CASE_JINJA_TITLE, out);
}
static lath_status f_capitalize(render *r, value v, const args *a, value *out)
{
    return change(r, v, a, CASE_CAPITALIZE, out);
}

static lath_status f_replace(render *r, value v, const args *a, value *out)
{
    value x[3] = {[2] = VALUE_NONE};
    const chat_str *s, *old, *to;
    int64_t most = -1;
    TRY(args_read(r, a, "old new count", 2, x));
    TRY(value_to_str(r, v, &s));
    TRY(value_to_str(r, x[0], &old));
    TRY(value_to_str(r, x[1], &to));
    if (x[2].kind != V_NONE) TRY(arg_int(r, a, x[2], &most));
    return str_replace(r, s, old, to, most, out);
}

static lath_status f_string(render *r, value v, const args *a, value *out)
{
    const chat_str *s;
    TRY(args_none(r, a));
    TRY(value_to_str(r, v, &s));
    *out = (value){.kind = V_STR, .u.str = s};
    return LATH_OK;
}

static lath_status as_markup(render *r, const chat_str *s, value *out)
{
    TRY(str_slice(r, s, 0, s->n, out));
    ((chat_str *)out->u.str)->markup = true;
    return LATH_OK;
}

static lath_status f_safe(render *r, value v, const args *a, value *out)
{
    const chat_str *s;
    TRY(args_none(r, a));
    TRY(value_to_str(r, v, &s));
    return as_markup(r, s, out);
}

static lath_status escape(render *r, const chat_str *s, value *out)
{
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    static const char chars[] = "&<>'\"";
    text_out o;
    size_t from = 0;
    text_init(&o, r);
    TRY(render_step(r, s->n >> 4));
    for (size_t i = 0; i < s->n; i++) {
        const char *at = memchr(chars, s->s[i], 5);
        if (!at) continue;
        text_part(&o, s, from, i);
        text_put(&o, names[at - chars], strlen(names[at - chars]), NULL, str_content_at(s, i));
        from = i + 1;
    }
    text_part(&o, s, from, s->n);
    TRY(text_finish(&o, out));
    return as_markup(r, out->u.str, out);
}

static lath_status f_escape(render *r, value v, const args *a, value *out)
{
    const chat_str *s;
    TRY(args_none(r, a));
    TRY(value_to_str(r, v, &s));
    *out = v;
    return v.kind == V_STR && s->markup ? LATH_OK : escape(r, s, out);
}

static lath_status f_forceescape(render *r, value v, const args *a, value *out)
{
    const chat_str *s;
    TRY(args_none(r, a));
    TRY(value_to_str(r, v, &s));
    return escape(r, s, out);
}

/* jinja2 adds a newline and splits: a last empty line is one too. */
static lath_status f_indent(render *r, value v, const args *a, value *out)
{
    value x[3] = {value_int(4), value_bool(false), value_bool(false)}, with, lines;
    const chat_str *s, *by;
    text_out o;
    TRY(args_read(r, a, "width first blank", 0, x));
    if (v.kind != V_STR) return fail_type(r, a->what, v);
    TRY(text_of(r, a, v, &s));
    if (x[0].kind != V_STR) {
        int64_t width;
        TRY(arg_int(r, a, x[0], &width));
        TRY(str_own(r, " ", &with));
        TRY(value_binary(r, OP_MUL, with, value_int(width), &x[0]));
    }
    by = x[0].u.str;
    text_init(&o, r);
    text_str(&o, s);
    text_own(&o, "\n");
    TRY(text_finish(&o, &lines));
    TRY(str_split_lines(r, lines.u.str, false, &lines));
    text_init(&o, r);
    if (value_truth(x[1])) text_str(&o, by);
    for (size_t i = 0; i < lines.u.list->n; i++) {
        const chat_str *line = lines.u.list->v[i].u.str;
        if (i) text_own(&o, "\n");
        if (i && (line->n || value_truth(x[2]))) text_str(&o, by);
        text_str(&o, line);
    }
    return text_finish(&o, out);
}

static lath_status f_center(render *r, value v, const args *a, value *out)
{
    value width = value_int(80);
    const chat_str *s;
    int64_t n;
    TRY(args_read(r, a, "width", 0, &width));
    TRY(text_of(r, a, v, &s));
    TRY(arg_int(r, a, width, &n));
    return str_center(r, s, n, 'c', ' ', out);
}

static lath_status f_wordcount(render *r, value v, const args *a, value *out)
{
    const chat_str *s;
    int64_t n = 0;
    bool inside = false;
    size_t len;
    TRY(args_none(r, a));
    TRY(text_of(r, a, v, &s));
    for (size_t i = 0; i < s->n; i += len) {
        const bool word = chat_is_word(s->s + i, &len);
        n += word && !inside;
        inside = word;
    }
    *out = value_int(n);
    return LATH_OK;
}

static lath_status f_truncate(render *r, value v, const args *a, value *out)
{
    value x[4] = {value_int(255), value_bool(false), VALUE_NONE, VALUE_NONE}, head;
    const chat_str *s, *end;
    int64_t length, leeway = 5;
    size_t len;
    text_out o;
    TRY(str_own(r, "...", &x[2]));
    TRY(args_read(r, a, "length killwords end leeway", 0, x));
    if (!value_len(v, &len)) return fail_type(r, a->what, v);
    TRY(arg_int(r, a, x[0], &length));
    TRY(arg_str(r, a, x[2], &end));
    if (x[3].kind != V_NONE) TRY(arg_int(r, a, x[3], &leeway));
    if (length < (int64_t)end->n_chars || leeway < 0) return render_fail(r, LATH_ERR_INPUT, "truncate: too short");
    *out = v; /* also what is no text, as long as it is short */
    if ((int64_t)len - leeway <= length) return LATH_OK;
    TRY(arg_str(r, a, v, &s));
    TRY(text_of(r, a, v, &s));
    TRY(str_slice(r, s, 0, str_offset(s, (size_t)length - end->n_chars), &head));
    size_t n = head.u.str->n;
    for (size_t i = n; !value_truth(x[1]) && i-- > 0;) {
        if (s->s[i] != ' ') continue;
        n = i;
        break;
    }
    text_init(&o, r);
    text_part(&o, s, 0, n);
    text_str(&o, end);
    return text_finish(&o, out);
}

static lath_status f_format(render *r, value v, const args *a, value *out)
{
    const chat_str *s;
    value x;
    value_dict *d;
    TRY(text_of(r, a, v, &s));
    if (a->n && a->n_kw) return render_fail(r, LATH_ERR_INPUT, "format: arguments with and without names");
    if (a->n_kw) {
        TRY(value_new_dict(r, a->n_kw, &d));
        for (size_t i = 0; i < a->n_kw; i++) {
            value key;
            TRY(str_new(r, a->kw[i].name, a->kw[i].n, false, &key));
            TRY(dict_set(r, d, key, a->kw[i].v));
        }
        return format_percent(r, s, (value){.kind = V_DICT, .u.dict = d}, out);
    }
    TRY(value_new_list(r, V_TUPLE, a->n, &x));
    if (a->n) memcpy(x.u.list->v, a->v, a->n * sizeof(value));
    return format_percent(r, s, x, out);
}

/* ------------------------------------------------------------------------------------------------------------- numbers */

static lath_status f_abs(render *r, value v, const args *a, value *out)
{
    TRY(args_none(r, a));
    if (v.kind == V_FLOAT) {
        *out = value_real(fabs(v.u.real));
        return LATH_OK;
    }
    TRY(value_unary(r, OP_POS, v, out));
    return out->u.integer < 0 ? value_unary(r, OP_NEG, *out, out) : LATH_OK;
}

static lath_status f_int(render *r, value v, const args *a, value *out)
{
    value x[2] = {value_int(0), value_int(10)};
    int64_t base, i;
    double d;
    bool ok = false;
    TRY(args_read(r, a, "default base", 0, x));
    TRY(arg_int(r, a, x[1], &base));
    *out = x[0];
    if (v.kind == V_UNDEFINED) return fail_undefined(r, v);
    if (value_is_int(v)) {
        *out = value_int(value_integer(v));
        return LATH_OK;
    }
    if (v.kind == V_STR) {
        TRY(text_to_int(r, v.u.str, base, &i, &ok));
        if (!ok) {
            TRY(text_to_real(r, v.u.str, &d, &ok));
            if (ok) TRY(real_to_int(r, d, &i, &ok));
        }
    } else if (v.kind == V_FLOAT) {
        if (isinf(v.u.real)) return render_fail(r, LATH_ERR_INPUT, "int: infinity");
        TRY(real_to_int(r, v.u.real, &i, &ok));
    }
    if (ok) *out = value_int(i);
    return LATH_OK;
}

static lath_status f_float(render *r, value v, const args *a, value *out)
{
    value x = value_real(0);
    double d;
    bool ok = false;
    TRY(args_read(r, a, "default", 0, &x));
    *out = x;
    if (v.kind == V_UNDEFINED) return fail_undefined(r, v);
    if (value_is_number(v)) {
        *out = value_real(value_number(v));
    } else if (v.kind == V_STR) {
        TRY(text_to_real(r, v.u.str, &d, &ok));
        if (ok) *out = value_real(d);
    }
    return LATH_OK;
}

static lath_status f_round(render *r, value v, const args *a, value *out)
{
    value x[2] = {value_int(0), VALUE_NONE};
    const chat_str *how;
    int64_t digits;
    double d;
    TRY(str_own(r, "common", &x[1]));
    TRY(args_read(r, a, "precision method", 0, x));
    TRY(arg_int(r, a, x[0], &digits));
    TRY(arg_str(r, a, x[1], &how));
    if (!value_is_number(v)) return fail_type(r, a->what, v);
    if (str_is(how, "common")) {
        if (v.kind != V_FLOAT && digits < 0) return render_fail(r, LATH_ERR_UNSUPPORTED, "an integer rounded to tens");
        *out = value_is_int(v) ? value_int(value_integer(v)) : v;
        if (v.kind != V_FLOAT) return LATH_OK;
        TRY(round_real(r, v.u.real, digits, &d));
    } else if (str_is(how, "ceil") || str_is(how, "floor")) {
        const double ten = pow(10, (double)digits), x10 = value_number(v) * ten;
        if (!isfinite(x10)) return render_fail(r, LATH_ERR_INPUT, "round: not a finite number");
        d = (how->n == 4 ? ceil(x10) : floor(x10)) / ten;
    } else {
        return render_fail(r, LATH_ERR_INPUT, "round: no such method");
    }
    *out = value_real(d == 0 && !str_is(how, "common") ? 0 : d);
    return LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------------- any value */

static lath_status f_default(render *r, value v, const args *a, value *out)
{
    value x[2] = {VALUE_NONE, value_bool(false)};
    TRY(str_own(r, "", &x[0]));
    TRY(args_read(r, a, "default_value boolean", 0, x));
    *out = v.kind == V_UNDEFINED || (value_truth(x[1]) && !value_truth(v)) ? x[0] : v;
    return LATH_OK;
}

static lath_status f_length(render *r, value v, const args *a, value *out)
{
    size_t n;
    TRY(args_none(r, a));
    if (v.kind == V_LOOP)
        TRY(loop_length(r, v.u.loop, &n));
    else if (!value_len(v, &n))
        return fail_type(r, a->what, v);
    *out = value_int((int64_t)n);
    return LATH_OK;
}

/* Attributes only, never the keys of a dict. */
static lath_status f_attr(render *r, value v, const args *a, value *out)
{
    value x;
    const chat_str *name;
    TRY(args_read(r, a, "name", 1, &x));
    TRY(arg_str(r, a, x, &name));
    if (v.kind == V_DICT) {
        value_dict *empty;
        TRY(value_new_dict(r, 0, &empty));
        TRY(value_attr(r, (value){.kind = V_DICT, .u.dict = empty}, name, out));
        if (out->kind == V_METHOD) ((value_method *)out->u.method)->self = v;
        return LATH_OK;
    }
    if (v.kind == V_UNDEFINED) return fail_undefined(r, v);
    return value_attr(r, v, name, out);
}

const filter_row chat_filters_text[] = {{"trim", f_trim},
                                        {"upper", f_upper},
                                        {"lower", f_lower},
                                        {"title", f_title},
                                        {"capitalize", f_capitalize},
                                        {"replace", f_replace},
                                        {"string", f_string},
                                        {"safe", f_safe},
                                        {"escape", f_escape},
                                        {"e", f_escape},
                                        {"forceescape", f_forceescape},
                                        {"indent", f_indent},
                                        {"center", f_center},
                                        {"wordcount", f_wordcount},
                                        {"truncate", f_truncate},
                                        {"format", f_format},
                                        {"tojson", filter_tojson},
                                        {"abs", f_abs},
                                        {"int", f_int},
                                        {"float", f_float},
                                        {"round", f_round},
                                        {"default", f_default},
                                        {"d", f_default},
                                        {"length", f_length},
                                        {"count", f_length},
                                        {"attr", f_attr},
                                        {0}};

static const filter_row *find(const filter_row *rows, const char *name, size_t n)
{
    for (; rows->name; rows++) {
        if (strlen(rows->name) == n && memcmp(rows->name, name, n) == 0) return rows;
    }
    return NULL;
}

const filter_row *chat_find_filter(const char *name, size_t n)
{
    const filter_row *row = find(chat_filters_text, name, n);
    return row ? row : find(chat_filters_list, name, n);
}
