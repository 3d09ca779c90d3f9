/* SPDX-License-Identifier: Apache-2.0
 * file.h: files in. A mapped file that shrinks later raises SIGBUS on access: programs catch it; FILE_COPY avoids it. */
#ifndef LATH_BASE_FILE_H
#define LATH_BASE_FILE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"

typedef enum file_mode { FILE_MAP, FILE_COPY } file_mode;

typedef struct file_map {
    const lath_allocator *alloc;
    const uint8_t *data; /* NULL when size == 0 */
    size_t size;
    file_mode mode;
    char *path; /* owned copy of the path as given */
} file_map;

/* Opens a regular file read-only. LATH_ERR_NOT_FOUND: absent, no permission, a directory, a pipe (the message says which). */
lath_status file_map_open(file_map *m, const lath_allocator *alloc, const char *path, file_mode mode, lath_error *err);
void file_map_close(file_map *m); /* a zeroed map is allowed */

/* The n bytes at p, which lie in a mapped file, are not needed soon: they count for this process no longer. */
void file_forget(const void *p, size_t n);
/* They are needed soon: the system may read them ahead. */
void file_ahead(const void *p, size_t n);
/* Whole file into b (cleared first). LATH_ERR_LIMIT when larger than `max`. */
lath_status file_read(buf *b, const char *path, size_t max, lath_error *err);
/* Something of this name is there, of whatever kind: false only when the system says that there is nothing. */
bool file_exists(const char *path);
bool file_is_regular(const char *path);
/* Bytes of a regular file that can be read. Fails as file_map_open does. */
lath_status file_size(const char *path, uint64_t *size, lath_error *err);
bool file_is_dir(const char *path);
/* "dir/name" into b, terminated. */
void file_join(buf *b, const char *dir, const char *name);
/* The same in the arena; NULL when there is no memory. */
char *file_join_in(arena *a, const char *dir, const char *name);

#endif
