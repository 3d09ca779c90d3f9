/* SPDX-License-Identifier: Apache-2.0
 *
 * test_inspect_api.c [CASE]: FFNs that stand in for the model's, gains, long prompts, and what lath_inspect.h refuses.
 */
#include <math.h>
#include <time.h>

#include "engine/inspect.h"
#include "support/inside_case.h"
#include "support/test.h"
#include "support/tmpdir.h"
#include "support/walk_rows.h"

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

/* ------------------------------------------------------------------------------------------------------------------ FFNs */

/* What the FFNs of all layers give, of the rows that they got in a run. */
typedef struct table {
    const inside_case *c;
    float *in, *out; /* [n_layers, n, d] */
    int32_t calls;
} table;

static int from_table(void *ctx, int32_t layer, size_t n, size_t d, const float *rows, float *out)
{
    table *t = ctx;
    const int64_t at = (int64_t)layer * t->c->n * t->c->d;
    assert_int_equal(n, t->c->n);
    assert_int_equal(d, t->c->d);
    inside_compare(t->c, "what the FFN reads", rows, t->in + at, (int64_t)(n * d), 1e-5);
    memcpy(out, t->out + at, n * d * sizeof(float));
    t->calls++;
    return 0;
}

/* lath_ffn_run gives what the run's FFN gives: a function that looks it up takes its place. */
static void custom_of(const inside_case *c)
{
    lath_trace_options o = LATH_TRACE_OPTIONS_INIT;
    const int64_t each = c->n * c->d;
    table tab = {.c = c, .in = floats(c->n_layers * each), .out = floats(c->n_layers * each)};
    lath_ffn *f;
    lath_ffn_layer of = {.struct_size = sizeof(of)};
    size_t d;
    int64_t n;
    o.all_positions = 1;
    o.what = LATH_TRACE_INPUTS;
    lath_trace *t = inside_run(c, &o);
    for (int32_t l = 0; l < c->n_layers; l++) {
        float *in = tab.in + l * each, *out = tab.out + l * each, *one = floats(c->d);
        for (int32_t i = 0; i < c->n; i++)
            memcpy(in + i * c->d, inside_row(t, LATH_POINT_FFN_IN, l, i, &d), (size_t)c->d * sizeof(float));
        assert_ok(lath_ffn_run(c->model, NULL, l, in, (size_t)c->n, out, &err), err);
        assert_ok(lath_ffn_run(c->model, NULL, l, in + c->d, 1, one, &err), err); /* as a step */
        inside_compare(c, "a row alone", one, out + c->d, c->d, REL);
        test_free(one);
    }
    assert_ok(lath_ffn_custom(c->model, from_table, &tab, &f, &err), err);
    o.ffn = f;
    o.what = 0;
    lath_trace *again = inside_run(c, &o);
    assert_int_equal(tab.calls, c->n_layers);
    float *a = inside_result(c, t, &n), *b = inside_result(c, again, &n);
    inside_compare(c, "the same FFN by a function", b, a, n, 1e-5);
    assert_ok(lath_ffn_get_layer(f, 0, &of, &err), err);
    assert_string_equal(of.path, "custom");
    assert_int_equal(of.tokens, c->n);
    assert_refused(lath_ffn_get_layer(f, c->n_layers, &of, &err), err, LATH_ERR_USAGE, "layer");
    test_free(a);
    test_free(b);
    test_free(tab.in);
    test_free(tab.out);
    lath_trace_close(t);
    lath_trace_close(again);
    lath_ffn_close(f);
}

static void test_custom(void **state)
{
    (void)state;
    inside_each(only, custom_of);
}

/* A text of a run: the result of a trace with that FFN, to be freed. */
static float *run_with(const inside_case *c, const char *spec, lath_ffn **f, int64_t *n)
{
    lath_trace_options o = LATH_TRACE_OPTIONS_INIT;
    const lath_status st = lath_ffn_open(c->model, spec, f, &err);
    if (st != LATH_OK) fail_msg("%s: %s: %s", c->name, spec, err.msg);
    o.all_positions = 1;
    o.ffn = *f;
    lath_trace *t = inside_run(c, &o);
    float *out = inside_result(c, t, n);
    lath_trace_close(t);
    return out;
}

