/* SPDX-License-Identifier: Apache-2.0
 *
 * grammar_run.c: the automaton at work. A place is a node and a stack of calls; stacks share their lower parts (cells), and equal cells are one cell, so
 * places are equal where their numbers are. What a text may be after some bytes is a set of places whose nodes take a byte (or the end):
 * equal sets are one state, and what a state becomes by a class of bytes is written down when it was found out once.
 *
 * Calls in last position leave no cell, so lists that are written as recursion do not get deeper.
 */
#include <string.h>

#include "base/hash.h"
#include "engine/grammar.h"

enum { ROOT = 0, FIRST_SLOTS = 256 };

/* -------------------------------------------------------------------------------------------------------------- memory */

/* Room for `more` items behind n of them. */
static bool grow(grammar_run *r, void **v, size_t n, size_t more, size_t *cap, size_t size)
{
    if (n + more <= *cap) return true;
    size_t bigger = *cap ? 2 * *cap : 64;
    while (bigger < n + more) bigger *= 2;
    void *p = alloc_resize(r->alloc, *v, *cap * size, bigger * size, 16);
    if (!p) {
        if (r->status == LATH_OK) r->status = err_nomem(r->err, bigger * size);
        return false;
    }
    *v = p;
    *cap = bigger;
    return true;
}

static void set_full(grammar_run *r, const char *what)
{
    r->full = true;
    if (r->status == LATH_OK) r->status = err_set(r->err, LATH_ERR_LIMIT, "grammar: too many %s", what);
}

/* The slot of an item that is `same` as the one with this hash, or an empty one. */
typedef bool (*same_fn)(const grammar_run *r, uint32_t index, const void *key);

static uint32_t *slot_of(const grammar_run *r, const grammar_table *t, uint64_t hash, same_fn same, const void *key)
{
    size_t at = (size_t)hash & (t->n_slots - 1);
    while (t->slots[at] && !same(r, t->slots[at] - 1, key)) at = (at + 1) & (t->n_slots - 1);
    return &t->slots[at];
}

typedef uint64_t (*hash_fn)(const grammar_run *r, uint32_t index);

/* At most three quarters of the slots are in use. */
static bool table_grow(grammar_run *r, grammar_table *t, hash_fn hash)
{
    if ((t->n + 1) * 4 <= t->n_slots * 3) return true;
    const size_t n_slots = t->n_slots ? 2 * t->n_slots : FIRST_SLOTS;
    uint32_t *slots = alloc_array(r->alloc, n_slots, sizeof(*slots));
    if (!slots) {
        if (r->status == LATH_OK) r->status = err_nomem(r->err, n_slots * sizeof(*slots));
        return false;
    }
    for (size_t i = 0; i < t->n_slots; i++) {
        if (!t->slots[i]) continue;
        size_t at = (size_t)hash(r, t->slots[i] - 1) & (n_slots - 1);
        while (slots[at]) at = (at + 1) & (n_slots - 1);
        slots[at] = t->slots[i];
    }
    alloc_release(r->alloc, t->slots, t->n_slots * sizeof(*slots));
    t->slots = slots;
    t->n_slots = n_slots;
    return true;
}

static void table_clear(grammar_table *t)
{
    if (t->n_slots) memset(t->slots, 0, t->n_slots * sizeof(*t->slots));
    t->n = 0;
}

/* --------------------------------------------------------------------------------------------------------------- cells */

static uint64_t hash_cell(const grammar_run *r, uint32_t i) { return hash_64(&r->cells[i], sizeof(grammar_cell)); }

static bool same_cell(const grammar_run *r, uint32_t i, const void *key)
{
    return memcmp(&r->cells[i], key, sizeof(grammar_cell)) == 0;
}

static uint32_t cell_of(grammar_run *r, uint32_t node, uint32_t count, uint32_t parent)
{
    const grammar_cell cell = {node, count, parent, r->cells[parent].depth + 1};
    if (!table_grow(r, &r->cell_table, hash_cell)) return ROOT;
    uint32_t *slot = slot_of(r, &r->cell_table, hash_64(&cell, sizeof(cell)), same_cell, &cell);
    if (*slot) return *slot - 1;
    if (r->n_cells == GRAMMAR_CELLS_MOST) {
        set_full(r, "levels");
        return ROOT;
    }
    if (!grow(r, (void **)&r->cells, r->n_cells, 1, &r->cap_cells, sizeof(*r->cells))) return ROOT;
    r->cells[r->n_cells] = cell;
    *slot = (uint32_t)++r->n_cells;
    r->cell_table.n++;
    return *slot - 1;
}

