/* SPDX-License-Identifier: Apache-2.0
 *
 * session.c: tokens go through the model in chunks of a packed batch (panels), a single one as a step (rows): see backend.h. Which of the two depends on
 * how many tokens a call adds, never on how they fall into chunks, so bits depend on the calls alone.
 *
 * A layer that sees all keeps ctx positions. One with a window keeps as many as a whole chunk sees, rounded up to panels, in a ring: position p is in
 * slot p mod n_slots, and the append of a chunk overwrites what no token of it sees. After a rewind the ring has to hold what the next token sees; where it
 * does not any more, the sequence is computed again from its start.
 *
 * A layer that recurs keeps one state, which cannot be cut back: snapshots of it are taken where a sequence is likely to be cut (remember, stops_of): where an
 * append of several tokens begins and ends, at the ends of its chunks, before its last two messages, and now and then while tokens come one by one. A batch
 * has to end before a message for that, and the delta rule rounds otherwise when its chunks begin elsewhere. So here bits depend on the calls and on the
 * tokens of each (where its messages begin), and after a sync or a rewind on where it began to read again; always alike for the same calls.
 */
#include "engine/session.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "engine/inspect.h"

enum { CHUNK = 512, DEFAULT_CTX = 4096, LANES = KERN_LANES, ALIGN_FLOATS = 16, KV_ALIGN = 64 };

/* -------------------------------------------------------------------------------------------------------------- creation */

static lath_status check_options(const lath_model *m, const lath_session_options *o, int32_t *ctx, lath_error *err)
{
    if (o->struct_size != sizeof(*o))
        return err_set(err, LATH_ERR_USAGE, "lath_session_create: options of another version");
    if (!m->arch.lm_head.w) {
        if (m->lm_head_error.status != LATH_OK && err) *err = m->lm_head_error;
        if (m->lm_head_error.status != LATH_OK) return m->lm_head_error.status;
        return err_set(err, LATH_ERR_UNSUPPORTED,
                       "%s: %s is no language model: it has no output head (lath embed, lath rerank)", m->path,
                       m->class_name ? m->class_name : m->arch.desc->name);
    }
    if (!m->arch.desc->window)
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: a %s model does not generate", m->path, m->arch.desc->name);
    const int32_t most = m->arch.dims.max_positions;
    if ((int)o->kv < 0 || o->kv > LATH_KV_F16) return err_set(err, LATH_ERR_USAGE, "kv: no such value: %d", (int)o->kv);
    if (o->ctx < 0 || o->ctx > most)
        return err_set(err, LATH_ERR_USAGE, "ctx: %d, want 1 to %d (the model's window)", o->ctx, most);
    *ctx = o->ctx ? o->ctx : most < DEFAULT_CTX ? most : DEFAULT_CTX;
    return LATH_OK;
}

static int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/* Of a layer that keeps a state instead of keys and values. */
static int64_t recurrent_floats(const arch_model *a, int32_t layer)
{
    return a->desc->recurrent ? a->desc->recurrent(a, layer) : 0;
}

/* What each layer keeps. */
static lath_status plan_kv(lath_session *s, lath_error *err)
{
    const arch_model *a = &s->model->arch;
    s->slack = INT32_MAX;
    s->kv = alloc_array(&s->model->rt->alloc, (size_t)a->dims.n_layers, sizeof(*s->kv));
    if (!s->kv) return err_nomem(err, (size_t)a->dims.n_layers * sizeof(*s->kv));
    for (int32_t i = 0; i < a->dims.n_layers; i++) {
        int64_t window = 0, keep = s->ctx;
        const int64_t recurrent = recurrent_floats(a, i);
        s->recurrent_floats += (size_t)round_up(recurrent, ALIGN_FLOATS);
        if (recurrent) continue;
        TRY(a->desc->window(a, i, &window, err));
        if (window && window + s->chunk < keep) keep = window + s->chunk;
        s->kv[i] = (kv_layer){.n_slots = round_up(keep, LANES),
                              .head_dim = a->dims.head_dim,
                              .n_kv_heads = a->dims.n_kv_heads,
                              .half = s->half};
        if (keep < s->ctx && s->kv[i].n_slots - window < s->slack) s->slack = (int32_t)(s->kv[i].n_slots - window);
        size_t n;
        if (!size_mul(kv_numbers(&s->kv[i]), 2 * kv_size(&s->kv[i]), &n) || !size_add(s->kv_bytes, n, &s->kv_bytes))
            return err_nomem(err, SIZE_MAX);
    }
    snapshots_plan(&s->snaps, s->recurrent_floats, (size_t)a->dims.vocab_size, s->snapshot_budget);
    return LATH_OK;
}

