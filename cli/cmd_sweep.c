/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_sweep.c: `lath sweep`: prompts with known answers, with every number of layers dense and those above walked over an index. The dense model comes first: its logits are what
 * the others are compared with.
 */
#include <math.h>
#include <string.h>

#include "answer.h"
#include "base/error.h"
#include "base/json.h"
#include "output.h"
#include "signals.h"
#include "trace_out.h"
#include "walked.h"

static const size_t LOGITS_MOST = (size_t)1 << 30; /* bytes of the dense model's that are kept */

typedef struct question {
    const char *prompt, *answer; /* in the arena */
    int32_t *ids;                /* [n] */
    size_t n;
    answer ways;
    int32_t id;        /* of the answer's first token */
    int32_t top;       /* what the dense model finds likeliest */
    double dense_prob; /* of the answer */
} question;

typedef struct boundary {
    size_t correct, same_top;
    double sum_prob, drift, logit_diff, seconds, ffn_seconds;
} boundary;

typedef struct sweep_job {
    lm_job lm;
    output out;
    arena mem;
    question *questions; /* [n] */
    size_t n, capacity, longest, vocab;
    float *dense; /* [n, vocab] */
    size_t dense_bytes;
    boundary *at; /* [n_layers + 1] in the arena */
    progress p;
} sweep_job;

/* ------------------------------------------------------------------------------------------------------------- questions */

static lath_status add_question(sweep_job *j, lath_text line, lath_error *err)
{
    json_value *v;
    question q = {0};
    lath_status st = json_parse(&j->mem, "prompts", line.data, line.len, NULL, &v, err);
    if (st == LATH_OK) st = json_get_str(v, "prompt", "prompts", &q.prompt, err);
    if (st == LATH_OK) st = json_get_str(v, "answer", "prompts", &q.answer, err);
    if (st == LATH_ERR_NOMEM) return st;
    if (st != LATH_OK || !q.prompt || !q.answer)
        return err_set(err, LATH_ERR_INPUT, "want a JSON object with \"prompt\" and \"answer\", two strings");
    if (!*q.answer) return err_set(err, LATH_ERR_INPUT, "the answer is empty");
    const buf text = {.data = (char *)(uintptr_t)q.prompt, .len = strlen(q.prompt)};
    TRY(lm_encode(&j->lm, &text, err));
    q.n = j->lm.n;
    if (j->lm.info.max_tokens > 0 && q.n > (size_t)j->lm.info.max_tokens)
        return err_set(err, LATH_ERR_WINDOW, "%zu tokens, the model's window has %d", q.n, (int)j->lm.info.max_tokens);
    q.ids = arena_array(&j->mem, q.n, sizeof(*q.ids));
    if (!q.ids) return err_nomem(err, q.n * sizeof(*q.ids));
    memcpy(q.ids, j->lm.ids, q.n * sizeof(*q.ids));
    TRY(answer_find(&j->lm, (lath_text){text.data, text.len}, (lath_text){q.answer, strlen(q.answer)}, &q.ways, err));
    if (j->n == j->capacity) {
        const size_t capacity = j->capacity ? 2 * j->capacity : 32;
        question *more = arena_array(&j->mem, capacity, sizeof(*more));
        if (!more) return err_nomem(err, capacity * sizeof(*more));
        if (j->n) memcpy(more, j->questions, j->n * sizeof(*more));
        j->questions = more;
        j->capacity = capacity;
    }
    j->questions[j->n++] = q;
    if (q.n > j->longest) j->longest = q.n;
    return LATH_OK;
}

static lath_status read_questions(sweep_job *j, const options *o, lath_error *err)
{
    text_source s = {0};
    text_chunk c;
    lath_status st;
    if (o->args.n)
        return err_set(err, LATH_ERR_USAGE,
                       "sweep: takes prompts from a JSONL file (-f) or standard input, not as arguments");
    text_chunk_init(&c);
    TRY_DONE(texts_open(&s, o, &o->args, err));
    TRY_DONE(texts_all(&s, &c, err));
    for (size_t i = 0; i < c.n; i++) {
        if (c.texts[i].len == 0) continue;
        st = add_question(j, c.texts[i], err);
        if (st != LATH_OK) {
            st = text_where(&c, i, st, err);
            goto done;
        }
    }
    st = j->n ? LATH_OK : err_set(err, LATH_ERR_INPUT, "sweep: there are no prompts");
done:
    text_chunk_deinit(&c);
    texts_close(&s);
    return st;
}

