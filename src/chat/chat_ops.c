/* SPDX-License-Identifier: Apache-2.0
 * chat_ops.c: attributes, subscripts, slices and operators, as Python has them. Integers are 64 bits wide: what does not fit is refused. */
#include <math.h>
#include <string.h>

#include "chat/chat_call.h"

/* ---------------------------------------------------------------------------------------------- attributes, subscripts */

static lath_status undefined_attr(render *r, value v, const chat_str *name, bool unsafe, value *out)
{
    TRY(value_undefined_name(r, name->s, name->n, value_type(v), out));
    ((value_undefined *)out->u.undefined)->unsafe = unsafe;
    return LATH_OK;
}

/* A method of the type or, for namespaces and loops, an attribute. *found is false where there is none. */
static lath_status own_attr(render *r, value v, const chat_str *name, value *out, bool *found)
{
    bool unsafe;
    *found = true;
    if (v.kind == V_UNDEFINED) return fail_undefined(r, v);
    if (v.kind == V_NAMESPACE) {
        for (const struct space_entry *e = v.u.space->first; e; e = e->next) {
            if (e->n != name->n || memcmp(e->name, name->s, e->n) != 0) continue;
            *out = e->v;
            return LATH_OK;
        }
        return undefined_attr(r, v, name, false, out);
    }
    if (v.kind == V_LOOP) return loop_attr(r, v.u.loop, name, out);
    if (v.kind == V_MACRO && str_is(name, "name")) return str_own(r, v.u.macro->name, out);
    if ((v.kind == V_MACRO && (str_is(name, "arguments") || str_is(name, "caller") || str_is(name, "catch_kwargs"))) ||
        (v.kind == V_CYCLER && str_is(name, "current")) || (value_is_number(v) && str_is(name, "real")))
        return render_fail(r, LATH_ERR_UNSUPPORTED, "the attribute \"%s\" of a %s", name->s, value_type(v));
    const method_row *row = chat_find_method(v.kind, name->s, name->n, &unsafe);
    if (unsafe) return undefined_attr(r, v, name, true, out);
    *found = row != NULL;
    if (!row) return LATH_OK;
    value_method *m = render_bytes(r, sizeof(*m));
    if (!m) return r->st;
    *m = (value_method){v, row};
    *out = (value){.kind = V_METHOD, .u.method = m};
    return LATH_OK;
}

lath_status value_attr(render *r, value v, const chat_str *name, value *out)
{
    bool found;
    TRY(own_attr(r, v, name, out, &found));
    if (found) return LATH_OK;
    if (v.kind == V_DICT) {
        const value *there = dict_find_text(v.u.dict, name->s, name->n);
        TRY(render_step(r, v.u.dict->n / 16));
        if (there) {
            *out = *there;
            return LATH_OK;
        }
    }
    return undefined_attr(r, v, name, false, out);
}

/* v[i] of a sequence; *found is false where the index is out of range. */
static lath_status at_index(render *r, value v, int64_t i, value *out, bool *found)
{
    size_t n;
    value_len(v, &n);
    if (i < 0) i += (int64_t)n;
    *found = i >= 0 && (uint64_t)i < n;
    return *found ? value_at(r, v, (size_t)i, out) : LATH_OK;
}

static lath_status undefined_item(render *r, value v, value key, value *out)
{
    const chat_str *name;
    TRY(value_to_str(r, key.kind == V_STR || key.kind == V_INT ? key : VALUE_NONE, &name));
    return undefined_attr(r, v, name, false, out);
}

lath_status value_item(render *r, value v, value key, value *out)
{
    bool found = false;
    if (v.kind == V_UNDEFINED) return fail_undefined(r, v);
    if (v.kind == V_DICT) {
        const value *there = NULL;
        bool hashable;
        TRY(value_hashable(r, key, &hashable));
        if (hashable) TRY(dict_find(r, v.u.dict, key, &there));
        if (there) {
            *out = *there;
            return LATH_OK;
        }
    } else if (value_is_int(key) && (v.kind == V_STR || v.kind == V_LIST || v.kind == V_TUPLE || v.kind == V_RANGE)) {
        TRY(at_index(r, v, value_integer(key), out, &found));
        if (found) return LATH_OK;
    }
    if (key.kind == V_STR) {
        TRY(own_attr(r, v, key.u.str, out, &found));
        if (found) return LATH_OK;
    }
    return undefined_item(r, v, key, out);
}

