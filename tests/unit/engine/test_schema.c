/* SPDX-License-Identifier: Apache-2.0
 * test_schema.c: JSON schemas: texts under random schemas that tools/ref/make_schema_cases.py found valid, made again; values that fit and that do
 * not, byte by byte; keywords that are refused, with their places. */
#include "support/test.h"

#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/utf8.h"
#include "engine/grammar.h"
#include "lath/lath.h"

static lath_error err;

/* ---------------------------------------------------------------------------------------------------------- made again */

enum { LONG = 60 };

typedef struct drive {
    lath_runtime *rt;
    lath_tokenizer *tok;
    int32_t n, end;
    int *weight; /* [n] */
} drive;

/* As weights() of the script. */
static int weight_of(const char *token)
{
    static const char closing[] = "\"]}n0", opening[] = " \n\t-.eE\\[{,";
    if (!token || strlen(token) != 1) return 0;
    const char *c = strchr(closing, *token), *o = strchr(opening, *token);
    return c ? 10 - (int)(c - closing) : o ? -1 - (int)(o - opening) : 0;
}

static int32_t choose(const drive *d, const uint32_t *mask, rng *r, size_t n_ids)
{
    int32_t best = -1;
    uint64_t n_allowed = 0;
    for (int32_t id = 0; id < d->n; id++) {
        if (!(mask[id / 32] >> (id % 32) & 1)) continue;
        n_allowed++;
        if (best < 0 || d->weight[id] > d->weight[best]) best = id;
    }
    assert_true(n_allowed > 0); /* never stuck */
    if (n_ids >= LONG && n_ids % 3 != 0) return best;
    uint64_t k = rng_next(r) % n_allowed;
    for (int32_t id = 0;; id++) {
        if (mask[id / 32] >> (id % 32) & 1 && k-- == 0) return id;
    }
}

static void check_text(const drive *d, const lath_grammar *g, const char *want, uint64_t seed)
{
    lath_matcher *m;
    rng r;
    int32_t ids[1024];
    size_t n = 0, len;
    char *text;
    rng_seed(&r, seed);
    assert_ok(lath_matcher_create(g, d->tok, &d->end, 1, d->n, &m, &err), err);
    while (!lath_matcher_ended(m)) {
        const uint32_t *mask;
        assert_ok(lath_matcher_mask(m, &mask, &err), err);
        const int32_t id = choose(d, mask, &r, n);
        assert_ok(lath_matcher_accept(m, id, &err), err);
        if (id != d->end) ids[n++] = id;
        assert_true(n < 1024);
    }
    assert_true(lath_matcher_complete(m));
    assert_ok(lath_decode(d->tok, ids, n, 1, &text, &len, &err), err);
    assert_string_equal(text, want);
    lath_string_release(d->tok, text);
    lath_matcher_destroy(m);
}

static void test_made_again(void **state)
{
    (void)state;
    char path[512];
    arena mem;
    buf file;
    drive d = {0};
    uint64_t line_no = 0;
    snprintf(path, sizeof(path), "%s/golden/qwen3/embedding_old", test_data_dir());
    assert_ok(lath_runtime_create(NULL, &d.rt, &err), err);
    assert_ok(lath_tokenizer_open(d.rt, path, &d.tok, &err), err);
    d.n = lath_tokenizer_size(d.tok);
    d.weight = calloc((size_t)d.n, sizeof(*d.weight));
    for (int32_t id = 0; id < d.n; id++) {
        const char *token = lath_tokenizer_token(d.tok, id);
        d.weight[id] = weight_of(token);
        if (token && strcmp(token, "<|im_end|>") == 0) d.end = id;
    }
    d.weight[d.end] = 20;
    snprintf(path, sizeof(path), "%s/unit/engine/schemas.jsonl", test_data_dir());
    arena_init(&mem, alloc_default());
    buf_init(&file, alloc_default(), 1 << 24);
    assert_ok(file_read(&file, path, 1 << 24, &err), err);
    for (const char *line = file.data, *end = line + file.len; line < end; line_no++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        json_value *c;
        const char *schema = NULL;
        uint64_t k = 0;
        lath_grammar *g;
        assert_non_null(stop);
        assert_ok(json_parse(&mem, path, line, (size_t)(stop - line), NULL, &c, &err), err);
        assert_ok(json_get_str(c, "schema", path, &schema, &err), err);
        const lath_text text = {schema, strlen(schema)};
        assert_ok(lath_grammar_open(d.rt, LATH_GRAMMAR_JSON_SCHEMA, "schema", text, &g, &err), err);
        for (const json_value *t = json_get(c, "texts")->u.items.first; t; t = t->next)
            check_text(&d, g, t->u.string.data, 100 * line_no + k++);
        assert_true(k > 0);
        lath_grammar_close(g);
        line = stop + 1;
    }
    assert_true(line_no >= 60);
    buf_deinit(&file);
    arena_deinit(&mem);
    free(d.weight);
    lath_tokenizer_close(d.tok);
    lath_runtime_destroy(d.rt);
}