static lath_status make_kv(lath_session *s, lath_error *err)
{
    TRY(plan_kv(s, err));
    if (s->kv_bytes == 0) return LATH_OK; /* all layers recur */
    /* What nobody has written is read by nobody, and takes no memory until then: no large pages. */
    char *at = alloc_bytes(&s->model->rt->alloc, s->kv_bytes, KV_ALIGN);
    if (!at) return err_nomem(err, s->kv_bytes);
    s->kv_block = at;
    for (int32_t i = 0; i < s->model->arch.dims.n_layers; i++) {
        const size_t n = kv_numbers(&s->kv[i]) * kv_size(&s->kv[i]);
        s->kv[i].k = at;
        s->kv[i].v = at + n;
        at += 2 * n;
    }
    return LATH_OK;
}

static lath_status make_recurrent(lath_session *s, lath_error *err)
{
    const arch_model *a = &s->model->arch;
    const size_t bytes = s->recurrent_floats * sizeof(float);
    if (bytes == 0) return LATH_OK;
    s->recurrent = alloc_array(&s->model->rt->alloc, (size_t)a->dims.n_layers, sizeof(*s->recurrent));
    if (!s->recurrent) return err_nomem(err, (size_t)a->dims.n_layers * sizeof(*s->recurrent));
    float *at = s->recurrent_block = alloc_bytes(&s->model->rt->alloc, bytes, KV_ALIGN);
    if (!at) return err_nomem(err, bytes);
    for (int32_t i = 0; i < a->dims.n_layers; i++) {
        const int64_t n = recurrent_floats(a, i);
        s->recurrent[i] = n ? at : NULL;
        at += round_up(n, ALIGN_FLOATS);
    }
    return snapshots_init(&s->snaps, &s->model->rt->alloc, err);
}

/* Parts of the work block, in floats. */
enum { PART_STATE, PART_LAST, PART_LOGITS, PART_SCRATCH, PART_BATCH, PART_IDS, N_PARTS };

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static lath_status plan_work(lath_session *s, size_t parts[N_PARTS], lath_error *err)
{
    const lath_model *m = s->model;
    const arch_model *a = &m->arch;
    s->whole.limits = arch_limits(a, s->chunk, s->ctx);
    s->step.limits = arch_limits(a, BACKEND_ROWS_MOST, s->ctx);
    s->whole.limits.half = s->step.limits.half = s->half;
    parts[PART_STATE] =
        larger(a->desc->state_floats(a, s->whole.ops, s->chunk), a->desc->state_floats(a, s->step.ops, 1));
    parts[PART_LAST] = s->step.ops->view_floats(BACKEND_ROWS_MOST, a->dims.d_model);
    parts[PART_LOGITS] = s->step.ops->view_floats(BACKEND_ROWS_MOST, a->dims.vocab_size);
    parts[PART_SCRATCH] = larger(s->whole.ops->scratch_floats(&s->whole, &s->whole.limits),
                                 s->step.ops->scratch_floats(&s->step, &s->step.limits));
    parts[PART_BATCH] = (size_t)(5 * round_up(s->chunk, LANES) + 2);
    parts[PART_IDS] = (size_t)s->ctx;
    size_t floats = 0;
    for (int i = 0; i < N_PARTS; i++) {
        parts[i] = (size_t)round_up((int64_t)parts[i], ALIGN_FLOATS);
        if (!size_add(floats, parts[i], &floats)) return err_nomem(err, SIZE_MAX);
    }
    return size_mul(floats, sizeof(float), &s->work_bytes) ? LATH_OK : err_nomem(err, SIZE_MAX);
}

