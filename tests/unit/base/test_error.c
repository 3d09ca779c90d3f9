/* SPDX-License-Identifier: Apache-2.0
 * test_error.c: the error record: what each call sets and keeps, messages that are cut at a character border and
 * stay one line of UTF-8 whatever goes into them; and the status table against the numbers of lath_core.h. */
#include "base/error.h"

#include <errno.h>
#include <stdbool.h>

#include "base/utf8.h"
#include "support/test.h"

enum { CAP = sizeof(((lath_error *)0)->msg) };

static bool ends_with(const char *s, const char *end, size_t n)
{
    return strlen(s) >= n && memcmp(s + strlen(s) - n, end, n) == 0;
}

static void dirty(lath_error *e) { memset(e, 0x55, sizeof(*e)); }

static void test_set(void **state)
{
    lath_error e;
    (void)state;
    dirty(&e);
    assert_int_equal(err_set(&e, LATH_ERR_FORMAT, "%s: %d", "x.json", 5), LATH_ERR_FORMAT);
    assert_int_equal(e.status, LATH_ERR_FORMAT);
    assert_int_equal(e.os_errno, 0);
    assert_int_equal(e.item, -1);
    assert_string_equal(e.msg, "x.json: 5");
    dirty(&e);
    assert_int_equal(err_item(&e, LATH_ERR_INPUT, 7, "text %d", 7), LATH_ERR_INPUT);
    assert_int_equal(e.item, 7);
    assert_int_equal(e.os_errno, 0);
    dirty(&e);
    assert_int_equal(err_os(&e, LATH_ERR_IO, ENOENT, "open %s", "f"), LATH_ERR_IO);
    assert_int_equal(e.os_errno, ENOENT);
    assert_int_equal(e.item, -1);
    assert_string_equal(e.msg, "open f: No such file or directory");
    assert_int_equal(err_os(&e, LATH_ERR_IO, 99999, "f"), LATH_ERR_IO);
    assert_memory_equal(e.msg, "f: ", 3);
    assert_true(strlen(e.msg) > 3);
    dirty(&e);
    assert_int_equal(err_nomem(&e, 1234), LATH_ERR_NOMEM);
    assert_string_equal(e.msg, "out of memory (1234 bytes asked for)");
    assert_int_equal(err_nomem(&e, 0), LATH_ERR_NOMEM);
    assert_string_equal(e.msg, "out of memory");
    err_clear(&e);
    assert_int_equal(e.status, LATH_OK);
    assert_int_equal(e.os_errno, 0);
    assert_int_equal(e.item, -1);
    assert_string_equal(e.msg, "");
}

static void test_null(void **state)
{
    (void)state;
    err_clear(NULL);
    assert_int_equal(err_set(NULL, LATH_ERR_USAGE, "%d", 1), LATH_ERR_USAGE);
    assert_int_equal(err_item(NULL, LATH_ERR_WINDOW, 1, "%d", 1), LATH_ERR_WINDOW);
    assert_int_equal(err_os(NULL, LATH_ERR_IO, EIO, "%d", 1), LATH_ERR_IO);
    assert_int_equal(err_nomem(NULL, 1), LATH_ERR_NOMEM);
    assert_int_equal(err_wrap(NULL, LATH_ERR_FORMAT, "%d", 1), LATH_ERR_FORMAT);
}

static void test_wrap(void **state)
{
    lath_error e;
    (void)state;
    err_os(&e, LATH_ERR_IO, EACCES, "read");
    e.item = 3;
    assert_int_equal(err_wrap(&e, LATH_ERR_IO, "%s", "model"), LATH_ERR_IO);
    assert_int_equal(err_wrap(&e, LATH_ERR_IO, "dir"), LATH_ERR_IO);
    assert_string_equal(e.msg, "dir: model: read: Permission denied");
    assert_int_equal(e.os_errno, EACCES);
    assert_int_equal(e.item, 3);
    assert_int_equal(e.status, LATH_ERR_IO);
    for (int i = 0; i < 300; i++) err_wrap(&e, LATH_ERR_IO, "context %d", i);
    assert_int_equal(strlen(e.msg), CAP - 1);
    assert_memory_equal(e.msg, "context 299: context 298: ", 26);
    assert_true(ends_with(e.msg, "dir: model: read: Permission denied", 35));
}

/* A message of too many bytes: whole characters, nearly all the room used, its first 60 and its last 150 bytes kept. */
static void check_shortened(const char *msg, const char *whole)
{
    const size_t n = strlen(msg), all = strlen(whole);
    assert_true(n < CAP && n >= CAP - 8);
    assert_int_equal(utf8_first_invalid(msg, n), n);
    assert_memory_equal(msg, whole, 60);
    assert_non_null(strstr(msg, "..."));
    assert_true(ends_with(msg, whole + all - 150, 150));
}

