/* SPDX-License-Identifier: Apache-2.0
 * test_tok_gguf.c: tokenizers from GGUF arrays: every kind against the tokenizer.json that it stands for, the patterns
 * behind every name of `pre`, defaults of flags, and arrays that are refused. Expected ids of the small vocabularies are
 * worked out by hand from the merges and scores; real models are compared by tools/ref/check_gguf_arrays.py.
 */
#include "support/test.h"

#include "tok/tok_gguf.h"
#include "tok/tok_parts.h"

enum { MOST = 64 };

typedef struct hand {
    tok *t;
    arena scratch;
    tok_encoding e;
    lath_error err;
} hand;

static tok_string str(const char *s) { return (tok_string){s, strlen(s)}; }

static void open_arrays(hand *h, const tok_arrays *a)
{
    *h = (hand){0};
    arena_init(&h->scratch, alloc_default());
    assert_ok(tok_open_arrays(alloc_default(), "arrays.gguf", a, &h->t, &h->err), h->err);
}

static void close_arrays(hand *h)
{
    tok_encoding_release(h->t, &h->e);
    tok_close(h->t);
    arena_deinit(&h->scratch);
}

static void expect_ids(hand *h, const char *text, bool special, const int32_t *want, size_t n)
{
    tok_encode_options o = {special, true, 0};
    assert_ok(tok_encode(h->t, &h->scratch, text, strlen(text), &o, &h->e, &h->err), h->err);
    for (size_t i = 0; i < n && i < h->e.n; i++) {
        if (h->e.ids[i] != want[i]) fail_msg("\"%s\": id %zu is %d, want %d", text, i, (int)h->e.ids[i], (int)want[i]);
    }
    if (h->e.n != n) fail_msg("\"%s\": %zu ids, want %zu", text, h->e.n, n);
}
#define EXPECT(h, text, special, ...)                                          \
    do {                                                                       \
        const int32_t want_[] = {__VA_ARGS__};                                 \
        expect_ids(h, text, special, want_, sizeof(want_) / sizeof(want_[0])); \
    } while (0)

static void expect_text(const hand *h, const int32_t *ids, size_t n, const char *want)
{
    lath_error err = {0};
    buf out;
    buf_init(&out, alloc_default(), 1 << 16);
    assert_ok(tok_decode(h->t, ids, n, true, &out, &err), err);
    assert_string_equal(buf_cstr(&out), want);
    buf_deinit(&out);
}

/* Byte letters, three merges, a control and a user-defined token. "Ġ" (U+0120) is the space. */
static const char *const bpe_words[] = {"a",
                                        "b",
                                        "c",
                                        "\xC4\xA0",
                                        "ab",
                                        "\xC4\xA0"
                                        "ab",
                                        "\xC4\xA0"
                                        "c",
                                        "<|end|>",
                                        "<user>",
                                        "1"};
static const char *const bpe_merges[] = {"a b", "\xC4\xA0 ab", "\xC4\xA0 c"};
static const int32_t bpe_types[] = {1, 1, 1, 1, 1, 1, 1, 3, 4, 1};

static tok_arrays bpe(tok_string *tokens, tok_string *merges)
{
    tok_arrays a = TOK_ARRAYS_INIT;
    for (size_t i = 0; i < 10; i++) tokens[i] = str(bpe_words[i]);
    for (size_t i = 0; i < 3; i++) merges[i] = str(bpe_merges[i]);
    a.kind = "gpt2";
    a.tokens = tokens;
    a.n = 10;
    a.types = bpe_types;
    a.merges = merges;
    a.n_merges = 3;
    a.bos = a.eos = 7;
    return a;
}

static void test_gpt2(void **state)
{
    tok_string tokens[10], merges[3];
    tok_arrays a = bpe(tokens, merges);
    hand h;
    (void)state;
    a.pre = "gpt-2";
    open_arrays(&h, &a);
    EXPECT(&h, "ab ab c", true, 4, 5, 6);
    EXPECT(&h, "ab<|end|><user>b", true, 4, 7, 8, 1);
    static const int32_t ids[] = {4, 5, 7, 6};
    expect_text(&h, ids, 4, "ab ab c");
    assert_true(tok_is_special(h.t, 7));
    assert_false(tok_is_special(h.t, 8));
    close_arrays(&h);
    a.add_bos = 1;
    open_arrays(&h, &a);
    EXPECT(&h, "ab", true, 7, 4);
    EXPECT(&h, "ab", false, 4);
    close_arrays(&h);
    a.add_bos = -1;
    a.pre = "llama-bpe"; /* adds bos where the file does not say */
    open_arrays(&h, &a);
    EXPECT(&h, "ab", true, 7, 4);
    close_arrays(&h);
    a.add_bos = 0;
    a.add_eos = 1;
    open_arrays(&h, &a);
    EXPECT(&h, "ab", true, 4, 7);
    close_arrays(&h);
    a.pre = NULL;
    open_arrays(&h, &a);
    EXPECT(&h, "ab 11", true, 4, 3, 9, 9, 7);
    close_arrays(&h);
}

