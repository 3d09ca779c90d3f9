/* SPDX-License-Identifier: Apache-2.0
 * test_tok_pairs.c: pairs, truncation and overflowing parts, against what the reference package made of the same texts
 * (pairs.jsonl, made by tools/ref/make_tok_pairs.py), text without special tokens parsed, and bad options.
 */
#include "support/test.h"

#include "base/file.h"
#include "base/json.h"
#include "tok/tok.h"

enum { TEXTS = 2 };

typedef struct run_state {
    tok *t;
    arena scratch;
    tok_parts parts;
    size_t n_cases, n_refused, n_files;
} run_state;

static int64_t int_of(const json_value *v, const char *key)
{
    const json_value *m = json_get(v, key);
    assert_non_null(m);
    assert_int_equal(m->kind, JSON_INT);
    return m->u.integer;
}

static bool bool_of(const json_value *v, const char *key)
{
    const json_value *m = json_get(v, key);
    assert_non_null(m);
    return m->u.boolean;
}

static void check_part(const run_state *r, const json_value *want, size_t part, uint32_t line)
{
    const tok_parts *p = &r->parts;
    const json_value *id = json_get(want, "ids")->u.items.first, *type = json_get(want, "types")->u.items.first,
                     *offset = json_get(want, "offsets")->u.items.first, *mask = json_get(want, "mask")->u.items.first;
    size_t i = p->begin[part], e = p->begin[part + 1];
    for (; id && i < e; i++) {
        if (p->e.ids[i] != id->u.integer || p->e.type_ids[i] != type->u.integer ||
            p->special_mask[i] != mask->u.integer || p->e.offsets[2 * i] != offset->u.integer ||
            p->e.offsets[2 * i + 1] != offset->next->u.integer)
            fail_msg("line %u: part %zu: token %zu differs", line, part, i - p->begin[part]);
        assert_int_equal(p->source[i] < 0, p->special_mask[i]);
        id = id->next;
        type = type->next;
        mask = mask->next;
        offset = offset->next->next;
    }
    if (id || i < e) fail_msg("line %u: part %zu has %zu tokens", line, part, e - p->begin[part]);
}

static void check_case(run_state *r, const json_value *v, uint32_t line)
{
    static const char *const strategies[] = {"longest_first", "only_first", "only_second"};
    const json_value *texts = json_get(v, "texts"), *want = json_get(v, "parts");
    const char *s[TEXTS];
    size_t lens[TEXTS], n = 0, k = 0;
    lath_error err = {0};
    tok_pair_options o = {bool_of(v, "special"),
                          bool_of(v, "parse"),
                          bool_of(v, "left"),
                          TOK_LONGEST_FIRST,
                          int_of(v, "max"),
                          int_of(v, "stride"),
                          false};
    while (!json_is_string(json_get(v, "strategy"), strategies[k])) assert_true(++k < 3);
    o.truncation = (tok_truncation)k;
    for (const json_value *t = texts->u.items.first; t; t = t->next, n++) {
        assert_true(n < TEXTS);
        s[n] = t->u.string.data;
        lens[n] = t->u.string.len;
    }
    arena_reset(&r->scratch);
    lath_status st = tok_encode_parts(r->t, &r->scratch, s, lens, n, &o, &r->parts, &err);
    if (!want) { /* the reference refuses */
        if (st != LATH_ERR_USAGE && st != LATH_ERR_WINDOW) fail_msg("line %u: status %d", line, (int)st);
        r->n_refused++;
        return;
    }
    assert_ok(st, err);
    size_t part = 0;
    for (const json_value *m = want->u.items.first; m; m = m->next, part++) {
        if (part == r->parts.n_parts) fail_msg("line %u: only %zu parts", line, part);
        check_part(r, m, part, line);
    }
    if (part != r->parts.n_parts) fail_msg("line %u: %zu parts, want %zu", line, r->parts.n_parts, part);
    assert_int_equal(r->parts.begin[part], r->parts.e.n);
    assert_int_equal(r->parts.e.n_untruncated, int_of(v, "whole"));
    r->n_cases++;
    /* the first part alone */
    o.first_only = true;
    arena_reset(&r->scratch);
    assert_ok(tok_encode_parts(r->t, &r->scratch, s, lens, n, &o, &r->parts, &err), err);
    assert_int_equal(r->parts.n_parts, 1);
    assert_int_equal(r->parts.begin[1], r->parts.e.n);
    assert_int_equal(r->parts.e.n_untruncated, int_of(v, "whole"));
    check_part(r, want->u.items.first, 0, line);
}

