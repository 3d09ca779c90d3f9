/* SPDX-License-Identifier: Apache-2.0
 * model_info.c: what a model is, in numbers; its tensors and prompts; its fingerprint and identity. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "engine/engine.h"

/* By dtype: what the tensors in use are, beside `info` (which may be NULL) about all. */
static void count_tensors(const lath_model *m, lath_dtype_info by_dtype[DTYPE_COUNT], lath_model_info *info)
{
    lath_model_info unwanted = {0};
    if (!info) info = &unwanted;
    memset(by_dtype, 0, DTYPE_COUNT * sizeof(*by_dtype));
    for (int t = 0; t < DTYPE_COUNT; t++) by_dtype[t].dtype = dtype_name((dtype)t);
    for (int32_t f = 0; f < m->n_sources; f++) {
        const weights *w = m->sources[f];
        info->file_bytes += weights_file_bytes(w);
        info->private_bytes += weights_private_bytes(w);
        for (int32_t i = 0; i < weights_count(w); i++) {
            bool used;
            const tensor *t = weights_at(w, i, &used);
            info->n_tensors++;
            if (!used) {
                info->n_unused++;
                continue;
            }
            info->n_params += (uint64_t)t->count;
            by_dtype[t->type].n_tensors++;
            by_dtype[t->type].n_params += (uint64_t)t->count;
            by_dtype[t->type].bytes += t->bytes;
            if (info && m->integer && m->arch.desc->window && t->rank > 1 &&
                kern_xq_bytes(t->type, DTYPE_MAX_BLOCK) > 0)
                info->integer_products = 1;
        }
    }
}

/* The dtype of most bytes among those in use that `seen` does not have; NULL: there is none left. */
static lath_dtype_info *next_dtype(lath_dtype_info by_dtype[DTYPE_COUNT], bool seen[DTYPE_COUNT])
{
    lath_dtype_info *most = NULL;
    for (int t = 0; t < DTYPE_COUNT; t++) {
        if (!seen[t] && by_dtype[t].n_tensors > 0 && (!most || by_dtype[t].bytes > most->bytes)) most = &by_dtype[t];
    }
    if (most) seen[most - by_dtype] = true;
    return most;
}

lath_status lath_model_get_dtype(const lath_model *model, int32_t i, lath_dtype_info *out, lath_error *err)
{
    lath_dtype_info by_dtype[DTYPE_COUNT];
    bool seen[DTYPE_COUNT] = {false};
    err_clear(err);
    if (!model || !out) return err_set(err, LATH_ERR_USAGE, "lath_model_get_dtype: an argument is missing");
    pthread_mutex_lock(&((lath_model *)model)->listing);
    count_tensors(model, by_dtype, NULL);
    pthread_mutex_unlock(&((lath_model *)model)->listing);
    const lath_dtype_info *d = i < 0 ? NULL : next_dtype(by_dtype, seen);
    for (int32_t k = 0; d && k < i; k++) d = next_dtype(by_dtype, seen);
    if (!d) return err_set(err, LATH_ERR_USAGE, "dtype %d: the model has less", i);
    *out = *d;
    return LATH_OK;
}

/* Tensors whose names begin so; with the number of a layer in it, those of all layers that there are behind the model's. */
static int32_t count_named(const lath_model *m, const char *pattern)
{
    const char *hole = strstr(pattern, "{}");
    char name[64];
    int32_t all = 0, n = 1;
    if (!hole) return weights_count_named(m->sources[0], pattern);
    for (int32_t layer = m->arch.dims.n_layers; n > 0; layer++, all += n) {
        snprintf(name, sizeof(name), "%.*s%d%s", (int)(hole - pattern), pattern, (int)layer, hole + 2);
        n = weights_count_named(m->sources[0], name);
    }
    return all;
}

static int32_t count_unused(const lath_model *m, const arch_unused *u)
{
    int32_t n = 0;
    for (int32_t i = 0; i < ARCH_UNUSED_NAMES && u->names[i]; i++) n += count_named(m, u->names[i]);
    return n;
}

/* Group i of those that there are some of; NULL: there are less. */
static const arch_unused *unused_at(const lath_model *m, int32_t i)
{
    for (const arch_unused *u = m->arch.desc->unused; u && u->what; u++)
        if (count_unused(m, u) > 0 && i-- == 0) return u;
    return NULL;
}