/* -------------------------------------------------------------------------------------------------------------- values */

static grammar *open_schema(const char *json)
{
    grammar *g;
    assert_ok(grammar_open_schema(alloc_default(), "s", json, strlen(json), &g, &err), err);
    return g;
}

static bool fits(const grammar *g, const char *s)
{
    grammar_run r;
    uint32_t state;
    assert_ok(grammar_run_init(&r, g, alloc_default(), &err), err);
    assert_ok(grammar_run_begin(&r, &state, &err), err);
    for (; *s && state; s++) assert_ok(grammar_run_step(&r, state, g->class_of[(uint8_t)*s], &state, &err), err);
    const bool result = state != 0 && r.states[state].complete;
    grammar_run_deinit(&r);
    return result;
}

static void test_values(void **state)
{
    (void)state;
    static const struct {
        const char *schema, *good[10], *bad[12];
    } rows[] = {
        {"true",
         {"1", "-0.5e+7", "\"a\"", "null", "[1,{\"a\": []}]", "{}", "[ ]", "{\"a\":1,\n  \"b\":2\n}", "0"},
         {"", "01", "1.", ".5", "+1", "nul", "[1,]", "{\"a\"}", "{a:1}", "'a'", "[1 ,2]", "tru"}},
        {"{}", {"false", "\"\\u00e9\\n\""}, {"\"\\x\"", "\"\n\"", "\"\\ud800\"", "\"\\u12\"", " 1", "1 "}},
        {"{\"type\":\"string\"}",
         {"\"\"", "\"\xC3\xA9\\\"\"", "\"\\ud83d\\ude00\"", "\"\\uD7FF\\ue000\"", "\"\x7F\""},
         {"\"\\ude00\"", "\"\\ud83d\"", "\"\\ud83d\\u0041\"", "\"\xFF\"", "\"", "\"\x01\"", "1"}},
        {"{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}",
         {"\"ab\"", "\"a\xE4\xB8\xAD\\n\"", "\"\\ud83d\\ude00a\""},
         {"\"a\"", "\"abcd\"", "\"\""}},
        {"{\"type\":\"integer\"}", {"0", "-1", "123456789012345678"}, {"1.0", "1e3", "-", "00", "-01", "--1"}},
        {"{\"type\":\"integer\",\"minimum\":-12,\"maximum\":205}",
         {"-12", "-9", "0", "99", "199", "205"},
         {"-13", "-0", "206", "300", "1000", "-20"}},
        {"{\"type\":\"integer\",\"exclusiveMinimum\":9,\"exclusiveMaximum\":12}",
         {"10", "11"},
         {"9", "12", "1", "100"}},
        {"{\"type\":\"integer\",\"minimum\":10,\"exclusiveMinimum\":true}", {"11", "20"}, {"10", "9"}},
        {"{\"type\":\"integer\",\"minimum\":1.5,\"maximum\":3.5}", {"2", "3"}, {"1", "4"}},
        {"{\"type\":\"integer\",\"maximum\":18446744073709551615}",
         {"999999999999990000", "-5"},
         {"1000000000000000000"}},
        {"{\"type\":\"number\"}", {"0", "-0", "0.5", "1e9", "-1.25E-09"}, {"1e999", "01", "1.e5", "Infinity", "NaN"}},
        {"{\"type\":\"number\",\"minimum\":0,\"maximum\":1}",
         {"0", "1", "0.5", "0.000001"},
         {"1.0", "-0.1", "1.1", "2"}},
        {"{\"type\":\"number\",\"minimum\":-1,\"exclusiveMaximum\":1}",
         {"0", "-1", "0.999999", "-0.5"},
         {"1", "1.0", "-1.5"}},
        {"{\"type\":\"number\",\"multipleOf\":1}", {"5"}, {"5.0"}},
        {"{\"type\":[\"boolean\",\"null\"]}", {"true", "false", "null"}, {"0", "True"}},
        {"{\"enum\":[1,\"a\\\"b\",null,[1,{\"k\":false}],2.5]}",
         {"1", "\"a\\\"b\"", "null", "[1,{\"k\":false}]", "2.5"},
         {"2", "[1,{\"k\":true}]", "\"a\""}},
        {"{\"type\":\"string\",\"enum\":[1,\"a\"]}", {"\"a\""}, {"1"}},
        {"{\"const\":{\"a\":[]}}", {"{\"a\":[]}"}, {"{}"}},
        {"{\"type\":\"array\"}", {"[]", "[1]", "[\"a\",2]"}, {"[", "{}"}},
        {"{\"items\":{\"type\":\"integer\"},\"minItems\":1,\"maxItems\":3}",
         {"[1]", "[1,2]", "[1,2, 3]"},
         {"[]", "[1,2,3,4]", "[\"a\"]"}},
        {"{\"prefixItems\":[{\"const\":1},{\"const\":2}]}", {"[]", "[1]", "[1,2]"}, {"[2]", "[1,1]", "[1,2,3]"}},
        {"{\"prefixItems\":[{\"const\":1},{\"const\":2}],\"items\":{\"const\":3},\"minItems\":2,\"maxItems\":4}",
         {"[1,2]", "[1,2,3]", "[1,2,3,3]"},
         {"[1]", "[1,2,3,3,3]", "[1,2,2]"}},
        {"{\"items\":[{\"const\":1}],\"additionalItems\":false}", {"[]", "[1]"}, {"[1,1]"}},
        {"{\"items\":false}", {"[]", "[ ]"}, {"[1]"}},
        {"{\"items\":true,\"uniqueItems\":true,\"maxItems\":1}", {"[]", "[1]"}, {"[1,1]"}},
        {"{\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2},\"c\":{\"const\":3}},\"required\":[\"b\"]}",
         {"{\"b\":2}", "{\"a\":1,\"b\":2}", "{\"b\":2,\"c\":3}", "{\"a\":1,\"b\":2,\"c\":3}", "{ \"b\": 2 }"},
         {"{}", "{\"a\":1}", "{\"b\":2,\"a\":1}", "{\"b\":2,}", "{,\"b\":2}", "{\"b\":2,\"d\":4}", "{\"b\":3}"}},
        {"{\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2}}}",
         {"{}", "{\"a\":1}", "{\"b\":2}", "{\"a\":1,\"b\":2}"},
         {"{\"c\":1}", "{\"a\":1,\"a\":1}"}},
        {"{\"properties\":{\"a\":{\"const\":1}},\"minProperties\":1}", {"{\"a\":1}"}, {"{}"}},
        {"{\"properties\":{\"a\":false,\"b\":true}}", {"{}", "{\"b\":[]}"}, {"{\"a\":1}"}},
        {"{\"type\":\"object\"}", {"{}", "{\"x\":{\"y\":1}}"}, {"[]"}},
        {"{\"type\":\"object\",\"additionalProperties\":{\"const\":1},\"maxProperties\":0}", {"{}"}, {"{\"a\":1}"}},
        {"{\"required\":[\"z\"],\"type\":\"object\"}", {"{\"z\":null}", "{\"z\":1}"}, {"{}", "{\"y\":1}"}},
        {"{\"properties\":{\"ab\":{\"const\":1},\"\xC3\xA9\":{\"const\":1}},\"additionalProperties\":{\"const\":2}}",
         {"{\"ab\":1}", "{\"a\":2}", "{\"abc\":2}", "{\"ab\":1,\"\xC3\xA8\":2}", "{\"\":2,\"b\":2}",
          "{\"\xE4\xB8\xAD\":2}", "{}"},
         {"{\"ab\":2}", "{\"\xC3\xA9\":2}", "{\"\\u0061b\":2}", "{\"a\":1}", "{\"x\":2,\"ab\":1}"}},
        {"{\"anyOf\":[{\"type\":\"integer\"},{\"const\":\"x\"}]}", {"1", "\"x\""}, {"\"y\"", "null"}},
        {"{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"string\"},{\"enum\":[null,true]}]}",
         {"1", "\"x\"", "null"},
         {"false"}},
        {"{\"allOf\":[{\"type\":\"null\"}],\"description\":\"d\"}", {"null"}, {"1"}},
        {"{\"$defs\":{\"n\":{\"properties\":{\"v\":{\"const\":0},\"next\":{\"anyOf\":[{\"$ref\":\"#/$defs/n\"},{\"type\":\"null\"}]}},\"required\":[\"v\",\"next\"]}},"
         "\"$ref\":\"#/$defs/n\"}",
         {"{\"v\":0,\"next\":null}", "{\"v\":0,\"next\":{\"v\":0,\"next\":null}}"},
         {"{\"v\":0,\"next\":{}}"}},
        {"{\"items\":{\"$ref\":\"#\"}}", {"[]", "[[],[[]]]"}, {"[1]"}},
        {"{\"definitions\":{\"a/b~c%\":{\"const\":7}},\"$ref\":\"#/definitions/a~1b~0c%25\"}", {"7"}, {"8"}},
        {"{\"prefixItems\":[{\"const\":5}],\"items\":{\"$ref\":\"#/prefixItems/0\"}}", {"[5,5,5]"}, {"[5,6]"}},
        /* a branch that never ends is left out */
        {"{\"anyOf\":[{\"const\":1},{\"items\":{\"$ref\":\"#/anyOf/1\"},\"minItems\":1}]}", {"1"}, {"["}},
        {"{\"pattern\":\"^[a-c]{2}\\\\d$\"}", {"\"ab1\""}, {"\"ab\"", "\"ab12\"", "\"xb1\""}},
        {"{\"pattern\":\"b+\"}", {"\"b\"", "\"abbc\"", "\"\xC3\xA9\\nb\""}, {"\"a\"", "\"\""}},
        {"{\"pattern\":\"^a|b$\"}", {"\"ax\"", "\"xb\"", "\"b\""}, {"\"x\"", "\"bx\""}},
        {"{\"pattern\":\"^(?:[^\\\\w]|\\\\S)\\\\s?$\"}", {"\"-\"", "\"a \"", "\"!\\t\""}, {"\"ab\"", "\"\xC3\xA9\""}},
        {"{\"pattern\":\"^\\\"\\\\\\\\\\\\n.$\"}",
         {"\"\\\"\\\\\\n\\\"\"", "\"\\\"\\\\\\nx\""},
         {"\"\\\"\\\\\\n\\n\"", "\"\"\""}},
        {"{\"pattern\":\"^[\\\\u4e00-\\\\u9fff\\\\x41]+?$\"}", {"\"\xE4\xB8\xAD\x41\""}, {"\"B\"", "\"\""}},
        {"{\"pattern\":\"^$\"}", {"\"\""}, {"\"a\""}},
        {"{\"format\":\"date\"}",
         {"\"2024-02-28\"", "\"1999-12-31\""},
         {"\"2024-02-30\"", "\"2024-13-01\"", "\"2024-1-1\""}},
        {"{\"type\":\"string\",\"format\":\"date-time\"}",
         {"\"2024-02-28T23:59:59Z\"", "\"2024-04-30T00:00:00.5+01:30\""},
         {"\"2024-04-31T00:00:00Z\"", "\"2024-02-28\""}},
        {"{\"type\":\"integer\",\"format\":\"int64\"}", {"5"}, {"\"5\""}},
        {"{\"format\":\"uuid\"}", {"\"123e4567-e89b-12d3-a456-426614174000\""}, {"\"123e4567\""}},
        {"{\"x-note\":1,\"title\":\"t\",\"default\":3,\"type\":\"null\"}", {"null"}, {"3"}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        grammar *g = open_schema(rows[i].schema);
        for (size_t k = 0; k < 10 && rows[i].good[k]; k++) {
            if (!fits(g, rows[i].good[k])) fail_msg("%s: %s should fit", rows[i].schema, rows[i].good[k]);
        }
        for (size_t k = 0; k < 12 && rows[i].bad[k]; k++) {
            if (fits(g, rows[i].bad[k])) fail_msg("%s: %s should not fit", rows[i].schema, rows[i].bad[k]);
        }
        grammar_close(g);
    }
}

/* Every integer of a range, and none beside it. */
static void test_integers(void **state)
{
    (void)state;
    static const int ranges[][2] = {{0, 0},      {-1, 1},    {7, 1234},  {-1234, -7},
                                    {-99, 1000}, {100, 199}, {98, 1001}, {-1000, -1000}};
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        char schema[100], number[20];
        snprintf(schema, sizeof(schema), "{\"type\":\"integer\",\"minimum\":%d,\"maximum\":%d}", ranges[i][0],
                 ranges[i][1]);
        grammar *g = open_schema(schema);
        for (int v = -1300; v <= 1300; v++) {
            snprintf(number, sizeof(number), "%d", v);
            if (fits(g, number) != (v >= ranges[i][0] && v <= ranges[i][1])) fail_msg("%s: %d", schema, v);
        }
        grammar_close(g);
    }
}

