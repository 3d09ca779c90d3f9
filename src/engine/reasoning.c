/* SPDX-License-Identifier: Apache-2.0
 * reasoning.c: see reasoning.h. What is held is short: blanks, and less than a marker. */
#include "engine/reasoning.h"

#include <string.h>

#include "base/utf8.h"

/* ----------------------------------------------------------------------------------------------------------------- open */

static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

static size_t blanks(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n && is_blank(s[i])) i++;
    return i;
}

static lath_status copy_text(reasoning *r, const char *what, lath_text in, lath_text *out, lath_error *err)
{
    if (in.len > REASONING_MARKER_BYTES_MOST || (in.len && !in.data))
        return err_set(err, LATH_ERR_USAGE, "reasoning: %s: %zu bytes, at most %d", what, in.len,
                       REASONING_MARKER_BYTES_MOST);
    if (in.len && utf8_first_invalid(in.data, in.len) < in.len)
        return err_set(err, LATH_ERR_USAGE, "reasoning: %s is not UTF-8", what);
    out->data = arena_strdup(&r->mem, in.len ? in.data : "", in.len);
    out->len = in.len;
    return out->data ? LATH_OK : err_nomem(err, in.len);
}

/* The tokens of a text as templates write it: special tokens become themselves. */
static lath_status encode(reasoning *r, const char *s, size_t n, reasoning_ids *out, lath_error *err)
{
    tok_encode_options o = {.parse_special = true};
    tok_encoding e = {0};
    arena scratch;
    *out = (reasoning_ids){0};
    if (n == 0) return LATH_OK;
    arena_init(&scratch, r->mem.alloc);
    lath_status st = tok_encode(r->tok, &scratch, s, n, &o, &e, err);
    int32_t *ids = st == LATH_OK ? arena_array(&r->mem, e.n, sizeof(*ids)) : NULL;
    if (st == LATH_OK && !ids) st = err_nomem(err, e.n * sizeof(*ids));
    if (st == LATH_OK) {
        if (e.n) memcpy(ids, e.ids, e.n * sizeof(*ids));
        *out = (reasoning_ids){ids, e.n};
    }
    tok_encoding_release(r->tok, &e);
    arena_deinit(&scratch);
    return st;
}

/* Where the end marker ends in what closes a block; 0: it is not there. */
static size_t behind_end(const reasoning *r, lath_text close)
{
    for (size_t i = 0; i + r->end_text.len <= close.len; i++) {
        if (memcmp(close.data + i, r->end_text.data, r->end_text.len) == 0) return i + r->end_text.len;
    }
    return 0;
}

void reasoning_init_none(reasoning *r, const lath_allocator *alloc)
{
    *r = (reasoning){.state = REASONING_ANSWER, .budget = REASONING_BUDGET_NONE};
    arena_init(&r->mem, alloc);
    buf_init(&r->held, alloc, 1 << 24);
}

lath_status reasoning_init(reasoning *r, const lath_allocator *alloc, const tok *t, const lath_reasoning *o, bool open,
                           int32_t budget, lath_error *err)
{
    lath_text close;
    reasoning_init_none(r, alloc);
    r->tok = t;
    r->budget = budget;
    r->state = open ? REASONING_INSIDE : REASONING_BEFORE;
    TRY(copy_text(r, "the begin marker", o->begin, &r->begin_text, err));
    TRY(copy_text(r, "the end marker", o->end, &r->end_text, err));
    TRY(copy_text(r, "the text that closes", o->close.len ? o->close : o->end, &close, err));
    if (r->begin_text.len == 0 || r->end_text.len == 0)
        return err_set(err, LATH_ERR_USAGE, "reasoning: a marker is empty");
    const size_t behind = behind_end(r, close);
    if (behind == 0) return err_set(err, LATH_ERR_USAGE, "reasoning: the text that closes lacks the end marker");
    TRY(encode(r, r->begin_text.data, r->begin_text.len, &r->begin, err));
    TRY(encode(r, r->end_text.data, r->end_text.len, &r->end, err));
    TRY(encode(r, close.data, close.len, &r->close, err));
    TRY(encode(r, close.data + behind, close.len - behind, &r->gap, err));
    return LATH_OK;
}

void reasoning_deinit(reasoning *r)
{
    if (!r->mem.alloc) return;
    buf_deinit(&r->held);
    arena_deinit(&r->mem);
    *r = (reasoning){0};
}

/* ----------------------------------------------------------------------------------------------------------------- text */

static bool holds(const reasoning *r, reasoning_ids x, int32_t id)
{
    for (size_t i = 0; i < x.n; i++) {
        if (x.ids[i] == id) return tok_is_special(r->tok, id);
    }
    return false;
}

bool reasoning_is_marker(const reasoning *r, int32_t id)
{
    if (r->state == REASONING_BEFORE) return holds(r, r->begin, id);
    return r->state == REASONING_INSIDE && holds(r, r->end, id);
}

/* Takes the first n bytes out of what is held. */
static void drop(reasoning *r, size_t n)
{
    r->held.len -= n;
    if (n && r->held.len) memmove(r->held.data, r->held.data + n, r->held.len);
}

