/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_embed.c: tokens a second of lath_embed, beside the FMA roof of the same seconds. On the public header only.
 *
 *     bench_embed [MODEL] [--threads N] [--case 1x128|32x128|mixed|FILE] [--slices N] [--isa NAME] [--cpu]
 *     bench_embed [MODEL] [--threads N] --rss
 *
 * Shared hosts change speed within seconds: slices of the roof loop, of embedding and of tokenising alternate, and each
 * slice of embedding is divided by the mean roof of its two neighbours; what is printed is medians and bests. A token's
 * work is 2 flops a parameter of the layers' matrices plus 4 * length * d_model a layer for attention. Embedding is
 * timed as a caller sees it, tokenising included. "Model only" takes off the time that tokenising the same texts took
 * (lath_embed tokenises in the calling thread, before it computes). --cpu takes the CPU time of the process for time,
 * with one thread only: on a machine that others keep busy it is nearer to what a free core would do.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lath/lath.h"
#include "roofline.h"

enum { MAX_SLICES = 501, MAX_THREADS = 256, MIXED_TEXTS = 1000, SET_TEXTS = 64 };
static const double ROOF_SECONDS = 0.04, EMBED_SECONDS = 0.3, ENCODE_SECONDS = 0.03;

/* What time means here: the wall's, or with --cpu the CPU time of the process. */
static clockid_t clock_kind = CLOCK_MONOTONIC;

static double now(void)
{
    struct timespec t;
    clock_gettime(clock_kind, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "bench_embed: %s: %s\n", what, why);
    exit(1);
}

static void check(lath_status st, const char *what, const lath_error *err)
{
    if (st != LATH_OK) die(what, err->msg);
}

static void *allocate(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p) die("memory", "malloc gave NULL");
    return p;
}

/* ------------------------------------------------------------------------------------------------------------ texts */

static const char *const WORDS[] = {"the",
                                    "a",
                                    "of",
                                    "and",
                                    "to",
                                    "in",
                                    "water",
                                    "light",
                                    "house",
                                    "river",
                                    "mountain",
                                    "city",
                                    "people",
                                    "machine",
                                    "language",
                                    "model",
                                    "music",
                                    "history",
                                    "science",
                                    "question",
                                    "answer",
                                    "green",
                                    "small",
                                    "quickly",
                                    "between",
                                    "under",
                                    "through",
                                    "winter",
                                    "summer",
                                    "market",
                                    "price",
                                    "doctor",
                                    "school",
                                    "children",
                                    "animal",
                                    "forest",
                                    "ocean",
                                    "energy",
                                    "computer",
                                    "network",
                                    "photosynthesis",
                                    "tokenisation",
                                    "bread",
                                    "coffee",
                                    "garden",
                                    "window",
                                    "engine",
                                    "road",
                                    "train",
                                    "station",
                                    "letter",
                                    "story",
                                    "number",
                                    "theory",
                                    "election",
                                    "government",
                                    "economy",
                                    "film",
                                    "painter",
                                    "violin",
                                    "football",
                                    "weather",
                                    "storm",
                                    "sleep",
                                    "dream",
                                    "memory",
                                    "believe",
                                    "walk",
                                    "carry",
                                    "build",
                                    "measure",
                                    "observe"};
enum { N_WORDS = sizeof(WORDS) / sizeof(WORDS[0]) };

typedef struct corpus {
    lath_text *texts; /* [n], bytes owned */
    size_t n;
    size_t set; /* a slice takes every (n / set)-th text: as many as this */
} corpus;

static uint32_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static double draw_unit(uint64_t *state) { return (double)draw(state) * 0x1p-31; }

/* A text of n_words words, sentences of about a dozen. */
static lath_text words(uint64_t *seed, int n_words)
{
    char *s = allocate((size_t)n_words * 24 + 1);
    size_t len = 0;
    for (int i = 0; i < n_words; i++)
        len += (size_t)sprintf(s + len, "%s%s", i == 0 ? "" : " ", WORDS[draw(seed) % N_WORDS]);
    return (lath_text){s, len};
}

/* A text of exactly n tokens where one of the words fits at the end, else of a few fewer. */
static lath_text text_of_tokens(const lath_tokenizer *tok, uint64_t *seed, size_t n)
{
    char *s = allocate(n * 24 + 1);
    size_t len = 0;
    lath_tokens t = {0};
    lath_error err;
    for (int failed = 0; failed < 20;) {
        size_t more = (size_t)sprintf(s + len, "%s%s", len ? " " : "", WORDS[draw(seed) % N_WORDS]);
        check(lath_encode(tok, (lath_text){s, len + more}, NULL, &t, &err), "lath_encode", &err);
        if (t.n > n)
            failed++;
        else
            len += more;
        if (t.n == n) break;
    }
    lath_tokens_release(&t);
    return (lath_text){s, len};
}

