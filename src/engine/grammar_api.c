/* SPDX-License-Identifier: Apache-2.0
 * grammar_api.c: lath_grammar and lath_matcher of lath.h on top of grammar.h. */
#include <stdatomic.h>

#include "engine/engine.h"
#include "engine/grammar_api.h"

lath_status lath_grammar_open(lath_runtime *rt, lath_grammar_kind kind, const char *name, lath_text text,
                              lath_grammar **out, lath_error *err)
{
    err_clear(err);
    if (!rt || !name || !out || (text.len && !text.data))
        return err_set(err, LATH_ERR_USAGE, "lath_grammar_open: an argument is missing");
    *out = NULL;
    if (kind != LATH_GRAMMAR_TEXT && kind != LATH_GRAMMAR_JSON_SCHEMA)
        return err_set(err, LATH_ERR_USAGE, "lath_grammar_open: no such kind: %d", (int)kind);
    lath_grammar *x = alloc_zero(&rt->alloc, sizeof(*x));
    if (!x) return err_nomem(err, sizeof(*x));
    x->rt = rt;
    const char *data = text.data ? text.data : "";
    const lath_status st = kind == LATH_GRAMMAR_TEXT
                               ? grammar_open_text(&rt->alloc, name, data, text.len, &x->g, err)
                               : grammar_open_schema(&rt->alloc, name, data, text.len, &x->g, err);
    if (st == LATH_OK) {
        *out = x;
    } else {
        alloc_release(&rt->alloc, x, sizeof(*x));
    }
    return st;
}

void lath_grammar_close(lath_grammar *x)
{
    if (!x) return;
    grammar_close(x->g);
    alloc_release(&x->rt->alloc, x, sizeof(*x));
}

/* Several threads may make it at once; one of them is kept. The tokenizer is immutable to everybody else. */
static lath_status get_trie(const lath_tokenizer *tokenizer, const token_trie **out, lath_error *err)
{
    lath_tokenizer *t = (lath_tokenizer *)tokenizer;
    token_trie *made, *other = NULL;
    *out = atomic_load_explicit(&t->trie, memory_order_acquire);
    if (*out) return LATH_OK;
    TRY(token_trie_create(t->tok, &t->rt->alloc, &made, err));
    if (atomic_compare_exchange_strong(&t->trie, &other, made)) {
        *out = made;
    } else {
        token_trie_destroy(made);
        *out = other;
    }
    return LATH_OK;
}

lath_status lath_matcher_create(const lath_grammar *x, const lath_tokenizer *tokenizer, const int32_t *end_ids,
                                size_t n_end_ids, int32_t n_logits, lath_matcher **out, lath_error *err)
{
    const token_trie *trie;
    err_clear(err);
    if (!x || !tokenizer || !out || (n_end_ids && !end_ids))
        return err_set(err, LATH_ERR_USAGE, "lath_matcher_create: an argument is missing");
    *out = NULL;
    TRY(get_trie(tokenizer, &trie, err));
    lath_matcher *m = alloc_zero(&x->rt->alloc, sizeof(*m));
    if (!m) return err_nomem(err, sizeof(*m));
    m->rt = x->rt;
    const lath_status st =
        grammar_match_create(x->g, trie, end_ids, n_end_ids, n_logits, &x->rt->alloc, &m->match, err);
    if (st == LATH_OK) {
        *out = m;
    } else {
        alloc_release(&x->rt->alloc, m, sizeof(*m));
    }
    return st;
}

void lath_matcher_destroy(lath_matcher *m)
{
    if (!m) return;
    grammar_match_destroy(m->match);
    alloc_release(&m->rt->alloc, m, sizeof(*m));
}

lath_status lath_matcher_mask(lath_matcher *m, const uint32_t **mask, lath_error *err)
{
    err_clear(err);
    if (!m || !mask) return err_set(err, LATH_ERR_USAGE, "lath_matcher_mask: an argument is missing");
    return grammar_match_mask(m->match, mask, err);
}

lath_status lath_matcher_accept(lath_matcher *m, int32_t id, lath_error *err)
{
    err_clear(err);
    if (!m) return err_set(err, LATH_ERR_USAGE, "lath_matcher_accept: an argument is missing");
    return grammar_match_accept(m->match, id, err);
}

int32_t lath_matcher_complete(const lath_matcher *m) { return m && grammar_match_complete(m->match); }
int32_t lath_matcher_ended(const lath_matcher *m) { return m && grammar_match_ended(m->match); }

lath_status lath_matcher_reset(lath_matcher *m, lath_error *err)
{
    err_clear(err);
    if (!m) return err_set(err, LATH_ERR_USAGE, "lath_matcher_reset: an argument is missing");
    return grammar_match_reset(m->match, err);
}
