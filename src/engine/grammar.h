/* SPDX-License-Identifier: Apache-2.0
 *
 * grammar.h: texts of a certain form. A grammar (text or JSON schema) is compiled into a pushdown automaton over bytes; grammar_run follows it while
 * text comes; token_trie holds the vocabulary by the bytes of its tokens; grammar_match puts them together: which tokens may come next.
 *
 *     schema, text -> rules (grammar_expr.h) -> nodes (grammar_compile.c) -> states, made when they are met (grammar_run.c)
 *                                                                        -> masks of tokens (grammar_match.c)
 */
#ifndef LATH_ENGINE_GRAMMAR_H
#define LATH_ENGINE_GRAMMAR_H

#include "base/alloc.h"
#include "engine/grammar_expr.h"
#include "tok/tok.h"

/* ---------------------------------------------------------------------------------------------------------- automaton */

typedef enum grammar_node_kind {
    GRAMMAR_NODE_END,   /* of a rule: goes on where it was called */
    GRAMMAR_NODE_BYTES, /* takes a byte of set a, then b */
    GRAMMAR_NODE_SPLIT, /* a or b */
    GRAMMAR_NODE_CALL,  /* node a, the beginning of a rule, then b */
    GRAMMAR_NODE_LOOP   /* loop a, then b */
} grammar_node_kind;

typedef struct grammar_node {
    uint8_t kind;
    uint32_t a, b;
    uint32_t need; /* levels of calls, below the one that it is in, without which no text ends from here */
} grammar_node;

typedef struct grammar_loop {
    uint32_t begin, min, max, need; /* first node of what is repeated; max GRAMMAR_UNBOUNDED: counted up to min only */
} grammar_loop;

enum { GRAMMAR_DEPTH_MOST = 8192 /* levels of calls; what would need more is not begun */ };

/* Immutable, shared between threads. */
typedef struct grammar {
    arena mem;
    grammar_node *nodes; /* [n_nodes]; node 0 is the END of everything */
    size_t n_nodes;
    grammar_loop *loops;
    size_t n_loops;
    uint64_t (*sets)[4]; /* [n_sets] */
    size_t n_sets;
    uint32_t begin;
    uint8_t class_of[256]; /* bytes that no set tells apart are of one class */
    uint8_t byte_of[256];  /* [n_classes] one of them */
    uint32_t n_classes;
} grammar;

/* LATH_ERR_INPUT: malformed, or such that no text can ever fit; LATH_ERR_UNSUPPORTED: a keyword or construct that cannot be enforced, named with its
 * place; LATH_ERR_LIMIT. name leads messages. */
lath_status grammar_open_text(const lath_allocator *alloc, const char *name, const char *text, size_t n, grammar **out,
                              lath_error *err);
lath_status grammar_open_schema(const lath_allocator *alloc, const char *name, const char *json, size_t n,
                                grammar **out, lath_error *err);
void grammar_close(grammar *g); /* NULL is allowed */
/* From rules; what the builder holds is of no use afterwards. */
lath_status grammar_compile(grammar_builder *b, grammar *g, lath_error *err);

static inline bool grammar_set_has(const uint64_t set[4], uint8_t byte) { return set[byte / 64] >> (byte % 64) & 1; }

/* ---------------------------------------------------------------------------------------------------------------- run */

/* A level of calls: where it goes on when what was called ends. For a loop node: `count` rounds are done. */
typedef struct grammar_cell {
    uint32_t node, count, parent, depth;
} grammar_cell;

/* Everything that a text so far may be: places (node << 32 | cell) in rising order. State 0 has none: the text is wrong. */
typedef struct grammar_state {
    uint32_t first, n; /* in places */
    int32_t mask;      /* the user's; -1 when new */
    bool complete;     /* the text may end */
} grammar_state;

typedef struct grammar_table {
    uint32_t *slots; /* [n_slots] index + 1, 0: empty */
    size_t n_slots, n;
} grammar_table;

typedef struct grammar_run {
    const grammar *g;
    const lath_allocator *alloc;
    grammar_cell *cells;
    grammar_state *states;
    uint64_t *places;
    uint32_t *next; /* [n_states][n_classes]; GRAMMAR_UNKNOWN: not looked at yet */
    size_t n_cells, cap_cells, n_states, cap_states, n_places, cap_places, cap_next;
    grammar_table cell_table, state_table;
    uint64_t *seen; /* of the closure at work: a hash set that is emptied by raising seen_round */
    uint32_t *seen_mark, seen_round;
    size_t n_seen_slots, n_seen;
    uint64_t *work; /* its stack */
    size_t n_work, cap_work;
    uint64_t *found; /* and the places that it came to */
    size_t n_found, cap_found;
    bool full; /* a table is: grammar_run_forget helps */
    lath_status status;
    lath_error *err; /* of the call */
} grammar_run;

