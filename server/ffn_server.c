/* SPDX-License-Identifier: Apache-2.0
 * ffn_server.c: see ffn_server.h. A request is one of rows and layers, whatever its form; the answer's form is the request's, or what it accepts. */
#include "ffn_server.h"

#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/half.h"
#include "base/json.h"

#define TYPE_F32 "application/x-larql-ffn"
#define TYPE_F16 "application/x-larql-ffn-f16"
enum {
    MOST_LAYERS = 1 << 12,
    FULL_OUTPUT = 1,
    HEADER_WORDS = 4,
    MOST_NUMBERS = 1 << 26 /* of an answer: the same rows may be asked through all layers, in a few bytes more */
};
static const uint32_t SEVERAL = 0xffffffff;

struct ffn_server {
    const lath_model *model;
    const char *name;
    int32_t first, last;
    lath_model_info info;
    http_server *http;
    double begin;
    uint64_t served;
};

/* What is asked. Arrays are in the request's arena. */
typedef struct job {
    int32_t *layers; /* [n_layers] */
    size_t n_layers, n_tok;
    float *rows;  /* [n_tok, d_model] */
    float *out;   /* [n_layers, n_tok, d_model] */
    bool several; /* asked as a list */
    double ms;
} job;

/* ------------------------------------------------------------------------------------------------------------- reading */

static float *floats(arena *mem, size_t n) { return arena_array(mem, n, sizeof(float)); }

/* False: an answer that says why is there. */
static bool check_job(const ffn_server *s, const job *j, http_out *out)
{
    for (size_t i = 0; i < j->n_layers; i++) {
        const int32_t l = j->layers[i];
        if (l < 0 || l >= s->info.n_layers) {
            http_say_error(out, 400, "layer %d: the model has layers 0 to %d", l, s->info.n_layers - 1);
            return false;
        }
        if (l < s->first || l > s->last) {
            http_say_error(out, 400, "layer %d not served by this shard (owned: %d-%d)", l, s->first, s->last);
            return false;
        }
    }
    return true;
}

static bool take_layers(const json_value *v, job *j, arena *mem)
{
    const json_value *one = json_get(v, "layer"), *list = json_get(v, "layers");
    j->several = json_present(list);
    if (j->several == json_present(one)) return false;
    const size_t n = !j->several ? 1 : list->kind == JSON_ARRAY ? list->u.items.count : 0;
    const json_value *i = j->several && n ? list->u.items.first : one;
    j->layers = n && n <= MOST_LAYERS ? arena_array(mem, n, sizeof(*j->layers)) : NULL;
    if (!j->layers) return false;
    for (; i && j->n_layers < n; i = j->several ? i->next : NULL) {
        if (i->kind != JSON_INT || i->u.integer < 0 || i->u.integer > INT32_MAX) return false;
        j->layers[j->n_layers++] = (int32_t)i->u.integer;
    }
    return true;
}

static bool take_rows(const ffn_server *s, const json_value *v, int64_t n_tok, job *j, arena *mem, http_out *out)
{
    const json_value *list = json_get(v, "residual");
    const size_t want = (size_t)n_tok * (size_t)s->info.d_model;
    size_t at = 0;
    if (!list || list->kind != JSON_ARRAY || list->u.items.count != want) {
        http_say_error(out, 400, "\"residual\": want seq_len * hidden_size = %zu numbers", want);
        return false;
    }
    j->n_tok = (size_t)n_tok;
    j->rows = floats(mem, want);
    if (!j->rows) {
        http_say_error(out, 503, "out of memory");
        return false;
    }
    for (const json_value *i = list->u.items.first; i; i = i->next) {
        if (i->kind != JSON_INT && i->kind != JSON_REAL) {
            http_say_error(out, 400, "\"residual\": element %zu is no number", at);
            return false;
        }
        j->rows[at++] = i->kind == JSON_INT ? (float)i->u.integer : (float)i->u.real;
    }
    return true;
}

static bool read_json(const ffn_server *s, const http_in *in, job *j, arena *mem, http_out *out)
{
    json_value *v = NULL;
    lath_error err;
    int64_t n_tok = 1, top_k = 0;
    bool full = false, moe = false;
    const json_options most = {.max_bytes = in->n + 1};
    lath_status st = json_parse(mem, "request", in->body, in->n, &most, &v, &err);
    if (st == LATH_OK) st = json_get_int(v, "seq_len", "request", 1, 1 << 20, &n_tok, &err);
    if (st == LATH_OK) st = json_get_int(v, "top_k", "request", 0, INT64_MAX, &top_k, &err);
    if (st == LATH_OK) st = json_get_bool(v, "full_output", "request", &full, &err);
    if (st == LATH_OK) st = json_get_bool(v, "moe_layer", "request", &moe, &err);
    if (st != LATH_OK) {
        http_say_error(out, st == LATH_ERR_NOMEM ? 503 : 400, "%s", err.msg);
        return false;
    }
    if (!full || moe) {
        http_say_error(out, 400,
                       moe ? "\"moe_layer\" is not served: a layer of experts is asked as any other"
                           : "features alone are not served: set \"full_output\"");
        return false;
    }
    if (!take_layers(v, j, mem)) {
        http_say_error(out, 400, "want \"layer\", a number, or \"layers\", some of them");
        return false;
    }
    return take_rows(s, v, n_tok, j, mem, out);
}

