/* SPDX-License-Identifier: Apache-2.0
 *
 * vecindex.h: the vector index file: the vectors of a corpus, mapped and searched where they lie
 * (docs/formats/index.md). Layout:
 *
 *     0      header, 256 bytes, with its own checksum
 *     256    vectors   [n][d] f32 row-major, no gaps
 *     ...    zeros to a multiple of 64
 *     ...    spans     [n] {u64 offset, u64 len}: where the text of each row lies in the corpus file
 *
 * All little-endian. Everything behind the header is under one XXH3-128. The file says what it was made from
 * (vecindex_key); who opens it compares. A file is written under a temporary name and renamed: there is no such thing
 * as a half-written index.
 */
#ifndef LATH_STORE_VECINDEX_H
#define LATH_STORE_VECINDEX_H

#include "base/file.h"

enum { VECINDEX_ALIGN = 64, VECINDEX_HEADER = 256, VECINDEX_F32 = 1 };

/* What an index was made from. */
typedef struct vecindex_key {
    uint64_t model[2];
    uint64_t settings;
    uint64_t corpus[2];
    uint64_t corpus_bytes;
} vecindex_key;

/* Bytes of a text in the corpus file. */
typedef struct vecindex_span {
    uint64_t offset, len;
} vecindex_span;

typedef struct vecindex_writer vecindex_writer;

/* d >= 1. LATH_ERR_USAGE, _IO, _NOMEM. */
lath_status vecindex_create(const lath_allocator *alloc, const char *path, const vecindex_key *key, int64_t d,
                            vecindex_writer **out, lath_error *err);
/* Appends n rows. vectors: [n, d]; spans: [n], each inside key->corpus_bytes (LATH_ERR_USAGE). */
lath_status vecindex_add(vecindex_writer *w, const float *vectors, const vecindex_span *spans, size_t n,
                         lath_error *err);
/* The temporary file, for a signal handler that has to remove it; lives as long as the writer. */
const char *vecindex_temp_path(const vecindex_writer *w);
/* Finishes and renames. Releases w whatever the result. */
lath_status vecindex_commit(vecindex_writer *w, lath_error *err);
void vecindex_abort(vecindex_writer *w); /* NULL is allowed */

typedef struct vecindex {
    file_map file;
    uint64_t n;
    int64_t d;
    const float *rows;          /* [n, d], 64-byte aligned */
    const vecindex_span *spans; /* [n], each inside key.corpus_bytes */
    vecindex_key key;
} vecindex;

/* Checks everything: magic, version, sizes, checksums, spans. LATH_ERR_NOT_FOUND; LATH_ERR_FORMAT when foreign, cut or
 * damaged. */
lath_status vecindex_open(const lath_allocator *alloc, const char *path, file_mode mode, vecindex *out,
                          lath_error *err);
void vecindex_close(vecindex *x); /* a zeroed one is allowed */

#endif
