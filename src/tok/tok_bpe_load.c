/* SPDX-License-Identifier: Apache-2.0
 * tok_bpe_load.c: vocabulary and merges into a BPE model. Merges are kept as text while the file is read, because the
 * vocabulary may come behind them; then each is looked up: its two parts and what they become.
 */
#include "base/checked.h"
#include "base/unicode.h"
#include "base/utf8.h"
#include "tok/tok_bpe.h"
#include "tok/tok_bytelevel.h"
#include "tok/tok_split_regex.h"

/* A merge as it waits in l->merges: this, then the bytes of both parts. */
typedef struct pending {
    uint32_t n_a, n_b;
} pending;

enum { BATCH = 32 /* merges whose look-ups are started together */ };
enum { FIRST_BYTES = 256 * 256 * sizeof(uint32_t) };

/* ------------------------------------------------------------------------------------------------- while the file is read */

lath_status tok_bpe_add_merge(tok_load *l, const char *a, size_t n_a, const char *b, size_t n_b, lath_error *err)
{
    pending p = {(uint32_t)n_a, (uint32_t)n_b};
    if (n_a > INT32_MAX || n_b > INT32_MAX) return err_set(err, LATH_ERR_LIMIT, "a merge of over 2 GiB");
    char *to = buf_reserve(&l->merges, sizeof(p) + n_a + n_b);
    if (!to) return buf_status(&l->merges, err);
    memcpy(to, &p, sizeof(p));
    if (n_a) memcpy(to + sizeof(p), a, n_a);
    if (n_b) memcpy(to + sizeof(p) + n_a, b, n_b);
    l->merges.len += sizeof(p) + n_a + n_b;
    l->n_merges++;
    return LATH_OK;
}

lath_status tok_bpe_add_merge_line(tok_load *l, const char *s, size_t n, bool *ok, lath_error *err)
{
    const char *space = memchr(s, ' ', n);
    size_t n_a = space ? (size_t)(space - s) : 0;
    *ok = space && !memchr(space + 1, ' ', n - n_a - 1);
    return *ok ? tok_bpe_add_merge(l, s, n_a, space + 1, n - n_a - 1, err) : LATH_OK;
}

lath_status tok_bpe_on_merge(tok_load *l, const json_value *item, lath_error *err)
{
    if (item->kind == JSON_STRING) {
        bool ok = true;
        if (item->u.string.len >= 8 && memcmp(item->u.string.data, "#version", 8) == 0) return LATH_OK;
        TRY(tok_bpe_add_merge_line(l, item->u.string.data, item->u.string.len, &ok, err));
        if (ok) return LATH_OK;
        return TOK_FAIL(l, item, LATH_ERR_FORMAT, "model.merges: entry %zu: \"%.80s\" is not two tokens", l->n_merges,
                        item->u.string.data);
    }
    const json_value *a = item->kind == JSON_ARRAY && item->u.items.count == 2 ? item->u.items.first : NULL;
    if (!a || a->kind != JSON_STRING || a->next->kind != JSON_STRING)
        return TOK_FAIL(l, item, LATH_ERR_FORMAT, "model.merges: entry %zu: want two tokens", l->n_merges);
    const json_value *b = a->next;
    return tok_bpe_add_merge(l, a->u.string.data, a->u.string.len, b->u.string.data, b->u.string.len, err);
}

/* ----------------------------------------------------------------------------------------------------------- merge table */

static unsigned bits_for(uint64_t n)
{
    unsigned bits = 1;
    while (bits < 63 && n >> bits) bits++;
    return bits;
}

static lath_status make_table(tok_load *l, size_t n, tok_merge_table *t)
{
    t->n_lines = 2;
    t->shift = 63;
    while (t->n_lines * 6 < n) {
        t->n_lines *= 2;
        t->shift--;
    }
    t->slots = alloc_table(l->t->alloc, t->n_lines * 64);
    if (!t->slots) return err_nomem(l->err, t->n_lines * 64);
    memset(t->slots, 0xFF, t->n_lines * 64);
    return LATH_OK;
}

