/* SPDX-License-Identifier: Apache-2.0
 *
 * chat_parse.c: tokens to a tree: statements. After the parser of jinja2 3.1.6: every method there has its function here and in chat_parse_expr.c.
 * Tags that jinja2 has and a chat template has no use for (block, extends, include, import, from, autoescape) are refused by name.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "chat/chat_ast.h"
#include "chat/chat_text.h"

lath_status parse_fail(parser *p, uint32_t line, lath_status st, const char *fmt, ...)
{
    char what[160];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    return err_set(p->err, st, "%s: line %u: %s", p->t->name, line, what);
}

lath_status parse_unexpected(parser *p)
{
    static const char *const names[] = {[T_EOF] = "the end of the template",
                                        [T_DATA] = "text",
                                        [T_VAR_BEGIN] = "{{",
                                        [T_VAR_END] = "}}",
                                        [T_BLOCK_BEGIN] = "{%",
                                        [T_BLOCK_END] = "%}",
                                        [T_STRING] = "a string",
                                        [T_INT] = "a number",
                                        [T_FLOAT] = "a number"};
    const token *t = p->at;
    const char *name = t->kind < sizeof(names) / sizeof(names[0]) ? names[t->kind] : NULL;
    if (name) return parse_fail(p, t->line, LATH_ERR_FORMAT, "unexpected %s", name);
    return parse_fail(p, t->line, LATH_ERR_FORMAT, "unexpected \"%.*s\"", t->n > 40 ? 40 : (int)t->n, t->s);
}

bool parse_is_name(const token *t, const char *name)
{
    return t->kind == T_NAME && t->n == strlen(name) && memcmp(t->s, name, t->n) == 0;
}

bool parse_skip_name(parser *p, const char *name)
{
    if (!parse_is_name(p->at, name)) return false;
    p->at++;
    return true;
}

bool parse_skip(parser *p, token_kind kind)
{
    if (p->at->kind != kind) return false;
    p->at++;
    return true;
}

lath_status parse_expect(parser *p, token_kind kind, const char *what)
{
    if (parse_skip(p, kind)) return LATH_OK;
    if (p->at->kind == T_EOF) return parse_unexpected(p);
    return parse_fail(p, p->at->line, LATH_ERR_FORMAT, "want %s, not \"%.*s\"", what,
                      p->at->n > 40 ? 40 : (int)p->at->n, p->at->s);
}

lath_status parse_new(parser *p, node_kind kind, uint32_t line, node **out)
{
    node *n = arena_zero(&p->t->mem, sizeof(*n));
    if (!n) return err_nomem(p->err, sizeof(*n));
    n->kind = kind;
    n->line = line;
    *out = n;
    return LATH_OK;
}

lath_status parse_str(parser *p, const char *s, uint32_t n, const chat_str **out)
{
    chat_str *v = arena_zero(&p->t->mem, sizeof(*v));
    if (!v) return err_nomem(p->err, sizeof(*v));
    *v = (chat_str){.s = s, .n = n, .n_chars = (uint32_t)chat_count(s, n)};
    *out = v;
    return LATH_OK;
}

lath_status parse_id(parser *p, const token *name, int32_t *out)
{
    chat_template *t = p->t;
    uint64_t id;
    if (map_find(&t->ids, name->s, name->n, &id)) {
        *out = (int32_t)id;
        return LATH_OK;
    }
    if (t->n_names == CHAT_NAMES_MOST) return parse_fail(p, name->line, LATH_ERR_LIMIT, "too many names");
    if (t->n_names == t->cap_names) {
        const int32_t cap = t->cap_names ? t->cap_names * 2 : 64;
        const char **names = arena_array(&t->mem, (size_t)cap, sizeof(*names));
        uint8_t *loaded = arena_array(&t->mem, (size_t)cap, 1);
        if (!names || !loaded) return err_nomem(p->err, (size_t)cap * sizeof(*names));
        if (t->n_names) {
            memcpy(names, t->names, (size_t)t->n_names * sizeof(*names));
            memcpy(loaded, t->loaded, (size_t)t->n_names);
        }
        t->names = names;
        t->loaded = loaded;
        t->cap_names = cap;
    }
    char *copy = arena_strdup(&t->mem, name->s, name->n);
    if (!copy) return err_nomem(p->err, name->n);
    TRY(map_add(&t->ids, copy, name->n, (uint64_t)t->n_names, NULL, p->err));
    t->names[t->n_names] = copy;
    *out = t->n_names++;
    return LATH_OK;
}

static lath_status parse_body(parser *p, const char *const *ends, size_t n_ends, node **out);

/* A body up to {% NAME, with what is around it kept: soft and loops are of this body. The name is skipped, its index in *which. */
static lath_status parse_block(parser *p, const char *const *ends, size_t n_ends, bool soft, int32_t loops, node **out,
                               size_t *which)
{
    const bool was_soft = p->soft;
    const int32_t was_loops = p->loops;
    const uint32_t line = p->at->line;
    parse_skip(p, T_COLON);
    TRY(parse_expect(p, T_BLOCK_END, "%}"));
    if (++p->depth > CHAT_NESTING_MOST) return parse_fail(p, line, LATH_ERR_LIMIT, "nested too deep");
    p->soft = soft;
    p->loops = loops;
    TRY(parse_body(p, ends, n_ends, out));
    p->soft = was_soft;
    p->loops = was_loops;
    p->depth--;
    if (p->at->kind == T_EOF)
        return parse_fail(p, line, LATH_ERR_FORMAT, "this tag is never closed: no %s", ends[n_ends - 1]);
    for (size_t i = 0; i < n_ends; i++) {
        if (which && parse_is_name(p->at, ends[i])) *which = i;
    }
    p->at++;
    return LATH_OK;
}

