/* SPDX-License-Identifier: Apache-2.0
 * json.c: the owner of yajl. yajl checks the grammar and hands out events; this file builds the tree and adds what
 * yajl does not do: depth and size limits, duplicate keys, numbers without the locale; strict UTF-8 (yajl takes
 * overlong forms and surrogates), strict white space (it takes \v and \f), nothing behind the value (it takes a
 * string that never ends), no lone surrogate escapes (it turns them into '?' silently, so the raw text of a string
 * that held a backslash is looked at again).
 * A tap is found by the path of member names from the root; while inside one, each member is built in a scratch
 * arena that is reset after the call. Nested taps are not needed and not looked for.
 * Simple members of tapped containers do not go through yajl (json_scan.c): the text is handed over in parts, one of
 * which ends behind the bracket that opens the container; then its members are read, and yajl goes on at the bracket
 * that closes it, or at the first member that is not simple. To yajl the members before it are not there. */
#include "base/json.h"

#include <locale.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_parse.h>

#include "base/json_number.h"
#include "base/json_scan.h"
#include "base/map.h"
#include "base/utf8.h"

enum { JSON_DEPTH_DEFAULT = 64, JSON_DEPTH_MOST = 512, JSON_LINEAR_KEYS = 8, JSON_STOPS = 8 };

/* One open container. */
typedef struct level {
    json_value *container;
    json_value **tail; /* where the next member is linked in */
    map keys;          /* of an object with more than JSON_LINEAR_KEYS members */
    bool has_map;
} level;

typedef struct block block;

typedef struct builder {
    const lath_allocator *alloc;
    arena *tree, scratch;
    const char *name, *text;
    size_t n, line_at; /* bytes up to which lines are counted */
    uint32_t line;
    size_t part_at;  /* where the part begins that yajl has been given last */
    bool at_end;     /* yajl has had all of the text: its offsets are no longer into it */
    size_t root_end; /* bytes up to the end of the root value */
    int depth, max_depth;
    level *levels; /* [max_depth] */
    const char *key;
    size_t key_len;
    json_value *root;
    const json_options *opts;
    const json_tap *tap;      /* the one we are inside of */
    int tap_depth;            /* depth of its container */
    size_t tap_at;            /* where its container's members begin */
    size_t stops[JSON_STOPS]; /* of each tap: where its container may begin next; up to part_at: to be looked for */
    locale_t c_locale;
    yajl_handle parser;
    block *blocks; /* yajl's memory */
    jmp_buf out_of_memory;
    lath_status st;
    lath_error *err;
} builder;

/* Bytes of the text that yajl has taken. */
static size_t offset_now(const builder *b)
{
    size_t at = b->at_end ? b->n : b->part_at + yajl_get_bytes_consumed(b->parser);
    return at < b->n ? at : b->n;
}

/* The line of byte `at`; asked for rising offsets. */
static uint32_t line_of(builder *b, size_t at)
{
    while (b->line_at < at) {
        const char *p = memchr(b->text + b->line_at, '\n', at - b->line_at);
        if (!p) {
            b->line_at = at;
            break;
        }
        b->line_at = (size_t)(p - b->text) + 1;
        b->line++;
    }
    return b->line;
}

static uint32_t line_now(builder *b) { return line_of(b, offset_now(b)); }

static int fail(builder *b, lath_status st)
{
    b->st = st;
    return 0;
}

#define FAIL(b, status, ...) fail(b, err_set((b)->err, status, __VA_ARGS__))

static arena *memory(builder *b) { return b->tap ? &b->scratch : b->tree; }

static bool same_key(const json_value *v, const char *key, size_t len)
{
    return v->key_len == len && memcmp(v->key, key, len) == 0;
}

/* The first few keys of an object are compared one by one; from then on they are in a map. */
static int add_key(builder *b, level *l, const json_value *v)
{
    json_value *c = l->container;
    bool existed = false;
    if (!l->has_map && c->u.items.count >= JSON_LINEAR_KEYS) {
        map_init(&l->keys, b->alloc);
        l->has_map = true;
        for (const json_value *m = c->u.items.first; m; m = m->next) {
            if ((b->st = map_add(&l->keys, m->key, m->key_len, 0, NULL, b->err)) != LATH_OK) return 0;
        }
    }
    if (l->has_map) {
        if ((b->st = map_add(&l->keys, v->key, v->key_len, 0, &existed, b->err)) != LATH_OK) return 0;
    } else {
        for (const json_value *m = c->u.items.first; m && !existed; m = m->next)
            existed = same_key(m, v->key, v->key_len);
    }
    if (existed) return FAIL(b, LATH_ERR_FORMAT, "%s: line %u: duplicate key \"%.80s\"", b->name, v->line, v->key);
    return 1;
}

