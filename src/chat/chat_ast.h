/* SPDX-License-Identifier: Apache-2.0
 * chat_ast.h: a template as a tree, its strings, and what lexer and parser share. Everything lies in the template's arena and is immutable. */
#ifndef LATH_CHAT_AST_H
#define LATH_CHAT_AST_H

#include "base/map.h"
#include "chat/chat.h"

/* A string. marks say of each byte whether it is content (1); NULL: all are what `content` says. */
typedef struct chat_str {
    const char *s;
    const uint8_t *marks;
    uint32_t n, n_chars; /* bytes, code points */
    bool content;
    bool markup; /* jinja2's Markup, from `safe` and `escape` */
} chat_str;

/* ------------------------------------------------------------------------------------------------------------ tokens */

typedef enum token_kind {
    T_EOF,
    T_DATA,
    T_VAR_BEGIN,
    T_VAR_END,
    T_BLOCK_BEGIN,
    T_BLOCK_END,
    T_NAME,
    T_STRING,
    T_INT,
    T_FLOAT,
    T_ADD,
    T_SUB,
    T_MUL,
    T_DIV,
    T_FLOORDIV,
    T_MOD,
    T_POW,
    T_TILDE,
    T_LBRACKET,
    T_RBRACKET,
    T_LPAREN,
    T_RPAREN,
    T_LBRACE,
    T_RBRACE,
    T_EQ,
    T_NE,
    T_GT,
    T_GE,
    T_LT,
    T_LE,
    T_ASSIGN,
    T_DOT,
    T_COLON,
    T_PIPE,
    T_COMMA,
    T_SEMICOLON
} token_kind;

typedef struct token {
    token_kind kind;
    uint32_t line;
    const char *s; /* T_DATA, T_STRING (unescaped), T_NAME, and the text of operators */
    uint32_t n;
    int64_t integer;
    double real;
} token;

/* ------------------------------------------------------------------------------------------------------------- nodes */

typedef enum node_kind {
    /* expressions */
    N_STRING, /* str */
    N_INT,
    N_FLOAT,
    N_BOOL, /* integer */
    N_NONE,
    N_NAME,   /* id */
    N_NSREF,  /* id . str: target of an assignment */
    N_TUPLE,  /* list */
    N_LIST,   /* list */
    N_DICT,   /* list: key, value, key, value */
    N_ATTR,   /* a . str */
    N_ITEM,   /* a [ b ] */
    N_SLICE,  /* a [ b : c : d ], each may be NULL */
    N_CALL,   /* a (args) */
    N_FILTER, /* a | str (args); fn is its row; a NULL: of a block */
    N_TEST,   /* a is str (args); fn */
    N_AND,
    N_OR,
    N_NOT,
    N_COMPARE, /* a, then list of N_OPERAND */
    N_OPERAND, /* op, a */
    N_BINARY,  /* a op b */
    N_UNARY,   /* op a */
    N_CONCAT,  /* list */
    N_IF_ELSE, /* b if a else c (may be NULL) */
    /* statements */
    N_DATA,       /* str */
    N_PRINT,      /* a */
    N_IF,         /* a: list, else: b (a chain of statements) */
    N_FOR,        /* target a in b if c: list, else d; flag: recursive */
    N_SET,        /* a = b */
    N_SET_BLOCK,  /* a = filter b (may be NULL) of list */
    N_WITH,       /* args: target, value, target, value; list */
    N_MACRO,      /* id (params): list */
    N_CALL_BLOCK, /* call a with the macro b */
    N_FILTER_BLOCK,
    N_SCOPE, /* list in a scope of its own (generation) */
    N_BREAK,
    N_CONTINUE
} node_kind;

typedef enum binary_op {
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_FLOORDIV,
    OP_MOD,
    OP_POW,
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_IN,
    OP_NOT_IN,
    OP_NEG,
    OP_POS
} binary_op;

typedef struct node node;

typedef struct keyword {
    struct keyword *next;
    const char *name;
    uint32_t n;
    node *value;
} keyword;

typedef struct call_args {
    node *positional; /* chained by next */
    keyword *keywords;
    node *star, *star_star;
} call_args;

typedef struct param {
    struct param *next;
    int32_t id;
    node *value; /* the default or NULL */
} param;

struct node {
    node_kind kind;
    binary_op op;
    uint32_t line;
    int32_t id; /* of a name */
    node *next; /* of the chain that it is in */
    node *a, *b, *c, *d, *list;
    const chat_str *str;
    call_args args;
    param *params;
    int64_t integer;
    double real;
    const void *fn;                              /* row of the table of filters or tests; NULL: not known */
    bool flag;                                   /* N_FOR: recursive */
    bool uses_caller, uses_kwargs, uses_varargs; /* N_MACRO */
};

enum { CHAT_NAMES_MOST = 4096, CHAT_NESTING_MOST = 64 };

struct chat_template {
    arena mem;
    const char *name;
    node *body;
    map ids;            /* names of variables -> id */
    const char **names; /* [n_names] */
    int32_t n_names, cap_names;
    uint8_t *loaded; /* [n_names] 1: read somewhere */
    bool has_ids;
};

/* The tokens of a template, T_EOF at the end (chat_lex.c). */
lath_status chat_lex(chat_template *t, const char *text, size_t n, token **out, lath_error *err);
/* Makes t->body (chat_parse.c). */
lath_status chat_parse(chat_template *t, const token *tokens, lath_error *err);

/* ------------------------------------------------------------------------------------------------ parser's two files */

typedef struct parser {
    chat_template *t;
    const token *at;
    lath_error *err;
    int depth;
    bool soft;           /* in an `if` or inline if: what is not known is an error only when it is met */
    int32_t loops;       /* loops around, for break and continue */
    int undecided;       /* expressions around that may turn out to be an inline if */
    const node *unknown; /* the first filter or test in them that is not known */
    bool uses_caller, uses_kwargs, uses_varargs;
} parser;

lath_status parse_fail(parser *p, uint32_t line, lath_status st, const char *fmt, ...) ERR_PRINTF(4, 5);
lath_status parse_unexpected(parser *p);
lath_status parse_expect(parser *p, token_kind kind, const char *what);
bool parse_is_name(const token *t, const char *name);
bool parse_skip_name(parser *p, const char *name);
bool parse_skip(parser *p, token_kind kind);
lath_status parse_new(parser *p, node_kind kind, uint32_t line, node **out);
lath_status parse_str(parser *p, const char *s, uint32_t n, const chat_str **out);
lath_status parse_id(parser *p, const token *name, int32_t *out);
/* Expressions (chat_parse_expr.c). ends: a name that ends a tuple, or NULL. */
lath_status parse_expression(parser *p, bool with_condition, node **out);
lath_status parse_tuple(parser *p, bool with_condition, const char *ends, bool parentheses, node **out);
lath_status parse_target(parser *p, const char *ends, bool with_namespace, node **out);
lath_status parse_filters(parser *p, node *of, bool begun, node **out);

#endif
