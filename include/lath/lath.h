/* SPDX-License-Identifier: Apache-2.0
 *
 * lath.h: the stable interface of lath, a transformer inference engine. This header is the manual.
 *
 * From simple to expert:
 *     lath_runtime   threads, kernels, allocator, log: one a process is usual, several are independent
 *     lath_model     an opened model directory: weights in the map, configuration, tokenizer; immutable, shared between threads
 *     lath_embedder  the working memory of one stream of embedding calls; one thread at a time uses it
 *     lath_reranker  the same for scoring pairs of texts with a cross-encoder
 *     lath_session   one sequence of tokens in a language model, with the keys and values that it keeps; one thread at a time
 *     lath_chat      its chat template: conversations to the text and tokens that it was taught
 *     lath_inspect.h hooks, traces, other FFNs: what happens inside, and changing it; not stable yet
 *
 *     lath_runtime *rt; lath_model *model; lath_embedder *e; lath_error err;
 *     lath_runtime_create(NULL, &rt, &err);
 *     lath_model_open(rt, "models/all-MiniLM-L6-v2", NULL, &model, &err);
 *     lath_embedder_create(model, NULL, &e, &err);
 *     lath_text text = {"the cat sat on the mat", 22};
 *     float v[384];
 *     lath_embed(e, &text, 1, v, NULL, &err);
 *
 * Rules that hold for every call
 *   Errors    fallible calls return a lath_status and fill *err when err is not NULL. On failure no out parameter holds anything to release.
 *   Options   structs of options begin with `size_t struct_size`; a LATH_..._OPTIONS_INIT macro sets it and every default. NULL is all defaults.
 *   Threads   a runtime and a model may be used from any number of threads at once; compute of one runtime is done by one pool, callers
 *             take turns for a batch. Create and destroy of one object are the caller's to order.
 *   Lifetime  destroy embedders, rerankers, chats and sessions, then models, then the runtime.
 *   Strings   are UTF-8. Strings returned are borrowed from the object and live as long as it.
 *   Never     the library has no globals, reads no environment, prints nothing, never exits, and touches no network but for a remote
 *             FFN that its caller names (lath_inspect.h).
 *   Numbers   at a given ISA and precision the vector of a text is bit-identical alone or in any batch, at any number of threads.
 */
#ifndef LATH_H
#define LATH_H

#include "lath/lath_core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0". */
LATH_API const char *lath_version(void);

/* ---------------------------------------------------------------------------------------------------------------- runtime */

typedef struct lath_runtime lath_runtime;

/* Instruction sets in rising order per architecture; used as a ceiling: the best kernels at or below it are taken. */
typedef enum lath_isa {
    LATH_ISA_AUTO = 0, /* the best this machine has */
    LATH_ISA_REF = 1,  /* plain C, defines what is right */
    LATH_ISA_AVX2 = 2, /* AVX2 + FMA + F16C */
    LATH_ISA_AVX512 = 3,
    LATH_ISA_AMX = 4,
    LATH_ISA_NEON = 5
} lath_isa;

typedef struct lath_runtime_options {
    size_t struct_size;
    const lath_allocator *allocator; /* NULL: malloc; copied */
    int32_t n_threads;               /* 0: what affinity mask and cgroup quota allow; at most 256 */
    lath_isa isa;                    /* LATH_ERR_UNSUPPORTED when it is of another architecture */
    lath_log_fn log;                 /* NULL: silent */
    void *log_ctx;
} lath_runtime_options;
#define LATH_RUNTIME_OPTIONS_INIT                                        \
    {                                                                    \
        sizeof(lath_runtime_options), NULL, 0, LATH_ISA_AUTO, NULL, NULL \
    }

/* Starts n_threads - 1 sleeping threads. LATH_ERR_USAGE, _UNSUPPORTED, _NOMEM. */
LATH_API lath_status lath_runtime_create(const lath_runtime_options *opts, lath_runtime **out, lath_error *err);
LATH_API void lath_runtime_destroy(lath_runtime *rt); /* NULL is allowed */
LATH_API int32_t lath_runtime_threads(const lath_runtime *rt);
/* The instruction set in use: "ref", "avx2", ... */
LATH_API const char *lath_runtime_isa(const lath_runtime *rt);

/* ------------------------------------------------------------------------------------------------------------------ model */

typedef struct lath_model lath_model;

typedef enum lath_load { LATH_LOAD_MAP = 0, LATH_LOAD_COPY = 1 } lath_load;
/* How a product is computed: EXACT is f32-grade. AUTO is EXACT for float weights. BF16 and INT8 are refused (LATH_ERR_UNSUPPORTED). */
typedef enum lath_precision {
    LATH_PRECISION_AUTO = 0,
    LATH_PRECISION_EXACT = 1,
    LATH_PRECISION_BF16 = 2,
    LATH_PRECISION_INT8 = 3
} lath_precision;

typedef struct lath_model_options {
    size_t struct_size;
    lath_load load; /* MAP: zero copy; a file that shrinks while mapped raises SIGBUS. COPY: reads it, no such hazard */
    lath_precision precision;
} lath_model_options;
#define LATH_MODEL_OPTIONS_INIT                                        \
    {                                                                  \
        sizeof(lath_model_options), LATH_LOAD_MAP, LATH_PRECISION_AUTO \
    }

/* Opens a Hugging Face / sentence-transformers model directory: config.json, model.safetensors, tokenizer.json or vocab.txt, and modules.json
 * with the modules it names where it is there; or a GGUF file (any part of a split one): docs/formats/gguf.md. Everything is
 * checked against the configuration; nothing is guessed.
 * LATH_ERR_NOT_FOUND: no such directory or a file of it is missing. LATH_ERR_FORMAT: malformed, cut, wrong shapes, missing tensors (count and
 * first names in the message, all of them in the log). LATH_ERR_UNSUPPORTED: an architecture, activation, module or position type that lath does
 * not have, named. */
LATH_API lath_status lath_model_open(lath_runtime *rt, const char *path, const lath_model_options *opts,
                                     lath_model **out, lath_error *err);
LATH_API void lath_model_close(lath_model *model); /* NULL is allowed */

typedef enum lath_pooling {
    LATH_POOLING_AUTO =
        0, /* what 1_Pooling/config.json says; where there is none, what sentence-transformers takes: the last token of a causal
                              language model (...ForCausalLM without modules.json), else the mean */
    LATH_POOLING_CLS = 1,
    LATH_POOLING_MEAN = 2,
    LATH_POOLING_LAST = 3,
    LATH_POOLING_MAX = 4,
    LATH_POOLING_MEAN_SQRT_LEN = 5, /* sum / sqrt(length) */
    LATH_POOLING_WEIGHTED_MEAN = 6, /* weights 1, 2, 3... by position */
    LATH_POOLING_CONCAT = 7         /* reported only: the model concatenates several */
} lath_pooling;

