/* SPDX-License-Identifier: Apache-2.0
 * chat_str.c: the methods of Python's str. Each carries along what of its result is content. */
#include <string.h>

#include "base/utf8.h"
#include "chat/chat_call.h"
#include "chat/chat_text.h"

static size_t next_cp(const chat_str *s, size_t i, uint32_t *c) { return utf8_decode(s->s + i, s->n - i, c); }

/* ----------------------------------------------------------------------------------------------------------- stripping */

static bool has_cp(const chat_str *s, const char *c, size_t len) { return memmem(s->s, s->n, c, len) != NULL; }

/* chars NULL: white space. */
lath_status str_strip(render *r, const chat_str *s, const chat_str *chars, bool left, bool right, value *out)
{
    size_t b = 0, e = s->n;
    uint32_t c;
    while (left && b < e) {
        const size_t len = next_cp(s, b, &c);
        if (!(chars ? has_cp(chars, s->s + b, len) : chat_is_space(c))) break;
        b += len;
    }
    while (right && e > b) {
        size_t i = e - 1;
        while (((uint8_t)s->s[i] & 0xC0) == 0x80) i--;
        next_cp(s, i, &c);
        if (!(chars ? has_cp(chars, s->s + i, e - i) : chat_is_space(c))) break;
        e = i;
    }
    TRY(render_step(r, (s->n - (e - b)) >> 3));
    return str_slice(r, s, b, e, out);
}

static lath_status strip(render *r, value self, const args *a, bool left, bool right, value *out)
{
    value v = VALUE_NONE;
    const chat_str *chars = NULL;
    TRY(args_read(r, a, "chars", 0, &v));
    if (a->n_kw) return render_fail(r, LATH_ERR_INPUT, "%s: takes no keywords", a->what);
    if (v.kind != V_NONE) TRY(arg_str(r, a, v, &chars));
    return str_strip(r, self.u.str, chars, left, right, out);
}

static lath_status m_strip(render *r, value self, const args *a, value *out)
{
    return strip(r, self, a, true, true, out);
}
static lath_status m_lstrip(render *r, value self, const args *a, value *out)
{
    return strip(r, self, a, true, false, out);
}
static lath_status m_rstrip(render *r, value self, const args *a, value *out)
{
    return strip(r, self, a, false, true, out);
}

static lath_status remove_affix(render *r, value self, const args *a, bool front, value *out)
{
    value v;
    const chat_str *x, *s = self.u.str;
    TRY(args_read(r, a, "affix", 1, &v));
    TRY(arg_str(r, a, v, &x));
    if (x->n > s->n || memcmp(front ? s->s : s->s + s->n - x->n, x->s, x->n) != 0) return str_slice(r, s, 0, s->n, out);
    return str_slice(r, s, front ? x->n : 0, front ? s->n : s->n - x->n, out);
}

static lath_status m_removeprefix(render *r, value self, const args *a, value *out)
{
    return remove_affix(r, self, a, true, out);
}

static lath_status m_removesuffix(render *r, value self, const args *a, value *out)
{
    return remove_affix(r, self, a, false, out);
}

/* ---------------------------------------------------------------------------------------------------------------- case */

/* The sigma at i ends its word: a letter with case is before it and none behind, what has no say left out. */
static bool final_sigma(const chat_str *s, size_t i)
{
    uint32_t c = 0;
    size_t k = i;
    bool before = false;
    while (k > 0 && !before) {
        do k--;
        while (((uint8_t)s->s[k] & 0xC0) == 0x80);
        next_cp(s, k, &c);
        if (chat_is_case_ignorable(c)) continue;
        if (!chat_is_cased(c)) return false;
        before = true;
    }
    if (!before) return false;
    for (k = i + 2; k < s->n;) {
        k += next_cp(s, k, &c);
        if (!chat_is_case_ignorable(c)) return !chat_is_cased(c);
    }
    return true;
}

static void put_case(text_out *o, const chat_str *s, size_t i, uint32_t c, bool upper, bool title)
{
    uint32_t to[CHAT_CASE_MOST];
    size_t n = upper ? chat_upper(c, to) : title ? chat_title(c, to) : chat_lower(c, to);
    if (!upper && !title && c == 0x3A3) to[0] = final_sigma(s, i) ? 0x3C2 : 0x3C3;
    for (size_t k = 0; k < n; k++) text_cp(o, to[k], str_content_at(s, i));
}

