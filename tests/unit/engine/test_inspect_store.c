/* SPDX-License-Identifier: Apache-2.0
 *
 * test_inspect_store.c [CASE]: traces of the language models of tests/golden/decoder and some encoders in files: every vector is the trace's, and the parts of a layer add up to
 * what changed in it; boundary and context files through the public interface.
 */
#include <math.h>
#include <unistd.h>

#include "support/inside_case.h"
#include "support/test.h"
#include "support/tmpdir.h"

static const double ADDITIVE = 1e-5;

static const char *only;
static char dir[TMP_PATH], path[TMP_PATH];
static lath_error err;

static lath_trace_options all_positions(void)
{
    lath_trace_options o = LATH_TRACE_OPTIONS_INIT;
    o.all_positions = 1;
    return o;
}

static lath_store *open_saved(const inside_case *c, const lath_trace *t, lath_store_info *info)
{
    lath_store *s;
    assert_ok(lath_trace_save(t, path, &err), err);
    assert_ok(lath_store_open(c->rt, path, LATH_STORE_TRACE, &s, &err), err);
    info->struct_size = sizeof(*info);
    assert_ok(lath_store_get_info(s, info, &err), err);
    assert_int_equal(info->kind, LATH_STORE_TRACE);
    assert_int_equal(info->d_model, c->d);
    assert_int_equal(info->n_layers, c->n_layers);
    assert_int_equal(info->post_norm, c->post_norm);
    assert_int_equal(info->n_records, c->n);
    assert_int_equal(info->n_vectors, (c->n_layers + 1) * (c->post_norm ? 5 : 3));
    return s;
}

/* The parts of a waypoint and the stream before are the stream behind. */
static void check_adds_up(const inside_case *c, const lath_store *s, int32_t token, int32_t layer, size_t parts)
{
    const size_t at = (size_t)(layer + 1) * parts, d = (size_t)c->d;
    const float *before = lath_store_get(s, (size_t)token, at - parts), *behind = lath_store_get(s, (size_t)token, at);
    float *sum = test_malloc(d * sizeof(float));
    for (size_t i = 0; i < d; i++) {
        double x = before[i];
        for (size_t p = 1; p < parts; p++) x += lath_store_get(s, (size_t)token, at + p)[i];
        sum[i] = (float)x;
    }
    inside_compare(c, "sum of the parts", sum, behind, c->d, ADDITIVE);
    test_free(sum);
}

static void check_same(const inside_case *c, const lath_store *s, const lath_trace *t, lath_point point, int32_t layer,
                       int32_t token, size_t v)
{
    size_t d;
    const float *want = inside_row(t, point, layer, token, &d);
    assert_int_equal(d, c->d);
    assert_memory_equal(lath_store_get(s, (size_t)token, v), want, d * sizeof(float));
}

static void check_saved(const inside_case *c)
{
    const size_t parts = c->post_norm ? 5 : 3;
    const lath_trace_options o = all_positions();
    lath_trace *t = inside_run(c, &o);
    lath_store_info info;
    lath_store *s = open_saved(c, t, &info);
    for (int32_t i = 0; i < c->n; i++) {
        check_same(c, s, t, LATH_POINT_EMBED, -1, i, 0);
        for (size_t v = 1; v < parts; v++) {
            for (int64_t k = 0; k < c->d; k++) assert_true(lath_store_get(s, (size_t)i, v)[k] == 0);
        }
        for (int32_t l = 0; l < c->n_layers; l++) {
            const size_t at = (size_t)(l + 1) * parts;
            check_same(c, s, t, LATH_POINT_RESIDUAL, l, i, at);
            check_same(c, s, t, LATH_POINT_ATTN_OUT, l, i, at + 1);
            check_same(c, s, t, LATH_POINT_FFN_OUT, l, i, at + (c->post_norm ? 3 : 2));
            check_adds_up(c, s, i, l, parts);
        }
    }
    assert_null(lath_store_get(s, (size_t)c->n, 0));
    assert_null(lath_store_get(s, 0, info.n_vectors));
    assert_int_equal(lath_store_find(s, 0), -1);
    lath_store_close(s);
    lath_trace_close(t);
}

