/* SPDX-License-Identifier: Apache-2.0
 *
 * generate.c: tokens one after the other: logits, sampler, decoder, stop strings. What the text is made of is decided here and nowhere else: an end token is
 * no part of it; the token that completes a stop string is told, the string and what follows are not given out.
 */
#include <string.h>

#include "base/clock.h"
#include "engine/sampler.h"
#include "engine/session.h"
#include "engine/stop.h"

typedef struct generation {
    lath_session *s;
    const lath_generate_options *o;
    lath_generated_fn fn;
    void *ctx;
    sampler sampler;
    stop stop;
    lath_decoder *decoder;
    lath_matcher *matcher; /* NULL: no grammar */
    buf text;              /* of one step */
    lath_token_logprob *top;
    lath_generate_result r;
} generation;

static lath_status check_options(const lath_generate_options *o, int32_t n_vocab, lath_error *err)
{
    if (o->struct_size != sizeof(*o)) return err_set(err, LATH_ERR_USAGE, "lath_generate: options of another version");
    if (o->max_tokens < -1) return err_set(err, LATH_ERR_USAGE, "max tokens: %d, want 0 or more, or -1", o->max_tokens);
    if (o->n_logprobs < 0 || o->n_logprobs > n_vocab)
        return err_set(err, LATH_ERR_USAGE, "logprobs: %d, want 0 to %d", o->n_logprobs, n_vocab);
    if ((o->n_stop && !o->stop) || (o->n_end_ids && !o->end_ids))
        return err_set(err, LATH_ERR_USAGE, "lath_generate: a list is missing");
    return LATH_OK;
}

/* The end tokens of the model's files and those of the caller. */
static lath_status open_stop(generation *g, lath_error *err)
{
    const lath_model *m = g->s->model;
    const lath_allocator *alloc = &m->rt->alloc;
    int32_t n_own = 0;
    const int32_t *own = model_end_ids(m, &n_own);
    const size_t n = g->o->ignore_end ? 0 : (size_t)n_own + g->o->n_end_ids;
    int32_t *ids = n ? alloc_array(alloc, n, sizeof(*ids)) : NULL;
    if (n && !ids) return err_nomem(err, n * sizeof(*ids));
    if (n && n_own) memcpy(ids, own, (size_t)n_own * sizeof(*ids));
    if (n && g->o->n_end_ids) memcpy(ids + n_own, g->o->end_ids, g->o->n_end_ids * sizeof(*ids));
    const lath_status st = stop_init(&g->stop, alloc, ids, n, g->o->stop, g->o->n_stop, err);
    alloc_release(alloc, ids, n * sizeof(*ids));
    return st;
}

static lath_status open_parts(generation *g, lath_error *err)
{
    const lath_model *m = g->s->model;
    const int32_t n_vocab = m->arch.dims.vocab_size;
    TRY(check_options(g->o, n_vocab, err));
    TRY(open_stop(g, err));
    TRY(sampler_init(&g->sampler, &m->rt->alloc, &m->rt->kern, n_vocab, g->o->sample, err));
    TRY(lath_decoder_create(&m->tokenizer, 1, &g->decoder, err));
    if (g->o->grammar)
        TRY(lath_matcher_create(g->o->grammar, &m->tokenizer, g->stop.ids, g->stop.n_ids, n_vocab, &g->matcher, err));
    if (g->o->n_logprobs == 0) return LATH_OK;
    const size_t bytes = (size_t)g->o->n_logprobs * sizeof(*g->top);
    g->top = alloc_bytes(&m->rt->alloc, bytes, _Alignof(lath_token_logprob));
    return g->top ? LATH_OK : err_nomem(err, bytes);
}

static void close_parts(generation *g)
{
    const lath_allocator *alloc = &g->s->model->rt->alloc;
    alloc_release(alloc, g->top, (size_t)g->o->n_logprobs * sizeof(*g->top));
    lath_decoder_destroy(g->decoder);
    lath_matcher_destroy(g->matcher);
    sampler_deinit(&g->sampler);
    stop_deinit(&g->stop);
    buf_deinit(&g->text);
}

static lath_status tell(generation *g, lath_generated *step, lath_error *err)
{
    TRY(buf_status(&g->text, err));
    step->text = buf_cstr(&g->text);
    step->len = g->text.len;
    if (g->fn && (step->id >= 0 || step->len > 0) && g->fn(g->ctx, step))
        return err_set(err, LATH_ERR_INTERRUPTED, "interrupted after %zu tokens", g->r.n_tokens);
    return LATH_OK;
}

/* Models have rows behind the vocabulary, to fill a block: such an id may come, and adds no text. */
static bool has_text(const generation *g, int32_t id)
{
    return lath_tokenizer_token(&g->s->model->tokenizer, id) != NULL;
}

