/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_perplexity.c: `lath perplexity`: exp of the mean negative logarithm of the probability that a model gives to the
 * tokens of a text. Two definitions of what a token's context is are in use, and both are here:
 *     --stride S   windows of --ctx N tokens that begin S tokens after each other; a window scores the tokens that none
 *                  before it has scored, so that every token but the first is scored once (S = N: but the first of every
 *                  window). The last window ends with the text. transformers' documentation has it so ("Perplexity of
 *                  fixed-length models"); its sum weighs a window by one token less than it scores, this one does not.
 *     without      chunks of N tokens behind each other, of which the second half is scored: of N tokens the last
 *                  N - N/2 - 1. What is left at the end, less than N, is not scored. llama.cpp's perplexity does it so.
 * A text of up to N tokens is one window, and every token but the first is scored. In both, where the model's texts begin
 * with a token of the template (BOS), it stands in the place of every window's first token, as in llama.cpp: models that
 * were never without it give nonsense where it is missing.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "lm.h"
#include "output.h"

enum { DEFAULT_CTX = 512 };

typedef struct perplexity_job {
    lm_job lm;
    size_t ctx;      /* tokens of a window */
    int32_t bos;     /* -1: none */
    int32_t *window; /* [n_room] its tokens */
    size_t n_room;
    size_t begin, first; /* of the window in the text; the first token of it that is scored */
    size_t n_windows, n_scored, n_left;
    double sum, squares; /* of -logprob */
} perplexity_job;

/* The token that begins every text, alone and with something behind it. */
static lath_status find_bos(perplexity_job *j, lath_error *err)
{
    const lath_tokenizer *tok = lath_model_tokenizer(j->lm.s.model);
    lath_tokens none = {0}, some = {0};
    j->bos = -1;
    lath_status st = lath_encode(tok, (lath_text){"", 0}, NULL, &none, err);
    if (st == LATH_OK) st = lath_encode(tok, (lath_text){"a", 1}, NULL, &some, err);
    if (st == LATH_OK && none.n > 0 && some.n > 1 && none.ids[0] == some.ids[0]) j->bos = none.ids[0];
    lath_tokens_release(&some);
    lath_tokens_release(&none);
    return st;
}

/* Logits behind token `at` of the window are about the next one. */
static lath_status score(void *ctx, size_t at, const float *logits, lath_error *err)
{
    perplexity_job *j = ctx;
    double logprob;
    if (at + 1 < j->first) return LATH_OK;
    const int32_t next = j->lm.ids[j->begin + at + 1];
    TRY(lath_logits_logprob(j->lm.s.rt, logits, (size_t)j->lm.info.vocab_size, next, &logprob, err));
    j->sum -= logprob;
    j->squares += logprob * logprob;
    j->n_scored++;
    return LATH_OK;
}

/* Scores tokens first .. n - 1 of the window that begins at `begin`. What is only seen needs no logits; it is put in by a
 * call of its own unless a part would be a single token, which is computed otherwise (lath.h). */
static lath_status score_window(perplexity_job *j, size_t begin, size_t n, size_t first, progress *p, lath_error *err)
{
    const size_t n_seen = first > 2 && n > first + 1 ? first - 1 : 0;
    j->begin = begin;
    j->first = first;
    memcpy(j->window, j->lm.ids + begin, n * sizeof(*j->window));
    if (j->bos >= 0) j->window[0] = j->bos;
    (void)lath_session_rewind(j->lm.session, 0);
    progress_chunk(p, (double)begin / (double)j->lm.n, (double)(begin + n) / (double)j->lm.n);
    TRY(lm_feed(&j->lm, j->window, n_seen, NULL, NULL, p, err));
    TRY(lm_feed(&j->lm, j->window + n_seen, n - 1 - n_seen, score, j, p, err));
    j->n_windows++;
    return LATH_OK;
}

