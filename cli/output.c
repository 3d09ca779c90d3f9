/* SPDX-License-Identifier: Apache-2.0
 *
 * output.c: see output.h. Standard output is written with write(2): a reader that went away, a full disk or a signal is
 * seen at once, where stdio would tell at exit or not at all.
 */
#include "output.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "signals.h"

static const size_t FLUSH_BYTES = (size_t)128 << 10;

lath_status output_open(output *out, const char *path, lath_error *err)
{
    *out = (output){.to_file = path && strcmp(path, "-") != 0};
    out->file.fd = -1;
    buf_init(&out->b, alloc_default(), SIZE_MAX / 2);
    if (!out->to_file) {
        out->terminal = isatty(STDOUT_FILENO);
        return LATH_OK;
    }
    const lath_status st = outfile_create(&out->file, alloc_default(), path, err);
    if (st != LATH_OK) {
        output_abort(out);
        return st;
    }
    signals_set_temp(out->file.temp);
    return LATH_OK;
}

static lath_status write_stdout(const char *p, size_t n, lath_error *err)
{
    while (n > 0) {
        const ssize_t w = write(STDOUT_FILENO, p, n);
        const int e = errno;
        if (w > 0) {
            p += w;
            n -= (size_t)w;
            if (n > 0) TRY(signals_check(err)); /* a slow reader: what was asked meanwhile counts */
            continue;
        }
        TRY(signals_check(err));
        if (w == 0 || e == EAGAIN) { /* someone made the descriptor non-blocking */
            struct pollfd ready = {.fd = STDOUT_FILENO, .events = POLLOUT};
            (void)poll(&ready, 1, -1);
        } else if (e != EINTR) {
            return err_os(err, LATH_ERR_IO, e, "standard output: cannot write");
        }
    }
    return LATH_OK;
}

lath_status output_flush(output *out, lath_error *err)
{
    TRY(buf_status(&out->b, err));
    if (out->b.len == 0) return LATH_OK;
    if (out->to_file)
        TRY(outfile_write(&out->file, out->b.data, out->b.len, err));
    else
        TRY(write_stdout(out->b.data, out->b.len, err));
    buf_clear(&out->b);
    return LATH_OK;
}

lath_status output_flush_full(output *out, lath_error *err)
{
    return out->b.len >= FLUSH_BYTES || out->b.failed ? output_flush(out, err) : LATH_OK;
}

bool output_can_patch(const output *out) { return out->to_file && !out->file.direct; }

lath_status output_patch(output *out, uint64_t offset, const void *p, size_t n, lath_error *err)
{
    return outfile_write_at(&out->file, offset, p, n, err);
}

lath_status output_close(output *out, lath_error *err)
{
    lath_status st = output_flush(out, err);
    if (st == LATH_OK) st = signals_check(err); /* asked to stop at the last moment: no file appears */
    if (st == LATH_OK && out->to_file) st = outfile_commit(&out->file, err);
    output_abort(out);
    return st;
}

void output_abort(output *out)
{
    if (!out->b.alloc) return;
    if (out->to_file) {
        outfile_abort(&out->file);
        signals_set_temp(NULL);
    }
    buf_deinit(&out->b);
    *out = (output){0};
}
