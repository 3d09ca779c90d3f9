/* SPDX-License-Identifier: Apache-2.0
 * tok_bytelevel.c: ByteLevel as normalizer, pre-tokenizer and decoder. The pre-tokenizer has three steps: a space before
 * each word that has none, GPT-2's pattern, bytes written as characters. Before a BPE model the last one is left out
 * (tok_bpe_fuse): the model then reads bytes.
 */
#include "tok/tok_bytelevel.h"

#include "base/unicode.h"
#include "tok/tok_change.h"

enum { BLOCK = 256 };

size_t tok_bytelevel_bytes(const char *s, size_t n, char *out)
{
    size_t k = 0;
    for (size_t i = 0, len; i < n; i += len) {
        int b = tok_char_to_byte(uni_next(s + i, &len));
        if (b < 0) return SIZE_MAX;
        out[k++] = (char)b;
    }
    return k;
}

/* ------------------------------------------------------------------------------------------------------ bytes written */

/* The bytes [b, e) of the input as characters; those of one character share its origin. */
static lath_status write_bytes(tok_change *k, size_t b, size_t e)
{
    tok_change_skip(k, b);
    while (k->i < e) {
        size_t from = k->i, to = tok_change_next(k, from);
        for (size_t i = from; i < to; i++) TRY(tok_change_put(k, tok_byte_to_char((uint8_t)k->t->s[i]), i > from));
    }
    return LATH_OK;
}

static lath_status run_normalizer(const tok_normalizer *n, tok_work *w, tok_text *t)
{
    (void)n;
    tok_change k;
    TRY(tok_change_begin(&k, w, t, t->n + t->n / 4));
    TRY(write_bytes(&k, 0, t->n));
    *t = tok_change_text(&k);
    return LATH_OK;
}

lath_status tok_norm_bytelevel(tok_load *l, const json_value *v, tok_normalizer *out)
{
    static const char *const known[] = {"type", NULL};
    *out = (tok_normalizer){.run = run_normalizer};
    return tok_load_fields(l, v, "normalizer", known);
}

/* ------------------------------------------------------------------------------------------------------ pre-tokenizer */

static void swap_spans(tok_work *w)
{
    tok_spans s = w->spans;
    w->spans = w->spare;
    w->spare = s;
}

/* A space before spans that have none, with the origin of their first character. */
static lath_status put_prefixes(tok_work *w, tok_text *t)
{
    bool all = true;
    for (size_t i = 0; i < w->spans.n && all; i++) all = t->s[w->spans.v[i].b] == ' ';
    if (all) return LATH_OK;
    tok_change k;
    w->spare.n = 0;
    TRY(tok_change_begin(&k, w, t, t->n + w->spans.n));
    for (size_t i = 0; i < w->spans.n; i++) {
        size_t b = w->spans.v[i].b, e = w->spans.v[i].e, begin = k.b->n;
        tok_change_skip(&k, b);
        if (t->s[b] != ' ') {
            size_t first = tok_change_next(&k, b);
            TRY(tok_change_put_bytes(&k, " ", 1, 0));
            TRY(tok_change_put_bytes(&k, t->s + b, first - b, 1));
        }
        TRY(tok_change_copy(&k, e - k.i));
        TRY(tok_spans_push(w, &w->spare, begin, k.b->n));
    }
    *t = tok_change_text(&k);
    swap_spans(w);
    return LATH_OK;
}

static lath_status split_by_pattern(tok_work *w, const tok_text *t)
{
    const tok_pattern *p = tok_pattern_gpt2();
    w->spare.n = 0;
    for (size_t i = 0; i < w->spans.n; i++) {
        size_t b = w->spans.v[i].b, n = w->spans.v[i].e - b;
        tok_span block[BLOCK];
        for (size_t at = 0; at < n;) {
            size_t count = p->split(t->s + b, n, &at, block, BLOCK);
            for (size_t k = 0; k < count; k++) TRY(tok_spans_push(w, &w->spare, b + block[k].b, b + block[k].e));
        }
    }
    swap_spans(w);
    return LATH_OK;
}

