/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_split.h: models in several GGUF files, NAME-00001-of-00003.gguf and so on. Each part says in its keys which one it is (split.no, from 0),
 * how many there are (split.count) and how many tensors all have (split.tensors.count); the first has the metadata of the model, too.
 */
#ifndef LATH_STORE_GGUF_SPLIT_H
#define LATH_STORE_GGUF_SPLIT_H

#include "base/arena.h"
#include "store/gguf.h"

typedef struct gguf_split {
    int32_t no, count; /* 0 of 1: all is in this file */
    int64_t n_tensors; /* of all parts; -1: not said */
} gguf_split;

lath_status gguf_split_read(const gguf *g, gguf_split *out, lath_error *err);
/* The path of part `no` beside that of `g`, whose name must be that of part s->no. */
lath_status gguf_split_path(arena *a, const gguf *g, const gguf_split *s, int32_t no, const char **out,
                            lath_error *err);
/* Opens the file that has the model's metadata: the one at `path`, or the first part where that is a later one. */
lath_status gguf_open_first(const lath_allocator *alloc, const char *path, file_mode mode, gguf **out, lath_error *err);

#endif
