/* SPDX-License-Identifier: Apache-2.0
 * test_sampler.c: tokens of a seed as tools/ref/make_sampler_cases.py found them by sorting in float64; the distribution by
 * chi-square; logprobs against float64; options, bad logits, counts of tokens, memory. */
#include "support/test.h"

#include <float.h>
#include <math.h>

#include "base/file.h"
#include "base/json.h"
#include "engine/sampler.h"

static kern_table kern;
static lath_error err;

static uint64_t splitmix(uint64_t x)
{
    uint64_t z = x + 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* As make_logits of the script. */
static float *make_logits(const char *kind, int32_t n, uint64_t seed)
{
    float *v = malloc((size_t)n * sizeof(*v));
    assert_non_null(v);
    for (int32_t i = 0; i < n; i++) {
        const double u = (double)(splitmix(seed * 1000003 + (uint64_t)i) >> 40) / 16777216;
        if (strcmp(kind, "flat") == 0)
            v[i] = (float)(u * 24 - 12);
        else if (strcmp(kind, "peaked") == 0)
            v[i] = (float)(u * u * u * u * 30 - 10);
        else if (strcmp(kind, "ties") == 0)
            v[i] = (float)(floor(u * 12) / 2 - 3);
        else
            v[i] = 0;
    }
    return v;
}

static int32_t *get_ints(const json_value *list, size_t *n)
{
    *n = 0;
    int32_t *v = calloc(list ? list->u.items.count + 1 : 1, sizeof(*v));
    assert_non_null(v);
    for (const json_value *i = list ? list->u.items.first : NULL; i; i = i->next) v[(*n)++] = (int32_t)i->u.integer;
    return v;
}

static double get_real(const json_value *o, const char *key, double other)
{
    assert_ok(json_get_real(o, key, "sampler.jsonl", &other, &err), err);
    return other;
}

static int64_t get_int(const json_value *o, const char *key)
{
    int64_t v = 0;
    assert_ok(json_get_int(o, key, "sampler.jsonl", 0, INT64_MAX, &v, &err), err);
    return v;
}

static void read_options(const json_value *c, lath_sample_options *o, lath_logit_bias *bias)
{
    const json_value *v = json_get(c, "options"), *list = json_get(c, "bias");
    *o = (lath_sample_options)LATH_SAMPLE_OPTIONS_INIT;
    o->temperature = get_real(v, "temperature", 1);
    o->top_k = (int32_t)get_int(v, "top_k");
    o->top_p = get_real(v, "top_p", 1);
    o->min_p = get_real(v, "min_p", 0);
    o->repeat_penalty = get_real(v, "repeat", 1);
    o->presence_penalty = get_real(v, "presence", 0);
    o->frequency_penalty = get_real(v, "frequency", 0);
    o->seed = (uint64_t)get_int(v, "seed");
    o->bias = bias;
    for (const json_value *i = list ? list->u.items.first : NULL; i; i = i->next) {
        bias[o->n_bias].id = (int32_t)i->u.items.first->u.integer;
        bias[o->n_bias++].bias = (float)i->u.items.first->next->u.real;
    }
}

static void run_case(const json_value *c, const char *name)
{
    lath_logit_bias bias[8];
    lath_sample_options o;
    sampler s;
    size_t n_prompt, n_allowed, n_ids;
    const char *kind = NULL;
    const int32_t n = (int32_t)get_int(c, "n");
    read_options(c, &o, bias);
    assert_ok(json_get_str(c, "logits", "sampler.jsonl", &kind, &err), err);
    float *logits = make_logits(kind, n, (uint64_t)get_int(c, "logits_seed"));
    int32_t *prompt = get_ints(json_get(c, "prompt"), &n_prompt), *ids = get_ints(json_get(c, "ids"), &n_ids);
    int32_t *allowed = get_ints(json_get(c, "allowed"), &n_allowed);
    uint32_t *mask = calloc((size_t)n / 32 + 1, sizeof(*mask));
    for (size_t i = 0; i < n_allowed; i++) mask[allowed[i] / 32] |= 1u << (allowed[i] % 32);
    assert_ok(sampler_init(&s, alloc_default(), &kern, n, &o, &err), err);
    sampler_accept(&s, prompt, n_prompt);
    assert_true(n_ids > 0);
    for (size_t i = 0; i < n_ids; i++) {
        int32_t id = -1;
        assert_ok(sampler_pick(&s, logits, n_allowed ? mask : NULL, &id, &err), err);
        if (id != ids[i]) fail_msg("%s: step %zu: %d, want %d", name, i, (int)id, (int)ids[i]);
        sampler_accept(&s, &id, 1);
    }
    sampler_deinit(&s);
    free(mask);
    free(allowed);
    free(ids);
    free(prompt);
    free(logits);
}

static void test_reference(void **state)
{
    (void)state;
    char path[512];
    arena mem;
    buf file;
    size_t n = 0;
    snprintf(path, sizeof(path), "%s/unit/engine/sampler.jsonl", test_data_dir());
    arena_init(&mem, alloc_default());
    buf_init(&file, alloc_default(), 1 << 24);
    assert_ok(file_read(&file, path, 1 << 24, &err), err);
    for (const char *line = file.data, *end = line + file.len; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        json_value *c;
        const char *name = "";
        assert_non_null(stop);
        assert_ok(json_parse(&mem, path, line, (size_t)(stop - line), NULL, &c, &err), err);
        assert_ok(json_get_str(c, "name", path, &name, &err), err);
        run_case(c, name);
        line = stop + 1;
        n++;
    }
    assert_true(n >= 27);
    buf_deinit(&file);
    arena_deinit(&mem);
}

/* ------------------------------------------------------------------------------------------------------- distribution */

/* Draws of 40 tokens against the softmax in f64: chi-square of 39 degrees of freedom is over 72.1 once in a thousand times (and the
 * seed is fixed). */
static void test_distribution(void **state)
{
    (void)state;
    enum { N = 40, DRAWS = 100000 };
    static const struct {
        int32_t top_k;
        double temperature;
    } rows[] = {{0, 1.5}, {N, 1.5}, {N + 5, 2}, {0, 3}};
    float *logits = make_logits("ties", N, 5);
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        lath_sample_options o = LATH_SAMPLE_OPTIONS_INIT;
        sampler s;
        double p[N], total = 0, chi = 0;
        int count[N] = {0};
        o.temperature = rows[k].temperature;
        o.top_k = rows[k].top_k;
        o.seed = 20 + k;
        assert_ok(sampler_init(&s, alloc_default(), &kern, N, &o, &err), err);
        for (int i = 0; i < N; i++) total += p[i] = exp(logits[i] / o.temperature);
        for (int i = 0; i < DRAWS; i++) {
            int32_t id;
            assert_ok(sampler_pick(&s, logits, NULL, &id, &err), err);
            count[id]++;
        }
        for (int i = 0; i < N; i++) {
            const double want = DRAWS * p[i] / total;
            chi += (count[i] - want) * (count[i] - want) / want;
        }
        if (!(chi < 72.1) || !(chi > 15)) fail_msg("row %zu: chi-square %.1f of 39 degrees of freedom", k, chi);
        sampler_deinit(&s);
    }
    free(logits);
}

