/* SPDX-License-Identifier: Apache-2.0
 *
 * embcache_disk.h: the cache's file (docs/formats/embcache.md). A handle is for one thread at a time; several processes
 * and handles may use one file. A file that is foreign, cut or damaged is an error and is left as it is.
 */
#ifndef LATH_ENGINE_EMBCACHE_DISK_H
#define LATH_ENGINE_EMBCACHE_DISK_H

#include "engine/embcache.h"

typedef struct embdisk embdisk;

/* Opens path, or makes it. wait_ms: how long a locked file is waited for. LATH_ERR_NOT_FOUND: no regular file;
 * LATH_ERR_FORMAT: foreign, cut or damaged; LATH_ERR_IO: cannot be made, written or locked. */
lath_status embdisk_open(const lath_allocator *alloc, const char *path, int32_t wait_ms, embdisk **out,
                         lath_error *err);
void embdisk_close(embdisk *d); /* NULL is allowed */

/* Binds the file to the space's model when it has none yet (LATH_ERR_FORMAT when it has another), and sets
 * s->disk_id. */
lath_status embdisk_join(embdisk *d, embcache_space *s, lath_error *err);
lath_status embdisk_find(embdisk *d, const embcache_space *s, const embcache_item *text, hash128 key, float *vector,
                         bool *found, lath_error *err);
/* All or none. */
lath_status embdisk_add(embdisk *d, const embcache_space *s, const embcache_item *items, size_t n, lath_error *err);
lath_status embdisk_each(embdisk *d, const embcache_space *s, embcache_visit visit, void *ctx, lath_error *err);

#endif
