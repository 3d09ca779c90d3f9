/* SPDX-License-Identifier: Apache-2.0
 *
 * lm.c: see lm.h. A text goes to the session in one call, whatever its length: where rotations depend on the length (dynamic
 * NTK), pieces would see other ones.
 */
#include "lm.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "prompt.h"
#include "signals.h"

static int stop_asked(void *ctx, size_t done, size_t total)
{
    (void)ctx, (void)done, (void)total;
    return signals_interrupted();
}

lath_session_options lm_session_options(const options *o, int64_t ctx)
{
    lath_session_options so = LATH_SESSION_OPTIONS_INIT;
    so.ctx = (int32_t)ctx;
    so.kv = (lath_kv)o->kv;
    so.progress = stop_asked;
    return so;
}

lath_status lm_open(lm_job *j, const options *o, lath_error *err)
{
    *j = (lm_job){.o = o, .plan = {.struct_size = sizeof(lath_session_plan)}, .info = {.struct_size = sizeof(j->info)}};
    TRY(setup_model(&j->s, o, err));
    TRY(lath_model_get_info(j->s.model, &j->info, err));
    const lath_session_options so = lm_session_options(o, 0);
    return lath_session_get_plan(j->s.model, &so, &j->plan, err);
}

lath_status lm_encode(lm_job *j, const buf *text, lath_error *err)
{
    TRY(lath_encode(lath_model_tokenizer(j->s.model), (lath_text){text->data ? text->data : "", text->len}, NULL,
                    &j->tokens, err));
    j->ids = j->tokens.ids;
    j->n = j->tokens.n;
    if (j->n > 0) return LATH_OK;
    return err_set(err, LATH_ERR_INPUT, "the prompt is empty: the model has no token that begins a text");
}

/* Numbers of any length: one that is too large is an id out of range, not a mistake in writing. */
static lath_status next_id(const char **at, int32_t *id, lath_error *err)
{
    const char *c = *at;
    int64_t v = 0;
    const bool minus = *c == '-';
    if (minus) c++;
    if (*c < '0' || *c > '9')
        return err_set(err, LATH_ERR_USAGE, "--ids: \"%.40s\": want whole numbers with commas between", *at);
    for (; *c >= '0' && *c <= '9'; c++) v = v > INT32_MAX ? v : 10 * v + (*c - '0');
    if (minus || v > INT32_MAX)
        return err_set(err, LATH_ERR_INPUT, "--ids: %.*s is no token id", (int)(c - *at < 40 ? c - *at : 40), *at);
    *id = (int32_t)v;
    *at = c;
    return LATH_OK;
}

lath_status lm_take_ids(lm_job *j, const char *list, lath_error *err)
{
    const size_t most = strlen(list) / 2 + 1;
    j->given = alloc_array(alloc_default(), most, sizeof(*j->given));
    if (!j->given) return err_nomem(err, most * sizeof(*j->given));
    j->n_given = most;
    for (const char *at = list;;) {
        while (*at == ' ' || *at == '\n') at++;
        TRY(next_id(&at, &j->given[j->n], err));
        if (j->given[j->n] >= j->info.vocab_size)
            return err_set(err, LATH_ERR_INPUT, "--ids: id %d is not in 0..%d", (int)j->given[j->n],
                           (int)j->info.vocab_size - 1);
        j->n++;
        while (*at == ' ' || *at == '\n') at++;
        if (*at == 0) break;
        if (*at == ',') at++;
    }
    j->ids = j->given;
    return LATH_OK;
}

lath_status lm_prompt(lm_job *j, lath_error *err)
{
    buf text = {0};
    lath_status st = prompt_read(j->o, &text, err);
    if (st == LATH_OK) st = lm_encode(j, &text, err);
    prompt_release(&text);
    return st;
}

static int ask(void *ctx, size_t done, size_t total)
{
    const lm_job *j = ctx;
    return j->p ? progress_tick(j->p, done, total) : signals_interrupted();
}

lath_status lm_session(lm_job *j, int64_t ctx, lath_error *err)
{
    lath_session_options so = lm_session_options(j->o, ctx);
    so.progress = ask;
    so.progress_ctx = j;
    return lath_session_create(j->s.model, &so, &j->session, err);
}

static lath_status put_message(lm_job *j, const buf *text, lath_error *err)
{
    const options *o = j->o;
    TRY(dialog_open(&j->talk, j->s.model, o, err));
    if (o->system) TRY(dialog_set_system(&j->talk, o->system, strlen(o->system), err));
    TRY(dialog_add(&j->talk, "user", text->data ? text->data : "", text->len, err));
    TRY(dialog_render(&j->talk, err));
    j->ids = j->talk.prompt.ids;
    j->n = j->talk.prompt.n;
    return j->n ? LATH_OK : err_set(err, LATH_ERR_INPUT, "the chat template makes nothing of the prompt");
}