static void test_seeds(void **state)
{
    (void)state;
    enum { N = 3000, STEPS = 50 };
    float *logits = make_logits("peaked", N, 2);
    int32_t ids[4][STEPS];
    static const uint64_t seeds[4] = {0, 1, UINT64_MAX, 0};
    for (int k = 0; k < 4; k++) {
        lath_sample_options o = LATH_SAMPLE_OPTIONS_INIT;
        sampler s;
        o.temperature = 2;
        o.seed = seeds[k];
        assert_ok(sampler_init(&s, alloc_default(), &kern, N, &o, &err), err);
        for (int i = 0; i < STEPS; i++) assert_ok(sampler_pick(&s, logits, NULL, &ids[k][i], &err), err);
        sampler_reset(&s);
        for (int i = 0; i < STEPS; i++) {
            int32_t id;
            assert_ok(sampler_pick(&s, logits, NULL, &id, &err), err);
            assert_int_equal(id, ids[k][i]);
        }
        sampler_deinit(&s);
    }
    assert_memory_equal(ids[0], ids[3], sizeof(ids[0]));
    assert_memory_not_equal(ids[0], ids[1], sizeof(ids[0]));
    assert_memory_not_equal(ids[0], ids[2], sizeof(ids[0]));
    free(logits);
}

/* ------------------------------------------------------------------------------------------------------------- counts */