/* The text of one more token, as far as it can be given out. */
static lath_status add_text(generation *g, int32_t id, lath_error *err)
{
    const char *piece;
    size_t len;
    buf_clear(&g->text);
    if (!has_text(g, id)) return LATH_OK;
    TRY(lath_decoder_push(g->decoder, &id, 1, &piece, &len, err));
    stop_push(&g->stop, piece, len, &g->text);
    return LATH_OK;
}

static lath_status end_text(generation *g, lath_error *err)
{
    lath_generated step = {.id = -1};
    const char *piece;
    size_t len;
    buf_clear(&g->text);
    if (g->stop.stopped >= 0) return LATH_OK;
    TRY(lath_decoder_finish(g->decoder, &piece, &len, err));
    stop_push(&g->stop, piece, len, &g->text);
    if (g->stop.stopped >= 0)
        g->r.finish = LATH_FINISH_STOP;
    else
        stop_finish(&g->stop, &g->text);
    return tell(g, &step, err);
}

/* The decoder has to know what is before the text, whose first token may begin with a space or in the middle of a character. */
static lath_status prime_decoder(generation *g, const int32_t *prompt, size_t n, lath_error *err)
{
    const char *piece;
    size_t len;
    if (g->o->new_text || !has_text(g, prompt[n - 1])) return LATH_OK;
    return lath_decoder_push(g->decoder, prompt + n - 1, 1, &piece, &len, err);
}

static lath_status choose(generation *g, lath_generated *step, lath_error *err)
{
    const float *logits;
    const uint32_t *mask = NULL;
    lath_token_logprob chosen;
    TRY(lath_session_logits(g->s, &logits, err));
    if (g->matcher) TRY(lath_matcher_mask(g->matcher, &mask, err));
    TRY(sampler_pick(&g->sampler, logits, mask, &step->id, err));
    if (g->matcher) TRY(lath_matcher_accept(g->matcher, step->id, err));
    if (!g->top) return LATH_OK;
    chosen.id = step->id;
    TRY(sampler_top_logprobs(&g->sampler, logits, (size_t)g->o->n_logprobs, g->top, &chosen, err));
    step->logprob = chosen.logprob;
    step->top = g->top;
    step->n_top = (size_t)g->o->n_logprobs;
    return LATH_OK;
}

/* A stop string came, or the grammar lets nothing follow. */
static bool is_over(const generation *g)
{
    return g->stop.stopped >= 0 || (g->matcher && lath_matcher_ended(g->matcher));
}

static bool wants_more(const generation *g)
{
    if (is_over(g)) return false;
    return g->o->max_tokens < 0 || g->r.n_tokens < (size_t)g->o->max_tokens;
}

static lath_status run(generation *g, lath_error *err)
{
    lath_generated step = {.id = -1};
    g->r.finish = LATH_FINISH_LENGTH;
    while (wants_more(g)) {
        /* The last token is computed only when another one is wanted. */
        if (step.id >= 0 && lath_session_size(g->s) == lath_session_capacity(g->s)) break;
        if (step.id >= 0) TRY(lath_session_append(g->s, &step.id, 1, err));
        TRY(choose(g, &step, err));
        if (stop_is_id(&g->stop, step.id)) {
            g->r.finish = LATH_FINISH_STOP;
            break;
        }
        sampler_accept(&g->sampler, &step.id, 1);
        TRY(add_text(g, step.id, err));
        g->r.n_tokens++;
        TRY(tell(g, &step, err));
    }
    if (is_over(g)) g->r.finish = LATH_FINISH_STOP;
    return end_text(g, err);
}

lath_status lath_generate(lath_session *s, const int32_t *prompt, size_t n, const lath_generate_options *opts,
                          lath_generated_fn fn, void *ctx, lath_generate_result *result, lath_error *err)
{
    static const lath_generate_options defaults = LATH_GENERATE_OPTIONS_INIT;
    generation g = {.s = s, .o = opts ? opts : &defaults, .fn = fn, .ctx = ctx};
    err_clear(err);
    if (!s || !prompt || n == 0)
        return err_set(err, LATH_ERR_USAGE, "lath_generate: a session and a prompt are wanted");
    if (result && result->struct_size != sizeof(*result))
        return err_set(err, LATH_ERR_USAGE, "lath_generate: a result of another version");
    buf_init(&g.text, &s->model->rt->alloc, 1 << 24);
    lath_status st = open_parts(&g, err);
    const double begin = clock_now();
    if (st == LATH_OK) st = lath_session_sync(s, prompt, n, &g.r.n_reused, err);
    const double middle = clock_now();
    g.r.n_prompt = n;
    g.r.seconds_prompt = middle - begin;
    if (st == LATH_OK) st = prime_decoder(&g, prompt, n, err);
    if (st == LATH_OK) {
        sampler_accept(&g.sampler, prompt, n);
        st = run(&g, err);
    }
    g.r.seconds_tokens = clock_now() - middle;
    g.r.struct_size = sizeof(g.r);
    if (result) *result = g.r;
    close_parts(&g);
    return st;
}
