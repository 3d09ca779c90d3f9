/* SPDX-License-Identifier: Apache-2.0
 *
 * chat_lex.c: the text of a template as tokens, after the lexer of jinja2 3.1.6 with trim_blocks and lstrip_blocks: white space around tags is taken
 * away here, and nothing later knows of it.
 *
 *     {%- tag -%}   '-' takes the white space on that side, '+' keeps it
 *     {% tag %}\n   without a sign: the newline behind a tag or comment goes, and blanks before it where it is the first in its line
 *     {{ value }}   only '-' takes
 */
#include <string.h>

#include "base/json_number.h"
#include "base/utf8.h"
#include "chat/chat_ast.h"
#include "chat/chat_text.h"

typedef struct lexer {
    chat_template *t;
    lath_error *err;
    const char *s; /* [n] newlines are \n */
    size_t n, at;
    uint32_t line;
    token *v;
    size_t n_tokens, cap;
    bool line_starting;
    char open[CHAT_NESTING_MOST]; /* brackets that are open, by what closes them */
    int n_open;
} lexer;

static lath_status fail(lexer *x, lath_status st, const char *what)
{
    return err_set(x->err, st, "%s: line %u: %s", x->t->name, x->line, what);
}

static lath_status push(lexer *x, token t)
{
    if (x->n_tokens == x->cap) {
        const size_t cap = x->cap ? x->cap * 2 : 256;
        token *v = arena_array(&x->t->mem, cap, sizeof(*v));
        if (!v) return err_nomem(x->err, cap * sizeof(*v));
        if (x->n_tokens) memcpy(v, x->v, x->n_tokens * sizeof(*v));
        x->v = v;
        x->cap = cap;
    }
    t.line = x->line;
    x->v[x->n_tokens++] = t;
    return LATH_OK;
}

static lath_status push_text(lexer *x, token_kind kind, const char *s, size_t n)
{
    return push(x, (token){.kind = kind, .s = s, .n = (uint32_t)n});
}

/* Goes to `to`, counting lines. */
static void move(lexer *x, size_t to)
{
    for (size_t i = x->at; i < to; i++) x->line += x->s[i] == '\n';
    if (to > x->at) x->line_starting = x->s[to - 1] == '\n';
    x->at = to;
}

static size_t skip_space(const lexer *x, size_t i) { return chat_space_end(x->s, x->n, i); }

static bool has(const lexer *x, size_t i, const char *what)
{
    const size_t n = strlen(what);
    return i + n <= x->n && memcmp(x->s + i, what, n) == 0;
}

/* Where a tag's end at i ends ("%}" or "#}"); 0 when there is none. */
static size_t block_end(const lexer *x, size_t i, const char *mark)
{
    if (has(x, i, mark)) return i + 2 < x->n && x->s[i + 2] == '\n' ? i + 3 : i + 2;
    if (i < x->n && x->s[i] == '+' && has(x, i + 1, mark)) return i + 3;
    if (i < x->n && x->s[i] == '-' && has(x, i + 1, mark)) return skip_space(x, i + 3);
    return 0;
}

static bool all_space(const char *s, size_t n) { return n > 0 && chat_space_end(s, n, 0) == n; }

/* The text before a tag, cut as the tag's sign says. */
static lath_status emit_data(lexer *x, size_t end, char sign, bool is_variable)
{
    const char *s = x->s + x->at;
    size_t n = end - x->at;
    if (sign == '-') {
        n = chat_rstrip(s, n);
    } else if (sign != '+' && !is_variable) {
        size_t from = n;
        while (from > 0 && s[from - 1] != '\n') from--;
        if ((from > 0 || x->line_starting) && all_space(s + from, n - from)) n = from;
    }
    return n ? push_text(x, T_DATA, s, n) : LATH_OK;
}

/* --------------------------------------------------------------------------------------------------------- in a tag */

static bool digit(char c) { return c >= '0' && c <= '9'; }

/* digits with single '_' between them from i; i where there is none. */
static size_t digits_end(const lexer *x, size_t i)
{
    if (i >= x->n || !digit(x->s[i])) return i;
    for (;;) {
        while (i < x->n && digit(x->s[i])) i++;
        if (i + 1 < x->n && x->s[i] == '_' && digit(x->s[i + 1])) {
            i++;
            continue;
        }
        return i;
    }
}

