/* SPDX-License-Identifier: Apache-2.0
 *
 * test_oom.c: allocation k = 1, 2, 3... fails; every public call must then return LATH_ERR_NOMEM, hold nothing, and work again with memory. The
 * allocator counts what is out, so that a leak on an error path is a failure.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "lath/lath_vindex.h"
#include "support/test.h"
#include "support/tmpdir.h"

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

/* A cache in a new file of that folder, filled, written out as records and taken in by another. SQLite has its own
 * memory, which does not fail here. */
static lath_status run_cached(const lath_allocator *a, const char *path, const char *dir, lath_error *err)
{
    static const lath_text texts[] = {{"The green river runs.", 21}, {"", 0}, {"water", 5}};
    lath_runtime *rt = NULL;
    lath_model *m = NULL;
    lath_cache *file = NULL, *memory = NULL;
    lath_embedder *e = NULL, *f = NULL;
    float v[3 * 64];
    char in_file[TMP_PATH], records[TMP_PATH];
    lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
    lath_cache_options co = LATH_CACHE_OPTIONS_INIT;
    lath_embed_options eo = LATH_EMBED_OPTIONS_INIT;
    tmp_join(in_file, dir, "cache");
    tmp_join(records, dir, "records");
    unlink(in_file);
    ro.allocator = a;
    ro.n_threads = 1;
    co.path = in_file;
    lath_status st = lath_runtime_create(&ro, &rt, err);
    if (st == LATH_OK) st = lath_model_open(rt, path, NULL, &m, err);
    if (st == LATH_OK) st = lath_cache_open(rt, &co, &file, err);
    eo.cache = file;
    if (st == LATH_OK) st = lath_embedder_create(m, &eo, &e, err);
    if (st == LATH_OK) st = lath_embed(e, texts, 3, v, NULL, err);
    if (st == LATH_OK) st = lath_cache_export(e, records, NULL, err);
    co.path = NULL;
    co.max_entries = 2;
    if (st == LATH_OK) st = lath_cache_open(rt, &co, &memory, err);
    eo.cache = memory;
    if (st == LATH_OK) st = lath_embedder_create(m, &eo, &f, err);
    if (st == LATH_OK) st = lath_cache_import(f, records, NULL, err);
    if (st == LATH_OK) st = lath_embed(f, texts, 3, v, NULL, err);
    lath_embedder_destroy(e);
    lath_embedder_destroy(f);
    lath_cache_close(file);
    lath_cache_close(memory);
    lath_model_close(m);
    lath_runtime_destroy(rt);
    return st;
}

static void test_torture_cache(void **state)
{
    meter count = {0};
    lath_allocator a = {&count, meter_alloc, meter_resize, meter_release};
    lath_error err;
    char path[1024], dir[TMP_PATH];
    (void)state;
    snprintf(path, sizeof(path), "%s/golden/bert/mean_norm_gelu", test_data_dir());
    tmp_make(dir);
    assert_ok(run_cached(&a, path, dir, &err), err);
    const long total = atomic_load(&count.calls);
    assert_int_equal(atomic_load(&count.out), 0);
    for (long k = 1; k <= total; k++) {
        atomic_store(&count.calls, 0);
        atomic_store(&count.fail_at, k);
        const lath_status st = run_cached(&a, path, dir, &err);
        if (st != LATH_ERR_NOMEM || atomic_load(&count.out) != 0)
            fail_msg("allocation %ld of %ld failed, status %d (%s), %ld blocks leaked", k, total, (int)st, err.msg,
                     atomic_load(&count.out));
    }
    printf("    %-22s %ld allocations, each failed once\n", "cache", total);
    tmp_remove(dir);
}

/* Scores of pairs, cut ones among them. */
static lath_status run_scored(const lath_allocator *a, const char *path, lath_error *err)
{
    static const lath_text query = {"green river", 11};
    static const lath_text documents[] = {
        {"The green river runs.", 21}, {"", 0}, {"caf\xC3\xA9 [MASK] water water water water water water water", 54}};
    lath_runtime *rt = NULL;
    lath_model *m = NULL;
    lath_reranker *r = NULL;
    lath_rerank_result results[3];
    lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
    lath_rerank_options o = LATH_RERANK_OPTIONS_INIT;
    ro.allocator = a;
    ro.n_threads = 2;
    o.prompt_text = "query: ";
    o.batch_tokens = 8;
    lath_status st = lath_runtime_create(&ro, &rt, err);
    if (st == LATH_OK) st = lath_model_open(rt, path, NULL, &m, err);
    if (st == LATH_OK) st = lath_reranker_create(m, &o, &r, err);
    if (st == LATH_OK) st = lath_rerank(r, query, documents, 1, results, err);
    if (st == LATH_OK) st = lath_rerank(r, query, documents, 3, results, err);
    lath_reranker_destroy(r);
    lath_model_close(m);
    lath_runtime_destroy(rt);
    return st;
}

