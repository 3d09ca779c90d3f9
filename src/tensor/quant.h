/* SPDX-License-Identifier: Apache-2.0
 *
 * quant.h: the element types of GGUF tensors (quant.def) and their reference decode to f32. A row is a whole number of
 * blocks; a block holds its numbers as small integers with one or more scales. Decoding does the operations of the
 * `gguf` package's dequantize in their order, in f32, so that results agree bit for bit.
 */
#ifndef LATH_TENSOR_QUANT_H
#define LATH_TENSOR_QUANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum quant_type {
#define QUANT(name, id, numbers, bytes) QUANT_##name,
#include "tensor/quant.def"
#undef QUANT
    QUANT_COUNT
} quant_type;

const char *quant_name(quant_type t);
/* By its id in a GGUF file; false when lath does not know it. */
bool quant_find(uint32_t id, quant_type *out);
/* Numbers in a block, bytes of a block. */
size_t quant_numbers(quant_type t);
size_t quant_bytes(quant_type t);
/* Bytes of a row of n numbers; false when n is no whole number of blocks or the size overflows. */
bool quant_row_bytes(quant_type t, uint64_t n, size_t *out);
/* n_blocks blocks at src (any alignment) to dst: [n_blocks * quant_numbers(t)]. */
void quant_decode(quant_type t, const void *src, size_t n_blocks, float *dst);

#endif
