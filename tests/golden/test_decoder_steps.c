/* SPDX-License-Identifier: Apache-2.0
 *
 * test_decoder_steps.c [--gguf] [CASE]: sessions of every case of decoder_case.h. Greedy tokens are those of the reference until it is undecided itself (two
 * logits closer than 1e-3); a prompt at once and token by token give the same logits and the same states of layers that recur; 1, 2 and 3 threads give the same
 * bits.
 */
#include <math.h>

#include "engine/engine.h"
#include "engine/session.h"
#include "support/decoder_case.h"
#include "support/golden.h"
#include "support/test.h"

enum { GREEDY_PROMPT = 1, LONG_PROMPT = 2, STEPS = 32 };
static const double UNDECIDED = 1e-3, STEP_ABS = 1e-4, STATE_REL = 1e-4;

typedef struct opened {
    lath_runtime *rt;
    lath_model *model;
    lath_session *session;
    safetensors *want;
    int64_t vocab;
} opened;

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
    assert_ok(lath_session_create(o.model, NULL, &o.session, &err), err);
    o.want = decoder_case_expected(path);
    o.vocab = o.model->arch.dims.vocab_size;
    return o;
}

static void close_case(opened o)
{
    safetensors_close(o.want);
    lath_session_destroy(o.session);
    lath_model_close(o.model);
    lath_runtime_destroy(o.rt);
}

static const tensor *want_of(const opened *o, const char *key)
{
    const tensor *t = safetensors_find(o->want, key);
    if (!t) fail_msg("no reference tensor %s", key);
    return t;
}

static const tensor *prompt_ids(const opened *o, int prompt)
{
    char key[32];
    snprintf(key, sizeof(key), "p%d.ids", prompt);
    return want_of(o, key);
}

static const float *logits_of(const opened *o)
{
    lath_error err;
    const float *logits = NULL;
    assert_ok(lath_session_logits(o->session, &logits, &err), err);
    return logits;
}

