/* SPDX-License-Identifier: Apache-2.0
 *
 * kern.h: the kernel table of the CPU.
 *
 * Token lanes. Activations of a packed batch of n_tok tokens and d features lie in panels of 16 tokens:
 *
 *     x[panel][feature][16]      token t is lane t % 16 of panel t / 16; panels are `stride` floats apart,
 *                                64-byte aligned
 *
 * A vector lane is a token. Weights stay row-major [out, in] as they are in the file and are the broadcast operand:
 *
 *     y[p][n][lane] += w[n][k] * x[p][k][lane]
 *
 * so a result is the next product's input, norms and softmax never reduce across lanes, and each lane is computed
 * alone, in one fixed order: k rising, one accumulator. Hence the bits of a token do not depend on its lane, its
 * panel, its neighbours or the number of threads.
 *
 * The last panel may hold fewer than 16 tokens (`last_lanes` 1..16). Lanes behind are not used by anyone; a kernel
 * may compute, skip or overwrite them, but never lets them reach another lane. Buffers of activations are zeroed once
 * when they are made.
 *
 * Weights and bias pointers may have any alignment (a file decides); activations and scratch are 64-byte aligned.
 */
#ifndef LATH_KERN_H
#define LATH_KERN_H

#include <stdbool.h>

#include "base/error.h"
#include "tensor/dtype.h"

enum { KERN_LANES = 16, KERN_ATTENTION_ROW_HEADS = 4 /* most n_q of attention_row */ };

/* Elementwise functions; each <= 2 ulp of the true value (SIGMOID and SILU, which divide by a rounded sum: 2.5), or
 * within 1e-7 (GELU, GELU_TANH: the left tail) or 2^-120 (SILU left of -83). GELU is x * Phi(x) with erf (Hendrycks &
 * Gimpel 2016), GELU_TANH its tanh form. EXP is exactly 0 for -inf and below the smallest subnormal's logarithm, inf
 * above 88.73. NaN stays NaN. */
typedef enum kern_fn {
    KERN_FN_NONE,
    KERN_FN_RELU,
    KERN_FN_GELU,
    KERN_FN_GELU_TANH,
    KERN_FN_SILU,
    KERN_FN_TANH,
    KERN_FN_SIGMOID,
    KERN_FN_EXP,
    KERN_FN_COUNT
} kern_fn;

/* y[p][n][:] = fn(bias[n] + sum_k w[n][k] * x[p][k][:]) for panels p0 <= p < p1 and rows n0 <= n < n1.
 * The sum starts from the bias (0 without) and adds k = 0, 1, 2... in turn. */
typedef struct kern_linear_args {
    const void *w;     /* [rows, k] row-major */
    dtype type;        /* one that dtype_is_weight; of blocks, k is a whole number */
    int64_t w_stride;  /* bytes from row to row */
    const float *bias; /* [rows] or NULL */
    const float *x;    /* panels [k][16] */
    int64_t x_stride;  /* floats from panel to panel */
    float *y;          /* panels; row n at y + p * y_stride + n * 16 */
    int64_t y_stride;
    int64_t k, n0, n1, p0, p1;
    int32_t last_lanes; /* lanes in use of panel p1 - 1 */
    kern_fn fn;
    float *scratch; /* table->linear_scratch floats of this worker */
    /* NULL, or x as quantize_panel makes it for this type of blocks: then x is unused, and products are those of gemv with xq (kern_gemv_args), but for
     * the rounding of their sums. */
    const void *xq;
    int64_t xq_stride; /* bytes from panel to panel, a multiple of 64, at least kern_xq_panel_bytes */
} kern_linear_args;

/* Norms over the d features of each lane, v = x + r:
 *
 *     layer_norm   y = (v - mean(v)) / sqrt(var(v) + eps) * gamma + beta     (Ba et al. 2016), mean and variance in two
 *                                                                            passes
 *     rms_norm     y = v / sqrt(mean(v^2) + eps) * gamma                     (Zhang & Sennrich 2019); beta is unused
 *
 * x, r, y, sum: panels p0..p1. r may be NULL; beta may be NULL (none). y may be x or r. sum (NULL: not wanted) gets v, and
 * may be x or r; x_stride is its stride. With n_groups > 1 the d features are the first of as many groups that lie one
 * behind the other and are normed one by one with the same gamma (the heads of a query). */
