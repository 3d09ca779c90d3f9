/* SPDX-License-Identifier: Apache-2.0
 *
 * embrecords.h: vectors of token sequences in one file, written once and read as a whole (docs/formats/embcache.md):
 *
 *     | header 128 | records: [hash u64][dim u32][f32 x dim] | keys: [skip u32][n u32][i32 x n] | settings, text |
 *
 * The hash of a record is FNV-1a, 64 bits, over the little-endian bytes of its ids. It names the record for others; a
 * reader here goes by the ids. All vectors are of one model and one set of settings.
 */
#ifndef LATH_STORE_EMBRECORDS_H
#define LATH_STORE_EMBRECORDS_H

#include "base/file.h"

typedef struct embrecord {
    const int32_t *ids; /* [n] */
    uint32_t n, skip;
    const float *vector; /* [dim] */
} embrecord;

/* FNV-1a 64 over the bytes of n ids. */
uint64_t embrecords_hash(const int32_t *ids, size_t n);

typedef struct embrecords_writer embrecords_writer;

/* Writes to a temporary file beside path. The keys are held in memory until the end. */
lath_status embrecords_create(const lath_allocator *alloc, const char *path, const uint64_t model[2],
                              const char *settings, uint32_t dim, embrecords_writer **out, lath_error *err);
lath_status embrecords_add(embrecords_writer *w, const embrecord *r, lath_error *err);
/* Finishes the file and renames it to its place. Releases w whatever the result. */
lath_status embrecords_commit(embrecords_writer *w, lath_error *err);
void embrecords_abort(embrecords_writer *w); /* NULL is allowed */

/* A file that was found sound: sizes, checksums, every record's hash and length, every number finite. */
typedef struct embrecords {
    file_map file;
    uint64_t model[2], count;
    uint32_t dim;
    const char *settings; /* [settings_len], in the file */
    size_t settings_len;
    const uint8_t *record, *key; /* of the next one */
    uint64_t at;
} embrecords;

/* LATH_ERR_NOT_FOUND; LATH_ERR_FORMAT: foreign, cut or damaged. */
lath_status embrecords_open(const lath_allocator *alloc, const char *path, embrecords *out, lath_error *err);
/* The next record, or false behind the last. Borrowed until the file is closed. */
bool embrecords_next(embrecords *r, embrecord *out);
void embrecords_close(embrecords *r); /* a zeroed one is allowed */

#endif
