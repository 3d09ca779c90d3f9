/* SPDX-License-Identifier: Apache-2.0
 *
 * test_inspect.c [CASE]: lath_inspect.h against the reference with forward hooks, for the language models of tests/golden/decoder and some encoders: what a trace keeps,
 * sums of what was added, weights of attention, the lens; results of edits, in a trace and in a session that reads all but the last token together and that one as a
 * step; runs of some of the layers.
 */
#include <math.h>

#include "support/golden.h"
#include "support/inside_case.h"
#include "support/test.h"

static const double REL = 1e-4, ADDITIVE = 1e-5;
static const float ALPHA = 1.5f;
static const int32_t ROWS[N_ROWS] = {4, -1};
static const uint32_t EVERYTHING = LATH_TRACE_HEADS | LATH_TRACE_WEIGHTS | LATH_TRACE_ACTIVATIONS | LATH_TRACE_INPUTS;

static const char *only;
static lath_error err;

static lath_trace_options all_positions(uint32_t what)
{
    lath_trace_options o = LATH_TRACE_OPTIONS_INIT;
    o.all_positions = 1;
    o.what = what;
    return o;
}

/* ------------------------------------------------------------------------------------------------------------ what is kept */

static void check_rows(const inside_case *c, const lath_trace *t, lath_point point, int32_t layer, const char *name)
{
    char key[64];
    size_t d = 0;
    snprintf(key, sizeof(key), "layer.%d.%s", layer, name);
    const tensor *want = inside_want(c, key);
    assert_int_equal(want->dim[0], c->n);
    float *have = test_malloc((size_t)want->count * sizeof(float));
    for (int32_t i = 0; i < c->n; i++) {
        const float *row = inside_row(t, point, layer, i, &d);
        assert_int_equal(d, want->dim[1]);
        memcpy(have + i * (int64_t)d, row, d * sizeof(float));
    }
    inside_compare(c, key, have, want->data, want->count, REL);
    test_free(have);
}

/* Parts of hidden features, of each expert against the rows that it got: those come in the order of their positions. */
static int32_t check_acts(const inside_case *c, const lath_trace *t, int32_t layer)
{
    int32_t taken[64] = {0}, parts = 0;
    char key[64];
    for (int32_t i = 0; i < c->n; i++) {
        size_t n = 1;
        for (size_t p = 0; p < n; p++, parts++) {
            lath_act act = {.struct_size = sizeof(act)};
            assert_ok(lath_trace_get_act(t, layer, i, p, &act, &n, &err), err);
            assert_null(act.features);
            int at = snprintf(key, sizeof(key), "layer.%d.act", layer);
            if (act.expert >= 0) snprintf(key + at, sizeof(key) - (size_t)at, ".%d", act.expert);
            const tensor *want = inside_want(c, key);
            assert_int_equal(act.n, want->dim[1]);
            const int32_t row = taken[act.expert + 1]++;
            inside_compare(c, key, act.values, (const float *)want->data + row * want->dim[1], want->dim[1], 10 * REL);
        }
        lath_act none = {.struct_size = sizeof(none)};
        assert_int_equal(lath_trace_get_act(t, layer, i, n, &none, NULL, &err), LATH_ERR_USAGE);
    }
    return parts;
}

/* RESIDUAL = what there was + what was added; with norms behind the sums these have read the sum as the reference has it. */
static void check_sums(const inside_case *c, const lath_trace *t, int32_t layer)
{
    static const lath_point added[] = {LATH_POINT_ATTN_OUT, LATH_POINT_FFN_OUT},
                            sums[] = {LATH_POINT_MIDDLE, LATH_POINT_RESIDUAL};
    static const char *const names[] = {"attn", "ffn"};
    const int64_t count = c->n * c->d;
    float *have = test_malloc((size_t)count * sizeof(float)), *want = test_malloc((size_t)count * sizeof(float));
    for (int k = 0; k < 2; k++) {
        char key[64];
        size_t d = 0;
        for (int32_t i = 0; i < c->n; i++) {
            const float *x = k ? inside_row(t, LATH_POINT_MIDDLE, layer, i, &d)
                               : inside_row(t, LATH_POINT_RESIDUAL, layer - 1, i, &d),
                        *a = inside_row(t, added[k], layer, i, &d), *sum = inside_row(t, sums[k], layer, i, &d);
            assert_int_equal(d, c->d);
            for (size_t j = 0; j < d; j++) have[(size_t)i * d + j] = x[j] + a[j];
            memcpy(want + (size_t)i * d, sum, d * sizeof(float));
        }
        snprintf(key, sizeof(key), "layer.%d.sum.%s", layer, names[k]);
        const tensor *of = inside_find(c, key);
        assert_int_equal(of != NULL, c->post_norm);
        inside_compare(c, key, have, of ? of->data : want, count, of ? REL : ADDITIVE);
    }
    test_free(have);
    test_free(want);
}

