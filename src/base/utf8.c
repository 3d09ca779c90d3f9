/* SPDX-License-Identifier: Apache-2.0
 * utf8.c: well-formed byte sequences after The Unicode Standard, table 3-7. */
#include "base/utf8.h"

#include <string.h>

size_t utf8_decode(const char *s, size_t n, uint32_t *cp)
{
    const unsigned char *p = (const unsigned char *)s;
    if (p[0] < 0x80) {
        *cp = p[0];
        return 1;
    }
    if (p[0] >= 0xC2 && p[0] <= 0xDF) {
        if (n < 2 || (p[1] & 0xC0) != 0x80) return 0;
        *cp = (uint32_t)(p[0] & 0x1F) << 6 | (p[1] & 0x3Fu);
        return 2;
    }
    if (p[0] >= 0xE0 && p[0] <= 0xEF) {
        if (n < 3 || (p[1] & 0xC0) != 0x80 || (p[2] & 0xC0) != 0x80) return 0;
        *cp = (uint32_t)(p[0] & 0x0F) << 12 | (uint32_t)(p[1] & 0x3F) << 6 | (p[2] & 0x3Fu);
        return *cp < 0x800 || (*cp >= 0xD800 && *cp <= 0xDFFF) ? 0 : 3;
    }
    if (p[0] >= 0xF0 && p[0] <= 0xF4) {
        if (n < 4 || (p[1] & 0xC0) != 0x80 || (p[2] & 0xC0) != 0x80 || (p[3] & 0xC0) != 0x80) return 0;
        *cp = (uint32_t)(p[0] & 0x07) << 18 | (uint32_t)(p[1] & 0x3F) << 12 | (uint32_t)(p[2] & 0x3F) << 6 |
              (p[3] & 0x3Fu);
        return *cp < 0x10000 || *cp > 0x10FFFF ? 0 : 4;
    }
    return 0;
}

size_t utf8_encode(uint32_t cp, char out[4])
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xC0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3F));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xE0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3F));
        out[2] = (char)(0x80 | (cp & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3F));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3F));
    out[3] = (char)(0x80 | (cp & 0x3F));
    return 4;
}

/* The length of most characters outside ASCII, where four bytes are there; 0: it must be looked at closely. */
static inline size_t common_length(const unsigned char *p)
{
    if (p[0] < 0xE0) return p[0] >= 0xC2 && (p[1] & 0xC0) == 0x80 ? 2 : 0;
    bool three = p[0] != 0xE0 && p[0] != 0xED && p[0] < 0xF0; /* no overlong forms, no surrogates */
    return three && (p[1] & 0xC0) == 0x80 && (p[2] & 0xC0) == 0x80 ? 3 : 0;
}

size_t utf8_first_invalid(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n) {
        uint64_t w;
        while (i + 8 <= n && (memcpy(&w, s + i, 8), (w & 0x8080808080808080u) == 0)) i += 8;
        /* Other scripts come in runs, with single ASCII characters between them. */
        size_t len = 1, ascii = 0;
        while (n - i >= 4 && ascii < 4 && len) {
            bool one = (unsigned char)s[i] < 0x80;
            len = one ? 1 : common_length((const unsigned char *)s + i);
            ascii = one ? ascii + 1 : 0;
            i += len;
        }
        if (i == n) break;
        if (n - i >= 4 && len) continue;
        uint32_t cp;
        len = utf8_decode(s + i, n - i, &cp);
        if (len == 0) return i;
        i += len;
    }
    return n;
}

/* Length of the maximal part at s that could begin a character (at least 1): it is replaced as one. */
static size_t invalid_part(const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s;
    size_t want = p[0] >= 0xC2 && p[0] <= 0xDF   ? 2
                  : p[0] >= 0xE0 && p[0] <= 0xEF ? 3
                  : p[0] >= 0xF0 && p[0] <= 0xF4 ? 4
                                                 : 1;
    if (want == 1 || n < 2) return 1;
    unsigned lo = p[0] == 0xE0   ? 0xA0
                  : p[0] == 0xF0 ? 0x90
                                 : 0x80,
             hi = p[0] == 0xED   ? 0x9F
                  : p[0] == 0xF4 ? 0x8F
                                 : 0xBF;
    if (p[1] < lo || p[1] > hi) return 1;
    size_t k = 2;
    while (k < want && k < n && (p[k] & 0xC0) == 0x80) k++;
    return k;
}

void utf8_append_lossy(buf *b, const char *s, size_t n)
{
    size_t i = 0;
    while (i < n) {
        size_t bad = utf8_first_invalid(s + i, n - i);
        buf_append(b, s + i, bad);
        i += bad;
        if (i == n) break;
        buf_str(b, "\xEF\xBF\xBD");
        i += invalid_part(s + i, n - i);
    }
}
