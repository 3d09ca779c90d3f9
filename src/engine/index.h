/* SPDX-License-Identifier: Apache-2.0
 * index.h: what is behind lath_index of lath.h: shared by index.c (files) and index_search.c. */
#ifndef LATH_ENGINE_INDEX_H
#define LATH_ENGINE_INDEX_H

#include "engine/engine.h"
#include "store/vecindex.h"

struct lath_index {
    lath_runtime *rt;
    vecindex x;
};

#endif
