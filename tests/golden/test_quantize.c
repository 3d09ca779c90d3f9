/* SPDX-License-Identifier: Apache-2.0
 *
 * test_quantize.c: files of lath_quantize against those of llama.cpp's converter (quantize/NAME.TYPE.gguf by tools/ref/make_quantize_goldens.py): the
 * same tensors, types, shapes and bytes, and every key that the converter writes with its value. What lath writes besides is listed here. Then: the
 * written file is the same model for lath, ids of its tokenizer those of the directory's, and bytes the same at any number of threads.
 */
#include <math.h>
#include <unistd.h>

#include "engine/engine.h"
#include "lath/lath.h"
#include "store/gguf.h"
#include "support/test.h"
#include "support/tmpdir.h"

static const struct {
    const char *dir, *name, *type_name;
    lath_gguf_type type;
} cases[] = {
    {"quantize", "llama_blocks", "q8_0", LATH_GGUF_Q8_0},
    {"quantize", "gemma2_blocks", "q8_0", LATH_GGUF_Q8_0},
    {"quantize", "gemma3_blocks", "q8_0", LATH_GGUF_Q8_0},
    {"decoder", "llama3_scaling_tied", "f16", LATH_GGUF_F16},
    {"decoder", "llama_linear_biases", "f32", LATH_GGUF_F32},
    {"decoder", "mistral_plain_tied", "bf16", LATH_GGUF_BF16},
    {"decoder", "qwen2_tied", "q8_0", LATH_GGUF_Q8_0},
    {"decoder", "qwen3_yarn_tied", "f16", LATH_GGUF_F16},
    {"decoder", "phi3_longrope", "f32", LATH_GGUF_F32},
    {"decoder", "qwen3_moe", "bf16", LATH_GGUF_BF16},
    {"quantize", "qwen3_5_blocks", "q8_0", LATH_GGUF_Q8_0},
    {"quantize", "qwen3_5_moe_blocks", "q8_0", LATH_GGUF_Q8_0},
    {"quantize", "qwen3_next_blocks", "q8_0", LATH_GGUF_Q8_0},
};
enum { N_CASES = sizeof(cases) / sizeof(cases[0]) };

static lath_runtime *runtime(int threads)
{
    lath_runtime *rt;
    lath_error err;
    lath_runtime_options o = LATH_RUNTIME_OPTIONS_INIT;
    o.n_threads = threads;
    assert_ok(lath_runtime_create(&o, &rt, &err), err);
    return rt;
}

static void write_file(lath_runtime *rt, const char *dir, const char *path, lath_gguf_type type,
                       lath_quantize_result *r)
{
    lath_error err;
    lath_quantize_options o = LATH_QUANTIZE_OPTIONS_INIT;
    *r = (lath_quantize_result)LATH_QUANTIZE_RESULT_INIT;
    o.type = type;
    assert_ok(lath_quantize(rt, dir, path, &o, r, &err), err);
}

static void source_of(size_t i, char out[TMP_PATH])
{
    snprintf(out, TMP_PATH, "%s/golden/%s/%s", test_data_dir(), cases[i].dir, cases[i].name);
}

/* ------------------------------------------------------------------------------------------------- beside the converter */

static void compare_tensors(const gguf *ours, const gguf *theirs, const char *name)
{
    if (gguf_n_tensors(ours) != gguf_n_tensors(theirs))
        fail_msg("%s: %zu tensors, want %zu", name, gguf_n_tensors(ours), gguf_n_tensors(theirs));
    for (size_t i = 0; i < gguf_n_tensors(theirs); i++) {
        const gguf_tensor *want = gguf_tensor_at(theirs, i), *got = gguf_find(ours, want->name);
        if (!got) fail_msg("%s: no tensor \"%s\"", name, want->name);
        bool same = got->type == want->type && got->rank == want->rank && got->bytes == want->bytes;
        for (int k = 0; k < GGUF_MAX_RANK; k++) same = same && got->dim[k] == want->dim[k];
        if (!same) fail_msg("%s: tensor \"%s\": another type or shape", name, want->name);
        /* The converter computes these in other steps, or with another exp: a rounding apart. */
        const bool near =
            strcmp(want->name, "rope_freqs.weight") == 0 || strcmp(strrchr(want->name, '.'), ".ssm_a") == 0;
        for (size_t k = 0; near && k < got->bytes; k += 4) {
            float a, b;
            assert_int_equal(want->type, DTYPE_F32);
            memcpy(&a, got->data + k, 4);
            memcpy(&b, want->data + k, 4);
            assert_true(fabsf(a - b) <= 1e-6f * fabsf(b));
        }
        if (!near && memcmp(got->data, want->data, got->bytes) != 0)
            fail_msg("%s: tensor \"%s\": other bytes", name, want->name);
    }
}

