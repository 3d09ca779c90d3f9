/* SPDX-License-Identifier: Apache-2.0
 *
 * search_index.h: the index file of a corpus: opened when it is right, brought up to date when the corpus changed, made
 * when there is none.
 *
 * What it says it was made from decides: another model or option makes CORPUS.lath anew, but a file that --index names
 * is left alone (LATH_ERR_FORMAT). Of a corpus that changed, texts that the index has already keep their vectors,
 * wherever they stand now; only the others are embedded. A file that is no sound index is never replaced.
 */
#ifndef LATH_CLI_SEARCH_INDEX_H
#define LATH_CLI_SEARCH_INDEX_H

#include "corpus.h"
#include "setup.h"

typedef struct search_index {
    const options *o;
    const setup *s;
    const lath_model_info *model;
    corpus *corpus;
    const char *path;
    const char *prompt; /* put before every text of the corpus */
    lath_index *index;
    lath_index_info info;
    progress progress;
} search_index;

/* The options of an embedder whose vectors have length 1: scores are cosines, whatever length the model's have. */
void search_embed_options(const options *o, const char *prompt, lath_embed_options *out);
/* Sets index and info. Everything before them is set by the caller. */
lath_status search_index_provide(search_index *x, lath_error *err);
/* Where the index turned out to be damaged: says what to do about it. */
lath_status search_index_advise(const search_index *x, lath_status st, lath_error *err);
void search_index_close(search_index *x);

#endif
