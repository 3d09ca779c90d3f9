/* SPDX-License-Identifier: Apache-2.0
 * test_grammar.c: text grammars and the automaton: which texts fit, byte by byte; what is refused, with its line; limits; masks of tokens against
 * each token tried by itself; failing allocations. */
#include "support/test.h"

#include "engine/grammar.h"

static lath_error err;

static grammar *open_text(const char *text)
{
    grammar *g;
    assert_ok(grammar_open_text(alloc_default(), "g", text, strlen(text), &g, &err), err);
    return g;
}

/* -1: no text begins so; 0: it may go on; 1: it fits. */
static int read_all(const grammar *g, const char *s, size_t n)
{
    grammar_run r;
    uint32_t state;
    assert_ok(grammar_run_init(&r, g, alloc_default(), &err), err);
    assert_ok(grammar_run_begin(&r, &state, &err), err);
    for (size_t i = 0; i < n && state; i++) {
        const lath_status st = grammar_run_step(&r, state, g->class_of[(uint8_t)s[i]], &state, &err);
        if (st == LATH_ERR_LIMIT && r.full) {
            assert_ok(grammar_run_forget(&r, &state, &err), err);
            assert_ok(grammar_run_step(&r, state, g->class_of[(uint8_t)s[i]], &state, &err), err);
        } else {
            assert_ok(st, err);
        }
    }
    const int result = state == 0 ? -1 : r.states[state].complete;
    grammar_run_deinit(&r);
    return result;
}

