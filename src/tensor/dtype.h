/* SPDX-License-Identifier: Apache-2.0
 * dtype.h: element types (dtype.def) and the one conversion of all that can be a weight to f32, and of f32 to half.
 *
 * Numbers lie in blocks: of one number (floats, integers), or of 32 or 256 small integers with their scales. A row is a whole number of blocks, so
 * sizes and offsets are counted in rows and blocks, never in bytes of one number. */
#ifndef LATH_TENSOR_DTYPE_H
#define LATH_TENSOR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/half.h"

typedef enum dtype {
#define DTYPE(name, kind, numbers, bytes, gguf_id) DTYPE_##name,
#include "tensor/dtype.def"
#undef DTYPE
    DTYPE_COUNT
} dtype;

enum { DTYPE_MAX_BLOCK = 256 }; /* numbers; every type's divides it */

const char *dtype_name(dtype t);
/* Numbers in a block (1 for a type of single numbers), bytes of a block; 1 and 0 for what is no type. */
size_t dtype_block_numbers(dtype t);
size_t dtype_block_bytes(dtype t);
/* Bytes of a row of n numbers; false when n is no whole number of blocks or the size overflows. */
bool dtype_row_bytes(dtype t, uint64_t n, size_t *out);
/* The same where shape and size have been checked: n >= 0 is a whole number of blocks. */
static inline size_t dtype_bytes(dtype t, int64_t n)
{
    return (size_t)n / dtype_block_numbers(t) * dtype_block_bytes(t);
}
bool dtype_is_float(dtype t); /* blocks are */
bool dtype_is_block(dtype t); /* more than one number in a block */
/* dtype_to_f32 and the kernels read it: F32, F16, BF16, F8_E4M3, F8_E5M2 and all blocks. */
bool dtype_is_weight(dtype t);
/* By its safetensors name (length n); false when unknown. */
bool dtype_parse(const char *name, size_t n, dtype *out);
/* By its id in a GGUF file; false when unknown. */
bool dtype_of_gguf(uint32_t id, dtype *out);
/* Its id in a GGUF file; -1: such files do not have it. */
int dtype_gguf_id(dtype t);

/* bfloat16 bits to f32: exact. */
static inline float bf16_to_f32(uint16_t bits)
{
    union {
        uint32_t u;
        float f;
    } v = {(uint32_t)bits << 16};
    return v.f;
}
/* f32 to the nearest bfloat16, ties to even; NaN stays a NaN. */
static inline uint16_t bf16_from_f32(float v)
{
    union {
        float f;
        uint32_t u;
    } b = {v};
    if ((b.u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(b.u >> 16 | 0x40u);
    return (uint16_t)((b.u + 0x7fffu + (b.u >> 16 & 1)) >> 16);
}
/* The 8-bit floats of the OCP (2023): E4M3 has no infinity and NaN at 0x7F and 0xFF only, E5M2 is a half cut to its upper byte. Exact. */
float f8_e4m3_to_f32(uint8_t bits);
float f8_e5m2_to_f32(uint8_t bits);
/* n numbers (whole blocks) of a type that dtype_is_weight at src (any alignment) to f32. Blocks are decoded with the operations of the `gguf`
 * package's dequantize in their order, so results agree with it bit for bit. */
void dtype_to_f32(dtype t, const void *src, size_t n, float *dst);

#endif
