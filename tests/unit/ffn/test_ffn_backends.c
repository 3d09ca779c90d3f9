/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ffn_backends.c: the suite that every FFN goes through. A bed is a layer with random matrices (types of floats and blocks, with and without gate and biases); a
 * backend is a row of the table below. Each is run on both op tables, with 1 to 40 tokens, on 1, 2 and 3 threads (the same bits), and compared with the
 * definition in double over the decoded weights; what it says of itself is looked at, and so is every failing allocation. Some must have the bits of the dense one.
 */
#include <math.h>

#include "ffn/ffn_backends.h"
#include "kern/kern_xq.h"
#include "support/test.h"
#include "support/walk_rows.h"

enum { D = 256, FEATURES = 512, SOME = 37, MOST_TOKENS = 40, N_LAYERS = 2, ALL = 0 };

/* ----------------------------------------------------------------------------------------------------------------- beds */

typedef struct bed {
    const char *name;
    dtype type;
    kern_fn fn;
    bool gated, biased, integer;
    double tolerance; /* of the largest result */
} bed;

static const bed beds[] = {
    {"f32 silu", DTYPE_F32, KERN_FN_SILU, true, false, false, 1e-5},
    {"f16 gelu, biases", DTYPE_F16, KERN_FN_GELU_TANH, true, true, false, 1e-5},
    {"bf16, no gate, biases", DTYPE_BF16, KERN_FN_GELU, false, true, false, 1e-5},
    {"f32 relu, no gate", DTYPE_F32, KERN_FN_RELU, false, false, false, 1e-5},
    {"q8_0", DTYPE_Q8_0, KERN_FN_SILU, true, false, false, 1e-5},
    {"q4_k", DTYPE_Q4_K, KERN_FN_SILU, true, false, false, 1e-5},
    {"q6_k, 8-bit activations", DTYPE_Q6_K, KERN_FN_SILU, true, false, true, 4e-2},
    {"q8_0, 8-bit activations", DTYPE_Q8_0, KERN_FN_GELU_TANH, true, false, true, 4e-2},
};
enum { N_BEDS = sizeof(beds) / sizeof(beds[0]) };

/* The layers of a bed: the second one is the first with other numbers. */
typedef struct made {
    const bed *b;
    arena mem;
    uint64_t random;
    ffn_dense dense;
    ffn_dense_layer layers[N_LAYERS];
    float *gate[N_LAYERS], *up[N_LAYERS], *down[N_LAYERS]; /* as they decode */
    float x[MOST_TOKENS * D];
} made;

static float rnd(made *m)
{
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(m->random >> 32) * 0x1p-31f;
}

/* Random numbers of the type, about `scale` large. */
static float *make_matrix(made *m, weight *w, int64_t rows, int64_t cols, float scale)
{
    const dtype type = m->b->type;
    const int64_t n = rows * cols;
    const size_t bytes = dtype_bytes(type, n), size = dtype_block_bytes(type);
    unsigned char *p = arena_bytes(&m->mem, bytes, 64);
    tensor *t = arena_zero(&m->mem, sizeof(*t));
    float *values = arena_array(&m->mem, (size_t)n, sizeof(float));
    assert_true(p && t && values);
    for (int64_t i = 0; i < n && !dtype_is_block(type); i++) {
        const float v = scale * rnd(m);
        uint32_t u;
        memcpy(&u, &v, 4);
        const uint16_t half = type == DTYPE_F16 ? half_from_f32(v) : (uint16_t)(u >> 16);
        if (type == DTYPE_F32)
            memcpy(p + 4 * i, &v, 4);
        else
            memcpy(p + 2 * i, &half, 2);
    }
    for (size_t i = 0; dtype_is_block(type) && i < bytes; i += size) {
        /* Codes are any; scales are where ggml has them. */
        const uint16_t d = half_from_f32(scale / (type == DTYPE_Q8_0   ? 128.0f
                                                  : type == DTYPE_Q4_K ? 900.0f
                                                                       : 4096.0f)),
                       dmin = half_from_f32(scale / 120.0f);
        for (size_t k = 0; k < size; k++) p[i + k] = (unsigned char)(int)(rnd(m) * 128);
        memcpy(p + i + (type == DTYPE_Q6_K ? 208 : 0), &d, 2);
        if (type == DTYPE_Q4_K) memcpy(p + i + 2, &dmin, 2);
    }
    *t =
        (tensor){.name = "matrix", .type = type, .rank = 2, .dim = {rows, cols}, .count = n, .data = p, .bytes = bytes};
    weight_init(w, t, "bed", 0, rows, cols);
    dtype_to_f32(type, p, (size_t)n, values);
    return values;
}

