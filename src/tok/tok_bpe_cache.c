/* SPDX-License-Identifier: Apache-2.0
 * tok_bpe_cache.c: words that have been seen and what they became. Two tables of a fixed size, for words of up to 15
 * and up to 39 bytes, whose slots hold the word itself:
 *
 *     small  | key, 15 bytes and the length | 4 tokens | control |      32 bytes, two slots a set
 *     large  | key, 39 bytes and the length | 6 tokens | control |      64 bytes, one slot a set
 *
 * A token is its id and its length, in 26 bits of a small slot and 28 of a large one; what does not fit is not kept. A
 * short word of many tokens goes into a large slot.
 *
 * Threads share it without locks. A slot is a sequence lock: control is count | busy | sequence number; a writer sets
 * busy, writes, and publishes the next number; a reader takes what it has read only if control has not changed. All
 * fields are atomic; the acquire loads of the fields order the second look at control behind them, the release stores
 * order busy before them.
 *
 * The tables are made at the first word; without memory for them there is no cache.
 */
#include <stdatomic.h>

#include "tok/tok_bpe.h"

enum { SMALL_SLOTS = 1 << 16, LARGE_SLOTS = 1 << 13 };

typedef _Atomic uint64_t field;

typedef struct small {
    field key[2], v[2];
} small;

typedef struct large {
    field key[5], v[3];
} large;

_Static_assert(sizeof(small) == 32 && sizeof(large) == 64, "slots fill lines");

typedef struct tables {
    small small[SMALL_SLOTS];
    large large[LARGE_SLOTS];
} tables;

struct tok_bpe_cache {
    const lath_allocator *alloc;
    _Atomic(tables *) tables;
};

/* control: the high 24 bits of the last field */
#define COUNT(v) ((uint32_t)((v) >> 40) & 7u)
#define BUSY ((uint64_t)1 << 43)
#define STEP ((uint64_t)1 << 44)

enum { ID_BITS = 22 };

lath_status tok_bpe_cache_create(const lath_allocator *alloc, tok_bpe_cache **out, lath_error *err)
{
    *out = alloc_zero(alloc, sizeof(**out));
    if (!*out) return err_nomem(err, sizeof(**out));
    (*out)->alloc = alloc;
    return LATH_OK;
}

void tok_bpe_cache_destroy(tok_bpe_cache *c)
{
    if (!c) return;
    alloc_table_release(c->alloc, atomic_load(&c->tables), sizeof(tables));
    alloc_release(c->alloc, c, sizeof(*c));
}

size_t tok_bpe_cache_bytes(const tok_bpe_cache *c)
{
    return c ? sizeof(*c) + (atomic_load(&c->tables) ? sizeof(tables) : 0) : 0;
}

static tables *get_tables(tok_bpe_cache *c)
{
    tables *t = atomic_load_explicit(&c->tables, memory_order_acquire);
    if (t) return t;
    t = alloc_table(c->alloc, sizeof(*t));
    if (!t) return NULL;
    memset((void *)t, 0, sizeof(*t));
    tables *other = NULL;
    if (atomic_compare_exchange_strong(&c->tables, &other, t)) return t;
    alloc_table_release(c->alloc, t, sizeof(*t));
    return other;
}

/* --------------------------------------------------------------------------------------------------------------- keys */

