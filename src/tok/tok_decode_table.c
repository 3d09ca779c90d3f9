/* SPDX-License-Identifier: Apache-2.0
 * tok_decode_table.c: one table for all ids:
 *
 *     at[id] .. at[id + 1]: the bytes that the token becomes, in `bytes`; flags[id]: no token, special, a byte
 *
 * ByteLevel: bytes are those that the token stands for; what comes out is repaired where it is not UTF-8. Else bytes are
 * the token's text after Replace; a run of byte tokens is text where it is UTF-8, and U+FFFD for each byte where it is
 * not, as in the reference.
 */
#include "tok/tok_decode_table.h"

#include <stdatomic.h>

#include "base/unicode.h"
#include "base/utf8.h"
#include "tok/tok_bytelevel.h"

enum { IS_NONE = 1, IS_SPECIAL = 2, IS_BYTE = 4 };
enum { WORTH_WHILE = 1 << 14 /* tokens decoded without the table */, BYTES_MOST = 1 << 30 };

typedef struct table {
    buf bytes;
    uint32_t *at;   /* [n_ids + 1] */
    uint8_t *flags; /* [n_ids] */
    uint8_t *plain; /* [n_ids] neither IS_NONE nor IS_SPECIAL */
    size_t n_ids;
    size_t longest; /* bytes of a token */
} table;

struct tok_decode_table {
    bool byte_level;
    const tok_decoder *replace[4]; /* [n_replace] before the rest */
    size_t n_replace;
    bool byte_fallback;
    size_t strip; /* leading spaces that go, once all is together */
    _Atomic size_t decoded;
    _Atomic(table *) table;
};

/* ----------------------------------------------------------------------------------------------------------- eligible */

static bool describe(const tok_decoder *d, tok_decode_table *x)
{
    if (d->stream == TOK_STREAM_BYTE_LEVEL) {
        x->byte_level = true;
        return true;
    }
    if (d->stream != TOK_STREAM_SEQUENCE || d->n_items == 0) return false;
    if (d->n_items == 1) return describe(&d->items[0], x);
    size_t i = 0;
    bool fused = false;
    for (; i < d->n_items && tok_decoder_is_replace(&d->items[i]) && x->n_replace < 4; i++)
        x->replace[x->n_replace++] = &d->items[i];
    if (i < d->n_items && d->items[i].stream == TOK_STREAM_BYTE_FALLBACK) {
        x->byte_fallback = true;
        i++;
    }
    if (i < d->n_items && d->items[i].stream == TOK_STREAM_FUSE) {
        fused = true;
        i++;
    }
    if (fused && i < d->n_items && d->items[i].stream == TOK_STREAM_STRIP) {
        tok_string c = d->items[i].strip.content;
        if (c.n != 1 || c.s[0] != ' ' || d->items[i].strip.stop != 0) return false;
        x->strip = d->items[i].strip.start;
        i++;
    }
    return i == d->n_items;
}

lath_status tok_decode_table_create(tok *t, lath_error *err)
{
    tok_decode_table x = {0};
    if (!t->decoder.run || !describe(&t->decoder, &x)) return LATH_OK;
    t->decode_table = alloc_zero(t->alloc, sizeof(x));
    if (!t->decode_table) return err_nomem(err, sizeof(x));
    t->decode_table->byte_level = x.byte_level;
    t->decode_table->byte_fallback = x.byte_fallback;
    t->decode_table->strip = x.strip;
    t->decode_table->n_replace = x.n_replace;
    memcpy(t->decode_table->replace, x.replace, sizeof(x.replace));
    return LATH_OK;
}

static void release(const lath_allocator *alloc, table *b)
{
    if (!b) return;
    buf_deinit(&b->bytes);
    alloc_release(alloc, b->at, (b->n_ids + 1) * sizeof(*b->at));
    alloc_release(alloc, b->flags, b->n_ids);
    alloc_release(alloc, b->plain, b->n_ids);
    alloc_release(alloc, b, sizeof(*b));
}

void tok_decode_table_destroy(tok *t)
{
    if (!t->decode_table) return;
    release(t->alloc, atomic_load(&t->decode_table->table));
    alloc_release(t->alloc, t->decode_table, sizeof(*t->decode_table));
}

