/* SPDX-License-Identifier: Apache-2.0
 *
 * backend_cpu.h: the two op tables of the CPU, behind backend_cpu() and backend_cpu_rows(), and what they share.
 *
 *     backend_cpu.c       panels of 16 tokens (kern.h): whole texts, many tokens at a time
 *     backend_cpu_rows.c  a token is a plain row of floats: single steps of generation, which wait for memory
 *     backend_cpu_kv.c    keys and values that a sequence keeps, which both write and read
 *     backend_cpu_delta.c  what runs along time: the convolution and the delta rule
 *     backend_cpu_each.c  what is the same for both: ops on each number by itself, moves of tokens
 *     backend_cpu_features.c  products of a token with chosen rows, for both
 *     backend_cpu_look.c  the weights of attention, for whoever looks at them
 *
 * A result's bits depend on the table, never on how many tokens there are: whoever makes a stream chooses by what it is for.
 */
#ifndef LATH_BACKEND_CPU_H
#define LATH_BACKEND_CPU_H

#include "backend/backend.h"

/* An op's tasks on the stream's pool. LATH_ERR_INTERRUPTED: the region was stopped, what the op was to make is not there. */
lath_status cpu_run(stream *s, pool_fn fn, void *ctx, int64_t n_tasks);
/* The first use of a matrix reads all of it once: NaN and infinity are refused by name. */
lath_status cpu_check_finite(stream *s, weight *w);
/* The first row that op_gather reads and that is not finite, by name; else that their sum overflows. */
lath_status cpu_nonfinite_row(const stream *s, const op_gather *a);
/* Cosines and sines of token t, `step` floats apart. */
void cpu_rope_row(const op_rope_table *a, int64_t t, float *cosine, float *sine, int64_t step);

static inline int64_t cpu_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* How x is quantised for this part; KERN_XQ_NONE: it is taken as floats. */
static inline kern_xq_kind cpu_xq_kind(const stream *s, const op_linear *part)
{
    return s->integer ? kern_xq_kind_of(part->w->t->type) : KERN_XQ_NONE;
}

/* How many parts, from the first on, share what is made of x. */
static inline int32_t cpu_xq_run(const stream *s, const op_linear *parts, int32_t n_parts,
                                 kern_xq_kind (*kind)(const stream *s, const op_linear *part))
{
    int32_t n = 1;
    while (n < n_parts && kind(s, parts + n) == kind(s, parts)) n++;
    return n;
}

/* The most bytes that x of up to d features takes for any type of weights. */
size_t cpu_xq_most(int64_t d, size_t (*bytes)(dtype type, int64_t k));

/* Where panel 0 of a head's keys (or values, with `base` = kv->v) is; panels are head_dim * 16 numbers apart. */
static inline void *cpu_kv_head(const kv_layer *kv, void *base, int64_t head)
{
    return (char *)base + (size_t)(head * kv->n_slots * kv->head_dim) * kv_size(kv);
}

/* Ops for views whose tokens lie `lanes` to a panel: 16, or 1 where they are rows. cpu_move_rows: take_rows where by is NULL, else add_rows. */
lath_status cpu_glu(stream *s, kern_fn fn, view gate, view up, view y, int64_t lanes);
lath_status cpu_map(stream *s, const op_map *a, int64_t lanes);
lath_status cpu_copy(view x, view y, int64_t lanes);
lath_status cpu_clear(view y, int64_t lanes);
lath_status cpu_move_rows(stream *s, view x, const int32_t *index, const float *by, view y, int64_t lanes);
lath_status cpu_kv_append(stream *s, view k, view v, kv_layer *kv, int64_t at, int64_t lanes);
lath_status cpu_attention_weights(stream *s, const op_attention *a, int64_t token, int64_t lanes, float *out);
/* xq: room for x in 8 bits, kern_xq_bytes; unused where products are not of integers. */
lath_status cpu_dot_features(stream *s, const op_features *a, const float *x, float *y, void *xq);
lath_status cpu_add_features(stream *s, const op_features *a, const float *by, float *y, float *memory);
/* All features of many tokens, without memory. */
lath_status cpu_add_all_panels(stream *s, weight *rows, const float *by, int64_t n_tok, float *y);
lath_status cpu_conv_panels(stream *s, const op_conv *a);
lath_status cpu_conv_rows(stream *s, const op_conv *a);
/* scratch: of worker 0, each worker's scratch_floats behind the one before; cpu_delta_floats of them are used. */
lath_status cpu_delta(stream *s, const op_delta *a, int64_t lanes, float *scratch, size_t scratch_floats);
size_t cpu_delta_floats(const op_limits *most);

#endif
