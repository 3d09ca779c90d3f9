/* SPDX-License-Identifier: Apache-2.0
 * test_session_plan.c: what lath_session_get_plan says is what a session takes; and the public calls about logits. */
#include <math.h>

#include "lath/lath.h"
#include "support/test.h"
#include "support/tmpdir.h"

static lath_error err;

typedef struct opened {
    lath_runtime *rt;
    lath_model *model;
} opened;

static opened open_model(const char *name)
{
    opened o;
    char path[TMP_PATH];
    tmp_join(path, test_data_dir(), name);
    assert_ok(lath_runtime_create(NULL, &o.rt, &err), err);
    assert_ok(lath_model_open(o.rt, path, NULL, &o.model, &err), err);
    return o;
}

static void close_model(opened o)
{
    lath_model_close(o.model);
    lath_runtime_destroy(o.rt);
}

static lath_session_plan plan_of(const opened *o, int32_t ctx)
{
    lath_session_options so = LATH_SESSION_OPTIONS_INIT;
    lath_session_plan plan = {.struct_size = sizeof(plan)};
    so.ctx = ctx;
    assert_ok(lath_session_get_plan(o->model, &so, &plan, &err), err);
    return plan;
}

/* Of each: layers with a window, the window, heads of keys, features of a head, whether the head is the embeddings, bytes of a
 * kept number (halves where the weights are no f32). */
static const struct {
    const char *name;
    int32_t layers, n_windows, window, n_kv_heads, head_dim, tied, bytes;
} models[] = {
    {"golden/decoder/llama2", 2, 0, 0, 4, 6, 0, 4},
    {"golden/decoder/llama3_scaling_tied", 2, 0, 0, 2, 6, 1, 2},
    {"golden/decoder/mistral_window", 2, 2, 9, 1, 8, 0, 2},
    {"golden/decoder/gemma3_new_form_cap", 3, 2, 10, 1, 10, 1, 4},
};

static void test_plan(void **state)
{
    (void)state;
    static const int32_t sizes[] = {0, 1, 15, 16, 17, 300, 512};
    for (size_t k = 0; k < sizeof(models) / sizeof(models[0]); k++) {
        opened o = open_model(models[k].name);
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            const lath_session_plan plan = plan_of(&o, sizes[i]);
            lath_session_options so = LATH_SESSION_OPTIONS_INIT;
            lath_session_stats stats = {.struct_size = sizeof(stats)};
            lath_session *s;
            so.ctx = sizes[i];
            assert_ok(lath_session_create(o.model, &so, &s, &err), err);
            assert_ok(lath_session_get_stats(s, &stats, &err), err);
            assert_int_equal(plan.ctx, lath_session_capacity(s));
            assert_int_equal(plan.kv_bytes, stats.kv_bytes);
            assert_int_equal(plan.work_bytes, stats.work_bytes);
            assert_int_equal(plan.most, 512);
            assert_int_equal(plan.n_windows, models[k].n_windows);
            assert_int_equal(plan.window, models[k].window);
            assert_int_equal(plan.n_kv_heads, models[k].n_kv_heads);
            assert_int_equal(plan.head_dim, models[k].head_dim);
            assert_int_equal(plan.tied, models[k].tied);
            const uint64_t layer = (uint64_t)(2 * models[k].n_kv_heads * models[k].head_dim * models[k].bytes);
            assert_int_equal(plan.token_bytes, layer * (uint64_t)models[k].layers);
            assert_int_equal(plan.far_bytes, layer * (uint64_t)(models[k].layers - models[k].n_windows));
            lath_session_destroy(s);
        }
        close_model(o);
    }
}

static void test_plan_refused(void **state)
{
    (void)state;
    opened o = open_model("golden/decoder/llama2");
    lath_session_options so = LATH_SESSION_OPTIONS_INIT;
    lath_session_plan plan = {.struct_size = sizeof(plan)};
    so.ctx = 513;
    assert_int_equal(lath_session_get_plan(o.model, &so, &plan, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_session_get_plan(NULL, NULL, &plan, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_session_get_plan(o.model, NULL, NULL, &err), LATH_ERR_USAGE);
    plan.struct_size--;
    assert_int_equal(lath_session_get_plan(o.model, NULL, &plan, &err), LATH_ERR_USAGE);
    close_model(o);
    o = open_model("golden/bert/mean_norm_gelu");
    plan.struct_size = sizeof(plan);
    assert_int_equal(lath_session_get_plan(o.model, NULL, &plan, &err), LATH_ERR_UNSUPPORTED);
    close_model(o);
}

/* Sums in f64 of numbers that f32 sums would lose. */
static void test_logits(void **state)
{
    (void)state;
    enum { N = 5000, K = 40 };
    static float v[N];
    lath_token_logprob top[K];
    lath_runtime *rt;
    double total = 0, logprob;
    assert_ok(lath_runtime_create(NULL, &rt, &err), err);
    for (int i = 0; i < N; i++) v[i] = (float)(i * 7919 % 997) / 100 - 300; /* every value about five times */
    for (int i = 0; i < N; i++) total += exp((double)v[i] + 300);
    assert_ok(lath_logits_top(rt, v, N, K, top, &err), err);
    for (int k = 0; k < K; k++) {
        int before = 0;
        for (int i = 0; i < N; i++) before += v[i] > v[top[k].id] || (v[i] == v[top[k].id] && i < top[k].id);
        assert_int_equal(before, k);
        assert_true(fabs(top[k].logprob - (v[top[k].id] + 300.0 - log(total))) < 1e-6);
        assert_ok(lath_logits_logprob(rt, v, N, top[k].id, &logprob, &err), err);
        assert_true(logprob == top[k].logprob);
    }
    assert_ok(lath_logits_top(rt, v, N, 0, NULL, &err), err);
    assert_ok(lath_logits_top(rt, v, 1, 1, top, &err), err);
    assert_true(top[0].id == 0 && top[0].logprob == 0);
    assert_int_equal(lath_logits_top(rt, v, N, N + 1, top, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_logits_top(rt, v, 0, 0, top, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_logits_top(NULL, v, N, 1, top, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_logits_logprob(rt, v, N, N, &logprob, &err), LATH_ERR_INPUT);
    assert_int_equal(lath_logits_logprob(rt, v, N, -1, &logprob, &err), LATH_ERR_INPUT);
    for (int bad = 0; bad < 2; bad++) {
        v[N - 1] = bad ? INFINITY : NAN;
        assert_int_equal(lath_logits_top(rt, v, N, 1, top, &err), LATH_ERR_FORMAT);
        assert_int_equal(lath_logits_logprob(rt, v, N, 0, &logprob, &err), LATH_ERR_FORMAT);
    }
    lath_runtime_destroy(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_plan_refused),
        cmocka_unit_test(test_logits),
    };
    return TEST_RUN(tests);
}
