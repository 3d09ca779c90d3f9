/* SPDX-License-Identifier: Apache-2.0
 *
 * test_kern.c: every slot of kern.def on every ISA of this machine, odd sizes and tails, against double precision and
 * against the reference.
 *
 * A slot has a function check_<slot>, found through kern.def: a new slot without one does not compile. The error is
 * relative to the sum of the magnitudes that go into the result. Inputs that a kernel must not use (lanes behind the
 * last token, keys nobody sees) are NaN, and so is what it must not write. */
#include "kern_check.h"
#include "kern_check_gemv.h"

/* ------------------------------------------------------------------------------ linear */

static void linear_case(check *c, dtype type, int64_t k_least, int64_t rows, int64_t panels, int32_t last_lanes)
{
    oracle_rng *r = &c->rng;
    const int64_t k = whole_blocks(type, k_least);
    const kern_fn fn = (kern_fn)rng_int(r, 0, KERN_FN_COUNT - 1);
    const int64_t total = rows + rng_int(r, 0, 3), n0 = rng_int(r, 0, total - rows), n1 = n0 + rows;
    const int64_t p0 = rng_int(r, 0, 1), p1 = p0 + panels;
    const int64_t row_elements = k + rng_int(r, 0, 3) * (int64_t)dtype_block_numbers(type);
    const int64_t x_stride = k * 16 + 16 * rng_int(r, 0, 2), y_stride = total * 16 + 16 * rng_int(r, 0, 2);
    const bool has_bias = rng_int(r, 0, 2) > 0;
    const size_t row_bytes = dtype_bytes(type, row_elements);
    WHERE(c, "linear %s k=%d rows=%d..%d panels=%d..%d lanes=%d %s %s bias=%d", c->t->isa, (int)k, (int)n0, (int)n1,
          (int)p0, (int)p1, last_lanes, dtype_name(type), oracle_fn_name(fn), has_bias);
    unsigned char *w_base;
    unsigned char *w =
        oracle_elements(r, type, total * row_elements, 1.0f / sqrtf((float)k), (int)rng_int(r, 0, 3), &w_base);
    float *bias_base = oracle_floats(total + 1), *bias = bias_base + 1, *x = oracle_floats(p1 * x_stride), *y[2];
    for (int64_t i = 0; i < total; i++) bias[i] = rng_float(r, 1.0f);
    for (int64_t p = p0; p < p1; p++)
        for (int64_t i = 0; i < k; i++)
            for (int lane = 0; lane < (p == p1 - 1 ? last_lanes : 16); lane++)
                x[p * x_stride + i * 16 + lane] = rng_float(r, 2.0f);
    for (int v = 0; v < 2; v++) {
        const kern_table *t = v ? c->ref : c->t;
        float *scratch = oracle_floats((int64_t)t->linear_scratch + 16);
        y[v] = oracle_floats((p1 + 1) * y_stride);
        t->linear(&(kern_linear_args){.w = w,
                                      .type = type,
                                      .w_stride = (int64_t)row_bytes,
                                      .bias = has_bias ? bias : NULL,
                                      .x = x,
                                      .x_stride = x_stride,
                                      .y = y[v],
                                      .y_stride = y_stride,
                                      .k = k,
                                      .n0 = n0,
                                      .n1 = n1,
                                      .p0 = p0,
                                      .p1 = p1,
                                      .last_lanes = last_lanes,
                                      .fn = fn,
                                      .scratch = scratch});
        for (int i = 0; i < 16; i++) assert_true(isnan(scratch[t->linear_scratch + (size_t)i]));
        free(scratch);
    }
    double *numbers = malloc((size_t)(total * k) * sizeof(double));
    assert_non_null(numbers);
    for (int64_t n = 0; n < total; n++) oracle_numbers(type, w + (size_t)n * row_bytes, k, numbers + n * k);
    for (int64_t p = 0; p <= p1; p++) {
        for (int64_t n = 0; n < y_stride / 16; n++) {
            const bool inside = p >= p0 && p < p1 && n >= n0 && n < n1;
            for (int lane = 0; lane < 16; lane++) {
                const int64_t at = p * y_stride + n * 16 + lane;
                if (!inside && !isnan(y[0][at])) fail_msg("%s: wrote row %d of panel %d", c->where, (int)n, (int)p);
                if (!inside || (p == p1 - 1 && lane >= last_lanes)) continue;
                double sum = has_bias ? (double)bias[n] : 0.0, scale = fabs(sum);
                for (int64_t i = 0; i < k; i++) {
                    const double term = numbers[n * k + i] * (double)x[p * x_stride + i * 16 + lane];
                    sum += term, scale += fabs(term);
                }
                const double want = oracle_fn(fn, sum);
                if (fn != KERN_FN_NONE) scale = fmax(scale, 0.1 * fabs(want)); /* the result's own rounding */
                check_value(c, y[0][at], want, y[1][at], (scale + 1e-7) * fmax(1.0, fn == KERN_FN_EXP ? want : 1.0));
            }
        }
    }
    free(numbers), free(w_base), free(bias_base), free(x), free(y[0]), free(y[1]);
    c->cases++;
}

