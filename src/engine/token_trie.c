/* SPDX-License-Identifier: Apache-2.0
 *
 * token_trie.c: the vocabulary sorted by bytes (three-way radix quicksort, Bentley & Sedgewick 1997), and as a tree in the order of a walk:
 *
 *     tokens  a  ab  abc  b        nodes  a(skip 3)  b(skip 3)  c(skip 3)  b(skip 4)
 *
 * Tokens of the same bytes are at one node. Tokens without bytes, and longer than any text needs, are left out.
 */
#include <string.h>

#include "engine/grammar.h"

enum { DEPTH_MOST = 1024 };

static int byte_at(const token_trie *t, int32_t id, size_t depth)
{
    const uint32_t at = t->at[id];
    return at + depth < t->at[id + 1] ? (uint8_t)t->bytes[at + depth] : -1;
}

static void swap(int32_t *a, int32_t *b)
{
    const int32_t x = *a;
    *a = *b;
    *b = x;
}

/* ids have their first `depth` bytes in common. The largest part is sorted in place of the whole, so that calls nest no deeper than log2 n. */
static void sort(const token_trie *t, int32_t *ids, size_t n, size_t depth)
{
    while (n > 1) {
        const int pivot = byte_at(t, ids[n / 2], depth);
        size_t low = 0, at = 0, high = n;
        while (at < high) {
            const int byte = byte_at(t, ids[at], depth);
            if (byte < pivot) {
                swap(&ids[low++], &ids[at++]);
            } else if (byte > pivot) {
                swap(&ids[at], &ids[--high]);
            } else {
                at++;
            }
        }
        /* Below the pivot, like it (those that end here are all the same), above it. */
        const size_t n_same = pivot < 0 ? 0 : high - low, n_above = n - high;
        if (n_same >= low && n_same >= n_above) {
            sort(t, ids, low, depth);
            sort(t, ids + high, n_above, depth);
            ids += low;
            n = n_same;
            depth++;
        } else {
            const bool above = n_above > low;
            sort(t, ids + low, n_same, depth + 1);
            sort(t, above ? ids : ids + high, above ? low : n_above, depth);
            ids = above ? ids + high : ids;
            n = above ? n_above : low;
        }
    }
}

static size_t length(const token_trie *t, int32_t id) { return t->at[id + 1] - t->at[id]; }

static size_t common(const token_trie *t, int32_t a, int32_t b)
{
    const size_t n = length(t, a) < length(t, b) ? length(t, a) : length(t, b);
    size_t i = 0;
    while (i < n && t->bytes[t->at[a] + i] == t->bytes[t->at[b] + i]) i++;
    return i;
}

/* Node by node; open[d] is the node of depth d that is not over. */
static void fill_nodes(token_trie *t)
{
    uint32_t open[DEPTH_MOST + 1];
    size_t n = 0, depth = 0;
    for (size_t i = 0; i < t->n_ids; i++) {
        const int32_t id = t->ids[i];
        const size_t shared = i ? common(t, t->ids[i - 1], id) : 0, len = length(t, id);
        for (; depth > shared; depth--) t->nodes[open[depth]].skip = (uint32_t)n;
        while (depth < len) {
            t->nodes[n] = (token_trie_node){
                .tokens = (uint32_t)i, .depth = (uint16_t)(depth + 1), .byte = (uint8_t)t->bytes[t->at[id] + depth]};
            open[++depth] = (uint32_t)n++;
        }
        if (len > t->depth) t->depth = len;
    }
    for (; depth > 0; depth--) t->nodes[open[depth]].skip = (uint32_t)n;
    t->nodes[n] = (token_trie_node){.skip = (uint32_t)n, .tokens = (uint32_t)t->n_ids};
}

static size_t count_nodes(const token_trie *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n_ids; i++) n += length(t, t->ids[i]) - (i ? common(t, t->ids[i - 1], t->ids[i]) : 0);
    return n;
}

