/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_similarity.c: `lath similarity`. The matrix is symmetric by construction: a cosine is computed once for each
 * pair, row by row as it is printed.
 */
#include <stdio.h>

#include "base/error.h"
#include "base/json.h"
#include "output.h"
#include "setup.h"
#include "signals.h"
#include "vectors_out.h"

enum { TABLE_EXCERPT = 60 };

static double cell(const embed_job *job, size_t i, size_t j)
{
    const size_t d = (size_t)job->dim, a = i < j ? i : j, b = i < j ? j : i;
    return lath_cosine(job->vectors + a * d, job->vectors + b * d, job->dim);
}

static lath_status print_json(const embed_job *job, size_t n, output *out, lath_error *err)
{
    buf_str(&out->b, "{\"similarity\":[");
    for (size_t i = 0; i < n; i++) {
        buf_str(&out->b, i > 0 ? ",[" : "[");
        for (size_t j = 0; j < n; j++) {
            if (j > 0) buf_char(&out->b, ',');
            json_put_f32(&out->b, (float)cell(job, i, j));
        }
        buf_char(&out->b, ']');
        TRY(signals_check(err));
        TRY(output_flush_full(out, err));
    }
    buf_str(&out->b, "]}\n");
    return LATH_OK;
}

static lath_status print_table(const embed_job *job, const text_chunk *c, output *out, lath_error *err)
{
    buf *b = &out->b;
    buf_str(b, "      ");
    for (size_t j = 0; j < c->n; j++) buf_printf(b, " %7zu", j);
    buf_char(b, '\n');
    for (size_t i = 0; i < c->n; i++) {
        buf_printf(b, "%6zu", i);
        for (size_t j = 0; j < c->n; j++) buf_printf(b, " %7.4f", cell(job, i, j));
        buf_str(b, "  ");
        put_excerpt(b, c->texts[i], TABLE_EXCERPT);
        buf_char(b, '\n');
        TRY(signals_check(err));
        TRY(output_flush_full(out, err));
    }
    return LATH_OK;
}

lath_status cmd_similarity(options *o, lath_error *err)
{
    setup s = {0};
    embed_job job = {0};
    text_source source = {0};
    text_chunk chunk;
    output out = {0};
    progress p;
    lath_embed_options eo;
    lath_status st;
    text_chunk_init(&chunk);
    progress_init(&p, "similarity", o->quiet);
    TRY_DONE(texts_open(&source, o, &o->args, err));
    TRY_DONE(texts_all(&source, &chunk, err));
    if (chunk.n < 2) {
        st = err_set(err, LATH_ERR_USAGE, "similarity: %zu text%s given, want at least 2", chunk.n,
                     chunk.n == 1 ? "" : "s");
        goto done;
    }
    TRY_DONE(setup_model(&s, o, err));
    setup_embed_options(o, &eo);
    TRY_DONE(embed_job_open(&job, &s, &eo, &p, err));
    TRY_DONE(embed_job_run(&job, &chunk, err));
    progress_clear(&p);
    TRY_DONE(output_open(&out, o->output, err));
    TRY_DONE(o->json || o->jsonl ? print_json(&job, chunk.n, &out, err) : print_table(&job, &chunk, &out, err));
    TRY_DONE(output_close(&out, err));
    embed_job_notes(&job);
    setup_note_pooling(&s);
done:
    output_abort(&out);
    text_chunk_deinit(&chunk);
    texts_close(&source);
    embed_job_close(&job);
    setup_close(&s);
    return st;
}
