/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ffn_remote.c: FFNs of another process over loopback: `lath serve-ffn`'s server gives what the model itself gives, in every form of the wire; servers that are away,
 * slow, of another model, or that answer nonsense are refused by name; requests that are wrong get an answer that says so.
 */
#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ffn/ffn_backends.h"
#include "ffn/ffn_spec.h"
#include "ffn_server.h"
#include "support/forward.h"
#include "support/golden.h"
#include "support/test.h"

/* ---------------------------------------------------------------------------------------------------------------- models */

typedef struct opened {
    lath_runtime *rt;
    lath_model *model;
    ffn_server *server;
    char url[64];
} opened;

static opened open_model(const char *name)
{
    opened o = {0};
    lath_error err;
    char dir[1024];
    lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
    lath_model_options mo = LATH_MODEL_OPTIONS_INIT;
    ro.n_threads = 2;
    mo.precision = LATH_PRECISION_EXACT;
    test_path(dir, sizeof(dir), "golden", name);
    assert_ok(lath_runtime_create(&ro, &o.rt, &err), err);
    assert_ok(lath_model_open(o.rt, dir, &mo, &o.model, &err), err);
    return o;
}

static void serve(opened *o, int32_t first, int32_t last)
{
    lath_error err;
    http_server_options h = HTTP_SERVER_OPTIONS_INIT;
    h.max_bytes = 1 << 20;
    assert_ok(ffn_server_start(o->model, "tiny", first, last, &h, &o->server, &err), err);
    snprintf(o->url, sizeof(o->url), "http://127.0.0.1:%u", ffn_server_port(o->server));
}

static void close_model(opened *o)
{
    ffn_server_stop(o->server);
    lath_model_close(o->model);
    lath_runtime_destroy(o->rt);
}

static const char *const models[] = {"decoder/gemma3_new_form_cap", "decoder/phi4_partial_tied", "decoder/qwen3_moe"};

static ffn_env env_of(const opened *o)
{
    return (ffn_env){.model = o->model->arch.ffn,
                     .n_layers = o->model->arch.dims.n_layers,
                     .d_model = o->model->arch.dims.d_model,
                     .alloc = alloc_default()};
}

static const int32_t ids[] = {5, 9, 2, 31, 7, 7, 12, 3, 28, 1, 4, 6, 8, 10, 11, 13, 14};
enum { N_IDS = sizeof(ids) / sizeof(ids[0]) };

static float *run(const opened *o, ffn *f, ffn_took *took)
{
    const prompt_ids p = {ids, N_IDS};
    float *out = test_malloc((size_t)(N_IDS * o->model->arch.dims.vocab_size) * sizeof(float));
    const fwd with = {.ffn = f, .took = took};
    test_run(o->model, &p, 1, &with, NULL, out);
    return out;
}

/* The server's model is opened a second time: nothing is shared but the wire. */
static void test_remote_is_local(void **state)
{
    static const char *const wires[] = {"", ",wire=f32", ",wire=json", ",wire=f16"};
    (void)state;
    for (size_t m = 0; m < 3; m++) {
        opened here = open_model(models[m]), there = open_model(models[m]);
        serve(&there, 0, there.model->arch.dims.n_layers - 1);
        const size_t n = (size_t)(N_IDS * here.model->arch.dims.vocab_size);
        float *want = run(&here, NULL, NULL);
        for (int w = 0; w < 4; w++) {
            lath_error err;
            ffn_choice c;
            ffn_took took[16] = {{0}};
            char spec[200];
            snprintf(spec, sizeof(spec), w == 3 ? "0=dense,1-=remote:%s%s" : "remote:%s/%s", there.url, wires[w]);
            const ffn_env env = env_of(&here);
            assert_ok(ffn_spec_open(&env, spec, &c, &err), err);
            float *have = run(&here, c.ffn, took);
            assert_string_equal(took[1].path, "remote");
            assert_int_equal(took[1].tokens, N_IDS);
            if (w < 3) assert_memory_equal(have, want, n * sizeof(float));
            if (w == 3) {
                double largest = 0;
                for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs((double)want[i]));
                const double d = golden_max_abs(have, want, n) / largest;
                assert_true(d > 0 && d < 5e-3); /* 11 bits */
            }
            test_free(have);
            ffn_choice_close(&c);
        }
        test_free(want);
        close_model(&here);
        close_model(&there);
    }
}

