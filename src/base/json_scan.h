/* SPDX-License-Identifier: Apache-2.0
 * json_scan.h: the members of one container, one by one, without events: strings, numbers and short lists of them. What
 * vocabularies and merges consist of, at several times the speed of an event parser. Anything else in it is left to
 * the parser, which also finds the words for what is wrong inside a member. */
#ifndef LATH_BASE_JSON_SCAN_H
#define LATH_BASE_JSON_SCAN_H

#include <locale.h>

#include "base/arena.h"
#include "base/json.h"

enum { JSON_SCAN_PARTS = 4 /* values of a list that is a member, at most */ };

typedef enum json_scan_found {
    JSON_SCAN_MEMBER, /* item is one; at is behind it */
    JSON_SCAN_END,    /* at is the bracket that closes the container */
    JSON_SCAN_OTHER,  /* at is the beginning of a member that is not simple or not JSON */
    JSON_SCAN_BAD,    /* not JSON at `at`: why */
    JSON_SCAN_NOMEM
} json_scan_found;

typedef struct json_scan {
    const char *text;                 /* valid UTF-8 */
    size_t n, at;                     /* at: first, behind the bracket that opens the container */
    uint32_t line;                    /* of `at` */
    bool object, nested, serde_reals; /* nested: a list may be a member */
    bool begun;                       /* a member has been read */
    locale_t c_locale;
    arena *strings; /* memory of what item points to; reset by the caller */
    json_value item, parts[JSON_SCAN_PARTS];
    const char *why;
} json_scan;

static inline bool json_is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

json_scan_found json_scan_next(json_scan *s);

#endif
