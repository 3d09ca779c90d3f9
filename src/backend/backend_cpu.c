/* SPDX-License-Identifier: Apache-2.0
 *
 * backend_cpu.c: ops on the thread pool. Activations lie in panels of 16 tokens (kern.h). An op is cut into tasks that workers claim; how it is cut
 * depends on the number of threads, what an output element becomes does not: each is computed by one kernel call in a fixed order.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "backend/backend_cpu.h"

enum { LANES = KERN_LANES, TASKS_PER_THREAD = 4, CHECK_ELEMENTS = 1 << 18 }; /* whole blocks */

static int64_t n_panels(int64_t n_tok) { return cpu_ceil_div(n_tok, LANES); }
/* Lanes in use of panel p. */
static int32_t lanes_of(int64_t n_tok, int64_t p)
{
    int64_t rest = n_tok - p * LANES;
    return (int32_t)(rest < LANES ? rest : LANES);
}

/* ------------------------------------------------------------------------------------------------------------ views */

static size_t panels_view_floats(int64_t n_tok, int64_t d) { return (size_t)(n_panels(n_tok) * d * LANES); }

static view panels_make_view(float *memory, int64_t n_tok, int64_t d)
{
    return (view){.data = memory, .n_tok = n_tok, .d = d, .stride = d * LANES};
}

static view panels_slice(view x, int64_t first, int64_t d)
{
    assert(first >= 0 && d >= 0 && first + d <= x.d);
    return (view){.data = x.data + first * LANES, .n_tok = x.n_tok, .d = d, .stride = x.stride};
}

static view panels_tokens(view x, int64_t first, int64_t n)
{
    assert(first % LANES == 0 && first + n <= x.n_tok);
    return (view){.data = x.data + first / LANES * x.stride, .n_tok = n, .d = x.d, .stride = x.stride};
}

lath_status cpu_run(stream *s, pool_fn fn, void *ctx, int64_t n_tasks)
{
    if (pool_run(s->pool, fn, ctx, n_tasks)) return LATH_OK;
    return err_set(s->err, LATH_ERR_INTERRUPTED, "interrupted");
}

/* Per worker: what linear wants, or the scores of one query panel against all keys, from the start of the first one's panel. */
static size_t worker_floats(const stream *s, const op_limits *most)
{
    size_t scores = (size_t)((n_panels(most->n_keys) + 1) * LANES * LANES), n = s->kern->linear_scratch;
    if (scores > n) n = scores;
    const size_t delta = cpu_delta_floats(most);
    if (delta > n) n = delta;
    return (n + 15) & ~(size_t)15;
}

/* | what each worker uses | what one op makes for all of them: keys and values of a head as floats, or x as 8-bit numbers | */
static size_t panels_scratch_floats(const stream *s, const op_limits *most)
{
    const size_t wide = most->half ? (size_t)(2 * (n_panels(most->n_keys) + 1) * most->head_dim * LANES) : 0;
    const size_t xq = s->integer ? cpu_xq_most(most->d, kern_xq_panel_bytes) / sizeof(float) : 0;
    const size_t shared = xq * (size_t)n_panels(most->n_tok);
    return worker_floats(s, most) * (size_t)pool_size(s->pool) + (shared > wide ? shared : wide);
}

static float *worker_scratch(const stream *s, int32_t worker)
{
    return s->scratch + worker_floats(s, &s->limits) * (size_t)worker;
}

/* One op's, once for all workers: keys and values as floats, or activations in 8 bits. */
static float *wide_keys(const stream *s) { return worker_scratch(s, pool_size(s->pool)); }

/* ------------------------------------------------------------------------------------------------------- finite weights */

typedef struct check_job {
    const stream *s;
    const weight *w;
    atomic_int_fast64_t bad; /* smallest index found, or INT64_MAX */
} check_job;

