/* SPDX-License-Identifier: Apache-2.0
 *
 * chat_parse_expr.c: tokens to a tree: expressions, by falling precedence
 *
 *     a if b else c | or | and | not | comparisons, in | + - | ~ | * / // % | ** | unary - + | x.y x[y] x(y) | x|filter, x is test
 */
#include <string.h>

#include "chat/chat_ast.h"
#include "chat/chat_call.h"

static lath_status parse_unary(parser *p, bool with_filter, node **out);

static lath_status deeper(parser *p)
{
    return ++p->depth > CHAT_NESTING_MOST ? parse_fail(p, p->at->line, LATH_ERR_LIMIT, "nested too deep") : LATH_OK;
}

static lath_status new_binary(parser *p, node_kind kind, binary_op op, uint32_t line, node *b, node **left)
{
    node *n;
    TRY(parse_new(p, kind, line, &n));
    n->op = op;
    n->a = *left;
    n->b = b;
    *left = n;
    return LATH_OK;
}

/* ----------------------------------------------------------------------------------------------------------- literals */

static lath_status parse_list(parser *p, node **out)
{
    node **tail;
    TRY(parse_new(p, N_LIST, p->at++->line, out));
    tail = &(*out)->list;
    while (p->at->kind != T_RBRACKET) {
        if ((*out)->list) TRY(parse_expect(p, T_COMMA, "\",\""));
        if (p->at->kind == T_RBRACKET) break;
        TRY(parse_expression(p, true, tail));
        tail = &(*tail)->next;
    }
    return parse_expect(p, T_RBRACKET, "\"]\"");
}

static lath_status parse_dict(parser *p, node **out)
{
    node **tail;
    TRY(parse_new(p, N_DICT, p->at++->line, out));
    tail = &(*out)->list;
    while (p->at->kind != T_RBRACE) {
        if ((*out)->list) TRY(parse_expect(p, T_COMMA, "\",\""));
        if (p->at->kind == T_RBRACE) break;
        TRY(parse_expression(p, true, tail));
        tail = &(*tail)->next;
        TRY(parse_expect(p, T_COLON, "\":\""));
        TRY(parse_expression(p, true, tail));
        tail = &(*tail)->next;
    }
    return parse_expect(p, T_RBRACE, "\"}\"");
}

/* Strings that stand side by side are one. */
static lath_status parse_strings(parser *p, node **out)
{
    size_t n = 0, at = 0;
    const token *first = p->at;
    while (p->at->kind == T_STRING) n += p->at++->n;
    char *s = arena_bytes(&p->t->mem, n + 1, 1);
    if (!s) return err_nomem(p->err, n + 1);
    for (const token *t = first; t < p->at; t++) {
        if (t->n) memcpy(s + at, t->s, t->n);
        at += t->n;
    }
    s[n] = 0;
    TRY(parse_new(p, N_STRING, first->line, out));
    return parse_str(p, s, (uint32_t)n, &(*out)->str);
}

static void note_special(parser *p, const token *t)
{
    p->uses_caller |= parse_is_name(t, "caller");
    p->uses_kwargs |= parse_is_name(t, "kwargs");
    p->uses_varargs |= parse_is_name(t, "varargs");
}

static lath_status parse_name(parser *p, bool with_namespace, node **out)
{
    const token *t = p->at++;
    const bool yes = parse_is_name(t, "true") || parse_is_name(t, "True");
    if (yes || parse_is_name(t, "false") || parse_is_name(t, "False")) {
        TRY(parse_new(p, N_BOOL, t->line, out));
        (*out)->integer = yes;
        return LATH_OK;
    }
    if (parse_is_name(t, "none") || parse_is_name(t, "None")) return parse_new(p, N_NONE, t->line, out);
    TRY(parse_new(p, N_NAME, t->line, out));
    TRY(parse_id(p, t, &(*out)->id));
    if (with_namespace && parse_skip(p, T_DOT)) {
        const token *attr = p->at;
        TRY(parse_expect(p, T_NAME, "a name"));
        (*out)->kind = N_NSREF;
        TRY(parse_str(p, attr->s, attr->n, &(*out)->str));
    }
    return LATH_OK;
}

