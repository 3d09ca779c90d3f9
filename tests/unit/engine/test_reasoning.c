/* SPDX-License-Identifier: Apache-2.0
 * test_reasoning.c: what is thought and what is answered of texts in every cut, against the whole text; special tokens as markers; what is forced by a
 * budget, behind a block, and where a token would run over its end; what is refused; failing allocations. */
#include "support/test.h"
#include "support/tmpdir.h"

#include "engine/reasoning.h"

static lath_error err;
static tok *plain;   /* <think> and </think> are tokens, not special ones */
static tok *special; /* they are special */
static const lath_reasoning think = {{"<think>", 7}, {"</think>", 8}, {"\n</think>\n\n", 11}, 0};
static const lath_reasoning words = {{"[THINK]", 7}, {"[/THINK]", 8}, {NULL, 0}, 0};

static int setup(void **state)
{
    char from[TMP_PATH], dir[TMP_PATH];
    (void)state;
    tmp_join(from, test_data_dir(), "golden/rerank/qwen3_reranker_card");
    assert_ok(tok_open_dir(alloc_default(), from, &plain, &err), err);
    tmp_copy(dir, from);
    size_t n;
    char *json = tmp_read(dir, "tokenizer.json", &n);
    for (char *at = json; (at = strstr(at, "\"special\":false")) != NULL;) memcpy(at, "\"special\":true ", 15);
    tmp_write(dir, "tokenizer.json", json);
    free(json);
    assert_ok(tok_open_dir(alloc_default(), dir, &special, &err), err);
    tmp_remove(dir);
    assert_true(tok_is_special(special, tok_id(special, "<think>", 7)));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tok_close(plain);
    tok_close(special);
    return 0;
}

/* --------------------------------------------------------------------------------------------------------------- text */

typedef struct piece {
    const char *s;
    size_t n;
} piece;

static bool blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

static piece strip(piece p, bool right)
{
    while (p.n && blank(*p.s)) p.s++, p.n--;
    while (right && p.n && blank(p.s[p.n - 1])) p.n--;
    return p;
}

static size_t find(piece p, const char *what)
{
    const size_t n = strlen(what);
    for (size_t i = 0; i + n <= p.n; i++) {
        if (memcmp(p.s + i, what, n) == 0) return i;
    }
    return p.n;
}

/* Of the whole text. */
static void divide(piece text, const lath_reasoning *how, bool open, piece *thought, piece *answer)
{
    const piece from = strip(text, false);
    *thought = *answer = (piece){text.s, 0};
    if (!open && (from.n < how->begin.len || find((piece){from.s, how->begin.len}, how->begin.data) != 0)) {
        *answer = text;
        return;
    }
    const piece inside = open ? text : (piece){from.s + how->begin.len, from.n - how->begin.len};
    const size_t at = find(inside, how->end.data);
    *thought = strip((piece){inside.s, at}, true);
    if (at == inside.n) return;
    *answer = strip((piece){inside.s + at + how->end.len, inside.n - at - how->end.len}, false);
}

static bool begins(const buf *b, piece p)
{
    return b->len <= p.n && (b->len == 0 || memcmp(b->data, p.s, b->len) == 0);
}

static void check(const char *s, const lath_reasoning *how, bool open, uint64_t cuts)
{
    reasoning r;
    buf thought, answer;
    const piece text = {s, strlen(s)};
    piece want_thought, want_answer;
    divide(text, how, open, &want_thought, &want_answer);
    buf_init(&thought, alloc_default(), 1 << 20);
    buf_init(&answer, alloc_default(), 1 << 20);
    assert_ok(reasoning_init(&r, alloc_default(), plain, how, open, -1, &err), err);
    for (size_t b = 0, e; b < text.n; b = e) {
        for (e = b + 1; e < text.n && !(cuts >> (e % 64) & 1); e++) {
        }
        reasoning_push(&r, s + b, e - b, &thought, &answer);
        assert_true(begins(&thought, want_thought) && begins(&answer, want_answer));
        /* Only blanks and the beginning of a marker wait. */
        size_t wait = 0, most = strlen(how->end.data) - 1;
        while (wait < r.held.len && blank(r.held.data[wait])) wait++;
        assert_true(r.held.len - wait <= most);
    }
    reasoning_finish(&r, &thought, &answer);
    if (thought.len != want_thought.n || answer.len != want_answer.n || !begins(&thought, want_thought) ||
        !begins(&answer, want_answer))
        fail_msg("\"%s\"%s, cuts %llx: \"%.*s\" | \"%.*s\"", s, open ? " (open)" : "", (unsigned long long)cuts,
                 (int)thought.len, thought.data ? thought.data : "", (int)answer.len, answer.data ? answer.data : "");
    reasoning_deinit(&r);
    buf_deinit(&thought);
    buf_deinit(&answer);
}