static void specs_of(const inside_case *c)
{
    char spec[64];
    lath_ffn *f;
    lath_ffn_layer of = {.struct_size = sizeof(of)};
    int64_t n;
    lath_trace_options o = LATH_TRACE_OPTIONS_INIT;
    o.all_positions = 1;
    lath_trace *t = inside_run(c, &o);
    float *plain = inside_result(c, t, &n);
    static const char *const same[] = {"dense", "cached", "0-=dense", "0=cached,1-=dense"};
    for (int i = 0; i < 4; i++) {
        float *have = run_with(c, same[i], &f, &n);
        assert_memory_equal(have, plain, (size_t)n * sizeof(float));
        assert_ok(lath_ffn_get_layer(f, 1, &of, &err), err);
        assert_int_equal(of.calls, 1);
        assert_int_equal(of.tokens, c->n);
        assert_true(of.features > 0 && of.seconds >= 0 && of.description[0]);
        lath_ffn_reset(f);
        assert_ok(lath_ffn_get_layer(f, 1, &of, &err), err);
        assert_true(of.calls == 0 && !of.path);
        test_free(have);
        lath_ffn_close(f);
    }
    snprintf(spec, sizeof(spec), "0=dense,1=gain:0.75%s", c->n_layers > 2 ? ",2-=dense" : "");
    float *have = run_with(c, spec, &f, &n);
    inside_compare(c, spec, have, inside_want(c, "edit.gain")->data, n, REL);
    assert_ok(lath_ffn_get_layer(f, 1, &of, &err), err);
    assert_string_equal(of.path, "gain");
    float *row = floats(c->d);
    assert_refused(lath_ffn_run(c->model, f, 1, row, 1, row, &err), err, LATH_ERR_USAGE, "gain");
    test_free(row);
    test_free(have);
    test_free(plain);
    lath_ffn_close(f);
    lath_trace_close(t);
}

static void test_specs(void **state)
{
    (void)state;
    inside_each(only, specs_of);
}

/* An FFN that chooses features: a trace has the chosen ones with their numbers, and values that all features together would have; a hook sees the same. */
typedef struct chosen {
    const lath_trace *whole;
    int32_t rows, k;
} chosen;

static int check_chosen(void *ctx, lath_value *v)
{
    chosen *c = ctx;
    lath_act all = {.struct_size = sizeof(all)};
    assert_int_equal(v->n, 1);
    assert_int_equal(v->d, c->k);
    assert_non_null(v->features);
    assert_ok(lath_trace_get_act(c->whole, v->layer, v->positions[0], 0, &all, NULL, &err), err);
    for (size_t i = 0; i < v->d && v->layer == 0; i++)
        assert_true(fabs((double)v->rows[i] - (double)all.values[v->features[i]]) < 1e-4);
    c->rows++;
    return 0;
}

