/* SPDX-License-Identifier: Apache-2.0
 *
 * test_safetensors.c: the reader against bytes that the reference package wrote, and a table of headers, good and bad. The verdict of the
 * reference reader (Python package safetensors 0.8.0, `deserialize`) stands beside each: ACCEPT or REFUSE; where lath is stricter on
 * purpose the row says STRICTER.
 */
#include "store/safetensors.h"

#include <time.h>
#include <unistd.h>

#include "support/test.h"

static char path[512];

static void put(const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* Prefix, header text and n_data zero bytes. */
static void put_header(const char *header, size_t n, size_t n_data)
{
    uint8_t *file = calloc(1, 8 + n + n_data);
    for (int i = 0; i < 8; i++) file[i] = (uint8_t)((uint64_t)n >> (8 * i));
    memcpy(file + 8, header, n);
    put(file, 8 + n + n_data);
    free(file);
}

static int make_path(void **state)
{
    const char *tmp = getenv("TMPDIR");
    (void)state;
    snprintf(path, sizeof path, "%s/lath-st-XXXXXX", tmp && *tmp ? tmp : ".");
    const int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state)
{
    (void)state;
    return unlink(path);
}

/* -------------------------------------------------------------------------------------------------- what the reference wrote */

/* safetensors.torch.save({"scale": tensor(2.5), "weight": [[1,-2,3],[4,5,0.5]], "h": bf16 [1,-2], "ids": arange(3), "none": zeros(0, 4),
 * "grüße": u8 [7]}, metadata={"format": "pt"}) */
static const char reference_header[] =
    "{\"__metadata__\":{\"format\":\"pt\"},\"ids\":{\"dtype\":\"I64\",\"shape\":[3],\"data_offsets\":[0,24]},"
    "\"none\":{\"dtype\":\"F32\",\"shape\":[0,4],\"data_offsets\":[24,24]},"
    "\"scale\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[24,28]},"
    "\"weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[28,52]},"
    "\"h\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[52,56]},"
    "\"gr\xc3\xbc\xc3\x9f"
    "e\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[56,57]}}";
static const uint8_t reference_data[] = {0,  0,  0, 0, 0,   0,  0, 0,  1,   0,  0, 0,   0,  0,  0,   0,  2,   0,   0,
                                         0,  0,  0, 0, 0,   0,  0, 32, 64,  0,  0, 128, 63, 0,  0,   0,  192, 0,   0,
                                         64, 64, 0, 0, 128, 64, 0, 0,  160, 64, 0, 0,   0,  63, 128, 63, 0,   192, 7};

static void put_reference(void)
{
    enum { N = sizeof reference_header - 1 };
    uint8_t file[8 + N + sizeof reference_data] = {N & 255, N >> 8};
    memcpy(file + 8, reference_header, N);
    memcpy(file + 8 + N, reference_data, sizeof reference_data);
    put(file, sizeof file);
}

static void expect_tensor(const tensor *t, const char *name, dtype type, int32_t rank, const int64_t *dim, size_t bytes)
{
    assert_non_null(t);
    int64_t count = 1;
    assert_string_equal(t->name, name);
    assert_int_equal(t->type, type);
    assert_int_equal(t->rank, rank);
    for (int32_t i = 0; i < rank; i++) {
        assert_int_equal(t->dim[i], dim[i]);
        count *= dim[i];
    }
    assert_int_equal(t->count, count);
    assert_int_equal(t->bytes, bytes);
}

static void test_reference_file(void **state)
{
    lath_error err;
    (void)state;
    put_reference();
    for (int mode = FILE_MAP; mode <= FILE_COPY; mode++) {
        safetensors *st = NULL;
        float scale, weight[6];
        static const float want[6] = {1, -2, 3, 4, 5, 0.5f};
        assert_ok(safetensors_open(alloc_default(), path, (file_mode)mode, &st, &err), err);
        assert_int_equal(safetensors_count(st), 6);
        expect_tensor(safetensors_at(st, 0), "ids", DTYPE_I64, 1, (int64_t[]){3}, 24);
        expect_tensor(safetensors_at(st, 1), "none", DTYPE_F32, 2, (int64_t[]){0, 4}, 0);
        expect_tensor(safetensors_at(st, 2), "scale", DTYPE_F32, 0, NULL, 4);
        expect_tensor(safetensors_at(st, 3), "weight", DTYPE_F32, 2, (int64_t[]){2, 3}, 24);
        expect_tensor(safetensors_at(st, 4), "h", DTYPE_BF16, 1, (int64_t[]){2}, 4);
        expect_tensor(safetensors_at(st, 5),
                      "gr\xc3\xbc\xc3\x9f"
                      "e",
                      DTYPE_U8, 1, (int64_t[]){1}, 1);
        memcpy(&scale, safetensors_find(st, "scale")->data, sizeof scale);
        memcpy(weight, safetensors_find(st, "weight")->data, sizeof weight);
        assert_true(scale == 2.5f);
        assert_memory_equal(weight, want, sizeof want);
        assert_ptr_equal(safetensors_find(st, "h"), safetensors_at(st, 4));
        assert_null(safetensors_find(st, "wei"));
        assert_null(safetensors_find(st, "__metadata__"));
        assert_string_equal(safetensors_file(st)->path, path);
        assert_true(safetensors_private_bytes(st) >= 6 * sizeof(tensor));
        safetensors_close(st);
    }
    safetensors_close(NULL);
}

/* A cut at any byte is refused, and so is a byte too many. */
static void test_every_cut(void **state)
{
    enum { N = sizeof reference_header - 1, ALL = 8 + N + sizeof reference_data };
    lath_error err;
    (void)state;
    for (size_t n = 0; n < ALL; n++) {
        safetensors *st = NULL;
        put_reference();
        assert_int_equal(truncate(path, (off_t)n), 0);
        assert_int_equal(safetensors_open(alloc_default(), path, FILE_MAP, &st, &err), LATH_ERR_FORMAT);
        assert_non_null(strstr(err.msg, path));
        assert_null(st);
    }
}

/* -------------------------------------------------------------------------------------------------------------- the header table */

enum verdict { ACCEPT, REFUSE, STRICTER }; /* STRICTER: the reference accepts, lath refuses */

typedef struct header_case {
    const char *header;
    size_t n_data;
    enum verdict verdict;
    const char *names; /* a part of the message beside the path */
    lath_status status;
} header_case;

#define F "\"dtype\":\"F32\","
#define ONE "{" F "\"shape\":[1],\"data_offsets\":[0,4]}"
#define BAD(text, n, part)                     \
    {                                          \
        text, n, REFUSE, part, LATH_ERR_FORMAT \
    }
#define GOOD(text, n)                  \
    {                                  \
        text, n, ACCEPT, NULL, LATH_OK \
    }

static const header_case cases[] = {
    GOOD("{}", 0),
    GOOD("{\"a\":" ONE "}", 4),
    GOOD(" {\"a\":" ONE "}", 4),
    GOOD("{\"a\":" ONE "}   \n\t ", 4),
    GOOD("{\"\":" ONE "}", 4),
    GOOD("{\"__metadata__\":null}", 0),
    GOOD("{\"__metadata__\":{}}", 0),
    GOOD("{\"__metadata__\":{\"a\":\"b\"},\"a\":" ONE "}", 4),
    GOOD("{\"a\":{" F "\"shape\":[1],\"data_offsets\":[0,4],\"more\":[1,{}]}}", 4),
    GOOD("{\"a\":{" F "\"shape\":[],\"data_offsets\":[0,4]}}", 4),
    GOOD("{\"a\":{" F "\"shape\":[0,3],\"data_offsets\":[0,0]}}", 0),
    GOOD("{\"a\":" ONE ",\"z\":{" F "\"shape\":[0],\"data_offsets\":[4,4]},\"b\":{" F
         "\"shape\":[1],\"data_offsets\":[4,8]}}",
         8),
    GOOD("{\"b\":{" F "\"shape\":[1],\"data_offsets\":[4,8]},\"a\":" ONE "}", 8),
    GOOD("{\"a\":{" F "\"shape\":[0,4611686018427387904,8],\"data_offsets\":[0,0]}}", 0),
    /* the header as text */
    BAD("", 0, "no JSON object"),
    BAD("   ", 0, "no JSON object"),
    BAD("[]", 0, "no JSON object"),
    BAD("\xef\xbb\xbf{}", 0, "no JSON object"),
    BAD("{}x", 0, "line 1"),
    BAD("{}\"", 0, "line 1"),
    BAD("{\"a\":" ONE, 4, "line 1"),
    BAD("{\"\xff\":" ONE "}", 4, "line 1"),
    BAD("{\"\\ud800\":" ONE "}", 4, "line 1"),
    {"{\"a\":" ONE ",\"a\":" ONE "}", 4, STRICTER, "\"a\"", LATH_ERR_FORMAT},
    BAD("{\"__metadata__\":{\"a\":1}}", 0, "__metadata__"),
    BAD("{\"__metadata__\":[]}", 0, "__metadata__"),
    BAD("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "\"__metadata__\""),
    {"{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, STRICTER, "\"k\"", LATH_ERR_FORMAT},
    /* members of a tensor */
    {"{\"a\":[\"F32\",[1],[0,4]]}", 4, STRICTER, "tensor \"a\"", LATH_ERR_FORMAT},
    BAD("{\"a\":3}", 4, "tensor \"a\""),
    BAD("{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "tensor \"a\": dtype"),
    BAD("{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "tensor \"a\": dtype"),
    {"{\"a\":{\"dtype\":\"f32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, REFUSE,
     "tensor \"a\": unknown dtype \"f32\"", LATH_ERR_UNSUPPORTED},
    {"{\"a\":{\"dtype\":\"C64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8, STRICTER,
     "tensor \"a\": unknown dtype \"C64\"", LATH_ERR_UNSUPPORTED},
    {"{\"a\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,1]}}", 1, STRICTER,
     "tensor \"a\": unknown dtype \"F4\"", LATH_ERR_UNSUPPORTED},
    BAD("{\"a\":{" F F "\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "\"dtype\""),
    BAD("{\"a\":{" F "\"data_offsets\":[0,4]}}", 4, "tensor \"a\": shape"),
    BAD("{\"a\":{" F "\"shape\":null,\"data_offsets\":[0,4]}}", 4, "tensor \"a\": shape"),
    BAD("{\"a\":{" F "\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "tensor \"a\": shape"),
    BAD("{\"a\":{" F "\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4, "tensor \"a\": shape"),
    BAD("{\"a\":{" F "\"shape\":[1e0],\"data_offsets\":[0,4]}}", 4, "tensor \"a\": shape"),
    BAD("{\"a\":{" F "\"shape\":[\"1\"],\"data_offsets\":[0,4]}}", 4, "tensor \"a\": shape"),
    {"{\"a\":{" F "\"shape\":[9223372036854775808,0],\"data_offsets\":[0,0]}}", 0, STRICTER, "tensor \"a\": shape",
     LATH_ERR_FORMAT},
    {"{\"a\":{" F "\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, STRICTER,
     "tensor \"a\": shape of more than 8", LATH_ERR_UNSUPPORTED},
    BAD("{\"a\":{" F "\"shape\":[4611686018427387904,8,0],\"data_offsets\":[0,0]}}", 0,
        "tensor \"a\": shape: too many"),
    BAD("{\"a\":{" F "\"shape\":[4611686018427387904],\"data_offsets\":[0,0]}}", 0, "tensor \"a\": shape: too many"),
    BAD("{\"a\":{" F "\"shape\":[1]}}", 4, "tensor \"a\": data_offsets"),
    BAD("{\"a\":{" F "\"shape\":[1],\"data_offsets\":{\"0\":0}}}", 4, "tensor \"a\": data_offsets"),
    BAD("{\"a\":{" F "\"shape\":[1],\"data_offsets\":[4]}}", 4, "tensor \"a\": data_offsets"),
    BAD("{\"a\":{" F "\"shape\":[1],\"data_offsets\":[0,4,4]}}", 4, "tensor \"a\": data_offsets"),
    BAD("{\"a\":{" F "\"shape\":[1],\"data_offsets\":[4,0]}}", 4, "tensor \"a\": data_offsets"),
    BAD("{\"a\":{" F "\"shape\":[1],\"data_offsets\":[-4,0]}}", 4, "tensor \"a\": data_offsets"),
    BAD("{\"a\":{" F "\"shape\":[1],\"data_offsets\":[0,18446744073709551616]}}", 4, "tensor \"a\": data_offsets"),
    BAD("{\"a\":{" F "\"shape\":[3],\"data_offsets\":[0,8]}}", 8,
        "tensor \"a\": data_offsets hold 8 bytes, F32 [3] needs 12"),
    BAD("{\"a\":{" F "\"shape\":[0],\"data_offsets\":[0,4]}}", 4, "tensor \"a\": data_offsets hold 4 bytes"),
    /* the data section as a whole */
    BAD("{\"a\":{" F "\"shape\":[2],\"data_offsets\":[0,8]}}", 7, "tensor \"a\": ends at byte 8"),
    BAD("{\"a\":" ONE "}", 5, "5 bytes of data"),
    BAD("{}", 1, "1 bytes of data"),
    BAD("{\"a\":{" F "\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "tensor \"a\": begins at byte 4"),
    BAD("{\"a\":" ONE ",\"b\":{" F "\"shape\":[1],\"data_offsets\":[8,12]}}", 12, "tensor \"b\": begins at byte 8"),
    BAD("{\"a\":{" F "\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{" F "\"shape\":[2],\"data_offsets\":[4,12]}}", 12,
        "tensor \"b\": begins at byte 4"),
    BAD("{\"a\":" ONE ",\"b\":" ONE "}", 4, "tensor \"b\": begins at byte 0"),
    BAD("{\"a\":{" F "\"shape\":[2],\"data_offsets\":[0,8]},\"z\":{" F "\"shape\":[0],\"data_offsets\":[4,4]}}", 8,
        "tensor \"z\": begins at byte 4"),
    {"{\"a\\u0000b\":" ONE "}", 4, STRICTER, "tensor \"a\": a zero byte", LATH_ERR_FORMAT},
};

static void test_headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const header_case *c = &cases[i];
        lath_error err = {0};
        safetensors *st = NULL;
        put_header(c->header, strlen(c->header), c->n_data);
        const lath_status got = safetensors_open(alloc_default(), path, FILE_MAP, &st, &err);
        if (got != c->status)
            fail_msg("header %s: status %d, want %d: %s", c->header, (int)got, (int)c->status, err.msg);
        if (c->verdict != ACCEPT) {
            if (!strstr(err.msg, path) || !strstr(err.msg, c->names))
                fail_msg("header %s: message is: %s", c->header, err.msg);
            assert_null(st);
        }
        safetensors_close(st);
    }
}

