/* SPDX-License-Identifier: Apache-2.0
 * test_recurrent.c: sessions of models whose layers keep a state instead of keys and values. To go back to a snapshot is exact: logits and states have the bits of a
 * new session that was given the same pieces. The pieces are worked out here from what the header promises: where batches end, and which snapshots there may be. */
#include <math.h>
#include <stdbool.h>

#include "base/hash.h"
#include "base/rng.h"
#include "engine/session.h"
#include "support/golden.h"
#include "support/test.h"
#include "support/tmpdir.h"

enum { CTX = 512, BOS = 1, END = 2, LINE = 5, THINK = 4, VOCAB_MOST = 128, CHUNK = 64, CALLS = 45 };
static const double NEAR = 1e-4; /* of the largest */

static const char *const models[] = {"qwen3_5_text", "qwen3_5_moe_text", "qwen3_5_last_linear", "qwen3_next"};
#define N_MODELS (sizeof(models) / sizeof(models[0]))

static lath_error err;

typedef struct opened {
    lath_runtime *rt;
    lath_model *model;
    int32_t vocab;
} opened;

static opened open_model(const char *name, int32_t threads)
{
    opened o;
    char path[1200];
    lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
    lath_model_options mo = LATH_MODEL_OPTIONS_INIT;
    ro.n_threads = threads;
    mo.precision = LATH_PRECISION_EXACT;
    snprintf(path, sizeof(path), "%s/golden/decoder/%s", test_data_dir(), name);
    assert_ok(lath_runtime_create(&ro, &o.rt, &err), err);
    assert_ok(lath_model_open(o.rt, path, &mo, &o.model, &err), err);
    o.vocab = o.model->arch.dims.vocab_size;
    assert_true(o.vocab <= VOCAB_MOST);
    return o;
}

static void close_model(opened o)
{
    lath_model_close(o.model);
    lath_runtime_destroy(o.rt);
}

static lath_session *new_session(opened o, uint64_t snapshot_bytes)
{
    lath_session_options so = LATH_SESSION_OPTIONS_INIT;
    lath_session *s;
    so.ctx = CTX;
    so.snapshot_bytes = snapshot_bytes;
    assert_ok(lath_session_create(o.model, &so, &s, &err), err);
    assert_non_null(s->recurrent);
    return s;
}

static void append(lath_session *s, const int32_t *ids, int32_t n)
{
    assert_ok(lath_session_append(s, ids, (size_t)n, &err), err);
}

static const float *logits_of(const lath_session *s)
{
    const float *logits;
    assert_ok(lath_session_logits(s, &logits, &err), err);
    return logits;
}

static int64_t state_floats(const lath_session *s, int32_t layer)
{
    const arch_model *m = &s->model->arch;
    return m->desc->recurrent(m, layer);
}

/* Largest difference of states, and their largest number. */
static double states_differ(const lath_session *a, const lath_session *b, double *largest)
{
    double worst = 0;
    *largest = 0;
    for (int32_t i = 0; i < a->model->arch.dims.n_layers; i++) {
        for (int64_t k = 0; k < state_floats(a, i); k++) {
            worst = fmax(worst, fabs((double)a->recurrent[i][k] - (double)b->recurrent[i][k]));
            *largest = fmax(*largest, fabs((double)b->recurrent[i][k]));
        }
    }
    return worst;
}

static bool same_bits(const lath_session *a, const lath_session *b)
{
    for (int32_t i = 0; i < a->model->arch.dims.n_layers; i++) {
        const size_t bytes = sizeof(float) * (size_t)state_floats(a, i);
        if (bytes && memcmp(a->recurrent[i], b->recurrent[i], bytes) != 0) return false;
    }
    const size_t bytes = sizeof(float) * (size_t)a->model->arch.dims.vocab_size;
    return memcmp(logits_of(a), logits_of(b), bytes) == 0;
}

