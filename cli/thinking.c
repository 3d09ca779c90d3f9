/* SPDX-License-Identifier: Apache-2.0
 * thinking.c: see thinking.h. */
#include "thinking.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

static const char dim_on[] = "\033[2m", dim_off[] = "\033[0m";

/* no-color.org: a variable that is there and not empty. */
static bool wants_colour(void)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(STDERR_FILENO) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

lath_status thinking_set(thinking *t, bool on, lath_error *err)
{
    if (on && !t->how) return err_set(err, LATH_ERR_UNSUPPORTED, "thinking: this model is not known to think");
    t->think = on ? LATH_THINK_ON : LATH_THINK_OFF;
    t->budget = on ? t->most : 0;
    return LATH_OK;
}

lath_status thinking_read(thinking *t, const options *o, const lath_chat *chat, lath_error *err)
{
    *t = (thinking){.how = lath_chat_reasoning(chat), .most = -1, .quiet = o->quiet};
    const bool none = o->reasoning_budget.given && o->reasoning_budget.whole == 0;
    t->hide = o->hide_reasoning || o->quiet;
    t->dim = wants_colour();
    if (o->reasoning_budget.given && !none) t->most = (int32_t)o->reasoning_budget.whole;
    t->budget = t->most;
    if (o->think && (o->no_think || none))
        return err_set(err, LATH_ERR_USAGE, "--think: not together with %s",
                       o->no_think ? "--no-think" : "--reasoning-budget 0");
    if (o->think) return thinking_set(t, true, err);
    if (o->no_think || none) TRY(thinking_set(t, false, err));
    if ((o->no_think || o->reasoning_budget.given) && !t->how && !o->quiet)
        fprintf(stderr, "lath: %s: this model is not known to think: nothing is changed\n",
                o->no_think ? "--no-think" : "--reasoning-budget");
    return LATH_OK;
}

void thinking_ask(const thinking *t, const lath_chat_prompt *prompt, lath_generate_options *g)
{
    g->reasoning = t->how;
    g->reasoning_open = prompt->reasoning_open;
    g->reasoning_budget = t->budget;
}

/* A marker on a line of its own. */
static void put_marker(lath_text m, bool newline_before)
{
    if (newline_before) fputc('\n', stderr);
    fwrite(m.data, 1, m.len, stderr);
    if (m.len && m.data[m.len - 1] != '\n') fputc('\n', stderr);
}

void thinking_show(thinking *t, const lath_generated *g)
{
    if (t->hide || g->reasoning_len == 0) {
        if (g->len) thinking_end(t);
        return;
    }
    if (!t->begun && t->dim) fputs(dim_on, stderr);
    if (!t->begun && !t->dim) put_marker(t->how->begin, false);
    t->begun = true;
    fwrite(g->reasoning, 1, g->reasoning_len, stderr);
    t->last = g->reasoning[g->reasoning_len - 1];
    if (g->len) thinking_end(t);
}

void thinking_end(thinking *t)
{
    if (!t->begun) return;
    t->begun = false;
    if (t->dim)
        fprintf(stderr, "%s%s\n", dim_off, t->last == '\n' ? "" : "\n");
    else
        put_marker(t->how->end, t->last != '\n');
}
