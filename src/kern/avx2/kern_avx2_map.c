/* SPDX-License-Identifier: Apache-2.0
 * kern_avx2_map.c: the elementwise functions over arrays and over the rows that `linear` has just stored. */
#include <string.h>

#include "kern/avx2/kern_avx2.h"
#include "kern/avx2/kern_avx2_math.h"

/* Each case inlines its own loop: the function is a constant inside. */
#define MAP_SWITCH(fn, loop)                                \
    switch (fn) {                                           \
    case KERN_FN_RELU: loop(KERN_FN_RELU); break;           \
    case KERN_FN_GELU: loop(KERN_FN_GELU); break;           \
    case KERN_FN_GELU_TANH: loop(KERN_FN_GELU_TANH); break; \
    case KERN_FN_SILU: loop(KERN_FN_SILU); break;           \
    case KERN_FN_TANH: loop(KERN_FN_TANH); break;           \
    case KERN_FN_SIGMOID: loop(KERN_FN_SIGMOID); break;     \
    case KERN_FN_EXP: loop(KERN_FN_EXP); break;             \
    case KERN_FN_NONE:                                      \
    case KERN_FN_COUNT: loop(KERN_FN_NONE); break;          \
    }

VEC_INLINE void map_array(const kern_fn fn, size_t n, const float *x, float *y)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, vec_map(fn, _mm256_loadu_ps(x + i)));
    if (i < n) {
        float last[8] = {0};
        memcpy(last, x + i, (n - i) * sizeof(float));
        _mm256_storeu_ps(last, vec_map(fn, _mm256_loadu_ps(last)));
        memcpy(y + i, last, (n - i) * sizeof(float));
    }
}

void kern_avx2_map(kern_fn fn, size_t n, const float *x, float *y){
#define LOOP(f) map_array(f, n, x, y)
    MAP_SWITCH(fn, LOOP)
#undef LOOP
}

VEC_INLINE void glu_array(const kern_fn fn, size_t n, const float *gate, const float *up, float *y)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_mul_ps(vec_map(fn, _mm256_loadu_ps(gate + i)), _mm256_loadu_ps(up + i)));
    if (i < n) {
        float last[8] = {0}, factor[8] = {0};
        memcpy(last, gate + i, (n - i) * sizeof(float));
        memcpy(factor, up + i, (n - i) * sizeof(float));
        _mm256_storeu_ps(last, _mm256_mul_ps(vec_map(fn, _mm256_loadu_ps(last)), _mm256_loadu_ps(factor)));
        memcpy(y + i, last, (n - i) * sizeof(float));
    }
}

void kern_avx2_glu(kern_fn fn, size_t n, const float *gate, const float *up, float *y){
#define LOOP(f) glu_array(f, n, gate, up, y)
    MAP_SWITCH(fn, LOOP)
#undef LOOP
}

VEC_INLINE void map_rows(const kern_fn fn, int rows, int vectors, const float *x, float *y, int64_t stride)
{
    for (int i = 0; i < rows; i++, x += KERN_LANES, y += stride) {
        _mm256_store_ps(y, vec_map(fn, _mm256_load_ps(x)));
        if (vectors == 2) _mm256_store_ps(y + 8, vec_map(fn, _mm256_load_ps(x + 8)));
    }
}

void kern_avx2_map_rows(kern_fn fn, int rows, int vectors, const float *x, float *y, int64_t stride)
{
#define LOOP(f) map_rows(f, rows, vectors, x, y, stride)
    MAP_SWITCH(fn, LOOP)
#undef LOOP
}
