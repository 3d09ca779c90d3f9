/* SPDX-License-Identifier: Apache-2.0
 * test_json.c: what json_parse takes and refuses. The cases are those of RFC 8259 in the manner of JSONTestSuite
 * (y_: must be taken, n_: must be refused), and of the rules that json.h adds: duplicate keys, lone surrogates,
 * strict UTF-8, depth, size. Expected values are written by hand. */
#include <locale.h>
#include <math.h>
#include <unistd.h>

#include "base/json.h"
#include "support/test.h"
#include "support/tmpdir.h"

typedef struct text {
    const char *s;
    size_t n;
} text;
#define T(s)             \
    {                    \
        s, sizeof(s) - 1 \
    }

static arena mem;
static lath_error err;

static int setup(void **state)
{
    (void)state;
    arena_init(&mem, alloc_default());
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_deinit(&mem);
    return 0;
}

/* The text lies in a block of its own size, so that a sanitizer sees a read behind it. */
static lath_status parse_n(const char *s, size_t n, const json_options *opts, json_value **out)
{
    char *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    memcpy(copy, s, n);
    *out = NULL;
    lath_status st = json_parse(&mem, "f.json", copy, n, opts, out, &err);
    free(copy);
    assert_true((st == LATH_OK) == (*out != NULL));
    if (st != LATH_OK) assert_int_equal(err.status, st);
    return st;
}

static json_value *parse_ok(const char *s)
{
    json_value *v;
    if (parse_n(s, strlen(s), NULL, &v) != LATH_OK) fail_msg("%s: %s", s, err.msg);
    return v;
}

/* The message must hold `part`. */
static void refuse(const char *s, size_t n, lath_status want, const char *part)
{
    json_value *v;
    lath_status st = parse_n(s, n, NULL, &v);
    if (st != want) fail_msg("\"%.*s\": status %d, want %d", (int)n, s, (int)st, (int)want);
    if (!strstr(err.msg, part)) fail_msg("\"%.*s\": \"%s\", want \"%s\" in it", (int)n, s, err.msg, part);
}

static void refuse_s(const char *s, lath_status want, const char *part) { refuse(s, strlen(s), want, part); }

/* ---------------------------------------------------------------------------------------------------------- grammar */

static const text accepted[] = {
    T("[[]   ]"),
    T("[\"\"]"),
    T("[]"),
    T("[\"a\"]"),
    T("[false]"),
    T("[null, 1, \"1\", {}]"),
    T("[null]"),
    T("[1\n]"),
    T(" [1]"),
    T("[1,null,null,null,2]"),
    T("[2] "),
    T("[123e65]"),
    T("[0e+1]"),
    T("[0e1]"),
    T("[ 4]"),
    T("[-0.000000000000000000000000000000000000000000000000000000000000000000000000000001]"),
    T("[20e1]"),
    T("[-0]"),
    T("[-123]"),
    T("[-1]"),
    T("[-0]"),
    T("[1E22]"),
    T("[1E-2]"),
    T("[1E+2]"),
    T("[123e45]"),
    T("[123.456e78]"),
    T("[1e-2]"),
    T("[1e+2]"),
    T("[123]"),
    T("[123.456789]"),
    T("{\"asd\":\"sdf\", \"dfg\":\"fgh\"}"),
    T("{\"asd\":\"sdf\"}"),
    T("{}"),
    T("{\"\":0}"),
    T("{\"foo\\u0000bar\": 42}"),
    T("{ \"min\": -1.0e+28, \"max\": 1.0e+28 }"),
    T("{\"x\":[{\"id\": \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}], \"id\": \"x\"}"),
    T("{\"a\":[]}"),
    T("{\n\"a\": \"b\"\n}"),
    T("[\"\\u0060\\u012a\\u12AB\"]"),
    T("[\"\\uD801\\udc37\"]"),
    T("[\"\\ud83d\\ude39\\ud83d\\udc8d\"]"),
    T("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]"),
    T("[\"\\\\u0000\"]"),
    T("[\"\\\"\"]"),
    T("[\"a/*b*/c/*d//e\"]"),
    T("[\"\\\\a\"]"),
    T("[\"\\\\n\"]"),
    T("[\"\\u0012\"]"),
    T("[\"\\uFFFF\"]"),
    T("[ \"asd\"]"),
    T("[\"\\uDBFF\\uDFFF\"]"),
    T("[\"new\\u00A0line\"]"),
    T("[\"\xF4\x8F\xBF\xBF\"]"),
    T("[\"\xEF\xBF\xBF\"]"),
    T("[\"\\u0000\"]"),
    T("[\"\\u002c\"]"),
    T("[\"\xCF\x80\"]"),
    T("[\"\xF0\x9B\xBF\xBF\"]"),
    T("[\"asd \"]"),
    T("\" \""),
    T("[\"\\uD834\\uDd1e\"]"),
    T("[\"\xE2\x80\xA8\"]"),
    T("[\"\xE2\x80\xA9\"]"),
    T("[\"\x7F\"]"),
    T("[\"\\uFDD0\"]"),
    T("[\"\\uFFFE\"]"),
    T("false"),
    T("42"),
    T("-0.1"),
    T("null"),
    T("\"asd\""),
    T("true"),
    T("\"\""),
    T("[\"a\"]\n"),
    T(" [] "),
    T("\t\r\n {} \t\r\n"),
    T("[\"\\\\ud800\"]"),
    T("\xEF\xBB\xBF{}"),
    T("\xEF\xBB\xBF 1"),
    T("[1e9999]"),
    T("[1e-9999]"),
    T("[100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000]"),
};

