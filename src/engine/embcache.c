/* SPDX-License-Identifier: Apache-2.0
 *
 * embcache.c: the cache in memory. Entries hang in chains of a hash table and in one list from new to old:
 *
 *     table  [hash & mask] -> entry -> entry     newest <-> ... <-> oldest
 *     entry  | links, space, hash, n, skip | ids [n] | vector [dim] |
 *
 * Full, it drops everything (FLUSH_ALL: texts of a corpus are mostly new, and keeping order costs every hit) or the
 * entry that was not used for longest (LRU). Two locks, never held together but in this order: `disk_lock` for the
 * file, `lock` for everything else; a hit in memory never waits for the file.
 */
#include "engine/embcache.h"

#include <pthread.h>
#include <string.h>

#include "base/checked.h"
#include "engine/embcache_disk.h"
#include "engine/engine.h"

enum { ENTRIES_DEFAULT = 10000, ENTRIES_MOST = 1 << 28, TABLE_LEAST = 1024, WAIT_DEFAULT_MS = 10000 };

typedef struct entry {
    struct entry *chain, *older, *newer;
    const embcache_space *space;
    uint64_t hash;
    int32_t n, skip;
    size_t bytes;   /* of this struct with its data */
    int32_t data[]; /* ids, then the vector */
} entry;

struct lath_cache {
    const lath_allocator *alloc;
    size_t max_entries;
    lath_cache_policy policy;
    pthread_mutex_t lock; /* of everything below */
    entry **table;        /* [n_table], a power of two */
    size_t n_table;
    entry *newest, *oldest;
    embcache_space *spaces;
    lath_cache_stats stats;
    pthread_mutex_t disk_lock; /* of disk */
    embdisk *disk;             /* NULL: none */
};

/* ------------------------------------------------------------------------------------------------------------ hashes */

hash128 embcache_hash(const embcache_space *s, const embcache_item *text)
{
    return hash_128(text->ids, (size_t)text->n * sizeof(*text->ids),
                    s->seed + (uint64_t)text->skip * 0x9E3779B97F4A7C15u);
}

uint64_t embcache_sum(const void *vector, size_t bytes, hash128 key) { return hash_128(vector, bytes, key.hi).lo; }

/* -------------------------------------------------------------------------------------------------------- open, close */

static lath_status check_options(const lath_cache_options *o, lath_error *err)
{
    if (o->struct_size != sizeof(*o))
        return err_set(err, LATH_ERR_USAGE, "lath_cache_open: options of another version");
    if (o->max_entries > ENTRIES_MOST)
        return err_set(err, LATH_ERR_USAGE, "max entries: %llu, want at most %d", (unsigned long long)o->max_entries,
                       ENTRIES_MOST);
    if (o->policy != LATH_CACHE_FLUSH_ALL && o->policy != LATH_CACHE_LRU)
        return err_set(err, LATH_ERR_USAGE, "cache policy: no such value: %d", (int)o->policy);
    if (o->lock_wait_ms < 0) return err_set(err, LATH_ERR_USAGE, "lock wait: %d ms", o->lock_wait_ms);
    return LATH_OK;
}

lath_status lath_cache_open(lath_runtime *rt, const lath_cache_options *opts, lath_cache **out, lath_error *err)
{
    static const lath_cache_options defaults = LATH_CACHE_OPTIONS_INIT;
    lath_status st = LATH_OK;
    err_clear(err);
    if (!opts) opts = &defaults;
    if (!rt || !out) return err_set(err, LATH_ERR_USAGE, "lath_cache_open: an argument is missing");
    TRY(check_options(opts, err));
    lath_cache *c = alloc_zero(&rt->alloc, sizeof(*c));
    if (!c) return err_nomem(err, sizeof(*c));
    c->alloc = &rt->alloc;
    c->max_entries = opts->max_entries ? (size_t)opts->max_entries : ENTRIES_DEFAULT;
    c->policy = opts->policy;
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->disk_lock, NULL);
    c->n_table = TABLE_LEAST;
    c->table = alloc_array(c->alloc, c->n_table, sizeof(*c->table));
    if (!c->table) st = err_nomem(err, c->n_table * sizeof(*c->table));
    const int32_t wait = opts->lock_wait_ms ? opts->lock_wait_ms : WAIT_DEFAULT_MS;
    if (st == LATH_OK && opts->path) st = embdisk_open(c->alloc, opts->path, wait, &c->disk, err);
    if (st != LATH_OK)
        lath_cache_close(c);
    else
        *out = c;
    return st;
}

