/* SPDX-License-Identifier: Apache-2.0
 * chat_format.c: Python's two ways to format a text, and numbers out of texts. Of the mini-languages there is what templates use: %s %r %d %i %f %e %g
 * %x %X %o %% with flags, width and precision; {} {0} {name} {name.attr} {name[key]} with !s !r and a format of width, fill, alignment, precision and
 * type. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chat/chat_call.h"
#include "chat/chat_text.h"

/* --------------------------------------------------------------------------------------------------- numbers from text */

lath_status real_to_int(render *r, double d, int64_t *v, bool *ok)
{
    *ok = isfinite(d);
    if (!*ok) return LATH_OK;
    if (fabs(d) >= 9223372036854775808.0)
        return render_fail(r, LATH_ERR_UNSUPPORTED, "an integer of more than 63 bits");
    *v = (int64_t)d;
    return LATH_OK;
}

/* s without the white space around it: begin and end. */
static void trimmed(const chat_str *s, size_t *b, size_t *e)
{
    *e = chat_rstrip(s->s, s->n);
    *b = chat_space_end(s->s, *e, 0);
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if ((c | 32) >= 'a' && (c | 32) <= 'z') return (c | 32) - 'a' + 10;
    return 99;
}

lath_status text_to_int(render *r, const chat_str *s, int64_t base, int64_t *v, bool *ok)
{
    size_t b, e;
    bool minus = false, after_digit = false;
    uint64_t x = 0;
    *ok = false;
    if (base != 0 && (base < 2 || base > 36)) return render_fail(r, LATH_ERR_INPUT, "int: a base of %" PRId64, base);
    trimmed(s, &b, &e);
    if (b < e && (s->s[b] == '+' || s->s[b] == '-')) minus = s->s[b++] == '-';
    if (b + 1 < e && s->s[b] == '0') {
        const char c = s->s[b + 1] | 32;
        const int64_t own = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
        if (own && (base == own || base == 0)) {
            base = own;
            b += 2;
            after_digit = true; /* 0x_1 is allowed */
        }
    }
    if (base == 0) return render_fail(r, LATH_ERR_UNSUPPORTED, "int: the base 0");
    if (b == e) return LATH_OK;
    for (size_t i = b; i < e; i++) {
        if (s->s[i] == '_' && after_digit && i + 1 < e) {
            after_digit = false;
            continue;
        }
        if ((uint8_t)s->s[i] >= 0x80)
            return render_fail(r, LATH_ERR_UNSUPPORTED, "a number in digits that are not ASCII");
        if (digit_of(s->s[i]) >= base) return LATH_OK;
        if (x > (UINT64_MAX >> 1) / (uint64_t)base)
            return render_fail(r, LATH_ERR_UNSUPPORTED, "an integer of more than 63 bits");
        x = x * (uint64_t)base + (unsigned)digit_of(s->s[i]);
        if (x > INT64_MAX) return render_fail(r, LATH_ERR_UNSUPPORTED, "an integer of more than 63 bits");
        after_digit = true;
    }
    *v = minus ? -(int64_t)x : (int64_t)x;
    *ok = true;
    return LATH_OK;
}

static bool is_word(const char *s, size_t n, const char *word)
{
    if (n != strlen(word)) return false;
    for (size_t i = 0; i < n; i++) {
        if ((s[i] | 32) != word[i]) return false;
    }
    return true;
}

/* Digits with single '_' between them into text, which has room; false where there is none. */
static bool take_digits(const char *s, size_t e, size_t *i, char *text, size_t *n)
{
    const size_t from = *i;
    while (*i < e && (digit_of(s[*i]) < 10 || (s[*i] == '_' && *i > from && *i + 1 < e && digit_of(s[*i + 1]) < 10))) {
        if (s[*i] != '_') text[(*n)++] = s[*i];
        ++*i;
    }
    return *i > from;
}

/* nan, inf, infinity. */
static bool named_real(const char *s, size_t n, double *v)
{
    if (is_word(s, n, "nan"))
        *v = NAN;
    else if (is_word(s, n, "inf") || is_word(s, n, "infinity"))
        *v = INFINITY;
    else
        return false;
    return true;
}

