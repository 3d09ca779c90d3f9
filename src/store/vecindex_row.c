/* SPDX-License-Identifier: Apache-2.0
 *
 * vecindex_row.c: a row of a vector index: sizes, and f32 numbers to f16 and int8 and back.
 *
 * int8 is symmetric with one scale a row: v = round(x * 127 / max|x|), ties to even, and scale = |x| / |v| (L2 norms,
 * in f64), which keeps the length of the row: of rows of length 1 the dot product stays a cosine. An error of a number
 * is at most half a step, max|x| / 254 (and what the length's correction moves, under 1e-4 of it for a row of 384).
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "store/vecindex_format.h"
#include "tensor/dtype.h"

const char *vecindex_type_name(vecindex_type type)
{
    switch (type) {
    case VECINDEX_F32: return "f32";
    case VECINDEX_F16: return "f16";
    case VECINDEX_I8: return "int8";
    }
    return "?";
}

size_t vecindex_row_bytes(vecindex_type type, int64_t d)
{
    if (d < 1 || d > INT32_MAX) return 0;
    switch (type) {
    case VECINDEX_F32: return (size_t)d * sizeof(float);
    case VECINDEX_F16: return (size_t)d * sizeof(uint16_t);
    case VECINDEX_I8: return d > VECINDEX_I8_MAX_D ? 0 : sizeof(float) + ((size_t)d + 3) / 4 * 4;
    }
    return 0;
}

static bool encode_f16(int64_t d, const float *v, unsigned char *row)
{
    for (int64_t i = 0; i < d; i++) {
        const uint16_t h = half_from_f32(v[i]);
        if ((h & 0x7c00u) == 0x7c00u) return false;
        memcpy(row + 2 * i, &h, sizeof(h));
    }
    return true;
}

static bool encode_i8(int64_t d, const float *v, unsigned char *row)
{
    double most = 0, length = 0, coded = 0;
    for (int64_t i = 0; i < d; i++) {
        if (!isfinite(v[i])) return false;
        most = fmax(most, fabs((double)v[i]));
        length += (double)v[i] * (double)v[i];
    }
    memset(row, 0, vecindex_row_bytes(VECINDEX_I8, d));
    if (most == 0) return true;
    for (int64_t i = 0; i < d; i++) {
        const double q = rint((double)v[i] / most * 127.0);
        row[sizeof(float) + (size_t)i] = (unsigned char)(int8_t)q;
        coded += q * q;
    }
    const float scale = (float)sqrt(length / coded);
    memcpy(row, &scale, sizeof(scale));
    return true;
}

bool vecindex_encode(vecindex_type type, int64_t d, const float *v, void *row)
{
    if (type == VECINDEX_F16) return encode_f16(d, v, row);
    if (type == VECINDEX_I8) return encode_i8(d, v, row);
    memcpy(row, v, (size_t)d * sizeof(*v));
    return true;
}

void vecindex_decode(vecindex_type type, int64_t d, const void *row, float *v)
{
    const unsigned char *p = row;
    if (type != VECINDEX_I8) {
        dtype_to_f32(type == VECINDEX_F16 ? DTYPE_F16 : DTYPE_F32, p, (size_t)d, v);
        return;
    }
    float scale;
    memcpy(&scale, p, sizeof(scale));
    for (int64_t i = 0; i < d; i++) v[i] = scale * (float)(int8_t)p[sizeof(scale) + (size_t)i];
}

uint64_t vecindex_blocks(uint64_t n, uint64_t block_rows) { return n / block_rows + (n % block_rows ? 1 : 0); }

/* at + n, rounded up to VECINDEX_ALIGN. */
static bool size_behind(size_t at, size_t n, size_t *out)
{
    if (!size_add(at, n, out) || !size_add(*out, VECINDEX_ALIGN - 1, out)) return false;
    *out -= *out % VECINDEX_ALIGN;
    return true;
}

bool vecindex_lay_out(vecindex_header *h)
{
    const size_t row = h->d > INT32_MAX ? 0 : vecindex_row_bytes((vecindex_type)h->type, (int64_t)h->d);
    size_t vectors, entries, checks, entries_at, checks_at, end;
    if (row == 0 || h->n > SIZE_MAX) return false;
    h->row_bytes = row;
    h->block_rows = row < VECINDEX_BLOCK_BYTES ? VECINDEX_BLOCK_BYTES / row : 1;
    if (!size_mul(row, (size_t)h->n, &vectors)) return false;
    if (!size_mul(sizeof(vecindex_entry), (size_t)h->n, &entries)) return false;
    if (!size_mul(sizeof(vecindex_checks), (size_t)vecindex_blocks(h->n, h->block_rows), &checks)) return false;
    if (!size_behind(VECINDEX_HEADER, vectors, &entries_at)) return false;
    if (!size_add(entries_at, entries, &checks_at) || !size_add(checks_at, checks, &end)) return false;
    h->vectors_offset = VECINDEX_HEADER;
    h->vectors_bytes = vectors;
    h->entries_offset = entries_at;
    h->entries_bytes = entries;
    h->checks_offset = checks_at;
    h->checks_bytes = checks;
    h->file_bytes = end;
    return true;
}
