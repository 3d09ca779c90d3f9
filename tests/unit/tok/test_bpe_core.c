/* SPDX-License-Identifier: Apache-2.0
 * test_bpe_core.c: merging against the definition of BPE, word by word; the cache of words, also from several threads;
 * files that are wrong; vocab.json with merges.txt; long words in time.
 */
#include "support/test.h"

#include <pthread.h>
#include <time.h>

#include "support/tmpdir.h"
#include "tok/tok_bpe.h"

/* A byte-level file of the letters a to d, written by hand: bytes have the ids 0 to 255. */
static void put_file(buf *b, const char *more_tokens, const char *merges, const char *options)
{
    buf_str(b, "{\"added_tokens\":[],\"model\":{\"type\":\"BPE\",\"vocab\":{");
    for (int k = 0; k < 256; k++) {
        uint32_t c = k <= 32                  ? 256u + (uint32_t)k
                     : (k >= 127 && k <= 160) ? 256u + 33 + (uint32_t)k - 127
                     : k == 173               ? 256u + 67
                                              : (uint32_t)k;
        buf_printf(b, "%s\"\\u%04x\":%d", k ? "," : "", (unsigned)c, k);
    }
    buf_printf(b,
               "%s},\"merges\":[%s]%s},\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
               "\"trim_offsets\":false,\"use_regex\":true},\"decoder\":{\"type\":\"ByteLevel\"}}",
               more_tokens, merges, options);
}

static lath_status open_file(const char *more_tokens, const char *merges, const char *options, tok **t, lath_error *err)
{
    buf b;
    buf_init(&b, alloc_default(), 1 << 24);
    put_file(&b, more_tokens, merges, options);
    lath_status st = tok_open_json(alloc_default(), "test.json", b.data, b.len, t, err);
    buf_deinit(&b);
    return st;
}

/* --------------------------------------------------------------------------------------------------------- definition */

typedef struct rule {
    int32_t left, right, product;
} rule;

enum { LETTERS = 4, RULES = 400 };

/* The pair of the lowest rank, leftmost first, until there is none: from the definition, with nothing clever. */
static size_t merge_by_definition(const rule *rules, size_t n_rules, int32_t *sym, uint32_t *len, size_t n)
{
    for (;;) {
        size_t best = n_rules, at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            for (size_t k = 0; k < best; k++) {
                if (rules[k].left != sym[i] || rules[k].right != sym[i + 1]) continue;
                best = k;
                at = i;
            }
        }
        if (best == n_rules) return n;
        sym[at] = rules[best].product;
        len[at] += len[at + 1];
        memmove(sym + at + 1, sym + at + 2, (n - at - 2) * sizeof(*sym));
        memmove(len + at + 1, len + at + 2, (n - at - 2) * sizeof(*len));
        n--;
    }
}

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x >> 11;
}

/* A vocabulary of strings of a to d, grown by random merges: tokens, some of which come about in several ways. */
typedef struct language {
    buf tokens, merges;
    char text[RULES + LETTERS][32];
    size_t n_tokens, n_rules;
    rule rules[RULES];
} language;

static void make_language(language *g, uint64_t seed)
{
    memset(g, 0, sizeof(*g));
    buf_init(&g->tokens, alloc_default(), 1 << 20);
    buf_init(&g->merges, alloc_default(), 1 << 20);
    for (int k = 0; k < LETTERS; k++) g->text[g->n_tokens++][0] = (char)('a' + k);
    while (g->n_rules < RULES) {
        size_t l = next_random(&seed) % g->n_tokens, r = next_random(&seed) % g->n_tokens, p = 0;
        char both[64];
        snprintf(both, sizeof(both), "%s%s", g->text[l], g->text[r]);
        if (strlen(both) > 12) continue;
        bool twice = false;
        for (size_t k = 0; k < g->n_rules; k++)
            twice = twice || (g->rules[k].left == (int32_t)l && g->rules[k].right == (int32_t)r);
        if (twice) continue;
        while (p < g->n_tokens && strcmp(g->text[p], both) != 0) p++;
        if (p == g->n_tokens) {
            memcpy(g->text[g->n_tokens++], both, strlen(both) + 1);
            buf_printf(&g->tokens, ",\"%s\":%zu", both, 256 + p);
        }
        buf_printf(&g->merges, "%s\"%s %s\"", g->n_rules ? "," : "", g->text[l], g->text[r]);
        g->rules[g->n_rules++] = (rule){(int32_t)l, (int32_t)r, (int32_t)p};
    }
}

