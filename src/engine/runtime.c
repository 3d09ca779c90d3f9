/* SPDX-License-Identifier: Apache-2.0
 * runtime.c: threads, kernels, allocator and log of one runtime; calls that need nothing else. */
#include <math.h>

#include "engine/engine.h"

enum { MAX_THREADS = 256, DOT_ROWS_PER_TASK = 1024 };

#define STRING_(x) #x
#define STRING(x) STRING_(x)
const char *lath_version(void)
{
    return STRING(LATH_VERSION_MAJOR) "." STRING(LATH_VERSION_MINOR) "." STRING(LATH_VERSION_PATCH);
}

/* The ceiling of the kernel table that a public ISA means on this machine. */
static lath_status ceiling(lath_isa isa, kern_isa *out, lath_error *err)
{
    static const kern_isa rows[] = {KERN_ISA_COUNT,  KERN_ISA_REF, KERN_ISA_AVX2,
                                    KERN_ISA_AVX512, KERN_ISA_AMX, KERN_ISA_NEON};
#if defined(__x86_64__)
    const bool x86 = true, arm = false;
#elif defined(__aarch64__)
    const bool x86 = false, arm = true;
#else
    const bool x86 = false, arm = false;
#endif
    if ((int)isa < 0 || (size_t)isa >= sizeof(rows) / sizeof(rows[0]))
        return err_set(err, LATH_ERR_USAGE, "isa: no such value: %d", (int)isa);
    bool foreign = isa == LATH_ISA_NEON ? !arm : isa >= LATH_ISA_AVX2 && !x86;
    if (foreign)
        return err_set(err, LATH_ERR_UNSUPPORTED, "isa: %s is not of this machine's architecture",
                       kern_isa_name(rows[isa]));
    *out = isa == LATH_ISA_AUTO ? (arm ? KERN_ISA_NEON : KERN_ISA_AMX) : rows[isa];
    return LATH_OK;
}

lath_status lath_runtime_create(const lath_runtime_options *opts, lath_runtime **out, lath_error *err)
{
    static const lath_runtime_options defaults = LATH_RUNTIME_OPTIONS_INIT;
    err_clear(err);
    if (!opts) opts = &defaults;
    if (!out || opts->struct_size != sizeof(*opts))
        return err_set(err, LATH_ERR_USAGE, "lath_runtime_create: %s",
                       out ? "options of another version" : "no place for the result");
    const lath_allocator *alloc = opts->allocator ? opts->allocator : alloc_default();
    if (opts->n_threads < 0 || opts->n_threads > MAX_THREADS)
        return err_set(err, LATH_ERR_USAGE, "threads: %d, want 0 to %d", opts->n_threads, MAX_THREADS);
    kern_isa isa = KERN_ISA_REF;
    TRY(ceiling(opts->isa, &isa, err));
    lath_runtime *rt = alloc_zero(alloc, sizeof(*rt));
    if (!rt) return err_nomem(err, sizeof(*rt));
    rt->alloc = *alloc;
    rt->log = (log_sink){opts->log, opts->log_ctx};
    rt->ops = backend_cpu();
    kern_table_init(&rt->kern, isa);
    lath_status st =
        pool_create(&rt->alloc, opts->n_threads ? opts->n_threads : pool_default_threads(), &rt->pool, err);
    if (st != LATH_OK) {
        alloc_release(alloc, rt, sizeof(*rt));
        return st;
    }
    *out = rt;
    return LATH_OK;
}

void lath_runtime_destroy(lath_runtime *rt)
{
    if (!rt) return;
    pool_destroy(rt->pool);
    lath_allocator alloc = rt->alloc;
    alloc_release(&alloc, rt, sizeof(*rt));
}

int32_t lath_runtime_threads(const lath_runtime *rt) { return pool_size(rt->pool); }
const char *lath_runtime_isa(const lath_runtime *rt) { return rt->kern.isa; }

float lath_dot(const lath_runtime *rt, const float *a, const float *b, int64_t d)
{
    float out;
    rt->kern.dot_rows(
        &(kern_dot_rows_args){.q = a, .rows = b, .type = DTYPE_F32, .n = 1, .d = d, .n_q = 1, .out = &out});
    return out;
}

typedef struct dot_job {
    const lath_runtime *rt;
    const float *query, *rows;
    int64_t n, d;
    float *out;
} dot_job;

static void dot_task(void *ctx, int64_t task, int32_t worker)
{
    (void)worker;
    const dot_job *j = ctx;
    int64_t first = task * DOT_ROWS_PER_TASK, n = j->n - first < DOT_ROWS_PER_TASK ? j->n - first : DOT_ROWS_PER_TASK;
    j->rt->kern.dot_rows(&(kern_dot_rows_args){.q = j->query,
                                               .rows = j->rows + first * j->d,
                                               .type = DTYPE_F32,
                                               .row_stride = j->d * (int64_t)sizeof(float),
                                               .n = n,
                                               .d = j->d,
                                               .n_q = 1,
                                               .out = j->out + first});
}

lath_status lath_dot_rows(lath_runtime *rt, const float *query, const float *rows, size_t n, int64_t d, float *out,
                          lath_error *err)
{
    err_clear(err);
    if (!rt || d < 1 || (n && (!query || !rows || !out)))
        return err_set(err, LATH_ERR_USAGE, "lath_dot_rows: an argument is missing");
    dot_job j = {rt, query, rows, (int64_t)n, d, out};
    pool_enter(rt->pool);
    pool_run(rt->pool, dot_task, &j, (j.n + DOT_ROWS_PER_TASK - 1) / DOT_ROWS_PER_TASK);
    pool_leave(rt->pool);
    return LATH_OK;
}

double lath_cosine(const float *a, const float *b, int64_t d)
{
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < d; i++) {
        ab += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}