lath_status lath_model_get_unused(const lath_model *model, int32_t i, lath_unused_info *out, lath_error *err)
{
    err_clear(err);
    if (!model || !out) return err_set(err, LATH_ERR_USAGE, "lath_model_get_unused: an argument is missing");
    const arch_unused *u = i < 0 ? NULL : unused_at(model, i);
    if (!u) return err_set(err, LATH_ERR_USAGE, "group %d of unused tensors: the model has less", i);
    *out = (lath_unused_info){u->what, count_unused(model, u)};
    return LATH_OK;
}

lath_status lath_model_get_info(const lath_model *model, lath_model_info *info, lath_error *err)
{
    err_clear(err);
    if (!model || !info || info->struct_size != sizeof(*info))
        return err_set(err, LATH_ERR_USAGE, "lath_model_get_info: %s",
                       model && info ? "a struct of another version" : "an argument is missing");
    static const char *const kinds[] = {"embedder", "cross-encoder", "language model"};
    const arch_dims *d = &model->arch.dims;
    *info = (lath_model_info){
        .struct_size = sizeof(*info),
        .architecture = model->arch.desc->name,
        .path = model->path,
        .activation = d->activation,
        .n_layers = d->n_layers,
        .n_heads = d->n_heads,
        .vocab_size = d->vocab_size,
        .d_model = d->d_model,
        .d_ff = d->d_ff,
        .max_tokens = model->max_tokens,
        .d_embedding = model->st.truncate_dim ? model->st.truncate_dim : model->d_embedding,
        .pooling = st_public_pooling(&model->st),
        .normalized = model->normalized,
        .declares_pooling = model->st.has_pooling,
        .private_bytes = model->mem.total + tok_private_bytes(model->tokenizer.tok) + sizeof(*model),
        .batch_bytes = embed_batch_bytes(model),
        .n_prompts = model->st.n_prompts,
        .eos_token_id = model->inference.eos_token_id,
        .rope_table_max_seq_len = model->inference.rope_table_max_seq_len,
        .gpu_max_seq_len = model->inference.gpu_max_seq_len,
        .default_prompt = model->st.default_prompt,
        .kind = kinds[model->kind],
        .class_name = model->class_name,
        .n_labels = model->labels.n,
        .score_activation = model->kind == MODEL_CROSS_ENCODER ? model->st.activation_fn : NULL,
        .n_experts = d->n_experts,
        .n_top_experts = d->n_top_experts,
        .d_expert = d->d_expert,
        .chat_template = model_chat_template(model),
    };
    info->end_ids = model_end_ids(model, &info->n_end_ids);
    arch_count_weights(&model->arch, &info->layer_weights, &info->layer_bytes);
    const weight *head = model->arch.lm_head.w;
    if (head) info->head_weights = (uint64_t)(head->rows * head->cols);
    if (head) info->head_bytes = dtype_bytes(head->t->type, head->rows * head->cols);
    pthread_mutex_lock(&((lath_model *)model)->listing);
    lath_dtype_info by_dtype[DTYPE_COUNT];
    bool seen[DTYPE_COUNT] = {false};
    count_tensors(model, by_dtype, info);
    pthread_mutex_unlock(&((lath_model *)model)->listing);
    info->weights = dtype_name(DTYPE_F32);
    while (unused_at(model, info->n_unused_groups)) info->n_unused_groups++;
    for (const lath_dtype_info *one; (one = next_dtype(by_dtype, seen)); info->n_dtypes++)
        if (info->n_dtypes == 0) info->weights = one->dtype;
    return model_fingerprint(model, info->fingerprint, err);
}

/* What is bound is open since the model is; the shards that nothing uses are opened for the first listing. */
static lath_status open_for_listing(const lath_model *model, weights *w, lath_error *err)
{
    pthread_mutex_t *m = &((lath_model *)model)->listing;
    pthread_mutex_lock(m);
    lath_status st = weights_open_all(w, err);
    pthread_mutex_unlock(m);
    return st;
}

