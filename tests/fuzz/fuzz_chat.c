/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_chat.c: any bytes as a chat template, rendered over a fixed conversation with small limits. An error names the template and a line; what is
 * rendered is valid UTF-8, its content spans are in order and hold no byte that only the template has; and it is the same the second time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "chat/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* U+E000 stands in no text that people write here. */
static const char conversation[] =
    "{\"messages\":[{\"role\":\"system\",\"content\":\"Be  <kind>\\n\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"ABC\"}]},"
    "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"x\":1,\"y\":[null,true,2.5,\"z\"]}}}]},"
    "{\"role\":\"tool\",\"content\":\"\\u00df \\u4e16 \\ud83d\\ude00\"},{\"role\":\"user\",\"content\":\" a,b c \"}],"
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"integer\"}}}}}],"
    "\"documents\":null,\"add_generation_prompt\":true,\"bos_token\":\"<s>\",\"eos_token\":\"</s>\",\"x\":3,\"l\":[3,1,2],\"d\":{\"a\":1,\"b\":{\"c\":2}}}";

static void require(int holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "broken promise: %s\n", what);
    abort();
}

static void check_output(const chat_output *o)
{
    size_t at = 0;
    require(utf8_first_invalid(o->text.data ? o->text.data : "", o->text.len) == o->text.len, "valid UTF-8");
    for (size_t i = 0; i < o->n_content; i++) {
        const chat_span s = o->content[i];
        require(s.begin < s.end && s.end <= o->text.len && (i == 0 || s.begin > at),
                "spans in order that do not touch");
        require(!memmem(o->text.data + s.begin, s.end - s.begin, "\xEE\x80\x80", 3),
                "nothing of the template in the content");
        at = s.end;
    }
}

static bool names_a_line(const lath_error *err) { return strncmp(err->msg, "fuzz: ", 6) == 0; }

static void render(const chat_template *t, const json_value *v)
{
    chat_var vars[16];
    chat_input in = {.vars = vars,
                     .has_date = true,
                     .date = 1756684805,
                     .limits = {.max_steps = 20000, .max_output = 1 << 20, .max_memory = 8 << 20}};
    chat_output out, again;
    lath_error err = {0};
    for (const json_value *m = v->u.items.first; m; m = m->next)
        vars[in.n_vars++] = (chat_var){m->key, m, strcmp(m->key, "messages") == 0 ? CHAT_MESSAGES : CHAT_CONTENT};
    chat_output_init(&out, alloc_default());
    chat_output_init(&again, alloc_default());
    const lath_status st = chat_render(t, &in, &out, &err);
    require(st == err.status || st == LATH_OK, "the status is the error's");
    require(st == LATH_OK || names_a_line(&err), "an error that names the template");
    require(chat_render(t, &in, &again, NULL) == st, "the same status again");
    if (st == LATH_OK) {
        check_output(&out);
        require(out.text.len == again.text.len && out.n_content == again.n_content &&
                    (out.text.len == 0 || memcmp(out.text.data, again.text.data, out.text.len) == 0),
                "the same text again");
    }
    chat_output_deinit(&out);
    chat_output_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena a;
    json_value *v;
    chat_template *t;
    lath_error err = {0};
    const lath_status st = chat_compile(alloc_default(), "fuzz", (const char *)data, size, &t, &err);
    if (st != LATH_OK) {
        require(err.status == st && names_a_line(&err), "an error that names the template");
        return 0;
    }
    arena_init(&a, alloc_default());
    require(json_parse(&a, "conversation", conversation, sizeof(conversation) - 1, NULL, &v, &err) == LATH_OK, "JSON");
    render(t, v);
    arena_deinit(&a);
    chat_release(t);
    return 0;
}