static void check_line(run_state *r, const char *s, size_t n, uint32_t line)
{
    lath_error err = {0};
    arena tree;
    json_value *v;
    arena_init(&tree, alloc_default());
    assert_ok(json_parse(&tree, "pairs.jsonl", s, n, NULL, &v, &err), err);
    const json_value *file = json_get(v, "tokenizer");
    if (file) {
        if (r->t) tok_parts_release(r->t, &r->parts);
        tok_close(r->t);
        assert_ok(tok_open_json(alloc_default(), "tokenizer", file->u.string.data, file->u.string.len, &r->t, &err),
                  err);
        r->n_files++;
    } else {
        check_case(r, v, line);
    }
    arena_deinit(&tree);
}

static void test_reference(void **state)
{
    run_state r = {0};
    lath_error err = {0};
    buf text;
    uint32_t line = 0;
    char path[4096];
    (void)state;
    snprintf(path, sizeof(path), "%s/unit/tok/pairs.jsonl", test_data_dir());
    buf_init(&text, alloc_default(), 1 << 26);
    arena_init(&r.scratch, alloc_default());
    assert_ok(file_read(&text, path, 1 << 26, &err), err);
    for (size_t i = 0; i < text.len;) {
        const char *end = memchr(text.data + i, '\n', text.len - i);
        size_t n = end ? (size_t)(end - (text.data + i)) : text.len - i;
        check_line(&r, text.data + i, n, ++line);
        i += n + 1;
    }
    assert_true(r.n_files >= 4);
    assert_true(r.n_cases >= 250);
    assert_true(r.n_refused >= 10);
    tok_parts_release(r.t, &r.parts);
    tok_close(r.t);
    arena_deinit(&r.scratch);
    buf_deinit(&text);
}

/* ----------------------------------------------------------------------------------------------------------- by hand */

static const char words[] =
    "{\"version\":\"1.0\",\"added_tokens\":["
    "{\"id\":0,\"content\":\"[UNK]\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"
    "\"special\":true},"
    "{\"id\":9,\"content\":\"<END>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":true,"
    "\"special\":true},"
    "{\"id\":10,\"content\":\"<note>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":true,"
    "\"special\":false}],"
    "\"normalizer\":{\"type\":\"Lowercase\"},\"pre_tokenizer\":{\"type\":\"Whitespace\"},\"model\":{\"type\":"
    "\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":9,"
    "\"vocab\":{\"[UNK]\":0,\"a\":1,\"b\":2,\"c\":3,\"end\":4,\"<\":5,\">\":6,\"note\":7,\"unk\":8}}}";

typedef struct hand {
    tok *t;
    arena scratch;
    tok_parts p;
    lath_error err;
} hand;

static hand open_words(void)
{
    hand h = {0};
    assert_ok(tok_open_json(alloc_default(), "words", words, sizeof(words) - 1, &h.t, &h.err), h.err);
    arena_init(&h.scratch, alloc_default());
    return h;
}

static void close_words(hand *h)
{
    tok_parts_release(h->t, &h->p);
    tok_close(h->t);
    arena_deinit(&h->scratch);
}

static lath_status encode(hand *h, const char *a, const char *b, const tok_pair_options *o)
{
    const char *texts[] = {a, b};
    const size_t lens[] = {strlen(a), b ? strlen(b) : 0};
    return tok_encode_parts(h->t, &h->scratch, texts, lens, b ? 2 : 1, o, &h->p, &h->err);
}

/* Content of users is encoded without special tokens parsed: no spelling of one may give its id, while added tokens
 * that are not special stay tokens. */