static corpus corpus_equal(const lath_tokenizer *tok, size_t n, size_t tokens)
{
    corpus c = {allocate(n * sizeof(lath_text)), n, n};
    uint64_t seed = 1;
    for (size_t i = 0; i < n; i++) c.texts[i] = text_of_tokens(tok, &seed, tokens);
    return c;
}

/* Lengths are log-normal: median 40 tokens, sigma 0.6, 4 to 200. */
static corpus corpus_mixed(void)
{
    corpus c = {allocate(MIXED_TEXTS * sizeof(lath_text)), MIXED_TEXTS, SET_TEXTS};
    uint64_t seed = 7;
    for (size_t i = 0; i < c.n; i++) {
        double z = -6;
        for (int j = 0; j < 12; j++) z += draw_unit(&seed);
        double n = exp(log(40) + 0.6 * z);
        c.texts[i] = words(&seed, (int)(n < 4 ? 4 : n > 200 ? 200 : n) - 2);
    }
    return c;
}

static corpus corpus_file(const char *path)
{
    corpus c = {NULL, 0, SET_TEXTS};
    char *line = NULL;
    size_t capacity = 0;
    ssize_t len;
    FILE *f = fopen(path, "rb");
    if (!f) die(path, "cannot open it");
    while ((len = getline(&line, &capacity, f)) >= 0) {
        while (len && (line[len - 1] == '\n' || line[len - 1] == '\r')) len--;
        if (c.n % 1024 == 0) c.texts = realloc(c.texts, (c.n + 1024) * sizeof(lath_text));
        if (!c.texts) die("memory", "realloc gave NULL");
        char *copy = allocate((size_t)len);
        memcpy(copy, line, (size_t)len);
        c.texts[c.n++] = (lath_text){copy, (size_t)len};
    }
    free(line);
    fclose(f);
    if (!c.n) die(path, "no lines in it");
    if (c.set > c.n) c.set = c.n;
    return c;
}

static void corpus_release(corpus *c)
{
    for (size_t i = 0; i < c->n; i++) free((char *)(uintptr_t)c->texts[i].data);
    free(c->texts);
}

/* -------------------------------------------------------------------------------------------------------- measuring */

typedef struct engine {
    lath_runtime *rt;
    lath_model *model;
    lath_embedder *embedder;
    lath_model_info info;
    int32_t threads;
    double flops_token;  /* of the matrices of the layers */
    double flops_square; /* a token and token it sees, all layers */
} engine;

/* Work of one slice. */
typedef struct work {
    const lath_text *texts;
    size_t n;
    float *vectors;
    double tokens, flops; /* of one pass, set by embed_pass */
} work;

static void engine_open(engine *e, const char *path, int32_t threads, lath_isa isa)
{
    lath_error err;
    lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
    ro.n_threads = threads;
    ro.isa = isa;
    *e = (engine){.info = {.struct_size = sizeof(lath_model_info)}};
    check(lath_runtime_create(&ro, &e->rt, &err), "lath_runtime_create", &err);
    check(lath_model_open(e->rt, path, NULL, &e->model, &err), "lath_model_open", &err);
    check(lath_embedder_create(e->model, NULL, &e->embedder, &err), "lath_embedder_create", &err);
    check(lath_model_get_info(e->model, &e->info, &err), "lath_model_get_info", &err);
    e->threads = lath_runtime_threads(e->rt);
}

/* Every matrix that is used multiplies each token once, but for the tables that embed it. */
static void engine_count_flops(engine *e)
{
    lath_error err;
    for (int32_t i = 0; i < e->info.n_tensors; i++) {
        lath_tensor_info t;
        check(lath_model_get_tensor(e->model, i, &t, &err), "lath_model_get_tensor", &err);
        if (t.used && t.rank == 2 && !strstr(t.name, "embeddings"))
            e->flops_token += 2.0 * (double)t.shape[0] * (double)t.shape[1];
    }
    e->flops_square = 4.0 * (double)e->info.d_model * e->info.n_layers;
}