static void test_chosen(void **state)
{
    (void)state;
    enum { K = 5 };
    inside_case c = inside_open("decoder/llama2", NULL);
    const arch_model *m = &c.model->arch;
    ffn_parts own;
    lath_ffn *f;
    lath_hooks *h;
    lath_trace_options o = LATH_TRACE_OPTIONS_INIT;
    o.all_positions = 1;
    o.what = LATH_TRACE_ACTIVATIONS;
    lath_trace *whole = inside_run(&c, &o);
    chosen see = {.whole = whole, .k = K};
    assert_true(ffn_get_parts(m->ffn, 0, &own));
    const ffn_walk_source source = test_walk_source(m->ffn, c.n_layers, c.d, own.fn, true);
    assert_ok(lath_ffn_open(c.model, "dense", &f, &err), err);
    assert_ok(ffn_walk_open(&source, K, 0, c.n_layers - 1, m->ffn, f->env.alloc, &f->choice.ffn, &err), err);
    assert_ok(lath_hooks_create(c.model, &h, &err), err);
    assert_ok(lath_hooks_add(h, LATH_POINT_FFN_ACT, LATH_LAYERS_ALL, LATH_POSITION_ALL, check_chosen, &see, &err), err);
    o.ffn = f;
    o.hooks = h;
    lath_trace *t = inside_run(&c, &o);
    assert_int_equal(see.rows, c.n * c.n_layers);
    for (int32_t i = 0; i < c.n; i++) {
        lath_act all = {.struct_size = sizeof(all)}, some = all;
        size_t n;
        assert_ok(lath_trace_get_act(whole, 0, i, 0, &all, NULL, &err), err);
        assert_ok(lath_trace_get_act(t, 0, i, 0, &some, &n, &err), err);
        assert_true(n == 1 && some.n == K && some.features && !all.features);
        for (int32_t j = 0; j < K; j++) {
            assert_true(some.features[j] >= 0 && some.features[j] < (int32_t)all.n);
            assert_true(j == 0 || some.features[j] > some.features[j - 1]);
            assert_true(fabs((double)some.values[j] - (double)all.values[some.features[j]]) < 1e-4);
        }
    }
    lath_trace_close(t);
    lath_trace_close(whole);
    lath_hooks_destroy(h);
    lath_ffn_close(f);
    inside_close(&c);
}

/* A session with a gain in the place of a layer, all but the last token together. */
static void ffn_session_of(const inside_case *c)
{
    if (!c->generates) return;
    char spec[64];
    lath_session_options so = LATH_SESSION_OPTIONS_INIT;
    lath_session *s;
    lath_ffn *f;
    const float *logits;
    so.kv = LATH_KV_F32;
    so.ctx = c->n;
    snprintf(spec, sizeof(spec), "0=cached,1=gain:0.75%s", c->n_layers > 2 ? ",2-=dense" : "");
    assert_ok(lath_session_create(c->model, &so, &s, &err), err);
    assert_ok(lath_ffn_open(c->model, spec, &f, &err), err);
    assert_ok(lath_session_set_ffn(s, f, &err), err);
    assert_ok(lath_session_append(s, c->ids, (size_t)c->n - 1, &err), err);
    assert_ok(lath_session_append(s, c->ids + c->n - 1, 1, &err), err);
    assert_ok(lath_session_logits(s, &logits, &err), err);
    const float *want = (const float *)inside_want(c, "edit.gain")->data + (N_RESULTS - 1) * (int64_t)c->vocab;
    inside_compare(c, spec, logits, want, c->vocab, REL);
    assert_refused(lath_session_set_ffn(s, NULL, &err), err, LATH_ERR_USAGE, "tokens");
    lath_session_rewind(s, 0);
    assert_ok(lath_session_set_ffn(s, NULL, &err), err);
    assert_ok(lath_session_append(s, c->ids, (size_t)c->n, &err), err);
    lath_session_destroy(s);
    lath_ffn_close(f);
}

static void test_ffn_session(void **state)
{
    (void)state;
    inside_each(only, ffn_session_of);
}

/* ----------------------------------------------------------------------------------------------------------------- gains */

static void gains_of(const inside_case *c)
{
    float *gains = floats(c->n_layers);
    size_t d;
    lath_trace *t = inside_run(c, NULL);
    assert_ok(lath_calibrate_gains(c->model, c->ids, (size_t)c->n, gains, &err), err);
    for (int32_t l = 0; l < c->n_layers; l++) {
        const double before = length(inside_row(t, LATH_POINT_RESIDUAL, l - 1, c->n - 1, &d), (size_t)c->d),
                     behind = length(inside_row(t, LATH_POINT_RESIDUAL, l, c->n - 1, &d), (size_t)c->d);
        if (!(fabs((double)gains[l] * before / behind - 1) < 1e-5))
            fail_msg("%s: layer %d: gain %g, of %g %g", c->name, l, (double)gains[l], before, behind);
    }
    test_free(gains);
    lath_trace_close(t);
}

