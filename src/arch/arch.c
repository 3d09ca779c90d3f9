/* SPDX-License-Identifier: Apache-2.0
 * arch.c: the list of architectures and the binding of their weight tables. */
#include "arch/arch.h"

#include <stdio.h>
#include <string.h>

#define ARCH(type, desc) extern const arch_desc desc;
#include "arch/arch_list.h"
#undef ARCH

static const struct {
    const char *type;
    const arch_desc *desc;
} list[] = {
#define ARCH(type, desc) {type, &desc},
#include "arch/arch_list.h"
#undef ARCH
};

op_limits arch_limits(const arch_model *m, int64_t n_tok, int64_t n_keys)
{
    const arch_dims *d = &m->dims;
    op_limits o = {.n_tok = n_tok, .n_keys = n_keys, .head_dim = d->head_dim, .d = d->n_heads * d->head_dim};
    if (o.d < d->d_model) o.d = d->d_model;
    if (o.d < d->d_ff) o.d = d->d_ff;
    if (o.d < d->d_embed) o.d = d->d_embed;
    if (o.d < d->d_expert) o.d = d->d_expert;
    if (o.d < d->d_shared) o.d = d->d_shared;
    if (o.d < d->n_v_heads * d->d_v) o.d = d->n_v_heads * d->d_v;
    o.d_k = d->d_k;
    o.d_v = d->d_v;
    return o;
}

const arch_desc *arch_find(const char *model_type)
{
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        if (strcmp(list[i].type, model_type) == 0) return list[i].desc;
    }
    return NULL;
}

void arch_names(buf *out)
{
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) buf_printf(out, "%s%s", i ? ", " : "", list[i].type);
}

enum { NAME_MAX_LEN = 192 };

/* Troubles found while binding: all go to the log, the first ones into the message. */
typedef struct troubles {
    const arch_source *src;
    int32_t missing, wrong;
    const char *file; /* of the first one */
    char first[160];
} troubles;

static void add_trouble(troubles *t, const char *file, const char *text)
{
    size_t n = strlen(t->first), k = strlen(text);
    if (n + k + 3 < sizeof(t->first)) snprintf(t->first + n, sizeof(t->first) - n, "%s%s", n ? "; " : "", text);
    if (!t->file) t->file = file;
    log_line(t->src->log, LATH_LOG_ERROR, "%s: %s", file, text);
}

/* Where a weight stands: its numbers are put into the holes of its name. */
typedef struct place {
    int32_t layer, expert;
} place;

static void expand(char out[NAME_MAX_LEN], const char *prefix, const char *pattern, place at)
{
    const int32_t numbers[] = {at.layer, at.expert};
    int n = snprintf(out, NAME_MAX_LEN, "%s", prefix);
    const char *hole;
    for (int i = 0; i < 2 && n < NAME_MAX_LEN && (hole = strstr(pattern, "{}")); i++, pattern = hole + 2)
        n += snprintf(out + n, (size_t)(NAME_MAX_LEN - n), "%.*s%d", (int)(hole - pattern), pattern, numbers[i]);
    if (n < NAME_MAX_LEN) snprintf(out + n, (size_t)(NAME_MAX_LEN - n), "%s", pattern);
}

/* The name of a row in this kind of file; *prefix is what stands before it. NULL: there is none. */
static const char *name_of(const arch_source *src, const arch_weight_row *r, const char **prefix)
{
    if (!weights_gguf(src->w)) return r->hf;
    *prefix = "";
    return r->gguf;
}

static bool per_layer(const arch_weight_row *r) { return strstr(r->hf, "{}") != NULL; }

/* *out is NULL when there is none of this name. */
static lath_status lookup(const arch_source *src, const char *prefix, const arch_weight_row *r, place at,
                          const tensor **out, lath_error *err)
{
    char name[NAME_MAX_LEN];
    const char *own = name_of(src, r, &prefix);
    *out = NULL;
    if (!own) return LATH_OK;
    expand(name, prefix, own, at);
    TRY(weights_find(src->w, name, out, err));
    if (*out || own != r->hf || !r->hf_old) return LATH_OK;
    expand(name, prefix, r->hf_old, at);
    return weights_find(src->w, name, out, err);
}

