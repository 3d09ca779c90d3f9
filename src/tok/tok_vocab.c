/* SPDX-License-Identifier: Apache-2.0
 * tok_vocab.c: filling and building the vocabulary table (layout and hash: tok_vocab.h). Open addressing with linear
 * probing. */
#include "tok/tok_vocab.h"

/* An id may exceed the number of tokens by holes, but not without bound: by_id has a place for each. */
enum { TOK_HOLES = 1 << 20, TOK_HOLES_PER_TOKEN = 16 };
enum { TOK_TEXT_MOST = 1 << 30 };

/* Strings lie one behind the other: an entry ends where the next begins. */
typedef struct entry {
    uint64_t hash;
    uint32_t at;
    int32_t id;
} entry;

void tok_vocab_init(tok_vocab *v, const lath_allocator *alloc)
{
    *v = (tok_vocab){.alloc = alloc, .max_id = -1};
    buf_init(&v->text, alloc, TOK_TEXT_MOST);
    buf_init(&v->pending, alloc, (size_t)4 * TOK_TEXT_MOST);
}

void tok_vocab_deinit(tok_vocab *v)
{
    if (!v->alloc) return;
    buf_deinit(&v->text);
    buf_deinit(&v->pending);
    alloc_table_release(v->alloc, v->slots, v->n_slots * sizeof(*v->slots));
    alloc_release(v->alloc, v->filter, (size_t)(v->filter_mask + 1) / 8);
    alloc_release(v->alloc, v->by_id, v->cap_ids * sizeof(*v->by_id));
    *v = (tok_vocab){0};
}

lath_status tok_vocab_add(tok_vocab *v, const char *s, size_t len, int32_t id, lath_error *err)
{
    if (v->text.len == 0) buf_char(&v->text, 0);
    entry e = {TOK_HASH_START, (uint32_t)v->text.len, id};
    char *to = buf_reserve(&v->text, len + 1), *place = buf_reserve(&v->pending, sizeof(e));
    if (!to) return buf_status(&v->text, err);
    if (!place) return buf_status(&v->pending, err);
    for (size_t i = 0; i < len; i++) {
        to[i] = s[i];
        e.hash = tok_hash_step(e.hash, (uint8_t)s[i]);
    }
    to[len] = 0;
    v->text.len += len + 1;
    memcpy(place, &e, sizeof(e));
    v->pending.len += sizeof(e);
    v->count++;
    if (id > v->max_id) v->max_id = id;
    if (len > v->max_len) v->max_len = len;
    return LATH_OK;
}

/* Entry i of the n that were added; *len is the length of its string. */
static entry entry_at(const tok_vocab *v, size_t i, size_t n, size_t *len)
{
    entry e, next;
    memcpy(&e, v->pending.data + i * sizeof(e), sizeof(e));
    next.at = (uint32_t)v->text.len;
    if (i + 1 < n) memcpy(&next, v->pending.data + (i + 1) * sizeof(e), sizeof(e));
    *len = next.at - e.at - 1;
    return e;
}

/* Doubles when tokens come one by one: added tokens may be many. */
static lath_status reserve_ids(tok_vocab *v, size_t n, lath_error *err)
{
    if (n > v->cap_ids) {
        size_t cap = v->cap_ids && n < v->cap_ids * 2 ? v->cap_ids * 2 : n;
        tok_vocab_text *p = alloc_array(v->alloc, cap, sizeof(*p));
        if (!p) return err_nomem(err, cap * sizeof(*p));
        if (v->n_ids) memcpy(p, v->by_id, v->n_ids * sizeof(*p));
        alloc_release(v->alloc, v->by_id, v->cap_ids * sizeof(*p));
        v->by_id = p;
        v->cap_ids = cap;
    }
    if (n > v->n_ids) v->n_ids = n;
    return LATH_OK;
}

static lath_status allocate(tok_vocab *v, lath_error *err)
{
    v->n_slots = 16;
    v->shift = 60;
    while (v->n_slots < v->count * 2) {
        v->n_slots *= 2;
        v->shift--;
    }
    size_t bits = v->n_slots * 4; /* 8 to 16 bits a token */
    if (bits < 64) bits = 64;
    v->slots = alloc_table(v->alloc, v->n_slots * sizeof(*v->slots));
    if (!v->slots) return err_nomem(err, v->n_slots * sizeof(*v->slots));
    memset(v->slots, 0, v->n_slots * sizeof(*v->slots));
    v->filter = alloc_zero(v->alloc, bits / 8);
    if (!v->filter) return err_nomem(err, bits / 8);
    v->filter_mask = bits - 1;
    return reserve_ids(v, (size_t)v->max_id + 1, err);
}

