/* SPDX-License-Identifier: Apache-2.0
 * grammar_expr.c: constructors of expressions; sets of code points, and how they are written as bytes. */
#include "engine/grammar_expr.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* What stands for an expression after a failure: nobody compiles it. */
static const grammar_expr nothing = {.kind = GRAMMAR_LITERAL, .u.literal = {"", 0}};

void grammar_builder_init(grammar_builder *b, arena *mem) { *b = (grammar_builder){.mem = mem}; }

void grammar_fail(grammar_builder *b, lath_status st, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    if (b->status != LATH_OK) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    b->status = err_set(&b->error, st, "%s", text);
}

static void *take(grammar_builder *b, size_t count, size_t size)
{
    if (b->status != LATH_OK) return NULL;
    void *p = arena_array(b->mem, count, size);
    if (!p) b->status = err_nomem(&b->error, count * size);
    return p;
}

uint32_t grammar_add_rule(grammar_builder *b, const char *name)
{
    if (b->n_rules == GRAMMAR_RULES_MOST) grammar_fail(b, LATH_ERR_LIMIT, "more than %d rules", GRAMMAR_RULES_MOST);
    if (b->n_rules == b->cap_rules) {
        const size_t cap = b->cap_rules ? 2 * b->cap_rules : 16;
        grammar_rule *v = take(b, cap, sizeof(*v));
        if (!v) return 0;
        if (b->n_rules) memcpy(v, b->rules, b->n_rules * sizeof(*v));
        b->rules = v;
        b->cap_rules = cap;
    }
    if (b->status != LATH_OK) return 0;
    b->rules[b->n_rules] = (grammar_rule){.name = name, .expr = (grammar_expr *)&nothing};
    return (uint32_t)b->n_rules++;
}

static grammar_expr *add(grammar_builder *b, grammar_expr e)
{
    if (b->n_exprs == GRAMMAR_EXPRS_MOST) grammar_fail(b, LATH_ERR_LIMIT, "more than %d parts", GRAMMAR_EXPRS_MOST);
    grammar_expr *p = take(b, 1, sizeof(*p));
    if (!p) return (grammar_expr *)&nothing;
    b->n_exprs++;
    *p = e;
    return p;
}

grammar_expr *grammar_literal(grammar_builder *b, const char *s, size_t n)
{
    if (n > GRAMMAR_BYTES_MOST - b->n_bytes) {
        grammar_fail(b, LATH_ERR_LIMIT, "more than %d bytes of literal text", GRAMMAR_BYTES_MOST);
        return (grammar_expr *)&nothing;
    }
    b->n_bytes += n;
    return add(b, (grammar_expr){.kind = GRAMMAR_LITERAL, .u.literal = {s, n}});
}

grammar_expr *grammar_text(grammar_builder *b, const char *s) { return grammar_literal(b, s, strlen(s)); }

grammar_expr *grammar_ref(grammar_builder *b, uint32_t rule)
{
    return add(b, (grammar_expr){.kind = GRAMMAR_RULE, .u.rule = rule});
}

grammar_expr *grammar_repeat(grammar_builder *b, grammar_expr *e, uint32_t min, uint32_t max)
{
    return add(b, (grammar_expr){.kind = GRAMMAR_REPEAT, .u.repeat = {e, min, max}});
}

grammar_expr *grammar_list(grammar_builder *b, grammar_expr_kind kind, grammar_expr *const *v, size_t n)
{
    if (n == 1) return v[0];
    grammar_expr **copy = take(b, n, sizeof(grammar_expr *));
    if (!copy) return (grammar_expr *)&nothing;
    if (n) memcpy(copy, v, n * sizeof(*copy));
    return add(b, (grammar_expr){.kind = kind, .u.list = {copy, n}});
}

/* --------------------------------------------------------------------------------------------------------- code points */

static const grammar_range scalar[2] = {{0, 0xD7FF}, {0xE000, 0x10FFFF}};

static void push(grammar_builder *b, grammar_chars *c, uint32_t lo, uint32_t hi)
{
    if (c->n == GRAMMAR_RANGES_MOST)
        grammar_fail(b, LATH_ERR_LIMIT, "a class of more than %d ranges", GRAMMAR_RANGES_MOST);
    if (b->status != LATH_OK) return;
    if (c->n == c->cap) {
        const size_t cap = c->cap ? 2 * c->cap : 8;
        grammar_range *v = take(b, cap, sizeof(*v));
        if (!v) return;
        if (c->n) memcpy(v, c->v, c->n * sizeof(*v));
        c->v = v;
        c->cap = cap;
    }
    c->v[c->n++] = (grammar_range){lo, hi};
}

static void add_range(grammar_builder *b, grammar_chars *c, uint32_t lo, uint32_t hi)
{
    if (lo > hi) return;
    size_t at = 0, n = 0;
    while (at < c->n && c->v[at].hi + 1 < lo) at++;
    for (; at + n < c->n && c->v[at + n].lo <= hi + 1; n++) { /* these become one with it */
        if (c->v[at + n].lo < lo) lo = c->v[at + n].lo;
        if (c->v[at + n].hi > hi) hi = c->v[at + n].hi;
    }
    if (n == 0) {
        push(b, c, 0, 0);
        if (b->status != LATH_OK) return;
        memmove(c->v + at + 1, c->v + at, (c->n - at - 1) * sizeof(*c->v));
    } else {
        memmove(c->v + at + 1, c->v + at + n, (c->n - at - n) * sizeof(*c->v));
        c->n -= n - 1;
    }
    c->v[at] = (grammar_range){lo, hi};
}

