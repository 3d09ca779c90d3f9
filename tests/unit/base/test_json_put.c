/* SPDX-License-Identifier: Apache-2.0
 * test_json_put.c: members by name and type (json_get_*, json_load), strings and numbers as JSON text (json_put_*).
 * Shortest decimal forms are numpy's (str of a float32), everything else is what RFC 8259 and json.h say. */
#include <float.h>
#include <math.h>

#include "base/json.h"
#include "base/utf8.h"
#include "support/test.h"
#include "support/tmpdir.h"

static arena mem;
static buf out;
static lath_error err;

static int setup(void **state)
{
    (void)state;
    arena_init(&mem, alloc_default());
    buf_init(&out, alloc_default(), 1 << 24);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_deinit(&mem);
    buf_deinit(&out);
    return 0;
}

static const json_value *parse(const char *s)
{
    json_value *v;
    assert_ok(json_parse(&mem, "c.json", s, strlen(s), NULL, &v, &err), err);
    return v;
}

/* ---------------------------------------------------------------------------------------------------------- members */

static void test_get_int(void **state)
{
    int64_t n = 77;
    (void)state;
    const json_value *v = parse("{\"a\": 5, \"r\": 6.0, \"big\": 1e15, \"f\": 6.5, \"s\": \"6\", \"n\": null,\n\n"
                                "\"b\": true, \"huge\": 1e300, \"l\": [1], \"m\": 9223372036854775807}");
    assert_ok(json_get_int(v, "absent", "c.json", 0, 10, &n, &err), err);
    assert_ok(json_get_int(v, "n", "c.json", 0, 10, &n, &err), err);
    assert_int_equal(n, 77);
    assert_ok(json_get_int(v, "a", "c.json", 5, 5, &n, &err), err);
    assert_int_equal(n, 5);
    assert_ok(json_get_int(v, "r", "c.json", 0, 10, &n, &err), err);
    assert_int_equal(n, 6);
    assert_ok(json_get_int(v, "big", "c.json", 0, INT64_MAX, &n, &err), err);
    assert_true(n == 1000000000000000);
    assert_ok(json_get_int(v, "m", "c.json", 0, INT64_MAX, &n, &err), err);
    assert_true(n == INT64_MAX);
    n = 77;
    assert_int_equal(json_get_int(v, "a", "c.json", 6, 10, &n, &err), LATH_ERR_FORMAT);
    assert_string_equal(err.msg, "c.json: line 1: \"a\" is 5, want 6 to 10");
    assert_int_equal(json_get_int(v, "a", "c.json", 0, 4, &n, &err), LATH_ERR_FORMAT);
    static const char *const wrong[] = {"f", "s", "b", "huge", "l"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(json_get_int(v, wrong[i], "c.json", INT64_MIN, INT64_MAX, &n, &err), LATH_ERR_FORMAT);
        assert_non_null(strstr(err.msg, "want an integer"));
        assert_non_null(strstr(err.msg, wrong[i]));
    }
    assert_int_equal(n, 77);
    assert_int_equal(json_get_int(v, "b", "c.json", 0, 1, &n, &err), LATH_ERR_FORMAT);
    assert_string_equal(err.msg, "c.json: line 3: \"b\": want an integer");
}

