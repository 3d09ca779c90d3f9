/* SPDX-License-Identifier: Apache-2.0
 * json.c: the owner of yajl. yajl checks the grammar and hands out events; this file builds the tree and adds what
 * yajl does not do: depth and size limits, duplicate keys, numbers without the locale; strict UTF-8 (yajl takes
 * overlong forms and surrogates), strict white space (it takes \v and \f), nothing behind the value (it takes a
 * string that never ends), no lone surrogate escapes (it turns them into '?' silently, so the raw text of a string
 * that held a backslash is looked at again).
 * A tap is found by the path of member names from the root; while inside one, each member is built in a scratch
 * arena that is reset after the call. Nested taps are not needed and not looked for. */
#include "base/json.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_parse.h>

#include "base/map.h"
#include "base/utf8.h"

enum { JSON_DEPTH_DEFAULT = 64, JSON_DEPTH_MOST = 512, JSON_LINEAR_KEYS = 8 };

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
    bool at_end;     /* yajl has had all of the text: its offsets are no longer into it */
    size_t root_end; /* bytes up to the end of the root value */
    int depth, max_depth;
    level *levels; /* [max_depth] */
    const char *key;
    size_t key_len;
    json_value *root;
    const json_options *opts;
    const json_tap *tap; /* the one we are inside of */
    int tap_depth;       /* depth of its container */
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
    size_t at = b->at_end ? b->n : yajl_get_bytes_consumed(b->parser);
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

static bool parse_int(const char *s, size_t n, int64_t *out)
{
    size_t i = s[0] == '-';
    uint64_t u = 0;
    if (n - i > 19) return false;
    for (; i < n; i++) {
        if (s[i] < '0' || s[i] > '9') return false;
        u = u * 10 + (uint64_t)(s[i] - '0');
    }
    if (u > (uint64_t)INT64_MAX + (s[0] == '-')) return false;
    *out = s[0] == '-' ? (int64_t)(0 - u) : (int64_t)u;
    return true;
}

/* A decimal of up to 19 digits without an exponent: the quotient of two integers that an 80-bit float holds exactly,
 * so rounded once, to 64 bits. false: written otherwise, or so near to the middle between two doubles that rounding it
 * again could go wrong. */
static bool plain_real(const char *s, size_t n, double *out)
{
#if LDBL_MANT_DIG == 64
    static const long double tens[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,
                                       1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L};
    uint64_t m = 0, bits;
    size_t i = s[0] == '-', digits = 0, behind = 0;
    bool point = false;
    for (; i < n; i++) {
        if (s[i] == '.') {
            point = true;
            continue;
        }
        if (s[i] < '0' || s[i] > '9' || ++digits > 19) return false;
        m = m * 10 + (uint64_t)(s[i] - '0');
        behind += point;
    }
    long double q = (long double)m / tens[behind];
    memcpy(&bits, &q, sizeof(bits)); /* the significand */
    uint64_t low = bits & 0x7FF;     /* what a double does not hold */
    if (low >= 0x3FF && low <= 0x401) return false;
    *out = s[0] == '-' ? -(double)q : (double)q;
    return true;
#else
    (void)s, (void)n, (void)out;
    return false;
#endif
}

static double power_of_ten(unsigned n, locale_t c_locale)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    char text[16];
    if (n < sizeof(tens) / sizeof(tens[0])) return tens[n];
    snprintf(text, sizeof(text), "1e%u", n);
    return strtod_l(text, NULL, c_locale);
}

/* serde_json's f64 without its feature float_roundtrip: as many digits as 64 bits hold, rounded, then multiplied with or
 * divided by a power of ten, and rounded again. Scores of tokenizers are read so: sums that tie there must tie here. */
static double serde_real(const char *s, size_t n, locale_t c_locale)
{
    uint64_t m = 0;
    int64_t exponent = 0, stated = 0;
    size_t i = s[0] == '-';
    bool point = false, full = false, below = false;
    for (; i < n && s[i] != 'e' && s[i] != 'E'; i++) {
        if (s[i] == '.') {
            point = true;
            continue;
        }
        uint64_t digit = (uint64_t)(s[i] - '0');
        full = full || m > (UINT64_MAX - digit) / 10;
        if (!full) m = m * 10 + digit;
        exponent += full ? !point : -(int64_t)point;
    }
    if (i < n) i++;
    if (i < n && (s[i] == '-' || s[i] == '+')) below = s[i++] == '-';
    for (; i < n; i++) stated = stated < INT32_MAX ? stated * 10 + (s[i] - '0') : stated;
    exponent += below ? -stated : stated;
    double f = (double)m;
    for (; exponent < -308 && f != 0; exponent += 308) f /= 1e308;
    if (exponent > 308) { /* infinite, or 0 */
        f = f != 0 ? HUGE_VAL : 0;
        exponent = 0;
    }
    if (f != 0)
        f = exponent < 0 ? f / power_of_ten((unsigned)-exponent, c_locale)
                         : f * power_of_ten((unsigned)exponent, c_locale);
    return s[0] == '-' ? -f : f;
}

static int on_number(void *ctx, const char *s, size_t n)
{
    builder *b = ctx;
    json_value *v = add_value(b, JSON_INT);
    if (!v) return 0;
    if (!parse_int(s, n, &v->u.integer)) {
        char text[128];
        if (n >= sizeof(text))
            return FAIL(b, LATH_ERR_FORMAT, "%s: line %u: a number of %zu characters", b->name, v->line, n);
        memcpy(text, s, n);
        text[n] = 0;
        v->kind = JSON_REAL;
        if (b->opts && b->opts->serde_reals)
            v->u.real = serde_real(s, n, b->c_locale);
        else if (!plain_real(s, n, &v->u.real))
            v->u.real = strtod_l(text, NULL, b->c_locale);
    }
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

/* What yajl would let pass anywhere: bad UTF-8, and vertical tabs and form feeds as white space. */
static lath_status check_bytes(builder *b)
{
    size_t at = utf8_first_invalid(b->text, b->n);
    if (at < b->n)
        return err_set(b->err, LATH_ERR_FORMAT, "%s: line %u: byte %zu: not valid UTF-8", b->name, line_of(b, at), at);
    const char *control = b->n ? memchr(b->text, '\v', b->n) : NULL;
    if (b->n && !control) control = memchr(b->text, '\f', b->n);
    if (!control) return LATH_OK;
    at = (size_t)(control - b->text);
    return err_set(b->err, LATH_ERR_FORMAT, "%s: line %u: byte %zu: not JSON: a control character", b->name,
                   line_of(b, at), at);
}

static lath_status check_rest(builder *b)
{
    size_t at = b->root_end;
    while (at < b->n && memchr(" \t\r\n", b->text[at], 4)) at++;
    if (at == b->n) return LATH_OK;
    return err_set(b->err, LATH_ERR_FORMAT, "%s: line %u: byte %zu: text behind the JSON value", b->name,
                   line_of(b, at), at);
}

static lath_status run(builder *b)
{
    yajl_alloc_funcs funcs = {block_alloc, block_resize, block_release, b};
    if (setjmp(b->out_of_memory) != 0) return b->st;
    b->parser = yajl_alloc(&callbacks, &funcs, b);
    yajl_config(b->parser, yajl_dont_validate_strings, 1); /* check_bytes has seen the whole text */
    yajl_status s = yajl_parse(b->parser, (const unsigned char *)b->text, b->n);
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
    TRY(check_bytes(&b));
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
