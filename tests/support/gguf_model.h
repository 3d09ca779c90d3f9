/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_model.h: a small Llama as a GGUF file, made byte by byte, of which one key or tensor may be another or be left out: for tests of what
 * models are refused. All its weights are 0.
 */
#ifndef LATH_TESTS_GGUF_MODEL_H
#define LATH_TESTS_GGUF_MODEL_H

#include "support/gguf_file.h"

enum { GGUF_MODEL_TOKENS = 8, GGUF_MODEL_LAYERS = 2, GGUF_MODEL_TENSORS = 3 + 9 * GGUF_MODEL_LAYERS };

/* What differs. */
typedef struct gguf_change {
    const char *key; /* a key that has another value, or one more; NULL: none */
    gguf_kind kind;  /* GGUF_KIND_COUNT: the key is left out */
    int64_t number;  /* integers, bools, F32 (0: 1e-5) */
    const char *text;
    const int64_t *list; /* GGUF_ARRAY: n_list integers of GGUF_U32 */
    size_t n_list;
    const char *tensor; /* a tensor of another type or shape, or one more; NULL: none */
    int type;           /* -1: it is left out */
    uint64_t rows, cols;
    const void *data;
} gguf_change;

/* Into f, which gguf_make has begun. */
void gguf_model_make(gguf_file_maker *f, const gguf_change *c);

#endif
