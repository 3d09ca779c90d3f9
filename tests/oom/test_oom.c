/* SPDX-License-Identifier: Apache-2.0
 *
 * test_oom.c: allocation k = 1, 2, 3... fails; every public call must then return LATH_ERR_NOMEM, hold nothing, and work again with memory. The
 * allocator counts what is out, so that a leak on an error path is a failure.
 */
#include <stdatomic.h>

#include "lath/lath.h"
#include "support/test.h"

typedef struct meter {
    atomic_long calls, out; /* allocations asked for; blocks not yet released */
    atomic_long fail_at;    /* 0: never */
} meter;

static void *meter_alloc(void *ctx, size_t size, size_t align)
{
    meter *m = ctx;
    if (atomic_fetch_add(&m->calls, 1) + 1 == atomic_load(&m->fail_at)) return NULL;
    void *p = NULL;
    if (posix_memalign(&p, align < sizeof(void *) ? sizeof(void *) : align, size) != 0) return NULL;
    atomic_fetch_add(&m->out, 1);
    return p;
}

static void meter_release(void *ctx, void *p, size_t size)
{
    meter *m = ctx;
    (void)size;
    atomic_fetch_sub(&m->out, 1);
    free(p);
}

static void *meter_resize(void *ctx, void *p, size_t old_size, size_t size, size_t align)
{
    void *q = meter_alloc(ctx, size, align);
    if (!q) return NULL;
    memcpy(q, p, old_size < size ? old_size : size);
    meter_release(ctx, p, old_size);
    return q;
}

/* The whole way from nothing to vectors, ids and text, and back. */
static lath_status run_all(const lath_allocator *a, const char *path, lath_error *err)
{
    static const lath_text texts[] = {
        {"The green river runs.", 21}, {"", 0}, {"caf\xC3\xA9 [MASK] \xE4\xB8\xAD unaffable", 24}};
    lath_runtime *rt = NULL;
    lath_model *m = NULL;
    lath_embedder *e = NULL;
    lath_tokens tokens = {0};
    char *text = NULL;
    float v[3 * 64];
    lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
    lath_embed_options eo = LATH_EMBED_OPTIONS_INIT;
    lath_model_info info = {.struct_size = sizeof(info)};
    ro.allocator = a;
    ro.n_threads = 2;
    eo.prompt_text = "query: ";
    eo.batch_tokens = 8;
    lath_status st = lath_runtime_create(&ro, &rt, err);
    if (st == LATH_OK) st = lath_model_open(rt, path, NULL, &m, err);
    if (st == LATH_OK) st = lath_model_get_info(m, &info, err);
    if (st == LATH_OK) st = lath_embedder_create(m, &eo, &e, err);
    if (st == LATH_OK) st = lath_embed(e, texts, 3, v, NULL, err);
    if (st == LATH_OK) st = lath_encode(lath_model_tokenizer(m), texts[2], NULL, &tokens, err);
    if (st == LATH_OK) st = lath_decode(lath_model_tokenizer(m), tokens.ids, tokens.n, 1, &text, NULL, err);
    if (m) lath_string_release(lath_model_tokenizer(m), text);
    lath_tokens_release(&tokens);
    lath_embedder_destroy(e);
    lath_model_close(m);
    lath_runtime_destroy(rt);
    return st;
}

static void torture(const char *name)
{
    meter count = {0};
    lath_allocator a = {&count, meter_alloc, meter_resize, meter_release};
    lath_error err;
    char path[1024];
    snprintf(path, sizeof(path), "%s/golden/bert/%s", test_data_dir(), name);
    assert_ok(run_all(&a, path, &err), err);
    long total = atomic_load(&count.calls);
    assert_int_equal(atomic_load(&count.out), 0);
    assert_true(total > 20);
    for (long k = 1; k <= total; k++) {
        atomic_store(&count.calls, 0);
        atomic_store(&count.fail_at, k);
        lath_status st = run_all(&a, path, &err);
        if (st != LATH_ERR_NOMEM)
            fail_msg("%s: allocation %ld of %ld failed, status %d (%s)", name, k, total, (int)st, err.msg);
        if (atomic_load(&count.out) != 0)
            fail_msg("%s: allocation %ld of %ld failed, %ld blocks leaked (%s)", name, k, total,
                     atomic_load(&count.out), err.msg);
    }
    printf("    %-22s %ld allocations, each failed once\n", name, total);
}

static void test_torture(void **state)
{
    (void)state;
    torture("mean_norm_gelu");
    torture("dense_tanh");
    torture("f16_gelu_tanh");
    torture("plain_vocab_txt");
    torture("sharded");
    torture("f8_e5m2_sharded");
}

/* After the first call of a size no further memory is taken. */
static void test_no_allocation_in_a_step(void **state)
{
    (void)state;
    meter count = {0};
    lath_allocator a = {&count, meter_alloc, meter_resize, meter_release};
    lath_error err;
    lath_runtime *rt;
    lath_model *m;
    lath_embedder *e;
    lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
    static const lath_text texts[] = {{"The green river runs.", 21}, {"water", 5}};
    float v[2 * 64];
    char path[1024];
    snprintf(path, sizeof(path), "%s/golden/bert/mean_norm_gelu", test_data_dir());
    ro.allocator = &a;
    assert_ok(lath_runtime_create(&ro, &rt, &err), err);
    assert_ok(lath_model_open(rt, path, NULL, &m, &err), err);
    assert_ok(lath_embedder_create(m, NULL, &e, &err), err);
    assert_ok(lath_embed(e, texts, 2, v, NULL, &err), err);
    long before = atomic_load(&count.calls);
    for (int i = 0; i < 5; i++) assert_ok(lath_embed(e, texts, 2, v, NULL, &err), err);
    assert_int_equal(atomic_load(&count.calls), before);
    lath_embedder_destroy(e);
    lath_model_close(m);
    lath_runtime_destroy(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_torture), cmocka_unit_test(test_no_allocation_in_a_step)};
    return TEST_RUN(tests);
}
