/* SPDX-License-Identifier: Apache-2.0
 *
 * thinking.h: what the command line says about models that think, and how what they think is shown: on standard error, apart from the answer on
 * standard output; dimmed on a terminal, else between the model's own markers.
 */
#ifndef LATH_CLI_THINKING_H
#define LATH_CLI_THINKING_H

#include "options.h"

typedef struct thinking {
    const lath_reasoning *how; /* of the model; NULL: it is not known to think */
    lath_think think;
    int32_t most, budget; /* of --reasoning-budget, -1: none; the same as long as it is to think, else 0 */
    bool hide, quiet;     /* is not shown; nothing is said */
    bool dim;             /* standard error is a terminal that has colours */
    bool begun;           /* some is shown and not ended */
    char last;            /* the byte that was shown last */
} thinking;

/* Of the options. Says so where they change nothing. LATH_ERR_USAGE: they contradict each other. */
lath_status thinking_read(thinking *t, const options *o, const lath_chat *chat, lath_error *err);
/* On or off from now on. LATH_ERR_UNSUPPORTED: on, and the model does not think. */
lath_status thinking_set(thinking *t, bool on, lath_error *err);
/* For an answer to the prompt. */
void thinking_ask(const thinking *t, const lath_chat_prompt *prompt, lath_generate_options *g);

/* Shows what was thought in a step; what is shown is ended before the first text of the answer. Standard output has to be flushed before. */
void thinking_show(thinking *t, const lath_generated *g);
/* Nothing more is thought in this answer. */
void thinking_end(thinking *t);

#endif
