/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gguf_open.c: opening a model from a GGUF file: a table of what is refused, with status and message; what keys make of a model; parts; chat
 * templates and end tokens, of GGUF files and of directories. Numbers are compared elsewhere (test_decoders --gguf).
 */
#include "engine/engine.h"
#include "support/gguf_model.h"
#include "support/golden.h"
#include "support/test.h"
#include "support/tmpdir.h"

static char dir[TMP_PATH];
static lath_error err;
static lath_runtime *rt;

static int make_dir(void **state)
{
    (void)state;
    tmp_make(dir);
    return lath_runtime_create(NULL, &rt, &err) == LATH_OK ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    lath_runtime_destroy(rt);
    tmp_remove(dir);
    return 0;
}

static lath_status open_name(const char *name, lath_model **m)
{
    char path[TMP_PATH];
    tmp_join(path, dir, name);
    *m = NULL;
    return lath_model_open(rt, path, NULL, m, &err);
}

static lath_status open_change(const gguf_change *c, lath_model **m)
{
    gguf_file_maker f;
    gguf_make(&f);
    gguf_model_make(&f, c);
    gguf_make_write(&f, dir, "m.gguf");
    return open_name("m.gguf", m);
}

/* ----------------------------------------------------------------------------------------------------------------- refused */

#define K(name, kind_, value) .key = (name), .kind = (kind_), .number = (value)
#define U32(name, value) K(name, GGUF_U32, value)
#define TEXT(name, value) .key = (name), .kind = GGUF_STRING, .text = (value)
#define NO_KEY(name) .key = (name), .kind = GGUF_KIND_COUNT
#define LIST(name, values) \
    .key = (name), .kind = GGUF_ARRAY, .list = (values), .n_list = sizeof(values) / sizeof((values)[0])
#define TENSOR(name, t, r, c) .tensor = (name), .type = (t), .rows = (r), .cols = (c)

static const int64_t differing[] = {2, 1};
static const float four[2] = {4, 4}, zero[2] = {1, 0};

