/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_rows_check.h: part of test_kern.c: the slots that work on plain rows of a token. */
#ifndef LATH_TESTS_KERN_ROWS_CHECK_H
#define LATH_TESTS_KERN_ROWS_CHECK_H

/* ------------------------------------------------------------------------------ norms */

/* Groups of d features with or without a residual, a shift and the sum kept apart, in x or not at all. */
static void norm_row_case(check *c, int64_t d, int64_t groups, bool centred)
{
    oracle_rng *r = &c->rng;
    const bool has_r = rng_int(r, 0, 1), has_beta = centred && rng_int(r, 0, 1);
    const int keep = (int)rng_int(r, 0, 2), shift = (int)rng_int(r, 0, 7); /* any alignment */
    const int64_t n = groups * d;
    const float eps = rng_int(r, 0, 1) ? 1e-6f : 1e-2f;
    WHERE(c, "%s %s d=%d groups=%d r=%d keep=%d", centred ? "layer_norm_row" : "rms_norm_row", c->t->isa, (int)d,
          (int)groups, has_r, keep);
    float *x = oracle_floats(n), *res = oracle_floats(n + 8) + shift, *gamma = oracle_floats(d + 1) + 1,
          *beta = oracle_floats(d + 1) + 1, *y[2], *sum[2], *in[2];
    for (int64_t i = 0; i < d; i++) gamma[i] = rng_float(r, 2.0f), beta[i] = rng_float(r, 1.0f);
    for (int64_t i = 0; i < n; i++) x[i] = rng_float(r, 2.0f), res[i] = rng_float(r, 1.0f);
    for (int v = 0; v < 2; v++) {
        const kern_table *t = v ? c->ref : c->t;
        y[v] = oracle_floats(n + 9), sum[v] = oracle_floats(n + 9), in[v] = oracle_floats(n + 9);
        memcpy(in[v] + shift, x, (size_t)n * sizeof(float));
        const kern_norm_row_args a = {.x = in[v] + shift,
                                      .r = has_r ? res : NULL,
                                      .gamma = gamma,
                                      .beta = has_beta ? beta : NULL,
                                      .y = y[v] + shift,
                                      .sum = keep == 0   ? NULL
                                             : keep == 1 ? in[v] + shift
                                                         : sum[v] + shift,
                                      .d = d,
                                      .n_groups = groups,
                                      .eps = eps};
        (centred ? t->layer_norm_row : t->rms_norm_row)(&a);
        assert_true(isnan(y[v][shift + n]) && isnan(sum[v][shift + n]) && isnan(in[v][shift + n]));
    }
    for (int64_t at = 0; at < n; at += d) {
        double mean = 0, squares = 0, largest = 0;
        for (int64_t i = at; i < at + d; i++) {
            const double v = (double)x[i] + (has_r ? (double)res[i] : 0.0);
            if (centred) mean += v / (double)d;
            largest = fmax(largest, fabs(v));
        }
        for (int64_t i = at; i < at + d; i++) {
            const double v = (double)x[i] + (has_r ? (double)res[i] : 0.0) - mean;
            squares += v * v / (double)d;
        }
        for (int64_t i = at; i < at + d; i++) {
            const double inverse = 1.0 / sqrt(squares + (double)eps), g = (double)gamma[i - at];
            const double b = has_beta ? (double)beta[i - at] : 0.0;
            const double v = (double)x[i] + (has_r ? (double)res[i] : 0.0) - mean;
            check_value(c, y[0][shift + i], v * inverse * g + b, y[1][shift + i],
                        largest * inverse * fabs(g) + fabs(b));
            const float s = has_r ? x[i] + res[i] : x[i];
            for (int w = 0; w < 2; w++) assert_true(keep == 0 || (keep == 1 ? in[w] : sum[w])[shift + i] == s);
        }
    }
    free(x), free(res - shift), free(gamma - 1), free(beta - 1);
    for (int v = 0; v < 2; v++) free(y[v]), free(sum[v]), free(in[v]);
    c->cases++;
}

static void norm_row_cases(check *c, bool centred)
{
    for (int64_t d = 1; d <= 100; d++) norm_row_case(c, d, 1 + d % 4, centred);
    norm_row_case(c, 1024, 1, centred);
    norm_row_case(c, 1025, 2, centred);
}

static void check_layer_norm_row(check *c) { norm_row_cases(c, true); }

static void check_rms_norm_row(check *c) { norm_row_cases(c, false); }

/* ------------------------------------------------------------------------------ attention */