/* Offset order is the order of the data, whatever the order in the header; tensors of zero bytes keep the header's. */
static void test_order(void **state)
{
    static const char header[] =
        "{\"c\":{\"dtype\":\"I8\",\"shape\":[3],\"data_offsets\":[2,5]},\"y\":{\"dtype\":\"I8\",\"shape\":[0],\"data_offsets\":[2,2]},"
        "\"x\":{\"dtype\":\"I8\",\"shape\":[0],\"data_offsets\":[2,2]},\"a\":{\"dtype\":\"I8\",\"shape\":[2],\"data_offsets\":[0,2]}}";
    static const char *want[] = {"a", "y", "x", "c"};
    safetensors *st = NULL;
    lath_error err;
    (void)state;
    put_header(header, sizeof header - 1, 5);
    assert_ok(safetensors_open(alloc_default(), path, FILE_MAP, &st, &err), err);
    assert_int_equal(safetensors_count(st), 4);
    for (int32_t i = 0; i < 4; i++) assert_string_equal(safetensors_at(st, i)->name, want[i]);
    safetensors_close(st);
}

/* N need not be a multiple of 8: data at odd addresses is handed out as it lies. */
static void test_odd_addresses(void **state)
{
    static const char header[] = "{\"a\":" ONE "}";
    uint8_t file[8 + sizeof header - 1 + 1 + 4] = {sizeof header};
    safetensors *st = NULL;
    lath_error err;
    float v;
    (void)state;
    memcpy(file + 8, header, sizeof header - 1);
    for (size_t pad = 0; pad < 2; pad++) {
        const size_t n = sizeof header - 1 + pad;
        const float one = 1.5f;
        file[0] = (uint8_t)n;
        if (pad) file[8 + n - 1] = ' ';
        memcpy(file + 8 + n, &one, 4);
        put(file, 8 + n + 4);
        assert_ok(safetensors_open(alloc_default(), path, FILE_MAP, &st, &err), err);
        memcpy(&v, safetensors_at(st, 0)->data, 4);
        assert_true(v == one);
        assert_int_equal((uintptr_t)safetensors_at(st, 0)->data % 2, n % 2);
        safetensors_close(st);
    }
}

