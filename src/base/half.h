/* SPDX-License-Identifier: Apache-2.0
 * half.h: IEEE binary16. */
#ifndef LATH_BASE_HALF_H
#define LATH_BASE_HALF_H

#include <stdint.h>

/* Exact: subnormals, infinities and NaN included. */
float half_to_f32(uint16_t bits);
/* To the nearest, ties to even; infinity beyond the largest (from 65520 on); NaN stays a NaN. */
uint16_t half_from_f32(float v);

#endif