static lath_status make_tables(tok_load *l, tok_merges *m)
{
    const lath_allocator *alloc = l->t->alloc;
    m->sym_bits = bits_for((uint64_t)l->t->vocab.max_id + 1); /* all ones is no symbol */
    if (2 * m->sym_bits > 62 || l->n_merges >= (uint64_t)1 << (64 - 2 * m->sym_bits) || l->n_merges >= UINT32_MAX) {
        return TOK_FAIL(l, NULL, LATH_ERR_LIMIT, "model: %zu merges of ids up to %d are too many", l->n_merges,
                        (int)l->t->vocab.max_id);
    }
    m->n = l->n_merges;
    TRY(make_table(l, m->n < TOK_HOT_MERGES ? m->n : TOK_HOT_MERGES, &m->hot));
    TRY(make_table(l, m->n, &m->rest));
    size_t words = 1;
    while (words * 8 < m->n) words *= 2; /* 8 to 16 bits a merge */
    m->filter = alloc_array(alloc, words, sizeof(*m->filter));
    if (!m->filter) return err_nomem(l->err, words * 8);
    m->filter_mask = words - 1;
    m->products = alloc_array(alloc, m->n + 1, sizeof(*m->products));
    return m->products ? LATH_OK : err_nomem(l->err, (m->n + 1) * sizeof(*m->products));
}

/* Of a pair that is there twice the later rank counts, as in the reference; it is never in both tables. */
static void insert(tok_merges *m, int32_t left, int32_t right, uint32_t rank)
{
    uint64_t key = (uint64_t)(uint32_t)left << m->sym_bits | (uint32_t)right, hash = key * TOK_MERGE_HASH;
    unsigned rank_bits = 64 - 2 * m->sym_bits;
    bool hot = rank < TOK_HOT_MERGES || tok_merge_table_find(&m->hot, key, hash, rank_bits) != TOK_NO_RANK;
    tok_merge_table *t = hot ? &m->hot : &m->rest;
    size_t at = (size_t)(hash >> t->shift) * 8, mask = t->n_lines * 8 - 1;
    while (t->slots[at] != UINT64_MAX && t->slots[at] >> rank_bits != key) at = (at + 1) & mask;
    t->slots[at] = key << rank_bits | rank;
    if (!hot) m->filter[hash >> 20 & m->filter_mask] |= (uint64_t)1 << (hash >> 14 & 63);
}

/* One merge on its way through the look-ups. */
typedef struct lookup {
    const char *a, *b;
    size_t n_a, n_b;
    uint64_t hash_a, hash_b, hash_ab;
    int32_t left, right;
} lookup;

static uint64_t hash_on(uint64_t h, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) h = tok_hash_step(h, (uint8_t)s[i]);
    return h;
}

static void prefetch_slot(const tok_vocab *v, uint64_t h) { __builtin_prefetch(&v->slots[h >> v->shift]); }
static void prefetch_text(const tok_vocab *v, uint64_t h)
{
    __builtin_prefetch(v->text.data + v->slots[h >> v->shift].at);
}

/* Reads a merge and starts what its look-ups need first. */
static const char *start_lookup(const tok_vocab *v, const char *at, size_t skip, lookup *k)
{
    pending p;
    memcpy(&p, at, sizeof(p));
    k->a = at + sizeof(p);
    k->n_a = p.n_a;
    k->b = k->a + p.n_a;
    k->n_b = p.n_b;
    k->hash_a = hash_on(TOK_HASH_START, k->a, k->n_a);
    k->hash_b = hash_on(TOK_HASH_START, k->b, k->n_b);
    k->hash_ab = k->n_b < skip ? 0 : hash_on(k->hash_a, k->b + skip, k->n_b - skip);
    prefetch_slot(v, k->hash_a);
    prefetch_slot(v, k->hash_b);
    prefetch_slot(v, k->hash_ab);
    return k->b + p.n_b;
}

static lath_status not_a_token(tok_load *l, const json_value *at, size_t rank, const lookup *k, size_t n_a,
                               const char *b, size_t n_b)
{
    return TOK_FAIL(l, at, LATH_ERR_FORMAT,
                    "model.merges: entry %zu (\"%.*s\", \"%.*s\"): \"%.*s%.*s\" is not in the vocabulary", rank,
                    (int)(k->n_a < 40 ? k->n_a : 40), k->a, (int)(k->n_b < 40 ? k->n_b : 40), k->b,
                    (int)(n_a < 40 ? n_a : 40), k->a, (int)(n_b < 40 ? n_b : 40), b);
}

