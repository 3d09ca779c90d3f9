/* SPDX-License-Identifier: Apache-2.0
 * test_tok_unigram.c: the Unigram model's trie against a search by hand, what only files can do wrong (cut and damaged
 * SentencePiece files, character maps of noise), memory that runs out, and SentencePiece models against SentencePiece
 * itself (spm/, made by tools/ref/make_spm_goldens.py).
 */
#include "support/test.h"

#include <math.h>

#include "base/file.h"
#include "base/json.h"
#include "tok/tok.h"
#include "tok/tok_darray.h"
#include "tok/tok_spm.h"

static uint32_t rnd(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return (uint32_t)(*s >> 32);
}

/* ------------------------------------------------------------------------------------------------------------- trie */

enum { N_KEYS = 3000, KEY_MOST = 24 };

/* Strings of few letters, many with long common beginnings, some twice, some with 0 bytes. */
static size_t make_key(uint64_t *s, char *to)
{
    size_t n = 0, want = rnd(s) % KEY_MOST;
    if (rnd(s) % 3 == 0) {
        memset(to, 'x', 9);
        n = 9;
    }
    while (n < want) to[n++] = "ab\0c\xE2\x96"[rnd(s) % 6];
    return n;
}

static void trie_finds_what_is_in_it(void **state)
{
    (void)state;
    static char text[N_KEYS][KEY_MOST];
    static tok_darray_key keys[N_KEYS], copy[N_KEYS];
    uint64_t seed = 99;
    lath_error err = {0};
    tok_darray d;
    for (int i = 0; i < N_KEYS; i++) {
        size_t n = make_key(&seed, text[i]);
        copy[i] = keys[i] = (tok_darray_key){text[i], (uint32_t)n, i, (float)i * 0.5f};
    }
    assert_ok(tok_darray_build(&d, alloc_default(), keys, N_KEYS, &err), err);
    for (int i = 0; i < N_KEYS; i++) {
        char other[KEY_MOST];
        const char *s = i % 2 ? copy[i].s : other;
        size_t n = i % 2 ? copy[i].len : make_key(&seed, other);
        int32_t want = -1;
        for (int k = 0; n && k < N_KEYS; k++) {
            if (copy[k].len == n && memcmp(copy[k].s, s, n) == 0) want = k;
        }
        uint32_t node = tok_darray_walk(&d, s, n);
        int32_t got = node ? d.values[node] : -1;
        assert_int_equal(got, want);
        if (got >= 0) assert_true(d.units[node].score == (float)got * 0.5f);
        if (node && got < 0) assert_true(isnan(d.units[node].score));
    }
    tok_darray_deinit(&d);
    assert_ok(tok_darray_build(&d, alloc_default(), keys, 0, &err), err);
    assert_int_equal(tok_darray_walk(&d, "a", 1), 0);
    tok_darray_deinit(&d);
}

/* ---------------------------------------------------------------------------------------------------- sentencepiece */

static void read_model(const char *name, buf *json, buf *file)
{
    char path[1024], base[64];
    lath_error err = {0};
    snprintf(base, sizeof(base), "unit/tok/spm/%s.model", name);
    snprintf(path, sizeof(path), "%s/%s", test_data_dir(), base);
    buf_init(file, alloc_default(), 1 << 24);
    buf_init(json, alloc_default(), 1 << 24);
    assert_ok(file_read(file, path, 1 << 24, &err), err);
    assert_ok(tok_spm_to_json(alloc_default(), name, file->data, file->len, NULL, json, &err), err);
}

static void open_model(const char *name, tok **out)
{
    buf json, file;
    lath_error err = {0};
    read_model(name, &json, &file);
    assert_ok(tok_open_json(alloc_default(), name, json.data, json.len, out, &err), err);
    buf_deinit(&json);
    buf_deinit(&file);
}