static const struct {
    gguf_change change;
    lath_status st;
    const char *why;
} refused[] = {
    /* what it is */
    {{NO_KEY("general.architecture")}, LATH_ERR_FORMAT, "no key \"general.architecture\""},
    {{TEXT("general.architecture", "mamba")},
     LATH_ERR_UNSUPPORTED,
     "general.architecture \"mamba\" is not supported (there is: llama, "},
    {{U32("general.architecture", 3)}, LATH_ERR_FORMAT, "no key \"general.architecture\", a string"},
    {{TEXT("general.type", "adapter")}, LATH_ERR_UNSUPPORTED, "key \"general.type\": only models are supported"},
    {{U32("llama.swin_norm", 1)}, LATH_ERR_UNSUPPORTED, "key \"llama.swin_norm\" is not supported"},
    {{U32("llama.expert_count", 8)}, LATH_ERR_UNSUPPORTED, "key \"llama.expert_count\": this value is not supported"},
    {{TEXT("llama.tensor_data_layout", "other")}, LATH_ERR_UNSUPPORTED, "\"llama.tensor_data_layout\": this layout"},
    /* sizes */
    {{NO_KEY("llama.context_length")}, LATH_ERR_FORMAT, "key \"llama.context_length\": is not there"},
    {{NO_KEY("llama.attention.layer_norm_rms_epsilon")}, LATH_ERR_FORMAT, "layer_norm_rms_epsilon\": is not there"},
    {{TEXT("llama.context_length", "64")}, LATH_ERR_FORMAT, "key \"llama.context_length\": want a whole number"},
    {{K("llama.context_length", GGUF_I32, -1)}, LATH_ERR_FORMAT, "want a whole number from 0 to 2147483647"},
    {{K("llama.block_count", GGUF_U64, INT64_MAX)}, LATH_ERR_FORMAT, "key \"llama.block_count\": want a whole number"},
    {{U32("llama.block_count", 0)}, LATH_ERR_FORMAT, "\"num_hidden_layers\" is 0, want 1 to 1024 (llama.block_count)"},
    {{U32("llama.block_count", 1 << 30)}, LATH_ERR_FORMAT, "want 1 to 1024 (llama.block_count)"},
    {{U32("llama.block_count", 1000)}, LATH_ERR_FORMAT, "1000 layers, but "},
    {{U32("llama.attention.head_count", 0)}, LATH_ERR_FORMAT, "(llama.attention.head_count)"},
    {{U32("llama.attention.head_count", 4097)},
     LATH_ERR_FORMAT,
     "is 4097, want 1 to 4096 (llama.attention.head_count)"},
    {{U32("llama.attention.head_count", 3)}, LATH_ERR_FORMAT, "(llama.attention.head_count)"},
    {{U32("llama.attention.head_count_kv", 3)},
     LATH_ERR_FORMAT,
     "num_attention_heads 4 is no multiple of num_key_value_heads 3"},
    {{LIST("llama.attention.head_count_kv", differing)},
     LATH_ERR_UNSUPPORTED,
     "\"llama.attention.head_count_kv\": layers that differ"},
    {{.key = "llama.attention.head_count_kv", .kind = GGUF_ARRAY}, LATH_ERR_FORMAT, "head_count_kv\": an empty array"},
    {{U32("llama.embedding_length", 1 << 20)}, LATH_ERR_FORMAT, "(llama.embedding_length)"},
    {{U32("llama.feed_forward_length", 13)},
     LATH_ERR_FORMAT,
     "6 wrong: tensor \"blk.0.ffn_gate.weight\": shape [12,8], want [13,8]"},
    {{U32("llama.attention.key_length", 4)},
     LATH_ERR_UNSUPPORTED,
     "\"llama.attention.value_length\": values of another size"},
    {{U32("llama.rope.dimension_count", 1)},
     LATH_ERR_UNSUPPORTED,
     "\"llama.rope.dimension_count\": heads of which a part turns"},
    {{U32("llama.rope.dimension_count", 4)}, LATH_ERR_FORMAT, "\"llama.rope.dimension_count\": more than a head has"},
    {{TEXT("llama.attention.layer_norm_rms_epsilon", "x")}, LATH_ERR_FORMAT, "rms_epsilon\": want a number"},
    {{K("llama.attention.layer_norm_rms_epsilon", GGUF_F32, 7)}, LATH_ERR_FORMAT, "rms_norm_eps is out of range"},
    {{U32("llama.attention.causal", 1)}, LATH_ERR_FORMAT, "\"llama.attention.causal\": want true or false"},
    /* rotation */
    {{K("llama.rope.freq_base", GGUF_F32, -5)}, LATH_ERR_FORMAT, "rope_theta is out of range (llama.rope.freq_base)"},
    {{TEXT("llama.rope.scaling.type", "magic")},
     LATH_ERR_UNSUPPORTED,
     "\"llama.rope.scaling.type\": \"magic\" is not supported"},
    {{U32("llama.rope.scaling.type", 1)}, LATH_ERR_FORMAT, "\"llama.rope.scaling.type\": want a string"},
    {{K("llama.rope.scaling.factor", GGUF_F32, -2)},
     LATH_ERR_FORMAT,
     "want \"factor\", a number over 0 (llama.rope.scaling.factor)"},
    {{K("llama.rope.scaling.attn_factor", GGUF_F32, 2)},
     LATH_ERR_UNSUPPORTED,
     "\"llama.rope.scaling.attn_factor\": this value"},
    {{K("llama.rope.scaling.yarn_log_multiplier", GGUF_F32, 2)},
     LATH_ERR_UNSUPPORTED,
     "yarn_log_multiplier\": this value"},
    {{TEXT("llama.rope.scaling.type", "longrope")}, LATH_ERR_FORMAT, "no tensor \"rope_factors_long.weight\""},
    {{TEXT("llama.rope.scaling.type", "longrope"), TENSOR("rope_factors_long.weight", 0, 0, 1), .data = four},
     LATH_ERR_FORMAT,
     "no tensor \"rope_factors_short.weight\""},
    {{TEXT("llama.rope.scaling.type", "yarn"), TENSOR("rope_freqs.weight", 0, 0, 1), .data = four},
     LATH_ERR_UNSUPPORTED,
     "beside the tensor"},
    {{TEXT("llama.rope.scaling.type", "x"), TENSOR("rope_freqs.weight", 0, 0, 1), .data = four},
     LATH_ERR_UNSUPPORTED,
     "\"x\" is not supported"},
    {{TENSOR("rope_freqs.weight", 0, 0, 2), .data = four}, LATH_ERR_FORMAT, "want \"factors\", an array of 1 numbers"},
    {{TENSOR("rope_freqs.weight", 0, 0, 2), .data = zero},
     LATH_ERR_FORMAT,
     "\"rope_freqs.weight\": element 1 is not a number over 0"},
    {{TENSOR("rope_freqs.weight", 0, 1, 1), .data = four},
     LATH_ERR_FORMAT,
     "\"rope_freqs.weight\": want a vector of F32"},
    {{K("llama.rope.scaling.factor", GGUF_F32, 2), TENSOR("rope_freqs.weight", 0, 0, 1), .data = four},
     LATH_ERR_UNSUPPORTED,
     "beside the tensor"},
    /* tensors */
    {{TENSOR("token_embd.weight", -1, 0, 0)}, LATH_ERR_FORMAT, "m.gguf: no tensor \"token_embd.weight\""},
    {{TENSOR("blk.1.ffn_up.weight", -1, 0, 0)}, LATH_ERR_FORMAT, "m.gguf: no tensor \"blk.1.ffn_up.weight\""},
    {{TENSOR("token_embd.weight", 0, 8, 9)},
     LATH_ERR_FORMAT,
     "m.gguf: tensor \"token_embd.weight\": shape [8,9], want [8,8]"},
    {{TENSOR("blk.0.attn_k.weight", 0, 8, 8)},
     LATH_ERR_FORMAT,
     "m.gguf: tensor \"blk.0.attn_k.weight\": shape [8,8], want [4,8]"},
    {{TENSOR("blk.0.attn_norm.weight", 0, 8, 1)}, LATH_ERR_FORMAT, "\"blk.0.attn_norm.weight\": shape [8,1], want [8]"},
    {{TENSOR("blk.0.attn_q.weight", 26, 8, 8)},
     LATH_ERR_FORMAT,
     "m.gguf: tensor \"blk.0.attn_q.weight\": dtype I32 is no type of weights"},
    {{TENSOR("blk.0.attn_q.weight", 8, 8, 8)}, LATH_ERR_FORMAT, "rows of 8 numbers are no whole number of Q8_0 blocks"},
    {{TENSOR("blk.0.attn_q.bias", 0, 0, 8)},
     LATH_ERR_FORMAT,
     "7 tensors missing: no tensor \"blk.1.attn_q.bias\"; no tensor \"blk.0.attn_k.bias\""},
    /* the rest */
    {{U32("llama.pooling_type", 4)}, LATH_ERR_UNSUPPORTED, "\"llama.pooling_type\": this value is not supported"},
    {{NO_KEY("tokenizer.ggml.model")}, LATH_ERR_NOT_FOUND, "m.gguf: no tokenizer in it"},
    {{TEXT("tokenizer.ggml.model", "rwkv")}, LATH_ERR_UNSUPPORTED, "m.gguf"},
    {{U32("tokenizer.chat_template", 1)}, LATH_ERR_FORMAT, "\"tokenizer.chat_template\": want a string"},
    {{TEXT("tokenizer.ggml.eot_token_id", "x")},
     LATH_ERR_FORMAT,
     "\"tokenizer.ggml.eot_token_id\": want the id of a token"},
    {{U32("split.count", 2)}, LATH_ERR_FORMAT, "so its name should end with -00001-of-00002.gguf"},
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        lath_model *m;
        const lath_status st = open_change(&refused[i].change, &m);
        if (st != refused[i].st || !strstr(err.msg, refused[i].why) || !strstr(err.msg, "m.gguf"))
            fail_msg("%zu: status %d (want %d): \"%s\", want \"%s\" in it", i, (int)st, (int)refused[i].st, err.msg,
                     refused[i].why);
    }
    lath_model *m;
    assert_int_equal(open_name("none.gguf", &m), LATH_ERR_NOT_FOUND);
    tmp_write(dir, "text.bin", "x");
    assert_int_equal(open_name("text.bin", &m), LATH_ERR_NOT_FOUND);
    assert_non_null(strstr(err.msg, "text.bin: no model directory and no .gguf file"));
}