/* A layer that a gain stands in for: what it changed is its FFN's part. */
static void check_gain(const inside_case *c)
{
    lath_trace_options o = all_positions();
    lath_ffn *ffn;
    lath_store_info info;
    assert_ok(lath_ffn_open(c->model, "0=gain:0.5,1-=dense", &ffn, &err), err);
    o.ffn = ffn;
    lath_trace *t = inside_run(c, &o);
    lath_store *s = open_saved(c, t, &info);
    const size_t parts = c->post_norm ? 5 : 3;
    for (int32_t i = 0; i < c->n; i++) {
        for (int32_t l = 0; l < c->n_layers; l++) check_adds_up(c, s, i, l, parts);
    }
    lath_store_close(s);
    lath_trace_close(t);
    lath_ffn_close(ffn);
}

static void test_saved(void **state)
{
    (void)state;
    inside_each(only, check_saved);
}

static void test_gain(void **state)
{
    (void)state;
    inside_each(only ? only : "decoder/llama2", check_gain);
    if (!only) inside_each("bert/mean_norm_gelu", check_gain);
}

static void check_refused(const inside_case *c)
{
    lath_trace_options o = all_positions();
    lath_trace *t;
    tmp_write(dir, "x", "before");
    o.all_positions = 0;
    t = inside_run(c, &o);
    assert_int_equal(lath_trace_save(t, path, &err), LATH_ERR_USAGE);
    assert_non_null(strstr(err.msg, "positions are there"));
    lath_trace_close(t);
    o = all_positions();
    o.end_layer = 1;
    t = inside_run(c, &o);
    assert_int_equal(lath_trace_save(t, path, &err), LATH_ERR_USAGE);
    assert_non_null(strstr(err.msg, "layers 0 to 0 ran"));
    lath_trace_close(t);
    o = all_positions();
    const int32_t first[] = {0};
    o.layers = first;
    o.n_layers = 1;
    t = inside_run(c, &o);
    assert_int_equal(lath_trace_save(t, path, &err), LATH_ERR_USAGE);
    assert_non_null(strstr(err.msg, "1 of 2 layers are kept"));
    lath_trace_close(t);
    o = all_positions();
    t = inside_run(c, &o);
    assert_int_equal(lath_trace_save(t, "/nowhere/x", &err), LATH_ERR_IO);
    assert_int_equal(lath_trace_save(NULL, path, &err), LATH_ERR_USAGE);
    lath_trace_close(t);
    size_t n;
    char *bytes = tmp_read(dir, "x", &n);
    assert_string_equal(bytes, "before"); /* nothing was written */
    free(bytes);
}

static void test_refused(void **state)
{
    (void)state;
    inside_each("decoder/llama2", check_refused);
}

/* ------------------------------------------------------------------------------------------------------------- the others */

/* Field by field: what is between them is nobody's. */
static void same_info(const lath_store_info *have, const lath_store_info *want)
{
    assert_int_equal(have->kind, want->kind);
    assert_int_equal(have->d_model, want->d_model);
    assert_int_equal(have->n_layers, want->n_layers);
    assert_int_equal(have->post_norm, want->post_norm);
    assert_int_equal(have->window, want->window);
    assert_int_equal(have->tier, want->tier);
    assert_int_equal(have->n_critical, want->n_critical);
    assert_memory_equal(have->critical, want->critical, sizeof(have->critical));
    assert_int_equal(have->most, want->most);
    assert_int_equal(have->n_records, want->n_records);
    assert_int_equal(have->n_vectors, want->n_vectors);
    assert_int_equal(have->n_tokens, want->n_tokens);
}

