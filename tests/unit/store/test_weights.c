/* SPDX-License-Identifier: Apache-2.0
 *
 * test_weights.c: the weight source: one file, shards that are opened when they are needed, a table of bad indexes and
 * shards, links as model caches are made of. Shards are written here byte by byte: tensor "x" is one f32, its value the
 * code of the letter.
 */
#include "store/weights.h"

#include <sys/stat.h>
#include <unistd.h>

#include "support/test.h"
#include "support/tmpdir.h"

#define INDEX "model.safetensors.index.json"
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

/* A file of one tensor a letter. */
static void put_shard(const char *name, const char *letters)
{
    char header[1024] = "{", file[2048] = "";
    size_t n = strlen(letters);
    for (size_t i = 0; i < n; i++)
        snprintf(header + strlen(header), sizeof(header) - strlen(header),
                 "%s\"%c\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[%zu,%zu]}", i ? "," : "", letters[i],
                 4 * i, 4 * i + 4);
    strcat(header, "}");
    const size_t head = strlen(header);
    file[0] = (char)(head & 255), file[1] = (char)(head >> 8);
    memcpy(file + 8, header, head);
    for (size_t i = 0; i < n; i++) {
        const float v = (float)letters[i];
        memcpy(file + 8 + head + 4 * i, &v, 4);
    }
    tmp_write_bytes(dir, name, file, 8 + head + 4 * n);
}

static const char good_index[] = "{\"metadata\": {\"total_size\": 20}, \"weight_map\": {\n"
                                 " \"d\": \"two.safetensors\",\n"
                                 " \"a\": \"one.safetensors\",\n"
                                 " \"b\": \"one.safetensors\",\n"
                                 " \"c\": \"two.safetensors\",\n"
                                 " \"e\": \"three.safetensors\"}}";

static void put_good(void)
{
    tmp_write(dir, INDEX, good_index);
    put_shard("one.safetensors", "ab");
    put_shard("two.safetensors", "cd");
    put_shard("three.safetensors", "e");
}

static float value_of(const tensor *t)
{
    float v;
    memcpy(&v, t->data, 4);
    return v;
}

static void expect_path(const char *path, const char *name)
{
    char want[TMP_PATH];
    tmp_join(want, dir, name);
    assert_non_null(path);
    assert_string_equal(path, want);
}

/* The tensor is there, its value right, in the file named. */
static const tensor *expect_tensor(weights *w, const char *name, const char *file)
{
    const tensor *t = NULL;
    assert_ok(weights_find(w, name, &t, &err), err);
    if (!t) fail_msg("no tensor %s", name);
    assert_string_equal(t->name, name);
    assert_true(value_of(t) == (float)*name);
    expect_path(weights_file_of(w, t), file);
    return t;
}

static void expect_absent(weights *w, const char *name)
{
    static const tensor dummy;
    const tensor *t = &dummy;
    assert_ok(weights_find(w, name, &t, &err), err);
    assert_null(t);
}

/* -------------------------------------------------------------------------------------------------------- one file */

static void test_single(void **state)
{
    (void)state;
    for (int mode = FILE_MAP; mode <= FILE_COPY; mode++) {
        weights *w = NULL;
        bool used;
        char path[TMP_PATH];
        struct stat sb;
        put_shard("model.safetensors", "xyz");
        tmp_write(dir, INDEX, "not read: the single file comes first");
        assert_ok(weights_open(alloc_default(), dir, (file_mode)mode, &w, &err), err);
        expect_path(weights_name(w), "model.safetensors");
        assert_int_equal(weights_count(w), 3);
        assert_int_equal(weights_n_files(w), 1);
        assert_null(weights_file_in_use(w, 0));
        const tensor *y = expect_tensor(w, "y", "model.safetensors");
        expect_absent(w, "a");
        expect_absent(w, "");
        weights_mark_used(w, y);
        assert_non_null(weights_file_in_use(w, 0));
        for (int32_t i = 0; i < 3; i++) {
            assert_string_equal(weights_at(w, i, &used)->name, i == 0 ? "x" : i == 1 ? "y" : "z");
            assert_int_equal(used, i == 1);
        }
        assert_ok(weights_open_all(w, &err), err);
        tmp_join(path, dir, "model.safetensors");
        assert_int_equal(stat(path, &sb), 0);
        assert_int_equal(weights_file_bytes(w), sb.st_size);
        assert_true(weights_private_bytes(w) > 3 * sizeof(tensor));
        if (mode == FILE_MAP)
            expect_path(weights_file_at(w, y->data), "model.safetensors");
        else
            assert_null(weights_file_at(w, y->data));
        assert_null(weights_file_at(w, &err));
        assert_null(weights_file_at(w, NULL));
        weights_close(w);
    }
    weights_close(NULL);
}

