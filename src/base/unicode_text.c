/* SPDX-License-Identifier: Apache-2.0
 * unicode_text.c: mappings over the tables of unicode_text_tables.h. Hangul composes by the arithmetic of The Unicode
 * Standard, section 3.12; clusters are cut by the rules GB3 to GB11 of UAX 29. */
#include "base/unicode_text.h"

enum {
    HANGUL_S = 0xAC00,
    HANGUL_L = 0x1100,
    HANGUL_V = 0x1161,
    HANGUL_T = 0x11A7,
    HANGUL_N_L = 19,
    HANGUL_N_V = 21,
    HANGUL_N_T = 28,
    HANGUL_N = 11172
};

size_t uni_nfkd(uint32_t c, uint32_t out[UNI_NFKD_MAX])
{
    uint32_t block = uni_nfkd_1[c >> UNI_NFKD_SHIFT];
    uint32_t v = uni_nfkd_2[block << UNI_NFKD_SHIFT | (c & ((1u << UNI_NFKD_SHIFT) - 1))];
    if (v == 0) return uni_nfd(c, out);
    const uint32_t *from = uni_nfkd_pool + (v >> 5);
    for (size_t k = 0; k < (v & 31); k++) out[k] = from[k];
    return v & 31;
}

uint32_t uni_compose(uint32_t a, uint32_t b)
{
    uint32_t l = a - HANGUL_L, v = b - HANGUL_V, s = a - HANGUL_S, t = b - HANGUL_T;
    if (l < HANGUL_N_L && v < HANGUL_N_V) return HANGUL_S + (l * HANGUL_N_V + v) * HANGUL_N_T;
    if (s < HANGUL_N && s % HANGUL_N_T == 0 && t > 0 && t < HANGUL_N_T) return a + t;
    uint64_t key = (uint64_t)a << 42 | (uint64_t)b << 21;
    size_t lo = 0, hi = UNI_N_PAIRS;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (uni_pairs[mid] < key)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < UNI_N_PAIRS && uni_pairs[lo] >> 21 == key >> 21 ? (uint32_t)(uni_pairs[lo] & 0x1FFFFF) : 0;
}

/* What of the cluster so far matters for rules that look further back than one character. */
typedef struct context {
    uint32_t c, class; /* the last character */
    int conjunct;      /* 1: a consonant, then what may stand in a conjunct; 2: a linker among that */
    int pict;          /* 1: a pictograph, then extending characters; 2: and a zero width joiner */
} context;

static void take(context *x, uint32_t c, uint32_t class)
{
    bool extends = class == UNI_GB_EXTEND || class == UNI_GB_EXTEND_INCB || class == UNI_GB_LINKER;
    if (class == UNI_GB_CONSONANT)
        x->conjunct = 1;
    else if (class == UNI_GB_LINKER)
        x->conjunct = x->conjunct ? 2 : 0;
    else if (class != UNI_GB_EXTEND_INCB && class != UNI_GB_ZWJ)
        x->conjunct = 0;
    if (class == UNI_GB_PICT)
        x->pict = 1;
    else if (!(x->pict == 1 && extends))
        x->pict = x->pict == 1 && class == UNI_GB_ZWJ ? 2 : 0;
    x->c = c;
    x->class = class;
}

/* No break before the character. */
static bool joins(const context *x, uint32_t c, uint32_t class)
{
    uint32_t before = x->class;
    if (before == UNI_GB_CONTROL) return x->c == '\r' && c == '\n';
    if (class == UNI_GB_CONTROL) return false;
    bool v = class == UNI_GB_V, t = class == UNI_GB_T;
    if (before == UNI_GB_L && (v || class == UNI_GB_L || class == UNI_GB_LV || class == UNI_GB_LVT)) return true;
    if ((before == UNI_GB_LV || before == UNI_GB_V) && (v || t)) return true;
    if ((before == UNI_GB_LVT || before == UNI_GB_T) && t) return true;
    if (class >= UNI_GB_EXTEND && class <= UNI_GB_SPACING) return true;
    if (before == UNI_GB_PREPEND) return true;
    if (class == UNI_GB_CONSONANT) return x->conjunct == 2;
    return class == UNI_GB_PICT && x->pict == 2;
}

size_t uni_cluster_end(const char *s, size_t n, size_t i)
{
    context x = {0};
    size_t len;
    uint32_t c = uni_next(s + i, &len);
    take(&x, c, uni_text_flags(c) & UNI_GB_MASK);
    for (i += len; i < n; i += len) {
        c = uni_next(s + i, &len);
        uint32_t class = uni_text_flags(c) & UNI_GB_MASK;
        if (!joins(&x, c, class)) break;
        take(&x, c, class);
    }
    return i;
}
