/* SPDX-License-Identifier: Apache-2.0
 * kern_ref_rope.c: rotary position embedding (Su et al. 2021, "RoFormer", eq. 34), lane by lane. */
#include "kern/ref/kern_ref.h"

void kern_ref_rope(const kern_rope_args *a)
{
    const int64_t step = a->interleaved ? 2 : 1, apart = a->interleaved ? 1 : a->n_pairs;
    for (int64_t h = 0; h < a->n_heads; h++) {
        float *head = a->x + h * a->head_dim * KERN_LANES;
        for (int64_t i = 0; i < a->n_pairs * KERN_LANES; i++) {
            float *first = head + i / KERN_LANES * step * KERN_LANES + i % KERN_LANES;
            float *second = first + apart * KERN_LANES;
            const float x = *first, y = *second;
            *first = x * a->cosine[i] - y * a->sine[i];
            *second = y * a->cosine[i] + x * a->sine[i];
        }
    }
}
