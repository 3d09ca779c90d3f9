/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_oracle.h: what the kernel tests share: the tables of this machine, random data, element decoding and the
 * functions in double precision, all written from the definitions (IEEE 754, the papers named in kern.h), none of it
 * from the kernels. */
#ifndef LATH_TESTS_KERN_ORACLE_H
#define LATH_TESTS_KERN_ORACLE_H

#include <math.h>
#include <stdbool.h>

#include "kern/avx512/kern_avx512.h"
#include "kern/kern.h"
#include "support/test.h"

enum { ORACLE_TABLES = KERN_ISA_COUNT + 1 };

/* The tables that this machine can run, one per ISA that has an overlay of its own, and AVX-512 emulated; returns how many. */
static inline int oracle_tables(kern_table out[ORACLE_TABLES])
{
    int n = 0;
    for (int isa = 0; isa < KERN_ISA_COUNT; isa++) {
        if (!kern_isa_available((kern_isa)isa)) continue;
        kern_table_init(&out[n], (kern_isa)isa);
        if (strcmp(out[n].isa, kern_isa_name((kern_isa)isa)) == 0) n++;
    }
#if defined(KERN_AVX512_EMULATED)
    if (kern_isa_available(KERN_ISA_AVX2)) {
        kern_table_init(&out[n], KERN_ISA_AVX2);
        kern_emulated512_overlay(&out[n]);
        out[n++].isa = "emulated512";
    }
#endif
    return n;
}

typedef struct oracle_rng {
    uint64_t s;
} oracle_rng;

