/* SPDX-License-Identifier: Apache-2.0
 * test_embed_api.c: the embedder's contract: options that are refused, errors that name the text, interruption,
 * windows, prompts, what a model says about itself; and that many threads share one model. The numbers themselves
 * are compared with the reference in tests/golden. */
#include <math.h>
#include <pthread.h>
#include <stdbool.h>

#include "lath/lath.h"
#include "support/test.h"
#include "support/tmpdir.h"

enum { D = 30, WIDE = 64 }; /* numbers of a vector of the plain model; room for any golden model's */

static lath_error err;
static lath_runtime *rt;
static lath_model *model;

static lath_model *open_model(const char *name)
{
    char path[TMP_PATH];
    lath_model *m = NULL;
    tmp_join(path, test_data_dir(), name);
    assert_ok(lath_model_open(rt, path, NULL, &m, &err), err);
    return m;
}

static int setup(void **state)
{
    lath_runtime_options o = LATH_RUNTIME_OPTIONS_INIT;
    (void)state;
    o.n_threads = 2;
    assert_ok(lath_runtime_create(&o, &rt, &err), err);
    model = open_model("golden/bert/mean_norm_gelu");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    lath_model_close(model);
    lath_runtime_destroy(rt);
    return 0;
}

#define TEXT(s)          \
    {                    \
        s, sizeof(s) - 1 \
    }
static const lath_text texts[] = {
    TEXT("The green river runs."),
    TEXT(""),
    TEXT("water"),
    TEXT("Small houses by the old river, 12 miles."),
    TEXT("One day a young woman from the white mountain house walked"),
    TEXT("caf\xC3\xA9 \xE4\xB8\xAD"),
};
enum { N = sizeof(texts) / sizeof(texts[0]) };

static lath_embedder *make(const lath_model *m, const lath_embed_options *o)
{
    lath_embedder *e = NULL;
    assert_ok(lath_embedder_create(m, o, &e, &err), err);
    return e;
}

static void refuse(const lath_model *m, const lath_embed_options *o, lath_status want, const char *part)
{
    lath_embedder *e = NULL;
    lath_status st = lath_embedder_create(m, o, &e, &err);
    if (st != want || !strstr(err.msg, part))
        fail_msg("status %d (%s), want %d (%s)", (int)st, st ? err.msg : "", (int)want, part);
    assert_int_equal(err.status, want);
    assert_null(e);
    assert_int_equal(lath_embedder_create(m, o, &e, NULL), want);
}

/* ---------------------------------------------------------------------------------------------------------- options */

