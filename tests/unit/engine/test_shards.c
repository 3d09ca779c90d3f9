/* SPDX-License-Identifier: Apache-2.0
 *
 * test_shards.c: a model in shards is the model in one file: the same bits of vectors, whatever the number of shards, from the map and from
 * copies; shards that nothing uses are not opened until a listing asks; messages name the shard, or the index.
 */
#include <math.h>
#include <pthread.h>
#include <stdbool.h>

#include "lath/lath.h"
#include "support/test.h"
#include "support/tmpdir.h"

enum { N_TEXTS = 5, MAX_D = 64 };
static const lath_text texts[N_TEXTS] = {{"The green river runs.", 21},
                                         {"", 0},
                                         {"water", 5},
                                         {"Small houses by the old river, 12 miles.", 40},
                                         {"caf\xC3\xA9 [MASK] \xE4\xB8\xAD unaffable", 24}};
static lath_runtime *rt;
static lath_error err;

static int make_runtime(void **state)
{
    lath_runtime_options o = LATH_RUNTIME_OPTIONS_INIT;
    (void)state;
    o.n_threads = 2;
    return lath_runtime_create(&o, &rt, &err) != LATH_OK;
}

static int end_runtime(void **state)
{
    (void)state;
    lath_runtime_destroy(rt);
    return 0;
}

static void copy_model(char dir[TMP_PATH], const char *name)
{
    char good[TMP_PATH];
    tmp_join(good, test_data_dir(), name);
    tmp_copy(dir, good);
}

static lath_model *open_model(const char *dir, lath_load load)
{
    lath_model *m = NULL;
    lath_model_options o = LATH_MODEL_OPTIONS_INIT;
    o.load = load;
    assert_ok(lath_model_open(rt, dir, &o, &m, &err), err);
    return m;
}

/* Embeds all texts; the status of the call. */
static lath_status embed(const lath_model *m, float v[N_TEXTS * MAX_D])
{
    lath_embedder *e = NULL;
    assert_ok(lath_embedder_create(m, NULL, &e, &err), err);
    assert_true(lath_embedder_dim(e) <= MAX_D);
    memset(v, 0, N_TEXTS * MAX_D * sizeof(float));
    lath_status st = lath_embed(e, texts, N_TEXTS, v, NULL, &err);
    lath_embedder_destroy(e);
    return st;
}

/* ------------------------------------------------------------------------------------------------------- the same bits */

static void test_same_bits(void **state)
{
    static const char *const models[] = {"golden/bert/mean_norm_gelu", "golden/bert/f16_gelu_tanh",
                                         "golden/bert/bert_prefix_gamma", "golden/bert/f8_e4m3"};
    static const int32_t counts[] = {1, 2, 3, 7, 30};
    (void)state;
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        float want[N_TEXTS * MAX_D], got[N_TEXTS * MAX_D];
        char dir[TMP_PATH];
        lath_model_info single = {.struct_size = sizeof(single)};
        copy_model(dir, models[i]);
        lath_model *m = open_model(dir, LATH_LOAD_MAP);
        assert_ok(embed(m, want), err);
        assert_ok(lath_model_get_info(m, &single, &err), err);
        lath_model_close(m);
        tmp_remove(dir);
        for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
            lath_model_info info = {.struct_size = sizeof(info)};
            copy_model(dir, models[i]);
            tmp_split(dir, counts[k]);
            m = open_model(dir, k % 2 ? LATH_LOAD_COPY : LATH_LOAD_MAP);
            assert_ok(embed(m, got), err);
            assert_memory_equal(got, want, sizeof(want));
            assert_ok(lath_model_get_info(m, &info, &err), err);
            assert_int_equal(info.n_tensors, single.n_tensors);
            assert_int_equal(info.n_unused, single.n_unused);
            assert_int_equal(info.n_params, single.n_params);
            assert_string_equal(info.weights, single.weights);
            assert_true(info.file_bytes > 0 && info.private_bytes > 0);
            for (int32_t t = 0; t < info.n_tensors; t++) {
                lath_tensor_info tensor;
                assert_ok(lath_model_get_tensor(m, t, &tensor, &err), err);
            }
            lath_model_close(m);
            tmp_remove(dir);
        }
    }
}

