/* SPDX-License-Identifier: Apache-2.0
 *
 * test_chat_ids.c: conversations to token ids through the public interface, against apply_chat_template of transformers (golden/chat/ids.jsonl) with the
 * real tokenizers and templates; and what it adds to that: no special token comes of what people write.
 */
#include "base/file.h"
#include "base/json.h"
#include "lath/lath.h"
#include "support/test.h"
#include "support/tmpdir.h"

static lath_error err;
static lath_runtime *rt;
static const char *const names[] = {"tokenizer-qwen3", "tokenizer-gemma3", "tokenizer-llama3_1"};

static lath_chat *open_chat(const char *name)
{
    char path[TMP_PATH];
    lath_chat *chat = NULL;
    tmp_join(path, test_models_dir(), name);
    assert_ok(lath_chat_open(rt, path, NULL, &chat, &err), err);
    return chat;
}

static void put_json(buf *b, const json_value *v)
{
    const bool object = v->kind == JSON_OBJECT;
    switch (v->kind) {
    case JSON_NULL: buf_str(b, "null"); return;
    case JSON_BOOL: buf_str(b, v->u.boolean ? "true" : "false"); return;
    case JSON_INT: buf_printf(b, "%lld", (long long)v->u.integer); return;
    case JSON_REAL: json_put_f64(b, v->u.real); return;
    case JSON_STRING: json_put_string(b, v->u.string.data, v->u.string.len); return;
    default: break;
    }
    buf_char(b, object ? '{' : '[');
    for (const json_value *m = v->u.items.first; m; m = m->next) {
        if (object) json_put_string(b, m->key, m->key_len);
        if (object) buf_char(b, ':');
        put_json(b, m);
        if (m->next) buf_char(b, ',');
    }
    buf_char(b, object ? '}' : ']');
}

static lath_text as_text(buf *b, const json_value *v)
{
    if (!v) return (lath_text){NULL, 0};
    put_json(b, v);
    return (lath_text){buf_cstr(b), b->len};
}

static void check_ids(const json_value *v, const lath_chat_prompt *p)
{
    size_t i = 0;
    const char *name = json_get(v, "name")->u.string.data, *tokenizer = json_get(v, "tokenizer")->u.string.data;
    if (json_get(v, "bytes")->u.integer != (int64_t)p->len)
        fail_msg("%s, %s: %zu bytes, want %lld: %s", tokenizer, name, p->len,
                 (long long)json_get(v, "bytes")->u.integer, p->text);
    for (const json_value *id = json_get(v, "ids")->u.items.first; id; id = id->next, i++) {
        if (i >= p->n || p->ids[i] != id->u.integer)
            fail_msg("%s, %s: id %zu is %d, want %lld: %s", tokenizer, name, i, i < p->n ? p->ids[i] : -1,
                     (long long)id->u.integer, p->text);
    }
    assert_int_equal(i, p->n);
}

static void check_case(const lath_chat *chat, const json_value *v, lath_chat_prompt *p)
{
    lath_chat_input in = LATH_CHAT_INPUT_INIT;
    const json_value *more = json_get(v, "more"), *whole = json_get(more, "add_generation_prompt"),
                     *thinking = json_get(more, "enable_thinking");
    buf messages, tools;
    buf_init(&messages, alloc_default(), SIZE_MAX / 2);
    buf_init(&tools, alloc_default(), SIZE_MAX / 2);
    in.messages_json = as_text(&messages, json_get(v, "messages"));
    in.tools_json = as_text(&tools, json_get(more, "tools"));
    in.no_generation_prompt = whole != NULL;
    in.continue_last = json_get(more, "continue_final_message") != NULL;
    if (thinking) in.variables_json = (lath_text){"{\"enable_thinking\":false}", 25};
    const lath_status st = lath_chat_render(chat, &in, p, &err);
    if (json_get(v, "error")) {
        if (st != LATH_ERR_INPUT) fail_msg("%s: status %d", json_get(v, "name")->u.string.data, (int)st);
    } else {
        assert_ok(st, err);
        check_ids(v, p);
    }
    buf_deinit(&messages);
    buf_deinit(&tools);
}