static void check_task(void *ctx, int64_t task, int32_t worker)
{
    (void)worker;
    check_job *j = ctx;
    const tensor *t = j->w->t;
    int64_t count = j->w->rows * j->w->cols, first = task * CHECK_ELEMENTS;
    int64_t n = count - first < CHECK_ELEMENTS ? count - first : CHECK_ELEMENTS;
    int64_t at = j->s->kern->first_nonfinite(t->type, (const char *)j->w->data + dtype_bytes(t->type, first), n);
    if (at < 0) return;
    int_fast64_t seen = atomic_load(&j->bad);
    while (first + at < seen && !atomic_compare_exchange_weak(&j->bad, &seen, first + at)) {
    }
}

/* The first use of a matrix reads all of it once: NaN and infinity are refused by name. */
lath_status cpu_check_finite(stream *s, weight *w)
{
    if (atomic_load_explicit(&w->finite, memory_order_relaxed)) return LATH_OK;
    check_job j = {.s = s, .w = w};
    atomic_init(&j.bad, INT64_MAX);
    TRY(cpu_run(s, check_task, &j, cpu_ceil_div(w->rows * w->cols, CHECK_ELEMENTS)));
    int64_t bad = atomic_load(&j.bad);
    if (bad != INT64_MAX)
        return err_set(s->err, LATH_ERR_FORMAT, "%s: tensor \"%s\": element [%lld,%lld] is not finite", w->file,
                       w->t->name, (long long)(w->row0 + bad / w->cols), (long long)(bad % w->cols));
    atomic_store_explicit(&w->finite, true, memory_order_relaxed);
    return LATH_OK;
}

/* -------------------------------------------------------------------------------------------------------------- gather */

enum { MAX_SOURCES = 4 };

typedef struct gather_job {
    const stream *s;
    const op_gather *a;
    atomic_bool bad;
} gather_job;

static void gather_task(void *ctx, int64_t p, int32_t worker)
{
    (void)worker;
    gather_job *j = ctx;
    const op_gather *a = j->a;
    kern_gather_source src[MAX_SOURCES];
    for (int32_t i = 0; i < a->n_sources; i++) {
        const op_gather_source *o = &a->sources[i];
        src[i] = (kern_gather_source){o->table->data, o->table->t->type, o->index + p * LANES};
    }
    float *y = a->y.data + p * a->y.stride;
    kern_gather_args k = {src, a->n_sources, lanes_of(a->y.n_tok, p), a->y.d, a->scale, y};
    j->s->kern->gather(&k);
    if (j->s->kern->first_nonfinite(DTYPE_F32, y, a->y.d * LANES) >= 0) atomic_store(&j->bad, true);
}

/* Only the rows that are used are looked at: a table may be half of the file. */
lath_status cpu_nonfinite_row(const stream *s, const op_gather *a)
{
    for (int32_t i = 0; i < a->n_sources; i++) {
        const weight *w = a->sources[i].table;
        size_t row_bytes = dtype_bytes(w->t->type, w->cols);
        for (int64_t t = 0; t < a->y.n_tok; t++) {
            int64_t row = a->sources[i].index[t],
                    at = s->kern->first_nonfinite(w->t->type, (const char *)w->data + (size_t)row * row_bytes, w->cols);
            if (at >= 0)
                return err_set(s->err, LATH_ERR_FORMAT, "%s: tensor \"%s\": element [%lld,%lld] is not finite", w->file,
                               w->t->name, (long long)row, (long long)at);
        }
    }
    return err_set(s->err, LATH_ERR_FORMAT, "%s: sums of embedding rows overflow", a->sources[0].table->file);
}

static lath_status panels_gather(stream *s, const op_gather *a)
{
    gather_job j = {.s = s, .a = a};
    atomic_init(&j.bad, false);
    TRY(cpu_run(s, gather_task, &j, n_panels(a->y.n_tok)));
    return atomic_load(&j.bad) ? cpu_nonfinite_row(s, a) : LATH_OK;
}

/* -------------------------------------------------------------------------------------------------------------- linear */

/* Tasks are row chunks of a part times groups of panels; within a group a worker that goes on to the next chunk finds the group's panels in its
 * cache. */
