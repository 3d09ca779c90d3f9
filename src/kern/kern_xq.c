/* SPDX-License-Identifier: Apache-2.0
 * kern_xq.c: which kind of quantised activations a weight type wants, and their size. */
#include "kern/kern_xq.h"

kern_xq_kind kern_xq_kind_of(dtype type)
{
    if (!dtype_is_block(type)) return KERN_XQ_NONE;
    return dtype_block_numbers(type) == 32 ? KERN_XQ_32 : KERN_XQ_256;
}

size_t kern_xq_bytes(dtype type, int64_t k)
{
    const size_t n = (size_t)k;
    switch (kern_xq_kind_of(type)) {
    case KERN_XQ_32: return kern_xq32_sum(k) + kern_xq_align(n / 32 * 4);
    case KERN_XQ_256: return kern_xq256_sum32(k) + kern_xq_align(n / 32 * 2);
    case KERN_XQ_NONE: break;
    }
    return 0;
}

size_t kern_xq_panel_bytes(dtype type, int64_t k)
{
    const kern_xq_kind kind = kern_xq_kind_of(type);
    if (kind == KERN_XQ_NONE) return 0;
    return kern_xq_panel_sum(kind, k) + (size_t)k / (kind == KERN_XQ_32 ? 32 : 16) * KERN_LANES * sizeof(float);
}