static void make_bias(made *m, vec *v, int64_t n)
{
    float *p = arena_array(&m->mem, (size_t)n, sizeof(float));
    assert_non_null(p);
    for (int64_t i = 0; i < n; i++) p[i] = rnd(m) / 4;
    if (m->b->biased) *v = (vec){p, n};
}

static void make_bed(made *m, const bed *b)
{
    memset(m, 0, sizeof(*m));
    m->b = b;
    m->random = 7;
    arena_init(&m->mem, alloc_default());
    for (int i = 0; i < N_LAYERS; i++) {
        ffn_dense_layer *l = &m->layers[i];
        if (b->gated) m->gate[i] = make_matrix(m, &l->gate.w, FEATURES, D, 0.25f);
        if (b->gated) make_bias(m, &l->gate.bias, FEATURES);
        m->up[i] = make_matrix(m, &l->up.w, FEATURES, D, 0.25f);
        make_bias(m, &l->up.bias, FEATURES);
        m->down[i] = make_matrix(m, &l->down.w, D, FEATURES, 0.25f);
        make_bias(m, &l->down.bias, D);
    }
    for (size_t i = 0; i < MOST_TOKENS * D; i++) m->x[i] = rnd(m);
    ffn_dense_init(&m->dense, b->fn, FEATURES, b->gated, m->layers, sizeof(m->layers[0]));
}

/* ------------------------------------------------------------------------------------------------------- the definition */

static double function(kern_fn fn, double x)
{
    switch (fn) {
    case KERN_FN_RELU: return x > 0 ? x : 0;
    case KERN_FN_GELU: return 0.5 * x * (1 + erf(x / sqrt(2)));
    case KERN_FN_GELU_TANH: return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    case KERN_FN_SILU: return x / (1 + exp(-x));
    default: return x;
    }
}

static double row_dot(const float *row, const float *x, vec bias, int64_t i)
{
    double sum = bias.data ? (double)bias.data[i] : 0;
    for (int64_t k = 0; k < D; k++) sum += (double)row[i * D + k] * (double)x[k];
    return sum;
}

/* Whether feature i is among the k largest magnitudes of score. */
static bool is_chosen(const double *score, int64_t i, int64_t k)
{
    int64_t before = 0;
    for (int64_t j = 0; j < FEATURES; j++)
        before += fabs(score[j]) > fabs(score[i]) || (fabs(score[j]) == fabs(score[i]) && j < i);
    return before < k;
}

/* x as products with 8-bit activations have it. */
static void as_used(const made *m, const float *x, float *to)
{
    kern_table ref;
    _Alignas(64) unsigned char xq[4096];
    const dtype type = m->b->type;
    memcpy(to, x, D * sizeof(float));
    if (!m->b->integer) return;
    kern_table_init(&ref, KERN_ISA_REF);
    assert_true(kern_xq_bytes(type, D) <= sizeof(xq));
    ref.quantize_x(type, D, x, xq);
    const float *d = (const float *)(const void *)(xq + kern_xq_d(D));
    for (int i = 0; i < D; i++) to[i] = (float)(int8_t)xq[i] * d[i / (kern_xq_kind_of(type) == KERN_XQ_32 ? 32 : 256)];
}

/* k features of the largest activation, or of the largest score where the walk chooses; ALL: all. */
static void define(const made *m, int layer, const float *row, int64_t k, bool by_score, double *out)
{
    _Alignas(64) float x[D];
    as_used(m, row, x);
    const ffn_dense_layer *l = &m->layers[layer];
    double score[FEATURES], act[FEATURES];
    for (int64_t i = 0; i < FEATURES; i++) {
        const double up = row_dot(m->up[layer], x, l->up.bias, i);
        score[i] = m->b->gated ? row_dot(m->gate[layer], x, l->gate.bias, i) : up;
        act[i] = function(m->b->fn, score[i]) * (m->b->gated ? up : 1);
    }
    for (int64_t r = 0; r < D; r++) out[r] = l->down.bias.data ? (double)l->down.bias.data[r] : 0;
    for (int64_t i = 0; i < FEATURES; i++) {
        if (k != ALL && !is_chosen(by_score ? score : act, i, k)) continue;
        for (int64_t r = 0; r < D; r++) out[r] += act[i] * (double)m->down[layer][r * FEATURES + i];
    }
}

