/* SPDX-License-Identifier: Apache-2.0
 *
 * ffn_remote.c: see ffn_remote.h. A request is the rows of all tokens of a layer:
 *
 *     POST /v1/walk-ffn, application/x-larql-ffn
 *     | u32 layer | u32 tokens | u32 flags: 1 | u32 top_k: 0 | f32 rows [tokens, d_model] |
 *     answer: | u32 layer | u32 tokens | f32 milliseconds | f32 or f16 rows [tokens, d_model] |      all little-endian
 *
 * or both as JSON. GET /v1/stats says beforehand whose FFN it is.
 */
#include "ffn/ffn_remote.h"

#include <string.h>

#include "base/json.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "rows go over the wire as they are in memory"
#endif

#define TYPE_F32 "application/x-larql-ffn"
#define TYPE_F16 "application/x-larql-ffn-f16"
enum { HEADER = 16, ANSWER_HEADER = 12, FULL_OUTPUT = 1, QUOTE = 80, JSON_MOST = 4096, JSON_NUMBER = 64 };

typedef struct ffn_remote {
    ffn base;
    const lath_allocator *alloc;
    http_client *http;
    ffn_wire wire;
    ffn_remote_of of;
    buf request;
} ffn_remote;

bool ffn_wire_named(const char *name, ffn_wire *out)
{
    static const char *const names[] = {"f32", "f16", "json"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *out = (ffn_wire)i;
        return true;
    }
    return false;
}

static size_t rows_floats(const ffn_remote *r, int64_t n_tok) { return (size_t)(n_tok * r->of.d_model + 15) / 16 * 16; }

static size_t remote_memory_floats(const ffn *self, const backend_ops *ops, int64_t n_tok)
{
    (void)ops;
    return rows_floats((const ffn_remote *)self, n_tok);
}

/* ------------------------------------------------------------------------------------------------------------- requests */

static void put_u32(buf *b, uint32_t v) { buf_append(b, &v, sizeof(v)); }

static lath_status make_request(ffn_remote *r, int32_t layer, int64_t n, const float *rows, lath_error *err)
{
    buf *b = &r->request;
    const int64_t count = n * r->of.d_model;
    buf_clear(b);
    if (r->wire == FFN_WIRE_JSON) {
        buf_printf(b, "{\"layer\":%d,\"seq_len\":%lld,\"full_output\":true,\"residual\":[", layer, (long long)n);
        for (int64_t i = 0; i < count; i++) {
            if (i) buf_char(b, ',');
            json_put_f32(b, rows[i]);
        }
        buf_str(b, "]}");
        return buf_status(b, err);
    }
    put_u32(b, (uint32_t)layer);
    put_u32(b, (uint32_t)n);
    put_u32(b, FULL_OUTPUT);
    put_u32(b, 0);
    buf_append(b, rows, (size_t)count * sizeof(float));
    return buf_status(b, err);
}

/* -------------------------------------------------------------------------------------------------------------- answers */

static lath_status refuse(const ffn_remote *r, int32_t layer, const char *why, lath_error *err)
{
    return err_set(err, LATH_ERR_NETWORK, "%s: layer %d: %s", http_client_url(r->http), layer, why);
}

/* What the server says of an error: {"error": "..."}, or the beginning of what it sent. */
static lath_status refuse_status(const ffn_remote *r, int32_t layer, const http_answer *a, lath_error *err)
{
    arena mem;
    json_value *v = NULL;
    lath_error ignored;
    arena_init(&mem, r->alloc);
    const bool parsed = json_parse(&mem, "answer", a->body, a->n, NULL, &v, &ignored) == LATH_OK;
    const json_value *text = parsed ? json_get(v, "error") : NULL;
    const bool says = text && text->kind == JSON_STRING;
    const lath_status st = err_set(err, LATH_ERR_NETWORK, "%s: layer %d: status %d: %.*s", http_client_url(r->http),
                                   layer, a->status, QUOTE, says ? text->u.string.data : a->body);
    arena_deinit(&mem);
    return st;
}