static void test_gains(void **state)
{
    (void)state;
    inside_each(only, gains_of);
}

/* -------------------------------------------------------------------------------------------------------------- refusals */

static int stop(void *ctx, lath_value *v)
{
    (void)ctx, (void)v;
    return -1;
}
static int spoil(void *ctx, lath_value *v)
{
    (void)ctx;
    v->rows[v->d - 1] = NAN;
    return 1;
}
static int write_same(void *ctx, lath_value *v)
{
    (void)ctx, (void)v;
    return 1;
}
static int say_two(void *ctx, lath_value *v)
{
    (void)ctx, (void)v;
    return 2;
}

static void refused_hooks(const inside_case *c)
{
    lath_hooks *h;
    float *v = floats(c->d);
    const size_t d = (size_t)c->d;
    assert_ok(lath_hooks_create(c->model, &h, &err), err);
    assert_refused(lath_hooks_ablate_layer(h, c->n_layers, &err), err, LATH_ERR_USAGE, "layer");
    assert_refused(lath_hooks_ablate_layer(h, LATH_LAYERS_ALL, &err), err, LATH_ERR_USAGE, "layer");
    assert_refused(lath_hooks_ablate_layer(h, -1, &err), err, LATH_ERR_USAGE, "layer");
    assert_refused(lath_hooks_ablate_head(h, 0, -1, &err), err, LATH_ERR_USAGE, "head");
    assert_refused(lath_hooks_ablate_head(h, 0, 1000, &err), err, LATH_ERR_USAGE, "head 1000");
    assert_refused(lath_hooks_ablate_position(h, 0, -3, &err), err, LATH_ERR_USAGE, "position -3");
    assert_refused(lath_hooks_ablate_position(h, 0, 1 << 30, &err), err, LATH_ERR_USAGE, "window");
    assert_refused(lath_hooks_steer(h, 0, 0, v, d - 1, 1, &err), err, LATH_ERR_INPUT, "numbers");
    assert_refused(lath_hooks_steer(h, 0, 0, v, d, INFINITY, &err), err, LATH_ERR_USAGE, "alpha");
    assert_refused(lath_hooks_steer(h, -2, 0, v, d, 1, &err), err, LATH_ERR_USAGE, "layer -2");
    v[3] = NAN;
    assert_refused(lath_hooks_patch(h, 0, 0, v, d, &err), err, LATH_ERR_INPUT, "number 3");
    assert_refused(lath_hooks_add(h, (lath_point)10, 0, 0, stop, NULL, &err), err, LATH_ERR_USAGE, "point");
    assert_refused(lath_hooks_add(h, LATH_POINT_EMBED, 2, 0, stop, NULL, &err), err, LATH_ERR_USAGE, "layer 2");
    assert_refused(lath_hooks_add(h, LATH_POINT_HEADS, 0, 0, NULL, NULL, &err), err, LATH_ERR_USAGE, "missing");
    assert_int_equal(lath_hooks_count(h), 0);
    assert_ok(lath_hooks_check(h, &err), err);
    test_free(v);
    lath_hooks_destroy(h);
}

/* A run with one hook that must fail. */
static void refused_run(const inside_case *c, lath_point point, int32_t layer, int32_t position, lath_hook_fn fn,
                        lath_status want, const char *word)
{
    lath_hooks *h;
    lath_trace *t;
    lath_trace_options o = LATH_TRACE_OPTIONS_INIT;
    assert_ok(lath_hooks_create(c->model, &h, &err), err);
    assert_ok(lath_hooks_add(h, point, layer, position, fn, NULL, &err), err);
    o.hooks = h;
    assert_refused(lath_trace_run(c->model, c->ids, (size_t)c->n, &o, &t, &err), err, want, word);
    lath_hooks_destroy(h);
}

