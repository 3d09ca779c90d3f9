/* SPDX-License-Identifier: Apache-2.0
 *
 * test_real.c: real encoders against the values of the reference implementation in tests/golden/real: token ids, vectors (cosine >= 0.99999, max abs
 * <= 1e-4), alone and in one batch bit for bit. The models are looked up in $LATH_MODELS; what is absent is skipped and said.
 */
#include <unistd.h>

#include "lath/lath.h"
#include "support/golden.h"
#include "support/test.h"

static const char *const models[] = {"all-MiniLM-L6-v2", "e5-small-v2-int8w", "multilingual-e5-small-q4w"};

static void check_model(const char *name, lath_isa isa)
{
    char file[1024], path[1024];
    golden g;
    lath_error err;
    lath_runtime *rt;
    lath_model *m;
    lath_embedder *e;
    lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
    ro.isa = isa;
    snprintf(file, sizeof(file), "%s.json", name);
    test_path(path, sizeof(path), "golden/real", file);
    golden_load(&g, path);
    snprintf(path, sizeof(path), "%s/%s", test_models_dir(), name);
    assert_ok(lath_runtime_create(&ro, &rt, &err), err);
    assert_ok(lath_model_open(rt, path, NULL, &m, &err), err);
    assert_ok(lath_embedder_create(m, NULL, &e, &err), err);
    size_t d = (size_t)lath_embedder_dim(e);
    float *alone = test_calloc(g.n * d, sizeof(float)), *together = test_calloc(g.n * d, sizeof(float));
    lath_text *texts = test_calloc(g.n, sizeof(*texts));
    double worst = 0, least = 1;
    for (size_t i = 0; i < g.n; i++) {
        const golden_text *t = &g.texts[i];
        lath_embed_result res;
        texts[i] = (lath_text){t->text, t->len};
        assert_int_equal(t->dim, d);
        assert_ok(lath_embed(e, &texts[i], 1, alone + i * d, &res, &err), err);
        assert_int_equal(res.n_tokens, t->n_ids);
        double a = golden_max_abs(alone + i * d, t->vector, d), c = golden_cosine(alone + i * d, t->vector, d);
        if (!(a <= 1e-4) || !(c >= 0.99999)) fail_msg("%s: text %zu: max abs %g, cosine %.8f", name, i, a, c);
        worst = a > worst ? a : worst;
        least = c < least ? c : least;
    }
    assert_ok(lath_embed(e, texts, g.n, together, NULL, &err), err);
    assert_memory_equal(alone, together, g.n * d * sizeof(float));
    printf("    %-22s isa %-6s %zu texts: max abs %.1e, cosine >= %.8f\n", name, lath_runtime_isa(rt), g.n, worst,
           least);
    lath_embedder_destroy(e);
    lath_model_close(m);
    lath_runtime_destroy(rt);
    test_free(alone);
    test_free(together);
    test_free(texts);
    golden_release(&g);
}

static void test_models(void **state)
{
    (void)state;
    int ran = 0;
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        char path[1024];
        snprintf(path, sizeof(path), "%s/%s/config.json", test_models_dir(), models[i]);
        if (access(path, R_OK) != 0) {
            printf("    skipped: %s is absent\n", models[i]);
            continue;
        }
        check_model(models[i], LATH_ISA_AUTO);
        ran++;
    }
    assert_true(ran > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_models)};
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s/config.json", test_models_dir() ? test_models_dir() : "", models[0]);
    if (!test_models_dir() || access(path, R_OK) != 0) return test_skip("all-MiniLM-L6-v2 is not in $LATH_MODELS");
    return TEST_RUN(tests);
}
