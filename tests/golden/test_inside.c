/* SPDX-License-Identifier: Apache-2.0
 *
 * test_inside.c [CASE]: trace points against the reference with forward hooks (tools/ref/make_inside_goldens.py), for the language models of
 * tests/golden/decoder and some encoders: values that pass by, what is added where, weights of attention, in a whole run and in a step of a session; results when a value is replaced; a run of some of the
 * layers; an FFN that stands in for the model's own. A sink that changes nothing changes no bit.
 */
#include <math.h>

#include "engine/session.h"
#include "store/safetensors.h"
#include "support/forward.h"
#include "support/golden.h"
#include "support/inside_case.h"
#include "support/test.h"

static const float ALPHA = 1.5f, GAIN = 0.75f;
static const int64_t ROWS[N_ROWS] = {4, -1}, RESULTS[N_RESULTS] = {EDIT_TOKEN, PATCH_TOKEN, -1};
static const double REL = 1e-4, ADDITIVE = 1e-5;

static const char *only;

static float *floats(int64_t n) { return test_malloc((size_t)n * sizeof(float)); }

static float *rows_of(const fwd *f, view x)
{
    float *out = floats(x.n_tok * x.d);
    assert_int_equal(f->s->ops->read_rows(f->s, x, 0, x.n_tok, out), LATH_OK);
    return out;
}

/* --------------------------------------------------------------------------------------------------- what passes by */

typedef struct watch {
    const inside_case *o;
    int32_t last, layer, expert; /* the point that was passed last, of `layer` */
    int32_t compared, weights;
    bool step;     /* only the last token is computed, of a session */
    float *stream; /* [n, d] the residual stream, as it was seen last */
    float *added;  /* [n, d] what was added to it since then */
} watch;

/* Points of a layer pass in the order of trace.def. */
static void check_order(watch *w, const trace_event *e)
{
    const int32_t point = (int32_t)e->point;
    const bool next_expert = point == TRACE_FFN_ACT && w->last == TRACE_FFN_ACT && e->expert > w->expert;
    if (e->layer == w->layer && !(point > w->last || next_expert)) fail_msg("%s: order", w->o->name);
    if (e->layer != w->layer && e->point != TRACE_FINAL) {
        assert_int_equal(e->layer, w->layer + 1);
        assert_int_equal(e->point, TRACE_ATTN_IN);
    }
    w->last = point;
    w->layer = e->layer;
    w->expert = e->expert;
}

/* The stream behind a sum: of a pre-norm model the sum; of a post-norm one its norm, which read the sum as the reference has it. */
static void check_sum(watch *w, const char *name, int32_t layer, const float *x)
{
    const inside_case *o = w->o;
    char key[64];
    for (int64_t i = 0; i < o->n * o->d; i++) w->stream[i] += w->added[i];
    snprintf(key, sizeof(key), "layer.%d.sum.%s", layer, name);
    const tensor *t = inside_find(o, key);
    inside_compare(o, key, w->stream, t ? t->data : x, o->n * o->d, t ? REL : ADDITIVE);
    memcpy(w->stream, x, (size_t)(o->n * o->d) * sizeof(float));
}

/* x, the rows that the event has, against the reference's; in a step those are the last token's. */
static void compare_event(watch *w, const trace_event *e, const float *x)
{
    static const char *const names[TRACE_COUNT] = {
        [TRACE_ATTN_IN] = "attn_in", [TRACE_HEADS] = "heads", [TRACE_MIDDLE] = "middle", [TRACE_FFN_ACT] = "act"};
    char key[64];
    if (!names[e->point]) return;
    int n = snprintf(key, sizeof(key), "layer.%d.%s", e->layer, names[e->point]);
    if (e->expert >= 0) snprintf(key + n, sizeof(key) - (size_t)n, ".%d", e->expert);
    const tensor *t = inside_want(w->o, key);
    assert_int_equal(t->dim[1], e->x.d);
    if (w->step)
        assert_int_equal(e->x.n_tok, 1);
    else
        assert_int_equal(e->x.n_tok, t->dim[0]);
    inside_compare(w->o, key, x, (const float *)t->data + t->count - e->x.n_tok * e->x.d, e->x.n_tok * e->x.d, REL);
    w->compared++;
}

