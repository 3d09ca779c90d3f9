/* SPDX-License-Identifier: Apache-2.0
 *
 * chat_exec.c: statements, and the rendering of a template. A round of a loop, a macro and a block have a scope of their own: names are looked up
 * from the inside out and always set in the innermost, so that what a loop sets is gone with the round (as in jinja2; namespaces are the way out).
 */
#include <string.h>

#include "chat/chat_call.h"

struct loop {
    const node *node;
    scope *scope; /* around the loop */
    value *v;     /* [n] what is gone through */
    size_t n, at; /* the next element that has not been looked at */
    bool has_after;
    value after; /* looked at ahead, when has_after */
    value current, before;
    int64_t index0;
    int64_t depth0;
    bool has_length;
    size_t length;
    value changed; /* arguments of the last loop.changed() */
};

/* --------------------------------------------------------------------------------------------------------------- scopes */

static lath_status push_scope(render *r, scope *parent)
{
    scope *s = render_bytes(r, sizeof(*s));
    if (!s) return r->st;
    s->parent = parent;
    r->scope = s;
    return LATH_OK;
}

lath_status scope_set(render *r, int32_t id, value v)
{
    for (binding *b = r->scope->first; b; b = b->next) {
        if (b->id != id) continue;
        b->v = v;
        return LATH_OK;
    }
    binding *b = render_bytes(r, sizeof(*b));
    if (!b) return r->st;
    *b = (binding){id, v, r->scope->first};
    r->scope->first = b;
    return LATH_OK;
}

static lath_status assign_attr(render *r, const node *target, value v)
{
    value space;
    const node name = {.kind = N_NAME, .id = target->id, .line = target->line};
    TRY(eval(r, &name, &space));
    if (space.kind != V_NAMESPACE)
        return render_fail(r, LATH_ERR_INPUT, "cannot set \"%s\" of what is no namespace", target->str->s);
    if (target->str->n && target->str->s[0] == '_')
        return render_fail(r, LATH_ERR_INPUT, "a namespace takes no name with \"_\" in front");
    return space_set(r, space.u.space, target->str->s, target->str->n, v);
}

lath_status assign(render *r, const node *target, value v)
{
    value *items;
    size_t n, i = 0;
    if (target->kind == N_NAME) return scope_set(r, target->id, v);
    if (target->kind == N_NSREF) return assign_attr(r, target, v);
    r->line = target->line;
    TRY(value_items(r, v, &items, &n));
    for (const node *t = target->list; t; t = t->next) i++;
    if (i != n) return render_fail(r, LATH_ERR_INPUT, "%zu values for %zu names", n, i);
    i = 0;
    for (const node *t = target->list; t; t = t->next) TRY(assign(r, t, items[i++]));
    return LATH_OK;
}

/* Runs a body with its output kept. */
lath_status exec_captured(render *r, const node *body, value *out)
{
    text_out o, *was = r->out;
    text_init(&o, r);
    r->out = &o;
    TRY(exec(r, body));
    r->out = was;
    return text_finish(&o, out);
}

/* ---------------------------------------------------------------------------------------------------------------- loops */

/* The next element that the loop's condition lets through. */
static lath_status loop_fetch(render *r, loop *l, value *out, bool *found)
{
    *found = false;
    while (l->at < l->n) {
        value yes;
        *out = l->v[l->at++];
        *found = true;
        if (!l->node->c) return LATH_OK;
        scope *was = r->scope;
        TRY(push_scope(r, l->scope));
        TRY(assign(r, l->node->a, *out));
        TRY(eval(r, l->node->c, &yes));
        r->scope = was;
        if (value_truth(yes)) return LATH_OK;
        *found = false;
    }
    return LATH_OK;
}

static lath_status loop_peek(render *r, loop *l, bool *there)
{
    if (!l->has_after) TRY(loop_fetch(r, l, &l->after, &l->has_after));
    *there = l->has_after;
    return LATH_OK;
}