static lath_status make_work(lath_session *s, lath_error *err)
{
    size_t parts[N_PARTS];
    TRY(plan_work(s, parts, err));
    float *at = alloc_table(&s->model->rt->alloc, s->work_bytes);
    if (!at) return err_nomem(err, s->work_bytes);
    memset(at, 0, s->work_bytes);
    s->work_block = at;
    s->state = at;
    s->last = s->state + parts[PART_STATE];
    s->logits = s->last + parts[PART_LAST];
    s->whole.scratch = s->step.scratch = s->logits + parts[PART_LOGITS];
    int32_t *arrays = (int32_t *)(void *)(s->whole.scratch + parts[PART_SCRATCH]);
    int32_t **const of_batch[] = {&s->b.ids, &s->b.type_ids, &s->b.pos, &s->b.begin, &s->b.end};
    for (int i = 0; i < 5; i++) *of_batch[i] = arrays + i * round_up(s->chunk, LANES);
    s->b.start = arrays + 5 * round_up(s->chunk, LANES);
    s->b.n_seq = 1;
    s->ids = (int32_t *)(void *)((float *)(void *)arrays + parts[PART_BATCH]);
    return LATH_OK;
}

/* Halves where the weights themselves are rounded to as few bits, unless f32-grade results are asked for. */
static bool keeps_halves(const lath_model *m, lath_kv kv)
{
    uint64_t n = 0, bytes = 0;
    if (kv != LATH_KV_AUTO) return kv == LATH_KV_F16;
    arch_count_weights(&m->arch, &n, &bytes);
    return m->integer && bytes < n * sizeof(float);
}

/* A session without memory, for these options. */
static lath_status begin_session(const lath_model *m, const lath_session_options *opts, lath_session *s,
                                 lath_error *err)
{
    static const lath_session_options defaults = LATH_SESSION_OPTIONS_INIT;
    int32_t ctx = 0;
    TRY(check_options(m, opts ? opts : &defaults, &ctx, err));
    *s = (lath_session){.model = m, .ctx = ctx, .chunk = ctx < CHUNK ? ctx : CHUNK};
    s->half = opts ? keeps_halves(m, opts->kv) : keeps_halves(m, LATH_KV_AUTO);
    if (opts) s->snapshot_budget = opts->snapshot_bytes;
    if (opts) s->progress = opts->progress;
    if (opts) s->progress_ctx = opts->progress_ctx;
    s->whole = (stream){.ops = m->rt->ops, .pool = m->rt->pool, .kern = &m->rt->kern};
    s->whole.integer = m->integer;
    s->step = s->whole;
    s->step.ops = backend_cpu_rows();
    return LATH_OK;
}

lath_status lath_session_create(const lath_model *model, const lath_session_options *opts, lath_session **out,
                                lath_error *err)
{
    lath_session begun;
    err_clear(err);
    if (!model || !out) return err_set(err, LATH_ERR_USAGE, "lath_session_create: an argument is missing");
    TRY(begin_session(model, opts, &begun, err));
    lath_session *s = alloc_zero(&model->rt->alloc, sizeof(*s));
    if (!s) return err_nomem(err, sizeof(*s));
    *s = begun;
    lath_status st = make_kv(s, err);
    if (st == LATH_OK) st = make_recurrent(s, err);
    if (st == LATH_OK) st = make_work(s, err);
    if (st != LATH_OK)
        lath_session_destroy(s);
    else
        *out = s;
    return st;
}

/* Bytes of a token's keys and values, in all layers and in those that see all. */
static lath_status plan_layers(const lath_session *s, lath_session_plan *out, lath_error *err)
{
    const arch_model *a = &s->model->arch;
    const kv_layer kept = {.half = s->half};
    const uint64_t layer = 2 * (uint64_t)a->dims.n_kv_heads * (uint64_t)a->dims.head_dim * kv_size(&kept);
    for (int32_t i = 0; i < a->dims.n_layers; i++) {
        int64_t window = 0;
        if (recurrent_floats(a, i)) {
            out->n_recurrent++;
            continue;
        }
        TRY(a->desc->window(a, i, &window, err));
        out->token_bytes += layer;
        if (!window) out->far_bytes += layer;
        if (!window) continue;
        out->n_windows++;
        if (window > out->window) out->window = window < INT32_MAX ? (int32_t)window : INT32_MAX;
    }
    return LATH_OK;
}