static void refused_options(const inside_case *c)
{
    const int32_t twice[] = {2, 2}, beyond[] = {c->n}, layer[] = {1};
    int32_t bad_ids[] = {0, c->vocab};
    float *start = floats(c->n * c->d);
    lath_trace *t;
    lath_trace_options o = LATH_TRACE_OPTIONS_INIT;
    const size_t n = (size_t)c->n;
#define REFUSED(want, word)                                                             \
    assert_refused(lath_trace_run(c->model, c->ids, n, &o, &t, &err), err, want, word); \
    o = (lath_trace_options)LATH_TRACE_OPTIONS_INIT
    o.positions = twice, o.n_positions = 2;
    REFUSED(LATH_ERR_USAGE, "rising");
    o.positions = beyond, o.n_positions = 1;
    REFUSED(LATH_ERR_USAGE, "position");
    o.positions = beyond;
    REFUSED(LATH_ERR_USAGE, "empty");
    o.what = 16;
    REFUSED(LATH_ERR_USAGE, "what");
    o.end_layer = c->n_layers + 1;
    REFUSED(LATH_ERR_USAGE, "layers");
    o.end_layer = 1, o.layers = layer, o.n_layers = 1;
    REFUSED(LATH_ERR_USAGE, "layer 1");
    o.first_layer = 1;
    REFUSED(LATH_ERR_USAGE, "start");
    start[c->d + 2] = NAN;
    o.first_layer = 1, o.start = start;
    REFUSED(LATH_ERR_INPUT, "position 1");
    o.max_bytes = 1000;
    REFUSED(LATH_ERR_LIMIT, "MiB");
    o.struct_size = 8;
    REFUSED(LATH_ERR_USAGE, "version");
#undef REFUSED
    assert_refused(lath_trace_run(c->model, bad_ids, 2, NULL, &t, &err), err, LATH_ERR_INPUT, "token 1");
    assert_refused(lath_trace_run(c->model, c->ids, 0, NULL, &t, &err), err, LATH_ERR_USAGE, "no tokens");
    int32_t *many = test_calloc(1 << 20, sizeof(*many));
    assert_refused(lath_trace_run(c->model, many, 1 << 20, NULL, &t, &err), err, LATH_ERR_WINDOW, "window");
    test_free(many);
    test_free(start);
}

static void refused_ffns(const inside_case *c)
{
    lath_ffn *f;
    float *rows = floats(2 * c->d);
    assert_refused(lath_ffn_open(c->model, "bright", &f, &err), err, LATH_ERR_USAGE, "bright");
    assert_refused(lath_ffn_open(c->model, "0=dense", &f, &err), err, LATH_ERR_USAGE, "layer 1");
    assert_refused(lath_ffn_open(c->model, "0-99=dense", &f, &err), err, LATH_ERR_USAGE, "layers");
    assert_refused(lath_ffn_open(c->model, "sparse:0", &f, &err), err, LATH_ERR_USAGE, "k of 0");
    assert_refused(lath_ffn_run(c->model, NULL, c->n_layers, rows, 1, rows, &err), err, LATH_ERR_USAGE, "layer");
    rows[c->d + 1] = INFINITY;
    assert_refused(lath_ffn_run(c->model, NULL, 0, rows, 2, rows, &err), err, LATH_ERR_INPUT, "row 1");
    assert_int_equal(err.item, 1);
    for (size_t i = 0; i < 2 * (size_t)c->d; i++) rows[i] = i < (size_t)c->d ? 0 : 3e38f;
    assert_refused(lath_ffn_run(c->model, NULL, 0, rows, 2, rows, &err), err, LATH_ERR_INPUT, "row 1: its result");
    assert_int_equal(err.item, 1);
    test_free(rows);
}

