/* SPDX-License-Identifier: Apache-2.0
 *
 * quant.c: the table of GGUF element types and the choice of the decoder. Ids and block sizes are those of ggml
 * (GGMLQuantizationType and GGML_QUANT_SIZES of the `gguf` package, 0.19).
 */
#include "tensor/quant.h"

#include "tensor/quant_blocks.h"

static const struct {
    const char *name;
    uint32_t id;
    uint16_t numbers, bytes;
} quant_table[QUANT_COUNT] = {
#define QUANT(name, id, numbers, bytes) {#name, id, numbers, bytes},
#include "tensor/quant.def"
#undef QUANT
};

const char *quant_name(quant_type t) { return (unsigned)t < QUANT_COUNT ? quant_table[t].name : "?"; }

bool quant_find(uint32_t id, quant_type *out)
{
    for (int i = 0; i < QUANT_COUNT; i++) {
        if (quant_table[i].id == id) {
            *out = (quant_type)i;
            return true;
        }
    }
    return false;
}

size_t quant_numbers(quant_type t) { return quant_table[t].numbers; }

size_t quant_bytes(quant_type t) { return quant_table[t].bytes; }

bool quant_row_bytes(quant_type t, uint64_t n, size_t *out)
{
    const size_t numbers = quant_table[t].numbers;
    return n % numbers == 0 && !__builtin_mul_overflow(n / numbers, (size_t)quant_table[t].bytes, out);
}

typedef void (*block_decoder)(const uint8_t *b, float *y);

/* NULL: a type of single numbers. */
static block_decoder decoder_of(quant_type t)
{
    switch (t) {
    case QUANT_Q4_0: return quant_q4_0;
    case QUANT_Q4_1: return quant_q4_1;
    case QUANT_Q5_0: return quant_q5_0;
    case QUANT_Q5_1: return quant_q5_1;
    case QUANT_Q8_0: return quant_q8_0;
    case QUANT_Q2_K: return quant_q2_k;
    case QUANT_Q3_K: return quant_q3_k;
    case QUANT_Q4_K: return quant_q4_k;
    case QUANT_Q5_K: return quant_q5_k;
    case QUANT_Q6_K: return quant_q6_k;
    case QUANT_Q8_K: return quant_q8_k;
    case QUANT_IQ4_NL: return quant_iq4_nl;
    case QUANT_IQ4_XS: return quant_iq4_xs;
    case QUANT_MXFP4: return quant_mxfp4;
    default: return NULL;
    }
}

void quant_decode(quant_type t, const void *src, size_t n_blocks, float *dst)
{
    const uint8_t *b = src;
    const block_decoder decode = decoder_of(t);
    if (!decode) {
        dtype_to_f32(t == QUANT_F32 ? DTYPE_F32 : t == QUANT_F16 ? DTYPE_F16 : DTYPE_BF16, src, n_blocks, dst);
        return;
    }
    for (size_t i = 0; i < n_blocks; i++) decode(b + i * quant_bytes(t), dst + i * quant_numbers(t));
}