/* --------------------------------------------------------------------------------------------------------- bad requests */

typedef struct exchange {
    const char *path, *type, *body;
    int status;
    const char *says;
} exchange;

static void test_bad_requests(void **state)
{
    static const exchange all[] = {
        {"/v1/health", NULL, NULL, 200, "\"status\":\"ok\""},
        {"/v1/stats", NULL, NULL, 200, "\"mode\":\"ffn-service\""},
        {"/v1/stats", NULL, NULL, 200, "\"owned_layers\":[1,2]"},
        {"/v1/nothing", NULL, NULL, 404, "GET /v1/nothing"},
        {"/v1/walk-ffn", NULL, NULL, 404, "GET /v1/walk-ffn: POST /v1/walk-ffn"},
        {"/v1/walk-ffn", "application/json", "{", 400, "{\"error\":\"request: line 1"},
        {"/v1/walk-ffn", "application/json", "[]", 400, "error"},
        {"/v1/walk-ffn", "application/json", "{\"layer\":1,\"residual\":[1]}", 400, "features alone are not served"},
        {"/v1/walk-ffn", "application/json", "{\"layer\":1,\"full_output\":true,\"residual\":[1]}", 400,
         "want seq_len * hidden_size"},
        {"/v1/walk-ffn", "application/json", "{\"layer\":0,\"full_output\":true,\"residual\":%s}", 400,
         "layer 0 not served by this shard (owned: 1-2)"},
        {"/v1/walk-ffn", "application/json", "{\"layer\":77,\"full_output\":true,\"residual\":%s}", 400,
         "layer 77: the model has layers 0 to"},
        {"/v1/walk-ffn", "application/json", "{\"layer\":-1,\"full_output\":true,\"residual\":%s}", 400,
         "want \\\"layer"},
        {"/v1/walk-ffn", "application/json", "{\"full_output\":true,\"residual\":%s}", 400, "want \\\"layer"},
        {"/v1/walk-ffn", "application/json", "{\"layer\":1,\"layers\":[1],\"full_output\":true,\"residual\":%s}", 400,
         "want \\\"layer"},
        {"/v1/walk-ffn", "application/json", "{\"layers\":[],\"full_output\":true,\"residual\":%s}", 400,
         "want \\\"layer"},
        {"/v1/walk-ffn", "application/json", "{\"layer\":1,\"seq_len\":0,\"full_output\":true,\"residual\":[]}", 400,
         "seq_len"},
        {"/v1/walk-ffn", "application/json", "{\"layer\":1,\"seq_len\":\"x\",\"full_output\":true,\"residual\":[]}",
         400, "seq_len"},
        {"/v1/walk-ffn", "application/json", "{\"layer\":1,\"moe_layer\":true,\"full_output\":true,\"residual\":%s}",
         400, "moe_layer"},
        {"/v1/walk-ffn", "application/json", "{\"layer\":1,\"full_output\":true,\"residual\":%s}", 200, "\"output\":["},
        {"/v1/walk-ffn", "application/json", "{\"layers\":[2,1],\"full_output\":true,\"residual\":%s}", 200,
         "{\"results\":[{\"layer\":2,"},
        {"/v1/walk-ffn", "application/x-larql-ffn", "abc", 400, "a body of 3 bytes"},
        {"/v1/walk-ffn", "Application/X-Larql-FFN; v=1", "abc", 400, "a body of 3 bytes"},
        {"/v1/walk-ffn", "application/x-larql-ffn", "aaaabbbbccccdddd", 400, "numbers: want"},
    };
    opened o = open_model(models[0]);
    lath_error err;
    http_client *c;
    const http_limits limits = HTTP_LIMITS_INIT;
    static char body[1 << 16], row[1 << 15];
    (void)state;
    serve(&o, 1, 2);
    assert_ok(http_client_open(o.url, &limits, alloc_default(), &c, &err), err);
    for (int64_t i = 0, at = 0; i < o.model->arch.dims.d_model; i++)
        at += snprintf(row + at, sizeof(row) - (size_t)at, "%s0.5%s", i ? "," : "[",
                       i + 1 == o.model->arch.dims.d_model ? "]" : "");
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        http_answer a;
        const char *hole = all[i].body ? strstr(all[i].body, "%s") : NULL;
        if (hole)
            snprintf(body, sizeof(body), "%.*s%s%s", (int)(hole - all[i].body), all[i].body, row, hole + 2);
        else
            snprintf(body, sizeof(body), "%s", all[i].body ? all[i].body : "");
        const http_request q = {
            .path = all[i].path, .type = all[i].type, .body = all[i].body ? body : NULL, .n = strlen(body)};
        assert_ok(http_client_call(c, &q, &a, &err), err);
        if (a.status != all[i].status || !strstr(a.body, all[i].says))
            fail_msg("%s %s: %d %s; want %d %s", all[i].path, body, a.status, a.body, all[i].status, all[i].says);
    }
    char *large = calloc(1, 3 << 20);
    assert_non_null(large);
    http_answer a;
    const http_request q = {.path = "/v1/walk-ffn", .type = "application/x-larql-ffn", .body = large, .n = 3 << 20};
    assert_ok(http_client_call(c, &q, &a, &err), err);
    assert_int_equal(a.status, 413);
    /* 4096 times the same layer: an answer of gigabytes for a few kilobytes */
    const uint32_t layers = 4096, d = (uint32_t)o.model->arch.dims.d_model, tokens = (1 << 15) / d + 1;
    uint32_t *words = (uint32_t *)(void *)large;
    memset(large, 0, 3 << 20);
    words[0] = 0xffffffff, words[1] = layers;
    for (uint32_t i = 0; i < layers; i++) words[2 + i] = 1;
    words[2 + layers] = tokens, words[3 + layers] = 1;
    const http_request many = {.path = "/v1/walk-ffn",
                               .type = "application/x-larql-ffn",
                               .body = large,
                               .n = 4 * (5 + layers + (size_t)tokens * d)};
    assert_ok(http_client_call(c, &many, &a, &err), err);
    assert_int_equal(a.status, 413);
    assert_non_null(strstr(a.body, "ask in parts"));
    free(large);
    http_client_close(c);
    close_model(&o);
}

