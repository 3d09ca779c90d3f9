/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_file.h: GGUF files made byte by byte, for tests of what may be in them. Keys and tensors are appended in turn; tensors' data follow each
 * other at multiples of 32 unless their numbers are set wrong on purpose.
 */
#ifndef LATH_TESTS_GGUF_FILE_H
#define LATH_TESTS_GGUF_FILE_H

#include "base/buf.h"
#include "store/gguf.h"

typedef struct gguf_file_maker {
    buf keys, tensors, data;
    uint64_t n_keys, n_tensors;
} gguf_file_maker;

void gguf_make(gguf_file_maker *f);
void gguf_make_int(gguf_file_maker *f, const char *key, gguf_kind kind, int64_t value);
void gguf_make_u32(gguf_file_maker *f, const char *key, uint32_t value);
void gguf_make_f32(gguf_file_maker *f, const char *key, float value);
void gguf_make_text(gguf_file_maker *f, const char *key, const char *value);
/* An array of n numbers of a kind of integer (or bool), or of texts. */
void gguf_make_ints(gguf_file_maker *f, const char *key, gguf_kind kind, const int64_t *values, size_t n);
void gguf_make_texts(gguf_file_maker *f, const char *key, const char *const *values, size_t n);
void gguf_make_f32s(gguf_file_maker *f, const char *key, const float *values, size_t n);
/* rows x cols (rows 0: a vector of cols); data may be NULL: zeros. */
void gguf_make_tensor(gguf_file_maker *f, const char *name, uint32_t gguf_type, uint64_t rows, uint64_t cols,
                      const void *data);
/* The file into dir/name; f is empty then. */
void gguf_make_write(gguf_file_maker *f, const char *dir, const char *name);
/* The same as malloc'd bytes. */
uint8_t *gguf_make_bytes(gguf_file_maker *f, size_t *n);

#endif
