/* SPDX-License-Identifier: Apache-2.0
 *
 * test_think.c: models that think, through lath.h: what is known of a template, what the switch and a past thought make of a prompt, and generation that
 * follows a script: biases and a presence penalty make a tiny model write each token of a list once, in its order.
 */
#include <stdbool.h>

#include "lath/lath.h"
#include "support/test.h"
#include "support/tmpdir.h"

static lath_error err;
static lath_runtime *rt;
static lath_model *model;
static char dir[TMP_PATH];

/* Thoughts of the past stay, apart; enable_thinking. */
static const char hybrid[] =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' and m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}"
    "{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% if enable_thinking is defined and enable_thinking is false %}"
    "<think>\n\n</think>\n\n{% endif %}{% endif %}";
/* The prompt itself begins the block. */
static const char opened[] = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>\n{% endfor %}"
                             "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}";

static int setup(void **state)
{
    lath_runtime_options o = LATH_RUNTIME_OPTIONS_INIT;
    (void)state;
    o.n_threads = 1;
    tmp_join(dir, test_data_dir(), "golden/rerank/qwen3_reranker_card");
    assert_ok(lath_runtime_create(&o, &rt, &err), err);
    assert_ok(lath_model_open(rt, dir, NULL, &model, &err), err);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    lath_model_close(model);
    lath_runtime_destroy(rt);
    return 0;
}

static lath_text text(const char *s) { return (lath_text){s, strlen(s)}; }

static lath_chat *open_with(const char *path, const char *template)
{
    lath_chat *chat = NULL;
    lath_chat_options o = LATH_CHAT_OPTIONS_INIT;
    o.template_text = text(template);
    assert_ok(lath_chat_open(rt, path, &o, &chat, &err), err);
    return chat;
}

static void equals(lath_text got, const char *want)
{
    if (got.len != strlen(want) || (got.len && memcmp(got.data, want, got.len) != 0))
        fail_msg("\"%.*s\", want \"%s\"", (int)got.len, got.data ? got.data : "", want);
}

/* --------------------------------------------------------------------------------------------------------- templates */

#define ANSWERED "{% for m in messages %}{{ m.role }}:{% if m.reasoning_content %}"
static void test_known(void **state)
{
    static const struct {
        const char *template, *begin, *close;
        int32_t has_switch;
    } rows[] = {
        {hybrid, "<think>", "\n</think>\n\n", 1},
        {opened, "<think>", "</think>", 0},
        {ANSWERED "[THINK]{{ m.reasoning_content }}[/THINK]{% endif %}{{ m.content }}{% endfor %}", "[THINK]",
         "[/THINK]", 0},
        {ANSWERED
         "<|START_THINKING|>{{ m.thinking }}<|END_THINKING|> {% endif %}{{ m.content }}{% endfor %}{{ thinking }}",
         "<|START_THINKING|>", "<|END_THINKING|> ", 1},
        /* seen only where thinking is on */
        {ANSWERED "{% if thinking_mode == 'enabled' %}<seed:think> {{ m.thinking }} </seed:think>{% endif %}{% endif %}"
                  "{{ m.content }}{% endfor %}{{ thinking_mode }}",
         "<seed:think>", " </seed:think>", 1},
        /* a past thought is never written, but a block that is empty */
        {"{{ messages[0].content }}{% if not enable_thinking %}<think>\n\n</think>\n\n{% endif %}", "<think>",
         "\n</think>\n\n", 1},
        {"{{ messages[0].content }}{% if not enable_thinking %}</think>{% endif %}", "<think>", "</think>", 1},
        /* not blank between: the bare marker */
        {ANSWERED "<think>{{ m.reasoning_content }}</think><response>{% endif %}{{ m.content }}{% endfor %}", "<think>",
         "</think>", 0},
        /* a variable of that name that changes nothing is no switch; a template that refuses the probes is no error */
        {"{% if enable_thinking %}{% endif %}</think>", "<think>", "</think>", 0},
        {"{{ raise_exception('no') }}{{ enable_thinking }}</think>", "<think>", "</think>", 0},
        /* the markers are tokens of this tokenizer, and nothing else tells */
        {"{{ messages[0].content }}", "<think>", "</think>", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        lath_chat *chat = open_with(dir, rows[i].template);
        const lath_reasoning *r = lath_chat_reasoning(chat);
        assert_non_null(r);
        equals(r->begin, rows[i].begin);
        equals(r->close, rows[i].close);
        assert_int_equal(r->has_switch, rows[i].has_switch);
        lath_chat_destroy(chat);
    }
}

static void test_unknown(void **state)
{
    char other[TMP_PATH];
    lath_chat_input in = LATH_CHAT_INPUT_INIT;
    lath_chat_prompt p = {0};
    (void)state;
    tmp_join(other, test_data_dir(), "golden/decoder/llama2");
    lath_chat *chat = open_with(other, "{{ messages[0].content }}");
    assert_null(lath_chat_reasoning(chat));
    in.messages_json = text("[{\"role\":\"user\",\"content\":\"<think>\"}]");
    in.think = LATH_THINK_OFF;
    assert_ok(lath_chat_render(chat, &in, &p, &err), err);
    assert_int_equal(p.reasoning_open, 0);
    in.think = LATH_THINK_ON;
    assert_int_equal(lath_chat_render(chat, &in, &p, &err), LATH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "no switch for thinking"));
    in.think = 3;
    assert_int_equal(lath_chat_render(chat, &in, &p, &err), LATH_ERR_USAGE);
    lath_chat_prompt_release(&p);
    lath_chat_destroy(chat);
    /* a switch without markers */
    chat = open_with(other, "{{ messages[0].content }}{{ thinking }}");
    assert_non_null(lath_chat_reasoning(chat));
    equals(lath_chat_reasoning(chat)->begin, "");
    in.think = LATH_THINK_ON;
    assert_ok(lath_chat_render(chat, &in, &p, &err), err);
    assert_string_equal(p.text, "<think>True");
    assert_int_equal(p.reasoning_open, 0);
    lath_chat_prompt_release(&p);
    lath_chat_destroy(chat);
}

