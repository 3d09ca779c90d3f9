/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.c: spin-then-futex thread pool.
 *
 * The leader publishes a job: its fields, then `gate` (with release), which opens it. Workers join through the gate, claim tasks by fetch-add on
 * `next`, and leave. When no task is left the gate closes, and the leader waits for those inside only: a worker that never came costs nothing
 * but its share of the work. A worker without work spins inside a region (POOL_SPINS turns) and sleeps on the futex word `seq` otherwise; `seq`
 * changes with every job.
 */
#include "base/pool.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { POOL_SPINS = 4000, POOL_LINE = 64 };

/* `gate`: job number << 16 | closed << 15 | workers inside. A worker enters by adding 1 while the job that it saw is open; the leader closes it when all
 * tasks are claimed and waits until nobody is inside. */
struct pool {
    _Alignas(POOL_LINE) atomic_uint seq; /* futex word */
    atomic_int sleepers;
    _Alignas(POOL_LINE) atomic_uint_fast64_t gate;
    _Alignas(POOL_LINE) atomic_int_fast64_t next; /* next task to claim */
    _Alignas(POOL_LINE) pool_fn fn;
    void *ctx;
    int64_t n_tasks;
    uint64_t job;
    atomic_bool region, stop;
    pool_stop_fn ask; /* of the open region, or NULL */
    void *ask_ctx;
    bool stopped; /* the open region was; the leader's alone */
    int32_t n_threads, n_started;
    const lath_allocator *alloc;
    pthread_mutex_t lead;
    pthread_t *threads; /* [n_threads - 1] */
    struct worker {
        struct pool *pool;
        int32_t index;
    } * workers;
};

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#if defined(__linux__)
static void word_wait(atomic_uint *word, unsigned seen)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}
static void word_wake(atomic_uint *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0); }
#else
static void word_wait(atomic_uint *word, unsigned seen)
{
    if (atomic_load(word) == seen) sched_yield();
}
static void word_wake(atomic_uint *word) { (void)word; }
#endif

enum { GATE_CLOSED = 0x8000, GATE_COUNT = 0x7FFF, GATE_BITS = 16 };

static void run_tasks(pool *p, pool_fn fn, void *ctx, int64_t n, int32_t worker)
{
    int64_t t;
    while ((t = (int64_t)atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed)) < n) fn(ctx, t, worker);
}

/* The leader's share. Tasks that are not claimed when the region is stopped are claimed all at once, by nobody. */
static void lead_tasks(pool *p, pool_fn fn, void *ctx, int64_t n)
{
    if (!p->ask) {
        run_tasks(p, fn, ctx, n, 0);
        return;
    }
    /* Asked before a task is claimed: once in every job at least, even where others take all of its tasks. */
    for (;;) {
        if (p->ask(p->ask_ctx)) {
            p->stopped = true;
            atomic_store_explicit(&p->next, n, memory_order_relaxed);
            return;
        }
        const int64_t t = (int64_t)atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
        if (t >= n) return;
        fn(ctx, t, 0);
    }
}

/* Enters the open job, if there is one that this worker may still join; false otherwise. */
static bool try_join(pool *p, int32_t worker)
{
    uint64_t g = atomic_load_explicit(&p->gate, memory_order_acquire);
    do {
        if (g & GATE_CLOSED) return false;
    } while (!atomic_compare_exchange_weak_explicit(&p->gate, &g, g + 1, memory_order_acq_rel, memory_order_acquire));
    run_tasks(p, p->fn, p->ctx, p->n_tasks, worker);
    /* All tasks are claimed: nobody needs to join any more. */
    atomic_fetch_or_explicit(&p->gate, GATE_CLOSED, memory_order_acq_rel);
    atomic_fetch_sub_explicit(&p->gate, 1, memory_order_acq_rel);
    return true;
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    pool *p = w->pool;
    int spins = 0;
    while (!atomic_load_explicit(&p->stop, memory_order_acquire)) {
        unsigned seen = atomic_load_explicit(&p->seq, memory_order_acquire);
        if (try_join(p, w->index)) {
            spins = 0;
            continue;
        }
        if (atomic_load_explicit(&p->region, memory_order_relaxed) && spins++ < POOL_SPINS) {
            relax();
            continue;
        }
        atomic_fetch_add(&p->sleepers, 1);
        /* Looked at again after announcing: a job or stop published meanwhile has changed seq. */
        if (atomic_load(&p->seq) == seen && !atomic_load(&p->stop)) word_wait(&p->seq, seen);
        atomic_fetch_sub(&p->sleepers, 1);
        spins = 0;
    }
    return NULL;
}

