/* SPDX-License-Identifier: Apache-2.0
 *
 * setup.c: see setup.h. The environment is read here and in model_path.c, never by the library.
 */
#include "setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/error.h"
#include "model_path.h"
#include "signals.h"

/* Warnings unless -q; with -v what is worth knowing, with -vv everything. Errors come back as statuses and are printed
 * once. */
static void log_to_stderr(void *ctx, lath_log_level level, const char *line)
{
    const options *o = ctx;
    const bool wanted = level == LATH_LOG_WARN ? !o->quiet : level == LATH_LOG_DEBUG ? o->verbose > 1 : o->verbose > 0;
    if (wanted) fprintf(stderr, "lath: %s%s\n", level == LATH_LOG_WARN ? "warning: " : "", line);
}

static lath_status check_device(const options *o, lath_error *err)
{
    const char *no_gpu = getenv("LATH_NO_GPU");
    const bool cpu_only = no_gpu && *no_gpu && strcmp(no_gpu, "0") != 0;
    if (o->device != DEVICE_GPU) return LATH_OK;
    return err_set(err, LATH_ERR_UNSUPPORTED, "--device gpu: %s",
                   cpu_only ? "LATH_NO_GPU is set" : "this build computes on the CPU only");
}

static lath_status open_runtime(setup *s, const options *o, lath_error *err)
{
    lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
    *s = (setup){.o = o};
    buf_init(&s->path, alloc_default(), 1 << 16);
    TRY(check_device(o, err));
    ro.n_threads = (int32_t)o->threads;
    ro.isa = (lath_isa)o->isa;
    ro.log = log_to_stderr;
    ro.log_ctx = (void *)(uintptr_t)o;
    return lath_runtime_create(&ro, &s->rt, err);
}

static lath_status open_model(setup *s, lath_error *err)
{
    lath_model_options mo = LATH_MODEL_OPTIONS_INIT;
    mo.precision = (lath_precision)s->o->precision;
    signals_watch_path(buf_cstr(&s->path));
    TRY(lath_model_open(s->rt, buf_cstr(&s->path), &mo, &s->model, err));
    signals_watch_model(s->model);
    return signals_check(err);
}

lath_status setup_model(setup *s, const options *o, lath_error *err)
{
    TRY(open_runtime(s, o, err));
    TRY(model_path_find(o->model, &s->path, err));
    return open_model(s, err);
}

lath_status setup_maybe_model(setup *s, const options *o, lath_error *err)
{
    return o->model ? setup_model(s, o, err) : open_runtime(s, o, err);
}

lath_status setup_path(setup *s, const options *o, lath_error *err)
{
    TRY(open_runtime(s, o, err));
    TRY(model_path_find(o->model, &s->path, err));
    signals_watch_path(buf_cstr(&s->path));
    return LATH_OK;
}

lath_status setup_model_beside(setup *s, const setup *first, const char *name, lath_error *err)
{
    *s = (setup){.o = first->o, .rt = first->rt, .beside = true};
    buf_init(&s->path, alloc_default(), 1 << 16);
    TRY(model_path_find(name, &s->path, err));
    return open_model(s, err);
}

lath_status setup_tokenizer(setup *s, const options *o, lath_error *err)
{
    TRY(open_runtime(s, o, err));
    TRY(model_path_find(o->model, &s->path, err));
    signals_watch_path(buf_cstr(&s->path));
    TRY(lath_tokenizer_open(s->rt, buf_cstr(&s->path), &s->tok, err));
    return signals_check(err);
}

void setup_close(setup *s)
{
    signals_watch_model(NULL);
    signals_watch_path(NULL);
    lath_tokenizer_close(s->tok);
    lath_model_close(s->model);
    if (!s->beside) lath_runtime_destroy(s->rt);
    if (s->path.alloc) buf_deinit(&s->path);
    *s = (setup){0};
}

/* -------------------------------------------------------------------------------------------------------- embedding */