typedef struct linear_job {
    const stream *s;
    view x;
    const op_linear *parts;
    int32_t n_parts;
    int64_t chunk, group;     /* rows, panels of a task */
    int64_t chunks_per_group; /* over all parts */
    unsigned char *xq;        /* NULL, or x in 8 bits */
    int64_t xq_stride;
} linear_job;

static void quantize_task(void *ctx, int64_t p, int32_t worker)
{
    (void)worker;
    const linear_job *j = ctx;
    j->s->kern->quantize_panel(j->parts->w->t->type, j->x.d, j->x.data + p * j->x.stride, j->xq + p * j->xq_stride);
}

static void linear_task(void *ctx, int64_t task, int32_t worker)
{
    const linear_job *j = ctx;
    int64_t g = task / j->chunks_per_group, c = task % j->chunks_per_group;
    const op_linear *part = j->parts;
    for (int64_t n; c >= (n = cpu_ceil_div(part->y.d, j->chunk)); part++) c -= n;
    int64_t panels = n_panels(j->x.n_tok), p0 = g * j->group, p1 = p0 + j->group < panels ? p0 + j->group : panels;
    int64_t n0 = c * j->chunk, n1 = n0 + j->chunk < part->y.d ? n0 + j->chunk : part->y.d;
    kern_linear_args k = {
        .w = part->w->data,
        .type = part->w->t->type,
        .w_stride = (int64_t)dtype_bytes(part->w->t->type, j->x.d),
        .bias = part->bias.data,
        .x = j->x.data,
        .x_stride = j->x.stride,
        .y = part->y.data,
        .y_stride = part->y.stride,
        .k = j->x.d,
        .n0 = n0,
        .n1 = n1,
        .p0 = p0,
        .p1 = p1,
        .last_lanes = lanes_of(j->x.n_tok, p1 - 1),
        .fn = part->fn,
        .scratch = worker_scratch(j->s, worker),
        .xq = j->xq,
        .xq_stride = j->xq_stride,
    };
    j->s->kern->linear(&k);
}

/* 8 bits where the kernels win by it. */
static kern_xq_kind xq_kind(const stream *s, const op_linear *part)
{
    return s->kern->xq_panels ? cpu_xq_kind(s, part) : KERN_XQ_NONE;
}

/* Parts whose weights want x in one form. */
static lath_status run_parts(stream *s, view x, const op_linear *parts, int32_t n_parts)
{
    linear_job j = {.s = s, .x = x, .parts = parts, .n_parts = n_parts};
    int64_t rows = 0, panels = n_panels(x.n_tok), want = (int64_t)pool_size(s->pool) * TASKS_PER_THREAD;
    for (int32_t i = 0; i < n_parts; i++) rows += parts[i].y.d;
    if (xq_kind(s, parts) != KERN_XQ_NONE) {
        j.xq = (unsigned char *)worker_scratch(s, pool_size(s->pool));
        j.xq_stride = (int64_t)kern_xq_panel_bytes(parts->w->t->type, x.d);
        TRY(cpu_run(s, quantize_task, &j, panels));
    }
    int64_t block = s->kern->row_block, groups = cpu_ceil_div(panels, s->kern->panel_group);
    j.group = cpu_ceil_div(panels, groups);
    groups = cpu_ceil_div(panels, j.group);
    int64_t chunks = pool_size(s->pool) == 1 ? 1 : cpu_ceil_div(want, groups);
    j.chunk = cpu_ceil_div(cpu_ceil_div(rows, chunks), block) * block;
    for (int32_t i = 0; i < n_parts; i++) j.chunks_per_group += cpu_ceil_div(parts[i].y.d, j.chunk);
    return cpu_run(s, linear_task, &j, groups * j.chunks_per_group);
}

static lath_status panels_linear(stream *s, view x, const op_linear *parts, int32_t n_parts)
{
    for (int32_t i = 0; i < n_parts; i++) TRY(cpu_check_finite(s, parts[i].w));
    for (int32_t i = 0, n; i < n_parts; i += n) {
        n = cpu_xq_run(s, parts + i, n_parts - i, xq_kind);
        TRY(run_parts(s, x, parts + i, n));
    }
    return LATH_OK;
}

