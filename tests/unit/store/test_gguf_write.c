/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gguf_write.c: the GGUF writer byte for byte with a file by the `gguf` package's writer that has the same keys and tensors
 * (tools/ref/make_gguf_files.py: written.gguf); nothing is left of a file that was not finished; a full disk is an error.
 */
#include <unistd.h>

#include "store/gguf_write.h"
#include "support/test.h"
#include "support/tmpdir.h"

static void put_keys(gguf_writer *w)
{
    static const int32_t numbers[] = {1, -2, 3};
    static const float scores[] = {0.5f, -1.25f};
    gguf_put_text(w, "general.architecture", "llama", 5);
    gguf_put_u32(w, "llama.block_count", 4000000000u);
    gguf_put_i32(w, "a.i32", -7);
    gguf_put_f32(w, "a.f32", 1e-5f);
    gguf_put_bool(w, "a.bool", true);
    gguf_put_text(w, "a.text", "h\xC3\xA9", 3);
    gguf_put_array(w, "a.numbers", GGUF_I32, numbers, 3);
    gguf_put_array(w, "a.scores", GGUF_F32, scores, 2);
    gguf_put_texts(w, "a.texts", 3);
    gguf_put_next_text(w, "", 0);
    gguf_put_next_text(w, "one", 3);
    gguf_put_next_text(w, "two words", 9);
}

static void refused(lath_status got, lath_status want, const lath_error *err, const char *text)
{
    assert_int_equal(got, want);
    if (!strstr(err->msg, text)) fail_msg("\"%s\" is not in: %s", text, err->msg);
}

static const uint64_t vector_dim[] = {5}, matrix_dim[] = {32, 3}, cube_dim[] = {32, 2, 2};

static void add_tensors(gguf_writer *w)
{
    lath_error err;
    assert_ok(gguf_add_tensor(w, "a.vector", DTYPE_F32, 1, vector_dim, &err), err);
    assert_ok(gguf_add_tensor(w, "a.matrix", DTYPE_Q8_0, 2, matrix_dim, &err), err);
    assert_ok(gguf_add_tensor(w, "a.cube", DTYPE_F16, 3, cube_dim, &err), err);
}

/* Byte i of a tensor is i * 7 + its length. */
static void write_tensor(gguf_writer *w, size_t n)
{
    uint8_t data[512];
    lath_error err;
    for (size_t i = 0; i < n; i++) data[i] = (uint8_t)(i * 7 + n);
    for (size_t at = 0; at < n; at += 13) assert_ok(gguf_write(w, data + at, n - at < 13 ? n - at : 13, &err), err);
}

static void test_bytes(void **state)
{
    (void)state;
    char dir[TMP_PATH], path[TMP_PATH], made[512];
    gguf_writer *w;
    lath_error err;
    uint64_t bytes;
    size_t n, n_want;
    tmp_make(dir);
    tmp_join(path, dir, "w.gguf");
    assert_ok(gguf_writer_create(alloc_default(), path, &w, &err), err);
    put_keys(w);
    add_tensors(w);
    assert_ok(gguf_writer_begin(w, &err), err);
    write_tensor(w, 20);
    write_tensor(w, 3 * 34);
    write_tensor(w, 256);
    assert_ok(gguf_writer_finish(w, &bytes, &err), err);
    char *got = tmp_read(dir, "w.gguf", &n);
    snprintf(made, sizeof(made), "%s/unit/store", test_data_dir());
    char *want = tmp_read(made, "written.gguf", &n_want);
    assert_int_equal(n, n_want);
    assert_int_equal(n, bytes);
    assert_memory_equal(got, want, n);
    free(got), free(want);
    tmp_remove(dir);
}

/* What is refused is refused where it is added. */
static void test_refused(void **state)
{
    (void)state;
    char dir[TMP_PATH], path[TMP_PATH];
    gguf_writer *w;
    lath_error err;
    static const uint64_t odd[] = {33, 2}, huge[] = {1ull << 40, 1ull << 40};
    tmp_make(dir);
    tmp_join(path, dir, "w.gguf");
    assert_ok(gguf_writer_create(alloc_default(), path, &w, &err), err);
    add_tensors(w);
    refused(gguf_add_tensor(w, "a.cube", DTYPE_F32, 1, vector_dim, &err), LATH_ERR_FORMAT, &err, "twice");
    refused(gguf_add_tensor(w, "b", DTYPE_Q8_0, 2, odd, &err), LATH_ERR_FORMAT, &err, "whole number of Q8_0 blocks");
    refused(gguf_add_tensor(w, "c", DTYPE_F32, 2, huge, &err), LATH_ERR_LIMIT, &err, "overflows");
    gguf_writer_abort(w);
    assert_int_equal(rmdir(dir), 0); /* nothing is left in it */
}

static void test_full_disk(void **state)
{
    (void)state;
    gguf_writer *w;
    lath_error err;
    if (access("/dev/full", W_OK) != 0) return;
    assert_ok(gguf_writer_create(alloc_default(), "/dev/full", &w, &err), err);
    put_keys(w);
    refused(gguf_writer_begin(w, &err), LATH_ERR_IO, &err, "/dev/full");
    gguf_writer_abort(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bytes), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_full_disk)};
    return TEST_RUN(tests);
}