/* true: the layer has weights. */
static bool check_weights(const inside_case *c, const lath_trace *t, int32_t layer)
{
    char key[64];
    const float *w;
    size_t n;
    int32_t first;
    snprintf(key, sizeof(key), "layer.%d.weights", layer);
    const tensor *want = inside_find(c, key);
    if (!want) {
        assert_int_equal(lath_trace_get_weights(t, layer, 0, 0, &w, &n, &first, &err), LATH_ERR_UNSUPPORTED);
        return false;
    }
    float *have = test_calloc((size_t)want->count, sizeof(float));
    for (int32_t h = 0; h < want->dim[0]; h++) {
        for (int32_t r = 0; r < N_ROWS; r++) {
            double sum = 0;
            const int32_t at = ROWS[r] < 0 ? c->n + ROWS[r] : ROWS[r];
            assert_ok(lath_trace_get_weights(t, layer, at, h, &w, &n, &first, &err), err);
            assert_true(first >= 0 && first + (int32_t)n <= c->n);
            for (size_t i = 0; i < n; i++) sum += (double)w[i];
            assert_true(fabs(sum - 1) < 1e-5);
            memcpy(have + (h * N_ROWS + r) * (int64_t)c->n + first, w, n * sizeof(float));
        }
    }
    inside_compare(c, key, have, want->data, want->count, REL);
    assert_int_equal(lath_trace_get_weights(t, layer, 0, (int32_t)want->dim[0], &w, &n, &first, &err), LATH_ERR_USAGE);
    test_free(have);
    return true;
}

static void kept_of(const inside_case *c)
{
    const lath_trace_options o = all_positions(EVERYTHING);
    lath_trace *t = inside_run(c, &o);
    int32_t attention = 0;
    for (int32_t i = 0; i < c->n_layers; i++) {
        check_rows(c, t, LATH_POINT_ATTN_IN, i, "attn_in");
        check_rows(c, t, LATH_POINT_HEADS, i, "heads");
        check_rows(c, t, LATH_POINT_MIDDLE, i, "middle");
        assert_true(check_acts(c, t, i) >= c->n);
        check_sums(c, t, i);
        attention += check_weights(c, t, i);
    }
    assert_true(attention > 0);
    lath_trace_close(t);
}

static void test_kept(void **state)
{
    (void)state;
    inside_each(only, kept_of);
}

/* The last position alone, some layers: the same bits. */
static void some_of(const inside_case *c)
{
    const int32_t layers[] = {EDIT_LAYER}, last = c->n - 1;
    lath_trace_options o = all_positions(EVERYTHING);
    lath_trace *whole = inside_run(c, &o);
    o = (lath_trace_options)LATH_TRACE_OPTIONS_INIT;
    o.what = EVERYTHING;
    o.layers = layers;
    o.n_layers = 1;
    lath_trace *some = inside_run(c, &o);
    lath_trace_info info = {.struct_size = sizeof(info)};
    assert_ok(lath_trace_get_info(some, &info, &err), err);
    assert_int_equal(info.n_positions, 1);
    assert_int_equal(info.positions[0], last);
    assert_int_equal(info.post_norm, c->post_norm);
    for (int p = LATH_POINT_ATTN_IN; p <= LATH_POINT_RESIDUAL; p++) {
        size_t d, e;
        const float *row;
        if (p == LATH_POINT_FFN_ACT) continue;
        row = inside_row(some, (lath_point)p, EDIT_LAYER, last, &d);
        assert_memory_equal(row, inside_row(whole, (lath_point)p, EDIT_LAYER, last, &e), d * sizeof(float));
        assert_int_equal(d, e);
        assert_int_equal(lath_trace_get(some, (lath_point)p, 0, last, &row, &d, &err), LATH_ERR_USAGE);
        assert_int_equal(lath_trace_get(some, (lath_point)p, EDIT_LAYER, 0, &row, &d, &err), LATH_ERR_USAGE);
    }
    lath_trace_close(some);
    lath_trace_close(whole);
}

