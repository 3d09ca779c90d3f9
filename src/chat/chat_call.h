/* SPDX-License-Identifier: Apache-2.0
 * chat_call.h: calls: filters, tests, methods, functions of the environment, macros, and how they read their arguments. */
#ifndef LATH_CHAT_CALL_H
#define LATH_CHAT_CALL_H

#include "chat/chat_value.h"

typedef struct kwarg {
    const char *name;
    uint32_t n;
    value v;
} kwarg;

/* What a call is given. */
typedef struct args {
    const value *v; /* [n] */
    size_t n;
    const kwarg *kw; /* [n_kw] */
    size_t n_kw;
    const char *what; /* for messages: the name of what is called */
} args;

/* Reads arguments into out[0 .. n), each by place or by its name in `names` (n of them, with ' ' between); those that are not given keep what
 * out has. Fails for too many, unknown or repeated ones, or fewer than `least`. */
lath_status args_read(render *r, const args *a, const char *names, size_t least, value *out);
lath_status args_none(render *r, const args *a);
/* Typed readings of one argument. */
lath_status arg_int(render *r, const args *a, value v, int64_t *out);
lath_status arg_str(render *r, const args *a, value v, const chat_str **out);

typedef lath_status (*filter_fn)(render *r, value v, const args *a, value *out);
typedef struct filter_row {
    const char *name;
    filter_fn fn;
} filter_row;
typedef lath_status (*test_fn)(render *r, value v, const args *a, bool *out);
typedef struct test_row {
    const char *name;
    test_fn fn;
} test_row;
typedef struct method_row {
    const char *name;
    lath_status (*fn)(render *r, value self, const args *a, value *out); /* NULL: not supported */
} method_row;
typedef struct global_row {
    const char *name;
    lath_status (*fn)(render *r, const args *a, value *out);
} global_row;

struct value_method {
    value self;
    const method_row *row;
};

/* NULL: not known. */
const filter_row *chat_find_filter(const char *name, size_t n);
const test_row *chat_find_test(const char *name, size_t n);
const global_row *chat_find_global(const char *name, size_t n);
/* The method of that name for values of the kind. unsafe: it is one that the sandbox does not give out. */
const method_row *chat_find_method(value_kind kind, const char *name, size_t n, bool *unsafe);

/* By name at run time, as `map` does. */
lath_status call_filter(render *r, const chat_str *name, value v, const args *a, value *out);
lath_status call_test(render *r, const chat_str *name, value v, const args *a, bool *out);

/* chat_filters.c has the table; these are its parts. */
extern const filter_row chat_filters_text[], chat_filters_list[];

lath_status eval(render *r, const node *n, value *out);
lath_status eval_block_filter(render *r, const node *n, value *v);
/* A call with the keyword argument `caller` in addition. */
lath_status eval_call_with(render *r, const node *n, value caller, value *out);
lath_status exec(render *r, const node *body);
lath_status call_value(render *r, value callee, const args *a, value *out);
lath_status call_macro(render *r, const macro *m, const args *a, value *out);
lath_status call_loop(render *r, loop *l, const args *a, value *out);
lath_status loop_attr(render *r, loop *l, const chat_str *name, value *out);
lath_status loop_length(render *r, loop *l, size_t *out);
extern const method_row chat_loop_methods[], chat_cycler_methods[];
lath_status exec_captured(render *r, const node *body, value *out);
lath_status assign(render *r, const node *target, value v);
lath_status scope_set(render *r, int32_t id, value v);
lath_status space_set(render *r, name_space *s, const char *name, size_t n, value v);

/* JSON as Python's json.dumps writes it (chat_json.c). */
lath_status filter_tojson(render *r, value v, const args *a, value *out);
/* `format % args` and format.format() (chat_format.c). */
lath_status format_percent(render *r, const chat_str *format, value v, value *out);
lath_status format_braces(render *r, const chat_str *format, const args *a, value *out);
/* strftime (chat_date.c). */
lath_status global_strftime_now(render *r, const args *a, value *out);
/* Text methods that filters use as well (chat_str.c). */
lath_status str_strip(render *r, const chat_str *s, const chat_str *chars, bool left, bool right, value *out);
typedef enum str_case { CASE_UPPER, CASE_LOWER, CASE_CAPITALIZE, CASE_TITLE, CASE_SWAP, CASE_JINJA_TITLE } str_case;
lath_status str_change_case(render *r, const chat_str *s, str_case how, value *out);
lath_status str_replace(render *r, const chat_str *s, const chat_str *old, const chat_str *to, int64_t most,
                        value *out);
lath_status str_split_lines(render *r, const chat_str *s, bool keep, value *out);
lath_status str_center(render *r, const chat_str *s, int64_t width, char side, char fill, value *out);
lath_status str_join(render *r, const chat_str *by, value items, value *out);
bool str_all_upper(const chat_str *s);
bool str_all_lower(const chat_str *s);
/* int(text, base), float(text): false where Python raises. A number over 63 bits fails. */
lath_status text_to_int(render *r, const chat_str *s, int64_t base, int64_t *v, bool *ok);
lath_status text_to_real(render *r, const chat_str *s, double *v, bool *ok);
/* int(d): fails where it is over 63 bits; *ok false for infinities and NaN. */
lath_status real_to_int(render *r, double d, int64_t *v, bool *ok);
/* round(d, digits). */
lath_status round_real(render *r, double d, int64_t digits, double *out);

#endif