/* With a condition the rest is gone through now, as jinja2 does. */
lath_status loop_length(render *r, loop *l, size_t *out)
{
    if (!l->has_length && !l->node->c) {
        l->length = l->n;
    } else if (!l->has_length) {
        size_t n = 0;
        value *rest = render_array(r, l->n - l->at, sizeof(*rest));
        if (!rest) return r->st;
        for (bool found = true; found; n += found) {
            value v = VALUE_NONE;
            TRY(loop_fetch(r, l, &v, &found));
            if (found) rest[n] = v;
        }
        l->length = n + (size_t)(l->index0 + 1) + l->has_after;
        l->v = rest;
        l->n = n;
        l->at = 0;
        node *plain = render_bytes(r, sizeof(*plain)); /* what is left has passed the condition */
        if (!plain) return r->st;
        *plain = *l->node;
        plain->c = NULL;
        l->node = plain;
    }
    l->has_length = true;
    *out = l->length;
    return LATH_OK;
}

static lath_status loop_number(render *r, loop *l, const chat_str *name, value *out, bool *found)
{
    size_t length;
    *found = true;
    if (str_is(name, "index")) {
        *out = value_int(l->index0 + 1);
    } else if (str_is(name, "index0")) {
        *out = value_int(l->index0);
    } else if (str_is(name, "first")) {
        *out = value_bool(l->index0 == 0);
    } else if (str_is(name, "depth")) {
        *out = value_int(l->depth0 + 1);
    } else if (str_is(name, "depth0")) {
        *out = value_int(l->depth0);
    } else if (str_is(name, "length") || str_is(name, "revindex") || str_is(name, "revindex0")) {
        TRY(loop_length(r, l, &length));
        *out = value_int((int64_t)length - (name->n == 6 ? 0 : l->index0 + (name->n == 9)));
    } else {
        *found = false;
    }
    return LATH_OK;
}

lath_status loop_attr(render *r, loop *l, const chat_str *name, value *out)
{
    bool found, there;
    TRY(loop_number(r, l, name, out, &found));
    if (found) return LATH_OK;
    if (str_is(name, "last")) {
        TRY(loop_peek(r, l, &there));
        *out = value_bool(!there);
        return LATH_OK;
    }
    if (str_is(name, "nextitem")) {
        TRY(loop_peek(r, l, &there));
        *out = l->after;
        return there ? LATH_OK : value_undefined_text(r, "there is no next item", out);
    }
    if (str_is(name, "previtem")) {
        *out = l->before;
        return l->index0 > 0 ? LATH_OK : value_undefined_text(r, "there is no previous item", out);
    }
    bool unsafe;
    const method_row *row = chat_find_method(V_LOOP, name->s, name->n, &unsafe);
    if (!row) return value_undefined_name(r, name->s, name->n, "loop", out);
    value_method *m = render_bytes(r, sizeof(*m));
    if (!m) return r->st;
    *m = (value_method){(value){.kind = V_LOOP, .u.loop = l}, row};
    *out = (value){.kind = V_METHOD, .u.method = m};
    return LATH_OK;
}

static lath_status loop_cycle(render *r, value self, const args *a, value *out)
{
    if (a->n == 0 || a->n_kw) return render_fail(r, LATH_ERR_INPUT, "cycle: no items");
    *out = a->v[(size_t)self.u.loop->index0 % a->n];
    return LATH_OK;
}

static lath_status loop_changed(render *r, value self, const args *a, value *out)
{
    value now;
    bool same = false;
    TRY(value_new_list(r, V_TUPLE, a->n, &now));
    if (a->n) memcpy(now.u.list->v, a->v, a->n * sizeof(*a->v));
    TRY(value_equal(r, now, self.u.loop->changed, &same));
    self.u.loop->changed = now;
    *out = value_bool(!same);
    return LATH_OK;
}

const method_row chat_loop_methods[] = {{"cycle", loop_cycle}, {"changed", loop_changed}, {0}};

static int32_t loop_id(const render *r)
{
    uint64_t id;
    return map_find(&r->t->ids, "loop", 4, &id) ? (int32_t)id : -1;
}

/* One round. *whole: it came to its end (not by break or continue). */
static lath_status loop_round(render *r, loop *l, const node *n, value v, int32_t id, bool *whole)
{
    l->before = l->current;
    l->current = v;
    l->index0++;
    TRY(push_scope(r, l->scope));
    TRY(assign(r, n->a, v));
    if (id >= 0) TRY(scope_set(r, id, (value){.kind = V_LOOP, .u.loop = l}));
    TRY(exec(r, n->list));
    *whole |= r->flow == FLOW_ON;
    return LATH_OK;
}