/* No two neighbours are special, none but those of messages. */
static void draw(rng *r, int32_t vocab, int32_t *ids, int32_t n)
{
    for (int32_t i = 0; i < n; i++) ids[i] = 6 + (int32_t)(rng_uniform(r) * (vocab - 6));
}

/* ------------------------------------------------------------------------------------------------------- a chat of four turns */

/* <s> role text </s> line */
static int32_t put_message(rng *r, int32_t vocab, int32_t *ids, int32_t n, int32_t role, int32_t len)
{
    ids[n++] = BOS;
    ids[n++] = role;
    draw(r, vocab, ids + n, len);
    n += len;
    ids[n++] = END;
    ids[n++] = LINE;
    return n;
}

static void chat(const char *name, uint64_t budget)
{
    static int32_t talk[CTX];
    opened o = open_model(name, 2);
    lath_session *s = new_session(o, budget);
    rng r;
    rng_seed(&r, 1);
    int32_t n = put_message(&r, o.vocab, talk, 0, 7, 40), header = 0;
    for (int turn = 0; turn < 4; turn++) {
        lath_session_stats before = {.struct_size = sizeof(before)}, after = before;
        size_t reused;
        n = put_message(&r, o.vocab, talk, n, 8, 5 + 20 * turn);
        const int32_t kept = header;
        header = n;
        talk[n++] = BOS;
        talk[n++] = 9;
        talk[n++] = LINE;
        talk[n++] = THINK; /* of the prompt only */
        assert_ok(lath_session_get_stats(s, &before, &err), err);
        assert_ok(lath_session_sync(s, talk, (size_t)n, &reused, &err), err);
        assert_ok(lath_session_get_stats(s, &after, &err), err);
        printf("    %-20s turn %d: %3d tokens, %3zu reused, %3d read again of what was held, %d read\n", name, turn + 1,
               n, reused, kept ? kept + 3 - (int32_t)reused : 0, n - (int32_t)reused);
        assert_int_equal(after.n_prefill - before.n_prefill, n - (int32_t)reused);
        if ((int32_t)reused < kept) fail_msg("%s: %zu tokens are kept of %d before the answer", name, reused, kept);
        assert_int_equal(after.n_restored - before.n_restored, turn > 0);
        /* The very same prompt costs nothing, behind what was generated, too. */
        static float want[VOCAB_MOST];
        memcpy(want, logits_of(s), sizeof(float) * (size_t)o.vocab);
        for (int again = 0; again < 3; again++) {
            int32_t thought[30];
            draw(&r, o.vocab, thought, 30);
            for (int32_t i = 0; again && i < 30; i++) append(s, thought + i, 1);
            assert_ok(lath_session_sync(s, talk, (size_t)n, &reused, &err), err);
            assert_int_equal(reused, n);
            assert_memory_equal(want, logits_of(s), sizeof(float) * (size_t)o.vocab);
        }
        assert_ok(lath_session_get_stats(s, &before, &err), err);
        assert_int_equal(before.n_prefill, after.n_prefill);
        /* What is thought, and the answer, of which the next prompt has only the latter. */
        n--;
        for (int i = 0; i < 40; i++) {
            int32_t id;
            draw(&r, o.vocab, &id, 1);
            append(s, &id, 1);
            if (i >= 25) talk[n++] = id;
        }
        talk[n++] = END;
        talk[n++] = LINE;
    }
    lath_session_destroy(s);
    close_model(o);
}

static void test_chat(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_MODELS; i++) chat(models[i], 0);
}

/* ------------------------------------------------------------------------------------------------------------ random calls */

/* A session and the pieces that it was given. */
typedef struct play {
    opened o;
    lath_session *s;
    rng r;
    int32_t n;
    int32_t ids[CTX];
    int32_t n_pieces, end[CTX]; /* where each piece ends */
    bool alone[CTX];            /* of a piece: it is a step */
    int32_t n_marks, marks[SNAPSHOTS_MOST];
    int32_t asked; /* calls of the progress callback until it says stop; -1: never */
    bool has_logits;
    uint64_t sum;
} play;

