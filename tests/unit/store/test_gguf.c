/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gguf.c: the GGUF reader on files by the `gguf` package's writer (tools/ref/make_gguf_files.py): every kind of value, alignment, tensors;
 * then the same files with one field damaged, or cut at every length: an error that names file and field, never more.
 */
#include "store/gguf.h"
#include "support/test.h"
#include "support/tmpdir.h"

enum { FILE_MAX = 1 << 16 };

static void path_of(char *out, size_t n, const char *name)
{
    snprintf(out, n, "%s/fuzz/corpus/fuzz_gguf/%s", test_data_dir(), name);
}

static size_t load(const char *name, uint8_t *data)
{
    char path[512];
    path_of(path, sizeof(path), name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(data, 1, FILE_MAX, f);
    fclose(f);
    return n;
}

static gguf *open_good(const char *name)
{
    char path[512];
    gguf *g = NULL;
    lath_error err;
    path_of(path, sizeof(path), name);
    assert_ok(gguf_open(alloc_default(), path, FILE_MAP, &g, &err), err);
    return g;
}

static void test_values(void **state)
{
    (void)state;
    gguf *g = open_good("kinds.gguf");
    assert_int_equal(gguf_version(g), 3);
    assert_int_equal(gguf_alignment(g), 32);
    assert_true(gguf_get(g, "a.u8")->as.u == 200);
    assert_true(gguf_get(g, "a.i8")->as.i == -100);
    assert_true(gguf_get(g, "a.u16")->as.u == 60000);
    assert_true(gguf_get(g, "a.i16")->as.i == -30000);
    assert_true(gguf_get(g, "a.u32")->as.u == 4000000000u);
    assert_true(gguf_get(g, "a.i32")->as.i == -2000000000);
    assert_true(gguf_get(g, "a.f32")->as.f == 0.5);
    assert_true(gguf_get(g, "a.bool")->as.u == 1);
    assert_true(gguf_get(g, "a.u64")->as.u == 9223372036854775809u);
    assert_true(gguf_get(g, "a.i64")->as.i == -4611686018427387904);
    assert_true(gguf_get(g, "a.f64")->as.f == -0.1);
    assert_null(gguf_get(g, "a.none"));
    gguf_close(g);
}

static void test_arrays(void **state)
{
    (void)state;
    gguf *g = open_good("kinds.gguf");
    static const char *const want[3] = {"", "b", "ccc"};
    const gguf_value *v = gguf_get(g, "a.strings");
    assert_int_equal(v->as.array.count, 3);
    const uint8_t *at = v->as.array.data;
    for (int i = 0; i < 3; i++) {
        const gguf_value s = gguf_next(v, &at);
        assert_int_equal(s.as.text.len, strlen(want[i]));
        assert_memory_equal(s.as.text.data, want[i], strlen(want[i]));
    }
    v = gguf_get(g, "a.nested");
    assert_int_equal(v->as.array.count, 2);
    at = v->as.array.data;
    const gguf_value first = gguf_next(v, &at), second = gguf_next(v, &at);
    assert_int_equal(first.as.array.count, 2);
    assert_int_equal(second.as.array.count, 1);
    at = second.as.array.data;
    assert_int_equal(gguf_next(&second, &at).as.i, 3);
    gguf_close(g);
}

static void test_tensors(void **state)
{
    (void)state;
    gguf *g = open_good("align.gguf");
    assert_int_equal(gguf_alignment(g), 64);
    assert_int_equal(gguf_n_tensors(g), 3);
    const gguf_tensor *t = gguf_find(g, "t.Q5_1");
    assert_int_equal(t->type, DTYPE_Q5_1);
    assert_int_equal(t->rank, 2);
    assert_int_equal(t->dim[0], 64);
    assert_int_equal(t->dim[1], 3);
    assert_int_equal(t->bytes, 3 * 2 * 24);
    assert_int_equal((size_t)(t->data - gguf_file(g)->data) % 64, 0);
    gguf_close(g);
}

/* The bytes as a file: the status of opening it. */
static lath_status open_bytes(const char *dir, const uint8_t *data, size_t n, lath_error *err)
{
    char path[TMP_PATH];
    gguf *g = NULL;
    tmp_write_bytes(dir, "bad.gguf", data, n);
    tmp_join(path, dir, "bad.gguf");
    const lath_status st = gguf_open(alloc_default(), path, FILE_COPY, &g, err);
    gguf_close(g);
    if (st != LATH_OK && !strstr(err->msg, "bad.gguf")) fail_msg("no file in: %s", err->msg);
    return st;
}

/* Where the bytes of a name begin. */
static size_t find_text(const uint8_t *data, size_t n, const char *text)
{
    const uint8_t *p = memmem(data, n, text, strlen(text));
    assert_non_null(p);
    return (size_t)(p - data);
}

typedef struct damage {
    const char *behind; /* NULL: of the file's begin */
    size_t skip;        /* bytes behind that name */
    size_t n;
    uint64_t value;
    lath_status st;
    const char *why;
} damage;

static void test_damage(void **state)
{
    (void)state;
    static const damage cases[] = {
        {NULL, 0, 4, 0x20202020, LATH_ERR_FORMAT, "no GGUF file"},
        {NULL, 4, 4, 1, LATH_ERR_UNSUPPORTED, "version 1"},
        {NULL, 4, 4, 0x03000000, LATH_ERR_UNSUPPORTED, "big-endian"},
        {NULL, 8, 8, UINT64_MAX, LATH_ERR_FORMAT, "too many tensors"},
        {NULL, 16, 8, 1u << 30, LATH_ERR_FORMAT, "too many keys"},
        {"a.u8", 0, 4, 13, LATH_ERR_FORMAT, "key \"a.u8\": a value of unknown type"},
        {"a.bool", 4, 1, 2, LATH_ERR_FORMAT, "key \"a.bool\": a bool"},
        {"a.strings", 8, 8, UINT64_MAX, LATH_ERR_FORMAT, "key \"a.strings\": an array ends"},
        {"a.strings", 16, 8, 1u << 30, LATH_ERR_FORMAT, "key \"a.strings\": a string over"},
        {"t.F32", 0, 4, 5, LATH_ERR_FORMAT, "tensor \"t.F32\": more than 4"},
        {"t.F32", 4, 8, INT64_MAX, LATH_ERR_FORMAT, "tensor \"t.F32\": the shape overflows"},
        {"t.F32", 20, 4, 4, LATH_ERR_UNSUPPORTED, "tensor \"t.F32\": element type 4"},
        {"t.Q8_0", 4, 8, 65, LATH_ERR_FORMAT, "tensor \"t.Q8_0\": rows of 65"},
        {"t.Q8_0", 24, 8, 1, LATH_ERR_FORMAT, "tensor \"t.Q8_0\": its offset is not aligned"},
        {"t.Q8_0", 24, 8, 32, LATH_ERR_FORMAT, "lies over another"},
        {"t.Q8_0", 24, 8, 1 << 20, LATH_ERR_FORMAT, "tensor \"t.Q8_0\": ends behind"},
    };
    static uint8_t good[FILE_MAX], data[FILE_MAX];
    char dir[TMP_PATH];
    tmp_make(dir);
    const size_t n = load("kinds.gguf", good);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const damage *c = &cases[i];
        lath_error err;
        memcpy(data, good, n);
        const size_t at = (c->behind ? find_text(good, n, c->behind) + strlen(c->behind) : 0) + c->skip;
        memcpy(data + at, &c->value, c->n);
        const lath_status st = open_bytes(dir, data, n, &err);
        if (st != c->st || !strstr(err.msg, c->why)) fail_msg("want %s, got %d: %s", c->why, (int)st, err.msg);
    }
    tmp_remove(dir);
}

