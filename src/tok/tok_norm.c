/* SPDX-License-Identifier: Apache-2.0
 * tok_norm.c: normalizers. All that work character by character are one pass with parameters (tok_normalizer.pass);
 * what each character of the original becomes is written with the bytes that it came from, as the reference's
 * NormalizedString keeps them.
 *
 * The pass decomposes (NFD) without putting combining marks into canonical order. That is exact as long as no mark
 * survives the strip: marks that are dropped need no order. Where one survives, BertNormalizer is run in its four
 * steps with the ordering NFD between them.
 */
#include "tok/tok_parts.h"

#include "base/unicode.h"
#include "base/utf8.h"

enum { CHUNK = 16, CHAR_MOST = 2 + UNI_NFD_MAX * UNI_LOWER_MAX * 4 /* bytes that one character may become */ };

/* ---------------------------------------------------------------------------------------------------------- writing */

lath_status tok_textbuf_take(tok_work *w, size_t want, uint32_t base, tok_textbuf **out)
{
    tok_textbuf *b = &w->bufs[w->pair + w->next_buf];
    w->next_buf = !w->next_buf;
    b->n = 0;
    b->aligned = false;
    b->base = base;
    *out = b;
    return want > b->cap ? tok_textbuf_grow(w, b, want) : LATH_OK;
}

lath_status tok_textbuf_grow(tok_work *w, tok_textbuf *b, size_t more)
{
    size_t cap = b->cap * 2 > b->n + more ? b->cap * 2 : b->n + more;
    if (cap > UINT32_MAX) return err_set(w->err, LATH_ERR_LIMIT, "text of over 4 GiB after normalization");
    char *s = arena_bytes(w->scratch, cap, 16);
    uint32_t *from = arena_bytes(w->scratch, cap * sizeof(*from), 16);
    uint32_t *to = arena_bytes(w->scratch, cap * sizeof(*to), 16);
    if (!s || !from || !to) return err_nomem(w->err, cap * 9);
    if (b->n) memcpy(s, b->s, b->n);
    if (b->n && b->aligned) {
        memcpy(from, b->from, b->n * sizeof(*from));
        memcpy(to, b->to, b->n * sizeof(*to));
    }
    b->s = s;
    b->from = from;
    b->to = to;
    b->cap = cap;
    return LATH_OK;
}

/* A character of several bytes that has kept its length came from those bytes together, but only pieces that end
 * between characters are ever asked for, so that byte by byte is as good. */
void tok_textbuf_align(tok_textbuf *b)
{
    if (b->aligned) return;
    b->aligned = true;
    for (size_t i = 0; i < b->n; i++) {
        b->from[i] = b->base + (uint32_t)i;
        b->to[i] = b->base + (uint32_t)i + 1;
    }
}

static void put_bytes(tok_textbuf *b, const char *s, size_t n, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < n; i++) {
        b->s[b->n + i] = s[i];
        b->from[b->n + i] = from;
        b->to[b->n + i] = to;
    }
    b->n += n;
}

static void put_char(tok_textbuf *b, uint32_t c, uint32_t from, uint32_t to)
{
    char bytes[4];
    put_bytes(b, bytes, utf8_encode(c, bytes), from, to);
}

/* ------------------------------------------------------------------------------------------------------------- the
 * one pass */

/* Where the character at [i, i + len) of t came from. */
typedef struct origin {
    uint32_t from, to;
} origin;

static origin origin_of(const tok_text *t, size_t i, size_t len)
{
    return (origin){tok_text_from(t, i), tok_text_to(t, i + len)};
}

/* Writes what one (decomposed) character becomes after strip and lower. */
static void put_result(const tok_normalizer *n, tok_textbuf *b, uint32_t c, origin o)
{
    uint32_t f = uni_flags(c);
    if (f & n->pass.strip) return;
    if (!n->pass.lower || !(f & UNI_LOWER)) {
        put_char(b, c, o.from, o.to);
        return;
    }
    uint32_t low[UNI_LOWER_MAX];
    size_t k = uni_lower(c, low);
    for (size_t i = 0; i < k; i++) put_char(b, low[i], o.from, o.to);
}

/* The whole treatment of a character that needs one. The buffer is aligned. */
static void put_treated(const tok_normalizer *n, tok_textbuf *b, uint32_t c, uint32_t f, origin o)
{
    if (f & n->pass.drop) return;
    if (n->pass.blank && f & UNI_SPACE) {
        put_char(b, ' ', o.from, o.to);
        return;
    }
    bool around = n->pass.cjk && f & UNI_CJK;
    if (around) put_char(b, ' ', o.from, o.to);
    if (n->pass.nfd && f & UNI_NFD) {
        uint32_t parts[UNI_NFD_MAX];
        size_t k = uni_nfd(c, parts);
        for (size_t i = 0; i < k; i++) put_result(n, b, parts[i], o);
    } else {
        put_result(n, b, c, o);
    }
    if (around) put_char(b, ' ', o.from, o.to);
}

