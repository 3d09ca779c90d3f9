/* SPDX-License-Identifier: Apache-2.0
 *
 * tracefile_layout.h: headers and index entries of the files of tracefile.h as they stand on disk, little-endian.
 */
#ifndef LATH_STORE_TRACEFILE_LAYOUT_H
#define LATH_STORE_TRACEFILE_LAYOUT_H

#include "store/tracefile.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "headers and vectors are read in place and are little-endian"
#endif

typedef struct trac_header {
    char magic[4];
    uint32_t version; /* 1: 3 parts; 2: as many as `parts` says */
    uint32_t d, n_layers, n_records;
    uint32_t parts; /* 0 in version 1 */
    uint8_t zero[40];
} trac_header;

typedef struct bndx_header {
    char magic[4];
    uint32_t version; /* 1 */
    uint32_t d, window, n_records, n_tokens;
    uint8_t zero[40];
} bndx_header;

typedef struct ctxt_header {
    char magic[4];
    uint32_t version; /* 1 */
    uint32_t d, n_layers, window;
    uint8_t tier, n_critical, pad[2];
    uint8_t critical[TRACEFILE_CRITICAL];
    uint32_t n_records, n_tokens;
    uint8_t zero[88];
} ctxt_header;

typedef union tracefile_header {
    char magic[4];
    trac_header trac;
    bndx_header bndx;
    ctxt_header ctxt;
} tracefile_header;

typedef struct bndx_entry {
    uint32_t begin, n; /* tokens */
    uint32_t offset;   /* of the record, from the file's first byte */
    uint32_t zero;
} bndx_entry;

typedef struct ctxt_entry {
    uint32_t begin, n;
    uint64_t offset;
    uint64_t zero;
} ctxt_entry;

_Static_assert(sizeof(trac_header) == 64 && sizeof(bndx_header) == 64, "headers of 64 bytes");
_Static_assert(sizeof(ctxt_header) == 128, "a header of 128 bytes");
_Static_assert(offsetof(ctxt_header, critical) == 24 && offsetof(ctxt_header, n_records) == 32, "no gaps");
_Static_assert(sizeof(bndx_entry) == 16 && sizeof(ctxt_entry) == 24, "entries of 16 and 24 bytes");

typedef struct tracefile_layout {
    char magic[5];
    const char *what;
    size_t header, entry; /* bytes; entry 0: no index */
} tracefile_layout;
extern const tracefile_layout tracefile_layouts[];

/* What a header says, and where things are. */
typedef struct tracefile_place {
    tracefile_shape shape;
    uint32_t n_records, n_tokens;
    size_t record; /* bytes */
    uint64_t data; /* where the first record is */
    uint64_t end;  /* of the last */
} tracefile_place;

/* Sizes of p from its shape and n_records; false when they overflow or there is no such shape. */
bool tracefile_lay_out(tracefile_place *p);
/* Of a file's bytes (all of its header and index; `size` is the whole file's) into p. `most` of the shape is found from the index. A file that is longer than p->end is sound to here. */
lath_status tracefile_parse(const char *path, tracefile_kind kind, const uint8_t *bytes, size_t size,
                            tracefile_place *p, lath_error *err);
void tracefile_put_header(const tracefile_place *p, tracefile_header *h);

#endif
