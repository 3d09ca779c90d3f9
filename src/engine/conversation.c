/* SPDX-License-Identifier: Apache-2.0
 * conversation.c: conversations as JSON trees, rendered and encoded; see conversation.h. */
#include "engine/conversation.h"

#include <string.h>

/* ---------------------------------------------------------------------------------------------------------------- JSON */

json_value *json_new(arena *a, json_kind kind, lath_error *err)
{
    json_value *v = arena_zero(a, sizeof(*v));
    if (!v)
        err_nomem(err, sizeof(*v));
    else
        v->kind = kind;
    return v;
}

json_value *json_new_text(arena *a, const char *s, size_t n, lath_error *err)
{
    json_value *v = json_new(a, JSON_STRING, err);
    char *copy = v ? arena_strdup(a, s, n) : NULL;
    if (!copy) {
        err_nomem(err, n);
        return NULL;
    }
    v->u.string.data = copy;
    v->u.string.len = n;
    return v;
}

lath_status json_append(json_value *container, const char *key, json_value *member)
{
    if (!member) return LATH_ERR_NOMEM;
    json_value **at = &container->u.items.first;
    while (*at) at = &(*at)->next;
    member->key = key;
    member->key_len = key ? strlen(key) : 0;
    member->next = NULL;
    *at = member;
    container->u.items.count++;
    return LATH_OK;
}

static json_value *copy_of(arena *a, const json_value *v, lath_error *err)
{
    json_value *c = json_new(a, v->kind, err);
    if (c) *c = *v;
    return c;
}

lath_status conversation_name_reasoning(arena *a, json_value *message, lath_error *err)
{
    static const char *const names[] = {"reasoning_content", "thinking", "reasoning"};
    const json_value *thought = NULL;
    for (size_t i = 0; i < 3 && !thought; i++) thought = json_get(message, names[i]);
    for (size_t i = 0; i < 2 && thought; i++) {
        if (!json_get(message, names[i])) TRY(json_append(message, names[i], copy_of(a, thought, err)));
    }
    return LATH_OK;
}

lath_status conversation_add_reasoning(arena *a, json_value *messages, lath_text reasoning, lath_error *err)
{
    json_value *m = messages->u.items.first;
    while (m->next) m = m->next;
    TRY(json_append(m, "reasoning_content", json_new_text(a, reasoning.data, reasoning.len, err)));
    return conversation_name_reasoning(a, m, err);
}

lath_status conversation_add(arena *a, json_value *messages, const char *role, const char *text, size_t n,
                             lath_error *err)
{
    json_value *m = json_new(a, JSON_OBJECT, err);
    if (!m) return LATH_ERR_NOMEM;
    TRY(json_append(m, "role", json_new_text(a, role, strlen(role), err)));
    TRY(json_append(m, "content", json_new_text(a, text, n, err)));
    return json_append(messages, NULL, m);
}

/* ----------------------------------------------------------------------------------------------------------- rendering */

void rendering_init(rendering *r, const lath_allocator *alloc)
{
    *r = (rendering){0};
    chat_output_init(&r->out, alloc);
    arena_init(&r->scratch, alloc);
    arena_init(&r->mem, alloc);
}

void rendering_deinit(rendering *r, const tok *t)
{
    if (!r->mem.alloc) return;
    chat_output_deinit(&r->out);
    tok_encoding_release(t, &r->tokens);
    arena_deinit(&r->scratch);
    arena_deinit(&r->mem);
    *r = (rendering){0};
}

lath_status conversation_render(const lath_chat *c, const conversation *v, rendering *r, lath_error *err)
{
    static const json_value none = {.kind = JSON_NULL};
    const json_value prompt = {.kind = JSON_BOOL, .u.boolean = v->prompt};
    const bool has_tools = json_present(v->tools);
    const size_t n_more = v->more ? v->more->u.items.count : 0;
    chat_input in = {.has_date = v->has_date, .date = v->date};
    chat_var *vars = arena_array(&r->mem, c->n_specials + 5 + n_more, sizeof(*vars));
    if (!vars) return err_nomem(err, (c->n_specials + 5 + n_more) * sizeof(*vars));
    memcpy(vars, c->specials, c->n_specials * sizeof(*vars));
    in.vars = vars;
    in.n_vars = c->n_specials;
    vars[in.n_vars++] = (chat_var){"messages", v->messages, CHAT_MESSAGES};
    vars[in.n_vars++] = (chat_var){"tools", has_tools ? v->tools : &none, CHAT_CONTENT};
    vars[in.n_vars++] = (chat_var){"documents", json_present(v->documents) ? v->documents : &none, CHAT_CONTENT};
    vars[in.n_vars++] = (chat_var){"add_generation_prompt", &prompt, CHAT_TRUSTED};
    for (const json_value *m = n_more ? v->more->u.items.first : NULL; m; m = m->next)
        vars[in.n_vars++] = (chat_var){m->key, m, CHAT_CONTENT};
    if (v->by && v->think != LATH_THINK_AUTO)
        vars[in.n_vars++] = (chat_var){v->by->name, v->think == LATH_THINK_ON ? &v->by->on : &v->by->off, CHAT_TRUSTED};
    return chat_render(has_tools && c->tools ? c->tools : c->plain, &in, &r->out, err);
}

lath_status conversation_encode(const lath_chat *c, rendering *r, lath_error *err)
{
    const chat_output *o = &r->out;
    tok_range *plain = arena_array(&r->mem, o->n_content, sizeof(*plain));
    if (!plain) return err_nomem(err, o->n_content * sizeof(*plain));
    for (size_t i = 0; i < o->n_content; i++) plain[i] = (tok_range){o->content[i].begin, o->content[i].end};
    const lath_status st = tok_encode_guarded(c->tokenizer->tok, &r->scratch, o->text.data ? o->text.data : "",
                                              o->text.len, plain, o->n_content, &r->tokens, err);
    arena_reset(&r->scratch);
    return st;
}