/* The character at [i, i + len) of t as it is. */
static void put_same(tok_textbuf *b, const tok_text *t, size_t i, size_t len)
{
    if (b->aligned) {
        origin o = origin_of(t, i, len);
        put_bytes(b, t->s + i, len, o.from, o.to);
        return;
    }
    for (size_t k = 0; k < len; k++) b->s[b->n + k] = t->s[i + k];
    b->n += len;
}

/* A one-to-one replacement of the same length keeps the text unaligned: ASCII, capital letters of most scripts. */
static bool put_in_place(const tok_normalizer *n, tok_textbuf *b, uint32_t c, uint32_t f, size_t len)
{
    if (b->aligned) return false;
    if (c < 0x80 && n->pass.ascii[c] != TOK_ASCII_SLOW) {
        b->s[b->n++] = (char)n->pass.ascii[c];
        return true;
    }
    if ((f & n->pass.mask) != UNI_LOWER) return false;
    uint32_t low[UNI_LOWER_MAX];
    char bytes[4];
    if (uni_lower(c, low) != 1 || utf8_encode(low[0], bytes) != len) return false;
    memcpy(b->s + b->n, bytes, len);
    b->n += len;
    return true;
}

/* A mark that the strip leaves is in reach of canonical ordering. */
static bool keeps_mark(const tok_normalizer *n, uint32_t c, uint32_t f)
{
    if (!n->pass.nfd) return false;
    if (!(f & UNI_NFD)) return f & UNI_CCC && !(f & n->pass.strip);
    uint32_t parts[UNI_NFD_MAX];
    size_t k = uni_nfd(c, parts);
    for (size_t i = 0; i < k; i++) {
        uint32_t g = uni_flags(parts[i]);
        if (g & UNI_CCC && !(g & n->pass.strip)) return true;
    }
    return false;
}

/* ASCII bytes from i on that become one byte each, CHUNK at a time; returns how many were written. */
static size_t put_ascii(const tok_normalizer *n, const tok_text *t, size_t i, tok_textbuf *b)
{
    size_t begin = i;
    while (i + CHUNK <= t->n && b->n + CHUNK <= b->cap) {
        uint32_t all = 0;
        for (size_t k = 0; k < CHUNK; k++) {
            uint32_t m = n->pass.ascii[(uint8_t)t->s[i + k]];
            b->s[b->n + k] = (char)m;
            all |= m;
        }
        if (all & TOK_ASCII_SLOW) break;
        if (b->aligned && t->from) {
            memcpy(b->from + b->n, t->from + i, CHUNK * sizeof(*b->from));
            memcpy(b->to + b->n, t->to + i, CHUNK * sizeof(*b->to));
        } else if (b->aligned) {
            for (size_t k = 0; k < CHUNK; k++) {
                b->from[b->n + k] = t->base + (uint32_t)(i + k);
                b->to[b->n + k] = t->base + (uint32_t)(i + k) + 1;
            }
        }
        i += CHUNK;
        b->n += CHUNK;
    }
    return i - begin;
}

/* *kept_mark is set, and the result of no use, when canonical ordering would be needed. */
static lath_status run_pass(const tok_normalizer *n, tok_work *w, tok_text *t, bool *kept_mark)
{
    tok_textbuf *b;
    TRY(tok_textbuf_take(w, t->n + t->n / 8 + 64, t->base, &b));
    if (t->from) b->aligned = true; /* what came in was aligned: so is what goes out */
    size_t i = 0, retry = 0;        /* before `retry` a chunk of ASCII has just failed */
    while (i < t->n) {
        if (i >= retry && (uint8_t)t->s[i] < 0x80) {
            i += put_ascii(n, t, i, b);
            retry = i + CHUNK;
            if (i == t->n) break;
        }
        if (b->cap - b->n < CHAR_MOST) TRY(tok_textbuf_grow(w, b, CHAR_MOST));
        size_t len;
        uint32_t c = uni_next(t->s + i, &len), f = uni_flags(c);
        if (!(f & n->pass.mask)) {
            put_same(b, t, i, len);
        } else if (keeps_mark(n, c, f)) {
            *kept_mark = true;
            return LATH_OK;
        } else if (!put_in_place(n, b, c, f, len)) {
            tok_textbuf_align(b);
            put_treated(n, b, c, f, origin_of(t, i, len));
        }
        i += len;
    }
    *t = tok_textbuf_text(b);
    return LATH_OK;
}

/* -------------------------------------------------------------------------------------------------------------- NFD */

typedef struct mark {
    uint32_t c;
    uint8_t ccc;
    bool first; /* the first character of its decomposition: it stands for a character of the input */
} mark;