static const text refused[] = {
    T(""),
    T(" "),
    T("\n\n"),
    T("\xEF\xBB\xBF"),
    T("\xEF\xBB\xBF\xEF\xBB\xBF{}"),
    T("[1 true]"),
    T("[a\xE5]"),
    T("[\"\": 1]"),
    T("[\"\"],"),
    T("[,1]"),
    T("[1,,2]"),
    T("[\"x\",,]"),
    T("[\"x\"]]"),
    T("[\"\",]"),
    T("[\"x\""),
    T("[x"),
    T("[3[4]]"),
    T("[\xFF]"),
    T("[1:2]"),
    T("[,]"),
    T("[-]"),
    T("[   , \"\"]"),
    T("[\"a\",\n4\n,1,"),
    T("[1,]"),
    T("[1,,]"),
    T("[\"\va\"\\f]"),
    T("[*]"),
    T("[\"\""),
    T("[1,"),
    T("[1,\n1\n,1"),
    T("[{}"),
    T("[fals]"),
    T("[nul]"),
    T("[tru]"),
    T("123\0"),
    T("[++1234]"),
    T("[+1]"),
    T("[+Inf]"),
    T("[-01]"),
    T("[-1.0.]"),
    T("[-2.]"),
    T("[-NaN]"),
    T("[.-1]"),
    T("[.2e-3]"),
    T("[0.1.2]"),
    T("[0.3e+]"),
    T("[0.3e]"),
    T("[0.e1]"),
    T("[0E+]"),
    T("[0E]"),
    T("[0e+]"),
    T("[0e]"),
    T("[1.0e+]"),
    T("[1.0e-]"),
    T("[1.0e]"),
    T("[1 000.0]"),
    T("[1eE2]"),
    T("[2.e+3]"),
    T("[2.e-3]"),
    T("[2.e3]"),
    T("[9.e+]"),
    T("[Inf]"),
    T("[NaN]"),
    T("[\xEF\xBC\x91]"),
    T("[1+2]"),
    T("[0x1]"),
    T("[0x42]"),
    T("[Infinity]"),
    T("[0e+-1]"),
    T("[-123.123foo]"),
    T("[123\xE5]"),
    T("[1e1\xE5]"),
    T("[0\xE5]"),
    T("[-Infinity]"),
    T("[-foo]"),
    T("[- 1]"),
    T("[-012]"),
    T("[-.123]"),
    T("[-1x]"),
    T("[1ea]"),
    T("[1.]"),
    T("[.123]"),
    T("[1.2a-3]"),
    T("[1.8011670033376514H-308]"),
    T("[012]"),
    T("[\"x\", truth]"),
    T("{[: \"x\"}"),
    T("{\"x\", null}"),
    T("{\"x\"::\"b\"}"),
    T("{\"a\":\"a\" 123}"),
    T("{key: 'value'}"),
    T("{\"a\" b}"),
    T("{:\"b\"}"),
    T("{\"a\" \"b\"}"),
    T("{\"a\":"),
    T("{\"a\""),
    T("{1:1}"),
    T("{9999E9999:1}"),
    T("{null:null,null:null}"),
    T("{\"id\":0,,,,,}"),
    T("{'a':0}"),
    T("{\"id\":0,}"),
    T("{\"a\":\"b\"}/**/"),
    T("{\"a\":\"b\"}/**//"),
    T("{\"a\":\"b\"}//"),
    T("{\"a\":\"b\"}/"),
    T("{\"a\":\"b\",,\"c\":\"d\"}"),
    T("{a: \"b\"}"),
    T("{\"a\":\"a"),
    T("{ \"foo\" : \"bar\", \"a\" }"),
    T("{\"a\":\"b\"}#"),
    T("[\"\\uD800\\u\"]"),
    T("[\"\\uD800\\u1\"]"),
    T("[\"\\uD800\\u1x\"]"),
    T("[\xC3\xA9]"),
    T("[\"\\\0\"]"),
    T("[\"\\x00\"]"),
    T("[\"\\\\\\\"]"),
    T("[\"\\\t\"]"),
    T("[\"\\\xF0\x9F\x8C\x80\"]"),
    T("[\"\\\"]"),
    T("[\"\\u00A\"]"),
    T("[\"\\uD834\\uDd\"]"),
    T("[\"\\uD800\\uD800\\x\"]"),
    T("[\"\\a\"]"),
    T("[\"\\uqqqq\"]"),
    T("[\"\\\xE5\"]"),
    T("[\\u0020\"asd\"]"),
    T("[\\n]"),
    T("\""),
    T("['single quote']"),
    T("abc"),
    T("[\"\\"),
    T("[\"a\0a\"]"),
    T("[\"new\nline\"]"),
    T("[\"\t\"]"),
    T("[\"\x1F\"]"),
    T("\"\\UA66D\""),
    T("\"\"x"),
    T("<.>"),
    T("[<null>]"),
    T("[1]x"),
    T("[1]]"),
    T("[\"asd]"),
    T("a\xC3\xA5"),
    T("[True]"),
    T("1]"),
    T("{\"x\": true,"),
    T("[][]"),
    T("]"),
    T("\xEF\xBB{}"),
    T("\xE5"),
    T("["),
    T("[\""),
    T("[,"),
    T("[{"),
    T("[\"a"),
    T("[\"a\""),
    T("{"),
    T("{]"),
    T("{,"),
    T("{["),
    T("{\"a"),
    T("{'a'"),
    T("[\"\\{[\"\\{[\"\\{[\"\\{"),
    T("*"),
    T("{\"a\":\"b\"}#{}"),
    T("[\\u000A\"\"]"),
    T("[1"),
    T("[ false, nul"),
    T("[ true, fals"),
    T("[ false, tru"),
    T("{\"asd\":\"asd\""),
    T("\xC3\xA5"),
    T("[\xE2\x81\xA0]"),
    T("[\f]"),
    T("[\v]"),
    T("[1,\v2]"),
    T("{\f}"),
    T("[]\f"),
    T("\0"),
    T("tru"),
    T("nul"),
    T("-"),
    T("1."),
    T("1e"),
    /* yajl alone takes these: a string that never ends, behind the value */
    T("{}\"abc"),
    T("1 \""),
    T("[] \"\\"),
    T("null\""),
    T("{}\n\"a\n"),
    /* UTF-16 with and without a mark */
    T("\xFF\xFE[\0\"\0\xE9\0\"\0]\0"),
    T("\0[\0\"\0\xE9\0\"\0]"),
    T("[\0]\0"),
};

