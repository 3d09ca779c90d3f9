/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_kern.c: one thread's kernels against this core's FMA peak, measured in the same run.
 *
 *     bench_kern [isa] [slices] [linear|gelu|f16|prefill|prefill_int|attention|attention_row|norm|delta|delta_row|conv]
 *
 * Shared hosts change speed within seconds, so slices of the peak loop and of the kernel alternate, a few
 * milliseconds each, and each slice of the kernel is divided by the mean of its two neighbours: "% of peak" is the
 * median (and best) of these ratios. Weights walk through a ring of 96 MiB, as the layers of a model do: every pass
 * finds them cold, in L3 or DRAM. What memory bounds (attention_row, delta_row) is held against reading from such a ring instead. Time is the thread's CPU time: turns that other programs take are not counted, what
 * they do to the caches is. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kern/kern.h"
#include "roofline.h"

enum { RING_BYTES = 96 << 20, MAX_SLICES = 1001 };

/* CPU seconds of this thread. */
static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The peak loop of the kernels' ISA. */
static roofline_fma_fn peak;

/* Flops (or bytes) a second of a loop over about `seconds`. */
static double peak_slice(roofline_fma_fn loop, double seconds)
{
    const double t0 = cpu_now();
    double flops = 0, t;
    do {
        flops += loop();
        t = cpu_now() - t0;
    } while (t < seconds);
    return flops / t;
}