static void renders(const char *template, lath_chat_input in, const char *want, int32_t open)
{
    lath_chat_prompt p = {0};
    lath_chat *chat = open_with(dir, template);
    assert_ok(lath_chat_render(chat, &in, &p, &err), err);
    assert_string_equal(p.text, want);
    assert_int_equal(p.reasoning_open, open);
    lath_chat_prompt_release(&p);
    lath_chat_destroy(chat);
}

static void test_prompts(void **state)
{
    const lath_message talk[] = {
        {"user", {"q", 1}, {0}}, {"assistant", {"a", 1}, {"why\0", 4}}, {"user", {"<think>\n", 8}, {0}}};
    const lath_message bad[] = {{"user", {"q", 1}, {"\xFF", 1}}}, lost[] = {{"user", {"q", 1}, {NULL, 1}}};
    lath_chat_input in = LATH_CHAT_INPUT_INIT;
    lath_chat_prompt p = {0};
    (void)state;
    in.messages = talk;
    in.n_messages = 1;
    renders(hybrid, in, "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n", 0);
    in.think = LATH_THINK_OFF;
    renders(hybrid, in, "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n", 0);
    renders(opened, in, "<|im_start|>q<|im_end|>\n<|im_start|>assistant\n<think>\n", 1);
    in.think = LATH_THINK_ON; /* of two that say it the field counts */
    in.variables_json = text("{\"enable_thinking\":false}");
    renders(hybrid, in, "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n", 0);
    in.variables_json = (lath_text){NULL, 0};
    renders(opened, in, "<|im_start|>q<|im_end|>\n<|im_start|>assistant\n<think>\n", 1);
    /* each name of a past thought; a begin marker that people wrote opens nothing */
    in.think = LATH_THINK_AUTO;
    in.messages++;
    renders("{{ messages[0].reasoning_content == messages[0].thinking }}", in, "True", 0);
    in.messages_json = text("[{\"role\":\"user\",\"content\":\"<think>\\n\"}]");
    renders("{{ messages[0].content }}", in, "<think>\n", 0);
    renders("{{ messages[0].content }}<think> ", in, "<think>\n<think> ", 1);
    in.messages_json = (lath_text){NULL, 0};
    in.messages = talk;
    in.n_messages = 2;
    in.no_generation_prompt = 1;
    lath_chat *chat = open_with(dir, hybrid);
    assert_ok(lath_chat_render(chat, &in, &p, &err), err);
    static const char want[] =
        "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n<think>\nwhy\0\n</think>\n\na<|im_end|>\n";
    assert_int_equal(p.len, sizeof(want) - 1);
    assert_memory_equal(p.text, want, sizeof(want));
    /* an answer that goes on, in a block that it began itself, or behind one */
    in.continue_last = 1;
    in.no_generation_prompt = 0;
    in.n_messages = 0;
    in.messages_json = text("[{\"role\":\"assistant\",\"content\":\"<think>\\nso \"}]");
    assert_ok(lath_chat_render(chat, &in, &p, &err), err);
    assert_int_equal(p.reasoning_open, 1);
    in.messages_json = text("[{\"role\":\"assistant\",\"content\":\"<think>so</think> it\"}]");
    assert_ok(lath_chat_render(chat, &in, &p, &err), err);
    assert_int_equal(p.reasoning_open, 0);
    in.messages_json = (lath_text){NULL, 0};
    in.continue_last = 0;
    in.n_messages = 1;
    in.messages = bad;
    assert_int_equal(lath_chat_render(chat, &in, &p, &err), LATH_ERR_INPUT);
    in.messages = lost;
    assert_int_equal(lath_chat_render(chat, &in, &p, &err), LATH_ERR_USAGE);
    lath_chat_prompt_release(&p);
    lath_chat_destroy(chat);
}

