/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_gemv.c: products of single tokens (gemv) against the read bandwidth of as many threads over the same bytes, measured in the same seconds.
 *
 *     bench_gemv [--isa NAME] [--threads N] [--rounds N] [--type NAME] [--rows N] [--k N] [--n-x N] [--mb N]
 *
 * A ring of matrices, larger than the caches, is read once a slice, as the layers of a model are for a token; each thread has its share of the rows
 * of every matrix. Slices of plain reading (four long streams a thread) and of the kernel alternate, and each slice of the kernel is divided by
 * the mean of its neighbours. --mb 1 (and few --rows) shows what the instructions take when memory does not. "int": with activations in 8 bits, "f32": with floats. Time is wall time: run it with priority (chrt -f 20).
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kern/kern.h"
#include "roofline.h"

enum { MAX_THREADS = 64, MAX_ROUNDS = 301 };

typedef struct bench {
    kern_table t;
    unsigned char *ring;
    size_t ring_bytes, matrix, n_ring; /* bytes of a matrix, how many */
    int repeats;                       /* of the ring in a slice */
    kern_gemv_args a;
    int threads;
    bool reading, stop;
    pthread_barrier_t begin, end;
    double seconds[MAX_THREADS];
} bench;

typedef struct worker {
    bench *b;
    int id;
} worker;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void slice(bench *b, int id)
{
    const size_t share = b->matrix * b->n_ring / (size_t)b->threads;
    if (b->reading) {
        for (int r = 0; r < b->repeats; r++) roofline_read_streams(b->ring + (size_t)id * share, share / 4);
        return;
    }
    kern_gemv_args a = b->a;
    const int64_t rows = a.n1;
    a.n0 = rows * id / b->threads, a.n1 = rows * (id + 1) / b->threads;
    for (size_t i = 0; i < b->n_ring * (size_t)b->repeats; i++) {
        a.w = b->ring + i % b->n_ring * b->matrix;
        b->t.gemv(&a);
    }
}

static void *run(void *arg)
{
    const worker *w = arg;
    bench *b = w->b;
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET((size_t)w->id, &cpu);
    sched_setaffinity(0, sizeof(cpu), &cpu);
    for (;;) {
        pthread_barrier_wait(&b->begin);
        if (b->stop) return NULL;
        const double t0 = now();
        slice(b, w->id);
        b->seconds[w->id] = now() - t0;
        pthread_barrier_wait(&b->end);
    }
}

/* GB/s of a slice. */
static double timed(bench *b, bool reading)
{
    double longest = 0;
    b->reading = reading;
    pthread_barrier_wait(&b->begin);
    pthread_barrier_wait(&b->end);
    for (int i = 0; i < b->threads; i++) longest = b->seconds[i] > longest ? b->seconds[i] : longest;
    return (double)(b->matrix * b->n_ring) * b->repeats / longest / 1e9;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(bench *b, bool integers, int rounds)
{
    static double rate[MAX_ROUNDS], ratio[MAX_ROUNDS], read[MAX_ROUNDS];
    double before = timed(b, true);
    timed(b, false);
    for (int i = 0; i < rounds; i++) {
        rate[i] = timed(b, false);
        read[i] = timed(b, true);
        ratio[i] = rate[i] / ((before + read[i]) / 2);
        before = read[i];
    }
    qsort(rate, (size_t)rounds, sizeof(double), by_value);
    qsort(ratio, (size_t)rounds, sizeof(double), by_value);
    qsort(read, (size_t)rounds, sizeof(double), by_value);
    const int m = rounds / 2;
    printf("gemv %-7s %s %dx%d n_x=%d: %6.1f GB/s (best %6.1f) of %6.1f: %4.0f %% (best %4.0f)  %6.2f Gweights/s\n",
           dtype_name(b->a.type), integers ? "int" : "f32", (int)b->a.n1, (int)b->a.k, b->a.n_x, rate[m],
           rate[rounds - 1], read[m], 100 * ratio[m], 100 * ratio[rounds - 1],
           rate[m] / (double)b->matrix * (double)(b->a.n1 * b->a.k));
    fflush(stdout);
}

static void *memory(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!p) {
        fprintf(stderr, "bench_gemv: out of memory\n");
        exit(1);
    }
    memset(p, 0, (bytes + 127) / 64 * 64);
    return p;
}