static void test_refusals(void **state)
{
    (void)state;
    inside_case c = inside_open("decoder/llama2", NULL), other = inside_open("decoder/qwen3_moe", NULL);
    lath_hooks *h;
    lath_session *s;
    lath_session_options so = LATH_SESSION_OPTIONS_INIT;
    refused_hooks(&c);
    refused_run(&c, LATH_POINT_MIDDLE, 0, LATH_POSITION_ALL, stop, LATH_ERR_INTERRUPTED, "middle of layer 0");
    refused_run(&c, LATH_POINT_RESIDUAL, 1, 2, spoil, LATH_ERR_INPUT, "position 2");
    refused_run(&c, LATH_POINT_ATTN_IN, 0, LATH_POSITION_LAST, write_same, LATH_ERR_USAGE, "seen only");
    refused_run(&c, LATH_POINT_FFN_OUT, 0, LATH_POSITION_LAST, say_two, LATH_ERR_USAGE, "returned 2");
    refused_run(&c, LATH_POINT_HEADS, 0, c.n, write_same, LATH_ERR_USAGE, "position");
    refused_options(&c);
    refused_ffns(&c);
    assert_ok(lath_hooks_create(other.model, &h, &err), err);
    so.ctx = 4;
    assert_ok(lath_session_create(c.model, &so, &s, &err), err);
    assert_refused(lath_session_set_hooks(s, h, &err), err, LATH_ERR_USAGE, "another model");
    lath_hooks_destroy(h);
    assert_ok(lath_hooks_create(c.model, &h, &err), err);
    assert_ok(lath_hooks_ablate_position(h, 0, 4, &err), err);
    assert_refused(lath_session_set_hooks(s, h, &err), err, LATH_ERR_USAGE, "position 4");
    assert_refused(lath_hooks_check(h, &err), err, LATH_ERR_USAGE, "nothing to act on");
    lath_session_destroy(s);
    lath_hooks_destroy(h);
    assert_null(lath_point_name((lath_point)99));
    assert_string_equal(lath_point_name(LATH_POINT_FFN_ACT), "ffn_act");
    inside_close(&c);
    inside_close(&other);
}

/* An edit of a layer that a run leaves out has nothing to act on; one of the stream that the run begins with has. */
static void test_unused(void **state)
{
    (void)state;
    inside_case c = inside_open("decoder/llama2", NULL);
    lath_hooks *h;
    lath_trace *t;
    lath_trace_options o = LATH_TRACE_OPTIONS_INIT;
    assert_ok(lath_hooks_create(c.model, &h, &err), err);
    assert_ok(lath_hooks_ablate_layer(h, 1, &err), err);
    o.hooks = h;
    lath_trace_close(inside_run(&c, &o));
    o.end_layer = 1;
    assert_refused(lath_trace_run(c.model, c.ids, (size_t)c.n, &o, &t, &err), err, LATH_ERR_USAGE, "of layer 1");
    assert_ok(lath_hooks_check(h, &err), err); /* it has been applied before */
    lath_hooks_destroy(h);
    assert_ok(lath_hooks_create(c.model, &h, &err), err);
    assert_ok(lath_hooks_ablate_position(h, -1, 0, &err), err);
    o.hooks = h;
    o.all_positions = 1;
    t = inside_run(&c, &o);
    size_t d;
    const float *row = inside_row(t, LATH_POINT_EMBED, -1, 0, &d);
    assert_true(length(row, d) == 0 && length(inside_row(t, LATH_POINT_EMBED, -1, 1, &d), d) > 0);
    lath_trace_close(t);
    lath_hooks_destroy(h);
    inside_close(&c);
}

static int ask_and_stop(void *ctx, size_t done, size_t total)
{
    (void)done;
    *(size_t *)ctx = total;
    return 1;
}

static int slow(void *ctx, lath_value *v)
{
    (void)ctx, (void)v;
    struct timespec t = {0, 30 * 1000 * 1000};
    nanosleep(&t, NULL);
    return 0;
}