lath_status lath_model_get_tensor(const lath_model *model, int32_t i, lath_tensor_info *out, lath_error *err)
{
    err_clear(err);
    if (!model || !out) return err_set(err, LATH_ERR_USAGE, "lath_model_get_tensor: an argument is missing");
    for (int32_t f = 0, at = i; f < model->n_sources && at >= 0; f++) {
        weights *w = model->sources[f];
        bool used;
        if (at >= weights_count(w)) {
            at -= weights_count(w);
            continue;
        }
        TRY(open_for_listing(model, w, err));
        const tensor *t = weights_at(w, at, &used);
        *out = (lath_tensor_info){t->name, dtype_name(t->type), t->rank, t->dim, t->bytes, used};
        return LATH_OK;
    }
    return err_set(err, LATH_ERR_USAGE, "tensor %d: no such tensor", i);
}

lath_status lath_model_get_prompt(const lath_model *model, int32_t i, const char **name, const char **text,
                                  lath_error *err)
{
    err_clear(err);
    if (!model || !name || !text) return err_set(err, LATH_ERR_USAGE, "lath_model_get_prompt: an argument is missing");
    if (i < 0 || i >= model->st.n_prompts)
        return err_set(err, LATH_ERR_USAGE, "prompt %d: the model has %d", i, model->st.n_prompts);
    *name = model->st.prompts[i].name;
    *text = model->st.prompts[i].text;
    return LATH_OK;
}

