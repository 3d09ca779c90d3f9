/* SPDX-License-Identifier: Apache-2.0
 *
 * grammar_number.c: numbers of JSON as rules. Whole numbers between bounds are digit by digit: those of one length share the part
 * before the digits differ. Numbers with a fraction between bounds: n.f lies between n and n + 1, so n runs over the whole numbers for which
 * both fit. Digits are limited, so that no number goes on for ever and every number is a finite double.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/grammar_schema.h"

enum { WHOLE_DIGITS = 18, FRACTION_DIGITS = 17, BOUNDED_FRACTION_DIGITS = 6, PARTS_MOST = 4 * WHOLE_DIGITS };
static const int64_t LARGEST = 999999999999999999;

typedef struct parts {
    grammar_expr *v[PARTS_MOST];
    size_t n;
} parts;

static grammar_expr *digits(grammar_builder *b, char lo, char hi, uint32_t min, uint32_t max)
{
    grammar_chars c = {0};
    grammar_chars_add(b, &c, (uint8_t)lo, (uint8_t)hi);
    grammar_expr *e = grammar_char(b, &c);
    return min == 1 && max == 1 ? e : grammar_repeat(b, e, min, max);
}

static bool all(const char *s, size_t n, char c)
{
    for (size_t i = 0; i < n; i++) {
        if (s[i] != c) return false;
    }
    return true;
}

/* Numbers of n digits from lo to hi. */
static grammar_expr *between(grammar_builder *b, const char *lo, const char *hi, size_t n)
{
    static const char zeros[] = "000000000000000000", nines[] = "999999999999999999";
    if (n == 0) return grammar_text(b, "");
    if (all(lo, n, '0') && all(hi, n, '9')) return digits(b, '0', '9', (uint32_t)n, (uint32_t)n);
    if (lo[0] == hi[0]) return GRAMMAR_SEQ_OF(b, digits(b, lo[0], lo[0], 1, 1), between(b, lo + 1, hi + 1, n - 1));
    grammar_expr *alts[3];
    size_t k = 0;
    char from = lo[0], to = hi[0];
    if (!all(lo + 1, n - 1, '0')) {
        alts[k++] = GRAMMAR_SEQ_OF(b, digits(b, from, from, 1, 1), between(b, lo + 1, nines, n - 1));
        from++;
    }
    if (!all(hi + 1, n - 1, '9')) {
        alts[k++] = GRAMMAR_SEQ_OF(b, digits(b, to, to, 1, 1), between(b, zeros, hi + 1, n - 1));
        to--;
    }
    if (from <= to) alts[k++] = GRAMMAR_SEQ_OF(b, digits(b, from, to, 1, 1), between(b, zeros, nines, n - 1));
    return grammar_list(b, GRAMMAR_ALT, alts, k);
}

static void put_digits(int64_t v, size_t n, char *out)
{
    while (n-- > 0) {
        out[n] = (char)('0' + v % 10);
        v /= 10;
    }
}

/* 0 <= lo: whole numbers from lo to hi, by length. */
static void add_whole(grammar_builder *b, parts *p, const char *before, int64_t lo, int64_t hi, grammar_expr *behind)
{
    int64_t first = 0, last = 9;
    for (size_t n = 1; n <= WHOLE_DIGITS; n++) {
        const int64_t from = lo > first ? lo : first, to = hi < last ? hi : last;
        if (from <= to) {
            char x[WHOLE_DIGITS], y[WHOLE_DIGITS];
            put_digits(from, n, x);
            put_digits(to, n, y);
            p->v[p->n++] = GRAMMAR_SEQ_OF(b, grammar_text(b, before), between(b, x, y, n), behind);
        }
        if (n == WHOLE_DIGITS) break;
        first = last + 1;
        last = last * 10 + 9;
    }
}

/* --------------------------------------------------------------------------------------------------------------- bounds */

typedef struct bounds {
    double min, max; /* infinite: none */
    bool open_min, open_max;
} bounds;

static double number_of(const json_value *m)
{
    return m->kind == JSON_INT ? (double)m->u.integer : m->kind == JSON_REAL ? m->u.real : NAN;
}

/* exclusiveMinimum of draft 4 was a flag for minimum. */
static bool read_bound(schema *s, const json_value *v, const char *key, const char *open_key, const schema_place *at,
                       bool below, double *bound, bool *open)
{
    const json_value *m = json_get(v, key), *x = json_get(v, open_key);
    const bool flag = x && x->kind == JSON_BOOL;
    if ((m && isnan(number_of(m))) || (x && !flag && isnan(number_of(x)))) {
        schema_fail(s, m && isnan(number_of(m)) ? m : x, at, LATH_ERR_INPUT, "\"%s\": want a number",
                    m && isnan(number_of(m)) ? key : open_key);
        return false;
    }
    if (m) *bound = number_of(m);
    if (m && flag) *open = x->u.boolean;
    if (x && !flag) {
        const double y = number_of(x);
        if (!m || (below ? y >= *bound : y <= *bound)) {
            *bound = y;
            *open = true;
        }
    }
    return true;
}

static bool read_bounds(schema *s, const json_value *v, const schema_place *at, bounds *out)
{
    *out = (bounds){-INFINITY, INFINITY, false, false};
    const json_value *step = json_get(v, "multipleOf");
    if (!read_bound(s, v, "minimum", "exclusiveMinimum", at, true, &out->min, &out->open_min)) return false;
    if (!read_bound(s, v, "maximum", "exclusiveMaximum", at, false, &out->max, &out->open_max)) return false;
    if (step && number_of(step) != 1) {
        schema_refuse(s, step, at, "cannot be enforced (but 1 for whole numbers)");
        return false;
    }
    return true;
}

