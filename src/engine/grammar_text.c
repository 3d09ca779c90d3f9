/* SPDX-License-Identifier: Apache-2.0
 *
 * grammar_text.c: grammars as text (docs/grammar.md), close to what llama.cpp calls GBNF:
 *
 *     root  ::= "yes" | "no, " reason        # the text is what root says
 *     reason ::= [a-z]+ (" " [a-z]+){0,5}
 *
 * A rule goes on to the next `name ::=`. Recursive descent; groups nest 200 deep at most.
 */
#include <string.h>

#include "base/map.h"
#include "base/utf8.h"
#include "engine/grammar_expr.h"

enum { NESTED_MOST = 200, TEXT_MOST = 1 << 20, REPEAT_MOST = 1000000000 };

typedef struct parser {
    grammar_builder *b;
    const char *name, *s;
    size_t n, at;
    map rules;         /* name -> rule */
    uint32_t *defined; /* [GRAMMAR_RULES_MOST] line of its definition, 0: none */
    uint32_t *used;    /* line of its first use */
    int nested;
    size_t line_at; /* a place that was asked for before, and its line */
    uint32_t line;
} parser;

static uint32_t line_of(parser *p, size_t at)
{
    for (; p->line_at < at && p->line_at < p->n; p->line_at++) p->line += p->s[p->line_at] == '\n';
    for (; p->line_at > at; p->line_at--) p->line -= p->s[p->line_at - 1] == '\n';
    return p->line + 1;
}

static void fail_at(parser *p, size_t at, const char *what)
{
    grammar_fail(p->b, LATH_ERR_INPUT, "%s: line %u: %s", p->name, line_of(p, at), what);
}

static bool good(const parser *p) { return p->b->status == LATH_OK; }
static int peek(const parser *p) { return p->at < p->n ? (unsigned char)p->s[p->at] : -1; }
static int peek_at(const parser *p, size_t more)
{
    return p->n - p->at > more ? (unsigned char)p->s[p->at + more] : -1;
}

static void skip_space(parser *p)
{
    for (;;) {
        const int c = peek(p);
        if (c == '#') {
            while (p->at < p->n && p->s[p->at] != '\n') p->at++;
        } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
            p->at++;
        } else {
            return;
        }
    }
}

