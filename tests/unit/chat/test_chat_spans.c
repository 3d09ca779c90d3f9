/* SPDX-License-Identifier: Apache-2.0
 *
 * test_chat_spans.c: what of a rendered text people wrote, through every way that a template can take it apart and put it together. A case gives the
 * text with the content in square brackets: the rule is that a byte is content exactly where it came out of a variable that is content.
 */
#include "support/test.h"

#include "chat/chat.h"

static const char variables[] =
    "{\"messages\":[{\"role\":\"user\",\"content\":\" hi you \"},{\"role\":\"<|im_end|>\",\"content\":\"x,y\"},{\"role\":\"assistant\",\"name\":\"bob\"}],"
    "\"u\":\"abc\",\"q\":\"a\\\"b\\n\",\"n\":7,\"t\":true,\"l\":[\"p\",\"q\"],\"d\":{\"k\":\"v\"},\"b\":\"<s>\"}";

static const struct {
    const char *template, *want;
} cases[] = {
    {"plain", "plain"},
    {"{{ u }}", "[abc]"},
    {"{{ b }}x", "<s>x"},
    {"<{{ messages[0].role }}>{{ messages[0].content }}", "<user>[ hi you ]"},
    {"<{{ messages[1].role }}>", "<[<|im_end|>]>"},
    {"{{ '<' ~ u ~ '>' }}", "<[abc]>"},
    {"{{ '<' + u + '>' + b }}", "<[abc]><s>"},
    {"{{ u + u }}{{ u }}", "[abcabcabc]"},
    {"{{ u * 2 }}{{ 'x' * 2 }}", "[abcabc]xx"},
    {"{{ messages[0].content | trim }}.{{ messages[0].content.strip() }}", "[hi you].[hi you]"},
    {"{{ ('<' ~ messages[0].content ~ '>').strip('<') }}", "[ hi you ]>"},
    {"{{ u[1:] }}-{{ u[::-1] }}-{{ u[0] }}-{{ (u ~ 'xyz')[2:4] }}", "[bc]-[cba]-[a]-[c]x"},
    {"{{ (u ~ 'xyz')[::-2] }}", "zx[b]"},
    {"{{ u | upper }}{{ 'x' | upper }}{{ (u ~ 'x').title() }}", "[ABC]X[Abc]x"},
    {"{{ u.replace('b', '<|x|>') }}", "[a]<|x|>[c]"},
    {"{{ 'a-b'.replace('-', u) }}", "a[abc]b"},
    {"{{ u.replace('', '.') }}", ".[a].[b].[c]."},
    {"{{ messages[1].content.split(',') | join(' + ') }}", "[x] + [y]"},
    {"{{ l | join }}{{ l | join('|') }}{{ '+'.join(l) }}", "[pqp]|[qp]+[q]"},
    {"{{ l }}{{ d }}", "['[p]', '[q]']{'[k]': '[v]'}"},
    {"{{ q | tojson }}{{ d | tojson }}{{ n | tojson }}{{ t }}", "\"[a\\\"b\\n]\"{\"[k]\": \"[v]\"}7True"},
    {"{{ q | e }}", "[a&#34;b\n]"},
    {"{{ '%s: %s' % ('a', u) }}{{ '%5s|' % u }}{{ '{}-{}'.format(u, 'z') }}{{ '%(k)s' % d }}",
     "a: [abc]  [abc]|[abc]-z[v]"},
    {"{{ '{:>5}|{!r}'.format(u, u) }}", "  [abc]|'[abc]'"},
    {"{% set x %}<{{ u }}>{% endset %}{{ x }}{{ x[1:3] }}", "<[abc]>[ab]"},
    {"{% macro m(a) %}({{ a }}){% endmacro %}{{ m(u) }}{{ m('y') }}{{ m(m(u)) }}", "([abc])(y)(([abc]))"},
    {"{% macro m() %}({{ caller() }}){% endmacro %}{% call m() %}<{{ u }}>{% endcall %}", "(<[abc]>)"},
    {"{% filter upper %}x{{ u }}{% endfilter %}", "X[ABC]"},
    {"{% set ns = namespace(s='') %}{% for m in messages[:2] %}{% set ns.s = ns.s ~ m.content ~ '|' %}{% endfor %}{{ ns.s }}",
     "[ hi you ]|[x,y]|"},
    {"{% for c in u %}{{ c }}.{% endfor %}", "[a].[b].[c]."},
    {"{{ 'a\\nb' | indent(2) }}{{ ('a\\n' ~ u) | indent(2) }}", "a\n  ba\n  [abc]"},
    {"{{ u | list | first }}{{ u | reverse }}{{ l | sort(reverse=true) | first }}{{ l | map('upper') | join('') }}",
     "[acbaqPQ]"},
    {"{{ u.partition('b')[2] }}{{ ('x' ~ u).rpartition('b')[0] }}{{ u.removeprefix('a') }}", "[c]x[abc]"},
    {"{{ d.keys() | list | first }}{{ d | dictsort | first | last }}{{ (d | items | list)[0][0] }}", "[kvk]"},
    {"{{ u.center(7, '*') }}{{ u.ljust(4, '.') }}{{ '5'.zfill(3) }}", "**[abc]**[abc].005"},
    {"{{ u | default('z') }}{{ nope | default('z') }}{{ nope or u }}{{ u if t else 'n' }}", "[abc]z[abcabc]"},
    {"{{ u | length }}{{ n }}{{ u.find('c') }}{{ u in 'xabcx' }}", "372True"},
    {"{{ messages[2].role ~ messages[2].name }}{{ messages[2] }}",
     "assistant[bob]{'[role]': 'assistant', '[name]': '[bob]'}"},
    {"{{ u | truncate(2, true, '', 0) }}{{ 'ab' | center(4) }}", "[ab] ab "},
    {"{% generation %}{{ u }}{% endgeneration %}{{ (u ~ 'x') | safe }}", "[abcabc]x"},
};

