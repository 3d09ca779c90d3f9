/* SPDX-License-Identifier: Apache-2.0
 *
 * ffn_remote.h: an FFN in another process, over HTTP. What goes over the wire is the input of the layer's FFN as rows of floats, and its result (docs/formats/ffn-wire.md).
 */
#ifndef LATH_FFN_REMOTE_H
#define LATH_FFN_REMOTE_H

#include "ffn/ffn.h"
#include "net/http_client.h"

/* How results come: floats (exact), halves (rounded), or numbers as text (exact, slow: for servers that know no other). */
typedef enum ffn_wire { FFN_WIRE_F32, FFN_WIRE_F16, FFN_WIRE_JSON } ffn_wire;
/* "f32", "f16", "json". */
bool ffn_wire_named(const char *name, ffn_wire *out);

typedef struct ffn_remote_of {
    int32_t n_layers, first, last; /* of the model; that are asked for */
    int64_t d_model;
} ffn_remote_of;

/* Asks the server what it is: one that is away, is of another model, or has not all of these layers is refused by name. Every answer's length and numbers are
 * checked; LATH_ERR_NETWORK names URL and layer. */
lath_status ffn_remote_open(const char *url, ffn_wire wire, const ffn_remote_of *of, const http_limits *limits,
                            const lath_allocator *alloc, ffn **out, lath_error *err);

#endif
