/* SPDX-License-Identifier: Apache-2.0
 *
 * test_tracefile.c: trace, boundary and context files against bytes that tools/ref/make_tracefiles.py made from the description alone; every cut and every
 * field that cannot be is refused, by name; a writer that was stopped leaves what was there before. */
#include "store/tracefile.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/test.h"
#include "support/tmpdir.h"

enum { D = 3, MOST = 1024 };

typedef struct known {
    const char *name;
    tracefile_shape shape;
    uint32_t n_records;
    size_t header;
} known;

static const known files[] = {
    {"pre.trac", {TRACEFILE_TRAC, D, 2, TRACEFILE_PARTS, 0, 0, 0, 0, {0}}, 3, 64},
    {"post.trac", {TRACEFILE_TRAC, D, 1, TRACEFILE_PARTS_POST, 0, 0, 0, 0, {0}}, 2, 64},
    {"small.bndx", {TRACEFILE_BNDX, D, 0, 0, 4, 5, 0, 0, {0}}, 3, 64},
    {"small.ctxt", {TRACEFILE_CTXT, D, 6, 0, 4, 4, 3, 2, {2, 5}}, 3, 128},
};
enum { N_FILES = sizeof(files) / sizeof(files[0]) };
static const uint32_t windows[3][2] = {{0, 4}, {4, 4}, {9, 2}};

static char dir[TMP_PATH], path[TMP_PATH];
static uint8_t good[N_FILES][MOST];
static size_t sizes[N_FILES];
static lath_error err;

static float number(size_t i, size_t v, size_t k) { return (float)i + (float)v / 8 + (float)k / 64; }

static void fill(float *record, size_t i, size_t vectors)
{
    for (size_t v = 0; v < vectors; v++) {
        for (size_t k = 0; k < D; k++) record[v * D + k] = number(i, v, k);
    }
}