/* Where a float at x->at ends; 0 when there is none. */
static size_t float_end(const lexer *x)
{
    size_t i = digits_end(x, x->at);
    if (i == x->at || (x->at > 0 && x->s[x->at - 1] == '.')) return 0;
    bool is_float = false;
    if (i + 1 < x->n && x->s[i] == '.' && digit(x->s[i + 1])) {
        i = digits_end(x, i + 1);
        is_float = true;
    }
    if (i < x->n && (x->s[i] == 'e' || x->s[i] == 'E')) {
        size_t k = i + 1;
        if (k < x->n && (x->s[k] == '+' || x->s[k] == '-')) k++;
        const size_t e = digits_end(x, k);
        if (e > k) return e;
    }
    return is_float ? i : 0;
}

static int hex_value(char c)
{
    if (digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return 99;
}

static lath_status lex_based(lexer *x, int base)
{
    size_t i = x->at + 2;
    uint64_t v = 0;
    const size_t from = i;
    for (;; i++) {
        if (i + 1 < x->n && x->s[i] == '_' && hex_value(x->s[i + 1]) < base) continue;
        if (i >= x->n || hex_value(x->s[i]) >= base) break;
        if (v > (uint64_t)INT64_MAX >> 4) return fail(x, LATH_ERR_UNSUPPORTED, "an integer of more than 63 bits");
        v = v * (unsigned)base + (unsigned)hex_value(x->s[i]);
    }
    if (i == from) return fail(x, LATH_ERR_FORMAT, "a number without digits");
    TRY(push(x, (token){.kind = T_INT, .integer = (int64_t)v}));
    move(x, i);
    return LATH_OK;
}

static lath_status lex_number(lexer *x)
{
    char text[128];
    size_t n = 0, end = float_end(x);
    json_value v;
    const bool is_float = end > 0;
    if (!is_float && x->s[x->at] == '0' && x->at + 2 < x->n) {
        const char c = x->s[x->at + 1] | 32;
        const int base = c == 'b' ? 2 : c == 'o' ? 8 : c == 'x' ? 16 : 0;
        if (base && (hex_value(x->s[x->at + 2]) < base || x->s[x->at + 2] == '_')) return lex_based(x, base);
    }
    if (!is_float) {
        end = digits_end(x, x->at);
        /* "012" is 0 and 12 to jinja2, which nothing can follow. */
        if (x->s[x->at] == '0') {
            for (size_t i = x->at; i < end; i++) {
                if (x->s[i] != '0' && x->s[i] != '_') return fail(x, LATH_ERR_FORMAT, "a number that begins with 0");
            }
        }
    }
    /* JSON has no zeros in front. */
    size_t i = x->at;
    while (i + 1 < end && (x->s[i] == '0' || x->s[i] == '_') && (digit(x->s[i + 1]) || x->s[i + 1] == '_')) i++;
    for (; i < end; i++) {
        if (x->s[i] == '_') continue;
        if (n + 1 >= sizeof(text)) return fail(x, LATH_ERR_UNSUPPORTED, "a number of more than 126 characters");
        text[n++] = x->s[i];
    }
    text[n] = 0;
    if (!chat_read_number(text, n, &v)) return fail(x, LATH_ERR_FORMAT, "a number that cannot be read");
    if (!is_float && v.kind != JSON_INT) return fail(x, LATH_ERR_UNSUPPORTED, "an integer of more than 63 bits");
    token t = {.kind = is_float ? T_FLOAT : T_INT};
    if (is_float)
        t.real = v.kind == JSON_INT ? (double)v.u.integer : v.u.real;
    else
        t.integer = v.u.integer;
    TRY(push(x, t));
    move(x, end);
    return LATH_OK;
}

static bool name_char(const lexer *x, size_t i, size_t *len)
{
    const char c = x->s[i];
    *len = 1;
    if (digit(c) || c == '_' || ((c | 32) >= 'a' && (c | 32) <= 'z')) return true;
    return (uint8_t)c >= 0x80 && chat_is_word(x->s + i, len);
}

static lath_status lex_name(lexer *x)
{
    size_t i = x->at, len;
    while (i < x->n && name_char(x, i, &len)) i += len;
    TRY(push_text(x, T_NAME, x->s + x->at, i - x->at));
    move(x, i);
    return LATH_OK;
}

/* \xhh, \uhhhh, \Uhhhhhhhh, \ooo: the code point; -1 when it is none. *i is behind. */
static int64_t numbered(const char *s, size_t n, size_t *i)
{
    const char kind = s[*i];
    int64_t v = 0;
    if (kind >= '0' && kind <= '7') {
        for (int k = 0; k < 3 && *i < n && s[*i] >= '0' && s[*i] <= '7'; k++) v = v * 8 + (s[(*i)++] - '0');
        return v;
    }
    const int want = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
    ++*i;
    for (int k = 0; k < want; k++, ++*i) {
        if (*i >= n || hex_value(s[*i]) > 15) return -1;
        v = v * 16 + hex_value(s[*i]);
    }
    return v <= 0x10FFFF ? v : -1;
}

/* As Python's codec unicode-escape. out has room for n bytes. */
static lath_status unescape(lexer *x, const char *s, size_t n, char *out, size_t *n_out)
{
    static const char plain[] = "\\\\''\"\"a\ab\bf\fn\nr\rt\tv\v";
    size_t o = 0;
    for (size_t i = 0; i < n;) {
        if (s[i] != '\\' || i + 1 == n) {
            out[o++] = s[i++];
            continue;
        }
        const char c = s[++i];
        const char *p = NULL;
        for (size_t k = 0; k + 1 < sizeof(plain) && !p; k += 2) {
            if (plain[k] == c) p = &plain[k + 1];
        }
        if (p) {
            out[o++] = *p;
            i++;
        } else if (c == '\n') {
            i++;
        } else if ((c >= '0' && c <= '7') || c == 'x' || c == 'u' || c == 'U') {
            const int64_t v = numbered(s, n, &i);
            if (v < 0) return fail(x, LATH_ERR_FORMAT, "a string with a bad escape");
            if (v >= 0xD800 && v < 0xE000) return fail(x, LATH_ERR_UNSUPPORTED, "a string with half a surrogate pair");
            o += utf8_encode((uint32_t)v, out + o);
        } else if (c == 'N' || (uint8_t)c >= 0x80) {
            return fail(x, LATH_ERR_UNSUPPORTED, "a string with the escape \\N or of a letter that is not ASCII");
        } else {
            out[o++] = '\\';
            out[o++] = c;
            i++;
        }
    }
    *n_out = o;
    return LATH_OK;
}

static lath_status lex_string(lexer *x)
{
    const char quote = x->s[x->at];
    size_t i = x->at + 1, n = 0;
    while (i < x->n && x->s[i] != quote) i += x->s[i] == '\\' ? 2 : 1;
    if (i >= x->n) return fail(x, LATH_ERR_FORMAT, "a string that is not closed");
    const size_t raw = i - x->at - 1;
    char *out = arena_bytes(&x->t->mem, raw + 1, 1);
    if (!out) return err_nomem(x->err, raw + 1);
    TRY(unescape(x, x->s + x->at + 1, raw, out, &n));
    out[n] = 0;
    TRY(push_text(x, T_STRING, out, n));
    move(x, i + 1);
    return LATH_OK;
}

static lath_status balance(lexer *x, char c)
{
    const char close = c == '(' ? ')' : c == '[' ? ']' : c == '{' ? '}' : 0;
    if (close) {
        if (x->n_open == CHAT_NESTING_MOST) return fail(x, LATH_ERR_LIMIT, "brackets nested too deep");
        x->open[x->n_open++] = close;
    } else if (c == ')' || c == ']' || c == '}') {
        if (x->n_open == 0 || x->open[x->n_open - 1] != c)
            return fail(x, LATH_ERR_FORMAT, "a bracket that closes none, or another one");
        x->n_open--;
    }
    return LATH_OK;
}

static lath_status lex_operator(lexer *x)
{
    static const struct {
        char text[3];
        token_kind kind;
    } rows[] = {{"//", T_FLOORDIV}, {"**", T_POW},   {"==", T_EQ},      {"!=", T_NE},      {">=", T_GE},
                {"<=", T_LE},       {"+", T_ADD},    {"-", T_SUB},      {"/", T_DIV},      {"*", T_MUL},
                {"%", T_MOD},       {"~", T_TILDE},  {"[", T_LBRACKET}, {"]", T_RBRACKET}, {"(", T_LPAREN},
                {")", T_RPAREN},    {"{", T_LBRACE}, {"}", T_RBRACE},   {">", T_GT},       {"<", T_LT},
                {"=", T_ASSIGN},    {".", T_DOT},    {":", T_COLON},    {"|", T_PIPE},     {",", T_COMMA},
                {";", T_SEMICOLON}};
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        if (!has(x, x->at, rows[k].text)) continue;
        const size_t n = strlen(rows[k].text);
        if (n == 1) TRY(balance(x, rows[k].text[0]));
        TRY(push_text(x, rows[k].kind, rows[k].text, n));
        move(x, x->at + n);
        return LATH_OK;
    }
    return fail(x, LATH_ERR_FORMAT, "a character that no expression has");
}

