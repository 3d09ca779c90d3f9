/* SPDX-License-Identifier: Apache-2.0
 *
 * http_client.h: requests to one HTTP server, over one connection that is kept (the one owner of curl). Whatever the environment says of proxies is not looked at, and no
 * redirection is followed: what a caller named is asked, and nobody else.
 */
#ifndef LATH_NET_HTTP_CLIENT_H
#define LATH_NET_HTTP_CLIENT_H

#include "base/buf.h"

typedef struct http_client http_client; /* of one thread at a time */

typedef struct http_limits {
    double connect_seconds, seconds; /* of a try: until connected, in all */
    int32_t tries;                   /* where nobody answers, or with status 5xx */
    size_t max_bytes;                /* of an answer */
} http_limits;
#define HTTP_LIMITS_INIT            \
    {                               \
        2, 30, 3, (size_t)256 << 20 \
    }

typedef struct http_request {
    const char *path;          /* "/v1/stats", behind the client's URL */
    const char *type, *accept; /* media types; NULL: none */
    const void *body;          /* NULL: GET, else POST */
    size_t n;
} http_request;

/* Valid until the client's next call. */
typedef struct http_answer {
    int32_t status;
    const char *type; /* "" when it says none */
    const char *body; /* a 0 behind, which is not counted */
    size_t n;
} http_answer;

/* url: "http://HOST:PORT" or "https://...", a path in front of all others may follow. Nothing is sent. LATH_ERR_USAGE: it is no such URL. */
lath_status http_client_open(const char *url, const http_limits *limits, const lath_allocator *alloc, http_client **out,
                             lath_error *err);
void http_client_close(http_client *c);
/* The URL, for messages. */
const char *http_client_url(const http_client *c);

/* LATH_ERR_NETWORK: nobody answers, too slowly, too much; the message has the URL. An answer with another status than 200 is an answer. */
lath_status http_client_call(http_client *c, const http_request *r, http_answer *out, lath_error *err);

#endif
