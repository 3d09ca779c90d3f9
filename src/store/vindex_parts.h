/* SPDX-License-Identifier: Apache-2.0
 *
 * vindex_parts.h: what a vindex is made of, behind vindex.h: vindex_text.c reads and writes index.json, vindex.c opens the files that it lists.
 */
#ifndef LATH_STORE_VINDEX_PARTS_H
#define LATH_STORE_VINDEX_PARTS_H

#include "store/vindex.h"

/* A file that index.json lists: first the data files that there are, then copies of others. */
typedef struct vindex_listed {
    const char *name;
    uint64_t bytes;
    hash128 hash;
    int32_t kind; /* vindex_file; -1: a copy */
    file_map map; /* of a data file, once open */
} vindex_listed;

typedef struct vindex_layer {
    int64_t features;
    int32_t experts;
    tensor rows
        [VINDEX_TENSORS]; /* by vindex_file; rank 0: none. Tokens are a row of 2 VINDEX_TOP numbers of 4 bytes a feature (DTYPE_U32) */
} vindex_layer;

struct vindex {
    const lath_allocator *alloc;
    arena mem;
    const char *dir, *name;
    vindex_facts facts;
    hash128 hash;
    vindex_layer *layers; /* [n_layers] */
    tensor *tensors;
    int32_t n_tensors;
    vindex_listed *files;
    int32_t n_files;
    int32_t at[VINDEX_N_FILES]; /* number of a data file in files; -1: there is none */
    gguf *meta;
};

extern const char *const vindex_file_names[VINDEX_N_FILES];
extern const vindex_level vindex_file_levels[VINDEX_N_FILES];

/* index.json as text, into an empty index: everything but the files is checked. `sealed`: its last member is the hash of what stands before. Places of
 * tensors are set to `data` offsets of their files (as pointers from NULL), which vindex.c makes addresses. */
lath_status vindex_read_text(vindex *x, const char *text, size_t n, bool sealed, lath_error *err);

/* The text's end. */
enum { VINDEX_HEX = 32, VINDEX_SEAL = 9 + VINDEX_HEX + 3 }; /* ,"seal":"..."}\n */
void vindex_put_seal(buf *b);
void vindex_hex(hash128 h, char out[VINDEX_HEX + 1]);
bool vindex_unhex(const char *s, hash128 *out);

#endif