/* An index of a slice, cut to what there is. */
static lath_status slice_index(render *r, value v, int64_t n, int64_t low, int64_t high, int64_t absent, int64_t *out)
{
    if (v.kind == V_NONE) {
        *out = absent;
        return LATH_OK;
    }
    if (!value_is_int(v)) return fail_type(r, "slice", v);
    int64_t i = value_integer(v);
    if (i < 0) i = i < -n ? low : i + n;
    *out = i < low ? low : i > high ? high : i;
    return LATH_OK;
}

static lath_status slice_text(render *r, const chat_str *s, int64_t begin, int64_t n, int64_t step, value *out)
{
    text_out o;
    if (n == 0) return str_slice(r, s, 0, 0, out);
    if (step == 1) {
        const size_t from = str_offset(s, (size_t)begin);
        const chat_str rest = {.s = s->s + from, .n = s->n - (uint32_t)from, .n_chars = s->n_chars - (uint32_t)begin};
        return str_slice(r, s, from, from + str_offset(&rest, (size_t)n), out);
    }
    text_init(&o, r);
    for (int64_t k = 0; k < n; k++) {
        value c;
        TRY(value_at(r, (value){.kind = V_STR, .u.str = s}, (size_t)(begin + k * step), &c));
        TRY(render_step(r, 1));
        text_str(&o, c.u.str);
    }
    return text_finish(&o, out);
}

lath_status value_slice(render *r, value v, value begin, value end, value step, value *out)
{
    size_t len;
    int64_t by = 1, from = 0, to = 0;
    if (v.kind == V_UNDEFINED) return fail_undefined(r, v);
    if (v.kind != V_STR && v.kind != V_LIST && v.kind != V_TUPLE && v.kind != V_RANGE) return fail_type(r, "slice", v);
    value_len(v, &len);
    const int64_t n = (int64_t)len;
    if (step.kind != V_NONE && !value_is_int(step)) return fail_type(r, "slice", step);
    if (step.kind != V_NONE) by = value_integer(step);
    if (by == 0) return render_fail(r, LATH_ERR_INPUT, "slice: a step of 0");
    if (by > n + 1) by = n + 1; /* only the first element is met either way */
    if (by < -n - 1) by = -n - 1;
    const int64_t low = by > 0 ? 0 : -1, high = by > 0 ? n : n - 1;
    TRY(slice_index(r, begin, n, low, high, by > 0 ? low : high, &from));
    TRY(slice_index(r, end, n, low, high, by > 0 ? high : low, &to));
    const int64_t count = by > 0      ? (to > from ? (to - from - 1) / by + 1 : 0)
                          : to < from ? (from - to - 1) / -by + 1
                                      : 0;
    if (v.kind == V_STR) return slice_text(r, v.u.str, from, count, by, out);
    if (v.kind == V_RANGE) return render_fail(r, LATH_ERR_UNSUPPORTED, "a slice of a range");
    TRY(value_new_list(r, v.kind, (size_t)count, out));
    for (int64_t k = 0; k < count; k++) out->u.list->v[k] = v.u.list->v[from + k * by];
    return LATH_OK;
}

/* ----------------------------------------------------------------------------------------------------------- operators */

static const char *op_name(binary_op op)
{
    static const char *const names[] = {
        [OP_ADD] = "+",  [OP_SUB] = "-", [OP_MUL] = "*",         [OP_DIV] = "/", [OP_FLOORDIV] = "//", [OP_MOD] = "%",
        [OP_POW] = "**", [OP_EQ] = "==", [OP_NE] = "!=",         [OP_LT] = "<",  [OP_LE] = "<=",       [OP_GT] = ">",
        [OP_GE] = ">=",  [OP_IN] = "in", [OP_NOT_IN] = "not in", [OP_NEG] = "-", [OP_POS] = "+"};
    return names[op];
}

static lath_status too_large(render *r)
{
    return render_fail(r, LATH_ERR_UNSUPPORTED, "an integer of more than 63 bits");
}