static int32_t below(play *p, int32_t n) { return (int32_t)(rng_uniform(&p->r) * n); }

static int progress(void *ctx, size_t done, size_t total)
{
    (void)done;
    (void)total;
    return ((play *)ctx)->asked-- == 0;
}

/* Where the header says that a message begins: the last place in (begin, end). */
static int32_t last_message(const int32_t *ids, int32_t begin, int32_t end)
{
    int32_t found = -1;
    for (int32_t at = begin + 1; at < end; at++) {
        bool begins = false, lone = false;
        for (int32_t back = 1; back <= 3 && back <= at; back++) {
            const int32_t id = ids[at - back];
            if (id != END && id >= 3) continue;
            begins = id == END && ids[at] < 3; /* the first special one behind it */
            break;
        }
        if (ids[at - 1] == END) {
            lone = true; /* no special one within two tokens, and one token more at least */
            for (int32_t k = 0; k <= 2; k++) lone = lone && at + k < end && ids[at + k] >= 3;
        }
        if (begins || lone) found = at;
    }
    return found;
}

static int32_t pieces_of(const int32_t *ids, int32_t begin, int32_t end, int32_t *out)
{
    int32_t stops[3], n_stops = 0, n = 0;
    const int32_t last = last_message(ids, begin, end), other = last < 0 ? -1 : last_message(ids, begin, last);
    if (other - begin >= 16 && last - other >= 16) stops[n_stops++] = other;
    if (last > 0) stops[n_stops++] = last;
    stops[n_stops++] = end;
    for (int32_t i = 0, at = begin; i < n_stops; i++) {
        while (at < stops[i]) out[n++] = at = at + CHUNK < stops[i] ? at + CHUNK : stops[i];
    }
    return n;
}

/* Tokens that an append may add, so that no piece is a single one: n of them. */
static bool draw_append(play *p, int32_t n)
{
    static int32_t ids[CTX], ends[CTX];
    if (n > CTX - p->n) return false;
    memcpy(ids, p->ids, sizeof(int32_t) * (size_t)p->n);
    for (int32_t at = p->n; at < p->n + n;) {
        const int32_t room = p->n + n - at, len = 1 + below(p, 50);
        if (below(p, 2) && room > len + 4)
            at = put_message(&p->r, p->o.vocab, ids, at, 7 + below(p, 3), len);
        else
            draw(&p->r, p->o.vocab, ids + at, 1), at++;
    }
    if (n == 1) {
        p->end[p->n_pieces] = p->n + 1;
        p->alone[p->n_pieces] = true;
    } else {
        const int32_t count = pieces_of(ids, p->n, p->n + n, ends);
        for (int32_t i = 0; i < count; i++) {
            if (ends[i] - (i ? ends[i - 1] : p->n) == 1) return false;
            p->end[p->n_pieces + i] = ends[i];
            p->alone[p->n_pieces + i] = false;
        }
    }
    memcpy(p->ids, ids, sizeof(int32_t) * (size_t)(p->n + n));
    return true;
}

static void added(play *p, int32_t n)
{
    p->n += n;
    while (p->n > 0 && (p->n_pieces == 0 || p->end[p->n_pieces - 1] < p->n)) p->n_pieces++;
    p->has_logits = true;
}

/* The session says that it holds n tokens after it was asked to go back to `to`. */
static void went_back(play *p, int32_t to, int32_t n)
{
    int32_t k = 0;
    if (n > to || n < 0) fail_msg("back to %d: %d", to, n);
    while (k < p->n_pieces && p->end[k] <= n) k++;
    if (n > 0 && (k == 0 || p->end[k - 1] != n)) fail_msg("back to %d: %d is not where a piece ends", to, n);
    for (int32_t i = 0; i < p->n_marks; i++)
        if (p->marks[i] <= to && p->marks[i] > n) fail_msg("back to %d: %d, though %d is marked", to, n, p->marks[i]);
    if (n < p->n) p->has_logits = false;
    while (p->n_marks > 0 && p->marks[p->n_marks - 1] > n) p->n_marks--;
    p->n_pieces = k;
    p->n = n;
}