static lath_status parse_until(parser *p, const char *end, node **out)
{
    return parse_block(p, &end, 1, false, p->loops, out, NULL);
}

/* --------------------------------------------------------------------------------------------------------- statements */

static lath_status parse_for(parser *p, node *n)
{
    static const char *const ends[] = {"else", "endfor"};
    size_t which = 0;
    n->kind = N_FOR;
    p->loops++;
    TRY(parse_target(p, "in", false, &n->a));
    p->loops--;
    if (!parse_skip_name(p, "in")) return parse_unexpected(p);
    TRY(parse_tuple(p, false, "recursive", false, &n->b));
    if (parse_skip_name(p, "if")) TRY(parse_expression(p, true, &n->c));
    n->flag = parse_skip_name(p, "recursive");
    TRY(parse_block(p, ends, 2, false, p->loops + 1, &n->list, &which));
    return which == 0 ? parse_block(p, ends + 1, 1, false, p->loops, &n->d, NULL) : LATH_OK;
}

/* if, elif and else: each elif is an N_IF in the branch `b` of the one before. */
static lath_status parse_if(parser *p, node *n)
{
    static const char *const ends[] = {"elif", "else", "endif"};
    const bool was_soft = p->soft;
    n->kind = N_IF;
    for (;;) {
        size_t which = 0;
        p->soft = true;
        TRY(parse_tuple(p, false, NULL, false, &n->a));
        p->soft = was_soft;
        TRY(parse_block(p, ends, 3, true, p->loops, &n->list, &which));
        if (which == 1) return parse_block(p, ends + 2, 1, true, p->loops, &n->b, NULL);
        if (which == 2) return LATH_OK;
        TRY(parse_new(p, N_IF, p->at->line, &n->b));
        n = n->b;
    }
}

static lath_status parse_set(parser *p, node *n)
{
    TRY(parse_target(p, NULL, true, &n->a));
    if (parse_skip(p, T_ASSIGN)) {
        n->kind = N_SET;
        return parse_tuple(p, true, NULL, false, &n->b);
    }
    n->kind = N_SET_BLOCK;
    TRY(parse_filters(p, NULL, false, &n->b));
    return parse_until(p, "endset", &n->list);
}

static lath_status parse_with(parser *p, node *n)
{
    node **tail = &n->args.positional;
    n->kind = N_WITH;
    while (p->at->kind != T_BLOCK_END) {
        node *target, *value;
        if (n->args.positional) TRY(parse_expect(p, T_COMMA, "\",\""));
        TRY(parse_target(p, NULL, false, &target));
        TRY(parse_expect(p, T_ASSIGN, "\"=\""));
        TRY(parse_expression(p, true, &value));
        *tail = target;
        target->next = value;
        tail = &value->next;
    }
    return parse_until(p, "endwith", &n->list);
}

