/* SPDX-License-Identifier: Apache-2.0
 * test_ops.c: the op table. Every op of every backend has a function and a case here (backend/ops.def is
 * enumerated; an op without a case fails); each case is run on every instruction set of this machine, at odd
 * shapes, against a naive computation in double, and must give the same bits with 1, 2 and 3 threads. Activations
 * go in through `gather` (rows of a table in order) and come out through `read_rows`, so that nothing here knows
 * how a backend lays them out. Then the refusal of weights that are not finite, by name. */
#include <math.h>

#include "backend/backend.h"
#include "support/test.h"

static const backend_ops *(*const backends[])(void) = {backend_cpu, backend_cpu_rows};
enum { N_BACKENDS = sizeof(backends) / sizeof(backends[0]), MAX_TOK = 64, MAX_FLOATS = 1 << 16 };

/* What a case works with. Everything from `mem` goes when the case ends. */
typedef struct env {
    stream s;
    const backend_ops *ops;
    arena mem;
    lath_error err;
    uint64_t random;
    float *out; /* results, in the order in which the case made them */
    size_t n_out;
} env;

/* n_tok tokens of n_seq texts, d features. */
typedef struct shape {
    int64_t n_tok, d;
    int32_t n_seq, start[MAX_TOK + 1];
    int32_t begin[MAX_TOK], end[MAX_TOK];
} shape;

/* ------------------------------------------------------------------------------------------------------------- help */

/* [-1, 1) */
static float rnd(env *e)
{
    e->random = e->random * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(e->random >> 32) * 0x1p-31f;
}

static float *rnd_floats(env *e, int64_t n, float scale)
{
    float *p = arena_array(&e->mem, (size_t)n, sizeof(float));
    assert_non_null(p);
    for (int64_t i = 0; i < n; i++) p[i] = scale * rnd(e);
    return p;
}

/* A tensor of f32 values that fit `type` exactly (multiples of 1/64 below 2; others for 8-bit types), at an odd
 * address. */
static tensor *make_tensor(env *e, const char *name, dtype type, int64_t rows, int64_t cols, float *values)
{
    tensor *t = arena_zero(&e->mem, sizeof(*t));
    size_t size = dtype_block_bytes(type), n = (size_t)(rows * cols);
    unsigned char *bytes = arena_bytes(&e->mem, n * size + 1, 64);
    assert_true(t && bytes);
    bytes++;
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        values[i] = roundf(values[i] * 64) / 64;
        memcpy(&u, &values[i], 4);
        uint16_t half = (uint16_t)(u >> 16); /* BF16 */
        if (type == DTYPE_F16)
            half = (uint16_t)(u >> 16 & 0x8000) |
                   (values[i] == 0 ? 0 : (uint16_t)((((u >> 23 & 255) - 112) << 10) | (u >> 13 & 0x3FF)));
        if (type == DTYPE_F32)
            memcpy(bytes + 4 * i, &u, 4);
        else if (size == 2)
            memcpy(bytes + 2 * i, &half, 2);
        if (size == 1) { /* any code below 2 */
            bytes[i] = (unsigned char)((u >> 24 & 0x80) | (u >> 17 & 0x3F));
            dtype_to_f32(type, bytes + i, 1, &values[i]);
        }
        if (type == DTYPE_BF16) { /* 8 bits of fraction are fewer than 1/64 below 2 may need */
            u = (uint32_t)half << 16;
            memcpy(&values[i], &u, 4);
        }
    }
    *t = (tensor){.name = name,
                  .type = type,
                  .rank = 2,
                  .dim = {rows, cols},
                  .count = rows * cols,
                  .data = bytes,
                  .bytes = n * size};
    return t;
}

static weight *make_weight(env *e, const char *name, dtype type, int64_t rows, int64_t cols, float *values)
{
    weight *w = arena_zero(&e->mem, sizeof(*w));
    assert_non_null(w);
    weight_init(w, make_tensor(e, name, type, rows, cols, values), "w.safetensors", 0, rows, cols);
    return w;
}

static view make_view(env *e, int64_t n_tok, int64_t d)
{
    size_t n = e->ops->view_floats(n_tok, d);
    float *p = arena_bytes(&e->mem, n * sizeof(float), 64);
    assert_non_null(p);
    memset(p, 0, n * sizeof(float));
    return e->ops->make_view(p, n_tok, d);
}

static int32_t *rising(env *e, int64_t n)
{
    int32_t *index = arena_array(&e->mem, (size_t)(n + 15) / 16 * 16, sizeof(int32_t));
    assert_non_null(index);
    for (int64_t i = 0; i < n; i++) index[i] = (int32_t)i;
    return index;
}

/* rows: [x.n_tok, x.d] into the view. */
static void put(env *e, view x, const float *rows)
{
    tensor *t = arena_zero(&e->mem, sizeof(*t));
    weight w;
    *t = (tensor){.name = "rows",
                  .type = DTYPE_F32,
                  .rank = 2,
                  .dim = {x.n_tok, x.d},
                  .count = x.n_tok * x.d,
                  .data = rows,
                  .bytes = (size_t)(x.n_tok * x.d) * 4};
    weight_init(&w, t, "rows", 0, x.n_tok, x.d);
    const op_gather_source source = {&w, rising(e, x.n_tok)};
    const op_gather g = {&source, 1, 1.0f, x};
    assert_ok(e->ops->gather(&e->s, &g), e->err);
}

/* A view that holds rows of random numbers, given out in *rows. */
static view rnd_view(env *e, int64_t n_tok, int64_t d, float scale, float **rows)
{
    view x = make_view(e, n_tok, d);
    *rows = rnd_floats(e, n_tok * d, scale);
    put(e, x, *rows);
    return x;
}

/* The view's rows, kept among the results. */
static const float *get(env *e, view x)
{
    float *p = e->out + e->n_out;
    e->n_out += (size_t)(x.n_tok * x.d);
    assert_true(e->n_out <= MAX_FLOATS);
    assert_ok(e->ops->read_rows(&e->s, x, 0, x.n_tok, p), e->err);
    return p;
}

static void close_to(const char *what, float got, double want, double tolerance)
{
    if (!(fabs((double)got - want) <= tolerance))
        fail_msg("%s: %.9g, want %.9g +- %.2g", what, (double)got, want, tolerance);
}

/* ----------------------------------------------------------------------------------------------------- gather, rows */

static void case_gather(env *e, const shape *s)
{
    static const dtype types[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_F8_E4M3, DTYPE_F8_E5M2};
    enum { ROWS = 11 };
    for (int32_t n = 1; n <= 3; n++) {
        op_gather_source sources[3];
        float *values[3];
        int32_t *index[3];
        for (int32_t k = 0; k < n; k++) {
            values[k] = rnd_floats(e, ROWS * s->d, 1.5f);
            index[k] = rising(e, s->n_tok);
            for (int64_t t = 0; t < s->n_tok; t++) index[k][t] = (int32_t)((t * (k + 3) + k) % ROWS);
            sources[k] =
                (op_gather_source){make_weight(e, "table", types[(k + n + s->d) % 5], ROWS, s->d, values[k]), index[k]};
        }
        view y = make_view(e, s->n_tok, s->d);
        const op_gather g = {sources, n, 1.0f, y};
        assert_ok(e->ops->gather(&e->s, &g), e->err);
        const float *got = get(e, y);
        for (int64_t t = 0; t < s->n_tok; t++) {
            for (int64_t f = 0; f < s->d; f++) {
                double want = 0;
                for (int32_t k = 0; k < n; k++) want += (double)values[k][index[k][t] * s->d + f];
                close_to("gather", got[t * s->d + f], want, 0); /* the sums of these are exact */
            }
        }
    }
}

