/* SPDX-License-Identifier: Apache-2.0
 * tok_unigram.c: the Unigram model (Kudo 2018): of all ways to cut a span into pieces the one with the largest sum of
 * scores, by Viterbi over a double-array trie. Sums are f64 and ties go to the piece that begins first, as in the
 * reference; a character that is no piece costs the lowest score - 10, and neighbouring unknown characters are one
 * token (or their bytes, with byte_fallback).
 *
 * Behind Metaspace, which cuts before every mark, spaces are read as marks where they stand and a mark that would be
 * put before the text is only thought of, so that offsets stay those of the text and nothing is copied. Where
 * Metaspace does not split but no piece has a mark behind its first character, the text is still worked on from mark
 * to mark, with the running sum carried on: every sum is the very one that the whole text would give.
 */
#include "tok/tok_unigram.h"

#include <math.h>
#include <stdio.h>

#include "base/checked.h"
#include "tok/tok_darray.h"
#include "tok/tok_metaspace.h"

static const double unk_penalty = 10.0;

typedef struct unigram {
    tok_darray trie;      /* values are ids */
    const double *scores; /* [ids]; NULL: all of them are exact in the units of the trie */
    double unk_score;
    int32_t unk;               /* -1: none */
    const int32_t *bytes;      /* [256] ids for byte_fallback, NULL: not wanted; -1: that byte has none */
    const tok_metaspace *meta; /* spaces are read as marks */
    uint32_t mark_node;        /* of the mark in the trie; 0: no piece begins with it */
} unigram;

/* The best way to a position of the unit. */
typedef struct step {
    double sum;
    uint32_t from, node; /* where its last piece begins; its node, 0: an unknown character */
} step;

#define UNREACHED UINT32_MAX

/* A unit: positions 0..n. With `lead` the first of them is a mark that does not stand in the text. */
typedef struct walk {
    const unigram *u;
    tok_work *w;
    const tok_text *t;
    step *v; /* [cap] */
    size_t cap;
    size_t run_b, run_e; /* bytes of t of an unknown run that is open */
    bool run_open, run_lead;
} walk;

/* ---------------------------------------------------------------------------------------------------------- unknown */

/* Follows the pieces of the trie along the bytes that [b, e) of t stands for, a mark before them with `lead`. */
static int32_t piece_of_run(const walk *k)
{
    const unigram *u = k->u;
    uint32_t node = k->run_lead ? u->mark_node : 0;
    if (k->run_lead && node == 0) return -1;
    for (size_t i = k->run_b; i < k->run_e; i++) {
        if (u->meta && k->t->s[i] == ' ') {
            for (size_t j = 0; j < u->meta->n_mark; j++) {
                node = tok_darray_step(u->trie.units, node, (uint8_t)u->meta->mark[j]);
                if (node == 0) return -1;
            }
            continue;
        }
        node = tok_darray_step(u->trie.units, node, (uint8_t)k->t->s[i]);
        if (node == 0) return -1;
    }
    return u->trie.values[node];
}

static lath_status emit_bytes(walk *k, const char *s, size_t n, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < n; i++) TRY(tok_emit(k->w, k->w->t->alloc, k->u->bytes[(uint8_t)s[i]], from, to));
    return LATH_OK;
}

static bool has_bytes(const unigram *u, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (u->bytes[(uint8_t)s[i]] < 0) return false;
    }
    return true;
}

/* The bytes of the run, each with the offsets of all of it; *done is false when one of them has no token. */
static lath_status run_as_bytes(walk *k, uint32_t from, uint32_t to, bool *done)
{
    const unigram *u = k->u;
    const char *s = k->t->s;
    bool spaces = k->run_lead;
    *done = true;
    for (size_t i = k->run_b; i < k->run_e && *done; i++) {
        if (u->meta && s[i] == ' ')
            spaces = true;
        else
            *done = u->bytes[(uint8_t)s[i]] >= 0;
    }
    if (spaces && *done) *done = has_bytes(u, u->meta->mark, u->meta->n_mark);
    if (!*done) return LATH_OK;
    if (k->run_lead) TRY(emit_bytes(k, u->meta->mark, u->meta->n_mark, from, to));
    for (size_t i = k->run_b; i < k->run_e; i++) {
        if (u->meta && s[i] == ' ')
            TRY(emit_bytes(k, u->meta->mark, u->meta->n_mark, from, to));
        else
            TRY(emit_bytes(k, s + i, 1, from, to));
    }
    return LATH_OK;
}