/* The inside of a tag up to its end. */
static lath_status lex_tag(lexer *x, bool is_variable)
{
    for (;;) {
        size_t end = 0, len;
        if (x->at >= x->n) return fail(x, LATH_ERR_FORMAT, "the template ends within a tag");
        if (x->n_open == 0 && is_variable)
            end = has(x, x->at, "}}") ? x->at + 2 : has(x, x->at, "-}}") ? skip_space(x, x->at + 3) : 0;
        else if (x->n_open == 0)
            end = block_end(x, x->at, "%}");
        if (end) {
            TRY(push_text(x, is_variable ? T_VAR_END : T_BLOCK_END, "", 0));
            move(x, end);
            return LATH_OK;
        }
        const char c = x->s[x->at];
        if (skip_space(x, x->at) > x->at)
            move(x, skip_space(x, x->at));
        else if (digit(c))
            TRY(lex_number(x));
        else if (c == '\'' || c == '"')
            TRY(lex_string(x));
        else if (name_char(x, x->at, &len))
            TRY(lex_name(x));
        else
            TRY(lex_operator(x));
    }
}

/* ---------------------------------------------------------------------------------------------------------- outside */

static lath_status lex_comment(lexer *x)
{
    for (size_t i = x->at; i < x->n; i++) {
        const size_t end = block_end(x, i, "#}");
        if (!end) continue;
        move(x, end);
        return LATH_OK;
    }
    return fail(x, LATH_ERR_FORMAT, "a comment that is not closed");
}

