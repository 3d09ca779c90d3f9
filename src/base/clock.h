/* SPDX-License-Identifier: Apache-2.0
 * clock.h: monotonic time. */
#ifndef LATH_BASE_CLOCK_H
#define LATH_BASE_CLOCK_H

/* Seconds since some fixed moment; never goes back. */
double clock_now(void);

#endif