static lath_status run_loop(render *r, const node *n, value in, int64_t depth0)
{
    const int32_t id = loop_id(r);
    bool whole = false; /* a round came to its end: jinja2 runs the else part unless one did */
    scope *around = r->scope;
    loop *l = render_bytes(r, sizeof(*l));
    if (!l) return r->st;
    *l = (loop){.node = n, .scope = around, .index0 = -1, .depth0 = depth0};
    TRY(value_items(r, in, &l->v, &l->n));
    for (;;) {
        value v = VALUE_NONE;
        bool found = l->has_after;
        TRY(render_step(r, 1));
        if (found)
            v = l->after;
        else
            TRY(loop_fetch(r, l, &v, &found));
        l->has_after = false;
        if (!found) break;
        TRY(loop_round(r, l, n, v, id, &whole));
        r->scope = around;
        if (r->flow == FLOW_BREAK) break;
        r->flow = FLOW_ON;
    }
    r->flow = FLOW_ON;
    if (whole || !n->d) return LATH_OK;
    TRY(push_scope(r, around));
    TRY(exec(r, n->d));
    r->scope = around;
    return LATH_OK;
}

lath_status call_loop(render *r, loop *l, const args *a, value *out)
{
    text_out o, *was = r->out;
    scope *inner = r->scope;
    value in;
    if (!l->node->flag) return render_fail(r, LATH_ERR_INPUT, "a loop called that is not recursive");
    TRY(args_read(r, a, "iterable", 1, &in));
    text_init(&o, r);
    r->out = &o;
    r->scope = l->scope;
    const flow before = r->flow;
    TRY(run_loop(r, l->node, in, l->depth0 + 1));
    r->flow = before;
    r->scope = inner;
    r->out = was;
    return text_finish(&o, out);
}

/* --------------------------------------------------------------------------------------------------------------- macros */

static lath_status special_args(render *r, const macro *m, const args *a, size_t n_params, const bool *taken)
{
    static const char *const names[] = {"caller", "kwargs", "varargs"};
    const bool used[] = {m->node->uses_caller, m->node->uses_kwargs, m->node->uses_varargs};
    value v[3];
    value_dict *rest;
    TRY(value_undefined_text(r, "no caller is defined", &v[0]));
    TRY(value_new_dict(r, a->n_kw, &rest));
    for (size_t k = 0; k < a->n_kw; k++) {
        const kwarg *w = &a->kw[k];
        value key;
        if (taken[k]) continue;
        if (w->n == 6 && memcmp(w->name, "caller", 6) == 0 && used[0]) {
            v[0] = w->v;
            continue;
        }
        if (!used[1])
            return render_fail(r, LATH_ERR_INPUT, "macro %s: takes no argument \"%.*s\"", m->name,
                               w->n > 60 ? 60 : (int)w->n, w->name);
        TRY(str_new(r, w->name, w->n, false, &key));
        TRY(dict_set(r, rest, key, w->v));
    }
    v[1] = (value){.kind = V_DICT, .u.dict = rest};
    const size_t n_more = a->n > n_params ? a->n - n_params : 0;
    if (n_more && !used[2])
        return render_fail(r, LATH_ERR_INPUT, "macro %s: %zu arguments, at most %zu", m->name, a->n, n_params);
    TRY(value_new_list(r, V_TUPLE, n_more, &v[2]));
    if (n_more) memcpy(v[2].u.list->v, a->v + n_params, n_more * sizeof(value));
    for (int i = 0; i < 3; i++) {
        uint64_t id;
        if (used[i] && map_find(&r->t->ids, names[i], strlen(names[i]), &id)) TRY(scope_set(r, (int32_t)id, v[i]));
    }
    return LATH_OK;
}

