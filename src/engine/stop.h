/* SPDX-License-Identifier: Apache-2.0
 *
 * stop.h: where generated text ends: tokens that end it, and strings that must not come. Text goes through piece by piece, however tokens cut it,
 * and is given out as soon as it cannot be the beginning of a stop string. The match that ends first stops the text, of those
 * that end together the longest: so the result does not depend on where pieces begin and end. It and what follows are dropped.
 */
#ifndef LATH_ENGINE_STOP_H
#define LATH_ENGINE_STOP_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "lath/lath.h"

/* A string and how much of it the end of the text so far is: Knuth, Morris & Pratt 1977. */
typedef struct stop_string {
    const char *s;
    size_t n;
    uint32_t *border; /* [n + 1] of the prefix of each length: the longest proper prefix that is also its end */
    size_t matched;   /* bytes, below n */
} stop_string;

typedef struct stop {
    arena mem;
    const int32_t *ids; /* [n_ids] */
    size_t n_ids;
    stop_string *strings; /* [n_strings] */
    size_t n_strings;
    size_t held;     /* bytes that are not given out: the first ones of the string below */
    size_t held_of;  /* index of a string, when held > 0 */
    int64_t stopped; /* index of the string that stopped the text, or -1 */
} stop;

enum { STOP_STRINGS_MOST = 256, STOP_BYTES_MOST = 1 << 16 /* of a string */ };

/* Everything is copied. LATH_ERR_USAGE: a string is empty, no UTF-8 or over a limit. Deinit also after a failure. */
lath_status stop_init(stop *s, const lath_allocator *alloc, const int32_t *ids, size_t n_ids, const lath_text *strings,
                      size_t n_strings, lath_error *err);
void stop_deinit(stop *s); /* of a zeroed one, too */
bool stop_is_id(const stop *s, int32_t id);

/* Appends what may be given out now. Where text comes in whole characters it goes out in whole characters. s->stopped says
 * whether a string came; nothing is given out after that. */
void stop_push(stop *s, const char *text, size_t n, buf *out);
/* No more text: appends what was held, and begins anew. */
void stop_finish(stop *s, buf *out);

#endif