static void test_texts(void **state)
{
    static const char *const texts[] = {
        "",
        " ",
        "plain",
        "  plain ",
        "\n<think>\nab\n</think>\n\nyes",
        "<think></think>x",
        "<think>\n\n</think>\n\n",
        "<think>",
        "<thin",
        "<thinking>x</think>",
        " <think>a </think b</think> c </think> d",
        "<think>never\n\n closed </thin",
        "a<think>b</think>c",
        "<think>a</think>\n<think>b</think>c",
        "<<think>x",
        "<think><think>a</think>b",
        "<think>a\n\n\nb </</think>\t x ",
        "<think>\xC3\xA9\xE4\xB8\xAD</think>\xF0\x9F\x98\x80",
        "[THINK]a[[/THINK] b[/THINK]",
        "[THINK]]/THINK]",
        "<think>a<</</think>",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const size_t n = strlen(texts[i]);
        const uint64_t most = n > 12 ? 1 << 11 : n ? 1u << (n - 1) : 1;
        for (uint64_t c = 0; c < most; c++) {
            /* Of long texts a part of the cuts, all of them among the single bytes. */
            const uint64_t cuts = n > 12 ? c * 0x9E3779B97F4A7C15u : c << 1;
            for (int open = 0; open < 2; open++) {
                check(texts[i], &think, open != 0, cuts);
                check(texts[i], &words, open != 0, cuts);
            }
        }
        check(texts[i], &think, false, UINT64_MAX);
        check(texts[i], &think, true, UINT64_MAX);
        check(texts[i], &words, false, UINT64_MAX);
    }
}

/* ----------------------------------------------------------------------------------------------------------- special */

static void test_special(void **state)
{
    reasoning r;
    (void)state;
    const int32_t begin = tok_id(special, "<think>", 7), end = tok_id(special, "</think>", 8);
    buf out;
    buf_init(&out, alloc_default(), 100);
    assert_ok(reasoning_init(&r, alloc_default(), special, &think, false, -1, &err), err);
    assert_true(reasoning_is_marker(&r, begin));
    assert_false(reasoning_is_marker(&r, end)); /* nothing is open */
    assert_false(reasoning_is_marker(&r, 'a'));
    reasoning_push(&r, "<think>", 7, &out, &out);
    assert_false(reasoning_is_marker(&r, begin));
    assert_true(reasoning_is_marker(&r, end));
    reasoning_push(&r, "</think>", 8, &out, &out);
    assert_false(reasoning_is_marker(&r, end));
    assert_int_equal(out.len, 0);
    reasoning_deinit(&r);
    assert_ok(reasoning_init(&r, alloc_default(), plain, &think, false, -1, &err), err);
    assert_false(reasoning_is_marker(&r, tok_id(plain, "<think>", 7))); /* its text comes out of the decoder */
    reasoning_deinit(&r);
    buf_deinit(&out);
}

/* ---------------------------------------------------------------------------------------------------------- steering */

/* The tokens that are forced now are those of the text. */
static void forces(reasoning *r, const char *want)
{
    arena scratch;
    tok_encoding e = {0};
    const tok_encode_options o = {.parse_special = true};
    arena_init(&scratch, alloc_default());
    assert_ok(tok_encode(plain, &scratch, want, strlen(want), &o, &e, &err), err);
    for (size_t i = 0; i < e.n; i++) assert_int_equal(reasoning_take_forced(r), e.ids[i]);
    assert_int_equal(reasoning_take_forced(r), -1);
    tok_encoding_release(plain, &e);
    arena_deinit(&scratch);
}

static void step(reasoning *r, const char *text, bool grammar, buf *out)
{
    const bool was_inside = r->state == REASONING_INSIDE;
    reasoning_push(r, text, strlen(text), out, out);
    reasoning_steer(r, was_inside, grammar);
}

static void test_budget(void **state)
{
    reasoning r;
    buf out;
    (void)state;
    buf_init(&out, alloc_default(), 1000);
    assert_ok(reasoning_init(&r, alloc_default(), plain, &think, false, 2, &err), err);
    reasoning_steer(&r, false, false);
    forces(&r, "");
    step(&r, "<think>", false, &out);
    forces(&r, "");
    step(&r, "a", false, &out);
    forces(&r, "");
    step(&r, "</th", false, &out); /* the budget is used up, but this may be the end */
    forces(&r, "");
    step(&r, "ink!", false, &out);
    forces(&r, "\n</think>\n\n");
    assert_int_equal(r.count, 3);
    step(&r, "\n</think>", false, &out);
    step(&r, "\n\n", false, &out);
    forces(&r, "");
    assert_int_equal(r.count, 4);
    assert_int_equal(r.state, REASONING_BEHIND);
    reasoning_deinit(&r);
    /* none at all: as soon as there is a block */
    assert_ok(reasoning_init(&r, alloc_default(), plain, &think, true, 0, &err), err);
    reasoning_steer(&r, false, false);
    forces(&r, "\n</think>\n\n");
    assert_int_equal(r.count, 0);
    reasoning_deinit(&r);
    assert_ok(reasoning_init(&r, alloc_default(), plain, &words, false, 0, &err), err);
    assert_false(reasoning_may_begin(&r));
    step(&r, "[THINK]", false, &out);
    forces(&r, "[/THINK]");
    reasoning_deinit(&r);
    buf_deinit(&out);
}

