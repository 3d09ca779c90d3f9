/* SPDX-License-Identifier: Apache-2.0
 * buf.c: growable bytes, doubling, never over the ceiling. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"

void buf_init(buf *b, const lath_allocator *alloc, size_t ceiling) { *b = (buf){.alloc = alloc, .ceiling = ceiling}; }

void buf_deinit(buf *b)
{
    if (b->data) alloc_release(b->alloc, b->data, b->cap);
    b->data = NULL;
    b->len = b->cap = 0;
}

void buf_clear(buf *b)
{
    b->len = 0;
    b->failed = b->over = false;
}

char *buf_reserve(buf *b, size_t n)
{
    if (b->failed) return NULL;
    size_t need;
    if (!size_add(b->len, n, &need) || need > b->ceiling) {
        b->failed = b->over = true;
        return NULL;
    }
    if (need > b->cap || !b->data) {
        size_t cap = b->cap < 128 ? 256 : b->cap * 2;
        if (cap < need) cap = need;
        if (cap > b->ceiling && need <= b->ceiling) cap = b->ceiling ? b->ceiling : 1;
        char *p = alloc_resize(b->alloc, b->data, b->cap, cap, 1);
        if (!p) {
            b->failed = true;
            return NULL;
        }
        b->data = p;
        b->cap = cap;
    }
    return b->data + b->len;
}

void buf_append(buf *b, const void *p, size_t n)
{
    if (n == 0) return;
    char *to = buf_reserve(b, n);
    if (!to) return;
    memcpy(to, p, n);
    b->len += n;
}

void buf_str(buf *b, const char *s) { buf_append(b, s, strlen(s)); }
void buf_char(buf *b, char c) { buf_append(b, &c, 1); }

void buf_printf(buf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *to = n < 0 ? NULL : buf_reserve(b, (size_t)n + 1);
    if (to) {
        vsnprintf(to, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    } else if (n < 0) {
        b->failed = true;
    }
    va_end(again);
}

const char *buf_cstr(buf *b)
{
    char *end = buf_reserve(b, 1);
    if (!end) return "";
    *end = 0;
    return b->data;
}

lath_status buf_status(const buf *b, lath_error *err)
{
    if (!b->failed) return LATH_OK;
    if (b->over) return err_set(err, LATH_ERR_LIMIT, "more than %zu bytes", b->ceiling);
    return err_nomem(err, b->cap * 2);
}
