/* SPDX-License-Identifier: Apache-2.0
 *
 * tok.h: tokenizers, driven by tokenizer.json (or vocab.txt). One pipeline, as the reference (`tokenizers` 0.23) has
 * it:
 *
 *     added tokens split the raw text -> normalizer -> added tokens with "normalized" split again
 *     -> pre-tokenizer -> model -> template
 *
 * A component is a row in a type-name table (tok_types.def) and a file; an unknown type or a field that would change
 * ids is an error that names it. `truncation` and `padding` in the file are ignored. A loaded tokenizer is immutable
 * and shared between threads.
 */
#ifndef LATH_TOK_H
#define LATH_TOK_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"

#include <stdbool.h>

typedef struct tok tok;

/* dir has tokenizer.json, or a SentencePiece file (tokenizer.model, spiece.model, sentencepiece.bpe.model; with
 * tokenizer_config.json: tokenizer_class, add_bos_token, add_eos_token), or vocab.txt (with tokenizer_config.json:
 * do_lower_case, strip_accents, tokenize_chinese_chars, special tokens). LATH_ERR_NOT_FOUND when it has neither. */
lath_status tok_open_dir(const lath_allocator *alloc, const char *dir, tok **out, lath_error *err);
/* tokenizer.json from memory (tests, fuzzing); `name` leads messages. */
lath_status tok_open_json(const lath_allocator *alloc, const char *name, const char *json, size_t n, tok **out,
                          lath_error *err);

typedef struct tok_string {
    const char *s; /* need not be terminated */
    size_t n;
} tok_string;

/* A tokenizer as a GGUF file has it (tokenizer.ggml.*), handed in as data; nothing of it is kept. Flags are 1 or 0, or -1
 * where the file does not say: the kind decides, as in llama.cpp. Ids are -1 where there is none. */
typedef struct tok_arrays {
    const char
        *kind;       /* model: "gpt2" (byte-level BPE), "llama" (SentencePiece BPE by scores), "bert", "t5" (Unigram) */
    const char *pre; /* the split patterns of "gpt2" by the name that llama.cpp gives them; NULL: "default" */
    const tok_string *tokens; /* [n] by id */
    size_t n;
    const float *scores;      /* [n] of "llama" and "t5" */
    const int32_t *types;     /* [n] 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte; NULL: normal */
    const tok_string *merges; /* [n_merges] "left right" of "gpt2", the best first */
    size_t n_merges;
    const char *charsmap; /* [n_charsmap] precompiled_charsmap of "t5", or NULL */
    size_t n_charsmap;
    int32_t bos, eos, unk, sep, pad, cls, mask;
    int32_t eot, eom; /* end a turn or a message, where that is not eos; nothing that encoding needs */
    int add_bos, add_eos, add_space_prefix, remove_extra_spaces;
} tok_arrays;
#define TOK_ARRAYS_INIT                                                                                     \
    {                                                                                                       \
        .bos = -1, .eos = -1, .unk = -1, .sep = -1, .pad = -1, .cls = -1, .mask = -1, .eot = -1, .eom = -1, \
        .add_bos = -1, .add_eos = -1, .add_space_prefix = -1, .remove_extra_spaces = -1                     \
    }
/* name leads messages. LATH_ERR_FORMAT; LATH_ERR_UNSUPPORTED: a kind or pre that is not known, named. */
lath_status tok_open_arrays(const lath_allocator *alloc, const char *name, const tok_arrays *a, tok **out,
                            lath_error *err);
/* The way back (tok_gguf_out.c): the arrays of dir's tokenizer.json, SentencePiece file or vocab.json and merges.txt, with tokenizer_config.json, for a
 * model of n_ids rows (0: as many as there are tokens). Everything is of `mem`. What only a GGUF file's reader does otherwise is said in the log. LATH_ERR_UNSUPPORTED: such a file cannot say it,
 * named. */
lath_status tok_arrays_read(arena *mem, const char *dir, int64_t n_ids, const log_sink *log, tok_arrays *out,
                            lath_error *err);
/* tokenizer.json from memory (tests, fuzzing); `name` leads messages. */
lath_status tok_arrays_parse(arena *mem, const char *name, const char *json, size_t n, int64_t n_ids,
                             const log_sink *log, tok_arrays *out, lath_error *err);
/* Puts a Lowercase step before the normalizer, as sentence-transformers does for do_lower_case. Before the tokenizer
 * is shared. */
lath_status tok_prepend_lowercase(tok *t, lath_error *err);
void tok_close(tok *t); /* NULL is allowed */

const lath_allocator *tok_allocator(const tok *t);
size_t tok_private_bytes(const tok *t);
/* Largest id + 1. */
int32_t tok_size(const tok *t);
/* The token's text in the vocabulary or among the added tokens (terminated), NULL when no token has this id. len may
 * be NULL. */
const char *tok_token(const tok *t, int32_t id, size_t *len);
/* -1 when absent. */
int32_t tok_id(const tok *t, const char *token, size_t len);
/* Names and flags of added tokens matter to decode and to `info`. */
bool tok_is_special(const tok *t, int32_t id);
/* How many tokens the template adds to a single text. */
int32_t tok_n_template(const tok *t);

