/* SPDX-License-Identifier: Apache-2.0
 *
 * weights_shard.h: what a weight source is made of, behind weights.h: files, each with a range of the tensors' numbers. weights.c has the
 * interface and directories of safetensors, weights_gguf.c GGUF files,
 * weights_vindex.c vindexes.
 */
#ifndef LATH_STORE_WEIGHTS_SHARD_H
#define LATH_STORE_WEIGHTS_SHARD_H

#include "base/arena.h"
#include "base/map.h"
#include "store/weights.h"

typedef struct shard {
    const char *path;
    uint64_t bytes;        /* of the file when the source was opened */
    int32_t first, n;      /* its tensors' numbers: first .. first + n - 1 */
    const tensor *tensors; /* [n]; NULL until a tensor of the file is asked for */
    const file_map *map;   /* as tensors */
    safetensors *st;       /* what is open of the two */
    gguf *gguf;
} shard;

struct weights {
    const lath_allocator *alloc;
    file_mode mode;
    arena memory; /* paths, names, shards, marks; tensors of GGUF files */
    const char *name;
    shard *shards; /* by name; those of GGUF, and a single file, are always open */
    int32_t n_shards, count;
    map by_name; /* tensor -> shard with an index, tensor -> number of GGUF files and vindexes */
    bool has_index;
    vindex *vindex;
    bool *used; /* [count] */
};

/* The file at `path` and, where it is one part of several, the others. w is empty but for alloc and mode. */
lath_status weights_open_gguf(weights *w, const char *path, lath_error *err);
/* The same of a vindex at `dir`: its tensors, and its other files as files without any. */
lath_status weights_open_vindex(weights *w, const char *dir, lath_error *err);

#endif