static void check_linear(check *c)
{
    check_linear_q(c);
    for (int64_t k = 1; k <= 70; k++)
        for (int64_t rows = 1; rows <= 13; rows++)
            linear_case(c, oracle_float(&c->rng), k, rows, 1 + (k + rows) % 3, (int32_t)rng_int(&c->rng, 1, 16));
    for (int32_t lanes = 1; lanes <= 16; lanes++)
        for (int64_t panels = 1; panels <= 3; panels++) linear_case(c, oracle_type(&c->rng), 33, 25, panels, lanes);
    static const int64_t deep[] = {384, 511, 512, 513, 529, 1023, 1025, 1100, 1536, 3000};
    for (size_t i = 0; i < sizeof(deep) / sizeof(deep[0]); i++)
        for (int64_t rows = 5; rows <= 14; rows += 3)
            linear_case(c, oracle_float(&c->rng), deep[i], rows, rng_int(&c->rng, 1, 3),
                        (int32_t)rng_int(&c->rng, 1, 16));
    for (int64_t panels = 15; panels <= 35; panels += 2)
        linear_case(c, oracle_type(&c->rng), 20, 13, panels, (int32_t)rng_int(&c->rng, 1, 16));
    linear_case(c, DTYPE_F16, 600, 7, 33, 3);
    for (int type = 0; type < DTYPE_COUNT; type++) {
        if (!dtype_is_block((dtype)type)) continue;
        for (int64_t blocks = 1; blocks <= 21; blocks += 1 + blocks / 4) /* 21 * 32 and 3 * 256 are more than a chunk */
            linear_case(c, (dtype)type, blocks * 32, 1 + blocks % 14, 1 + blocks % 3, (int32_t)rng_int(&c->rng, 1, 16));
    }
}

/* ------------------------------------------------------------------------------ layer norm */

static void layer_norm_case(check *c, int64_t d, int64_t panels, int32_t last_lanes)
{
    oracle_rng *r = &c->rng;
    const bool has_r = rng_int(r, 0, 1), in_place = rng_int(r, 0, 1);
    const int64_t p0 = rng_int(r, 0, 1), p1 = p0 + panels, stride = d * 16 + 16 * rng_int(r, 0, 2);
    const float eps = rng_int(r, 0, 1) ? 1e-12f : 1e-5f, shift = rng_float(r, 3.0f);
    WHERE(c, "layer_norm %s d=%d panels=%d lanes=%d r=%d in_place=%d", c->t->isa, (int)d, (int)panels, last_lanes,
          has_r, in_place);
    float *x = oracle_floats(p1 * stride), *res = oracle_floats(p1 * stride), *gamma = oracle_floats(d + 1) + 1,
          *beta = oracle_floats(d + 1) + 1, *y[2];
    for (int64_t i = 0; i < d; i++) gamma[i] = rng_float(r, 2.0f), beta[i] = rng_float(r, 1.0f);
    for (int64_t p = p0; p < p1; p++)
        for (int64_t i = 0; i < d; i++)
            for (int lane = 0; lane < (p == p1 - 1 ? last_lanes : 16); lane++)
                x[p * stride + i * 16 + lane] = rng_float(r, 2.0f) + shift,
                                        res[p * stride + i * 16 + lane] = rng_float(r, 1.0f);
    for (int v = 0; v < 2; v++) {
        y[v] = oracle_floats(p1 * stride);
        if (in_place) memcpy(y[v], x, (size_t)(p1 * stride) * sizeof(float));
        (v ? c->ref : c->t)
            ->layer_norm(&(kern_norm_args){in_place ? y[v] : x, has_r ? res : NULL, gamma, beta, y[v], NULL, stride,
                                           stride, stride, d, 1, p0, p1, last_lanes, eps});
    }
    for (int64_t p = p0; p < p1; p++) {
        for (int lane = 0; lane < (p == p1 - 1 ? last_lanes : 16); lane++) {
            const float *xp = x + p * stride + lane, *rp = res + p * stride + lane;
            double mean = 0, var = 0, largest = 0;
            for (int64_t i = 0; i < d; i++) {
                const double v = (double)xp[i * 16] + (has_r ? (double)rp[i * 16] : 0.0);
                mean += v / (double)d, largest = fmax(largest, fabs(v));
            }
            for (int64_t i = 0; i < d; i++) {
                const double v = (double)xp[i * 16] + (has_r ? (double)rp[i * 16] : 0.0) - mean;
                var += v * v / (double)d;
            }
            const double deviation = sqrt(var + (double)eps);
            for (int64_t i = 0; i < d; i++) {
                const double v = (double)xp[i * 16] + (has_r ? (double)rp[i * 16] : 0.0);
                const double want = (v - mean) / deviation * (double)gamma[i] + (double)beta[i];
                const double scale = fabs((double)gamma[i]) * largest / deviation + fabs((double)beta[i]);
                check_value(c, y[0][p * stride + i * 16 + lane], want, y[1][p * stride + i * 16 + lane], scale);
            }
        }
    }
    free(x), free(res), free(gamma - 1), free(beta - 1), free(y[0]), free(y[1]);
    c->cases++;
}

static void check_layer_norm(check *c)
{
    for (int64_t d = 1; d <= 70; d++) layer_norm_case(c, d, 1 + d % 3, 1 + (int32_t)(d % 16));
    for (int32_t lanes = 1; lanes <= 16; lanes++) layer_norm_case(c, 384, 2, lanes);
    layer_norm_case(c, 1025, 3, 7);
}

/* ------------------------------------------------------------------------------ rms norm */

