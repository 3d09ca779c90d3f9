/* SPDX-License-Identifier: Apache-2.0
 *
 * test_vecindex.c: the vector index file. The layout is read byte by byte as docs/formats/index.md has it, without the
 * writer's structures, in all three types; then every way to damage a file has to be refused, with the reason in the
 * message, at the latest when the damaged part is used.
 */
#include "store/vecindex.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "support/test.h"

/* of f32: 256 + 5*3*4 = 316, up to 320; + 5*32; + one block's 16 */
enum { N = 5, D = 3, ENTRIES_AT = 320, CHECKS_AT = 480, FILE_BYTES = 496 };

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

static void make_rows(float *rows, vecindex_entry *entries)
{
    for (int i = 0; i < N * D; i++) rows[i] = (float)i / 8 - 1;
    for (int i = 0; i < N; i++)
        entries[i] = (vecindex_entry){(uint64_t)i * 100, 99, {(uint64_t)i + 7, (uint64_t)i + 8}};
}

static void write_type(vecindex_type type)
{
    float rows[N * D];
    vecindex_entry entries[N];
    vecindex_writer *w;
    lath_error err;
    make_rows(rows, entries);
    assert_ok(vecindex_create(alloc_default(), path, &key, type, D, &w, &err), err);
    assert_ok(vecindex_add(w, rows, entries, 2, &err), err);
    assert_ok(vecindex_add(w, rows, entries, 0, &err), err);
    assert_ok(vecindex_add(w, rows + 2 * D, entries + 2, N - 2, &err), err);
    assert_int_equal(access(vecindex_temp_path(w), F_OK), 0);
    assert_ok(vecindex_commit(w, &err), err);
}

static void write_index(void) { write_type(VECINDEX_F32); }

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
static void reseal(uint8_t *b)
{
    put_u64(b, CHECKS_AT, hash_64(b + 256, N * D * 4));
    put_u64(b, CHECKS_AT + 8, hash_64(b + ENTRIES_AT, N * 32));
    const hash128 h = hash_128(b + CHECKS_AT, 16, 0);
    put_u64(b, 128, h.lo);
    put_u64(b, 136, h.hi);
    put_u64(b, 248, hash_64(b, 248));
}

static void check_u64s(const uint8_t *b, size_t at, const uint64_t *want, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (u64_at(b, at + 8 * i) != want[i]) fail_msg("u64 at %zu: %llu", at + 8 * i, (unsigned long long)want[i]);
    }
}

static void test_layout(void **state)
{
    uint8_t b[1024];
    (void)state;
    write_index();
    assert_int_equal(read_bytes(b, sizeof(b)), FILE_BYTES);
    assert_memory_equal(b, "LATHVIX1\2\0\0\0\0\1\0\0\1\0\0\0\0\0\0\0", 24);
    const uint64_t first[] = {N,    D,   0x1111,    0x2222,     0x3333, 0x4444,    0x5555,
                              1000, 256, N * D * 4, ENTRIES_AT, N * 32, FILE_BYTES};
    const uint64_t second[] = {D * 4, 131072 / (D * 4), CHECKS_AT, 16};
    check_u64s(b, 24, first, 13);
    check_u64s(b, 144, second, 4);
    for (size_t i = 176; i < 248; i++) assert_int_equal(b[i], 0);
    assert_memory_equal(b + 256, "\0\0\x80\xbf\0\0\x60\xbf\0\0\x40\xbf", 12); /* -1, -0.875, -0.75 */
    assert_memory_equal(b + 316, "\0\0\0\0", 4);
    for (size_t i = 0; i < N; i++) {
        const uint64_t entry[] = {100 * i, 99, i + 7, i + 8};
        check_u64s(b, ENTRIES_AT + 32 * i, entry, 4);
    }
    assert_true(u64_at(b, CHECKS_AT) == hash_64(b + 256, N * D * 4));
    assert_true(u64_at(b, CHECKS_AT + 8) == hash_64(b + ENTRIES_AT, N * 32));
    const hash128 h = hash_128(b + CHECKS_AT, 16, 0);
    assert_true(u64_at(b, 128) == h.lo && u64_at(b, 136) == h.hi);
    assert_true(u64_at(b, 248) == hash_64(b, 248));
}

