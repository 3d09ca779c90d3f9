/* SPDX-License-Identifier: Apache-2.0
 *
 * vecindex_format.h: the header of a vector index file as it lies on disk, and the sizes that follow from it; shared by
 * the reader and the writer. docs/formats/index.md is its description.
 */
#ifndef LATH_STORE_VECINDEX_FORMAT_H
#define LATH_STORE_VECINDEX_FORMAT_H

#include "store/vecindex.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the vector index is read in place and is little-endian"
#endif

#define VECINDEX_MAGIC "LATHVIX1"
enum { VECINDEX_VERSION = 2 };

typedef struct vecindex_header {
    char magic[8];
    uint32_t version;      /* VECINDEX_VERSION */
    uint32_t header_bytes; /* 256 */
    uint32_t type;         /* vecindex_type */
    uint32_t flags;        /* 0 */
    uint64_t n, d;
    uint64_t model[2];
    uint64_t settings;
    uint64_t corpus[2];
    uint64_t corpus_bytes;
    uint64_t vectors_offset, vectors_bytes;
    uint64_t entries_offset, entries_bytes;
    uint64_t file_bytes;
    uint64_t checks_hash[2]; /* XXH3-128 of the checks, low word first */
    uint64_t row_bytes, block_rows;
    uint64_t checks_offset, checks_bytes;
    uint8_t reserved[72]; /* 0 */
    uint64_t header_hash; /* XXH3-64 of the 248 bytes before */
} vecindex_header;

_Static_assert(sizeof(vecindex_header) == VECINDEX_HEADER, "the header is 256 bytes on disk");
_Static_assert(offsetof(vecindex_header, n) == 24, "n at 24");
_Static_assert(offsetof(vecindex_header, corpus_bytes) == 80, "corpus_bytes at 80");
_Static_assert(offsetof(vecindex_header, file_bytes) == 120, "file_bytes at 120");
_Static_assert(offsetof(vecindex_header, row_bytes) == 144, "row_bytes at 144");
_Static_assert(offsetof(vecindex_header, header_hash) == 248, "header_hash is last");
_Static_assert(sizeof(vecindex_entry) == 32 && offsetof(vecindex_entry, text) == 16,
               "an entry is {u64 offset, u64 len, u64 text[2]} on disk");
_Static_assert(sizeof(vecindex_checks) == 16, "the checks of a block are two u64 on disk");

/* Fills what follows from type, n and d; false when one is out of range or sizes overflow. */
bool vecindex_lay_out(vecindex_header *h);
/* The number of blocks of n rows. */
uint64_t vecindex_blocks(uint64_t n, uint64_t block_rows);

#endif
