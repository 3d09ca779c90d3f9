/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_grammar.c: what structured output costs a token: masks under a JSON schema, beside the time that choosing the token takes without one.
 *
 *     bench_grammar TOKENIZER [--schema FILE] [--texts N]
 *
 * Texts are made of random logits, with what closes strings and lists preferred from the 40th token on. A mask that is there already counts, too; "made"
 * are those that were not. Times are of the process alone: give it a core. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "engine/grammar.h"
#include "engine/sampler.h"

enum { TIMES_MOST = 1 << 20, TOKENS_MOST = 2000 };

static const char example[] =
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"age\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":150},"
    "\"email\":{\"type\":\"string\",\"maxLength\":60},\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
    "\"kind\":{\"enum\":[\"person\",\"robot\",\"animal\"]},\"address\":{\"type\":\"object\",\"properties\":{\"street\":{\"type\":\"string\"},"
    "\"city\":{\"type\":\"string\"},\"zip\":{\"type\":\"string\",\"pattern\":\"^[0-9]{5}$\"}},\"required\":[\"street\",\"city\",\"zip\"]},"
    "\"notes\":{\"type\":[\"string\",\"null\"]}},\"required\":[\"name\",\"age\",\"tags\",\"kind\",\"address\",\"notes\"]}";

static lath_error err;

static void must(lath_status st)
{
    if (st == LATH_OK) return;
    fprintf(stderr, "bench_grammar: %s\n", err.msg);
    exit(1);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(const char *what, double *v, size_t n, double base)
{
    double sum = 0;
    if (n == 0) return;
    qsort(v, n, sizeof(*v), by_size);
    for (size_t i = 0; i < n; i++) sum += v[i];
    printf("%-12s %6zu: median %7.1f us, mean %7.1f us, 99 %% %7.1f us; mean %.2f x choosing\n", what, n,
           v[n / 2] * 1e6, sum / (double)n * 1e6, v[n * 99 / 100] * 1e6, sum / (double)n / base);
}

static double all[TIMES_MOST], made[TIMES_MOST], picks[TIMES_MOST];
static size_t n_all, n_made;

/* One text; closing: [n] is added to logits from the 40th token on. */
static void make_text(grammar_match *m, sampler *s, rng *r, float *logits, const float *closing, int32_t n)
{
    must(grammar_match_reset(m, &err));
    for (int i = 0; i < TOKENS_MOST && !grammar_match_ended(m) && n_all < TIMES_MOST; i++) {
        const uint32_t *mask;
        int32_t id;
        for (int32_t j = 0; j < n; j++) logits[j] = (float)(rng_uniform(r) * 8) + (i > 40 ? closing[j] : 0);
        const bool is_made = !grammar_match_has_mask(m);
        double begin = clock_now();
        must(grammar_match_mask(m, &mask, &err));
        all[n_all] = clock_now() - begin;
        if (is_made) made[n_made++] = all[n_all];
        begin = clock_now();
        must(sampler_pick(s, logits, mask, &id, &err));
        picks[n_all++] = clock_now() - begin;
        must(grammar_match_accept(m, id, &err));
    }
}

int main(int argc, char **argv)
{
    const char *schema = example;
    size_t texts = 40;
    buf file;
    tok *t;
    token_trie *trie;
    grammar *g;
    grammar_match *m;
    kern_table kern;
    sampler s;
    rng r;
    buf_init(&file, alloc_default(), 1 << 24);
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--texts") == 0) texts = strtoul(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--schema") == 0) {
            must(file_read(&file, argv[i + 1], 1 << 24, &err));
            schema = buf_cstr(&file);
        }
    }
    if (argc < 2) return 2;
    must(tok_open_dir(alloc_default(), argv[1], &t, &err));
    double begin = clock_now();
    must(token_trie_create(t, alloc_default(), &trie, &err));
    printf("vocabulary of %d by bytes: %.0f ms, %zu nodes\n", (int)tok_size(t), (clock_now() - begin) * 1e3,
           trie->n_nodes);
    begin = clock_now();
    must(grammar_open_schema(alloc_default(), "schema", schema, strlen(schema), &g, &err));
    printf("schema: %.2f ms, %zu nodes\n", (clock_now() - begin) * 1e3, g->n_nodes);
    const int32_t n = tok_size(t), end = n - 1;
    float *logits = malloc((size_t)n * sizeof(*logits)), *closing = calloc((size_t)n, sizeof(*closing));
    if (!logits || !closing) return 1;
    for (int32_t id = 0; id < n; id++) {
        size_t len;
        const char *text = tok_token(t, id, &len);
        if (text && len == 1 && strchr("\"}]", *text)) closing[id] = 30;
    }
    kern_table_init(&kern, KERN_ISA_AMX);
    must(sampler_init(&s, alloc_default(), &kern, n, NULL, &err));
    rng_seed(&r, 1);
    must(grammar_match_create(g, trie, &end, 1, n, alloc_default(), &m, &err));
    for (size_t k = 0; k < texts; k++) make_text(m, &s, &r, logits, closing, n);
    qsort(picks, n_all, sizeof(*picks), by_size);
    printf("choosing: median %.1f us\n", picks[n_all / 2] * 1e6);
    print("masks", all, n_all, picks[n_all / 2]);
    print("made", made, n_made, picks[n_all / 2]);
    return 0;
}