static lath_status read_binary(const ffn_remote *r, int32_t layer, int64_t n, const http_answer *a, float *out,
                               lath_error *err)
{
    const bool half = strcmp(a->type, TYPE_F16) == 0;
    const size_t count = (size_t)(n * r->of.d_model), size = half ? 2 : 4;
    uint32_t head[2];
    if (!half && strcmp(a->type, TYPE_F32) != 0)
        return refuse(r, layer, "the answer is of no type that was asked for", err);
    if (a->n != ANSWER_HEADER + count * size)
        return refuse(r, layer, "the answer has another length than its rows", err);
    memcpy(head, a->body, sizeof(head));
    if (head[0] != (uint32_t)layer || head[1] != (uint32_t)n)
        return refuse(r, layer, "the answer is of another layer or number of tokens", err);
    dtype_to_f32(half ? DTYPE_F16 : DTYPE_F32, a->body + ANSWER_HEADER, count, out);
    return LATH_OK;
}

static lath_status take_numbers(const ffn_remote *r, int32_t layer, int64_t n, const json_value *v, float *out,
                                lath_error *err)
{
    const json_value *list = json_get(v, "output");
    size_t at = 0;
    int64_t of = -1;
    if (json_get_int(v, "layer", "answer", 0, INT32_MAX, &of, err) != LATH_OK || of != layer)
        return refuse(r, layer, "the answer is of another layer", err);
    if (!list || list->kind != JSON_ARRAY || list->u.items.count != (size_t)(n * r->of.d_model))
        return refuse(r, layer, "the answer has another number of numbers than its rows", err);
    for (const json_value *i = list->u.items.first; i; i = i->next) {
        if (i->kind != JSON_INT && i->kind != JSON_REAL)
            return refuse(r, layer, "the answer has what is no number", err);
        out[at++] = i->kind == JSON_INT ? (float)i->u.integer : (float)i->u.real;
    }
    return LATH_OK;
}

static lath_status read_json(const ffn_remote *r, int32_t layer, int64_t n, const http_answer *a, float *out,
                             lath_error *err)
{
    arena mem;
    json_value *v = NULL;
    const json_options most = {.max_bytes = a->n + 1};
    /* What is parsed takes much more memory than its text. */
    if (a->n > JSON_MOST + JSON_NUMBER * (size_t)(n * r->of.d_model))
        return refuse(r, layer, "the answer is much longer than its rows", err);
    arena_init(&mem, r->alloc);
    lath_status st = json_parse(&mem, "the answer", a->body, a->n, &most, &v, err);
    if (st == LATH_OK)
        st = take_numbers(r, layer, n, v, out, err);
    else if (st != LATH_ERR_NOMEM)
        st = refuse(r, layer, "the answer is no JSON", err);
    arena_deinit(&mem);
    return st;
}

static lath_status ask(ffn_remote *r, const stream *s, int32_t layer, int64_t n, float *rows)
{
    static const char *const accepts[] = {TYPE_F32, TYPE_F16, "application/json"};
    http_answer a;
    TRY(make_request(r, layer, n, rows, s->err));
    const http_request q = {.path = "/v1/walk-ffn",
                            .type = r->wire == FFN_WIRE_JSON ? "application/json" : TYPE_F32,
                            .accept = accepts[r->wire],
                            .body = r->request.data,
                            .n = r->request.len};
    const lath_status st = http_client_call(r->http, &q, &a, s->err);
    if (st != LATH_OK) return err_wrap(s->err, st, "layer %d", layer);
    if (a.status != 200) return refuse_status(r, layer, &a, s->err);
    TRY(r->wire == FFN_WIRE_JSON ? read_json(r, layer, n, &a, rows, s->err)
                                 : read_binary(r, layer, n, &a, rows, s->err));
    if (s->kern->first_nonfinite(DTYPE_F32, rows, n * r->of.d_model) >= 0)
        return refuse(r, layer, "the answer has numbers that are not finite", s->err);
    return LATH_OK;
}

static lath_status remote_forward(ffn *self, const fwd *f, int32_t layer, view x, float *memory, view out)
{
    ffn_remote *r = (ffn_remote *)self;
    TRY(f->s->ops->read_rows(f->s, x, 0, x.n_tok, memory));
    TRY(ask(r, f->s, layer, x.n_tok, memory));
    ffn_note(f, layer, "remote", x.n_tok, 0);
    return f->s->ops->write_rows(f->s, out, 0, x.n_tok, memory);
}

/* ----------------------------------------------------------------------------------------------------------------- open */

