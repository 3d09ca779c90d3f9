/* SPDX-License-Identifier: Apache-2.0
 *
 * http.h: an HTTP server (the one owner of libmicrohttpd). A request's body is read as a whole, then one function answers it; requests are answered one at a
 * time, on a thread of the server's own. Connections are kept.
 */
#ifndef LATH_SERVER_HTTP_H
#define LATH_SERVER_HTTP_H

#include "base/buf.h"

typedef struct http_server http_server;

typedef struct http_in {
    const char *method, *path;
    const char *type, *accept; /* "" where there is none */
    const char *body;          /* [n], a 0 behind */
    size_t n;
} http_in;

/* What an answer is; b is empty before. */
typedef struct http_out {
    int status;       /* 200 before */
    const char *type; /* static; "application/json" before */
    buf *b;
} http_out;

/* Whatever goes wrong becomes an answer. */
typedef void (*http_answer_fn)(void *ctx, const http_in *in, http_out *out);

typedef struct http_server_options {
    const char *host;     /* an address; "127.0.0.1" */
    uint16_t port;        /* 0: any that is free */
    size_t max_bytes;     /* of a request's body; more is 413 */
    unsigned int seconds; /* that a connection may say nothing */
    unsigned int most;    /* connections at a time */
} http_server_options;
#define HTTP_SERVER_OPTIONS_INIT                  \
    {                                             \
        "127.0.0.1", 0, (size_t)64 << 20, 120, 64 \
    }

lath_status http_server_start(const http_server_options *o, http_answer_fn answer, void *ctx, http_server **out,
                              lath_error *err);
/* Ends when what is being answered is answered. NULL is allowed. */
void http_server_stop(http_server *s);
uint16_t http_server_port(const http_server *s);

/* {"error":"..."} with this status. */
void http_say_error(http_out *out, int status, const char *fmt, ...) ERR_PRINTF(3, 4);

#endif