/* A quantised weight has its scales in a tensor beside it: without them it is another matrix. */
static lath_status check_unscaled(const arch_source *src, const tensor *t, lath_error *err)
{
    static const char *const ends[] = {"_scale", "_scale_inv"};
    char name[NAME_MAX_LEN + 16];
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        const tensor *scale;
        snprintf(name, sizeof(name), "%s%s", t->name, ends[i]);
        TRY(weights_find(src->w, name, &scale, err));
        if (scale)
            return err_set(err, LATH_ERR_UNSUPPORTED, "%s: tensor \"%s\": weights with scales are not supported",
                           weights_file_of(src->w, scale), scale->name);
    }
    return LATH_OK;
}

/* Shape and type of a tensor against what is wanted. Says what is wrong in `text`. */
static bool has_shape(const tensor *t, const int64_t *want, int32_t rank, char *text, size_t n)
{
    char have[64];
    if (t->rank != rank || memcmp(t->dim, want, (size_t)rank * sizeof(*want)) != 0) {
        char wanted[64];
        tensor_shape_text(t->dim, t->rank, have, sizeof(have));
        tensor_shape_text(want, rank, wanted, sizeof(wanted));
        snprintf(text, n, "tensor \"%s\": shape %s, want %s", t->name, have, wanted);
        return false;
    }
    if (!dtype_is_weight(t->type)) {
        snprintf(text, n, "tensor \"%s\": dtype %s is no type of weights", t->name, dtype_name(t->type));
        return false;
    }
    return true;
}

/* cols == 0 for a vector, stacked > 0 for as many matrices in one. A matrix of one row may be a vector in the file. */
static bool suits(const tensor *t, int64_t stacked, int64_t rows, int64_t cols, char *text, size_t n)
{
    const int64_t all[] = {stacked, rows, cols};
    if (!stacked && rows == 1 && cols && t->rank == 1) return has_shape(t, &cols, 1, text, n);
    return has_shape(t, stacked ? all : all + 1, (stacked ? 1 : 0) + (cols ? 2 : 1), text, n);
}

/* The taps of a convolution, with the dimension that the reference's class has between, or without. */
static bool suits_taps(const tensor *t, int64_t rows, int64_t width, char *text, size_t n)
{
    const int64_t whole[] = {rows, 1, width}, plain[] = {rows, width};
    return has_shape(t, t->rank == 2 ? plain : whole, t->rank == 2 ? 2 : 3, text, n);
}

static int64_t dim_of(const arch_dims *d, arch_dim which)
{
    switch (which) {
    case ARCH_D_MODEL: return d->d_model;
    case ARCH_D_FF: return d->d_ff;
    case ARCH_VOCAB: return d->vocab_size;
    case ARCH_POSITIONS: return d->n_positions;
    case ARCH_TYPES: return d->n_types;
    case ARCH_D_Q: return d->n_heads * d->head_dim;
    case ARCH_D_KV: return d->n_kv_heads * d->head_dim;
    case ARCH_HEAD_DIM: return d->head_dim;
    case ARCH_HEADS: return d->n_heads;
    case ARCH_BUCKETS: return d->n_buckets;
    case ARCH_TASKS: return d->n_tasks;
    case ARCH_D_EMBED: return d->d_embed;
    case ARCH_EXPERTS: return d->n_experts;
    case ARCH_D_EXPERT: return d->d_expert;
    case ARCH_D_SHARED: return d->d_shared;
    case ARCH_ONE: return 1;
    case ARCH_D_Q_GATED: return 2 * d->n_heads * d->head_dim;
    case ARCH_D_CHANNELS: return 2 * d->n_k_heads * d->d_k + d->n_v_heads * d->d_v;
    case ARCH_D_VALUES: return d->n_v_heads * d->d_v;
    case ARCH_D_MIXED: return 2 * (d->n_k_heads * d->d_k + d->n_v_heads * d->d_v);
    case ARCH_D_V: return d->d_v;
    case ARCH_V_HEADS: return d->n_v_heads;
    case ARCH_V_GATES: return 2 * (int64_t)d->n_v_heads;
    case ARCH_DIM_NONE: break;
    }
    return 0;
}

/* The rows of a weight inside its tensor, and how many the tensor has. */
typedef struct row_range {
    int64_t first, n, total;
} row_range;

