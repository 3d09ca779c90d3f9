/* SPDX-License-Identifier: Apache-2.0
 *
 * test_embrecords.c: the record file against bytes that tools/ref/make_embrecords.py made from the description alone; and every way to damage such
 * a file has to be refused, with the reason in the message. */
#include "store/embrecords.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "support/test.h"
#include "support/tmpdir.h"

enum { DIM = 3, HEADER = 128, RECORD = 12 + 4 * DIM, KEYS_AT = HEADER + 3 * RECORD, MOST = 4096 };

static const uint64_t model[2] = {0x0123456789ABCDEF, 0xFEDCBA9876543210};
static const char settings[] = "lath=0 pooling=2";
static const int32_t ids0[] = {101, 2300, 102}, ids1[] = {101, 102}, ids2[] = {101, 7, 7, 7, 250001, 102};
static const float v0[] = {0.5f, -0.25f, 1.0f}, v1[] = {1e-40f, -0.0f, 3.4028234e38f}, v2[] = {0.1f, 0.2f, 0.3f};
static const embrecord records[] = {{ids0, 3, 0, v0}, {ids1, 2, 0, v1}, {ids2, 6, 2, v2}};

static char dir[TMP_PATH], path[TMP_PATH];
static uint8_t good[MOST];
static size_t size;
static lath_error err;

static int setup(void **state)
{
    char data[TMP_PATH];
    (void)state;
    tmp_make(dir);
    tmp_join(path, dir, "x.rec");
    tmp_join(data, test_data_dir(), "unit/store");
    char *bytes = tmp_read(data, "records.bin", &size);
    assert_true(size < MOST);
    memcpy(good, bytes, size);
    free(bytes);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tmp_remove(dir);
    return 0;
}

static void test_hash(void **state)
{
    (void)state;
    assert_true(embrecords_hash(NULL, 0) == 0xcbf29ce484222325u);
    const int32_t foob = 0x626F6F66; /* of the test vectors of the FNV authors */
    assert_true(embrecords_hash(&foob, 1) == 0xdd120e790c2512afu);
}

static void test_read(void **state)
{
    embrecords r;
    embrecord one;
    (void)state;
    tmp_write_bytes(dir, "x.rec", good, size);
    assert_ok(embrecords_open(alloc_default(), path, &r, &err), err);
    assert_int_equal(r.count, 3);
    assert_int_equal(r.dim, DIM);
    assert_memory_equal(r.model, model, sizeof(model));
    assert_int_equal(r.settings_len, strlen(settings));
    assert_memory_equal(r.settings, settings, r.settings_len);
    for (int i = 0; i < 3; i++) {
        assert_true(embrecords_next(&r, &one));
        assert_int_equal(one.n, records[i].n);
        assert_int_equal(one.skip, records[i].skip);
        assert_memory_equal(one.ids, records[i].ids, one.n * sizeof(int32_t));
        assert_memory_equal(one.vector, records[i].vector, DIM * sizeof(float));
    }
    assert_false(embrecords_next(&r, &one));
    embrecords_close(&r);
}

static void write_records(size_t n)
{
    embrecords_writer *w;
    assert_ok(embrecords_create(alloc_default(), path, model, settings, DIM, &w, &err), err);
    for (size_t i = 0; i < n; i++) assert_ok(embrecords_add(w, &records[i], &err), err);
    assert_ok(embrecords_commit(w, &err), err);
}

static void test_write(void **state)
{
    size_t n;
    (void)state;
    tmp_write_bytes(dir, "x.rec", "old", 3);
    write_records(3);
    char *bytes = tmp_read(dir, "x.rec", &n);
    assert_int_equal(n, size);
    assert_memory_equal(bytes, good, size);
    free(bytes);
}

static void test_empty_and_abort(void **state)
{
    embrecords r;
    embrecord one;
    embrecords_writer *w;
    (void)state;
    write_records(0);
    assert_ok(embrecords_open(alloc_default(), path, &r, &err), err);
    assert_false(embrecords_next(&r, &one));
    embrecords_close(&r);
    assert_ok(embrecords_create(alloc_default(), path, model, settings, DIM, &w, &err), err);
    assert_ok(embrecords_add(w, &records[0], &err), err);
    embrecords_abort(w);
    embrecords_abort(NULL);
    assert_ok(embrecords_open(alloc_default(), path, &r, &err), err); /* the one before is still there */
    assert_int_equal(r.count, 0);
    embrecords_close(&r);
    assert_int_equal(embrecords_create(alloc_default(), "/nowhere/x", model, settings, DIM, &w, &err), LATH_ERR_IO);
}

