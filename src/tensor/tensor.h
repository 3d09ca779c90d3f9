/* SPDX-License-Identifier: Apache-2.0
 * tensor.h: a named array in a weight file (borrowed bytes, any alignment), and a view of activations. */
#ifndef LATH_TENSOR_TENSOR_H
#define LATH_TENSOR_TENSOR_H

#include "tensor/dtype.h"

enum { TENSOR_MAX_RANK = 8 };

typedef struct tensor {
    const char *name; /* terminated */
    dtype type;
    int32_t rank;
    int64_t dim[TENSOR_MAX_RANK];
    int64_t count; /* product of dim, 1 for rank 0 */
    const void *data;
    size_t bytes;
} tensor;

/* Activations of n_tok packed tokens: x [n_tok, d]. How they lie in memory belongs to the backend (the CPU one: panels of 16 tokens). */
typedef struct view {
    float *data;
    int64_t n_tok, d;
    int64_t stride; /* floats from one panel to the next; a view may be a range of features of a larger one */
} view;

/* "[2,3]" into out; shortened with ... when it does not fit. */
void tensor_shape_text(const int64_t *dim, int32_t rank, char *out, size_t n_out);

#endif
