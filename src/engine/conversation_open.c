/* SPDX-License-Identifier: Apache-2.0
 *
 * conversation_open.c: a lath_chat from a model's files: the template, the special tokens that it may name, and the token that ends a turn, which is
 * found by trying: what follows an assistant's content in a rendered conversation.
 */
#include <string.h>

#include "base/file.h"
#include "engine/conversation.h"
#include "store/gguf.h"

static const char *const special_names[CHAT_SPECIALS] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                         "pad_token", "cls_token", "mask_token"};

static lath_status add_special(lath_chat *c, const char *name, const char *s, size_t n, lath_error *err)
{
    const json_value *v = json_new_text(&c->mem, s, n, err);
    if (!v) return LATH_ERR_NOMEM;
    c->specials[c->n_specials++] = (chat_var){name, v, CHAT_TRUSTED};
    return LATH_OK;
}

/* ----------------------------------------------------------------------------------------------------------- directories */

static lath_status load_object(lath_chat *c, const char *dir, const char *name, json_value **out, lath_error *err)
{
    *out = NULL;
    const char *path = file_join_in(&c->mem, dir, name);
    if (!path) return err_nomem(err, strlen(name));
    if (!file_exists(path)) return LATH_OK;
    TRY(json_load(&c->mem, path, NULL, out, err));
    return (*out)->kind == JSON_OBJECT ? LATH_OK : err_set(err, LATH_ERR_FORMAT, "%s: want a JSON object", path);
}

/* A special token: its text, or an object that has it as "content". */
static const json_value *token_in(const json_value *config, const char *name)
{
    const json_value *v = json_get(config, name);
    if (v && v->kind == JSON_OBJECT) v = json_get(v, "content");
    return v && v->kind == JSON_STRING ? v : NULL;
}

