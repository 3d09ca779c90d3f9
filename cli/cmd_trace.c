/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_trace.c: `lath trace`: one run of the PROMPT, in which the residual stream and what each block adds to it is kept (lath_inspect.h), and what it says of an answer.
 */
#include <math.h>
#include <string.h>

#include "answer.h"
#include "base/error.h"
#include "base/json.h"
#include "prompt.h"
#include "signals.h"
#include "trace_out.h"

enum { TOP_JSON = 5, TOP_TABLE = 1 };

typedef struct trace_job {
    lm_job lm;
    inside in;
    output out;
    lath_trace *trace;
    trace_view view;
    answer answer;
    bool json, given;         /* --answer */
    float *lens;              /* [n_layers, vocab] of one position */
    lath_answer_step *steps;  /* [n_layers] */
    lath_token_logprob *best; /* [n_layers, top] */
    progress *p;
} trace_job;

static int ask(void *ctx, size_t done, size_t total)
{
    const trace_job *j = ctx;
    return progress_tick(j->p, done, total);
}

/* The prompt's tokens, and the answer's. */
static lath_status read_texts(trace_job *j, const options *o, lath_error *err)
{
    buf text = {0};
    lath_status st = prompt_read(o, &text, err);
    if (st == LATH_OK) st = lm_encode(&j->lm, &text, err);
    if (st == LATH_OK && o->answer) {
        st = answer_find(&j->lm, (lath_text){text.data ? text.data : "", text.len},
                         (lath_text){o->answer, strlen(o->answer)}, &j->answer, err);
        if (st != LATH_OK) st = err_wrap(err, st, "--answer");
        j->given = true;
    }
    prompt_release(&text);
    return st;
}

static lath_status run(trace_job *j, const options *o, lath_error *err)
{
    lath_trace_options to = LATH_TRACE_OPTIONS_INIT;
    progress p;
    to.all_positions = o->positions;
    to.hooks = j->in.hooks;
    to.ffn = j->in.ffn;
    to.what = (o->heads ? LATH_TRACE_HEADS : 0) | (o->weights ? LATH_TRACE_WEIGHTS : 0);
    to.progress = ask;
    to.progress_ctx = j;
    progress_init(&p, "trace", o->quiet);
    p.unit = "tokens";
    progress_chunk(&p, 0, 1);
    j->p = &p;
    TRY(signals_check(err));
    const lath_status st = lath_trace_run(j->lm.s.model, j->lm.ids, j->lm.n, &to, &j->trace, err);
    progress_clear(&p);
    return st;
}

static lath_status make_room(trace_job *j, const options *o, lath_error *err)
{
    trace_view *v = &j->view;
    v->lm = &j->lm;
    v->trace = j->trace;
    v->info.struct_size = sizeof(v->info);
    v->weights = o->weights;
    TRY(lath_trace_get_info(j->trace, &v->info, err));
    const size_t n = (size_t)v->info.n_layers, vocab = (size_t)v->info.vocab_size;
    if (vocab == 0 && (o->answer || o->heads || o->top))
        return err_set(err, LATH_ERR_UNSUPPORTED, "--%s: %s has no output head that makes tokens of its stream",
                       o->answer  ? "answer"
                       : o->heads ? "heads"
                                  : "top",
                       j->lm.info.architecture);
    v->top = o->top ? (size_t)o->top : j->json ? TOP_JSON : TOP_TABLE;
    if (vocab && o->top > (int64_t)vocab)
        return err_set(err, LATH_ERR_USAGE, "--top: %lld, the vocabulary has %zu tokens", (long long)o->top, vocab);
    if (v->top > vocab) v->top = vocab;
    v->layers = alloc_array(alloc_default(), n, sizeof(*v->layers));
    j->steps = alloc_array(alloc_default(), n, sizeof(*j->steps));
    if (!v->layers || !j->steps) return err_nomem(err, n * sizeof(*v->layers));
    if (vocab == 0) return LATH_OK;
    j->lens = alloc_array(alloc_default(), n * vocab, sizeof(*j->lens));
    j->best = alloc_array(alloc_default(), n * v->top, sizeof(*j->best));
    if (o->heads) v->heads = alloc_array(alloc_default(), n * (size_t)v->info.n_heads, sizeof(*v->heads));
    if (!j->lens || !j->best || (o->heads && !v->heads)) return err_nomem(err, n * vocab * sizeof(*j->lens));
    return LATH_OK;
}