/* Reads origins of the input's characters one by one. */
typedef struct reader {
    const tok_text *t;
    size_t i;
    origin last; /* of the character read last; 0,0 before the first */
} reader;

static void next_origin(reader *r)
{
    size_t len;
    uni_next(r->t->s + r->i, &len);
    r->last = origin_of(r->t, r->i, len);
    r->i += len;
}

/* Writes the starter and marks that wait, marks in order of class (stable insertion sort; runs are short, long ones
 * are sorted by counting). The reference gives origins by position after the sort: each `first` takes that of the
 * next character of the input. */
static lath_status flush(tok_work *w, tok_textbuf *b, reader *r, mark *v, size_t n, mark *tmp)
{
    if (n > 32) {
        size_t at[257] = {0};
        for (size_t i = 0; i < n; i++) at[v[i].ccc + 1]++;
        for (size_t k = 0; k < 256; k++) at[k + 1] += at[k];
        for (size_t i = 0; i < n; i++) tmp[at[v[i].ccc]++] = v[i];
        v = tmp;
    } else {
        for (size_t i = 1; i < n; i++) {
            mark m = v[i];
            size_t k = i;
            for (; k > 0 && v[k - 1].ccc > m.ccc; k--) v[k] = v[k - 1];
            v[k] = m;
        }
    }
    if (b->cap - b->n < n * 4) TRY(tok_textbuf_grow(w, b, n * 4));
    for (size_t i = 0; i < n; i++) {
        if (v[i].first) next_origin(r);
        put_char(b, v[i].c, r->last.from, r->last.to);
    }
    return LATH_OK;
}

