/* SPDX-License-Identifier: Apache-2.0
 *
 * backend_cpu_each.c: ops on each number by itself and moves of tokens, for both tables. A view is runs of numbers that lie side by side: a panel's, or a row's. Whatever is in the
 * unused lanes of a last panel goes through, too, and stays there. */
#include <string.h>

#include "backend/backend_cpu.h"

enum { PIECE_FEATURES = 2048, MOVE_FLOATS = 4096 }; /* of a task */

/* Numbers first .. first + n - 1 of a run. */
typedef struct piece {
    int64_t run, first, n;
} piece;

static int64_t n_runs(view y, int64_t lanes) { return cpu_ceil_div(y.n_tok, lanes); }
static int64_t n_pieces(view y, int64_t lanes) { return n_runs(y, lanes) * cpu_ceil_div(y.d, PIECE_FEATURES); }

static piece piece_at(view y, int64_t lanes, int64_t task)
{
    const int64_t per_run = cpu_ceil_div(y.d, PIECE_FEATURES), f = task % per_run * PIECE_FEATURES;
    const int64_t n = y.d - f < PIECE_FEATURES ? y.d - f : PIECE_FEATURES;
    return (piece){task / per_run, f * lanes, n * lanes};
}

static float *at(view x, piece p) { return x.data + p.run * x.stride + p.first; }

typedef struct glu_job {
    const stream *s;
    kern_fn fn;
    view gate, up, y;
    int64_t lanes;
} glu_job;

static void glu_task(void *ctx, int64_t task, int32_t worker)
{
    (void)worker;
    const glu_job *j = ctx;
    const piece p = piece_at(j->y, j->lanes, task);
    j->s->kern->glu(j->fn, (size_t)p.n, at(j->gate, p), at(j->up, p), at(j->y, p));
}

lath_status cpu_glu(stream *s, kern_fn fn, view gate, view up, view y, int64_t lanes)
{
    glu_job j = {s, fn, gate, up, y, lanes};
    return cpu_run(s, glu_task, &j, n_pieces(y, lanes));
}

typedef struct map_job {
    const stream *s;
    const op_map *a;
    int64_t lanes;
} map_job;

static void scale(float by, int64_t n, const float *x, float *y)
{
    for (int64_t i = 0; i < n; i++) y[i] = by * x[i];
}

static void map_task(void *ctx, int64_t task, int32_t worker)
{
    (void)worker;
    const map_job *j = ctx;
    const op_map *a = j->a;
    const piece p = piece_at(a->y, j->lanes, task);
    const float *x = at(a->x, p);
    float *y = at(a->y, p);
    if (a->in != 1) {
        scale(a->in, p.n, x, y);
        x = y;
    }
    if (a->fn != KERN_FN_NONE || x != y) j->s->kern->map(a->fn, (size_t)p.n, x, y);
    if (a->out != 1) scale(a->out, p.n, y, y);
}

lath_status cpu_map(stream *s, const op_map *a, int64_t lanes)
{
    map_job j = {s, a, lanes};
    return cpu_run(s, map_task, &j, n_pieces(a->y, lanes));
}

lath_status cpu_copy(view x, view y, int64_t lanes)
{
    for (int64_t r = 0; r < n_runs(x, lanes); r++)
        memcpy(y.data + r * y.stride, x.data + r * x.stride, (size_t)(x.d * lanes) * sizeof(float));
    return LATH_OK;
}

lath_status cpu_clear(view y, int64_t lanes)
{
    for (int64_t r = 0; r < n_runs(y, lanes); r++)
        memset(y.data + r * y.stride, 0, (size_t)(y.d * lanes) * sizeof(float));
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------ tokens moved */

static float *token_at(view x, int64_t t, int64_t lanes) { return x.data + t / lanes * x.stride + t % lanes; }

/* Rows of x to places of y, or out of them. Tasks are pieces of features: no two write the same. */
typedef struct rows_job {
    view x, y;
    const int32_t *index;
    const float *by; /* NULL: rows are taken, else added */
    int64_t lanes;
} rows_job;

static void rows_task(void *ctx, int64_t task, int32_t worker)
{
    (void)worker;
    const rows_job *j = ctx;
    const int64_t lanes = j->lanes, size = MOVE_FLOATS / lanes, first = task * size;
    const int64_t end = first + size < j->x.d ? first + size : j->x.d;
    for (int64_t i = 0; i < (j->by ? j->x.n_tok : j->y.n_tok); i++) {
        const float *from = token_at(j->x, j->by ? i : j->index[i], lanes);
        float *to = token_at(j->y, j->by ? j->index[i] : i, lanes);
        if (j->by)
            for (int64_t f = first; f < end; f++) to[f * lanes] += j->by[i] * from[f * lanes];
        else
            for (int64_t f = first; f < end; f++) to[f * lanes] = from[f * lanes];
    }
}

lath_status cpu_move_rows(stream *s, view x, const int32_t *index, const float *by, view y, int64_t lanes)
{
    rows_job j = {x, y, index, by, lanes};
    return cpu_run(s, rows_task, &j, cpu_ceil_div(x.d, MOVE_FLOATS / lanes));
}
