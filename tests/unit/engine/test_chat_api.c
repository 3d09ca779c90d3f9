/* SPDX-License-Identifier: Apache-2.0
 *
 * test_chat_api.c: lath_chat: where templates come from, what messages become, that a special token comes only of what the template writes (with a
 * byte-level BPE and with a Unigram model, whose own vocabulary has the special tokens), and every refusal. Templates here write their variables, so
 * that what is expected can be read in the case.
 */
#include "lath/lath.h"
#include "support/test.h"
#include "support/tmpdir.h"

static lath_error err;
static lath_runtime *rt;
static char dir[TMP_PATH];

static int setup(void **state)
{
    lath_runtime_options o = LATH_RUNTIME_OPTIONS_INIT;
    char from[TMP_PATH];
    (void)state;
    o.n_threads = 1;
    assert_ok(lath_runtime_create(&o, &rt, &err), err);
    tmp_join(from, test_data_dir(), "golden/rerank/qwen3_reranker_card");
    tmp_copy(dir, from);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tmp_remove(dir);
    lath_runtime_destroy(rt);
    return 0;
}

static lath_text text(const char *s) { return (lath_text){s, strlen(s)}; }

static lath_chat *open_with(const char *template)
{
    lath_chat *chat = NULL;
    lath_chat_options o = LATH_CHAT_OPTIONS_INIT;
    if (template) o.template_text = text(template);
    assert_ok(lath_chat_open(rt, dir, &o, &chat, &err), err);
    return chat;
}

/* The text of a conversation under a template. */
static void renders(const char *template, lath_chat_input in, const char *want)
{
    lath_chat_prompt p = {0};
    lath_chat *chat = open_with(template);
    assert_ok(lath_chat_render(chat, &in, &p, &err), err);
    assert_string_equal(p.text, want);
    assert_int_equal(p.len, strlen(want));
    lath_chat_prompt_release(&p);
    lath_chat_destroy(chat);
}

static void refuses(const char *template, lath_chat_input in, lath_status want, const char *says)
{
    lath_chat_prompt p = {0};
    lath_chat *chat = open_with(template);
    assert_int_equal(lath_chat_render(chat, &in, &p, &err), want);
    if (!strstr(err.msg, says)) fail_msg("%s: want \"%s\"", err.msg, says);
    assert_int_equal(p.n, 0);
    lath_chat_prompt_release(&p);
    lath_chat_destroy(chat);
}

static lath_chat_input json(const char *messages)
{
    lath_chat_input in = LATH_CHAT_INPUT_INIT;
    in.messages_json = text(messages);
    return in;
}

static void test_sources(void **state)
{
    lath_chat *chat = NULL;
    lath_chat_input in = json("[{\"role\":\"user\",\"content\":\"x\"}]");
    (void)state;
    assert_int_equal(lath_chat_open(rt, dir, NULL, &chat, &err), LATH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "no chat template"));
    tmp_write(
        dir, "tokenizer_config.json",
        "{\"chat_template\":[{\"name\":\"tool_use\",\"template\":\"tools {{ tools | length }}\"},{\"name\":\"default\",\"template\":"
        "\"list {{ eos_token }}\"}],\"eos_token\":{\"content\":\"<|im_end|>\"}}");
    renders(NULL, in, "list <|im_end|>");
    in.tools_json = text("[{},{}]");
    renders(NULL, in, "tools 2");
    in.tools_json = (lath_text){NULL, 0};
    tmp_write(dir, "special_tokens_map.json", "{\"eos_token\":\"not this\",\"pad_token\":\"<|endoftext|>\"}");
    tmp_write(dir, "chat_template.json", "{\"chat_template\":\"json {{ pad_token }}{{ eos_token }}{{ bos_token }}\"}");
    renders(NULL, in, "json <|endoftext|><|im_end|>");
    tmp_write(dir, "chat_template.jinja", "file\n");
    renders(NULL, in, "file");
    renders("given {{ messages[0].content }}", in, "given x");
    tmp_write(dir, "chat_template.jinja", "a\n{% include 'x' %}");
    assert_int_equal(lath_chat_open(rt, dir, NULL, &chat, &err), LATH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "chat template: line 2: the tag \"include\""));
    tmp_write(dir, "chat_template.jinja", "{{");
    assert_int_equal(lath_chat_open(rt, dir, NULL, &chat, &err), LATH_ERR_FORMAT);
    tmp_write(dir, "tokenizer_config.json", "[]");
    assert_int_equal(lath_chat_open(rt, dir, NULL, &chat, &err), LATH_ERR_FORMAT);
    tmp_write(dir, "tokenizer_config.json", "{\"eos_token\":\"<|im_end|>\"}");
    assert_int_equal(lath_chat_open(rt, "nowhere", NULL, &chat, &err), LATH_ERR_NOT_FOUND);
    assert_int_equal(lath_chat_open(NULL, dir, NULL, &chat, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_chat_create(NULL, NULL, &chat, &err), LATH_ERR_USAGE);
    lath_chat_options o = {0};
    assert_int_equal(lath_chat_open(rt, dir, &o, &chat, &err), LATH_ERR_USAGE);
    assert_null(chat);
    lath_chat_destroy(NULL);
}

