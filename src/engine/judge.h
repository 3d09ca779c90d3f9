/* SPDX-License-Identifier: Apache-2.0
 *
 * judge.h: how a language model is asked whether a document answers a query: the prompt of Qwen3-Reranker, as its model card has it. The markup
 * around the texts is tokenised with its special tokens, once; what people write is tokenised without any, so that no text can close its turn.
 *
 *     prefix   system: judge whether the Document meets the requirements ... "yes" or "no"; user:
 *     text     <Instruct>: INSTRUCTION\n<Query>: QUERY\n<Document>: DOCUMENT          cut from the right where the whole is over the limit
 *     suffix   assistant: an empty thought
 */
#ifndef LATH_JUDGE_H
#define LATH_JUDGE_H

#include "tok/tok.h"

typedef struct judge {
    const tok *t;
    tok_encoding prefix, suffix, text;
    buf lead, whole; /* the text up to the document; with it */
    int32_t *ids;    /* [n] of the last document */
    size_t n, n_untruncated, capacity;
} judge;

/* The chat template of a model asks as this does. */
bool judge_is_template(const char *chat_template);

lath_status judge_init(judge *j, const tok *t, const lath_allocator *alloc, arena *scratch, lath_error *err);
void judge_deinit(judge *j); /* a zeroed one is allowed */
size_t judge_bytes(const judge *j);
/* Tokens around the text. */
size_t judge_n_around(const judge *j);
/* The query of the documents that follow. An empty instruction is the model card's. */
lath_status judge_set_query(judge *j, const char *instruction, size_t n_instruction, const char *query, size_t n_query,
                            lath_error *err);
/* j->ids of at most max_tokens. LATH_ERR_INPUT: no valid UTF-8. */
lath_status judge_encode(judge *j, arena *scratch, const char *document, size_t n, int64_t max_tokens, lath_error *err);

#endif
