/* SPDX-License-Identifier: Apache-2.0
 *
 * rerank.c: pairs of a query and a document to scores (Nogueira & Cho 2019). Each pair is encoded under the tokenizer's template for two texts, cut
 * longest text first where it is over the window (both as CrossEncoder of sentence-transformers 6.2 does), and handed to the runner, which packs
 * batches; the model's head makes logits of them:
 *
 *     encode pair -> pack -> encoder forward -> head -> logits [n, n_logits] -> the label's logit -> activation
 *
 * A language model that is asked (judge.h) is the same but for the encoding; its logit is that of one token less that of another.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "engine/judge.h"
#include "engine/runner.h"

typedef enum score_fn { SCORE_LOGIT, SCORE_SIGMOID, SCORE_SOFTMAX } score_fn;

struct lath_reranker {
    const lath_model *model;
    bool no_truncate;
    score_fn fn;
    int32_t label, max_tokens;
    char *prompt; /* owned copy, prompt_len bytes + 0 */
    size_t prompt_len;
    arena scratch; /* of the tokenizer */
    tok_parts pair;
    buf query;     /* prompt + query */
    judge judge;   /* where the model is asked */
    float *logits; /* [capacity, n_logits] */
    size_t capacity;
    runner run;
};

/* ------------------------------------------------------------------------------------------------------------ options */

static lath_status check_model(const lath_model *m, lath_error *err)
{
    if (m->kind == MODEL_ENCODER)
        return err_set(err, LATH_ERR_UNSUPPORTED,
                       "%s: %.80s is no cross-encoder: it has no head that scores pairs (use lath embed)", m->path,
                       m->class_name ? m->class_name : "the model");
    if (m->head_error.status != LATH_OK) {
        if (err) *err = m->head_error;
        return m->head_error.status;
    }
    return LATH_OK;
}

static lath_status check_options(const lath_rerank_options *o, lath_error *err)
{
    if (o->struct_size != sizeof(*o))
        return err_set(err, LATH_ERR_USAGE, "lath_reranker_create: options of another version");
    if ((int)o->activation < 0 || o->activation > LATH_ACTIVATION_SIGMOID)
        return err_set(err, LATH_ERR_USAGE, "activation: no such value: %d", (int)o->activation);
    if (o->batch_tokens < 0 || o->batch_tokens > RUNNER_TOKENS_MOST)
        return err_set(err, LATH_ERR_USAGE, "batch tokens: %d, want 1 to %d", o->batch_tokens, RUNNER_TOKENS_MOST);
    return LATH_OK;
}

/* "positive, negative" for messages. */
static void label_names(const arch_labels *l, char *out, size_t n)
{
    size_t at = 0;
    out[0] = 0;
    for (int32_t i = 0; i < l->n && at + 1 < n; i++)
        at += (size_t)snprintf(out + at, n - at, "%s%.40s", i ? ", " : "", l->names[i]);
}

/* The index of the label that is asked for by name or number; the only one where none is. */
static lath_status choose_label(const lath_model *m, const char *label, int32_t *out, lath_error *err)
{
    const arch_labels *l = &m->labels;
    char names[128];
    *out = 0;
    label_names(l, names, sizeof(names));
    if (!label && l->n <= 1) return LATH_OK;
    if (!label)
        return err_set(err, LATH_ERR_USAGE, "%s: the model has %d labels (%s): say which one scores (--label)", m->path,
                       l->n, names);
    for (int32_t i = 0; i < l->n; i++) {
        if (strcmp(l->names[i], label) != 0) continue;
        *out = i;
        return LATH_OK;
    }
    char *end;
    const long i = strtol(label, &end, 10);
    if (*label < '0' || *label > '9' || *end || i < 0 || i >= l->n)
        return err_set(err, LATH_ERR_USAGE, "label \"%.60s\": the model has no such label (it has: %s)", label,
                       l->n ? names : "none");
    *out = (int32_t)i;
    return LATH_OK;
}