/* Between these, jinja2's filter `title` begins a word. */
static bool begins_word(uint32_t c) { return chat_is_space(c) || (c < 0x80 && c && memchr("-({[<", (int)c, 5)); }

lath_status str_change_case(render *r, const chat_str *s, str_case how, value *out)
{
    text_out o;
    bool inside = false; /* of a word */
    text_init(&o, r);
    TRY(render_step(r, s->n >> 2));
    for (size_t i = 0; i < s->n;) {
        uint32_t c;
        const size_t len = next_cp(s, i, &c);
        bool upper = how == CASE_UPPER, title = false;
        if (how == CASE_CAPITALIZE) title = i == 0;
        if (how == CASE_TITLE) {
            title = !inside;
            inside = chat_is_cased(c);
        }
        if (how == CASE_JINJA_TITLE) {
            upper = !inside;
            inside = !begins_word(c);
        }
        if (how == CASE_SWAP) upper = chat_is_lower(c);
        if (how == CASE_SWAP && !upper && !chat_is_upper(c))
            text_part(&o, s, i, i + len);
        else
            put_case(&o, s, i, c, upper, title);
        i += len;
    }
    return text_finish(&o, out);
}

static lath_status change_case(render *r, value self, const args *a, str_case how, value *out)
{
    TRY(args_none(r, a));
    return str_change_case(r, self.u.str, how, out);
}

static lath_status m_upper(render *r, value self, const args *a, value *out)
{
    return change_case(r, self, a, CASE_UPPER, out);
}
static lath_status m_lower(render *r, value self, const args *a, value *out)
{
    return change_case(r, self, a, CASE_LOWER, out);
}
static lath_status m_title(render *r, value self, const args *a, value *out)
{
    return change_case(r, self, a, CASE_TITLE, out);
}
static lath_status m_swapcase(render *r, value self, const args *a, value *out)
{
    return change_case(r, self, a, CASE_SWAP, out);
}
static lath_status m_capitalize(render *r, value self, const args *a, value *out)
{
    return change_case(r, self, a, CASE_CAPITALIZE, out);
}

/* All characters are of the class, and there is one. */
static lath_status all_are(render *r, value self, const args *a, bool (*is)(uint32_t), value *out)
{
    uint32_t c;
    const chat_str *s = self.u.str;
    bool yes = s->n > 0;
    TRY(args_none(r, a));
    TRY(render_step(r, s->n >> 4));
    for (size_t i = 0; i < s->n && yes;) {
        i += next_cp(s, i, &c);
        yes = is(c);
    }
    *out = value_bool(yes);
    return LATH_OK;
}

static bool is_alnum(uint32_t c)
{
    return chat_is_alpha(c) || chat_is_decimal(c) || chat_is_digit(c) || chat_is_numeric(c);
}

static lath_status m_isalpha(render *r, value self, const args *a, value *out)
{
    return all_are(r, self, a, chat_is_alpha, out);
}
static lath_status m_isalnum(render *r, value self, const args *a, value *out)
{
    return all_are(r, self, a, is_alnum, out);
}
static lath_status m_isdecimal(render *r, value self, const args *a, value *out)
{
    return all_are(r, self, a, chat_is_decimal, out);
}
static lath_status m_isdigit(render *r, value self, const args *a, value *out)
{
    return all_are(r, self, a, chat_is_digit, out);
}
static lath_status m_isnumeric(render *r, value self, const args *a, value *out)
{
    return all_are(r, self, a, chat_is_numeric, out);
}
static lath_status m_isspace(render *r, value self, const args *a, value *out)
{
    return all_are(r, self, a, chat_is_space, out);
}

/* There is a letter of this case and none of another. */
static bool all_case(const chat_str *s, bool (*is)(uint32_t), bool (*other)(uint32_t))
{
    uint32_t c;
    bool found = false;
    for (size_t i = 0; i < s->n;) {
        i += next_cp(s, i, &c);
        if (other(c) || chat_is_title(c)) return false;
        found |= is(c);
    }
    return found;
}

bool str_all_upper(const chat_str *s) { return all_case(s, chat_is_upper, chat_is_lower); }
bool str_all_lower(const chat_str *s) { return all_case(s, chat_is_lower, chat_is_upper); }