typedef struct kern_norm_args {
    const float *x, *r, *gamma, *beta;
    float *y, *sum;
    int64_t x_stride, r_stride, y_stride, d, n_groups, p0, p1;
    int32_t last_lanes;
    float eps;
} kern_norm_args;

/* The same of one token as a plain row: x, r, y, sum are [n_groups * d], of any alignment. y may be x or r, sum x or r. */
typedef struct kern_norm_row_args {
    const float *x, *r, *gamma, *beta;
    float *y, *sum;
    int64_t d, n_groups;
    float eps;
} kern_norm_row_args;

/* Rotary position embedding (Su et al. 2021) in place, of n_heads heads of one panel that lie one behind the other. Pair
 * i < n_pairs of a head is turned by the lane's angle i: (a, b) -> (a cos - b sin, b cos + a sin). A pair is features i
 * and i + n_pairs, or 2 i and 2 i + 1 where interleaved; the features behind 2 n_pairs stay. */
typedef struct kern_rope_args {
    float *x;                   /* [n_heads * head_dim][lanes] */
    const float *cosine, *sine; /* [n_pairs][lanes] */
    int64_t n_heads, head_dim, n_pairs;
    int32_t lanes; /* 16: a panel; 1: the plain row of one token */
    bool interleaved;
} kern_rope_args;

/* One head of one panel of queries against the keys of a packed batch, softmax(q k^T * scale) v (Vaswani et al.
 * 2017). Lane i sees the keys begin[i] <= j < end[i] (token indices of the batch) and no others: a masked key is
 * skipped or weighs exactly 0. A lane with an empty range gives 0. Keys are taken in rising order; weights add up in f64. */
typedef struct kern_attention_args {
    const float *q;     /* [head_dim][16] */
    const float *k, *v; /* of panel 0: [head_dim][16]; panel p is p * kv_stride floats on */
    int64_t kv_stride, head_dim;
    int32_t ring; /* panels that there is memory for: panel p is where p % ring would be; 0: all have their own */
    const int32_t *begin, *end; /* [16] */
    int32_t lanes;              /* lanes in use of the query panel */
    float scale;
    float softcap; /* 0: none; c: scaled scores s become c tanh(s / c) (Gemma Team 2024, Gemma 2) */
    /* NULL, or what is added to a score before the scale, by how far the query is behind the key: bias[q - key], any
     * distance between tokens that see each other being inside the array. query0: the token of lane 0. */
    const float *bias;
    int64_t query0;
    float *out; /* [head_dim][16] */
    /* 16 * (number of keys from the panel that holds the least begin to the end of the panel
     * of the greatest end) floats */
    float *scratch;
} kern_attention_args;

/* One token's queries of n_q heads that share keys and values, as plain rows: softmax(q k^T * scale) v over the keys begin
 * <= j < end (at least one), which lie in panels as kern_attention_args has them. Sums of weights are f64. */
typedef struct kern_attention_row_args {
    const float *q; /* [n_q][head_dim] */
    int64_t q_stride;
    const void *k, *v;           /* of panel 0, as in kern_attention_args, of f32 or of halves */
    int64_t kv_stride, head_dim; /* numbers from panel to panel */
    int32_t ring, n_q;
    bool half;
    int64_t begin, end;
    float scale, softcap;
    float *out; /* [n_q][head_dim] */
    int64_t out_stride;
    float *scratch; /* kern_attention_row_floats, 64-byte aligned */
} kern_attention_row_args;
/* Scratch for n_keys keys, counted from the start of the panel of the first. */
static inline size_t kern_attention_row_floats(int64_t n_keys, int64_t head_dim)
{
    const int64_t keys = (n_keys + KERN_LANES - 1) / KERN_LANES * KERN_LANES;
    return (size_t)(KERN_ATTENTION_ROW_HEADS * (keys + 8 * ((head_dim + 7) / 8 * 8)));
}

/* y[f][lane] = scale * sum over sources of table[index[lane]][f] for lanes < n_lanes, 0 for the others; sources added
 * in order. One panel. */