size_t tok_decode_table_bytes(const tok *t)
{
    if (!t->decode_table) return 0;
    const table *b = atomic_load(&t->decode_table->table);
    size_t n = b ? sizeof(*b) + b->bytes.cap + (b->n_ids + 1) * sizeof(*b->at) + 2 * b->n_ids : 0;
    return sizeof(*t->decode_table) + n;
}

/* ------------------------------------------------------------------------------------------------------------- making */

static lath_status add_id(const tok *t, table *b, arena *scratch, int32_t id, lath_error *err)
{
    const tok_decode_table *x = t->decode_table;
    tok_string s = tok_decoder_text(t, id);
    b->at[id] = (uint32_t)b->bytes.len;
    if (!s.s) {
        b->flags[id] = IS_NONE;
        return LATH_OK;
    }
    if (map_find(&t->added.special, s.s, s.n, NULL)) b->flags[id] |= IS_SPECIAL;
    if (x->byte_level) {
        char *to = buf_reserve(&b->bytes, s.n + 1);
        if (!to) return buf_status(&b->bytes, err);
        size_t n = tok_bytelevel_bytes(s.s, s.n, to);
        if (n == SIZE_MAX) memcpy(to, s.s, s.n);
        b->bytes.len += n == SIZE_MAX ? s.n : n;
        return LATH_OK;
    }
    for (size_t k = 0; k < x->n_replace; k++) {
        size_t n = 1;
        TRY(x->replace[k]->run(x->replace[k], scratch, &s, &n, err));
    }
    int byte = x->byte_fallback ? tok_decoder_byte(s) : -1;
    if (byte >= 0) b->flags[id] |= IS_BYTE;
    if (byte >= 0)
        buf_char(&b->bytes, (char)byte);
    else
        buf_append(&b->bytes, s.s, s.n);
    return buf_status(&b->bytes, err);
}

static lath_status fill(const tok *t, table *b, lath_error *err)
{
    lath_status st = LATH_OK;
    arena scratch;
    arena_init(&scratch, t->alloc);
    for (size_t id = 0; id < b->n_ids && st == LATH_OK; id++) {
        st = add_id(t, b, &scratch, (int32_t)id, err);
        arena_reset(&scratch);
        if (b->bytes.len - b->at[id] > b->longest) b->longest = b->bytes.len - b->at[id];
        b->plain[id] = !(b->flags[id] & (IS_NONE | IS_SPECIAL));
    }
    b->at[b->n_ids] = (uint32_t)b->bytes.len;
    arena_deinit(&scratch);
    return st;
}

/* NULL when it cannot be made: decoding then goes on without it. */
static table *make(const tok *t)
{
    table *b = alloc_zero(t->alloc, sizeof(*b)), *other = NULL;
    if (!b) return NULL;
    b->n_ids = t->vocab.n_ids;
    buf_init(&b->bytes, t->alloc, BYTES_MOST);
    b->at = alloc_array(t->alloc, b->n_ids + 1, sizeof(*b->at));
    b->flags = alloc_array(t->alloc, b->n_ids, 1);
    b->plain = alloc_array(t->alloc, b->n_ids, 1);
    lath_error ignored;
    if (!b->at || !b->flags || !b->plain || fill(t, b, &ignored) != LATH_OK) {
        release(t->alloc, b);
        return NULL;
    }
    if (atomic_compare_exchange_strong(&t->decode_table->table, &other, b)) return b;
    release(t->alloc, b);
    return other;
}

static const table *get(const tok *t, size_t n)
{
    tok_decode_table *x = t->decode_table;
    table *b = atomic_load_explicit(&x->table, memory_order_acquire);
    if (b) return b;
    if (atomic_fetch_add_explicit(&x->decoded, n, memory_order_relaxed) + n < WORTH_WHILE) return NULL;
    return make(t);
}

/* ------------------------------------------------------------------------------------------------------------ decoding */

static lath_status no_token(const int32_t *ids, size_t i, lath_error *err)
{
    return err_set(err, LATH_ERR_INPUT, "id %d (position %zu) is no token", (int)ids[i], i);
}