static void torture_scored(const char *name)
{
    meter count = {0};
    lath_allocator a = {&count, meter_alloc, meter_resize, meter_release};
    lath_error err;
    char path[1024];
    snprintf(path, sizeof(path), "%s/golden/rerank/%s", test_data_dir(), name);
    assert_ok(run_scored(&a, path, &err), err);
    const long total = atomic_load(&count.calls);
    assert_int_equal(atomic_load(&count.out), 0);
    long refused = 0; /* all but the table of a BPE tokenizer's words, which does without */
    for (long k = 1; k <= total; k++) {
        atomic_store(&count.calls, 0);
        atomic_store(&count.fail_at, k);
        const lath_status st = run_scored(&a, path, &err);
        refused += st == LATH_ERR_NOMEM;
        if ((st != LATH_ERR_NOMEM && st != LATH_OK) || atomic_load(&count.out) != 0)
            fail_msg("%s: allocation %ld of %ld failed, status %d (%s), %ld blocks leaked", name, k, total, (int)st,
                     err.msg, atomic_load(&count.out));
    }
    assert_in_range(refused, total - 1, total);
    printf("    %-22s %ld allocations, each failed once\n", name, total);
}

static void test_torture_scored(void **state)
{
    (void)state;
    torture_scored("bert_msmarco");
    torture_scored("modernbert_mean");
    torture_scored("qwen3_reranker_st6");
}

/* A prompt, a step, and the same again. */
static lath_status run_generated(const lath_allocator *a, const char *path, lath_error *err)
{
    static const int32_t ids[] = {1, 20, 7, 33, 90, 4, 4};
    lath_runtime *rt = NULL;
    lath_model *m = NULL;
    lath_session *s = NULL;
    lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
    lath_session_options so = LATH_SESSION_OPTIONS_INIT;
    ro.allocator = a;
    ro.n_threads = 2;
    so.ctx = 16;
    lath_status st = lath_runtime_create(&ro, &rt, err);
    if (st == LATH_OK) st = lath_model_open(rt, path, NULL, &m, err);
    if (st == LATH_OK) st = lath_session_create(m, &so, &s, err);
    if (st == LATH_OK) st = lath_session_append(s, ids, 7, err);
    if (st == LATH_OK) st = lath_session_append(s, ids, 1, err);
    if (st == LATH_OK) st = lath_session_mark(s, err);
    if (st == LATH_OK) st = lath_session_sync(s, ids, 5, NULL, err);
    lath_session_destroy(s);
    lath_model_close(m);
    lath_runtime_destroy(rt);
    return st;
}

static void torture_generated(const char *name)
{
    meter count = {0};
    lath_allocator a = {&count, meter_alloc, meter_resize, meter_release};
    lath_error err;
    char path[1024];
    snprintf(path, sizeof(path), "%s/golden/decoder/%s", test_data_dir(), name);
    assert_ok(run_generated(&a, path, &err), err);
    const long total = atomic_load(&count.calls);
    assert_int_equal(atomic_load(&count.out), 0);
    for (long k = 1; k <= total; k++) {
        atomic_store(&count.calls, 0);
        atomic_store(&count.fail_at, k);
        const lath_status st = run_generated(&a, path, &err);
        if ((st != LATH_ERR_NOMEM && st != LATH_OK) || atomic_load(&count.out) != 0)
            fail_msg("%s: allocation %ld of %ld failed, status %d (%s), %ld blocks leaked", name, k, total, (int)st,
                     err.msg, atomic_load(&count.out));
    }
    printf("    %-22s %ld allocations, each failed once\n", name, total);
}

static void test_torture_generated(void **state)
{
    (void)state;
    torture_generated("gemma3_pattern_linear");
    torture_generated("phi3_longrope");
    torture_generated("smollm3_slides");
    torture_generated("qwen3_moe_some_dense");
    torture_generated("qwen3_5_moe_text");
}