lath_status lath_session_get_plan(const lath_model *model, const lath_session_options *opts, lath_session_plan *out,
                                  lath_error *err)
{
    lath_session s;
    size_t parts[N_PARTS];
    err_clear(err);
    if (!model || !out || out->struct_size != sizeof(*out))
        return err_set(err, LATH_ERR_USAGE, "lath_session_get_plan: %s",
                       model && out ? "a struct of another version" : "an argument is missing");
    TRY(begin_session(model, opts, &s, err));
    const arch_model *a = &model->arch;
    lath_status st = plan_kv(&s, err);
    if (st == LATH_OK) st = plan_work(&s, parts, err);
    if (st != LATH_OK) goto done;
    *out = (lath_session_plan){
        .struct_size = sizeof(*out),
        .ctx = s.ctx,
        .most = a->dims.max_positions,
        .kv_bytes = s.kv_bytes,
        .recurrent_bytes = s.recurrent_floats * sizeof(float),
        .snapshot_bytes = s.snaps.bytes,
        .n_snapshots = s.snaps.n_slots,
        .work_bytes = s.work_bytes,
        .n_kv_heads = a->dims.n_kv_heads,
        .head_dim = (int32_t)a->dims.head_dim,
        .tied = a->lm_head.w == (const weight *)(const void *)((const char *)a->weights + a->desc->rows[0].offset),
    };
    st = plan_layers(&s, out, err);
done:
    alloc_release(&model->rt->alloc, s.kv, (size_t)a->dims.n_layers * sizeof(*s.kv));
    return st;
}

void lath_session_destroy(lath_session *s)
{
    if (!s) return;
    const lath_allocator *alloc = &s->model->rt->alloc;
    const size_t n_layers = (size_t)s->model->arch.dims.n_layers;
    alloc_release(alloc, s->kv_block, s->kv_bytes);
    alloc_release(alloc, s->recurrent_block, s->recurrent_floats * sizeof(float));
    alloc_release(alloc, s->recurrent, s->recurrent ? n_layers * sizeof(*s->recurrent) : 0);
    snapshots_deinit(&s->snaps, alloc);
    alloc_table_release(alloc, s->work_block, s->work_bytes);
    alloc_release(alloc, s->ffn_memory, s->ffn_bytes);
    alloc_release(alloc, s->kv, n_layers * sizeof(*s->kv));
    alloc_release(alloc, s, sizeof(*s));
}

/* --------------------------------------------------------------------------------------------------------------- forward */

static void fill_batch(lath_session *s, const int32_t *ids, int32_t n)
{
    batch *b = &s->b;
    b->n_tok = n;
    b->past = s->n;
    b->start[0] = 0;
    b->start[1] = n;
    for (int32_t t = 0; t < n; t++) {
        b->ids[t] = ids[t];
        b->type_ids[t] = 0;
        b->pos[t] = s->model->arch.dims.pos0 + s->n + t;
        b->begin[t] = 0;
        b->end[t] = s->n + n;
    }
}

/* Logits of n tokens of hidden from `first` on, as a step computes them whatever the rest ran on: the numbers of a position are the same whoever asks. */
static lath_status head(lath_session *s, stream *on, view hidden, int64_t first, int64_t n)
{
    const fwd f = {.s = &s->step};
    const backend_ops *ops = s->step.ops;
    const view x = ops->make_view(s->last, n, hidden.d),
               y = ops->make_view(s->logits, n, s->model->arch.dims.vocab_size);
    for (int64_t i = 0; i < n; i++) TRY(on->ops->read_rows(on, hidden, first + i, 1, s->last + i * x.stride));
    s->logits_stride = y.stride;
    s->last_row = n - 1;
    return arch_lm_head_forward(&s->model->arch.lm_head, &f, x, y);
}

static lath_status all_logits(lath_session *s, stream *on, view hidden, session_see see, void *ctx, lath_error *err)
{
    for (int64_t t = 0, n; t < hidden.n_tok; t += n) {
        n = hidden.n_tok - t < BACKEND_ROWS_MOST ? hidden.n_tok - t : BACKEND_ROWS_MOST;
        TRY(head(s, on, hidden, t, n));
        for (int64_t i = 0; i < n; i++) TRY(see(ctx, s->n + (int32_t)(t + i), s->logits + i * s->logits_stride, err));
    }
    return LATH_OK;
}

