/* SPDX-License-Identifier: Apache-2.0
 * test_interrupt.c: a call is stopped in the middle of a batch, however long that is, on one thread and on several; the
 * embedder, the reranker, the session and their model are as good afterwards as before. */
#include <pthread.h>
#include <stdbool.h>

#include "lath/lath.h"
#include "support/test.h"
#include "support/tmpdir.h"

/* Some seconds of work in one batch, with the plain kernels. */
enum { D = 30, N = 8192, FEW = 4, BATCH = 1 << 20 };

static const char sentence[] = "The green river runs by the old mountain house and small water runs by the white house";

static lath_error err;
static lath_runtime *rt;
static lath_model *model;

static void open_model(const char *name, int32_t threads)
{
    char path[TMP_PATH];
    lath_runtime_options o = LATH_RUNTIME_OPTIONS_INIT;
    o.n_threads = threads;
    o.isa = LATH_ISA_REF;
    assert_ok(lath_runtime_create(&o, &rt, &err), err);
    tmp_join(path, test_data_dir(), name);
    assert_ok(lath_model_open(rt, path, NULL, &model, &err), err);
}

static void close_model(void)
{
    lath_model_close(model);
    lath_runtime_destroy(rt);
}

typedef struct watch {
    pthread_t caller;
    int calls, stop_at; /* the call that says stop; 0: none */
    size_t done, total;
} watch;

static int look(void *ctx, size_t done, size_t total)
{
    watch *w = ctx;
    if (!pthread_equal(w->caller, pthread_self())) abort();
    w->done = done;
    w->total = total;
    return ++w->calls == w->stop_at;
}

static lath_text *many_texts(void)
{
    lath_text *texts = calloc(N, sizeof(*texts));
    assert_non_null(texts);
    for (int i = 0; i < N; i++) texts[i] = (lath_text){sentence, sizeof(sentence) - 1};
    return texts;
}

static void check_stopped(const watch *w, lath_status st, const char *want)
{
    if (st != LATH_ERR_INTERRUPTED) fail_msg("status %d after %d calls, the last with %zu done", st, w->calls, w->done);
    assert_int_equal(err.status, LATH_ERR_INTERRUPTED);
    assert_string_equal(err.msg, want);
    assert_int_equal(w->calls, w->stop_at);
    assert_int_equal(w->done, 0); /* the one batch was not finished */
    assert_int_equal(w->total, N);
}

static void embed(int32_t threads, int stop_at)
{
    lath_text *texts = many_texts();
    float *v = calloc((size_t)N * D, sizeof(*v)), few[FEW * D], again[FEW * D];
    lath_embed_options o = LATH_EMBED_OPTIONS_INIT;
    lath_embedder *e = NULL;
    watch w = {.caller = pthread_self(), .stop_at = stop_at};
    assert_non_null(v);
    open_model("golden/bert/mean_norm_gelu", threads);
    assert_ok(lath_embedder_create(model, NULL, &e, &err), err);
    assert_ok(lath_embed(e, texts, FEW, few, NULL, &err), err);
    lath_embedder_destroy(e);
    close_model();
    open_model("golden/bert/mean_norm_gelu", threads); /* nothing of it has been looked at */
    o.batch_tokens = BATCH;
    o.progress = look;
    o.progress_ctx = &w;
    assert_ok(lath_embedder_create(model, &o, &e, &err), err);
    check_stopped(&w, lath_embed(e, texts, N, v, NULL, &err), "interrupted after 0 of 8192 texts");
    w.stop_at = 0;
    assert_ok(lath_embed(e, texts, FEW, again, NULL, &err), err);
    assert_memory_equal(few, again, sizeof(few));
    assert_int_equal(w.done, FEW);
    lath_embedder_destroy(e);
    close_model();
    free(texts);
    free(v);
}

static void test_embed(void **state)
{
    (void)state;
    for (int32_t threads = 1; threads <= 3; threads++) {
        embed(threads, 1);
        embed(threads, 3);
    }
}