static void test_no_forgery(void **state)
{
    static const char *const attempts[] = {"<END>",      "<end>",        "<EnD>", "a<END>b", " <END> ", "<END><END>",
                                           "[UNK]<end>", "<\xC4\xB0ND>", "<END",  "END>",    "<<END>>"};
    hand h = open_words();
    tok_pair_options o = {.add_special = true, .parse_special = false};
    (void)state;
    for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
        assert_ok(encode(&h, attempts[i], attempts[i], &o), h.err);
        assert_true(h.p.e.n > 0);
        for (size_t k = 0; k < h.p.e.n; k++) assert_int_not_equal(h.p.e.ids[k], 9);
        tok_encode_options plain = {true, false, 0};
        assert_ok(tok_encode(h.t, &h.scratch, attempts[i], strlen(attempts[i]), &plain, &h.p.texts, &h.err), h.err);
        for (size_t k = 0; k < h.p.texts.n; k++) assert_int_not_equal(h.p.texts.ids[k], 9);
    }
    assert_ok(encode(&h, "a <Note> b", NULL, &o), h.err);
    static const int32_t note[] = {1, 10, 2};
    assert_int_equal(h.p.e.n, 3);
    assert_memory_equal(h.p.e.ids, note, sizeof(note));
    o.parse_special = true;
    assert_ok(encode(&h, "a <EnD> b", NULL, &o), h.err);
    static const int32_t parsed[] = {1, 9, 2};
    assert_int_equal(h.p.e.n, 3);
    assert_memory_equal(h.p.e.ids, parsed, sizeof(parsed));
    assert_int_equal(h.p.special_mask[1], 0); /* as in the reference: it was in the text */
    close_words(&h);
}

/* Models that have the special tokens among their pieces, one of them of one character. */
static void test_no_forgery_by_model(void **state)
{
    static const char file[] =
        "{\"added_tokens\":["
        "{\"id\":0,\"content\":\"<unk>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":"
        "false,\"special\":true},"
        "{\"id\":1,\"content\":\"<s>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"
        "\"special\":true},"
        "{\"id\":6,\"content\":\"~\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"
        "\"special\":true}],"
        "\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"<s>\",0],[\"<\",-3],[\"s\",-3],"
        "[\">\",-3],[\"a\",-2],[\"~\",-1],[\"s>\",-1]]}}";
    static const int32_t parsed[] = {5, 1, 5, 6}, plain[] = {5, 2, 7, 5, 0};
    static const uint32_t offsets[] = {0, 1, 1, 2, 2, 4, 4, 5, 5, 6};
    hand h = {0};
    tok_pair_options o = {.parse_special = true};
    (void)state;
    assert_ok(tok_open_json(alloc_default(), "forged", file, sizeof(file) - 1, &h.t, &h.err), h.err);
    arena_init(&h.scratch, alloc_default());
    assert_ok(encode(&h, "a<s>a~", NULL, &o), h.err);
    assert_int_equal(h.p.e.n, 4);
    assert_memory_equal(h.p.e.ids, parsed, sizeof(parsed));
    o.parse_special = false;
    assert_ok(encode(&h, "a<s>a~", NULL, &o), h.err);
    assert_int_equal(h.p.e.n, 5);
    assert_memory_equal(h.p.e.ids, plain, sizeof(plain));
    assert_memory_equal(h.p.e.offsets, offsets, sizeof(offsets));
    assert_ok(encode(&h, "<unk>", NULL, &o), h.err);
    close_words(&h);
}

static void test_errors(void **state)
{
    hand h = open_words();
    tok_pair_options o = {.add_special = true, .parse_special = true};
    (void)state;
    assert_int_equal(encode(&h, "a", "b \xFF", &o), LATH_ERR_INPUT);
    assert_int_equal(h.err.item, 1);
    assert_int_equal(encode(&h, "\xFF", "b", &o), LATH_ERR_INPUT);
    assert_int_equal(h.err.item, 0);
    o.max_tokens = 2;
    o.truncation = TOK_ONLY_SECOND;
    assert_int_equal(encode(&h, "a b c", NULL, &o), LATH_ERR_USAGE);
    assert_ok(encode(&h, "a b", NULL, &o), h.err);
    assert_int_equal(encode(&h, "a b c", "a", &o), LATH_ERR_WINDOW);
    o.truncation = TOK_LONGEST_FIRST;
    o.stride = 2;
    assert_int_equal(encode(&h, "a b c", NULL, &o), LATH_ERR_USAGE);
    o.stride = -1;
    assert_int_equal(encode(&h, "a b c", NULL, &o), LATH_ERR_USAGE);
    o.stride = 0;
    o.max_tokens = -5;
    assert_int_equal(encode(&h, "a b c", NULL, &o), LATH_ERR_USAGE);
    o.max_tokens = 1;
    assert_ok(encode(&h, "", "", &o), h.err);
    assert_int_equal(h.p.n_parts, 1);
    assert_int_equal(h.p.e.n, 0);
    close_words(&h);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_no_forgery),
        cmocka_unit_test(test_no_forgery_by_model),
        cmocka_unit_test(test_errors),
    };
    return TEST_RUN(tests);
}