/* Groups of d features; the sum kept apart, in x or not at all. */
static void rms_norm_case(check *c, int64_t d, int64_t groups, int64_t panels, int32_t last_lanes)
{
    oracle_rng *r = &c->rng;
    const bool has_r = rng_int(r, 0, 1);
    const int keep = (int)rng_int(r, 0, 2);
    const int64_t n = groups * d, stride = n * 16 + 16 * rng_int(r, 0, 2);
    const float eps = rng_int(r, 0, 1) ? 1e-6f : 1e-2f;
    WHERE(c, "rms_norm %s d=%d groups=%d panels=%d lanes=%d r=%d keep=%d", c->t->isa, (int)d, (int)groups, (int)panels,
          last_lanes, has_r, keep);
    float *x = oracle_floats(panels * stride), *res = oracle_floats(panels * stride), *gamma = oracle_floats(d), *y[2],
          *sum[2], *in[2];
    for (int64_t i = 0; i < d; i++) gamma[i] = rng_float(r, 2.0f);
    for (int64_t i = 0; i < panels * stride; i++) {
        const bool used = i % stride < n * 16 && (i / stride < panels - 1 || i % 16 < last_lanes);
        if (used) x[i] = rng_float(r, 2.0f), res[i] = rng_float(r, 1.0f);
    }
    for (int v = 0; v < 2; v++) {
        y[v] = oracle_floats(panels * stride), sum[v] = oracle_floats(panels * stride);
        in[v] = oracle_floats(panels * stride);
        memcpy(in[v], x, (size_t)(panels * stride) * sizeof(float));
        float *to = keep == 0 ? NULL : keep == 1 ? in[v] : sum[v];
        (v ? c->ref : c->t)
            ->rms_norm(&(kern_norm_args){in[v], has_r ? res : NULL, gamma, NULL, y[v], to, stride, stride, stride, d,
                                         groups, 0, panels, last_lanes, eps});
    }
    for (int64_t p = 0; p < panels; p++) {
        for (int64_t at = 0; at < groups * 16; at++) {
            const int64_t lane = at % 16, first = p * stride + at / 16 * d * 16 + lane;
            if (p == panels - 1 && lane >= last_lanes) continue;
            double squares = 0, largest = 0;
            for (int64_t i = 0; i < d; i++) {
                const double v = (double)x[first + i * 16] + (has_r ? (double)res[first + i * 16] : 0.0);
                squares += v * v / (double)d, largest = fmax(largest, fabs(v));
            }
            for (int64_t i = 0; i < d; i++) {
                const int64_t e = first + i * 16;
                const float v = has_r ? x[e] + res[e] : x[e];
                const double inverse = 1.0 / sqrt(squares + (double)eps);
                const double want = ((double)x[e] + (has_r ? (double)res[e] : 0.0)) * inverse * (double)gamma[i];
                check_value(c, y[0][e], want, y[1][e], largest * inverse * fabs((double)gamma[i]));
                for (int w = 0; w < 2; w++) assert_true(keep == 0 || (keep == 1 ? in[w] : sum[w])[e] == v);
            }
        }
    }
    free(x), free(res), free(gamma);
    for (int v = 0; v < 2; v++) free(y[v]), free(sum[v]), free(in[v]);
    c->cases++;
}

static void check_rms_norm(check *c)
{
    for (int64_t d = 1; d <= 70; d++) rms_norm_case(c, d, 1 + d % 4, 1 + d % 3, 1 + (int32_t)(d % 16));
    for (int32_t lanes = 1; lanes <= 16; lanes++) rms_norm_case(c, 128, 3, 2, lanes);
    rms_norm_case(c, 1025, 1, 3, 7);
}

/* ------------------------------------------------------------------------------ rope */

static void rope_case(check *c, int64_t heads, int64_t head_dim, int64_t pairs, bool interleaved, int32_t lanes)
{
    oracle_rng *r = &c->rng;
    const int64_t n = heads * head_dim * lanes;
    WHERE(c, "rope %s heads=%d head_dim=%d pairs=%d interleaved=%d lanes=%d", c->t->isa, (int)heads, (int)head_dim,
          (int)pairs, interleaved, lanes);
    float *x = oracle_floats(n), *cosine = oracle_floats(pairs * lanes), *sine = oracle_floats(pairs * lanes),
          *y[2] = {oracle_floats(n), oracle_floats(n)};
    for (int64_t i = 0; i < n; i++) x[i] = rng_float(r, 2.0f);
    for (int64_t i = 0; i < pairs * lanes; i++) {
        const double angle = (double)rng_float(r, 1000.0f);
        cosine[i] = (float)cos(angle), sine[i] = (float)sin(angle);
    }
    for (int v = 0; v < 2; v++) {
        memcpy(y[v], x, (size_t)n * sizeof(float));
        (v ? c->ref : c->t)->rope(&(kern_rope_args){y[v], cosine, sine, heads, head_dim, pairs, lanes, interleaved});
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t lane = i % lanes, f = i / lanes % head_dim, base = i - f * lanes;
        if (f >= 2 * pairs) {
            assert_true(y[0][i] == x[i] && y[1][i] == x[i]);
            continue;
        }
        /* Which pair the feature is of, and its partner: as the paper's figure 1 has it, or with halves for neighbours. */
        const int64_t pair = interleaved ? f / 2 : f % pairs, is_second = interleaved ? f % 2 : f / pairs;
        const int64_t other = interleaved ? f ^ 1 : (f + pairs) % (2 * pairs);
        const double cs = (double)cosine[pair * lanes + lane], sn = (double)sine[pair * lanes + lane];
        const double mine = (double)x[i], partner = (double)x[base + other * lanes];
        const double want = is_second ? mine * cs + partner * sn : mine * cs - partner * sn;
        check_value(c, y[0][i], want, y[1][i], fabs(mine * cs) + fabs(partner * sn));
    }
    free(x), free(cosine), free(sine), free(y[0]), free(y[1]);
    c->cases++;
}

static void check_rope(check *c)
{
    for (int64_t head_dim = 2; head_dim <= 70; head_dim++)
        for (int interleaved = 0; interleaved < 2; interleaved++)
            for (int32_t lanes = 1; lanes <= 16; lanes += 15)
                rope_case(c, 1 + head_dim % 5, head_dim, rng_int(&c->rng, 1, head_dim / 2), interleaved, lanes);
    rope_case(c, 4, 128, 64, false, 16);
    rope_case(c, 2, 256, 32, true, 16);
}

/* ------------------------------------------------------------------------------ attention */

