/* SPDX-License-Identifier: Apache-2.0
 * dtype.h: element types and the one conversion of half and bfloat16 to f32 and back. */
#ifndef LATH_TENSOR_DTYPE_H
#define LATH_TENSOR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum dtype {
#define DTYPE(name, bytes, is_float) DTYPE_##name,
#include "tensor/dtype.def"
#undef DTYPE
    DTYPE_COUNT
} dtype;

const char *dtype_name(dtype t);
size_t dtype_size(dtype t);
bool dtype_is_float(dtype t);
/* By its safetensors name (length n); false when unknown. */
bool dtype_parse(const char *name, size_t n, dtype *out);

/* IEEE binary16 and bfloat16 bits to f32: exact, subnormals, infinities and NaN included. */
float half_to_f32(uint16_t bits);
/* f32 to the nearest binary16, ties to even; infinity beyond the largest (from 65520 on); NaN stays a NaN. */
uint16_t half_from_f32(float v);
static inline float bf16_to_f32(uint16_t bits)
{
    union {
        uint32_t u;
        float f;
    } v = {(uint32_t)bits << 16};
    return v.f;
}
/* n elements of type F32, F16 or BF16 at src (any alignment) to f32. */
void dtype_to_f32(dtype t, const void *src, size_t n, float *dst);

#endif
