/* SPDX-License-Identifier: Apache-2.0
 * tokenizer.c: the public tokenizer on top of tok/. */
#include <stdatomic.h>
#include <string.h>

#include <stdio.h>

#include "base/file.h"
#include "engine/engine.h"
#include "engine/grammar.h"
#include "store/gguf_split.h"

static lath_status open_gguf(const lath_allocator *alloc, const char *path, tok **out, lath_error *err)
{
    gguf *g;
    TRY(gguf_open_first(alloc, path, FILE_MAP, &g, err));
    const lath_status st = gguf_tokenizer_open(alloc, g, out, err);
    gguf_close(g);
    return st;
}

/* A folder of a model, or a vindex, which has the keys of the GGUF file that it was made of. */
static lath_status open_dir(const lath_allocator *alloc, const char *path, tok **out, lath_error *err)
{
    char keys[4096];
    const int n = snprintf(keys, sizeof(keys), "%s/gguf.keys", path);
    if (n > 0 && (size_t)n < sizeof(keys) && vindex_is_dir(path) && file_exists(keys))
        return open_gguf(alloc, keys, out, err);
    return tok_open_dir(alloc, path, out, err);
}

lath_status lath_tokenizer_open(lath_runtime *rt, const char *path, lath_tokenizer **out, lath_error *err)
{
    err_clear(err);
    if (!rt || !path || !out) return err_set(err, LATH_ERR_USAGE, "lath_tokenizer_open: an argument is missing");
    lath_tokenizer *t = alloc_zero(&rt->alloc, sizeof(*t));
    if (!t) return err_nomem(err, sizeof(*t));
    t->rt = rt;
    lath_status st =
        gguf_is_name(path) ? open_gguf(&rt->alloc, path, &t->tok, err) : open_dir(&rt->alloc, path, &t->tok, err);
    if (st != LATH_OK)
        alloc_release(&rt->alloc, t, sizeof(*t));
    else
        *out = t;
    return st;
}

void lath_tokenizer_close(lath_tokenizer *t)
{
    if (!t) return;
    token_trie_destroy(atomic_load(&t->trie));
    tok_close(t->tok);
    alloc_release(&t->rt->alloc, t, sizeof(*t));
}

const lath_tokenizer *lath_model_tokenizer(const lath_model *model) { return &model->tokenizer; }
int32_t lath_tokenizer_size(const lath_tokenizer *t) { return tok_size(t->tok); }
const char *lath_tokenizer_token(const lath_tokenizer *t, int32_t id) { return tok_token(t->tok, id, NULL); }

lath_status lath_encode(const lath_tokenizer *t, lath_text text, const lath_encode_options *opts, lath_tokens *out,
                        lath_error *err)
{
    static const lath_encode_options defaults = LATH_ENCODE_OPTIONS_INIT;
    err_clear(err);
    if (!opts) opts = &defaults;
    if (!t || !out || (text.len && !text.data))
        return err_set(err, LATH_ERR_USAGE, "lath_encode: an argument is missing");
    if (opts->struct_size != sizeof(*opts) || opts->max_tokens < 0)
        return err_set(err, LATH_ERR_USAGE, "lath_encode: bad options");
    tok_encode_options o = {opts->add_special != 0, opts->parse_special != 0, opts->max_tokens};
    tok_encoding e = {out->ids, out->type_ids, out->offsets, out->n, out->n_untruncated, out->capacity};
    arena scratch;
    arena_init(&scratch, &t->rt->alloc);
    lath_status st = tok_encode(t->tok, &scratch, text.data ? text.data : "", text.len, &o, &e, err);
    arena_deinit(&scratch);
    *out = (lath_tokens){e.ids, e.type_ids, e.offsets, e.n, e.n_untruncated, e.capacity, t};
    return st;
}

void lath_tokens_release(lath_tokens *tokens)
{
    if (!tokens || !tokens->owner) return;
    tok_encoding e = {tokens->ids, tokens->type_ids, tokens->offsets, 0, 0, tokens->capacity};
    tok_encoding_release(tokens->owner->tok, &e);
    memset(tokens, 0, sizeof(*tokens));
}

/* ------------------------------------------------------------------------------------------------------------ parts */

/* lath_parts shows the arrays of tok_parts, which lath_parts.memory points to. */
static void show_parts(lath_parts *out, const lath_tokenizer *t, tok_parts *p)
{
    *out = (lath_parts){.ids = p->e.ids,
                        .type_ids = p->e.type_ids,
                        .offsets = p->e.offsets,
                        .special_mask = p->special_mask,
                        .source = p->source,
                        .n = p->e.n,
                        .begin = p->begin,
                        .n_parts = p->n_parts,
                        .n_untruncated = p->e.n_untruncated,
                        .memory = p,
                        .owner = t};
}

static lath_status check_parts_call(const lath_tokenizer *t, const lath_text *texts, size_t n_texts,
                                    const lath_parts_options *o, const lath_parts *out, lath_error *err)
{
    if (!t || !texts || !out) return err_set(err, LATH_ERR_USAGE, "lath_encode_parts: an argument is missing");
    if (n_texts < 1 || n_texts > 2) return err_set(err, LATH_ERR_USAGE, "lath_encode_parts: %zu texts", n_texts);
    for (size_t i = 0; i < n_texts; i++) {
        if (texts[i].len && !texts[i].data)
            return err_set(err, LATH_ERR_USAGE, "lath_encode_parts: text %zu is missing", i);
    }
    if (o->struct_size != sizeof(*o) || o->max_tokens < 0 || o->stride < 0 ||
        (unsigned)o->truncation > LATH_TRUNCATE_ONLY_SECOND)
        return err_set(err, LATH_ERR_USAGE, "lath_encode_parts: bad options");
    if (out->owner && out->owner != t)
        return err_set(err, LATH_ERR_USAGE, "lath_encode_parts: the parts are another tokenizer's");
    return LATH_OK;
}

