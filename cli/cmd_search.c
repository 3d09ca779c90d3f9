/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_search.c: `lath search`: queries in, the index of the corpus (search_index.h), the records that count
 * (search_filter.h), results out.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "corpus.h"
#include "output.h"
#include "search_filter.h"
#include "search_index.h"
#include "search_rerank.h"
#include "signals.h"
#include "vectors_out.h"

enum { TOP_K_DEFAULT = 10 };

typedef struct search_job {
    const options *o;
    setup s;
    lath_model_info m;
    corpus corpus;
    buf index_path;
    search_index x;
    search_filter filter;
    uint8_t *allowed;                         /* [x.info.n] with a filter */
    uint64_t n_allowed;                       /* of them; all without a filter */
    const char *query_prompt, *corpus_prompt; /* texts */
    search_rerank rerank;
    embed_job queries;
    text_chunk query_texts;
    lath_hit *hits;       /* [queries, k] */
    size_t k, hits_bytes; /* hits a query */
    double search_seconds;
    buf text;
    progress progress;
} search_job;

/* ---------------------------------------------------------------------------------------------------------- prompts */

static const char *prompt_named(const search_job *j, const char *name)
{
    for (int32_t i = 0; name && i < j->m.n_prompts; i++) {
        const char *n, *text;
        if (lath_model_get_prompt(j->s.model, i, &n, &text, NULL) == LATH_OK && strcmp(n, name) == 0) return text;
    }
    return NULL;
}

/* The text to put in front: what the options say, else the first of `usual` that the model has (as encode_query and
 * encode_document of sentence-transformers do), else the model's default prompt, else none. */
static lath_status choose_prompt(const search_job *j, const char *name, const char *text, const char *const usual[],
                                 const char **out, lath_error *err)
{
    if (text) {
        *out = text;
        return LATH_OK;
    }
    *out = prompt_named(j, name);
    if (name && !*out) return err_set(err, LATH_ERR_USAGE, "prompt \"%s\": the model has no prompt of this name", name);
    for (size_t i = 0; !*out && usual[i]; i++) *out = prompt_named(j, usual[i]);
    if (!*out) *out = prompt_named(j, j->m.default_prompt);
    if (!*out) *out = "";
    return LATH_OK;
}

static lath_status choose_prompts(search_job *j, lath_error *err)
{
    static const char *const for_queries[] = {"query", NULL};
    static const char *const for_documents[] = {"document", "passage", "corpus", NULL};
    const options *o = j->o;
    TRY(choose_prompt(j, o->prompt, o->prompt_text, for_queries, &j->query_prompt, err));
    return choose_prompt(j, o->corpus_prompt, o->corpus_prompt_text, for_documents, &j->corpus_prompt, err);
}

/* ---------------------------------------------------------------------------------------------------------- queries */

static bool is_blank(lath_text t)
{
    for (size_t i = 0; i < t.len; i++) {
        if (!memchr(" \t\r\n", t.data[i], 4)) return false;
    }
    return true;
}

/* --query and arguments, else -f or standard input. */
static lath_status read_queries(search_job *j, options *o, lath_error *err)
{
    text_source source = {0};
    string_list all = o->queries;
    lath_status st;
    if (o->args.n > 0) {
        all.items = arena_array(&o->arena, o->queries.n + o->args.n, sizeof(*all.items));
        if (!all.items) return err_nomem(err, (o->queries.n + o->args.n) * sizeof(*all.items));
        if (o->queries.n) memcpy(all.items, o->queries.items, o->queries.n * sizeof(*all.items));
        memcpy(all.items + o->queries.n, o->args.items, o->args.n * sizeof(*all.items));
        all.n = o->queries.n + o->args.n;
    }
    TRY_DONE(texts_open(&source, o, &all, err));
    source.decoder.field = NULL; /* --field is for the corpus */
    TRY_DONE(texts_all(&source, &j->query_texts, err));
    for (size_t i = 0; i < j->query_texts.n; i++) {
        if (!is_blank(j->query_texts.texts[i])) continue;
        st = text_where(&j->query_texts, i, err_set(err, LATH_ERR_INPUT, "empty query"), err);
        goto done;
    }
    if (j->query_texts.n == 0) st = err_set(err, LATH_ERR_INPUT, "search: no query given");
done:
    texts_close(&source);
    return st;
}

