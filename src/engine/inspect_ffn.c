/* SPDX-License-Identifier: Apache-2.0
 *
 * inspect_ffn.c: an FFN that stands in for the model's own (ffn_spec.h), with what it has done; for sessions, for traces, and by itself.
 */
#include <string.h>

#include "base/checked.h"
#include "engine/inspect.h"
#include "engine/session.h"
#include "engine/walk.h"
#include "ffn/ffn_backends.h"

enum { ALIGN = 64, RUN_ROWS = 512 /* of a batch of lath_ffn_run */ };

/* ----------------------------------------------------------------------------------------------------------------- making */

/* Texts of all layers, one behind the other; a text may move while they are made, so places are kept. */
static lath_status describe(lath_ffn *f, lath_error *err)
{
    for (int32_t i = 0; i < f->env.n_layers; i++) {
        f->at[i] = f->text.len;
        ffn_choice_describe(&f->choice, &f->env, i, &f->text);
        buf_char(&f->text, 0);
    }
    return buf_status(&f->text, err);
}

static lath_status begin(const lath_model *m, lath_ffn **out, lath_error *err)
{
    const lath_allocator *alloc = &m->rt->alloc;
    const size_t n = (size_t)m->arch.dims.n_layers;
    lath_ffn *f = alloc_zero(alloc, sizeof(*f));
    if (!f) return err_nomem(err, sizeof(*f));
    f->model = m;
    f->env = (ffn_env){.model = m->arch.ffn,
                       .n_layers = (int32_t)n,
                       .d_model = m->arch.dims.d_model,
                       .alloc = alloc,
                       .open_index = walk_source_open,
                       .index_ctx = (void *)(uintptr_t)m};
    buf_init(&f->text, alloc, SIZE_MAX / 2);
    f->took = alloc_array(alloc, n, sizeof(*f->took));
    f->at = alloc_array(alloc, n, sizeof(*f->at));
    if (f->took && f->at) {
        *out = f;
        return LATH_OK;
    }
    lath_ffn_close(f);
    return err_nomem(err, n * sizeof(*f->took));
}

void lath_ffn_close(lath_ffn *f)
{
    if (!f) return;
    const lath_allocator *alloc = f->env.alloc;
    const size_t n = (size_t)f->env.n_layers;
    ffn_choice_close(&f->choice);
    buf_deinit(&f->text);
    alloc_release(alloc, f->took, n * sizeof(*f->took));
    alloc_release(alloc, f->at, n * sizeof(*f->at));
    alloc_release(alloc, f, sizeof(*f));
}

lath_status lath_ffn_open(const lath_model *model, const char *spec, lath_ffn **out, lath_error *err)
{
    lath_ffn *f;
    err_clear(err);
    if (!model || !spec || !out) return err_set(err, LATH_ERR_USAGE, "lath_ffn_open: an argument is missing");
    TRY(begin(model, &f, err));
    lath_status st = ffn_spec_open(&f->env, spec, &f->choice, err);
    if (st == LATH_OK) st = describe(f, err);
    if (st != LATH_OK)
        lath_ffn_close(f);
    else
        *out = f;
    return st;
}

lath_status lath_ffn_custom(const lath_model *model, lath_ffn_fn fn, void *ctx, lath_ffn **out, lath_error *err)
{
    lath_ffn *f;
    err_clear(err);
    if (!model || !fn || !out) return err_set(err, LATH_ERR_USAGE, "lath_ffn_custom: an argument is missing");
    TRY(begin(model, &f, err));
    lath_status st = ffn_custom_open(fn, ctx, f->env.d_model, f->env.alloc, &f->choice.ffn, err);
    if (st == LATH_OK) st = describe(f, err);
    if (st != LATH_OK)
        lath_ffn_close(f);
    else
        *out = f;
    return st;
}

/* ----------------------------------------------------------------------------------------------------------------- counts */