/* ------------------------------------------------------------------------------------------------------------- closure */

static void begin_closure(grammar_run *r)
{
    r->n_work = r->n_found = r->n_seen = 0;
    if (++r->seen_round == 0) { /* marks of a round long ago */
        memset(r->seen_mark, 0, r->n_seen_slots * sizeof(*r->seen_mark));
        r->seen_round = 1;
    }
}

static size_t seen_slot(const grammar_run *r, uint64_t place)
{
    size_t at = (size_t)(place * 0x9E3779B97F4A7C15u >> 20) & (r->n_seen_slots - 1);
    while (r->seen_mark[at] == r->seen_round && r->seen[at] != place) at = (at + 1) & (r->n_seen_slots - 1);
    return at;
}

static bool grow_seen(grammar_run *r)
{
    const size_t old = r->n_seen_slots, n = old ? 2 * old : FIRST_SLOTS;
    uint64_t *seen = r->seen;
    uint32_t *mark = r->seen_mark;
    r->seen = alloc_array(r->alloc, n, sizeof(*seen));
    r->seen_mark = alloc_array(r->alloc, n, sizeof(*mark));
    if (!r->seen || !r->seen_mark) {
        alloc_release(r->alloc, r->seen, n * sizeof(*seen));
        alloc_release(r->alloc, r->seen_mark, n * sizeof(*mark));
        r->seen = seen;
        r->seen_mark = mark;
        if (r->status == LATH_OK) r->status = err_nomem(r->err, n * (sizeof(*seen) + sizeof(*mark)));
        return false;
    }
    r->n_seen_slots = n;
    for (size_t i = 0; i < old; i++) {
        if (mark[i] != r->seen_round) continue;
        const size_t at = seen_slot(r, seen[i]);
        r->seen[at] = seen[i];
        r->seen_mark[at] = r->seen_round;
    }
    alloc_release(r->alloc, seen, old * sizeof(*seen));
    alloc_release(r->alloc, mark, old * sizeof(*mark));
    return true;
}

/* A place to look at, if it was not yet. */
static void visit(grammar_run *r, uint32_t node, uint32_t cell)
{
    const uint64_t place = (uint64_t)node << 32 | cell;
    if (r->status != LATH_OK) return;
    if ((r->n_seen + 1) * 2 > r->n_seen_slots && !grow_seen(r)) return;
    const size_t at = seen_slot(r, place);
    if (r->seen_mark[at] == r->seen_round) return;
    if (r->n_seen > (size_t)64 * GRAMMAR_WAYS_MOST) {
        if (r->status == LATH_OK)
            r->status = err_set(r->err, LATH_ERR_LIMIT, "grammar: a text can be read in too many ways at once");
        return;
    }
    r->seen[at] = place;
    r->seen_mark[at] = r->seen_round;
    r->n_seen++;
    if (grow(r, (void **)&r->work, r->n_work, 1, &r->cap_work, sizeof(*r->work))) r->work[r->n_work++] = place;
}

static bool fits(const grammar_run *r, uint32_t cell, uint32_t need)
{
    return r->cells[cell].depth + need <= GRAMMAR_DEPTH_MOST;
}

/* `count` rounds of the loop at `node`, which was called under `cell`, are done. */
static void visit_loop(grammar_run *r, uint32_t node, uint32_t count, uint32_t cell)
{
    const grammar_node *x = &r->g->nodes[node];
    const grammar_loop *loop = &r->g->loops[x->a];
    const bool unbounded = loop->max == GRAMMAR_UNBOUNDED;
    if (count >= loop->min) visit(r, x->b, cell);
    if ((!unbounded && count >= loop->max) || !fits(r, cell, loop->need)) return;
    if (unbounded && count > loop->min) count = loop->min;
    visit(r, loop->begin, cell_of(r, node, count + 1, cell));
}

static void found(grammar_run *r, uint64_t place)
{
    if (r->n_found == GRAMMAR_WAYS_MOST) {
        if (r->status == LATH_OK)
            r->status = err_set(r->err, LATH_ERR_LIMIT, "grammar: a text can be read in more than %d ways at once",
                                GRAMMAR_WAYS_MOST);
        return;
    }
    if (grow(r, (void **)&r->found, r->n_found, 1, &r->cap_found, sizeof(*r->found))) r->found[r->n_found++] = place;
}