static uint64_t load_64(const char *s)
{
    uint64_t v;
    memcpy(&v, s, 8);
    return v;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    wide p = (wide)(a ^ 0x9E3779B97F4A7C15u) * (b ^ 0xD1B54A32D192ED03u);
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

void tok_bpe_cache_key(const char *s, size_t n, size_t room, bool unit, tok_cache_key *key)
{
    uint64_t end = (uint64_t)(n | (unit ? 0x80u : 0)) << 56;
    if (n <= TOK_CACHE_SMALL) {
        char copy[16] = {0};
        key->n_words = 2;
        if (room < 16) {
            memcpy(copy, s, n);
            s = copy;
        }
        uint64_t a = load_64(s), b = load_64(s + 8);
        if (n < 8) {
            a &= ((uint64_t)1 << 8 * n) - 1;
            b = 0;
        } else {
            b &= ((uint64_t)1 << 8 * (n - 8)) - 1;
        }
        key->w[0] = a;
        key->w[1] = b | end;
        key->hash = mix(a, b | end);
        return;
    }
    char copy[40] = {0};
    memcpy(copy, s, n);
    key->n_words = 5;
    for (size_t i = 0; i < 5; i++) key->w[i] = load_64(copy + 8 * i);
    key->w[4] |= end;
    key->hash = mix(mix(key->w[0], key->w[1]) ^ key->w[2], mix(key->w[3], key->w[4]));
}

/* --------------------------------------------------------------------------------------------------------------- slots */

static uint64_t get(const field *f) { return atomic_load_explicit(f, memory_order_acquire); }
static void set(field *f, uint64_t v) { atomic_store_explicit(f, v, memory_order_release); }

static void unpack(tok_cached *out, int k, uint64_t token)
{
    out->id[k] = (int32_t)(token & ((1u << ID_BITS) - 1));
    out->len[k] = (uint8_t)(token >> ID_BITS);
}

enum { M26 = (1 << 26) - 1, M28 = (1 << 28) - 1 };

static inline bool find_small(const small *s, const tok_cache_key *key, tok_cached *out)
{
    uint64_t b = get(&s->v[1]);
    if (get(&s->key[0]) != key->w[0] || get(&s->key[1]) != key->w[1]) return false;
    uint64_t a = get(&s->v[0]);
    if (b & BUSY || COUNT(b) == 0 || atomic_load_explicit(&s->v[1], memory_order_relaxed) != b) return false;
    out->n = COUNT(b);
    unpack(out, 0, a & M26);
    if (out->n == 1) return true;
    unpack(out, 1, a >> 26 & M26);
    unpack(out, 2, (a >> 52 | b << 12) & M26);
    unpack(out, 3, b >> 14 & M26);
    return true;
}

static void write_small(small *s, const tok_cache_key *key, const uint64_t *v, uint64_t control)
{
    set(&s->key[0], key->w[0]);
    set(&s->key[1], key->w[1]);
    set(&s->v[0], v[0] | v[1] << 26 | v[2] << 52);
    set(&s->v[1], v[2] >> 12 | v[3] << 14 | control);
}

static bool find_large(const large *s, const tok_cache_key *key, tok_cached *out)
{
    uint64_t c = get(&s->v[2]);
    for (size_t i = 0; i < 5; i++) {
        if (get(&s->key[i]) != (i < key->n_words ? key->w[i] : 0)) return false;
    }
    uint64_t a = get(&s->v[0]), b = get(&s->v[1]);
    if (c & BUSY || COUNT(c) == 0 || atomic_load_explicit(&s->v[2], memory_order_relaxed) != c) return false;
    out->n = COUNT(c);
    unpack(out, 0, a & M28);
    unpack(out, 1, a >> 28 & M28);
    unpack(out, 2, b & M28);
    unpack(out, 3, b >> 28 & M28);
    unpack(out, 4, c & M28);
    unpack(out, 5, a >> 56 | b >> 56 << 8 | (c >> 28 & 0xFFF) << 16);
    return true;
}

static void write_large(large *s, const tok_cache_key *key, const uint64_t *v, uint64_t control)
{
    for (size_t i = 0; i < 5; i++) set(&s->key[i], i < key->n_words ? key->w[i] : 0);
    set(&s->v[0], v[0] | v[1] << 28 | v[5] << 56);
    set(&s->v[1], v[2] | v[3] << 28 | v[5] >> 8 << 56);
    set(&s->v[2], v[4] | v[5] >> 16 << 28 | control);
}

static size_t small_set(const tok_cache_key *key) { return key->hash & (SMALL_SLOTS - 2); }
static size_t large_slot(const tok_cache_key *key) { return key->hash >> 32 & (LARGE_SLOTS - 1); }

void tok_bpe_cache_prefetch(const tok_bpe_cache *c, const tok_cache_key *key)
{
    const tables *t = atomic_load_explicit(&c->tables, memory_order_acquire);
    if (!t) return;
    __builtin_prefetch(key->n_words == 2 ? (const void *)&t->small[small_set(key)] : &t->large[large_slot(key)]);
}

bool tok_bpe_cache_find(const tok_bpe_cache *c, const tok_cache_key *key, tok_cached *out)
{
    const tables *t = atomic_load_explicit(&c->tables, memory_order_acquire);
    if (!t) return false;
    const small *set_of_two = &t->small[small_set(key)];
    if (key->n_words == 2 && (find_small(set_of_two, key, out) || find_small(set_of_two + 1, key, out))) return true;
    return find_large(&t->large[large_slot(key)], key, out);
}

/* Takes the slot whose last field is f; false when another thread has it. */
static bool begin_write(field *f, uint64_t *last)
{
    *last = atomic_load_explicit(f, memory_order_relaxed);
    if (*last & BUSY) return false;
    return atomic_compare_exchange_strong_explicit(f, last, *last | BUSY, memory_order_acq_rel, memory_order_relaxed);
}

static bool holds(const small *s, const tok_cache_key *key)
{
    return get(&s->key[0]) == key->w[0] && get(&s->key[1]) == key->w[1];
}

/* The slot that has the word, or an empty one, or either. */
static size_t which_of_two(const small *s, const tok_cache_key *key)
{
    bool full[2] = {COUNT(get(&s[0].v[1])) != 0, COUNT(get(&s[1].v[1])) != 0};
    if (full[0] && holds(&s[0], key)) return 0;
    if (full[1] && holds(&s[1], key)) return 1;
    if (full[0] != full[1]) return full[0];
    return full[0] ? key->hash >> 63 : 0;
}

void tok_bpe_cache_put(tok_bpe_cache *c, const tok_cache_key *key, const int32_t *ids, const uint32_t *len, size_t n)
{
    uint64_t v[TOK_CACHE_MOST] = {0}, last;
    if (n == 0 || n > TOK_CACHE_MOST) return;
    for (size_t i = 0; i < n; i++) {
        if (ids[i] >= 1 << ID_BITS || len[i] > TOK_CACHE_LARGE) return;
        v[i] = (uint64_t)ids[i] | (uint64_t)len[i] << ID_BITS;
    }
    tables *t = get_tables(c);
    if (!t) return;
    bool is_small = key->n_words == 2 && n <= 4;
    small *s = &t->small[small_set(key)];
    large *g = &t->large[large_slot(key)];
    if (is_small) s += which_of_two(s, key);
    if (!begin_write(is_small ? &s->v[1] : &g->v[2], &last)) return;
    uint64_t control = (((last & ~BUSY) >> 44 << 44) + STEP) | (uint64_t)n << 40;
    if (is_small)
        write_small(s, key, v, control);
    else
        write_large(g, key, v, control);
}
