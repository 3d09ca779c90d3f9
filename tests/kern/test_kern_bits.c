/* SPDX-License-Identifier: Apache-2.0
 *
 * test_kern_bits.c: the bits of a token do not depend on where it lies nor on what else is computed: lane, panel,
 * group of panels, range of rows, texts beside it (which may even be NaN). Compared with memcmp, on every ISA of this
 * machine. */
#include "kern_delta_check.h"
#include "kern_oracle.h"

static void each_isa(void (*run)(const kern_table *t))
{
    kern_table tables[ORACLE_TABLES];
    const int n = oracle_tables(tables);
    assert_true(n >= 1);
    for (int t = 0; t < n; t++) run(&tables[t]);
}

/* ------------------------------------------------------------------------------ linear */

typedef struct product {
    const kern_table *t;
    const void *w;
    dtype type;
    const float *bias;
    kern_fn fn;
    int64_t k, rows;
    float *scratch;
    bool integers;
} product;

static void product_run(const product *m, const float *x, float *y, int64_t n0, int64_t n1, int64_t p0, int64_t p1,
                        int32_t last_lanes)
{
    const int64_t xq_stride = (int64_t)kern_xq_panel_bytes(m->type, m->k);
    unsigned char *xq = m->integers ? aligned_alloc(64, (size_t)(p1 * xq_stride)) : NULL;
    for (int64_t p = p0; xq && p < p1; p++) m->t->quantize_panel(m->type, m->k, x + p * m->k * 16, xq + p * xq_stride);
    m->t->linear(&(kern_linear_args){.w = m->w,
                                     .type = m->type,
                                     .w_stride = (int64_t)dtype_bytes(m->type, m->k),
                                     .bias = m->bias,
                                     .x = m->integers ? NULL : x,
                                     .x_stride = m->k * 16,
                                     .y = y,
                                     .y_stride = m->rows * 16,
                                     .k = m->k,
                                     .n0 = n0,
                                     .n1 = n1,
                                     .p0 = p0,
                                     .p1 = p1,
                                     .last_lanes = last_lanes,
                                     .fn = m->fn,
                                     .scratch = m->scratch,
                                     .xq = xq,
                                     .xq_stride = xq_stride});
    free(xq);
}

static void linear_bits(const kern_table *t, dtype type, int64_t k, int64_t rows, int64_t tokens, kern_fn fn,
                        bool integers)
{
    oracle_rng r = {(uint64_t)(k * 1000 + rows)};
    unsigned char *base;
    const int64_t panels = (tokens + 15) / 16;
    const int32_t last = (int32_t)(tokens - (panels - 1) * 16);
    float *bias = oracle_floats(rows), *x = oracle_floats(panels * k * 16), *y = oracle_floats(panels * rows * 16);
    float *x1 = oracle_floats(k * 16), *y1 = oracle_floats(rows * 16), *y2 = oracle_floats(panels * rows * 16);
    product m = {t,    oracle_elements(&r, type, rows * k, 0.2f, 1, &base), type,    bias, fn, k,
                 rows, oracle_floats((int64_t)t->linear_scratch + 16),      integers};
    for (int64_t i = 0; i < rows; i++) bias[i] = rng_float(&r, 1.0f);
    for (int64_t i = 0; i < tokens; i++)
        for (int64_t f = 0; f < k; f++) x[panel_at(k * 16, i, f)] = rng_float(&r, 1.0f);
    product_run(&m, x, y, 0, rows, 0, panels, last);
    for (int64_t i = 0; i < tokens; i += 1 + i % 7) { /* one token alone, in some lane of a panel of its own */
        const int lane = (int)rng_int(&r, 0, 15);
        for (int64_t j = 0; j < k * 16; j++) x1[j] = NAN;
        for (int64_t f = 0; f < k; f++) x1[f * 16 + lane] = x[panel_at(k * 16, i, f)];
        product_run(&m, x1, y1, 0, rows, 0, 1, (int32_t)rng_int(&r, lane + 1, 16));
        for (int64_t n = 0; n < rows; n++)
            assert_memory_equal(&y1[n * 16 + lane], &y[panel_at(rows * 16, i, n)], sizeof(float));
    }
    for (int64_t n0 = 0, n1; n0 < rows; n0 = n1) { /* ranges of rows and panels as threads would take them */
        n1 = n0 + rng_int(&r, 1, 17);
        if (n1 > rows) n1 = rows;
        const int64_t cut = rng_int(&r, 0, panels - 1);
        if (cut > 0) product_run(&m, x, y2, n0, n1, 0, cut, 16);
        product_run(&m, x, y2, n0, n1, cut, panels, last);
    }
    for (int64_t i = 0; i < tokens; i++)
        for (int64_t n = 0; n < rows; n++)
            assert_memory_equal(&y2[panel_at(rows * 16, i, n)], &y[panel_at(rows * 16, i, n)], sizeof(float));
    free(base), free(bias), free(x), free(y), free(x1), free(y1), free(y2), free(m.scratch);
}

