/* SPDX-License-Identifier: Apache-2.0
 *
 * chat_value.h: the values of a rendering, as Python has them, and the state of a rendering. Values are small and copied; what they point to lies
 * in the rendering's arena (or the template's) and never changes, but for namespaces and loops.
 */
#ifndef LATH_CHAT_VALUE_H
#define LATH_CHAT_VALUE_H

#include "chat/chat_ast.h"

typedef enum value_kind {
    V_UNDEFINED,
    V_NONE,
    V_BOOL,
    V_INT,
    V_FLOAT,
    V_STR,
    V_LIST,
    V_TUPLE,
    V_DICT,
    V_RANGE,
    V_VIEW,     /* keys(), values(), items() of a dict: as a list, but not to be indexed */
    V_ITERATOR, /* what filters like map give: read once */
    V_NAMESPACE,
    V_MACRO,
    V_METHOD, /* a bound method */
    V_GLOBAL, /* a function of the environment */
    V_LOOP,
    V_CYCLER,
    V_JOINER
} value_kind;

typedef struct value value;
typedef struct value_list value_list;
typedef struct value_dict value_dict;
typedef struct value_range value_range;
typedef struct value_method value_method;
typedef struct value_undefined value_undefined;
typedef struct macro macro;
typedef struct loop loop;
typedef struct name_space name_space;
typedef struct cycler cycler;
struct method_row;
struct global_row;

struct value {
    value_kind kind;
    union {
        bool boolean;
        int64_t integer;
        double real;
        const chat_str *str;
        value_list *list; /* V_LIST, V_TUPLE, V_VIEW, V_ITERATOR */
        const value_dict *dict;
        const value_range *range;
        const value_undefined *undefined; /* may be NULL */
        const macro *macro;
        const value_method *method;
        const struct global_row *global;
        loop *loop;
        name_space *space;
        cycler *cycler; /* V_CYCLER, V_JOINER */
    } u;
};

struct value_list {
    value *v; /* [n] */
    size_t n;
    size_t at;        /* V_ITERATOR: how many were read */
    const char *view; /* V_VIEW: "dict_items" */
};
typedef struct dict_entry {
    value key, value;
} dict_entry;
struct value_dict {
    dict_entry *v; /* [n] in order of insertion */
    size_t n, cap;
};
struct value_range {
    int64_t start, stop, step;
    size_t n;
};
/* Why there is no value: a name, an attribute of something, or a text. */
struct value_undefined {
    const char *text; /* a whole message, or NULL */
    const char *name; /* [n] */
    uint32_t n;
    const char *of; /* the type it is no attribute of, or NULL: a variable */
    bool unsafe;    /* an attribute that the sandbox does not give out */
};
struct name_space {
    struct space_entry {
        const char *name;
        uint32_t n;
        value v;
        struct space_entry *next;
    } * first;
};
struct cycler {
    const value *v; /* [n] of a cycler; v[0] is the text of a joiner */
    size_t n, at;
};

/* ------------------------------------------------------------------------------------------------ state of a rendering */

typedef struct binding {
    int32_t id;
    value v;
    struct binding *next;
} binding;
/* Variables of a loop's round, a macro, a block: looked up from the inside out. */
typedef struct scope {
    struct scope *parent;
    binding *first;
} scope;

struct macro {
    const node *node;
    scope *scope; /* where it was written */
    const char *name;
};

typedef struct text_out text_out;
typedef enum flow { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE } flow;

typedef struct render {
    const chat_template *t;
    const chat_input *in;
    arena mem;
    size_t used, most; /* bytes of mem */
    int64_t steps;     /* left */
    int depth;
    uint32_t line; /* of what is evaluated, for messages */
    scope *scope;
    text_out *out;
    value *globals; /* [t->n_names] variables and functions by id */
    bool *is_set;   /* [t->n_names] */
    flow flow;
    lath_status st; /* of the first failure of the functions that return none */
    lath_error *err;
} render;

enum { RENDER_DEPTH_MOST = 400 };

/* Fails: "NAME: line 7: ...". */
lath_status render_fail(render *r, lath_status st, const char *fmt, ...) ERR_PRINTF(3, 4);
/* Counts work. */
lath_status render_step(render *r, size_t n);
/* Zeroed memory; NULL when there is none, r->st says why. */
void *render_bytes(render *r, size_t size);
void *render_array(render *r, size_t n, size_t size);
lath_status render_enter(render *r); /* one level deeper; r->depth-- leaves */

/* ------------------------------------------------------------------------------------------------------------- strings */