static lath_status open_dir(lath_chat *c, const char *dir, const char **text, const char **tools, lath_error *err)
{
    json_value *config, *specials;
    TRY(st_chat_template(&c->mem, dir, "default", text, err));
    TRY(st_chat_template(&c->mem, dir, "tool_use", tools, err));
    TRY(load_object(c, dir, "tokenizer_config.json", &config, err));
    TRY(load_object(c, dir, "special_tokens_map.json", &specials, err));
    for (size_t i = 0; i < CHAT_SPECIALS; i++) {
        const json_value *v = token_in(config, special_names[i]);
        if (!v) v = token_in(specials, special_names[i]);
        if (v) TRY(add_special(c, special_names[i], v->u.string.data, v->u.string.len, err));
    }
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------ GGUF files */

static lath_status text_of(lath_chat *c, const gguf *g, const char *key, const char **out, lath_error *err)
{
    const gguf_value *v = gguf_get(g, key);
    if (!v) return LATH_OK;
    if (v->kind != GGUF_STRING) return err_set(err, LATH_ERR_FORMAT, "%s: key \"%s\": want a string", c->path, key);
    *out = arena_strdup(&c->mem, v->as.text.data, v->as.text.len);
    return *out ? LATH_OK : err_nomem(err, v->as.text.len);
}

static lath_status open_gguf(lath_chat *c, const gguf *g, const char **text, const char **tools, lath_error *err)
{
    static const char *const keys[CHAT_SPECIALS] = {"bos", "eos", "unknown", "seperator", "padding", "cls", "mask"};
    char key[64] = "tokenizer.ggml.";
    TRY(text_of(c, g, "tokenizer.chat_template", text, err));
    TRY(text_of(c, g, "tokenizer.chat_template.tool_use", tools, err));
    for (size_t i = 0; i < CHAT_SPECIALS; i++) {
        int64_t id;
        size_t n;
        key[15] = 0;
        strncat(key, keys[i], 32);
        strncat(key, "_token_id", 16);
        const gguf_value *v = gguf_get(g, key);
        if (!v || !gguf_whole(v, INT32_MAX, &id)) continue;
        const char *s = tok_token(c->tokenizer->tok, (int32_t)id, &n);
        if (s) TRY(add_special(c, special_names[i], s, n, err));
    }
    return LATH_OK;
}

/* ----------------------------------------------------------------------------------------------------------- end of turn */

/* The last that people wrote of the text is the answer. */
static bool ends_with_answer(const chat_output *o)
{
    const size_t end = o->n_content ? o->content[o->n_content - 1].end : 0;
    return end >= 6 && memcmp(o->text.data + end - 6, "answer", 6) == 0;
}

/* The first special token behind the last content of a conversation that ends with an answer. A template that refuses that one has none. */
static lath_status find_end(lath_chat *c, lath_error *err)
{
    const lath_allocator *alloc = &c->rt->alloc;
    lath_error ignored;
    rendering r;
    rendering_init(&r, alloc);
    c->end_id = -1;
    json_value *messages = json_new(&r.mem, JSON_ARRAY, err);
    lath_status st = messages ? LATH_OK : LATH_ERR_NOMEM;
    if (st == LATH_OK) st = conversation_add(&r.mem, messages, "user", "question", 8, err);
    if (st == LATH_OK) st = conversation_add(&r.mem, messages, "assistant", "answer", 6, err);
    if (st != LATH_OK) goto done;
    const conversation v = {.messages = messages, .has_date = true};
    st = conversation_render(c, &v, &r, &ignored);
    if (st == LATH_OK) st = conversation_encode(c, &r, &ignored);
    if (st == LATH_ERR_NOMEM) {
        if (err) *err = ignored;
        goto done;
    }
    if (st == LATH_OK && ends_with_answer(&r.out)) {
        const size_t behind = r.out.content[r.out.n_content - 1].end;
        for (size_t i = 0; i < r.tokens.n && c->end_id < 0; i++) {
            if (r.tokens.offsets[2 * i] >= behind && tok_is_special(c->tokenizer->tok, r.tokens.ids[i]))
                c->end_id = r.tokens.ids[i];
        }
    }
    st = LATH_OK;
done:
    rendering_deinit(&r, c->tokenizer->tok);
    return st;
}

/* ------------------------------------------------------------------------------------------------------------- interface */

static lath_status compile(lath_chat *c, const char *text, chat_template **out, lath_error *err)
{
    const char *name = arena_bytes(&c->mem, strlen(c->path) + 32, 1);
    if (!name) return err_nomem(err, strlen(c->path));
    char *to = (char *)name;
    memcpy(to, c->path, strlen(c->path) + 1);
    strncat(to, ": chat template", 20);
    return chat_compile(&c->rt->alloc, name, text, strlen(text), out, err);
}

static lath_status init(lath_chat *c, const char *dir, const gguf *g, const lath_chat_options *o, lath_error *err)
{
    const char *text = NULL, *tools = NULL;
    TRY(g ? open_gguf(c, g, &text, &tools, err) : open_dir(c, dir, &text, &tools, err));
    if (o->template_text.data) {
        text = arena_strdup(&c->mem, o->template_text.data, o->template_text.len);
        tools = NULL;
        if (!text) return err_nomem(err, o->template_text.len);
    }
    if (!text) return err_set(err, LATH_ERR_UNSUPPORTED, "%s: the model has no chat template", c->path);
    c->text = text;
    TRY(compile(c, text, &c->plain, err));
    if (tools && strcmp(tools, text) != 0) TRY(compile(c, tools, &c->tools, err));
    TRY(find_end(c, err));
    return conversation_find_reasoning(c, err);
}

static lath_status create(const lath_runtime *rt, const char *path, const lath_tokenizer *tokenizer,
                          lath_tokenizer *own, lath_chat **out, lath_error *err)
{
    lath_chat *c = alloc_zero(&rt->alloc, sizeof(*c));
    if (!c) return err_nomem(err, sizeof(*c));
    c->rt = rt;
    c->tokenizer = tokenizer;
    c->own = own;
    arena_init(&c->mem, &rt->alloc);
    *out = c;
    c->path = arena_strdup(&c->mem, path, strlen(path));
    return c->path ? LATH_OK : err_nomem(err, strlen(path));
}

static lath_status check_options(const lath_chat_options *o, lath_error *err)
{
    return o->struct_size == sizeof(*o) ? LATH_OK
                                        : err_set(err, LATH_ERR_USAGE, "lath_chat_create: options of another version");
}

lath_status lath_chat_create(const lath_model *model, const lath_chat_options *opts, lath_chat **out, lath_error *err)
{
    static const lath_chat_options defaults = LATH_CHAT_OPTIONS_INIT;
    lath_chat *c = NULL;
    err_clear(err);
    if (!opts) opts = &defaults;
    if (!model || !out) return err_set(err, LATH_ERR_USAGE, "lath_chat_create: an argument is missing");
    TRY(check_options(opts, err));
    lath_status st = create(model->rt, model->path, &model->tokenizer, NULL, &c, err);
    if (st == LATH_OK) st = init(c, model->st.encoder_dir, weights_gguf(model->sources[0]), opts, err);
    if (st != LATH_OK)
        lath_chat_destroy(c);
    else
        *out = c;
    return st;
}

static lath_status open_files(lath_chat *c, const char *path, const lath_chat_options *o, lath_error *err)
{
    gguf *g = NULL;
    if (gguf_is_name(path)) TRY(gguf_open(&c->rt->alloc, path, FILE_MAP, &g, err));
    const lath_status st = init(c, path, g, o, err);
    gguf_close(g);
    return st;
}

lath_status lath_chat_open(lath_runtime *rt, const char *path, const lath_chat_options *opts, lath_chat **out,
                           lath_error *err)
{
    static const lath_chat_options defaults = LATH_CHAT_OPTIONS_INIT;
    lath_tokenizer *t = NULL;
    lath_chat *c = NULL;
    err_clear(err);
    if (!opts) opts = &defaults;
    if (!rt || !path || !out) return err_set(err, LATH_ERR_USAGE, "lath_chat_open: an argument is missing");
    TRY(check_options(opts, err));
    TRY(lath_tokenizer_open(rt, path, &t, err));
    lath_status st = create(rt, path, t, t, &c, err);
    if (st == LATH_OK) st = open_files(c, path, opts, err);
    if (st == LATH_OK)
        *out = c;
    else if (c)
        lath_chat_destroy(c);
    else
        lath_tokenizer_close(t);
    return st;
}

void lath_chat_destroy(lath_chat *c)
{
    if (!c) return;
    const lath_allocator *alloc = &c->rt->alloc;
    chat_release(c->plain);
    chat_release(c->tools);
    lath_tokenizer_close(c->own);
    arena_deinit(&c->mem);
    alloc_release(alloc, c, sizeof(*c));
}

const lath_tokenizer *lath_chat_tokenizer(const lath_chat *chat) { return chat->tokenizer; }
const char *lath_chat_template(const lath_chat *chat) { return chat->text; }
int32_t lath_chat_end_id(const lath_chat *chat) { return chat->end_id; }
