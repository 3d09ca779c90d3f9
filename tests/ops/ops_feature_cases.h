/* SPDX-License-Identifier: Apache-2.0
 *
 * ops_feature_cases.h: cases of test_ops.c for products of one token with chosen rows, against the definition in double: floats and blocks, with and without 8-bit
 * activations, any choice of rows; what is not finite in a row that is read is named, in others it is not seen. */
#ifndef LATH_TESTS_OPS_FEATURE_CASES_H
#define LATH_TESTS_OPS_FEATURE_CASES_H

enum { FEATURES = 75, CHOICES = 5 };

/* Rows of finite numbers of any type, in `values` as they decode. */
static weight *feature_rows(env *e, dtype type, int64_t d, float **values)
{
    *values = rnd_floats(e, FEATURES * d, 1);
    if (!dtype_is_block(type)) return make_weight(e, "down", type, FEATURES, d, *values);
    const size_t bytes = dtype_bytes(type, FEATURES * d);
    unsigned char *p = arena_bytes(&e->mem, bytes, 64);
    tensor *t = arena_zero(&e->mem, sizeof(*t));
    weight *w = arena_zero(&e->mem, sizeof(*w));
    assert_true(p && t && w);
    for (size_t i = 0; i < bytes; i++) p[i] = (unsigned char)(i * 37 + i / 7) & 0x3f;
    *t = (tensor){.name = "down",
                  .type = type,
                  .rank = 2,
                  .dim = {FEATURES, d},
                  .count = FEATURES * d,
                  .data = p,
                  .bytes = bytes};
    dtype_to_f32(type, p, (size_t)(FEATURES * d), *values);
    weight_init(w, t, "w.safetensors", 0, FEATURES, d);
    return w;
}

/* n rising features; NULL: all of them. */
static const int32_t *choose_features(env *e, int64_t n)
{
    int32_t *index = rising(e, FEATURES);
    if (n == FEATURES) return NULL;
    for (int64_t i = 0; i < n; i++) index[i] = (int32_t)(i * (FEATURES - 1) / (n > 1 ? n - 1 : 1));
    return index;
}

static float *keep(env *e, int64_t n)
{
    float *p = e->out + e->n_out;
    e->n_out += (size_t)n;
    assert_true(e->n_out <= MAX_FLOATS);
    return p;
}

static float *feature_memory(env *e, int64_t d)
{
    float *p = arena_bytes(&e->mem, op_features_floats(d) * sizeof(float), 64);
    assert_non_null(p);
    return p;
}

static void features_of(env *e, dtype type, int64_t d, int64_t n)
{
    float *values, *x = arena_bytes(&e->mem, (size_t)(d + 16) * sizeof(float), 64),
                   *y = arena_bytes(&e->mem, (size_t)(d + 16) * sizeof(float), 64), *by = rnd_floats(e, FEATURES, 1);
    weight *w = feature_rows(e, type, d, &values);
    const op_features a = {w, choose_features(e, n), n};
    assert_true(x && y);
    for (int64_t f = 0; f < d; f++) x[f] = rnd(e), y[f] = (float)f / 64;
    float *dot = keep(e, n), *sum = keep(e, d);
    assert_ok(e->ops->dot_features(&e->s, &a, x, dot), e->err);
    assert_ok(e->ops->add_features(&e->s, &a, by, y, feature_memory(e, d)), e->err);
    memcpy(sum, y, (size_t)d * sizeof(float));
    for (int64_t i = 0; i < n; i++) {
        const float *row = values + (a.index ? a.index[i] : i) * d;
        double want = 0, size = 0;
        for (int64_t f = 0; f < d; f++) want += (double)row[f] * (double)x[f], size += fabs((double)row[f]);
        /* 8 bits of x: half a step of its largest, times each weight */
        close_to("dot_features", dot[i], want, (e->s.integer ? 1.0 / 250 : 2e-6) * size + 1e-9);
    }
    for (int64_t f = 0; f < d; f++) {
        double want = (double)f / 64, size = fabs(want);
        for (int64_t i = 0; i < n; i++) {
            const double term = (double)by[i] * (double)values[(a.index ? a.index[i] : i) * d + f];
            want += term, size += fabs(term);
        }
        close_to("add_features", sum[f], want, 2e-6 * size + 1e-9);
    }
}