/* The slot of the entry's string, or the empty one where it belongs. */
static tok_vocab_slot *slot_of(const tok_vocab *v, const entry *e, size_t len)
{
    size_t i = (size_t)(e->hash >> v->shift);
    for (;; i = (i + 1) & (v->n_slots - 1)) {
        tok_vocab_slot *s = &v->slots[i];
        if (s->at == 0) return s;
        if (s->tag == (uint32_t)e->hash && s->len == len &&
            memcmp(v->text.data + s->at, v->text.data + e->at, len) == 0)
            return s;
    }
}

static lath_status insert(tok_vocab *v, const entry *e, size_t len, tok_vocab_twice twice, lath_error *err)
{
    const char *text = v->text.data + e->at;
    tok_vocab_slot *s = slot_of(v, e, len);
    if (s->at != 0) {
        if (twice == TOK_TWICE_ERROR) return err_set(err, LATH_ERR_FORMAT, "token \"%.80s\" is there twice", text);
        if (twice == TOK_TWICE_LAST) {
            v->by_id[s->id].at = 0;
            v->count--;
        }
    }
    tok_vocab_text *name = &v->by_id[e->id];
    if (name->at != 0) {
        return err_set(err, LATH_ERR_FORMAT, "tokens \"%.80s\" and \"%.80s\" have the same id %d",
                       v->text.data + name->at, text, (int)e->id);
    }
    *name = (tok_vocab_text){e->at, (uint32_t)len};
    *s = (tok_vocab_slot){(uint32_t)e->hash, e->at, (uint32_t)len, e->id};
    uint64_t bit = e->hash >> 24 & v->filter_mask;
    v->filter[bit >> 6] |= (uint64_t)1 << (bit & 63);
    return LATH_OK;
}

lath_status tok_vocab_build(tok_vocab *v, tok_vocab_twice twice, lath_error *err)
{
    if (v->count == 0) return err_set(err, LATH_ERR_FORMAT, "the vocabulary is empty");
    size_t n = v->count, len;
    if ((uint64_t)v->max_id > (uint64_t)v->count * TOK_HOLES_PER_TOKEN + TOK_HOLES) {
        for (size_t i = 0; i < n; i++) {
            entry e = entry_at(v, i, n, &len);
            if (e.id != v->max_id) continue;
            return err_set(err, LATH_ERR_FORMAT, "token \"%.80s\": id %d is out of range for %zu tokens",
                           v->text.data + e.at, (int)e.id, n);
        }
    }
    TRY(allocate(v, err));
    for (size_t i = 0; i < n; i++) {
        entry e = entry_at(v, i, n, &len);
        TRY(insert(v, &e, len, twice, err));
    }
    buf_deinit(&v->pending);
    buf_init(&v->pending, v->alloc, 0);
    return LATH_OK;
}

lath_status tok_vocab_name(tok_vocab *v, int32_t id, const char *s, size_t len, lath_error *err)
{
    TRY(reserve_ids(v, (size_t)id + 1, err));
    size_t old;
    const char *text = tok_vocab_get(v, id, &old);
    if (text && old == len && memcmp(text, s, len) == 0) return LATH_OK;
    tok_vocab_text name = {(uint32_t)v->text.len, (uint32_t)len};
    buf_append(&v->text, s, len);
    buf_char(&v->text, 0);
    TRY(buf_status(&v->text, err));
    v->by_id[id] = name;
    return LATH_OK;
}

int32_t tok_vocab_find(const tok_vocab *v, const char *s, size_t len)
{
    uint64_t h = TOK_HASH_START;
    for (size_t i = 0; i < len; i++) h = tok_hash_step(h, (uint8_t)s[i]);
    return tok_vocab_look(v, h, "", 0, s, len);
}

const char *tok_vocab_get(const tok_vocab *v, int32_t id, size_t *len)
{
    if (id < 0 || (size_t)id >= v->n_ids || v->by_id[id].at == 0) return NULL;
    if (len) *len = v->by_id[id].len;
    return v->text.data + v->by_id[id].at;
}

size_t tok_vocab_bytes(const tok_vocab *v)
{
    return v->text.cap + v->pending.cap + v->n_slots * sizeof(*v->slots) +
           (v->filter ? (size_t)(v->filter_mask + 1) / 8 : 0) + v->cap_ids * sizeof(*v->by_id);
}
