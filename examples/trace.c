/* SPDX-License-Identifier: Apache-2.0
 *
 * trace.c: what each layer of a language model did to the stream behind a prompt's last token, and what the model would have said had it ended there.
 *
 *     cc trace.c $(pkg-config --cflags --libs lath) -lm -o trace && ./trace gemma-3-270m.gguf "The capital of France is"
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lath/lath_inspect.h>

static double length(const float *x, size_t d)
{
    double sum = 0;
    for (size_t i = 0; i < d; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/* A line for each layer: how long what attention and FFN added is, how long the stream is then, and the token that the lens has there. */
static lath_status print_layers(const lath_model *model, const lath_trace *t, const lath_trace_info *of,
                                lath_error *err)
{
    const int32_t last = of->positions[0], vocab = of->vocab_size;
    float *lens = malloc((size_t)of->n_layers * (size_t)vocab * sizeof(*lens)); /* [n_layers, vocab] */
    lath_status st = lens ? lath_trace_lens(t, last, lens, err) : LATH_ERR_NOMEM;
    for (int32_t l = 0; st == LATH_OK && l < of->n_layers; l++) {
        static const lath_point points[] = {LATH_POINT_ATTN_OUT, LATH_POINT_FFN_OUT, LATH_POINT_RESIDUAL};
        const float *row, *logits = lens + (size_t)l * (size_t)vocab;
        int32_t best = 0;
        size_t d;
        printf("layer %2d ", l);
        for (int p = 0; st == LATH_OK && p < 3; p++) {
            st = lath_trace_get(t, points[p], l, last, &row, &d, err);
            if (st == LATH_OK) printf(" %s %8.2f", lath_point_name(points[p]), length(row, d));
        }
        for (int32_t i = 1; i < vocab; i++) best = logits[i] > logits[best] ? i : best;
        const char *text =
            lath_tokenizer_token(lath_model_tokenizer(model), best); /* some models have ids without a token */
        if (st == LATH_OK) printf("  \"%s\"\n", text ? text : "");
    }
    free(lens);
    return st;
}

int main(int argc, char **argv)
{
    lath_runtime *rt = NULL;
    lath_model *model = NULL;
    lath_trace *t = NULL;
    lath_tokens tokens = {0};
    lath_error err = {.msg = "out of memory"};
    lath_trace_info of = {.struct_size = sizeof(of)};
    int rc = 1;

    if (argc < 2) {
        fprintf(stderr, "usage: trace MODEL [PROMPT]\n");
        return 2;
    }
    const char *prompt = argc > 2 ? argv[2] : "the river runs green";
    const lath_text text = {prompt, strlen(prompt)};

    if (lath_runtime_create(NULL, &rt, &err) != LATH_OK) goto done;
    if (lath_model_open(rt, argv[1], NULL, &model, &err) != LATH_OK) goto done;
    if (lath_encode(lath_model_tokenizer(model), text, NULL, &tokens, &err) != LATH_OK) goto done;
    if (lath_trace_run(model, tokens.ids, tokens.n, NULL, &t, &err) != LATH_OK) goto done; /* the last position */
    if (lath_trace_get_info(t, &of, &err) != LATH_OK) goto done;
    if (print_layers(model, t, &of, &err) != LATH_OK) goto done;
    rc = 0;
done:
    if (rc) fprintf(stderr, "trace: %s\n", err.msg);
    lath_trace_close(t);
    lath_tokens_release(&tokens);
    lath_model_close(model);
    lath_runtime_destroy(rt);
    return rc;
}
