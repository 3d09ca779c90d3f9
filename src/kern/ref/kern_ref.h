/* SPDX-License-Identifier: Apache-2.0
 * kern_ref.h: the plain-C function of every slot of kern.def, kern_ref_<slot>. They define what is right; order of
 * additions as kern.h says. */
#ifndef LATH_KERN_REF_H
#define LATH_KERN_REF_H

#include "kern/kern.h"

#define KERN(slot, result, args, tolerance) result kern_ref_##slot args;
#include "kern/kern.def"
#undef KERN

#endif
