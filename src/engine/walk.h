/* SPDX-License-Identifier: Apache-2.0
 * walk.h: an index as what a walk reads (ffn_walk.h), and whether it is of a model. */
#ifndef LATH_WALK_H
#define LATH_WALK_H

#include "engine/engine.h"
#include "ffn/ffn_walk.h"
#include "lath/lath_vindex.h"

struct lath_vindex {
    lath_runtime *rt;
    vindex *x;
};

/* The layers of x, which must outlive them, in `mem`; biases are those of `own`, the FFN of arch. LATH_ERR_FORMAT: x is not of such a model. */
lath_status walk_source_make(const vindex *x, const arch_model *arch, ffn *own, arena *mem, ffn_walk_source *out,
                             lath_error *err);
/* An ffn_env.open_index: opens `dir` for the lath_model ctx. The source owns the index. */
lath_status walk_source_open(void *ctx, const char *dir, ffn_walk_source *out, lath_error *err);
/* LATH_ERR_FORMAT: x was made of another model than m is, or than the index was made of that m is. */
lath_status walk_check_model(const vindex *x, const lath_model *m, lath_error *err);
/* The model's FFN as far as it knows biases and activation. */
static inline ffn *walk_own(const lath_model *m) { return m->bare ? m->bare : m->arch.ffn; }

#endif
