/* SPDX-License-Identifier: Apache-2.0
 *
 * st_files.c: the files of sentence-transformers (6.2; older forms are read too): modules.json and what it names. The rules are those of the
 * reference:
 *   1_Pooling/config.json              "pooling_mode": a name or a list, else the flags pooling_mode_*; several are concatenated; none is mean
 *   N_Dense/config.json                linear layer and activation (default Tanh)
 *   sentence_bert_config.json          max_seq_length, do_lower_case
 *   N_LogitScore/config.json           the tokens whose logits score a pair
 *   config_sentence_transformers.json  prompts, default_prompt_name, truncate_dim; activation_fn of a cross-encoder
 * A module that lath does not have is refused by its type's name: leaving it out would be a different model.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/utf8.h"
#include "engine/engine.h"

static const struct {
    const char *name, *flag;
    kern_pool_mode mode;
    lath_pooling pub;
} pooling_rows[] = {
    /* In the order in which the reference concatenates what several flags ask for. */
    {"cls", "pooling_mode_cls_token", KERN_POOL_FIRST, LATH_POOLING_CLS},
    {"max", "pooling_mode_max_tokens", KERN_POOL_MAX, LATH_POOLING_MAX},
    {"mean", "pooling_mode_mean_tokens", KERN_POOL_MEAN, LATH_POOLING_MEAN},
    {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", KERN_POOL_MEAN_SQRT, LATH_POOLING_MEAN_SQRT_LEN},
    {"weightedmean", "pooling_mode_weightedmean_tokens", KERN_POOL_WEIGHTED_MEAN, LATH_POOLING_WEIGHTED_MEAN},
    {"lasttoken", "pooling_mode_lasttoken", KERN_POOL_LAST, LATH_POOLING_LAST},
};
enum { N_POOLING_ROWS = sizeof(pooling_rows) / sizeof(pooling_rows[0]) };

lath_pooling st_public_pooling(const st_config *c)
{
    if (c->n_modes > 1) return LATH_POOLING_CONCAT;
    for (int i = 0; i < N_POOLING_ROWS; i++) {
        if (pooling_rows[i].mode == c->modes[0]) return pooling_rows[i].pub;
    }
    return LATH_POOLING_MEAN;
}

bool st_pooling_mode(lath_pooling p, kern_pool_mode *out)
{
    for (int i = 0; i < N_POOLING_ROWS; i++) {
        if (pooling_rows[i].pub != p) continue;
        *out = pooling_rows[i].mode;
        return true;
    }
    return false;
}

/* "dir/sub/name" in the arena; sub and name may be "". */
static char *path_of(arena *a, const char *dir, const char *sub, const char *name)
{
    char *folder = *sub ? file_join_in(a, dir, sub) : arena_strdup(a, dir, strlen(dir));
    return folder && *name ? file_join_in(a, folder, name) : folder;
}

