/* SPDX-License-Identifier: Apache-2.0
 * chat_tests.c: what stands behind `is`. */
#include <string.h>

#include "chat/chat_call.h"

#define KIND_TEST(name, condition)                                        \
    static lath_status name(render *r, value v, const args *a, bool *out) \
    {                                                                     \
        *out = (condition);                                               \
        return args_none(r, a);                                           \
    }

static bool is_iterable(value v)
{
    size_t n;
    return value_len(v, &n) || v.kind == V_ITERATOR || v.kind == V_LOOP;
}

static bool is_callable(value v)
{
    return v.kind == V_MACRO || v.kind == V_METHOD || v.kind == V_GLOBAL || v.kind == V_LOOP || v.kind == V_JOINER ||
           v.kind == V_UNDEFINED;
}

static bool is_sequence(value v)
{
    size_t n;
    return value_len(v, &n) && v.kind != V_VIEW;
}

KIND_TEST(t_defined, v.kind != V_UNDEFINED)
KIND_TEST(t_undefined, v.kind == V_UNDEFINED)
KIND_TEST(t_none, v.kind == V_NONE)
KIND_TEST(t_string, v.kind == V_STR)
KIND_TEST(t_number, value_is_number(v))
KIND_TEST(t_integer, v.kind == V_INT)
KIND_TEST(t_float, v.kind == V_FLOAT)
KIND_TEST(t_boolean, v.kind == V_BOOL)
KIND_TEST(t_true, v.kind == V_BOOL && v.u.boolean)
KIND_TEST(t_false, v.kind == V_BOOL && !v.u.boolean)
KIND_TEST(t_mapping, v.kind == V_DICT)
KIND_TEST(t_sequence, is_sequence(v))
KIND_TEST(t_iterable, is_iterable(v))
KIND_TEST(t_callable, is_callable(v))
KIND_TEST(t_escaped, v.kind == V_STR && v.u.str->markup)

static lath_status t_lower(render *r, value v, const args *a, bool *out)
{
    const chat_str *s;
    TRY(args_none(r, a));
    TRY(value_to_str(r, v, &s));
    *out = str_all_lower(s);
    return LATH_OK;
}

static lath_status t_upper(render *r, value v, const args *a, bool *out)
{
    const chat_str *s;
    TRY(args_none(r, a));
    TRY(value_to_str(r, v, &s));
    *out = str_all_upper(s);
    return LATH_OK;
}

/* v % by == want */
static lath_status rest_is(render *r, value v, value by, int64_t want, bool *out)
{
    value rest;
    TRY(value_binary(r, OP_MOD, v, by, &rest));
    return value_equal(r, rest, value_int(want), out);
}

static lath_status t_odd(render *r, value v, const args *a, bool *out)
{
    TRY(args_none(r, a));
    return rest_is(r, v, value_int(2), 1, out);
}

static lath_status t_even(render *r, value v, const args *a, bool *out)
{
    TRY(args_none(r, a));
    return rest_is(r, v, value_int(2), 0, out);
}

static lath_status t_divisibleby(render *r, value v, const args *a, bool *out)
{
    value by;
    TRY(args_read(r, a, "num", 1, &by));
    return rest_is(r, v, by, 0, out);
}

static lath_status t_in(render *r, value v, const args *a, bool *out)
{
    value in;
    TRY(args_read(r, a, "seq", 1, &in));
    return value_contains(r, v, in, out);
}

static lath_status t_sameas(render *r, value v, const args *a, bool *out)
{
    value other;
    TRY(args_read(r, a, "other", 1, &other));
    if (v.kind == V_NONE || v.kind == V_BOOL) return value_equal(r, v, other, out);
    if (v.kind != other.kind) {
        *out = false;
        return LATH_OK;
    }
    return render_fail(r, LATH_ERR_UNSUPPORTED, "sameas of two of the type %s", value_type(v));
}

static lath_status t_filter(render *r, value v, const args *a, bool *out)
{
    TRY(args_none(r, a));
    *out = v.kind == V_STR && chat_find_filter(v.u.str->s, v.u.str->n) != NULL;
    return LATH_OK;
}

static lath_status t_test(render *r, value v, const args *a, bool *out)
{
    TRY(args_none(r, a));
    *out = v.kind == V_STR && chat_find_test(v.u.str->s, v.u.str->n) != NULL;
    return LATH_OK;
}

static lath_status compared(render *r, value v, const args *a, binary_op op, bool *out)
{
    value other, yes;
    TRY(args_read(r, a, "other", 1, &other));
    TRY(value_binary(r, op, v, other, &yes));
    *out = yes.u.boolean;
    return LATH_OK;
}

static lath_status t_eq(render *r, value v, const args *a, bool *out) { return compared(r, v, a, OP_EQ, out); }
static lath_status t_ne(render *r, value v, const args *a, bool *out) { return compared(r, v, a, OP_NE, out); }
static lath_status t_lt(render *r, value v, const args *a, bool *out) { return compared(r, v, a, OP_LT, out); }
static lath_status t_le(render *r, value v, const args *a, bool *out) { return compared(r, v, a, OP_LE, out); }
static lath_status t_gt(render *r, value v, const args *a, bool *out) { return compared(r, v, a, OP_GT, out); }
static lath_status t_ge(render *r, value v, const args *a, bool *out) { return compared(r, v, a, OP_GE, out); }

const test_row *chat_find_test(const char *name, size_t n)
{
    static const test_row rows[] = {{"defined", t_defined},
                                    {"undefined", t_undefined},
                                    {"none", t_none},
                                    {"string", t_string},
                                    {"number", t_number},
                                    {"integer", t_integer},
                                    {"float", t_float},
                                    {"boolean", t_boolean},
                                    {"true", t_true},
                                    {"false", t_false},
                                    {"mapping", t_mapping},
                                    {"sequence", t_sequence},
                                    {"iterable", t_iterable},
                                    {"callable", t_callable},
                                    {"escaped", t_escaped},
                                    {"lower", t_lower},
                                    {"upper", t_upper},
                                    {"odd", t_odd},
                                    {"even", t_even},
                                    {"divisibleby", t_divisibleby},
                                    {"in", t_in},
                                    {"sameas", t_sameas},
                                    {"filter", t_filter},
                                    {"test", t_test},
                                    {"eq", t_eq},
                                    {"equalto", t_eq},
                                    {"==", t_eq},
                                    {"ne", t_ne},
                                    {"!=", t_ne},
                                    {"lt", t_lt},
                                    {"lessthan", t_lt},
                                    {"<", t_lt},
                                    {"le", t_le},
                                    {"<=", t_le},
                                    {"gt", t_gt},
                                    {"greaterthan", t_gt},
                                    {">", t_gt},
                                    {"ge", t_ge},
                                    {">=", t_ge}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strlen(rows[i].name) == n && memcmp(rows[i].name, name, n) == 0) return &rows[i];
    }
    return NULL;
}
