/* SPDX-License-Identifier: Apache-2.0
 * test_inspect_oom.c: every allocation of looking into an open model fails once: hooks, FFNs, traces and what is asked of them, a session with both. Each call then says
 * that memory is out, and nothing leaks. */
#include "base/alloc.h"
#include "support/inside_case.h"
#include "support/test.h"

typedef struct meter {
    long calls, fail_at, out; /* fail_at 0: never; out: blocks that are not released */
} meter;

static void *meter_alloc(void *ctx, size_t size, size_t align)
{
    meter *m = ctx;
    if (++m->calls == m->fail_at) return NULL;
    void *p = alloc_bytes(alloc_default(), size, align);
    m->out += p != NULL;
    return p;
}

static void meter_release(void *ctx, void *p, size_t size)
{
    ((meter *)ctx)->out--;
    alloc_release(alloc_default(), p, size);
}

static void *meter_resize(void *ctx, void *p, size_t old_size, size_t size, size_t align)
{
    meter *m = ctx;
    if (++m->calls == m->fail_at) return NULL;
    return alloc_resize(alloc_default(), p, old_size, size, align);
}

static int same(void *ctx, lath_value *v)
{
    (void)ctx, (void)v;
    return 1;
}

static lath_status add_hooks(const inside_case *c, lath_hooks *h, lath_error *err)
{
    const float *vector = inside_want(c, "vector")->data;
    lath_status st = lath_hooks_ablate_layer(h, 1, err);
    if (st == LATH_OK) st = lath_hooks_ablate_head(h, 0, 1, err);
    for (int i = 0; i < 8 && st == LATH_OK; i++)
        st = lath_hooks_steer(h, 0, LATH_POSITION_LAST, vector, (size_t)c->d, 0.1f, err);
    if (st == LATH_OK) st = lath_hooks_add(h, LATH_POINT_FFN_ACT, 0, LATH_POSITION_ALL, same, NULL, err);
    return st;
}

static lath_status trace(const inside_case *c, lath_hooks *h, lath_ffn *f, lath_error *err)
{
    lath_trace *t = NULL;
    float *logits = test_malloc((size_t)(c->n_layers * c->vocab) * sizeof(float)),
          *heads = test_malloc((size_t)(c->n_layers * 64) * sizeof(float));
    lath_answer_step *steps = test_malloc((size_t)c->n_layers * sizeof(*steps));
    lath_attribution a = {.struct_size = sizeof(a), .heads = heads};
    lath_trace_options o = LATH_TRACE_OPTIONS_INIT;
    o.what = LATH_TRACE_HEADS | LATH_TRACE_WEIGHTS | LATH_TRACE_ACTIVATIONS | LATH_TRACE_INPUTS;
    o.hooks = h;
    o.ffn = f;
    lath_status st = lath_trace_run(c->model, c->ids, (size_t)c->n, &o, &t, err);
    if (st == LATH_OK) st = lath_trace_answer(t, c->n - 1, 3, steps, err);
    if (st == LATH_OK) st = lath_trace_attribution(t, c->n - 1, 3, &a, err);
    if (st == LATH_OK) st = lath_trace_logits(t, c->n - 1, logits, err);
    if (st == LATH_OK) st = lath_calibrate_gains(c->model, c->ids, (size_t)c->n, logits, err);
    if (st == LATH_OK) st = lath_ffn_run(c->model, f, 0, inside_want(c, "vector")->data, 1, logits, err);
    test_free(logits);
    test_free(heads);
    test_free(steps);
    lath_trace_close(t);
    return st;
}

static lath_status generate(const inside_case *c, lath_hooks *h, lath_ffn *f, lath_error *err)
{
    lath_session *s = NULL;
    lath_session_options so = LATH_SESSION_OPTIONS_INIT;
    so.ctx = c->n;
    lath_status st = lath_session_create(c->model, &so, &s, err);
    if (st == LATH_OK) st = lath_session_set_ffn(s, f, err);
    if (st == LATH_OK) st = lath_session_set_hooks(s, h, err);
    if (st == LATH_OK) st = lath_session_append(s, c->ids, (size_t)c->n - 1, err);
    if (st == LATH_OK) st = lath_session_append(s, c->ids, 1, err);
    lath_session_destroy(s);
    return st;
}

static lath_status run_all(const inside_case *c, const char *spec, lath_error *err)
{
    lath_hooks *h = NULL;
    lath_ffn *f = NULL;
    lath_status st = lath_hooks_create(c->model, &h, err);
    if (st == LATH_OK) st = add_hooks(c, h, err);
    if (st == LATH_OK) st = lath_ffn_open(c->model, spec, &f, err);
    if (st == LATH_OK) st = trace(c, h, f, err);
    if (st == LATH_OK) st = generate(c, h, f, err);
    lath_hooks_destroy(h);
    lath_ffn_close(f);
    return st;
}

static void torture(const char *name, const char *spec)
{
    meter m = {0};
    const lath_allocator a = {&m, meter_alloc, meter_resize, meter_release};
    lath_error err = {0};
    inside_case c = inside_open(name, &a);
    const long held = m.out;
    m.calls = 0;
    assert_ok(run_all(&c, spec, &err), err);
    const long total = m.calls;
    assert_int_equal(m.out, held);
    assert_true(total > 40);
    for (long k = 1; k <= total; k++) {
        m.calls = 0;
        m.fail_at = k;
        const lath_status st = run_all(&c, spec, &err);
        if (st != LATH_ERR_NOMEM || m.out != held)
            fail_msg("%s: allocation %ld of %ld failed, status %d (%s), %ld blocks leaked", name, k, total, (int)st,
                     err.msg, m.out - held);
    }
    m.fail_at = 0;
    assert_ok(run_all(&c, spec, &err), err);
    printf("    %-22s %ld allocations, each failed once\n", name, total);
    inside_close(&c);
    assert_int_equal(m.out, 0);
}

static void test_torture(void **state)
{
    (void)state;
    torture("decoder/gemma2_caps", "0=cached,1-=sparse:3");
    torture("decoder/qwen3_moe_some_dense", "0-=dense");
    torture("decoder/qwen3_5_text", "0=dense,1=highway,2-=cached");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_torture)};
    return TEST_RUN(tests);
}
