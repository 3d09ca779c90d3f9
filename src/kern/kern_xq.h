/* SPDX-License-Identifier: Apache-2.0
 *
 * kern_xq.h: a row of k activations in 8-bit blocks, as quantize_x writes and gemv reads it. Each array begins at a multiple of 64 bytes, and the bytes
 * between are 0, so that whole vectors may be read:
 *
 *     KERN_XQ_32     int8 q[k]   f32 d[k / 32]    f32 sum[k / 32]      sum: of the 32 q, an integer
 *     KERN_XQ_256    int8 q[k]   f32 d[k / 256]   int16 sum16[k / 16]  int16 sum32[k / 32]
 */
#ifndef LATH_KERN_XQ_H
#define LATH_KERN_XQ_H

#include "kern/kern.h"

/* A block that is nowhere above it becomes 0: 127 / magnitude must not overflow. */
#define KERN_XQ_TINY 0x1p-120f

static inline size_t kern_xq_align(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* Where d begins, and what lies behind: bytes. */
static inline size_t kern_xq_d(int64_t k) { return kern_xq_align((size_t)k); }
static inline size_t kern_xq32_sum(int64_t k) { return kern_xq_d(k) + kern_xq_align((size_t)k / 32 * 4); }
static inline size_t kern_xq256_sum16(int64_t k) { return kern_xq_d(k) + kern_xq_align((size_t)k / 256 * 4); }
static inline size_t kern_xq256_sum32(int64_t k) { return kern_xq256_sum16(k) + kern_xq_align((size_t)k / 16 * 2); }

/* A panel of 16 rows, as quantize_panel writes it; each lane is quantised as a row alone is.
 *
 *     KERN_XQ_32     uint8 u[k / 4][16][4]   f32 d[k / 32][16]    f32 sum[k / 32][16]
 *     KERN_XQ_256    uint8 u[k / 4][16][4]   f32 d[k / 256][16]   f32 sum[k / 16][16]
 *
 * u is q + 128; sum is d times the sum of the q of 32 or 16 numbers, rounded once. */
static inline size_t kern_xq_panel_d(int64_t k) { return (size_t)k * KERN_LANES; }
static inline size_t kern_xq_panel_sum(kern_xq_kind kind, int64_t k)
{
    return kern_xq_panel_d(k) + (size_t)k / (kind == KERN_XQ_32 ? 32 : 256) * KERN_LANES * sizeof(float);
}

#endif