/* ---------------------------------------------------------------------------------------------------- unused shards */

/* Adds a shard of one tensor that the architecture does not know. */
static void add_unused(const char *dir, bool good)
{
    static const char file[] =
        "\x3f\0\0\0\0\0\0\0{\"other\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}     \1\2\3\4";
    tmp_replace(dir, "model.safetensors.index.json", "\"weight_map\": {",
                "\"weight_map\": {\"other\": \"extra.safetensors\",");
    tmp_write_bytes(dir, "extra.safetensors", file, good ? sizeof(file) - 1 : 20);
}

static void test_unused_shard(void **state)
{
    (void)state;
    for (int good = 0; good < 2; good++) {
        float v[N_TEXTS * MAX_D];
        char dir[TMP_PATH];
        lath_model_info before = {.struct_size = sizeof(before)}, after = before;
        lath_tensor_info t;
        copy_model(dir, "golden/bert/mean_norm_gelu");
        tmp_split(dir, 2);
        add_unused(dir, good);
        lath_model *m = open_model(dir, LATH_LOAD_MAP);
        assert_ok(embed(m, v), err);
        assert_ok(lath_model_get_info(m, &before, &err), err);
        assert_int_equal(before.n_tensors, 38);
        assert_int_equal(before.n_unused, 1);
        lath_status st = lath_model_get_tensor(m, 0, &t, &err); /* "extra" comes before "model-..." */
        if (good) {
            assert_ok(st, err);
            assert_string_equal(t.name, "other");
            assert_int_equal(t.used, 0);
        } else {
            assert_int_equal(st, LATH_ERR_FORMAT);
            assert_non_null(strstr(err.msg, "/extra.safetensors: "));
        }
        assert_ok(lath_model_get_info(m, &after, &err), err); /* a listing changes nothing */
        assert_memory_equal(after.fingerprint, before.fingerprint, sizeof(after.fingerprint));
        assert_int_equal(after.n_unused, 1);
        assert_ok(embed(m, v), err);
        lath_model_close(m);
        tmp_remove(dir);
    }
}

static void *list_all(void *ctx)
{
    const lath_model *m = ctx;
    lath_model_info info = {.struct_size = sizeof(info)};
    lath_tensor_info t;
    bool good = true;
    for (int i = 0; i < 20; i++) {
        good = good && lath_model_get_info(m, &info, NULL) == LATH_OK && info.n_tensors == 38;
        for (int32_t k = 0; good && k < info.n_tensors; k++) good = lath_model_get_tensor(m, k, &t, NULL) == LATH_OK;
    }
    return good ? ctx : NULL;
}

/* A model is shared between threads, listings too. */
static void test_listing_threads(void **state)
{
    char dir[TMP_PATH];
    pthread_t threads[3];
    (void)state;
    copy_model(dir, "golden/bert/mean_norm_gelu");
    tmp_split(dir, 3);
    add_unused(dir, true);
    lath_model *m = open_model(dir, LATH_LOAD_MAP);
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, list_all, m), 0);
    for (int i = 0; i < 3; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, m);
    }
    lath_model_close(m);
    tmp_remove(dir);
}

/* ---------------------------------------------------------------------------------------------------------- messages */

