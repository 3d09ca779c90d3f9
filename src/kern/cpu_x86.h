/* SPDX-License-Identifier: Apache-2.0
 * cpu_x86.h: which vector extensions this x86-64 processor has and the operating system lets us use. */
#ifndef LATH_KERN_CPU_X86_H
#define LATH_KERN_CPU_X86_H

#include <stdbool.h>

typedef struct cpu_x86 {
    bool avx2;   /* AVX2, FMA3, F16C and the YMM state */
    bool avx512; /* F, CD, BW, DQ, VL, VNNI and the ZMM state */
    bool amx;    /* TILE, INT8, BF16 and the tile state (a process still has to ask for its permission) */
} cpu_x86;

/* Everything false on other architectures. */
cpu_x86 cpu_x86_detect(void);

#endif