void setup_embed_options(const options *o, lath_embed_options *out)
{
    *out = (lath_embed_options)LATH_EMBED_OPTIONS_INIT;
    out->pooling = (lath_pooling)o->pooling;
    out->normalize = o->no_normalize ? 0 : 1;
    out->dim = (int32_t)o->dim;
    out->prompt_name = o->prompt;
    out->prompt_text = o->prompt_text;
    out->max_tokens = (int32_t)o->max_len;
    out->no_truncate = o->no_truncate;
    out->batch_tokens = (int32_t)o->batch_tokens;
}

void setup_note_pooling(const setup *s)
{
    lath_model_info m = {.struct_size = sizeof(m)};
    if (s->o->quiet || s->o->pooling != LATH_POOLING_AUTO) return;
    if (lath_model_get_info(s->model, &m, NULL) != LATH_OK || m.declares_pooling) return;
    fprintf(
        stderr,
        "lath: note: %s: %s%s, says nothing about embeddings: %s, as sentence-transformers does (--pooling chooses)\n",
        m.path, strcmp(m.kind, "language model") == 0 ? "a language model, " : "",
        m.class_name ? m.class_name : m.architecture,
        m.pooling == LATH_POOLING_LAST ? "the last token's state is taken" : "the mean of the tokens' states is taken");
}

lath_status setup_layer(const options *o, int32_t *layer, lath_error *err)
{
    *layer = LATH_LAYER_FINAL;
    if (!o->layer) return LATH_OK;
    if (strcmp(o->layer, "all") == 0) {
        *layer = LATH_LAYER_ALL;
        return LATH_OK;
    }
    int32_t n = 0;
    const char *c = o->layer;
    for (; *c >= '0' && *c <= '9' && n < 100000; c++) n = 10 * n + (*c - '0');
    if (*c || c == o->layer) return err_set(err, LATH_ERR_USAGE, "--layer: \"%.60s\", want a number or all", o->layer);
    *layer = n;
    return LATH_OK;
}