static lath_status watch_event(void *ctx, const fwd *f, trace_event *e)
{
    watch *w = ctx;
    const size_t bytes = (size_t)(w->o->n * w->o->d) * sizeof(float);
    float *x = rows_of(f, e->x);
    check_order(w, e);
    assert_int_equal(e->token != NULL, e->expert >= 0);
    assert_int_equal(e->n_heads != 0, e->point == TRACE_HEADS);
    if (!e->token) assert_int_equal(e->x.n_tok, w->step ? 1 : w->o->n);
    compare_event(w, e, x);
    if (w->step) goto done;
    if (e->point == TRACE_EMBED) memcpy(w->stream, x, bytes);
    if (e->point == TRACE_ATTN_OUT || e->point == TRACE_FFN_OUT) memcpy(w->added, x, bytes);
    if (e->point == TRACE_MIDDLE) check_sum(w, "attn", e->layer, x);
    if (e->point == TRACE_RESIDUAL) check_sum(w, "ffn", e->layer, x);
done:
    test_free(x);
    return LATH_OK;
}

/* Weights of the tokens ROWS; keys that are not seen weigh nothing. */
static lath_status watch_weights(void *ctx, const fwd *f, int32_t layer, const op_attention *a)
{
    watch *w = ctx;
    const inside_case *o = w->o;
    char key[64];
    snprintf(key, sizeof(key), "layer.%d.weights", layer);
    const tensor *t = inside_want(o, key);
    assert_int_equal(t->dim[0], a->n_heads);
    assert_int_equal(t->dim[2], o->n);
    float *have = test_calloc((size_t)t->count, sizeof(float)), *seen = floats(a->n_heads * o->n);
    if (w->step) memcpy(have, t->data, (size_t)t->count * sizeof(float)); /* of the other token */
    for (int32_t r = w->step ? N_ROWS - 1 : 0; r < N_ROWS; r++) {
        const int64_t of_all = ROWS[r] < 0 ? o->n + ROWS[r] : ROWS[r], token = w->step ? 0 : of_all;
        assert_int_equal(f->s->ops->attention_weights(f->s, a, token, seen), LATH_OK);
        for (int32_t h = 0; h < a->n_heads; h++) {
            float *row = have + (h * N_ROWS + r) * o->n;
            const int64_t keys = a->end[token] - a->begin[token];
            memset(row, 0, (size_t)o->n * sizeof(float));
            memcpy(row + a->begin[token], seen + h * keys, (size_t)keys * sizeof(float));
        }
    }
    inside_compare(o, key, have, t->data, t->count, REL);
    w->weights++;
    test_free(have);
    test_free(seen);
    return LATH_OK;
}

/* The others keep a state in the place of keys and values. */
static int32_t attention_layers(const inside_case *o)
{
    const arch_model *m = &o->model->arch;
    int32_t n = 0;
    for (int32_t i = 0; i < o->n_layers; i++) n += !(m->desc->recurrent && m->desc->recurrent(m, i));
    assert_true(n > 0);
    return n;
}

static void points_of(const inside_case *o)
{
    watch w = {.o = o, .last = -1, .layer = -1, .stream = floats(o->n * o->d), .added = floats(o->n * o->d)};
    const trace_sink sink = {watch_event, watch_weights, &w};
    const fwd with = {.trace = &sink};
    float *hidden = floats(o->n * o->d);
    test_run(o->model, &(prompt_ids){o->ids, o->n}, 1, &with, hidden, NULL);
    assert_int_equal(w.weights, attention_layers(o));
    assert_true(w.compared >= 4 * o->n_layers);
    test_free(hidden);
    test_free(w.stream);
    test_free(w.added);
}

static void test_points(void **state)
{
    (void)state;
    inside_each(only, points_of);
}

/* The last token as a step of a session. */
static void steps_of(const inside_case *o)
{
    if (!o->generates) return;
    lath_error err;
    lath_session *session;
    lath_session_options options = LATH_SESSION_OPTIONS_INIT;
    watch w = {.o = o, .last = -1, .layer = -1, .step = true};
    const trace_sink sink = {watch_event, watch_weights, &w};
    options.kv = LATH_KV_F32;
    assert_ok(lath_session_create(o->model, &options, &session, &err), err);
    assert_ok(lath_session_append(session, o->ids, (size_t)o->n - 1, &err), err);
    session->trace = &sink;
    assert_ok(lath_session_append(session, o->ids + o->n - 1, 1, &err), err);
    assert_int_equal(w.weights, attention_layers(o));
    assert_true(w.compared >= 4 * o->n_layers);
    lath_session_destroy(session);
}