static void release_entries(const lath_allocator *alloc, entry *newest)
{
    while (newest) {
        entry *older = newest->older;
        alloc_release(alloc, newest, newest->bytes);
        newest = older;
    }
}

void lath_cache_close(lath_cache *cache)
{
    if (!cache) return;
    embdisk_close(cache->disk);
    release_entries(cache->alloc, cache->newest);
    for (embcache_space *s = cache->spaces, *next; s; s = next) {
        next = s->next;
        alloc_release(cache->alloc, s, s->bytes);
    }
    alloc_release(cache->alloc, cache->table, cache->n_table * sizeof(*cache->table));
    pthread_mutex_destroy(&cache->lock);
    pthread_mutex_destroy(&cache->disk_lock);
    alloc_release(cache->alloc, cache, sizeof(*cache));
}

lath_status lath_cache_get_stats(lath_cache *cache, lath_cache_stats *stats, lath_error *err)
{
    err_clear(err);
    if (!cache || !stats || stats->struct_size != sizeof(*stats))
        return err_set(err, LATH_ERR_USAGE, "lath_cache_get_stats: %s",
                       cache && stats ? "a struct of another version" : "an argument is missing");
    pthread_mutex_lock(&cache->lock);
    *stats = cache->stats;
    stats->struct_size = sizeof(*stats);
    stats->bytes += cache->n_table * sizeof(*cache->table) + sizeof(*cache);
    pthread_mutex_unlock(&cache->lock);
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------- spaces */

static embcache_space *find_space(lath_cache *c, const uint64_t model[2], const char *settings)
{
    embcache_space *s = c->spaces;
    while (s && (memcmp(s->model, model, sizeof(s->model)) != 0 || strcmp(s->settings, settings) != 0)) s = s->next;
    return s;
}

static lath_status make_space(lath_cache *c, const uint64_t model[2], const char *settings, int64_t dim,
                              embcache_space **out, lath_error *err)
{
    const size_t len = strlen(settings), bytes = sizeof(embcache_space) + len + 1;
    embcache_space *s = alloc_zero(c->alloc, bytes);
    if (!s) return err_nomem(err, bytes);
    memcpy(s->model, model, sizeof(s->model));
    memcpy(s->settings, settings, len + 1);
    s->cache = c;
    s->dim = dim;
    s->bytes = bytes;
    s->seed = hash_128(settings, len, hash_128(model, sizeof(s->model), 0).lo).lo;
    const lath_status st = c->disk ? embdisk_join(c->disk, s, err) : LATH_OK;
    if (st != LATH_OK)
        alloc_release(c->alloc, s, bytes);
    else
        *out = s;
    return st;
}

lath_status embcache_space_get(lath_cache *c, const uint64_t model[2], const char *settings, int64_t dim,
                               embcache_space **out, lath_error *err)
{
    lath_status st = LATH_OK;
    pthread_mutex_lock(&c->disk_lock); /* of two threads one makes it */
    pthread_mutex_lock(&c->lock);
    embcache_space *s = find_space(c, model, settings);
    pthread_mutex_unlock(&c->lock);
    if (!s) {
        st = make_space(c, model, settings, dim, &s, err);
        if (st == LATH_OK) {
            pthread_mutex_lock(&c->lock);
            s->next = c->spaces;
            c->spaces = s;
            c->stats.bytes += s->bytes;
            pthread_mutex_unlock(&c->lock);
        }
    }
    pthread_mutex_unlock(&c->disk_lock);
    if (st == LATH_OK) *out = s;
    return st;
}

/* ------------------------------------------------------------------------------------------- table and list, under lock */

static entry **chain_of(const lath_cache *c, uint64_t hash) { return &c->table[hash & (c->n_table - 1)]; }

static entry *find_entry(const lath_cache *c, const embcache_space *s, const embcache_item *text, uint64_t hash)
{
    const size_t bytes = (size_t)text->n * sizeof(*text->ids);
    for (entry *e = *chain_of(c, hash); e; e = e->chain) {
        if (e->hash == hash && e->space == s && e->n == text->n && e->skip == text->skip &&
            memcmp(e->data, text->ids, bytes) == 0)
            return e;
    }
    return NULL;
}

static void push_newest(lath_cache *c, entry *e)
{
    e->older = c->newest;
    e->newer = NULL;
    *(c->newest ? &c->newest->newer : &c->oldest) = e;
    c->newest = e;
}

static void unlink_entry(lath_cache *c, entry *e)
{
    *(e->newer ? &e->newer->older : &c->newest) = e->older;
    *(e->older ? &e->older->newer : &c->oldest) = e->newer;
}

/* Makes room for one; what is dropped is handed out as a list to be released after the lock. */
static entry *make_room(lath_cache *c)
{
    if (c->stats.entries < c->max_entries) return NULL;
    entry *dropped = c->policy == LATH_CACHE_LRU ? c->oldest : c->newest;
    if (c->policy == LATH_CACHE_LRU) {
        entry **at = chain_of(c, dropped->hash);
        while (*at != dropped) at = &(*at)->chain;
        *at = dropped->chain;
        unlink_entry(c, dropped);
        dropped->older = NULL;
        c->stats.evictions++;
        c->stats.entries--;
        c->stats.bytes -= dropped->bytes;
        return dropped;
    }
    for (const entry *e = dropped; e; e = e->older) c->stats.bytes -= e->bytes;
    memset(c->table, 0, c->n_table * sizeof(*c->table));
    c->newest = c->oldest = NULL;
    c->stats.entries = 0;
    c->stats.flushes++;
    return dropped;
}

/* As many chains as entries at least, so that a chain is one or two entries long. */
static lath_status grow_table(lath_cache *c, lath_error *err)
{
    if (c->stats.entries < c->n_table) return LATH_OK;
    const size_t n = c->n_table * 2;
    entry **table = alloc_array(c->alloc, n, sizeof(*table));
    if (!table) return err_nomem(err, n * sizeof(*table));
    alloc_release(c->alloc, c->table, c->n_table * sizeof(*c->table));
    c->table = table;
    c->n_table = n;
    for (entry *e = c->oldest; e; e = e->newer) {
        entry **at = chain_of(c, e->hash);
        e->chain = *at;
        *at = e;
    }
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------ find and add */

static lath_status make_entry(const embcache_space *s, const embcache_item *item, uint64_t hash, entry **out,
                              lath_error *err)
{
    const size_t ids = (size_t)item->n * sizeof(int32_t), vector = (size_t)s->dim * sizeof(float);
    const size_t bytes = sizeof(entry) + ids + vector;
    entry *e = alloc_bytes(s->cache->alloc, bytes, _Alignof(entry));
    if (!e) return err_nomem(err, bytes);
    *e = (entry){.space = s, .hash = hash, .n = (int32_t)item->n, .skip = (int32_t)item->skip, .bytes = bytes};
    memcpy(e->data, item->ids, ids);
    memcpy(e->data + item->n, item->vector, vector);
    *out = e;
    return LATH_OK;
}

static lath_status add_to_memory(const embcache_space *s, const embcache_item *item, uint64_t hash, lath_error *err)
{
    lath_cache *c = s->cache;
    entry *e = NULL, *dropped = NULL;
    TRY(make_entry(s, item, hash, &e, err));
    pthread_mutex_lock(&c->lock);
    const bool known = find_entry(c, s, item, hash) != NULL; /* another thread was faster */
    lath_status st = known ? LATH_OK : grow_table(c, err);
    if (st == LATH_OK && !known) {
        dropped = make_room(c);
        entry **at = chain_of(c, hash);
        e->chain = *at;
        *at = e;
        push_newest(c, e);
        c->stats.entries++;
        c->stats.bytes += e->bytes;
        e = NULL;
    }
    pthread_mutex_unlock(&c->lock);
    release_entries(c->alloc, dropped);
    release_entries(c->alloc, e);
    return st;
}

static bool find_in_memory(const embcache_space *s, const embcache_item *text, uint64_t hash, float *vector)
{
    lath_cache *c = s->cache;
    pthread_mutex_lock(&c->lock);
    entry *e = find_entry(c, s, text, hash);
    if (e) {
        memcpy(vector, e->data + e->n, (size_t)s->dim * sizeof(*vector));
        c->stats.hits++;
        if (c->policy == LATH_CACHE_LRU && e != c->newest) {
            unlink_entry(c, e);
            push_newest(c, e);
        }
    } else if (!c->disk) {
        c->stats.misses++;
    }
    pthread_mutex_unlock(&c->lock);
    return e != NULL;
}

static lath_status find_on_disk(const embcache_space *s, const embcache_item *text, hash128 key, float *vector,
                                bool *found, lath_error *err)
{
    lath_cache *c = s->cache;
    pthread_mutex_lock(&c->disk_lock);
    const lath_status st = embdisk_find(c->disk, s, text, key, vector, found, err);
    pthread_mutex_unlock(&c->disk_lock);
    TRY(st);
    pthread_mutex_lock(&c->lock);
    (*(*found ? &c->stats.disk_hits : &c->stats.misses))++;
    pthread_mutex_unlock(&c->lock);
    const embcache_item item = {text->ids, text->n, text->skip, vector};
    return *found ? add_to_memory(s, &item, key.lo, err) : LATH_OK;
}

lath_status embcache_find(embcache_space *s, const embcache_item *text, float *vector, bool *found, lath_error *err)
{
    const hash128 key = embcache_hash(s, text);
    *found = find_in_memory(s, text, key.lo, vector);
    if (*found || !s->cache->disk) return LATH_OK;
    return find_on_disk(s, text, key, vector, found, err);
}

lath_status embcache_add(embcache_space *s, const embcache_item *items, size_t n, lath_error *err)
{
    lath_cache *c = s->cache;
    for (size_t i = 0; i < n; i++) TRY(add_to_memory(s, &items[i], embcache_hash(s, &items[i]).lo, err));
    if (!c->disk || n == 0) return LATH_OK;
    pthread_mutex_lock(&c->disk_lock);
    const lath_status st = embdisk_add(c->disk, s, items, n, err);
    pthread_mutex_unlock(&c->disk_lock);
    return st;
}

const lath_allocator *embcache_allocator(const embcache_space *s) { return s->cache->alloc; }

lath_status embcache_each(embcache_space *s, embcache_visit visit, void *ctx, lath_error *err)
{
    lath_cache *c = s->cache;
    lath_status st = LATH_OK;
    pthread_mutex_t *lock = c->disk ? &c->disk_lock : &c->lock;
    pthread_mutex_lock(lock);
    if (c->disk) st = embdisk_each(c->disk, s, visit, ctx, err);
    for (const entry *e = c->disk ? NULL : c->oldest; st == LATH_OK && e; e = e->newer) {
        const embcache_item item = {e->data, e->n, e->skip, (const float *)(const void *)(e->data + e->n)};
        if (e->space == s) st = visit(ctx, &item, err);
    }
    pthread_mutex_unlock(lock);
    return st;
}
