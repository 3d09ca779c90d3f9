/* SPDX-License-Identifier: Apache-2.0
 *
 * grammar_pattern.c: strings of a schema: lengths, formats, and patterns, which are regular expressions (ECMA-262). The part of them that is enforced:
 *
 *     characters, escapes of characters, .  [classes]  \d \w \s \D \W \S  ( ) (?: ) |  * + ? {m} {m,} {m,n}  ^ first and $ last
 *
 * Where dialects differ (what a letter or a digit is beyond ASCII, what . takes), only strings come on which all agree. A character that JSON
 * escapes comes escaped.
 */
#include <string.h>

#include "base/utf8.h"
#include "engine/grammar_schema.h"

enum { NESTED_MOST = 100, REPEAT_MOST = 100000 };

typedef struct pattern {
    schema *s;
    const json_value *v; /* the keyword, for messages */
    const schema_place *at;
    const char *p, *end;
    int nested;
} pattern;

static bool good(const pattern *x) { return x->s->b->status == LATH_OK; }
static int peek(const pattern *x) { return x->p < x->end ? (unsigned char)*x->p : -1; }
static int peek_at(const pattern *x, size_t n) { return (size_t)(x->end - x->p) > n ? (unsigned char)x->p[n] : -1; }

static void refuse(pattern *x, const char *what)
{
    schema_fail(x->s, x->v, x->at, LATH_ERR_UNSUPPORTED, "\"%s\": %s cannot be enforced", x->v->key ? x->v->key : "",
                what);
}

static void malformed(pattern *x, const char *what)
{
    schema_fail(x->s, x->v, x->at, LATH_ERR_INPUT, "\"%s\": %s", x->v->key ? x->v->key : "", what);
}

/* ------------------------------------------------------------------------------------------------------------- classes */

static void add_text(pattern *x, grammar_chars *c, const char *ranges)
{
    for (; *ranges; ranges += 2) grammar_chars_add(x->s->b, c, (uint8_t)ranges[0], (uint8_t)ranges[1]);
}

static void only_ascii(pattern *x, grammar_chars *c)
{
    grammar_chars ascii = {0};
    grammar_chars_add(x->s->b, &ascii, 0, 0x7F);
    grammar_chars_intersect(x->s->b, c, &ascii);
}

/* \d and so on; false: it is none of them. */
static bool shorthand(pattern *x, int letter, grammar_chars *out)
{
    const int lower = letter | 0x20;
    *out = (grammar_chars){0};
    if (lower == 'd') {
        add_text(x, out, "09");
    } else if (lower == 'w') {
        add_text(x, out, "azAZ09__");
    } else if (lower == 's') {
        add_text(x, out, "  \t\r");
    } else {
        return false;
    }
    if (letter == lower) return true;
    grammar_chars_invert(x->s->b, out);
    only_ascii(x, out);
    if (lower == 's') { /* separators that some dialects take for spaces */
        grammar_chars visible = {0};
        grammar_chars_add(x->s->b, &visible, '!', '~');
        grammar_chars_intersect(x->s->b, out, &visible);
    }
    return true;
}

static uint32_t hex(pattern *x, int digits)
{
    uint32_t cp = 0;
    for (int i = 0; i < digits; i++) {
        static const char all[] = "0123456789abcdef";
        const int c = peek(x);
        const char *k = c > ' ' ? memchr(all, c | 0x20, 16) : NULL;
        if (!k) {
            malformed(x, "an escape wants more hexadecimal digits");
            return 0;
        }
        cp = cp << 4 | (uint32_t)(k - all);
        x->p++;
    }
    if (cp >= 0xD800 && cp <= 0xDFFF) refuse(x, "half of a surrogate pair");
    return cp;
}

