/* SPDX-License-Identifier: Apache-2.0
 * tok_bpe_decoder.c: BPEDecoder: the suffix that ends a word (Sennrich et al. 2016: "</w>") becomes a space, and nothing
 * in the last token. */
#include "tok/tok_parts.h"

static lath_status run(const tok_decoder *d, arena *mem, tok_string *v, size_t *n, lath_error *err)
{
    static const tok_string space = {" ", 1}, nothing = {"", 0};
    const tok_string *suffix = d->param;
    for (size_t i = 0; i < *n; i++) TRY(tok_replace_all(mem, &v[i], *suffix, i + 1 < *n ? space : nothing, err));
    return LATH_OK;
}

lath_status tok_decoder_bpe(tok_load *l, const json_value *v, tok_decoder *out)
{
    static const char *const known[] = {"type", "suffix", NULL};
    tok_string *suffix = tok_load_array(l, 1, sizeof(*suffix));
    if (!suffix) return err_nomem(l->err, sizeof(*suffix));
    TRY(tok_load_fields(l, v, "decoder", known));
    TRY(tok_load_string(l, v, "decoder", "suffix", suffix));
    *out = (tok_decoder){.stream = TOK_STREAM_LAST, .run = run, .param = suffix};
    return LATH_OK;
}