static void test_every_pre(void **state)
{
    static const char *const names[] = {
        "default",    "llama-bpe",   "llama3",    "qwen2",     "qwen35",     "gpt-2",          "gpt-4o",
        "tekken",     "falcon",      "starcoder", "smollm",    "bloom",      "viking",         "deepseek-llm",
        "dbrx",       "deepseek-v3", "glm4",      "command-r", "bailingmoe", "deepseek-coder", "superbpe",
        "seed-coder", "tiny_aya",    "minicpm5",  "gemma4",    "exaone-moe"};
    tok_string tokens[10], merges[3];
    tok_arrays a = bpe(tokens, merges);
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        hand h;
        const tok_gguf_split *split = tok_gguf_split_find(names[i]);
        assert_non_null(split);
        a.pre = names[i];
        a.add_bos = a.add_eos = 0;
        open_arrays(&h, &a);
        if (!(split->flags & TOK_GGUF_RAW)) EXPECT(&h, "ab ab", true, 4, 5);
        close_arrays(&h);
    }
    assert_null(tok_gguf_split_find("nothing"));
}

/* A word is cut where the scores say, not where merges would be listed. */
static void test_llama(void **state)
{
    static const char *const words[] = {"<unk>",
                                        "<s>",
                                        "</s>",
                                        "<0x41>",
                                        "\xE2\x96\x81",
                                        "a",
                                        "b",
                                        "c",
                                        "bc",
                                        "ab",
                                        ("\xE2\x96\x81"
                                         "a"),
                                        "<x>"};
    static const float scores[] = {0, 0, 0, 0, -9, -8, -7, -6, -1, -2, -3, 0};
    static const int32_t types[] = {2, 3, 3, 6, 1, 1, 1, 1, 1, 1, 1, 4};
    tok_string tokens[12];
    tok_arrays a = TOK_ARRAYS_INIT;
    hand h;
    (void)state;
    for (size_t i = 0; i < 12; i++) tokens[i] = str(words[i]);
    a.kind = "llama";
    a.tokens = tokens;
    a.n = 12;
    a.scores = scores;
    a.types = types;
    a.bos = 1;
    a.eos = 2;
    a.unk = 0;
    open_arrays(&h, &a);
    EXPECT(&h, "abc", true, 1, 10, 8); /* b c first, then the mark and a */
    EXPECT(&h, "abc", false, 10, 8);
    static const int32_t ids[] = {1, 10, 8, 4, 3};
    expect_text(&h, ids, 5, "abc A");
    EXPECT(&h, "A", false, 4, 3);
    close_arrays(&h);
    a.add_space_prefix = 0;
    a.add_bos = 0;
    a.add_eos = 1;
    open_arrays(&h, &a);
    EXPECT(&h, "abc a", true, 5, 8, 10, 2);
    EXPECT(&h, "a<x>", true, 5, 11, 2);
    close_arrays(&h);
}

static void test_t5(void **state)
{
    static const char *const words[] = {"<pad>",
                                        "</s>",
                                        "<unk>",
                                        "\xE2\x96\x81",
                                        "a",
                                        "b",
                                        ("\xE2\x96\x81"
                                         "ab"),
                                        "ab"};
    static const float scores[] = {0, 0, 0, -3, -4, -4, -2, -5};
    static const int32_t types[] = {3, 3, 2, 1, 1, 1, 1, 1};
    tok_string tokens[8];
    tok_arrays a = TOK_ARRAYS_INIT;
    hand h;
    (void)state;
    for (size_t i = 0; i < 8; i++) tokens[i] = str(words[i]);
    a.kind = "t5";
    a.tokens = tokens;
    a.n = 8;
    a.scores = scores;
    a.types = types;
    a.eos = 1;
    a.unk = 2;
    open_arrays(&h, &a);
    EXPECT(&h, "ab ab", true, 6, 6, 1);
    EXPECT(&h, "abab", true, 6, 7, 1);
    EXPECT(&h, "  ab   ab ", false, 6, 6); /* extra spaces go */
    EXPECT(&h, "abz", false, 6, 2);
    close_arrays(&h);
}

