/* SPDX-License-Identifier: Apache-2.0
 *
 * grammar_match.c: the tokens that may come next: the tree of the vocabulary is walked with the automaton, and where a byte cannot come everything
 * behind it is left out. States repeat (every character inside a string is one), so the mask of a state is kept.
 */
#include <string.h>

#include "engine/grammar.h"

enum { MASK_BYTES_MOST = 32 << 20 };

struct grammar_match {
    const lath_allocator *alloc;
    const token_trie *trie;
    grammar_run run;
    uint32_t state;
    bool ended; /* an end token came */
    int32_t *end_ids;
    size_t n_end_ids;
    int32_t n_logits;
    size_t n_words;  /* of a mask */
    uint32_t *masks; /* [n_masks][n_words] */
    bool *none;      /* [most_masks] nothing but the end may come */
    size_t n_masks, cap_masks, most_masks;
    uint32_t *stack; /* [trie depth + 1] states along the way */
};

/* --------------------------------------------------------------------------------------------------------------- masks */

/* Room for one more. Where there may be no more, all of them go. */
static lath_status grow_masks(grammar_match *m, lath_error *err)
{
    if (m->n_masks < m->cap_masks) return LATH_OK;
    if (m->cap_masks == m->most_masks) {
        for (size_t i = 0; i < m->run.n_states; i++) m->run.states[i].mask = -1;
        m->n_masks = 0;
        return LATH_OK;
    }
    const size_t bytes = m->n_words * sizeof(*m->masks), twice = m->cap_masks ? 2 * m->cap_masks : 4;
    const size_t cap = twice < m->most_masks ? twice : m->most_masks;
    uint32_t *masks = alloc_resize(m->alloc, m->masks, m->cap_masks * bytes, cap * bytes, 64);
    if (!masks) return err_nomem(err, cap * bytes);
    m->masks = masks;
    m->cap_masks = cap;
    return LATH_OK;
}

static void set_bit(uint32_t *mask, int32_t id) { mask[id / 32] |= (uint32_t)1 << (id % 32); }

/* Bits of all tokens that the state can take. */
static lath_status walk(grammar_match *m, uint32_t state, uint32_t *mask, lath_error *err)
{
    const token_trie *t = m->trie;
    const token_trie_node *nodes = t->nodes;
    const uint8_t *class_of = m->run.g->class_of;
    m->stack[0] = state;
    for (size_t i = 0; i < t->n_nodes;) {
        const token_trie_node *x = &nodes[i];
        const uint32_t from = m->stack[x->depth - 1], class = class_of[x->byte];
        uint32_t to = grammar_run_known(&m->run, from, class);
        if (to == GRAMMAR_UNKNOWN) TRY(grammar_run_step(&m->run, from, class, &to, err));
        if (to == 0) {
            i = x->skip;
            continue;
        }
        m->stack[x->depth] = to;
        for (uint32_t k = x->tokens; k < nodes[i + 1].tokens; k++) {
            if (t->ids[k] < m->n_logits) set_bit(mask, t->ids[k]);
        }
        i++;
    }
    return LATH_OK;
}

static lath_status make_mask(grammar_match *m, lath_error *err)
{
    TRY(grow_masks(m, err));
    uint32_t *mask = m->masks + m->n_masks * m->n_words, any = 0;
    memset(mask, 0, m->n_words * sizeof(*mask));
    TRY(walk(m, m->state, mask, err));
    /* An end token ends the text, also where it could be read as text. */
    for (size_t i = 0; i < m->n_end_ids; i++) mask[m->end_ids[i] / 32] &= ~((uint32_t)1 << (m->end_ids[i] % 32));
    for (size_t i = 0; i < m->n_words; i++) any |= mask[i];
    m->none[m->n_masks] = any == 0;
    for (size_t i = 0; i < m->n_end_ids && m->run.states[m->state].complete; i++) set_bit(mask, m->end_ids[i]);
    m->run.states[m->state].mask = (int32_t)m->n_masks++;
    return LATH_OK;
}

/* Calls a function that may find the tables full: then all is forgotten but the state in hand, and it is called again. */
static lath_status forget(grammar_match *m, lath_status st, lath_error *err)
{
    if (st != LATH_ERR_LIMIT || !m->run.full) return st;
    TRY(grammar_run_forget(&m->run, &m->state, err));
    m->n_masks = 0;
    return LATH_OK;
}

lath_status grammar_match_mask(grammar_match *m, const uint32_t **mask, lath_error *err)
{
    *mask = NULL;
    if (m->ended) return err_set(err, LATH_ERR_USAGE, "grammar: the text has ended");
    if (m->run.states[m->state].mask < 0) {
        lath_status st = make_mask(m, err);
        if (st != LATH_OK) {
            TRY(forget(m, st, err));
            TRY(make_mask(m, err));
        }
    }
    const int32_t k = m->run.states[m->state].mask;
    if (m->none[k] && !m->run.states[m->state].complete)
        return err_set(err, LATH_ERR_INPUT, "grammar: the vocabulary has no token for what must come next");
    *mask = m->masks + (size_t)k * m->n_words;
    return LATH_OK;
}

bool grammar_match_has_mask(const grammar_match *m) { return m->run.states[m->state].mask >= 0; }

/* ------------------------------------------------------------------------------------------------------------ progress */