static lath_status choose_score(const lath_model *m, lath_activation activation, score_fn *out, lath_error *err)
{
    static const struct {
        const char *name;
        score_fn fn;
    } rows[] = {
        {"torch.nn.modules.linear.Identity", SCORE_LOGIT},      {"torch.nn.Identity", SCORE_LOGIT},
        {"torch.nn.modules.activation.Sigmoid", SCORE_SIGMOID}, {"torch.nn.Sigmoid", SCORE_SIGMOID},
        {"torch.nn.modules.activation.Softmax", SCORE_SOFTMAX}, {"torch.nn.Softmax", SCORE_SOFTMAX},
    };
    *out = activation == LATH_ACTIVATION_SIGMOID ? SCORE_SIGMOID : SCORE_LOGIT;
    if (activation != LATH_ACTIVATION_MODEL) return LATH_OK;
    const char *name = m->st.activation_fn;
    if (!name) {
        *out = m->labels.n <= 1 ? SCORE_SIGMOID : SCORE_LOGIT;
        return LATH_OK;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) != 0) continue;
        *out = rows[i].fn;
        return LATH_OK;
    }
    return err_set(err, LATH_ERR_UNSUPPORTED, "%s: activation_fn \"%.80s\" is not supported (raw logits are: --raw)",
                   m->path, name);
}

/* Tokens that stand around the texts of every pair. */
static lath_status count_around(lath_reranker *r, int64_t *out, lath_error *err)
{
    static const char *const nothing[] = {"", ""};
    static const size_t lens[] = {0, 0};
    const tok *t = r->model->tokenizer.tok;
    if (r->model->judges) {
        TRY(judge_init(&r->judge, r->model, &r->scratch, err));
        *out = (int64_t)judge_n_around(&r->judge);
        return LATH_OK;
    }
    const tok_pair_options o = {.add_special = true, .parse_special = true, .first_only = true};
    TRY(tok_encode_parts(t, &r->scratch, nothing, lens, 2, &o, &r->pair, err));
    arena_reset(&r->scratch);
    *out = (int64_t)r->pair.e.n;
    return LATH_OK;
}

/* There has to be room for a token of each text. */
static lath_status set_window(lath_reranker *r, int32_t asked, lath_error *err)
{
    const lath_model *m = r->model;
    int64_t least;
    TRY(count_around(r, &least, err));
    least += 2;
    r->max_tokens = asked ? asked : m->max_tokens;
    if (m->max_tokens < least)
        return err_set(err, LATH_ERR_FORMAT, "%s: a window of %d tokens leaves no room for a pair of texts", m->path,
                       m->max_tokens);
    if (r->max_tokens < least || r->max_tokens > m->max_tokens)
        return err_set(err, LATH_ERR_USAGE, "max tokens: %d, want %lld to %d (the model's window)", asked,
                       (long long)least, m->max_tokens);
    return LATH_OK;
}

static lath_status tail(void *ctx, const runner *r, const fwd *f, view hidden, view *rows)
{
    const lath_reranker *self = ctx;
    return arch_head_forward((arch_head *)&self->model->head, f, hidden, r->memory[0], r->memory[1], rows);
}

static lath_status init(lath_reranker *r, const lath_rerank_options *o, lath_error *err)
{
    const lath_model *m = r->model;
    const char *prompt;
    TRY(choose_label(m, o->label, &r->label, err));
    TRY(choose_score(m, o->activation, &r->fn, err));
    TRY(st_choose_prompt(&m->st, o->prompt_name, o->prompt_text, &prompt, &r->prompt_len, err));
    r->prompt = alloc_zero(&m->rt->alloc, r->prompt_len + 1);
    if (!r->prompt) return err_nomem(err, r->prompt_len + 1);
    memcpy(r->prompt, prompt, r->prompt_len);
    TRY(set_window(r, o->max_tokens, err));
    r->no_truncate = o->no_truncate != 0;
    runner_init(&r->run, m, "document", o->batch_tokens, arch_head_widest(&m->arch, &m->head), m->head.n_logits);
    r->run.tail = tail;
    r->run.ctx = r;
    r->run.progress = o->progress;
    r->run.progress_ctx = o->progress_ctx;
    return LATH_OK;
}