/* The tensor i of 37 lies in shard i * 2 / 37 of two. */
static void test_messages(void **state)
{
    static const struct {
        const char *what, *file, *old, *new;
        lath_status status;
        const char *part;
    } rows[] = {
        {"one missing tensor", "model.safetensors.index.json", "\"embeddings.LayerNorm.bias\"", "\"x\"",
         LATH_ERR_FORMAT,
         "/model-00001-of-00002.safetensors: tensor \"embeddings.LayerNorm.bias\" is in it, but not in "},
        {"two wrong shapes", "config.json", "\"max_position_embeddings\": 40", "\"max_position_embeddings\": 41",
         LATH_ERR_FORMAT, "/model-0000"},
        {"missing tensors", "config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3", LATH_ERR_FORMAT,
         "/model.safetensors.index.json: 16 tensors missing: "},
        {"layers", "config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1000", LATH_ERR_FORMAT,
         "/model.safetensors.index.json has 37 tensors"},
        {"outside", "model.safetensors.index.json", "\"embeddings.LayerNorm.bias\": \"",
         "\"embeddings.LayerNorm.bias\": \"../", LATH_ERR_FORMAT, "is outside the model's directory"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char dir[TMP_PATH];
        lath_model *m = NULL;
        copy_model(dir, "golden/bert/mean_norm_gelu");
        tmp_split(dir, 2);
        tmp_replace(dir, rows[i].file, rows[i].old, rows[i].new);
        lath_status st = lath_model_open(rt, dir, NULL, &m, &err);
        if (st != rows[i].status || !strstr(err.msg, rows[i].part))
            fail_msg("%s: status %d: %s", rows[i].what, (int)st, err.msg);
        assert_null(m);
        tmp_remove(dir);
    }
}

/* A number that is none is found when it is used, and its shard named. */
static void test_not_finite(void **state)
{
    static const float nan_value = NAN;
    float v[N_TEXTS * MAX_D];
    char dir[TMP_PATH];
    (void)state;
    copy_model(dir, "golden/bert/mean_norm_gelu");
    tmp_patch_tensor(dir, "encoder.layer.1.output.dense.weight", 4 * 5, &nan_value, 4);
    tmp_split(dir, 37); /* a tensor a shard */
    lath_model *m = open_model(dir, LATH_LOAD_MAP);
    assert_int_equal(embed(m, v), LATH_ERR_FORMAT);
    assert_non_null(
        strstr(err.msg, "-of-00037.safetensors: tensor \"encoder.layer.1.output.dense.weight\": element [0,5]"));
    lath_model_close(m);
    tmp_remove(dir);
}

/* A shard that is missing, empty or of another model. */
static void test_broken_shards(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        static const char *const parts[] = {
            "/model-00002-of-00003.safetensors: no such file", "/model-00002-of-00003.safetensors: the file is empty",
            "is in it, but model.safetensors.index.json places it in", "/model-00002-of-00003.safetensors: "};
        char dir[TMP_PATH];
        lath_model *m = NULL;
        copy_model(dir, "golden/bert/mean_norm_gelu");
        tmp_split(dir, 3);
        if (kind == 0) tmp_delete(dir, "model-00002-of-00003.safetensors");
        if (kind == 1) tmp_write(dir, "model-00002-of-00003.safetensors", "");
        if (kind == 2) {
            tmp_rename(dir, "model-00002-of-00003.safetensors", "x");
            tmp_rename(dir, "model-00003-of-00003.safetensors", "model-00002-of-00003.safetensors");
            tmp_rename(dir, "x", "model-00003-of-00003.safetensors");
        }
        if (kind == 3) { /* cut */
            size_t n;
            char *bytes = tmp_read(dir, "model-00002-of-00003.safetensors", &n);
            tmp_write_bytes(dir, "model-00002-of-00003.safetensors", bytes, n - 100);
            free(bytes);
        }
        lath_status st = lath_model_open(rt, dir, NULL, &m, &err);
        assert_int_equal(st, kind == 0 ? LATH_ERR_NOT_FOUND : LATH_ERR_FORMAT);
        if (!strstr(err.msg, parts[kind])) fail_msg("%s", err.msg);
        assert_null(m);
        tmp_remove(dir);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_unused_shard), cmocka_unit_test(test_listing_threads),
        cmocka_unit_test(test_messages),  cmocka_unit_test(test_not_finite),   cmocka_unit_test(test_broken_shards)};
    return cmocka_run_group_tests(tests, make_runtime, end_runtime) != 0;
}
