/* SPDX-License-Identifier: Apache-2.0
 * walked.c: see walked.h. */
#include "walked.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"

lath_status walked_check(const options *o, lath_error *err)
{
    return o->index ? LATH_OK : err_set(err, LATH_ERR_USAGE, "--index: name the folder that lath extract has made");
}

/* "walk:DIR,k=K"; commas of the folder's name are written as an FFN's text wants them. */
static void put_walk(const options *o, buf *b)
{
    buf_str(b, "walk:");
    for (const char *c = o->index; *c; c++) {
        if (*c == ',') buf_char(b, '\\');
        buf_char(b, *c);
    }
    if (o->walk_k) buf_printf(b, ",k=%lld", (long long)o->walk_k);
}

lath_status walked_open(const lm_job *j, int32_t boundary, lath_ffn **out, lath_error *err)
{
    const int32_t n = j->info.n_layers;
    buf spec;
    buf_init(&spec, alloc_default(), SIZE_MAX / 2);
    if (boundary >= n)
        buf_str(&spec, "dense");
    else if (boundary > 0)
        buf_printf(&spec, "0-%d=dense,%d-=", (int)boundary - 1, (int)boundary);
    if (boundary < n) put_walk(j->o, &spec);
    (void)buf_cstr(&spec);
    lath_status st = buf_status(&spec, err);
    if (st == LATH_OK) st = lath_ffn_open(j->s.model, buf_cstr(&spec), out, err);
    buf_deinit(&spec);
    return st;
}

static lath_status ffn_seconds(const lm_job *j, const lath_ffn *ffn, double *out, lath_error *err)
{
    *out = 0;
    for (int32_t l = 0; l < j->info.n_layers; l++) {
        lath_ffn_layer layer = {.struct_size = sizeof(layer)};
        TRY(lath_ffn_get_layer(ffn, l, &layer, err));
        *out += layer.seconds;
    }
    return LATH_OK;
}

lath_status walked_run_ids(lm_job *j, lath_ffn *ffn, const int32_t *ids, size_t n, walked_run *out, lath_error *err)
{
    (void)lath_session_rewind(j->session, 0);
    TRY(lath_session_set_ffn(j->session, ffn, err));
    lath_ffn_reset(ffn);
    const double begin = clock_now();
    TRY(lath_session_append(j->session, ids, n, err));
    out->seconds = clock_now() - begin;
    TRY(ffn_seconds(j, ffn, &out->ffn_seconds, err));
    return lath_session_logits(j->session, &out->logits, err);
}

double walked_difference(const float *a, const float *b, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = fabs((double)a[i] - b[i]);
        if (!(d <= most)) most = d;
    }
    return most;
}
