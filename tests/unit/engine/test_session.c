/* SPDX-License-Identifier: Apache-2.0
 * test_session.c: calls of a session in random orders. Whatever was appended, cut off, exchanged, refused or interrupted before, the logits have the bits that a
 * new session has after the same tokens, computed together or alone as they were; nearly those of all tokens computed together; and the same on 1, 2 and 3 threads.
 * The tiny models get a window of 2048 tokens, so that rings of layers with a sliding window go round. */
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/rng.h"
#include "lath/lath.h"
#include "support/test.h"
#include "support/tmpdir.h"

enum { MOST = 2048, VOCAB_MOST = 128, CALLS = 40, CHUNK = 512 };

/* Logits are up to 4 and these weights are large: f32 of the reference implementation is as far from f64. */
static const double NEAR = 5e-4;

typedef struct example {
    const char *name;
    const char *old, *with; /* what is changed in config.json; NULL: nothing */
    int32_t ctx_most;
    int32_t turns_at; /* what is kept of a text is turned otherwise when it becomes longer than this; 0: never */
    bool windows;     /* some layer has one */
    int32_t field;    /* tokens that the last one's logits depend on; 0: all */
} example;

#define LONGER "\"max_position_embeddings\": 512,", "\"max_position_embeddings\": 2048,"
static const example examples[] = {
    {"llama2", LONGER, MOST, 0, false, 0},
    {"mistral_window", LONGER, MOST, 0, true, 2 * 8 + 1},
    {"gemma3_new_form_cap", LONGER, MOST, 0, true, 0},
    {"gemma2_caps", LONGER, MOST, 0, true, 0},
    {"qwen2_second_layer_slides", LONGER, MOST, 0, true, 0},
    {"smollm3_slides", LONGER, MOST, 0, true, 0},
    {"qwen3_moe", LONGER, MOST, 0, false, 0},
    {"phi3_longrope", NULL, NULL, 120, 33, false, 0},
};
enum { N_EXAMPLES = sizeof(examples) / sizeof(examples[0]) };

/* Sizes around panels, windows and chunks. */
static const int32_t contexts[] = {1, 15, 16, 17, 511, 512, 513, 600, MOST};
static const int32_t lengths[] = {1, 1, 1, 2, 3, 8, 9, 10, 15, 16, 17, 40, 100, 511, 512, 513, 529, 600};
#define COUNT(a) (int32_t)(sizeof(a) / sizeof((a)[0]))

static lath_error err;

/* A session and what it is to hold. */
typedef struct play {
    const example *e;
    lath_runtime *rt;
    lath_model *model;
    lath_session *s;
    lath_session_options options;
    rng r;
    int32_t vocab, ctx, n;
    int32_t highest, turned; /* tokens since it was last empty, at most; when it was last added to */
    int32_t ids[MOST];
    bool alone[MOST]; /* computed as a step */
    bool has_logits;
    bool stop;              /* the progress callback says so */
    int32_t stop_at;        /* the token whose logits are the last that are wanted; -1: none */
    int32_t seen;           /* the next token of append_each */
    uint64_t sum;           /* of all logits */
    float kept[VOCAB_MOST]; /* of one token */
} play;

static int32_t below(play *p, int32_t n) { return (int32_t)(rng_uniform(&p->r) * n); }

static int progress(void *ctx, size_t done, size_t total)
{
    (void)done;
    (void)total;
    return ((play *)ctx)->stop;
}

static void draw(play *p, int32_t *ids, int32_t n)
{
    for (int32_t i = 0; i < n; i++) ids[i] = below(p, p->vocab);
}

static int keep_one(void *ctx, size_t at, const float *logits)
{
    play *p = ctx;
    if (p->stop_at == (int32_t)at) memcpy(p->kept, logits, (size_t)p->vocab * sizeof(*logits));
    return 0;
}