/* Any range of rows of a slice of a view. */
static void case_read_rows(env *e, const shape *s)
{
    float *rows, got[MAX_TOK * 40];
    int64_t d = s->d + 4;
    view x = rnd_view(e, s->n_tok, d, 1, &rows);
    for (int64_t first = 0; first < 5; first += 2) {
        view part = e->ops->slice(x, first, s->d);
        assert_int_equal(part.n_tok, s->n_tok);
        assert_int_equal(part.d, s->d);
        for (int64_t row0 = 0; row0 < s->n_tok; row0 += 1 + row0 / 3) {
            for (int64_t n = 0; row0 + n <= s->n_tok; n += 1 + n) {
                got[n * s->d] = 77; /* behind what is asked for */
                assert_ok(e->ops->read_rows(&e->s, part, row0, n, got), e->err);
                for (int64_t t = 0; t < n; t++)
                    assert_memory_equal(got + t * s->d, rows + (row0 + t) * d + first, (size_t)s->d * sizeof(float));
                assert_true(got[n * s->d] == 77);
            }
        }
    }
    get(e, x);
}

/* ----------------------------------------------------------------------------------------------------------- linear */

static double function(kern_fn fn, double x)
{
    switch (fn) {
    case KERN_FN_RELU: return x > 0 ? x : 0;
    case KERN_FN_GELU: return 0.5 * x * (1 + erf(x / sqrt(2)));
    case KERN_FN_GELU_TANH: return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    case KERN_FN_SILU: return x / (1 + exp(-x));
    case KERN_FN_TANH: return tanh(x);
    case KERN_FN_SIGMOID: return 1 / (1 + exp(-x));
    case KERN_FN_EXP: return exp(x);
    case KERN_FN_NONE:
    case KERN_FN_COUNT: break;
    }
    return x;
}

static void check_linear(const char *what, const float *x, int64_t k, const float *w, const float *bias, kern_fn fn,
                         const float *got, int64_t n_tok, int64_t n)
{
    for (int64_t t = 0; t < n_tok; t++) {
        for (int64_t r = 0; r < n; r++) {
            double sum = bias ? (double)bias[r] : 0, size = fabs(sum);
            for (int64_t i = 0; i < k; i++) {
                double term = (double)w[r * k + i] * (double)x[t * k + i];
                sum += term;
                size += fabs(term);
            }
            double want = function(fn, sum), slope = fn == KERN_FN_EXP ? want : 1.2;
            close_to(what, got[t * n + r], want, 2e-6 * size * slope + 1e-6 * fabs(want) + 2e-7);
        }
    }
}

/* One to three parts of different widths over the same x, one of them into a slice, every function, every dtype,
 * with and without bias. */
static void case_linear(env *e, const shape *s)
{
    static const dtype types[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_F8_E4M3, DTYPE_F8_E5M2};
    static const int64_t widths[] = {1, 5, 37, 64};
    float *x_rows;
    view x = rnd_view(e, s->n_tok, s->d, 1, &x_rows);
    for (int i = 0; i < KERN_FN_COUNT; i++) {
        op_linear parts[3];
        float *w[3], *bias[3];
        int32_t n = 1 + i % 3;
        view wide = make_view(e, s->n_tok, 70);
        for (int32_t p = 0; p < n; p++) {
            int64_t rows = widths[(i + p) % 4];
            w[p] = rnd_floats(e, rows * s->d, 0.5f);
            bias[p] = (i + p) % 2 ? rnd_floats(e, rows, 1) : NULL;
            parts[p] = (op_linear){.w = make_weight(e, "linear", types[(i + 2 * p + s->d) % 5], rows, s->d, w[p]),
                                   .bias = {bias[p], bias[p] ? rows : 0},
                                   .fn = (kern_fn)((i + p) % KERN_FN_COUNT),
                                   .y = p == 1 ? e->ops->slice(wide, 3, rows) : make_view(e, s->n_tok, rows)};
        }
        assert_ok(e->ops->linear(&e->s, x, parts, n), e->err);
        for (int32_t p = 0; p < n; p++)
            check_linear("linear", x_rows, s->d, w[p], bias[p], parts[p].fn, get(e, parts[p].y), s->n_tok,
                         parts[p].y.d);
        const float *around = get(e, e->ops->slice(wide, 0, 3));
        for (int64_t t = 0; t < s->n_tok * 3; t++) assert_true(around[t] == 0); /* not written beside the slice */
        e->n_out -= (size_t)(s->n_tok * 3);
    }
}

/* ------------------------------------------------------------------------------------------------------------ norms */

static void case_norm(env *e, const shape *s)
{
    float *x_rows, *r_rows, *gamma = rnd_floats(e, s->d, 2), *beta = rnd_floats(e, s->d, 1);
    for (int i = 0; i < 4; i++) {
        bool add = i & 1, in_place = i & 2;
        view x = rnd_view(e, s->n_tok, s->d, 3, &x_rows), r = rnd_view(e, s->n_tok, s->d, 2, &r_rows),
             y = in_place ? x : make_view(e, s->n_tok, s->d);
        const op_norm norm = {NORM_LAYER, {gamma, s->d}, {beta, s->d}, i < 2 ? 1e-12f : 1e-3f};
        const op_norm_args args = {.x = x, .r = add ? &r : NULL, .norm = &norm, .n_groups = 1, .y = y};
        assert_ok(e->ops->norm(&e->s, &args), e->err);
        const float *got = get(e, y);
        for (int64_t t = 0; t < s->n_tok; t++) {
            double mean = 0, var = 0, most = 0;
            for (int64_t f = 0; f < s->d; f++)
                mean += ((double)x_rows[t * s->d + f] + (add ? (double)r_rows[t * s->d + f] : 0)) / (double)s->d;
            for (int64_t f = 0; f < s->d; f++) {
                double v = (double)x_rows[t * s->d + f] + (add ? (double)r_rows[t * s->d + f] : 0) - mean;
                var += v * v / (double)s->d;
                most = fmax(most, fabs(v));
            }
            double scale = 1 / sqrt(var + (double)norm.eps);
            for (int64_t f = 0; f < s->d; f++) {
                double v = (double)x_rows[t * s->d + f] + (add ? (double)r_rows[t * s->d + f] : 0) - mean;
                close_to("norm", got[t * s->d + f],
                         s->d == 1 ? (double)beta[f] : v * scale * (double)gamma[f] + (double)beta[f],
                         4e-6 * (most * scale * fabs((double)gamma[f]) + fabs((double)beta[f])) + 1e-6);
            }
        }
    }
}