typedef struct lath_model_info {
    size_t struct_size;       /* set it before the call */
    const char *architecture; /* "bert" */
    const char *path;
    const char *activation; /* as config.json names it */
    const char *weights;    /* dtype of most weight bytes: "F32", "BF16", "Q4_K" */
    int32_t n_layers, n_heads, vocab_size;
    int64_t d_model, d_ff;
    int32_t max_tokens; /* the window: min(position table, max_seq_length, rope_table_max_seq_len), specials included */
    int64_t d_embedding;     /* length of a vector (after a Dense module) */
    lath_pooling pooling;    /* what AUTO means for this model */
    int32_t normalized;      /* 1: vectors have length 1 by the model's own modules */
    int32_t n_tensors;       /* in the weight files */
    int32_t n_unused;        /* of them, not used by the architecture */
    int32_t n_unused_groups; /* of those, that the architecture knows */
    uint64_t n_params;       /* elements of the tensors that are used */
    uint64_t file_bytes;     /* of the weight files */
    uint64_t private_bytes;  /* memory that the model holds beside the map (tokenizer, small vectors, copies) */
    uint64_t batch_bytes;    /* working memory that an embedder takes for a full batch of the default size */
    int32_t n_prompts;
    const char *default_prompt; /* name or NULL */
    uint64_t fingerprint[2];    /* of configuration, tokenizer and samples of the weights: quick, for display */
    /* inference_config.json */
    int32_t eos_token_id;           /* -1: not given */
    int32_t rope_table_max_seq_len; /* a limit of the window; 0: not given */
    int32_t gpu_max_seq_len;
    const char *kind;             /* "embedder", "cross-encoder" (lath_rerank; no embeddings) or "language model" */
    const char *class_name;       /* as config.json's "architectures" names it, or NULL */
    int32_t n_labels;             /* of a cross-encoder; else 0 */
    const char *score_activation; /* of a cross-encoder, as the model declares it, or NULL */
    int32_t declares_pooling;     /* 1: the model's files say how vectors are pooled; 0: `pooling` is a default */
    /* Numbers that every token is multiplied with in the layers (tables that are looked up and the output head are not among them), and their bytes
     * in the files; the same of the output head, where there is one. */
    uint64_t layer_weights, layer_bytes, head_weights, head_bytes;
    /* of a mixture of experts; else 0: experts of a layer, those that a token goes through, hidden features of one */
    int32_t n_experts, n_top_experts;
    int64_t d_expert;
    int32_t integer_products; /* 1: a session multiplies tokens with weights in blocks as 8-bit integers */
    /* of a language model: the Jinja template of its files, or NULL; [n_end_ids] the tokens that end a text */
    const char *chat_template;
    const int32_t *end_ids;
    int32_t n_end_ids;
    int32_t n_dtypes; /* dtypes of the tensors in use */
} lath_model_info;
/* LATH_ERR_USAGE when info->struct_size is not one that this library knows. */
LATH_API lath_status lath_model_get_info(const lath_model *model, lath_model_info *info, lath_error *err);

/* A hash of everything that vectors depend on: configuration, tokenizer, every byte of the weight files in use; a copy elsewhere has the same. For
 * what outlives the model and must never meet another one, as a cache or an index. The first call reads the files, 10 GB a second where they are
 * in memory; later ones remember. */
LATH_API lath_status lath_model_get_identity(const lath_model *model, uint64_t out[2], lath_error *err);

typedef struct lath_tensor_info {
    const char *name; /* as in the file */
    const char *dtype;
    int32_t rank;
    const int64_t *shape; /* [rank] */
    uint64_t bytes;
    int32_t used; /* 0: the architecture does not use it */
} lath_tensor_info;
/* Tensor i of 0 .. n_tensors - 1 in file order. LATH_ERR_USAGE when out of range. */
LATH_API lath_status lath_model_get_tensor(const lath_model *model, int32_t i, lath_tensor_info *out, lath_error *err);
typedef struct lath_dtype_info {
    const char *dtype; /* as lath_tensor_info.dtype: "F32", "Q4_K" */
    int32_t n_tensors;
    uint64_t n_params, bytes;
} lath_dtype_info;
/* Dtype i of 0 .. n_dtypes - 1 of the tensors in use, the one of most bytes first. LATH_ERR_USAGE when out of range. */
LATH_API lath_status lath_model_get_dtype(const lath_model *model, int32_t i, lath_dtype_info *out, lath_error *err);

typedef struct lath_unused_info {
    const char *what; /* "vision tower", "MTP head" */
    int32_t n_tensors;
} lath_unused_info;
/* Group i of 0 .. n_unused_groups - 1 of tensors that the architecture knows and does not use. LATH_ERR_USAGE when out of range. */
LATH_API lath_status lath_model_get_unused(const lath_model *model, int32_t i, lath_unused_info *out, lath_error *err);

/* Prompt i of 0 .. n_prompts - 1 (config_sentence_transformers.json). */
LATH_API lath_status lath_model_get_prompt(const lath_model *model, int32_t i, const char **name, const char **text,
                                           lath_error *err);

/* Label i of 0 .. n_labels - 1 of a cross-encoder. LATH_ERR_USAGE when out of range. */
LATH_API lath_status lath_model_get_label(const lath_model *model, int32_t i, const char **name, lath_error *err);

/* The path of the mapped weight file that holds this address, or NULL. Async-signal-safe: for a SIGBUS handler. */
LATH_API const char *lath_model_file_at(const lath_model *model, const void *address);

/* -------------------------------------------------------------------------------------------------------------- tokenizer */

typedef struct lath_text {
    const char *data; /* need not be terminated; may hold 0 bytes */
    size_t len;       /* bytes */
} lath_text;

typedef struct lath_tokenizer lath_tokenizer;

/* Only the tokenizer of a GGUF file, or of a model directory: tokenizer.json; else a SentencePiece file (tokenizer.model, spiece.model,
 * sentencepiece.bpe.model), vocab.json with merges.txt, or vocab.txt, each with tokenizer_config.json. Immutable, shared between threads. LATH_ERR_UNSUPPORTED: a component or
 * field that lath does not have, named. */
LATH_API lath_status lath_tokenizer_open(lath_runtime *rt, const char *path, lath_tokenizer **out, lath_error *err);
LATH_API void lath_tokenizer_close(lath_tokenizer *tok); /* NULL is allowed; never close one that a model lent */
/* The model's own, borrowed. */
LATH_API const lath_tokenizer *lath_model_tokenizer(const lath_model *model);
/* Number of ids: largest id + 1. */
LATH_API int32_t lath_tokenizer_size(const lath_tokenizer *tok);
/* The token's text as the vocabulary writes it, or NULL when no token has this id. */
LATH_API const char *lath_tokenizer_token(const lath_tokenizer *tok, int32_t id);

typedef struct lath_tokens {
    int32_t *ids;      /* [n] */
    int32_t *type_ids; /* [n] segment of each token */
    uint32_t *offsets; /* [n][2] begin and end in bytes of the text; 0,0 for tokens that the template adds */
    size_t n;
    size_t n_untruncated; /* what n would be without a limit */
    size_t capacity;      /* of the three arrays; managed by the library */
    const lath_tokenizer *owner;
} lath_tokens;

typedef struct lath_encode_options {
    size_t struct_size;
    int32_t add_special; /* 1: with the tokens of the template ([CLS] ... [SEP]) */
    int32_t
        parse_special; /* 1: special tokens written in the text become those tokens; 0: they are plain text, no special token results */
    int64_t max_tokens; /* 0: no limit; else the text is cut so that n <= max_tokens, template tokens included */
} lath_encode_options;
#define LATH_ENCODE_OPTIONS_INIT             \
    {                                        \
        sizeof(lath_encode_options), 1, 1, 0 \
    }

/* Encodes one text. *out is zeroed before its first use, may be reused from call to call (its arrays grow), and is released with
 * lath_tokens_release. LATH_ERR_INPUT: text is not valid UTF-8. */
LATH_API lath_status lath_encode(const lath_tokenizer *tok, lath_text text, const lath_encode_options *opts,
                                 lath_tokens *out, lath_error *err);
LATH_API void lath_tokens_release(lath_tokens *tokens);

/* What is cut where one or two texts are over the limit. */
typedef enum lath_truncation {
    LATH_TRUNCATE_LONGEST_FIRST = 0, /* the longer text until both are of one length, then both */
    LATH_TRUNCATE_ONLY_FIRST = 1,    /* LATH_ERR_WINDOW where the rest alone is over the limit */
    LATH_TRUNCATE_ONLY_SECOND = 2
} lath_truncation;

typedef struct lath_parts_options {
    size_t struct_size;
    int32_t add_special, parse_special; /* as in lath_encode_options */
    int64_t max_tokens;                 /* 0: no limit; else of every part, template tokens included */
    lath_truncation truncation;
    int32_t cut_left; /* 1: the end of a text is kept, and parts go from the end to the beginning */
    int64_t
        stride; /* tokens that a part of a text has in common with the part before; less than what a part holds of it */
} lath_parts_options;
#define LATH_PARTS_OPTIONS_INIT                                                \
    {                                                                          \
        sizeof(lath_parts_options), 1, 1, 0, LATH_TRUNCATE_LONGEST_FIRST, 0, 0 \
    }