static float *floats(size_t n)
{
    float *p = aligned_alloc(64, (n * sizeof(float) + 127) / 64 * 64);
    if (!p) {
        fprintf(stderr, "bench_kern: out of memory\n");
        exit(1);
    }
    uint64_t s = n;
    for (size_t i = 0; i < n; i++) {
        s = s * 6364136223846793005u + 1442695040888963407u;
        p[i] = (float)(int32_t)(s >> 40) * 0x1p-24f - 0.5f;
    }
    return p;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What is measured: one call does `flops` flops on `tokens` tokens. read: it moves so many bytes instead, and this reads. */
typedef struct job {
    void (*call)(void *ctx, int64_t i);
    void *ctx;
    double flops, tokens;
    roofline_fma_fn read;
} job;

static void measure(const char *name, const job *j, int slices)
{
    static double ratio[MAX_SLICES], rate[MAX_SLICES], peaks[MAX_SLICES];
    int64_t i = 0;
    const roofline_fma_fn loop = j->read ? j->read : peak;
    double before = peak_slice(loop, 0.001);
    for (int s = 0; s < slices; s++) {
        int64_t calls = 0;
        const double t0 = cpu_now();
        double t;
        do {
            j->call(j->ctx, i++);
            calls++;
            t = cpu_now() - t0;
        } while (t < 0.003);
        const double after = peak_slice(loop, 0.001);
        rate[s] = (double)calls / t, peaks[s] = after;
        ratio[s] = rate[s] * j->flops / ((before + after) / 2);
        before = after;
    }
    qsort(ratio, (size_t)slices, sizeof(double), by_value);
    qsort(rate, (size_t)slices, sizeof(double), by_value);
    qsort(peaks, (size_t)slices, sizeof(double), by_value);
    const int m = slices / 2, last = slices - 1;
    printf("%-34s %6.1f %s (best %6.1f) of %6.1f: %5.1f %% (best %5.1f)  %9.0f tokens/s\n", name,
           rate[m] * j->flops / 1e9, j->read ? "GB/s" : "Gflop/s", rate[last] * j->flops / 1e9, peaks[m] / 1e9,
           100 * ratio[m], 100 * ratio[last], rate[m] * j->tokens);
    fflush(stdout);
}

/* ------------------------------------------------------------------------------ linear */

typedef struct linear_ctx {
    const kern_table *t;
    kern_linear_args a;
    const unsigned char *ring;
    size_t matrix, n_ring; /* bytes of one, how many */
} linear_ctx;

static void linear_call(void *ctx, int64_t i)
{
    linear_ctx *c = ctx;
    c->a.w = c->ring + (size_t)i % c->n_ring * c->matrix;
    c->t->linear(&c->a);
}

/* Any bits, but what may be a binary16, as a number or as the scale of a block, is a small normal one. */
static void fill_halves(float *ring)
{
    uint64_t s = 1;
    for (size_t i = 0; i < RING_BYTES / 8; i++) {
        s = s * 6364136223846793005u + 1442695040888963407u;
        const uint64_t v = ((s ^ s >> 33) & 0x9fff9fff9fff9fffu) | 0x0400040004000400u;
        memcpy(ring + 2 * i, &v, 8);
    }
}

typedef struct linear_shapes {
    int n_shapes, n_tokens;
    int64_t nk[7][2], tokens[6];
} linear_shapes;
static const linear_shapes encoder = {
    7,
    6,
    {{384, 384}, {1152, 384}, {1536, 384}, {384, 1536}, {768, 768}, {3072, 768}, {768, 3072}},
    {8, 16, 32, 64, 128, 512}};
static const linear_shapes decoder = {3, 2, {{1024, 1024}, {3072, 1024}, {640, 2048}}, {64, 512}};

static void bench_linear(const kern_table *t, int slices, const linear_shapes *shapes, dtype type, kern_fn fn,
                         bool integers)
{
    float *ring = floats(RING_BYTES / 4), *scratch = floats(t->linear_scratch + 16), *bias = floats(3072);
    float *x = floats(512 * 3072), *y = floats(512 * 3072), *xq = floats(512 * 3072);
    if (type != DTYPE_F32) fill_halves(ring); /* random bits are no halves */
    for (int s = 0; s < shapes->n_shapes; s++) {
        for (int m = 0; m < shapes->n_tokens; m++) {
            const int64_t n = shapes->nk[s][0], k = shapes->nk[s][1], tokens = shapes->tokens[m],
                          panels = (tokens + 15) / 16;
            linear_ctx c = {.t = t, .ring = (const unsigned char *)ring, .matrix = (size_t)n * dtype_bytes(type, k)};
            c.n_ring = RING_BYTES / c.matrix;
            c.a = (kern_linear_args){.type = type,
                                     .w_stride = (int64_t)dtype_bytes(type, k),
                                     .bias = bias,
                                     .x = x,
                                     .x_stride = k * 16,
                                     .y = y,
                                     .y_stride = n * 16,
                                     .k = k,
                                     .n1 = n,
                                     .p1 = panels,
                                     .fn = fn,
                                     .scratch = scratch,
                                     .last_lanes = (int32_t)(tokens - (panels - 1) * 16)};
            const double flops = 2.0 * (double)(n * k * tokens);
            char name[80];
            if (integers) {
                c.a.xq = xq, c.a.xq_stride = (int64_t)kern_xq_panel_bytes(type, k);
                for (int64_t p = 0; p < panels; p++)
                    t->quantize_panel(type, k, x + p * k * 16, (unsigned char *)xq + p * c.a.xq_stride);
            }
            snprintf(name, sizeof(name), "linear %s%s %dx%d M=%d", dtype_name(type),
                     integers ? " int"
                     : fn     ? " gelu"
                              : "",
                     (int)n, (int)k, (int)tokens);
            measure(name, &(job){linear_call, &c, flops, (double)tokens, NULL}, slices);
        }
    }
    free(ring), free(scratch), free(bias), free(x), free(y), free(xq);
}

/* ------------------------------------------------------------------------------ attention, norm */

/* The next MiB of a ring of its own, as four streams. */
static float *read_ring;
static double read_some(void)
{
    static size_t at;
    enum { BYTES = 1 << 20 };
    roofline_read_streams((const unsigned char *)read_ring + at, BYTES / 4);
    at = (at + BYTES) % RING_BYTES;
    return BYTES;
}

typedef struct attention_ctx {
    const kern_table *t;
    kern_attention_args a;
    const float *qkv;
    float *out;
    int64_t heads, panels, d;
} attention_ctx;

static void attention_call(void *ctx, int64_t i)
{
    attention_ctx *c = ctx;
    (void)i;
    for (int64_t h = 0; h < c->heads; h++) {
        for (int64_t p = 0; p < c->panels; p++) {
            c->a.q = c->qkv + p * c->a.kv_stride + h * c->a.head_dim * 16;
            c->a.k = c->qkv + (c->d + h * c->a.head_dim) * 16;
            c->a.v = c->qkv + (2 * c->d + h * c->a.head_dim) * 16;
            c->a.out = c->out + (p * c->d + h * c->a.head_dim) * 16;
            c->t->attention(&c->a);
        }
    }
}

static void bench_attention(const kern_table *t, int slices)
{
    static const int64_t shapes[][2] = {{12, 32}, {12, 64}};
    static const int32_t tokens[] = {16, 32, 128, 512};
    for (size_t s = 0; s < 2; s++) {
        for (size_t m = 0; m < sizeof(tokens) / sizeof(tokens[0]); m++) {
            int32_t begin[16] = {0}, end[16];
            const int64_t heads = shapes[s][0], hd = shapes[s][1], d = heads * hd, n = tokens[m];
            float *qkv = floats((size_t)(3 * d * n)), *out = floats((size_t)(d * n)),
                  *scratch = floats((size_t)(16 * n));
            for (int i = 0; i < 16; i++) end[i] = tokens[m];
            attention_ctx c = {t,
                               {.kv_stride = 3 * d * 16,
                                .head_dim = hd,
                                .begin = begin,
                                .end = end,
                                .lanes = 16,
                                .scale = 0.125f,
                                .scratch = scratch},
                               qkv,
                               out,
                               heads,
                               n / 16,
                               d};
            char name[80];
            snprintf(name, sizeof(name), "attention %d heads of %d, L=%d", (int)heads, (int)hd, (int)n);
            measure(name, &(job){attention_call, &c, 4.0 * (double)(n * n * d), (double)n, NULL}, slices);
            free(qkv), free(out), free(scratch);
        }
    }
}

/* One token behind so many keys: the heads that share them, keys and values as halves. */
typedef struct attention_row_ctx {
    const kern_table *t;
    kern_attention_row_args a;
    const uint16_t *ring;
    int64_t places; /* in the ring */
} attention_row_ctx;

static void attention_row_call(void *ctx, int64_t i)
{
    attention_row_ctx *c = ctx;
    const int64_t numbers = c->a.end * c->a.head_dim;
    c->a.k = c->ring + 2 * numbers * (i % c->places), c->a.v = (const uint16_t *)c->a.k + numbers;
    c->t->attention_row(&c->a);
}

static void bench_attention_row(const kern_table *t, int slices)
{
    enum { HD = 256, NUMBERS = RING_BYTES / 2 };
    static const int64_t keys[] = {128, 1024, 8192, 32768};
    float *q = floats(KERN_ATTENTION_ROW_HEADS * HD), *out = floats(KERN_ATTENTION_ROW_HEADS * HD),
          *some = floats(1 << 16);
    uint16_t *ring = aligned_alloc(64, RING_BYTES);
    if (!ring) exit(1);
    for (size_t i = 0; i < NUMBERS; i += 1 << 16) t->to_half(1 << 16, some, ring + i);
    read_ring = floats(RING_BYTES / 4);
    for (int32_t n_q = 1; n_q <= KERN_ATTENTION_ROW_HEADS; n_q *= 2) {
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
            float *scratch = floats(kern_attention_row_floats(keys[i], HD));
            attention_row_ctx c = {t,
                                   {.q = q,
                                    .q_stride = HD,
                                    .kv_stride = HD * KERN_LANES,
                                    .head_dim = HD,
                                    .n_q = n_q,
                                    .half = true,
                                    .end = keys[i],
                                    .scale = 1.0f / 16,
                                    .out = out,
                                    .out_stride = HD,
                                    .scratch = scratch},
                                   ring,
                                   NUMBERS / (2 * HD * keys[i])};
            char name[80];
            snprintf(name, sizeof(name), "attention_row, %d of %d, %d keys", (int)n_q, HD, (int)keys[i]);
            measure(name, &(job){attention_row_call, &c, 4.0 * (double)(HD * keys[i]), 1, read_some}, slices);
            free(scratch);
        }
    }
    free(q), free(out), free(some), free(ring), free(read_ring);
}

