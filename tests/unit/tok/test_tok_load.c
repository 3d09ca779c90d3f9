/* SPDX-License-Identifier: Apache-2.0
 * test_tok_load.c: files that must be refused, with the status and the words that the message must have, and
 * vocab.txt directories. */
#include "support/test.h"

#include "support/tmpdir.h"
#include "tok/tok.h"

#define MODEL(vocab)                                                                                                                                    \
    "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100,\"vocab\":{" vocab \
    "}}"
#define OK_MODEL MODEL("\"[UNK]\":0,\"a\":1,\"b\":2")
#define NORMALIZER(fields) "{" OK_MODEL ",\"normalizer\":{" fields "}}"
#define POST(body) "{" OK_MODEL ",\"post_processor\":" body "}"
#define PIECES(single, specials) \
    POST("{\"type\":\"TemplateProcessing\",\"single\":" single ",\"pair\":[],\"special_tokens\":" specials "}")
#define ADDED(fields) "{" OK_MODEL ",\"added_tokens\":[{" fields "}]}"
#define FLAGS "\"special\":true,\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false"

static const struct {
    const char *json;
    lath_status status;
    const char *words; /* in the message */
} refused[] = {
    {"", LATH_ERR_FORMAT, "t.json"},
    {"[]", LATH_ERR_FORMAT, "want an object"},
    {"{}", LATH_ERR_FORMAT, "\"model\" is missing"},
    {"{\"model\":[]}", LATH_ERR_FORMAT, "\"model\""},
    {"{\"version\":\"2.0\"," OK_MODEL "}", LATH_ERR_UNSUPPORTED, "\"version\""},
    {"{" MODEL("") "}", LATH_ERR_FORMAT, "the vocabulary is empty"},
    {"{" MODEL("\"a\":0") "}", LATH_ERR_FORMAT, "unk_token \"[UNK]\" is not in the vocabulary"},
    {"{" MODEL("\"[UNK]\":0,\"a\":0") "}", LATH_ERR_FORMAT, "tokens \"[UNK]\" and \"a\" have the same id 0"},
    {"{" MODEL("\"[UNK]\":0,\"a\":1,\"a\":2") "}", LATH_ERR_FORMAT, "token \"a\" is there twice"},
    {"{" MODEL("\"[UNK]\":0,\"a\":2147483646") "}", LATH_ERR_FORMAT, "token \"a\": id 2147483646 is out of range"},
    {"{" MODEL("\"[UNK]\":0,\n\"a\":2147483647") "}", LATH_ERR_FORMAT,
     "t.json: line 2: model.vocab: token \"a\": id 2147483647 is out of range"},
    {"{" MODEL("\"[UNK]\":0,\"a\":-1") "}", LATH_ERR_FORMAT, "id -1 is out of range"},
    {"{" MODEL("\"[UNK]\":0,\"a\":1e30") "}", LATH_ERR_FORMAT, "token \"a\": want an id"},
    {"{" MODEL("\"[UNK]\":0,\"a\":\"x\"") "}", LATH_ERR_FORMAT, "token \"a\": want an id"},
    {"{" MODEL("\"[UNK]\":0,\"a\":{\"b\":[1]}") "}", LATH_ERR_FORMAT, "token \"a\": want an id"},
    {"{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"a\",\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100,\"vocab\":7}}",
     LATH_ERR_FORMAT, "model.vocab"},
    {"{\"model\":{\"type\":\"WordPiece\",\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100,\"vocab\":{\"a\":0}}}",
     LATH_ERR_FORMAT, "\"unk_token\" is missing"},
    {"{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"a\",\"max_input_chars_per_word\":100,\"vocab\":{\"a\":0}}}",
     LATH_ERR_FORMAT, "\"continuing_subword_prefix\" is missing"},
    {"{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"a\",\"continuing_subword_prefix\":\"\",\"vocab\":{\"a\":0}}}",
     LATH_ERR_FORMAT, "\"max_input_chars_per_word\" is missing"},
    {"{\"model\":{\"type\":\"WordPiece\",\"dropout\":1,\"vocab\":{\"a\":0}}}", LATH_ERR_UNSUPPORTED,
     "model: field \"dropout\" is not supported"},
    {"{\"model\":{\"type\":\"WordTree\",\"vocab\":{\"a\":0}}}", LATH_ERR_UNSUPPORTED,
     "model: type \"WordTree\" is not supported"},
    {"{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}}", LATH_ERR_FORMAT, "model.merges: entry 0"},
    {"{\"model\":{\"vocab\":[[\"a\"]]}}", LATH_ERR_FORMAT, "model.vocab: entry 0: want [piece, score]"},
    {"{\"model\":{\"vocab\":[[\"a\",\"b\"]]}}", LATH_ERR_FORMAT, "model.vocab: entry 0: want [piece, score]"},
    {"{\"model\":{\"vocab\":[[\"a\",1e999]]}}", LATH_ERR_FORMAT, "model.vocab: the score of piece 0 is not finite"},
    {"{\"model\":{\"vocab\":[[\"a\",0]],\"unk_id\":1}}", LATH_ERR_FORMAT,
     "model: unk_id 1 is out of range for 1 pieces"},
    {"{\"model\":{\"vocab\":[[\"a\",0]],\"nbest\":1}}", LATH_ERR_UNSUPPORTED,
     "model: field \"nbest\" is not supported"},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":{\"a\":0}}}", LATH_ERR_FORMAT, "model.vocab: want a list"},
    {"{\"model\":{\"type\":\"WordLevel\",\"vocab\":[[\"a\",0]]}}", LATH_ERR_FORMAT, "model.vocab: want an object"},
    {"{\"model\":{\"vocab\":{\"a\":0}}}", LATH_ERR_FORMAT, "model: \"unk_token\" is missing"},
    {NORMALIZER("\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAA\""), LATH_ERR_FORMAT, "is not base64"},
    {NORMALIZER("\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAAA\""), LATH_ERR_FORMAT, "of 3 bytes is cut"},
    {NORMALIZER("\"type\":\"Precompiled\",\"precompiled_charsmap\":\"BAAAAAAA\""), LATH_ERR_FORMAT,
     "a trie of 4 bytes in 6"},
    {NORMALIZER("\"type\":\"Replace\",\"pattern\":{\"Glob\":\"a\"},\"content\":\"\""), LATH_ERR_FORMAT, "\"pattern\""},
    {NORMALIZER("\"type\":\"Foo\""), LATH_ERR_UNSUPPORTED, "t.json: line 1: normalizer: type \"Foo\" is not supported"},
    {NORMALIZER("\"lowercase\":true"), LATH_ERR_FORMAT, "normalizer: \"type\" is missing"},
    {NORMALIZER("\"type\":\"BertNormalizer\",\"clean_text\":true,\"lowercase\":true"), LATH_ERR_FORMAT,
     "\"handle_chinese_chars\" is missing"},
    {NORMALIZER("\"type\":\"BertNormalizer\",\"clean_text\":1,\"handle_chinese_chars\":true,\"lowercase\":true"),
     LATH_ERR_FORMAT, "\"clean_text\""},
    {NORMALIZER("\"type\":\"Lowercase\",\"locale\":\"tr\""), LATH_ERR_UNSUPPORTED,
     "normalizer: field \"locale\" is not supported"},
    {NORMALIZER("\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFD\"},{\"type\":\"Bar\"}]"), LATH_ERR_UNSUPPORTED,
     "type \"Bar\""},
    {NORMALIZER("\"type\":\"Sequence\",\"normalizers\":[7]"), LATH_ERR_FORMAT, "want an object"},
    {NORMALIZER("\"type\":\"Sequence\""), LATH_ERR_FORMAT, "\"normalizers\""},
    {"{" OK_MODEL ",\"normalizer\":\"NFD\"}", LATH_ERR_FORMAT, "normalizer: want an object"},
    {"{" OK_MODEL ",\"pre_tokenizer\":{\"type\":\"Foo\"}}", LATH_ERR_UNSUPPORTED,
     "pre_tokenizer: type \"Foo\" is not supported"},
    {"{" OK_MODEL ",\"pre_tokenizer\":{\"type\":\"Punctuation\",\"behavior\":\"Foo\"}}", LATH_ERR_UNSUPPORTED,
     "behavior"},
    {"{" OK_MODEL ",\"decoder\":{\"type\":\"Foo\"}}", LATH_ERR_UNSUPPORTED, "decoder: type \"Foo\" is not supported"},
    {POST("{\"type\":\"Foo\"}"), LATH_ERR_UNSUPPORTED, "post_processor: type \"Foo\" is not supported"},
    {POST("{\"type\":\"BertProcessing\",\"sep\":[\"b\",2]}"), LATH_ERR_FORMAT, "\"cls\""},
    {POST("{\"type\":\"BertProcessing\",\"sep\":[\"b\",2],\"cls\":[\"a\",9]}"), LATH_ERR_FORMAT,
     "token \"a\": id 9 is no token"},
    {PIECES("[{\"SpecialToken\":{\"id\":\"[CLS]\",\"type_id\":0}}]", "{}"), LATH_ERR_FORMAT,
     "token \"[CLS]\" of the template"},
    {PIECES("[{\"SpecialToken\":{\"id\":\"x\",\"type_id\":0}}]",
            "{\"x\":{\"id\":\"x\",\"ids\":[55],\"tokens\":[\"x\"]}}"),
     LATH_ERR_FORMAT, "id 55 is no token"},
    {PIECES("[{\"Sequence\":{\"id\":\"B\",\"type_id\":0}}]", "{}"), LATH_ERR_FORMAT, "Sequence"},
    {PIECES("[{\"Sequence\":{\"id\":\"A\"}}]", "{}"), LATH_ERR_FORMAT, "type_id"},
    {PIECES("[7]", "{}"), LATH_ERR_FORMAT, "post_processor"},
    {ADDED("\"content\":\"x\"," FLAGS), LATH_ERR_FORMAT, "\"id\""},
    {ADDED("\"id\":5," FLAGS), LATH_ERR_FORMAT, "\"content\" is missing"},
    {ADDED("\"id\":5000000000,\"content\":\"x\"," FLAGS), LATH_ERR_FORMAT, "\"id\""},
    {ADDED("\"id\":5,\"content\":\"x\",\"special\":true"), LATH_ERR_FORMAT, "\"single_word\" is missing"},
    {"{" OK_MODEL ",\"added_tokens\":{}}", LATH_ERR_FORMAT, "added_tokens: want a list"},
    {"{" OK_MODEL ",\"added_tokens\":[3]}", LATH_ERR_FORMAT, "added_tokens: want objects"},
};