/* Part p is tokens begin[p] .. begin[p + 1] - 1. Part 0 is what lath_encode would keep; the other parts hold what was cut off, each under the
 * template again: for two texts every combination of their parts. */
typedef struct lath_parts {
    int32_t *ids;      /* [n] */
    int32_t *type_ids; /* [n] */
    uint32_t
        *offsets; /* [n][2] begin and end in bytes of the token's own text; 0,0 for tokens that the template adds */
    uint8_t *special_mask; /* [n] 1: the template added it */
    int8_t *source;        /* [n] index of the text that it is of; -1: the template added it */
    size_t n;              /* of all parts together */
    size_t *begin;         /* [n_parts + 1] */
    size_t n_parts;        /* at least 1 */
    size_t n_untruncated;  /* what n would be without a limit */
    void *memory;          /* the library's */
    const lath_tokenizer *owner;
} lath_parts;

/* Encodes one text or a pair (n_texts 1 or 2), with everything that a model can want: pairs, truncation on either side, overflowing parts.
 * *out is zeroed before its first use, may be reused from call to call, and is released with lath_parts_release. LATH_ERR_INPUT: err->item is
 * the text that is not valid UTF-8. LATH_ERR_USAGE: a limit below the template's tokens, a stride that leaves nothing new.
 * LATH_ERR_LIMIT: more than 2^30 tokens in all parts. */
LATH_API lath_status lath_encode_parts(const lath_tokenizer *tok, const lath_text *texts, size_t n_texts,
                                       const lath_parts_options *opts, lath_parts *out, lath_error *err);
LATH_API void lath_parts_release(lath_parts *parts);

/* Text of ids as the tokenizer's decoder gives it, terminated, released with lath_string_release(tok, ...). skip_special: without special
 * tokens. LATH_ERR_INPUT when an id is no token. */
LATH_API lath_status lath_decode(const lath_tokenizer *tok, const int32_t *ids, size_t n, int32_t skip_special,
                                 char **text, size_t *len, lath_error *err);
LATH_API void lath_string_release(const lath_tokenizer *tok, char *text);

/* Decoding while ids arrive, for one stream of text. One thread at a time per decoder; the tokenizer must outlive it. */
typedef struct lath_decoder lath_decoder;

/* skip_special: without special tokens. */
LATH_API lath_status lath_decoder_create(const lath_tokenizer *tok, int32_t skip_special, lath_decoder **out,
                                         lath_error *err);
LATH_API void lath_decoder_destroy(lath_decoder *d); /* NULL is allowed */
/* Adds n ids and gives the text that is certain now: whole characters, *text terminated, *len may be 0, borrowed until the next call. What
 * the calls give, lath_decoder_finish included, is what lath_decode gives for all ids. A character is given as soon as its last byte is known;
 * bytes that can no longer become one are given as U+FFFD at once. (With ByteFallback the reference turns a whole run of byte tokens into
 * U+FFFD when one of them is bad; characters of the run that were given before stay given.) LATH_ERR_INPUT when an id is no token: none of
 * the ids was added. */
LATH_API lath_status lath_decoder_push(lath_decoder *d, const int32_t *ids, size_t n, const char **text, size_t *len,
                                       lath_error *err);
/* The rest of the text: nothing more comes. The decoder is as new afterwards. */
LATH_API lath_status lath_decoder_finish(lath_decoder *d, const char **text, size_t *len, lath_error *err);

/* --------------------------------------------------------------------------------------------------------------- sampling */

typedef struct lath_logit_bias {
    int32_t id;
    float bias; /* is added to the logit; -infinity: the token never comes */
} lath_logit_bias;

/* How the next token is chosen from the logits [vocabulary], in this order:
 *     penalties    of every token in prompt and text so far, once per id: l > 0 ? l / repeat : l * repeat (Keskar et al. 2019), then
 *                  l - presence - frequency * (how often it is there)
 *     logit bias
 *     temperature  l / t; 0: the token of the largest logit, of equal ones the lowest id, and nothing below counts
 *     top-k        the k largest; of equal ones the lower ids
 *     softmax      with sums in f64
 *     min-p        without tokens less probable than min_p times the most probable (Nguyen et al. 2024)
 *     top-p        of what is left, the fewest most probable tokens that have top_p of its probability (Holtzman et al. 2020)
 *     one of them  the first, the most probable before the less probable, whose cumulated probability is over a random number
 * The same seed and the same logits give the same tokens; each token takes one number of the generator (xoshiro256++). The defaults change
 * nothing: tokens come with the probability that the model gives them. */
typedef struct lath_sample_options {
    size_t struct_size;
    double temperature;                                         /* at least 0 */
    int32_t top_k;                                              /* 0: all */
    double top_p;                                               /* over 0, at most 1; 1: all */
    double min_p;                                               /* at least 0, below 1; 0: all */
    double repeat_penalty, presence_penalty, frequency_penalty; /* over 0, 1: none; any number, 0: none; the same */
    uint64_t seed;
    const lath_logit_bias *bias; /* [n_bias], each id once; copied */
    size_t n_bias;
} lath_sample_options;
#define LATH_SAMPLE_OPTIONS_INIT                                                 \
    {                                                                            \
        sizeof(lath_sample_options), 1.0, 0, 1.0, 0.0, 1.0, 0.0, 0.0, 0, NULL, 0 \
    }

typedef struct lath_token_logprob {
    int32_t id;
    double
        logprob; /* natural logarithm of the probability under the model's own logits: before penalties, bias, masks, temperature */
} lath_token_logprob;

/* The k most probable of n tokens by their logits, best first, of equal ones the lower id. top: [k], k <= n. Sums are in f64.
 * LATH_ERR_FORMAT: a logit is NaN or +infinity. LATH_ERR_INPUT: all are -infinity. Any thread. */
LATH_API lath_status lath_logits_top(const lath_runtime *rt, const float *logits, size_t n, size_t k,
                                     lath_token_logprob *top, lath_error *err);
/* The logprob of one of n tokens. Errors as lath_logits_top, and LATH_ERR_INPUT: no such id. Any thread. */
LATH_API lath_status lath_logits_logprob(const lath_runtime *rt, const float *logits, size_t n, int32_t id,
                                         double *logprob, lath_error *err);

/* --------------------------------------------------------------------------------------------------- texts of a certain form */

/* What a text must be like: a JSON schema, or rules as text (docs/grammar.md has the syntax, and what of JSON Schema is enforced). Immutable, shared
 * between threads. Every text that comes to its end under a grammar fits it; of a schema some values that would fit never come (white space, long
 * numbers, properties in another order). */
typedef struct lath_grammar lath_grammar;

typedef enum lath_grammar_kind { LATH_GRAMMAR_TEXT = 0, LATH_GRAMMAR_JSON_SCHEMA = 1 } lath_grammar_kind;

/* name leads messages (a file name). LATH_ERR_INPUT: malformed, or no text can fit. LATH_ERR_UNSUPPORTED: a keyword or construct that cannot be enforced,
 * named with its place. LATH_ERR_LIMIT. The text is not needed afterwards. */
LATH_API lath_status lath_grammar_open(lath_runtime *rt, lath_grammar_kind kind, const char *name, lath_text text,
                                       lath_grammar **out, lath_error *err);
LATH_API void lath_grammar_close(lath_grammar *grammar); /* NULL is allowed */

/* Which tokens may come next while a text is made, for those who choose tokens themselves. One thread at a time uses it; grammar and tokenizer
 * must outlive it. */
typedef struct lath_matcher lath_matcher;

/* end_ids: [n_end_ids] tokens that end a text; they may come where the text is complete and nowhere else. n_logits: the ids that masks
 * are about. LATH_ERR_UNSUPPORTED: a tokenizer whose tokens stand for different texts in different places. */
LATH_API lath_status lath_matcher_create(const lath_grammar *grammar, const lath_tokenizer *tok, const int32_t *end_ids,
                                         size_t n_end_ids, int32_t n_logits, lath_matcher **out, lath_error *err);