static void test_some(void **state)
{
    (void)state;
    inside_each(only, some_of);
}

/* ----------------------------------------------------------------------------------------------------------------- edits */

/* What a function hook of `middle` and `feature` does, and how often it was called. */
typedef struct change {
    const float *vector;
    int32_t calls, last, expert;
} change;

static int add_vector(void *ctx, lath_value *v)
{
    change *ch = ctx;
    assert_int_equal(v->point, LATH_POINT_MIDDLE);
    assert_int_equal(v->layer, 0);
    assert_int_equal(v->n, 1);
    assert_int_equal(v->positions[0], ch->last);
    for (size_t i = 0; i < v->d; i++) v->rows[i] += ch->vector[i];
    ch->calls++;
    return 1;
}

static int clear_feature(void *ctx, lath_value *v)
{
    change *ch = ctx;
    for (size_t t = 0; t < v->n; t++) v->rows[t * v->d + EDIT_FEATURE] = 0;
    for (size_t t = 0; t < v->n; t++) assert_true(v->positions[t] >= 0 && v->positions[t] <= ch->last);
    ch->calls++;
    return 1;
}

/* false: the model has no such edit (one feature of a layer of experts). */
static bool add_edit(const inside_case *c, const char *name, lath_hooks *h, change *ch)
{
    const int32_t last = c->n - 1;
    const float *vector = inside_want(c, "vector")->data, *donor = inside_want(c, "donor")->data;
    const size_t d = (size_t)c->d;
    char key[64];
    *ch = (change){.vector = vector, .last = last};
    snprintf(key, sizeof(key), "edit.%s", name);
    if (!inside_find(c, key)) return false;
    if (strcmp(name, "layer") == 0) assert_ok(lath_hooks_ablate_layer(h, EDIT_LAYER, &err), err);
    if (strcmp(name, "head") == 0) assert_ok(lath_hooks_ablate_head(h, 0, EDIT_HEAD, &err), err);
    if (strcmp(name, "token") == 0) assert_ok(lath_hooks_ablate_position(h, 0, EDIT_TOKEN, &err), err);
    if (strcmp(name, "steer") == 0) assert_ok(lath_hooks_steer(h, 0, last, vector, d, ALPHA, &err), err);
    if (strcmp(name, "patch") == 0) assert_ok(lath_hooks_patch(h, 0, PATCH_TOKEN, donor, d, &err), err);
    if (strcmp(name, "middle") == 0)
        assert_ok(lath_hooks_add(h, LATH_POINT_MIDDLE, 0, LATH_POSITION_LAST, add_vector, ch, &err), err);
    if (strcmp(name, "feature") == 0)
        assert_ok(lath_hooks_add(h, LATH_POINT_FFN_ACT, EDIT_LAYER, LATH_POSITION_ALL, clear_feature, ch, &err), err);
    return true;
}

static const char *const edits[] = {"layer", "head", "token", "steer", "patch", "middle", "feature"};
enum { N_EDITS = sizeof(edits) / sizeof(edits[0]) };

static void edits_of(const inside_case *c)
{
    for (int i = 0; i < N_EDITS; i++) {
        lath_hooks *h;
        change ch;
        char key[64];
        int64_t n;
        assert_ok(lath_hooks_create(c->model, &h, &err), err);
        if (add_edit(c, edits[i], h, &ch)) {
            lath_trace_options o = all_positions(0);
            o.hooks = h;
            lath_trace *t = inside_run(c, &o);
            float *have = inside_result(c, t, &n);
            snprintf(key, sizeof(key), "edit.%s", edits[i]);
            inside_compare(c, key, have, inside_want(c, key)->data, n, REL);
            assert_int_equal(lath_hooks_count(h), 1);
            assert_true(lath_hooks_applied(h, 0) > 0);
            test_free(have);
            lath_trace_close(t);
        }
        lath_hooks_destroy(h);
    }
}

