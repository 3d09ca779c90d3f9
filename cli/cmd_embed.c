/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_embed.c: `lath embed`. Texts are read, embedded and written in chunks, so that memory does not grow with the
 * input.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "output.h"
#include "setup.h"
#include "signals.h"
#include "vectors_out.h"

enum { CHUNK_TEXTS = 512 };

/* The format that --format, --json and --jsonl name, else jsonl, or a preview where a person looks. */
static enum vectors_format choose_format(const options *o, const output *out)
{
    if (o->json || o->format == FORMAT_JSON) return VECTORS_JSON;
    if (o->jsonl || o->format == FORMAT_JSONL) return VECTORS_JSONL;
    if (o->format == FORMAT_NPY) return VECTORS_NPY;
    if (o->format == FORMAT_F32) return VECTORS_F32;
    if (o->format == FORMAT_TEXT) return VECTORS_TEXT;
    return out->terminal ? VECTORS_PREVIEW : VECTORS_JSONL;
}

static lath_status embed_all(text_source *source, embed_job *job, vectors_out *v, lath_error *err)
{
    text_chunk chunk;
    lath_status st = LATH_OK;
    text_chunk_init(&chunk);
    for (;;) {
        TRY_DONE(texts_next(source, &chunk, CHUNK_TEXTS, err));
        if (chunk.n == 0) break;
        TRY_DONE(embed_job_run(job, &chunk, err));
        for (size_t i = 0; i < chunk.n; i++)
            TRY_DONE(vectors_add(v, job->vectors + i * (size_t)job->dim, &job->results[i], chunk.texts[i], err));
        if (source->wait && v->format != VECTORS_NPY)
            TRY_DONE(output_flush(v->out, err)); /* a pipe's reader gets what is ready */
    }
    st = vectors_end(v, err);
done:
    progress_clear(job->progress);
    text_chunk_deinit(&chunk);
    return st;
}

static void say_speed(const options *o, const embed_job *job, const progress *p)
{
    if (o->verbose == 0 || o->quiet || job->n_texts == 0) return;
    fprintf(stderr, "lath: embedded %llu text%s, %llu tokens in %.2f s: %.0f texts/s, %.0f tokens/s\n",
            (unsigned long long)job->n_texts, job->n_texts == 1 ? "" : "s", (unsigned long long)job->n_tokens,
            progress_seconds(p), (double)job->n_texts / job->seconds, (double)job->n_tokens / job->seconds);
}

lath_status cmd_embed(options *o, lath_error *err)
{
    setup s = {0};
    embed_job job = {0};
    text_source source = {0};
    output out = {0};
    vectors_out v;
    progress p;
    lath_embed_options eo;
    lath_status st;
    progress_init(&p, "embed", o->quiet);
    TRY_DONE(texts_open(&source, o, &o->args, err));
    TRY_DONE(setup_model(&s, o, err));
    setup_embed_options(o, &eo);
    TRY_DONE(setup_layer(o, &eo.layer, err));
    TRY_DONE(embed_job_open(&job, &s, &eo, &p, err));
    if (o->cache_import) TRY_DONE(lath_cache_import(job.embedder, o->cache_import, NULL, err));
    TRY_DONE(output_open(&out, o->output, err));
    const vectors_shape shape = {eo.layer == LATH_LAYER_ALL, job.layers, job.dim / job.layers, 0};
    TRY_DONE(vectors_begin(&v, &out, choose_format(o, &out), shape, err));
    TRY_DONE(embed_all(&source, &job, &v, err));
    if (o->cache_export) TRY_DONE(lath_cache_export(job.embedder, o->cache_export, NULL, err));
    TRY_DONE(output_close(&out, err));
    embed_job_notes(&job);
    setup_note_pooling(&s);
    say_speed(o, &job, &p);
done:
    output_abort(&out);
    texts_close(&source);
    embed_job_close(&job);
    setup_close(&s);
    return st;
}