/* -------------------------------------------------------------------------------------------------------- generation */

enum { BEGIN = 302, END = 303, TURN = 301, STEP = 10, MOST = 32 };
static const lath_reasoning think = {{"<think>", 7}, {"</think>", 8}, {"\n</think>\n\n", 11}, 0};

typedef struct seen {
    int32_t ids[64];
    size_t n;
    char thought[256], answer[256];
    size_t n_thought, n_answer;
    bool answered; /* a thought came behind the answer: wrong */
} seen;

static int see(void *ctx, const lath_generated *g)
{
    seen *s = ctx;
    if (g->id >= 0) s->ids[s->n++] = g->id;
    assert_int_equal(strlen(g->text), g->len);
    assert_int_equal(strlen(g->reasoning), g->reasoning_len);
    if (g->reasoning_len && s->n_answer) s->answered = true;
    memcpy(s->thought + s->n_thought, g->reasoning, g->reasoning_len);
    memcpy(s->answer + s->n_answer, g->text, g->len);
    s->n_thought += g->reasoning_len;
    s->n_answer += g->len;
    s->thought[s->n_thought] = s->answer[s->n_answer] = 0;
    return 0;
}

typedef struct want {
    const char *thought, *answer;
    lath_finish finish;
    size_t n_reasoning;
} want;

/* The model writes the tokens of the script (-1 ends it), as far as they are allowed and free. */
static void writes(const int32_t *script, lath_generate_options o, want w, seen *s)
{
    lath_logit_bias bias[MOST];
    lath_sample_options sample = LATH_SAMPLE_OPTIONS_INIT;
    lath_session_options so = LATH_SESSION_OPTIONS_INIT;
    lath_generate_result r = {.struct_size = sizeof(r)};
    lath_session *session;
    const int32_t prompt[] = {300, 'P'};
    size_t n = 0;
    for (; script[n] >= 0; n++) bias[n] = (lath_logit_bias){script[n], 1000.0 - STEP * (double)n};
    sample.temperature = 0;
    sample.presence_penalty = 2000; /* who came once comes last */
    sample.bias = bias;
    sample.n_bias = n;
    so.ctx = 100;
    o.sample = &sample;
    o.new_text = 1;
    if (o.max_tokens < 0) o.max_tokens = (int32_t)n;
    *s = (seen){0};
    assert_ok(lath_session_create(model, &so, &session, &err), err);
    assert_ok(lath_generate(session, prompt, 2, &o, see, s, &r, &err), err);
    lath_session_destroy(session);
    if (strcmp(s->thought, w.thought) != 0 || strcmp(s->answer, w.answer) != 0 || r.finish != w.finish ||
        r.n_reasoning != w.n_reasoning)
        fail_msg("\"%s\" | \"%s\", finish %d, %zu tokens thought; want \"%s\" | \"%s\", finish %d, %zu", s->thought,
                 s->answer, (int)r.finish, r.n_reasoning, w.thought, w.answer, (int)w.finish, w.n_reasoning);
    assert_int_equal(r.n_tokens, s->n);
    assert_false(s->answered);
}

