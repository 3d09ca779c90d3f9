/* SPDX-License-Identifier: Apache-2.0
 *
 * quantize.c: a model directory as a GGUF file (lath_quantize). The architecture's tables say which tensors there are and what they are called; this
 * file says of what type they become, and streams them: some rows are read, made f32, put into the order of the file, encoded by the threads and
 * written, then forgotten.
 *
 * What the keys say is read back before the data is written and compared with the model (arch_gguf_compare), so a configuration that such files
 * cannot say is an error, not another model.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "arch/arch_gguf_form.h"
#include "arch/arch_gguf_put.h"
#include "base/file.h"
#include "engine/engine.h"
#include "tensor/quant_encode.h"

enum { WAVE_NUMBERS = 1 << 21, TASK_NUMBERS = 1 << 15 };

/* A tensor of the file, or one expert's part of it: where its numbers come from and in which form. */
typedef struct piece {
    const tensor *t; /* NULL: `data` */
    const float *data;
    const char *name, *file;
    dtype type;
    int64_t rows, cols;
    int32_t n_experts, expert; /* 0: none */
    arch_gguf_form form;       /* of t; `rows` is 0 for a vector */
} piece;

typedef struct job {
    lath_runtime *rt;
    lath_model *m;
    const lath_quantize_options *o;
    const json_value *config;
    const char *config_name;
    dtype type; /* that is asked for */
    arena mem;
    gguf_writer *w;
    arch_gguf_out out;
    arch_source src;
    buf pieces; /* of piece */
    lath_quantize_result r;
    uint64_t written; /* bytes of data */
    uint8_t *blocks;  /* of a wave */
    float *numbers;   /* [threads][2] rows */
    size_t n_blocks, n_numbers;
} job;

/* -------------------------------------------------------------------------------------------------------------- types */

static const struct {
    dtype type;
    uint32_t file_type; /* general.file_type: llama_ftype of llama.h */
} types[] = {
    [LATH_GGUF_F32] = {DTYPE_F32, 0},    [LATH_GGUF_F16] = {DTYPE_F16, 1},   [LATH_GGUF_BF16] = {DTYPE_BF16, 32},
    [LATH_GGUF_Q8_0] = {DTYPE_Q8_0, 7},  [LATH_GGUF_Q4_0] = {DTYPE_Q4_0, 2}, [LATH_GGUF_Q4_K] = {DTYPE_Q4_K, 14},
    [LATH_GGUF_Q6_K] = {DTYPE_Q6_K, 18},
};

/* What llama.cpp takes where rows are no whole number of blocks. */
static dtype fallback(dtype t, int64_t cols)
{
    if (cols % (int64_t)dtype_block_numbers(t) == 0) return t;
    if (t == DTYPE_Q4_K) return fallback(DTYPE_Q5_0, cols);
    if (t == DTYPE_Q6_K) return fallback(DTYPE_Q8_0, cols);
    return DTYPE_F16;
}

/* The matrix of logits, which errors of four bits would hurt most, has six, as llama.cpp's mixtures have it. */
static dtype type_of(job *j, const piece *p, bool is_output)
{
    if (p->form.plain) return DTYPE_F32;
    const bool four = j->type == DTYPE_Q4_0 || j->type == DTYPE_Q4_K;
    const dtype want = is_output && four ? DTYPE_Q6_K : j->type, t = fallback(want, p->cols);
    if (t == want || p->expert > 0) return t;
    j->r.n_other++;
    log_line(&j->rt->log, LATH_LOG_INFO, "%s: %s instead of %s: rows of %lld numbers", p->name, dtype_name(t),
             dtype_name(want), (long long)p->cols);
    return t;
}

/* ------------------------------------------------------------------------------------------------------------- pieces */

static lath_status add_piece(job *j, const piece *p, lath_error *err)
{
    const uint64_t dim[3] = {(uint64_t)p->cols, (uint64_t)p->rows, (uint64_t)p->n_experts};
    if (p->expert == 0) {
        TRY(gguf_add_tensor(j->w, p->name, p->type, p->n_experts ? 3 : p->rows ? 2 : 1, dim, err));
        j->r.n_tensors++;
    }
    buf_append(&j->pieces, p, sizeof(*p));
    return buf_status(&j->pieces, err);
}