/* Ranges of the lanes of the query panel `p` of n tokens: kind 0 packed texts, 1 a causal model over packed texts, 2
 * any ranges. */
static void attention_ranges(check *c, int kind, int64_t n, int64_t p, int32_t *begin, int32_t *end)
{
    for (int lane = 0; lane < 16; lane++) begin[lane] = end[lane] = -7; /* never looked at behind the last lane */
    for (int32_t t0 = 0, t1; t0 < n; t0 = t1) {
        t1 = t0 + (int32_t)rng_int(&c->rng, 1, n);
        if (t1 > n) t1 = (int32_t)n;
        for (int32_t t = t0; t < t1; t++)
            if (t / 16 == p) begin[t % 16] = t0, end[t % 16] = kind == 1 ? t + 1 : t1;
    }
    for (int lane = 0; kind == 2 && lane < 16 && p * 16 + lane < n; lane++) {
        begin[lane] = (int32_t)rng_int(&c->rng, 0, n), end[lane] = (int32_t)rng_int(&c->rng, 0, n);
        if (rng_int(&c->rng, 0, 7) == 0) end[lane] = begin[lane];
    }
}

static void attention_case(check *c, int64_t head_dim, int64_t n, int kind)
{
    oracle_rng *r = &c->rng;
    const int64_t panels = (n + 15) / 16, p = rng_int(r, 0, panels - 1), stride = head_dim * 48 + 16 * rng_int(r, 0, 3);
    const int32_t lanes = (int32_t)(n - p * 16 < 16 ? n - p * 16 : 16);
    const float scale = 1.0f / sqrtf((float)head_dim),
                softcap = rng_int(r, 0, 2) ? 0.0f : 0.3f * (float)rng_int(r, 1, 9);
    int32_t begin[16], end[16];
    float *distances = rng_int(r, 0, 2) ? NULL : oracle_floats(2 * n + 1), *bias = distances ? distances + n : NULL;
    for (int64_t i = 0; distances && i <= 2 * n; i++) distances[i] = rng_float(r, 3.0f);
    attention_ranges(c, kind, n, p, begin, end);
    WHERE(c, "attention %s head_dim=%d tokens=%d panel=%d kind=%d", c->t->isa, (int)head_dim, (int)n, (int)p, kind);
    float *qkv = oracle_floats(panels * stride), *out[2], *q = qkv + p * stride, *k = qkv + head_dim * 16,
          *v = qkv + head_dim * 32;
    for (int64_t t = 0; t < n; t++) {
        bool seen = false;
        for (int lane = 0; lane < lanes; lane++) seen |= t >= begin[lane] && t < end[lane];
        for (int64_t f = 0; f < head_dim; f++) {
            qkv[panel_at(stride, t, f)] = rng_float(r, 2.0f);
            if (seen) k[panel_at(stride, t, f)] = rng_float(r, 2.0f), v[panel_at(stride, t, f)] = rng_float(r, 2.0f);
        }
    }
    for (int w = 0; w < 2; w++) {
        float *scratch = oracle_floats(16 * 16 * panels + 16);
        out[w] = oracle_floats(head_dim * 16 + 16);
        (w ? c->ref : c->t)
            ->attention(&(kern_attention_args){.q = q,
                                               .k = k,
                                               .v = v,
                                               .kv_stride = stride,
                                               .head_dim = head_dim,
                                               .begin = begin,
                                               .end = end,
                                               .lanes = lanes,
                                               .scale = scale,
                                               .softcap = softcap,
                                               .bias = bias,
                                               .query0 = p * 16,
                                               .out = out[w],
                                               .scratch = scratch});
        for (int i = 0; i < 16; i++)
            assert_true(isnan(scratch[16 * 16 * panels + i]) && isnan(out[w][head_dim * 16 + i]));
        free(scratch);
    }
    double *weight = malloc((size_t)n * sizeof(double));
    assert_non_null(weight);
    for (int lane = 0; lane < lanes; lane++) {
        double largest = -INFINITY, sum = 0;
        for (int32_t j = begin[lane]; j < end[lane]; j++) {
            weight[j] = 0;
            for (int64_t f = 0; f < head_dim; f++)
                weight[j] += (double)q[f * 16 + lane] * (double)k[panel_at(stride, j, f)];
            if (bias) weight[j] += (double)bias[p * 16 + lane - j];
            weight[j] = oracle_capped(weight[j] * (double)scale, softcap), largest = fmax(largest, weight[j]);
        }
        for (int32_t j = begin[lane]; j < end[lane]; j++) weight[j] = exp(weight[j] - largest), sum += weight[j];
        for (int64_t f = 0; f < head_dim; f++) {
            double want = 0, most = 0;
            for (int32_t j = begin[lane]; j < end[lane]; j++) {
                want += weight[j] / sum * (double)v[panel_at(stride, j, f)];
                most = fmax(most, fabs((double)v[panel_at(stride, j, f)]));
            }
            check_value(c, out[0][f * 16 + lane], want, out[1][f * 16 + lane], most);
        }
    }
    free(qkv), free(out[0]), free(out[1]), free(weight), free(distances);
    c->cases++;
}

static void check_attention(check *c)
{
    for (int kind = 0; kind < 3; kind++) {
        for (int64_t n = 1; n <= 70; n++) attention_case(c, 1 + n % 37, n, kind);
        for (int64_t head_dim = 1; head_dim <= 70; head_dim++)
            attention_case(c, head_dim, rng_int(&c->rng, 1, 50), kind);
        for (int i = 0; i < 200; i++) attention_case(c, rng_int(&c->rng, 1, 20), rng_int(&c->rng, 1, 80), kind);
        attention_case(c, 128, 200, kind);
        attention_case(c, 32, 515, kind);
    }
}