static uint32_t first_char_end(const tok_text *t, size_t b)
{
    size_t e = b + 1;
    while (e < t->n && ((uint8_t)t->s[e] & 0xC0) == 0x80) e++;
    return tok_text_to(t, e);
}

/* Offsets of [b, e); of nothing (a mark that is only thought of) those of the character behind it. */
static inline uint32_t end_of(const tok_text *t, size_t b, size_t e)
{
    return b == e ? first_char_end(t, b) : tok_text_to(t, e);
}

/* Ends the unknown run: the piece that it happens to be, its bytes, or one unknown token. */
static lath_status close_run(walk *k)
{
    if (!k->run_open) return LATH_OK;
    k->run_open = false;
    uint32_t from = tok_text_from(k->t, k->run_b), to = end_of(k->t, k->run_b, k->run_e);
    int32_t id = piece_of_run(k);
    if (id < 0 && k->u->bytes) {
        bool done;
        TRY(run_as_bytes(k, from, to, &done));
        if (done) return LATH_OK;
    }
    TRY(tok_emit(k->w, k->w->t->alloc, id >= 0 ? id : k->u->unk, from, to));
    if (!k->run_lead) tok_trim_mark(k->w, k->t->s + k->run_b, k->run_e - k->run_b, !k->u->meta);
    return LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------------- viterbi */

static inline void offer(step *to, double sum, uint32_t from, uint32_t node)
{
    if (to->from == UNREACHED || sum > to->sum) *to = (step){sum, from, node};
}

static inline double score_of(const unigram *u, uint32_t node, float score)
{
    return u->scores ? u->scores[u->trie.values[node]] : (double)score;
}

static inline size_t char_bytes(uint8_t lead) { return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4; }

static lath_status no_unk(const walk *k)
{
    return err_set(k->w->err, LATH_ERR_INPUT, "the text has a character that is no piece, and the model no \"unk_id\"");
}

/* Where pieces begin: position `from` of the unit, reached with `sum`. A character ends at byte `single`. */
typedef struct origin {
    double sum;
    uint32_t from;
    size_t single;
} origin;

/* Offers all pieces that begin at o: the trie's node has been walked to before byte `at` of the n at s. v: of byte 0. */
static inline lath_status extend(walk *k, step *v, const char *s, size_t n, origin o, size_t at, uint32_t node)
{
    const unigram *u = k->u;
    const tok_darray_unit *units = u->trie.units;
    bool found = false;
    while (at < n) {
        node = tok_darray_step(units, node, (uint8_t)s[at]);
        if (node == 0) break;
        at++;
        float score = units[node].score;
        if (isnan(score)) continue;
        offer(&v[at], o.sum + score_of(u, node, score), o.from, node);
        found |= at == o.single;
    }
    if (found || o.single == SIZE_MAX) return LATH_OK;
    step *to = &v[o.single];
    if (to->from != UNREACHED && !(o.sum + u->unk_score > to->sum)) return LATH_OK;
    if (u->unk < 0) return no_unk(k);
    *to = (step){o.sum + u->unk_score, o.from, 0};
    return LATH_OK;
}

/* The same where a mark begins the unit; behind it the text goes on at byte `at`. */
static lath_status extend_mark(walk *k, step *v, const char *s, size_t n, double sum, size_t at)
{
    uint32_t node = k->u->mark_node;
    origin o = {sum, 0, at};
    float score = node ? k->u->trie.units[node].score : NAN;
    if (!isnan(score)) {
        offer(&v[at], sum + score_of(k->u, node, score), 0, node);
        o.single = SIZE_MAX;
    }
    if (isnan(score) && node == 0) return extend(k, v, s, at, o, at, 0);
    return extend(k, v, s, n, o, at, node);
}

/* Emits the best way to position n; positions count from `base` of the text, less the lead. */
static lath_status emit_path(walk *k, size_t n, size_t b, size_t lead)
{
    const unigram *u = k->u;
    step *v = k->v;
    size_t at = n;
    uint32_t next = (uint32_t)n; /* turns the links around: from of a position becomes the end of the piece there */
    while (at > 0) {
        uint32_t from = v[at].from;
        v[at].from = next;
        next = (uint32_t)at;
        at = from;
    }
    v[0].from = next;
    for (at = 0; at < n;) {
        size_t end = v[at].from;
        uint32_t node = v[end].node;
        size_t tb = at ? b + at - lead : b, te = b + end - lead;
        int32_t id = node ? u->trie.values[node] : u->unk;
        if (id == u->unk) {
            if (!k->run_open) {
                k->run_open = true;
                k->run_b = tb;
                k->run_lead = lead && at == 0;
            }
            k->run_e = te;
        } else {
            TRY(close_run(k));
            TRY(tok_emit(k->w, k->w->t->alloc, id, tok_text_from(k->t, tb), end_of(k->t, tb, te)));
        }
        at = end;
    }
    return LATH_OK;
}

static lath_status reserve(walk *k, size_t n)
{
    if (n <= k->cap) return LATH_OK;
    size_t cap = n < 256 ? 256 : n + n / 2;
    k->v = arena_bytes(k->w->scratch, cap * sizeof(*k->v), 16);
    if (!k->v) return err_nomem(k->w->err, cap * sizeof(*k->v));
    k->cap = cap;
    return LATH_OK;
}

/* The unit [b, e) of the text, which begins with a mark that is not there (lead), with a space that is one, or with
 * nothing special. *carry: the sum before it, and behind it. */
static lath_status encode_unit(walk *k, size_t b, size_t e, size_t lead, double *carry)
{
    const unigram *u = k->u;
    size_t n = e - b + lead;
    TRY(reserve(k, n + 1));
    const char *s = k->t->s + b;
    step *v = k->v + lead; /* of byte 0 */
    size_t len = e - b, i = 0;
    k->v[0].sum = *carry;
    for (size_t p = 1; p <= n; p++) k->v[p].from = UNREACHED;
    if (lead || (u->meta && s[0] == ' ')) {
        i = lead ? 0 : 1;
        TRY(extend_mark(k, v, s, len, *carry, i));
    }
    while (i < len) {
        origin o = {v[i].sum, (uint32_t)(i + lead), i + char_bytes((uint8_t)s[i])};
        TRY(extend(k, v, s, len, o, i, 0));
        i = o.single;
    }
    *carry = k->v[n].sum;
    return emit_path(k, n, b, lead);
}

/* -------------------------------------------------------------------------------------------------------------- run */

static lath_status run_plain(const tok_model *m, tok_work *w, const tok_text *t)
{
    walk k = {.u = m->param, .w = w, .t = t};
    for (size_t i = 0; i < w->spans.n; i++) {
        double sum = 0;
        TRY(encode_unit(&k, w->spans.v[i].b, w->spans.v[i].e, 0, &sum));
        TRY(close_run(&k));
    }
    return LATH_OK;
}

/* Where the unit that begins at b ends: before the next mark. */
static size_t unit_end(const tok_metaspace *m, const char *s, size_t b, size_t e)
{
    char first = m->mark[0];
    for (size_t i = b + 1; i < e; i++) {
        if (s[i] == ' ') return i;
        if (s[i] == first && tok_metaspace_at(m, s + i, e - i)) return i;
    }
    return e;
}

static lath_status run_meta(const tok_model *m, tok_work *w, const tok_text *t)
{
    const unigram *u = m->param;
    walk k = {.u = u, .w = w, .t = t};
    for (size_t i = 0; i < w->spans.n; i++) {
        size_t b = w->spans.v[i].b, e = w->spans.v[i].e;
        size_t lead = tok_metaspace_prepends(u->meta, t, b, e);
        double sum = 0;
        while (b < e) {
            size_t end = unit_end(u->meta, t->s, b, e);
            TRY(encode_unit(&k, b, end, lead, &sum));
            b = end;
            lead = 0;
            if (!u->meta->split) continue;
            TRY(close_run(&k));
            sum = 0;
        }
        TRY(close_run(&k));
    }
    return LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------------- loading */

static bool has_mark_inside(const tok_vocab *v, const tok_metaspace *m)
{
    for (size_t i = 0; i < v->n_ids; i++) {
        size_t n;
        const char *s = tok_vocab_get(v, (int32_t)i, &n);
        if (s && n > m->n_mark && memmem(s + 1, n - 1, m->mark, m->n_mark)) return true;
    }
    return false;
}

/* A piece with a space in it cannot come of text behind Metaspace, but would be found in text with spaces: those do
 * not begin with one, and then a mark inside the unit is never read as a space (units end before it). */
void tok_unigram_fuse(tok *t)
{
    if (t->model.run != run_plain) return;
    unigram *u = (unigram *)t->model.param;
    tok_splitter *last = &t->splitter;
    size_t *n_items = NULL;
    if (!tok_metaspace_of(last)) {
        tok_splitter *items = (tok_splitter *)last->items;
        if (last->n_items == 0) return;
        n_items = &last->n_items;
        last = &items[last->n_items - 1];
    }
    const tok_metaspace *m = tok_metaspace_of(last);
    if (!m) return;
    if (!m->split && has_mark_inside(&t->vocab, m)) return;
    u->meta = m;
    u->mark_node = tok_darray_walk(&u->trie, m->mark, m->n_mark);
    t->model.run = run_meta;
    if (n_items)
        --*n_items;
    else
        t->splitter.run = NULL;
}

static lath_status load_bytes(tok_load *l, const int32_t **out)
{
    int32_t *v = tok_load_array(l, 256, sizeof(*v));
    if (!v) return err_nomem(l->err, 256 * sizeof(*v));
    for (unsigned b = 0; b < 256; b++) {
        char name[8];
        int n = snprintf(name, sizeof(name), "<0x%02X>", b);
        v[b] = tok_vocab_find(&l->t->vocab, name, (size_t)n);
    }
    *out = v;
    return LATH_OK;
}

static lath_status build_trie(tok_load *l, unigram *u, const double *scores)
{
    const tok_vocab *vocab = &l->t->vocab;
    const lath_allocator *a = l->t->alloc;
    size_t n = vocab->n_ids, k = 0;
    size_t size;
    tok_darray_key *keys = size_mul(n + 1, sizeof(*keys), &size) ? alloc_bytes(a, size, 16) : NULL;
    if (!keys) return err_nomem(l->err, n * sizeof(*keys));
    bool exact = true;
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *s = tok_vocab_get(vocab, (int32_t)i, &len);
        if (!s) continue;
        keys[k++] = (tok_darray_key){s, (uint32_t)len, (int32_t)i, (float)scores[i]};
        exact = exact && (double)(float)scores[i] == scores[i];
    }
    lath_status st = tok_darray_build(&u->trie, a, keys, k, l->err);
    alloc_release(a, keys, size);
    if (st != LATH_OK || exact) return st;
    double *kept = tok_load_array(l, n, sizeof(*kept));
    if (!kept) return err_nomem(l->err, n * sizeof(*kept));
    memcpy(kept, scores, n * sizeof(*kept));
    u->scores = kept;
    return LATH_OK;
}

static void deinit(tok_model *m) { tok_darray_deinit(&((unigram *)m->param)->trie); }

static size_t bytes(const tok_model *m)
{
    const tok_darray *d = &((const unigram *)m->param)->trie;
    return d->cap_units * sizeof(*d->units) + d->cap_values * sizeof(*d->values);
}

lath_status tok_unigram_init(tok_load *l, const json_value *at, const double *scores, int32_t unk, bool byte_fallback,
                             tok_model *out)
{
    size_t n = l->t->vocab.n_ids;
    unigram *u = tok_load_array(l, 1, sizeof(*u));
    if (!u) return err_nomem(l->err, sizeof(*u));
    u->unk = unk;
    double least = INFINITY;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(scores[i]))
            return TOK_FAIL(l, at, LATH_ERR_FORMAT, "model.vocab: the score of piece %zu is not finite", i);
        least = scores[i] < least ? scores[i] : least;
    }
    u->unk_score = least - unk_penalty;
    if (byte_fallback) TRY(load_bytes(l, &u->bytes));
    *out = (tok_model){.run = run_plain, .param = u, .deinit = deinit, .bytes = bytes};
    return build_trie(l, u, scores);
}

lath_status tok_unigram(tok_load *l, const json_value *v, tok_model *out)
{
    static const char *const known[] = {"type", "unk_id", "vocab", "byte_fallback", NULL};
    int64_t unk = -1;
    bool byte_fallback = false;
    size_t n = l->t->vocab.n_ids;
    TRY(tok_load_fields(l, v, "model", known));
    TRY(json_get_int(v, "unk_id", l->name, 0, INT64_MAX, &unk, l->err));
    TRY(json_get_bool(v, "byte_fallback", l->name, &byte_fallback, l->err));
    if (unk >= (int64_t)n)
        return TOK_FAIL(l, json_get(v, "unk_id"), LATH_ERR_FORMAT, "model: unk_id %lld is out of range for %zu pieces",
                        (long long)unk, n);
    if (l->scores.len != n * sizeof(double))
        return TOK_FAIL(l, v, LATH_ERR_FORMAT, "model.vocab: want a list of pieces and scores");
    return tok_unigram_init(l, v, (const double *)(const void *)l->scores.data, (int32_t)unk, byte_fallback, out);
}
