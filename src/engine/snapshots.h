/* SPDX-License-Identifier: Apache-2.0
 *
 * snapshots.h: states of the layers that recur as they were behind some of a session's first tokens. Such a state cannot be cut back as keys and values can:
 * to drop tokens is to go back to a snapshot and to read again what follows it. One block of slots, made with the session:
 *     | state | logits of the last token | state | logits | ...        (pages that nobody has written take no memory)
 */
#ifndef LATH_SNAPSHOTS_H
#define LATH_SNAPSHOTS_H

#include <stdbool.h>

#include "base/alloc.h"

enum { SNAPSHOTS_MOST = 64 };

/* Why it was taken, the least worth keeping first. */
typedef enum snapshot_kind {
    SNAPSHOT_PASSING, /* as many tokens have gone by */
    SNAPSHOT_END,     /* tokens that were added together end here */
    SNAPSHOT_TURN     /* a message ends here */
} snapshot_kind;

typedef struct snapshot {
    int32_t at; /* tokens before it; 0: the slot is free (the state of no token needs none) */
    snapshot_kind kind;
    bool marked;     /* by the user: never given up for another */
    bool has_logits; /* those of token at - 1 are there */
} snapshot;

typedef struct snapshots {
    snapshot slots[SNAPSHOTS_MOST];
    int32_t n_slots, n_marked;
    int32_t pinned; /* the one at this place is kept as if marked; 0: none */
    float *block;
    size_t n_state, n_logits, stride, bytes; /* floats of each; of a slot; bytes of the block */
} snapshots;

/* Slots for states of n_state floats and logits of n_logits, as many as fit in `budget` bytes; 0: as many as are worth having. Takes no memory. */
void snapshots_plan(snapshots *s, size_t n_state, size_t n_logits, uint64_t budget);
lath_status snapshots_init(snapshots *s, const lath_allocator *alloc, lath_error *err); /* planned */
void snapshots_deinit(snapshots *s, const lath_allocator *alloc);

/* Keeps the state behind the first `at` > 0 tokens, which none is behind; logits may be NULL. One that is there already gains what is new. Where all slots
 * are taken another one goes: see snapshots.c. */
void snapshots_take(snapshots *s, int32_t at, snapshot_kind kind, const float *state, const float *logits);
/* The one that is nearest to `at` from below, or there; NULL: none. */
const snapshot *snapshots_below(const snapshots *s, int32_t at);
/* Its state, and its logits where it has some; either may be NULL. */
void snapshots_restore(const snapshots *s, const snapshot *from, float *state, float *logits);
/* Frees those behind the first `at` tokens. */
void snapshots_drop(snapshots *s, int32_t at);
/* As snapshots_take, and the one at `at` stays until it is dropped or the mark is taken away. false: as many are marked as may be: one slot is left for
 * everything else. */
bool snapshots_mark(snapshots *s, int32_t at, const float *state, const float *logits);
void snapshots_unmark(snapshots *s, int32_t at);
/* How many are held. */
int32_t snapshots_held(const snapshots *s);

#endif
