/* SPDX-License-Identifier: Apache-2.0
 *
 * grammar_json.c: pieces of JSON (RFC 8259) as rules that schemas share: white space, strings, any value, values that are given.
 *
 * White space is narrower than JSON's, so that no text goes on in it for ever: between tokens stands nothing, one space, or the end of a line with up to 64
 * spaces or tabs behind it.
 */
#include "engine/grammar_schema.h"

#include <math.h>
#include <string.h>

enum { INDENT_MOST = 64 };

/* A rule that is made when it is first asked for. */
static bool begin_rule(schema *s, uint32_t *rule, const char *name)
{
    if (*rule) return false;
    *rule = grammar_add_rule(s->b, name);
    return *rule != 0;
}

static void end_rule(schema *s, uint32_t rule, grammar_expr *e)
{
    if (s->b->status == LATH_OK) s->b->rules[rule].expr = e;
}

grammar_expr *schema_space(schema *s)
{
    grammar_builder *b = s->b;
    if (begin_rule(s, &s->space, "space")) {
        grammar_chars blank = {0};
        grammar_chars_add(b, &blank, ' ', ' ');
        grammar_chars_add(b, &blank, '\t', '\t');
        grammar_expr *line =
            GRAMMAR_SEQ_OF(b, grammar_text(b, "\n"), grammar_repeat(b, grammar_char(b, &blank), 0, INDENT_MOST));
        end_rule(s, s->space, grammar_repeat(b, GRAMMAR_ALT_OF(b, grammar_text(b, " "), line), 0, 1));
    }
    return grammar_ref(b, s->space);
}

/* ------------------------------------------------------------------------------------------------------------- strings */

void schema_plain_chars(schema *s, grammar_chars *out)
{
    *out = (grammar_chars){0};
    grammar_chars_add(s->b, out, 0, 0x1F);
    grammar_chars_add(s->b, out, '"', '"');
    grammar_chars_add(s->b, out, '\\', '\\');
    grammar_chars_invert(s->b, out);
}

static grammar_expr *hex_digit(grammar_builder *b, const char *first, const char *last)
{
    grammar_chars c = {0};
    for (int i = 0; first[i]; i++) grammar_chars_add(b, &c, (uint8_t)first[i], (uint8_t)last[i]);
    return grammar_char(b, &c);
}

/* \" \n ...; \uXXXX of a character, two of them for those beyond U+FFFF (never half a pair). */
static grammar_expr *escape(grammar_builder *b)
{
    grammar_chars letters = {0};
    for (const char *p = "\"\\/bfnrt"; *p; p++) grammar_chars_add(b, &letters, (uint8_t)*p, (uint8_t)*p);
    grammar_expr *hex = hex_digit(b, "0aA", "9fF"), *d = hex_digit(b, "dD", "dD");
    grammar_expr *hex2 = GRAMMAR_SEQ_OF(b, hex, hex);
    grammar_expr *single = GRAMMAR_ALT_OF(b, GRAMMAR_SEQ_OF(b, hex_digit(b, "0aAeE", "9cCfF"), hex, hex2),
                                          GRAMMAR_SEQ_OF(b, d, hex_digit(b, "0", "7"), hex2));
    grammar_expr *pair = GRAMMAR_SEQ_OF(b, d, hex_digit(b, "8aA", "9bB"), hex2, grammar_text(b, "\\u"), d,
                                        hex_digit(b, "cC", "fF"), hex2);
    return GRAMMAR_SEQ_OF(b, grammar_text(b, "\\"),
                          GRAMMAR_ALT_OF(b, grammar_char(b, &letters),
                                         GRAMMAR_SEQ_OF(b, grammar_text(b, "u"), GRAMMAR_ALT_OF(b, single, pair))));
}

static grammar_expr *character(schema *s)
{
    grammar_chars plain;
    schema_plain_chars(s, &plain);
    return GRAMMAR_ALT_OF(s->b, grammar_char(s->b, &plain), escape(s->b));
}

grammar_expr *schema_character(schema *s)
{
    if (begin_rule(s, &s->character, "character")) end_rule(s, s->character, character(s));
    return grammar_ref(s->b, s->character);
}

grammar_expr *schema_plain_text(schema *s)
{
    grammar_chars plain;
    if (begin_rule(s, &s->plain, "plain text")) {
        schema_plain_chars(s, &plain);
        end_rule(s, s->plain, grammar_repeat(s->b, grammar_char(s->b, &plain), 0, GRAMMAR_UNBOUNDED));
    }
    return grammar_ref(s->b, s->plain);
}

grammar_expr *schema_any_string(schema *s)
{
    grammar_builder *b = s->b;
    if (begin_rule(s, &s->string, "string")) {
        grammar_expr *body = grammar_repeat(b, character(s), 0, GRAMMAR_UNBOUNDED);
        end_rule(s, s->string, GRAMMAR_SEQ_OF(b, grammar_text(b, "\""), body, grammar_text(b, "\"")));
    }
    return grammar_ref(b, s->string);
}

/* As json_put_string writes it. */
static grammar_expr *escaped(schema *s, uint32_t cp)
{
    const char c = (char)cp;
    buf text;
    buf_init(&text, s->b->mem->alloc, 64);
    json_put_string(&text, &c, 1);
    const size_t n = text.len > 2 ? text.len - 2 : 0; /* without quotes */
    char *copy = n ? arena_strdup(s->b->mem, text.data + 1, n) : NULL;
    if (!copy) grammar_fail(s->b, LATH_ERR_NOMEM, "out of memory");
    buf_deinit(&text);
    return grammar_literal(s->b, copy ? copy : "", copy ? n : 0);
}