static int32_t likeliest(const float *logits, int64_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/* --------------------------------------------------------------------------------------------------------------- greedy */

/* The reference's prompt, then what is likeliest, STEPS times; all logits [STEPS, vocab] into `seen`, tokens into `ids`. */
static void generate(const opened *o, int32_t *ids, float *seen)
{
    lath_error err;
    const tensor *prompt = prompt_ids(o, GREEDY_PROMPT);
    assert_ok(lath_session_append(o->session, prompt->data, (size_t)prompt->count, &err), err);
    for (int i = 0; i < STEPS; i++) {
        const float *logits = logits_of(o);
        memcpy(seen + i * o->vocab, logits, (size_t)o->vocab * sizeof(float));
        ids[i] = likeliest(logits, o->vocab);
        assert_ok(lath_session_append(o->session, &ids[i], 1, &err), err);
    }
    assert_int_equal(lath_session_size(o->session), prompt->count + STEPS);
}

static void greedy_of(const char *path, const char *name)
{
    static const lath_isa isas[] = {LATH_ISA_AUTO, LATH_ISA_REF};
    for (size_t k = 0; k < 2; k++) {
        int32_t first[STEPS], ids[STEPS];
        float *alone = NULL;
        for (int32_t threads = 1; threads <= 3; threads++) {
            opened o = open_case(path, threads, isas[k]);
            const size_t bytes = sizeof(float) * (size_t)(STEPS * o.vocab);
            float *seen = test_malloc(bytes);
            generate(&o, threads == 1 ? first : ids, seen);
            if (threads == 1) {
                const int32_t *want = want_of(&o, "greedy.ids")->data;
                const float *gaps = want_of(&o, "greedy.gaps")->data;
                int n = 0;
                while (n < STEPS && (double)gaps[n] >= UNDECIDED && first[n] == want[n]) n++;
                if (n < STEPS && (double)gaps[n] >= UNDECIDED)
                    fail_msg("%s: token %d is %d, want %d", name, n, first[n], want[n]);
                printf("    %-26s %d tokens as the reference's\n", name, n);
                alone = seen;
                seen = NULL;
            } else if (memcmp(alone, seen, bytes) != 0 || memcmp(first, ids, sizeof(ids)) != 0) {
                fail_msg("%s: other bits with %d threads", name, threads);
            }
            if (seen) test_free(seen);
            close_case(o);
        }
        test_free(alone);
    }
}

static void test_greedy(void **state)
{
    (void)state;
    decoder_case_each(greedy_of);
}

/* ------------------------------------------------------------------------------------------------------ prefill and steps */

typedef struct keep {
    float *to;
    int64_t vocab;
    size_t n;
} keep;

static int keep_logits(void *ctx, size_t at, const float *logits)
{
    keep *k = ctx;
    assert_int_equal(at, k->n);
    memcpy(k->to + k->n++ * (size_t)k->vocab, logits, (size_t)k->vocab * sizeof(float));
    return 0;
}

/* Logits of all at once, of one by one, and of pieces. Where the base of the rotation grows with the text ("dynamic"), a step sees keys that were turned for
 * a shorter one, as in the reference: that is compared up to where it begins. */
static void steps_of(const char *path, const char *name)
{
    static const size_t pieces[][8] = {
        {1, 1, 1, 1, 1, 1, 1, 1}, {3, 1, 7, 1, 1, 16, 2, 64}, {2, 1, 2, 1, 15, 17, 1, 33}};
    lath_error err;
    opened o = open_case(path, 2, LATH_ISA_AUTO);
    const tensor *ids = prompt_ids(&o, LONG_PROMPT);
    const size_t n = strstr(name, "dynamic") ? 33 : (size_t)ids->count;
    keep whole = {test_malloc(sizeof(float) * n * (size_t)o.vocab), o.vocab, 0}, parts = whole;
    parts.to = test_malloc(sizeof(float) * n * (size_t)o.vocab);
    double worst = 0;
    assert_ok(lath_session_append_each(o.session, ids->data, n, keep_logits, &whole, &err), err);
    assert_int_equal(whole.n, n);
    for (size_t cut = 0; cut < sizeof(pieces) / sizeof(pieces[0]); cut++) {
        parts.n = 0;
        assert_int_equal(lath_session_rewind(o.session, 0), 0);
        for (size_t at = 0, i = 0; at < n; i++) {
            const size_t want = pieces[cut][i % 8], take = want < n - at ? want : n - at;
            assert_ok(
                lath_session_append_each(o.session, (const int32_t *)ids->data + at, take, keep_logits, &parts, &err),
                err);
            at += take;
        }
        for (size_t i = 0; i < n; i++) {
            const size_t at = i * (size_t)o.vocab;
            const double d = golden_max_abs(whole.to + at, parts.to + at, (size_t)o.vocab);
            const arch_model *m = &o.model->arch;
            if (m->desc->stale(m, (int64_t)n, (int64_t)i + 1)) continue; /* a longer text is turned otherwise */
            if (!(d <= STEP_ABS)) fail_msg("%s: position %zu: other by %g", name, i, d);
            worst = fmax(worst, d);
        }
    }
    printf("    %-26s steps differ by %.1e\n", name, worst);
    test_free(whole.to);
    test_free(parts.to);
    close_case(o);
}

static void test_steps(void **state)
{
    (void)state;
    decoder_case_each(steps_of);
}

/* ---------------------------------------------------------------------------------------------------------------- states */

/* n numbers that are held beside those of the reference. */
static void check_part(const char *name, const char *key, const float *have, const float *want, int64_t n,
                       double largest)
{
    const double d = golden_max_abs(have, want, (size_t)n) / largest;
    if (!(d <= STATE_REL)) fail_msg("%s: %s: %g of its largest value", name, key, d);
}

static double largest_of(const tensor *t)
{
    double largest = 0;
    for (int64_t i = 0; i < t->count; i++) largest = fmax(largest, fabs((double)((const float *)t->data)[i]));
    return largest;
}

/* What a layer that recurs holds, [width - 1][channels] and then [heads][d_k][d_v], is within STATE_REL of the reference's. Files that have the heads of the
 * values in another order (ARCH_STORED_TILED_HEADS) have their channels in it, too. */
static void check_state(const opened *o, const char *name, int32_t layer)
{
    const arch_dims *d = &o->model->arch.dims;
    const bool tiled = o->model->arch.stored & ARCH_STORED_TILED_HEADS;
    const int64_t d_qk = 2 * d->n_k_heads * d->d_k, channels = d_qk + d->n_v_heads * d->d_v, d_head = d->d_k * d->d_v;
    const int32_t shared = d->n_v_heads / d->n_k_heads, kept = d->conv_width - 1;
    const float *conv = o->session->recurrent[layer], *state = conv + kept * channels;
    char conv_key[48], state_key[48];
    snprintf(conv_key, sizeof(conv_key), "p%d.layer.%d.conv", GREEDY_PROMPT, layer);
    snprintf(state_key, sizeof(state_key), "p%d.layer.%d.state", GREEDY_PROMPT, layer);
    const tensor *want_conv = want_of(o, conv_key), *want_state = want_of(o, state_key);
    const double conv_most = largest_of(want_conv), state_most = largest_of(want_state);
    assert_int_equal(want_conv->count, kept * channels);
    assert_int_equal(want_state->count, d->n_v_heads * d_head);
    for (int32_t i = 0; i < kept; i++)
        check_part(name, conv_key, conv + i * channels, (const float *)want_conv->data + i * channels, d_qk, conv_most);
    for (int32_t h = 0; h < d->n_v_heads; h++) {
        const int32_t as = tiled ? h % d->n_k_heads * shared + h / d->n_k_heads : h; /* the reference's head */
        check_part(name, state_key, state + h * d_head, (const float *)want_state->data + as * d_head, d_head,
                   state_most);
        for (int32_t i = 0; i < kept; i++) {
            const int64_t at = i * channels + d_qk;
            check_part(name, conv_key, conv + at + h * d->d_v, (const float *)want_conv->data + at + as * d->d_v,
                       d->d_v, conv_most);
        }
    }
}

static int states_seen;

/* Of those cases that have them: behind the prompt at once, and token by token. */
static void states_of(const char *path, const char *name)
{
    static const lath_isa isas[] = {LATH_ISA_AUTO, LATH_ISA_REF};
    lath_error err;
    for (int way = 0; way < 4; way++) {
        opened o = open_case(path, 2, isas[way / 2]);
        const tensor *ids = prompt_ids(&o, GREEDY_PROMPT);
        const size_t n = (size_t)ids->count, take = way % 2 ? 1 : n;
        for (size_t at = 0; at < n; at += take)
            assert_ok(lath_session_append(o.session, (const int32_t *)ids->data + at, take, &err), err);
        for (int32_t i = 0; i < o.model->arch.dims.n_layers; i++) {
            char key[48];
            snprintf(key, sizeof(key), "p%d.layer.%d.state", GREEDY_PROMPT, i);
            if (!safetensors_find(o.want, key)) continue;
            check_state(&o, name, i);
            states_seen++;
        }
        close_case(o);
    }
}

static void test_states(void **state)
{
    (void)state;
    states_seen = 0;
    decoder_case_each(states_of);
    if (decoder_case_all()) assert_true(states_seen > 0);
}

/* ----------------------------------------------------------------------------------------------------- cuts and ways back */

/* The logits of the last of n tokens of the long prompt as a new session has them. */
static void fresh_logits(const char *path, size_t n, int32_t chunk, float *out)
{
    lath_error err;
    opened o = open_case(path, 2, LATH_ISA_AUTO);
    if (chunk) o.session->chunk = chunk;
    assert_ok(lath_session_append(o.session, prompt_ids(&o, LONG_PROMPT)->data, n, &err), err);
    memcpy(out, logits_of(&o), (size_t)o.vocab * sizeof(float));
    close_case(o);
}

/* How a prompt is cut into batches changes no bit; nor what the session held before, whatever turns keys by the length of the text. Layers that recur go in chunks
 * from where a batch begins: one that begins within a chunk of the other rounds otherwise. */
static void cuts_of(const char *path, const char *name)
{
    static const size_t lengths[] = {45, 20, 41, 34, 33, 45};
    lath_error err;
    opened o = open_case(path, 1, LATH_ISA_AUTO);
    const tensor *ids = prompt_ids(&o, LONG_PROMPT);
    const size_t bytes = sizeof(float) * (size_t)o.vocab;
    float *want = test_malloc(bytes), *cut = test_malloc(bytes);
    const bool grows = strstr(name, "dynamic"); /* there what is kept of a shorter text stays as it was turned */
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        const size_t n = lengths[i],
                     held = lath_session_rewind(o.session, n - 3); /* never a single token: a step rounds otherwise */
        fresh_logits(path, n, 0, want);
        fresh_logits(path, n, 16, cut);
        if (memcmp(want, cut, bytes) != 0) fail_msg("%s: %zu tokens in batches of 16: other bits", name, n);
        const bool longer = i > 0 && n > lengths[i - 1];
        assert_ok(lath_session_append(o.session, (const int32_t *)ids->data + held, n - held, &err), err);
        assert_int_equal(lath_session_size(o.session), n);
        if (o.session->recurrent && held % KERN_LANES != 0) {
            const double d = golden_max_abs(want, logits_of(&o), (size_t)o.vocab);
            if (!(d <= STEP_ABS)) fail_msg("%s: %zu tokens after %zu: other by %g", name, n, held, d);
        } else if (!(grows && longer) && memcmp(want, logits_of(&o), bytes) != 0)
            fail_msg("%s: %zu tokens after %zu: other bits", name, n, i ? lengths[i - 1] : 0);
    }
    test_free(want);
    test_free(cut);
    close_case(o);
}

static void test_cuts(void **state)
{
    (void)state;
    decoder_case_each(cuts_of);
}

int main(int argc, char **argv)
{
    decoder_case_args(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_greedy), cmocka_unit_test(test_steps),
                                       cmocka_unit_test(test_states), cmocka_unit_test(test_cuts)};
    return TEST_RUN(tests);
}
