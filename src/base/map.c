/* SPDX-License-Identifier: Apache-2.0
 * map.c: linear probing, load at most 1/2. Slots keep 32 bits of the hash, so that most misses do not touch the key. */
#include "base/map.h"

#include <string.h>

#include "base/checked.h"
#include "base/hash.h"

void map_init(map *m, const lath_allocator *alloc) { *m = (map){.alloc = alloc}; }

void map_deinit(map *m)
{
    if (m->slots) alloc_release(m->alloc, m->slots, m->n_slots * sizeof(map_slot));
    m->slots = NULL;
    m->n_slots = m->count = 0;
}

static map_slot *probe(const map *m, const char *key, size_t len, uint32_t h)
{
    size_t mask = m->n_slots - 1;
    for (size_t i = h & mask;; i = (i + 1) & mask) {
        map_slot *s = &m->slots[i];
        if (!s->key) return s;
        if (s->hash == h && s->len == len && memcmp(s->key, key, len) == 0) return s;
    }
}

static lath_status rehash(map *m, size_t n_slots, lath_error *err)
{
    map fresh = {.alloc = m->alloc, .n_slots = n_slots, .count = m->count};
    fresh.slots = alloc_array(m->alloc, n_slots, sizeof(map_slot));
    if (!fresh.slots) return err_nomem(err, n_slots * sizeof(map_slot));
    for (size_t i = 0; i < m->n_slots; i++) {
        const map_slot *s = &m->slots[i];
        if (s->key) *probe(&fresh, s->key, s->len, s->hash) = *s;
    }
    size_t count = m->count;
    map_deinit(m);
    *m = fresh;
    m->count = count;
    return LATH_OK;
}

lath_status map_reserve(map *m, size_t n, lath_error *err)
{
    size_t slots = 16, want;
    if (!size_mul(n, 2, &want)) return err_nomem(err, SIZE_MAX);
    while (slots < want) slots *= 2;
    return slots > m->n_slots ? rehash(m, slots, err) : LATH_OK;
}

static lath_status put(map *m, const char *key, size_t len, uint64_t value, bool replace, bool *existed,
                       lath_error *err)
{
    if (len > UINT32_MAX) return err_set(err, LATH_ERR_LIMIT, "a key of %zu bytes", len);
    if ((m->count + 1) * 2 > m->n_slots) TRY(map_reserve(m, m->count + 1, err));
    uint32_t h = (uint32_t)hash_64(key, len);
    map_slot *s = probe(m, key, len, h);
    bool was = s->key != NULL;
    if (existed) *existed = was;
    if (!was) {
        *s = (map_slot){key, (uint32_t)len, h, value};
        m->count++;
    } else if (replace) {
        s->value = value;
    }
    return LATH_OK;
}

lath_status map_add(map *m, const char *key, size_t len, uint64_t value, bool *existed, lath_error *err)
{
    return put(m, key, len, value, false, existed, err);
}

lath_status map_set(map *m, const char *key, size_t len, uint64_t value, lath_error *err)
{
    return put(m, key, len, value, true, NULL, err);
}

bool map_find(const map *m, const char *key, size_t len, uint64_t *value)
{
    if (m->count == 0 || len > UINT32_MAX) return false;
    const map_slot *s = probe(m, key, len, (uint32_t)hash_64(key, len));
    if (!s->key) return false;
    if (value) *value = s->value;
    return true;
}