static lath_status finish_lookup(tok_load *l, const json_value *at, tok_merges *m, size_t rank, size_t skip, lookup *k)
{
    const tok_vocab *v = &l->t->vocab;
    k->left = tok_vocab_look(v, k->hash_a, "", 0, k->a, k->n_a);
    if (k->left < 0) return not_a_token(l, at, rank, k, k->n_a, k->b, 0);
    k->right = tok_vocab_look(v, k->hash_b, "", 0, k->b, k->n_b);
    if (k->right < 0) return not_a_token(l, at, rank, k, 0, k->b, k->n_b);
    if (k->n_b < skip || (skip < k->n_b && ((uint8_t)k->b[skip] & 0xC0) == 0x80)) {
        return TOK_FAIL(l, at, LATH_ERR_FORMAT,
                        "model.merges: entry %zu: \"%.80s\" does not begin with the prefix of continuing subwords",
                        rank, tok_vocab_get(v, k->right, NULL));
    }
    int32_t both = tok_vocab_look(v, k->hash_ab, k->a, k->n_a, k->b + skip, k->n_b - skip);
    if (both < 0) return not_a_token(l, at, rank, k, k->n_a, k->b + skip, k->n_b - skip);
    m->products[rank] = both;
    tok_merge_prefetch(m, k->left, k->right);
    return LATH_OK;
}

/* In batches, each step for all merges of a batch, so that memory answers many look-ups at a time. */
static lath_status resolve_merges(tok_load *l, const json_value *at, tok_merges *m, size_t skip)
{
    const tok_vocab *v = &l->t->vocab;
    const char *p = l->merges.data;
    lookup batch[BATCH];
    for (size_t rank = 0; rank < m->n; rank += BATCH) {
        size_t n = m->n - rank < BATCH ? m->n - rank : BATCH;
        for (size_t k = 0; k < n; k++) p = start_lookup(v, p, skip, &batch[k]);
        for (size_t k = 0; k < n; k++) {
            prefetch_text(v, batch[k].hash_a);
            prefetch_text(v, batch[k].hash_b);
            prefetch_text(v, batch[k].hash_ab);
        }
        for (size_t k = 0; k < n; k++) TRY(finish_lookup(l, at, m, rank + k, skip, &batch[k]));
        for (size_t k = 0; k < n; k++) insert(m, batch[k].left, batch[k].right, (uint32_t)(rank + k));
    }
    return LATH_OK;
}

/* ----------------------------------------------------------------------------------------------------------------- model */

static void deinit(tok_model *model)
{
    tok_bpe *m = (tok_bpe *)(uintptr_t)model->param;
    if (!m) return;
    tok_merges *x = &m->merges;
    alloc_table_release(m->alloc, x->hot.slots, x->hot.n_lines * 64);
    alloc_table_release(m->alloc, x->rest.slots, x->rest.n_lines * 64);
    alloc_release(m->alloc, x->filter, (x->filter_mask + 1) * sizeof(*x->filter));
    alloc_release(m->alloc, x->products, (x->n + 1) * sizeof(*x->products));
    alloc_release(m->alloc, x->first, FIRST_BYTES);
    tok_bpe_cache_destroy(m->cache);
}

static size_t bytes(const tok_model *model)
{
    const tok_bpe *m = model->param;
    const tok_merges *x = &m->merges;
    return (x->hot.n_lines + x->rest.n_lines) * 64 + (x->filter_mask + 1) * sizeof(*x->filter) +
           (x->n + 1) * sizeof(*x->products) + (x->first ? FIRST_BYTES : 0) + tok_bpe_cache_bytes(m->cache);
}

/* Ids of <0x00> .. <0xFF>. */
static void find_fallback(tok_bpe *m)
{
    static const char digits[] = "0123456789ABCDEF";
    for (int k = 0; k < 256; k++) {
        char name[6] = {'<', '0', 'x', digits[k >> 4], digits[k & 15], '>'};
        m->fallback[k] = tok_vocab_find(m->vocab, name, sizeof(name));
    }
}

