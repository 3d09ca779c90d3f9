/* SPDX-License-Identifier: Apache-2.0
 * http.c: see http.h: what libmicrohttpd calls becomes one call a request, with the whole body. */
#include "http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

enum { FIRST_BYTES = 1 << 16, ANSWER_BYTES = 1 << 30 };

struct http_server {
    http_server_options o;
    http_answer_fn answer;
    void *ctx;
    struct MHD_Daemon *daemon;
    uint16_t port;
};

/* A request that is coming in. */
typedef struct request {
    buf body;
} request;

void http_say_error(http_out *out, int status, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    buf_clear(out->b);
    buf_str(out->b, "{\"error\":");
    json_put_string(out->b, text, strlen(text));
    buf_str(out->b, "}");
    out->status = status;
    out->type = "application/json";
}

static enum MHD_Result send_answer(struct MHD_Connection *c, http_out *out)
{
    if (out->b->failed) http_say_error(out, 503, "out of memory");
    if (out->b->failed) return MHD_NO;
    struct MHD_Response *r = MHD_create_response_from_buffer(out->b->len, out->b->data, MHD_RESPMEM_MUST_COPY);
    if (!r) return MHD_NO;
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, out->type);
    const enum MHD_Result done = MHD_queue_response(c, (unsigned int)out->status, r);
    MHD_destroy_response(r);
    return done;
}

static const char *header(struct MHD_Connection *c, const char *name)
{
    const char *v = MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
    return v ? v : "";
}

static enum MHD_Result answer_request(const http_server *s, struct MHD_Connection *c, const char *path,
                                      const char *method, request *r)
{
    buf b;
    http_out out = {.status = 200, .type = "application/json", .b = &b};
    buf_init(&b, alloc_default(), ANSWER_BYTES);
    if (r->body.over) {
        http_say_error(&out, 413, "a body of more than %zu bytes", s->o.max_bytes);
    } else if (r->body.failed) {
        http_say_error(&out, 503, "out of memory");
    } else {
        const http_in in = {.method = method,
                            .path = path,
                            .type = header(c, MHD_HTTP_HEADER_CONTENT_TYPE),
                            .accept = header(c, MHD_HTTP_HEADER_ACCEPT),
                            .body = buf_cstr(&r->body),
                            .n = r->body.len};
        s->answer(s->ctx, &in, &out);
    }
    const enum MHD_Result done = send_answer(c, &out);
    buf_deinit(&b);
    return done;
}

/* Called for the headers, for each piece of the body, and at its end. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *c, const char *path, const char *method,
                                  const char *version, const char *piece, size_t *n, void **state)
{
    const http_server *s = ctx;
    request *r = *state;
    (void)version;
    if (!r) {
        r = alloc_zero(alloc_default(), sizeof(*r));
        if (!r) return MHD_NO;
        buf_init(&r->body, alloc_default(), s->o.max_bytes);
        *state = r;
        return MHD_YES;
    }
    if (*n == 0) return answer_request(s, c, path, method, r);
    buf_append(&r->body, piece, *n); /* a failure is kept, and is the answer */
    *n = 0;
    return MHD_YES;
}

static void on_end(void *ctx, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode code)
{
    request *r = *state;
    (void)ctx, (void)c, (void)code;
    if (!r) return;
    buf_deinit(&r->body);
    alloc_release(alloc_default(), r, sizeof(*r));
    *state = NULL;
}

void http_server_stop(http_server *s)
{
    if (!s) return;
    if (s->daemon) MHD_stop_daemon(s->daemon);
    alloc_release(alloc_default(), s, sizeof(*s));
}

uint16_t http_server_port(const http_server *s) { return s->port; }

lath_status http_server_start(const http_server_options *o, http_answer_fn answer, void *ctx, http_server **out,
                              lath_error *err)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(o->port)};
    if (inet_pton(AF_INET, o->host, &at.sin_addr) != 1)
        return err_set(err, LATH_ERR_USAGE, "\"%s\": want an IPv4 address to listen at, as 127.0.0.1", o->host);
    http_server *s = alloc_zero(alloc_default(), sizeof(*s));
    if (!s) return err_nomem(err, sizeof(*s));
    *s = (http_server){.o = *o, .answer = answer, .ctx = ctx};
    errno = 0;
    s->daemon = MHD_start_daemon(MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD, o->port, NULL, NULL, on_request, s,
                                 MHD_OPTION_SOCK_ADDR, &at, MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL,
                                 MHD_OPTION_CONNECTION_TIMEOUT, o->seconds, MHD_OPTION_CONNECTION_LIMIT, o->most,
                                 MHD_OPTION_CONNECTION_MEMORY_INCREMENT, (size_t)FIRST_BYTES, MHD_OPTION_END);
    if (!s->daemon) {
        const int why = errno;
        http_server_stop(s);
        return err_os(err, LATH_ERR_NETWORK, why, "cannot listen at %s:%u", o->host, o->port);
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
    s->port = info ? info->port : o->port;
    *out = s;
    return LATH_OK;
}
