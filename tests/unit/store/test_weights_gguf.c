/* SPDX-License-Identifier: Apache-2.0
 *
 * test_weights_gguf.c: a GGUF file as a weight source, and models in several parts: opened by any of them; parts that are missing, have changed places
 * or are of another model are refused by name.
 */
#include "store/gguf_split.h"
#include "store/weights.h"
#include "support/gguf_file.h"
#include "support/test.h"
#include "support/tmpdir.h"

enum { F32 = 0, Q8_0 = 8, I32 = 26 };

static char dir[TMP_PATH];
static lath_error err;

static int make_dir(void **state)
{
    (void)state;
    tmp_make(dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    tmp_remove(dir);
    return 0;
}

static lath_status open_name(const char *name, file_mode mode, weights **w)
{
    char path[TMP_PATH];
    tmp_join(path, dir, name);
    err_clear(&err);
    return weights_open(alloc_default(), path, mode, w, &err);
}

static void expect_path(const char *path, const char *name)
{
    char want[TMP_PATH];
    tmp_join(want, dir, name);
    assert_string_equal(path, want);
}

static void put_split_keys(gguf_file_maker *f, int no, int count, int tensors)
{
    gguf_make_int(f, "split.no", GGUF_U16, no);
    gguf_make_int(f, "split.count", GGUF_U16, count);
    gguf_make_int(f, "split.tensors.count", GGUF_I32, tensors);
}

/* A part with a vector of 3 for each letter, its first number the code of the letter. */
static void put_part(const char *name, int no, int count, int tensors, const char *letters)
{
    gguf_file_maker f;
    gguf_make(&f);
    if (no == 0) gguf_make_text(&f, "general.architecture", "llama");
    if (count) put_split_keys(&f, no, count, tensors);
    for (; *letters; letters++) {
        const char tensor_name[2] = {*letters, 0};
        const float v[3] = {(float)*letters, 1, 2};
        gguf_make_tensor(&f, tensor_name, F32, 0, 3, v);
    }
    gguf_make_write(&f, dir, name);
}

static void test_single(void **state)
{
    (void)state;
    for (int mode = FILE_MAP; mode <= FILE_COPY; mode++) {
        gguf_file_maker f;
        weights *w = NULL;
        const tensor *t;
        bool used;
        uint8_t blocks[3 * 2 * 34];
        for (size_t i = 0; i < sizeof(blocks); i++) blocks[i] = (uint8_t)(i * 7);
        gguf_make(&f);
        gguf_make_text(&f, "general.architecture", "llama");
        gguf_make_tensor(&f, "norm", F32, 0, 5, NULL);
        gguf_make_tensor(&f, "up", Q8_0, 3, 64, blocks);
        gguf_make_tensor(&f, "ids", I32, 0, 4, NULL);
        gguf_make_write(&f, dir, "m.gguf");
        assert_ok(open_name("m.gguf", (file_mode)mode, &w), err);
        expect_path(weights_name(w), "m.gguf");
        assert_int_equal(weights_count(w), 3);
        assert_int_equal(weights_n_files(w), 1);
        assert_ok(weights_find(w, "up", &t, &err), err);
        assert_int_equal(t->type, DTYPE_Q8_0);
        assert_int_equal(t->rank, 2);
        assert_int_equal(t->dim[0], 3); /* rows first, as everywhere here */
        assert_int_equal(t->dim[1], 64);
        assert_int_equal(t->count, 192);
        assert_int_equal(t->bytes, sizeof(blocks));
        assert_memory_equal(t->data, blocks, sizeof(blocks));
        assert_null(weights_file_in_use(w, 0));
        weights_mark_used(w, t);
        assert_non_null(weights_file_in_use(w, 0));
        expect_path(weights_file_of(w, t), "m.gguf");
        for (int32_t i = 0; i < 3; i++) {
            assert_string_equal(weights_at(w, i, &used)->name, i == 0 ? "norm" : i == 1 ? "up" : "ids");
            assert_int_equal(used, i == 1);
        }
        assert_ok(weights_find(w, "down", &t, &err), err);
        assert_null(t);
        assert_ok(weights_open_all(w, &err), err);
        const gguf *g = weights_gguf(w);
        assert_non_null(gguf_get(g, "general.architecture"));
        assert_int_equal(weights_file_bytes(w), gguf_file(g)->size);
        assert_true(gguf_header_bytes(g) < gguf_file(g)->size - sizeof(blocks));
        assert_true(weights_private_bytes(w) > gguf_private_bytes(g) + 3 * sizeof(tensor));
        t = weights_at(w, 1, &used);
        if (mode == FILE_MAP)
            expect_path(weights_file_at(w, t->data), "m.gguf");
        else
            assert_null(weights_file_at(w, t->data));
        weights_close(w);
    }
}

static void put_three(void)
{
    put_part("m-00001-of-00003.gguf", 0, 3, 4, "");
    put_part("m-00002-of-00003.gguf", 1, 3, 4, "abc");
    put_part("m-00003-of-00003.gguf", 2, 3, 4, "d");
}

static void test_parts(void **state)
{
    (void)state;
    static const char *const names[3] = {"m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"};
    put_three();
    for (int given = 0; given < 3; given++) {
        weights *w = NULL;
        const tensor *t;
        bool used;
        gguf *first;
        char path[TMP_PATH];
        assert_ok(open_name(names[given], FILE_MAP, &w), err);
        expect_path(weights_name(w), names[0]);
        assert_int_equal(weights_count(w), 4);
        assert_int_equal(weights_n_files(w), 3);
        for (int i = 0; i < 4; i++) {
            const char name[2] = {(char)('a' + i), 0};
            assert_ok(weights_find(w, name, &t, &err), err);
            assert_ptr_equal(weights_at(w, i, &used), t);
            assert_true(((const float *)t->data)[0] == (float)name[0]);
            expect_path(weights_file_of(w, t), names[i < 3 ? 1 : 2]);
            expect_path(weights_file_at(w, t->data), names[i < 3 ? 1 : 2]);
        }
        weights_mark_used(w, t); /* "d" */
        assert_null(weights_file_in_use(w, 0));
        assert_null(weights_file_in_use(w, 1));
        assert_non_null(weights_file_in_use(w, 2));
        assert_non_null(gguf_get(weights_gguf(w), "general.architecture"));
        weights_close(w);
        tmp_join(path, dir, names[given]);
        assert_ok(gguf_open_first(alloc_default(), path, FILE_MAP, &first, &err), err);
        expect_path(gguf_file(first)->path, names[0]);
        gguf_close(first);
    }
}

/* What is done to three good parts, what is opened then, and what the message says. */
static const struct {
    const char *name;
    int no, count, tensors; /* of the keys; count 0: none */
    const char *letters;
    const char *open;
    lath_status st;
    const char *why[2];
} bad_parts[] = {
    {"m-00002-of-00003.gguf",
     2,
     3,
     4,
     "abc",
     "m-00001-of-00003.gguf",
     LATH_ERR_FORMAT,
     {"m-00002-of-00003.gguf", "by its keys it is part 3 of 3, by its name part 2 of 3"}},
    {"m-00002-of-00003.gguf",
     1,
     4,
     4,
     "abc",
     "m-00001-of-00003.gguf",
     LATH_ERR_FORMAT,
     {"m-00002-of-00003.gguf", "by its keys it is part 2 of 4, by its name part 2 of 3"}},
    {"m-00002-of-00003.gguf",
     0,
     0,
     0,
     "abc",
     "m-00001-of-00003.gguf",
     LATH_ERR_FORMAT,
     {"m-00002-of-00003.gguf", "by its keys it is part 1 of 1, by its name part 2 of 3"}},
    {"m-00002-of-00003.gguf",
     1,
     4,
     4,
     "abc",
     "m-00002-of-00003.gguf",
     LATH_ERR_FORMAT,
     {"m-00002-of-00003.gguf", "it is part 2 of 4, so its name should end with -00002-of-00004.gguf"}},
    {"m-00003-of-00003.gguf",
     2,
     3,
     9,
     "d",
     "m-00001-of-00003.gguf",
     LATH_ERR_FORMAT,
     {"m-00003-of-00003.gguf", "of a model of 9 tensors, the first part is of one of 4"}},
    {"m-00003-of-00003.gguf",
     2,
     3,
     4,
     "c",
     "m-00001-of-00003.gguf",
     LATH_ERR_FORMAT,
     {"m-00003-of-00003.gguf", "tensor \"c\" is in an earlier part, too"}},
    {"m-00003-of-00003.gguf",
     2,
     3,
     4,
     "de",
     "m-00001-of-00003.gguf",
     LATH_ERR_FORMAT,
     {"m-00001-of-00003.gguf", "3 parts with 5 tensors, key \"split.tensors.count\" says 4"}},
    {"m-00003-of-00003.gguf",
     3,
     3,
     4,
     "d",
     "m-00001-of-00003.gguf",
     LATH_ERR_FORMAT,
     {"m-00003-of-00003.gguf", "key \"split.no\": part 3 (from 0) of 3"}},
    {"other.gguf", 1, 3, 4, "d", "other.gguf", LATH_ERR_FORMAT, {"other.gguf", "it is part 2 of 3"}},
    {"x.gguf", 1, 3, 4, "d", "x.gguf", LATH_ERR_FORMAT, {"x.gguf", "-00002-of-00003.gguf"}},
    {"n-00001-of-00002.gguf",
     0,
     2,
     4,
     "d",
     "n-00001-of-00002.gguf",
     LATH_ERR_NOT_FOUND,
     {"n-00002-of-00002.gguf", "no such file (a model of 2 parts)"}},
};

static void test_bad_parts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad_parts) / sizeof(bad_parts[0]); i++) {
        weights *w = NULL;
        put_three();
        put_part(bad_parts[i].name, bad_parts[i].no, bad_parts[i].count, bad_parts[i].tensors, bad_parts[i].letters);
        assert_int_equal(open_name(bad_parts[i].open, FILE_MAP, &w), bad_parts[i].st);
        for (int k = 0; k < 2; k++)
            if (!strstr(err.msg, bad_parts[i].why[k]))
                fail_msg("%zu: no \"%s\" in: %s", i, bad_parts[i].why[k], err.msg);
    }
    put_three();
    tmp_delete(dir, "m-00002-of-00003.gguf");
    weights *w = NULL;
    assert_int_equal(open_name("m-00003-of-00003.gguf", FILE_MAP, &w), LATH_ERR_NOT_FOUND);
    assert_non_null(strstr(err.msg, "m-00002-of-00003.gguf: no such file"));
    put_three();
    size_t n;
    char *part = tmp_read(dir, "m-00002-of-00003.gguf", &n);
    tmp_write_bytes(dir, "m-00002-of-00003.gguf", part, n - 10); /* cut */
    free(part);
    assert_int_equal(open_name("m-00001-of-00003.gguf", FILE_MAP, &w), LATH_ERR_FORMAT);
    assert_non_null(strstr(err.msg, "m-00002-of-00003.gguf: tensor \"c\": ends behind the file"));
}

static void test_keys(void **state)
{
    (void)state;
    static const struct {
        gguf_kind kind;
        int64_t value;
    } bad[] = {{GGUF_I32, -1}, {GGUF_U64, 1 << 20}, {GGUF_F32, 1}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        gguf_file_maker f;
        weights *w = NULL;
        gguf_make(&f);
        gguf_make_int(&f, "split.count", bad[i].kind, bad[i].value);
        gguf_make_write(&f, dir, "k.gguf");
        assert_int_equal(open_name("k.gguf", FILE_MAP, &w), LATH_ERR_FORMAT);
        assert_non_null(strstr(err.msg, "k.gguf: key \"split.count\": want a whole number from 0 to 65536"));
    }
    weights *w = NULL;
    assert_int_equal(open_name("none.gguf", FILE_MAP, &w), LATH_ERR_NOT_FOUND);
    assert_false(gguf_is_name(".gguf"));
    assert_false(gguf_is_name("m.ggu"));
    assert_true(gguf_is_name("a/b.gguf"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_single, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_parts, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_bad_parts, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_keys, make_dir, remove_dir),
    };
    return TEST_RUN(tests);
}