static void test_edits(void **state)
{
    (void)state;
    inside_each(only, edits_of);
}

/* All but the last token, then that one as a step. */
static void session_of(const inside_case *c)
{
    if (!c->generates) return;
    lath_session_options so = LATH_SESSION_OPTIONS_INIT;
    lath_session *s;
    so.kv = LATH_KV_F32;
    so.ctx = c->n;
    assert_ok(lath_session_create(c->model, &so, &s, &err), err);
    for (int i = 0; i < N_EDITS; i++) {
        lath_hooks *h;
        change ch;
        char key[64];
        const float *logits;
        if (strcmp(edits[i], "middle") == 0) continue; /* the last of each call */
        assert_ok(lath_hooks_create(c->model, &h, &err), err);
        if (add_edit(c, edits[i], h, &ch)) {
            lath_session_rewind(s, 0);
            assert_ok(lath_session_set_hooks(s, h, &err), err);
            assert_ok(lath_session_append(s, c->ids, (size_t)c->n - 1, &err), err);
            assert_ok(lath_session_append(s, c->ids + c->n - 1, 1, &err), err);
            assert_ok(lath_session_logits(s, &logits, &err), err);
            assert_ok(lath_hooks_check(h, &err), err);
            snprintf(key, sizeof(key), "edit.%s", edits[i]);
            const float *want = (const float *)inside_want(c, key)->data + (N_RESULTS - 1) * (int64_t)c->vocab;
            inside_compare(c, key, logits, want, c->vocab, REL);
            assert_ok(lath_session_set_hooks(s, NULL, &err), err);
        }
        lath_hooks_destroy(h);
    }
    lath_session_destroy(s);
}

static void test_session(void **state)
{
    (void)state;
    inside_each(only, session_of);
}

/* ---------------------------------------------------------------------------------------------------------- observing */

typedef struct seen {
    const lath_trace *t;
    int32_t calls, rows;
} seen;

static int compare_value(void *ctx, lath_value *v)
{
    seen *s = ctx;
    for (size_t i = 0; i < v->n && v->point != LATH_POINT_FFN_ACT; i++) {
        size_t d = 0;
        const float *row = inside_row(s->t, v->point, v->layer, v->positions[i], &d);
        assert_int_equal(d, v->d);
        assert_memory_equal(row, v->rows + i * d, d * sizeof(float));
    }
    assert_int_equal(v->n_heads > 0, v->point == LATH_POINT_HEADS);
    s->calls++;
    s->rows += (int32_t)v->n;
    return 0;
}

/* Hooks at every point of every layer see what the trace keeps, and change no bit. */
static void seen_of(const inside_case *c)
{
    lath_hooks *h;
    lath_trace_options o = all_positions(EVERYTHING);
    lath_trace *t = inside_run(c, &o);
    seen s = {.t = t};
    int64_t n;
    assert_ok(lath_hooks_create(c->model, &h, &err), err);
    for (int p = LATH_POINT_EMBED; p <= LATH_POINT_FINAL; p++) {
        const bool ends = p == LATH_POINT_EMBED || p == LATH_POINT_FINAL;
        const lath_status st =
            lath_hooks_add(h, (lath_point)p, ends ? -1 : LATH_LAYERS_ALL, LATH_POSITION_ALL, compare_value, &s, &err);
        assert_int_equal(st, p == LATH_POINT_FINAL && c->post_norm ? LATH_ERR_UNSUPPORTED : LATH_OK);
    }
    o.hooks = h;
    lath_trace *again = inside_run(c, &o);
    assert_true(s.calls >= 8 * c->n_layers + 1);
    assert_true(s.rows >= s.calls);
    float *a = inside_result(c, t, &n), *b = inside_result(c, again, &n);
    assert_memory_equal(a, b, (size_t)n * sizeof(float));
    test_free(a);
    test_free(b);
    lath_trace_close(t);
    lath_trace_close(again);
    lath_hooks_destroy(h);
}

