/* SPDX-License-Identifier: Apache-2.0
 *
 * backend_cpu_rows.c: ops on few tokens whose features lie side by side, x[token][feature], as single steps of generation take them. A
 * step waits for memory: every weight is read once, by all workers at the same time, each a few long streams of rows.
 *
 * What is little work (norms, rotation, copies of one token) the leader does alone: to share it costs more.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "backend/backend_cpu.h"

enum { LANES = KERN_LANES, TASKS_PER_THREAD = 4, ROWS_ALIGN = 16 };

/* ------------------------------------------------------------------------------------------------------------ views */

/* Rows begin at 64-byte boundaries. */
static int64_t row_floats(int64_t d) { return cpu_ceil_div(d, ROWS_ALIGN) * ROWS_ALIGN; }

static size_t rows_view_floats(int64_t n_tok, int64_t d) { return (size_t)(n_tok * row_floats(d)); }

static view rows_make_view(float *memory, int64_t n_tok, int64_t d)
{
    return (view){.data = memory, .n_tok = n_tok, .d = d, .stride = row_floats(d)};
}

static view rows_slice(view x, int64_t first, int64_t d)
{
    assert(first >= 0 && d >= 0 && first + d <= x.d);
    return (view){.data = x.data + first, .n_tok = x.n_tok, .d = d, .stride = x.stride};
}

static view rows_tokens(view x, int64_t first, int64_t n)
{
    return (view){.data = x.data + first * x.stride, .n_tok = n, .d = x.d, .stride = x.stride};
}

static float *row_at(view x, int64_t t) { return x.data + t * x.stride; }

/* Per worker: attention's keys; then once, for all: 8-bit activations. */
static size_t worker_floats(const op_limits *most)
{
    size_t n = kern_attention_row_floats(most->n_keys + LANES, most->head_dim);
    const size_t delta = cpu_delta_floats(most);
    if (delta > n) n = delta;
    return (n + 15) & ~(size_t)15;
}

size_t cpu_xq_most(int64_t d, size_t (*bytes)(dtype type, int64_t k))
{
    const int64_t whole = cpu_ceil_div(d, DTYPE_MAX_BLOCK) * DTYPE_MAX_BLOCK;
    size_t most = 0;
    for (int t = 0; t < DTYPE_COUNT; t++) {
        const size_t n = dtype_is_weight((dtype)t) ? bytes((dtype)t, whole) : 0;
        if (n > most) most = n;
    }
    return most;
}

static size_t rows_scratch_floats(const stream *s, const op_limits *most)
{
    const size_t xq = cpu_xq_most(most->d, kern_xq_bytes) / sizeof(float) * BACKEND_ROWS_MOST;
    const size_t row = (size_t)row_floats(most->d);
    return worker_floats(most) * (size_t)pool_size(s->pool) + (xq > row ? xq : row);
}

static float *worker_scratch(const stream *s, int32_t worker)
{
    return s->scratch + worker_floats(&s->limits) * (size_t)worker;
}

/* What is the leader's, behind that of the workers. */
static float *shared_scratch(const stream *s) { return worker_scratch(s, pool_size(s->pool)); }

/* ----------------------------------------------------------------------------------------------------- weights and x */

/* Row index of a table, added to y or in its place. */
static void add_row(const op_gather_source *o, int32_t index, bool first, float *scratch, float *y)
{
    const weight *w = o->table;
    float *to = first ? y : scratch;
    dtype_to_f32(w->t->type, (const char *)w->data + (size_t)index * dtype_bytes(w->t->type, w->cols), (size_t)w->cols,
                 to);
    for (int64_t f = 0; !first && f < w->cols; f++) y[f] += scratch[f];
}

static lath_status rows_gather(stream *s, const op_gather *a)
{
    for (int64_t t = 0; t < a->y.n_tok; t++) {
        float *y = row_at(a->y, t);
        for (int32_t i = 0; i < a->n_sources; i++)
            add_row(&a->sources[i], a->sources[i].index[t], i == 0, shared_scratch(s), y);
        for (int64_t f = 0; a->scale != 1 && f < a->y.d; f++) y[f] *= a->scale;
        if (s->kern->first_nonfinite(DTYPE_F32, y, a->y.d) >= 0) return cpu_nonfinite_row(s, a);
    }
    return LATH_OK;
}

/* Tasks are chunks of rows, over all parts; a chunk is read as a few long streams. */
typedef struct gemv_job {
    const stream *s;
    view x;
    const op_linear *parts;
    const unsigned char *xq;
    size_t xq_stride;
    int64_t chunk;
} gemv_job;

