/* SPDX-License-Identifier: Apache-2.0
 * help.h: the help texts, made from the tables of commands and options. */
#ifndef LATH_CLI_HELP_H
#define LATH_CLI_HELP_H

#include "base/buf.h"
#include "options.h"

/* The list of commands. */
void help_program(buf *b);
/* Usage, description, options by group and examples of one command. */
void help_command(buf *b, const command_row *cmd);
/* One of them to standard output; NULL: the program's. */
lath_status help_print(const command_row *cmd, lath_error *err);

#endif
