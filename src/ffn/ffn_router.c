/* SPDX-License-Identifier: Apache-2.0
 * ffn_router.c: each layer has an FFN of its own choice. */
#include <string.h>

#include "ffn/ffn_backends.h"

typedef struct ffn_router {
    ffn base;
    ffn **by_layer; /* [n_layers] */
    int32_t n_layers;
    const lath_allocator *alloc;
} ffn_router;

static ffn *at(const ffn *self, int32_t layer) { return ((const ffn_router *)self)->by_layer[layer]; }

static size_t router_memory_floats(const ffn *self, const backend_ops *ops, int64_t n_tok)
{
    size_t most = 0;
    for (int32_t i = 0; i < ((const ffn_router *)self)->n_layers; i++) {
        const size_t n = ffn_memory_floats(at(self, i), ops, n_tok);
        if (n > most) most = n;
    }
    return most;
}

static lath_status router_forward(ffn *self, const fwd *f, int32_t layer, view x, float *memory, view out)
{
    return ffn_forward(at(self, layer), f, layer, x, memory, out);
}

static bool router_parts(ffn *self, int32_t layer, ffn_parts *out)
{
    return ffn_get_parts(at(self, layer), layer, out);
}

static void router_describe(const ffn *self, int32_t layer, buf *out) { ffn_describe(at(self, layer), layer, out); }

static bool router_left_out(const ffn *self, int32_t layer)
{
    const ffn *f = at(self, layer);
    return f->ops->left_out && f->ops->left_out(f, layer);
}

static void close_each(ffn *const *by_layer, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        bool again = false;
        for (int32_t j = 0; j < i && !again; j++) again = by_layer[j] == by_layer[i];
        if (!again) ffn_close(by_layer[i]);
    }
}

static void router_close(ffn *self)
{
    ffn_router *r = (ffn_router *)self;
    if (r->by_layer) close_each(r->by_layer, r->n_layers);
    alloc_release(r->alloc, r->by_layer, (size_t)r->n_layers * sizeof(*r->by_layer));
    alloc_release(r->alloc, r, sizeof(*r));
}

lath_status ffn_router_open(ffn *const *by_layer, int32_t n_layers, const lath_allocator *alloc, ffn **out,
                            lath_error *err)
{
    static const ffn_ops ops = {.name = "router",
                                .memory_floats = router_memory_floats,
                                .forward = router_forward,
                                .parts = router_parts,
                                .describe = router_describe,
                                .left_out = router_left_out,
                                .close = router_close};
    const size_t bytes = (size_t)n_layers * sizeof(*by_layer);
    ffn_router *r = alloc_zero(alloc, sizeof(*r));
    ffn **copy = r ? alloc_array(alloc, (size_t)n_layers, sizeof(*copy)) : NULL;
    if (!copy) {
        alloc_release(alloc, r, sizeof(*r));
        close_each(by_layer, n_layers);
        return err_nomem(err, bytes);
    }
    memcpy(copy, by_layer, bytes);
    *r = (ffn_router){{&ops}, copy, n_layers, alloc};
    *out = &r->base;
    return LATH_OK;
}