/* --------------------------------------------------------------------------------------------- norms, elementwise, rope */

typedef struct norm_job {
    const stream *s;
    const op_norm_args *a;
} norm_job;

static void norm_task(void *ctx, int64_t p, int32_t worker)
{
    (void)worker;
    const norm_job *j = ctx;
    const op_norm_args *a = j->a;
    kern_norm_args k = {
        .x = a->x.data,
        .r = a->r ? a->r->data : NULL,
        .gamma = a->norm->gamma.data,
        .beta = a->norm->beta.data,
        .y = a->y.data,
        .sum = a->sum ? a->sum->data : NULL,
        .x_stride = a->x.stride,
        .r_stride = a->r ? a->r->stride : 0,
        .y_stride = a->y.stride,
        .d = a->x.d / a->n_groups,
        .n_groups = a->n_groups,
        .p0 = p,
        .p1 = p + 1,
        .last_lanes = lanes_of(a->x.n_tok, p),
        .eps = a->norm->eps,
    };
    (a->norm->kind == NORM_RMS ? j->s->kern->rms_norm : j->s->kern->layer_norm)(&k);
}

static lath_status panels_norm(stream *s, const op_norm_args *a)
{
    assert(!a->sum || a->sum->stride == a->x.stride);
    norm_job j = {s, a};
    return cpu_run(s, norm_task, &j, n_panels(a->x.n_tok));
}

static lath_status panels_map(stream *s, const op_map *a) { return cpu_map(s, a, LANES); }

static lath_status panels_glu(stream *s, kern_fn fn, view gate, view up, view y)
{
    return cpu_glu(s, fn, gate, up, y, LANES);
}

static lath_status panels_copy(stream *s, view x, view y)
{
    (void)s;
    return cpu_copy(x, y, LANES);
}

static lath_status panels_clear(stream *s, view y)
{
    (void)s;
    return cpu_clear(y, LANES);
}

static lath_status panels_take_rows(stream *s, view x, const int32_t *index, view y)
{
    return cpu_move_rows(s, x, index, NULL, y, LANES);
}

static lath_status panels_add_rows(stream *s, view x, const int32_t *index, const float *by, view y)
{
    return cpu_move_rows(s, x, index, by, y, LANES);
}

void cpu_rope_row(const op_rope_table *a, int64_t t, float *cosine, float *sine, int64_t step)
{
    const float pos = (float)a->pos[t], *inv_freq = a->inv_freq + (a->set ? a->set[t] * a->cosine.d : 0);
    for (int64_t i = 0; i < a->cosine.d; i++) {
        const float angle = pos * inv_freq[i];
        cosine[i * step] = (float)cos((double)angle) * a->scale;
        sine[i * step] = (float)sin((double)angle) * a->scale;
    }
}

typedef struct rope_table_job {
    const op_rope_table *a;
} rope_table_job;

static void rope_table_task(void *ctx, int64_t p, int32_t worker)
{
    (void)worker;
    const op_rope_table *a = ((const rope_table_job *)ctx)->a;
    float *c = a->cosine.data + p * a->cosine.stride, *s = a->sine.data + p * a->sine.stride;
    for (int32_t lane = 0; lane < lanes_of(a->cosine.n_tok, p); lane++)
        cpu_rope_row(a, p * LANES + lane, c + lane, s + lane, LANES);
}

static lath_status panels_rope_table(stream *s, const op_rope_table *a)
{
    rope_table_job j = {a};
    return cpu_run(s, rope_table_task, &j, n_panels(a->cosine.n_tok));
}

typedef struct rope_job {
    const stream *s;
    const op_rope *a;
} rope_job;

static void rope_task(void *ctx, int64_t p, int32_t worker)
{
    (void)worker;
    const rope_job *j = ctx;
    const op_rope *a = j->a;
    kern_rope_args k = {
        .x = a->x.data + p * a->x.stride,
        .cosine = a->cosine.data + p * a->cosine.stride,
        .sine = a->sine.data + p * a->sine.stride,
        .n_heads = a->x.d / a->head_dim,
        .head_dim = a->head_dim,
        .n_pairs = a->cosine.d,
        .lanes = LANES,
        .interleaved = a->interleaved,
    };
    j->s->kern->rope(&k);
}