grammar_expr *schema_chars(schema *s, const grammar_chars *c)
{
    grammar_expr *alts[40];
    size_t n = 0;
    grammar_chars plain;
    schema_plain_chars(s, &plain);
    grammar_chars_intersect(s->b, &plain, c);
    if (plain.n) alts[n++] = grammar_char(s->b, &plain);
    for (uint32_t cp = 0; cp <= '\\'; cp++) {
        if ((cp < 0x20 || cp == '"' || cp == '\\') && grammar_chars_has(c, cp)) alts[n++] = escaped(s, cp);
    }
    return grammar_list(s->b, GRAMMAR_ALT, alts, n);
}

/* --------------------------------------------------------------------------------------------------------- given values */

static void put_value(schema *s, buf *b, const json_value *v);

static void put_items(schema *s, buf *b, const json_value *v)
{
    const bool object = v->kind == JSON_OBJECT;
    buf_char(b, object ? '{' : '[');
    for (const json_value *m = v->u.items.first; m; m = m->next) {
        if (m != v->u.items.first) buf_char(b, ',');
        if (object) json_put_string(b, m->key, m->key_len);
        if (object) buf_char(b, ':');
        put_value(s, b, m);
    }
    buf_char(b, object ? '}' : ']');
}

static void put_value(schema *s, buf *b, const json_value *v)
{
    switch (v->kind) {
    case JSON_NULL: buf_str(b, "null"); break;
    case JSON_BOOL: buf_str(b, v->u.boolean ? "true" : "false"); break;
    case JSON_INT: buf_printf(b, "%lld", (long long)v->u.integer); break;
    case JSON_REAL:
        /* A whole number that int64 does not hold was rounded when it was read. */
        if (fabs(v->u.real) >= 0x1p63)
            grammar_fail(s->b, LATH_ERR_UNSUPPORTED, "%s: line %u: a number of this size cannot be given exactly",
                         s->name, v->line);
        json_put_f64(b, v->u.real);
        break;
    case JSON_STRING: json_put_string(b, v->u.string.data, v->u.string.len); break;
    default: put_items(s, b, v);
    }
}

static grammar_expr *finish_literal(schema *s, buf *text)
{
    const lath_status st = buf_status(text, &s->b->error);
    if (st != LATH_OK && s->b->status == LATH_OK) s->b->status = st;
    char *copy = s->b->status == LATH_OK ? arena_strdup(s->b->mem, text->data, text->len) : NULL;
    if (!copy) grammar_fail(s->b, LATH_ERR_NOMEM, "out of memory");
    grammar_expr *e = grammar_literal(s->b, copy ? copy : "", copy ? text->len : 0);
    buf_deinit(text);
    return e;
}

grammar_expr *schema_literal(schema *s, const json_value *v)
{
    buf text;
    buf_init(&text, s->b->mem->alloc, GRAMMAR_BYTES_MOST);
    put_value(s, &text, v);
    return finish_literal(s, &text);
}

grammar_expr *schema_key(schema *s, const char *key, size_t n)
{
    buf text;
    buf_init(&text, s->b->mem->alloc, GRAMMAR_BYTES_MOST);
    json_put_string(&text, key, n);
    return finish_literal(s, &text);
}

grammar_expr *schema_member(schema *s, grammar_expr *key, grammar_expr *value)
{
    return GRAMMAR_SEQ_OF(s->b, key, grammar_text(s->b, ":"), schema_space(s), value);
}

/* ----------------------------------------------------------------------------------------------------------- any value */

/* open (item ("," item)*)? close, with white space. */
static grammar_expr *enclosed(schema *s, const char *open, grammar_expr *item, const char *close)
{
    grammar_builder *b = s->b;
    grammar_expr *more = GRAMMAR_SEQ_OF(b, grammar_text(b, ","), schema_space(s), item);
    grammar_expr *items = GRAMMAR_SEQ_OF(b, schema_space(s), item, grammar_repeat(b, more, 0, GRAMMAR_UNBOUNDED),
                                         schema_space(s), grammar_text(b, close));
    grammar_expr *empty = GRAMMAR_SEQ_OF(b, schema_space(s), grammar_text(b, close));
    return GRAMMAR_SEQ_OF(b, grammar_text(b, open), GRAMMAR_ALT_OF(b, empty, items));
}

grammar_expr *schema_any(schema *s)
{
    static const schema_place nowhere = {NULL, "", 0};
    static const json_value no_keywords = {.kind = JSON_OBJECT};
    grammar_builder *b = s->b;
    if (begin_rule(s, &s->value, "value")) {
        grammar_expr *value = grammar_ref(b, s->value);
        grammar_expr *member = schema_member(s, schema_any_string(s), value);
        end_rule(s, s->value,
                 GRAMMAR_ALT_OF(b, enclosed(s, "{", member, "}"), enclosed(s, "[", value, "]"), schema_any_string(s),
                                schema_number(s, &no_keywords, &nowhere, false), grammar_text(b, "true"),
                                grammar_text(b, "false"), grammar_text(b, "null")));
    }
    return grammar_ref(b, s->value);
}
