/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_out.c: see trace_out.h. Columns of the table are padded by characters, not bytes.
 */
#include "trace_out.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"

enum { TOKEN_CELLS = 16, HEADS_SHOWN = 10 };

lath_status trace_put_token(const lm_job *lm, int32_t id, buf *b, lath_error *err)
{
    buf text;
    bool known;
    buf_init(&text, alloc_default(), SIZE_MAX / 2);
    const lath_status st = lm_token_text(lm, id, &text, &known, err);
    if (st == LATH_OK && known)
        json_put_string(b, text.data ? text.data : "", text.len);
    else if (st == LATH_OK)
        buf_str(b, "null");
    buf_deinit(&text);
    return st;
}

/* ---------------------------------------------------------------------------------------------------------------- JSON */

static void put_number(buf *b, const char *name, double v)
{
    buf_printf(b, ",\"%s\":", name);
    if (isnan(v))
        buf_str(b, "null");
    else
        json_put_f32(b, (float)v);
}

static lath_status put_top(const trace_view *v, const trace_layer *l, buf *b, lath_error *err)
{
    buf_str(b, ",\"top\":[");
    for (size_t i = 0; i < v->top; i++) {
        buf_printf(b, "%s{\"token_id\":%d,\"token\":", i ? "," : "", (int)l->top[i].id);
        TRY(trace_put_token(v->lm, l->top[i].id, b, err));
        buf_str(b, ",\"prob\":");
        json_put_f32(b, (float)exp(l->top[i].logprob));
        buf_char(b, '}');
    }
    buf_char(b, ']');
    return LATH_OK;
}

/* The weights of a head, or NULL with *n 0 where the layer has no such thing. */
static const float *weights_of(const trace_view *v, int32_t layer, int32_t head, size_t *n, int32_t *first)
{
    const float *w = NULL;
    *n = 0;
    if (lath_trace_get_weights(v->trace, layer, v->position, head, &w, n, first, NULL) == LATH_OK) return w;
    *n = 0;
    return NULL;
}

/* [head][token that is seen]; of a layer that has none: null. */
static void put_weights(const trace_view *v, int32_t layer, buf *b)
{
    size_t n;
    int32_t first = 0, head = 0;
    const float *w = weights_of(v, layer, 0, &n, &first);
    buf_str(b, ",\"weights\":");
    if (!w) {
        buf_str(b, "null");
        return;
    }
    buf_printf(b, "{\"first\":%d,\"heads\":[", (int)first);
    for (; w; w = weights_of(v, layer, ++head, &n, &first)) {
        buf_str(b, head ? ",[" : "[");
        for (size_t i = 0; i < n; i++) {
            if (i) buf_char(b, ',');
            json_put_f32(b, w[i]);
        }
        buf_char(b, ']');
    }
    buf_str(b, "]}");
}

static void put_heads(const trace_view *v, int32_t layer, buf *b)
{
    const float *row = v->heads + (size_t)layer * (size_t)v->info.n_heads;
    buf_str(b, ",\"head_logits\":[");
    for (int32_t h = 0; h < v->info.n_heads; h++) {
        if (h) buf_char(b, ',');
        json_put_f32(b, row[h]);
    }
    buf_char(b, ']');
}

lath_status trace_put_layers(const trace_view *v, buf *b, lath_error *err)
{
    buf_str(b, "\"layers\":[");
    for (int32_t l = 0; l < v->info.n_layers; l++) {
        const trace_layer *t = &v->layers[l];
        buf_printf(b, "%s{\"layer\":%d", l ? ",\n" : "", (int)l);
        put_number(b, "attn_norm", t->attn_norm);
        put_number(b, "ffn_norm", t->ffn_norm);
        put_number(b, "residual_norm", t->residual_norm);
        if (v->answer >= 0) {
            TRY(put_top(v, t, b, err));
            buf_printf(b, ",\"answer_rank\":%d", (int)t->step.rank);
            put_number(b, "answer_prob", t->step.prob);
            put_number(b, "answer_logit", t->step.logit);
            put_number(b, "attn_logit", t->step.attn_logit);
            put_number(b, "ffn_logit", t->step.ffn_logit);
        }
        if (v->heads) put_heads(v, l, b);
        if (v->weights) put_weights(v, l, b);
        buf_char(b, '}');
    }
    buf_char(b, ']');
    return buf_status(b, err);
}

/* --------------------------------------------------------------------------------------------------------------- table */

static size_t characters(const char *s, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += ((unsigned char)s[i] & 0xC0) != 0x80;
    return count;
}