static lath_status score_text(perplexity_job *j, progress *p, lath_error *err)
{
    const size_t n = j->lm.n, N = j->ctx, S = j->lm.o->stride ? (size_t)j->lm.o->stride : 0;
    if (n <= N) return score_window(j, 0, n, 1, p, err);
    if (S == 0) {
        for (size_t at = 0; at + N <= n; at += N) TRY(score_window(j, at, N, N / 2 + 1, p, err));
        j->n_left = n % N;
        return LATH_OK;
    }
    for (size_t at = 0, end = 0; end < n; at += S) {
        const size_t first = end > at ? end - at : 1;
        end = at + N < n ? at + N : n;
        TRY(score_window(j, at, end - at, first, p, err));
    }
    return LATH_OK;
}

/* The error is that of the mean, as if tokens were independent, carried over to its exponential. */
static void print(const perplexity_job *j, buf *b)
{
    const double n = (double)j->n_scored, mean = j->sum / n;
    if (j->lm.o->json || j->lm.o->jsonl) {
        buf_str(b, "{\"perplexity\":");
        json_put_f64(b, exp(mean));
        buf_printf(b, ",\"tokens\":%zu,\"nll\":", j->n_scored);
        json_put_f64(b, mean);
        buf_printf(b, ",\"windows\":%zu}\n", j->n_windows);
        return;
    }
    buf_printf(b, "perplexity %.4f", exp(mean));
    if (j->n_scored > 1) {
        const double variance = fmax(0, j->squares / n - mean * mean) / (n - 1);
        buf_printf(b, " +- %.4f", exp(mean) * sqrt(variance));
    }
    buf_printf(b, "  (%zu tokens in %zu window%s, nll %.6f)\n", j->n_scored, j->n_windows, j->n_windows == 1 ? "" : "s",
               mean);
}

/* The text, a session and room for a window. */
static lath_status prepare(perplexity_job *j, lath_error *err)
{
    const options *o = j->lm.o;
    const size_t most = (size_t)j->lm.plan.most;
    if (o->ctx > j->lm.plan.most || o->ctx == 1)
        return err_set(err, LATH_ERR_USAGE, "--ctx: %lld, want 2 to %zu (the model's window)", (long long)o->ctx, most);
    j->ctx = o->ctx ? (size_t)o->ctx : most < DEFAULT_CTX ? most : DEFAULT_CTX;
    if (o->stride > (int64_t)j->ctx)
        return err_set(err, LATH_ERR_USAGE, "--stride: %lld, want 1 to %zu (--ctx)", (long long)o->stride, j->ctx);
    TRY(lm_prompt(&j->lm, err));
    if (j->lm.n < 2) return err_set(err, LATH_ERR_INPUT, "the text has %zu token: none has another before it", j->lm.n);
    TRY(find_bos(j, err));
    j->n_room = j->lm.n < j->ctx ? j->lm.n : j->ctx;
    j->window = alloc_array(alloc_default(), j->n_room, sizeof(*j->window));
    if (!j->window) return err_nomem(err, j->n_room * sizeof(*j->window));
    return lm_session(&j->lm, (int64_t)j->n_room, err);
}

static lath_status compute(perplexity_job *j, lath_error *err)
{
    progress p;
    progress_init(&p, "perplexity", j->lm.o->quiet);
    p.unit = "tokens";
    const lath_status st = score_text(j, &p, err);
    progress_clear(&p);
    if (st != LATH_OK) return st;
    if (j->n_left && !j->lm.o->quiet)
        fprintf(stderr, "lath: note: the last %zu of %zu tokens make no whole chunk of %zu and are not scored\n",
                j->n_left, j->lm.n, j->ctx);
    lm_notes(&j->lm);
    return LATH_OK;
}

lath_status cmd_perplexity(options *o, lath_error *err)
{
    perplexity_job job = {0};
    output out = {0};
    lath_status st;
    if (o->args.n > 0)
        return err_set(err, LATH_ERR_USAGE, "%.60s: perplexity is of a file (-f FILE) or standard input",
                       o->args.items[0]);
    TRY_DONE(lm_open(&job.lm, o, err));
    TRY_DONE(prepare(&job, err));
    TRY_DONE(output_open(&out, o->output, err));
    TRY_DONE(compute(&job, err));
    print(&job, &out.b);
    st = output_close(&out, err);
done:
    output_abort(&out);
    alloc_release(alloc_default(), job.window, job.n_room * sizeof(*job.window));
    lm_close(&job.lm);
    return st;
}
