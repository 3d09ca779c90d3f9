/* SPDX-License-Identifier: Apache-2.0
 * fuzz_grammar.h: what holds for every grammar that opens: each state is complete or goes on, so no text is ever stuck. */
#ifndef LATH_FUZZ_GRAMMAR_H
#define LATH_FUZZ_GRAMMAR_H

#include <stdlib.h>

#include "engine/grammar.h"

/* Follows bytes that may come, chosen by `data`. */
static inline void fuzz_follow(const grammar *g, const uint8_t *data, size_t size)
{
    grammar_run r;
    uint32_t state = 0;
    if (grammar_run_init(&r, g, alloc_default(), NULL) != LATH_OK) abort();
    lath_status st = grammar_run_begin(&r, &state, NULL);
    if (st == LATH_OK && state == 0) abort();
    for (size_t i = 0; i < 64 && st == LATH_OK; i++) {
        uint32_t live[256], n = 0;
        for (uint32_t c = 0; c < g->n_classes && st == LATH_OK; c++) {
            uint32_t to = 0;
            st = grammar_run_step(&r, state, c, &to, NULL);
            if (to) live[n++] = to;
        }
        if (st != LATH_OK) break; /* too many ways, a table is full */
        if (n == 0 && !r.states[state].complete) abort();
        if (n == 0) break;
        state = live[data[i % size] % n];
    }
    grammar_run_deinit(&r);
}

#endif