/* -------------------------------------------------------------------------------------------------------------- backends */

typedef struct backend {
    const char *name;
    lath_status (*make)(made *m, const lath_allocator *alloc, ffn **out, lath_error *err);
    int64_t k;          /* features that go in; -1: nothing is added; -2: see twice() */
    bool by_score;      /* chosen by the gate's score */
    bool same_as_dense; /* bit for bit */
    const char *path, *says;
} backend;

static lath_status make_dense(made *m, const lath_allocator *alloc, ffn **out, lath_error *err)
{
    (void)alloc, (void)err;
    *out = &m->dense.base;
    return LATH_OK;
}
static lath_status make_sparse(made *m, const lath_allocator *alloc, ffn **out, lath_error *err)
{
    return ffn_sparse_open(&m->dense.base, SOME, 0, N_LAYERS - 1, alloc, out, err);
}
static lath_status make_sparse_all(made *m, const lath_allocator *alloc, ffn **out, lath_error *err)
{
    return ffn_sparse_open(&m->dense.base, FEATURES, 0, N_LAYERS - 1, alloc, out, err);
}
static lath_status make_walk(made *m, int64_t k, bool own, bool out_matrix, const lath_allocator *alloc, ffn **out,
                             lath_error *err)
{
    const ffn_walk_source s = test_walk_source(&m->dense.base, N_LAYERS, D, m->b->fn, out_matrix);
    return ffn_walk_open(&s, k, 0, N_LAYERS - 1, own ? &m->dense.base : NULL, alloc, out, err);
}
static lath_status make_walk_rows(made *m, const lath_allocator *alloc, ffn **out, lath_error *err)
{
    return make_walk(m, ALL, false, false, alloc, out, err);
}
static lath_status make_walk_own(made *m, const lath_allocator *alloc, ffn **out, lath_error *err)
{
    return make_walk(m, ALL, true, false, alloc, out, err);
}
static lath_status make_walk_out(made *m, const lath_allocator *alloc, ffn **out, lath_error *err)
{
    return make_walk(m, ALL, false, true, alloc, out, err);
}
static lath_status make_walk_some(made *m, const lath_allocator *alloc, ffn **out, lath_error *err)
{
    return make_walk(m, SOME, true, false, alloc, out, err);
}
static lath_status make_walk_each(made *m, const lath_allocator *alloc, ffn **out, lath_error *err)
{
    return make_walk(m, FEATURES, true, false, alloc, out, err);
}
static lath_status make_cached(made *m, const lath_allocator *alloc, ffn **out, lath_error *err)
{
    return ffn_cached_open(&m->dense.base, D, 1 << 20, alloc, out, err);
}
static lath_status make_cached_small(made *m, const lath_allocator *alloc, ffn **out, lath_error *err)
{
    return ffn_cached_open(&m->dense.base, D, 3 * 2 * D * sizeof(float) + 400, alloc, out, err);
}
static lath_status make_cached_walk(made *m, const lath_allocator *alloc, ffn **out, lath_error *err)
{
    ffn *walk;
    TRY(make_walk_some(m, alloc, &walk, err));
    return ffn_cached_open(walk, D, 1 << 20, alloc, out, err);
}
static lath_status make_highway(made *m, const lath_allocator *alloc, ffn **out, lath_error *err)
{
    (void)m;
    return ffn_highway_open(false, alloc, out, err);
}
static lath_status make_attention_only(made *m, const lath_allocator *alloc, ffn **out, lath_error *err)
{
    (void)m;
    return ffn_highway_open(true, alloc, out, err);
}
static int twice(void *ctx, int32_t layer, size_t n, size_t d, const float *rows, float *out)
{
    (void)ctx;
    for (size_t i = 0; i < n * d; i++) out[i] = 2 * rows[i] + (float)layer;
    return 0;
}
static lath_status make_custom(made *m, const lath_allocator *alloc, ffn **out, lath_error *err)
{
    (void)m;
    return ffn_custom_open(twice, NULL, D, alloc, out, err);
}
static lath_status make_router(made *m, const lath_allocator *alloc, ffn **out, lath_error *err)
{
    ffn *by_layer[N_LAYERS] = {&m->dense.base, NULL};
    TRY(make_cached(m, alloc, &by_layer[1], err));
    return ffn_router_open(by_layer, N_LAYERS, alloc, out, err);
}

