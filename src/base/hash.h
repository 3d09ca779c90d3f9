/* SPDX-License-Identifier: Apache-2.0
 * hash.h: XXH3 (the one owner of xxhash.h). Not cryptographic. */
#ifndef LATH_BASE_HASH_H
#define LATH_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct hash128 {
    uint64_t lo, hi;
} hash128;

uint64_t hash_64(const void *p, size_t n);
hash128 hash_128(const void *p, size_t n, uint64_t seed);

#endif
