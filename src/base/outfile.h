/* SPDX-License-Identifier: Apache-2.0
 * outfile.h: files out, whole or not at all. What is written goes to a temporary file beside the target; outfile_commit
 * renames it, outfile_abort removes it, so nobody ever sees half a file. A symbolic link is followed, the rights of a
 * file that is replaced are kept. A target that is no regular file (a pipe, a device) cannot be renamed over: it is
 * written directly (`direct`), and cannot be written at an offset. */
#ifndef LATH_BASE_OUTFILE_H
#define LATH_BASE_OUTFILE_H

#include <stdbool.h>

#include "base/alloc.h"

typedef struct outfile {
    const lath_allocator *alloc;
    char *path; /* of the target, links resolved; owned */
    char *temp; /* of the temporary file; NULL when direct; owned */
    int fd;     /* -1: not open */
    bool direct;
} outfile;

/* LATH_ERR_IO when the target or its folder cannot be written, LATH_ERR_NOMEM. */
lath_status outfile_create(outfile *f, const lath_allocator *alloc, const char *path, lath_error *err);
/* LATH_ERR_IO: the disk is full, the pipe is closed. */
lath_status outfile_write(outfile *f, const void *p, size_t n, lath_error *err);
/* Not when direct. Does not move the place of outfile_write. */
lath_status outfile_write_at(outfile *f, uint64_t offset, const void *p, size_t n, lath_error *err);
/* The file will have n bytes: makes sure of the room for them, so that a full disk is found before the work. Where the file system does not say, and when
 * direct, it does nothing. LATH_ERR_IO. */
lath_status outfile_reserve(outfile *f, uint64_t n, lath_error *err);
/* Closes and renames; on failure the temporary file is removed and the target is as it was. Releases everything either
 * way. */
lath_status outfile_commit(outfile *f, lath_error *err);
/* Removes the temporary files beside `path` whose process ended without doing so (it was killed). A temporary file is
 * locked (flock) while its process lives; where locks do not work, nothing is removed. */
void outfile_sweep(const char *path);
/* Removes the temporary file; a zeroed, committed or aborted outfile is allowed. */
void outfile_abort(outfile *f);

#endif
