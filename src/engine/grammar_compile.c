/* SPDX-License-Identifier: Apache-2.0
 *
 * grammar_compile.c: from rules to nodes. First what every expression can be is found, by going over all rules until nothing changes:
 *
 *     need      levels of calls that the shallowest text takes; NEVER: no text fits. Alternatives that cannot end are left out, so that every
 *               way that is begun can be finished
 *     empty     the empty text fits
 *
 * A rule that can call itself before it takes a byte would never come to one: that is an error. Then nodes are made from the back to the
 * front, each with the node that follows it (Thompson 1968).
 */
#include <string.h>

#include "base/map.h"
#include "engine/grammar.h"

enum { NEVER = 1 << 24, EMPTY_ROUNDS_MOST = 256, WORK_MOST = 1 << 26, NODES_MOST = 1 << 23 };

typedef struct compiler {
    grammar_builder *b;
    grammar *g;
    uint32_t *starts; /* [rules] first node + 1; 0: not made yet */
    uint32_t *todo;   /* [n_todo] rules that are called, in the order in which their nodes are made */
    size_t n_todo, cap_nodes, cap_loops, cap_sets, work;
    map sets;
    uint64_t single[256][4]; /* sets of one byte */
} compiler;

/* n more items of `size` bytes fit into *v, which is of the arena. */
static bool grow(compiler *c, arena *mem, void **v, size_t n, size_t *cap, size_t size)
{
    if (c->b->status != LATH_OK) return false;
    if (n < *cap) return true;
    const size_t bigger = *cap ? 2 * *cap : 64;
    void *p = arena_array(mem, bigger, size);
    if (!p) {
        grammar_fail(c->b, LATH_ERR_NOMEM, "out of memory (%zu bytes asked for)", bigger * size);
        return false;
    }
    if (n) memcpy(p, *v, n * size);
    *v = p;
    *cap = bigger;
    return true;
}

/* --------------------------------------------------------------------------------------------------------------- facts */

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }
static uint32_t one_more(uint32_t need) { return need < NEVER ? need + 1 : NEVER; }

static void find(compiler *c, grammar_expr *e);

static void find_list(compiler *c, grammar_expr *e)
{
    const bool seq = e->kind == GRAMMAR_SEQ;
    uint32_t need = seq ? 0 : NEVER;
    bool empty = seq;
    for (size_t i = 0; i < e->u.list.n; i++) {
        grammar_expr *x = e->u.list.v[i];
        find(c, x);
        if (seq) {
            need = larger(need, x->need);
            empty &= x->empty;
        } else {
            if (x->need < need) need = x->need;
            empty |= x->empty;
        }
    }
    e->need = need;
    e->empty = empty;
}

/* Of one expression, from what is known of the rules. */
static void find(compiler *c, grammar_expr *e)
{
    c->work++;
    switch (e->kind) {
    case GRAMMAR_LITERAL: e->empty = e->u.literal.n == 0; break;
    case GRAMMAR_BYTES: break;
    case GRAMMAR_SEQ:
    case GRAMMAR_ALT: find_list(c, e); break;
    case GRAMMAR_REPEAT:
        find(c, e->u.repeat.body);
        e->need = e->u.repeat.min == 0 ? 0 : one_more(e->u.repeat.body->need);
        e->empty = e->u.repeat.min == 0 || e->u.repeat.body->empty;
        break;
    case GRAMMAR_RULE:
        e->need = one_more(c->b->rules[e->u.rule].need);
        e->empty = c->b->rules[e->u.rule].empty;
        break;
    }
}

static bool find_rule(compiler *c, size_t i)
{
    grammar_rule *r = &c->b->rules[i];
    find(c, r->expr);
    const bool changed = r->need != r->expr->need || r->empty != r->expr->empty;
    r->need = r->expr->need;
    r->empty = r->expr->empty;
    return changed;
}

/* Backwards and forwards in turn: chains of rules are settled in few rounds, whichever way they run. */
static void find_all(compiler *c)
{
    const size_t n = c->b->n_rules;
    for (size_t i = 0; i < n; i++) c->b->rules[i].need = NEVER;
    for (bool changed = true, forwards = false; changed && c->b->status == LATH_OK; forwards = !forwards) {
        changed = false;
        for (size_t i = 0; i < n; i++) changed |= find_rule(c, forwards ? i : n - 1 - i);
        if (c->work > WORK_MOST) grammar_fail(c->b, LATH_ERR_LIMIT, "the rules are too intricate");
    }
}

/* ------------------------------------------------------------------------------------------------------ left recursion */

typedef struct call {
    uint32_t from, to; /* `from` may call `to` before it takes a byte */
    uint32_t next;     /* the next call of `to`, + 1 */
} call;

