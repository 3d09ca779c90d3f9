/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_generate.c: `lath generate`. Text goes out as soon as it is certain; with --json everything is collected and printed at
 * the end.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "generate_options.h"
#include "inside.h"
#include "lm.h"
#include "output.h"
#include "signals.h"

typedef struct generate_job {
    const options *o;
    lm_job lm;
    inside in;
    output out;
    lath_grammar *grammar; /* NULL: none */
    buf text, ids, probs;  /* --json: so far; ids and probs as the insides of arrays */
    buf thought;
    size_t n;
    lath_status failed; /* what a callback could not return */
    lath_error *err;
} generate_job;

static void put_logprobs(buf *b, const lath_generated *g)
{
    buf_str(b, "{\"logprob\":");
    json_put_f64(b, g->logprob);
    buf_str(b, ",\"top\":[");
    for (size_t i = 0; i < g->n_top; i++) {
        buf_printf(b, "%s{\"token_id\":%d,\"logprob\":", i ? "," : "", g->top[i].id);
        json_put_f64(b, g->top[i].logprob);
        buf_char(b, '}');
    }
    buf_str(b, "]}");
}

static void collect(generate_job *j, const lath_generated *g)
{
    buf_append(&j->text, g->text, g->len);
    buf_append(&j->thought, g->reasoning, g->reasoning_len);
    if (g->id < 0) return;
    buf_printf(&j->ids, "%s%d", j->n ? "," : "", g->id);
    if (g->n_top == 0) return;
    if (j->n) buf_char(&j->probs, ',');
    put_logprobs(&j->probs, g);
}

static void put_line(generate_job *j, const lath_generated *g)
{
    buf *b = &j->out.b;
    buf_printf(b, "{\"index\":%zu", g->id < 0 ? j->n - 1 : j->n);
    if (g->id >= 0) buf_printf(b, ",\"token_id\":%d", g->id);
    buf_str(b, ",\"text\":");
    json_put_string(b, g->text, g->len);
    if (g->reasoning_len) {
        buf_str(b, ",\"reasoning_content\":");
        json_put_string(b, g->reasoning, g->reasoning_len);
    }
    if (g->n_top) {
        buf_str(b, ",\"logprobs\":");
        put_logprobs(b, g);
    }
    buf_str(b, "}\n");
}

/* Every token comes here as soon as there is one. */
static int see(void *ctx, const lath_generated *g)
{
    generate_job *j = ctx;
    if (j->o->json || j->o->jsonl) collect(j, g);
    if (j->o->jsonl)
        put_line(j, g);
    else if (!j->o->json) {
        thinking_show(&j->lm.talk.thinking, g);
        buf_append(&j->out.b, g->text, g->len);
    }
    if (g->id >= 0) j->n++;
    j->failed = signals_check(j->err);
    if (j->failed == LATH_OK && !j->o->json) j->failed = output_flush(&j->out, j->err);
    return j->failed != LATH_OK;
}

static double per_second(double n, double seconds) { return seconds > 0 ? n / seconds : 0; }

static void put_timings(buf *b, const lath_generate_result *r, double prompt_seconds)
{
    buf_str(b, "\"timings\":{\"prompt_seconds\":");
    json_put_f64(b, prompt_seconds);
    buf_str(b, ",\"prompt_tokens_per_second\":");
    json_put_f64(b, per_second((double)r->n_prompt, prompt_seconds));
    buf_str(b, ",\"completion_seconds\":");
    json_put_f64(b, r->seconds_tokens);
    buf_str(b, ",\"completion_tokens_per_second\":");
    json_put_f64(b, per_second((double)r->n_tokens, r->seconds_tokens));
    buf_char(b, '}');
}

static void put_document(generate_job *j, const lath_generate_result *r, double prompt_seconds)
{
    buf *b = &j->out.b;
    const bool thinks = j->o->chat && j->lm.talk.thinking.how;
    buf_str(b, "{\"text\":");
    json_put_string(b, buf_cstr(&j->text), j->text.len);
    if (thinks) {
        buf_str(b, ",\"reasoning_content\":");
        json_put_string(b, buf_cstr(&j->thought), j->thought.len);
    }
    buf_printf(b, ",\"token_ids\":[%s]", buf_cstr(&j->ids));
    if (j->o->logprobs) buf_printf(b, ",\"logprobs\":[%s]", buf_cstr(&j->probs));
    buf_printf(b, ",\"finish_reason\":\"%s\",\"usage\":{\"prompt_tokens\":%zu,\"completion_tokens\":%zu",
               r->finish == LATH_FINISH_STOP ? "stop" : "length", r->n_prompt, r->n_tokens);
    if (thinks) buf_printf(b, ",\"completion_tokens_details\":{\"reasoning_tokens\":%zu}", r->n_reasoning);
    buf_str(b, "},");
    put_timings(b, r, prompt_seconds);
}

static void say_timings(const lath_generate_result *r, double prompt_seconds)
{
    fprintf(stderr, "lath: prompt %zu tokens, %.1f tokens/s; text %zu tokens, %.1f tokens/s\n", r->n_prompt,
            per_second((double)r->n_prompt, prompt_seconds), r->n_tokens,
            per_second((double)r->n_tokens, r->seconds_tokens));
}