static void test_grammar(void **state)
{
    reasoning r;
    buf out;
    (void)state;
    buf_init(&out, alloc_default(), 1000);
    assert_ok(reasoning_init(&r, alloc_default(), plain, &words, false, -1, &err), err);
    assert_true(reasoning_may_begin(&r));
    reasoning_begin(&r);
    assert_int_equal(r.begin.ids[0], '[');
    forces(&r, "THINK]");
    step(&r, "[THINK]", true, &out);
    assert_false(reasoning_may_begin(&r));
    assert_false(reasoning_runs_over(&r, "a", 1));
    assert_false(reasoning_runs_over(&r, "[/THINK]", 8));
    assert_false(reasoning_runs_over(&r, "b[/THINK] \n", 11));
    assert_true(reasoning_runs_over(&r, "b[/THINK] \n{", 12));
    step(&r, "a[[/T", true, &out);
    assert_false(reasoning_runs_over(&r, "HINK}{", 6));
    assert_false(reasoning_runs_over(&r, "HINK]\n", 6));
    assert_true(reasoning_runs_over(&r, "HINK]{", 6));
    assert_ok(reasoning_end_exactly(&r, &err), err);
    forces(&r, "HINK]");
    step(&r, "HINK]", true, &out);
    assert_int_equal(r.state, REASONING_BEHIND);
    forces(&r, ""); /* no white space is known of these */
    reasoning_answer(&r);
    assert_int_equal(r.state, REASONING_ANSWER);
    assert_false(reasoning_runs_over(&r, "[/THINK]{", 9));
    reasoning_deinit(&r);
    /* Behind a block that the model ended comes the template's white space; without a grammar the model writes its own. */
    for (int grammar = 0; grammar < 2; grammar++) {
        assert_ok(reasoning_init(&r, alloc_default(), plain, &think, true, -1, &err), err);
        step(&r, "a</think>", grammar != 0, &out);
        forces(&r, grammar ? "\n\n" : "");
        reasoning_deinit(&r);
    }
    reasoning_init_none(&r, alloc_default());
    buf_clear(&out);
    step(&r, "<think>a</think>", true, &out);
    assert_int_equal(out.len, 16);
    assert_false(reasoning_may_begin(&r));
    assert_false(reasoning_is_marker(&r, 302));
    reasoning_deinit(&r);
    reasoning_deinit(&r);
    buf_deinit(&out);
}

/* ---------------------------------------------------------------------------------------------------------- refusals */

static void refuses(lath_text begin, lath_text end, lath_text close, const char *says)
{
    reasoning r;
    const lath_reasoning how = {begin, end, close, 0};
    assert_int_equal(reasoning_init(&r, alloc_default(), plain, &how, false, -1, &err), LATH_ERR_USAGE);
    if (!strstr(err.msg, says)) fail_msg("%s: want \"%s\"", err.msg, says);
    reasoning_deinit(&r);
}

static void test_refusals(void **state)
{
    static const lath_text x = {"x", 1}, none = {NULL, 0}, lost = {NULL, 3}, bad = {"\xFF", 1};
    static char many[REASONING_MARKER_BYTES_MOST + 1];
    (void)state;
    memset(many, 'm', sizeof(many));
    refuses(none, x, none, "a marker is empty");
    refuses(x, none, x, "a marker is empty");
    refuses(lost, x, none, "the begin marker: 3 bytes");
    refuses(x, bad, none, "the end marker is not UTF-8");
    refuses(x, x, (lath_text){"yz", 2}, "lacks the end marker");
    refuses((lath_text){many, sizeof(many)}, x, none, "257 bytes, at most 256");
}

static size_t left;

static void *starve_alloc(void *ctx, size_t size, size_t align)
{
    return left-- == 0 ? (left = 0, NULL) : alloc_default()->alloc(ctx, size, align);
}

static void *starve_resize(void *ctx, void *p, size_t old_size, size_t size, size_t align)
{
    return left-- == 0 ? (left = 0, NULL) : alloc_default()->resize(ctx, p, old_size, size, align);
}

static void starve_release(void *ctx, void *p, size_t size) { alloc_default()->release(ctx, p, size); }

static void test_no_memory(void **state)
{
    static const lath_allocator starving = {NULL, starve_alloc, starve_resize, starve_release};
    size_t failed = 0;
    (void)state;
    for (size_t k = 0;; k++) {
        reasoning r;
        left = k;
        const lath_status st = reasoning_init(&r, &starving, plain, &think, false, -1, &err);
        left = SIZE_MAX;
        reasoning_deinit(&r);
        if (st == LATH_OK) break;
        assert_int_equal(st, LATH_ERR_NOMEM);
        failed++;
    }
    assert_true(failed > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),   cmocka_unit_test(test_special),  cmocka_unit_test(test_budget),
        cmocka_unit_test(test_grammar), cmocka_unit_test(test_refusals), cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
