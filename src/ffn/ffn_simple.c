/* SPDX-License-Identifier: Apache-2.0
 * ffn_simple.c: a layer whose FFN adds nothing (Srivastava et al. 2015: a highway that is open all the way). */
#include "ffn/ffn_backends.h"

typedef struct ffn_simple {
    ffn base;
    const lath_allocator *alloc;
} ffn_simple;

static size_t simple_memory_floats(const ffn *self, const backend_ops *ops, int64_t n_tok)
{
    (void)self, (void)ops, (void)n_tok;
    return 0;
}

static lath_status simple_forward(ffn *self, const fwd *f, int32_t layer, view x, float *memory, view out)
{
    (void)memory;
    ffn_note(f, layer, self->ops->name, x.n_tok, 0);
    return f->s->ops->clear(f->s, out);
}

static bool simple_left_out(const ffn *self, int32_t layer)
{
    (void)self, (void)layer;
    return true;
}

static void simple_close(ffn *self) { alloc_release(((ffn_simple *)self)->alloc, self, sizeof(ffn_simple)); }

lath_status ffn_highway_open(bool left_out, const lath_allocator *alloc, ffn **out, lath_error *err)
{
    static const ffn_ops highway = {
        .name = "highway", .memory_floats = simple_memory_floats, .forward = simple_forward, .close = simple_close};
    static const ffn_ops attention_only = {.name = "attention-only",
                                           .memory_floats = simple_memory_floats,
                                           .forward = simple_forward,
                                           .left_out = simple_left_out,
                                           .close = simple_close};
    ffn_simple *f = alloc_zero(alloc, sizeof(*f));
    if (!f) return err_nomem(err, sizeof(*f));
    f->base.ops = left_out ? &attention_only : &highway;
    f->alloc = alloc;
    *out = &f->base;
    return LATH_OK;
}