lath_status lath_encode_parts(const lath_tokenizer *t, const lath_text *texts, size_t n_texts,
                              const lath_parts_options *opts, lath_parts *out, lath_error *err)
{
    static const lath_parts_options defaults = LATH_PARTS_OPTIONS_INIT;
    const char *data[2];
    size_t lens[2];
    err_clear(err);
    if (!opts) opts = &defaults;
    TRY(check_parts_call(t, texts, n_texts, opts, out, err));
    for (size_t i = 0; i < n_texts; i++) {
        data[i] = texts[i].data ? texts[i].data : "";
        lens[i] = texts[i].len;
    }
    tok_parts *p = out->owner ? out->memory : alloc_zero(&t->rt->alloc, sizeof(*p));
    if (!p) return err_nomem(err, sizeof(*p));
    tok_pair_options o = {opts->add_special != 0,
                          opts->parse_special != 0,
                          opts->cut_left != 0,
                          (tok_truncation)opts->truncation,
                          opts->max_tokens,
                          opts->stride,
                          false};
    arena scratch;
    arena_init(&scratch, &t->rt->alloc);
    lath_status st = tok_encode_parts(t->tok, &scratch, data, lens, n_texts, &o, p, err);
    arena_deinit(&scratch);
    if (st != LATH_OK) p->e.n = p->n_parts = 0;
    show_parts(out, t, p);
    return st;
}

void lath_parts_release(lath_parts *parts)
{
    if (!parts || !parts->owner) return;
    tok_parts_release(parts->owner->tok, parts->memory);
    alloc_release(&parts->owner->rt->alloc, parts->memory, sizeof(tok_parts));
    memset(parts, 0, sizeof(*parts));
}

/* --------------------------------------------------------------------------------------------------------- decoding */

/* The text's block begins with its size, so that it can be released without it. */
enum { STRING_HEAD = 16 };

lath_status lath_decode(const lath_tokenizer *t, const int32_t *ids, size_t n, int32_t skip_special, char **text,
                        size_t *len, lath_error *err)
{
    err_clear(err);
    if (!t || (n && !ids) || !text) return err_set(err, LATH_ERR_USAGE, "lath_decode: an argument is missing");
    buf b;
    buf_init(&b, &t->rt->alloc, (size_t)1 << 40);
    lath_status st = tok_decode(t->tok, ids, n, skip_special != 0, &b, err);
    if (st == LATH_OK) st = buf_status(&b, err);
    if (st == LATH_OK) {
        size_t size = STRING_HEAD + b.len + 1;
        char *block = alloc_bytes(&t->rt->alloc, size, STRING_HEAD);
        if (block) {
            memcpy(block, &size, sizeof(size));
            if (b.len) memcpy(block + STRING_HEAD, b.data, b.len);
            block[STRING_HEAD + b.len] = 0;
            *text = block + STRING_HEAD;
            if (len) *len = b.len;
        } else {
            st = err_nomem(err, size);
        }
    }
    buf_deinit(&b);
    return st;
}

void lath_string_release(const lath_tokenizer *t, char *text)
{
    if (!text) return;
    char *block = text - STRING_HEAD;
    size_t size;
    memcpy(&size, block, sizeof(size));
    alloc_release(&t->rt->alloc, block, size);
}

struct lath_decoder {
    const lath_tokenizer *tokenizer;
    tok_stream *stream;
    buf text; /* of the last call */
};

lath_status lath_decoder_create(const lath_tokenizer *t, int32_t skip_special, lath_decoder **out, lath_error *err)
{
    err_clear(err);
    if (!t || !out) return err_set(err, LATH_ERR_USAGE, "lath_decoder_create: an argument is missing");
    lath_decoder *d = alloc_zero(&t->rt->alloc, sizeof(*d));
    if (!d) return err_nomem(err, sizeof(*d));
    lath_status st = tok_stream_create(t->tok, skip_special != 0, &d->stream, err);
    if (st != LATH_OK) {
        alloc_release(&t->rt->alloc, d, sizeof(*d));
        return st;
    }
    d->tokenizer = t;
    buf_init(&d->text, &t->rt->alloc, (size_t)1 << 40);
    *out = d;
    return LATH_OK;
}

void lath_decoder_destroy(lath_decoder *d)
{
    if (!d) return;
    tok_stream_destroy(d->stream);
    buf_deinit(&d->text);
    alloc_release(&d->tokenizer->rt->alloc, d, sizeof(*d));
}

/* Gives the text of a call whose status is st. */
static lath_status give_text(lath_decoder *d, lath_status st, const char **text, size_t *len, lath_error *err)
{
    if (st != LATH_OK) return st;
    *text = buf_cstr(&d->text);
    if (len) *len = d->text.len;
    return buf_status(&d->text, err);
}

lath_status lath_decoder_push(lath_decoder *d, const int32_t *ids, size_t n, const char **text, size_t *len,
                              lath_error *err)
{
    err_clear(err);
    if (!d || (n && !ids) || !text) return err_set(err, LATH_ERR_USAGE, "lath_decoder_push: an argument is missing");
    buf_clear(&d->text);
    return give_text(d, tok_stream_push(d->stream, ids, n, &d->text, err), text, len, err);
}

lath_status lath_decoder_finish(lath_decoder *d, const char **text, size_t *len, lath_error *err)
{
    err_clear(err);
    if (!d || !text) return err_set(err, LATH_ERR_USAGE, "lath_decoder_finish: an argument is missing");
    buf_clear(&d->text);
    return give_text(d, tok_stream_finish(d->stream, &d->text, err), text, len, err);
}
