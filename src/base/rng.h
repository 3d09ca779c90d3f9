/* SPDX-License-Identifier: Apache-2.0
 * rng.h: reproducible random numbers: xoshiro256++ (Blackman & Vigna, "Scrambled linear pseudorandom number generators", 2021), its state filled from
 * one 64-bit seed by splitmix64 as the authors advise. The same seed gives the same numbers on every machine. Not for secrets. */
#ifndef LATH_BASE_RNG_H
#define LATH_BASE_RNG_H

#include <stdint.h>

typedef struct rng {
    uint64_t s[4];
} rng;

void rng_seed(rng *r, uint64_t seed); /* any seed, 0 too */
uint64_t rng_next(rng *r);
/* Uniform in [0, 1): the upper 53 bits, so never 1. */
double rng_uniform(rng *r);

#endif
