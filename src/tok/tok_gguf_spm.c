/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_gguf_spm.c: a SentencePiece file as the arrays that GGUF files carry: its pieces, scores and types are those of the format. BPE is "llama" there,
 * Unigram "t5".
 */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "tok/tok_gguf.h"
#include "tok/tok_spm.h"

static lath_status fill(arena *mem, const tok_spm *m, size_t n, tok_arrays *out, lath_error *err)
{
    tok_string *tokens = arena_array(mem, n, sizeof(*tokens));
    float *scores = arena_array(mem, n, sizeof(*scores));
    int32_t *types = arena_array(mem, n, sizeof(*types));
    if (!tokens || !scores || !types) return err_nomem(err, n * sizeof(*tokens));
    for (size_t i = 0; i < n; i++) {
        if (i < m->n) {
            tokens[i] = (tok_string){m->pieces[i].s, m->pieces[i].n};
            scores[i] = m->pieces[i].score;
            types[i] = (int32_t)m->pieces[i].type;
            continue;
        }
        char text[32]; /* rows of the embedding table that no piece has, as llama.cpp's converter has them */
        const int k = snprintf(text, sizeof(text), "[PAD%zu]", i);
        tokens[i] = (tok_string){arena_strdup(mem, text, (size_t)k), (size_t)k};
        scores[i] = -10000;
        types[i] = TOK_SPM_UNUSED;
        if (!tokens[i].s) return err_nomem(err, sizeof(text));
    }
    out->tokens = tokens;
    out->scores = scores;
    out->types = types;
    out->n = n;
    return LATH_OK;
}

static lath_status convert(arena *mem, const char *path, const tok_spm *m, const json_value *config, int64_t n_ids,
                           tok_arrays *out, lath_error *err)
{
    int64_t bos, eos;
    bool fairseq;
    TRY(tok_spm_template(m, config, path, &bos, &eos, &fairseq, err));
    if (fairseq) return err_set(err, LATH_ERR_UNSUPPORTED, "%s: ids of fairseq cannot be said in a GGUF file", path);
    if (n_ids && (size_t)n_ids < m->n)
        return err_set(err, LATH_ERR_FORMAT, "%s: %zu pieces, but the model has %lld", path, m->n, (long long)n_ids);
    out->kind = m->kind == TOK_SPM_BPE ? "llama" : "t5";
    out->pre = "default";
    out->bos = (int32_t)m->bos;
    out->eos = (int32_t)m->eos;
    out->unk = (int32_t)m->unk;
    out->add_bos = bos >= 0;
    out->add_eos = eos >= 0;
    out->add_space_prefix = m->add_dummy_prefix;
    if (m->remove_extra_spaces || m->kind == TOK_SPM_UNIGRAM) out->remove_extra_spaces = m->remove_extra_spaces;
    out->charsmap = m->charsmap;
    out->n_charsmap = m->n_charsmap;
    return fill(mem, m, n_ids ? (size_t)n_ids : m->n, out, err);
}

lath_status tok_arrays_of_spm(arena *mem, const char *path, const json_value *config, int64_t n_ids, tok_arrays *out,
                              lath_error *err)
{
    tok_spm m;
    file_map file = {0};
    lath_status st = file_map_open(&file, mem->alloc, path, FILE_COPY, err);
    /* Pieces are strings of the file: they have to stay. */
    const char *bytes = st == LATH_OK ? arena_strdup(mem, (const char *)file.data, file.size) : NULL;
    if (st == LATH_OK && !bytes) st = err_nomem(err, file.size);
    if (st == LATH_OK) st = tok_spm_parse(mem, path, bytes, file.size, &m, err);
    if (st == LATH_OK) st = convert(mem, path, &m, config, n_ids, out, err);
    file_map_close(&file);
    return st;
}
