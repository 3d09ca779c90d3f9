/* SPDX-License-Identifier: Apache-2.0
 *
 * test_chat_golden.c: templates rendered, against what jinja2 made of them under transformers' environment (tests/golden/chat, made by
 * tools/ref/make_chat_goldens.py). A line of a .jsonl file is a case:
 *
 *     {"name":..., "template": TEXT or "file": NAME beside it, "vars": {...}, "date": seconds, "want": TEXT}     or "error": a status
 *     "or": "unsupported": where the outcome is another, that status is no difference, but counted
 *     {"define": NAME, "vars": {...}}     variables that cases behind it take by "given": NAME
 *
 * With arguments: these files instead; every case that differs is printed (tools/ref/check_templates.py).
 */
#include "support/test.h"

#include "base/file.h"
#include "base/json.h"
#include "chat/chat.h"

typedef struct cases {
    const char *path;
    arena mem, shared_mem;
    const json_value *sets[512];
    size_t n_sets;
    size_t n, n_wrong, n_refused;
    bool verbose;
    chat_template *last; /* of the file named last_file */
    char last_file[512];
} cases;

static const char *string_of(const json_value *v, const char *key)
{
    const json_value *s = json_get(v, key);
    return s && s->kind == JSON_STRING ? s->u.string.data : NULL;
}

static lath_status compile_file(cases *c, const char *file, chat_template **out, lath_error *err)
{
    char path[1024];
    buf text;
    const char *slash = strrchr(c->path, '/');
    if (c->last && strcmp(c->last_file, file) == 0) {
        *out = c->last;
        return LATH_OK;
    }
    chat_release(c->last);
    c->last = NULL;
    if (file[0] == '/' || !slash)
        snprintf(path, sizeof(path), "%s", file);
    else
        snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - c->path), c->path, file);
    buf_init(&text, alloc_default(), 1 << 22);
    lath_status st = file_read(&text, path, 1 << 22, err);
    if (st == LATH_OK) st = chat_compile(alloc_default(), file, text.data ? text.data : "", text.len, &c->last, err);
    buf_deinit(&text);
    snprintf(c->last_file, sizeof(c->last_file), "%s", file);
    *out = c->last;
    return st;
}

static const json_value *variables_of(const cases *c, const json_value *v)
{
    const char *given = string_of(v, "given");
    if (!given) return json_get(v, "vars");
    for (size_t i = 0; i < c->n_sets; i++) {
        if (strcmp(string_of(c->sets[i], "define"), given) == 0) return json_get(c->sets[i], "vars");
    }
    fail_msg("%s: no variables \"%s\"", c->path, given);
    return NULL;
}

static lath_status render_case(cases *c, const json_value *v, chat_output *out, lath_error *err)
{
    chat_template *t = NULL;
    chat_var vars[64];
    chat_input in = {.vars = vars};
    const char *file = string_of(v, "file");
    const json_value *text = json_get(v, "template"), *date = json_get(v, "date");
    /* a copy without a byte behind it, so that a sanitizer sees reading past the end */
    char *copy = NULL;
    if (!file) {
        copy = malloc(text->u.string.len ? text->u.string.len : 1);
        assert_non_null(copy);
        memcpy(copy, text->u.string.data, text->u.string.len);
    }
    lath_status st = file ? compile_file(c, file, &t, err)
                          : chat_compile(alloc_default(), "template", copy, text->u.string.len, &t, err);
    free(copy);
    if (st != LATH_OK) return st;
    for (const json_value *m = variables_of(c, v)->u.items.first; m; m = m->next) {
        assert_true(in.n_vars < 64);
        vars[in.n_vars++] = (chat_var){m->key, m, strcmp(m->key, "messages") == 0 ? CHAT_MESSAGES : CHAT_CONTENT};
    }
    in.has_date = date != NULL;
    if (date) in.date = date->u.integer;
    st = chat_render(t, &in, out, err);
    if (!file) chat_release(t);
    return st;
}