/* What a new session gives for the first n tokens, computed together or alone as p says; together: all at once. */
static void replay(play *p, int32_t n, bool together, float *out)
{
    lath_session_options o = p->options;
    lath_session *s;
    const float *logits;
    o.ctx = p->e->ctx_most;
    o.progress = NULL;
    assert_ok(lath_session_create(p->model, &o, &s, &err), err);
    for (int32_t at = 0, end; at < n; at = end) {
        for (end = at + 1; end < n && (together || p->alone[end] == p->alone[at]);) end++;
        /* One that was computed with others behind it; few that were turned as part of a longer text. */
        int32_t more = end == at + 1 ? 1 : 0;
        if (p->e->turns_at && n > p->e->turns_at && end + more <= p->e->turns_at) more = p->e->turns_at + 1 - end;
        if (!p->alone[at] && more) {
            static int32_t ids[MOST + 1];
            memcpy(ids, p->ids + at, (size_t)(end - at) * sizeof(*ids));
            for (int32_t i = 0; i < more; i++) ids[end - at + i] = p->ids[at];
            p->stop_at = end - 1;
            assert_ok(lath_session_append_each(s, ids, (size_t)(end - at + more), keep_one, p, &err), err);
            assert_int_equal(lath_session_rewind(s, (size_t)end), end);
            memcpy(out, p->kept, (size_t)p->vocab * sizeof(*out));
            continue;
        }
        const int32_t step = together || !p->alone[at] ? end - at : 1;
        for (int32_t i = at; i < end; i += step) assert_ok(lath_session_append(s, p->ids + i, (size_t)step, &err), err);
        assert_ok(lath_session_logits(s, &logits, &err), err);
        memcpy(out, logits, (size_t)p->vocab * sizeof(*out));
    }
    lath_session_destroy(s);
}

static void compare_near(const play *p, const float *got, const float *want, const char *what)
{
    for (int32_t i = 0; i < p->vocab; i++) {
        if (!(fabs((double)got[i] - want[i]) <= NEAR))
            fail_msg("%s, %d tokens in %d: logit %d is %.9g, %s %.9g", p->e->name, p->n, p->ctx, i, (double)got[i],
                     what, (double)want[i]);
    }
}

/* Where every layer sees few tokens and angles are relative, the last tokens alone give the same numbers. */
static void check_field(play *p, const float *got)
{
    static float want[VOCAB_MOST];
    lath_session *s;
    const float *logits;
    if (p->n <= p->e->field + 1) return;
    assert_ok(lath_session_create(p->model, &p->options, &s, &err), err);
    assert_ok(lath_session_append(s, p->ids + p->n - p->e->field - 1, (size_t)p->e->field + 1, &err), err);
    assert_ok(lath_session_logits(s, &logits, &err), err);
    memcpy(want, logits, (size_t)p->vocab * sizeof(*want));
    compare_near(p, got, want, "the last tokens alone give");
    lath_session_destroy(s);
}

static void check(play *p, bool thoroughly)
{
    static float want[VOCAB_MOST];
    const float *got;
    assert_int_equal(lath_session_size(p->s), p->n);
    assert_memory_equal(lath_session_tokens(p->s), p->ids, (size_t)p->n * sizeof(*p->ids));
    if (!p->has_logits) {
        assert_int_equal(lath_session_logits(p->s, &got, &err), LATH_ERR_USAGE);
        return;
    }
    assert_ok(lath_session_logits(p->s, &got, &err), err);
    p->sum = hash_128(got, (size_t)p->vocab * sizeof(*got), p->sum).lo;
    /* One that was computed together with a token behind it cannot be had again where that token turns everything. */
    const bool lost = p->e->turns_at && p->n == p->e->turns_at && !p->alone[p->n - 1];
    if (!thoroughly || lost) return;
    replay(p, p->n, false, want);
    if (memcmp(got, want, (size_t)p->vocab * sizeof(*got)) != 0)
        fail_msg("%s, %d tokens in %d: other bits than a new session", p->e->name, p->n, p->ctx);
    if (p->options.kv != LATH_KV_F32) return;
    if (p->n > 1) {
        replay(p, p->n, true, want);
        compare_near(p, got, want, "all together give");
    }
    if (p->e->field) check_field(p, got);
}

