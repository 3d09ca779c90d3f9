/* SPDX-License-Identifier: Apache-2.0
 * search_rerank.c: see search_rerank.h. */
#include "search_rerank.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "signals.h"

lath_status search_rerank_open(search_rerank *r, const setup *first, progress *p, lath_error *err)
{
    const options *o = first->o;
    lath_rerank_options ro = LATH_RERANK_OPTIONS_INIT;
    if (!o->rerank_model) return LATH_OK;
    r->progress = p;
    TRY(setup_model_beside(&r->s, first, o->rerank_model, err));
    ro.activation = o->raw ? LATH_ACTIVATION_NONE : LATH_ACTIVATION_MODEL;
    ro.label = o->label;
    ro.no_truncate = o->no_truncate;
    ro.progress = progress_tick;
    ro.progress_ctx = p;
    return lath_reranker_create(r->s.model, &ro, &r->reranker, err);
}

/* The candidate at fault is named by its place in the corpus. */
static lath_status name_row(const lath_hit *hits, size_t n, lath_status st, lath_error *err)
{
    char old[40];
    if (err->item < 0 || (size_t)err->item >= n) return st;
    const size_t lead = (size_t)snprintf(old, sizeof(old), "document %lld: ", (long long)err->item);
    if (strncmp(err->msg, old, lead) == 0) memmove(err->msg, err->msg + lead, strlen(err->msg) - lead + 1);
    return err_wrap(err, st, "text %llu of the corpus", (unsigned long long)hits[err->item].row);
}

lath_status search_rerank_run(search_rerank *r, lath_text query, const lath_text *texts, lath_hit *hits, size_t n,
                              lath_error *err)
{
    const lath_allocator *a = alloc_default();
    lath_status st = LATH_OK;
    if (n == 0) return LATH_OK;
    lath_rerank_result *results = alloc_array(a, n, sizeof(*results));
    size_t *order = alloc_array(a, n, sizeof(*order));
    lath_hit *old = alloc_array(a, n, sizeof(*old));
    if (!results || !order || !old) {
        st = err_nomem(err, n * (sizeof(*results) + sizeof(*order) + sizeof(*old)));
        goto done;
    }
    signals_watch_model(r->s.model);
    progress_chunk(r->progress, 0, 1);
    const double begin = clock_now();
    st = lath_rerank(r->reranker, query, texts, n, results, err);
    r->seconds += clock_now() - begin;
    progress_clear(r->progress);
    if (st != LATH_OK) {
        st = name_row(hits, n, st, err);
        goto done;
    }
    lath_rerank_order(results, n, order);
    memcpy(old, hits, n * sizeof(*old));
    for (size_t i = 0; i < n; i++) {
        hits[i] = (lath_hit){old[order[i]].row, results[order[i]].score};
        r->n_cut += results[i].truncated ? 1 : 0;
    }
    r->n_pairs += n;
done:
    alloc_release(a, results, n * sizeof(*results));
    alloc_release(a, order, n * sizeof(*order));
    alloc_release(a, old, n * sizeof(*old));
    return st;
}

void search_rerank_close(search_rerank *r)
{
    lath_reranker_destroy(r->reranker);
    setup_close(&r->s);
    *r = (search_rerank){0};
}
