/* SPDX-License-Identifier: Apache-2.0
 *
 * test_vindex_models.c: indexes of the language models of tests/golden/decoder. A model that is opened from its index, with all features, gives the logits of
 * the model, by whole texts and by steps; tokens of features are the reference's (features.safetensors, tools/ref/make_feature_goldens.py); of a GGUF file
 * rows and tokens are those of the folder it was made of; a run that was stopped ends with the same bytes at whatever piece; damaged,
 * foreign, unfinished and too small indexes are refused by name.
 */
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/engine.h"
#include "lath/lath_vindex.h"
#include "store/safetensors.h"
#include "support/forward.h"
#include "support/golden.h"
#include "support/test.h"
#include "support/tmpdir.h"

static char tmp[TMP_PATH];
static lath_runtime *rt;

static int set_up(void **state)
{
    (void)state;
    lath_error err;
    lath_runtime_options o = LATH_RUNTIME_OPTIONS_INIT;
    o.n_threads = 2;
    assert_ok(lath_runtime_create(&o, &rt, &err), err);
    tmp_make(tmp);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    lath_runtime_destroy(rt);
    tmp_remove(tmp);
    return 0;
}

static lath_model *open_model(const char *path)
{
    lath_error err;
    lath_model *m;
    lath_model_options mo = LATH_MODEL_OPTIONS_INIT;
    mo.precision = LATH_PRECISION_EXACT;
    assert_ok(lath_model_open(rt, path, &mo, &m, &err), err);
    return m;
}

static void source_of(const char *group, const char *name, char out[TMP_PATH])
{
    snprintf(out, TMP_PATH, "%s/golden/%s/%s", test_data_dir(), group, name);
}

static lath_status extract(const char *model, const char *dir, lath_row_type type, lath_vindex_level level,
                           lath_error *err)
{
    lath_extract_options o = LATH_EXTRACT_OPTIONS_INIT;
    o.type = type;
    o.level = level;
    return lath_extract(rt, model, dir, &o, NULL, err);
}

static void must_extract(const char *model, const char *dir, lath_row_type type, lath_vindex_level level)
{
    lath_error err;
    const lath_status st = extract(model, dir, type, level, &err);
    if (st != LATH_OK) fail_msg("%s: %s", model, err.msg);
}

/* Largest difference of the logits of some tokens, relative to the largest of them. */
enum { N_IDS = 11 };
static double drift(const lath_model *a, const lath_model *b)
{
    static const int32_t ids[N_IDS] = {5, 9, 17, 3, 40, 8, 2, 31, 6, 11, 23};
    const prompt_ids p = {ids, N_IDS};
    const size_t n = (size_t)N_IDS * (size_t)a->arch.dims.vocab_size;
    float *x = test_malloc(n * sizeof(float)), *y = test_malloc(n * sizeof(float));
    double largest = 0;
    test_forward(a, &p, 1, NULL, x);
    test_forward(b, &p, 1, NULL, y);
    for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs((double)x[i]));
    const double d = golden_max_abs(x, y, n) / fmax(largest, 1);
    test_free(x);
    test_free(y);
    return d;
}

/* The same text, token by token. */
static double drift_of_steps(const lath_model *a, const lath_model *b)
{
    static const int32_t ids[] = {5, 9, 17, 3};
    const lath_model *models[] = {a, b};
    const float *logits[2];
    lath_session *s[2];
    lath_error err;
    const size_t vocab = (size_t)a->arch.dims.vocab_size;
    for (int k = 0; k < 2; k++) {
        lath_session_options so = LATH_SESSION_OPTIONS_INIT;
        so.ctx = 16;
        assert_ok(lath_session_create(models[k], &so, &s[k], &err), err);
        for (size_t i = 0; i < 4; i++) assert_ok(lath_session_append(s[k], &ids[i], 1, &err), err);
        assert_ok(lath_session_logits(s[k], &logits[k], &err), err);
    }
    const double d = golden_max_abs(logits[0], logits[1], vocab);
    for (int k = 0; k < 2; k++) lath_session_destroy(s[k]);
    return d;
}

