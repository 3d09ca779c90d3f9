/* SPDX-License-Identifier: Apache-2.0
 *
 * reasoning.h: what a model thinks, kept apart from its answer, while tokens come. Only the block that a text begins with counts:
 *
 *     BEFORE --begin marker--> INSIDE --end marker--> BEHIND --a letter--> ANSWER
 *        \------------------- anything else -------------------------------^
 *
 * Markers are found in the text, however tokens cut it. White space around what is thought, and in front of an answer behind a block, belongs to the
 * template and is left out. The budget and grammars steer by tokens: those that must come next are in `forced`.
 */
#ifndef LATH_ENGINE_REASONING_H
#define LATH_ENGINE_REASONING_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "lath/lath.h"
#include "tok/tok.h"

typedef enum reasoning_state { REASONING_BEFORE, REASONING_INSIDE, REASONING_BEHIND, REASONING_ANSWER } reasoning_state;

typedef struct reasoning_ids {
    const int32_t *ids; /* [n] */
    size_t n;
} reasoning_ids;

typedef struct reasoning {
    const tok *tok;
    arena mem;
    lath_text begin_text, end_text;
    reasoning_ids begin, end; /* the markers */
    reasoning_ids close, gap; /* what ends a block that is cut short; its white space behind the end marker */
    reasoning_ids forced;     /* tokens that come next, whatever the model says */
    int32_t budget;           /* tokens inside, at most; -1: any number */
    size_t count;             /* tokens that came inside, those of the end marker included */
    reasoning_state state;
    buf held;   /* BEFORE: blanks and the first bytes of the begin marker; INSIDE: the same of the end marker */
    bool given; /* something that was thought has been given out */
} reasoning;

enum { REASONING_MARKER_BYTES_MOST = 256, REASONING_BUDGET_NONE = -1 };

/* open: the text begins inside a block. LATH_ERR_USAGE: a marker is empty, too long or no UTF-8. Everything is copied but the tokenizer. Deinit also
 * after a failure. */
lath_status reasoning_init(reasoning *r, const lath_allocator *alloc, const tok *t, const lath_reasoning *o, bool open,
                           int32_t budget, lath_error *err);
/* There is nothing to keep apart: all text is answer. */
void reasoning_init_none(reasoning *r, const lath_allocator *alloc);
void reasoning_deinit(reasoning *r); /* of a zeroed one, too */

/* A special token of a marker: decoders leave its text out, but it is to be pushed. */
bool reasoning_is_marker(const reasoning *r, int32_t id);
/* Text, in whole characters. Appends what can be given out now of what is thought and of the answer. */
void reasoning_push(reasoning *r, const char *text, size_t n, buf *thought, buf *answer);
/* No more text: what was held is what it looks like without the rest of a marker. */
void reasoning_finish(reasoning *r, buf *thought, buf *answer);

/* Before the first token, and after the text of each was pushed: was_inside is the state before that. Forces the end of a block whose budget is used
 * up (never in the middle of an end marker), and, for a grammar, the white space behind one that the model ended. */
void reasoning_steer(reasoning *r, bool was_inside, bool grammar);
/* The next token of `forced`, or -1. */
int32_t reasoning_take_forced(reasoning *r);

/* For grammars, which are about the answer alone.
 * The next token may be the first of the begin marker. */
bool reasoning_may_begin(const reasoning *r);
/* It was: the rest of the marker is forced. */
void reasoning_begin(reasoning *r);
/* The token, of these bytes, would end the block and go on into the answer. */
bool reasoning_runs_over(const reasoning *r, const char *bytes, size_t n);
/* Instead of such a token: the rest of the end marker is forced. */
lath_status reasoning_end_exactly(reasoning *r, lath_error *err);
/* A token of the grammar's came: what follows is the answer, as it stands. */
void reasoning_answer(reasoning *r);

#endif
