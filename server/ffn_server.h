/* SPDX-License-Identifier: Apache-2.0
 *
 * ffn_server.h: the FFNs of a model's layers over HTTP, for other lath processes (docs/formats/ffn-wire.md):
 *
 *     POST /v1/walk-ffn   JSON or application/x-larql-ffn      GET /v1/stats   GET /v1/health
 */
#ifndef LATH_SERVER_FFN_SERVER_H
#define LATH_SERVER_FFN_SERVER_H

#include "http.h"
#include "lath/lath_inspect.h"

typedef struct ffn_server ffn_server;

/* The layers first .. last of the model, which outlives the server; each as lath_ffn_run computes it. name: of the model, for /v1/stats. */
lath_status ffn_server_start(const lath_model *model, const char *name, int32_t first, int32_t last,
                             const http_server_options *o, ffn_server **out, lath_error *err);
void ffn_server_stop(ffn_server *s);
uint16_t ffn_server_port(const ffn_server *s);

#endif