static void run_linear(const kern_table *t)
{
    for (int type = 0; type < DTYPE_COUNT; type++) {
        if (!dtype_is_weight((dtype)type)) continue;
        if (dtype_is_block((dtype)type)) {
            for (int integers = 0; integers < 2; integers++) {
                linear_bits(t, (dtype)type, 256, 29, 45, KERN_FN_NONE, integers);
                linear_bits(t, (dtype)type, 768, 13, 70, KERN_FN_SILU, integers);
            }
            continue;
        }
        linear_bits(t, (dtype)type, 37, 29, 45, KERN_FN_NONE, false);
        linear_bits(t, (dtype)type, 384, 40, 37, KERN_FN_GELU, false);
        linear_bits(t, (dtype)type, 700, 23, 70, KERN_FN_TANH, false);
        linear_bits(t, (dtype)type, 1100, 13, 300, KERN_FN_SILU, false); /* more than one group of panels */
    }
}

static void test_linear(void **state)
{
    (void)state;
    each_isa(run_linear);
}

/* ------------------------------------------------------------------------------ gemv */

/* y of the rows n0 <= n < n1 of an [n][k] matrix for x rows m0 <= m < m1. */
typedef struct vectors {
    const kern_table *t;
    kern_gemv_args a;
    const float *x;
    const unsigned char *xq; /* NULL: floats */
} vectors;

static void vectors_run(const vectors *v, int64_t n0, int64_t n1, int32_t m0, int32_t m1, float *y)
{
    kern_gemv_args a = v->a;
    a.n0 = n0, a.n1 = n1, a.n_x = m1 - m0, a.y = y;
    if (v->xq)
        a.xq = v->xq + m0 * a.xq_stride;
    else
        a.x = v->x + m0 * a.x_stride;
    v->t->gemv(&a);
}

static void gemv_bits(const kern_table *t, dtype type, int64_t k, int64_t rows, int32_t n_x, bool integers)
{
    oracle_rng r = {(uint64_t)(k * 1000 + rows)};
    unsigned char *base, *copy_base;
    const int64_t x_stride = (k + 15) / 16 * 16, xq_stride = (int64_t)kern_xq_bytes(type, k);
    const size_t bytes = dtype_bytes(type, rows * k);
    float *bias = oracle_floats(rows), *x = oracle_floats(n_x * x_stride), *y = oracle_floats(n_x * rows),
          *y1 = oracle_floats(n_x * rows);
    unsigned char *xq = aligned_alloc(64, (size_t)(n_x * xq_stride) + 64),
                  *w = oracle_elements(&r, type, rows * k, 0.2f, 1, &base);
    assert_non_null(xq);
    for (int64_t i = 0; i < rows; i++) bias[i] = rng_float(&r, 1.0f);
    for (int32_t m = 0; m < n_x; m++) {
        for (int64_t i = 0; i < k; i++) x[m * x_stride + i] = rng_float(&r, 1.0f);
        if (integers) t->quantize_x(type, k, x + m * x_stride, xq + m * xq_stride);
    }
    vectors v = {t,
                 {.w = w,
                  .type = type,
                  .w_stride = (int64_t)dtype_bytes(type, k),
                  .bias = bias,
                  .x_stride = x_stride,
                  .xq_stride = xq_stride,
                  .y_stride = rows,
                  .k = k,
                  .fn = KERN_FN_GELU},
                 x,
                 integers ? xq : NULL};
    vectors_run(&v, 0, rows, 0, n_x, y);
    for (int32_t m = 0; m < n_x; m++) vectors_run(&v, 0, rows, m, m + 1, y1 + m * rows); /* one by one */
    assert_memory_equal(y, y1, (size_t)(n_x * rows) * sizeof(float));
    for (int64_t n0 = 0, n1; n0 < rows; n0 = n1) { /* ranges as threads would take them */
        n1 = n0 + rng_int(&r, 1, 9);
        if (n1 > rows) n1 = rows;
        vectors_run(&v, n0, n1, 0, n_x, y1);
    }
    assert_memory_equal(y, y1, (size_t)(n_x * rows) * sizeof(float));
    copy_base = malloc(bytes + 64); /* the weights elsewhere, the last row at the end of the block */
    assert_non_null(copy_base);
    memcpy(copy_base, w, bytes);
    v.a.w = copy_base;
    vectors_run(&v, 0, rows, 0, n_x, y1);
    assert_memory_equal(y, y1, (size_t)(n_x * rows) * sizeof(float));
    free(base), free(copy_base), free(bias), free(x), free(y), free(y1), free(xq);
}

