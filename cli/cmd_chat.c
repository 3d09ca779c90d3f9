/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_chat.c: `lath chat`: a conversation, a line a message. Answers go to standard output as they come, everything else to stderr. The session keeps
 * what it has of the conversation: a turn costs what is new.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "dialog.h"
#include "generate_options.h"
#include "lm.h"
#include "output.h"
#include "repl.h"
#include "signals.h"

typedef struct chat_job {
    options *o;
    lm_job lm;
    dialog talk;
    repl *in;
    output out;
    buf line, answer, thought;
    lath_status failed; /* what a callback could not return */
    lath_error *err;
} chat_job;

static const char help_text[] = "/system TEXT   what the model is told first; without TEXT nothing\n"
                                "/think on|off  whether the model thinks before it answers\n"
                                "/reset         begin anew (the system text stays)\n"
                                "/save FILE     write the messages as JSON\n"
                                "/help          this text\n"
                                "/quit          end (Ctrl-D does it too)\n"
                                "A line that ends in a backslash goes on. Ctrl-C stops an answer.\n";

/* --------------------------------------------------------------------------------------------------------- an answer */

static int see(void *ctx, const lath_generated *g)
{
    chat_job *j = ctx;
    buf_append(&j->answer, g->text, g->len);
    buf_append(&j->thought, g->reasoning, g->reasoning_len);
    thinking_show(&j->talk.thinking, g);
    buf_append(&j->out.b, g->text, g->len);
    j->failed = output_flush(&j->out, j->err);
    if (j->failed == LATH_OK) j->failed = signals_check(j->err);
    return j->failed != LATH_OK;
}

static lath_status answer(chat_job *j, lath_generate_result *r, lath_error *err)
{
    lath_generate_options g = LATH_GENERATE_OPTIONS_INIT;
    lath_sample_options sample;
    TRY(generate_options_read(j->o, &g, &sample, err));
    dialog_ask(&j->talk, &g);
    buf_clear(&j->answer);
    buf_clear(&j->thought);
    j->failed = LATH_OK;
    const lath_status st = lath_generate(j->lm.session, j->talk.prompt.ids, j->talk.prompt.n, &g, see, j, r, err);
    thinking_end(&j->talk.thinking);
    if (st != LATH_ERR_INTERRUPTED || j->failed == LATH_OK || j->failed == LATH_ERR_INTERRUPTED) return st;
    *err = *j->err; /* why the callback ended it */
    return j->failed;
}

static lath_status check_room(const chat_job *j, lath_error *err)
{
    const size_t most = lath_session_capacity(j->lm.session);
    if (j->talk.prompt.n < most) return LATH_OK;
    return err_set(err, LATH_ERR_KV_FULL,
                   "the conversation has %zu tokens, the context %zu (--ctx N; /reset begins anew)", j->talk.prompt.n,
                   most);
}

static void note_result(const chat_job *j, const lath_generate_result *r)
{
    if (r->finish == LATH_FINISH_LENGTH && !j->o->max_new.given && !j->o->quiet)
        fprintf(stderr, "lath: the context is full: the answer ends here\n");
    if (!j->o->verbose || j->o->quiet) return;
    fprintf(stderr, "lath: prompt %zu tokens, %zu of them kept; answer %zu tokens, %.1f tokens/s\n", r->n_prompt,
            r->n_reused, r->n_tokens, r->seconds_tokens > 0 ? (double)r->n_tokens / r->seconds_tokens : 0);
}

/* A message and its answer. An answer that Ctrl-C stopped stays as far as it came; a message that could not be put goes. */
static lath_status turn(chat_job *j, lath_error *err)
{
    lath_generate_result r = {.struct_size = sizeof(r)};
    TRY(dialog_add(&j->talk, "user", j->line.data ? j->line.data : "", j->line.len, err));
    lath_status st = dialog_render(&j->talk, err);
    if (st == LATH_OK) st = check_room(j, err);
    if (st != LATH_OK) {
        dialog_drop_last(&j->talk);
        return st;
    }
    st = answer(j, &r, err);
    const bool stopped = st == LATH_ERR_INTERRUPTED && repl_is_terminal(j->in) && signals_take_interrupt();
    if (st != LATH_OK && !stopped) return st;
    TRY(buf_status(&j->answer, err));
    TRY(buf_status(&j->thought, err));
    TRY(dialog_add(&j->talk, "assistant", j->answer.data ? j->answer.data : "", j->answer.len, err));
    TRY(dialog_add_thought(&j->talk, buf_cstr(&j->thought), j->thought.len, err));
    buf_char(&j->out.b, '\n');
    TRY(output_flush(&j->out, err));
    if (!stopped) note_result(j, &r);
    return LATH_OK;
}

/* --------------------------------------------------------------------------------------------------------- commands */

