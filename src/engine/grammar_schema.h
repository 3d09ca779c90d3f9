/* SPDX-License-Identifier: Apache-2.0
 *
 * grammar_schema.h: inside the compiler of JSON schemas (docs/grammar.md says what is enforced). Every value that comes fits the schema; not every
 * value that fits may come. What cannot be enforced is refused with its place.
 */
#ifndef LATH_ENGINE_GRAMMAR_SCHEMA_H
#define LATH_ENGINE_GRAMMAR_SCHEMA_H

#include "base/json.h"
#include "base/map.h"
#include "engine/grammar_expr.h"

/* Where a schema stands: the JSON pointer, step by step. */
typedef struct schema_place schema_place;
struct schema_place {
    const schema_place *up; /* NULL: text is a whole pointer */
    const char *text;       /* a step; NULL: the index */
    size_t index;
};

/* A rule whose schema is read when those before it are done. */
typedef struct schema_rule {
    const json_value *v;
    const char *place;
    uint32_t rule;
} schema_rule;

typedef struct schema {
    grammar_builder *b;
    const char *name;
    const json_value *root;
    schema_rule *todo; /* [n_todo] */
    size_t n_todo, cap_todo;
    map rules; /* address of a schema that was referred to -> its rule */
    uint32_t space, string, character, plain, number, integer, value; /* rules that schemas share; 0: not made yet */
} schema;

/* LATH_ERR_UNSUPPORTED or _INPUT: "NAME: line 7: /properties/a: ...". Gives an expression that is of no matter. */
grammar_expr *schema_fail(schema *s, const json_value *v, const schema_place *at, lath_status st, const char *fmt, ...)
    ERR_PRINTF(5, 6);
/* Which keyword cannot be enforced. */
grammar_expr *schema_refuse(schema *s, const json_value *v, const schema_place *at, const char *why);

/* A value under the schema v. */
grammar_expr *schema_value(schema *s, const json_value *v, const schema_place *at);
/* The same as a rule of its own, for schemas that are used more than once. */
grammar_expr *schema_shared(schema *s, const json_value *v, const schema_place *at);
/* The schema that a "$ref" means; NULL after a failure. */
const json_value *schema_resolve(schema *s, const json_value *ref, const schema_place *at);
/* A member of an object, or an item of a list by its number in decimal; NULL: it is not there. */
const json_value *schema_step(const json_value *v, const char *step, size_t n);
enum {
    T_NULL = 1,
    T_BOOLEAN = 2,
    T_INTEGER = 4,
    T_NUMBER = 8,
    T_STRING = 16,
    T_ARRAY = 32,
    T_OBJECT = 64,
    T_ALL = 127
};
/* The bit of a type's name, 0: no such type; whether a value is of one of them. */
unsigned schema_type_bit(const json_value *name);
bool schema_is_of(const json_value *v, unsigned types);
/* No value fits both: only where it is certain. depth: 0. */
bool schema_disjoint(schema *s, const json_value *a, const json_value *b, int depth);

/* Whole numbers. false after a failure. */
bool schema_count(schema *s, const json_value *v, const char *key, const schema_place *at, uint32_t *out);

/* By type, with the keywords of v that belong to it. */
grammar_expr *schema_object(schema *s, const json_value *v, const schema_place *at);
grammar_expr *schema_array(schema *s, const json_value *v, const schema_place *at);
grammar_expr *schema_string(schema *s, const json_value *v, const schema_place *at);
grammar_expr *schema_number(schema *s, const json_value *v, const schema_place *at, bool whole);

/* Pieces. */
grammar_expr *schema_space(schema *s);                          /* what may stand between tokens of JSON */
grammar_expr *schema_any(schema *s);                            /* any value */
grammar_expr *schema_any_string(schema *s);                     /* with its quotes */
grammar_expr *schema_character(schema *s);                      /* one character inside a string, escaped or not */
grammar_expr *schema_plain_text(schema *s);                     /* any number of characters as they are */
grammar_expr *schema_literal(schema *s, const json_value *v);   /* exactly this value */
grammar_expr *schema_key(schema *s, const char *key, size_t n); /* "key": */
void schema_plain_chars(schema *s, grammar_chars *out);         /* those that may stand in a string as they are */
grammar_expr *schema_chars(schema *s,
                           const grammar_chars *c); /* one of them inside a string, escaped where it must be */
grammar_expr *schema_member(schema *s, grammar_expr *key, grammar_expr *value); /* key : value */

/* A string that the pattern (ECMA-262, the part in docs/grammar.md) is found in, with its quotes. */
grammar_expr *schema_pattern(schema *s, const json_value *v, const schema_place *at, const char *pattern, size_t n);

#endif
