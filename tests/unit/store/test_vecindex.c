/* SPDX-License-Identifier: Apache-2.0
 *
 * test_vecindex.c: the vector index file. The layout is read byte by byte as docs/formats/index.md has it, without the
 * writer's structures; then every way to damage a file has to be refused, with the reason in the message.
 */
#include "store/vecindex.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "support/test.h"

enum { N = 5, D = 3, SPANS_AT = 320, FILE_BYTES = 400 }; /* 256 + 5*3*4 = 316, up to 320; + 5*16 */

static char dir[256], path[320];
static const vecindex_key key = {{0x1111, 0x2222}, 0x3333, {0x4444, 0x5555}, 1000};

static int make_dir(void **state)
{
    const char *tmp = getenv("TMPDIR");
    (void)state;
    snprintf(dir, sizeof(dir), "%s/lath-vecindex-XXXXXX", tmp && *tmp ? tmp : ".");
    if (!mkdtemp(dir)) return -1;
    snprintf(path, sizeof(path), "%s/x.lath", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir); /* fails, and with it the group, when a temporary file was left behind */
}

static void make_rows(float *rows, vecindex_span *spans)
{
    for (int i = 0; i < N * D; i++) rows[i] = (float)i / 8 - 1;
    for (int i = 0; i < N; i++) spans[i] = (vecindex_span){(uint64_t)i * 100, 99};
}

static void write_index(void)
{
    float rows[N * D];
    vecindex_span spans[N];
    vecindex_writer *w;
    lath_error err;
    make_rows(rows, spans);
    assert_ok(vecindex_create(alloc_default(), path, &key, D, &w, &err), err);
    assert_ok(vecindex_add(w, rows, spans, 2, &err), err);
    assert_ok(vecindex_add(w, rows, spans, 0, &err), err);
    assert_ok(vecindex_add(w, rows + 2 * D, spans + 2, N - 2, &err), err);
    assert_int_equal(access(vecindex_temp_path(w), F_OK), 0);
    assert_ok(vecindex_commit(w, &err), err);
}

static size_t read_bytes(uint8_t *bytes, size_t most)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(bytes, 1, most, f);
    fclose(f);
    return n;
}

static void write_bytes(const uint8_t *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static uint64_t u64_at(const uint8_t *b, size_t at)
{
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--) v = v << 8 | b[at + (size_t)i];
    return v;
}

static void put_u64(uint8_t *b, size_t at, uint64_t v)
{
    for (size_t i = 0; i < 8; i++) b[at + i] = (uint8_t)(v >> (8 * i));
}

/* Makes the checksums right again after a change, so that the check behind them is reached. */
static void reseal(uint8_t *b, size_t n)
{
    const hash128 h = hash_128(b + 256, n - 256, 0);
    put_u64(b, 128, h.lo);
    put_u64(b, 136, h.hi);
    put_u64(b, 248, hash_64(b, 248));
}

static void test_layout(void **state)
{
    uint8_t b[1024];
    (void)state;
    write_index();
    assert_int_equal(read_bytes(b, sizeof(b)), FILE_BYTES);
    assert_memory_equal(b, "LATHVIX1\1\0\0\0\0\1\0\0\1\0\0\0\0\0\0\0", 24);
    const uint64_t want[] = {N,    D,   0x1111,    0x2222,   0x3333, 0x4444,    0x5555,
                             1000, 256, N * D * 4, SPANS_AT, N * 16, FILE_BYTES};
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) assert_int_equal(u64_at(b, 24 + 8 * i), want[i]);
    for (size_t i = 144; i < 248; i++) assert_int_equal(b[i], 0);
    assert_memory_equal(b + 256, "\0\0\x80\xbf\0\0\x60\xbf\0\0\x40\xbf", 12); /* -1, -0.875, -0.75 */
    assert_memory_equal(b + 316, "\0\0\0\0", 4);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(u64_at(b, SPANS_AT + 16 * i), 100 * i);
        assert_int_equal(u64_at(b, SPANS_AT + 16 * i + 8), 99);
    }
    const hash128 h = hash_128(b + 256, FILE_BYTES - 256, 0);
    assert_true(u64_at(b, 128) == h.lo && u64_at(b, 136) == h.hi);
    assert_true(u64_at(b, 248) == hash_64(b, 248));
}

static void test_read_back(void **state)
{
    float rows[N * D];
    vecindex_span spans[N];
    lath_error err;
    (void)state;
    write_index();
    make_rows(rows, spans);
    for (int mode = FILE_MAP; mode <= FILE_COPY; mode++) {
        vecindex x;
        assert_ok(vecindex_open(alloc_default(), path, (file_mode)mode, &x, &err), err);
        assert_int_equal(x.n, N);
        assert_int_equal(x.d, D);
        assert_int_equal((uintptr_t)x.rows % 64, 0);
        assert_memory_equal(x.rows, rows, sizeof(rows));
        assert_memory_equal(x.spans, spans, sizeof(spans));
        assert_memory_equal(&x.key, &key, sizeof(key));
        vecindex_close(&x);
    }
}