static void look_at(grammar_run *r, uint64_t place)
{
    const uint32_t node = (uint32_t)(place >> 32), cell = (uint32_t)place;
    const grammar_node *x = &r->g->nodes[node];
    switch (x->kind) {
    case GRAMMAR_NODE_BYTES:
        if (fits(r, cell, x->need)) found(r, place);
        break;
    case GRAMMAR_NODE_SPLIT:
        visit(r, x->a, cell);
        visit(r, x->b, cell);
        break;
    case GRAMMAR_NODE_CALL:
        if (r->g->nodes[x->b].kind == GRAMMAR_NODE_END) {
            visit(r, x->a, cell);
        } else if (fits(r, cell, x->need)) {
            visit(r, x->a, cell_of(r, x->b, 0, cell));
        }
        break;
    case GRAMMAR_NODE_LOOP:
        if (fits(r, cell, x->need)) visit_loop(r, node, 0, cell);
        break;
    default: /* END */
        if (cell == ROOT) {
            found(r, place);
            break;
        }
        const grammar_cell c = r->cells[cell];
        if (c.count > 0) {
            visit_loop(r, c.node, c.count, c.parent);
        } else {
            visit(r, c.node, c.parent);
        }
    }
}

/* Everything that the places at work become without taking a byte. */
static void close_places(grammar_run *r)
{
    while (r->n_work > 0 && r->status == LATH_OK) look_at(r, r->work[--r->n_work]);
}

/* -------------------------------------------------------------------------------------------------------------- states */

static uint64_t hash_state(const grammar_run *r, uint32_t i)
{
    return hash_64(r->places + r->states[i].first, r->states[i].n * sizeof(*r->places));
}

/* key: the run itself, whose `found` is meant. */
static bool same_state(const grammar_run *r, uint32_t i, const void *key)
{
    (void)key;
    const grammar_state *s = &r->states[i];
    return s->n == r->n_found && (s->n == 0 || memcmp(r->places + s->first, r->found, s->n * sizeof(*r->places)) == 0);
}

/* Shell's sort (Ciura 2001): the sets are small. */
static void sort_found(grammar_run *r)
{
    static const size_t gaps[] = {701, 301, 132, 57, 23, 10, 4, 1};
    for (size_t k = 0; k < sizeof(gaps) / sizeof(gaps[0]); k++) {
        const size_t gap = gaps[k];
        for (size_t i = gap; i < r->n_found; i++) {
            const uint64_t x = r->found[i];
            size_t at = i;
            for (; at >= gap && r->found[at - gap] > x; at -= gap) r->found[at] = r->found[at - gap];
            r->found[at] = x;
        }
    }
}

/* The state of what was found; the empty set is state 0. */
static uint32_t state_of(grammar_run *r)
{
    const size_t n_classes = r->g->n_classes;
    if (r->status != LATH_OK) return 0;
    sort_found(r);
    if (!table_grow(r, &r->state_table, hash_state)) return 0;
    uint32_t *slot = slot_of(r, &r->state_table, hash_64(r->found, r->n_found * sizeof(*r->found)), same_state, r);
    if (*slot) return *slot - 1;
    if (r->n_states == GRAMMAR_STATES_MOST || r->n_places + r->n_found > GRAMMAR_PLACES_MOST) {
        set_full(r, "states");
        return 0;
    }
    if (!grow(r, (void **)&r->states, r->n_states, 1, &r->cap_states, sizeof(*r->states)) ||
        !grow(r, (void **)&r->places, r->n_places, r->n_found, &r->cap_places, sizeof(*r->places)) ||
        !grow(r, (void **)&r->next, r->n_states * n_classes, n_classes, &r->cap_next, sizeof(*r->next)))
        return 0;
    for (size_t i = 0; i < n_classes; i++) r->next[r->n_states * n_classes + i] = GRAMMAR_UNKNOWN;
    if (r->n_found) memcpy(r->places + r->n_places, r->found, r->n_found * sizeof(*r->found));
    r->states[r->n_states] = (grammar_state){.first = (uint32_t)r->n_places,
                                             .n = (uint32_t)r->n_found,
                                             .mask = -1,
                                             .complete = r->n_found > 0 && r->found[0] == 0};
    r->n_places += r->n_found;
    *slot = (uint32_t)++r->n_states;
    r->state_table.n++;
    return *slot - 1;
}

/* Tables with nothing in them but the root cell and the dead state. */
static void clear(grammar_run *r)
{
    table_clear(&r->cell_table);
    table_clear(&r->state_table);
    r->n_states = r->n_places = 0;
    r->n_cells = 1;
    r->cells[ROOT] = (grammar_cell){0};
    r->n_found = 0;
    state_of(r);
}

