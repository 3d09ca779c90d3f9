/* SPDX-License-Identifier: Apache-2.0
 * log.c: formats one line for the callback. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

void log_line(const log_sink *l, lath_log_level level, const char *fmt, ...)
{
    if (!l || !l->fn) return;
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    l->fn(l->ctx, level, line);
}
