/* SPDX-License-Identifier: Apache-2.0
 * json_scan.c: RFC 8259 without objects and deep lists. The text is valid UTF-8 (json.c has looked), so that the only
 * bytes that matter in a string are the quote, the backslash and control characters: eight bytes are looked at together.
 */
#include "base/json_scan.h"

#include <string.h>

#include "base/json_number.h"
#include "base/utf8.h"

/* White space; counts lines. The first byte behind it, n at the end. */
static size_t skip_space(json_scan *s, size_t i)
{
    for (; i < s->n && json_is_space(s->text[i]); i++) s->line += s->text[i] == '\n';
    return i;
}

#define EACH(byte) (0x0101010101010101u * (byte))
#define BELOW(w, byte) (((w)-EACH(byte)) & ~(w)) /* bit 7 of the lowest byte that is below, and of none before it */

/* The first quote, backslash or control character of t[i..n); n: there is none. */
static size_t plain_end(const char *t, size_t i, size_t n)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (; n - i >= 8; i += 8) {
        uint64_t w;
        memcpy(&w, t + i, 8);
        uint64_t hit = (BELOW(w ^ EACH(0x22u), 1u) | BELOW(w ^ EACH(0x5Cu), 1u) | BELOW(w, 0x20u)) & EACH(0x80u);
        if (hit) return i + ((size_t)__builtin_ctzll(hit) >> 3);
    }
#endif
    while (i < n && t[i] != '"' && t[i] != '\\' && (unsigned char)t[i] >= 0x20) i++;
    return i;
}

/* Four hexadecimal digits at p. */
static bool read_hex(const char *p, const char *stop, uint32_t *out)
{
    *out = 0;
    if (stop - p < 4) return false;
    for (int k = 0; k < 4; k++) {
        char c = p[k], low = (char)(c | 0x20);
        bool digit = c >= '0' && c <= '9';
        if (!digit && (low < 'a' || low > 'f')) return false;
        *out = *out << 4 | (uint32_t)(digit ? c - '0' : low - 'a' + 10);
    }
    return true;
}

/* The escape at *p, a backslash; moves *p behind it. 0: it is none, or half of a surrogate pair. */
static size_t read_escape(const char **p, const char *stop, char out[4])
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    uint32_t c, low;
    if (stop - *p < 2) return 0;
    char letter = (*p)[1];
    const char *at = letter ? strchr(from, letter) : NULL;
    if (at) {
        out[0] = to[at - from];
        *p += 2;
        return 1;
    }
    if (letter != 'u' || !read_hex(*p + 2, stop, &c) || (c >= 0xDC00 && c <= 0xDFFF)) return 0;
    *p += 6;
    if (c >= 0xD800 && c <= 0xDBFF) {
        if (stop - *p < 6 || (*p)[0] != '\\' || (*p)[1] != 'u' || !read_hex(*p + 2, stop, &low)) return 0;
        if (low < 0xDC00 || low > 0xDFFF) return 0;
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        *p += 6;
    }
    return utf8_encode(c, out);
}

/* t[b..e) has escapes. NULL with *bad: one that is none. */
static char *unescape(json_scan *s, size_t b, size_t e, size_t *len, bool *bad)
{
    char *out = arena_bytes(s->strings, e - b + 1, 1), *to = out;
    const char *p = s->text + b, *stop = s->text + e;
    while (out && p < stop) {
        char bytes[4];
        if (*p != '\\') {
            *to++ = *p++;
            continue;
        }
        size_t n = read_escape(&p, stop, bytes);
        if (n == 0) {
            *bad = true;
            return NULL;
        }
        memcpy(to, bytes, n); /* never longer than what it is written as */
        to += n;
    }
    if (!out) return NULL;
    *to = 0;
    *len = (size_t)(to - out);
    return out;
}

/* The string whose quote is at i; moves i behind it. */
static json_scan_found read_string(json_scan *s, size_t *i, const char **out, size_t *len)
{
    size_t b = *i + 1, e = b;
    bool escapes = false, bad = false;
    while ((e = plain_end(s->text, e, s->n)) < s->n && s->text[e] == '\\' && s->n - e > 2) {
        escapes = true;
        e += 2;
    }
    if (e >= s->n || s->text[e] != '"') return JSON_SCAN_OTHER;
    *i = e + 1;
    *len = e - b;
    *out = escapes ? unescape(s, b, e, len, &bad) : arena_strdup(s->strings, s->text + b, e - b);
    if (*out) return JSON_SCAN_MEMBER;
    return bad ? JSON_SCAN_OTHER : JSON_SCAN_NOMEM;
}

