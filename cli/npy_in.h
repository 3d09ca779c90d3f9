/* SPDX-License-Identifier: Apache-2.0
 *
 * npy_in.h: one vector out of a NumPy file (numpy.lib.format, versions 1 to 3): [d] or [1, d] numbers of type '<f4', '<f8' or '<f2', all finite.
 */
#ifndef LATH_CLI_NPY_IN_H
#define LATH_CLI_NPY_IN_H

#include "base/alloc.h"

/* *vector := [*d], the caller's to release with its size. LATH_ERR_NOT_FOUND; LATH_ERR_FORMAT: no such file, or cut; LATH_ERR_INPUT: another shape, another type, a number that is
 * not finite. The message names the file. */
lath_status npy_read(const char *path, float **vector, size_t *d, lath_error *err);

#endif
