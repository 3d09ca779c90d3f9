/* SPDX-License-Identifier: Apache-2.0
 *
 * conversation.h: what is behind lath_chat: the chat template of a model's files, compiled, and conversations through it to token ids.
 *
 *     messages as JSON -> chat/ -> text, and which bytes of it people wrote -> tok/ -> ids: no special token comes of what people wrote
 */
#ifndef LATH_CONVERSATION_H
#define LATH_CONVERSATION_H

#include "chat/chat.h"
#include "engine/engine.h"

enum { CHAT_SPECIALS = 7 };

struct lath_chat {
    const lath_runtime *rt;
    const lath_tokenizer *tokenizer;
    lath_tokenizer *own; /* the same where it is not a model's */
    arena mem;
    const char *path, *text;          /* of the files; the template's */
    chat_template *plain, *tools;     /* tools: for conversations that have tools, or NULL */
    chat_var specials[CHAT_SPECIALS]; /* bos_token and so on, those that there are */
    size_t n_specials;
    int32_t end_id;
    lath_reasoning reasoning;         /* begin.len 0: none */
    const struct think_switch *think; /* NULL: none */
};

/* A variable that templates read to know whether to think, and its two values. */
typedef struct think_switch {
    const char *name;
    json_value on, off;
} think_switch;

/* A conversation as text and ids; a zeroed one is made ready by the first rendering. */
typedef struct rendering {
    chat_output out;
    tok_encoding tokens;
    arena scratch; /* of the tokenizer */
    arena mem;     /* of the call: messages, ranges */
} rendering;
void rendering_init(rendering *r, const lath_allocator *alloc);
void rendering_deinit(rendering *r, const tok *t);

/* Variables of one conversation, besides the special tokens. */
typedef struct conversation {
    const json_value *messages, *tools, *documents, *more; /* more: an object of further variables; NULL: none */
    bool prompt;                                           /* add_generation_prompt */
    bool has_date;
    int64_t date;
    lath_think think;
    const think_switch *by; /* that says it; NULL: nothing does */
} conversation;
lath_status conversation_render(const lath_chat *c, const conversation *v, rendering *r, lath_error *err);
/* Ids of r->out. */
lath_status conversation_encode(const lath_chat *c, rendering *r, lath_error *err);

/* Pieces of JSON, in an arena. */
json_value *json_new(arena *a, json_kind kind, lath_error *err);
json_value *json_new_text(arena *a, const char *s, size_t n, lath_error *err);
/* Appends a member to an object or array; key NULL in arrays. A NULL member is passed on as LATH_ERR_NOMEM. */
lath_status json_append(json_value *container, const char *key, json_value *member);
/* Appends {"role": role, "content": text} to messages. */
lath_status conversation_add(arena *a, json_value *messages, const char *role, const char *text, size_t n,
                             lath_error *err);
/* To the last message: what the model thought before it. */
lath_status conversation_add_reasoning(arena *a, json_value *messages, lath_text reasoning, lath_error *err);
/* What a model thought, under each of the names that templates read it by. */
lath_status conversation_name_reasoning(arena *a, json_value *message, lath_error *err);

/* conversation_think.c: finds c->reasoning and c->think. */
lath_status conversation_find_reasoning(lath_chat *c, lath_error *err);
/* Whether the text, rendered of a conversation whose last message goes on (or not), ends inside a block. */
bool conversation_is_open(const lath_chat *c, const chat_output *o, bool goes_on);

#endif