static lath_status run_keeping_bytes(const tok_splitter *p, tok_work *w, tok_text *t)
{
    const tok_bytelevel *x = p->param;
    if (x->prefix) TRY(put_prefixes(w, t));
    return x->regex ? split_by_pattern(w, t) : LATH_OK;
}

static lath_status run_splitter(const tok_splitter *p, tok_work *w, tok_text *t)
{
    TRY(run_keeping_bytes(p, w, t));
    tok_change k;
    TRY(tok_change_begin(&k, w, t, t->n + t->n / 4));
    for (size_t i = 0; i < w->spans.n; i++) {
        size_t b = k.b->n;
        TRY(write_bytes(&k, w->spans.v[i].b, w->spans.v[i].e));
        w->spans.v[i] = (tok_span){(uint32_t)b, (uint32_t)k.b->n};
    }
    *t = tok_change_text(&k);
    return LATH_OK;
}

const tok_bytelevel *tok_bytelevel_of(const tok_splitter *p) { return p->run == run_splitter ? p->param : NULL; }
void tok_bytelevel_keep_bytes(tok_splitter *p) { p->run = run_keeping_bytes; }

static const char *const known[] = {"type", "add_prefix_space", "trim_offsets", "use_regex", NULL};

lath_status tok_split_bytelevel(tok_load *l, const json_value *v, tok_splitter *out)
{
    tok_bytelevel *x = tok_load_array(l, 1, sizeof(*x));
    if (!x) return err_nomem(l->err, sizeof(*x));
    *out = (tok_splitter){.run = run_splitter, .param = x};
    TRY(tok_load_fields(l, v, "pre_tokenizer", known));
    TRY(tok_load_bool(l, v, "pre_tokenizer", "add_prefix_space", &x->prefix));
    x->regex = true;
    return json_get_bool(v, "use_regex", l->name, &x->regex, l->err);
}

/* ------------------------------------------------------------------------------------------------------------ decoder */

/* All tokens become one, whose bytes are UTF-8 or repaired. A token with a character outside the alphabet stands for
 * itself. */
static lath_status run_decoder(const tok_decoder *d, arena *mem, tok_string *v, size_t *n, lath_error *err)
{
    (void)d;
    size_t total = 0, k = 0;
    for (size_t i = 0; i < *n; i++) total += v[i].n;
    if (*n == 0) return LATH_OK;
    char *bytes = arena_bytes(mem, total + 1, 1);
    if (!bytes) return err_nomem(err, total + 1);
    for (size_t i = 0; i < *n; i++) {
        size_t len = tok_bytelevel_bytes(v[i].s, v[i].n, bytes + k);
        if (len == SIZE_MAX) {
            len = v[i].n;
            memcpy(bytes + k, v[i].s, len);
        }
        k += len;
    }
    *n = 1;
    v[0] = (tok_string){bytes, k};
    if (utf8_first_invalid(bytes, k) == k) return LATH_OK;
    buf text;
    buf_init(&text, mem->alloc, SIZE_MAX / 4);
    utf8_append_lossy(&text, bytes, k);
    lath_status st = buf_status(&text, err);
    if (st == LATH_OK) {
        char *copy = arena_strdup(mem, text.data, text.len);
        if (copy)
            v[0] = (tok_string){copy, text.len};
        else
            st = err_nomem(err, text.len);
    }
    buf_deinit(&text);
    return st;
}

lath_status tok_decoder_bytelevel(tok_load *l, const json_value *v, tok_decoder *out)
{
    *out = (tok_decoder){.stream = TOK_STREAM_BYTE_LEVEL, .run = run_decoder};
    return tok_load_fields(l, v, "decoder", known);
}
