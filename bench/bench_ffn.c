/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_ffn.c: FFNs of single tokens against each other and against the read bandwidth of the same seconds.
 *
 *     bench_ffn [--isa NAME] [--threads N] [--rounds N] [--type f16] [--d 2560] [--features 10240] [--layers N] [--k N]
 *
 * A stack of layers, larger than the caches, is walked through once a slice, as generation does for a token. Slices of plain reading (four long streams a thread), of the dense FFN
 * and of the others alternate; every slice is divided by the dense one of its round, and what it reads by the bandwidth of the reading beside it. Printed are
 * medians. Time is wall time: run it with priority (chrt -f 20).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ffn/ffn_backends.h"
#include "ffn/ffn_walk.h"
#include "roofline.h"

enum { MAX_ROUNDS = 101, MAX_LAYERS = 64 };

typedef struct options {
    const char *isa;
    int32_t threads, rounds, layers;
    int64_t d, features, k, tokens;
    dtype type, gate_type;
    bool integer;
} options;

typedef struct bench {
    options o;
    kern_table kern;
    stream s;
    fwd f;
    lath_error err;
    unsigned char *bytes; /* gate, up, down, rows of down: layer by layer */
    size_t matrix, gate_bytes, all;
    ffn_dense dense;
    ffn_dense_layer layers[MAX_LAYERS];
    ffn_walk_layer walk[MAX_LAYERS];
    tensor tensors[MAX_LAYERS][4];
    view x, y, scores;
    float *memory;
    const backend_ops *ops;
} bench;

static void die(const char *what)
{
    fprintf(stderr, "bench_ffn: %s\n", what);
    exit(1);
}

static void *block(size_t bytes)
{
    void *p = alloc_bytes(alloc_default(), bytes, 64);
    if (!p) die("out of memory");
    return p;
}

/* Random numbers of the type: any codes, small scales. */
static void fill(dtype type, unsigned char *p, int64_t n, uint64_t *random)
{
    const size_t bytes = dtype_bytes(type, n), size = dtype_block_bytes(type);
    for (size_t i = 0; i < bytes; i++) {
        *random = *random * 6364136223846793005u + 1442695040888963407u;
        p[i] = (unsigned char)(*random >> 56);
    }
    for (size_t i = 0; i < bytes; i += size) {
        const uint16_t half = (uint16_t)(0x2000 + p[i]); /* about 0.008 */
        if (type == DTYPE_F32) {
            const float v = (float)(int8_t)p[i] / 4096;
            memcpy(p + i, &v, 4);
        } else if (type == DTYPE_F16) {
            const uint16_t v = (uint16_t)(half | (p[i + 1] & 0x80) << 8);
            memcpy(p + i, &v, 2);
        } else if (type == DTYPE_BF16) {
            p[i + 1] = (unsigned char)(0x3b | (p[i + 1] & 0x80));
        } else {
            memcpy(p + i + (type == DTYPE_Q6_K ? 208 : 0), &half, 2);
            if (type == DTYPE_Q4_K) memcpy(p + i + 2, &half, 2);
        }
    }
}

static void make_layers(bench *b)
{
    const options *o = &b->o;
    uint64_t random = 1;
    b->matrix = (dtype_bytes(o->type, o->d * o->features) + 63) / 64 * 64;
    b->gate_bytes = (dtype_bytes(o->gate_type, o->d * o->features) + 63) / 64 * 64;
    const size_t layer = 4 * b->matrix + b->gate_bytes;
    b->all = layer * (size_t)o->layers;
    b->bytes = block(b->all);
    for (int i = 0; i < o->layers; i++) {
        unsigned char *at = b->bytes + layer * (size_t)i;
        weight *const w[] = {&b->layers[i].gate.w, &b->layers[i].up.w, &b->layers[i].down.w, &b->walk[i].down};
        for (int k = 0; k < 4; k++) {
            const int64_t rows = k == 2 ? o->d : o->features, cols = k == 2 ? o->features : o->d;
            fill(o->type, at + (size_t)k * b->matrix, rows * cols, &random);
            b->tensors[i][k] = (tensor){
                .name = "w", .type = o->type, .rank = 2, .dim = {rows, cols}, .data = at + (size_t)k * b->matrix};
            weight_init(w[k], &b->tensors[i][k], "bench", 0, rows, cols);
            atomic_store(&w[k]->finite, true);
        }
        fill(o->gate_type, at + 4 * b->matrix, o->features * o->d, &random);
        tensor *t = calloc(1, sizeof(*t));
        if (!t) die("out of memory");
        *t = (tensor){
            .name = "g", .type = o->gate_type, .rank = 2, .dim = {o->features, o->d}, .data = at + 4 * b->matrix};
        weight_init(&b->walk[i].gate, t, "bench", 0, o->features, o->d);
        atomic_store(&b->walk[i].gate.finite, true);
        weight_init(&b->walk[i].up, &b->tensors[i][1], "bench", 0, o->features, o->d);
        atomic_store(&b->walk[i].up.finite, true);
        b->walk[i].features = o->features;
    }
    ffn_dense_init(&b->dense, KERN_FN_SILU, o->features, true, b->layers, sizeof(b->layers[0]));
}