/* Row 0 is -1, -0.875, -0.75: in f16 as it is; in int8 -127, round(-111.125), round(-95.25), of the row's length. */
static void test_layout_f16(void **state)
{
    uint8_t b[1024];
    (void)state;
    write_type(VECINDEX_F16);
    assert_int_equal(read_bytes(b, sizeof(b)), 320 + N * 32 + 16); /* 256 + 5*3*2 = 286 */
    assert_int_equal(b[16], 2);
    assert_int_equal(u64_at(b, 144), 6);
    assert_memory_equal(b + 256, "\x00\xbc\x00\xbb\x00\xba", 6);
}

static void test_layout_i8(void **state)
{
    uint8_t b[1024];
    float scale;
    (void)state;
    write_type(VECINDEX_I8);
    assert_int_equal(read_bytes(b, sizeof(b)), 320 + N * 32 + 16); /* 256 + 5*8 = 296 */
    assert_int_equal(b[16], 3);
    assert_int_equal(u64_at(b, 144), 8);
    memcpy(&scale, b + 256, 4);
    const double length = sqrt(1 + 0.875 * 0.875 + 0.75 * 0.75), coded = sqrt(127.0 * 127 + 111.0 * 111 + 95.0 * 95);
    assert_true(fabs((double)scale - length / coded) < 1e-9);
    assert_memory_equal(b + 260, "\x81\x91\xa1\0", 4); /* -127, -111, -95 */
}

static void test_read_back(void **state)
{
    float rows[N * D];
    vecindex_entry entries[N], e;
    lath_error err;
    (void)state;
    write_index();
    make_rows(rows, entries);
    for (int mode = FILE_MAP; mode <= FILE_COPY; mode++) {
        vecindex x;
        assert_ok(vecindex_open(alloc_default(), path, (file_mode)mode, &x, &err), err);
        assert_int_equal(x.n, N);
        assert_int_equal(x.d, D);
        assert_int_equal(x.type, VECINDEX_F32);
        assert_int_equal((uintptr_t)x.vectors % 64, 0);
        assert_ok(vecindex_check(&x, 0, &err), err);
        assert_memory_equal(x.vectors, rows, sizeof(rows));
        for (size_t i = 0; i < N; i++) {
            assert_ok(vecindex_get_entry(&x, i, &e, &err), err);
            assert_memory_equal(&e, &entries[i], sizeof(e));
        }
        assert_memory_equal(&x.key, &key, sizeof(key));
        assert_ok(vecindex_verify(&x, &err), err);
        vecindex_close(&x);
    }
}

/* What comes back is as near as the type says; f16 and int8 take no number that they cannot hold. */
static void test_numbers(void **state)
{
    float v[40], back[40];
    uint8_t row[44];
    (void)state;
    for (int i = 0; i < 40; i++) v[i] = (float)sin(i * 1.7) * (float)(i % 7);
    double most = 0, length = 0, coded = 0;
    for (int i = 0; i < 40; i++) most = fmax(most, fabs((double)v[i])), length += (double)v[i] * (double)v[i];
    assert_int_equal(vecindex_row_bytes(VECINDEX_F16, 40), 80);
    assert_int_equal(vecindex_row_bytes(VECINDEX_I8, 40), 44);
    assert_int_equal(vecindex_row_bytes(VECINDEX_I8, 41), 48);
    assert_int_equal(vecindex_row_bytes(VECINDEX_I8, VECINDEX_I8_MAX_D + 1), 0);
    assert_int_equal(vecindex_row_bytes(VECINDEX_F32, 0), 0);
    assert_int_equal(vecindex_row_bytes((vecindex_type)4, 1), 0);
    assert_true(vecindex_encode(VECINDEX_I8, 40, v, row));
    vecindex_decode(VECINDEX_I8, 40, row, back);
    for (int i = 0; i < 40; i++) {
        coded += (double)back[i] * (double)back[i];
        assert_true(fabs((double)back[i] - (double)v[i]) <= most / 254 * 1.02);
    }
    assert_true(fabs(sqrt(coded / length) - 1) < 1e-6); /* the length is kept */
    for (int bad = 0; bad < 2; bad++) {
        v[3] = bad ? NAN : -INFINITY;
        assert_false(vecindex_encode(VECINDEX_I8, 40, v, row));
        assert_false(vecindex_encode(VECINDEX_F16, 3 + 1, v, row));
    }
    v[3] = 65520.0f; /* would round to infinity */
    assert_false(vecindex_encode(VECINDEX_F16, 4, v, row));
    memset(v, 0, sizeof(v));
    assert_true(vecindex_encode(VECINDEX_I8, 40, v, row));
    vecindex_decode(VECINDEX_I8, 40, row, back);
    assert_memory_equal(back, v, sizeof(v));
}