static int32_t id_of(int32_t token) { return token < LETTERS ? 'a' + token : 256 + token; }

static void merges_as_defined(void **state)
{
    (void)state;
    uint64_t x = 0x1234567;
    language *g = malloc(sizeof(*g));
    assert_non_null(g);
    for (int round = 0; round < 12; round++) {
        lath_error err = {0};
        tok *t;
        arena scratch;
        tok_encoding e = {0};
        make_language(g, 77 + (uint64_t)round);
        assert_ok(open_file(buf_cstr(&g->tokens), buf_cstr(&g->merges), "", &t, &err), err);
        arena_init(&scratch, alloc_default());
        for (int word = 0; word < 300; word++) {
            /* From one letter to far more than short words have, so that all ways of merging are taken. */
            char text[260];
            int32_t sym[260];
            uint32_t len[260];
            size_t n = 1 + next_random(&x) % (word % 3 == 0 ? 15 : word % 3 == 1 ? 60 : 250);
            for (size_t i = 0; i < n; i++) {
                sym[i] = (int32_t)(next_random(&x) % LETTERS);
                len[i] = 1;
                text[i] = (char)('a' + sym[i]);
            }
            size_t want = merge_by_definition(g->rules, g->n_rules, sym, len, n);
            for (int twice = 0; twice < 2; twice++) {
                tok_encode_options o = {true, true, 0};
                arena_reset(&scratch);
                assert_ok(tok_encode(t, &scratch, text, n, &o, &e, &err), err);
                assert_int_equal(e.n, want);
                uint32_t at = 0;
                for (size_t i = 0; i < want; i++) {
                    if (e.ids[i] != id_of(sym[i])) fail_msg("\"%.*s\": token %zu is %d", (int)n, text, i, e.ids[i]);
                    assert_int_equal(e.offsets[2 * i], at);
                    at += len[i];
                    assert_int_equal(e.offsets[2 * i + 1], at);
                }
            }
        }
        tok_encoding_release(t, &e);
        arena_deinit(&scratch);
        tok_close(t);
        buf_deinit(&g->tokens);
        buf_deinit(&g->merges);
    }
    free(g);
}

/* -------------------------------------------------------------------------------------------------------------- cache */

static void cache_keeps_words(void **state)
{
    (void)state;
    lath_error err = {0};
    tok_bpe_cache *c;
    tok_cache_key key, other;
    tok_cached hit;
    static const char text[] = "the quick brown fox jumps over the lazy dog";
    assert_ok(tok_bpe_cache_create(alloc_default(), &c, &err), err);
    assert_true(tok_bpe_cache_bytes(c) < 1024);
    for (size_t n = 1; n <= TOK_CACHE_LARGE; n++) {
        for (size_t count = 1; count <= TOK_CACHE_MOST; count++) {
            int32_t ids[TOK_CACHE_MOST];
            uint32_t len[TOK_CACHE_MOST];
            for (size_t i = 0; i < count; i++) {
                ids[i] = (int32_t)((1u << 22) - 1 - i * 1000 - n);
                len[i] = (uint32_t)(n <= 15 && count <= 4 ? (i * 5 + n) % 15 + 1 : (i * 7 + n) % 39 + 1);
            }
            tok_bpe_cache_key(text, n, sizeof(text), false, &key);
            tok_bpe_cache_put(c, &key, ids, len, count);
            assert_true(tok_bpe_cache_find(c, &key, &hit));
            assert_int_equal(hit.n, n <= 15 && count > 4 ? hit.n : count);
            if (hit.n != count) continue; /* the small slot of a shorter result is still there */
            for (size_t i = 0; i < count; i++) {
                assert_int_equal(hit.id[i], ids[i]);
                assert_int_equal(hit.len[i], len[i]);
            }
        }
        tok_bpe_cache_key(text, n, n, true, &other); /* a part of a word is another key; so is what ends the memory */
        assert_false(tok_bpe_cache_find(c, &other, &hit));
        tok_bpe_cache_key(text, n, n, false, &other);
        assert_true(tok_bpe_cache_find(c, &other, &hit));
    }
    int32_t ids[TOK_CACHE_MOST + 1] = {1 << 22};
    uint32_t len[TOK_CACHE_MOST + 1] = {1};
    tok_bpe_cache_key("new", 3, 3, false, &key);
    tok_bpe_cache_put(c, &key, ids, len, 1); /* an id that does not fit */
    assert_false(tok_bpe_cache_find(c, &key, &hit));
    ids[0] = 1;
    tok_bpe_cache_put(c, &key, ids, len, TOK_CACHE_MOST + 1);
    assert_false(tok_bpe_cache_find(c, &key, &hit));
    tok_bpe_cache_destroy(c);
}

