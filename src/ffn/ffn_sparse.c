/* SPDX-License-Identifier: Apache-2.0
 * ffn_sparse.c: of each token's hidden features the k with the largest magnitudes; the others are 0 (Ahmad & Scheinkman 2019, "How Can We Be So Dense?", k-winners).
 * All products are the dense ones, so any type of weights and any batch will do, and k = all changes no bit. */
#include <string.h>

#include "ffn/ffn_backends.h"
#include "ffn/ffn_walk.h"

enum { DENSE_FROM_PERCENT = 80 };

typedef struct ffn_sparse {
    ffn base;
    ffn *model;
    int64_t k, most; /* features of the widest layer */
    const lath_allocator *alloc;
} ffn_sparse;

static size_t round_up(int64_t n) { return (size_t)(n + 15) / 16 * 16; }

/* | gate and up of all tokens, or what the model's FFN takes | a token's features | those that are kept | their indices | */
static size_t hidden_floats(const ffn_sparse *s, const backend_ops *ops, int64_t n_tok)
{
    const size_t model = ffn_memory_floats(s->model, ops, n_tok), own = ops->view_floats(n_tok, 2 * s->most);
    return own > model ? own : model;
}

static size_t sparse_memory_floats(const ffn *self, const backend_ops *ops, int64_t n_tok)
{
    const ffn_sparse *s = (const ffn_sparse *)self;
    return hidden_floats(s, ops, n_tok) + 2 * round_up(s->most) + round_up(s->k);
}

static lath_status keep_largest(const ffn_sparse *s, const fwd *f, view hidden, float *memory)
{
    float *row = memory, *kept = row + round_up(s->most);
    int32_t *chosen = (int32_t *)(void *)(kept + round_up(s->most));
    for (int64_t t = 0; t < hidden.n_tok; t++) {
        TRY(f->s->ops->read_rows(f->s, hidden, t, 1, row));
        ffn_walk_choose(row, hidden.d, s->k, chosen);
        memset(kept, 0, (size_t)hidden.d * sizeof(float));
        for (int64_t i = 0; i < s->k; i++) kept[chosen[i]] = row[chosen[i]];
        TRY(f->s->ops->write_rows(f->s, hidden, t, 1, kept));
    }
    return LATH_OK;
}

static lath_status sparse_forward(ffn *self, const fwd *f, int32_t layer, view x, float *memory, view out)
{
    const ffn_sparse *s = (const ffn_sparse *)self;
    ffn_parts p;
    view hidden;
    if (!ffn_get_parts(s->model, layer, &p))
        return err_set(f->s->err, LATH_ERR_UNSUPPORTED, "sparse: layer %d has no features of its own", layer);
    if (s->k * 100 >= p.d_ff * DENSE_FROM_PERCENT) {
        TRY(ffn_forward(s->model, f, layer, x, memory, out));
        ffn_note_path(f, layer, "sparse:dense");
        return LATH_OK;
    }
    TRY(ffn_hidden(f, &p, x, memory, &hidden));
    TRY(keep_largest(s, f, hidden, memory + hidden_floats(s, f->s->ops, x.n_tok)));
    TRY(trace_emit(f, TRACE_FFN_ACT, layer, hidden));
    ffn_note(f, layer, "sparse", x.n_tok, x.n_tok * s->k);
    return nn_linear(f, p.down, KERN_FN_NONE, hidden, out);
}

static void sparse_describe(const ffn *self, int32_t layer, buf *out)
{
    (void)layer;
    buf_printf(out, "sparse, k=%lld", (long long)((const ffn_sparse *)self)->k);
}

static void sparse_close(ffn *self)
{
    ffn_sparse *s = (ffn_sparse *)self;
    ffn_close(s->model);
    alloc_release(s->alloc, s, sizeof(*s));
}

static lath_status check_layers(ffn *model, int64_t k, int32_t first, int32_t last, int64_t *most, lath_error *err)
{
    ffn_parts p;
    if (k < 1) return err_set(err, LATH_ERR_USAGE, "sparse: k of %lld: at least one feature", (long long)k);
    *most = 0;
    for (int32_t i = first; i <= last; i++) {
        if (!ffn_get_parts(model, i, &p))
            return err_set(err, LATH_ERR_UNSUPPORTED,
                           "sparse: layer %d has experts, or its FFN is not in memory: it has no features to choose of",
                           i);
        if (k > p.d_ff)
            return err_set(err, LATH_ERR_USAGE, "sparse: k of %lld: layer %d has %lld features", (long long)k, i,
                           (long long)p.d_ff);
        if (p.d_ff > *most) *most = p.d_ff;
    }
    return LATH_OK;
}

lath_status ffn_sparse_open(ffn *model, int64_t k, int32_t first, int32_t last, const lath_allocator *alloc, ffn **out,
                            lath_error *err)
{
    static const ffn_ops ops = {.name = "sparse",
                                .memory_floats = sparse_memory_floats,
                                .forward = sparse_forward,
                                .describe = sparse_describe,
                                .close = sparse_close};
    int64_t most = 0;
    lath_status st = check_layers(model, k, first, last, &most, err);
    ffn_sparse *s = st == LATH_OK ? alloc_zero(alloc, sizeof(*s)) : NULL;
    if (st == LATH_OK && !s) st = err_nomem(err, sizeof(*s));
    if (st != LATH_OK) {
        ffn_close(model);
        return st;
    }
    *s = (ffn_sparse){{&ops}, model, k, most, alloc};
    *out = &s->base;
    return LATH_OK;
}