#define GRAMMAR_UNKNOWN UINT32_MAX
enum {
    GRAMMAR_STATES_MOST = 1 << 15,
    GRAMMAR_CELLS_MOST = 1 << 20,
    GRAMMAR_PLACES_MOST = 1 << 21,
    GRAMMAR_WAYS_MOST = 1 << 12 /* places of a state */
};

/* States and cells are made when they are met, and kept until a table is full. The grammar must outlive it. Deinit also
 * after a failure. */
lath_status grammar_run_init(grammar_run *r, const grammar *g, const lath_allocator *alloc, lath_error *err);
void grammar_run_deinit(grammar_run *r); /* of a zeroed one, too */
/* The state at the beginning of texts. */
lath_status grammar_run_begin(grammar_run *r, uint32_t *state, lath_error *err);
/* The state behind a byte of this class; 0: no text goes on so. LATH_ERR_LIMIT with r->full: too many states are kept. */
lath_status grammar_run_step(grammar_run *r, uint32_t state, uint32_t class, uint32_t *out, lath_error *err);
/* Forgets all states but this one, which gets a new number. */
lath_status grammar_run_forget(grammar_run *r, uint32_t *state, lath_error *err);

static inline uint32_t grammar_run_known(const grammar_run *r, uint32_t state, uint32_t class)
{
    return r->next[(size_t)state * r->g->n_classes + class];
}

/* --------------------------------------------------------------------------------------------------------------- trie */

/* The bytes of all tokens, in the order in which a walk meets them: a node stands before what goes on from it. */
typedef struct token_trie_node {
    uint32_t skip;   /* the next node that does not go on from here */
    uint32_t tokens; /* of the node: ids[tokens .. tokens of the next node) */
    uint16_t depth;  /* 1 for a first byte */
    uint8_t byte;
} token_trie_node;

typedef struct token_trie token_trie;
struct token_trie {
    const lath_allocator *alloc;
    token_trie_node *nodes; /* [n_nodes + 1] */
    size_t n_nodes, depth;
    int32_t *ids; /* [n_ids] tokens that stand for bytes, sorted by them; special tokens are not there */
    size_t n_ids;
    uint32_t *at; /* [n_vocab + 1] bytes of a token in `bytes` */
    char *bytes;
    size_t n_bytes;
    int32_t n_vocab;
};

/* LATH_ERR_UNSUPPORTED: what a token stands for depends on its neighbours. Immutable, shared between threads. */
lath_status token_trie_create(const tok *t, const lath_allocator *alloc, token_trie **out, lath_error *err);
/* The same of n texts by id; NULL: no token. */
lath_status token_trie_create_of(const tok_string *tokens, int32_t n, const lath_allocator *alloc, token_trie **out,
                                 lath_error *err);
void token_trie_destroy(token_trie *t); /* NULL is allowed */

/* -------------------------------------------------------------------------------------------------------------- match */

typedef struct grammar_match grammar_match;

/* end_ids: the tokens that end a text. n_logits: ids of masks; tokens beyond them never come. Grammar and trie must outlive it. */
lath_status grammar_match_create(const grammar *g, const token_trie *trie, const int32_t *end_ids, size_t n_end_ids,
                                 int32_t n_logits, const lath_allocator *alloc, grammar_match **out, lath_error *err);
void grammar_match_destroy(grammar_match *m); /* NULL is allowed */
/* The tokens that may come next: bit id % 32 of word id / 32; valid until the next call. LATH_ERR_INPUT: none can, and the text is
 * not complete: the vocabulary has no token for what must come. When the text is complete and nothing may follow, not
 * even an end token, *mask is all 0: generation is over. */
lath_status grammar_match_mask(grammar_match *m, const uint32_t **mask, lath_error *err);
/* It is there already. */
bool grammar_match_has_mask(const grammar_match *m);
/* What a token stands for: n bytes, 0 of a special one. */
const char *grammar_match_bytes(const grammar_match *m, int32_t id, size_t *n);
/* LATH_ERR_INPUT: the token may not come; nothing has changed. */
lath_status grammar_match_accept(grammar_match *m, int32_t id, lath_error *err);
/* The text so far fits. */
bool grammar_match_complete(const grammar_match *m);
/* An end token came, or nothing may follow. */
bool grammar_match_ended(const grammar_match *m);
lath_status grammar_match_reset(grammar_match *m, lath_error *err);

#endif