static lath_status parse_primary(parser *p, bool with_namespace, node **out)
{
    const token *t = p->at;
    lath_status st;
    switch (t->kind) {
    case T_NAME: return parse_name(p, with_namespace, out);
    case T_STRING: return parse_strings(p, out);
    case T_INT:
    case T_FLOAT:
        p->at++;
        TRY(parse_new(p, t->kind == T_INT ? N_INT : N_FLOAT, t->line, out));
        (*out)->integer = t->integer;
        (*out)->real = t->real;
        return LATH_OK;
    case T_LPAREN:
        p->at++;
        TRY(deeper(p));
        TRY(parse_tuple(p, true, NULL, true, out));
        p->depth--;
        return parse_expect(p, T_RPAREN, "\")\"");
    case T_LBRACKET:
    case T_LBRACE:
        TRY(deeper(p));
        st = t->kind == T_LBRACKET ? parse_list(p, out) : parse_dict(p, out);
        p->depth--;
        return st;
    default: return parse_unexpected(p);
    }
}

/* A primary whose value is read. */
static lath_status parse_operand(parser *p, node **out)
{
    const token *t = p->at;
    TRY(parse_primary(p, false, out));
    if ((*out)->kind != N_NAME) return LATH_OK;
    note_special(p, t);
    p->t->loaded[(*out)->id] = 1;
    return LATH_OK;
}

lath_status parse_tuple(parser *p, bool with_condition, const char *ends, bool parentheses, node **out)
{
    node *first = NULL, **tail = &first;
    bool is_tuple = false;
    const uint32_t line = p->at->line;
    for (;;) {
        if (first) TRY(parse_expect(p, T_COMMA, "\",\""));
        const token_kind k = p->at->kind;
        if (k == T_VAR_END || k == T_BLOCK_END || k == T_RPAREN || (ends && parse_is_name(p->at, ends))) break;
        TRY(parse_expression(p, with_condition, tail));
        tail = &(*tail)->next;
        if (p->at->kind != T_COMMA) break;
        is_tuple = true;
    }
    if (!is_tuple && first) {
        *out = first;
        return LATH_OK;
    }
    if (!is_tuple && !parentheses) return parse_unexpected(p);
    TRY(parse_new(p, N_TUPLE, line, out));
    (*out)->list = first;
    return LATH_OK;
}

/* What may be assigned to: names, namespace attributes, tuples of them; in a loop not its own `loop`. */
static bool assignable(const parser *p, const node *n)
{
    if (n->kind == N_NAME) return p->loops == 0 || strcmp(p->t->names[n->id], "loop") != 0;
    if (n->kind == N_NSREF) return true;
    if (n->kind != N_TUPLE) return false;
    for (const node *i = n->list; i; i = i->next) {
        if (!assignable(p, i)) return false;
    }
    return n->list != NULL;
}

lath_status parse_target(parser *p, const char *ends, bool with_namespace, node **out)
{
    node *first = NULL, **tail = &first;
    bool is_tuple = false;
    const uint32_t line = p->at->line;
    for (;;) {
        if (first) TRY(parse_expect(p, T_COMMA, "\",\""));
        if (p->at->kind == T_BLOCK_END || p->at->kind == T_ASSIGN || (ends && parse_is_name(p->at, ends))) break;
        if (p->at->kind == T_LPAREN) {
            p->at++;
            TRY(deeper(p));
            TRY(parse_target(p, NULL, with_namespace, tail));
            p->depth--;
            TRY(parse_expect(p, T_RPAREN, "\")\""));
        } else {
            TRY(parse_primary(p, with_namespace, tail));
        }
        tail = &(*tail)->next;
        if (p->at->kind != T_COMMA) break;
        is_tuple = true;
    }
    if (!first) return parse_unexpected(p);
    *out = first;
    if (is_tuple) {
        TRY(parse_new(p, N_TUPLE, line, out));
        (*out)->list = first;
    }
    return assignable(p, *out) ? LATH_OK : parse_fail(p, line, LATH_ERR_FORMAT, "nothing can be assigned to this");
}

/* ------------------------------------------------------------------------------------------------ behind an expression */

static lath_status bad_call(parser *p, uint32_t line)
{
    return parse_fail(p, line, LATH_ERR_FORMAT, "arguments in this order are no call");
}

static lath_status parse_argument(parser *p, call_args *a, node ***tail, keyword ***last, uint32_t line)
{
    if (parse_skip(p, T_MUL)) {
        if (a->star || a->star_star) return bad_call(p, line);
        return parse_expression(p, true, &a->star);
    }
    if (parse_skip(p, T_POW)) {
        if (a->star_star) return bad_call(p, line);
        return parse_expression(p, true, &a->star_star);
    }
    if (p->at->kind == T_NAME && p->at[1].kind == T_ASSIGN) {
        if (a->star_star) return bad_call(p, line);
        keyword *k = arena_zero(&p->t->mem, sizeof(*k));
        if (!k) return err_nomem(p->err, sizeof(*k));
        k->name = p->at->s;
        k->n = p->at->n;
        for (const keyword *o = a->keywords; o; o = o->next) {
            if (o->n == k->n && memcmp(o->name, k->name, k->n) == 0) return bad_call(p, line);
        }
        p->at += 2;
        **last = k;
        *last = &k->next;
        return parse_expression(p, true, &k->value);
    }
    if (a->star || a->star_star || a->keywords) return bad_call(p, line);
    TRY(parse_expression(p, true, *tail));
    *tail = &(**tail)->next;
    return LATH_OK;
}

