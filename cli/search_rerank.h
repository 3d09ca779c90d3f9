/* SPDX-License-Identifier: Apache-2.0
 *
 * search_rerank.h: `lath search --rerank-model R`: the best texts of a search, by the vectors' cosine, are scored again together with the query
 * by a cross-encoder, and its order is the result.
 */
#ifndef LATH_CLI_SEARCH_RERANK_H
#define LATH_CLI_SEARCH_RERANK_H

#include "setup.h"

enum { RERANK_TOP_DEFAULT = 50 };

typedef struct search_rerank {
    setup s;
    lath_reranker *reranker; /* NULL: not asked for */
    progress *progress;
    uint64_t n_pairs, n_cut;
    double seconds;
} search_rerank;

/* Opens R on the runtime of `first`; nothing happens without --rerank-model. LATH_ERR_UNSUPPORTED: R is no reranker. */
lath_status search_rerank_open(search_rerank *r, const setup *first, progress *p, lath_error *err);
/* Scores texts: [n], the texts of hits: [n], and puts hits into the new order, their scores set. */
lath_status search_rerank_run(search_rerank *r, lath_text query, const lath_text *texts, lath_hit *hits, size_t n,
                              lath_error *err);
void search_rerank_close(search_rerank *r); /* a zeroed one is allowed */

#endif
