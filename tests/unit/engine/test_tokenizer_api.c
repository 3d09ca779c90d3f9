/* SPDX-License-Identifier: Apache-2.0
 * test_tokenizer_api.c: the public tokenizer's contract: arguments, options, reuse of the result, limits, offsets,
 * texts of ids. The ids themselves are compared with the reference in tests/golden; those that appear here are from
 * its expected.json. */
#include "lath/lath.h"
#include "support/test.h"
#include "support/tmpdir.h"

static lath_error err;
static lath_runtime *rt;
static lath_tokenizer *tok;
static char dir[TMP_PATH];

static int setup(void **state)
{
    lath_runtime_options o = LATH_RUNTIME_OPTIONS_INIT;
    (void)state;
    o.n_threads = 1;
    tmp_join(dir, test_data_dir(), "golden/bert/mean_norm_gelu");
    assert_ok(lath_runtime_create(&o, &rt, &err), err);
    assert_ok(lath_tokenizer_open(rt, dir, &tok, &err), err);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    lath_tokenizer_close(tok);
    lath_tokenizer_close(NULL);
    lath_runtime_destroy(rt);
    return 0;
}

static lath_text text(const char *s) { return (lath_text){s, strlen(s)}; }

static void test_open(void **state)
{
    lath_tokenizer *t = NULL;
    char empty[TMP_PATH];
    (void)state;
    assert_int_equal(lath_tokenizer_open(NULL, dir, &t, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_tokenizer_open(rt, NULL, &t, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_tokenizer_open(rt, dir, NULL, &err), LATH_ERR_USAGE);
    tmp_make(empty);
    assert_int_equal(lath_tokenizer_open(rt, empty, &t, &err), LATH_ERR_NOT_FOUND);
    tmp_write(empty, "tokenizer.json", "[]");
    assert_int_equal(lath_tokenizer_open(rt, empty, &t, &err), LATH_ERR_FORMAT);
    assert_non_null(strstr(err.msg, "tokenizer.json"));
    tmp_write(empty, "tokenizer.json", "{\"model\":\n{\"type\": \"Telepathy\"}}");
    assert_int_equal(lath_tokenizer_open(rt, empty, &t, &err), LATH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "Telepathy"));
    assert_int_equal(lath_tokenizer_open(rt, "", &t, NULL), LATH_ERR_NOT_FOUND);
    assert_null(t);
    tmp_remove(empty);
}

static void test_encode(void **state)
{
    static const int32_t want[] = {2, 157, 182, 181, 194, 49, 77, 3};
    static const uint32_t offsets[][2] = {{0, 0}, {0, 3}, {4, 9}, {10, 15}, {16, 19}, {19, 20}, {20, 21}, {0, 0}};
    lath_tokens t = {0};
    (void)state;
    assert_ok(lath_encode(tok, text("The green river runs."), NULL, &t, &err), err);
    assert_int_equal(t.n, 8);
    assert_int_equal(t.n_untruncated, 8);
    assert_memory_equal(t.ids, want, sizeof(want));
    assert_memory_equal(t.offsets, offsets, sizeof(offsets));
    for (size_t i = 0; i < t.n; i++) assert_int_equal(t.type_ids[i], 0);
    int32_t *ids = t.ids;
    assert_ok(lath_encode(tok, text("water"), NULL, &t, &err), err); /* reused, not taken anew */
    assert_ptr_equal(t.ids, ids);
    assert_int_equal(t.n, 3);
    assert_int_equal(t.ids[1], 179);
    assert_ok(lath_encode(tok, (lath_text){NULL, 0}, NULL, &t, &err), err);
    assert_int_equal(t.n, 2);
    assert_ok(lath_encode(tok, (lath_text){"water\0water", 11}, NULL, &t, &err), err); /* a 0 byte ends nothing */
    assert_true(t.n >= 3);
    lath_tokens_release(&t);
    assert_null(t.ids);
    assert_int_equal(t.n, 0);
    lath_tokens_release(&t);
    lath_tokens_release(NULL);
}

static void test_encode_options(void **state)
{
    lath_encode_options o = LATH_ENCODE_OPTIONS_INIT;
    lath_tokens t = {0};
    (void)state;
    o.add_special = 0;
    assert_ok(lath_encode(tok, text("water"), &o, &t, &err), err);
    assert_int_equal(t.n, 1);
    assert_ok(lath_encode(tok, text(""), &o, &t, &err), err);
    assert_int_equal(t.n, 0);
    assert_ok(lath_encode(tok, text("[MASK]"), &o, &t, &err), err);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.ids[0], 4);
    o.parse_special = 0;
    assert_ok(lath_encode(tok, text("[MASK]"), &o, &t, &err), err);
    assert_true(t.n > 1);
    for (size_t i = 0; i < t.n; i++) assert_int_not_equal(t.ids[i], 4);
    o = (lath_encode_options)LATH_ENCODE_OPTIONS_INIT;
    o.max_tokens = 5;
    assert_ok(lath_encode(tok, text("The green river runs."), &o, &t, &err), err);
    assert_int_equal(t.n, 5);
    assert_int_equal(t.n_untruncated, 8);
    static const int32_t want[] = {2, 157, 182, 181, 3};
    assert_memory_equal(t.ids, want, sizeof(want));
    o.max_tokens = -1;
    assert_int_equal(lath_encode(tok, text("x"), &o, &t, &err), LATH_ERR_USAGE);
    o = (lath_encode_options)LATH_ENCODE_OPTIONS_INIT;
    o.struct_size = 4;
    assert_int_equal(lath_encode(tok, text("x"), &o, &t, &err), LATH_ERR_USAGE);
    assert_non_null(strstr(err.msg, "options"));
    lath_tokens_release(&t);
}