/* ------------------------------------------------------------------------------------------------------------- refused */

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *schema, *msg;
        lath_status st;
    } rows[] = {
        {"{", "s: line 1: ", LATH_ERR_INPUT},
        {"[]", "s: line 1: #: want a schema: an object, true or false", LATH_ERR_INPUT},
        {"false", "s: no text can ever fit", LATH_ERR_INPUT},
        {"{\"not\":{}}", "s: line 1: #: \"not\" cannot be enforced", LATH_ERR_UNSUPPORTED},
        {"{\"properties\":{\n\"a\":{\n\"if\":{}}}}", "s: line 3: #/properties/a: \"if\" cannot be enforced",
         LATH_ERR_UNSUPPORTED},
        {"{\"patternProperties\":{}}", "\"patternProperties\" cannot be enforced", LATH_ERR_UNSUPPORTED},
        {"{\"colour\":1}", "s: line 1: #: \"colour\" is a keyword that is not known", LATH_ERR_UNSUPPORTED},
        {"{\"type\":\"int\"}", "#: \"type\": no such type", LATH_ERR_INPUT},
        {"{\"type\":[]}", "#: \"type\": no such type", LATH_ERR_INPUT},
        {"{\"anyOf\":[{},{\"items\":{\"contains\":1}}]}", "#/anyOf/1/items: \"contains\" cannot be enforced",
         LATH_ERR_UNSUPPORTED},
        {"{\"anyOf\":[]}", "\"anyOf\": want a list that is not empty", LATH_ERR_INPUT},
        {"{\"anyOf\":[{}],\"minLength\":1}", "#: \"minLength\" beside \"anyOf\" cannot be enforced",
         LATH_ERR_UNSUPPORTED},
        {"{\"$ref\":\"#/$defs/a\",\"pattern\":\"x\",\"$defs\":{\"a\":{}}}",
         "\"pattern\" beside \"$ref\" cannot be enforced", LATH_ERR_UNSUPPORTED},
        {"{\"enum\":[1],\"minimum\":0}", "\"minimum\" beside \"enum\" cannot be enforced", LATH_ERR_UNSUPPORTED},
        {"{\"enum\":[]}", "\"enum\": want a list that is not empty", LATH_ERR_INPUT},
        {"{\"enum\":[1],\"type\":\"string\"}", "\"enum\": no value is of the type", LATH_ERR_INPUT},
        {"{\"allOf\":[{},{}]}", "\"allOf\" of more than one schema cannot be enforced", LATH_ERR_UNSUPPORTED},
        {"{\"oneOf\":[{\"type\":\"number\"},{\"type\":\"integer\"}]}", "\"oneOf\": a value may fit both 0 and 1",
         LATH_ERR_UNSUPPORTED},
        {"{\"oneOf\":[{\"const\":1},{\"const\":2},{\"enum\":[3,1.0]}]}", "\"oneOf\": a value may fit both 0 and 2",
         LATH_ERR_UNSUPPORTED},
        {"{\"oneOf\":[{\"properties\":{\"k\":{\"const\":1}}},{\"properties\":{\"k\":{\"const\":2}}}]}",
         "may fit both 0 and 1", LATH_ERR_UNSUPPORTED},
        {"{\"$ref\":\"http://x/y\"}", "\"$ref\": \"http://x/y\" is not a place in this schema (#/...)",
         LATH_ERR_UNSUPPORTED},
        {"{\"$ref\":\"#/$defs/b\"}", "\"$ref\": there is no \"#/$defs/b\"", LATH_ERR_INPUT},
        {"{\"$ref\":\"#\"}", "no text can ever fit", LATH_ERR_INPUT},
        {"{\"anyOf\":[{\"$ref\":\"#\"},{}]}", "rule \"#\" comes back to itself before anything is read",
         LATH_ERR_INPUT},
        {"{\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"a\"]}",
         "no text can ever fit: every way goes on without end", LATH_ERR_INPUT},
        {"{\"items\":{\"$id\":\"x\"}}", "#/items: \"$id\" cannot be followed inside a schema", LATH_ERR_UNSUPPORTED},
        {"{\"required\":[\"a\"],\"additionalProperties\":false}",
         "\"required\": \"a\" is no property, and no others may come", LATH_ERR_INPUT},
        {"{\"properties\":[]}", "\"properties\": want an object", LATH_ERR_INPUT},
        {"{\"required\":\"a\"}", "\"required\": want a list of names", LATH_ERR_INPUT},
        {"{\"minProperties\":2,\"properties\":{\"a\":{},\"b\":{},\"c\":{}}}",
         "\"minProperties\" over 1 and over the required ones", LATH_ERR_UNSUPPORTED},
        {"{\"maxProperties\":1,\"properties\":{\"a\":{},\"b\":{}}}", "\"maxProperties\" below what may come",
         LATH_ERR_UNSUPPORTED},
        {"{\"uniqueItems\":true}", "\"uniqueItems\" cannot be enforced", LATH_ERR_UNSUPPORTED},
        {"{\"minItems\":3,\"maxItems\":2}", "\"maxItems\" is less than \"minItems\"", LATH_ERR_INPUT},
        {"{\"minItems\":-1}", "\"minItems\": want a whole number, 0 or more", LATH_ERR_INPUT},
        {"{\"minItems\":2,\"prefixItems\":[{}],\"items\":false}",
         "\"minItems\" is 2, but no more than 1 items may come", LATH_ERR_INPUT},
        {"{\"minLength\":3,\"maxLength\":2}", "\"maxLength\" is less than \"minLength\"", LATH_ERR_INPUT},
        {"{\"minLength\":1.5}", "\"minLength\": want a whole number, 0 or more", LATH_ERR_INPUT},
        {"{\"pattern\":\"a\",\"maxLength\":2}", "\"maxLength\" beside \"pattern\" or \"format\" cannot be enforced",
         LATH_ERR_UNSUPPORTED},
        {"{\"pattern\":\"(?=a)\"}", "\"pattern\": a group (?...) that looks around", LATH_ERR_UNSUPPORTED},
        {"{\"pattern\":\"(a)\\\\1\"}", "\"pattern\": an escape of this kind", LATH_ERR_UNSUPPORTED},
        {"{\"pattern\":\"\\\\bx\"}", "\"pattern\": an escape of this kind", LATH_ERR_UNSUPPORTED},
        {"{\"pattern\":\"a^b\"}", "\"pattern\": '^' and '$' but first and last", LATH_ERR_UNSUPPORTED},
        {"{\"pattern\":\"(a\"}", "\"pattern\": a group is not closed", LATH_ERR_INPUT},
        {"{\"pattern\":\"a)\"}", "\"pattern\": ')' without '('", LATH_ERR_INPUT},
        {"{\"pattern\":\"[a\"}", "\"pattern\": a class is not closed", LATH_ERR_INPUT},
        {"{\"pattern\":\"*a\"}", "\"pattern\": nothing to repeat", LATH_ERR_INPUT},
        {"{\"pattern\":\"a{2,1}\"}", "\"pattern\": want {m}, {m,} or {m,n}", LATH_ERR_INPUT},
        {"{\"pattern\":\"a++\"}", "\"pattern\": a possessive repetition", LATH_ERR_UNSUPPORTED},
        {"{\"pattern\":1}", "\"pattern\": want a string", LATH_ERR_INPUT},
        {"{\"type\":\"string\",\"format\":\"regex\"}", "\"format\": \"regex\" cannot be enforced",
         LATH_ERR_UNSUPPORTED},
        {"{\"multipleOf\":0.5}", "\"multipleOf\" cannot be enforced", LATH_ERR_UNSUPPORTED},
        {"{\"type\":\"integer\",\"minimum\":5,\"maximum\":4}",
         "no whole number of up to 18 digits lies between the bounds", LATH_ERR_INPUT},
        {"{\"type\":\"number\",\"minimum\":0.2,\"maximum\":0.8}", "this cannot be enforced", LATH_ERR_UNSUPPORTED},
        {"{\"minimum\":\"1\"}", "\"minimum\": want a number", LATH_ERR_INPUT},
        {"{\"enum\":[1e300]}", "a number of this size cannot be given exactly", LATH_ERR_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        grammar *g;
        const lath_status st =
            grammar_open_schema(alloc_default(), "s", rows[i].schema, strlen(rows[i].schema), &g, &err);
        assert_null(g);
        if (st != rows[i].st || err.status != st || !strstr(err.msg, rows[i].msg))
            fail_msg("%s: status %d: \"%s\"", rows[i].schema, (int)st, err.msg);
    }
}