lath_status lath_reranker_create(const lath_model *model, const lath_rerank_options *opts, lath_reranker **out,
                                 lath_error *err)
{
    static const lath_rerank_options defaults = LATH_RERANK_OPTIONS_INIT;
    err_clear(err);
    if (!opts) opts = &defaults;
    if (!model || !out) return err_set(err, LATH_ERR_USAGE, "lath_reranker_create: an argument is missing");
    TRY(check_options(opts, err));
    TRY(check_model(model, err));
    lath_reranker *r = alloc_zero(&model->rt->alloc, sizeof(*r));
    if (!r) return err_nomem(err, sizeof(*r));
    r->model = model;
    arena_init(&r->scratch, &model->rt->alloc);
    buf_init(&r->query, &model->rt->alloc, SIZE_MAX / 2);
    const lath_status st = init(r, opts, err);
    if (st != LATH_OK)
        lath_reranker_destroy(r);
    else
        *out = r;
    return st;
}

static size_t logit_bytes(const lath_reranker *r)
{
    return r->capacity * (size_t)r->model->head.n_logits * sizeof(*r->logits);
}

void lath_reranker_destroy(lath_reranker *r)
{
    if (!r) return;
    const lath_allocator *alloc = &r->model->rt->alloc;
    runner_deinit(&r->run);
    alloc_release(alloc, r->logits, logit_bytes(r));
    alloc_release(alloc, r->prompt, r->prompt_len + 1);
    tok_parts_release(r->model->tokenizer.tok, &r->pair);
    judge_deinit(&r->judge);
    buf_deinit(&r->query);
    arena_deinit(&r->scratch);
    alloc_release(alloc, r, sizeof(*r));
}

uint64_t lath_reranker_bytes(const lath_reranker *r)
{
    return runner_bytes(&r->run) + logit_bytes(r) + r->scratch.total + r->query.cap + sizeof(*r) +
           (r->pair.e.capacity + r->pair.texts.capacity) * 4 * sizeof(int32_t) + judge_bytes(&r->judge);
}

/* ----------------------------------------------------------------------------------------------------------- the call */

static bool is_blank(lath_text t)
{
    for (size_t i = 0; i < t.len; i++) {
        if (!memchr(" \t\r\n", t.data[i], 4)) return false;
    }
    return true;
}

static lath_status set_query(lath_reranker *r, lath_text query, lath_error *err)
{
    if (is_blank(query)) return err_set(err, LATH_ERR_INPUT, "query: it is empty");
    const size_t bad = utf8_first_invalid(query.data, query.len);
    if (bad != query.len) return err_set(err, LATH_ERR_INPUT, "query: not valid UTF-8 at byte %zu", bad + 1);
    if (r->model->judges) return judge_set_query(&r->judge, r->prompt, r->prompt_len, query.data, query.len, err);
    buf_clear(&r->query);
    buf_append(&r->query, r->prompt, r->prompt_len);
    buf_append(&r->query, query.data, query.len);
    return buf_status(&r->query, err);
}

/* A pair as the model gets it. */
typedef struct pair_tokens {
    const int32_t *ids, *type_ids; /* [n]; type_ids may be NULL: the model has no types */
    size_t n, n_untruncated;
} pair_tokens;

static lath_status encode_judged(lath_reranker *r, lath_text document, pair_tokens *out, lath_error *err)
{
    TRY(judge_encode(&r->judge, &r->scratch, document.data ? document.data : "", document.len, r->max_tokens, err));
    *out = (pair_tokens){r->judge.ids, NULL, r->judge.n, r->judge.n_untruncated};
    return LATH_OK;
}

static lath_status encode_pair(lath_reranker *r, lath_text document, pair_tokens *out, lath_error *err)
{
    const char *const texts[] = {r->query.data, document.data ? document.data : ""};
    const size_t lens[] = {r->query.len, document.len};
    const tok_pair_options o = {.add_special = true,
                                .parse_special = true,
                                .truncation = TOK_LONGEST_FIRST,
                                .max_tokens = r->max_tokens,
                                .first_only = true};
    const tok_encoding *e = &r->pair.e;
    const lath_status st = tok_encode_parts(r->model->tokenizer.tok, &r->scratch, texts, lens, 2, &o, &r->pair, err);
    arena_reset(&r->scratch);
    if (st != LATH_OK) return st;
    if (!r->model->sends_types) memset(e->type_ids, 0, e->n * sizeof(*e->type_ids));
    *out = (pair_tokens){e->ids, e->type_ids, e->n, e->n_untruncated};
    return LATH_OK;
}

