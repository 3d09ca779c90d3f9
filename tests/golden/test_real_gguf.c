/* SPDX-License-Identifier: Apache-2.0
 *
 * test_real_gguf.c: a real language model in a GGUF file (tensors of Q4_K, Q5_0, Q6_K, Q8_0 and F32) against what the reference gives for the numbers of its blocks
 * (tests/golden/real): ids of the prompts; then, with the reference's own tokens behind them, at each of 32 positions the likeliest token where it is
 * ahead by more than 1e-3, and the logarithms of the five largest probabilities within 1e-3. The model is looked up in $LATH_MODELS.
 */
#include <math.h>
#include <unistd.h>

#include "support/forward.h"
#include "support/golden.h"
#include "support/test.h"

static const char name[] = "gemma-3-270m-q4_k_m";
static const double BAR = 1e-3;
enum { MAX_IDS = 128 };

static lath_runtime *rt;
static lath_model *model;

static int64_t read_ids(const json_value *list, int32_t *out, int64_t n)
{
    for (const json_value *v = list->u.items.first; v; v = v->next) {
        assert_true(n < MAX_IDS && v->kind == JSON_INT);
        out[n++] = (int32_t)v->u.integer;
    }
    return n;
}

static void check_prompt_ids(const json_value *t, const int32_t *want, int64_t n)
{
    lath_error err;
    lath_tokens tokens = {0};
    const json_value *text = json_get(t, "text");
    assert_ok(lath_encode(lath_model_tokenizer(model), (lath_text){text->u.string.data, text->u.string.len}, NULL,
                          &tokens, &err),
              err);
    if (tokens.n != (size_t)n || memcmp(tokens.ids, want, (size_t)n * sizeof(*want)) != 0)
        fail_msg("other ids for \"%s\"", text->u.string.data);
    lath_tokens_release(&tokens);
}

/* One position against [[id, log p], ...], the likeliest first. */
static double check_step(const float *logits, int64_t vocab, const json_value *best, double margin)
{
    double largest = -INFINITY, sum = 0, worst = 0;
    int64_t argmax = 0;
    for (int64_t i = 0; i < vocab; i++) {
        assert_true(isfinite(logits[i]));
        if ((double)logits[i] > largest) {
            largest = (double)logits[i];
            argmax = i;
        }
    }
    for (int64_t i = 0; i < vocab; i++) sum += exp((double)logits[i] - largest);
    const double log_sum = largest + log(sum);
    for (const json_value *v = best->u.items.first; v; v = v->next) {
        const json_value *id = v->u.items.first;
        const double p = (double)logits[id->u.integer] - log_sum;
        if (!(fabs(p - id->next->u.real) <= BAR))
            fail_msg("token %lld: log p %.5f, want %.5f", (long long)id->u.integer, p, id->next->u.real);
        worst = fmax(worst, fabs(p - id->next->u.real));
    }
    if (margin > BAR) assert_int_equal(argmax, best->u.items.first->u.items.first->u.integer);
    return worst;
}

static double check_text(const json_value *t)
{
    int32_t ids[MAX_IDS];
    const int64_t n = read_ids(json_get(t, "ids"), ids, 0), all = read_ids(json_get(t, "greedy"), ids, n),
                  vocab = model->arch.dims.vocab_size;
    double worst = 0;
    int64_t at = n - 1;
    check_prompt_ids(t, ids, n);
    float *logits = test_malloc(sizeof(float) * (size_t)(all * vocab));
    test_forward(model, &(prompt_ids){ids, all}, 1, NULL, logits);
    const json_value *margin = json_get(t, "margins")->u.items.first;
    for (const json_value *s = json_get(t, "steps")->u.items.first; s; s = s->next, margin = margin->next, at++)
        worst = fmax(worst, check_step(logits + at * vocab, vocab, s, margin->u.real));
    assert_int_equal(at, all - 1);
    test_free(logits);
    return worst;
}

static void test_against_reference(void **state)
{
    (void)state;
    char path[1024], file[64];
    golden g = {0};
    json_value *root;
    lath_error err;
    arena_init(&g.mem, alloc_default());
    snprintf(file, sizeof(file), "%s.json", name);
    test_path(path, sizeof(path), "golden/real", file);
    assert_ok(json_load(&g.mem, path, NULL, &root, &err), err);
    int n = 0;
    for (const json_value *t = json_get(root, "texts")->u.items.first; t; t = t->next, n++)
        printf("    prompt %d: log p of the likeliest five within %.1e\n", n, check_text(t));
    assert_int_equal(n, 5);
    arena_deinit(&g.mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_reference)};
    char path[1024];
    lath_error err;
    lath_model_options mo = LATH_MODEL_OPTIONS_INIT;
    mo.precision = LATH_PRECISION_EXACT;
    snprintf(path, sizeof(path), "%s/%s.gguf", test_models_dir() ? test_models_dir() : "", name);
    if (!test_models_dir() || access(path, R_OK) != 0)
        return test_skip("gemma-3-270m-q4_k_m.gguf is not in $LATH_MODELS");
    if (lath_runtime_create(NULL, &rt, &err) != LATH_OK || lath_model_open(rt, path, &mo, &model, &err) != LATH_OK) {
        fprintf(stderr, "FAILED: %s\n", err.msg);
        return 1;
    }
    const int failed = TEST_RUN(tests);
    lath_model_close(model);
    lath_runtime_destroy(rt);
    return failed;
}