static void test_empty(void **state)
{
    vecindex_writer *w;
    vecindex x;
    lath_error err;
    (void)state;
    assert_ok(vecindex_create(alloc_default(), path, &key, VECINDEX_I8, 7, &w, &err), err);
    assert_ok(vecindex_commit(w, &err), err);
    assert_ok(vecindex_open(alloc_default(), path, FILE_MAP, &x, &err), err);
    assert_int_equal(x.n, 0);
    assert_int_equal(x.d, 7);
    assert_ok(vecindex_verify(&x, &err), err);
    vecindex_close(&x);
}

/* Opens, and uses everything; where it fails, with which status. */
static lath_status use_all(lath_error *err)
{
    vecindex_entry e;
    vecindex x;
    lath_status st = vecindex_open(alloc_default(), path, FILE_MAP, &x, err);
    if (st != LATH_OK) return st;
    st = vecindex_check(&x, 0, err);
    for (uint64_t i = 0; st == LATH_OK && i < x.n; i++) st = vecindex_get_entry(&x, i, &e, err);
    assert_int_equal(vecindex_verify(&x, NULL), st);
    vecindex_close(&x);
    return st;
}

static void refused_as(lath_status want, const char *what, const char *word)
{
    lath_error err;
    const lath_status st = use_all(&err);
    if (st != want) fail_msg("%s: status %d, want %d", what, (int)st, (int)want);
    if (!strstr(err.msg, word) || !strstr(err.msg, path))
        fail_msg("%s: message \"%s\" lacks \"%s\" or the path", what, err.msg, word);
}

static void refused(const char *what, const char *word) { refused_as(LATH_ERR_FORMAT, what, word); }

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