/* A session takes all of its memory at creation. */
static void no_allocation_in_a_session(const char *name)
{
    static const int32_t ids[] = {1, 20, 7, 33, 90, 4, 4};
    meter count = {0};
    lath_allocator a = {&count, meter_alloc, meter_resize, meter_release};
    lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
    lath_error err;
    lath_runtime *rt;
    lath_model *m;
    lath_session *s;
    char path[1024];
    snprintf(path, sizeof(path), "%s/golden/decoder/%s", test_data_dir(), name);
    ro.allocator = &a;
    assert_ok(lath_runtime_create(&ro, &rt, &err), err);
    assert_ok(lath_model_open(rt, path, NULL, &m, &err), err);
    assert_ok(lath_session_create(m, NULL, &s, &err), err);
    const long before = atomic_load(&count.calls);
    for (int i = 0; i < 5; i++) {
        assert_ok(lath_session_append(s, ids, 7, &err), err);
        assert_ok(lath_session_append(s, ids, 1, &err), err);
        if (i < 3) assert_ok(lath_session_mark(s, &err), err);
    }
    assert_int_equal(lath_session_rewind(s, 24), 24);
    assert_ok(lath_session_sync(s, ids, 5, NULL, &err), err);
    assert_int_equal(atomic_load(&count.calls), before);
    lath_session_destroy(s);
    lath_model_close(m);
    lath_runtime_destroy(rt);
}

static void test_no_allocation_in_a_session(void **state)
{
    (void)state;
    no_allocation_in_a_session("qwen3_moe");
    no_allocation_in_a_session("qwen3_5_text");
}