static lath_status save(chat_job *j, const char *path, lath_error *err)
{
    output out = {0};
    if (!*path) return err_set(err, LATH_ERR_USAGE, "/save: want the name of a file");
    lath_status st = output_open(&out, path, err);
    if (st == LATH_OK) {
        dialog_put_json(&j->talk, &out.b);
        st = output_close(&out, err);
    }
    output_abort(&out);
    return st;
}

static lath_status think(chat_job *j, const char *word, lath_error *err)
{
    const bool on = strcmp(word, "on") == 0;
    if (!on && strcmp(word, "off") != 0) return err_set(err, LATH_ERR_USAGE, "/think: want on or off");
    return thinking_set(&j->talk.thinking, on, err);
}

/* What stands behind the command's name; NULL when the line is another one. */
static const char *argument_of(const char *line, const char *name)
{
    const size_t n = strlen(name);
    if (strncmp(line, name, n) != 0 || (line[n] && line[n] != ' ')) return NULL;
    line += n;
    while (*line == ' ') line++;
    return line;
}

static lath_status command(chat_job *j, bool *end, lath_error *err)
{
    const char *line = buf_cstr(&j->line), *a;
    if (argument_of(line, "/help")) {
        fputs(help_text, stderr);
    } else if ((a = argument_of(line, "/system"))) {
        return dialog_set_system(&j->talk, a, strlen(a), err);
    } else if ((a = argument_of(line, "/think"))) {
        return think(j, a, err);
    } else if (argument_of(line, "/reset")) {
        dialog_reset(&j->talk);
    } else if ((a = argument_of(line, "/save"))) {
        return save(j, a, err);
    } else if (argument_of(line, "/quit") || argument_of(line, "/exit")) {
        *end = true;
    } else {
        return err_set(err, LATH_ERR_USAGE, "%.40s: no such command (/help lists them)", line);
    }
    return LATH_OK;
}

static lath_status one_line(chat_job *j, bool *end, lath_error *err)
{
    TRY(repl_read(j->in, &j->line, end, err));
    if (*end || (j->line.len == 0 && repl_is_terminal(j->in))) return LATH_OK;
    return j->line.len && j->line.data[0] == '/' ? command(j, end, err) : turn(j, err);
}

/* At a terminal what goes wrong with a line is said, and the conversation goes on. */
static lath_status talk(chat_job *j, lath_error *err)
{
    for (bool end = false; !end;) {
        const lath_status st = one_line(j, &end, err);
        if (st == LATH_OK) continue;
        if (!repl_is_terminal(j->in) || st == LATH_ERR_IO || st == LATH_ERR_NOMEM) return st;
        if (st == LATH_ERR_INTERRUPTED) {
            if (!signals_take_interrupt()) return st;
            fputc('\n', stderr);
            continue;
        }
        fprintf(stderr, "lath: %s\n", err->msg);
        err_clear(err);
    }
    return LATH_OK;
}

static lath_status open_session(chat_job *j, lath_error *err)
{
    const lath_session_options so = lm_session_options(j->o, j->o->ctx);
    if (j->o->ctx > j->lm.plan.most)
        return err_set(err, LATH_ERR_USAGE, "--ctx: %lld, the model's window is %d", (long long)j->o->ctx,
                       (int)j->lm.plan.most);
    return lath_session_create(j->lm.s.model, &so, &j->lm.session, err);
}

lath_status cmd_chat(options *o, lath_error *err)
{
    lath_error callback = {0};
    chat_job j = {.o = o, .err = &callback};
    lath_status st;
    buf_init(&j.line, alloc_default(), SIZE_MAX / 2);
    buf_init(&j.answer, alloc_default(), SIZE_MAX / 2);
    buf_init(&j.thought, alloc_default(), SIZE_MAX / 2);
    if (o->args.n)
        return err_set(err, LATH_ERR_USAGE, "chat: %s: takes no argument (lath generate --chat does)",
                       o->args.items[0]);
    TRY_DONE(lm_open(&j.lm, o, err));
    TRY_DONE(dialog_open(&j.talk, j.lm.s.model, o, err));
    if (o->system) TRY_DONE(dialog_set_system(&j.talk, o->system, strlen(o->system), err));
    TRY_DONE(open_session(&j, err));
    TRY_DONE(output_open(&j.out, NULL, err));
    TRY_DONE(repl_open(&j.in, err));
    if (repl_is_terminal(j.in) && !o->quiet) fprintf(stderr, "lath chat: /help lists commands, Ctrl-D ends\n");
    TRY_DONE(talk(&j, err));
    TRY_DONE(output_close(&j.out, err));
done:
    output_abort(&j.out);
    repl_close(j.in);
    dialog_close(&j.talk);
    lm_close(&j.lm);
    buf_deinit(&j.line);
    buf_deinit(&j.answer);
    buf_deinit(&j.thought);
    return st;
}
