/* SPDX-License-Identifier: Apache-2.0
 * test_real_arrays.c: GGUF arrays made out of real tokenizer.json files give the ids that those files give (which
 * tools/ref/check_tokenizers.py compares with the reference). Needs the models (LATH_MODELS); those that are absent are
 * left out, all of them absent is a skip.
 */
#include "support/test.h"

#include "base/file.h"
#include "base/json.h"
#include "tok/tok.h"

enum { JSON_MOST = 1 << 30 };

typedef struct made {
    arena mem;
    json_value *root;
    tok_arrays a;
    tok_string *tokens;
    int32_t *types;
    float *scores;
    tok *from_file, *from_arrays;
    lath_error err;
} made;

static const json_value *model_of(const made *m) { return json_get(m->root, "model"); }

static bool is_byte_token(tok_string s) { return s.n == 6 && memcmp(s.s, "<0x", 3) == 0 && s.s[5] == '>'; }

/* Tokens by id, of the vocabulary and the added ones; types: control for special ones, user defined for the others. */
static void fill_tokens(made *m, const char *unk, bool byte_tokens)
{
    size_t n = (size_t)tok_size(m->from_file);
    m->tokens = arena_zero(&m->mem, n * sizeof(*m->tokens));
    m->types = arena_zero(&m->mem, n * sizeof(*m->types));
    m->scores = arena_zero(&m->mem, n * sizeof(*m->scores));
    assert_true(m->tokens && m->types && m->scores);
    for (size_t id = 0; id < n; id++) {
        m->tokens[id].s = tok_token(m->from_file, (int32_t)id, &m->tokens[id].n);
        assert_non_null(m->tokens[id].s);
        m->types[id] = byte_tokens && is_byte_token(m->tokens[id]) ? 6 : 1;
    }
    for (const json_value *v = json_get(m->root, "added_tokens")->u.items.first; v; v = v->next) {
        int64_t id = json_get(v, "id")->u.integer;
        m->types[id] = !json_get(v, "special")->u.boolean ? 4 : json_is_string(json_get(v, "content"), unk) ? 2 : 3;
    }
    m->a.n = n;
    m->a.tokens = m->tokens;
    m->a.types = m->types;
    m->a.scores = m->scores;
    m->a.unk = tok_id(m->from_file, unk, strlen(unk));
}

static tok_string joined_merge(made *m, const json_value *v)
{
    if (v->kind == JSON_STRING) return (tok_string){v->u.string.data, v->u.string.len};
    const json_value *l = v->u.items.first, *r = l->next;
    size_t n = l->u.string.len + 1 + r->u.string.len;
    char *s = arena_bytes(&m->mem, n, 1);
    assert_non_null(s);
    memcpy(s, l->u.string.data, l->u.string.len);
    s[l->u.string.len] = ' ';
    memcpy(s + l->u.string.len + 1, r->u.string.data, r->u.string.len);
    return (tok_string){s, n};
}

static void make_gpt2(made *m)
{
    const json_value *list = json_get(model_of(m), "merges");
    tok_string *merges = arena_zero(&m->mem, list->u.items.count * sizeof(*merges));
    size_t n = 0;
    assert_non_null(merges);
    for (const json_value *v = list->u.items.first; v; v = v->next) merges[n++] = joined_merge(m, v);
    m->a.kind = "gpt2";
    m->a.merges = merges;
    m->a.n_merges = n;
}

static void make_qwen(made *m)
{
    fill_tokens(m, "", false);
    make_gpt2(m);
    m->a.pre = "qwen2";
}

static void make_llama3(made *m)
{
    fill_tokens(m, "", false);
    make_gpt2(m);
    m->a.pre = "llama-bpe";
    m->a.bos = tok_id(m->from_file, "<|begin_of_text|>", 17);
}

/* Scores as SentencePiece gives them: minus the place of the first merge that makes the piece. */
static void make_gemma(made *m)
{
    fill_tokens(m, "<unk>", true);
    int64_t rank = 0;
    for (const json_value *v = json_get(model_of(m), "merges")->u.items.first; v; v = v->next, rank++) {
        tok_string s = joined_merge(m, v);
        char text[1024];
        size_t n = 0;
        const char *space = memchr(s.s + 1, ' ', s.n - 1);
        assert_true(space && s.n < sizeof(text));
        for (size_t i = 0; i < s.n; i++) {
            if (s.s + i != space) text[n++] = s.s[i];
        }
        int32_t id = tok_id(m->from_file, text, n);
        assert_true(id >= 0);
        if (m->scores[id] == 0) m->scores[id] = -(float)(rank + 1);
    }
    for (size_t i = 0; i < m->a.n; i++) {
        if (m->scores[i] == 0) m->scores[i] = -1e9f; /* characters: no merge makes them */
    }
    m->a.kind = "llama";
    m->a.bos = tok_id(m->from_file, "<bos>", 5);
    m->a.add_space_prefix = 0;
}