static lath_status panels_rope(stream *s, const op_rope *a)
{
    rope_job j = {s, a};
    return cpu_run(s, rope_task, &j, n_panels(a->x.n_tok));
}

/* ----------------------------------------------------------------------------------------------------------- attention */

typedef struct attention_job {
    const stream *s;
    const op_attention *a;
    int64_t panels, head0;    /* of the queries; the first head of these tasks */
    const float *k, *v;       /* of panel key0 of the only head of keys that is looked at; NULL: where they are kept */
    int64_t key0, key_panels; /* panels */
} attention_job;

/* Task: one head of one query panel; panels of one head follow each other, so that its keys stay in the cache. */
static void attention_task(void *ctx, int64_t task, int32_t worker)
{
    const attention_job *j = ctx;
    const op_attention *a = j->a;
    int64_t h = j->head0 + task / j->panels, p = task % j->panels, kv = h / (a->n_heads / a->n_kv_heads);
    const int64_t hd = a->head_dim, panel = hd * LANES;
    kern_attention_args k = {
        .q = a->q.data + p * a->q.stride + h * panel,
        .k = a->kv ? cpu_kv_head(a->kv, a->kv->k, kv) : a->k.data + kv * panel,
        .v = a->kv ? cpu_kv_head(a->kv, a->kv->v, kv) : a->v.data + kv * panel,
        .kv_stride = a->kv ? panel : a->k.stride,
        .ring = a->kv ? (int32_t)(a->kv->n_slots / LANES) : 0,
        .head_dim = hd,
        .begin = a->begin + p * LANES,
        .end = a->end + p * LANES,
        .lanes = lanes_of(a->q.n_tok, p),
        .scale = a->scale,
        .softcap = a->softcap,
        .bias = a->bias ? a->bias + h * (2 * a->bias_reach + 1) + a->bias_reach : NULL,
        .query0 = p * LANES,
        .out = a->out.data + p * a->out.stride + h * panel,
        .scratch = worker_scratch(j->s, worker),
    };
    if (j->k) {
        k.k = j->k - j->key0 * panel;
        k.v = j->v - j->key0 * panel;
        k.ring = 0;
    }
    j->s->kern->attention(&k);
}

/* Task: a panel of keys or of values, kept as F16, as floats. */
static void widen_task(void *ctx, int64_t task, int32_t worker)
{
    (void)worker;
    const attention_job *j = ctx;
    const op_attention *a = j->a;
    const kv_layer *kv = a->kv;
    const int64_t panel = kv->head_dim * LANES, i = task / 2, head = j->head0 / (a->n_heads / a->n_kv_heads);
    const uint16_t *kept = cpu_kv_head(kv, task % 2 ? kv->v : kv->k, head);
    float *to = (float *)(uintptr_t)(task % 2 ? j->v : j->k) + i * panel;
    j->s->kern->from_half((size_t)panel, kept + (j->key0 + i) % (kv->n_slots / LANES) * panel, to);
}

/* Head of keys by head of keys: floats of all that the batch sees of it, then its queries. A key is widened once for the whole batch. */
static lath_status attend_to_halves(stream *s, const op_attention *a)
{
    const int64_t shared = a->n_heads / a->n_kv_heads, n_tok = a->q.n_tok;
    attention_job j = {.s = s, .a = a, .panels = n_panels(n_tok), .key0 = a->begin[0] / LANES};
    j.key_panels = n_panels(a->end[n_tok - 1]) - j.key0;
    j.k = wide_keys(s);
    j.v = j.k + j.key_panels * a->head_dim * LANES;
    for (int32_t h = 0; h < a->n_kv_heads; h++) {
        j.head0 = h * shared;
        TRY(cpu_run(s, widen_task, &j, 2 * j.key_panels));
        TRY(cpu_run(s, attention_task, &j, j.panels * shared));
    }
    return LATH_OK;
}