static void test_bert(void **state)
{
    static const char *const words[] = {"[PAD]",
                                        "[UNK]",
                                        "[CLS]",
                                        "[SEP]",
                                        "\xE2\x96\x81un",
                                        "able",
                                        "\xE2\x96\x81the",
                                        "[unused1]",
                                        ("\xE2\x96\x81"
                                         "]"),
                                        "un"};
    tok_string tokens[10];
    tok_arrays a = TOK_ARRAYS_INIT;
    hand h;
    (void)state;
    for (size_t i = 0; i < 10; i++) tokens[i] = str(words[i]);
    a.kind = "bert";
    a.tokens = tokens;
    a.n = 10;
    a.unk = 1;
    a.bos = 2;
    a.sep = 3;
    a.pad = 0;
    open_arrays(&h, &a);
    EXPECT(&h, "THE unable ]", true, 2, 6, 4, 5, 8, 3);
    EXPECT(&h, "unun zzz", false, 4, 9, 1);
    assert_string_equal(tok_token(h.t, 5, NULL), "##able");
    assert_string_equal(tok_token(h.t, 7, NULL), "[unused1]");
    static const int32_t ids[] = {2, 6, 4, 5, 3};
    expect_text(&h, ids, 5, "the unable");
    close_arrays(&h);
    tokens[6] = str("\xE2\x96\x81The"); /* capitals: a cased model */
    open_arrays(&h, &a);
    EXPECT(&h, "The the", false, 6, 1);
    close_arrays(&h);
    static const char *const plain[] = {"[PAD]",  "[UNK]", "[CLS]",     "[SEP]", "un",
                                        "##able", "the",   "[unused1]", "]",     "##un"};
    for (size_t i = 0; i < 10; i++) tokens[i] = str(plain[i]); /* a file that keeps the prefixes */
    open_arrays(&h, &a);
    EXPECT(&h, "the unable unun", true, 2, 6, 4, 5, 4, 9, 3);
    close_arrays(&h);
}

static void refused(const tok_arrays *a, lath_status want, const char *why)
{
    tok *t = NULL;
    lath_error err = {0};
    lath_status st = tok_open_arrays(alloc_default(), "arrays.gguf", a, &t, &err);
    if (st != want || !strstr(err.msg, why) || !strstr(err.msg, "arrays.gguf"))
        fail_msg("status %d \"%s\", want %d \"%s\"", (int)st, err.msg, (int)want, why);
    assert_null(t);
}

static void test_refused(void **state)
{
    tok_string tokens[10], merges[3];
    static const float bad_score[10] = {0, 0, 0, 1e38f};
    static const int32_t bad_types[10] = {1, 1, 1, 9};
    tok_arrays good = bpe(tokens, merges), a = good;
    (void)state;
    a.kind = "rwkv";
    refused(&a, LATH_ERR_UNSUPPORTED, "rwkv");
    a.kind = NULL;
    refused(&a, LATH_ERR_UNSUPPORTED, "tokenizer.ggml.model");
    a = good;
    a.pre = "kimi-k2";
    refused(&a, LATH_ERR_UNSUPPORTED, "kimi-k2");
    a = good;
    a.merges = NULL;
    refused(&a, LATH_ERR_FORMAT, "merges");
    a = good;
    a.n = 0;
    refused(&a, LATH_ERR_FORMAT, "tokens");
    a = good;
    a.bos = 10;
    refused(&a, LATH_ERR_FORMAT, "bos");
    a = good;
    a.mask = -2;
    refused(&a, LATH_ERR_FORMAT, "mask");
    a = good;
    a.types = bad_types;
    refused(&a, LATH_ERR_FORMAT, "token 3");
    a = good;
    merges[1] = str("ab");
    refused(&a, LATH_ERR_FORMAT, "merge 1");
    merges[1] = str("x y"); /* not in the vocabulary */
    refused(&a, LATH_ERR_FORMAT, "");
    merges[1] = str(bpe_merges[1]);
    tokens[2] = str("\xFF");
    refused(&a, LATH_ERR_FORMAT, "token 2");
    tokens[2] = str("a"); /* twice */
    refused(&a, LATH_ERR_FORMAT, "");
    tokens[2] = str("c");
    a.kind = "llama";
    refused(&a, LATH_ERR_FORMAT, "scores");
    a.scores = bad_score;
    refused(&a, LATH_ERR_FORMAT, "token 3");
    a.kind = "bert";
    refused(&a, LATH_ERR_FORMAT, "[UNK]");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt2), cmocka_unit_test(test_every_pre), cmocka_unit_test(test_llama),
        cmocka_unit_test(test_t5),   cmocka_unit_test(test_bert),      cmocka_unit_test(test_refused),
    };
    return TEST_RUN(tests);
}
