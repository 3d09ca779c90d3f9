/* SPDX-License-Identifier: Apache-2.0
 *
 * engine.h: what is behind the opaque types of lath.h. A runtime owns pool and kernel table; a model owns its maps and everything bound to them, and is
 * immutable once open; an embedder owns the working memory of one stream of calls.
 */
#ifndef LATH_ENGINE_H
#define LATH_ENGINE_H

#include <pthread.h>

#include "arch/arch.h"
#include "arch/arch_gguf.h"
#include "arch/arch_head.h"
#include "backend/backend.h"
#include "lath/lath.h"
#include "tok/tok.h"

struct lath_runtime {
    lath_allocator alloc;
    log_sink log;
    pool *pool;
    kern_table kern;
    const backend_ops *ops;
};

struct lath_tokenizer {
    const lath_runtime *rt;
    tok *tok;
    /* The vocabulary by the bytes of its tokens (grammar.h), made when a grammar first asks for it. */
    _Atomic(struct token_trie *) trie;
};

/* What sentence-transformers puts behind the encoder, in the order of modules.json (st_files.c reads it). */
enum { ST_MAX_STEPS = 8, ST_MAX_MODES = 8 };
typedef enum st_step_kind { ST_DENSE, ST_NORMALIZE } st_step_kind;
typedef struct st_step {
    st_step_kind kind;
    nn_linear_w dense; /* [out, in] */
    kern_fn fn;
    int64_t d_in, d_out;
    const char *dir; /* of a dense module */
    bool has_bias;
} st_step;

typedef struct st_prompt {
    const char *name, *text;
    size_t len;
} st_prompt;

typedef struct st_config {
    const char *encoder_dir; /* where config.json, weights and tokenizer are: the model's directory or a folder in it */
    kern_pool_mode modes[ST_MAX_MODES];
    int32_t n_modes;
    bool has_modules,
        has_pooling; /* there is modules.json; it names a Pooling module. Both: a GGUF file says how to pool */
    bool include_prompt;
    int64_t pooling_d; /* what 1_Pooling/config.json says the encoder's width is; 0: nothing */
    st_step steps[ST_MAX_STEPS];
    int32_t n_steps;
    int64_t max_seq_length; /* 0: not given */
    bool lower_case;
    int64_t truncate_dim; /* 0: none */
    st_prompt *prompts;
    int32_t n_prompts;
    const char *default_prompt; /* name or NULL */
    const char *activation_fn;  /* of a cross-encoder's scores, as the model names it, or NULL */
    int32_t score_ids[2];       /* LogitScore: the tokens whose logits score, true and false */
    int32_t n_score_ids;        /* 0: no such module; 1: the true one only */
} st_config;

/* inference_config.json. */
enum { INFERENCE_GPU_MAX_SEQ_LEN = 2048 }; /* where the file does not say */
typedef struct inference_config {
    int32_t eos_token_id;           /* -1: the tokenizer's own */
    int32_t rope_table_max_seq_len; /* most tokens of the window; 0: no limit of its own */
    int32_t gpu_max_seq_len;        /* longer texts are not for a GPU */
} inference_config;

enum { MODEL_MAX_SOURCES = 1 + ST_MAX_STEPS };

enum { MODEL_MAX_ENDS = 32 };

/* What config.json's "architectures" says a model is for. */
typedef enum model_kind { MODEL_ENCODER, MODEL_CROSS_ENCODER, MODEL_GENERATOR } model_kind;

struct lath_model {
    lath_runtime *rt;
    arena mem;
    char *path;
    weights *sources[MODEL_MAX_SOURCES]; /* 0: the encoder's; then those of dense modules */
    int32_t n_sources;
    /* Guards what is found out when the model is shared already: the listing of shards that nothing uses, the identity. */
    pthread_mutex_t listing;
    uint64_t identity[2];
    bool identified;
    arch_model arch;
    ffn *walk, *bare;  /* of a vindex: what arch.ffn borrows; what arch.ffn would be, without its matrices. Else NULL */
    ffn_borrowed lent; /* of walk: an FFN of a run may be made of the model's own, and is closed before the model */
    model_kind kind;
    const char *class_name; /* of "architectures", or NULL */
    arch_labels labels;     /* of a cross-encoder */
    arch_head head; /* what scores, when head_error.status is LATH_OK: else why there is none, for whoever wants it */
    lath_error head_error;
    lath_error lm_head_error;  /* of a MODEL_GENERATOR: why arch.lm_head.w is NULL */
    bool judges;               /* pairs are put to it as judge.h has it, */
    bool judges_by_template;   /* through its own chat template */
    bool sends_types;          /* its tokenizer gives token types to the model */
    const char *chat_template; /* of a language model, or NULL */
    int32_t ends[MODEL_MAX_ENDS], n_ends;
    st_config st;
    inference_config inference;
    lath_tokenizer tokenizer;
    int32_t max_tokens;
    bool integer;                  /* steps may multiply block weights with 8-bit activations */
    int64_t d_pooled, d_embedding; /* after pooling; after all steps */
    bool normalized;
};

