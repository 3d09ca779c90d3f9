/* SPDX-License-Identifier: Apache-2.0
 * chat_text.h: what Python's str knows about characters: white space, letters, case. Texts are valid UTF-8. */
#ifndef LATH_CHAT_TEXT_H
#define LATH_CHAT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

/* str.isspace. */
bool chat_is_space(uint32_t c);
/* Behind the white space at s[i]. */
size_t chat_space_end(const char *s, size_t n, size_t i);
/* n without the white space at the end. */
size_t chat_rstrip(const char *s, size_t n);
/* \w of the character at s; its bytes in *len. */
bool chat_is_word(const char *s, size_t *len);
size_t chat_count(const char *s, size_t n);
/* str.isprintable. */
bool chat_is_printable(uint32_t c);
/* str.isalpha, isdecimal, isdigit, isnumeric, isupper, islower, istitle of one character. */
bool chat_is_alpha(uint32_t c);
bool chat_is_decimal(uint32_t c);
bool chat_is_digit(uint32_t c);
bool chat_is_numeric(uint32_t c);
bool chat_is_upper(uint32_t c);
bool chat_is_lower(uint32_t c);
bool chat_is_title(uint32_t c);
/* The final sigma rule of The Unicode Standard, 3.13: has case; is passed over. */
bool chat_is_cased(uint32_t c);
bool chat_is_case_ignorable(uint32_t c);
enum { CHAT_CASE_MOST = 3 };
/* Full mapping of one character; counts 1..3. Lower case is without context. */
size_t chat_upper(uint32_t c, uint32_t out[CHAT_CASE_MOST]);
size_t chat_title(uint32_t c, uint32_t out[CHAT_CASE_MOST]);
size_t chat_lower(uint32_t c, uint32_t out[CHAT_CASE_MOST]);

/* s[0..n), terminated, in the grammar of JSON numbers: kind and value of v. false: too long. */
bool chat_read_number(const char *s, size_t n, json_value *v);

#endif