static bool has_experts(const lath_model *m) { return m->arch.dims.n_experts > 0; }

/* ---------------------------------------------------------------------------------------------------------- all models */

/* The gate rows of a layer of experts are those of its experts, one behind the other; the best token of each feature is that of a product made here. */
static void check_experts(const lath_model *m, const char *dir)
{
    lath_error err;
    lath_vindex *x;
    int32_t n, layers = 0;
    const weight *head = m->arch.lm_head.w;
    const int64_t d = head->cols;
    assert_ok(lath_vindex_open(rt, dir, &x, &err), err);
    for (int32_t l = 0; l < m->arch.dims.n_layers; l++) {
        const ffn_moe_layer *e = ffn_moe_get_layer(m->arch.ffn, l, &n);
        if (!e) continue;
        layers++;
        const int64_t each = e->gate[0].rows;
        assert_int_equal(lath_vindex_features(x, l), n * each);
        float *rows = test_malloc((size_t)(head->rows * d) * sizeof(float)),
              *down = test_malloc((size_t)(d * each) * sizeof(float));
        dtype_to_f32(head->t->type, head->data, (size_t)(head->rows * d), rows);
        for (int64_t f = 0; f < n * each; f++) {
            lath_token_score have[LATH_FEATURE_TOKENS];
            int32_t n_tokens;
            double best = -INFINITY;
            if (f % each == 0)
                dtype_to_f32(e->down[f / each].t->type, e->down[f / each].data, (size_t)(d * each), down);
            for (int64_t v = 0; v < head->rows; v++) {
                double sum = 0;
                for (int64_t i = 0; i < d; i++) sum += (double)rows[v * d + i] * (double)down[i * each + f % each];
                best = fmax(best, sum);
            }
            assert_ok(lath_vindex_get_tokens(x, l, f, have, &n_tokens, &err), err);
            assert_true(fabs(have[0].score - best) <= 1e-5 * fmax(1, fabs(best)));
        }
        test_free(rows);
        test_free(down);
    }
    assert_true(layers > 0);
    assert_ok(lath_vindex_verify(x, NULL, NULL, &err), err);
    lath_vindex_close(x);
}

/* Rows in f32: the same numbers, products in another order; at level all in the same. */
static void check_case(const char *name, int number)
{
    char source[TMP_PATH], dir[TMP_PATH], leaf[64];
    lath_error err;
    source_of("decoder", name, source);
    lath_model *dense = open_model(source);
    snprintf(leaf, sizeof(leaf), "case%d", number);
    tmp_join(dir, tmp, leaf);
    if (has_experts(dense)) {
        assert_int_equal(extract(source, dir, LATH_ROWS_F32, LATH_VINDEX_INFERENCE, &err), LATH_ERR_UNSUPPORTED);
        assert_non_null(strstr(err.msg, "has experts"));
        assert_int_not_equal(access(dir, F_OK), 0);
        must_extract(source, dir, LATH_ROWS_F32, LATH_VINDEX_BROWSE);
        check_experts(dense, dir);
    } else {
        must_extract(source, dir, LATH_ROWS_F32, number % 2 ? LATH_VINDEX_ALL : LATH_VINDEX_INFERENCE);
        lath_model *walked = open_model(dir);
        const double d = drift(dense, walked), steps = drift_of_steps(dense, walked);
        if (!(d <= 1e-5)) fail_msg("%s: drift %g", name, d);
        if (!(steps <= 1e-4)) fail_msg("%s: drift of steps %g", name, steps);
        lath_model_close(walked);
    }
    lath_model_close(dense);
}

static void test_walked_is_dense(void **state)
{
    (void)state;
    arena mem;
    char dir[1024];
    size_t n;
    arena_init(&mem, alloc_default());
    test_path(dir, sizeof(dir), "golden", "decoder");
    const char **names = test_list_dirs(&mem, dir, &n);
    assert_true(n > 20);
    for (size_t i = 0; i < n; i++) check_case(names[i], (int)i);
    arena_deinit(&mem);
}

