/* SPDX-License-Identifier: Apache-2.0
 * unicode_text.h: more of what the reference tokenizer does with code points, over generated tables
 * (unicode_text_tables.h): compatibility decomposition, composition, grapheme clusters, numbers and scripts. Arguments
 * are scalar values. */
#ifndef LATH_BASE_UNICODE_TEXT_H
#define LATH_BASE_UNICODE_TEXT_H

#include <stdbool.h>

#include "base/unicode.h"
#include "base/unicode_text_tables.h"

enum { UNI_NFKD_MAX = 18 };

/* Class for grapheme clusters (UNI_GB_*) in the bits of UNI_GB_MASK, and UNI_MOVES_*, UNI_NUMERIC. */
static inline uint32_t uni_text_flags(uint32_t c)
{
    uint32_t block = uni_gb_1[c >> UNI_GB_SHIFT];
    return uni_gb_2[block << UNI_GB_SHIFT | (c & ((1u << UNI_GB_SHIFT) - 1))];
}

/* A number for the script; 0: goes with every script. */
static inline uint32_t uni_script(uint32_t c)
{
    uint32_t block = uni_script_1[c >> UNI_SCRIPT_SHIFT];
    return uni_script_2[block << UNI_SCRIPT_SHIFT | (c & ((1u << UNI_SCRIPT_SHIFT) - 1))];
}

/* Full compatibility decomposition of one character; writes and counts 1..18. */
size_t uni_nfkd(uint32_t c, uint32_t out[UNI_NFKD_MAX]);
/* The canonical composite of a and b, 0 when there is none. Hangul included. */
uint32_t uni_compose(uint32_t a, uint32_t b);
/* Where the grapheme cluster that begins at s[i] ends (extended clusters of UAX 29, as far as clusters of under 6 bytes
 * can be told from longer ones: regional indicators are not paired). Valid UTF-8; i < n. */
size_t uni_cluster_end(const char *s, size_t n, size_t i);

#endif