LATH_API void lath_matcher_destroy(lath_matcher *m); /* NULL is allowed */
/* *mask: [(n_logits + 31) / 32], id may come when bit id % 32 of word id / 32 is set; borrowed until the next call. All 0: the text is complete,
 * nothing may follow, and there is no end token. LATH_ERR_INPUT: the text is not complete, and the vocabulary has no token for what must come.
 * LATH_ERR_LIMIT: a text can be read in too many ways at once. */
LATH_API lath_status lath_matcher_mask(lath_matcher *m, const uint32_t **mask, lath_error *err);
/* The token comes next. LATH_ERR_INPUT: it may not, and nothing has changed. */
LATH_API lath_status lath_matcher_accept(lath_matcher *m, int32_t id, lath_error *err);
LATH_API int32_t lath_matcher_complete(const lath_matcher *m); /* 1: the text so far fits */
LATH_API int32_t lath_matcher_ended(const lath_matcher *m);    /* 1: an end token came, or nothing may follow */
/* As new. */
LATH_API lath_status lath_matcher_reset(lath_matcher *m, lath_error *err);

/* --------------------------------------------------------------------------------------------------------------- embedding */

typedef struct lath_embedder lath_embedder;
typedef struct lath_cache lath_cache; /* see "cache" below */

/* Called on the caller's thread between batches of a call, and every 50 ms or so while one is computed; a result other than 0 stops the call
 * with LATH_ERR_INTERRUPTED, within milliseconds however long a text is. */
typedef int (*lath_progress_fn)(void *ctx, size_t texts_done, size_t texts_total);

enum { LATH_LAYER_FINAL = -1, LATH_LAYER_ALL = -2 };

typedef struct lath_embed_options {
    size_t struct_size;
    lath_pooling pooling;
    int32_t normalize; /* 1: length 1 where the model says so (default); 0: never; 2: always */
    int32_t
        dim; /* 0: all; else the first dim numbers, cut before normalising (Matryoshka). LATH_ERR_USAGE over d_embedding */
    const char *
        prompt_name; /* NULL: the model's default prompt; else one of its prompts, LATH_ERR_USAGE when it has none of that name */
    const char *prompt_text; /* not NULL: this text is put before every text ("" is none), whatever prompt_name says */
    int32_t max_tokens;      /* 0: the model's window; else a smaller one, template tokens included */
    int32_t no_truncate;     /* 1: a text over the window is LATH_ERR_WINDOW with err->item set */
    int32_t batch_tokens; /* 0: chosen by the library; tokens computed together (a longer text is a batch of its own) */
    lath_progress_fn progress;
    void *progress_ctx;
    lath_cache
        *cache; /* NULL: none; else vectors are looked up there first, and kept there. It must outlive the embedder */
    /* LATH_LAYER_FINAL: the model's own vectors. 0 (the embeddings) to n_layers: what is pooled of that layer's output instead, without the
     * model's Dense modules; n_layers is behind the final norm, where there is one. LATH_LAYER_ALL: of each, one behind the other. */
    int32_t layer;
} lath_embed_options;
#define LATH_EMBED_OPTIONS_INIT                                                                                      \
    {                                                                                                                \
        sizeof(lath_embed_options), LATH_POOLING_AUTO, 1, 0, NULL, NULL, 0, 0, 0, NULL, NULL, NULL, LATH_LAYER_FINAL \
    }

/* Its working memory grows with the largest batch seen and is then used again: a lath_embed that is no larger than one before it allocates
 * nothing. Strings of the options are copied. The model must outlive it. */
LATH_API lath_status lath_embedder_create(const lath_model *model, const lath_embed_options *opts, lath_embedder **out,
                                          lath_error *err);
LATH_API void lath_embedder_destroy(lath_embedder *e); /* NULL is allowed */
/* Length of its vectors. */
LATH_API int64_t lath_embedder_dim(const lath_embedder *e);
/* Vectors that it gives for a text: 1, or n_layers + 1 with LATH_LAYER_ALL. */
LATH_API int32_t lath_embedder_layers(const lath_embedder *e);

typedef struct lath_embed_stats {
    size_t struct_size; /* set it before the call */
    uint64_t n_texts, n_tokens;
    double seconds_tokenize; /* prompt and text to ids */
    double seconds_cache;    /* looking up in the cache */
    double seconds_forward;  /* the model's layers */
    double seconds_pool;     /* pooling, modules behind it, normalising, copying out */
} lath_embed_stats;
/* What an embedder has done so far. Not during a lath_embed of another thread. */
LATH_API lath_status lath_embedder_get_stats(const lath_embedder *e, lath_embed_stats *out, lath_error *err);
/* Bytes that it holds. */
LATH_API uint64_t lath_embedder_bytes(const lath_embedder *e);

typedef struct lath_embed_result {
    int32_t n_tokens;  /* that were computed: after truncation, prompt and specials included */
    int32_t truncated; /* 1: the text was longer than the window */
} lath_embed_result;

/* Embeds n texts. vectors: [n, layers, dim] row-major (layers: lath_embedder_layers, 1 for most), the caller's. results: [n] or NULL. One thread at a time per embedder.
 * LATH_ERR_INPUT, LATH_ERR_WINDOW: err->item is the index of the text; vectors are undefined then. LATH_ERR_FORMAT: NaN or infinite weights were met
 * (named). LATH_ERR_INTERRUPTED. The maths: Devlin et al. 2018 for the encoder, Reimers & Gurevych 2019 for pooling. */
LATH_API lath_status lath_embed(lath_embedder *e, const lath_text *texts, size_t n, float *vectors,
                                lath_embed_result *results, lath_error *err);

/* ------------------------------------------------------------------------------------------------------------------ cache */

/* Vectors that were computed before, shared by any number of embedders and threads. What it gives has the bits that
 * computing would give: a vector is found again only for the same token ids (compared, not only hashed) under the same
 * model, pooling, dimension, normalisation, instruction set, precision and version of lath. */

typedef enum lath_cache_policy {
    LATH_CACHE_FLUSH_ALL = 0, /* full, memory drops everything */
    LATH_CACHE_LRU = 1        /* full, memory drops what was not used for longest */
} lath_cache_policy;

typedef struct lath_cache_options {
    size_t struct_size;
    uint64_t max_entries; /* vectors in memory; 0: 10,000 */
    lath_cache_policy policy;
    const char
        *path; /* NULL: memory only; else a file that also keeps every vector: made when it is not there, bound to
                         the first model that is used with it, on a local file system safe under several processes and
                         a kill at any moment */
    int32_t lock_wait_ms; /* how long to wait for a file that another process has locked; 0: 10,000 */
} lath_cache_options;
#define LATH_CACHE_OPTIONS_INIT                                      \
    {                                                                \
        sizeof(lath_cache_options), 0, LATH_CACHE_FLUSH_ALL, NULL, 0 \
    }

/* The path is copied; the runtime must outlive the cache. LATH_ERR_FORMAT: the file is no cache, cut or damaged; it is
 * left as it is. LATH_ERR_NOT_FOUND: the path is no regular file. LATH_ERR_IO: it cannot be made, written or locked.
 * Creating an embedder on a cache whose file holds another model's vectors is LATH_ERR_FORMAT; lath_embed gives
 * LATH_ERR_FORMAT when it meets damage, LATH_ERR_IO when the file is locked for too long or the disk is full. */
LATH_API lath_status lath_cache_open(lath_runtime *rt, const lath_cache_options *opts, lath_cache **out,
                                     lath_error *err);
/* After its embedders. NULL is allowed. */
LATH_API void lath_cache_close(lath_cache *cache);

typedef struct lath_cache_stats {
    size_t struct_size;               /* set it before the call */
    uint64_t hits, disk_hits, misses; /* texts found in memory, found in the file, computed */
    uint64_t flushes, evictions;      /* times that everything was dropped; single entries dropped (LRU) */
    uint64_t entries, bytes;          /* held in memory now */
} lath_cache_stats;
/* Any thread. LATH_ERR_USAGE when stats->struct_size is not one that this library knows. */
LATH_API lath_status lath_cache_get_stats(lath_cache *cache, lath_cache_stats *stats, lath_error *err);