/* Cut at every place: never opens, never another status than these. */
static void test_cut(void **state)
{
    (void)state;
    gguf_file_maker f;
    size_t n;
    gguf_make(&f);
    gguf_model_make(&f, NULL);
    uint8_t *bytes = gguf_make_bytes(&f, &n);
    for (size_t cut = 0; cut < n; cut += 1 + cut / 40) {
        lath_model *m;
        tmp_write_bytes(dir, "cut.gguf", bytes, cut);
        assert_int_equal(open_name("cut.gguf", &m), LATH_ERR_FORMAT);
        assert_non_null(strstr(err.msg, "cut.gguf"));
    }
    free(bytes);
}

/* ---------------------------------------------------------------------------------------------------------------- accepted */

static void test_opens(void **state)
{
    (void)state;
    static const int64_t equal[] = {2, 2};
    static const gguf_change changes[] = {
        {0},
        {LIST("llama.attention.head_count_kv", equal)},
        {K("llama.block_count", GGUF_U8, 2)},
        {K("llama.block_count", GGUF_I64, 2)},
        {NO_KEY("llama.rope.freq_base")},
        {NO_KEY("general.type")},
        {U32("llama.expert_count", 0)},
        {U32("llama.vocab_size", 77)},
        {TEXT("llama.tensor_data_layout", "Meta AI original pth")},
        {TEXT("llama.rope.scaling.type", "none")},
        {U32("other.namespace", 1)},
        {TENSOR("output.weight", -1, 0, 0)},
        {TENSOR("something.else", 0, 2, 2)},
        {TENSOR("rope_freqs.weight", 0, 0, 1), .data = four},
        {K("llama.rope.scaling.factor", GGUF_F32, 4)},
        {TEXT("general.name", "A name")},
    };
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        lath_model *m;
        lath_model_info info = {.struct_size = sizeof(info)};
        assert_ok(open_change(&changes[i], &m), err);
        assert_ok(lath_model_get_info(m, &info, &err), err);
        assert_string_equal(info.architecture, "llama");
        assert_string_equal(info.kind, "language model");
        assert_string_equal(info.weights, "F32");
        assert_int_equal(info.vocab_size, GGUF_MODEL_TOKENS);
        assert_int_equal(info.max_tokens, 64);
        assert_int_equal(info.n_unused, changes[i].tensor && strcmp(changes[i].tensor, "something.else") == 0);
        assert_int_equal(info.n_tensors, GGUF_MODEL_TENSORS + (changes[i].tensor ? changes[i].type < 0 ? -1 : 1 : 0));
        const bool tied = changes[i].tensor && strcmp(changes[i].tensor, "output.weight") == 0;
        assert_string_equal(m->arch.lm_head.w->t->name, tied ? "token_embd.weight" : "output.weight");
        lath_model_close(m);
    }
}

