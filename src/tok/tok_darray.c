/* SPDX-License-Identifier: Apache-2.0
 * tok_darray.c: building the double array (tok_darray.h). Keys are sorted by eight bytes at a time; nodes are then
 * placed from the root down, depth first. Free units of the newest blocks are in a ring; a node with one child (most
 * of them) takes the first free unit, one with several looks at a bounded number of them and else opens a block, so
 * that building is linear.
 */
#include "tok/tok_darray.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 256, OPEN_BLOCKS = 32, TRIES = 24, FREE = 0xFF, RADIX_LEAST = 512, INSERTION_MOST = 16 };
enum { UNITS_MOST = 1 << 24 }; /* base has 24 bits */

/* ---------------------------------------------------------------------------------------------------------- sorting */

/* Eight bytes of the key from `at` on, first byte highest, zeros behind its end. */
static uint64_t word_at(const tok_darray_key *k, size_t at)
{
    uint8_t b[8] = {0};
    if (k->len > at) memcpy(b, k->s + at, k->len - at < 8 ? k->len - at : 8);
    uint64_t v = 0;
    for (int i = 0; i < 8; i++) v = v << 8 | b[i];
    return v;
}

static int compare_from(const tok_darray_key *a, const tok_darray_key *b, size_t at)
{
    size_t n = a->len < b->len ? a->len : b->len;
    int c = n > at ? memcmp(a->s + at, b->s + at, n - at) : 0;
    if (c != 0) return c;
    if (a->len != b->len) return a->len < b->len ? -1 : 1;
    return a->value < b->value ? -1 : a->value > b->value;
}

typedef struct item {
    uint64_t word;
    uint32_t index;
} item;

typedef struct range {
    size_t lo, hi, at;
} range;

typedef struct sorter {
    const tok_darray_key *keys;
    item *v, *spare; /* [n] */
    range *todo;     /* ranges are of two keys at least, and do not overlap */
    size_t n_todo;
} sorter;

static void insertion_sort(const sorter *s, size_t lo, size_t hi, size_t at)
{
    for (size_t i = lo + 1; i < hi; i++) {
        item x = s->v[i];
        size_t k = i;
        for (; k > lo; k--) {
            const item *p = &s->v[k - 1];
            if (p->word < x.word) break;
            if (p->word == x.word && compare_from(&s->keys[p->index], &s->keys[x.index], at) <= 0) break;
            s->v[k] = *p;
        }
        s->v[k] = x;
    }
}

/* Least significant byte first; bytes that all have in common cost a count only. */
static void radix_sort(sorter *s, size_t lo, size_t hi)
{
    size_t count[8][256] = {{0}}, n = hi - lo;
    for (size_t i = lo; i < hi; i++) {
        for (int b = 0; b < 8; b++) count[b][s->v[i].word >> 8 * b & 0xFF]++;
    }
    item *from = s->v + lo, *to = s->spare + lo;
    for (int b = 0; b < 8; b++) {
        size_t *c = count[b], sum = 0;
        if (c[from[0].word >> 8 * b & 0xFF] == n) continue;
        for (int k = 0; k < 256; k++) {
            size_t next = sum + c[k];
            c[k] = sum;
            sum = next;
        }
        for (size_t i = 0; i < n; i++) to[c[from[i].word >> 8 * b & 0xFF]++] = from[i];
        item *t = from;
        from = to;
        to = t;
    }
    if (from != s->v + lo) memcpy(s->v + lo, from, n * sizeof(*from));
}

static void sift(item *v, size_t i, size_t n)
{
    item x = v[i];
    for (size_t k; (k = 2 * i + 1) < n; i = k) {
        if (k + 1 < n && v[k].word < v[k + 1].word) k++;
        if (x.word >= v[k].word) break;
        v[i] = v[k];
    }
    v[i] = x;
}

static void heap_sort(item *v, size_t n)
{
    for (size_t i = n / 2; i-- > 0;) sift(v, i, n);
    for (size_t i = n; i-- > 1;) {
        item t = v[0];
        v[0] = v[i];
        v[i] = t;
        sift(v, 0, i);
    }
}

