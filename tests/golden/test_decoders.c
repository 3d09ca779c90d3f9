/* SPDX-License-Identifier: Apache-2.0
 *
 * test_decoders.c [--gguf] [CASE]: every case of decoder_case.h (tiny random language models, made by tools/ref from the reference implementation):
 * tensors of the layers, logits at every position of some prompts and what they say is likeliest, with the best and with the plain-C kernels; then what
 * holds without a reference: the same bits alone and packed with others, at 1, 2 and 3 threads.
 */
#include <math.h>

#include "support/decoder_case.h"
#include "support/forward.h"
#include "support/golden.h"
#include "support/test.h"

static const double MAX_ABS = 1e-3, AIM = 1e-4, LAYER_REL = 1e-4;
enum { MOST_PROMPTS = 6, TRACED = 1, MAX_TOK = 325 };

typedef struct opened {
    lath_runtime *rt;
    lath_model *model;
    safetensors *want;
    int n_prompts;
} opened;

/* "p<prompt>.<name>", NULL where there is none. */
static const tensor *find_of(const safetensors *s, int prompt, const char *name)
{
    char key[96];
    snprintf(key, sizeof(key), "p%d.%s", prompt, name);
    return safetensors_find(s, key);
}

static const tensor *prompt_tensor(const safetensors *s, int prompt, const char *name)
{
    const tensor *t = find_of(s, prompt, name);
    if (!t) fail_msg("no reference tensor %s of prompt %d", name, prompt);
    return t;
}

/* Which position row i of a tensor is of: `rows` names those that were kept, NULL where all were. */
static int64_t position_of(const tensor *rows, int64_t i) { return rows ? ((const int32_t *)rows->data)[i] : i; }

static opened open_case(const char *path, int32_t threads, lath_isa isa)
{
    opened o;
    lath_error err;
    char file[1500];
    lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
    lath_model_options mo = LATH_MODEL_OPTIONS_INIT;
    ro.n_threads = threads;
    ro.isa = isa;
    mo.precision = LATH_PRECISION_EXACT;
    assert_ok(lath_runtime_create(&ro, &o.rt, &err), err);
    decoder_case_model(path, file, sizeof(file));
    assert_ok(lath_model_open(o.rt, file, &mo, &o.model, &err), err);
    assert_int_equal(o.model->kind, MODEL_GENERATOR);
    assert_ok(o.model->lm_head_error.status, o.model->lm_head_error);
    o.want = decoder_case_expected(path);
    for (o.n_prompts = 0; find_of(o.want, o.n_prompts, "ids"); o.n_prompts++) {
    }
    assert_in_range(o.n_prompts, TRACED + 1, MOST_PROMPTS);
    return o;
}

static void close_case(opened o)
{
    safetensors_close(o.want);
    lath_model_close(o.model);
    lath_runtime_destroy(o.rt);
}

/* ---------------------------------------------------------------------------------------------------------- the forward */

/* Logits [n_tok, vocab] of a packed batch of the prompts first <= p < last. */
static void run_prompts(const opened *o, int first, int last, const trace_sink *trace, float *logits)
{
    prompt_ids prompts[MOST_PROMPTS];
    int64_t n = 0;
    for (int p = first; p < last; p++) {
        const tensor *ids = prompt_tensor(o->want, p, "ids");
        prompts[p - first] = (prompt_ids){ids->data, ids->count};
        n += ids->count;
    }
    assert_true(n <= MAX_TOK);
    test_forward(o->model, prompts, last - first, trace, logits);
}

/* ---------------------------------------------------------------------------------------------------------------- layers */

typedef struct layer_check {
    const safetensors *want;
    const char *name;
    int seen;
    double worst;
} layer_check;

static lath_status see(void *ctx, const fwd *f, trace_event *e)
{
    static const char *const names[TRACE_COUNT] = {
        [TRACE_EMBED] = "embed",     [TRACE_ATTN_OUT] = "attn_out", [TRACE_FFN_IN] = "attn_norm",
        [TRACE_FFN_OUT] = "ffn_out", [TRACE_RESIDUAL] = "residual", [TRACE_FINAL] = "final"};
    layer_check *c = ctx;
    const view x = e->x;
    char key[64];
    if (!names[e->point]) return LATH_OK; /* test_inside.c */
    if (e->layer < 0)
        snprintf(key, sizeof(key), "%s", names[e->point]);
    else
        snprintf(key, sizeof(key), "layer.%d.%s", e->layer, names[e->point]);
    const tensor *t = prompt_tensor(c->want, TRACED, key), *rows = find_of(c->want, TRACED, "layer_rows");
    assert_int_equal(t->dim[0], rows ? rows->count : x.n_tok);
    assert_int_equal(t->dim[1], x.d);
    const float *want = t->data;
    float *have = test_malloc((size_t)t->count * sizeof(float));
    for (int64_t i = 0; i < t->dim[0]; i++)
        assert_int_equal(f->s->ops->read_rows(f->s, x, position_of(rows, i), 1, have + i * x.d), LATH_OK);
    double largest = 0;
    for (int64_t i = 0; i < t->count; i++) largest = fmax(largest, fabs((double)want[i]));
    const double d = golden_max_abs(have, want, (size_t)t->count) / largest;
    if (!(d <= LAYER_REL)) fail_msg("%s: %s: %g of its largest value", c->name, key, d);
    c->worst = fmax(c->worst, d);
    c->seen++;
    test_free(have);
    return LATH_OK;
}