static lath_status panels_kv_append(stream *s, view k, view v, kv_layer *kv, int64_t at)
{
    return cpu_kv_append(s, k, v, kv, at, LANES);
}

static lath_status panels_attention(stream *s, const op_attention *a)
{
    if (a->kv && a->kv->half) return attend_to_halves(s, a);
    attention_job j = {.s = s, .a = a, .panels = n_panels(a->q.n_tok)};
    return cpu_run(s, attention_task, &j, j.panels * a->n_heads);
}

static lath_status panels_conv(stream *s, const op_conv *a) { return cpu_conv_panels(s, a); }

static lath_status panels_delta(stream *s, const op_delta *a)
{
    return cpu_delta(s, a, LANES, s->scratch, worker_floats(s, &s->limits));
}

/* ------------------------------------------------------------------------------------------------------ pool, normalise */

typedef struct pool_job {
    const stream *s;
    const op_pool *a;
} pool_job;

static void pool_task(void *ctx, int64_t i, int32_t worker)
{
    (void)worker;
    const pool_job *j = ctx;
    const op_pool *a = j->a;
    kern_pool_args k = {
        .mode = a->mode,
        .x = a->x.data,
        .x_stride = a->x.stride,
        .d = a->x.d,
        .t0 = a->start[i] + a->skip,
        .t1 = a->start[i + 1],
        .first_weight = a->skip + 1,
        .y = a->y.data + i / LANES * a->y.stride + i % LANES,
    };
    j->s->kern->pool(&k);
}

static lath_status panels_pool(stream *s, const op_pool *a)
{
    pool_job j = {s, a};
    return cpu_run(s, pool_task, &j, a->y.n_tok);
}

static lath_status panels_l2_normalize(stream *s, view x)
{
    for (int64_t p = 0; p < n_panels(x.n_tok); p++)
        s->kern->l2_normalize(x.d, lanes_of(x.n_tok, p), x.data + p * x.stride);
    return LATH_OK;
}

static lath_status panels_read_rows(stream *s, view x, int64_t row0, int64_t n, float *out)
{
    (void)s;
    for (int64_t i = 0; i < n; i++) {
        const float *lane = x.data + (row0 + i) / LANES * x.stride + (row0 + i) % LANES;
        for (int64_t f = 0; f < x.d; f++) out[i * x.d + f] = lane[f * LANES];
    }
    return LATH_OK;
}

static lath_status panels_write_rows(stream *s, view x, int64_t row0, int64_t n, const float *in)
{
    (void)s;
    for (int64_t i = 0; i < n; i++) {
        float *lane = x.data + (row0 + i) / LANES * x.stride + (row0 + i) % LANES;
        for (int64_t f = 0; f < x.d; f++) lane[f * LANES] = in[i * x.d + f];
    }
    return LATH_OK;
}

static lath_status panels_attention_weights(stream *s, const op_attention *a, int64_t token, float *out)
{
    return cpu_attention_weights(s, a, token, LANES, out);
}

static lath_status panels_dot_features(stream *s, const op_features *a, const float *x, float *y)
{
    return cpu_dot_features(s, a, x, y, wide_keys(s));
}

static lath_status panels_add_features(stream *s, const op_features *a, const float *by, float *y, float *memory)
{
    return cpu_add_features(s, a, by, y, memory);
}

static lath_status panels_add_all_features(stream *s, weight *rows, const float *by, int64_t n_tok, float *y,
                                           float *memory)
{
    (void)memory;
    return cpu_add_all_panels(s, rows, by, n_tok, y);
}

const backend_ops *backend_cpu(void)
{
    static const backend_ops ops = {
        .name = "cpu",
#define OP(name, args) .name = panels_##name,
#include "backend/ops.def"
#undef OP
        .view_floats = panels_view_floats,
        .make_view = panels_make_view,
        .slice = panels_slice,
        .tokens = panels_tokens,
        .scratch_floats = panels_scratch_floats,
    };
    return &ops;
}
