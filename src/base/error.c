/* SPDX-License-Identifier: Apache-2.0
 * error.c: the status table's texts and the filling of the caller's error record. A message that does not fit is
 * cut at a character border. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#define STATUS(num, name, text, http, code) \
    _Static_assert(LATH_##name == (num), "lath_core.h and status.def disagree: " #name);
#include "base/status.def"
#undef STATUS

struct status_row {
    const char *name, *text;
    int http, exit_code;
};

static const struct status_row status_rows[] = {
#define STATUS(num, name, text, http, code) [num] = {"LATH_" #name, text, http, code},
#include "base/status.def"
#undef STATUS
};

static const struct status_row *status_row(lath_status st)
{
    static const struct status_row unknown = {"LATH_?", "unknown status", 500, 1};
    size_t n = sizeof(status_rows) / sizeof(status_rows[0]);
    return (int)st >= 0 && (size_t)st < n ? &status_rows[st] : &unknown;
}

const char *lath_status_name(lath_status status) { return status_row(status)->name; }
const char *lath_status_text(lath_status status) { return status_row(status)->text; }
int lath_status_exit_code(lath_status status) { return status_row(status)->exit_code; }
int lath_status_http(lath_status status) { return status_row(status)->http; }

void err_clear(lath_error *err)
{
    if (!err) return;
    err->status = LATH_OK;
    err->os_errno = 0;
    err->item = -1;
    err->msg[0] = 0;
}

enum { LONG_BYTES = 8192, HEAD_BYTES = 64 };

/* Messages show pieces of files: whatever they held, a message is one line of UTF-8. A character that the end or a
 * precision cut in two, bytes that are no UTF-8 and control characters become '?'. */
static void tidy(char *msg)
{
    const size_t n = strlen(msg);
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        const size_t len = utf8_decode(msg + i, n - i, &cp);
        if (len == 0 || cp < 0x20 || cp == 0x7F) msg[i] = '?';
        i += len ? len : 1;
    }
}

/* A text that is too long keeps its beginning (a path) and its end (the reason), cut between characters. */
static void put(lath_error *err, char *text)
{
    const size_t n = strlen(text), room = sizeof(err->msg) - 1;
    tidy(text);
    if (n <= room) {
        memcpy(err->msg, text, n + 1);
        return;
    }
    size_t head = HEAD_BYTES, tail = n - (room - HEAD_BYTES - 3);
    while (head > 0 && ((unsigned char)text[head] & 0xC0) == 0x80) head--;
    while (((unsigned char)text[tail] & 0xC0) == 0x80) tail++;
    memcpy(err->msg, text, head);
    memcpy(err->msg + head, "...", 3);
    memcpy(err->msg + head + 3, text + tail, n - tail + 1);
}

static void fill(lath_error *err, lath_status st, int os_errno, int64_t item, const char *fmt, va_list ap)
{
    char text[LONG_BYTES];
    err->status = st;
    err->os_errno = os_errno;
    err->item = item;
    vsnprintf(text, sizeof(text), fmt, ap);
    put(err, text);
}

lath_status err_set(lath_error *err, lath_status st, const char *fmt, ...)
{
    if (!err) return st;
    va_list ap;
    va_start(ap, fmt);
    fill(err, st, 0, -1, fmt, ap);
    va_end(ap);
    return st;
}

lath_status err_item(lath_error *err, lath_status st, int64_t item, const char *fmt, ...)
{
    if (!err) return st;
    va_list ap;
    va_start(ap, fmt);
    fill(err, st, 0, item, fmt, ap);
    va_end(ap);
    return st;
}

lath_status err_os(lath_error *err, lath_status st, int os_errno, const char *fmt, ...)
{
    if (!err) return st;
    char text[LONG_BYTES], why[96] = "";
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text) - sizeof(why) - 2, fmt, ap);
    va_end(ap);
    /* POSIX strerror_r (the feature macro of the build asks for it). */
    if (strerror_r(os_errno, why, sizeof(why)) != 0) snprintf(why, sizeof(why), "error %d", os_errno);
    const size_t n = strlen(text);
    snprintf(text + n, sizeof(text) - n, ": %s", why);
    err->status = st;
    err->os_errno = os_errno;
    err->item = -1;
    put(err, text);
    return st;
}

lath_status err_nomem(lath_error *err, size_t bytes)
{
    if (bytes == 0) return err_set(err, LATH_ERR_NOMEM, "out of memory"); /* the caller does not know */
    return err_set(err, LATH_ERR_NOMEM, "out of memory (%zu bytes asked for)", bytes);
}

lath_status err_wrap(lath_error *err, lath_status st, const char *fmt, ...)
{
    if (!err) return st;
    char text[LONG_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text) - sizeof(err->msg) - 2, fmt, ap);
    va_end(ap);
    const size_t n = strlen(text);
    snprintf(text + n, sizeof(text) - n, ": %s", err->msg);
    put(err, text);
    return st;
}