lath_status lath_model_get_label(const lath_model *model, int32_t i, const char **name, lath_error *err)
{
    err_clear(err);
    if (!model || !name) return err_set(err, LATH_ERR_USAGE, "lath_model_get_label: an argument is missing");
    if (i < 0 || i >= model->labels.n)
        return err_set(err, LATH_ERR_USAGE, "label %d: the model has %d", i, model->labels.n);
    *name = model->labels.names[i];
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------- fingerprint */

enum { SAMPLES = 256, SAMPLE_BYTES = 4096, HEAD_BYTES = 1 << 20 };

static void mix(hash128 *h, const void *p, size_t n)
{
    hash128 part = hash_128(p, n, h->lo ^ h->hi * 0x9E3779B97F4A7C15u);
    h->lo = part.lo + h->hi;
    h->hi = part.hi;
}

/* Size, the beginning (the header is there) and blocks spread over the rest: a megabyte or two of a file of any size. */
static void mix_weights(hash128 *h, const file_map *f)
{
    uint64_t size = f->size;
    mix(h, &size, sizeof(size));
    if (f->size <= HEAD_BYTES + (size_t)SAMPLES * SAMPLE_BYTES) {
        mix(h, f->data, f->size);
        return;
    }
    mix(h, f->data, HEAD_BYTES);
    size_t step = (f->size - HEAD_BYTES - SAMPLE_BYTES) / (SAMPLES - 1);
    for (size_t i = 0; i < SAMPLES; i++) mix(h, f->data + HEAD_BYTES + i * step, SAMPLE_BYTES);
}

/* Only the files that results depend on: those, and no others, are open in every model of this directory. */
static void mix_sources(hash128 *h, const lath_model *m)
{
    for (int32_t s = 0; s < m->n_sources; s++) {
        for (int32_t i = 0; i < weights_n_files(m->sources[s]); i++) {
            const file_map *f = weights_file_in_use(m->sources[s], i);
            if (f) mix_weights(h, f);
        }
    }
}

static lath_status mix_file(hash128 *h, buf *path, buf *text, const char *dir, const char *name, lath_error *err)
{
    file_join(path, dir, name);
    TRY(buf_status(path, err));
    mix(h, name, strlen(name));
    if (!file_exists(buf_cstr(path))) return LATH_OK;
    TRY(file_read(text, buf_cstr(path), (size_t)1 << 30, err));
    mix(h, text->data ? text->data : "", text->len);
    return LATH_OK;
}

lath_status model_fingerprint(const lath_model *m, uint64_t out[2], lath_error *err)
{
    static const char *const encoder_files[] = {"config.json", "tokenizer.json", "vocab.txt", "tokenizer_config.json",
                                                "sentence_bert_config.json"};
    static const char *const root_files[] = {"modules.json", "inference_config.json",
                                             "config_sentence_transformers.json", "1_Pooling/config.json"};
    hash128 h = {1, 2};
    buf path, text;
    const vindex *x = weights_vindex(m->sources[0]);
    if (x) { /* its index.json has the checksums of all other files */
        const hash128 all = vindex_hash(x);
        out[0] = all.lo;
        out[1] = all.hi;
        return LATH_OK;
    }
    const gguf *g = weights_gguf(m->sources[0]);
    if (g) { /* configuration and tokenizer are what stands before the tensors of the first part */
        mix(&h, gguf_file(g)->data, gguf_header_bytes(g));
        mix_sources(&h, m);
        out[0] = h.lo;
        out[1] = h.hi;
        return LATH_OK;
    }
    buf_init(&path, &m->rt->alloc, 1 << 16);
    buf_init(&text, &m->rt->alloc, SIZE_MAX / 2);
    lath_status st = LATH_OK;
    for (size_t i = 0; st == LATH_OK && i < sizeof(encoder_files) / sizeof(encoder_files[0]); i++)
        st = mix_file(&h, &path, &text, m->st.encoder_dir, encoder_files[i], err);
    for (size_t i = 0; st == LATH_OK && i < sizeof(root_files) / sizeof(root_files[0]); i++)
        st = mix_file(&h, &path, &text, m->path, root_files[i], err);
    if (st == LATH_OK) mix_sources(&h, m);
    for (int32_t i = 0; st == LATH_OK && i < m->st.n_steps; i++)
        mix(&h, &m->st.steps[i].kind, sizeof(m->st.steps[i].kind));
    out[0] = h.lo;
    out[1] = h.hi;
    buf_deinit(&text);
    buf_deinit(&path);
    return st;
}

/* What the files of configuration were understood as, and where a tokenizer is read from when it is not in tokenizer.json. */
static lath_status mix_more(hash128 *h, const lath_model *m, lath_error *err)
{
    static const char *const files[] = {"tokenizer.model",  "spiece.model", "sentencepiece.bpe.model",
                                        "vocab.json",       "merges.txt",   "special_tokens_map.json",
                                        "added_tokens.json"};
    const st_config *c = &m->st;
    const int64_t numbers[] = {c->n_modes, c->include_prompt, c->lower_case, c->truncate_dim, m->max_tokens};
    buf path, text;
    buf_init(&path, &m->rt->alloc, 1 << 16);
    buf_init(&text, &m->rt->alloc, SIZE_MAX / 2);
    lath_status st = LATH_OK;
    for (size_t i = 0; st == LATH_OK && i < sizeof(files) / sizeof(files[0]); i++)
        st = mix_file(h, &path, &text, c->encoder_dir, files[i], err);
    buf_deinit(&text);
    buf_deinit(&path);
    mix(h, numbers, sizeof(numbers));
    mix(h, c->modes, (size_t)c->n_modes * sizeof(c->modes[0]));
    for (int32_t i = 0; i < c->n_steps; i++) mix(h, &c->steps[i].fn, sizeof(c->steps[i].fn));
    return st;
}

static lath_status identify(const lath_model *m, uint64_t out[2], lath_error *err)
{
    TRY(model_fingerprint(m, out, err));
    if (weights_vindex(m->sources[0])) return LATH_OK;
    hash128 h = {out[0], out[1]};
    TRY(mix_more(&h, m, err));
    for (int32_t s = 0; s < m->n_sources; s++) {
        for (int32_t i = 0; i < weights_n_files(m->sources[s]); i++) {
            const file_map *f = weights_file_in_use(m->sources[s], i);
            if (f) mix(&h, f->data, f->size);
        }
    }
    out[0] = h.lo;
    out[1] = h.hi;
    return LATH_OK;
}

/* Models that differ in a few rows or in biases may have the same samples: here every byte counts. XXH3 takes 10 GB a second of a file in
 * memory, so it is read once a model rather than guessed from sizes and times. */
lath_status lath_model_get_identity(const lath_model *model, uint64_t out[2], lath_error *err)
{
    lath_model *m = (lath_model *)model;
    err_clear(err);
    if (!m || !out) return err_set(err, LATH_ERR_USAGE, "lath_model_get_identity: an argument is missing");
    pthread_mutex_lock(&m->listing);
    const lath_status st = m->identified ? LATH_OK : identify(m, m->identity, err);
    m->identified = st == LATH_OK;
    if (m->identified) memcpy(out, m->identity, sizeof(m->identity));
    pthread_mutex_unlock(&m->listing);
    return st;
}
