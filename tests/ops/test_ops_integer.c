/* SPDX-License-Identifier: Apache-2.0
 * test_ops_integer.c: linear where the stream allows 8-bit activations: parts of several block types and of floats over one x, on both backends, every
 * instruction set, 1 to 3 threads. The expected value is a sum in double of the weights as they decode times the activations as the
 * reference quantises them: whole texts and single tokens agree but for rounding. */
#include "backend/backend.h"
#include "kern/kern_oracle.h"

enum { K = 512, ROWS = 37, PARTS = 4, MOST_TOKENS = 40 };

typedef struct bed {
    stream s;
    lath_error err;
    float *memory[PARTS + 1];
    view x, y[PARTS];
} bed;

static view bed_view(bed *b, int i, int64_t n_tok, int64_t d)
{
    const size_t n = b->s.ops->view_floats(n_tok, d);
    b->memory[i] = oracle_floats((int64_t)n);
    memset(b->memory[i], 0, n * sizeof(float));
    return b->s.ops->make_view(b->memory[i], n_tok, d);
}

/* rows [n_tok][K] into x. */
static void bed_put(bed *b, int64_t n_tok, const float *rows)
{
    int32_t index[MOST_TOKENS + 16];
    for (int32_t i = 0; i < MOST_TOKENS + 16; i++) index[i] = i < n_tok ? i : 0;
    tensor t = {.name = "rows",
                .type = DTYPE_F32,
                .rank = 2,
                .dim = {n_tok, K},
                .count = n_tok * K,
                .data = rows,
                .bytes = (size_t)(n_tok * K) * 4};
    weight w;
    memset(&w, 0, sizeof(w));
    weight_init(&w, &t, "rows", 0, n_tok, K);
    const op_gather_source source = {&w, index};
    assert_ok(b->s.ops->gather(&b->s, &(op_gather){&source, 1, 1.0f, b->x}), b->err);
}

/* The activations of a row as a type has them. */
static void as_used(dtype type, const float *x, double *to)
{
    kern_table ref;
    kern_table_init(&ref, KERN_ISA_REF);
    unsigned char *xq = aligned_alloc(64, kern_xq_bytes(type, K) + 64);
    assert_non_null(xq);
    const bool integers = dtype_is_block(type);
    if (integers) ref.quantize_x(type, K, x, xq);
    for (int64_t i = 0; i < K; i++) {
        float d = 0;
        if (integers) memcpy(&d, xq + K + i / (int64_t)dtype_block_numbers(type) * 4, 4);
        to[i] = integers ? (double)(int8_t)xq[i] * (double)d : (double)x[i];
    }
    free(xq);
}

static void check_part(const bed *b, const tensor *t, const float *x, const float *got, int64_t n_tok)
{
    double *w = malloc(K * sizeof(double)), *used = malloc((size_t)(n_tok * K) * sizeof(double));
    assert_true(w && used);
    for (int64_t m = 0; m < n_tok; m++) as_used(t->type, x + m * K, used + m * K);
    for (int64_t n = 0; n < ROWS; n++) {
        oracle_numbers(t->type, (const unsigned char *)t->data + (size_t)n * dtype_bytes(t->type, K), K, w);
        for (int64_t m = 0; m < n_tok; m++) {
            double sum = 0, size = 0, largest = 0;
            for (int64_t i = 0; i < K; i++) largest = fmax(largest, fabs(w[i]));
            for (int64_t i = 0; i < K; i++) sum += w[i] * used[m * K + i], size += largest * fabs(used[m * K + i]);
            if (!(fabs((double)got[m * ROWS + n] - sum) <= 2e-6 * size))
                fail_msg("%s %s: row %d, token %d: %g, want %g", b->s.kern->isa, dtype_name(t->type), (int)n, (int)m,
                         (double)got[m * ROWS + n], sum);
        }
    }
    free(w), free(used);
}