static void refused_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        lath_error err = {0};
        tok *t = NULL;
        lath_status st = tok_open_json(alloc_default(), "t.json", refused[i].json, strlen(refused[i].json), &t, &err);
        if (st != refused[i].status || !strstr(err.msg, refused[i].words) || strncmp(err.msg, "t.json", 6) != 0) {
            fail_msg("case %zu: status %d, want %d: \"%s\", want \"%s\"", i, (int)st, (int)refused[i].status, err.msg,
                     refused[i].words);
        }
        assert_null(t);
    }
}

static void accepted_oddities(void **state)
{
    (void)state;
    lath_error err = {0};
    tok *t;
    /* no type, unknown members at the top, truncation and padding, ids with holes, an added token beyond the
     * vocabulary */
    const char *json =
        "{\"model\":{\"unk_token\":\"u\",\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100,\"vocab\":{\"u\":7,\"a\":3}},"
        "\"truncation\":{\"max_length\":1},\"padding\":{},\"x\":1,\"added_tokens\":[{\"id\":9,\"content\":\"new\"," FLAGS
        "}]}";
    assert_ok(tok_open_json(alloc_default(), "t.json", json, strlen(json), &t, &err), err);
    assert_int_equal(tok_size(t), 8);
    assert_int_equal(tok_id(t, "new", 3), 2); /* the next free number, as the reference gives it */
    assert_string_equal(tok_token(t, 2, NULL), "new");
    assert_true(tok_is_special(t, 2));
    assert_null(tok_token(t, 4, NULL));
    tok_close(t);
}