static bool in_tap_container(const builder *b) { return b->tap && b->depth == b->tap_depth; }

/* Hands a finished member of a tapped container out and forgets it. */
static int deliver(builder *b, const json_value *v)
{
    b->st = b->tap->fn(b->tap->ctx, v, b->err);
    arena_reset(&b->scratch);
    return b->st == LATH_OK;
}

/* A new value, linked into the open container. NULL after an error. */
static json_value *add_value(builder *b, json_kind kind)
{
    json_value *v = arena_zero(memory(b), sizeof(*v));
    if (!v) {
        b->st = err_nomem(b->err, sizeof(*v));
        return NULL;
    }
    v->kind = kind;
    /* What lies inside a member of a tapped container is on the member's line, as far as messages go. */
    v->line = b->tap && b->depth > b->tap_depth ? b->line : line_now(b);
    if (b->depth == 0) {
        b->root = v;
        b->root_end = offset_now(b);
        return v;
    }
    level *l = &b->levels[b->depth - 1];
    bool tapped = in_tap_container(b);
    if (l->container->kind == JSON_OBJECT) {
        v->key = b->key;
        v->key_len = b->key_len;
        if (!tapped && !add_key(b, l, v)) return NULL;
    }
    if (!tapped) {
        *l->tail = v;
        l->tail = &v->next;
        l->container->u.items.count++;
    }
    return v;
}

static int done_scalar(builder *b, const json_value *v) { return in_tap_container(b) ? deliver(b, v) : 1; }

static int on_null(void *ctx)
{
    builder *b = ctx;
    json_value *v = add_value(b, JSON_NULL);
    return v ? done_scalar(b, v) : 0;
}

static int on_boolean(void *ctx, int value)
{
    builder *b = ctx;
    json_value *v = add_value(b, JSON_BOOL);
    if (!v) return 0;
    v->u.boolean = value != 0;
    return done_scalar(b, v);
}

static int on_number(void *ctx, const char *s, size_t n)
{
    builder *b = ctx;
    json_value *v = add_value(b, JSON_INT);
    if (!v) return 0;
    if (!json_number_read(s, n, b->opts && b->opts->serde_reals, b->c_locale, v))
        return FAIL(b, LATH_ERR_FORMAT, "%s: line %u: a number of %zu characters", b->name, v->line, n);
    return done_scalar(b, v);
}

/* The raw text of the string that yajl has just decoded ends at its closing quote, at bytes_consumed - 1. Looks for
 * \uD800..DFFF that are not a pair. */
static bool has_lone_surrogate(const builder *b)
{
    size_t end = offset_now(b);
    if (end < 2) return false;
    size_t close = end - 1;
    while (close > 0 && b->text[close] != '"') close--;
    size_t open = close;
    for (;;) { /* the opening quote: one with an even number of backslashes before it */
        if (open == 0) return false;
        open--;
        if (b->text[open] != '"') continue;
        size_t k = open;
        while (k > 0 && b->text[k - 1] == '\\') k--;
        if ((open - k) % 2 == 0) break;
    }
    const char *p = b->text + open + 1, *stop = b->text + close;
    bool high = false; /* a high surrogate waits for its low one */
    while (p < stop) {
        unsigned unit = 0;
        size_t len = 1;
        if (*p == '\\') {
            len = 2;
            if (p + 6 <= stop && p[1] == 'u') {
                char hex[5] = {p[2], p[3], p[4], p[5], 0};
                unit = (unsigned)strtoul(hex, NULL, 16);
                len = 6;
            }
        }
        bool low = unit >= 0xDC00 && unit <= 0xDFFF;
        if (high != low) return true;
        high = unit >= 0xD800 && unit <= 0xDBFF;
        p += len;
    }
    return high;
}

/* yajl passes a pointer into the text where it had nothing to decode, into its own buffer where it had. */
static bool was_decoded(const builder *b, const unsigned char *s)
{
    return !((const char *)s >= b->text && (const char *)s < b->text + b->n);
}

