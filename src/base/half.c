/* SPDX-License-Identifier: Apache-2.0
 * half.c: conversions of binary16 in integers, bit by bit as the instructions of x86 do them. */
#include "base/half.h"

#include <string.h>

float half_to_f32(uint16_t bits)
{
    union {
        uint32_t u;
        float f;
    } v;
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, exponent = (bits >> 10) & 0x1fu, fraction = bits & 0x3ffu;
    if (exponent == 0x1f) { /* infinity; NaN keeps its payload and becomes quiet, as VCVTPH2PS does */
        v.u = sign | 0x7f800000u | fraction << 13 | (fraction ? 0x400000u : 0);
    } else if (exponent != 0) {
        v.u = sign | (exponent + 127 - 15) << 23 | fraction << 13;
    } else { /* zero and subnormals: fraction * 2^-24, exact in f32 */
        v.f = (float)fraction * 0x1p-24f;
        v.u |= sign;
    }
    return v.f;
}

uint16_t half_from_f32(float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof(u));
    const uint16_t sign = (uint16_t)(u >> 16 & 0x8000u);
    u &= 0x7fffffffu;
    if (u > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (u >> 13 & 0x3ffu)); /* quiet, as VCVTPS2PH does */
    if (u >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);                     /* 65520 and more */
    if (u < 0x38800000u) { /* under 2^-14: a multiple of 2^-24; adding 0.5 leaves them, rounded, in the last bits */
        float shifted;
        memcpy(&shifted, &u, sizeof(u));
        shifted += 0.5f;
        memcpy(&u, &shifted, sizeof(u));
        return (uint16_t)(sign | (u - 0x3f000000u));
    }
    u += 0xfffu + (u >> 13 & 1); /* ties to even; a carry goes into the exponent, which is right */
    return (uint16_t)(sign | (u - 0x38000000u) >> 13);
}