typedef struct kern_gather_source {
    const void *table;    /* [rows, d] row-major, any alignment */
    dtype type;           /* one that dtype_is_weight; of blocks, d is a whole number */
    const int32_t *index; /* [n_lanes], in range (the caller checks) */
} kern_gather_source;
typedef struct kern_gather_args {
    const kern_gather_source *sources;
    int32_t n_sources, n_lanes;
    int64_t d;
    float scale; /* 1: none */
    float *y;    /* [d][16] */
} kern_gather_args;

/* Tokens t0 <= t < t1 (at least one) of a packed batch into one lane: y[f * 16] = reduce over t of x[t][f]. Tokens
 * are added in order. FIRST and LAST copy. MEAN: sum / n; MEAN_SQRT: sum / sqrt(n). WEIGHTED_MEAN: sum of w_t x[t] /
 * sum of w_t with w_t = first_weight + (t - t0). */
typedef enum kern_pool_mode {
    KERN_POOL_FIRST,
    KERN_POOL_LAST,
    KERN_POOL_MEAN,
    KERN_POOL_MAX,
    KERN_POOL_MEAN_SQRT,
    KERN_POOL_WEIGHTED_MEAN,
    KERN_POOL_COUNT
} kern_pool_mode;
typedef struct kern_pool_args {
    kern_pool_mode mode;
    const float *x; /* panels of the batch */
    int64_t x_stride, d, t0, t1;
    int64_t first_weight; /* WEIGHTED_MEAN only */
    float *y;             /* the lane's first feature */
} kern_pool_args;

/* The gated delta rule (Yang et al. 2024, "Gated Delta Networks") of one value head: n tokens of one sequence and the state S [d_k][d_v], read and
 * written. For t = 0, 1...:
 *
 *     S *= exp(g[t]);  d = beta[t] (v[t] - S^T k[t]);  S += k[t] d^T;  y[t] = S^T q[t]
 *
 * which may be computed as one chunk, E_ij = exp(g[j + 1] + ... + g[i]) being products of decays, so that nothing is divided by one and a decay of 0
 * is right:
 *
 *     d_i = beta_i (v_i - E_i S^T k_i - sum over j < i of E_ij (k_j . k_i) d_j)        E_i = exp(g[0] + ... + g[i])
 *     y_i = E_i S^T q_i + sum over j <= i of E_ij (k_j . q_i) d_j
 *     S'  = E_(n-1) S + sum over j of E_(n-1)j k_j d_j^T
 *
 * Lane t of a panel is token t. y[t] depends on no later token; lanes n and behind reach nothing, and y is 0 there. The tolerance of kern.def is
 * relative to the sum of the magnitudes that were added to a column of S, decayed as S is, and for y times the sum of |q|. */
typedef struct kern_delta_args {
    int64_t d_k, d_v, n;    /* 1 <= n <= 16 */
    const float *q, *k, *v; /* panels [d_k][16], [d_k][16], [d_v][16] */
    const float *g, *beta;  /* [n]; g <= 0 is the logarithm of the decay, down to -infinity */
    float *state;           /* [d_k][d_v], any alignment */
    float *y;               /* panel [d_v][16]; may be v */
    float *scratch;         /* kern_delta_scratch floats, 64-byte aligned */
} kern_delta_args;
/* The same of one token in plain rows of any alignment. */
typedef struct kern_delta_row_args {
    int64_t d_k, d_v;
    const float *q, *k, *v; /* [d_k], [d_k], [d_v] */
    float g, beta;
    float *state;   /* [d_k][d_v], any alignment */
    float *y;       /* [d_v]; may be v */
    float *scratch; /* as above */
} kern_delta_row_args;
/* Columns of a state that are taken together. */
enum { KERN_DELTA_COLUMNS = 32 };
/* Scratch of both: a strip [d_k][32] of the state, two matrices [16][d_v] and two [16][16]. */
static inline size_t kern_delta_scratch(int64_t d_k, int64_t d_v)
{
    const int64_t columns = (d_v + KERN_DELTA_COLUMNS - 1) / KERN_DELTA_COLUMNS * KERN_DELTA_COLUMNS;
    return (size_t)(d_k * KERN_DELTA_COLUMNS + 2 * KERN_LANES * (columns + KERN_LANES));
}

/* Causal convolution over time of each feature by itself, and SiLU: y[f][t] = silu(sum over j of w[j][f] x[f][t - (width - 1) + j]), j rising, of one
 * panel of 16 tokens. */