/* Reads modules.json and the configurations it names; plain defaults (mean, no normalising) where there is none. */
lath_status st_config_load(arena *a, const char *dir, st_config *out, lath_error *err);
/* The same of a GGUF file at `path`, which says how vectors are pooled only. */
void st_config_gguf(const char *path, arch_gguf_pooling pooling, st_config *out);
/* The window that tokenizer_config.json allows, or 0 for none ("model_max_length" is often 1e30). */
lath_status st_tokenizer_window(arena *a, const char *dir, int64_t *out, lath_error *err);
/* Its tokenizer tells the segments of a pair apart: model_input_names of tokenizer_config.json, else what the class it names does, else what the
 * class for the model type does. */
lath_status st_sends_types(arena *a, const char *dir, const char *model_type, bool *out, lath_error *err);
/* The template "default": chat_template.jinja, else "chat_template" of chat_template.json or tokenizer_config.json, alone or by its name; another one by its
 * name there, or in additional_chat_templates/NAME.jinja. NULL: none. */
lath_status st_chat_template(arena *a, const char *dir, const char *name, const char **out, lath_error *err);
/* The activation that config.json names, where config_sentence_transformers.json has none. */
lath_status st_config_activation(const json_value *config, const char *path, st_config *c, lath_error *err);
/* The text that goes in front: `text` itself, else the prompt `name`, else the default one, else none. */
lath_status st_choose_prompt(const st_config *c, const char *name, const char *text, const char **out, size_t *len,
                             lath_error *err);
/* What the public header calls a pooling. */
lath_pooling st_public_pooling(const st_config *c);
bool st_pooling_mode(lath_pooling p, kern_pool_mode *out);

extern const inference_config inference_defaults;
/* The values of the file at `path`; the defaults where there is none. */
lath_status inference_config_load(arena *a, const char *path, inference_config *out, lath_error *err);

/* config.json while a model is opened. */
typedef struct model_config {
    const json_value *json;
    const char *path, *type; /* of the file, which leads messages; "model_type" */
    arch_source src;         /* the encoder's weights */
} model_config;
/* Kind, labels and head. The tokenizer is open. */
lath_status model_open_head(lath_model *m, const model_config *c, lath_error *err);

/* Chat template and end tokens of a language model. The tokenizer is open. */
lath_status model_open_turns(lath_model *m, const model_config *c, lath_error *err);
/* The Jinja template that the model's files have for conversations; NULL: none. */
const char *model_chat_template(const lath_model *m);
/* The tokens that end a text or a turn by the model's files (of a directory those of generation_config.json, config.json and tokenizer_config.json),
 * each once; borrowed. */
const int32_t *model_end_ids(const lath_model *m, int32_t *n);
/* The last place in ids [end], begin < place < end, that a message begins at: behind a token that ends one, and behind the token or two (a line's end) that
 * stand between it and the next special one. -1: there is none. */
int32_t model_last_turn(const lath_model *m, const int32_t *ids, int32_t begin, int32_t end);

/* Hash over configuration, tokenizer and samples of the weights; lath_model_get_identity reads all of them. */
lath_status model_fingerprint(const lath_model *m, uint64_t out[2], lath_error *err);
/* Working memory of an embedder for a full batch of texts of 16 tokens. */
uint64_t embed_batch_bytes(const lath_model *m);

/* A packed batch of token sequences, its arrays grown on demand and reused (batch.c). */
typedef struct packer {
    const lath_allocator *alloc;
    int32_t pos0, pad_id; /* as arch_dims has them */
    bool typed;           /* the model tells types of tokens apart; else all are of type 0 */
    batch b;
    int64_t cap_tok, cap_seq;
    int32_t *memory;
    size_t memory_bytes;
} packer;
void packer_init(packer *p, const lath_allocator *alloc, const arch_dims *dims);
void packer_deinit(packer *p);
void packer_clear(packer *p);
/* Room for n_tok tokens and n_seq texts in all. */
lath_status packer_grow(packer *p, int64_t n_tok, int64_t n_seq, lath_error *err);
/* Appends one text; the room is there. */
void packer_add(packer *p, const int32_t *ids, const int32_t *type_ids, int64_t n);

/* The tokenizer in the metadata of a GGUF file; nothing of the file is kept (gguf_tokenizer.c). */
lath_status gguf_tokenizer_open(const lath_allocator *alloc, const gguf *g, tok **out, lath_error *err);
/* The keys of a tokenizer whose kind and pre are set. */
struct gguf_writer;
void gguf_tokenizer_put(struct gguf_writer *w, const tok_arrays *a);

#endif