/* An arch_tensor_fn. */
static lath_status on_tensor(void *ctx, const arch_weight_row *row, const char *name, const tensor *t, int32_t expert,
                             lath_error *err)
{
    job *j = ctx;
    arch_gguf_form form[ARCH_GGUF_MAX_PARTS];
    int32_t n;
    const arch_model *m = &j->m->arch;
    const weight *lm_head = m->lm_head.w;
    const bool is_output = row->head || (row == m->desc->rows && lm_head && lm_head->t == t);
    TRY(arch_gguf_form_of(m, j->out.stored, row, name, t, expert, &j->mem, form, &n, err));
    for (int32_t i = 0; i < n; i++) {
        piece p = {.t = t, .file = weights_file_of(j->src.w, t), .name = form[i].name, .expert = expert};
        p.form = form[i];
        p.rows = form[i].rows;
        p.cols = form[i].cols;
        if (row->experts) p.n_experts = m->dims.n_experts;
        p.type = type_of(j, &p, is_output);
        log_line(&j->rt->log, LATH_LOG_DEBUG, "%s -> %s, %s", t->name, p.name, dtype_name(p.type));
        j->r.source_bytes += dtype_bytes(t->type, (p.rows ? p.rows : 1) * p.cols);
        TRY(add_piece(j, &p, err));
    }
    return LATH_OK;
}

static lath_status list_pieces(job *j, lath_error *err)
{
    for (int32_t i = 0; i < j->out.n_extra; i++) {
        const arch_gguf_extra *e = &j->out.extra[i];
        const piece p = {.data = e->data, .name = e->name, .type = DTYPE_F32, .cols = (int64_t)e->n};
        TRY(add_piece(j, &p, err));
    }
    return arch_each_tensor(&j->m->arch, &j->src, on_tensor, j, err);
}

/* --------------------------------------------------------------------------------------------------------------- data */

typedef struct wave {
    const job *j;
    const piece *p;
    int64_t first, n, per_task; /* rows */
    size_t row_bytes;
    atomic_bool bad; /* a number does not fit */
} wave;

/* Numbers of the source, f32. A vector is one row; its elements move as rows of a matrix do. */
static void read_source(const piece *p, int64_t row, float *x)
{
    const size_t n = (size_t)p->cols;
    if (!p->t) {
        memcpy(x, p->data, n * sizeof(float));
    } else if (p->rows) {
        const size_t bytes = dtype_bytes(p->t->type, p->cols);
        dtype_to_f32(p->t->type, (const char *)p->t->data + (size_t)arch_gguf_source_row(&p->form, row) * bytes, n, x);
    } else if (!p->form.n_runs) {
        dtype_to_f32(p->t->type, p->t->data, n, x);
    } else {
        for (int64_t i = 0; i < p->cols; i++)
            dtype_to_f32(p->t->type,
                         (const char *)p->t->data + dtype_bytes(p->t->type, arch_gguf_source_row(&p->form, i)), 1,
                         x + i);
    }
}

/* Row `row` of the file into x; `spare` is as long. */
static void read_row(const piece *p, int64_t row, float *x, float *spare)
{
    read_source(p, row, p->form.col.n ? spare : x);
    for (int64_t i = 0; i < p->form.col.n; i++) x[i] = spare[arch_gguf_source_col(&p->form, i)];
    for (int64_t i = 0; p->form.change == GGUF_PLUS_ONE && i < p->cols; i++) x[i] += 1;
    for (int64_t i = 0; p->form.change == GGUF_RATE && i < p->cols; i++) x[i] = -expf(x[i]);
}