lath_status lath_ffn_get_layer(const lath_ffn *f, int32_t layer, lath_ffn_layer *out, lath_error *err)
{
    err_clear(err);
    if (!f || !out || out->struct_size != sizeof(*out))
        return err_set(err, LATH_ERR_USAGE, "lath_ffn_get_layer: %s",
                       f && out ? "a struct of another version" : "an argument is missing");
    if (layer < 0 || layer >= f->env.n_layers)
        return err_set(err, LATH_ERR_USAGE, "lath_ffn_get_layer: layer %d, the model has 0 to %d", layer,
                       f->env.n_layers - 1);
    const ffn_took *t = &f->took[layer];
    *out = (lath_ffn_layer){.struct_size = sizeof(*out),
                            .description = f->text.data + f->at[layer],
                            .path = f->choice.gains && f->choice.gains[layer] != 0 ? "gain" : t->path,
                            .calls = t->calls,
                            .tokens = t->tokens,
                            .features = t->features,
                            .seconds = t->seconds};
    return LATH_OK;
}

void lath_ffn_reset(lath_ffn *f)
{
    if (f) memset(f->took, 0, (size_t)f->env.n_layers * sizeof(*f->took));
}

/* ------------------------------------------------------------------------------------------------------------------- runs */

void inspect_set_ffn(fwd *f, const lath_ffn *given, float *memory)
{
    if (!given) return;
    f->ffn = given->choice.ffn;
    f->ffn_memory = memory;
    f->gains = given->choice.gains;
    f->took = given->took;
}

size_t inspect_ffn_floats(const lath_ffn *given, const backend_ops *ops, int64_t n_tok)
{
    return given && given->choice.ffn ? ffn_memory_floats(given->choice.ffn, ops, n_tok) : 0;
}

/* Memory for whole chunks and for steps, taken before the session lets go of what it has. */
static lath_status make_memory(const lath_session *s, const lath_ffn *given, float **out, size_t *bytes,
                               lath_error *err)
{
    const size_t whole = inspect_ffn_floats(given, s->whole.ops, s->chunk),
                 step = inspect_ffn_floats(given, s->step.ops, 1);
    *out = NULL;
    if (!size_mul(whole > step ? whole : step, sizeof(float), bytes)) return err_nomem(err, SIZE_MAX);
    if (*bytes == 0) return LATH_OK;
    *out = alloc_bytes(&s->model->rt->alloc, *bytes, ALIGN);
    if (!*out) return err_nomem(err, *bytes);
    memset(*out, 0, *bytes);
    return LATH_OK;
}

lath_status lath_session_set_ffn(lath_session *s, lath_ffn *given, lath_error *err)
{
    float *memory;
    size_t bytes;
    err_clear(err);
    if (!s) return err_set(err, LATH_ERR_USAGE, "lath_session_set_ffn: a session is missing");
    if (given && given->model != s->model)
        return err_set(err, LATH_ERR_USAGE, "lath_session_set_ffn: the FFN is of another model");
    if (s->n > 0)
        return err_set(err, LATH_ERR_USAGE,
                       "lath_session_set_ffn: the session holds %d tokens that went through another FFN", s->n);
    TRY(make_memory(s, given, &memory, &bytes, err));
    alloc_release(&s->model->rt->alloc, s->ffn_memory, s->ffn_bytes);
    s->ffn = given;
    s->ffn_memory = memory;
    s->ffn_bytes = bytes;
    return LATH_OK;
}

/* -------------------------------------------------------------------------------------------------------------- by itself */

/* Memory of a call: | x | out | what the FFN works in | scratch | */
typedef struct alone {
    stream s;
    view x, out;
    float *work, *block;
    size_t bytes;
} alone;

