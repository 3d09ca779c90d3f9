/* SPDX-License-Identifier: Apache-2.0
 * error.h: filling the caller's error record. Every function returns the status it was given, so that failing is one line:
 *     return err_set(err, LATH_ERR_FORMAT, "%s: header of %zu bytes is cut", path, n);
 * Context is put in front while unwinding (err_wrap). All of them accept err == NULL. */
#ifndef LATH_BASE_ERROR_H
#define LATH_BASE_ERROR_H

#include "lath/lath_core.h"

#if defined(__GNUC__)
#define ERR_PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#define ERR_PRINTF(a, b)
#endif

void err_clear(lath_error *err);
lath_status err_set(lath_error *err, lath_status st, const char *fmt, ...) ERR_PRINTF(3, 4);
/* As err_set for input item `item` (the index of a text in the call's input). */
lath_status err_item(lath_error *err, lath_status st, int64_t item, const char *fmt, ...) ERR_PRINTF(4, 5);
/* As err_set with ": " and the system's text for `os_errno` behind. */
lath_status err_os(lath_error *err, lath_status st, int os_errno, const char *fmt, ...) ERR_PRINTF(4, 5);
lath_status err_nomem(lath_error *err, size_t bytes);
/* Puts "context: " in front of the message that is there; keeps status, os_errno and item. */
lath_status err_wrap(lath_error *err, lath_status st, const char *fmt, ...) ERR_PRINTF(3, 4);

#define TRY(expr)                               \
    do {                                        \
        lath_status try_st_ = (expr);           \
        if (try_st_ != LATH_OK) return try_st_; \
    } while (0)

/* For functions with `lath_status st` and a `done:` label that releases. */
#define TRY_DONE(expr)                \
    do {                              \
        st = (expr);                  \
        if (st != LATH_OK) goto done; \
    } while (0)

#endif