static int setup(void **state)
{
    (void)state;
    char data[TMP_PATH];
    tmp_make(dir);
    tmp_join(path, dir, "x");
    tmp_join(data, test_data_dir(), "unit/store/tracefile");
    for (int i = 0; i < N_FILES; i++) {
        char *bytes = tmp_read(data, files[i].name, &sizes[i]);
        assert_true(sizes[i] + 8 < MOST);
        memcpy(good[i], bytes, sizes[i]);
        free(bytes);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tmp_remove(dir);
    return 0;
}

static void test_read(void **state)
{
    (void)state;
    for (int at = 0; at < N_FILES; at++) {
        const known *k = &files[at];
        const bool of_windows = k->shape.kind != TRACEFILE_TRAC;
        uint32_t begin, end;
        tracefile f;
        tmp_write_bytes(dir, "x", good[at], sizes[at]);
        assert_ok(tracefile_open(alloc_default(), path, k->shape.kind, &f, &err), err);
        assert_memory_equal(&f.shape, &k->shape, sizeof(f.shape));
        assert_int_equal(f.n_records, k->n_records);
        assert_int_equal(f.n_tokens, of_windows ? 11 : k->n_records);
        for (size_t i = 0; i < f.n_records; i++) {
            for (size_t v = 0; v < f.vectors; v++) {
                for (size_t j = 0; j < D; j++) assert_true(tracefile_get(&f, i, v)[j] == number(i, v, j));
            }
            assert_int_equal(tracefile_window(&f, i, &begin, &end), of_windows);
            if (of_windows) assert_true(begin == windows[i][0] && end == begin + windows[i][1]);
        }
        assert_null(tracefile_get(&f, f.n_records, 0));
        assert_null(tracefile_get(&f, 0, f.vectors));
        assert_false(tracefile_window(&f, f.n_records, &begin, &end));
        tracefile_close(&f);
    }
}

static void test_find(void **state)
{
    static const int64_t in[13] = {0, 0, 0, 0, 1, 1, 1, 1, -1, 2, 2, -1, -1};
    tracefile f;
    (void)state;
    for (int at = 0; at < N_FILES; at++) {
        tmp_write_bytes(dir, "x", good[at], sizes[at]);
        assert_ok(tracefile_open(alloc_default(), path, files[at].shape.kind, &f, &err), err);
        for (uint32_t t = 0; t < 13; t++)
            assert_int_equal(tracefile_find(&f, t), files[at].shape.kind == TRACEFILE_TRAC ? -1 : in[t]);
        tracefile_close(&f);
    }
}

static void add_records(tracefile_writer *w, uint32_t from, uint32_t to)
{
    float record[64];
    const size_t vectors = tracefile_vectors(tracefile_writer_shape(w));
    for (uint32_t i = from; i < to; i++) {
        fill(record, i, vectors);
        assert_ok(tracefile_add(w, windows[i][0], windows[i][1], record, &err), err);
    }
}

static void assert_is(int at)
{
    size_t n;
    char *bytes = tmp_read(dir, "x", &n);
    assert_int_equal(n, sizes[at]);
    assert_memory_equal(bytes, good[at], n);
    free(bytes);
}

static void test_write(void **state)
{
    tracefile_writer *w;
    (void)state;
    for (int at = 0; at < N_FILES; at++) {
        tmp_write(dir, "x", "old");
        assert_ok(tracefile_create(alloc_default(), path, &files[at].shape, &w, &err), err);
        add_records(w, 0, files[at].n_records);
        assert_ok(tracefile_commit(w, &err), err);
        assert_is(at);
    }
}

/* In place, one record at a time: after each, the file opens and has it. */
static void test_continue(void **state)
{
    (void)state;
    for (int at = 0; at < N_FILES; at++) {
        const known *k = &files[at];
        tracefile_writer *w, *second;
        tracefile f;
        assert_ok(tracefile_create(alloc_default(), path, &k->shape, &w, &err), err);
        assert_ok(tracefile_commit(w, &err), err);
        for (uint32_t i = 0; i < k->n_records; i++) {
            assert_ok(tracefile_continue(alloc_default(), path, k->shape.kind, i % 2 ? NULL : &k->shape, &w, &err),
                      err);
            assert_int_equal(tracefile_continue(alloc_default(), path, k->shape.kind, NULL, &second, &err),
                             LATH_ERR_IO);
            assert_non_null(strstr(err.msg, "another process writes"));
            add_records(w, i, i + 1);
            assert_ok(tracefile_open(alloc_default(), path, k->shape.kind, &f, &err), err);
            assert_int_equal(f.n_records, i + 1);
            tracefile_close(&f);
            assert_ok(tracefile_commit(w, &err), err);
        }
        assert_is(at);
    }
}

static void test_other_shape(void **state)
{
    (void)state;
    for (int at = 0; at < N_FILES; at++) {
        tracefile_shape other = files[at].shape;
        tracefile_writer *w;
        other.d++;
        tmp_write_bytes(dir, "x", good[at], sizes[at]);
        assert_int_equal(tracefile_continue(alloc_default(), path, other.kind, &other, &w, &err), LATH_ERR_USAGE);
        assert_non_null(strstr(err.msg, "has vectors of 3 numbers"));
        other = files[at].shape;
        other.critical[0] = 1;
        assert_int_equal(tracefile_continue(alloc_default(), path, other.kind, &other, &w, &err), LATH_ERR_USAGE);
        assert_non_null(strstr(err.msg, "other critical layers"));
        assert_is(at);
    }
}

/* A writer was stopped behind a record, and behind an entry of the index: readers refuse the tail, the next writer cuts it off. */
static void test_tail(void **state)
{
    (void)state;
    for (int at = 0; at < N_FILES; at++) {
        const known *k = &files[at];
        tracefile_writer *w;
        tracefile f;
        uint8_t bytes[MOST];
        memcpy(bytes, good[at], sizes[at]);
        memset(bytes + sizes[at], 7, 5);
        tmp_write_bytes(dir, "x", bytes, sizes[at] + 5);
        assert_int_equal(tracefile_open(alloc_default(), path, k->shape.kind, &f, &err), LATH_ERR_FORMAT);
        assert_non_null(strstr(err.msg, "has 5 bytes behind"));
        assert_null(f.file.data);
        assert_ok(tracefile_continue(alloc_default(), path, k->shape.kind, NULL, &w, &err), err);
        assert_ok(tracefile_commit(w, &err), err);
        assert_is(at);
    }
}

/* What a writer refuses changes nothing. */
static void test_add_refused(void **state)
{
    (void)state;
    for (int at = 0; at < N_FILES; at++) {
        const known *k = &files[at];
        tracefile_writer *w;
        float record[64];
        fill(record, 0, 20);
        tmp_write_bytes(dir, "x", good[at], sizes[at]);
        assert_ok(tracefile_continue(alloc_default(), path, k->shape.kind, NULL, &w, &err), err);
        if (k->shape.kind != TRACEFILE_TRAC) {
            assert_int_equal(tracefile_add(w, 10, 4, record, &err), LATH_ERR_USAGE);
            assert_int_equal(tracefile_add(w, 11, 0, record, &err), LATH_ERR_USAGE);
            assert_int_equal(tracefile_add(w, 11, 5, record, &err), LATH_ERR_USAGE);
            assert_int_equal(tracefile_add(w, UINT32_MAX, 1, record, &err), LATH_ERR_USAGE);
            assert_non_null(strstr(err.msg, "windows have 1 to 4 tokens and follow each other; 11 are there"));
        }
        record[1] = NAN;
        assert_int_equal(tracefile_add(w, 11, 4, record, &err), LATH_ERR_INPUT);
        record[1] = -INFINITY;
        assert_int_equal(tracefile_add(w, 11, 4, record, &err), LATH_ERR_INPUT);
        assert_non_null(strstr(err.msg, "number 1 of record"));
        assert_ok(tracefile_commit(w, &err), err);
        assert_is(at);
    }
}

static void test_index_full(void **state)
{
    tracefile_writer *w;
    float record[64];
    (void)state;
    fill(record, 0, 20);
    for (int at = 2; at < N_FILES; at++) {
        tracefile_shape one = files[at].shape;
        one.most = 1;
        assert_ok(tracefile_create(alloc_default(), path, &one, &w, &err), err);
        assert_ok(tracefile_add(w, 0, 4, record, &err), err);
        assert_int_equal(tracefile_add(w, 4, 4, record, &err), LATH_ERR_LIMIT);
        assert_non_null(strstr(err.msg, "index is full: 1 records"));
        tracefile_abort(w);
    }
}

/* A full disk, played by a limit on the file's size: the record does not go in, what was there is whole. */
static void test_disk_full(void **state)
{
    struct rlimit old, low;
    tracefile_writer *w;
    float record[64];
    (void)state;
    fill(record, 0, 20);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_IGN);
    for (int at = 0; at < N_FILES; at++) {
        tmp_write_bytes(dir, "x", good[at], sizes[at]);
        assert_ok(tracefile_continue(alloc_default(), path, files[at].shape.kind, NULL, &w, &err), err);
        low = old;
        low.rlim_cur = sizes[at] + 5;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
        const lath_status st = tracefile_add(w, 11, 4, record, &err);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_equal(st, LATH_ERR_IO);
        assert_non_null(strstr(err.msg, path));
        assert_ok(tracefile_commit(w, &err), err);
        assert_is(at);
    }
}