static size_t skip_digits(const json_scan *s, size_t i)
{
    while (i < s->n && s->text[i] >= '0' && s->text[i] <= '9') i++;
    return i;
}

static json_scan_found read_number(json_scan *s, size_t *i, json_value *v)
{
    const char *t = s->text;
    size_t b = *i, at = b + (t[b] == '-'), e;
    e = at < s->n && t[at] == '0' ? at + 1 : skip_digits(s, at);
    if (e == at) return JSON_SCAN_OTHER;
    if (e < s->n && t[e] == '.') {
        at = e + 1;
        e = skip_digits(s, at);
        if (e == at) return JSON_SCAN_OTHER;
    }
    if (e < s->n && (t[e] == 'e' || t[e] == 'E')) {
        at = e + 1;
        if (at < s->n && (t[at] == '+' || t[at] == '-')) at++;
        e = skip_digits(s, at);
        if (e == at) return JSON_SCAN_OTHER;
    }
    *i = e;
    return json_number_read(t + b, e - b, s->serde_reals, s->c_locale, v) ? JSON_SCAN_MEMBER : JSON_SCAN_OTHER;
}

static json_scan_found read_scalar(json_scan *s, size_t *i, json_value *v)
{
    char c = *i < s->n ? s->text[*i] : 0;
    if (c == '"') {
        v->kind = JSON_STRING;
        return read_string(s, i, &v->u.string.data, &v->u.string.len);
    }
    return c == '-' || (c >= '0' && c <= '9') ? read_number(s, i, v) : JSON_SCAN_OTHER;
}

/* i is at '['. */
static json_scan_found read_list(json_scan *s, size_t *i, json_value *v)
{
    size_t at = skip_space(s, *i + 1), k = 0;
    json_scan_found found = s->nested ? JSON_SCAN_MEMBER : JSON_SCAN_OTHER;
    v->kind = JSON_ARRAY;
    v->u.items.first = NULL;
    while (found == JSON_SCAN_MEMBER && (k > 0 || at >= s->n || s->text[at] != ']')) {
        if (k == JSON_SCAN_PARTS) return JSON_SCAN_OTHER;
        json_value *part = &s->parts[k];
        *part = (json_value){.line = v->line};
        found = read_scalar(s, &at, part);
        if (found != JSON_SCAN_MEMBER) return found;
        if (k > 0) s->parts[k - 1].next = part;
        k++;
        at = skip_space(s, at);
        if (at >= s->n || (s->text[at] != ',' && s->text[at] != ']')) return JSON_SCAN_OTHER;
        if (s->text[at] == ']') break;
        at = skip_space(s, at + 1);
    }
    if (k > 0) v->u.items.first = &s->parts[0];
    v->u.items.count = k;
    *i = at + 1;
    return found;
}

static json_scan_found read_member(json_scan *s, size_t i)
{
    json_value *v = &s->item;
    v->key = NULL;
    v->key_len = 0;
    v->next = NULL;
    if (s->object) {
        if (s->text[i] != '"') return JSON_SCAN_OTHER;
        json_scan_found found = read_string(s, &i, &v->key, &v->key_len);
        if (found != JSON_SCAN_MEMBER) return found;
        i = skip_space(s, i);
        if (i >= s->n || s->text[i] != ':') return JSON_SCAN_OTHER;
        i = skip_space(s, i + 1);
    }
    v->line = s->line;
    json_scan_found found = i < s->n && s->text[i] == '[' ? read_list(s, &i, v) : read_scalar(s, &i, v);
    if (found == JSON_SCAN_MEMBER) s->at = i;
    return found;
}

static json_scan_found bad(json_scan *s, size_t at, const char *why)
{
    s->at = at;
    s->why = why;
    return JSON_SCAN_BAD;
}

json_scan_found json_scan_next(json_scan *s)
{
    char close = s->object ? '}' : ']';
    size_t i = skip_space(s, s->at);
    if (i < s->n && s->text[i] == close) {
        s->at = i;
        return JSON_SCAN_END;
    }
    if (s->begun &&
        i < s->n) { /* the parser has not seen the members before: what stands between them is checked here */
        if (s->text[i] != ',') return bad(s, i, "a comma or a closing bracket is missing");
        i = skip_space(s, i + 1);
        if (i < s->n && s->text[i] == close) return bad(s, i, "a comma before the closing bracket");
    }
    if (i >= s->n) return bad(s, s->n, "it ends too early");
    s->at = i;
    uint32_t line = s->line;
    json_scan_found found = read_member(s, i);
    s->begun = true;
    if (found != JSON_SCAN_MEMBER) {
        s->at = i;
        s->line = line;
    }
    return found;
}