/* Writes the vectors that the embedder's cache holds for its model and settings to a file of records
 * (docs/formats/embcache.md), or takes those of such a file in. Of a cache with a file it is the file's vectors that are
 * written. Everything is checked before anything is taken; the token ids are in the file, so that a vector found later
 * is the text's own. *n, when n is not NULL, is the number of records. One thread at a time per embedder.
 * LATH_ERR_USAGE: the embedder has no cache. LATH_ERR_FORMAT: no such file of records, damaged, or of another model or
 * other settings. LATH_ERR_NOT_FOUND, _IO, _NOMEM. */
LATH_API lath_status lath_cache_export(lath_embedder *e, const char *path, uint64_t *n, lath_error *err);
LATH_API lath_status lath_cache_import(lath_embedder *e, const char *path, uint64_t *n, lath_error *err);

/* --------------------------------------------------------------------------------------------------------------- reranking */

/* The working memory of one stream of scoring calls on a cross-encoder, or on a language model that is asked whether a document answers the query
 * as Qwen3-Reranker is (its logit is that of "yes" less that of "no"; special tokens written in texts are plain text); one thread at a time uses it. */
typedef struct lath_reranker lath_reranker;

/* How a logit becomes a score. */
typedef enum lath_activation {
    LATH_ACTIVATION_MODEL =
        0, /* as the model declares; where it declares nothing: sigmoid for one label, none for several */
    LATH_ACTIVATION_NONE = 1, /* the score is the logit */
    LATH_ACTIVATION_SIGMOID = 2
} lath_activation;

typedef struct lath_rerank_options {
    size_t struct_size;
    lath_activation activation;
    const char *label; /* NULL: the only one; else the name of one of the model's labels, or its number */
    const char *prompt_name, *prompt_text; /* as in lath_embed_options; put before the query. To a language model: the
                                              instruction, "" is its own */
    int32_t max_tokens;   /* 0: the model's window; else a smaller one; of query, document and template together */
    int32_t no_truncate;  /* 1: a pair over the window is LATH_ERR_WINDOW with err->item set */
    int32_t batch_tokens; /* as in lath_embed_options */
    lath_progress_fn progress;
    void *progress_ctx;
} lath_rerank_options;
#define LATH_RERANK_OPTIONS_INIT                                                                  \
    {                                                                                             \
        sizeof(lath_rerank_options), LATH_ACTIVATION_MODEL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL \
    }

/* LATH_ERR_UNSUPPORTED: the model scores no pairs, or declares an activation that lath does not have (named; another choice of `activation`
 * goes on). LATH_ERR_USAGE: it has several labels and none is asked for, or none of that name. Strings of the options are copied. The model must
 * outlive it. */
LATH_API lath_status lath_reranker_create(const lath_model *model, const lath_rerank_options *opts, lath_reranker **out,
                                          lath_error *err);
LATH_API void lath_reranker_destroy(lath_reranker *r); /* NULL is allowed */
/* Bytes that it holds. */
LATH_API uint64_t lath_reranker_bytes(const lath_reranker *r);

typedef struct lath_rerank_result {
    float score;       /* the logit through the activation */
    float logit;       /* what the model gives; orders documents also where scores saturate */
    int32_t n_tokens;  /* of the pair that were computed: after truncation, template included */
    int32_t truncated; /* 1: the pair was longer than the window; the longer of its texts was cut first */
} lath_rerank_result;

/* Scores each of n documents for the query. results: [n], in the order of the documents. One thread at a time per reranker.
 * LATH_ERR_INPUT: an empty query or invalid UTF-8, LATH_ERR_WINDOW: err->item is the index of the document, or -1 for the query; results are
 * undefined then. LATH_ERR_FORMAT: NaN or infinite weights were met (named). LATH_ERR_INTERRUPTED. */
LATH_API lath_status lath_rerank(lath_reranker *r, lath_text query, const lath_text *documents, size_t n,
                                 lath_rerank_result *results, lath_error *err);
/* order: [n] := indices of results, the largest logit first; of equal ones the lower index. */
LATH_API void lath_rerank_order(const lath_rerank_result *results, size_t n, size_t *order);

/* ---------------------------------------------------------------------------------------------------------------- session */

/* One sequence of tokens in a language model. Keys and values of its tokens are kept, so that a token that is added costs one step; layers with a
 * sliding window keep that window and little more. All memory is taken at creation; no call allocates. One thread at a time uses a session;
 * sessions of one model are independent.
 *
 * Tokens added by one call of two or more are computed together (prefill), a single one as a step: the two differ by rounding (1e-4 of the logits with
 * LATH_PRECISION_EXACT). How a prefill is cut into batches, and the number of threads, change no bit.
 *
 * Layers that recur keep a state of constant size, of which the last tokens cannot be taken away. Snapshots of it are kept (snapshot_bytes): where calls that add
 * several tokens begin and end, before the last two messages that one of them adds (behind the tokens that end a message), every 512 tokens of a long one and
 * every 256 that come one by one; the far ones are thinned out. lath_session_sync and lath_session_rewind go back to the nearest one. To go back to it is exact; what
 * follows differs by rounding (1e-4) from the same tokens read in other calls, and has the same bits after the same calls. */
typedef struct lath_session lath_session;

/* How keys and values are kept. AUTO: as F16 where the model's weights have fewer bits than f32 and the model is opened with LATH_PRECISION_AUTO, else F32. */
typedef enum lath_kv { LATH_KV_AUTO = 0, LATH_KV_F32 = 1, LATH_KV_F16 = 2 } lath_kv;

typedef struct lath_session_options {
    size_t struct_size;
    int32_t
        ctx; /* tokens that it may hold; 0: 4096 or the model's window if that is less. LATH_ERR_USAGE over the window */
    lath_kv kv;
    lath_progress_fn
        progress; /* NULL, or called at once and then every 50 ms or so while more than one token is added, with how many tokens are held and will be */
    void *progress_ctx;
    uint64_t
        snapshot_bytes; /* most that snapshots of layers that recur may take; 0: 8 of them, less where that is over 512 MiB, but 3; less than one takes (1, say): none */
} lath_session_options;
#define LATH_SESSION_OPTIONS_INIT                                    \
    {                                                                \
        sizeof(lath_session_options), 0, LATH_KV_AUTO, NULL, NULL, 0 \
    }

/* What a session of these options takes, without making one. */
typedef struct lath_session_plan {
    size_t struct_size; /* set it before the call */
    int32_t ctx, most;  /* tokens that it may hold; the model's window */
    uint64_t kv_bytes, work_bytes;
    uint64_t token_bytes;      /* of keys and values that a token takes, in all layers */
    uint64_t far_bytes;        /* that a token takes once those layers that have a window go on overwriting it */
    int32_t n_windows, window; /* layers with a sliding window; the widest of them */
    int32_t n_kv_heads, head_dim;
    int32_t tied;                     /* 1: the output head is the matrix of the embeddings */
    uint64_t recurrent_bytes;         /* states of the layers that recur, whose size is the same at any length */
    uint64_t snapshot_bytes;          /* snapshots of them; memory is used as they are taken */
    int32_t n_recurrent, n_snapshots; /* layers that recur; snapshots that there is room for */
} lath_session_plan;
/* Errors as lath_session_create has them, and LATH_ERR_USAGE when out->struct_size is not one that this library knows. */
LATH_API lath_status lath_session_get_plan(const lath_model *model, const lath_session_options *opts,
                                           lath_session_plan *out, lath_error *err);

/* LATH_ERR_UNSUPPORTED: the model has no output head, or looks both ways. LATH_ERR_NOMEM. */
LATH_API lath_status lath_session_create(const lath_model *model, const lath_session_options *opts, lath_session **out,
                                         lath_error *err);
LATH_API void lath_session_destroy(lath_session *s); /* NULL is allowed */