/* Two blocks of int8 rows: damage in one is named by its rows, the other can still be used. */
static void test_blocks(void **state)
{
    enum { WIDE = 40000, ROWS = 5 }; /* three rows of 40004 bytes in a block */
    float *v = calloc((size_t)WIDE * ROWS, sizeof(*v));
    vecindex_entry entries[ROWS] = {0};
    vecindex_writer *w;
    vecindex x;
    lath_error err;
    (void)state;
    assert_non_null(v);
    for (int i = 0; i < WIDE * ROWS; i++) v[i] = (float)(i % 251) - 125;
    assert_ok(vecindex_create(alloc_default(), path, &key, VECINDEX_I8, WIDE, &w, &err), err);
    for (int i = 0; i < ROWS; i++) assert_ok(vecindex_add(w, v + (size_t)i * WIDE, entries, 1, &err), err);
    assert_ok(vecindex_commit(w, &err), err);
    FILE *f = fopen(path, "r+b");
    assert_true(f && fseek(f, 256 + 4 * 40004 + 100, SEEK_SET) == 0 && fputc(1, f) == 1 && fclose(f) == 0);
    assert_ok(vecindex_open(alloc_default(), path, FILE_MAP, &x, &err), err);
    assert_int_equal(x.n_blocks, 2);
    assert_ok(vecindex_check(&x, 0, &err), err);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(vecindex_check(&x, 1, &err), LATH_ERR_FORMAT);
        assert_non_null(strstr(err.msg, "rows 3 to 4"));
    }
    assert_int_equal(vecindex_verify(&x, &err), LATH_ERR_FORMAT);
    /* a copy takes the sound rows and refuses the others */
    char other[330];
    snprintf(other, sizeof(other), "%s.copy", path);
    assert_ok(vecindex_create(alloc_default(), other, &key, VECINDEX_I8, WIDE, &w, &err), err);
    assert_ok(vecindex_copy(w, &x, 1, entries, 2, &err), err);
    assert_int_equal(vecindex_copy(w, &x, 3, entries, 1, &err), LATH_ERR_FORMAT);
    vecindex_abort(w);
    vecindex_close(&x);
    free(v);
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
        {"version", 8, 3 | (uint64_t)256 << 32, "version 3"},
        {"no version", 8, (uint64_t)256 << 32, "version 0"},
        {"type", 16, 4, "type 4"},
        {"another type", 16, 2, "do not follow"},
        {"flags", 16, 1 | (uint64_t)1 << 32, "does not know"},
        {"reserved", 200, 1, "does not know"},
        {"huge n", 24, UINT64_MAX / 4, "vectors of"},
        {"n too large", 24, N + 1, "do not follow"},
        {"zero d", 32, 0, "vectors of 0"},
        {"huge d", 32, UINT64_MAX, "vectors of"},
        {"vectors offset", 88, 64, "do not follow"},
        {"entries offset", 104, 256, "do not follow"},
        {"file size", 120, 336, "do not follow"},
        {"row bytes", 144, 16, "do not follow"},
        {"block rows", 152, 1, "do not follow"},
        {"checks offset", 160, 256, "do not follow"},
        {"small corpus", 80, 400, "outside the corpus"},
        {"span offset", ENTRIES_AT, UINT64_MAX, "outside the corpus"},
        {"span length", ENTRIES_AT + 8, UINT64_MAX, "outside the corpus"},
    };
    uint8_t good[FILE_BYTES], b[FILE_BYTES];
    (void)state;
    write_index();
    assert_int_equal(read_bytes(good, FILE_BYTES), FILE_BYTES);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        memcpy(b, good, FILE_BYTES);
        put_u64(b, rows[i].at, rows[i].value);
        reseal(b);
        write_bytes(b, FILE_BYTES);
        refused(rows[i].what, rows[i].word);
    }
    memcpy(b, good, FILE_BYTES);
    put_u64(b, 8, 1 | (uint64_t)256 << 32);
    reseal(b);
    write_bytes(b, FILE_BYTES);
    refused_as(LATH_ERR_UNSUPPORTED, "version 1", "made again");
    memset(b, 0, 256);
    write_bytes(b, FILE_BYTES);
    refused("unfinished", "never finished");
}

/* f32 rows go into any type as if they were added; no other type goes into another. */
static void test_copy(void **state)
{
    uint8_t want[1024], got[1024];
    char other[330];
    vecindex_entry entries[N];
    float rows[N * D];
    vecindex_writer *w;
    vecindex x;
    lath_error err;
    (void)state;
    make_rows(rows, entries);
    snprintf(other, sizeof(other), "%s.f32", path);
    write_index();
    assert_int_equal(rename(path, other), 0);
    for (int type = VECINDEX_F32; type <= VECINDEX_I8; type++) {
        write_type((vecindex_type)type);
        const size_t n = read_bytes(want, sizeof(want));
        assert_ok(vecindex_open(alloc_default(), other, FILE_MAP, &x, &err), err);
        assert_ok(vecindex_create(alloc_default(), path, &key, (vecindex_type)type, D, &w, &err), err);
        assert_ok(vecindex_copy(w, &x, 0, entries, 4, &err), err);
        assert_ok(vecindex_add(w, rows + 4 * D, entries + 4, 1, &err), err);
        assert_int_equal(vecindex_copy(w, &x, N, entries, 1, &err), LATH_ERR_USAGE);
        assert_ok(vecindex_commit(w, &err), err);
        vecindex_close(&x);
        assert_int_equal(read_bytes(got, sizeof(got)), n);
        assert_memory_equal(got, want, n);
    }
    assert_ok(vecindex_open(alloc_default(), path, FILE_MAP, &x, &err), err);
    assert_ok(vecindex_create(alloc_default(), other, &key, VECINDEX_F16, D, &w, &err), err);
    assert_int_equal(vecindex_copy(w, &x, 0, entries, 1, &err), LATH_ERR_USAGE);
    vecindex_abort(w);
    vecindex_close(&x);
    unlink(other);
}

