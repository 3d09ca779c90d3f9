/* SPDX-License-Identifier: Apache-2.0
 *
 * generate.c: tokens one after the other: logits, sampler, decoder, stop strings. What the text is made of is decided here and nowhere else: an end token is
 * no part of it; the token that completes a stop string is told, the string and what follows are not given out. Stop strings and grammars are about the
 * answer: what a model thinks before it goes past them (reasoning.h).
 */
#include <string.h>

#include "base/clock.h"
#include "engine/grammar_api.h"
#include "engine/reasoning.h"
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
    reasoning think;
    uint32_t *not_end; /* with both: [n_words] bits of all tokens but those that end a text */
    uint32_t *mask;    /* [n_words] the grammar's and the token that begins a block */
    size_t n_words;
    bool is_forced;            /* the token of this step */
    buf text, thought, answer; /* of one step; answer: before stop strings */
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
    if (o->reasoning_budget < -1)
        return err_set(err, LATH_ERR_USAGE, "reasoning budget: %d, want 0 or more, or -1", o->reasoning_budget);
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

/* A tokenizer may know tokens that the model has no rows for. */
static bool has_rows(const generation *g, reasoning_ids x)
{
    for (size_t i = 0; i < x.n; i++) {
        if (x.ids[i] >= g->s->model->arch.dims.vocab_size) return false;
    }
    return true;
}

static lath_status open_reasoning(generation *g, lath_error *err)
{
    const lath_model *m = g->s->model;
    const lath_allocator *alloc = &m->rt->alloc;
    if (!g->o->reasoning || (!g->o->reasoning->begin.len && !g->o->reasoning->end.len)) return LATH_OK;
    TRY(reasoning_init(&g->think, alloc, m->tokenizer.tok, g->o->reasoning, g->o->reasoning_open != 0,
                       g->o->reasoning_budget, err));
    if ((g->matcher || g->o->reasoning_budget >= 0) && !(has_rows(g, g->think.begin) && has_rows(g, g->think.close)))
        return err_set(err, LATH_ERR_UNSUPPORTED, "reasoning: the model has no rows for the tokens of its markers");
    reasoning_steer(&g->think, false, false);
    if (!g->matcher) return LATH_OK;
    g->n_words = ((size_t)m->arch.dims.vocab_size + 31) / 32;
    g->not_end = alloc_array(alloc, g->n_words, sizeof(*g->not_end));
    g->mask = alloc_array(alloc, g->n_words, sizeof(*g->mask));
    if (!g->not_end || !g->mask) return err_nomem(err, g->n_words * sizeof(*g->mask));
    memset(g->not_end, 0xFF, g->n_words * sizeof(*g->not_end));
    for (size_t i = 0; i < g->stop.n_ids; i++) g->not_end[g->stop.ids[i] / 32] &= ~(1u << (g->stop.ids[i] % 32));
    return LATH_OK;
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
    TRY(open_reasoning(g, err));
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
    reasoning_deinit(&g->think);
    alloc_release(alloc, g->not_end, g->n_words * sizeof(*g->not_end));
    alloc_release(alloc, g->mask, g->n_words * sizeof(*g->mask));
    buf_deinit(&g->text);
    buf_deinit(&g->thought);
    buf_deinit(&g->answer);
}

static lath_status tell(generation *g, lath_generated *step, lath_error *err)
{
    TRY(buf_status(&g->think.held, err));
    TRY(buf_status(&g->answer, err));
    TRY(buf_status(&g->thought, err));
    step->reasoning = buf_cstr(&g->thought);
    step->reasoning_len = g->thought.len;
    TRY(buf_status(&g->text, err));
    step->text = buf_cstr(&g->text);
    step->len = g->text.len;
    if (g->fn && (step->id >= 0 || step->len > 0 || step->reasoning_len > 0) && g->fn(g->ctx, step))
        return err_set(err, LATH_ERR_INTERRUPTED, "interrupted after %zu tokens", g->r.n_tokens);
    return LATH_OK;
}

/* Models have rows behind the vocabulary, to fill a block: such an id may come, and adds no text. */
static bool has_text(const generation *g, int32_t id)
{
    return lath_tokenizer_token(&g->s->model->tokenizer, id) != NULL;
}

static void clear_text(generation *g)
{
    buf_clear(&g->text);
    buf_clear(&g->thought);
    buf_clear(&g->answer);
}

