/* SPDX-License-Identifier: Apache-2.0
 * test_tok_pipeline.c: every component in small tokenizer files, against what the reference package made of the same
 * texts and ids (pipelines.jsonl, made by tools/ref/make_tok_pipelines.py), and truncation.
 */
#include "support/test.h"

#include "base/file.h"
#include "base/json.h"
#include "tok/tok.h"

typedef struct run_state {
    tok *t;
    const char *name;
    arena scratch;
    tok_encoding e;
    size_t n_encoded, n_decoded, n_files;
} run_state;

static void check_numbers(const json_value *list, const int32_t *got, size_t n, const char *what, const run_state *r,
                          uint32_t line)
{
    assert_non_null(list);
    size_t i = 0;
    for (const json_value *v = list->u.items.first; v; v = v->next, i++) {
        int64_t have = i < n ? got[i] : -1;
        if (have != v->u.integer)
            fail_msg("%s: line %u: %s %zu is %lld, want %lld", r->name, line, what, i, (long long)have,
                     (long long)v->u.integer);
    }
    if (i != n) fail_msg("%s: line %u: %zu %s, want %zu", r->name, line, n, what, i);
}

static void check_offsets(const json_value *list, const tok_encoding *e, const run_state *r, uint32_t line)
{
    size_t i = 0;
    for (const json_value *v = list->u.items.first; v; v = v->next, i++) {
        const json_value *b = v->u.items.first;
        if (i >= e->n || e->offsets[2 * i] != b->u.integer || e->offsets[2 * i + 1] != b->next->u.integer) {
            fail_msg("%s: line %u: offsets of token %zu differ", r->name, line, i);
        }
    }
    assert_int_equal(i, e->n);
}

static void check_encode(run_state *r, const json_value *v, uint32_t line)
{
    lath_error err = {0};
    const json_value *text = json_get(v, "text");
    tok_encode_options o = {json_get(v, "special")->u.boolean, json_get(v, "parse")->u.boolean, 0};
    /* a copy without a byte behind it, so that a sanitizer sees reading past the end */
    char *copy = malloc(text->u.string.len ? text->u.string.len : 1);
    assert_non_null(copy);
    memcpy(copy, text->u.string.data, text->u.string.len);
    arena_reset(&r->scratch);
    assert_ok(tok_encode(r->t, &r->scratch, copy, text->u.string.len, &o, &r->e, &err), err);
    free(copy);
    check_numbers(json_get(v, "ids"), r->e.ids, r->e.n, "id", r, line);
    check_numbers(json_get(v, "types"), r->e.type_ids, r->e.n, "type", r, line);
    check_offsets(json_get(v, "offsets"), &r->e, r, line);
    assert_int_equal(r->e.n_untruncated, r->e.n);
    r->n_encoded++;
}

static void check_decode(run_state *r, const json_value *v, uint32_t line)
{
    int32_t ids[64];
    size_t n = 0;
    lath_error err = {0};
    for (const json_value *m = json_get(v, "decode")->u.items.first; m; m = m->next) ids[n++] = (int32_t)m->u.integer;
    const json_value *want = json_get(v, "text");
    buf out;
    buf_init(&out, alloc_default(), 1 << 20);
    assert_ok(tok_decode(r->t, ids, n, json_get(v, "skip")->u.boolean, &out, &err), err);
    if (strcmp(buf_cstr(&out), want->u.string.data) != 0)
        fail_msg("%s: line %u: \"%s\", want \"%s\"", r->name, line, buf_cstr(&out), want->u.string.data);
    buf_deinit(&out);
    r->n_decoded++;
}

static void reference_cases(void **state)
{
    (void)state;
    char path[1024];
    lath_error err = {0};
    run_state r = {0};
    buf file;
    arena tree, kept;
    snprintf(path, sizeof(path), "%s/unit/tok/pipelines.jsonl", test_data_dir());
    buf_init(&file, alloc_default(), 1 << 24);
    assert_ok(file_read(&file, path, 1 << 24, &err), err);
    arena_init(&tree, alloc_default());
    arena_init(&kept, alloc_default());
    arena_init(&r.scratch, alloc_default());
    uint32_t line = 0;
    for (size_t i = 0; i < file.len;) {
        const char *s = file.data + i, *end = memchr(s, '\n', file.len - i);
        assert_non_null(end);
        json_value *v;
        line++;
        arena_reset(&tree);
        assert_ok(json_parse(&tree, path, s, (size_t)(end - s), NULL, &v, &err), err);
        i += (size_t)(end - s) + 1;
        const json_value *json = json_get(v, "tokenizer");
        if (json) {
            if (r.t) tok_encoding_release(r.t, &r.e);
            tok_close(r.t);
            const json_value *name = json_get(v, "name");
            r.name = arena_strdup(&kept, name->u.string.data, name->u.string.len);
            assert_ok(tok_open_json(alloc_default(), r.name, json->u.string.data, json->u.string.len, &r.t, &err), err);
            r.n_files++;
        } else if (json_get(v, "decode")) {
            check_decode(&r, v, line);
        } else {
            check_encode(&r, v, line);
        }
    }
    assert_true(r.n_files >= 15 && r.n_encoded >= 150 && r.n_decoded >= 150);
    tok_encoding_release(r.t, &r.e);
    tok_close(r.t);
    arena_deinit(&r.scratch);
    arena_deinit(&kept);
    arena_deinit(&tree);
    buf_deinit(&file);
}