/* at, bytes and ids are there. */
static lath_status build(token_trie *t, lath_error *err)
{
    sort(t, t->ids, t->n_ids, 0);
    t->n_nodes = count_nodes(t);
    t->nodes = alloc_array(t->alloc, t->n_nodes + 1, sizeof(*t->nodes));
    if (!t->nodes) return err_nomem(err, (t->n_nodes + 1) * sizeof(*t->nodes));
    fill_nodes(t);
    return LATH_OK;
}

static lath_status make(token_trie *t, const char *bytes, size_t n_bytes, lath_error *err)
{
    const size_t n = (size_t)t->n_vocab;
    t->n_bytes = n_bytes;
    t->bytes = alloc_bytes(t->alloc, n_bytes ? n_bytes : 1, 1);
    t->ids = alloc_array(t->alloc, n ? n : 1, sizeof(*t->ids));
    if (!t->bytes || !t->ids) return err_nomem(err, n_bytes + n * sizeof(*t->ids));
    if (n_bytes) memcpy(t->bytes, bytes, n_bytes);
    return LATH_OK;
}

static lath_status start(int32_t n, const lath_allocator *alloc, token_trie **out, lath_error *err)
{
    token_trie *t = alloc_zero(alloc, sizeof(*t));
    *out = NULL;
    if (!t) return err_nomem(err, sizeof(*t));
    t->alloc = alloc;
    t->n_vocab = n;
    t->at = alloc_array(alloc, (size_t)n + 1, sizeof(*t->at));
    if (!t->at) {
        token_trie_destroy(t);
        return err_nomem(err, ((size_t)n + 1) * sizeof(*t->at));
    }
    *out = t;
    return LATH_OK;
}

static lath_status finish(token_trie *t, lath_status st, token_trie **out, lath_error *err)
{
    if (st == LATH_OK) st = build(t, err);
    if (st != LATH_OK) token_trie_destroy(t);
    *out = st == LATH_OK ? t : NULL;
    return st;
}

static void add_id(token_trie *t, int32_t id)
{
    if (length(t, id) > 0 && length(t, id) <= DEPTH_MOST) t->ids[t->n_ids++] = id;
}

lath_status token_trie_create(const tok *tokenizer, const lath_allocator *alloc, token_trie **out, lath_error *err)
{
    tok_bytes x;
    token_trie *t;
    *out = NULL;
    TRY(tok_get_bytes(tokenizer, &x, err));
    TRY(start((int32_t)x.n, alloc, &t, err));
    memcpy(t->at, x.at, (x.n + 1) * sizeof(*x.at));
    const lath_status st = make(t, x.bytes, x.at[x.n], err);
    for (size_t id = 0; st == LATH_OK && id < x.n; id++) {
        if (x.plain[id]) add_id(t, (int32_t)id);
    }
    return finish(t, st, out, err);
}

lath_status token_trie_create_of(const tok_string *tokens, int32_t n, const lath_allocator *alloc, token_trie **out,
                                 lath_error *err)
{
    token_trie *t;
    buf bytes;
    *out = NULL;
    TRY(start(n, alloc, &t, err));
    buf_init(&bytes, alloc, UINT32_MAX);
    for (int32_t id = 0; id < n; id++) {
        buf_append(&bytes, tokens[id].s, tokens[id].s ? tokens[id].n : 0);
        t->at[id + 1] = (uint32_t)bytes.len;
    }
    lath_status st = buf_status(&bytes, err);
    if (st == LATH_OK) st = make(t, bytes.data, bytes.len, err);
    buf_deinit(&bytes);
    for (int32_t id = 0; st == LATH_OK && id < n; id++) add_id(t, id);
    return finish(t, st, out, err);
}

void token_trie_destroy(token_trie *t)
{
    if (!t) return;
    const lath_allocator *alloc = t->alloc;
    alloc_release(alloc, t->nodes, (t->n_nodes + 1) * sizeof(*t->nodes));
    alloc_release(alloc, t->ids, ((size_t)t->n_vocab ? (size_t)t->n_vocab : 1) * sizeof(*t->ids));
    alloc_release(alloc, t->at, ((size_t)t->n_vocab + 1) * sizeof(*t->at));
    alloc_release(alloc, t->bytes, t->n_bytes ? t->n_bytes : 1);
    alloc_release(alloc, t, sizeof(*t));
}