static lath_status parse_call_args(parser *p, call_args *a)
{
    node **tail = &a->positional;
    keyword **last = &a->keywords;
    const uint32_t line = p->at->line;
    bool comma = false;
    TRY(parse_expect(p, T_LPAREN, "\"(\""));
    TRY(deeper(p));
    while (p->at->kind != T_RPAREN) {
        if (comma) {
            TRY(parse_expect(p, T_COMMA, "\",\""));
            if (p->at->kind == T_RPAREN) break;
        }
        TRY(parse_argument(p, a, &tail, &last, line));
        comma = true;
    }
    p->depth--;
    return parse_expect(p, T_RPAREN, "\")\"");
}

/* Inside of [ ]: an expression or from:to:step, into the node. */
static lath_status parse_subscribed(parser *p, node *n)
{
    node *first = NULL;
    n->kind = N_ITEM;
    if (p->at->kind != T_COLON) TRY(parse_expression(p, true, &first));
    n->b = first;
    if (!parse_skip(p, T_COLON)) return LATH_OK;
    n->kind = N_SLICE;
    if (p->at->kind != T_COLON && p->at->kind != T_RBRACKET) TRY(parse_expression(p, true, &n->c));
    if (!parse_skip(p, T_COLON)) return LATH_OK;
    return p->at->kind != T_RBRACKET ? parse_expression(p, true, &n->d) : LATH_OK;
}

static lath_status parse_subscript(parser *p, node **of)
{
    node *n;
    const token *t = p->at++;
    TRY(parse_new(p, N_ATTR, t->line, &n));
    n->a = *of;
    *of = n;
    if (t->kind == T_DOT) {
        const token *attr = p->at++;
        if (attr->kind == T_NAME) return parse_str(p, attr->s, attr->n, &n->str);
        if (attr->kind != T_INT)
            return parse_fail(p, attr->line, LATH_ERR_FORMAT, "want a name or number behind \".\"");
        n->kind = N_ITEM;
        TRY(parse_new(p, N_INT, attr->line, &n->b));
        n->b->integer = attr->integer;
        return LATH_OK;
    }
    if (p->at->kind == T_RBRACKET) return parse_unexpected(p);
    TRY(deeper(p));
    TRY(parse_subscribed(p, n));
    p->depth--;
    if (p->at->kind == T_COMMA) return parse_fail(p, t->line, LATH_ERR_UNSUPPORTED, "a subscript of several parts");
    return parse_expect(p, T_RBRACKET, "\"]\"");
}

static lath_status parse_call(parser *p, node **of)
{
    node *n;
    TRY(parse_new(p, N_CALL, p->at->line, &n));
    n->a = *of;
    *of = n;
    return parse_call_args(p, &n->args);
}

/* Chains of a.b[c](d)|e are flat here, but the tree is as deep as they are long. */
static lath_status chained(parser *p, int *n)
{
    return ++*n > 4 * CHAT_NESTING_MOST ? parse_fail(p, p->at->line, LATH_ERR_LIMIT, "an expression too long")
                                        : LATH_OK;
}

static lath_status parse_postfix(parser *p, node **of)
{
    for (int n = 0;;) {
        TRY(chained(p, &n));
        if (p->at->kind == T_DOT || p->at->kind == T_LBRACKET)
            TRY(parse_subscript(p, of));
        else if (p->at->kind == T_LPAREN)
            TRY(parse_call(p, of));
        else
            return LATH_OK;
    }
}

static lath_status parse_unknown(parser *p, const node *n)
{
    return parse_fail(p, n->line, LATH_ERR_UNSUPPORTED, "the %s \"%.*s\"", n->kind == N_FILTER ? "filter" : "test",
                      n->str->n > 60 ? 60 : (int)n->str->n, n->str->s);
}

static lath_status note_unknown(parser *p, const node *n)
{
    if (!p->soft && p->undecided == 0) return parse_unknown(p, n);
    if (!p->soft && !p->unknown) p->unknown = n;
    return LATH_OK;
}

