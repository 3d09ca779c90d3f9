/* SPDX-License-Identifier: Apache-2.0
 * judge.c: the prompt of Qwen3-Reranker (Zhang et al. 2025, "Qwen3 Embedding"; the code of its model card); see judge.h. */
#include "engine/judge.h"

#include <string.h>

static const char system_text[] = "Judge whether the Document meets the requirements based on the Query and the "
                                  "Instruct provided. Note that the answer can only be ";
static const char prefix_begin[] = "<|im_start|>system\n", prefix_end[] = "\"yes\" or \"no\".<|im_end|>\n"
                                                                          "<|im_start|>user\n";
static const char suffix[] = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
static const char instruct[] = "<Instruct>: ", ask[] = "\n<Query>: ", show[] = "\n<Document>: ";
static const char usual[] = "Given a web search query, retrieve relevant passages that answer the query";

bool judge_is_template(const char *chat_template)
{
    static const char *const parts[] = {system_text, instruct, "<Query>: ", "<Document>: ", "</think>"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (!strstr(chat_template, parts[i])) return false;
    }
    return true;
}

static lath_status encode_markup(const tok *t, arena *scratch, const char *text, size_t n, tok_encoding *out,
                                 lath_error *err)
{
    const tok_encode_options o = {.add_special = false, .parse_special = true};
    const lath_status st = tok_encode(t, scratch, text, n, &o, out, err);
    arena_reset(scratch);
    return st;
}

lath_status judge_init(judge *j, const tok *t, const lath_allocator *alloc, arena *scratch, lath_error *err)
{
    *j = (judge){.t = t};
    buf_init(&j->lead, alloc, SIZE_MAX / 2);
    buf_init(&j->whole, alloc, SIZE_MAX / 2);
    buf_str(&j->lead, prefix_begin);
    buf_str(&j->lead, system_text);
    buf_str(&j->lead, prefix_end);
    TRY(buf_status(&j->lead, err));
    TRY(encode_markup(t, scratch, j->lead.data, j->lead.len, &j->prefix, err));
    return encode_markup(t, scratch, suffix, sizeof(suffix) - 1, &j->suffix, err);
}

void judge_deinit(judge *j)
{
    if (!j->t) return;
    alloc_release(j->lead.alloc, j->ids, j->capacity * sizeof(*j->ids));
    tok_encoding_release(j->t, &j->prefix);
    tok_encoding_release(j->t, &j->suffix);
    tok_encoding_release(j->t, &j->text);
    buf_deinit(&j->lead);
    buf_deinit(&j->whole);
    *j = (judge){0};
}

size_t judge_bytes(const judge *j)
{
    return (j->prefix.capacity + j->suffix.capacity + j->text.capacity) * 4 * sizeof(int32_t) + j->lead.cap +
           j->whole.cap + j->capacity * sizeof(*j->ids);
}

size_t judge_n_around(const judge *j) { return j->prefix.n + j->suffix.n; }

lath_status judge_set_query(judge *j, const char *instruction, size_t n_instruction, const char *query, size_t n_query,
                            lath_error *err)
{
    buf_clear(&j->lead);
    buf_str(&j->lead, instruct);
    if (n_instruction)
        buf_append(&j->lead, instruction, n_instruction);
    else
        buf_str(&j->lead, usual);
    buf_str(&j->lead, ask);
    buf_append(&j->lead, query, n_query);
    buf_str(&j->lead, show);
    return buf_status(&j->lead, err);
}

static void put(judge *j, const tok_encoding *e)
{
    if (e->n) memcpy(j->ids + j->n, e->ids, e->n * sizeof(*j->ids));
    j->n += e->n;
}

lath_status judge_encode(judge *j, arena *scratch, const char *document, size_t n, int64_t max_tokens, lath_error *err)
{
    const size_t around = judge_n_around(j);
    const tok_encode_options o = {
        .add_special = true, .parse_special = false, .max_tokens = max_tokens - (int64_t)around};
    buf_clear(&j->whole);
    buf_append(&j->whole, j->lead.data, j->lead.len);
    buf_append(&j->whole, document, n);
    TRY(buf_status(&j->whole, err));
    const lath_status st = tok_encode(j->t, scratch, j->whole.data, j->whole.len, &o, &j->text, err);
    arena_reset(scratch);
    if (st != LATH_OK) return st;
    const size_t want = around + j->text.n;
    if (want > j->capacity) {
        alloc_release(j->lead.alloc, j->ids, j->capacity * sizeof(*j->ids));
        j->capacity = 0;
        j->ids = alloc_array(j->lead.alloc, want, sizeof(*j->ids));
        if (!j->ids) return err_nomem(err, want * sizeof(*j->ids));
        j->capacity = want;
    }
    j->n = 0;
    put(j, &j->prefix);
    put(j, &j->text);
    put(j, &j->suffix);
    j->n_untruncated = around + j->text.n_untruncated;
    return LATH_OK;
}