/* n tokens have come behind what is held. */
static void added(play *p, const int32_t *ids, int32_t n)
{
    const int32_t end = p->n + n, at = p->e->turns_at;
    const bool again = at && p->n > 0 && (p->turned > at) != (end > at);
    if (n == 0) return;
    memmove(p->ids + p->n, ids, (size_t)n * sizeof(*ids));
    for (int32_t i = again ? 0 : p->n; i < end; i++) p->alone[i] = n == 1 && !again;
    p->n = p->turned = end;
    if (p->n > p->highest) p->highest = p->n;
    p->has_logits = true;
}

/* A call that failed after it began: as before, or empty. */
static void failed(play *p, int32_t tried)
{
    const int32_t size = (int32_t)lath_session_size(p->s);
    if (size != p->n && !(size == 0 && (p->e->windows || p->e->turns_at)))
        fail_msg("%s: %d tokens after a failure, before it %d", p->e->name, size, p->n);
    p->turned = p->n + tried;
    if (p->n + tried > p->highest) p->highest = p->n + tried;
    p->n = size;
    p->has_logits = false;
    if (size == 0) p->highest = 0;
}

static void cut(play *p, int32_t n)
{
    const int32_t held = (int32_t)lath_session_rewind(p->s, (size_t)n);
    const bool may_be_gone = p->e->windows && p->highest - n > CHUNK;
    if (n < p->n) {
        if (held != n && !(held == 0 && may_be_gone))
            fail_msg("%s: cut to %d of %d (%d), %d are held", p->e->name, n, p->n, p->highest, held);
        p->has_logits = false;
    } else {
        assert_int_equal(held, p->n);
    }
    p->n = held;
    if (held == 0) p->highest = 0;
}

static void call_append(play *p)
{
    static int32_t ids[MOST];
    const int32_t n = lengths[below(p, COUNT(lengths))];
    draw(p, ids, n);
    if (n > p->ctx - p->n) {
        assert_int_equal(lath_session_append(p->s, ids, (size_t)n, &err), LATH_ERR_KV_FULL);
        return;
    }
    assert_ok(lath_session_append(p->s, ids, (size_t)n, &err), err);
    added(p, ids, n);
}

/* The same tokens up to somewhere, then others, as a conversation that was edited. */
static void call_sync(play *p)
{
    static int32_t ids[MOST];
    size_t reused;
    int32_t same = below(p, p->n + 1), n = same + lengths[below(p, COUNT(lengths))] - below(p, 2);
    if (p->n - same > 20 && below(p, 2)) same = n = p->n - below(p, 3);
    if (n > p->ctx) n = p->ctx;
    if (n < 1) n = 1;
    draw(p, ids, n);
    memcpy(ids, p->ids, (size_t)(same < n ? same : n) * sizeof(*ids));
    assert_ok(lath_session_sync(p->s, ids, (size_t)n, &reused, &err), err);
    if ((int32_t)reused > p->n || memcmp(ids, p->ids, reused * sizeof(*ids)) != 0)
        fail_msg("%zu were not the same", reused);
    if ((int32_t)reused < p->n) p->has_logits = false;
    if (reused == 0) p->highest = 0;
    p->n = (int32_t)reused;
    added(p, ids + reused, n - (int32_t)reused);
}

static int each(void *ctx, size_t at, const float *logits)
{
    play *p = ctx;
    assert_int_equal(at, p->seen++);
    p->sum = hash_128(logits, (size_t)p->vocab * sizeof(*logits), p->sum).lo;
    return p->stop_at == (int32_t)at;
}