/* The file's JSON object, or NULL in *out when there is no such file. */
static lath_status load_optional(arena *a, const char *dir, const char *sub, const char *name, const char **path,
                                 json_value **out, lath_error *err)
{
    *out = NULL;
    char *p = path_of(a, dir, sub, name);
    if (!p) return err_nomem(err, strlen(dir) + strlen(name));
    *path = p;
    if (!file_exists(p)) return LATH_OK;
    TRY(json_load(a, p, NULL, out, err));
    if ((*out)->kind != JSON_OBJECT) return err_set(err, LATH_ERR_FORMAT, "%s: want a JSON object", p);
    return LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------------- pooling */

static lath_status add_mode(st_config *c, const char *path, const json_value *v, lath_error *err)
{
    for (int i = 0; i < N_POOLING_ROWS; i++) {
        if (!json_is_string(v, pooling_rows[i].name)) continue;
        if (c->n_modes == ST_MAX_MODES)
            return err_set(err, LATH_ERR_UNSUPPORTED, "%s: more than %d pooling modes", path, ST_MAX_MODES);
        c->modes[c->n_modes++] = pooling_rows[i].mode;
        return LATH_OK;
    }
    if (v->kind != JSON_STRING)
        return err_set(err, LATH_ERR_FORMAT, "%s: line %u: \"pooling_mode\": want a string or strings", path, v->line);
    return err_set(err, LATH_ERR_UNSUPPORTED, "%s: pooling_mode \"%.60s\" is not supported", path, v->u.string.data);
}

static lath_status load_pooling(arena *a, const char *dir, const char *sub, st_config *c, lath_error *err)
{
    const char *path = NULL;
    json_value *j;
    TRY(load_optional(a, dir, sub, "config.json", &path, &j, err));
    if (!j) return err_set(err, LATH_ERR_NOT_FOUND, "%s: no such file (modules.json names it)", path);
    c->n_modes = 0;
    c->has_pooling = true;
    const json_value *mode = json_get(j, "pooling_mode");
    if (json_present(mode) && mode->kind == JSON_ARRAY) {
        for (const json_value *v = mode->u.items.first; v; v = v->next) TRY(add_mode(c, path, v, err));
    } else if (json_present(mode)) {
        TRY(add_mode(c, path, mode, err));
    } else {
        for (int i = 0; i < N_POOLING_ROWS; i++) {
            bool on = false;
            TRY(json_get_bool(j, pooling_rows[i].flag, path, &on, err));
            if (on) c->modes[c->n_modes++] = pooling_rows[i].mode;
        }
    }
    if (c->n_modes == 0) c->modes[c->n_modes++] = KERN_POOL_MEAN;
    TRY(json_get_bool(j, "include_prompt", path, &c->include_prompt, err));
    TRY(json_get_int(j, "word_embedding_dimension", path, 1, 1 << 20, &c->pooling_d, err));
    return json_get_int(j, "embedding_dimension", path, 1, 1 << 20, &c->pooling_d, err);
}

/* ------------------------------------------------------------------------------------------------------------ steps */

/* Modules may work on other features than the sentence's vector. */
static lath_status want_sentence(const json_value *j, const char *path, lath_error *err)
{
    static const char *const keys[] = {"module_input_name", "module_output_name"};
    for (int i = 0; i < 2; i++) {
        const json_value *v = json_get(j, keys[i]);
        if (json_present(v) && !json_is_string(v, "sentence_embedding"))
            return err_set(err, LATH_ERR_UNSUPPORTED, "%s: \"%s\" other than sentence_embedding is not supported", path,
                           keys[i]);
    }
    return LATH_OK;
}

static lath_status load_dense(arena *a, const char *dir, const char *sub, st_step *s, lath_error *err)
{
    const char *path, *fn = "torch.nn.modules.activation.Tanh";
    json_value *j;
    TRY(load_optional(a, dir, sub, "config.json", &path, &j, err));
    if (!j) return err_set(err, LATH_ERR_NOT_FOUND, "%s: no such file (modules.json names it)", path);
    bool residual = false;
    s->kind = ST_DENSE;
    s->has_bias = true;
    s->dir = path_of(a, dir, sub, "");
    if (!s->dir) return err_nomem(err, strlen(sub));
    TRY(json_get_int(j, "in_features", path, 1, 1 << 20, &s->d_in, err));
    TRY(json_get_int(j, "out_features", path, 1, 1 << 20, &s->d_out, err));
    if (!s->d_in || !s->d_out)
        return err_set(err, LATH_ERR_FORMAT, "%s: no \"%s\" in it", path, s->d_in ? "out_features" : "in_features");
    TRY(json_get_bool(j, "bias", path, &s->has_bias, err));
    TRY(json_get_bool(j, "use_residual", path, &residual, err));
    TRY(json_get_str(j, "activation_function", path, &fn, err));
    if (residual) return err_set(err, LATH_ERR_UNSUPPORTED, "%s: use_residual is not supported", path);
    if (!nn_activation(fn, &s->fn))
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: activation_function \"%.100s\" is not supported", path, fn);
    return want_sentence(j, path, err);
}

static lath_status load_logit_score(arena *a, const char *dir, const char *sub, st_config *c, lath_error *err)
{
    static const char *const keys[] = {"true_token_id", "false_token_id"};
    const char *path, *input = "causal_logits";
    json_value *j;
    TRY(load_optional(a, dir, sub, "config.json", &path, &j, err));
    if (!j) return err_set(err, LATH_ERR_NOT_FOUND, "%s: no such file (modules.json names it)", path);
    TRY(json_get_str(j, "module_input_name", path, &input, err));
    if (strcmp(input, "causal_logits") != 0)
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: module_input_name \"%.60s\" is not supported", path, input);
    c->n_score_ids = 0;
    for (int i = 0; i < 2; i++) {
        int64_t id = -1;
        TRY(json_get_int(j, keys[i], path, 0, INT32_MAX, &id, err));
        if (id < 0 && i == 0) return err_set(err, LATH_ERR_FORMAT, "%s: no \"%s\" in it", path, keys[i]);
        if (id >= 0) c->score_ids[c->n_score_ids++] = (int32_t)id;
    }
    return LATH_OK;
}