static void test_accept(void **state)
{
    (void)state;
    json_value *v;
    for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
        if (parse_n(accepted[i].s, accepted[i].n, NULL, &v) != LATH_OK) fail_msg("%s: %s", accepted[i].s, err.msg);
        arena_reset(&mem);
    }
}

static void test_refuse(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        refuse(refused[i].s, refused[i].n, LATH_ERR_FORMAT, "f.json: ");
        arena_reset(&mem);
    }
}

/* A text is refused at every length but its own. */
static void test_cut(void **state)
{
    static const char whole[] = "{\"a\": [1.5e3, true, null, \"x\\u00e9\\ud83d\\ude00\"], \"b\\n\": {\"c\": false}}";
    (void)state;
    json_value *v;
    for (size_t n = 0; n < sizeof(whole) - 1; n++) assert_int_equal(parse_n(whole, n, NULL, &v), LATH_ERR_FORMAT);
    assert_int_equal(parse_n(whole, sizeof(whole) - 1, NULL, &v), LATH_OK);
}

/* ------------------------------------------------------------------------------------------------------------ UTF-8 */

static void test_bad_utf8(void **state)
{
    static const text bad[] = {
        T("\x80"),
        T("\xBF"),
        T("\xC0\x80"),
        T("\xC1\xBF"),
        T("\xC2"),
        T("\xC2\x41"),
        T("\xE0\x80\x80"),
        T("\xE0\x9F\xBF"),
        T("\xE1\x80"),
        T("\xED\xA0\x80"),
        T("\xED\xBF\xBF"),
        T("\xED\xA0\x80\xED\xB0\x80"),
        T("\xF0\x80\x80\x80"),
        T("\xF0\x8F\xBF\xBF"),
        T("\xF1\x80\x80"),
        T("\xF4\x90\x80\x80"),
        T("\xF5\x80\x80\x80"),
        T("\xF8\x88\x80\x80\x80"),
        T("\xFE"),
        T("\xFF"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char s[64];
        int n = snprintf(s, sizeof(s), "[\n\n\"ab%sc\"]", bad[i].s);
        refuse(s, (size_t)n, LATH_ERR_FORMAT, "line 3: byte 6: not valid UTF-8");
        n = snprintf(s, sizeof(s), "{\n\"%s\": 1}", bad[i].s);
        refuse(s, (size_t)n, LATH_ERR_FORMAT, "line 2: byte 3: not valid UTF-8");
    }
}

static void test_surrogates(void **state)
{
    static const char *const lone[] = {
        "\\ud800",
        "\\uDBFF",
        "\\udc00",
        "\\uDFFF",
        "\\ud800x",
        "x\\ud800",
        "\\ud800\\n",
        "\\ud800\\ud800",
        "\\udc00\\ud800",
        "\\ud800\\u0041",
        "\\ud800\\\\udc00",
        "\\ud83d\\ude00\\ude00",
        "\\ud83d\\ud83d\\ude00",
        "\\\\\\ud800",
        "\\\"\\ud800\\\"",
        "ok \\ud83d\\ude00 \\udfff",
        "\\u0000\\ud800",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(lone) / sizeof(lone[0]); i++) {
        char s[128];
        int n = snprintf(s, sizeof(s), "[1,\n\"%s\"]", lone[i]);
        refuse(s, (size_t)n, LATH_ERR_FORMAT, "line 2");
        n = snprintf(s, sizeof(s), "{\n\n\"%s\": [\"\"]}", lone[i]);
        refuse(s, (size_t)n, LATH_ERR_FORMAT, "line 3");
    }
}

static void test_strings(void **state)
{
    static const struct {
        const char *json;
        text want;
    } rows[] = {
        {"\"\"", T("")},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", T("\"\\/\b\f\n\r\t")},
        {"\"a\\u0000b\"", T("a\0b")},
        {"\"\\u0041\\u00e9\\u4E2D\\uffff\"", T("A\xC3\xA9\xE4\xB8\xAD\xEF\xBF\xBF")},
        {"\"\\ud83d\\ude00|\\uD800\\uDC00|\\uDBFF\\uDFFF\"", T("\xF0\x9F\x98\x80|\xF0\x90\x80\x80|\xF4\x8F\xBF\xBF")},
        {"\"\\\\ud800 \\\\\\\\udc00\"", T("\\ud800 \\\\udc00")},
        {"\"plain \xE4\xB8\xAD \xF0\x9F\x98\x80 \x7F\"", T("plain \xE4\xB8\xAD \xF0\x9F\x98\x80 \x7F")},
        {"\"\\u005c\\u0022\\u002F\"", T("\\\"/")},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const json_value *v = parse_ok(rows[i].json);
        assert_int_equal(v->kind, JSON_STRING);
        assert_int_equal(v->u.string.len, rows[i].want.n);
        assert_memory_equal(v->u.string.data, rows[i].want.s, rows[i].want.n + 1); /* with the 0 behind */
    }
    const json_value *v = parse_ok("{\"k\\u0000\\ud83d\\ude00\": 1}")->u.items.first;
    assert_int_equal(v->key_len, 6);
    assert_memory_equal(v->key, "k\0\xF0\x9F\x98\x80", 7);
}