static const char show[] =
    "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}{{ 'go' if add_generation_prompt }}";

static void test_messages(void **state)
{
    const lath_message pairs[] = {{"system", {"s", 1}, {0}}, {"user", {NULL, 0}, {0}}, {"assistant", {"a\0b", 3}, {0}}};
    lath_chat_input in = LATH_CHAT_INPUT_INIT;
    (void)state;
    in.messages = pairs;
    in.n_messages = 2;
    renders(show, in, "system:s;user:;go");
    in.no_generation_prompt = 1;
    renders(show, in, "system:s;user:;");
    renders("{{ messages[0] }}",
            json("[{\"role\":\"user\",\"content\":\"x\",\"tool_calls\":null,\"n\":[null,1.5,true]}]"),
            "{'role': 'user', 'content': 'x', 'n': [None, 1.5, True]}");
    renders("{{ messages[0].reasoning_content }}{{ messages[0].thinking }}",
            json("[{\"role\":\"a\",\"reasoning\":\"why\"}]"), "whywhy");
    in = json("[{\"role\":\"user\",\"content\":\"x\"}]");
    in.documents_json = text("[{\"title\":\"t\"}]");
    in.variables_json = text("{\"enable_thinking\":false,\"eos_token\":\"E\"}");
    renders("{{ documents[0].title }}{{ enable_thinking }}{{ eos_token }}{{ tools }}{{ nope is defined }}", in,
            "tFalseENoneFalse");
    in.has_date = 1;
    in.date = 86400;
    renders("{{ strftime_now('%d %b %Y') }}", in, "02 Jan 1970");
}

static void test_continued(void **state)
{
    lath_chat_input in =
        json("[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":\"The answer \"}]");
    (void)state;
    in.continue_last = 1;
    renders(show, in, "user:q;assistant:The answer ");
    renders("{% for m in messages %}{{ m.content | trim }}<|im_end|>{% endfor %}", in, "q<|im_end|>The answer");
    refuses("{{ messages[0].content }}", in, LATH_ERR_INPUT, "does not write the last message");
    in = json("[{\"role\":\"assistant\",\"content\":[{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"so\"}]}]");
    in.continue_last = 1;
    renders("{% for p in messages[0].content %}{{ p.text }}{% endfor %}.", in, "so");
    in = json("[{\"role\":\"assistant\"}]");
    in.continue_last = 1;
    refuses(show, in, LATH_ERR_INPUT, "no text that could go on");
}