static void test_encode_errors(void **state)
{
    lath_tokens t = {0};
    (void)state;
    assert_int_equal(lath_encode(NULL, text("x"), NULL, &t, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_encode(tok, text("x"), NULL, NULL, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_encode(tok, (lath_text){NULL, 3}, NULL, &t, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_encode(tok, text("river \xC3("), NULL, &t, &err), LATH_ERR_INPUT);
    assert_non_null(strstr(err.msg, "6")); /* the byte */
    assert_non_null(strstr(err.msg, "UTF-8"));
    assert_int_equal(lath_encode(tok, text("\xED\xA0\x80"), NULL, &t, NULL), LATH_ERR_INPUT);
    assert_ok(lath_encode(tok, text("water"), NULL, &t, &err), err);
    assert_int_equal(t.n, 3);
    lath_tokens_release(&t);
}

static void test_decode(void **state)
{
    static const int32_t ids[] = {2, 157, 182, 181, 194, 49, 77, 3};
    char *s = NULL;
    size_t n = 0;
    (void)state;
    assert_ok(lath_decode(tok, ids, 8, 1, &s, &n, &err), err);
    assert_string_equal(s, "the green river runs."); /* WordPiece with cleanup */
    assert_int_equal(n, strlen(s));
    lath_string_release(tok, s);
    assert_ok(lath_decode(tok, ids, 8, 0, &s, NULL, &err), err);
    assert_non_null(strstr(s, "[CLS]"));
    assert_non_null(strstr(s, "[SEP]"));
    lath_string_release(tok, s);
    assert_ok(lath_decode(tok, NULL, 0, 1, &s, &n, &err), err);
    assert_string_equal(s, "");
    assert_int_equal(n, 0);
    lath_string_release(tok, s);
    lath_string_release(tok, NULL);
    static const int32_t bad[] = {-1, 200, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 4; i++) assert_int_equal(lath_decode(tok, &bad[i], 1, 1, &s, &n, &err), LATH_ERR_INPUT);
    assert_int_equal(lath_decode(NULL, ids, 1, 1, &s, &n, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_decode(tok, NULL, 1, 1, &s, &n, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_decode(tok, ids, 1, 1, NULL, &n, &err), LATH_ERR_USAGE);
}

static void test_vocabulary(void **state)
{
    lath_model *m = NULL;
    (void)state;
    assert_int_equal(lath_tokenizer_size(tok), 200);
    assert_string_equal(lath_tokenizer_token(tok, 0), "[PAD]");
    assert_string_equal(lath_tokenizer_token(tok, 179), "water");
    assert_string_equal(lath_tokenizer_token(tok, 199), "letter");
    assert_null(lath_tokenizer_token(tok, -1));
    assert_null(lath_tokenizer_token(tok, 200));
    assert_null(lath_tokenizer_token(tok, INT32_MAX));
    assert_ok(lath_model_open(rt, dir, NULL, &m, &err), err);
    assert_string_equal(lath_tokenizer_token(lath_model_tokenizer(m), 179), "water");
    lath_model_close(m);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),          cmocka_unit_test(test_encode), cmocka_unit_test(test_encode_options),
        cmocka_unit_test(test_encode_errors), cmocka_unit_test(test_decode), cmocka_unit_test(test_vocabulary),
    };
    return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
