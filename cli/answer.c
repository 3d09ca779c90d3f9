/* SPDX-License-Identifier: Apache-2.0
 *
 * answer.c: see answer.h. The tokens of prompt and answer together begin with the prompt's where the tokenizer does not join the two at their border; where it does, the answer
 * is encoded alone.
 */
#include "answer.h"

#include "base/error.h"

static lath_status first_token(const lm_job *j, const buf *all, lath_text s, int32_t *id, lath_error *err)
{
    const lath_tokenizer *tok = lath_model_tokenizer(j->s.model);
    lath_encode_options alone = LATH_ENCODE_OPTIONS_INIT;
    lath_tokens t = {0};
    size_t same = 0;
    lath_status st = lath_encode(tok, (lath_text){all->data, all->len}, NULL, &t, err);
    while (st == LATH_OK && same < j->n && same < t.n && t.ids[same] == j->ids[same]) same++;
    if (st == LATH_OK && same == j->n && same < t.n) {
        *id = t.ids[same];
    } else if (st == LATH_OK) {
        alone.add_special = 0;
        st = lath_encode(tok, s, &alone, &t, err);
        if (st == LATH_OK && t.n == 0) st = err_set(err, LATH_ERR_INPUT, "the answer has no token");
        if (st == LATH_OK) *id = t.ids[0];
    }
    lath_tokens_release(&t);
    return st;
}

lath_status answer_find(const lm_job *j, lath_text prompt, lath_text s, answer *out, lath_error *err)
{
    lath_status st = LATH_OK;
    buf all;
    if (s.len == 0) return err_set(err, LATH_ERR_USAGE, "the answer is empty");
    *out = (answer){.n = 2};
    buf_init(&all, alloc_default(), SIZE_MAX / 2);
    for (int blank = 0; blank < 2 && st == LATH_OK; blank++) {
        buf_clear(&all);
        buf_append(&all, prompt.data, prompt.len);
        if (blank) buf_char(&all, ' ');
        const size_t at = all.len - (size_t)blank;
        buf_append(&all, s.data, s.len);
        st = buf_status(&all, err);
        if (st == LATH_OK) st = first_token(j, &all, (lath_text){all.data + at, all.len - at}, &out->ids[blank], err);
    }
    buf_deinit(&all);
    if (out->ids[0] == out->ids[1]) out->n = 1;
    return st;
}

int32_t answer_choose(const answer *a, const float *logits)
{
    return a->n == 2 && logits[a->ids[1]] > logits[a->ids[0]] ? a->ids[1] : a->ids[0];
}