typedef struct sharer {
    const tok *t;
    uint64_t seed;
    bool ok;
} sharer;

/* Encodes words of a small set over and over and compares with what they must become: every letter by itself, "ab" as
 * one. */
static void *share(void *arg)
{
    sharer *s = arg;
    arena scratch;
    lath_error err = {0};
    tok_encoding e = {0};
    arena_init(&scratch, alloc_default());
    s->ok = true;
    for (int round = 0; round < 3000 && s->ok; round++) {
        char text[40];
        size_t n = 1 + next_random(&s->seed) % 30, tokens = 0;
        for (size_t i = 0; i < n; i++) text[i] = "abc"[next_random(&s->seed) % 3];
        tok_encode_options o = {true, true, 0};
        arena_reset(&scratch);
        if (tok_encode(s->t, &scratch, text, n, &o, &e, &err) != LATH_OK) s->ok = false;
        for (size_t i = 0; i < n && s->ok; tokens++) {
            bool both = i + 1 < n && text[i] == 'a' && text[i + 1] == 'b';
            if (tokens >= e.n || e.ids[tokens] != (both ? 256 : text[i])) s->ok = false;
            i += both ? 2 : 1;
        }
        if (tokens != e.n) s->ok = false;
    }
    tok_encoding_release(s->t, &e);
    arena_deinit(&scratch);
    return NULL;
}