static void check_line(const json_value *v, tok *t, arena *scratch, tok_encoding *e, uint32_t line)
{
    lath_error err = {0};
    const json_value *text = json_get(v, "text"), *want = json_get(v, "ids")->u.items.first;
    tok_encode_options o = {true, true, 0};
    arena_reset(scratch);
    assert_ok(tok_encode(t, scratch, text->u.string.data, text->u.string.len, &o, e, &err), err);
    size_t i = 0;
    for (; want; want = want->next, i++) {
        if (i >= e->n || e->ids[i] != want->u.integer) fail_msg("line %u: id %zu differs", line, i);
    }
    if (i != e->n) fail_msg("line %u: %zu ids, want %zu", line, e->n, i);
}

static void sentencepiece_models(void **state)
{
    (void)state;
    char path[1024], current[64] = "";
    lath_error err = {0};
    buf file;
    arena tree, scratch;
    tok *t = NULL;
    tok_encoding e = {0};
    uint32_t line = 0, models = 0;
    snprintf(path, sizeof(path), "%s/unit/tok/spm/spm.jsonl", test_data_dir());
    buf_init(&file, alloc_default(), 1 << 24);
    assert_ok(file_read(&file, path, 1 << 24, &err), err);
    arena_init(&tree, alloc_default());
    arena_init(&scratch, alloc_default());
    for (size_t i = 0; i < file.len;) {
        const char *s = file.data + i, *end = memchr(s, '\n', file.len - i);
        json_value *v;
        line++;
        arena_reset(&tree);
        assert_ok(json_parse(&tree, path, s, (size_t)(end - s), NULL, &v, &err), err);
        i += (size_t)(end - s) + 1;
        const char *name = json_get(v, "model")->u.string.data;
        if (strcmp(name, current) != 0) {
            if (t) tok_encoding_release(t, &e);
            tok_close(t);
            open_model(name, &t);
            snprintf(current, sizeof(current), "%s", name);
            models++;
        }
        check_line(v, t, &scratch, &e, line);
    }
    assert_true(models == 7 && line > 1000);
    tok_encoding_release(t, &e);
    tok_close(t);
    arena_deinit(&scratch);
    arena_deinit(&tree);
    buf_deinit(&file);
}

/* Cut anywhere, or with bytes changed: an error or a tokenizer, never more. */
static void damaged_models(void **state)
{
    (void)state;
    buf json, file;
    uint64_t seed = 5;
    read_model("unigram", &json, &file);
    for (size_t i = 0; i < 3000; i++) {
        lath_error err = {0};
        tok *t = NULL;
        size_t n = i < file.len ? i : file.len;
        char *copy = malloc(n ? n : 1);
        assert_non_null(copy);
        memcpy(copy, file.data, n);
        if (i >= file.len) copy[rnd(&seed) % n] ^= (char)(1 + rnd(&seed) % 255);
        buf_clear(&json);
        lath_status st = tok_spm_to_json(alloc_default(), "m", copy, n, NULL, &json, &err);
        if (st == LATH_OK) st = tok_open_json(alloc_default(), "m", json.data, json.len, &t, &err);
        if (st != LATH_OK && st != LATH_ERR_FORMAT && st != LATH_ERR_UNSUPPORTED)
            fail_msg("case %zu: status %d: %s", i, (int)st, err.msg);
        tok_close(t);
        free(copy);
    }
    buf_deinit(&json);
    buf_deinit(&file);
}

static void config_says_what_is_added(void **state)
{
    (void)state;
    static const char text[] = "{\"tokenizer_class\":\"LlamaTokenizer\",\"add_eos_token\":true}";
    buf json, file, out;
    lath_error err = {0};
    arena tree;
    json_value *config;
    tok *t;
    arena_init(&tree, alloc_default());
    read_model("unigram", &json, &file);
    assert_ok(json_parse(&tree, "c", text, strlen(text), NULL, &config, &err), err);
    buf_init(&out, alloc_default(), 1 << 20);
    assert_ok(tok_spm_to_json(alloc_default(), "m", file.data, file.len, config, &out, &err), err);
    assert_ok(tok_open_json(alloc_default(), "m", out.data, out.len, &t, &err), err);
    assert_int_equal(tok_n_template(t), 2);
    assert_true(tok_is_special(t, 0) && tok_is_special(t, 1) && tok_is_special(t, 2) && !tok_is_special(t, 3));
    tok_close(t);
    buf_deinit(&out);
    buf_deinit(&json);
    buf_deinit(&file);
    arena_deinit(&tree);
}