static row_range rows_of(const arch_dims *d, const arch_weight_row *r)
{
    const int64_t n = dim_of(d, r->rows), q = dim_of(d, ARCH_D_Q), kv = dim_of(d, ARCH_D_KV);
    switch (r->stack) {
    case ARCH_QKV_Q: return (row_range){0, q, q + 2 * kv};
    case ARCH_QKV_K: return (row_range){q, kv, q + 2 * kv};
    case ARCH_QKV_V: return (row_range){q + kv, kv, q + 2 * kv};
    case ARCH_FIRST_HALF: return (row_range){0, n, 2 * n};
    case ARCH_SECOND_HALF: return (row_range){n, n, 2 * n};
    case ARCH_ALONE: break;
    }
    return (row_range){0, n, n};
}

static void add_missing(const arch_source *src, const char *prefix, const arch_weight_row *r, place at, troubles *bad)
{
    char name[NAME_MAX_LEN], text[NAME_MAX_LEN + 16];
    const char *own = name_of(src, r, &prefix);
    expand(name, prefix, own ? own : r->hf, at);
    snprintf(text, sizeof(text), "no tensor \"%s\"", name);
    bad->missing++;
    add_trouble(bad, weights_name(src->w), text);
}

/* One tensor has the matrices of all experts: in GGUF files, and where the row is its hf_stacked (own_form). */
static bool is_stacked(const arch_source *src, const arch_weight_row *r)
{
    return r->experts && (weights_gguf(src->w) || r->hf == r->hf_stacked);
}

/* The row as this file has it: with the matrices of all experts in one tensor, or not. */
static lath_status own_form(const arch_source *src, const char *prefix, const arch_weight_row *r, int32_t layer,
                            arch_weight_row *out, lath_error *err)
{
    const tensor *t;
    *out = *r;
    if (!r->hf_stacked || weights_gguf(src->w)) return LATH_OK;
    out->hf = r->hf_stacked;
    out->hf_old = NULL;
    out->stack = r->stacked;
    TRY(lookup(src, prefix, out, (place){.layer = layer}, &t, err));
    if (!t) *out = *r;
    return LATH_OK;
}

/* The tensor of one place with its shape checked; NULL where it is missing or wrong. */
static lath_status want_tensor(const arch_model *m, const arch_source *src, const char *prefix,
                               const arch_weight_row *r, place at, troubles *bad, const tensor **out, lath_error *err)
{
    char text[NAME_MAX_LEN + 128];
    TRY(lookup(src, prefix, r, at, out, err));
    if (!*out && !r->optional) add_missing(src, prefix, r, at, bad);
    if (!*out) return LATH_OK;
    weights_mark_used(src->w, *out);
    const int64_t rows = rows_of(&m->dims, r).total, stacked = is_stacked(src, r) ? m->dims.n_experts : 0;
    if (!(r->taps ? suits_taps(*out, rows, m->dims.conv_width, text, sizeof(text))
                  : suits(*out, stacked, rows, dim_of(&m->dims, r->cols), text, sizeof(text)))) {
        bad->wrong++;
        add_trouble(bad, weights_file_of(src->w, *out), text);
        *out = NULL;
        return LATH_OK;
    }
    return check_unscaled(src, *out, err);
}

static char *place_of(const arch_model *m, const arch_weight_row *r, int32_t layer)
{
    char *base = per_layer(r) ? (char *)m->layers + (size_t)layer * m->desc->layer_size : (char *)m->weights;
    return base + r->offset;
}

static lath_status bind_row(const arch_model *m, const arch_source *src, const char *prefix, const arch_weight_row *r,
                            int32_t layer, troubles *bad, lath_error *err)
{
    const tensor *t;
    TRY(want_tensor(m, src, prefix, r, (place){.layer = layer}, bad, &t, err));
    if (!t) return LATH_OK;
    const char *file = weights_file_of(src->w, t);
    const row_range rows = rows_of(&m->dims, r);
    char *at = place_of(m, r, layer);
    const int64_t each = r->taps ? m->dims.conv_width : 1;
    if (r->kind == ARCH_VECTOR) return vec_init((vec *)at, src->mem, t, file, rows.first * each, rows.n * each, err);
    weight_init((weight *)at, t, file, rows.first, rows.n, dim_of(&m->dims, r->cols));
    return LATH_OK;
}

