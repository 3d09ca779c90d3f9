/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h: the commands and options of the program as tables (cmds.def, options.def) and their parser. Options and
 * arguments may be mixed; `--` ends the options; `--name=V`, `--name V`, `-nV`, `-n V` and clusters of short flags are
 * taken; a name is never abbreviated. A single value given twice: the last one counts. `--config FILE` holds the same
 * names; what the command line gives replaces what the file gives.
 */
#ifndef LATH_CLI_OPTIONS_H
#define LATH_CLI_OPTIONS_H

#include "base/arena.h"
#include "lath/lath.h"

#include <stdbool.h>

enum option_group {
    MODEL_IS_OPTIONAL = 1 << 30, /* of a command with GROUP_MODEL */
    GROUP_MODEL = 1 << 0,
    GROUP_SEARCH = 1 << 1,
    GROUP_TOKENIZE = 1 << 2,
    GROUP_INFO = 1 << 3,
    GROUP_EMBED = 1 << 4,
    GROUP_TEXT = 1 << 5,
    GROUP_JSON = 1 << 6,
    GROUP_FORMAT = 1 << 7,
    GROUP_OUTPUT = 1 << 8,
    GROUP_COMMON = 1 << 9,
    GROUP_RERANK = 1 << 11,
    GROUP_HELP = 1 << 10,    /* --help of a command that takes no other option */
    GROUP_PROMPT = 1 << 12,  /* a PROMPT: one text */
    GROUP_CONTEXT = 1 << 13, /* a language model's session */
    GROUP_LOGITS = 1 << 14,
    GROUP_PREDICT = 1 << 15,
    GROUP_GENERATE = 1 << 16,
    GROUP_PERPLEXITY = 1 << 17,
    GROUP_COMPLETE = 1 << 18, /* generation from one PROMPT */
    GROUP_QUANTIZE = 1 << 20,
    GROUP_BENCH = 1 << 21,
    GROUP_INSIDE = 1 << 22, /* edits of a run, and another FFN */
    GROUP_TRACE = 1 << 23,
    GROUP_WALK = 1 << 24,  /* an index of a model's features */
    GROUP_SWEEP = 1 << 25, /* prompts with answers */
    GROUP_TOP = 1 << 26,   /* lists of likely tokens */
    GROUP_EXTRACT = 1 << 27,
    GROUP_FIRED = 1 << 28, /* which features fired */
    GROUP_SERVE_FFN = 1 << 29
};

typedef struct string_list {
    const char **items; /* [n], in the arena; strings borrowed */
    size_t n;
    size_t capacity;
} string_list;

enum output_format { FORMAT_DEFAULT, FORMAT_JSONL, FORMAT_JSON, FORMAT_NPY, FORMAT_F32, FORMAT_TEXT };
enum device { DEVICE_AUTO, DEVICE_CPU, DEVICE_GPU };

/* A number for which 0 says something. */
typedef struct option_number {
    bool given;
    int64_t whole; /* OPTION_NUMBER */
    double real;   /* OPTION_REAL */
} option_number;

/* What the user asked for. Strings are NULL and numbers 0 when not given. */
typedef struct options {
    arena arena;      /* lists, strings of --config */
    string_list args; /* what is no option */
    const char *model, *config, *field, *output, *corpus, *index, *rerank_model, *cache, *cache_import, *cache_export;
    const char *prompt, *prompt_text, *layer, *corpus_prompt, *corpus_prompt_text, *pair, *label, *id_list, *system,
        *model_name, *layers, *json_schema, *grammar, *chat_template, *ffn, *answer, *save, *host;
    string_list files, queries, filters, stops, ablate, steer, patch;
    int64_t threads, dim, max_len, batch_tokens, top_k, rerank_top, ctx, top, logprobs, stride, rounds, walk_k;
    option_number max_new, temp, top_p, min_p, repeat_penalty, presence_penalty, frequency_penalty, seed, prefill,
        decode_steps, reasoning_budget, port;
    int pooling, isa, precision, index_type, kv; /* of lath.h */
    int gguf_type;                               /* of lath.h, plus 1 */
    int row_type, index_level;                   /* of lath_vindex.h; the level plus 1 */
    int device, format;                          /* enum device, enum output_format */
    int positions;                               /* 1: all */
    int verbose;
    bool quiet, help, lossy, json, jsonl, no_normalize, no_truncate, ids, tokens, offsets, no_special, decode,
        keep_special, no_parse_special, tensors, raw, all_positions, chat, think, no_think, hide_reasoning, resume,
        heads, weights;
} options;

typedef struct option_choice {
    const char *name; /* NULL ends the list */
    int value;
} option_choice;

enum option_kind {
    OPTION_FLAG,
    OPTION_COUNT,
    OPTION_STR,
    OPTION_LIST,
    OPTION_INT,
    OPTION_NUMBER,
    OPTION_REAL,
    OPTION_CHOICE
};

typedef struct option_row {
    unsigned group;
    char short_name; /* 0: none */
    const char *name;
    enum option_kind kind;
    size_t field; /* offset in options */
    const char *metavar;
    int64_t min, max;
    const option_choice *choices;
    const char *help;
} option_row;

typedef struct command_row {
    const char *name;
    lath_status (*run)(options *o, lath_error *err);
    unsigned groups;
    const char *args, *title, *description, *examples;
} command_row;

/* Tables; the last row has name NULL. */
extern const option_row option_rows[];
extern const command_row command_rows[];

/* NULL when there is none. */
const command_row *command_find(const char *name);
/* The name of the table that is nearest to what was typed, or NULL when none is near. */
const char *command_near(const char *name);

void options_init(options *o);
void options_deinit(options *o);
/* argv: what follows the command's name. Strings of argv are borrowed. LATH_ERR_USAGE; LATH_ERR_NOT_FOUND, _FORMAT for
 * the --config file. */
lath_status options_parse(options *o, const command_row *cmd, int argc, char **argv, lath_error *err);

#define COMMAND(name, groups, args, title, description, examples) lath_status cmd_##name(options *o, lath_error *err);
#define COMMAND_AS(name, shown, groups, args, title, description, examples) \
    COMMAND(name, groups, args, title, description, examples)
#include "cmds.def"
#undef COMMAND_AS
#undef COMMAND

#endif