static void call_each(play *p)
{
    static int32_t ids[MOST];
    const int32_t n = lengths[below(p, COUNT(lengths))];
    if (n > p->ctx - p->n) return;
    draw(p, ids, n);
    p->seen = p->n;
    p->stop_at = below(p, 3) ? -1 : p->n + below(p, n);
    const bool stops = p->stop_at >= 0;
    const lath_status st = lath_session_append_each(p->s, ids, (size_t)n, each, p, &err);
    if (stops) {
        assert_int_equal(st, LATH_ERR_INTERRUPTED);
        failed(p, n);
        return;
    }
    assert_ok(st, err);
    assert_int_equal(p->seen, p->n + n);
    added(p, ids, n);
}

static void call_refused(play *p)
{
    int32_t ids[3] = {0, 0, 0};
    if (p->ctx - p->n < 3) return;
    ids[below(p, 3)] = below(p, 2) ? -1 - below(p, 5) : p->vocab + below(p, 5);
    assert_int_equal(lath_session_append(p->s, ids, 3, &err), LATH_ERR_INPUT);
    assert_int_equal(lath_session_sync(p->s, ids, 3, NULL, &err), LATH_ERR_INPUT);
    assert_ok(lath_session_append(p->s, ids, 0, &err), err);
}

static void call_interrupted(play *p)
{
    static int32_t ids[MOST];
    const int32_t n = 2 + below(p, 600);
    if (n > p->ctx - p->n) return;
    draw(p, ids, n);
    p->stop = true;
    assert_int_equal(lath_session_append(p->s, ids, (size_t)n, &err), LATH_ERR_INTERRUPTED);
    p->stop = false;
    failed(p, n);
}

static void call(play *p)
{
    switch (below(p, 10)) {
    case 0:
    case 1: cut(p, below(p, 2) ? below(p, p->n + 2) : p->n - below(p, p->n < 30 ? p->n + 1 : 30)); break;
    case 2:
    case 3: call_sync(p); break;
    case 4: call_each(p); break;
    case 5: call_refused(p); break;
    case 6: call_interrupted(p); break;
    default: call_append(p);
    }
}

/* The sum of all logits of a random course of calls. */
static uint64_t play_one(const example *e, lath_runtime *rt, lath_model *model, int32_t ctx, lath_kv kv, uint64_t seed,
                         bool thoroughly)
{
    static play p;
    lath_model_info info = {.struct_size = sizeof(info)};
    p = (play){.e = e, .rt = rt, .model = model, .ctx = ctx, .options = LATH_SESSION_OPTIONS_INIT};
    assert_ok(lath_model_get_info(model, &info, &err), err);
    p.vocab = info.vocab_size;
    assert_true(p.vocab <= VOCAB_MOST);
    p.options.ctx = ctx;
    p.options.kv = kv;
    p.options.progress = progress;
    p.options.progress_ctx = &p;
    rng_seed(&p.r, seed);
    assert_ok(lath_session_create(model, &p.options, &p.s, &err), err);
    for (int i = 0; i < CALLS; i++) {
        call(&p);
        check(&p, thoroughly);
    }
    lath_session_destroy(p.s);
    return p.sum;
}

static void run_example(const example *e)
{
    char dir[TMP_PATH], from[TMP_PATH], name[64];
    uint64_t sums[COUNT(contexts)][2];
    snprintf(name, sizeof(name), "golden/decoder/%s", e->name);
    tmp_join(from, test_data_dir(), name);
    tmp_copy(dir, from);
    if (e->old) tmp_replace(dir, "config.json", e->old, e->with);
    for (int32_t threads = 1; threads <= 3; threads++) {
        lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
        lath_model_options mo = LATH_MODEL_OPTIONS_INIT;
        lath_runtime *rt;
        lath_model *model;
        ro.n_threads = threads;
        mo.precision = LATH_PRECISION_EXACT;
        assert_ok(lath_runtime_create(&ro, &rt, &err), err);
        assert_ok(lath_model_open(rt, dir, &mo, &model, &err), err);
        for (int32_t c = 0; c < COUNT(contexts); c++) {
            const int32_t ctx = contexts[c] < e->ctx_most ? contexts[c] : e->ctx_most;
            for (int half = 0; half < 2; half++) {
                const uint64_t sum = play_one(e, rt, model, ctx, half ? LATH_KV_F16 : LATH_KV_F32,
                                              (uint64_t)(c * 2 + half), threads == 2);
                if (threads == 1)
                    sums[c][half] = sum;
                else if (sum != sums[c][half])
                    fail_msg("%s in %d tokens: other bits on %d threads", e->name, ctx, threads);
            }
        }
        lath_model_close(model);
        lath_runtime_destroy(rt);
    }
    tmp_remove(dir);
}