/* ------------------------------------------------------------------------------ gather */

/* first: the type of the first source; the others have any that d is whole blocks of. */
static void gather_case(check *c, dtype first, int64_t d, int32_t n_lanes, int32_t n_sources)
{
    kern_gather_source src[3];
    unsigned char *base[3];
    int32_t index[3][16];
    const float scale = d % 2 ? 1.0f : 19.59592f;
    WHERE(c, "gather %s %s d=%d lanes=%d sources=%d", c->t->isa, dtype_name(first), (int)d, n_lanes, n_sources);
    for (int s = 0; s < n_sources; s++) {
        dtype type = first;
        while (s > 0 && d % (int64_t)dtype_block_numbers(type = oracle_type(&c->rng)) != 0) {
        }
        src[s] = (kern_gather_source){
            oracle_elements(&c->rng, type, 21 * d, 3.0f, (int)rng_int(&c->rng, 0, 3), &base[s]), type, index[s]};
        for (int lane = 0; lane < 16; lane++)
            index[s][lane] = lane < n_lanes ? (int32_t)rng_int(&c->rng, 0, 20) : INT32_MAX;
    }
    float *y[2] = {oracle_floats(d * 16), oracle_floats(d * 16)};
    for (int v = 0; v < 2; v++)
        (v ? c->ref : c->t)->gather(&(kern_gather_args){src, n_sources, n_lanes, d, scale, y[v]});
    for (int lane = 0; lane < 16; lane++) {
        double rows[3][512];
        for (int s = 0; s < n_sources && lane < n_lanes; s++)
            oracle_numbers(src[s].type,
                           (const unsigned char *)src[s].table + (size_t)index[s][lane] * dtype_bytes(src[s].type, d),
                           d, rows[s]);
        for (int64_t f = 0; f < d; f++) {
            float want = 0;
            for (int s = 0; s < n_sources && lane < n_lanes; s++) want = (float)((double)want + rows[s][f]);
            want *= scale;
            check_value(c, y[0][f * 16 + lane], (double)want, y[1][f * 16 + lane], 1.0);
        }
    }
    for (int s = 0; s < n_sources; s++) free(base[s]);
    free(y[0]), free(y[1]);
    c->cases++;
}

/* Every code of the 8-bit types; NaN and infinities must arrive. */
static void gather_codes(check *c, dtype type)
{
    unsigned char codes[257];
    const int32_t index[16] = {0};
    float *y = oracle_floats(256 * 16);
    const kern_gather_source src = {codes + 1, type, index};
    WHERE(c, "gather %s all codes of %s", c->t->isa, dtype_name(type));
    for (int i = 0; i < 256; i++) codes[1 + i] = (unsigned char)i;
    c->t->gather(&(kern_gather_args){&src, 1, 16, 256, 1.0f, y});
    for (int f = 0; f < 256; f++) {
        const double want = oracle_element(type, codes + 1, f);
        for (int lane = 0; lane < 16; lane++) {
            const double got = (double)y[f * 16 + lane];
            if (isnan(want) ? !isnan(got) : got != want) fail_msg("%s: code %02x gives %g", c->where, f, got);
        }
    }
    free(y);
    c->cases++;
}

static void check_gather(check *c)
{
    gather_codes(c, DTYPE_F8_E4M3);
    gather_codes(c, DTYPE_F8_E5M2);
    for (int64_t d = 1; d <= 70; d++)
        gather_case(c, oracle_float(&c->rng), d, 1 + (int32_t)(d % 16), 1 + (int32_t)(d % 3));
    for (int32_t lanes = 1; lanes <= 16; lanes++) gather_case(c, oracle_float(&c->rng), 384, lanes, 3);
    for (int type = 0; type < DTYPE_COUNT; type++)
        for (int32_t blocks = 1; dtype_is_block((dtype)type) && blocks <= 512 / (int)dtype_block_numbers((dtype)type);
             blocks++)
            gather_case(c, (dtype)type, blocks * (int64_t)dtype_block_numbers((dtype)type), blocks, 1 + blocks % 3);
}

/* ------------------------------------------------------------------------------ map */

static void check_map(check *c)
{
    for (size_t n = 1; n <= 70; n++) {
        for (int fn = 0; fn < KERN_FN_COUNT; fn++, c->cases++) {
            float x[72], y[2][72];
            WHERE(c, "map %s n=%d %s", c->t->isa, (int)n, oracle_fn_name((kern_fn)fn));
            for (size_t i = 0; i < 72; i++) x[i] = rng_float(&c->rng, 6.0f), y[0][i] = y[1][i] = NAN;
            for (int v = 0; v < 2; v++) (v ? c->ref : c->t)->map((kern_fn)fn, n, x + 1, y[v] + 1);
            for (size_t i = 1; i <= n; i++) {
                const double want = oracle_fn((kern_fn)fn, (double)x[i]);
                check_value(c, y[0][i], want, y[1][i], fmax(fabs(want), 0.3));
            }
            assert_true(isnan(y[0][0]) && isnan(y[0][n + 1]));
            c->t->map((kern_fn)fn, n, x + 1, x + 1); /* in place gives the same bits */
            assert_memory_equal(x + 1, y[0] + 1, n * sizeof(float));
        }
    }
}

/* ------------------------------------------------------------------------------ glu */

