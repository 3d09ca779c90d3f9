/* SPDX-License-Identifier: Apache-2.0
 *
 * backend_cpu_features.c: products of one token with chosen rows of a matrix, for both tables: what a walked FFN reads. Rows lie anywhere in the file, each a stream of
 * its own, so memory is the limit.
 *
 * A matrix of which some rows are read is not looked through as a whole: what comes out says whether a number was not finite, and then its row is looked for.
 */
#include <string.h>

#include "backend/backend_cpu.h"

enum { TASKS_PER_THREAD = 4, TASK_ROWS = 32, GROUP_BYTES = 32 << 10, GROUP_ROWS = 4, COLUMNS = 16 };

static const unsigned char *row_at(const op_features *a, int64_t i)
{
    const int64_t r = a->index ? a->index[i] : i;
    return (const unsigned char *)a->w->data + (size_t)r * dtype_bytes(a->w->t->type, a->w->cols);
}

/* The first of the rows that holds a number that is not finite, by name; LATH_OK: all are finite, so the sums overflowed, as those of op linear may. */
static lath_status find_nonfinite(const stream *s, const op_features *a)
{
    const weight *w = a->w;
    for (int64_t i = 0; i < a->n; i++) {
        const int64_t at = s->kern->first_nonfinite(w->t->type, row_at(a, i), w->cols);
        if (at >= 0)
            return err_set(s->err, LATH_ERR_FORMAT, "%s: tensor \"%s\": element [%lld,%lld] is not finite", w->file,
                           w->t->name, (long long)(w->row0 + (a->index ? a->index[i] : i)), (long long)at);
    }
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------- products */

typedef struct dot_job {
    const stream *s;
    const op_features *a;
    const float *x;
    const unsigned char *xq; /* NULL: x is taken as floats */
    float *y;
    int64_t chunk;
} dot_job;

static void dot_rows(const dot_job *j, const void *rows, int64_t n, float *y)
{
    const weight *w = j->a->w;
    const kern_gemv_args k = {
        .w = rows,
        .type = w->t->type,
        .w_stride = (int64_t)dtype_bytes(w->t->type, w->cols),
        .x = j->x,
        .x_stride = w->cols,
        .xq = j->xq,
        .n_x = 1,
        .y = y,
        .k = w->cols,
        .n1 = n,
    };
    j->s->kern->gemv(&k);
}

/* gemv takes rows at equal distances, several at a time: chosen ones are put side by side in L1 first. The machine reads on while these are multiplied. */
static void dot_task(void *ctx, int64_t task, int32_t worker)
{
    (void)worker;
    const dot_job *j = ctx;
    const op_features *a = j->a;
    _Alignas(64) unsigned char group[GROUP_BYTES];
    const size_t bytes = dtype_bytes(a->w->t->type, a->w->cols);
    const int64_t first = task * j->chunk, end = first + j->chunk < a->n ? first + j->chunk : a->n;
    const int64_t fit = (int64_t)(GROUP_BYTES / bytes), most = fit < GROUP_ROWS ? fit : GROUP_ROWS;
    if (!a->index) {
        dot_rows(j, row_at(a, first), end - first, j->y + first);
        return;
    }
    for (int64_t i = first, n; i < end; i += n) {
        n = end - i < most ? end - i : most;
        if (n <= 1) {
            n = 1;
            dot_rows(j, row_at(a, i), 1, j->y + i);
            continue;
        }
        for (int64_t r = 0; r < n; r++) memcpy(group + (size_t)r * bytes, row_at(a, i + r), bytes);
        dot_rows(j, group, n, j->y + i);
    }
}

lath_status cpu_dot_features(stream *s, const op_features *a, const float *x, float *y, void *xq)
{
    const dtype type = a->w->t->type;
    const int64_t tasks = (int64_t)pool_size(s->pool) * TASKS_PER_THREAD;
    dot_job j = {.s = s, .a = a, .x = x, .y = y};
    if (a->n == 0) return LATH_OK;
    if (s->integer && kern_xq_kind_of(type) != KERN_XQ_NONE) {
        s->kern->quantize_x(type, a->w->cols, x, xq);
        j.xq = xq;
    }
    j.chunk = pool_size(s->pool) == 1 ? a->n : cpu_ceil_div(cpu_ceil_div(a->n, tasks), TASK_ROWS) * TASK_ROWS;
    TRY(cpu_run(s, dot_task, &j, cpu_ceil_div(a->n, j.chunk)));
    return s->kern->first_nonfinite(DTYPE_F32, y, a->n) < 0 ? LATH_OK : find_nonfinite(s, a);
}

/* ----------------------------------------------------------------------------------------------------------------- sums */

typedef struct add_job {
    const stream *s;
    const op_features *a;
    const float *by;
    float *y;
    int64_t width; /* columns of a task: all rows, so that an element is one worker's */
} add_job;

static void add_task(void *ctx, int64_t task, int32_t worker)
{
    (void)worker;
    const add_job *j = ctx;
    const weight *w = j->a->w;
    const int64_t first = task * j->width, n = w->cols - first < j->width ? w->cols - first : j->width;
    const kern_add_rows_args k = {
        .rows = w->data,
        .type = w->t->type,
        .row_stride = (int64_t)dtype_bytes(w->t->type, w->cols),
        .index = j->a->index,
        .by = j->by,
        .n = j->a->n,
        .f0 = first,
        .k = n,
        .y = j->y + first,
    };
    j->s->kern->add_rows(&k);
}

lath_status cpu_add_features(stream *s, const op_features *a, const float *by, float *y)
{
    const int64_t numbers = (int64_t)dtype_block_numbers(a->w->t->type), unit = numbers > COLUMNS ? numbers : COLUMNS;
    add_job j = {.s = s, .a = a, .by = by, .y = y};
    j.width = cpu_ceil_div(cpu_ceil_div(a->w->cols, pool_size(s->pool)), unit) * unit;
    TRY(cpu_run(s, add_task, &j, cpu_ceil_div(a->w->cols, j.width)));
    return s->kern->first_nonfinite(DTYPE_F32, y, a->w->cols) < 0 ? LATH_OK : find_nonfinite(s, a);
}