/* A batch of layers as bytes: each result with its own head. */
static void test_binary_batch(void **state)
{
    opened o = open_model(models[0]);
    lath_error err;
    http_client *c;
    http_answer a;
    const http_limits limits = HTTP_LIMITS_INIT;
    const size_t d = (size_t)o.model->arch.dims.d_model, n = 2;
    uint32_t *words = calloc(7 + n * d, 4), head[3];
    float *want = calloc(n * d, sizeof(float)), *rows = (float *)(void *)(words + 7);
    (void)state;
    assert_true(words && want);
    serve(&o, 0, 2);
    const uint32_t begin[] = {0xffffffff, 2, 2, 0, (uint32_t)n, 1, 0};
    memcpy(words, begin, sizeof(begin));
    for (size_t i = 0; i < n * d; i++) rows[i] = (float)(i % 13) / 8 - 0.7f;
    assert_ok(http_client_open(o.url, &limits, alloc_default(), &c, &err), err);
    const http_request q = {
        .path = "/v1/walk-ffn", .type = "application/x-larql-ffn", .body = words, .n = 4 * (7 + n * d)};
    assert_ok(http_client_call(c, &q, &a, &err), err);
    assert_int_equal(a.status, 200);
    assert_int_equal(a.n, 12 + 2 * (12 + 4 * n * d));
    memcpy(head, a.body, sizeof(head));
    assert_true(head[0] == 0xffffffff && head[1] == 2);
    for (size_t i = 0; i < 2; i++) {
        const char *at = a.body + 12 + i * (12 + 4 * n * d);
        memcpy(head, at, sizeof(head));
        assert_true(head[0] == (i ? 0u : 2u) && head[1] == n && head[2] == n * d);
        assert_ok(lath_ffn_run(o.model, NULL, i ? 0 : 2, rows, n, want, &err), err);
        assert_memory_equal(at + 12, want, 4 * n * d);
    }
    http_client_close(c);
    close_model(&o);
    free(words), free(want);
}

/* ---------------------------------------------------------------------------------------------------------- bad servers */