static const backend backends[] = {
    {"dense", make_dense, ALL, false, true, "dense", "dense"},
    {"sparse:37", make_sparse, SOME, false, false, "sparse", "sparse, k=37"},
    {"sparse:512", make_sparse_all, ALL, false, true, "sparse:dense", "sparse, k=512"},
    {"walk, rows", make_walk_rows, ALL, true, false, "walk:all", "walk of rows, all features"},
    {"walk, own down", make_walk_own, ALL, true, true, "walk:all", "walk of rows, all features"},
    {"walk, out", make_walk_out, ALL, true, true, "walk:all", "walk of rows, all features"},
    {"walk,k=37", make_walk_some, SOME, true, false, "walk:top", "walk of rows, k=37 of 512 features"},
    {"walk,k=512", make_walk_each, ALL, true, false, "walk:top", "walk of rows, k=512 of 512 features"},
    {"cached", make_cached, ALL, false, true, NULL, "cached dense"},
    {"cached, three rows", make_cached_small, ALL, false, true, NULL, "cached dense"},
    {"cached:walk", make_cached_walk, SOME, true, false, NULL, "cached walk of rows, k=37 of 512 features"},
    {"highway", make_highway, -1, false, false, "highway", "highway"},
    {"attention-only", make_attention_only, -1, false, false, "attention-only", "attention-only"},
    {"custom", make_custom, -2, false, false, "custom", "custom"},
    {"router", make_router, ALL, false, true, NULL, NULL},
};
enum { N_BACKENDS = sizeof(backends) / sizeof(backends[0]) };

/* ----------------------------------------------------------------------------------------------------------------- runs */

/* A stream on one op table, and x and out on it. */
typedef struct run {
    stream s;
    fwd f;
    ffn_took took[N_LAYERS];
    lath_error err;
    kern_table kern;
} run;

static void open_run(run *r, const backend_ops *ops, int32_t threads, kern_isa isa, bool integer)
{
    memset(r, 0, sizeof(*r));
    kern_table_init(&r->kern, isa);
    r->s = (stream){.ops = ops, .kern = &r->kern, .err = &r->err, .integer = integer};
    r->s.limits = (op_limits){.n_tok = MOST_TOKENS, .n_keys = 64, .head_dim = 64, .d = 2 * FEATURES};
    assert_ok(pool_create(alloc_default(), threads, &r->s.pool, &r->err), r->err);
    const size_t n = ops->scratch_floats(&r->s, &r->s.limits);
    r->s.scratch = aligned_alloc(64, (n + 16) / 16 * 64);
    assert_non_null(r->s.scratch);
    r->f = (fwd){.s = &r->s, .took = r->took};
    pool_enter(r->s.pool);
}

static void close_run(run *r)
{
    pool_leave(r->s.pool);
    pool_destroy(r->s.pool);
    free(r->s.scratch);
}

/* Rows first .. first + n of m->x through the layer; out: [n][D]. What is behind the memory that was asked for stays. */
static lath_status forward(run *r, ffn *f, const made *m, int32_t layer, int64_t first, int64_t n, float *out)
{
    const backend_ops *ops = r->s.ops;
    const size_t wide = ops->view_floats(n, D), own = ffn_memory_floats(f, ops, n), all = 2 * wide + own + 16;
    float *memory = aligned_alloc(64, (all + 15) / 16 * 64);
    assert_non_null(memory);
    memset(memory, 0, all * sizeof(float));
    for (int i = 0; i < 16; i++) memory[2 * wide + own + (size_t)i] = 77;
    const view x = ops->make_view(memory, n, D), y = ops->make_view(memory + wide, n, D);
    assert_int_equal(ops->write_rows(&r->s, x, 0, n, m->x + first * D), LATH_OK);
    const lath_status st = ffn_forward(f, &r->f, layer, x, memory + 2 * wide, y);
    if (st == LATH_OK) assert_int_equal(ops->read_rows(&r->s, y, 0, n, out), LATH_OK);
    for (int i = 0; i < 16; i++) assert_true(memory[2 * wide + own + (size_t)i] == 77);
    free(memory);
    return st;
}

