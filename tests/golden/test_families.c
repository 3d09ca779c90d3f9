/* SPDX-License-Identifier: Apache-2.0
 *
 * test_families.c [--gguf] FAMILY [CASE]: every directory of tests/golden/FAMILY (tiny random models with odd shapes, made by tools/ref from the reference
 * implementation), or the GGUF files of tests/golden/gguf_embed/FAMILY, which are the same models: token ids, vectors, and per-layer tensors; then the invariants that hold without a reference: the vector of a text has the same
 * bits alone, in any batch, at 1, 2 and 3 threads; a negative control shows that the comparison can fail.
 */
#include <math.h>

#include "engine/engine.h"
#include "support/golden.h"
#include "support/test.h"

static const char *family, *only; /* the program's arguments; only: NULL for all cases */
static bool from_gguf;
static const double MAX_ABS = 1e-4, LAYER_REL = 1e-4, MIN_COSINE = 0.99999;

typedef struct opened {
    lath_runtime *rt;
    lath_model *model;
} opened;

static opened open_model(const char *path, int32_t threads, lath_isa isa, lath_load load)
{
    opened o;
    lath_error err;
    lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
    lath_model_options mo = LATH_MODEL_OPTIONS_INIT;
    ro.n_threads = threads;
    ro.isa = isa;
    mo.load = load;
    char file[1500];
    if (from_gguf) {
        test_path(file, sizeof(file), "golden/gguf_embed", family);
        snprintf(file + strlen(file), sizeof(file) - strlen(file), "%s/model.gguf", strrchr(path, '/'));
        path = file;
    }
    assert_ok(lath_runtime_create(&ro, &o.rt, &err), err);
    assert_ok(lath_model_open(o.rt, path, &mo, &o.model, &err), err);
    return o;
}

static void close_model(opened o)
{
    lath_model_close(o.model);
    lath_runtime_destroy(o.rt);
}

static void embed_one(const lath_model *m, const golden_text *t, float *out, lath_embed_result *res)
{
    lath_embedder *e;
    lath_error err;
    lath_embed_options o = LATH_EMBED_OPTIONS_INIT;
    o.prompt_name = t->prompt_name;
    o.prompt_text = t->prompt;
    assert_ok(lath_embedder_create(m, &o, &e, &err), err);
    if ((size_t)lath_embedder_dim(e) != t->dim)
        fail_msg("%lld numbers, want %zu", (long long)lath_embedder_dim(e), t->dim);
    lath_text text = {t->text, t->len};
    assert_ok(lath_embed(e, &text, 1, out, res, &err), err);
    lath_embedder_destroy(e);
}

/* Without the texts that have a prompt: GGUF files say nothing about prompts. */
static void drop_prompts(golden *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++)
        if (!g->texts[i].prompt && !g->texts[i].prompt_name) g->texts[n++] = g->texts[i];
    g->n = n;
}

/* Calls `check` with the path, the name and the expectations of every case of the family. */
static void each_case(void (*check)(const char *path, const char *name, golden *g, void *ctx), void *ctx)
{
    arena mem;
    char dir[1024], path[1400], file[1500];
    size_t n;
    arena_init(&mem, alloc_default());
    test_path(dir, sizeof(dir), from_gguf ? "golden/gguf_embed" : "golden", family);
    const char **names = test_list_dirs(&mem, dir, &n);
    test_path(dir, sizeof(dir), "golden", family);
    size_t checked = 0;
    for (size_t i = 0; i < n; i++) {
        golden g;
        if (only && strcmp(only, names[i]) != 0) continue;
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        snprintf(file, sizeof(file), "%s/expected.json", path);
        golden_load(&g, file);
        if (from_gguf) drop_prompts(&g);
        check(path, names[i], &g, ctx);
        golden_release(&g);
        checked++;
    }
    if (checked == 0) fail_msg("%s has no %s", dir, only ? only : "case");
    arena_deinit(&mem);
}

/* ------------------------------------------------------------------------------------------------- vectors and ids */

static void check_ids(const lath_model *m, const golden_text *t, const char *name)
{
    if (!t->n_ids || t->prompt_name || t->prompt || m->st.default_prompt)
        return; /* ids of the reference hold the prompt */
    lath_tokens tokens = {0};
    lath_error err;
    lath_encode_options o = LATH_ENCODE_OPTIONS_INIT;
    o.max_tokens = m->max_tokens;
    assert_ok(lath_encode(&m->tokenizer, (lath_text){t->text, t->len}, &o, &tokens, &err), err);
    if (tokens.n != t->n_ids || memcmp(tokens.ids, t->ids, t->n_ids * sizeof(int32_t)) != 0)
        fail_msg("%s: ids differ for \"%s\"", name, t->text);
    if (t->n_untruncated) assert_int_equal(tokens.n_untruncated, t->n_untruncated);
    lath_tokens_release(&tokens);
}

