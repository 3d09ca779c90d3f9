/* SPDX-License-Identifier: Apache-2.0
 * tok_regex.c: the owner of PCRE2: compiling, the search for matches, and its limits. Patterns that are plain strings
 * are searched without it.
 *
 * PCRE2 takes memory through the tokenizer's allocator; each block carries its size in front, which PCRE2 does not
 * pass back. */
#include "tok/tok_regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/unicode.h"

/* Steps of one search: what the reference's engine allows, and some 50 ms. */
enum { STEPS_MOST = 10000000, PATTERN_MOST = 1 << 14, REWRITTEN_MOST = 1 << 22 };
enum { STACK_FIRST = 64 << 10, STACK_MOST = 8 << 20, HEAP_MOST = 64 << 10 /* KiB, without JIT */ };

struct tok_regex {
    tok_regex *next; /* of the tokenizer */
    const lath_allocator *alloc;
    tok_string string; /* s == NULL: code is the pattern */
    pcre2_general_context *general;
    pcre2_code *code;
};

enum { HEAD = 16 };

static void *take_block(size_t n, void *user)
{
    const lath_allocator *alloc = user;
    if (n > SIZE_MAX - HEAD) return NULL;
    char *p = alloc_bytes(alloc, n + HEAD, HEAD);
    if (!p) return NULL;
    size_t total = n + HEAD;
    memcpy(p, &total, sizeof(total));
    return p + HEAD;
}

static void release_block(void *p, void *user)
{
    if (!p) return;
    size_t total;
    char *block = (char *)p - HEAD;
    memcpy(&total, block, sizeof(total));
    alloc_release(user, block, total);
}

/* ---------------------------------------------------------------------------------------------------------- loading */

static lath_status add(tok_load *l, tok_regex **out)
{
    tok_regex *r = tok_load_array(l, 1, sizeof(*r));
    if (!r) return err_nomem(l->err, sizeof(*r));
    r->alloc = l->t->alloc;
    r->next = l->t->regexes;
    l->t->regexes = r;
    *out = r;
    return LATH_OK;
}

void tok_regex_release(tok *t)
{
    for (tok_regex *r = t->regexes; r; r = r->next) {
        if (r->code) pcre2_code_free(r->code);
        if (r->general) pcre2_general_context_free(r->general);
    }
    t->regexes = NULL;
}

lath_status tok_regex_load_string(tok_load *l, tok_string string, const tok_regex **out)
{
    tok_regex *r = NULL;
    TRY(add(l, &r));
    r->string = string;
    *out = r;
    return LATH_OK;
}

tok_string tok_regex_string(const tok_regex *r) { return r->string; }

static lath_status compile(tok_regex *r, const buf *pattern, lath_error *err)
{
    int code = 0;
    size_t at = 0;
    /* PCRE2 never writes to what it hands back to the allocator. */
    void *user = (void *)(uintptr_t)r->alloc;
    r->general = pcre2_general_context_create(take_block, release_block, user);
    pcre2_compile_context *c = r->general ? pcre2_compile_context_create(r->general) : NULL;
    if (!c) return err_nomem(err, sizeof(void *));
    pcre2_set_newline(c, PCRE2_NEWLINE_LF);
    pcre2_set_bsr(c, PCRE2_BSR_UNICODE);
    uint32_t options = PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
    r->code = pcre2_compile((PCRE2_SPTR)pattern->data, pattern->len, options, &code, &at, c);
    pcre2_compile_context_free(c);
    if (r->code) {
        pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE); /* where that fails matching is slower, not different */
        return LATH_OK;
    }
    if (code == PCRE2_ERROR_HEAP_FAILED) return err_nomem(err, pattern->len);
    char message[160];
    if (pcre2_get_error_message(code, (PCRE2_UCHAR *)message, sizeof(message)) < 0) message[0] = 0;
    return err_set(err, LATH_ERR_UNSUPPORTED, "%s", message);
}

lath_status tok_regex_load(tok_load *l, const json_value *at, const char *what, tok_string pattern,
                           const tok_regex **out)
{
    if (pattern.n > PATTERN_MOST)
        return TOK_FAIL(l, at, LATH_ERR_LIMIT, "%s: a pattern of %zu bytes, at most %d", what, pattern.n,
                        (int)PATTERN_MOST);
    tok_regex *r = NULL;
    buf text;
    TRY(add(l, &r));
    buf_init(&text, r->alloc, REWRITTEN_MOST);
    lath_status st = tok_regex_rewrite(r->alloc, pattern, &text, l->err);
    if (st == LATH_OK) st = compile(r, &text, l->err);
    buf_deinit(&text);
    *out = r;
    if (st == LATH_OK || st == LATH_ERR_NOMEM) return st;
    return tok_load_wrap(l, at, err_wrap(l->err, st, "%s: the regular expression \"%.80s\"", what, pattern.s));
}