/* RMS norm of groups of features; the sum goes back into x. */
static void case_rms_norm(env *e, const shape *s)
{
    for (int64_t groups = 1; groups <= 3; groups++) {
        const int64_t d = s->d, n = groups * d;
        float *x_rows, *r_rows, *gamma = rnd_floats(e, d, 2);
        view x = rnd_view(e, s->n_tok, n, 3, &x_rows), r = rnd_view(e, s->n_tok, n, 2, &r_rows);
        view y = make_view(e, s->n_tok, n);
        const op_norm norm = {.kind = NORM_RMS, .gamma = {gamma, d}, .eps = 1e-3f};
        const op_norm_args args = {.x = x, .r = &r, .sum = &x, .norm = &norm, .n_groups = groups, .y = y};
        assert_ok(e->ops->norm(&e->s, &args), e->err);
        const float *got = get(e, y), *sum = get(e, x);
        for (int64_t at = 0; at < s->n_tok * n; at += d) {
            double squares = 0, most = 0;
            for (int64_t f = at; f < at + d; f++) {
                const double v = (double)x_rows[f] + (double)r_rows[f];
                squares += v * v / (double)d;
                most = fmax(most, fabs(v));
                assert_true(sum[f] == x_rows[f] + r_rows[f]);
            }
            const double scale = 1 / sqrt(squares + (double)norm.eps);
            for (int64_t f = 0; f < d; f++)
                close_to("norm", got[at + f],
                         ((double)x_rows[at + f] + (double)r_rows[at + f]) * scale * (double)gamma[f],
                         4e-6 * most * scale * fabs((double)gamma[f]) + 1e-6);
        }
    }
}

static void case_norms(env *e, const shape *s)
{
    case_norm(e, s);
    case_rms_norm(e, s);
}

/* From a slice into a slice; what is beside it stays. */
static void case_copy(env *e, const shape *s)
{
    float *x_rows, *y_rows;
    const int64_t d = s->d + 2;
    view x = rnd_view(e, s->n_tok, d, 3, &x_rows), y = rnd_view(e, s->n_tok, d, 2, &y_rows);
    assert_ok(e->ops->copy(&e->s, e->ops->slice(x, 2, s->d), e->ops->slice(y, 1, s->d)), e->err);
    const float *got = get(e, y);
    for (int64_t i = 0; i < s->n_tok * d; i++) {
        const bool inside = i % d >= 1 && i % d <= s->d;
        assert_true(got[i] == (inside ? x_rows[i + 1] : y_rows[i]));
    }
}

/* A slice becomes 0; what is beside it stays. */
static void case_clear(env *e, const shape *s)
{
    float *rows;
    const int64_t d = s->d + 2;
    view x = rnd_view(e, s->n_tok, d, 3, &rows);
    assert_ok(e->ops->clear(&e->s, e->ops->slice(x, 1, s->d)), e->err);
    const float *got = get(e, x);
    for (int64_t i = 0; i < s->n_tok * d; i++) assert_true(got[i] == (i % d >= 1 && i % d <= s->d ? 0 : rows[i]));
}

/* Rows into a slice: they come out again, what is beside and above them stays. */
static void case_write_rows(env *e, const shape *s)
{
    float *rows, *in = rnd_floats(e, s->n_tok * s->d, 2);
    const int64_t d = s->d + 3;
    for (int64_t row0 = 0; row0 < s->n_tok; row0 += 1 + row0 / 3) {
        const int64_t n = (s->n_tok - row0 + 1) / 2;
        view x = rnd_view(e, s->n_tok, d, 3, &rows);
        assert_ok(e->ops->write_rows(&e->s, e->ops->slice(x, 2, s->d), row0, n, in), e->err);
        const float *got = get(e, x);
        for (int64_t i = 0; i < s->n_tok * d; i++) {
            const int64_t t = i / d, f = i % d - 2;
            const bool inside = t >= row0 && t < row0 + n && f >= 0 && f < s->d;
            assert_true(got[i] == (inside ? in[(t - row0) * s->d + f] : rows[i]));
        }
    }
}

/* Every other token, the last one first, out of a slice and, weighted, back into another; more features than a task has. */
static void case_rows(env *e, const shape *s)
{
    const int64_t d = s->d + 300, n = (s->n_tok + 1) / 2;
    float *x_rows, *y_rows, *by = rnd_floats(e, n, 2);
    int32_t *index = rising(e, n);
    for (int64_t i = 0; i < n; i++) index[i] = (int32_t)(s->n_tok - 1 - 2 * i);
    view x = rnd_view(e, s->n_tok, d + 1, 3, &x_rows), y = rnd_view(e, s->n_tok, d + 2, 2, &y_rows);
    view some = make_view(e, n, d);
    assert_ok(e->ops->take_rows(&e->s, e->ops->slice(x, 1, d), index, some), e->err);
    const float *taken = get(e, some);
    for (int64_t i = 0; i < n; i++)
        assert_memory_equal(taken + i * d, x_rows + index[i] * (d + 1) + 1, (size_t)d * sizeof(float));
    assert_ok(e->ops->add_rows(&e->s, some, index, by, e->ops->slice(y, 2, d)), e->err);
    const float *got = get(e, y);
    for (int64_t t = 0; t < s->n_tok; t++) {
        const bool hit = (s->n_tok - 1 - t) % 2 == 0;
        for (int64_t f = 0; f < d + 2; f++) {
            float want = y_rows[t * (d + 2) + f];
            if (hit && f >= 2) want += by[(s->n_tok - 1 - t) / 2] * x_rows[t * (d + 1) + f - 1];
            assert_true(got[t * (d + 2) + f] == want);
        }
    }
}

/* Every function between two factors, in place and not, into a slice. */
static void case_map(env *e, const shape *s)
{
    static const float factors[][2] = {{1, 1}, {0.25f, 1}, {1, -3}, {0.02f, 50}};
    for (int i = 0; i < KERN_FN_COUNT * 4; i++) {
        float *rows;
        view x = rnd_view(e, s->n_tok, s->d, 3, &rows), wide = make_view(e, s->n_tok, s->d + 3),
             y = i % 3 ? x : e->ops->slice(wide, 2, s->d);
        const float in = factors[i % 4][0], out = factors[i % 4][1];
        const op_map a = {(kern_fn)(i / 4), in, out, x, y};
        assert_ok(e->ops->map(&e->s, &a), e->err);
        const float *got = get(e, y);
        for (int64_t k = 0; k < s->n_tok * s->d; k++) {
            const double want = (double)out * function(a.fn, (double)in * (double)rows[k]);
            close_to("map", got[k], want, 1e-6 * fabs(want) + 4e-7 * fabs((double)out));
        }
    }
}

/* gate and up are slices of one view, as a gated FFN has them. */
static void case_glu(env *e, const shape *s)
{
    const int64_t d = s->d;
    float *rows;
    view both = rnd_view(e, s->n_tok, 2 * d, 3, &rows), up = e->ops->slice(both, 0, d);
    assert_ok(e->ops->glu(&e->s, KERN_FN_SILU, e->ops->slice(both, d, d), up, up), e->err);
    const float *got = get(e, up);
    for (int64_t i = 0; i < s->n_tok * d; i++) {
        const double u = (double)rows[i / d * 2 * d + i % d], g = (double)rows[i / d * 2 * d + d + i % d];
        close_to("glu", got[i], g / (1 + exp(-g)) * u, 2e-6);
    }
}