/* Other types of rows, on models whose rows are whole blocks: the bounds are what was measured, times 2. */
static void test_row_types(void **state)
{
    (void)state;
    static const struct {
        lath_row_type type;
        double most; /* of the largest logit */
    } rows[] = {{LATH_ROWS_F16, 2e-3}, {LATH_ROWS_BF16, 2e-2}, {LATH_ROWS_Q8_0, 8e-2}, {LATH_ROWS_Q4_K, 4e-1}};
    static const char *const names[] = {"llama_blocks", "gemma3_blocks", "qwen3_5_blocks"};
    char source[TMP_PATH], dir[TMP_PATH], leaf[64];
    for (size_t c = 0; c < 3; c++) {
        source_of("quantize", names[c], source);
        lath_model *dense = open_model(source);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            lath_error err;
            snprintf(leaf, sizeof(leaf), "rows%zu_%zu", c, i);
            tmp_join(dir, tmp, leaf);
            if (rows[i].type == LATH_ROWS_Q4_K && dense->arch.dims.d_model % 256 != 0) {
                assert_int_equal(extract(source, dir, rows[i].type, LATH_VINDEX_INFERENCE, &err), LATH_ERR_UNSUPPORTED);
                assert_non_null(strstr(err.msg, "whole number of Q4_K blocks"));
                continue;
            }
            must_extract(source, dir, rows[i].type, LATH_VINDEX_INFERENCE);
            lath_model *walked = open_model(dir);
            const double d = drift(dense, walked);
            print_message("%s rows %d: %g\n", names[c], (int)rows[i].type, d);
            if (!(d <= rows[i].most)) fail_msg("%s: rows %d: drift %g", names[c], (int)rows[i].type, d);
            lath_model_close(walked);
        }
        lath_model_close(dense);
    }
}

