/* SPDX-License-Identifier: Apache-2.0
 * generate_options.c: see generate_options.h. */
#include "generate_options.h"

#include <string.h>

#include "base/error.h"

/* Where no option of chance is given, the most probable token is taken. */
static void sample_options(const options *o, lath_sample_options *s)
{
    const bool chance = o->top_k || o->top_p.given || o->min_p.given || o->seed.given;
    *s = (lath_sample_options)LATH_SAMPLE_OPTIONS_INIT;
    s->temperature = o->temp.given ? o->temp.real : chance ? 1 : 0;
    s->top_k = (int32_t)o->top_k;
    if (o->top_p.given) s->top_p = o->top_p.real;
    if (o->min_p.given) s->min_p = o->min_p.real;
    if (o->repeat_penalty.given) s->repeat_penalty = o->repeat_penalty.real;
    if (o->presence_penalty.given) s->presence_penalty = o->presence_penalty.real;
    if (o->frequency_penalty.given) s->frequency_penalty = o->frequency_penalty.real;
    s->seed = (uint64_t)o->seed.whole;
}

static lath_status list_stops(options *o, lath_generate_options *g, lath_error *err)
{
    lath_text *stop = arena_array(&o->arena, o->stops.n + 1, sizeof(*stop));
    if (!stop) return err_nomem(err, o->stops.n * sizeof(*stop));
    for (size_t i = 0; i < o->stops.n; i++) stop[i] = (lath_text){o->stops.items[i], strlen(o->stops.items[i])};
    g->stop = stop;
    g->n_stop = o->stops.n;
    return LATH_OK;
}

lath_status generate_options_read(options *o, lath_generate_options *g, lath_sample_options *sample, lath_error *err)
{
    sample_options(o, sample);
    g->sample = sample;
    if (o->max_new.given) g->max_tokens = (int32_t)o->max_new.whole;
    return list_stops(o, g, err);
}
