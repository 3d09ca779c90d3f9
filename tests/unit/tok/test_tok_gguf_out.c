/* SPDX-License-Identifier: Apache-2.0
 *
 * test_tok_gguf_out.c: tokenizers as the arrays of GGUF files. SentencePiece models: the arrays give the ids that SentencePiece gives for its own file
 * (spm/spm.jsonl by tools/ref/make_spm_goldens.py). tokenizer.json: what becomes of tokens, ids and scores in a small one, and every part of one
 * that such arrays cannot say. Files with the tokenizers of real models: tools/ref/check_quantize.py.
 */
#include "base/file.h"
#include "support/test.h"
#include "support/tmpdir.h"
#include "tok/tok_gguf.h"

/* ----------------------------------------------------------------------------------------------------- SentencePiece */

static const char *const models[] = {"bpe", "bpe_bytes", "unigram", "unigram_bytes", "unigram_plain"};
enum { N_MODELS = sizeof(models) / sizeof(models[0]) };

static tok *open_model(const char *name)
{
    char dir[TMP_PATH], from[TMP_PATH], file[64];
    size_t n;
    lath_error err;
    arena mem;
    tok_arrays a;
    tok *t;
    const log_sink silent = {0};
    snprintf(from, sizeof(from), "%s/unit/tok/spm", test_data_dir());
    snprintf(file, sizeof(file), "%s.model", name);
    char *bytes = tmp_read(from, file, &n);
    tmp_make(dir);
    tmp_write_bytes(dir, "tokenizer.model", bytes, n);
    arena_init(&mem, alloc_default());
    assert_ok(tok_arrays_read(&mem, dir, 0, &silent, &a, &err), err);
    assert_string_equal(a.kind, name[0] == 'b' ? "llama" : "t5");
    assert_ok(tok_open_arrays(alloc_default(), name, &a, &t, &err), err);
    arena_deinit(&mem);
    tmp_remove(dir);
    free(bytes);
    return t;
}

static void check_line(const json_value *v, const tok *t, const char *name)
{
    lath_error err;
    arena scratch;
    tok_encoding e = {0};
    const json_value *text = json_get(v, "text"), *want = json_get(v, "ids")->u.items.first;
    const tok_encode_options o = {true, true, 0};
    size_t i = 0;
    arena_init(&scratch, alloc_default());
    assert_ok(tok_encode(t, &scratch, text->u.string.data, text->u.string.len, &o, &e, &err), err);
    for (; want; want = want->next, i++)
        if (i >= e.n || e.ids[i] != want->u.integer)
            fail_msg("%s: \"%s\": id %zu differs", name, text->u.string.data, i);
    assert_int_equal(i, e.n);
    tok_encoding_release(t, &e);
    arena_deinit(&scratch);
}

static void test_sentencepiece(void **state)
{
    (void)state;
    char path[1024];
    lath_error err;
    buf file;
    arena tree;
    size_t lines = 0;
    tok *open[N_MODELS];
    for (size_t k = 0; k < N_MODELS; k++) open[k] = open_model(models[k]);
    snprintf(path, sizeof(path), "%s/unit/tok/spm/spm.jsonl", test_data_dir());
    buf_init(&file, alloc_default(), 1 << 24);
    assert_ok(file_read(&file, path, 1 << 24, &err), err);
    arena_init(&tree, alloc_default());
    for (const char *s = file.data, *end; s < file.data + file.len; s = end + 1) {
        json_value *v;
        end = memchr(s, '\n', (size_t)(file.data + file.len - s));
        arena_reset(&tree);
        assert_ok(json_parse(&tree, path, s, (size_t)(end - s), NULL, &v, &err), err);
        for (size_t k = 0; k < N_MODELS; k++) {
            if (!json_is_string(json_get(v, "model"), models[k])) continue;
            check_line(v, open[k], models[k]);
            lines++;
        }
    }
    assert_true(lines > 700);
    for (size_t k = 0; k < N_MODELS; k++) tok_close(open[k]);
    arena_deinit(&tree);
    buf_deinit(&file);
}

/* ------------------------------------------------------------------------------------------------------ tokenizer.json */

