/* SPDX-License-Identifier: Apache-2.0
 *
 * prompt.h: where a PROMPT comes from. It is one text: the argument, else the file that -f names, else standard input when
 * it is no terminal; files are read whole, exactly as they are (a last newline is part of the text), only a byte order mark
 * at the start is skipped. What is not valid UTF-8 is refused, or replaced with --lossy.
 */
#ifndef LATH_CLI_PROMPT_H
#define LATH_CLI_PROMPT_H

#include "base/buf.h"
#include "options.h"

/* The text into out, which is initialised here and released by prompt_release whatever the result. LATH_ERR_USAGE: no text,
 * or more than one; LATH_ERR_NOT_FOUND: no such file; LATH_ERR_INPUT: invalid UTF-8, named by file, line and byte. */
lath_status prompt_read(const options *o, buf *out, lath_error *err);
void prompt_release(buf *text); /* a zeroed one is allowed */

#endif