static void run_gemv(const kern_table *t)
{
    for (int type = 0; type < DTYPE_COUNT; type++) {
        if (!dtype_is_weight((dtype)type)) continue;
        gemv_bits(t, (dtype)type, 768, 23, 10, false);
        if (dtype_is_block((dtype)type))
            gemv_bits(t, (dtype)type, 768, 23, 10, true);
        else
            gemv_bits(t, (dtype)type, 45, 18, 3, false);
    }
}

static void test_gemv(void **state)
{
    (void)state;
    each_isa(run_gemv);
}

/* ------------------------------------------------------------------------------ decoding */

/* Blocks of any bits, scales that are subnormal, huge, infinite or NaN included, come out of gather as dtype_to_f32 has them. */
static void run_decode(const kern_table *t)
{
    enum { D = 512 };
    oracle_rng r = {77};
    for (int type = 0; type < DTYPE_COUNT; type++) {
        if (!dtype_is_weight((dtype)type)) continue;
        const size_t row = dtype_bytes((dtype)type, D);
        unsigned char *table = malloc(16 * row + 8);
        float *y = oracle_floats(D * 16), *want = oracle_floats(D);
        int32_t index[16];
        assert_non_null(table);
        for (int round = 0; round < 40; round++) {
            unsigned char *rows = table + round % 5;
            for (size_t i = 0; i < 16 * row; i++) rows[i] = (unsigned char)rng_next(&r);
            for (int i = 0; i < 16; i++) index[i] = i;
            t->gather(&(kern_gather_args){&(kern_gather_source){rows, (dtype)type, index}, 1, 16, D, 1.0f, y});
            for (int lane = 0; lane < 16; lane++) {
                dtype_to_f32((dtype)type, rows + (size_t)lane * row, D, want);
                for (int f = 0; f < D; f++) {
                    const float got = y[f * 16 + lane];
                    if (isnan(want[f]) ? !isnan(got) : memcmp(&got, &want[f], sizeof(got)) != 0)
                        fail_msg("%s %s: number %d is %a, want %a", t->isa, dtype_name((dtype)type), f, (double)got,
                                 (double)want[f]);
                }
            }
        }
        free(table), free(y), free(want);
    }
}

static void test_decode(void **state)
{
    (void)state;
    each_isa(run_decode);
}

/* ------------------------------------------------------------------------------ attention */

/* One text of n tokens at token `at` of a batch whose other keys and queries hold `other`; bias: of distance 0, or NULL; out: [n][head_dim]. */
static void attend_text(const kern_table *t, const float *text, int64_t n, int64_t head_dim, int64_t at, int64_t total,
                        float other, bool causal, const float *bias, float *out)
{
    const int64_t panels = (total + 15) / 16, stride = 3 * head_dim * 16;
    float *qkv = oracle_floats(panels * stride), *scratch = oracle_floats(panels * 256),
          *o = oracle_floats(head_dim * 16);
    for (int64_t i = 0; i < panels * stride; i++) qkv[i] = other;
    for (int64_t i = 0; i < n; i++)
        for (int64_t f = 0; f < 3 * head_dim; f++) qkv[panel_at(stride, at + i, f)] = text[i * 3 * head_dim + f];
    for (int64_t p = at / 16; p <= (at + n - 1) / 16; p++) {
        int32_t begin[16], end[16];
        const int32_t lanes = (int32_t)(total - p * 16 < 16 ? total - p * 16 : 16);
        for (int32_t lane = 0; lane < lanes; lane++) {
            const int64_t token = p * 16 + lane;
            begin[lane] = (int32_t)(token < at ? 0 : token < at + n ? at : at + n);
            end[lane] = (int32_t)(token < at ? at : token >= at + n ? total : causal ? token + 1 : at + n);
        }
        t->attention(&(kern_attention_args){.q = qkv + p * stride,
                                            .k = qkv + head_dim * 16,
                                            .v = qkv + 2 * head_dim * 16,
                                            .kv_stride = stride,
                                            .head_dim = head_dim,
                                            .begin = begin,
                                            .end = end,
                                            .lanes = lanes,
                                            .scale = 0.3f,
                                            .softcap = causal ? 0.7f : 0.0f,
                                            .bias = bias,
                                            .query0 = p * 16,
                                            .out = o,
                                            .scratch = scratch});
        for (int64_t i = 0; i < n; i++)
            for (int64_t f = 0; (at + i) / 16 == p && f < head_dim; f++)
                out[i * head_dim + f] = o[f * 16 + (at + i) % 16];
    }
    free(qkv), free(scratch), free(o);
}