static lath_status m_isupper(render *r, value self, const args *a, value *out)
{
    TRY(args_none(r, a));
    *out = value_bool(str_all_upper(self.u.str));
    return LATH_OK;
}

static lath_status m_islower(render *r, value self, const args *a, value *out)
{
    TRY(args_none(r, a));
    *out = value_bool(str_all_lower(self.u.str));
    return LATH_OK;
}

static lath_status m_isascii(render *r, value self, const args *a, value *out)
{
    TRY(args_none(r, a));
    *out = value_bool(self.u.str->n == self.u.str->n_chars);
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------- finding */

/* start and end of find, count, startswith: bytes of s. *empty: start is behind the end of s or end before it. */
static lath_status read_bounds(render *r, const args *a, const chat_str *s, const value *v, size_t *from, size_t *to,
                               bool *empty)
{
    const int64_t n = s->n_chars;
    int64_t b = 0, e = n;
    if (v[0].kind != V_NONE) TRY(arg_int(r, a, v[0], &b));
    if (v[1].kind != V_NONE) TRY(arg_int(r, a, v[1], &e));
    if (b < 0) b = b < -n ? 0 : b + n;
    if (e < 0) e = e < -n ? 0 : e + n;
    if (e > n) e = n;
    *empty = b > n || b > e;
    *from = *empty ? 0 : str_offset(s, (size_t)b);
    *to = *empty ? 0 : str_offset(s, (size_t)e);
    return LATH_OK;
}

static lath_status find(render *r, value self, const args *a, bool last, int64_t *out)
{
    value v[3] = {VALUE_NONE, VALUE_NONE, VALUE_NONE};
    const chat_str *x, *s = self.u.str;
    size_t from, to;
    bool empty;
    TRY(args_read(r, a, "sub start end", 1, v));
    TRY(arg_str(r, a, v[0], &x));
    TRY(read_bounds(r, a, s, v + 1, &from, &to, &empty));
    TRY(render_step(r, s->n >> 5));
    const size_t at = empty ? SIZE_MAX : last ? str_rfind(s, from, to, x) : str_find(s, from, to, x);
    *out = at == SIZE_MAX ? -1 : (int64_t)chat_count(s->s, at);
    return LATH_OK;
}

static lath_status m_find(render *r, value self, const args *a, value *out)
{
    int64_t at;
    TRY(find(r, self, a, a->what[0] == 'r', &at));
    *out = value_int(at);
    return LATH_OK;
}

static lath_status m_index(render *r, value self, const args *a, value *out)
{
    TRY(m_find(r, self, a, out));
    return out->u.integer < 0 ? render_fail(r, LATH_ERR_INPUT, "%s: the text is not there", a->what) : LATH_OK;
}

static lath_status m_count(render *r, value self, const args *a, value *out)
{
    value v[3] = {VALUE_NONE, VALUE_NONE, VALUE_NONE};
    const chat_str *x, *s = self.u.str;
    size_t from, to, n = 0;
    bool empty;
    TRY(args_read(r, a, "sub start end", 1, v));
    TRY(arg_str(r, a, v[0], &x));
    TRY(read_bounds(r, a, s, v + 1, &from, &to, &empty));
    TRY(render_step(r, s->n >> 5));
    if (x->n == 0 && !empty) n = chat_count(s->s + from, to - from) + 1;
    while (x->n && !empty && (from = str_find(s, from, to, x)) != SIZE_MAX) {
        from += x->n;
        n++;
    }
    *out = value_int((int64_t)n);
    return LATH_OK;
}

static bool affix_is(const chat_str *s, size_t from, size_t to, const chat_str *x, bool front)
{
    return x->n <= to - from && memcmp(front ? s->s + from : s->s + to - x->n, x->s, x->n) == 0;
}

static lath_status has_affix(render *r, value self, const args *a, bool front, value *out)
{
    value v[3] = {VALUE_NONE, VALUE_NONE, VALUE_NONE};
    size_t from, to;
    bool empty, yes = false;
    TRY(args_read(r, a, "affix start end", 1, v));
    TRY(read_bounds(r, a, self.u.str, v + 1, &from, &to, &empty));
    const value *x = v[0].kind == V_TUPLE ? v[0].u.list->v : v;
    const size_t n = v[0].kind == V_TUPLE ? v[0].u.list->n : 1;
    for (size_t i = 0; i < n && !yes; i++) {
        const chat_str *affix;
        TRY(arg_str(r, a, x[i], &affix));
        yes = !empty && affix_is(self.u.str, from, to, affix, front);
    }
    *out = value_bool(yes);
    return LATH_OK;
}

static lath_status m_startswith(render *r, value self, const args *a, value *out)
{
    return has_affix(r, self, a, true, out);
}
static lath_status m_endswith(render *r, value self, const args *a, value *out)
{
    return has_affix(r, self, a, false, out);
}

/* ------------------------------------------------------------------------------------------------- replacing, splitting */

/* most < 0: all. An empty old text is before every character and at the end. */
lath_status str_replace(render *r, const chat_str *s, const chat_str *old, const chat_str *to, int64_t most, value *out)
{
    text_out o;
    size_t from = 0;
    uint32_t c;
    text_init(&o, r);
    TRY(render_step(r, s->n >> 5));
    for (int64_t k = 0; most < 0 || k < most; k++) {
        TRY(render_step(r, 1));
        const size_t at = old->n ? str_find(s, from, s->n, old) : from;
        if (at == SIZE_MAX) break;
        text_part(&o, s, from, at);
        text_str(&o, to);
        from = at + old->n;
        if (old->n) continue;
        if (at == s->n) return text_finish(&o, out);
        from = at + next_cp(s, at, &c);
        text_part(&o, s, at, from);
    }
    text_part(&o, s, from, s->n);
    return text_finish(&o, out);
}

static lath_status m_replace(render *r, value self, const args *a, value *out)
{
    value v[3] = {[2] = value_int(-1)};
    const chat_str *old, *to;
    int64_t most;
    TRY(args_read(r, a, "old new count", 2, v));
    TRY(arg_str(r, a, v[0], &old));
    TRY(arg_str(r, a, v[1], &to));
    TRY(arg_int(r, a, v[2], &most));
    return str_replace(r, self.u.str, old, to, most, out);
}

/* Pieces that are being collected. */
typedef struct pieces {
    render *r;
    value *v;
    size_t n, cap;
} pieces;

static lath_status add_piece(pieces *p, const chat_str *s, size_t begin, size_t end)
{
    TRY(render_step(p->r, 1));
    if (p->n == p->cap) {
        const size_t cap = p->cap ? p->cap * 2 : 8;
        value *v = render_array(p->r, cap, sizeof(*v));
        if (!v) return p->r->st;
        if (p->n) memcpy(v, p->v, p->n * sizeof(*v));
        p->v = v;
        p->cap = cap;
    }
    return str_slice(p->r, s, begin, end, &p->v[p->n++]);
}

static lath_status finish_pieces(pieces *p, bool backwards, value *out)
{
    TRY(value_new_list(p->r, V_LIST, p->n, out));
    for (size_t i = 0; i < p->n; i++) out->u.list->v[i] = p->v[backwards ? p->n - 1 - i : i];
    return LATH_OK;
}

/* At white space; most < 0: everywhere. */
static lath_status split_space(pieces *p, const chat_str *s, int64_t most)
{
    size_t at = chat_space_end(s->s, s->n, 0);
    uint32_t c;
    while (at < s->n) {
        size_t e = at;
        if (most >= 0 && (int64_t)p->n == most) return add_piece(p, s, at, s->n);
        while (e < s->n) {
            const size_t len = next_cp(s, e, &c);
            if (chat_is_space(c)) break;
            e += len;
        }
        TRY(add_piece(p, s, at, e));
        at = chat_space_end(s->s, s->n, e);
    }
    return LATH_OK;
}

static lath_status rsplit_space(pieces *p, const chat_str *s, int64_t most)
{
    size_t e = chat_rstrip(s->s, s->n);
    uint32_t c;
    while (e > 0) {
        size_t b = e;
        if (most >= 0 && (int64_t)p->n == most) return add_piece(p, s, 0, e);
        while (b > 0) {
            size_t k = b - 1;
            while (((uint8_t)s->s[k] & 0xC0) == 0x80) k--;
            next_cp(s, k, &c);
            if (chat_is_space(c)) break;
            b = k;
        }
        TRY(add_piece(p, s, b, e));
        e = chat_rstrip(s->s, b);
    }
    return LATH_OK;
}

static lath_status split_at(pieces *p, const chat_str *s, const chat_str *by, int64_t most, bool right)
{
    size_t b = 0, e = s->n;
    while (most < 0 || (int64_t)p->n < most) {
        const size_t at = right ? str_rfind(s, b, e, by) : str_find(s, b, e, by);
        if (at == SIZE_MAX) break;
        TRY(right ? add_piece(p, s, at + by->n, e) : add_piece(p, s, b, at));
        if (right)
            e = at;
        else
            b = at + by->n;
    }
    return add_piece(p, s, b, e);
}

static lath_status m_split(render *r, value self, const args *a, value *out)
{
    value v[2] = {VALUE_NONE, value_int(-1)};
    pieces p = {.r = r};
    const chat_str *by;
    int64_t most;
    const bool right = a->what[0] == 'r';
    TRY(args_read(r, a, "sep maxsplit", 0, v));
    TRY(arg_int(r, a, v[1], &most));
    TRY(render_step(r, self.u.str->n >> 5));
    if (v[0].kind == V_NONE) {
        TRY(right ? rsplit_space(&p, self.u.str, most) : split_space(&p, self.u.str, most));
    } else {
        TRY(arg_str(r, a, v[0], &by));
        if (by->n == 0) return render_fail(r, LATH_ERR_INPUT, "%s: at nothing", a->what);
        TRY(split_at(&p, self.u.str, by, most, right));
    }
    return finish_pieces(&p, right, out);
}

static bool is_line_end(uint32_t c)
{
    return (c >= 10 && c <= 13) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

lath_status str_split_lines(render *r, const chat_str *s, bool keep, value *out)
{
    pieces p = {.r = r};
    size_t b = 0;
    for (size_t i = 0; i < s->n;) {
        uint32_t c;
        const size_t at = i;
        i += next_cp(s, i, &c);
        if (!is_line_end(c)) continue;
        if (c == '\r' && i < s->n && s->s[i] == '\n') i++;
        TRY(add_piece(&p, s, b, keep ? i : at));
        b = i;
    }
    if (b < s->n) TRY(add_piece(&p, s, b, s->n));
    return finish_pieces(&p, false, out);
}

static lath_status m_splitlines(render *r, value self, const args *a, value *out)
{
    value v = value_bool(false);
    TRY(args_read(r, a, "keepends", 0, &v));
    return str_split_lines(r, self.u.str, value_truth(v), out);
}

static lath_status m_partition(render *r, value self, const args *a, value *out)
{
    value v;
    const chat_str *by, *s = self.u.str;
    const bool right = a->what[0] == 'r';
    TRY(args_read(r, a, "sep", 1, &v));
    TRY(arg_str(r, a, v, &by));
    if (by->n == 0) return render_fail(r, LATH_ERR_INPUT, "%s: at nothing", a->what);
    const size_t at = right ? str_rfind(s, 0, s->n, by) : str_find(s, 0, s->n, by);
    TRY(value_new_list(r, V_TUPLE, 3, out));
    value *t = out->u.list->v;
    const size_t b = at != SIZE_MAX ? at : right ? 0 : s->n, e = at != SIZE_MAX ? at + by->n : b;
    TRY(str_slice(r, s, 0, b, &t[0]));
    TRY(str_slice(r, s, b, e, &t[1]));
    return str_slice(r, s, e, s->n, &t[2]);
}

/* ------------------------------------------------------------------------------------------------- joining, placing */

lath_status str_join(render *r, const chat_str *by, value items, value *out)
{
    text_out o;
    value *v;
    size_t n;
    TRY(value_items(r, items, &v, &n));
    text_init(&o, r);
    for (size_t i = 0; i < n; i++) {
        if (v[i].kind != V_STR) return fail_type(r, "join", v[i]);
        TRY(render_step(r, 1));
        if (i) text_str(&o, by);
        text_str(&o, v[i].u.str);
    }
    return text_finish(&o, out);
}

static lath_status m_join(render *r, value self, const args *a, value *out)
{
    value v;
    TRY(args_read(r, a, "iterable", 1, &v));
    return str_join(r, self.u.str, v, out);
}

/* side: 'c', 'l', 'r'. Of an odd rest Python's center puts more on the left where the width is odd. */
lath_status str_center(render *r, const chat_str *s, int64_t width, char side, char fill, value *out)
{
    text_out o;
    const int64_t rest = width > (int64_t)s->n_chars ? width - (int64_t)s->n_chars : 0;
    const int64_t left = side == 'l' ? 0 : side == 'r' ? rest : rest / 2 + (rest & width & 1);
    text_init(&o, r);
    TRY(text_fill(&o, fill, left));
    text_str(&o, s);
    TRY(text_fill(&o, fill, rest - left));
    return text_finish(&o, out);
}

static lath_status place(render *r, value self, const args *a, char side, value *out)
{
    value v[2] = {VALUE_NONE, VALUE_NONE};
    const chat_str *fill = NULL;
    int64_t width;
    TRY(args_read(r, a, "width fillchar", 1, v));
    TRY(arg_int(r, a, v[0], &width));
    if (v[1].kind != V_NONE) TRY(arg_str(r, a, v[1], &fill));
    if (fill && fill->n_chars != 1)
        return render_fail(r, LATH_ERR_INPUT, "%s: want one character to fill with", a->what);
    if (fill && fill->n != 1)
        return render_fail(r, LATH_ERR_UNSUPPORTED, "%s with a character that is not ASCII", a->what);
    return str_center(r, self.u.str, width, side, fill ? fill->s[0] : ' ', out);
}

static lath_status m_center(render *r, value self, const args *a, value *out) { return place(r, self, a, 'c', out); }
static lath_status m_ljust(render *r, value self, const args *a, value *out) { return place(r, self, a, 'l', out); }
static lath_status m_rjust(render *r, value self, const args *a, value *out) { return place(r, self, a, 'r', out); }

static lath_status m_zfill(render *r, value self, const args *a, value *out)
{
    value v;
    text_out o;
    int64_t width;
    const chat_str *s = self.u.str;
    TRY(args_read(r, a, "width", 1, &v));
    TRY(arg_int(r, a, v, &width));
    const size_t sign = s->n && (s->s[0] == '+' || s->s[0] == '-');
    text_init(&o, r);
    text_part(&o, s, 0, sign);
    TRY(text_fill(&o, '0', width - (int64_t)s->n_chars));
    text_part(&o, s, sign, s->n);
    return text_finish(&o, out);
}

static lath_status m_format(render *r, value self, const args *a, value *out)
{
    return format_braces(r, self.u.str, a, out);
}

/* What jinja2's Markup escapes in its arguments is refused; see chat_methods.c. */
const method_row chat_str_methods[] = {{"strip", m_strip},
                                       {"lstrip", m_lstrip},
                                       {"rstrip", m_rstrip},
                                       {"removeprefix", m_removeprefix},
                                       {"removesuffix", m_removesuffix},
                                       {"upper", m_upper},
                                       {"lower", m_lower},
                                       {"title", m_title},
                                       {"capitalize", m_capitalize},
                                       {"swapcase", m_swapcase},
                                       {"isalpha", m_isalpha},
                                       {"isalnum", m_isalnum},
                                       {"isdecimal", m_isdecimal},
                                       {"isdigit", m_isdigit},
                                       {"isnumeric", m_isnumeric},
                                       {"isspace", m_isspace},
                                       {"isupper", m_isupper},
                                       {"islower", m_islower},
                                       {"isascii", m_isascii},
                                       {"find", m_find},
                                       {"rfind", m_find},
                                       {"index", m_index},
                                       {"rindex", m_index},
                                       {"count", m_count},
                                       {"startswith", m_startswith},
                                       {"endswith", m_endswith},
                                       {"replace", m_replace},
                                       {"split", m_split},
                                       {"rsplit", m_split},
                                       {"splitlines", m_splitlines},
                                       {"partition", m_partition},
                                       {"rpartition", m_partition},
                                       {"join", m_join},
                                       {"center", m_center},
                                       {"ljust", m_ljust},
                                       {"rjust", m_rjust},
                                       {"zfill", m_zfill},
                                       {"format", m_format},
                                       {"casefold", NULL},
                                       {"encode", NULL},
                                       {"expandtabs", NULL},
                                       {"format_map", NULL},
                                       {"isidentifier", NULL},
                                       {"isprintable", NULL},
                                       {"istitle", NULL},
                                       {"maketrans", NULL},
                                       {"translate", NULL},
                                       {0}};