typedef struct calls {
    call *v;
    size_t n, cap;
} calls;

static void add_first_calls(compiler *c, calls *x, uint32_t rule, const grammar_expr *e)
{
    if (e->need >= NEVER) return;
    switch (e->kind) {
    case GRAMMAR_RULE:
        if (grow(c, c->b->mem, (void **)&x->v, x->n, &x->cap, sizeof(*x->v))) x->v[x->n++] = (call){rule, e->u.rule, 0};
        break;
    case GRAMMAR_REPEAT: add_first_calls(c, x, rule, e->u.repeat.body); break;
    case GRAMMAR_ALT:
        for (size_t i = 0; i < e->u.list.n; i++) add_first_calls(c, x, rule, e->u.list.v[i]);
        break;
    case GRAMMAR_SEQ:
        for (size_t i = 0; i < e->u.list.n; i++) {
            add_first_calls(c, x, rule, e->u.list.v[i]);
            if (!e->u.list.v[i]->empty) break;
        }
        break;
    default: break;
    }
}

/* Takes away rules that call nothing first, again and again; what is left runs into a circle. */
static void refuse_left_recursion(compiler *c)
{
    const size_t n = c->b->n_rules;
    calls x = {0};
    for (size_t i = 0; i < n; i++) add_first_calls(c, &x, (uint32_t)i, c->b->rules[i].expr);
    uint32_t *left = arena_array(c->b->mem, n, sizeof(*left));   /* calls of a rule to rules that are not away yet */
    uint32_t *first = arena_array(c->b->mem, n, sizeof(*first)); /* call of a rule, + 1 */
    if (!left || !first) grammar_fail(c->b, LATH_ERR_NOMEM, "out of memory");
    if (c->b->status != LATH_OK) return;
    for (size_t i = 0; i < x.n; i++) {
        left[x.v[i].from]++;
        x.v[i].next = first[x.v[i].to];
        first[x.v[i].to] = (uint32_t)i + 1;
    }
    size_t n_away = 0; /* in c->todo */
    for (size_t i = 0; i < n; i++) {
        if (left[i] == 0) c->todo[n_away++] = (uint32_t)i;
    }
    for (size_t i = 0; i < n_away; i++) {
        for (uint32_t k = first[c->todo[i]]; k > 0; k = x.v[k - 1].next) {
            if (--left[x.v[k - 1].from] == 0) c->todo[n_away++] = x.v[k - 1].from;
        }
    }
    if (n_away == n) return;
    /* From any rule that is left, a call to another one that is left, n times: that one lies on a circle. */
    uint32_t at = 0;
    while (left[at] == 0) at++;
    for (size_t round = 0; round < n; round++) {
        for (size_t i = 0; i < x.n; i++) {
            if (x.v[i].from != at || left[x.v[i].to] == 0) continue;
            at = x.v[i].to;
            break;
        }
        if ((c->work += x.n) > WORK_MOST) break;
    }
    grammar_fail(c->b, LATH_ERR_INPUT, "rule \"%.80s\" comes back to itself before anything is read (left recursion)",
                 c->b->rules[at].name);
}

/* --------------------------------------------------------------------------------------------------------------- nodes */

static uint32_t add_node(compiler *c, grammar_node_kind kind, uint32_t a, uint32_t b, uint32_t need)
{
    grammar *g = c->g;
    if (g->n_nodes == NODES_MOST) grammar_fail(c->b, LATH_ERR_LIMIT, "more than %d nodes", NODES_MOST);
    if (!grow(c, &g->mem, (void **)&g->nodes, g->n_nodes, &c->cap_nodes, sizeof(*g->nodes))) return 0;
    g->nodes[g->n_nodes] = (grammar_node){(uint8_t)kind, a, b, need};
    return (uint32_t)g->n_nodes++;
}

static uint32_t need_of(const compiler *c, uint32_t node) { return c->g->n_nodes ? c->g->nodes[node].need : 0; }

static uint32_t add_split(compiler *c, uint32_t a, uint32_t b)
{
    const uint32_t x = need_of(c, a), y = need_of(c, b);
    return add_node(c, GRAMMAR_NODE_SPLIT, a, b, x < y ? x : y);
}

/* set stays where it is until all nodes are made. */
static uint32_t add_set(compiler *c, const uint64_t *set)
{
    grammar *g = c->g;
    uint64_t at;
    if (map_find(&c->sets, (const char *)set, 32, &at)) return (uint32_t)at;
    if (!grow(c, &g->mem, (void **)&g->sets, g->n_sets, &c->cap_sets, sizeof(*g->sets))) return 0;
    const lath_status st = map_add(&c->sets, (const char *)set, 32, g->n_sets, NULL, &c->b->error);
    if (st != LATH_OK) {
        c->b->status = st;
        return 0;
    }
    memcpy(g->sets[g->n_sets], set, 32);
    return (uint32_t)g->n_sets++;
}

