/* SPDX-License-Identifier: Apache-2.0
 *
 * inspect_lens.c: what final norm and output head make of the stream behind a layer (nostalgebraist 2020, the logit lens), where a token stands there, and what each
 * head and each FFN gave to its logit (Elhage et al. 2021, direct logit attribution).
 *
 * The lens is the model's own forward with no layers: rows are put in where the last layer would have left them, as a batch of their own.
 *
 * An attribution is a direction u of the stream, by which every part of it is multiplied: with final norm y = gamma (x - m) / s + beta (RMS: m = 0), s that of the real
 * stream, w the token's row of the output head and c its factor,
 *
 *     logit = c w . y = u . x + c w . beta      u = c gamma w / s, less its mean where the norm takes the mean off
 */
#include <math.h>
#include <string.h>

#include "arch/arch_head.h"
#include "base/checked.h"
#include "engine/inspect.h"

enum { ALIGN = 64, LENS_ROWS = 128 /* of one product at most: more layers than models have */ };

double inspect_norm(const float *x, int64_t d)
{
    double sum = 0;
    for (int64_t i = 0; i < d; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

static double dot(const double *u, const float *x, int64_t d)
{
    double sum = 0;
    for (int64_t i = 0; i < d; i++) sum += u[i] * (double)x[i];
    return sum;
}

/* A stream with memory for one computation of n rows: `floats` in front, then its scratch. */
typedef struct bench {
    stream s;
    float *block;
    size_t bytes;
} bench;

static lath_status make_bench(const lath_model *m, const backend_ops *ops, int64_t n, size_t floats, bench *b,
                              lath_error *err)
{
    *b = (bench){.s = {.ops = ops, .pool = m->rt->pool, .kern = &m->rt->kern, .integer = m->integer, .err = err}};
    b->s.limits = arch_limits(&m->arch, n, n);
    floats = (floats + 15) / 16 * 16;
    if (!size_mul(floats + ops->scratch_floats(&b->s, &b->s.limits), sizeof(float), &b->bytes))
        return err_nomem(err, SIZE_MAX);
    b->block = alloc_bytes(&m->rt->alloc, b->bytes, ALIGN);
    if (!b->block) return err_nomem(err, b->bytes);
    memset(b->block, 0, b->bytes);
    b->s.scratch = b->block + floats;
    return LATH_OK;
}

static void free_bench(const lath_model *m, bench *b) { alloc_release(&m->rt->alloc, b->block, b->bytes); }

static lath_status check_head(const lath_model *m, const char *call, lath_error *err)
{
    if (m->arch.lm_head.w) return LATH_OK;
    return err_set(err, LATH_ERR_UNSUPPORTED, "%s: %s has no output head", call, m->path);
}

/* ------------------------------------------------------------------------------------------------------------------ lens */

static lath_status put_rows(void *ctx, const fwd *f, trace_event *e)
{
    if (e->point != TRACE_RESIDUAL) return LATH_OK;
    e->changed = true;
    return f->s->ops->write_rows(f->s, e->x, 0, e->x.n_tok, ctx);
}

/* What is behind the last layer, of n <= LENS_ROWS rows. */
static lath_status project(const lath_model *m, const float *rows, int64_t n, float *logits, lath_error *err)
{
    const arch_model *a = &m->arch;
    const backend_ops *ops = m->rt->ops;
    const size_t state = (a->desc->state_floats(a, ops, n) + 15) / 16 * 16;
    const trace_sink sink = {.see = put_rows, .ctx = (void *)rows};
    int32_t ids[LENS_ROWS] = {0};
    packer pack;
    bench b;
    packer_init(&pack, &m->rt->alloc, &a->dims);
    TRY(packer_grow(&pack, n, 1, err));
    packer_clear(&pack);
    packer_add(&pack, ids, NULL, n);
    lath_status st = make_bench(m, ops, n, state + ops->view_floats(n, a->dims.vocab_size), &b, err);
    if (st == LATH_OK) {
        const fwd f = {
            .s = &b.s, .b = &pack.b, .trace = &sink, .first_layer = a->dims.n_layers, .end_layer = a->dims.n_layers};
        const view y = ops->make_view(b.block + state, n, a->dims.vocab_size);
        view x;
        pool_enter(b.s.pool);
        st = a->desc->forward((arch_model *)a, &f, b.block, &x);
        if (st == LATH_OK) st = arch_lm_head_forward(&a->lm_head, &f, x, y);
        if (st == LATH_OK) st = ops->read_rows(&b.s, y, 0, n, logits);
        pool_leave(b.s.pool);
        free_bench(m, &b);
    }
    packer_deinit(&pack);
    return st;
}

lath_status lath_lens(const lath_model *model, const float *rows, size_t n, float *logits, lath_error *err)
{
    err_clear(err);
    if (!model || (n && (!rows || !logits))) return err_set(err, LATH_ERR_USAGE, "lath_lens: an argument is missing");
    TRY(check_head(model, "lath_lens", err));
    const arch_dims *d = &model->arch.dims;
    for (size_t i = 0; i < n; i += LENS_ROWS) {
        const int64_t take = n - i < LENS_ROWS ? (int64_t)(n - i) : LENS_ROWS;
        TRY(project(model, rows + (int64_t)i * d->d_model, take, logits + (int64_t)i * d->vocab_size, err));
    }
    return LATH_OK;
}

/* The stream behind each kept layer at kept position i. */
static void gather_streams(const lath_trace *t, size_t i, float *rows)
{
    const int64_t d = t->model->arch.dims.d_model;
    for (int32_t l = t->first_layer; l < t->end_layer; l++) {
        if (!t->layers[l].kept) continue;
        memcpy(rows, trace_stream(t, l, i), (size_t)d * sizeof(float));
        rows += d;
    }
}

static lath_status lens_at(const lath_trace *t, size_t i, float *logits, lath_error *err)
{
    const lath_allocator *alloc = &t->model->rt->alloc;
    const size_t d = (size_t)t->model->arch.dims.d_model, bytes = (size_t)t->n_kept * d * sizeof(float);
    if (t->n_kept == 0) return LATH_OK;
    float *rows = alloc_zero(alloc, bytes);
    if (!rows) return err_nomem(err, bytes);
    gather_streams(t, i, rows);
    const lath_status st = lath_lens(t->model, rows, (size_t)t->n_kept, logits, err);
    alloc_release(alloc, rows, bytes);
    return st;
}

lath_status lath_trace_lens(const lath_trace *t, int32_t position, float *logits, lath_error *err)
{
    size_t i = 0;
    err_clear(err);
    if (!t || !logits) return err_set(err, LATH_ERR_USAGE, "lath_trace_lens: an argument is missing");
    TRY(check_head(t->model, "lath_trace_lens", err));
    TRY(trace_find(t, position, "lath_trace_lens", &i, err));
    return lens_at(t, i, logits, err);
}

static lath_status check_end(const lath_trace *t, const char *call, lath_error *err)
{
    TRY(check_head(t->model, call, err));
    const int32_t n = t->model->arch.dims.n_layers;
    if (t->final_passed && t->end_layer == n) return LATH_OK;
    return err_set(err, LATH_ERR_USAGE, "%s: the last layers did not run: %d of %d", call, t->end_layer, n);
}

/* As a session computes the logits of a token. */
static lath_status final_logits(const lath_trace *t, size_t i, float *logits, lath_error *err)
{
    const lath_model *m = t->model;
    const backend_ops *ops = backend_cpu_rows();
    const int64_t d = m->arch.dims.d_model, vocab = m->arch.dims.vocab_size;
    const size_t in = ops->view_floats(1, d);
    bench b;
    TRY(make_bench(m, ops, 1, in + ops->view_floats(1, vocab), &b, err));
    const fwd f = {.s = &b.s};
    const view x = ops->make_view(b.block, 1, d), y = ops->make_view(b.block + in, 1, vocab);
    pool_enter(b.s.pool);
    lath_status st = ops->write_rows(&b.s, x, 0, 1, t->final + (int64_t)i * d);
    if (st == LATH_OK) st = arch_lm_head_forward(&m->arch.lm_head, &f, x, y);
    if (st == LATH_OK) st = ops->read_rows(&b.s, y, 0, 1, logits);
    pool_leave(b.s.pool);
    free_bench(m, &b);
    return st;
}

lath_status lath_trace_logits(const lath_trace *t, int32_t position, float *logits, lath_error *err)
{
    size_t i = 0;
    err_clear(err);
    if (!t || !logits) return err_set(err, LATH_ERR_USAGE, "lath_trace_logits: an argument is missing");
    TRY(check_end(t, "lath_trace_logits", err));
    TRY(trace_find(t, position, "lath_trace_logits", &i, err));
    return final_logits(t, i, logits, err);
}

/* ------------------------------------------------------------------------------------------------------------- direction */

/* The factor by which a norm of x is linear: u := gamma u / s, less its mean where the norm takes that off. */
static void through_norm(const op_norm *norm, const float *x, int64_t d, double *u)
{
    double mean = 0, square = 0, sum = 0;
    for (int64_t i = 0; norm->kind == NORM_LAYER && i < d; i++) mean += (double)x[i] / (double)d;
    for (int64_t i = 0; i < d; i++) square += ((double)x[i] - mean) * ((double)x[i] - mean);
    const double s = 1 / sqrt(square / (double)d + (double)norm->eps);
    for (int64_t i = 0; i < d; i++) {
        u[i] *= s * (double)norm->gamma.data[i];
        sum += u[i];
    }
    for (int64_t i = 0; norm->kind == NORM_LAYER && i < d; i++) u[i] -= sum / (double)d;
}

/* The token's row of the output head, times its factor. */
static lath_status head_row(const lath_model *m, int32_t token, double *u, lath_error *err)
{
    const backend_ops *ops = backend_cpu_rows();
    const int64_t d = m->arch.dims.d_model;
    bench b;
    TRY(make_bench(m, ops, 1, ops->view_floats(1, d) + (size_t)d, &b, err));
    float *row = b.block + ops->view_floats(1, d);
    const op_gather_source source = {m->arch.lm_head.w, &token};
    const op_gather g = {&source, 1, m->arch.lm_head.scale, ops->make_view(b.block, 1, d)};
    pool_enter(b.s.pool);
    lath_status st = ops->gather(&b.s, &g);
    if (st == LATH_OK) st = ops->read_rows(&b.s, g.y, 0, 1, row);
    pool_leave(b.s.pool);
    for (int64_t i = 0; st == LATH_OK && i < d; i++) u[i] = (double)row[i];
    free_bench(m, &b);
    return st;
}

/* u [d] of the token at kept position i, and the part of its logit that is no part of the stream. */
static lath_status direction(const lath_trace *t, size_t i, int32_t token, double *u, double *constant, lath_error *err)
{
    const arch_model *m = &t->model->arch;
    const int64_t d = m->dims.d_model;
    TRY(head_row(t->model, token, u, err));
    *constant = 0;
    if (!m->final_norm->gamma.data) return LATH_OK;
    if (m->final_norm->beta.data) *constant = dot(u, m->final_norm->beta.data, d);
    through_norm(m->final_norm, trace_stream(t, t->end_layer - 1, i), d, u);
    return LATH_OK;
}

static lath_status check_token(const lath_trace *t, const char *call, int32_t token, lath_error *err)
{
    const int32_t n = t->model->arch.dims.vocab_size;
    if (token >= 0 && token < n) return LATH_OK;
    return err_set(err, LATH_ERR_USAGE, "%s: token %d, the model has 0 to %d", call, token, n - 1);
}

/* What passed the point, times u; 0 where it was not passed. */
static double part(const lath_trace *t, int32_t layer, trace_point point, size_t i, const double *u)
{
    const trace_layer *k = &t->layers[layer];
    const int64_t d = t->model->arch.dims.d_model;
    return k->rows[point] && k->passed & 1u << point ? dot(u, k->rows[point] + (int64_t)i * d, d) : 0;
}

/* ---------------------------------------------------------------------------------------------------------------- answer */

static void place_token(const float *logits, int32_t n, int32_t token, lath_answer_step *s)
{
    double most = -INFINITY, sum = 0;
    s->rank = 1;
    s->logit = logits[token];
    for (int32_t i = 0; i < n; i++) {
        s->rank += logits[i] > logits[token];
        most = fmax(most, (double)logits[i]);
    }
    for (int32_t i = 0; i < n; i++) sum += exp((double)logits[i] - most);
    s->prob = (float)(exp((double)logits[token] - most) / sum);
}

static lath_status answer(const lath_trace *t, size_t i, int32_t token, double *u, float *logits,
                          lath_answer_step *steps, lath_error *err)
{
    const arch_dims *d = &t->model->arch.dims;
    double constant;
    TRY(direction(t, i, token, u, &constant, err));
    TRY(lens_at(t, i, logits, err));
    for (int32_t l = t->first_layer; l < t->end_layer; l++) {
        if (!t->layers[l].kept) continue;
        *steps = (lath_answer_step){.layer = l,
                                    .attn_logit = (float)part(t, l, TRACE_ATTN_OUT, i, u),
                                    .ffn_logit = (float)part(t, l, TRACE_FFN_OUT, i, u),
                                    .residual_norm = (float)inspect_norm(trace_stream(t, l, i), d->d_model)};
        place_token(logits, d->vocab_size, token, steps++);
        logits += d->vocab_size;
    }
    return LATH_OK;
}

lath_status lath_trace_answer(const lath_trace *t, int32_t position, int32_t token, lath_answer_step *steps,
                              lath_error *err)
{
    static const char call[] = "lath_trace_answer";
    size_t i = 0;
    err_clear(err);
    if (!t || !steps) return err_set(err, LATH_ERR_USAGE, "%s: an argument is missing", call);
    TRY(check_end(t, call, err));
    TRY(trace_find(t, position, call, &i, err));
    TRY(check_token(t, call, token, err));
    const lath_allocator *alloc = &t->model->rt->alloc;
    const size_t d = (size_t)t->model->arch.dims.d_model * sizeof(double),
                 all = (size_t)t->n_kept * (size_t)t->model->arch.dims.vocab_size * sizeof(float);
    double *u = alloc_zero(alloc, d);
    float *logits = all ? alloc_bytes(alloc, all, ALIGN) : NULL;
    const lath_status st = u && (logits || !all) ? answer(t, i, token, u, logits, steps, err) : err_nomem(err, d + all);
    alloc_release(alloc, u, d);
    alloc_release(alloc, logits, all);
    return st;
}

/* ----------------------------------------------------------------------------------------------------------- attribution */

/* Memory of an attribution: each head alone, [H, H * size] and what the output projection makes of it, [H, d]. */
typedef struct heads_work {
    bench b;
    float *plain, *sum; /* [H, d], [d] */
    double *u, *v;      /* [d] of the stream, and of what heads add before the norm behind them */
    double *doubles;
    size_t n_doubles;
    int64_t most; /* numbers of the widest row of HEADS */
} heads_work;

static int64_t widest_heads(const lath_trace *t)
{
    int64_t most = 0;
    for (int32_t l = t->first_layer; l < t->end_layer; l++)
        if (t->layers[l].d[TRACE_HEADS] > most) most = t->layers[l].d[TRACE_HEADS];
    return most;
}

static lath_status make_heads_work(const lath_trace *t, heads_work *w, lath_error *err)
{
    const lath_model *m = t->model;
    const backend_ops *ops = m->rt->ops;
    const int64_t d = m->arch.dims.d_model, most = widest_heads(t);
    *w = (heads_work){.most = most, .n_doubles = 2 * (size_t)d * sizeof(double)};
    w->doubles = alloc_zero(&m->rt->alloc, w->n_doubles);
    if (!w->doubles) return err_nomem(err, w->n_doubles);
    w->u = w->doubles;
    w->v = w->u + d;
    const size_t views = ops->view_floats(t->n_heads, most) + ops->view_floats(t->n_heads, d);
    const size_t plain = (size_t)(t->n_heads * (most > d ? most : d)) + (size_t)d;
    TRY(make_bench(m, ops, t->n_heads, views + plain, &w->b, err));
    w->b.s.integer = false; /* parts of a row have another scale than the row */
    w->plain = w->b.block + views;
    w->sum = w->plain + plain - d;
    return LATH_OK;
}

static void free_heads_work(const lath_model *m, heads_work *w)
{
    free_bench(m, &w->b);
    alloc_release(&m->rt->alloc, w->doubles, w->n_doubles);
}

/* What the output projection makes of each head of the layer alone, without bias: w->plain [H, d]. */
static lath_status project_heads(const lath_trace *t, int32_t layer, size_t i, nn_linear_w *o, heads_work *w)
{
    const trace_layer *k = &t->layers[layer];
    stream *s = &w->b.s;
    const int64_t n = k->n_heads, all = k->d[TRACE_HEADS], size = all / n, d = t->model->arch.dims.d_model;
    const float *row = k->rows[TRACE_HEADS] + (int64_t)i * all;
    const view x = s->ops->make_view(w->b.block, n, all),
               y = s->ops->make_view(w->b.block + s->ops->view_floats(n, all), n, d);
    const op_linear product = {&o->w, {0}, KERN_FN_NONE, y};
    memset(w->plain, 0, (size_t)(n * all) * sizeof(float));
    for (int64_t h = 0; h < n; h++) memcpy(w->plain + h * all + h * size, row + h * size, (size_t)size * sizeof(float));
    TRY(s->ops->write_rows(s, x, 0, n, w->plain));
    TRY(s->ops->linear(s, x, &product, 1));
    return s->ops->read_rows(s, y, 0, n, w->plain);
}

/* Logits of the layer's heads: out [n_heads]. */
static lath_status attribute_heads(const lath_trace *t, int32_t layer, size_t i, heads_work *w, float *out)
{
    const arch_model *m = &t->model->arch;
    const int64_t d = m->dims.d_model;
    arch_heads_out of;
    m->heads_out(m, layer, &of);
    TRY(project_heads(t, layer, i, of.o, w));
    for (int64_t j = 0; j < d; j++) {
        double sum = of.o->bias.data ? (double)of.o->bias.data[j] : 0;
        for (int32_t h = 0; h < t->layers[layer].n_heads; h++) sum += (double)w->plain[h * d + j];
        w->sum[j] = (float)sum;
        w->v[j] = w->u[j] * (double)of.scale;
    }
    if (of.post_norm) through_norm(of.post_norm, w->sum, d, w->v);
    for (int32_t h = 0; h < t->layers[layer].n_heads; h++) out[h] = (float)dot(w->v, w->plain + h * d, d);
    return LATH_OK;
}

static bool has_heads(const lath_trace *t, int32_t layer)
{
    const trace_layer *k = &t->layers[layer];
    return k->rows[TRACE_HEADS] && k->passed & 1u << TRACE_HEADS;
}

/* All of a layer; `total`: u times what the stream grew by. */
static lath_status attribute_layer(const lath_trace *t, int32_t layer, size_t i, double total, heads_work *w,
                                   lath_attribution *out)
{
    double heads = 0;
    const double added = part(t, layer, TRACE_FFN_OUT, i, w->u);
    if (out->heads) {
        float *of = out->heads + (int64_t)layer * t->n_heads;
        memset(of, 0, (size_t)t->n_heads * sizeof(*of));
        if (has_heads(t, layer)) TRY(attribute_heads(t, layer, i, w, of));
        for (int32_t h = 0; h < t->n_heads; h++) heads += (double)of[h];
    }
    if (out->ffn) out->ffn[layer] = (float)added;
    if (out->rest) out->rest[layer] = (float)(total - heads - added);
    return LATH_OK;
}

static lath_status attribute(const lath_trace *t, size_t i, int32_t token, heads_work *w, lath_attribution *out,
                             lath_error *err)
{
    const int64_t d = t->model->arch.dims.d_model;
    double constant;
    TRY(direction(t, i, token, w->u, &constant, err));
    double before = dot(w->u, trace_stream(t, -1, i), d);
    out->embed = (float)before;
    out->constant = (float)constant;
    pool_enter(w->b.s.pool);
    lath_status st = LATH_OK;
    for (int32_t l = 0; st == LATH_OK && l < t->end_layer; l++) {
        const double behind = dot(w->u, trace_stream(t, l, i), d);
        st = attribute_layer(t, l, i, behind - before, w, out);
        before = behind;
    }
    pool_leave(w->b.s.pool);
    const double cap = (double)t->model->arch.lm_head.softcap, logit = before + constant;
    out->logit = (float)logit;
    out->softcapped_logit = (float)(cap != 0 ? cap * tanh(logit / cap) : logit);
    return st;
}

/* From the embeddings to the end, every layer, and its heads where they are wanted. */
static lath_status check_whole(const lath_trace *t, const char *call, bool heads, lath_error *err)
{
    TRY(check_end(t, call, err));
    if (t->first_layer > 0 || t->n_kept != t->model->arch.dims.n_layers)
        return err_set(err, LATH_ERR_USAGE, "%s: it wants all layers, %d of %d were kept", call, t->n_kept,
                       t->model->arch.dims.n_layers);
    if (heads && !(t->what & LATH_TRACE_HEADS))
        return err_set(err, LATH_ERR_USAGE, "%s: heads were not kept (LATH_TRACE_HEADS)", call);
    return LATH_OK;
}

lath_status lath_trace_attribution(const lath_trace *t, int32_t position, int32_t token, lath_attribution *out,
                                   lath_error *err)
{
    static const char call[] = "lath_trace_attribution";
    size_t i = 0;
    heads_work w;
    err_clear(err);
    if (!t || !out || out->struct_size != sizeof(*out))
        return err_set(err, LATH_ERR_USAGE, "%s: %s", call,
                       t && out ? "a struct of another version" : "an argument is missing");
    TRY(check_whole(t, call, out->heads, err));
    TRY(trace_find(t, position, call, &i, err));
    TRY(check_token(t, call, token, err));
    lath_status st = make_heads_work(t, &w, err);
    if (st == LATH_OK) st = attribute(t, i, token, &w, out, err);
    free_heads_work(t->model, &w);
    return st;
}