/* ------------------------------------------------------------------------------------------------------------------ runs */

static lath_status prob_of(const sweep_job *j, const float *logits, int32_t id, double *out, lath_error *err)
{
    TRY(lath_logits_logprob(j->lm.s.rt, logits, j->vocab, id, out, err));
    *out = exp(*out);
    return LATH_OK;
}

static lath_status ask(sweep_job *j, boundary *b, size_t i, const walked_run *r, bool dense, lath_error *err)
{
    question *q = &j->questions[i];
    float *kept = j->dense + i * j->vocab;
    lath_token_logprob top;
    double prob;
    TRY(lath_logits_top(j->lm.s.rt, r->logits, j->vocab, 1, &top, err));
    if (dense) {
        memcpy(kept, r->logits, j->vocab * sizeof(*kept));
        q->id = answer_choose(&q->ways, kept);
        q->top = top.id;
        TRY(prob_of(j, kept, q->id, &q->dense_prob, err));
    }
    TRY(prob_of(j, r->logits, q->id, &prob, err));
    const double drift = fabs(prob - q->dense_prob), diff = walked_difference(kept, r->logits, j->vocab);
    b->correct += top.id == q->id;
    b->same_top += top.id == q->top;
    b->sum_prob += prob;
    b->seconds += r->seconds;
    b->ffn_seconds += r->ffn_seconds;
    if (drift > b->drift) b->drift = drift;
    if (diff > b->logit_diff) b->logit_diff = diff;
    return LATH_OK;
}

static lath_status run_boundary(sweep_job *j, int32_t at, lath_error *err)
{
    lath_ffn *ffn = NULL;
    walked_run r;
    TRY(walked_open(&j->lm, at, &ffn, err));
    lath_status st = LATH_OK;
    for (size_t i = 0; i < j->n && st == LATH_OK; i++) {
        const question *q = &j->questions[i];
        st = signals_check(err);
        if (st == LATH_OK) st = walked_run_ids(&j->lm, ffn, q->ids, q->n, &r, err);
        if (st == LATH_OK) st = ask(j, &j->at[at], i, &r, at == j->lm.info.n_layers, err);
        if (st == LATH_OK) progress_add(&j->p, 1);
        (void)progress_tick(&j->p, 0, 0);
    }
    (void)lath_session_rewind(j->lm.session, 0);
    if (st == LATH_OK) st = lath_session_set_ffn(j->lm.session, NULL, err);
    if (st != LATH_OK) lm_end(&j->lm); /* which may have it still */
    lath_ffn_close(ffn);
    return st;
}

static lath_status run(sweep_job *j, lath_error *err)
{
    const int32_t n_layers = j->lm.info.n_layers;
    lath_status st = LATH_OK;
    progress_init(&j->p, "sweep", j->lm.o->quiet);
    j->p.unit = "runs";
    for (int32_t k = 0; k <= n_layers && st == LATH_OK; k++) { /* dense, then 0, 1, ... */
        progress_chunk(&j->p, (double)k / (n_layers + 1), (double)(k + 1) / (n_layers + 1));
        st = run_boundary(j, k ? k - 1 : n_layers, err);
    }
    progress_clear(&j->p);
    return st;
}

static lath_status make_room(sweep_job *j, lath_error *err)
{
    const size_t n_at = (size_t)j->lm.info.n_layers + 1;
    j->vocab = (size_t)j->lm.info.vocab_size;
    if (j->n > LOGITS_MOST / sizeof(float) / j->vocab)
        return err_set(err, LATH_ERR_LIMIT, "sweep: %zu prompts; logits of %zu are kept", j->n,
                       LOGITS_MOST / sizeof(float) / j->vocab);
    j->dense_bytes = j->n * j->vocab * sizeof(float);
    j->dense = alloc_array(alloc_default(), j->n * j->vocab, sizeof(float));
    j->at = arena_array(&j->mem, n_at, sizeof(*j->at));
    if (!j->dense || !j->at) return err_nomem(err, j->dense_bytes);
    memset(j->at, 0, n_at * sizeof(*j->at));
    j->lm.n = j->longest; /* a session for each of them */
    return lm_begin(&j->lm, err);
}