static bool same_value(const gguf_value *a, const gguf_value *b)
{
    int64_t x, y;
    if (a->kind == GGUF_STRING)
        return b->kind == GGUF_STRING && a->as.text.len == b->as.text.len &&
               memcmp(a->as.text.data, b->as.text.data, a->as.text.len) == 0;
    if (a->kind == GGUF_ARRAY) {
        bool same =
            b->kind == GGUF_ARRAY && a->as.array.kind == b->as.array.kind && a->as.array.count == b->as.array.count;
        const uint8_t *i = a->as.array.data, *k = same ? b->as.array.data : NULL;
        for (uint64_t n = 0; same && n < a->as.array.count; n++) {
            const gguf_value v = gguf_next(a, &i), w = gguf_next(b, &k);
            same = same_value(&v, &w);
        }
        return same;
    }
    if (a->kind == GGUF_F32) return b->kind == GGUF_F32 && fabs(a->as.f - b->as.f) <= 1e-6 * fabs(b->as.f);
    return gguf_whole(a, INT32_MAX, &x) && gguf_whole(b, INT32_MAX, &y) && x == y && a->kind == b->kind;
}

/* The converter says these of the folder's name or of the whole model. */
static bool is_about(const char *key)
{
    static const char *const keys[] = {"general.name", "general.basename", "general.finetune", "general.size_label",
                                       "general.version"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(key, keys[i]) == 0) return true;
    return strncmp(key, "tokenizer.", 10) == 0;
}

static void compare_keys(const gguf *ours, const gguf *theirs, const char *name)
{
    /* What readers take for granted, or what the converter leaves out although it counts (the pattern of Gemma's layers). */
    static const char *const more[] = {"vocab_size",
                                       "rope.dimension_count",
                                       "rope.freq_base",
                                       "attention.key_length",
                                       "attention.value_length",
                                       "rope.scaling.type",
                                       "attention.sliding_window_pattern",
                                       "rope.freq_base_swa"};
    for (size_t i = 0; i < gguf_n_keys(theirs); i++) {
        const gguf_value *want = gguf_key_at(theirs, i), *got = gguf_get(ours, want->key);
        if (is_about(want->key)) continue;
        if (!got && strstr(want->key, "sliding_window") && want->as.u == 0) continue; /* there is none */
        if (!got || !same_value(got, want))
            fail_msg("%s: key \"%s\": %s", name, want->key, got ? "another value" : "is missing");
    }
    for (size_t i = 0; i < gguf_n_keys(ours); i++) {
        const char *key = gguf_key_at(ours, i)->key, *dot = strchr(key, '.');
        bool known = gguf_get(theirs, key) || is_about(key) || strcmp(key, "general.alignment") == 0;
        for (size_t k = 0; k < sizeof(more) / sizeof(more[0]); k++) known = known || strcmp(dot + 1, more[k]) == 0;
        if (!known) fail_msg("%s: key \"%s\": the converter does not write it", name, key);
    }
}

static void test_converter(void **state)
{
    (void)state;
    char dir[TMP_PATH], source[TMP_PATH], path[TMP_PATH], want[TMP_PATH];
    lath_runtime *rt = runtime(2);
    lath_quantize_result r;
    tmp_make(dir);
    tmp_join(path, dir, "model.gguf");
    for (size_t i = 0; i < N_CASES; i++) {
        lath_error err;
        gguf *ours, *theirs;
        source_of(i, source);
        snprintf(want, sizeof(want), "%s/golden/quantize/%s.%s.gguf", test_data_dir(), cases[i].name,
                 cases[i].type_name);
        write_file(rt, source, path, cases[i].type, &r);
        assert_ok(gguf_open(alloc_default(), path, FILE_MAP, &ours, &err), err);
        assert_ok(gguf_open(alloc_default(), want, FILE_MAP, &theirs, &err), err);
        assert_int_equal(r.bytes, gguf_file(ours)->size);
        assert_int_equal(r.n_tensors, gguf_n_tensors(ours));
        compare_tensors(ours, theirs, cases[i].name);
        compare_keys(ours, theirs, cases[i].name);
        gguf_close(ours);
        gguf_close(theirs);
    }
    lath_runtime_destroy(rt);
    tmp_remove(dir);
}