static void test_ids(void **state)
{
    char path[TMP_PATH];
    buf text;
    arena mem;
    size_t n = 0;
    const char *open = "";
    lath_chat *chat = NULL;
    lath_chat_prompt p = {0};
    (void)state;
    arena_init(&mem, alloc_default());
    buf_init(&text, alloc_default(), SIZE_MAX / 2);
    tmp_join(path, test_data_dir(), "golden/chat/ids.jsonl");
    assert_ok(file_read(&text, path, 1 << 26, &err), err);
    for (size_t i = 0; i < text.len; n++) {
        const char *end = memchr(text.data + i, '\n', text.len - i);
        json_value *v;
        assert_non_null(end);
        assert_ok(json_parse(&mem, path, text.data + i, (size_t)(end - text.data) - i, NULL, &v, &err), err);
        const char *name = json_get(v, "tokenizer")->u.string.data;
        if (strcmp(name, open) != 0) {
            lath_chat_prompt_release(&p);
            lath_chat_destroy(chat);
            chat = open_chat(name);
            for (size_t k = 0; k < 3; k++) {
                if (strcmp(names[k], name) == 0) open = names[k];
            }
        }
        check_case(chat, v, &p);
        arena_reset(&mem);
        i = (size_t)(end - text.data) + 1;
    }
    assert_true(n > 100);
    lath_chat_prompt_release(&p);
    lath_chat_destroy(chat);
    buf_deinit(&text);
    arena_deinit(&mem);
}

/* Every special token of the vocabulary in every place that people write in: the special ids are those of the same conversation without them. */
static size_t count_special(const lath_chat *chat, const lath_chat_prompt *p, const int32_t *special, size_t n_special)
{
    size_t n = 0;
    (void)chat;
    for (size_t i = 0; i < p->n; i++) {
        for (size_t k = 0; k < n_special; k++) n += p->ids[i] == special[k];
    }
    return n;
}

static size_t render_with(const lath_chat *chat, const char *text, const int32_t *special, size_t n_special)
{
    const lath_text t = {text, strlen(text)};
    const lath_message messages[] = {{"user", t, {0}}, {"assistant", t, {0}}, {"user", t, {0}}};
    lath_chat_input in = LATH_CHAT_INPUT_INIT;
    lath_chat_prompt p = {0};
    char *back = NULL;
    size_t len;
    in.messages = messages;
    in.n_messages = 3;
    assert_ok(lath_chat_render(chat, &in, &p, &err), err);
    assert_non_null(strstr(p.text, text));
    assert_ok(lath_decode(lath_chat_tokenizer(chat), p.ids, p.n, 0, &back, &len, &err), err);
    assert_string_equal(back, p.text);
    lath_string_release(lath_chat_tokenizer(chat), back);
    const size_t n = count_special(chat, &p, special, n_special);
    lath_chat_prompt_release(&p);
    return n;
}

static void test_written_specials(void **state)
{
    static const char *const lists[3][8] = {
        {"<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|object_ref_start|>", "<|vision_pad|>"},
        {"<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>", "<pad>"},
        {"<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
         "<|reserved_special_token_0|>"}};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        lath_chat *chat = open_chat(names[i]);
        const lath_tokenizer *t = lath_chat_tokenizer(chat);
        int32_t ids[8];
        size_t n = 0;
        for (; n < 8 && lists[i][n]; n++) {
            ids[n] = -1;
            for (int32_t id = 0; id < lath_tokenizer_size(t) && ids[n] < 0; id++) {
                const char *token = lath_tokenizer_token(t, id);
                if (token && strcmp(token, lists[i][n]) == 0) ids[n] = id;
            }
            assert_true(ids[n] >= 0);
        }
        const size_t want = render_with(chat, "plain text", ids, n);
        assert_true(want > 3);
        for (size_t k = 0; k < n; k++) {
            char text[256];
            snprintf(text, sizeof(text), "a%s b %s%s c", lists[i][k], lists[i][k], lists[i][k]);
            assert_int_equal(render_with(chat, text, ids, n), want);
            assert_int_equal(render_with(chat, lists[i][k], ids, n), want);
        }
        lath_chat_destroy(chat);
    }
}

static void test_end_ids(void **state)
{
    static const char *const ends[] = {"<|im_end|>", "<end_of_turn>", "<|eot_id|>"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        lath_chat *chat = open_chat(names[i]);
        const char *token = lath_tokenizer_token(lath_chat_tokenizer(chat), lath_chat_end_id(chat));
        assert_non_null(token);
        assert_string_equal(token, ends[i]);
        assert_non_null(strstr(lath_chat_template(chat), "messages"));
        lath_chat_destroy(chat);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ids), cmocka_unit_test(test_written_specials),
                                       cmocka_unit_test(test_end_ids)};
    char path[TMP_PATH];
    for (size_t i = 0; i < 3; i++) {
        if (!test_models_dir()) return test_skip("LATH_MODELS is not set");
        tmp_join(path, test_models_dir(), names[i]);
        if (!file_is_dir(path)) return test_skip("a tokenizer is absent");
    }
    assert_ok(lath_runtime_create(NULL, &rt, &err), err);
    const int result = TEST_RUN(tests);
    lath_runtime_destroy(rt);
    return result;
}
