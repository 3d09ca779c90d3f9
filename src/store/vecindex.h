/* SPDX-License-Identifier: Apache-2.0
 *
 * vecindex.h: the vector index file: the vectors of a corpus, mapped and searched where they lie
 * (docs/formats/index.md). Layout:
 *
 *     0      header, 256 bytes, with its own checksum
 *     256    vectors   [n] rows of row_bytes: f32, f16, or int8 with a scale
 *     ...    zeros to a multiple of 64
 *     ...    entries   [n] {u64 offset, u64 len, u64 text[2]}: where the text of each row lies in the corpus file, and
 *                      the hash of the text
 *     ...    checks    [blocks] {u64 vectors, u64 entries}: XXH3-64 of what each block of rows has of both
 *
 * All little-endian. Opening reads header and checks; a block of rows is compared with its checksums when it is used
 * for the first time, so that nothing is read twice and nothing unchecked is used. The file says what it was made from
 * (vecindex_key); who opens it compares. A file is written under a temporary name and renamed: there is no such thing
 * as a half-written index.
 */
#ifndef LATH_STORE_VECINDEX_H
#define LATH_STORE_VECINDEX_H

#include <stdatomic.h>

#include "base/file.h"

enum {
    VECINDEX_ALIGN = 64,
    VECINDEX_HEADER = 256,
    VECINDEX_BLOCK_BYTES = 128 << 10, /* of vectors in a block, at most (but a row at least): half an L2 cache */
    VECINDEX_I8_MAX_D = 1 << 20
};

/* Numbers of a row, as the file has them. */
typedef enum vecindex_type {
    VECINDEX_F32 = 1,
    VECINDEX_F16 = 2, /* the nearest binary16 of each number, ties to even */
    VECINDEX_I8 = 3   /* f32 scale, int8 v[d], zeros to a multiple of 4: the number is scale * v */
} vecindex_type;

/* "f32", "f16", "int8". */
const char *vecindex_type_name(vecindex_type type);
/* Bytes of a row of d numbers; 0 when there is no such type or d is out of its range. */
size_t vecindex_row_bytes(vecindex_type type, int64_t d);
/* v: [d] to a row. false when a number has no place in it: not finite, or over what f16 holds. f32 takes all. */
bool vecindex_encode(vecindex_type type, int64_t d, const float *v, void *row);
/* A row to v: [d]. */
void vecindex_decode(vecindex_type type, int64_t d, const void *row, float *v);

/* What an index was made from. */
typedef struct vecindex_key {
    uint64_t model[2];
    uint64_t settings;
    uint64_t corpus[2];
    uint64_t corpus_bytes;
} vecindex_key;

/* The text of a row: its bytes in the corpus file and its hash, the writer's business (0: not known). */
typedef struct vecindex_entry {
    uint64_t offset, len;
    uint64_t text[2];
} vecindex_entry;

typedef struct vecindex_checks {
    uint64_t vectors, entries;
} vecindex_checks;

typedef struct vecindex {
    const lath_allocator *alloc;
    file_map file;
    uint64_t n;
    int64_t d;
    vecindex_type type;
    size_t row_bytes;
    uint64_t block_rows, n_blocks;
    const uint8_t *vectors; /* [n][row_bytes], 64-byte aligned */
    const vecindex_entry *entries;
    const vecindex_checks *checks; /* [n_blocks] */
    atomic_uchar *seen;            /* [n_blocks] bits of what was compared with its checksum */
    vecindex_key key;
} vecindex;

/* Checks magic, version, sizes, and the checksums of header and checks. LATH_ERR_NOT_FOUND; LATH_ERR_FORMAT when
 * foreign, cut or damaged; LATH_ERR_UNSUPPORTED when it is a sound index of an older version, to be made again. */
lath_status vecindex_open(const lath_allocator *alloc, const char *path, file_mode mode, vecindex *out,
                          lath_error *err);
void vecindex_close(vecindex *x); /* a zeroed one is allowed */
/* Before the vectors of a block are used: compares them with their checksum unless that was done. Any thread.
 * LATH_ERR_FORMAT. */
lath_status vecindex_check(const vecindex *x, uint64_t block, lath_error *err);
/* The entry of row < n, checked, and inside key.corpus_bytes. Any thread. LATH_ERR_FORMAT. */
lath_status vecindex_get_entry(const vecindex *x, uint64_t row, vecindex_entry *out, lath_error *err);
/* Checks everything again that is in the file. LATH_ERR_FORMAT. */
lath_status vecindex_verify(const vecindex *x, lath_error *err);

typedef struct vecindex_writer vecindex_writer;

/* Also removes what writers of the same path that were killed have left. LATH_ERR_USAGE for d or type, _IO, _NOMEM. */
lath_status vecindex_create(const lath_allocator *alloc, const char *path, const vecindex_key *key, vecindex_type type,
                            int64_t d, vecindex_writer **out, lath_error *err);
/* Appends n rows. vectors: [n, d]; entries: [n], each inside key->corpus_bytes (LATH_ERR_USAGE). LATH_ERR_INPUT: a
 * vector has no place in the type; err->item is its number. */
lath_status vecindex_add(vecindex_writer *w, const float *vectors, const vecindex_entry *entries, size_t n,
                         lath_error *err);
/* Appends the rows row .. row + n of another index of the same d with new entries: as they are where the type is the
 * same, from f32 as vecindex_add would. LATH_ERR_USAGE for other types; LATH_ERR_FORMAT when they are damaged. */
lath_status vecindex_copy(vecindex_writer *w, const vecindex *from, uint64_t row, const vecindex_entry *entries,
                          size_t n, lath_error *err);
/* The temporary file, for a signal handler that has to remove it; lives as long as the writer. */
const char *vecindex_temp_path(const vecindex_writer *w);
/* Finishes and renames. Releases w whatever the result. */
lath_status vecindex_commit(vecindex_writer *w, lath_error *err);
void vecindex_abort(vecindex_writer *w); /* NULL is allowed */

#endif
