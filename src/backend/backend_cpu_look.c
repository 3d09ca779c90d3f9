/* SPDX-License-Identifier: Apache-2.0
 *
 * backend_cpu_look.c: the weights of attention. The kernels never hold them: they are computed once more, of the tokens that somebody asks about, in double. */
#include <math.h>

#include "backend/backend_cpu.h"

enum { LANES = KERN_LANES };

typedef struct weights_job {
    const op_attention *a;
    int64_t token, lanes;
    float *out;
} weights_job;

/* q k^T of key `j` with the head's query, whose features are `step` floats apart. */
static double product(const weights_job *job, int64_t head, const float *q, int64_t j)
{
    const op_attention *a = job->a;
    const int64_t hd = a->head_dim, kv = head / (a->n_heads / a->n_kv_heads), lanes = job->lanes;
    double sum = 0;
    if (!a->kv) {
        const float *k = a->k.data + j / lanes * a->k.stride + kv * hd * lanes + j % lanes;
        for (int64_t f = 0; f < hd; f++) sum += (double)q[f * lanes] * (double)k[f * lanes];
        return sum;
    }
    const int64_t slot = j % a->kv->n_slots, first = slot / LANES * hd * LANES + slot % LANES;
    const void *keys = cpu_kv_head(a->kv, a->kv->k, kv);
    const float *single = (const float *)keys + first;
    const uint16_t *half = (const uint16_t *)keys + first;
    for (int64_t f = 0; f < hd; f++) {
        const float k = a->kv->half ? half_to_f32(half[f * LANES]) : single[f * LANES];
        sum += (double)q[f * lanes] * (double)k;
    }
    return sum;
}

/* Task: a head. */
static void weights_task(void *ctx, int64_t head, int32_t worker)
{
    (void)worker;
    const weights_job *job = ctx;
    const op_attention *a = job->a;
    const int64_t t = job->token, lanes = job->lanes, begin = a->begin[t], n = a->end[t] - begin;
    const float *q = a->q.data + t / lanes * a->q.stride + head * a->head_dim * lanes + t % lanes;
    const float *bias = a->bias ? a->bias + head * (2 * a->bias_reach + 1) + a->bias_reach : NULL;
    float *out = job->out + head * n;
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double score = product(job, head, q, begin + i);
        if (bias) score += (double)bias[t - begin - i];
        score *= (double)a->scale;
        if (a->softcap != 0) score = (double)a->softcap * tanh(score / (double)a->softcap);
        out[i] = (float)score;
        most = fmax(most, (double)out[i]);
    }
    for (int64_t i = 0; i < n; i++) sum += exp((double)out[i] - most);
    for (int64_t i = 0; i < n; i++) out[i] = (float)(exp((double)out[i] - most) / sum);
}

lath_status cpu_attention_weights(stream *s, const op_attention *a, int64_t token, int64_t lanes, float *out)
{
    weights_job j = {a, token, lanes, out};
    return cpu_run(s, weights_task, &j, a->n_heads);
}
