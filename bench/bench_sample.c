/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_sample.c: choosing a token of a vocabulary, beside the time that copying its logits takes in the same run.
 *
 *     bench_sample [--vocab N] [--rounds N]
 *
 * Logits are near normal deviates times two with a few large ones in front of them, as language models give them. A round is a
 * copy and one token of every row; medians. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/sampler.h"

enum { SETS = 8, MAX_ROUNDS = 1001 };

static const struct {
    const char *name;
    lath_sample_options o;
    int mask; /* every third token */
} rows[] = {
    {"greedy", {.temperature = 0, .top_p = 1, .repeat_penalty = 1}, 0},
    {"greedy, masked", {.temperature = 0, .top_p = 1, .repeat_penalty = 1}, 1},
    {"top-k 50, top-p 0.9, penalty", {.temperature = 0.7, .top_k = 50, .top_p = 0.9, .repeat_penalty = 1.1}, 0},
    {"top-p 0.95", {.temperature = 1, .top_p = 0.95, .repeat_penalty = 1}, 0},
    {"min-p 0.05", {.temperature = 1, .top_p = 1, .min_p = 0.05, .repeat_penalty = 1}, 0},
    {"temperature 1", {.temperature = 1, .top_p = 1, .repeat_penalty = 1}, 0},
    {"temperature 2 (flat)", {.temperature = 2, .top_p = 1, .repeat_penalty = 1}, 0},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static lath_error err;

static void must(lath_status st)
{
    if (st == LATH_OK) return;
    fprintf(stderr, "bench_sample: %s\n", err.msg);
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

static float *make_logits(size_t n)
{
    rng r;
    float *v = malloc(n * sizeof(*v));
    if (!v) exit(1);
    rng_seed(&r, 1);
    for (size_t i = 0; i < n; i++) {
        double sum = -6;
        for (int k = 0; k < 12; k++) sum += rng_uniform(&r);
        v[i] = (float)(2 * sum + (rng_uniform(&r) < 1e-4 ? 14 : 0));
    }
    return v;
}

int main(int argc, char **argv)
{
    size_t n = 262144, rounds = 201;
    static double took[ROWS + 2][MAX_ROUNDS];
    static sampler s[ROWS];
    kern_table kern;
    for (int i = 1; i + 1 < argc; i += 2) {
        const size_t v = strtoul(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--vocab") == 0 && v > 0 && v < 1 << 24) n = v;
        if (strcmp(argv[i], "--rounds") == 0 && v > 0 && v <= MAX_ROUNDS) rounds = v;
    }
    kern_table_init(&kern, KERN_ISA_AMX);
    float *logits = make_logits(SETS * n), *copy = malloc(n * sizeof(*copy));
    uint32_t *mask = calloc(n / 32 + 1, sizeof(*mask));
    if (!copy || !mask) return 1;
    for (size_t i = 0; i < n; i += 3) mask[i / 32] |= 1u << (i % 32);
    for (size_t k = 0; k < ROWS; k++) {
        lath_sample_options o = rows[k].o;
        o.struct_size = sizeof(o);
        must(sampler_init(&s[k], alloc_default(), &kern, (int32_t)n, &o, &err));
    }
    for (size_t i = 0; i < rounds; i++) {
        const float *l = logits + i % SETS * n;
        double t = clock_now();
        memcpy(copy, l, n * sizeof(*copy));
        took[ROWS][i] = clock_now() - t;
        for (size_t k = 0; k < ROWS; k++) {
            int32_t id;
            t = clock_now();
            must(sampler_pick(&s[k], l, rows[k].mask ? mask : NULL, &id, &err));
            took[k][i] = clock_now() - t;
            sampler_accept(&s[k], &id, 1);
        }
        lath_token_logprob top[5];
        t = clock_now();
        must(sampler_top_logprobs(&s[0], l, 5, top, NULL, &err));
        took[ROWS + 1][i] = clock_now() - t;
    }
    const double base = median(took[ROWS], rounds);
    printf("vocabulary of %zu, copying its logits: %.1f us\n", n, base * 1e6);
    for (size_t k = 0; k <= ROWS + 1; k++) {
        if (k == ROWS) continue;
        const double t = median(took[k], rounds);
        printf("%-30s %7.1f us  %5.2f copies\n", k < ROWS ? rows[k].name : "logprobs, 5 best", t * 1e6, t / base);
    }
    for (size_t k = 0; k < ROWS; k++) sampler_deinit(&s[k]);
    free(mask);
    free(copy);
    free(logits);
    return 0;
}
