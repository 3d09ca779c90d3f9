/* SPDX-License-Identifier: Apache-2.0
 *
 * conversation_think.c: how a chat template has its model think: between which markers, with which white space, and through which variable it is told
 * whether to. Markers are those that are known; the rest is found by trying: conversations are rendered, and what the template writes is looked at.
 */
#include <string.h>

#include "engine/conversation.h"

typedef struct marker_pair {
    const char *begin, *end;
} marker_pair;

/* As the models write them. Of two that a template has the first counts. */
static const marker_pair markers[] = {
    {"<think>", "</think>"}, /* DeepSeek-R1, Qwen3, Qwen3.5, QwQ, SmolLM3, GLM-4.6, Nemotron, MiniMax-M2, ... */
    {"<seed:think>", "</seed:think>"},          /* Seed-OSS */
    {"<mm:think>", "</mm:think>"},              /* MiniMax-M3 */
    {"[THINK]", "[/THINK]"},                    /* Magistral, Ministral 3 */
    {"<|START_THINKING|>", "<|END_THINKING|>"}, /* Command A, Command R7B */
    {"<|channel>thought\n", "<channel|>"},      /* Gemma 4 */
    {"<|inner_prefix|>", "<|inner_suffix|>"},   /* Apertus */
};
enum { N_MARKERS = sizeof(markers) / sizeof(markers[0]) };

#define TRUE_FALSE \
    {.kind = JSON_BOOL, .u.boolean = true}, { .kind = JSON_BOOL, .u.boolean = false }
#define WORD(s)                                                             \
    {                                                                       \
        .kind = JSON_STRING, .u.string = {.data = s, .len = sizeof(s) - 1 } \
    }
static const think_switch switches[] = {
    {"enable_thinking", TRUE_FALSE},
    {"thinking", TRUE_FALSE},
    {"thinking_mode", WORD("enabled"), WORD("disabled")},
};
enum { N_SWITCHES = sizeof(switches) / sizeof(switches[0]) };

/* ------------------------------------------------------------------------------------------------------------- probes */

/* Renders a conversation of a question or of a question and an answer that was thought about. *ok false: the template refuses it. */
static lath_status probe(const lath_chat *c, lath_think think, const think_switch *by, bool answered, rendering *r,
                         bool *ok, lath_error *err)
{
    lath_error ignored;
    arena_reset(&r->mem);
    json_value *messages = json_new(&r->mem, JSON_ARRAY, err);
    if (!messages) return LATH_ERR_NOMEM;
    TRY(conversation_add(&r->mem, messages, "user", "question", 8, err));
    if (answered) {
        TRY(conversation_add(&r->mem, messages, "assistant", "answer", 6, err));
        TRY(conversation_add_reasoning(&r->mem, messages, (lath_text){"thought", 7}, err));
    }
    const conversation v = {.messages = messages, .prompt = !answered, .has_date = true, .think = think, .by = by};
    const lath_status st = conversation_render(c, &v, r, &ignored);
    if (st == LATH_ERR_NOMEM && err) *err = ignored;
    if (st == LATH_ERR_NOMEM) return st;
    *ok = st == LATH_OK && !r->out.text.failed;
    return LATH_OK;
}

static lath_status keep(lath_chat *c, const char *s, size_t n, lath_text *out, lath_error *err)
{
    out->data = arena_strdup(&c->mem, s, n);
    out->len = n;
    return out->data ? LATH_OK : err_nomem(err, n);
}

/* ------------------------------------------------------------------------------------------------------------ markers */

static bool is_token(const lath_chat *c, const char *s) { return tok_id(c->tokenizer->tok, s, strlen(s)) >= 0; }

static const marker_pair *find_markers(const lath_chat *c)
{
    for (size_t i = 0; i < N_MARKERS; i++) {
        if (strstr(c->text, markers[i].end)) return &markers[i];
    }
    for (size_t i = 0; i < N_MARKERS; i++) {
        if (is_token(c, markers[i].begin) && is_token(c, markers[i].end)) return &markers[i];
    }
    return NULL;
}

static bool is_blank(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!strchr(" \n\r\t", s[i])) return false;
    }
    return true;
}

/* The last place of a marker in the first n bytes of a text, or n. */
static size_t find_last(const char *s, size_t n, lath_text m)
{
    for (size_t i = n < m.len ? 0 : n - m.len + 1; i-- > 0;) {
        if (memcmp(s + i, m.data, m.len) == 0) return i;
    }
    return n;
}