/* A chain of references and a deep one are no danger to the stack. */
static void test_long(void **state)
{
    (void)state;
    enum { LINKS = 20000 };
    char *text = malloc(LINKS * 64 + 1000);
    grammar *g;
    size_t n = (size_t)sprintf(text, "{\"$ref\":\"#/$defs/d0\",\"$defs\":{");
    for (int i = 0; i < LINKS; i++)
        n += (size_t)sprintf(text + n, "\"d%d\":{\"items\":{\"$ref\":\"#/$defs/d%d\"}},", i, i + 1);
    n += (size_t)sprintf(text + n, "\"d%d\":{\"type\":\"null\"}}}", LINKS);
    assert_ok(grammar_open_schema(alloc_default(), "s", text, n, &g, &err), err);
    assert_true(fits(g, "[[[]]]"));
    grammar_close(g);
    n = 0;
    for (int i = 0; i < 300; i++) n += (size_t)sprintf(text + n, "{\"items\":");
    assert_int_equal(grammar_open_schema(alloc_default(), "s", text, n, &g, &err), LATH_ERR_INPUT);
    free(text);
}

/* ---------------------------------------------------------------------------------------------------------- tokenizers */

/* The bytes of tokens, one behind the other, are what the decoder gives, but for a space at the beginning. */
static void check_bytes(const char *name)
{
    char path[512], bytes[4096];
    tok *t;
    tok_bytes x;
    rng r;
    buf text;
    int compared = 0;
    snprintf(path, sizeof(path), "%s/golden/%s", test_data_dir(), name);
    assert_ok(tok_open_dir(alloc_default(), path, &t, &err), err);
    assert_ok(tok_get_bytes(t, &x, &err), err);
    assert_int_equal(x.n, tok_size(t));
    buf_init(&text, alloc_default(), 1 << 20);
    rng_seed(&r, 3);
    for (int round = 0; round < 2000; round++) {
        int32_t ids[6];
        size_t n = 0, len = 0;
        while (n < (size_t)(1 + round % 6)) {
            const int32_t id = (int32_t)(rng_next(&r) % x.n);
            if (!x.plain[id]) continue;
            ids[n++] = id;
            memcpy(bytes + len, x.bytes + x.at[id], x.at[id + 1] - x.at[id]);
            len += x.at[id + 1] - x.at[id];
        }
        if (utf8_first_invalid(bytes, len) < len) continue;
        buf_clear(&text);
        assert_ok(tok_decode(t, ids, n, true, &text, &err), err);
        const size_t skip = len - text.len;
        assert_true(skip == 0 || (skip == 1 && bytes[0] == ' '));
        assert_memory_equal(bytes + skip, text.data, text.len);
        compared++;
    }
    assert_true(compared > 50);
    buf_deinit(&text);
    tok_close(t);
}