#define PIECES(normalizer, model)                                                                                    \
    "{\"added_tokens\":[{\"id\":0,\"content\":\"<unk>\",\"special\":true},{\"id\":1,\"content\":\"<s>\",\"special\"" \
    ":true},{\"id\":9,\"content\":\"\xE2\x96\x81\xE2\x96\x81\",\"special\":false},{\"id\":10,\"content\":\"<|x|>\"," \
    "\"special\":false}],\"normalizer\":" normalizer ",\"pre_tokenizer\":null,\"post_processor\":{\"type\":"         \
    "\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}},{\"Sequence\":{\"id\":"    \
    "\"A\",\"type_id\":0}}],\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[1]}}},\"model\":" model "}"
#define SPACES "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xE2\x96\x81\"}"
#define MODEL(vocab, merges)                                                                                         \
    "{\"type\":\"BPE\",\"byte_fallback\":true,\"unk_token\":\"<unk>\",\"vocab\":{\"<unk>\":0,\"<s>\":1,\"<0x0A>\":2" \
    ",\"a\":3,\"b\":4,\"c\":5" vocab "},\"merges\":[" merges "]}"

static void parse(const char *json, int64_t n, tok_arrays *a, arena *mem)
{
    lath_error err;
    const log_sink silent = {0};
    assert_ok(tok_arrays_parse(mem, "t.json", json, strlen(json), n, &silent, a, &err), err);
}

static void test_pieces(void **state)
{
    (void)state;
    static const char json[] =
        PIECES(SPACES, MODEL(",\"ab\":6,\"abc\":7,\"bc\":8", "\"b c\",[\"a\",\"b\"],\"a bc\",\"ab c\""));
    static const int32_t types[] = {3, 3, 6, 1, 1, 1, 1, 1, 1, 4, 3, 5};
    static const float scores[] = {-1000, -1000, 0, -3, -4, -5, -1, -2, 0, -1000, -1000, -10000};
    tok_arrays a;
    arena mem;
    arena_init(&mem, alloc_default());
    parse(json, 12, &a, &mem);
    assert_string_equal(a.kind, "llama");
    assert_int_equal(a.n, 12);
    assert_memory_equal(a.types, types, sizeof(types));
    for (size_t i = 0; i < 12; i++) assert_true(a.scores[i] == scores[i]);
    assert_true(a.tokens[9].n == 2 && memcmp(a.tokens[9].s, "  ", 2) == 0);
    assert_true(a.tokens[11].n == 7 && memcmp(a.tokens[11].s, "[PAD11]", 7) == 0);
    assert_true(a.bos == 1 && a.add_bos == 1 && a.add_eos == 0 && a.unk == 0 && a.add_space_prefix == 0 && a.eot == -1);
    arena_deinit(&mem);
}

