/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_head.h: what a model that scores has behind its last hidden state. A cross-encoder (a class ...ForSequenceClassification of the reference
 * implementation) is an encoder with such a head; a language model scores by the logits of two tokens. The forward stays the encoder's own:
 *
 *     logits = out(norm(fn(dense(pooled hidden state))))        dense and norm where the family has them
 */
#ifndef LATH_ARCH_HEAD_H
#define LATH_ARCH_HEAD_H

#include "arch/arch.h"

typedef struct arch_head {
    kern_pool_mode pool;
    bool has_dense, has_norm;
    nn_linear_w dense; /* [d_model, d_model] */
    kern_fn fn;
    op_norm norm;
    nn_linear_w out[2];          /* [n_logits / n_out, d_model] each */
    const arch_lm_head *lm_head; /* whose rows `out` are; NULL: of its own */
    int32_t n_out;
    int32_t n_logits;
} arch_head;

/* The labels of config.json (id2label, else num_labels, else 2 as in the reference), in the order of their ids. */
typedef struct arch_labels {
    const char **names; /* [n] */
    int32_t n;
} arch_labels;

/* The class that config.json's "architectures" names first, or NULL where it names none. */
lath_status arch_class(const json_value *config, const char *config_name, const char **out, lath_error *err);
/* It is one of those with a classification head. */
bool arch_class_scores(const char *class_name);
/* It is a language model. */
bool arch_class_generates(const char *class_name);

lath_status arch_labels_load(arena *a, const json_value *config, const char *config_name, arch_labels *out,
                             lath_error *err);

/* Binds the head of a sequence classifier. LATH_ERR_UNSUPPORTED when lath has no head for the family; LATH_ERR_FORMAT: a tensor of it is missing
 * or has another shape. */
lath_status arch_head_open(const arch_model *m, const char *model_type, const json_value *config,
                           const char *config_name, const arch_source *src, int32_t n_labels, arch_head *out,
                           lath_error *err);
/* Of a language model whose output head is open: the logits at the last token of n tokens, 1 or 2. `name` leads messages. */
lath_status arch_head_open_tokens(const arch_model *m, const char *name, const int32_t *ids, int32_t n, arch_head *out,
                                  lath_error *err);

/* Numbers of the widest row that arch_head_forward puts into its memory. */
int64_t arch_head_widest(const arch_model *m, const arch_head *h);
/* hidden: [n_tok, d_model] -> logits: [n_seq, n_logits]. rows_a, rows_b: memory of views of n_seq rows of arch_head_widest. */
lath_status arch_head_forward(arch_head *h, const fwd *f, view hidden, float *rows_a, float *rows_b, view *logits);

/* hidden: [n, d_model] -> logits: [n, vocab] of a language model whose output head is open. */
lath_status arch_lm_head_forward(const arch_lm_head *h, const fwd *f, view hidden, view logits);

#endif
