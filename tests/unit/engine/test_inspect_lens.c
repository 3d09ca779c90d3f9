/* SPDX-License-Identifier: Apache-2.0
 *
 * test_inspect_lens.c [CASE]: where an answer stands behind each layer, and what its logit is made of: the parts are the logit of the model, and heads are what attention
 * gives.
 */
#include <math.h>

#include "engine/inspect.h"
#include "support/inside_case.h"
#include "support/test.h"

static const char *only;
static lath_error err;
static const double REL = 1e-4;

static float *floats(int64_t n) { return test_calloc((size_t)n, sizeof(float)); }

static double length(const float *x, size_t d)
{
    double sum = 0;
    for (size_t i = 0; i < d; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/* ---------------------------------------------------------------------------------------------------------------- answer */

static int32_t best_of(const float *logits, int32_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

static void check_step(const inside_case *c, const lath_trace *t, const float *logits, int32_t token,
                       const lath_answer_step *s)
{
    int32_t rank = 1;
    double sum = 0;
    size_t d = 0;
    for (int32_t i = 0; i < c->vocab; i++) {
        rank += logits[i] > logits[token];
        sum += exp((double)logits[i] - (double)logits[token]);
    }
    assert_int_equal(s->rank, rank);
    assert_true(fabs((double)s->prob * sum - 1) < 1e-5);
    assert_memory_equal(&s->logit, &logits[token], sizeof(float));
    const float *x = inside_row(t, LATH_POINT_RESIDUAL, s->layer, c->n - 1, &d);
    assert_true(fabs((double)s->residual_norm / length(x, d) - 1) < 1e-5);
}

static void answer_of(const inside_case *c)
{
    lath_trace *t = inside_run(c, NULL);
    float *lens = floats(c->n_layers * (int64_t)c->vocab), *logits = floats(c->vocab);
    lath_answer_step *steps = test_calloc((size_t)c->n_layers, sizeof(*steps));
    const int32_t last = c->n - 1;
    if (!c->generates) {
        assert_refused(lath_trace_answer(t, last, 0, steps, &err), err, LATH_ERR_UNSUPPORTED, "output head");
        assert_refused(lath_trace_lens(t, last, lens, &err), err, LATH_ERR_UNSUPPORTED, "output head");
        assert_refused(lath_trace_logits(t, last, logits, &err), err, LATH_ERR_UNSUPPORTED, "output head");
        goto done;
    }
    assert_ok(lath_trace_lens(t, last, lens, &err), err);
    assert_ok(lath_trace_logits(t, last, logits, &err), err);
    const int32_t token = best_of(logits, c->vocab);
    assert_ok(lath_trace_answer(t, last, token, steps, &err), err);
    for (int32_t i = 0; i < c->n_layers; i++) {
        assert_int_equal(steps[i].layer, i);
        check_step(c, t, lens + i * (int64_t)c->vocab, token, &steps[i]);
    }
    assert_int_equal(steps[c->n_layers - 1].rank, 1);
    assert_refused(lath_trace_answer(t, last, c->vocab, steps, &err), err, LATH_ERR_USAGE, "token");
    assert_refused(lath_trace_answer(t, 0, token, steps, &err), err, LATH_ERR_USAGE, "position 0 was not kept");
done:
    test_free(lens);
    test_free(logits);
    test_free(steps);
    lath_trace_close(t);
}

static void test_answer(void **state)
{
    (void)state;
    inside_each(only, answer_of);
}

/* ----------------------------------------------------------------------------------------------------------- attribution */

typedef struct parts {
    lath_attribution a;
    float *heads, *rest, *ffn;
    int32_t n_heads;
} parts;

static parts attribute(const inside_case *c, const lath_trace *t, int32_t token)
{
    lath_trace_info info = {.struct_size = sizeof(info)};
    assert_ok(lath_trace_get_info(t, &info, &err), err);
    parts p = {.heads = floats(c->n_layers * info.n_heads),
               .rest = floats(c->n_layers),
               .ffn = floats(c->n_layers),
               .n_heads = info.n_heads};
    p.a = (lath_attribution){.struct_size = sizeof(p.a), .heads = p.heads, .rest = p.rest, .ffn = p.ffn};
    assert_ok(lath_trace_attribution(t, c->n - 1, token, &p.a, &err), err);
    return p;
}

static void free_parts(parts *p)
{
    test_free(p->heads);
    test_free(p->rest);
    test_free(p->ffn);
}

/* The parts add up to the logit that the model gives, and what attention gives is what its heads give, and its bias. */
static void check_sum(const inside_case *c, const lath_trace *t, const parts *p, int32_t token, const float *logits)
{
    lath_answer_step *steps = test_calloc((size_t)c->n_layers, sizeof(*steps));
    double sum = (double)p->a.embed + (double)p->a.constant, size = fabs(sum);
    assert_ok(lath_trace_answer(t, c->n - 1, token, steps, &err), err);
    for (int32_t l = 0; l < c->n_layers; l++) {
        double heads = 0;
        for (int32_t h = 0; h < p->n_heads; h++) heads += (double)p->heads[l * p->n_heads + h];
        arch_heads_out of;
        c->model->arch.heads_out(&c->model->arch, l, &of);
        sum += heads + (double)p->rest[l] + (double)p->ffn[l];
        size += fabs(heads) + fabs((double)p->ffn[l]);
        if (!(fabs(heads + (double)p->rest[l] - (double)steps[l].attn_logit) < 1e-4 * fmax(size, 1)))
            fail_msg("%s: layer %d: heads %g, rest %g, attention %g", c->name, l, heads, (double)p->rest[l],
                     (double)steps[l].attn_logit);
        if (!of.o->bias.data && !(fabs((double)p->rest[l]) < 1e-5 * fmax(size, 1)))
            fail_msg("%s: layer %d: rest %g of %g", c->name, l, (double)p->rest[l], size);
        assert_true(fabs((double)p->ffn[l] - (double)steps[l].ffn_logit) <= 1e-6 * fmax(size, 1));
    }
    if (!(fabs(sum - (double)p->a.logit) < 1e-4 * size)) fail_msg("%s: %g, %g", c->name, sum, (double)p->a.logit);
    double most = 0;
    for (int32_t i = 0; i < c->vocab; i++) most = fmax(most, fabs((double)logits[i]));
    if (!(fabs((double)p->a.softcapped_logit - (double)logits[token]) < REL * most))
        fail_msg("%s: logit %g, the model's %g", c->name, (double)p->a.softcapped_logit, (double)logits[token]);
    test_free(steps);
}

/* In the last layer a head goes nowhere else: what its attention gives without it is less by what the head gave, where no norm stands behind it. FFNs are left out. */
static void check_head(const inside_case *c, int32_t token)
{
    const int32_t l = c->n_layers - 1, last = c->n - 1;
    lath_trace_options o = LATH_TRACE_OPTIONS_INIT;
    lath_hooks *h;
    size_t d;
    float *rows[2];
    o.what = LATH_TRACE_HEADS;
    lath_trace *t = inside_run(c, &o);
    parts p = attribute(c, t, token);
    assert_ok(lath_hooks_create(c->model, &h, &err), err);
    assert_ok(lath_hooks_ablate_head(h, l, EDIT_HEAD, &err), err);
    o.hooks = h;
    lath_trace *without = inside_run(c, &o);
    parts q = attribute(c, without, token);
    assert_true(q.heads[l * q.n_heads + EDIT_HEAD] == 0);
    arch_heads_out of;
    c->model->arch.heads_out(&c->model->arch, l, &of);
    if (!of.post_norm && c->model->arch.final_norm->kind == NORM_RMS) {
        rows[0] = (float *)inside_row(t, LATH_POINT_RESIDUAL, l, last, &d);
        rows[1] = (float *)inside_row(without, LATH_POINT_RESIDUAL, l, last, &d);
        const double by = length(rows[1], d) / length(rows[0], d);
        double size = 0;
        for (int32_t i = 0; i < p.n_heads; i++) {
            const double a = (double)p.heads[l * p.n_heads + i], b = by * (double)q.heads[l * q.n_heads + i];
            size = fmax(size, fabs(a));
            if (i != EDIT_HEAD && !(fabs(a - b) < 1e-3 * fmax(size, 0.01)))
                fail_msg("%s: head %d: %g, with another left out %g", c->name, i, a, b);
        }
        assert_true(size > 0);
    }
    free_parts(&p);
    free_parts(&q);
    lath_trace_close(t);
    lath_trace_close(without);
    lath_hooks_destroy(h);
}

static void attribution_of(const inside_case *c)
{
    lath_trace_options o = LATH_TRACE_OPTIONS_INIT;
    o.what = LATH_TRACE_HEADS;
    lath_trace *t = inside_run(c, &o);
    float *logits = floats(c->vocab);
    if (c->generates) {
        assert_ok(lath_trace_logits(t, c->n - 1, logits, &err), err);
        const int32_t tokens[] = {best_of(logits, c->vocab), 0, c->vocab - 1};
        for (int i = 0; i < 3; i++) {
            parts p = attribute(c, t, tokens[i]);
            check_sum(c, t, &p, tokens[i], logits);
            free_parts(&p);
        }
        if (inspect_heads(&c->model->arch, c->n_layers - 1) > EDIT_HEAD) check_head(c, tokens[0]);
    } else {
        lath_attribution a = {.struct_size = sizeof(a)};
        assert_refused(lath_trace_attribution(t, c->n - 1, 0, &a, &err), err, LATH_ERR_UNSUPPORTED, "output head");
    }
    test_free(logits);
    lath_trace_close(t);
}

static void test_attribution(void **state)
{
    (void)state;
    inside_each(only, attribution_of);
}

int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer),
        cmocka_unit_test(test_attribution),
    };
    return TEST_RUN(tests);
}