static void check_context(const inside_case *c)
{
    lath_store_info what = {.struct_size = sizeof(what),
                            .kind = LATH_STORE_CONTEXT,
                            .d_model = c->d,
                            .n_layers = c->n_layers,
                            .window = 4,
                            .tier = 3,
                            .n_critical = 1,
                            .critical = {1},
                            .most = 6},
                    have = {.struct_size = sizeof(have)};
    const lath_trace_options o = all_positions();
    lath_trace *t = inside_run(c, &o);
    const size_t d = (size_t)c->d;
    float *record = test_malloc(3 * d * sizeof(float));
    lath_store_writer *w, *second;
    lath_store *s;
    unlink(path);
    for (uint32_t at = 0; at + 4 <= (uint32_t)c->n; at += 4) { /* a writer for each window */
        const int32_t last = (int32_t)at + 3;
        size_t n;
        memcpy(record, inside_row(t, LATH_POINT_RESIDUAL, c->n_layers - 1, last, &n), d * sizeof(float));
        memcpy(record + d, inside_row(t, LATH_POINT_FFN_OUT, 1, last, &n), d * sizeof(float));
        memcpy(record + 2 * d, inside_row(t, LATH_POINT_ATTN_OUT, 1, last, &n), d * sizeof(float));
        assert_ok(lath_store_writer_open(c->rt, path, &what, &w, &err), err);
        assert_int_equal(lath_store_writer_open(c->rt, path, &what, &second, &err), LATH_ERR_IO);
        assert_ok(lath_store_add(w, at, 4, record, &err), err);
        lath_store_writer_close(w);
    }
    assert_ok(lath_store_open(c->rt, path, LATH_STORE_CONTEXT, &s, &err), err);
    assert_ok(lath_store_get_info(s, &have, &err), err);
    what.n_records = (size_t)c->n / 4;
    what.n_vectors = 3;
    what.n_tokens = (uint32_t)c->n / 4 * 4;
    same_info(&have, &what);
    assert_memory_equal(lath_store_get(s, what.n_records - 1, 2), record + 2 * d, d * sizeof(float));
    uint32_t begin, end;
    assert_ok(lath_store_window(s, 1, &begin, &end, &err), err);
    assert_true(begin == 4 && end == 8);
    assert_int_equal(lath_store_window(s, what.n_records, &begin, &end, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_store_find(s, 5), 1);
    lath_store_close(s);
    what.tier = 2;
    assert_int_equal(lath_store_writer_open(c->rt, path, &what, &w, &err), LATH_ERR_USAGE);
    test_free(record);
    lath_trace_close(t);
}

static void test_context(void **state)
{
    (void)state;
    inside_each("decoder/llama2", check_context);
}

static void check_boundary(const inside_case *c)
{
    lath_store_info what = {.struct_size = sizeof(what), .kind = LATH_STORE_BOUNDARY, .d_model = 2, .window = 200};
    const float record[2] = {1, -2};
    lath_store_writer *w = NULL;
    lath_store *s = NULL;
    unlink(path);
    assert_ok(lath_store_writer_open(c->rt, path, &what, &w, &err), err);
    assert_ok(lath_store_add(w, 0, 200, record, &err), err);
    assert_int_equal(lath_store_add(w, 100, 200, record, &err), LATH_ERR_USAGE);
    lath_store_writer_close(w);
    assert_ok(lath_store_open(c->rt, path, LATH_STORE_BOUNDARY, &s, &err), err);
    what.struct_size = sizeof(what);
    assert_ok(lath_store_get_info(s, &what, &err), err);
    assert_int_equal(what.most, 10000);
    assert_int_equal(what.n_tokens, 200);
    assert_memory_equal(lath_store_get(s, 0, 0), record, sizeof(record));
    lath_store_close(s);
    assert_int_equal(lath_store_open(c->rt, path, LATH_STORE_TRACE, &s, &err), LATH_ERR_FORMAT);
    assert_int_equal(lath_store_open(c->rt, path, (lath_store_kind)3, &s, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_store_open(c->rt, "/nowhere/x", LATH_STORE_TRACE, &s, &err), LATH_ERR_NOT_FOUND);
    lath_store_info bad[] = {what, what, what, what};
    bad[0].kind = (lath_store_kind)3;
    bad[1].d_model = 0;
    bad[2].window = 0;
    bad[3].struct_size = 1;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(lath_store_writer_open(c->rt, path, &bad[i], &w, &err), LATH_ERR_USAGE);
    lath_store_close(NULL);
    lath_store_writer_close(NULL);
}

static void test_boundary(void **state)
{
    (void)state;
    inside_each("decoder/llama2", check_boundary);
}

static int setup(void **state)
{
    (void)state;
    tmp_make(dir);
    tmp_join(path, dir, "x");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tmp_remove(dir);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_saved),   cmocka_unit_test(test_gain),     cmocka_unit_test(test_refused),
        cmocka_unit_test(test_context), cmocka_unit_test(test_boundary),
    };
    only = argc > 1 ? argv[1] : NULL;
    return cmocka_run_group_tests(tests, setup, teardown) == 0 ? 0 : 1;
}