static void refuse(int at, const uint8_t *bytes, size_t n, const char *part)
{
    tracefile f;
    tmp_write_bytes(dir, "x", bytes, n);
    const lath_status st = tracefile_open(alloc_default(), path, files[at].shape.kind, &f, &err);
    if (st != LATH_ERR_FORMAT || !strstr(err.msg, part) || !strstr(err.msg, path))
        fail_msg("%s: status %d (%s), want LATH_ERR_FORMAT (%s)", files[at].name, (int)st, err.msg, part);
    assert_null(f.file.data);
}

static void refuse_u32(int at, size_t offset, uint32_t value, const char *part)
{
    uint8_t bytes[MOST];
    memcpy(bytes, good[at], sizes[at]);
    memcpy(bytes + offset, &value, sizeof(value));
    refuse(at, bytes, sizes[at], part);
}

static void test_every_cut(void **state)
{
    (void)state;
    for (int at = 0; at < N_FILES; at++) {
        for (size_t n = 0; n < sizes[at]; n++) refuse(at, good[at], n, ": ");
    }
}

/* Each of its bytes counts: another value, and the file is refused, but for the numbers themselves, tokens of windows and the room behind the index. */
static void test_every_header_byte(void **state)
{
    (void)state;
    for (int at = 0; at < N_FILES; at++) {
        for (size_t i = 0; i < files[at].header; i++) {
            uint8_t bytes[MOST];
            tracefile f;
            memcpy(bytes, good[at], sizes[at]);
            bytes[i] ^= 0x40;
            tmp_write_bytes(dir, "x", bytes, sizes[at]);
            const lath_status st = tracefile_open(alloc_default(), path, files[at].shape.kind, &f, &err);
            if (st == LATH_OK) { /* a larger window, more layers beside the critical ones */
                assert_true(f.shape.window != files[at].shape.window || f.shape.n_layers != files[at].shape.n_layers);
                tracefile_close(&f);
            }
        }
    }
}