static void run_attention(const kern_table *t)
{
    enum { REACH = 128 };
    oracle_rng r = {5};
    float *distances = oracle_floats(2 * REACH + 1);
    for (int i = 0; i <= 2 * REACH; i++) distances[i] = rng_float(&r, 3.0f);
    for (int64_t n = 1; n <= 67; n += 1 + n / 5) {
        for (int kind = 0; kind < 4; kind++) { /* causal or not, with a bias or not */
            const bool causal = kind % 2;
            const float *bias = kind / 2 ? distances + REACH : NULL;
            const int64_t head_dim = 1 + n % 35;
            float *text = oracle_floats(n * 3 * head_dim), *alone = oracle_floats(n * head_dim),
                  *packed = oracle_floats(n * head_dim);
            for (int64_t i = 0; i < n * 3 * head_dim; i++) text[i] = rng_float(&r, 2.0f);
            attend_text(t, text, n, head_dim, 0, n, 0.0f, causal, bias, alone);
            for (int64_t i = 0; i < n * head_dim; i++) assert_true(isfinite(alone[i]));
            for (int64_t at = 0; at < 34; at++) {
                attend_text(t, text, n, head_dim, at, at + n + rng_int(&r, 0, 20), at % 2 ? NAN : 1e30f, causal, bias,
                            packed);
                assert_memory_equal(alone, packed, (size_t)(n * head_dim) * sizeof(float));
            }
            free(text), free(alone), free(packed);
        }
    }
    free(distances);
}

static void test_attention(void **state)
{
    (void)state;
    each_isa(run_attention);
}

/* One token's rows: the same bits on every ISA but the reference, with a group of heads or alone, at the start of a cache or across the end of a ring. */
static void row_bits(const kern_table *first, const kern_table *t, int64_t head_dim, int64_t n, bool half)
{
    enum { HEADS = KERN_ATTENTION_ROW_HEADS };
    oracle_rng r = {(uint64_t)(head_dim * 100 + n)};
    const int64_t panels = (n + 31) / 16, stride = head_dim * 16, total = panels * stride;
    float *q = oracle_floats(HEADS * head_dim), *out[2] = {oracle_floats(head_dim), oracle_floats(HEADS * head_dim)};
    float *kv[2] = {oracle_floats(2 * total), oracle_floats(2 * total)}; /* from slot 3, and in a ring */
    float *scratch = oracle_floats((int64_t)kern_attention_row_floats(n + 16, head_dim));
    uint16_t *halves[2] = {calloc((size_t)(2 * total), 2), calloc((size_t)(2 * total), 2)};
    assert_true(halves[0] && halves[1]);
    for (int64_t i = 0; i < HEADS * head_dim; i++) q[i] = rng_float(&r, 2.0f);
    const int64_t begin[2] = {3, 16 * (panels - 1) + 3};
    for (int64_t i = 0; i < n; i++) {
        for (int64_t f = 0; f < 2 * head_dim; f++) {
            const float x = rng_float(&r, 2.0f);
            for (int w = 0; w < 2; w++) {
                const int64_t token = begin[w] + i, at = token / 16 % panels * stride + f % head_dim * 16 + token % 16;
                kv[w][f / head_dim * total + at] = x;
                halves[w][f / head_dim * total + at] = half_from_f32(x);
            }
        }
    }
    for (int w = 0; w < 2; w++) {
        const void *k = half ? (const void *)halves[w] : kv[w];
        kern_attention_row_args a = {.k = k,
                                     .v = half ? (const void *)(halves[w] + total) : kv[w] + total,
                                     .half = half,
                                     .q_stride = head_dim,
                                     .kv_stride = stride,
                                     .head_dim = head_dim,
                                     .ring = w ? (int32_t)panels : 0,
                                     .begin = begin[w],
                                     .end = begin[w] + n,
                                     .scale = 0.3f,
                                     .out_stride = head_dim,
                                     .scratch = scratch};
        for (a.n_q = 1; a.n_q <= HEADS; a.n_q++) {
            a.q = q, a.out = out[1];
            t->attention_row(&a);
            for (int h = 0; h < a.n_q; h++) {
                kern_attention_row_args alone = a;
                alone.q = q + h * head_dim, alone.out = out[0], alone.n_q = 1;
                first->attention_row(&alone);
                for (int64_t f = 0; f < head_dim; f++) assert_true(isfinite(out[0][f]));
                assert_memory_equal(out[0], out[1] + h * head_dim, (size_t)head_dim * sizeof(float));
            }
        }
    }
    free(q), free(out[0]), free(out[1]), free(scratch);
    for (int w = 0; w < 2; w++) free(kv[w]), free(halves[w]);
}

