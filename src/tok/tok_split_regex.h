/* SPDX-License-Identifier: Apache-2.0
 * tok_split_regex.h: what other files ask about the Split pre-tokenizer, to do its work together with their own. */
#ifndef LATH_TOK_SPLIT_REGEX_H
#define LATH_TOK_SPLIT_REGEX_H

#include "tok/tok_patterns.h"
#include "tok/tok_regex.h"

/* The known pattern of a Split whose words are exactly its matches; NULL for any other splitter. */
const tok_pattern *tok_split_regex_isolates(const tok_splitter *p);
/* A Split at a space that does nothing where there is none. */
bool tok_split_regex_at_space(const tok_splitter *p);

#endif
