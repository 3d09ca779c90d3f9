/* SPDX-License-Identifier: Apache-2.0
 *
 * ffn_walk.h: an FFN walked over an index of its features (a vindex, or whatever else gives rows by feature): the scores of all features are one matrix
 * product, and then only the up and down rows of the chosen ones are read.
 *
 *     s = gate(x)                                   all features; of an FFN without a gate, up(x)
 *     chosen = the k largest |s|, ties: the lower feature
 *     out = down_bias + sum over chosen, rising, of fn(s_i) up_i(x) down_i      (fn(s_i) down_i without a gate)
 *
 * k = all is exact: every feature, through `out` or the model's own matrix where there is one.
 */
#ifndef LATH_FFN_WALK_H
#define LATH_FFN_WALK_H

#include "ffn/ffn.h"

/* The rows of one layer. Types of the matrices may differ. */
typedef struct ffn_walk_layer {
    weight gate; /* [features, d_model]; .t NULL: the FFN has no gate, features are chosen by up */
    weight up;   /* [features, d_model] */
    weight down; /* [features, d_model]: row i is what feature i writes */
    weight out; /* [d_model, features]: the same as one product over all features reads it; .t NULL: not in the index */
    vec gate_bias, up_bias, down_bias; /* [features], [features], [d_model]; absent for most */
    int64_t features;
} ffn_walk_layer;

/* What a walk reads. Whoever fills it owns everything until `close`. */
typedef struct ffn_walk_source {
    ffn_walk_layer *layers; /* [n_layers]; ops mark in the weights what they have checked */
    int32_t n_layers;
    int64_t d_model;
    kern_fn fn;
    const char *name;                        /* of the directory, for messages */
    void (*ahead)(void *ctx, int32_t layer); /* the layer's rows will be wanted soon: read ahead; NULL: no need */
    void (*close)(void *ctx);                /* NULL: nothing to close */
    void *ctx;
} ffn_walk_source;

/* The scores by which a walk chooses: gate, or up where there is no gate. */
static inline weight *ffn_walk_scores(ffn_walk_layer *l) { return l->gate.t ? &l->gate : &l->up; }

/* A walk over k features a token, k <= 0: over all. `own`: the model's own FFN, whose down matrices serve where the index has none and all features go in;
 * NULL where the model has been opened without; borrowed. It is for layers first .. last. Refused by name: k over a layer's features, a layer without
 * rows. Takes the source (closes it, also when it fails). */
lath_status ffn_walk_open(const ffn_walk_source *source, int64_t k, int32_t first, int32_t last, ffn *own,
                          const lath_allocator *alloc, ffn **out, lath_error *err);

/* Of n scores the k largest magnitudes, as rising indices; of equal ones the lower. k <= n. Time is O(n). NaN is larger than any. */
void ffn_walk_choose(const float *scores, int64_t n, int64_t k, int32_t *chosen);

#endif