/* "{%" at i with the word and an end: where it ends, 0 when it is another tag. */
static size_t word_tag(const lexer *x, size_t i, const char *word, bool trims, char *sign)
{
    if (!has(x, i, "{%")) return 0;
    i += 2;
    *sign = i < x->n && (x->s[i] == '-' || x->s[i] == '+') ? x->s[i++] : 0;
    i = skip_space(x, i);
    if (!has(x, i, word)) return 0;
    i = skip_space(x, i + strlen(word));
    if (trims) return block_end(x, i, "%}");
    if (has(x, i, "-%}")) return skip_space(x, i + 3);
    return has(x, i, "%}") ? i + 2 : 0;
}

static lath_status lex_raw(lexer *x)
{
    for (size_t i = x->at; i < x->n; i++) {
        char sign;
        const size_t end = word_tag(x, i, "endraw", true, &sign);
        if (!end) continue;
        TRY(emit_data(x, i, sign, false));
        move(x, end);
        return LATH_OK;
    }
    return fail(x, LATH_ERR_FORMAT, "raw that is not closed");
}

static lath_status lex_all(lexer *x)
{
    for (;;) {
        size_t i = x->at;
        while (i + 1 < x->n && !(x->s[i] == '{' && strchr("{%#", x->s[i + 1]) && x->s[i + 1])) i++;
        if (i + 1 >= x->n) break;
        char sign;
        const size_t raw = word_tag(x, i, "raw", false, &sign);
        const char kind = x->s[i + 1];
        size_t inside = i + 2;
        if (!raw) {
            sign = inside < x->n && (x->s[inside] == '-' || x->s[inside] == '+') ? x->s[inside] : 0;
            inside += sign != 0;
        }
        TRY(emit_data(x, i, sign, kind == '{'));
        move(x, i);
        if (!raw && kind != '#') TRY(push_text(x, kind == '{' ? T_VAR_BEGIN : T_BLOCK_BEGIN, "", 0));
        move(x, raw ? raw : inside);
        if (raw)
            TRY(lex_raw(x));
        else if (kind == '#')
            TRY(lex_comment(x));
        else
            TRY(lex_tag(x, kind == '{'));
    }
    if (x->at < x->n) TRY(push_text(x, T_DATA, x->s + x->at, x->n - x->at));
    move(x, x->n);
    return push_text(x, T_EOF, "", 0);
}

lath_status chat_lex(chat_template *t, const char *text, size_t n, token **out, lath_error *err)
{
    char *s = arena_bytes(&t->mem, n + 1, 1);
    size_t o = 0;
    if (!s) return err_nomem(err, n + 1);
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\r') {
            s[o++] = '\n';
            i += i + 1 < n && text[i + 1] == '\n';
        } else {
            s[o++] = text[i];
        }
    }
    if (o > 0 && s[o - 1] == '\n') o--;
    s[o] = 0;
    lexer x = {.t = t, .err = err, .s = s, .n = o, .line = 1, .line_starting = true};
    TRY(lex_all(&x));
    *out = x.v;
    return LATH_OK;
}