/* A server of one thread that answers a connection after the other with the next of a list of texts, and closes. */
typedef struct script {
    const char *const *answers; /* NULL ends; "" closes at once, "~" says nothing; the last one goes on */
    size_t sizes[8];            /* of answers that hold zeros; else 0 */
    int listening, asked;
    pthread_t thread;
    char url[64];
} script;

static void *play(void *ctx)
{
    script *s = ctx;
    char in[4096];
    for (int i = 0;; s->asked++) {
        const int c = accept(s->listening, NULL, NULL);
        if (c < 0) return NULL;
        const char *text = s->answers[i];
        if (recv(c, in, sizeof(in), 0) > 0 && *text == '~') {
            while (recv(c, in, sizeof(in), 0) > 0) { /* until whoever asked has gone */
            }
        } else if (*text) {
            (void)!send(c, text, s->sizes[i] ? s->sizes[i] : strlen(text), MSG_NOSIGNAL);
        }
        shutdown(c, SHUT_RDWR);
        close(c);
        if (s->answers[i + 1]) i++;
    }
}

static void start(script *s, void *(*player)(void *))
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(at);
    s->listening = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(s->listening >= 0);
    assert_int_equal(bind(s->listening, (struct sockaddr *)&at, n), 0);
    assert_int_equal(listen(s->listening, 8), 0);
    assert_int_equal(getsockname(s->listening, (struct sockaddr *)&at, &n), 0);
    snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%u", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&s->thread, NULL, player, s), 0);
}

static void stop(script *s)
{
    shutdown(s->listening, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listening);
}

enum { D = 2, LAYERS = 4 };
#define OK "HTTP/1.0 200 OK\r\nContent-Type: "
#define STATS \
    OK "application/json\r\n\r\n{\"mode\":\"ffn-service\",\"layers\":4,\"hidden_size\":2,\"owned_layers\":[1,3]}"

/* Nothing here waits as long as `patient` does, however busy the machine is; `quick` is for servers that say nothing. */
static const http_limits patient = {30, 60, 3, 1 << 16}, quick = {30, 2, 3, 1 << 16};

static const http_limits *limits_for(const char *answer) { return *answer == '~' ? &quick : &patient; }

static lath_status open_at(const char *url, ffn_wire wire, const http_limits *limits, ffn **f, lath_error *err)
{
    const ffn_remote_of of = {LAYERS, 1, 3, D};
    return ffn_remote_open(url, wire, &of, limits, alloc_default(), f, err);
}

/* One row of D numbers through layer 2 of a remote FFN. */
static lath_status forward(ffn *f, lath_error *err, float out[D])
{
    kern_table kern;
    stream s = {.ops = backend_cpu_rows(), .kern = &kern, .err = err};
    _Alignas(64) float memory[256] = {1, 2};
    kern_table_init(&kern, KERN_ISA_REF);
    const fwd with = {.s = &s};
    const view x = s.ops->make_view(memory, 1, D), y = s.ops->make_view(memory + 16, 1, D);
    assert_true(ffn_memory_floats(f, s.ops, 1) <= 128);
    const lath_status st = ffn_forward(f, &with, 2, x, memory + 32, y);
    memcpy(out, y.data, D * sizeof(float));
    return st;
}

typedef struct bad_stats {
    const char *answer, *says;
} bad_stats;