/* The steps below return whether what is left has to be looked at in another state. */
static bool step_before(reasoning *r, buf *answer)
{
    const lath_text m = r->begin_text;
    const size_t skip = blanks(r->held.data, r->held.len), n = r->held.len - skip, same = n < m.len ? n : m.len;
    if (n == 0) return false;
    if (memcmp(r->held.data + skip, m.data, same) != 0) {
        r->state = REASONING_ANSWER;
        buf_append(answer, r->held.data, r->held.len);
        drop(r, r->held.len);
        return false;
    }
    if (n < m.len) return false;
    drop(r, skip + m.len);
    r->state = REASONING_INSIDE;
    return true;
}

/* Where the end marker begins in what is held, or as much of it as there is at the end of the text so far: the first such place. */
static size_t find_end(const reasoning *r)
{
    const lath_text m = r->end_text;
    for (size_t i = 0; i < r->held.len; i++) {
        const size_t left = r->held.len - i;
        if (memcmp(r->held.data + i, m.data, left < m.len ? left : m.len) == 0) return i;
    }
    return r->held.len;
}

/* Gives out the first n bytes without the blanks at their end, which stay, and without those that the whole begins with. */
static void give_thought(reasoning *r, size_t n, buf *thought)
{
    while (n > 0 && is_blank(r->held.data[n - 1])) n--;
    const size_t begin = r->given ? 0 : blanks(r->held.data, n);
    if (n == 0) return;
    buf_append(thought, r->held.data + begin, n - begin);
    r->given = true;
    drop(r, n);
}

static bool step_inside(reasoning *r, buf *thought)
{
    const size_t at = find_end(r), behind = r->held.len - at;
    give_thought(r, at, thought);
    if (behind < r->end_text.len) return false;
    drop(r, r->held.len - behind + r->end_text.len);
    r->state = REASONING_BEHIND;
    return true;
}

static bool step_behind(reasoning *r, buf *answer)
{
    const size_t n = blanks(r->held.data, r->held.len);
    if (n < r->held.len) r->state = REASONING_ANSWER;
    buf_append(answer, r->held.data + n, r->held.len - n);
    drop(r, r->held.len);
    return false;
}

void reasoning_push(reasoning *r, const char *text, size_t n, buf *thought, buf *answer)
{
    if (r->state == REASONING_ANSWER) {
        buf_append(answer, text, n);
        return;
    }
    buf_append(&r->held, text, n);
    bool more = r->held.len > 0 && !r->held.failed;
    while (more && r->held.len > 0) {
        switch (r->state) {
        case REASONING_BEFORE: more = step_before(r, answer); break;
        case REASONING_INSIDE: more = step_inside(r, thought); break;
        case REASONING_BEHIND: more = step_behind(r, answer); break;
        case REASONING_ANSWER: more = false; break;
        }
    }
}

void reasoning_finish(reasoning *r, buf *thought, buf *answer)
{
    if (r->state == REASONING_BEFORE) buf_append(answer, r->held.data, r->held.len);
    if (r->state == REASONING_INSIDE) give_thought(r, r->held.len, thought);
    drop(r, r->held.len);
}

/* ------------------------------------------------------------------------------------------------------------- steering */

/* Bytes of the end marker that the text ends with. */
static size_t matched(const reasoning *r) { return r->held.len - find_end(r); }

void reasoning_steer(reasoning *r, bool was_inside, bool grammar)
{
    if (was_inside) r->count++;
    if (r->forced.n) return;
    if (r->state == REASONING_INSIDE && r->budget >= 0 && r->count >= (size_t)r->budget && matched(r) == 0)
        r->forced = r->close;
    if (grammar && was_inside && r->state == REASONING_BEHIND) r->forced = r->gap;
}

int32_t reasoning_take_forced(reasoning *r)
{
    if (r->forced.n == 0) return -1;
    r->forced.n--;
    return *r->forced.ids++;
}

bool reasoning_may_begin(const reasoning *r)
{
    return r->state == REASONING_BEFORE && r->held.len == 0 && r->budget != 0 && r->begin.n > 0;
}

void reasoning_begin(reasoning *r) { r->forced = (reasoning_ids){r->begin.ids + 1, r->begin.n - 1}; }

bool reasoning_runs_over(const reasoning *r, const char *bytes, size_t n)
{
    const lath_text m = r->end_text;
    char s[REASONING_MARKER_BYTES_MOST];
    size_t have = matched(r);
    if (r->state != REASONING_INSIDE) return false;
    if (have) memcpy(s, r->held.data + r->held.len - have, have);
    for (size_t i = 0; i < n; i++) {
        s[have++] = bytes[i];
        if (have == m.len && memcmp(s, m.data, have) == 0) return blanks(bytes + i + 1, n - i - 1) < n - i - 1;
        while (have && memcmp(s, m.data, have) != 0) memmove(s, s + 1, --have);
    }
    return false;
}

lath_status reasoning_end_exactly(reasoning *r, lath_error *err)
{
    const size_t have = matched(r);
    return encode(r, r->end_text.data + have, r->end_text.len - have, &r->forced, err);
}

void reasoning_answer(reasoning *r)
{
    if (r->state == REASONING_BEFORE || r->state == REASONING_BEHIND) r->state = REASONING_ANSWER;
}