/* A row of the table that stands for all experts of a layer. */
static lath_status bind_experts(const arch_model *m, const arch_source *src, const char *prefix,
                                const arch_weight_row *row, int32_t layer, troubles *bad, lath_error *err)
{
    arch_weight_row own;
    const arch_weight_row *r = &own;
    TRY(own_form(src, prefix, row, layer, &own, err));
    const bool stacked = is_stacked(src, r);
    const row_range rows = rows_of(&m->dims, r);
    const int64_t cols = dim_of(&m->dims, r->cols);
    const tensor *t = NULL;
    weight *all = arena_array(src->mem, (size_t)m->dims.n_experts, sizeof(weight));
    if (!all) return err_nomem(err, (size_t)m->dims.n_experts * sizeof(weight));
    *(weight **)(void *)place_of(m, r, layer) = all;
    for (int32_t e = 0; e < m->dims.n_experts; e++) {
        if (e == 0 || !stacked) TRY(want_tensor(m, src, prefix, r, (place){layer, e}, bad, &t, err));
        if (t)
            weight_init(&all[e], t, weights_file_of(src->w, t), (stacked ? e * rows.total : 0) + rows.first, rows.n,
                        cols);
    }
    return LATH_OK;
}

/* Biases of an FFN are no part of it that can be left out: they are few, and whoever stands in wants them. */
static bool is_ffn_matrix(const arch_weight_row *r)
{
    return r->kind == ARCH_MATRIX && !r->experts && (r->rows == ARCH_D_FF || r->cols == ARCH_D_FF);
}

/* The prefix under which the file has the first weight of the table. */
static lath_status find_prefix(const arch_desc *d, const arch_source *src, const char **out, lath_error *err)
{
    *out = d->prefixes[0];
    for (const char *const *p = d->prefixes; *p; p++) {
        const tensor *t;
        TRY(lookup(src, *p, &d->rows[0], (place){0}, &t, err));
        if (!t) continue;
        *out = *p;
        break;
    }
    return LATH_OK;
}

static lath_status report(const troubles *t, lath_error *err)
{
    const char *file = weights_name(t->src->w);
    if (t->missing == 0 && t->wrong == 0) return LATH_OK;
    if (t->missing + t->wrong == 1) return err_set(err, LATH_ERR_FORMAT, "%s: %s", t->file, t->first);
    if (t->wrong == 0) return err_set(err, LATH_ERR_FORMAT, "%s: %d tensors missing: %s", file, t->missing, t->first);
    return err_set(err, LATH_ERR_FORMAT, "%s: %d tensors missing, %d wrong: %s", file, t->missing, t->wrong, t->first);
}

/* The same of experts, where each has tensors of its own. */
static lath_status check_experts(const arch_model *m, const arch_source *src, const char *config_name, lath_error *err)
{
    if (weights_gguf(src->w) || m->dims.n_experts <= weights_count(src->w)) return LATH_OK;
    for (size_t i = 0; i < m->desc->n_rows; i++)
        if (m->desc->rows[i].hf_stacked) return LATH_OK; /* their tensors' shapes tell */
    return err_set(err, LATH_ERR_FORMAT, "%s: %d experts, but %s has %d tensors", config_name, m->dims.n_experts,
                   weights_name(src->w), weights_count(src->w));
}

