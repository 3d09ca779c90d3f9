/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_walk.c: `lath walk`: which features of each layer fired for a PROMPT, what they write, and the tokens that come next.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "lath/lath_vindex.h"
#include "lm.h"
#include "output.h"

enum { SHOW_FEATURES = 10, SHOW_PREDICTIONS = 5, SHOW_TOKENS = 5 };

typedef struct walk_job {
    lm_job lm;
    output out;
    lath_vindex *index;
    lath_walk *walk;
    lath_walk_options wo;
    lath_token_logprob best[SHOW_PREDICTIONS];
    size_t n_best;
    bool json;
} walk_job;

/* "A", "A-" or "A-B" */
static lath_status take_layers(walk_job *j, const char *text, lath_error *err)
{
    char *end;
    const int32_t n = j->lm.info.n_layers;
    const long first = strtol(text, &end, 10);
    long last = first;
    const bool digits = *text >= '0' && *text <= '9';
    if (digits && *end == '-') {
        const char *at = end + 1;
        last = *at ? strtol(at, &end, 10) : n - 1;
        if (*at == 0) end++;
        if (*at && (*at < '0' || *at > '9')) end = (char *)at;
    }
    if (!digits || *end) return err_set(err, LATH_ERR_USAGE, "--layers: \"%.40s\": want A, A- or A-B", text);
    if (first > last || last >= n)
        return err_set(err, LATH_ERR_USAGE, "--layers: \"%.40s\": the model has layers 0 to %d", text, (int)n - 1);
    j->wo.first_layer = (int32_t)first;
    j->wo.end_layer = (int32_t)last + 1;
    return LATH_OK;
}

static lath_status put_token(walk_job *j, int32_t id, lath_error *err)
{
    buf text;
    bool known;
    buf_init(&text, alloc_default(), SIZE_MAX / 2);
    const lath_status st = lm_token_text(&j->lm, id, &text, &known, err);
    if (st == LATH_OK && known)
        json_put_string(&j->out.b, text.data ? text.data : "", text.len);
    else if (st == LATH_OK)
        buf_str(&j->out.b, "null");
    buf_deinit(&text);
    return st;
}

static lath_status put_feature(walk_job *j, const lath_walk_feature *f, lath_error *err)
{
    buf *b = &j->out.b;
    const int32_t n = j->json || f->n_tokens < SHOW_TOKENS ? f->n_tokens : SHOW_TOKENS;
    if (j->json) {
        buf_printf(b, "{\"feature\":%lld,\"gate\":", (long long)f->feature);
        json_put_f32(b, f->gate);
        buf_str(b, ",\"tokens\":[");
    } else {
        buf_printf(b, "%8lld  %9.4f ", (long long)f->feature, (double)f->gate);
    }
    for (int32_t i = 0; i < n; i++) {
        buf_str(b, j->json ? i ? "," : "" : " ");
        TRY(put_token(j, f->tokens[i].token, err));
    }
    buf_str(b, j->json ? "]}" : "\n");
    return LATH_OK;
}

static lath_status put_layers(walk_job *j, lath_error *err)
{
    buf *b = &j->out.b;
    const char *comma = "";
    if (j->json) buf_str(b, "{\"layers\":[");
    for (int32_t i = 0; i < j->lm.info.n_layers; i++) {
        int32_t n;
        const lath_walk_feature *f = lath_walk_get_layer(j->walk, i, &n);
        if (!f) continue;
        buf_printf(b, j->json ? "%s{\"layer\":%d,\"features\":[" : "%slayer %d\n", comma, (int)i);
        for (int32_t k = 0; k < n; k++) {
            if (j->json && k > 0) buf_char(b, ',');
            TRY(put_feature(j, &f[k], err));
        }
        if (j->json) buf_str(b, "]}");
        comma = j->json ? ",\n" : "\n";
    }
    if (j->json) buf_str(b, "],\n");
    return LATH_OK;
}

static lath_status put_predictions(walk_job *j, lath_error *err)
{
    buf *b = &j->out.b;
    buf_str(b, j->json ? "\"predictions\":[" : "\nnext token\n");
    for (size_t i = 0; i < j->n_best; i++) {
        const lath_token_logprob *t = &j->best[i];
        if (!j->json) {
            buf_printf(b, "%3zu  %8.6f  %6d  ", i + 1, exp(t->logprob), (int)t->id);
            TRY(put_token(j, t->id, err));
            buf_char(b, '\n');
            continue;
        }
        buf_printf(b, "%s{\"token_id\":%d,\"token\":", i ? "," : "", (int)t->id);
        TRY(put_token(j, t->id, err));
        buf_str(b, ",\"prob\":");
        json_put_f64(b, exp(t->logprob));
        buf_str(b, ",\"logprob\":");
        json_put_f64(b, t->logprob);
        buf_char(b, '}');
    }
    if (j->json)
        buf_printf(b, "],\"prompt_tokens\":%zu,\"ffn\":[{\"layers\":\"0-%d\",\"path\":\"walk:%s\"}]}\n", j->lm.n,
                   (int)j->lm.info.n_layers - 1, j->wo.k ? "top" : "all");
    return LATH_OK;
}

static lath_status find_best(walk_job *j, lath_error *err)
{
    size_t vocab;
    const float *logits = lath_walk_get_logits(j->walk, &vocab);
    j->n_best = vocab < SHOW_PREDICTIONS ? vocab : SHOW_PREDICTIONS;
    return lath_logits_top(j->lm.s.rt, logits, vocab, j->n_best, j->best, err);
}

static lath_status open_index(walk_job *j, lath_error *err)
{
    const options *o = j->lm.o;
    if (!o->index && !file_is_dir(buf_cstr(&j->lm.s.path)))
        return err_set(err, LATH_ERR_USAGE, "--index: name the folder that lath extract has made (or give it to -m)");
    return lath_vindex_open(j->lm.s.rt, o->index ? o->index : buf_cstr(&j->lm.s.path), &j->index, err);
}

static void note(const walk_job *j)
{
    double ffn;
    const double all = lath_walk_seconds(j->walk, &ffn);
    if (j->lm.o->verbose)
        fprintf(stderr, "walk: layers 0-%d walk:%s, %zu tokens, %.3f s, of them %.3f s in FFNs\n",
                (int)j->lm.info.n_layers - 1, j->wo.k ? "top" : "all", j->lm.n, all, ffn);
}

lath_status cmd_walk(options *o, lath_error *err)
{
    walk_job j = {.json = o->json || o->jsonl, .wo = LATH_WALK_OPTIONS_INIT};
    lath_status st;
    TRY_DONE(lm_open(&j.lm, o, err));
    j.wo.k = o->walk_k;
    j.wo.top = o->top ? (int32_t)o->top : SHOW_FEATURES;
    if (o->layers) TRY_DONE(take_layers(&j, o->layers, err));
    TRY_DONE(open_index(&j, err));
    TRY_DONE(lm_prompt(&j.lm, err));
    TRY_DONE(lath_walk_run(j.lm.s.model, j.index, j.lm.ids, j.lm.n, &j.wo, &j.walk, err));
    TRY_DONE(find_best(&j, err));
    TRY_DONE(output_open(&j.out, o->output, err));
    TRY_DONE(put_layers(&j, err));
    TRY_DONE(put_predictions(&j, err));
    TRY_DONE(output_close(&j.out, err));
    note(&j);
    st = LATH_OK;
done:
    output_abort(&j.out);
    lath_walk_close(j.walk);
    lath_vindex_close(j.index);
    lm_close(&j.lm);
    return st;
}