static void threads_share_a_tokenizer(void **state)
{
    (void)state;
    lath_error err = {0};
    tok *t;
    pthread_t threads[3];
    sharer v[3];
    assert_ok(open_file(",\"ab\":256", "\"a b\"", "", &t, &err), err);
    for (uint64_t i = 0; i < 3; i++) {
        v[i] = (sharer){t, 99 + i, false};
        assert_int_equal(pthread_create(&threads[i], NULL, share, &v[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_true(v[i].ok);
    }
    tok_close(t);
}

/* -------------------------------------------------------------------------------------------------------- wrong files */

static void wrong_files_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *tokens, *merges, *options, *message;
        lath_status status;
    } cases[] = {
        {"", "\"a b\"", "", "model.merges: entry 0 (\"a\", \"b\"): \"ab\" is not in the vocabulary", LATH_ERR_FORMAT},
        {",\"ab\":256", "\"a b\",\"ab xyz\"", "", "entry 1 (\"ab\", \"xyz\"): \"xyz\" is not in", LATH_ERR_FORMAT},
        {",\"ab\":256", "[\"q1\",\"b\"]", "", "\"q1\" is not in the vocabulary", LATH_ERR_FORMAT},
        {"", "\"a\"", "", "model.merges: entry 0: \"a\" is not two tokens", LATH_ERR_FORMAT},
        {"", "\"a b c\"", "", "is not two tokens", LATH_ERR_FORMAT},
        {"", "[\"a\"]", "", "model.merges: entry 0: want two tokens", LATH_ERR_FORMAT},
        {"", "7", "", "want two tokens", LATH_ERR_FORMAT},
        {"", "", ",\"dropout\":0.1", "\"dropout\" is not supported", LATH_ERR_UNSUPPORTED},
        {"", "", ",\"new_field\":1", "field \"new_field\" is not supported", LATH_ERR_UNSUPPORTED},
        {",\"ab\":2000000000", "\"a b\"", "", "id 2000000000 is out of range", LATH_ERR_FORMAT},
        {",\"ab\":5", "\"a b\"", "", "have the same id 5", LATH_ERR_FORMAT},
        {",\"ab\":-1", "\"a b\"", "", "id -1 is out of range", LATH_ERR_FORMAT},
        {",\"##b\":256,\"ab\":257", "[\"a\",\"##b\"],[\"a\",\"b\"]", ",\"continuing_subword_prefix\":\"##\"",
         "does not begin with the prefix", LATH_ERR_FORMAT},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        lath_error err = {0};
        tok *t = NULL;
        lath_status st = open_file(cases[i].tokens, cases[i].merges, cases[i].options, &t, &err);
        if (st != cases[i].status || !strstr(err.msg, cases[i].message) || !strstr(err.msg, "test.json: line 1: "))
            fail_msg("case %zu: status %d: %s", i, st, err.msg);
        assert_null(t);
    }
}

static void zero_dropout_and_old_merges_are_fine(void **state)
{
    (void)state;
    lath_error err = {0};
    tok *t;
    arena scratch;
    tok_encoding e = {0};
    tok_encode_options o = {true, true, 0};
    /* Of a merge that is there twice the last rank counts: "bc" comes first, then. */
    assert_ok(open_file(",\"ab\":256,\"bc\":257", "\"#version: 0.2\",\"a b\",\"b c\",\"a b\"",
                        ",\"dropout\":0.0,\"unk_token\":\"absent\",\"end_of_word_suffix\":\"\"", &t, &err),
              err);
    arena_init(&scratch, alloc_default());
    assert_ok(tok_encode(t, &scratch, "abc", 3, &o, &e, &err), err);
    assert_int_equal(e.n, 2);
    assert_int_equal(e.ids[0], 'a');
    assert_int_equal(e.ids[1], 257);
    tok_encoding_release(t, &e);
    arena_deinit(&scratch);
    tok_close(t);
}

static void a_missing_unknown_token_is_an_error_when_it_is_needed(void **state)
{
    (void)state;
    static const char file[] = "{\"model\":{\"type\":\"BPE\",\"unk_token\":\"?\",\"vocab\":{\"a\":0},\"merges\":[]}}";
    lath_error err = {0};
    tok *t;
    arena scratch;
    tok_encoding e = {0};
    tok_encode_options o = {true, true, 0};
    arena_init(&scratch, alloc_default());
    assert_ok(tok_open_json(alloc_default(), "test.json", file, strlen(file), &t, &err), err);
    assert_ok(tok_encode(t, &scratch, "aa", 2, &o, &e, &err), err);
    assert_int_equal(e.n, 2);
    assert_int_equal(tok_encode(t, &scratch, "ab", 2, &o, &e, &err), LATH_ERR_FORMAT);
    assert_non_null(strstr(err.msg, "unk_token"));
    tok_encoding_release(t, &e);
    arena_deinit(&scratch);
    tok_close(t);
}

/* ----------------------------------------------------------------------------------------------------------- long words */

/* n letters without a space: merged in a time that grows hardly faster than n. */
static double seconds_for(const tok *t, size_t n, size_t want)
{
    lath_error err = {0};
    arena scratch;
    tok_encoding e = {0};
    tok_encode_options o = {true, true, 0};
    char *text = malloc(n);
    assert_non_null(text);
    memset(text, 'a', n);
    arena_init(&scratch, alloc_default());
    clock_t begin = clock();
    assert_ok(tok_encode(t, &scratch, text, n, &o, &e, &err), err);
    double s = (double)(clock() - begin) / CLOCKS_PER_SEC;
    assert_int_equal(e.n, want);
    tok_encoding_release(t, &e);
    arena_deinit(&scratch);
    free(text);
    return s;
}

static void long_words_take_no_square_time(void **state)
{
    (void)state;
    lath_error err = {0};
    tok *t;
    assert_ok(open_file(",\"aa\":256,\"aaaa\":257,\"aaaaaaaa\":258", "\"a a\",\"aa aa\",\"aaaa aaaa\"", "", &t, &err),
              err);
    double small = seconds_for(t, 50000, 6250), large = seconds_for(t, 800000, 100000);
    if (large > 60 * small + 1) fail_msg("16 times the letters take %.0f times as long", large / small);
    tok_close(t);
}

/* ------------------------------------------------------------------------------------------------- vocab.json, merges.txt */

static const char small_vocab[] =
    "{\"<s>\":0,\"</s>\":1,\"<unk>\":2,\"<pad>\":3,\"a\":4,\"b\":5,\"\\u0120\":6,\"ab\":7,\"\\u0120a\":8}\n";
static const char small_merges[] = "#version: 0.2\na b\r\n\xC4\xA0 a\n";

static void older_files_make_a_tokenizer(void **state)
{
    (void)state;
    char dir[TMP_PATH];
    lath_error err = {0};
    tok *t;
    arena scratch;
    tok_encoding e = {0};
    tok_encode_options o = {true, true, 0};
    tmp_make(dir);
    arena_init(&scratch, alloc_default());
    tmp_write(dir, "vocab.json", small_vocab);
    assert_int_equal(tok_open_dir(alloc_default(), dir, &t, &err), LATH_ERR_NOT_FOUND); /* without merges.txt */
    tmp_write(dir, "merges.txt", small_merges);
    assert_ok(tok_open_dir(alloc_default(), dir, &t, &err), err);
    assert_ok(tok_encode(t, &scratch, "ab ab<|endoftext|>", 18, &o, &e, &err), err);
    static const int32_t gpt2[] = {7, 6, 7, 9}; /* the special token has the next id */
    assert_int_equal(e.n, 4);
    assert_memory_equal(e.ids, gpt2, sizeof(gpt2));
    tok_encoding_release(t, &e);
    tok_close(t);

    tmp_write(
        dir, "tokenizer_config.json",
        "{\"tokenizer_class\":\"RobertaTokenizerFast\",\"unk_token\":\"<unk>\",\"added_tokens_decoder\":{\"9\":{\"content\":"
        "\"<mask>\",\"lstrip\":true,\"special\":true}}}");
    assert_ok(tok_open_dir(alloc_default(), dir, &t, &err), err);
    assert_ok(tok_encode(t, &scratch, "ab a <mask>", 11, &o, &e, &err), err);
    static const int32_t roberta[] = {0, 7, 8, 9, 1};
    static const uint32_t offsets[] = {0, 0, 0, 2, 3, 4, 5, 11, 0, 0}; /* trimmed, also where the mask took the space */
    assert_int_equal(e.n, 5);
    assert_memory_equal(e.ids, roberta, sizeof(roberta));
    assert_memory_equal(e.offsets, offsets, sizeof(offsets));
    tok_encoding_release(t, &e);
    tok_close(t);

    tmp_write(dir, "tokenizer_config.json",
              "{\"tokenizer_class\":\"GPT2Tokenizer\",\"added_tokens_decoder\":{\"12\":{\"content\":\"<x>\"}}}");
    assert_int_equal(tok_open_dir(alloc_default(), dir, &t, &err), LATH_ERR_FORMAT);
    assert_non_null(strstr(err.msg, "token \"<x>\" does not have id 12"));
    tmp_write(dir, "tokenizer_config.json", "{\"tokenizer_class\":\"WhisperTokenizer\"}");
    assert_int_equal(tok_open_dir(alloc_default(), dir, &t, &err), LATH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "WhisperTokenizer"));
    arena_deinit(&scratch);
    tmp_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_as_defined),
        cmocka_unit_test(cache_keeps_words),
        cmocka_unit_test(threads_share_a_tokenizer),
        cmocka_unit_test(wrong_files_are_named),
        cmocka_unit_test(zero_dropout_and_old_merges_are_fine),
        cmocka_unit_test(a_missing_unknown_token_is_an_error_when_it_is_needed),
        cmocka_unit_test(long_words_take_no_square_time),
        cmocka_unit_test(older_files_make_a_tokenizer),
    };
    return TEST_RUN(tests);
}
