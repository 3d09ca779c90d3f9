/* SPDX-License-Identifier: Apache-2.0
 *
 * test_file.c: mapping, copying and reading files, and the refusal of everything that is no regular file. The expected bytes are written
 * here by plain stdio.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/test.h"

static char dir[256];

static const char *in_dir(const char *name)
{
    static char path[2][512];
    static int turn;
    turn ^= 1;
    snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

static const char *put(const char *name, const void *p, size_t n)
{
    const char *path = in_dir(name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    return path;
}

static int make_dir(void **state)
{
    const char *tmp = getenv("TMPDIR");
    (void)state;
    snprintf(dir, sizeof dir, "%s/lath-file-XXXXXX", tmp && *tmp ? tmp : ".");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    static const char *names[] = {"plain", "empty", "pipe", "link", "secret", "big"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(in_dir(names[i]));
    rmdir(in_dir("sub"));
    return rmdir(dir);
}

static void test_map_and_copy(void **state)
{
    static const char bytes[] = "one\0two\xff\n";
    const size_t n = sizeof bytes - 1;
    lath_error err;
    (void)state;
    const char *path = put("plain", bytes, n);
    for (int mode = FILE_MAP; mode <= FILE_COPY; mode++) {
        file_map m;
        assert_ok(file_map_open(&m, alloc_default(), path, (file_mode)mode, &err), err);
        assert_int_equal(m.size, n);
        assert_memory_equal(m.data, bytes, n);
        assert_string_equal(m.path, path);
        assert_int_equal(m.mode, mode);
        file_map_close(&m);
        assert_null(m.data);
        file_map_close(&m); /* a zeroed one again */
    }
}

static void test_copy_survives_truncation(void **state)
{
    file_map m;
    lath_error err;
    (void)state;
    const char *path = put("plain", "abcdef", 6);
    assert_ok(file_map_open(&m, alloc_default(), path, FILE_COPY, &err), err);
    assert_int_equal(truncate(path, 0), 0);
    assert_memory_equal(m.data, "abcdef", 6);
    file_map_close(&m);
}

static void test_empty_file(void **state)
{
    file_map m;
    lath_error err;
    (void)state;
    const char *path = put("empty", "", 0);
    for (int mode = FILE_MAP; mode <= FILE_COPY; mode++) {
        assert_ok(file_map_open(&m, alloc_default(), path, (file_mode)mode, &err), err);
        assert_null(m.data);
        assert_int_equal(m.size, 0);
        file_map_close(&m);
    }
}

static void test_symbolic_link(void **state)
{
    file_map m;
    lath_error err;
    (void)state;
    put("plain", "abc", 3);
    assert_int_equal(symlink("plain", in_dir("link")), 0);
    assert_ok(file_map_open(&m, alloc_default(), in_dir("link"), FILE_MAP, &err), err);
    assert_memory_equal(m.data, "abc", 3);
    file_map_close(&m);
}

static void expect_refused(const char *path, const char *why)
{
    file_map m;
    buf b;
    lath_error err;
    buf_init(&b, alloc_default(), 1 << 20);
    for (int mode = FILE_MAP; mode <= FILE_COPY; mode++) {
        memset(&err, 0, sizeof err);
        assert_int_equal(file_map_open(&m, alloc_default(), path, (file_mode)mode, &err), LATH_ERR_NOT_FOUND);
        assert_non_null(strstr(err.msg, path));
        assert_non_null(strstr(err.msg, why));
        assert_null(m.data);
        assert_null(m.path);
    }
    memset(&err, 0, sizeof err);
    assert_int_equal(file_read(&b, path, 100, &err), LATH_ERR_NOT_FOUND);
    assert_non_null(strstr(err.msg, path));
    assert_non_null(strstr(err.msg, why));
    buf_deinit(&b);
}