static void test_attention_row(void **state)
{
    (void)state;
    kern_table tables[ORACLE_TABLES];
    const int n_tables = oracle_tables(tables);
    for (int t = 0; t < n_tables; t++) {
        const kern_table *first = &tables[t > 1 ? 1 : t];
        for (int64_t n = 1; n < 300; n += 1 + n / 3) {
            for (int half = 0; half < 2; half++) {
                row_bits(first, &tables[t], 1 + n % 40, n, half);
                row_bits(first, &tables[t], 2 * (1 + n % 40), n, half);
            }
        }
    }
}

/* ------------------------------------------------------------------------------------------------ norms, gather,
 * pool */

static void run_rest(const kern_table *t)
{
    oracle_rng r = {9};
    for (int64_t d = 3; d < 400; d += 60) {
        float *token = oracle_floats(d), *gamma = oracle_floats(d), *x = oracle_floats(d * 16),
              *y[2] = {oracle_floats(d), oracle_floats(d)};
        for (int64_t i = 0; i < d; i++) token[i] = rng_float(&r, 2.0f), gamma[i] = rng_float(&r, 1.0f);
        for (int what = 0; what < 2; what++) {
            for (int lane = 0; lane < 16; lane++) {
                for (int64_t i = 0; i < d * 16; i++) x[i] = NAN;
                for (int64_t i = 0; i < d; i++) x[i * 16 + lane] = token[i];
                if (what)
                    t->l2_normalize(d, lane + 1, x);
                else
                    t->layer_norm(
                        &(kern_norm_args){x, NULL, gamma, gamma, x, NULL, 0, 0, 0, d, 1, 0, 1, lane + 1, 1e-5f});
                for (int64_t i = 0; i < d; i++) y[lane > 0][i] = x[i * 16 + lane];
                if (lane > 0) assert_memory_equal(y[0], y[1], (size_t)d * sizeof(float));
            }
        }
        free(token), free(gamma), free(x), free(y[0]), free(y[1]);
    }
    for (int64_t n = 1; n < 60; n += 7) { /* a text pools to the same bits at any offset */
        for (int mode = 0; mode < KERN_POOL_COUNT; mode++) {
            const int64_t d = 21, stride = d * 16;
            float *text = oracle_floats(n * d), *x = oracle_floats(6 * stride),
                  *y[2] = {oracle_floats(d * 16), oracle_floats(d * 16)};
            for (int64_t i = 0; i < n * d; i++) text[i] = rng_float(&r, 2.0f);
            for (int64_t at = 0; at < 33; at++) {
                for (int64_t i = 0; i < 6 * stride; i++) x[i] = NAN;
                for (int64_t i = 0; i < n; i++)
                    for (int64_t f = 0; f < d; f++) x[panel_at(stride, at + i, f)] = text[i * d + f];
                t->pool(&(kern_pool_args){.mode = (kern_pool_mode)mode,
                                          .x = x,
                                          .x_stride = stride,
                                          .d = d,
                                          .t0 = at,
                                          .t1 = at + n,
                                          .first_weight = 1,
                                          .y = y[at > 0]});
                for (int64_t f = 0; f < d; f++) assert_memory_equal(&y[0][f * 16], &y[at > 0][f * 16], sizeof(float));
            }
            free(text), free(x), free(y[0]), free(y[1]);
        }
    }
}

