/* SPDX-License-Identifier: Apache-2.0
 * hash.c: the owner of xxhash.h. */
#include "base/hash.h"

#include <xxhash.h>

uint64_t hash_64(const void *p, size_t n) { return XXH3_64bits(p, n); }

hash128 hash_128(const void *p, size_t n, uint64_t seed)
{
    XXH128_hash_t h = XXH3_128bits_withSeed(p, n, seed);
    return (hash128){h.low64, h.high64};
}