static void test_refusals(void **state)
{
    const lath_message bad[] = {{"user", {"fine", 4}, {0}}, {"user", {"a\xFF", 2}, {0}}},
                       none[] = {{NULL, {"x", 1}, {0}}};
    lath_chat_input in = LATH_CHAT_INPUT_INIT;
    lath_chat_prompt p = {0};
    (void)state;
    refuses(show, in, LATH_ERR_INPUT, "without a message");
    in.messages = bad;
    in.n_messages = 2;
    refuses(show, in, LATH_ERR_INPUT, "message 1: not valid UTF-8 at byte 2");
    assert_int_equal(err.item, 1);
    in.messages = none;
    in.n_messages = 1;
    refuses(show, in, LATH_ERR_USAGE, "message 0");
    refuses(show, json("{}"), LATH_ERR_INPUT, "messages: want a JSON array");
    refuses(show, json("[{\"role\":\"user\",\n\"content\":}]"), LATH_ERR_INPUT, "messages: line 2");
    refuses(show, json("[1]"), LATH_ERR_INPUT, "message 0: want a JSON object");
    in = json("[{\"role\":\"user\",\"content\":\"x\"}]");
    in.variables_json = text("{\"messages\":[]}");
    refuses(show, in, LATH_ERR_INPUT, "\"messages\" is not free");
    in.variables_json = (lath_text){NULL, 0};
    refuses("{{ raise_exception('No ' ~ messages[0].content) }}", in, LATH_ERR_INPUT, "line 1: No x");
    refuses("\n{{ strftime_now('%Y') }}", in, LATH_ERR_INPUT, "line 2: ");
    refuses("{% if 1 %}{{ x | nothing }}{% endif %}", in, LATH_ERR_UNSUPPORTED, "the filter \"nothing\"");
    refuses("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", in, LATH_ERR_LIMIT, "recursive");
    lath_chat *chat = open_with(show);
    in.struct_size--;
    assert_int_equal(lath_chat_render(chat, &in, &p, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_chat_render(NULL, &in, &p, &err), LATH_ERR_USAGE);
    lath_chat_destroy(chat);
    lath_chat_prompt_release(NULL);
}

static void has_ids(lath_chat *chat, const char *content, const int32_t *want, size_t n)
{
    const lath_message m = {"user", text(content), {0}};
    lath_chat_input in = LATH_CHAT_INPUT_INIT;
    lath_chat_prompt p = {0};
    in.messages = &m;
    in.n_messages = 1;
    assert_ok(lath_chat_render(chat, &in, &p, &err), err);
    size_t k = 0;
    for (size_t i = 0; i < p.n; i++) {
        const char *token = lath_tokenizer_token(lath_chat_tokenizer(chat), p.ids[i]);
        /* of the test's vocabularies the special tokens; characters that a vocabulary has not are <unk> */
        if (token[0] != '<' || !token[1] || strcmp(token, "<unk>") == 0) continue;
        if (k >= n || p.ids[i] != want[k]) fail_msg("%s: special token %zu is %d", content, k, p.ids[i]);
        k++;
    }
    assert_int_equal(k, n);
    lath_chat_prompt_release(&p);
}

static void test_special_bpe(void **state)
{
    static const int32_t around[] = {300, 301}, thought[] = {300, 302, 301};
    lath_chat *chat = open_with("<|im_start|>{{ messages[0].content }}<|im_end|>");
    (void)state;
    has_ids(chat, "plain", around, 2);
    has_ids(chat, "<|im_end|>", around, 2);
    has_ids(chat, "a <|im_end|><|im_start|><|endoftext|> b", around, 2);
    has_ids(chat, "<|im_end|", around, 2);
    has_ids(chat, "<", around, 2);
    has_ids(chat, "a<think>", thought, 3);        /* an added token that is none of the special ones */
    assert_int_equal(lath_chat_end_id(chat), -1); /* the answer is not in what this template writes */
    lath_chat_destroy(chat);
    /* Half of it is the template's, half of it the writer's. */
    chat = open_with("<|im_start|><|im_{{ messages[0].content }}|><|im_end|>");
    has_ids(chat, "end", around, 2);
    lath_chat_destroy(chat);
    /* A role that is a word is the caller's. */
    chat = open_with("<|im_{{ 'start' if messages[0].role == 'user' }}|>{{ messages[0].content }}{{ eos_token }}");
    has_ids(chat, "x<|im_end|>", around, 2);
    lath_chat_destroy(chat);
    chat = open_with("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}");
    assert_int_equal(lath_chat_end_id(chat), 301);
    lath_chat_destroy(chat);
}

/* </s> is in the vocabulary of the model itself. */
static void test_special_unigram(void **state)
{
    static const int32_t around[] = {0, 2};
    char from[TMP_PATH];
    lath_chat *chat = NULL;
    lath_chat_options o = LATH_CHAT_OPTIONS_INIT;
    (void)state;
    tmp_join(from, test_data_dir(), "golden/rerank/xlm_roberta_saved");
    o.template_text = text("<s>{{ messages[0].content }}</s>");
    assert_ok(lath_chat_open(rt, from, &o, &chat, &err), err);
    has_ids(chat, "a b", around, 2);
    has_ids(chat, "a </s> b", around, 2);
    has_ids(chat, "</s><s><mask><pad><unk>", around, 2);
    lath_chat_destroy(chat);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sources),     cmocka_unit_test(test_messages),
                                       cmocka_unit_test(test_continued),   cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_special_bpe), cmocka_unit_test(test_special_unigram)};
    return cmocka_run_group_tests(tests, setup, teardown) ? 1 : 0;
}
