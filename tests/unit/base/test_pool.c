/* SPDX-License-Identifier: Apache-2.0
 * test_pool.c: every task of every job is run exactly once, whatever the number of threads and tasks; jobs follow
 * each other without mixing; several leaders take turns; workers sleep between regions and come back; pools come
 * and go. Meant to be run under ThreadSanitizer as well: the plain (not atomic) writes of tasks must be ordered
 * before pool_run returns. */
#include "base/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <time.h>

#include "support/test.h"

#if defined(__SANITIZE_THREAD__)
#define SLOW 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLOW 1
#endif
#endif
#ifndef SLOW
#define SLOW 0
#endif
enum { LESS = SLOW ? 10 : 1 };

static lath_error err;
static const int32_t sizes[] = {1, 2, 3, 8};
enum { N_SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static pool *make(int32_t n)
{
    pool *p = NULL;
    assert_ok(pool_create(alloc_default(), n, &p, &err), err);
    assert_int_equal(pool_size(p), n);
    return p;
}

static void rest(long us)
{
    const struct timespec t = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

/* --------------------------------------------------------------------------------------------------- each task once */

typedef struct count_job {
    int32_t *times; /* [n_tasks] plain on purpose: a task is one thread's, and the leader reads after pool_run */
    int32_t n_workers;
    int64_t salt;
    int64_t *sums; /* [n_tasks] */
    atomic_int bad_worker;
} count_job;

static void count_task(void *ctx, int64_t task, int32_t worker)
{
    count_job *j = ctx;
    j->times[task]++;
    j->sums[task] = task * task + j->salt;
    if (worker < 0 || worker >= j->n_workers) atomic_store(&j->bad_worker, 1);
}

static void run_counted(pool *p, int64_t n_tasks, int64_t salt)
{
    count_job j = {.n_workers = pool_size(p), .salt = salt};
    size_t n = n_tasks ? (size_t)n_tasks : 1;
    j.times = calloc(n, sizeof(*j.times));
    j.sums = calloc(n, sizeof(*j.sums));
    assert_true(j.times && j.sums);
    pool_run(p, count_task, &j, n_tasks);
    for (int64_t t = 0; t < n_tasks; t++) {
        if (j.times[t] != 1 || j.sums[t] != t * t + salt)
            fail_msg("task %lld of %lld was run %d times", (long long)t, (long long)n_tasks, j.times[t]);
    }
    assert_int_equal(atomic_load(&j.bad_worker), 0);
    free(j.times); /* a worker that came late would write into freed memory */
    free(j.sums);
}

static void test_each_once(void **state)
{
    static const int64_t tasks[] = {0, 1, 2, 3, 4, 7, 8, 9, 63, 1000, 20000};
    (void)state;
    for (int i = 0; i < N_SIZES; i++) {
        pool *p = make(sizes[i]);
        pool_enter(p);
        for (size_t k = 0; k < sizeof(tasks) / sizeof(tasks[0]); k++) run_counted(p, tasks[k], (int64_t)k);
        pool_leave(p);
        pool_destroy(p);
    }
}

/* Many short jobs one behind the other: no worker may run a task of one job with the function or context of another. */
typedef struct chain {
    int64_t number;
    int64_t sum[64];
} chain;

static void add_task(void *ctx, int64_t task, int32_t worker)
{
    chain *c = ctx;
    (void)worker;
    c->sum[task] += c->number;
}

static void sub_task(void *ctx, int64_t task, int32_t worker)
{
    chain *c = ctx;
    (void)worker;
    c->sum[task] -= 3 * c->number;
}

static void test_many_jobs(void **state)
{
    (void)state;
    for (int i = 0; i < N_SIZES; i++) {
        pool *p = make(sizes[i]);
        chain c[2] = {{0, {0}}, {0, {0}}};
        int64_t want[2][64] = {{0}};
        pool_enter(p);
        for (int64_t job = 0; job < 40000 / LESS; job++) {
            chain *one = &c[job % 2];
            int64_t n = 2 + job * 7 % 63;
            one->number = job;
            bool add = job % 3 != 0;
            pool_run(p, add ? add_task : sub_task, one, n);
            for (int64_t t = 0; t < n; t++) want[job % 2][t] += add ? job : -3 * job;
        }
        pool_leave(p);
        for (int k = 0; k < 2; k++) assert_memory_equal(c[k].sum, want[k], sizeof(want[k]));
        pool_destroy(p);
    }
}

/* ---------------------------------------------------------------------------------------------------------- regions */

static void test_regions(void **state)
{
    (void)state;
    for (int i = 0; i < N_SIZES; i++) {
        pool *p = make(sizes[i]);
        for (int r = 0; r < 3000 / LESS; r++) {
            pool_enter(p);
            for (int k = 0; k < r % 4; k++) run_counted(p, 1 + r % 50, r);
            pool_leave(p);
            if (r % 100 == 0) rest(3000); /* long enough for the workers to fall asleep */
        }
        pool_destroy(p);
    }
}

/* A worker that has stopped spinning inside a long region is woken by the next job. */
static void test_pause_in_region(void **state)
{
    (void)state;
    pool *p = make(3);
    pool_enter(p);
    for (int r = 0; r < 30; r++) {
        rest(2000);
        run_counted(p, 100, r);
    }
    pool_leave(p);
    pool_destroy(p);
}

static double cpu_seconds(void)
{
    struct rusage u;
    assert_int_equal(getrusage(RUSAGE_SELF, &u), 0);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void test_sleep_costs_nothing(void **state)
{
    (void)state;
    pool *p = make(8);
    pool_enter(p);
    run_counted(p, 1000, 1);
    pool_leave(p);
    rest(100000); /* the last spins */
    double before = cpu_seconds();
    rest(400000);
    assert_true(cpu_seconds() - before < 0.1); /* seven spinning threads would burn 0.4 s of every processor */
    pool_enter(p);
    run_counted(p, 1000, 2);
    pool_leave(p);
    pool_destroy(p);
}

typedef struct leader {
    pthread_t thread;
    pool *pool;
    int index;
    int64_t done;
} leader;

/* What is not atomic here is guarded by the region: two leaders inside at once would be seen. */
static int64_t in_region, total;

static void *lead(void *arg)
{
    leader *l = arg;
    for (int r = 0; r < 400 / LESS; r++) {
        chain c = {l->index + 1, {0}};
        pool_enter(l->pool);
        in_region++;
        if (in_region != 1) abort();
        for (int k = 0; k < 5; k++) pool_run(l->pool, add_task, &c, 33);
        total++;
        in_region--;
        pool_leave(l->pool);
        for (int t = 0; t < 33; t++) l->done += c.sum[t] == 5 * (l->index + 1);
    }
    return NULL;
}

static void test_several_leaders(void **state)
{
    (void)state;
    for (int i = 0; i < N_SIZES; i++) {
        leader l[5];
        pool *p = make(sizes[i]);
        total = in_region = 0;
        for (int k = 0; k < 5; k++) {
            l[k] = (leader){.pool = p, .index = k};
            assert_int_equal(pthread_create(&l[k].thread, NULL, lead, &l[k]), 0);
        }
        for (int k = 0; k < 5; k++) {
            pthread_join(l[k].thread, NULL);
            assert_int_equal(l[k].done, 400 / LESS * 33);
        }
        assert_int_equal(total, 5 * (400 / LESS));
        pool_destroy(p);
    }
}

/* --------------------------------------------------------------------------------------------------------- stopping */

typedef struct stopper {
    int64_t asked, stop_at; /* calls; the one that says yes, -1: none */
    pthread_t leader;
    atomic_int run; /* tasks */
} stopper;

static bool ask(void *ctx)
{
    stopper *s = ctx;
    if (!pthread_equal(s->leader, pthread_self())) abort();
    return s->asked++ == s->stop_at;
}

static void short_task(void *ctx, int64_t task, int32_t worker)
{
    (void)task;
    (void)worker;
    atomic_fetch_add(&((stopper *)ctx)->run, 1);
    rest(200);
}

/* The leader is asked in every job and before each of its tasks; after its yes no task begins, in this job or a later one of the region;
 * the next region knows nothing of it. */
static void test_stop(void **state)
{
    enum { TASKS = 64 };
    (void)state;
    for (int i = 0; i < N_SIZES; i++) {
        pool *p = make(sizes[i]);
        for (int64_t stop_at = -1; stop_at < 3; stop_at++) {
            stopper s = {.stop_at = stop_at, .leader = pthread_self()};
            pool_enter_until(p, ask, &s);
            const bool whole = pool_run(p, short_task, &s, TASKS), again = pool_run(p, short_task, &s, TASKS);
            pool_leave(p);
            const int run = atomic_load(&s.run);
            if (stop_at < 0) {
                assert_true(whole && again);
                assert_int_equal(run, 2 * TASKS);
                assert_true(s.asked >= 2);
            } else if (stop_at < 2 || !whole ||
                       !again) { /* the third time: many workers may leave nothing to be asked for */
                if (stop_at == 0) assert_false(whole);
                assert_false(again);
                assert_int_equal(s.asked, stop_at + 1);
                assert_true(run < 2 * TASKS);
                if (sizes[i] == 1) assert_int_equal(run, stop_at);
            } else {
                assert_true(sizes[i] > 1);
            }
        }
        stopper at_once = {.stop_at = 0, .leader = pthread_self()};
        pool_enter_until(p, ask, &at_once);
        assert_false(pool_run(p, short_task, &at_once, 1));
        pool_leave(p);
        assert_int_equal(atomic_load(&at_once.run), 0);
        pool_enter(p);
        run_counted(p, 100, i);
        pool_leave(p);
        pool_destroy(p);
    }
}

/* --------------------------------------------------------------------------------------------------------- lifetime */

static void test_create_destroy(void **state)
{
    (void)state;
    for (int r = 0; r < 200; r++) {
        pool *p = make(1 + r % 8);
        if (r % 3 == 1) {
            pool_enter(p);
            run_counted(p, 20, r);
            pool_leave(p);
        }
        if (r % 3 == 2) { /* destroyed while workers are on their way to sleep */
            pool_enter(p);
            pool_leave(p);
        }
        pool_destroy(p);
    }
    pool_destroy(NULL);
}

static void *refuse(void *ctx, size_t size, size_t align)
{
    int *left = ctx;
    return (*left)-- > 0 ? alloc_default()->alloc(NULL, size, align) : NULL;
}

static void test_no_memory(void **state)
{
    lath_allocator a = *alloc_default();
    (void)state;
    a.alloc = refuse;
    for (int k = 0; k < 3; k++) {
        int left = k;
        pool *p = NULL;
        a.ctx = &left;
        assert_int_equal(pool_create(&a, 4, &p, &err), LATH_ERR_NOMEM);
        assert_null(p);
    }
}

/* ----------------------------------------------------------------------------------------------------------- uneven */

typedef struct uneven_job {
    uint64_t result[64];
} uneven_job;

static uint64_t spin(uint64_t x, int64_t turns)
{
    for (int64_t i = 0; i < turns; i++) x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

/* One task is as long as a thousand others; sometimes the first, sometimes the last. */
static int64_t turns_of(int64_t task, int64_t heavy) { return task == heavy ? 300000 : 300; }

static void uneven_first(void *ctx, int64_t task, int32_t worker)
{
    uneven_job *j = ctx;
    (void)worker;
    j->result[task] = spin((uint64_t)task, turns_of(task, 0));
}

static void uneven_last(void *ctx, int64_t task, int32_t worker)
{
    uneven_job *j = ctx;
    (void)worker;
    j->result[task] = spin((uint64_t)task, turns_of(task, 63));
    if (task == 63) rest(200); /* the leader has to wait for a worker that is put off */
}

static void test_uneven(void **state)
{
    uint64_t first[64], last[64];
    (void)state;
    for (int64_t t = 0; t < 64; t++) {
        first[t] = spin((uint64_t)t, turns_of(t, 0));
        last[t] = spin((uint64_t)t, turns_of(t, 63));
    }
    for (int i = 0; i < N_SIZES; i++) {
        pool *p = make(sizes[i]);
        pool_enter(p);
        for (int r = 0; r < 60 / LESS; r++) {
            uneven_job j = {{0}};
            pool_run(p, r % 2 ? uneven_last : uneven_first, &j, 64);
            assert_memory_equal(j.result, r % 2 ? last : first, sizeof(first));
        }
        pool_leave(p);
        pool_destroy(p);
    }
}

/* The work is shared: with two tasks that wait for each other a single thread would never end. */
typedef struct meeting {
    atomic_int here;
} meeting;

static void meet_task(void *ctx, int64_t task, int32_t worker)
{
    meeting *m = ctx;
    (void)task;
    (void)worker;
    atomic_fetch_add(&m->here, 1);
    while (atomic_load(&m->here) < 4) rest(10);
}

static void test_really_parallel(void **state)
{
    (void)state;
    pool *p = make(4);
    for (int r = 0; r < 50; r++) {
        meeting m = {0};
        pool_enter(p);
        pool_run(p, meet_task, &m, 4);
        pool_leave(p);
        assert_int_equal(atomic_load(&m.here), 4);
    }
    pool_destroy(p);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_once),
        cmocka_unit_test(test_many_jobs),
        cmocka_unit_test(test_regions),
        cmocka_unit_test(test_pause_in_region),
        cmocka_unit_test(test_sleep_costs_nothing),
        cmocka_unit_test(test_several_leaders),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_create_destroy),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_uneven),
        cmocka_unit_test(test_really_parallel),
    };
    return TEST_RUN(tests);
}