static void test_alignment(void **state)
{
    (void)state;
    static uint8_t data[FILE_MAX];
    static const uint32_t values[] = {0, 3, 1u << 31};
    char dir[TMP_PATH];
    tmp_make(dir);
    const size_t n = load("align.gguf", data), at = find_text(data, n, "general.alignment") + 17 + 4;
    for (int i = 0; i < 3; i++) {
        lath_error err;
        memcpy(data + at, &values[i], 4);
        assert_int_equal(open_bytes(dir, data, n, &err), LATH_ERR_FORMAT);
        assert_non_null(strstr(err.msg, "key \"general.alignment\": want a power of two"));
    }
    tmp_remove(dir);
}

static void test_cut(void **state)
{
    (void)state;
    static uint8_t data[FILE_MAX];
    char dir[TMP_PATH];
    tmp_make(dir);
    const size_t n = load("kinds.gguf", data);
    /* The last tensor's bytes end before the padding does. */
    const size_t needed = n - 32 + (3 * 2 * 34) % 32;
    for (size_t i = 0; i < needed; i++) {
        lath_error err;
        if (open_bytes(dir, data, i, &err) != LATH_ERR_FORMAT) fail_msg("opens, or fails otherwise, at %zu bytes", i);
    }
    tmp_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_arrays),    cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_damage), cmocka_unit_test(test_alignment), cmocka_unit_test(test_cut),
    };
    return TEST_RUN(tests);
}