/* Any bits, but what may be a scale is a small normal number. */
static void fill(bench *b)
{
    uint64_t s = 1;
    for (size_t i = 0; i < b->ring_bytes; i += 8) {
        s = s * 6364136223846793005u + 1442695040888963407u;
        const uint64_t v = ((s ^ s >> 33) & 0x9fff9fff9fff9fffu) | 0x0400040004000400u;
        memcpy(b->ring + i, &v, 8);
    }
}

static void bench_type(bench *b, dtype type, int64_t rows, int64_t k, int rounds)
{
    kern_gemv_args *a = &b->a;
    float *x = memory((size_t)(k * a->n_x) * 4);
    for (int64_t i = 0; i < k * a->n_x; i++) x[i] = (float)(i * 37 % 255) / 127.0f - 1.0f;
    a->type = type, a->k = k, a->n1 = rows, a->y_stride = rows, a->x_stride = k;
    a->w_stride = (int64_t)dtype_bytes(type, k);
    a->xq_stride = (int64_t)kern_xq_bytes(type, k);
    a->y = memory((size_t)(rows * a->n_x) * 4);
    fill(b);
    for (size_t i = 0; type == DTYPE_MXFP4 && i < b->ring_bytes; i += dtype_block_bytes(type))
        b->ring[i] = 120; /* its scale is a byte: an exponent */
    b->matrix = (size_t)(a->w_stride * rows), b->n_ring = b->ring_bytes / b->matrix;
    if (a->xq_stride > 0) {
        unsigned char *xq = memory((size_t)(a->xq_stride * a->n_x));
        for (int32_t m = 0; m < a->n_x; m++) b->t.quantize_x(type, k, x + m * k, xq + m * a->xq_stride);
        a->xq = xq, a->x = NULL;
        measure(b, true, rounds);
        free(xq);
    }
    a->xq = NULL, a->x = x;
    measure(b, false, rounds);
    free(x), free(a->y);
}

int main(int argc, char **argv)
{
    static bench b;
    static worker workers[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    int rounds = 15;
    int64_t rows = 3072, k = 1024;
    const char *only = "";
    kern_isa ceiling = (kern_isa)(KERN_ISA_COUNT - 1);
    b.threads = 2, b.a.n_x = 1, b.ring_bytes = (size_t)192 << 20;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *o = argv[i], *v = argv[i + 1];
        if (strcmp(o, "--threads") == 0) b.threads = atoi(v);
        if (strcmp(o, "--rounds") == 0) rounds = atoi(v);
        if (strcmp(o, "--rows") == 0) rows = atoi(v);
        if (strcmp(o, "--k") == 0) k = atoi(v);
        if (strcmp(o, "--n-x") == 0) b.a.n_x = atoi(v);
        if (strcmp(o, "--type") == 0) only = v;
        if (strcmp(o, "--mb") == 0) b.ring_bytes = (size_t)atoi(v) << 20;
        for (int isa = 0; strcmp(o, "--isa") == 0 && isa < KERN_ISA_COUNT; isa++)
            if (strcmp(v, kern_isa_name((kern_isa)isa)) == 0) ceiling = (kern_isa)isa;
    }
    if (b.threads < 1 || b.threads > MAX_THREADS || rounds < 1 || rounds > MAX_ROUNDS || rows < 1 || k < 256 ||
        k % 256 || b.a.n_x < 1) {
        fprintf(stderr, "bench_gemv: k is a multiple of 256; at most %d threads and %d rounds\n", MAX_THREADS,
                MAX_ROUNDS);
        return 2;
    }
    b.repeats = (int)(((size_t)192 << 20) / (b.ring_bytes + 1)) + 1;
    kern_table_init(&b.t, ceiling);
    b.ring = memory(b.ring_bytes);
    pthread_barrier_init(&b.begin, NULL, (unsigned)b.threads + 1);
    pthread_barrier_init(&b.end, NULL, (unsigned)b.threads + 1);
    for (int i = 0; i < b.threads; i++) {
        workers[i] = (worker){&b, i};
        if (pthread_create(&threads[i], NULL, run, &workers[i]) != 0) return 1;
    }
    printf("isa %s, %d threads, %d rounds\n", b.t.isa, b.threads, rounds);
    for (int type = 0; type < DTYPE_COUNT; type++)
        if (dtype_is_weight((dtype)type) && (!*only || strcmp(only, dtype_name((dtype)type)) == 0))
            bench_type(&b, (dtype)type, rows, k, rounds);
    b.stop = true;
    pthread_barrier_wait(&b.begin);
    for (int i = 0; i < b.threads; i++) pthread_join(threads[i], NULL);
    return 0;
}