static void test_empty(void **state)
{
    vecindex_writer *w;
    vecindex x;
    lath_error err;
    (void)state;
    assert_ok(vecindex_create(alloc_default(), path, &key, 7, &w, &err), err);
    assert_ok(vecindex_commit(w, &err), err);
    assert_ok(vecindex_open(alloc_default(), path, FILE_MAP, &x, &err), err);
    assert_int_equal(x.n, 0);
    assert_int_equal(x.d, 7);
    vecindex_close(&x);
}

static void refused(const char *what, const char *word)
{
    vecindex x;
    lath_error err;
    const lath_status st = vecindex_open(alloc_default(), path, FILE_MAP, &x, &err);
    if (st != LATH_ERR_FORMAT) fail_msg("%s: status %d, want LATH_ERR_FORMAT", what, (int)st);
    if (!strstr(err.msg, word) || !strstr(err.msg, path))
        fail_msg("%s: message \"%s\" lacks \"%s\" or the path", what, err.msg, word);
}

static void test_every_length(void **state)
{
    uint8_t b[FILE_BYTES + 1] = {0};
    (void)state;
    write_index();
    assert_int_equal(read_bytes(b, FILE_BYTES), FILE_BYTES);
    for (size_t n = 0; n < FILE_BYTES; n++) {
        write_bytes(b, n);
        refused("cut", n == 0 ? "not a lath vector index" : "cut");
    }
    write_bytes(b, FILE_BYTES + 1);
    refused("longer", "behind its end");
}

static void test_every_bit(void **state)
{
    uint8_t b[FILE_BYTES];
    (void)state;
    write_index();
    assert_int_equal(read_bytes(b, FILE_BYTES), FILE_BYTES);
    for (size_t i = 0; i < FILE_BYTES; i++) {
        b[i] ^= (uint8_t)(1u << (i % 8));
        write_bytes(b, FILE_BYTES);
        refused("bit", i < 8 ? "not a lath vector index" : "damaged");
        b[i] ^= (uint8_t)(1u << (i % 8));
    }
}

/* A header that lies, with checksums that are right. */
static void test_lies(void **state)
{
    static const struct {
        const char *what;
        size_t at;
        uint64_t value;
        const char *word;
    } rows[] = {
        {"version", 8, 2 | (uint64_t)256 << 32, "version 2"},
        {"type", 16, 2, "type 2"},
        {"flags", 16, 1 | (uint64_t)1 << 32, "does not know"},
        {"reserved", 200, 1, "does not know"},
        {"huge n", 24, UINT64_MAX / 4, "vectors of"},
        {"n too large", 24, N + 1, "do not follow"},
        {"zero d", 32, 0, "vectors of 0"},
        {"huge d", 32, UINT64_MAX, "vectors of"},
        {"vectors offset", 88, 64, "do not follow"},
        {"spans offset", 104, 256, "do not follow"},
        {"file size", 120, 336, "do not follow"},
        {"small corpus", 80, 400, "outside the corpus"},
        {"span offset", SPANS_AT, UINT64_MAX, "outside the corpus"},
        {"span length", SPANS_AT + 8, UINT64_MAX, "outside the corpus"},
    };
    uint8_t good[FILE_BYTES], b[FILE_BYTES];
    (void)state;
    write_index();
    assert_int_equal(read_bytes(good, FILE_BYTES), FILE_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        memcpy(b, good, FILE_BYTES);
        put_u64(b, rows[i].at, rows[i].value);
        reseal(b, FILE_BYTES);
        write_bytes(b, FILE_BYTES);
        refused(rows[i].what, rows[i].word);
    }
    memset(b, 0, 256);
    write_bytes(b, FILE_BYTES);
    refused("unfinished", "never finished");
}

static void test_bad_calls(void **state)
{
    const float row[D] = {0};
    const vecindex_span outside = {990, 11};
    vecindex_writer *w;
    vecindex x;
    struct stat sb;
    lath_error err;
    (void)state;
    write_index();
    assert_int_equal(vecindex_create(alloc_default(), path, &key, 0, &w, &err), LATH_ERR_USAGE);
    assert_int_equal(vecindex_create(alloc_default(), dir, &key, 1, &w, &err), LATH_ERR_IO);
    assert_int_equal(vecindex_create(alloc_default(), "/dev/null", &key, 1, &w, &err), LATH_ERR_IO);
    assert_int_equal(stat("/dev/null", &sb), 0);
    assert_true(S_ISCHR(sb.st_mode));
    assert_int_equal(vecindex_open(alloc_default(), dir, FILE_MAP, &x, &err), LATH_ERR_NOT_FOUND);
    assert_ok(vecindex_create(alloc_default(), path, &key, D, &w, &err), err);
    assert_int_equal(vecindex_add(w, row, &outside, 1, &err), LATH_ERR_USAGE);
    assert_int_equal(err.item, 0);
    vecindex_abort(w);
    vecindex_abort(NULL);
    test_read_back(state); /* an aborted writer leaves the old file as it was */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),       cmocka_unit_test(test_read_back), cmocka_unit_test(test_empty),
        cmocka_unit_test(test_every_length), cmocka_unit_test(test_every_bit), cmocka_unit_test(test_lies),
        cmocka_unit_test(test_bad_calls),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir) != 0;
}
