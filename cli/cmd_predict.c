/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_predict.c: `lath predict`: the most probable next tokens, behind the PROMPT or behind each of its tokens.
 * Probabilities are a softmax over the raw logits (lath_logits_top).
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "inside.h"
#include "lm.h"
#include "output.h"

enum { DEFAULT_TOP = 5 };

typedef struct predict_job {
    lm_job lm;
    inside in;
    output out;
    size_t top;
    lath_token_logprob *best; /* [top] */
    bool json;
} predict_job;

static lath_status put_token(const predict_job *j, int32_t id, buf *b, lath_error *err)
{
    buf text;
    bool known;
    buf_init(&text, alloc_default(), SIZE_MAX / 2);
    const lath_status st = lm_token_text(&j->lm, id, &text, &known, err);
    if (st == LATH_OK && known)
        json_put_string(b, text.data ? text.data : "", text.len);
    else if (st == LATH_OK)
        buf_str(b, "null");
    buf_deinit(&text);
    return st;
}

static lath_status put_list(predict_job *j, lath_error *err)
{
    buf *b = &j->out.b;
    buf_str(b, "\"predictions\":[");
    for (size_t i = 0; i < j->top; i++) {
        buf_printf(b, "%s{\"token_id\":%d,\"token\":", i ? "," : "", (int)j->best[i].id);
        TRY(put_token(j, j->best[i].id, b, err));
        buf_str(b, ",\"prob\":");
        json_put_f64(b, exp(j->best[i].logprob));
        buf_str(b, ",\"logprob\":");
        json_put_f64(b, j->best[i].logprob);
        buf_char(b, '}');
    }
    buf_char(b, ']');
    return LATH_OK;
}

static lath_status put_table(predict_job *j, lath_error *err)
{
    buf *b = &j->out.b;
    for (size_t i = 0; i < j->top; i++) {
        buf_printf(b, "%3zu  %8.6f  %6d  ", i + 1, exp(j->best[i].logprob), (int)j->best[i].id);
        TRY(put_token(j, j->best[i].id, b, err));
        buf_char(b, '\n');
    }
    return LATH_OK;
}

static lath_status find_best(predict_job *j, const float *logits, lath_error *err)
{
    return lath_logits_top(j->lm.s.rt, logits, (size_t)j->lm.info.vocab_size, j->top, j->best, err);
}

/* Behind one token of several. */
static lath_status see_position(void *ctx, size_t at, const float *logits, lath_error *err)
{
    predict_job *j = ctx;
    buf *b = &j->out.b;
    const int32_t id = j->lm.ids[at];
    TRY(find_best(j, logits, err));
    if (j->json) {
        buf_printf(b, "%s{\"position\":%zu,\"token_id\":%d,\"token\":", at ? ",\n" : "", at, (int)id);
        TRY(put_token(j, id, b, err));
        buf_char(b, ',');
        TRY(put_list(j, err));
        buf_char(b, '}');
    } else {
        buf_printf(b, "%sbehind token %zu, %d ", at ? "\n" : "", at, (int)id);
        TRY(put_token(j, id, b, err));
        buf_char(b, '\n');
        TRY(put_table(j, err));
    }
    return output_flush_full(&j->out, err);
}

static lath_status predict(predict_job *j, lath_error *err)
{
    lm_job *lm = &j->lm;
    progress p;
    const float *last;
    const bool all = lm->o->all_positions;
    progress_init(&p, "predict", lm->o->quiet);
    p.unit = "tokens";
    progress_chunk(&p, 0, 1);
    if (j->json) buf_str(&j->out.b, all ? "{\"positions\":[" : "{");
    const lath_status st = lm_feed(lm, lm->ids, lm->n, all ? see_position : NULL, j, &p, err);
    progress_clear(&p);
    if (st != LATH_OK) return st;
    TRY(inside_check(&j->in, err));
    if (all && j->json) buf_str(&j->out.b, "],");
    if (!all || j->json) { /* JSON has the last position's where it has it without --all-positions, too */
        TRY(lath_session_logits(lm->session, &last, err));
        TRY(find_best(j, last, err));
        TRY(j->json ? put_list(j, err) : put_table(j, err));
    }
    if (!j->json) return LATH_OK;
    buf_printf(&j->out.b, ",\"prompt_tokens\":%zu", lm->n);
    TRY(inside_put(&j->in, &j->out.b, err));
    buf_str(&j->out.b, "}\n");
    return LATH_OK;
}

static lath_status make_room(predict_job *j, lath_error *err)
{
    const options *o = j->lm.o;
    j->top = o->top ? (size_t)o->top : DEFAULT_TOP;
    if (o->top > j->lm.info.vocab_size)
        return err_set(err, LATH_ERR_USAGE, "--top: %lld, the vocabulary has %d tokens", (long long)o->top,
                       (int)j->lm.info.vocab_size);
    if (j->top > (size_t)j->lm.info.vocab_size) j->top = (size_t)j->lm.info.vocab_size;
    j->best = alloc_array(alloc_default(), j->top, sizeof(*j->best));
    return j->best ? LATH_OK : err_nomem(err, j->top * sizeof(*j->best));
}

lath_status cmd_predict(options *o, lath_error *err)
{
    predict_job job = {.json = o->json || o->jsonl};
    lath_status st;
    TRY_DONE(lm_open(&job.lm, o, err));
    TRY_DONE(make_room(&job, err));
    TRY_DONE(inside_open(&job.in, job.lm.s.model, o, err));
    TRY_DONE(lm_prompt(&job.lm, err));
    TRY_DONE(lm_begin(&job.lm, err));
    TRY_DONE(inside_attach(&job.in, job.lm.session, err));
    TRY_DONE(output_open(&job.out, o->output, err));
    TRY_DONE(predict(&job, err));
    TRY_DONE(output_close(&job.out, err));
    lm_notes(&job.lm);
    st = inside_note(&job.in, err);
done:
    output_abort(&job.out);
    alloc_release(alloc_default(), job.best, job.top * sizeof(*job.best));
    lm_end(&job.lm);
    inside_close(&job.in);
    lm_close(&job.lm);
    return st;
}
