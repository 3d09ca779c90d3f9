/* SPDX-License-Identifier: Apache-2.0
 * judge.c: a query and a document put to a language model: through its template, or by the prompt of Qwen3-Reranker (Zhang et al. 2025, "Qwen3
 * Embedding"; the code of its model card); see judge.h. */
#include "engine/judge.h"

#include <string.h>

#include "base/utf8.h"

static const char system_text[] = "Judge whether the Document meets the requirements based on the Query and the "
                                  "Instruct provided. Note that the answer can only be ";
static const char prefix_begin[] = "<|im_start|>system\n", prefix_end[] = "\"yes\" or \"no\".<|im_end|>\n"
                                                                          "<|im_start|>user\n";
static const char suffix[] = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
static const char instruct[] = "<Instruct>: ", ask[] = "\n<Query>: ", show[] = "\n<Document>: ";
static const char usual[] = "Given a web search query, retrieve relevant passages that answer the query";

static lath_status encode_markup(const tok *t, arena *scratch, const char *text, size_t n, tok_encoding *out,
                                 lath_error *err)
{
    const tok_encode_options o = {.add_special = false, .parse_special = true};
    const lath_status st = tok_encode(t, scratch, text, n, &o, out, err);
    arena_reset(scratch);
    return st;
}

/* ------------------------------------------------------------------------------------------------------ by a template */

/* The conversation about a document into j->asked. */
static lath_status put_question(judge *j, const char *document, size_t n, lath_error *err)
{
    rendering *r = &j->asked;
    arena_reset(&r->mem);
    json_value *messages = json_new(&r->mem, JSON_ARRAY, err);
    if (!messages) return LATH_ERR_NOMEM;
    if (j->instruction.len)
        TRY(conversation_add(&r->mem, messages, "system", j->instruction.data, j->instruction.len, err));
    TRY(conversation_add(&r->mem, messages, "query", j->lead.data ? j->lead.data : "", j->lead.len, err));
    TRY(conversation_add(&r->mem, messages, "document", document, n, err));
    const conversation v = {.messages = messages};
    TRY(conversation_render(j->chat, &v, r, err));
    return conversation_encode(j->chat, r, err);
}

/* A template that knows nothing of these roles writes neither text. */
static bool both_are_there(const rendering *r)
{
    return memmem(r->out.text.data, r->out.text.len, "QUERY_0", 7) &&
           memmem(r->out.text.data, r->out.text.len, "DOCUMENT_0", 10);
}

static lath_status try_template(judge *j, const char *path, lath_error *err)
{
    buf_str(&j->lead, "QUERY_0");
    TRY(buf_status(&j->lead, err));
    const lath_status st = put_question(j, "DOCUMENT_0", 10, err);
    if (st == LATH_ERR_INPUT || (st == LATH_OK && !both_are_there(&j->asked)))
        return err_set(err, LATH_ERR_UNSUPPORTED,
                       "%s: its chat template does not ask about a message \"query\" and a message \"document\"", path);
    TRY(st);
    const chat_output *o = &j->asked.out;
    for (size_t i = 0, k = 0; i < j->asked.tokens.n; i++) {
        const size_t at = j->asked.tokens.offsets[2 * i];
        while (k < o->n_content && o->content[k].end <= at) k++;
        j->n_around += k == o->n_content || at < o->content[k].begin;
    }
    buf_clear(&j->lead);
    return LATH_OK;
}

static lath_status grow(judge *j, size_t want, lath_error *err)
{
    if (want <= j->capacity) return LATH_OK;
    alloc_release(j->lead.alloc, j->ids, j->capacity * sizeof(*j->ids));
    j->capacity = 0;
    j->ids = alloc_array(j->lead.alloc, want, sizeof(*j->ids));
    if (!j->ids) return err_nomem(err, want * sizeof(*j->ids));
    j->capacity = want;
    return LATH_OK;
}

