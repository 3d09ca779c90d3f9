/* SPDX-License-Identifier: Apache-2.0
 * arena.h: memory of one lifetime, released at once. Grows by chunks from the allocator; addresses never move. Not thread safe. */
#ifndef LATH_BASE_ARENA_H
#define LATH_BASE_ARENA_H

#include "base/alloc.h"

typedef struct arena_chunk arena_chunk;
typedef struct arena {
    const lath_allocator *alloc;
    arena_chunk *chunks; /* newest first */
    size_t total;        /* bytes taken from the allocator */
} arena;

void arena_init(arena *a, const lath_allocator *alloc);
void arena_deinit(arena *a);
/* Keeps the newest (largest) chunk and makes all of it free again: for scratch that is filled over and over. */
void arena_reset(arena *a);
/* Zeroed, aligned to 16. NULL when out of memory. size 0 gives a valid pointer. */
void *arena_zero(arena *a, size_t size);
/* count * size, checked. */
void *arena_array(arena *a, size_t count, size_t size);
/* Not zeroed; align a power of two <= 64. */
void *arena_bytes(arena *a, size_t size, size_t align);
/* A terminated copy of n bytes. */
char *arena_strdup(arena *a, const char *s, size_t n);

#endif