static void raise_seq(pool *p)
{
    atomic_fetch_add(&p->seq, 1);
    if (atomic_load(&p->sleepers) > 0) word_wake(&p->seq);
}

lath_status pool_create(const lath_allocator *alloc, int32_t n_threads, pool **out, lath_error *err)
{
    pool *p = alloc_bytes(alloc, sizeof(*p), POOL_LINE);
    if (!p) return err_nomem(err, sizeof(*p));
    memset(p, 0, sizeof(*p));
    p->alloc = alloc;
    p->n_threads = n_threads;
    atomic_init(&p->gate, GATE_CLOSED);
    pthread_mutex_init(&p->lead, NULL);
    size_t n = (size_t)n_threads - 1;
    lath_status st = LATH_OK;
    if (n > 0) {
        p->threads = alloc_array(alloc, n, sizeof(*p->threads));
        p->workers = alloc_array(alloc, n, sizeof(*p->workers));
        if (!p->threads || !p->workers) st = err_nomem(err, n * sizeof(*p->threads));
    }
    for (size_t i = 0; st == LATH_OK && i < n; i++) {
        p->workers[i] = (struct worker){p, (int32_t)i + 1};
        int e = pthread_create(&p->threads[i], NULL, worker_main, &p->workers[i]);
        if (e != 0)
            st = err_os(err, LATH_ERR_LIMIT, e, "thread %zu of %d cannot be started", i + 1, n_threads);
        else
            p->n_started++;
    }
    if (st != LATH_OK)
        pool_destroy(p);
    else
        *out = p;
    return st;
}

void pool_destroy(pool *p)
{
    if (!p) return;
    atomic_store(&p->stop, true);
    raise_seq(p);
    for (int32_t i = 0; i < p->n_started; i++) pthread_join(p->threads[i], NULL);
    pthread_mutex_destroy(&p->lead);
    size_t n = (size_t)p->n_threads - 1;
    alloc_release(p->alloc, p->threads, n * sizeof(*p->threads));
    alloc_release(p->alloc, p->workers, n * sizeof(*p->workers));
    alloc_release(p->alloc, p, sizeof(*p));
}

int32_t pool_size(const pool *p) { return p->n_threads; }

void pool_enter(pool *p) { pool_enter_until(p, NULL, NULL); }

void pool_enter_until(pool *p, pool_stop_fn stop, void *ctx)
{
    pthread_mutex_lock(&p->lead);
    p->ask = stop;
    p->ask_ctx = ctx;
    p->stopped = false;
    atomic_store(&p->region, true);
    if (p->n_threads > 1) raise_seq(p);
}

void pool_leave(pool *p)
{
    atomic_store(&p->region, false);
    pthread_mutex_unlock(&p->lead);
}

bool pool_run(pool *p, pool_fn fn, void *ctx, int64_t n_tasks)
{
    if (p->stopped) return false;
    atomic_store_explicit(&p->next, 0, memory_order_relaxed);
    if (p->n_threads == 1 || n_tasks <= 1) { /* the gate is closed: the leader is alone */
        lead_tasks(p, fn, ctx, n_tasks);
        return !p->stopped;
    }
    p->fn = fn;
    p->ctx = ctx;
    p->n_tasks = n_tasks;
    p->job++;
    atomic_store_explicit(&p->gate, p->job << GATE_BITS, memory_order_release); /* opens */
    raise_seq(p);
    lead_tasks(p, fn, ctx, n_tasks);
    uint64_t g = atomic_fetch_or_explicit(&p->gate, GATE_CLOSED, memory_order_acq_rel);
    for (int spins = 0; (g & GATE_COUNT) != 0; spins++) {
        relax();
        if (spins > POOL_SPINS) { /* a worker was put off in mid-task: give it the processor */
            sched_yield();
            spins = 0;
        }
        g = atomic_load_explicit(&p->gate, memory_order_acquire);
    }
    return !p->stopped;
}