static lath_status choose_rows(search_job *j, lath_error *err)
{
    j->n_allowed = j->x.info.n;
    if (j->filter.n == 0 || j->n_allowed == 0) return LATH_OK;
    j->allowed = alloc_zero(alloc_default(), (size_t)j->x.info.n);
    if (!j->allowed) return err_nomem(err, (size_t)j->x.info.n);
    return search_filter_rows(&j->filter, &j->corpus, j->x.index, j->x.info.n, j->allowed, &j->n_allowed, err);
}

static lath_status hit_text(search_job *j, lath_hit hit, lath_error *err)
{
    lath_span raw;
    buf_clear(&j->text);
    TRY(lath_index_get_span(j->x.index, hit.row, &raw, err));
    return corpus_text(&j->corpus, raw, &j->text, err);
}

/* The candidates' texts, one behind the other in `all`. */
static lath_status candidate_texts(search_job *j, const lath_hit *hits, size_t n, buf *all, lath_text *texts,
                                   lath_error *err)
{
    for (size_t i = 0; i < n; i++) {
        TRY(hit_text(j, hits[i], err));
        texts[i].len = j->text.len;
        buf_append(all, j->text.data, j->text.len);
    }
    TRY(buf_status(all, err));
    size_t at = 0;
    for (size_t i = 0; i < n; at += texts[i++].len) texts[i].data = all->data + at;
    return LATH_OK;
}

/* Every query's candidates into the reranker's order; the first k of them stay. */
static lath_status rerank_hits(search_job *j, size_t k, lath_error *err)
{
    const lath_allocator *a = alloc_default();
    const size_t n = j->k, keep = k < n ? k : n;
    lath_status st = LATH_OK;
    buf all;
    buf_init(&all, a, (size_t)1 << 32);
    lath_text *texts = alloc_array(a, n, sizeof(*texts));
    if (!texts) {
        st = err_nomem(err, n * sizeof(*texts));
        goto done;
    }
    for (size_t q = 0; q < j->query_texts.n; q++) {
        buf_clear(&all);
        TRY_DONE(candidate_texts(j, j->hits + q * n, n, &all, texts, err));
        TRY_DONE(search_rerank_run(&j->rerank, j->query_texts.texts[q], texts, j->hits + q * n, n, err));
        TRY_DONE(signals_check(err));
        memmove(j->hits + q * keep, j->hits + q * n, keep * sizeof(*j->hits));
    }
    j->k = keep;
done:
    alloc_release(a, texts, n * sizeof(*texts));
    buf_deinit(&all);
    return st;
}

