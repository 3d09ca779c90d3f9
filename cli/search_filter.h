/* SPDX-License-Identifier: Apache-2.0
 *
 * search_filter.h: conditions on the records of a JSONL corpus: KEY=VALUE and KEY!=VALUE on members of the record.
 * VALUE is a JSON number, true, false, null or a string in double quotes; what is none of these is a string as it
 * stands. Values are equal when they are of one kind and the same: numbers by value (2 is 2.0), a string is never a
 * number, arrays and objects equal nothing. A record without the key has no value: = fails, != holds.
 */
#ifndef LATH_CLI_SEARCH_FILTER_H
#define LATH_CLI_SEARCH_FILTER_H

#include "base/json.h"
#include "corpus.h"
#include "options.h"

typedef struct filter_term {
    const char *key;
    bool unequal;
    json_value value;
    buf needle; /* "KEY" in quotes as JSON writes it: not in a line without escapes: no such member */
} filter_term;

typedef struct search_filter {
    filter_term *terms; /* [n] */
    size_t n;
    arena mem;
} search_filter;

/* LATH_ERR_USAGE names the condition. */
lath_status search_filter_parse(search_filter *f, const string_list *conditions, lath_error *err);
void search_filter_deinit(search_filter *f); /* a zeroed one is allowed */
/* A record (NULL: none) for which all conditions hold. */
bool search_filter_holds(const search_filter *f, const json_value *record);
/* allowed: [rows of the index] becomes 1 where all conditions hold; *count is how many. */
lath_status search_filter_rows(const search_filter *f, corpus *c, const lath_index *index, uint64_t n, uint8_t *allowed,
                               uint64_t *count, lath_error *err);

#endif