void grammar_chars_add(grammar_builder *b, grammar_chars *c, uint32_t lo, uint32_t hi)
{
    for (int i = 0; i < 2; i++)
        add_range(b, c, lo > scalar[i].lo ? lo : scalar[i].lo, hi < scalar[i].hi ? hi : scalar[i].hi);
}

void grammar_chars_add_all(grammar_builder *b, grammar_chars *c, const grammar_chars *more)
{
    for (size_t i = 0; i < more->n; i++) add_range(b, c, more->v[i].lo, more->v[i].hi);
}

void grammar_chars_invert(grammar_builder *b, grammar_chars *c)
{
    grammar_chars out = {0};
    uint32_t from = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (c->v[i].lo > from) grammar_chars_add(b, &out, from, c->v[i].lo - 1);
        from = c->v[i].hi + 1;
    }
    if (from <= 0x10FFFF) grammar_chars_add(b, &out, from, 0x10FFFF);
    *c = out;
}

void grammar_chars_intersect(grammar_builder *b, grammar_chars *c, const grammar_chars *with)
{
    grammar_chars out = {0};
    for (size_t i = 0, k = 0; i < c->n && k < with->n;) {
        const grammar_range x = c->v[i], y = with->v[k];
        const uint32_t lo = x.lo > y.lo ? x.lo : y.lo, hi = x.hi < y.hi ? x.hi : y.hi;
        if (lo <= hi) push(b, &out, lo, hi);
        if (x.hi < y.hi) {
            i++;
        } else {
            k++;
        }
    }
    *c = out;
}

bool grammar_chars_has(const grammar_chars *c, uint32_t cp)
{
    for (size_t i = 0; i < c->n; i++) {
        if (cp >= c->v[i].lo && cp <= c->v[i].hi) return true;
    }
    return false;
}

static grammar_expr *byte_range(grammar_builder *b, uint32_t lo, uint32_t hi)
{
    grammar_expr e = {.kind = GRAMMAR_BYTES};
    for (uint32_t i = lo; i <= hi; i++) e.u.set[i / 64] |= (uint64_t)1 << (i % 64);
    return add(b, e);
}

typedef struct alternatives {
    grammar_expr **v;
    size_t n, cap;
} alternatives;

static void add_alternative(grammar_builder *b, alternatives *a, grammar_expr *e)
{
    if (a->n == a->cap) {
        const size_t cap = a->cap ? 2 * a->cap : 8;
        grammar_expr **v = take(b, cap, sizeof(grammar_expr *));
        if (!v) return;
        if (a->n) memcpy(v, a->v, a->n * sizeof(*v));
        a->v = v;
        a->cap = cap;
    }
    a->v[a->n++] = e;
}

/* lo and hi have UTF-8 of one length and differ, if at all, in such a way that every byte runs from its lo to its hi. */
static void add_block(grammar_builder *b, alternatives *a, uint32_t lo, uint32_t hi)
{
    char x[4], y[4];
    grammar_expr *bytes[4];
    const size_t n = utf8_encode(lo, x);
    utf8_encode(hi, y);
    for (size_t i = 0; i < n; i++) bytes[i] = byte_range(b, (uint8_t)x[i], (uint8_t)y[i]);
    add_alternative(b, a, grammar_list(b, GRAMMAR_SEQ, bytes, n));
}

/* Cuts a range where the length changes and where the lower bytes do not run through all their values. */
static void add_blocks(grammar_builder *b, alternatives *a, uint32_t lo, uint32_t hi)
{
    static const uint32_t last_of_length[] = {0x7F, 0x7FF, 0xFFFF};
    for (int i = 0; i < 3; i++) {
        if (lo > last_of_length[i] || hi <= last_of_length[i]) continue;
        add_blocks(b, a, lo, last_of_length[i]);
        add_blocks(b, a, last_of_length[i] + 1, hi);
        return;
    }
    for (int shift = 6; hi > 0x7F && shift <= 18; shift += 6) {
        const uint32_t low = ((uint32_t)1 << shift) - 1;
        if (lo >> shift == hi >> shift) break; /* only the bytes below differ */
        if ((lo & low) != 0) {
            add_blocks(b, a, lo, lo | low);
            add_blocks(b, a, (lo | low) + 1, hi);
            return;
        }
        if ((hi & low) != low) {
            add_blocks(b, a, lo, (hi & ~low) - 1);
            add_blocks(b, a, hi & ~low, hi);
            return;
        }
    }
    add_block(b, a, lo, hi);
}

grammar_expr *grammar_char(grammar_builder *b, const grammar_chars *c)
{
    alternatives a = {0};
    grammar_expr ascii = {.kind = GRAMMAR_BYTES};
    bool any_ascii = false;
    for (uint32_t cp = 0; cp < 0x80; cp++) {
        if (!grammar_chars_has(c, cp)) continue;
        ascii.u.set[cp / 64] |= (uint64_t)1 << (cp % 64);
        any_ascii = true;
    }
    if (any_ascii) add_alternative(b, &a, add(b, ascii));
    for (size_t i = 0; i < c->n && b->status == LATH_OK; i++) {
        const uint32_t lo = c->v[i].lo > 0x80 ? c->v[i].lo : 0x80;
        if (lo <= c->v[i].hi) add_blocks(b, &a, lo, c->v[i].hi);
    }
    return grammar_list(b, GRAMMAR_ALT, a.v, a.n);
}
