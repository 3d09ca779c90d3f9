/* SPDX-License-Identifier: Apache-2.0
 * conversation_api.c: lath_chat_render: messages of a caller, made what templates expect as transformers does it, to text and ids. */
#include <string.h>

#include "base/utf8.h"
#include "chat/chat_text.h"
#include "engine/conversation.h"

/* Stands behind the content of a message that is to go on; what a template puts behind it is cut off. */
static const char goes_on[] = "CONTINUE_FINAL_MESSAGE_TAG ";
enum { GOES_ON = sizeof(goes_on) - 1 };

/* ------------------------------------------------------------------------------------------------------------- messages */

static lath_status parse(rendering *r, const char *name, lath_text text, json_kind kind, json_value **out,
                         lath_error *err)
{
    *out = NULL;
    if (!text.data) return LATH_OK;
    const lath_status st = json_parse(&r->mem, name, text.data, text.len, NULL, out, err);
    if (st == LATH_ERR_FORMAT) return err_wrap(err, LATH_ERR_INPUT, "chat");
    if (st != LATH_OK) return st;
    if ((*out)->kind == kind) return LATH_OK;
    return err_set(err, LATH_ERR_INPUT, "%s: want a JSON %s", name, kind == JSON_ARRAY ? "array" : "object");
}

static lath_status from_pairs(rendering *r, const lath_chat_input *in, json_value **out, lath_error *err)
{
    *out = json_new(&r->mem, JSON_ARRAY, err);
    if (!*out) return LATH_ERR_NOMEM;
    for (size_t i = 0; i < in->n_messages; i++) {
        const lath_message *m = &in->messages[i];
        if (!m->role || (m->content.len && !m->content.data) || (m->reasoning.len && !m->reasoning.data))
            return err_item(err, LATH_ERR_USAGE, (int64_t)i, "message %zu: an argument is missing", i);
        const lath_text content = m->content.data ? m->content : (lath_text){"", 0};
        const lath_text parts[] = {{m->role, strlen(m->role)}, content, m->reasoning};
        for (size_t k = 0; k < 3; k++) {
            const size_t bad = parts[k].len ? utf8_first_invalid(parts[k].data, parts[k].len) : 0;
            if (bad != parts[k].len)
                return err_item(err, LATH_ERR_INPUT, (int64_t)i, "message %zu: not valid UTF-8 at byte %zu", i,
                                bad + 1);
        }
        TRY(conversation_add(&r->mem, *out, m->role, content.data, content.len, err));
        if (m->reasoning.len) TRY(conversation_add_reasoning(&r->mem, *out, m->reasoning, err));
    }
    return LATH_OK;
}

/* Members that are null are left out, and what a model thought is there under each of the names that templates read it by. */
static lath_status tidy(rendering *r, json_value *message, size_t index, lath_error *err)
{
    if (message->kind != JSON_OBJECT)
        return err_item(err, LATH_ERR_INPUT, (int64_t)index, "message %zu: want a JSON object", index);
    for (json_value **at = &message->u.items.first; *at;) {
        if ((*at)->kind == JSON_NULL) {
            *at = (*at)->next;
            message->u.items.count--;
        } else {
            at = &(*at)->next;
        }
    }
    return conversation_name_reasoning(&r->mem, message, err);
}

/* Puts the mark behind the content of the last message, or the last of its parts of text. */
static lath_status mark_last(rendering *r, json_value *messages, lath_error *err)
{
    json_value *last = messages->u.items.first, *text = NULL;
    while (last && last->next) last = last->next;
    json_value *content = last ? (json_value *)json_get(last, "content") : NULL;
    if (content && content->kind == JSON_STRING) text = content;
    for (json_value *p = content && content->kind == JSON_ARRAY ? content->u.items.first : NULL; p; p = p->next) {
        json_value *t = (json_value *)json_get(p, "text");
        if (t && t->kind == JSON_STRING) text = t;
    }
    if (!text) return err_set(err, LATH_ERR_INPUT, "chat: the last message has no text that could go on");
    const size_t n = text->u.string.len;
    char *s = arena_bytes(&r->mem, n + GOES_ON + 1, 1);
    if (!s) return err_nomem(err, n + GOES_ON + 1);
    if (n) memcpy(s, text->u.string.data, n);
    memcpy(s + n, goes_on, GOES_ON + 1);
    text->u.string.data = s;
    text->u.string.len = n + GOES_ON;
    return LATH_OK;
}

