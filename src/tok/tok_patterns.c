/* SPDX-License-Identifier: Apache-2.0
 * tok_patterns.c: the programs. Each reads its pattern's alternatives from left to right at one place, as a
 * backtracking engine does, with what backtracking would find worked out beforehand (said where it happens). Runs of
 * ASCII letters, which most text is, go 16 bytes at a time; other characters through the classes of
 * base/unicode_regex_tables.h.
 */
#include "tok/tok_patterns.h"

#include "base/unicode.h"
#include "base/unicode_regex_tables.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* What a character is to these patterns. UPPER: [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], LOWER: [\p{Ll}\p{Lm}\p{Lo}\p{M}]. */
enum { LETTER = 1, NUMBER = 2, SPACE = 4, NEWLINE = 8, MARK = 16, UPPER = 32, LOWER = 64 };

static const uint8_t ascii_kinds[128] = {
    0,  0,  0,  0,  0,  0,  0,  0,  0,  4,  12, 4,  4,  12, 0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
    0,  0,  0,  0,  0,  0,  4,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  2,  2,  2,  2,
    2,  2,  2,  2,  2,  2,  0,  0,  0,  0,  0,  0,  0,  33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33,
    33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 0,  0,  0,  0,  0,  0,  65, 65, 65, 65, 65, 65, 65,
    65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 0,  0,  0,  0,  0,
};

static const uint8_t category_kinds[32] = {
    [UNI_GC_LU] = LETTER | UPPER,
    [UNI_GC_LL] = LETTER | LOWER,
    [UNI_GC_LT] = LETTER | UPPER,
    [UNI_GC_LM] = LETTER | UPPER | LOWER,
    [UNI_GC_LO] = LETTER | UPPER | LOWER,
    [UNI_GC_MN] = MARK | UPPER | LOWER,
    [UNI_GC_MC] = MARK | UPPER | LOWER,
    [UNI_GC_ME] = MARK | UPPER | LOWER,
    [UNI_GC_ND] = NUMBER,
    [UNI_GC_NL] = NUMBER,
    [UNI_GC_NO] = NUMBER,
};

/* ------------------------------------------------------------------------------------------------------------- runs */

static uint32_t kind_of(uint32_t c)
{
    uint32_t v = uni_gc_2[(uint32_t)uni_gc_1[c >> UNI_GC_SHIFT] << UNI_GC_SHIFT | (c & ((1u << UNI_GC_SHIFT) - 1))];
    return category_kinds[v & UNI_GC_MASK] | (v & UNI_RE_SPACE ? SPACE : 0u);
}

/* The character at s[i]; *len is its bytes. */
static inline uint32_t kind_at(const char *s, size_t i, size_t *len)
{
    uint8_t b = (uint8_t)s[i];
    *len = 1;
    return b < 0x80 ? ascii_kinds[b] : kind_of(uni_next(s + i, len));
}

/* The end of the run of ASCII letters at i. */
static inline size_t ascii_letters(const char *s, size_t i, size_t n)
{
#if defined(__SSE2__)
    for (; i + 16 <= n; i += 16) {
        __m128i x = _mm_or_si128(_mm_loadu_si128((const __m128i *)(const void *)(s + i)), _mm_set1_epi8(0x20));
        __m128i from_a = _mm_add_epi8(x, _mm_set1_epi8((char)(0x80 - 'a'))); /* 'a' is the least signed byte */
        int letters = _mm_movemask_epi8(_mm_cmplt_epi8(from_a, _mm_set1_epi8(-128 + 26)));
        if (letters != 0xFFFF) return i + (size_t)__builtin_ctz(~(unsigned)letters);
    }
#endif
    while (i < n && (uint8_t)s[i] < 0x80 && ascii_kinds[(uint8_t)s[i]] & LETTER) i++;
    return i;
}

/* U+5000 .. U+9FFF and U+B000 .. U+CFFF are other letters, all of them. */
static inline bool all_letters(uint8_t lead) { return (lead >= 0xE5 && lead <= 0xE9) || lead == 0xEB || lead == 0xEC; }

/* The end of the run of characters of these kinds; mask has LETTER. */
static inline size_t letters(const char *s, size_t i, size_t n, uint32_t mask)
{
    for (;;) {
        i = ascii_letters(s, i, n);
        if (i == n || (uint8_t)s[i] < 0x80) return i;
        do {
            size_t len = 3;
            if (!all_letters((uint8_t)s[i]) && !(kind_at(s, i, &len) & mask)) return i;
            i += len;
        } while (i < n && (uint8_t)s[i] >= 0x80);
        if (i == n) return i;
    }
}

static inline size_t run_of(const char *s, size_t i, size_t n, uint32_t mask)
{
    size_t len;
    for (; i < n && kind_at(s, i, &len) & mask; i += len) {
    }
    return i;
}