static void test_progress(void **state)
{
    (void)state;
    inside_case c = inside_open("decoder/llama2", NULL);
    lath_hooks *h;
    lath_trace *t;
    size_t total = 0;
    lath_trace_options o = LATH_TRACE_OPTIONS_INIT;
    assert_ok(lath_hooks_create(c.model, &h, &err), err);
    assert_ok(lath_hooks_add(h, LATH_POINT_HEADS, LATH_LAYERS_ALL, LATH_POSITION_ALL, slow, NULL, &err), err);
    o.hooks = h;
    o.progress = ask_and_stop;
    o.progress_ctx = &total;
    assert_refused(lath_trace_run(c.model, c.ids, (size_t)c.n, &o, &t, &err), err, LATH_ERR_INTERRUPTED, "interrupted");
    assert_int_equal(total, c.n);
    lath_hooks_destroy(h);
    inside_close(&c);
}

/* ---------------------------------------------------------------------------------------------------------- long prompts */

enum { LONG = 600 /* more than a session's chunk of 512 */, LATE = 515 };

typedef struct places {
    uint8_t seen[LONG + 1];
    int32_t calls, rows;
} places;

static int mark(void *ctx, lath_value *v)
{
    places *p = ctx;
    for (size_t i = 0; i < v->n; i++) p->seen[v->positions[i]]++;
    p->calls++;
    p->rows += (int32_t)v->n;
    return 0;
}

/* Positions are the sequence's whichever batch they come in; the last one is the call's. */
static void test_long(void **state)
{
    (void)state;
    char dir[512], from[1024];
    lath_runtime *rt;
    lath_model *m;
    lath_session *s;
    lath_hooks *h;
    places all = {.calls = 0}, late = all, last = all;
    int32_t ids[LONG];
    lath_session_options so = LATH_SESSION_OPTIONS_INIT;
    snprintf(from, sizeof(from), "%s/golden/decoder/llama2", test_data_dir());
    tmp_copy(dir, from);
    tmp_replace(dir, "config.json", "\"max_position_embeddings\": 512,", "\"max_position_embeddings\": 2048,");
    assert_ok(lath_runtime_create(NULL, &rt, &err), err);
    assert_ok(lath_model_open(rt, dir, NULL, &m, &err), err);
    so.ctx = LONG + 1;
    assert_ok(lath_session_create(m, &so, &s, &err), err);
    assert_ok(lath_hooks_create(m, &h, &err), err);
    assert_ok(lath_hooks_add(h, LATH_POINT_RESIDUAL, 0, LATH_POSITION_ALL, mark, &all, &err), err);
    assert_ok(lath_hooks_add(h, LATH_POINT_RESIDUAL, 0, LATE, mark, &late, &err), err);
    assert_ok(lath_hooks_add(h, LATH_POINT_RESIDUAL, 0, LATH_POSITION_LAST, mark, &last, &err), err);
    assert_ok(lath_session_set_hooks(s, h, &err), err);
    for (int32_t i = 0; i < LONG; i++) ids[i] = 3 + i % 50;
    assert_ok(lath_session_append(s, ids, LONG, &err), err);
    assert_ok(lath_session_append(s, ids, 1, &err), err);
    assert_int_equal(all.rows, LONG + 1);
    for (int32_t i = 0; i <= LONG; i++) assert_int_equal(all.seen[i], 1);
    assert_true(late.calls == 1 && late.seen[LATE] == 1);
    assert_true(last.calls == 2 && last.seen[LONG - 1] == 1 && last.seen[LONG] == 1);
    assert_int_equal(lath_hooks_applied(h, 0), LONG + 1);
    lath_session_destroy(s);
    lath_hooks_destroy(h);
    lath_model_close(m);
    lath_runtime_destroy(rt);
    tmp_remove(dir);
}

int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_custom),   cmocka_unit_test(test_specs),    cmocka_unit_test(test_ffn_session),
        cmocka_unit_test(test_gains),    cmocka_unit_test(test_refusals), cmocka_unit_test(test_unused),
        cmocka_unit_test(test_progress), cmocka_unit_test(test_long),     cmocka_unit_test(test_chosen),
    };
    return TEST_RUN(tests);
}