/* Numbers that are not finite, in a row that is chosen and in one that is not. */
static void nonfinite_features(env *e, int64_t d)
{
    float *values, x[64] __attribute__((aligned(64))) = {1}, y[64] __attribute__((aligned(64)));
    for (int64_t f = 0; f < 64; f++) x[f] = 1, y[f] = 0;
    weight *w = feature_rows(e, DTYPE_F16, d, &values);
    const int32_t some[] = {3, 8, 21}, others[] = {4, 9};
    const float by[] = {1, 2, 3};
    const uint16_t infinity = 0x7c00;
    memcpy((char *)w->t->data + (8 * d + d - 1) * 2, &infinity, 2);
    const op_features bad = {w, some, 3}, good = {w, others, 2};
    char want[96];
    snprintf(want, sizeof(want), "w.safetensors: tensor \"down\": element [8,%d] is not finite", (int)d - 1);
    assert_ok(e->ops->dot_features(&e->s, &good, x, y), e->err);
    assert_int_equal(e->ops->dot_features(&e->s, &bad, x, y), LATH_ERR_FORMAT);
    assert_string_equal(e->err.msg, want);
    memset(y, 0, sizeof(y));
    assert_ok(e->ops->add_features(&e->s, &good, by, y, feature_memory(e, d)), e->err);
    assert_int_equal(e->ops->add_features(&e->s, &bad, by, y, feature_memory(e, d)), LATH_ERR_FORMAT);
    assert_string_equal(e->err.msg, want);
    err_clear(&e->err);
}

/* All rows for the tokens of the shape; each is what it is alone. */
static void all_features_of(env *e, dtype type, int64_t d, int64_t n_tok)
{
    const int64_t step = op_row_floats(d);
    float *values, *by = rnd_floats(e, n_tok * FEATURES, 1),
                   *y = arena_bytes(&e->mem, (size_t)(n_tok * step) * sizeof(float), 64), *one = y;
    weight *w = feature_rows(e, type, d, &values);
    assert_non_null(y);
    for (int64_t i = 0; i < n_tok * step; i++) y[i] = (float)(i % step) / 64;
    assert_ok(e->ops->add_all_features(&e->s, w, by, n_tok, y, feature_memory(e, d)), e->err);
    for (int64_t t = 0; t < n_tok; t++) {
        memcpy(keep(e, d), y + t * step, (size_t)d * sizeof(float));
        for (int64_t f = 0; f < d; f++) {
            double want = (double)f / 64, size = fabs(want);
            for (int64_t i = 0; i < FEATURES; i++) {
                const double term = (double)by[t * FEATURES + i] * (double)values[i * d + f];
                want += term, size += fabs(term);
            }
            close_to("add_all_features", y[t * step + f], want, 2e-6 * size + 1e-9);
        }
    }
    one = arena_bytes(&e->mem, (size_t)step * sizeof(float), 64);
    assert_non_null(one);
    for (int64_t i = 0; i < step; i++) one[i] = (float)i / 64;
    assert_ok(e->ops->add_all_features(&e->s, w, by + (n_tok - 1) * FEATURES, 1, one, feature_memory(e, d)), e->err);
    assert_memory_equal(one, y + (n_tok - 1) * step, (size_t)d * sizeof(float));
}

static void case_features(env *e, const shape *s)
{
    static const int64_t chosen[CHOICES] = {0, 1, 6, 37, FEATURES};
    static const dtype floats[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_F8_E4M3, DTYPE_F8_E5M2};
    for (int i = 0; i < CHOICES; i++) features_of(e, floats[(i + s->n_tok) % 5], s->d, chosen[i]);
    nonfinite_features(e, s->d);
    all_features_of(e, floats[s->n_tok % 5], s->d, s->n_tok);
    if (s->n_tok <= BACKEND_ROWS_MOST) all_features_of(e, s->d == 7 ? DTYPE_Q8_0 : DTYPE_Q4_K, 512, s->n_tok);
    for (int type = 0, i = 0; type < DTYPE_COUNT; type++) {
        if (!dtype_is_block((dtype)type)) continue;
        if (++i % 5 != s->n_tok % 5) continue; /* each of them with some shape */
        e->s.integer = s->d % 2 == 0 || s->d == 7;
        features_of(e, (dtype)type, 256, chosen[1 + i % (CHOICES - 1)]);
        e->s.integer = false;
    }
}

#endif
