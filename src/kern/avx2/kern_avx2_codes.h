/* SPDX-License-Identifier: Apache-2.0
 * kern_avx2_codes.h: rows of blocks as signed bytes with scales, what integer products of panels start from. */
#ifndef LATH_KERN_AVX2_CODES_H
#define LATH_KERN_AVX2_CODES_H

#include "kern/kern.h"

enum { CODES_CHUNK = 512, CODES_GROUP = 16 }; /* numbers of a row at a time, whole blocks; the smallest group */

/* CODES_CHUNK numbers of a row: number i is scale[g] * code[i] + add[g], g its group of 16 or 32 numbers. */
typedef struct row_codes {
    _Alignas(64) int8_t code[CODES_CHUNK];
    float scale[CODES_CHUNK / CODES_GROUP], add[CODES_CHUNK / CODES_GROUP];
    int32_t offset[CODES_CHUNK / CODES_GROUP]; /* -128 times the sum of the group's codes */
} row_codes;

/* Numbers of a group of the type; whether add is used; whether no code is beyond 64. */
typedef struct codes_kind {
    int group;
    bool adds, narrow;
} codes_kind;
codes_kind kern_avx2_codes_kind(dtype type);
/* n numbers (whole blocks). */
void kern_avx2_codes(dtype type, const unsigned char *from, int64_t n, row_codes *to);

#endif