/* The number s[b..e) in the grammar of JSON: no zeros in front, digits on both sides of the point. */
static bool json_form(const char *s, size_t b, size_t e, char *text, size_t *n)
{
    while (b + 1 < e && s[b] == '0' && digit_of(s[b + 1]) < 10) b++;
    bool digits = take_digits(s, e, &b, text, n);
    if (!digits) text[(*n)++] = '0';
    if (b < e && s[b] == '.') {
        b++;
        text[(*n)++] = '.';
        const bool more = take_digits(s, e, &b, text, n);
        if (!more) text[(*n)++] = '0';
        digits |= more;
    }
    if (!digits) return false;
    if (b < e && (s[b] | 32) == 'e') {
        text[(*n)++] = 'e';
        b++;
        if (b < e && (s[b] == '+' || s[b] == '-')) text[(*n)++] = s[b++];
        if (!take_digits(s, e, &b, text, n)) return false;
    }
    text[*n] = 0;
    return b == e;
}

lath_status text_to_real(render *r, const chat_str *s, double *v, bool *ok)
{
    char text[128];
    size_t b, e, n = 0;
    json_value j;
    bool minus = false;
    *ok = false;
    trimmed(s, &b, &e);
    if (b < e && (s->s[b] == '+' || s->s[b] == '-')) minus = s->s[b++] == '-';
    if (e - b > 100) return render_fail(r, LATH_ERR_UNSUPPORTED, "a number of more than 100 characters");
    if (named_real(s->s + b, e - b, v)) {
        *ok = true;
    } else if (json_form(s->s, b, e, text, &n) && chat_read_number(text, n, &j)) {
        *v = j.kind == JSON_INT ? (double)j.u.integer : j.u.real;
        *ok = true;
    }
    if (*ok && minus) *v = -*v;
    return LATH_OK;
}

/* printf writes the locale's separator; texts want a point. */
static void point_only(char *text)
{
    char *to = text;
    for (const char *p = text; *p; p++) {
        if (strchr("0123456789+-eEinfaINFA", *p)) {
            *to++ = *p;
        } else {
            *to++ = '.';
            while (p[1] && !strchr("0123456789eE", p[1])) p++;
        }
    }
    *to = 0;
}

enum { NUMBER_ROOM = 512, PRECISION_MOST = 100 };

static void print_real(char out[NUMBER_ROOM], char kind, int precision, bool alternate, double d)
{
    const char fmt[] = {'%', '.', '*', kind, 0}, fmt_alternate[] = {'%', '#', '.', '*', kind, 0};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(out, NUMBER_ROOM, alternate ? fmt_alternate : fmt, precision, d);
#pragma GCC diagnostic pop
    point_only(out);
}