static void test_steps(void **state)
{
    (void)state;
    inside_each(only, steps_of);
}

/* ---------------------------------------------------------------------------------------------------- what is replaced */

typedef struct edit {
    const char *name;
    trace_point point;
    int32_t layer;
    void (*change)(const inside_case *o, const fwd *f, const trace_event *e);
} edit;

static void zero_all(const inside_case *o, const fwd *f, const trace_event *e)
{
    (void)o;
    assert_int_equal(f->s->ops->clear(f->s, e->x), LATH_OK);
}

static void zero_head(const inside_case *o, const fwd *f, const trace_event *e)
{
    const int64_t size = e->x.d / e->n_heads;
    (void)o;
    assert_int_equal(f->s->ops->clear(f->s, f->s->ops->slice(e->x, EDIT_HEAD * size, size)), LATH_OK);
}

static void zero_feature(const inside_case *o, const fwd *f, const trace_event *e)
{
    (void)o;
    assert_int_equal(f->s->ops->clear(f->s, f->s->ops->slice(e->x, EDIT_FEATURE, 1)), LATH_OK);
}

/* row = by row + times vector */
static void change_row(const fwd *f, view x, int64_t token, float by, float times, const float *vector)
{
    float *row = floats(x.d);
    assert_int_equal(f->s->ops->read_rows(f->s, x, token, 1, row), LATH_OK);
    for (int64_t i = 0; i < x.d; i++) row[i] = by * row[i] + (times != 0 ? times * vector[i] : 0);
    assert_int_equal(f->s->ops->write_rows(f->s, x, token, 1, row), LATH_OK);
    test_free(row);
}

static void zero_token(const inside_case *o, const fwd *f, const trace_event *e)
{
    (void)o;
    change_row(f, e->x, EDIT_TOKEN, 0, 0, NULL);
}
static void steer(const inside_case *o, const fwd *f, const trace_event *e)
{
    change_row(f, e->x, o->n - 1, 1, ALPHA, inside_want(o, "vector")->data);
}
static void add_vector(const inside_case *o, const fwd *f, const trace_event *e)
{
    change_row(f, e->x, o->n - 1, 1, 1, inside_want(o, "vector")->data);
}
static void patch(const inside_case *o, const fwd *f, const trace_event *e)
{
    change_row(f, e->x, PATCH_TOKEN, 0, 1, inside_want(o, "donor")->data);
}

static const edit edits[] = {
    {"layer", TRACE_ATTN_OUT, EDIT_LAYER, zero_all},
    {"layer", TRACE_FFN_OUT, EDIT_LAYER, zero_all},
    {"head", TRACE_HEADS, 0, zero_head},
    {"token", TRACE_RESIDUAL, 0, zero_token},
    {"steer", TRACE_RESIDUAL, 0, steer},
    {"patch", TRACE_RESIDUAL, 0, patch},
    {"middle", TRACE_MIDDLE, 0, add_vector},
    {"feature", TRACE_FFN_ACT, EDIT_LAYER, zero_feature},
};
enum { N_EDITS = sizeof(edits) / sizeof(edits[0]) };

typedef struct editing {
    const inside_case *o;
    const char *name;
    int32_t done;
} editing;

static lath_status edit_event(void *ctx, const fwd *f, trace_event *e)
{
    editing *ed = ctx;
    for (size_t i = 0; i < N_EDITS; i++) {
        if (strcmp(edits[i].name, ed->name) != 0 || edits[i].point != e->point || edits[i].layer != e->layer) continue;
        edits[i].change(ed->o, f, e);
        e->changed = true;
        ed->done++;
    }
    return LATH_OK;
}

/* Logits of all tokens, or an encoder's hidden states. */
static void compare_result(const inside_case *o, const char *key, float *have)
{
    const tensor *t = inside_want(o, key);
    for (int32_t r = 0; o->generates && r < N_RESULTS; r++) /* rise: no row is overwritten before it has moved */
        memmove(have + r * o->vocab, have + (RESULTS[r] < 0 ? o->n + RESULTS[r] : RESULTS[r]) * o->vocab,
                (size_t)o->vocab * sizeof(float));
    inside_compare(o, key, have, t->data, t->count, REL);
}