static void check_glu(check *c)
{
    for (size_t n = 1; n <= 70; n++) {
        for (int fn = 0; fn < KERN_FN_COUNT; fn++, c->cases++) {
            _Alignas(32) float gate[72], up[72], y[2][72];
            WHERE(c, "glu %s n=%d %s", c->t->isa, (int)n, oracle_fn_name((kern_fn)fn));
            for (size_t i = 0; i < 72; i++)
                gate[i] = rng_float(&c->rng, 6.0f), up[i] = rng_float(&c->rng, 2.0f), y[0][i] = y[1][i] = NAN;
            for (int v = 0; v < 2; v++) (v ? c->ref : c->t)->glu((kern_fn)fn, n, gate, up, y[v]);
            for (size_t i = 0; i < n; i++) {
                const double g = oracle_fn((kern_fn)fn, (double)gate[i]), want = g * (double)up[i];
                check_value(c, y[0][i], want, y[1][i], fmax(fabs(g), 0.3) * fabs((double)up[i]));
            }
            assert_true(isnan(y[0][n]));
            float *in_place = n % 2 ? gate : up;
            c->t->glu((kern_fn)fn, n, gate, up, in_place);
            assert_memory_equal(in_place, y[0], n * sizeof(float));
        }
    }
}

/* ------------------------------------------------------------------------------ pool */

static void pool_case(check *c, int64_t d, int64_t t0, int64_t t1, kern_pool_mode mode)
{
    const int64_t stride = d * 16 + 32, panels = t1 / 16 + 1;
    WHERE(c, "pool %s d=%d tokens=%d..%d mode=%d", c->t->isa, (int)d, (int)t0, (int)t1, mode);
    float *x = oracle_floats(panels * stride), *y[2] = {oracle_floats(d * 16), oracle_floats(d * 16)};
    for (int64_t t = t0; t < t1; t++)
        for (int64_t f = 0; f < d; f++) x[panel_at(stride, t, f)] = rng_float(&c->rng, 2.0f);
    const int64_t first = 1 + t0 % 3;
    for (int v = 0; v < 2; v++)
        (v ? c->ref : c->t)
            ->pool(&(kern_pool_args){.mode = mode,
                                     .x = x,
                                     .x_stride = stride,
                                     .d = d,
                                     .t0 = t0,
                                     .t1 = t1,
                                     .first_weight = first,
                                     .y = y[v] + 3});
    for (int64_t f = 0; f < d; f++) {
        double sum = 0, most = 0, max = -INFINITY, weighted = 0, weighted_most = 0, weights = 0, want;
        for (int64_t t = t0; t < t1; t++) {
            const double v = (double)x[panel_at(stride, t, f)];
            const double weight = (double)(first + t - t0);
            sum += v, max = fmax(max, v), most += fabs(v);
            weighted += weight * v, weighted_most += weight * fabs(v), weights += weight;
        }
        const double n = (double)(t1 - t0);
        switch (mode) {
        case KERN_POOL_FIRST: want = (double)x[panel_at(stride, t0, f)]; break;
        case KERN_POOL_LAST: want = (double)x[panel_at(stride, t1 - 1, f)]; break;
        case KERN_POOL_MAX: want = max; break;
        case KERN_POOL_WEIGHTED_MEAN: want = weighted / weights, most = weighted_most / weights; break;
        case KERN_POOL_MEAN: want = sum / n, most /= n; break;
        default: want = sum / sqrt(n), most /= sqrt(n); break;
        }
        check_value(c, y[0][f * 16 + 3], want, y[1][f * 16 + 3], most);
        for (int lane = 0; lane < 16; lane++) assert_true(lane == 3 || isnan(y[0][f * 16 + lane]));
    }
    free(x), free(y[0]), free(y[1]);
    c->cases++;
}

static void check_pool(check *c)
{
    for (int mode = 0; mode < KERN_POOL_COUNT; mode++) {
        for (int64_t t0 = 0; t0 < 20; t0++)
            for (int64_t n = 1; n < 40; n += 1 + n / 8)
                pool_case(c, 1 + (t0 + n) % 41, t0, t0 + n, (kern_pool_mode)mode);
        pool_case(c, 384, 5, 200, (kern_pool_mode)mode);
    }
}

/* ------------------------------------------------------------------------------ l2_normalize, dot */

static void check_l2_normalize(check *c)
{
    for (int64_t d = 1; d <= 400; d += 1 + d / 30) {
        const int32_t lanes = (int32_t)rng_int(&c->rng, 1, 16);
        WHERE(c, "l2_normalize %s d=%d lanes=%d", c->t->isa, (int)d, lanes);
        float *x = oracle_floats(d * 16), *y[2] = {oracle_floats(d * 16), oracle_floats(d * 16)};
        for (int64_t f = 0; f < d; f++)
            for (int lane = 0; lane < lanes; lane++)
                x[f * 16 + lane] = lane == 2 ? 0.0f : rng_float(&c->rng, 2.0f); /* one is all zero */
        for (int v = 0; v < 2; v++) {
            memcpy(y[v], x, (size_t)d * 16 * sizeof(float));
            (v ? c->ref : c->t)->l2_normalize(d, lanes, y[v]);
        }
        for (int lane = 0; lane < lanes; lane++) {
            double sum = 0;
            for (int64_t f = 0; f < d; f++) sum += (double)x[f * 16 + lane] * (double)x[f * 16 + lane];
            for (int64_t f = 0; f < d; f++)
                check_value(c, y[0][f * 16 + lane], (double)x[f * 16 + lane] / fmax(sqrt(sum), 1e-12),
                            y[1][f * 16 + lane], 1.0);
        }
        free(x), free(y[0]), free(y[1]);
        c->cases++;
    }
}

/* A case of dot_rows or dot_rows_i8: sizes, strides with room between, what is behind the results stays. */
typedef struct dot_case {
    int64_t n, d, q_stride, row_stride, out_stride;
    int32_t n_q;
    size_t shift; /* of the rows' address */
} dot_case;