/* A string that is being written. Failure is kept in r->st. */
struct text_out {
    render *r;
    char *s;
    uint8_t *marks; /* NULL as long as all of it is of one kind */
    size_t n, cap;
    bool content;
};
void text_init(text_out *o, render *r);
void text_put(text_out *o, const char *s, size_t n, const uint8_t *marks, bool content);
void text_str(text_out *o, const chat_str *s);
void text_part(text_out *o, const chat_str *s, size_t begin, size_t end);
void text_own(text_out *o, const char *s); /* a literal of ours */
void text_char(text_out *o, char c, bool content);
void text_cp(text_out *o, uint32_t c, bool content);
/* n times c; the work and the memory are asked for before. */
lath_status text_fill(text_out *o, char c, int64_t n);
lath_status text_finish(text_out *o, value *out);

lath_status str_new(render *r, const char *s, size_t n, bool content, value *out);
lath_status str_own(render *r, const char *s, value *out);
/* Bytes begin..end of s. */
lath_status str_slice(render *r, const chat_str *s, size_t begin, size_t end, value *out);
/* The byte where code point i begins; i <= n_chars. */
size_t str_offset(const chat_str *s, size_t i);
static inline bool str_content_at(const chat_str *s, size_t i) { return s->marks ? s->marks[i] != 0 : s->content; }
bool str_is(const chat_str *s, const char *text);
bool str_equal(const chat_str *a, const chat_str *b);
/* Where b[0..n) begins in s[from..to); SIZE_MAX: nowhere. */
size_t str_find(const chat_str *s, size_t from, size_t to, const chat_str *b);
size_t str_rfind(const chat_str *s, size_t from, size_t to, const chat_str *b);

/* -------------------------------------------------------------------------------------------------------------- values */

#define VALUE_NONE ((value){.kind = V_NONE})
static inline value value_bool(bool b) { return (value){.kind = V_BOOL, .u.boolean = b}; }
static inline value value_int(int64_t i) { return (value){.kind = V_INT, .u.integer = i}; }
static inline value value_real(double d) { return (value){.kind = V_FLOAT, .u.real = d}; }
static inline bool value_is_number(value v) { return v.kind == V_BOOL || v.kind == V_INT || v.kind == V_FLOAT; }
static inline bool value_is_int(value v) { return v.kind == V_BOOL || v.kind == V_INT; }
static inline int64_t value_integer(value v) { return v.kind == V_BOOL ? v.u.boolean : v.u.integer; }
static inline double value_number(value v) { return v.kind == V_FLOAT ? v.u.real : (double)value_integer(v); }

/* Python's name of the type: "str". */
const char *value_type(value v);
lath_status value_undefined_name(render *r, const char *name, size_t n, const char *of, value *out);
lath_status value_undefined_text(render *r, const char *text, value *out);
/* The failure of using an undefined value. */
lath_status fail_undefined(render *r, value v);
/* "WHAT: not of a TYPE", or that it is undefined. */
lath_status fail_type(render *r, const char *what, value v);

/* n elements to be filled. */
lath_status value_new_list(render *r, value_kind kind, size_t n, value *out);
lath_status value_new_dict(render *r, size_t cap, value_dict **out);
/* Sets a key; it must be hashable. */
lath_status dict_set(render *r, value_dict *d, value key, value v);
lath_status dict_find(render *r, const value_dict *d, value key, const value **out);
const value *dict_find_text(const value_dict *d, const char *s, size_t n);
/* Fails for what Python cannot hash. */
lath_status value_hashable(render *r, value v, bool *out);

bool value_truth(value v);
lath_status value_equal(render *r, value a, value b, bool *out);
/* a < b: -1, 0, 1; fails where Python cannot order them. what: the operator. */
lath_status value_compare(render *r, value a, value b, const char *what, int *out);
lath_status value_contains(render *r, value item, value in, bool *out);
/* str(v), repr(v). */
lath_status put_value(text_out *o, value v);
lath_status put_repr(text_out *o, value v);
lath_status value_to_str(render *r, value v, const chat_str **out);
void put_int(text_out *o, int64_t i);
void put_real(text_out *o, double d);
/* len(v); false where it has none. */
bool value_len(value v, size_t *n);
/* v[i] of str, list, tuple, range; i in range. */
lath_status value_at(render *r, value v, size_t i, value *out);
/* What iter(v) gives, as an array; iterators are read. Fails for what cannot be iterated. */
lath_status value_items(render *r, value v, value **items, size_t *n);
lath_status value_attr(render *r, value v, const chat_str *name, value *out);
lath_status value_item(render *r, value v, value key, value *out);
lath_status value_slice(render *r, value v, value begin, value end, value step, value *out);
lath_status value_binary(render *r, binary_op op, value a, value b, value *out);
lath_status value_unary(render *r, binary_op op, value v, value *out);
/* Of a json_value. */
lath_status value_of_json(render *r, const json_value *j, bool content, value *out);
lath_status value_of_messages(render *r, const json_value *j, value *out);

#endif
