/* SPDX-License-Identifier: Apache-2.0
 * runner.c: packed batches through a model's forward; see runner.h. */
#include "engine/runner.h"

#include <string.h>

#include "base/checked.h"
#include "base/clock.h"

/* A batch of 256 tokens keeps activations near the cores and is one pass over the weights; many threads want more to share. */
enum { BATCH_TOKENS_LEAST = 256, BATCH_TOKENS_THREAD = 64, ALIGN = 64 };

static int32_t default_batch_tokens(const lath_model *m)
{
    int32_t n = pool_size(m->rt->pool) * BATCH_TOKENS_THREAD;
    return n > BATCH_TOKENS_LEAST ? n : BATCH_TOKENS_LEAST;
}

void runner_init(runner *r, const lath_model *m, const char *item, int32_t batch_tokens, int64_t widest, int64_t d_out)
{
    *r = (runner){.model = m, .item = item, .widest = widest, .d_out = d_out};
    r->batch_tokens = batch_tokens ? batch_tokens : default_batch_tokens(m);
    r->stream = (stream){.ops = m->rt->ops, .pool = m->rt->pool, .kern = &m->rt->kern};
    packer_init(&r->pack, &m->rt->alloc, &m->arch.dims);
}

void runner_deinit(runner *r)
{
    if (!r->model) return;
    alloc_release(&r->model->rt->alloc, r->block, r->block_bytes);
    alloc_release(&r->model->rt->alloc, r->row, r->capacity * sizeof(*r->row));
    packer_deinit(&r->pack);
    *r = (runner){0};
}

uint64_t runner_bytes(const runner *r) { return r->block_bytes + r->pack.memory_bytes + r->capacity * sizeof(*r->row); }

/* ----------------------------------------------------------------------------------------------------------- the block */

/* Its four parts, in floats, for n_tok tokens of n_seq sequences. */
enum { PART_STATE, PART_ROWS_A, PART_ROWS_B, PART_SCRATCH, N_PARTS };

static lath_status block_parts(const lath_model *m, const stream *s, int64_t widest, int64_t n_tok, int64_t n_seq,
                               size_t parts[N_PARTS], size_t *bytes, lath_error *err)
{
    parts[PART_STATE] = m->arch.desc->state_floats(&m->arch, s->ops, n_tok);
    parts[PART_ROWS_A] = parts[PART_ROWS_B] = s->ops->view_floats(n_seq, widest);
    const op_limits limits = arch_limits(&m->arch, n_tok > n_seq ? n_tok : n_seq, n_tok);
    parts[PART_SCRATCH] = s->ops->scratch_floats(s, &limits);
    size_t floats = 0;
    for (int i = 0; i < N_PARTS; i++) {
        if (!size_add(floats, parts[i], &floats)) return err_nomem(err, SIZE_MAX);
    }
    return size_mul(floats, sizeof(float), bytes) ? LATH_OK : err_nomem(err, SIZE_MAX);
}

uint64_t runner_batch_bytes(const lath_model *m, int64_t widest)
{
    const int32_t n = default_batch_tokens(m);
    size_t parts[N_PARTS], bytes = 0;
    const stream s = {.ops = m->rt->ops, .pool = m->rt->pool, .kern = &m->rt->kern};
    return block_parts(m, &s, widest, n, n / 16, parts, &bytes, NULL) == LATH_OK ? bytes : 0;
}

static lath_status grow_block(runner *r, int64_t n_tok, int64_t n_seq, lath_error *err)
{
    if (n_tok <= r->block_tok && n_seq <= r->block_seq) return LATH_OK;
    if (n_tok < r->block_tok) n_tok = r->block_tok;
    if (n_seq < r->block_seq) n_seq = r->block_seq;
    size_t parts[N_PARTS], bytes = 0;
    TRY(block_parts(r->model, &r->stream, r->widest, n_tok, n_seq, parts, &bytes, err));
    const lath_allocator *alloc = &r->model->rt->alloc;
    alloc_release(alloc, r->block, r->block_bytes);
    r->block_bytes = 0;
    r->block_tok = r->block_seq = 0;
    r->block = alloc_bytes(alloc, bytes, ALIGN);
    if (!r->block) return err_nomem(err, bytes);
    memset(r->block, 0, bytes);
    r->block_bytes = bytes;
    r->block_tok = n_tok;
    r->block_seq = n_seq;
    r->memory[0] = r->block + parts[PART_STATE];
    r->memory[1] = r->memory[0] + parts[PART_ROWS_A];
    r->stream.scratch = r->memory[1] + parts[PART_ROWS_B];
    r->stream.limits = arch_limits(&r->model->arch, n_tok > n_seq ? n_tok : n_seq, n_tok);
    return LATH_OK;
}

/* ----------------------------------------------------------------------------------------------------------- one batch */

/* Rows of x to their places in the result: one call for each run of neighbours, which is all of them where every text is packed. */
static lath_status read_out(runner *r, view x)
{
    const size_t n = (size_t)r->pack.b.n_seq;
    for (size_t i = 0, run; i < n; i += run) {
        for (run = 1; i + run < n && r->row[i + run] == r->row[i] + run;) run++;
        TRY(r->stream.ops->read_rows(&r->stream, x, (int64_t)i, (int64_t)run, r->out + r->row[i] * (size_t)r->d_out));
    }
    return LATH_OK;
}