static uint32_t word(const char *p, size_t i)
{
    uint32_t u;
    memcpy(&u, p + 4 * i, 4);
    return u;
}

/* | layer, or 0xffffffff, n, layers [n] | tokens | flags | top_k | rows | */
static bool read_binary(const ffn_server *s, const http_in *in, job *j, arena *mem, http_out *out)
{
    size_t at = 0, n = 1;
    const size_t words = in->n / 4;
    if (in->n % 4 != 0 || words < HEADER_WORDS) {
        http_say_error(out, 400, "a body of %zu bytes: want words of 4 bytes, %d of them before the rows", in->n,
                       HEADER_WORDS);
        return false;
    }
    j->several = word(in->body, 0) == SEVERAL;
    if (j->several) n = word(in->body, 1), at = 2;
    if (n == 0 || n > MOST_LAYERS || at + n + HEADER_WORDS - 1 > words) {
        http_say_error(out, 400, "%zu layers in a body of %zu bytes", n, in->n);
        return false;
    }
    j->layers = arena_array(mem, n, sizeof(*j->layers));
    for (size_t i = 0; j->layers && i < n; i++) {
        const uint32_t l = word(in->body, at++);
        j->layers[i] = l > INT32_MAX ? INT32_MAX : (int32_t)l;
    }
    j->n_layers = n;
    j->n_tok = word(in->body, at);
    const bool full = word(in->body, at + 1) & FULL_OUTPUT;
    at += 3;
    const size_t want = j->n_tok * (size_t)s->info.d_model; /* 2^32 tokens at most: no overflow */
    if (!full) {
        http_say_error(out, 400, "features alone are not served: set bit 0 of the flags");
        return false;
    }
    if (j->n_tok == 0 || words - at != want) {
        http_say_error(out, 400, "rows of %zu numbers: want seq_len * hidden_size = %zu", words - at, want);
        return false;
    }
    j->rows = floats(mem, want);
    if (!j->layers || !j->rows) {
        http_say_error(out, 503, "out of memory");
        return false;
    }
    memcpy(j->rows, in->body + 4 * at, 4 * want);
    return true;
}

/* ------------------------------------------------------------------------------------------------------------- writing */

static void put_word(buf *b, uint32_t v) { buf_append(b, &v, sizeof(v)); }

static void write_json_result(const ffn_server *s, const job *j, size_t i, buf *b)
{
    const size_t n = j->n_tok * (size_t)s->info.d_model;
    buf_printf(b, "{\"layer\":%d,\"seq_len\":%zu,\"output\":[", j->layers[i], j->n_tok);
    for (size_t k = 0; k < n; k++) {
        if (k) buf_char(b, ',');
        json_put_f32(b, j->out[i * n + k]);
    }
    buf_str(b, "]");
}

static void write_json(const ffn_server *s, const job *j, http_out *out)
{
    buf *b = out->b;
    if (!j->several) {
        write_json_result(s, j, 0, b);
        buf_printf(b, ",\"latency_ms\":%.3f}", j->ms);
        return;
    }
    buf_str(b, "{\"results\":[");
    for (size_t i = 0; i < j->n_layers; i++) {
        if (i) buf_char(b, ',');
        write_json_result(s, j, i, b);
        buf_char(b, '}');
    }
    buf_printf(b, "],\"latency_ms\":%.3f}", j->ms);
}

