/* SPDX-License-Identifier: Apache-2.0
 * test_chat_oom.c: every allocation of compiling and rendering a chat template fails once, for the templates of the fuzz corpus: the call reports it, and
 * nothing leaks. */
#include "support/test.h"

#include <dirent.h>

#include "base/file.h"
#include "chat/chat.h"

enum { FILE_MOST = 1 << 20, ALLOCATIONS_MOST = 2000 };

typedef struct meter {
    long calls, fail_at, out; /* out: blocks that are not released */
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
    meter *m = ctx;
    m->out--;
    alloc_release(alloc_default(), p, size);
}

static void *meter_resize(void *ctx, void *p, size_t old_size, size_t size, size_t align)
{
    meter *m = ctx;
    if (++m->calls == m->fail_at) return NULL;
    return alloc_resize(alloc_default(), p, old_size, size, align);
}

static const char variables[] =
    "{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"u\"},{\"role\":\"assistant\",\"content\":\"a\"}],"
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{}}}],\"l\":[3,1,2],\"d\":{\"a\":1},\"t\":\"text\"}";

static lath_status run(const lath_allocator *a, const json_value *v, const buf *text, lath_error *err)
{
    chat_template *t = NULL;
    chat_output out;
    chat_var vars[8];
    chat_input in = {.vars = vars, .has_date = true, .limits = {.max_steps = 20000, .max_memory = 1 << 22}};
    for (const json_value *m = v->u.items.first; m; m = m->next)
        vars[in.n_vars++] = (chat_var){m->key, m, strcmp(m->key, "messages") == 0 ? CHAT_MESSAGES : CHAT_CONTENT};
    chat_output_init(&out, a);
    lath_status st = chat_compile(a, "template", text->data ? text->data : "", text->len, &t, err);
    if (st == LATH_OK) st = chat_render(t, &in, &out, err);
    chat_release(t);
    chat_output_deinit(&out);
    return st;
}

/* How many allocations failed in turn. */
static long torture(const json_value *v, const buf *text, const char *name)
{
    meter m = {0};
    const lath_allocator a = {&m, meter_alloc, meter_resize, meter_release};
    lath_error err = {0};
    const lath_status want = run(&a, v, text, &err);
    const long n = m.calls;
    assert_int_equal(m.out, 0);
    assert_true(n > 0 && n < ALLOCATIONS_MOST);
    for (long i = 1; i <= n; i++) {
        m = (meter){.fail_at = i};
        const lath_status st = run(&a, v, text, &err);
        if (st != LATH_ERR_NOMEM && !(st == want && m.calls < i))
            fail_msg("%s: allocation %ld of %ld: status %d", name, i, n, (int)st);
        if (m.out != 0) fail_msg("%s: allocation %ld of %ld: %ld blocks leak", name, i, n, m.out);
    }
    return n;
}

static void test_templates(void **state)
{
    char dir[1024], path[2048];
    lath_error err = {0};
    arena mem;
    json_value *v;
    buf text;
    long n = 0;
    (void)state;
    arena_init(&mem, alloc_default());
    buf_init(&text, alloc_default(), FILE_MOST);
    assert_ok(json_parse(&mem, "variables", variables, sizeof(variables) - 1, NULL, &v, &err), err);
    snprintf(dir, sizeof(dir), "%s/fuzz/corpus/fuzz_chat", test_data_dir());
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        assert_ok(file_read(&text, path, FILE_MOST, &err), err);
        n += torture(v, &text, e->d_name);
    }
    closedir(d);
    assert_true(n > 200);
    buf_deinit(&text);
    arena_deinit(&mem);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_templates)};
TEST_MAIN(tests)
