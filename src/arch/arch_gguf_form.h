/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_gguf_form.h: what GGUF files have of a tensor of Hugging Face's: which of its rows and columns stand where, what is done to the numbers. Most tensors are
 * as they are; what is otherwise comes of the bits of arch_stored, and for readers of such files of nothing else.
 */
#ifndef LATH_ARCH_GGUF_FORM_H
#define LATH_ARCH_GGUF_FORM_H

#include "arch/arch.h"

/* n rows (or columns) of the file: i = (outer * n_mid + mid) * n_unit + unit is offset + outer * by_outer + mid * by_mid + unit * by_unit of the tensor. */
typedef struct arch_gguf_run {
    int64_t n, offset, n_mid, n_unit, by_outer, by_mid, by_unit;
} arch_gguf_run;

enum { ARCH_GGUF_MAX_RUNS = 3, ARCH_GGUF_MAX_PARTS = 2 };

typedef enum arch_gguf_change { GGUF_SAME, GGUF_PLUS_ONE, GGUF_RATE } arch_gguf_change; /* RATE: -exp(x) */

typedef struct arch_gguf_form {
    const char *name;                      /* of the tensor in the file */
    int64_t rows, cols;                    /* rows 0: a vector of `cols`, whose elements move as rows do */
    arch_gguf_run row[ARCH_GGUF_MAX_RUNS]; /* n_runs 0: they stay */
    int32_t n_runs;
    arch_gguf_run col; /* n 0: they stay */
    arch_gguf_change change;
    bool plain; /* F32 in all files */
} arch_gguf_form;

/* The tensors that `t`, a tensor of the model as arch_each_tensor hands it out with its row, its name in files and its expert, becomes in a file with these
 * bits of arch_stored: out[0 .. *n). Their names are of `mem`. */
lath_status arch_gguf_form_of(const arch_model *m, uint32_t stored, const arch_weight_row *row, const char *name,
                              const tensor *t, int32_t expert, arena *mem, arch_gguf_form out[ARCH_GGUF_MAX_PARTS],
                              int32_t *n, lath_error *err);

/* Where row (element of a vector) i of the file comes from. */
int64_t arch_gguf_source_row(const arch_gguf_form *f, int64_t i);
int64_t arch_gguf_source_col(const arch_gguf_form *f, int64_t i);

#endif