/* Keys begin .. end of a cache of `ring` panels (0: none is used twice); what nobody sees is NaN. */
static void attention_row_case(check *c, int64_t head_dim, int64_t begin, int64_t end, int32_t ring, int32_t n_q)
{
    oracle_rng *r = &c->rng;
    const int64_t panels = ring ? ring : (end + 15) / 16, stride = head_dim * 16 + 16 * rng_int(r, 0, 2);
    const int64_t q_stride = head_dim + rng_int(r, 0, 3);
    const float scale = 1.0f / sqrtf((float)head_dim), softcap = n_q % 2 ? 0.0f : 0.3f * (float)rng_int(r, 1, 9);
    WHERE(c, "attention_row %s head_dim=%d keys=%d..%d ring=%d heads=%d", c->t->isa, (int)head_dim, (int)begin,
          (int)end, ring, n_q);
    float *k = oracle_floats(panels * stride), *v = oracle_floats(panels * stride), *q = oracle_floats(n_q * q_stride),
          *out[2];
    for (int64_t i = 0; i < n_q * q_stride; i++) q[i] = rng_float(r, 2.0f);
    for (int64_t j = begin; j < end; j++) {
        for (int64_t f = 0; f < head_dim; f++) {
            const int64_t at = j / 16 % panels * stride + f * 16 + j % 16;
            k[at] = rng_float(r, 2.0f), v[at] = rng_float(r, 2.0f);
        }
    }
    const bool half = rng_int(r, 0, 1);
    uint16_t *k_half = calloc((size_t)(panels * stride) + 64, 2), *v_half = calloc((size_t)(panels * stride) + 64, 2);
    assert_true(k_half && v_half);
    for (int64_t i = 0; half && i < panels * stride; i++) { /* numbers that a half holds */
        k_half[i] = half_from_f32(k[i]), v_half[i] = half_from_f32(v[i]);
        k[i] = half_to_f32(k_half[i]), v[i] = half_to_f32(v_half[i]);
    }
    for (int w = 0; w < 2; w++) {
        const size_t n = kern_attention_row_floats(end - begin / 16 * 16, head_dim);
        float *scratch = oracle_floats((int64_t)n + 8);
        out[w] = oracle_floats(n_q * q_stride + 8);
        const kern_attention_row_args a = {.q = q,
                                           .q_stride = q_stride,
                                           .k = half ? (const void *)k_half : k,
                                           .v = half ? (const void *)v_half : v,
                                           .half = half,
                                           .kv_stride = stride,
                                           .head_dim = head_dim,
                                           .ring = ring,
                                           .n_q = n_q,
                                           .begin = begin,
                                           .end = end,
                                           .scale = scale,
                                           .softcap = softcap,
                                           .out = out[w],
                                           .out_stride = q_stride,
                                           .scratch = scratch};
        (w ? c->ref : c->t)->attention_row(&a);
        for (int i = 0; i < 8; i++) assert_true(isnan(scratch[(int64_t)n + i]) && isnan(out[w][n_q * q_stride + i]));
        free(scratch);
    }
    double *weight = malloc((size_t)(end - begin) * sizeof(double));
    assert_non_null(weight);
    for (int32_t h = 0; h < n_q; h++) {
        double largest = -INFINITY, sum = 0;
        for (int64_t j = begin; j < end; j++) {
            double s = 0;
            for (int64_t f = 0; f < head_dim; f++)
                s += (double)q[h * q_stride + f] * (double)k[j / 16 % panels * stride + f * 16 + j % 16];
            weight[j - begin] = oracle_capped(s * (double)scale, softcap), largest = fmax(largest, weight[j - begin]);
        }
        for (int64_t j = 0; j < end - begin; j++) weight[j] = exp(weight[j] - largest), sum += weight[j];
        for (int64_t f = 0; f < head_dim; f++) {
            double want = 0, most = 0;
            for (int64_t j = begin; j < end; j++) {
                const double value = (double)v[j / 16 % panels * stride + f * 16 + j % 16];
                want += weight[j - begin] / sum * value, most = fmax(most, fabs(value));
            }
            check_value(c, out[0][h * q_stride + f], want, out[1][h * q_stride + f], most);
        }
    }
    free(k), free(v), free(q), free(out[0]), free(out[1]), free(weight), free(k_half), free(v_half);
    c->cases++;
}

static void check_attention_row(check *c)
{
    for (int32_t n_q = 1; n_q <= KERN_ATTENTION_ROW_HEADS; n_q++) {
        for (int64_t n = 1; n <= 70; n++) attention_row_case(c, 1 + n % 37, 0, n, 0, n_q);
        for (int i = 0; i < 100; i++) {
            const int64_t begin = rng_int(&c->rng, 0, 90), end = begin + rng_int(&c->rng, 1, 60);
            attention_row_case(c, rng_int(&c->rng, 1, 40), begin, end, 0, n_q);
            attention_row_case(c, rng_int(&c->rng, 1, 40), begin, end, (int32_t)rng_int(&c->rng, 5, 8), n_q);
        }
        attention_row_case(c, 256, 0, 700, 0, n_q);
        attention_row_case(c, 128, 3000, 3512, 33, n_q);
    }
}

/* ------------------------------------------------------------------------------ halves */