static void gemv_task(void *ctx, int64_t task, int32_t worker)
{
    const gemv_job *j = ctx;
    const op_linear *part = j->parts;
    for (int64_t n; task >= (n = cpu_ceil_div(part->y.d, j->chunk)); part++) task -= n;
    const int64_t n0 = task * j->chunk, n1 = n0 + j->chunk < part->y.d ? n0 + j->chunk : part->y.d;
    const kern_gemv_args k = {
        .w = part->w->data,
        .type = part->w->t->type,
        .w_stride = (int64_t)dtype_bytes(part->w->t->type, j->x.d),
        .bias = part->bias.data,
        .x = j->x.data,
        .x_stride = j->x.stride,
        .xq = j->xq,
        .xq_stride = (int64_t)j->xq_stride,
        .n_x = (int32_t)j->x.n_tok,
        .y = part->y.data,
        .y_stride = part->y.stride,
        .k = j->x.d,
        .n0 = n0,
        .n1 = n1,
        .fn = part->fn,
    };
    (void)worker;
    j->s->kern->gemv(&k);
}

/* Parts whose weights want x in one form. */
static lath_status run_parts(stream *s, view x, const op_linear *parts, int32_t n_parts)
{
    gemv_job j = {.s = s, .x = x, .parts = parts};
    if (cpu_xq_kind(s, parts) != KERN_XQ_NONE) {
        const dtype type = parts[0].w->t->type;
        unsigned char *xq = (unsigned char *)shared_scratch(s);
        j.xq = xq;
        j.xq_stride = kern_xq_bytes(type, x.d);
        for (int64_t t = 0; t < x.n_tok; t++)
            s->kern->quantize_x(type, x.d, row_at(x, t), xq + (size_t)t * j.xq_stride);
    }
    int64_t rows = 0, tasks = 0;
    for (int32_t i = 0; i < n_parts; i++) rows += parts[i].y.d;
    const int64_t chunks = pool_size(s->pool) == 1 ? 1 : (int64_t)pool_size(s->pool) * TASKS_PER_THREAD;
    j.chunk = cpu_ceil_div(cpu_ceil_div(rows, chunks), LANES) * LANES;
    for (int32_t i = 0; i < n_parts; i++) tasks += cpu_ceil_div(parts[i].y.d, j.chunk);
    return cpu_run(s, gemv_task, &j, tasks);
}

static lath_status rows_linear(stream *s, view x, const op_linear *parts, int32_t n_parts)
{
    assert(x.n_tok <= BACKEND_ROWS_MOST);
    for (int32_t i = 0; i < n_parts; i++) TRY(cpu_check_finite(s, parts[i].w));
    for (int32_t i = 0, n; i < n_parts; i += n) {
        n = cpu_xq_run(s, parts + i, n_parts - i, cpu_xq_kind);
        TRY(run_parts(s, x, parts + i, n));
    }
    return LATH_OK;
}

/* --------------------------------------------------------------------------------------------- norms, elementwise, rope */

static lath_status rows_norm(stream *s, const op_norm_args *a)
{
    for (int64_t t = 0; t < a->x.n_tok; t++) {
        const kern_norm_row_args k = {
            .x = row_at(a->x, t),
            .r = a->r ? row_at(*a->r, t) : NULL,
            .gamma = a->norm->gamma.data,
            .beta = a->norm->beta.data,
            .y = row_at(a->y, t),
            .sum = a->sum ? row_at(*a->sum, t) : NULL,
            .d = a->x.d / a->n_groups,
            .n_groups = a->n_groups,
            .eps = a->norm->eps,
        };
        (a->norm->kind == NORM_RMS ? s->kern->rms_norm_row : s->kern->layer_norm_row)(&k);
    }
    return LATH_OK;
}

static lath_status rows_map(stream *s, const op_map *a) { return cpu_map(s, a, 1); }

static lath_status rows_glu(stream *s, kern_fn fn, view gate, view up, view y)
{
    return cpu_glu(s, fn, gate, up, y, 1);
}

static lath_status rows_copy(stream *s, view x, view y)
{
    (void)s;
    return cpu_copy(x, y, 1);
}

static lath_status rows_clear(stream *s, view y)
{
    (void)s;
    return cpu_clear(y, 1);
}

static lath_status rows_take_rows(stream *s, view x, const int32_t *index, view y)
{
    return cpu_move_rows(s, x, index, NULL, y, 1);
}

static lath_status rows_add_rows(stream *s, view x, const int32_t *index, const float *by, view y)
{
    return cpu_move_rows(s, x, index, by, y, 1);
}

static lath_status rows_rope_table(stream *s, const op_rope_table *a)
{
    (void)s;
    for (int64_t t = 0; t < a->cosine.n_tok; t++) cpu_rope_row(a, t, row_at(a->cosine, t), row_at(a->sine, t), 1);
    return LATH_OK;
}

static lath_status rows_rope(stream *s, const op_rope *a)
{
    for (int64_t t = 0; t < a->x.n_tok; t++) {
        const kern_rope_args k = {
            .x = row_at(a->x, t),
            .cosine = row_at(a->cosine, t),
            .sine = row_at(a->sine, t),
            .n_heads = a->x.d / a->head_dim,
            .head_dim = a->head_dim,
            .n_pairs = a->cosine.d,
            .lanes = 1,
            .interleaved = a->interleaved,
        };
        s->kern->rope(&k);
    }
    return LATH_OK;
}

/* ----------------------------------------------------------------------------------------------------------- attention */

