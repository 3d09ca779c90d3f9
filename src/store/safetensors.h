/* SPDX-License-Identifier: Apache-2.0
 * safetensors.h: reader of one .safetensors file. Layout: u64 little-endian header length N, N bytes of JSON
 * {"name": {"dtype": "F32", "shape": [2,3], "data_offsets": [begin, end]}, "__metadata__": {str: str}}, then the data section.
 * Refused, naming file and tensor: header over 100 MB or over the file, bad JSON, duplicate names, unknown dtype, rank over 8, negative or
 * overflowing shapes, end - begin != elements * size, ranges that overlap, leave a gap or do not cover the data section exactly. */
#ifndef LATH_STORE_SAFETENSORS_H
#define LATH_STORE_SAFETENSORS_H

#include "base/file.h"
#include "base/map.h"
#include "tensor/tensor.h"

typedef struct safetensors safetensors;

lath_status safetensors_open(const lath_allocator *alloc, const char *path, file_mode mode, safetensors **out,
                             lath_error *err);
void safetensors_close(safetensors *st); /* NULL is allowed */
int32_t safetensors_count(const safetensors *st);
/* In the order of the data section (offset order). Borrowed. */
const tensor *safetensors_at(const safetensors *st, int32_t i);
/* NULL when there is none. */
const tensor *safetensors_find(const safetensors *st, const char *name);
const file_map *safetensors_file(const safetensors *st);
/* Bytes held beside the file. */
size_t safetensors_private_bytes(const safetensors *st);

#endif