static void test_bad_stats(void **state)
{
    static const bad_stats all[] = {
        {"garbage\r\n\r\n", ""},
        {"HTTP/1.0 404 Not Found\r\n\r\nno", "/v1/stats: status 404"},
        {OK "text/html\r\n\r\n<html>", "/v1/stats: line 1"},
        {OK "application/json\r\n\r\n{}", "no FFN server: it does not say so at /v1/stats"},
        {OK "application/json\r\n\r\n{\"mode\":\"embed-service\"}", "no FFN server"},
        {OK "application/json\r\n\r\n{\"mode\":\"full\",\"layers\":5,\"hidden_size\":2}",
         "has another model: 5 layers of 2 numbers, this one has 4 of 2"},
        {OK "application/json\r\n\r\n{\"mode\":\"full\",\"layers\":\"4\",\"hidden_size\":2}", "layers"},
        {OK "application/json\r\n\r\n{\"mode\":\"full\",\"layers\":4,\"hidden_size\":2,\"owned_layers\":[2,3]}",
         "has layers 2 to 3, wanted are 1 to 3"},
        {OK "application/json\r\n\r\n{\"mode\":\"full\",\"layers\":4,\"hidden_size\":2,\"owned_layers\":[2]}",
         "\"owned_layers\": want two numbers"},
        {"", "the connection was closed without an answer, tried several times"},
        {"~", "no answer in time"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        const char *const answers[] = {all[i].answer, NULL};
        script s = {.answers = answers};
        ffn *f;
        lath_error err = {0};
        start(&s, play);
        const lath_status st = open_at(s.url, FFN_WIRE_F32, limits_for(all[i].answer), &f, &err);
        if (st != LATH_ERR_NETWORK || !strstr(err.msg, all[i].says) || !strstr(err.msg, s.url))
            fail_msg("%s: status %d, %s; want %s", all[i].answer, (int)st, err.msg, all[i].says);
        stop(&s);
    }
}

static void test_away(void **state)
{
    script s = {.answers = (const char *const[]){"", NULL}};
    ffn *f;
    lath_error err;
    (void)state;
    start(&s, play);
    stop(&s); /* nobody listens at its port any more */
    assert_int_equal(open_at(s.url, FFN_WIRE_F32, &patient, &f, &err), LATH_ERR_NETWORK);
    assert_non_null(strstr(err.msg, "nobody answers there (connection refused), tried several times"));
    assert_int_equal(open_at("http://", FFN_WIRE_F32, &patient, &f, &err), LATH_ERR_USAGE);
    assert_int_equal(open_at("file:///etc/passwd", FFN_WIRE_F32, &patient, &f, &err), LATH_ERR_USAGE);
}

#define BYTES(text) text, sizeof(text) - 1
#define FFN_TYPE OK "application/x-larql-ffn\r\n\r\n"
typedef struct bad_answer {
    ffn_wire wire;
    const char *answer;
    size_t n;
    const char *says;
} bad_answer;

static void test_bad_answers(void **state)
{
    static char long_answer[8192];
    static const bad_answer all[] = {
        {FFN_WIRE_F32, BYTES(FFN_TYPE "\2\0\0\0\1\0\0\0\0\0\0\0\0\0\200\77\0\0\0"), "has another length than its rows"},
        {FFN_WIRE_F32, BYTES(FFN_TYPE "\1\0\0\0\1\0\0\0\0\0\0\0\0\0\200\77\0\0\0\0"),
         "is of another layer or number of tokens"},
        {FFN_WIRE_F32, BYTES(FFN_TYPE "\2\0\0\0\2\0\0\0\0\0\0\0\0\0\200\77\0\0\0\0"),
         "is of another layer or number of tokens"},
        {FFN_WIRE_F32, BYTES(FFN_TYPE "\2\0\0\0\1\0\0\0\0\0\0\0\0\0\200\177\0\0\0\0"), "numbers that are not finite"},
        {FFN_WIRE_F32, BYTES(OK "text/plain\r\n\r\nhello"), "is of no type that was asked for"},
        {FFN_WIRE_F32, BYTES("HTTP/1.0 400 Bad\r\n\r\n{\"error\":\"layer 2 not served by this shard (owned: 0-1)\"}"),
         "status 400: layer 2 not served by this shard (owned: 0-1)"},
        {FFN_WIRE_F32, BYTES("HTTP/1.0 503 Busy\r\n\r\nlater"), "status 503: later"},
        {FFN_WIRE_F32, BYTES(OK "application/x-larql-ffn\r\nContent-Length: 100\r\n\r\nabc"),
         "closed in the middle of the answer"},
        {FFN_WIRE_F32, BYTES("~"), "no answer in time"},
        {FFN_WIRE_JSON, BYTES(OK "application/json\r\n\r\n{\"layer\":2,\"output\":[1]}"), "another number of numbers"},
        {FFN_WIRE_JSON, BYTES(OK "application/json\r\n\r\n{\"layer\":3,\"output\":[1,2]}"), "another layer"},
        {FFN_WIRE_JSON, BYTES(OK "application/json\r\n\r\n{\"layer\":2,\"output\":[1,\"2\"]}"), "what is no number"},
        {FFN_WIRE_JSON, BYTES(OK "application/json\r\n\r\n{\"layer\":2,\"output\":[1,"), "the answer is no JSON"},
        {FFN_WIRE_JSON, BYTES(OK "application/json\r\n\r\n{\"layer\":2,\"output\":[1,1e99]}"), "not finite"},
        {FFN_WIRE_JSON, long_answer, sizeof(long_answer), "much longer than its rows"},
    };
    (void)state;
    memset(long_answer, ' ', sizeof(long_answer));
    memcpy(long_answer, OK "application/json\r\n\r\n{", sizeof(OK "application/json\r\n\r\n{") - 1);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        const char *const answers[] = {STATS, all[i].answer, NULL};
        script s = {.answers = answers, .sizes = {0, all[i].n}};
        ffn *f;
        float out[D];
        lath_error err = {0};
        start(&s, play);
        assert_ok(open_at(s.url, all[i].wire, limits_for(all[i].answer), &f, &err), err);
        const lath_status st = forward(f, &err, out);
        if (st != LATH_ERR_NETWORK || !strstr(err.msg, all[i].says) || !strstr(err.msg, s.url) ||
            !strstr(err.msg, "layer 2"))
            fail_msg("%d: status %d, %s; want %s", (int)i, (int)st, err.msg, all[i].says);
        ffn_close(f);
        stop(&s);
    }
}