static lath_status make_alone(const lath_model *m, ffn *of, int64_t n, alone *a, lath_error *err)
{
    const int64_t d = m->arch.dims.d_model;
    *a = (alone){.s = {.ops = n == 1 ? backend_cpu_rows() : m->rt->ops, .pool = m->rt->pool, .kern = &m->rt->kern}};
    a->s.integer = m->integer;
    a->s.err = err;
    a->s.limits = arch_limits(&m->arch, n, n);
    const backend_ops *ops = a->s.ops;
    const size_t rows = ops->view_floats(n, d), work = (ffn_memory_floats(of, ops, n) + 15) / 16 * 16;
    if (!size_mul(2 * rows + work + ops->scratch_floats(&a->s, &a->s.limits), sizeof(float), &a->bytes))
        return err_nomem(err, SIZE_MAX);
    a->block = alloc_bytes(&m->rt->alloc, a->bytes, ALIGN);
    if (!a->block) return err_nomem(err, a->bytes);
    memset(a->block, 0, a->bytes);
    a->work = a->block + 2 * rows;
    a->s.scratch = a->work + work;
    return LATH_OK;
}

static lath_status run_rows(alone *a, ffn *of, ffn_took *took, int32_t layer, int64_t d, const float *rows, int64_t n,
                            float *out)
{
    const backend_ops *ops = a->s.ops;
    const fwd f = {.s = &a->s, .took = took};
    a->x = ops->make_view(a->block, n, d);
    a->out = ops->make_view(a->block + ops->view_floats(n, d), n, d);
    TRY(ops->write_rows(&a->s, a->x, 0, n, rows));
    TRY(ffn_run(&f, of, layer, a->x, a->work, a->out));
    return ops->read_rows(&a->s, a->out, 0, n, out);
}

static lath_status check_rows(const lath_model *model, const char *what, const float *rows, size_t n, lath_error *err)
{
    const int64_t d = model->arch.dims.d_model, bad = model->rt->kern.first_nonfinite(DTYPE_F32, rows, (int64_t)n * d);
    if (bad < 0) return LATH_OK;
    return err_item(err, LATH_ERR_INPUT, bad / d, "row %lld: %snumber %lld is not finite", (long long)(bad / d), what,
                    (long long)(bad % d));
}

lath_status lath_ffn_run(const lath_model *model, lath_ffn *given, int32_t layer, const float *rows, size_t n,
                         float *out, lath_error *err)
{
    alone a;
    err_clear(err);
    if (!model || (n && (!rows || !out))) return err_set(err, LATH_ERR_USAGE, "lath_ffn_run: an argument is missing");
    const arch_dims *dims = &model->arch.dims;
    if (given && given->model != model)
        return err_set(err, LATH_ERR_USAGE, "lath_ffn_run: the FFN is of another model");
    if (layer < 0 || layer >= dims->n_layers)
        return err_set(err, LATH_ERR_USAGE, "lath_ffn_run: layer %d, the model has 0 to %d", layer, dims->n_layers - 1);
    if (given && given->choice.gains && given->choice.gains[layer] != 0)
        return err_set(err, LATH_ERR_USAGE, "lath_ffn_run: a gain stands in for layer %d", layer);
    if (n == 0) return LATH_OK;
    if (n > (size_t)INT32_MAX) return err_set(err, LATH_ERR_LIMIT, "lath_ffn_run: %zu rows", n);
    TRY(check_rows(model, "", rows, n, err));
    const int64_t d = dims->d_model;
    ffn *const of = given && given->choice.ffn ? given->choice.ffn : model->arch.ffn;
    TRY(make_alone(model, of, n < RUN_ROWS ? (int64_t)n : RUN_ROWS, &a, err));
    lath_status st = LATH_OK;
    pool_enter(a.s.pool);
    for (int64_t i = 0; st == LATH_OK && i < (int64_t)n; i += RUN_ROWS) {
        const int64_t take = (int64_t)n - i < RUN_ROWS ? (int64_t)n - i : RUN_ROWS;
        st = run_rows(&a, of, given ? given->took : NULL, layer, d, rows + i * d, take, out + i * d);
    }
    pool_leave(a.s.pool);
    alloc_release(&model->rt->alloc, a.block, a.bytes);
    TRY(st);
    return check_rows(model, "its result: ", out, n, err);
}
