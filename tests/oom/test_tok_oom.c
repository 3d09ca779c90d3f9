/* SPDX-License-Identifier: Apache-2.0
 * test_tok_oom.c: every allocation of loading a tokenizer, encoding, cutting, decoding and streaming fails once, for the
 * small files of the fuzz corpus, which hold every component: the call reports it (or can do without, as caches do), and
 * nothing leaks.
 */
#include "support/test.h"

#include <dirent.h>

#include "base/file.h"
#include "tok/tok.h"

enum { FILE_MOST = 1 << 20, ALLOCATIONS_MOST = 4000 };

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

static lath_status encode_and_decode(const tok *t, const lath_allocator *a, lath_error *err)
{
    static const char text[] = "The CATS unaffable! [MASK] don't \xE4\xB8\xAD e\xCC\x81 12 ab<0x41>";
    static const char *const texts[] = {text, "b [SEP] a"};
    static const size_t lens[] = {sizeof(text) - 1, 9};
    tok_encode_options o = {true, true, 0};
    tok_pair_options po = {true, false, false, TOK_LONGEST_FIRST, 9, 1, false};
    tok_encoding e = {0};
    tok_parts p = {0};
    tok_stream *s = NULL;
    arena scratch;
    buf out;
    lath_status st;
    arena_init(&scratch, a);
    buf_init(&out, a, 1 << 20);
    TRY_DONE(tok_encode(t, &scratch, text, sizeof(text) - 1, &o, &e, err));
    TRY_DONE(tok_encode_parts(t, &scratch, texts, lens, 2, &po, &p, err));
    TRY_DONE(tok_decode(t, e.ids, e.n, false, &out, err));
    TRY_DONE(tok_stream_create(t, true, &s, err));
    TRY_DONE(tok_stream_push(s, e.ids, e.n, &out, err));
    st = tok_stream_finish(s, &out, err);
done:
    tok_stream_destroy(s);
    tok_parts_release(t, &p);
    tok_encoding_release(t, &e);
    buf_deinit(&out);
    arena_deinit(&scratch);
    return st;
}

static lath_status run_all(const lath_allocator *a, const buf *file, lath_error *err)
{
    tok *t;
    lath_status st = tok_open_json(a, "file", file->data, file->len, &t, err);
    if (st == LATH_OK) st = encode_and_decode(t, a, err);
    tok_close(t);
    return st;
}

static int visible(const struct dirent *d) { return d->d_name[0] != '.'; }

static bool torture(const char *name, const buf *file)
{
    meter m = {0};
    lath_allocator a = {&m, meter_alloc, meter_resize, meter_release};
    lath_error err = {0};
    lath_status whole = run_all(&a, file, &err);
    long total = m.calls;
    if (m.out) fail_msg("%s: %ld blocks leaked", name, m.out);
    if (total > ALLOCATIONS_MOST) return false;
    for (long k = 1; k <= total; k++) {
        m = (meter){.fail_at = k};
        lath_status st = run_all(&a, file, &err);
        if (st != LATH_ERR_NOMEM && st != whole)
            fail_msg("%s: allocation %ld of %ld failed, status %d (%s)", name, k, total, (int)st, err.msg);
        if (m.out) fail_msg("%s: allocation %ld of %ld failed, %ld blocks leaked", name, k, total, m.out);
    }
    return whole == LATH_OK;
}

static void test_corpus(void **state)
{
    char dir[2048], path[4096];
    struct dirent **list;
    size_t n_whole = 0;
    (void)state;
    snprintf(dir, sizeof(dir), "%s/fuzz/corpus/fuzz_tokenizer", test_data_dir());
    int n = scandir(dir, &list, visible, alphasort);
    assert_true(n > 20);
    for (int i = 0; i < n; i++) {
        buf file;
        lath_error err = {0};
        buf_init(&file, alloc_default(), FILE_MOST);
        snprintf(path, sizeof(path), "%s/%s", dir, list[i]->d_name);
        assert_ok(file_read(&file, path, FILE_MOST, &err), err);
        n_whole += torture(list[i]->d_name, &file);
        buf_deinit(&file);
        free(list[i]);
    }
    free(list);
    printf("    %zu files\n", n_whole);
    assert_true(n_whole > 20);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_corpus)};
    return TEST_RUN(tests);
}