static lath_status run_chunk(lath_session *s, stream *on, const int32_t *ids, int32_t n, bool last, session_see see,
                             void *ctx, lath_error *err)
{
    fwd f = {.s = on, .b = &s->b, .trace = s->trace, .kv = s->kv, .recurrent = s->recurrent};
    view hidden;
    inspect_set_ffn(&f, s->ffn, s->ffn_memory);
    fill_batch(s, ids, n);
    on->err = s->step.err = err;
    TRY(s->model->arch.desc->forward((arch_model *)&s->model->arch, &f, s->state, &hidden));
    if (see) return all_logits(s, on, hidden, see, ctx, err);
    return last ? head(s, on, hidden, n - 1, 1) : LATH_OK;
}

static const float *session_logits(const lath_session *s) { return s->logits + s->last_row * s->logits_stride; }

static lath_status check_ids(const lath_session *s, const int32_t *ids, int32_t n, lath_error *err)
{
    const int32_t rows = s->model->arch.dims.vocab_size;
    for (int32_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= rows)
            return err_item(err, LATH_ERR_INPUT, i, "token %d: id %d, the model has %d embedding rows", i, ids[i],
                            rows);
    }
    return LATH_OK;
}

/* What is kept was turned otherwise than a sequence of `length` tokens is. */
static bool is_stale(const lath_session *s, int32_t length)
{
    const arch_desc *d = s->model->arch.desc;
    return s->n > 0 && d->stale && d->stale(&s->model->arch, s->turned, length);
}

/* ----------------------------------------------------------------------------------------------------------- snapshots */

enum { STEPS = 256 /* between those that are taken while tokens come one by one */ };

static void remember(lath_session *s, snapshot_kind kind)
{
    if (s->snaps.n_slots)
        snapshots_take(&s->snaps, s->n, kind, s->recurrent_block, s->has_logits ? session_logits(s) : NULL);
}

/* The session holds its first n <= s->n tokens, or fewer: those of a snapshot where a layer recurs, none where what the next one sees has been overwritten.
 * damaged: the states are of no use even if n tokens are held. */
static void go_back(lath_session *s, int32_t n, bool damaged)
{
    const snapshot *from = NULL;
    if (s->recurrent && (n < s->n || damaged)) {
        from = snapshots_below(&s->snaps, n);
        n = from ? from->at : 0;
    }
    if (n < s->written - s->slack) n = 0; /* a window that the next token sees has been overwritten */
    if (n > 0 && from) {
        snapshots_restore(&s->snaps, from, s->recurrent_block, NULL);
        s->stats.n_restored++;
    }
    snapshots_drop(&s->snaps, n);
    s->n = n;
    s->has_logits = false;
    if (n == 0) s->written = 0;
}

/* Where the batches of an append end, however they are cut: behind its last token, and where snapshots are worth a batch of their own: before the last message
 * (a template may write the one before otherwise next time, as those do that drop what was thought), and before that one where both are long enough. */
typedef struct stops {
    int32_t at[3], n;
} stops;

enum { LONG_MESSAGE = 16 };

static stops stops_of(const lath_session *s, int32_t begin, int32_t end)
{
    stops out = {.at = {end}, .n = 1};
    if (!s->snaps.n_slots || end - begin < 2) return out;
    const int32_t last = model_last_turn(s->model, s->ids, begin, end);
    if (last < 0) return out;
    const int32_t other = model_last_turn(s->model, s->ids, begin, last);
    out.n = 0;
    if (other - begin >= LONG_MESSAGE && last - other >= LONG_MESSAGE) out.at[out.n++] = other;
    out.at[out.n++] = last;
    out.at[out.n++] = end;
    return out;
}

/* Runs s->ids up to `end`; `see` is for those from `first` on. */
static lath_status run_to(lath_session *s, stream *on, int32_t first, int32_t end, session_see see, void *ctx,
                          lath_error *err)
{
    const stops cut = stops_of(s, s->n, end);
    s->b.length = end;
    for (int32_t i = 0; s->n < end;) {
        int32_t stop = cut.at[i];
        if (s->n < first && first < stop) stop = first;
        const int32_t take = stop - s->n < s->chunk ? stop - s->n : s->chunk;
        if (s->n + take > s->written) s->written = s->n + take; /* even where it fails in between */
        TRY(run_chunk(s, on, s->ids + s->n, take, s->n + take == end, s->n < first ? NULL : see, ctx, err));
        s->n += take;
        i += s->n == cut.at[i];
        if (s->n < end) remember(s, i > 0 && s->n == cut.at[i - 1] ? SNAPSHOT_TURN : SNAPSHOT_PASSING);
    }
    if (s->model->rt->kern.first_nonfinite(DTYPE_F32, session_logits(s), s->model->arch.dims.vocab_size) < 0)
        return LATH_OK;
    return err_set(err, LATH_ERR_FORMAT,
                   "%s: the logits behind token %d are not finite: the model's weights are out of range",
                   s->model->path, s->n - 1);
}

