/* SPDX-License-Identifier: Apache-2.0
 * test_tok_stream.c: decoding while ids arrive: whatever the decoder, in whatever pushes, the stream gives the text that
 * the whole decode gives (which test_tok_pipeline compares with the reference), in whole characters, as early as can be.
 */
#include "support/test.h"

#include "base/utf8.h"
#include "tok/tok.h"

/* Words whose decoders have something to do: byte-level letters, byte tokens, prefixes, suffixes, spaces. */
static const char *const words[] = {"<s>",
                                    "a",
                                    "##b",
                                    "\xE2\x96\x81"
                                    "c", /* U+2581 */
                                    "\xE2\x96\x81",
                                    "<0xE4>",
                                    "<0xBD>",
                                    "<0xA0>",
                                    "<0x41>",
                                    "<0xFF>",
                                    "<0xF0>",
                                    "<0x9F>",
                                    "<0x98>",
                                    "<0x80>",
                                    "\xC4\xA0"
                                    "the", /* Gthe: U+0120 is the space of the byte-level alphabet */
                                    "\xC3\xB0\xC5\x81\xC4\xBA", /* F0 9F 98 */
                                    "\xC4\xA2",                 /* 80 */
                                    "\xC3\xA4",                 /* E4 */
                                    "\xC3\xBF",                 /* FF */
                                    "x</w>",
                                    "</w>",
                                    " ",
                                    "  e ",
                                    "\xE4\xBD\xA0",
                                    "do",
                                    " do not",
                                    ".",
                                    "n't",
                                    "'m",
                                    "|",
                                    "<pad>",
                                    "\xF0\x9F\x98\x80"};
enum { N_WORDS = sizeof(words) / sizeof(words[0]), MOST_IDS = 24 };

static void put_json_string(buf *b, const char *s)
{
    buf_char(b, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') buf_char(b, '\\');
        buf_char(b, *s);
    }
    buf_char(b, '"');
}

/* A tokenizer of these words with the decoder. */
static tok *open_with(const char *decoder)
{
    lath_error err = {0};
    tok *t = NULL;
    buf b;
    buf_init(&b, alloc_default(), 1 << 16);
    buf_str(&b,
            "{\"version\":\"1.0\",\"added_tokens\":[{\"id\":0,\"content\":\"<s>\",\"single_word\":false,\"lstrip\":"
            "false,\"rstrip\":false,\"normalized\":false,\"special\":true}],\"model\":{\"type\":\"WordPiece\","
            "\"unk_token\":\"a\",\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100,\"vocab\":{");
    for (int i = 0; i < N_WORDS; i++) {
        if (i) buf_char(&b, ',');
        put_json_string(&b, words[i]);
        buf_printf(&b, ":%d", i);
    }
    buf_printf(&b, "}},\"decoder\":%s}", decoder);
    assert_ok(tok_open_json(alloc_default(), "stream", buf_cstr(&b), b.len, &t, &err), err);
    buf_deinit(&b);
    return t;
}

static const char *const decoders[] = {
    "null",
    "{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}",
    "{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\",\"prepend_scheme\":\"always\",\"split\":true}",
    "{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\",\"prepend_scheme\":\"never\",\"split\":true}",
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true}",
    "{\"type\":\"Fuse\"}",
    "{\"type\":\"BPEDecoder\",\"suffix\":\"</w>\"}",
    "{\"type\":\"CTC\",\"pad_token\":\"<pad>\",\"word_delimiter_token\":\"|\",\"cleanup\":true}",
    "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":1}",
    "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xE2\x96\x81\"},\"content\":\" \"}"
    ",{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":2}]}",
    "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"},{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},"
    "{\"type\":\"BPEDecoder\",\"suffix\":\"</w>\"}]}",
    "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"BPEDecoder\",\"suffix\":\"</w>\"},{\"type\":\"CTC\",\"pad_token\":"
    "\"<pad>\",\"word_delimiter_token\":\"|\",\"cleanup\":false},{\"type\":\"Strip\",\"content\":\" \",\"start\":0,\"stop\":"
    "1}]}",
};

static const char fallback[] =
    "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xE2\x96\x81\"},\"content\":\" \"}"
    ",{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]}";

static uint32_t next_random(uint32_t *seed) { return (*seed = *seed * 1664525u + 1013904223u) >> 16; }

static void expect_same(const tok *t, tok_stream *s, const int32_t *ids, size_t n, bool skip, uint32_t *seed)
{
    lath_error err = {0};
    buf whole, parts;
    buf_init(&whole, alloc_default(), 1 << 20);
    buf_init(&parts, alloc_default(), 1 << 20);
    assert_ok(tok_decode(t, ids, n, skip, &whole, &err), err);
    for (size_t i = 0; i < n;) {
        size_t k = 1 + next_random(seed) % 3;
        if (k > n - i) k = n - i;
        assert_ok(tok_stream_push(s, ids + i, k, &parts, &err), err);
        assert_int_equal(utf8_first_invalid(parts.data ? parts.data : "", parts.len), parts.len);
        i += k;
    }
    assert_ok(tok_stream_finish(s, &parts, &err), err);
    if (whole.len != parts.len || (whole.len && memcmp(whole.data, parts.data, whole.len) != 0))
        fail_msg("\"%s\", as a stream \"%s\"", buf_cstr(&whole), buf_cstr(&parts));
    buf_deinit(&whole);
    buf_deinit(&parts);
}