/* Tokens held; most that it can hold; the tokens themselves, borrowed until the next call. */
LATH_API size_t lath_session_size(const lath_session *s);
LATH_API size_t lath_session_capacity(const lath_session *s);
LATH_API const int32_t *lath_session_tokens(const lath_session *s);

/* Adds n tokens (0: nothing happens); the logits of the last are there then. LATH_ERR_KV_FULL: more than it can hold, nothing was added.
 * LATH_ERR_INPUT: an id that the model has no embedding for. LATH_ERR_FORMAT: weights or logits that are not finite. After an error lath_session_size says
 * what is held: what was before, or less where that could not be kept. */
LATH_API lath_status lath_session_append(lath_session *s, const int32_t *ids, size_t n, lath_error *err);
/* Makes the session hold exactly these n >= 1 tokens: keeps the longest common prefix, computes the rest (the last token at least where its logits are not
 * there). *reused (may be NULL): tokens that were kept. Errors as lath_session_append has them. */
LATH_API lath_status lath_session_sync(lath_session *s, const int32_t *ids, size_t n, size_t *reused, lath_error *err);
/* Drops all tokens behind the first n and returns how many are held then: n, or 0 where a sliding window that the next token would see has been
 * overwritten (more than 512 tokens further on). In a model with layers that recur: as many as the nearest snapshot below holds, n where n is marked. */
LATH_API size_t lath_session_rewind(lath_session *s, size_t n);
/* What is held now can be gone back to exactly (lath_session_rewind, lath_session_sync), bit for bit, until it is cut off or lath_session_unmark is called with
 * its number of tokens. LATH_ERR_KV_FULL: as many are marked as there is room for, one snapshot less than lath_session_plan has. A model without layers
 * that recur needs no marks, and gets none. */
LATH_API lath_status lath_session_mark(lath_session *s, lath_error *err);
LATH_API void lath_session_unmark(lath_session *s, size_t n);
/* The raw logits [vocab_size] of the last token, borrowed until the next call. LATH_ERR_USAGE: none has been computed since a rewind. */
LATH_API lath_status lath_session_logits(const lath_session *s, const float **logits, lath_error *err);
/* As lath_session_append, and fn sees the logits [vocab_size] of every token in turn (`at`: its place in the session); what it returns, if not 0, ends
 * the call with LATH_ERR_INTERRUPTED. */
typedef int (*lath_logits_fn)(void *ctx, size_t at, const float *logits);
LATH_API lath_status lath_session_append_each(lath_session *s, const int32_t *ids, size_t n, lath_logits_fn fn,
                                              void *ctx, lath_error *err);

typedef struct lath_session_stats {
    size_t struct_size;
    uint64_t kv_bytes, work_bytes;        /* keys and values; activations, logits, scratch */
    uint64_t n_prefill, n_step;           /* tokens computed together, and alone */
    double seconds_prefill, seconds_step; /* for all of them */
    uint64_t recurrent_bytes;             /* states of layers that recur */
    uint64_t snapshot_bytes;              /* room for snapshots of them */
    uint64_t n_restored;                  /* times that one was gone back to */
    int32_t n_snapshots;                  /* that are held */
} lath_session_stats;
LATH_API lath_status lath_session_get_stats(const lath_session *s, lath_session_stats *out, lath_error *err);

/* -------------------------------------------------------------------------------------------------------------- generation */

/* How a model keeps what it thinks apart from its answer: a block that the text begins with, between two markers. Where they are found in a text, however
 * tokens cut them, what is between them is told as `reasoning`, what is behind as `text`; white space around both that belongs to the markers is left out. A
 * block that never ends is all reasoning; markers further on in the answer are text of it. lath_chat_reasoning knows those of a model. */
typedef struct lath_reasoning {
    lath_text begin, end; /* "<think>", "</think>"; both empty: they are not known, nothing is told apart */
    /* How a block is ended that is to end now: the end marker with the white space that the template has around it; empty: the marker alone. */
    lath_text close;
    int32_t has_switch; /* 1: the template can be told whether to think (lath_chat_input.think) */
} lath_reasoning;

typedef enum lath_finish {
    LATH_FINISH_STOP = 0,  /* an end token, or a stop string */
    LATH_FINISH_LENGTH = 1 /* max_tokens, or the session is full */
} lath_finish;

typedef struct lath_generate_options {
    size_t struct_size;
    int32_t max_tokens; /* tokens of the text; 0: none is wanted; -1: until it ends or the session is full */
    const lath_sample_options *sample; /* NULL: the defaults */
    const lath_text
        *stop; /* [n_stop] strings that end the text and are not part of it, however tokens cut them; none empty */
    size_t n_stop;
    const int32_t *end_ids; /* [n_end_ids] tokens that end it besides those of the model's files */
    size_t n_end_ids;
    int32_t ignore_end; /* 1: no token ends it (to measure) */
    int32_t n_logprobs; /* 0: none; K: with each token the K most probable ones and its own logprob */
    int32_t
        new_text; /* 1: the text stands alone, as an answer in a conversation; 0: it goes on from the prompt, its first space is kept */
    const lath_grammar *
        grammar; /* not NULL: what the text must be like; it ends when it is complete and nothing may follow, and only then at an end token */
    /* Not NULL: the text may begin with a block of reasoning. Stop strings do not match in it. A grammar is about the answer alone: the block, which the
     * model may still begin, is free text, only that no token ends the text in it; the white space of `close` follows it, then the grammar holds. */
    const lath_reasoning *reasoning;
    int32_t reasoning_open;   /* 1: the prompt ends inside the block (lath_chat_prompt.reasoning_open) */
    int32_t reasoning_budget; /* N: behind N tokens of the block `close` comes, as tokens of the text; -1: none */
} lath_generate_options;
#define LATH_GENERATE_OPTIONS_INIT                                                            \
    {                                                                                         \
        sizeof(lath_generate_options), -1, NULL, NULL, 0, NULL, 0, 0, 0, 0, NULL, NULL, 0, -1 \
    }

/* A step of generation. Pointers are borrowed during the call. */
typedef struct lath_generated {
    int32_t id;       /* the token; -1: none, the text that was held back at the end */
    const char *text; /* what can be given out now, in whole characters: never a part of a stop string; may be empty */
    size_t len;
    double logprob;                /* of the token, when n_logprobs > 0 */
    const lath_token_logprob *top; /* [n_top] */
    size_t n_top;
    const char *reasoning; /* what is thought (opts->reasoning), in whole characters; may be empty */
    size_t reasoning_len;
} lath_generated;
/* A result other than 0 ends the generation with LATH_ERR_INTERRUPTED. */
typedef int (*lath_generated_fn)(void *ctx, const lath_generated *g);

typedef struct lath_generate_result {
    size_t struct_size;
    lath_finish finish;
    size_t n_prompt, n_reused,
        n_tokens; /* tokens of the prompt; those of them that the session had; tokens generated */
    double seconds_prompt, seconds_tokens;
    size_t n_reasoning; /* of n_tokens those inside the block, its end marker included */
} lath_generate_result;

/* Makes the session hold the n >= 1 tokens of the prompt (lath_session_sync), then chooses tokens one by one as opts->sample says and tells fn of each.
 * An end token is neither told nor kept. fn and result may be NULL. Afterwards the session holds prompt and text, the last token excepted, so that a
 * conversation goes on at the cost of what is new. LATH_ERR_KV_FULL: the prompt is longer than the session; LATH_ERR_USAGE: an option out of range. */
LATH_API lath_status lath_generate(lath_session *s, const int32_t *prompt, size_t n, const lath_generate_options *opts,
                                   lath_generated_fn fn, void *ctx, lath_generate_result *result, lath_error *err);

/* ----------------------------------------------------------------------------------------------------------- conversations */

/* The chat template of a model: conversations to the text and the tokens that the model was taught. It is a program in the language Jinja, of the
 * model's files (chat_template.jinja, chat_template.json, tokenizer_config.json, of several the one called "default", with tools "tool_use"; in a GGUF
 * file tokenizer.chat_template), and is run as transformers runs it. Its work and memory are bounded. Immutable, shared between threads. */
typedef struct lath_chat lath_chat;