static lath_status int_power(render *r, int64_t a, int64_t b, value *out)
{
    int64_t v = 1;
    if (b < 0) {
        if (a == 0) return render_fail(r, LATH_ERR_INPUT, "0 to a negative power");
        *out = value_real(pow((double)a, (double)b));
        return LATH_OK;
    }
    if (a == 1 || a == 0 || a == -1) {
        *out = value_int(a == 0 ? b == 0 : a == 1 || b % 2 == 0 ? 1 : -1);
        return LATH_OK;
    }
    for (; b > 0; b--) {
        if (__builtin_mul_overflow(v, a, &v)) return too_large(r);
    }
    *out = value_int(v);
    return LATH_OK;
}

static lath_status int_binary(render *r, binary_op op, int64_t a, int64_t b, value *out)
{
    int64_t v = 0;
    bool over = false;
    if ((op == OP_DIV || op == OP_FLOORDIV || op == OP_MOD) && b == 0)
        return render_fail(r, LATH_ERR_INPUT, "division by zero");
    switch (op) {
    case OP_ADD: over = __builtin_add_overflow(a, b, &v); break;
    case OP_SUB: over = __builtin_sub_overflow(a, b, &v); break;
    case OP_MUL: over = __builtin_mul_overflow(a, b, &v); break;
    case OP_DIV: *out = value_real((double)a / (double)b); return LATH_OK;
    case OP_POW: return int_power(r, a, b, out);
    default: /* // and % round to negative infinity */
        if (b == -1) {
            over = op == OP_FLOORDIV && a == INT64_MIN;
            v = op == OP_FLOORDIV && !over ? -a : 0;
            break;
        }
        v = a % b;
        if (v != 0 && (v < 0) != (b < 0)) v += b;
        if (op == OP_FLOORDIV) v = a / b - (a % b != 0 && (a % b < 0) != (b < 0));
    }
    if (over) return too_large(r);
    *out = value_int(v);
    return LATH_OK;
}

static lath_status real_binary(render *r, binary_op op, double a, double b, value *out)
{
    double m;
    if ((op == OP_DIV || op == OP_FLOORDIV || op == OP_MOD) && b == 0)
        return render_fail(r, LATH_ERR_INPUT, "division by zero");
    switch (op) {
    case OP_ADD: *out = value_real(a + b); return LATH_OK;
    case OP_SUB: *out = value_real(a - b); return LATH_OK;
    case OP_MUL: *out = value_real(a * b); return LATH_OK;
    case OP_DIV: *out = value_real(a / b); return LATH_OK;
    case OP_POW:
        if (a == 0 && b < 0) return render_fail(r, LATH_ERR_INPUT, "0.0 to a negative power");
        if (a < 0 && b != floor(b)) return render_fail(r, LATH_ERR_UNSUPPORTED, "complex numbers");
        m = pow(a, b);
        if (isinf(m) && isfinite(a) && isfinite(b)) return render_fail(r, LATH_ERR_INPUT, "a power out of range");
        *out = value_real(m);
        return LATH_OK;
    default: /* CPython's float_divmod */
        m = fmod(a, b);
        if (m != 0 && (b < 0) != (m < 0)) m += b;
        if (m == 0) m = copysign(0, b);
        if (op == OP_FLOORDIV) {
            const double div = (a - m) / b, whole = floor(div);
            m = div != 0 ? whole + (div - whole > 0.5) : copysign(0, a / b);
        }
        *out = value_real(m);
        return LATH_OK;
    }
}

static bool plain_html(const chat_str *s)
{
    for (size_t i = 0; i < s->n; i++) {
        if (memchr("&<>'\"", s->s[i], 5)) return false;
    }
    return true;
}

static lath_status add_text(render *r, const chat_str *a, const chat_str *b, value *out)
{
    text_out o;
    if ((a->markup && !b->markup && !plain_html(b)) || (b->markup && !a->markup && !plain_html(a)))
        return render_fail(r, LATH_ERR_UNSUPPORTED, "+ of an escaped text and one that is not");
    text_init(&o, r);
    text_str(&o, a);
    text_str(&o, b);
    TRY(text_finish(&o, out));
    ((chat_str *)out->u.str)->markup = a->markup || b->markup;
    return LATH_OK;
}