static void test_rerank(void **state)
{
    lath_text *texts = many_texts();
    lath_rerank_result *r = calloc(N, sizeof(*r)), few[FEW];
    lath_rerank_options o = LATH_RERANK_OPTIONS_INIT;
    lath_reranker *x = NULL;
    const lath_text query = {"water", 5};
    watch w = {.caller = pthread_self(), .stop_at = 1};
    (void)state;
    assert_non_null(r);
    open_model("golden/rerank/bert_msmarco", 2);
    o.batch_tokens = BATCH;
    o.progress = look;
    o.progress_ctx = &w;
    assert_ok(lath_reranker_create(model, &o, &x, &err), err);
    check_stopped(&w, lath_rerank(x, query, texts, N, r, &err), "interrupted after 0 of 8192 documents");
    w.stop_at = 0;
    assert_ok(lath_rerank(x, query, texts, FEW, few, &err), err);
    lath_reranker_destroy(x);
    assert_ok(lath_reranker_create(model, NULL, &x, &err), err);
    assert_ok(lath_rerank(x, query, texts, FEW, r, &err), err);
    for (int i = 0; i < FEW; i++) assert_memory_equal(&r[i].logit, &few[i].logit, sizeof(float));
    lath_reranker_destroy(x);
    close_model();
    free(texts);
    free(r);
}

/* A prompt and tokens behind it, stopped and computed again with the same bits. */
static void session(int32_t threads)
{
    enum { TOKENS = 300, MORE = 40, VOCAB = 101, PARTS = 2 };
    static int32_t ids[TOKENS];
    static float want[VOCAB];
    lath_session_options o = LATH_SESSION_OPTIONS_INIT;
    lath_session *s, *other;
    const float *logits;
    watch w = {.caller = pthread_self(), .stop_at = 1};
    for (int i = 0; i < TOKENS; i++) ids[i] = i * 37 % VOCAB;
    open_model("golden/decoder/llama2", threads);
    assert_ok(lath_session_create(model, NULL, &other, &err), err);
    assert_ok(lath_session_append(other, ids, TOKENS - MORE, &err), err);
    assert_ok(lath_session_append(other, ids + TOKENS - MORE, MORE, &err), err);
    assert_ok(lath_session_logits(other, &logits, &err), err);
    memcpy(want, logits, sizeof(want));
    o.progress = look;
    o.progress_ctx = &w;
    assert_ok(lath_session_create(model, &o, &s, &err), err);
    static const size_t parts[PARTS] = {TOKENS - MORE, MORE};
    for (size_t i = 0, at = 0; i < PARTS; at += parts[i++]) {
        w.stop_at = w.calls + 1;
        assert_int_equal(lath_session_append(s, ids + at, parts[i], &err), LATH_ERR_INTERRUPTED);
        assert_int_equal(err.status, LATH_ERR_INTERRUPTED);
        assert_int_equal(w.total, at + parts[i]);
        assert_int_equal(w.done, at);
        assert_int_equal(lath_session_size(s), at);
        w.stop_at = 0;
        assert_ok(lath_session_append(s, ids + at, parts[i], &err), err);
        assert_int_equal(lath_session_size(s), at + parts[i]);
    }
    assert_ok(lath_session_logits(s, &logits, &err), err);
    assert_memory_equal(logits, want, sizeof(want));
    lath_session_destroy(s);
    lath_session_destroy(other);
    close_model();
}

static void test_session(void **state)
{
    (void)state;
    for (int32_t threads = 1; threads <= 3; threads++) session(threads);
}

/* Nobody to ask: the whole is computed. */
static void test_nobody_asks(void **state)
{
    float v[FEW * D];
    lath_embedder *e = NULL;
    lath_text *texts = many_texts();
    (void)state;
    open_model("golden/bert/mean_norm_gelu", 2);
    assert_ok(lath_embedder_create(model, NULL, &e, &err), err);
    assert_ok(lath_embed(e, texts, FEW, v, NULL, &err), err);
    assert_memory_equal(v, v + D, D * sizeof(float));
    lath_embedder_destroy(e);
    close_model();
    free(texts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_embed),
        cmocka_unit_test(test_rerank),
        cmocka_unit_test(test_session),
        cmocka_unit_test(test_nobody_asks),
    };
    return TEST_RUN(tests);
}