static lath_status answer(search_job *j, lath_error *err)
{
    const size_t n = j->query_texts.n, k = j->o->top_k ? (size_t)j->o->top_k : TOP_K_DEFAULT;
    lath_index_search_options so = LATH_INDEX_SEARCH_OPTIONS_INIT;
    lath_embed_options eo;
    search_embed_options(j->o, j->query_prompt, &eo);
    TRY(embed_job_open(&j->queries, &j->s, &eo, &j->progress, err));
    TRY(embed_job_run(&j->queries, &j->query_texts, err));
    progress_clear(&j->progress);
    embed_job_notes(&j->queries);
    const size_t top = j->o->rerank_top ? (size_t)j->o->rerank_top : RERANK_TOP_DEFAULT;
    const size_t wanted = j->rerank.reranker && top > k ? top : k;
    so.k = wanted < j->n_allowed ? wanted : (size_t)j->n_allowed;
    so.allowed = j->allowed;
    if (so.k == 0) return LATH_OK;
    j->hits_bytes = n * so.k * sizeof(*j->hits);
    j->hits = alloc_array(alloc_default(), n, so.k * sizeof(*j->hits));
    if (!j->hits) return err_nomem(err, j->hits_bytes);
    const double begin = clock_now();
    TRY(search_index_advise(&j->x, lath_index_search_with(j->x.index, j->queries.vectors, n, &so, j->hits, &j->k, err),
                            err));
    j->search_seconds = clock_now() - begin;
    TRY(signals_check(err));
    return j->rerank.reranker ? rerank_hits(j, k, err) : LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------------- results */

/* ,"record":{...} as the corpus has it; null for a blank line. */
static lath_status put_record(search_job *j, lath_hit hit, buf *b, lath_error *err)
{
    const json_value *record;
    const char *json;
    lath_span raw;
    size_t len;
    TRY(lath_index_get_span(j->x.index, hit.row, &raw, err));
    TRY(corpus_record(&j->corpus, raw, false, &record, &json, &len, err));
    buf_str(b, ",\"record\":");
    if (record)
        buf_append(b, json, len);
    else
        buf_str(b, "null");
    return LATH_OK;
}

static lath_status put_results(search_job *j, size_t q, buf *b, lath_error *err)
{
    buf_str(b, "\"results\":[");
    for (size_t i = 0; i < j->k; i++) {
        const lath_hit hit = j->hits[q * j->k + i];
        TRY(hit_text(j, hit, err));
        buf_printf(b, "%s{\"index\":%llu,\"score\":", i ? "," : "", (unsigned long long)hit.row);
        json_put_f32(b, hit.score);
        buf_str(b, ",\"text\":");
        json_put_string(b, j->text.len ? j->text.data : "", j->text.len);
        if (j->o->field) TRY(put_record(j, hit, b, err));
        buf_char(b, '}');
    }
    buf_char(b, ']');
    return LATH_OK;
}

static lath_status put_query(search_job *j, size_t q, buf *b, lath_error *err)
{
    const lath_text t = j->query_texts.texts[q];
    buf_str(b, "{\"query\":");
    json_put_string(b, t.data, t.len);
    buf_char(b, ',');
    TRY(put_results(j, q, b, err));
    buf_char(b, '}');
    return LATH_OK;
}

static lath_status print_json(search_job *j, output *out, lath_error *err)
{
    buf *b = &out->b;
    if (j->query_texts.n == 1) {
        buf_char(b, '{');
        TRY(put_results(j, 0, b, err));
        buf_str(b, "}\n");
        return LATH_OK;
    }
    buf_str(b, "{\"queries\":[");
    for (size_t q = 0; q < j->query_texts.n; q++) {
        if (q > 0) buf_str(b, ",\n");
        TRY(put_query(j, q, b, err));
        TRY(output_flush_full(out, err));
    }
    buf_str(b, "]}\n");
    return LATH_OK;
}

static lath_status print_jsonl(search_job *j, output *out, lath_error *err)
{
    for (size_t q = 0; q < j->query_texts.n; q++) {
        TRY(put_query(j, q, &out->b, err));
        buf_char(&out->b, '\n');
        TRY(output_flush_full(out, err));
    }
    return LATH_OK;
}

/* rank, score, [index], text; control characters become blanks so that a result is a line. */
static lath_status print_lines(search_job *j, output *out, lath_error *err)
{
    buf *b = &out->b;
    for (size_t q = 0; q < j->query_texts.n; q++) {
        if (j->query_texts.n > 1) {
            buf_str(b, q > 0 ? "\n" : "");
            put_excerpt(b, j->query_texts.texts[q], SIZE_MAX);
            buf_char(b, '\n');
        }
        for (size_t i = 0; i < j->k; i++) {
            const lath_hit hit = j->hits[q * j->k + i];
            TRY(hit_text(j, hit, err));
            for (size_t c = 0; c < j->text.len; c++) {
                if ((unsigned char)j->text.data[c] < 0x20 || j->text.data[c] == 0x7F) j->text.data[c] = ' ';
            }
            buf_printf(b, "%3zu  %.4f  [%llu]  ", i + 1, (double)hit.score, (unsigned long long)hit.row);
            buf_append(b, j->text.data, j->text.len);
            buf_char(b, '\n');
        }
        TRY(output_flush_full(out, err));
    }
    return LATH_OK;
}

static void say_speed(const search_job *j)
{
    const double n = (double)j->query_texts.n;
    char among[64] = "";
    if (j->o->quiet) return;
    if (j->filter.n > 0) snprintf(among, sizeof(among), "%llu of ", (unsigned long long)j->n_allowed);
    fprintf(stderr, "lath: %zu quer%s over %s%llu texts: %.2f ms a query (embedding %.2f, comparing %.2f)\n",
            j->query_texts.n, n == 1 ? "y" : "ies", among, (unsigned long long)j->x.info.n,
            (j->queries.seconds + j->search_seconds) * 1e3 / n, j->queries.seconds * 1e3 / n,
            j->search_seconds * 1e3 / n);
    if (j->rerank.n_pairs > 0)
        fprintf(stderr, "lath: reranked %llu texts: %.2f ms a query\n", (unsigned long long)j->rerank.n_pairs,
                j->rerank.seconds * 1e3 / n);
    if (j->rerank.n_cut > 0)
        fprintf(stderr,
                "lath: note: %llu of %llu pair%s cut to fit the reranker's window (--no-truncate refuses them)\n",
                (unsigned long long)j->rerank.n_cut, (unsigned long long)j->rerank.n_pairs,
                j->rerank.n_pairs == 1 ? "" : "s");
}

/* ---------------------------------------------------------------------------------------------------------- command */

/* Both names lead to one file, or would. */
static bool same_file(const char *a, const char *b)
{
    struct stat sa, sb;
    if (strcmp(a, b) == 0) return true;
    return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

static lath_status check_output(const search_job *j, const options *o, lath_error *err)
{
    if (!o->output || strcmp(o->output, "-") == 0) return LATH_OK;
    if (same_file(o->output, o->corpus)) return err_set(err, LATH_ERR_USAGE, "--output: %s is the corpus", o->output);
    if (same_file(o->output, j->index_path.data))
        return err_set(err, LATH_ERR_USAGE, "--output: %s is the index", o->output);
    return LATH_OK;
}

static lath_status run_search(search_job *j, options *o, output *out, lath_error *err)
{
    if (o->filters.n > 0 && !o->field)
        return err_set(err, LATH_ERR_USAGE, "--filter: the corpus has no records: --field NAME reads it as JSONL");
    TRY(search_filter_parse(&j->filter, &o->filters, err));
    TRY(read_queries(j, o, err));
    TRY(corpus_open(&j->corpus, o->corpus, o->field, o->lossy, err));
    buf_printf(&j->index_path, "%s%s", o->index ? o->index : o->corpus, o->index ? "" : ".lath");
    (void)buf_cstr(&j->index_path);
    TRY(buf_status(&j->index_path, err));
    TRY(check_output(j, o, err));
    TRY(setup_model(&j->s, o, err));
    TRY(lath_model_get_info(j->s.model, &j->m, err));
    if (!o->rerank_model && o->rerank_top)
        return err_set(err, LATH_ERR_USAGE, "--rerank-top: no --rerank-model to score with");
    TRY(search_rerank_open(&j->rerank, &j->s, &j->progress, err));
    signals_watch_model(j->s.model);
    TRY(choose_prompts(j, err));
    j->x = (search_index){.o = o,
                          .s = &j->s,
                          .model = &j->m,
                          .corpus = &j->corpus,
                          .path = buf_cstr(&j->index_path),
                          .prompt = j->corpus_prompt};
    TRY(search_index_provide(&j->x, err));
    TRY(choose_rows(j, err));
    TRY(answer(j, err));
    TRY(output_open(out, o->output, err));
    if (o->json)
        TRY(print_json(j, out, err));
    else if (o->jsonl)
        TRY(print_jsonl(j, out, err));
    else
        TRY(print_lines(j, out, err));
    TRY(output_close(out, err));
    setup_note_pooling(&j->s);
    say_speed(j);
    return LATH_OK;
}

lath_status cmd_search(options *o, lath_error *err)
{
    search_job j = {.o = o, .m = {.struct_size = sizeof(lath_model_info)}};
    output out = {0};
    lath_status st;
    if (!o->corpus) return err_set(err, LATH_ERR_USAGE, "--corpus: no file given to search in");
    text_chunk_init(&j.query_texts);
    progress_init(&j.progress, "search", o->quiet);
    buf_init(&j.index_path, alloc_default(), 1 << 16);
    buf_init(&j.text, alloc_default(), (size_t)1 << 32);
    st = run_search(&j, o, &out, err);
    output_abort(&out);
    alloc_release(alloc_default(), j.hits, j.hits_bytes);
    alloc_release(alloc_default(), j.allowed, (size_t)j.x.info.n);
    search_index_close(&j.x);
    search_filter_deinit(&j.filter);
    search_rerank_close(&j.rerank);
    embed_job_close(&j.queries);
    text_chunk_deinit(&j.query_texts);
    corpus_close(&j.corpus);
    buf_deinit(&j.text);
    buf_deinit(&j.index_path);
    setup_close(&j.s);
    return st;
}
