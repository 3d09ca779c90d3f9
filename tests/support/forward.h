/* SPDX-License-Identifier: Apache-2.0
 * forward.h: the forward and the output head of an open model, without a session or an embedder around them. */
#ifndef LATH_TESTS_FORWARD_H
#define LATH_TESTS_FORWARD_H

#include "engine/engine.h"

typedef struct prompt_ids {
    const int32_t *ids;
    int64_t n;
} prompt_ids;

/* The prompts packed as one batch; logits: [tokens of all, vocab]. trace may be NULL. */
void test_forward(const lath_model *m, const prompt_ids *prompts, int n_prompts, const trace_sink *trace,
                  float *logits);
/* The same with the trace, the FFN and the layers of `with`; hidden: [tokens of all, d_model]. Either result may be NULL. */
void test_run(const lath_model *m, const prompt_ids *prompts, int n_prompts, const fwd *with, float *hidden,
              float *logits);

#endif
