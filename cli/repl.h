/* SPDX-License-Identifier: Apache-2.0
 *
 * repl.h: lines that a user writes: on a terminal with editing and history (libedit; this is its one owner), else plain lines of standard input. A line
 * that ends in a backslash goes on with the next one.
 */
#ifndef LATH_CLI_REPL_H
#define LATH_CLI_REPL_H

#include <stdbool.h>

#include "base/buf.h"

typedef struct repl repl;

/* LATH_ERR_NOMEM. */
lath_status repl_open(repl **out, lath_error *err);
void repl_close(repl *r); /* NULL is allowed */
/* Standard input is a terminal. */
bool repl_is_terminal(const repl *r);
/* One entry into `line` (cleared first), without its last newline; *end: there is no more. LATH_ERR_INTERRUPTED: Ctrl-C or another signal at the
 * prompt. LATH_ERR_INPUT: no valid UTF-8 (the line is named where there is no terminal). LATH_ERR_IO. */
lath_status repl_read(repl *r, buf *line, bool *end, lath_error *err);

#endif
