/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_json.c: any bytes as JSON. What parses must be a tree that is consistent (counts, terminated strings, lines that rise, valid UTF-8),
 * and its strings must survive being written by json_put_string and parsed again. The bytes as members of an array are parsed with and
 * without a tap: both must find the same, one way is yajl's, the other is our own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "broken promise: %s\n", what);
    abort();
}

static void check_string(const char *s, size_t n)
{
    require(s[n] == 0, "a terminated string");
    require(utf8_first_invalid(s, n) == n, "valid UTF-8");
}

/* Every string of the tree again, as an array of strings. */
static void check(const json_value *v, buf *out, int depth)
{
    require(depth <= 64, "depth");
    if (v->key) check_string(v->key, v->key_len);
    if (v->kind == JSON_STRING) {
        check_string(v->u.string.data, v->u.string.len);
        if (out->len > 1) buf_char(out, ',');
        json_put_string(out, v->u.string.data, v->u.string.len);
    }
    if (v->kind != JSON_ARRAY && v->kind != JSON_OBJECT) return;
    size_t n = 0;
    uint32_t line = v->line;
    for (const json_value *m = v->u.items.first; m; m = m->next) {
        require((m->key != NULL) == (v->kind == JSON_OBJECT), "keys in objects only");
        require(m->line >= line, "lines rise");
        line = m->line;
        check(m, out, depth + 1);
        n++;
    }
    require(n == v->u.items.count, "count");
}

/* The strings of v in order against the members of the array that `again` points into. */
static void compare(const json_value *v, const json_value **again)
{
    if (v->kind == JSON_STRING) {
        const json_value *a = *again;
        require(a && a->kind == JSON_STRING && a->u.string.len == v->u.string.len, "a string of the same length");
        require(memcmp(a->u.string.data, v->u.string.data, v->u.string.len) == 0, "the same string");
        *again = a->next;
    }
    if (v->kind != JSON_ARRAY && v->kind != JSON_OBJECT) return;
    for (const json_value *m = v->u.items.first; m; m = m->next) compare(m, again);
}

static bool same_text(const char *a, size_t n_a, const char *b, size_t n_b)
{
    return n_a == n_b && (n_a == 0 || memcmp(a, b, n_a) == 0);
}

static bool same(const json_value *a, const json_value *b)
{
    if (a->kind != b->kind || !same_text(a->key, a->key_len, b->key, b->key_len)) return false;
    switch (a->kind) {
    case JSON_NULL: return true;
    case JSON_BOOL: return a->u.boolean == b->u.boolean;
    case JSON_INT: return a->u.integer == b->u.integer;
    case JSON_REAL: return memcmp(&a->u.real, &b->u.real, sizeof(a->u.real)) == 0;
    case JSON_STRING: return same_text(a->u.string.data, a->u.string.len, b->u.string.data, b->u.string.len);
    case JSON_ARRAY:
    case JSON_OBJECT: break;
    }
    const json_value *x = a->u.items.first, *y = b->u.items.first;
    for (; x && y; x = x->next, y = y->next) {
        if (!same(x, y)) return false;
    }
    return !x && !y && a->u.items.count == b->u.items.count;
}

/* Members come through the tap in the order of the tree. */
static lath_status on_member(void *ctx, const json_value *item, lath_error *err)
{
    const json_value **next = ctx;
    (void)err;
    require(*next && same(*next, item) && (*next)->line == item->line, "the tap's member is the tree's");
    *next = (*next)->next;
    return LATH_OK;
}

static lath_status ignore(void *ctx, const json_value *item, lath_error *err)
{
    (void)ctx, (void)item, (void)err;
    return LATH_OK;
}

static void check_tap(const uint8_t *data, size_t size)
{
    arena a;
    buf text;
    lath_error err;
    json_value *tree = NULL, *v;
    const json_value *next = NULL;
    arena_init(&a, alloc_default());
    buf_init(&text, alloc_default(), (size_t)1 << 28);
    buf_str(&text, "{\"v\":[");
    buf_append(&text, data, size);
    buf_str(&text, "]}");
    const json_tap tap = {"v", ignore, NULL}, compared = {"v", on_member, &next};
    json_options o = {.taps = &tap, .n_taps = 1};
    lath_status want = json_parse(&a, "input", text.data, text.len, NULL, &tree, &err);
    lath_status got = json_parse(&a, "input", text.data, text.len, &o, &v, &err);
    require(want == got, "the same status through a tap");
    if (want == LATH_OK) {
        next = json_get(tree, "v")->u.items.first;
        o.taps = &compared;
        require(json_parse(&a, "input", text.data, text.len, &o, &v, &err) == LATH_OK && !next, "all members");
    }
    buf_deinit(&text);
    arena_deinit(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_tap(data, size);
    arena a;
    buf out;
    json_value *v = NULL, *strings = NULL;
    lath_error err;
    arena_init(&a, alloc_default());
    buf_init(&out, alloc_default(), (size_t)1 << 28);
    const lath_status got = json_parse(&a, "input", (const char *)data, size, NULL, &v, &err);
    if (got != LATH_OK) {
        require(err.status == got && strncmp(err.msg, "input: ", 7) == 0, "an error that names the input");
        goto done;
    }
    buf_char(&out, '[');
    check(v, &out, 0);
    buf_char(&out, ']');
    require(buf_status(&out, &err) == LATH_OK, "room for the strings");
    require(json_parse(&a, "again", out.data, out.len, NULL, &strings, &err) == LATH_OK, "what was written parses");
    const json_value *first = strings->u.items.first;
    compare(v, &first);
    require(first == NULL, "as many strings as before");
done:
    buf_deinit(&out);
    arena_deinit(&a);
    return 0;
}
