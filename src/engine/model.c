/* SPDX-License-Identifier: Apache-2.0
 *
 * model.c: opening a model: a directory or a GGUF file. Order: modules.json (where is the encoder, what comes behind it), config.json (which
 * architecture), weights, inference_config.json, tokenizer; in a GGUF file all is one, and there are no modules. Everything is checked against everything else before the model is handed out.
 */
#include <stdatomic.h>
#include <string.h>

#include "base/file.h"
#include "engine/engine.h"
#include "engine/grammar.h"
#include "engine/walk.h"

static lath_status open_weights(lath_model *m, const char *dir, const lath_model_options *opts, arch_source *src,
                                lath_error *err)
{
    weights **w = &m->sources[m->n_sources];
    TRY(weights_open(&m->rt->alloc, dir, opts->load == LATH_LOAD_COPY ? FILE_COPY : FILE_MAP, w, err));
    m->n_sources++;
    *src = (arch_source){.w = *w, .log = &m->rt->log, .mem = &m->mem};
    return LATH_OK;
}

/* Weights of a quantised model need its scales and tables, which no tensor type of ours has. */
static lath_status check_quantized(const json_value *config, const char *path, lath_error *err)
{
    static const char *const keys[] = {"quantization_config", "compression_config"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const json_value *q = json_get(config, keys[i]);
        const char *method = NULL;
        if (!json_present(q)) continue;
        TRY(json_get_str(q, "quant_method", path, &method, err));
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: line %u: \"%s\": %s%.60s%s is not supported", path, q->line,
                       keys[i], method ? "quant_method \"" : "a quantised model", method ? method : "",
                       method ? "\"" : "");
    }
    return LATH_OK;
}

/* The reference would add them to the weights: without them it is another model. */
static lath_status check_adapters(lath_model *m, lath_error *err)
{
    const char *path = file_join_in(&m->mem, m->st.encoder_dir, "adapter_config.json");
    if (!path) return err_nomem(err, strlen(m->st.encoder_dir));
    if (!file_exists(path)) return LATH_OK;
    return err_set(err, LATH_ERR_UNSUPPORTED, "%s: adapters are not supported (merge them into the weights)", path);
}

static lath_status open_arch(lath_model *m, const lath_model_options *opts, model_config *c, lath_error *err)
{
    const char *path, *type = NULL;
    json_value *config;
    TRY(check_adapters(m, err));
    path = file_join_in(&m->mem, m->st.encoder_dir, "config.json");
    if (!path) return err_nomem(err, strlen(m->st.encoder_dir));
    TRY(json_load(&m->mem, path, NULL, &config, err));
    if (config->kind != JSON_OBJECT) return err_set(err, LATH_ERR_FORMAT, "%s: want a JSON object", path);
    TRY(json_get_str(config, "model_type", path, &type, err));
    if (!type) return err_set(err, LATH_ERR_FORMAT, "%s: no \"model_type\" in it", path);
    const arch_desc *d = arch_find(type);
    if (!d) {
        buf names;
        buf_init(&names, &m->rt->alloc, 4096);
        arch_names(&names);
        log_line(&m->rt->log, LATH_LOG_ERROR, "%s: model_type \"%.60s\"; there is: %s", path, type, buf_cstr(&names));
        buf_deinit(&names);
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: model_type \"%.60s\" is not supported", path, type);
    }
    TRY(check_quantized(config, path, err));
    *c = (model_config){.json = config, .path = path, .type = type};
    TRY(open_weights(m, m->st.encoder_dir, opts, &c->src, err));
    return arch_open(d, config, path, &c->src, &m->arch, err);
}

static lath_status open_gguf(lath_model *m, const lath_model_options *opts, model_config *c, lath_error *err)
{
    arch_gguf g;
    *c = (model_config){.path = m->path};
    TRY(open_weights(m, m->path, opts, &c->src, err));
    c->path = weights_name(c->src.w);
    TRY(arch_gguf_read(c->src.w, &m->mem, &g, err));
    c->src.stored = g.stored;
    c->json = g.config;
    c->type = g.model_type;
    st_config_gguf(m->path, g.pooling, &m->st);
    const lath_status st = arch_open(arch_find(g.model_type), g.config, c->path, &c->src, &m->arch, err);
    if (st != LATH_OK) arch_gguf_explain(&g, err);
    return st;
}

