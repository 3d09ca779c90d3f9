/* SPDX-License-Identifier: Apache-2.0
 * tok_spm_proto.h: what of a SentencePiece file (protocol buffers, sentencepiece_model.proto) matters for encoding. */
#ifndef LATH_TOK_SPM_PROTO_H
#define LATH_TOK_SPM_PROTO_H

#include <stdbool.h>

#include "base/arena.h"

typedef enum tok_spm_type {
    TOK_SPM_NORMAL = 1,
    TOK_SPM_UNKNOWN,
    TOK_SPM_CONTROL,
    TOK_SPM_USER_DEFINED,
    TOK_SPM_UNUSED,
    TOK_SPM_BYTE
} tok_spm_type;

typedef struct tok_spm_piece {
    const char *s; /* in the file, valid UTF-8, not terminated */
    size_t n;
    float score; /* finite */
    tok_spm_type type;
} tok_spm_piece;

typedef enum tok_spm_kind { TOK_SPM_UNIGRAM = 1, TOK_SPM_BPE } tok_spm_kind;

typedef struct tok_spm {
    tok_spm_piece *pieces; /* [n], in mem */
    size_t n;
    tok_spm_kind kind;
    int64_t unk, bos, eos; /* ids; -1: none. unk is always there */
    bool byte_fallback, add_dummy_prefix, remove_extra_spaces, escape_spaces;
    bool user_as_added;   /* user-defined pieces are found in raw text, as llama.cpp does, and merges may make them */
    const char *charsmap; /* [n_charsmap] in the file */
    size_t n_charsmap;
} tok_spm;

/* Strings stay those of `bytes`. LATH_ERR_FORMAT; LATH_ERR_UNSUPPORTED: a kind of model other than the two. */
lath_status tok_spm_parse(arena *mem, const char *name, const char *bytes, size_t n, tok_spm *out, lath_error *err);

#endif