/* Characters that are of none of these kinds. */
static inline size_t run_without(const char *s, size_t i, size_t n, uint32_t mask)
{
    size_t len;
    for (; i < n && !(kind_at(s, i, &len) & mask); i += len) {
    }
    return i;
}

/* \p{N}{1,most}, the first of which ends at i. */
static inline size_t numbers(const char *s, size_t i, size_t n, int most)
{
    size_t len;
    for (int k = 1; k < most && i < n && kind_at(s, i, &len) & NUMBER; k++) i += len;
    return i;
}

static inline size_t newlines(const char *s, size_t i, size_t n, bool slash)
{
    while (i < n && (s[i] == '\r' || s[i] == '\n' || (slash && s[i] == '/'))) i++;
    return i;
}

/* \s*[\r\n]+ (where has_newlines) | \s+(?!\S) | \s+ at white space. The first takes all white space and gives back
 * what is behind the last newline; the second gives back one character unless the text ends there. */
static inline size_t white_space(const char *s, size_t i, size_t n, bool has_newlines)
{
    size_t end = i, last = i, behind_newline = 0, len;
    for (; end < n; end += len) {
        uint32_t k = kind_at(s, end, &len);
        if (!(k & SPACE)) break;
        last = end;
        if (k & NEWLINE) behind_newline = end + 1;
    }
    if (has_newlines && behind_newline) return behind_newline;
    return end < n && last > i ? last : end;
}

/* ----------------------------------------------------------------------------------------------------- contractions */

/* 's|'t|'re|'ve|'m|'ll|'d at s[i], an apostrophe; 0: none. Caseless, U+017F is an s. */
static inline size_t contraction(const char *s, size_t i, size_t n, bool caseless)
{
    if (n - i < 2) return 0;
    uint8_t a = (uint8_t)s[i + 1], b = n - i > 2 ? (uint8_t)s[i + 2] : 0;
    if (caseless) {
        if (a == 0xC5 && b == 0xBF) return i + 3;
        if (a < 0x80) a |= 0x20;
        if (b < 0x80) b |= 0x20;
    }
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return i + 2;
    if ((a == 'r' || a == 'v') && b == 'e') return i + 3;
    return a == 'l' && b == 'l' ? i + 3 : 0;
}

/* --------------------------------------------------------------------------------------------------------- patterns */

/* GPT-2 (Radford et al. 2019):
 * 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static inline size_t next_gpt2(const char *s, size_t i, size_t n)
{
    size_t len, end;
    uint32_t k = kind_at(s, i, &len);
    if (s[i] == '\'' && (end = contraction(s, i, n, false)) > 0) return end;
    size_t first = i;
    if (s[i] == ' ' && i + 1 < n) {
        first = i + 1;
        k = kind_at(s, first, &len);
    }
    if (k & LETTER) return letters(s, first + len, n, LETTER);
    if (k & NUMBER) return run_of(s, first + len, n, NUMBER);
    if (!(k & SPACE)) return run_without(s, first + len, n, LETTER | NUMBER | SPACE);
    return white_space(s, i, n, false);
}

/* Llama 3, Qwen (word: \p{L}, or [\p{L}\p{M}]; most: digits of a number):
 * (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
 * A mark before a word of letters and marks is part of it either way. */
static inline size_t next_llama(const char *s, size_t i, size_t n, uint32_t word, int most)
{
    size_t len, len2, end;
    uint32_t k = kind_at(s, i, &len);
    if (k & word) return letters(s, i + len, n, word);
    if (k & NUMBER) return numbers(s, i + len, n, most);
    if (s[i] == '\'' && (end = contraction(s, i, n, true)) > 0) return end;
    uint32_t not_other = SPACE | NUMBER | word;
    if (!(k & NEWLINE) && i + len < n) {
        uint32_t k2 = kind_at(s, i + len, &len2);
        if (k2 & word) return letters(s, i + len + len2, n, word);
        if (s[i] == ' ' && !(k2 & not_other))
            return newlines(s, run_without(s, i + len + len2, n, not_other), n, false);
    }
    if (!(k & not_other)) return newlines(s, run_without(s, i + len, n, not_other), n, false);
    return white_space(s, i, n, true);
}

/* [UPPER]*[LOWER]+ at i, else [UPPER]+[LOWER]*; 0: neither.
 * The first takes all of UPPER; where no LOWER is behind them it gives back up to the last that is both. */
static inline size_t cased_word(const char *s, size_t i, size_t n, bool upper_only)
{
    size_t end = i, behind_both = 0, len;
    for (; end < n; end += len) {
        uint32_t k = kind_at(s, end, &len);
        if (!(k & UPPER)) break;
        if (k & LOWER) behind_both = end + len;
    }
    if (upper_only) return end > i ? run_of(s, end, n, LOWER) : 0;
    size_t low = run_of(s, end, n, LOWER);
    return low > end ? low : behind_both;
}

