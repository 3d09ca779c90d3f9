/* SPDX-License-Identifier: Apache-2.0
 * test_regex.c: patterns: pieces as the reference package cuts them (regex.jsonl), known patterns as programs against the
 * same patterns in the general engine over all code points and random text, what is refused, and limits.
 */
#include "support/test.h"

#include <time.h>

#include "base/file.h"
#include "base/utf8.h"
#include "tok/tok_patterns.h"
#include "tok/tok_regex.h"

enum { FILE_MOST = 1 << 24 };

/* A tokenizer to own patterns, and a splitter's way through text. */
typedef struct bench {
    tok t;
    tok_load l;
    lath_error err;
    arena scratch;
} bench;

static void set_up(bench *b)
{
    *b = (bench){0};
    b->t.alloc = alloc_default();
    arena_init(&b->t.mem, b->t.alloc);
    arena_init(&b->scratch, b->t.alloc);
    b->l = (tok_load){.t = &b->t, .name = "test", .err = &b->err};
}

static void tear_down(bench *b)
{
    tok_regex_release(&b->t);
    arena_deinit(&b->t.mem);
    arena_deinit(&b->scratch);
}

/* ------------------------------------------------------------------------------------------------------------- golden */

static void check_pieces(bench *b, const json_value *v, uint32_t line)
{
    static const char *const names[] = {"type", "pattern", "behavior", "invert"};
    buf file;
    json_value *spec;
    tok_splitter splitter = {0};
    const json_value *text = json_get(v, "text"), *p = json_get(v, "pattern");
    buf_init(&file, alloc_default(), 1 << 16);
    buf_printf(&file, "{\"%s\":\"Split\",\"%s\":{\"Regex\":", names[0], names[1]);
    json_put_string(&file, p->u.string.data, p->u.string.len);
    buf_printf(&file, "},\"%s\":\"%s\",\"%s\":%s}", names[2], json_get(v, "behavior")->u.string.data, names[3],
               json_get(v, "invert")->u.boolean ? "true" : "false");
    assert_ok(json_parse(&b->scratch, "test", file.data, file.len, NULL, &spec, &b->err), b->err);
    buf_deinit(&file);
    if (tok_split_regex(&b->l, spec, &splitter) != LATH_OK) fail_msg("line %u: %s", line, b->err.msg);
    tok_work w = {.t = &b->t, .scratch = &b->scratch, .err = &b->err};
    tok_text t = {.s = text->u.string.data, .n = text->u.string.len};
    if (t.n) assert_ok(tok_spans_push(&w, &w.spans, 0, t.n), b->err);
    assert_ok(splitter.run(&splitter, &w, &t), b->err);
    size_t i = 0;
    for (const json_value *m = json_get(v, "pieces")->u.items.first; m; m = m->next, i++) {
        const json_value *begin = m->u.items.first;
        if (i >= w.spans.n || w.spans.v[i].b != begin->u.integer || w.spans.v[i].e != begin->next->u.integer)
            fail_msg("line %u: %s: piece %zu is %d to %d, want %d to %d", line, p->u.string.data, i,
                     i < w.spans.n ? (int)w.spans.v[i].b : -1, i < w.spans.n ? (int)w.spans.v[i].e : -1,
                     (int)begin->u.integer, (int)begin->next->u.integer);
    }
    if (i != w.spans.n) fail_msg("line %u: %s: %zu pieces, want %zu", line, p->u.string.data, w.spans.n, i);
}

static void as_the_reference(void **state)
{
    (void)state;
    char path[1024];
    buf file;
    bench b;
    arena tree;
    uint32_t line = 0;
    set_up(&b);
    arena_init(&tree, alloc_default());
    snprintf(path, sizeof(path), "%s/unit/tok/regex.jsonl", test_data_dir());
    buf_init(&file, alloc_default(), FILE_MOST);
    assert_ok(file_read(&file, path, FILE_MOST, &b.err), b.err);
    for (size_t i = 0; i < file.len;) {
        const char *s = file.data + i, *end = memchr(s, '\n', file.len - i);
        assert_non_null(end);
        json_value *v;
        arena_reset(&tree);
        assert_ok(json_parse(&tree, path, s, (size_t)(end - s), NULL, &v, &b.err), b.err);
        check_pieces(&b, v, ++line);
        i += (size_t)(end - s) + 1;
    }
    assert_true(line >= 300);
    buf_deinit(&file);
    arena_deinit(&tree);
    tear_down(&b);
}

/* ----------------------------------------------------------------------------------------------------- known patterns */

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define UPPERS "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWERS "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define REST "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* As the files of these models have them. */
static const char *const known[] = {
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
    CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" REST,
    CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" REST,
    CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" REST,
    "[^\\r\\n\\p{L}\\p{N}]?" UPPERS "*" LOWERS "+" CONTRACTIONS "?|[^\\r\\n\\p{L}\\p{N}]?" UPPERS "+" LOWERS
    "*" CONTRACTIONS "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" REST,
    "[^\\r\\n\\p{L}\\p{N}]?" UPPERS "*" LOWERS "+|[^\\r\\n\\p{L}\\p{N}]?" UPPERS "+" LOWERS
    "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" REST,
};
enum { N_KNOWN = sizeof(known) / sizeof(known[0]) };