typedef struct lath_chat_options {
    size_t struct_size;
    lath_text template_text; /* data not NULL: this template instead of the model's */
} lath_chat_options;
#define LATH_CHAT_OPTIONS_INIT                 \
    {                                          \
        sizeof(lath_chat_options), { NULL, 0 } \
    }

/* LATH_ERR_UNSUPPORTED: the model has no template, or one with a construct that lath does not have (line and construct are named). LATH_ERR_FORMAT: it is no
 * valid template. The model must outlive it. */
LATH_API lath_status lath_chat_create(const lath_model *model, const lath_chat_options *opts, lath_chat **out,
                                      lath_error *err);
/* The same of the files of a tokenizer alone, as lath_tokenizer_open takes them. The runtime must outlive it. */
LATH_API lath_status lath_chat_open(lath_runtime *rt, const char *path, const lath_chat_options *opts, lath_chat **out,
                                    lath_error *err);
LATH_API void lath_chat_destroy(lath_chat *chat); /* NULL is allowed */
LATH_API const lath_tokenizer *lath_chat_tokenizer(const lath_chat *chat);
/* The template's text. */
LATH_API const char *lath_chat_template(const lath_chat *chat);
/* The special token that the template writes behind an answer, which ends the model's turn; -1: none. For lath_generate_options.end_ids. */
LATH_API int32_t lath_chat_end_id(const lath_chat *chat);
/* How the model shows that it thinks, borrowed, for lath_generate_options.reasoning; NULL: it is not known to think. It is known by a switch of its
 * template, or by markers that are common ("<think>", "[THINK]", "<|START_THINKING|>", ...) when the template writes their end or each is a token of its
 * own. The white space around them, and whether there is a switch, is found by rendering conversations. */
LATH_API const lath_reasoning *lath_chat_reasoning(const lath_chat *chat);

/* What a template is told about thinking, through the variable that it reads for it (enable_thinking, thinking, thinking_mode). Where it has none, OFF changes
 * nothing (reasoning_budget 0 of lath_generate ends a block where it begins), and ON is LATH_ERR_UNSUPPORTED unless the model thinks anyway. */
typedef enum lath_think {
    LATH_THINK_AUTO = 0, /* as the template does it */
    LATH_THINK_ON = 1,
    LATH_THINK_OFF = 2
} lath_think;

typedef struct lath_message {
    const char *role; /* "system", "user", "assistant", ... */
    lath_text content;
    lath_text reasoning; /* what the model thought before it: the template decides what becomes of it. Empty: none */
} lath_message;

typedef struct lath_chat_input {
    size_t struct_size;
    const lath_message *messages; /* [n_messages] */
    size_t n_messages;
    /* Not NULL, instead: a JSON array of messages as they are common, {"role":..., "content": text or parts, "tool_calls":[...]}. Members that are null
     * are left out; "reasoning_content", "thinking" and "reasoning" are one thing. */
    lath_text messages_json;
    lath_text tools_json, documents_json; /* JSON arrays; NULL: none */
    lath_text
        variables_json; /* a JSON object of more variables of the template: {"enable_thinking":false}; NULL: none */
    int32_t no_generation_prompt; /* 1: the conversation alone; 0: and the beginning of an answer */
    int32_t continue_last;        /* 1: the last message is not closed: the model goes on with it */
    int32_t has_date;             /* 1: date is given; else a template that asks for it is LATH_ERR_INPUT */
    int64_t date;                 /* seconds since 1970, in the local time that the template is to write */
    lath_think think;
} lath_chat_input;
#define LATH_CHAT_INPUT_INIT                                                                                      \
    {                                                                                                             \
        sizeof(lath_chat_input), NULL, 0, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, 0, 0, 0, 0, LATH_THINK_AUTO \
    }

typedef struct lath_chat_prompt {
    const char *text; /* [len] terminated */
    size_t len;
    const int32_t *ids; /* [n] */
    size_t n;
    /* 1: it ends behind a begin marker that the template wrote, or in a block that the last message, which goes on, began. */
    int32_t reasoning_open;
    void *memory; /* the library's */
    const lath_tokenizer *tokenizer;
} lath_chat_prompt;

/* Renders a conversation. *out is zeroed before its first use, may be reused from call to call, and is released with lath_chat_prompt_release.
 *
 * ids are those of the text without tokens that the tokenizer would add: a BOS is there when the template writes one. Special tokens are what the template writes,
 * with its own words, a special token's name (bos_token), or a role that is a plain word of at most 32 letters, digits, '_' and '-'. Text of messages, tools,
 * documents and variables is traced through the template to the last byte: a special token written there, or only in part there, is plain text. (Added
 * tokens that the tokenizer's file does not call special, as "<think>" of some models, are found everywhere.)
 *
 * LATH_ERR_INPUT: the template refuses the conversation, with its own words, or does not fit it (err->item: the message, where it is known); JSON that is none.
 * LATH_ERR_UNSUPPORTED: it meets a construct that is not there. LATH_ERR_LIMIT: too much work. */
LATH_API lath_status lath_chat_render(const lath_chat *chat, const lath_chat_input *in, lath_chat_prompt *out,
                                      lath_error *err);
LATH_API void lath_chat_prompt_release(lath_chat_prompt *prompt); /* a zeroed one is allowed */

/* ----------------------------------------------------------------------------------------------------------------- vectors */

/* Dot product of f32 vectors of d numbers: of normalised vectors the cosine. */
LATH_API float lath_dot(const lath_runtime *rt, const float *a, const float *b, int64_t d);
/* dot(query, row i) for n rows of rows: [n, d] into out: [n], on the pool. */
LATH_API lath_status lath_dot_rows(lath_runtime *rt, const float *query, const float *rows, size_t n, int64_t d,
                                   float *out, lath_error *err);
/* Cosine of two vectors of d numbers, in f64; 0 where one is all zero. */
LATH_API double lath_cosine(const float *a, const float *b, int64_t d);

/* -------------------------------------------------------------------------------------------------------- vector index */

/* The vectors of a corpus in one file that is mapped and searched exactly: every row is compared. Rows and queries have
 * length 1 (embed them with normalize = 2): rows are chosen by dot product, the score is the cosine. The file says what
 * it was made from; whoever opens it compares the keys. docs/formats/index.md describes it. */
typedef struct lath_index_key {
    uint64_t model[2];     /* lath_model_get_identity */
    uint64_t settings;     /* a hash of what else decides the vectors: pooling, dim, prompt, window, ISA, precision */
    uint64_t corpus[2];    /* a hash of the corpus file */
    uint64_t corpus_bytes; /* its size */
} lath_index_key;

/* Where the text of a row lies in the corpus file, in bytes. */
typedef struct lath_span {
    uint64_t offset, len;
} lath_span;

/* How the numbers of a row are kept. */
typedef enum lath_index_type {
    LATH_INDEX_F32 = 1, /* as they are: 4 bytes a number */
    LATH_INDEX_F16 = 2, /* the nearest binary16: 2 bytes; scores of vectors of length 1 within 5e-4, typically 1e-5 */
    LATH_INDEX_INT8 =
        3 /* 127 steps to either side of 0 and an f32 scale a row that keeps its length: 1 byte and 4 a row;
                           scores typically within 1e-3; at most 2^20 numbers */
} lath_index_type;

typedef struct lath_index_options {
    size_t struct_size;
    lath_index_type type;
} lath_index_options;
#define LATH_INDEX_OPTIONS_INIT                    \
    {                                              \
        sizeof(lath_index_options), LATH_INDEX_F32 \
    }

typedef struct lath_index_writer lath_index_writer;
typedef struct lath_index lath_index;

/* Writes to a temporary file beside path; rows are added in order, d numbers each. One thread at a time.
 * LATH_ERR_IO, _USAGE, _NOMEM. */
LATH_API lath_status lath_index_create(lath_runtime *rt, const char *path, const lath_index_key *key, int64_t d,
                                       lath_index_writer **out, lath_error *err);
