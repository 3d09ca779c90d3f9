/* SPDX-License-Identifier: Apache-2.0
 *
 * dialog.h: a conversation with a language model: its messages, and the prompt that the model's template makes of them. For lath chat and for
 * lath generate --chat.
 */
#ifndef LATH_CLI_DIALOG_H
#define LATH_CLI_DIALOG_H

#include "base/buf.h"
#include "lath/lath.h"

typedef struct dialog_message {
    const char *role; /* static */
    buf text;
} dialog_message;

typedef struct dialog {
    lath_chat *chat;
    dialog_message *messages; /* [n] */
    size_t n, capacity;
    lath_message *shown; /* [capacity] for the library */
    lath_chat_prompt prompt;
    int32_t end_id; /* of the template; -1: none */
} dialog;

/* With the model's template, or that of the file `path` (NULL: none). LATH_ERR_UNSUPPORTED: the model has none, or it is one
 * that lath cannot run. */
lath_status dialog_open(dialog *d, const lath_model *model, const char *path, lath_error *err);
void dialog_close(dialog *d); /* a zeroed one is allowed */

/* The system message, in front; an empty one takes it away. */
lath_status dialog_set_system(dialog *d, const char *text, size_t n, lath_error *err);
lath_status dialog_add(dialog *d, const char *role, const char *text, size_t n, lath_error *err);
void dialog_drop_last(dialog *d);
/* Back to the system message. */
void dialog_reset(dialog *d);
/* d->prompt of all messages and the beginning of an answer. */
lath_status dialog_render(dialog *d, lath_error *err);
/* The messages as a JSON array. */
void dialog_put_json(const dialog *d, buf *out);

#endif
