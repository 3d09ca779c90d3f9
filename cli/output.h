/* SPDX-License-Identifier: Apache-2.0
 *
 * output.h: where results go: standard output, or a file that appears whole or not at all (base/outfile.h). Writers
 * append to `b` and call output_flush_full now and then; errors of the disk or the pipe come back as LATH_ERR_IO.
 */
#ifndef LATH_CLI_OUTPUT_H
#define LATH_CLI_OUTPUT_H

#include "base/buf.h"
#include "base/outfile.h"

typedef struct output {
    buf b;         /* not yet written */
    bool to_file;  /* else standard output */
    bool terminal; /* standard output, and it is a terminal */
    outfile file;
} output;

/* path NULL or "-": standard output. */
lath_status output_open(output *out, const char *path, lath_error *err);
/* Writes what is in `b` when it is much. */
lath_status output_flush_full(output *out, lath_error *err);
/* Writes what is in `b`. */
lath_status output_flush(output *out, lath_error *err);
/* The first bytes can still be changed after the rest was written (output_patch). */
bool output_can_patch(const output *out);
lath_status output_patch(output *out, uint64_t offset, const void *p, size_t n, lath_error *err);
/* Flushes and finishes: the file gets its name. Releases everything whatever the result. */
lath_status output_close(output *out, lath_error *err);
/* Drops what was not written and the temporary file. A zeroed or closed one is allowed. */
void output_abort(output *out);

#endif