lath_status lm_chat_prompt(lm_job *j, lath_error *err)
{
    buf text = {0};
    lath_status st = prompt_read(j->o, &text, err);
    if (st == LATH_OK) st = put_message(j, &text, err);
    prompt_release(&text);
    return st;
}

lath_status lm_begin(lm_job *j, lath_error *err)
{
    if (!j->o->ctx && j->n > (size_t)j->plan.most)
        return err_set(err, LATH_ERR_KV_FULL, "the prompt has %zu tokens, the model's window %d", j->n,
                       (int)j->plan.most);
    if (j->o->ctx > j->plan.most)
        return err_set(err, LATH_ERR_USAGE, "--ctx: %lld, the model's window is %d", (long long)j->o->ctx,
                       (int)j->plan.most);
    if (j->o->ctx && j->n > (size_t)j->o->ctx)
        return err_set(err, LATH_ERR_KV_FULL, "the prompt has %zu tokens, --ctx is %lld", j->n, (long long)j->o->ctx);
    return lm_session(j, j->o->ctx ? j->o->ctx : (int64_t)j->n, err);
}

typedef struct feed {
    lm_see see;
    void *ctx;
    lath_status st;
    lath_error err; /* what `see` said: the library says that it was interrupted */
} feed;

static int see_each(void *ctx, size_t at, const float *logits)
{
    feed *f = ctx;
    f->st = signals_check(&f->err);
    if (f->st == LATH_OK) f->st = f->see(f->ctx, at, logits, &f->err);
    return f->st != LATH_OK;
}

lath_status lm_feed(lm_job *j, const int32_t *ids, size_t n, lm_see see, void *ctx, progress *p, lath_error *err)
{
    feed f = {.see = see, .ctx = ctx};
    TRY(signals_check(err));
    j->p = p;
    const lath_status st = see ? lath_session_append_each(j->session, ids, n, see_each, &f, err)
                               : lath_session_append(j->session, ids, n, err);
    j->p = NULL;
    if (f.st != LATH_OK) *err = f.err;
    if (f.st != LATH_OK) return f.st;
    if (st == LATH_OK) progress_add(p, n);
    return st;
}

void lm_notes(const lm_job *j)
{
    lath_session_stats stats = {.struct_size = sizeof(stats)};
    if (j->o->quiet || j->o->verbose == 0 || lath_session_get_stats(j->session, &stats, NULL) != LATH_OK) return;
    const uint64_t n = stats.n_prefill + stats.n_step;
    const double seconds = stats.seconds_prefill + stats.seconds_step;
    fprintf(stderr, "lath: %llu token%s in %.3f s (%.1f tokens/s), %.1f MB of keys and values, %.1f MB of work",
            (unsigned long long)n, n == 1 ? "" : "s", seconds, seconds > 0 ? (double)n / seconds : 0,
            (double)stats.kv_bytes / 1e6, (double)stats.work_bytes / 1e6);
    if (stats.recurrent_bytes)
        fprintf(stderr, ", %.1f MB of states and %d snapshot%s of them", (double)stats.recurrent_bytes / 1e6,
                (int)stats.n_snapshots, stats.n_snapshots == 1 ? "" : "s");
    fputc('\n', stderr);
}

void lm_end(lm_job *j)
{
    lath_session_destroy(j->session);
    j->session = NULL;
}

void lm_close(lm_job *j)
{
    dialog_close(&j->talk);
    lm_end(j);
    lath_tokens_release(&j->tokens);
    alloc_release(alloc_default(), j->given, j->n_given * sizeof(*j->given));
    setup_close(&j->s);
    *j = (lm_job){0};
}

/* Decoders cut the blank of a text's first token: the second of two tells how it stands inside a text. */
lath_status lm_token_text(const lm_job *j, int32_t id, buf *out, bool *known, lath_error *err)
{
    const lath_tokenizer *tok = lath_model_tokenizer(j->s.model);
    const int32_t twice[2] = {id, id};
    char *one = NULL, *two = NULL;
    size_t n_one = 0, n_two = 0;
    *known = lath_tokenizer_token(tok, id) != NULL;
    if (!*known) return LATH_OK;
    TRY(lath_decode(tok, twice, 1, 0, &one, &n_one, err));
    const lath_status st = lath_decode(tok, twice, 2, 0, &two, &n_two, err);
    if (st == LATH_OK && n_two > n_one && memcmp(two, one, n_one) == 0)
        buf_append(out, two + n_one, n_two - n_one);
    else if (st == LATH_OK)
        buf_append(out, one, n_one);
    lath_string_release(tok, two);
    lath_string_release(tok, one);
    return st == LATH_OK ? buf_status(out, err) : st;
}
