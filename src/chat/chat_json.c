/* SPDX-License-Identifier: Apache-2.0
 * chat_json.c: the filter tojson, which transformers makes of Python's json.dumps: ensure_ascii is off by default, and nothing is escaped for HTML. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "chat/chat_call.h"

typedef struct json_out {
    text_out o;
    const chat_str *indent; /* NULL: all on one line */
    const chat_str *comma, *colon;
    bool ascii, sort;
    int level;
} json_out;

static void put_u(text_out *o, uint32_t c, bool content)
{
    char text[16];
    if (c >= 0x10000)
        snprintf(text, sizeof(text), "\\u%04x\\u%04x", 0xD800 + ((c - 0x10000) >> 10),
                 0xDC00 + ((c - 0x10000) & 0x3FF));
    else
        snprintf(text, sizeof(text), "\\u%04x", c);
    text_put(o, text, strlen(text), NULL, content);
}

static void put_string(json_out *j, const chat_str *s)
{
    static const char short_escapes[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    size_t from = 0;
    text_own(&j->o, "\"");
    for (size_t i = 0; i < s->n;) {
        uint32_t c;
        const size_t len = utf8_decode(s->s + i, s->n - i, &c);
        const bool content = str_content_at(s, i);
        if (c < 0x20 || c == '"' || c == '\\' || (j->ascii && c > 0x7E)) {
            char escape[2] = {'\\', 0};
            text_part(&j->o, s, from, i);
            from = i + len;
            for (size_t k = 0; k + 1 < sizeof(short_escapes); k += 2) {
                if ((unsigned char)short_escapes[k] == c) escape[1] = short_escapes[k + 1];
            }
            if (escape[1])
                text_put(&j->o, escape, 2, NULL, content);
            else
                put_u(&j->o, c, content);
        }
        i += len;
    }
    text_part(&j->o, s, from, s->n);
    text_own(&j->o, "\"");
}

static void put_number(text_out *o, double d)
{
    if (isnan(d))
        text_own(o, "NaN");
    else if (isinf(d))
        text_own(o, d > 0 ? "Infinity" : "-Infinity");
    else
        put_real(o, d);
}

static void new_line(json_out *j)
{
    if (!j->indent) return;
    text_own(&j->o, "\n");
    for (int i = 0; i < j->level; i++) text_str(&j->o, j->indent);
}

static lath_status put(json_out *j, value v);

static lath_status put_list(json_out *j, const value_list *l)
{
    if (l->n == 0) {
        text_own(&j->o, "[]");
        return j->o.r->st;
    }
    text_own(&j->o, "[");
    j->level++;
    for (size_t i = 0; i < l->n; i++) {
        if (i) text_str(&j->o, j->comma);
        new_line(j);
        TRY(put(j, l->v[i]));
    }
    j->level--;
    new_line(j);
    text_own(&j->o, "]");
    return j->o.r->st;
}

/* Numbers, booleans and null become strings as keys. */
static lath_status put_key(json_out *j, value key)
{
    if (key.kind == V_STR) {
        put_string(j, key.u.str);
        return j->o.r->st;
    }
    if (key.kind != V_NONE && !value_is_number(key)) return fail_type(j->o.r, "tojson: a key", key);
    text_own(&j->o, "\"");
    TRY(put(j, key));
    text_own(&j->o, "\"");
    return j->o.r->st;
}

static lath_status sorted_entries(render *r, const value_dict *d, value *out)
{
    const filter_row *sort = chat_find_filter("dictsort", 8);
    const value yes = value_bool(true);
    const args a = {.v = &yes, .n = 1, .what = "tojson"};
    return sort->fn(r, (value){.kind = V_DICT, .u.dict = d}, &a, out);
}

static lath_status put_dict(json_out *j, const value_dict *d)
{
    value sorted = VALUE_NONE;
    if (d->n == 0) {
        text_own(&j->o, "{}");
        return j->o.r->st;
    }
    if (j->sort) TRY(sorted_entries(j->o.r, d, &sorted));
    text_own(&j->o, "{");
    j->level++;
    for (size_t i = 0; i < d->n; i++) {
        const value *pair = j->sort ? sorted.u.list->v[i].u.list->v : NULL;
        if (i) text_str(&j->o, j->comma);
        new_line(j);
        TRY(put_key(j, pair ? pair[0] : d->v[i].key));
        text_str(&j->o, j->colon);
        TRY(put(j, pair ? pair[1] : d->v[i].value));
    }
    j->level--;
    new_line(j);
    text_own(&j->o, "}");
    return j->o.r->st;
}

static lath_status put(json_out *j, value v)
{
    render *r = j->o.r;
    lath_status st;
    TRY(render_step(r, 1));
    switch (v.kind) {
    case V_NONE: text_own(&j->o, "null"); return r->st;
    case V_BOOL: text_own(&j->o, v.u.boolean ? "true" : "false"); return r->st;
    case V_INT: put_int(&j->o, v.u.integer); return r->st;
    case V_FLOAT: put_number(&j->o, v.u.real); return r->st;
    case V_STR: put_string(j, v.u.str); return r->st;
    case V_LIST:
    case V_TUPLE:
    case V_DICT: break;
    case V_UNDEFINED:
        return render_fail(r, LATH_ERR_INPUT, "tojson: of a value that is not defined (\"%.*s\")",
                           v.u.undefined && v.u.undefined->n < 60 ? (int)v.u.undefined->n : 0,
                           v.u.undefined ? v.u.undefined->name : "");
    default: return fail_type(r, "tojson", v);
    }
    TRY(render_enter(r));
    st = v.kind == V_DICT ? put_dict(j, v.u.dict) : put_list(j, v.u.list);
    r->depth--;
    return st;
}

static lath_status read_indent(render *r, const args *a, value v, const chat_str **out)
{
    int64_t n;
    value one;
    *out = NULL;
    if (v.kind == V_NONE) return LATH_OK;
    if (v.kind != V_STR) {
        TRY(arg_int(r, a, v, &n));
        TRY(str_own(r, " ", &one));
        TRY(value_binary(r, OP_MUL, one, value_int(n), &v));
    }
    *out = v.u.str;
    return LATH_OK;
}

lath_status filter_tojson(render *r, value v, const args *a, value *out)
{
    value x[4] = {value_bool(false), VALUE_NONE, VALUE_NONE, value_bool(false)}, by[2], *parts = by;
    size_t n = 2;
    json_out j = {0};
    TRY(args_read(r, a, "ensure_ascii indent separators sort_keys", 0, x));
    TRY(read_indent(r, a, x[1], &j.indent));
    TRY(str_own(r, j.indent ? "," : ", ", &by[0]));
    TRY(str_own(r, ": ", &by[1]));
    if (x[2].kind != V_NONE) TRY(value_items(r, x[2], &parts, &n));
    if (n != 2) return render_fail(r, LATH_ERR_INPUT, "tojson: want two separators");
    TRY(arg_str(r, a, parts[0], &j.comma));
    TRY(arg_str(r, a, parts[1], &j.colon));
    j.ascii = value_truth(x[0]);
    j.sort = value_truth(x[3]);
    text_init(&j.o, r);
    TRY(put(&j, v));
    return text_finish(&j.o, out);
}
