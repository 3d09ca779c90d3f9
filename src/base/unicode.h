/* SPDX-License-Identifier: Apache-2.0
 * unicode.h: what the reference tokenizer does with a code point: flags, lower case, canonical decomposition,
 * combining class. The tables are generated (unicode_tables.h); each flag is one question asked of the reference about
 * every code point. Arguments are scalar values (at most U+10FFFF, no surrogates), as they come out of valid UTF-8. */
#ifndef LATH_BASE_UNICODE_H
#define LATH_BASE_UNICODE_H

#include <stddef.h>
#include <stdint.h>

#include "base/unicode_tables.h"

/* A set of UNI_* flags. */
static inline uint32_t uni_flags(uint32_t c)
{
    uint32_t block = uni_flags_1[c >> UNI_FLAGS_SHIFT];
    return uni_flag_sets[uni_flags_2[block << UNI_FLAGS_SHIFT | (c & ((1u << UNI_FLAGS_SHIFT) - 1))]];
}

/* Canonical combining class; 0 for starters and for characters that decompose. */
static inline uint32_t uni_ccc(uint32_t c)
{
    uint32_t block = uni_ccc_1[c >> UNI_CCC_SHIFT];
    return uni_ccc_2[block << UNI_CCC_SHIFT | (c & ((1u << UNI_CCC_SHIFT) - 1))];
}

enum { UNI_LOWER_MAX = 2, UNI_NFD_MAX = 4 };
/* Full lower case of one character, without context; writes and counts 1..2. */
size_t uni_lower(uint32_t c, uint32_t out[UNI_LOWER_MAX]);
/* Full canonical decomposition of one character, Hangul included; writes and counts 1..4. */
size_t uni_nfd(uint32_t c, uint32_t out[UNI_NFD_MAX]);

/* Next character of valid UTF-8 at p; *len is its bytes. Nothing is checked. */
static inline uint32_t uni_next(const char *s, size_t *len)
{
    const uint8_t *p = (const uint8_t *)s;
    if (p[0] < 0x80) {
        *len = 1;
        return p[0];
    }
    if (p[0] < 0xE0) {
        *len = 2;
        return (uint32_t)(p[0] & 0x1F) << 6 | (p[1] & 0x3Fu);
    }
    if (p[0] < 0xF0) {
        *len = 3;
        return (uint32_t)(p[0] & 0x0F) << 12 | (uint32_t)(p[1] & 0x3F) << 6 | (p[2] & 0x3Fu);
    }
    *len = 4;
    return (uint32_t)(p[0] & 0x07) << 18 | (uint32_t)(p[1] & 0x3F) << 12 | (uint32_t)(p[2] & 0x3F) << 6 |
           (p[3] & 0x3Fu);
}
/* The character of valid UTF-8 that ends before s[end]; end > 0. */
uint32_t uni_before(const char *s, size_t end, size_t *len);

#endif