/* ---------------------------------------------------------------------------------------------------------- numbers */

static const struct {
    const char *json;
    json_kind kind;
    int64_t i;
    double r;
} numbers[] = {
    {"0", JSON_INT, 0, 0},
    {"-0", JSON_INT, 0, 0},
    {"7", JSON_INT, 7, 0},
    {"-12", JSON_INT, -12, 0},
    {"9223372036854775807", JSON_INT, INT64_MAX, 0},
    {"-9223372036854775808", JSON_INT, INT64_MIN, 0},
    {"9223372036854775808", JSON_REAL, 0, 0x1p63},
    {"-9223372036854775809", JSON_REAL, 0, -0x1p63},
    {"18446744073709551616", JSON_REAL, 0, 0x1p64},
    {"99999999999999999999", JSON_REAL, 0, 1e20},
    {"1.0", JSON_REAL, 0, 1},
    {"1e3", JSON_REAL, 0, 1000},
    {"-2.5E-1", JSON_REAL, 0, -0.25},
    {"0.1", JSON_REAL, 0, 0x1.999999999999ap-4},
    {"1.7976931348623157e308", JSON_REAL, 0, 0x1.fffffffffffffp1023},
    {"4.9406564584124654e-324", JSON_REAL, 0, 0x1p-1074},
    {"2.2250738585072011e-308", JSON_REAL, 0, 0x0.fffffffffffffp-1022},
    {"1e999", JSON_REAL, 0, INFINITY},
    {"1e-999", JSON_REAL, 0, 0},
    {"1000000000000000019884624838656", JSON_REAL, 0, 1e30},
};

static void check_numbers(void)
{
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        const json_value *v = parse_ok(numbers[i].json);
        if (v->kind != numbers[i].kind) fail_msg("%s: kind %d", numbers[i].json, (int)v->kind);
        if (v->kind == JSON_INT && v->u.integer != numbers[i].i)
            fail_msg("%s: %lld", numbers[i].json, (long long)v->u.integer);
        if (v->kind == JSON_REAL && v->u.real != numbers[i].r) fail_msg("%s: %.17g", numbers[i].json, v->u.real);
    }
}