static char *take_string(builder *b, const unsigned char *s, size_t n)
{
    if (was_decoded(b, s) && n && has_lone_surrogate(b)) {
        FAIL(b, LATH_ERR_FORMAT, "%s: line %u: half of a surrogate pair in a string", b->name, line_now(b));
        return NULL;
    }
    char *copy = arena_strdup(memory(b), (const char *)s, n);
    if (!copy) b->st = err_nomem(b->err, n + 1);
    return copy;
}

static int on_string(void *ctx, const unsigned char *s, size_t n)
{
    builder *b = ctx;
    json_value *v = add_value(b, JSON_STRING);
    if (!v) return 0;
    v->u.string.data = take_string(b, s, n);
    v->u.string.len = n;
    return v->u.string.data ? done_scalar(b, v) : 0;
}

static int on_key(void *ctx, const unsigned char *s, size_t n)
{
    builder *b = ctx;
    b->key = take_string(b, s, n);
    b->key_len = n;
    return b->key != NULL;
}

/* The path of the container being opened equals a tap's? */
static const json_tap *find_tap(const builder *b)
{
    for (size_t t = 0; b->opts && t < b->opts->n_taps; t++) {
        const char *p = b->opts->taps[t].path; /* a name in it ends at a '.' or at the end */
        bool ok = true;
        for (int d = 0; d < b->depth && ok; d++) { /* names: members of levels 1..depth-1, then the pending key */
            const json_value *c = b->levels[d].container;
            const json_value *named = d + 1 < b->depth ? b->levels[d + 1].container : NULL;
            const char *key = named ? named->key : b->key;
            size_t len = named ? named->key_len : b->key_len;
            ok = c->kind == JSON_OBJECT && strcspn(p, ".") == len && memcmp(p, key, len) == 0;
            if (ok) p += len + (p[len] == '.');
        }
        if (ok && *p == 0 && b->depth > 0) return &b->opts->taps[t];
    }
    return NULL;
}

static int on_open(builder *b, json_kind kind)
{
    if (b->depth >= b->max_depth)
        return FAIL(b, LATH_ERR_FORMAT, "%s: line %u: nested deeper than %d", b->name, line_now(b), b->max_depth);
    const json_tap *tap = b->tap ? NULL : find_tap(b);
    json_value *v = add_value(b, kind);
    if (!v) return 0;
    b->levels[b->depth] = (level){.container = v, .tail = &v->u.items.first};
    b->depth++;
    if (tap) {
        b->tap = tap;
        b->tap_depth = b->depth;
        b->tap_at = offset_now(b);
    }
    return 1;
}

static int on_close(builder *b)
{
    level *l = &b->levels[b->depth - 1];
    if (l->has_map) map_deinit(&l->keys);
    l->has_map = false;
    json_value *v = l->container;
    if (b->tap && b->depth == b->tap_depth) b->tap = NULL;
    b->depth--;
    if (b->depth == 0) b->root_end = offset_now(b);
    return in_tap_container(b) ? deliver(b, v) : 1;
}

static int on_map_open(void *ctx) { return on_open(ctx, JSON_OBJECT); }
static int on_array_open(void *ctx) { return on_open(ctx, JSON_ARRAY); }
static int on_map_close(void *ctx) { return on_close(ctx); }
static int on_array_close(void *ctx) { return on_close(ctx); }

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_map_open,
    .yajl_map_key = on_key,
    .yajl_end_map = on_map_close,
    .yajl_start_array = on_array_open,
    .yajl_end_array = on_array_close,
};

/* yajl does not check what its allocator returns, so failing is a long jump out of it (to run), and the blocks are
 * kept in a list that is released whatever happened. Each block carries its size, which yajl does not pass back. */
struct block {
    block *next, *prev;
    size_t size;
    size_t pad; /* keeps 16-byte alignment */
};

static void link_block(builder *b, block *p)
{
    p->prev = NULL;
    p->next = b->blocks;
    if (b->blocks) b->blocks->prev = p;
    b->blocks = p;
}

static void unlink_block(builder *b, block *p)
{
    if (p->prev)
        p->prev->next = p->next;
    else
        b->blocks = p->next;
    if (p->next) p->next->prev = p->prev;
}