/* A file without tensors is one. */
static void test_single_empty(void **state)
{
    weights *w = NULL;
    (void)state;
    tmp_write_bytes(dir, "model.safetensors", "\2\0\0\0\0\0\0\0{}", 10);
    assert_ok(weights_open(alloc_default(), dir, FILE_MAP, &w, &err), err);
    assert_int_equal(weights_count(w), 0);
    expect_absent(w, "a");
    assert_null(weights_file_in_use(w, 0));
    weights_close(w);
}

/* ---------------------------------------------------------------------------------------------------------- shards */

static void test_shards(void **state)
{
    /* Files by name, tensors by offset. */
    static const struct {
        const char *name, *file;
    } order[] = {{"a", "one.safetensors"},
                 {"b", "one.safetensors"},
                 {"e", "three.safetensors"},
                 {"c", "two.safetensors"},
                 {"d", "two.safetensors"}};
    weights *w = NULL;
    bool used;
    (void)state;
    put_good();
    assert_ok(weights_open(alloc_default(), dir, FILE_MAP, &w, &err), err);
    expect_path(weights_name(w), INDEX);
    assert_int_equal(weights_count(w), 5);
    assert_int_equal(weights_n_files(w), 3);
    for (int32_t i = 0; i < 5; i++) assert_null(weights_at(w, i, &used)); /* none is open */
    const size_t before = weights_private_bytes(w);
    const tensor *d = expect_tensor(w, "d", "two.safetensors");
    assert_true(weights_private_bytes(w) > before);
    weights_mark_used(w, d);
    for (int32_t i = 0; i < 5; i++) {
        const tensor *t = weights_at(w, i, &used);
        assert_int_equal(t != NULL, i >= 3); /* "two" is */
        assert_int_equal(used, i == 4);
    }
    assert_null(weights_file_in_use(w, 0));
    assert_null(weights_file_in_use(w, 1));
    expect_path(weights_file_in_use(w, 2)->path, "two.safetensors");
    assert_ok(weights_open_all(w, &err), err);
    for (int32_t i = 0; i < 5; i++) {
        const tensor *t = weights_at(w, i, &used);
        assert_string_equal(t->name, order[i].name);
        assert_ptr_equal(expect_tensor(w, order[i].name, order[i].file), t);
        expect_path(weights_file_at(w, t->data), order[i].file);
        assert_int_equal(used, i == 4);
    }
    assert_ptr_equal(expect_tensor(w, "d", "two.safetensors"), d); /* opened once, kept */
    expect_absent(w, "f");
    expect_absent(w, "weight_map");
    weights_close(w);
}

/* What nobody asks for is not opened: it may be damaged. And a failure is no end: the rest stays usable. */
static void test_lazy(void **state)
{
    weights *w = NULL;
    const tensor *t;
    (void)state;
    put_good();
    tmp_write(dir, "three.safetensors", "damaged");
    assert_ok(weights_open(alloc_default(), dir, FILE_MAP, &w, &err), err);
    expect_tensor(w, "a", "one.safetensors");
    tmp_delete(dir, "one.safetensors"); /* the map holds it */
    tmp_delete(dir, "two.safetensors");
    expect_tensor(w, "b", "one.safetensors");
    assert_int_equal(weights_find(w, "c", &t, &err), LATH_ERR_NOT_FOUND);
    assert_non_null(strstr(err.msg, "/two.safetensors: "));
    assert_null(t);
    assert_int_equal(weights_find(w, "e", &t, &err), LATH_ERR_FORMAT);
    assert_non_null(strstr(err.msg, "/three.safetensors: 7 bytes"));
    assert_int_equal(weights_open_all(w, &err), LATH_ERR_FORMAT);
    put_shard("two.safetensors", "cd");
    expect_tensor(w, "c", "two.safetensors");
    expect_tensor(w, "a", "one.safetensors");
    weights_close(w);
}

/* ------------------------------------------------------------------------------------------------------- bad indexes */