/* A Llama with rows of 256 numbers, made here: the goldens are smaller. */
static void write_wide(const char *dir)
{
    enum { D = 256, HEAD = 16, VOCAB = 101 };
    static const char config[] =
        "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"hidden_size\":256,\"intermediate_size\":256,"
        "\"num_hidden_layers\":1,\"num_attention_heads\":1,\"num_key_value_heads\":1,\"head_dim\":16,\"vocab_size\":101,"
        "\"rms_norm_eps\":1e-5,\"rope_theta\":10000.0,\"hidden_act\":\"silu\",\"max_position_embeddings\":64,"
        "\"tie_word_embeddings\":true}";
    static const struct {
        const char *name;
        size_t rows, cols; /* cols 0: a vector */
    } rows[] = {{"model.embed_tokens.weight", VOCAB, D},
                {"model.norm.weight", D, 0},
                {"model.layers.0.input_layernorm.weight", D, 0},
                {"model.layers.0.post_attention_layernorm.weight", D, 0},
                {"model.layers.0.self_attn.q_proj.weight", HEAD, D},
                {"model.layers.0.self_attn.k_proj.weight", HEAD, D},
                {"model.layers.0.self_attn.v_proj.weight", HEAD, D},
                {"model.layers.0.self_attn.o_proj.weight", D, HEAD},
                {"model.layers.0.mlp.gate_proj.weight", D, D},
                {"model.layers.0.mlp.up_proj.weight", D, D},
                {"model.layers.0.mlp.down_proj.weight", D, D}};
    buf header, data;
    uint64_t state = 88172645463325252u;
    char source[TMP_PATH];
    buf_init(&header, alloc_default(), 1 << 24);
    buf_init(&data, alloc_default(), 1 << 24);
    for (int i = 0; i < 8; i++) buf_char(&header, 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const size_t n = rows[i].rows * (rows[i].cols ? rows[i].cols : 1), from = data.len;
        for (size_t k = 0; k < n; k++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            const float v = ((float)(state >> 40) / (1 << 24) - 0.5f) * 0.2f + (rows[i].cols ? 0 : 1);
            buf_append(&data, &v, sizeof(v));
        }
        buf_printf(&header, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%zu", i ? "," : "{", rows[i].name, rows[i].rows);
        if (rows[i].cols) buf_printf(&header, ",%zu", rows[i].cols);
        buf_printf(&header, "],\"data_offsets\":[%zu,%zu]}", from, data.len);
    }
    buf_char(&header, '}');
    const uint64_t n = header.len - 8;
    memcpy(header.data, &n, sizeof(n));
    buf_append(&header, data.data, data.len);
    source_of("decoder", "llama2", source);
    tmp_write(dir, "config.json", config);
    tmp_write_bytes(dir, "model.safetensors", header.data, header.len);
    size_t bytes;
    char *text = tmp_read(source, "tokenizer.json", &bytes);
    tmp_write_bytes(dir, "tokenizer.json", text, bytes);
    free(text);
    buf_deinit(&header);
    buf_deinit(&data);
}

/* Blocks of 256: of a model in floats within a bound (measured 0.1, times 2); of a file that has such blocks already they are the same bits. */
static void test_blocks_of_256(void **state)
{
    (void)state;
    char source[TMP_PATH], file[TMP_PATH], dir[TMP_PATH];
    lath_error err;
    lath_quantize_options qo = LATH_QUANTIZE_OPTIONS_INIT;
    tmp_join(source, tmp, "wide");
    assert_int_equal(mkdir(source, 0777), 0);
    write_wide(source);
    tmp_join(dir, tmp, "wide_q4");
    must_extract(source, dir, LATH_ROWS_Q4_K, LATH_VINDEX_INFERENCE);
    lath_model *dense = open_model(source), *walked = open_model(dir);
    const double d = drift(dense, walked);
    print_message("rows of Q4_K: %g\n", d);
    assert_true(d > 0 && d <= 0.2);
    lath_model_close(dense);
    lath_model_close(walked);
    tmp_join(file, tmp, "wide.gguf");
    tmp_join(dir, tmp, "wide_of_file");
    qo.type = LATH_GGUF_Q4_K;
    assert_ok(lath_quantize(rt, source, file, &qo, NULL, &err), err);
    must_extract(file, dir, LATH_ROWS_AUTO, LATH_VINDEX_ALL);
    dense = open_model(file);
    walked = open_model(dir);
    assert_true(drift(dense, walked) == 0);
    lath_model_close(dense);
    lath_model_close(walked);
}

/* ------------------------------------------------------------------------------------------------------------- features */

static void test_tokens(void **state)
{
    (void)state;
    static const char *const names[] = {"qwen3_bias_untied", "gemma3_pattern_linear", "phi4_partial_tied",
                                        "granite_factors"};
    char source[TMP_PATH], dir[TMP_PATH], file[TMP_PATH + 64], key[64];
    for (size_t c = 0; c < 4; c++) {
        lath_error err;
        lath_vindex *x;
        safetensors *want;
        source_of("decoder", names[c], source);
        snprintf(file, sizeof(file), "%s/features.safetensors", source);
        tmp_join(dir, tmp, names[c]);
        must_extract(source, dir, LATH_ROWS_F16, LATH_VINDEX_BROWSE);
        assert_ok(lath_vindex_open(rt, dir, &x, &err), err);
        assert_ok(safetensors_open(alloc_default(), file, FILE_MAP, &want, &err), err);
        lath_vindex_info info = LATH_VINDEX_INFO_INIT;
        assert_ok(lath_vindex_get_info(x, &info, &err), err);
        for (int32_t l = 0; l < info.n_layers; l++) {
            snprintf(key, sizeof(key), "layer.%d.ids", (int)l);
            const tensor *ids = safetensors_find(want, key);
            snprintf(key, sizeof(key), "layer.%d.products", (int)l);
            const tensor *products = safetensors_find(want, key);
            assert_non_null(ids);
            assert_non_null(products);
            assert_int_equal(lath_vindex_features(x, l), ids->dim[0]);
            for (int64_t i = 0; i < ids->dim[0]; i++) {
                lath_token_score have[LATH_FEATURE_TOKENS];
                int32_t n;
                assert_ok(lath_vindex_get_tokens(x, l, i, have, &n, &err), err);
                assert_int_equal(n, LATH_FEATURE_TOKENS);
                for (int32_t k = 0; k < n; k++) {
                    const int64_t at = i * LATH_FEATURE_TOKENS + k;
                    const float p = ((const float *)products->data)[at];
                    assert_true(fabsf(have[k].score - p) <= 1e-5f * fmaxf(1, fabsf(p)));
                    assert_int_equal(have[k].token, ((const int32_t *)ids->data)[at]);
                }
            }
        }
        lath_token_score have[LATH_FEATURE_TOKENS];
        int32_t n;
        assert_int_equal(lath_vindex_get_tokens(x, info.n_layers, 0, have, &n, &err), LATH_ERR_USAGE);
        assert_int_equal(lath_vindex_get_tokens(x, 0, lath_vindex_features(x, 0), have, &n, &err), LATH_ERR_USAGE);
        safetensors_close(want);
        lath_vindex_close(x);
    }
}

/* Scores are products of gate rows with what the FFN reads: as the hidden features of the dense run have it. */
static void test_walk(void **state)
{
    (void)state;
    char source[TMP_PATH], dir[TMP_PATH];
    static const int32_t ids[] = {5, 9, 17, 3, 40};
    lath_error err;
    lath_vindex *x;
    lath_walk *w;
    lath_walk_options o = LATH_WALK_OPTIONS_INIT;
    source_of("decoder", "llama_linear_biases", source);
    tmp_join(dir, tmp, "walk");
    must_extract(source, dir, LATH_ROWS_F32, LATH_VINDEX_INFERENCE);
    assert_ok(lath_vindex_open(rt, dir, &x, &err), err);
    lath_model *dense = open_model(source), *walked = open_model(dir), *models[] = {dense, walked};
    const int64_t features = lath_vindex_features(x, 0), vocab = dense->arch.dims.vocab_size;
    float *logits = test_malloc((size_t)(5 * vocab) * sizeof(float));
    const prompt_ids p = {ids, 5};
    test_forward(dense, &p, 1, NULL, logits);
    for (int m = 0; m < 2; m++) {
        size_t n;
        int32_t top;
        o.top = (int32_t)features;
        o.k = 0;
        o.first_layer = 1;
        o.end_layer = 0;
        assert_ok(lath_walk_run(models[m], x, ids, 5, &o, &w, &err), err);
        assert_true(golden_max_abs(lath_walk_get_logits(w, &n), logits + 4 * vocab, (size_t)vocab) <= 1e-4);
        assert_null(lath_walk_get_layer(w, 0, &top));
        const lath_walk_feature *f = lath_walk_get_layer(w, 1, &top);
        assert_int_equal(top, features);
        bool *seen = test_calloc((size_t)features, sizeof(bool));
        for (int32_t i = 0; i < top; i++) {
            assert_false(seen[f[i].feature]);
            seen[f[i].feature] = true;
            if (i > 0) assert_true(fabsf(f[i - 1].gate) >= fabsf(f[i].gate));
        }
        test_free(seen);
        lath_walk_close(w);
        o.k = features; /* every feature is chosen: the same sums, in rows of the index */
        assert_ok(lath_walk_run(models[m], x, ids, 5, &o, &w, &err), err);
        assert_true(golden_max_abs(lath_walk_get_logits(w, &n), logits + 4 * vocab, (size_t)vocab) <= 1e-4);
        lath_walk_close(w);
        o.k = features + 1;
        assert_int_equal(lath_walk_run(models[m], x, ids, 5, &o, &w, &err), LATH_ERR_USAGE);
        o.k = 0;
        o.end_layer = 100;
        assert_int_equal(lath_walk_run(models[m], x, ids, 5, &o, &w, &err), LATH_ERR_USAGE);
    }
    test_free(logits);
    lath_model_close(dense);
    lath_model_close(walked);
    lath_vindex_close(x);
}

/* --------------------------------------------------------------------------------------------------------------- sources */

static void read_file(const char *dir, const char *name, buf *out)
{
    char path[TMP_PATH + 64];
    lath_error err;
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    assert_ok(file_read(out, path, (size_t)1 << 30, &err), err);
}

/* From byte `from` on. */
static bool same_file(const char *a, const char *b, const char *name, size_t from)
{
    buf x, y;
    buf_init(&x, alloc_default(), SIZE_MAX / 2);
    buf_init(&y, alloc_default(), SIZE_MAX / 2);
    read_file(a, name, &x);
    read_file(b, name, &y);
    const bool same = x.len == y.len && x.len > from && memcmp(x.data + from, y.data + from, x.len - from) == 0;
    buf_deinit(&x);
    buf_deinit(&y);
    return same;
}

static void test_gguf(void **state)
{
    (void)state;
    static const char *const names[] = {"llama_linear_biases", "mistral_plain_tied", "qwen3_5_text", "phi3_longrope"};
    char source[TMP_PATH], file[TMP_PATH], dir[TMP_PATH], of_file[TMP_PATH], leaf[64];
    for (size_t c = 0; c < 4; c++) {
        lath_error err;
        lath_quantize_options qo = LATH_QUANTIZE_OPTIONS_INIT;
        qo.type = LATH_GGUF_F32;
        source_of("decoder", names[c], source);
        snprintf(leaf, sizeof(leaf), "source%zu.gguf", c);
        tmp_join(file, tmp, leaf);
        snprintf(leaf, sizeof(leaf), "of_dir%zu", c);
        tmp_join(dir, tmp, leaf);
        snprintf(leaf, sizeof(leaf), "of_file%zu", c);
        tmp_join(of_file, tmp, leaf);
        assert_ok(lath_quantize(rt, source, file, &qo, NULL, &err), err);
        must_extract(source, dir, LATH_ROWS_F16, LATH_VINDEX_ALL);
        must_extract(file, of_file, LATH_ROWS_F16, LATH_VINDEX_ALL);
        static const char *const files[] = {"gate.bin", "up.bin", "down.bin", "out.bin", "tokens.bin"};
        for (size_t i = 0; i < 5; i++)
            if (!same_file(dir, of_file, files[i], 64)) fail_msg("%s: %s differs", names[c], files[i]);
        lath_model *a = open_model(dir), *b = open_model(of_file), *g = open_model(file);
        assert_true(drift(a, b) <= 1e-5);
        assert_true(drift(g, b) <= 2e-3); /* rows are f16 */
        lath_model_close(a);
        lath_model_close(b);
        lath_model_close(g);
    }
}

/* --------------------------------------------------------------------------------------------------------------- resume */

typedef struct stopper {
    int left;
} stopper;

static int stop_at(void *ctx, size_t done, size_t total)
{
    (void)done, (void)total;
    return ((stopper *)ctx)->left-- == 0;
}

static void test_resume(void **state)
{
    (void)state;
    char source[TMP_PATH], whole[TMP_PATH], dir[TMP_PATH], part[TMP_PATH + 8];
    lath_error err;
    source_of("decoder", "qwen3_bias_untied", source);
    tmp_join(whole, tmp, "whole");
    tmp_join(dir, tmp, "resumed");
    snprintf(part, sizeof(part), "%s.part", dir);
    must_extract(source, whole, LATH_ROWS_F16, LATH_VINDEX_ALL);
    lath_extract_options o = LATH_EXTRACT_OPTIONS_INIT;
    lath_extract_result r = LATH_EXTRACT_RESULT_INIT;
    o.type = LATH_ROWS_F16;
    o.level = LATH_VINDEX_ALL;
    o.resume = 1;
    o.progress = stop_at;
    int runs = 0;
    for (lath_status st = LATH_ERR_INTERRUPTED; st != LATH_OK; runs++) {
        stopper s = {4};
        lath_vindex *x;
        o.progress_ctx = &s;
        st = lath_extract(rt, source, dir, &o, &r, &err);
        if (st == LATH_OK) break;
        assert_int_equal(st, LATH_ERR_INTERRUPTED);
        assert_int_equal(lath_vindex_open(rt, dir, &x, &err), LATH_ERR_NOT_FOUND);
        assert_non_null(strstr(err.msg, "not finished"));
        assert_int_equal(lath_vindex_open(rt, part, &x, &err), LATH_ERR_NOT_FOUND);
        o.progress = runs < 2 ? stop_at : NULL; /* the pieces before are passed over one tick each */
    }
    assert_true(runs >= 2);
    assert_true(r.kept > 0);
    static const char *const files[] = {"index.json", "gate.bin",   "up.bin",      "down.bin",
                                        "out.bin",    "tokens.bin", "tensors.bin", "tokenizer.json"};
    for (size_t i = 0; i < 8; i++)
        if (!same_file(whole, dir, files[i], 0)) fail_msg("%s differs", files[i]);
    assert_int_not_equal(access(part, F_OK), 0);
    /* of other options: refused with --resume, begun anew without */
    tmp_join(dir, tmp, "other");
    stopper s = {4};
    o.progress = stop_at;
    o.progress_ctx = &s;
    assert_int_equal(lath_extract(rt, source, dir, &o, NULL, &err), LATH_ERR_INTERRUPTED);
    o.progress = NULL;
    o.type = LATH_ROWS_F32;
    assert_int_equal(lath_extract(rt, source, dir, &o, NULL, &err), LATH_ERR_USAGE);
    assert_non_null(strstr(err.msg, "other options"));
    o.resume = 0;
    assert_ok(lath_extract(rt, source, dir, &o, NULL, &err), err);
    assert_int_equal(lath_extract(rt, source, dir, &o, NULL, &err), LATH_ERR_USAGE);
    assert_non_null(strstr(err.msg, "is there already"));
}

/* ------------------------------------------------------------------------------------------------------------- refusals */

static void copy_index(const char *from, const char *to)
{
    char command[3 * TMP_PATH];
    snprintf(command, sizeof(command), "cp -r '%s' '%s'", from, to);
    assert_int_equal(system(command), 0);
}

/* The byte at `at` of a file gets another value; at < 0: the file loses its last byte. */
static void damage(const char *dir, const char *name, long at)
{
    char path[TMP_PATH + 64];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    if (at < 0) {
        struct stat sb;
        assert_int_equal(fstat(fileno(f), &sb), 0);
        assert_int_equal(ftruncate(fileno(f), sb.st_size - 1), 0);
    } else {
        fseek(f, at, SEEK_SET);
        const int c = fgetc(f);
        fseek(f, at, SEEK_SET);
        fputc(c ^ 1, f);
    }
    fclose(f);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        long at;
        lath_status open; /* LATH_OK: only verify finds it */
        const char *says;
    } rows[] = {
        {"gate.bin", -1, LATH_ERR_FORMAT, "cut"},           {"tensors.bin", -1, LATH_ERR_FORMAT, "cut"},
        {"tokenizer.json", -1, LATH_ERR_FORMAT, "cut"},     {"index.json", -1, LATH_ERR_FORMAT, "checksum"},
        {"index.json", 200, LATH_ERR_FORMAT, "checksum"},   {"gate.bin", 0, LATH_ERR_FORMAT, "no file of an index"},
        {"up.bin", 4, LATH_ERR_UNSUPPORTED, "version"},     {"up.bin", 8, LATH_ERR_FORMAT, "another file"},
        {"down.bin", 24, LATH_ERR_FORMAT, "another model"}, {"gate.bin", 100, LATH_OK, "gate.bin"},
        {"tokens.bin", 100, LATH_OK, "tokens.bin"},         {"tensors.bin", 100, LATH_OK, "tensors.bin"},
        {"tokenizer.json", 20, LATH_OK, "tokenizer.json"},
    };
    char source[TMP_PATH], good[TMP_PATH], dir[TMP_PATH], leaf[64];
    lath_error err;
    lath_vindex *x;
    source_of("decoder", "qwen3_bias_untied", source);
    tmp_join(good, tmp, "good");
    must_extract(source, good, LATH_ROWS_F32, LATH_VINDEX_INFERENCE);
    assert_ok(lath_vindex_open(rt, good, &x, &err), err);
    assert_ok(lath_vindex_verify(x, NULL, NULL, &err), err);
    lath_vindex_close(x);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(leaf, sizeof(leaf), "bad%zu", i);
        tmp_join(dir, tmp, leaf);
        copy_index(good, dir);
        damage(dir, rows[i].file, rows[i].at);
        lath_status st = lath_vindex_open(rt, dir, &x, &err);
        if (st != rows[i].open) fail_msg("row %zu: status %d: %s", i, (int)st, err.msg);
        if (st == LATH_OK) {
            assert_int_equal(lath_vindex_verify(x, NULL, NULL, &err), LATH_ERR_FORMAT);
            lath_vindex_close(x);
        }
        if (!strstr(err.msg, rows[i].says)) fail_msg("row %zu: %s", i, err.msg);
    }
}