/* ------------------------------------------------------------------------------------------------------------- rope */

/* Angles of f32, as the table's contract says, their cosines in double; one set of frequencies, then one of three a token. */
static void case_rope_table(env *e, const shape *s)
{
    const int64_t pairs = s->d;
    float *inv_freq = rnd_floats(e, 3 * pairs, 1);
    int32_t *pos = rising(e, s->n_tok), *set = rising(e, s->n_tok);
    for (int64_t t = 0; t < s->n_tok; t++) {
        pos[t] = (int32_t)(t * 997 % 4001);
        set[t] = (int32_t)(t * 5 % 3);
    }
    view cosine = make_view(e, s->n_tok, pairs), sine = make_view(e, s->n_tok, pairs);
    for (int sets = 0; sets < 2; sets++) {
        const op_rope_table table = {pos, inv_freq, 1.25f, cosine, sine, sets ? set : NULL};
        assert_ok(e->ops->rope_table(&e->s, &table), e->err);
        const float *c = get(e, cosine), *sn = get(e, sine);
        for (int64_t i = 0; i < s->n_tok * pairs; i++) {
            const int64_t t = i / pairs, first = sets ? set[t] * pairs : 0;
            const float angle = (float)pos[t] * inv_freq[first + i % pairs];
            close_to("rope_table", c[i], 1.25 * cos((double)angle), 2e-7);
            close_to("rope_table", sn[i], 1.25 * sin((double)angle), 2e-7);
        }
    }
}

/* A rotation by a rotation's parts: the length of each pair stays, its angle grows by the table's. */
static void case_rope(env *e, const shape *s)
{
    for (int interleaved = 0; interleaved < 2; interleaved++) {
        const int64_t pairs = 1 + s->d % 3, head_dim = 2 * pairs + s->d % 2, n = 2 * head_dim;
        float *rows, *c_rows, *s_rows;
        view x = rnd_view(e, s->n_tok, n, 2, &rows), cosine = make_view(e, s->n_tok, pairs),
             sine = make_view(e, s->n_tok, pairs);
        c_rows = rnd_floats(e, s->n_tok * pairs, 1);
        s_rows = rnd_floats(e, s->n_tok * pairs, 1);
        put(e, cosine, c_rows);
        put(e, sine, s_rows);
        const op_rope rope = {x, head_dim, cosine, sine, interleaved};
        assert_ok(e->ops->rope(&e->s, &rope), e->err);
        const float *got = get(e, x);
        for (int64_t t = 0; t < s->n_tok; t++) {
            for (int64_t h = 0; h < 2; h++) {
                const float *in = rows + t * n + h * head_dim, *out = got + t * n + h * head_dim;
                if (head_dim > 2 * pairs) assert_true(in[2 * pairs] == out[2 * pairs]);
                for (int64_t i = 0; i < pairs; i++) {
                    const int64_t a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + pairs;
                    const double cs = (double)c_rows[t * pairs + i], sn = (double)s_rows[t * pairs + i];
                    close_to("rope", out[a], (double)in[a] * cs - (double)in[b] * sn, 2e-6);
                    close_to("rope", out[b], (double)in[b] * cs + (double)in[a] * sn, 2e-6);
                }
            }
        }
    }
}

/* A zero row stays zero; a slice is normalised for itself and the rest of the view stays. */
static void case_l2_normalize(env *e, const shape *s)
{
    int64_t d = s->d + 2;
    float *rows;
    view x = make_view(e, s->n_tok, d);
    rows = rnd_floats(e, s->n_tok * d, 4);
    for (int64_t f = 0; f < d; f++) rows[s->n_tok / 2 * d + f] = 0;
    put(e, x, rows);
    assert_ok(e->ops->l2_normalize(&e->s, e->ops->slice(x, 1, s->d)), e->err);
    const float *got = get(e, x);
    for (int64_t t = 0; t < s->n_tok; t++) {
        double sum = 0;
        for (int64_t f = 1; f <= s->d; f++) sum += (double)rows[t * d + f] * (double)rows[t * d + f];
        for (int64_t f = 0; f < d; f++) {
            bool inside = f >= 1 && f <= s->d;
            double want = (double)rows[t * d + f] / (inside ? fmax(sqrt(sum), 1e-12) : 1);
            close_to("l2_normalize", got[t * d + f], want, inside ? 1e-6 : 0);
        }
    }
}

/* -------------------------------------------------------------------------------------------------------- attention */

typedef struct heads {
    int32_t n, n_kv;
    int64_t dim;
} heads;

static void check_attention(const shape *s, const op_attention *a, const float *q, const float *k, const float *v,
                            const float *got)
{
    int64_t dq = a->n_heads * a->head_dim, dk = a->n_kv_heads * a->head_dim;
    for (int64_t t = 0; t < s->n_tok; t++) {
        for (int64_t h = 0; h < a->n_heads; h++) {
            const float *qh = q + t * dq + h * a->head_dim;
            int64_t at = h / (a->n_heads / a->n_kv_heads) * a->head_dim;
            double score[MAX_TOK], most = -INFINITY, sum = 0;
            for (int64_t j = a->begin[t]; j < a->end[t]; j++) {
                score[j] = 0;
                for (int64_t i = 0; i < a->head_dim; i++)
                    score[j] += (double)qh[i] * (double)k[j * dk + at + i] * (double)a->scale;
                if (a->bias)
                    score[j] += (double)a->bias[h * (2 * a->bias_reach + 1) + a->bias_reach + t - j] * (double)a->scale;
                if (a->softcap != 0) score[j] = (double)a->softcap * tanh(score[j] / (double)a->softcap);
                most = fmax(most, score[j]);
            }
            for (int64_t j = a->begin[t]; j < a->end[t]; j++) sum += exp(score[j] - most);
            for (int64_t i = 0; i < a->head_dim; i++) {
                double want = 0;
                for (int64_t j = a->begin[t]; j < a->end[t]; j++)
                    want += exp(score[j] - most) / sum * (double)v[j * dk + at + i];
                close_to("attention", got[t * dq + h * a->head_dim + i], want, 6e-6);
            }
        }
    }
}

/* The weights of every token: not negative, 1 together, and with the values what attention gave. */
static void check_weights(env *e, const op_attention *a, const float *v, const float *got)
{
    const int64_t hd = a->head_dim, dk = a->n_kv_heads * hd;
    float weights[6 * 256];
    for (int64_t t = 0; t < a->q.n_tok; t++) {
        const int64_t n = a->end[t] - a->begin[t];
        assert_true(a->n_heads * n < 6 * 256);
        weights[a->n_heads * n] = 77;
        assert_ok(e->ops->attention_weights(&e->s, a, t, weights), e->err);
        assert_true(weights[a->n_heads * n] == 77);
        for (int64_t h = 0; h < a->n_heads; h++) {
            const float *w = weights + h * n, *values = v + a->begin[t] * dk + h / (a->n_heads / a->n_kv_heads) * hd;
            double sum = 0;
            for (int64_t j = 0; j < n; j++) {
                assert_true(w[j] >= 0);
                sum += (double)w[j];
            }
            close_to("sum of weights", (float)sum, 1, 1e-6);
            for (int64_t f = 0; f < hd; f++) {
                double want = 0;
                for (int64_t j = 0; j < n; j++) want += (double)w[j] * (double)values[j * dk + f];
                close_to("weights", got[(t * a->n_heads + h) * hd + f], want, 5e-6);
            }
        }
    }
}