enum { KERN_CONV_WIDTH = 16 }; /* the widest */
typedef struct kern_conv_args {
    int64_t d;
    int32_t width;  /* 2 to 16 */
    const float *w; /* [width][d], the oldest tap first; any alignment */
    const float *x; /* [d][16] */
    /* What is before lane 0 of feature f: before[f * before_feature + i * before_tap], i < width - 1, the oldest first. A panel before is data + 16 -
     * (width - 1) with strides 16 and 1, a kept state [width - 1][d] has strides 1 and d. NULL: nothing is, and no lane has such a tap. */
    const float *before;
    int64_t before_feature, before_tap;
    /* [16]: so many of the newest taps of a lane count, the others are as if 0, whatever they hold; width: all. */
    const int32_t *have;
    float *y; /* [d][16]; not x */
} kern_conv_args;
/* The same of one token in plain rows of any alignment: state [width - 1][d], the oldest first, is before it, and is moved on by it. */
typedef struct kern_conv_row_args {
    int64_t d;
    int32_t width;
    const float *w, *x; /* [width][d], [d] */
    float *state;
    float *y; /* [d]; may be x */
} kern_conv_row_args;

/* out[j * out_stride + i] = dot(query j, row i). The order of a sum depends on d only: not on n, n_q or the place of a
 * row. Sums are f32. */
typedef struct kern_dot_rows_args {
    const float *q; /* [n_q][d], q_stride floats from query to query */
    int64_t q_stride;
    const void *rows; /* [n][d] of `type`, row_stride bytes from row to row, any alignment */
    dtype type;       /* F32, F16 */
    int64_t row_stride, n, d;
    int32_t n_q;
    float *out;
    int64_t out_stride;
} kern_dot_rows_args;

/* The same over rows {f32 scale, int8 v[d]} and queries of int16: out = (float)sum * row scale * query scale, where sum
 * = sum over f of q[f] * v[f] is exact. The caller sees to it that 128 * (|q[0]| + ... + |q[d - 1]|) < 2^31, hence no partial
 * sum overflows whatever the row holds; bits are the same on every ISA. */
typedef struct kern_dot_rows_i8_args {
    const int16_t *q; /* [n_q][d], q_stride numbers from query to query */
    int64_t q_stride;
    const float *q_scale; /* [n_q] */
    const void *rows;     /* row_stride bytes from row to row, any alignment */
    int64_t row_stride, n, d;
    int32_t n_q;
    float *out;
    int64_t out_stride;
} kern_dot_rows_i8_args;

/* y[f] += sum over i < n of by[i] rows[index[i]][f0 + f] for f < k. The order of a sum depends on n only, hence the bits of y[f] on n, by and column f0 + f of the
 * rows: not on f0, k or where the rows lie. Rows are read as a few long streams. */
typedef struct kern_add_rows_args {
    const void *rows;     /* row-major, any alignment */
    dtype type;           /* one that dtype_is_weight; f0 and k are whole numbers of its blocks */
    int64_t row_stride;   /* bytes from row to row */
    const int32_t *index; /* [n] rising, or NULL: rows 0, 1, ... */
    const float *by;      /* [n] */
    int64_t n, f0, k;
    float *y; /* [k], 64-byte aligned */
} kern_add_rows_args;

/* l2_normalize: x [d][16] of one panel, each of the first `lanes` lanes divided by max(its L2 norm, 1e-12).
 * first_nonfinite: index of the first NaN or infinity of n numbers (of a dtype_is_weight, any alignment), or -1. Of blocks the scales are looked
 * at (quant.h), and the index is that of a block's first number.
 * to_half, from_half: n numbers to binary16, to the nearest, ties to even, and back. Any alignment.
 * map: y[i] = fn(x[i]); y may be x.
 * glu: y[i] = fn(gate[i]) * up[i] (Dauphin et al. 2017, Shazeer 2020); y may be gate or up. Any alignment. */

