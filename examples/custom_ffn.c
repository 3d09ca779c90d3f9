/* SPDX-License-Identifier: Apache-2.0
 *
 * custom_ffn.c: an FFN of one's own in the place of a model's. This one looks its answers up: what the model's FFNs gave in a first run it gives in a second, less
 * everything in the layers from the middle on whose length is below a threshold, and the program says how far the next token's logits moved.
 *
 *     cc custom_ffn.c $(pkg-config --cflags --libs lath) -lm -o custom_ffn && ./custom_ffn gemma-3-270m.gguf "The capital of France is"
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lath/lath_inspect.h>

enum { MOST_TOKENS = 64 };

/* What the FFNs give for the tokens of one prompt. */
typedef struct memory {
    const lath_model *model;
    float *out; /* [n_layers, n, d] */
    size_t n, d;
    int32_t quiet_from; /* layers from this one on leave out what is short */
    int32_t left_out;
} memory;

/* rows, out: [n, d]. Rows come in the order of the prompt. */
static int look_up(void *ctx, int32_t layer, size_t n, size_t d, const float *rows, float *out)
{
    memory *m = ctx;
    (void)rows;
    if (n != m->n || d != m->d) return 1; /* another text: stop */
    const float *from = m->out + (size_t)layer * n * d;
    double mean = 0;
    for (size_t i = 0; i < n * d; i++) mean += (double)from[i] * (double)from[i] / (double)n;
    for (size_t t = 0; t < n; t++) {
        double square = 0;
        for (size_t i = 0; i < d; i++) square += (double)from[t * d + i] * (double)from[t * d + i];
        if (layer >= m->quiet_from && square < 0.1 * mean) {
            m->left_out++; /* out is 0 already */
            continue;
        }
        memcpy(out + t * d, from + t * d, d * sizeof(*out));
    }
    return 0;
}

/* Each layer's FFN by itself, on what it reads in a plain run. */
static lath_status fill(memory *m, const lath_trace *t, int32_t n_layers, lath_error *err)
{
    float *rows = malloc(m->n * m->d * sizeof(*rows)); /* [n, d] */
    lath_status st = rows ? LATH_OK : LATH_ERR_NOMEM;
    for (int32_t l = 0; st == LATH_OK && l < n_layers; l++) {
        for (size_t i = 0; st == LATH_OK && i < m->n; i++) {
            const float *row;
            size_t d;
            st = lath_trace_get(t, LATH_POINT_FFN_IN, l, (int32_t)i, &row, &d, err);
            if (st == LATH_OK) memcpy(rows + i * d, row, d * sizeof(*row));
        }
        if (st == LATH_OK) st = lath_ffn_run(m->model, NULL, l, rows, m->n, m->out + (size_t)l * m->n * m->d, err);
    }
    free(rows);
    return st;
}

/* The logits at the last position of a run with an FFN (NULL: the model's), and the run. */
static lath_status run(const lath_model *model, const lath_tokens *prompt, lath_ffn *ffn, float *logits, lath_trace **t,
                       lath_error *err)
{
    lath_trace_options o = LATH_TRACE_OPTIONS_INIT;
    o.all_positions = 1;
    o.what = LATH_TRACE_INPUTS;
    o.ffn = ffn;
    const lath_status st = lath_trace_run(model, prompt->ids, prompt->n, &o, t, err);
    return st == LATH_OK ? lath_trace_logits(*t, (int32_t)prompt->n - 1, logits, err) : st;
}

int main(int argc, char **argv)
{
    lath_runtime *rt = NULL;
    lath_model *model = NULL;
    lath_ffn *ffn = NULL;
    lath_trace *plain = NULL, *other = NULL;
    lath_tokens prompt = {0};
    lath_error err = {.msg = "out of memory"};
    lath_model_info info = {.struct_size = sizeof(info)};
    lath_ffn_layer layer = {.struct_size = sizeof(layer)};
    memory m = {0};
    float *logits[2] = {NULL, NULL};
    int rc = 1;

    if (argc < 2) {
        fprintf(stderr, "usage: custom_ffn MODEL [PROMPT]\n");
        return 2;
    }
    const char *words = argc > 2 ? argv[2] : "the river runs green";
    const lath_text text = {words, strlen(words)};

    if (lath_runtime_create(NULL, &rt, &err) != LATH_OK) goto done;
    if (lath_model_open(rt, argv[1], NULL, &model, &err) != LATH_OK) goto done;
    if (lath_model_get_info(model, &info, &err) != LATH_OK) goto done;
    if (lath_encode(lath_model_tokenizer(model), text, NULL, &prompt, &err) != LATH_OK) goto done;
    if (prompt.n > MOST_TOKENS) prompt.n = MOST_TOKENS;
    m = (memory){.model = model, .n = prompt.n, .d = (size_t)info.d_model, .quiet_from = info.n_layers / 2};
    m.out = malloc((size_t)info.n_layers * m.n * m.d * sizeof(*m.out));
    for (int i = 0; i < 2; i++) logits[i] = malloc((size_t)info.vocab_size * sizeof(**logits));
    if (!m.out || !logits[0] || !logits[1]) goto done;

    if (run(model, &prompt, NULL, logits[0], &plain, &err) != LATH_OK) goto done;
    if (fill(&m, plain, info.n_layers, &err) != LATH_OK) goto done;
    if (lath_ffn_custom(model, look_up, &m, &ffn, &err) != LATH_OK) goto done;
    if (run(model, &prompt, ffn, logits[1], &other, &err) != LATH_OK) goto done;
    if (lath_ffn_get_layer(ffn, 0, &layer, &err) != LATH_OK) goto done;

    double moved = 0;
    for (int32_t i = 0; i < info.vocab_size; i++)
        moved = fmax(moved, fabs((double)logits[1][i] - (double)logits[0][i]));
    printf("layer 0: %s, %llu tokens; left out %d of %zu; logits moved by %.3g at most\n", layer.path,
           (unsigned long long)layer.tokens, m.left_out, (size_t)info.n_layers * m.n, moved);
    rc = 0;
done:
    if (rc) fprintf(stderr, "custom_ffn: %s\n", err.msg);
    for (int i = 0; i < 2; i++) free(logits[i]);
    free(m.out);
    lath_trace_close(plain);
    lath_trace_close(other);
    lath_ffn_close(ffn);
    lath_tokens_release(&prompt);
    lath_model_close(model);
    lath_runtime_destroy(rt);
    return rc;
}