static void compare(const made *m, const backend *b, int layer, int64_t first, int64_t n, const float *have)
{
    double want[D];
    for (int64_t t = 0; t<n; t += n> BACKEND_ROWS_MOST ? 11 : 1) {
        const float *x = m->x + (first + t) * D;
        double most = 0, worst = 0;
        if (b->k >= 0)
            define(m, layer, x, b->k, b->by_score, want);
        else
            for (int64_t i = 0; i < D; i++) want[i] = b->k == -1 ? 0 : 2 * (double)x[i] + layer;
        for (int64_t i = 0; i < D; i++) {
            most = fmax(most, fabs(want[i]));
            worst = fmax(worst, fabs(want[i] - (double)have[t * D + i]));
        }
        if (!(worst <= m->b->tolerance * most))
            fail_msg("%s, %s, layer %d, token %d: off by %g of %g", m->b->name, b->name, layer, (int)(first + t), worst,
                     most);
    }
}

static void check_took(const run *r, const backend *b, int64_t n)
{
    for (int i = 0; i < N_LAYERS; i++) {
        const ffn_took *t = &r->took[i];
        if (b->path) assert_string_equal(t->path, b->path);
        if (b->path && b->k >= 0) assert_int_equal(t->features, n * (b->k == ALL ? FEATURES : b->k));
        assert_int_equal(t->tokens, n);
        assert_true(t->calls == 1);
    }
}

/* One number of tokens on one table; the dense FFN's results are `dense`. */
static void check_tokens(made *m, const backend *b, const backend_ops *ops, kern_isa isa, int64_t n, const float *dense)
{
    float *have = malloc(3 * N_LAYERS * MOST_TOKENS * D * sizeof(float));
    assert_non_null(have);
    for (int32_t threads = 1; threads <= 3; threads++) {
        if (threads > 1 && n < BACKEND_ROWS_MOST) continue;
        run r;
        ffn *f;
        float *out = have + (threads - 1) * N_LAYERS * MOST_TOKENS * D;
        open_run(&r, ops, threads, isa, m->b->integer);
        assert_ok(b->make(m, alloc_default(), &f, &r.err), r.err);
        for (int layer = 0; layer < N_LAYERS; layer++)
            assert_ok(forward(&r, f, m, layer, 0, n, out + layer * n * D), r.err);
        check_took(&r, b, n);
        for (int layer = 0; layer < N_LAYERS && threads == 1; layer++) compare(m, b, layer, 0, n, out + layer * n * D);
        if (memcmp(have, out, (size_t)(N_LAYERS * n * D) * sizeof(float)) != 0)
            fail_msg("%s, %s: other bits with %d threads", m->b->name, b->name, threads);
        if (b->same_as_dense && dense && memcmp(dense, out, (size_t)(N_LAYERS * n * D) * sizeof(float)) != 0)
            fail_msg("%s, %s: other bits than dense", m->b->name, b->name);
        /* Alone each token is what it is in the batch. */
        for (int64_t t = 0; t < n && threads == 2; t += 7) {
            float one[D];
            assert_ok(forward(&r, f, m, 1, t, 1, one), r.err);
            assert_memory_equal(one, out + (n + t) * D, sizeof(one));
        }
        ffn_close(f);
        close_run(&r);
    }
    free(have);
}

static void check_bed(const bed *b, const backend_ops *ops, kern_isa isa)
{
    static const int64_t tokens[] = {1, 3, BACKEND_ROWS_MOST, MOST_TOKENS};
    static made m;
    make_bed(&m, b);
    float *dense = malloc(N_LAYERS * MOST_TOKENS * D * sizeof(float));
    assert_non_null(dense);
    for (size_t i = 0; i < 4; i++) {
        const int64_t n = tokens[i];
        if (ops == backend_cpu_rows() && n > BACKEND_ROWS_MOST) continue;
        run r;
        open_run(&r, ops, 1, isa, b->integer);
        for (int layer = 0; layer < N_LAYERS; layer++)
            assert_ok(forward(&r, &m.dense.base, &m, layer, 0, n, dense + layer * n * D), r.err);
        close_run(&r);
        for (int k = 0; k < N_BACKENDS; k++) check_tokens(&m, &backends[k], ops, isa, n, dense);
    }
    free(dense);
    arena_deinit(&m.mem);
}