/* The changed file, its checksums made anew when `seal` says so, is refused for that reason. */
static void refuse(uint8_t *bytes, size_t n, bool seal, const char *part)
{
    embrecords r;
    if (seal) {
        const hash128 h = hash_128(bytes + HEADER, n - HEADER, 0);
        memcpy(bytes + 72, &h.lo, 8);
        memcpy(bytes + 80, &h.hi, 8);
        const uint64_t head = hash_64(bytes, 120);
        memcpy(bytes + 120, &head, 8);
    }
    tmp_write_bytes(dir, "x.rec", bytes, n);
    if (embrecords_open(alloc_default(), path, &r, &err) != LATH_ERR_FORMAT || !strstr(err.msg, part) ||
        !strstr(err.msg, path))
        fail_msg("status %d (%s), want LATH_ERR_FORMAT (%s)", (int)err.status, err.msg, part);
    assert_null(r.file.data);
}

static void refuse_u32(size_t at, uint32_t value, const char *part)
{
    uint8_t bytes[MOST];
    memcpy(bytes, good, size);
    memcpy(bytes + at, &value, sizeof(value));
    refuse(bytes, size, true, part);
}

static void test_every_byte_and_cut(void **state)
{
    uint8_t bytes[MOST];
    (void)state;
    for (size_t i = 0; i < size; i++) {
        memcpy(bytes, good, size);
        bytes[i] ^= 0x10;
        refuse(bytes, size, false, "x.rec: ");
        memcpy(bytes, good, size);
        refuse(bytes, i, false, "x.rec: ");
    }
    memcpy(bytes, good, size);
    bytes[size] = 0;
    refuse(bytes, size + 1, false, "bytes behind its end");
}

static void test_wrong_fields(void **state)
{
    const uint32_t nan = 0x7FC00000u, inf = 0xFF800000u;
    uint8_t bytes[MOST];
    (void)state;
    refuse_u32(0, 0, "does not begin with LATHEMB1");
    refuse_u32(8, 2, "version 2");
    refuse_u32(12, 256, "does not know");
    refuse_u32(88, 1, "does not know");
    refuse_u32(16, 0, "do not follow");
    refuse_u32(16, 4, "do not follow");
    refuse_u32(16, UINT32_MAX, "do not follow");
    refuse_u32(20, 1 << 20, "do not follow");
    refuse_u32(24, 4, "do not follow");
    refuse_u32(28, UINT32_MAX, "do not follow");
    refuse_u32(48, 0, "do not follow");
    refuse_u32(60, UINT32_MAX, "do not follow");
    refuse_u32(HEADER, 5, "record 0 is not of its token ids");
    refuse_u32(HEADER + RECORD + 8, 2, "record 1 has 2 numbers");
    refuse_u32(HEADER + 2 * RECORD + 12, nan, "record 2 is not finite");
    refuse_u32(HEADER + 2 * RECORD + 20, inf, "record 2 is not finite");
    refuse_u32(KEYS_AT + 4, 0, "do not fit");
    refuse_u32(KEYS_AT + 4, 1 << 30, "do not fit");
    refuse_u32(KEYS_AT + 4, UINT32_MAX, "do not fit");
    refuse_u32(KEYS_AT + 8, 100, "record 0 is not of its token ids");
    memcpy(bytes, good, size); /* one record less than there are keys */
    const uint64_t count = 2, records_bytes = 2 * RECORD, keys_bytes = 0x44 + RECORD;
    memcpy(bytes + 24, &count, 8);
    memcpy(bytes + 48, &records_bytes, 8);
    memcpy(bytes + 56, &keys_bytes, 8);
    refuse(bytes, size, true, "x.rec: ");
}

static void test_missing(void **state)
{
    embrecords r;
    (void)state;
    assert_int_equal(embrecords_open(alloc_default(), "nowhere.rec", &r, &err), LATH_ERR_NOT_FOUND);
    assert_int_equal(embrecords_open(alloc_default(), dir, &r, &err), LATH_ERR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_empty_and_abort),
        cmocka_unit_test(test_every_byte_and_cut),
        cmocka_unit_test(test_wrong_fields),
        cmocka_unit_test(test_missing),
    };
    return cmocka_run_group_tests(tests, setup, teardown) == 0 ? 0 : 1;
}