/* Behind a backslash: an escape of one character. */
static uint32_t escaped(pattern *x)
{
    static const char letters[] = "nrtfv", meanings[] = "\n\r\t\f\v";
    const int c = peek(x);
    const char *k = c > 0 ? strchr(letters, c) : NULL;
    if (c < 0) {
        malformed(x, "ends with a backslash");
        return 0;
    }
    x->p++;
    if (k) return (uint8_t)meanings[k - letters];
    if (c == 'x') return hex(x, 2);
    if (c == 'u') return hex(x, 4);
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80)
        refuse(x, "an escape of this kind (references, word borders, properties)");
    return (uint32_t)c;
}

static uint32_t plain_char(pattern *x)
{
    uint32_t cp = 0;
    const size_t n = utf8_decode(x->p, (size_t)(x->end - x->p), &cp);
    x->p += n ? n : 1;
    return cp;
}

/* One item of a class: a shorthand into *set (true) or a character. */
static bool class_item(pattern *x, grammar_chars *set, uint32_t *cp)
{
    if (peek(x) != '\\') {
        *cp = plain_char(x);
        return false;
    }
    x->p++;
    if (shorthand(x, peek(x), set)) {
        x->p++;
        return true;
    }
    if (peek(x) == 'b') { /* backspace here */
        x->p++;
        *cp = '\b';
        return false;
    }
    *cp = escaped(x);
    return false;
}

static grammar_expr *parse_class(pattern *x)
{
    grammar_chars c = {0}, set;
    bool inverse = false, ascii = false;
    x->p++;
    if (peek(x) == '^') {
        inverse = true;
        x->p++;
    }
    while (good(x) && peek(x) != ']') {
        uint32_t lo = 0, hi;
        if (peek(x) < 0) malformed(x, "a class is not closed");
        if (!good(x)) break;
        /* Python warns of these, and other dialects give them a meaning. */
        if (peek(x) == '[' || (peek(x) == peek_at(x, 1) && strchr("-&~|", peek(x))))
            refuse(x, "a class with unescaped '[' or doubled signs");
        if (class_item(x, &set, &lo)) {
            grammar_chars_add_all(x->s->b, &c, &set);
            ascii = true;
            continue;
        }
        hi = lo;
        if (peek(x) == '-' && peek_at(x, 1) >= 0 && peek_at(x, 1) != ']') {
            x->p++;
            if (class_item(x, &set, &hi)) malformed(x, "a range of a class ends in a class");
            if (hi < lo) malformed(x, "a range of a class runs backwards");
        }
        grammar_chars_add(x->s->b, &c, lo, hi);
    }
    x->p++;
    if (inverse) grammar_chars_invert(x->s->b, &c);
    if (inverse && ascii) only_ascii(x, &c);
    if (good(x) && c.n == 0) malformed(x, "a class of no characters");
    return schema_chars(x->s, &c);
}

/* All but ends of lines. */
static grammar_expr *any_char(pattern *x)
{
    grammar_chars c = {0};
    add_text(x, &c, "\n\n\r\r");
    grammar_chars_add(x->s->b, &c, 0x2028, 0x2029);
    grammar_chars_invert(x->s->b, &c);
    return schema_chars(x->s, &c);
}

/* --------------------------------------------------------------------------------------------------------- expressions */

static grammar_expr *parse_alternatives(pattern *x, bool outermost);

static grammar_expr *one_char(pattern *x, uint32_t cp)
{
    grammar_chars c = {0};
    grammar_chars_add(x->s->b, &c, cp, cp);
    return schema_chars(x->s, &c);
}

static grammar_expr *parse_group(pattern *x)
{
    x->p++;
    if (peek(x) == '?') {
        if (peek_at(x, 1) != ':') refuse(x, "a group (?...) that looks around, has a name or sets flags");
        x->p += 2;
    }
    if (++x->nested > NESTED_MOST) refuse(x, "nesting this deep");
    grammar_expr *e = good(x) ? parse_alternatives(x, false) : grammar_text(x->s->b, "");
    x->nested--;
    if (good(x) && peek(x) != ')') malformed(x, "a group is not closed");
    x->p++;
    return e;
}

