/* SPDX-License-Identifier: Apache-2.0
 *
 * inside.h: what the commands on language models change inside them: --ffn, --ablate, --steer, --patch, as hooks and an FFN; and what each layer's FFN did,
 * for -v and --json.
 */
#ifndef LATH_CLI_INSIDE_H
#define LATH_CLI_INSIDE_H

#include "base/buf.h"
#include "lath/lath_inspect.h"
#include "options.h"

typedef struct inside {
    const options *o;
    lath_hooks *hooks; /* NULL: no edit is asked for */
    lath_ffn *ffn;     /* NULL: the model's own */
    int32_t n_layers;
} inside;

/* LATH_ERR_USAGE: an option says nothing, or something that the model has not; LATH_ERR_NOT_FOUND, _FORMAT, _INPUT: a file of it. The message begins with the option. */
lath_status inside_open(inside *x, const lath_model *model, const options *o, lath_error *err);
/* The session, which is empty, computes with them. */
lath_status inside_attach(const inside *x, lath_session *s, lath_error *err);
/* At the end of a run. LATH_ERR_USAGE: an edit was for a position that never came. */
lath_status inside_check(const inside *x, lath_error *err);
/* Which way the FFN of each layer went, on stderr, with -v, where there is an --ffn. */
lath_status inside_note(const inside *x, lath_error *err);
/* The same in JSON: ,"ffn":[{"layers":"0-11","path":"dense"},...]; nothing where there is no --ffn. */
lath_status inside_put(const inside *x, buf *b, lath_error *err);
/* One --ffn, as --json has it, of an FFN: [{"layers":"0-11",...}]. */
lath_status inside_put_paths(const lath_ffn *ffn, int32_t n_layers, buf *b, lath_error *err);
void inside_close(inside *x); /* a zeroed one is allowed */

#endif