static void encode_task(void *ctx, int64_t task, int32_t worker)
{
    wave *v = ctx;
    const piece *p = v->p;
    const int64_t from = task * v->per_task, to = from + v->per_task < v->n ? from + v->per_task : v->n;
    float *x = v->j->numbers + 2 * (size_t)worker * v->j->n_numbers;
    for (int64_t i = from; i < to; i++) {
        read_row(p, v->first + i, x, x + v->j->n_numbers);
        if (!quant_encode(p->type, x, (size_t)p->cols / dtype_block_numbers(p->type),
                          v->j->blocks + (size_t)i * v->row_bytes))
            atomic_store(&v->bad, true);
    }
}

static lath_status tick(job *j, lath_error *err)
{
    if (!j->o->progress) return LATH_OK;
    const uint64_t total = gguf_writer_total(j->w);
    if (j->o->progress(j->o->progress_ctx, (size_t)(j->written / 1000), (size_t)(total / 1000)) == 0) return LATH_OK;
    return err_set(err, LATH_ERR_INTERRUPTED, "interrupted");
}

/* Room for a wave of any piece. */
static lath_status make_room(job *j, lath_error *err)
{
    const piece *all = (const piece *)(const void *)j->pieces.data;
    const size_t n = j->pieces.len / sizeof(piece);
    for (size_t i = 0; i < n; i++) {
        const size_t row = dtype_bytes(all[i].type, all[i].cols), cols = (size_t)all[i].cols;
        const size_t rows = cols < WAVE_NUMBERS ? WAVE_NUMBERS / cols : 1;
        if (rows * row > j->n_blocks) j->n_blocks = rows * row;
        if (cols > j->n_numbers) j->n_numbers = cols;
    }
    j->n_numbers = (j->n_numbers + 15) / 16 * 16; /* a cache line for each thread */
    const size_t rows = 2 * (size_t)pool_size(j->rt->pool);
    j->blocks = arena_bytes(&j->mem, j->n_blocks, 64);
    j->numbers = arena_array(&j->mem, rows * j->n_numbers, sizeof(float));
    return j->blocks && j->numbers ? LATH_OK : err_nomem(err, j->n_blocks + rows * j->n_numbers * sizeof(float));
}

/* Rows first .. first + n of the file have been written; what of theirs a later wave wants is read again. */
static void forget(const piece *p, int64_t first, int64_t n)
{
    const size_t bytes = p->rows ? dtype_bytes(p->t->type, p->cols) : p->t->bytes;
    const int64_t a = p->rows ? arch_gguf_source_row(&p->form, first) : 0,
                  b = p->rows ? arch_gguf_source_row(&p->form, first + n - 1) : 0, from = a < b ? a : b;
    file_forget((const char *)p->t->data + (size_t)from * bytes, (size_t)((a < b ? b : a) - from + 1) * bytes);
}

static lath_status write_piece(job *j, const piece *p, lath_error *err)
{
    const int64_t rows = p->rows ? p->rows : 1, most = p->cols < WAVE_NUMBERS ? WAVE_NUMBERS / p->cols : 1;
    wave v = {.j = j, .p = p, .row_bytes = dtype_bytes(p->type, p->cols)};
    v.per_task = p->cols < TASK_NUMBERS ? TASK_NUMBERS / p->cols : 1;
    for (v.first = 0; v.first < rows; v.first += v.n) {
        v.n = rows - v.first < most ? rows - v.first : most;
        pool_enter(j->rt->pool);
        pool_run(j->rt->pool, encode_task, &v, (v.n + v.per_task - 1) / v.per_task);
        pool_leave(j->rt->pool);
        if (atomic_load(&v.bad))
            return err_set(err, LATH_ERR_FORMAT, "%s: tensor \"%s\": a number is not finite or too large for %s",
                           p->file, p->t->name, dtype_name(p->type));
        TRY(gguf_write(j->w, j->blocks, (size_t)v.n * v.row_bytes, err));
        j->written += (uint64_t)v.n * v.row_bytes;
        if (p->t) forget(p, v.first, v.n);
        TRY(tick(j, err));
    }
    return LATH_OK;
}

/* --------------------------------------------------------------------------------------------------------------- keys */

/* The last part of the directory's path that is a name. */
static const char *dir_name(job *j, const char *dir)
{
    size_t n = strlen(dir), from;
    while (n > 1 && dir[n - 1] == '/') n--;
    for (from = n; from > 0 && dir[from - 1] != '/'; from--) {
    }
    return arena_strdup(&j->mem, dir + from, n - from);
}