static void test_bad_index(void **state)
{
    static const struct {
        const char *index;
        lath_status status;
        const char *part;
    } rows[] = {
        {"", LATH_ERR_FORMAT, "not JSON"},
        {"[]", LATH_ERR_FORMAT, "want a JSON object"},
        {"7", LATH_ERR_FORMAT, "want a JSON object"},
        {"{}", LATH_ERR_FORMAT, "no \"weight_map\" in it"},
        {"{\"metadata\": {}}", LATH_ERR_FORMAT, "no \"weight_map\" in it"},
        {"{\"weight_map\": null}", LATH_ERR_FORMAT, "line 1: \"weight_map\": want an object"},
        {"{\n\"weight_map\": [\"a\"]}", LATH_ERR_FORMAT, "line 2: \"weight_map\": want an object"},
        {"{\"weight_map\": {}}", LATH_ERR_FORMAT, "\"weight_map\": no tensors in it"},
        {"{\"weight_map\": {\"a\": \"one.safetensors\"", LATH_ERR_FORMAT, "line 1"},
        {"{\"weight_map\": {\"a\": \"one.safetensors\",\n\"a\": \"two.safetensors\"}}", LATH_ERR_FORMAT,
         "line 2: duplicate key \"a\""},
        {"{\"weight_map\": {\"a\": 7}}", LATH_ERR_FORMAT, "tensor \"a\": want the name of a file"},
        {"{\"weight_map\": {\"a\": null}}", LATH_ERR_FORMAT, "tensor \"a\": want the name of a file"},
        {"{\"weight_map\": {\"a\": [\"one.safetensors\"]}}", LATH_ERR_FORMAT, "tensor \"a\": want the name of a file"},
        {"{\"weight_map\": {\"a\": \"\"}}", LATH_ERR_FORMAT, "tensor \"a\": no file has such a name"},
        {"{\"weight_map\": {\"a\": \"one\\u0000.safetensors\"}}", LATH_ERR_FORMAT,
         "tensor \"a\": no file has such a name"},
        {"{\"weight_map\": {\"a\\u0000b\": \"one.safetensors\"}}", LATH_ERR_FORMAT, "a zero byte in a name"},
        {"{\"weight_map\": {\"a\": \"/etc/passwd\"}}", LATH_ERR_FORMAT,
         "tensor \"a\": file \"/etc/passwd\" is outside the model's directory"},
        {"{\"weight_map\": {\"a\": \"../one.safetensors\"}}", LATH_ERR_FORMAT, "is outside the model's directory"},
        {"{\"weight_map\": {\"a\": \"sub/../one.safetensors\"}}", LATH_ERR_FORMAT, "is outside the model's directory"},
        {"{\"weight_map\": {\"a\": \"sub/one.safetensors\"}}", LATH_ERR_FORMAT, "is outside the model's directory"},
        {"{\"weight_map\": {\"a\": \"./one.safetensors\"}}", LATH_ERR_FORMAT, "is outside the model's directory"},
        {"{\"weight_map\": {\"a\": \"..\\\\one.safetensors\"}}", LATH_ERR_FORMAT, "is outside the model's directory"},
        {"{\"weight_map\": {\"a\": \"..\"}}", LATH_ERR_FORMAT, "is outside the model's directory"},
        {"{\"weight_map\": {\"a\": \".\"}}", LATH_ERR_FORMAT, "is outside the model's directory"},
        {"{\"weight_map\": {\"a\": \"one.safetensors\", \"x\": \"none.safetensors\"}}", LATH_ERR_NOT_FOUND,
         "/none.safetensors: no such file (" INDEX " names it)"},
        {"{\"weight_map\": {\"a\": \"one.safetensors\", \"x\": \"empty.safetensors\"}}", LATH_ERR_FORMAT,
         "/empty.safetensors: the file is empty"},
        {"{\"weight_map\": {\"a\": \"sub\"}}", LATH_ERR_NOT_FOUND, "/sub: is a directory"},
        {"{\"weight_map\": {\"a\": \"dangling.safetensors\"}}", LATH_ERR_NOT_FOUND, "/dangling.safetensors: "},
    };
    char path[TMP_PATH];
    (void)state;
    put_good();
    tmp_write(dir, "empty.safetensors", "");
    tmp_write(dir, "sub/one.safetensors", "x");
    tmp_join(path, dir, "dangling.safetensors");
    assert_int_equal(symlink("nowhere", path), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        weights *w = NULL;
        tmp_write(dir, INDEX, rows[i].index);
        const lath_status st = weights_open(alloc_default(), dir, FILE_MAP, &w, &err);
        if (st != rows[i].status || !strstr(err.msg, rows[i].part))
            fail_msg("%s: status %d: %s", rows[i].index, (int)st, err.msg);
        if (!strstr(rows[i].part, ".safetensors: ") && !strstr(rows[i].part, "/sub"))
            assert_non_null(strstr(err.msg, "/" INDEX ": "));
        assert_null(w);
    }
}

