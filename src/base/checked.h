/* SPDX-License-Identifier: Apache-2.0
 * checked.h: arithmetic on sizes that come from files. Each returns false on overflow (or a negative dimension) and leaves *out unset. */
#ifndef LATH_BASE_CHECKED_H
#define LATH_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool size_add(size_t a, size_t b, size_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline bool size_mul(size_t a, size_t b, size_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool dim_mul(int64_t a, int64_t b, int64_t *out)
{
    return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, out);
}

#endif