/* --------------------------------------------------------------------------------------------------------------- results */

static void put_number(buf *b, const char *name, double v)
{
    buf_printf(b, ",\"%s\":", name);
    json_put_f64(b, v);
}

static lath_status put_questions(sweep_job *j, lath_error *err)
{
    buf *b = &j->out.b;
    buf_str(b, "\"prompts\":[");
    for (size_t i = 0; i < j->n; i++) {
        const question *q = &j->questions[i];
        buf_str(b, i ? ",\n{\"prompt\":" : "{\"prompt\":");
        json_put_string(b, q->prompt, strlen(q->prompt));
        buf_str(b, ",\"answer\":");
        json_put_string(b, q->answer, strlen(q->answer));
        buf_printf(b, ",\"token_id\":%d,\"token\":", (int)q->id);
        TRY(trace_put_token(&j->lm, q->id, b, err));
        put_number(b, "dense_prob", q->dense_prob);
        buf_printf(b, ",\"dense_correct\":%s}", q->top == q->id ? "true" : "false");
    }
    buf_char(b, ']');
    return LATH_OK;
}

static lath_status put_json(sweep_job *j, lath_error *err)
{
    buf *b = &j->out.b;
    buf_str(b, "{\"boundaries\":[");
    for (int32_t i = 0; i <= j->lm.info.n_layers; i++) {
        const boundary *x = &j->at[i];
        buf_printf(b, "%s{\"boundary\":%d,\"correct\":%zu,\"of\":%zu", i ? ",\n" : "", (int)i, x->correct, j->n);
        put_number(b, "mean_prob", x->sum_prob / (double)j->n);
        put_number(b, "max_drift", x->drift);
        buf_printf(b, ",\"same_top\":%zu", x->same_top);
        put_number(b, "max_logit_diff", x->logit_diff);
        put_number(b, "seconds", x->seconds);
        put_number(b, "ffn_seconds", x->ffn_seconds);
        buf_char(b, '}');
    }
    buf_str(b, "],\n");
    TRY(put_questions(j, err));
    buf_str(b, "}\n");
    return LATH_OK;
}

static void put_table(sweep_job *j)
{
    buf *b = &j->out.b;
    buf_printf(b, "%zu prompts; layers from the boundary on are walked, %d: none is\n\n", j->n,
               (int)j->lm.info.n_layers);
    buf_str(b, "boundary  correct  mean prob  max drift  same top-1  max logit diff\n");
    for (int32_t i = 0; i <= j->lm.info.n_layers; i++) {
        const boundary *x = &j->at[i];
        buf_printf(b, "%8d  %4zu/%-2zu  %9.6f  %9.2e  %7zu/%-2zu  %14.2e\n", (int)i, x->correct, j->n,
                   x->sum_prob / (double)j->n, x->drift, x->same_top, j->n, x->logit_diff);
    }
}

lath_status cmd_sweep(options *o, lath_error *err)
{
    sweep_job j = {0};
    lath_status st;
    TRY(walked_check(o, err));
    arena_init(&j.mem, alloc_default());
    TRY_DONE(lm_open(&j.lm, o, err));
    TRY_DONE(read_questions(&j, o, err));
    TRY_DONE(make_room(&j, err));
    TRY_DONE(output_open(&j.out, o->output, err));
    TRY_DONE(run(&j, err));
    if (o->json || o->jsonl)
        TRY_DONE(put_json(&j, err));
    else
        put_table(&j);
    TRY_DONE(output_close(&j.out, err));
done:
    output_abort(&j.out);
    alloc_release(alloc_default(), j.dense, j.dense_bytes);
    lm_close(&j.lm);
    arena_deinit(&j.mem);
    return st;
}
