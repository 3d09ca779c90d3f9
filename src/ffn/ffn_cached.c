/* SPDX-License-Identifier: Apache-2.0
 *
 * ffn_cached.c: rows that have been computed before. What a row becomes depends on its bytes, its layer and the op table only (never on the rest of the batch), so a row
 * that is found has the bits that computing it again would give.
 *
 *     block     | entries [most] | buckets [n_buckets] | rows [most][2 d]: the row, and what became of it |
 *
 * Entries of a bucket are a chain; all entries are a ring by when they were last used. A hit is XXH3-128 of the row first, then its bytes.
 */
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "ffn/ffn_backends.h"

enum { NONE = -1 };

typedef struct entry {
    hash128 hash;
    const backend_ops *ops;
    int32_t layer;
    int32_t chain;        /* the next of the bucket */
    int32_t older, newer; /* neighbours in the ring */
    bool integer;
} entry;

typedef struct ffn_cached {
    ffn base;
    ffn *inner;
    const lath_allocator *alloc;
    int64_t d;
    int32_t most, used, oldest, newest;
    uint32_t n_buckets; /* a power of two */
    entry *entries;
    int32_t *buckets;
    float *rows;
    size_t bytes;
    ffn_cached_stats stats;
} ffn_cached;

static float *row_of(const ffn_cached *c, int32_t e) { return c->rows + (int64_t)e * 2 * c->d; }
static float *result_of(const ffn_cached *c, int32_t e) { return row_of(c, e) + c->d; }
static int32_t *bucket_of(const ffn_cached *c, hash128 h) { return &c->buckets[(uint32_t)h.lo & (c->n_buckets - 1)]; }
static hash128 hash_of(const ffn_cached *c, int32_t layer, const float *row)
{
    return hash_128(row, (size_t)c->d * sizeof(float), (uint64_t)layer);
}

/* ------------------------------------------------------------------------------------------------------------- entries */

static void unlink_used(ffn_cached *c, int32_t e)
{
    entry *x = &c->entries[e];
    *(x->older == NONE ? &c->oldest : &c->entries[x->older].newer) = x->newer;
    *(x->newer == NONE ? &c->newest : &c->entries[x->newer].older) = x->older;
}

static void link_newest(ffn_cached *c, int32_t e)
{
    c->entries[e].older = c->newest;
    c->entries[e].newer = NONE;
    *(c->newest == NONE ? &c->oldest : &c->entries[c->newest].newer) = e;
    c->newest = e;
}

static int32_t find(const ffn_cached *c, const stream *s, int32_t layer, hash128 h, const float *row)
{
    for (int32_t e = *bucket_of(c, h); e != NONE; e = c->entries[e].chain) {
        const entry *x = &c->entries[e];
        if (x->hash.lo == h.lo && x->hash.hi == h.hi && x->layer == layer && x->ops == s->ops &&
            x->integer == s->integer && memcmp(row_of(c, e), row, (size_t)c->d * sizeof(float)) == 0)
            return e;
    }
    return NONE;
}

static int32_t take_entry(ffn_cached *c)
{
    if (c->used < c->most) return c->used++;
    const int32_t e = c->oldest;
    int32_t *at = bucket_of(c, c->entries[e].hash);
    while (*at != e) at = &c->entries[*at].chain;
    *at = c->entries[e].chain;
    unlink_used(c, e);
    return e;
}

static void keep(ffn_cached *c, const stream *s, int32_t layer, hash128 h, const float *row, const float *result)
{
    if (find(c, s, layer, h, row) != NONE) return; /* twice in one batch */
    const int32_t e = take_entry(c);
    int32_t *bucket = bucket_of(c, h);
    c->entries[e] = (entry){.hash = h, .ops = s->ops, .layer = layer, .chain = *bucket, .integer = s->integer};
    *bucket = e;
    link_newest(c, e);
    memcpy(row_of(c, e), row, (size_t)c->d * sizeof(float));
    memcpy(result_of(c, e), result, (size_t)c->d * sizeof(float));
}

/* ------------------------------------------------------------------------------------------------------------- forward */

static size_t round_up(int64_t n) { return (size_t)(n + 15) / 16 * 16; }

/* | x and out of the rows that miss | all rows | what one became | tokens that miss | hashes | inner's | */
typedef struct work {
    view x, y;
    float *rows, *one, *inner;
    int32_t *missing;
    hash128 *hashes;
} work;

static size_t own_floats(const ffn_cached *c, const backend_ops *ops, int64_t n_tok)
{
    return 2 * ops->view_floats(n_tok, c->d) + round_up(n_tok * c->d) + round_up(c->d) + round_up(n_tok) +
           round_up(n_tok * (int64_t)(sizeof(hash128) / sizeof(float)));
}

static size_t cached_memory_floats(const ffn *self, const backend_ops *ops, int64_t n_tok)
{
    const ffn_cached *c = (const ffn_cached *)self;
    return own_floats(c, ops, n_tok) + ffn_memory_floats(c->inner, ops, n_tok);
}

static work make_work(const ffn_cached *c, const backend_ops *ops, int64_t n_tok, int64_t n_missing, float *memory)
{
    work w;
    w.x = ops->make_view(memory, n_missing, c->d);
    w.y = ops->make_view(memory + ops->view_floats(n_tok, c->d), n_missing, c->d);
    w.rows = memory + 2 * ops->view_floats(n_tok, c->d);
    w.one = w.rows + round_up(n_tok * c->d);
    w.missing = (int32_t *)(void *)(w.one + round_up(c->d));
    w.hashes = (hash128 *)(void *)(w.missing + round_up(n_tok));
    w.inner = memory + own_floats(c, ops, n_tok);
    return w;
}