/* What is between thought and answer, if that is the end marker between blanks. */
static bool between(const lath_chat *c, const chat_output *o, const char **s, size_t *n)
{
    const lath_text m = c->reasoning.end;
    if (o->n_content < 2) return false;
    const chat_span a = o->content[o->n_content - 2], b = o->content[o->n_content - 1];
    if (a.end - a.begin != 7 || memcmp(o->text.data + a.begin, "thought", 7) != 0) return false;
    if (b.end - b.begin != 6 || memcmp(o->text.data + b.begin, "answer", 6) != 0) return false;
    *s = o->text.data + a.end;
    *n = b.begin - a.end;
    const size_t at = find_last(*s, *n, m);
    return at < *n && is_blank(*s, at) && is_blank(*s + at + m.len, *n - at - m.len);
}

/* The same of a prompt that has an empty block: half of the white space inside is of its end. */
static bool empty_block(const lath_chat *c, const chat_output *o, const char **s, size_t *n)
{
    const lath_text begin = c->reasoning.begin, end = c->reasoning.end;
    const size_t b = find_last(o->text.data, o->text.len, begin), e = find_last(o->text.data, o->text.len, end);
    if (b == o->text.len || e == o->text.len || e < b + begin.len) return false;
    const size_t inside = b + begin.len, behind = e + end.len;
    if (!is_blank(o->text.data + inside, e - inside) || !is_blank(o->text.data + behind, o->text.len - behind))
        return false;
    *s = o->text.data + inside + (e - inside) / 2;
    *n = o->text.len - (size_t)(*s - o->text.data);
    return true;
}

static lath_status find_close(lath_chat *c, rendering *r, lath_error *err)
{
    static const lath_think ways[] = {LATH_THINK_AUTO, LATH_THINK_ON, LATH_THINK_OFF};
    const char *s;
    size_t n;
    for (size_t i = 0; i < 3; i++) {
        const bool off = ways[i] == LATH_THINK_OFF;
        bool ok;
        if (ways[i] != LATH_THINK_AUTO && !c->think) break;
        TRY(probe(c, ways[i], c->think, !off, r, &ok, err));
        if (ok && (off ? empty_block(c, &r->out, &s, &n) : between(c, &r->out, &s, &n)))
            return keep(c, s, n, &c->reasoning.close, err);
    }
    c->reasoning.close = c->reasoning.end;
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------------- switch */

/* A variable is one when its two values make two prompts. */
static lath_status find_switch(lath_chat *c, rendering *on, rendering *off, lath_error *err)
{
    for (size_t i = 0; i < N_SWITCHES && !c->think; i++) {
        const think_switch *x = &switches[i];
        bool ok_on, ok_off;
        if (!chat_uses(c->plain, x->name)) continue;
        TRY(probe(c, LATH_THINK_ON, x, false, on, &ok_on, err));
        TRY(probe(c, LATH_THINK_OFF, x, false, off, &ok_off, err));
        const size_t n = on->out.text.len;
        if (!ok_on || !ok_off) continue;
        if (n != off->out.text.len || (n && memcmp(on->out.text.data, off->out.text.data, n) != 0)) c->think = x;
    }
    return LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------------- interface */

lath_status conversation_find_reasoning(lath_chat *c, lath_error *err)
{
    const marker_pair *m = find_markers(c);
    rendering a, b;
    rendering_init(&a, &c->rt->alloc);
    rendering_init(&b, &c->rt->alloc);
    lath_status st = find_switch(c, &a, &b, err);
    c->reasoning.has_switch = c->think != NULL;
    if (st == LATH_OK && m) {
        c->reasoning.begin = (lath_text){m->begin, strlen(m->begin)};
        c->reasoning.end = (lath_text){m->end, strlen(m->end)};
        st = find_close(c, &a, err);
    }
    rendering_deinit(&a, c->tokenizer->tok);
    rendering_deinit(&b, c->tokenizer->tok);
    return st;
}

/* Where people's own text ends; a begin marker of theirs opens nothing. */
static size_t content_end(const chat_output *o) { return o->n_content ? o->content[o->n_content - 1].end : 0; }

bool conversation_is_open(const lath_chat *c, const chat_output *o, bool goes_on)
{
    const lath_text begin = c->reasoning.begin, end = c->reasoning.end;
    if (begin.len == 0 || o->text.len == 0) return false;
    const char *s = o->text.data;
    const size_t at = find_last(s, o->text.len, begin);
    if (at == o->text.len) return false;
    if (goes_on)
        return at >= (o->n_content ? o->content[o->n_content - 1].begin : 0) &&
               find_last(s + at, o->text.len - at, end) == o->text.len - at;
    return at >= content_end(o) && is_blank(s + at + begin.len, o->text.len - at - begin.len);
}

const lath_reasoning *lath_chat_reasoning(const lath_chat *chat)
{
    return chat->reasoning.begin.len || chat->think ? &chat->reasoning : NULL;
}