static lath_status set_affixes(tok_load *l, const json_value *at, const tok_bpe_options *o, tok_bpe *m)
{
    m->prefix = o->prefix;
    m->suffix = o->suffix;
    if (o->prefix.n <= TOK_AFFIX_MOST && o->suffix.n <= TOK_AFFIX_MOST) return LATH_OK;
    return TOK_FAIL(l, at, LATH_ERR_LIMIT, "model: a prefix or suffix of subwords over %d bytes", (int)TOK_AFFIX_MOST);
}

lath_status tok_bpe_init(tok_load *l, const json_value *at, const tok_bpe_options *o, tok_model *out)
{
    tok_bpe *m = tok_load_array(l, 1, sizeof(*m));
    if (!m) return err_nomem(l->err, sizeof(*m));
    m->alloc = l->t->alloc;
    m->vocab = &l->t->vocab;
    *out = (tok_model){.run = tok_bpe_run, .param = m, .deinit = deinit, .bytes = bytes};
    m->unk = -1;
    if (o->unk.s) {
        m->unk = tok_vocab_find(m->vocab, o->unk.s, o->unk.n);
        if (m->unk < 0) m->unk = TOK_BPE_UNK_MISSING;
    }
    m->fuse_unk = o->fuse_unk;
    m->byte_fallback = o->byte_fallback;
    m->ignore_merges = o->ignore_merges;
    TRY(set_affixes(l, at, o, m));
    for (int k = 0; k < 256; k++) {
        char c = (char)k;
        m->ascii[k] = k < 128 ? tok_vocab_find(m->vocab, &c, 1) : -1;
    }
    find_fallback(m);
    TRY(make_tables(l, &m->merges));
    TRY(resolve_merges(l, at, &m->merges, m->prefix.n));
    buf_deinit(&l->merges);
    buf_init(&l->merges, l->t->alloc, 0);
    return tok_bpe_cache_create(m->alloc, &m->cache, l->err);
}

static lath_status optional_string(tok_load *l, const json_value *v, const char *key, tok_string *out)
{
    *out = (tok_string){NULL, 0};
    return json_present(json_get(v, key)) ? tok_load_string(l, v, "model", key, out) : LATH_OK;
}

/* Dropout other than 0 makes encoding random. */
static lath_status check_dropout(tok_load *l, const json_value *v)
{
    const json_value *d = json_get(v, "dropout");
    if (!json_present(d)) return LATH_OK;
    if ((d->kind == JSON_INT && d->u.integer == 0) || (d->kind == JSON_REAL && d->u.real == 0)) return LATH_OK;
    return TOK_FAIL(l, d, LATH_ERR_UNSUPPORTED, "model: \"dropout\" is not supported");
}

lath_status tok_bpe_load(tok_load *l, const json_value *v, tok_model *out)
{
    static const char *const known[] = {"type",
                                        "dropout",
                                        "unk_token",
                                        "continuing_subword_prefix",
                                        "end_of_word_suffix",
                                        "fuse_unk",
                                        "byte_fallback",
                                        "ignore_merges",
                                        "vocab",
                                        "merges",
                                        NULL};
    tok_bpe_options o = {0};
    const json_value *merges = json_get(v, "merges");
    TRY(tok_load_fields(l, v, "model", known));
    TRY(check_dropout(l, v));
    TRY(optional_string(l, v, "unk_token", &o.unk));
    TRY(optional_string(l, v, "continuing_subword_prefix", &o.prefix));
    TRY(optional_string(l, v, "end_of_word_suffix", &o.suffix));
    TRY(json_get_bool(v, "fuse_unk", l->name, &o.fuse_unk, l->err));
    TRY(json_get_bool(v, "byte_fallback", l->name, &o.byte_fallback, l->err));
    TRY(json_get_bool(v, "ignore_merges", l->name, &o.ignore_merges, l->err));
    if (!merges || merges->kind != JSON_ARRAY)
        return TOK_FAIL(l, merges ? merges : v, LATH_ERR_FORMAT, "model: want a list \"merges\"");
    return tok_bpe_init(l, merges, &o, out);
}