/* Each token sees its own text; itself and what is before it in it; a window of it. Values of other texts are huge:
 * none may leak. */
static void case_attention(env *e, const shape *s)
{
    static const heads all[] = {{1, 1, 5}, {4, 2, 5}, {3, 1, 1}, {2, 2, 32}, {6, 3, 7}};
    int64_t padded = (s->n_tok + 15) / 16 * 16;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        const heads *h = &all[i];
        for (int mask = 0; mask < 3; mask++) {
            int32_t *begin = arena_array(&e->mem, (size_t)padded, sizeof(int32_t)),
                    *end = arena_array(&e->mem, (size_t)padded, sizeof(int32_t));
            float *q_rows, *k_rows, *v_rows;
            memcpy(begin, s->begin, (size_t)s->n_tok * sizeof(int32_t));
            memcpy(end, s->end, (size_t)s->n_tok * sizeof(int32_t));
            for (int32_t t = 0; t < s->n_tok; t++) {
                if (mask >= 1) end[t] = t + 1;
                if (mask == 2 && begin[t] < t - 2) begin[t] = t - 2;
            }
            int64_t dq = h->n * h->dim, dk = h->n_kv * h->dim;
            view q = rnd_view(e, s->n_tok, dq, 2, &q_rows), kv = make_view(e, s->n_tok, 2 * dk + 3);
            view k = e->ops->slice(kv, 3, dk), v = e->ops->slice(kv, 3 + dk, dk);
            k_rows = rnd_floats(e, s->n_tok * dk, 2);
            v_rows = rnd_floats(e, s->n_tok * dk, 1);
            put(e, k, k_rows);
            put(e, v, v_rows);
            op_attention a = {.q = q,
                              .k = k,
                              .v = v,
                              .out = make_view(e, s->n_tok, dq),
                              .n_heads = h->n,
                              .n_kv_heads = h->n_kv,
                              .head_dim = h->dim,
                              .begin = begin,
                              .end = end,
                              .scale = (float)(1 / sqrt((double)h->dim)),
                              .softcap = mask == 2 ? 1.5f : 0.0f};
            if (i % 2) {
                a.bias_reach = s->n_tok - 1;
                a.bias = rnd_floats(e, h->n * (2 * a.bias_reach + 1), 2);
            }
            assert_ok(e->ops->attention(&e->s, &a), e->err);
            const float *got = get(e, a.out);
            check_attention(s, &a, q_rows, k_rows, v_rows, got);
            check_weights(e, &a, v_rows, got);
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------- pool */

static double pooled(kern_pool_mode mode, const float *x, int64_t d, int64_t t0, int64_t t1, int64_t first_weight)
{
    double sum = 0, weights = 0, most = -INFINITY;
    for (int64_t t = t0; t < t1; t++) {
        double v = (double)x[t * d], w = mode == KERN_POOL_WEIGHTED_MEAN ? (double)(first_weight + t - t0) : 1;
        sum += w * v;
        weights += w;
        most = fmax(most, v);
    }
    switch (mode) {
    case KERN_POOL_FIRST: return (double)x[t0 * d];
    case KERN_POOL_LAST: return (double)x[(t1 - 1) * d];
    case KERN_POOL_MAX: return most;
    case KERN_POOL_MEAN_SQRT: return sum / sqrt((double)(t1 - t0));
    case KERN_POOL_MEAN:
    case KERN_POOL_WEIGHTED_MEAN:
    case KERN_POOL_COUNT: break;
    }
    return sum / weights;
}

/* Queries at positions at, at + 1, ... against keys 0 .. end of which only `window` are seen (0: all), in double. */
static void check_kept(const op_attention *a, const float *q, const float *k, const float *v, const float *got)
{
    const int64_t hd = a->head_dim, dq = a->n_heads * hd, dk = a->n_kv_heads * hd;
    for (int64_t t = 0; t < a->q.n_tok; t++) {
        for (int64_t h = 0; h < a->n_heads; h++) {
            const int64_t kv = h / (a->n_heads / a->n_kv_heads);
            double share[256], sum = 0, largest = -INFINITY;
            for (int64_t j = a->begin[t]; j < a->end[t]; j++) {
                double score = 0;
                for (int64_t f = 0; f < hd; f++)
                    score += (double)q[t * dq + h * hd + f] * (double)k[j * dk + kv * hd + f];
                share[j] = score * (double)a->scale;
                largest = fmax(largest, share[j]);
            }
            for (int64_t j = a->begin[t]; j < a->end[t]; j++) sum += share[j] = exp(share[j] - largest);
            for (int64_t f = 0; f < hd; f++) {
                double want = 0;
                for (int64_t j = a->begin[t]; j < a->end[t]; j++)
                    want += share[j] / sum * (double)v[j * dk + kv * hd + f];
                close_to("attention to what is kept", got[t * dq + h * hd + f], want, 4e-6);
            }
        }
    }
}

/* Batches of n_tok tokens, one behind the other, into a ring; each looks at a window that the ring holds. */
static void case_kv_append(env *e, const shape *s)
{
    enum { SLOTS = 112, BATCHES = 5 };
    static const heads all[] = {{1, 1, 5}, {4, 2, 5}, {3, 1, 1}, {2, 2, 32}, {6, 1, 7}};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        const heads *h = &all[i];
        const int64_t dq = h->n * h->dim, dk = h->n_kv * h->dim, window = SLOTS - s->n_tok, most = s->n_tok * BATCHES;
        kv_layer kv = {.n_slots = SLOTS, .head_dim = h->dim, .n_kv_heads = h->n_kv, .half = i % 2};
        kv.k = arena_bytes(&e->mem, kv_numbers(&kv) * sizeof(float), 64);
        kv.v = arena_bytes(&e->mem, kv_numbers(&kv) * sizeof(float), 64);
        assert_true(kv.k && kv.v);
        memset(kv.k, 0xFF, kv_numbers(&kv) * kv_size(&kv)); /* NaN: nobody reads what nobody wrote */
        memset(kv.v, 0xFF, kv_numbers(&kv) * kv_size(&kv));
        float *k_rows = rnd_floats(e, most * dk, 2), *v_rows = rnd_floats(e, most * dk, 1), *q_rows;
        for (int64_t f = 0; kv.half && f < most * dk; f++) { /* numbers that a half holds */
            k_rows[f] = half_to_f32(half_from_f32(k_rows[f]));
            v_rows[f] = half_to_f32(half_from_f32(v_rows[f]));
        }
        for (int64_t at = 0; at < most; at += s->n_tok) {
            view q = rnd_view(e, s->n_tok, dq, 2, &q_rows), both = make_view(e, s->n_tok, 2 * dk + 3);
            view k = e->ops->slice(both, 3, dk), v = e->ops->slice(both, 3 + dk, dk);
            int32_t *begin = rising(e, s->n_tok), *end = rising(e, s->n_tok);
            put(e, k, k_rows + at * dk);
            put(e, v, v_rows + at * dk);
            assert_ok(e->ops->kv_append(&e->s, k, v, &kv, at), e->err);
            for (int64_t t = 0; t < s->n_tok; t++) {
                end[t] = (int32_t)(at + t + 1);
                begin[t] = end[t] > window ? end[t] - (int32_t)window : 0;
            }
            const op_attention a = {.q = q,
                                    .kv = &kv,
                                    .out = make_view(e, s->n_tok, dq),
                                    .n_heads = h->n,
                                    .n_kv_heads = h->n_kv,
                                    .head_dim = h->dim,
                                    .begin = begin,
                                    .end = end,
                                    .scale = (float)(1 / sqrt((double)h->dim))};
            assert_ok(e->ops->attention(&e->s, &a), e->err);
            const float *got = get(e, a.out);
            check_kept(&a, q_rows, k_rows, v_rows, got);
            check_weights(e, &a, v_rows, got);
        }
    }
}

static void case_pool(env *e, const shape *s)
{
    float *rows;
    view x = rnd_view(e, s->n_tok, s->d, 1, &rows);
    int64_t shortest = MAX_TOK;
    for (int32_t i = 0; i < s->n_seq; i++)
        shortest = s->start[i + 1] - s->start[i] < shortest ? s->start[i + 1] - s->start[i] : shortest;
    for (int mode = 0; mode < KERN_POOL_COUNT; mode++) {
        for (int64_t skip = 0; skip < shortest && skip < 3; skip++) {
            view y = make_view(e, s->n_seq, s->d + 1); /* into a slice, as several modes are put side by side */
            op_pool p = {(kern_pool_mode)mode, x, e->ops->slice(y, 1, s->d), s->start, skip};
            assert_ok(e->ops->pool(&e->s, &p), e->err);
            const float *got = get(e, y);
            for (int32_t i = 0; i < s->n_seq; i++) {
                assert_true(got[i * (s->d + 1)] == 0);
                for (int64_t f = 0; f < s->d; f++)
                    close_to(
                        "pool", got[i * (s->d + 1) + 1 + f],
                        pooled((kern_pool_mode)mode, rows + f, s->d, s->start[i] + skip, s->start[i + 1], skip + 1),
                        5e-6);
            }
        }
    }
}

#include "ops_feature_cases.h"
#include "ops_time_cases.h"

/* ------------------------------------------------------------------------------------------------------- the runner */

static const struct {
    const char *op;
    void (*run)(env *e, const shape *s);
} cases[] = {
    {"gather", case_gather},
    {"read_rows", case_read_rows},
    {"write_rows", case_write_rows},
    {"linear", case_linear},
    {"norm", case_norms},
    {"copy", case_copy},
    {"clear", case_clear},
    {"take_rows", case_rows},
    {"add_rows", case_rows},
    {"map", case_map},
    {"glu", case_glu},
    {"rope_table", case_rope_table},
    {"rope", case_rope},
    {"attention", case_attention},
    {"kv_append", case_kv_append},
    {"attention_weights", case_kv_append},
    {"l2_normalize", case_l2_normalize},
    {"conv", case_conv},
    {"delta", case_delta},
    {"dot_features", case_features},
    {"add_features", case_features},
    {"add_all_features", case_features},
    {"pool", case_pool},
};
enum { N_CASES = sizeof(cases) / sizeof(cases[0]) };

static const char *const op_names[] = {
#define OP(name, args) #name,
#include "backend/ops.def"
#undef OP
};
enum { N_OPS = sizeof(op_names) / sizeof(op_names[0]) };

/* What the table of few tokens need not have: ops for whole texts only. */
static bool is_for_texts(const backend_ops *ops, const char *op)
{
    const bool texts_only = strcmp(op, "pool") == 0 || strcmp(op, "l2_normalize") == 0 || strcmp(op, "attention") == 0;
    return ops == backend_cpu_rows() && texts_only; /* attention to what is kept is in the case of kv_append */
}

static void test_table_is_full(void **state)
{
    (void)state;
    for (int b = 0; b < N_BACKENDS; b++) {
        const backend_ops *ops = backends[b]();
        assert_true(ops->name && *ops->name);
#define OP(op, args) \
    if (!ops->op && !is_for_texts(ops, #op)) fail_msg("%s: no %s", ops->name, #op);
#include "backend/ops.def"
#undef OP
        assert_true(ops->view_floats && ops->make_view && ops->slice && ops->tokens && ops->scratch_floats);
    }
    for (int i = 0; i < N_OPS; i++) {
        bool found = false;
        for (int k = 0; k < N_CASES && !found; k++) found = strcmp(cases[k].op, op_names[i]) == 0;
        if (!found) fail_msg("op %s has no case here", op_names[i]);
    }
}

/* how 0: many texts of 1, 2, 3, 1, 2, 3... tokens; 1: one text; 2: texts of 3, 7, 11... tokens. */
static shape make_shape(int64_t n_tok, int64_t d, int how)
{
    shape s = {.n_tok = n_tok, .d = d};
    int32_t at = 0;
    for (int32_t len = how == 2 ? 3 : 1; at < n_tok;) {
        int32_t n = how == 1 ? (int32_t)n_tok : len;
        if (at + n > n_tok || (how == 2 && n_tok - at - n < 3)) n = (int32_t)n_tok - at;
        for (int32_t t = at; t < at + n; t++) {
            s.begin[t] = at;
            s.end[t] = at + n;
        }
        at += n;
        s.start[++s.n_seq] = at;
        len = how == 0 ? len % 3 + 1 : len + 4;
    }
    return s;
}

static void env_open(env *e, const backend_ops *ops, const kern_table *kern, int32_t threads)
{
    *e = (env){.ops = ops, .random = 12345};
    arena_init(&e->mem, alloc_default());
    e->out = malloc(MAX_FLOATS * sizeof(float));
    assert_non_null(e->out);
    e->s = (stream){.ops = ops, .kern = kern, .err = &e->err};
    e->s.limits =
        (op_limits){.n_tok = MAX_TOK, .n_keys = 256, .head_dim = 64, .d = 256, .half = true, .d_k = 64, .d_v = 64};
    assert_ok(pool_create(alloc_default(), threads, &e->s.pool, &e->err), e->err);
    e->s.scratch = arena_bytes(&e->mem, ops->scratch_floats(&e->s, &e->s.limits) * sizeof(float), 64);
    assert_non_null(e->s.scratch);
    pool_enter(e->s.pool);
}

static void env_close(env *e)
{
    pool_leave(e->s.pool);
    pool_destroy(e->s.pool);
    arena_deinit(&e->mem);
    free(e->out);
}

/* The case with 1, 2 and 3 threads; the results are the same bits. */
static void run_case(const backend_ops *ops, const kern_table *kern, int which, const shape *s)
{
    env one, more;
    env_open(&one, ops, kern, 1);
    cases[which].run(&one, s);
    assert_true(one.n_out > 0);
    for (int32_t threads = 2; threads <= 3; threads++) {
        env_open(&more, ops, kern, threads);
        cases[which].run(&more, s);
        assert_int_equal(more.n_out, one.n_out);
        if (memcmp(one.out, more.out, one.n_out * sizeof(float)) != 0)
            fail_msg("%s of %s: n_tok %lld, d %lld: other bits with %d threads", cases[which].op, kern->isa,
                     (long long)s->n_tok, (long long)s->d, threads);
        env_close(&more);
    }
    env_close(&one);
}

static void test_cases(void **state)
{
    static const int64_t tokens[] = {1, 8, 15, 16, 17, 50}, widths[] = {1, 7, 33};
    int n = 0;
    (void)state;
    for (int isa = 0; isa < KERN_ISA_COUNT; isa++) {
        if (!kern_isa_available((kern_isa)isa)) continue;
        kern_table kern;
        kern_table_init(&kern, (kern_isa)isa);
        print_message("ops on %s\n", kern.isa);
        for (int b = 0; b < N_BACKENDS; b++) {
            for (int c = 0; c < N_CASES; c++) {
                for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
                    for (size_t k = 0; k < sizeof(widths) / sizeof(widths[0]); k++) {
                        if (backends[b]() == backend_cpu_rows() && tokens[i] > BACKEND_ROWS_MOST) continue;
                        if (is_for_texts(backends[b](), cases[c].op)) continue;
                        shape s = make_shape(tokens[i], widths[k], (int)((i + k) % 3));
                        run_case(backends[b](), &kern, c, &s);
                        n++;
                    }
                }
            }
        }
    }
    assert_true(n >= N_CASES * 15);
}

/* ----------------------------------------------------------------------------------------------------------- finite */

static void set_element(tensor *t, int64_t i, uint32_t f32_bits)
{
    uint16_t half = (uint16_t)(f32_bits >> 16); /* BF16; NaN and infinity of F16 have their own pattern */
    if (t->type == DTYPE_F16 && f32_bits)
        half = f32_bits == 0x7F800000 ? 0x7C00 : f32_bits == 0xFF800000 ? 0xFC00 : 0x7E01;
    if (t->type == DTYPE_F8_E5M2 && f32_bits)
        half = f32_bits == 0x7F800000 ? 0x7C : f32_bits == 0xFF800000 ? 0xFC : 0x7D;
    if (t->type == DTYPE_F8_E4M3 && f32_bits) half = f32_bits >> 31 ? 0xFF : 0x7F;
    if (dtype_block_bytes(t->type) == 1)
        memcpy((char *)t->data + i, &half, 1);
    else if (t->type == DTYPE_F32)
        memcpy((char *)t->data + 4 * i, &f32_bits, 4);
    else
        memcpy((char *)t->data + 2 * i, &half, 2);
}

static const uint32_t bad_bits[] = {0x7FC00000, 0x7F800000, 0xFF800000, 0xFFC00001, 0x7FA00000};
static const dtype float_types[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_F8_E4M3, DTYPE_F8_E5M2};

static void test_finite_matrix(void **state)
{
    env e;
    kern_table kern;
    (void)state;
    kern_table_init(&kern, KERN_ISA_AMX);
    for (int32_t threads = 1; threads <= 3; threads++) {
        for (size_t type = 0; type < sizeof(float_types) / sizeof(float_types[0]); type++) {
            for (size_t bad = 0; bad < sizeof(bad_bits) / sizeof(bad_bits[0]); bad++) {
                env_open(&e, backend_cpu(), &kern, threads);
                float *rows, *values = rnd_floats(&e, 700 * 401, 1);
                view x = rnd_view(&e, 3, 401, 1, &rows);
                weight *good = make_weight(&e, "good", float_types[type], 5, 401, rnd_floats(&e, 5 * 401, 1)),
                       *w = make_weight(&e, "layer.3.up", float_types[type], 700, 401, values);
                int64_t at = bad == 0 ? 0 : bad == 1 ? 700 * 401 - 1 : 123 * 401 + 57;
                set_element((tensor *)w->t, at, bad_bits[bad]);
                set_element((tensor *)w->t, 700 * 401 - 1, bad_bits[bad]); /* the first is named */
                op_linear parts[] = {{good, {0}, KERN_FN_NONE, make_view(&e, 3, 5)},
                                     {w, {0}, KERN_FN_NONE, make_view(&e, 3, 700)}};
                char want[128];
                snprintf(want, sizeof(want), "w.safetensors: tensor \"layer.3.up\": element [%lld,%lld] is not finite",
                         (long long)(at / 401), (long long)(at % 401));
                for (int again = 0; again < 2; again++) {
                    err_clear(&e.err);
                    assert_int_equal(e.ops->linear(&e.s, x, parts, 2), LATH_ERR_FORMAT);
                    assert_string_equal(e.err.msg, want);
                    assert_int_equal(e.err.status, LATH_ERR_FORMAT);
                }
                set_element((tensor *)w->t, at, 0);
                set_element((tensor *)w->t, 700 * 401 - 1, 0);
                assert_ok(e.ops->linear(&e.s, x, parts, 2), e.err);
                env_close(&e);
            }
        }
    }
}

/* Weights of blocks: product and rows are those of the decoded numbers; a scale that is not finite is refused with the place of its block. */
static void test_blocks(void **state)
{
    enum { ROWS = 21, COLS = 512, TOK = 5 };
    env e;
    kern_table kern;
    (void)state;
    kern_table_init(&kern, KERN_ISA_AMX);
    for (int type = 0; type < DTYPE_COUNT; type++) {
        if (!dtype_is_block((dtype)type)) continue;
        env_open(&e, backend_cpu(), &kern, 1 + type % 3);
        size_t row_bytes;
        assert_true(dtype_row_bytes((dtype)type, COLS, &row_bytes));
        unsigned char *bytes = arena_zero(&e.mem, ROWS * row_bytes); /* scales 0 but for one block of each row */
        float *w = rnd_floats(&e, ROWS * COLS, 0), *rows, *y = rnd_floats(&e, TOK * ROWS, 0);
        assert_non_null(bytes);
        for (int i = 0; i < ROWS; i++) {
            unsigned char *b = bytes + (size_t)i * row_bytes;
            for (size_t k = 0; k < dtype_block_bytes((dtype)type); k++)
                b[k] = (unsigned char)(i * 31 + (int)k * 7) & 0x3f;
        }
        dtype_to_f32((dtype)type, bytes, ROWS * COLS, w);
        const tensor t = {.name = "blk.0.up",
                          .type = (dtype)type,
                          .rank = 2,
                          .dim = {ROWS, COLS},
                          .count = ROWS * COLS,
                          .data = bytes,
                          .bytes = ROWS * row_bytes};
        weight whole, part;
        weight_init(&whole, &t, "m.gguf", 0, ROWS, COLS);
        weight_init(&part, &t, "m.gguf", 4, ROWS - 4, COLS);
        view x = rnd_view(&e, TOK, COLS, 1, &rows);
        op_linear parts[] = {{&whole, {0}, KERN_FN_NONE, make_view(&e, TOK, ROWS)},
                             {&part, {0}, KERN_FN_NONE, make_view(&e, TOK, ROWS - 4)}};
        assert_ok(e.ops->linear(&e.s, x, parts, 2), e.err);
        for (int p = 0; p < 2; p++) {
            const int64_t first = p ? 4 : 0, n = ROWS - first;
            assert_ok(e.ops->read_rows(&e.s, parts[p].y, 0, TOK, y), e.err);
            for (int64_t i = 0; i < TOK * n; i++) {
                double sum = 0, scale = 0;
                for (int64_t k = 0; k < COLS; k++) {
                    const double term = (double)rows[i / n * COLS + k] * (double)w[(first + i % n) * COLS + k];
                    sum += term, scale += fabs(term);
                }
                assert_true(fabs((double)y[i] - sum) <= 1e-5 * scale);
            }
        }
        int32_t *ids = rising(&e, TOK);
        for (int i = 0; i < TOK; i++) ids[i] = (i * 7) % ROWS;
        const op_gather_source source = {&whole, ids};
        const op_gather g = {&source, 1, 1.0f, x};
        assert_ok(e.ops->gather(&e.s, &g), e.err);
        assert_ok(e.ops->read_rows(&e.s, x, 0, TOK, rows), e.err);
        for (int i = 0; i < TOK; i++) assert_memory_equal(rows + i * COLS, w + ids[i] * COLS, COLS * sizeof(float));
        memset(bytes + 20 * row_bytes + row_bytes / 2, 0xff, row_bytes / 2); /* row 20, its second half */
        weight_init(&whole, &t, "m.gguf", 0, ROWS, COLS);
        assert_int_equal(e.ops->linear(&e.s, x, parts, 2), LATH_ERR_FORMAT);
        assert_string_equal(e.err.msg, "m.gguf: tensor \"blk.0.up\": element [20,256] is not finite");
        env_close(&e);
    }
}

/* Embedding tables: rows that are not used may hold anything. */
static void test_finite_rows(void **state)
{
    env e;
    kern_table kern;
    (void)state;
    kern_table_init(&kern, KERN_ISA_AMX);
    for (int32_t threads = 1; threads <= 2; threads++) {
        for (size_t type = 0; type < sizeof(float_types) / sizeof(float_types[0]); type++) {
            for (size_t bad = 0; bad < sizeof(bad_bits) / sizeof(bad_bits[0]); bad++) {
                env_open(&e, backend_cpu(), &kern, threads);
                weight *word = make_weight(&e, "word", DTYPE_F32, 40, 7, rnd_floats(&e, 40 * 7, 1)),
                       *pos = make_weight(&e, "position", float_types[type], 9, 7, rnd_floats(&e, 9 * 7, 1));
                int32_t *ids = rising(&e, 35), *at = rising(&e, 35);
                for (int i = 0; i < 35; i++) at[i] %= 8; /* never row 8 */
                const op_gather_source sources[] = {{word, ids}, {pos, at}};
                const op_gather g = {sources, 2, 1.0f, make_view(&e, 35, 7)};
                set_element((tensor *)pos->t, 8 * 7 + 2, bad_bits[bad]);
                assert_ok(e.ops->gather(&e.s, &g), e.err);
                set_element((tensor *)pos->t, 5 * 7 + 6, bad_bits[bad]);
                assert_int_equal(e.ops->gather(&e.s, &g), LATH_ERR_FORMAT);
                assert_string_equal(e.err.msg, "w.safetensors: tensor \"position\": element [5,6] is not finite");
                set_element((tensor *)word->t, 34 * 7, bad_bits[bad]); /* of the last token only, in the first table */
                assert_int_equal(e.ops->gather(&e.s, &g), LATH_ERR_FORMAT);
                assert_string_equal(e.err.msg, "w.safetensors: tensor \"word\": element [34,0] is not finite");
                env_close(&e);
            }
        }
    }
    env_open(&e, backend_cpu(), &kern, 1); /* finite rows whose sum is not */
    weight *a = make_weight(&e, "a", DTYPE_F32, 1, 3, rnd_floats(&e, 3, 1));
    set_element((tensor *)a->t, 1, 0x7F7FFFFF);
    const op_gather_source twice[] = {{a, rising(&e, 1)}, {a, rising(&e, 1)}};
    const op_gather g = {twice, 2, 1.0f, make_view(&e, 1, 3)};
    assert_int_equal(e.ops->gather(&e.s, &g), LATH_ERR_FORMAT);
    assert_non_null(strstr(e.err.msg, "overflow"));
    env_close(&e);
}

static void test_vec(void **state)
{
    env e;
    kern_table kern;
    vec v;
    (void)state;
    kern_table_init(&kern, KERN_ISA_REF);
    env_open(&e, backend_cpu(), &kern, 1);
    for (size_t type = 0; type < sizeof(float_types) / sizeof(float_types[0]); type++) {
        float *values = rnd_floats(&e, 21, 1);
        tensor *t = make_tensor(&e, "bias", float_types[type], 1, 21, values); /* at an odd address: a copy */
        assert_ok(vec_init(&v, &e.mem, t, "w.safetensors", 0, t->count, &e.err), e.err);
        assert_int_equal(v.n, 21);
        assert_int_equal((uintptr_t)v.data % sizeof(float), 0);
        assert_memory_equal(v.data, values, sizeof(float) * 21);
        set_element(t, 20, 0x7F800000);
        assert_int_equal(vec_init(&v, &e.mem, t, "w.safetensors", 0, t->count, &e.err), LATH_ERR_FORMAT);
        assert_string_equal(e.err.msg, "w.safetensors: tensor \"bias\": element 20 is not finite");
    }
    float *plain = rnd_floats(&e, 4, 1);
    const tensor aligned = {
        .name = "g", .type = DTYPE_F32, .rank = 1, .dim = {4}, .count = 4, .data = plain, .bytes = 16};
    assert_ok(vec_init(&v, &e.mem, &aligned, "w", 0, aligned.count, &e.err), e.err);
    assert_ptr_equal(v.data, plain);              /* the map itself */
    unsigned char block[34] = {0, 0x3c, 1, 2, 3}; /* scale 1 */
    const tensor blocks = {.name = "b", .type = DTYPE_Q8_0, .rank = 1, .dim = {32}, .count = 32, .data = block};
    assert_ok(vec_init(&v, &e.mem, &blocks, "w", 0, 32, &e.err), e.err);
    assert_true(v.data[0] == 1.0f && v.data[2] == 3.0f && v.data[3] == 0.0f);
    assert_int_equal(vec_init(&v, &e.mem, &blocks, "w", 16, 16, &e.err), LATH_ERR_UNSUPPORTED);
    assert_string_equal(e.err.msg, "w: tensor \"b\": a vector that begins or ends inside a Q8_0 block");
    env_close(&e);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_is_full), cmocka_unit_test(test_cases),  cmocka_unit_test(test_finite_matrix),
        cmocka_unit_test(test_finite_rows),   cmocka_unit_test(test_blocks), cmocka_unit_test(test_vec),
    };
    return TEST_RUN(tests);
}
