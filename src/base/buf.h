/* SPDX-License-Identifier: Apache-2.0
 * buf.h: a growable byte buffer with a ceiling. Failure is sticky: after one failed append `failed` stays set and further appends do
 * nothing, so a run of appends is checked once at its end (buf_status). Not thread safe. */
#ifndef LATH_BASE_BUF_H
#define LATH_BASE_BUF_H

#include <stdbool.h>

#include "base/alloc.h"

typedef struct buf {
    const lath_allocator *alloc;
    char *data; /* not terminated unless buf_cstr was called */
    size_t len, cap, ceiling;
    bool failed, over; /* over: failed because of the ceiling */
} buf;

void buf_init(buf *b, const lath_allocator *alloc, size_t ceiling);
void buf_deinit(buf *b);
void buf_clear(buf *b); /* len = 0, failed = false; keeps the memory */
void buf_append(buf *b, const void *p, size_t n);
void buf_str(buf *b, const char *s);
void buf_char(buf *b, char c);
void buf_printf(buf *b, const char *fmt, ...) ERR_PRINTF(2, 3);
/* Room for n more bytes at data + len (not yet counted), or NULL. The caller adds to len what it wrote. */
char *buf_reserve(buf *b, size_t n);
/* data with a 0 behind (not counted); "" when empty or failed. */
const char *buf_cstr(buf *b);
/* LATH_OK, LATH_ERR_NOMEM or LATH_ERR_LIMIT. */
lath_status buf_status(const buf *b, lath_error *err);

#endif
