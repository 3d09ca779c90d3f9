/* SPDX-License-Identifier: Apache-2.0
 * tok_parts.h: inside the tokenizer: the text on its way through the pipeline, the five component families, and what
 * loading them needs.
 *
 * A component is a struct with a function pointer and its parameters; its loader (tok_types.def) fills it from the
 * JSON object. All of them are immutable after loading and take working memory from tok_work, which lives for one
 * call of tok_encode.
 *
 *     raw text --added tokens--> segments --normalizer--> tok_text --added tokens--> pieces
 *              --pre-tokenizer--> spans --model--> ids and offsets --template--> encoding
 */
#ifndef LATH_TOK_PARTS_H
#define LATH_TOK_PARTS_H

#include "base/json.h"
#include "base/map.h"
#include "tok/tok.h"
#include "tok/tok_trie.h"
#include "tok/tok_vocab.h"

/* ---------------------------------------------------------------------------------------------------------- text and
 * spans */

/* Text with its way back: byte i of s came from the bytes from[i] .. to[i] of the original text; where from is NULL
 * nothing has changed length, and byte i is byte base + i. Bytes of one character share their values. */
typedef struct tok_text {
    const char *s;
    size_t n;
    const uint32_t *from, *to; /* [n], or both NULL */
    uint32_t base;
} tok_text;

/* Of the non-empty piece [b, e) of t: the bytes of the original text. */
static inline uint32_t tok_text_from(const tok_text *t, size_t b)
{
    return t->from ? t->from[b] : t->base + (uint32_t)b;
}
static inline uint32_t tok_text_to(const tok_text *t, size_t e) { return t->to ? t->to[e - 1] : t->base + (uint32_t)e; }
tok_text tok_text_slice(const tok_text *t, size_t b, size_t e);

/* Text being written; grows in the scratch arena and is used again for the next segment. */
typedef struct tok_textbuf {
    char *s;
    uint32_t *from, *to;
    size_t n, cap;
    bool aligned; /* from and to are kept; else byte i is byte base + i so far */
    uint32_t base;
} tok_textbuf;

typedef struct tok_span {
    uint32_t b, e;
} tok_span;

typedef struct tok_spans {
    tok_span *v;
    size_t n, cap;
} tok_spans;

typedef struct tok_work {
    const tok *t;
    arena *scratch;
    /* A normalizer reads what is in one buffer of the first pair and writes the other. Splitters that change text do
     * the same with the second pair: what was normalized is read again for the next piece. */
    tok_textbuf bufs[4];
    int pair, next_buf; /* the pair is 0 or 2 */
    tok_spans spans;    /* the words of the segment in hand */
    tok_spans spare;    /* what the next splitter writes */
    tok_spans matches;  /* of splitters that need them */
    uint64_t *hashes;   /* [cap_hashes] of the prefixes of a long word */
    size_t cap_hashes;
    const tok_range *plain; /* [n_plain] see tok_encode_guarded */
    size_t n_plain;
    tok_encoding *out;
    lath_error *err;
} tok_work;

lath_status tok_spans_grow(tok_work *w, tok_spans *s);
static inline lath_status tok_spans_push(tok_work *w, tok_spans *s, size_t b, size_t e)
{
    if (s->n == s->cap) TRY(tok_spans_grow(w, s));
    s->v[s->n++] = (tok_span){(uint32_t)b, (uint32_t)e};
    return LATH_OK;
}

/* The buffer that is not in use, emptied, with room for about `want` bytes. */
lath_status tok_textbuf_take(tok_work *w, size_t want, uint32_t base, tok_textbuf **out);
lath_status tok_textbuf_grow(tok_work *w, tok_textbuf *b, size_t more);
/* From here on lengths differ: writes down where the bytes so far came from. */
void tok_textbuf_align(tok_textbuf *b);
static inline tok_text tok_textbuf_text(const tok_textbuf *b)
{
    return (tok_text){b->s, b->n, b->aligned ? b->from : NULL, b->aligned ? b->to : NULL, b->base};
}

