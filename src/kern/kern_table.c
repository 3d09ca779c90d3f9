/* SPDX-License-Identifier: Apache-2.0
 * kern_table.c: fills the kernel table: the reference first, then each overlay of this architecture that the machine
 * can run, lowest ISA first, so that a later one overwrites the slots that it wins. */
#include "kern/cpu_x86.h"
#include "kern/kern.h"
#include "kern/ref/kern_ref.h"
#if defined(__x86_64__)
#include "kern/avx2/kern_avx2.h"
#include "kern/avx512/kern_avx512.h"
#endif

typedef struct overlay {
    kern_isa isa;
    void (*apply)(kern_table *t);
} overlay;

/* In rising order. */
static const overlay overlays[] = {
#if defined(__x86_64__)
    {KERN_ISA_AVX2, kern_avx2_overlay},
    {KERN_ISA_AVX512, kern_avx512_overlay},
#endif
    {KERN_ISA_COUNT, NULL},
};

const char *kern_isa_name(kern_isa isa)
{
    static const char *const names[KERN_ISA_COUNT] = {"ref", "avx2", "avx512", "amx", "neon"};
    return (unsigned)isa < KERN_ISA_COUNT ? names[isa] : "?";
}

bool kern_isa_available(kern_isa isa)
{
    const cpu_x86 cpu = cpu_x86_detect();
    switch (isa) {
    case KERN_ISA_REF: return true;
    case KERN_ISA_AVX2: return cpu.avx2;
    case KERN_ISA_AVX512: return cpu.avx512;
    case KERN_ISA_AMX: return cpu.amx;
    case KERN_ISA_NEON:
#if defined(__aarch64__)
        return true;
#else
        return false;
#endif
    case KERN_ISA_COUNT: break;
    }
    return false;
}

void kern_table_init(kern_table *t, kern_isa ceiling)
{
    *t = (kern_table)
    {
        .isa = kern_isa_name(KERN_ISA_REF), .row_block = 1, .panel_group = 16, .linear_scratch = 0,
#define KERN(slot, result, args, tolerance) .slot = kern_ref_##slot,
#include "kern/kern.def"
#undef KERN
    };
    for (const overlay *o = overlays; o->isa != KERN_ISA_COUNT; o++) {
        if (o->isa > ceiling || !kern_isa_available(o->isa)) continue;
        o->apply(t);
        t->isa = kern_isa_name(o->isa);
    }
}