/* The model's other end tokens: files have keys for the end of a turn and of a message. */
static void put_ends(const job *j, tok_arrays *a)
{
    int32_t n;
    const int32_t *ends = model_end_ids(j->m, &n);
    for (int32_t i = 0; i < n; i++) {
        const int32_t id = ends[i];
        if (id == a->eos || id == a->eot || id == a->eom) continue;
        const char *text = lath_tokenizer_token(&j->m->tokenizer, id);
        const bool message = text && strcmp(text, "<|eom_id|>") == 0;
        if (a->eos < 0)
            a->eos = id;
        else if (a->eot < 0 && !message)
            a->eot = id;
        else if (a->eom < 0)
            a->eom = id;
        else
            log_line(&j->rt->log, LATH_LOG_WARN, "%s: end token %d has no key in a GGUF file", j->config_name, (int)id);
    }
}

static lath_status put_tokenizer(job *j, lath_error *err)
{
    tok_arrays a;
    const struct {
        const char *key;
        int32_t *out;
    } rows[] = {{"bos_token_id", &a.bos}, {"eos_token_id", &a.eos}, {"pad_token_id", &a.pad}};
    TRY(tok_arrays_read(&j->mem, j->m->st.encoder_dir, j->m->arch.dims.vocab_size, &j->rt->log, &a, err));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) { /* what the tokenizer's own files do not say */
        const json_value *v = json_get(j->config, rows[i].key);
        if (*rows[i].out < 0 && v && v->kind == JSON_INT && v->u.integer >= 0 &&
            v->u.integer < j->m->arch.dims.vocab_size)
            *rows[i].out = (int32_t)v->u.integer;
    }
    put_ends(j, &a);
    gguf_tokenizer_put(j->w, &a);
    const char *template = model_chat_template(j->m);
    if (template) gguf_put_text(j->w, "tokenizer.chat_template", template, strlen(template));
    return LATH_OK;
}

/* How an embedder pools, where one mode says it: pooling_type of llama.h. */
static void put_pooling(const job *j)
{
    char key[128];
    const st_config *st = &j->m->st;
    if (!st->has_pooling || st->n_modes != 1) return;
    const uint32_t type = st->modes[0] == KERN_POOL_MEAN    ? 1
                          : st->modes[0] == KERN_POOL_FIRST ? 2
                          : st->modes[0] == KERN_POOL_LAST  ? 3
                                                            : 0;
    snprintf(key, sizeof(key), "%s.pooling_type", j->out.architecture);
    if (type) gguf_put_u32(j->w, key, type);
}

static lath_status put_keys(job *j, const char *dir, lath_error *err)
{
    const char *name = j->o->name ? j->o->name : dir_name(j, dir);
    if (!name) return err_nomem(err, strlen(dir));
    TRY(arch_gguf_put(&j->m->arch, j->config, j->config_name, &j->mem, j->w, &j->out, err));
    if (j->out.note) log_line(&j->rt->log, LATH_LOG_WARN, "%s: %s", j->config_name, j->out.note);
    gguf_put_text(j->w, "general.type", "model", 5);
    gguf_put_text(j->w, "general.name", name, strlen(name));
    gguf_put_u32(j->w, "general.alignment", GGUF_ALIGNMENT);
    gguf_put_u32(j->w, "general.file_type", types[j->o->type].file_type);
    gguf_put_u32(j->w, "general.quantization_version", 2);
    put_pooling(j);
    return put_tokenizer(j, err);
}