static void test_generate(void **state)
{
    static const int32_t whole[] = {BEGIN, '\n', 'a', ' ', 'b', END, 'c', TURN, -1};
    static const int32_t from_inside[] = {'a', 'b', END, ' ', 'c', TURN, -1};
    static const int32_t answer_alone[] = {' ', 'a', BEGIN, 'b', END, TURN, -1};
    static const int32_t never_closed[] = {BEGIN, 'a', 'b', TURN, -1};
    static const int32_t in_pieces[] = {'<', 't', 'h', 'i', 'n', 'k', '>', 'a', '\n', END, 'b', TURN, -1};
    lath_generate_options o = LATH_GENERATE_OPTIONS_INIT;
    static const lath_text stops[] = {{"b", 1}};
    seen s;
    (void)state;
    writes(whole, o, (want){"", "<think>\na b</think>c", LATH_FINISH_STOP, 0}, &s); /* nobody asked */
    o.reasoning = &think;
    writes(whole, o, (want){"a b", "c", LATH_FINISH_STOP, 5}, &s);
    assert_int_equal(s.n, 7);
    writes(answer_alone, o, (want){"", " a<think>b</think>", LATH_FINISH_STOP, 0}, &s);
    writes(never_closed, o, (want){"ab", "", LATH_FINISH_STOP, 2}, &s);
    writes(in_pieces, o, (want){"a", "b", LATH_FINISH_STOP, 3}, &s);
    o.max_tokens = 4;
    writes(whole, o, (want){"a", "", LATH_FINISH_LENGTH, 3}, &s); /* blanks at the end are no thought */
    writes(in_pieces, o, (want){"", "<thi", LATH_FINISH_LENGTH, 0}, &s);
    o.max_tokens = -1;
    o.reasoning_open = 1;
    writes(from_inside, o, (want){"ab", "c", LATH_FINISH_STOP, 3}, &s);
    /* stop strings are about the answer */
    o.stop = stops;
    o.n_stop = 1;
    writes(from_inside, o, (want){"ab", "c", LATH_FINISH_STOP, 3}, &s);
    o.reasoning_open = 0;
    writes(answer_alone, o, (want){"", " a<think>", LATH_FINISH_STOP, 0}, &s);
    static const lath_reasoning unknown = {{NULL, 0}, {NULL, 0}, {NULL, 0}, 1};
    o.reasoning = &unknown;
    writes(answer_alone, o, (want){"", " a<think>", LATH_FINISH_STOP, 0}, &s);
}

/* Markers that are special tokens, whose text decoders leave out. */
static void test_special_markers(void **state)
{
    static const int32_t whole[] = {0xC3, BEGIN, 'a', 0xC4, END, 'c', TURN, -1}; /* a character that is cut, too */
    static const int32_t thought[] = {BEGIN, 'a', 0xC3, END, ' ', 'c', TURN, -1};
    lath_generate_options o = LATH_GENERATE_OPTIONS_INIT;
    char copy[TMP_PATH];
    lath_model *usual = model;
    seen s;
    size_t n;
    (void)state;
    tmp_copy(copy, dir);
    char *json = tmp_read(copy, "tokenizer.json", &n);
    for (char *at = json; (at = strstr(at, "\"special\":false")) != NULL;) memcpy(at, "\"special\":true ", 15);
    tmp_write(copy, "tokenizer.json", json);
    free(json);
    assert_ok(lath_model_open(rt, copy, NULL, &model, &err), err);
    writes(thought, o, (want){"", "a\xEF\xBF\xBD c", LATH_FINISH_STOP, 0}, &s);
    o.reasoning = &think;
    writes(thought, o, (want){"a\xEF\xBF\xBD", "c", LATH_FINISH_STOP, 3}, &s);
    writes(whole, o,
           (want){"",
                  "\xEF\xBF\xBD"
                  "a\xEF\xBF\xBD"
                  "c",
                  LATH_FINISH_STOP, 0},
           &s);
    lath_model_close(model);
    model = usual;
    tmp_remove(copy);
}