/* ---------------------------------------------------------------------------------------------------- the same for lath */

enum { N_TEXTS = 9, N_KNOWN = 5 };

/* Of tokenizers without bytes the first `n` texts: unknown characters side by side are one token in the file. */
static void same_ids(lath_runtime *rt, const char *a, const char *b, size_t n)
{
    static const char *const texts[N_TEXTS] = {"",
                                               "hello world",
                                               " two  spaces ",
                                               "</s> not <s>",
                                               "aa\xC3\xA9",
                                               "caf\xC3\xA9 \xE6\x9D\xB1\xE4\xBA\xAC",
                                               "a\nb\tc",
                                               "it's 3.14 <|im_start|>x<|im_end|>\r\n\r\n  y",
                                               "\xF0\x9F\x98\x80!"};
    lath_tokenizer *x, *y;
    lath_error err;
    lath_tokens s = {0}, t = {0};
    assert_ok(lath_tokenizer_open(rt, a, &x, &err), err);
    assert_ok(lath_tokenizer_open(rt, b, &y, &err), err);
    for (size_t i = 0; i < n; i++) {
        const lath_text text = {texts[i], strlen(texts[i])};
        assert_ok(lath_encode(x, text, NULL, &s, &err), err);
        assert_ok(lath_encode(y, text, NULL, &t, &err), err);
        if (s.n != t.n || (s.n && memcmp(s.ids, t.ids, s.n * sizeof(*s.ids)) != 0))
            fail_msg("%s: text %zu: other ids", a, i);
    }
    lath_tokens_release(&s);
    lath_tokens_release(&t);
    lath_tokenizer_close(x);
    lath_tokenizer_close(y);
}

static void same_bytes(const char *dir, const char *a, const char *b)
{
    size_t n, m;
    char *x = tmp_read(dir, a, &n), *y = tmp_read(dir, b, &m);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    free(x), free(y);
}

static void test_same_model(void **state)
{
    (void)state;
    static const lath_gguf_type types[] = {LATH_GGUF_F32, LATH_GGUF_Q4_0, LATH_GGUF_Q4_K, LATH_GGUF_Q6_K};
    char dir[TMP_PATH], source[TMP_PATH], one[TMP_PATH], three[TMP_PATH];
    lath_runtime *rt = runtime(1), *rt3 = runtime(3);
    lath_quantize_result r;
    lath_error err;
    tmp_make(dir);
    tmp_join(one, dir, "one.gguf");
    tmp_join(three, dir, "three.gguf");
    for (size_t i = 0; i < N_CASES; i++) {
        lath_model *model;
        lath_model_info info = {.struct_size = sizeof(info)}, written = {.struct_size = sizeof(written)};
        source_of(i, source);
        write_file(rt, source, one, types[i % 4], &r);
        write_file(rt3, source, three, types[i % 4], &r);
        same_bytes(dir, "one.gguf", "three.gguf");
        same_ids(rt, source, one, N_KNOWN);
        assert_ok(lath_model_open(rt, source, NULL, &model, &err), err);
        assert_ok(lath_model_get_info(model, &info, &err), err);
        const int32_t layers = info.n_layers, vocab = info.vocab_size, tokens = info.max_tokens;
        lath_model_close(model);
        assert_ok(lath_model_open(rt, one, NULL, &model, &err), err);
        assert_ok(lath_model_get_info(model, &written, &err), err);
        assert_int_equal(written.n_layers, layers);
        assert_int_equal(written.vocab_size, vocab);
        assert_int_equal(written.max_tokens, tokens);
        assert_int_equal(written.n_unused, 0);
        lath_model_close(model);
    }
    lath_runtime_destroy(rt);
    lath_runtime_destroy(rt3);
    tmp_remove(dir);
}

