/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_avx2_attention_row.c: softmax(q k^T * scale) v of one token's queries (Vaswani et al. 2017, eq. 1) against keys and
 * values in panels. A vector lane is a key:
 *
 *     scores   s[q][j] = sum_f k[f][j] q[f]                    f rising, one chain a key: no sum across lanes
 *     values   part[q][f][lane % 8] += v[f][j] weight[q][j]    panel by panel, then its eight lanes are added
 *
 * Keys and values are read once for all heads that share them, from end to end, which is what counts: a long context comes from DRAM.
 * Keys outside of begin .. end weigh exactly 0, whatever lies there. */
#include <math.h>
#include <string.h>

#include "kern/avx2/kern_avx2_attention.h"

enum { HEADS = ROW_HEADS, PANELS = 4 /* of values at a time */ };

/* Eight kept numbers from number i of a panel. */
VEC_INLINE __m256 kept(const bool half, const unsigned char *panel, int64_t i)
{
    return vec_load(half ? DTYPE_F16 : DTYPE_F32, panel + i * (half ? 2 : 4));
}

/* Scores of one panel of keys for `n` heads, a constant. */
VEC_INLINE void panel_scores(const row_job *j, const int n, const bool half, int64_t p)
{
    const kern_attention_row_args *a = j->a;
    const unsigned char *k = row_panel(j, half, a->k, p);
    const int64_t at = p * KERN_LANES;
    const float *q0 = a->q, *q1 = q0 + a->q_stride, *q2 = q1 + a->q_stride, *q3 = q2 + a->q_stride;
    __m256 a0 = _mm256_setzero_ps(), b0 = a0, a1 = a0, b1 = a0, a2 = a0, b2 = a0, a3 = a0, b3 = a0;
    for (int64_t f = 0; f < a->head_dim; f++) {
        const __m256 ka = kept(half, k, f * KERN_LANES), kb = kept(half, k, f * KERN_LANES + 8);
#define DO(i)                                           \
    if (n > i) {                                        \
        const __m256 e = _mm256_broadcast_ss(q##i + f); \
        a##i = _mm256_fmadd_ps(ka, e, a##i);            \
        b##i = _mm256_fmadd_ps(kb, e, b##i);            \
    }
        DO(0) DO(1) DO(2) DO(3)
#undef DO
    }
#define DO(i) \
    if (n > i) _mm256_store_ps(j->weight[i] + at, a##i), _mm256_store_ps(j->weight[i] + at + 8, b##i);
    DO(0) DO(1) DO(2) DO(3)
#undef DO
}

/* All bits of the lanes first <= i < end of eight. */
VEC_INLINE __m256 lanes_between(int64_t first, int64_t end)
{
    const __m256i i = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i from = _mm256_set1_epi32((int32_t)(first < -1 ? -1 : first > 8 ? 8 : first));
    const __m256i to = _mm256_set1_epi32((int32_t)(end < 0 ? 0 : end > 8 ? 8 : end));
    return _mm256_castsi256_ps(_mm256_andnot_si256(_mm256_cmpgt_epi32(from, i), _mm256_cmpgt_epi32(to, i)));
}

/* One panel of values times its weights, added to the parts of `n` heads. `edge`: some keys of it are not seen; what lies
 * there may be anything, NaN included, and is not read as a number. */
VEC_INLINE void panel_values(const row_job *j, const int n, const bool half, const bool edge, int64_t p)
{
    const unsigned char *v = row_panel(j, half, j->a->v, p);
    const int64_t at = p * KERN_LANES;
    const int64_t first = j->a->begin - j->panel0 * KERN_LANES - at, end = j->a->end - j->panel0 * KERN_LANES - at;
    const __m256 seen_a = lanes_between(first, end), seen_b = lanes_between(first - 8, end - 8);
#define DO(i)                                                                             \
    const __m256 wa##i = n > i ? _mm256_load_ps(j->weight[i] + at) : _mm256_setzero_ps(), \
                 wb##i = n > i ? _mm256_load_ps(j->weight[i] + at + 8) : _mm256_setzero_ps();
    DO(0)
    DO(1)
    DO(2)
    DO(3)
#undef DO
    float *p0 = j->part[0], *p1 = j->part[1], *p2 = j->part[2], *p3 = j->part[3];
    for (int64_t f = 0; f < 8 * j->a->head_dim; f += 8) {
        __m256 va = kept(half, v, 2 * f), vb = kept(half, v, 2 * f + 8);
        if (edge) va = _mm256_and_ps(va, seen_a), vb = _mm256_and_ps(vb, seen_b);
#define DO(i)  \
    if (n > i) \
        _mm256_store_ps(p##i + f, _mm256_fmadd_ps(vb, wb##i, _mm256_fmadd_ps(va, wa##i, _mm256_load_ps(p##i + f))));
        DO(0) DO(1) DO(2) DO(3)
#undef DO
    }
}

/* The same of PANELS panels that are seen whole, in the same order: two features at a time (there is no odd one), whose parts stay in registers
 * for all of them. */
VEC_INLINE void panels_values(const row_job *j, const int n, const bool half, int64_t p)
{
    const kern_attention_row_args *a = j->a;
    const int64_t ahead = PANELS * a->kv_stride * (half ? 2 : 4);
    const unsigned char *v[PANELS];
    for (int i = 0; i < PANELS; i++) v[i] = row_panel(j, half, a->v, p + i);
    for (int64_t f = 0; f < a->head_dim; f += 2) {
#define DO(i)                                                                       \
    __m256 x##i = n > i ? _mm256_load_ps(j->part[i] + 8 * f) : _mm256_setzero_ps(), \
           y##i = n > i ? _mm256_load_ps(j->part[i] + 8 * f + 8) : _mm256_setzero_ps();
        DO(0)
        DO(1)
        DO(2)
        DO(3)
#undef DO
#pragma GCC unroll 4
        for (int i = 0; i < PANELS; i++) {
            const int64_t at = (p + i) * KERN_LANES;
            const __m256 xa = kept(half, v[i], KERN_LANES * f), xb = kept(half, v[i], KERN_LANES * f + 8),
                         ya = kept(half, v[i], KERN_LANES * f + 16), yb = kept(half, v[i], KERN_LANES * f + 24);
            _mm_prefetch((const char *)((uintptr_t)v[i] + (uintptr_t)(f * KERN_LANES * (half ? 2 : 4) + ahead)),
                         _MM_HINT_T1);
#define DO(h)                                                                                            \
    if (n > h) {                                                                                         \
        const __m256 wa = _mm256_load_ps(j->weight[h] + at), wb = _mm256_load_ps(j->weight[h] + at + 8); \
        x##h = _mm256_fmadd_ps(xb, wb, _mm256_fmadd_ps(xa, wa, x##h));                                   \
        y##h = _mm256_fmadd_ps(yb, wb, _mm256_fmadd_ps(ya, wa, y##h));                                   \
    }
            DO(0) DO(1) DO(2) DO(3)
#undef DO
        }
#define DO(i) \
    if (n > i) _mm256_store_ps(j->part[i] + 8 * f, x##i), _mm256_store_ps(j->part[i] + 8 * f + 8, y##i);
        DO(0) DO(1) DO(2) DO(3)
#undef DO
    }
}

#define FOR_HEADS(n, half, name)                                                                \
    static void scores_##name(const row_job *j, int64_t p) { panel_scores(j, n, half, p); }     \
    static void values_##name(const row_job *j, int64_t p) { panels_values(j, n, half, p); }    \
    static void edge_##name(const row_job *j, int64_t p) { panel_values(j, n, half, true, p); } \
    static void single_##name(const row_job *j, int64_t p) { panel_values(j, n, half, false, p); }
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
static const row_tiles tiles = {1, PANELS, BY_HEADS(scores), BY_HEADS(values)};
static const row_function edge_of[2][HEADS + 1] = BY_HEADS(edge), single_of[2][HEADS + 1] = BY_HEADS(single);

static void all_scores(const row_job *j, const row_tiles *wider)
{
    const int half = j->a->half, n_q = j->a->n_q;
    int64_t p = 0;
    for (; wider && p + wider->score_panels <= j->n_panels; p += wider->score_panels) wider->scores[half][n_q](j, p);
    for (; p < j->n_panels; p++) tiles.scores[half][n_q](j, p);
}

static void all_values(const row_job *j, const row_tiles *wider)
{
    const kern_attention_row_args *a = j->a;
    const row_tiles *t = wider ? wider : &tiles;
    /* panels that are seen whole */
    const int64_t first = a->begin % KERN_LANES != 0, last = j->n_panels - (a->end % KERN_LANES != 0);
    int64_t p = 0;
    for (; p < first; p++) edge_of[a->half][a->n_q](j, p);
    for (; p + t->value_panels <= last && a->head_dim % 2 == 0; p += t->value_panels) t->values[a->half][a->n_q](j, p);
    for (; p < last; p++) single_of[a->half][a->n_q](j, p);
    for (; p < j->n_panels; p++) edge_of[a->half][a->n_q](j, p);
}

/* Scales and caps a head's scores. */
static void cap_row(const row_job *j, float *w)
{
    const float by = j->a->scale / j->a->softcap;
    for (int64_t i = 0; i < j->n_panels * KERN_LANES; i += 8)
        _mm256_store_ps(w + i, vec_softcap(_mm256_load_ps(w + i), by, j->a->softcap));
}

/* Scores to weights: largest first, then exp and its sum, keys outside being 0. 1 / the sum. */
static float softmax_row(const row_job *j, float *w)
{
    const kern_attention_row_args *a = j->a;
    const int64_t first = a->begin - j->panel0 * KERN_LANES, end = a->end - j->panel0 * KERN_LANES;
    const int64_t n = j->n_panels * KERN_LANES;
    for (int64_t i = 0; i < first; i++) w[i] = -INFINITY;
    for (int64_t i = end; i < n; i++) w[i] = -INFINITY;
    __m256 top = _mm256_set1_ps(-INFINITY);
    for (int64_t i = 0; i < n; i += 8) top = _mm256_max_ps(top, _mm256_load_ps(w + i));
    float lane[8], largest = -INFINITY;
    _mm256_storeu_ps(lane, top);
    for (int i = 0; i < 8; i++) largest = lane[i] > largest ? lane[i] : largest;
    const float scale = a->softcap != 0 ? 1.0f : a->scale;
    const __m256 c2 = _mm256_set1_ps(scale * 1.44269504f), shift = _mm256_mul_ps(_mm256_set1_ps(largest), c2);
    __m256d sum0 = _mm256_setzero_pd(), sum1 = sum0;
    for (int64_t i = 0; i < n; i += 8) {
        const __m256 e = vec_pow2_weight(_mm256_fmsub_ps(_mm256_load_ps(w + i), c2, shift));
        _mm256_store_ps(w + i, e);
        sum0 = _mm256_add_pd(sum0, _mm256_cvtps_pd(_mm256_castps256_ps128(e)));
        sum1 = _mm256_add_pd(sum1, _mm256_cvtps_pd(_mm256_extractf128_ps(e, 1)));
    }
    double part[4];
    _mm256_storeu_pd(part, _mm256_add_pd(sum0, sum1));
    return (float)(1.0 / ((part[0] + part[1]) + (part[2] + part[3])));
}

/* The eight lanes of a feature: ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)). */
VEC_INLINE float lanes_sum(const float *p)
{
    const __m256 v = _mm256_load_ps(p);
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

void kern_avx2_attention_row_by(const kern_attention_row_args *a, const row_tiles *wider)
{
    row_job j = {.a = a, .panel0 = a->begin / KERN_LANES};
    j.n_panels = (a->end + KERN_LANES - 1) / KERN_LANES - j.panel0;
    float *at = a->scratch, inverse[HEADS];
    for (int32_t i = 0; i < HEADS; i++) {
        j.weight[i] = at;
        j.part[i] = at + j.n_panels * KERN_LANES;
        at = j.part[i] + 8 * a->head_dim;
    }
    all_scores(&j, wider);
    for (int32_t i = 0; i < a->n_q; i++) {
        if (a->softcap != 0) cap_row(&j, j.weight[i]);
        inverse[i] = softmax_row(&j, j.weight[i]);
        memset(j.part[i], 0, (size_t)(8 * a->head_dim) * sizeof(float));
    }
    all_values(&j, wider);
    for (int32_t i = 0; i < a->n_q; i++)
        for (int64_t f = 0; f < a->head_dim; f++)
            a->out[i * a->out_stride + f] = lanes_sum(j.part[i] + 8 * f) * inverse[i];
}

void kern_avx2_attention_row(const kern_attention_row_args *a) { kern_avx2_attention_row_by(a, NULL); }
