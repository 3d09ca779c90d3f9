/* SPDX-License-Identifier: Apache-2.0
 *
 * answer.h: which token an answer begins with. People write "Paris", the model says " Paris" or "Paris", whatever its tokenizer makes of
 * the place behind a prompt: both are tried, and the one that the model finds likelier is the answer's.
 */
#ifndef LATH_CLI_ANSWER_H
#define LATH_CLI_ANSWER_H

#include "lm.h"

typedef struct answer {
    int32_t ids[2]; /* [n] */
    size_t n;       /* 1: both are the same */
} answer;

/* The first tokens of the text s behind the prompt, whose tokens are in j, and behind the prompt and a blank. LATH_ERR_USAGE: s is empty. */
lath_status answer_find(const lm_job *j, lath_text prompt, lath_text s, answer *out, lath_error *err);
/* The one with the larger logit. */
int32_t answer_choose(const answer *a, const float *logits);

#endif