/* The same with options. Temporary files of path that a killed process has left are removed. */
LATH_API lath_status lath_index_create_with(lath_runtime *rt, const char *path, const lath_index_key *key, int64_t d,
                                            const lath_index_options *opts, lath_index_writer **out, lath_error *err);
/* vectors: [n, d]; spans: [n], each inside key->corpus_bytes. LATH_ERR_INPUT: err->item is a vector with a number that
 * the type cannot hold (f16, int8: not finite; f16: over 65504). After a failure only lath_index_abort is of use. */
LATH_API lath_status lath_index_add(lath_index_writer *w, const float *vectors, const lath_span *spans, size_t n,
                                    lath_error *err);
/* What is kept beside the vector of a row. */
typedef struct lath_index_row {
    lath_span span;
    uint64_t text[2]; /* a hash of the text, by which a later index may find that it has it already; 0: not known */
} lath_index_row;
/* As lath_index_add. rows: [n]. */
LATH_API lath_status lath_index_add_rows(lath_index_writer *w, const float *vectors, const lath_index_row *rows,
                                         size_t n, lath_error *err);
/* Adds vectors of another index of the same d, those of its rows first .. first + n, as what `rows` [n] says. From the
 * same type they are copied, from f32 converted; LATH_ERR_USAGE between other types. LATH_ERR_FORMAT: `from` is damaged. */
LATH_API lath_status lath_index_copy_rows(lath_index_writer *w, const lath_index *from, uint64_t first,
                                          const lath_index_row *rows, size_t n, lath_error *err);
/* The temporary file's path, for a signal handler that has to remove it. */
LATH_API const char *lath_index_temp_path(const lath_index_writer *w);
/* Finishes the file and renames it to path, replacing what is there. Releases w whatever the result. */
LATH_API lath_status lath_index_commit(lath_index_writer *w, lath_error *err);
/* Removes the temporary file and releases w. NULL is allowed. */
LATH_API void lath_index_abort(lath_index_writer *w);

/* Checks header and sizes. Vectors are checked, block by block, when a search reads them for the first time, so that
 * the file is read once and nothing unchecked is used. The runtime must outlive it. LATH_ERR_NOT_FOUND;
 * LATH_ERR_FORMAT: foreign, cut or damaged; LATH_ERR_UNSUPPORTED: made by an older version of the library: make it
 * again. */
LATH_API lath_status lath_index_open(lath_runtime *rt, const char *path, lath_load load, lath_index **out,
                                     lath_error *err);
LATH_API void lath_index_close(lath_index *index); /* NULL is allowed */
/* Compares the whole file with its checksums. LATH_ERR_FORMAT says what is damaged. */
LATH_API lath_status lath_index_verify(const lath_index *index, lath_error *err);

typedef struct lath_index_info {
    size_t struct_size; /* set it before the call */
    uint64_t n;         /* rows */
    int64_t d;          /* numbers of a row */
    uint64_t file_bytes;
    lath_index_key key;
    lath_index_type type;
} lath_index_info;
/* LATH_ERR_USAGE when info->struct_size is not one that this library knows. */
LATH_API lath_status lath_index_get_info(const lath_index *index, lath_index_info *info, lath_error *err);
/* LATH_ERR_USAGE when there is no such row; LATH_ERR_FORMAT when the file is damaged there. */
LATH_API lath_status lath_index_get_span(const lath_index *index, uint64_t row, lath_span *out, lath_error *err);
LATH_API lath_status lath_index_get_row(const lath_index *index, uint64_t row, lath_index_row *out, lath_error *err);

typedef struct lath_hit {
    uint64_t row;
    float score;
} lath_hit;
/* The k rows of the largest score for each of n queries, best first; of equal scores the lower row comes first; a score
 * that is not a number comes last. queries: [n, d]; hits: [n, min(k, rows)]. Any number of threads at once; the result
 * does not depend on the number of the runtime's threads.
 * Scores are cosines, in f64, of the query and the row as it is kept. Candidates (k + k / 2 + 16 of them) are chosen by
 * dot products in f32, of int8 rows in integers with the query rounded to 16 bits: which rows are in the result is
 * exact but for rows whose scores differ by less than the error of those, about 1e-6 (int8: 1e-5).
 * LATH_ERR_FORMAT: a block of the file is damaged. LATH_ERR_INPUT: err->item is a query with a number that is not finite. */
LATH_API lath_status lath_index_search(const lath_index *index, const float *queries, size_t n, size_t k,
                                       lath_hit *hits, lath_error *err);

typedef struct lath_index_search_options {
    size_t struct_size;
    size_t k;               /* at least 1 */
    const uint8_t *allowed; /* [rows] 0: the row is no result; NULL: every row may be one */
} lath_index_search_options;
#define LATH_INDEX_SEARCH_OPTIONS_INIT              \
    {                                               \
        sizeof(lath_index_search_options), 10, NULL \
    }
/* As lath_index_search, among the allowed rows. hits: [n, *n_hits] with *n_hits = min(k, allowed rows): room for
 * n * k of them does. */
LATH_API lath_status lath_index_search_with(const lath_index *index, const float *queries, size_t n,
                                            const lath_index_search_options *opts, lath_hit *hits, size_t *n_hits,
                                            lath_error *err);

/* The index file's path when this address is in its map, else NULL. Async-signal-safe: for a SIGBUS handler. */
LATH_API const char *lath_index_file_at(const lath_index *index, const void *address);

/* --------------------------------------------------------------------------------------------------------------- quantise */

/* What the matrices of a GGUF file are stored as. Vectors and norms are always f32. */
typedef enum lath_gguf_type {
    LATH_GGUF_F32 = 0,
    LATH_GGUF_F16 = 1,
    LATH_GGUF_BF16 = 2,
    LATH_GGUF_Q8_0 = 3, /* blocks of 32 numbers of 8 bits */
    LATH_GGUF_Q4_0 = 4, /* of 4 bits; the output matrix is Q6_K */
    LATH_GGUF_Q4_K = 5, /* blocks of 256 numbers of 4 bits; the output matrix is Q6_K */
    LATH_GGUF_Q6_K = 6
} lath_gguf_type;

typedef struct lath_quantize_options {
    size_t struct_size;
    lath_gguf_type type;
    const char *name;          /* general.name; NULL: that of the directory */
    lath_progress_fn progress; /* counts kilobytes of the file */
    void *progress_ctx;
} lath_quantize_options;
#define LATH_QUANTIZE_OPTIONS_INIT                                     \
    {                                                                  \
        sizeof(lath_quantize_options), LATH_GGUF_F16, NULL, NULL, NULL \
    }

typedef struct lath_quantize_result {
    size_t struct_size;       /* set it before the call */
    const char *architecture; /* general.architecture; static */
    uint64_t bytes;           /* of the file */
    uint64_t source_bytes;    /* of the weights that went into it */
    int32_t n_tensors;
    int32_t n_other; /* matrices that are of another type, because their rows are no whole number of blocks */
} lath_quantize_result;
#define LATH_QUANTIZE_RESULT_INIT                      \
    {                                                  \
        sizeof(lath_quantize_result), NULL, 0, 0, 0, 0 \
    }

/* Writes the language model of a Hugging Face directory as a GGUF file, with tokenizer and chat template, as llama.cpp's converter would: names,
 * keys, the order of rows that rotary pairs have there, norms of Gemma with their 1. `path` is whole or not there (a pipe takes the bytes as they
 * come). Rows that are no whole number of blocks become Q5_0 for Q4_K, Q8_0 for Q6_K and F16 for blocks of 32; the log says which. One tensor is read
 * and written at a time. The bytes do not depend on threads or instruction set. result may be NULL.
 * LATH_ERR_NOT_FOUND, _FORMAT as lath_model_open, and for weights that are not finite or too large for the type; _UNSUPPORTED: a model or tokenizer that
 * such a file cannot say, named; _IO: path cannot be written, the disk is full; _INTERRUPTED. */
LATH_API lath_status lath_quantize(lath_runtime *rt, const char *dir, const char *path,
                                   const lath_quantize_options *opts, lath_quantize_result *result, lath_error *err);

#ifdef __cplusplus
}
#endif
#endif