/* What is too long is cut before what stands behind the last content. */
static lath_status encode_asked(judge *j, const char *document, size_t n, int64_t max_tokens, lath_error *err)
{
    const size_t bad = utf8_first_invalid(document, n);
    if (bad != n) return err_set(err, LATH_ERR_INPUT, "byte %zu is not valid UTF-8", bad);
    TRY(put_question(j, document, n, err));
    const tok_encoding *e = &j->asked.tokens;
    const chat_output *o = &j->asked.out;
    const size_t behind = o->n_content ? o->content[o->n_content - 1].end : 0;
    size_t tail = 0, most = (size_t)max_tokens;
    while (tail < e->n && e->offsets[2 * (e->n - 1 - tail)] >= behind) tail++;
    if (most > e->n) most = e->n;
    if (tail > most) tail = most;
    TRY(grow(j, most, err));
    memcpy(j->ids, e->ids, (most - tail) * sizeof(*j->ids));
    memcpy(j->ids + most - tail, e->ids + e->n - tail, tail * sizeof(*j->ids));
    j->n = most;
    j->n_untruncated = e->n;
    return LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------------- interface */

lath_status judge_init(judge *j, const lath_model *model, arena *scratch, lath_error *err)
{
    const lath_allocator *alloc = &model->rt->alloc;
    const tok *t = model->tokenizer.tok;
    *j = (judge){.t = t};
    buf_init(&j->lead, alloc, SIZE_MAX / 2);
    buf_init(&j->whole, alloc, SIZE_MAX / 2);
    buf_init(&j->instruction, alloc, SIZE_MAX / 2);
    rendering_init(&j->asked, alloc);
    if (model->judges_by_template) {
        TRY(lath_chat_create(model, NULL, &j->chat, err));
        return try_template(j, model->path, err);
    }
    buf_str(&j->lead, prefix_begin);
    buf_str(&j->lead, system_text);
    buf_str(&j->lead, prefix_end);
    TRY(buf_status(&j->lead, err));
    TRY(encode_markup(t, scratch, j->lead.data, j->lead.len, &j->prefix, err));
    TRY(encode_markup(t, scratch, suffix, sizeof(suffix) - 1, &j->suffix, err));
    j->n_around = j->prefix.n + j->suffix.n + (size_t)tok_n_template(t);
    return LATH_OK;
}

void judge_deinit(judge *j)
{
    if (!j->t) return;
    alloc_release(j->lead.alloc, j->ids, j->capacity * sizeof(*j->ids));
    tok_encoding_release(j->t, &j->prefix);
    tok_encoding_release(j->t, &j->suffix);
    tok_encoding_release(j->t, &j->text);
    rendering_deinit(&j->asked, j->t);
    lath_chat_destroy(j->chat);
    buf_deinit(&j->lead);
    buf_deinit(&j->whole);
    buf_deinit(&j->instruction);
    *j = (judge){0};
}

size_t judge_bytes(const judge *j)
{
    return (j->prefix.capacity + j->suffix.capacity + j->text.capacity) * 4 * sizeof(int32_t) + j->lead.cap +
           j->whole.cap + j->instruction.cap + j->capacity * sizeof(*j->ids) + j->asked.out.text.cap +
           j->asked.tokens.capacity * 4 * sizeof(int32_t) + j->asked.mem.total + j->asked.scratch.total;
}

size_t judge_n_around(const judge *j) { return j->n_around; }

lath_status judge_set_query(judge *j, const char *instruction, size_t n_instruction, const char *query, size_t n_query,
                            lath_error *err)
{
    buf_clear(&j->lead);
    if (j->chat) {
        buf_clear(&j->instruction);
        buf_append(&j->instruction, instruction, n_instruction);
        buf_append(&j->lead, query, n_query);
        TRY(buf_status(&j->instruction, err));
        return buf_status(&j->lead, err);
    }
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
    if (j->chat) return encode_asked(j, document, n, max_tokens, err);
    const size_t around = j->prefix.n + j->suffix.n;
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
    TRY(grow(j, want, err));
    j->n = 0;
    put(j, &j->prefix);
    put(j, &j->text);
    put(j, &j->suffix);
    j->n_untruncated = around + j->text.n_untruncated;
    return LATH_OK;
}