typedef struct norm_ctx {
    const kern_table *t;
    kern_norm_args a;
} norm_ctx;

static void norm_call(void *ctx, int64_t i)
{
    norm_ctx *c = ctx;
    (void)i;
    c->t->layer_norm(&c->a);
}

static void bench_norm(const kern_table *t, int slices)
{
    for (int64_t d = 384; d <= 768; d += 384) {
        const int64_t n = 128;
        float *x = floats((size_t)(n * d)), *r = floats((size_t)(n * d)), *y = floats((size_t)(n * d)),
              *g = floats((size_t)d);
        norm_ctx c = {t, {x, r, g, g, y, NULL, d * 16, d * 16, d * 16, d, 1, 0, n / 16, 16, 1e-12f}};
        char name[80];
        snprintf(name, sizeof(name), "layer_norm(x + r) d=%d, 128 tokens", (int)d);
        measure(name, &(job){norm_call, &c, 8.0 * (double)(n * d), (double)n, NULL}, slices);
        free(x), free(r), free(y), free(g);
    }
}

/* ------------------------------------------------------------------------------ the gated delta net */

enum { DELTA_D = 128, DELTA_STATE = DELTA_D * DELTA_D, DELTA_CHUNKS = 32 };

typedef struct delta_ctx {
    const kern_table *t;
    kern_delta_args a;
    kern_delta_row_args row;
    float *ring;
    int64_t heads; /* states in the ring */
} delta_ctx;