static uint32_t add_bytes(compiler *c, const uint64_t *set, uint32_t next)
{
    return add_node(c, GRAMMAR_NODE_BYTES, add_set(c, set), next, need_of(c, next));
}

static uint32_t add_literal(compiler *c, const char *s, size_t n, uint32_t next)
{
    while (n-- > 0 && c->b->status == LATH_OK) {
        const uint8_t byte = (uint8_t)s[n];
        c->single[byte][byte / 64] = (uint64_t)1 << (byte % 64);
        next = add_bytes(c, c->single[byte], next);
    }
    return next;
}

static uint32_t add(compiler *c, const grammar_expr *e, uint32_t next);

static uint32_t add_call(compiler *c, uint32_t rule, uint32_t next)
{
    if (c->starts[rule] == 0) {
        c->starts[rule] = UINT32_MAX; /* soon */
        c->todo[c->n_todo++] = rule;
    }
    return add_node(c, GRAMMAR_NODE_CALL, rule, next, larger(one_more(c->b->rules[rule].need), need_of(c, next)));
}

/* Any number of times; `once`: at least one time. */
static uint32_t add_star(compiler *c, const grammar_expr *body, bool once, uint32_t next)
{
    const uint32_t split = add_node(c, GRAMMAR_NODE_SPLIT, next, next, need_of(c, next));
    const uint32_t begin = add(c, body, split);
    if (c->b->status != LATH_OK) return 0;
    c->g->nodes[split].a = begin;
    return once ? begin : split;
}

static uint32_t add_loop(compiler *c, const grammar_expr *e, uint32_t next)
{
    grammar *g = c->g;
    const uint32_t min = e->u.repeat.min, need = one_more(e->u.repeat.body->need);
    const uint32_t begin = add(c, e->u.repeat.body, 0);
    if (!grow(c, &g->mem, (void **)&g->loops, g->n_loops, &c->cap_loops, sizeof(*g->loops))) return 0;
    g->loops[g->n_loops] = (grammar_loop){begin, min, e->u.repeat.max, need};
    return add_node(c, GRAMMAR_NODE_LOOP, (uint32_t)g->n_loops++, next, larger(min ? need : 0, need_of(c, next)));
}

static uint32_t add_repeat(compiler *c, const grammar_expr *e, uint32_t next)
{
    const grammar_expr *body = e->u.repeat.body;
    const uint32_t max = e->u.repeat.max, min = body->empty ? 0 : e->u.repeat.min;
    if (max == 0 || body->need >= NEVER) return next;
    if (max == GRAMMAR_UNBOUNDED && min <= 1) return add_star(c, body, min == 1, next);
    if (max == 1) return min == 1 ? add(c, body, next) : add_split(c, add(c, body, next), next);
    if (!body->empty) return add_loop(c, e, next);
    if (max > EMPTY_ROUNDS_MOST) {
        grammar_fail(c->b, LATH_ERR_LIMIT, "what may be empty is repeated up to %u times, at most %d", max,
                     EMPTY_ROUNDS_MOST);
        return 0;
    }
    uint32_t at = next; /* (x(x(x)?)?)?, as rounds that are empty cannot be counted */
    for (uint32_t i = 0; i < max && c->b->status == LATH_OK; i++) at = add_split(c, add(c, body, at), next);
    return at;
}

/* The first node of e, behind which `next` comes. */
static uint32_t add(compiler *c, const grammar_expr *e, uint32_t next)
{
    uint32_t at = 0;
    bool any = false;
    if (c->b->status != LATH_OK) return 0;
    switch (e->kind) {
    case GRAMMAR_LITERAL: return add_literal(c, e->u.literal.s, e->u.literal.n, next);
    case GRAMMAR_BYTES: return add_bytes(c, e->u.set, next);
    case GRAMMAR_SEQ:
        for (size_t i = e->u.list.n; i-- > 0;) next = add(c, e->u.list.v[i], next);
        return next;
    case GRAMMAR_ALT:
        for (size_t i = e->u.list.n; i-- > 0;) {
            if (e->u.list.v[i]->need >= NEVER) continue;
            const uint32_t x = add(c, e->u.list.v[i], next);
            at = any ? add_split(c, x, at) : x;
            any = true;
        }
        return at;
    case GRAMMAR_REPEAT: return add_repeat(c, e, next);
    default: return add_call(c, e->u.rule, next);
    }
}

