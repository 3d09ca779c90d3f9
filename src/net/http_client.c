/* SPDX-License-Identifier: Apache-2.0
 * http_client.c: see http_client.h. */
#include "net/http_client.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

struct http_client {
    const lath_allocator *alloc;
    http_limits limits;
    CURL *curl;
    char *url; /* without a slash at its end */
    size_t url_bytes;
    buf answer, type, full;
    char why[CURL_ERROR_SIZE];
};

const char *http_client_url(const http_client *c) { return c->url; }

static size_t take_body(char *p, size_t size, size_t n, void *ctx)
{
    http_client *c = ctx;
    buf_append(&c->answer, p, size * n);
    return c->answer.failed ? 0 : size * n;
}

static void set_always(http_client *c)
{
    CURL *h = c->curl;
    curl_easy_setopt(h, CURLOPT_ERRORBUFFER, c->why);
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L); /* a library keeps off signals */
    curl_easy_setopt(h, CURLOPT_PROXY, "");    /* the environment is not asked */
    curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(h, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)(1000 * c->limits.connect_seconds));
    curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, (long)(1000 * c->limits.seconds));
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, c);
    curl_easy_setopt(h, CURLOPT_USERAGENT, "lath");
}

static bool is_url(const char *url)
{
    const char *host = strncasecmp(url, "http://", 7) == 0    ? url + 7
                       : strncasecmp(url, "https://", 8) == 0 ? url + 8
                                                              : "";
    if (!*host || *host == '/') return false;
    for (const char *s = url; *s; s++)
        if ((unsigned char)*s <= ' ' || *s == '?' || *s == '#') return false;
    return true;
}

void http_client_close(http_client *c)
{
    if (!c) return;
    if (c->curl) curl_easy_cleanup(c->curl);
    buf_deinit(&c->answer);
    buf_deinit(&c->type);
    buf_deinit(&c->full);
    alloc_release(c->alloc, c->url, c->url_bytes);
    alloc_release(c->alloc, c, sizeof(*c));
}

lath_status http_client_open(const char *url, const http_limits *limits, const lath_allocator *alloc, http_client **out,
                             lath_error *err)
{
    size_t n = strlen(url);
    if (!is_url(url)) return err_set(err, LATH_ERR_USAGE, "\"%s\": want http://HOST:PORT or https://HOST:PORT", url);
    while (url[n - 1] == '/') n--;
    http_client *c = alloc_zero(alloc, sizeof(*c));
    if (!c) return err_nomem(err, sizeof(*c));
    c->alloc = alloc;
    c->limits = *limits;
    buf_init(&c->answer, alloc, limits->max_bytes);
    buf_init(&c->type, alloc, 1 << 10);
    buf_init(&c->full, alloc, 1 << 16);
    c->url_bytes = n + 1;
    c->url = alloc_bytes(alloc, c->url_bytes, 1);
    c->curl = c->url ? curl_easy_init() : NULL;
    if (!c->curl) {
        http_client_close(c);
        return err_nomem(err, n);
    }
    memcpy(c->url, url, n);
    c->url[n] = 0;
    set_always(c);
    *out = c;
    return LATH_OK;
}

/* What curl says, in few words that do not change with its version where a caller may want to know. */
static const char *reason(const http_client *c, CURLcode code)
{
    switch (code) {
    case CURLE_COULDNT_CONNECT: return "nobody answers there (connection refused)";
    case CURLE_COULDNT_RESOLVE_HOST: return "no such host";
    case CURLE_OPERATION_TIMEDOUT: return "no answer in time";
    case CURLE_WRITE_ERROR: return c->answer.over ? "the answer is too long" : "out of memory";
    case CURLE_GOT_NOTHING: return "the connection was closed without an answer";
    case CURLE_PARTIAL_FILE: return "the connection was closed in the middle of the answer";
    default: return c->why[0] ? c->why : curl_easy_strerror(code);
    }
}

/* Another try may have more luck. What was slow once is not asked to be slow again. */
static bool is_passing(CURLcode code, long status)
{
    if (code == CURLE_OK) return status >= 500;
    return code == CURLE_COULDNT_CONNECT || code == CURLE_GOT_NOTHING || code == CURLE_SEND_ERROR ||
           code == CURLE_RECV_ERROR;
}

static void wait_before(int32_t attempt)
{
    const struct timespec t = {0, 50000000L << attempt}; /* 50 ms, 100 ms, ... */
    if (attempt < 4) nanosleep(&t, NULL);
}

static lath_status set_request(http_client *c, const http_request *r, struct curl_slist **headers, lath_error *err)
{
    char line[200];
    struct curl_slist *list = NULL, *more;
    buf_clear(&c->full);
    buf_printf(&c->full, "%s%s", c->url, r->path);
    TRY(buf_status(&c->full, err));
    curl_easy_setopt(c->curl, CURLOPT_URL, buf_cstr(&c->full));
    /* No "Expect: 100-continue": it costs a turn. */
    const char *const names[] = {"Expect", r->type ? "Content-Type" : NULL, r->accept ? "Accept" : NULL},
                      *const values[] = {"", r->type, r->accept};
    for (int i = 0; i < 3; i++) {
        if (!names[i]) continue;
        snprintf(line, sizeof(line), "%s: %s", names[i], values[i]);
        more = curl_slist_append(list, i == 0 ? "Expect:" : line);
        if (!more) {
            curl_slist_free_all(list);
            return err_nomem(err, sizeof(line));
        }
        list = more;
    }
    *headers = list;
    curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(c->curl, r->body ? CURLOPT_POST : CURLOPT_HTTPGET, 1L);
    if (r->body) {
        curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->n);
        curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, r->body);
    }
    return LATH_OK;
}

static lath_status take_answer(http_client *c, long status, http_answer *out, lath_error *err)
{
    char *type = NULL;
    curl_easy_getinfo(c->curl, CURLINFO_CONTENT_TYPE, &type);
    buf_clear(&c->type);
    if (type) buf_str(&c->type, type);
    *out = (http_answer){.status = (int32_t)status, .type = buf_cstr(&c->type), .n = c->answer.len};
    out->body = buf_cstr(&c->answer);
    return buf_status(&c->answer, err);
}

lath_status http_client_call(http_client *c, const http_request *r, http_answer *out, lath_error *err)
{
    struct curl_slist *headers = NULL;
    CURLcode code = CURLE_OK;
    long status = 0;
    int32_t tries = 0;
    TRY(set_request(c, r, &headers, err));
    do {
        if (tries) wait_before(tries - 1);
        buf_clear(&c->answer);
        c->why[0] = 0;
        status = 0;
        code = curl_easy_perform(c->curl);
        if (code == CURLE_OK) curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
        tries++;
    } while (tries < c->limits.tries && is_passing(code, status));
    curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    if (code == CURLE_OK) return take_answer(c, status, out, err);
    if (code == CURLE_WRITE_ERROR && !c->answer.over) return err_nomem(err, c->answer.len);
    return err_set(err, LATH_ERR_NETWORK, "%s%s: %s%s", c->url, r->path, reason(c, code),
                   tries > 1 ? ", tried several times" : "");
}