/* One row of modules.json. Types are matched by their class name: the packages they are in have moved. */
static lath_status load_module(arena *a, const char *dir, const char *path, const json_value *row, int64_t index,
                               st_config *c, lath_error *err)
{
    const char *type = NULL, *sub = "";
    TRY(json_get_str(row, "type", path, &type, err));
    TRY(json_get_str(row, "path", path, &sub, err));
    if (!type) return err_set(err, LATH_ERR_FORMAT, "%s: line %u: a module without \"type\"", path, row->line);
    if (sub[0] == '/' || strstr(sub, ".."))
        return err_set(err, LATH_ERR_FORMAT, "%s: line %u: path \"%.80s\" leads outside the model", path, row->line,
                       sub);
    const char *dot = strrchr(type, '.'), *name = dot ? dot + 1 : type;
    if ((strcmp(name, "Transformer") == 0) != (index == 0))
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: module %lld is \"%.100s\", want one Transformer, first", path,
                       (long long)index, type);
    if (index == 0) {
        c->encoder_dir = path_of(a, dir, sub, "");
        return c->encoder_dir ? LATH_OK : err_nomem(err, strlen(sub));
    }
    if (strcmp(name, "Pooling") == 0) {
        if (c->n_steps)
            return err_set(err, LATH_ERR_UNSUPPORTED, "%s: a Pooling module behind other modules is not supported",
                           path);
        return load_pooling(a, dir, sub, c, err);
    }
    if (strcmp(name, "Dropout") == 0) return LATH_OK; /* the identity when a model is run */
    if (strcmp(name, "LogitScore") == 0) return load_logit_score(a, dir, sub, c, err);
    if (c->n_steps == ST_MAX_STEPS)
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: more than %d modules", path, ST_MAX_STEPS);
    st_step *s = &c->steps[c->n_steps++];
    if (strcmp(name, "Dense") == 0) return load_dense(a, dir, sub, s, err);
    if (strcmp(name, "Normalize") != 0)
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: module \"%.120s\" is not supported", path, type);
    s->kind = ST_NORMALIZE;
    const char *config;
    json_value *j;
    TRY(load_optional(a, dir, sub, "config.json", &config, &j, err));
    return j && *sub ? want_sentence(j, config, err) : LATH_OK;
}

/* --------------------------------------------------------------------------------------------------- prompts, limits */

static lath_status load_prompts(arena *a, const char *dir, bool st_model, st_config *c, lath_error *err)
{
    const char *path = NULL;
    json_value *j;
    TRY(load_optional(a, dir, "", "config_sentence_transformers.json", &path, &j, err));
    if (!j) return LATH_OK;
    TRY(json_get_str(j, "default_prompt_name", path, &c->default_prompt, err));
    TRY(json_get_int(j, "truncate_dim", path, 1, 1 << 20, &c->truncate_dim, err));
    if (st_model) TRY(json_get_str(j, "activation_fn", path, &c->activation_fn, err)); /* so does the reference */
    const json_value *p = json_get(j, "prompts");
    if (json_present(p)) {
        if (p->kind != JSON_OBJECT)
            return err_set(err, LATH_ERR_FORMAT, "%s: line %u: \"prompts\": want an object", path, p->line);
        c->prompts = arena_array(a, p->u.items.count, sizeof(*c->prompts));
        if (!c->prompts) return err_nomem(err, p->u.items.count * sizeof(*c->prompts));
        for (const json_value *v = p->u.items.first; v; v = v->next) {
            if (v->kind == JSON_NULL) continue;
            if (v->kind != JSON_STRING)
                return err_set(err, LATH_ERR_FORMAT, "%s: line %u: prompt \"%.60s\": want a string", path, v->line,
                               v->key);
            c->prompts[c->n_prompts++] = (st_prompt){v->key, v->u.string.data, v->u.string.len};
        }
    }
    if (!c->default_prompt) return LATH_OK;
    for (int32_t i = 0; i < c->n_prompts; i++) {
        if (strcmp(c->prompts[i].name, c->default_prompt) == 0) return LATH_OK;
    }
    return err_set(err, LATH_ERR_FORMAT, "%s: default_prompt_name \"%.60s\" is none of its prompts", path,
                   c->default_prompt);
}

