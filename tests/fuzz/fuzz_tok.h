/* SPDX-License-Identifier: Apache-2.0
 * fuzz_tok.h: what fuzz targets do with a tokenizer and a text, and what must hold: tokens lie in the text, a stream
 * decodes to the same as the whole, parts are marked by where they come from. */
#ifndef LATH_TEST_FUZZ_TOK_H
#define LATH_TEST_FUZZ_TOK_H

#include <stdlib.h>
#include <string.h>

#include "tok/tok.h"

/* What may differ: a run of byte tokens that is not UTF-8 (tok_stream.c), which leaves U+FFFD in the text. */
static void fuzz_tok_stream(const tok *t, const tok_encoding *e, bool skip, const buf *whole)
{
    buf out;
    tok_stream *s;
    size_t step = 1 + e->n % 3;
    if (tok_stream_create(t, skip, &s, NULL) != LATH_OK) abort();
    buf_init(&out, alloc_default(), 1 << 26);
    for (size_t i = 0; i < e->n; i += step) {
        if (tok_stream_push(s, e->ids + i, e->n - i < step ? e->n - i : step, &out, NULL) != LATH_OK) abort();
    }
    if (tok_stream_finish(s, &out, NULL) != LATH_OK) abort();
    bool broken = whole->len && memmem(whole->data, whole->len, "\xEF\xBF\xBD", 3);
    if (!broken && (out.len != whole->len || (out.len && memcmp(out.data, whole->data, out.len) != 0))) abort();
    buf_deinit(&out);
    tok_stream_destroy(s);
}

static void fuzz_tok_parts(const tok *t, arena *scratch, const char *text, size_t n)
{
    tok_parts p = {0};
    const char *texts[] = {text, "b [SEP] a"};
    const size_t lens[] = {n, 9};
    tok_pair_options o = {
        true, (n & 2) == 0, (n & 4) != 0, (tok_truncation)(n % 3), 3 + (int64_t)(n % 7), (int64_t)(n % 2), n % 5 == 0};
    if (tok_encode_parts(t, scratch, texts, lens, 1 + n % 2, &o, &p, NULL) == LATH_OK) {
        if (p.n_parts < 1 || p.begin[0] != 0 || p.begin[p.n_parts] != p.e.n) abort();
        for (size_t i = 0; i < p.e.n; i++) {
            if (p.special_mask[i] != (p.source[i] < 0) || p.e.offsets[2 * i] > p.e.offsets[2 * i + 1]) abort();
        }
    }
    tok_parts_release(t, &p);
}

/* Encodes and decodes s[0..n) with `most` tokens at most (0: any number), pairs and parts with it. */
static void fuzz_tok_use(const tok *t, const char *text, size_t n, int64_t most)
{
    arena scratch;
    tok_encoding e = {0};
    buf out;
    tok_encode_options o = {true, (n & 1) == 0, most};
    arena_init(&scratch, alloc_default());
    buf_init(&out, alloc_default(), 1 << 26);
    if (tok_encode(t, &scratch, text, n, &o, &e, NULL) == LATH_OK) {
        for (size_t i = 0; i < e.n; i++) {
            if (e.offsets[2 * i] > e.offsets[2 * i + 1] || e.offsets[2 * i + 1] > n || !tok_token(t, e.ids[i], NULL))
                abort();
        }
        if (tok_decode(t, e.ids, e.n, n & 2, &out, NULL) != LATH_OK) abort();
        fuzz_tok_stream(t, &e, n & 2, &out);
    }
    fuzz_tok_parts(t, &scratch, text, n);
    buf_deinit(&out);
    tok_encoding_release(t, &e);
    arena_deinit(&scratch);
}

#endif
