/* SPDX-License-Identifier: Apache-2.0
 *
 * ffn_spec.h: of a text, what stands in for the FFNs of a model in a run.
 *
 *     SPEC    = ITEM | ROUTE {"," ROUTE}
 *     ROUTE   = LAYERS "=" ITEM             LAYERS = A | A"-" | A"-"B       every layer has one route
 *     ITEM    = "dense"                     the model's own
 *             | "sparse:"K                  of each token the K features with the largest magnitudes
 *             | "walk:"DIR [",k="K]         over an index, K features or all
 *             | "cached" [":"ITEM]          remembers rows of ITEM (dense)
 *             | "highway"                   adds nothing
 *             | "attention-only"            the layer ends behind attention
 *             | "gain:"G                    the layer multiplies the stream by G and does nothing else
 *             | "remote:"URL [",wire="WIRE] asks another process; WIRE: f32, f16 or json
 *
 * A comma that belongs to a path is written "\,", a backslash before anything else is itself; what is behind another comma is a new route where it begins with a digit, else an option of
 * the ITEM before.
 */
#ifndef LATH_FFN_SPEC_H
#define LATH_FFN_SPEC_H

#include "ffn/ffn_remote.h"
#include "ffn/ffn_walk.h"

/* What a text is about. */
typedef struct ffn_env {
    ffn *model; /* the model's own FFN */
    int32_t n_layers;
    int64_t d_model;
    const lath_allocator *alloc;
    size_t cache_bytes; /* of each `cached`; 0: 64 MiB */
    /* Opens the directory of a walk and sees to it that it is of this model. NULL: walks are refused. */
    lath_status (*open_index)(void *ctx, const char *dir, ffn_walk_source *out, lath_error *err);
    void *index_ctx;
    /* Opens what answers at an URL; NULL: ffn_remote_open. */
    lath_status (*open_remote)(void *ctx, const char *url, ffn_wire wire, const ffn_remote_of *of, ffn **out,
                               lath_error *err);
    void *remote_ctx;
} ffn_env;

/* For a fwd: its ffn and its gains. */
typedef struct ffn_choice {
    ffn *ffn;     /* NULL: the model's own in all layers */
    float *gains; /* [n_layers] or NULL */
    int32_t n_layers;
    const lath_allocator *alloc;
} ffn_choice;

/* LATH_ERR_USAGE, _UNSUPPORTED, _NOT_FOUND, ...: the message names the item. */
lath_status ffn_spec_open(const ffn_env *env, const char *text, ffn_choice *out, lath_error *err);
/* May be zero. */
void ffn_choice_close(ffn_choice *c);
/* What a layer has, for people. */
void ffn_choice_describe(const ffn_choice *c, const ffn_env *env, int32_t layer, buf *out);

#endif
