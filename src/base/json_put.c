/* SPDX-License-Identifier: Apache-2.0
 * json_put.c: strings and numbers as JSON text. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/f32_text.h"
#include "base/json.h"

void json_put_string(buf *b, const char *s, size_t n)
{
    static const char short_escapes[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    buf_char(b, '"');
    size_t from = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7F) continue;
        buf_append(b, s + from, i - from);
        from = i + 1;
        const char *e = NULL;
        for (size_t k = 0; k + 1 < sizeof(short_escapes) && !e; k += 2) {
            if ((unsigned char)short_escapes[k] == c) e = &short_escapes[k + 1];
        }
        if (e) {
            buf_char(b, '\\');
            buf_char(b, *e);
        } else {
            buf_printf(b, "\\u%04x", c);
        }
    }
    if (from < n) buf_append(b, s + from, n - from);
    buf_char(b, '"');
}

/* printf writes the locale's decimal separator; JSON wants a point. The separator may have several bytes, all of
 * them none of a number's. */
static void put_number(buf *b, const char *text)
{
    for (const char *p = text; *p; p++) {
        if (strchr("0123456789+-eE.", *p)) {
            buf_char(b, *p);
        } else {
            buf_char(b, '.');
            while (p[1] && !strchr("0123456789eE", p[1])) p++;
        }
    }
}

void json_put_f32(buf *b, float v)
{
    if (!isfinite(v)) {
        buf_str(b, "null");
        return;
    }
    char text[48];
    const size_t n = f32_text(v, text);
    if (n > 0) {
        buf_append(b, text, n);
        return;
    }
    for (int digits = 6; digits <= 9; digits++) { /* 9 always read back the same f32 */
        snprintf(text, sizeof(text), "%.*g", digits, (double)v);
        if (digits == 9 || strtof(text, NULL) == v) break;
    }
    put_number(b, text);
}

void json_put_f64(buf *b, double v)
{
    if (!isfinite(v)) {
        buf_str(b, "null");
        return;
    }
    char text[48];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, v);
        if (digits == 17 || strtod(text, NULL) == v) break;
    }
    put_number(b, text);
}

void json_put_value(buf *b, const json_value *v)
{
    switch (v->kind) {
    case JSON_NULL: buf_str(b, "null"); return;
    case JSON_BOOL: buf_str(b, v->u.boolean ? "true" : "false"); return;
    case JSON_INT: buf_printf(b, "%" PRId64, v->u.integer); return;
    case JSON_REAL: {
        const size_t from = b->len;
        json_put_f64(b, v->u.real);
        /* what is a real in one text is one in the other */
        if (!b->failed && !memchr(b->data + from, '.', b->len - from) && !memchr(b->data + from, 'e', b->len - from) &&
            isfinite(v->u.real))
            buf_str(b, ".0");
        return;
    }
    case JSON_STRING: json_put_string(b, v->u.string.data, v->u.string.len); return;
    case JSON_ARRAY:
    case JSON_OBJECT: break;
    }
    const bool object = v->kind == JSON_OBJECT;
    buf_char(b, object ? '{' : '[');
    for (const json_value *e = v->u.items.first; e; e = e->next) {
        if (e != v->u.items.first) buf_char(b, ',');
        if (object) {
            json_put_string(b, e->key, e->key_len);
            buf_char(b, ':');
        }
        json_put_value(b, e);
    }
    buf_char(b, object ? '}' : ']');
}
