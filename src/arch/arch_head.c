/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_head.c: heads that score, one row a family. Sources: the classes ...ForSequenceClassification of transformers 5.24. Dropout is the identity
 * when a model is run. Pooling comes first: the rest is then work on one row a text.
 */
#include "arch/arch_head.h"

#include <stdio.h>
#include <string.h>

typedef struct head_row {
    const char *model_type;
    kern_pool_mode pool;
    const char *dense; /* NULL: none */
    kern_fn fn;
    const char *norm; /* NULL: none */
    const char *out;
    bool dense_bias, out_bias;
} head_row;

static const head_row rows[] = {
    /* the pooler of the encoder (Devlin et al. 2018), then the classifier */
    {"bert", KERN_POOL_FIRST, "pooler.dense", KERN_FN_TANH, NULL, "classifier", true, true},
    {"ernie", KERN_POOL_FIRST, "pooler.dense", KERN_FN_TANH, NULL, "classifier", true, true},
    {"gte", KERN_POOL_FIRST, "pooler.dense", KERN_FN_TANH, NULL, "classifier", true, true},
    {"new", KERN_POOL_FIRST, "pooler.dense", KERN_FN_TANH, NULL, "classifier", true, true},
    {"nomic_bert", KERN_POOL_FIRST, "pooler.dense", KERN_FN_TANH, NULL, "classifier", true, true},
    /* a head of two layers instead of a pooler (Liu et al. 2019) */
    {"roberta", KERN_POOL_FIRST, "classifier.dense", KERN_FN_TANH, NULL, "classifier.out_proj", true, true},
    {"xlm-roberta", KERN_POOL_FIRST, "classifier.dense", KERN_FN_TANH, NULL, "classifier.out_proj", true, true},
    {"camembert", KERN_POOL_FIRST, "classifier.dense", KERN_FN_TANH, NULL, "classifier.out_proj", true, true},
    {"data2vec-text", KERN_POOL_FIRST, "classifier.dense", KERN_FN_TANH, NULL, "classifier.out_proj", true, true},
    {"jina_embeddings_v3", KERN_POOL_FIRST, "classifier.dense", KERN_FN_TANH, NULL, "classifier.out_proj", true, true},
    {"electra", KERN_POOL_FIRST, "classifier.dense", KERN_FN_GELU, NULL, "classifier.out_proj", true, true},
    {"mpnet", KERN_POOL_FIRST, "classifier.dense", KERN_FN_TANH, NULL, "classifier.out_proj", true, true},
    {"distilbert", KERN_POOL_FIRST, "pre_classifier", KERN_FN_RELU, NULL, "classifier", true, true},
    /* pooling, activation and biases are config.json's (Warner et al. 2024) */
    {"modernbert", KERN_POOL_FIRST, "head.dense", KERN_FN_GELU, "head.norm", "classifier", false, true},
    /* decoders: one matrix at the last token (GenericForSequenceClassification) */
    {"llama", KERN_POOL_LAST, NULL, KERN_FN_NONE, NULL, "score", false, false},
    {"mistral", KERN_POOL_LAST, NULL, KERN_FN_NONE, NULL, "score", false, false},
    {"qwen2", KERN_POOL_LAST, NULL, KERN_FN_NONE, NULL, "score", false, false},
    {"qwen3", KERN_POOL_LAST, NULL, KERN_FN_NONE, NULL, "score", false, false},
    {"gemma3_text", KERN_POOL_LAST, NULL, KERN_FN_NONE, NULL, "score", false, false},
};

static const head_row *find_row(const char *model_type)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].model_type, model_type) == 0) return &rows[i];
    }
    return NULL;
}

/* ----------------------------------------------------------------------------------------------------- configuration */

lath_status arch_class(const json_value *config, const char *config_name, const char **out, lath_error *err)
{
    const json_value *a = json_get(config, "architectures");
    *out = NULL;
    if (!json_present(a)) return LATH_OK;
    bool names = a->kind == JSON_ARRAY;
    for (const json_value *v = names ? a->u.items.first : NULL; v; v = v->next)
        names = names && v->kind == JSON_STRING && v->u.string.len > 0;
    if (!names)
        return err_set(err, LATH_ERR_FORMAT, "%s: line %u: \"architectures\": want an array of names of classes",
                       config_name, a->line);
    if (a->u.items.first) *out = a->u.items.first->u.string.data;
    return LATH_OK;
}

static bool ends_with(const char *s, const char *end)
{
    const size_t n = s ? strlen(s) : 0, k = strlen(end);
    return n >= k && strcmp(s + n - k, end) == 0;
}

bool arch_class_scores(const char *class_name) { return ends_with(class_name, "ForSequenceClassification"); }
/* ForConditionalGeneration: language models that see images, too. */
bool arch_class_generates(const char *class_name)
{
    return ends_with(class_name, "ForCausalLM") || ends_with(class_name, "ForConditionalGeneration");
}