/* What was accepted and taken back is as if it had never been: the same weights, so the same tokens. */
static void test_rewind(void **state)
{
    (void)state;
    enum { N = 500 };
    float *logits = make_logits("flat", N, 3);
    lath_sample_options o = LATH_SAMPLE_OPTIONS_INIT;
    sampler a, b;
    int32_t noise[400];
    static const int32_t prompt[] = {7, 7, 8, 499, -1, 500};
    o.repeat_penalty = 1.7;
    o.frequency_penalty = 0.5;
    assert_ok(sampler_init(&a, alloc_default(), &kern, N, &o, &err), err);
    assert_ok(sampler_init(&b, alloc_default(), &kern, N, &o, &err), err);
    sampler_accept(&a, prompt, 6);
    sampler_accept(&b, prompt, 6);
    for (int i = 0; i < 400; i++) noise[i] = (int32_t)(splitmix((uint64_t)i) % N);
    sampler_accept(&a, noise, 400);
    assert_true(a.n_listed > 100);
    sampler_rewind(&a, noise + 200, 200);
    sampler_rewind(&a, noise, 200);
    assert_int_equal(a.n_listed, 3);
    assert_int_equal(a.seen[7].count, 2);
    sampler_rewind(&a, prompt + 3, 3);
    sampler_rewind(&b, prompt + 3, 3);
    for (int i = 0; i < 200; i++) {
        int32_t x, y;
        assert_ok(sampler_pick(&a, logits, NULL, &x, &err), err);
        assert_ok(sampler_pick(&b, logits, NULL, &y, &err), err);
        assert_int_equal(x, y);
        sampler_accept(&a, &x, 1);
        sampler_accept(&b, &y, 1);
    }
    sampler_reset(&a);
    assert_int_equal(a.n_listed, 0);
    for (int i = 0; i < N; i++) assert_int_equal(a.seen[i].count, 0);
    sampler_deinit(&a);
    sampler_deinit(&b);
    free(logits);
}

/* ---------------------------------------------------------------------------------------------------------- bad input */

static void expect_usage(const lath_sample_options *o, const char *msg)
{
    sampler s;
    assert_int_equal(sampler_init(&s, alloc_default(), &kern, 100, o, &err), LATH_ERR_USAGE);
    if (!strstr(err.msg, msg)) fail_msg("\"%s\" does not say \"%s\"", err.msg, msg);
    sampler_deinit(&s);
}

static void test_options(void **state)
{
    (void)state;
    const lath_sample_options good = LATH_SAMPLE_OPTIONS_INIT;
    static const struct {
        size_t at; /* of a double */
        double bad[5];
        const char *msg;
    } rows[] = {
        {offsetof(lath_sample_options, temperature), {NAN, INFINITY, -INFINITY, -0.1, -1e-300}, "temperature: "},
        {offsetof(lath_sample_options, top_p), {NAN, INFINITY, 0, -0.5, 1.0000001}, "top-p: "},
        {offsetof(lath_sample_options, min_p), {NAN, INFINITY, 1, -0.5, 2}, "min-p: "},
        {offsetof(lath_sample_options, repeat_penalty), {NAN, INFINITY, 0, -1, -INFINITY}, "repeat penalty: "},
        {offsetof(lath_sample_options, presence_penalty), {NAN, INFINITY, -INFINITY, NAN, NAN}, "presence penalty: "},
        {offsetof(lath_sample_options, frequency_penalty), {NAN, INFINITY, -INFINITY, NAN, NAN}, "frequency penalty: "},
    };
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        for (int i = 0; i < 5; i++) {
            lath_sample_options o = good;
            memcpy((char *)&o + rows[k].at, &rows[k].bad[i], sizeof(double));
            expect_usage(&o, rows[k].msg);
        }
    }
    lath_sample_options o = good;
    o.struct_size--;
    expect_usage(&o, "another version");
    o = good;
    o.top_k = -1;
    expect_usage(&o, "top-k: -1, want 1 or more");
    lath_logit_bias bias[2] = {{100, 1}, {5, 1}};
    o = good;
    o.bias = bias;
    o.n_bias = 2;
    expect_usage(&o, "logit bias: id 100, want 0 to 99");
    bias[0].id = -1;
    expect_usage(&o, "logit bias: id -1");
    bias[0] = (lath_logit_bias){7, NAN};
    expect_usage(&o, "logit bias of id 7: nan");
    bias[0].bias = INFINITY;
    expect_usage(&o, "logit bias of id 7: inf");
    bias[0] = (lath_logit_bias){5, 1};
    expect_usage(&o, "id 5 is there twice");
    sampler s;
    assert_int_equal(sampler_init(&s, alloc_default(), &kern, 0, NULL, &err), LATH_ERR_USAGE);
    sampler_deinit(&s);
}