static void torture(const char *name)
{
    meter count = {0};
    lath_allocator a = {&count, meter_alloc, meter_resize, meter_release};
    lath_error err;
    char path[1024];
    snprintf(path, sizeof(path), "%s/golden/%s", test_data_dir(), name);
    assert_ok(run_all(&a, path, &err), err);
    long total = atomic_load(&count.calls);
    assert_int_equal(atomic_load(&count.out), 0);
    assert_true(total > 20);
    long without = 0; /* what is done without: the table of a BPE tokenizer's words, machine code of patterns */
    for (long k = 1; k <= total; k++) {
        atomic_store(&count.calls, 0);
        atomic_store(&count.fail_at, k);
        lath_status st = run_all(&a, path, &err);
        without += st == LATH_OK;
        if (st != LATH_ERR_NOMEM && (st != LATH_OK || without > 8))
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
    torture("bert/mean_norm_gelu");
    torture("bert/dense_tanh");
    torture("bert/f16_gelu_tanh");
    torture("bert/plain_vocab_txt");
    torture("bert/sharded");
    torture("bert/f8_e5m2_sharded");
    torture("gguf_embed/bert/mean_norm_gelu/model.gguf");
    torture("gguf/llama3_scaling_tied/model.gguf");
    torture("gguf/phi3_longrope/model.gguf");
}

/* After the first call of a size no further memory is taken; nor by what a cache has. */
static void no_allocation(bool cached)
{
    lath_cache *c = NULL;
    lath_embed_options eo = LATH_EMBED_OPTIONS_INIT;
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
    if (cached) assert_ok(lath_cache_open(rt, NULL, &c, &err), err);
    eo.cache = c;
    assert_ok(lath_embedder_create(m, &eo, &e, &err), err);
    assert_ok(lath_embed(e, texts, 2, v, NULL, &err), err);
    long before = atomic_load(&count.calls);
    for (int i = 0; i < 5; i++) assert_ok(lath_embed(e, texts, 2, v, NULL, &err), err);
    assert_int_equal(atomic_load(&count.calls), before);
    lath_embedder_destroy(e);
    lath_cache_close(c);
    lath_model_close(m);
    lath_runtime_destroy(rt);
}

static void test_no_allocation_in_a_step(void **state)
{
    (void)state;
    no_allocation(false);
    no_allocation(true);
}

/* An index of that type in a new file, one made of it, and searches with and without a filter. */
static lath_status run_index(const lath_allocator *a, const char *path, lath_index_type type, lath_error *err)
{
    static const float rows[] = {1, 0, 0, 0.6f, 0.8f, 0, 0, 0, 1, 0, 0.6f, 0.8f};
    static const lath_index_row at[4] = {{{0, 1}, {1, 1}}, {{2, 1}, {2, 2}}, {{4, 1}, {3, 3}}, {{6, 1}, {4, 4}}};
    static const uint8_t allowed[4] = {1, 0, 1, 1};
    const lath_index_key key = {{1, 2}, 3, {4, 5}, 8};
    const lath_index_options io = {sizeof(io), type};
    lath_runtime *rt = NULL;
    lath_index_writer *w = NULL, *v = NULL;
    lath_index *x = NULL;
    lath_hit hits[8];
    lath_index_row row;
    size_t n;
    lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
    lath_index_search_options so = LATH_INDEX_SEARCH_OPTIONS_INIT;
    ro.allocator = a;
    ro.n_threads = 2;
    so.k = 2;
    so.allowed = allowed;
    lath_status st = lath_runtime_create(&ro, &rt, err);
    if (st == LATH_OK) st = lath_index_create_with(rt, path, &key, 3, &io, &w, err);
    if (st == LATH_OK) st = lath_index_add_rows(w, rows, at, 4, err);
    if (st == LATH_OK) {
        st = lath_index_commit(w, err);
        w = NULL;
    }
    if (st == LATH_OK) st = lath_index_open(rt, path, LATH_LOAD_MAP, &x, err);
    if (st == LATH_OK) st = lath_index_create_with(rt, path, &key, 3, &io, &v, err);
    if (st == LATH_OK) st = lath_index_copy_rows(v, x, 1, at, 2, err);
    if (st == LATH_OK) {
        st = lath_index_commit(v, err);
        v = NULL;
    }
    if (st == LATH_OK) st = lath_index_get_row(x, 3, &row, err);
    if (st == LATH_OK) st = lath_index_search(x, rows, 2, 4, hits, err);
    if (st == LATH_OK) st = lath_index_search_with(x, rows, 2, &so, hits, &n, err);
    if (st == LATH_OK) st = lath_index_verify(x, err);
    lath_index_abort(w);
    lath_index_abort(v);
    lath_index_close(x);
    lath_runtime_destroy(rt);
    return st;
}

static void test_torture_index(void **state)
{
    meter count = {0};
    lath_allocator a = {&count, meter_alloc, meter_resize, meter_release};
    lath_error err;
    char dir[TMP_PATH], path[TMP_PATH];
    (void)state;
    tmp_make(dir);
    tmp_join(path, dir, "x.lath");
    for (int type = LATH_INDEX_F32; type <= LATH_INDEX_INT8; type++) {
        atomic_store(&count.calls, 0);
        atomic_store(&count.fail_at, 0);
        assert_ok(run_index(&a, path, (lath_index_type)type, &err), err);
        const long total = atomic_load(&count.calls);
        assert_int_equal(atomic_load(&count.out), 0);
        for (long k = 1; k <= total; k++) {
            atomic_store(&count.calls, 0);
            atomic_store(&count.fail_at, k);
            const lath_status st = run_index(&a, path, (lath_index_type)type, &err);
            if (st != LATH_ERR_NOMEM || atomic_load(&count.out) != 0)
                fail_msg("type %d: allocation %ld of %ld failed, status %d (%s), %ld blocks leaked", type, k, total,
                         (int)st, err.msg, atomic_load(&count.out));
        }
        printf("    index of type %d        %ld allocations, each failed once\n", type, total);
    }
    tmp_delete(dir, "x.lath");
    assert_int_equal(rmdir(dir), 0); /* no temporary file is left */
}

static lath_status run_quantize(const lath_allocator *a, const char *source, const char *path, lath_error *err)
{
    lath_runtime *rt = NULL;
    lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
    lath_quantize_options qo = LATH_QUANTIZE_OPTIONS_INIT;
    ro.allocator = a;
    ro.n_threads = 2;
    qo.type = LATH_GGUF_Q4_K;
    lath_status st = lath_runtime_create(&ro, &rt, err);
    if (st == LATH_OK) st = lath_quantize(rt, source, path, &qo, NULL, err);
    lath_runtime_destroy(rt);
    return st;
}

/* A GGUF file of a model with tokenizer of that kind; of a run that failed nothing is left. */
static void torture_quantize(const char *name)
{
    meter count = {0};
    lath_allocator a = {&count, meter_alloc, meter_resize, meter_release};
    lath_error err;
    char dir[TMP_PATH], path[TMP_PATH], source[1024];
    snprintf(source, sizeof(source), "%s/golden/%s", test_data_dir(), name);
    tmp_make(dir);
    tmp_join(path, dir, "x.gguf");
    assert_ok(run_quantize(&a, source, path, &err), err);
    const long total = atomic_load(&count.calls);
    assert_int_equal(atomic_load(&count.out), 0);
    tmp_delete(dir, "x.gguf");
    for (long k = 1; k <= total; k++) {
        atomic_store(&count.calls, 0);
        atomic_store(&count.fail_at, k);
        const lath_status st = run_quantize(&a, source, path, &err);
        if (st != LATH_ERR_NOMEM || atomic_load(&count.out) != 0)
            fail_msg("%s: allocation %ld of %ld failed, status %d (%s), %ld blocks leaked", name, k, total, (int)st,
                     err.msg, atomic_load(&count.out));
    }
    printf("    %-22s %ld allocations, each failed once\n", name, total);
    assert_int_equal(rmdir(dir), 0);
}

static void test_torture_quantize(void **state)
{
    (void)state;
    torture_quantize("decoder/llama3_scaling_tied");
    torture_quantize("qwen3/embedding_old");
}

/* An index of a model; with `walk` one of its features is looked for through the index that is there. */
static lath_status run_features(const lath_allocator *a, const char *source, const char *dir, bool walk,
                                lath_error *err)
{
    static const int32_t ids[] = {5, 9, 17};
    lath_runtime *rt = NULL;
    lath_model *m = NULL;
    lath_vindex *x = NULL;
    lath_walk *w = NULL;
    lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
    lath_walk_options wo = LATH_WALK_OPTIONS_INIT;
    ro.allocator = a;
    ro.n_threads = 2;
    wo.k = 3;
    lath_status st = lath_runtime_create(&ro, &rt, err);
    if (st == LATH_OK && !walk) st = lath_extract(rt, source, dir, NULL, NULL, err);
    if (st == LATH_OK && walk) st = lath_model_open(rt, dir, NULL, &m, err);
    if (st == LATH_OK && walk) st = lath_vindex_open(rt, dir, &x, err);
    if (st == LATH_OK && walk) st = lath_vindex_verify(x, NULL, NULL, err);
    if (st == LATH_OK && walk) st = lath_walk_run(m, x, ids, 3, &wo, &w, err);
    lath_walk_close(w);
    lath_vindex_close(x);
    lath_model_close(m);
    lath_runtime_destroy(rt);
    return st;
}

/* Of an extract that failed there is no index; one that is there is read as often. */
static void torture_features(const char *name)
{
    meter count = {0};
    lath_allocator a = {&count, meter_alloc, meter_resize, meter_release};
    lath_error err;
    char tmp[TMP_PATH], good[TMP_PATH], dir[TMP_PATH], source[1024];
    snprintf(source, sizeof(source), "%s/golden/%s", test_data_dir(), name);
    tmp_make(tmp);
    tmp_join(good, tmp, "good");
    tmp_join(dir, tmp, "x");
    for (int walk = 0; walk < 2; walk++) {
        atomic_store(&count.calls, 0);
        atomic_store(&count.fail_at, 0);
        assert_ok(run_features(&a, source, good, walk, &err), err);
        const long total = atomic_load(&count.calls);
        assert_int_equal(atomic_load(&count.out), 0);
        for (long k = 1; k <= total; k++) {
            atomic_store(&count.calls, 0);
            atomic_store(&count.fail_at, k);
            const lath_status st = run_features(&a, source, walk ? good : dir, walk, &err);
            if (st != LATH_ERR_NOMEM || atomic_load(&count.out) != 0)
                fail_msg("%s: allocation %ld of %ld failed, status %d (%s), %ld blocks leaked", name, k, total, (int)st,
                         err.msg, atomic_load(&count.out));
            assert_int_not_equal(access(dir, F_OK), 0);
        }
        printf("    %-22s %ld allocations, each failed once\n", walk ? "walk" : "extract", total);
    }
    tmp_remove(tmp);
}

static void test_torture_features(void **state)
{
    (void)state;
    torture_features("decoder/qwen3_bias_untied");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_torture),
                                       cmocka_unit_test(test_torture_cache),
                                       cmocka_unit_test(test_torture_scored),
                                       cmocka_unit_test(test_torture_index),
                                       cmocka_unit_test(test_torture_quantize),
                                       cmocka_unit_test(test_torture_features),
                                       cmocka_unit_test(test_no_allocation_in_a_step),
                                       cmocka_unit_test(test_torture_generated),
                                       cmocka_unit_test(test_no_allocation_in_a_session)};
    return TEST_RUN(tests);
}