static void test_numbers(void **state)
{
    char s[400];
    (void)state;
    check_numbers();
    const json_value *v = parse_ok("-0.0");
    assert_true(v->kind == JSON_REAL && v->u.real == 0 && signbit(v->u.real));
    memset(s, '1', 200);
    refuse(s, 200, LATH_ERR_FORMAT, "a number of 200 characters");
}

/* A locale with a decimal comma, from the system or made for this test; false when neither works. */
static bool comma_locale(char *dir)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8",  "de_DE",       "fr_FR.UTF-8",
                                        "fr_FR.utf8",  "nl_NL.UTF-8", "pt_BR.UTF-8", "ru_RU.UTF-8"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (setlocale(LC_NUMERIC, names[i]) && strcmp(localeconv()->decimal_point, ",") == 0) return true;
    }
    char command[1024];
    tmp_make(dir);
    snprintf(command, sizeof(command), "localedef -i de_DE -f UTF-8 --no-archive '%s/de_DE.utf8' >%s/log 2>&1", dir,
             dir);
    if (system(command) != 0) return false;
    setenv("LOCPATH", dir, 1);
    return setlocale(LC_NUMERIC, "de_DE.utf8") && strcmp(localeconv()->decimal_point, ",") == 0;
}

static void test_locale(void **state)
{
    char dir[TMP_PATH] = "";
    (void)state;
    bool have = comma_locale(dir);
    if (have) {
        buf b;
        buf_init(&b, alloc_default(), 1000);
        check_numbers();
        json_put_f32(&b, -0.5f);
        buf_char(&b, ' ');
        json_put_f32(&b, 1.5e-30f);
        buf_char(&b, ' ');
        json_put_f64(&b, 0.1);
        assert_string_equal(buf_cstr(&b), "-0.5 1.5e-30 0.1");
        buf_deinit(&b);
    }
    setlocale(LC_NUMERIC, "C");
    if (*dir) tmp_remove(dir);
    if (!have) skip();
}

/* ----------------------------------------------------------------------------------------------------------- limits */

static void test_duplicates(void **state)
{
    (void)state;
    buf b;
    buf_init(&b, alloc_default(), 1 << 20);
    refuse_s("{\"a\":1,\n\"b\":2,\n\"a\":3}", LATH_ERR_FORMAT, "line 3: duplicate key \"a\"");
    refuse_s("[{\"x\":{\"\":1,\"\":1}}]", LATH_ERR_FORMAT, "duplicate key \"\"");
    refuse_s("{\"\\u0061\":1,\"a\":3}", LATH_ERR_FORMAT, "duplicate key \"a\"");
    parse_ok("{\"a\":{\"a\":{\"a\":1}},\"b\":[{\"a\":1},{\"a\":2}],\"A\":0}");
    parse_ok("{\"a\\u0000b\":1,\"a\\u0000c\":2,\"a\":3,\"a\\u0000\":4}");
    for (int n = 2; n <= 40; n++) { /* the key that comes twice is each of the members, the last one among them */
        for (int twice = 0; twice < n; twice++) {
            buf_clear(&b);
            buf_str(&b, "{");
            for (int i = 0; i < n; i++) buf_printf(&b, "\"k%d\":{\"k0\":%d},\n", i, i);
            size_t good = b.len - 2;
            buf_printf(&b, "\"k%d\":0}", twice);
            char line[64];
            snprintf(line, sizeof(line), "line %d: duplicate key \"k%d\"", n + 1, twice);
            refuse(b.data, b.len, LATH_ERR_FORMAT, line);
            b.data[good] = '}';
            json_value *v;
            assert_int_equal(parse_n(b.data, good + 1, NULL, &v), LATH_OK);
            assert_int_equal(v->u.items.count, n);
            arena_reset(&mem);
        }
    }
    buf_deinit(&b);
}

static void nest(buf *b, int depth, bool objects)
{
    buf_clear(b);
    for (int i = 0; i < depth; i++) buf_str(b, objects ? "{\"a\":" : "[\n");
    buf_str(b, "1");
    for (int i = 0; i < depth; i++) buf_str(b, objects ? "}" : "]");
}