static void test_options(void **state)
{
    static const lath_embed_options init = LATH_EMBED_OPTIONS_INIT;
    lath_embed_options o = init;
    lath_embedder *e = NULL;
    (void)state;
    assert_int_equal(lath_embedder_create(NULL, NULL, &e, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_embedder_create(model, NULL, NULL, &err), LATH_ERR_USAGE);
    static const size_t sizes[] = {0, sizeof(o) - 1, sizeof(o) + 8};
    for (int i = 0; i < 3; i++) {
        o.struct_size = sizes[i];
        refuse(model, &o, LATH_ERR_USAGE, "version");
    }
    static const int poolings[] = {-1, LATH_POOLING_CONCAT, 8, 1000};
    for (int i = 0; i < 4; i++) {
        o = init;
        o.pooling = (lath_pooling)poolings[i];
        refuse(model, &o, LATH_ERR_USAGE, "pooling: no such value: ");
    }
    static const int32_t three[][3] = {{-1, -1, -1}, {3, D + 1, (1 << 20) + 1}, {100, INT32_MAX, INT32_MAX}};
    for (int i = 0; i < 3; i++) {
        o = init;
        o.normalize = three[i][0];
        refuse(model, &o, LATH_ERR_USAGE, "normalize: ");
        o = init;
        o.dim = three[i][1];
        refuse(model, &o, LATH_ERR_USAGE, "dim: ");
        o = init;
        o.batch_tokens = three[i][2];
        refuse(model, &o, LATH_ERR_USAGE, "batch tokens: ");
    }
    o = init;
    o.dim = D + 1;
    refuse(model, &o, LATH_ERR_USAGE, "dim: 31, the model's vectors have 30");
    static const int32_t windows[] = {-1, 1,   2,
                                      41, 512, INT32_MAX}; /* the template takes 2 tokens, the model has 40 positions */
    for (int i = 0; i < 6; i++) {
        o = init;
        o.max_tokens = windows[i];
        refuse(model, &o, LATH_ERR_USAGE, "want 3 to 40");
    }
    o = init;
    o.prompt_name = "query";
    refuse(model, &o, LATH_ERR_USAGE, "prompt \"query\": the model has no prompt of that name (it has: none)");
    o = init;
    o.prompt_text = "a\xFF";
    refuse(model, &o, LATH_ERR_INPUT, "prompt: not valid UTF-8 at byte 2");
}

static void test_good_options(void **state)
{
    lath_embed_options o = LATH_EMBED_OPTIONS_INIT;
    (void)state;
    for (int pooling = LATH_POOLING_AUTO; pooling < LATH_POOLING_CONCAT; pooling++) {
        for (int normalize = 0; normalize <= 2; normalize++) {
            o.pooling = (lath_pooling)pooling;
            o.normalize = normalize;
            o.dim = pooling * 5;
            o.max_tokens = pooling ? pooling + 2 : 40;
            lath_embedder *e = make(model, &o);
            float v[N * D];
            int64_t dim = o.dim ? o.dim : D;
            assert_int_equal(lath_embedder_dim(e), dim);
            assert_ok(lath_embed(e, texts, N, v, NULL, &err), err);
            for (int i = 0; i < N; i++) {
                double sum = 0;
                for (int64_t k = 0; k < dim; k++) sum += (double)v[i * dim + k] * (double)v[i * dim + k];
                if (normalize)
                    assert_true(fabs(sum - 1) < 1e-5);
                else
                    assert_true(fabs(sum - 1) > 1e-3); /* hidden states of this model are not of length 1 */
            }
            lath_embedder_destroy(e);
        }
    }
    lath_embedder_destroy(NULL);
}

/* The first numbers of the whole vector, at length 1 again. */
static void test_dim(void **state)
{
    float whole[N * D], part[N * 7];
    lath_embed_options o = LATH_EMBED_OPTIONS_INIT;
    (void)state;
    lath_embedder *e = make(model, NULL);
    assert_ok(lath_embed(e, texts, N, whole, NULL, &err), err);
    lath_embedder_destroy(e);
    o.dim = 7;
    e = make(model, &o);
    assert_ok(lath_embed(e, texts, N, part, NULL, &err), err);
    lath_embedder_destroy(e);
    for (int i = 0; i < N; i++) {
        double norm = 0;
        for (int k = 0; k < 7; k++) norm += (double)whole[i * D + k] * (double)whole[i * D + k];
        for (int k = 0; k < 7; k++)
            assert_true(fabs((double)part[i * 7 + k] - (double)whole[i * D + k] / sqrt(norm)) < 1e-6);
    }
}

/* ------------------------------------------------------------------------------------------------------------ texts */

static void test_call_arguments(void **state)
{
    float v[D] = {5};
    lath_embedder *e = make(model, NULL);
    (void)state;
    assert_int_equal(lath_embed(NULL, texts, 1, v, NULL, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_embed(e, NULL, 1, v, NULL, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_embed(e, texts, 1, NULL, NULL, &err), LATH_ERR_USAGE);
    assert_string_equal(err.msg, "lath_embed: an argument is missing");
    assert_int_equal(lath_embed(e, texts, 1, NULL, NULL, NULL), LATH_ERR_USAGE);
    assert_ok(lath_embed(e, NULL, 0, NULL, NULL, &err), err);
    assert_ok(lath_embed(e, texts, 0, v, NULL, &err), err);
    assert_true(v[0] == 5);
    const lath_text null = {NULL, 0};
    float empty[D];
    assert_ok(lath_embed(e, &null, 1, v, NULL, &err), err); /* no text is the empty text */
    assert_ok(lath_embed(e, &texts[1], 1, empty, NULL, &err), err);
    assert_memory_equal(v, empty, sizeof(v));
    lath_embedder_destroy(e);
}

/* The error names the text; the embedder works afterwards as before. */
static void test_bad_utf8(void **state)
{
    static const char *const bad[] = {"\x80", "ab\xC3", "\xED\xA0\x80", "water \xFF", "\xF4\x90\x80\x80"};
    float v[8 * D], before[D], after[D];
    (void)state;
    for (int32_t batch = 1; batch <= 1000; batch += 999) {
        lath_embed_options o = LATH_EMBED_OPTIONS_INIT;
        o.batch_tokens = batch;
        lath_embedder *e = make(model, &o);
        assert_ok(lath_embed(e, texts, 1, before, NULL, &err), err);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
            for (size_t at = 0; at < 8; at += 3) {
                lath_text list[8];
                for (size_t k = 0; k < 8; k++) list[k] = texts[k % N];
                list[at] = (lath_text){bad[i], strlen(bad[i])};
                list[7] = at == 6 ? list[7] : (lath_text){"\xFF", 1}; /* the first is named */
                assert_int_equal(lath_embed(e, list, 8, v, NULL, &err), LATH_ERR_INPUT);
                assert_int_equal(err.status, LATH_ERR_INPUT);
                assert_int_equal(err.item, at);
                assert_non_null(strstr(err.msg, "UTF-8"));
                assert_int_equal(lath_embed(e, list, 8, v, NULL, NULL), LATH_ERR_INPUT);
            }
        }
        assert_ok(lath_embed(e, texts, 1, after, NULL, &err), err);
        assert_int_equal(err.item, -1);
        assert_memory_equal(before, after, sizeof(before));
        lath_embedder_destroy(e);
    }
}

static void test_window(void **state)
{
    char longer[1000] = "";
    lath_embed_result r[3];
    float v[3 * D];
    lath_embed_options o = LATH_EMBED_OPTIONS_INIT;
    (void)state;
    for (int i = 0; i < 100; i++) strcat(longer, "water ");
    const lath_text list[] = {TEXT("water"), {longer, 38 * 6}, {longer, 39 * 6}}; /* 1 + 2, 38 + 2, 39 + 2 tokens */
    lath_embedder *e = make(model, NULL);
    assert_ok(lath_embed(e, list, 3, v, r, &err), err);
    static const lath_embed_result want[] = {{3, 0}, {40, 0}, {40, 1}};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(r[i].n_tokens, want[i].n_tokens);
        assert_int_equal(r[i].truncated, want[i].truncated);
    }
    assert_memory_equal(v + D, v + 2 * D, D * sizeof(float)); /* cut, it is the text before it */
    lath_embedder_destroy(e);
    o.no_truncate = 1;
    e = make(model, &o);
    assert_ok(lath_embed(e, list, 2, v, r, &err), err);
    assert_int_equal(lath_embed(e, list, 3, v, r, &err), LATH_ERR_WINDOW);
    assert_int_equal(err.item, 2);
    assert_string_equal(err.msg, "text 2: 41 tokens, the window is 40");
    lath_embedder_destroy(e);
    o.max_tokens = 3;
    e = make(model, &o);
    assert_ok(lath_embed(e, list, 1, v, r, &err), err);
    assert_int_equal(lath_embed(e, list, 2, v, r, &err), LATH_ERR_WINDOW);
    assert_int_equal(err.item, 1);
    assert_string_equal(err.msg, "text 1: 40 tokens, the window is 3");
    lath_embedder_destroy(e);
    o.no_truncate = 0;
    o.prompt_text = "water ";
    e = make(model, &o);
    assert_ok(lath_embed(e, list, 1, v, r, &err), err); /* the prompt counts */
    assert_int_equal(r[0].n_tokens, 3);
    assert_int_equal(r[0].truncated, 1);
    lath_embedder_destroy(e);
}

/* --------------------------------------------------------------------------------------------------------- progress */

typedef struct watch {
    size_t calls, last, total;
    size_t stop_at; /* call that asks to stop; 0: none */
} watch;

static int look(void *ctx, size_t done, size_t total)
{
    watch *w = ctx;
    if (done < w->last) return -1;
    if (done == w->last) return 0; /* a batch that takes longer than usual: test_interrupt.c */
    w->last = done;
    w->total = total;
    return ++w->calls == w->stop_at ? 7 : 0;
}

static void test_progress(void **state)
{
    float v[N * D], again[N * D];
    watch w = {0};
    lath_embed_options o = LATH_EMBED_OPTIONS_INIT;
    (void)state;
    o.batch_tokens = 1; /* each text is a batch */
    o.progress = look;
    o.progress_ctx = &w;
    lath_embedder *e = make(model, &o);
    assert_ok(lath_embed(e, texts, N, v, NULL, &err), err);
    assert_int_equal(w.calls, N);
    assert_int_equal(w.last, N);
    assert_int_equal(w.total, N);
    for (size_t stop = 1; stop <= N; stop++) {
        w = (watch){.stop_at = stop};
        assert_int_equal(lath_embed(e, texts, N, again, NULL, &err), LATH_ERR_INTERRUPTED);
        char want[64];
        snprintf(want, sizeof(want), "interrupted after %zu of %d texts", stop, N);
        assert_string_equal(err.msg, want);
        assert_int_equal(w.calls, stop);
    }
    w = (watch){0};
    assert_ok(lath_embed(e, texts, N, again, NULL, &err), err);
    assert_memory_equal(v, again, sizeof(v));
    lath_embedder_destroy(e);
}

/* ------------------------------------------------------------------------------------------------- batches, threads */

static void test_batch_is_singles(void **state)
{
    float alone[N * D], batch[N * D];
    (void)state;
    lath_embedder *e = make(model, NULL);
    for (int i = 0; i < N; i++) assert_ok(lath_embed(e, &texts[i], 1, alone + i * D, NULL, &err), err);
    lath_embedder_destroy(e);
    for (int32_t tokens = 1; tokens < 100; tokens += 7) {
        lath_embed_options o = LATH_EMBED_OPTIONS_INIT;
        o.batch_tokens = tokens;
        e = make(model, &o);
        memset(batch, 0, sizeof(batch));
        assert_ok(lath_embed(e, texts, N, batch, NULL, &err), err);
        assert_memory_equal(alone, batch, sizeof(alone));
        assert_true(lath_embedder_bytes(e) > 0);
        lath_embedder_destroy(e);
    }
}

typedef struct caller {
    pthread_t thread;
    float v[N * D];
    lath_status st;
} caller;

static void *call(void *arg)
{
    caller *c = arg;
    lath_error own;
    for (int round = 0; round < 20 && c->st == LATH_OK; round++) {
        lath_embedder *e = NULL;
        lath_embed_options o = LATH_EMBED_OPTIONS_INIT;
        o.batch_tokens = 1 + round * 9;
        c->st = lath_embedder_create(model, &o, &e, &own);
        if (c->st == LATH_OK) c->st = lath_embed(e, texts, N, c->v, NULL, &own);
        lath_embedder_destroy(e);
    }
    return NULL;
}

static void test_many_threads_one_model(void **state)
{
    enum { THREADS = 4 };
    caller c[THREADS] = {0};
    float want[N * D];
    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&c[i].thread, NULL, call, &c[i]),
                         0); /* first use of every weight is contended */
    for (int i = 0; i < THREADS; i++) pthread_join(c[i].thread, NULL);
    lath_embedder *e = make(model, NULL);
    assert_ok(lath_embed(e, texts, N, want, NULL, &err), err);
    lath_embedder_destroy(e);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(c[i].st, LATH_OK);
        assert_memory_equal(c[i].v, want, sizeof(want));
    }
}