/* The token's text as JSON has it, cut and padded to TOKEN_CELLS. */
static lath_status put_cell(const trace_view *v, int32_t id, buf *b, lath_error *err)
{
    buf text;
    buf_init(&text, alloc_default(), SIZE_MAX / 2);
    const lath_status st = trace_put_token(v->lm, id, &text, err);
    size_t end = text.len, cells = characters(text.data ? text.data : "", text.len);
    if (cells > TOKEN_CELLS) {
        for (; cells > TOKEN_CELLS - 1; cells -= ((unsigned char)text.data[end] & 0xC0) != 0x80) end--;
    }
    const bool cut = end < text.len;
    buf_append(b, text.data, end);
    if (cut) buf_str(b, "…");
    for (cells += cut; cells < TOKEN_CELLS; cells++) buf_char(b, ' ');
    buf_deinit(&text);
    return st;
}

static void put_norm(buf *b, double v)
{
    if (isnan(v))
        buf_printf(b, " %9s", "-");
    else
        buf_printf(b, " %9.2f", v);
}

/* The token that a layer's heads look at most, by the mean of their weights; the first one, which most heads rest on when they look for nothing (Xiao et al. 2023),
 * only where there is no other. */
static lath_status put_looks(const trace_view *v, int32_t layer, buf *b, lath_error *err)
{
    const size_t seen = (size_t)v->position + 1;
    int32_t heads = 0, first = 0;
    size_t n, best = seen > 1;
    double *sum = alloc_array(alloc_default(), seen, sizeof(*sum));
    lath_status st = LATH_OK;
    if (!sum) return err_nomem(err, seen * sizeof(*sum));
    memset(sum, 0, seen * sizeof(*sum));
    for (const float *w; (w = weights_of(v, layer, heads, &n, &first)) != NULL; heads++) {
        for (size_t i = 0; i < n && (size_t)first + i < seen; i++) sum[(size_t)first + i] += w[i];
    }
    for (size_t i = best + 1; i < seen; i++) {
        if (sum[i] > sum[best]) best = i;
    }
    if (heads) {
        buf_printf(b, "  %4.2f ", sum[best] / heads);
        st = put_cell(v, v->info.ids[best], b, err);
    }
    alloc_release(alloc_default(), sum, seen * sizeof(*sum));
    return st;
}

static lath_status put_row(const trace_view *v, int32_t layer, buf *b, lath_error *err)
{
    const trace_layer *t = &v->layers[layer];
    buf_printf(b, "%5d", (int)layer);
    put_norm(b, t->attn_norm);
    put_norm(b, t->ffn_norm);
    put_norm(b, t->residual_norm);
    if (v->answer >= 0) {
        buf_printf(b, "  %7d  %6.4f %+9.2f %+9.2f", (int)t->step.rank, t->step.prob, t->step.attn_logit,
                   t->step.ffn_logit);
        for (size_t i = 0; i < v->top; i++) {
            buf_printf(b, "  %6.4f ", exp(t->top[i].logprob));
            TRY(put_cell(v, t->top[i].id, b, err));
        }
    }
    if (v->weights) TRY(put_looks(v, layer, b, err));
    while (b->len && b->data[b->len - 1] == ' ') b->len--;
    buf_char(b, '\n');
    return LATH_OK;
}

/* The heads that gave most to the answer's logit, or took most from it. */
static void put_best_heads(const trace_view *v, buf *b)
{
    const size_t n = (size_t)v->info.n_layers * (size_t)v->info.n_heads;
    double below = INFINITY;
    buf_str(b, "\nHeads that gave most to the answer's logit, or took it away:\n");
    for (size_t shown = 0; shown < HEADS_SHOWN && shown < n; shown++) {
        size_t best = n;
        for (size_t i = 0; i < n; i++) {
            const double size = fabs((double)v->heads[i]);
            if (size < below && (best == n || size > fabs((double)v->heads[best]))) best = i;
        }
        if (best == n || v->heads[best] == 0) break;
        below = fabs((double)v->heads[best]);
        buf_printf(b, "  layer %2zu head %2zu  %+8.3f\n", best / (size_t)v->info.n_heads,
                   best % (size_t)v->info.n_heads, (double)v->heads[best]);
    }
}

lath_status trace_put_table(const trace_view *v, buf *b, lath_error *err)
{
    buf_printf(b, "behind token %d, ", (int)v->position);
    TRY(trace_put_token(v->lm, v->info.ids[v->position], b, err));
    if (v->answer >= 0) {
        buf_printf(b, "; the answer is token %d, ", (int)v->answer);
        TRY(trace_put_token(v->lm, v->answer, b, err));
    }
    buf_printf(b, "\n\n%5s %9s %9s %9s", "layer", "attention", "FFN", "stream");
    if (v->answer >= 0)
        buf_printf(b, "  %7s  %6s %9s %9s  %s", "rank", "prob", "attention", "FFN",
                   v->top > 1 ? "likeliest tokens" : "likeliest token");
    if (v->weights) buf_str(b, "        looks at, first token aside");
    buf_char(b, '\n');
    for (int32_t l = 0; l < v->info.n_layers; l++) TRY(put_row(v, l, b, err));
    if (v->heads) put_best_heads(v, b);
    return buf_status(b, err);
}