static inline uint64_t rng_next(oracle_rng *r) /* splitmix64 */
{
    uint64_t z = (r->s += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* lo..hi, both included. */
static inline int64_t rng_int(oracle_rng *r, int64_t lo, int64_t hi)
{
    return lo + (int64_t)(rng_next(r) % (uint64_t)(hi - lo + 1));
}

static inline float rng_float(oracle_rng *r, float scale)
{
    return scale * ((float)(rng_next(r) >> 40) * 0x1p-23f - 1.0f);
}

/* n floats, aligned to 64 bytes, all NaN; freed with free(). */
static inline float *oracle_floats(int64_t n)
{
    float *p = aligned_alloc(64, ((size_t)n * sizeof(float) / 64 + 2) * 64);
    assert_non_null(p);
    for (int64_t i = 0; i < n; i++) p[i] = NAN;
    return p;
}

/* A code of the 8-bit type near f, cut (small values become subnormals or 0), never NaN or infinite. */
static inline uint8_t oracle_f8(dtype type, float f)
{
    const int bits = type == DTYPE_F8_E4M3 ? 3 : 2, bias = type == DTYPE_F8_E4M3 ? 7 : 15;
    int e;
    const double m = frexp(fabs((double)f), &e); /* in [0.5, 1) */
    const int field = e - 1 + bias, one = 1 << bits;
    const int code = field > 0 ? field * one + (int)(m * 2 * one) - one : (int)ldexp(m, e - 1 + bias + bits);
    return (uint8_t)((f < 0 ? 0x80 : 0) | code);
}

/* Any type that dtype_is_weight. */
static inline dtype oracle_type(oracle_rng *r)
{
    dtype t;
    do t = (dtype)rng_int(r, 0, DTYPE_COUNT - 1);
    while (!dtype_is_weight(t));
    return t;
}

/* Any of them whose blocks are single numbers. */
static inline dtype oracle_float(oracle_rng *r)
{
    dtype t;
    do t = oracle_type(r);
    while (dtype_is_block(t));
    return t;
}

/* Where the binary16 scales of a block are (ggml-common.h); returns how many: none for the two types that have another. */
static inline int oracle_scales(dtype type, int at[2])
{
    at[0] = at[1] = 0;
    switch (type) {
    case DTYPE_Q8_K:
    case DTYPE_MXFP4: return 0;
    case DTYPE_Q2_K: at[0] = 80, at[1] = 82; return 2;
    case DTYPE_Q4_1:
    case DTYPE_Q5_1:
    case DTYPE_Q4_K:
    case DTYPE_Q5_K: at[1] = 2; return 2;
    case DTYPE_Q3_K: at[0] = 108; return 1;
    case DTYPE_Q6_K: at[0] = 208; return 1;
    default: return 1;
    }
}

/* A block of any bits under scales of 2^-15 to 2^-11: its numbers are below 2. */
static inline void oracle_block(oracle_rng *r, dtype type, unsigned char *b)
{
    int at[2];
    for (size_t i = 0; i < dtype_block_bytes(type); i++) b[i] = (unsigned char)rng_next(r);
    for (int i = 0, n = oracle_scales(type, at); i < n; i++) {
        const uint16_t half = (uint16_t)(rng_next(r) & 0x87ff) | 0x400;
        memcpy(b + at[i], &half, 2);
    }
    const float d = rng_float(r, 0x1p-11f);
    if (type == DTYPE_Q8_K) memcpy(b, &d, 4);
    if (type == DTYPE_MXFP4) b[0] = (unsigned char)rng_int(r, 112, 116);
}

/* n bytes of elements at an odd address inside *base (freed by the caller), values in [-scale, scale] (of blocks below 2),
 * never infinite. n: a whole number of blocks. */
static inline unsigned char *oracle_elements(oracle_rng *r, dtype type, int64_t n, float scale, int shift,
                                             unsigned char **base)
{
    const size_t size = dtype_block_bytes(type);
    *base = malloc(dtype_bytes(type, n) + 8);
    assert_non_null(*base);
    unsigned char *p = *base + shift;
    if (dtype_is_block(type)) {
        for (size_t i = 0; i < (size_t)n / dtype_block_numbers(type); i++) oracle_block(r, type, p + i * size);
        return p;
    }
    for (int64_t i = 0; i < n; i++) {
        float f = rng_float(r, scale);
        uint32_t u;
        memcpy(&u, &f, 4);
        uint16_t h = (uint16_t)(u >> 16);
        if (type == DTYPE_F16) { /* cut, not rounded: any half will do */
            int32_t e = (int32_t)(u >> 23 & 0xff) - 112;
            h = (uint16_t)((u >> 16 & 0x8000) | (e <= 0 ? (u >> 20 & 0x3ff) : (uint32_t)e << 10 | (u >> 13 & 0x3ff)));
        }
        if (type == DTYPE_F32)
            memcpy(p + 4 * i, &f, 4);
        else if (size == 2)
            memcpy(p + 2 * i, &h, 2);
        else
            p[i] = oracle_f8(type, f);
    }
    return p;
}

/* Element i of F32, F16 or BF16 bytes (IEEE 754 3.4), F8_E4M3 or F8_E5M2 (OCP 8-bit floats, 5.1). */
static inline double oracle_element(dtype type, const unsigned char *p, int64_t i)
{
    float f;
    uint16_t h;
    if (type == DTYPE_F32) {
        memcpy(&f, p + 4 * i, 4);
        return f;
    }
    if (type == DTYPE_F8_E4M3) {
        const int e = p[i] >> 3 & 15, m = p[i] & 7;
        const double v = (p[i] & 0x7f) == 0x7f ? (double)NAN : e ? ldexp(m + 8, e - 10) : ldexp(m, -9);
        return p[i] & 0x80 ? -v : v;
    }
    if (type == DTYPE_F8_E5M2)
        h = (uint16_t)(p[i] << 8); /* the upper byte of a half */
    else
        memcpy(&h, p + 2 * i, 2);
    const bool half = type != DTYPE_BF16;
    int bits = half ? 10 : 7, bias = half ? 15 : 127;
    int top = half ? 31 : 255, e = h >> bits & top, m = h & ((1 << bits) - 1);
    double sign = h & 0x8000 ? -1.0 : 1.0;
    if (e == top) return m ? (double)NAN : sign * (double)INFINITY;
    return sign * (e ? ldexp(m + (1 << bits), e - bias - bits) : ldexp(m, 1 - bias - bits));
}

/* n numbers (whole blocks) at p. Of blocks they are those of dtype_to_f32, which test_quant.c compares with the `gguf` package. */
static inline void oracle_numbers(dtype type, const unsigned char *p, int64_t n, double *out)
{
    float block[DTYPE_MAX_BLOCK];
    if (!dtype_is_block(type)) {
        for (int64_t i = 0; i < n; i++) out[i] = oracle_element(type, p, i);
        return;
    }
    const int64_t numbers = (int64_t)dtype_block_numbers(type);
    for (int64_t i = 0; i < n; i += numbers) {
        dtype_to_f32(type, p + dtype_bytes(type, i), (size_t)numbers, block);
        for (int64_t k = 0; k < numbers; k++) out[i + k] = (double)block[k];
    }
}

static inline double oracle_fn(kern_fn fn, double x)
{
    const double u = 0.79788456080286535588 * (x + 0.044715 * x * x * x);
    switch (fn) {
    case KERN_FN_RELU: return x > 0 || isnan(x) ? x : 0.0;
    case KERN_FN_GELU: return x == -INFINITY ? 0.0 : 0.5 * x * erfc(-x * 0.70710678118654752440);
    case KERN_FN_GELU_TANH: return x == -INFINITY ? 0.0 : x / (1.0 + exp(-2.0 * u));
    case KERN_FN_SILU: return x == -INFINITY ? 0.0 : x / (1.0 + exp(-x));
    case KERN_FN_TANH: return tanh(x);
    case KERN_FN_SIGMOID: return 1.0 / (1.0 + exp(-x));
    case KERN_FN_EXP: return exp(x);
    default: return x;
    }
}

/* A scaled score of attention under a cap; 0: none. */
static inline double oracle_capped(double s, float cap) { return cap == 0 ? s : (double)cap * tanh(s / (double)cap); }

static inline const char *oracle_fn_name(kern_fn fn)
{
    static const char *const names[KERN_FN_COUNT] = {"none", "relu", "gelu",    "gelu_tanh",
                                                     "silu", "tanh", "sigmoid", "exp"};
    return names[fn];
}

/* Feature f of token t in panels. */
static inline int64_t panel_at(int64_t stride, int64_t t, int64_t f)
{
    return t / KERN_LANES * stride + f * KERN_LANES + t % KERN_LANES;
}

#endif