static void test_bad_logits(void **state)
{
    (void)state;
    enum { N = 130 };
    float logits[N] = {0};
    uint32_t mask[N / 32 + 1] = {0};
    int32_t id;
    lath_token_logprob top[3];
    for (int row = 0; row < 3; row++) {
        lath_sample_options o = LATH_SAMPLE_OPTIONS_INIT;
        sampler s;
        o.temperature = row == 0 ? 0 : 1;
        o.repeat_penalty = row == 2 ? 1.5 : 1;
        assert_ok(sampler_init(&s, alloc_default(), &kern, N, &o, &err), err);
        static const int32_t everywhere[] = {3, 64, 129};
        for (int k = 0; k < 3; k++) {
            const int32_t at = everywhere[k];
            sampler_accept(&s, &at, 1);
            for (int masked = 0; masked < 2; masked++) { /* a bad logit counts even where it cannot be chosen */
                memset(mask, 0, sizeof(mask));
                mask[0] = 1;
                logits[at] = NAN;
                assert_int_equal(sampler_pick(&s, logits, masked ? mask : NULL, &id, &err), LATH_ERR_FORMAT);
                char want[64];
                snprintf(want, sizeof(want), "logits: token %d has NaN", (int)at);
                assert_string_equal(err.msg, want);
                logits[at] = INFINITY;
                assert_int_equal(sampler_pick(&s, logits, masked ? mask : NULL, &id, &err), LATH_ERR_FORMAT);
                assert_non_null(strstr(err.msg, "+infinity"));
                assert_int_equal(sampler_top_logprobs(&s, logits, 1, top, NULL, &err), LATH_ERR_FORMAT);
            }
            logits[at] = 0;
        }
        memset(mask, 0, sizeof(mask));
        assert_int_equal(sampler_pick(&s, logits, mask, &id, &err), LATH_ERR_INPUT);
        assert_non_null(strstr(err.msg, "no token can follow"));
        for (int i = 0; i < N; i++) logits[i] = -INFINITY;
        assert_int_equal(sampler_pick(&s, logits, NULL, &id, &err), LATH_ERR_INPUT);
        logits[77] = -FLT_MAX;
        for (int i = 0; i < 20; i++) {
            assert_ok(sampler_pick(&s, logits, NULL, &id, &err), err);
            assert_int_equal(id, 77);
        }
        logits[77] = FLT_MAX;
        logits[3] = -FLT_MAX;
        assert_ok(sampler_pick(&s, logits, NULL, &id, &err), err);
        assert_int_equal(id, 77);
        memset(logits, 0, sizeof(logits));
        sampler_deinit(&s);
    }
}

/* -infinity bans a token even where its logit is the largest, and huge penalties and biases end in large numbers, not in infinities. */
static void test_extremes(void **state)
{
    (void)state;
    float logits[100] = {0};
    const lath_logit_bias bias[] = {{50, -INFINITY}, {51, FLT_MAX}};
    const int32_t prompt[] = {52, 53};
    lath_sample_options o = LATH_SAMPLE_OPTIONS_INIT;
    sampler s;
    int32_t id;
    logits[50] = 1000;
    logits[51] = FLT_MAX;
    logits[52] = logits[53] = 1;
    o.bias = bias;
    o.n_bias = 2;
    o.repeat_penalty = 1e-300;
    assert_ok(sampler_init(&s, alloc_default(), &kern, 100, &o, &err), err);
    sampler_accept(&s, prompt, 2);
    for (int i = 0; i < 50; i++) {
        assert_ok(sampler_pick(&s, logits, NULL, &id, &err), err);
        assert_true(id >= 51 && id <= 53);
    }
    sampler_deinit(&s);
}

/* ----------------------------------------------------------------------------------------------------------- logprobs */