/* GPT-4o (o200k):
 * [^\r\n\p{L}\p{N}]?[UPPER]*[LOWER]+(?i:'s|...)?|[^\r\n\p{L}\p{N}]?[UPPER]+[LOWER]*(?i:'s|...)?|\p{N}{1,3}|
 *  ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+ */
static inline size_t next_o200k(const char *s, size_t i, size_t n, bool contractions, int most)
{
    size_t len, len2, end = 0;
    uint32_t k = kind_at(s, i, &len);
    bool prefix = !(k & (LETTER | NUMBER | NEWLINE));
    for (int upper_only = 0; upper_only < 2 && !end; upper_only++) {
        if (prefix && i + len < n) end = cased_word(s, i + len, n, upper_only);
        if (!end && k & (UPPER | LOWER)) end = cased_word(s, i, n, upper_only);
    }
    if (end) {
        size_t more = contractions && end < n && s[end] == '\'' ? contraction(s, end, n, true) : 0;
        return more ? more : end;
    }
    if (k & NUMBER) return numbers(s, i + len, n, most);
    const uint32_t not_other = SPACE | NUMBER | LETTER;
    if (s[i] == ' ' && i + 1 < n && !(kind_at(s, i + 1, &len2) & not_other))
        return newlines(s, run_without(s, i + 1 + len2, n, not_other), n, true);
    if (!(k & not_other)) return newlines(s, run_without(s, i + len, n, not_other), n, true);
    return white_space(s, i, n, true);
}

/* ------------------------------------------------------------------------------------------------------------- table */

typedef size_t next_fn(const char *s, size_t i, size_t n);

/* Inlined with the pattern's own function in each place. */
static inline size_t split_all(next_fn *next, const char *s, size_t n, size_t *at, tok_span *out, size_t most)
{
    size_t i = *at, k = 0;
    while (i < n && k < most) {
        size_t e = next(s, i, n);
        out[k++] = (tok_span){(uint32_t)i, (uint32_t)e};
        i = e;
    }
    *at = i;
    return k;
}

static size_t next_llama3(const char *s, size_t i, size_t n) { return next_llama(s, i, n, LETTER, 3); }
static size_t next_qwen2(const char *s, size_t i, size_t n) { return next_llama(s, i, n, LETTER, 1); }
static size_t next_qwen35(const char *s, size_t i, size_t n) { return next_llama(s, i, n, LETTER | MARK, 1); }
static size_t next_gpt4o(const char *s, size_t i, size_t n) { return next_o200k(s, i, n, true, 3); }
static size_t next_tekken(const char *s, size_t i, size_t n) { return next_o200k(s, i, n, false, 1); }

static size_t split_gpt2(const char *s, size_t n, size_t *at, tok_span *out, size_t most)
{
    return split_all(next_gpt2, s, n, at, out, most);
}
static size_t split_llama3(const char *s, size_t n, size_t *at, tok_span *out, size_t most)
{
    return split_all(next_llama3, s, n, at, out, most);
}
static size_t split_qwen2(const char *s, size_t n, size_t *at, tok_span *out, size_t most)
{
    return split_all(next_qwen2, s, n, at, out, most);
}
static size_t split_qwen35(const char *s, size_t n, size_t *at, tok_span *out, size_t most)
{
    return split_all(next_qwen35, s, n, at, out, most);
}
static size_t split_gpt4o(const char *s, size_t n, size_t *at, tok_span *out, size_t most)
{
    return split_all(next_gpt4o, s, n, at, out, most);
}
static size_t split_tekken(const char *s, size_t n, size_t *at, tok_span *out, size_t most)
{
    return split_all(next_tekken, s, n, at, out, most);
}

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define UPPERS "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWERS "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define REST "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const struct {
    const char *regex;
    tok_pattern pattern;
} patterns[] = {
    {"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", {"gpt2", split_gpt2}},
    {CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" REST,
     {"llama3", split_llama3}},
    {CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" REST, {"qwen2", split_qwen2}},
    {CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" REST,
     {"qwen35", split_qwen35}},
    {"[^\\r\\n\\p{L}\\p{N}]?" UPPERS "*" LOWERS "+" CONTRACTIONS "?|[^\\r\\n\\p{L}\\p{N}]?" UPPERS "+" LOWERS
     "*" CONTRACTIONS "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" REST,
     {"o200k", split_gpt4o}},
    {"[^\\r\\n\\p{L}\\p{N}]?" UPPERS "*" LOWERS "+|[^\\r\\n\\p{L}\\p{N}]?" UPPERS "+" LOWERS
     "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" REST,
     {"tekken", split_tekken}},
};

const tok_pattern *tok_pattern_find(tok_string regex)
{
    for (size_t k = 0; k < sizeof(patterns) / sizeof(patterns[0]); k++) {
        if (strlen(patterns[k].regex) == regex.n && memcmp(patterns[k].regex, regex.s, regex.n) == 0)
            return &patterns[k].pattern;
    }
    return NULL;
}

const tok_pattern *tok_pattern_gpt2(void) { return &patterns[0].pattern; }