static lath_status add_lists(render *r, value a, value b, value *out)
{
    TRY(value_new_list(r, a.kind, a.u.list->n + b.u.list->n, out));
    value *v = out->u.list->v;
    if (a.u.list->n) memcpy(v, a.u.list->v, a.u.list->n * sizeof(*v));
    if (b.u.list->n) memcpy(v + a.u.list->n, b.u.list->v, b.u.list->n * sizeof(*v));
    return LATH_OK;
}

/* A text or list n times. */
static lath_status repeat(render *r, value v, int64_t n, value *out)
{
    text_out o;
    if (n < 0) n = 0;
    if (v.kind == V_STR) {
        if (v.u.str->n && (uint64_t)n > INT32_MAX / v.u.str->n)
            return render_fail(r, LATH_ERR_LIMIT, "a string of 2 GiB or more");
        text_init(&o, r);
        for (int64_t i = 0; i < n && v.u.str->n && r->st == LATH_OK; i++) {
            TRY(render_step(r, 1));
            text_str(&o, v.u.str);
        }
        return text_finish(&o, out);
    }
    const size_t len = v.u.list->n;
    if (len && (uint64_t)n > INT32_MAX / len) return render_fail(r, LATH_ERR_LIMIT, "a list of 2^31 elements or more");
    TRY(value_new_list(r, v.kind, len * (size_t)n, out));
    for (size_t i = 0; i < len * (size_t)n; i++) out->u.list->v[i] = v.u.list->v[i % len];
    return LATH_OK;
}

static bool is_sequence(value v) { return v.kind == V_STR || v.kind == V_LIST || v.kind == V_TUPLE; }

static lath_status arithmetic(render *r, binary_op op, value a, value b, value *out)
{
    if (op == OP_MOD && a.kind == V_STR) return format_percent(r, a.u.str, b, out);
    if (a.kind == V_UNDEFINED) return fail_undefined(r, a);
    if (b.kind == V_UNDEFINED) return fail_undefined(r, b);
    if (value_is_int(a) && value_is_int(b)) return int_binary(r, op, value_integer(a), value_integer(b), out);
    if (value_is_number(a) && value_is_number(b)) return real_binary(r, op, value_number(a), value_number(b), out);
    if (op == OP_ADD && a.kind == V_STR && b.kind == V_STR) return add_text(r, a.u.str, b.u.str, out);
    if (op == OP_ADD && a.kind == b.kind && (a.kind == V_LIST || a.kind == V_TUPLE)) return add_lists(r, a, b, out);
    if (op == OP_MUL && is_sequence(a) && value_is_int(b)) return repeat(r, a, value_integer(b), out);
    if (op == OP_MUL && is_sequence(b) && value_is_int(a)) return repeat(r, b, value_integer(a), out);
    if (a.kind == V_VIEW || b.kind == V_VIEW)
        return render_fail(r, LATH_ERR_UNSUPPORTED, "%s of a view of a dict", op_name(op)); /* as sets */
    return render_fail(r, LATH_ERR_INPUT, "%s: not between %s and %s", op_name(op), value_type(a), value_type(b));
}

lath_status value_binary(render *r, binary_op op, value a, value b, value *out)
{
    bool yes;
    int order;
    switch (op) {
    case OP_EQ:
    case OP_NE:
        TRY(value_equal(r, a, b, &yes));
        *out = value_bool(yes == (op == OP_EQ));
        return LATH_OK;
    case OP_IN:
    case OP_NOT_IN:
        TRY(value_contains(r, a, b, &yes));
        *out = value_bool(yes == (op == OP_IN));
        return LATH_OK;
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE:
        TRY(value_compare(r, a, b, op_name(op), &order));
        if (order == 2)
            yes = false; /* NaN */
        else
            yes = op == OP_LT ? order < 0 : op == OP_LE ? order <= 0 : op == OP_GT ? order > 0 : order >= 0;
        *out = value_bool(yes);
        return LATH_OK;
    default: return arithmetic(r, op, a, b, out);
    }
}

lath_status value_unary(render *r, binary_op op, value v, value *out)
{
    if (value_is_int(v)) {
        const int64_t i = value_integer(v);
        if (op == OP_NEG && i == INT64_MIN) return too_large(r);
        *out = value_int(op == OP_NEG ? -i : i);
        return LATH_OK;
    }
    if (v.kind != V_FLOAT) return fail_type(r, op_name(op), v);
    *out = value_real(op == OP_NEG ? -v.u.real : v.u.real);
    return LATH_OK;
}
