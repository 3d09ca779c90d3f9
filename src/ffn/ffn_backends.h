/* SPDX-License-Identifier: Apache-2.0
 *
 * ffn_backends.h: the FFNs that can stand in for a model's own (fwd.ffn), and decorators of others. Each is made by an _open and freed by ffn_close, decorators with
 * what they decorate (also when their _open fails); the model's own FFN is never freed. One serves one run at a time, none changes the model.
 *
 *     ffn_simple.c   highway: adds nothing
 *     ffn_sparse.c   of all features those that matter most
 *     ffn_walk.c     ffn_walk.h: rows of an index
 *     ffn_cached.c   what was computed before, from memory
 *     ffn_custom.c   a function of the caller's
 *     ffn_remote.c   another process, over HTTP
 *     ffn_router.c   another one in each layer
 *     ffn_spec.c     ffn_spec.h: of a text, any of these
 */
#ifndef LATH_FFN_BACKENDS_H
#define LATH_FFN_BACKENDS_H

#include "ffn/ffn.h"

/* Adds nothing to the stream; its norms run. `left_out`: where that makes a difference, they do not (attention-only). */
lath_status ffn_highway_open(bool left_out, const lath_allocator *alloc, ffn **out, lath_error *err);

/* Computes every feature and keeps of each token the k with the largest magnitudes (fn(gate) * up, or fn(up)), of equal ones the lower; the others become 0 before
 * the product with down. It shows what so few features give, and saves no time: the features of a token are columns of down, which lie in nearly all of its
 * lines. With k >= 80 % of the features it is the model's own FFN ("sparse:dense"). `model` gives the matrices; layers first .. last need some. */
lath_status ffn_sparse_open(ffn *model, int64_t k, int32_t first, int32_t last, const lath_allocator *alloc, ffn **out,
                            lath_error *err);

/* The rows that `inner` made of rows with the same bytes in the same layer (and op table), else inner's; so bits are the same with and without. At most max_bytes, the
 * least recently used rows go first. While somebody looks at a run (fwd.trace) all is computed, and nothing is kept. */
lath_status ffn_cached_open(ffn *inner, int64_t d_model, size_t max_bytes, const lath_allocator *alloc, ffn **out,
                            lath_error *err);
typedef struct ffn_cached_stats {
    uint64_t hits, misses; /* rows */
    size_t rows, most;     /* that are held, that fit */
} ffn_cached_stats;
/* false: self is no cache. */
bool ffn_cached_get_stats(const ffn *self, ffn_cached_stats *out);

/* out = f(rows), both [n, d], plain rows. Not 0: the run stops with LATH_ERR_INTERRUPTED. Numbers that are not finite are refused. */
typedef int (*ffn_custom_fn)(void *ctx, int32_t layer, size_t n, size_t d, const float *rows, float *out);
lath_status ffn_custom_open(ffn_custom_fn fn, void *ctx, int64_t d_model, const lath_allocator *alloc, ffn **out,
                            lath_error *err);

/* by_layer: [n_layers], copied; one may stand in several places. */
lath_status ffn_router_open(ffn *const *by_layer, int32_t n_layers, const lath_allocator *alloc, ffn **out,
                            lath_error *err);

#endif