static double check_vectors(const char *path, const char *name, golden *g, lath_isa isa, lath_load load)
{
    double worst = 0;
    opened o = open_model(path, 1, isa, load);
    for (size_t i = 0; i < g->n; i++) {
        const golden_text *t = &g->texts[i];
        float *v = arena_array(&g->mem, t->dim, sizeof(float));
        lath_embed_result res;
        check_ids(o.model, t, name);
        embed_one(o.model, t, v, &res);
        double d = golden_max_abs(v, t->vector, t->dim), c = golden_cosine(v, t->vector, t->dim), scale = 1;
        for (size_t k = 0; k < t->dim; k++)
            scale = fmax(scale, fabs((double)t->vector[k])); /* vectors that are not normalised */
        if (!(d <= MAX_ABS * scale) || !(c >= MIN_COSINE))
            fail_msg("%s: text %zu \"%s\": max abs %g, cosine %.8f", name, i, t->text, d, c);
        assert_int_equal(res.n_tokens, t->n_ids);
        assert_int_equal(res.truncated, t->n_untruncated > t->n_ids);
        worst = fmax(worst, d / scale);
    }
    close_model(o);
    return worst;
}

static void vectors_of(const char *path, const char *name, golden *g, void *ctx)
{
    (void)ctx;
    double best = check_vectors(path, name, g, LATH_ISA_AUTO, LATH_LOAD_MAP),
           ref = check_vectors(path, name, g, LATH_ISA_REF, LATH_LOAD_COPY);
    printf("    %-22s max abs %.1e (best kernels), %.1e (reference kernels)\n", name, best, ref);
}

static void test_vectors(void **state)
{
    (void)state;
    each_case(vectors_of, NULL);
}

/* ------------------------------------------------------------------------------------------------------- per layer */

typedef struct layer_check {
    const safetensors *want;
    const char *name;
    int text;
    int seen;
    double worst;
} layer_check;

/* x against the reference's tensor of that name. */
static void compare_rows(layer_check *c, stream *s, const char *key, view x)
{
    const tensor *t = safetensors_find(c->want, key);
    if (!t) fail_msg("%s: no reference tensor %s", c->name, key);
    assert_int_equal(t->dim[0], x.n_tok);
    assert_int_equal(t->dim[1], x.d);
    float *have = test_malloc((size_t)t->count * sizeof(float)), *want = test_malloc((size_t)t->count * sizeof(float));
    dtype_to_f32(t->type, t->data, (size_t)t->count, want);
    assert_int_equal(s->ops->read_rows(s, x, 0, x.n_tok, have), LATH_OK);
    double largest = 0;
    for (int64_t i = 0; i < t->count; i++) largest = fmax(largest, fabs((double)want[i]));
    double d = golden_max_abs(have, want, (size_t)t->count) / largest;
    if (!(d <= LAYER_REL)) fail_msg("%s: %s: %g of its largest value", c->name, key, d);
    c->worst = fmax(c->worst, d);
    c->seen++;
    test_free(have);
    test_free(want);
}

static lath_status see(void *ctx, const fwd *f, trace_event *e)
{
    static const char *const names[TRACE_COUNT] = {[TRACE_EMBED] = "embed",
                                                   [TRACE_ATTN_OUT] = "attn_out",
                                                   [TRACE_FFN_IN] = "attn_norm",
                                                   [TRACE_FFN_OUT] = "ffn_out",
                                                   [TRACE_RESIDUAL] = "residual"};
    layer_check *c = ctx;
    char key[64];
    if (!names[e->point]) return LATH_OK; /* FINAL: see trace_text; the others: test_inside.c */
    if (e->layer < 0)
        snprintf(key, sizeof(key), "t%d.%s", c->text, names[e->point]);
    else
        snprintf(key, sizeof(key), "t%d.layer.%d.%s", c->text, e->layer, names[e->point]);
    compare_rows(c, f->s, key, e->x);
    return LATH_OK;
}

