/* SPDX-License-Identifier: Apache-2.0
 *
 * embed.c: texts to vectors. Texts are taken in order; each is tokenised (with its prompt in front) and handed to the runner, which packs batches:
 *
 *     tokenise -> pack -> encoder forward -> pool -> dense / normalise steps -> cut to dim -> normalise -> rows of the caller's matrix
 *
 * Vectors of inner layers are pooled while the forward passes by (its trace points); Dense modules are left out, they are made for the last layer.
 * With a cache a text is looked up after tokenising; only what is not found is packed.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "engine/embcache.h"
#include "engine/runner.h"

enum { KEEP_AT_ONCE = 64 };

struct lath_embedder {
    const lath_model *model;
    lath_embed_options opts;
    kern_pool_mode modes[ST_MAX_MODES];
    int32_t n_modes;
    int64_t d_pooled, d_steps, dim; /* after pooling, after the steps, of a vector */
    bool normalize;                 /* at the end */
    bool inner; /* vectors of layers first_layer .. first_layer + n_out_layers - 1 instead of the model's own */
    int32_t first_layer, n_out_layers;
    trace_sink sink;
    double seconds_tokenize, seconds_cache;
    uint64_t n_texts, n_tokens;
    int32_t max_tokens;
    char *prompt; /* owned copy, prompt_len bytes + 0 */
    size_t prompt_len;
    int64_t pool_skip; /* tokens of the prompt that pooling leaves out */
    arena scratch;     /* of the tokenizer */
    tok_encoding enc;
    buf text;              /* prompt + text */
    embcache_space *cache; /* NULL: none */
    runner run;
};

/* ------------------------------------------------------------------------------------------------------------ options */

static lath_status check_kind(const lath_model *m, lath_error *err)
{
    const bool scores = m->kind == MODEL_CROSS_ENCODER;
    if (!scores && m->st.n_score_ids == 0) return LATH_OK;
    return err_set(err, LATH_ERR_UNSUPPORTED,
                   "%s: %.80s is a %s: it scores pairs of texts and gives no embeddings (use lath rerank)", m->path,
                   m->class_name ? m->class_name : "it", scores ? "cross-encoder" : "reranker");
}

static lath_status check_options(const lath_embed_options *o, const lath_model *m, lath_error *err)
{
    if (o->struct_size != sizeof(*o))
        return err_set(err, LATH_ERR_USAGE, "lath_embedder_create: options of another version");
    if ((int)o->pooling < 0 || o->pooling >= LATH_POOLING_CONCAT)
        return err_set(err, LATH_ERR_USAGE, "pooling: no such value: %d", (int)o->pooling);
    if (o->normalize < 0 || o->normalize > 2)
        return err_set(err, LATH_ERR_USAGE, "normalize: %d, want 0, 1 or 2", o->normalize);
    if (o->dim < 0) return err_set(err, LATH_ERR_USAGE, "dim: %d, want 1 or more", o->dim);
    if (o->batch_tokens < 0 || o->batch_tokens > RUNNER_TOKENS_MOST)
        return err_set(err, LATH_ERR_USAGE, "batch tokens: %d, want 1 to %d", o->batch_tokens, RUNNER_TOKENS_MOST);
    if (o->layer < LATH_LAYER_ALL || o->layer > m->arch.dims.n_layers)
        return err_set(err, LATH_ERR_USAGE, "layer: %d, want 0 to %d", o->layer, m->arch.dims.n_layers);
    int32_t least = tok_n_template(m->tokenizer.tok) + 1;
    if (o->max_tokens != 0 && (o->max_tokens < least || o->max_tokens > m->max_tokens))
        return err_set(err, LATH_ERR_USAGE, "max tokens: %d, want %d to %d (the model's window)", o->max_tokens, least,
                       m->max_tokens);
    return LATH_OK;
}

/* How many tokens of each text are the prompt's, as the reference counts: those of the prompt alone with its template, less a last special one. */
static lath_status count_prompt(lath_embedder *e, lath_error *err)
{
    const lath_model *m = e->model;
    if (m->st.include_prompt || e->prompt_len == 0) return LATH_OK;
    tok_encode_options o = {true, true, e->max_tokens};
    TRY(tok_encode(m->tokenizer.tok, &e->scratch, e->prompt, e->prompt_len, &o, &e->enc, err));
    arena_reset(&e->scratch);
    e->pool_skip = (int64_t)e->enc.n;
    if (e->enc.n && tok_is_special(m->tokenizer.tok, e->enc.ids[e->enc.n - 1])) e->pool_skip--;
    return LATH_OK;
}