static void engine_close(engine *e)
{
    lath_embedder_destroy(e->embedder);
    lath_model_close(e->model);
    lath_runtime_destroy(e->rt);
}

static void embed_pass(const engine *e, work *w)
{
    lath_error err;
    lath_embed_result results[SET_TEXTS]; /* no slice takes more texts */
    check(lath_embed(e->embedder, w->texts, w->n, w->vectors, results, &err), "lath_embed", &err);
    w->tokens = w->flops = 0;
    for (size_t i = 0; i < w->n; i++) {
        const double n = results[i].n_tokens;
        w->tokens += n;
        w->flops += n * e->flops_token + n * n * e->flops_square;
    }
}

/* Seconds of one pass. */
static double embed_slice(const engine *e, work *w)
{
    double t = 0;
    int passes = 0;
    for (const double t0 = now(); t < EMBED_SECONDS; t = now() - t0, passes++) embed_pass(e, w);
    return t / passes;
}

static double encode_slice(const engine *e, const work *w)
{
    lath_error err;
    lath_tokens tokens = {0};
    lath_encode_options o = LATH_ENCODE_OPTIONS_INIT;
    o.max_tokens = e->info.max_tokens;
    double t = 0;
    int passes = 0;
    for (const double t0 = now(); t < ENCODE_SECONDS; t = now() - t0, passes++)
        for (size_t i = 0; i < w->n; i++)
            check(lath_encode(lath_model_tokenizer(e->model), w->texts[i], &o, &tokens, &err), "lath_encode", &err);
    lath_tokens_release(&tokens);
    return t / passes;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Flops a second that the threads could do now. */
static double roof(const engine *e)
{
    const roofline_fma_fn loop = roofline_fma_loop(lath_runtime_isa(e->rt));
    double flops = 0, t = 0;
    if (clock_kind == CLOCK_MONOTONIC) return roofline_fma(e->threads, loop, ROOF_SECONDS);
    for (const double t0 = now(); t < ROOF_SECONDS; t = now() - t0) flops += loop();
    return flops / t;
}

static void sort(double *x, int n) { qsort(x, (size_t)n, sizeof(*x), by_value); }

static void measure(const engine *e, const char *name, const corpus *c, int slices)
{
    static double rate[MAX_SLICES], share[MAX_SLICES], model[MAX_SLICES], tokenise[MAX_SLICES], roofs[MAX_SLICES];
    lath_text *set = allocate(c->set * sizeof(*set));
    const size_t sets = c->n / c->set;
    work w = {set, c->set, allocate(c->set * (size_t)lath_embedder_dim(e->embedder) * sizeof(float)), 0, 0};
    double before = 0, tokens = 0;
    for (int s = -1; s < slices; s++) { /* -1 warms up */
        for (size_t i = 0; i < c->set; i++) set[i] = c->texts[(size_t)(s + 1) % sets + i * sets];
        const double t = embed_slice(e, &w), after = roof(e), t_encode = encode_slice(e, &w);
        if (s >= 0) {
            rate[s] = w.tokens / t, model[s] = w.tokens / (t - t_encode), tokenise[s] = t_encode / t, roofs[s] = after;
            share[s] = before > 0 ? w.flops / t / ((before + after) / 2) : 0;
            tokens += w.tokens;
        }
        before = after;
    }
    sort(rate, slices), sort(share, slices), sort(model, slices), sort(tokenise, slices), sort(roofs, slices);
    const int m = slices / 2, last = slices - 1;
    printf("%-7s %5.1f tokens a text: %6.0f tokens/s (best %6.0f)", name, tokens / (double)(c->set * (size_t)slices),
           rate[m], rate[last]);
    if (roofs[m] > 0)
        printf(", %4.1f %% of the FMA roof (best %4.1f) of %5.1f Gflop/s", 100 * share[m], 100 * share[last],
               roofs[m] / 1e9);
    printf("; model only %6.0f, tokenising %4.2f %% of the time\n", model[m], 100 * tokenise[m]);
    fflush(stdout);
    free(w.vectors);
    free(set);
}

/* ----------------------------------------------------------------------------------------------------------- memory */

/* A field of /proc/self/status in bytes; 0 where there is none. */
static double status_bytes(const char *field)
{
    char line[256];
    double kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    if (!f) return 0;
    while (fgets(line, sizeof(line), f))
        if (strncmp(line, field, strlen(field)) == 0) kib = strtod(line + strlen(field) + 1, NULL);
    fclose(f);
    return kib * 1024;
}

static void print_rss(const engine *e)
{
    static const char sentence[] = "The cat sat on the mat and watched the rain.";
    lath_error err;
    lath_text text = {sentence, sizeof(sentence) - 1};
    float *v = allocate((size_t)lath_embedder_dim(e->embedder) * sizeof(float));
    check(lath_embed(e->embedder, &text, 1, v, NULL, &err), "lath_embed", &err);
    const double rss = status_bytes("VmRSS"), anon = status_bytes("RssAnon"), file = (double)e->info.file_bytes;
    printf("VmRSS %.1f MB after the first forward (%.1f MB of it private), weights on disk %.1f MB: %+.1f MB, %s the "
           "bound of file + 20 MB\n",
           rss / 1e6, anon / 1e6, file / 1e6, (rss - file) / 1e6, rss <= file + 20e6 ? "within" : "OVER");
    free(v);
}

/* -------------------------------------------------------------------------------------------------------- arguments */

typedef struct arguments {
    const char *model, *only, *isa;
    int threads, slices, rss;
} arguments;

static int usage(void)
{
    fprintf(stderr, "usage: bench_embed [MODEL] [--threads N] [--case 1x128|32x128|mixed|FILE] [--slices N] [--isa "
                    "NAME] [--cpu] [--rss]\n"
                    "MODEL is a model directory; without it all-MiniLM-L6-v2 in $LATH_MODELS\n");
    return 2;
}

static int parse(int argc, char **argv, arguments *a)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--rss") == 0) {
            a->rss = 1;
        } else if (strcmp(argv[i], "--cpu") == 0) {
            clock_kind = CLOCK_PROCESS_CPUTIME_ID;
            a->threads = 1;
        } else if (argv[i][0] != '-') {
            if (a->model) return 0;
            a->model = argv[i];
        } else if (i + 1 == argc) {
            return 0;
        } else if (strcmp(argv[i], "--threads") == 0) {
            a->threads = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--slices") == 0) {
            a->slices = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--case") == 0) {
            a->only = argv[++i];
        } else if (strcmp(argv[i], "--isa") == 0) {
            a->isa = argv[++i];
        } else {
            return 0;
        }
    }
    if (clock_kind != CLOCK_MONOTONIC && a->threads != 1) return 0;
    return a->threads >= 0 && a->threads <= MAX_THREADS && a->slices >= 1 && a->slices <= MAX_SLICES;
}