static void test_wrong_fields(void **state)
{
    (void)state;
    for (int at = 0; at < N_FILES; at++) {
        refuse_u32(at, 0, 0, "it does not begin with");
        refuse_u32(at, 4, 0, "version 0");
        refuse_u32(at, 4, 3, "version 3");
        refuse_u32(at, 8, 0, "what the header says");
        refuse_u32(at, 8, UINT32_MAX, "is cut");
        refuse_u32(at, files[at].header - 4, 1, "does not know");
    }
    refuse_u32(0, 12, 0, "what the header says");
    refuse_u32(0, 12, UINT32_MAX, "is cut");
    refuse_u32(0, 16, 2, "bytes behind its 2 records");
    refuse_u32(0, 16, UINT32_MAX, "is cut");
    refuse_u32(0, 20, 5, "does not know");
    refuse_u32(1, 20, 4, "what the header says");
    refuse_u32(1, 4, 1, "does not know");
    refuse_u32(2, 12, 0, "what the header says");
    refuse_u32(2, 12, 3, "window 0 of 4 tokens");
    refuse_u32(2, 16, 4, "is cut");
    refuse_u32(2, 16, UINT32_MAX, "is cut");
    refuse_u32(2, 16, 2, "its windows end at token 8, its header says 11");
    refuse_u32(2, 16, 0, "an index of 116 bytes has no whole entries");
    refuse_u32(2, 20, 12, "its header says 12");
    refuse_u32(2, 64, 1, "window 1 of 4 tokens at token 4");
    refuse_u32(2, 64 + 4, 0, "window 0 of 0 tokens");
    refuse_u32(2, 64 + 8, 64, "record 0 cannot be at byte 64");
    refuse_u32(2, 64 + 8, 64 + 48 + 4, "has no whole entries");
    refuse_u32(2, 64 + 8, 64 + 48, "entry 1 of the index");
    refuse_u32(2, 64 + 8, UINT32_MAX, "record 0 cannot be at byte 4294967295");
    refuse_u32(2, 64 + 16 + 8, 0, "entry 1 of the index");
    refuse_u32(2, 64 + 16 + 12, 1, "entry 1 of the index");
    refuse_u32(2, 64 + 32, UINT32_MAX, "window 2 of 2 tokens");
    refuse_u32(3, 12, 5, "what the header says"); /* critical layer 5 of 5 */
    refuse_u32(3, 20, 0x0204, "what the header says");
    refuse_u32(3, 20, 0x0903, "what the header says");
    refuse_u32(3, 20, 0x0202, "entry 1 of the index");
    refuse_u32(3, 24 + 4, 1, "what the header says");
    refuse_u32(3, 20, 0x10203, "does not know");
    refuse_u32(3, 32, 4, "is cut");
    refuse_u32(3, 36, 10, "its header says 10");
    refuse_u32(3, 128 + 12, 1, "record 0 cannot be at byte");
    refuse_u32(3, 128 + 16, 1, "entry 0 of the index");
}

static void test_foreign(void **state)
{
    (void)state;
    for (int at = 0; at < N_FILES; at++) {
        tracefile f;
        const tracefile_kind other = files[at].shape.kind == TRACEFILE_BNDX ? TRACEFILE_CTXT : TRACEFILE_BNDX;
        tmp_write_bytes(dir, "x", good[at], sizes[at]);
        assert_int_equal(tracefile_open(alloc_default(), path, other, &f, &err), LATH_ERR_FORMAT);
        assert_non_null(strstr(err.msg, other == TRACEFILE_BNDX ? "is no boundary file" : "is no context file"));
        assert_int_equal(tracefile_open(alloc_default(), "nowhere.trac", files[at].shape.kind, &f, &err),
                         LATH_ERR_NOT_FOUND);
        assert_int_equal(tracefile_open(alloc_default(), dir, files[at].shape.kind, &f, &err), LATH_ERR_NOT_FOUND);
    }
}

static void test_create_refused(void **state)
{
    tracefile_writer *w;
    (void)state;
    for (int at = 0; at < N_FILES; at++) {
        tracefile_shape none = files[at].shape;
        none.d = 0;
        assert_int_equal(tracefile_create(alloc_default(), path, &none, &w, &err), LATH_ERR_USAGE);
        none.d = UINT32_MAX;
        none.n_layers = UINT32_MAX;
        none.most = UINT32_MAX;
        if (none.kind == TRACEFILE_TRAC)
            assert_int_equal(tracefile_create(alloc_default(), path, &none, &w, &err), LATH_ERR_USAGE);
        assert_int_equal(tracefile_create(alloc_default(), "/nowhere/x", &files[at].shape, &w, &err), LATH_ERR_IO);
        assert_int_equal(tracefile_continue(alloc_default(), "/nowhere/x", none.kind, NULL, &w, &err),
                         LATH_ERR_NOT_FOUND);
    }
    tracefile_abort(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_continue),
        cmocka_unit_test(test_other_shape),
        cmocka_unit_test(test_tail),
        cmocka_unit_test(test_add_refused),
        cmocka_unit_test(test_index_full),
        cmocka_unit_test(test_disk_full),
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_every_header_byte),
        cmocka_unit_test(test_wrong_fields),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_create_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown) == 0 ? 0 : 1;
}