/* Numbers of the widest row between pooling and the vector. */
static int64_t widest_row(const lath_model *m, int64_t d_pooled)
{
    int64_t widest = d_pooled;
    for (int32_t i = 0; i < m->st.n_steps; i++) {
        const st_step *step = &m->st.steps[i];
        if (step->kind == ST_DENSE && step->d_out > widest) widest = step->d_out;
    }
    return widest;
}

uint64_t embed_batch_bytes(const lath_model *m) { return runner_batch_bytes(m, widest_row(m, m->d_pooled)); }

static lath_status tail(void *ctx, const runner *r, const fwd *f, view hidden, view *rows);
static lath_status see_layer(void *ctx, const fwd *f, trace_event *event);
static lath_status keep(void *ctx, const runner *r, lath_error *err);

static lath_status set_shape(lath_embedder *e, lath_error *err)
{
    const lath_model *m = e->model;
    const lath_embed_options *o = &e->opts;
    e->n_modes = m->st.n_modes;
    memcpy(e->modes, m->st.modes, sizeof(e->modes));
    if (o->pooling != LATH_POOLING_AUTO) {
        e->n_modes = 1;
        (void)st_pooling_mode(o->pooling, &e->modes[0]);
    }
    e->d_pooled = m->arch.dims.d_model * e->n_modes;
    e->d_steps = e->d_pooled;
    e->inner = o->layer != LATH_LAYER_FINAL;
    e->first_layer = o->layer == LATH_LAYER_ALL ? 0 : o->layer;
    e->n_out_layers = o->layer == LATH_LAYER_ALL ? m->arch.dims.n_layers + 1 : 1;
    for (int32_t i = 0; i < m->st.n_steps && !e->inner; i++) {
        const st_step *s = &m->st.steps[i];
        if (s->kind != ST_DENSE) continue;
        if (s->d_in != e->d_steps)
            return err_set(err, LATH_ERR_USAGE,
                           "pooling: the model's Dense module takes %lld numbers, this pooling gives %lld",
                           (long long)s->d_in, (long long)e->d_steps);
        e->d_steps = s->d_out;
    }
    if (o->dim > e->d_steps)
        return err_set(err, LATH_ERR_USAGE, "dim: %d, the model's vectors have %lld", o->dim, (long long)e->d_steps);
    const int64_t own = m->st.truncate_dim && m->st.truncate_dim < e->d_steps ? m->st.truncate_dim : e->d_steps;
    e->dim = o->dim ? o->dim : own;
    e->normalize = o->normalize == 2 || (o->normalize == 1 && m->normalized);
    e->max_tokens = o->max_tokens ? o->max_tokens : m->max_tokens;
    const int64_t widest = e->inner ? e->n_out_layers * e->d_pooled : widest_row(m, e->d_pooled);
    runner_init(&e->run, m, "text", o->batch_tokens, widest, e->n_out_layers * e->dim);
    e->sink = (trace_sink){.see = see_layer, .ctx = e};
    e->run.trace = e->inner ? &e->sink : NULL;
    e->run.tail = tail;
    e->run.keep = keep;
    e->run.ctx = e;
    e->run.progress = o->progress;
    e->run.progress_ctx = o->progress_ctx;
    return LATH_OK;
}

/* The cache's space for this model and these settings: all that decides the bits of a vector beside its tokens and how
 * many of them pooling leaves out. Window, prompt and truncation only decide the tokens; batches and threads nothing. */
