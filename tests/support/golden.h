/* SPDX-License-Identifier: Apache-2.0
 * golden.h: reading what the reference implementation gave: expected.json of a golden directory, as texts with ids and vectors. */
#ifndef LATH_TESTS_GOLDEN_H
#define LATH_TESTS_GOLDEN_H

#include <stdbool.h>

#include "base/json.h"

typedef struct golden_text {
    const char *text; /* may hold 0 bytes */
    size_t len;
    const char *prompt_name, *prompt; /* NULL: the directory's default */
    int32_t *ids;
    size_t n_ids, n_untruncated, dim; /* n_untruncated: 0 when not recorded */
    float *vector;                    /* [dim] */
} golden_text;

typedef struct golden {
    arena mem;
    const json_value *json;
    golden_text *texts;
    size_t n;
} golden;

/* Fails the test when the file cannot be read. */
void golden_load(golden *g, const char *path);
void golden_release(golden *g);
/* Largest absolute difference and cosine of two vectors. */
double golden_max_abs(const float *a, const float *b, size_t n);
double golden_cosine(const float *a, const float *b, size_t n);
/* "DIR/a/b" into a static buffer of the caller. */
void test_path(char *out, size_t n, const char *a, const char *b);
/* Names of the folders in a directory, sorted; *n of them, into `mem`. */
const char **test_list_dirs(arena *mem, const char *dir, size_t *n);

#endif