/* A long prompt may take minutes: whoever wants to know is asked while it goes on, so that it can be stopped. */
static const double ASK_SECONDS = 0.05;

static bool ask(void *ctx)
{
    lath_session *s = ctx;
    const double now = clock_now();
    if (now - s->asked < ASK_SECONDS) return false;
    s->asked = now;
    return s->progress(s->progress_ctx, (size_t)s->n, (size_t)s->wanted) != 0;
}

static void count(lath_session *s, const stream *on, int32_t n, double seconds)
{
    const bool step = on == &s->step;
    *(step ? &s->stats.n_step : &s->stats.n_prefill) += (uint64_t)n;
    *(step ? &s->stats.seconds_step : &s->stats.seconds_prefill) += seconds;
}

lath_status session_append(lath_session *s, const int32_t *ids, int32_t n, session_see see, void *ctx, lath_error *err)
{
    if (n == 0) return LATH_OK;
    if (n > s->ctx - s->n)
        return err_set(err, LATH_ERR_KV_FULL, "%d tokens behind %d: the session holds %d", n, s->n, s->ctx);
    TRY(check_ids(s, ids, n, err));
    const int32_t before = s->n, end = before + n;
    const bool again = is_stale(s, end);
    stream *on = n == 1 && !again ? &s->step : &s->whole;
    const double begin = clock_now();
    memmove(s->ids + before, ids, (size_t)n * sizeof(*ids));
    if (again)
        go_back(s, 0, false);
    else if (n > 1 && before > 0)
        remember(s, SNAPSHOT_END); /* for when it fails */
    s->snaps.pinned = n > 1 ? s->n : 0;
    s->has_logits = false;
    s->turned = end;
    s->asked = 0; /* at once, then now and again */
    s->wanted = before + n;
    pool_enter_until(on->pool, s->progress && n > 1 ? ask : NULL, s);
    const lath_status st = run_to(s, on, before, end, see, ctx, err);
    pool_leave(on->pool);
    const double seconds = clock_now() - begin;
    s->has_logits = st == LATH_OK;
    if (st != LATH_OK)
        go_back(s, again ? 0 : before, true);
    else
        count(s, on, again ? end : n, seconds);
    s->snaps.pinned = 0;
    if (st == LATH_OK && (n > 1 || s->n % STEPS == 0)) remember(s, n > 1 ? SNAPSHOT_END : SNAPSHOT_PASSING);
    return st;
}

/* ---------------------------------------------------------------------------------------------------------------- calls */

size_t lath_session_rewind(lath_session *s, size_t n)
{
    if (!s) return 0;
    if (n < (size_t)s->n) go_back(s, (int32_t)n, false);
    return (size_t)s->n;
}

lath_status lath_session_mark(lath_session *s, lath_error *err)
{
    err_clear(err);
    if (!s) return err_set(err, LATH_ERR_USAGE, "lath_session_mark: a session is missing");
    if (!s->recurrent || s->n == 0) return LATH_OK; /* it can be cut anywhere */
    if (snapshots_mark(&s->snaps, s->n, s->recurrent_block, s->has_logits ? session_logits(s) : NULL)) return LATH_OK;
    return err_set(err, LATH_ERR_KV_FULL,
                   "no room to mark %d tokens: of %d snapshots %d are marked, and one stays free", s->n,
                   s->snaps.n_slots, s->snaps.n_marked);
}

void lath_session_unmark(lath_session *s, size_t n)
{
    if (s && n <= (size_t)s->n) snapshots_unmark(&s->snaps, (int32_t)n);
}

