/* SPDX-License-Identifier: Apache-2.0
 *
 * backend_cpu_features.c: products of one token with chosen rows of a matrix, for both tables: what a walked FFN reads. Rows lie anywhere in the file, each a stream of
 * its own, so memory is the limit.
 *
 * A matrix of which some rows are read is not looked through as a whole: what comes out says whether a number was not finite, and then its row is looked for.
 */
#include <string.h>

#include "backend/backend_cpu.h"

enum { TASKS_PER_THREAD = 4, TASK_ROWS = 32, COLUMNS = 16, STRIP_COLUMNS = 256, STRIP_ROWS = 512 };

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

static void dot_task(void *ctx, int64_t task, int32_t worker)
{
    (void)worker;
    const dot_job *j = ctx;
    const weight *w = j->a->w;
    const int64_t first = task * j->chunk, end = first + j->chunk;
    const kern_gemv_args k = {
        .w = w->data,
        .type = w->t->type,
        .w_stride = (int64_t)dtype_bytes(w->t->type, w->cols),
        .index = j->a->index,
        .x = j->x,
        .x_stride = w->cols,
        .xq = j->xq,
        .n_x = 1,
        .y = j->y,
        .k = w->cols,
        .n0 = first,
        .n1 = end < j->a->n ? end : j->a->n,
    };
    j->s->kern->gemv(&k);
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

/* Whole rows a task, so that a stream is long: each adds up a part of them by itself. How many parts there are depends on n only, and so do bits. */
typedef struct add_job {
    const stream *s;
    const op_features *a;
    const float *by;
    float *sums; /* [parts][stride] */
    int64_t stride, chunk;
} add_job;

static void add_task(void *ctx, int64_t task, int32_t worker)
{
    (void)worker;
    const add_job *j = ctx;
    const weight *w = j->a->w;
    const int64_t first = task * j->chunk, n = j->a->n - first < j->chunk ? j->a->n - first : j->chunk;
    const int64_t row_stride = (int64_t)dtype_bytes(w->t->type, w->cols);
    const kern_add_rows_args k = {
        .rows = (const char *)w->data + (j->a->index ? 0 : first * row_stride),
        .type = w->t->type,
        .row_stride = row_stride,
        .index = j->a->index ? j->a->index + first : NULL,
        .by = j->by + first,
        .n = n,
        .k = w->cols,
        .y = j->sums + task * j->stride,
    };
    memset(k.y, 0, (size_t)w->cols * sizeof(float));
    j->s->kern->add_rows(&k);
}

lath_status cpu_add_features(stream *s, const op_features *a, const float *by, float *y, float *memory)
{
    const int64_t even = cpu_ceil_div(a->n, OP_FEATURES_PARTS), chunk = even > TASK_ROWS ? even : TASK_ROWS;
    const int64_t parts = cpu_ceil_div(a->n, chunk), d = a->w->cols;
    add_job j = {.s = s, .a = a, .by = by, .sums = memory, .stride = (d + 15) / 16 * 16, .chunk = chunk};
    TRY(cpu_run(s, add_task, &j, parts));
    for (int64_t p = 0; p < parts; p++)
        for (int64_t f = 0; f < d; f++) y[f] += j.sums[p * j.stride + f];
    return s->kern->first_nonfinite(DTYPE_F32, y, d) < 0 ? LATH_OK : find_nonfinite(s, a);
}

/* Many tokens: a task is a strip of columns, of which some rows at a time stay in L2 while all tokens take them. */
typedef struct strip_job {
    const stream *s;
    const weight *w;
    const float *by;
    float *y;
    int64_t n_tok, width;
} strip_job;

static void strip_task(void *ctx, int64_t task, int32_t worker)
{
    (void)worker;
    const strip_job *j = ctx;
    const weight *w = j->w;
    const int64_t first = task * j->width, n = w->cols - first < j->width ? w->cols - first : j->width;
    const int64_t row_stride = (int64_t)dtype_bytes(w->t->type, w->cols);
    for (int64_t r = 0; r < w->rows; r += STRIP_ROWS) {
        for (int64_t t = 0; t < j->n_tok; t++) {
            const kern_add_rows_args k = {
                .rows = (const char *)w->data + r * row_stride,
                .type = w->t->type,
                .row_stride = row_stride,
                .by = j->by + t * w->rows + r,
                .n = w->rows - r < STRIP_ROWS ? w->rows - r : STRIP_ROWS,
                .f0 = first,
                .k = n,
                .y = j->y + t * op_row_floats(w->cols) + first,
            };
            j->s->kern->add_rows(&k);
        }
    }
}

lath_status cpu_add_all_panels(stream *s, weight *rows, const float *by, int64_t n_tok, float *y)
{
    const int64_t numbers = (int64_t)dtype_block_numbers(rows->t->type), unit = numbers > COLUMNS ? numbers : COLUMNS;
    const int64_t even = cpu_ceil_div(rows->cols, (int64_t)pool_size(s->pool) * TASKS_PER_THREAD);
    strip_job j = {.s = s, .w = rows, .by = by, .y = y, .n_tok = n_tok};
    TRY(cpu_check_finite(s, rows));
    j.width = cpu_ceil_div(even < STRIP_COLUMNS ? even : STRIP_COLUMNS, unit) * unit;
    return cpu_run(s, strip_task, &j, cpu_ceil_div(rows->cols, j.width));
}