static void compare(bench *b, const tok_pattern *p, const tok_regex *r, const char *text, size_t n)
{
    tok_span v[7]; /* odd, so that blocks end anywhere */
    tok_regex_find f;
    size_t at = 0, last = 0;
    bool found;
    char *s = malloc(n ? n : 1); /* without a byte behind it */
    assert_non_null(s);
    if (n) memcpy(s, text, n);
    assert_ok(tok_regex_begin(&f, r, s, n, &b->err), b->err);
    while (at < n) {
        size_t k = p->split(s, n, &at, v, 7);
        assert_true(k > 0);
        for (size_t i = 0; i < k; i++) {
            assert_ok(tok_regex_next(&f, &found, &b->err), b->err);
            if (!found || f.b != v[i].b || f.e != v[i].e || f.b != last)
                fail_msg("%s: match at %u to %u, want %zu to %zu, in \"%.*s\"", p->name, v[i].b, v[i].e, f.b, f.e,
                         (int)(n < 200 ? n : 200), s);
            last = f.e;
        }
    }
    assert_ok(tok_regex_next(&f, &found, &b->err), b->err);
    assert_false(found);
    tok_regex_end(&f);
    free(s);
}

/* Each code point between letters, capitals, digits, spaces, signs and newlines. */
static void all_code_points(void **state)
{
    (void)state;
    static const char *const around[] = {"a%sb", " %s ", "%s\n", "1%sA", "A%s's", "\t%s%s.", "'%s", "/%s/"};
    bench b;
    set_up(&b);
    buf text;
    buf_init(&text, alloc_default(), 1 << 20);
    for (int k = 0; k < N_KNOWN; k++) {
        const tok_regex *r;
        const tok_pattern *p = tok_pattern_find((tok_string){known[k], strlen(known[k])});
        assert_non_null(p);
        assert_ok(tok_regex_load(&b.l, NULL, "test", (tok_string){known[k], strlen(known[k])}, &r), b.err);
        for (uint32_t c = 1; c < 0x110000; c++) {
            if (c >= 0xD800 && c <= 0xDFFF) continue;
            /* Beyond the first planes long stretches are alike: a telling part of them. */
            if (c >= 0x20000 && c % 97 != 0 && c % 0x1000 > 8) continue;
            char one[5] = {0};
            utf8_encode(c, one);
            buf_printf(&text, around[c % 8], one, one);
            if (c % 64 == 63) {
                compare(&b, p, r, text.data, text.len);
                buf_clear(&text);
            }
        }
        compare(&b, p, r, text.data, text.len);
        buf_clear(&text);
    }
    buf_deinit(&text);
    tear_down(&b);
}

static void random_text(void **state)
{
    (void)state;
    static const char *const parts[] = {"a",  "B",      "don", "'s", "'LL", "'\xC5\xBF", " ",   "  ",     "\t",
                                        "\n", "\r\n",   "1",   "23", "é",   "É",         "中",  "ǅ",      "ʰ",
                                        "ª",  "\u0301", "½",   "-",  "/",   "...",       "▁",   "\u00a0", "\u2028",
                                        "👍",  "Ж",      "ж",   "'",  "\v",  "ABC",       "def", "\u0903", "\U00020000"};
    bench b;
    set_up(&b);
    buf text;
    uint64_t x = 88172645463325252u;
    buf_init(&text, alloc_default(), 1 << 20);
    for (int k = 0; k < N_KNOWN; k++) {
        const tok_regex *r;
        const tok_pattern *p = tok_pattern_find((tok_string){known[k], strlen(known[k])});
        assert_ok(tok_regex_load(&b.l, NULL, "test", (tok_string){known[k], strlen(known[k])}, &r), b.err);
        for (int round = 0; round < 4000; round++) {
            buf_clear(&text);
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            int n = (int)(x >> 20) % 30 + 1;
            for (int i = 0; i < n; i++) {
                x ^= x << 13, x ^= x >> 7, x ^= x << 17;
                buf_str(&text, parts[(x >> 11) % (sizeof(parts) / sizeof(parts[0]))]);
            }
            compare(&b, p, r, text.data, text.len);
        }
    }
    buf_deinit(&text);
    tear_down(&b);
}

static void other_patterns_are_not_known(void **state)
{
    (void)state;
    assert_null(tok_pattern_find((tok_string){"\\s+", 3}));
    assert_null(tok_pattern_find((tok_string){known[0], strlen(known[0]) - 1}));
    assert_null(tok_pattern_find((tok_string){"", 0}));
}

/* ------------------------------------------------------------------------------------------------------------- refusals */

