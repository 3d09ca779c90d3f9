/* SPDX-License-Identifier: Apache-2.0
 * test_stop.c: stop strings in every cut of a text, against a search of the whole text; stop ids; what is refused. */
#include "support/test.h"

#include "base/utf8.h"
#include "engine/stop.h"

static lath_error err;

static lath_text text_of(const char *s) { return (lath_text){s, strlen(s)}; }

/* The end of the text [0, n) that is a beginning of a stop string, the longest. */
static size_t open_end(const char *text, size_t n, const lath_text *strings, size_t n_strings)
{
    size_t most = 0;
    for (size_t k = 0; k < n_strings; k++) {
        for (size_t len = 1; len < strings[k].len && len <= n; len++) {
            if (len > most && memcmp(text + n - len, strings[k].data, len) == 0) most = len;
        }
    }
    return most;
}

/* Where the text must end: the match that ends first, of those the longest. */
static bool first_match(const char *text, size_t n, const lath_text *strings, size_t n_strings, size_t *keep,
                        size_t *end)
{
    for (*end = 1; *end <= n; (*end)++) {
        size_t longest = 0;
        for (size_t k = 0; k < n_strings; k++) {
            const size_t len = strings[k].len;
            if (len > longest && len <= *end && memcmp(text + *end - len, strings[k].data, len) == 0) longest = len;
        }
        *keep = *end - longest;
        if (longest > 0) return true;
    }
    *keep = n;
    return false;
}

/* Sends the text in pieces that begin where the bits of `cuts` are set and compares after every piece. */
static void check(const char *text, size_t n, const lath_text *strings, size_t n_strings, uint64_t cuts)
{
    stop s;
    buf out;
    size_t keep, end;
    const bool stops = first_match(text, n, strings, n_strings, &keep, &end);
    buf_init(&out, alloc_default(), 1 << 20);
    assert_ok(stop_init(&s, alloc_default(), NULL, 0, strings, n_strings, &err), err);
    for (size_t b = 0, e; b < n; b = e) {
        for (e = b + 1; e < n && !(cuts >> (e % 64) & 1); e++) {
        }
        stop_push(&s, text + b, e - b, &out);
        const size_t want = stops && e >= end ? keep : e - open_end(text, e, strings, n_strings);
        if (out.len != want || memcmp(out.data ? out.data : "", text, want) != 0)
            fail_msg("\"%.*s\" up to %zu, cuts %llx: \"%.*s\", want %zu bytes", (int)n, text, e,
                     (unsigned long long)cuts, (int)out.len, out.data ? out.data : "", want);
        assert_int_equal(s.stopped >= 0, stops && e >= end);
    }
    stop_finish(&s, &out);
    assert_int_equal(out.len, keep);
    assert_int_equal(s.stopped, -1);
    assert_memory_equal(out.data ? out.data : "", text, keep);
    stop_deinit(&s);
    buf_deinit(&out);
}

static void test_all_cuts(void **state)
{
    (void)state;
    static const struct {
        const char *text, *strings[3];
    } rows[] = {
        {"Hello\n\nworld", {"\n\n"}},
        {"aaab", {"aab"}},
        {"aaaaaaaa", {"aab", "aaac"}},
        {"xabcdy", {"abcd", "bc"}}, /* bc ends first */
        {"xabcy", {"bc", "abc"}},   /* end together */
        {"ababac abab", {"ababab", "abac "}},
        {"end", {"end"}},
        {"almost the en", {"end", "enough"}},
        {"\xC3\xA8\xC3\xA9\xE2\x82\xAC!", {"\xC3\xA9\xE2\x82\xAC"}},
        {"\xC3\xA8 \xE2\x82\xAC", {"\xC3\xA9", "\xE2\x82\xAD"}},
        {"", {"a"}},
        {"a", {"a"}},
        {"no strings", {NULL}},
    };
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        lath_text strings[3];
        size_t n = 0;
        for (; n < 3 && rows[k].strings[n]; n++) strings[n] = text_of(rows[k].strings[n]);
        const size_t len = strlen(rows[k].text);
        for (uint64_t cuts = 0; cuts < (uint64_t)1 << len; cuts++) check(rows[k].text, len, strings, n, cuts);
    }
}