lath_status arch_open(const arch_desc *d, const json_value *config, const char *config_name, const arch_source *src,
                      arch_model *m, lath_error *err)
{
    *m = (arch_model){.desc = d, .mem = src->mem, .stored = src->stored};
    m->weights = arena_zero(src->mem, d->model_size);
    if (!m->weights) return err_nomem(err, d->model_size);
    TRY(d->parse(m, config, config_name, err));
    if (weights_count(src->w) == 0) return err_set(err, LATH_ERR_FORMAT, "%s: no tensors in it", weights_name(src->w));
    /* A configuration may ask for more layers than the file can hold: say so before memory is taken for them. */
    if (m->dims.n_layers > weights_count(src->w))
        return err_set(err, LATH_ERR_FORMAT, "%s: %d layers, but %s has %d tensors", config_name, m->dims.n_layers,
                       weights_name(src->w), weights_count(src->w));
    TRY(check_experts(m, src, config_name, err));
    m->layers = arena_array(src->mem, (size_t)m->dims.n_layers, d->layer_size);
    if (!m->layers) return err_nomem(err, (size_t)m->dims.n_layers * d->layer_size);
    troubles bad = {.src = src};
    const char *prefix;
    TRY(find_prefix(d, src, &prefix, err));
    for (size_t i = 0; i < d->n_rows; i++) {
        const arch_weight_row *r = &d->rows[i];
        if (r->head) continue;
        for (int32_t l = 0; l < (per_layer(r) ? m->dims.n_layers : 1); l++) {
            const uint32_t has = d->layer_has && per_layer(r) ? d->layer_has(m, l) : m->has;
            if ((r->when & has) == r->when && !(src->no_ffn && is_ffn_matrix(r)))
                TRY((r->experts ? bind_experts : bind_row)(m, src, prefix, r, l, &bad, err));
        }
    }
    TRY(report(&bad, err));
    const lath_status st = d->finish(m, err);
    return st == LATH_ERR_FORMAT ? err_wrap(err, st, "%s", weights_name(src->w)) : st;
}

/* The prefix of what stands beside the body, which is called "model" or is a part of what is called so. */
static void outer_prefix(const char *prefix, char out[NAME_MAX_LEN])
{
    const char *body = strncmp(prefix, "model.", 6) == 0 ? prefix : strstr(prefix, ".model.");
    if (body && body != prefix) body++;
    snprintf(out, NAME_MAX_LEN, "%.*s", (int)(body ? (size_t)(body - prefix) : strlen(prefix)), prefix);
}

/* As the reference does (transformers 5, tie_weights): a matrix that is there counts, even where the configuration says that it is tied. */
lath_status arch_open_lm_head(arch_model *m, const arch_source *src, lath_error *err)
{
    const arch_desc *d = m->desc;
    const arch_weight_row *r = NULL;
    const char *prefix;
    char outer[NAME_MAX_LEN];
    troubles bad = {.src = src};
    for (size_t i = 0; i < d->n_rows; i++)
        if (d->rows[i].head) r = &d->rows[i];
    if (!r) return err_set(err, LATH_ERR_UNSUPPORTED, "model_type \"%s\" has no output head", d->name);
    TRY(find_prefix(d, src, &prefix, err));
    outer_prefix(prefix, outer);
    weight *own = (weight *)(void *)((char *)m->weights + r->offset);
    arch_weight_row row = *r;
    row.optional = m->lm_head.tied;
    TRY(bind_row(m, src, outer, &row, 0, &bad, err));
    TRY(report(&bad, err));
    m->lm_head.w = own->t ? own : (weight *)(void *)((char *)m->weights + d->rows[0].offset);
    return LATH_OK;
}

/* An earlier row is of another part of the same tensor, which both kinds of files have whole. */
static bool is_rest(const arch_desc *d, size_t i)
{
    const arch_weight_row *r = &d->rows[i];
    for (size_t k = 0; r->gguf && k < i; k++) {
        const arch_weight_row *e = &d->rows[k];
        if (e->gguf && strcmp(e->gguf, r->gguf) == 0 && strcmp(e->hf, r->hf) == 0) return true;
    }
    return false;
}

/* The tensors of one row in one layer. */
static lath_status hand_out(const arch_model *m, const arch_source *src, const char *prefix, const arch_weight_row *row,
                            int32_t layer, arch_tensor_fn fn, void *ctx, lath_error *err)
{
    const tensor *t;
    char name[NAME_MAX_LEN], outer[NAME_MAX_LEN];
    arch_weight_row own;
    const arch_weight_row *r = row;
    if (r->head) {
        outer_prefix(prefix, outer);
        prefix = outer;
    }
    if (r->experts) {
        TRY(own_form(src, prefix, row, layer, &own, err));
        r = &own;
    }
    for (int32_t e = 0; e < (r->experts ? m->dims.n_experts : 1); e++) {
        const place at = {layer, e};
        TRY(lookup(src, prefix, r, at, &t, err));
        if (!t || (r->head && (!m->lm_head.w || m->lm_head.w->t != t))) return LATH_OK;
        if (!r->gguf)
            return err_set(err, LATH_ERR_UNSUPPORTED, "%s: tensor \"%s\" has no name in GGUF files",
                           weights_file_of(src->w, t), t->name);
        expand(name, "", r->gguf, at);
        TRY(fn(ctx, r, name, t, e, err));
    }
    return LATH_OK;
}

