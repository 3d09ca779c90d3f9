/* SPDX-License-Identifier: Apache-2.0
 * tok_spm.h: SentencePiece model files (tokenizer.model). The file becomes the text of a tokenizer.json with the
 * pipeline that encodes as SentencePiece does, which is then read like any other. */
#ifndef LATH_TOK_SPM_H
#define LATH_TOK_SPM_H

#include "base/json.h"
#include "tok/tok_spm_proto.h"

/* Appends tokenizer.json to out. bytes: the file (untrusted); name leads messages; config: tokenizer_config.json, NULL
 * where there is none: "tokenizer_class", "add_bos_token", "add_eos_token". LATH_ERR_FORMAT, _UNSUPPORTED. */
lath_status tok_spm_to_json(const lath_allocator *alloc, const char *name, const char *bytes, size_t n,
                            const json_value *config, buf *out, lath_error *err);
/* The ids that the template puts around a text, by the tokenizer's class and the flags of `config`; -1: none. *fairseq: the ids are others than the
 * file's. */
lath_status tok_spm_template(const tok_spm *m, const json_value *config, const char *name, int64_t *bos, int64_t *eos,
                             bool *fairseq, lath_error *err);
/* The same of pieces that came otherwise (GGUF). */
lath_status tok_spm_put_json(arena *mem, const char *name, const tok_spm *m, const json_value *config, buf *out,
                             lath_error *err);

#endif
