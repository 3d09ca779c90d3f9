/* SPDX-License-Identifier: Apache-2.0
 * test_wordpiece_golden.c: difficult texts through three WordPiece tokenizers, ids and byte offsets against those of
 * the reference package (tests/golden/tok, made by tools/ref/check_wordpiece.py). */
#include "support/test.h"

#include "base/file.h"
#include "base/json.h"
#include "tok/tok.h"

static size_t check_line(const tok *t, const char *path, size_t line, const json_value *v, arena *scratch,
                         tok_encoding *e)
{
    lath_error err = {0};
    const json_value *text = json_get(v, "text"), *id = json_get(v, "ids")->u.items.first,
                     *pair = json_get(v, "offsets")->u.items.first;
    tok_encode_options o = {true, true, 0};
    arena_reset(scratch);
    assert_ok(tok_encode(t, scratch, text->u.string.data, text->u.string.len, &o, e, &err), err);
    size_t n = 0;
    for (; id && pair; id = id->next, pair = pair->next, n++) {
        if (n >= e->n || e->ids[n] != id->u.integer) fail_msg("%s: line %zu: id of token %zu differs", path, line, n);
        const json_value *b = pair->u.items.first;
        if (e->offsets[2 * n] != b->u.integer || e->offsets[2 * n + 1] != b->next->u.integer) {
            fail_msg("%s: line %zu: offsets of token %zu differ", path, line, n);
        }
    }
    if (n != e->n) fail_msg("%s: line %zu: %zu tokens, want %zu", path, line, e->n, n);
    return n;
}

static void replay(const char *dir, const char *file)
{
    char path[1024];
    lath_error err = {0};
    tok *t;
    buf text;
    arena tree, scratch;
    tok_encoding e = {0};
    snprintf(path, sizeof(path), "%s/golden/tok/%s", test_data_dir(), dir);
    assert_ok(tok_open_dir(alloc_default(), path, &t, &err), err);
    snprintf(path, sizeof(path), "%s/golden/tok/%s", test_data_dir(), file);
    buf_init(&text, alloc_default(), 1 << 26);
    assert_ok(file_read(&text, path, 1 << 26, &err), err);
    arena_init(&tree, alloc_default());
    arena_init(&scratch, alloc_default());
    size_t line = 0, tokens = 0;
    for (size_t i = 0; i < text.len;) {
        const char *s = text.data + i, *end = memchr(s, '\n', text.len - i);
        size_t n = end ? (size_t)(end - s) : text.len - i;
        json_value *v;
        line++;
        i += n + 1;
        arena_reset(&tree);
        assert_ok(json_parse(&tree, path, s, n, NULL, &v, &err), err);
        tokens += check_line(t, path, line, v, &scratch, &e);
    }
    assert_true(line > 50 && tokens > 500);
    tok_encoding_release(t, &e);
    arena_deinit(&scratch);
    arena_deinit(&tree);
    buf_deinit(&text);
    tok_close(t);
}

static void uncased(void **state)
{
    (void)state;
    replay("uncased", "wordpiece_uncased.jsonl");
}

static void cased(void **state)
{
    (void)state;
    replay("cased", "wordpiece_cased.jsonl");
}

static void added(void **state)
{
    (void)state;
    replay("added", "added/added.jsonl");
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(uncased), cmocka_unit_test(cased), cmocka_unit_test(added)};
TEST_MAIN(tests)
