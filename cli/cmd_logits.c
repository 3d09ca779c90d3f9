/* SPDX-License-Identifier: Apache-2.0
 * cmd_logits.c: `lath logits`: the raw logits behind the last token, or behind every token, as an npy file. */
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "lm.h"
#include "vectors_out.h"

static lath_status add_row(void *ctx, size_t at, const float *logits, lath_error *err)
{
    (void)at;
    return vectors_add(ctx, logits, NULL, (lath_text){0}, err);
}

static lath_status write_logits(lm_job *j, output *out, lath_error *err)
{
    progress p;
    vectors_out v;
    const float *last;
    const bool all = j->o->all_positions;
    progress_init(&p, "logits", j->o->quiet);
    p.unit = "tokens";
    progress_chunk(&p, 0, 1);
    const vectors_shape shape = {false, 1, j->info.vocab_size, all ? j->n : 1};
    TRY(vectors_begin(&v, out, VECTORS_NPY, shape, err));
    const lath_status st = lm_feed(j, j->ids, j->n, all ? add_row : NULL, &v, &p, err);
    progress_clear(&p);
    if (st != LATH_OK) return st;
    if (!all) {
        TRY(lath_session_logits(j->session, &last, err));
        TRY(add_row(&v, 0, last, err));
    }
    return vectors_end(&v, err);
}

static lath_status print_json(const lm_job *j, lath_error *err)
{
    output out;
    TRY(output_open(&out, NULL, err));
    buf_printf(&out.b, "{\"shape\":[%zu,%d],\"file\":", j->o->all_positions ? j->n : 1, (int)j->info.vocab_size);
    json_put_string(&out.b, j->o->output, strlen(j->o->output));
    buf_str(&out.b, "}\n");
    return output_close(&out, err);
}

static lath_status check_options(const options *o, lath_error *err)
{
    const bool to_file = o->output && strcmp(o->output, "-") != 0;
    if ((o->json || o->jsonl) && !to_file)
        return err_set(err, LATH_ERR_USAGE, "--json: tells where the logits are; name a file with -o");
    if (o->id_list && (o->args.n > 0 || o->files.n > 0))
        return err_set(err, LATH_ERR_USAGE, "--ids: are given instead of a PROMPT, not with one");
    return LATH_OK;
}

lath_status cmd_logits(options *o, lath_error *err)
{
    lm_job job = {0};
    output out = {0};
    lath_status st;
    TRY(check_options(o, err));
    TRY_DONE(lm_open(&job, o, err));
    TRY_DONE(o->id_list ? lm_take_ids(&job, o->id_list, err) : lm_prompt(&job, err));
    TRY_DONE(lm_begin(&job, err));
    TRY_DONE(output_open(&out, o->output, err));
    TRY_DONE(write_logits(&job, &out, err));
    TRY_DONE(output_close(&out, err));
    lm_notes(&job);
    st = o->json || o->jsonl ? print_json(&job, err) : LATH_OK;
done:
    output_abort(&out);
    lm_close(&job);
    return st;
}