static void layers_of(const char *path, const char *name)
{
    opened o = open_case(path, 2, LATH_ISA_AUTO);
    layer_check c = {.want = o.want, .name = name};
    const trace_sink sink = {.see = see, .ctx = &c};
    float *logits = test_malloc(sizeof(float) * (size_t)(MAX_TOK * o.model->arch.dims.vocab_size));
    run_prompts(&o, TRACED, TRACED + 1, &sink, logits);
    assert_int_equal(c.seen, 2 + 4 * o.model->arch.dims.n_layers);
    printf("    %-26s %d tensors, worst %.1e of the largest value\n", name, c.seen, c.worst);
    test_free(logits);
    close_case(o);
}

static void test_layers(void **state)
{
    (void)state;
    decoder_case_each(layers_of);
}

/* ---------------------------------------------------------------------------------------------------------------- logits */

/* The likeliest of n, the first of equals, and how far it is ahead of the second. */
static int64_t best_of(const float *x, int64_t n, double *gap)
{
    int64_t best = 0;
    double second = -INFINITY;
    for (int64_t i = 1; i < n; i++) {
        if (x[i] > x[best]) {
            second = (double)x[best];
            best = i;
        } else {
            second = fmax(second, (double)x[i]);
        }
    }
    *gap = (double)x[best] - second;
    return best;
}

static double check_logits(const char *path, const char *name, lath_isa isa)
{
    opened o = open_case(path, 1, isa);
    const int64_t vocab = o.model->arch.dims.vocab_size;
    float *have = test_malloc(sizeof(float) * (size_t)(MAX_TOK * vocab));
    double worst = 0;
    int64_t decided = 0;
    for (int p = 0; p < o.n_prompts; p++) {
        const tensor *t = prompt_tensor(o.want, p, "logits"), *rows = find_of(o.want, p, "rows");
        const float *want = t->data;
        assert_int_equal(t->dim[1], vocab);
        run_prompts(&o, p, p + 1, NULL, have);
        for (int64_t i = 0; i < t->dim[0]; i++) {
            const int64_t at = position_of(rows, i);
            double gap, own, d = golden_max_abs(have + at * vocab, want + i * vocab, (size_t)vocab);
            if (!(d <= MAX_ABS)) fail_msg("%s: prompt %d, position %lld: max abs %g", name, p, (long long)at, d);
            worst = fmax(worst, d);
            const int64_t best = best_of(want + i * vocab, vocab, &gap);
            if (gap <= MAX_ABS) continue;
            decided++;
            if (best_of(have + at * vocab, vocab, &own) != best)
                fail_msg("%s: prompt %d, position %lld: another token is likeliest", name, p, (long long)at);
        }
    }
    assert_true(decided > 50);
    if (worst > AIM) printf("    %s: max abs %.1e, more than the %g aimed at\n", name, worst, AIM);
    test_free(have);
    close_case(o);
    return worst;
}

static void logits_of(const char *path, const char *name)
{
    const double best = check_logits(path, name, LATH_ISA_AUTO), ref = check_logits(path, name, LATH_ISA_REF);
    printf("    %-26s logits: max abs %.1e (best kernels), %.1e (reference kernels)\n", name, best, ref);
}

static void test_logits(void **state)
{
    (void)state;
    decoder_case_each(logits_of);
}

/* ------------------------------------------------------------------------------------------------------------ invariance */

static void invariance_of(const char *path, const char *name)
{
    static const lath_isa isas[] = {LATH_ISA_AUTO, LATH_ISA_REF};
    for (size_t k = 0; k < 2; k++) {
        float *alone = NULL, *packed = NULL;
        for (int32_t threads = 1; threads <= 3; threads++) {
            opened o = open_case(path, threads, isas[k]);
            const size_t vocab = (size_t)o.model->arch.dims.vocab_size, most = sizeof(float) * MAX_TOK * vocab;
            size_t n = 0;
            if (!alone) alone = test_malloc(most);
            if (!packed) packed = test_malloc(most);
            for (int p = 0; p < o.n_prompts; p++) {
                if (threads == 1) run_prompts(&o, p, p + 1, NULL, alone + n * vocab);
                n += (size_t)prompt_tensor(o.want, p, "ids")->count;
            }
            run_prompts(&o, 0, o.n_prompts, NULL, packed);
            if (memcmp(alone, packed, n * vocab * sizeof(float)) != 0)
                fail_msg("%s: other bits when packed, %d threads", name, threads);
            close_case(o);
        }
        test_free(alone);
        test_free(packed);
    }
}

static void test_invariance(void **state)
{
    (void)state;
    decoder_case_each(invariance_of);
}

int main(int argc, char **argv)
{
    decoder_case_args(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_logits),
        cmocka_unit_test(test_invariance),
    };
    return TEST_RUN(tests);
}