/* The forward itself on the reference's token ids, with a sink at every trace point. */
static void trace_text(lath_model *m, const golden_text *t, layer_check *c)
{
    lath_error err = {0};
    const backend_ops *ops = m->rt->ops;
    packer pack;
    packer_init(&pack, alloc_default(), &m->arch.dims);
    int32_t *types = test_calloc(t->n_ids, sizeof(int32_t));
    assert_ok(packer_grow(&pack, (int64_t)t->n_ids, 1, &err), err);
    packer_clear(&pack);
    packer_add(&pack, t->ids, types, (int64_t)t->n_ids);
    stream s = {.ops = ops, .pool = m->rt->pool, .kern = &m->rt->kern, .err = &err};
    s.limits = arch_limits(&m->arch, (int64_t)t->n_ids, (int64_t)t->n_ids);
    size_t state = m->arch.desc->state_floats(&m->arch, ops, (int64_t)t->n_ids),
           all = state + ops->scratch_floats(&s, &s.limits);
    float *memory = alloc_bytes(alloc_default(), all * sizeof(float), 64);
    assert_non_null(memory);
    memset(memory, 0, all * sizeof(float));
    s.scratch = memory + state;
    const trace_sink sink = {.see = see, .ctx = c};
    const fwd f = {.s = &s, .b = &pack.b, .trace = &sink};
    view out;
    pool_enter(s.pool);
    assert_ok(m->arch.desc->forward(&m->arch, &f, memory, &out), err);
    char key[64];
    snprintf(key, sizeof(key), "t%d.final", c->text); /* only where there is a norm after the last layer */
    if (safetensors_find(c->want, key)) {
        compare_rows(c, &s, key, out);
        c->seen--;
    }
    pool_leave(s.pool);
    alloc_release(alloc_default(), memory, all * sizeof(float));
    packer_deinit(&pack);
    test_free(types);
}

static void layers_of(const char *path, const char *name, golden *g, void *ctx)
{
    (void)ctx;
    char file[1500];
    lath_error err;
    layer_check c = {.name = name};
    safetensors *want;
    snprintf(file, sizeof(file), "%s/layers.safetensors", path);
    assert_ok(safetensors_open(alloc_default(), file, FILE_MAP, &want, &err), err);
    c.want = want;
    opened o = open_model(path, 2, LATH_ISA_AUTO, LATH_LOAD_MAP);
    for (c.text = 0; c.text <= 3; c.text += 3) trace_text(o.model, &g->texts[c.text], &c);
    assert_true(o.model->arch.dims.n_layers > 0);
    assert_int_equal(c.seen, 2 * (1 + 4 * o.model->arch.dims.n_layers));
    printf("    %-22s %d tensors, worst %.1e of the largest value\n", name, c.seen, c.worst);
    close_model(o);
    safetensors_close(want);
}

static void test_layers(void **state)
{
    (void)state;
    each_case(layers_of, NULL);
}

/* ---------------------------------------------------------------------------------------------------- inner layers */

/* The mean over the tokens of a reference tensor [n_tok, d]. */
static void mean_of(const safetensors *want, const char *key, size_t d, double *out)
{
    const tensor *t = safetensors_find(want, key);
    if (!t) fail_msg("no reference tensor %s", key);
    assert_int_equal(t->dim[1], d);
    float *rows = test_malloc((size_t)t->count * sizeof(float));
    dtype_to_f32(t->type, t->data, (size_t)t->count, rows);
    for (size_t f = 0; f < d; f++) {
        out[f] = 0;
        for (int64_t i = 0; i < t->dim[0]; i++) out[f] += (double)rows[(size_t)i * d + f] / (double)t->dim[0];
    }
    test_free(rows);
}

/* Vectors of all layers, pooled by the mean, against the means of the reference's layers. Behind the last one there may be a norm. */
static void inner_of(const char *path, const char *name, golden *g, void *ctx)
{
    (void)ctx;
    char file[1500], key[64];
    lath_error err;
    lath_embedder *e;
    safetensors *want;
    snprintf(file, sizeof(file), "%s/layers.safetensors", path);
    assert_ok(safetensors_open(alloc_default(), file, FILE_MAP, &want, &err), err);
    opened o = open_model(path, 2, LATH_ISA_AUTO, LATH_LOAD_MAP);
    if (!o.model->st.include_prompt) goto done; /* means of fewer tokens */
    const int32_t n_layers = o.model->arch.dims.n_layers;
    const size_t d = (size_t)o.model->arch.dims.d_model;
    lath_embed_options eo = LATH_EMBED_OPTIONS_INIT;
    eo.layer = LATH_LAYER_ALL;
    eo.pooling = LATH_POOLING_MEAN;
    eo.normalize = 0;
    eo.dim = (int32_t)d;
    assert_ok(lath_embedder_create(o.model, &eo, &e, &err), err);
    assert_int_equal(lath_embedder_layers(e), n_layers + 1);
    assert_int_equal(lath_embedder_dim(e), d);
    float *have = test_malloc((size_t)(n_layers + 1) * d * sizeof(float));
    double *mean = test_malloc(d * sizeof(double));
    const lath_text text = {g->texts[3].text, g->texts[3].len};
    assert_ok(lath_embed(e, &text, 1, have, NULL, &err), err);
    for (int32_t l = 0; l <= n_layers; l++) {
        snprintf(key, sizeof(key), l == 0 ? "t3.embed" : "t3.layer.%d.residual", l - 1);
        if (l == n_layers && safetensors_find(want, "t3.final")) snprintf(key, sizeof(key), "t3.final");
        mean_of(want, key, d, mean);
        for (size_t f = 0; f < d; f++) {
            const double got = (double)have[(size_t)l * d + f];
            if (!(fabs(got - mean[f]) <= LAYER_REL * fmax(1, fabs(mean[f]))))
                fail_msg("%s: layer %d, feature %zu: %g, want %g", name, l, f, got, mean[f]);
        }
    }
    test_free(have);
    test_free(mean);
    lath_embedder_destroy(e);
done:
    close_model(o);
    safetensors_close(want);
}