enum { MOST_LABELS = 1 << 16 };

/* "LABEL_0", ... as the reference names them. */
static lath_status default_labels(arena *a, int32_t n, arch_labels *out, lath_error *err)
{
    char name[24];
    out->n = n;
    out->names = arena_array(a, (size_t)n, sizeof(*out->names));
    if (!out->names) return err_nomem(err, (size_t)n * sizeof(*out->names));
    for (int32_t i = 0; i < n; i++) {
        const int len = snprintf(name, sizeof(name), "LABEL_%d", i);
        out->names[i] = arena_strdup(a, name, (size_t)len);
        if (!out->names[i]) return err_nomem(err, sizeof(name));
    }
    return LATH_OK;
}

/* The number that a key of id2label spells, or -1. */
static int64_t label_id(const json_value *v)
{
    int64_t id = 0;
    if (v->key_len == 0 || v->key_len > 6) return -1;
    for (size_t i = 0; i < v->key_len; i++) {
        if (v->key[i] < '0' || v->key[i] > '9') return -1;
        id = id * 10 + (v->key[i] - '0');
    }
    return id;
}

lath_status arch_labels_load(arena *a, const json_value *config, const char *config_name, arch_labels *out,
                             lath_error *err)
{
    int64_t n = 2;
    *out = (arch_labels){0};
    const json_value *labels = json_get(config, "id2label");
    if (!json_present(labels)) {
        TRY(json_get_int(config, "num_labels", config_name, 1, MOST_LABELS, &n, err));
        return default_labels(a, (int32_t)n, out, err);
    }
    if (labels->kind != JSON_OBJECT || labels->u.items.count == 0 || labels->u.items.count > MOST_LABELS)
        return err_set(err, LATH_ERR_FORMAT, "%s: line %u: \"id2label\": want an object of 1 to %d labels", config_name,
                       labels->line, (int)MOST_LABELS);
    out->names = arena_array(a, labels->u.items.count, sizeof(*out->names));
    if (!out->names) return err_nomem(err, labels->u.items.count * sizeof(*out->names));
    out->n = (int32_t)labels->u.items.count;
    for (int32_t i = 0; i < out->n; i++) out->names[i] = NULL;
    for (const json_value *v = labels->u.items.first; v; v = v->next) {
        const int64_t id = label_id(v);
        if (id < 0 || id >= out->n || out->names[id] || v->kind != JSON_STRING)
            return err_set(err, LATH_ERR_FORMAT, "%s: line %u: \"id2label\": want the names of labels 0 to %d",
                           config_name, v->line, out->n - 1);
        out->names[id] = arena_strdup(a, v->u.string.data, v->u.string.len);
        if (!out->names[id]) return err_nomem(err, v->u.string.len);
    }
    return LATH_OK;
}

/* What ModernBERT's configuration leaves open. */
static lath_status configure(arch_head *h, head_row *r, const json_value *c, const char *name, lath_error *err)
{
    const char *pooling = "cls", *act = "gelu";
    double eps = 1e-5;
    if (!r->norm) return LATH_OK;
    TRY(json_get_str(c, "classifier_pooling", name, &pooling, err));
    TRY(json_get_str(c, "classifier_activation", name, &act, err));
    TRY(json_get_bool(c, "classifier_bias", name, &r->dense_bias, err));
    TRY(json_get_real(c, "norm_eps", name, &eps, err));
    if (strcmp(pooling, "mean") == 0)
        r->pool = KERN_POOL_MEAN;
    else if (strcmp(pooling, "cls") != 0)
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: classifier_pooling \"%.60s\" is not supported", name, pooling);
    if (!nn_activation(act, &r->fn))
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: classifier_activation \"%.60s\" is not supported", name, act);
    if (!(eps >= 0 && eps < 1)) return err_set(err, LATH_ERR_FORMAT, "%s: norm_eps is out of range", name);
    h->norm.eps = (float)eps;
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------ binding */

enum { NAME_MAX_LEN = 96 };

/* "PREFIX BASE.LEAF" under the prefix that the file uses: heads stand beside the encoder or, poolers, inside it. */
static lath_status tensor_name(const arch_model *m, const arch_source *src, const char *base, const char *leaf,
                               char out[NAME_MAX_LEN], lath_error *err)
{
    const tensor *t;
    for (const char *const *p = m->desc->prefixes; *p; p++) {
        snprintf(out, NAME_MAX_LEN, "%s%s.%s", *p, base, leaf);
        TRY(weights_find(src->w, out, &t, err));
        if (t) return LATH_OK;
    }
    snprintf(out, NAME_MAX_LEN, "%s.%s", base, leaf);
    return LATH_OK;
}