static lath_status join_cache(lath_embedder *e, lath_error *err)
{
    const lath_embed_options *o = &e->opts;
    char settings[256];
    uint64_t model[2];
    if (!o->cache) return LATH_OK;
    size_t at = (size_t)snprintf(settings, sizeof(settings),
                                 "lath=%s isa=%s precision=exact layer=%d dim=%lld cut=%d normalize=%d pooling",
                                 lath_version(), e->model->rt->kern.isa, o->layer, (long long)e->dim,
                                 o->dim && e->dim < e->d_steps, e->normalize);
    for (int32_t i = 0; i < e->n_modes && at < sizeof(settings); i++)
        at += (size_t)snprintf(settings + at, sizeof(settings) - at, "%c%d", i ? '+' : '=', (int)e->modes[i]);
    if (at >= sizeof(settings)) return err_set(err, LATH_ERR_LIMIT, "the settings of the embedder are too long");
    TRY(lath_model_get_identity(e->model, model, err));
    return embcache_space_get(o->cache, model, settings, e->run.d_out, &e->cache, err);
}

lath_status lath_embedder_create(const lath_model *model, const lath_embed_options *opts, lath_embedder **out,
                                 lath_error *err)
{
    static const lath_embed_options defaults = LATH_EMBED_OPTIONS_INIT;
    err_clear(err);
    if (!opts) opts = &defaults;
    if (!model || !out) return err_set(err, LATH_ERR_USAGE, "lath_embedder_create: an argument is missing");
    TRY(check_kind(model, err));
    TRY(check_options(opts, model, err));
    const char *prompt;
    size_t prompt_len;
    TRY(st_choose_prompt(&model->st, opts->prompt_name, opts->prompt_text, &prompt, &prompt_len, err));
    const lath_allocator *alloc = &model->rt->alloc;
    lath_embedder *e = alloc_zero(alloc, sizeof(*e));
    if (!e) return err_nomem(err, sizeof(*e));
    e->model = model;
    e->opts = *opts;
    e->opts.prompt_name = e->opts.prompt_text = NULL;
    arena_init(&e->scratch, alloc);
    buf_init(&e->text, alloc, SIZE_MAX / 2);
    lath_status st = LATH_OK;
    e->prompt_len = prompt_len;
    e->prompt = alloc_zero(alloc, prompt_len + 1);
    if (!e->prompt)
        st = err_nomem(err, prompt_len + 1);
    else
        memcpy(e->prompt, prompt, prompt_len);
    if (st == LATH_OK) st = set_shape(e, err);
    if (st == LATH_OK) st = count_prompt(e, err);
    if (st == LATH_OK) st = join_cache(e, err);
    if (st != LATH_OK)
        lath_embedder_destroy(e);
    else
        *out = e;
    return st;
}

void lath_embedder_destroy(lath_embedder *e)
{
    if (!e) return;
    const lath_allocator *alloc = &e->model->rt->alloc;
    runner_deinit(&e->run);
    alloc_release(alloc, e->prompt, e->prompt_len + 1);
    buf_deinit(&e->text);
    tok_encoding_release(e->model->tokenizer.tok, &e->enc);
    arena_deinit(&e->scratch);
    alloc_release(alloc, e, sizeof(*e));
}

int64_t lath_embedder_dim(const lath_embedder *e) { return e->dim; }

int32_t lath_embedder_layers(const lath_embedder *e) { return e->n_out_layers; }

lath_status lath_embedder_get_stats(const lath_embedder *e, lath_embed_stats *out, lath_error *err)
{
    err_clear(err);
    if (!e || !out || out->struct_size != sizeof(*out))
        return err_set(err, LATH_ERR_USAGE, "lath_embedder_get_stats: stats of another version");
    out->n_texts = e->n_texts;
    out->n_tokens = e->n_tokens;
    out->seconds_tokenize = e->seconds_tokenize;
    out->seconds_cache = e->seconds_cache;
    out->seconds_forward = e->run.seconds_forward;
    out->seconds_pool = e->run.seconds_tail;
    return LATH_OK;
}

uint64_t lath_embedder_bytes(const lath_embedder *e)
{
    return runner_bytes(&e->run) + e->scratch.total + e->text.cap + sizeof(*e) + e->enc.capacity * 4 * sizeof(int32_t);
}

/* ----------------------------------------------------------------------------------------------------------- the tail */