/* ------------------------------------------------------------------------------------------------------------- prefix and path */

static void expect_message(lath_status want, const char *at, const char *part)
{
    safetensors *st = NULL;
    lath_error err = {0};
    assert_int_equal(safetensors_open(alloc_default(), at, FILE_MAP, &st, &err), want);
    if (!strstr(err.msg, part)) fail_msg("message is: %s", err.msg);
    assert_null(st);
}

static void test_prefix(void **state)
{
    (void)state;
    put("", 0);
    expect_message(LATH_ERR_FORMAT, path, "0 bytes are too few");
    put("\2\0\0\0\0\0\0", 7);
    expect_message(LATH_ERR_FORMAT, path, "7 bytes are too few");
    put("\3\0\0\0\0\0\0\0{}", 10);
    expect_message(LATH_ERR_FORMAT, path, "header of 3 bytes in a file of 10: the file is cut");
    put("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10);
    expect_message(LATH_ERR_FORMAT, path, "header of 18446744073709551615 bytes");
    put("\x01\xe1\xf5\x05\0\0\0\0{}", 10);
    expect_message(LATH_ERR_FORMAT, path, "header of 100000001 bytes, at most 100000000");
    put("\x00\xe1\xf5\x05\0\0\0\0{}", 10);
    expect_message(LATH_ERR_FORMAT, path, "header of 100000000 bytes in a file of 10");
    put("version https://git-lfs", 23); /* what is left of a model when large files were not fetched */
    expect_message(LATH_ERR_FORMAT, path, "no safetensors file");
    expect_message(LATH_ERR_NOT_FOUND, "no/such/file.safetensors", "no/such/file.safetensors");
    expect_message(LATH_ERR_NOT_FOUND, ".", "directory");
}

/* A long name is cut between characters, and control characters do not break the line. */
static void test_names_in_messages(void **state)
{
    char header[1024];
    lath_error err = {0};
    safetensors *st = NULL;
    (void)state;
    int n = snprintf(header, sizeof header, "{\"new\\nline ");
    for (int i = 0; i < 100; i++) n += snprintf(header + n, sizeof header - (size_t)n, "\xc3\xa4");
    n += snprintf(header + n, sizeof header - (size_t)n, "\":3}");
    put_header(header, (size_t)n, 0);
    assert_int_equal(safetensors_open(alloc_default(), path, FILE_MAP, &st, &err), LATH_ERR_FORMAT);
    assert_non_null(strstr(err.msg, "new?line \xc3\xa4"));
    assert_non_null(strstr(err.msg, "\xc3\xa4...\": want an object"));
    assert_null(strchr(err.msg, '\n'));
}

/* ------------------------------------------------------------------------------------------------------------------ large, starved */

/* As many tensors as the largest models have, in the worst order. The bound is far above what sorting needs (a fraction of a second) and far
 * below what a quadratic check would take. */
static void test_many_tensors(void **state)
{
    enum { N = 100000 };
    const size_t cap = (size_t)N * 96;
    char *header = malloc(cap);
    size_t n = 0;
    safetensors *st = NULL;
    lath_error err;
    (void)state;
    header[n++] = '{';
    for (int i = 0; i < N; i++) {
        const int at = (int)((int64_t)i * 7919 % N);
        n += (size_t)snprintf(header + n, cap - n,
                              "%s\"layer.%d.w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[%d,%d]}",
                              i ? "," : "", at, 2 * at, 2 * at + 2);
    }
    header[n++] = '}';
    put_header(header, n, 2 * (size_t)N);
    const clock_t start = clock();
    assert_ok(safetensors_open(alloc_default(), path, FILE_MAP, &st, &err), err);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 5.0);
    assert_int_equal(safetensors_count(st), N);
    for (int32_t i = 0; i < N; i += 997) {
        char name[32];
        snprintf(name, sizeof name, "layer.%d.w", i);
        assert_string_equal(safetensors_at(st, i)->name, name);
        assert_ptr_equal(safetensors_find(st, name), safetensors_at(st, i));
    }
    safetensors_close(st);
    free(header);
}

