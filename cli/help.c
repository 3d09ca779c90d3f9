/* SPDX-License-Identifier: Apache-2.0
 *
 * help.c: the help texts. Everything comes from cmds.def and options.def, so that a new option is described where it is
 * declared.
 */
#include "help.h"

#include <string.h>

#include "output.h"

enum { HELP_COLUMN = 28 };

static const struct {
    unsigned group;
    const char *title;
} sections[] = {
    {GROUP_MODEL, "Model"},
    {GROUP_SEARCH, "Search"},
    {GROUP_RERANK, "Scoring"},
    {GROUP_TOKENIZE, "Tokens"},
    {GROUP_INFO, "What to show"},
    {GROUP_EMBED, "Embedding"},
    {GROUP_QUANTIZE | GROUP_EXTRACT, "What to write"},
    {GROUP_GENERATE | GROUP_COMPLETE, "Generation"},
    {GROUP_PREDICT | GROUP_LOGITS | GROUP_TRACE | GROUP_TOP, "What to show"},
    {GROUP_INSIDE, "Inside the model"},
    {GROUP_WALK | GROUP_FIRED, "Walk"},
    {GROUP_BENCH, "What to measure"},
    {GROUP_SERVE_FFN, "Serving"},
    {GROUP_CONTEXT | GROUP_PERPLEXITY, "Context"},
    {GROUP_TEXT | GROUP_PROMPT | GROUP_SWEEP, "Texts"},
    {GROUP_JSON | GROUP_FORMAT | GROUP_OUTPUT, "Results"},
    {GROUP_COMMON | GROUP_HELP, "For every command"},
};

static void pad(buf *b, size_t begin, size_t column)
{
    do buf_char(b, ' ');
    while (b->len - begin < column && !b->failed);
}

void help_program(buf *b)
{
    buf_str(b, "lath: transformer inference on plain CPUs\n\nUsage: lath COMMAND [OPTIONS] [ARGUMENTS]\n\nCommands:\n");
    for (const command_row *c = command_rows; c->name; c++) {
        const size_t begin = b->len;
        buf_printf(b, "  %s", c->name);
        pad(b, begin, 14);
        buf_printf(b, "%s\n", c->title);
    }
    buf_str(
        b,
        "\nlath COMMAND --help shows options and examples of a command; lath --version the version.\n"
        "Exit codes: 0 done, 2 usage, 3 model or file, 4 unsupported, 5 bad input, 6 memory or limit, 7 input/output,\n"
        "8 network, 130 interrupted.\n");
}

static void help_option(buf *b, const option_row *r)
{
    const size_t begin = b->len;
    if (r->short_name)
        buf_printf(b, "  -%c, ", r->short_name);
    else
        buf_str(b, "      ");
    buf_printf(b, "--%s", r->name);
    if (r->metavar) buf_printf(b, " %s", r->metavar);
    pad(b, begin, HELP_COLUMN);
    buf_printf(b, "%s\n", r->help);
}

void help_command(buf *b, const command_row *cmd)
{
    const char *model = cmd->groups & MODEL_IS_OPTIONAL ? " [-m M] [OPTIONS]" : " -m M [OPTIONS]";
    buf_printf(b, "Usage: lath %s%s%s%s\n\n%s", cmd->name, cmd->groups & GROUP_MODEL ? model : "",
               *cmd->args ? " " : "", cmd->args, cmd->description);
    for (size_t s = 0; s < sizeof(sections) / sizeof(sections[0]); s++) {
        if (!(cmd->groups & sections[s].group)) continue;
        buf_printf(b, "\n%s:\n", sections[s].title);
        for (const option_row *r = option_rows; r->name; r++) {
            if (r->group & cmd->groups & sections[s].group) help_option(b, r);
        }
    }
    buf_printf(b, "\nExamples:\n%s", cmd->examples);
}

lath_status help_print(const command_row *cmd, lath_error *err)
{
    output out;
    TRY(output_open(&out, NULL, err));
    if (cmd)
        help_command(&out.b, cmd);
    else
        help_program(&out.b);
    return output_close(&out, err);
}