static lath_status encode(lath_reranker *r, lath_text document, size_t index, pair_tokens *out, lath_error *err)
{
    const lath_status st = r->model->judges ? encode_judged(r, document, out, err) : encode_pair(r, document, out, err);
    if (st == LATH_ERR_INPUT) {
        err->item = (int64_t)index;
        return err_wrap(err, st, "document %zu", index);
    }
    if (st != LATH_OK) return st;
    if (r->no_truncate && out->n_untruncated > out->n)
        return err_item(err, LATH_ERR_WINDOW, (int64_t)index,
                        "document %zu: %zu tokens with the query, the window is %d", index, out->n_untruncated,
                        r->max_tokens);
    return LATH_OK;
}

static lath_status grow_logits(lath_reranker *r, size_t n, lath_error *err)
{
    const lath_allocator *alloc = &r->model->rt->alloc;
    if (n <= r->capacity) return LATH_OK;
    alloc_release(alloc, r->logits, logit_bytes(r));
    r->capacity = 0;
    r->logits = alloc_array(alloc, n, (size_t)r->model->head.n_logits * sizeof(*r->logits));
    if (!r->logits) return err_nomem(err, n * (size_t)r->model->head.n_logits * sizeof(*r->logits));
    r->capacity = n;
    return LATH_OK;
}

static double sigmoid(double x) { return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x)); }

static float logit_of(const lath_reranker *r, const float *logits)
{
    return r->model->head.n_out == 2 ? logits[0] - logits[1] : logits[r->label];
}

static float score(const lath_reranker *r, const float *logits)
{
    const float x = logit_of(r, logits);
    double sum = 0;
    switch (r->fn) {
    case SCORE_LOGIT: break;
    case SCORE_SIGMOID: return (float)sigmoid(x);
    case SCORE_SOFTMAX: /* 1 / sum of exp(logit - x) cannot overflow to anything but 0 */
        for (int32_t i = 0; i < r->model->head.n_logits; i++) sum += exp((double)logits[i] - (double)x);
        return (float)(1 / sum);
    }
    return x;
}

lath_status lath_rerank(lath_reranker *r, lath_text query, const lath_text *documents, size_t n,
                        lath_rerank_result *results, lath_error *err)
{
    lath_error local;
    if (!err) err = &local;
    err_clear(err);
    if (!r || (query.len && !query.data) || (n && (!documents || !results)))
        return err_set(err, LATH_ERR_USAGE, "lath_rerank: an argument is missing");
    TRY(set_query(r, query, err));
    TRY(grow_logits(r, n, err));
    runner_begin(&r->run, r->logits, n);
    for (size_t i = 0; i < n; i++) {
        pair_tokens p = {0};
        TRY(encode(r, documents[i], i, &p, err));
        TRY(runner_add(&r->run, i, p.ids, p.type_ids, (int64_t)p.n, err));
        results[i].n_tokens = (int32_t)p.n;
        results[i].truncated = p.n_untruncated > p.n;
    }
    TRY(runner_end(&r->run, err));
    for (size_t i = 0; i < n; i++) {
        const float *row = r->logits + i * (size_t)r->model->head.n_logits;
        results[i].logit = logit_of(r, row);
        results[i].score = score(r, row);
    }
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------ order */

/* a comes before b. */
static bool before(const lath_rerank_result *r, size_t a, size_t b)
{
    return r[a].logit > r[b].logit || (r[a].logit == r[b].logit && a < b);
}

/* Heap of n indices with the last of them in order on top. */
static void sift_down(const lath_rerank_result *r, size_t *heap, size_t n, size_t i)
{
    for (;;) {
        size_t last = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < n; child++) {
            if (before(r, heap[last], heap[child])) last = child;
        }
        if (last == i) return;
        const size_t t = heap[i];
        heap[i] = heap[last];
        heap[last] = t;
        i = last;
    }
}

/* Heapsort: no memory, and the order is total. */
void lath_rerank_order(const lath_rerank_result *results, size_t n, size_t *order)
{
    for (size_t i = 0; i < n; i++) order[i] = i;
    for (size_t i = n / 2; i-- > 0;) sift_down(results, order, n, i);
    for (size_t left = n; left > 1; left--) {
        const size_t t = order[0];
        order[0] = order[left - 1];
        order[left - 1] = t;
        sift_down(results, order, left - 1, 0);
    }
}
