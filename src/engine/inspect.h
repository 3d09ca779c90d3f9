/* SPDX-License-Identifier: Apache-2.0
 *
 * inspect.h: what the parts of lath_inspect.h know of each other and sessions of them. inspect_hooks.c: edits at trace points, as a sink; inspect_ffn.c: what stands in for
 * the model's FFNs; inspect_trace.c: a run whose values are kept; inspect_trace_get.c: asking for them; inspect_lens.c: what final norm and output head make of them.
 */
#ifndef LATH_INSPECT_INTERNAL_H
#define LATH_INSPECT_INTERNAL_H

#include "engine/engine.h"
#include "ffn/ffn_spec.h"
#include "lath/lath_inspect.h"

/* ------------------------------------------------------------------------------------------------------------------ hooks */

typedef struct hook hook;
struct lath_hooks {
    const lath_model *model;
    hook *list; /* [n] in the order of adding */
    size_t n, capacity;
    trace_sink sink;    /* whose ctx it is */
    float *rows;        /* what a hook sees; grown on demand */
    int32_t *positions; /* the same */
    size_t rows_cap, positions_cap;
};

/* The hooks act at a point that is passed. */
lath_status hooks_see(lath_hooks *h, const fwd *f, trace_event *e);
/* Every position is one of a sequence of n tokens. `where`: "the session holds", for messages. */
lath_status hooks_check_positions(const lath_hooks *h, int64_t n, const char *where, lath_error *err);
/* What is counted as applied begins anew; hooks_check is about what has been applied since then. */
void hooks_begin(lath_hooks *h);
lath_status hooks_check(const lath_hooks *h, lath_error *err);

/* Heads of a layer, and numbers of each. */
int32_t inspect_heads(const arch_model *m, int32_t layer);
int64_t inspect_head_size(const arch_model *m, int32_t layer);

/* ------------------------------------------------------------------------------------------------------------------- FFNs */

struct lath_ffn {
    const lath_model *model;
    ffn_env env;
    ffn_choice choice;
    ffn_took *took; /* [n_layers] */
    buf text;       /* of descriptions, */
    size_t *at;     /* [n_layers] where each begins */
};

/* Puts the FFN, which may be NULL, and what is to be noted of it into a run; `memory`: inspect_ffn_floats of it. */
void inspect_set_ffn(fwd *f, const lath_ffn *ffn, float *memory);
size_t inspect_ffn_floats(const lath_ffn *ffn, const backend_ops *ops, int64_t n_tok);

/* ----------------------------------------------------------------------------------------------------------------- traces */

enum { TRACE_LAYER_POINTS = TRACE_COUNT };

/* What is kept of a layer: [n_positions] rows of each point. */
typedef struct trace_layer {
    bool kept; /* the options name it */
    int32_t n_heads;
    float *rows[TRACE_LAYER_POINTS]; /* [n_positions, d[point]]; NULL: not kept */
    int64_t d[TRACE_LAYER_POINTS];
    uint32_t passed; /* bits of points */
    float *weights;  /* [n_positions][n_heads * most_keys]: of position i keys[i] of each head, one behind the other */
    int32_t *first, *keys; /* [n_positions] */
    int64_t most_keys;
    struct trace_act *acts; /* [n_positions][most_acts] */
    int32_t *n_acts;        /* [n_positions] */
    int32_t *features;      /* [n_positions, d[FFN_ACT]] numbers of the values in rows[FFN_ACT], where an act says so */
} trace_layer;

/* A part of the hidden features of a position: `n` from `at` on of the position's row. */
typedef struct trace_act {
    int32_t expert, at, n;
    bool chosen; /* features say which they are */
} trace_act;

struct lath_trace {
    const lath_model *model;
    arena mem;
    size_t n, n_positions;
    int32_t *ids;       /* [n] */
    int32_t *positions; /* [n_positions] rising */
    int32_t *kept_at;   /* [n] which of them a position is; -1: none */
    uint32_t what;
    int32_t first_layer, end_layer, n_kept, n_heads, most_acts;
    trace_layer *layers;  /* [n_layers] */
    float *start, *final; /* [n_positions, d_model] what the first layer read; FINAL, where it is passed */
    bool final_passed;
    char *data; /* all rows */
    size_t bytes;
    double seconds;
};

/* Which row is kept of a position; LATH_ERR_USAGE: none. `call` leads messages. */
lath_status trace_find(const lath_trace *t, int32_t position, const char *call, size_t *out, lath_error *err);
/* The stream behind layer, first_layer - 1 .. end_layer - 1, at kept position i; NULL: it has not been kept. */
const float *trace_stream(const lath_trace *t, int32_t layer, size_t i);
/* L2 norm. */
double inspect_norm(const float *x, int64_t d);

#endif