/* One chunk of 16 tokens: 512 tokens of a head, then the next head. */
static void delta_call(void *ctx, int64_t i)
{
    delta_ctx *c = ctx;
    c->a.state = c->ring + i / DELTA_CHUNKS % c->heads * DELTA_STATE;
    c->t->delta(&c->a);
}

static void delta_row_call(void *ctx, int64_t i)
{
    delta_ctx *c = ctx;
    c->row.state = c->ring + i % c->heads * DELTA_STATE;
    c->t->delta_row(&c->row);
}

static void bench_delta(const kern_table *t, int slices, bool single)
{
    static const int64_t tokens[] = {16, 8, 1};
    float *q = floats(DELTA_D * 16), *k = floats(DELTA_D * 16), *v = floats(DELTA_D * 16), *y = floats(DELTA_D * 16),
          *scratch = floats(kern_delta_scratch(DELTA_D, DELTA_D)), g[16], beta[16];
    delta_ctx c = {.t = t, .ring = floats(RING_BYTES / 4)};
    read_ring = floats(RING_BYTES / 4);
    for (int i = 0; i < DELTA_D * 16; i++) k[i] *= 0.25f; /* a norm below 1 */
    for (int i = 0; i < 16; i++) g[i] = -0.01f, beta[i] = 0.5f;
    c.a = (kern_delta_args){DELTA_D, DELTA_D, 16, q, k, v, g, beta, NULL, y, scratch};
    c.row = (kern_delta_row_args){DELTA_D, DELTA_D, q, k, v, g[0], beta[0], NULL, y, scratch};
    for (size_t i = 0; !single && i < sizeof(tokens) / sizeof(tokens[0]); i++) {
        char name[80];
        c.a.n = tokens[i], c.heads = RING_BYTES / 4 / DELTA_STATE;
        snprintf(name, sizeof(name), "delta %dx%d, n=%d", DELTA_D, DELTA_D, (int)c.a.n);
        /* the three products with S; those of tokens with tokens are not counted */
        measure(name, &(job){delta_call, &c, 6.0 * (double)(DELTA_STATE * c.a.n), (double)c.a.n, NULL}, slices);
    }
    static const int64_t heads[] = {RING_BYTES / 4 / DELTA_STATE, 288, 16, 1}; /* 288: 18 layers of 16 */
    for (size_t i = 0; single && i < sizeof(heads) / sizeof(heads[0]); i++) {
        char name[80];
        c.heads = heads[i];
        snprintf(name, sizeof(name), "delta_row, %d states of 64 KiB", (int)c.heads);
        /* S comes and goes back */
        measure(name, &(job){delta_row_call, &c, 8.0 * DELTA_STATE, 1.0 / 288, read_some}, slices);
    }
    free(q), free(k), free(v), free(y), free(scratch), free(c.ring), free(read_ring);
}