static void test_levels_and_models(void **state)
{
    (void)state;
    char source[TMP_PATH], other[TMP_PATH], browse[TMP_PATH], attention[TMP_PATH], of_other[TMP_PATH];
    lath_error err;
    lath_model *m;
    lath_vindex *x;
    lath_walk *w;
    const int32_t id = 5;
    source_of("decoder", "qwen3_bias_untied", source);
    source_of("decoder", "qwen3_yarn_tied", other);
    tmp_join(browse, tmp, "browse");
    tmp_join(attention, tmp, "attention");
    tmp_join(of_other, tmp, "of_other");
    must_extract(source, browse, LATH_ROWS_AUTO, LATH_VINDEX_BROWSE);
    must_extract(source, attention, LATH_ROWS_AUTO, LATH_VINDEX_ATTENTION);
    must_extract(other, of_other, LATH_ROWS_AUTO, LATH_VINDEX_INFERENCE);
    const char *const low[] = {browse, attention};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(lath_model_open(rt, low[i], NULL, &m, &err), LATH_ERR_UNSUPPORTED);
        assert_non_null(strstr(err.msg, "--level inference"));
    }
    m = open_model(source);
    assert_ok(lath_vindex_open(rt, browse, &x, &err), err);
    assert_ok(lath_vindex_check_model(x, m, &err), err);
    assert_int_equal(lath_walk_run(m, x, &id, 1, NULL, &w, &err), LATH_ERR_UNSUPPORTED);
    lath_vindex_close(x);
    assert_ok(lath_vindex_open(rt, of_other, &x, &err), err);
    assert_int_equal(lath_vindex_check_model(x, m, &err), LATH_ERR_FORMAT);
    assert_int_equal(lath_walk_run(m, x, &id, 1, NULL, &w, &err), LATH_ERR_FORMAT);
    assert_non_null(strstr(err.msg, "another model"));
    lath_vindex_close(x);
    assert_int_equal(lath_vindex_open(rt, source, &x, &err), LATH_ERR_NOT_FOUND);
    assert_int_equal(extract(of_other, browse, LATH_ROWS_AUTO, LATH_VINDEX_BROWSE, &err), LATH_ERR_UNSUPPORTED);
    lath_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_walked_is_dense),
        cmocka_unit_test(test_row_types),
        cmocka_unit_test(test_blocks_of_256),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_gguf),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_levels_and_models),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down) != 0 ? 1 : 0;
}