#define BYTES(pre, normalizer, more)                                                                             \
    "{\"added_tokens\":[],\"normalizer\":" normalizer                                                            \
    ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[" pre                                          \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]},\"model\":{\"type\":\"BPE\"" more \
    ",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}}"
#define SPLIT(regex) \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex "\"},\"behavior\":\"Isolated\",\"invert\":false},"
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\\\p{L}+| ?\\\\p{N}+| ?[^\\\\s\\\\p{L}\\\\p{N}]+|\\\\s+(?!\\\\S)|\\\\s+"
#define CL100K(numbers)                                                                                             \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|" numbers "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[" \
    "\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"

/* Names of split patterns, as llama.cpp has them. */
static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *json, *pre;
    } rows[] = {
        {BYTES(SPLIT(GPT2), "null", ""), "gpt-2"},
        {BYTES("{\"type\":\"Digits\",\"individual_digits\":true}," SPLIT(GPT2), "null", ""), "starcoder"},
        {BYTES(SPLIT(CL100K("\\\\p{N}{1,3}")), "null", ",\"ignore_merges\":true"), "llama-bpe"},
        {BYTES(SPLIT(CL100K("\\\\p{N}{1,3}")), "null", ""), "dbrx"},
        {BYTES(SPLIT(CL100K("\\\\p{N}")), "{\"type\":\"NFC\"}", ""), "qwen2"},
        {BYTES(SPLIT(CL100K("\\\\p{N}")), "null", ""), "kormo"},
    };
    arena mem;
    arena_init(&mem, alloc_default());
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tok_arrays a;
        parse(rows[i].json, 0, &a, &mem);
        assert_string_equal(a.kind, "gpt2");
        assert_string_equal(a.pre, rows[i].pre);
        assert_int_equal(a.n_merges, 1);
        assert_true(a.merges[0].n == 3 && memcmp(a.merges[0].s, "a b", 3) == 0);
        assert_true(a.add_bos == 0 && a.add_eos == 0);
    }
    arena_deinit(&mem);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        lath_status status;
        const char *text;
    } rows[] = {
        {"{", LATH_ERR_FORMAT, "t.json"},
        {"{}", LATH_ERR_FORMAT, "no tokens"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0.5]]}}", LATH_ERR_UNSUPPORTED, "vocabulary"},
        {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}}}", LATH_ERR_UNSUPPORTED, "WordPiece"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}", LATH_ERR_UNSUPPORTED,
         "neither of byte letters"},
        {BYTES(SPLIT("x+"), "null", ""), LATH_ERR_UNSUPPORTED, "split pattern \"x+\""},
        {BYTES("{\"type\":\"Whitespace\"},", "null", ""), LATH_ERR_UNSUPPORTED, "pre-tokenizer \"Whitespace\""},
        {BYTES(SPLIT(GPT2), "{\"type\":\"NFKC\"}", ""), LATH_ERR_UNSUPPORTED, "normalizer \"NFKC\""},
        {BYTES(SPLIT(GPT2), "null", ",\"end_of_word_suffix\":\"</w>\""), LATH_ERR_UNSUPPORTED, "suffix"},
        {PIECES("{\"type\":\"NFKC\"}", MODEL("", "")), LATH_ERR_UNSUPPORTED, "NFKC"},
        /* "b" and "c" make a token, but never merge */
        {PIECES(SPACES, MODEL(",\"ab\":6,\"abc\":7,\"bc\":8", "\"a b\",\"ab c\",\"a bc\"")), LATH_ERR_UNSUPPORTED,
         "token \"bc\" has 0 merges"},
        /* the merges of "abc" lie around that of "ab" */
        {PIECES(SPACES, MODEL(",\"ab\":6,\"abc\":7,\"bc\":8", "\"b c\",\"a bc\",\"a b\",\"ab c\"")),
         LATH_ERR_UNSUPPORTED, "lie between"},
        {PIECES(SPACES, MODEL(",\"ab\":6", "\"a b\",\"b c\"")), LATH_ERR_FORMAT,
         "merge 1 makes \"bc\", which is no token"},
        {PIECES(SPACES, MODEL(",\"ab\":6", "\"a\"")), LATH_ERR_FORMAT, "a merge is not two tokens"},
        {PIECES(SPACES, MODEL(",\"ab\":5", "\"a b\"")), LATH_ERR_FORMAT, "token 5 is there twice"},
        {PIECES(SPACES, MODEL(",\"ab\":90", "\"a b\"")), LATH_ERR_FORMAT, "token 90, but the model has 12"},
    };
    arena mem;
    arena_init(&mem, alloc_default());
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tok_arrays a;
        lath_error err = {0};
        const log_sink silent = {0};
        const int64_t n = strstr(rows[i].json, "<unk>") ? 12 : 0;
        const lath_status st =
            tok_arrays_parse(&mem, "t.json", rows[i].json, strlen(rows[i].json), n, &silent, &a, &err);
        if (st != rows[i].status || !strstr(err.msg, rows[i].text))
            fail_msg("case %zu: status %d: \"%s\", want %d and \"%s\"", i, (int)st, err.msg, (int)rows[i].status,
                     rows[i].text);
    }
    arena_deinit(&mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sentencepiece), cmocka_unit_test(test_pieces),
                                       cmocka_unit_test(test_names), cmocka_unit_test(test_refused)};
    return TEST_RUN(tests);
}