/* The pooled features through the model's modules to the final vectors. `to` is the other of the two pooled buffers. */
static lath_status run_steps(lath_embedder *e, const fwd *f, view x, float *to, view *out)
{
    const lath_model *m = e->model;
    bool normal = false; /* x is normalised as it stands */
    for (int32_t i = 0; i < m->st.n_steps; i++) {
        st_step *s = (st_step *)&m->st.steps[i];
        bool last = i == m->st.n_steps - 1;
        if (s->kind == ST_DENSE) {
            view y = f->s->ops->make_view(to, x.n_tok, s->d_out);
            TRY(nn_linear(f, &s->dense, s->fn, x, y));
            to = x.data;
            x = y;
            normal = false;
        } else if (!last || e->opts.normalize != 0) { /* the last normalisation is the caller's to leave out */
            TRY(f->s->ops->l2_normalize(f->s, x));
            normal = true;
        }
    }
    bool cut =
        e->opts.dim && e->dim < x.d; /* the model's own truncate_dim does not normalise again: so does the reference */
    x = f->s->ops->slice(x, 0, e->dim);
    if (e->normalize && (cut || !normal)) TRY(f->s->ops->l2_normalize(f->s, x));
    *out = x;
    return LATH_OK;
}

/* hidden: [n_tok, d_model] to pooled: [n_seq, d_pooled]. */
static lath_status pool_tokens(const lath_embedder *e, stream *s, const batch *b, view hidden, view pooled)
{
    for (int32_t i = 0; i < e->n_modes; i++) {
        op_pool p = {e->modes[i], hidden, s->ops->slice(pooled, i * hidden.d, hidden.d), b->start, e->pool_skip};
        TRY(s->ops->pool(s, &p));
    }
    return LATH_OK;
}

/* One layer's vectors, into its place in the rows of all: [n_seq, n_out_layers * dim]. Layer 0 are the embeddings. */
static lath_status pool_layer(lath_embedder *e, stream *s, int32_t layer, view hidden)
{
    const runner *r = &e->run;
    const backend_ops *ops = s->ops;
    const int32_t n_seq = r->pack.b.n_seq;
    if (layer < e->first_layer || layer >= e->first_layer + e->n_out_layers) return LATH_OK;
    view rows = ops->make_view(r->memory[0], n_seq, e->n_out_layers * e->dim);
    view pooled = ops->make_view(r->memory[1], n_seq, e->d_pooled);
    view place = ops->slice(rows, (layer - e->first_layer) * e->dim, e->dim), vector = ops->slice(pooled, 0, e->dim);
    TRY(pool_tokens(e, s, &r->pack.b, hidden, pooled));
    if (e->normalize) TRY(ops->l2_normalize(s, vector));
    return ops->copy(s, vector, place);
}

/* What passes by in the forward. The last layer's is taken at the end: behind the final norm, where there is one. */
static lath_status see_layer(void *ctx, const fwd *f, trace_event *event)
{
    lath_embedder *e = ctx;
    const int32_t layer = event->layer + 1; /* of the embeddings: 0 */
    if (event->point != TRACE_EMBED && event->point != TRACE_RESIDUAL) return LATH_OK;
    return layer < e->model->arch.dims.n_layers ? pool_layer(e, f->s, layer, event->x) : LATH_OK;
}

static lath_status tail(void *ctx, const runner *r, const fwd *f, view hidden, view *rows)
{
    lath_embedder *e = ctx;
    const backend_ops *ops = f->s->ops;
    if (e->inner) {
        *rows = ops->make_view(r->memory[0], f->b->n_seq, e->n_out_layers * e->dim);
        return pool_layer(e, f->s, e->model->arch.dims.n_layers, hidden);
    }
    view pooled = ops->make_view(r->memory[0], f->b->n_seq, e->d_pooled);
    TRY(pool_tokens(e, f->s, f->b, hidden, pooled));
    return run_steps(e, f, pooled, r->memory[1], rows);
}

/* The batch's vectors into the cache. */
static lath_status keep(void *ctx, const runner *r, lath_error *err)
{
    lath_embedder *e = ctx;
    const batch *b = &r->pack.b;
    embcache_item items[KEEP_AT_ONCE];
    size_t n = 0;
    for (int32_t i = 0; e->cache && i < b->n_seq; i++) {
        items[n++] = (embcache_item){b->ids + b->start[i], b->start[i + 1] - b->start[i], e->pool_skip,
                                     r->out + r->row[i] * (size_t)r->d_out};
        if (n < KEEP_AT_ONCE && i + 1 < b->n_seq) continue;
        TRY(embcache_add(e->cache, items, n, err));
        n = 0;
    }
    return LATH_OK;
}