/* Each row: a grammar, texts that fit, "" (that is all), texts that do not. A text that fits behind '>' is a beginning only. */
static void test_texts(void **state)
{
    (void)state;
    static const struct {
        const char *grammar, *good[8], *bad[8];
    } rows[] = {
        {"root ::= \"yes\" | \"no\"", {"yes", "no", ">y", ">n"}, {"yess", "x", "noo"}},
        {"root ::= a \"c\"\na ::= \"a\" | \"b\" b\nb ::= \"x\"*", {"ac", "bc", "bxxc", ">bxx"}, {"c", "axc"}},
        {"# comment\nroot ::= # behind\n  [a-c]+ # end", {"a", "abc", ">"}, {"d", "abd"}},
        {"root ::= [^a-c\\n]",
         {"d", "\xC3\xA9", ">\xC3", "\xF4\x8F\xBF\xBF", "\x01"},
         {"a", "\n", "\x80", "\xC0", "\xED\xA0\x80", "\xF4\x90"}},
        {"root ::= .", {"a", "\n", "\xE4\xB8\xAD", ">\xE0\xA0"}, {"\xE0\x80", "\xFF", "ab"}},
        {"root ::= \"\\x41\\u00e9\\U0001F600\\\"\\\\\\n\"", {"A\xC3\xA9\xF0\x9F\x98\x80\"\\\n"}, {"a"}},
        {"root ::= [\\]\\-\\\\^]", {"]", "-", "\\", "^"}, {"a"}},
        {"root ::= [a-]", {"a", "-"}, {"b"}},
        {"root ::= \"a\"{3}", {"aaa", ">aa"}, {"aaaa"}},
        {"root ::= \"a\"{2,} \"b\"", {"aab", "aaaaaab"}, {"ab"}},
        {"root ::= \"ab\"{,2}", {">", "ab", "abab"}, {"ababa"}},
        {"root ::= (\"a\" | \"bc\"){2,3} \"!\"", {"aa!", "bca!", "bcbcbc!"}, {"a!", "aaaa"}},
        {"root ::= \"a\"? \"b\"* \"c\"+", {"c", "ac", "abbcc", ">a"}, {"ab!", "aa"}},
        {"root ::= ((\"a\"*)*)*", {">", "aaa"}, {"b"}},
        {"root ::= (\"a\"?){2,4}", {">", "a", "aaaa"}, {"aaaaa"}},
        {"root ::= (\"a\"*){3,} \"b\"", {"b", "aaab"}, {"c"}},
        {"root ::= \"(\" root \")\" | \"\"", {">", "()", "((()))", ">(("}, {"(]", "())"}},
        {"root ::= e\ne ::= t (\"+\" t)*\nt ::= [0-9] | \"(\" e \")\"",
         {"1", "1+2", "(1+2)+(3)", ">(1"},
         {"+", "1++", "1)"}},
        /* a branch that never ends is left out */
        {"root ::= \"a\" never | \"b\"\nnever ::= \"x\" never", {"b"}, {"a"}},
        {"root ::= \"b\" never*\nnever ::= \"x\" never", {"b"}, {"bx"}},
        /* nothing at all */
        {"root ::= ", {">"}, {"a"}},
        {"root ::= \"\" | \"a\"", {">", "a"}, {"aa"}},
        /* the first text is "" which fits */
        {"a-b_1 ::= \"x\"\nroot ::= a-b_1 a-b_1", {"xx"}, {"x!"}},
        {"root::=\"a\"b::=\"c\"", {"a"}, {"ac"}},
        /* a rule goes on over lines, up to the next name */
        {"root ::= \"a\"\n  | \"b\"\n\n  | c\nc ::= \"c\"", {"a", "b", "c"}, {"d"}},
        {"root ::= \"\\u4e2d\"\r\n", {"\xE4\xB8\xAD"}, {"\xE4\xB8\xAE"}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        grammar *g = open_text(rows[i].grammar);
        for (size_t k = 0; k < 8 && rows[i].good[k]; k++) {
            const char *s = rows[i].good[k];
            const bool part = *s == '>';
            const int got = read_all(g, s + part, strlen(s + part));
            if (got < 0 || (!part && got != 1)) fail_msg("row %zu: \"%s\" should fit (%d)", i, s, got);
        }
        for (size_t k = 0; k < 8 && rows[i].bad[k]; k++) {
            if (read_all(g, rows[i].bad[k], strlen(rows[i].bad[k])) >= 0)
                fail_msg("row %zu: \"%s\" should not fit", i, rows[i].bad[k]);
        }
        grammar_close(g);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *grammar, *msg;
        lath_status st;
    } rows[] = {
        {"", "g: there is no rule \"root\"", LATH_ERR_INPUT},
        {"a ::= \"x\"", "g: there is no rule \"root\"", LATH_ERR_INPUT},
        {"root ::= a\n\n b", "g: line 1: there is no rule \"a\"", LATH_ERR_INPUT},
        {"root ::= \"a\"\nroot ::= \"b\"", "g: line 2: rule \"root\" is there already in line 1", LATH_ERR_INPUT},
        {"root ::= \"a", "g: line 1: a literal is not closed", LATH_ERR_INPUT},
        {"root ::= \"a\nb\"", "g: line 1: a literal is not closed", LATH_ERR_INPUT},
        {"root ::=\n [a", "g: line 2: a class is not closed", LATH_ERR_INPUT},
        {"root ::= []", "g: line 1: a class of no characters", LATH_ERR_INPUT},
        {"root ::= [z-a]", "g: line 1: a range of a class runs backwards", LATH_ERR_INPUT},
        {"root ::= (\"a\"", "g: line 1: a group is not closed", LATH_ERR_INPUT},
        {"root ::= \"a\")", "g: line 1: want a rule: name ::= ...", LATH_ERR_INPUT},
        {"root ::= \"a\"{2", "g: line 1: want {m}, {m,}, {,n} or {m,n}", LATH_ERR_INPUT},
        {"root ::= \"a\"{}", "g: line 1: a number is missing in {}", LATH_ERR_INPUT},
        {"root ::= \"a\"{3,2}", "g: line 1: the most repetitions are fewer than the least", LATH_ERR_INPUT},
        {"root ::= \"a\"{99999999999}", "g: line 1: a number of repetitions is over 1000000000", LATH_ERR_INPUT},
        {"root ::= \"\\q\"", "g: line 1: no such escape: ", LATH_ERR_INPUT},
        {"root ::= \"\\x4\"", "g: line 1: an escape wants more hexadecimal digits", LATH_ERR_INPUT},
        {"root ::= \"\\ud800\"", "g: line 1: an escape is no Unicode character", LATH_ERR_INPUT},
        {"root ::= \"\\U00110000\"", "g: line 1: an escape is no Unicode character", LATH_ERR_INPUT},
        {"root ::= \"\xFF\"", "g: line 1: text is not UTF-8", LATH_ERR_INPUT},
        {"root ::= *", "g: line 1: want a rule: name ::= ...", LATH_ERR_INPUT},
        {"hello", "g: line 1: want a rule: name ::= ...", LATH_ERR_INPUT},
        {"root ::= root \"a\" | \"b\"",
         "g: rule \"root\" comes back to itself before anything is read (left recursion)", LATH_ERR_INPUT},
        {"root ::= \"x\" a\na ::= b? c\nb ::= \"b\"\nc ::= a | \"c\"", "left recursion", LATH_ERR_INPUT},
        {"root ::= (root \"a\")* \"b\"", "left recursion", LATH_ERR_INPUT},
        {"root ::= root", "g: no text can ever fit: every way goes on without end", LATH_ERR_INPUT},
        {"root ::= \"a\" root", "g: no text can ever fit: every way goes on without end", LATH_ERR_INPUT},
        {"root ::= (\"a\"?){2,5000}", "g: what may be empty is repeated up to 5000 times, at most 256", LATH_ERR_LIMIT},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        grammar *g;
        const lath_status st =
            grammar_open_text(alloc_default(), "g", rows[i].grammar, strlen(rows[i].grammar), &g, &err);
        assert_null(g);
        if (st != rows[i].st || err.status != st || !strstr(err.msg, rows[i].msg))
            fail_msg("row %zu: status %d: \"%s\"", i, (int)st, err.msg);
    }
}

static void test_limits(void **state)
{
    (void)state;
    static char text[1 << 21];
    grammar *g;
    memset(text, '(', 500);
    memcpy(text, "root ::= ", 9);
    assert_int_equal(grammar_open_text(alloc_default(), "g", text, 500, &g, &err), LATH_ERR_LIMIT);
    assert_non_null(strstr(err.msg, "nested deeper than 200"));
    memset(text, ' ', sizeof(text));
    assert_int_equal(grammar_open_text(alloc_default(), "g", text, sizeof(text), &g, &err), LATH_ERR_LIMIT);
    size_t n = (size_t)sprintf(text, "root ::= \"\"\n");
    for (int i = 0; i < GRAMMAR_RULES_MOST; i++) n += (size_t)sprintf(text + n, "r%x::=\"\"\n", (unsigned)i);
    assert_int_equal(grammar_open_text(alloc_default(), "g", text, n, &g, &err), LATH_ERR_LIMIT);
    assert_non_null(strstr(err.msg, "more than 65536 rules"));

    /* Two ways after every byte, none of them the same: too many at once is an error, not a wait. */
    grammar_run r;
    uint32_t at;
    lath_status st = LATH_OK;
    g = open_text("root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"x\"");
    assert_ok(grammar_run_init(&r, g, alloc_default(), &err), err);
    assert_ok(grammar_run_begin(&r, &at, &err), err);
    for (int i = 0; i < 20 && st == LATH_OK; i++) st = grammar_run_step(&r, at, g->class_of['a'], &at, &err);
    assert_int_equal(st, LATH_ERR_LIMIT);
    assert_false(r.full);
    assert_non_null(strstr(err.msg, "ways"));
    grammar_run_deinit(&r);
    grammar_close(g);
}

/* Text deeper than the limit is not begun; what was begun can always be ended. */
static void test_depth(void **state)
{
    (void)state;
    static char text[3 * GRAMMAR_DEPTH_MOST];
    grammar *g = open_text("root ::= \"(\" (root | \"ab\" root \"c\")? \")\"");
    memset(text, '(', sizeof(text));
    size_t deep = 0;
    while (deep < sizeof(text) && read_all(g, text, deep + 1024) >= 0) deep += 1024;
    while (read_all(g, text, deep + 1) >= 0) deep++;
    assert_true(deep > GRAMMAR_DEPTH_MOST / 2 && deep <= GRAMMAR_DEPTH_MOST + 1);
    memset(text + deep, ')', deep);
    assert_int_equal(read_all(g, text, 2 * deep), 1);
    grammar_close(g);
    /* Recursion in last position does not nest. */
    g = open_text("root ::= \"(\" root | \"!\"");
    memset(text, '(', sizeof(text));
    text[sizeof(text) - 1] = '!';
    assert_int_equal(read_all(g, text, sizeof(text)), 1);
    grammar_close(g);
}

/* More states than are kept: counted repetitions make one for each count. */
static void test_forget(void **state)
{
    (void)state;
    enum { N = 2 * GRAMMAR_STATES_MOST + 100 };
    static char text[N + 1];
    grammar *g = open_text("root ::= \"a\"{70000,1000000} \"b\"");
    memset(text, 'a', N);
    text[N] = 'b';
    assert_int_equal(read_all(g, text, N), 0);
    assert_int_equal(read_all(g, text, N + 1), -1);
    grammar_close(g);
    g = open_text("root ::= \"a\"{65000,65636} \"b\"");
    assert_int_equal(read_all(g, text, N + 1), 1);
    grammar_close(g);
    g = open_text("root ::= \"a\"{2,65635} \"b\"");
    assert_int_equal(read_all(g, text, N), -1);
    grammar_close(g);
}

/* -------------------------------------------------------------------------------------------------------------- tokens */

static const char *const words[] = {
    "a",    "b",    "ab",       "abc",        "aa", "aaa", "c",    "ca", " ",     " a",
    "\xC3", "\xA9", "\xC3\xA9", "\xC3\xA9 a", "",   NULL,  "</s>", "ab", "b\xC3", "abcabcabcabc",
};
enum { N_WORDS = sizeof(words) / sizeof(words[0]), END = 16, N_LOGITS = 40 };

static token_trie *make_trie(const lath_allocator *a, lath_status *st)
{
    tok_string s[N_WORDS];
    token_trie *t;
    for (int i = 0; i < N_WORDS; i++) s[i] = (tok_string){words[i], words[i] ? strlen(words[i]) : 0};
    *st = token_trie_create_of(s, N_WORDS, a, &t, &err);
    return t;
}

static bool has(const uint32_t *mask, int32_t id) { return mask[id / 32] >> (id % 32) & 1; }

/* Texts of tokens, all of them up to a length; every mask against reading the text with every token behind it. */
static void explore(const grammar *g, grammar_match *m, char *text, size_t n, int32_t *ids, size_t n_ids, int *checked)
{
    const uint32_t *mask;
    uint32_t copy[2];
    const bool complete = read_all(g, text, n) == 1;
    assert_ok(grammar_match_reset(m, &err), err);
    for (size_t i = 0; i < n_ids; i++) assert_ok(grammar_match_accept(m, ids[i], &err), err);
    assert_int_equal(grammar_match_complete(m), complete);
    assert_ok(grammar_match_mask(m, &mask, &err), err);
    memcpy(copy, mask, sizeof(copy));
    for (int32_t id = 0; id < N_LOGITS; id++) {
        const char *word = id < N_WORDS ? words[id] : NULL;
        bool want = word && *word && id != END;
        if (want) {
            memcpy(text + n, word, strlen(word));
            want = read_all(g, text, n + strlen(word)) >= 0;
        }
        if (id == END) want = complete;
        if (has(copy, id) != want) fail_msg("\"%.*s\": token %d", (int)n, text, (int)id);
        ++*checked;
        if (!want || id == END || n_ids == 4) continue;
        ids[n_ids] = id;
        explore(g, m, text, n + strlen(word), ids, n_ids + 1, checked);
    }
}

static void test_masks(void **state)
{
    (void)state;
    static const char *const grammars[] = {
        "root ::= [ab]* \"c\"?",
        "root ::= \"ab\" (\"c\" | \" a\")+",
        "root ::= [^b]{1,3}",
        "root ::= \"\xC3\xA9\"* \" \" [abc]*",
        "root ::= \"a\" root \"c\" | \"b\"",
        "root ::= [ab \xC3\xA9]{2,5}",
    };
    lath_status st;
    token_trie *t = make_trie(alloc_default(), &st);
    assert_ok(st, err);
    for (size_t i = 0; i < sizeof(grammars) / sizeof(grammars[0]); i++) {
        grammar *g = open_text(grammars[i]);
        grammar_match *m;
        const int32_t end = END;
        char text[128];
        int32_t ids[8];
        int checked = 0;
        assert_ok(grammar_match_create(g, t, &end, 1, N_LOGITS, alloc_default(), &m, &err), err);
        explore(g, m, text, 0, ids, 0, &checked);
        assert_true(checked >= 2 * N_LOGITS);
        grammar_match_destroy(m);
        grammar_close(g);
    }
    token_trie_destroy(t);
}

static void test_match(void **state)
{
    (void)state;
    lath_status st;
    const int32_t end = END, out = N_LOGITS;
    const uint32_t *mask;
    token_trie *t = make_trie(alloc_default(), &st);
    grammar *g = open_text("root ::= \"ab\" | \"abcd\" | \"</s>x\"");
    grammar_match *m;
    assert_ok(st, err);
    assert_int_equal(grammar_match_create(g, t, &out, 1, N_LOGITS, alloc_default(), &m, &err), LATH_ERR_USAGE);
    assert_int_equal(grammar_match_create(g, t, NULL, 0, 0, alloc_default(), &m, &err), LATH_ERR_USAGE);
    assert_ok(grammar_match_create(g, t, &end, 1, N_LOGITS, alloc_default(), &m, &err), err);
    assert_ok(grammar_match_mask(m, &mask, &err), err);
    assert_false(has(mask, END)); /* though "</s>x" is a text */
    assert_int_equal(grammar_match_accept(m, END, &err), LATH_ERR_INPUT);
    assert_int_equal(grammar_match_accept(m, 1, &err), LATH_ERR_INPUT);
    assert_string_equal(err.msg, "grammar: token 1 may not come here");
    assert_int_equal(grammar_match_accept(m, 14, &err), LATH_ERR_INPUT);
    assert_int_equal(grammar_match_accept(m, 15, &err), LATH_ERR_INPUT);
    assert_int_equal(grammar_match_accept(m, -1, &err), LATH_ERR_INPUT);
    assert_int_equal(grammar_match_accept(m, N_WORDS, &err), LATH_ERR_INPUT);
    assert_ok(grammar_match_accept(m, 2, &err), err);
    assert_true(grammar_match_complete(m) && !grammar_match_ended(m));
    assert_ok(grammar_match_accept(m, END, &err), err);
    assert_true(grammar_match_ended(m));
    assert_int_equal(grammar_match_mask(m, &mask, &err), LATH_ERR_USAGE);
    assert_int_equal(grammar_match_accept(m, 0, &err), LATH_ERR_USAGE);
    assert_ok(grammar_match_reset(m, &err), err);
    assert_ok(grammar_match_accept(m, 3, &err), err);
    /* "abc" wants a "d", and no token has one. */
    assert_int_equal(grammar_match_mask(m, &mask, &err), LATH_ERR_INPUT);
    assert_non_null(strstr(err.msg, "no token for what must come next"));
    grammar_match_destroy(m);
    grammar_close(g);
    /* Without an end token a text that can only be over has an empty mask. */
    g = open_text("root ::= \"ab\"");
    assert_ok(grammar_match_create(g, t, NULL, 0, 3, alloc_default(), &m, &err), err);
    assert_ok(grammar_match_mask(m, &mask, &err), err);
    assert_int_equal(mask[0], 1u << 0 | 1u << 2); /* 17 is "ab", too, but beyond the logits */
    assert_ok(grammar_match_accept(m, 2, &err), err);
    assert_true(grammar_match_ended(m));
    assert_ok(grammar_match_mask(m, &mask, &err), err);
    assert_int_equal(mask[0], 0);
    grammar_match_destroy(m);
    grammar_close(g);
    token_trie_destroy(t);
}

/* -------------------------------------------------------------------------------------------------------------- memory */

typedef struct meter {
    long calls, fail_at, out;
} meter;

static void *meter_alloc(void *ctx, size_t size, size_t align)
{
    meter *m = ctx;
    if (++m->calls == m->fail_at) return NULL;
    void *p = alloc_bytes(alloc_default(), size, align);
    m->out += p != NULL;
    return p;
}

static void meter_release(void *ctx, void *p, size_t size)
{
    ((meter *)ctx)->out--;
    alloc_release(alloc_default(), p, size);
}

static void *meter_resize(void *ctx, void *p, size_t old_size, size_t size, size_t align)
{
    meter *m = ctx;
    if (++m->calls == m->fail_at) return NULL;
    if (!p) m->out++;
    return alloc_resize(alloc_default(), p, old_size, size, align);
}

static lath_status use(const lath_allocator *a)
{
    static const char text[] =
        "root ::= (\"a\" | b){2,9} [^c]* c\nb ::= \"b\" b | \"\xC3\xA9\"\nc ::= \"c\" root \"c\" | \"a\"";
    static const char schema[] =
        "{\"properties\":{\"a\":{\"enum\":[1,\"x\",{\"k\":[null]}]},\"b\":{\"$ref\":\"#\"},\"c\":{\"pattern\":\"^[a-c]+$\"}},\"required\":[\"a\"],"
        "\"additionalProperties\":{\"type\":\"integer\",\"minimum\":-5,\"maximum\":1000}}";
    grammar *g = NULL, *s = NULL;
    grammar_match *m = NULL;
    token_trie *t = NULL;
    const int32_t end = END;
    const uint32_t *mask;
    lath_status st = grammar_open_schema(a, "s", schema, sizeof(schema) - 1, &s, &err);
    if (st != LATH_OK) goto done;
    TRY_DONE(grammar_open_text(a, "g", text, sizeof(text) - 1, &g, &err));
    t = make_trie(a, &st);
    if (st != LATH_OK) goto done;
    TRY_DONE(grammar_match_create(g, t, &end, 1, N_LOGITS, a, &m, &err));
    for (int i = 0; i < 6; i++) {
        TRY_DONE(grammar_match_mask(m, &mask, &err));
        TRY_DONE(grammar_match_accept(m, i < 3 ? 5 : 13, &err));
    }
    st = grammar_match_reset(m, &err);
done:
    grammar_match_destroy(m);
    token_trie_destroy(t);
    grammar_close(g);
    grammar_close(s);
    return st;
}

static void test_no_memory(void **state)
{
    (void)state;
    long fail_at = 1;
    for (lath_status st = LATH_ERR_NOMEM; st != LATH_OK; fail_at++) {
        meter m = {.fail_at = fail_at};
        const lath_allocator a = {&m, meter_alloc, meter_resize, meter_release};
        st = use(&a);
        if (st != LATH_OK && st != LATH_ERR_NOMEM) fail_msg("allocation %ld: status %d: %s", fail_at, (int)st, err.msg);
        assert_int_equal(m.out, 0);
        assert_true(fail_at < 2000);
    }
    assert_true(fail_at > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts), cmocka_unit_test(test_refused),   cmocka_unit_test(test_limits),
        cmocka_unit_test(test_depth), cmocka_unit_test(test_forget),    cmocka_unit_test(test_masks),
        cmocka_unit_test(test_match), cmocka_unit_test(test_no_memory),
    };
    return TEST_RUN(tests);
}
