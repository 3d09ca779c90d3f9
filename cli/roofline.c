/* SPDX-License-Identifier: Apache-2.0
 *
 * roofline.c: see roofline.h. Ten independent chains keep two units of a latency of four or five cycles busy; they are written
 * as instructions, because compilers may not contract a product and a sum (-ffp-contract=off). A core reads fastest as a
 * few long streams.
 */
#include "roofline.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"

enum { FMA_ROUNDS = 16000, CHAINS = 10 };

/* ---------------------------------------------------------------------------------------------------- multiply-adds */

/* r = r a + b or r + a b in every lane: numbers that neither grow fast nor become subnormal. */
#if defined(__x86_64__)
#define FMA(r) __asm__ volatile("vfmadd213ps %2, %1, %0" : "+v"(r) : "v"(a), "v"(b))
#elif defined(__aarch64__)
#define FMA(r) __asm__ volatile("fmla %0.4s, %1.4s, %2.4s" : "+w"(r) : "w"(a), "w"(b))
#endif

/* CHAINS chains of vectors of `lanes` numbers. */
#define FMA_LOOP(name, lanes, attributes)                                                            \
    typedef float name##_lanes __attribute__((vector_size(4 * (lanes))));                            \
    attributes static double name(void)                                                              \
    {                                                                                                \
        const name##_lanes a = (name##_lanes){0} + 0.999f, b = (name##_lanes){0} + 0.001f;           \
        name##_lanes r0 = a, r1 = a, r2 = a, r3 = a, r4 = a, r5 = a, r6 = a, r7 = a, r8 = a, r9 = a; \
        for (int i = 0; i < FMA_ROUNDS; i++) {                                                       \
            FMA(r0);                                                                                 \
            FMA(r1);                                                                                 \
            FMA(r2);                                                                                 \
            FMA(r3);                                                                                 \
            FMA(r4);                                                                                 \
            FMA(r5);                                                                                 \
            FMA(r6);                                                                                 \
            FMA(r7);                                                                                 \
            FMA(r8);                                                                                 \
            FMA(r9);                                                                                 \
        }                                                                                            \
        return 2.0 * (lanes)*CHAINS * FMA_ROUNDS;                                                    \
    }
#if defined(__x86_64__)
FMA_LOOP(fma_256, 8, __attribute__((target("avx2,fma"))))
FMA_LOOP(fma_512, 16, __attribute__((target("avx512f"))))
#elif defined(__aarch64__)
FMA_LOOP(fma_128, 4, )
#endif

/* What every machine can: a product and a sum, as the compiler makes them. */
static double fma_plain(void)
{
    enum { LANES = 64 };
    float r[LANES];
    for (int j = 0; j < LANES; j++) r[j] = 1.0f;
    for (int i = 0; i < FMA_ROUNDS; i++) {
        for (int j = 0; j < LANES; j++) r[j] = r[j] * 0.999f + 0.001f;
    }
    __asm__ volatile("" ::"m"(r));
    return 2.0 * LANES * FMA_ROUNDS;
}

roofline_fma_fn roofline_fma_loop(const char *isa)
{
    if (strcmp(isa, "ref") == 0) return fma_plain;
#if defined(__x86_64__)
    const bool wide = strcmp(isa, "avx512") == 0 || strcmp(isa, "amx") == 0;
    if (wide && __builtin_cpu_supports("avx512f")) return fma_512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return fma_256;
#elif defined(__aarch64__)
    return fma_128;
#endif
    return fma_plain;
}

/* ----------------------------------------------------------------------------------------------------------- reading */

typedef uint64_t lanes_u64 __attribute__((vector_size(32), aligned(1), may_alias));

void roofline_read_streams(const void *p, size_t n)
{
    const char *at = p;
    lanes_u64 a = {0}, b = a, c = a, d = a;
    for (size_t i = 0; i + sizeof(a) <= n; i += sizeof(a)) {
        a ^= *(const lanes_u64 *)(const void *)(at + i);
        b ^= *(const lanes_u64 *)(const void *)(at + n + i);
        c ^= *(const lanes_u64 *)(const void *)(at + 2 * n + i);
        d ^= *(const lanes_u64 *)(const void *)(at + 3 * n + i);
    }
    a ^= b ^ c ^ d;
    __asm__ volatile("" ::"m"(a));
}

/* ----------------------------------------------------------------------------------------------------------- threads */

/* What one thread does. All wait at the gate, a mutex that the caller holds, until every thread is there. */
typedef struct part {
    pthread_mutex_t *gate;
    const bool *off;      /* behind the gate: nothing is to be done */
    roofline_fma_fn loop; /* NULL: reads */
    double seconds;
    const char *data;
    size_t bytes;
    double done, t0, t1; /* flops or bytes, from when to when */
} part;

static void work(part *p)
{
    p->t0 = p->t1 = clock_now();
    if (p->loop) {
        for (; p->t1 - p->t0 < p->seconds; p->t1 = clock_now()) p->done += p->loop();
        return;
    }
    roofline_read_streams(p->data, p->bytes / 4);
    p->done = (double)(p->bytes / 4 * 4);
    p->t1 = clock_now();
}

static void *run_part(void *arg)
{
    part *p = arg;
    pthread_mutex_lock(p->gate);
    pthread_mutex_unlock(p->gate);
    if (!*p->off) work(p);
    return NULL;
}

/* All parts at once, the first on this thread; what they did a second, from the first beginning to the last end. */
static double run_parts(part *parts, int32_t n)
{
    pthread_t threads[ROOFLINE_MAX_THREADS];
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    bool off = false;
    int32_t started = 1;
    pthread_mutex_lock(&gate);
    for (int32_t i = 0; i < n; i++) parts[i].gate = &gate, parts[i].off = &off;
    while (started < n && pthread_create(&threads[started], NULL, run_part, &parts[started]) == 0) started++;
    off = started < n;
    pthread_mutex_unlock(&gate);
    if (!off) work(&parts[0]);
    for (int32_t i = 1; i < started; i++) pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&gate);
    if (off) return 0;
    double done = 0, first = parts[0].t0, last = parts[0].t1;
    for (int32_t i = 0; i < n; i++) {
        done += parts[i].done;
        first = parts[i].t0 < first ? parts[i].t0 : first;
        last = parts[i].t1 > last ? parts[i].t1 : last;
    }
    return done / (last - first);
}

double roofline_fma(int32_t n_threads, roofline_fma_fn loop, double seconds)
{
    part parts[ROOFLINE_MAX_THREADS];
    if (n_threads < 1 || n_threads > ROOFLINE_MAX_THREADS) return 0;
    for (int32_t i = 0; i < n_threads; i++) parts[i] = (part){.loop = loop, .seconds = seconds};
    return run_parts(parts, n_threads);
}

double roofline_read(int32_t n_threads, const void *buffer, size_t bytes)
{
    part parts[ROOFLINE_MAX_THREADS];
    if (n_threads < 1 || n_threads > ROOFLINE_MAX_THREADS) return 0;
    const size_t share = bytes / (size_t)n_threads / 256 * 256;
    for (int32_t i = 0; i < n_threads; i++)
        parts[i] = (part){.data = (const char *)buffer + (size_t)i * share, .bytes = share};
    return run_parts(parts, n_threads);
}