typedef struct conv_ctx {
    const kern_table *t;
    kern_conv_args a;
    kern_conv_row_args row;
} conv_ctx;

static void conv_call(void *ctx, int64_t i)
{
    conv_ctx *c = ctx;
    (void)i;
    c->t->conv(&c->a);
}

static void conv_row_call(void *ctx, int64_t i)
{
    conv_ctx *c = ctx;
    (void)i;
    c->t->conv_row(&c->row);
}

static void bench_conv(const kern_table *t, int slices)
{
    enum { D = 6144, WIDTH = 4 };
    float *w = floats(D * WIDTH), *x = floats(D * 32), *y = floats(D * 16), *state = floats(D * WIDTH);
    int32_t have[16];
    for (int i = 0; i < 16; i++) have[i] = WIDTH;
    conv_ctx c = {t, {D, WIDTH, w, x + D * 16, x + 16 - (WIDTH - 1), 16, 1, have, y}, {D, WIDTH, w, x, state, y}};
    /* multiply-adds only: SiLU takes most of the time */
    measure("conv of 4 taps, d=6144, 16 tokens", &(job){conv_call, &c, 2.0 * WIDTH * D * 16, 16, NULL}, slices);
    measure("conv_row of 4 taps, d=6144", &(job){conv_row_call, &c, 2.0 * WIDTH * D, 1, NULL}, slices);
    free(w), free(x), free(y), free(state);
}

static bool asked(const char *only, const char *name) { return !*only || strcmp(only, name) == 0; }

int main(int argc, char **argv)
{
    kern_isa ceiling = (kern_isa)(KERN_ISA_COUNT - 1);
    for (int i = 0; argc > 1 && i < KERN_ISA_COUNT; i++)
        if (strcmp(argv[1], kern_isa_name((kern_isa)i)) == 0) ceiling = (kern_isa)i;
    int slices = argc > 2 ? atoi(argv[2]) : 21;
    if (slices < 1 || slices > MAX_SLICES) slices = 21;
    const char *only = argc > 3 ? argv[3] : "";
    kern_table t;
    kern_table_init(&t, ceiling);
#if defined(__x86_64__)
    peak = roofline_fma_loop(t.isa);
#endif
    printf("isa %s, one thread, FMA peak %.1f Gflop/s now, %d slices\n", t.isa, peak_slice(peak, 0.1) / 1e9, slices);
    if (asked(only, "linear")) bench_linear(&t, slices, &encoder, DTYPE_F32, KERN_FN_NONE, false);
    if (asked(only, "gelu")) bench_linear(&t, slices, &encoder, DTYPE_F32, KERN_FN_GELU, false);
    if (asked(only, "f16")) bench_linear(&t, slices, &encoder, DTYPE_F16, KERN_FN_NONE, false);
    static const dtype stored[] = {DTYPE_F32, DTYPE_F16, DTYPE_Q8_0, DTYPE_Q4_0, DTYPE_Q4_K, DTYPE_Q6_K};
    for (size_t i = 0; i < sizeof(stored) / sizeof(stored[0]); i++)
        if (asked(only, "prefill")) bench_linear(&t, slices, &decoder, stored[i], KERN_FN_NONE, false);
    for (size_t i = 2; i < sizeof(stored) / sizeof(stored[0]); i++)
        if (asked(only, "prefill_int")) bench_linear(&t, slices, &decoder, stored[i], KERN_FN_NONE, true);
    if (asked(only, "attention")) bench_attention(&t, slices);
    if (asked(only, "attention_row")) bench_attention_row(&t, slices);
    if (asked(only, "norm")) bench_norm(&t, slices);
    if (asked(only, "delta")) bench_delta(&t, slices, false);
    if (asked(only, "delta_row")) bench_delta(&t, slices, true);
    if (asked(only, "conv")) bench_conv(&t, slices);
    return 0;
}
