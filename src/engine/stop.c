/* SPDX-License-Identifier: Apache-2.0
 * stop.c: every string follows the text with an automaton of its own. What is held is the longest of their matches, so it need not be
 * kept: it is a prefix of that string. */
#include "engine/stop.h"

#include <string.h>

#include "base/utf8.h"

static lath_status init_string(stop *s, size_t k, lath_text text, lath_error *err)
{
    stop_string *x = &s->strings[k];
    if (text.len == 0) return err_set(err, LATH_ERR_USAGE, "stop string %zu is empty", k + 1);
    if (text.len > STOP_BYTES_MOST)
        return err_set(err, LATH_ERR_USAGE, "stop string %zu: %zu bytes, at most %d", k + 1, text.len, STOP_BYTES_MOST);
    const size_t bad = utf8_first_invalid(text.data, text.len);
    if (bad < text.len) return err_set(err, LATH_ERR_USAGE, "stop string %zu: byte %zu is not UTF-8", k + 1, bad);
    x->n = text.len;
    x->s = arena_strdup(&s->mem, text.data, text.len);
    x->border = arena_array(&s->mem, text.len + 1, sizeof(*x->border));
    if (!x->s || !x->border) return err_nomem(err, text.len * (1 + sizeof(*x->border)));
    for (size_t i = 1, b = 0; i < x->n; i++) {
        while (b > 0 && x->s[i] != x->s[b]) b = x->border[b];
        b += x->s[i] == x->s[b];
        x->border[i + 1] = (uint32_t)b;
    }
    return LATH_OK;
}

lath_status stop_init(stop *s, const lath_allocator *alloc, const int32_t *ids, size_t n_ids, const lath_text *strings,
                      size_t n_strings, lath_error *err)
{
    *s = (stop){.n_ids = n_ids, .n_strings = n_strings, .stopped = -1};
    arena_init(&s->mem, alloc);
    if (n_strings > STOP_STRINGS_MOST)
        return err_set(err, LATH_ERR_USAGE, "%zu stop strings, at most %d", n_strings, STOP_STRINGS_MOST);
    int32_t *copy = arena_array(&s->mem, n_ids, sizeof(*copy));
    s->strings = arena_array(&s->mem, n_strings, sizeof(*s->strings));
    if (!copy || !s->strings) return err_nomem(err, n_ids * sizeof(*copy) + n_strings * sizeof(*s->strings));
    if (n_ids) memcpy(copy, ids, n_ids * sizeof(*copy));
    s->ids = copy;
    for (size_t k = 0; k < n_strings; k++) TRY(init_string(s, k, strings[k], err));
    return LATH_OK;
}

void stop_deinit(stop *s)
{
    if (s->mem.alloc) arena_deinit(&s->mem);
    *s = (stop){.stopped = -1};
}

bool stop_is_id(const stop *s, int32_t id)
{
    for (size_t i = 0; i < s->n_ids; i++) {
        if (s->ids[i] == id) return true;
    }
    return false;
}

/* The string that ends with this byte, the longest of them, or -1. */
static int64_t advance(stop *s, char c)
{
    int64_t found = -1;
    for (size_t k = 0; k < s->n_strings; k++) {
        stop_string *x = &s->strings[k];
        while (x->matched > 0 && x->s[x->matched] != c) x->matched = x->border[x->matched];
        x->matched += x->s[x->matched] == c;
        if (x->matched == x->n && (found < 0 || x->n > s->strings[found].n)) found = (int64_t)k;
    }
    return found;
}

/* The first n bytes of what was held and the text behind it. */
static void give(const stop *s, const char *text, size_t n, buf *out)
{
    const size_t of_held = n < s->held ? n : s->held;
    if (of_held > 0) buf_append(out, s->strings[s->held_of].s, of_held);
    if (n > of_held) buf_append(out, text, n - of_held);
}

void stop_push(stop *s, const char *text, size_t n, buf *out)
{
    if (s->stopped >= 0) return;
    for (size_t i = 0; i < n; i++) {
        const int64_t found = advance(s, text[i]);
        if (found < 0) continue;
        give(s, text, s->held + i + 1 - s->strings[found].n, out);
        s->stopped = found;
        s->held = 0;
        return;
    }
    size_t held = 0, held_of = 0;
    for (size_t k = 0; k < s->n_strings; k++) {
        if (s->strings[k].matched <= held) continue;
        held = s->strings[k].matched;
        held_of = k;
    }
    give(s, text, s->held + n - held, out);
    s->held = held;
    s->held_of = held_of;
}

void stop_finish(stop *s, buf *out)
{
    give(s, NULL, s->held, out);
    for (size_t k = 0; k < s->n_strings; k++) s->strings[k].matched = 0;
    s->held = 0;
    s->stopped = -1;
}