/* Cuts the text at the mark; where the template trimmed it, white space before it goes too. */
static lath_status cut_at_mark(chat_output *o, lath_error *err)
{
    const size_t n = o->text.len, bare = GOES_ON - 1;
    size_t at = n;
    for (size_t i = n < bare ? 0 : n - bare + 1; i-- > 0 && at == n;) {
        if (memcmp(o->text.data + i, goes_on, bare) == 0) at = i;
    }
    if (at == n) return err_set(err, LATH_ERR_INPUT, "chat: the template does not write the last message");
    const bool whole = at + bare < n && o->text.data[at + bare] == ' ';
    o->text.len = whole ? at : chat_rstrip(o->text.data, at);
    while (o->n_content && o->content[o->n_content - 1].begin >= o->text.len) o->n_content--;
    if (o->n_content && o->content[o->n_content - 1].end > o->text.len) o->content[o->n_content - 1].end = o->text.len;
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------------ API */

static lath_status check_more(const json_value *more, lath_error *err)
{
    static const char *const own[] = {"messages", "tools", "documents", "add_generation_prompt"};
    for (size_t i = 0; i < 4; i++) {
        if (json_get(more, own[i]))
            return err_set(err, LATH_ERR_INPUT, "chat: the variable \"%s\" is not free", own[i]);
    }
    return LATH_OK;
}

static lath_status prepare(rendering *r, const lath_chat_input *in, conversation *v, lath_error *err)
{
    json_value *messages, *tools, *documents, *more;
    size_t i = 0;
    TRY(in->messages_json.data ? parse(r, "messages", in->messages_json, JSON_ARRAY, &messages, err)
                               : from_pairs(r, in, &messages, err));
    TRY(parse(r, "tools", in->tools_json, JSON_ARRAY, &tools, err));
    TRY(parse(r, "documents", in->documents_json, JSON_ARRAY, &documents, err));
    TRY(parse(r, "variables", in->variables_json, JSON_OBJECT, &more, err));
    if (messages->u.items.count == 0) return err_set(err, LATH_ERR_INPUT, "chat: a conversation without a message");
    for (json_value *m = messages->u.items.first; m; m = m->next) TRY(tidy(r, m, i++, err));
    if (more) TRY(check_more(more, err));
    if (in->continue_last) TRY(mark_last(r, messages, err));
    *v = (conversation){.messages = messages, .tools = tools, .documents = documents, .more = more};
    v->prompt = !in->no_generation_prompt && !in->continue_last;
    v->has_date = in->has_date != 0;
    v->date = in->date;
    v->think = in->think;
    return LATH_OK;
}

static lath_status render(const lath_chat *c, const lath_chat_input *in, rendering *r, lath_error *err)
{
    conversation v;
    arena_reset(&r->mem);
    TRY(prepare(r, in, &v, err));
    v.by = c->think;
    if (in->think == LATH_THINK_ON && !c->think && !c->reasoning.begin.len)
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: the chat template has no switch for thinking", c->path);
    TRY(conversation_render(c, &v, r, err));
    if (in->continue_last) TRY(cut_at_mark(&r->out, err));
    return conversation_encode(c, r, err);
}

lath_status lath_chat_render(const lath_chat *chat, const lath_chat_input *in, lath_chat_prompt *out, lath_error *err)
{
    err_clear(err);
    if (!chat || !in || !out) return err_set(err, LATH_ERR_USAGE, "lath_chat_render: an argument is missing");
    if (in->struct_size != sizeof(*in) || (in->n_messages && !in->messages))
        return err_set(err, LATH_ERR_USAGE, "lath_chat_render: bad input");
    if (in->think < LATH_THINK_AUTO || in->think > LATH_THINK_OFF)
        return err_set(err, LATH_ERR_USAGE, "lath_chat_render: think: %d, want 0, 1 or 2", (int)in->think);
    if (out->memory && out->tokenizer != chat->tokenizer)
        return err_set(err, LATH_ERR_USAGE, "lath_chat_render: the prompt is another tokenizer's");
    rendering *r = out->memory;
    if (!r) {
        r = alloc_zero(&chat->rt->alloc, sizeof(*r));
        if (!r) return err_nomem(err, sizeof(*r));
        rendering_init(r, &chat->rt->alloc);
    }
    const lath_status st = render(chat, in, r, err);
    *out = (lath_chat_prompt){.memory = r, .tokenizer = chat->tokenizer};
    if (st != LATH_OK) return st;
    out->text = buf_cstr(&r->out.text);
    out->len = r->out.text.len;
    out->ids = r->tokens.ids;
    out->n = r->tokens.n;
    out->reasoning_open = conversation_is_open(chat, &r->out, in->continue_last != 0);
    return buf_status(&r->out.text, err);
}

void lath_chat_prompt_release(lath_chat_prompt *p)
{
    if (!p || !p->memory) return;
    const lath_allocator *alloc = &p->tokenizer->rt->alloc;
    rendering_deinit(p->memory, p->tokenizer->tok);
    alloc_release(alloc, p->memory, sizeof(rendering));
    *p = (lath_chat_prompt){0};
}
