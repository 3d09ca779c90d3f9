/* SPDX-License-Identifier: Apache-2.0
 *
 * backend_cpu_kv.c: keys and values that a sequence keeps: for each head panels of 16 positions, as kern.h has them,
 *
 *     k, v: [n_kv_heads][n_slots / 16][head_dim][16]
 *
 * so that a product with many queries and one with a few both read them from end to end. */
#include <assert.h>
#include <string.h>

#include "backend/backend_cpu.h"

enum { LANES = KERN_LANES };

typedef struct append_job {
    view k, v;
    kv_layer *kv;
    int64_t at, lanes;
    const kern_table *kern;
} append_job;

/* n numbers as the layer keeps them. */
static void put(const append_job *j, size_t n, const float *from, char *to)
{
    if (j->kv->half)
        j->kern->to_half(n, from, (uint16_t *)(void *)to);
    else
        memcpy(to, from, n * sizeof(float));
}

/* Features of a token, `lanes` floats apart, to the head's slot. */
static void append_token(const append_job *j, const float *from, char *head, int64_t slot)
{
    const int64_t hd = j->kv->head_dim, first = slot / LANES * hd * LANES + slot % LANES;
    float *single = (float *)(void *)head + first;
    uint16_t *half = (uint16_t *)(void *)head + first;
    for (int64_t f = 0; f < hd; f++) {
        if (j->kv->half)
            half[f * LANES] = half_from_f32(from[f * j->lanes]);
        else
            single[f * LANES] = from[f * j->lanes];
    }
}

/* Task: keys of a head, or values of one. */
static void append_task(void *ctx, int64_t task, int32_t worker)
{
    (void)worker;
    const append_job *j = ctx;
    const kv_layer *kv = j->kv;
    const int64_t h = task / 2, hd = kv->head_dim, n_tok = j->k.n_tok;
    const view *x = task % 2 ? &j->v : &j->k;
    char *head = cpu_kv_head(kv, task % 2 ? kv->v : kv->k, h);
    for (int64_t t = 0; t < n_tok;) {
        const int64_t slot = (j->at + t) % kv->n_slots;
        const float *from = x->data + t / j->lanes * x->stride + h * hd * j->lanes + t % j->lanes;
        if (j->lanes == LANES && t % LANES == 0 && slot % LANES == 0 && n_tok - t >= LANES) { /* a panel as it is */
            put(j, (size_t)(hd * LANES), from, head + (size_t)(slot * hd) * kv_size(kv));
            t += LANES;
        } else {
            append_token(j, from, head, slot);
            t++;
        }
    }
}

lath_status cpu_kv_append(stream *s, view k, view v, kv_layer *kv, int64_t at, int64_t lanes)
{
    assert(at >= 0 && k.n_tok <= kv->n_slots && k.d == kv->n_kv_heads * kv->head_dim && v.d == k.d);
    append_job j = {k, v, kv, at, lanes, s->kern};
    return cpu_run(s, append_task, &j, 2 * kv->n_kv_heads);
}
