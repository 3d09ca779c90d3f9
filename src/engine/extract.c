/* SPDX-License-Identifier: Apache-2.0
 *
 * extract.c: a model's FFNs as an index of features (store/vindex.h). Piece by piece: the rows of one matrix of one layer, the tokens of the features of
 * one layer, one tensor. A piece is made in waves of rows that fit into a few megabytes, and none depends on another, so a run that was stopped goes on with the
 * pieces that are missing.
 *
 * Tokens: what a feature writes is its column of the down matrix; times the output head it is what the feature adds to each logit, but for the norm
 * before the head (Geva et al. 2022, "Transformer Feed-Forward Layers Build Predictions by Promoting Concepts in the Vocabulary Space"). The products are those of
 * the model's own numbers, not of the rows as they are stored.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "engine/engine.h"
#include "lath/lath_vindex.h"
#include "store/vindex_write.h"
#include "tensor/quant_encode.h"

enum {
    WAVE_NUMBERS = 2 << 20,      /* of rows that are made at once */
    TASK_ROWS = DTYPE_MAX_BLOCK, /* of a task: whole blocks of a matrix that is read across */
    TOKEN_FEATURES = 256,
    TOKEN_WORDS = 4096 /* of one product with the output head */
};

/* Rows of a matrix, or its columns as rows; of several matrices of one shape (experts) one behind the other. */
typedef struct source_rows {
    const weight *w; /* [n] */
    bool across;
    int32_t n, experts; /* experts 0: w is the layer's own, n is 1 */
} source_rows;

static int64_t rows_each(const source_rows *s) { return s->across ? s->w->cols : s->w->rows; }
static int64_t rows_of(const source_rows *s) { return s->n * rows_each(s); }
static int64_t cols_of(const source_rows *s) { return s->across ? s->w->rows : s->w->cols; }

typedef struct extract_piece {
    vindex_file file;
    int32_t layer;
    source_rows from;    /* of rows */
    const tensor *whole; /* of a tensor */
} extract_piece;

typedef struct job {
    lath_runtime *rt;
    const lath_extract_options *o;
    arena mem;
    lath_model *m;
    weights *beside; /* the same files once more: what the model uses without its FFNs is marked in it */
    vindex_facts facts;
    vindex_writer *w;
    buf pieces; /* of extract_piece */
    float *numbers;
    uint8_t *blocks;
    weight *words; /* the rows of the output head, TOKEN_WORDS each */
    int64_t n_words;
    float *views; /* memory of the products, and of the stream's scratch */
    stream stream;
    uint64_t work, done; /* for progress */
    lath_extract_result r;
} job;

static const extract_piece *piece_at(const job *j, int32_t i)
{
    return (const extract_piece *)(void *)j->pieces.data + i;
}
static int32_t n_pieces(const job *j) { return (int32_t)(j->pieces.len / sizeof(extract_piece)); }

/* Kilobytes that are copied in the time of a piece: a product takes as long as 100 numbers for each byte. */
static uint64_t work_of(const job *j, const extract_piece *p)
{
    if (p->whole) return p->whole->bytes / 1000;
    const uint64_t n = (uint64_t)(rows_of(&p->from) * cols_of(&p->from));
    return p->file == VINDEX_TOKENS ? n / 1000 * (uint64_t)j->facts.vocab_size / 50 : n / 250;
}

static lath_status tick(job *j, lath_error *err)
{
    if (!j->o->progress) return LATH_OK;
    if (j->o->progress(j->o->progress_ctx, (size_t)j->done, (size_t)j->work) == 0) return LATH_OK;
    return err_set(err, LATH_ERR_INTERRUPTED, "interrupted (--resume goes on)");
}

/* ---------------------------------------------------------------------------------------------------------------- rows */

typedef struct wave {
    const job *j;
    source_rows from;
    int64_t first, n; /* rows */
    dtype type;
    size_t row_bytes; /* 0: numbers only */
    atomic_bool bad;  /* a number is not finite, or does not fit */
} wave;