/* Against the conversion that tests/unit/tensor proves: all numbers that are a half, and any bits. */
static void half_cases(check *c, bool to)
{
    oracle_rng *r = &c->rng;
    for (size_t n = 1; n <= 65536; n = n < 40 ? n + 1 : n == 40 ? 65536 : n + 1) {
        float *x = oracle_floats((int64_t)n + 8), *back = oracle_floats((int64_t)n + 8);
        uint16_t *h = calloc(n + 8, 2);
        assert_non_null(h);
        for (size_t i = 0; i < n; i++) {
            const uint32_t bits = (uint32_t)rng_next(r);
            h[i] = (uint16_t)(n > 1000 ? i : bits);
            memcpy(&x[i], &bits, 4);
            if (i % 2) x[i] = rng_float(r, 70000.0f);
            if (isnan(x[i])) x[i] = 0; /* which NaN it becomes is nobody's business */
        }
        if (to) {
            uint16_t *got = calloc(n + 8, 2);
            assert_non_null(got);
            c->t->to_half(n, x + 1, got); /* any alignment */
            for (size_t i = 0; i + 1 < n; i++) assert_int_equal(got[i], half_from_f32(x[i + 1]));
            free(got);
        } else {
            c->t->from_half(n, h, back);
            for (size_t i = 0; i < n; i++) {
                const float want = half_to_f32(h[i]);
                assert_true(isnan(want) ? isnan(back[i]) : memcmp(&want, &back[i], 4) == 0);
            }
            assert_true(isnan(back[n]));
        }
        c->cases++, c->values += (int64_t)n;
        free(x), free(back), free(h);
    }
}

static void check_to_half(check *c) { half_cases(c, true); }

static void check_from_half(check *c) { half_cases(c, false); }

/* ------------------------------------------------------------------------------ sums of rows */

/* Rows `index` (or all, in turn) of a matrix, columns f0 .. f0 + k of it, into y; what is behind stays. */
static void add_rows_case(check *c, dtype type, int64_t k_least, int64_t n, bool all)
{
    oracle_rng *r = &c->rng;
    const int64_t k = whole_blocks(type, k_least), f0 = rng_int(r, 0, 2) * (int64_t)dtype_block_numbers(type);
    const int64_t cols = f0 + k + rng_int(r, 0, 2) * (int64_t)dtype_block_numbers(type), rows = n + rng_int(r, 1, 5);
    const int64_t row_stride = (int64_t)dtype_bytes(type, cols);
    WHERE(c, "add_rows %s %s n=%d columns %d..%d of %d all=%d", c->t->isa, dtype_name(type), (int)n, (int)f0,
          (int)(f0 + k), (int)cols, all);
    unsigned char *base, *w = oracle_elements(r, type, rows * cols, 1.0f, (int)rng_int(r, 0, 3), &base);
    int32_t *index = calloc((size_t)n + 1, sizeof(*index));
    float *by = oracle_floats(n + 1) + 1, *y[2], *before = oracle_floats(k);
    double *numbers = malloc((size_t)cols * sizeof(double)), *sum = calloc((size_t)k, sizeof(double)),
           *size = calloc((size_t)k, sizeof(double));
    assert_true(index && numbers && sum && size);
    for (int64_t i = 0; i < n; i++)
        index[i] = all ? (int32_t)i : (int32_t)rng_int(r, 0, rows - 1), by[i] = rng_float(r, 2);
    for (int64_t f = 0; f < k; f++) before[f] = rng_float(r, 2), sum[f] = (double)before[f], size[f] = fabs(sum[f]);
    for (int v = 0; v < 2; v++) {
        y[v] = oracle_floats(k + 16);
        memcpy(y[v], before, (size_t)k * sizeof(float));
        (v ? c->ref : c->t)
            ->add_rows(&(kern_add_rows_args){.rows = w,
                                             .type = type,
                                             .row_stride = row_stride,
                                             .index = all ? NULL : index,
                                             .by = by,
                                             .n = n,
                                             .f0 = f0,
                                             .k = k,
                                             .y = y[v]});
        for (int i = 0; i < 16; i++) assert_true(isnan(y[v][k + i]));
    }
    for (int64_t i = 0; i < n; i++) {
        oracle_numbers(type, w + index[i] * row_stride, cols, numbers);
        for (int64_t f = 0; f < k; f++) {
            const double term = (double)by[i] * numbers[f0 + f];
            sum[f] += term, size[f] += fabs(term);
        }
    }
    for (int64_t f = 0; f < k; f++) check_value(c, y[0][f], sum[f], y[1][f], size[f]);
    free(base), free(index), free(by - 1), free(y[0]), free(y[1]), free(before), free(numbers), free(sum), free(size);
    c->cases++;
}

static void check_add_rows(check *c)
{
    for (int type = 0; type < DTYPE_COUNT; type++) {
        if (!dtype_is_weight((dtype)type)) continue;
        for (int64_t n = 0; n <= 9; n++) add_rows_case(c, (dtype)type, 1 + n * 7, n, n % 3 == 0);
        for (int64_t k = 1; k <= 40; k++) add_rows_case(c, (dtype)type, k, rng_int(&c->rng, 1, 12), k % 2 == 0);
        add_rows_case(c, (dtype)type, 700, 30, false);
        add_rows_case(c, (dtype)type, 513, 31, true);
    }
}

#endif
