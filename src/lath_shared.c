/* SPDX-License-Identifier: Apache-2.0
 * lath_shared.c: the shared library is made of the internal static libraries; this file gives it the source that CMake asks for. */
#include "lath/lath.h"

_Static_assert(LATH_VERSION_MAJOR == 0, "SONAME liblath.so.0 (CMakeLists.txt, SOVERSION) goes with major version 0");