/* Rows first .. first + n - 1 of one matrix as numbers [n, cols]; n <= TASK_ROWS, across whole blocks. */
static void read_one(const weight *w, bool across, int64_t first, int64_t n, float *x)
{
    const dtype type = w->t->type;
    const size_t stride = dtype_bytes(type, w->cols);
    float part[TASK_ROWS];
    if (!across) {
        dtype_to_f32(type, (const char *)w->data + (size_t)first * stride, (size_t)(n * w->cols), x);
        return;
    }
    const char *at = (const char *)w->data + dtype_bytes(type, first);
    for (int64_t k = 0; k < w->rows; k++) {
        dtype_to_f32(type, at + (size_t)k * stride, (size_t)n, part);
        for (int64_t i = 0; i < n; i++) x[i * w->rows + k] = part[i];
    }
}

/* The same of all; first is a multiple of TASK_ROWS. `same`: where rows are wanted as they are, too, else NULL. */
static void read_numbers(const source_rows *s, int64_t first, int64_t n, float *x, uint8_t *same)
{
    const int64_t each = rows_each(s), cols = cols_of(s);
    for (int64_t i = 0, take; i < n; i += take) {
        const weight *w = &s->w[(first + i) / each];
        const int64_t at = (first + i) % each;
        const size_t stride = dtype_bytes(w->t->type, w->cols);
        take = each - at < n - i ? each - at : n - i;
        read_one(w, s->across, at, take, x + i * cols);
        if (same) memcpy(same + (size_t)i * stride, (const char *)w->data + (size_t)at * stride, (size_t)take * stride);
    }
}

