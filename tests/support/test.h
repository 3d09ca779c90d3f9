/* SPDX-License-Identifier: Apache-2.0
 *
 * test.h: what every test program includes. cmocka's own exit code is the number of failures (0 for none run, 0 for 256), so the main here returns
 * 1 on any failure or when nothing ran, and 77 when everything that matters was skipped (LATH_TEST_STRICT=1 turns a skip into a failure).
 */
#ifndef LATH_TESTS_TEST_H
#define LATH_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lath/lath_core.h"

/* Says why the whole program has nothing to test here; use as `return test_skip("model X is absent")` from main. */
static inline int test_skip(const char *why)
{
    const char *strict = getenv("LATH_TEST_STRICT");
    if (strict && strcmp(strict, "1") == 0) {
        fprintf(stderr, "FAILED: skipped although LATH_TEST_STRICT=1: %s\n", why);
        return 1;
    }
    fprintf(stderr, "skipped: %s\n", why);
    return 77;
}

/* Runs a CMUnitTest array. */
#define TEST_RUN(tests) \
    (sizeof(tests) / sizeof((tests)[0]) == 0 || cmocka_run_group_tests(tests, NULL, NULL) != 0 ? 1 : 0)
#define TEST_MAIN(tests) \
    int main(void) { return TEST_RUN(tests); }

/* Directory of the tests' data files (golden/, support/...): LATH_TEST_DATA of the environment, else what the build set. */
static inline const char *test_data_dir(void)
{
    const char *d = getenv("LATH_TEST_DATA");
#ifdef LATH_TEST_DATA_DIR
    return d && *d ? d : LATH_TEST_DATA_DIR;
#else
    return d && *d ? d : "tests";
#endif
}

/* Directory of the real models, or NULL: LATH_MODELS of the environment. */
static inline const char *test_models_dir(void)
{
    const char *d = getenv("LATH_MODELS");
    return d && *d ? d : NULL;
}

#define assert_ok(expr, err)                                                                         \
    do {                                                                                             \
        lath_status assert_st_ = (expr);                                                             \
        if (assert_st_ != LATH_OK) fail_msg("%s: status %d: %s", #expr, (int)assert_st_, (err).msg); \
    } while (0)

#endif