static ffn *open_walk(bench *b, int64_t k, ffn *own)
{
    const ffn_walk_source s = {
        .layers = b->walk, .n_layers = b->o.layers, .d_model = b->o.d, .fn = KERN_FN_SILU, .name = "bench"};
    ffn *f;
    if (ffn_walk_open(&s, k, 0, b->o.layers - 1, own, alloc_default(), &f, &b->err) != LATH_OK) die(b->err.msg);
    return f;
}

static double run(bench *b, ffn *f)
{
    const double begin = clock_now();
    for (int i = 0; i < b->o.layers; i++)
        if (ffn_forward(f, &b->f, i, b->x, b->memory, b->y) != LATH_OK) die(b->err.msg);
    return clock_now() - begin;
}

/* The scores of all features alone. */
static double run_scores(bench *b)
{
    const double begin = clock_now();
    for (int i = 0; i < b->o.layers; i++) {
        const op_linear part = {.w = &b->walk[i].gate, .fn = KERN_FN_NONE, .y = b->scores};
        if (b->ops->linear(&b->s, b->x, &part, 1) != LATH_OK) die(b->err.msg);
    }
    return clock_now() - begin;
}

static int rising(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof(*v), rising);
    return v[n / 2];
}

typedef struct column {
    const char *name;
    ffn *f; /* NULL: scores */
    double bytes;
    double ratio[MAX_ROUNDS], share[MAX_ROUNDS];
} column;

static void measure(bench *b, column *c, int n)
{
    static double ms[MAX_ROUNDS];
    const size_t part = b->all / 64 * 64 < (size_t)400 << 20 ? b->all / 64 * 64 : (size_t)400 << 20;
    for (int r = 0; r < b->o.rounds; r++) {
        pool_leave(b->s.pool);
        const double before = roofline_read(b->o.threads, b->bytes, part);
        pool_enter(b->s.pool);
        const double dense = run(b, &b->dense.base);
        ms[r] = 1e3 * dense / b->o.layers;
        for (int i = 0; i < n; i++) {
            const double t = c[i].f ? run(b, c[i].f) : run_scores(b);
            c[i].ratio[r] = t / dense;
            c[i].share[r] = c[i].bytes * b->o.layers / t / before;
        }
    }
    printf("%s: dense %.2f ms a layer (median of %d rounds)\n", dtype_name(b->o.type), median(ms, b->o.rounds),
           b->o.rounds);
    for (int i = 0; i < n; i++)
        printf("%-24s %5.1f %% of the dense time, %5.1f %% of the read bandwidth\n", c[i].name,
               100 * median(c[i].ratio, b->o.rounds), 100 * median(c[i].share, b->o.rounds));
}

static dtype type_of(const char *name)
{
    for (int t = 0; t < DTYPE_COUNT; t++)
        if (dtype_is_weight((dtype)t) && strcasecmp(dtype_name((dtype)t), name) == 0) return (dtype)t;
    die("no such type");
    return DTYPE_F32;
}