static grammar_expr *parse_atom(pattern *x)
{
    const int c = peek(x);
    grammar_chars set;
    if (c == '[') return parse_class(x);
    if (c == '(') return parse_group(x);
    if (c == '.') {
        x->p++;
        return any_char(x);
    }
    if (c == '^' || c == '$') refuse(x, "'^' and '$' but first and last");
    if (c == '*' || c == '+' || c == '?' || c == '{') malformed(x, "nothing to repeat");
    if (c == '}' || c == ']') refuse(x, "an unescaped '}' or ']'");
    if (c != '\\') return one_char(x, plain_char(x));
    x->p++;
    if (shorthand(x, peek(x), &set)) {
        x->p++;
        return schema_chars(x->s, &set);
    }
    return one_char(x, escaped(x));
}

static uint32_t parse_number(pattern *x)
{
    uint32_t v = 0;
    if (peek(x) < '0' || peek(x) > '9') malformed(x, "want {m}, {m,} or {m,n}");
    while (peek(x) >= '0' && peek(x) <= '9' && v <= REPEAT_MOST) v = v * 10 + (uint32_t)(*x->p++ - '0');
    if (v > REPEAT_MOST) refuse(x, "a repetition of more than 100000");
    return v;
}

static grammar_expr *parse_repeated(pattern *x)
{
    grammar_expr *e = parse_atom(x);
    uint32_t min = 0, max = GRAMMAR_UNBOUNDED;
    const int c = peek(x);
    if (!good(x) || c < 0 || !strchr("*+?{", c)) return e;
    x->p++;
    if (c == '+') min = 1;
    if (c == '?') max = 1;
    if (c == '{') {
        min = max = parse_number(x);
        if (peek(x) == ',') {
            x->p++;
            max = peek(x) == '}' ? GRAMMAR_UNBOUNDED : parse_number(x);
        }
        if (good(x) && (peek(x) != '}' || max < min)) malformed(x, "want {m}, {m,} or {m,n}");
        x->p++;
    }
    if (peek(x) == '?') x->p++; /* as few as may be: the same strings */
    if (peek(x) == '+') refuse(x, "a possessive repetition");
    return grammar_repeat(x->s->b, e, min, max);
}

typedef struct items {
    grammar_expr **v;
    size_t n, cap;
} items;

static void push(pattern *x, items *list, grammar_expr *e)
{
    if (list->n == list->cap) {
        const size_t cap = list->cap ? 2 * list->cap : 8;
        grammar_expr **v = arena_array(x->s->b->mem, cap, sizeof(grammar_expr *));
        if (!v) {
            grammar_fail(x->s->b, LATH_ERR_NOMEM, "out of memory");
            return;
        }
        if (list->n) memcpy(v, list->v, list->n * sizeof(*v));
        list->v = v;
        list->cap = cap;
    }
    list->v[list->n++] = e;
}

static grammar_expr *any_text(pattern *x)
{
    return grammar_repeat(x->s->b, schema_character(x->s), 0, GRAMMAR_UNBOUNDED);
}

/* The outermost ones may have ^ first and $ last; where they do not, any text may be there. */
static grammar_expr *parse_sequence(pattern *x, bool outermost)
{
    items list = {0};
    bool open = true;
    if (outermost && peek(x) == '^') {
        x->p++;
    } else if (outermost) {
        push(x, &list, any_text(x));
    }
    while (good(x) && peek(x) >= 0 && peek(x) != '|' && peek(x) != ')') {
        if (outermost && peek(x) == '$' && (peek_at(x, 1) < 0 || peek_at(x, 1) == '|')) {
            x->p++;
            open = false;
            break;
        }
        push(x, &list, parse_repeated(x));
    }
    if (outermost && open) push(x, &list, any_text(x));
    return grammar_list(x->s->b, GRAMMAR_SEQ, list.v, list.n);
}

static grammar_expr *parse_alternatives(pattern *x, bool outermost)
{
    items list = {0};
    push(x, &list, parse_sequence(x, outermost));
    while (good(x) && peek(x) == '|') {
        x->p++;
        push(x, &list, parse_sequence(x, outermost));
    }
    return grammar_list(x->s->b, GRAMMAR_ALT, list.v, list.n);
}