/* What a killed process left is removed by the next writer; what a living one writes, and what is no such file, stays. */
static void test_leftovers(void **state)
{
    char left[340], kept[340];
    vecindex_writer *living, *w;
    lath_error err;
    (void)state;
    snprintf(left, sizeof(left), "%s.4194999-0.tmp", path);
    snprintf(kept, sizeof(kept), "%s.note-0.tmp", path);
    const char *both[] = {left, kept};
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(both[i], "wb");
        assert_true(f && fclose(f) == 0);
    }
    assert_ok(vecindex_create(alloc_default(), path, &key, VECINDEX_F32, D, &living, &err), err);
    assert_int_not_equal(access(left, F_OK), 0);
    assert_int_equal(access(kept, F_OK), 0);
    assert_ok(vecindex_create(alloc_default(), path, &key, VECINDEX_F32, D, &w, &err), err);
    assert_int_equal(access(vecindex_temp_path(living), F_OK), 0);
    assert_ok(vecindex_commit(w, &err), err);
    assert_ok(vecindex_commit(living, &err), err);
    unlink(kept);
}

static void test_bad_calls(void **state)
{
    const float row[D] = {0}, nan_row[2 * D] = {0, 0, 0, 0, NAN, 0};
    const vecindex_entry outside = {990, 11, {0}}, fine[2] = {{0}};
    vecindex_writer *w;
    vecindex x;
    struct stat sb;
    lath_error err;
    (void)state;
    write_index();
    assert_int_equal(vecindex_create(alloc_default(), path, &key, VECINDEX_F32, 0, &w, &err), LATH_ERR_USAGE);
    assert_int_equal(vecindex_create(alloc_default(), path, &key, (vecindex_type)9, 1, &w, &err), LATH_ERR_USAGE);
    assert_int_equal(vecindex_create(alloc_default(), dir, &key, VECINDEX_F32, 1, &w, &err), LATH_ERR_IO);
    assert_int_equal(vecindex_create(alloc_default(), "/dev/null", &key, VECINDEX_F32, 1, &w, &err), LATH_ERR_IO);
    assert_int_equal(stat("/dev/null", &sb), 0);
    assert_true(S_ISCHR(sb.st_mode));
    assert_int_equal(vecindex_open(alloc_default(), dir, FILE_MAP, &x, &err), LATH_ERR_NOT_FOUND);
    assert_ok(vecindex_create(alloc_default(), path, &key, VECINDEX_F32, D, &w, &err), err);
    assert_int_equal(vecindex_add(w, row, &outside, 1, &err), LATH_ERR_USAGE);
    assert_int_equal(err.item, 0);
    vecindex_abort(w);
    assert_ok(vecindex_create(alloc_default(), path, &key, VECINDEX_I8, D, &w, &err), err);
    assert_int_equal(vecindex_add(w, nan_row, fine, 2, &err), LATH_ERR_INPUT);
    assert_int_equal(err.item, 1);
    vecindex_abort(w);
    vecindex_abort(NULL);
    test_read_back(state); /* an aborted writer leaves the old file as it was */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),       cmocka_unit_test(test_layout_f16), cmocka_unit_test(test_layout_i8),
        cmocka_unit_test(test_read_back),    cmocka_unit_test(test_numbers),    cmocka_unit_test(test_empty),
        cmocka_unit_test(test_every_length), cmocka_unit_test(test_every_bit),  cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_lies),         cmocka_unit_test(test_copy),       cmocka_unit_test(test_leftovers),
        cmocka_unit_test(test_bad_calls),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir) != 0;
}
