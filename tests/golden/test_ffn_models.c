/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ffn_models.c: FFNs that stand in for a model's own, for every language model of tests/golden/decoder and some encoders: what has to be the
 * same bits or the same numbers is; what does not fit a layer (features of a layer of experts) is refused by name.
 */
#include <math.h>

#include "ffn/ffn_spec.h"
#include "nn/nn.h"
#include "store/safetensors.h"
#include "support/forward.h"
#include "support/golden.h"
#include "support/inside_case.h"
#include "support/test.h"
#include "support/walk_rows.h"

enum { EXACT = 0, CLOSE = 1, OTHER = 2 };

typedef struct opened {
    const inside_case *c;
    lath_model *model;
    prompt_ids prompt;
    int64_t n_out; /* numbers of a run */
    bool vocab, experts;
    kern_fn fn;
} opened;

static lath_status open_index(void *ctx, const char *dir, ffn_walk_source *out, lath_error *err)
{
    const opened *o = ctx;
    (void)err;
    *out = test_walk_source(o->model->arch.ffn, o->model->arch.dims.n_layers, o->model->arch.dims.d_model, o->fn,
                            strcmp(dir, "OUT") == 0);
    return LATH_OK;
}

static ffn_env env_of(opened *o)
{
    return (ffn_env){.model = o->model->arch.ffn,
                     .n_layers = o->model->arch.dims.n_layers,
                     .d_model = o->model->arch.dims.d_model,
                     .alloc = alloc_default(),
                     .open_index = open_index,
                     .index_ctx = o};
}

static void (*checking)(opened *o);
static int checked;

static void check_case(const inside_case *c)
{
    const arch_dims *d = &c->model->arch.dims;
    opened o = {.c = c,
                .model = c->model,
                .prompt = {c->ids, c->n},
                .vocab = c->generates,
                .n_out = c->n * (c->generates ? (int64_t)c->vocab : c->d)};
    for (int32_t i = 0; i < d->n_layers; i++) {
        ffn_parts p;
        const bool features = ffn_get_parts(o.model->arch.ffn, i, &p);
        o.experts = o.experts || !features;
        if (features) o.fn = p.fn;
    }
    checking(&o);
    checked++;
}

static void each_case(void (*check)(opened *o))
{
    checking = check;
    checked = 0;
    inside_each(NULL, check_case);
    assert_true(checked > 20);
}

static float *run(opened *o, const ffn_choice *c, ffn_took *took)
{
    float *out = test_malloc((size_t)o->n_out * sizeof(float));
    const fwd with = {.ffn = c ? c->ffn : NULL, .gains = c ? c->gains : NULL, .took = took};
    test_run(o->model, &o->prompt, 1, &with, o->vocab ? NULL : out, o->vocab ? out : NULL);
    return out;
}

typedef struct swap {
    const char *spec; /* %lld: the number of all features */
    int result;
    bool of_features;
} swap;
static const swap swaps[] = {
    {"cached", EXACT, false},
    {"sparse:%lld", EXACT, true},
    {"walk:OUT", EXACT, true},
    {"walk:ROWS", EXACT, true}, /* with the model's own down */
    {"walk:ROWS,k=%lld", CLOSE, true},
    {"cached:walk:ROWS,k=%lld", CLOSE, true},
    {"0=dense,1-=cached", EXACT, false},
    {"0=walk:OUT,1-=cached:sparse:%lld", EXACT, true},
    {"0=walk:ROWS,k=%lld,1-=dense", CLOSE, true},
    {"highway", OTHER, false},
    {"0=attention-only,1-=dense", OTHER, false},
    {"sparse:1", OTHER, true},
    {"0=dense,1-=walk:ROWS,k=1", OTHER, true},
};
enum { N_SWAPS = sizeof(swaps) / sizeof(swaps[0]) };

static void compare(const opened *o, const swap *s, const float *have, const float *want, int64_t n)
{
    double largest = 0;
    for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs((double)want[i]));
    const double d = golden_max_abs(have, want, (size_t)n) / largest;
    const bool good = s->result == EXACT   ? memcmp(have, want, (size_t)n * sizeof(float)) == 0
                      : s->result == CLOSE ? d <= 1e-5
                                           : d > 1e-6;
    if (!good) fail_msg("%s, %s: differs by %g of the largest value", o->c->name, s->spec, d);
}

/* The swap on the model; false: refused, as it has to be. */
static bool open_swap(opened *o, const swap *s, ffn_choice *c)
{
    lath_error err;
    char spec[200];
    const ffn_env env = env_of(o);
    snprintf(spec, sizeof(spec), s->spec, (long long)o->model->arch.dims.d_ff);
    const lath_status st = ffn_spec_open(&env, spec, c, &err);
    if (s->of_features && o->experts &&
        !(strchr(spec, '=') && st == LATH_OK)) { /* its layers may have features all the same */
        assert_int_equal(st, LATH_ERR_UNSUPPORTED);
        assert_non_null(strstr(err.msg, "layer "));
        return false;
    }
    assert_ok(st, err);
    return true;
}

/* A run twice (what a cache keeps serves the second one) beside the model's own. */
static void swaps_of(opened *o)
{
    ffn_took took[16] = {{0}};
    assert_true(o->model->arch.dims.n_layers <= 16);
    float *want = run(o, NULL, NULL);
    for (int i = 0; i < N_SWAPS; i++) {
        ffn_choice c;
        if (!open_swap(o, &swaps[i], &c)) continue;
        for (int again = 0; again < 2; again++) {
            memset(took, 0, sizeof(took));
            float *have = run(o, &c, took);
            compare(o, &swaps[i], have, want, o->n_out);
            test_free(have);
        }
        if (strcmp(swaps[i].spec, "cached") == 0) assert_string_equal(took[0].path, "cached:hit");
        for (int32_t l = 0; l < o->model->arch.dims.n_layers; l++)
            assert_true(strstr(swaps[i].spec, "attention-only") || took[l].seconds > 0);
        ffn_choice_close(&c);
    }
    test_free(want);
}

static void test_runs(void **state)
{
    (void)state;
    each_case(swaps_of);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_runs)};
    return TEST_RUN(tests);
}