/* Calls have rules in place of nodes until all rules are made. */
static void add_rules(compiler *c)
{
    grammar *g = c->g;
    add_node(c, GRAMMAR_NODE_END, 0, 0, 0);
    c->n_todo = 0;
    c->todo[c->n_todo++] = 0;
    for (size_t i = 0; i < c->n_todo && c->b->status == LATH_OK; i++) {
        const uint32_t rule = c->todo[i];
        c->starts[rule] = add(c, c->b->rules[rule].expr, 0) + 1;
    }
    if (c->b->status != LATH_OK) return;
    for (size_t i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i].kind == GRAMMAR_NODE_CALL) g->nodes[i].a = c->starts[g->nodes[i].a] - 1;
    }
    g->begin = c->starts[0] - 1;
}

/* Sets cut the bytes into classes. */
static void find_classes(grammar *g)
{
    g->n_classes = 1;
    memset(g->class_of, 0, sizeof(g->class_of));
    for (size_t s = 0; s < g->n_sets && g->n_classes < 256; s++) {
        int16_t inside[256];
        uint32_t n_out[256] = {0};
        for (int b = 0; b < 256; b++) n_out[g->class_of[b]] += !grammar_set_has(g->sets[s], (uint8_t)b);
        memset(inside, -1, sizeof(inside));
        for (int b = 0; b < 256; b++) {
            const uint8_t class = g->class_of[b];
            if (!grammar_set_has(g->sets[s], (uint8_t)b) || n_out[class] == 0) continue;
            if (inside[class] < 0) inside[class] = (int16_t)g->n_classes++;
            g->class_of[b] = (uint8_t)inside[class];
        }
    }
    for (int b = 255; b >= 0; b--) g->byte_of[g->class_of[b]] = (uint8_t)b;
}

static void compile(compiler *c)
{
    grammar_builder *b = c->b;
    c->starts = arena_array(b->mem, b->n_rules, sizeof(*c->starts));
    c->todo = arena_array(b->mem, b->n_rules, sizeof(*c->todo));
    if (!c->starts || !c->todo) {
        grammar_fail(b, LATH_ERR_NOMEM, "out of memory");
        return;
    }
    find_all(c);
    if (b->status != LATH_OK) return;
    if (b->rules[0].need >= NEVER) {
        grammar_fail(b, LATH_ERR_INPUT, "no text can ever fit: every way goes on without end");
    } else if (b->rules[0].need >= GRAMMAR_DEPTH_MOST) {
        grammar_fail(b, LATH_ERR_LIMIT, "every text is nested deeper than %d levels", GRAMMAR_DEPTH_MOST);
    } else {
        refuse_left_recursion(c);
    }
    if (b->status == LATH_OK) add_rules(c);
    if (b->status == LATH_OK) find_classes(c->g);
}

lath_status grammar_compile(grammar_builder *b, grammar *g, lath_error *err)
{
    compiler c = {.b = b, .g = g};
    map_init(&c.sets, b->mem->alloc);
    if (b->status == LATH_OK) compile(&c);
    map_deinit(&c.sets);
    if (b->status != LATH_OK && err) *err = b->error;
    return b->status;
}

/* ---------------------------------------------------------------------------------------------------------------- open */

typedef void (*read_fn)(grammar_builder *b, const char *name, const char *text, size_t n);

static lath_status open_grammar(const lath_allocator *alloc, read_fn read, const char *name, const char *text, size_t n,
                                grammar **out, lath_error *err)
{
    grammar *g = alloc_zero(alloc, sizeof(*g));
    arena mem;
    grammar_builder b;
    *out = NULL;
    if (!g) return err_nomem(err, sizeof(*g));
    arena_init(&g->mem, alloc);
    arena_init(&mem, alloc);
    grammar_builder_init(&b, &mem);
    read(&b, name, text, n);
    const bool good = b.status == LATH_OK;
    lath_status st = grammar_compile(&b, g, err);
    if (st != LATH_OK && good) st = err_wrap(err, st, "%s", name);
    arena_deinit(&mem);
    if (st == LATH_OK) {
        *out = g;
    } else {
        grammar_close(g);
    }
    return st;
}

lath_status grammar_open_text(const lath_allocator *alloc, const char *name, const char *text, size_t n, grammar **out,
                              lath_error *err)
{
    return open_grammar(alloc, grammar_from_text, name, text, n, out, err);
}

lath_status grammar_open_schema(const lath_allocator *alloc, const char *name, const char *json, size_t n,
                                grammar **out, lath_error *err)
{
    return open_grammar(alloc, grammar_from_schema, name, json, n, out, err);
}

void grammar_close(grammar *g)
{
    if (!g) return;
    const lath_allocator *alloc = g->mem.alloc;
    arena_deinit(&g->mem);
    alloc_release(alloc, g, sizeof(*g));
}
