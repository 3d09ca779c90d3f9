/* SPDX-License-Identifier: Apache-2.0
 *
 * model_head.c: what a model is for, and what scores pairs of texts in it. "architectures" of config.json says it: a class ...ForSequenceClassification is
 * a cross-encoder; a language model can be asked (judge.h), or scores by the tokens that a LogitScore module names (sentence-transformers 6.2). What is
 * wrong with a head concerns only who wants to score: it is kept for lath_reranker_create.
 */
#include <string.h>

#include "engine/engine.h"

static lath_status open_classifier(lath_model *m, const model_config *c, lath_error *err)
{
    return arch_head_open(&m->arch, c->type, c->json, c->path, &c->src, m->labels.n, &m->head, err);
}

/* The tokens whose logits score: those that the model's files name, else yes and no. */
static lath_status score_tokens(const lath_model *m, int32_t ids[2], int32_t *n, lath_error *err)
{
    static const char *const names[] = {"yes", "no"};
    *n = m->st.n_score_ids;
    memcpy(ids, m->st.score_ids, sizeof(m->st.score_ids));
    if (*n) return LATH_OK;
    for (*n = 0; *n < 2; ++*n) {
        ids[*n] = tok_id(m->tokenizer.tok, names[*n], strlen(names[*n]));
        if (ids[*n] < 0)
            return err_set(err, LATH_ERR_UNSUPPORTED, "%s: a language model without the token \"%s\" cannot score",
                           m->path, names[*n]);
    }
    return LATH_OK;
}

static lath_status open_language_model(lath_model *m, const model_config *c, lath_error *err)
{
    const char *chat_template = model_chat_template(m);
    int32_t ids[2], n;
    const bool named = m->st.n_score_ids > 0;
    if (!named && strcmp(c->type, "qwen3") != 0)
        return err_set(
            err, LATH_ERR_UNSUPPORTED,
            "%s: model_type \"%.40s\" is a language model that says nothing about scoring pairs (lath rerank "
            "has the prompt of Qwen3-Reranker, and LogitScore modules)",
            m->path, c->type);
    m->judges = !named || chat_template;
    m->judges_by_template = named && chat_template;
    TRY(score_tokens(m, ids, &n, err));
    return arch_head_open_tokens(&m->arch, c->path, ids, n, &m->head, err);
}

/* What is wrong with it concerns only who wants it: it is kept for lath_session_create. */
static lath_status open_lm_head(lath_model *m, const model_config *c, lath_error *err)
{
    const lath_status st = arch_open_lm_head(&m->arch, &c->src, &m->lm_head_error);
    if (st == LATH_ERR_NOMEM && err) *err = m->lm_head_error;
    return st == LATH_ERR_NOMEM ? st : LATH_OK;
}

/* A language model whose files say nothing about embeddings: the reference takes its last token, which alone has seen all of the text, unless
 * every token does. */
static lath_status default_pooling(lath_model *m, const model_config *c, lath_error *err)
{
    bool causal = true;
    if (m->st.has_modules || !arch_class_generates(m->class_name)) return LATH_OK;
    TRY(json_get_bool(c->json, "is_causal", c->path, &causal, err));
    if (causal) m->st.modes[0] = KERN_POOL_LAST;
    return LATH_OK;
}

lath_status model_open_head(lath_model *m, const model_config *c, lath_error *err)
{
    const char *name;
    lath_status st = LATH_OK;
    TRY(arch_class(c->json, c->path, &name, err));
    if (name) {
        m->class_name = arena_strdup(&m->mem, name, strlen(name));
        if (!m->class_name) return err_nomem(err, strlen(name));
    }
    TRY(default_pooling(m, c, err));
    TRY(st_sends_types(&m->mem, m->st.encoder_dir, c->type, &m->sends_types, err));
    TRY(st_config_activation(c->json, c->path, &m->st, err));
    err_clear(&m->head_error);
    err_clear(&m->lm_head_error);
    const bool generates = m->st.n_score_ids > 0 || arch_class_generates(name); /* an embedder may, too */
    if (generates) TRY(open_lm_head(m, c, err));
    if (arch_class_scores(name)) {
        m->kind = MODEL_CROSS_ENCODER;
        TRY(arch_labels_load(&m->mem, c->json, c->path, &m->labels, err));
        st = open_classifier(m, c, &m->head_error);
    } else if (m->st.n_score_ids > 0 || (generates && !m->st.has_pooling)) {
        m->kind = MODEL_GENERATOR;
        if (m->arch.lm_head.w)
            st = open_language_model(m, c, &m->head_error);
        else
            m->head_error = m->lm_head_error;
    }
    if (st != LATH_ERR_NOMEM) return LATH_OK;
    if (err) *err = m->head_error;
    return st;
}
