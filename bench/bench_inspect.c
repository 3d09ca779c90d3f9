/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_inspect.c: what looking inside costs: a prompt and single tokens of a session with hooks at every point of every layer that see the last position, and a trace
 * of the prompt that keeps it, each beside the plain session in the same rounds. "off" is a session whose hooks were taken away again.
 *
 *     bench_inspect MODEL [--tokens N] [--rounds N] [--threads N]
 *
 * A round is plain, other, plain for each row; the ratio is the other's time to the mean of its neighbours'; medians. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "lath/lath_inspect.h"

enum { MAX_ROUNDS = 1001, MAX_TOKENS = 2048, STEPS = 8 };

typedef enum row { PROMPT_OFF, PROMPT_HOOKS, PROMPT_TRACE, PROMPT_ALL, STEP_OFF, STEP_HOOKS, ROWS } row;
static const char *const names[ROWS] = {"prompt, hooks taken away",
                                        "prompt, hooks at every point",
                                        "prompt, trace",
                                        "prompt, trace of heads, features, inputs",
                                        "tokens, hooks taken away",
                                        "tokens, hooks at every point"};

typedef struct looking {
    lath_model *model;
    lath_session *plain, *other;
    lath_hooks *hooks;
    int32_t ids[MAX_TOKENS];
    size_t n;
    uint64_t seen;
} looking;

static lath_error err;

static void must(lath_status st)
{
    if (st == LATH_OK) return;
    fprintf(stderr, "bench_inspect: %s\n", err.msg);
    exit(1);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof(*v), by_size);
    return v[n / 2];
}

static int see(void *ctx, lath_value *v)
{
    *(uint64_t *)ctx += v->n;
    return 0;
}

static double prompt(looking *l, lath_session *s)
{
    lath_session_rewind(s, 0);
    const double t = clock_now();
    must(lath_session_append(s, l->ids, l->n, &err));
    return clock_now() - t;
}

static double trace(looking *l, uint32_t what)
{
    lath_trace *kept;
    lath_trace_options o = LATH_TRACE_OPTIONS_INIT;
    o.what = what;
    const double t = clock_now();
    must(lath_trace_run(l->model, l->ids, l->n, &o, &kept, &err));
    const double took = clock_now() - t;
    lath_trace_close(kept);
    return took;
}

static double steps(looking *l, lath_session *s)
{
    lath_session_rewind(s, 0);
    must(lath_session_append(s, l->ids, 8, &err));
    const double t = clock_now();
    for (int i = 0; i < STEPS; i++) must(lath_session_append(s, l->ids + i, 1, &err));
    return clock_now() - t;
}

static double once(looking *l, row r)
{
    const int hooked = r == PROMPT_HOOKS || r == STEP_HOOKS;
    must(lath_session_set_hooks(l->other, hooked ? l->hooks : NULL, &err));
    if (r == PROMPT_TRACE) return trace(l, 0);
    if (r == PROMPT_ALL) return trace(l, LATH_TRACE_HEADS | LATH_TRACE_ACTIVATIONS | LATH_TRACE_INPUTS);
    return r >= STEP_OFF ? steps(l, l->other) : prompt(l, l->other);
}

static void open_all(looking *l, const char *path, int32_t threads)
{
    lath_runtime *rt;
    lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
    lath_session_options so = LATH_SESSION_OPTIONS_INIT;
    ro.n_threads = threads;
    so.ctx = (int32_t)l->n + STEPS + 8;
    must(lath_runtime_create(&ro, &rt, &err));
    must(lath_model_open(rt, path, NULL, &l->model, &err));
    must(lath_session_create(l->model, &so, &l->plain, &err));
    must(lath_session_create(l->model, &so, &l->other, &err));
    must(lath_hooks_create(l->model, &l->hooks, &err));
    for (int p = LATH_POINT_EMBED; p <= LATH_POINT_FINAL; p++)
        must(lath_hooks_add(l->hooks, (lath_point)p, LATH_LAYERS_ALL, LATH_POSITION_LAST, see, &l->seen, &err));
}

int main(int argc, char **argv)
{
    static double took[ROWS][MAX_ROUNDS];
    static looking l;
    size_t rounds = 15;
    int32_t threads = 0;
    l.n = 128;
    for (int i = 2; i + 1 < argc; i += 2) {
        const size_t v = strtoul(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--tokens") == 0 && v >= 8 && v <= MAX_TOKENS) l.n = v;
        if (strcmp(argv[i], "--rounds") == 0 && v > 0 && v <= MAX_ROUNDS) rounds = v;
        if (strcmp(argv[i], "--threads") == 0 && v < 256) threads = (int32_t)v;
    }
    if (argc < 2) {
        fprintf(stderr, "usage: bench_inspect MODEL [--tokens N] [--rounds N] [--threads N]\n");
        return 2;
    }
    for (size_t i = 0; i < l.n; i++) l.ids[i] = (int32_t)(5 + i * 37 % 90);
    open_all(&l, argv[1], threads);
    for (size_t i = 0; i < rounds; i++) {
        for (int r = 0; r < ROWS; r++) {
            const int stepping = r >= STEP_OFF;
            const double a = stepping ? steps(&l, l.plain) : prompt(&l, l.plain), t = once(&l, (row)r),
                         b = stepping ? steps(&l, l.plain) : prompt(&l, l.plain);
            took[r][i] = 2 * t / (a + b);
        }
    }
    for (int r = 0; r < ROWS; r++) printf("%-42s %.3f of the plain session\n", names[r], median(took[r], rounds));
    printf("%llu rows seen\n", (unsigned long long)l.seen);
    return 0;
}
