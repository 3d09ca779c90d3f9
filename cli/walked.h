/* SPDX-License-Identifier: Apache-2.0
 *
 * walked.h: a language model whose FFNs are walked over an index, beside the model itself: what `lath compare` and `lath sweep` share.
 */
#ifndef LATH_CLI_WALKED_H
#define LATH_CLI_WALKED_H

#include "lath/lath_inspect.h"
#include "lm.h"

/* LATH_ERR_USAGE: no --index. */
lath_status walked_check(const options *o, lath_error *err);
/* An FFN that is dense below layer `boundary` and walks over --index, all features or --features, from there on. boundary n_layers: dense throughout. */
lath_status walked_open(const lm_job *j, int32_t boundary, lath_ffn **out, lath_error *err);

typedef struct walked_run {
    const float *logits; /* of the last token, the session's */
    double seconds, ffn_seconds;
} walked_run;
/* The tokens through the session, emptied before, with this FFN. */
lath_status walked_run_ids(lm_job *j, lath_ffn *ffn, const int32_t *ids, size_t n, walked_run *out, lath_error *err);

/* The largest difference of two rows. */
double walked_difference(const float *a, const float *b, size_t n);

#endif
