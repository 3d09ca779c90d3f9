/* SPDX-License-Identifier: Apache-2.0
 *
 * grammar_expr.h: grammars while they are written down: rules of expressions over bytes, in an arena. Text grammars, JSON schemas and patterns all
 * become these; grammar_compile.c makes an automaton of them.
 *
 * A builder's failure is sticky: the first error stays in it, and whatever is built afterwards is of no matter. Constructors never give NULL. Expressions may be
 * used in several places.
 */
#ifndef LATH_ENGINE_GRAMMAR_EXPR_H
#define LATH_ENGINE_GRAMMAR_EXPR_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"

typedef enum grammar_expr_kind {
    GRAMMAR_LITERAL, /* these bytes; none: the empty text */
    GRAMMAR_BYTES,   /* one byte of a set */
    GRAMMAR_SEQ,     /* one behind the other */
    GRAMMAR_ALT,     /* one of them; of none: no text at all */
    GRAMMAR_REPEAT,  /* min to max times */
    GRAMMAR_RULE     /* what the rule says */
} grammar_expr_kind;

typedef struct grammar_expr grammar_expr;
struct grammar_expr {
    grammar_expr_kind kind;
    uint32_t need; /* grammar_compile.c's: levels of calls, and whether the empty text fits */
    bool empty;
    union {
        struct {
            const char *s;
            size_t n;
        } literal;
        uint64_t set[4]; /* bit b % 64 of word b / 64 */
        struct {
            grammar_expr **v;
            size_t n;
        } list; /* SEQ, ALT */
        struct {
            grammar_expr *body;
            uint32_t min, max; /* max GRAMMAR_UNBOUNDED: no limit */
        } repeat;
        uint32_t rule;
    } u;
};

enum {
    GRAMMAR_RULES_MOST = 1 << 16,
    GRAMMAR_BYTES_MOST = 1 << 20, /* of all literals */
    GRAMMAR_EXPRS_MOST = 1 << 20,
    GRAMMAR_RANGES_MOST = 1 << 12 /* of a set of characters */
};
#define GRAMMAR_UNBOUNDED UINT32_MAX

typedef struct grammar_rule {
    const char *name; /* for messages */
    grammar_expr *expr;
    uint32_t need; /* as of its expression */
    bool empty;
} grammar_rule;

typedef struct grammar_builder {
    arena *mem;
    grammar_rule *rules; /* [n_rules]; rule 0 is the root */
    size_t n_rules, cap_rules, n_exprs, n_bytes;
    lath_status status;
    lath_error error;
} grammar_builder;

void grammar_builder_init(grammar_builder *b, arena *mem);
/* The first failure counts. Prints a message. */
void grammar_fail(grammar_builder *b, lath_status st, const char *fmt, ...) ERR_PRINTF(3, 4);

/* A rule whose expression follows; 0 after a failure. The name is borrowed. */
uint32_t grammar_add_rule(grammar_builder *b, const char *name);

grammar_expr *grammar_literal(grammar_builder *b, const char *s, size_t n); /* borrowed */
grammar_expr *grammar_text(grammar_builder *b, const char *s);              /* a literal, terminated */
grammar_expr *grammar_ref(grammar_builder *b, uint32_t rule);
grammar_expr *grammar_repeat(grammar_builder *b, grammar_expr *e, uint32_t min, uint32_t max);
/* v: copied. */
grammar_expr *grammar_list(grammar_builder *b, grammar_expr_kind kind, grammar_expr *const *v, size_t n);
#define GRAMMAR_LIST(b, kind, ...)                                  \
    grammar_list((b), (kind), (grammar_expr *const[]){__VA_ARGS__}, \
                 sizeof((grammar_expr *const[]){__VA_ARGS__}) / sizeof(grammar_expr *))
#define GRAMMAR_SEQ_OF(b, ...) GRAMMAR_LIST(b, GRAMMAR_SEQ, __VA_ARGS__)
#define GRAMMAR_ALT_OF(b, ...) GRAMMAR_LIST(b, GRAMMAR_ALT, __VA_ARGS__)

/* Sets of code points: ranges in rising order that do not touch, without surrogates. */
typedef struct grammar_range {
    uint32_t lo, hi;
} grammar_range;
typedef struct grammar_chars {
    grammar_range *v;
    size_t n, cap;
} grammar_chars;
void grammar_chars_add(grammar_builder *b, grammar_chars *c, uint32_t lo, uint32_t hi);
void grammar_chars_add_all(grammar_builder *b, grammar_chars *c, const grammar_chars *more);
void grammar_chars_invert(grammar_builder *b, grammar_chars *c);
/* Both have it. */
void grammar_chars_intersect(grammar_builder *b, grammar_chars *c, const grammar_chars *with);
bool grammar_chars_has(const grammar_chars *c, uint32_t cp);
/* One character of the set, as UTF-8 (Unicode 15, table 3-7). */
grammar_expr *grammar_char(grammar_builder *b, const grammar_chars *c);

/* The text grammar and the schema, each as rules; rule 0 is where texts begin. name leads messages. */
void grammar_from_text(grammar_builder *b, const char *name, const char *text, size_t n);
void grammar_from_schema(grammar_builder *b, const char *name, const char *json, size_t n);

#endif
