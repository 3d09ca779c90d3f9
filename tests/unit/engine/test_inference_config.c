/* SPDX-License-Identifier: Apache-2.0
 * test_inference_config.c: inference_config.json: what is read, what is refused, and what the window becomes. */
#include "engine/engine.h"
#include "support/test.h"
#include "support/tmpdir.h"

static const char good[] = "golden/bert/mean_norm_gelu"; /* 40 positions, 200 tokens */

typedef struct row {
    const char *text; /* NULL: no such file */
    lath_status status;
    const char *part;               /* of the message */
    int32_t window, eos, rope, gpu; /* where it opens */
} row;

static const row rows[] = {
    {NULL, LATH_OK, NULL, 40, -1, 0, 2048},
    {"{}", LATH_OK, NULL, 40, -1, 0, 2048},
    {"{\"eos_token_id\": 3, \"rope_table_max_seq_len\": 24, \"gpu_max_seq_len\": 512}", LATH_OK, NULL, 24, 3, 24, 512},
    {"{\"eos_token_id\": null, \"rope_table_max_seq_len\": null, \"gpu_max_seq_len\": null}", LATH_OK, NULL, 40, -1, 0,
     2048},
    {"{\"eos_token_id\": 0, \"base_model_rev\": \"none\", \"x\": [1]}", LATH_OK, NULL, 40, 0, 0, 2048},
    {"{\"eos_token_id\": 199, \"rope_table_max_seq_len\": 8192}", LATH_OK, NULL, 40, 199, 8192, 2048},
    {"{\"gpu_max_seq_len\": 7}", LATH_OK, NULL, 40, -1, 0, 7}, /* says nothing about the CPU */
    {"", LATH_ERR_FORMAT, "not JSON", 0, 0, 0, 0},
    {"{\"eos_token_id\": 3,}", LATH_ERR_FORMAT, "line 1: ", 0, 0, 0, 0},
    {"[]", LATH_ERR_FORMAT, "want a JSON object", 0, 0, 0, 0},
    {"7", LATH_ERR_FORMAT, "want a JSON object", 0, 0, 0, 0},
    {"{\"eos_token_id\": \"3\"}", LATH_ERR_FORMAT, "\"eos_token_id\": want an integer", 0, 0, 0, 0},
    {"{\"eos_token_id\": [3]}", LATH_ERR_FORMAT, "\"eos_token_id\": want an integer", 0, 0, 0, 0},
    {"{\"eos_token_id\": -1}", LATH_ERR_FORMAT, "\"eos_token_id\" is -1", 0, 0, 0, 0},
    {"{\"eos_token_id\": 200}", LATH_ERR_FORMAT, "eos_token_id 200 is no token of a vocabulary of 200", 0, 0, 0, 0},
    {"{\"rope_table_max_seq_len\": 0}", LATH_ERR_FORMAT, "\"rope_table_max_seq_len\" is 0", 0, 0, 0, 0},
    {"{\n\"rope_table_max_seq_len\": 1.5}", LATH_ERR_FORMAT, "line 2: \"rope_table_max_seq_len\": want an integer", 0,
     0, 0, 0},
    {"{\"rope_table_max_seq_len\": 2}", LATH_ERR_FORMAT, "a window of 2 tokens leaves no room for text", 0, 0, 0, 0},
    {"{\"gpu_max_seq_len\": 0}", LATH_ERR_FORMAT, "\"gpu_max_seq_len\" is 0", 0, 0, 0, 0},
    {"{\"gpu_max_seq_len\": 4294967296}", LATH_ERR_FORMAT, "\"gpu_max_seq_len\" is 4294967296", 0, 0, 0, 0},
    {"{\"gpu_max_seq_len\": true}", LATH_ERR_FORMAT, "\"gpu_max_seq_len\": want an integer", 0, 0, 0, 0},
};

static void expect_open(const lath_model *m, const row *r, lath_model_info *info)
{
    lath_error err;
    assert_ok(lath_model_get_info(m, info, &err), err);
    assert_int_equal(info->max_tokens, r->window);
    assert_int_equal(info->eos_token_id, r->eos);
    assert_int_equal(info->rope_table_max_seq_len, r->rope);
    assert_int_equal(info->gpu_max_seq_len, r->gpu);
}

static void test_rows(void **state)
{
    lath_runtime *rt = NULL;
    lath_error err;
    char from[TMP_PATH], dir[TMP_PATH];
    uint64_t plain[2] = {0, 0};
    (void)state;
    assert_ok(lath_runtime_create(NULL, &rt, &err), err);
    tmp_join(from, test_data_dir(), good);
    tmp_copy(dir, from);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const row *r = &rows[i];
        lath_model *m = NULL;
        lath_model_info info = {.struct_size = sizeof(info)};
        if (r->text) tmp_write(dir, "inference_config.json", r->text);
        lath_status st = lath_model_open(rt, dir, NULL, &m, &err);
        if (st != r->status) fail_msg("%s: status %d: %s", r->text, (int)st, st ? err.msg : "");
        if (st == LATH_OK) {
            expect_open(m, r, &info);
            if (!r->text) memcpy(plain, info.fingerprint, sizeof(plain));
            /* A cache of vectors must not outlive another window. */
            if (r->rope) assert_memory_not_equal(plain, info.fingerprint, sizeof(plain));
        } else {
            if (!strstr(err.msg, r->part)) fail_msg("%s: %s", r->text, err.msg);
            if (!strstr(r->part, "window")) assert_non_null(strstr(err.msg, "/inference_config.json: "));
        }
        lath_model_close(m);
    }
    lath_runtime_destroy(rt);
    tmp_remove(dir);
}

/* The texts are cut where the file says. */
static void test_window(void **state)
{
    const lath_text text = {"one two water river green fire house old young small long last", 62};
    lath_runtime *rt = NULL;
    lath_model *m = NULL;
    lath_embedder *e = NULL;
    lath_embed_result result;
    lath_error err;
    float v[30];
    char from[TMP_PATH], dir[TMP_PATH];
    (void)state;
    assert_ok(lath_runtime_create(NULL, &rt, &err), err);
    tmp_join(from, test_data_dir(), good);
    tmp_copy(dir, from);
    tmp_write(dir, "inference_config.json", "{\"rope_table_max_seq_len\": 9}");
    assert_ok(lath_model_open(rt, dir, NULL, &m, &err), err);
    assert_ok(lath_embedder_create(m, NULL, &e, &err), err);
    assert_ok(lath_embed(e, &text, 1, v, &result, &err), err);
    assert_int_equal(result.n_tokens, 9);
    assert_int_equal(result.truncated, 1);
    lath_embedder_destroy(e);
    lath_model_close(m);
    lath_runtime_destroy(rt);
    tmp_remove(dir);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_window)};
    return TEST_RUN(tests);
}