static void what_cannot_be_said_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        lath_status status;
    } cases[] = {
        {"(", LATH_ERR_FORMAT},
        {"a)", LATH_ERR_FORMAT},
        {"[a", LATH_ERR_FORMAT},
        {"\\", LATH_ERR_FORMAT},
        {"[b-a]", LATH_ERR_FORMAT},
        {"\\x{110000}", LATH_ERR_FORMAT},
        {"\\x{D800}", LATH_ERR_FORMAT},
        {"+a", LATH_ERR_FORMAT},
        {"\\p{L", LATH_ERR_FORMAT},
        {"\\p{Nonsense}", LATH_ERR_UNSUPPORTED},
        {"\\X", LATH_ERR_UNSUPPORTED},
        {"(?~a)", LATH_ERR_UNSUPPORTED},
        {"(?i:ss)", LATH_ERR_UNSUPPORTED},
        {"(?i)\u00e9", LATH_ERR_UNSUPPORTED},
        {"a(?i)b", LATH_ERR_UNSUPPORTED},
        {"(*FAIL)", LATH_ERR_UNSUPPORTED},
        {"(?(1)a|b)", LATH_ERR_UNSUPPORTED},
        {"[\\X]", LATH_ERR_UNSUPPORTED},
        {"(((a{900}){900}){900})", LATH_ERR_UNSUPPORTED},
        {"(?<=a+)b", LATH_ERR_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bench b;
        const tok_regex *r;
        set_up(&b);
        lath_status st =
            tok_regex_load(&b.l, NULL, "pre_tokenizer", (tok_string){cases[i].pattern, strlen(cases[i].pattern)}, &r);
        if (st != cases[i].status)
            fail_msg("%s: status %d, want %d: %s", cases[i].pattern, st, cases[i].status, b.err.msg);
        assert_non_null(strstr(b.err.msg, "test: pre_tokenizer: the regular expression"));
        tear_down(&b);
    }
}

static void endless_search_is_an_error(void **state)
{
    (void)state;
    static const char *const patterns[] = {"(a+)+[bc]", "(a|aa)+$.", "(?:a*)*[cd]", "(\\p{L}+\\s?)*[89]"};
    for (size_t i = 0; i < 4; i++) {
        bench b;
        const tok_regex *r;
        tok_regex_find f;
        bool found;
        char text[4096];
        set_up(&b);
        memset(text, 'a', sizeof(text));
        assert_ok(tok_regex_load(&b.l, NULL, "test", (tok_string){patterns[i], strlen(patterns[i])}, &r), b.err);
        clock_t begin = clock();
        assert_ok(tok_regex_begin(&f, r, text, sizeof(text), &b.err), b.err);
        lath_status st = tok_regex_next(&f, &found, &b.err);
        tok_regex_end(&f);
        if (st != LATH_ERR_LIMIT) fail_msg("%s: status %d", patterns[i], st);
        assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < 5); /* slow machines and sanitizers included */
        tear_down(&b);
    }
}

static void deep_patterns_need_more_stack(void **state)
{
    (void)state;
    bench b;
    const tok_regex *r;
    tok_regex_find f;
    bool found;
    static char text[200000];
    set_up(&b);
    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = 'b';
    assert_ok(tok_regex_load(&b.l, NULL, "test", (tok_string){"(?:(a)|c)*b", 11}, &r), b.err);
    assert_ok(tok_regex_begin(&f, r, text, sizeof(text), &b.err), b.err);
    lath_status st = tok_regex_next(&f, &found, &b.err);
    if (st == LATH_OK) {
        assert_true(found);
        assert_int_equal(f.e, sizeof(text));
    } else {
        assert_int_equal(st, LATH_ERR_LIMIT);
    }
    tok_regex_end(&f);
    tear_down(&b);
}

static void strings_match_themselves(void **state)
{
    (void)state;
    bench b;
    const tok_regex *r;
    tok_regex_find f;
    bool found;
    size_t n = 0;
    set_up(&b);
    assert_ok(tok_regex_load_string(&b.l, (tok_string){"a.", 2}, &r), b.err);
    assert_ok(tok_regex_begin(&f, r, "ab a.a. a", 9, &b.err), b.err);
    static const size_t want[] = {3, 5};
    while (tok_regex_next(&f, &found, &b.err) == LATH_OK && found) {
        assert_true(n < 2);
        assert_int_equal(f.b, want[n]);
        assert_int_equal(f.e, want[n++] + 2);
    }
    assert_int_equal(n, 2);
    tok_regex_end(&f);
    tear_down(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_reference),
        cmocka_unit_test(all_code_points),
        cmocka_unit_test(random_text),
        cmocka_unit_test(other_patterns_are_not_known),
        cmocka_unit_test(what_cannot_be_said_is_refused),
        cmocka_unit_test(endless_search_is_an_error),
        cmocka_unit_test(deep_patterns_need_more_stack),
        cmocka_unit_test(strings_match_themselves),
    };
    return TEST_RUN(tests);
}