/* Keys with one word go on with the next eight bytes, those that end in it being in order already by length. */
static void push_equal(sorter *s, size_t lo, size_t hi, size_t at)
{
    for (size_t i = lo; i < hi;) {
        size_t k = i + 1;
        while (k < hi && s->v[k].word == s->v[i].word) k++;
        if (k - i > 1) s->todo[s->n_todo++] = (range){i, k, at + 8};
        i = k;
    }
}

/* Keys of a range that are no longer than `at` go first, by length and value; the rest get their next word. */
static size_t settle_ended(sorter *s, range r)
{
    size_t done = r.lo;
    for (size_t i = r.lo; i < r.hi; i++) {
        item x = s->v[i];
        if (s->keys[x.index].len > r.at) {
            s->v[i].word = word_at(&s->keys[x.index], r.at);
            continue;
        }
        s->v[i] = s->v[done];
        x.word = (uint64_t)s->keys[x.index].len << 32 | (uint32_t)s->keys[x.index].value;
        s->v[done++] = x;
    }
    if (done - r.lo > 1) heap_sort(s->v + r.lo, done - r.lo);
    return done;
}

static void sort_range(sorter *s, range r)
{
    size_t lo = settle_ended(s, r);
    if (r.hi - lo <= INSERTION_MOST) {
        insertion_sort(s, lo, r.hi, r.at);
        return;
    }
    if (r.hi - lo >= RADIX_LEAST)
        radix_sort(s, lo, r.hi);
    else
        heap_sort(s->v + lo, r.hi - lo);
    push_equal(s, lo, r.hi, r.at);
}

/* The keys in order, their strings one behind the other in text: placing reads them in that order. */
static void gather(const sorter *s, size_t n, tok_darray_key *sorted, char *text)
{
    for (size_t i = 0; i < n; i++) {
        sorted[i] = s->keys[s->v[i].index];
        if (sorted[i].len) memcpy(text, sorted[i].s, sorted[i].len);
        sorted[i].s = text;
        text += sorted[i].len;
    }
}

/* text: room for the strings of all keys. */
static lath_status sort_keys(const lath_allocator *a, tok_darray_key *keys, size_t n, char *text, lath_error *err)
{
    lath_status st = LATH_OK;
    sorter s = {.keys = keys};
    tok_darray_key *sorted = alloc_bytes(a, n * sizeof(*sorted), 16); /* n is below UNITS_MOST */
    s.v = alloc_bytes(a, n * sizeof(*s.v), 16);
    s.spare = alloc_bytes(a, n * sizeof(*s.spare), 16);
    s.todo = alloc_bytes(a, n * sizeof(*s.todo), 16);
    if (!sorted || !s.v || !s.spare || !s.todo) {
        st = err_nomem(err, n * (sizeof(*sorted) + 2 * sizeof(item) + sizeof(range)));
        goto done;
    }
    for (size_t i = 0; i < n; i++) s.v[i].index = (uint32_t)i;
    s.todo[s.n_todo++] = (range){0, n, 0};
    while (s.n_todo) sort_range(&s, s.todo[--s.n_todo]);
    gather(&s, n, sorted, text);
    memcpy(keys, sorted, n * sizeof(*keys));
done:
    alloc_release(a, sorted, n * sizeof(*sorted));
    alloc_release(a, s.v, n * sizeof(*s.v));
    alloc_release(a, s.spare, n * sizeof(*s.spare));
    alloc_release(a, s.todo, n * sizeof(*s.todo));
    return st;
}

/* ---------------------------------------------------------------------------------------------------------- placing */

typedef struct ring {
    uint32_t next, prev;
} ring;

typedef struct task {
    uint32_t node;
    uint32_t lo, hi, depth; /* keys of the node, equal up to depth */
} task;

typedef struct builder {
    tok_darray *d;
    ring *ring; /* [cap_ring] of free units */
    size_t cap_ring;
    uint64_t *base_used; /* [cap_used], a bit a unit */
    size_t cap_used;
    uint32_t head; /* a free unit, or NONE */
    task *stack;
    size_t n_stack, cap_stack;
    lath_error *err;
} builder;

#define NONE UINT32_MAX

static bool resize(const lath_allocator *a, void **p, size_t *cap, size_t want, size_t size)
{
    void *q = alloc_resize(a, *p, *cap * size, want * size, 16);
    if (!q) return false;
    *p = q;
    *cap = want;
    return true;
}