static void test_token_bytes(void **state)
{
    (void)state;
    check_bytes("qwen3/embedding_old");
    check_bytes("gemma3_text/embedding_old");
    check_bytes("mistral/last_window");
}

static void test_api(void **state)
{
    (void)state;
    char path[512];
    lath_runtime *rt;
    lath_tokenizer *wordpiece;
    lath_grammar *g;
    lath_matcher *m;
    const uint32_t *mask;
    const lath_text good = {"root ::= \"a\"", 12};
    assert_ok(lath_runtime_create(NULL, &rt, &err), err);
    assert_int_equal(lath_grammar_open(NULL, LATH_GRAMMAR_TEXT, "g", good, &g, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_grammar_open(rt, (lath_grammar_kind)2, "g", good, &g, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_grammar_open(rt, LATH_GRAMMAR_TEXT, NULL, good, &g, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_grammar_open(rt, LATH_GRAMMAR_TEXT, "g", (lath_text){NULL, 3}, &g, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_grammar_open(rt, LATH_GRAMMAR_TEXT, "g", (lath_text){NULL, 0}, &g, &err), LATH_ERR_INPUT);
    assert_null(g);
    assert_ok(lath_grammar_open(rt, LATH_GRAMMAR_TEXT, "g", good, &g, &err), err);
    snprintf(path, sizeof(path), "%s/golden/tok/uncased", test_data_dir());
    assert_ok(lath_tokenizer_open(rt, path, &wordpiece, &err), err);
    assert_int_equal(lath_matcher_create(g, NULL, NULL, 0, 10, &m, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_matcher_create(g, wordpiece, NULL, 1, 10, &m, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_matcher_create(g, wordpiece, NULL, 0, 10, &m, &err), LATH_ERR_UNSUPPORTED);
    assert_null(m);
    assert_int_equal(lath_matcher_mask(NULL, &mask, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_matcher_accept(NULL, 0, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_matcher_reset(NULL, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_matcher_complete(NULL) + lath_matcher_ended(NULL), 0);
    lath_matcher_destroy(NULL);
    lath_grammar_close(NULL);
    lath_grammar_close(g);
    lath_tokenizer_close(wordpiece);
    lath_runtime_destroy(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_integers),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_long),   cmocka_unit_test(test_made_again), cmocka_unit_test(test_token_bytes),
        cmocka_unit_test(test_api),
    };
    return TEST_RUN(tests);
}