/* What the file says is the same model. Its data is still to come, but for the vectors that a configuration became. */
static lath_status check_keys(job *j, lath_error *err)
{
    const char *path = gguf_writer_temp(j->w);
    weights *w;
    arch_gguf g;
    if (!path) return LATH_OK;
    TRY(weights_open_file(&j->rt->alloc, path, FILE_MAP, &w, err));
    lath_status st = arch_gguf_read(w, &j->mem, &g, err);
    if (st == LATH_OK) {
        const arch_desc *d = arch_find(g.model_type);
        arch_model written = {
            .desc = d, .mem = &j->mem, .stored = g.stored, .weights = arena_zero(&j->mem, d->model_size)};
        st = written.weights ? d->parse(&written, g.config, path, err) : err_nomem(err, d->model_size);
        if (st == LATH_OK) st = arch_gguf_compare(&j->m->arch, &written, j->config_name, err);
    }
    weights_close(w);
    return st;
}

/* ---------------------------------------------------------------------------------------------------------- interface */

static lath_status write_all(job *j, const char *dir, lath_error *err)
{
    TRY(put_keys(j, dir, err));
    TRY(list_pieces(j, err));
    TRY(make_room(j, err));
    TRY(gguf_writer_begin(j->w, err));
    const piece *all = (const piece *)(const void *)j->pieces.data;
    const size_t n = j->pieces.len / sizeof(piece);
    for (size_t i = 0; i < n; i++) {
        if (i == (size_t)j->out.n_extra) TRY(check_keys(j, err));
        TRY(write_piece(j, &all[i], err));
    }
    gguf_writer *w = j->w;
    j->w = NULL;
    return gguf_writer_finish(w, &j->r.bytes, err);
}

static lath_status open_source(job *j, const char *dir, lath_error *err)
{
    json_value *config;
    if (gguf_is_name(dir) && !file_is_dir(dir))
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: only directories of Hugging Face can be converted", dir);
    TRY(lath_model_open(j->rt, dir, NULL, &j->m, err));
    if (j->m->bare)
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: is an index of features; convert the model it was made of", dir);
    j->config_name = file_join_in(&j->mem, j->m->st.encoder_dir, "config.json");
    if (!j->config_name) return err_nomem(err, strlen(dir));
    for (int32_t i = 0; i < j->m->st.n_steps; i++)
        if (j->m->st.steps[i].kind == ST_DENSE)
            return err_set(err, LATH_ERR_UNSUPPORTED, "%s: a model with a Dense module cannot be written", dir);
    TRY(json_load(&j->mem, j->config_name, NULL, &config, err));
    j->config = config;
    j->src = (arch_source){.w = j->m->sources[0], .log = &j->rt->log, .mem = &j->m->mem};
    /* An embedder needs none, and may have none. */
    return j->m->kind == MODEL_GENERATOR ? arch_open_lm_head(&j->m->arch, &j->src, err) : LATH_OK;
}

lath_status lath_quantize(lath_runtime *rt, const char *dir, const char *path, const lath_quantize_options *opts,
                          lath_quantize_result *result, lath_error *err)
{
    static const lath_quantize_options defaults = LATH_QUANTIZE_OPTIONS_INIT;
    lath_status st;
    err_clear(err);
    if (!opts) opts = &defaults;
    if (!rt || !dir || !path) return err_set(err, LATH_ERR_USAGE, "lath_quantize: an argument is missing");
    if (opts->struct_size != sizeof(*opts) || (result && result->struct_size != sizeof(*result)))
        return err_set(err, LATH_ERR_USAGE, "lath_quantize: a struct of another version");
    if ((int)opts->type < 0 || (size_t)opts->type >= sizeof(types) / sizeof(types[0]))
        return err_set(err, LATH_ERR_USAGE, "type: no such value: %d", (int)opts->type);
    job j = {.rt = rt, .o = opts, .type = types[opts->type].type, .r = LATH_QUANTIZE_RESULT_INIT};
    arena_init(&j.mem, &rt->alloc);
    buf_init(&j.pieces, &rt->alloc, SIZE_MAX / 2);
    TRY_DONE(open_source(&j, dir, err));
    TRY_DONE(gguf_writer_create(&rt->alloc, path, &j.w, err));
    TRY_DONE(write_all(&j, dir, err));
    j.r.architecture = j.out.architecture;
    if (result) *result = j.r;
done:
    gguf_writer_abort(j.w);
    buf_deinit(&j.pieces);
    lath_model_close(j.m);
    arena_deinit(&j.mem);
    return st;
}