/* ----------------------------------------------------------------------------------------------------------------- fusing */

/* All bytes have a symbol: the model can begin with bytes. */
static bool reads_bytes(tok_bpe *m, int32_t symbols[256])
{
    if (m->prefix.n || m->suffix.n) return false;
    for (int k = 0; k < 256; k++) {
        char name[4];
        symbols[k] = tok_vocab_find(m->vocab, name, utf8_encode(tok_byte_to_char((uint8_t)k), name));
        if (symbols[k] < 0) return false;
    }
    return true;
}

static lath_status rank_bytes(tok_load *l, tok_bpe *m, const int32_t symbols[256])
{
    uint32_t *first = m->merges.first = alloc_bytes(m->alloc, FIRST_BYTES, 64);
    if (!first) return err_nomem(l->err, FIRST_BYTES);
    for (int a = 0; a < 256; a++) {
        for (int b = 0; b < 256; b++) first[a << 8 | b] = tok_merge_rank(&m->merges, symbols[a], symbols[b]);
    }
    return LATH_OK;
}

/* Before a model that reads bytes, ByteLevel need not write them as characters; where only a known pattern is left,
 * the model splits by it itself. */
static lath_status fuse_bytes(tok_load *l, tok_bpe *m)
{
    tok *t = l->t;
    bool sequence = t->splitter.n_items > 0;
    size_t n = sequence ? t->splitter.n_items : 1;
    const tok_splitter *v = sequence ? t->splitter.items : &t->splitter;
    const tok_bytelevel *last = tok_bytelevel_of(&v[n - 1]);
    int32_t symbols[256];
    if (!last || !reads_bytes(m, symbols)) return LATH_OK;
    const tok_pattern *pattern = NULL;
    if (!last->prefix && n == 1 && last->regex) pattern = tok_pattern_gpt2();
    if (!last->prefix && n == 2 && !last->regex) pattern = tok_split_regex_isolates(&v[0]);
    tok_splitter *copy = tok_load_array(l, n, sizeof(*copy));
    if (!copy) return err_nomem(l->err, n * sizeof(*copy));
    memcpy(copy, v, n * sizeof(*copy));
    tok_bytelevel_keep_bytes(&copy[n - 1]);
    if (sequence)
        t->splitter.items = copy;
    else
        t->splitter = copy[0];
    TRY(rank_bytes(l, m, symbols));
    memcpy(m->ascii, symbols, sizeof(symbols));
    m->bytes = true;
    m->pattern = pattern;
    if (pattern || (!last->prefix && !last->regex && n == 1)) t->splitter.run = NULL;
    return LATH_OK;
}

/* Where normalizing is no more than writing U+2581 for spaces, the model reads spaces so, and the text stays as it is. A
 * splitter at spaces had nothing to do then. */
static void fuse_spaces(tok *t, tok_bpe *m)
{
    static const char mark[] = "\xE2\x96\x81";
    tok_string what, with;
    bool affixed = m->prefix.n || m->suffix.n;
    if (!tok_norm_replaces(&t->normalizer, &what, &with) || affixed || m->bytes || m->ignore_merges) return;
    if (what.n != 1 || what.s[0] != ' ' || with.n != 3 || memcmp(with.s, mark, 3) != 0) return;
    if (t->added.normalized.edges || (t->splitter.run && !tok_split_regex_at_space(&t->splitter))) return;
    int32_t id = tok_vocab_find(m->vocab, mark, 3);
    if (id < 0) return;
    m->ascii[' '] = id;
    m->space_is_mark = true;
    t->normalizer.run = NULL;
    t->splitter.run = NULL;
}

lath_status tok_bpe_fuse(tok_load *l)
{
    tok *t = l->t;
    if (t->model.run != tok_bpe_run) return LATH_OK;
    tok_bpe *m = (tok_bpe *)(uintptr_t)t->model.param;
    if (t->splitter.run) TRY(fuse_bytes(l, m));
    fuse_spaces(t, m);
    return tok_seams_build(l, m);
}
