/* SPDX-License-Identifier: Apache-2.0
 *
 * judge.h: how a language model is asked whether a document answers a query. Where the model's files have a chat template for it (as sentence-transformers
 * saves rerankers), through that: messages of the roles "system" (the instruction, when there is one), "query" and "document". Else by the prompt of
 * Qwen3-Reranker, as its model card has it:
 *
 *     prefix   system: judge whether the Document meets the requirements ... "yes" or "no"; user:
 *     text     <Instruct>: INSTRUCTION\n<Query>: QUERY\n<Document>: DOCUMENT          cut from the right where the whole is over the limit
 *     suffix   assistant: an empty thought
 *
 * Either way no special token comes of what people write, so that no text can close its turn, and what stands behind the document is never cut.
 */
#ifndef LATH_JUDGE_H
#define LATH_JUDGE_H

#include "engine/conversation.h"

typedef struct judge {
    const tok *t;
    lath_chat *chat;                   /* the model's template, or NULL */
    rendering asked;                   /* through it */
    tok_encoding prefix, suffix, text; /* without it */
    buf lead, whole;                   /* the text up to the document (with a template: the query); with it */
    buf instruction;                   /* with a template */
    int32_t *ids;                      /* [n] of the last document */
    size_t n, n_untruncated, capacity, n_around;
} judge;

/* LATH_ERR_UNSUPPORTED: the model's template does not ask about a query and a document. */
lath_status judge_init(judge *j, const lath_model *model, arena *scratch, lath_error *err);
void judge_deinit(judge *j); /* a zeroed one is allowed */
size_t judge_bytes(const judge *j);
/* Tokens around the text. */
size_t judge_n_around(const judge *j);
/* The query of the documents that follow. An empty instruction is the model card's, or the template's. */
lath_status judge_set_query(judge *j, const char *instruction, size_t n_instruction, const char *query, size_t n_query,
                            lath_error *err);
/* j->ids of at most max_tokens. LATH_ERR_INPUT: no valid UTF-8. */
lath_status judge_encode(judge *j, arena *scratch, const char *document, size_t n, int64_t max_tokens, lath_error *err);

#endif
