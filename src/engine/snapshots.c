/* SPDX-License-Identifier: Apache-2.0
 *
 * snapshots.c: which states are kept. When all slots are taken, the one goes whose loss costs least: the tokens between it and the one before it would be
 * read again (its gap), and that is the less likely the further it lies behind the newest and the less its place means. So
 *     worth = gap weight(kind) / (newest - at + 512),
 * the smallest goes, of equal ones the first. Of snapshots of one kind this leaves gaps that grow with the distance from the end, as far as there are slots:
 * eight make do to go back by d of 100,000 tokens and read no more than 2 d of them again. Marked and pinned ones stay.
 */
#include "engine/snapshots.h"

#include <string.h>

#include "base/checked.h"

enum { ALIGN_FLOATS = 16, BLOCK_ALIGN = 64, DEFAULT_MOST = 8, DEFAULT_LEAST = 3 };
static const uint64_t DEFAULT_BYTES = (uint64_t)512 << 20;
static const double NEAR = 512; /* tokens: what is nearer to the end counts alike */
static const double weights[] = {[SNAPSHOT_PASSING] = 1, [SNAPSHOT_END] = 2, [SNAPSHOT_TURN] = 8};

static size_t round_up(size_t n) { return (n + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS; }

/* Eight are a conversation with its last messages and what went before; three are what one turn needs (the last answer's beginning, the prompt's end, what
 * is restored after a failure), however large they are. */
void snapshots_plan(snapshots *s, size_t n_state, size_t n_logits, uint64_t budget)
{
    *s = (snapshots){.n_state = n_state, .n_logits = n_logits};
    s->stride = round_up(n_state) + round_up(n_logits);
    size_t bytes;
    if (n_state == 0 || !size_mul(s->stride, sizeof(float), &bytes)) return;
    uint64_t n = (budget ? budget : DEFAULT_BYTES) / bytes;
    const uint64_t most = budget ? SNAPSHOTS_MOST : DEFAULT_MOST;
    if (!budget && n < DEFAULT_LEAST) n = DEFAULT_LEAST;
    if (n > most) n = most;
    if (!size_mul(bytes, (size_t)n, &bytes)) return;
    s->bytes = bytes;
    s->n_slots = (int32_t)n;
}

lath_status snapshots_init(snapshots *s, const lath_allocator *alloc, lath_error *err)
{
    if (s->bytes == 0) return LATH_OK;
    s->block = alloc_bytes(alloc, s->bytes, BLOCK_ALIGN);
    return s->block ? LATH_OK : err_nomem(err, s->bytes);
}

void snapshots_deinit(snapshots *s, const lath_allocator *alloc)
{
    alloc_release(alloc, s->block, s->block ? s->bytes : 0);
    s->block = NULL;
}

static float *state_of(const snapshots *s, const snapshot *one) { return s->block + (one - s->slots) * s->stride; }

static float *logits_of(const snapshots *s, const snapshot *one) { return state_of(s, one) + round_up(s->n_state); }

const snapshot *snapshots_below(const snapshots *s, int32_t at)
{
    const snapshot *best = NULL;
    for (int32_t i = 0; i < s->n_slots; i++) {
        const snapshot *one = &s->slots[i];
        if (one->at > 0 && one->at <= at && (!best || one->at > best->at)) best = one;
    }
    return best;
}

static snapshot *find(snapshots *s, int32_t at)
{
    const snapshot *one = snapshots_below(s, at);
    return one && one->at == at ? &s->slots[one - s->slots] : NULL;
}

/* Where another one at `at`, behind all others, goes; NULL: nowhere. */
static snapshot *make_room(snapshots *s, int32_t at)
{
    snapshot *victim = NULL;
    double least = 0;
    for (int32_t i = 0; i < s->n_slots; i++)
        if (s->slots[i].at == 0) return &s->slots[i];
    for (int32_t i = 0; i < s->n_slots; i++) {
        snapshot *one = &s->slots[i];
        if (one->marked || one->at == s->pinned) continue;
        const snapshot *before = snapshots_below(s, one->at - 1);
        const double gap = one->at - (before ? before->at : 0),
                     worth = gap * weights[one->kind] / (at - one->at + NEAR);
        if (!victim || worth < least || (worth == least && one->at < victim->at)) {
            victim = one;
            least = worth;
        }
    }
    return victim;
}

static void keep_logits(const snapshots *s, snapshot *one, const float *logits)
{
    if (!logits || one->has_logits) return;
    memcpy(logits_of(s, one), logits, s->n_logits * sizeof(float));
    one->has_logits = true;
}

void snapshots_take(snapshots *s, int32_t at, snapshot_kind kind, const float *state, const float *logits)
{
    snapshot *one = find(s, at);
    if (one) {
        if (kind > one->kind) one->kind = kind;
    } else {
        one = make_room(s, at);
        if (!one) return;
        *one = (snapshot){.at = at, .kind = kind};
        memcpy(state_of(s, one), state, s->n_state * sizeof(float));
    }
    keep_logits(s, one, logits);
}

void snapshots_restore(const snapshots *s, const snapshot *from, float *state, float *logits)
{
    if (state) memcpy(state, state_of(s, from), s->n_state * sizeof(float));
    if (logits && from->has_logits) memcpy(logits, logits_of(s, from), s->n_logits * sizeof(float));
}

static void free_slot(snapshots *s, snapshot *one)
{
    s->n_marked -= one->marked;
    if (one->at == s->pinned) s->pinned = 0;
    *one = (snapshot){0};
}

void snapshots_drop(snapshots *s, int32_t at)
{
    for (int32_t i = 0; i < s->n_slots; i++)
        if (s->slots[i].at > at) free_slot(s, &s->slots[i]);
}

bool snapshots_mark(snapshots *s, int32_t at, const float *state, const float *logits)
{
    snapshot *one = find(s, at);
    if (!(one && one->marked) && s->n_marked + 1 >= s->n_slots) return false;
    snapshots_take(s, at, SNAPSHOT_TURN, state, logits);
    one = find(s, at);
    if (!one) return false;
    if (one->marked) return true;
    one->marked = true;
    s->n_marked++;
    return true;
}

void snapshots_unmark(snapshots *s, int32_t at)
{
    snapshot *one = find(s, at);
    if (!one || !one->marked) return;
    one->marked = false;
    s->n_marked--;
}

int32_t snapshots_held(const snapshots *s)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_slots; i++) n += s->slots[i].at > 0;
    return n;
}