grammar_expr *schema_pattern(schema *s, const json_value *v, const schema_place *at, const char *text, size_t n)
{
    pattern x = {.s = s, .v = v, .at = at, .p = text, .end = text + n};
    grammar_expr *e = parse_alternatives(&x, true);
    if (good(&x) && x.p < x.end) malformed(&x, "')' without '('");
    return GRAMMAR_SEQ_OF(s->b, grammar_text(s->b, "\""), e, grammar_text(s->b, "\""));
}

/* ------------------------------------------------------------------------------------------------------------- strings */

#define DATE                                                                                \
    "[1-9]\\d{3}-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|" \
    "02-(0[1-9]|1\\d|2[0-8]))"
#define TIME "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+\\-]([01]\\d|2[0-3]):[0-5]\\d)"
#define HOST "[a-z0-9]([a-z0-9\\-]{0,30}[a-z0-9])?(\\.[a-z]([a-z0-9\\-]{0,30}[a-z0-9])?){0,4}"
#define OCTET "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"

/* Strings that have the format beyond doubt; not all that have it. */
static const struct {
    const char *name, *pattern;
} formats[] = {
    {"date", "^" DATE "$"},
    {"time", "^" TIME "$"},
    {"date-time", "^" DATE "T" TIME "$"},
    {"uuid", "^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$"},
    {"hostname", "^" HOST "$"},
    {"email", "^[a-z0-9]+([._\\-][a-z0-9]+){0,4}@" HOST "\\.[a-z]{2,6}$"},
    {"ipv4", "^(" OCTET "\\.){3}" OCTET "$"},
    {"ipv6", "^([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$"},
    {"uri",
     "^https?://" HOST "(:[1-9]\\d{0,3})?(/[A-Za-z0-9._~\\-]+)*/?(\\?[A-Za-z0-9._~=&\\-]*)?(#[A-Za-z0-9._~\\-]*)?$"},
};

static grammar_expr *of_format(schema *s, const json_value *format, const schema_place *at)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (json_is_string(format, formats[i].name))
            return schema_pattern(s, format, at, formats[i].pattern, strlen(formats[i].pattern));
    }
    if (format->kind != JSON_STRING) return schema_fail(s, format, at, LATH_ERR_INPUT, "\"format\": want a string");
    return schema_fail(s, format, at, LATH_ERR_UNSUPPORTED, "\"format\": \"%.60s\" cannot be enforced",
                       format->u.string.data);
}

grammar_expr *schema_string(schema *s, const json_value *v, const schema_place *at)
{
    grammar_builder *b = s->b;
    const json_value *text = json_get(v, "pattern"), *format = json_get(v, "format");
    uint32_t min = 0, max = GRAMMAR_UNBOUNDED;
    if (!schema_count(s, v, "minLength", at, &min) || !schema_count(s, v, "maxLength", at, &max))
        return grammar_text(b, "");
    if (max < min) return schema_fail(s, v, at, LATH_ERR_INPUT, "\"maxLength\" is less than \"minLength\"");
    const json_value *length = json_get(v, "maxLength") ? json_get(v, "maxLength") : json_get(v, "minLength");
    if (text && format) return schema_refuse(s, format, at, "beside \"pattern\" cannot be enforced");
    if (length && (text || format))
        return schema_refuse(s, length, at, "beside \"pattern\" or \"format\" cannot be enforced");
    if (text && text->kind != JSON_STRING)
        return schema_fail(s, text, at, LATH_ERR_INPUT, "\"pattern\": want a string");
    if (text) return schema_pattern(s, text, at, text->u.string.data, text->u.string.len);
    if (format) return of_format(s, format, at);
    if (min == 0 && max == GRAMMAR_UNBOUNDED) return schema_any_string(s);
    return GRAMMAR_SEQ_OF(b, grammar_text(b, "\""), grammar_repeat(b, schema_character(s), min, max),
                          grammar_text(b, "\""));
}