/* Both names lead to one file, or would. */
static bool same_file(const char *a, const char *b)
{
    struct stat sa, sb;
    if (strcmp(a, b) == 0) return true;
    return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

static lath_status open_cache(embed_job *j, const options *o, lath_error *err)
{
    lath_cache_options co = LATH_CACHE_OPTIONS_INIT;
    if (o->cache && o->output && same_file(o->output, o->cache))
        return err_set(err, LATH_ERR_USAGE, "--output: %s is the cache", o->output);
    if (o->cache && o->cache_export && same_file(o->cache_export, o->cache))
        return err_set(err, LATH_ERR_USAGE, "--cache-export: %s is the cache", o->cache_export);
    co.path = o->cache;
    return lath_cache_open(j->s->rt, &co, &j->cache, err);
}

lath_status embed_job_open(embed_job *j, const setup *s, lath_embed_options *eo, progress *p, lath_error *err)
{
    *j = (embed_job){.s = s, .progress = p};
    eo->progress = progress_tick;
    eo->progress_ctx = p;
    if (s->o->cache || s->o->cache_import || s->o->cache_export) TRY(open_cache(j, s->o, err));
    eo->cache = j->cache;
    TRY(lath_embedder_create(s->model, eo, &j->embedder, err));
    j->layers = lath_embedder_layers(j->embedder);
    j->dim = lath_embedder_dim(j->embedder) * j->layers;
    return LATH_OK;
}

static void release_rows(embed_job *j)
{
    const lath_allocator *a = alloc_default();
    alloc_release(a, j->vectors, j->capacity * (size_t)j->dim * sizeof(*j->vectors));
    alloc_release(a, j->results, j->capacity * sizeof(*j->results));
    j->vectors = NULL;
    j->results = NULL;
    j->capacity = 0;
}

static lath_status rows_room(embed_job *j, size_t n, lath_error *err)
{
    const lath_allocator *a = alloc_default();
    if (n <= j->capacity) return LATH_OK;
    release_rows(j);
    j->vectors = alloc_array(a, n, (size_t)j->dim * sizeof(*j->vectors));
    j->results = alloc_array(a, n, sizeof(*j->results));
    j->capacity = n;
    if (j->vectors && j->results) return LATH_OK;
    release_rows(j);
    return err_nomem(err, n * (size_t)j->dim * sizeof(*j->vectors));
}

lath_status setup_name_item(const text_chunk *c, const char *item, lath_status st, lath_error *err)
{
    char lead[40];
    if (err->item < 0 || (size_t)err->item >= c->n) return st;
    const size_t n = (size_t)snprintf(lead, sizeof(lead), "%.12s %lld: ", item, (long long)err->item);
    if (strncmp(err->msg, lead, n) == 0) memmove(err->msg, err->msg + n, strlen(err->msg) - n + 1);
    return text_where(c, (size_t)err->item, st, err);
}

lath_status embed_job_run(embed_job *j, const text_chunk *c, lath_error *err)
{
    if (c->n == 0) return LATH_OK;
    TRY(signals_check(err));
    TRY(rows_room(j, c->n, err));
    progress_chunk(j->progress, c->from, c->to);
    const double begin = clock_now();
    const lath_status st = lath_embed(j->embedder, c->texts, c->n, j->vectors, j->results, err);
    j->seconds += clock_now() - begin;
    if (st != LATH_OK) {
        progress_clear(j->progress);
        if (st == LATH_ERR_INTERRUPTED) /* of all chunks: the call knows its own */
            return err_set(err, st, "interrupted after %zu texts", progress_done(j->progress));
        return setup_name_item(c, "text", st, err);
    }
    progress_add(j->progress, c->n);
    j->n_texts += c->n;
    for (size_t i = 0; i < c->n; i++) {
        j->n_tokens += (uint64_t)j->results[i].n_tokens;
        j->n_truncated += j->results[i].truncated ? 1 : 0;
        if (j->results[i].n_tokens > j->longest) j->longest = j->results[i].n_tokens;
    }
    return LATH_OK;
}

static void say_cache(const embed_job *j)
{
    lath_cache_stats s = {.struct_size = sizeof(s)};
    if (!j->cache || j->s->o->quiet || j->s->o->verbose == 0) return;
    if (lath_cache_get_stats(j->cache, &s, NULL) != LATH_OK) return;
    fprintf(stderr, "lath: cache %s: %llu hits (%llu in memory), %llu misses\n",
            j->s->o->cache ? j->s->o->cache : "in memory", (unsigned long long)(s.hits + s.disk_hits),
            (unsigned long long)s.hits, (unsigned long long)s.misses);
}

/* Where the time went. */
static void say_stages(const embed_job *j)
{
    lath_embed_stats s = {.struct_size = sizeof(s)};
    if (j->s->o->quiet || j->s->o->verbose == 0 || j->n_texts == 0) return;
    if (lath_embedder_get_stats(j->embedder, &s, NULL) != LATH_OK) return;
    fprintf(stderr, "lath: of %.3f s: tokenize %.3f, forward %.3f, pool and normalise %.3f", j->seconds,
            s.seconds_tokenize, s.seconds_forward, s.seconds_pool);
    if (j->cache) fprintf(stderr, ", look up %.3f", s.seconds_cache);
    fprintf(stderr, "\n");
}

void embed_job_notes(const embed_job *j)
{
    say_stages(j);
    say_cache(j);
    if (j->s->o->quiet || j->n_truncated == 0) return;
    fprintf(stderr, "lath: note: %llu of %llu text%s cut at %d tokens (--no-truncate refuses them)\n",
            (unsigned long long)j->n_truncated, (unsigned long long)j->n_texts, j->n_texts == 1 ? "" : "s",
            (int)j->longest);
}

void embed_job_close(embed_job *j)
{
    release_rows(j);
    lath_embedder_destroy(j->embedder);
    lath_cache_close(j->cache);
    *j = (embed_job){0};
}