/* ---------------------------------------------------------------------------------------------------------- prompts */

static void embed_one(const lath_model *m, const lath_embed_options *o, const char *text, float *v)
{
    lath_embedder *e = make(m, o);
    assert_true(lath_embedder_dim(e) <= WIDE);
    memset(v, 0, WIDE * sizeof(float));
    const lath_text t = {text, strlen(text)};
    assert_ok(lath_embed(e, &t, 1, v, NULL, &err), err);
    lath_embedder_destroy(e);
}

static void test_prompts(void **state)
{
    float a[WIDE], b[WIDE];
    lath_embed_options plain = LATH_EMBED_OPTIONS_INIT, o = plain;
    (void)state;
    lath_model *m = open_model("golden/bert/prompts_included");
    plain.prompt_text = "";
    embed_one(m, NULL, "water", a); /* the default prompt */
    embed_one(m, &plain, "query: water", b);
    assert_memory_equal(a, b, sizeof(a));
    o.prompt_name = "document";
    embed_one(m, &o, "water", a);
    embed_one(m, &plain, "A passage to read: water", b);
    assert_memory_equal(a, b, sizeof(a));
    char name[] = "document", text[] = "old ";
    o.prompt_name = name;
    o.prompt_text = text; /* wins over the name */
    lath_embedder *e = make(m, &o);
    memset(name, 'x', 8);
    memset(text, 'x', 4); /* strings of the options are copied */
    const lath_text t = TEXT("water");
    memset(a, 0, sizeof(a));
    assert_ok(lath_embed(e, &t, 1, a, NULL, &err), err);
    lath_embedder_destroy(e);
    embed_one(m, &plain, "old water", b);
    assert_memory_equal(a, b, sizeof(a));
    o = (lath_embed_options)LATH_EMBED_OPTIONS_INIT;
    o.prompt_name = "nothing";
    refuse(m, &o, LATH_ERR_USAGE,
           "prompt \"nothing\": the model has no prompt of that name (it has: query, document, glued)");
    lath_model_close(m);
}