/* Byte letters, split by the pattern that has the name qwen2; and how the model pools. */
static void test_bytes(void **state)
{
    (void)state;
    char dir[TMP_PATH], source[TMP_PATH], path[TMP_PATH];
    lath_runtime *rt = runtime(2);
    lath_quantize_result r;
    lath_error err;
    gguf *g;
    tmp_make(dir);
    tmp_join(path, dir, "model.gguf");
    snprintf(source, sizeof(source), "%s/golden/qwen3/embedding_old", test_data_dir());
    write_file(rt, source, path, LATH_GGUF_F16, &r);
    same_ids(rt, source, path, N_TEXTS);
    assert_ok(gguf_open(alloc_default(), path, FILE_MAP, &g, &err), err);
    const gguf_value *pre = gguf_get(g, "tokenizer.ggml.pre");
    assert_true(pre && pre->as.text.len == 5 && memcmp(pre->as.text.data, "qwen2", 5) == 0);
    assert_int_equal(gguf_get(g, "qwen3.pooling_type")->as.u, 3);
    gguf_close(g);
    lath_runtime_destroy(rt);
    tmp_remove(dir);
}

/* All tokens that end a text for the directory do so for the file. */
static void test_ends(void **state)
{
    (void)state;
    char dir[TMP_PATH], source[TMP_PATH], path[TMP_PATH];
    lath_runtime *rt = runtime(1);
    lath_quantize_result r;
    lath_model *model;
    lath_error err;
    int32_t n;
    source_of(0, source);
    tmp_copy(dir, source);
    tmp_write(dir, "generation_config.json", "{\"eos_token_id\":[2,7,9]}");
    tmp_join(path, dir, "model.gguf");
    write_file(rt, dir, path, LATH_GGUF_BF16, &r);
    assert_ok(lath_model_open(rt, path, NULL, &model, &err), err);
    const int32_t *ids = model_end_ids(model, &n);
    assert_int_equal(n, 3);
    assert_true(ids[0] == 2 && ids[1] == 7 && ids[2] == 9);
    lath_model_close(model);
    lath_runtime_destroy(rt);
    tmp_remove(dir);
}

typedef struct ticks {
    size_t last, total;
    int calls, stop_at;
} ticks;

static int on_tick(void *ctx, size_t done, size_t total)
{
    ticks *t = ctx;
    assert_true(done >= t->last && done <= total && (t->total == 0 || t->total == total));
    t->last = done;
    t->total = total;
    return ++t->calls == t->stop_at;
}

/* Progress rises to the end; a callback that says stop ends the call, and nothing is left; arguments are checked. */
static void test_calls(void **state)
{
    (void)state;
    char dir[TMP_PATH], source[TMP_PATH], path[TMP_PATH];
    lath_runtime *rt = runtime(2);
    lath_error err;
    ticks t = {0};
    lath_quantize_options o = LATH_QUANTIZE_OPTIONS_INIT;
    lath_quantize_result r = LATH_QUANTIZE_RESULT_INIT;
    tmp_make(dir);
    tmp_join(path, dir, "model.gguf");
    source_of(0, source);
    o.progress = on_tick;
    o.progress_ctx = &t;
    assert_ok(lath_quantize(rt, source, path, &o, &r, &err), err);
    assert_int_equal(t.calls, r.n_tensors); /* all are small */
    assert_true(t.total == r.bytes / 1000 && t.last + 5 >= t.total);
    assert_string_equal(r.architecture, "llama");
    assert_ok(lath_quantize(rt, source, path, NULL, NULL, &err), err);
    assert_int_equal(unlink(path), 0);
    t = (ticks){.stop_at = 7};
    assert_int_equal(lath_quantize(rt, source, path, &o, NULL, &err), LATH_ERR_INTERRUPTED);
    assert_int_equal(t.calls, 7);
    assert_int_equal(lath_quantize(NULL, source, path, NULL, NULL, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_quantize(rt, NULL, path, NULL, NULL, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_quantize(rt, source, NULL, NULL, NULL, &err), LATH_ERR_USAGE);
    o.type = (lath_gguf_type)7;
    assert_int_equal(lath_quantize(rt, source, path, &o, NULL, &err), LATH_ERR_USAGE);
    o.type = (lath_gguf_type)-1;
    assert_int_equal(lath_quantize(rt, source, path, &o, NULL, &err), LATH_ERR_USAGE);
    o.struct_size = 1;
    assert_int_equal(lath_quantize(rt, source, path, &o, NULL, &err), LATH_ERR_USAGE);
    r.struct_size = 1;
    assert_int_equal(lath_quantize(rt, source, path, NULL, &r, &err), LATH_ERR_USAGE);
    lath_runtime_destroy(rt);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_converter), cmocka_unit_test(test_same_model),
                                       cmocka_unit_test(test_bytes), cmocka_unit_test(test_ends),
                                       cmocka_unit_test(test_calls)};
    return TEST_RUN(tests);
}