static lath_status parse_signature(parser *p, node *n)
{
    param **tail = &n->params;
    bool has_default = false;
    TRY(parse_expect(p, T_LPAREN, "\"(\""));
    while (p->at->kind != T_RPAREN) {
        if (n->params) TRY(parse_expect(p, T_COMMA, "\",\""));
        param *q = arena_zero(&p->t->mem, sizeof(*q));
        if (!q) return err_nomem(p->err, sizeof(*q));
        const token *name = p->at;
        TRY(parse_expect(p, T_NAME, "the name of a parameter"));
        TRY(parse_id(p, name, &q->id));
        if (parse_skip(p, T_ASSIGN)) {
            TRY(parse_expression(p, true, &q->value));
            has_default = true;
        } else if (has_default) {
            return parse_fail(p, name->line, LATH_ERR_FORMAT, "a parameter without a default behind one with it");
        }
        *tail = q;
        tail = &q->next;
    }
    return parse_expect(p, T_RPAREN, "\")\"");
}

static bool has_param(const parser *p, const node *n, const char *name)
{
    for (const param *q = n->params; q; q = q->next) {
        if (strcmp(p->t->names[q->id], name) == 0) return true;
    }
    return false;
}

/* The body of a macro, and which of the special names it reads. */
static lath_status parse_macro_body(parser *p, node *n, const char *end)
{
    const bool caller = p->uses_caller, kwargs = p->uses_kwargs, varargs = p->uses_varargs;
    p->uses_caller = p->uses_kwargs = p->uses_varargs = false;
    TRY(parse_block(p, &end, 1, false, 0, &n->list, NULL));
    n->uses_caller = p->uses_caller;
    n->uses_kwargs = p->uses_kwargs && !has_param(p, n, "kwargs");
    n->uses_varargs = p->uses_varargs && !has_param(p, n, "varargs");
    if (n->uses_caller && has_param(p, n, "caller"))
        return parse_fail(p, n->line, LATH_ERR_UNSUPPORTED, "a parameter of the name \"caller\"");
    p->uses_caller |= caller;
    p->uses_kwargs |= kwargs;
    p->uses_varargs |= varargs;
    return LATH_OK;
}

static lath_status parse_macro(parser *p, node *n)
{
    const token *name = p->at;
    n->kind = N_MACRO;
    TRY(parse_expect(p, T_NAME, "the name of the macro"));
    TRY(parse_id(p, name, &n->id));
    TRY(parse_signature(p, n));
    return parse_macro_body(p, n, "endmacro");
}

static lath_status parse_call_block(parser *p, node *n)
{
    node *m = NULL;
    n->kind = N_CALL_BLOCK;
    TRY(parse_new(p, N_MACRO, n->line, &m));
    m->id = -1;
    if (p->at->kind == T_LPAREN) TRY(parse_signature(p, m));
    TRY(parse_expression(p, true, &n->a));
    if (n->a->kind != N_CALL) return parse_fail(p, n->line, LATH_ERR_FORMAT, "want a call behind \"call\"");
    n->b = m;
    return parse_macro_body(p, m, "endcall");
}

static lath_status parse_print(parser *p, node *n)
{
    node *first = NULL, **tail = &first;
    n->kind = N_SCOPE;
    while (p->at->kind != T_BLOCK_END) {
        if (first) TRY(parse_expect(p, T_COMMA, "\",\""));
        TRY(parse_new(p, N_PRINT, p->at->line, tail));
        TRY(parse_expression(p, true, &(*tail)->a));
        tail = &(*tail)->next;
    }
    n->list = first;
    return LATH_OK;
}

static lath_status parse_filter_block(parser *p, node *n)
{
    n->kind = N_FILTER_BLOCK;
    TRY(parse_filters(p, NULL, true, &n->b));
    return parse_until(p, "endfilter", &n->list);
}

static lath_status parse_generation(parser *p, node *n)
{
    static const char *const end[] = {"endgeneration"};
    n->kind = N_SCOPE;
    return parse_block(p, end, 1, false, 0, &n->list, NULL);
}

static lath_status parse_jump(parser *p, node *n)
{
    if (p->loops == 0) return parse_fail(p, n->line, LATH_ERR_FORMAT, "break or continue outside of a loop");
    n->kind = parse_is_name(p->at - 1, "break") ? N_BREAK : N_CONTINUE;
    return LATH_OK;
}

static lath_status parse_refused(parser *p, node *n)
{
    const token *name = p->at - 1;
    return parse_fail(p, n->line, LATH_ERR_UNSUPPORTED, "the tag \"%.*s\"", (int)name->n, name->s);
}