static lath_status rows_kv_append(stream *s, view k, view v, kv_layer *kv, int64_t at)
{
    return cpu_kv_append(s, k, v, kv, at, 1);
}

typedef struct attention_job {
    const stream *s;
    const op_attention *a;
    int64_t group, groups; /* heads of a task, all of one head of keys; tasks of a token */
} attention_job;

static void attention_task(void *ctx, int64_t task, int32_t worker)
{
    const attention_job *j = ctx;
    const op_attention *a = j->a;
    const int64_t t = task / j->groups, hd = a->head_dim, shared = a->n_heads / a->n_kv_heads;
    const int64_t per_kv = cpu_ceil_div(shared, j->group), g = task % j->groups, kv = g / per_kv;
    const int64_t first = g % per_kv * j->group, n = shared - first < j->group ? shared - first : j->group;
    const int64_t head = kv * shared + first;
    const kern_attention_row_args k = {
        .q = row_at(a->q, t) + head * hd,
        .q_stride = hd,
        .k = cpu_kv_head(a->kv, a->kv->k, kv),
        .v = cpu_kv_head(a->kv, a->kv->v, kv),
        .half = a->kv->half,
        .kv_stride = hd * LANES,
        .head_dim = hd,
        .ring = (int32_t)(a->kv->n_slots / LANES),
        .n_q = (int32_t)n,
        .begin = a->begin[t],
        .end = a->end[t],
        .scale = a->scale,
        .softcap = a->softcap,
        .out = row_at(a->out, t) + head * hd,
        .out_stride = hd,
        .scratch = worker_scratch(j->s, worker),
    };
    j->s->kern->attention_row(&k);
}

/* Heads that share keys go together, so that these are read once, as far as there is work for everybody. */
static lath_status rows_attention(stream *s, const op_attention *a)
{
    assert(a->kv && !a->bias);
    const int64_t shared = a->n_heads / a->n_kv_heads, threads = pool_size(s->pool);
    int64_t group = shared < KERN_ATTENTION_ROW_HEADS ? shared : KERN_ATTENTION_ROW_HEADS;
    while (group > 1 && a->q.n_tok * a->n_kv_heads * cpu_ceil_div(shared, group) < threads)
        group = cpu_ceil_div(group, 2);
    attention_job j = {s, a, group, a->n_kv_heads * cpu_ceil_div(shared, group)};
    return cpu_run(s, attention_task, &j, a->q.n_tok * j.groups);
}

static lath_status rows_conv(stream *s, const op_conv *a) { return cpu_conv_rows(s, a); }

static lath_status rows_delta(stream *s, const op_delta *a)
{
    return cpu_delta(s, a, 1, s->scratch, worker_floats(&s->limits));
}

static lath_status rows_read_rows(stream *s, view x, int64_t row0, int64_t n, float *out)
{
    (void)s;
    for (int64_t i = 0; i < n; i++) memcpy(out + i * x.d, row_at(x, row0 + i), (size_t)x.d * sizeof(float));
    return LATH_OK;
}

static lath_status rows_write_rows(stream *s, view x, int64_t row0, int64_t n, const float *in)
{
    (void)s;
    for (int64_t i = 0; i < n; i++) memcpy(row_at(x, row0 + i), in + i * x.d, (size_t)x.d * sizeof(float));
    return LATH_OK;
}

static lath_status rows_attention_weights(stream *s, const op_attention *a, int64_t token, float *out)
{
    return cpu_attention_weights(s, a, token, 1, out);
}

static lath_status rows_dot_features(stream *s, const op_features *a, const float *x, float *y)
{
    return cpu_dot_features(s, a, x, y, shared_scratch(s));
}

static lath_status rows_add_all_features(stream *s, weight *rows, const float *by, int64_t n_tok, float *y,
                                         float *memory)
{
    const op_features all = {rows, NULL, rows->rows};
    for (int64_t t = 0; t < n_tok; t++)
        TRY(cpu_add_features(s, &all, by + t * rows->rows, y + t * op_row_floats(rows->cols), memory));
    return LATH_OK;
}

const backend_ops *backend_cpu_rows(void)
{
    static const backend_ops ops = {
        .name = "cpu rows",
        .gather = rows_gather,
        .linear = rows_linear,
        .norm = rows_norm,
        .copy = rows_copy,
        .clear = rows_clear,
        .take_rows = rows_take_rows,
        .add_rows = rows_add_rows,
        .map = rows_map,
        .glu = rows_glu,
        .rope_table = rows_rope_table,
        .rope = rows_rope,
        .kv_append = rows_kv_append,
        .attention = rows_attention,
        .conv = rows_conv,
        .delta = rows_delta,
        .read_rows = rows_read_rows,
        .write_rows = rows_write_rows,
        .attention_weights = rows_attention_weights,
        .dot_features = rows_dot_features,
        .add_features = cpu_add_features,
        .add_all_features = rows_add_all_features,
        .view_floats = rows_view_floats,
        .make_view = rows_make_view,
        .slice = rows_slice,
        .tokens = rows_tokens,
        .scratch_floats = rows_scratch_floats,
    };
    return &ops;
}
