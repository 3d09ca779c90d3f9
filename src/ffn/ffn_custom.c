/* SPDX-License-Identifier: Apache-2.0
 * ffn_custom.c: a function of the caller's, on plain rows. */
#include "ffn/ffn_backends.h"

typedef struct ffn_custom {
    ffn base;
    ffn_custom_fn fn;
    void *ctx;
    int64_t d;
    const lath_allocator *alloc;
} ffn_custom;

static size_t rows_floats(const ffn_custom *c, int64_t n_tok) { return (size_t)(n_tok * c->d + 15) / 16 * 16; }

static size_t custom_memory_floats(const ffn *self, const backend_ops *ops, int64_t n_tok)
{
    (void)ops;
    return 2 * rows_floats((const ffn_custom *)self, n_tok);
}

static lath_status custom_forward(ffn *self, const fwd *f, int32_t layer, view x, float *memory, view out)
{
    const ffn_custom *c = (const ffn_custom *)self;
    stream *s = f->s;
    const int64_t n = x.n_tok;
    float *rows = memory, *made = memory + rows_floats(c, n);
    TRY(s->ops->read_rows(s, x, 0, n, rows));
    for (int64_t i = 0; i < n * c->d; i++) made[i] = 0;
    if (c->fn(c->ctx, layer, (size_t)n, (size_t)c->d, rows, made) != 0)
        return err_set(s->err, LATH_ERR_INTERRUPTED, "the FFN of layer %d was stopped by its function", layer);
    const int64_t bad = s->kern->first_nonfinite(DTYPE_F32, made, n * c->d);
    if (bad >= 0)
        return err_set(s->err, LATH_ERR_INPUT, "the FFN function of layer %d: element [%lld,%lld] is not finite", layer,
                       (long long)(bad / c->d), (long long)(bad % c->d));
    ffn_note(f, layer, "custom", n, 0);
    return s->ops->write_rows(s, out, 0, n, made);
}

static void custom_close(ffn *self) { alloc_release(((ffn_custom *)self)->alloc, self, sizeof(ffn_custom)); }

lath_status ffn_custom_open(ffn_custom_fn fn, void *ctx, int64_t d_model, const lath_allocator *alloc, ffn **out,
                            lath_error *err)
{
    static const ffn_ops ops = {
        .name = "custom", .memory_floats = custom_memory_floats, .forward = custom_forward, .close = custom_close};
    ffn_custom *c = alloc_zero(alloc, sizeof(*c));
    if (!c) return err_nomem(err, sizeof(*c));
    *c = (ffn_custom){{&ops}, fn, ctx, d_model, alloc};
    *out = &c->base;
    return LATH_OK;
}