/* A vindex has the configuration in itself; its FFNs are walked. */
static lath_status open_vindex(lath_model *m, const lath_model_options *opts, model_config *c, lath_error *err)
{
    ffn_walk_source source;
    TRY(st_config_load(&m->mem, m->path, &m->st, err));
    TRY(open_weights(m, m->path, opts, &c->src, err));
    const vindex *x = weights_vindex(c->src.w);
    const vindex_facts *f = vindex_get_facts(x);
    TRY(vindex_need(x, VINDEX_INFERENCE, "runs no model", err));
    c->json = f->config;
    c->path = vindex_name(x);
    c->type = f->model_type;
    c->src.stored = f->stored;
    c->src.no_ffn = true;
    const arch_desc *d = arch_find(f->model_type);
    if (!d)
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: model_type \"%.60s\" is not supported", c->path, f->model_type);
    TRY(arch_open(d, c->json, c->path, &c->src, &m->arch, err));
    m->bare = m->arch.ffn;
    TRY(walk_source_make(x, &m->arch, m->bare, &m->mem, &source, err));
    TRY(ffn_walk_open(&source, 0, 0, f->n_layers - 1, NULL, &m->rt->alloc, &m->walk, err));
    ffn_borrow(&m->lent, m->walk);
    m->arch.ffn = &m->lent.base;
    return LATH_OK;
}

/* Binds the dense modules and follows the vector's length through all steps. */
static lath_status open_steps(lath_model *m, const lath_model_options *opts, lath_error *err)
{
    if (m->st.pooling_d && m->st.pooling_d != m->arch.dims.d_model)
        return err_set(err, LATH_ERR_FORMAT, "%s: Pooling is for %lld features, the encoder has %lld", m->path,
                       (long long)m->st.pooling_d, (long long)m->arch.dims.d_model);
    int64_t d = m->d_pooled = m->arch.dims.d_model * m->st.n_modes;
    for (int32_t i = 0; i < m->st.n_steps; i++) {
        st_step *s = &m->st.steps[i];
        m->normalized = s->kind == ST_NORMALIZE;
        if (s->kind == ST_NORMALIZE) continue;
        if (s->d_in != d)
            return err_set(err, LATH_ERR_FORMAT, "%s: in_features is %lld, but %lld come in", s->dir,
                           (long long)s->d_in, (long long)d);
        arch_source src;
        TRY(open_weights(m, s->dir, opts, &src, err));
        TRY(arch_bind_linear(&src, "linear.weight", s->has_bias ? "linear.bias" : NULL, s->d_out, s->d_in, &s->dense,
                             err));
        d = s->d_out;
    }
    m->d_embedding = d;
    if (m->st.truncate_dim > d) m->st.truncate_dim = 0; /* as slicing does in the reference */
    return LATH_OK;
}

static lath_status open_inference(lath_model *m, lath_error *err)
{
    const char *path;
    m->inference = inference_defaults;
    if (weights_gguf(m->sources[0])) return LATH_OK;
    path = file_join_in(&m->mem, m->path, "inference_config.json");
    if (!path) return err_nomem(err, strlen(m->path));
    TRY(inference_config_load(&m->mem, path, &m->inference, err));
    if (m->inference.eos_token_id >= m->arch.dims.vocab_size)
        return err_set(err, LATH_ERR_FORMAT, "%s: eos_token_id %d is no token of a vocabulary of %d", path,
                       m->inference.eos_token_id, m->arch.dims.vocab_size);
    return LATH_OK;
}

static lath_status open_tokenizer(lath_model *m, lath_error *err)
{
    const gguf *g = weights_gguf(m->sources[0]);
    TRY(g ? gguf_tokenizer_open(&m->rt->alloc, g, &m->tokenizer.tok, err)
          : tok_open_dir(&m->rt->alloc, m->st.encoder_dir, &m->tokenizer.tok, err));
    m->tokenizer.rt = m->rt;
    if (m->st.lower_case) TRY(tok_prepend_lowercase(m->tokenizer.tok, err));
    int64_t window = m->st.max_seq_length;
    if (!window && !g) TRY(st_tokenizer_window(&m->mem, m->st.encoder_dir, &window, err));
    int64_t most = m->arch.dims.max_positions;
    const int64_t rope = m->inference.rope_table_max_seq_len;
    if (rope && rope < most) most = rope;
    m->max_tokens = (int32_t)(window && window < most ? window : most);
    if (m->max_tokens <= tok_n_template(m->tokenizer.tok))
        return err_set(err, LATH_ERR_FORMAT, "%s: a window of %d tokens leaves no room for text", m->path,
                       m->max_tokens);
    return LATH_OK;
}