static void check_table(const backend_ops *ops)
{
    int n = 0;
    for (int isa = 0; isa < KERN_ISA_COUNT; isa++) {
        if (!kern_isa_available((kern_isa)isa)) continue;
        for (int b = 0; b < N_BEDS; b++) {
            if (isa == KERN_ISA_REF && (b % 3 != 0 || beds[b].integer)) continue; /* slow; its panels take floats */
            check_bed(&beds[b], ops, (kern_isa)isa);
            n++;
        }
    }
    assert_true(n >= 3);
}

static void test_panels(void **state)
{
    (void)state;
    check_table(backend_cpu());
}
static void test_rows(void **state)
{
    (void)state;
    check_table(backend_cpu_rows());
}

/* --------------------------------------------------------------------------------------------------- what they say, memory */

static void test_describe(void **state)
{
    static made m;
    (void)state;
    make_bed(&m, &beds[0]);
    for (int k = 0; k < N_BACKENDS; k++) {
        lath_error err;
        ffn *f;
        buf text;
        if (!backends[k].says) continue;
        buf_init(&text, alloc_default(), 1 << 12);
        assert_ok(backends[k].make(&m, alloc_default(), &f, &err), err);
        ffn_describe(f, 1, &text);
        assert_string_equal(buf_cstr(&text), backends[k].says);
        buf_deinit(&text);
        ffn_close(f);
    }
    arena_deinit(&m.mem);
}

/* Fails the allocation that `left` counts down to. */
typedef struct starved {
    int left, held;
} starved;
static void *starved_alloc(void *ctx, size_t size, size_t align)
{
    starved *s = ctx;
    if (s->left-- == 0) return NULL;
    s->held++;
    return alloc_default()->alloc(alloc_default()->ctx, size, align);
}
static void *starved_resize(void *ctx, void *p, size_t old_size, size_t size, size_t align)
{
    starved *s = ctx;
    if (s->left-- == 0) return NULL;
    return alloc_default()->resize(alloc_default()->ctx, p, old_size, size, align);
}
static void starved_release(void *ctx, void *p, size_t size)
{
    ((starved *)ctx)->held--;
    alloc_default()->release(alloc_default()->ctx, p, size);
}

static void test_no_memory(void **state)
{
    static made m;
    (void)state;
    make_bed(&m, &beds[0]);
    for (int k = 0; k < N_BACKENDS; k++) {
        for (int fail = 0;; fail++) {
            starved s = {fail, 0};
            const lath_allocator alloc = {
                .alloc = starved_alloc, .resize = starved_resize, .release = starved_release, .ctx = &s};
            lath_error err;
            ffn *f = NULL;
            const lath_status st = backends[k].make(&m, &alloc, &f, &err);
            if (st == LATH_OK) ffn_close(f);
            /* A part that a composed one had made before it failed is the maker's here. */
            if (st != LATH_OK) assert_int_equal(st, LATH_ERR_NOMEM);
            assert_int_equal(s.held, 0);
            if (st == LATH_OK) break;
            assert_true(fail < 10);
        }
    }
    arena_deinit(&m.mem);
}

/* --------------------------------------------------------------------------------------------------------------- of each */