static options parse(int argc, char **argv)
{
    options o = {.isa = "avx512",
                 .threads = 2,
                 .rounds = 9,
                 .layers = 6,
                 .d = 2560,
                 .features = 10240,
                 .k = 0,
                 .tokens = 1,
                 .type = DTYPE_F16};
    o.gate_type = DTYPE_COUNT;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *v = argv[i + 1];
        if (strcmp(name, "--isa") == 0)
            o.isa = v;
        else if (strcmp(name, "--threads") == 0)
            o.threads = atoi(v);
        else if (strcmp(name, "--rounds") == 0)
            o.rounds = atoi(v);
        else if (strcmp(name, "--layers") == 0)
            o.layers = atoi(v);
        else if (strcmp(name, "--d") == 0)
            o.d = atoi(v);
        else if (strcmp(name, "--features") == 0)
            o.features = atoi(v);
        else if (strcmp(name, "--k") == 0)
            o.k = atoi(v);
        else if (strcmp(name, "--tokens") == 0)
            o.tokens = atoi(v);
        else if (strcmp(name, "--type") == 0)
            o.type = type_of(v);
        else if (strcmp(name, "--gate") == 0)
            o.gate_type = type_of(v);
        else
            die("unknown option");
    }
    if (o.gate_type == DTYPE_COUNT) o.gate_type = o.type;
    if (o.k == 0) o.k = o.features / 8;
    if (o.rounds < 1 || o.rounds > MAX_ROUNDS || o.layers < 1 || o.layers > MAX_LAYERS || o.threads < 1)
        die("out of range");
    return o;
}

int main(int argc, char **argv)
{
    static bench b;
    static column c[5];
    int isa = 0;
    b.o = parse(argc, argv);
    while (isa < KERN_ISA_COUNT && strcmp(kern_isa_name((kern_isa)isa), b.o.isa) != 0) isa++;
    kern_table_init(&b.kern, (kern_isa)isa);
    make_layers(&b);
    b.ops = b.o.tokens > BACKEND_ROWS_MOST ? backend_cpu() : backend_cpu_rows();
    b.s = (stream){.ops = b.ops,
                   .kern = &b.kern,
                   .err = &b.err,
                   .integer = dtype_is_block(b.o.type) || dtype_is_block(b.o.gate_type)};
    b.s.limits = (op_limits){.n_tok = b.o.tokens, .n_keys = 16, .head_dim = 16, .d = b.o.features * 2};
    if (pool_create(alloc_default(), b.o.threads, &b.s.pool, &b.err) != LATH_OK) die(b.err.msg);
    b.s.scratch = block(b.ops->scratch_floats(&b.s, &b.s.limits) * sizeof(float));
    b.f = (fwd){.s = &b.s};
    ffn *all = open_walk(&b, 0, NULL), *own = open_walk(&b, 0, &b.dense.base), *top = open_walk(&b, b.o.k, NULL);
    const size_t wide = b.ops->view_floats(b.o.tokens, b.o.features), narrow = b.ops->view_floats(b.o.tokens, b.o.d);
    const size_t memory = ffn_memory_floats(all, b.ops, b.o.tokens) + ffn_memory_floats(top, b.ops, b.o.tokens);
    float *p = block((wide + 2 * narrow) * sizeof(float));
    memset(p, 0, (wide + 2 * narrow) * sizeof(float));
    b.x = b.ops->make_view(p, b.o.tokens, b.o.d);
    b.y = b.ops->make_view(p + narrow, b.o.tokens, b.o.d);
    b.scores = b.ops->make_view(p + 2 * narrow, b.o.tokens, b.o.features);
    for (size_t i = 0; i < narrow; i++) p[i] = (float)((i * 2654435761u) % 1000) / 1000 - 0.5f;
    b.memory = block(memory * sizeof(float));
    memset(b.memory, 0, memory * sizeof(float));
    const double m = (double)b.matrix, g = (double)b.gate_bytes,
                 part = (double)b.o.k / (double)b.o.features * (double)b.o.tokens;
    c[0] = (column){.name = "scores of all features", .bytes = g};
    c[1] = (column){.name = "walk:all, feature rows", .f = all, .bytes = g + m + m * (double)b.o.tokens};
    c[2] = (column){.name = "walk:all, model's down", .f = own, .bytes = g + 2 * m};
    c[3] = (column){.name = "walk:top", .f = top, .bytes = g + 2 * m * part};
    c[4] = (column){.name = "dense again", .f = &b.dense.base, .bytes = 3 * m};
    printf("%lld x %lld, %lld token(s), %d thread(s), %s, gate %s, k = %lld\n", (long long)b.o.features,
           (long long)b.o.d, (long long)b.o.tokens, b.o.threads, b.kern.isa, dtype_name(b.o.gate_type),
           (long long)b.o.k);
    pool_enter(b.s.pool);
    measure(&b, c, 5);
    pool_leave(b.s.pool);
    return 0;
}
