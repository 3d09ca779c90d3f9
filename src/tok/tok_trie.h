/* SPDX-License-Identifier: Apache-2.0
 * tok_trie.h: a byte trie with a value at the end of each key, for finding added tokens in text. Edges are a hash
 * table from (node, byte) to node: built in one pass without sorting. Memory is of the arena; immutable once filled. */
#ifndef LATH_TOK_TRIE_H
#define LATH_TOK_TRIE_H

#include <stdbool.h>

#include "base/arena.h"

typedef struct tok_trie_edge {
    uint64_t key; /* node << 8 | byte, plus 1; 0: empty */
    uint32_t node;
} tok_trie_edge;

typedef struct tok_trie {
    tok_trie_edge *edges; /* [n_edges], a power of two, at most half full; NULL: no keys */
    size_t n_edges;
    int32_t *values; /* [n_nodes]; -1: no key ends here. Node 0 is the root */
    uint32_t n_nodes;
    bool first[256]; /* bytes that begin a key */
    int n_first;
    uint8_t any_first; /* one of them */
} tok_trie;

/* total: the sum of the lengths of the keys to come. */
lath_status tok_trie_init(tok_trie *t, arena *mem, size_t total, lath_error *err);
/* len >= 1, value >= 0. A key that is there keeps its value. */
void tok_trie_add(tok_trie *t, const char *key, size_t len, int32_t value);
/* Where from i on a key may begin; n: nowhere. */
size_t tok_trie_next(const tok_trie *t, const char *s, size_t i, size_t n);
/* The longest key that s[0..n) begins with: its length (0: none) and value. */
size_t tok_trie_longest(const tok_trie *t, const char *s, size_t n, int32_t *value);

#endif