/* A new session, without snapshots and so without pieces of its own making, is given the same pieces. */
static void check(play *p, bool thoroughly)
{
    assert_int_equal(lath_session_size(p->s), p->n);
    assert_memory_equal(lath_session_tokens(p->s), p->ids, sizeof(int32_t) * (size_t)p->n);
    if (!p->has_logits || p->n == 0) return;
    p->sum = hash_128(logits_of(p->s), sizeof(float) * (size_t)p->o.vocab, p->sum).lo;
    if (!thoroughly) return;
    lath_session *fresh = new_session(p->o, 1), *whole = new_session(p->o, 1);
    for (int32_t i = 0, at = 0; i < p->n_pieces; at = p->end[i++]) append(fresh, p->ids + at, p->end[i] - at);
    if (!same_bits(p->s, fresh)) fail_msg("%d tokens in %d pieces: other bits", p->n, p->n_pieces);
    append(whole, p->ids, p->n);
    double largest, highest = 0;
    for (int32_t i = 0; i < p->o.vocab; i++) highest = fmax(highest, fabs((double)logits_of(whole)[i]));
    const double states = states_differ(whole, fresh, &largest),
                 logits = golden_max_abs(logits_of(whole), logits_of(fresh), (size_t)p->o.vocab);
    if (!(states <= NEAR * largest)) fail_msg("%d tokens: states are other by %g of %g", p->n, states, largest);
    if (!(logits <= NEAR * highest)) fail_msg("%d tokens: logits are other by %g of %g", p->n, logits, highest);
    lath_session_destroy(fresh);
    lath_session_destroy(whole);
}

static void call_append(play *p, int32_t n)
{
    if (!draw_append(p, n)) return;
    append(p->s, p->ids + p->n, n);
    added(p, n);
}

static void call_interrupted(play *p)
{
    const int32_t n = 2 + below(p, 150);
    play was = *p;
    if (!draw_append(p, n)) return;
    p->asked = 0;
    assert_int_equal(lath_session_append(p->s, p->ids + p->n, (size_t)n, &err), LATH_ERR_INTERRUPTED);
    p->asked = -1;
    was.r = p->r;
    *p = was;
    assert_int_equal(lath_session_size(p->s), p->n); /* as before */
    p->has_logits = false;
}

static int stop_at(void *ctx, size_t at, const float *logits)
{
    (void)logits;
    return (int32_t)at == *(int32_t *)ctx;
}

/* Stopped behind some of its batches. */
static void call_stopped(play *p)
{
    const int32_t n = 2 + below(p, 150);
    play was = *p;
    if (!draw_append(p, n)) return;
    int32_t last = p->n + below(p, n);
    assert_int_equal(lath_session_append_each(p->s, p->ids + p->n, (size_t)n, stop_at, &last, &err),
                     LATH_ERR_INTERRUPTED);
    was.r = p->r;
    *p = was;
    assert_int_equal(lath_session_size(p->s), p->n);
    p->has_logits = false;
}

static void call_mark(play *p)
{
    if (p->n == 0) return;
    for (int32_t i = 0; i < p->n_marks; i++)
        if (p->marks[i] == p->n) return;
    const lath_status st = lath_session_mark(p->s, &err);
    if (p->n_marks + 1 < p->s->snaps.n_slots) {
        assert_ok(st, err);
        p->marks[p->n_marks++] = p->n;
    } else {
        assert_int_equal(st, LATH_ERR_KV_FULL);
        if (p->n_marks > 0) lath_session_unmark(p->s, (size_t)p->marks[--p->n_marks]);
    }
}

static void call_rewind(play *p)
{
    const int32_t to = p->n_marks && below(p, 2) ? p->marks[below(p, p->n_marks)] : below(p, p->n + 1);
    went_back(p, to, (int32_t)lath_session_rewind(p->s, (size_t)to));
}

