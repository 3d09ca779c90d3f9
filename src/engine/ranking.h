/* SPDX-License-Identifier: Apache-2.0
 *
 * ranking.h: the best of many numbers without sorting all of them. A key is a value and its id as one integer that orders them: the
 * smaller key has the larger value, of equal values the lower id. Keys of one set are all different, so every order is total.
 */
#ifndef LATH_ENGINE_RANKING_H
#define LATH_ENGINE_RANKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint64_t rank_key;

/* v is no NaN; -0 and 0 are equal. */
static inline rank_key rank_key_of(float v, int32_t id)
{
    uint32_t bits;
    v += 0.0f;
    memcpy(&bits, &v, sizeof(bits));
    bits = bits & 0x80000000u ? bits : ~bits & 0x7FFFFFFFu; /* falls where v rises */
    return (uint64_t)bits << 32 | (uint32_t)id;
}

static inline int32_t rank_id(rank_key key) { return (int32_t)(uint32_t)key; }

/* keys[0 .. k) := the k smallest, in no order. Expected time O(n). k <= n. */
void rank_select(rank_key *keys, size_t n, size_t k);
/* Smallest first. */
void rank_sort(rank_key *keys, size_t n);

/* The weighted median's relative: the shortest run of smallest keys whose weights come to `target` (past: to more than it). weights:
 * by id. keys[0 .. result) := that run, its largest key last, the others in no order; n when all weights together do not come to it.
 * *mass := the sum of the run's weights in f64. Expected time O(n), n >= 1, target > 0 or
 * past and target >= 0: then the run is not empty. */
size_t rank_crossing(rank_key *keys, size_t n, const float *weights, double target, bool past, double *mass);

#endif
