/* SPDX-License-Identifier: Apache-2.0
 * unicode.c: mappings over the generated tables. Hangul syllables decompose by the arithmetic of The Unicode Standard,
 * section 3.12. */
#include "base/unicode.h"

enum {
    HANGUL_S = 0xAC00,
    HANGUL_L = 0x1100,
    HANGUL_V = 0x1161,
    HANGUL_T = 0x11A7,
    HANGUL_N_T = 28,
    HANGUL_N_VT = 588,
    HANGUL_N = 11172
};
enum { LOWER_IS_TWO = 255 };

size_t uni_lower(uint32_t c, uint32_t out[UNI_LOWER_MAX])
{
    uint32_t block = uni_lower_1[c >> UNI_LOWER_SHIFT];
    uint32_t i = uni_lower_2[block << UNI_LOWER_SHIFT | (c & ((1u << UNI_LOWER_SHIFT) - 1))];
    if (i == LOWER_IS_TWO) {
        out[0] = UNI_LOWER_TWO_1;
        out[1] = UNI_LOWER_TWO_2;
        return 2;
    }
    out[0] = (uint32_t)((int32_t)c + uni_lower_deltas[i]);
    return 1;
}

size_t uni_nfd(uint32_t c, uint32_t out[UNI_NFD_MAX])
{
    uint32_t s = c - HANGUL_S;
    if (s < HANGUL_N) {
        out[0] = HANGUL_L + s / HANGUL_N_VT;
        out[1] = HANGUL_V + s % HANGUL_N_VT / HANGUL_N_T;
        out[2] = HANGUL_T + s % HANGUL_N_T;
        return s % HANGUL_N_T ? 3 : 2;
    }
    uint32_t block = uni_nfd_1[c >> UNI_NFD_SHIFT];
    uint32_t v = uni_nfd_2[block << UNI_NFD_SHIFT | (c & ((1u << UNI_NFD_SHIFT) - 1))];
    if (v == 0) {
        out[0] = c;
        return 1;
    }
    const uint32_t *from = uni_nfd_pool + ((v - 1) >> 2);
    size_t n = ((v - 1) & 3) + 1;
    for (size_t k = 0; k < n; k++) out[k] = from[k];
    return n;
}

uint32_t uni_before(const char *s, size_t end, size_t *len)
{
    size_t at = end - 1;
    while (at > 0 && ((uint8_t)s[at] & 0xC0) == 0x80) at--;
    return uni_next(s + at, len);
}
