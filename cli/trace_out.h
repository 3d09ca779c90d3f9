/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_out.h: what `lath trace` found at one position, as a table for people or as JSON.
 */
#ifndef LATH_CLI_TRACE_OUT_H
#define LATH_CLI_TRACE_OUT_H

#include "inside.h"
#include "lm.h"
#include "output.h"

/* Of one layer. */
typedef struct trace_layer {
    double attn_norm, ffn_norm, residual_norm; /* L2; NAN: the layer has not passed the point */
    lath_answer_step step;
    const lath_token_logprob *top; /* [trace_view.top] */
} trace_layer;

typedef struct trace_view {
    const lm_job *lm;
    const lath_trace *trace;
    lath_trace_info info;
    int32_t position;
    int32_t answer;      /* its id; -1: the model has no output head, and there is no lens */
    size_t top;          /* likeliest tokens of a layer */
    bool weights;        /* weights of attention, too */
    trace_layer *layers; /* [info.n_layers] */
    float *heads;        /* [info.n_layers][info.n_heads] that each gave to the answer's logit, or NULL */
} trace_view;

/* "layers":[...] */
lath_status trace_put_layers(const trace_view *v, buf *b, lath_error *err);
/* The table, and what options add below it. */
lath_status trace_put_table(const trace_view *v, buf *b, lath_error *err);
/* A token's text as a JSON string, or null. */
lath_status trace_put_token(const lm_job *lm, int32_t id, buf *b, lath_error *err);

#endif