static void test_budget(void **state)
{
    static const int32_t script[] = {BEGIN, 'a', 'b', 'c', 'd', 'e', TURN, -1};
    static const int32_t inside[] = {'a', 'b', 'c', 'd', 'e', TURN, -1};
    lath_generate_options o = LATH_GENERATE_OPTIONS_INIT;
    lath_session *session = NULL;
    seen s;
    (void)state;
    o.reasoning = &think;
    o.max_tokens = 30;
    o.reasoning_budget = 2;
    writes(script, o, (want){"ab", "cde", LATH_FINISH_STOP, 4}, &s);
    static const int32_t ids[] = {BEGIN, 'a', 'b', '\n', END, '\n', '\n', 'c', 'd', 'e'};
    assert_int_equal(s.n, sizeof(ids) / sizeof(ids[0]));
    assert_memory_equal(s.ids, ids, sizeof(ids));
    o.max_tokens = 5; /* they count */
    writes(script, o, (want){"ab", "", LATH_FINISH_LENGTH, 4}, &s);
    o.max_tokens = 30;
    o.reasoning_budget = 100;
    writes(script, o, (want){"abcde", "", LATH_FINISH_STOP, 5}, &s);
    o.reasoning_budget = 0;
    writes(script, o, (want){"", "abcde", LATH_FINISH_STOP, 2}, &s);
    o.reasoning_open = 1;
    writes(inside, o, (want){"", "abcde", LATH_FINISH_STOP, 2}, &s);
    assert_int_equal(s.ids[0], '\n');
    assert_int_equal(s.ids[1], END);
    o.n_logprobs = 2; /* of forced tokens, too */
    writes(inside, o, (want){"", "abcde", LATH_FINISH_STOP, 2}, &s);
    lath_session_options so = LATH_SESSION_OPTIONS_INIT;
    so.ctx = 8;
    assert_ok(lath_session_create(model, &so, &session, &err), err);
    const int32_t prompt = 1;
    o.reasoning_budget = -2;
    assert_int_equal(lath_generate(session, &prompt, 1, &o, NULL, NULL, NULL, &err), LATH_ERR_USAGE);
    assert_non_null(strstr(err.msg, "reasoning budget: -2"));
    o.reasoning_budget = -1;
    const lath_reasoning bad = {{"<", 1}, {NULL, 0}, {NULL, 0}, 0};
    o.reasoning = &bad;
    assert_int_equal(lath_generate(session, &prompt, 1, &o, NULL, NULL, NULL, &err), LATH_ERR_USAGE);
    lath_session_destroy(session);
}

static void test_grammar(void **state)
{
    static const int32_t whole[] = {BEGIN, 'a', TURN, 'b', END, 'd', 'c', -1};
    static const int32_t open[] = {'a', 'b', END, TURN, 'd', 'c', -1};
    static const int32_t no_thought[] = {'c', BEGIN, 'd', -1};
    static const int32_t blank_first[] = {' ', BEGIN, -1};
    static const int32_t pieces[] = {'[', 'x', 'a', -1};
    static const lath_reasoning words = {{"[THINK]", 7}, {"[/THINK]", 8}, {"[/THINK] ", 9}, 0};
    lath_generate_options o = LATH_GENERATE_OPTIONS_INIT;
    lath_grammar *cd, *blank;
    seen s;
    (void)state;
    assert_ok(lath_grammar_open(rt, LATH_GRAMMAR_TEXT, "g", text("root ::= \"c\" \"d\""), &cd, &err), err);
    assert_ok(lath_grammar_open(rt, LATH_GRAMMAR_TEXT, "g", text("root ::= \" <c\""), &blank, &err), err);
    o.max_tokens = 30;
    o.grammar = cd;
    o.reasoning = &think;
    /* TURN ends no thought; what comes behind it is forced, then the grammar's. */
    writes(whole, o, (want){"ab", "cd", LATH_FINISH_STOP, 3}, &s);
    static const int32_t ids[] = {BEGIN, 'a', 'b', END, '\n', '\n', 'c', 'd'};
    assert_int_equal(s.n, sizeof(ids) / sizeof(ids[0]));
    assert_memory_equal(s.ids, ids, sizeof(ids));
    writes(no_thought, o, (want){"", "cd", LATH_FINISH_STOP, 0}, &s);
    o.reasoning_open = 1;
    writes(open, o, (want){"ab", "cd", LATH_FINISH_STOP, 3}, &s);
    o.reasoning_budget = 1;
    writes(open, o, (want){"a", "cd", LATH_FINISH_STOP, 3}, &s);
    o.reasoning_open = 0;
    o.reasoning_budget = 0;
    writes(whole, o, (want){"", "cd", LATH_FINISH_STOP, 0}, &s); /* it may not begin */
    /* markers of several tokens: the first is chosen, the rest follows */
    o.reasoning = &words;
    o.reasoning_budget = 2;
    writes(pieces, o, (want){"xa", "cd", LATH_FINISH_STOP, 10}, &s);
    /* what the grammar wants in front of the answer stays */
    o.grammar = blank;
    o.reasoning = &think;
    writes(whole, o, (want){"ab", " <c", LATH_FINISH_STOP, 4}, &s);
    writes(blank_first, o, (want){"", " <c", LATH_FINISH_STOP, 0}, &s);
    lath_grammar_close(cd);
    lath_grammar_close(blank);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known),          cmocka_unit_test(test_unknown),
                                       cmocka_unit_test(test_prompts),        cmocka_unit_test(test_generate),
                                       cmocka_unit_test(test_budget),         cmocka_unit_test(test_grammar),
                                       cmocka_unit_test(test_special_markers)};
    return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
