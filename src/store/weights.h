/* SPDX-License-Identifier: Apache-2.0
 *
 * weights.h: the weight source of a model: of a directory model.safetensors, or the shards that model.safetensors.index.json
 * names; a vindex, which has all but the matrices of the FFNs; or a GGUF file with, where it is one part of several, the others (gguf_split.h). Everything above asks it by tensor name and does not see
 * which file a tensor is in, nor of which kind.
 *
 * A shard is opened (mapped) when the first tensor of it is asked for, and kept. Refused, naming file and field: an index
 * whose weight_map leaves the directory (absolute paths, "..", a slash), a shard that is missing, empty, or has other
 * tensors than the index says; so one tensor in two shards, too. Links inside the directory are followed (hub caches are made of
 * links).
 */
#ifndef LATH_STORE_WEIGHTS_H
#define LATH_STORE_WEIGHTS_H

#include "store/gguf.h"
#include "store/safetensors.h"
#include "store/vindex.h"

typedef struct weights weights;

/* path: the directory, or any part of a GGUF model. LATH_ERR_NOT_FOUND when it has neither file; LATH_ERR_UNSUPPORTED for pickles and others, named. */
lath_status weights_open(const lath_allocator *alloc, const char *path, file_mode mode, weights **out, lath_error *err);
/* The same of a GGUF file whatever its name; of a split one it is the first part. */
lath_status weights_open_file(const lath_allocator *alloc, const char *path, file_mode mode, weights **out,
                              lath_error *err);
void weights_close(weights *w); /* NULL is allowed */

/* What leads messages about the whole: the path of the single file, of the index, or of the first part. */
const char *weights_name(const weights *w);
/* The number of tensors in all files. */
int32_t weights_count(const weights *w);
/* Of them, those whose names begin so; opens nothing. */
int32_t weights_count_named(const weights *w, const char *prefix);

/* *out = the tensor, or NULL when no file has it. Opens its shard if need be: not for two threads at once. */
lath_status weights_find(weights *w, const char *name, const tensor **out, lath_error *err);
/* The GGUF file that has the model's metadata, and whose names tensors have; NULL: those of a directory. */
const gguf *weights_gguf(const weights *w);
/* NULL: the source is no vindex. */
vindex *weights_vindex(const weights *w);
/* The path of the file that a tensor of this source is in, borrowed. */
const char *weights_file_of(const weights *w, const tensor *t);
/* Tensors that have been bound to something; info lists the others. */
void weights_mark_used(weights *w, const tensor *t);

/* Opens every shard: for listings. */
lath_status weights_open_all(weights *w, lath_error *err);
/* Tensor i of 0 .. count - 1, file by file in offset order (of GGUF in the order of the file); NULL while its shard is closed (then it is not used). */
const tensor *weights_at(const weights *w, int32_t i, bool *used);
/* The files, in that order; file i when a tensor of it is used, else NULL. */
int32_t weights_n_files(const weights *w);
const file_map *weights_file_in_use(const weights *w, int32_t i);
/* Bytes of all files (of the directory's entries: no shard is opened for it); bytes held beside them. */
uint64_t weights_file_bytes(const weights *w);
size_t weights_private_bytes(const weights *w);
/* The path of the mapped file that holds this address, or NULL. Async-signal-safe. */
const char *weights_file_at(const weights *w, const void *address);

#endif
