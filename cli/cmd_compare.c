/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_compare.c: `lath compare`: a PROMPT with the model's own FFNs and with walks over its index. Both go through the same session twice, in turn; what is read from the disk
 * for the first time is not part of the times.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "inside.h"
#include "output.h"
#include "signals.h"
#include "trace_out.h"
#include "walked.h"

enum { DEFAULT_TOP = 5, SIDES = 2, ROUNDS = 2 };
static const char *const side_names[SIDES] = {"dense", "walk"};

typedef struct side {
    lath_ffn *ffn;
    float *logits;            /* [vocab] */
    lath_token_logprob *best; /* [top] */
    walked_run run;
} side;

typedef struct compare_job {
    lm_job lm;
    output out;
    side sides[SIDES];
    size_t top, vocab;
} compare_job;

static lath_status open_sides(compare_job *j, const options *o, lath_error *err)
{
    j->vocab = (size_t)j->lm.info.vocab_size;
    j->top = o->top ? (size_t)o->top : DEFAULT_TOP;
    if (o->top > j->lm.info.vocab_size)
        return err_set(err, LATH_ERR_USAGE, "--top: %lld, the vocabulary has %d tokens", (long long)o->top,
                       (int)j->lm.info.vocab_size);
    if (j->top > j->vocab) j->top = j->vocab;
    for (int s = 0; s < SIDES; s++) {
        side *x = &j->sides[s];
        TRY(walked_open(&j->lm, s ? 0 : j->lm.info.n_layers, &x->ffn, err));
        x->logits = alloc_array(alloc_default(), j->vocab, sizeof(*x->logits));
        x->best = alloc_array(alloc_default(), j->top, sizeof(*x->best));
        if (!x->logits || !x->best) return err_nomem(err, j->vocab * sizeof(*x->logits));
    }
    return LATH_OK;
}

static lath_status run(compare_job *j, lath_error *err)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (int s = 0; s < SIDES; s++) {
            side *x = &j->sides[s];
            TRY(signals_check(err));
            TRY(walked_run_ids(&j->lm, x->ffn, j->lm.ids, j->lm.n, &x->run, err));
            memcpy(x->logits, x->run.logits, j->vocab * sizeof(*x->logits));
        }
    }
    for (int s = 0; s < SIDES; s++)
        TRY(lath_logits_top(j->lm.s.rt, j->sides[s].logits, j->vocab, j->top, j->sides[s].best, err));
    return LATH_OK;
}

static bool same(const compare_job *j) { return j->sides[0].best[0].id == j->sides[1].best[0].id; }

static lath_status put_side(compare_job *j, int s, lath_error *err)
{
    const side *x = &j->sides[s];
    buf *b = &j->out.b;
    buf_printf(b, "\"%s\":{\"predictions\":[", side_names[s]);
    for (size_t i = 0; i < j->top; i++) {
        buf_printf(b, "%s{\"token_id\":%d,\"token\":", i ? "," : "", (int)x->best[i].id);
        TRY(trace_put_token(&j->lm, x->best[i].id, b, err));
        buf_str(b, ",\"prob\":");
        json_put_f64(b, exp(x->best[i].logprob));
        buf_str(b, ",\"logprob\":");
        json_put_f64(b, x->best[i].logprob);
        buf_char(b, '}');
    }
    buf_str(b, "],\"seconds\":");
    json_put_f64(b, x->run.seconds);
    buf_str(b, ",\"ffn_seconds\":");
    json_put_f64(b, x->run.ffn_seconds);
    buf_str(b, ",\"ffn\":");
    TRY(inside_put_paths(x->ffn, j->lm.info.n_layers, b, err));
    buf_str(b, "},\n");
    return LATH_OK;
}

static lath_status put_json(compare_job *j, double difference, lath_error *err)
{
    buf *b = &j->out.b;
    buf_char(b, '{');
    for (int s = 0; s < SIDES; s++) TRY(put_side(j, s, err));
    buf_printf(b, "\"match\":%s,\"max_logit_diff\":", same(j) ? "true" : "false");
    json_put_f64(b, difference);
    buf_printf(b, ",\"prompt_tokens\":%zu}\n", j->lm.n);
    return LATH_OK;
}

static lath_status put_table(compare_job *j, double difference, lath_error *err)
{
    buf *b = &j->out.b;
    for (int s = 0; s < SIDES; s++) {
        const side *x = &j->sides[s];
        buf_printf(b, "%s: %.1f ms, of these %.1f in FFNs\n", side_names[s], x->run.seconds * 1e3,
                   x->run.ffn_seconds * 1e3);
        for (size_t i = 0; i < j->top; i++) {
            buf_printf(b, "%3zu  %8.6f  %6d  ", i + 1, exp(x->best[i].logprob), (int)x->best[i].id);
            TRY(trace_put_token(&j->lm, x->best[i].id, b, err));
            buf_char(b, '\n');
        }
    }
    buf_printf(b, "likeliest token: %s; largest difference of two logits: %.3g\n", same(j) ? "the same" : "another",
               difference);
    return LATH_OK;
}

lath_status cmd_compare(options *o, lath_error *err)
{
    compare_job j = {0};
    lath_status st;
    TRY(walked_check(o, err));
    TRY_DONE(lm_open(&j.lm, o, err));
    TRY_DONE(lm_prompt(&j.lm, err));
    TRY_DONE(lm_begin(&j.lm, err));
    TRY_DONE(open_sides(&j, o, err));
    TRY_DONE(output_open(&j.out, o->output, err));
    TRY_DONE(run(&j, err));
    const double difference = walked_difference(j.sides[0].logits, j.sides[1].logits, j.vocab);
    TRY_DONE(o->json || o->jsonl ? put_json(&j, difference, err) : put_table(&j, difference, err));
    TRY_DONE(output_close(&j.out, err));
done:
    output_abort(&j.out);
    lm_end(&j.lm);
    for (int s = 0; s < SIDES; s++) {
        lath_ffn_close(j.sides[s].ffn);
        alloc_release(alloc_default(), j.sides[s].logits, j.vocab * sizeof(float));
        alloc_release(alloc_default(), j.sides[s].best, j.top * sizeof(lath_token_logprob));
    }
    lm_close(&j.lm);
    return st;
}
