/* SPDX-License-Identifier: Apache-2.0
 * tok_trie.c: see tok_trie.h. */
#include "tok/tok_trie.h"

#include <string.h>

lath_status tok_trie_init(tok_trie *t, arena *mem, size_t total, lath_error *err)
{
    *t = (tok_trie){0};
    if (total == 0) return LATH_OK;
    if (total >= UINT32_MAX / 4) return err_set(err, LATH_ERR_LIMIT, "added tokens of %zu bytes", total);
    t->n_edges = 16;
    while (t->n_edges < 2 * total) t->n_edges *= 2;
    t->edges = arena_array(mem, t->n_edges, sizeof(*t->edges));
    t->values = arena_array(mem, total + 1, sizeof(*t->values));
    if (!t->edges || !t->values) return err_nomem(err, t->n_edges * sizeof(*t->edges));
    t->values[0] = -1;
    t->n_nodes = 1;
    return LATH_OK;
}

/* The edge of key, or the empty place where it belongs. */
static tok_trie_edge *find_edge(const tok_trie *t, uint32_t node, uint8_t byte)
{
    uint64_t key = ((uint64_t)node << 8 | byte) + 1;
    size_t i = (size_t)(key * 0x9E3779B97F4A7C15u >> 32) & (t->n_edges - 1);
    while (t->edges[i].key != 0 && t->edges[i].key != key) i = (i + 1) & (t->n_edges - 1);
    return &t->edges[i];
}

void tok_trie_add(tok_trie *t, const char *key, size_t len, int32_t value)
{
    uint32_t node = 0;
    for (size_t i = 0; i < len; i++) {
        tok_trie_edge *e = find_edge(t, node, (uint8_t)key[i]);
        if (e->key == 0) {
            e->key = ((uint64_t)node << 8 | (uint8_t)key[i]) + 1;
            e->node = t->n_nodes;
            t->values[t->n_nodes++] = -1;
        }
        node = e->node;
    }
    if (t->values[node] < 0) t->values[node] = value;
    t->any_first = (uint8_t)key[0];
    t->n_first += !t->first[t->any_first];
    t->first[t->any_first] = true;
}

size_t tok_trie_next(const tok_trie *t, const char *s, size_t i, size_t n)
{
    if (t->n_first == 0 || i == n) return n;
    if (t->n_first == 1) {
        const char *p = memchr(s + i, t->any_first, n - i);
        return p ? (size_t)(p - s) : n;
    }
    while (i < n && !t->first[(uint8_t)s[i]]) i++;
    return i;
}

size_t tok_trie_longest(const tok_trie *t, const char *s, size_t n, int32_t *value)
{
    uint32_t node = 0;
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        const tok_trie_edge *e = find_edge(t, node, (uint8_t)s[i]);
        if (e->key == 0) break;
        node = e->node;
        if (t->values[node] >= 0) {
            found = i + 1;
            *value = t->values[node];
        }
    }
    return found;
}
