/* SPDX-License-Identifier: Apache-2.0
 *
 * dialog.h: a conversation with a language model: its messages, and the prompt that the model's template makes of them. For lath chat and for
 * lath generate --chat.
 */
#ifndef LATH_CLI_DIALOG_H
#define LATH_CLI_DIALOG_H

#include "base/buf.h"
#include "thinking.h"

typedef struct dialog_message {
    const char *role; /* static */
    buf text;
    buf thought; /* before it; of answers */
} dialog_message;

typedef struct dialog {
    lath_chat *chat;
    dialog_message *messages; /* [n] */
    size_t n, capacity;
    lath_message *shown; /* [capacity] for the library */
    lath_chat_prompt prompt;
    int32_t end_id; /* of the template; -1: none */
    thinking thinking;
} dialog;

/* With the model's template, or that of --chat-template, and what the options say about thinking. LATH_ERR_UNSUPPORTED: the model has none,
 * or it is one that lath cannot run. */
lath_status dialog_open(dialog *d, const lath_model *model, const options *o, lath_error *err);
void dialog_close(dialog *d); /* a zeroed one is allowed */

/* The system message, in front; an empty one takes it away. */
lath_status dialog_set_system(dialog *d, const char *text, size_t n, lath_error *err);
lath_status dialog_add(dialog *d, const char *role, const char *text, size_t n, lath_error *err);
/* What the model thought before the last message. */
lath_status dialog_add_thought(dialog *d, const char *text, size_t n, lath_error *err);
void dialog_drop_last(dialog *d);
/* Back to the system message. */
void dialog_reset(dialog *d);
/* For an answer to d->prompt: what ends it, and how it is told from what is thought. Borrows from d. */
void dialog_ask(dialog *d, lath_generate_options *g);
/* d->prompt of all messages and the beginning of an answer. */
lath_status dialog_render(dialog *d, lath_error *err);
/* The messages as a JSON array. */
void dialog_put_json(const dialog *d, buf *out);

#endif