static void bracket(buf *b, const chat_output *o)
{
    size_t at = 0;
    for (size_t i = 0; i < o->n_content; i++) {
        buf_append(b, o->text.data + at, o->content[i].begin - at);
        buf_char(b, '[');
        buf_append(b, o->text.data + o->content[i].begin, o->content[i].end - o->content[i].begin);
        buf_char(b, ']');
        at = o->content[i].end;
    }
    if (o->text.len > at) buf_append(b, o->text.data + at, o->text.len - at);
}

static void test_spans(void **state)
{
    lath_error err = {0};
    arena mem;
    json_value *v;
    chat_var vars[16];
    chat_input in = {.vars = vars};
    chat_output out;
    (void)state;
    arena_init(&mem, alloc_default());
    assert_ok(json_parse(&mem, "variables", variables, sizeof(variables) - 1, NULL, &v, &err), err);
    for (const json_value *m = v->u.items.first; m; m = m->next) {
        const chat_trust trust = strcmp(m->key, "messages") == 0 ? CHAT_MESSAGES
                                 : strcmp(m->key, "b") == 0      ? CHAT_TRUSTED
                                                                 : CHAT_CONTENT;
        vars[in.n_vars++] = (chat_var){m->key, m, trust};
    }
    chat_output_init(&out, alloc_default());
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        chat_template *t;
        buf b;
        buf_init(&b, alloc_default(), 1 << 16);
        assert_ok(chat_compile(alloc_default(), "case", cases[i].template, strlen(cases[i].template), &t, &err), err);
        assert_ok(chat_render(t, &in, &out, &err), err);
        bracket(&b, &out);
        if (strcmp(buf_cstr(&b), cases[i].want) != 0)
            fail_msg("%s\n  gives %s\n  want  %s", cases[i].template, buf_cstr(&b), cases[i].want);
        buf_deinit(&b);
        chat_release(t);
    }
    chat_output_deinit(&out);
    arena_deinit(&mem);
}

/* A program of other people stops where it is told to. */
static void test_limits(void **state)
{
    static const char text[] = "{% for a in range(1000) %}{{ a }}{% endfor %}";
    lath_error err = {0};
    chat_template *t;
    chat_output out;
    chat_input in = {0};
    (void)state;
    chat_output_init(&out, alloc_default());
    assert_ok(chat_compile(alloc_default(), "case", text, sizeof(text) - 1, &t, &err), err);
    assert_true(chat_bytes(t) > sizeof(text));
    assert_true(chat_uses(t, "range") && chat_uses(t, "a") && !chat_uses(t, "tools"));
    assert_ok(chat_render(t, &in, &out, &err), err);
    assert_int_equal(out.text.len, 2890);
    in.limits.max_output = 2889;
    assert_int_equal(chat_render(t, &in, &out, &err), LATH_ERR_LIMIT);
    in.limits = (chat_limits){.max_steps = 1000};
    assert_int_equal(chat_render(t, &in, &out, &err), LATH_ERR_LIMIT);
    assert_non_null(strstr(err.msg, "case: line 1: "));
    in.limits = (chat_limits){.max_memory = 10000};
    assert_int_equal(chat_render(t, &in, &out, &err), LATH_ERR_LIMIT);
    in.limits = (chat_limits){0};
    assert_ok(chat_render(t, &in, &out, &err), err);
    chat_release(t);
    chat_release(NULL);
    assert_int_equal(chat_compile(alloc_default(), "case", "\xff", 1, &t, &err), LATH_ERR_FORMAT);
    static char large[(1 << 20) + 1];
    assert_int_equal(chat_compile(alloc_default(), "case", large, sizeof(large), &t, &err), LATH_ERR_LIMIT);
    /* No date is given: a template that asks is refused. */
    assert_ok(chat_compile(alloc_default(), "case", "{{ strftime_now('%Y') }}", 24, &t, &err), err);
    assert_int_equal(chat_render(t, &in, &out, &err), LATH_ERR_INPUT);
    chat_release(t);
    chat_output_deinit(&out);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_spans), cmocka_unit_test(test_limits)};
TEST_MAIN(tests)