static bool is_name_byte(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static size_t name_length(const parser *p)
{
    size_t n = 0;
    while (is_name_byte(peek_at(p, n))) n++;
    return n;
}

/* A name with ::= behind it begins here. */
static bool at_rule(parser *p)
{
    const size_t begin = p->at;
    const size_t n = name_length(p);
    p->at += n;
    skip_space(p);
    const bool yes = n > 0 && p->n - p->at >= 3 && memcmp(p->s + p->at, "::=", 3) == 0;
    p->at = begin;
    return yes;
}

/* The rule of a name, made when it is met. */
static uint32_t rule_of(parser *p, const char *name, size_t n)
{
    uint64_t rule;
    if (map_find(&p->rules, name, n, &rule)) return (uint32_t)rule;
    char *copy = arena_strdup(p->b->mem, name, n);
    if (!copy) grammar_fail(p->b, LATH_ERR_NOMEM, "out of memory");
    rule = grammar_add_rule(p->b, copy);
    if (!good(p)) return 0;
    const lath_status st = map_add(&p->rules, copy, n, rule, NULL, &p->b->error);
    if (st != LATH_OK) p->b->status = st;
    p->used[rule] = line_of(p, p->at);
    return (uint32_t)rule;
}

/* ---------------------------------------------------------------------------------------------------------- characters */

static int hex_value(int c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static uint32_t parse_hex(parser *p, int digits)
{
    uint32_t cp = 0;
    for (int i = 0; i < digits; i++) {
        const int v = hex_value(peek(p));
        if (v < 0) {
            fail_at(p, p->at, "an escape wants more hexadecimal digits");
            return 0;
        }
        cp = cp << 4 | (uint32_t)v;
        p->at++;
    }
    if (cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF)) fail_at(p, p->at, "an escape is no Unicode character");
    return cp;
}

/* One character of a literal or a class, escaped or not. */
static uint32_t parse_char(parser *p)
{
    static const char letters[] = "nrt\\\"[]-^'", meanings[] = "\n\r\t\\\"[]-^'";
    uint32_t cp = 0;
    if (peek(p) != '\\') {
        const size_t n = p->at < p->n ? utf8_decode(p->s + p->at, p->n - p->at, &cp) : 0;
        if (n == 0) fail_at(p, p->at, "a character is missing");
        p->at += n;
        return cp;
    }
    const int c = peek_at(p, 1);
    p->at += c >= 0 ? 2 : 1;
    if (c == 'x') return parse_hex(p, 2);
    if (c == 'u') return parse_hex(p, 4);
    if (c == 'U') return parse_hex(p, 8);
    const char *k = c > 0 ? strchr(letters, c) : NULL;
    if (k) return (uint8_t)meanings[k - letters];
    fail_at(p, p->at, "no such escape: \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\^ \\xHH \\uHHHH \\UHHHHHHHH are");
    return 0;
}

static grammar_expr *parse_literal(parser *p)
{
    const size_t begin = p->at++;
    size_t n = 0, end = p->at;
    while (end < p->n && p->s[end] != '"') end += p->s[end] == '\\' ? 2 : 1;
    /* No escape is shorter than what it stands for. */
    char *text = arena_bytes(p->b->mem, end - p->at + 4, 1);
    if (!text) grammar_fail(p->b, LATH_ERR_NOMEM, "out of memory");
    while (good(p) && peek(p) != '"') {
        if (peek(p) < 0 || peek(p) == '\n') {
            fail_at(p, begin, "a literal is not closed");
            break;
        }
        const uint32_t cp = parse_char(p);
        if (good(p)) n += utf8_encode(cp, text + n);
    }
    p->at++;
    return grammar_literal(p->b, good(p) ? text : "", n);
}

static grammar_expr *parse_class(parser *p)
{
    const size_t begin = p->at++;
    grammar_chars chars = {0};
    const bool inverse = peek(p) == '^';
    if (inverse) p->at++;
    while (good(p) && peek(p) != ']') {
        if (peek(p) < 0 || peek(p) == '\n') {
            fail_at(p, begin, "a class is not closed");
            break;
        }
        const uint32_t lo = parse_char(p);
        uint32_t hi = lo;
        if (peek(p) == '-' && peek_at(p, 1) != ']') {
            p->at++;
            hi = parse_char(p);
        }
        if (hi < lo) fail_at(p, p->at, "a range of a class runs backwards");
        if (good(p)) grammar_chars_add(p->b, &chars, lo, hi);
    }
    p->at++;
    if (inverse) grammar_chars_invert(p->b, &chars);
    if (chars.n == 0) fail_at(p, begin, "a class of no characters");
    return grammar_char(p->b, &chars);
}

/* ---------------------------------------------------------------------------------------------------------- expressions */

static uint32_t parse_number(parser *p)
{
    uint64_t v = 0;
    if (peek(p) < '0' || peek(p) > '9') fail_at(p, p->at, "a number is missing in {}");
    while (peek(p) >= '0' && peek(p) <= '9' && v <= REPEAT_MOST) v = v * 10 + (uint64_t)(p->s[p->at++] - '0');
    if (v > REPEAT_MOST) fail_at(p, p->at, "a number of repetitions is over 1000000000");
    return (uint32_t)v;
}

/* {m} {m,} {m,n} {,n} */
static void parse_bounds(parser *p, uint32_t *min, uint32_t *max)
{
    p->at++;
    skip_space(p);
    *min = peek(p) == ',' ? 0 : parse_number(p);
    *max = *min;
    skip_space(p);
    if (peek(p) == ',') {
        p->at++;
        skip_space(p);
        *max = peek(p) == '}' ? GRAMMAR_UNBOUNDED : parse_number(p);
        skip_space(p);
    }
    if (good(p) && peek(p) != '}') fail_at(p, p->at, "want {m}, {m,}, {,n} or {m,n}");
    if (good(p) && *max < *min) fail_at(p, p->at, "the most repetitions are fewer than the least");
    p->at++;
}

static grammar_expr *parse_alternatives(parser *p);

static grammar_expr *parse_group(parser *p)
{
    const size_t begin = p->at++;
    if (++p->nested > NESTED_MOST) {
        grammar_fail(p->b, LATH_ERR_LIMIT, "%s: line %u: groups are nested deeper than %d", p->name, line_of(p, begin),
                     NESTED_MOST);
        return grammar_text(p->b, "");
    }
    grammar_expr *e = parse_alternatives(p);
    p->nested--;
    if (good(p) && peek(p) != ')') fail_at(p, begin, "a group is not closed");
    p->at++;
    return e;
}

static grammar_expr *parse_item(parser *p)
{
    const int c = peek(p);
    if (c == '"') return parse_literal(p);
    if (c == '[') return parse_class(p);
    if (c == '(') return parse_group(p);
    if (c == '.') {
        grammar_chars any = {0};
        p->at++;
        grammar_chars_add(p->b, &any, 0, 0x10FFFF);
        return grammar_char(p->b, &any);
    }
    const size_t n = name_length(p);
    const uint32_t rule = rule_of(p, p->s + p->at, n);
    p->at += n;
    return grammar_ref(p->b, rule);
}

static grammar_expr *parse_repeated(parser *p)
{
    grammar_expr *e = parse_item(p);
    int suffixes = 0;
    for (skip_space(p); good(p); skip_space(p)) {
        uint32_t min = 0, max = GRAMMAR_UNBOUNDED;
        const int c = peek(p);
        if (c == '{') {
            parse_bounds(p, &min, &max);
        } else if (c == '*' || c == '+' || c == '?') {
            p->at++;
            min = c == '+';
            max = c == '?' ? 1 : GRAMMAR_UNBOUNDED;
        } else {
            break;
        }
        if (++suffixes > NESTED_MOST) fail_at(p, p->at, "too many repetitions of repetitions");
        e = grammar_repeat(p->b, e, min, max);
    }
    return e;
}

static bool begins_item(const parser *p)
{
    const int c = peek(p);
    return c == '"' || c == '[' || c == '(' || c == '.' || is_name_byte(c);
}

typedef struct items {
    grammar_expr **v;
    size_t n, cap;
} items;

static void push(parser *p, items *x, grammar_expr *e)
{
    if (x->n == x->cap) {
        const size_t cap = x->cap ? 2 * x->cap : 8;
        grammar_expr **v = arena_array(p->b->mem, cap, sizeof(grammar_expr *));
        if (!v) {
            grammar_fail(p->b, LATH_ERR_NOMEM, "out of memory");
            return;
        }
        if (x->n) memcpy(v, x->v, x->n * sizeof(*v));
        x->v = v;
        x->cap = cap;
    }
    x->v[x->n++] = e;
}

static grammar_expr *parse_sequence(parser *p)
{
    items x = {0};
    for (skip_space(p); good(p) && begins_item(p) && !at_rule(p); skip_space(p)) push(p, &x, parse_repeated(p));
    return grammar_list(p->b, GRAMMAR_SEQ, x.v, x.n);
}

static grammar_expr *parse_alternatives(parser *p)
{
    items x = {0};
    push(p, &x, parse_sequence(p));
    while (good(p) && peek(p) == '|') {
        p->at++;
        push(p, &x, parse_sequence(p));
    }
    return grammar_list(p->b, GRAMMAR_ALT, x.v, x.n);
}

/* --------------------------------------------------------------------------------------------------------------- rules */

static void parse_rule(parser *p)
{
    const size_t begin = p->at, n = name_length(p);
    if (!at_rule(p)) {
        fail_at(p, begin, "want a rule: name ::= ...");
        return;
    }
    const uint32_t rule = rule_of(p, p->s + p->at, n);
    p->at += n;
    skip_space(p);
    p->at += 3;
    if (good(p) && p->defined[rule])
        grammar_fail(p->b, LATH_ERR_INPUT, "%s: line %u: rule \"%.80s\" is there already in line %u", p->name,
                     line_of(p, begin), p->b->rules[rule].name, p->defined[rule]);
    grammar_expr *e = parse_alternatives(p);
    if (!good(p)) return;
    p->defined[rule] = line_of(p, begin);
    p->b->rules[rule].expr = e;
}

static void parse(parser *p)
{
    const size_t bad = utf8_first_invalid(p->s, p->n);
    if (bad < p->n) fail_at(p, bad, "text is not UTF-8");
    if (p->n > TEXT_MOST)
        grammar_fail(p->b, LATH_ERR_LIMIT, "%s: a grammar of %zu bytes, at most %d", p->name, p->n, TEXT_MOST);
    p->defined = arena_array(p->b->mem, GRAMMAR_RULES_MOST, sizeof(*p->defined));
    p->used = arena_array(p->b->mem, GRAMMAR_RULES_MOST, sizeof(*p->used));
    if (!p->defined || !p->used) grammar_fail(p->b, LATH_ERR_NOMEM, "out of memory");
    if (good(p)) rule_of(p, "root", 4); /* rule 0 */
    for (skip_space(p); good(p) && p->at < p->n; skip_space(p)) parse_rule(p);
    for (size_t i = 0; good(p) && i < p->b->n_rules; i++) {
        if (p->defined[i]) continue;
        if (i == 0) grammar_fail(p->b, LATH_ERR_INPUT, "%s: there is no rule \"root\"", p->name);
        grammar_fail(p->b, LATH_ERR_INPUT, "%s: line %u: there is no rule \"%.80s\"", p->name, p->used[i],
                     p->b->rules[i].name);
    }
}

void grammar_from_text(grammar_builder *b, const char *name, const char *text, size_t n)
{
    parser p = {.b = b, .name = name, .s = text, .n = n};
    map_init(&p.rules, b->mem->alloc);
    parse(&p);
    map_deinit(&p.rules);
}