static uint64_t mix(uint64_t *x)
{
    uint64_t z = (*x += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    return z ^ (z >> 29);
}

static void test_random(void **state)
{
    (void)state;
    uint64_t x = 1;
    int stopped = 0;
    for (int round = 0; round < 20000; round++) {
        char text[48], bytes[4][8];
        lath_text strings[4];
        const size_t n_strings = mix(&x) % 5;
        for (size_t i = 0; i < sizeof(text); i++) text[i] = "ab"[mix(&x) % 2];
        for (size_t k = 0; k < n_strings; k++) {
            strings[k] = (lath_text){bytes[k], 3 + mix(&x) % 6};
            for (size_t i = 0; i < 8; i++) bytes[k][i] = "ab"[mix(&x) % 2];
        }
        size_t keep, end;
        stopped += first_match(text, sizeof(text), strings, n_strings, &keep, &end);
        check(text, sizeof(text), strings, n_strings, mix(&x));
    }
    assert_true(stopped > 1000 && stopped < 19000);
}

/* Characters stay whole where they come whole. */
static void test_characters(void **state)
{
    (void)state;
    static const char *const pieces[] = {"\xC3\xA9", "\xC3\xA8", "\xC3\xA9\xE2\x82\xAC", "\xE2\x82\xAD", "\xC3\xA9"};
    const lath_text stops[] = {text_of("\xC3\xA9\xE2\x82\xAC\xE2\x82\xAC"), text_of("\xC3\xAA")};
    stop s;
    buf out;
    buf_init(&out, alloc_default(), 1 << 20);
    assert_ok(stop_init(&s, alloc_default(), NULL, 0, stops, 2, &err), err);
    for (size_t i = 0; i < 5; i++) {
        buf_clear(&out);
        stop_push(&s, pieces[i], strlen(pieces[i]), &out);
        assert_int_equal(utf8_first_invalid(out.data ? out.data : "", out.len), out.len);
    }
    assert_int_equal(out.len, 0);
    stop_finish(&s, &out);
    assert_int_equal(out.len, 2);
    stop_deinit(&s);
    buf_deinit(&out);
}

static void test_ids(void **state)
{
    (void)state;
    static const int32_t ids[] = {2, 151645, 0};
    stop s;
    assert_ok(stop_init(&s, alloc_default(), ids, 3, NULL, 0, &err), err);
    assert_true(stop_is_id(&s, 0) && stop_is_id(&s, 2) && stop_is_id(&s, 151645));
    assert_false(stop_is_id(&s, 1) || stop_is_id(&s, -1));
    stop_deinit(&s);
    assert_ok(stop_init(&s, alloc_default(), NULL, 0, NULL, 0, &err), err);
    assert_false(stop_is_id(&s, 0));
    stop_deinit(&s);
}

static void expect_usage(const lath_text *strings, size_t n, const char *msg)
{
    stop s;
    assert_int_equal(stop_init(&s, alloc_default(), NULL, 0, strings, n, &err), LATH_ERR_USAGE);
    assert_string_equal(err.msg, msg);
    stop_deinit(&s);
}

static void test_refused(void **state)
{
    (void)state;
    static char many[STOP_BYTES_MOST + 1];
    lath_text strings[STOP_STRINGS_MOST + 1];
    memset(many, 'a', sizeof(many));
    strings[0] = text_of("a");
    strings[1] = text_of("");
    expect_usage(strings, 2, "stop string 2 is empty");
    strings[1] = text_of("ab\xFF");
    expect_usage(strings, 2, "stop string 2: byte 2 is not UTF-8");
    strings[1] = (lath_text){many, sizeof(many)};
    expect_usage(strings, 2, "stop string 2: 65537 bytes, at most 65536");
    for (int i = 0; i <= STOP_STRINGS_MOST; i++) strings[i] = text_of("a");
    expect_usage(strings, STOP_STRINGS_MOST + 1, "257 stop strings, at most 256");
    stop s;
    assert_ok(stop_init(&s, alloc_default(), NULL, 0, strings, STOP_STRINGS_MOST, &err), err);
    stop_deinit(&s);
}

static void *fail_alloc(void *ctx, size_t size, size_t align)
{
    return --*(int *)ctx == 0 ? NULL : alloc_bytes(alloc_default(), size, align);
}

static void plain_release(void *ctx, void *p, size_t size)
{
    (void)ctx;
    alloc_release(alloc_default(), p, size);
}

static void *fail_resize(void *ctx, void *p, size_t old_size, size_t size, size_t align)
{
    return --*(int *)ctx == 0 ? NULL : alloc_resize(alloc_default(), p, old_size, size, align);
}

static void test_no_memory(void **state)
{
    (void)state;
    static char many[STOP_BYTES_MOST];
    memset(many, 'a', sizeof(many));
    const lath_text strings[] = {{many, sizeof(many)}, {many, 100}};
    static const int32_t ids[] = {1};
    lath_status st = LATH_ERR_NOMEM;
    int at = 1;
    for (; st != LATH_OK; at++) {
        int left = at;
        const lath_allocator a = {&left, fail_alloc, fail_resize, plain_release};
        stop s;
        st = stop_init(&s, &a, ids, 1, strings, 2, &err);
        assert_true(st == LATH_OK || st == LATH_ERR_NOMEM);
        stop_deinit(&s);
    }
    assert_true(at > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_cuts), cmocka_unit_test(test_random),  cmocka_unit_test(test_characters),
        cmocka_unit_test(test_ids),      cmocka_unit_test(test_refused), cmocka_unit_test(test_no_memory),
    };
    return TEST_RUN(tests);
}