/* The factors of a run stand in for layers; what an FFN did is said of the others only. */
static void gain_of(const inside_case *o, float *have)
{
    float gains[8] = {0};
    ffn_took took[8] = {{0}};
    gains[EDIT_LAYER] = GAIN;
    assert_true(o->n_layers <= 8);
    const fwd with = {.gains = gains, .took = took};
    test_run(o->model, &(prompt_ids){o->ids, o->n}, 1, &with, o->generates ? NULL : have, o->generates ? have : NULL);
    compare_result(o, "edit.gain", have);
    for (int32_t i = 0; i < o->n_layers; i++) {
        ffn_parts parts;
        const arch_dims *d = &o->model->arch.dims;
        const bool dense = ffn_get_parts(o->model->arch.ffn, i, &parts);
        const int64_t features = dense ? d->d_ff : d->n_top_experts * d->d_expert + d->d_shared;
        if (dense) {
            assert_int_equal(parts.d_ff, d->d_ff);
            assert_int_equal(parts.up->w.rows, d->d_ff);
            assert_int_equal(parts.down->w.cols, d->d_ff);
        }
        if (i == EDIT_LAYER) {
            assert_true(took[i].calls == 0 && !took[i].path);
            continue;
        }
        assert_string_equal(took[i].path, dense ? "dense" : "moe");
        assert_int_equal(took[i].calls, 1);
        assert_int_equal(took[i].tokens, o->n);
        assert_int_equal(took[i].features, o->n * features);
    }
}

static void edits_of(const inside_case *o)
{
    float *have = floats(o->n * (o->generates ? o->vocab : o->d));
    for (size_t i = 0; i < N_EDITS; i++) {
        char key[64];
        editing ed = {.o = o, .name = edits[i].name};
        const trace_sink sink = {.see = edit_event, .ctx = &ed};
        const fwd with = {.trace = &sink};
        snprintf(key, sizeof(key), "edit.%s", ed.name);
        if (strcmp(ed.name, "feature") == 0 && !inside_find(o, key)) continue; /* a layer of experts */
        test_run(o->model, &(prompt_ids){o->ids, o->n}, 1, &with, o->generates ? NULL : have,
                 o->generates ? have : NULL);
        assert_true(ed.done > 0);
        compare_result(o, key, have);
    }
    gain_of(o, have);
    test_free(have);
}

static void test_edits(void **state)
{
    (void)state;
    inside_each(only, edits_of);
}

/* --------------------------------------------------------------------------------------------------------- the same bits */

static lath_status say_changed(void *ctx, const fwd *f, trace_event *e)
{
    (void)f;
    (*(int32_t *)ctx)++;
    e->changed = true;
    return LATH_OK;
}

/* What stands between the layers, written down and put in again. */
typedef struct stop {
    float *x; /* [n, d] */
    int32_t layer;
    bool put;
} stop;

static lath_status stop_event(void *ctx, const fwd *f, trace_event *e)
{
    const stop *s = ctx;
    if (e->point != TRACE_RESIDUAL || e->layer != s->layer) return LATH_OK;
    e->changed = s->put;
    if (s->put) return f->s->ops->write_rows(f->s, e->x, 0, e->x.n_tok, s->x);
    return f->s->ops->read_rows(f->s, e->x, 0, e->x.n_tok, s->x);
}

/* hidden states of a run with `with`, against `plain`. */
static void same_bits(const inside_case *o, const char *what, const fwd *with, const float *plain)
{
    float *have = floats(o->n * o->d);
    test_run(o->model, &(prompt_ids){o->ids, o->n}, 1, with, have, NULL);
    if (memcmp(have, plain, (size_t)(o->n * o->d) * sizeof(float)) != 0) fail_msg("%s: other bits: %s", o->name, what);
    test_free(have);
}

static void bits_of(const inside_case *o)
{
    float *plain = floats(o->n * o->d);
    test_run(o->model, &(prompt_ids){o->ids, o->n}, 1, &(fwd){0}, plain, NULL);
    int32_t seen = 0;
    const trace_sink idle = {.see = say_changed, .ctx = &seen};
    same_bits(o, "a sink that says it changes values", &(fwd){.trace = &idle}, plain);
    assert_true(seen >= 8 * o->n_layers + 1);
    stop at = {.x = floats(o->n * o->d), .layer = 0};
    const trace_sink sink = {.see = stop_event, .ctx = &at};
    float *first = floats(o->n * o->d);
    test_run(o->model, &(prompt_ids){o->ids, o->n}, 1, &(fwd){.trace = &sink, .end_layer = 1}, first, NULL);
    assert_memory_equal(first, at.x, (size_t)(o->n * o->d) * sizeof(float));
    at.put = true;
    same_bits(o, "layer 0, then the others", &(fwd){.trace = &sink, .first_layer = 1}, plain);
    test_free(at.x);
    test_free(first);
    test_free(plain);
}