lath_status grammar_run_init(grammar_run *r, const grammar *g, const lath_allocator *alloc, lath_error *err)
{
    *r = (grammar_run){.g = g, .alloc = alloc, .err = err};
    if (grow(r, (void **)&r->cells, 0, 1, &r->cap_cells, sizeof(*r->cells)) && grow_seen(r)) clear(r);
    return r->status;
}

void grammar_run_deinit(grammar_run *r)
{
    if (!r->alloc) return;
    alloc_release(r->alloc, r->cells, r->cap_cells * sizeof(*r->cells));
    alloc_release(r->alloc, r->states, r->cap_states * sizeof(*r->states));
    alloc_release(r->alloc, r->places, r->cap_places * sizeof(*r->places));
    alloc_release(r->alloc, r->next, r->cap_next * sizeof(*r->next));
    alloc_release(r->alloc, r->seen, r->n_seen_slots * sizeof(*r->seen));
    alloc_release(r->alloc, r->seen_mark, r->n_seen_slots * sizeof(*r->seen_mark));
    alloc_release(r->alloc, r->work, r->cap_work * sizeof(*r->work));
    alloc_release(r->alloc, r->found, r->cap_found * sizeof(*r->found));
    alloc_release(r->alloc, r->cell_table.slots, r->cell_table.n_slots * sizeof(uint32_t));
    alloc_release(r->alloc, r->state_table.slots, r->state_table.n_slots * sizeof(uint32_t));
    *r = (grammar_run){0};
}

static void begin_call(grammar_run *r, lath_error *err)
{
    r->status = LATH_OK;
    r->full = false;
    r->err = err;
}

lath_status grammar_run_begin(grammar_run *r, uint32_t *state, lath_error *err)
{
    begin_call(r, err);
    begin_closure(r);
    visit(r, r->g->begin, ROOT);
    close_places(r);
    *state = state_of(r);
    return r->status;
}

lath_status grammar_run_step(grammar_run *r, uint32_t state, uint32_t class, uint32_t *out, lath_error *err)
{
    const grammar_state s = r->states[state];
    const uint8_t byte = r->g->byte_of[class];
    begin_call(r, err);
    begin_closure(r);
    for (uint32_t i = 0; i < s.n; i++) {
        const uint64_t place = r->places[s.first + i];
        const grammar_node *x = &r->g->nodes[place >> 32];
        if (x->kind == GRAMMAR_NODE_BYTES && grammar_set_has(r->g->sets[x->a], byte)) visit(r, x->b, (uint32_t)place);
    }
    close_places(r);
    const uint32_t to = state_of(r);
    if (r->status != LATH_OK) return r->status;
    r->next[(size_t)state * r->g->n_classes + class] = to;
    *out = to;
    return LATH_OK;
}

lath_status grammar_run_forget(grammar_run *r, uint32_t *state, lath_error *err)
{
    const grammar_state s = r->states[*state];
    lath_status st = LATH_OK;
    begin_call(r, err);
    uint64_t *places = alloc_array(r->alloc, s.n ? s.n : 1, sizeof(*places));
    const size_t n_cells = r->n_cells;
    grammar_cell *old = alloc_array(r->alloc, n_cells, sizeof(*old));
    uint32_t *moved = alloc_array(r->alloc, n_cells, sizeof(*moved));
    if (!places || !old || !moved) {
        st = err_nomem(err, n_cells * (sizeof(*old) + sizeof(*moved)));
        goto done;
    }
    memcpy(places, r->places + s.first, s.n * sizeof(*places));
    memcpy(old, r->cells, n_cells * sizeof(*old));
    /* Cells that the places need: parents have lower numbers than what stands on them. */
    for (uint32_t i = 0; i < s.n; i++) moved[(uint32_t)places[i]] = 1;
    for (size_t i = n_cells; i-- > 1;) {
        if (moved[i]) moved[old[i].parent] = 1;
    }
    clear(r);
    moved[ROOT] = ROOT;
    for (size_t i = 1; i < n_cells; i++) {
        if (moved[i]) moved[i] = cell_of(r, old[i].node, old[i].count, moved[old[i].parent]);
    }
    for (uint32_t i = 0; i < s.n && r->status == LATH_OK; i++)
        found(r, (places[i] & ~(uint64_t)UINT32_MAX) | moved[(uint32_t)places[i]]);
    *state = state_of(r);
    st = r->status;
done:
    alloc_release(r->alloc, places, (s.n ? s.n : 1) * sizeof(*places));
    alloc_release(r->alloc, old, n_cells * sizeof(*old));
    alloc_release(r->alloc, moved, n_cells * sizeof(*moved));
    return st;
}
