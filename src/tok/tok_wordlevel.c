/* SPDX-License-Identifier: Apache-2.0
 * tok_wordlevel.c: the WordLevel model: a word is a token of the vocabulary, or the unknown token. */
#include "tok/tok_parts.h"

static lath_status run(const tok_model *m, tok_work *w, const tok_text *t)
{
    const tok_vocab *v = &w->t->vocab;
    const int32_t unk = *(const int32_t *)m->param;
    for (size_t k = 0; k < w->spans.n; k++) {
        size_t b = w->spans.v[k].b, e = w->spans.v[k].e;
        int32_t id = e - b <= v->max_len ? tok_vocab_find(v, t->s + b, e - b) : -1;
        if (id < 0) id = unk;
        if (id < 0)
            return err_set(w->err, LATH_ERR_INPUT,
                           "a word of the text is no token, and the unk_token is not in the vocabulary");
        TRY(tok_emit(w, w->t->alloc, id, tok_text_from(t, b), tok_text_to(t, e)));
    }
    return LATH_OK;
}

lath_status tok_wordlevel(tok_load *l, const json_value *v, tok_model *out)
{
    static const char *const known[] = {"type", "vocab", "unk_token", NULL};
    tok_string unk;
    int32_t *id = tok_load_array(l, 1, sizeof(*id));
    if (!id) return err_nomem(l->err, sizeof(*id));
    TRY(tok_load_fields(l, v, "model", known));
    TRY(tok_load_string(l, v, "model", "unk_token", &unk));
    *id = tok_vocab_find(&l->t->vocab, unk.s, unk.n);
    *out = (tok_model){.run = run, .param = id};
    return LATH_OK;
}
