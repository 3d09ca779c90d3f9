/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_search.c: `lath search`. The vectors of a corpus are kept in an index file, which says what it was made from: the
 * model's fingerprint, the corpus file's hash and a hash of everything else that decides vectors. Where all three agree
 * it is used as it is; where one differs it is made again. A file that is no sound index is never overwritten: it may
 * be something else of the user's.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "corpus.h"
#include "output.h"
#include "setup.h"
#include "signals.h"
#include "vectors_out.h"

enum { CHUNK_TEXTS = 4096, TOP_K_DEFAULT = 10 };

typedef struct search_job {
    const options *o;
    setup s;
    lath_model_info m;
    corpus corpus;
    buf index_path;
    lath_index *index;
    uint64_t n_rows;
    const char *query_prompt, *corpus_prompt; /* texts */
    embed_job queries;
    text_chunk query_texts;
    lath_hit *hits; /* [queries, k] */
    size_t k;       /* hits a query */
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

static lath_status open_embedder(search_job *j, embed_job *e, const char *prompt, lath_error *err)
{
    lath_embed_options eo;
    setup_embed_options(j->o, &eo);
    eo.normalize = 2; /* scores are cosines, whatever length the model's own vectors have */
    eo.prompt_name = NULL;
    eo.prompt_text = prompt;
    return embed_job_open(e, &j->s, &eo, &j->progress, err);
}

/* ------------------------------------------------------------------------------------------------------------ index */

/* Everything beside model and corpus that decides the rows: written out and hashed. */
static lath_status make_key(const search_job *j, lath_index_key *key, lath_error *err)
{
    const options *o = j->o;
    buf b;
    buf_init(&b, alloc_default(), (size_t)1 << 26);
    buf_printf(
        &b, "search 1 pooling=%d dim=%lld max_len=%lld lossy=%d uncut=%d isa=%s precision=%d field=%zu:%s prompt=%zu:",
        o->pooling, (long long)o->dim, (long long)o->max_len, o->lossy, o->no_truncate, lath_runtime_isa(j->s.rt),
        o->precision, o->field ? strlen(o->field) : 0, o->field ? o->field : "", strlen(j->corpus_prompt));
    buf_str(&b, j->corpus_prompt);
    const lath_status st = buf_status(&b, err);
    *key = (lath_index_key){.settings = st == LATH_OK ? hash_64(b.data, b.len) : 0, .corpus_bytes = j->corpus.bytes};
    memcpy(key->model, j->m.fingerprint, sizeof(key->model));
    memcpy(key->corpus, j->corpus.hash, sizeof(key->corpus));
    buf_deinit(&b);
    return st;
}

/* What the index was made from differently, or NULL. */
static const char *difference(const lath_index_key *a, const lath_index_key *b)
{
    if (memcmp(a->model, b->model, sizeof(a->model)) != 0) return "the model";
    if (a->corpus_bytes != b->corpus_bytes || memcmp(a->corpus, b->corpus, sizeof(a->corpus)) != 0) return "the corpus";
    return a->settings != b->settings ? "an option that changes vectors" : NULL;
}

static lath_status write_rows(search_job *j, embed_job *e, text_source *source, lath_index_writer *w, lath_error *err)
{
    text_chunk chunk;
    lath_status st = LATH_OK;
    lath_span *spans = alloc_array(alloc_default(), CHUNK_TEXTS, sizeof(*spans));
    text_chunk_init(&chunk);
    if (!spans) {
        st = err_nomem(err, CHUNK_TEXTS * sizeof(*spans));
        goto done;
    }
    for (;;) {
        TRY_DONE(texts_next(source, &chunk, CHUNK_TEXTS, err));
        if (chunk.n == 0) break;
        TRY_DONE(embed_job_run(e, &chunk, err));
        for (size_t i = 0; i < chunk.n; i++) {
            spans[i] = chunk.places[i].raw;
            if (spans[i].offset + spans[i].len <= j->corpus.bytes) continue;
            st = err_set(err, LATH_ERR_IO, "%s: changed while it was embedded", j->corpus.path);
            goto done;
        }
        TRY_DONE(lath_index_add(w, e->vectors, spans, chunk.n, err));
    }
    TRY_DONE(corpus_check_unchanged(&j->corpus, err));
    st = signals_check(err);
done:
    alloc_release(alloc_default(), spans, CHUNK_TEXTS * sizeof(*spans));
    text_chunk_deinit(&chunk);
    return st;
}

static lath_status build_index(search_job *j, const lath_index_key *key, lath_error *err)
{
    const char *path = buf_cstr(&j->index_path);
    embed_job e = {0};
    text_source source = {0};
    lath_index_writer *w = NULL;
    lath_status st;
    progress_init(&j->progress, "index", j->o->quiet);
    TRY_DONE(open_embedder(j, &e, j->corpus_prompt, err));
    texts_open_file(&source, &j->corpus.path, j->o->field, j->o->lossy);
    st = lath_index_create(j->s.rt, path, key, e.dim, &w, err);
    if (st == LATH_ERR_IO && !j->o->index) err_wrap(err, st, "index (--index FILE puts it elsewhere)");
    if (st != LATH_OK) goto done;
    signals_set_temp(lath_index_temp_path(w));
    TRY_DONE(write_rows(j, &e, &source, w, err));
    st = lath_index_commit(w, err);
    w = NULL;
    if (st != LATH_OK) goto done;
    progress_clear(&j->progress);
    embed_job_notes(&e);
    if (!j->o->quiet)
        fprintf(stderr, "lath: indexed %llu texts, %llu tokens in %.2f s: %.0f texts/s, %.0f tokens/s; kept in %s\n",
                (unsigned long long)e.n_texts, (unsigned long long)e.n_tokens, progress_seconds(&j->progress),
                e.seconds > 0 ? (double)e.n_texts / e.seconds : 0.0,
                e.seconds > 0 ? (double)e.n_tokens / e.seconds : 0.0, path);
done:
    progress_clear(&j->progress);
    lath_index_abort(w);
    signals_set_temp(NULL);
    texts_close(&source);
    embed_job_close(&e);
    return st;
}

/* Opens the index that is there, or makes it. */
static lath_status provide_index(search_job *j, lath_error *err)
{
    struct stat sb;
    lath_index_key key;
    lath_index_info info = {.struct_size = sizeof(info)};
    const char *path = buf_cstr(&j->index_path), *changed = NULL;
    lath_status st;
    TRY(make_key(j, &key, err));
    if (stat(path, &sb) == 0) {
        st = lath_index_open(j->s.rt, path, LATH_LOAD_MAP, &j->index, err);
        if (st == LATH_ERR_FORMAT && !j->o->index) {
            char why[sizeof(err->msg)];
            snprintf(why, sizeof(why), "%s", err->msg);
            return err_set(err, st, "%s; delete it to have it made again", why);
        }
        if (st != LATH_OK) return st;
        TRY(lath_index_get_info(j->index, &info, err));
        changed = difference(&info.key, &key);
        if (!changed) {
            j->n_rows = info.n;
            signals_watch_index(j->index);
            return LATH_OK;
        }
        lath_index_close(j->index);
        j->index = NULL;
        if (!j->o->quiet) fprintf(stderr, "lath: note: %s: made again, because %s changed\n", path, changed);
    }
    TRY(build_index(j, &key, err));
    TRY(lath_index_open(j->s.rt, path, LATH_LOAD_MAP, &j->index, err));
    signals_watch_index(j->index);
    TRY(lath_index_get_info(j->index, &info, err));
    j->n_rows = info.n;
    return LATH_OK;
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

static lath_status answer(search_job *j, lath_error *err)
{
    const size_t n = j->query_texts.n, k = j->o->top_k ? (size_t)j->o->top_k : TOP_K_DEFAULT;
    progress_init(&j->progress, "search", j->o->quiet);
    TRY(open_embedder(j, &j->queries, j->query_prompt, err));
    TRY(embed_job_run(&j->queries, &j->query_texts, err));
    progress_clear(&j->progress);
    embed_job_notes(&j->queries);
    j->k = k < j->n_rows ? k : (size_t)j->n_rows;
    if (j->k == 0) return LATH_OK;
    j->hits = alloc_array(alloc_default(), n, j->k * sizeof(*j->hits));
    if (!j->hits) return err_nomem(err, n * j->k * sizeof(*j->hits));
    const double begin = clock_now();
    TRY(lath_index_search(j->index, j->queries.vectors, n, j->k, j->hits, err));
    j->search_seconds = clock_now() - begin;
    return signals_check(err);
}

/* ---------------------------------------------------------------------------------------------------------- results */

static lath_status hit_text(search_job *j, lath_hit hit, lath_error *err)
{
    lath_span raw;
    buf_clear(&j->text);
    TRY(lath_index_get_span(j->index, hit.row, &raw, err));
    return corpus_text(&j->corpus, raw, &j->text, err);
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
    if (j->o->quiet) return;
    fprintf(stderr, "lath: %zu quer%s over %llu texts: %.2f ms a query (embedding %.2f, comparing %.2f)\n",
            j->query_texts.n, n == 1 ? "y" : "ies", (unsigned long long)j->n_rows,
            (j->queries.seconds + j->search_seconds) * 1e3 / n, j->queries.seconds * 1e3 / n,
            j->search_seconds * 1e3 / n);
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
    TRY(read_queries(j, o, err));
    TRY(corpus_open(&j->corpus, o->corpus, o->field, o->lossy, err));
    buf_printf(&j->index_path, "%s%s", o->index ? o->index : o->corpus, o->index ? "" : ".lath");
    (void)buf_cstr(&j->index_path);
    TRY(buf_status(&j->index_path, err));
    TRY(check_output(j, o, err));
    TRY(setup_model(&j->s, o, err));
    TRY(lath_model_get_info(j->s.model, &j->m, err));
    TRY(choose_prompts(j, err));
    TRY(provide_index(j, err));
    TRY(answer(j, err));
    TRY(output_open(out, o->output, err));
    if (o->json)
        TRY(print_json(j, out, err));
    else if (o->jsonl)
        TRY(print_jsonl(j, out, err));
    else
        TRY(print_lines(j, out, err));
    TRY(output_close(out, err));
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
    buf_init(&j.index_path, alloc_default(), 1 << 16);
    buf_init(&j.text, alloc_default(), (size_t)1 << 32);
    st = run_search(&j, o, &out, err);
    output_abort(&out);
    signals_watch_index(NULL);
    lath_index_close(j.index);
    if (j.hits) alloc_release(alloc_default(), j.hits, j.query_texts.n * j.k * sizeof(*j.hits));
    embed_job_close(&j.queries);
    text_chunk_deinit(&j.query_texts);
    corpus_close(&j.corpus);
    buf_deinit(&j.text);
    buf_deinit(&j.index_path);
    setup_close(&j.s);
    return st;
}