static double norm_of(const trace_job *j, lath_point point, int32_t layer)
{
    const float *row;
    size_t d;
    double sum = 0;
    if (lath_trace_get(j->trace, point, layer, j->view.position, &row, &d, NULL) != LATH_OK) return NAN;
    for (size_t i = 0; i < d; i++) sum += (double)row[i] * row[i];
    return sqrt(sum);
}

static lath_status take_heads(trace_job *j, lath_error *err)
{
    trace_view *v = &j->view;
    const size_t n = (size_t)v->info.n_layers;
    lath_attribution a = {.struct_size = sizeof(a), .heads = v->heads};
    a.rest = alloc_array(alloc_default(), 2 * n, sizeof(*a.rest));
    if (!a.rest) return err_nomem(err, 2 * n * sizeof(*a.rest));
    a.ffn = a.rest + n;
    const lath_status st = lath_trace_attribution(j->trace, v->position, v->answer, &a, err);
    alloc_release(alloc_default(), a.rest, 2 * n * sizeof(*a.rest));
    return st;
}

/* Everything about a position into the view. */
static lath_status look(trace_job *j, int32_t position, lath_error *err)
{
    trace_view *v = &j->view;
    const size_t n = (size_t)v->info.n_layers, vocab = (size_t)v->info.vocab_size;
    v->position = position;
    v->answer = -1;
    for (size_t l = 0; l < n; l++) {
        v->layers[l] = (trace_layer){.attn_norm = norm_of(j, LATH_POINT_ATTN_OUT, (int32_t)l),
                                     .ffn_norm = norm_of(j, LATH_POINT_FFN_OUT, (int32_t)l),
                                     .residual_norm = norm_of(j, LATH_POINT_RESIDUAL, (int32_t)l)};
    }
    if (vocab == 0) return LATH_OK;
    TRY(lath_trace_lens(j->trace, position, j->lens, err));
    for (size_t l = 0; l < n; l++) {
        lath_token_logprob *top = j->best + l * v->top;
        TRY(lath_logits_top(j->lm.s.rt, j->lens + l * vocab, vocab, v->top, top, err));
        v->layers[l].top = top;
    }
    v->answer = j->given ? answer_choose(&j->answer, j->lens + (n - 1) * vocab) : v->layers[n - 1].top[0].id;
    TRY(lath_trace_answer(j->trace, position, v->answer, j->steps, err));
    for (size_t l = 0; l < n; l++) v->layers[l].step = j->steps[l];
    return v->heads ? take_heads(j, err) : LATH_OK;
}

static lath_status put_tokens(trace_job *j, lath_error *err)
{
    buf *b = &j->out.b;
    buf_str(b, "{\"tokens\":[");
    for (size_t i = 0; i < j->lm.n; i++) {
        if (i) buf_char(b, ',');
        TRY(trace_put_token(&j->lm, j->lm.ids[i], b, err));
    }
    buf_str(b, "],\"token_ids\":[");
    for (size_t i = 0; i < j->lm.n; i++) buf_printf(b, "%s%d", i ? "," : "", (int)j->lm.ids[i]);
    buf_str(b, "],\n");
    return LATH_OK;
}

static lath_status put_answer(trace_job *j, lath_error *err)
{
    buf *b = &j->out.b;
    if (j->view.answer < 0) return LATH_OK;
    buf_printf(b, "\"answer\":{\"token_id\":%d,\"token\":", (int)j->view.answer);
    TRY(trace_put_token(&j->lm, j->view.answer, b, err));
    buf_str(b, "},\n");
    return LATH_OK;
}