static void remote_describe(const ffn *self, int32_t layer, buf *out)
{
    (void)layer;
    buf_printf(out, "remote %s", http_client_url(((const ffn_remote *)self)->http));
}

static void remote_close(ffn *self)
{
    ffn_remote *r = (ffn_remote *)self;
    http_client_close(r->http);
    buf_deinit(&r->request);
    alloc_release(r->alloc, r, sizeof(*r));
}

/* {"mode":"ffn-service"|"full","layers":N,"hidden_size":D,"owned_layers":[A,B]}; owned_layers absent: all. */
static lath_status check_stats(const ffn_remote *r, const json_value *v, lath_error *err)
{
    const char *url = http_client_url(r->http);
    const json_value *mode = json_get(v, "mode"), *owned = json_get(v, "owned_layers");
    int64_t layers = -1, d = -1;
    if (!json_is_string(mode, "ffn-service") && !json_is_string(mode, "full"))
        return err_set(err, LATH_ERR_NETWORK, "%s: no FFN server: it does not say so at /v1/stats", url);
    TRY(json_get_int(v, "layers", "/v1/stats", 1, INT32_MAX, &layers, err));
    TRY(json_get_int(v, "hidden_size", "/v1/stats", 1, INT32_MAX, &d, err));
    if (layers != r->of.n_layers || d != r->of.d_model)
        return err_set(err, LATH_ERR_NETWORK,
                       "%s: has another model: %lld layers of %lld numbers, this one has %d of %lld", url,
                       (long long)layers, (long long)d, r->of.n_layers, (long long)r->of.d_model);
    int64_t range[2] = {0, layers - 1};
    if (json_present(owned)) {
        const json_value *first = owned->kind == JSON_ARRAY && owned->u.items.count == 2 ? owned->u.items.first : NULL;
        if (!first || first->kind != JSON_INT || first->next->kind != JSON_INT)
            return err_set(err, LATH_ERR_NETWORK, "%s: /v1/stats: \"owned_layers\": want two numbers", url);
        range[0] = first->u.integer;
        range[1] = first->next->u.integer;
    }
    if (r->of.first < range[0] || r->of.last > range[1])
        return err_set(err, LATH_ERR_NETWORK, "%s: has layers %lld to %lld, wanted are %d to %d", url,
                       (long long)range[0], (long long)range[1], r->of.first, r->of.last);
    return LATH_OK;
}

static lath_status ask_stats(ffn_remote *r, lath_error *err)
{
    arena mem;
    json_value *v = NULL;
    http_answer a;
    const http_request q = {.path = "/v1/stats", .accept = "application/json"};
    TRY(http_client_call(r->http, &q, &a, err));
    if (a.status != 200)
        return err_set(err, LATH_ERR_NETWORK, "%s/v1/stats: status %d", http_client_url(r->http), a.status);
    arena_init(&mem, r->alloc);
    lath_status st = json_parse(&mem, "/v1/stats", a.body, a.n, NULL, &v, err);
    if (st == LATH_OK) st = check_stats(r, v, err);
    if (st != LATH_OK && st != LATH_ERR_NOMEM && st != LATH_ERR_NETWORK) {
        const lath_error why = *err;
        st = err_set(err, LATH_ERR_NETWORK, "%s: %s", http_client_url(r->http), why.msg);
    }
    arena_deinit(&mem);
    return st;
}

lath_status ffn_remote_open(const char *url, ffn_wire wire, const ffn_remote_of *of, const http_limits *limits,
                            const lath_allocator *alloc, ffn **out, lath_error *err)
{
    static const ffn_ops ops = {.name = "remote",
                                .memory_floats = remote_memory_floats,
                                .forward = remote_forward,
                                .describe = remote_describe,
                                .close = remote_close};
    static const http_limits usual = HTTP_LIMITS_INIT;
    ffn_remote *r = alloc_zero(alloc, sizeof(*r));
    if (!r) return err_nomem(err, sizeof(*r));
    *r = (ffn_remote){.base = {&ops}, .alloc = alloc, .wire = wire, .of = *of};
    buf_init(&r->request, alloc, SIZE_MAX / 4);
    lath_status st = http_client_open(url, limits ? limits : &usual, alloc, &r->http, err);
    if (st == LATH_OK) st = ask_stats(r, err);
    if (st != LATH_OK)
        remote_close(&r->base);
    else
        *out = &r->base;
    return st;
}