static bool grow(builder *b, size_t want)
{
    tok_darray *d = b->d;
    void *units = d->units, *values = d->values, *r = b->ring, *used = b->base_used;
    size_t old = b->cap_used;
    bool ok = resize(d->alloc, &units, &d->cap_units, want, sizeof(*d->units)) &&
              resize(d->alloc, &values, &d->cap_values, want, sizeof(*d->values)) &&
              resize(d->alloc, &r, &b->cap_ring, want, sizeof(*b->ring)) &&
              resize(d->alloc, &used, &b->cap_used, want / 64, sizeof(*b->base_used));
    d->units = units;
    d->values = values;
    b->ring = r;
    b->base_used = used;
    if (ok) memset(b->base_used + old, 0, (b->cap_used - old) * sizeof(*b->base_used));
    return ok;
}

static void unlink_unit(builder *b, uint32_t i)
{
    ring *r = b->ring;
    if (r[i].next == i) {
        b->head = NONE;
        return;
    }
    r[r[i].prev].next = r[i].next;
    r[r[i].next].prev = r[i].prev;
    if (b->head == i) b->head = r[i].next;
}

static void link_last(builder *b, uint32_t i)
{
    ring *r = b->ring;
    if (b->head == NONE) {
        b->head = r[i].next = r[i].prev = i;
        return;
    }
    r[i] = (ring){b->head, r[b->head].prev};
    r[r[i].prev].next = i;
    r[b->head].prev = i;
}

/* What is free in a block that is closed stays empty. */
static lath_status open_block(builder *b)
{
    tok_darray *d = b->d;
    if (d->n_units + BLOCK > UNITS_MOST)
        return err_set(b->err, LATH_ERR_LIMIT, "a vocabulary whose trie has over %d nodes", UNITS_MOST);
    size_t want = d->cap_units ? d->cap_units * 2 : 16 * BLOCK;
    if (d->n_units + BLOCK > d->cap_units && !grow(b, want)) return err_nomem(b->err, want * sizeof(*d->units));
    uint32_t first = (uint32_t)d->n_units;
    d->n_units += BLOCK;
    for (uint32_t i = first; i < first + BLOCK; i++) {
        d->units[i] = (tok_darray_unit){FREE, NAN};
        d->values[i] = -1;
        link_last(b, i);
    }
    if (first >= OPEN_BLOCKS * BLOCK) {
        uint32_t old = first - OPEN_BLOCKS * BLOCK;
        for (uint32_t i = old; i < old + BLOCK; i++) {
            if (d->units[i].link == FREE) unlink_unit(b, i);
        }
    }
    return LATH_OK;
}

static bool fits(const builder *b, uint32_t base, const uint8_t *labels, size_t n)
{
    if (b->base_used[base >> 6] >> (base & 63) & 1) return false;
    for (size_t i = 0; i < n; i++) {
        if (b->d->units[base ^ labels[i]].link != FREE) return false;
    }
    return true;
}

static lath_status find_base(builder *b, const uint8_t *labels, size_t n, uint32_t *out)
{
    uint32_t at = b->head;
    for (int i = 0; at != NONE && i < TRIES; i++) {
        uint32_t base = at ^ labels[0];
        if (fits(b, base, labels, n)) {
            *out = base;
            return LATH_OK;
        }
        at = b->ring[at].next;
        if (at == b->head) break;
    }
    TRY(open_block(b));
    *out = (uint32_t)b->d->n_units - BLOCK;
    return LATH_OK;
}

static lath_status push(builder *b, task t)
{
    if (b->n_stack == b->cap_stack) {
        size_t cap = b->cap_stack ? b->cap_stack * 2 : 1024;
        task *v = alloc_resize(b->d->alloc, b->stack, b->cap_stack * sizeof(*v), cap * sizeof(*v), 16);
        if (!v) return err_nomem(b->err, cap * sizeof(*v));
        b->stack = v;
        b->cap_stack = cap;
    }
    b->stack[b->n_stack++] = t;
    return LATH_OK;
}

