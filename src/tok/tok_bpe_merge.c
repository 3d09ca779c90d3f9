/* SPDX-License-Identifier: Apache-2.0
 * tok_bpe_merge.c: merging the symbols of a word. Short words keep the ranks of all pairs in an array that is scanned
 * for the least; long ones keep candidates in a heap and symbols in a list, n log n in all. Both take the leftmost of
 * equal ranks, as the reference does.
 */
#include "base/checked.h"
#include "tok/tok_bpe.h"

static size_t least(const uint32_t *rank, size_t n)
{
    size_t at = 0;
    uint32_t best = rank[0];
    for (size_t i = 1; i < n; i++) {
        if (rank[i] < best) {
            best = rank[i];
            at = i;
        }
    }
    return at;
}

size_t tok_bpe_merge_short(const tok_merges *m, const char *bytes, int32_t *sym, uint32_t *len, size_t n)
{
    uint32_t rank[TOK_BPE_SHORT]; /* of the pair (i, i + 1) */
    if (bytes) {
        for (size_t i = 0; i + 1 < n; i++) rank[i] = m->first[(uint8_t)bytes[i] << 8 | (uint8_t)bytes[i + 1]];
    } else {
        for (size_t i = 0; i + 1 < n; i++) rank[i] = tok_merge_rank(m, sym[i], sym[i + 1]);
    }
    while (n > 1) {
        size_t i = least(rank, n - 1);
        if (rank[i] == TOK_NO_RANK) break;
        sym[i] = m->products[rank[i]];
        len[i] += len[i + 1];
        n--;
        if (i > 0) tok_merge_prefetch(m, sym[i - 1], sym[i]);
        if (i + 1 < n) tok_merge_prefetch(m, sym[i], sym[i + 2]);
        for (size_t k = i + 1; k < n; k++) {
            sym[k] = sym[k + 1];
            len[k] = len[k + 1];
            rank[k - 1] = rank[k];
        }
        if (i > 0) rank[i - 1] = tok_merge_rank(m, sym[i - 1], sym[i]);
        if (i + 1 < n) rank[i] = tok_merge_rank(m, sym[i], sym[i + 1]);
    }
    return n;
}

/* --------------------------------------------------------------------------------------------------------- long words */

/* A binary heap of rank << 32 | position. */
typedef struct heap {
    uint64_t *v;
    size_t n;
} heap;

static void sift_down(heap *h, size_t i)
{
    uint64_t x = h->v[i];
    for (;;) {
        size_t k = 2 * i + 1;
        if (k >= h->n) break;
        if (k + 1 < h->n && h->v[k + 1] < h->v[k]) k++;
        if (h->v[k] >= x) break;
        h->v[i] = h->v[k];
        i = k;
    }
    h->v[i] = x;
}

static void push(heap *h, uint64_t x)
{
    size_t i = h->n++;
    for (; i > 0 && h->v[(i - 1) / 2] > x; i = (i - 1) / 2) h->v[i] = h->v[(i - 1) / 2];
    h->v[i] = x;
}

static uint64_t pop(heap *h)
{
    uint64_t x = h->v[0];
    h->v[0] = h->v[--h->n];
    if (h->n) sift_down(h, 0);
    return x;
}

typedef struct word {
    const tok_merges *m;
    int32_t *sym;
    uint32_t *len, *rank, *next, *prev; /* rank: of the pair that begins here; TOK_NO_RANK: none, or merged away */
    heap h;
} word;

/* The pair (i, next of i) is new. */
static void rate(word *w, uint32_t i, size_t n)
{
    uint32_t right = w->next[i];
    w->rank[i] = right < n ? tok_merge_rank(w->m, w->sym[i], w->sym[right]) : TOK_NO_RANK;
    if (w->rank[i] != TOK_NO_RANK) push(&w->h, (uint64_t)w->rank[i] << 32 | i);
}

static void merge_all(word *w, size_t n)
{
    while (w->h.n) {
        uint64_t top = pop(&w->h);
        uint32_t i = (uint32_t)top, rank = (uint32_t)(top >> 32);
        if (w->rank[i] != rank) continue; /* what stood there is gone */
        uint32_t right = w->next[i], after = w->next[right];
        w->sym[i] = w->m->products[rank];
        w->len[i] += w->len[right];
        w->rank[right] = TOK_NO_RANK;
        w->sym[right] = -1;
        w->next[i] = after;
        if (after < n) w->prev[after] = i;
        rate(w, i, n);
        if (w->prev[i] < n) rate(w, w->prev[i], n);
    }
}

static lath_status reserve(tok_merge_space *x, arena *scratch, size_t n, lath_error *err)
{
    size_t cap, bytes, heap_bytes;
    if (n <= x->cap) return LATH_OK;
    if (!size_mul(n, 2, &cap) || !size_mul(cap, 3 * sizeof(*x->v), &bytes) ||
        !size_mul(cap, 2 * sizeof(*x->heap), &heap_bytes))
        return err_nomem(err, SIZE_MAX);
    x->v = arena_bytes(scratch, bytes, 16);
    x->heap = arena_bytes(scratch, heap_bytes, 16);
    x->cap = x->v && x->heap ? cap : 0;
    return x->cap ? LATH_OK : err_nomem(err, bytes + heap_bytes);
}

lath_status tok_bpe_merge_long(const tok_merges *m, tok_merge_space *space, arena *scratch, int32_t *sym, uint32_t *len,
                               size_t *n_symbols, lath_error *err)
{
    size_t n = *n_symbols, k = 0;
    TRY(reserve(space, scratch, n, err));
    word w = {.m = m, .sym = sym, .len = len, .rank = space->v, .h = {space->heap, 0}};
    w.next = w.rank + n;
    w.prev = w.next + n;
    for (uint32_t i = 0; i < n; i++) {
        w.next[i] = i + 1;
        w.prev[i] = i ? i - 1 : UINT32_MAX;
        w.rank[i] = i + 1 < n ? tok_merge_rank(m, sym[i], sym[i + 1]) : TOK_NO_RANK;
        if (w.rank[i] != TOK_NO_RANK) w.h.v[w.h.n++] = (uint64_t)w.rank[i] << 32 | i;
    }
    for (size_t i = w.h.n / 2; i-- > 0;) sift_down(&w.h, i);
    merge_all(&w, n);
    for (size_t i = 0; i < n; i++) {
        if (sym[i] < 0) continue;
        sym[k] = sym[i];
        len[k++] = len[i];
    }
    *n_symbols = k;
    return LATH_OK;
}
