/* SPDX-License-Identifier: Apache-2.0
 * utf8.h: strict UTF-8 (Unicode 15, table 3-7: no surrogates, no overlong forms, at most U+10FFFF). */
#ifndef LATH_BASE_UTF8_H
#define LATH_BASE_UTF8_H

#include "base/buf.h"

/* Length 1..4 of the character at s (n >= 1 bytes are there) and its code point; 0 when it is not valid. */
size_t utf8_decode(const char *s, size_t n, uint32_t *cp);
/* Writes 1..4 bytes; cp must be a scalar value. */
size_t utf8_encode(uint32_t cp, char out[4]);
/* Offset of the first byte that is not part of a valid character; n when all is valid. */
size_t utf8_first_invalid(const char *s, size_t n);
/* Appends s with each maximal invalid part replaced by U+FFFD (as Unicode ch. 3.9 and Python's errors="replace" do). */
void utf8_append_lossy(buf *b, const char *s, size_t n);

#endif