static void test_seen(void **state)
{
    (void)state;
    inside_each(only, seen_of);
}

/* ----------------------------------------------------------------------------------------------------- some of the layers */

static void parts_of(const inside_case *c)
{
    lath_trace_options o = all_positions(0);
    lath_trace *whole = inside_run(c, &o);
    o.end_layer = 1;
    lath_trace *first = inside_run(c, &o);
    float *start = test_malloc((size_t)(c->n * c->d) * sizeof(float));
    size_t d;
    const float *row;
    for (int32_t i = 0; i < c->n; i++)
        memcpy(start + i * c->d, inside_row(first, LATH_POINT_RESIDUAL, 0, i, &d), (size_t)c->d * sizeof(float));
    assert_int_equal(lath_trace_get(first, LATH_POINT_RESIDUAL, 1, 0, &row, &d, &err), LATH_ERR_USAGE);
    if (!c->post_norm) assert_int_equal(lath_trace_get(first, LATH_POINT_FINAL, -1, 0, &row, &d, &err), LATH_ERR_USAGE);
    o.end_layer = 0;
    o.first_layer = 1;
    o.start = start;
    lath_trace *rest = inside_run(c, &o);
    int64_t n;
    float *a = inside_result(c, whole, &n), *b = inside_result(c, rest, &n);
    assert_memory_equal(a, b, (size_t)n * sizeof(float));
    row = inside_row(rest, LATH_POINT_RESIDUAL, 0, 2, &d);
    assert_memory_equal(row, start + 2 * c->d, d * sizeof(float));
    assert_int_equal(lath_trace_get(rest, LATH_POINT_EMBED, -1, 0, &row, &d, &err), LATH_ERR_USAGE);
    test_free(a);
    test_free(b);
    test_free(start);
    lath_trace_close(whole);
    lath_trace_close(first);
    lath_trace_close(rest);
}

static void test_parts(void **state)
{
    (void)state;
    inside_each(only, parts_of);
}

/* ------------------------------------------------------------------------------------------------------------------ lens */

/* A session that reads the same text has the same logits. */
static void check_session(const inside_case *c, const float *logits)
{
    lath_session_options so = LATH_SESSION_OPTIONS_INIT;
    lath_session *s;
    const float *want;
    so.kv = LATH_KV_F32;
    so.ctx = c->n;
    assert_ok(lath_session_create(c->model, &so, &s, &err), err);
    assert_ok(lath_session_append(s, c->ids, (size_t)c->n, &err), err);
    assert_ok(lath_session_logits(s, &want, &err), err);
    inside_compare(c, "a session", logits, want, c->vocab, ADDITIVE);
    lath_session_destroy(s);
}

static void lens_of(const inside_case *c)
{
    if (!c->generates) return;
    const int32_t last = c->n - 1;
    lath_trace *t = inside_run(c, NULL);
    const tensor *want = inside_want(c, "lens");
    float *have = test_malloc((size_t)want->count * sizeof(float)),
          *logits = test_malloc((size_t)c->vocab * sizeof(float));
    assert_int_equal(want->count, c->n_layers * (int64_t)c->vocab);
    assert_ok(lath_trace_lens(t, last, have, &err), err);
    inside_compare(c, "lens", have, want->data, want->count, REL);
    assert_ok(lath_trace_logits(t, last, logits, &err), err);
    inside_compare(c, "the lens behind the last layer", have + want->count - c->vocab, logits, c->vocab, REL);
    check_session(c, logits);
    test_free(have);
    test_free(logits);
    lath_trace_close(t);
}

static void test_lens(void **state)
{
    (void)state;
    inside_each(only, lens_of);
}

int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept),    cmocka_unit_test(test_some), cmocka_unit_test(test_edits),
        cmocka_unit_test(test_session), cmocka_unit_test(test_seen), cmocka_unit_test(test_parts),
        cmocka_unit_test(test_lens),
    };
    return TEST_RUN(tests);
}
