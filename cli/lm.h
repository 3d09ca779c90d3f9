/* SPDX-License-Identifier: Apache-2.0
 *
 * lm.h: what the commands on language models share: a model, the tokens of a PROMPT, a session that holds them, and the
 * logits of the last or of every token, with a bar and an eye on Ctrl-C.
 */
#ifndef LATH_CLI_LM_H
#define LATH_CLI_LM_H

#include "dialog.h"
#include "progress.h"
#include "setup.h"

typedef struct lm_job {
    const options *o;
    setup s;
    lath_session_plan plan;
    lath_model_info info;
    lath_session *session;
    progress *p;        /* shows how far a lm_feed is; NULL between */
    lath_tokens tokens; /* of the text */
    dialog talk;        /* that the text is a message of */
    int32_t *given;     /* [n_given] ids that were given instead of a text */
    size_t n_given;     /* capacity of given */
    const int32_t *ids; /* [n] one or the other */
    size_t n;
} lm_job;

/* The model. LATH_ERR_UNSUPPORTED: it is no language model. */
lath_status lm_open(lm_job *j, const options *o, lath_error *err);
/* Tokens of a text, with those that the model's template adds, so that an empty text is the beginning token alone.
 * LATH_ERR_INPUT: there are none. */
lath_status lm_encode(lm_job *j, const buf *text, lath_error *err);
/* Tokens of --ids: whole numbers with commas or blanks between. LATH_ERR_USAGE: something else. */
lath_status lm_take_ids(lm_job *j, const char *list, lath_error *err);
/* The PROMPT, or --ids. */
lath_status lm_prompt(lm_job *j, lath_error *err);
/* For a session of ctx tokens: as the command line says; Ctrl-C stops what it computes. */
lath_session_options lm_session_options(const options *o, int64_t ctx);
/* The PROMPT as a message, behind --system, through the model's chat template. */
lath_status lm_chat_prompt(lm_job *j, lath_error *err);
/* A session for ctx tokens, with a bar where a lm_feed is under way. */
lath_status lm_session(lm_job *j, int64_t ctx, lath_error *err);
/* One for --ctx tokens, else for all of the prompt. LATH_ERR_KV_FULL: it has more than the model's window. */
lath_status lm_begin(lm_job *j, lath_error *err);

/* Sees the logits [info.vocab_size] behind token `at`. */
typedef lath_status (*lm_see)(void *ctx, size_t at, const float *logits, lath_error *err);
/* Adds the tokens to the session; `see`, which may be NULL, sees the logits of each, else only those of the last are
 * there. `p` shows how far it is. LATH_ERR_INTERRUPTED. */
lath_status lm_feed(lm_job *j, const int32_t *ids, size_t n, lm_see see, void *ctx, progress *p, lath_error *err);
/* What it took, with -v. */
void lm_notes(const lm_job *j);
/* The session alone, before the hooks and the FFN that it has. */
void lm_end(lm_job *j);
void lm_close(lm_job *j); /* a zeroed one is allowed */

/* The text of a token as it stands inside a text; bytes that are no whole character are U+FFFD. *known false, and no text:
 * the tokenizer has none for this id (rows of the matrix behind the vocabulary). */
lath_status lm_token_text(const lm_job *j, int32_t id, buf *out, bool *known, lath_error *err);

#endif