static void test_depth(void **state)
{
    json_value *v;
    json_options o = {.max_depth = 5};
    buf b;
    (void)state;
    buf_init(&b, alloc_default(), 1 << 20);
    for (int objects = 0; objects < 2; objects++) {
        nest(&b, 64, objects);
        assert_int_equal(parse_n(b.data, b.len, NULL, &v), LATH_OK);
        nest(&b, 65, objects);
        refuse(b.data, b.len, LATH_ERR_FORMAT, "nested deeper than 64");
        nest(&b, 5, objects);
        assert_int_equal(parse_n(b.data, b.len, &o, &v), LATH_OK);
        nest(&b, 6, objects);
        assert_int_equal(parse_n(b.data, b.len, &o, &v), LATH_ERR_FORMAT);
        assert_non_null(strstr(err.msg, objects ? "line 1: nested deeper than 5" : "line 6: nested deeper than 5"));
        nest(&b, 50000, objects);
        refuse(b.data, b.len, LATH_ERR_FORMAT, "nested deeper than 64");
    }
    buf_deinit(&b);
}

static void test_size(void **state)
{
    json_value *v;
    json_options o = {.max_bytes = 10};
    (void)state;
    assert_int_equal(parse_n("[12345678]", 10, &o, &v), LATH_OK);
    assert_int_equal(parse_n("[123456789]", 11, &o, &v), LATH_ERR_LIMIT);
    assert_string_equal(err.msg, "f.json: 11 bytes of JSON, at most 10");
}

/* ------------------------------------------------------------------------------------------------------ tree, lines */

static void test_tree(void **state)
{
    (void)state;
    const json_value *v = parse_ok(
        "{\"n\": null,\n \"t\": true, \"f\": false,\n\n \"a\": [1, [], {}, \"s\"],\n \"o\": {\"x\": {\"y\": 2}}}");
    assert_int_equal(v->kind, JSON_OBJECT);
    assert_int_equal(v->u.items.count, 5);
    assert_null(v->key);
    assert_int_equal(json_get(v, "n")->kind, JSON_NULL);
    assert_true(json_get(v, "t")->u.boolean);
    assert_false(json_get(v, "f")->u.boolean);
    const json_value *a = json_get(v, "a");
    assert_int_equal(a->u.items.count, 4);
    assert_int_equal(a->u.items.first->u.integer, 1);
    assert_null(a->u.items.first->key);
    assert_int_equal(a->u.items.first->next->kind, JSON_ARRAY);
    assert_int_equal(a->u.items.first->next->u.items.count, 0);
    assert_null(a->u.items.first->next->u.items.first);
    assert_int_equal(a->u.items.first->next->next->kind, JSON_OBJECT);
    assert_true(json_is_string(a->u.items.first->next->next->next, "s"));
    assert_null(a->u.items.first->next->next->next->next);
    assert_int_equal(json_get(json_get(json_get(v, "o"), "x"), "y")->u.integer, 2);
    static const uint32_t lines[] = {1, 2, 2, 4, 5};
    const json_value *m = v->u.items.first;
    for (int i = 0; i < 5; i++, m = m->next) assert_int_equal(m->line, lines[i]);
    assert_null(json_get(v, "N"));
    assert_null(json_get(a, "n"));
    assert_null(json_get(NULL, "n"));
    assert_int_equal(parse_ok("\n\n5")->line, 3);
    assert_int_equal(parse_ok("\n\n\"s\"\n\n")->line, 3);
    assert_int_equal(parse_ok("\n[]\n")->line, 2);
}