lath_status round_real(render *r, double d, int64_t digits, double *out)
{
    char text[NUMBER_ROOM];
    json_value j;
    *out = d;
    if (!isfinite(d)) return LATH_OK;
    if (digits < 0) return render_fail(r, LATH_ERR_UNSUPPORTED, "a number rounded to tens");
    if (digits > 22 || fabs(d) >= 1e22) return LATH_OK;
    print_real(text, 'f', (int)digits, false, d);
    const bool minus = text[0] == '-';
    if (!chat_read_number(text + minus, strlen(text) - minus, &j))
        return render_fail(r, LATH_ERR_NOMEM, "round: no memory");
    *out = j.kind == JSON_INT ? (double)j.u.integer : j.u.real;
    if (minus) *out = -*out;
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------ what is placed */

typedef struct format_spec {
    char fill, align; /* align: '<', '>', '^', '='; 0: by the type */
    char sign;        /* '+', ' ' or 0 */
    bool alternate, zero, comma;
    int64_t width, precision; /* -1: none */
    char type;                /* 0: none */
} format_spec;

static lath_status put_placed(text_out *o, const format_spec *f, const chat_str *s, size_t head, char usual)
{
    const char align = f->align ? f->align : usual, fill = f->fill ? f->fill : ' ';
    const int64_t rest = f->width > (int64_t)s->n_chars ? f->width - (int64_t)s->n_chars : 0;
    const int64_t left = align == '<' || align == '=' ? 0 : align == '^' ? rest / 2 : rest;
    TRY(text_fill(o, fill, left));
    if (align == '=') text_part(o, s, 0, head);
    if (align == '=') TRY(text_fill(o, fill, rest));
    text_part(o, s, align == '=' ? head : 0, s->n);
    return align == '=' ? o->r->st : text_fill(o, fill, rest - left);
}

static lath_status put_text(text_out *o, const format_spec *f, const chat_str *s)
{
    value cut = {.kind = V_STR, .u.str = s};
    if (f->precision >= 0 && f->precision < (int64_t)s->n_chars)
        TRY(str_slice(o->r, s, 0, str_offset(s, (size_t)f->precision), &cut));
    return put_placed(o, f, cut.u.str, 0, '<');
}

/* Digits in groups of three with commas. */
static void with_commas(char text[NUMBER_ROOM])
{
    char from[NUMBER_ROOM];
    size_t n = 0, o = 0;
    memcpy(from, text, NUMBER_ROOM);
    while (from[n] >= '0' && from[n] <= '9') n++;
    for (size_t i = 0; from[i] && o + 2 < NUMBER_ROOM; i++) {
        if (i > 0 && i < n && (n - i) % 3 == 0) text[o++] = ',';
        text[o++] = from[i];
    }
    text[o] = 0;
}

/* `text` is the number without its sign. */
static lath_status put_number(text_out *o, const format_spec *f, bool minus, const char *prefix, char text[NUMBER_ROOM])
{
    char whole[NUMBER_ROOM + 8];
    if (f->comma) with_commas(text);
    const int n = snprintf(whole, sizeof(whole), "%s%s%s",
                           minus            ? "-"
                           : f->sign == '+' ? "+"
                           : f->sign        ? " "
                                            : "",
                           prefix, text);
    const chat_str s = {.s = whole, .n = (uint32_t)n, .n_chars = (uint32_t)n};
    format_spec g = *f;
    if (f->zero && !f->align) {
        g.align = '=';
        g.fill = '0';
    }
    return put_placed(o, &g, &s, (size_t)n - strlen(text), '>');
}

static lath_status put_int_as(text_out *o, const format_spec *f, int64_t v)
{
    char text[NUMBER_ROOM];
    const uint64_t u = v < 0 ? -(uint64_t)v : (uint64_t)v;
    const char *prefix = "";
    if (f->type == 'x' || f->type == 'X') {
        snprintf(text, sizeof(text), f->type == 'x' ? "%" PRIx64 : "%" PRIX64, u);
        prefix = !f->alternate ? "" : f->type == 'x' ? "0x" : "0X";
    } else if (f->type == 'o') {
        snprintf(text, sizeof(text), "%" PRIo64, u);
        prefix = f->alternate ? "0o" : "";
    } else {
        snprintf(text, sizeof(text), "%" PRIu64, u);
    }
    return put_number(o, f, v < 0, prefix, text);
}

static lath_status put_real_as(text_out *o, const format_spec *f, double d)
{
    char text[NUMBER_ROOM];
    const int64_t precision = f->precision < 0 ? 6 : f->precision;
    if (precision > PRECISION_MOST)
        return render_fail(o->r, LATH_ERR_UNSUPPORTED, "a number of more than %d digits", PRECISION_MOST);
    if (f->type == '%') d *= 100;
    print_real(text, f->type == '%' ? 'f' : f->type, (int)precision, f->alternate, fabs(d));
    if (f->type == '%') strncat(text, "%", sizeof(text) - strlen(text) - 1);
    return put_number(o, f, signbit(d) && !isnan(d), "", text);
}

/* ------------------------------------------------------------------------------------------------------------ %-format */

typedef struct percent {
    const chat_str *s;
    size_t at;
    const value *v; /* [n] positional */
    size_t n, used;
    const value_dict *names;
} percent;

static lath_status next_value(render *r, percent *p, value *out)
{
    if (p->used == p->n) return render_fail(r, LATH_ERR_INPUT, "%%: not enough values for the format");
    *out = p->v[p->used++];
    return LATH_OK;
}

/* *, or digits; -1 where there is none. */
static lath_status read_count(render *r, percent *p, int64_t *out)
{
    *out = -1;
    if (p->at < p->s->n && p->s->s[p->at] == '*') return render_fail(r, LATH_ERR_UNSUPPORTED, "%%: a width of \"*\"");
    while (p->at < p->s->n && digit_of(p->s->s[p->at]) < 10) {
        *out = (*out < 0 ? 0 : *out) * 10 + digit_of(p->s->s[p->at++]);
        if (*out > INT32_MAX) return render_fail(r, LATH_ERR_LIMIT, "%%: a width out of range");
    }
    return LATH_OK;
}

static lath_status percent_name(render *r, percent *p, value *out, bool *named)
{
    const char *s = p->s->s;
    *named = p->at < p->s->n && s[p->at] == '(';
    if (!*named) return LATH_OK;
    const size_t b = p->at + 1;
    while (p->at < p->s->n && s[p->at] != ')') p->at++;
    if (!p->names || p->at == p->s->n) return render_fail(r, LATH_ERR_INPUT, "%%: a format with names wants a dict");
    const value *there = dict_find_text(p->names, s + b, p->at - b);
    if (!there)
        return render_fail(r, LATH_ERR_INPUT, "%%: no \"%.*s\" in the dict", (int)(p->at - b > 60 ? 60 : p->at - b),
                           s + b);
    *out = *there;
    p->at++;
    return LATH_OK;
}

static lath_status percent_number(text_out *o, format_spec *f, value v)
{
    const bool whole = strchr("diuxXo", f->type) != NULL;
    if (v.kind == V_UNDEFINED) return fail_undefined(o->r, v);
    if (!value_is_number(v)) return fail_type(o->r, "%", v);
    if (!whole) return put_real_as(o, f, value_number(v));
    if (f->precision >= 0) return render_fail(o->r, LATH_ERR_UNSUPPORTED, "%%: an integer with a precision");
    int64_t i = 0;
    bool ok = true;
    if (v.kind == V_FLOAT) {
        if (strchr("xXo", f->type)) return fail_type(o->r, "%", v);
        TRY(real_to_int(o->r, v.u.real, &i, &ok));
        if (!ok) return render_fail(o->r, LATH_ERR_INPUT, "%%: infinity or no number as an integer");
    } else {
        i = value_integer(v);
    }
    return put_int_as(o, f, i);
}

static lath_status percent_one(text_out *o, percent *p)
{
    render *r = o->r;
    value v = VALUE_NONE;
    bool named, left = false;
    format_spec f = {.width = -1, .precision = -1};
    TRY(percent_name(r, p, &v, &named));
    for (; p->at < p->s->n && strchr("-+ #0", p->s->s[p->at]); p->at++) {
        const char c = p->s->s[p->at];
        left |= c == '-';
        f.alternate |= c == '#';
        f.zero |= c == '0';
        if (c == '+' || (c == ' ' && !f.sign)) f.sign = c;
    }
    if (left) f.align = '<';
    TRY(read_count(r, p, &f.width));
    if (p->at < p->s->n && p->s->s[p->at] == '.') {
        p->at++;
        TRY(read_count(r, p, &f.precision));
        if (f.precision < 0) f.precision = 0;
    }
    if (p->at == p->s->n) return render_fail(r, LATH_ERR_INPUT, "%%: the format ends too early");
    f.type = p->s->s[p->at++];
    if (f.type == '%') {
        text_own(o, "%");
        return r->st;
    }
    if (!named) TRY(next_value(r, p, &v));
    if (strchr("diuxXoeEfFgG", f.type)) return percent_number(o, &f, v);
    if (f.type != 's' && f.type != 'r') return render_fail(r, LATH_ERR_UNSUPPORTED, "%%: the format %%%c", f.type);
    text_out part;
    value s;
    text_init(&part, r);
    TRY(f.type == 's' ? put_value(&part, v) : put_repr(&part, v));
    TRY(text_finish(&part, &s));
    if (!f.align) f.align = '>';
    return put_text(o, &f, s.u.str);
}

lath_status format_percent(render *r, const chat_str *format, value v, value *out)
{
    text_out o;
    percent p = {.s = format, .v = &v, .n = 1};
    if (format->markup) return render_fail(r, LATH_ERR_UNSUPPORTED, "%% of an escaped text");
    if (v.kind == V_TUPLE) {
        p.v = v.u.list->v;
        p.n = v.u.list->n;
    }
    if (v.kind == V_DICT) p.names = v.u.dict;
    text_init(&o, r);
    while (p.at < format->n) {
        const char *next = memchr(format->s + p.at, '%', format->n - p.at);
        const size_t to = next ? (size_t)(next - format->s) : format->n;
        text_part(&o, format, p.at, to);
        p.at = to;
        if (!next) break;
        p.at++;
        TRY(render_step(r, 1));
        TRY(percent_one(&o, &p));
    }
    /* What has subscripts may be more than the format takes, but for texts and tuples. */
    const bool may = v.kind == V_DICT || v.kind == V_LIST || v.kind == V_RANGE || v.kind == V_UNDEFINED;
    if (p.used < p.n && !may) return render_fail(r, LATH_ERR_INPUT, "%%: more values than the format takes");
    return text_finish(&o, out);
}

/* ------------------------------------------------------------------------------------------------------- str.format() */

typedef struct braces {
    const args *a;
    size_t next; /* of the fields without a name */
    bool numbered, automatic;
} braces;

static lath_status field_first(render *r, braces *b, const chat_str *name, value *out)
{
    int64_t i = 0;
    bool ok = false;
    if (name->n == 0) {
        i = (int64_t)b->next++;
        b->automatic = ok = true;
    } else if (digit_of(name->s[0]) < 10) {
        TRY(text_to_int(r, name, 10, &i, &ok));
        b->numbered = true;
    }
    if (b->numbered && b->automatic) return render_fail(r, LATH_ERR_INPUT, "format: numbers and no numbers mixed");
    if (ok && (uint64_t)i < b->a->n) {
        *out = b->a->v[i];
        return LATH_OK;
    }
    for (size_t k = 0; k < b->a->n_kw && !ok; k++) {
        if (b->a->kw[k].n != name->n || memcmp(b->a->kw[k].name, name->s, name->n) != 0) continue;
        *out = b->a->kw[k].v;
        return LATH_OK;
    }
    return render_fail(r, LATH_ERR_INPUT, "format: no argument \"%.*s\"", name->n > 60 ? 60 : (int)name->n, name->s);
}

/* name, then .attr and [key]. */
static lath_status field_value(render *r, braces *b, const chat_str *s, size_t from, size_t to, value *out)
{
    size_t i = from;
    value part;
    while (i < to && s->s[i] != '.' && s->s[i] != '[') i++;
    TRY(str_slice(r, s, from, i, &part));
    TRY(field_first(r, b, part.u.str, out));
    while (i < to) {
        const bool bracket = s->s[i] == '[';
        size_t e = ++i;
        while (e < to && (bracket ? s->s[e] != ']' : s->s[e] != '.' && s->s[e] != '[')) e++;
        if (e == i || (bracket && e == to)) return render_fail(r, LATH_ERR_INPUT, "format: an empty attribute");
        TRY(str_slice(r, s, i, e, &part));
        if (bracket) {
            int64_t index;
            bool ok = false;
            if (digit_of(s->s[i]) < 10) TRY(text_to_int(r, part.u.str, 10, &index, &ok));
            TRY(value_item(r, *out, ok ? value_int(index) : part, out));
            i = e + 1;
        } else {
            TRY(value_attr(r, *out, part.u.str, out));
            i = e;
        }
        if (out->kind == V_UNDEFINED) return fail_undefined(r, *out);
    }
    return LATH_OK;
}

static lath_status read_spec(render *r, const chat_str *s, size_t i, size_t to, format_spec *f)
{
    *f = (format_spec){.width = -1, .precision = -1};
    if (i + 1 < to && strchr("<>^=", s->s[i + 1])) {
        f->fill = s->s[i];
        f->align = s->s[i + 1];
        i += 2;
    } else if (i < to && strchr("<>^=", s->s[i])) {
        f->align = s->s[i++];
    }
    if (i < to && strchr("+- ", s->s[i])) f->sign = s->s[i++];
    if (f->sign == '-') f->sign = 0;
    if (i < to && s->s[i] == '#') f->alternate = s->s[i++];
    if (i < to && s->s[i] == '0') f->zero = s->s[i++];
    for (; i < to && digit_of(s->s[i]) < 10 && f->width < INT32_MAX; i++)
        f->width = (f->width < 0 ? 0 : f->width) * 10 + digit_of(s->s[i]);
    if (f->width >= INT32_MAX) return render_fail(r, LATH_ERR_LIMIT, "format: a width out of range");
    if (i < to && s->s[i] == ',') f->comma = s->s[i++];
    if (i < to && s->s[i] == '.') {
        f->precision = 0;
        for (i++; i < to && digit_of(s->s[i]) < 10 && f->precision < INT32_MAX; i++)
            f->precision = f->precision * 10 + digit_of(s->s[i]);
    }
    if (i < to) f->type = s->s[i++];
    if (i != to || (f->fill & 0x80)) return render_fail(r, LATH_ERR_UNSUPPORTED, "format: this format of a field");
    return LATH_OK;
}

static lath_status put_field(text_out *o, value v, char conversion, const chat_str *s, size_t from, size_t to)
{
    text_out part;
    value text = v;
    format_spec f;
    TRY(read_spec(o->r, s, from, to, &f));
    if (conversion || v.kind != V_STR) {
        text_init(&part, o->r);
        TRY(conversion == 'r' ? put_repr(&part, v) : put_value(&part, v));
        TRY(text_finish(&part, &text));
    }
    if (from == to) {
        text_str(o, text.u.str);
        return o->r->st;
    }
    if (conversion || v.kind == V_STR) {
        if (f.type && f.type != 's') return fail_type(o->r, "format", text);
        if (f.zero || f.sign || f.comma || f.align == '=')
            return render_fail(o->r, LATH_ERR_UNSUPPORTED, "format: a text as a number");
        return put_text(o, &f, text.u.str);
    }
    if (value_is_int(v) && v.kind == V_INT && (!f.type || strchr("dxXo", f.type))) {
        if (f.precision >= 0) return render_fail(o->r, LATH_ERR_INPUT, "format: an integer with a precision");
        return put_int_as(o, &f, v.u.integer);
    }
    if ((v.kind == V_FLOAT || v.kind == V_INT) && f.type && strchr("eEfFgG%", f.type))
        return put_real_as(o, &f, value_number(v));
    return render_fail(o->r, LATH_ERR_UNSUPPORTED, "format: a %s in this format", value_type(v));
}

static lath_status brace_field(text_out *o, braces *b, const chat_str *s, size_t from, size_t to)
{
    size_t name = from;
    char conversion = 0;
    value v;
    for (size_t i = from; i < to; i++) {
        if (s->s[i] == '{') return render_fail(o->r, LATH_ERR_UNSUPPORTED, "format: a field in a field");
    }
    while (name < to && s->s[name] != '!' && s->s[name] != ':') name++;
    size_t spec = name;
    if (name < to && s->s[name] == '!') {
        if (name + 1 >= to || !strchr("sr", s->s[name + 1]))
            return render_fail(o->r, LATH_ERR_UNSUPPORTED, "format: this conversion");
        conversion = s->s[name + 1];
        spec = name + 2;
        if (spec < to && s->s[spec] != ':') return render_fail(o->r, LATH_ERR_INPUT, "format: want \":\"");
    }
    TRY(field_value(o->r, b, s, from, name, &v));
    return put_field(o, v, conversion, s, spec < to ? spec + 1 : to, to);
}

lath_status format_braces(render *r, const chat_str *s, const args *a, value *out)
{
    text_out o;
    braces b = {.a = a};
    text_init(&o, r);
    for (size_t i = 0; i < s->n;) {
        const char c = s->s[i];
        TRY(render_step(r, i % 16 == 0));
        if (c != '{' && c != '}') {
            text_part(&o, s, i, i + 1);
            i++;
        } else if (i + 1 < s->n && s->s[i + 1] == c) {
            text_part(&o, s, i, i + 1);
            i += 2;
        } else {
            const char *end = c == '{' ? memchr(s->s + i, '}', s->n - i) : NULL;
            if (!end) return render_fail(r, LATH_ERR_INPUT, "format: a brace alone");
            TRY(brace_field(&o, &b, s, i + 1, (size_t)(end - s->s)));
            i = (size_t)(end - s->s) + 1;
        }
    }
    return text_finish(&o, out);
}
