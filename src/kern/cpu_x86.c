/* SPDX-License-Identifier: Apache-2.0
 * cpu_x86.c: CPUID leaves 1 and 7 (Intel SDM vol. 2A, CPUID) and the register states that the OS saves (XGETBV, vol.
 * 1 ch. 13).
 *
 * An extension counts only when both say so: a kernel that does not save ZMM or tile registers corrupts them at the
 * next switch. */
#include "kern/cpu_x86.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdint.h>

enum { STATE_YMM = 0x06, STATE_ZMM = 0xe6, STATE_TILE = 0x60000 };
/* Leaf 7, EDX; clang names these bits differently. */
enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24, AMX_INT8 = 1 << 25 };

static uint64_t os_states(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool has(uint32_t reg, uint32_t bits) { return (reg & bits) == bits; }

cpu_x86 cpu_x86_detect(void)
{
    cpu_x86 cpu = {false, false, false};
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, bit_OSXSAVE)) return cpu;
    const bool fma_f16c = has(c, bit_AVX | bit_FMA | bit_F16C);
    const uint64_t states = os_states();
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return cpu;
    cpu.avx2 = fma_f16c && has(b, bit_AVX2) && (states & STATE_YMM) == STATE_YMM;
    cpu.avx512 = cpu.avx2 && (states & STATE_ZMM) == STATE_ZMM && has(c, bit_AVX512VNNI) &&
                 has(b, bit_AVX512F | bit_AVX512CD | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL);
    cpu.amx = cpu.avx512 && (states & STATE_TILE) == STATE_TILE && has(d, AMX_TILE | AMX_INT8 | AMX_BF16);
    return cpu;
}
#else
cpu_x86 cpu_x86_detect(void) { return (cpu_x86){false, false, false}; }
#endif
