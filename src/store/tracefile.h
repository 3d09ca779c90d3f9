/* SPDX-License-Identifier: Apache-2.0
 *
 * tracefile.h: vectors of d numbers (f32) that were seen in runs, in files that grow at their end (docs/formats/trace.md):
 *
 *     TRAC   | header 64  | record of token 0 | of token 1 | ...             a record: all waypoints of a token
 *     BNDX   | header 64  | index, 16 bytes x most | record 0 | record 1 | ...   a record: the stream at a window's end
 *     CTXT   | header 128 | index, 24 bytes x most | record 0 | record 1 | ...   a record: that and what some layers added
 *
 * A record is `vectors` x d. What a header counts is there: records are written before the index, the index before the header. How long
 * a file is follows from its header and is checked, so a file with a tail, of a writer that was stopped, is refused by readers;
 * the next writer cuts the tail off.
 */
#ifndef LATH_STORE_TRACEFILE_H
#define LATH_STORE_TRACEFILE_H

#include "base/file.h"

typedef enum tracefile_kind { TRACEFILE_TRAC, TRACEFILE_BNDX, TRACEFILE_CTXT } tracefile_kind;

enum {
    TRACEFILE_CRITICAL = 8, /* layers at most that a CTXT file names */
    TRACEFILE_PARTS = 3,    /* vectors of a waypoint: stream, what attention added, what the FFN added */
    TRACEFILE_PARTS_POST =
        5 /* the same where a norm stands behind each sum: stream, attention, its norm's change, FFN, its norm's change */
};

/* What a header says beside how much there is. Fields of other kinds are 0. */
typedef struct tracefile_shape {
    tracefile_kind kind;
    uint32_t d;        /* numbers of a vector */
    uint32_t n_layers; /* TRAC, CTXT */
    uint32_t parts;    /* TRAC */
    uint32_t window;   /* BNDX, CTXT: tokens of a window */
    uint32_t most;     /* BNDX, CTXT: records that the index has room for */
    uint32_t
        tier; /* CTXT: 1: the stream; 2: also what the FFN of each critical layer added; 3: also what attention added */
    uint32_t n_critical;
    uint8_t critical[TRACEFILE_CRITICAL];
} tracefile_shape;

/* Vectors of a record, or 0: there is no such file. */
size_t tracefile_vectors(const tracefile_shape *s);

/* A file that was found sound. */
typedef struct tracefile {
    file_map file;
    tracefile_shape shape;
    size_t vectors;
    uint32_t n_records;
    uint32_t n_tokens; /* TRAC: records; else where the last window ends */
    const uint8_t *data;
} tracefile;

/* LATH_ERR_NOT_FOUND; LATH_ERR_FORMAT: foreign, cut, damaged or of another version. */
lath_status tracefile_open(const lath_allocator *alloc, const char *path, tracefile_kind kind, tracefile *out,
                           lath_error *err);
void tracefile_close(tracefile *f); /* a zeroed one is allowed */
/* Vector v of record i, [d], in the file; NULL: there is none. */
const float *tracefile_get(const tracefile *f, size_t i, size_t v);
/* BNDX, CTXT: the tokens [*begin, *end) of window i; false: there is none. */
bool tracefile_window(const tracefile *f, size_t i, uint32_t *begin, uint32_t *end);
/* BNDX, CTXT: the window that has the token, or -1. */
int64_t tracefile_find(const tracefile *f, uint32_t token);

typedef struct tracefile_writer tracefile_writer;

/* A new file, under a temporary name until tracefile_commit. LATH_ERR_USAGE: there is no such shape. */
lath_status tracefile_create(const lath_allocator *alloc, const char *path, const tracefile_shape *shape,
                             tracefile_writer **out, lath_error *err);
/* Goes on with a file, in place; each tracefile_add is kept when it returns. A tail is cut off first. LATH_ERR_IO: another
 * process writes to it. LATH_ERR_USAGE: its shape is not `want` (NULL: any; `most` is not
 * compared). */
lath_status tracefile_continue(const lath_allocator *alloc, const char *path, tracefile_kind kind,
                               const tracefile_shape *want, tracefile_writer **out, lath_error *err);
const tracefile_shape *tracefile_writer_shape(const tracefile_writer *w);
/* One more record, [vectors, d], all numbers finite. TRAC takes no tokens; else the window has the tokens [begin, begin + n), behind
 * those before. On failure the file is as it was. LATH_ERR_LIMIT: the index is full. */
lath_status tracefile_add(tracefile_writer *w, uint32_t begin, uint32_t n, const float *record, lath_error *err);
/* The file gets its name. Releases w whatever the result. */
lath_status tracefile_commit(tracefile_writer *w, lath_error *err);
void tracefile_abort(tracefile_writer *w); /* NULL is allowed */

#endif
