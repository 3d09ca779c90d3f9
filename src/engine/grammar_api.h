/* SPDX-License-Identifier: Apache-2.0
 * grammar_api.h: what is behind lath_grammar and lath_matcher of lath.h. */
#ifndef LATH_ENGINE_GRAMMAR_API_H
#define LATH_ENGINE_GRAMMAR_API_H

#include "engine/grammar.h"
#include "lath/lath.h"

struct lath_grammar {
    lath_runtime *rt;
    grammar *g;
};

struct lath_matcher {
    lath_runtime *rt;
    grammar_match *match;
};

#endif