/* The prompt fills the window and pooling leaves it out: nothing is left. */
static void test_prompt_fills_window(void **state)
{
    lath_embed_options o = LATH_EMBED_OPTIONS_INIT;
    float v[WIDE];
    const lath_text t = TEXT("water");
    (void)state;
    lath_model *m = open_model("golden/bert/prompts_excluded");
    char text[600] = "";
    for (int i = 0; i < 100; i++) strcat(text, "old ");
    o.prompt_text = text;
    lath_embedder *e = NULL;
    lath_status st = lath_embedder_create(m, &o, &e, &err);
    if (st == LATH_OK) st = lath_embed(e, &t, 1, v, NULL, &err);
    if (st == LATH_OK) {
        for (int64_t i = 0; i < lath_embedder_dim(e); i++)
            assert_true(isfinite(v[i])); /* its last special token is left, as in the reference */
    } else {
        assert_int_equal(st, LATH_ERR_WINDOW);
        assert_int_equal(err.item, 0);
        assert_non_null(strstr(err.msg, "prompt"));
    }
    lath_embedder_destroy(e);
    lath_model_close(m);
}

/* ------------------------------------------------------------------------------------------------------------- info */

static void test_info(void **state)
{
    lath_model_info info = {.struct_size = sizeof(info)}, again = {.struct_size = sizeof(again)};
    (void)state;
    assert_ok(lath_model_get_info(model, &info, &err), err);
    assert_string_equal(info.architecture, "bert");
    assert_string_equal(info.activation, "gelu");
    assert_string_equal(info.weights, "F32");
    assert_int_equal(info.n_layers, 2);
    assert_int_equal(info.n_heads, 3);
    assert_int_equal(info.vocab_size, 200);
    assert_int_equal(info.d_model, D);
    assert_int_equal(info.d_ff, 37);
    assert_int_equal(info.max_tokens, 40);
    assert_int_equal(info.d_embedding, D);
    assert_int_equal(info.pooling, LATH_POOLING_MEAN);
    assert_int_equal(info.normalized, 1);
    assert_int_equal(info.n_tensors, 37);
    assert_int_equal(info.n_unused, 0);
    assert_int_equal(info.n_params, 78296 / 4);
    assert_int_equal(info.file_bytes, 82096);
    assert_true(info.private_bytes > 0);
    assert_int_equal(info.n_prompts, 0);
    assert_null(info.default_prompt);
    assert_ok(lath_model_get_info(model, &again, &err), err);
    assert_memory_equal(info.fingerprint, again.fingerprint, sizeof(info.fingerprint));
    assert_true(info.fingerprint[0] != 0 || info.fingerprint[1] != 0);
    info.struct_size = 8;
    assert_int_equal(lath_model_get_info(model, &info, &err), LATH_ERR_USAGE);
    assert_non_null(strstr(err.msg, "version"));
    assert_int_equal(lath_model_get_info(model, NULL, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_model_get_info(NULL, &again, &err), LATH_ERR_USAGE);
}

static void test_tensors_and_prompts(void **state)
{
    lath_tensor_info t;
    uint64_t bytes = 0;
    const char *name = NULL, *text = NULL;
    (void)state;
    for (int32_t i = 0; i < 37; i++) {
        assert_ok(lath_model_get_tensor(model, i, &t, &err), err);
        assert_string_equal(t.dtype, "F32");
        assert_int_equal(t.used, 1);
        bytes += t.bytes;
    }
    assert_int_equal(bytes, 78296);
    assert_string_equal(t.name, "encoder.layer.1.output.dense.weight");
    assert_int_equal(t.rank, 2);
    assert_int_equal(t.shape[0], 30);
    assert_int_equal(t.shape[1], 37);
    static const int32_t none[] = {-1, 37, INT32_MIN, INT32_MAX};
    for (int i = 0; i < 4; i++) assert_int_equal(lath_model_get_tensor(model, none[i], &t, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_model_get_tensor(model, 0, NULL, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_model_get_tensor(NULL, 0, &t, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_model_get_prompt(model, 0, &name, &text, &err), LATH_ERR_USAGE);
    lath_model *m = open_model("golden/bert/prompts_included");
    assert_ok(lath_model_get_prompt(m, 0, &name, &text, &err), err);
    assert_string_equal(name, "query");
    assert_string_equal(text, "query: ");
    assert_ok(lath_model_get_prompt(m, 2, &name, &text, &err), err);
    assert_string_equal(text, "un");
    assert_int_equal(lath_model_get_prompt(m, 3, &name, &text, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_model_get_prompt(m, -1, &name, &text, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_model_get_prompt(m, 0, NULL, &text, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_model_get_prompt(NULL, 0, &name, &text, NULL), LATH_ERR_USAGE);
    lath_model_close(m);
}

/* Any change of weights, configuration or tokenizer is another fingerprint; a copy elsewhere is the same. */
static void test_fingerprint(void **state)
{
    static const float one = 1;
    lath_model_info info = {.struct_size = sizeof(info)};
    uint64_t seen[8][2];
    size_t n = 0;
    char good[TMP_PATH];
    (void)state;
    tmp_join(good, test_data_dir(), "golden/bert/mean_norm_gelu");
    assert_ok(lath_model_get_info(model, &info, &err), err);
    memcpy(seen[n++], info.fingerprint, 16);
    for (int change = 0; change < 7; change++) {
        char dir[TMP_PATH];
        lath_model *m = NULL;
        tmp_copy(dir, good);
        if (change == 1) tmp_patch_tensor(dir, "encoder.layer.1.output.dense.weight", 400, &one, 4);
        if (change == 2) tmp_replace(dir, "config.json", "1e-12", "1e-11");
        if (change == 3) tmp_replace(dir, "tokenizer.json", "\"lowercase\":true", "\"lowercase\":false");
        if (change == 4)
            tmp_replace(dir, "1_Pooling/config.json", "\"pooling_mode_mean_tokens\": true",
                        "\"pooling_mode_mean_tokens\": false");
        if (change == 5)
            tmp_write(dir, "config_sentence_transformers.json",
                      "{\"prompts\": {\"q\": \"x\"}, \"default_prompt_name\": \"q\"}");
        if (change == 6) tmp_replace(dir, "sentence_bert_config.json", "40", "39");
        assert_ok(lath_model_open(rt, dir, NULL, &m, &err), err);
        assert_ok(lath_model_get_info(m, &info, &err), err);
        bool known = false;
        for (size_t i = 0; i < n; i++) known |= memcmp(seen[i], info.fingerprint, 16) == 0;
        if (known != (change == 0))
            fail_msg("change %d: the fingerprint is %s", change, known ? "one that was there" : "another");
        if (change) memcpy(seen[n++], info.fingerprint, 16);
        lath_model_close(m);
        tmp_remove(dir);
    }
}

/* A file of weights so large that the fingerprint leaves most of it out: the identity does not. */
static void test_identity(void **state)
{
    enum { MORE = 8 << 20 };
    static const char first[] = "\"embeddings.word_embeddings.weight\":";
    char good[TMP_PATH], dir[TMP_PATH], table[160];
    lath_model_info info = {.struct_size = sizeof(info)};
    uint64_t seen[8][2], prints[8][2], again[2];
    size_t n, size;
    (void)state;
    tmp_join(good, test_data_dir(), "golden/bert/mean_norm_gelu");
    tmp_copy(dir, good);
    char *file = tmp_read(dir, "model.safetensors", &size);
    uint64_t header;
    memcpy(&header, file, sizeof(header));
    const size_t data = size - 8 - header;
    file = realloc(file, size + MORE);
    assert_non_null(file);
    memset(file + size, 0, MORE);
    tmp_write_bytes(dir, "model.safetensors", file, size + MORE);
    snprintf(table, sizeof(table), "\"zeros\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[%zu,%zu]},%s",
             (int)MORE, data, data + MORE, first);
    tmp_edit_header(dir, first, table);
    free(file);
    for (n = 0; n < 5; n++) {
        lath_model *m = NULL;
        if (n == 1) tmp_patch_tensor(dir, "zeros", MORE / 2 + 20001, "x", 1);
        if (n == 2) tmp_patch_tensor(dir, "zeros", MORE - 40000, "x", 1);
        if (n == 3) tmp_write(dir, "merges.txt", "a b\n");
        assert_ok(lath_model_open(rt, dir, NULL, &m, &err), err);
        assert_ok(lath_model_get_info(m, &info, &err), err);
        memcpy(prints[n], info.fingerprint, 16);
        assert_ok(lath_model_get_identity(m, seen[n], &err), err);
        assert_ok(lath_model_get_identity(m, again, &err), err);
        assert_memory_equal(seen[n], again, 16);
        lath_model_close(m);
        assert_memory_equal(prints[n], prints[0], 16);
        for (size_t i = 0; i < n; i++) assert_int_equal(memcmp(seen[i], seen[n], 16) == 0, n == 4 && i == 3);
    }
    tmp_remove(dir);
    tmp_copy(dir, good); /* a copy is the same */
    lath_model *m = NULL;
    assert_ok(lath_model_open(rt, dir, NULL, &m, &err), err);
    assert_ok(lath_model_get_identity(m, again, &err), err);
    assert_ok(lath_model_get_identity(model, seen[0], &err), err);
    assert_memory_equal(seen[0], again, 16);
    lath_model_close(m);
    tmp_remove(dir);
    assert_int_equal(lath_model_get_identity(NULL, again, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_model_get_identity(model, NULL, NULL), LATH_ERR_USAGE);
}

/* truncate_dim is for the model's own pooling: a pooling that gives fewer numbers is not read past its end. */
static void test_truncate_dim_over_pooling(void **state)
{
    char dir[TMP_PATH], from[1024];
    lath_model *m;
    lath_embedder *e;
    lath_embed_options o = LATH_EMBED_OPTIONS_INIT;
    lath_model_info info = {.struct_size = sizeof(info)};
    (void)state;
    snprintf(from, sizeof(from), "%s/golden/bert/multi_cls_mean", test_data_dir());
    tmp_copy(dir, from);
    tmp_write(dir, "config_sentence_transformers.json", "{\"truncate_dim\": 54}");
    assert_ok(lath_model_open(rt, dir, NULL, &m, &err), err);
    o.pooling = LATH_POOLING_CLS;
    assert_ok(lath_embedder_create(m, &o, &e, &err), err);
    assert_int_equal(lath_embedder_dim(e), 27); /* hidden_size */
    lath_embedder_destroy(e);
    lath_model_close(m);
    tmp_write(dir, "config_sentence_transformers.json", "{\"truncate_dim\": 20}");
    assert_ok(lath_model_open(rt, dir, NULL, &m, &err), err);
    assert_ok(lath_model_get_info(m, &info, &err), err);
    assert_int_equal(info.d_embedding, 20);
    assert_ok(lath_embedder_create(m, NULL, &e, &err), err);
    assert_int_equal(lath_embedder_dim(e), 20);
    lath_embedder_destroy(e);
    lath_model_close(m);
    tmp_remove(dir);
}

static void test_file_at(void **state)
{
    (void)state;
    assert_null(lath_model_file_at(model, &rt));
    assert_null(lath_model_file_at(model, NULL));
    assert_null(lath_model_file_at(model, (const void *)UINTPTR_MAX));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_threads_one_model),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_good_options),
        cmocka_unit_test(test_dim),
        cmocka_unit_test(test_call_arguments),
        cmocka_unit_test(test_bad_utf8),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_batch_is_singles),
        cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_prompt_fills_window),
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_tensors_and_prompts),
        cmocka_unit_test(test_fingerprint),
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_truncate_dim_over_pooling),
        cmocka_unit_test(test_file_at),
    };
    return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
