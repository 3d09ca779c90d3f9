/* SPDX-License-Identifier: Apache-2.0
 * map.h: hash map from byte strings to uint64 values. Keys are borrowed: they must outlive the map. Open addressing, XXH3.
 * Readers may share a map that nobody changes. */
#ifndef LATH_BASE_MAP_H
#define LATH_BASE_MAP_H

#include <stdbool.h>

#include "base/alloc.h"

typedef struct map_slot {
    const char *key; /* NULL: empty */
    uint32_t len, hash;
    uint64_t value;
} map_slot;

typedef struct map {
    const lath_allocator *alloc;
    map_slot *slots;
    size_t n_slots, count; /* n_slots is a power of two or 0 */
} map;

void map_init(map *m, const lath_allocator *alloc);
void map_deinit(map *m);
/* Room for n entries without growing. */
lath_status map_reserve(map *m, size_t n, lath_error *err);
/* Adds key -> value; when the key is there already nothing changes and *existed is set (existed may be NULL). */
lath_status map_add(map *m, const char *key, size_t len, uint64_t value, bool *existed, lath_error *err);
/* As map_add but replaces the value of a key that is there. */
lath_status map_set(map *m, const char *key, size_t len, uint64_t value, lath_error *err);
/* true and *value (value may be NULL) when the key is there. */
bool map_find(const map *m, const char *key, size_t len, uint64_t *value);

#endif