static bool is_status(lath_status st, const char *name)
{
    static const struct {
        const char *name;
        lath_status st;
    } rows[] = {{"format", LATH_ERR_FORMAT},
                {"input", LATH_ERR_INPUT},
                {"unsupported", LATH_ERR_UNSUPPORTED},
                {"limit", LATH_ERR_LIMIT}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) == 0) return rows[i].st == st;
    }
    fail_msg("no such status: %s", name);
    return false;
}

static void check_case(cases *c, const char *line, size_t n, uint32_t number)
{
    lath_error err = {0};
    json_value *v = NULL;
    chat_output out;
    const json_options o = {.max_depth = 256};
    assert_ok(json_parse(&c->mem, c->path, line, n, &o, &v, &err), err);
    if (json_get(v, "define")) {
        assert_ok(json_parse(&c->shared_mem, c->path, line, n, &o, &v, &err), err);
        assert_true(c->n_sets < sizeof(c->sets) / sizeof(c->sets[0]));
        c->sets[c->n_sets++] = v;
        return;
    }
    chat_output_init(&out, alloc_default());
    const lath_status st = render_case(c, v, &out, &err);
    const char *error = string_of(v, "error"), *says = string_of(v, "says"), *name = string_of(v, "name");
    const json_value *want = json_get(v, "want");
    bool ok;
    if (error)
        ok = is_status(st, error) && strstr(err.msg, "line ") && (!says || strstr(err.msg, says));
    else
        ok = st == LATH_OK && want->u.string.len == out.text.len &&
             (out.text.len == 0 || memcmp(out.text.data, want->u.string.data, out.text.len) == 0);
    if (!ok && st == LATH_ERR_UNSUPPORTED && string_of(v, "or")) {
        c->n_refused++;
        ok = true;
    }
    c->n++;
    if (!ok) {
        c->n_wrong++;
        fprintf(stderr, "%s: line %u: %s: %s\n", c->path, number, name ? name : "?",
                st == LATH_OK ? (error ? "no error" : "another text") : err.msg);
        if (c->verbose || c->n_wrong < 4)
            fprintf(stderr, "--- got\n%s\n--- want\n%s\n---\n", st == LATH_OK ? buf_cstr(&out.text) : err.msg,
                    error ? error : want->u.string.data);
    }
    chat_output_deinit(&out);
    arena_reset(&c->mem);
}

/* How many cases differ. */
static size_t check_file(const char *path, bool verbose)
{
    lath_error err = {0};
    cases c = {.path = path, .verbose = verbose};
    buf text;
    arena_init(&c.mem, alloc_default());
    arena_init(&c.shared_mem, alloc_default());
    buf_init(&text, alloc_default(), (size_t)1 << 30);
    assert_ok(file_read(&text, path, (size_t)1 << 30, &err), err);
    uint32_t number = 0;
    for (size_t i = 0; i < text.len;) {
        const char *end = memchr(text.data + i, '\n', text.len - i);
        const size_t n = end ? (size_t)(end - text.data) - i : text.len - i;
        if (n) check_case(&c, text.data + i, n, ++number);
        i += n + 1;
    }
    fprintf(stderr, "%s: %zu cases, %zu differ, %zu refused\n", path, c.n, c.n_wrong, c.n_refused);
    chat_release(c.last);
    buf_deinit(&text);
    arena_deinit(&c.mem);
    arena_deinit(&c.shared_mem);
    assert_true(c.n > 0);
    return c.n_wrong;
}

static void check_committed(const char *name)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/golden/chat/%s", test_data_dir(), name);
    assert_int_equal(check_file(path, false), 0);
}

static void test_features(void **state)
{
    (void)state;
    check_committed("features.jsonl");
}

static void test_models(void **state)
{
    (void)state;
    check_committed("models.jsonl");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_features), cmocka_unit_test(test_models)};
    size_t wrong = 0;
    if (argc < 2) return TEST_RUN(tests);
    for (int i = 1; i < argc; i++) wrong += check_file(argv[i], true);
    return wrong ? 1 : 0;
}