static void test_rest(void **state)
{
    (void)state;
    each_isa(run_rest);
}

/* ------------------------------------------------------------------------------------------------ the gated delta net */

/* A y is the same whatever comes behind its token; one sequence of chunks the same wherever the state lies. */
static void delta_bits(const kern_table *t, int64_t d_k, int64_t d_v)
{
    oracle_rng r = {(uint64_t)(d_k * 1000 + d_v)};
    delta_text x = delta_text_make(&r, d_k, d_v, 32, DELTA_WEAK);
    float *y = oracle_floats(32 * d_v), *y2 = oracle_floats(32 * d_v), *base = oracle_floats(d_k * d_v + 4),
          *state = oracle_floats(d_k * d_v);
    const size_t state_bytes = (size_t)(d_k * d_v) * sizeof(float), row_bytes = (size_t)d_v * sizeof(float);
    memcpy(state, x.state, state_bytes);
    delta_chunk(t, &x, 0, 16, state, y), delta_chunk(t, &x, 16, 32, state, y);
    for (int64_t n = 1; n <= 16; n++) {
        float *s = base + n % 4;
        memcpy(s, x.state, state_bytes);
        delta_chunk(t, &x, 0, n, s, y2);
        assert_memory_equal(y, y2, (size_t)n * row_bytes);
    }
    memcpy(base + 3, x.state, state_bytes);
    delta_chunk(t, &x, 0, 16, base + 3, y2), delta_chunk(t, &x, 16, 32, base + 3, y2);
    assert_memory_equal(y, y2, 32 * row_bytes);
    assert_memory_equal(state, base + 3, state_bytes);
    for (int64_t i = 0; i < d_k; i++) x.q[31 * d_k + i] = x.k[31 * d_k + i] = NAN; /* reaches no token before it */
    for (int64_t j = 0; j < d_v; j++) x.v[31 * d_v + j] = INFINITY;
    x.g[31] = x.beta[31] = NAN;
    memcpy(state, x.state, state_bytes);
    delta_chunk(t, &x, 0, 16, state, y2), delta_chunk(t, &x, 16, 32, state, y2);
    assert_memory_equal(y, y2, 31 * row_bytes);
    for (int64_t j = 0; j < d_v; j++) assert_true(isnan(y2[31 * d_v + j]));
    free(y), free(y2), free(base), free(state);
    delta_text_free(&x);
}

/* A panel is what single tokens give, one after the other. */
static void conv_bits(const kern_table *t, int64_t d, int32_t width)
{
    oracle_rng r = {(uint64_t)(d * 100 + width)};
    float *w = oracle_floats(width * d), *x = oracle_floats(d * 16), *y = oracle_floats(d * 16),
          *row = oracle_floats(d), *state = oracle_floats(width * d), *out = oracle_floats(d);
    int32_t have[16];
    for (int i = 0; i < 16; i++) have[i] = width;
    for (int64_t i = 0; i < width * d; i++) w[i] = rng_float(&r, 1.0f), state[i] = rng_float(&r, 2.0f);
    for (int64_t i = 0; i < 16 * d; i++) x[i] = rng_float(&r, 2.0f);
    t->conv(&(kern_conv_args){d, width, w, x, state, 1, d, have, y});
    for (int l = 0; l < 16; l++) {
        for (int64_t f = 0; f < d; f++) row[f] = x[f * 16 + l];
        t->conv_row(&(kern_conv_row_args){d, width, w, row, state, out});
        for (int64_t f = 0; f < d; f++) assert_memory_equal(&out[f], &y[f * 16 + l], sizeof(float));
    }
    free(w), free(x), free(y), free(row), free(state), free(out);
}

static void run_delta(const kern_table *t)
{
    static const int64_t sizes[][2] = {{1, 1}, {12, 20}, {20, 33}, {33, 12}, {64, 100}, {128, 128}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) delta_bits(t, sizes[i][0], sizes[i][1]);
    for (int64_t d = 1; d < 40; d += 5)
        for (int32_t width = 2; width <= 16; width += 2) conv_bits(t, d, width);
}

static void test_delta(void **state)
{
    (void)state;
    each_isa(run_delta);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_linear),        cmocka_unit_test(test_gemv),
                                       cmocka_unit_test(test_decode),        cmocka_unit_test(test_attention),
                                       cmocka_unit_test(test_attention_row), cmocka_unit_test(test_rest),
                                       cmocka_unit_test(test_delta)};
    return TEST_RUN(tests);
}
