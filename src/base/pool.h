/* SPDX-License-Identifier: Apache-2.0
 * pool.h: the thread pool of a runtime. One caller at a time leads a *region*: between pool_enter and pool_leave the workers are awake and
 * spin for work, so that each pool_run inside costs under a microsecond; outside a region they sleep on a futex and cost nothing.
 *
 *     pool_enter(p);                        wakes the workers (waits while another thread leads)
 *     pool_run(p, fn, ctx, n_tasks);        fn(ctx, task, worker) for every task, claimed dynamically; returns when all are done
 *     pool_leave(p);                        workers go back to sleep
 *
 * A region may be one that can be stopped: its leader then asks between tasks, and when the answer is yes the tasks that nobody has begun are
 * left out, in that pool_run and in every later one of the region. A matrix product of seconds ends within one task.
 *
 * What a task computes must not depend on `worker` but for scratch memory: results then do not depend on the number of threads.
 */
#ifndef LATH_BASE_POOL_H
#define LATH_BASE_POOL_H

#include <stdbool.h>

#include "base/alloc.h"

typedef struct pool pool;
typedef void (*pool_fn)(void *ctx, int64_t task, int32_t worker);
/* Called on the leader's thread, in every job at its begin and before each task that it may take: cheap. */
typedef bool (*pool_stop_fn)(void *ctx);

/* n_threads >= 1, the leader included; n_threads - 1 threads are started. */
lath_status pool_create(const lath_allocator *alloc, int32_t n_threads, pool **out, lath_error *err);
void pool_destroy(pool *p);
int32_t pool_size(const pool *p);
void pool_enter(pool *p);
/* A region that ends early when `stop` says so. */
void pool_enter_until(pool *p, pool_stop_fn stop, void *ctx);
void pool_leave(pool *p);
/* Inside a region, by its leader. worker is 0 (the leader) .. pool_size - 1. False: the region was stopped, and tasks that nobody had begun were
 * not run. */
bool pool_run(pool *p, pool_fn fn, void *ctx, int64_t n_tasks);

/* How many threads this process may use well: min(affinity mask, cgroup v1/v2 CPU quota rounded up), at least 1. Linux; 1 elsewhere
 * only when the system does not tell. */
int32_t pool_default_threads(void);

#endif