static bool all_finite(const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

static void rows_task(void *ctx, int64_t task, int32_t worker)
{
    wave *v = ctx;
    (void)worker;
    const int64_t from = task * TASK_ROWS, n = v->n - from < TASK_ROWS ? v->n - from : TASK_ROWS,
                  cols = cols_of(&v->from);
    float *x = v->j->numbers + from * cols;
    uint8_t *out = v->j->blocks + (size_t)from * v->row_bytes;
    /* blocks of the type that is wanted stay the same bits */
    const bool same = v->row_bytes && v->from.w->t->type == v->type && dtype_is_block(v->type) && !v->from.across;
    read_numbers(&v->from, v->first + from, n, x, same ? out : NULL);
    const bool good = v->row_bytes == 0 || same
                          ? all_finite(x, n * cols)
                          : quant_encode(v->type, x, (size_t)(n * cols) / dtype_block_numbers(v->type), out);
    if (!good) atomic_store(&v->bad, true);
}

static lath_status run_wave(job *j, wave *v, lath_error *err)
{
    pool_enter(j->rt->pool);
    pool_run(j->rt->pool, rows_task, v, (v->n + TASK_ROWS - 1) / TASK_ROWS);
    pool_leave(j->rt->pool);
    if (!atomic_load(&v->bad)) return LATH_OK;
    return err_set(err, LATH_ERR_FORMAT, "%s: tensor \"%s\": a number is not finite or too large for %s",
                   v->from.w->file, v->from.w->t->name, dtype_name(v->row_bytes ? v->type : v->from.w->t->type));
}

static int64_t rows_at_once(int64_t cols)
{
    const int64_t n = WAVE_NUMBERS / cols / TASK_ROWS * TASK_ROWS;
    return n > TASK_ROWS ? n : TASK_ROWS;
}

static lath_status write_rows(job *j, int32_t number, const extract_piece *p, lath_error *err)
{
    const int64_t rows = rows_of(&p->from), most = rows_at_once(cols_of(&p->from));
    wave v = {.j = j, .from = p->from, .type = j->facts.rows};
    v.row_bytes = dtype_bytes(v.type, cols_of(&p->from));
    for (v.first = 0; v.first < rows; v.first += v.n) {
        v.n = rows - v.first < most ? rows - v.first : most;
        TRY(run_wave(j, &v, err));
        TRY(vindex_piece_write(j->w, number, (uint64_t)v.first * v.row_bytes, j->blocks, (size_t)v.n * v.row_bytes,
                               err));
        TRY(tick(j, err));
    }
    for (int32_t i = 0; i < p->from.n && !p->from.across; i++)
        file_forget(p->from.w[i].data, (size_t)p->from.w->rows * dtype_bytes(p->from.w->t->type, p->from.w->cols));
    return LATH_OK;
}

/* -------------------------------------------------------------------------------------------------------------- tokens */

/* Products of features with some rows of the output head, and the best of each feature so far. */
typedef struct choice {
    const float *products; /* [features, n] */
    int64_t features, n;
    int32_t first;      /* of the rows */
    vindex_token *best; /* [features, VINDEX_TOP] */
    int32_t taken;      /* of each feature */
    atomic_bool bad;
} choice;

/* The rows come in rising order: of equal products the lower stays before. */
static void choose_task(void *ctx, int64_t task, int32_t worker)
{
    choice *c = ctx;
    (void)worker;
    vindex_token *best = c->best + task * VINDEX_TOP;
    int32_t n = c->taken;
    for (int64_t i = 0; i < c->n; i++) {
        const float p = c->products[task * c->n + i];
        if (!isfinite(p)) atomic_store(&c->bad, true);
        if (n == VINDEX_TOP && !(p > best[n - 1].product)) continue;
        int32_t at = n < VINDEX_TOP ? n++ : n - 1;
        for (; at > 0 && p > best[at - 1].product; at--) best[at] = best[at - 1];
        best[at] = (vindex_token){c->first + (int32_t)i, p};
    }
}

static lath_status choose_tokens(job *j, view x, float *memory, vindex_token *best, lath_error *err)
{
    const backend_ops *ops = j->rt->ops;
    choice c = {.features = x.n_tok, .best = best};
    float *plain = memory + ops->view_floats(TOKEN_FEATURES, TOKEN_WORDS);
    c.products = plain;
    for (int64_t i = 0; i < j->n_words; i++) {
        weight *w = &j->words[i];
        const op_linear part = {w, {0}, KERN_FN_NONE, ops->make_view(memory, x.n_tok, w->rows)};
        TRY(ops->linear(&j->stream, x, &part, 1));
        TRY(ops->read_rows(&j->stream, part.y, 0, x.n_tok, plain));
        c.n = w->rows;
        pool_run(j->rt->pool, choose_task, &c, x.n_tok);
        c.first += (int32_t)w->rows;
        c.taken = c.first < VINDEX_TOP ? c.first : VINDEX_TOP;
    }
    if (!atomic_load(&c.bad)) return LATH_OK;
    return err_set(err, LATH_ERR_FORMAT, "%s: a product of its features with the output head is not finite",
                   j->m->path);
}

static lath_status write_tokens(job *j, int32_t number, const extract_piece *p, lath_error *err)
{
    const backend_ops *ops = j->rt->ops;
    const int64_t features = rows_of(&p->from), d = cols_of(&p->from);
    vindex_token best[TOKEN_FEATURES * VINDEX_TOP];
    float *products = j->views + ops->view_floats(TOKEN_FEATURES, d);
    wave v = {.j = j, .from = p->from};
    const uint64_t before = j->done, work = work_of(j, p);
    for (v.first = 0; v.first < features; v.first += v.n) {
        v.n = features - v.first < TOKEN_FEATURES ? features - v.first : TOKEN_FEATURES;
        TRY(run_wave(j, &v, err));
        for (int i = 0; i < TOKEN_FEATURES * VINDEX_TOP; i++) best[i] = (vindex_token){-1, 0};
        const view x = ops->make_view(j->views, v.n, d);
        j->stream.err = err;
        pool_enter(j->rt->pool);
        lath_status st = ops->write_rows(&j->stream, x, 0, v.n, j->numbers);
        if (st == LATH_OK) st = choose_tokens(j, x, products, best, err);
        pool_leave(j->rt->pool);
        TRY(st);
        TRY(vindex_piece_write(j->w, number, (uint64_t)v.first * VINDEX_TOP * sizeof(best[0]), best,
                               (size_t)v.n * VINDEX_TOP * sizeof(best[0]), err));
        j->done = before + work * (uint64_t)(v.first + v.n) / (uint64_t)features;
        TRY(tick(j, err));
    }
    j->done = before;
    return LATH_OK;
}

/* -------------------------------------------------------------------------------------------------------------- memory */

static lath_status split_head(job *j, lath_error *err)
{
    const weight *head = j->m->arch.lm_head.w;
    j->n_words = (head->rows + TOKEN_WORDS - 1) / TOKEN_WORDS;
    j->words = arena_array(&j->mem, (size_t)j->n_words, sizeof(weight));
    if (!j->words) return err_nomem(err, (size_t)j->n_words * sizeof(weight));
    for (int64_t i = 0; i < j->n_words; i++) {
        const int64_t first = i * TOKEN_WORDS, left = head->rows - first;
        weight_init(&j->words[i], head->t, head->file, head->row0 + first, left < TOKEN_WORDS ? left : TOKEN_WORDS,
                    head->cols);
    }
    return LATH_OK;
}

/* Room for a wave of any piece. */
static lath_status make_room(job *j, lath_error *err)
{
    const backend_ops *ops = j->rt->ops;
    const int64_t d = j->facts.d_model;
    size_t numbers = 0, blocks = 0;
    for (int32_t i = 0; i < n_pieces(j); i++) {
        const extract_piece *p = piece_at(j, i);
        if (p->whole) continue;
        const int64_t cols = cols_of(&p->from), n = p->file == VINDEX_TOKENS ? TOKEN_FEATURES : rows_at_once(cols);
        const size_t row = dtype_bytes(j->facts.rows, cols);
        if ((size_t)(n * cols) > numbers) numbers = (size_t)(n * cols);
        if (p->file != VINDEX_TOKENS && (size_t)n * row > blocks) blocks = (size_t)n * row;
    }
    j->stream = (stream){.ops = ops, .pool = j->rt->pool, .kern = &j->rt->kern};
    j->stream.limits = arch_limits(&j->m->arch, TOKEN_FEATURES, TOKEN_FEATURES);
    const size_t views = ops->view_floats(TOKEN_FEATURES, d) + ops->view_floats(TOKEN_FEATURES, TOKEN_WORDS) +
                         (size_t)TOKEN_FEATURES * TOKEN_WORDS,
                 scratch = ops->scratch_floats(&j->stream, &j->stream.limits);
    j->numbers = arena_bytes(&j->mem, numbers * sizeof(float), 64);
    j->blocks = arena_bytes(&j->mem, blocks, 64);
    j->views = arena_bytes(&j->mem, (views + scratch) * sizeof(float), 64);
    if (!j->numbers || !j->blocks || !j->views) return err_nomem(err, (numbers + views + scratch) * sizeof(float));
    memset(j->views, 0, (views + scratch) * sizeof(float));
    j->stream.scratch = j->views + views;
    return split_head(j, err);
}

/* ---------------------------------------------------------------------------------------------------------------- plan */

static const struct {
    lath_row_type name;
    dtype type;
} row_types[] = {{LATH_ROWS_F32, DTYPE_F32},
                 {LATH_ROWS_F16, DTYPE_F16},
                 {LATH_ROWS_BF16, DTYPE_BF16},
                 {LATH_ROWS_Q8_0, DTYPE_Q8_0},
                 {LATH_ROWS_Q4_K, DTYPE_Q4_K}};
enum { N_ROW_TYPES = sizeof(row_types) / sizeof(row_types[0]) };

/* What there is of a layer: its own matrices or, at level browse, those of its experts. */
typedef struct layer_parts {
    source_rows gate, up, down;
    int64_t features;
} layer_parts;

static lath_status get_parts(const job *j, int32_t layer, layer_parts *out, lath_error *err)
{
    ffn_parts p;
    int32_t n;
    const ffn_moe_layer *experts = ffn_moe_get_layer(j->m->arch.ffn, layer, &n);
    if (experts) {
        if (j->facts.level > VINDEX_BROWSE)
            return err_set(err, LATH_ERR_UNSUPPORTED,
                           "%s: layer %d has experts: of such models there are indexes of level browse only",
                           j->m->path, layer);
        *out = (layer_parts){{experts->gate, false, n, n}, {experts->up, false, n, n}, {experts->down, false, n, n}, 0};
    } else {
        if (!ffn_get_parts(j->m->arch.ffn, layer, &p) || !p.gate)
            return err_set(err, LATH_ERR_UNSUPPORTED, "%s: layer %d has no gate: such FFNs cannot be extracted",
                           j->m->path, layer);
        *out = (layer_parts){{&p.gate->w, false, 1, 0}, {&p.up->w, false, 1, 0}, {&p.down->w, false, 1, 0}, 0};
    }
    out->features = rows_of(&out->gate);
    return LATH_OK;
}

static bool fits(const job *j, const layer_parts *p, dtype t)
{
    const int64_t n = (int64_t)dtype_block_numbers(t);
    return j->m->arch.dims.d_model % n == 0 && (j->o->level < LATH_VINDEX_ALL || p->features % n == 0);
}

static dtype choose_type(const job *j, const layer_parts *p)
{
    const dtype own = p->gate.w->t->type;
    for (int i = 0; i < N_ROW_TYPES; i++)
        if (j->o->type == row_types[i].name) return row_types[i].type;
    for (int i = 0; i < N_ROW_TYPES; i++)
        if (own == row_types[i].type && fits(j, p, own)) return own;
    return fits(j, p, DTYPE_Q8_0) ? DTYPE_Q8_0 : DTYPE_F16;
}

static lath_status add_rows(job *j, vindex_file file, int32_t layer, source_rows from, lath_error *err)
{
    const extract_piece p = {.file = file, .layer = layer, .from = from};
    buf_append(&j->pieces, &p, sizeof(p));
    j->work += work_of(j, &p);
    TRY(buf_status(&j->pieces, err));
    return vindex_add_rows(j->w, file, layer, file == VINDEX_OUT ? cols_of(&from) : rows_of(&from), from.experts, err);
}

static lath_status add_tensor(job *j, const tensor *t, lath_error *err)
{
    const extract_piece p = {.file = VINDEX_TENSORS, .layer = -1, .whole = t};
    buf_append(&j->pieces, &p, sizeof(p));
    j->work += work_of(j, &p);
    TRY(buf_status(&j->pieces, err));
    return vindex_add_tensor(j->w, t, err);
}

/* What of the files the rows stand for. Parts of one tensor count once: they stand behind each other. */
static void count_tensors(job *j, const source_rows *s, const tensor **last)
{
    for (int32_t i = 0; i < s->n; i++) {
        if (s->w[i].t == *last) continue;
        *last = s->w[i].t;
        j->facts.ffn_tensors++;
        j->facts.ffn_bytes += s->w[i].t->bytes;
    }
}

static lath_status count_ffn(job *j, lath_error *err)
{
    layer_parts p;
    for (int32_t i = 0; i < j->facts.n_layers; i++) {
        const tensor *last = NULL;
        TRY(get_parts(j, i, &p, err));
        count_tensors(j, &p.gate, &last);
        count_tensors(j, &p.up, &last);
        count_tensors(j, &p.down, &last);
        j->r.features += (uint64_t)p.features;
    }
    return LATH_OK;
}

static lath_status add_layers(job *j, lath_error *err)
{
    layer_parts p;
    for (int k = 0; k < VINDEX_TENSORS; k++) {
        const vindex_file file = (vindex_file)k;
        static const vindex_level levels[] = {
#define VINDEX_FILE(name, file_name, level) level,
#include "store/vindex.def"
#undef VINDEX_FILE
        };
        if (levels[k] > j->facts.level) continue;
        for (int32_t i = 0; i < j->facts.n_layers; i++) {
            TRY(get_parts(j, i, &p, err));
            source_rows from = file == VINDEX_GATE ? p.gate : file == VINDEX_UP ? p.up : p.down;
            from.across = file == VINDEX_DOWN || file == VINDEX_TOKENS;
            TRY(add_rows(j, file, i, from, err));
        }
    }
    return LATH_OK;
}

static lath_status add_tensors(job *j, lath_error *err)
{
    const arch_model *a = &j->m->arch;
    if (j->facts.level == VINDEX_BROWSE) /* the embeddings, which stand first in every table */
        return add_tensor(j, ((const weight *)(const void *)((const char *)a->weights + a->desc->rows[0].offset))->t,
                          err);
    for (int32_t i = 0; i < weights_count(j->beside); i++) {
        bool used;
        const tensor *t = weights_at(j->beside, i, &used);
        if (used) TRY(add_tensor(j, t, err));
    }
    return LATH_OK;
}

/* -------------------------------------------------------------------------------------------------------------- source */

static const char *last_name(job *j, const char *path)
{
    size_t n = strlen(path), from;
    while (n > 1 && path[n - 1] == '/') n--;
    for (from = n; from > 0 && path[from - 1] != '/'; from--) {
    }
    return arena_strdup(&j->mem, path + from, n - from);
}

/* Marks in j->beside what a model without FFNs uses, with or without its output head. */
static lath_status mark_beside(job *j, arch_source *src, const char *name, lath_error *err)
{
    arch_model bare;
    src->no_ffn = true;
    TRY(arch_open(arch_find(j->facts.model_type), j->facts.config, name, src, &bare, err));
    return j->facts.level >= VINDEX_INFERENCE ? arch_open_lm_head(&bare, src, err) : LATH_OK;
}

/* Configuration, as the model's files have it or as it was made of a GGUF file's keys. */
static lath_status read_config(job *j, lath_error *err)
{
    const lath_model *m = j->m;
    weights *w;
    TRY(weights_open(&j->rt->alloc, weights_gguf(m->sources[0]) ? m->path : m->st.encoder_dir, FILE_MAP, &w, err));
    j->beside = w;
    arch_source src = {.w = w, .log = &j->rt->log, .mem = &j->mem};
    const char *name = weights_name(w);
    if (weights_gguf(w)) {
        arch_gguf g;
        TRY(arch_gguf_read(w, &j->mem, &g, err));
        j->facts.config = g.config;
        j->facts.model_type = g.model_type;
        j->facts.stored = src.stored = g.stored;
        j->facts.gguf_names = true;
    } else {
        json_value *config;
        name = file_join_in(&j->mem, m->st.encoder_dir, "config.json");
        if (!name) return err_nomem(err, strlen(m->path));
        TRY(json_load(&j->mem, name, NULL, &config, err));
        j->facts.config = config;
        TRY(json_get_str(config, "model_type", name, &j->facts.model_type, err));
    }
    if (j->facts.level > VINDEX_BROWSE) return mark_beside(j, &src, name, err);
    return LATH_OK;
}

static lath_status open_source(job *j, const char *path, lath_error *err)
{
    TRY(lath_model_open(j->rt, path, NULL, &j->m, err));
    const lath_model *m = j->m;
    layer_parts p;
    if (m->walk) return err_set(err, LATH_ERR_UNSUPPORTED, "%s: is an index already", path);
    if (m->kind != MODEL_GENERATOR || !m->arch.lm_head.w)
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: no language model: its features write no tokens", path);
    j->facts.level = (vindex_level)j->o->level;
    j->facts.n_layers = m->arch.dims.n_layers;
    j->facts.d_model = m->arch.dims.d_model;
    j->facts.vocab_size = m->arch.dims.vocab_size;
    TRY(count_ffn(j, err));
    TRY(get_parts(j, 0, &p, err));
    j->facts.rows = choose_type(j, &p);
    j->facts.source = last_name(j, path);
    if (!j->facts.source) return err_nomem(err, strlen(path));
    TRY(read_config(j, err));
    return lath_model_get_identity(m, j->facts.identity, err);
}

/* -------------------------------------------------------------------------------------------------------------- copies */

static lath_status copy_files(job *j, lath_error *err)
{
    static const char *const names[] = {"generation_config.json",
                                        "inference_config.json",
                                        "tokenizer.json",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "chat_template.jinja",
                                        "chat_template.json",
                                        "vocab.json",
                                        "merges.txt",
                                        "vocab.txt",
                                        "tokenizer.model",
                                        "spiece.model",
                                        "sentencepiece.bpe.model"};
    buf text;
    lath_status st = LATH_OK;
    buf_init(&text, &j->rt->alloc, SIZE_MAX / 2);
    for (size_t i = 0; st == LATH_OK && i < sizeof(names) / sizeof(names[0]); i++) {
        const char *path = file_join_in(&j->mem, j->m->st.encoder_dir, names[i]);
        if (!path) st = err_nomem(err, strlen(names[i]));
        if (!path || !file_exists(path)) continue;
        st = file_read(&text, path, (size_t)1 << 30, err);
        if (st == LATH_OK) st = vindex_copy(j->w, names[i], text.data ? text.data : "", text.len, err);
    }
    buf_deinit(&text);
    return st;
}

/* The keys of the GGUF file, as a file without tensors. */
static lath_status copy_keys(job *j, const gguf *g, lath_error *err)
{
    enum { COUNT_AT = 8, COUNT_BYTES = 8 }; /* of the tensors, behind magic and version */
    buf text;
    buf_init(&text, &j->rt->alloc, SIZE_MAX / 2);
    buf_append(&text, gguf_file(g)->data, gguf_keys_bytes(g));
    lath_status st = buf_status(&text, err);
    if (st == LATH_OK) memset(text.data + COUNT_AT, 0, COUNT_BYTES);
    if (st == LATH_OK) st = vindex_copy(j->w, "gguf.keys", text.data, text.len, err);
    buf_deinit(&text);
    return st;
}

/* ----------------------------------------------------------------------------------------------------------- interface */

static lath_status write_piece(job *j, int32_t i, lath_error *err)
{
    const extract_piece *p = piece_at(j, i);
    if (!vindex_piece_done(j->w, i)) {
        if (p->whole)
            TRY(vindex_piece_write(j->w, i, 0, p->whole->data, p->whole->bytes, err));
        else
            TRY((p->file == VINDEX_TOKENS ? write_tokens : write_rows)(j, i, p, err));
        TRY(vindex_piece_end(j->w, i, err));
        if (p->whole) file_forget(p->whole->data, p->whole->bytes);
    }
    j->done += work_of(j, p);
    return tick(j, err);
}

static lath_status write_all(job *j, const char *dir, lath_error *err)
{
    TRY(vindex_writer_create(&j->rt->alloc, dir, &j->facts, &j->w, err));
    TRY(add_layers(j, err));
    TRY(add_tensors(j, err));
    TRY(make_room(j, err));
    TRY(vindex_writer_begin(j->w, j->o->resume != 0, err));
    j->r.kept = vindex_writer_done(j->w);
    for (int32_t i = 0; i < n_pieces(j); i++) TRY(write_piece(j, i, err));
    const gguf *g = weights_gguf(j->m->sources[0]);
    TRY(g ? copy_keys(j, g, err) : copy_files(j, err));
    vindex_writer *w = j->w;
    j->w = NULL;
    return vindex_writer_finish(w, &j->r.bytes, err);
}

static lath_status check_options(const lath_extract_options *o, const lath_extract_result *r, lath_error *err)
{
    if (o->struct_size != sizeof(*o) || (r && r->struct_size != sizeof(*r)))
        return err_set(err, LATH_ERR_USAGE, "lath_extract: a struct of another version");
    if ((int)o->type < 0 || o->type > LATH_ROWS_Q4_K)
        return err_set(err, LATH_ERR_USAGE, "type: no such value: %d", (int)o->type);
    if ((int)o->level < 0 || o->level > LATH_VINDEX_ALL)
        return err_set(err, LATH_ERR_USAGE, "level: no such value: %d", (int)o->level);
    return LATH_OK;
}

lath_status lath_extract(lath_runtime *rt, const char *model, const char *dir, const lath_extract_options *opts,
                         lath_extract_result *result, lath_error *err)
{
    static const lath_extract_options defaults = LATH_EXTRACT_OPTIONS_INIT;
    lath_status st;
    err_clear(err);
    if (!opts) opts = &defaults;
    if (!rt || !model || !dir) return err_set(err, LATH_ERR_USAGE, "lath_extract: an argument is missing");
    TRY(check_options(opts, result, err));
    job j = {.rt = rt, .o = opts, .r = LATH_EXTRACT_RESULT_INIT};
    arena_init(&j.mem, &rt->alloc);
    buf_init(&j.pieces, &rt->alloc, SIZE_MAX / 2);
    TRY_DONE(open_source(&j, model, err));
    TRY_DONE(write_all(&j, dir, err));
    j.r.dtype = dtype_name(j.facts.rows);
    j.r.n_layers = j.facts.n_layers;
    if (result) *result = j.r;
done:
    vindex_writer_abort(j.w);
    buf_deinit(&j.pieces);
    weights_close(j.beside);
    lath_model_close(j.m);
    arena_deinit(&j.mem);
    return st;
}