/* One linear of PARTS parts; results to out [PARTS][n_tok][ROWS]. */
static void run(const backend_ops *ops, const kern_table *kern, int32_t threads, const tensor *tensors, const float *x,
                int64_t n_tok, float *out)
{
    bed b = {.s = {.ops = ops, .kern = kern, .integer = true}};
    weight w[PARTS];
    op_linear parts[PARTS];
    b.s.err = &b.err;
    b.s.limits = (op_limits){.n_tok = n_tok, .n_keys = 16, .head_dim = 16, .d = K};
    assert_ok(pool_create(alloc_default(), threads, &b.s.pool, &b.err), b.err);
    b.s.scratch = oracle_floats((int64_t)ops->scratch_floats(&b.s, &b.s.limits));
    pool_enter(b.s.pool);
    b.x = bed_view(&b, PARTS, n_tok, K);
    bed_put(&b, n_tok, x);
    memset(w, 0, sizeof(w)), memset(parts, 0, sizeof(parts));
    for (int i = 0; i < PARTS; i++) {
        weight_init(&w[i], &tensors[i], "w.gguf", 0, ROWS, K);
        parts[i].w = &w[i];
        parts[i].y = b.y[i] = bed_view(&b, i, n_tok, ROWS);
    }
    assert_ok(ops->linear(&b.s, b.x, parts, PARTS), b.err);
    for (int i = 0; i < PARTS; i++) {
        assert_ok(ops->read_rows(&b.s, b.y[i], 0, n_tok, out + i * n_tok * ROWS), b.err);
        check_part(&b, &tensors[i], x, out + i * n_tok * ROWS, n_tok);
    }
    pool_leave(b.s.pool), pool_destroy(b.s.pool);
    free(b.s.scratch);
    for (int i = 0; i <= PARTS; i++) free(b.memory[i]);
}

static int n_runs;

/* The parts: a block type, one of its kind or not, floats, and the first again. */
static void run_type(const kern_table *kern, dtype type, int64_t n_tok)
{
    oracle_rng r = {(uint64_t)type * 100 + (uint64_t)n_tok};
    const dtype types[PARTS] = {type, type % 2 ? DTYPE_Q6_K : DTYPE_Q5_1, DTYPE_F16, type};
    tensor t[PARTS];
    unsigned char *base[PARTS];
    float *x = oracle_floats(n_tok * K), *rows = oracle_floats(PARTS * n_tok * ROWS), *out[3];
    for (int64_t i = 0; i < n_tok * K; i++) x[i] = rng_float(&r, 2.0f);
    for (int i = 0; i < PARTS; i++)
        t[i] = (tensor){.name = "w",
                        .type = types[i],
                        .rank = 2,
                        .dim = {ROWS, K},
                        .count = ROWS * K,
                        .data = oracle_elements(&r, types[i], ROWS * K, 1.0f, 1, &base[i]),
                        .bytes = dtype_bytes(types[i], ROWS * K)};
    for (int threads = 1; threads <= 3; threads++) {
        out[threads - 1] = oracle_floats(PARTS * n_tok * ROWS);
        run(backend_cpu(), kern, threads, t, x, n_tok, out[threads - 1]);
        assert_memory_equal(out[0], out[threads - 1], (size_t)(PARTS * n_tok * ROWS) * sizeof(float));
        if (n_tok <= BACKEND_ROWS_MOST) run(backend_cpu_rows(), kern, threads, t, x, n_tok, rows);
        n_runs++;
    }
    for (int i = 0; i < PARTS; i++) free(base[i]);
    free(x), free(rows), free(out[0]), free(out[1]), free(out[2]);
}

static void test_linear_in_8_bits(void **state)
{
    (void)state;
    kern_table tables[ORACLE_TABLES];
    const int n = oracle_tables(tables);
    for (int i = 0; i < n; i++)
        for (int type = 0; type < DTYPE_COUNT; type++)
            for (int64_t n_tok = 3; dtype_is_block((dtype)type) && n_tok <= MOST_TOKENS; n_tok += 34)
                run_type(&tables[i], (dtype)type, n_tok);
    assert_true(n_runs >= 14 * 2 * 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_linear_in_8_bits)};
    return TEST_RUN(tests);
}
