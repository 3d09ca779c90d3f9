/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_rerank.c: `lath rerank`. All documents are scored before the first line is printed: the order is the result.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "output.h"
#include "setup.h"
#include "signals.h"

typedef struct rerank_job {
    const options *o;
    setup s;
    lath_reranker *reranker;
    text_chunk docs;
    lath_rerank_result *results; /* [docs.n] */
    size_t *order;               /* [docs.n] */
    size_t shown;                /* of it */
    progress progress;
    double seconds;
} rerank_job;

static lath_status one_query(const options *o, lath_text *out, lath_error *err)
{
    if (o->queries.n != 1) return err_set(err, LATH_ERR_USAGE, "--query: %zu queries given, want one", o->queries.n);
    *out = (lath_text){o->queries.items[0], strlen(o->queries.items[0])};
    return LATH_OK;
}

static lath_status read_documents(rerank_job *j, lath_error *err)
{
    text_source source = {0};
    lath_status st;
    TRY_DONE(texts_open(&source, j->o, &j->o->args, err));
    TRY_DONE(texts_all(&source, &j->docs, err));
done:
    texts_close(&source);
    return st;
}

static lath_status open_reranker(rerank_job *j, lath_error *err)
{
    const options *o = j->o;
    lath_rerank_options ro = LATH_RERANK_OPTIONS_INIT;
    TRY(setup_model(&j->s, o, err));
    ro.activation = o->raw ? LATH_ACTIVATION_NONE : LATH_ACTIVATION_MODEL;
    ro.label = o->label;
    ro.prompt_name = o->prompt;
    ro.prompt_text = o->prompt_text;
    ro.max_tokens = (int32_t)o->max_len;
    ro.no_truncate = o->no_truncate;
    ro.batch_tokens = (int32_t)o->batch_tokens;
    ro.progress = progress_tick;
    ro.progress_ctx = &j->progress;
    return lath_reranker_create(j->s.model, &ro, &j->reranker, err);
}

static lath_status score(rerank_job *j, lath_text query, lath_error *err)
{
    const size_t n = j->docs.n;
    if (n > 0) {
        j->results = alloc_array(alloc_default(), n, sizeof(*j->results));
        j->order = alloc_array(alloc_default(), n, sizeof(*j->order));
        if (!j->results || !j->order) return err_nomem(err, n * (sizeof(*j->results) + sizeof(*j->order)));
    }
    TRY(signals_check(err));
    progress_chunk(&j->progress, 0, 1);
    const double begin = clock_now();
    const lath_status st = lath_rerank(j->reranker, query, j->docs.texts, n, j->results, err);
    j->seconds = clock_now() - begin;
    progress_clear(&j->progress);
    if (st != LATH_OK) return setup_name_item(&j->docs, "document", st, err);
    lath_rerank_order(j->results, n, j->order);
    j->shown = j->o->top_k && (size_t)j->o->top_k < n ? (size_t)j->o->top_k : n;
    return LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------------- results */

static void put_json(const rerank_job *j, size_t rank, buf *b)
{
    const size_t i = j->order[rank];
    const lath_text t = j->docs.texts[i];
    buf_printf(b, "{\"index\":%zu,\"score\":", i);
    json_put_f32(b, j->results[i].score);
    buf_str(b, ",\"text\":");
    json_put_string(b, t.len ? t.data : "", t.len);
    buf_printf(b, ",\"truncated\":%s}", j->results[i].truncated ? "true" : "false");
}

/* rank, score, [index], text; control characters become blanks so that a result is a line. */
static void put_line(const rerank_job *j, size_t rank, buf *b)
{
    const size_t i = j->order[rank];
    const lath_text t = j->docs.texts[i];
    buf_printf(b, "%3zu  %.4f  [%zu]  ", rank + 1, (double)j->results[i].score, i);
    for (size_t c = 0; c < t.len; c++)
        buf_char(b, (unsigned char)t.data[c] < 0x20 || t.data[c] == 0x7F ? ' ' : t.data[c]);
    buf_char(b, '\n');
}

static lath_status print(const rerank_job *j, output *out, lath_error *err)
{
    buf *b = &out->b;
    const bool json = j->o->json, jsonl = j->o->jsonl && !json;
    if (json) buf_str(b, "{\"results\":[");
    for (size_t rank = 0; rank < j->shown; rank++) {
        if (json && rank > 0) buf_str(b, ",\n");
        if (json || jsonl)
            put_json(j, rank, b);
        else
            put_line(j, rank, b);
        if (jsonl) buf_char(b, '\n');
        TRY(output_flush_full(out, err));
    }
    if (json) buf_str(b, "]}\n");
    return LATH_OK;
}

static void say(const rerank_job *j)
{
    uint64_t tokens = 0;
    size_t cut = 0;
    const size_t n = j->docs.n;
    if (j->o->quiet || n == 0) return;
    for (size_t i = 0; i < n; i++) {
        tokens += (uint64_t)j->results[i].n_tokens;
        cut += j->results[i].truncated ? 1 : 0;
    }
    if (cut)
        fprintf(stderr, "lath: note: %zu of %zu pair%s cut to fit the window (--no-truncate refuses them)\n", cut, n,
                n == 1 ? "" : "s");
    if (j->o->verbose)
        fprintf(stderr, "lath: scored %zu document%s, %llu tokens in %.2f s: %.0f documents/s, %.0f tokens/s\n", n,
                n == 1 ? "" : "s", (unsigned long long)tokens, j->seconds, (double)n / j->seconds,
                (double)tokens / j->seconds);
}

static lath_status run(rerank_job *j, output *out, lath_error *err)
{
    lath_text query;
    TRY(one_query(j->o, &query, err));
    TRY(read_documents(j, err));
    TRY(open_reranker(j, err));
    TRY(score(j, query, err));
    TRY(output_open(out, j->o->output, err));
    TRY(print(j, out, err));
    TRY(output_close(out, err));
    say(j);
    return LATH_OK;
}

lath_status cmd_rerank(options *o, lath_error *err)
{
    rerank_job j = {.o = o};
    output out = {0};
    text_chunk_init(&j.docs);
    progress_init(&j.progress, "rerank", o->quiet);
    const lath_status st = run(&j, &out, err);
    progress_clear(&j.progress);
    output_abort(&out);
    alloc_release(alloc_default(), j.results, j.docs.n * sizeof(*j.results));
    alloc_release(alloc_default(), j.order, j.docs.n * sizeof(*j.order));
    lath_reranker_destroy(j.reranker);
    text_chunk_deinit(&j.docs);
    setup_close(&j.s);
    return st;
}
