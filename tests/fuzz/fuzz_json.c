/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_json.c: any bytes as JSON. What parses must be a tree that is consistent (counts, terminated strings, lines that rise, valid UTF-8),
 * and its strings must survive being written by json_put_string and parsed again.
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
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