static void test_error_lines(void **state)
{
    static const struct {
        const char *json, *part;
    } rows[] = {
        {"{\n\"a\": 1,\n}", "f.json: line 3: "},
        {"[1,\n2,\n3", "line 3: "},
        {"[1,\n2,\n3\n\n", "line 5: "},
        {"{\"a\":\n\n+1}", "line 3: "},
        {"\n\n\n", "line 4: "},
        {"[1]\n\n2", "line 3: "},
        {"[1]\n\n\"abc", "line 3: "},
        {"[\r\n1,\r\nx]", "line 3: "},
        {"[\"a\n\"]", "line 1: "},
        {"\xEF\xBB\xBF\n[,]", "line 2: "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        refuse_s(rows[i].json, LATH_ERR_FORMAT, rows[i].part);
        assert_null(strchr(err.msg, '\n'));
    }
    json_value *v;
    assert_int_equal(json_parse(&mem, "f", "[", 1, NULL, &v, NULL), LATH_ERR_FORMAT);
}

/* ------------------------------------------------------------------------------------------------------------- taps */

typedef struct seen {
    size_t n, stop_at;
    buf text;
} seen;

/* Writes items as "key=kind:value;" */
static lath_status see(void *ctx, const json_value *item, lath_error *e)
{
    seen *s = ctx;
    if (++s->n == s->stop_at) return err_set(e, LATH_ERR_INPUT, "stopped at %zu", s->n);
    if (item->key) buf_append(&s->text, item->key, item->key_len);
    buf_printf(&s->text, "=%d", (int)item->kind);
    if (item->kind == JSON_INT) buf_printf(&s->text, ":%lld", (long long)item->u.integer);
    if (item->kind == JSON_STRING) buf_printf(&s->text, ":%s", item->u.string.data);
    if (item->kind == JSON_ARRAY || item->kind == JSON_OBJECT) {
        buf_printf(&s->text, ":%zu(", item->u.items.count);
        for (const json_value *v = item->u.items.first; v; v = v->next)
            buf_printf(&s->text, "%s%d", v->key ? v->key : "", (int)v->kind);
        buf_str(&s->text, ")");
    }
    buf_char(&s->text, ';');
    return LATH_OK;
}

static json_value *tapped(const char *json, const char *path, seen *s, lath_status want)
{
    json_tap tap = {path, see, s};
    json_options o = {.taps = &tap, .n_taps = 1};
    json_value *v;
    buf_init(&s->text, alloc_default(), 1 << 20);
    lath_status st = parse_n(json, strlen(json), &o, &v);
    if (st != want) fail_msg("%s: status %d: %s", json, (int)st, err.msg);
    return v;
}

static void test_taps(void **state)
{
    static const struct {
        const char *json, *path, *want;
    } rows[] = {
        {"{\"m\":{\"vocab\":{\"a\":1,\"b\":\"x\"},\"z\":3}}", "m.vocab", "a=2:1;b=4:x;"},
        {"{\"m\":{\"vocab\":[5,[1,2],{\"k\":[3],\"l\":null},true]}}", "m.vocab", "=2:5;=5:2(22);=6:2(k5l0);=1;"},
        {"{\"vocab\":{\"a\":{\"b\":{\"c\":1}},\"d\":[[[]]]}}", "vocab", "a=6:1(b6);d=5:1(5);"},
        {"{\"vocab\":{}}", "vocab", ""},
        {"{\"vocab\":5}", "vocab", ""},
        {"{\"x\":{\"vocab\":{\"a\":1}}}", "vocab", ""},
        {"{\"m\":{\"m\":{\"vocab\":{\"a\":1}}}}", "m.vocab", ""},
        {"{\"m\":[{\"vocab\":{\"a\":1}}]}", "m.vocab", ""},
        {"[{\"vocab\":{\"a\":1}}]", "vocab", ""},
        {"{\"m.vocab\":{\"a\":1}}", "m.vocab", ""},
        {"{\"m\":{\"vocabulary\":{\"a\":1},\"voc\":{\"a\":1},\"vocab\\u0000\":{\"a\":1},\"\":{}}}", "m.vocab", ""},
        {"{\"vocab\\u0000 and some more characters behind it\":{\"a\":1}}", "vocab", ""},
        {"{\"m\":{\"vocab\":{\"vocab\":{\"a\":1},\"m\":2}}}", "m.vocab", "vocab=6:1(a2);m=2:2;"},
        {"{\"vocab\" :\n { \"a\\n\\u4e2d\\ud83d\\ude00\\\"\" : -1 ,\t\"b\":\"\\/\\\\\" } }", "vocab",
         "a\n\xE4\xB8\xAD\xF0\x9F\x98\x80\"=2:-1;b=4:/\\;"},
        {"{\"vocab\":[[\"a\",-0.5],[ \"b\" , 1e2 ],[],[1,2,3,4],[1,2,3,4,5],6]}", "vocab",
         "=5:2(43);=5:2(43);=5:0();=5:4(2222);=5:5(22222);=2:6;"},
        {"{\"x\":\"\\\"vocab\\\":[1]\",\"vocab\":[2,\"[\",{}]}", "vocab", "=2:2;=4:[;=6:0();"},
        {"{\"v\\u006fcab\":[2,[3]]}", "vocab", "=2:2;=5:1(2);"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        seen s = {0};
        tapped(rows[i].json, rows[i].path, &s, LATH_OK);
        assert_string_equal(buf_cstr(&s.text), rows[i].want);
        buf_deinit(&s.text);
    }
    seen s = {0};
    const json_value *v =
        tapped("{\"m\":{\"vocab\":{\"a\":1,\"b\":2}},\"after\":[1,{\"q\":2}]}", "m.vocab", &s, LATH_OK);
    const json_value *vocab = json_get(json_get(v, "m"), "vocab");
    assert_int_equal(vocab->kind, JSON_OBJECT);
    assert_int_equal(vocab->u.items.count, 0);
    assert_null(vocab->u.items.first);
    assert_int_equal(json_get(v, "after")->u.items.count, 2);
    buf_deinit(&s.text);
}

static void test_tap_errors(void **state)
{
    (void)state;
    seen s = {.stop_at = 3};
    tapped("{\"v\":[1,2,\n3,4]}", "v", &s, LATH_ERR_INPUT);
    assert_string_equal(err.msg, "stopped at 3");
    assert_int_equal(s.n, 3);
    buf_deinit(&s.text);
    s = (seen){0};
    tapped("{\"v\":{\"x\":{\"a\":1,\"a\":2}}}", "v", &s, LATH_ERR_FORMAT);
    assert_int_equal(s.n, 0);
    buf_deinit(&s.text);
    s = (seen){0};
    tapped("{\"v\":[1,\n[2,]]}", "v", &s, LATH_ERR_FORMAT);
    assert_non_null(strstr(err.msg, "line 2"));
    assert_int_equal(s.n, 1);
    buf_deinit(&s.text);
    s = (seen){0};
    tapped("{\"v\":[\"\\ud800\"]}", "v", &s, LATH_ERR_FORMAT);
    assert_int_equal(s.n, 0);
    buf_deinit(&s.text);
}

static lath_status add_up(void *ctx, const json_value *item, lath_error *e)
{
    int64_t *sums = ctx;
    (void)e;
    sums[0] += item->u.items.first->u.integer;
    sums[1] += (int64_t)item->key_len;
    return LATH_OK;
}

/* What is no JSON without a tap is none with one, whether a member is simple or not; the message has the line. */
static void test_tap_grammar(void **state)
{
    static const char *const bad[] = {
        "1 2",
        "1,",
        "1,,2",
        ",1",
        "1:2",
        "[1 2]",
        "[1,]",
        "[,1]",
        "[1",
        "\"a",
        "\"\\q\"",
        "\"\\u12\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800a\"",
        "\"a\n\"",
        "\"a\t\"",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "1e+",
        "+1",
        "0x1",
        "tru",
        "nul",
        "1\v,2",
        "1,\f2",
        "[1\v]",
        "{\"a\" 1}",
        "{\"a\":1,}",
        "{1:2}",
        "'a'",
        "1}",
        "{\"a\":1]",
        "\"a\" \"b\"",
        "\"a\",]",
        "\"\\",
        "\"a\\\"",
        "[\"a\",\"b\",]",
        "[[1],]",
        "1//",
        "[1]2",
        "1;2",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        static const char *const around[] = {"{\"v\":[%s]}",         "{\"v\":[7,\n%s]}",
                                             "{\"v\":[true,\n%s]}",  "{\"v\":[\"x\",\n%s",
                                             "{\"v\":{\"k\":\n%s}}", "{\"v\":{\"j\":1,\"k\":\n%s}}"};
        for (size_t k = 0; k < sizeof(around) / sizeof(around[0]); k++) {
            char made[128];
            json_value *v;
            snprintf(made, sizeof(made), around[k], bad[i]);
            if (parse_n(made, strlen(made), NULL, &v) == LATH_OK) continue; /* "1}" in an object */
            seen s = {0};
            tapped(made, "v", &s, LATH_ERR_FORMAT);
            assert_non_null(strstr(err.msg, ": line "));
            buf_deinit(&s.text);
        }
    }
    seen s = {0};
    tapped("{\"v\":[1,\n\"b\",\n3\n4]}", "v", &s, LATH_ERR_FORMAT);
    assert_non_null(strstr(err.msg, "line 4: byte 16: not JSON"));
    assert_int_equal(s.n, 3);
    buf_deinit(&s.text);
}

/* 200,000 members go by and leave nothing in the tree. */
static void test_tap_memory(void **state)
{
    enum { N = 200000 };
    buf b;
    int64_t sums[2] = {0, 0}, want = 0, lengths = 0;
    (void)state;
    buf_init(&b, alloc_default(), 1 << 26);
    buf_str(&b, "{\"model\":{\"vocab\":{");
    for (int i = 0; i < N; i++) {
        size_t before = b.len;
        buf_printf(&b, "%s\"token%d\":[%d,\"some text that would need memory\"]", i ? ",\n" : "", i, i);
        lengths += (int64_t)(strchr(b.data + before, ':') - (b.data + before)) - (i ? 4 : 2);
        want += i;
    }
    buf_str(&b, "}}}");
    assert_int_equal(buf_status(&b, &err), LATH_OK);
    json_tap tap = {"model.vocab", add_up, sums};
    json_options o = {.taps = &tap, .n_taps = 1};
    json_value *v;
    assert_ok(parse_n(b.data, b.len, &o, &v), err);
    assert_int_equal(sums[0], want);
    assert_int_equal(sums[1], lengths);
    assert_true(mem.total <= 64 << 10);
    buf_deinit(&b);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    static const struct CMUnitTest tests[] = {
        TEST(test_accept),      TEST(test_refuse),  TEST(test_cut),        TEST(test_bad_utf8),
        TEST(test_surrogates),  TEST(test_strings), TEST(test_numbers),    TEST(test_locale),
        TEST(test_duplicates),  TEST(test_depth),   TEST(test_size),       TEST(test_tree),
        TEST(test_error_lines), TEST(test_taps),    TEST(test_tap_errors), TEST(test_tap_memory),
        TEST(test_tap_grammar),
    };
    return TEST_RUN(tests);
}