/* Binds the parameters; defaults see those before them. */
static lath_status bind_params(render *r, const macro *m, const args *a)
{
    size_t i = 0;
    bool *taken = render_array(r, a->n_kw, sizeof(*taken));
    if (!taken) return r->st;
    for (const param *p = m->node->params; p; p = p->next, i++) {
        const char *name = r->t->names[p->id];
        value v;
        bool given = i < a->n;
        if (given) v = a->v[i];
        for (size_t k = 0; k < a->n_kw && !given; k++) {
            if (a->kw[k].n != strlen(name) || memcmp(a->kw[k].name, name, a->kw[k].n) != 0) continue;
            v = a->kw[k].v;
            given = taken[k] = true;
        }
        if (!given && p->value)
            TRY(eval(r, p->value, &v));
        else if (!given)
            TRY(value_undefined_name(r, name, strlen(name), NULL, &v));
        TRY(scope_set(r, p->id, v));
    }
    return special_args(r, m, a, i, taken);
}

lath_status call_macro(render *r, const macro *m, const args *a, value *out)
{
    scope *was = r->scope;
    const uint32_t line = r->line;
    TRY(push_scope(r, m->scope));
    TRY(bind_params(r, m, a));
    TRY(exec_captured(r, m->node->list, out));
    r->scope = was;
    r->line = line;
    return LATH_OK;
}

static lath_status new_macro(render *r, const node *n, value *out)
{
    macro *m = render_bytes(r, sizeof(*m));
    if (!m) return r->st;
    *m = (macro){n, r->scope, n->id >= 0 ? r->t->names[n->id] : "caller"};
    *out = (value){.kind = V_MACRO, .u.macro = m};
    return LATH_OK;
}

/* ----------------------------------------------------------------------------------------------------------- statements */

static lath_status exec_if(render *r, const node *n)
{
    for (;;) {
        value yes;
        TRY(eval(r, n->a, &yes));
        if (value_truth(yes)) return exec(r, n->list);
        if (!n->b) return LATH_OK;
        if (n->b->kind != N_IF || n->b->next) return exec(r, n->b);
        n = n->b;
        TRY(render_step(r, 1));
    }
}

/* A body in a scope of its own, its output kept. */
static lath_status scoped_capture(render *r, const node *n, value *out)
{
    scope *was = r->scope;
    TRY(push_scope(r, was));
    TRY(exec_captured(r, n->list, out));
    if (n->b) TRY(eval_block_filter(r, n->b, out));
    r->scope = was;
    return LATH_OK;
}

static lath_status exec_with(render *r, const node *n)
{
    scope *was = r->scope, *inner;
    TRY(push_scope(r, was));
    inner = r->scope;
    for (const node *t = n->args.positional; t; t = t->next->next) {
        value v;
        r->scope = was;
        TRY(eval(r, t->next, &v));
        r->scope = inner;
        TRY(assign(r, t, v));
    }
    TRY(exec(r, n->list));
    r->scope = was;
    return LATH_OK;
}

static lath_status exec_scope(render *r, const node *n)
{
    scope *was = r->scope;
    TRY(push_scope(r, was));
    TRY(exec(r, n->list));
    r->scope = was;
    return LATH_OK;
}

static lath_status exec_node(render *r, const node *n)
{
    value v;
    switch (n->kind) {
    case N_DATA: text_str(r->out, n->str); return r->st;
    case N_PRINT: TRY(eval(r, n->a, &v)); return put_value(r->out, v);
    case N_IF: return exec_if(r, n);
    case N_FOR: TRY(eval(r, n->b, &v)); return run_loop(r, n, v, 0);
    case N_SET: TRY(eval(r, n->b, &v)); return assign(r, n->a, v);
    case N_SET_BLOCK: TRY(scoped_capture(r, n, &v)); return assign(r, n->a, v);
    case N_FILTER_BLOCK: TRY(scoped_capture(r, n, &v)); return put_value(r->out, v);
    case N_WITH: return exec_with(r, n);
    case N_MACRO: TRY(new_macro(r, n, &v)); return scope_set(r, n->id, v);
    case N_CALL_BLOCK:
        TRY(new_macro(r, n->b, &v));
        TRY(eval_call_with(r, n->a, v, &v));
        return put_value(r->out, v);
    case N_SCOPE: return exec_scope(r, n);
    case N_BREAK: r->flow = FLOW_BREAK; return LATH_OK;
    default: r->flow = FLOW_CONTINUE; return LATH_OK;
    }
}