static lath_status parse_statement(parser *p, node **out)
{
    static const struct {
        const char *name;
        lath_status (*fn)(parser *p, node *n);
    } rows[] = {{"for", parse_for},
                {"if", parse_if},
                {"set", parse_set},
                {"macro", parse_macro},
                {"call", parse_call_block},
                {"filter", parse_filter_block},
                {"with", parse_with},
                {"print", parse_print},
                {"generation", parse_generation},
                {"break", parse_jump},
                {"continue", parse_jump},
                {"block", parse_refused},
                {"extends", parse_refused},
                {"include", parse_refused},
                {"import", parse_refused},
                {"from", parse_refused},
                {"autoescape", parse_refused}};
    const token *name = p->at;
    TRY(parse_expect(p, T_NAME, "the name of a tag"));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!parse_is_name(name, rows[i].name)) continue;
        TRY(parse_new(p, N_DATA, name->line, out));
        return rows[i].fn(p, *out);
    }
    return parse_fail(p, name->line, LATH_ERR_FORMAT, "the tag \"%.*s\" is not known, or closes nothing",
                      name->n > 40 ? 40 : (int)name->n, name->s);
}

/* Statements and text up to "{% END", where it stays at END, or the end of the template. */
static lath_status parse_body(parser *p, const char *const *ends, size_t n_ends, node **out)
{
    node **tail = out;
    *out = NULL;
    for (;;) {
        const token *t = p->at;
        if (t->kind == T_EOF) return LATH_OK;
        p->at++;
        if (t->kind == T_DATA) {
            TRY(parse_new(p, N_DATA, t->line, tail));
            TRY(parse_str(p, t->s, t->n, &(*tail)->str));
        } else if (t->kind == T_VAR_BEGIN) {
            TRY(parse_new(p, N_PRINT, t->line, tail));
            TRY(parse_tuple(p, true, NULL, false, &(*tail)->a));
            TRY(parse_expect(p, T_VAR_END, "}}"));
        } else {
            for (size_t i = 0; i < n_ends; i++) {
                if (parse_is_name(p->at, ends[i])) return LATH_OK;
            }
            TRY(parse_statement(p, tail));
            TRY(parse_expect(p, T_BLOCK_END, "%}"));
        }
        tail = &(*tail)->next;
    }
}

lath_status chat_parse(chat_template *t, const token *tokens, lath_error *err)
{
    parser p = {.t = t, .at = tokens, .err = err};
    return parse_body(&p, NULL, 0, &t->body);
}

/* ----------------------------------------------------------------------------------------------------------- compile */

static lath_status compile(chat_template *t, const char *name, const char *text, size_t n, lath_error *err)
{
    enum { TEXT_MOST = 1 << 20 };
    token *tokens;
    const size_t bad = utf8_first_invalid(text, n);
    t->name = arena_strdup(&t->mem, name, strlen(name));
    if (!t->name) return err_nomem(err, strlen(name));
    if (n > TEXT_MOST)
        return err_set(err, LATH_ERR_LIMIT, "%s: a template of %zu bytes, at most %d", name, n, TEXT_MOST);
    if (bad != n) return err_set(err, LATH_ERR_FORMAT, "%s: not valid UTF-8 at byte %zu", name, bad + 1);
    TRY(chat_lex(t, text, n, &tokens, err));
    return chat_parse(t, tokens, err);
}

lath_status chat_compile(const lath_allocator *alloc, const char *name, const char *text, size_t n, chat_template **out,
                         lath_error *err)
{
    chat_template *t = alloc_zero(alloc, sizeof(*t));
    if (!t) return err_nomem(err, sizeof(*t));
    arena_init(&t->mem, alloc);
    map_init(&t->ids, alloc);
    const lath_status st = compile(t, name, text, n, err);
    if (st != LATH_OK)
        chat_release(t);
    else
        *out = t;
    return st;
}

void chat_release(chat_template *t)
{
    if (!t) return;
    const lath_allocator *alloc = t->mem.alloc;
    map_deinit(&t->ids);
    arena_deinit(&t->mem);
    alloc_release(alloc, t, sizeof(*t));
}

bool chat_uses(const chat_template *t, const char *name)
{
    uint64_t id;
    return map_find(&t->ids, name, strlen(name), &id) && t->loaded[id];
}

size_t chat_bytes(const chat_template *t) { return t->mem.total + t->ids.n_slots * sizeof(map_slot) + sizeof(*t); }
