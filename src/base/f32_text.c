/* SPDX-License-Identifier: Apache-2.0
 *
 * f32_text.c: see f32_text.h. With 10^e <= |v| < 10^(e+1), the d significant digits are m = round(v * 10^(d-1-e)), one
 * double product by an exact power of ten: its error is below 1e-7, so m is right unless the fraction is that near to a
 * half. The text m / 10^(d-1-e) reads back as v when it lies between the middles to the neighbouring floats, which are
 * exact doubles; a quotient too near to a middle is left to the slow way. Nine digits always read back. So the answer
 * is either printf's own or none.
 */
#include "base/f32_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static const double LEAST = 1e-4, MOST = 1e6;
static const double TIE_MARGIN = 1e-5,
                    MIDDLE_MARGIN = 1e-14; /* absolute, of digits; relative, of values: far above the errors */

static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13};

/* The middles between a > 0 and the floats beside it. */
static void middles(float a, double *low, double *high)
{
    uint32_t bits, below, above;
    float fb, fa;
    memcpy(&bits, &a, sizeof(bits));
    below = bits - 1;
    above = bits + 1;
    memcpy(&fb, &below, sizeof(fb));
    memcpy(&fa, &above, sizeof(fa));
    *low = ((double)a + fb) / 2;
    *high = ((double)a + fa) / 2;
}

/* Digits of m (d of them, the first for 10^e) in fixed notation without zeros at the end. */
static size_t put_fixed(uint64_t m, int d, int e, bool minus, char *out)
{
    char digits[20];
    size_t n = 0;
    for (int i = d - 1; i >= 0; i--) {
        digits[i] = (char)('0' + m % 10);
        m /= 10;
    }
    while (d > 1 && d > e + 1 && digits[d - 1] == '0') d--;
    if (minus) out[n++] = '-';
    if (e < 0) {
        out[n++] = '0';
        out[n++] = '.';
        for (int i = -1; i > e; i--) out[n++] = '0';
    }
    for (int i = 0; i < d; i++) {
        if (e >= 0 && i == e + 1) out[n++] = '.';
        out[n++] = digits[i];
    }
    return n;
}

size_t f32_text(float v, char out[F32_TEXT_BYTES])
{
    const double a = fabs((double)v);
    double low, high;
    int e = -4;
    if (!(a >= LEAST && a < MOST)) return 0;
    while (e < 0 ? a * powers[-e - 1] >= 1 : a >= powers[e + 1]) e++;
    middles((float)a, &low, &high);
    for (int d = 6; d <= 9; d++) {
        const double scale = powers[d - 1 - e], scaled = a * scale;
        uint64_t m = (uint64_t)scaled;
        const double fraction = scaled - (double)m;
        if (fabs(fraction - 0.5) < TIE_MARGIN) return 0;
        m += fraction > 0.5;
        const double back = (double)m / scale;
        if (m < (uint64_t)powers[d - 1] || m >= (uint64_t)powers[d]) return 0; /* rounded up to the next power of ten */
        if (fabs(back - low) < low * MIDDLE_MARGIN || fabs(back - high) < high * MIDDLE_MARGIN) return 0;
        if (d == 9 || (back > low && back < high)) return put_fixed(m, d, e, v < 0, out);
    }
    return 0;
}