/* Where keys with the byte that keys[i] has at depth end, by steps that double and then halve. */
static uint32_t end_of_label(const tok_darray_key *keys, uint32_t i, uint32_t hi, uint32_t depth)
{
    char c = keys[i].s[depth];
    uint32_t step = 1, lo = i; /* keys[lo] has the byte */
    while (step < hi - lo && keys[lo + step].s[depth] == c) {
        lo += step;
        step *= 2;
    }
    uint32_t end = step < hi - lo ? lo + step : hi; /* keys[end] has another, or is not there */
    while (end - lo > 1) {
        uint32_t mid = lo + (end - lo) / 2;
        if (keys[mid].s[depth] == c)
            lo = mid;
        else
            end = mid;
    }
    return end;
}

/* Gives the node its value and places its children. */
static lath_status place(builder *b, const tok_darray_key *keys, task t)
{
    tok_darray *d = b->d;
    while (t.lo < t.hi && keys[t.lo].len == t.depth) { /* of equal keys the last */
        if (t.depth) {
            d->values[t.node] = keys[t.lo].value;
            d->units[t.node].score = keys[t.lo].score;
        }
        t.lo++;
    }
    if (t.lo == t.hi) return LATH_OK;
    uint8_t labels[256];
    uint32_t from[257];
    size_t n = 0;
    for (uint32_t i = t.lo; i < t.hi; i = end_of_label(keys, i, t.hi, t.depth)) {
        labels[n] = (uint8_t)keys[i].s[t.depth];
        from[n++] = i;
    }
    from[n] = t.hi;
    uint32_t base;
    TRY(find_base(b, labels, n, &base));
    b->base_used[base >> 6] |= (uint64_t)1 << (base & 63);
    d->units[t.node].link = base << 8 | (d->units[t.node].link & 0xFF);
    for (size_t i = 0; i < n; i++) {
        uint32_t child = base ^ labels[i];
        unlink_unit(b, child);
        d->units[child].link = labels[i];
    }
    for (size_t i = n; i-- > 0;) TRY(push(b, (task){base ^ labels[i], from[i], from[i + 1], t.depth + 1}));
    return LATH_OK;
}

static lath_status build(builder *b, const tok_darray_key *keys, size_t n)
{
    TRY(open_block(b));
    b->base_used[0] |= 1;
    unlink_unit(b, 0);
    b->d->units[0].link = 0;
    TRY(push(b, (task){0, 0, (uint32_t)n, 0}));
    while (b->n_stack) TRY(place(b, keys, b->stack[--b->n_stack]));
    return LATH_OK;
}

/* Gives back what growing took too much; when that fails it is kept. */
static void shrink(tok_darray *d)
{
    void *units = d->units, *values = d->values;
    resize(d->alloc, &units, &d->cap_units, d->n_units, sizeof(*d->units));
    resize(d->alloc, &values, &d->cap_values, d->n_units, sizeof(*d->values));
    d->units = units;
    d->values = values;
}

lath_status tok_darray_build(tok_darray *d, const lath_allocator *alloc, tok_darray_key *keys, size_t n,
                             lath_error *err)
{
    *d = (tok_darray){.alloc = alloc};
    if (n >= UNITS_MOST) return err_set(err, LATH_ERR_LIMIT, "a vocabulary of %zu entries", n);
    builder b = {.d = d, .head = NONE, .err = err};
    size_t total = 1;
    for (size_t i = 0; i < n; i++) total += keys[i].len;
    char *text = alloc_bytes(alloc, total, 16);
    if (!text) return err_nomem(err, total);
    lath_status st = n ? sort_keys(alloc, keys, n, text, err) : LATH_OK;
    if (st == LATH_OK) st = build(&b, keys, n);
    alloc_release(alloc, text, total);
    alloc_release(alloc, b.ring, b.cap_ring * sizeof(*b.ring));
    alloc_release(alloc, b.base_used, b.cap_used * sizeof(*b.base_used));
    alloc_release(alloc, b.stack, b.cap_stack * sizeof(*b.stack));
    if (st == LATH_OK)
        shrink(d);
    else
        tok_darray_deinit(d);
    return st;
}

void tok_darray_deinit(tok_darray *d)
{
    if (!d->alloc) return;
    alloc_release(d->alloc, d->units, d->cap_units * sizeof(*d->units));
    alloc_release(d->alloc, d->values, d->cap_values * sizeof(*d->values));
    *d = (tok_darray){0};
}