/* Room for a token of any length is there. */
static inline void put(const table *b, int32_t id, buf *out)
{
    uint32_t at = b->at[id], n = b->at[id + 1] - at;
    const char *from = b->bytes.data + at;
    char *to = out->data + out->len;
    if (n <= 16 && at + 16 <= b->bytes.len) {
        memcpy(to, from, 16);
    } else {
        memcpy(to, from, n);
    }
    out->len += n;
}

static const char replacement[] = "\xEF\xBF\xBD";

/* The bytes of a run of byte tokens, from `begin` on, are text or not. */
static lath_status end_run(buf *out, size_t begin, lath_error *err)
{
    size_t n = out->len - begin;
    if (utf8_first_invalid(out->data + begin, n) == n) return LATH_OK;
    out->len = begin;
    for (size_t k = 0; k < n; k++) buf_append(out, replacement, 3);
    return buf_status(out, err);
}

static lath_status put_all(const table *b, const int32_t *ids, size_t n, uint8_t skip, buf *out, lath_error *err)
{
    size_t run = SIZE_MAX; /* where a run of byte tokens began */
    for (size_t i = 0; i < n; i++) {
        if (i + 8 < n && (size_t)ids[i + 8] < b->n_ids) __builtin_prefetch(&b->at[ids[i + 8]]);
        if (i + 4 < n && (size_t)ids[i + 4] < b->n_ids) __builtin_prefetch(b->bytes.data + b->at[ids[i + 4]]);
        if (ids[i] < 0 || (size_t)ids[i] >= b->n_ids) return no_token(ids, i, err);
        uint8_t flags = b->flags[ids[i]];
        if (flags & (IS_NONE | skip | IS_BYTE) || run != SIZE_MAX) {
            if (flags & IS_NONE) return no_token(ids, i, err);
            if (flags & skip) continue;
            bool byte = flags & IS_BYTE;
            if (run != SIZE_MAX && !byte) {
                TRY(end_run(out, run, err));
                run = SIZE_MAX;
            } else if (byte && run == SIZE_MAX) {
                run = out->len;
            }
        }
        if (out->cap - out->len < b->longest + 16 && !buf_reserve(out, b->longest + 16)) return buf_status(out, err);
        put(b, ids[i], out);
    }
    return run != SIZE_MAX ? end_run(out, run, err) : LATH_OK;
}

static lath_status repair(const tok *t, buf *out, size_t begin, lath_error *err)
{
    size_t n = out->len - begin;
    if (utf8_first_invalid(out->data + begin, n) == n) return LATH_OK;
    char *copy = alloc_bytes(t->alloc, n, 1);
    if (!copy) return err_nomem(err, n);
    memcpy(copy, out->data + begin, n);
    out->len = begin;
    utf8_append_lossy(out, copy, n);
    alloc_release(t->alloc, copy, n);
    return buf_status(out, err);
}

lath_status tok_decode_table_run(const tok *t, const int32_t *ids, size_t n, bool skip_special, buf *out, bool *done,
                                 lath_error *err)
{
    const tok_decode_table *x = t->decode_table;
    const table *b = x && n ? get(t, n) : NULL;
    size_t begin = out->len;
    *done = b != NULL;
    if (!b) return LATH_OK;
    if (!buf_reserve(out, n * 4 + b->longest + 16)) return buf_status(out, err);
    lath_status st = put_all(b, ids, n, skip_special ? IS_SPECIAL : 0, out, err);
    if (st == LATH_OK && x->byte_level) st = repair(t, out, begin, err);
    if (st != LATH_OK) {
        out->len = begin;
        return st;
    }
    size_t strip = 0;
    while (strip < x->strip && begin + strip < out->len && out->data[begin + strip] == ' ') strip++;
    if (strip) memmove(out->data + begin, out->data + begin + strip, out->len - begin - strip);
    out->len -= strip;
    return LATH_OK;
}

lath_status tok_get_bytes(const tok *t, tok_bytes *out, lath_error *err)
{
    if (!t->decode_table)
        return err_set(err, LATH_ERR_UNSUPPORTED,
                       "what a token of this tokenizer stands for depends on its neighbours: no grammar can be kept");
    const table *b = atomic_load_explicit(&t->decode_table->table, memory_order_acquire);
    if (!b) b = make(t);
    if (!b) return err_nomem(err, 0);
    *out = (tok_bytes){b->bytes.data, b->at, b->plain, b->n_ids};
    return LATH_OK;
}
