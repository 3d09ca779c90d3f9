/* SPDX-License-Identifier: Apache-2.0
 * kern_ref_rope.c: rotary position embedding (Su et al. 2021, "RoFormer", eq. 34), lane by lane. */
#include "kern/ref/kern_ref.h"

void kern_ref_rope(const kern_rope_args *a)
{
    const int64_t step = a->interleaved ? 2 : 1, apart = a->interleaved ? 1 : a->n_pairs;
    for (int64_t h = 0; h < a->n_heads; h++) {
        float *head = a->x + h * a->head_dim * a->lanes;
        for (int64_t i = 0; i < a->n_pairs * a->lanes; i++) {
            float *first = head + i / a->lanes * step * a->lanes + i % a->lanes;
            float *second = first + apart * a->lanes;
            const float x = *first, y = *second;
            *first = x * a->cosine[i] - y * a->sine[i];
            *second = y * a->cosine[i] + x * a->sine[i];
        }
    }
}