static lath_status run_nfd(const tok_normalizer *n, tok_work *w, tok_text *t)
{
    (void)n;
    tok_textbuf *b;
    TRY(tok_textbuf_take(w, t->n + t->n / 2 + 64, t->base, &b));
    b->aligned = true;
    size_t cap = 0, waiting = 0;
    mark *v = NULL, *tmp = NULL;
    reader r = {.t = t};
    for (size_t i = 0, len; i < t->n; i += len) {
        uint32_t parts[UNI_NFD_MAX], c = uni_next(t->s + i, &len);
        size_t k = c < 0x80 ? 1 : uni_nfd(c, parts);
        if (c < 0x80) parts[0] = c;
        for (size_t p = 0; p < k; p++) {
            uint32_t ccc = uni_ccc(parts[p]);
            if (ccc == 0 && waiting) {
                TRY(flush(w, b, &r, v, waiting, tmp));
                waiting = 0;
            }
            if (waiting == cap) {
                size_t more = cap ? cap * 2 : 64;
                mark *fresh = arena_bytes(w->scratch, more * sizeof(*v), 16);
                tmp = arena_bytes(w->scratch, more * sizeof(*v), 16);
                if (!fresh || !tmp) return err_nomem(w->err, more * sizeof(*v));
                if (waiting) memcpy(fresh, v, waiting * sizeof(*v));
                v = fresh;
                cap = more;
            }
            v[waiting++] = (mark){parts[p], (uint8_t)ccc, p == 0};
        }
    }
    if (waiting) TRY(flush(w, b, &r, v, waiting, tmp));
    *t = tok_textbuf_text(b);
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------- components */

static lath_status run_simple(const tok_normalizer *n, tok_work *w, tok_text *t)
{
    bool kept_mark = false; /* cannot be set: there is no NFD in these passes */
    return run_pass(n, w, t, &kept_mark);
}

/* mask and ASCII table from the parameters. */
static void finish_pass(tok_normalizer *n)
{
    n->pass.mask = n->pass.drop | n->pass.strip | (n->pass.blank ? UNI_SPACE : 0) | (n->pass.cjk ? UNI_CJK : 0) |
                   (n->pass.nfd ? UNI_NFD | UNI_CCC : 0) | (n->pass.lower ? UNI_LOWER : 0);
    for (uint32_t c = 0; c < 256; c++) {
        uint32_t f = uni_flags(c), out = c, low[UNI_LOWER_MAX];
        if (c >= 0x80 || f & (n->pass.drop | n->pass.strip))
            out = TOK_ASCII_SLOW;
        else if (n->pass.blank && f & UNI_SPACE)
            out = ' ';
        else if (n->pass.lower && uni_lower(c, low) == 1)
            out = low[0];
        n->pass.ascii[c] = (uint16_t)out;
    }
}

/* BertNormalizer with canonical ordering: clean and spaces, NFD, strip, lower case, each over the whole text. */
static lath_status run_bert_steps(const tok_normalizer *n, tok_work *w, tok_text *t)
{
    tok_normalizer before = *n, after = *n;
    before.pass.nfd = before.pass.lower = false;
    before.pass.strip = 0;
    finish_pass(&before);
    after.pass.drop = 0;
    after.pass.blank = after.pass.cjk = after.pass.nfd = false;
    finish_pass(&after);
    TRY(run_simple(&before, w, t));
    TRY(run_nfd(n, w, t));
    return run_simple(&after, w, t);
}

static lath_status run_bert(const tok_normalizer *n, tok_work *w, tok_text *t)
{
    bool kept_mark = false;
    int used = w->next_buf;
    TRY(run_pass(n, w, t, &kept_mark));
    if (!kept_mark) return LATH_OK;
    w->next_buf = used;
    return run_bert_steps(n, w, t);
}

void tok_norm_bert_init(tok_normalizer *n, bool clean, bool cjk, bool strip, bool lower)
{
    *n = (tok_normalizer){.run = run_bert};
    n->pass.drop = clean ? UNI_CONTROL : 0;
    n->pass.blank = clean;
    n->pass.cjk = cjk;
    n->pass.nfd = strip;
    n->pass.strip = strip ? UNI_MN : 0;
    n->pass.lower = lower;
    finish_pass(n);
}

lath_status tok_norm_bert(tok_load *l, const json_value *v, tok_normalizer *out)
{
    static const char *const known[] = {"type",          "clean_text", "handle_chinese_chars",
                                        "strip_accents", "lowercase",  NULL};
    bool clean, cjk, lower;
    TRY(tok_load_fields(l, v, "normalizer", known));
    TRY(tok_load_bool(l, v, "normalizer", "clean_text", &clean));
    TRY(tok_load_bool(l, v, "normalizer", "handle_chinese_chars", &cjk));
    TRY(tok_load_bool(l, v, "normalizer", "lowercase", &lower));
    bool strip = lower; /* null means: where it is lower-cased */
    TRY(json_get_bool(v, "strip_accents", l->name, &strip, l->err));
    tok_norm_bert_init(out, clean, cjk, strip, lower);
    return LATH_OK;
}

static const char *const type_only[] = {"type", NULL};

lath_status tok_norm_lowercase(tok_load *l, const json_value *v, tok_normalizer *out)
{
    *out = (tok_normalizer){.run = run_simple};
    out->pass.lower = true;
    finish_pass(out);
    return tok_load_fields(l, v, "normalizer", type_only);
}

lath_status tok_norm_strip_accents(tok_load *l, const json_value *v, tok_normalizer *out)
{
    *out = (tok_normalizer){.run = run_simple};
    out->pass.strip = UNI_MARK;
    finish_pass(out);
    return tok_load_fields(l, v, "normalizer", type_only);
}

lath_status tok_norm_nfd(tok_load *l, const json_value *v, tok_normalizer *out)
{
    *out = (tok_normalizer){.run = run_nfd};
    return tok_load_fields(l, v, "normalizer", type_only);
}

static lath_status run_sequence(const tok_normalizer *n, tok_work *w, tok_text *t)
{
    for (size_t i = 0; i < n->n_items; i++) TRY(n->items[i].run(&n->items[i], w, t));
    return LATH_OK;
}

lath_status tok_norm_sequence(tok_load *l, const json_value *v, tok_normalizer *out)
{
    static const char *const known[] = {"type", "normalizers", NULL};
    TRY(tok_load_fields(l, v, "normalizer", known));
    const json_value *list = json_get(v, "normalizers");
    if (!list || list->kind != JSON_ARRAY)
        return TOK_FAIL(l, v, LATH_ERR_FORMAT, "normalizer: want a list \"normalizers\"");
    tok_normalizer *items = tok_load_array(l, list->u.items.count, sizeof(*items));
    if (!items) return err_nomem(l->err, list->u.items.count * sizeof(*items));
    size_t n = 0;
    for (const json_value *m = list->u.items.first; m; m = m->next) TRY(tok_load_normalizer(l, m, &items[n++]));
    *out = (tok_normalizer){.run = run_sequence, .items = items, .n_items = n};
    return LATH_OK;
}

/* Patterns of added tokens stay as they were normalised at loading: setting a normalizer later does not change them
 * in the reference either. */
lath_status tok_prepend_lowercase(tok *t, lath_error *err)
{
    tok_normalizer *items = arena_array(&t->mem, 2, sizeof(*items));
    if (!items) return err_nomem(err, 2 * sizeof(*items));
    items[0] = (tok_normalizer){.run = run_simple};
    items[0].pass.lower = true;
    finish_pass(&items[0]);
    size_t n = 1;
    if (t->normalizer.run) items[n++] = t->normalizer;
    t->normalizer = (tok_normalizer){.run = run_sequence, .items = items, .n_items = n};
    return LATH_OK;
}

lath_status tok_normalize(const tok *t, tok_work *w, tok_text *text)
{
    return t->normalizer.run ? t->normalizer.run(&t->normalizer, w, text) : LATH_OK;
}