/* A server that is away for a moment, or busy, is asked again. */
static void test_tries(void **state)
{
    const char *const answers[] = {
        "",  "HTTP/1.0 503 Busy\r\n\r\n", STATS,
        "",  "HTTP/1.0 502 Bad\r\n\r\n",  FFN_TYPE "\2\0\0\0\1\0\0\0\0\0\0\0\0\0\200\77\0\0\0\100",
        NULL};
    script s = {.answers = answers, .sizes = {0, 0, 0, 0, 0, sizeof(FFN_TYPE) - 1 + 20}};
    ffn *f;
    float out[D];
    lath_error err;
    (void)state;
    start(&s, play);
    assert_ok(open_at(s.url, FFN_WIRE_F32, &patient, &f, &err), err);
    assert_ok(forward(f, &err, out), err);
    assert_true(out[0] == 1 && out[1] == 2);
    ffn_close(f);
    stop(&s);
    assert_int_equal(s.asked, 6);
}

/* Answers all requests of one connection, and is left in peace by others. */
static void *play_kept(void *ctx)
{
    script *s = ctx;
    char in[4096];
    for (int c; (c = accept(s->listening, NULL, NULL)) >= 0; close(c)) {
        s->asked++;
        for (int i = 0; s->answers[i] && recv(c, in, sizeof(in), 0) > 0; i++)
            (void)!send(c, s->answers[i], s->sizes[i], MSG_NOSIGNAL);
    }
    return NULL;
}

static void test_connection_is_kept(void **state)
{
#define KEPT "HTTP/1.1 200 OK\r\nContent-Length: "
    static const char
        stats[] =
            KEPT "82\r\nContent-Type: application/json\r\n\r\n"
                 "{\"mode\":\"ffn-service\",\"layers\":4,\"hidden_size\":2,\"owned_layers\":[0,3], \"model\":\"\"}",
        row[] = KEPT "20\r\nContent-Type: application/x-larql-ffn\r\n\r\n\2\0\0\0\1\0\0\0\0\0\0\0\0\0\200\77\0\0\0\100";
    const char *const answers[] = {stats, row, row, row, NULL};
    script s = {.answers = answers, .sizes = {sizeof(stats) - 1, sizeof(row) - 1, sizeof(row) - 1, sizeof(row) - 1}};
    ffn *f;
    float out[D];
    lath_error err;
    (void)state;
    start(&s, play_kept);
    assert_ok(open_at(s.url, FFN_WIRE_F32, &patient, &f, &err), err);
    for (int i = 0; i < 3; i++) assert_ok(forward(f, &err, out), err);
    assert_true(out[1] == 2);
    ffn_close(f);
    stop(&s);
    assert_int_equal(s.asked, 1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_remote_is_local),
        cmocka_unit_test(test_bad_requests),
        cmocka_unit_test(test_binary_batch),
        cmocka_unit_test(test_bad_stats),
        cmocka_unit_test(test_away),
        cmocka_unit_test(test_bad_answers),
        cmocka_unit_test(test_tries),
        cmocka_unit_test(test_connection_is_kept),
    };
    return TEST_RUN(tests);
}
