/* SPDX-License-Identifier: Apache-2.0
 * tokenizer.c: the public tokenizer on top of tok/. */
#include <string.h>

#include "engine/engine.h"

lath_status lath_tokenizer_open(lath_runtime *rt, const char *path, lath_tokenizer **out, lath_error *err)
{
    err_clear(err);
    if (!rt || !path || !out) return err_set(err, LATH_ERR_USAGE, "lath_tokenizer_open: an argument is missing");
    lath_tokenizer *t = alloc_zero(&rt->alloc, sizeof(*t));
    if (!t) return err_nomem(err, sizeof(*t));
    t->rt = rt;
    lath_status st = tok_open_dir(&rt->alloc, path, &t->tok, err);
    if (st != LATH_OK) alloc_release(&rt->alloc, t, sizeof(*t));
    else *out = t;
    return st;
}

void lath_tokenizer_close(lath_tokenizer *t)
{
    if (!t) return;
    tok_close(t->tok);
    alloc_release(&t->rt->alloc, t, sizeof(*t));
}

const lath_tokenizer *lath_model_tokenizer(const lath_model *model) { return &model->tokenizer; }
int32_t lath_tokenizer_size(const lath_tokenizer *t) { return tok_size(t->tok); }
const char *lath_tokenizer_token(const lath_tokenizer *t, int32_t id) { return tok_token(t->tok, id, NULL); }

lath_status lath_encode(const lath_tokenizer *t, lath_text text, const lath_encode_options *opts, lath_tokens *out, lath_error *err)
{
    static const lath_encode_options defaults = LATH_ENCODE_OPTIONS_INIT;
    err_clear(err);
    if (!opts) opts = &defaults;
    if (!t || !out || (text.len && !text.data)) return err_set(err, LATH_ERR_USAGE, "lath_encode: an argument is missing");
    if (opts->struct_size != sizeof(*opts) || opts->max_tokens < 0) return err_set(err, LATH_ERR_USAGE, "lath_encode: bad options");
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

/* The text's block begins with its size, so that it can be released without it. */
enum { STRING_HEAD = 16 };

lath_status lath_decode(const lath_tokenizer *t, const int32_t *ids, size_t n, int32_t skip_special, char **text, size_t *len, lath_error *err)
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