lath_status parse_filters(parser *p, node *of, bool begun, node **out)
{
    *out = of;
    for (int n = 0; begun || parse_skip(p, T_PIPE); begun = false) {
        node *f;
        const token *name = p->at;
        TRY(chained(p, &n));
        TRY(parse_expect(p, T_NAME, "the name of a filter"));
        TRY(parse_new(p, N_FILTER, name->line, &f));
        TRY(parse_str(p, name->s, name->n, &f->str));
        f->fn = chat_find_filter(name->s, name->n);
        if (!f->fn) TRY(note_unknown(p, f));
        f->a = *out;
        *out = f;
        if (p->at->kind == T_LPAREN) TRY(parse_call_args(p, &f->args));
    }
    return LATH_OK;
}

static bool begins_argument(const token *t)
{
    switch (t->kind) {
    case T_NAME: return !parse_is_name(t, "else") && !parse_is_name(t, "or") && !parse_is_name(t, "and");
    case T_STRING:
    case T_INT:
    case T_FLOAT:
    case T_LBRACKET:
    case T_LBRACE: return true;
    default: return false;
    }
}

static lath_status parse_test(parser *p, node **of)
{
    node *n;
    const uint32_t line = p->at++->line;
    const bool negated = parse_skip_name(p, "not");
    const token *name = p->at;
    TRY(parse_expect(p, T_NAME, "the name of a test"));
    TRY(parse_new(p, N_TEST, line, &n));
    TRY(parse_str(p, name->s, name->n, &n->str));
    n->fn = chat_find_test(name->s, name->n);
    if (!n->fn) TRY(note_unknown(p, n));
    n->a = *of;
    *of = n;
    if (p->at->kind == T_LPAREN) {
        TRY(parse_call_args(p, &n->args));
    } else if (begins_argument(p->at)) {
        if (parse_is_name(p->at, "is")) return parse_fail(p, line, LATH_ERR_FORMAT, "tests cannot be chained");
        TRY(parse_operand(p, &n->args.positional));
        TRY(parse_postfix(p, &n->args.positional));
    }
    return negated ? new_binary(p, N_NOT, OP_EQ, line, NULL, of) : LATH_OK;
}

static lath_status parse_unary(parser *p, bool with_filter, node **out)
{
    const token *t = p->at;
    if (t->kind == T_SUB || t->kind == T_ADD) {
        p->at++;
        TRY(deeper(p));
        TRY(parse_new(p, N_UNARY, t->line, out));
        (*out)->op = t->kind == T_SUB ? OP_NEG : OP_POS;
        TRY(parse_unary(p, false, &(*out)->a));
        p->depth--;
    } else {
        TRY(parse_operand(p, out));
    }
    TRY(parse_postfix(p, out));
    for (int n = 0; with_filter;) {
        TRY(chained(p, &n));
        if (p->at->kind == T_PIPE)
            TRY(parse_filters(p, *out, false, out));
        else if (parse_is_name(p->at, "is"))
            TRY(parse_test(p, out));
        else if (p->at->kind == T_LPAREN)
            TRY(parse_call(p, out));
        else
            break;
    }
    return LATH_OK;
}

/* ----------------------------------------------------------------------------------------------------------- operators */

static lath_status parse_pow(parser *p, node **out)
{
    TRY(parse_unary(p, true, out));
    for (int n = 0; p->at->kind == T_POW;) {
        node *right;
        const uint32_t line = p->at++->line;
        TRY(chained(p, &n));
        TRY(parse_unary(p, true, &right));
        TRY(new_binary(p, N_BINARY, OP_POW, line, right, out));
    }
    return LATH_OK;
}

static lath_status parse_product(parser *p, node **out)
{
    TRY(parse_pow(p, out));
    for (int n = 0;;) {
        node *right;
        const token *t = p->at;
        const binary_op op = t->kind == T_MUL        ? OP_MUL
                             : t->kind == T_DIV      ? OP_DIV
                             : t->kind == T_FLOORDIV ? OP_FLOORDIV
                                                     : OP_MOD;
        if (op == OP_MOD && t->kind != T_MOD) return LATH_OK;
        p->at++;
        TRY(chained(p, &n));
        TRY(parse_pow(p, &right));
        TRY(new_binary(p, N_BINARY, op, t->line, right, out));
    }
}

static lath_status parse_concat(parser *p, node **out)
{
    node *first, **tail;
    TRY(parse_product(p, &first));
    *out = first;
    if (p->at->kind != T_TILDE) return LATH_OK;
    TRY(parse_new(p, N_CONCAT, first->line, out));
    (*out)->list = first;
    tail = &first->next;
    while (parse_skip(p, T_TILDE)) {
        TRY(parse_product(p, tail));
        tail = &(*tail)->next;
    }
    return LATH_OK;
}