lath_status lath_session_append(lath_session *s, const int32_t *ids, size_t n, lath_error *err)
{
    err_clear(err);
    if (!s || (n && !ids)) return err_set(err, LATH_ERR_USAGE, "lath_session_append: an argument is missing");
    if (n > INT32_MAX) return err_set(err, LATH_ERR_KV_FULL, "%zu tokens: the session holds %d", n, s->ctx);
    return session_append(s, ids, (int32_t)n, NULL, NULL, err);
}

/* The session holds its first n tokens and their logits, if there is a snapshot of both. */
static bool recall(lath_session *s, int32_t n)
{
    const snapshot *at = snapshots_below(&s->snaps, n);
    if (!at || at->at != n || !at->has_logits) return false;
    go_back(s, n, true);
    if (s->n != n) return false;
    snapshots_restore(&s->snaps, at, NULL, s->logits);
    s->last_row = 0;
    s->has_logits = true;
    return true;
}

lath_status lath_session_sync(lath_session *s, const int32_t *ids, size_t n, size_t *reused, lath_error *err)
{
    err_clear(err);
    if (!s || (n && !ids)) return err_set(err, LATH_ERR_USAGE, "lath_session_sync: an argument is missing");
    if (n > (size_t)s->ctx) return err_set(err, LATH_ERR_KV_FULL, "%zu tokens: the session holds %d", n, s->ctx);
    TRY(check_ids(s, ids, (int32_t)n, err));
    int32_t same = 0;
    while (same < s->n && same < (int32_t)n && s->ids[same] == ids[same]) same++;
    if (is_stale(s, (int32_t)n)) same = 0;
    const bool whole = same == (int32_t)n && same > 0; /* its logits are wanted */
    if (whole && !(same == s->n && s->has_logits) && !recall(s, same)) same--;
    (void)lath_session_rewind(s, (size_t)same);
    if (reused) *reused = (size_t)s->n;
    return session_append(s, ids + s->n, (int32_t)n - s->n, NULL, NULL, err);
}

lath_status lath_session_logits(const lath_session *s, const float **logits, lath_error *err)
{
    err_clear(err);
    if (!s || !logits) return err_set(err, LATH_ERR_USAGE, "lath_session_logits: an argument is missing");
    if (!s->has_logits)
        return err_set(err, LATH_ERR_USAGE, "lath_session_logits: no token has been evaluated since the last rewind");
    *logits = session_logits(s);
    return LATH_OK;
}

typedef struct user_see {
    lath_logits_fn fn;
    void *ctx;
} user_see;

static lath_status see_for_user(void *ctx, int32_t at, const float *logits, lath_error *err)
{
    const user_see *u = ctx;
    if (u->fn(u->ctx, (size_t)at, logits)) return err_set(err, LATH_ERR_INTERRUPTED, "interrupted at token %d", at);
    return LATH_OK;
}

lath_status lath_session_append_each(lath_session *s, const int32_t *ids, size_t n, lath_logits_fn fn, void *ctx,
                                     lath_error *err)
{
    err_clear(err);
    if (!s || (n && !ids) || !fn)
        return err_set(err, LATH_ERR_USAGE, "lath_session_append_each: an argument is missing");
    if (n > INT32_MAX) return err_set(err, LATH_ERR_KV_FULL, "%zu tokens: the session holds %d", n, s->ctx);
    user_see u = {fn, ctx};
    return session_append(s, ids, (int32_t)n, see_for_user, &u, err);
}

size_t lath_session_size(const lath_session *s) { return (size_t)s->n; }

size_t lath_session_capacity(const lath_session *s) { return (size_t)s->ctx; }

const int32_t *lath_session_tokens(const lath_session *s) { return s->ids; }

lath_status lath_session_get_stats(const lath_session *s, lath_session_stats *out, lath_error *err)
{
    err_clear(err);
    if (!s || !out || out->struct_size != sizeof(*out))
        return err_set(err, LATH_ERR_USAGE, "lath_session_get_stats: %s",
                       s && out ? "a struct of another version" : "an argument is missing");
    *out = s->stats;
    out->struct_size = sizeof(*out);
    out->kv_bytes = s->kv_bytes;
    out->recurrent_bytes = s->recurrent_floats * sizeof(float);
    out->snapshot_bytes = s->snaps.bytes;
    out->n_snapshots = snapshots_held(&s->snaps);
    out->work_bytes = s->work_bytes + s->ffn_bytes;
    return LATH_OK;
}