/* Hits, misses, and the least recently used row goes first. */
static void test_cache(void **state)
{
    static made m;
    float out[8 * D], again[8 * D];
    run r;
    ffn *f;
    ffn_cached_stats stats;
    (void)state;
    make_bed(&m, &beds[0]);
    open_run(&r, backend_cpu(), 2, KERN_ISA_AMX, false);
    assert_ok(make_cached_small(&m, alloc_default(), &f, &r.err), r.err);
    assert_ok(forward(&r, f, &m, 0, 0, 3, out), r.err); /* 0 1 2 */
    assert_string_equal(r.took[0].path, "cached:miss");
    assert_true(ffn_cached_get_stats(f, &stats));
    assert_true(stats.hits == 0 && stats.misses == 3 && stats.rows == 3 && stats.most == 3);
    assert_ok(forward(&r, f, &m, 0, 0, 1, again), r.err); /* 1 2 0 */
    assert_string_equal(r.took[0].path, "cached:hit");
    assert_memory_equal(again, out, D * sizeof(float));
    assert_ok(forward(&r, f, &m, 0, 3, 1, out + 3 * D), r.err); /* 2 0 3 */
    assert_ok(forward(&r, f, &m, 0, 0, 4, again), r.err);       /* 0 2 3 hit, 1 misses */
    assert_memory_equal(again, out, 4 * D * sizeof(float));
    ffn_cached_get_stats(f, &stats);
    assert_true(stats.hits == 4 && stats.misses == 5);
    assert_ok(forward(&r, f, &m, 1, 1, 1, again), r.err); /* another layer's */
    ffn_cached_get_stats(f, &stats);
    assert_true(stats.misses == 6 && stats.rows == 3);
    assert_false(ffn_cached_get_stats(&m.dense.base, &stats));
    ffn_close(f);
    assert_int_equal(ffn_cached_open(&m.dense.base, D, 100, alloc_default(), &f, &r.err), LATH_ERR_LIMIT);
    close_run(&r);
    arena_deinit(&m.mem);
}

/* Rows of both tables differ by rounding: neither takes the other's. */
static void test_cache_tables(void **state)
{
    static made m;
    float panels[D], rows[D], again[D];
    run p, q;
    ffn *f;
    (void)state;
    make_bed(&m, &beds[0]);
    open_run(&p, backend_cpu(), 1, KERN_ISA_AMX, false);
    open_run(&q, backend_cpu_rows(), 1, KERN_ISA_AMX, false);
    assert_ok(make_cached(&m, alloc_default(), &f, &p.err), p.err);
    assert_ok(forward(&p, f, &m, 0, 0, 1, panels), p.err);
    assert_ok(forward(&q, f, &m, 0, 0, 1, again), q.err);
    assert_ok(forward(&q, &m.dense.base, &m, 0, 0, 1, rows), q.err);
    assert_memory_equal(again, rows, sizeof(rows));
    ffn_close(f);
    close_run(&p);
    close_run(&q);
    arena_deinit(&m.mem);
}

static void test_choose(void **state)
{
    const float s[] = {1, -3, 2, 3, 0, -2, 3, -0.0f};
    static const int32_t want[8][8] = {{1},
                                       {1, 3},
                                       {1, 3, 6},
                                       {1, 2, 3, 6},
                                       {1, 2, 3, 5, 6},
                                       {0, 1, 2, 3, 5, 6},
                                       {0, 1, 2, 3, 4, 5, 6},
                                       {0, 1, 2, 3, 4, 5, 6, 7}};
    int32_t chosen[1000];
    (void)state;
    for (int64_t k = 1; k <= 8; k++) {
        ffn_walk_choose(s, 8, k, chosen);
        assert_memory_equal(chosen, want[k - 1], (size_t)k * sizeof(int32_t));
    }
    /* against the definition, with many that are equal */
    uint64_t random = 1;
    for (int round = 0; round < 60; round++) {
        float x[200];
        const int64_t n = 1 + round * 3, k = 1 + (round * 7) % n;
        for (int64_t i = 0; i < n; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            x[i] = round % 2 ? (float)(int32_t)(random >> 32) * 0x1p-31f : (float)((int32_t)(random >> 60) - 8);
        }
        ffn_walk_choose(x, n, k, chosen);
        for (int64_t i = 0, at = 0; i < n; i++) {
            int64_t before = 0;
            for (int64_t j = 0; j < n; j++)
                before += fabsf(x[j]) > fabsf(x[i]) || (fabsf(x[j]) == fabsf(x[i]) && j < i);
            if (before < k) assert_int_equal(chosen[at++], i);
        }
    }
}

static int stops(void *ctx, int32_t layer, size_t n, size_t d, const float *rows, float *out)
{
    (void)layer, (void)rows;
    out[n * d - 1] = NAN;
    return *(const int *)ctx;
}

