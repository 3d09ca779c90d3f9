/* SPDX-License-Identifier: Apache-2.0
 * f32_text.h: the fast path of json_put_f32: the numbers that vectors are made of, without printf and strtof. */
#ifndef LATH_BASE_F32_TEXT_H
#define LATH_BASE_F32_TEXT_H

#include <stddef.h>

enum { F32_TEXT_BYTES = 24 };

/* The shortest of %.6g to %.9g that reads back as v, into out (not terminated); returns its length. 0 when v is not in
 * 1e-4 <= |v| < 1e6, or is one of the rare numbers where double arithmetic cannot tell: the caller then takes the slow
 * way. */
size_t f32_text(float v, char out[F32_TEXT_BYTES]);

#endif