static lath_status load_transformer(arena *a, st_config *c, lath_error *err)
{
    /* The names that the reference looks for, in its order. */
    static const char *const names[] = {
        "sentence_bert_config.json",      "sentence_roberta_config.json", "sentence_distilbert_config.json",
        "sentence_camembert_config.json", "sentence_albert_config.json",  "sentence_xlm-roberta_config.json",
        "sentence_xlnet_config.json",
    };
    const char *path = NULL;
    json_value *j = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !j; i++)
        TRY(load_optional(a, c->encoder_dir, "", names[i], &path, &j, err));
    if (!j) return LATH_OK;
    TRY(json_get_int(j, "max_seq_length", path, 1, INT32_MAX, &c->max_seq_length, err));
    return json_get_bool(j, "do_lower_case", path, &c->lower_case, err);
}

lath_status st_config_load(arena *a, const char *dir, st_config *out, lath_error *err)
{
    *out = (st_config){.encoder_dir = dir, .modes = {KERN_POOL_MEAN}, .n_modes = 1, .include_prompt = true};
    char *path = path_of(a, dir, "", "modules.json");
    if (!path) return err_nomem(err, strlen(dir));
    const bool st_model = out->has_modules = file_exists(path);
    if (st_model) {
        json_value *list;
        TRY(json_load(a, path, NULL, &list, err));
        if (list->kind != JSON_ARRAY || list->u.items.count == 0)
            return err_set(err, LATH_ERR_FORMAT, "%s: want an array of modules", path);
        int64_t index = 0;
        for (const json_value *v = list->u.items.first; v; v = v->next)
            TRY(load_module(a, dir, path, v, index++, out, err));
    }
    if (st_model) TRY(load_transformer(a, out, err)); /* the reference reads it only where modules.json is */
    return load_prompts(a, dir, st_model, out, err);
}

/* As llama.cpp gives vectors out: of length 1. */
void st_config_gguf(const char *path, arch_gguf_pooling pooling, st_config *out)
{
    static const kern_pool_mode modes[] = {
        [GGUF_POOL_MEAN] = KERN_POOL_MEAN, [GGUF_POOL_CLS] = KERN_POOL_FIRST, [GGUF_POOL_LAST] = KERN_POOL_LAST};
    *out = (st_config){.encoder_dir = path, .modes = {KERN_POOL_MEAN}, .n_modes = 1, .include_prompt = true};
    if (pooling < GGUF_POOL_MEAN) return;
    out->modes[0] = modes[pooling];
    out->has_modules = out->has_pooling = true;
    out->steps[out->n_steps++].kind = ST_NORMALIZE;
}

lath_status st_tokenizer_window(arena *a, const char *dir, int64_t *out, lath_error *err)
{
    const char *path = NULL;
    json_value *j;
    *out = 0;
    TRY(load_optional(a, dir, "", "tokenizer_config.json", &path, &j, err));
    if (!j) return LATH_OK;
    double limit = 0;
    TRY(json_get_real(j, "model_max_length", path, &limit, err));
    if (limit < 0 || isnan(limit))
        return err_set(err, LATH_ERR_FORMAT, "%s: \"model_max_length\" is out of range", path);
    if (limit > 0 && limit < INT32_MAX) *out = (int64_t)limit;
    return LATH_OK;
}

lath_status st_sends_types(arena *a, const char *dir, const char *model_type, bool *out, lath_error *err)
{
    const char *path = NULL, *class_name = NULL;
    json_value *j;
    TRY(load_optional(a, dir, "", "tokenizer_config.json", &path, &j, err));
    const json_value *names = j ? json_get(j, "model_input_names") : NULL;
    if (json_present(names)) {
        if (names->kind != JSON_ARRAY)
            return err_set(err, LATH_ERR_FORMAT, "%s: line %u: \"model_input_names\": want an array", path,
                           names->line);
        *out = false;
        for (const json_value *v = names->u.items.first; v; v = v->next) *out |= json_is_string(v, "token_type_ids");
        return LATH_OK;
    }
    if (j) TRY(json_get_str(j, "tokenizer_class", path, &class_name, err));
    /* Of the classes of the reference, BERT's sends them; other families that have types take BERT's tokenizer. */
    if (class_name)
        *out = strcmp(class_name, "BertTokenizer") == 0 || strcmp(class_name, "BertTokenizerFast") == 0;
    else
        *out = strcmp(model_type, "bert") == 0 || strcmp(model_type, "nomic_bert") == 0;
    return LATH_OK;
}