static void test_custom(void **state)
{
    static made m;
    float out[3 * D];
    int answer = 1;
    run r;
    ffn *f;
    (void)state;
    make_bed(&m, &beds[0]);
    open_run(&r, backend_cpu(), 1, KERN_ISA_AMX, false);
    assert_ok(ffn_custom_open(stops, &answer, D, alloc_default(), &f, &r.err), r.err);
    assert_int_equal(forward(&r, f, &m, 1, 0, 3, out), LATH_ERR_INTERRUPTED);
    assert_string_equal(r.err.msg, "the FFN of layer 1 was stopped by its function");
    answer = 0;
    assert_int_equal(forward(&r, f, &m, 1, 0, 3, out), LATH_ERR_INPUT);
    assert_string_equal(r.err.msg, "the FFN function of layer 1: element [2,255] is not finite");
    ffn_close(f);
    close_run(&r);
    arena_deinit(&m.mem);
}

/* What a sink sees of a walk and what it changes there. */
typedef struct look {
    int events;
    bool change;
    int32_t token, first;
} look;
static lath_status see(void *ctx, const fwd *f, trace_event *e)
{
    look *l = ctx;
    assert_int_equal(e->point, TRACE_FFN_ACT);
    assert_int_equal(e->x.n_tok, 1);
    assert_int_equal(e->x.d, SOME);
    assert_int_equal(e->token[0], l->events);
    for (int i = 1; i < SOME; i++) assert_true(e->feature[i] > e->feature[i - 1]);
    if (l->change) TRY(f->s->ops->clear(f->s, e->x));
    e->changed = l->change;
    l->events++;
    return LATH_OK;
}

static void test_walk_points(void **state)
{
    static made m;
    float out[3 * D], plain[3 * D];
    (void)state;
    make_bed(&m, &beds[1]);
    for (int table = 0; table < 2; table++) {
        run r;
        ffn *f;
        look l = {0};
        const trace_sink sink = {see, NULL, &l};
        open_run(&r, table ? backend_cpu_rows() : backend_cpu(), 2, KERN_ISA_AMX, false);
        assert_ok(make_walk_some(&m, alloc_default(), &f, &r.err), r.err);
        assert_ok(forward(&r, f, &m, 0, 0, 3, plain), r.err);
        r.f.trace = &sink;
        assert_ok(forward(&r, f, &m, 0, 0, 3, out), r.err);
        assert_int_equal(l.events, 3);
        assert_memory_equal(out, plain, sizeof(out));
        l = (look){.change = true};
        assert_ok(forward(&r, f, &m, 0, 0, 3, out), r.err);
        for (int i = 0; i < 3 * D; i++) assert_true(out[i] == m.layers[0].down.bias.data[i % D]);
        ffn_close(f);
        close_run(&r);
    }
    arena_deinit(&m.mem);
}

static void test_refused(void **state)
{
    static made m;
    lath_error err;
    ffn *f;
    (void)state;
    make_bed(&m, &beds[0]);
    assert_int_equal(ffn_sparse_open(&m.dense.base, 513, 0, 1, alloc_default(), &f, &err), LATH_ERR_USAGE);
    assert_string_equal(err.msg, "sparse: k of 513: layer 0 has 512 features");
    assert_int_equal(ffn_sparse_open(&m.dense.base, 0, 0, 1, alloc_default(), &f, &err), LATH_ERR_USAGE);
    assert_int_equal(make_walk(&m, 513, true, false, alloc_default(), &f, &err), LATH_ERR_USAGE);
    assert_string_equal(err.msg, "rows: k of 513: layer 0 has 512 features");
    ffn_walk_source s = test_walk_source(&m.dense.base, N_LAYERS, D, KERN_FN_SILU, false);
    s.layers[1].down.t = NULL;
    assert_int_equal(ffn_walk_open(&s, 5, 0, 1, NULL, alloc_default(), &f, &err), LATH_ERR_UNSUPPORTED);
    assert_string_equal(err.msg, "rows: layer 1 has no rows of features to walk over");
    arena_deinit(&m.mem);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_panels),    cmocka_unit_test(test_rows),   cmocka_unit_test(test_describe),
        cmocka_unit_test(test_no_memory), cmocka_unit_test(test_cache),  cmocka_unit_test(test_cache_tables),
        cmocka_unit_test(test_choose),    cmocka_unit_test(test_custom), cmocka_unit_test(test_walk_points),
        cmocka_unit_test(test_refused),
    };
    return TEST_RUN(tests);
}