const char *grammar_match_bytes(const grammar_match *m, int32_t id, size_t *n)
{
    const token_trie *t = m->trie;
    *n = 0;
    if (id < 0 || id >= t->n_vocab) return t->bytes;
    *n = t->at[id + 1] - t->at[id];
    return t->bytes + t->at[id];
}

static lath_status step_through(grammar_match *m, int32_t id, uint32_t *state, lath_error *err)
{
    const token_trie *t = m->trie;
    *state = m->state;
    for (uint32_t i = t->at[id]; i < t->at[id + 1] && *state; i++) {
        const uint32_t class = m->run.g->class_of[(uint8_t)t->bytes[i]];
        uint32_t to = grammar_run_known(&m->run, *state, class);
        if (to == GRAMMAR_UNKNOWN) TRY(grammar_run_step(&m->run, *state, class, &to, err));
        *state = to;
    }
    return LATH_OK;
}

static bool is_end(const grammar_match *m, int32_t id)
{
    for (size_t i = 0; i < m->n_end_ids; i++) {
        if (m->end_ids[i] == id) return true;
    }
    return false;
}

static lath_status may_not(int32_t id, lath_error *err)
{
    return err_set(err, LATH_ERR_INPUT, "grammar: token %d may not come here", (int)id);
}

lath_status grammar_match_accept(grammar_match *m, int32_t id, lath_error *err)
{
    uint32_t state = 0;
    if (m->ended) return err_set(err, LATH_ERR_USAGE, "grammar: the text has ended");
    if (is_end(m, id)) {
        if (!m->run.states[m->state].complete) return may_not(id, err);
        m->ended = true;
        return LATH_OK;
    }
    if (id < 0 || id >= m->trie->n_vocab || m->trie->at[id] == m->trie->at[id + 1]) return may_not(id, err);
    lath_status st = step_through(m, id, &state, err);
    if (st != LATH_OK) {
        TRY(forget(m, st, err));
        TRY(step_through(m, id, &state, err));
    }
    if (state == 0) return may_not(id, err);
    m->state = state;
    return LATH_OK;
}

bool grammar_match_complete(const grammar_match *m) { return m->ended || m->run.states[m->state].complete; }

/* The only place is the end. */
bool grammar_match_ended(const grammar_match *m)
{
    const grammar_state *s = &m->run.states[m->state];
    return m->ended || (s->complete && s->n == 1);
}

lath_status grammar_match_reset(grammar_match *m, lath_error *err)
{
    m->ended = false;
    lath_status st = grammar_run_begin(&m->run, &m->state, err);
    if (st != LATH_ERR_LIMIT || !m->run.full) return st;
    m->state = 0;
    TRY(grammar_run_forget(&m->run, &m->state, err));
    m->n_masks = 0;
    return grammar_run_begin(&m->run, &m->state, err);
}

/* -------------------------------------------------------------------------------------------------------------- create */

static lath_status init(grammar_match *m, const grammar *g, const int32_t *end_ids, lath_error *err)
{
    m->none = alloc_array(m->alloc, m->most_masks, sizeof(*m->none));
    m->end_ids = alloc_array(m->alloc, m->n_end_ids + 1, sizeof(*end_ids));
    m->stack = alloc_array(m->alloc, m->trie->depth + 1, sizeof(*m->stack));
    if (!m->none || !m->end_ids || !m->stack)
        return err_nomem(err, (m->n_end_ids + m->trie->depth + 2) * sizeof(*end_ids));
    for (size_t i = 0; i < m->n_end_ids; i++) {
        if (end_ids[i] < 0 || end_ids[i] >= m->n_logits)
            return err_set(err, LATH_ERR_USAGE, "grammar: end token %d, want 0 to %d", (int)end_ids[i],
                           (int)m->n_logits - 1);
        m->end_ids[i] = end_ids[i];
    }
    TRY(grammar_run_init(&m->run, g, m->alloc, err));
    return grammar_match_reset(m, err);
}

lath_status grammar_match_create(const grammar *g, const token_trie *trie, const int32_t *end_ids, size_t n_end_ids,
                                 int32_t n_logits, const lath_allocator *alloc, grammar_match **out, lath_error *err)
{
    *out = NULL;
    if (n_logits < 1) return err_set(err, LATH_ERR_USAGE, "grammar: %d logits", (int)n_logits);
    grammar_match *m = alloc_zero(alloc, sizeof(*m));
    if (!m) return err_nomem(err, sizeof(*m));
    m->alloc = alloc;
    m->trie = trie;
    m->n_end_ids = n_end_ids;
    m->n_logits = n_logits;
    m->n_words = ((size_t)n_logits + 31) / 32;
    m->most_masks = MASK_BYTES_MOST / (m->n_words * sizeof(uint32_t));
    if (m->most_masks < 4) m->most_masks = 4;
    const lath_status st = init(m, g, end_ids, err);
    if (st != LATH_OK) {
        grammar_match_destroy(m);
        return st;
    }
    *out = m;
    return LATH_OK;
}

void grammar_match_destroy(grammar_match *m)
{
    if (!m) return;
    grammar_run_deinit(&m->run);
    alloc_release(m->alloc, m->end_ids, (m->n_end_ids + 1) * sizeof(*m->end_ids));
    alloc_release(m->alloc, m->stack, (m->trie->depth + 1) * sizeof(*m->stack));
    alloc_release(m->alloc, m->masks, m->cap_masks * m->n_words * sizeof(*m->masks));
    alloc_release(m->alloc, m->none, m->most_masks * sizeof(*m->none));
    alloc_release(m->alloc, m, sizeof(*m));
}
