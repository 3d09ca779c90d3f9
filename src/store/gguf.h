/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf.h: reader of one GGUF file, version 2 or 3, little-endian (docs of ggml, gguf.md):
 *
 *     magic version | n_tensors n_keys | keys and values | name, shape, type, offset of each tensor | pad | data
 *
 * Everything before the data is checked by gguf_open, so what is read later is sound. Refused, naming file, key or tensor:
 * counts and strings over their limits or over the file, unknown value and element types, arrays nested too deep,
 * duplicates, an alignment that is no power of two, shapes that overflow or are no whole number of blocks, tensors that
 * are unaligned, overlap or are cut.
 */
#ifndef LATH_STORE_GGUF_H
#define LATH_STORE_GGUF_H

#include "base/file.h"
#include "tensor/dtype.h"

enum {
    GGUF_MAX_RANK = 4,
    GGUF_MAX_DEPTH = 4, /* of arrays in arrays */
    GGUF_MAX_NAME = 1024,
    GGUF_MAX_STRING = 64 << 20,
    GGUF_MAX_TENSORS = 1 << 20,
    GGUF_MAX_KEYS = 1 << 16
};

/* As numbered in the file. */
typedef enum gguf_kind {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_KIND_COUNT
} gguf_kind;

/* A value, borrowed from the file. By kind: u (unsigned and bool), i (signed), f (both floats), the text, the array. */
typedef struct gguf_value {
    const char *key; /* terminated; NULL for an element of an array */
    gguf_kind kind;
    union {
        uint64_t u;
        int64_t i;
        double f;
        struct {
            const char *data; /* not terminated */
            size_t len;
        } text;
        struct {
            const uint8_t *data; /* of the first element, any alignment */
            uint64_t count;
            gguf_kind kind; /* of the elements */
        } array;
    } as;
} gguf_value;

typedef struct gguf_tensor {
    const char *name; /* terminated */
    dtype type;
    int32_t rank;
    uint64_t dim[GGUF_MAX_RANK]; /* as in the file: the row length first; 1 from rank on */
    const uint8_t *data;
    size_t bytes;
} gguf_tensor;

typedef struct gguf gguf;

lath_status gguf_open(const lath_allocator *alloc, const char *path, file_mode mode, gguf **out, lath_error *err);
void gguf_close(gguf *g); /* NULL is allowed */
const file_map *gguf_file(const gguf *g);
uint32_t gguf_version(const gguf *g);
size_t gguf_alignment(const gguf *g);

/* The keys in file order; NULL when there is none of that name. */
size_t gguf_n_keys(const gguf *g);
const gguf_value *gguf_key_at(const gguf *g, size_t i);
const gguf_value *gguf_get(const gguf *g, const char *key);
/* Elements of an array one after the other: *at begins as array.data and moves on. Call array.count times at most. */
gguf_value gguf_next(const gguf_value *array, const uint8_t **at);

/* The value as a whole number from 0 to `most`: integers of any width, and bools. */
bool gguf_whole(const gguf_value *v, int64_t most, int64_t *out);

/* The tensors in file order; NULL when there is none of that name. */
size_t gguf_n_tensors(const gguf *g);
const gguf_tensor *gguf_tensor_at(const gguf *g, size_t i);
const gguf_tensor *gguf_find(const gguf *g, const char *name);

/* Bytes of the file before the first tensor's name: counts, then the keys. */
size_t gguf_keys_bytes(const gguf *g);
/* Bytes of the file before the data of its tensors. */
size_t gguf_header_bytes(const gguf *g);
/* Bytes held beside the file. */
size_t gguf_private_bytes(const gguf *g);
/* The path names a GGUF file. */
bool gguf_is_name(const char *path);

#endif