static int64_t clip(double v) { return v >= (double)LARGEST ? LARGEST : v <= -(double)LARGEST ? -LARGEST : (int64_t)v; }

/* A bound beyond 2^53 may have been rounded when it was read: the numbers next to it are given up. */
static int64_t inexact(double bound) { return isfinite(bound) && fabs(bound) > 0x1p53 ? 1024 : 0; }

static int64_t least_whole(const bounds *x)
{
    const double c = ceil(x->min);
    return clip(c == x->min && x->open_min ? c + 1 : c) + inexact(x->min);
}

static int64_t largest_whole(const bounds *x)
{
    const double f = floor(x->max);
    return clip(f == x->max && x->open_max ? f - 1 : f) - inexact(x->max);
}

/* n.f with as many digits as here reads as less than n + 1 up to this n; beyond it an excluded n + 1 is given up. */
static int64_t last_before(double bound, bool open)
{
    const double f = floor(bound);
    return clip(f) - 1 - (open && fabs(f) > 1e9) - inexact(bound);
}

static grammar_expr *whole(schema *s, const json_value *v, const schema_place *at, const bounds *x)
{
    grammar_builder *b = s->b;
    const int64_t lo = least_whole(x), hi = largest_whole(x);
    parts p = {.n = 0};
    grammar_expr *nothing = grammar_text(b, "");
    if (lo > hi)
        return schema_fail(s, v, at, LATH_ERR_INPUT, "no whole number of up to %d digits lies between the bounds",
                           WHOLE_DIGITS);
    if (lo < 0) add_whole(b, &p, "-", hi < 0 ? -hi : 1, -lo, nothing);
    if (hi >= 0) add_whole(b, &p, "", lo > 0 ? lo : 0, hi, nothing);
    return grammar_list(b, GRAMMAR_ALT, p.v, p.n);
}

static grammar_expr *fraction(grammar_builder *b, uint32_t most)
{
    return GRAMMAR_SEQ_OF(b, grammar_text(b, "."), digits(b, '0', '9', 1, most));
}

static grammar_expr *real(schema *s, const json_value *v, const schema_place *at, const bounds *x)
{
    grammar_builder *b = s->b;
    const int64_t lo = least_whole(x), hi = largest_whole(x);
    parts p = {.n = 0};
    grammar_expr *nothing = grammar_text(b, ""), *tail = fraction(b, BOUNDED_FRACTION_DIGITS);
    if (lo <= hi) {
        if (lo < 0) add_whole(b, &p, "-", hi < 0 ? -hi : 1, -lo, nothing);
        if (hi >= 0) add_whole(b, &p, "", lo > 0 ? lo : 0, hi, nothing);
        /* n.f of n + 1 at most max; -n.f of -(n + 1) at least min. */
        const int64_t up = last_before(x->max, x->open_max), down = last_before(-x->min, x->open_min);
        if (up >= (lo > 0 ? lo : 0)) add_whole(b, &p, "", lo > 0 ? lo : 0, up, tail);
        if (down >= (hi < 0 ? -hi : 0)) add_whole(b, &p, "-", hi < 0 ? -hi : 0, down, tail);
    }
    if (p.n == 0)
        return schema_fail(s, v, at, LATH_ERR_UNSUPPORTED,
                           "no whole number of up to %d digits lies between the bounds: this cannot be enforced",
                           WHOLE_DIGITS);
    return grammar_list(b, GRAMMAR_ALT, p.v, p.n);
}

/* -?(0|[1-9][0-9]*), up to 18 digits. */
static grammar_expr *plain_whole(grammar_builder *b)
{
    grammar_expr *sign = grammar_repeat(b, grammar_text(b, "-"), 0, 1);
    grammar_expr *more = GRAMMAR_SEQ_OF(b, digits(b, '1', '9', 1, 1), digits(b, '0', '9', 0, WHOLE_DIGITS - 1));
    return GRAMMAR_SEQ_OF(b, sign, GRAMMAR_ALT_OF(b, grammar_text(b, "0"), more));
}

static grammar_expr *plain_real(grammar_builder *b)
{
    grammar_chars e = {0}, signs = {0};
    grammar_chars_add(b, &e, 'e', 'e');
    grammar_chars_add(b, &e, 'E', 'E');
    grammar_chars_add(b, &signs, '+', '+');
    grammar_chars_add(b, &signs, '-', '-');
    grammar_expr *power = GRAMMAR_SEQ_OF(b, grammar_char(b, &e), grammar_repeat(b, grammar_char(b, &signs), 0, 1),
                                         digits(b, '0', '9', 1, 2));
    return GRAMMAR_SEQ_OF(b, plain_whole(b), grammar_repeat(b, fraction(b, FRACTION_DIGITS), 0, 1),
                          grammar_repeat(b, power, 0, 1));
}

static grammar_expr *unbounded(schema *s, bool want_whole)
{
    uint32_t *rule = want_whole ? &s->integer : &s->number;
    if (*rule == 0) {
        *rule = grammar_add_rule(s->b, want_whole ? "integer" : "number");
        grammar_expr *e = want_whole ? plain_whole(s->b) : plain_real(s->b);
        if (s->b->status == LATH_OK) s->b->rules[*rule].expr = e;
    }
    return grammar_ref(s->b, *rule);
}

grammar_expr *schema_number(schema *s, const json_value *v, const schema_place *at, bool want_whole)
{
    bounds x;
    if (!read_bounds(s, v, at, &x)) return grammar_text(s->b, "");
    if (json_get(v, "multipleOf")) want_whole = true; /* of 1 */
    if (isinf(x.min) && isinf(x.max)) return unbounded(s, want_whole);
    return want_whole ? whole(s, v, at, &x) : real(s, v, at, &x);
}