static void *block_alloc(void *ctx, size_t n)
{
    builder *b = ctx;
    block *p = alloc_bytes(b->alloc, n + sizeof(block), 16);
    if (!p) {
        b->st = err_nomem(b->err, n);
        longjmp(b->out_of_memory, 1);
    }
    p->size = n + sizeof(block);
    link_block(b, p);
    return p + 1;
}

static void block_release(void *ctx, void *ptr)
{
    builder *b = ctx;
    if (!ptr) return;
    block *p = (block *)ptr - 1;
    unlink_block(b, p);
    alloc_release(b->alloc, p, p->size);
}

static void *block_resize(void *ctx, void *ptr, size_t n)
{
    void *fresh = block_alloc(ctx, n);
    if (!ptr) return fresh;
    size_t old = ((block *)ptr - 1)->size - sizeof(block);
    memcpy(fresh, ptr, old < n ? old : n);
    block_release(ctx, ptr);
    return fresh;
}

/* One short line out of yajl's several. */
static lath_status grammar_error(builder *b)
{
    size_t at = offset_now(b);
    uint32_t line = line_of(b, at);
    unsigned char *msg = yajl_get_error(b->parser, 0, (const unsigned char *)b->text, b->n);
    if (!msg) return err_nomem(b->err, 256);
    size_t n = strcspn((char *)msg, "\n");
    lath_status st = err_set(b->err, LATH_ERR_FORMAT, "%s: line %u: byte %zu: not JSON: %.*s", b->name, line, at,
                             (int)n, (char *)msg);
    yajl_free_error(b->parser, msg);
    return st;
}

static lath_status not_json(builder *b, size_t at, const char *why)
{
    return err_set(b->err, LATH_ERR_FORMAT, "%s: line %u: byte %zu: not JSON: %s", b->name, line_of(b, at), at, why);
}

/* yajl would let it pass anywhere. */
static lath_status check_utf8(builder *b)
{
    size_t at = utf8_first_invalid(b->text, b->n);
    if (at == b->n) return LATH_OK;
    return err_set(b->err, LATH_ERR_FORMAT, "%s: line %u: byte %zu: not valid UTF-8", b->name, line_of(b, at), at);
}

static lath_status check_rest(builder *b)
{
    size_t at = b->root_end;
    while (at < b->n && memchr(" \t\r\n", b->text[at], 4)) at++;
    if (at == b->n) return LATH_OK;
    return err_set(b->err, LATH_ERR_FORMAT, "%s: line %u: byte %zu: text behind the JSON value", b->name,
                   line_of(b, at), at);
}

/* ------------------------------------------------------------------------------------------------- parts of the text */

/* Behind the next bracket that may open the container of a tap: "name" : [ - written plainly; whether it is one, yajl's
 * events tell. */
static size_t find_stop(const builder *b, const json_tap *tap, size_t at)
{
    const char *dot = strrchr(tap->path, '.'), *name = dot ? dot + 1 : tap->path, *found, *stop = b->text + b->n;
    size_t len = strlen(name);
    while (at < b->n && (found = memmem(b->text + at, b->n - at, name, len)) != NULL) {
        const char *p = found + len;
        at = (size_t)(p - b->text);
        if (found == b->text || found[-1] != '"' || p >= stop || *p++ != '"') continue;
        while (p < stop && json_is_space(*p)) p++;
        if (p >= stop || *p++ != ':') continue;
        while (p < stop && json_is_space(*p)) p++;
        if (p < stop && (*p == '[' || *p == '{')) return (size_t)(p + 1 - b->text);
    }
    return b->n;
}

static size_t next_stop(builder *b, size_t at)
{
    size_t nearest = b->n;
    for (size_t t = 0; b->opts && t < b->opts->n_taps && t < JSON_STOPS; t++) {
        if (b->stops[t] <= at) b->stops[t] = find_stop(b, &b->opts->taps[t], at);
        if (b->stops[t] < nearest) nearest = b->stops[t];
    }
    return nearest;
}