/* Arrays grow and are reused from call to call; zero it before the first use. */
typedef struct tok_encoding {
    int32_t *ids, *type_ids;
    uint32_t *offsets; /* [n][2] bytes of the original text; 0,0 for template tokens */
    size_t n, n_untruncated, capacity;
} tok_encoding;

typedef struct tok_encode_options {
    bool add_special, parse_special;
    int64_t max_tokens; /* 0: no limit; cut from the right, template tokens kept */
} tok_encode_options;

/* Valid UTF-8 is required (LATH_ERR_INPUT names the byte offset). Working memory is taken from `scratch` (reset by
 * the caller between calls). */
lath_status tok_encode(const tok *t, arena *scratch, const char *text, size_t n, const tok_encode_options *opts,
                       tok_encoding *out, lath_error *err);
void tok_encoding_release(const tok *t, tok_encoding *e);

/* Bytes begin .. end of a text. */
typedef struct tok_range {
    size_t begin, end;
} tok_range;
/* As tok_encode, without the template's tokens, of a text that is in part what people wrote: special tokens are parsed, but
 * not in the n ranges of `plain` (in order, not overlapping). A special token that has only some of its bytes there is plain
 * text too; added tokens that are not special are found everywhere. Otherwise the text is encoded as a whole: where no
 * special token is written in those ranges, ids are those of tok_encode. */
lath_status tok_encode_guarded(const tok *t, arena *scratch, const char *text, size_t n, const tok_range *plain,
                               size_t n_plain, tok_encoding *out, lath_error *err);

/* ---------------------------------------------------------------------------------- pairs and parts (tok_pair.c) */

/* What is cut when one or two texts are over a limit, as in the reference. */
typedef enum tok_truncation { TOK_LONGEST_FIRST, TOK_ONLY_FIRST, TOK_ONLY_SECOND } tok_truncation;

typedef struct tok_pair_options {
    bool add_special, parse_special;
    bool cut_left; /* keeps the end of a text */
    tok_truncation truncation;
    int64_t max_tokens; /* of every part, template tokens included; 0: no limit */
    int64_t stride;     /* tokens that a part of a text has in common with the one before */
    bool first_only;    /* what was cut off is not wanted: there is one part */
} tok_pair_options;

/* Part 0 is the encoding; the others are what was cut off, in the order of the reference's `overflowing`. Part p is
 * tokens begin[p] .. begin[p + 1]. Arrays are reused from call to call; zero it before the first use. */
typedef struct tok_parts {
    tok_encoding e;        /* all parts, one behind the other; n_untruncated is of the whole text */
    uint8_t *special_mask; /* [n] 1: a token of the template */
    int8_t *source;        /* [n] text that the token is of, 0 or 1; -1: a token of the template */
    size_t *begin;         /* [n_parts + 1] */
    size_t n_parts, cap_marks, cap_begin;
    tok_encoding texts; /* the tokens of the texts without a template */
} tok_parts;

/* texts: 1 or 2. LATH_ERR_INPUT: err->item is the text that is not valid UTF-8. LATH_ERR_USAGE: a limit below the
 * template, a stride that leaves nothing new, TOK_ONLY_SECOND of one text. LATH_ERR_WINDOW: the text that may be cut is
 * too short for what must go. */
lath_status tok_encode_parts(const tok *t, arena *scratch, const char *const *texts, const size_t *lens, size_t n_texts,
                             const tok_pair_options *opts, tok_parts *out, lath_error *err);
void tok_parts_release(const tok *t, tok_parts *p);

/* --------------------------------------------------------------------------------------------------------- decoding */

/* Appends the text of ids as the decoder of the file gives it. */
lath_status tok_decode(const tok *t, const int32_t *ids, size_t n, bool skip_special, buf *out, lath_error *err);

/* The bytes that every token puts into a text, for tokenizers whose decoder puts the bytes of tokens one behind the other (byte-level BPE, SentencePiece
 * with byte tokens): what those bytes are together, as UTF-8, is the text, but for spaces that go at its beginning. Borrowed from t. LATH_ERR_UNSUPPORTED: the
 * decoder is of another kind. Any thread. */
typedef struct tok_bytes {
    const char *bytes;
    const uint32_t *at;   /* [n + 1] token id is bytes[at[id] .. at[id + 1]) */
    const uint8_t *plain; /* [n] 0: there is no such token, or it is special and stands for no text */
    size_t n;
} tok_bytes;
lath_status tok_get_bytes(const tok *t, tok_bytes *out, lath_error *err);

/* The same while ids arrive (tok_stream.c): appends the text that is certain, whole characters. The tokenizer must
 * outlive it. LATH_ERR_INPUT: an id is no token, and none was added; after another error only destroy is of use. */
typedef struct tok_stream tok_stream;
lath_status tok_stream_create(const tok *t, bool skip_special, tok_stream **out, lath_error *err);
void tok_stream_destroy(tok_stream *s); /* NULL is allowed */
lath_status tok_stream_push(tok_stream *s, const int32_t *ids, size_t n, buf *out, lath_error *err);
/* No more ids: appends the rest. The stream is as new afterwards. */
lath_status tok_stream_finish(tok_stream *s, buf *out, lath_error *err);

#endif
