/* SPDX-License-Identifier: Apache-2.0
 *
 * setup.h: runtime, model and embedder as the options ask for them, with their log lines on stderr; and the call that
 * embeds a chunk of texts.
 */
#ifndef LATH_CLI_SETUP_H
#define LATH_CLI_SETUP_H

#include "base/buf.h"
#include "options.h"
#include "progress.h"
#include "texts.h"

typedef struct setup {
    const options *o;
    lath_runtime *rt;
    lath_model *model;   /* or */
    lath_tokenizer *tok; /* opened alone */
    buf path;            /* of the model */
    bool beside;         /* the runtime is of another setup */
} setup;

/* Runtime and model. LATH_ERR_UNSUPPORTED for --device gpu: this build computes on the CPU. */
lath_status setup_model(setup *s, const options *o, lath_error *err);
/* Runtime, and the model where --model names one. */
lath_status setup_maybe_model(setup *s, const options *o, lath_error *err);
/* Runtime and the path of the model, which is not opened. */
lath_status setup_path(setup *s, const options *o, lath_error *err);
/* Another model, on the runtime of `first`. */
lath_status setup_model_beside(setup *s, const setup *first, const char *name, lath_error *err);
/* Runtime and the tokenizer alone: also of a folder without weights. */
lath_status setup_tokenizer(setup *s, const options *o, lath_error *err);
void setup_close(setup *s); /* a zeroed one is allowed */

/* An embedder with everything that can be counted about what it did. */
typedef struct embed_job {
    const setup *s;
    lath_cache *cache; /* NULL: none */
    lath_embedder *embedder;
    progress *progress;
    int64_t dim; /* numbers for a text: of a vector, times the layers that are asked for */
    int32_t layers;
    float *vectors;             /* [capacity, dim] of the last chunk */
    lath_embed_result *results; /* [capacity] */
    size_t capacity;
    uint64_t n_texts, n_tokens, n_truncated;
    int32_t longest; /* tokens of the longest text */
    double seconds;  /* inside lath_embed */
} embed_job;

/* The options of lath_embed that the command line asks for. */
void setup_embed_options(const options *o, lath_embed_options *out);
/* Says on stderr how vectors are pooled where the model's files do not, unless -q or --pooling. */
void setup_note_pooling(const setup *s);
/* --layer: LATH_LAYER_FINAL where it is not given. */
lath_status setup_layer(const options *o, int32_t *layer, lath_error *err);
/* With the cache that the options name. eo->progress is set to `p`, which must outlive the job. */
lath_status embed_job_open(embed_job *j, const setup *s, lath_embed_options *eo, progress *p, lath_error *err);
/* Vectors of the chunk into j->vectors. A text at fault is named by its place. */
lath_status embed_job_run(embed_job *j, const text_chunk *c, lath_error *err);
/* The library names what it was given by its index in the call ("text 3: ..."; item is "text"); people look for a line or an argument. */
lath_status setup_name_item(const text_chunk *c, const char *item, lath_status st, lath_error *err);
/* Tells on stderr how many texts were cut, unless -q, and with -v what came from the cache. */
void embed_job_notes(const embed_job *j);
void embed_job_close(embed_job *j); /* a zeroed one is allowed */

#endif
