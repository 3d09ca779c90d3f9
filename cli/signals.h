/* SPDX-License-Identifier: Apache-2.0
 *
 * signals.h: what the program does on signals.
 *   SIGINT, SIGTERM, SIGHUP   the first sets a flag that progress callbacks and blocked reads and writes look at; the
 *                             second removes the temporary file and ends at once. Exit code 130.
 *   SIGBUS                    a mapped file shrank under us: one line on stderr that names it, exit code 3.
 *   SIGPIPE, SIGXFSZ          ignored: a write to a closed pipe or over the file size limit is an error like another
 *                             (exit code 7).
 */
#ifndef LATH_CLI_SIGNALS_H
#define LATH_CLI_SIGNALS_H

#include <stdbool.h>

#include "lath/lath.h"

/* Also makes sure that descriptors 0, 1 and 2 are open, so that no file opened later takes their place. */
void signals_install(void);
bool signals_interrupted(void);
/* The first signal was Ctrl-C (SIGINT): it is taken back, and the program goes on. */
bool signals_take_interrupt(void);
/* LATH_ERR_INTERRUPTED with its message when the flag is set, else LATH_OK. */
lath_status signals_check(lath_error *err);

/* What is mapped, for the line of SIGBUS; NULL when it is closed. The path is that of a model that is being opened. */
void signals_watch_model(const lath_model *model);
void signals_watch_index(const lath_index *index);
void signals_watch_path(const char *path);
/* A temporary file to remove when the program ends by a signal; NULL for none. Copied. */
void signals_set_temp(const char *path);

#endif
