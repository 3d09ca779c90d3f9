/* SPDX-License-Identifier: Apache-2.0
 * inside_case.h: a model of tests/golden with what the reference has inside (tools/ref/make_inside_goldens.py), opened through the public interface. */
#ifndef LATH_TESTS_INSIDE_CASE_H
#define LATH_TESTS_INSIDE_CASE_H

#include <stdbool.h>

#include "lath/lath_inspect.h"
#include "store/safetensors.h"

/* As make_inside_goldens.py has them; of rows and results -1 is the last token. */
enum { EDIT_LAYER = 1, EDIT_HEAD = 1, EDIT_FEATURE = 4, EDIT_TOKEN = 3, PATCH_TOKEN = 5, N_ROWS = 2, N_RESULTS = 3 };

typedef struct inside_case {
    const char *name; /* FAMILY/CASE */
    lath_runtime *rt;
    lath_model *model;
    safetensors *want;
    const int32_t *ids; /* [n] */
    int32_t n, n_layers, vocab;
    int64_t d;
    bool generates, post_norm;
} inside_case;

inside_case inside_open(const char *name, const lath_allocator *alloc);
void inside_close(inside_case *c);
/* Every decoder and some encoders, or `only` where it is not NULL. Fails when there is none. */
void inside_each(const char *only, void (*check)(const inside_case *c));
/* Fails where the reference has none of the name; inside_find: NULL then. */
const tensor *inside_want(const inside_case *c, const char *key);
const tensor *inside_find(const inside_case *c, const char *key);
/* n numbers against others, relative to the largest of these. */
void inside_compare(const inside_case *c, const char *what, const float *have, const float *want, int64_t n,
                    double most);
/* A trace that must come about. */
lath_trace *inside_run(const inside_case *c, const lath_trace_options *o);
/* The row of a point that must be there. */
const float *inside_row(const lath_trace *t, lath_point point, int32_t layer, int32_t position, size_t *d);
/* The model's result as the reference has it: of a language model the logits of N_RESULTS tokens, of an encoder all hidden states; `t` has all positions. The caller
 * frees it. */
float *inside_result(const inside_case *c, const lath_trace *t, int64_t *n);

/* The call fails like this and its message has the word. */
#define assert_refused(expr, err, want, word)                                                       \
    do {                                                                                            \
        assert_int_equal(expr, want);                                                               \
        if (!strstr((err).msg, word)) fail_msg("%s: \"%s\" has no \"%s\"", #expr, (err).msg, word); \
    } while (0)

#endif
