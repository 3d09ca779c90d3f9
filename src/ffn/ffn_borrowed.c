/* SPDX-License-Identifier: Apache-2.0
 * ffn_borrowed.c: another FFN under a name that may be closed: nothing happens to it. */
#include "ffn/ffn.h"

static ffn *lender(const ffn *self) { return ((const ffn_borrowed *)self)->of; }

static size_t borrowed_memory_floats(const ffn *self, const backend_ops *ops, int64_t n_tok)
{
    return ffn_memory_floats(lender(self), ops, n_tok);
}

static lath_status borrowed_forward(ffn *self, const fwd *f, int32_t layer, view x, float *memory, view out)
{
    return ffn_forward(lender(self), f, layer, x, memory, out);
}

static bool borrowed_parts(ffn *self, int32_t layer, ffn_parts *out) { return ffn_get_parts(lender(self), layer, out); }

static void borrowed_describe(const ffn *self, int32_t layer, buf *out) { ffn_describe(lender(self), layer, out); }

static bool borrowed_left_out(const ffn *self, int32_t layer)
{
    const ffn *of = lender(self);
    return of->ops->left_out && of->ops->left_out(of, layer);
}

void ffn_borrow(ffn_borrowed *b, ffn *of)
{
    static const ffn_ops ops = {.name = "borrowed",
                                .memory_floats = borrowed_memory_floats,
                                .forward = borrowed_forward,
                                .parts = borrowed_parts,
                                .describe = borrowed_describe,
                                .left_out = borrowed_left_out};
    b->base.ops = &ops;
    b->of = of;
}