/* The last position as "layers", and of --positions all each one in "positions". */
static lath_status put_json(trace_job *j, lath_error *err)
{
    const trace_view *v = &j->view;
    buf *b = &j->out.b;
    TRY(put_tokens(j, err));
    if (j->lm.o->positions) {
        buf_str(b, "\"positions\":[");
        for (size_t i = 0; i < v->info.n_positions; i++) {
            TRY(look(j, v->info.positions[i], err));
            buf_printf(b, "%s{\"position\":%d,\n", i ? ",\n" : "", (int)v->position);
            TRY(put_answer(j, err));
            TRY(trace_put_layers(v, b, err));
            buf_char(b, '}');
            TRY(signals_check(err));
            TRY(output_flush_full(&j->out, err));
        }
        buf_str(b, "],\n");
    }
    TRY(look(j, v->info.positions[v->info.n_positions - 1], err));
    TRY(put_answer(j, err));
    TRY(trace_put_layers(v, b, err));
    TRY(inside_put(&j->in, b, err));
    buf_str(b, "}\n");
    return LATH_OK;
}

static lath_status put_tables(trace_job *j, lath_error *err)
{
    const trace_view *v = &j->view;
    for (size_t i = 0; i < v->info.n_positions; i++) {
        TRY(look(j, v->info.positions[i], err));
        if (i) buf_char(&j->out.b, '\n');
        TRY(trace_put_table(v, &j->out.b, err));
        TRY(signals_check(err));
        TRY(output_flush_full(&j->out, err));
    }
    return LATH_OK;
}

/* Also of an encoder, whose stream nothing makes tokens of. */
static lath_status open_model(trace_job *j, options *o, lath_error *err)
{
    j->lm = (lm_job){.o = o, .info = {.struct_size = sizeof(j->lm.info)}};
    if (o->save && !o->positions)
        return err_set(err, LATH_ERR_USAGE, "--save: a trace file has every token: --positions all");
    if (o->save && o->output && strcmp(o->save, o->output) == 0)
        return err_set(err, LATH_ERR_USAGE, "--save and --output: \"%s\" is both", o->save);
    TRY(setup_model(&j->lm.s, o, err));
    TRY(lath_model_get_info(j->lm.s.model, &j->lm.info, err));
    return inside_open(&j->in, j->lm.s.model, o, err);
}

static void release(trace_job *j)
{
    const trace_view *v = &j->view;
    const size_t n = (size_t)v->info.n_layers, vocab = (size_t)v->info.vocab_size;
    output_abort(&j->out);
    alloc_release(alloc_default(), v->layers, n * sizeof(*v->layers));
    alloc_release(alloc_default(), j->steps, n * sizeof(*j->steps));
    alloc_release(alloc_default(), j->lens, n * vocab * sizeof(*j->lens));
    alloc_release(alloc_default(), j->best, n * v->top * sizeof(*j->best));
    alloc_release(alloc_default(), v->heads, n * (size_t)v->info.n_heads * sizeof(*v->heads));
    lath_trace_close(j->trace);
    inside_close(&j->in);
    lm_close(&j->lm);
}

lath_status cmd_trace(options *o, lath_error *err)
{
    trace_job j = {.json = o->json || o->jsonl};
    lath_status st;
    TRY_DONE(open_model(&j, o, err));
    TRY_DONE(read_texts(&j, o, err));
    TRY_DONE(run(&j, o, err));
    TRY_DONE(make_room(&j, o, err));
    TRY_DONE(output_open(&j.out, o->output, err));
    TRY_DONE(j.json ? put_json(&j, err) : put_tables(&j, err));
    if (o->save) TRY_DONE(lath_trace_save(j.trace, o->save, err));
    TRY_DONE(output_close(&j.out, err));
    TRY_DONE(inside_note(&j.in, err));
done:
    release(&j);
    return st;
}