/* ------------------------------------------------------------------------------------------------------- truncation */

static const char small[] =
    "{\"added_tokens\":[],\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"?\",\"continuing_subword_prefix\":\"##\","
    "\"max_input_chars_per_word\":9,\"vocab\":{\"?\":0,\"[\":1,\"]\":2,\"a\":3,\"b\":4,\"##b\":5}},\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"},"
    "\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"[\",1],\"sep\":[\"]\",2]}}";

static void truncation_keeps_the_template(void **state)
{
    (void)state;
    lath_error err = {0};
    tok *t;
    arena scratch;
    tok_encoding e = {0};
    arena_init(&scratch, alloc_default());
    assert_ok(tok_open_json(alloc_default(), "small", small, strlen(small), &t, &err), err);
    assert_int_equal(tok_n_template(t), 2);
    assert_int_equal(tok_size(t), 6);
    tok_encode_options o = {true, true, 4};
    assert_ok(tok_encode(t, &scratch, "ab a b", 6, &o, &e, &err), err);
    static const int32_t want[] = {1, 3, 5, 2};
    static const uint32_t offsets[] = {0, 0, 0, 1, 1, 2, 0, 0};
    assert_int_equal(e.n, 4);
    assert_int_equal(e.n_untruncated, 6);
    assert_memory_equal(e.ids, want, sizeof(want));
    assert_memory_equal(e.offsets, offsets, sizeof(offsets));
    o.max_tokens = 2;
    assert_ok(tok_encode(t, &scratch, "ab a b", 6, &o, &e, &err), err);
    assert_int_equal(e.n, 2);
    o.max_tokens = 6;
    assert_ok(tok_encode(t, &scratch, "ab a b", 6, &o, &e, &err), err);
    assert_int_equal(e.n, 6);
    o.max_tokens = 1;
    assert_int_equal(tok_encode(t, &scratch, "ab a b", 6, &o, &e, &err), LATH_ERR_USAGE);
    o.add_special = false;
    assert_ok(tok_encode(t, &scratch, "ab a b", 6, &o, &e, &err), err);
    assert_int_equal(e.n, 1);
    assert_int_equal(e.n_untruncated, 4);
    tok_encoding_release(t, &e);
    tok_close(t);
    arena_deinit(&scratch);
}

static void bad_input_is_named(void **state)
{
    (void)state;
    lath_error err = {0};
    tok *t;
    arena scratch;
    tok_encoding e = {0};
    arena_init(&scratch, alloc_default());
    assert_ok(tok_open_json(alloc_default(), "small", small, strlen(small), &t, &err), err);
    tok_encode_options o = {true, true, 0};
    assert_int_equal(tok_encode(t, &scratch, "ab\xC3", 3, &o, &e, &err), LATH_ERR_INPUT);
    assert_non_null(strstr(err.msg, "byte 2"));
    static const int32_t ids[] = {3, 99}, negative[] = {-1};
    buf out;
    buf_init(&out, alloc_default(), 1 << 10);
    assert_int_equal(tok_decode(t, ids, 2, false, &out, &err), LATH_ERR_INPUT);
    assert_non_null(strstr(err.msg, "99"));
    assert_int_equal(tok_decode(t, negative, 1, false, &out, &err), LATH_ERR_INPUT);
    buf_deinit(&out);
    tok_encoding_release(t, &e);
    tok_close(t);
    arena_deinit(&scratch);
}

static void questions(void **state)
{
    (void)state;
    lath_error err = {0};
    tok *t;
    size_t len;
    assert_ok(tok_open_json(alloc_default(), "small", small, strlen(small), &t, &err), err);
    assert_string_equal(tok_token(t, 5, &len), "##b");
    assert_int_equal(len, 3);
    assert_null(tok_token(t, 6, NULL));
    assert_null(tok_token(t, -1, NULL));
    assert_int_equal(tok_id(t, "##b", 3), 5);
    assert_int_equal(tok_id(t, "##", 2), -1);
    assert_int_equal(tok_id(t, "", 0), -1);
    assert_false(tok_is_special(t, 1));
    assert_true(tok_private_bytes(t) > 100);
    assert_ptr_equal(tok_allocator(t), alloc_default());
    tok_close(t);
    tok_close(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(reference_cases),
    cmocka_unit_test(truncation_keeps_the_template),
    cmocka_unit_test(bad_input_is_named),
    cmocka_unit_test(questions),
};
TEST_MAIN(tests)