static lath_status parse_sum(parser *p, node **out)
{
    TRY(parse_concat(p, out));
    for (int n = 0; p->at->kind == T_ADD || p->at->kind == T_SUB;) {
        node *right;
        const token *t = p->at++;
        TRY(chained(p, &n));
        TRY(parse_concat(p, &right));
        TRY(new_binary(p, N_BINARY, t->kind == T_ADD ? OP_ADD : OP_SUB, t->line, right, out));
    }
    return LATH_OK;
}

static bool comparison(parser *p, binary_op *op)
{
    static const struct {
        token_kind kind;
        binary_op op;
    } rows[] = {{T_EQ, OP_EQ}, {T_NE, OP_NE}, {T_LT, OP_LT}, {T_LE, OP_LE}, {T_GT, OP_GT}, {T_GE, OP_GE}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!parse_skip(p, rows[i].kind)) continue;
        *op = rows[i].op;
        return true;
    }
    if (parse_skip_name(p, "in")) {
        *op = OP_IN;
        return true;
    }
    if (!parse_is_name(p->at, "not") || !parse_is_name(p->at + 1, "in")) return false;
    p->at += 2;
    *op = OP_NOT_IN;
    return true;
}

static lath_status parse_compare(parser *p, node **out)
{
    binary_op op;
    node **tail = NULL;
    TRY(parse_sum(p, out));
    while (comparison(p, &op)) {
        if (!tail) {
            TRY(new_binary(p, N_COMPARE, OP_EQ, (*out)->line, NULL, out));
            tail = &(*out)->list;
        }
        TRY(parse_new(p, N_OPERAND, p->at->line, tail));
        (*tail)->op = op;
        TRY(parse_sum(p, &(*tail)->a));
        tail = &(*tail)->next;
    }
    return LATH_OK;
}

static lath_status parse_not(parser *p, node **out)
{
    const uint32_t line = p->at->line;
    if (!parse_skip_name(p, "not")) return parse_compare(p, out);
    TRY(deeper(p));
    TRY(parse_new(p, N_NOT, line, out));
    TRY(parse_not(p, &(*out)->a));
    p->depth--;
    return LATH_OK;
}

static lath_status parse_and(parser *p, node **out)
{
    TRY(parse_not(p, out));
    for (int n = 0; parse_skip_name(p, "and");) {
        node *right;
        TRY(chained(p, &n));
        TRY(parse_not(p, &right));
        TRY(new_binary(p, N_AND, OP_EQ, right->line, right, out));
    }
    return LATH_OK;
}

static lath_status parse_or(parser *p, node **out)
{
    TRY(parse_and(p, out));
    for (int n = 0; parse_skip_name(p, "or");) {
        node *right;
        TRY(chained(p, &n));
        TRY(parse_and(p, &right));
        TRY(new_binary(p, N_OR, OP_EQ, right->line, right, out));
    }
    return LATH_OK;
}

/* What an inline if holds may name filters and tests that are not known, and its condition comes behind its value: such a name is an error when
 * the outermost expression has turned out to be none. */
static lath_status parse_undecided_or(parser *p, const node *before, node **out)
{
    p->undecided++;
    TRY(parse_or(p, out));
    p->undecided--;
    if (parse_is_name(p->at, "if")) p->unknown = before;
    if (p->undecided > 0 || p->soft || !p->unknown) return LATH_OK;
    return parse_unknown(p, p->unknown);
}

static lath_status parse_conditions(parser *p, node **out)
{
    const bool was = p->soft;
    p->soft = true;
    for (int n = 0; parse_is_name(p->at, "if");) {
        node *condition;
        const uint32_t line = p->at++->line;
        TRY(chained(p, &n));
        TRY(parse_or(p, &condition));
        TRY(new_binary(p, N_IF_ELSE, OP_EQ, line, *out, &condition));
        *out = condition;
        if (parse_skip_name(p, "else")) TRY(parse_expression(p, true, &(*out)->c));
    }
    p->soft = was;
    return LATH_OK;
}

lath_status parse_expression(parser *p, bool with_condition, node **out)
{
    TRY(deeper(p));
    if (with_condition) {
        TRY(parse_undecided_or(p, p->unknown, out));
        TRY(parse_conditions(p, out));
    } else {
        TRY(parse_or(p, out));
    }
    p->depth--;
    return LATH_OK;
}