static int parse_isa(const char *name, lath_isa *out)
{
    static const char *const names[] = {"auto", "ref", "avx2", "avx512", "amx", "neon"};
    for (int i = 0; i < 6; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *out = (lath_isa)i;
        return 1;
    }
    return 0;
}

static void run_cases(const engine *e, const arguments *a)
{
    static const char *const names[] = {"1x128", "32x128", "mixed"};
    int known = 0;
    for (int i = 0; i < 3; i++) {
        if (a->only && strcmp(a->only, names[i]) != 0) continue;
        const lath_tokenizer *tok = lath_model_tokenizer(e->model);
        corpus c = i == 2 ? corpus_mixed() : corpus_equal(tok, i == 0 ? 1 : 32, 128);
        measure(e, names[i], &c, a->slices);
        corpus_release(&c);
        known = 1;
    }
    if (known) return;
    corpus c = corpus_file(a->only);
    measure(e, "file", &c, a->slices);
    corpus_release(&c);
}

int main(int argc, char **argv)
{
    arguments a = {.isa = "auto", .slices = 15};
    lath_isa isa;
    char path[4096];
    engine e;
    if (!parse(argc, argv, &a) || !parse_isa(a.isa, &isa)) return usage();
    if (!a.model) {
        if (!getenv("LATH_MODELS")) return usage();
        snprintf(path, sizeof(path), "%s/all-MiniLM-L6-v2", getenv("LATH_MODELS"));
        a.model = path;
    }
    engine_open(&e, a.model, a.threads, isa);
    if (a.rss) {
        print_rss(&e);
    } else {
        engine_count_flops(&e);
        printf(
            "lath %s, isa %s, threads %d, %s: %d layers, d %lld, %.1f Mflop a token and %.4f a token pair, %d slices\n",
            lath_version(), lath_runtime_isa(e.rt), (int)e.threads, e.info.architecture, (int)e.info.n_layers,
            (long long)e.info.d_model, e.flops_token / 1e6, e.flops_square / 1e6, a.slices);
        run_cases(&e, &a);
    }
    engine_close(&e);
    return 0;
}