static lath_status flush_decoder(generation *g, lath_error *err)
{
    const char *piece;
    size_t len;
    TRY(lath_decoder_finish(g->decoder, &piece, &len, err));
    reasoning_push(&g->think, piece, len, &g->thought, &g->answer);
    return LATH_OK;
}

/* The text of one more token, as far as it can be given out. */
static lath_status add_text(generation *g, int32_t id, lath_error *err)
{
    const char *piece;
    size_t len;
    const bool was_inside = g->think.state == REASONING_INSIDE;
    clear_text(g);
    if (reasoning_is_marker(&g->think, id)) {
        TRY(flush_decoder(g, err));
        piece = tok_token(g->s->model->tokenizer.tok, id, &len);
        /* Half a character that came out of the decoder may have begun the answer. */
        if (reasoning_is_marker(&g->think, id)) reasoning_push(&g->think, piece, len, &g->thought, &g->answer);
    } else if (has_text(g, id)) {
        TRY(lath_decoder_push(g->decoder, &id, 1, &piece, &len, err));
        reasoning_push(&g->think, piece, len, &g->thought, &g->answer);
    }
    stop_push(&g->stop, g->answer.data, g->answer.len, &g->text);
    reasoning_steer(&g->think, was_inside, g->matcher != NULL);
    return LATH_OK;
}

static lath_status end_text(generation *g, lath_error *err)
{
    lath_generated step = {.id = -1};
    clear_text(g);
    if (g->stop.stopped >= 0) return LATH_OK;
    TRY(flush_decoder(g, err));
    reasoning_finish(&g->think, &g->thought, &g->answer);
    stop_push(&g->stop, g->answer.data, g->answer.len, &g->text);
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

/* The tokens that may come; NULL: all. */
static lath_status allowed(generation *g, const uint32_t **mask, lath_error *err)
{
    *mask = NULL;
    if (!g->matcher) return LATH_OK;
    if (g->think.state == REASONING_INSIDE) {
        *mask = g->not_end;
        return LATH_OK;
    }
    TRY(lath_matcher_mask(g->matcher, mask, err));
    if (!reasoning_may_begin(&g->think)) return LATH_OK;
    const int32_t id = g->think.begin.ids[0];
    memcpy(g->mask, *mask, g->n_words * sizeof(*g->mask));
    g->mask[id / 32] |= 1u << (id % 32);
    *mask = g->mask;
    return LATH_OK;
}

/* What the grammar makes of the token. */
static lath_status follow_grammar(generation *g, int32_t *id, lath_error *err)
{
    const uint32_t *mask;
    if (g->think.state == REASONING_INSIDE) {
        size_t n;
        const char *bytes = grammar_match_bytes(g->matcher->match, *id, &n);
        if (!reasoning_runs_over(&g->think, bytes, n)) return LATH_OK;
        TRY(reasoning_end_exactly(&g->think, err));
        *id = reasoning_take_forced(&g->think);
        return LATH_OK;
    }
    if (reasoning_may_begin(&g->think) && *id == g->think.begin.ids[0]) {
        TRY(lath_matcher_mask(g->matcher, &mask, err));
        if (!(mask[*id / 32] >> (*id % 32) & 1)) {
            reasoning_begin(&g->think);
            return LATH_OK;
        }
    }
    reasoning_answer(&g->think);
    return lath_matcher_accept(g->matcher, *id, err);
}

static lath_status choose(generation *g, lath_generated *step, lath_error *err)
{
    const float *logits;
    const uint32_t *mask;
    lath_token_logprob chosen;
    TRY(lath_session_logits(g->s, &logits, err));
    step->id = reasoning_take_forced(&g->think);
    g->is_forced = step->id >= 0;
    if (!g->is_forced) {
        TRY(allowed(g, &mask, err));
        TRY(sampler_pick(&g->sampler, logits, mask, &step->id, err));
        if (g->matcher) TRY(follow_grammar(g, &step->id, err));
    }
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
        if (!g->is_forced && stop_is_id(&g->stop, step.id)) {
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
    buf_init(&g.thought, &s->model->rt->alloc, 1 << 24);
    buf_init(&g.answer, &s->model->rt->alloc, 1 << 24);
    reasoning_init_none(&g.think, &s->model->rt->alloc);
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
    g.r.n_reasoning = g.think.count;
    g.r.struct_size = sizeof(g.r);
    if (result) *result = g.r;
    close_parts(&g);
    return st;
}
