/* SPDX-License-Identifier: Apache-2.0
 *
 * main.c: the program `lath`: picks the command, parses its options, turns the status into the exit code and one line
 * on stderr. The locale is never set: numbers are read and written with a point.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "help.h"
#include "options.h"
#include "output.h"
#include "signals.h"

static lath_status print_version(lath_error *err)
{
    output out;
    TRY(output_open(&out, NULL, err));
    buf_printf(&out.b, "lath %s\n", lath_version());
    return output_close(&out, err);
}

static lath_status unknown_command(const char *name, lath_error *err)
{
    const char *near = command_near(name);
    if (near) return err_set(err, LATH_ERR_USAGE, "%s: no such command; did you mean %s?", name, near);
    return err_set(err, LATH_ERR_USAGE, "%s: no such command (lath help lists them)", name);
}

static lath_status run_command(const command_row *cmd, int argc, char **argv, lath_error *err)
{
    options o;
    lath_status st;
    options_init(&o);
    TRY_DONE(options_parse(&o, cmd, argc, argv, err));
    st = o.help ? help_print(cmd, err) : cmd->run(&o, err);
    /* what has no file, option or field to name (a signal, memory) is the command's */
    if (st != LATH_OK && (st == LATH_ERR_INTERRUPTED || !strstr(err->msg, ": "))) err_wrap(err, st, "%s", cmd->name);
done:
    options_deinit(&o);
    return st;
}

static lath_status run(int argc, char **argv, lath_error *err)
{
    if (argc < 2)
        return err_set(err, LATH_ERR_USAGE, "usage: lath COMMAND [OPTIONS] [ARGUMENTS] (lath help lists the commands)");
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) return print_version(err);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) return help_print(NULL, err);
    const command_row *cmd = command_find(argv[1]);
    if (!cmd) return unknown_command(argv[1], err);
    return run_command(cmd, argc - 2, argv + 2, err);
}

int main(int argc, char **argv)
{
    lath_error err;
    err_clear(&err);
    signals_install();
    const lath_status st = run(argc, argv, &err);
    if (st != LATH_OK) fprintf(stderr, "lath: %s\n", err.msg[0] ? err.msg : lath_status_text(st));
    return lath_status_exit_code(st);
}
