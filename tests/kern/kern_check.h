/* SPDX-License-Identifier: Apache-2.0
 * kern_check.h: a slot on an ISA under test, and how a value is compared. */
#ifndef LATH_TESTS_KERN_CHECK_H
#define LATH_TESTS_KERN_CHECK_H

#include "kern_oracle.h"

/* One slot on one ISA: the run so far. */
typedef struct check {
    const kern_table *t, *ref;
    oracle_rng rng;
    double tolerance, worst, worst_ref;
    int64_t cases, values;
    char where[160]; /* the case, for messages */
} check;

/* got against the double result and the reference's, relative to scale. */
static inline void check_value(check *c, float got, double want, float ref, double scale)
{
    const double error = fabs((double)got - want), error_ref = fabs((double)got - (double)ref);
    c->values++;
    if (!(error <= c->tolerance * scale) || !(error_ref <= c->tolerance * scale))
        fail_msg("%s: got %.9g, want %.9g, reference %.9g, scale %.3g, tolerance %.1g", c->where, (double)got, want,
                 (double)ref, scale, c->tolerance);
    if (scale > 0 && error / scale > c->worst) c->worst = error / scale;
    if (scale > 0 && error_ref / scale > c->worst_ref) c->worst_ref = error_ref / scale;
}

#define WHERE(c, ...) snprintf((c)->where, sizeof((c)->where), __VA_ARGS__)

/* The next multiple of a block. */
static inline int64_t whole_blocks(dtype type, int64_t n)
{
    const int64_t numbers = (int64_t)dtype_block_numbers(type);
    return (n + numbers - 1) / numbers * numbers;
}

#endif
