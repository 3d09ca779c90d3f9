/* SPDX-License-Identifier: Apache-2.0
 * unicode_tables.h: Unicode as `tokenizers` 0.23.3 sees it: every code point was asked of the package.
 * Made by tools/ref/make_unicode_tables.py; not edited by hand. A table of two stages is read as
 *     stage2[stage1[c >> SHIFT] << SHIFT | (c & (1 << SHIFT) - 1)].
 */
#ifndef LATH_BASE_UNICODE_TABLES_H
#define LATH_BASE_UNICODE_TABLES_H

#include <stdint.h>

/* clang-format off */
enum {
    UNI_SPACE = 1 << 0, /* white space: splits in BertPreTokenizer and WhitespaceSplit; \s of the added-token rules */
    UNI_CONTROL = 1 << 1, /* removed by BertNormalizer's clean_text */
    UNI_PUNCT = 1 << 2, /* isolated by BertPreTokenizer and Punctuation */
    UNI_CJK = 1 << 3, /* gets spaces around it from BertNormalizer's handle_chinese_chars */
    UNI_MN = 1 << 4, /* removed by BertNormalizer's strip_accents after NFD (nonspacing mark) */
    UNI_MARK = 1 << 5, /* removed by StripAccents (combining mark) */
    UNI_WORD = 1 << 6, /* \w of the added-token rules and of the Whitespace pre-tokenizer */
    UNI_NFD = 1 << 7, /* NFD replaces it */
    UNI_LOWER = 1 << 8, /* Lowercase replaces it */
    UNI_CCC = 1 << 9, /* canonical combining class is not 0 */
};
enum { UNI_FLAGS_SHIFT = 7, UNI_LOWER_SHIFT = 8, UNI_NFD_SHIFT = 8, UNI_CCC_SHIFT = 7 };
/* The one character whose lower case is two: U+0130; its index in uni_lower_2 is 255. */
enum { UNI_LOWER_TWO_1 = 0x69, UNI_LOWER_TWO_2 = 0x307 };

extern const uint16_t uni_flag_sets[23];
extern const uint8_t uni_flags_1[8704];
extern const uint8_t uni_flags_2[29568];
extern const int32_t uni_lower_deltas[84];
extern const uint8_t uni_lower_1[4352];
extern const uint8_t uni_lower_2[6400];
extern const uint32_t uni_nfd_pool[3266];
extern const uint8_t uni_nfd_1[4352];
extern const uint16_t uni_nfd_2[8960];
extern const uint8_t uni_ccc_1[8704];
extern const uint8_t uni_ccc_2[9728];
/* clang-format on */

#endif