lath_status arch_each_tensor(const arch_model *m, const arch_source *src, arch_tensor_fn fn, void *ctx, lath_error *err)
{
    const arch_desc *d = m->desc;
    const char *prefix;
    TRY(find_prefix(d, src, &prefix, err));
    for (int32_t l = -1; l < m->dims.n_layers; l++) { /* -1: of no layer */
        const uint32_t has = l >= 0 && d->layer_has ? d->layer_has(m, l) : m->has;
        for (size_t i = 0; i < d->n_rows; i++) {
            const arch_weight_row *r = &d->rows[i];
            if (per_layer(r) != (l >= 0) || (r->when & has) != r->when || is_rest(d, i)) continue;
            TRY(hand_out(m, src, prefix, r, l, fn, ctx, err));
        }
    }
    return LATH_OK;
}

static bool is_table(const arch_weight_row *r)
{
    return r->rows == ARCH_VOCAB || r->rows == ARCH_POSITIONS || r->rows == ARCH_TYPES || r->rows == ARCH_TASKS ||
           r->rows == ARCH_BUCKETS;
}

void arch_count_weights(const arch_model *m, uint64_t *n, uint64_t *bytes)
{
    const arch_desc *d = m->desc;
    *n = *bytes = 0;
    for (size_t i = 0; i < d->n_rows; i++) {
        const arch_weight_row *r = &d->rows[i];
        if (r->kind != ARCH_MATRIX || r->head || is_table(r)) continue;
        for (int32_t l = 0; l < (per_layer(r) ? m->dims.n_layers : 1); l++) {
            const void *at = place_of(m, r, l);
            const weight *w = r->experts ? *(weight *const *)at : at;
            if (!w || !w->t) continue;
            const uint64_t times = r->experts ? (uint64_t)m->dims.n_top_experts : 1;
            *n += times * (uint64_t)(w->rows * w->cols);
            *bytes += times * dtype_bytes(w->t->type, w->rows * w->cols);
        }
    }
}

lath_status arch_bind_linear(const arch_source *src, const char *w_name, const char *bias_name, int64_t rows,
                             int64_t cols, nn_linear_w *out, lath_error *err)
{
    char text[NAME_MAX_LEN + 128];
    const tensor *w, *b = NULL;
    TRY(weights_find(src->w, w_name, &w, err));
    if (bias_name) TRY(weights_find(src->w, bias_name, &b, err));
    if (!w || (bias_name && !b))
        return err_set(err, LATH_ERR_FORMAT, "%s: no tensor \"%s\"", weights_name(src->w), w ? bias_name : w_name);
    if (!suits(w, 0, rows, cols, text, sizeof(text)))
        return err_set(err, LATH_ERR_FORMAT, "%s: %s", weights_file_of(src->w, w), text);
    if (b && !suits(b, 0, rows, 0, text, sizeof(text)))
        return err_set(err, LATH_ERR_FORMAT, "%s: %s", weights_file_of(src->w, b), text);
    TRY(check_unscaled(src, w, err));
    weight_init(&out->w, w, weights_file_of(src->w, w), 0, rows, cols);
    weights_mark_used(src->w, w);
    if (!b) return LATH_OK;
    weights_mark_used(src->w, b);
    return vec_init(&out->bias, src->mem, b, weights_file_of(src->w, b), 0, rows, err);
}

lath_status arch_bind_vec(const arch_source *src, const char *name, int64_t n, vec *out, lath_error *err)
{
    char text[NAME_MAX_LEN + 128];
    const tensor *t;
    TRY(weights_find(src->w, name, &t, err));
    if (!t) return err_set(err, LATH_ERR_FORMAT, "%s: no tensor \"%s\"", weights_name(src->w), name);
    if (!suits(t, 0, n, 0, text, sizeof(text)))
        return err_set(err, LATH_ERR_FORMAT, "%s: %s", weights_file_of(src->w, t), text);
    weights_mark_used(src->w, t);
    return vec_init(out, src->mem, t, weights_file_of(src->w, t), 0, n, err);
}