static dot_case dot_case_of(check *c, int64_t d, int64_t row_bytes)
{
    oracle_rng *r = &c->rng;
    const int64_t n = rng_int(r, 0, 11);
    return (dot_case){n,
                      d,
                      d + rng_int(r, 0, 5),
                      row_bytes + rng_int(r, 0, 9),
                      n + rng_int(r, 1, 3),
                      (int32_t)rng_int(r, 1, 5),
                      (size_t)rng_int(r, 0, 3)};
}

static void check_dot_rows(check *c)
{
    for (int64_t step = 0, d = 1; d <= 800; step++, d += step % 2 * (1 + d / 40)) {
        const dtype type = step % 2 ? DTYPE_F16 : DTYPE_F32;
        const int64_t size = type == DTYPE_F16 ? 2 : 4;
        const dot_case k = dot_case_of(c, d, size * d);
        WHERE(c, "dot_rows %s %s d=%d n=%d queries=%d", c->t->isa, dtype_name(type), (int)d, (int)k.n, k.n_q);
        unsigned char *base = calloc(1, (size_t)(k.n * k.row_stride) + 8), *rows = base + k.shift;
        float *q = oracle_floats(k.n_q * k.q_stride + 1) + 1, *out[2];
        for (int64_t i = 0; i < k.n_q * k.q_stride; i++) q[i] = rng_float(&c->rng, 1.0f);
        for (int64_t i = 0; i < k.n; i++) {
            unsigned char *free_this, *row = oracle_elements(&c->rng, type, d, 1.0f, 0, &free_this);
            memcpy(rows + i * k.row_stride, row, (size_t)(size * d));
            free(free_this);
        }
        kern_dot_rows_args a = {q, k.q_stride, rows, type, k.row_stride, k.n, d, k.n_q, NULL, k.out_stride};
        for (int v = 0; v < 2; v++) {
            a.out = out[v] = oracle_floats(k.n_q * k.out_stride);
            (v ? c->ref : c->t)->dot_rows(&a);
        }
        for (int32_t j = 0; j < k.n_q; j++) {
            for (int64_t i = 0; i < k.n; i++) {
                const int64_t at = j * k.out_stride + i;
                double sum = 0, scale = 0;
                float alone;
                for (int64_t f = 0; f < d; f++) {
                    const double term =
                        (double)q[j * k.q_stride + f] * oracle_element(type, rows + i * k.row_stride, f);
                    sum += term, scale += fabs(term);
                }
                check_value(c, out[0][at], sum, out[1][at], scale);
                c->t->dot_rows(&(kern_dot_rows_args){.q = q + j * k.q_stride,
                                                     .rows = rows + i * k.row_stride,
                                                     .type = type,
                                                     .n = 1,
                                                     .d = d,
                                                     .n_q = 1,
                                                     .out = &alone});
                assert_memory_equal(&alone, &out[0][at], sizeof(float)); /* bits do not depend on the others */
            }
            assert_true(isnan(out[0][j * k.out_stride + k.n]));
        }
        free(q - 1), free(base), free(out[0]), free(out[1]);
        c->cases++;
    }
}

/* Queries at the edge of what the contract allows: with rows of -128 the sum is just under 2^31, either sign. */
static void check_dot_rows_i8(check *c)
{
    for (int64_t step = 0, d = 1; d <= 3000; step++, d += step % 2 * (1 + d / 40)) {
        const dot_case k = dot_case_of(c, d, 4 + d);
        const bool edge = step % 2;
        WHERE(c, "dot_rows_i8 %s d=%d n=%d queries=%d edge=%d", c->t->isa, (int)d, (int)k.n, k.n_q, edge);
        unsigned char *base = calloc(1, (size_t)(k.n * k.row_stride) + 8), *rows = base + k.shift;
        int16_t *q = calloc((size_t)(k.n_q * k.q_stride), sizeof(*q));
        float q_scale[5], *out[2];
        assert_true(base && q);
        const int64_t most = INT32_MAX / 128 / d < INT16_MAX ? INT32_MAX / 128 / d : INT16_MAX;
        for (int64_t i = 0; i < k.n_q * k.q_stride; i++)
            q[i] = (int16_t)(edge ? (i / k.q_stride % 2 ? most : -most) : rng_int(&c->rng, -most, most));
        for (int32_t j = 0; j < k.n_q; j++) q_scale[j] = rng_float(&c->rng, 0.01f);
        for (int64_t i = 0; i < k.n; i++) {
            const float scale = rng_float(&c->rng, 0.01f);
            memcpy(rows + i * k.row_stride, &scale, 4);
            for (int64_t f = 0; f < d; f++)
                rows[i * k.row_stride + 4 + f] = (unsigned char)(edge ? -128 : rng_int(&c->rng, -128, 127));
        }
        kern_dot_rows_i8_args a = {q, k.q_stride, q_scale, rows, k.row_stride, k.n, d, k.n_q, NULL, k.out_stride};
        for (int v = 0; v < 2; v++) {
            a.out = out[v] = oracle_floats(k.n_q * k.out_stride);
            (v ? c->ref : c->t)->dot_rows_i8(&a);
        }
        for (int32_t j = 0; j < k.n_q; j++) {
            for (int64_t i = 0; i < k.n; i++) {
                int64_t sum = 0;
                float scale;
                memcpy(&scale, rows + i * k.row_stride, 4);
                for (int64_t f = 0; f < d; f++)
                    sum += (int64_t)q[j * k.q_stride + f] * (int8_t)rows[i * k.row_stride + 4 + f];
                const float want = (float)sum * scale * q_scale[j]; /* three roundings, exactly these */
                check_value(c, out[0][j * k.out_stride + i], (double)want, out[1][j * k.out_stride + i],
                            fabs((double)want));
            }
            assert_true(isnan(out[0][j * k.out_stride + k.n]));
        }
        free(q), free(base), free(out[0]), free(out[1]);
        c->cases++;
    }
}

/* ------------------------------------------------------------------------------------------------------
 * first_nonfinite */