/* ----------------------------------------------------------------------------------------------------------- the call */

static lath_status tokenize(lath_embedder *e, const lath_text *text, size_t index, lath_error *err)
{
    const lath_model *m = e->model;
    const char *data = text->data ? text->data : "";
    size_t len = text->len;
    if (e->prompt_len) {
        buf_clear(&e->text);
        buf_append(&e->text, e->prompt, e->prompt_len);
        buf_append(&e->text, data, len);
        TRY(buf_status(&e->text, err));
        data = e->text.data;
        len = e->text.len;
    }
    tok_encode_options o = {true, true, e->max_tokens};
    lath_status st = tok_encode(m->tokenizer.tok, &e->scratch, data, len, &o, &e->enc, err);
    arena_reset(&e->scratch);
    if (st != LATH_OK) {
        if (err && st == LATH_ERR_INPUT) err->item = (int64_t)index;
        return st;
    }
    if (e->opts.no_truncate && e->enc.n_untruncated > e->enc.n)
        return err_item(err, LATH_ERR_WINDOW, (int64_t)index, "text %zu: %zu tokens, the window is %d", index,
                        e->enc.n_untruncated, e->max_tokens);
    if ((int64_t)e->enc.n <= e->pool_skip)
        return err_item(err, LATH_ERR_WINDOW, (int64_t)index,
                        e->enc.n ? "text %zu: the prompt fills the window, nothing is left to pool"
                                 : "text %zu: no tokens in it",
                        index);
    return LATH_OK;
}

static lath_status embed_all(lath_embedder *e, const lath_text *texts, size_t n, float *vectors,
                             lath_embed_result *results, lath_error *err)
{
    runner_begin(&e->run, vectors, n);
    for (size_t i = 0; i < n; i++) {
        const double begin = clock_now();
        TRY(tokenize(e, &texts[i], i, err));
        const int64_t len = (int64_t)e->enc.n;
        e->n_texts++;
        e->n_tokens += (uint64_t)len;
        const double middle = clock_now();
        e->seconds_tokenize += middle - begin;
        if (results) results[i] = (lath_embed_result){(int32_t)len, e->enc.n_untruncated > e->enc.n};
        bool found = false;
        const embcache_item text = {e->enc.ids, len, e->pool_skip, NULL};
        if (e->cache) {
            TRY(embcache_find(e->cache, &text, vectors + i * (size_t)e->run.d_out, &found, err));
            e->seconds_cache += clock_now() - middle;
        }
        if (!found) TRY(runner_add(&e->run, i, e->enc.ids, e->enc.type_ids, len, err));
    }
    return runner_end(&e->run, err);
}

lath_status lath_embed(lath_embedder *e, const lath_text *texts, size_t n, float *vectors, lath_embed_result *results,
                       lath_error *err)
{
    lath_error local;
    if (!err) err = &local;
    err_clear(err);
    if (!e || (n && (!texts || !vectors))) return err_set(err, LATH_ERR_USAGE, "lath_embed: an argument is missing");
    return n ? embed_all(e, texts, n, vectors, results, err) : LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------- cache in and out */

lath_status lath_cache_export(lath_embedder *e, const char *path, uint64_t *n, lath_error *err)
{
    err_clear(err);
    if (!e || !path) return err_set(err, LATH_ERR_USAGE, "lath_cache_export: an argument is missing");
    if (!e->cache) return err_set(err, LATH_ERR_USAGE, "lath_cache_export: the embedder has no cache");
    return embcache_export(e->cache, path, n, err);
}

lath_status lath_cache_import(lath_embedder *e, const char *path, uint64_t *n, lath_error *err)
{
    err_clear(err);
    if (!e || !path) return err_set(err, LATH_ERR_USAGE, "lath_cache_import: an argument is missing");
    if (!e->cache) return err_set(err, LATH_ERR_USAGE, "lath_cache_import: the embedder has no cache");
    return embcache_import(e->cache, path, n, err);
}
