/* SPDX-License-Identifier: Apache-2.0
 * kern_ref_attention.c: softmax(q k^T * scale) v of one head and one panel of queries (Vaswani et al. 2017, eq. 1),
 * query by query.
 *
 * scale > 0, so the largest score is the largest scaled score. Division by the sum of the weights comes last. */
#include <math.h>

#include "kern/ref/kern_ref.h"

/* Where the keys or values lie. */
typedef struct key_panels {
    const void *base;
    int64_t stride;
    int32_t ring;
    bool half;
} key_panels;

/* Feature f of token j. */
static float token_feature(const key_panels *k, int64_t j, int64_t f)
{
    const int64_t p = k->ring ? j / KERN_LANES % k->ring : j / KERN_LANES;
    const int64_t at = p * k->stride + f * KERN_LANES + j % KERN_LANES;
    return k->half ? half_to_f32(((const uint16_t *)k->base)[at]) : ((const float *)k->base)[at];
}

/* One query; element f of it is at q[f * step], of the result at out[f * step]. */
typedef struct one_query {
    const float *q;
    float *out;
    int64_t step, head_dim, begin, end;
    float scale, softcap;
    const float *bias; /* NULL, or by key: bias[-j] */
} one_query;

/* A score between -cap and cap. */
static float capped(float s, float cap) { return cap * (float)tanh((double)(s / cap)); }

static void attend(const one_query *o, const key_panels *k, const key_panels *v, float *weight)
{
    const float scale = o->softcap != 0 ? 1.0f : o->scale; /* what is capped is scaled already */
    float largest = -INFINITY;
    double sum = 0.0;
    for (int64_t j = o->begin; j < o->end; j++) {
        float s = 0.0f;
        for (int64_t f = 0; f < o->head_dim; f++) s += token_feature(k, j, f) * o->q[f * o->step];
        if (o->bias) s += o->bias[-j];
        if (o->softcap != 0) s = capped(s * o->scale, o->softcap);
        weight[j - o->begin] = s;
        if (s > largest || isnan(s)) largest = s;
    }
    for (int64_t j = o->begin; j < o->end; j++) {
        float e = expf((weight[j - o->begin] - largest) * scale);
        weight[j - o->begin] = e;
        sum += (double)e;
    }
    const float inverse = o->begin < o->end ? (float)(1.0 / sum) : 0.0f;
    for (int64_t f = 0; f < o->head_dim; f++) {
        float out = 0.0f;
        for (int64_t j = o->begin; j < o->end; j++) out += token_feature(v, j, f) * weight[j - o->begin];
        o->out[f * o->step] = out * inverse;
    }
}

void kern_ref_attention(const kern_attention_args *a)
{
    const key_panels k = {a->k, a->kv_stride, a->ring, false}, v = {a->v, a->kv_stride, a->ring, false};
    for (int32_t i = 0; i < a->lanes; i++) {
        const one_query o = {.q = a->q + i,
                             .out = a->out + i,
                             .step = KERN_LANES,
                             .head_dim = a->head_dim,
                             .begin = a->begin[i],
                             .end = a->end[i],
                             .scale = a->scale,
                             .softcap = a->softcap,
                             .bias = a->bias ? a->bias + a->query0 + i : NULL};
        attend(&o, &k, &v, a->scratch);
    }
}

void kern_ref_attention_row(const kern_attention_row_args *a)
{
    const key_panels k = {a->k, a->kv_stride, a->ring, a->half}, v = {a->v, a->kv_stride, a->ring, a->half};
    for (int32_t i = 0; i < a->n_q; i++) {
        const one_query o = {.q = a->q + i * a->q_stride,
                             .out = a->out + i * a->out_stride,
                             .step = 1,
                             .head_dim = a->head_dim,
                             .begin = a->begin,
                             .end = a->end,
                             .scale = a->scale,
                             .softcap = a->softcap};
        attend(&o, &k, &v, a->scratch);
    }
}