/* Members of the tapped container that opens before *at, as far as they are simple; moves *at. */
static lath_status scan_members(builder *b, size_t *at)
{
    json_scan s = {.text = b->text,
                   .n = b->n,
                   .at = *at,
                   .line = line_of(b, *at),
                   .object = b->levels[b->depth - 1].container->kind == JSON_OBJECT,
                   .nested = b->depth < b->max_depth,
                   .serde_reals = b->opts->serde_reals,
                   .c_locale = b->c_locale,
                   .strings = &b->scratch};
    lath_status st = LATH_OK;
    json_scan_found found;
    while (st == LATH_OK && (found = json_scan_next(&s)) == JSON_SCAN_MEMBER) {
        b->line_at = s.at;
        b->line = s.line;
        st = b->tap->fn(b->tap->ctx, &s.item, b->err);
        arena_reset(&b->scratch);
    }
    if (st != LATH_OK) return st;
    b->line_at = s.at;
    b->line = s.line;
    *at = s.at;
    if (found == JSON_SCAN_NOMEM) return err_nomem(b->err, s.n - s.at);
    return found == JSON_SCAN_BAD ? not_json(b, s.at, s.why) : LATH_OK;
}

/* Vertical tabs and form feeds are white space to yajl. */
static lath_status check_controls(builder *b, size_t at, size_t stop)
{
    const char *control = memchr(b->text + at, '\v', stop - at);
    if (!control) control = memchr(b->text + at, '\f', stop - at);
    return control ? not_json(b, (size_t)(control - b->text), "a control character") : LATH_OK;
}

static lath_status parse_parts(builder *b, yajl_status *s)
{
    size_t at = 0;
    *s = yajl_status_ok;
    while (at < b->n) {
        size_t stop = next_stop(b, at);
        TRY(check_controls(b, at, stop));
        b->part_at = at;
        *s = yajl_parse(b->parser, (const unsigned char *)b->text + at, stop - at);
        if (*s != yajl_status_ok || b->st != LATH_OK) return b->st;
        at = stop;
        if (b->tap && in_tap_container(b) && b->tap_at == at) TRY(scan_members(b, &at));
    }
    return LATH_OK;
}

static lath_status run(builder *b)
{
    yajl_alloc_funcs funcs = {block_alloc, block_resize, block_release, b};
    yajl_status s;
    if (setjmp(b->out_of_memory) != 0) return b->st;
    b->parser = yajl_alloc(&callbacks, &funcs, b);
    yajl_config(b->parser, yajl_dont_validate_strings, 1); /* check_utf8 has seen the whole text */
    TRY(parse_parts(b, &s));
    if (s == yajl_status_ok) {
        b->at_end = true;
        s = yajl_complete_parse(b->parser);
    }
    if (b->st != LATH_OK) return b->st;
    if (s != yajl_status_ok) return grammar_error(b);
    if (!b->root) return err_set(b->err, LATH_ERR_FORMAT, "%s: no JSON value in it", b->name);
    return check_rest(b);
}

lath_status json_parse(arena *a, const char *name, const char *text, size_t n, const json_options *opts,
                       json_value **out, lath_error *err)
{
    size_t most = opts && opts->max_bytes ? opts->max_bytes : (size_t)64 << 20;
    if (n > most) return err_set(err, LATH_ERR_LIMIT, "%s: %zu bytes of JSON, at most %zu", name, n, most);
    if (n >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        text += 3;
        n -= 3;
    }
    builder b = {.alloc = a->alloc, .tree = a, .name = name, .text = text, .n = n, .line = 1, .opts = opts, .err = err};
    TRY(check_utf8(&b));
    b.max_depth = opts && opts->max_depth ? opts->max_depth : JSON_DEPTH_DEFAULT;
    if (b.max_depth > JSON_DEPTH_MOST) b.max_depth = JSON_DEPTH_MOST;
    arena_init(&b.scratch, a->alloc);
    b.c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    b.levels = alloc_array(a->alloc, (size_t)b.max_depth, sizeof(level));
    lath_status st =
        b.levels && b.c_locale != (locale_t)0 ? run(&b) : err_nomem(err, (size_t)b.max_depth * sizeof(level));
    if (st == LATH_OK) *out = b.root;
    for (int d = 0; b.levels && d < b.depth; d++) {
        if (b.levels[d].has_map) map_deinit(&b.levels[d].keys);
    }
    while (b.blocks) block_release(&b, b.blocks + 1);
    if (b.c_locale != (locale_t)0) freelocale(b.c_locale);
    alloc_release(a->alloc, b.levels, (size_t)b.max_depth * sizeof(level));
    arena_deinit(&b.scratch);
    return st;
}
