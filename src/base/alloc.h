/* SPDX-License-Identifier: Apache-2.0
 * alloc.h: calling a lath_allocator. `a` is never NULL inside the library: the engine puts alloc_default() where the user gave none. */
#ifndef LATH_BASE_ALLOC_H
#define LATH_BASE_ALLOC_H

#include "base/error.h"

/* malloc-based (posix_memalign above 16). Static storage, immutable. */
const lath_allocator *alloc_default(void);

/* NULL when out of memory or size == 0. */
void *alloc_bytes(const lath_allocator *a, size_t size, size_t align);
/* alloc_bytes filled with zero, aligned for any type. */
void *alloc_zero(const lath_allocator *a, size_t size);
/* count * size bytes, NULL on overflow; zeroed, aligned for any type. */
void *alloc_array(const lath_allocator *a, size_t count, size_t size);
/* For a table that is read here and there: one of 2 MiB or more lies on large pages where the system has them. Aligned
 * to 64; released with alloc_table_release. */
void *alloc_table(const lath_allocator *a, size_t size);
void alloc_table_release(const lath_allocator *a, void *p, size_t size); /* p may be NULL */
void *alloc_resize(const lath_allocator *a, void *p, size_t old_size, size_t size, size_t align);
/* p may be NULL. */
void alloc_release(const lath_allocator *a, void *p, size_t size);

#endif