/* The blocks from i on have a scale that is not finite. */
static void nonfinite_blocks(check *c, dtype type, int64_t n)
{
    static const uint16_t bad[] = {0x7c00, 0xfc00, 0x7e00, 0xfc01};
    static const uint32_t bad_f32[] = {0x7f800000, 0xff800000, 0x7fc00000, 0x7f000000}; /* the last times 128 is */
    const int64_t numbers = (int64_t)dtype_block_numbers(type);
    unsigned char *base, *x = oracle_elements(&c->rng, type, n * numbers, 1.0f, (int)rng_int(&c->rng, 0, 3), &base);
    WHERE(c, "first_nonfinite %s %s blocks=%d", c->t->isa, dtype_name(type), (int)n);
    for (int64_t i = n; i >= 0; i--) {
        if (i < n) {
            int at[2];
            unsigned char *b = x + dtype_bytes(type, i * numbers);
            const int scales = oracle_scales(type, at);
            if (scales)
                memcpy(b + at[i % scales], &bad[i % 4], 2);
            else if (type == DTYPE_Q8_K)
                memcpy(b, &bad_f32[i % 4], 4);
            else
                b[0] = (unsigned char)(253 + i % 3);
        }
        check_value(c, (float)c->t->first_nonfinite(type, x, n * numbers), i < n ? (double)(i * numbers) : -1.0,
                    (float)c->ref->first_nonfinite(type, x, n * numbers), 1.0);
    }
    free(base);
    c->cases++;
}

static void check_first_nonfinite(check *c)
{
    for (int type = 0; type < DTYPE_COUNT; type++)
        for (int64_t n = 0; dtype_is_block((dtype)type) && n <= 40; n += 1 + n / 4) nonfinite_blocks(c, (dtype)type, n);
    static const uint32_t bad[][4] = {{0x7f800000, 0xff800000, 0x7fc00000, 0xff800001},
                                      {0x7c00, 0xfc00, 0x7e00, 0xfc01},
                                      {0x7f80, 0xff80, 0x7fc0, 0xff81},
                                      {0x7f, 0xff, 0x7f, 0xff},
                                      {0x7c, 0xfc, 0x7d, 0xff}};
    static const uint32_t largest[] = {0xff7fffff, 0xfbff, 0xff7f, 0xfe, 0xfb};
    for (int64_t n = 0; n <= 150; n += 1 + n / 16) {
        for (int type = DTYPE_F32; type <= DTYPE_F8_E5M2; type++) {
            const size_t size = dtype_block_bytes((dtype)type);
            WHERE(c, "first_nonfinite %s %s n=%d", c->t->isa, dtype_name((dtype)type), (int)n);
            unsigned char *p = malloc((size_t)n * size + 8), *x = p + rng_int(&c->rng, 0, 3);
            assert_non_null(p);
            for (int64_t i = 0; i < n; i++) memcpy(x + (size_t)i * size, &largest[type], size);
            check_value(c, (float)c->t->first_nonfinite((dtype)type, x, n), -1.0,
                        (float)c->ref->first_nonfinite((dtype)type, x, n), 1.0);
            for (int64_t i = n - 1; i >= 0; i--) { /* from behind: those behind i are bad as well */
                memcpy(x + (size_t)i * size, &bad[type][i % 4], size);
                check_value(c, (float)c->t->first_nonfinite((dtype)type, x, n), (double)i,
                            (float)c->ref->first_nonfinite((dtype)type, x, n), 1.0);
            }
            free(p);
            c->cases++;
        }
    }
}

#include "kern_delta_check.h"
#include "kern_rows_check.h"

/* ---------------------------------------------------------------------------------------------------------- the
 * table */

static const struct {
    const char *slot;
    void (*run)(check *c);
    double tolerance;
} slots[] = {
#define KERN(slot, result, args, tolerance) {#slot, check_##slot, tolerance},
#include "kern/kern.def"
#undef KERN
};

static void test_every_slot_on_every_isa(void **state)
{
    (void)state;
    kern_table tables[ORACLE_TABLES], ref;
    const int n_tables = oracle_tables(tables);
    kern_table_init(&ref, KERN_ISA_REF);
    assert_true(n_tables >= 1);
    assert_true(sizeof(slots) / sizeof(slots[0]) >= 9);
    for (int t = 0; t < n_tables; t++) {
        for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
            check c = {.t = &tables[t], .ref = &ref, .rng = {i + 1}, .tolerance = slots[i].tolerance};
            slots[i].run(&c);
            assert_true(c.cases > 0 && c.values > 0);
            printf("kern %-15s %-11s %5lld cases %8lld values, worst error %.1e (to ref %.1e), allowed %.1e\n",
                   slots[i].slot, tables[t].isa, (long long)c.cases, (long long)c.values, c.worst, c.worst_ref,
                   c.tolerance);
        }
    }
}

static void test_isa_names_and_ceiling(void **state)
{
    (void)state;
    kern_table t;
    kern_table_init(&t, KERN_ISA_REF);
    assert_string_equal(t.isa, "ref");
    assert_true(kern_isa_available(KERN_ISA_REF));
    kern_table_init(&t, (kern_isa)(KERN_ISA_COUNT - 1));
#if defined(__x86_64__)
    assert_false(kern_isa_available(KERN_ISA_NEON));
    if (kern_isa_available(KERN_ISA_AVX2)) assert_string_not_equal(t.isa, "ref");
#endif
    assert_string_equal(kern_isa_name(KERN_ISA_AVX512), "avx512");
    assert_true(t.row_block >= 1 && t.panel_group >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_isa_names_and_ceiling),
                                       cmocka_unit_test(test_every_slot_on_every_isa)};
    return TEST_RUN(tests);
}