/* An allocator that fails from its k-th call on and knows how many bytes are out. */
typedef struct starved {
    int left;
    size_t out;
} starved;

static void *starved_alloc(void *ctx, size_t size, size_t align)
{
    starved *s = ctx;
    void *p = s->left-- > 0 ? alloc_bytes(alloc_default(), size, align) : NULL;
    if (p) s->out += size;
    return p;
}

static void *starved_resize(void *ctx, void *p, size_t old_size, size_t size, size_t align)
{
    starved *s = ctx;
    void *q = s->left-- > 0 ? alloc_resize(alloc_default(), p, old_size, size, align) : NULL;
    if (q) s->out += size - old_size;
    return q;
}

static void starved_release(void *ctx, void *p, size_t size)
{
    starved *s = ctx;
    s->out -= size;
    alloc_release(alloc_default(), p, size);
}

static void test_starved(void **state)
{
    int k = 0;
    lath_status got;
    (void)state;
    put_reference();
    do {
        starved s = {k, 0};
        const lath_allocator a = {&s, starved_alloc, starved_resize, starved_release};
        lath_error err = {0};
        safetensors *st = NULL;
        got = safetensors_open(&a, path, FILE_COPY, &st, &err);
        if (got != LATH_OK) {
            assert_int_equal(got, LATH_ERR_NOMEM);
            assert_null(st);
        }
        safetensors_close(st);
        assert_int_equal(s.out, 0);
        k++;
    } while (got != LATH_OK && k < 1000);
    assert_int_equal(got, LATH_OK);
    assert_true(k > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference_file),    cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_headers),           cmocka_unit_test(test_order),
        cmocka_unit_test(test_odd_addresses),     cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_names_in_messages), cmocka_unit_test(test_many_tensors),
        cmocka_unit_test(test_starved),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path) == 0 ? 0 : 1;
}
