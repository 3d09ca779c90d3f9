/* SPDX-License-Identifier: Apache-2.0
 * cmd_help.c: `lath help [COMMAND]`. */
#include "base/error.h"
#include "help.h"

lath_status cmd_help(options *o, lath_error *err)
{
    const command_row *cmd = NULL;
    if (o->args.n > 1) return err_set(err, LATH_ERR_USAGE, "help: takes one command's name");
    if (o->args.n == 1) {
        cmd = command_find(o->args.items[0]);
        if (!cmd) return err_set(err, LATH_ERR_USAGE, "help: no command \"%s\"", o->args.items[0]);
    }
    return help_print(cmd, err);
}