/* ------------------------------------------------------------------------------------------------------------ errors */

static void unknown_without_unk(void **state)
{
    (void)state;
    static const char json[] = "{\"model\":{\"type\":\"Unigram\",\"unk_id\":null,\"vocab\":[[\"a\",-1.5]]}}";
    static const char words[] = "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"?\",\"vocab\":{\"a\":0}}}";
    const char *files[] = {json, words};
    for (int i = 0; i < 2; i++) {
        lath_error err = {0};
        tok *t;
        arena scratch;
        tok_encoding e = {0};
        tok_encode_options o = {true, true, 0};
        arena_init(&scratch, alloc_default());
        assert_ok(tok_open_json(alloc_default(), "t", files[i], strlen(files[i]), &t, &err), err);
        assert_ok(tok_encode(t, &scratch, "a", 1, &o, &e, &err), err);
        assert_int_equal(e.n, 1);
        assert_int_equal(tok_encode(t, &scratch, "b", 1, &o, &e, &err), LATH_ERR_INPUT);
        tok_encoding_release(t, &e);
        tok_close(t);
        arena_deinit(&scratch);
    }
}

typedef struct starved {
    long left;
} starved;

static void *starved_alloc(void *ctx, size_t size, size_t align)
{
    starved *s = ctx;
    return s->left-- > 0 ? alloc_default()->alloc(NULL, size, align) : NULL;
}

static void *starved_resize(void *ctx, void *p, size_t old_size, size_t size, size_t align)
{
    starved *s = ctx;
    return s->left-- > 0 ? alloc_default()->resize(NULL, p, old_size, size, align) : NULL;
}

static void starved_release(void *ctx, void *p, size_t size)
{
    (void)ctx;
    alloc_default()->release(NULL, p, size);
}

static void out_of_memory(void **state)
{
    (void)state;
    buf json, file;
    bool done = false;
    long k = 0;
    read_model("unigram_bytes", &json, &file);
    for (; !done && k < 4000; k++) {
        starved s = {k};
        lath_allocator a = {&s, starved_alloc, starved_resize, starved_release};
        lath_error err = {0};
        tok *t = NULL;
        arena scratch;
        buf again, text;
        tok_encoding e = {0};
        tok_encode_options o = {true, true, 0};
        arena_init(&scratch, &a);
        buf_init(&again, &a, 1 << 24);
        buf_init(&text, &a, 1 << 20);
        lath_status st = tok_spm_to_json(&a, "m", file.data, file.len, NULL, &again, &err);
        if (st == LATH_OK) st = tok_open_json(&a, "m", again.data, again.len, &t, &err);
        if (st == LATH_OK) st = tok_encode(t, &scratch, "the cat\xE2\x80\xA6 \xE4\xB8\xAD", 14, &o, &e, &err);
        if (st == LATH_OK) st = tok_decode(t, e.ids, e.n, false, &text, &err);
        done = st == LATH_OK;
        if (!done) assert_int_equal(st, LATH_ERR_NOMEM);
        if (t) tok_encoding_release(t, &e);
        tok_close(t);
        buf_deinit(&text);
        buf_deinit(&again);
        arena_deinit(&scratch);
    }
    assert_true(done);
    assert_true(k > 20);
    buf_deinit(&json);
    buf_deinit(&file);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(trie_finds_what_is_in_it), cmocka_unit_test(sentencepiece_models),
    cmocka_unit_test(damaged_models),           cmocka_unit_test(config_says_what_is_added),
    cmocka_unit_test(unknown_without_unk),      cmocka_unit_test(out_of_memory),
};
TEST_MAIN(tests)
