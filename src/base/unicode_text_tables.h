/* SPDX-License-Identifier: Apache-2.0
 * unicode_text_tables.h: compatibility decomposition, composition, grapheme classes, numbers and scripts as `tokenizers` 0.23.3 has them.
 * Made by tools/ref/make_unicode_text_tables.py; not edited by hand. A table of two stages is read as
 *     stage2[stage1[c >> SHIFT] << SHIFT | (c & (1 << SHIFT) - 1)].
 */
#ifndef LATH_BASE_UNICODE_TEXT_TABLES_H
#define LATH_BASE_UNICODE_TEXT_TABLES_H

#include <stdint.h>

/* clang-format off */
enum { UNI_NFKD_SHIFT = 7, UNI_GB_SHIFT = 7, UNI_SCRIPT_SHIFT = 7, UNI_N_PAIRS = 940 };
/* Low bits of uni_gb: the class for grapheme clusters. */
enum {
    UNI_GB_ANY = 0,
    UNI_GB_CONTROL = 1, /* a break before and after */
    UNI_GB_EXTEND = 2,
    UNI_GB_EXTEND_INCB = 3, /* may stand inside a conjunct */
    UNI_GB_LINKER = 4, /* joins consonants */
    UNI_GB_ZWJ = 5,
    UNI_GB_SPACING = 6,
    UNI_GB_PREPEND = 7,
    UNI_GB_L = 8,
    UNI_GB_V = 9,
    UNI_GB_T = 10,
    UNI_GB_LV = 11,
    UNI_GB_LVT = 12,
    UNI_GB_CONSONANT = 13,
    UNI_GB_PICT = 14,
};
/* Its other bits: NFC or NFKC may change the character or one before it; it is a number. */
enum { UNI_GB_MASK = 0x0F, UNI_MOVES_NFC = 0x10, UNI_MOVES_NFKC = 0x20, UNI_NUMERIC = 0x80 };

extern const uint8_t uni_nfkd_1[8704];
extern const uint32_t uni_nfkd_2[8320];
extern const uint8_t uni_gb_1[8704];
extern const uint8_t uni_gb_2[28800];
extern const uint8_t uni_script_1[8704];
extern const uint8_t uni_script_2[26752];
extern const uint32_t uni_nfkd_pool[3413];
extern const uint64_t uni_pairs[940];
/* clang-format on */

#endif