/* Shards that are not those of the index: found when they are opened, whichever tensor was asked for. */
static void test_foreign_shards(void **state)
{
    static const struct {
        const char *one, *two, *ask, *part;
    } rows[] = {
        {"cd", "ab", "a", "/one.safetensors: tensor \"c\" is in it, but " INDEX " places it in "}, /* swapped */
        {"cd", "ab", "d", "/two.safetensors: tensor \"a\" is in it, but " INDEX " places it in "},
        {"a", "cd", "a", "/one.safetensors: no tensor \"b\" in it (" INDEX " places it there)"},
        {"a", "cd", "b", "/one.safetensors: no tensor \"b\" in it (" INDEX " places it there)"},
        {"abz", "cd", "a", "/one.safetensors: tensor \"z\" is in it, but not in " INDEX},
        {"ab", "cdb", "c", "/two.safetensors: tensor \"b\" is in it, but " INDEX " places it in "}, /* twice */
        {"", "cd", "a", "/one.safetensors: no tensor \""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        weights *w = NULL;
        const tensor *t;
        put_good();
        put_shard("one.safetensors", rows[i].one);
        put_shard("two.safetensors", rows[i].two);
        assert_ok(weights_open(alloc_default(), dir, FILE_MAP, &w, &err), err);
        for (int again = 0; again < 2; again++) {
            assert_int_equal(weights_find(w, rows[i].ask, &t, &err), LATH_ERR_FORMAT);
            if (!strstr(err.msg, rows[i].part)) fail_msg("row %zu: %s", i, err.msg);
            assert_null(t);
        }
        expect_tensor(w, "e", "three.safetensors");
        weights_close(w);
    }
}

/* ----------------------------------------------------------------------------------------------- what else is there */

static void test_others(void **state)
{
    static const char *const names[] = {"pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5",
                                        "flax_model.msgpack", "adapter_model.safetensors"};
    weights *w = NULL;
    (void)state;
    assert_int_equal(weights_open(alloc_default(), dir, FILE_MAP, &w, &err), LATH_ERR_NOT_FOUND);
    assert_non_null(strstr(err.msg, ": no model.safetensors in it"));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        tmp_write(dir, names[i], "x");
        assert_int_equal(weights_open(alloc_default(), dir, FILE_MAP, &w, &err), LATH_ERR_UNSUPPORTED);
        assert_non_null(strstr(err.msg, names[i]));
        assert_non_null(strstr(err.msg, "not supported"));
        tmp_delete(dir, names[i]);
    }
    tmp_write(dir, "here", "x");
    char path[TMP_PATH];
    tmp_join(path, dir, "here"); /* a file, where a directory is wanted */
    assert_int_equal(weights_open(alloc_default(), path, FILE_MAP, &w, &err), LATH_ERR_NOT_FOUND);
    assert_null(w);
}

/* A hub cache: the snapshot has links to blobs, which lie outside of it. */
static void test_cache_links(void **state)
{
    static const char *const names[] = {INDEX, "one.safetensors", "two.safetensors", "three.safetensors"};
    char snapshot[TMP_PATH], link[TMP_PATH], to[TMP_PATH];
    weights *w = NULL;
    (void)state;
    put_good();
    tmp_write(dir, "snapshots/0123/config.json", "{}");
    tmp_join(snapshot, dir, "snapshots/0123");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(to, sizeof(to), "../../%s", names[i]);
        tmp_join(link, snapshot, names[i]);
        assert_int_equal(symlink(to, link), 0);
    }
    assert_ok(weights_open(alloc_default(), snapshot, FILE_MAP, &w, &err), err);
    for (const char *c = "abcde"; *c; c++) {
        const char name[2] = {*c, 0};
        const tensor *t;
        assert_ok(weights_find(w, name, &t, &err), err);
        assert_true(value_of(t) == (float)*c);
        assert_non_null(strstr(weights_file_of(w, t), "/snapshots/0123/"));
    }
    weights_close(w);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)
    static const struct CMUnitTest tests[] = {TEST(test_single), TEST(test_single_empty), TEST(test_shards),
                                              TEST(test_lazy),   TEST(test_bad_index),    TEST(test_foreign_shards),
                                              TEST(test_others), TEST(test_cache_links)};
    return TEST_RUN(tests);
}
