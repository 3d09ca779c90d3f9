/* SPDX-License-Identifier: Apache-2.0
 * inside_case.c: see inside_case.h. */
#include "support/inside_case.h"

#include <math.h>

#include "base/alloc.h"
#include "support/golden.h"
#include "support/test.h"

inside_case inside_open(const char *name, const lath_allocator *alloc)
{
    inside_case c = {.name = name};
    lath_error err = {0};
    char dir[1024], path[1400], file[1500];
    lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
    lath_model_options mo = LATH_MODEL_OPTIONS_INIT;
    lath_model_info info = {.struct_size = sizeof(info)};
    ro.n_threads = 2;
    ro.allocator = alloc;
    mo.precision = LATH_PRECISION_EXACT;
    test_path(dir, sizeof(dir), "golden", "");
    snprintf(path, sizeof(path), "%s%s", dir, name);
    snprintf(file, sizeof(file), "%s/inside.safetensors", path);
    assert_ok(lath_runtime_create(&ro, &c.rt, &err), err);
    assert_ok(lath_model_open(c.rt, path, &mo, &c.model, &err), err);
    assert_ok(safetensors_open(alloc_default(), file, FILE_MAP, &c.want, &err), err);
    assert_ok(lath_model_get_info(c.model, &info, &err), err);
    const tensor *ids = inside_want(&c, "ids");
    c.ids = ids->data;
    c.n = (int32_t)ids->count;
    c.n_layers = info.n_layers;
    c.d = info.d_model;
    c.vocab = info.vocab_size;
    c.generates = strncmp(name, "decoder/", 8) == 0;
    c.post_norm = !c.generates && strncmp(name, "modernbert/", 11) != 0;
    return c;
}

void inside_close(inside_case *c)
{
    safetensors_close(c->want);
    lath_model_close(c->model);
    lath_runtime_destroy(c->rt);
}

void inside_each(const char *only, void (*check)(const inside_case *c))
{
    static const char *const encoders[] = {"bert/mean_norm_gelu", "distilbert/mean_norm", "mpnet/mean_norm",
                                           "modernbert/local6_old"};
    arena mem;
    char dir[1024], name[300];
    size_t n, checked = 0;
    arena_init(&mem, alloc_default());
    test_path(dir, sizeof(dir), "golden", "decoder");
    const char **decoders = test_list_dirs(&mem, dir, &n);
    for (size_t i = 0; i < n + 4; i++) {
        snprintf(name, sizeof(name), "%s%s", i < n ? "decoder/" : "", i < n ? decoders[i] : encoders[i - n]);
        if (only && strcmp(only, name) != 0) continue;
        inside_case c = inside_open(name, NULL);
        check(&c);
        inside_close(&c);
        checked++;
    }
    arena_deinit(&mem);
    if (checked == 0) fail_msg("no case %s", only ? only : "");
}

const tensor *inside_find(const inside_case *c, const char *key) { return safetensors_find(c->want, key); }

const tensor *inside_want(const inside_case *c, const char *key)
{
    const tensor *t = inside_find(c, key);
    if (!t) fail_msg("%s: no reference tensor %s", c->name, key);
    return t;
}

void inside_compare(const inside_case *c, const char *what, const float *have, const float *want, int64_t n,
                    double most)
{
    double largest = 0;
    for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs((double)want[i]));
    const double d = golden_max_abs(have, want, (size_t)n) / largest;
    if (!(d <= most)) fail_msg("%s: %s: %g of the largest value", c->name, what, d);
}

lath_trace *inside_run(const inside_case *c, const lath_trace_options *o)
{
    lath_error err = {0};
    lath_trace *t;
    const lath_status st = lath_trace_run(c->model, c->ids, (size_t)c->n, o, &t, &err);
    if (st != LATH_OK) fail_msg("%s: %s", c->name, err.msg);
    return t;
}

const float *inside_row(const lath_trace *t, lath_point point, int32_t layer, int32_t position, size_t *d)
{
    lath_error err = {0};
    const float *row;
    assert_ok(lath_trace_get(t, point, layer, position, &row, d, &err), err);
    return row;
}

float *inside_result(const inside_case *c, const lath_trace *t, int64_t *n)
{
    const int32_t results[N_RESULTS] = {EDIT_TOKEN, PATCH_TOKEN, c->n - 1};
    lath_error err = {0};
    size_t d;
    *n = c->generates ? N_RESULTS * (int64_t)c->vocab : c->n * c->d;
    float *out = test_malloc((size_t)*n * sizeof(float));
    for (int32_t i = 0; c->generates && i < N_RESULTS; i++)
        assert_ok(lath_trace_logits(t, results[i], out + i * (int64_t)c->vocab, &err), err);
    for (int32_t i = 0; !c->generates && i < c->n; i++) {
        const float *row = c->post_norm ? inside_row(t, LATH_POINT_RESIDUAL, c->n_layers - 1, i, &d)
                                        : inside_row(t, LATH_POINT_FINAL, -1, i, &d);
        memcpy(out + i * c->d, row, (size_t)c->d * sizeof(float));
    }
    return out;
}