/* The file's pieces with U+2581 before words and nothing before the rest, except tokens in brackets. */
static void make_bert(made *m)
{
    fill_tokens(m, "[UNK]", false);
    for (size_t i = 0; i < m->a.n; i++) {
        tok_string s = m->tokens[i];
        if (s.n > 1 && s.s[0] == '[' && s.s[s.n - 1] == ']') continue;
        if (s.n > 2 && memcmp(s.s, "##", 2) == 0) {
            m->tokens[i] = (tok_string){s.s + 2, s.n - 2};
            continue;
        }
        char *p = arena_bytes(&m->mem, s.n + 3, 1);
        assert_non_null(p);
        memcpy(p, "\xE2\x96\x81", 3);
        memcpy(p + 3, s.s, s.n);
        m->tokens[i] = (tok_string){p, s.n + 3};
    }
    m->a.kind = "bert";
    m->a.bos = tok_id(m->from_file, "[CLS]", 5);
    m->a.sep = tok_id(m->from_file, "[SEP]", 5);
}

/* -------------------------------------------------------------------------------------------------------- comparing */

static size_t compare_texts(made *m)
{
    buf texts;
    char path[4096];
    arena tree, scratch;
    tok_encoding want = {0}, got = {0};
    size_t n_texts = 0;
    static const tok_encode_options o = {true, true, 0};
    snprintf(path, sizeof(path), "%s/golden/tok/wordpiece_uncased.jsonl", test_data_dir());
    buf_init(&texts, alloc_default(), 1 << 24);
    arena_init(&tree, alloc_default());
    arena_init(&scratch, alloc_default());
    assert_ok(file_read(&texts, path, 1 << 24, &m->err), m->err);
    for (size_t i = 0; i < texts.len; n_texts++) {
        const char *line = texts.data + i, *end = memchr(line, '\n', texts.len - i);
        size_t n = end ? (size_t)(end - line) : texts.len - i;
        json_value *v;
        i += n + 1;
        arena_reset(&tree);
        arena_reset(&scratch);
        assert_ok(json_parse(&tree, "texts", line, n, NULL, &v, &m->err), m->err);
        const json_value *text = json_get(v, "text");
        assert_ok(tok_encode(m->from_file, &scratch, text->u.string.data, text->u.string.len, &o, &want, &m->err),
                  m->err);
        assert_ok(tok_encode(m->from_arrays, &scratch, text->u.string.data, text->u.string.len, &o, &got, &m->err),
                  m->err);
        if (want.n != got.n || memcmp(want.ids, got.ids, want.n * sizeof(*want.ids)) != 0)
            fail_msg("text %zu: \"%s\": ids differ", n_texts, text->u.string.data);
        assert_memory_equal(want.offsets, got.offsets, 2 * want.n * sizeof(*want.offsets));
    }
    tok_encoding_release(m->from_file, &want);
    tok_encoding_release(m->from_arrays, &got);
    arena_deinit(&scratch);
    arena_deinit(&tree);
    buf_deinit(&texts);
    return n_texts;
}

static int n_models;

static void check_model(const char *name, void (*make)(made *))
{
    made m = {.a = TOK_ARRAYS_INIT};
    char path[4096];
    json_options big = {.max_bytes = JSON_MOST};
    snprintf(path, sizeof(path), "%s/%s/tokenizer.json", test_models_dir(), name);
    if (!file_is_regular(path)) {
        printf("    %s is absent\n", name);
        return;
    }
    path[strlen(path) - strlen("/tokenizer.json")] = 0;
    assert_ok(tok_open_dir(alloc_default(), path, &m.from_file, &m.err), m.err);
    strcat(path, "/tokenizer.json");
    arena_init(&m.mem, alloc_default());
    assert_ok(json_load(&m.mem, path, &big, &m.root, &m.err), m.err);
    make(&m);
    assert_ok(tok_open_arrays(alloc_default(), name, &m.a, &m.from_arrays, &m.err), m.err);
    size_t n = compare_texts(&m);
    assert_true(n > 500);
    printf("    %-24s %zu texts\n", name, n);
    tok_close(m.from_arrays);
    tok_close(m.from_file);
    arena_deinit(&m.mem);
    n_models++;
}

static void test_models(void **state)
{
    (void)state;
    check_model("all-MiniLM-L6-v2", make_bert);
    check_model("tokenizer-qwen3", make_qwen);
    check_model("tokenizer-llama3_1", make_llama3);
    check_model("tokenizer-gemma3", make_gemma);
    assert_true(n_models > 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_models)};
    if (!test_models_dir()) return test_skip("LATH_MODELS is not set");
    return TEST_RUN(tests);
}