lath_status st_config_activation(const json_value *config, const char *path, st_config *c, lath_error *err)
{
    if (c->activation_fn) return LATH_OK;
    const json_value *st = json_get(config, "sentence_transformers");
    if (json_present(json_get(st, "activation_fn")))
        return json_get_str(st, "activation_fn", path, &c->activation_fn, err);
    return json_get_str(config, "sbert_ce_default_activation_function", path, &c->activation_fn, err);
}

lath_status st_choose_prompt(const st_config *c, const char *name, const char *text, const char **out, size_t *len,
                             lath_error *err)
{
    *out = "";
    *len = 0;
    if (text) {
        *out = text;
        *len = strlen(text);
        const size_t bad = utf8_first_invalid(text, *len);
        if (bad != *len) return err_set(err, LATH_ERR_INPUT, "prompt: not valid UTF-8 at byte %zu", bad + 1);
        return LATH_OK;
    }
    if (!name) name = c->default_prompt;
    if (!name) return LATH_OK;
    for (int32_t i = 0; i < c->n_prompts; i++) {
        if (strcmp(c->prompts[i].name, name) != 0) continue;
        *out = c->prompts[i].text;
        *len = c->prompts[i].len;
        return LATH_OK;
    }
    char names[128] = "none";
    size_t at = 0;
    for (int32_t i = 0; i < c->n_prompts && at + 1 < sizeof(names); i++)
        at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", i ? ", " : "", c->prompts[i].name);
    return err_set(err, LATH_ERR_USAGE, "prompt \"%.60s\": the model has no prompt of that name (it has: %s)", name,
                   names);
}

/* "chat_template" of the file at path: a text, which is the one called default, or several with names. */
static lath_status template_in(const json_value *j, const char *path, const char *name, const char **out,
                               lath_error *err)
{
    const json_value *t = json_get(j, "chat_template");
    if (!t || t->kind == JSON_NULL) return LATH_OK;
    if (t->kind == JSON_STRING) {
        if (strcmp(name, "default") == 0) *out = t->u.string.data;
        return LATH_OK;
    }
    if (t->kind != JSON_ARRAY)
        return err_set(err, LATH_ERR_FORMAT, "%s: \"chat_template\": want a text, or a list of texts with names", path);
    for (const json_value *v = t->u.items.first; v; v = v->next) {
        const json_value *of = json_get(v, "name"), *text = json_get(v, "template");
        if (!of || of->kind != JSON_STRING || !text || text->kind != JSON_STRING)
            return err_set(err, LATH_ERR_FORMAT,
                           "%s: \"chat_template\": want of each \"name\" and \"template\", two texts", path);
        if (!*out && json_is_string(of, name)) *out = text->u.string.data;
    }
    return LATH_OK;
}

static lath_status read_template(arena *a, const char *path, const char **out, lath_error *err)
{
    buf text;
    buf_init(&text, a->alloc, 1 << 20);
    lath_status st = file_read(&text, path, 1 << 20, err);
    if (st == LATH_OK) {
        *out = arena_strdup(a, text.data ? text.data : "", text.len);
        if (!*out) st = err_nomem(err, text.len);
    }
    buf_deinit(&text);
    return st;
}

lath_status st_chat_template(arena *a, const char *dir, const char *name, const char **out, lath_error *err)
{
    static const char *const names[] = {"chat_template.json", "tokenizer_config.json"};
    const bool plain = strcmp(name, "default") == 0;
    const char *path = NULL;
    char file[128];
    json_value *j;
    *out = NULL;
    snprintf(file, sizeof(file), "%s%.80s.jinja", plain ? "" : "additional_chat_templates/",
             plain ? "chat_template" : name);
    const char *own = path_of(a, dir, "", file);
    if (!own) return err_nomem(err, strlen(dir));
    if (file_exists(own)) return read_template(a, own, out, err);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !*out; i++) {
        TRY(load_optional(a, dir, "", names[i], &path, &j, err));
        TRY(template_in(j, path, name, out, err));
    }
    return LATH_OK;
}