static void test_no_regular_file(void **state)
{
    (void)state;
    expect_refused(dir, "directory");
    assert_int_equal(mkfifo(in_dir("pipe"), 0600), 0);
    expect_refused(in_dir("pipe"), "pipe"); /* would wait for a writer without O_NONBLOCK */
    expect_refused(in_dir("absent"), strerror(ENOENT));
    expect_refused("", strerror(ENOENT));
    put("plain", "abc", 3);
    expect_refused(in_dir("plain/x"), strerror(ENOTDIR));
    expect_refused("/dev/null", "device");
}

static void test_no_permission(void **state)
{
    (void)state;
    if (geteuid() == 0) return; /* root reads everything */
    assert_int_equal(chmod(put("secret", "abc", 3), 0), 0);
    expect_refused(in_dir("secret"), strerror(EACCES));
}

static void test_read_whole(void **state)
{
    enum { N = 200000 };
    char *bytes = malloc(N);
    buf b;
    lath_error err;
    (void)state;
    for (int i = 0; i < N; i++) bytes[i] = (char)(i * 7 + i / 251);
    const char *path = put("big", bytes, N);
    buf_init(&b, alloc_default(), 1 << 20);
    buf_str(&b, "what was there before");
    assert_ok(file_read(&b, path, N, &err), err); /* exactly at the limit */
    assert_int_equal(b.len, N);
    assert_memory_equal(b.data, bytes, N);
    assert_int_equal(file_read(&b, path, N - 1, &err), LATH_ERR_LIMIT);
    assert_non_null(strstr(err.msg, path));
    assert_ok(file_read(&b, put("empty", "", 0), 0, &err), err);
    assert_int_equal(b.len, 0);
    buf_deinit(&b);
    free(bytes);
}

/* The ceiling of the caller's buffer is a limit too, and the message still says which file. */
static void test_read_over_ceiling(void **state)
{
    buf b;
    lath_error err;
    (void)state;
    const char *path = put("plain", "0123456789abcdef", 16);
    buf_init(&b, alloc_default(), 8);
    assert_int_equal(file_read(&b, path, 1000, &err), LATH_ERR_LIMIT);
    assert_non_null(strstr(err.msg, path));
    buf_deinit(&b);
}

/* Files of /proc say that they have no bytes and have some. */
static void test_read_without_size(void **state)
{
    buf b;
    lath_error err;
    (void)state;
    if (!file_is_regular("/proc/self/status")) return;
    buf_init(&b, alloc_default(), 1 << 20);
    assert_ok(file_read(&b, "/proc/self/status", 1 << 20, &err), err);
    assert_true(b.len > 10);
    assert_non_null(strstr(buf_cstr(&b), "Pid:"));
    assert_int_equal(file_read(&b, "/proc/self/status", 10, &err), LATH_ERR_LIMIT);
    buf_deinit(&b);
}

static void test_kinds(void **state)
{
    (void)state;
    put("plain", "abc", 3);
    assert_true(file_is_regular(in_dir("plain")));
    assert_false(file_is_dir(in_dir("plain")));
    assert_true(file_is_dir(dir));
    assert_false(file_is_regular(dir));
    assert_false(file_is_regular(in_dir("absent")));
    assert_false(file_is_dir(in_dir("absent")));
}

static void test_join(void **state)
{
    buf b;
    (void)state;
    buf_init(&b, alloc_default(), 4096);
    file_join(&b, "a/b", "c");
    assert_string_equal(b.data, "a/b/c");
    file_join(&b, "a/", "c.json");
    assert_string_equal(b.data, "a/c.json");
    file_join(&b, "", "c");
    assert_string_equal(b.data, "c");
    file_join(&b, "/", "c");
    assert_string_equal(b.data, "/c");
    buf_deinit(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map_and_copy),
        cmocka_unit_test(test_copy_survives_truncation),
        cmocka_unit_test(test_empty_file),
        cmocka_unit_test(test_symbolic_link),
        cmocka_unit_test(test_no_regular_file),
        cmocka_unit_test(test_no_permission),
        cmocka_unit_test(test_read_whole),
        cmocka_unit_test(test_read_over_ceiling),
        cmocka_unit_test(test_read_without_size),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_join),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir) == 0 ? 0 : 1;
}
