/* SPDX-License-Identifier: Apache-2.0
 * walk_rows.h: a walk's source made in memory of the matrices that an FFN has. */
#ifndef LATH_TESTS_WALK_ROWS_H
#define LATH_TESTS_WALK_ROWS_H

#include "ffn/ffn_walk.h"

/* Feature-major rows of down as f32; gate and up are the FFN's own. Layers without features (experts) have no rows. with_out: the source has the
 * product's own matrix, too. What it holds is freed by its close. */
ffn_walk_source test_walk_source(ffn *own, int32_t n_layers, int64_t d_model, kern_fn fn, bool with_out);

#endif