static lath_status bind(const arch_model *m, const arch_source *src, const char *base, bool bias, int64_t n_rows,
                        nn_linear_w *out, lath_error *err)
{
    char w[NAME_MAX_LEN], b[NAME_MAX_LEN];
    TRY(tensor_name(m, src, base, "weight", w, err));
    if (bias) TRY(tensor_name(m, src, base, "bias", b, err));
    return arch_bind_linear(src, w, bias ? b : NULL, n_rows, m->dims.d_model, out, err);
}

static lath_status bind_vec(const arch_model *m, const arch_source *src, const char *base, const char *leaf, vec *out,
                            lath_error *err)
{
    char name[NAME_MAX_LEN];
    TRY(tensor_name(m, src, base, leaf, name, err));
    return arch_bind_vec(src, name, m->dims.d_model, out, err);
}

lath_status arch_head_open(const arch_model *m, const char *model_type, const json_value *config,
                           const char *config_name, const arch_source *src, int32_t n_labels, arch_head *out,
                           lath_error *err)
{
    const head_row *found = find_row(model_type);
    const int64_t d = m->dims.d_model;
    *out = (arch_head){0};
    if (!found)
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: a classification head on model_type \"%.60s\" is not supported",
                       config_name, model_type);
    head_row r = *found;
    TRY(configure(out, &r, config, config_name, err));
    out->pool = r.pool;
    out->fn = r.fn;
    out->has_dense = r.dense != NULL;
    out->has_norm = r.norm != NULL;
    if (r.dense) TRY(bind(m, src, r.dense, r.dense_bias, d, &out->dense, err));
    if (r.norm) {
        bool bias = false;
        TRY(json_get_bool(config, "norm_bias", config_name, &bias, err));
        TRY(bind_vec(m, src, r.norm, "weight", &out->norm.gamma, err));
        if (bias) TRY(bind_vec(m, src, r.norm, "bias", &out->norm.beta, err));
    }
    out->n_out = 1;
    out->n_logits = n_labels;
    return bind(m, src, r.out, r.out_bias, n_labels, &out->out[0], err);
}

lath_status arch_head_open_tokens(const arch_model *m, const char *name, const int32_t *ids, int32_t n, arch_head *out,
                                  lath_error *err)
{
    const weight *w = m->lm_head.w;
    *out = (arch_head){.pool = KERN_POOL_LAST, .lm_head = &m->lm_head, .n_out = n, .n_logits = n};
    for (int32_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= w->rows)
            return err_set(err, LATH_ERR_FORMAT, "%s: token id %d scores, the vocabulary has %lld", name, ids[i],
                           (long long)w->rows);
        weight_init(&out->out[i].w, w->t, w->file, w->row0 + ids[i], 1, w->cols);
    }
    return LATH_OK;
}

int64_t arch_head_widest(const arch_model *m, const arch_head *h)
{
    return h->n_logits > m->dims.d_model ? h->n_logits : m->dims.d_model;
}

/* ------------------------------------------------------------------------------------------------------------ forward */

/* The scale and the cap of a language model's logits, in place. */
static lath_status finish_logits(const arch_lm_head *h, const fwd *f, view logits)
{
    const float cap = h->softcap;
    if (cap == 0 && h->scale == 1) return LATH_OK;
    const op_map a = cap == 0 ? (op_map){KERN_FN_NONE, h->scale, 1, logits, logits}
                              : (op_map){KERN_FN_TANH, h->scale / cap, cap, logits, logits};
    return f->s->ops->map(f->s, &a);
}

lath_status arch_head_forward(arch_head *h, const fwd *f, view hidden, float *rows_a, float *rows_b, view *logits)
{
    const backend_ops *ops = f->s->ops;
    const int64_t n = f->b->n_seq;
    view x = ops->make_view(rows_a, n, hidden.d);
    const op_pool first = {h->pool, hidden, x, f->b->start, 0};
    TRY(ops->pool(f->s, &first)); /* [n_seq, d_model] */
    float *free_rows = rows_b;
    if (h->has_dense) {
        view y = ops->make_view(rows_b, n, hidden.d);
        TRY(nn_linear(f, &h->dense, h->fn, x, y));
        x = y;
        free_rows = rows_a;
    }
    if (h->has_norm) TRY(nn_norm(f, x, NULL, &h->norm, x));
    *logits = ops->make_view(free_rows, n, h->n_logits);
    op_linear parts[2];
    const int64_t each = h->n_logits / h->n_out;
    for (int32_t i = 0; i < h->n_out; i++)
        parts[i] = (op_linear){&h->out[i].w, h->out[i].bias, KERN_FN_NONE, ops->slice(*logits, i * each, each)};
    TRY(ops->linear(f->s, x, parts, h->n_out));
    return h->lm_head ? finish_logits(h->lm_head, f, *logits) : LATH_OK;
}

lath_status arch_lm_head_forward(const arch_lm_head *h, const fwd *f, view hidden, view logits)
{
    const op_linear part = {.w = h->w, .y = logits};
    TRY(f->s->ops->linear(f->s, hidden, &part, 1));
    return finish_logits(h, f, logits);
}