/* Texts of characters of each width, of every length around the record's. */
static void test_cut(void **state)
{
    static const char *const chars[] = {"a", "\xC3\xA9", "\xE4\xB8\xAD", "\xF0\x9F\x98\x80"};
    static const char reason[] = ": Input/output error";
    (void)state;
    for (size_t w = 1; w <= 4; w++) {
        for (size_t lead = 0; lead < 4; lead++) {
            char text[2048] = "abc";
            size_t len = lead;
            for (int i = 0; i < 300; i++, len += w) memcpy(text + len, chars[w - 1], w + 1);
            lath_error e;
            dirty(&e);
            err_set(&e, LATH_ERR_FORMAT, "%s", text);
            check_shortened(e.msg, text);
            err_wrap(&e, LATH_ERR_FORMAT, "%s", "outer");
            assert_memory_equal(e.msg, "outer: abc", 7 + lead);
            assert_true(ends_with(e.msg, text + len - 150, 150));
            err_os(&e, LATH_ERR_IO, EIO, "%s", text); /* the reason stays */
            assert_true(ends_with(e.msg, reason, sizeof(reason) - 1));
            assert_memory_equal(e.msg, text, 60);
            for (size_t cut = CAP - 8; cut < CAP; cut++) { /* a message that just fits loses nothing */
                if ((cut - lead) % w != 0) continue;
                err_set(&e, LATH_ERR_FORMAT, "%.*s", (int)cut, text);
                assert_int_equal(strlen(e.msg), cut);
            }
        }
    }
}

/* Bytes of files in a message: no line breaks, no control characters, valid UTF-8. */
static void test_tidy(void **state)
{
    lath_error e;
    (void)state;
    err_set(&e, LATH_ERR_FORMAT, "key \"%s\"", "a\nb\tc\x1B[31m\x7F\r");
    assert_string_equal(e.msg, "key \"a?b?c?[31m??\"");
    err_set(&e, LATH_ERR_FORMAT, "\"%.4s\" \"%s\"", "abc\xE4\xB8\xAD", "\xC0\x80\xFF ok \xC3\xA9");
    assert_string_equal(e.msg, "\"abc?\" \"??? ok \xC3\xA9\"");
    err_set(&e, LATH_ERR_FORMAT, "%s", "end \xE4\xB8");
    assert_string_equal(e.msg, "end ??");
    for (unsigned a = 0; a < 256; a++) {
        for (unsigned b = 1; b < 256; b++) {
            char text[2 * CAP];
            for (size_t i = 0; i + 2 < sizeof(text); i += 3) {
                text[i] = (char)b;
                text[i + 1] = (char)(a ? a : 'x');
                text[i + 2] = (char)(b ^ 0x40 ? b ^ 0x40 : 'x');
            }
            text[sizeof(text) - 1] = 0;
            text[sizeof(text) - 2] = 0;
            err_set(&e, LATH_ERR_FORMAT, "%s", text);
            size_t n = strlen(e.msg);
            assert_true(n < CAP && n > CAP - 5);
            if (utf8_first_invalid(e.msg, n) != n) fail_msg("%02X %02X", a, b);
            for (size_t i = 0; i < n; i++) assert_true((unsigned char)e.msg[i] >= 0x20 && e.msg[i] != 0x7F);
        }
    }
}

/* lath_core.h, by hand. */
static const struct {
    lath_status st;
    int number;
    const char *name, *text;
    int http, exit_code;
} statuses[] = {
    {LATH_OK, 0, "LATH_OK", "done", 200, 0},
    {LATH_ERR_USAGE, 1, "LATH_ERR_USAGE", "wrong argument or option", 400, 2},
    {LATH_ERR_NOT_FOUND, 2, "LATH_ERR_NOT_FOUND", "not found", 404, 3},
    {LATH_ERR_FORMAT, 3, "LATH_ERR_FORMAT", "malformed file", 500, 3},
    {LATH_ERR_UNSUPPORTED, 4, "LATH_ERR_UNSUPPORTED", "not supported", 501, 4},
    {LATH_ERR_INPUT, 5, "LATH_ERR_INPUT", "bad input", 400, 5},
    {LATH_ERR_WINDOW, 6, "LATH_ERR_WINDOW", "longer than the model's window", 413, 5},
    {LATH_ERR_NOMEM, 7, "LATH_ERR_NOMEM", "out of memory", 503, 6},
    {LATH_ERR_LIMIT, 8, "LATH_ERR_LIMIT", "over a limit", 413, 6},
    {LATH_ERR_IO, 9, "LATH_ERR_IO", "input/output error", 500, 7},
    {LATH_ERR_NETWORK, 10, "LATH_ERR_NETWORK", "network error", 502, 8},
    {LATH_ERR_INTERRUPTED, 11, "LATH_ERR_INTERRUPTED", "interrupted", 499, 130},
    {LATH_ERR_KV_FULL, 12, "LATH_ERR_KV_FULL", "the context is full", 413, 5},
};

static void test_status_table(void **state)
{
    const int n = sizeof(statuses) / sizeof(statuses[0]);
    (void)state;
    for (int i = 0; i < n; i++) {
        assert_int_equal(statuses[i].st, statuses[i].number);
        assert_int_equal(statuses[i].number, i);
        assert_string_equal(lath_status_name(statuses[i].st), statuses[i].name);
        assert_string_equal(lath_status_text(statuses[i].st), statuses[i].text);
        assert_int_equal(lath_status_http(statuses[i].st), statuses[i].http);
        assert_int_equal(lath_status_exit_code(statuses[i].st), statuses[i].exit_code);
    }
    static const int none[] = {-1, 13, 1000, INT32_MIN, INT32_MAX};
    assert_int_equal(n, 13); /* and no row behind them */
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        assert_string_equal(lath_status_name((lath_status)none[i]), "LATH_?");
        assert_int_equal(lath_status_exit_code((lath_status)none[i]), 1);
        assert_int_equal(lath_status_http((lath_status)none[i]), 500);
        assert_true(strlen(lath_status_text((lath_status)none[i])) > 0);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set), cmocka_unit_test(test_null), cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_cut), cmocka_unit_test(test_tidy), cmocka_unit_test(test_status_table),
    };
    return TEST_RUN(tests);
}
