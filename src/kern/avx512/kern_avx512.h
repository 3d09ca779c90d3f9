/* SPDX-License-Identifier: Apache-2.0
 * kern_avx512.h: the kernels for x86-64 with AVX-512 (F, BW, DQ, VL, VNNI) on top of those of AVX2. Compiled with these extensions on; only kern_table.c
 * calls in, after CPUID. The tests compile them a second time with KERN_AVX512_EMULATED (kern_avx512_vec.h), under other names. */
#ifndef LATH_KERN_AVX512_H
#define LATH_KERN_AVX512_H

#include "kern/kern.h"

#if defined(KERN_AVX512_EMULATED)
#define KERN_AVX512(name) kern_emulated512_##name
#else
#define KERN_AVX512(name) kern_avx512_##name
#endif

/* Overwrites the slots, block sizes and scratch sizes that this ISA wins; t: after kern_avx2_overlay. */
void kern_avx512_overlay(kern_table *t);
void kern_emulated512_overlay(kern_table *t);

void KERN_AVX512(linear)(const kern_linear_args *a);
void KERN_AVX512(gemv)(const kern_gemv_args *a);
void KERN_AVX512(attention)(const kern_attention_args *a);
void KERN_AVX512(attention_row)(const kern_attention_row_args *a);
void KERN_AVX512(delta)(const kern_delta_args *a);
void KERN_AVX512(delta_row)(const kern_delta_row_args *a);

#endif