/* Room in the encoding for `more` tokens. */
lath_status tok_encoding_grow(const lath_allocator *alloc, tok_encoding *e, size_t more, lath_error *err);
static inline lath_status tok_emit(tok_work *w, const lath_allocator *alloc, int32_t id, uint32_t from, uint32_t to)
{
    tok_encoding *e = w->out;
    if (e->n == e->capacity) TRY(tok_encoding_grow(alloc, e, 1, w->err));
    e->ids[e->n] = id;
    e->offsets[2 * e->n] = from;
    e->offsets[2 * e->n + 1] = to;
    e->n++;
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------- components */

typedef struct tok_normalizer tok_normalizer;
struct tok_normalizer {
    /* Replaces *t. */
    lath_status (*run)(const tok_normalizer *n, tok_work *w, tok_text *t);
    struct {            /* one pass over the characters, in this order: */
        uint32_t drop;  /* remove those with one of these flags */
        bool blank;     /* white space becomes ' ' */
        bool cjk;       /* ' ' around ideographs */
        bool nfd;       /* canonical decomposition (without reordering) */
        uint32_t strip; /* of what results, remove those with one of these flags */
        bool lower;
        uint32_t mask;       /* flags that make a character need more than copying */
        uint16_t ascii[256]; /* the byte that an ASCII byte becomes, or TOK_ASCII_SLOW */
    } pass;
    const void *param;           /* of normalizers in their own files */
    const tok_normalizer *items; /* [n_items] of a sequence */
    size_t n_items;
};
#define TOK_ASCII_SLOW 0x100

typedef enum tok_split_kind {
    TOK_SPLIT_REMOVED,
    TOK_SPLIT_ISOLATED,
    TOK_SPLIT_PREVIOUS,
    TOK_SPLIT_NEXT,
    TOK_SPLIT_CONTIGUOUS
} tok_split_kind;

typedef struct tok_splitter tok_splitter;
struct tok_splitter {
    /* Reads w->spans of t, leaves its own in w->spans. */
    lath_status (*run)(const tok_splitter *p, tok_work *w, tok_text *t);
    uint8_t ascii[256]; /* class of a byte: see tok_split.c */
    tok_split_kind behavior;
    const void *param;         /* of splitters in their own files */
    const tok_splitter *items; /* [n_items] of a sequence */
    size_t n_items;
};

typedef struct tok_model tok_model;
struct tok_model {
    /* Emits the tokens of w->spans of t. */
    lath_status (*run)(const tok_model *m, tok_work *w, const tok_text *t);
    const void *param;                       /* of models in their own files */
    void (*deinit)(tok_model *m);            /* NULL: all its memory is of the tokenizer's arena */
    size_t (*bytes)(const tok_model *model); /* of what deinit releases */
    struct {
        int32_t unk;
        const char *prefix;
        size_t prefix_len;
        uint64_t prefix_hash;
        size_t max_chars;
    } wordpiece;
};

/* One item of a template: the text, or tokens. */
typedef struct tok_piece {
    char sequence; /* 'A', 'B', or 0: tokens */
    int32_t type_id;
    const int32_t *ids; /* [n_ids] */
    size_t n_ids;
} tok_piece;

typedef struct tok_trim tok_trim; /* tok_template_byte.c */

typedef struct tok_template {
    const tok_piece *single, *pair; /* NULL: no template of that kind */
    size_t n_single, n_pair;
    size_t n_added, n_added_pair; /* tokens that they add */
    bool types_always;            /* type ids of the text are the template's even when its tokens are not wanted */
    bool types_of_rest;   /* overflowing parts of a text have the template's type ids with its tokens (Roberta) */
    const tok_trim *trim; /* spaces at the ends of tokens go out of the offsets; NULL: they stay */
} tok_template;

/* How a decoder works when tokens come one by one (tok_stream.c). */
typedef enum tok_stream_kind {
    TOK_STREAM_EACH = 0,      /* each token by itself, one for one; only whether it is the first one matters */
    TOK_STREAM_PREVIOUS,      /* as EACH, but a token may go, and the token before it matters (CTC) */
    TOK_STREAM_LAST,          /* one for one; whether it is the last one matters (BPEDecoder) */
    TOK_STREAM_FUSE,          /* all become one token */
    TOK_STREAM_BYTE_LEVEL,    /* all become one token, whose characters stand for bytes */
    TOK_STREAM_BYTE_FALLBACK, /* tokens <0xE4> stand for bytes */
    TOK_STREAM_STRIP,         /* EACH that is the Strip decoder */
    TOK_STREAM_SEQUENCE
} tok_stream_kind;

typedef struct tok_decoder tok_decoder;
struct tok_decoder {
    tok_stream_kind stream;
    /* Changes the texts of tokens in place (new bytes are of mem); what is left is put together without anything
     * between. */
    lath_status (*run)(const tok_decoder *d, arena *mem, tok_string *v, size_t *n, lath_error *err);
    /* Appends what the i-th token of all becomes; NULL where a token is not decoded by itself. */
    void (*put)(const tok_decoder *d, tok_string token, size_t i, buf *out);
    const void *param; /* of decoders in their own files */
    struct {
        tok_string prefix;
        bool cleanup;
    } wordpiece;
    struct {
        tok_string content; /* one character */
        size_t start, stop; /* most characters that go at each end */
    } strip;
    const tok_decoder *items; /* [n_items] of a sequence */
    size_t n_items;
};

typedef struct tok_added_token {
    tok_string content, pattern; /* pattern: normalized content, where the token asks for that */
    int32_t id;
    bool special, single_word, lstrip, rstrip, normalized;
} tok_added_token;

typedef struct tok_added {
    tok_added_token *v; /* [n], no two of one id */
    size_t n;
    map by_content;          /* content -> id */
    map special;             /* contents of special tokens */
    bool special_first[256]; /* bytes that they begin with */
    map by_id;               /* id -> index in v, while loading */
    int32_t next_id;         /* of the next token that the vocabulary does not have */
    tok_trie raw, normalized;
    bool patterns_differ; /* some pattern is not its content */
    tok_trie forged;      /* contents of special tokens that the model could give for text, too */
    size_t n_forged;      /* how many they are; the unknown token does not count */
    uint64_t *is_forged;  /* [n_ids / 64 + 1] bits of their ids, when there are any */
} tok_added;

struct tok {
    const lath_allocator *alloc;
    arena mem;
    tok_vocab vocab;
    tok_normalizer normalizer; /* run == NULL: none */
    tok_splitter splitter;     /* run == NULL: none */
    tok_model model;
    tok_template template;
    tok_decoder decoder; /* run == NULL: tokens are joined by a space */
    tok_added added;
    struct tok_regex *regexes;             /* tok_regex.h */
    struct tok_decode_table *decode_table; /* tok_decode_table.h; NULL: the decoder has none */
    int32_t unk;                           /* the model's unknown token, -1: none */
};

/* What is special in a text. */
typedef struct tok_special {
    bool parse;
    const tok_range *plain; /* [n_plain] */
    size_t n_plain;
} tok_special;
/* Appends the tokens of a text to out->ids and out->offsets; the template is put around them and offsets are trimmed
 * afterwards. */
lath_status tok_encode_text(const tok *t, arena *scratch, const char *text, size_t n, tok_special special,
                            tok_encoding *out, lath_error *err);
/* For templates with `trim`: the n tokens of one text. A token that stands for other text than the vocabulary has for it
 * (an added token that took spaces, unknown text of Unigram) is marked when it is emitted: the marks lie in type_ids,
 * which are not written before. */
void tok_trim_mark(tok_work *w, const char *s, size_t n, bool spaces_count);
void tok_trim_offsets(const tok *t, const char *text, const tok_encoding *e, size_t from, uint32_t *offsets, size_t n);
/* LATH_ERR_INPUT, _LIMIT. */
lath_status tok_check_text(const char *text, size_t n, lath_error *err);

/* The byte that a token of byte fallback ("<0xE4>") stands for, -1 for other tokens. */
int tok_decoder_byte(tok_string token);
/* The clean-up of the WordPiece decoder: spaces before punctuation and contractions. New bytes are of mem. */
lath_status tok_decoder_cleanup(arena *mem, tok_string *s, lath_error *err);
/* Every `what` in s becomes `with`; an empty one stands between all characters. */
lath_status tok_replace_all(arena *mem, tok_string *s, tok_string what, tok_string with, lath_error *err);
/* What stands for an id in decoding; s == NULL: it is no token. */
tok_string tok_decoder_text(const tok *t, int32_t id);

lath_status tok_normalize(const tok *t, tok_work *w, tok_text *text);
/* Added tokens in text: calls for each piece in order; token is NULL for text between. Pieces are never empty. */
typedef lath_status (*tok_piece_fn)(tok_work *w, void *ctx, size_t b, size_t e, const tok_added_token *token);
lath_status tok_added_split(const tok_added *a, const tok_trie *trie, const tok_text *text, bool parse_special,
                            tok_piece_fn fn, tok_work *w, void *ctx);
/* Where [begin, end) of the original text first meets a range of w->plain; end: nowhere. */
size_t tok_plain_in(const tok_work *w, size_t begin, size_t end);

/* ---------------------------------------------------------------------------------------------------------- loading */

typedef struct tok_load {
    tok *t;
    const char *name; /* of the file, leads messages */
    bool vocab_is_array;
    buf merges; /* of BPE, until the vocabulary is there (tok_bpe_load.c) */
    size_t n_merges;
    buf scores; /* f64 of the entries of a vocabulary that is an array, in order */
    lath_error *err;
} tok_load;

/* return TOK_FAIL(l, value, LATH_ERR_FORMAT, "normalizer: ..."): message with file and line; value may be NULL. */
lath_status tok_load_wrap(tok_load *l, const json_value *at, lath_status st);
#define TOK_FAIL(l, at, ...) tok_load_wrap(l, at, err_set((l)->err, __VA_ARGS__))

/* Every member of obj is one of the names (NULL at the end): a field that is not known could change ids. what:
 * "normalizer". */
lath_status tok_load_fields(tok_load *l, const json_value *obj, const char *what, const char *const *known);
lath_status tok_load_bool(tok_load *l, const json_value *obj, const char *what, const char *key, bool *out);
/* Terminated copy in the tokenizer's memory. */
lath_status tok_load_string(tok_load *l, const json_value *obj, const char *what, const char *key, tok_string *out);
void *tok_load_array(tok_load *l, size_t count, size_t size);

lath_status tok_load_normalizer(tok_load *l, const json_value *v, tok_normalizer *out);
lath_status tok_load_splitter(tok_load *l, const json_value *v, tok_splitter *out);
lath_status tok_load_template(tok_load *l, const json_value *v, tok_template *out);
lath_status tok_load_decoder(tok_load *l, const json_value *v, tok_decoder *out);

#define TOK_NORMALIZER(name, fn) lath_status fn(tok_load *l, const json_value *v, tok_normalizer *out);
#define TOK_PRE_TOKENIZER(name, fn) lath_status fn(tok_load *l, const json_value *v, tok_splitter *out);
#define TOK_MODEL(name, fn) lath_status fn(tok_load *l, const json_value *v, tok_model *out);
#define TOK_POST_PROCESSOR(name, fn) lath_status fn(tok_load *l, const json_value *v, tok_template *out);
#define TOK_DECODER(name, fn) lath_status fn(tok_load *l, const json_value *v, tok_decoder *out);
#include "tok/tok_types.def"
#undef TOK_NORMALIZER
#undef TOK_PRE_TOKENIZER
#undef TOK_MODEL
#undef TOK_POST_PROCESSOR
#undef TOK_DECODER

/* The same from plain parameters (vocab.txt). */
void tok_norm_bert_init(tok_normalizer *n, bool clean, bool cjk, bool strip, bool lower);
void tok_split_bert_init(tok_splitter *p);
lath_status tok_wordpiece_init(tok_load *l, const json_value *at, tok_string unk, tok_string prefix, size_t max_chars,
                               tok_model *out);
/* "cls": ["[CLS]", 101] */
lath_status tok_template_load_pair(tok_load *l, const json_value *v, const char *key, int32_t *id);
lath_status tok_template_roberta_init(tok_load *l, int32_t cls, int32_t sep, tok_template *out);
lath_status tok_template_bert_init(tok_load *l, int32_t cls, int32_t sep, tok_template *out);
void tok_decoder_wordpiece_init(tok_decoder *d, tok_string prefix, bool cleanup);
/* d is a Replace decoder: each token by itself. */
bool tok_decoder_is_replace(const tok_decoder *d);
/* n is a Replace of one string by another. */
bool tok_norm_replaces(const tok_normalizer *n, tok_string *what, tok_string *with);
void tok_norm_prepend_init(tok_normalizer *out, const tok_string *what);
void tok_decoder_byte_fallback_init(tok_decoder *out);
void tok_decoder_fuse_init(tok_decoder *out);
void tok_decoder_strip_init(tok_decoder *out, tok_string content, size_t start, size_t stop);
void tok_decoder_sequence_init(tok_decoder *out, const tok_decoder *items, size_t n);

/* Added tokens, after vocabulary and normalizer. add may be called with the same content again: flags are replaced. */
lath_status tok_added_init(tok_load *l, size_t most);
lath_status tok_added_add(tok_load *l, const tok_added_token *token);
lath_status tok_added_finish(tok_load *l);
lath_status tok_added_load(tok_load *l, const json_value *list);
void tok_added_deinit(tok_added *a);

lath_status tok_vocab_txt_load(tok_load *l, const char *dir);

#endif
