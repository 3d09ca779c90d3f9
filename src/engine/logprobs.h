/* SPDX-License-Identifier: Apache-2.0
 * logprobs.h: probabilities of tokens under the model's own logits. */
#ifndef LATH_ENGINE_LOGPROBS_H
#define LATH_ENGINE_LOGPROBS_H

#include "kern/kern.h"
#include "lath/lath.h"

/* The k best of n logits, best first, of equal ones the lower id; k <= n, n >= 1. Sums are in f64, in one fixed order.
 * LATH_ERR_FORMAT: a logit is NaN or +infinity. LATH_ERR_INPUT: all are -infinity. */
lath_status logprobs_top(const kern_table *kern, const float *logits, size_t n, size_t k, lath_token_logprob *top,
                         lath_error *err);
/* The logprob of one of them. */
lath_status logprobs_of(const kern_table *kern, const float *logits, size_t n, int32_t id, double *logprob,
                        lath_error *err);

#endif
