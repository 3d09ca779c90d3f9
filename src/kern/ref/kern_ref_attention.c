/* SPDX-License-Identifier: Apache-2.0
 * kern_ref_attention.c: softmax(q k^T * scale) v of one head and one panel of queries (Vaswani et al. 2017, eq. 1),
 * lane by lane.
 *
 * scale > 0, so the largest score is the largest scaled score. Division by the sum of the weights comes last. */
#include <math.h>

#include "kern/ref/kern_ref.h"

/* Feature f of token j in the panels that start at `base`. */
static float token_feature(const float *base, int64_t stride, int64_t j, int64_t f)
{
    return base[j / KERN_LANES * stride + f * KERN_LANES + j % KERN_LANES];
}

static void attention_lane(const kern_attention_args *a, int32_t lane, float *weight)
{
    const int64_t begin = a->begin[lane], end = a->end[lane];
    float largest = -INFINITY, sum = 0.0f;
    for (int64_t j = begin; j < end; j++) {
        float s = 0.0f;
        for (int64_t f = 0; f < a->head_dim; f++)
            s += token_feature(a->k, a->kv_stride, j, f) * a->q[f * KERN_LANES + lane];
        if (a->bias) s += a->bias[a->query0 + lane - j];
        weight[j - begin] = s;
        if (s > largest || isnan(s)) largest = s;
    }
    for (int64_t j = begin; j < end; j++) {
        float e = expf((weight[j - begin] - largest) * a->scale);
        weight[j - begin] = e;
        sum += e;
    }
    float inverse = begin < end ? 1.0f / sum : 0.0f;
    for (int64_t f = 0; f < a->head_dim; f++) {
        float o = 0.0f;
        for (int64_t j = begin; j < end; j++) o += token_feature(a->v, a->kv_stride, j, f) * weight[j - begin];
        a->out[f * KERN_LANES + lane] = o * inverse;
    }
}

void kern_ref_attention(const kern_attention_args *a)
{
    for (int32_t i = 0; i < a->lanes; i++) attention_lane(a, i, a->scratch);
}