/* Products of single tokens: y[m][n] = fn(bias[n] + sum_k w[n][k] x[m][k]) for rows n0 <= n < n1 and m < n_x. x and y are plain rows, not panels.
 * The bits of y[m][n] depend on row n, row m, k and type only: not on n0, n1, n_x or where the rows lie.
 *
 * xq NULL: weights exactly as dtype_to_f32 decodes them times f32 activations, summed in an order that depends on type and k only.
 * Else xq has the x rows as quantize_x makes them for this type, and the products of a block are sums of small integers, which are exact:
 *     sum over blocks of (float)(sum_k code * q) * scales, a block's minimum times the sum of its q
 * so two ISAs differ by the rounding of the sums over the blocks. The tolerance of kern.def is relative to the sum over k of |q d| times the largest
 * magnitude of a weight in its block's range (a type with an offset, such as Q4_0, adds and subtracts it). An x block that holds NaN or
 * infinity has a NaN scale: every result of its row is NaN.
 * The rows of a call are read as a few long streams, so a worker should get a long range n0..n1. */
typedef struct kern_gemv_args {
    const void *w;        /* [rows, k] row-major, any alignment */
    dtype type;           /* one that dtype_is_weight; k is a whole number of its blocks */
    int64_t w_stride;     /* bytes from row to row */
    const int32_t *index; /* NULL, or [rows]: row n is row index[n] of w; rising is best */
    const float *bias;    /* [rows] or NULL */
    const float *x;       /* [n_x][k], 64-byte aligned; unused (may be NULL) with xq */
    int64_t x_stride;     /* floats from row to row, a multiple of 16 */
    const void *xq;       /* NULL, or [n_x] rows made by quantize_x, 64-byte aligned */
    int64_t xq_stride;    /* bytes from row to row, a multiple of 64, at least kern_xq_bytes */
    int32_t n_x;          /* 1 and more */
    float *y;             /* [n_x][rows], any alignment */
    int64_t y_stride;
    int64_t k, n0, n1;
    kern_fn fn;
} kern_gemv_args;

/* quantize_x: k activations to 8 bits in blocks, as gemv wants them beside weights of `type` (kern_xq.h has the layout): q[i] = x[i] / d rounded to the
 * nearest, ties to even, d = the block's largest magnitude / 127, so |q[i]| <= 127 and |x[i] - q[i] d| <= d / 2 (and a rounding). A block
 * that is nowhere above 2^-120 becomes 0. NaN or infinity in a block: d is NaN. k is a whole number of the type's blocks. All of the kern_xq_bytes
 * bytes are written, and are the same on every ISA.
 * quantize_panel: the same of the 16 lanes of a panel, x: [k][16], each lane by itself. */

/* How activations are quantised for weights of a type; types of one kind share what quantize_x made. */
typedef enum kern_xq_kind {
    KERN_XQ_NONE, /* no integer products: xq is NULL */
    KERN_XQ_32,   /* blocks of 32: Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 IQ4_NL MXFP4 */
    KERN_XQ_256   /* blocks of 256: Q2_K Q3_K Q4_K Q5_K Q6_K Q8_K IQ4_XS */
} kern_xq_kind;
kern_xq_kind kern_xq_kind_of(dtype type);
/* Bytes of a quantised row of k numbers, a multiple of 64; 0: no integer products. */
size_t kern_xq_bytes(dtype type, int64_t k);
/* The same of a panel of 16 rows. */
size_t kern_xq_panel_bytes(dtype type, int64_t k);

typedef struct kern_table {
    const char *isa;       /* of the highest overlay in use */
    int32_t row_block;     /* rows that `linear` computes together: split rows at multiples of it */
    int32_t panel_group;   /* panels that `linear` takes per pass over the weights */
    bool xq_panels;        /* `linear` is faster with xq than with floats */
    size_t linear_scratch; /* floats of scratch that `linear` needs per worker, 64-byte aligned */
#define KERN(slot, result, args, tolerance) result(*slot) args;
#include "kern/kern.def"
#undef KERN
} kern_table;

typedef enum kern_isa {
    KERN_ISA_REF,
    KERN_ISA_AVX2,
    KERN_ISA_AVX512,
    KERN_ISA_AMX,
    KERN_ISA_NEON,
    KERN_ISA_COUNT
} kern_isa;

/* "ref", "avx2", ... */
const char *kern_isa_name(kern_isa isa);
/* This machine and this build can run it (CPUID, OS grant). */
bool kern_isa_available(kern_isa isa);
/* The reference, overwritten by every available overlay up to `ceiling` of this architecture. */
void kern_table_init(kern_table *t, kern_isa ceiling);

#endif