/* Dtypes of what is used, the largest part first. */
static void test_dtypes(void **state)
{
    (void)state;
    static const uint8_t blocks[12 * 34] = {0};
    lath_model *m;
    lath_model_info info = {.struct_size = sizeof(info)};
    lath_dtype_info d;
    const gguf_change half = {.tensor = "output.weight", .type = 1, .rows = 8, .cols = 8, .data = blocks};
    assert_ok(open_change(&half, &m), err);
    assert_ok(lath_model_get_info(m, &info, &err), err);
    assert_int_equal(info.n_dtypes, 2);
    assert_string_equal(info.weights, "F32");
    assert_ok(lath_model_get_dtype(m, 0, &d, &err), err);
    assert_string_equal(d.dtype, "F32");
    assert_int_equal(d.n_tensors, GGUF_MODEL_TENSORS - 1);
    assert_int_equal(d.bytes, 4 * d.n_params);
    assert_ok(lath_model_get_dtype(m, 1, &d, &err), err);
    assert_string_equal(d.dtype, "F16");
    assert_int_equal(d.n_tensors, 1);
    assert_int_equal(d.bytes, 128);
    assert_int_equal(lath_model_get_dtype(m, 2, &d, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_model_get_dtype(m, -1, &d, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_model_get_dtype(NULL, 0, &d, &err), LATH_ERR_USAGE);
    lath_model_close(m);
}

/* A window makes it the family whose layers all slide. */
static void test_window(void **state)
{
    (void)state;
    lath_model *m;
    assert_ok(open_change(&(gguf_change){U32("llama.attention.sliding_window", 9)}, &m), err);
    assert_string_equal(m->arch.desc->name, "mistral");
    assert_int_equal(m->arch.stored, ARCH_STORED_ROPE_PAIRS);
    lath_model_close(m);
}

/* Rows of embeddings and tokens may differ; an id that has no row is an error when it is used. */
static void test_rows_and_tokens(void **state)
{
    (void)state;
    lath_model *m;
    lath_embedder *e;
    float out[8];
    const lath_text good = {"ab", 2}, bad = {"d", 1};
    for (uint64_t rows = 7; rows <= 9; rows += 2) {
        gguf_file_maker f;
        gguf_make(&f);
        gguf_model_make(&f, &(gguf_change){TENSOR("token_embd.weight", 0, rows, 8)});
        gguf_make_write(&f, dir, "m.gguf");
        /* The output matrix has the tokens' rows, not the embeddings': that only matters to who asks for logits. */
        assert_ok(open_name("m.gguf", &m), err);
        assert_int_equal(m->arch.dims.vocab_size, rows);
        assert_int_equal(m->lm_head_error.status, LATH_ERR_FORMAT);
        assert_ok(lath_embedder_create(m, NULL, &e, &err), err);
        assert_ok(lath_embed(e, &good, 1, out, NULL, &err), err);
        const lath_status st = lath_embed(e, &bad, 1, out, NULL, &err);
        if (rows == 7) {
            assert_int_equal(st, LATH_ERR_INPUT);
            assert_non_null(strstr(err.msg, "token id 7"));
        } else {
            assert_ok(st, err);
        }
        lath_embedder_destroy(e);
        lath_model_close(m);
    }
}

static void test_pooling(void **state)
{
    (void)state;
    static const struct {
        int64_t type;
        lath_pooling pooling;
        bool normalized;
        const char *kind;
    } rows[] = {{0, LATH_POOLING_LAST, false, "language model"},
                {1, LATH_POOLING_MEAN, true, "embedder"},
                {2, LATH_POOLING_CLS, true, "embedder"},
                {3, LATH_POOLING_LAST, true, "embedder"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        lath_model *m;
        lath_model_info info = {.struct_size = sizeof(info)};
        assert_ok(open_change(&(gguf_change){U32("llama.pooling_type", rows[i].type)}, &m), err);
        assert_ok(lath_model_get_info(m, &info, &err), err);
        assert_int_equal(info.pooling, rows[i].pooling);
        assert_int_equal(info.normalized, rows[i].normalized);
        assert_string_equal(info.kind, rows[i].kind);
        lath_model_close(m);
    }
}

/* Any part opens the model; its fingerprint does not depend on which. Addresses in the map name the part. */
static void test_parts(void **state)
{
    (void)state;
    static const gguf_change none_changed = {0};
    uint64_t first[2] = {0, 0};
    gguf_file_maker f;
    gguf_make(&f);
    gguf_model_make(&f, &(gguf_change){TENSOR("blk.1.ffn_up.weight", -1, 0, 0)});
    gguf_make_int(&f, "split.no", GGUF_U16, 0);
    gguf_make_int(&f, "split.count", GGUF_U16, 2);
    gguf_make_write(&f, dir, "p-00001-of-00002.gguf");
    gguf_make(&f);
    gguf_make_tensor(&f, "blk.1.ffn_up.weight", 0, 12, 8, NULL);
    gguf_make_int(&f, "split.no", GGUF_U16, 1);
    gguf_make_int(&f, "split.count", GGUF_U16, 2);
    gguf_make_write(&f, dir, "p-00002-of-00002.gguf");
    for (int i = 1; i <= 2; i++) {
        char name[64];
        lath_model *m;
        lath_model_info info = {.struct_size = sizeof(info)};
        const tensor *t;
        snprintf(name, sizeof(name), "p-%05d-of-00002.gguf", i);
        assert_ok(open_name(name, &m), err);
        assert_ok(weights_find(m->sources[0], "blk.1.ffn_up.weight", &t, &err), err);
        assert_non_null(strstr(lath_model_file_at(m, t->data), "p-00002-of-00002.gguf"));
        assert_null(lath_model_file_at(m, &none_changed));
        assert_ok(lath_model_get_info(m, &info, &err), err);
        if (i == 1)
            memcpy(first, info.fingerprint, sizeof(first));
        else
            assert_memory_equal(first, info.fingerprint, sizeof(first));
        lath_model_close(m);
    }
    lath_model *m; /* another tokenizer is another model */
    lath_model_info info = {.struct_size = sizeof(info)};
    uint64_t prints[2][2];
    for (int i = 0; i < 2; i++) {
        assert_ok(open_change(&(gguf_change){U32("tokenizer.ggml.padding_token_id", i)}, &m), err);
        assert_ok(lath_model_get_info(m, &info, &err), err);
        memcpy(prints[i], info.fingerprint, sizeof(prints[i]));
        lath_model_close(m);
    }
    assert_memory_not_equal(prints[0], prints[1], sizeof(prints[0]));
}

/* ------------------------------------------------------------------------------------------------------------------- turns */

static void expect_ends(const lath_model *m, const char *want)
{
    char have[256] = "";
    int32_t n;
    const int32_t *ids = model_end_ids(m, &n);
    for (int32_t i = 0; i < n; i++) snprintf(have + strlen(have), sizeof(have) - strlen(have), "%d ", (int)ids[i]);
    assert_string_equal(have, want);
}

static void test_turns_of_gguf(void **state)
{
    (void)state;
    static const struct {
        gguf_change change;
        const char *text, *ends;
    } rows[] = {
        {{0}, NULL, "2 "},
        {{TEXT("tokenizer.chat_template", "{{ x }}")}, "{{ x }}", "2 "},
        {{U32("tokenizer.ggml.eot_token_id", 5)}, NULL, "2 5 "},
        {{U32("tokenizer.ggml.eom_token_id", 2)}, NULL, "2 "},
        {{K("tokenizer.ggml.eot_token_id", GGUF_U32, 0xffffffff)}, NULL, "2 "},
        {{K("tokenizer.ggml.eot_token_id", GGUF_U64, 6)}, NULL, "2 6 "},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        lath_model *m;
        assert_ok(open_change(&rows[i].change, &m), err);
        if (rows[i].text)
            assert_string_equal(model_chat_template(m), rows[i].text);
        else
            assert_null(model_chat_template(m));
        expect_ends(m, rows[i].ends);
        lath_model_close(m);
    }
}

static void test_turns_of_directory(void **state)
{
    (void)state;
    static const struct {
        const char *file, *text; /* one file more */
        const char *want, *ends; /* NULL: none */
    } rows[] = {
        {"chat_template.jinja", "{{ a }}", "{{ a }}", "2 "},
        {"chat_template.json", "{\"chat_template\": \"{{ b }}\"}", "{{ b }}", "2 "},
        {"tokenizer_config.json", "{\"chat_template\": \"{{ c }}\"}", "{{ c }}", "2 "},
        {"tokenizer_config.json",
         "{\"chat_template\": [{\"name\": \"tools\", \"template\": \"t\"}, {\"name\": \"default\", \"template\": \"{{ d }}\"}],"
         " \"eos_token\": {\"content\": \"a\"}}",
         "{{ d }}", "2 4 "},
        {"generation_config.json", "{\"eos_token_id\": [7, 2, 9]}", NULL, "7 2 9 "},
        {"generation_config.json", "{\"eos_token_id\": 1}", NULL, "1 2 "},
        {"inference_config.json", "{\"eos_token_id\": 11}", NULL, "2 11 "},
    };
    char from[1200];
    test_path(from, sizeof(from), "golden/decoder", "llama2");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char copy[TMP_PATH];
        lath_model *m;
        tmp_copy(copy, from);
        tmp_write(copy, rows[i].file, rows[i].text);
        assert_ok(lath_model_open(rt, copy, NULL, &m, &err), err);
        if (rows[i].want)
            assert_string_equal(model_chat_template(m), rows[i].want);
        else
            assert_null(model_chat_template(m));
        expect_ends(m, rows[i].ends);
        lath_model_close(m);
        tmp_write(copy, "generation_config.json", "{\"eos_token_id\": [1, \"x\"]}");
        assert_int_equal(lath_model_open(rt, copy, NULL, &m, &err), LATH_ERR_FORMAT);
        assert_non_null(strstr(err.msg, "generation_config.json: line 1: \"eos_token_id\": want whole numbers"));
        tmp_remove(copy);
    }
}

/* ------------------------------------------------------------------------------------------------------------- delta nets */

/* Sizes of delta nets that are none, or that its tensors do not have: tests/golden/gguf/qwen3_5_weak_decay with another number in a key. */
static void test_delta_nets(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        uint32_t value;
        const char *why;
    } rows[] = {
        {"qwen35.ssm.inner_size", 56, "tensor \"blk.0.attn_qkv.weight\": shape [64,20], want [92,20]"},
        {"qwen35.ssm.inner_size", 27, "key \"qwen35.ssm.inner_size\": want a multiple of ssm.time_step_rank"},
        {"qwen35.ssm.group_count", 3,
         "linear_num_value_heads 4 is no multiple of linear_num_key_heads 3 (qwen35.ssm.group_count)"},
        {"qwen35.ssm.group_count", 0, "\"linear_num_key_heads\" is 0, want 1 to 4096 (qwen35.ssm.group_count)"},
        {"qwen35.ssm.state_size", 0, "\"linear_key_head_dim\" is 0, want 1 to 4096 (qwen35.ssm.state_size)"},
        {"qwen35.ssm.state_size", 8, "want [60,20]"},
        {"qwen35.ssm.time_step_rank", 2, "tensor \"blk.0.ssm_beta.weight\": shape [4,20], want [2,20]"},
        {"qwen35.ssm.conv_kernel", 5, "tensor \"blk.0.ssm_conv1d.weight\": shape [64,4], want [64,5]"},
        {"qwen35.ssm.conv_kernel", 1, "\"linear_conv_kernel_dim\" is 1, want 2 to"},
        {"qwen35.rope.dimension_count", 12, "key \"qwen35.rope.dimension_count\": more than a head has"},
    };
    char source[TMP_PATH];
    size_t n;
    snprintf(source, sizeof(source), "%s/golden/gguf/qwen3_5_weak_decay", test_data_dir());
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        lath_model *m;
        uint8_t *bytes = (uint8_t *)tmp_read(source, "model.gguf", &n);
        const size_t k = strlen(rows[i].key);
        uint8_t *at = memmem(bytes, n, rows[i].key, k);
        assert_non_null(at);
        memcpy(at + k + 4, &rows[i].value, 4); /* behind the kind of value */
        tmp_write_bytes(dir, "m.gguf", bytes, n);
        free(bytes);
        if (open_name("m.gguf", &m) == LATH_OK || !strstr(err.msg, rows[i].why) || !strstr(err.msg, "m.gguf"))
            fail_msg("%s %u: \"%s\", want \"%s\" in it", rows[i].key, rows[i].value, err.msg, rows[i].why);
    }
}