static void check_decoder(const char *decoder, bool bytes)
{
    lath_error err = {0};
    tok *t = open_with(decoder);
    uint32_t seed = 7;
    for (int round = 0; round < 2; round++) {
        tok_stream *s;
        assert_ok(tok_stream_create(t, round, &s, &err), err);
        for (int k = 0; k < 3000; k++) { /* one stream after the other with the same object */
            int32_t ids[MOST_IDS];
            size_t n = next_random(&seed) % MOST_IDS;
            for (size_t i = 0; i < n; i++) {
                ids[i] = (int32_t)(next_random(&seed) % N_WORDS);
                if (!bytes && ids[i] >= 5 && ids[i] <= 13) ids[i] = 1; /* see test_byte_fallback */
            }
            expect_same(t, s, ids, n, round, &seed);
        }
        tok_stream_destroy(s);
    }
    tok_close(t);
}

static void test_same_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(decoders) / sizeof(decoders[0]); i++) check_decoder(decoders[i], true);
    check_decoder(fallback, false);
}

static void push(tok_stream *s, int32_t id, const char *want)
{
    lath_error err = {0};
    buf out;
    buf_init(&out, alloc_default(), 1 << 16);
    if (id >= 0)
        assert_ok(tok_stream_push(s, &id, 1, &out, &err), err);
    else
        assert_ok(tok_stream_finish(s, &out, &err), err);
    assert_string_equal(buf_cstr(&out), want);
    buf_deinit(&out);
}

#define BAD "\xEF\xBF\xBD"

/* Characters come with their last byte, what is broken at once. */
static void test_byte_level(void **state)
{
    lath_error err = {0};
    tok *t = open_with(decoders[4]);
    tok_stream *s;
    (void)state;
    assert_ok(tok_stream_create(t, false, &s, &err), err);
    push(s, 14, " the");
    push(s, 15, "");
    push(s, 16, "\xF0\x9F\x98\x80");
    push(s, 17, "");
    push(s, 1, BAD "a"); /* E4, then no continuation */
    push(s, 18, BAD);
    push(s, 16, BAD); /* a continuation of nothing */
    push(s, 15, "");
    push(s, 15, BAD); /* the first is over, the second is open */
    push(s, -1, BAD);
    push(s, 1, "a");
    push(s, -1, "");
    tok_stream_destroy(s);
    tok_close(t);
}

/* A run of byte tokens that is text gives it character by character; one that is not gives U+FFFD for each byte that
 * was not given before. */
static void test_byte_fallback(void **state)
{
    lath_error err = {0};
    tok *t = open_with(fallback);
    tok_stream *s;
    (void)state;
    assert_ok(tok_stream_create(t, false, &s, &err), err);
    push(s, 5, "");
    push(s, 6, "");
    push(s, 7, "\xE4\xBD\xA0");
    push(s, 8, "A");
    push(s, 10, "");
    push(s, 1, BAD "a");
    push(s, 5, "");
    push(s, 6, "");
    push(s, 9, BAD BAD BAD);
    push(s, 8, BAD); /* of the run that is bad */
    push(s, 1, "a");
    push(s, 8, "A");
    push(s, 5, "");
    push(s, -1, BAD);
    push(s, 3, "c"); /* the first space goes */
    push(s, 3, " c");
    push(s, -1, "");
    tok_stream_destroy(s);
    tok_close(t);
}

static void test_other_decoders(void **state)
{
    lath_error err = {0};
    tok *t = open_with(decoders[6]);
    tok_stream *s;
    (void)state;
    assert_ok(tok_stream_create(t, false, &s, &err), err);
    push(s, 19, "x"); /* the suffix is a space unless it is the last */
    push(s, 1, " a");
    push(s, 19, "x");
    push(s, -1, "");
    tok_stream_destroy(s);
    tok_close(t);
    t = open_with(decoders[0]);
    assert_ok(tok_stream_create(t, true, &s, &err), err);
    push(s, 0, "");
    push(s, 1, "a");
    push(s, 0, "");
    push(s, 1, " a");
    push(s, -1, "");
    tok_stream_destroy(s);
    tok_close(t);
}

static void test_errors(void **state)
{
    static const int32_t bad[] = {1, 9999};
    lath_error err = {0};
    tok *t = open_with(decoders[0]);
    tok_stream *s;
    buf out;
    (void)state;
    buf_init(&out, alloc_default(), 1 << 16);
    assert_ok(tok_stream_create(t, false, &s, &err), err);
    assert_int_equal(tok_stream_push(s, bad, 2, &out, &err), LATH_ERR_INPUT);
    assert_non_null(strstr(err.msg, "9999"));
    assert_int_equal(out.len, 0);
    push(s, 1, "a"); /* nothing of the bad call was added */
    push(s, -1, "");
    tok_stream_destroy(s);
    tok_stream_destroy(NULL);
    tok_close(t);
    buf_deinit(&out);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_text),      cmocka_unit_test(test_byte_level), cmocka_unit_test(test_byte_fallback),
        cmocka_unit_test(test_other_decoders), cmocka_unit_test(test_errors),
    };
    return TEST_RUN(tests);
}
