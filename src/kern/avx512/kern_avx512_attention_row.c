/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx512_attention_row.c: attention of one token of AVX2 (kern_avx2_attention_row.c), several panels at a time: a vector is the sixteen keys of a
 * score, or the eight lanes of two features.
 *
 * Every element is one chain of FMAs in the order of AVX2, hence its bits. */
#include "kern/avx2/kern_avx2_attention.h"
#include "kern/avx512/kern_avx512.h"
#include "kern/avx512/kern_avx512_vec.h"

enum {
    PANELS = 4,
    AHEAD = 32 << 10 /* bytes that a core asks for before it needs them: DRAM's latency times its rate, and more */
};

/* Sixteen kept numbers from number i of a panel. */
VEC512_INLINE vec512_f32 kept(const bool half, const unsigned char *panel, int64_t i)
{
    return half ? vec512_from_half(panel + 2 * i) : vec512_load_any((const float *)(const void *)(panel + 4 * i));
}

/* Where to read ahead of panel p of `base`: whole groups of panels further; behind the last one in `then`, or nowhere (p itself). */
static const unsigned char *ahead_of(const row_job *j, const bool half, const void *base, int64_t p, const void *then)
{
    const int64_t group = PANELS * j->a->kv_stride * (half ? 2 : 4), at = p + (AHEAD + group - 1) / group * PANELS;
    if (at < j->n_panels) return row_panel(j, half, base, at);
    return then && at < 2 * j->n_panels ? row_panel(j, half, then, at - j->n_panels) : row_panel(j, half, base, p);
}

/* Asks for `n` bytes, a constant. From end to end, whatever the order of use: the hardware follows no PANELS streams across pages. */
VEC512_INLINE void ask(const unsigned char *p, const int n)
{
#pragma GCC unroll 8
    for (int i = 0; i < n; i += 64) _mm_prefetch((const char *)((uintptr_t)p + (uintptr_t)i), _MM_HINT_T1);
}

/* Chains of `n` heads, a constant, times PANELS panels: enough to hide the latency of the FMAs. */
VEC512_INLINE void panels_scores(const row_job *j, const int n, const bool half, int64_t p)
{
    const kern_attention_row_args *a = j->a;
    const int size = half ? 2 : 4;
    const unsigned char *k[PANELS], *next = ahead_of(j, half, a->k, p, a->v);
    vec512_f32 s[PANELS][ROW_HEADS];
#pragma GCC unroll 4
    for (int i = 0; i < PANELS; i++) {
        k[i] = row_panel(j, half, a->k, p + i);
#pragma GCC unroll 4
        for (int h = 0; h < n; h++) s[i][h] = vec512_set1(0.0f);
    }
    for (int64_t f = 0; f < a->head_dim; f++) {
        ask(next + f * PANELS * KERN_LANES * size, PANELS * KERN_LANES * size);
#pragma GCC unroll 4
        for (int i = 0; i < PANELS; i++) {
            const vec512_f32 x = kept(half, k[i], f * KERN_LANES);
#pragma GCC unroll 4
            for (int h = 0; h < n; h++) s[i][h] = vec512_fma(x, vec512_set1(a->q[h * a->q_stride + f]), s[i][h]);
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < PANELS; i++)
#pragma GCC unroll 4
        for (int h = 0; h < n; h++) vec512_store_any(j->weight[h] + (p + i) * KERN_LANES, s[i][h]);
}

/* Two features at a time, whose sums stay in registers for all panels. */
VEC512_INLINE void panels_values(const row_job *j, const int n, const bool half, int64_t p)
{
    const kern_attention_row_args *a = j->a;
    const int size = half ? 2 : 4;
    const unsigned char *v[PANELS], *next = ahead_of(j, half, a->v, p, NULL);
    vec512_f32 low[PANELS][ROW_HEADS], high[PANELS][ROW_HEADS];
#pragma GCC unroll 4
    for (int i = 0; i < PANELS; i++) {
        v[i] = row_panel(j, half, a->v, p + i);
#pragma GCC unroll 4
        for (int h = 0; h < n; h++) {
            const float *w = j->weight[h] + (p + i) * KERN_LANES;
            low[i][h] = vec512_pair(_mm256_load_ps(w), _mm256_load_ps(w));
            high[i][h] = vec512_pair(_mm256_load_ps(w + 8), _mm256_load_ps(w + 8));
        }
    }
    for (int64_t f = 0; f < a->head_dim; f += 2) {
        ask(next + f * PANELS * KERN_LANES * size, 2 * PANELS * KERN_LANES * size);
        vec512_f32 sum[ROW_HEADS];
#pragma GCC unroll 4
        for (int h = 0; h < n; h++) sum[h] = vec512_load_any(j->part[h] + 8 * f);
#pragma GCC unroll 4
        for (int i = 0; i < PANELS; i++) {
            const vec512_f32 x = kept(half, v[i], KERN_LANES * f), y = kept(half, v[i], KERN_LANES * (f + 1));
            const vec512_f32 xy_low = vec512_firsts(x, y), xy_high = vec512_seconds(x, y);
#pragma GCC unroll 4
            for (int h = 0; h < n; h++) sum[h] = vec512_fma(xy_high, high[i][h], vec512_fma(xy_low, low[i][h], sum[h]));
        }
#pragma GCC unroll 4
        for (int h = 0; h < n; h++) vec512_store_any(j->part[h] + 8 * f, sum[h]);
    }
}

#define FOR_HEADS(n, half, name)                                                             \
    static void scores_##name(const row_job *j, int64_t p) { panels_scores(j, n, half, p); } \
    static void values_##name(const row_job *j, int64_t p) { panels_values(j, n, half, p); }
FOR_HEADS(1, false, 1)
FOR_HEADS(2, false, 2)
FOR_HEADS(3, false, 3)
FOR_HEADS(4, false, 4)
FOR_HEADS(1, true, 1_half)
FOR_HEADS(2, true, 2_half)
FOR_HEADS(3, true, 3_half)
FOR_HEADS(4, true, 4_half)
#define BY_HEADS(f)                                                                                  \
    {                                                                                                \
        {NULL, f##_1, f##_2, f##_3, f##_4}, { NULL, f##_1_half, f##_2_half, f##_3_half, f##_4_half } \
    }
static const row_tiles tiles = {PANELS, PANELS, BY_HEADS(scores), BY_HEADS(values)};

void KERN_AVX512(attention_row)(const kern_attention_row_args *a) { kern_avx2_attention_row_by(a, &tiles); }