static lath_status generate(generate_job *j, options *o, lath_error *err)
{
    lath_generate_options g = LATH_GENERATE_OPTIONS_INIT;
    lath_sample_options sample;
    lath_generate_result r = {.struct_size = sizeof(r)};
    progress p;
    TRY(generate_options_read(o, &g, &sample, err));
    g.n_logprobs = (int32_t)o->logprobs;
    g.grammar = j->grammar;
    if (o->chat) dialog_ask(&j->lm.talk, &g);
    progress_init(&p, "prompt", o->quiet);
    TRY(lm_feed(&j->lm, j->lm.ids, j->lm.n, NULL, NULL, &p, err));
    const double prompt_seconds = progress_seconds(&p);
    progress_clear(&p);
    const lath_status st = lath_generate(j->lm.session, j->lm.ids, j->lm.n, &g, see, j, &r, err);
    thinking_end(&j->lm.talk.thinking);
    if (st == LATH_ERR_INTERRUPTED && j->failed != LATH_OK) { /* why the callback ended it */
        *err = *j->err;
        return j->failed;
    }
    TRY(st);
    TRY(inside_check(&j->in, err));
    if (o->json || o->jsonl) {
        put_document(j, &r, prompt_seconds);
        TRY(inside_put(&j->in, &j->out.b, err));
        buf_str(&j->out.b, "}\n");
    } else if (j->out.terminal) {
        buf_char(&j->out.b, '\n');
    }
    TRY(buf_status(&j->text, err));
    TRY(buf_status(&j->thought, err));
    TRY(buf_status(&j->ids, err));
    TRY(buf_status(&j->probs, err));
    if (o->verbose && !o->quiet) say_timings(&r, prompt_seconds);
    return inside_note(&j->in, err);
}

/* Room for the prompt and what -n allows, at least the default; without -n, behind a long prompt, the default once more. */
static lath_status open_session(generate_job *j, const options *o, lath_error *err)
{
    const int64_t n = (int64_t)j->lm.n, usual = j->lm.plan.ctx, most = j->lm.plan.most;
    const int64_t want = n + (o->max_new.given ? o->max_new.whole : n < usual / 2 ? 0 : usual);
    const int64_t ctx = o->ctx ? o->ctx : want <= usual ? usual : want < most ? want : most;
    if (o->ctx > most)
        return err_set(err, LATH_ERR_USAGE, "--ctx: %lld, the model's window is %lld", (long long)o->ctx,
                       (long long)most);
    if ((int64_t)j->lm.n > ctx)
        return err_set(err, LATH_ERR_KV_FULL, "the prompt has %zu tokens, the context %lld", j->lm.n, (long long)ctx);
    return lm_session(&j->lm, ctx, err);
}

enum { GRAMMAR_BYTES_MOST = 16 << 20 };

/* What --json-schema or --grammar names. */
static lath_status open_grammar(generate_job *j, const options *o, lath_error *err)
{
    const char *path = o->json_schema ? o->json_schema : o->grammar;
    const lath_grammar_kind kind = o->json_schema ? LATH_GRAMMAR_JSON_SCHEMA : LATH_GRAMMAR_TEXT;
    buf text;
    if (!path) return LATH_OK;
    if (o->json_schema && o->grammar) return err_set(err, LATH_ERR_USAGE, "--grammar: not together with --json-schema");
    buf_init(&text, alloc_default(), GRAMMAR_BYTES_MOST);
    lath_status st = file_read(&text, path, GRAMMAR_BYTES_MOST, err);
    if (st == LATH_OK)
        st = lath_grammar_open(j->lm.s.rt, kind, path, (lath_text){text.data, text.len}, &j->grammar, err);
    buf_deinit(&text);
    return st;
}

static lath_status check_options(const options *o, lath_error *err)
{
    const struct {
        bool given;
        const char *name;
    } of_chats[] = {{o->system, "--system"},
                    {o->chat_template, "--chat-template"},
                    {o->think, "--think"},
                    {o->no_think, "--no-think"},
                    {o->reasoning_budget.given, "--reasoning-budget"},
                    {o->hide_reasoning, "--hide-reasoning"}};
    for (size_t i = 0; i < sizeof(of_chats) / sizeof(of_chats[0]); i++) {
        if (of_chats[i].given && !o->chat)
            return err_set(err, LATH_ERR_USAGE, "generate: %s goes with --chat", of_chats[i].name);
    }
    return LATH_OK;
}

lath_status cmd_generate(options *o, lath_error *err)
{
    lath_error callback = {0};
    generate_job j = {.o = o, .err = &callback};
    lath_status st;
    TRY(check_options(o, err));
    buf_init(&j.text, alloc_default(), SIZE_MAX / 2);
    buf_init(&j.thought, alloc_default(), SIZE_MAX / 2);
    buf_init(&j.ids, alloc_default(), SIZE_MAX / 2);
    buf_init(&j.probs, alloc_default(), SIZE_MAX / 2);
    TRY_DONE(lm_open(&j.lm, o, err));
    TRY_DONE(open_grammar(&j, o, err));
    TRY_DONE(inside_open(&j.in, j.lm.s.model, o, err));
    TRY_DONE(o->chat ? lm_chat_prompt(&j.lm, err) : lm_prompt(&j.lm, err));
    TRY_DONE(open_session(&j, o, err));
    TRY_DONE(inside_attach(&j.in, j.lm.session, err));
    TRY_DONE(output_open(&j.out, o->output, err));
    TRY_DONE(generate(&j, o, err));
    TRY_DONE(output_close(&j.out, err));
done:
    output_abort(&j.out);
    lath_grammar_close(j.grammar);
    lm_end(&j.lm);
    inside_close(&j.in);
    lm_close(&j.lm);
    buf_deinit(&j.text);
    buf_deinit(&j.thought);
    buf_deinit(&j.ids);
    buf_deinit(&j.probs);
    return st;
}
