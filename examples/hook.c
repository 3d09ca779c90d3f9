/* SPDX-License-Identifier: Apache-2.0
 *
 * hook.c: which layer a model's next token hangs on: leaves one layer out after the other, and shows what becomes of the probability of the token that the whole model
 * would have taken. A hook of its own counts the heads' results that pass by.
 *
 *     cc hook.c $(pkg-config --cflags --libs lath) -lm -o hook && ./hook gemma-3-270m.gguf "The capital of France is"
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <lath/lath_inspect.h>

/* Sees what each head gives at the last position; it could change v->rows and return 1. */
static int count_heads(void *ctx, lath_value *v)
{
    *(int32_t *)ctx += v->n_heads;
    return 0;
}

static double prob_of(const float *logits, int32_t n, int32_t token)
{
    double sum = 0;
    for (int32_t i = 0; i < n; i++) sum += exp((double)logits[i] - (double)logits[token]);
    return 1 / sum;
}

/* The session reads the prompt anew, without layer `without` (-1: with all). */
static lath_status read_prompt(const lath_model *model, lath_session *s, const lath_tokens *prompt, int32_t without,
                               int32_t *heads, const float **logits, lath_error *err)
{
    lath_hooks *hooks = NULL;
    lath_status st = lath_hooks_create(model, &hooks, err);
    if (st == LATH_OK && without >= 0) st = lath_hooks_ablate_layer(hooks, without, err);
    if (st == LATH_OK)
        st = lath_hooks_add(hooks, LATH_POINT_HEADS, LATH_LAYERS_ALL, LATH_POSITION_LAST, count_heads, heads, err);
    if (st == LATH_OK) st = lath_session_set_hooks(s, hooks, err);
    lath_session_rewind(s, 0);
    if (st == LATH_OK) st = lath_session_append(s, prompt->ids, prompt->n, err);
    if (st == LATH_OK) st = lath_hooks_check(hooks, err); /* nothing that we asked for was missed */
    if (st == LATH_OK) st = lath_session_logits(s, logits, err);
    lath_error ignored;
    (void)lath_session_set_hooks(s, NULL, &ignored); /* before they go */
    lath_hooks_destroy(hooks);
    return st;
}

int main(int argc, char **argv)
{
    lath_runtime *rt = NULL;
    lath_model *model = NULL;
    lath_session *s = NULL;
    lath_tokens prompt = {0};
    lath_error err;
    lath_model_info info = {.struct_size = sizeof(info)};
    const float *logits;
    int32_t heads = 0, best = 0;
    int rc = 1;

    if (argc < 2) {
        fprintf(stderr, "usage: hook MODEL [PROMPT]\n");
        return 2;
    }
    const char *words = argc > 2 ? argv[2] : "the river runs green";
    const lath_text text = {words, strlen(words)};

    if (lath_runtime_create(NULL, &rt, &err) != LATH_OK) goto done;
    if (lath_model_open(rt, argv[1], NULL, &model, &err) != LATH_OK) goto done;
    if (lath_model_get_info(model, &info, &err) != LATH_OK) goto done;
    if (lath_session_create(model, NULL, &s, &err) != LATH_OK) goto done;
    if (lath_encode(lath_model_tokenizer(model), text, NULL, &prompt, &err) != LATH_OK) goto done;
    for (int32_t without = -1; without < info.n_layers; without++) {
        if (read_prompt(model, s, &prompt, without, &heads, &logits, &err) != LATH_OK) goto done;
        if (without < 0) {
            for (int32_t i = 1; i < info.vocab_size; i++) best = logits[i] > logits[best] ? i : best;
            printf("all layers: token %d, %.4f, %d heads passed by\n", best, prob_of(logits, info.vocab_size, best),
                   heads);
        } else {
            printf("without layer %2d: %.4f\n", without, prob_of(logits, info.vocab_size, best));
        }
    }
    rc = 0;
done:
    if (rc) fprintf(stderr, "hook: %s\n", err.msg);
    lath_tokens_release(&prompt);
    lath_session_destroy(s);
    lath_model_close(model);
    lath_runtime_destroy(rt);
    return rc;
}