lath_status exec(render *r, const node *body)
{
    TRY(render_enter(r));
    for (const node *n = body; n && r->flow == FLOW_ON; n = n->next) {
        TRY(render_step(r, 1));
        r->line = n->line;
        TRY(exec_node(r, n));
    }
    r->depth--;
    return LATH_OK;
}

/* ----------------------------------------------------------------------------------------------------------- rendering */

static lath_status set_globals(render *r)
{
    const chat_template *t = r->t;
    r->globals = render_array(r, (size_t)t->n_names, sizeof(*r->globals));
    r->is_set = render_array(r, (size_t)t->n_names, sizeof(*r->is_set));
    if (!r->globals || !r->is_set) return r->st;
    for (int32_t i = 0; i < t->n_names; i++) {
        const global_row *g = chat_find_global(t->names[i], strlen(t->names[i]));
        if (!g) continue;
        r->globals[i] = (value){.kind = V_GLOBAL, .u.global = g};
        r->is_set[i] = true;
    }
    for (size_t i = 0; i < r->in->n_vars; i++) {
        const chat_var *v = &r->in->vars[i];
        uint64_t id;
        if (!map_find(&t->ids, v->name, strlen(v->name), &id)) continue;
        TRY(v->trust == CHAT_MESSAGES ? value_of_messages(r, v->value, &r->globals[id])
                                      : value_of_json(r, v->value, v->trust == CHAT_CONTENT, &r->globals[id]));
        r->is_set[id] = true;
    }
    return LATH_OK;
}

static lath_status add_span(chat_output *o, size_t begin, size_t end, lath_error *err)
{
    if (o->n_content == o->cap_content) {
        const size_t cap = o->cap_content ? o->cap_content * 2 : 64;
        chat_span *v = alloc_array(o->text.alloc, cap, sizeof(*v));
        if (!v) return err_nomem(err, cap * sizeof(*v));
        if (o->n_content) memcpy(v, o->content, o->n_content * sizeof(*v));
        alloc_release(o->text.alloc, o->content, o->cap_content * sizeof(*v));
        o->content = v;
        o->cap_content = cap;
    }
    o->content[o->n_content++] = (chat_span){begin, end};
    return LATH_OK;
}

static lath_status hand_out(const text_out *from, chat_output *o, lath_error *err)
{
    buf_clear(&o->text);
    o->n_content = 0;
    buf_append(&o->text, from->s, from->n);
    TRY(buf_status(&o->text, err));
    if (!from->marks) return from->content && from->n ? add_span(o, 0, from->n, err) : LATH_OK;
    for (size_t i = 0, begin; i < from->n; i++) {
        if (!from->marks[i]) continue;
        for (begin = i; i < from->n && from->marks[i];) i++;
        TRY(add_span(o, begin, i, err));
    }
    return LATH_OK;
}

static lath_status run(render *r, size_t max_output, chat_output *out, lath_error *err)
{
    text_out o;
    text_init(&o, r);
    r->out = &o;
    TRY(set_globals(r));
    TRY(push_scope(r, NULL));
    TRY(exec(r, r->t->body));
    if (o.n > max_output) return render_fail(r, LATH_ERR_LIMIT, "the text is longer than is allowed");
    return hand_out(&o, out, err);
}

lath_status chat_render(const chat_template *t, const chat_input *in, chat_output *out, lath_error *err)
{
    enum { STEPS = 4 << 20, OUTPUT = 64 << 20, MEMORY = 256 << 20 };
    const chat_limits *l = &in->limits;
    render r = {.t = t,
                .in = in,
                .err = err,
                .line = 1,
                .steps = l->max_steps ? l->max_steps : STEPS,
                .most = l->max_memory ? l->max_memory : MEMORY};
    arena_init(&r.mem, out->text.alloc);
    const lath_status st = run(&r, l->max_output ? l->max_output : OUTPUT, out, err);
    arena_deinit(&r.mem);
    return st;
}

void chat_output_init(chat_output *o, const lath_allocator *alloc)
{
    *o = (chat_output){0};
    buf_init(&o->text, alloc, SIZE_MAX / 2);
}

void chat_output_deinit(chat_output *o)
{
    if (!o->text.alloc) return;
    alloc_release(o->text.alloc, o->content, o->cap_content * sizeof(*o->content));
    buf_deinit(&o->text);
    *o = (chat_output){0};
}