static void call_sync(play *p)
{
    static int32_t ids[CTX], ends[CTX];
    size_t reused;
    const int32_t same = below(p, p->n + 1);
    int32_t more = 2 + below(p, 40);
    if (same + more > CTX) more = CTX - same;
    memcpy(ids, p->ids, sizeof(int32_t) * (size_t)same);
    draw(&p->r, p->o.vocab, ids + same, more);
    if (more < 2) return;
    assert_ok(lath_session_sync(p->s, ids, (size_t)(same + more), &reused, &err), err);
    const int32_t end = same + more;
    int32_t common = 0;
    while (common < p->n && common < end && ids[common] == p->ids[common]) common++;
    went_back(p, common, (int32_t)reused);
    memcpy(p->ids, ids, sizeof(int32_t) * (size_t)end);
    if (end - (int32_t)reused == 1) {
        p->end[p->n_pieces] = end;
        p->alone[p->n_pieces] = true;
    } else {
        const int32_t count = pieces_of(ids, (int32_t)reused, end, ends);
        for (int32_t i = 0; i < count; i++) p->end[p->n_pieces + i] = ends[i];
    }
    added(p, end - (int32_t)reused);
}

static uint64_t play_one(opened o, uint64_t budget, uint64_t seed, bool thoroughly)
{
    static play p;
    p = (play){.o = o, .asked = -1};
    lath_session_options so = LATH_SESSION_OPTIONS_INIT;
    so.ctx = CTX;
    so.snapshot_bytes = budget;
    so.progress = progress;
    so.progress_ctx = &p;
    assert_ok(lath_session_create(o.model, &so, &p.s, &err), err);
    p.s->chunk = CHUNK;
    rng_seed(&p.r, seed);
    for (int i = 0; i < CALLS; i++) {
        switch (below(&p, 10)) {
        case 0: call_interrupted(&p); break;
        case 1: call_stopped(&p); break;
        case 2: call_mark(&p); break;
        case 3: call_rewind(&p); break;
        case 4: call_sync(&p); break;
        case 5: call_append(&p, 1); break;
        case 6:
            for (int k = 0; k < 20; k++) call_append(&p, 1);
            break;
        default: call_append(&p, 2 + below(&p, 150));
        }
        check(&p, thoroughly);
    }
    lath_session_destroy(p.s);
    return p.sum;
}

static void test_random_calls(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_MODELS; i++) {
        uint64_t sums[3] = {0};
        for (int32_t threads = 1; threads <= 3; threads++) {
            opened o = open_model(models[i], threads);
            lath_session *s = new_session(o, 0);
            const uint64_t slot = s->snaps.bytes / (uint64_t)s->snaps.n_slots;
            lath_session_destroy(s);
            for (uint64_t k = 0; k < 4; k++) {
                const uint64_t budget = k < 3   ? 0
                                        : k < 5 ? 3 * slot
                                                : 2 * slot,
                               sum = play_one(o, budget, k, threads == 1);
                sums[threads - 1] = sums[threads - 1] * 31 + sum;
            }
            if (sums[threads - 1] != sums[0]) fail_msg("%s: other bits on %d threads", models[i], threads);
            close_model(o);
        }
    }
}

/* ----------------------------------------------------------------------------------------------------------------- budget */