static void test_logprobs(void **state)
{
    (void)state;
    static const int32_t sizes[] = {1, 63, 64, 65, 5000, 40000};
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        const int32_t n = sizes[k];
        float *logits = make_logits(k % 2 ? "ties" : "flat", n, k);
        lath_token_logprob top[20], chosen = {.id = n / 2};
        const size_t want = n < 20 ? (size_t)n : 20;
        lath_sample_options o = LATH_SAMPLE_OPTIONS_INIT;
        sampler s;
        double total = 0;
        const int32_t zero = 0;
        /* Nothing of this counts for logprobs. */
        o.temperature = 0.3;
        o.repeat_penalty = 5;
        assert_ok(sampler_init(&s, alloc_default(), &kern, n, &o, &err), err);
        sampler_accept(&s, &zero, 1);
        for (int32_t i = 0; i < n; i++) total += exp(logits[i]);
        assert_ok(sampler_top_logprobs(&s, logits, want, top, &chosen, &err), err);
        assert_true(fabs(chosen.logprob - (logits[n / 2] - log(total))) < 1e-6);
        for (size_t i = 0; i < want; i++) {
            const int32_t id = top[i].id;
            assert_true(fabs(top[i].logprob - (logits[id] - log(total))) < 1e-6);
            int32_t before = 0; /* ids that come before it */
            for (int32_t j = 0; j < n; j++) before += logits[j] > logits[id] || (logits[j] == logits[id] && j < id);
            assert_int_equal(before, i);
        }
        sampler_deinit(&s);
        free(logits);
    }
    /* Fewer finite ones than asked for. */
    float logits[4] = {-INFINITY, 2, -INFINITY, 2};
    lath_token_logprob top[4], banned = {.id = 2};
    static const int32_t order[] = {1, 3, 0, 2};
    sampler s;
    assert_ok(sampler_init(&s, alloc_default(), &kern, 4, NULL, &err), err);
    assert_ok(sampler_top_logprobs(&s, logits, 4, top, &banned, &err), err);
    for (int i = 0; i < 4; i++) assert_int_equal(top[i].id, order[i]);
    assert_true(fabs(top[1].logprob + log(2)) < 1e-7 && top[3].logprob == -INFINITY && banned.logprob == -INFINITY);
    sampler_deinit(&s);
}

/* ------------------------------------------------------------------------------------------------------------- memory */

typedef struct meter {
    long calls, fail_at, out;
} meter;

static void *meter_alloc(void *ctx, size_t size, size_t align)
{
    meter *m = ctx;
    if (++m->calls == m->fail_at) return NULL;
    void *p = alloc_bytes(alloc_default(), size, align);
    m->out += p != NULL;
    return p;
}

static void meter_release(void *ctx, void *p, size_t size)
{
    ((meter *)ctx)->out--;
    alloc_release(alloc_default(), p, size);
}

static void *meter_resize(void *ctx, void *p, size_t old_size, size_t size, size_t align)
{
    meter *m = ctx;
    if (++m->calls == m->fail_at) return NULL;
    return alloc_resize(alloc_default(), p, old_size, size, align);
}

/* Every allocation of making one fails once; choosing makes none. */
static void test_memory(void **state)
{
    (void)state;
    enum { N = 20000 };
    float *logits = make_logits("flat", N, 9);
    const lath_logit_bias bias = {3, 1};
    lath_sample_options o = LATH_SAMPLE_OPTIONS_INIT;
    o.frequency_penalty = 0.1;
    o.bias = &bias;
    o.n_bias = 1;
    for (long fail_at = 1;; fail_at++) {
        meter m = {.fail_at = fail_at};
        const lath_allocator a = {&m, meter_alloc, meter_resize, meter_release};
        sampler s;
        lath_status st = sampler_init(&s, &a, &kern, N, &o, &err);
        if (st == LATH_OK) {
            const long before = m.calls;
            for (int i = 0; i < 20; i++) {
                int32_t id;
                lath_token_logprob top[5];
                assert_ok(sampler_pick(&s, logits, NULL, &id, &err), err);
                assert_ok(sampler_top_logprobs(&s, logits, 5, top, NULL, &err), err);
                sampler_accept(&s, &id, 1);
            }
            assert_int_equal(m.calls, before);
            assert_true(sampler_bytes(&s) > N * 16);
        } else {
            assert_int_equal(st, LATH_ERR_NOMEM);
        }
        sampler_deinit(&s);
        assert_int_equal(m.out, 0);
        if (st == LATH_OK) {
            assert_true(fail_at > 3);
            break;
        }
    }
    free(logits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference), cmocka_unit_test(test_distribution), cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_rewind),    cmocka_unit_test(test_options),      cmocka_unit_test(test_bad_logits),
        cmocka_unit_test(test_extremes),  cmocka_unit_test(test_logprobs),     cmocka_unit_test(test_memory),
    };
    for (int isa = KERN_ISA_REF; isa < KERN_ISA_COUNT; isa++) {
        if (!kern_isa_available((kern_isa)isa)) continue;
        kern_table_init(&kern, (kern_isa)isa);
        if (TEST_RUN(tests)) return 1;
    }
    return 0;
}