static void test_bits(void **state)
{
    (void)state;
    inside_each(only, bits_of);
}

/* ----------------------------------------------------------------------------------------------------------------- lens */

static lath_status keep_last(void *ctx, const fwd *f, trace_event *e)
{
    if (e->point != TRACE_RESIDUAL) return LATH_OK;
    return f->s->ops->read_rows(f->s, e->x, e->x.n_tok - 1, 1, (float *)ctx + e->layer * e->x.d);
}

static lath_status put_rows(void *ctx, const fwd *f, trace_event *e)
{
    if (e->point != TRACE_RESIDUAL) return LATH_OK;
    e->changed = true;
    return f->s->ops->write_rows(f->s, e->x, 0, e->x.n_tok, ctx);
}

/* The last token's stream behind each layer, as a batch of its own, through what is behind the last layer. */
static void lens_of(const inside_case *o)
{
    if (!o->generates) return;
    float *kept = floats(o->n_layers * o->d), *have = floats(o->n_layers * o->vocab);
    const trace_sink keep = {.see = keep_last, .ctx = kept}, put = {.see = put_rows, .ctx = kept};
    test_run(o->model, &(prompt_ids){o->ids, o->n}, 1, &(fwd){.trace = &keep}, NULL, NULL);
    const prompt_ids some = {o->ids, o->n_layers};
    const fwd with = {.trace = &put, .first_layer = o->n_layers, .end_layer = o->n_layers};
    test_run(o->model, &some, 1, &with, NULL, have);
    const tensor *t = inside_want(o, "lens");
    inside_compare(o, "lens", have, t->data, t->count, REL);
    test_free(kept);
    test_free(have);
}

static void test_lens(void **state)
{
    (void)state;
    inside_each(only, lens_of);
}

/* ------------------------------------------------------------------------------------------------------- the FFN of a run */

/* The model's own FFN, of which layer `off` is left out. */
typedef struct counted {
    ffn base;
    ffn *inner;
    int32_t calls, off;
} counted;

static size_t counted_floats(const ffn *self, const backend_ops *ops, int64_t n_tok)
{
    return ffn_memory_floats(((const counted *)self)->inner, ops, n_tok);
}

static lath_status counted_forward(ffn *self, const fwd *f, int32_t layer, view x, float *memory, view out)
{
    counted *c = (counted *)self;
    assert_int_equal(layer, c->calls++);
    if (layer == c->off) return f->s->ops->clear(f->s, out);
    return ffn_forward(c->inner, f, layer, x, memory, out);
}

static lath_status zero_ffn(void *ctx, const fwd *f, trace_event *e)
{
    (void)ctx;
    if (e->point != TRACE_FFN_OUT || e->layer != EDIT_LAYER) return LATH_OK;
    e->changed = true;
    return f->s->ops->clear(f->s, e->x);
}

static void ffn_of(const inside_case *o)
{
    static const ffn_ops ops = {.name = "counted", .memory_floats = counted_floats, .forward = counted_forward};
    counted c = {.base = {&ops}, .inner = o->model->arch.ffn, .off = -1};
    float *plain = floats(o->n * o->d);
    test_run(o->model, &(prompt_ids){o->ids, o->n}, 1, &(fwd){0}, plain, NULL);
    same_bits(o, "the same FFN", &(fwd){.ffn = &c.base}, plain);
    assert_int_equal(c.calls, o->n_layers);
    c = (counted){.base = {&ops}, .inner = o->model->arch.ffn, .off = EDIT_LAYER};
    const trace_sink sink = {.see = zero_ffn};
    test_run(o->model, &(prompt_ids){o->ids, o->n}, 1, &(fwd){.trace = &sink}, plain, NULL);
    same_bits(o, "an FFN that adds nothing", &(fwd){.ffn = &c.base}, plain);
    test_free(plain);
}

static void test_ffn(void **state)
{
    (void)state;
    inside_each(only, ffn_of);
}

int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_points), cmocka_unit_test(test_steps), cmocka_unit_test(test_edits),
        cmocka_unit_test(test_bits),   cmocka_unit_test(test_lens),  cmocka_unit_test(test_ffn),
    };
    return TEST_RUN(tests);
}
