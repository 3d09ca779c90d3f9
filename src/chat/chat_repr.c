/* SPDX-License-Identifier: Apache-2.0
 * chat_repr.c: values as Python prints them: str() and repr(). */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "chat/chat_call.h"
#include "chat/chat_text.h"

void put_int(text_out *o, int64_t i)
{
    char text[24];
    text_put(o, text, (size_t)snprintf(text, sizeof(text), "%" PRId64, i), NULL, false);
}

/* A subnormal has fewer digits than those that json_put_f64 begins with. */
static void put_subnormal(buf *b, double d)
{
    for (int digits = 0; digits <= 16; digits++) {
        json_value v;
        buf_clear(b);
        buf_printf(b, "%.*e", digits, d);
        for (size_t i = 0; i < b->len; i++) {
            if (!strchr("0123456789e-+", b->data[i])) b->data[i] = '.';
        }
        if (chat_read_number(buf_cstr(b), b->len, &v) && v.kind == JSON_REAL && v.u.real == d) return;
    }
}

/* Digits and exponent of the shortest text that reads back as d > 0: d = 0.DIGITS * 10^point. */
static size_t shortest(double d, char digits[20], int *point)
{
    buf b;
    size_t n = 0, seen = 0;
    int exponent = 0, before = -1;
    buf_init(&b, alloc_default(), 64);
    char room[64];
    b.data = room; /* a double takes 24 bytes at most: the buffer never grows */
    b.cap = sizeof(room);
    if (d < DBL_MIN)
        put_subnormal(&b, d);
    else
        json_put_f64(&b, d);
    for (size_t i = 0; i < b.len; i++) {
        const char c = room[i];
        if (c == '.') {
            before = (int)seen;
        } else if (c == 'e') {
            room[b.len] = 0;
            exponent = (int)strtol(room + i + 1, NULL, 10);
            break;
        } else {
            seen++;
            if (n < 20) digits[n++] = c;
        }
    }
    *point = (before < 0 ? (int)seen : before) + exponent;
    size_t zeros = 0;
    while (zeros + 1 < n && digits[zeros] == '0') zeros++;
    memmove(digits, digits + zeros, n - zeros);
    n -= zeros;
    *point -= (int)zeros;
    while (n > 1 && digits[n - 1] == '0') n--;
    return n;
}

static void put_zeros(text_out *o, int n)
{
    for (; n > 0; n--) text_own(o, "0");
}

/* As float.__repr__: exponents from 1e16 and below 1e-4. */
void put_real(text_out *o, double d)
{
    char digits[20], exponent[16];
    int point;
    if (isnan(d)) {
        text_own(o, "nan");
        return;
    }
    if (signbit(d)) text_own(o, "-");
    d = fabs(d);
    if (isinf(d)) {
        text_own(o, "inf");
        return;
    }
    if (d == 0) {
        text_own(o, "0.0");
        return;
    }
    const size_t n = shortest(d, digits, &point);
    if (point > 16 || point < -3) {
        text_put(o, digits, 1, NULL, false);
        if (n > 1) text_own(o, ".");
        text_put(o, digits + 1, n - 1, NULL, false);
        snprintf(exponent, sizeof(exponent), "e%c%02d", point > 0 ? '+' : '-', abs(point - 1));
        text_own(o, exponent);
    } else if (point <= 0) {
        text_own(o, "0.");
        put_zeros(o, -point);
        text_put(o, digits, n, NULL, false);
    } else if ((size_t)point >= n) {
        text_put(o, digits, n, NULL, false);
        put_zeros(o, point - (int)n);
        text_own(o, ".0");
    } else {
        text_put(o, digits, (size_t)point, NULL, false);
        text_own(o, ".");
        text_put(o, digits + point, n - (size_t)point, NULL, false);
    }
}

static void put_escape(text_out *o, uint32_t c, bool content)
{
    char text[16];
    const char *fmt = c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x";
    const int n = c == '\n'   ? snprintf(text, sizeof(text), "\\n")
                  : c == '\r' ? snprintf(text, sizeof(text), "\\r")
                  : c == '\t' ? snprintf(text, sizeof(text), "\\t")
                              : snprintf(text, sizeof(text), fmt, (unsigned)c);
    text_put(o, text, (size_t)n, NULL, content);
}