static void test_get_other(void **state)
{
    double r = 0.5;
    bool b = true;
    const char *s = "default";
    (void)state;
    const json_value *v =
        parse("{\"i\": 3, \"r\": 2.25, \"s\": \"text\", \"t\": false, \"n\": null, \"z\": \"a\\u0000b\"}");
    assert_ok(json_get_real(v, "n", "c.json", &r, &err), err);
    assert_true(r == 0.5);
    assert_ok(json_get_real(v, "i", "c.json", &r, &err), err);
    assert_true(r == 3);
    assert_ok(json_get_real(v, "r", "c.json", &r, &err), err);
    assert_true(r == 2.25);
    assert_int_equal(json_get_real(v, "s", "c.json", &r, &err), LATH_ERR_FORMAT);
    assert_string_equal(err.msg, "c.json: line 1: \"s\": want a number");
    assert_ok(json_get_bool(v, "absent", "c.json", &b, &err), err);
    assert_true(b);
    assert_ok(json_get_bool(v, "t", "c.json", &b, &err), err);
    assert_false(b);
    assert_int_equal(json_get_bool(v, "i", "c.json", &b, &err), LATH_ERR_FORMAT);
    assert_ok(json_get_str(v, "n", "c.json", &s, &err), err);
    assert_string_equal(s, "default");
    assert_ok(json_get_str(v, "s", "c.json", &s, &err), err);
    assert_string_equal(s, "text");
    assert_int_equal(json_get_str(v, "i", "c.json", &s, &err), LATH_ERR_FORMAT);
    assert_int_equal(json_get_str(v, "z", "c.json", &s, &err), LATH_ERR_FORMAT);
    assert_string_equal(s, "text");
    assert_true(json_present(json_get(v, "i")));
    assert_false(json_present(json_get(v, "n")));
    assert_false(json_present(NULL));
    assert_true(json_is_string(json_get(v, "s"), "text"));
    assert_false(json_is_string(json_get(v, "s"), "tex"));
    assert_false(json_is_string(json_get(v, "z"), "a"));
    assert_false(json_is_string(json_get(v, "i"), "3"));
    assert_false(json_is_string(NULL, ""));
}

static void test_load(void **state)
{
    char dir[TMP_PATH], path[2 * TMP_PATH];
    json_value *v;
    json_options o = {.max_bytes = 8};
    (void)state;
    tmp_make(dir);
    snprintf(path, sizeof(path), "%s/x.json", dir);
    assert_int_equal(json_load(&mem, path, NULL, &v, &err), LATH_ERR_NOT_FOUND);
    assert_non_null(strstr(err.msg, "x.json"));
    tmp_write(dir, "x.json", "{\"a\": 1}");
    assert_ok(json_load(&mem, path, NULL, &v, &err), err);
    assert_int_equal(json_get(v, "a")->u.integer, 1);
    assert_ok(json_load(&mem, path, &o, &v, &err), err);
    tmp_write(dir, "x.json", "{\"a\": 1 }");
    assert_int_equal(json_load(&mem, path, &o, &v, &err), LATH_ERR_LIMIT);
    tmp_write(dir, "x.json", "");
    assert_int_equal(json_load(&mem, path, NULL, &v, &err), LATH_ERR_FORMAT);
    tmp_write(dir, "x.json", "[\n1,\n]");
    assert_int_equal(json_load(&mem, path, NULL, &v, &err), LATH_ERR_FORMAT);
    assert_non_null(strstr(err.msg, "x.json: line 3: "));
    assert_int_equal(json_load(&mem, dir, NULL, &v, &err), LATH_ERR_NOT_FOUND);
    tmp_remove(dir);
}

/* ---------------------------------------------------------------------------------------------------------- strings */

static void test_put_string(void **state)
{
    (void)state;
    json_put_string(&out, "a\"b\\c/d\b\f\n\r\t\0\x01\x1f\x7f\xC3\xA9\xF0\x9F\x98\x80", 22);
    assert_string_equal(buf_cstr(&out),
                        "\"a\\\"b\\\\c/d\\b\\f\\n\\r\\t\\u0000\\u0001\\u001f\\u007f\xC3\xA9\xF0\x9F\x98\x80\"");
    buf_clear(&out);
    json_put_string(&out, NULL, 0);
    assert_string_equal(buf_cstr(&out), "\"\"");
}

/* Every scalar value comes back from the parser. */
static void test_put_string_all(void **state)
{
    (void)state;
    for (uint32_t cp = 0; cp <= 0x10FFFF; cp += cp < 0x800 ? 1 : 37) {
        if (cp >= 0xD800 && cp <= 0xDFFF) continue;
        char s[6] = "x";
        size_t n = 1 + utf8_encode(cp, s + 1);
        s[n++] = 'y';
        buf_clear(&out);
        json_put_string(&out, s, n);
        for (size_t i = 0; i < out.len; i++) assert_true((unsigned char)out.data[i] >= 0x20 && out.data[i] != 0x7F);
        json_value *v;
        assert_ok(json_parse(&mem, "x", out.data, out.len, NULL, &v, &err), err);
        assert_int_equal(v->u.string.len, n);
        assert_memory_equal(v->u.string.data, s, n);
        arena_reset(&mem);
    }
}

