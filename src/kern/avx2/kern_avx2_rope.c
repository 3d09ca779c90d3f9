/* SPDX-License-Identifier: Apache-2.0
 * kern_avx2_rope.c: rotary position embedding (Su et al. 2021, eq. 34): a pair of feature rows at a time, eight lanes a
 * vector; cos and sin of a pair serve all heads from L1. A plain row is little work: the reference does it. */
#include "kern/avx2/kern_avx2.h"
#include "kern/avx2/kern_avx2_math.h"
#include "kern/ref/kern_ref.h"

void kern_avx2_rope(const kern_rope_args *a)
{
    if (a->lanes != KERN_LANES) {
        kern_ref_rope(a);
        return;
    }
    const int64_t step = (a->interleaved ? 2 : 1) * KERN_LANES, apart = (a->interleaved ? 1 : a->n_pairs) * KERN_LANES;
    for (int64_t h = 0; h < a->n_heads; h++) {
        float *first = a->x + h * a->head_dim * KERN_LANES;
        for (int64_t i = 0; i < a->n_pairs; i++, first += step) {
            for (int64_t lane = 0; lane < KERN_LANES; lane += 8) {
                const __m256 x = _mm256_load_ps(first + lane), y = _mm256_load_ps(first + apart + lane);
                const __m256 c = _mm256_load_ps(a->cosine + i * KERN_LANES + lane);
                const __m256 s = _mm256_load_ps(a->sine + i * KERN_LANES + lane);
                _mm256_store_ps(first + lane, _mm256_fmsub_ps(x, c, _mm256_mul_ps(y, s)));
                _mm256_store_ps(first + apart + lane, _mm256_fmadd_ps(y, c, _mm256_mul_ps(x, s)));
            }
        }
    }
}
