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

static void test_parts(void **state)
{
    lath_parts_options o = LATH_PARTS_OPTIONS_INIT;
    lath_parts p = {0};
    lath_text texts[2] = {text("The green river runs."), text("water")};
    (void)state;
    /* [CLS] the green river runs . [SEP] water [SEP], as lath_encode has the first of them */
    static const int32_t whole[] = {2, 157, 182, 181, 194, 49, 77, 3, 179, 3}, types[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1};
    static const int8_t source[] = {-1, 0, 0, 0, 0, 0, 0, -1, 1, -1};
    assert_ok(lath_encode_parts(tok, texts, 2, NULL, &p, &err), err);
    assert_int_equal(p.n, 10);
    assert_int_equal(p.n_untruncated, 10);
    assert_int_equal(p.n_parts, 1);
    assert_int_equal(p.begin[0], 0);
    assert_int_equal(p.begin[1], 10);
    assert_memory_equal(p.ids, whole, sizeof(whole));
    assert_memory_equal(p.type_ids, types, sizeof(types));
    assert_memory_equal(p.source, source, sizeof(source));
    for (size_t i = 0; i < p.n; i++) assert_int_equal(p.special_mask[i], source[i] < 0);
    assert_int_equal(p.offsets[16], 0);
    assert_int_equal(p.offsets[17], 5);
    o.max_tokens = 5; /* three tokens of the text and one more from the part before */
    o.stride = 1;
    static const int32_t parts[] = {2, 157, 182, 181, 3, 2, 181, 194, 49, 3, 2, 49, 77, 3};
    assert_ok(lath_encode_parts(tok, texts, 1, &o, &p, &err), err);
    assert_int_equal(p.n_parts, 3);
    assert_int_equal(p.n, 14);
    assert_int_equal(p.n_untruncated, 8);
    assert_memory_equal(p.ids, parts, sizeof(parts));
    o.cut_left = 1;
    assert_ok(lath_encode_parts(tok, texts, 1, &o, &p, &err), err);
    assert_int_equal(p.begin[1], 5);
    assert_int_equal(p.ids[3], 77);
    lath_parts_release(&p);
    assert_null(p.ids);
    lath_parts_release(&p);
    lath_parts_release(NULL);
}

static void test_parts_errors(void **state)
{
    lath_parts_options o = LATH_PARTS_OPTIONS_INIT;
    lath_parts p = {0};
    lath_text texts[2] = {text("water"), text("river \xFF")};
    (void)state;
    assert_int_equal(lath_encode_parts(NULL, texts, 1, NULL, &p, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_encode_parts(tok, NULL, 1, NULL, &p, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_encode_parts(tok, texts, 1, NULL, NULL, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_encode_parts(tok, texts, 0, NULL, &p, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_encode_parts(tok, texts, 3, NULL, &p, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_encode_parts(tok, texts, 2, NULL, &p, &err), LATH_ERR_INPUT);
    assert_int_equal(err.item, 1);
    assert_int_equal(p.n, 0);
    assert_int_equal(p.n_parts, 0);
    o.struct_size = 1;
    assert_int_equal(lath_encode_parts(tok, texts, 1, &o, &p, &err), LATH_ERR_USAGE);
    o = (lath_parts_options)LATH_PARTS_OPTIONS_INIT;
    o.truncation = (lath_truncation)7;
    assert_int_equal(lath_encode_parts(tok, texts, 1, &o, &p, &err), LATH_ERR_USAGE);
    o = (lath_parts_options)LATH_PARTS_OPTIONS_INIT;
    o.max_tokens = 1; /* less than [CLS] and [SEP] */
    assert_int_equal(lath_encode_parts(tok, texts, 1, &o, &p, &err), LATH_ERR_USAGE);
    o.max_tokens = 3;
    o.stride = 1;
    assert_int_equal(lath_encode_parts(tok, (lath_text[]){text("water water")}, 1, &o, &p, &err), LATH_ERR_USAGE);
    o.stride = 0;
    o.max_tokens = 4;
    o.truncation = LATH_TRUNCATE_ONLY_FIRST;
    texts[1] = text("water water water water");
    assert_int_equal(lath_encode_parts(tok, texts, 2, &o, &p, &err), LATH_ERR_WINDOW);
    assert_ok(lath_encode_parts(tok, texts, 1, &o, &p, &err), err);
    assert_int_equal(p.n, 3);
    lath_parts_release(&p);
}

static void test_decoder(void **state)
{
    static const int32_t ids[] = {2, 157, 182, 181, 194, 49, 77, 3}, bad[] = {157, 200};
    lath_decoder *d = NULL;
    const char *s = NULL;
    size_t n = 9;
    (void)state;
    assert_int_equal(lath_decoder_create(NULL, 1, &d, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_decoder_create(tok, 1, NULL, &err), LATH_ERR_USAGE);
    assert_ok(lath_decoder_create(tok, 1, &d, &err), err);
    for (int round = 0; round < 2; round++) { /* as new after finish */
        assert_ok(lath_decoder_push(d, ids, 1, &s, &n, &err), err);
        assert_string_equal(s, "");
        assert_int_equal(n, 0);
        assert_ok(lath_decoder_push(d, ids + 1, 2, &s, &n, &err), err);
        assert_string_equal(s, "the green");
        assert_int_equal(lath_decoder_push(d, bad, 2, &s, &n, &err), LATH_ERR_INPUT);
        assert_ok(lath_decoder_push(d, ids + 3, 1, &s, NULL, &err), err);
        assert_string_equal(s, " river");
        assert_ok(lath_decoder_push(d, NULL, 0, &s, &n, &err), err);
        assert_string_equal(s, "");
        assert_ok(lath_decoder_push(d, ids + 4, 4, &s, &n, &err), err);
        assert_string_equal(s, " runs.");
        assert_ok(lath_decoder_finish(d, &s, &n, &err), err);
        assert_string_equal(s, "");
    }
    assert_int_equal(lath_decoder_push(NULL, ids, 1, &s, &n, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_decoder_push(d, NULL, 1, &s, &n, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_decoder_push(d, ids, 1, NULL, &n, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_decoder_finish(NULL, &s, &n, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_decoder_finish(d, NULL, &n, &err), LATH_ERR_USAGE);
    lath_decoder_destroy(d);
    lath_decoder_destroy(NULL);
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
        cmocka_unit_test(test_open),           cmocka_unit_test(test_encode),
        cmocka_unit_test(test_encode_options), cmocka_unit_test(test_encode_errors),
        cmocka_unit_test(test_decode),         cmocka_unit_test(test_vocabulary),
        cmocka_unit_test(test_parts),          cmocka_unit_test(test_parts_errors),
        cmocka_unit_test(test_decoder),
    };
    return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