static void test_random_calls(void **state)
{
    (void)state;
    for (int i = 0; i < N_EXAMPLES; i++) run_example(&examples[i]);
}

/* The default allocator, counting. */
static atomic_long calls_made;

static void *count_alloc(void *ctx, size_t size, size_t align)
{
    atomic_fetch_add(&calls_made, 1);
    return alloc_default()->alloc(ctx, size, align);
}

static void *count_resize(void *ctx, void *p, size_t old_size, size_t size, size_t align)
{
    atomic_fetch_add(&calls_made, 1);
    return alloc_default()->resize(ctx, p, old_size, size, align);
}

static void count_release(void *ctx, void *p, size_t size) { alloc_default()->release(ctx, p, size); }

static int count_token(void *ctx, const lath_generated *g)
{
    if (g->id >= 0) ((long *)ctx)[((long *)ctx)[0]++ + 1] = atomic_load(&calls_made);
    return 0;
}

/* Everything is there when a session is made: no call of it allocates. Of a text only the decoder makes its buffers when it needs them first, and
 * larger ones now and then. */
static void test_no_allocation(void **state)
{
    static const lath_allocator counting = {NULL, count_alloc, count_resize, count_release};
    enum { TOKENS = 60, FIRST = 8, GROWS = 8 };
    (void)state;
    for (int i = 0; i < N_EXAMPLES; i++) {
        char dir[TMP_PATH], name[64];
        lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
        lath_session_options so = LATH_SESSION_OPTIONS_INIT;
        lath_generate_options go = LATH_GENERATE_OPTIONS_INIT;
        lath_runtime *rt;
        lath_model *model;
        lath_session *s;
        int32_t ids[100];
        long made[TOKENS + 1] = {0};
        snprintf(name, sizeof(name), "golden/decoder/%s", examples[i].name);
        tmp_join(dir, test_data_dir(), name);
        ro.allocator = &counting;
        ro.n_threads = 2;
        so.ctx = 200;
        if (so.ctx > examples[i].ctx_most) so.ctx = examples[i].ctx_most;
        assert_ok(lath_runtime_create(&ro, &rt, &err), err);
        assert_ok(lath_model_open(rt, dir, NULL, &model, &err), err);
        assert_ok(lath_session_create(model, &so, &s, &err), err);
        for (int32_t t = 0; t < 40; t++) ids[t] = 3 + t % 60;
        const long before = atomic_load(&calls_made);
        assert_ok(lath_session_append(s, ids, 30, &err), err);
        for (int32_t t = 30; t < 40; t++) assert_ok(lath_session_append(s, ids + t, 1, &err), err);
        (void)lath_session_rewind(s, 35);
        assert_ok(lath_session_sync(s, ids, 38, NULL, &err), err);
        if (atomic_load(&calls_made) != before)
            fail_msg("%s: %ld allocations", name, atomic_load(&calls_made) - before);
        go.max_tokens = TOKENS;
        go.ignore_end = 1;
        assert_ok(lath_generate(s, ids, 40, &go, count_token, made, NULL, &err), err);
        assert_int_equal(made[0], TOKENS);
        if (made[TOKENS] - made[FIRST] > GROWS)
            fail_msg("%s: %ld allocations of %d tokens", name, made[TOKENS] - made[FIRST], TOKENS - FIRST);
        lath_session_destroy(s);
        lath_model_close(model);
        lath_runtime_destroy(rt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_calls), cmocka_unit_test(test_no_allocation)};
    return TEST_RUN(tests);
}
