/* SPDX-License-Identifier: Apache-2.0
 * unicode_regex_tables.h: character classes as the regular expressions of `tokenizers` 0.23.3 see them: every code
 * point was asked of the package. Made by tools/ref/make_regex_tables.py; not edited by hand.
 */
#ifndef LATH_BASE_UNICODE_REGEX_TABLES_H
#define LATH_BASE_UNICODE_REGEX_TABLES_H

#include <stdint.h>

/* clang-format off */
/* General categories; uni_gc_names has their names, "Lu" and so on. */
enum {
    UNI_GC_LU, UNI_GC_LL, UNI_GC_LT, UNI_GC_LM, UNI_GC_LO, UNI_GC_MN, UNI_GC_MC, UNI_GC_ME,
    UNI_GC_ND, UNI_GC_NL, UNI_GC_NO, UNI_GC_PC, UNI_GC_PD, UNI_GC_PS, UNI_GC_PE, UNI_GC_PI,
    UNI_GC_PF, UNI_GC_PO, UNI_GC_SM, UNI_GC_SC, UNI_GC_SK, UNI_GC_SO, UNI_GC_ZS, UNI_GC_ZL,
    UNI_GC_ZP, UNI_GC_CC, UNI_GC_CF, UNI_GC_CN, UNI_GC_CO,
    UNI_GC_COUNT
};
extern const char uni_gc_names[UNI_GC_COUNT][3];
/* A value of the table: category | flags. \s and \w are the engine's own. */
enum { UNI_GC_MASK = 31, UNI_RE_SPACE = 32, UNI_RE_WORD = 64, UNI_GC_SHIFT = 8 };
extern const uint8_t uni_gc_1[4352];
extern const uint8_t uni_gc_2[41472];

typedef struct uni_range {
    uint32_t first, last;
} uni_range;
/* Scripts, properties (small letters, no '_') and POSIX classes ("[:alpha"), sorted by name. */
typedef struct uni_named {
    const char *name;
    uint16_t at, count; /* of uni_class_ranges */
} uni_named;
enum { UNI_N_CLASSES = 196 };
extern const uni_named uni_classes[UNI_N_CLASSES];
extern const uni_range uni_class_ranges[9195];
/* clang-format on */

#endif
