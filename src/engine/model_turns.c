/* SPDX-License-Identifier: Apache-2.0
 *
 * model_turns.c: what the files of a language model say about dialogues: its chat template, and the tokens that end a text or a turn. A
 * directory says it in chat_template.jinja or .json, tokenizer_config.json, config.json and generation_config.json, a GGUF file in its metadata.
 */
#include <string.h>

#include "base/file.h"
#include "engine/engine.h"

static void add_end(lath_model *m, int64_t id)
{
    for (int32_t i = 0; i < m->n_ends; i++)
        if (m->ends[i] == id) return;
    if (m->n_ends < MODEL_MAX_ENDS) m->ends[m->n_ends++] = (int32_t)id;
}

/* ----------------------------------------------------------------------------------------------------------- directories */

/* "eos_token_id": a number or several. */
static lath_status add_ids(lath_model *m, const json_value *config, const char *path, lath_error *err)
{
    static const char key[] = "eos_token_id";
    const json_value *v = json_get(config, key);
    int64_t id = -1;
    if (!json_present(v)) return LATH_OK;
    if (v->kind != JSON_ARRAY) {
        TRY(json_get_int(config, key, path, 0, INT32_MAX, &id, err));
        add_end(m, id);
        return LATH_OK;
    }
    for (const json_value *e = v->u.items.first; e; e = e->next) {
        if (e->kind != JSON_INT || e->u.integer < 0 || e->u.integer > INT32_MAX)
            return err_set(err, LATH_ERR_FORMAT, "%s: line %u: \"%s\": want whole numbers", path, e->line, key);
        add_end(m, e->u.integer);
    }
    return LATH_OK;
}

/* "eos_token": its text, or an object that has it as "content". */
static void add_token(lath_model *m, const json_value *tokenizer_config)
{
    const json_value *v = json_get(tokenizer_config, "eos_token");
    if (v && v->kind == JSON_OBJECT) v = json_get(v, "content");
    if (!v || v->kind != JSON_STRING) return;
    const int32_t id = tok_id(m->tokenizer.tok, v->u.string.data, v->u.string.len);
    if (id >= 0) add_end(m, id);
}

static lath_status load_object(lath_model *m, const char *name, const char **path, json_value **out, lath_error *err)
{
    *out = NULL;
    *path = file_join_in(&m->mem, m->st.encoder_dir, name);
    if (!*path) return err_nomem(err, strlen(name));
    if (!file_exists(*path)) return LATH_OK;
    TRY(json_load(&m->mem, *path, NULL, out, err));
    return (*out)->kind == JSON_OBJECT ? LATH_OK : err_set(err, LATH_ERR_FORMAT, "%s: want a JSON object", *path);
}

static lath_status open_dir(lath_model *m, const model_config *c, lath_error *err)
{
    const char *path;
    json_value *j;
    TRY(st_chat_template(&m->mem, m->st.encoder_dir, "default", &m->chat_template, err));
    TRY(load_object(m, "generation_config.json", &path, &j, err));
    TRY(add_ids(m, j, path, err));
    TRY(add_ids(m, c->json, c->path, err));
    TRY(add_ids(m, json_get(c->json, "text_config"), c->path, err)); /* of models that see images, too */
    TRY(load_object(m, "tokenizer_config.json", &path, &j, err));
    add_token(m, j);
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------- GGUF files */

static lath_status open_gguf(lath_model *m, const gguf *g, lath_error *err)
{
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    const char *path = gguf_file(g)->path;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const gguf_value *v = gguf_get(g, keys[i]);
        int64_t id;
        if (!v) continue;
        /* All bits set is how some writers say that there is none. */
        if (v->kind == GGUF_U32 && v->as.u == UINT32_MAX) continue;
        if (!gguf_whole(v, INT32_MAX, &id))
            return err_set(err, LATH_ERR_FORMAT, "%s: key \"%s\": want the id of a token", path, keys[i]);
        add_end(m, id);
    }
    const gguf_value *t = gguf_get(g, "tokenizer.chat_template");
    if (!t) return LATH_OK;
    if (t->kind != GGUF_STRING)
        return err_set(err, LATH_ERR_FORMAT, "%s: key \"tokenizer.chat_template\": want a string", path);
    m->chat_template = arena_strdup(&m->mem, t->as.text.data, t->as.text.len);
    return m->chat_template ? LATH_OK : err_nomem(err, t->as.text.len);
}

/* -------------------------------------------------------------------------------------------------------------- interface */

lath_status model_open_turns(lath_model *m, const model_config *c, lath_error *err)
{
    const gguf *g = weights_gguf(m->sources[0]);
    if (!m->arch.desc->window) return LATH_OK; /* no language model */
    TRY(g ? open_gguf(m, g, err) : open_dir(m, c, err));
    if (m->inference.eos_token_id >= 0) add_end(m, m->inference.eos_token_id);
    return LATH_OK;
}

const char *model_chat_template(const lath_model *m) { return m->chat_template; }

const int32_t *model_end_ids(const lath_model *m, int32_t *n)
{
    *n = m->n_ends;
    return m->ends;
}

static bool is_end(const lath_model *m, int32_t id)
{
    for (int32_t i = 0; i < m->n_ends; i++)
        if (m->ends[i] == id) return true;
    return false;
}

int32_t model_last_turn(const lath_model *m, const int32_t *ids, int32_t begin, int32_t end)
{
    enum { BETWEEN = 2 };
    for (int32_t i = end - 2; i >= 0 && i + BETWEEN >= begin; i--) {
        if (!is_end(m, ids[i])) continue;
        int32_t at = i + 1;
        while (at < end && at <= i + BETWEEN && !tok_is_special(m->tokenizer.tok, ids[at])) at++;
        if (at == end) continue; /* nothing has begun */
        if (!tok_is_special(m->tokenizer.tok, ids[at])) at = i + 1;
        if (at > begin) return at;
    }
    return -1;
}
