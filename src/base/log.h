/* SPDX-License-Identifier: Apache-2.0
 * log.h: one line to the user's callback, or nowhere. */
#ifndef LATH_BASE_LOG_H
#define LATH_BASE_LOG_H

#include "base/error.h"

typedef struct log_sink {
    lath_log_fn fn; /* NULL: silent */
    void *ctx;
} log_sink;

void log_line(const log_sink *l, lath_log_level level, const char *fmt, ...) ERR_PRINTF(3, 4);

#endif