static lath_status open_all(lath_model *m, const char *path, const lath_model_options *opts, lath_error *err)
{
    model_config config = {0};
    m->path = arena_strdup(&m->mem, path, strlen(path));
    if (!m->path) return err_nomem(err, strlen(path));
    if (!file_exists(path)) return err_set(err, LATH_ERR_NOT_FOUND, "%s: no such file or directory", path);
    const bool is_dir = file_is_dir(path);
    if (!is_dir && !gguf_is_name(path))
        return err_set(err, LATH_ERR_NOT_FOUND, "%s: no model directory and no .gguf file", path);
    if (is_dir && vindex_is_dir(path)) {
        TRY(open_vindex(m, opts, &config, err));
    } else if (is_dir) {
        TRY(st_config_load(&m->mem, m->path, &m->st, err));
        TRY(open_arch(m, opts, &config, err));
    } else {
        TRY(open_gguf(m, opts, &config, err));
    }
    TRY(open_steps(m, opts, err));
    TRY(open_inference(m, err));
    TRY(open_tokenizer(m, err));
    TRY(model_open_turns(m, &config, err));
    return model_open_head(m, &config, err);
}

lath_status lath_model_open(lath_runtime *rt, const char *path, const lath_model_options *opts, lath_model **out,
                            lath_error *err)
{
    static const lath_model_options defaults = LATH_MODEL_OPTIONS_INIT;
    err_clear(err);
    if (!opts) opts = &defaults;
    if (!rt || !path || !out) return err_set(err, LATH_ERR_USAGE, "lath_model_open: an argument is missing");
    if (opts->struct_size != sizeof(*opts))
        return err_set(err, LATH_ERR_USAGE, "lath_model_open: options of another version");
    if (opts->load != LATH_LOAD_MAP && opts->load != LATH_LOAD_COPY)
        return err_set(err, LATH_ERR_USAGE, "load: no such value: %d", (int)opts->load);
    if ((int)opts->precision < 0 || opts->precision > LATH_PRECISION_INT8)
        return err_set(err, LATH_ERR_USAGE, "precision: no such value: %d", (int)opts->precision);
    if (opts->precision != LATH_PRECISION_AUTO && opts->precision != LATH_PRECISION_EXACT)
        return err_set(err, LATH_ERR_UNSUPPORTED, "precision: %s is not supported (exact is)",
                       opts->precision == LATH_PRECISION_BF16 ? "bf16" : "int8");
    lath_model *m = alloc_zero(&rt->alloc, sizeof(*m));
    if (!m) return err_nomem(err, sizeof(*m));
    m->rt = rt;
    m->integer = opts->precision == LATH_PRECISION_AUTO;
    arena_init(&m->mem, &rt->alloc);
    pthread_mutex_init(&m->listing, NULL);
    lath_status st = open_all(m, path, opts, err);
    if (st != LATH_OK)
        lath_model_close(m);
    else
        *out = m;
    return st;
}

void lath_model_close(lath_model *model)
{
    if (!model) return;
    token_trie_destroy(atomic_load(&model->tokenizer.trie));
    tok_close(model->tokenizer.tok);
    ffn_close(model->walk);
    for (int32_t i = 0; i < model->n_sources; i++) weights_close(model->sources[i]);
    pthread_mutex_destroy(&model->listing);
    arena_deinit(&model->mem);
    alloc_release(&model->rt->alloc, model, sizeof(*model));
}

const char *lath_model_file_at(const lath_model *model, const void *address)
{
    for (int32_t i = 0; i < model->n_sources; i++) {
        const char *path = weights_file_at(model->sources[i], address);
        if (path) return path;
    }
    return NULL;
}