static void write_binary(const ffn_server *s, const job *j, bool half, http_out *out)
{
    buf *b = out->b;
    const size_t n = j->n_tok * (size_t)s->info.d_model;
    const float ms = (float)j->ms;
    out->type = half ? TYPE_F16 : TYPE_F32;
    if (j->several) {
        put_word(b, SEVERAL);
        put_word(b, (uint32_t)j->n_layers);
        buf_append(b, &ms, sizeof(ms));
    }
    for (size_t i = 0; i < j->n_layers; i++) {
        const float *rows = j->out + i * n;
        put_word(b, (uint32_t)j->layers[i]);
        put_word(b, (uint32_t)j->n_tok);
        if (j->several)
            put_word(b, (uint32_t)n);
        else
            buf_append(b, &ms, sizeof(ms));
        if (!half) buf_append(b, rows, n * sizeof(*rows));
        for (size_t k = 0; half && k < n; k++) {
            const uint16_t h = half_from_f32(rows[k]);
            buf_append(b, &h, sizeof(h));
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------ requests */

/* Media types are the same in any case, and may have parameters behind a semicolon (RFC 9110, 8.3.1). */
static bool is_type(const char *type, const char *want)
{
    const size_t n = strlen(want);
    return strncasecmp(type, want, n) == 0 && (type[n] == 0 || type[n] == ';' || type[n] == ' ');
}

static bool compute(const ffn_server *s, job *j, arena *mem, http_out *out)
{
    const size_t n = j->n_tok * (size_t)s->info.d_model;
    const double begin = clock_now();
    lath_error err;
    if (n > MOST_NUMBERS / j->n_layers) {
        http_say_error(out, 413, "an answer of more than %d numbers: ask in parts", MOST_NUMBERS);
        return false;
    }
    j->out = floats(mem, n * j->n_layers);
    if (!j->out) {
        http_say_error(out, 503, "out of memory");
        return false;
    }
    for (size_t i = 0; i < j->n_layers; i++) {
        const lath_status st = lath_ffn_run(s->model, NULL, j->layers[i], j->rows, j->n_tok, j->out + i * n, &err);
        if (st != LATH_OK) {
            http_say_error(out, lath_status_http(st), "%s", err.msg);
            return false;
        }
    }
    j->ms = 1e3 * (clock_now() - begin);
    return true;
}

static void walk_ffn(ffn_server *s, const http_in *in, http_out *out)
{
    arena mem;
    job j = {0};
    const bool binary = is_type(in->type, TYPE_F32);
    arena_init(&mem, alloc_default());
    const bool good = (binary ? read_binary(s, in, &j, &mem, out) : read_json(s, in, &j, &mem, out)) &&
                      check_job(s, &j, out) && compute(s, &j, &mem, out);
    if (good && binary)
        write_binary(s, &j, strstr(in->accept, TYPE_F16) != NULL, out);
    else if (good)
        write_json(s, &j, out);
    if (good) s->served++;
    arena_deinit(&mem);
}

static void stats(const ffn_server *s, http_out *out)
{
    buf_str(out->b, "{\"model\":");
    json_put_string(out->b, s->name, strlen(s->name));
    buf_str(out->b, ",\"family\":");
    json_put_string(out->b, s->info.architecture, strlen(s->info.architecture));
    buf_printf(out->b, ",\"mode\":\"ffn-service\",\"layers\":%d,\"hidden_size\":%lld,\"owned_layers\":[%d,%d]}",
               s->info.n_layers, (long long)s->info.d_model, s->first, s->last);
}

static void answer(void *ctx, const http_in *in, http_out *out)
{
    ffn_server *s = ctx;
    const bool get = strcmp(in->method, "GET") == 0, post = strcmp(in->method, "POST") == 0;
    if (strcmp(in->path, "/v1/walk-ffn") == 0 && post)
        walk_ffn(s, in, out);
    else if (strcmp(in->path, "/v1/stats") == 0 && get)
        stats(s, out);
    else if (strcmp(in->path, "/v1/health") == 0 && get)
        buf_printf(out->b, "{\"status\":\"ok\",\"uptime_seconds\":%.0f,\"requests_served\":%llu}",
                   clock_now() - s->begin, (unsigned long long)s->served);
    else
        http_say_error(out, 404, "%s %s: POST /v1/walk-ffn, GET /v1/stats and GET /v1/health are answered", in->method,
                       in->path);
}

void ffn_server_stop(ffn_server *s)
{
    if (!s) return;
    http_server_stop(s->http);
    alloc_release(alloc_default(), s, sizeof(*s));
}

uint16_t ffn_server_port(const ffn_server *s) { return http_server_port(s->http); }

lath_status ffn_server_start(const lath_model *model, const char *name, int32_t first, int32_t last,
                             const http_server_options *o, ffn_server **out, lath_error *err)
{
    ffn_server *s = alloc_zero(alloc_default(), sizeof(*s));
    if (!s) return err_nomem(err, sizeof(*s));
    *s = (ffn_server){.model = model, .name = name, .first = first, .last = last, .begin = clock_now()};
    s->info.struct_size = sizeof(s->info);
    lath_status st = lath_model_get_info(model, &s->info, err);
    if (st == LATH_OK && (first < 0 || first > last || last >= s->info.n_layers))
        st = err_set(err, LATH_ERR_USAGE, "layers %d-%d: the model has 0 to %d", first, last, s->info.n_layers - 1);
    if (st == LATH_OK) st = http_server_start(o, answer, s, &s->http, err);
    if (st != LATH_OK)
        ffn_server_stop(s);
    else
        *out = s;
    return st;
}
