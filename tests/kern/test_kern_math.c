/* SPDX-License-Identifier: Apache-2.0
 *
 * test_kern_math.c: the error of the elementwise functions in units of the last place (ulp) against the C library's
 * double functions, over samples of all floats: every exponent, both signs, a million bit patterns, and their special
 * values. kern.h states the bounds. */
#include "kern_oracle.h"

enum { SAMPLE_STEP = 3989 /* prime: all exponents, changing low bits */, BLOCK = 4096 };

static float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

/* The distance between neighbouring floats at v. */
static double ulp_of(double v)
{
    v = fabs(v);
    return v < 0x1p-126 ? 0x1p-149 : ldexp(1.0, ilogb(v) - 23);
}

/* What kern.h allows beside: the tails on the left. */
static double absolute_floor(kern_fn fn)
{
    if (fn == KERN_FN_GELU || fn == KERN_FN_GELU_TANH) return 1e-7;
    return fn == KERN_FN_SILU ? 0x1p-120 : 0.0;
}

/* Those that divide by a rounded sum get half an ulp more. */
static double ulps_allowed(kern_fn fn) { return fn == KERN_FN_SIGMOID || fn == KERN_FN_SILU ? 2.5 : 2.0; }

static void check_block(const kern_table *t, kern_fn fn, int n, const float *x, double *worst, float *worst_at,
                        double *worst_floor)
{
    float y[BLOCK];
    t->map(fn, (size_t)n, x, y);
    for (int i = 0; i < n; i++) {
        const double want = oracle_fn(fn, (double)x[i]);
        if ((float)want == y[i]) continue; /* right, infinities too */
        const double error = fabs((double)y[i] - want), ulps = error / ulp_of(want);
        if (!(ulps <= ulps_allowed(fn)) && !(error <= absolute_floor(fn)))
            fail_msg("%s %s(%.9g): got %.9g, want %.9g: %.2f ulp, absolute %.2g", t->isa, oracle_fn_name(fn),
                     (double)x[i], (double)y[i], want, ulps, error);
        if (absolute_floor(fn) > 0 && ulps > ulps_allowed(fn))
            *worst_floor = fmax(*worst_floor, error);
        else if (ulps > *worst)
            *worst = ulps, *worst_at = x[i];
    }
}

static void test_ulps(void **state)
{
    (void)state;
    kern_table tables[ORACLE_TABLES];
    const int n_tables = oracle_tables(tables);
    assert_true(n_tables >= 1);
    for (int t = 0; t < n_tables; t++) {
        for (int fn = KERN_FN_RELU; fn < KERN_FN_COUNT; fn++) {
            float x[BLOCK], worst_at = 0;
            double worst = 0, worst_floor = 0;
            int64_t samples = 0;
            int n = 0;
            for (uint64_t u = 0; u <= UINT32_MAX; u += SAMPLE_STEP) {
                if ((u & 0x7fffffff) > 0x7f800000) continue; /* NaN: another test */
                x[n++] = float_of((uint32_t)u);
                if (n == BLOCK)
                    check_block(&tables[t], (kern_fn)fn, n, x, &worst, &worst_at, &worst_floor), samples += n, n = 0;
            }
            for (int i = 0; i < 400000; i++) { /* and the range where it bends, evenly */
                x[n++] = (float)(i - 200000) * 0.00061f + 1e-5f;
                if (n == BLOCK)
                    check_block(&tables[t], (kern_fn)fn, n, x, &worst, &worst_at, &worst_floor), samples += n, n = 0;
            }
            check_block(&tables[t], (kern_fn)fn, n, x, &worst, &worst_at, &worst_floor);
            samples += n;
            assert_true(samples > 1000000);
            printf("map %-10s %-5s %lld samples: worst %.3f ulp at %.9g; beyond the bound at most %.1e absolute\n",
                   oracle_fn_name((kern_fn)fn), tables[t].isa, (long long)samples, worst, (double)worst_at,
                   worst_floor);
        }
    }
}

static void test_special_values(void **state)
{
    (void)state;
    static const struct {
        kern_fn fn;
        float x, y;
    } cases[] = {
        {KERN_FN_EXP, -INFINITY, 0.0f},       {KERN_FN_EXP, -104.0f, 0.0f},
        {KERN_FN_EXP, -3e38f, 0.0f},          {KERN_FN_EXP, 0.0f, 1.0f},
        {KERN_FN_EXP, -0.0f, 1.0f},           {KERN_FN_EXP, 88.73f, INFINITY},
        {KERN_FN_EXP, INFINITY, INFINITY},    {KERN_FN_EXP, -103.9f, 0x1p-149f},
        {KERN_FN_TANH, INFINITY, 1.0f},       {KERN_FN_TANH, -INFINITY, -1.0f},
        {KERN_FN_TANH, 0.0f, 0.0f},           {KERN_FN_SIGMOID, INFINITY, 1.0f},
        {KERN_FN_SIGMOID, -INFINITY, 0.0f},   {KERN_FN_SIGMOID, 0.0f, 0.5f},
        {KERN_FN_RELU, -INFINITY, 0.0f},      {KERN_FN_RELU, INFINITY, INFINITY},
        {KERN_FN_GELU, INFINITY, INFINITY},   {KERN_FN_GELU, 0.0f, 0.0f},
        {KERN_FN_GELU_TANH, 0.0f, 0.0f},      {KERN_FN_GELU_TANH, INFINITY, INFINITY},
        {KERN_FN_GELU_TANH, -INFINITY, 0.0f}, {KERN_FN_SILU, 0.0f, 0.0f},
        {KERN_FN_SILU, INFINITY, INFINITY},   {KERN_FN_SILU, -INFINITY, 0.0f},
        {KERN_FN_GELU_TANH, 3e38f, 3e38f},    {KERN_FN_GELU_TANH, -3e38f, 0.0f},
        {KERN_FN_SILU, -3e38f, 0.0f},         {KERN_FN_GELU, 3e38f, 3e38f},
    };
    kern_table tables[ORACLE_TABLES];
    const int n_tables = oracle_tables(tables);
    assert_true(n_tables >= 1);
    for (int t = 0; t < n_tables; t++) {
        float y;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            tables[t].map(cases[i].fn, 1, &cases[i].x, &y);
            if (!(y == cases[i].y))
                fail_msg("%s %s(%g): got %.9g, want %.9g", tables[t].isa, oracle_fn_name(cases[i].fn),
                         (double)cases[i].x, (double)y, (double)cases[i].y);
        }
        const float far_left = -INFINITY;
        tables[t].map(KERN_FN_GELU, 1, &far_left, &y);
        assert_true(y <= 0.0f && y > -1e-30f);
        for (int fn = 0; fn < KERN_FN_COUNT; fn++) {
            const float nan[2] = {NAN, -NAN};
            float got[2];
            tables[t].map((kern_fn)fn, 2, nan, got);
            if (!isnan(got[0]) || !isnan(got[1]))
                fail_msg("%s %s(NaN) is a number", tables[t].isa, oracle_fn_name((kern_fn)fn));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ulps), cmocka_unit_test(test_special_values)};
    return TEST_RUN(tests);
}
