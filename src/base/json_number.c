/* SPDX-License-Identifier: Apache-2.0
 * json_number.c: the value of a number as JSON writes it. */
#include "base/json_number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool parse_int(const char *s, size_t n, int64_t *out)
{
    size_t i = s[0] == '-';
    uint64_t u = 0;
    if (n - i > 19) return false;
    for (; i < n; i++) {
        if (s[i] < '0' || s[i] > '9') return false;
        u = u * 10 + (uint64_t)(s[i] - '0');
    }
    if (u > (uint64_t)INT64_MAX + (s[0] == '-')) return false;
    *out = s[0] == '-' ? (int64_t)(0 - u) : (int64_t)u;
    return true;
}

/* A decimal of up to 19 digits without an exponent: the quotient of two integers that an 80-bit float holds exactly,
 * so rounded once, to 64 bits. false: written otherwise, or so near to the middle between two doubles that rounding it
 * again could go wrong. */
static bool plain_real(const char *s, size_t n, double *out)
{
#if LDBL_MANT_DIG == 64
    static const long double tens[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,
                                       1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L};
    uint64_t m = 0, bits;
    size_t i = s[0] == '-', digits = 0, behind = 0;
    bool point = false;
    for (; i < n; i++) {
        if (s[i] == '.') {
            point = true;
            continue;
        }
        if (s[i] < '0' || s[i] > '9' || ++digits > 19) return false;
        m = m * 10 + (uint64_t)(s[i] - '0');
        behind += point;
    }
    long double q = (long double)m / tens[behind];
    memcpy(&bits, &q, sizeof(bits)); /* the significand */
    uint64_t low = bits & 0x7FF;     /* what a double does not hold */
    if (low >= 0x3FF && low <= 0x401) return false;
    *out = s[0] == '-' ? -(double)q : (double)q;
    return true;
#else
    (void)s, (void)n, (void)out;
    return false;
#endif
}

static double power_of_ten(unsigned n, locale_t c_locale)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    char text[16];
    if (n < sizeof(tens) / sizeof(tens[0])) return tens[n];
    snprintf(text, sizeof(text), "1e%u", n);
    return strtod_l(text, NULL, c_locale);
}

/* serde_json's f64 without its feature float_roundtrip: as many digits as 64 bits hold, rounded, then multiplied with or
 * divided by a power of ten, and rounded again. Scores of tokenizers are read so: sums that tie there must tie here. */
static double serde_real(const char *s, size_t n, locale_t c_locale)
{
    uint64_t m = 0;
    int64_t exponent = 0, stated = 0;
    size_t i = s[0] == '-';
    bool point = false, full = false, below = false;
    for (; i < n && s[i] != 'e' && s[i] != 'E'; i++) {
        if (s[i] == '.') {
            point = true;
            continue;
        }
        uint64_t digit = (uint64_t)(s[i] - '0');
        full = full || m > (UINT64_MAX - digit) / 10;
        if (!full) m = m * 10 + digit;
        exponent += full ? !point : -(int64_t)point;
    }
    if (i < n) i++;
    if (i < n && (s[i] == '-' || s[i] == '+')) below = s[i++] == '-';
    for (; i < n; i++) stated = stated < INT32_MAX ? stated * 10 + (s[i] - '0') : stated;
    exponent += below ? -stated : stated;
    double f = (double)m;
    for (; exponent < -308 && f != 0; exponent += 308) f /= 1e308;
    if (exponent > 308) { /* infinite, or 0 */
        f = f != 0 ? HUGE_VAL : 0;
        exponent = 0;
    }
    if (f != 0)
        f = exponent < 0 ? f / power_of_ten((unsigned)-exponent, c_locale)
                         : f * power_of_ten((unsigned)exponent, c_locale);
    return s[0] == '-' ? -f : f;
}

bool json_number_read(const char *s, size_t n, bool serde_reals, locale_t c_locale, json_value *v)
{
    char text[JSON_NUMBER_MOST + 1];
    v->kind = JSON_INT;
    if (parse_int(s, n, &v->u.integer)) return true;
    if (n > JSON_NUMBER_MOST) return false;
    memcpy(text, s, n);
    text[n] = 0;
    v->kind = JSON_REAL;
    if (serde_reals)
        v->u.real = serde_real(s, n, c_locale);
    else if (!plain_real(s, n, &v->u.real))
        v->u.real = strtod_l(text, NULL, c_locale);
    return true;
}
