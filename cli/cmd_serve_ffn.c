/* SPDX-License-Identifier: Apache-2.0
 * cmd_serve_ffn.c: `lath serve-ffn`: the FFNs of a model's layers over HTTP, until a signal. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "ffn_server.h"
#include "setup.h"
#include "signals.h"

enum { PORT = 8081 };

/* "A-B" or "A". */
static lath_status parse_layers(const char *text, int32_t n_layers, int32_t range[2], lath_error *err)
{
    char *end;
    range[0] = 0;
    range[1] = n_layers - 1;
    if (!text) return LATH_OK;
    const long first = strtol(text, &end, 10);
    long last = first;
    bool good = *text >= '0' && *text <= '9';
    if (good && *end == '-') {
        const char *from = end + 1;
        last = strtol(from, &end, 10);
        good = *from >= '0' && *from <= '9';
    }
    if (!good || *end) return err_set(err, LATH_ERR_USAGE, "--layers: \"%s\": want A-B", text);
    if (first > last || last >= n_layers)
        return err_set(err, LATH_ERR_USAGE, "--layers: \"%s\": the model has layers 0 to %d", text, n_layers - 1);
    range[0] = (int32_t)first;
    range[1] = (int32_t)last;
    return LATH_OK;
}

static void wait_for_signal(void)
{
    const struct timespec while_ = {0, 100000000};
    while (!signals_interrupted()) nanosleep(&while_, NULL);
}

static lath_status serve(const setup *s, const options *o, lath_error *err)
{
    http_server_options h = HTTP_SERVER_OPTIONS_INIT;
    lath_model_info info = {.struct_size = sizeof(info)};
    ffn_server *server;
    int32_t range[2];
    TRY(lath_model_get_info(s->model, &info, err));
    TRY(parse_layers(o->layers, info.n_layers, range, err));
    if (o->host) h.host = o->host;
    h.port = (uint16_t)(o->port.given ? o->port.whole : PORT);
    TRY(ffn_server_start(s->model, info.path, range[0], range[1], &h, &server, err));
    if (!o->quiet)
        fprintf(stderr, "layers %d-%d of %s at http://%s:%u\n", range[0], range[1], info.path, h.host,
                ffn_server_port(server));
    wait_for_signal();
    ffn_server_stop(server);
    return LATH_OK;
}

lath_status cmd_serve_ffn(options *o, lath_error *err)
{
    setup s = {0};
    if (o->args.n > 0) return err_set(err, LATH_ERR_USAGE, "\"%s\": takes no arguments", o->args.items[0]);
    lath_status st = setup_model(&s, o, err);
    if (st == LATH_OK) st = serve(&s, o, err);
    setup_close(&s);
    return st;
}