/* ---------------------------------------------------------------------------------------------------------- numbers */

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    return u;
}

static float from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

static const char *f32_text(float v)
{
    buf_clear(&out);
    json_put_f32(&out, v);
    return buf_cstr(&out);
}

static void test_put_f32(void **state)
{
    static const struct {
        float v;
        const char *want;
    } rows[] = {
        {0.0f, "0"},
        {-0.0f, "-0"},
        {1.0f, "1"},
        {-1.5f, "-1.5"},
        {0.1f, "0.1"},
        {1.0f / 3, "0.33333334"},
        {2.0f / 3, "0.6666667"},
        {16777216.0f, "16777216"},
        {123456.0f, "123456"},
        {1e10f, "1e+10"},
        {FLT_MAX, "3.4028235e+38"},
        {-FLT_MAX, "-3.4028235e+38"},
        {FLT_MIN, "1.1754944e-38"},
        {1e-45f, "1.4013e-45"},
        {3.1415927f, "3.1415927"},
        {0.0001f, "0.0001"},
        {1e-5f, "1e-05"},
        {-0.100858115f, "-0.100858115"},
        {NAN, "null"},
        {INFINITY, "null"},
        {-INFINITY, "null"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) assert_string_equal(f32_text(rows[i].v), rows[i].want);
}

/* Reads back as the same bits, is a JSON number, and no form of fewer digits (6 at least) does the same. */
static void check_f32(float v)
{
    char fewer[48];
    char *end;
    const char *s = f32_text(v), *first = s + (s[0] == '-');
    if (bits_of(strtof(s, &end)) != bits_of(v) || *end) fail_msg("%a is written \"%s\"", (double)v, s);
    if (*first < '0' || *first > '9' || strspn(first, "0123456789.e+-") != strlen(first))
        fail_msg("%s is no JSON number", s);
    for (int digits = 6; digits < 9; digits++) {
        snprintf(fewer, sizeof(fewer), "%.*g", digits, (double)v);
        if (strcmp(fewer, s) == 0) return;
        if (strtof(fewer, NULL) == v) fail_msg("%s would do instead of %s", fewer, s);
    }
}

static void test_put_f32_round_trip(void **state)
{
    uint64_t x = 0x9E3779B97F4A7C15u;
    (void)state;
    for (uint32_t exponent = 0; exponent < 255; exponent++) { /* the borders of every binade */
        for (uint32_t k = 0; k < 4; k++) {
            check_f32(from_bits(exponent << 23 | k));
            check_f32(from_bits(exponent << 23 | (0x7FFFFF - k) | 0x80000000u));
        }
    }
    for (int i = 0; i < 200000; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        float v = from_bits((uint32_t)(x >> 32));
        if (isfinite(v)) check_f32(v);
    }
    for (int i = -5000; i <= 5000; i++) check_f32((float)i * 0.001f); /* what vectors look like */
}

static void test_put_f64(void **state)
{
    static const struct {
        double v;
        const char *want;
    } rows[] = {
        {0.0, "0"},
        {0.1, "0.1"},
        {1.0 / 3, "0.3333333333333333"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {5e-324, "4.94065645841247e-324"},
        {123456789, "123456789"},
        {-2.5, "-2.5"},
        {NAN, "null"},
        {-INFINITY, "null"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        buf_clear(&out);
        json_put_f64(&out, rows[i].v);
        assert_string_equal(buf_cstr(&out), rows[i].want);
    }
    uint64_t x = 1;
    for (int i = 0; i < 50000; i++) {
        double v;
        x = x * 6364136223846793005u + 1442695040888963407u;
        memcpy(&v, &x, sizeof(v));
        if (!isfinite(v)) continue;
        buf_clear(&out);
        json_put_f64(&out, v);
        assert_true(strtod(buf_cstr(&out), NULL) == v);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    static const struct CMUnitTest tests[] = {
        TEST(test_get_int),
        TEST(test_get_other),
        TEST(test_load),
        TEST(test_put_string),
        TEST(test_put_string_all),
        TEST(test_put_f32),
        TEST(test_put_f32_round_trip),
        TEST(test_put_f64),
    };
    return TEST_RUN(tests);
}