static lath_status compute(runner *r)
{
    const lath_model *m = r->model;
    const fwd f = {.s = &r->stream, .b = &r->pack.b, .trace = r->trace};
    const double begin = clock_now();
    view hidden, rows;
    TRY(m->arch.desc->forward((arch_model *)&m->arch, &f, r->block, &hidden));
    const double middle = clock_now();
    r->seconds_forward += middle - begin;
    TRY(r->tail(r->ctx, r, &f, hidden, &rows));
    TRY(read_out(r, rows));
    r->seconds_tail += clock_now() - middle;
    return LATH_OK;
}

/* A forward may take minutes: whoever wants to know is asked while it goes on, so that it can be stopped. */
static const double ASK_SECONDS = 0.05;

static bool ask(void *ctx)
{
    runner *r = ctx;
    const double now = clock_now();
    if (now - r->asked < ASK_SECONDS) return false;
    r->asked = now;
    return r->progress(r->progress_ctx, r->done, r->total) != 0;
}

static lath_status say_interrupted(const runner *r, lath_error *err)
{
    return err_set(err, LATH_ERR_INTERRUPTED, "interrupted after %zu of %zu %ss", r->done, r->total, r->item);
}

/* Runs what is packed. `done`: rows of the call that are finished then. */
static lath_status run_batch(runner *r, size_t done, lath_error *err)
{
    const int32_t n = r->pack.b.n_seq;
    if (n > 0) {
        TRY(grow_block(r, r->pack.b.n_tok, n, err));
        r->stream.err = err;
        r->asked = clock_now();
        pool_enter_until(r->stream.pool, r->progress ? ask : NULL, r);
        const lath_status st = compute(r);
        pool_leave(r->stream.pool);
        if (st == LATH_ERR_INTERRUPTED) return say_interrupted(r, err);
        if (st != LATH_OK) return st;
    }
    for (int32_t i = 0; i < n; i++) {
        const size_t row = r->row[i];
        if (r->stream.kern->first_nonfinite(DTYPE_F32, r->out + row * (size_t)r->d_out, r->d_out) >= 0)
            return err_item(err, LATH_ERR_FORMAT, (int64_t)row,
                            "%s %zu: its result is not finite: the model's weights are out of range", r->item, row);
    }
    if (n > 0 && r->keep) TRY(r->keep(r->ctx, r, err));
    packer_clear(&r->pack);
    r->done = done;
    if (r->progress && r->progress(r->progress_ctx, done, r->total)) return say_interrupted(r, err);
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------ the call */

void runner_begin(runner *r, float *out, size_t total)
{
    r->out = out;
    r->total = total;
    r->done = 0;
    packer_clear(&r->pack);
}

static lath_status check_tokens(const runner *r, size_t row, const int32_t *ids, const int32_t *type_ids, int64_t n,
                                lath_error *err)
{
    const arch_dims *d = &r->model->arch.dims;
    for (int64_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= d->vocab_size)
            return err_item(err, LATH_ERR_INPUT, (int64_t)row, "%s %zu: token id %d, the model has %d embedding rows",
                            r->item, row, ids[i], d->vocab_size);
        if (r->pack.typed && type_ids && (type_ids[i] < 0 || type_ids[i] >= d->n_types))
            return err_item(err, LATH_ERR_INPUT, (int64_t)row, "%s %zu: token type %d, the model has %d", r->item, row,
                            type_ids[i], d->n_types);
    }
    return LATH_OK;
}

static lath_status grow_rows(runner *r, lath_error *err)
{
    const lath_allocator *alloc = &r->model->rt->alloc;
    const size_t have = (size_t)r->pack.b.n_seq, n = have < 16 ? 16 : have + have / 2;
    if (have < r->capacity) return LATH_OK;
    size_t *row = alloc_array(alloc, n, sizeof(*row));
    if (!row) return err_nomem(err, n * sizeof(*row));
    if (have) memcpy(row, r->row, have * sizeof(*row));
    alloc_release(alloc, r->row, r->capacity * sizeof(*row));
    r->row = row;
    r->capacity = n;
    return LATH_OK;
}

lath_status runner_add(runner *r, size_t row, const int32_t *ids, const int32_t *type_ids, int64_t n, lath_error *err)
{
    TRY(check_tokens(r, row, ids, type_ids, n, err));
    if (r->pack.b.n_seq && r->pack.b.n_tok + n > r->batch_tokens) TRY(run_batch(r, row, err));
    TRY(packer_grow(&r->pack, r->pack.b.n_tok + n, r->pack.b.n_seq + 1, err));
    TRY(grow_rows(r, err));
    r->row[r->pack.b.n_seq] = row;
    packer_add(&r->pack, ids, type_ids, n);
    return LATH_OK;
}

lath_status runner_end(runner *r, lath_error *err) { return run_batch(r, r->total, err); }
