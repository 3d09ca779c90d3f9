/* SPDX-License-Identifier: Apache-2.0
 * dtype.c: the element type table (dtype.def), the exact conversions of half, bfloat16 and 8-bit floats to f32 (blocks: quant.c),
 * and the rounding one to half.
 *
 * binary16 is IEEE 754-2008 3.6: 1 sign, 5 exponent (bias 15), 10 fraction bits; bfloat16 is the upper half of a
 * binary32. E4M3 and E5M2 are those of "OCP 8-bit Floating Point Specification (OFP8)" 1.0. Weight bytes come from files at any alignment, so every element is read through memcpy. */
#include <stdio.h>
#include <string.h>

#include "tensor/quant.h"
#include "tensor/tensor.h"

typedef enum dtype_kind { FLOAT, WIDE, INT, BLOCK } dtype_kind;

static const struct {
    const char *name;
    uint8_t kind;
    uint16_t numbers, bytes;
    int16_t gguf_id;
} dtype_table[DTYPE_COUNT] = {
#define DTYPE(name, kind, numbers, bytes, gguf_id) {#name, kind, numbers, bytes, gguf_id},
#include "tensor/dtype.def"
#undef DTYPE
};

#define DTYPE(name, kind, numbers, bytes, gguf_id) \
    _Static_assert(DTYPE_MAX_BLOCK % (numbers) == 0, "chunks of DTYPE_MAX_BLOCK numbers are whole blocks");
#include "tensor/dtype.def"
#undef DTYPE

static bool known(dtype t) { return (unsigned)t < DTYPE_COUNT; }

const char *dtype_name(dtype t) { return known(t) ? dtype_table[t].name : "?"; }

size_t dtype_block_numbers(dtype t) { return known(t) ? dtype_table[t].numbers : 1; }

size_t dtype_block_bytes(dtype t) { return known(t) ? dtype_table[t].bytes : 0; }

bool dtype_row_bytes(dtype t, uint64_t n, size_t *out)
{
    const size_t numbers = dtype_block_numbers(t);
    return n % numbers == 0 && !__builtin_mul_overflow(n / numbers, dtype_block_bytes(t), out);
}

bool dtype_is_float(dtype t) { return known(t) && dtype_table[t].kind != INT; }

bool dtype_is_block(dtype t) { return known(t) && dtype_table[t].kind == BLOCK; }

bool dtype_is_weight(dtype t) { return known(t) && (dtype_table[t].kind == FLOAT || dtype_table[t].kind == BLOCK); }

bool dtype_parse(const char *name, size_t n, dtype *out)
{
    for (int i = 0; i < DTYPE_COUNT; i++) {
        if (dtype_table[i].kind == BLOCK) continue;
        if (strlen(dtype_table[i].name) == n && memcmp(dtype_table[i].name, name, n) == 0) {
            *out = (dtype)i;
            return true;
        }
    }
    return false;
}

bool dtype_of_gguf(uint32_t id, dtype *out)
{
    for (int i = 0; i < DTYPE_COUNT; i++) {
        if (dtype_table[i].gguf_id >= 0 && (uint32_t)dtype_table[i].gguf_id == id) {
            *out = (dtype)i;
            return true;
        }
    }
    return false;
}

int dtype_gguf_id(dtype t) { return (unsigned)t < DTYPE_COUNT ? dtype_table[t].gguf_id : -1; }

float f8_e5m2_to_f32(uint8_t bits) { return half_to_f32((uint16_t)(bits << 8)); }

/* Put into the fields of a half, exponent and fraction are those of value * 2^-8: 15 is the bias of a half, 7 that of E4M3. Subnormals too. */
float f8_e4m3_to_f32(uint8_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x80u) << 8, rest = bits & 0x7fu;
    if (rest == 0x7f) return half_to_f32((uint16_t)(sign | 0x7e00u));
    return half_to_f32((uint16_t)(sign | rest << 7)) * 256.0f;
}

void dtype_to_f32(dtype t, const void *src, size_t n, float *dst)
{
    const unsigned char *p = src;
    uint16_t h;
    if (n == 0) return;
    switch (t) {
    case DTYPE_F32: memcpy(dst, src, n * sizeof(float)); break;
    case DTYPE_F16:
        for (size_t i = 0; i < n; i++) {
            memcpy(&h, p + 2 * i, 2);
            dst[i] = half_to_f32(h);
        }
        break;
    case DTYPE_BF16:
        for (size_t i = 0; i < n; i++) {
            memcpy(&h, p + 2 * i, 2);
            dst[i] = bf16_to_f32(h);
        }
        break;
    case DTYPE_F8_E4M3:
        for (size_t i = 0; i < n; i++) dst[i] = f8_e4m3_to_f32(p[i]);
        break;
    case DTYPE_F8_E5M2:
        for (size_t i = 0; i < n; i++) dst[i] = f8_e5m2_to_f32(p[i]);
        break;
    default:
        if (dtype_is_block(t))
            quant_decode(t, src, n / dtype_block_numbers(t), dst);
        else
            memset(dst, 0, n * sizeof(float)); /* callers check the type; defined bytes all the same */
        break;
    }
}

void tensor_shape_text(const int64_t *dim, int32_t rank, char *out, size_t n_out)
{
    static const char cut[] = "...]";
    size_t at = 0;
    if (n_out == 0) return;
    if (n_out < sizeof(cut) + 1) {
        out[0] = '\0';
        return;
    }
    out[at++] = '[';
    for (int32_t i = 0; i < rank; i++) {
        char one[32];
        size_t n = (size_t)snprintf(one, sizeof(one), i ? ",%lld" : "%lld", (long long)dim[i]);
        /* Room for this and, unless it is the last, for the mark of a cut behind it. */
        size_t behind = i + 1 < rank ? sizeof(cut) : sizeof("]");
        if (at + n + behind > n_out) {
            memcpy(out + at, cut, sizeof(cut));
            return;
        }
        memcpy(out + at, one, n);
        at += n;
    }
    memcpy(out + at, "]", 2);
}