/* Decays are stored as -exp(A_log): what is above 0 was meant otherwise, and 0 is a state that forgets nothing. */
static void test_decays(void **state)
{
    (void)state;
    static const float values[] = {0.5f, 0};
    char source[TMP_PATH], path[TMP_PATH];
    snprintf(source, sizeof(source), "%s/golden/gguf/qwen3_5_weak_decay", test_data_dir());
    tmp_join(path, source, "model.gguf");
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        lath_model *m;
        gguf *g;
        size_t n;
        uint8_t *bytes = (uint8_t *)tmp_read(source, "model.gguf", &n);
        assert_ok(gguf_open(alloc_default(), path, FILE_MAP, &g, &err), err);
        const gguf_tensor *decay = gguf_find(g, "blk.1.ssm_a");
        memcpy(bytes + (decay->data - (const uint8_t *)gguf_file(g)->data) + sizeof(float), &values[i], sizeof(float));
        gguf_close(g);
        tmp_write_bytes(dir, "m.gguf", bytes, n);
        free(bytes);
        const lath_status st = open_name("m.gguf", &m);
        assert_int_equal(st, values[i] > 0 ? LATH_ERR_FORMAT : LATH_OK);
        if (st != LATH_OK)
            assert_non_null(strstr(err.msg, "m.gguf: tensor \"blk.1.ssm_a\": element 1 is 0.5, want -exp(A_log)"));
        lath_model_close(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_refused, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_decays, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_delta_nets, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_cut, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_opens, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_dtypes, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_window, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_rows_and_tokens, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_pooling, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_parts, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_turns_of_gguf, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_turns_of_directory, make_dir, remove_dir),
    };
    return TEST_RUN(tests);
}