/* As str.__repr__: in ' unless it has such and no ". */
static void put_str_repr(text_out *o, const chat_str *s)
{
    const char quote = memchr(s->s, '\'', s->n) && !memchr(s->s, '"', s->n) ? '"' : '\'';
    size_t from = 0;
    text_char(o, quote, false);
    for (size_t i = 0; i < s->n;) {
        uint32_t c;
        const size_t len = utf8_decode(s->s + i, s->n - i, &c);
        const bool slashed = c == '\\' || c == (uint32_t)quote;
        if (slashed || !chat_is_printable(c)) {
            text_part(o, s, from, i);
            from = i + len;
            if (slashed) {
                text_char(o, '\\', str_content_at(s, i));
                text_char(o, (char)c, str_content_at(s, i));
            } else {
                put_escape(o, c, str_content_at(s, i));
            }
        }
        i += len;
    }
    text_part(o, s, from, s->n);
    text_char(o, quote, false);
}

static lath_status put_items(text_out *o, const value *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i) text_own(o, ", ");
        TRY(put_repr(o, v[i]));
    }
    return LATH_OK;
}

static lath_status put_dict(text_out *o, const value_dict *d)
{
    text_own(o, "{");
    for (size_t i = 0; i < d->n; i++) {
        if (i) text_own(o, ", ");
        TRY(put_repr(o, d->v[i].key));
        text_own(o, ": ");
        TRY(put_repr(o, d->v[i].value));
    }
    text_own(o, "}");
    return LATH_OK;
}

static lath_status put_list(text_out *o, value v)
{
    const bool tuple = v.kind == V_TUPLE;
    if (v.kind == V_VIEW) {
        text_own(o, v.u.list->view);
        text_own(o, "(");
    }
    text_own(o, tuple ? "(" : "[");
    TRY(put_items(o, v.u.list->v, v.u.list->n));
    if (tuple && v.u.list->n == 1) text_own(o, ",");
    text_own(o, tuple ? ")" : "]");
    if (v.kind == V_VIEW) text_own(o, ")");
    return LATH_OK;
}

static void put_range(text_out *o, const value_range *g)
{
    text_own(o, "range(");
    put_int(o, g->start);
    text_own(o, ", ");
    put_int(o, g->stop);
    if (g->step != 1) {
        text_own(o, ", ");
        put_int(o, g->step);
    }
    text_own(o, ")");
}

static lath_status put_space(text_out *o, const name_space *s)
{
    text_own(o, "<Namespace {");
    for (const struct space_entry *e = s->first; e; e = e->next) {
        const chat_str name = {.s = e->name, .n = e->n};
        if (e != s->first) text_own(o, ", ");
        put_str_repr(o, &name);
        text_own(o, ": ");
        TRY(put_repr(o, e->v));
    }
    text_own(o, "}>");
    return LATH_OK;
}

static lath_status put_nested(text_out *o, value v)
{
    switch (v.kind) {
    case V_LIST:
    case V_TUPLE:
    case V_VIEW: return put_list(o, v);
    case V_DICT: return put_dict(o, v.u.dict);
    case V_NAMESPACE: return put_space(o, v.u.space);
    default: break;
    }
    return render_fail(o->r, LATH_ERR_UNSUPPORTED, "a %s printed", value_type(v));
}

lath_status put_repr(text_out *o, value v)
{
    TRY(render_step(o->r, 1));
    switch (v.kind) {
    case V_UNDEFINED: text_own(o, "Undefined"); return o->r->st;
    case V_NONE: text_own(o, "None"); return o->r->st;
    case V_BOOL: text_own(o, v.u.boolean ? "True" : "False"); return o->r->st;
    case V_INT: put_int(o, v.u.integer); return o->r->st;
    case V_FLOAT: put_real(o, v.u.real); return o->r->st;
    case V_STR:
        if (v.u.str->markup) return render_fail(o->r, LATH_ERR_UNSUPPORTED, "the repr of an escaped text");
        put_str_repr(o, v.u.str);
        return o->r->st;
    case V_RANGE: put_range(o, v.u.range); return o->r->st;
    default: break;
    }
    TRY(render_enter(o->r));
    TRY(put_nested(o, v));
    o->r->depth--;
    return o->r->st;
}

lath_status put_value(text_out *o, value v)
{
    if (v.kind == V_UNDEFINED) return o->r->st;
    if (v.kind != V_STR) return put_repr(o, v);
    text_str(o, v.u.str);
    return o->r->st;
}

lath_status value_to_str(render *r, value v, const chat_str **out)
{
    text_out o;
    value s = v;
    if (v.kind != V_STR) {
        text_init(&o, r);
        TRY(put_value(&o, v));
        TRY(text_finish(&o, &s));
    }
    *out = s.u.str;
    return LATH_OK;
}
