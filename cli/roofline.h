/* SPDX-License-Identifier: Apache-2.0
 *
 * roofline.h: what the machine gives at this moment (Williams et al. 2009): multiply-adds of f32 in registers, and bytes read
 * from memory. Whoever compares a figure with it measures it in the seconds between, because shared machines change speed.
 * Used by `lath bench` and the programs of bench/.
 */
#ifndef LATH_CLI_ROOFLINE_H
#define LATH_CLI_ROOFLINE_H

#include <stddef.h>
#include <stdint.h>

/* Does some microseconds of independent multiply-adds on this thread and returns how many flops they were; in vectors of up
 * to the number of bits that kernels of `isa` ("avx2", "avx512", ...) use and the machine has. */
typedef double (*roofline_fma_fn)(void);
roofline_fma_fn roofline_fma_loop(const char *isa);
/* Reads 4 n bytes from p on, as four streams. */
void roofline_read_streams(const void *p, size_t n);

enum { ROOFLINE_MAX_THREADS = 256 };
/* Flops a second of n_threads at once, measured for about `seconds`. 0: a thread could not be started. */
double roofline_fma(int32_t n_threads, roofline_fma_fn loop, double seconds);
/* Bytes a second of n_threads that read a part of the buffer each, once. 0: a thread could not be started. */
double roofline_read(int32_t n_threads, const void *buffer, size_t bytes);

#endif
