/* SPDX-License-Identifier: Apache-2.0
 * json_number.h: numbers of JSON texts, for json.c and json_scan.c. */
#ifndef LATH_BASE_JSON_NUMBER_H
#define LATH_BASE_JSON_NUMBER_H

#include <locale.h>

#include "base/json.h"

enum { JSON_NUMBER_MOST = 127 /* characters of a number that is no int64 */ };

/* s[0..n) is a number after the grammar of JSON: sets kind and value of v. false: it is too long. serde_reals: see
 * json_options. */
bool json_number_read(const char *s, size_t n, bool serde_reals, locale_t c_locale, json_value *v);

#endif