lath_status tok_regex_load_pattern(tok_load *l, const json_value *v, const char *what, const tok_regex **out,
                                   tok_string *text, bool *is_regex)
{
    const json_value *p = json_get(v, "pattern");
    tok_string s;
    if (!p || p->kind != JSON_OBJECT || p->u.items.count != 1)
        return TOK_FAIL(l, p ? p : v, LATH_ERR_FORMAT, "%s: want \"pattern\": one String or Regex", what);
    *is_regex = json_get(p, "Regex") != NULL;
    TRY(tok_load_string(l, p, what, *is_regex ? "Regex" : "String", &s));
    if (text) *text = s;
    return *is_regex ? tok_regex_load(l, p, what, s, out) : tok_regex_load_string(l, s, out);
}

/* ----------------------------------------------------------------------------------------------------------- search */

lath_status tok_regex_begin(tok_regex_find *f, const tok_regex *r, const char *s, size_t n, lath_error *err)
{
    *f = (tok_regex_find){.r = r, .s = s, .n = n, .last_end = SIZE_MAX};
    if (r->string.s) return LATH_OK;
    pcre2_match_context *c = pcre2_match_context_create(r->general);
    f->context = c;
    f->data = pcre2_match_data_create(1, r->general);
    if (!f->context || !f->data) return err_nomem(err, sizeof(void *));
    pcre2_set_match_limit(c, STEPS_MOST);
    pcre2_set_heap_limit(c, HEAP_MOST);
    return LATH_OK;
}

void tok_regex_end(tok_regex_find *f)
{
    if (f->data) pcre2_match_data_free(f->data);
    if (f->context) pcre2_match_context_free(f->context);
    if (f->stack) pcre2_jit_stack_free(f->stack);
    f->data = f->context = f->stack = NULL;
}

static bool find_string(tok_regex_find *f)
{
    size_t n = f->r->string.n;
    if (n > f->n - f->at) return false;
    const char *p = n ? memmem(f->s + f->at, f->n - f->at, f->r->string.s, n) : f->s + f->at;
    if (!p) return false;
    f->b = (size_t)(p - f->s);
    f->e = f->b + n;
    return true;
}

static lath_status find_code(tok_regex_find *f, bool *found, lath_error *err)
{
    int rc = 0;
    for (int attempt = 0; attempt < 2; attempt++) {
        rc = pcre2_match(f->r->code, (PCRE2_SPTR)f->s, f->n, f->at, PCRE2_NO_UTF_CHECK, f->data, f->context);
        if (rc != PCRE2_ERROR_JIT_STACKLIMIT || f->stack) break;
        /* Most patterns do with the 32 KiB that PCRE2 takes from the machine's stack. */
        f->stack = pcre2_jit_stack_create(STACK_FIRST, STACK_MOST, f->r->general);
        if (!f->stack) return err_nomem(err, STACK_MOST);
        pcre2_jit_stack_assign(f->context, NULL, f->stack);
    }
    *found = rc >= 0;
    if (rc >= 0) {
        const size_t *v = pcre2_get_ovector_pointer(f->data);
        f->b = v[0];
        f->e = v[1];
        /* \K in a look-around can put the beginning behind the end. */
        if (f->b <= f->e && f->b >= f->at) return LATH_OK;
        return err_set(err, LATH_ERR_UNSUPPORTED, "a pattern whose match ends before it begins");
    }
    if (rc == PCRE2_ERROR_NOMATCH) return LATH_OK;
    if (rc == PCRE2_ERROR_NOMEMORY) return err_nomem(err, f->n);
    return err_set(err, LATH_ERR_LIMIT, "byte %zu: the pattern of the tokenizer takes too many steps", f->at);
}

lath_status tok_regex_next(tok_regex_find *f, bool *found, lath_error *err)
{
    *found = false;
    while (f->at <= f->n) {
        if (f->r->string.s)
            *found = find_string(f);
        else
            TRY(find_code(f, found, err));
        if (!*found) {
            f->at = f->n + 1;
            return LATH_OK;
        }
        if (f->b == f->e && f->e == f->last_end) {
            size_t len = 1;
            if (f->at < f->n) uni_next(f->s + f->at, &len);
            f->at += len;
            *found = false;
            continue;
        }
        f->at = f->last_end = f->e;
        return LATH_OK;
    }
    return LATH_OK;
}