/* -------------------------------------------------------------------------------------------------------- vocab.txt */

static char dir[TMP_PATH];

static int make_dir(void **state)
{
    (void)state;
    tmp_make(dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    tmp_remove(dir);
    return 0;
}

static void expect_ids(const tok *t, const char *text, const int32_t *want, size_t n)
{
    lath_error err = {0};
    arena scratch;
    tok_encoding e = {0};
    tok_encode_options o = {true, true, 0};
    arena_init(&scratch, alloc_default());
    assert_ok(tok_encode(t, &scratch, text, strlen(text), &o, &e, &err), err);
    assert_int_equal(e.n, n);
    assert_memory_equal(e.ids, want, n * sizeof(*want));
    tok_encoding_release(t, &e);
    arena_deinit(&scratch);
}

static void vocab_txt(void **state)
{
    (void)state;
    lath_error err = {0};
    tok *t;
    assert_int_equal(tok_open_dir(alloc_default(), dir, &t, &err), LATH_ERR_NOT_FOUND);
    assert_non_null(strstr(err.msg, "neither tokenizer.json nor vocab.txt"));

    tmp_write(dir, "vocab.txt",
              "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]\r\nthe\r\ncat\r\n##s\r\ne\r\nThe\r\n\xC3\xA9\r\n");
    assert_ok(tok_open_dir(alloc_default(), dir, &t, &err), err);
    static const int32_t uncased[] = {2, 5, 6, 7, 4, 8, 1, 3};
    expect_ids(t, "The CATS[MASK]\xC3\x89 dog", uncased, 8); /* lower case and no accents by default */
    assert_int_equal(tok_n_template(t), 2);
    assert_true(tok_is_special(t, 4));
    tok_close(t);

    tmp_write(
        dir, "tokenizer_config.json",
        "{\"do_lower_case\":false,\"mask_token\":{\"content\":\"[M]\"},\"added_tokens_decoder\":{\"11\":{\"content\":\"<x>\",\"special\":true}}}");
    assert_ok(tok_open_dir(alloc_default(), dir, &t, &err), err);
    static const int32_t cased[] = {2, 9, 10, 12, 11, 3};
    expect_ids(t, "The \xC3\xA9 [M]<x>", cased, 6);
    tok_close(t);

    tmp_write(dir, "tokenizer_config.json",
              "{\"added_tokens_decoder\":{\"99\":{\"content\":\"<x>\",\"special\":true}}}");
    assert_int_equal(tok_open_dir(alloc_default(), dir, &t, &err), LATH_ERR_FORMAT);
    assert_non_null(strstr(err.msg, "token \"<x>\" does not have id 99"));
    tmp_write(dir, "tokenizer_config.json", "{\"cls_token\":\"[NOPE]\"}");
    assert_int_equal(tok_open_dir(alloc_default(), dir, &t, &err), LATH_ERR_FORMAT);
    assert_non_null(strstr(err.msg, "token \"[NOPE]\" is not in the vocabulary"));
    tmp_write(dir, "tokenizer_config.json", "{\"do_lower_case\":3}");
    assert_int_equal(tok_open_dir(alloc_default(), dir, &t, &err), LATH_ERR_FORMAT);
    assert_non_null(strstr(err.msg, "do_lower_case"));
    tmp_delete(dir, "tokenizer_config.json");
    tmp_write(dir, "vocab.txt", "[UNK]\n\xFF\n");
    assert_int_equal(tok_open_dir(alloc_default(), dir, &t, &err), LATH_ERR_FORMAT);
    assert_non_null(strstr(err.msg, "vocab.txt: line 2"));
    tmp_write(dir, "vocab.txt", "");
    assert_int_equal(tok_open_dir(alloc_default(), dir, &t, &err), LATH_ERR_FORMAT);
}

/* A line that comes twice has its last number. */
static void vocab_txt_repeats(void **state)
{
    (void)state;
    lath_error err = {0};
    tok *t;
    tmp_write(dir, "vocab.txt", "[PAD]\n[UNK]\na\n[CLS]\n[SEP]\na\n\n\nb");
    assert_ok(tok_open_dir(alloc_default(), dir, &t, &err), err);
    assert_int_equal(tok_id(t, "a", 1), 5);
    assert_null(tok_token(t, 2, NULL));
    assert_int_equal(tok_id(t, "b", 1), 8);
    tok_close(t);
}

/* ----------------------------------------------------------------------------------------------------------- memory */

typedef struct starved {
    long left;
} starved;

static void *starved_alloc(void *ctx, size_t size, size_t align)
{
    starved *s = ctx;
    return s->left-- > 0 ? alloc_default()->alloc(alloc_default()->ctx, size, align) : NULL;
}

static void *starved_resize(void *ctx, void *p, size_t old, size_t size, size_t align)
{
    starved *s = ctx;
    return s->left-- > 0 ? alloc_default()->resize(alloc_default()->ctx, p, old, size, align) : NULL;
}

static void starved_release(void *ctx, void *p, size_t size)
{
    (void)ctx;
    alloc_default()->release(alloc_default()->ctx, p, size);
}

/* Every allocation in turn fails: nothing leaks (sanitizers see it), nothing crashes, the status is right. */
static void out_of_memory(void **state)
{
    (void)state;
    const char *json =
        "{" OK_MODEL
        ",\"normalizer\":{\"type\":\"Lowercase\"},\"added_tokens\":[{\"id\":9,\"content\":\"New\",\"special\":false,"
        "\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":true}],\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\","
        "\"cleanup\":true},\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"a\",1],\"sep\":[\"b\",2]}}";
    bool done = false;
    long k = 0;
    for (; !done && k < 1000; k++) {
        starved s = {k};
        lath_allocator a = {&s, starved_alloc, starved_resize, starved_release};
        lath_error err = {0};
        tok *t = NULL;
        arena scratch;
        buf text;
        tok_encoding e = {0};
        tok_encode_options o = {true, true, 0};
        arena_init(&scratch, &a);
        buf_init(&text, &a, 1 << 20);
        lath_status st = tok_open_json(&a, "t.json", json, strlen(json), &t, &err);
        if (st == LATH_OK) st = tok_encode(t, &scratch, "a \xC3\x89 new b!", 11, &o, &e, &err);
        if (st == LATH_OK) st = tok_decode(t, e.ids, e.n, false, &text, &err);
        done = st == LATH_OK;
        if (!done) assert_int_equal(st, LATH_ERR_NOMEM);
        buf_deinit(&text);
        if (t) tok_encoding_release(t, &e);
        tok_close(t);
        arena_deinit(&scratch);
    }
    assert_true(done);
    assert_true(k > 10);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(refused_files),
    cmocka_unit_test(accepted_oddities),
    cmocka_unit_test_setup_teardown(vocab_txt, make_dir, remove_dir),
    cmocka_unit_test_setup_teardown(vocab_txt_repeats, make_dir, remove_dir),
    cmocka_unit_test(out_of_memory),
};
TEST_MAIN(tests)
