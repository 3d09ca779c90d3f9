/* SPDX-License-Identifier: Apache-2.0
 * test_bpe_golden.c: small BPE tokenizers of all kinds against what the reference package made of the same texts and ids
 * (bpe.jsonl, made by tools/ref/make_bpe_cases.py). Each text is encoded twice: the second time the words come from the
 * cache.
 */
#include "support/test.h"

#include "base/file.h"
#include "base/json.h"
#include "tok/tok.h"

enum { FILE_MOST = 1 << 24, REPEATS = 400 };

typedef struct run_state {
    tok *t;
    char name[64];
    uint32_t line;
    arena scratch;
    tok_encoding e;
    size_t n_encoded, n_decoded, n_files;
} run_state;

static void encode(run_state *r, const json_value *v)
{
    lath_error err = {0};
    const json_value *text = json_get(v, "text");
    tok_encode_options o = {json_get(v, "special")->u.boolean, true, 0};
    /* a copy without a byte behind it, so that a sanitizer sees reading past the end */
    char *copy = malloc(text->u.string.len ? text->u.string.len : 1);
    assert_non_null(copy);
    memcpy(copy, text->u.string.data, text->u.string.len);
    arena_reset(&r->scratch);
    lath_status st = tok_encode(r->t, &r->scratch, copy, text->u.string.len, &o, &r->e, &err);
    free(copy);
    if (st != LATH_OK) fail_msg("%s: line %u: %s", r->name, r->line, err.msg);
    size_t i = 0;
    const json_value *offset = json_get(v, "offsets")->u.items.first;
    for (const json_value *id = json_get(v, "ids")->u.items.first; id; id = id->next, offset = offset->next, i++) {
        if (i >= r->e.n || r->e.ids[i] != id->u.integer)
            fail_msg("%s: line %u: id %zu is %d, want %d", r->name, r->line, i, i < r->e.n ? r->e.ids[i] : -1,
                     (int)id->u.integer);
        const json_value *b = offset->u.items.first;
        if (r->e.offsets[2 * i] != b->u.integer || r->e.offsets[2 * i + 1] != b->next->u.integer)
            fail_msg("%s: line %u: token %zu covers %u to %u, want %d to %d", r->name, r->line, i, r->e.offsets[2 * i],
                     r->e.offsets[2 * i + 1], (int)b->u.integer, (int)b->next->u.integer);
    }
    if (i != r->e.n) fail_msg("%s: line %u: %zu tokens, want %zu", r->name, r->line, r->e.n, i);
    r->n_encoded++;
}

/* Once as it is, and (repeat) together with so many of its kind that the table of the decoder is made. */
static void decode(run_state *r, const json_value *v, size_t repeat)
{
    int32_t ids[1024];
    size_t n = 0;
    lath_error err = {0};
    const json_value *want = json_get(v, "text");
    for (const json_value *m = json_get(v, "decode")->u.items.first; m; m = m->next) {
        assert_true(n < 1024);
        ids[n++] = (int32_t)m->u.integer;
    }
    for (size_t i = 0; i < repeat; i++) {
        buf out;
        buf_init(&out, alloc_default(), 1 << 20);
        assert_ok(tok_decode(r->t, ids, n, json_get(v, "skip")->u.boolean, &out, &err), err);
        if (out.len != want->u.string.len || (out.len && memcmp(out.data, want->u.string.data, out.len) != 0))
            fail_msg("%s: line %u: \"%s\", want \"%s\"", r->name, r->line, buf_cstr(&out), want->u.string.data);
        buf_deinit(&out);
    }
    r->n_decoded++;
}

static void close_file(run_state *r)
{
    if (r->t) tok_encoding_release(r->t, &r->e);
    tok_close(r->t);
    r->t = NULL;
}

static void open_file(run_state *r, const json_value *v, const json_value *json)
{
    lath_error err = {0};
    close_file(r);
    snprintf(r->name, sizeof(r->name), "%s", json_get(v, "name")->u.string.data);
    assert_ok(tok_open_json(alloc_default(), r->name, json->u.string.data, json->u.string.len, &r->t, &err), err);
    assert_true(tok_private_bytes(r->t) > 0);
    r->n_files++;
}

static void as_the_reference(void **state)
{
    (void)state;
    char path[1024];
    lath_error err = {0};
    run_state r = {0};
    buf file;
    arena tree;
    snprintf(path, sizeof(path), "%s/unit/tok/bpe.jsonl", test_data_dir());
    buf_init(&file, alloc_default(), FILE_MOST);
    assert_ok(file_read(&file, path, FILE_MOST, &err), err);
    arena_init(&tree, alloc_default());
    arena_init(&r.scratch, alloc_default());
    for (size_t i = 0; i < file.len;) {
        const char *s = file.data + i, *end = memchr(s, '\n', file.len - i);
        assert_non_null(end);
        json_value *v;
        r.line++;
        arena_reset(&tree);
        assert_ok(json_parse(&tree, path, s, (size_t)(end - s), NULL, &v, &err), err);
        i += (size_t)(end - s) + 1;
        const json_value *json = json_get(v, "tokenizer");
        if (json) {
            open_file(&r, v, json);
        } else if (json_get(v, "decode")) {
            decode(&r, v, r.n_decoded % 16 == 15 ? REPEATS : 1);
        } else {
            encode(&r, v);
            encode(&r, v);
        }
    }
    close_file(&r);
    assert_true(r.n_files >= 15 && r.n_encoded >= 900 && r.n_decoded >= 200);
    arena_deinit(&r.scratch);
    arena_deinit(&tree);
    buf_deinit(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_reference)};
    return TEST_RUN(tests);
}