static void test_inner(void **state)
{
    (void)state;
    each_case(inner_of, NULL);
}

/* ------------------------------------------------------------------------------------------------------- invariance */

static void embed_many(const lath_model *m, const golden *g, size_t n, int32_t batch_tokens, float *out)
{
    lath_embedder *e;
    lath_error err;
    lath_embed_options o = LATH_EMBED_OPTIONS_INIT;
    o.batch_tokens = batch_tokens;
    assert_ok(lath_embedder_create(m, &o, &e, &err), err);
    lath_text *texts = test_calloc(n, sizeof(*texts));
    for (size_t i = 0; i < n; i++) texts[i] = (lath_text){g->texts[i].text, g->texts[i].len};
    assert_ok(lath_embed(e, texts, n, out, NULL, &err), err);
    test_free(texts);
    lath_embedder_destroy(e);
}

static void invariance_of(const char *path, const char *name, golden *g, void *ctx)
{
    static const int32_t budgets[] = {1, 7, 33, 64, 1000};
    static const lath_isa isas[] = {LATH_ISA_AUTO, LATH_ISA_REF};
    (void)ctx;
    size_t dim = g->texts[0].dim, n = 0;
    while (n < g->n && !g->texts[n].prompt && !g->texts[n].prompt_name) n++; /* one batch has one prompt */
    assert_true(n > 1);
    float *alone = test_calloc(n * dim, sizeof(float)), *together = test_calloc(n * dim, sizeof(float));
    for (size_t k = 0; k < 2; k++) {
        for (int32_t threads = 1; threads <= 3; threads++) {
            opened o = open_model(path, threads, isas[k], LATH_LOAD_MAP);
            if (threads == 1) {
                for (size_t i = 0; i < n; i++) embed_one(o.model, &g->texts[i], alone + i * dim, NULL);
            }
            for (size_t b = 0; b < sizeof(budgets) / sizeof(budgets[0]); b++) {
                embed_many(o.model, g, n, budgets[b], together);
                if (memcmp(alone, together, n * dim * sizeof(float)) != 0)
                    fail_msg("%s: other bits in batches of %d tokens, %d threads", name, budgets[b], threads);
            }
            close_model(o);
        }
    }
    test_free(alone);
    test_free(together);
}

static void test_invariance(void **state)
{
    (void)state;
    each_case(invariance_of, NULL);
}

/* Another pooling than the model's must differ: the comparison above sees something. */
static void negative_of(const char *path, const char *name, golden *g, void *ctx)
{
    const json_value *pooling = json_get(g->json, "pooling");
    int *checked = ctx;
    lath_error err;
    if (pooling->kind != JSON_STRING) return;
    opened o = open_model(path, 1, LATH_ISA_AUTO, LATH_LOAD_MAP);
    lath_embed_options eo = LATH_EMBED_OPTIONS_INIT;
    eo.pooling = strcmp(pooling->u.string.data, "cls") == 0 ? LATH_POOLING_MEAN : LATH_POOLING_CLS;
    lath_embedder *e;
    assert_ok(lath_embedder_create(o.model, &eo, &e, &err), err);
    if ((size_t)lath_embedder_dim(e) == g->texts[0].dim) {
        float *v = arena_array(&g->mem, g->texts[0].dim, sizeof(float));
        lath_text text = {g->texts[0].text, g->texts[0].len};
        assert_ok(lath_embed(e, &text, 1, v, NULL, &err), err);
        double d = golden_max_abs(v, g->texts[0].vector, g->texts[0].dim);
        if (!(d > 100 * MAX_ABS)) fail_msg("%s: another pooling gives the same vector: %g", name, d);
        (*checked)++;
    }
    lath_embedder_destroy(e);
    close_model(o);
}

static void test_negative(void **state)
{
    (void)state;
    int checked = 0;
    each_case(negative_of, &checked);
    assert_true(checked > 0);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--gguf") == 0) {
        from_gguf = true;
        argv[1] = argv[0];
        argc--, argv++;
    }
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: %s [--gguf] FAMILY [CASE], a directory of tests/golden\n", argv[0]);
        return 2;
    }
    family = argv[1];
    only = argv[2];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),    cmocka_unit_test(test_layers),   cmocka_unit_test(test_inner),
        cmocka_unit_test(test_invariance), cmocka_unit_test(test_negative),
    };
    return TEST_RUN(tests);
}
