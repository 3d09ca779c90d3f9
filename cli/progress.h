/* SPDX-License-Identifier: Apache-2.0
 *
 * progress.h: the bar on stderr, for work of more than a second on a terminal, and the check for Ctrl-C that goes with
 * it.
 */
#ifndef LATH_CLI_PROGRESS_H
#define LATH_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct progress {
    const char *what;   /* "embed" */
    const char *unit;   /* "texts": what is counted; set it behind progress_init for another */
    size_t per_unit;    /* that are one of it: 1 */
    bool enabled;       /* stderr is a terminal and not -q */
    bool shown;         /* a bar stands on the line */
    double begin, last; /* seconds */
    size_t done;        /* of finished chunks */
    size_t in_chunk;    /* of the chunk that is being worked on */
    double from, to;    /* fraction of the whole at the begin and end of this chunk; to < 0: unknown */
} progress;

void progress_init(progress *p, const char *what, bool quiet);
/* The next texts are the part from..to of the whole; to < 0 when the whole is not known. */
void progress_chunk(progress *p, double from, double to);
/* A lath_progress_fn, ctx is the progress: draws, and returns 1 when the user asked to stop. */
int progress_tick(void *ctx, size_t done, size_t total);
/* n texts of the chunk are finished. */
void progress_add(progress *p, size_t n);
/* All that are finished. */
size_t progress_done(const progress *p);
/* Takes the bar off the line; call it before anything else is written to stderr. */
void progress_clear(progress *p);
double progress_seconds(const progress *p);

#endif
