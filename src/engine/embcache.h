/* SPDX-License-Identifier: Apache-2.0
 *
 * embcache.h: vectors that were computed before. A cache has spaces: all vectors of one space were made by one model
 * with one set of settings, by the same instructions. Within a space the key is the sequence of token ids (and how many
 * of them pooling leaves out); ids are compared on every hit, hashes only find the place.
 *
 *     memory   embcache.c        at most max_entries, of all spaces together
 *     disk     embcache_disk.c   one SQLite file of one model; optional; every vector that is added goes there too
 *     records  embcache_records.c   export and import of a space
 */
#ifndef LATH_ENGINE_EMBCACHE_H
#define LATH_ENGINE_EMBCACHE_H

#include <stdbool.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "lath/lath.h"

/* One text and, where it is known, its vector. Borrowed from the caller. */
typedef struct embcache_item {
    const int32_t *ids;  /* [n] */
    int64_t n, skip;     /* skip: leading tokens that pooling leaves out */
    const float *vector; /* [dim of the space] */
} embcache_item;

/* Lives as long as its cache; immutable. */
typedef struct embcache_space {
    struct embcache_space *next;
    lath_cache *cache;
    uint64_t model[2];
    uint64_t seed; /* of the hashes of its keys */
    int64_t dim;
    int64_t disk_id;
    size_t bytes;    /* of this struct */
    char settings[]; /* text; names everything beside model and ids that decides bits */
} embcache_space;

/* The space of that model and settings, made when it is new. Any thread. LATH_ERR_FORMAT: the file is of another model.
 */
lath_status embcache_space_get(lath_cache *c, const uint64_t model[2], const char *settings, int64_t dim,
                               embcache_space **out, lath_error *err);
/* Copies the vector of the text's ids into vector: [dim] when there is one. Any thread; allocates nothing when it is in
 * memory. LATH_ERR_FORMAT: the file is damaged; LATH_ERR_IO; LATH_ERR_NOMEM. */
lath_status embcache_find(embcache_space *s, const embcache_item *text, float *vector, bool *found, lath_error *err);
/* Keeps n vectors; on disk they are one transaction. What is there already stays. Any thread. */
lath_status embcache_add(embcache_space *s, const embcache_item *items, size_t n, lath_error *err);

/* Where a key lies: lo finds it, hi seeds the checksum of its vector. */
hash128 embcache_hash(const embcache_space *s, const embcache_item *text);
uint64_t embcache_sum(const void *vector, size_t bytes, hash128 key);

/* Called for every item of a space. */
typedef lath_status (*embcache_visit)(void *ctx, const embcache_item *item, lath_error *err);
/* Of the file where there is one, else of memory in the order of adding. Lookups and additions of others wait. */
lath_status embcache_each(embcache_space *s, embcache_visit visit, void *ctx, lath_error *err);

const lath_allocator *embcache_allocator(const embcache_space *s);

/* Of a record file (store/embrecords.h); *n is the number of records. */
lath_status embcache_export(embcache_space *s, const char *path, uint64_t *n, lath_error *err);
lath_status embcache_import(embcache_space *s, const char *path, uint64_t *n, lath_error *err);

#endif