/* Without room for snapshots a text is not cut for them, and every way back leads to the start. */
static void test_none(void **state)
{
    (void)state;
    opened o = open_model(models[0], 2);
    lath_session *s = new_session(o, 1);
    lath_session_stats stats = {.struct_size = sizeof(stats)};
    int32_t ids[100], last = 80;
    size_t reused;
    rng r;
    rng_seed(&r, 3);
    draw(&r, o.vocab, ids, 100);
    append(s, ids, 50);
    assert_int_equal(lath_session_mark(s, &err), LATH_ERR_KV_FULL);
    assert_ok(lath_session_sync(s, ids, 60, &reused, &err), err);
    assert_int_equal(reused, 50);
    assert_ok(lath_session_sync(s, ids, 59, &reused, &err), err);
    assert_int_equal(reused, 0);
    assert_int_equal(lath_session_append_each(s, ids + 59, 41, stop_at, &last, &err), LATH_ERR_INTERRUPTED);
    assert_int_equal(lath_session_size(s), 0);
    append(s, ids, 50);
    assert_int_equal(lath_session_rewind(s, 49), 0);
    assert_ok(lath_session_get_stats(s, &stats, &err), err);
    assert_int_equal(stats.snapshot_bytes + stats.n_restored + (uint64_t)stats.n_snapshots, 0);
    lath_session_destroy(s);
    close_model(o);
}

static void test_plan(void **state)
{
    (void)state;
    static const uint64_t budgets[] = {0, 1, 30000, 100000, UINT64_MAX};
    opened o = open_model(models[0], 1);
    for (size_t i = 0; i < sizeof(budgets) / sizeof(budgets[0]); i++) {
        lath_session_options so = LATH_SESSION_OPTIONS_INIT;
        lath_session_plan plan = {.struct_size = sizeof(plan)};
        lath_session_stats stats = {.struct_size = sizeof(stats)};
        so.snapshot_bytes = budgets[i];
        so.ctx = CTX;
        lath_session *s = new_session(o, budgets[i]);
        assert_ok(lath_session_get_plan(o.model, &so, &plan, &err), err);
        assert_ok(lath_session_get_stats(s, &stats, &err), err);
        assert_int_equal(plan.snapshot_bytes, stats.snapshot_bytes);
        assert_int_equal(plan.n_snapshots, s->snaps.n_slots);
        assert_int_equal(plan.n_recurrent, 3);
        assert_int_equal(plan.recurrent_bytes, stats.recurrent_bytes);
        if (budgets[i]) assert_true(plan.snapshot_bytes <= budgets[i]);
        assert_int_equal(plan.n_snapshots > 0, budgets[i] != 1);
        lath_session_destroy(s);
    }
    close_model(o);
}

/* ----------------------------------------------------------------------------------------------------------------- places */

static void back(lath_session *s, size_t n, size_t want)
{
    const size_t held = lath_session_rewind(s, n);
    if (held != want) fail_msg("back to %zu: %zu are held, want %zu", n, held, want);
}

static void test_places(void **state)
{
    (void)state;
    opened o = open_model(models[0], 2);
    lath_session *s = new_session(o, 0);
    static int32_t ids[CTX];
    rng r;
    rng_seed(&r, 5);
    s->chunk = CHUNK;
    /* Ends of batches, and of what is added together. */
    draw(&r, o.vocab, ids, CTX);
    append(s, ids, 200);
    append(s, ids + 200, 30);
    back(s, 229, 200);
    back(s, 199, 192);
    back(s, 100, 64);
    back(s, 63, 0);
    /* Steps. */
    append(s, ids, 2);
    for (int32_t i = 2; i < 400; i++) append(s, ids + i, 1);
    back(s, 399, 256);
    back(s, 255, 2);
    back(s, 1, 0);
    /* Messages: 20 tokens, 20, 20, 5 and a header. */
    int32_t n = 0;
    s->chunk = CTX;
    for (int i = 0; i < 4; i++) n = put_message(&r, o.vocab, ids, n, 7, i < 3 ? 16 : 1);
    ids[n] = BOS;
    append(s, ids, n + 3);
    back(s, (size_t)n + 2, (size_t)n);
    back(s, (size_t)n - 1, 0); /* the one before the last is short: no batch of its own */
    n = put_message(&r, o.vocab, ids, n, 7, 16);
    ids[n] = BOS;
    append(s, ids, n + 3);
    back(s, (size_t)n + 2, (size_t)n);
    back(s, (size_t)n - 1, (size_t)n - 20);
    back(s, (size_t)n - 21, 0);
    lath_session_destroy(s);
    close_model(o);
}

