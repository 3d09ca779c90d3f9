/* SPDX-License-Identifier: Apache-2.0
 * chat_text.c: what Python's str knows about characters, over the generated tables. */
#include "chat/chat_text.h"

#include <locale.h>

#include "base/json_number.h"
#include "base/unicode.h"
#include "base/unicode_regex_tables.h"
#include "chat/chat_text_tables.h"

bool chat_is_space(uint32_t c)
{
    if (c < 0x80) return (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x20);
    return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

size_t chat_space_end(const char *s, size_t n, size_t i)
{
    size_t len;
    while (i < n && chat_is_space(uni_next(s + i, &len))) i += len;
    return i;
}

size_t chat_rstrip(const char *s, size_t n)
{
    size_t len;
    while (n > 0 && chat_is_space(uni_before(s, n, &len))) n -= len;
    return n;
}

size_t chat_count(const char *s, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) k += ((uint8_t)s[i] & 0xC0) != 0x80;
    return k;
}

static uint8_t category(uint32_t c)
{
    const uint32_t block = uni_gc_1[c >> UNI_GC_SHIFT];
    return uni_gc_2[block << UNI_GC_SHIFT | (c & ((1u << UNI_GC_SHIFT) - 1))];
}

bool chat_is_word(const char *s, size_t *len) { return category(uni_next(s, len)) & UNI_RE_WORD; }

/* t: [n + 1], the last row is behind all characters. */
static bool in_table(const chat_text_range *t, size_t n, uint32_t c)
{
    size_t low = 0;
    while (low < n) {
        const size_t mid = low + (n - low) / 2;
        if (t[mid].last < c)
            low = mid + 1;
        else
            n = mid;
    }
    return t[low].first <= c && c <= t[low].last && (c - t[low].first) % t[low].step == 0;
}

#define IN(name, c) in_table(chat_text_##name, sizeof(chat_text_##name) / sizeof(chat_text_##name[0]) - 1, c)

bool chat_is_printable(uint32_t c) { return !IN(unprintable, c); }
bool chat_is_alpha(uint32_t c) { return IN(alpha, c); }
bool chat_is_decimal(uint32_t c) { return IN(decimal, c); }
bool chat_is_digit(uint32_t c) { return IN(digit, c); }
bool chat_is_numeric(uint32_t c) { return IN(numeric, c); }
bool chat_is_upper(uint32_t c) { return IN(upper, c); }
bool chat_is_lower(uint32_t c) { return IN(lower, c); }
bool chat_is_title(uint32_t c) { return IN(title, c); }
bool chat_is_cased(uint32_t c) { return IN(cased, c); }
bool chat_is_case_ignorable(uint32_t c) { return IN(ignorable, c); }

static size_t map_case(const chat_case_range *t, size_t n, const chat_case_special *s, size_t n_special, uint32_t c,
                       uint32_t out[CHAT_CASE_MOST])
{
    for (size_t i = 0; i < n_special; i++) {
        if (s[i].from != c) continue;
        size_t k = 0;
        while (k < CHAT_CASE_MOST && s[i].to[k]) {
            out[k] = s[i].to[k];
            k++;
        }
        return k;
    }
    out[0] = c;
    size_t low = 0, high = n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (t[mid].last < c)
            low = mid + 1;
        else
            high = mid;
    }
    if (low < n && t[low].first <= c && (c - t[low].first) % t[low].step == 0)
        out[0] = (uint32_t)((int32_t)c + t[low].delta);
    return 1;
}

#define MAP(name, c, out)                                                                             \
    map_case(chat_to_##name, sizeof(chat_to_##name) / sizeof(chat_to_##name[0]), chat_special_##name, \
             sizeof(chat_special_##name) / sizeof(chat_special_##name[0]), c, out)

size_t chat_upper(uint32_t c, uint32_t out[CHAT_CASE_MOST]) { return MAP(upper, c, out); }
size_t chat_title(uint32_t c, uint32_t out[CHAT_CASE_MOST]) { return MAP(title, c, out); }
size_t chat_lower(uint32_t c, uint32_t out[CHAT_CASE_MOST]) { return MAP(lower, c, out); }

bool chat_read_number(const char *s, size_t n, json_value *v)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c == (locale_t)0) return false;
    const bool ok = json_number_read(s, n, false, c, v);
    freelocale(c);
    return ok;
}