/* Writes what is known; returns how many rows are not. */
static lath_status take_known(ffn_cached *c, const fwd *f, int32_t layer, view x, const work *w, view out, int64_t *n)
{
    stream *s = f->s;
    *n = 0;
    TRY(s->ops->read_rows(s, x, 0, x.n_tok, w->rows));
    for (int64_t t = 0; t < x.n_tok; t++) {
        const float *row = w->rows + t * c->d;
        w->hashes[t] = hash_of(c, layer, row);
        const int32_t e = find(c, s, layer, w->hashes[t], row);
        if (e == NONE) {
            w->missing[(*n)++] = (int32_t)t;
            continue;
        }
        unlink_used(c, e);
        link_newest(c, e);
        TRY(s->ops->write_rows(s, out, t, 1, result_of(c, e)));
    }
    c->stats.hits += (uint64_t)(x.n_tok - *n);
    c->stats.misses += (uint64_t)*n;
    return LATH_OK;
}

static lath_status cached_forward(ffn *self, const fwd *f, int32_t layer, view x, float *memory, view out)
{
    ffn_cached *c = (ffn_cached *)self;
    stream *s = f->s;
    int64_t n = 0;
    if (f->trace) return ffn_forward(c->inner, f, layer, x, memory + own_floats(c, s->ops, x.n_tok), out);
    work w = make_work(c, s->ops, x.n_tok, x.n_tok, memory);
    TRY(take_known(c, f, layer, x, &w, out, &n));
    if (n == 0) {
        ffn_note(f, layer, "cached:hit", x.n_tok, 0);
        return LATH_OK;
    }
    w = make_work(c, s->ops, x.n_tok, n, memory);
    TRY(s->ops->take_rows(s, x, w.missing, w.x));
    TRY(ffn_forward(c->inner, f, layer, w.x, w.inner, w.y));
    ffn_note_path(f, layer, "cached:miss");
    if (f->took) f->took[layer].tokens += (uint64_t)(x.n_tok - n);
    for (int64_t i = 0; i < n; i++) {
        const int32_t t = w.missing[i];
        TRY(s->ops->read_rows(s, w.y, i, 1, w.one));
        TRY(s->ops->write_rows(s, out, t, 1, w.one));
        keep(c, s, layer, w.hashes[t], w.rows + t * c->d, w.one);
    }
    return LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------------------- open */

static void cached_describe(const ffn *self, int32_t layer, buf *out)
{
    buf_str(out, "cached ");
    ffn_describe(((const ffn_cached *)self)->inner, layer, out);
}

static void cached_close(ffn *self)
{
    ffn_cached *c = (ffn_cached *)self;
    ffn_close(c->inner);
    alloc_release(c->alloc, c->entries, c->bytes);
    alloc_release(c->alloc, c, sizeof(*c));
}

static const ffn_ops cached_ops = {.name = "cached",
                                   .memory_floats = cached_memory_floats,
                                   .forward = cached_forward,
                                   .describe = cached_describe,
                                   .close = cached_close};

bool ffn_cached_get_stats(const ffn *self, ffn_cached_stats *out)
{
    if (self->ops != &cached_ops) return false;
    const ffn_cached *c = (const ffn_cached *)self;
    *out = c->stats;
    out->rows = (size_t)c->used;
    out->most = (size_t)c->most;
    return true;
}

/* As many entries as fit, and their places. */
static lath_status make_block(ffn_cached *c, size_t max_bytes, lath_error *err)
{
    const size_t row = 2 * (size_t)c->d * sizeof(float), each = sizeof(entry) + 2 * sizeof(int32_t) + row;
    const size_t most = max_bytes / each < (1u << 30) ? max_bytes / each : 1u << 30;
    if (most == 0)
        return err_set(err, LATH_ERR_LIMIT, "a cache of %zu bytes: a row of this model takes %zu", max_bytes, each);
    c->most = (int32_t)most;
    c->n_buckets = 1;
    while (c->n_buckets * 2 <= most * 2) c->n_buckets *= 2;
    const size_t entries = most * sizeof(entry), buckets = ((size_t)c->n_buckets * sizeof(int32_t) + 63) / 64 * 64;
    c->bytes = entries + buckets + most * row;
    c->entries = alloc_bytes(c->alloc, c->bytes, 64); /* the system gives what is written only */
    if (!c->entries) return err_nomem(err, c->bytes);
    c->buckets = (int32_t *)(void *)((char *)c->entries + entries);
    c->rows = (float *)(void *)((char *)c->buckets + buckets);
    for (uint32_t i = 0; i < c->n_buckets; i++) c->buckets[i] = NONE;
    return LATH_OK;
}

lath_status ffn_cached_open(ffn *inner, int64_t d_model, size_t max_bytes, const lath_allocator *alloc, ffn **out,
                            lath_error *err)
{
    ffn_cached *c = alloc_zero(alloc, sizeof(*c));
    lath_status st = c ? LATH_OK : err_nomem(err, sizeof(*c));
    if (st == LATH_OK) {
        *c = (ffn_cached){.base = {&cached_ops}, .inner = inner, .alloc = alloc, .d = d_model, .oldest = NONE};
        c->newest = NONE;
        st = make_block(c, max_bytes, err);
    }
    if (st == LATH_OK) {
        *out = &c->base;
        return LATH_OK;
    }
    alloc_release(alloc, c, sizeof(*c));
    ffn_close(inner);
    return st;
}