/* Tokens that meet a state which is not finite: the session is as at the last snapshot, and goes on from there as a new one. `n`: that are added at once. */
static void failed_append(const char *name, int32_t n)
{
    opened o = open_model(name, 2);
    lath_session *s = new_session(o, 0), *fresh = new_session(o, 0);
    int32_t ids[60];
    rng r;
    rng_seed(&r, 6);
    draw(&r, o.vocab, ids, 60);
    append(s, ids, 30);
    append(s, ids + 30, 1);
    append(s, ids + 31, 1);
    const int32_t held = n > 1 ? 32 : 30; /* what comes first is remembered before a batch */
    int32_t layer = 0;
    while (!s->recurrent[layer]) layer++;
    s->recurrent[layer][state_floats(s, layer) - 1] = NAN;
    assert_int_equal(lath_session_append(s, ids + 32, (size_t)n, &err), LATH_ERR_FORMAT);
    assert_non_null(strstr(err.msg, name));
    assert_int_equal(lath_session_size(s), held);
    if (n == 1) {
        append(fresh, ids, 30);
        for (int32_t i = 30; i < 40; i++) {
            append(s, ids + i, 1);
            append(fresh, ids + i, 1);
            assert_true(same_bits(s, fresh));
        }
    }
    lath_session_destroy(s);
    lath_session_destroy(fresh);
    close_model(o);
}

static void test_failed(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_MODELS; i++) {
        failed_append(models[i], 1);
        failed_append(models[i], 20);
    }
}

/* ------------------------------------------------------------------------------------------------------- no keys and values */

/* The first n layers of a model, all of which recur: nothing is kept but their states. */
static void first_layers(const char *name, const char *layers, const char *fewer)
{
    char from[1024], dir[TMP_PATH];
    lath_model *m;
    lath_runtime *rt;
    lath_session *s[2];
    int32_t ids[70];
    rng r;
    rng_seed(&r, 7);
    test_path(from, sizeof(from), "golden/decoder", name);
    tmp_copy(dir, from);
    tmp_replace(dir, "config.json", layers, fewer);
    assert_ok(lath_runtime_create(NULL, &rt, &err), err);
    assert_ok(lath_model_open(rt, dir, NULL, &m, &err), err);
    draw(&r, m->arch.dims.vocab_size, ids, 70);
    for (int i = 0; i < 2; i++) {
        lath_session_stats stats = {.struct_size = sizeof(stats)};
        assert_ok(lath_session_create(m, NULL, &s[i], &err), err);
        assert_ok(lath_session_get_stats(s[i], &stats, &err), err);
        assert_int_equal(stats.kv_bytes, 0);
        assert_true(stats.recurrent_bytes > 0);
    }
    append(s[0], ids, 70);
    for (int32_t i = 0; i < 70; i++) append(s[1], ids + i, 1);
    const float *one = logits_of(s[0]), *other = logits_of(s[1]);
    for (int32_t i = 0; i < m->arch.dims.vocab_size; i++) assert_true(fabsf(one[i] - other[i]) < 1e-4f);
    for (int i = 0; i < 2; i++) lath_session_destroy(s[i]);
    lath_model_close(m);
    lath_runtime_destroy(rt);
    tmp_remove(dir);
}

static void test_all_recur(void **state)
{
    (void)state;
    first_layers("qwen3_next", "\"num_hidden_layers\": 4", "\"num_hidden_layers\": 1");
    first_layers("qwen3_next", "\"num_hidden_layers\": 4", "\"num_hidden_layers\": 3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chat),     cmocka_unit_test(test_random_calls),
                                       cmocka_unit_test(test_none),     cmocka_unit_test(test_plan),
                                       cmocka_unit_test(test_places),   cmocka_unit_test(test_failed),
                                       cmocka_unit_test(test_all_recur)};
    return TEST_RUN(tests);
}
