/* SPDX-License-Identifier: Apache-2.0
 * test_model_open.c: what lath_model_open refuses, with which status and words. A good directory is copied and
 * broken in one place per case. The allocator counts: whatever failed, nothing is left. And what is no fault
 * (fields that are not there, tensors that are not used) opens. */
#include <math.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "lath/lath.h"
#include "support/test.h"
#include "support/tmpdir.h"

/* ---------------------------------------------------------------------------------------------------------- runtime */

static atomic_long blocks_out;
static char log_text[8192];
static int log_lines;
static lath_error err;

static void *count_alloc(void *ctx, size_t size, size_t align)
{
    void *p = alloc_default()->alloc(ctx, size, align);
    if (p) atomic_fetch_add(&blocks_out, 1);
    return p;
}

static void count_release(void *ctx, void *p, size_t size)
{
    atomic_fetch_sub(&blocks_out, 1);
    alloc_default()->release(ctx, p, size);
}

static void *pass_resize(void *ctx, void *p, size_t old_size, size_t size, size_t align)
{
    return alloc_default()->resize(ctx, p, old_size, size, align);
}

static const lath_allocator counting = {NULL, count_alloc, pass_resize, count_release};

static void keep_log(void *ctx, lath_log_level level, const char *line)
{
    (void)ctx;
    assert_int_equal(level, LATH_LOG_ERROR);
    size_t n = strlen(log_text);
    snprintf(log_text + n, sizeof(log_text) - n, "%s\n", line);
    log_lines++;
}

static lath_runtime *make_runtime(void)
{
    lath_runtime_options o = LATH_RUNTIME_OPTIONS_INIT;
    lath_runtime *rt = NULL;
    o.allocator = &counting;
    o.n_threads = 2;
    o.log = keep_log;
    assert_ok(lath_runtime_create(&o, &rt, &err), err);
    return rt;
}

/* ------------------------------------------------------------------------------------------------------------ cases */

/* A change to a copied directory: replace text, write a file, delete one, rename one, replace in the header of the
 * weights. */
typedef enum change_kind { END, REPLACE, WRITE, DELETE, RENAME, HEADER } change_kind;
typedef struct change {
    change_kind kind;
    const char *file, *a, *b;
} change;

enum { MAX_CHANGES = 4, MAX_PARTS = 3 };
typedef struct broken {
    const char *what;
    change changes[MAX_CHANGES];
    lath_status status;
    const char *parts[MAX_PARTS]; /* all in the message */
} broken;

static void apply(const char *dir, const change *c)
{
    switch (c->kind) {
    case REPLACE: tmp_replace(dir, c->file, c->a, c->b); break;
    case WRITE: tmp_write(dir, c->file, c->a); break;
    case DELETE: tmp_delete(dir, c->file); break;
    case RENAME: tmp_rename(dir, c->file, c->a); break;
    case HEADER: tmp_edit_header(dir, c->a, c->b); break;
    case END: break;
    }
}

#define CONFIG(a, b)                 \
    {                                \
        REPLACE, "config.json", a, b \
    }
#define ROOM "/config.json: "
static const broken config_cases[] = {
    {"no config.json", {{DELETE, "config.json", 0, 0}}, LATH_ERR_NOT_FOUND, {"/config.json"}},
    {"empty", {{WRITE, "config.json", "", 0}}, LATH_ERR_FORMAT, {ROOM "line 1: ", "not JSON"}},
    {"no members", {{WRITE, "config.json", "{}", 0}}, LATH_ERR_FORMAT, {ROOM "no \"model_type\" in it"}},
    {"an array", {{WRITE, "config.json", "[]", 0}}, LATH_ERR_FORMAT, {ROOM "want a JSON object"}},
    {"cut", {{WRITE, "config.json", "{\"model_type\": \"bert\",\n\"vocab", 0}}, LATH_ERR_FORMAT, {ROOM "line 2: "}},
    {"duplicate key",
     {CONFIG("\"vocab_size\": 200", "\"vocab_size\": 200,\n \"vocab_size\": 201")},
     LATH_ERR_FORMAT,
     {ROOM "line ", "duplicate key \"vocab_size\""}},
    {"another family",
     {CONFIG("\"bert\"", "\"gpt2\"")},
     LATH_ERR_UNSUPPORTED,
     {ROOM "model_type \"gpt2\" is not supported"}},
    {"family is a number", {CONFIG("\"bert\"", "7")}, LATH_ERR_FORMAT, {ROOM "line ", "\"model_type\": want a string"}},
    {"family is null", {CONFIG("\"bert\"", "null")}, LATH_ERR_FORMAT, {ROOM "no \"model_type\" in it"}},
    {"class is a number",
     {CONFIG("\"architectures\": [", "\"architectures\": 7, \"x\": [")},
     LATH_ERR_FORMAT,
     {ROOM "line 2: \"architectures\": want an array of names of classes"}},
    {"class is a name",
     {CONFIG("\"architectures\": [", "\"architectures\": \"BertModel\", \"x\": [")},
     LATH_ERR_FORMAT,
     {ROOM "line 2: \"architectures\": want an array of names of classes"}},
    {"second class is null",
     {CONFIG("\"BertModel\"", "\"BertModel\", null")},
     LATH_ERR_FORMAT,
     {ROOM "line 2: \"architectures\": want an array of names of classes"}},
    {"class without a name",
     {CONFIG("\"BertModel\"", "\"\"")},
     LATH_ERR_FORMAT,
     {ROOM "line 2: \"architectures\": want an array of names of classes"}},
    {"activation",
     {CONFIG("\"gelu\"", "\"quick_gelu\"")},
     LATH_ERR_UNSUPPORTED,
     {ROOM "hidden_act \"quick_gelu\" is not supported"}},
    {"positions",
     {CONFIG("\"absolute\"", "\"relative_key\"")},
     LATH_ERR_UNSUPPORTED,
     {ROOM "position_embedding_type \"relative_key\" is not supported"}},
    {"decoder",
     {CONFIG("\"hidden_size\": 30", "\"hidden_size\": 30, \"is_decoder\": true")},
     LATH_ERR_UNSUPPORTED,
     {ROOM "is_decoder"}},
    {"cross attention",
     {CONFIG("\"hidden_size\": 30", "\"hidden_size\": 30, \"add_cross_attention\": true")},
     LATH_ERR_UNSUPPORTED,
     {ROOM "add_cross_attention"}},
    {"is_decoder is no bool",
     {CONFIG("\"hidden_size\": 30", "\"hidden_size\": 30, \"is_decoder\": \"no\"")},
     LATH_ERR_FORMAT,
     {ROOM "line ", "\"is_decoder\": want true or false"}},
    {"no hidden_size", {CONFIG("\"hidden_size\": 30,", "")}, LATH_ERR_FORMAT, {ROOM "no \"hidden_size\" in it"}},
    {"no vocab_size", {CONFIG("\"vocab_size\": 200", "\"x\": 200")}, LATH_ERR_FORMAT, {ROOM "no \"vocab_size\" in it"}},
    {"hidden_size null",
     {CONFIG("\"hidden_size\": 30", "\"hidden_size\": null")},
     LATH_ERR_FORMAT,
     {ROOM "no \"hidden_size\" in it"}},
    {"hidden_size 0",
     {CONFIG("\"hidden_size\": 30", "\"hidden_size\": 0")},
     LATH_ERR_FORMAT,
     {ROOM "line ", "\"hidden_size\" is 0, want 1 to"}},
    {"hidden_size negative",
     {CONFIG("\"hidden_size\": 30", "\"hidden_size\": -30")},
     LATH_ERR_FORMAT,
     {"\"hidden_size\" is -30"}},
    {"hidden_size a string",
     {CONFIG("\"hidden_size\": 30", "\"hidden_size\": \"30\"")},
     LATH_ERR_FORMAT,
     {"\"hidden_size\": want an integer"}},
    {"hidden_size a fraction",
     {CONFIG("\"hidden_size\": 30", "\"hidden_size\": 30.5")},
     LATH_ERR_FORMAT,
     {"\"hidden_size\": want an integer"}},
    {"hidden_size huge",
     {CONFIG("\"hidden_size\": 30", "\"hidden_size\": 9223372036854775807")},
     LATH_ERR_FORMAT,
     {"\"hidden_size\" is 9223372036854775807"}},
    {"heads",
     {CONFIG("\"num_attention_heads\": 3", "\"num_attention_heads\": 4")},
     LATH_ERR_FORMAT,
     {ROOM "hidden_size 30 is no multiple of num_attention_heads 4"}},
    {"eps negative", {CONFIG("1e-12", "-1e-12")}, LATH_ERR_FORMAT, {ROOM "layer_norm_eps is out of range"}},
    {"eps infinite", {CONFIG("1e-12", "1e999")}, LATH_ERR_FORMAT, {ROOM "layer_norm_eps is out of range"}},
    {"eps a string", {CONFIG("1e-12", "\"x\"")}, LATH_ERR_FORMAT, {"\"layer_norm_eps\": want a number"}},
    {"layers over the limit",
     {CONFIG("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 100000")},
     LATH_ERR_FORMAT,
     {"\"num_hidden_layers\" is 100000"}},
    {"quantised",
     {CONFIG("\"vocab_size\": 200", "\"vocab_size\": 200,\n \"quantization_config\": {\"quant_method\": \"fp8\"}")},
     LATH_ERR_UNSUPPORTED,
     {ROOM "line ", "\"quantization_config\": quant_method \"fp8\" is not supported"}},
    {"quantised in a way without a name",
     {CONFIG("\"vocab_size\": 200", "\"vocab_size\": 200, \"quantization_config\": {\"bits\": 4}")},
     LATH_ERR_UNSUPPORTED,
     {"\"quantization_config\": a quantised model is not supported"}},
    {"quantised, of another kind",
     {CONFIG("\"vocab_size\": 200", "\"vocab_size\": 200, \"quantization_config\": {\"quant_method\": 4}")},
     LATH_ERR_FORMAT,
     {"\"quant_method\": want a string"}},
    {"more layers than tensors",
     {CONFIG("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1000")},
     LATH_ERR_FORMAT,
     {ROOM "1000 layers, but ", "has 37 tensors"}},
};

#define W "/model.safetensors: "
static const broken weight_cases[] = {
    {"one layer too many",
     {CONFIG("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3")},
     LATH_ERR_FORMAT,
     {W "16 tensors missing: no tensor \"encoder.layer.2.attention.self.query.weight\"; no tensor \"encoder.layer.2."}},
    {"one name",
     {{HEADER, 0, "encoder.layer.1.output.dense.weight", "encoder.layer.1.output.dense.Weight"}},
     LATH_ERR_FORMAT,
     {W "no tensor \"encoder.layer.1.output.dense.weight\""}},
    {"vocab_size",
     {CONFIG("\"vocab_size\": 200", "\"vocab_size\": 199")},
     LATH_ERR_FORMAT,
     {W "tensor \"embeddings.word_embeddings.weight\": shape [200,30], want [199,30]"}},
    {"positions",
     {CONFIG("\"max_position_embeddings\": 40", "\"max_position_embeddings\": 41")},
     LATH_ERR_FORMAT,
     {"embeddings.position_embeddings.weight\": shape [40,30], want [41,30]"}},
    {"types",
     {CONFIG("\"type_vocab_size\": 2", "\"type_vocab_size\": 1")},
     LATH_ERR_FORMAT,
     {"embeddings.token_type_embeddings.weight\": shape [2,30], want [1,30]"}},
    {"d_ff",
     {CONFIG("\"intermediate_size\": 37", "\"intermediate_size\": 36")},
     LATH_ERR_FORMAT,
     {W
      "0 tensors missing, 6 wrong: tensor \"encoder.layer.0.intermediate.dense.weight\": shape [37,30], want [36,30]"}},
    {"rank",
     {{HEADER, 0, "\"encoder.layer.0.attention.self.key.weight\":{\"dtype\":\"F32\",\"shape\":[30,30]",
       "\"encoder.layer.0.attention.self.key.weight\":{\"dtype\":\"F32\",\"shape\":[900]"}},
     LATH_ERR_FORMAT,
     {"key.weight\": shape [900], want [30,30]"}},
    {"dtype",
     {{HEADER, 0, "\"embeddings.LayerNorm.bias\":{\"dtype\":\"F32\"",
       "\"embeddings.LayerNorm.bias\":{\"dtype\":\"I32\""}},
     LATH_ERR_FORMAT,
     {W "tensor \"embeddings.LayerNorm.bias\": dtype I32 is no type of weights"}},
    {"unknown dtype",
     {{HEADER, 0, "\"embeddings.LayerNorm.bias\":{\"dtype\":\"F32\"",
       "\"embeddings.LayerNorm.bias\":{\"dtype\":\"Q4\""}},
     LATH_ERR_UNSUPPORTED,
     {W "tensor \"embeddings.LayerNorm.bias\": ", "Q4"}},
    {"a scale beside a weight",
     {{HEADER, 0, "\"encoder.layer.1.attention.self.key.bias\"",
       "\"encoder.layer.1.attention.self.key.weight_scale\""}},
     LATH_ERR_UNSUPPORTED,
     {W "tensor \"encoder.layer.1.attention.self.key.weight_scale\": weights with scales are not supported"}},
    {"no weights", {{DELETE, "model.safetensors", 0, 0}}, LATH_ERR_NOT_FOUND, {"no model.safetensors in it"}},
    {"an index of nothing",
     {{RENAME, "model.safetensors", "model-00001-of-00002.safetensors", 0},
      {WRITE, "model.safetensors.index.json", "{}", 0}},
     LATH_ERR_FORMAT,
     {"/model.safetensors.index.json: no \"weight_map\" in it"}},
    {"pickle only",
     {{RENAME, "model.safetensors", "pytorch_model.bin", 0}},
     LATH_ERR_UNSUPPORTED,
     {"/pytorch_model.bin: ", "PyTorch"}},
    {"tensorflow only",
     {{RENAME, "model.safetensors", "tf_model.h5", 0}},
     LATH_ERR_UNSUPPORTED,
     {"/tf_model.h5: ", "TensorFlow"}},
    {"empty weights", {{WRITE, "model.safetensors", "", 0}}, LATH_ERR_FORMAT, {W "0 bytes"}},
    {"not weights",
     {{WRITE, "model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0", 0}},
     LATH_ERR_FORMAT,
     {W}},
};

#define MODULES(a, b)                 \
    {                                 \
        REPLACE, "modules.json", a, b \
    }
#define M "/modules.json: "
static const broken module_cases[] = {
    {"an object", {{WRITE, "modules.json", "{}", 0}}, LATH_ERR_FORMAT, {M "want an array of modules"}},
    {"no modules", {{WRITE, "modules.json", "[]", 0}}, LATH_ERR_FORMAT, {M "want an array of modules"}},
    {"no JSON", {{WRITE, "modules.json", "[\n}", 0}}, LATH_ERR_FORMAT, {M "line 2: "}},
    {"rows are no objects",
     {{WRITE, "modules.json", "[1]", 0}},
     LATH_ERR_FORMAT,
     {M "line 1: a module without \"type\""}},
    {"no type",
     {MODULES("\"type\": \"sentence_transformers.models.Pooling\"", "\"x\": 1")},
     LATH_ERR_FORMAT,
     {M "line ", "a module without \"type\""}},
    {"type a number",
     {MODULES("\"sentence_transformers.models.Pooling\"", "3")},
     LATH_ERR_FORMAT,
     {M "line ", "\"type\": want a string"}},
    {"unknown",
     {MODULES("models.Normalize", "models.LSTM")},
     LATH_ERR_UNSUPPORTED,
     {M "module \"sentence_transformers.models.LSTM\" is not supported"}},
    {"own code",
     {MODULES("sentence_transformers.models.Normalize", "my_model.Whitening")},
     LATH_ERR_UNSUPPORTED,
     {"\"my_model.Whitening\""}},
    {"outside",
     {MODULES("\"1_Pooling\"", "\"../1_Pooling\"")},
     LATH_ERR_FORMAT,
     {M "line ", "path \"../1_Pooling\" leads outside the model"}},
    {"outside, inside", {MODULES("\"1_Pooling\"", "\"a/../../b\"")}, LATH_ERR_FORMAT, {"leads outside the model"}},
    {"absolute", {MODULES("\"1_Pooling\"", "\"/etc\"")}, LATH_ERR_FORMAT, {"path \"/etc\" leads outside the model"}},
    {"absolute encoder", {MODULES("\"path\": \"\"", "\"path\": \"/\"")}, LATH_ERR_FORMAT, {"leads outside the model"}},
    {"not first",
     {MODULES("models.Transformer", "models.Normalize")},
     LATH_ERR_UNSUPPORTED,
     {M "module 0 is \"sentence_transformers.models.Normalize\", want one Transformer, first"}},
    {"two encoders",
     {MODULES("models.Normalize", "models.Transformer")},
     LATH_ERR_UNSUPPORTED,
     {M "module 2 is \"sentence_transformers.models.Transformer\""}},
    {"pooling behind",
     {{WRITE, "modules.json",
       "[{\"type\": \"a.Transformer\"}, {\"type\": \"a.Normalize\"},"
       " {\"type\": \"a.Pooling\", \"path\": \"1_Pooling\"}]",
       0}},
     LATH_ERR_UNSUPPORTED,
     {M "a Pooling module behind other modules"}},
    {"encoder elsewhere",
     {MODULES("\"path\": \"\"", "\"path\": \"0_Transformer\"")},
     LATH_ERR_NOT_FOUND,
     {"/0_Transformer/config.json"}},
    {"no pooling config",
     {{DELETE, "1_Pooling/config.json", 0, 0}},
     LATH_ERR_NOT_FOUND,
     {"/1_Pooling/config.json: no such file"}},
    {"pooling width",
     {{REPLACE, "1_Pooling/config.json", ": 30", ": 31"}},
     LATH_ERR_FORMAT,
     {"Pooling is for 31 features, the encoder has 30"}},
    {"pooling flag",
     {{REPLACE, "1_Pooling/config.json", "\"pooling_mode_mean_tokens\": true",
       "\"pooling_mode_mean_tokens\": \"yes\""}},
     LATH_ERR_FORMAT,
     {"/1_Pooling/config.json: line ", "\"pooling_mode_mean_tokens\": want true or false"}},
    {"pooling mode",
     {{WRITE, "1_Pooling/config.json", "{\"pooling_mode\": \"median\"}", 0}},
     LATH_ERR_UNSUPPORTED,
     {"/1_Pooling/config.json: pooling_mode \"median\" is not supported"}},
    {"pooling mode a number",
     {{WRITE, "1_Pooling/config.json", "{\"pooling_mode\": [\"mean\",\n5]}", 0}},
     LATH_ERR_FORMAT,
     {"line 2: \"pooling_mode\": want a string or strings"}},
    {"nine modes",
     {{WRITE, "1_Pooling/config.json",
       "{\"pooling_mode\": [\"mean\",\"mean\",\"mean\",\"mean\",\"mean\",\"mean\",\"mean\",\"mean\",\"mean\"]}", 0}},
     LATH_ERR_UNSUPPORTED,
     {"more than 8 pooling modes"}},
    {"max_seq_length 0",
     {{WRITE, "sentence_bert_config.json", "{\"max_seq_length\": 0}", 0}},
     LATH_ERR_FORMAT,
     {"/sentence_bert_config.json: line 1: \"max_seq_length\" is 0"}},
    {"max_seq_length 2",
     {{WRITE, "sentence_bert_config.json", "{\"max_seq_length\": 2}", 0}},
     LATH_ERR_FORMAT,
     {"a window of 2 tokens leaves no room for text"}},
    {"max_seq_length a string",
     {{WRITE, "sentence_bert_config.json", "{\"max_seq_length\": \"5\"}", 0}},
     LATH_ERR_FORMAT,
     {"\"max_seq_length\": want an integer"}},
    {"an array",
     {{WRITE, "sentence_bert_config.json", "[]", 0}},
     LATH_ERR_FORMAT,
     {"/sentence_bert_config.json: want a JSON object"}},
    {"prompts",
     {{WRITE, "config_sentence_transformers.json", "{\"prompts\": [\"q\"]}", 0}},
     LATH_ERR_FORMAT,
     {"/config_sentence_transformers.json: line 1: \"prompts\": want an object"}},
    {"a prompt",
     {{WRITE, "config_sentence_transformers.json", "{\"prompts\": {\"q\": 5}}", 0}},
     LATH_ERR_FORMAT,
     {"line 1: prompt \"q\": want a string"}},
    {"default prompt",
     {{WRITE, "config_sentence_transformers.json", "{\"prompts\": {\"q\": \"x\"}, \"default_prompt_name\": \"p\"}", 0}},
     LATH_ERR_FORMAT,
     {"default_prompt_name \"p\" is none of its prompts"}},
    {"default prompt without any",
     {{WRITE, "config_sentence_transformers.json", "{\"default_prompt_name\": \"p\"}", 0}},
     LATH_ERR_FORMAT,
     {"default_prompt_name \"p\""}},
    {"truncate_dim",
     {{WRITE, "config_sentence_transformers.json", "{\"truncate_dim\": 0}", 0}},
     LATH_ERR_FORMAT,
     {"\"truncate_dim\" is 0"}},
    {"no tokenizer",
     {{DELETE, "tokenizer.json", 0, 0}, {DELETE, "tokenizer_config.json", 0, 0}},
     LATH_ERR_NOT_FOUND,
     {"tokenizer.json"}},
    {"tokenizer cut", {{WRITE, "tokenizer.json", "{\"version\":", 0}}, LATH_ERR_FORMAT, {"/tokenizer.json: line 1"}},
};

#define DENSE(a, b)                          \
    {                                        \
        REPLACE, "2_Dense/config.json", a, b \
    }
#define D "/2_Dense/config.json: "
static const broken dense_cases[] = {
    {"width in",
     {DENSE("\"in_features\": 30", "\"in_features\": 29")},
     LATH_ERR_FORMAT,
     {"/2_Dense: in_features is 29, but 30 come in"}},
    {"width out",
     {DENSE("\"out_features\": 19", "\"out_features\": 18")},
     LATH_ERR_FORMAT,
     {"/2_Dense/model.safetensors: tensor \"linear.weight\": shape [19,30], want [18,30]"}},
    {"no in_features", {DENSE("\"in_features\"", "\"x\"")}, LATH_ERR_FORMAT, {D "no \"in_features\" in it"}},
    {"no out_features", {DENSE("\"out_features\"", "\"x\"")}, LATH_ERR_FORMAT, {D "no \"out_features\" in it"}},
    {"out_features 0",
     {DENSE("\"out_features\": 19", "\"out_features\": 0")},
     LATH_ERR_FORMAT,
     {"\"out_features\" is 0"}},
    {"activation",
     {DENSE("activation.Tanh", "activation.Mish")},
     LATH_ERR_UNSUPPORTED,
     {D "activation_function \"torch.nn.modules.activation.Mish\" is not supported"}},
    {"residual",
     {DENSE("\"bias\": true", "\"bias\": true, \"use_residual\": true")},
     LATH_ERR_UNSUPPORTED,
     {D "use_residual"}},
    {"other input",
     {DENSE("\"bias\": true", "\"bias\": true, \"module_input_name\": \"token_embeddings\"")},
     LATH_ERR_UNSUPPORTED,
     {D "\"module_input_name\""}},
    {"bias no bool",
     {DENSE("\"bias\": true", "\"bias\": 1")},
     LATH_ERR_FORMAT,
     {D "line ", "\"bias\": want true or false"}},
    {"no config", {{DELETE, "2_Dense/config.json", 0, 0}}, LATH_ERR_NOT_FOUND, {D "no such file"}},
    {"no weights",
     {{DELETE, "2_Dense/model.safetensors", 0, 0}},
     LATH_ERR_NOT_FOUND,
     {"/2_Dense: no model.safetensors in it"}},
    {"pickle",
     {{RENAME, "2_Dense/model.safetensors", "2_Dense/pytorch_model.bin", 0}},
     LATH_ERR_UNSUPPORTED,
     {"/2_Dense/pytorch_model.bin: "}},
    {"pooling doubles the width",
     {{WRITE, "1_Pooling/config.json", "{\"pooling_mode\": [\"mean\", \"max\"]}", 0}},
     LATH_ERR_FORMAT,
     {"in_features is 30, but 60 come in"}},
};

static void run_case(const char *from, const broken *b)
{
    char good[TMP_PATH], dir[TMP_PATH];
    lath_model *m = (lath_model *)&good; /* stays */
    lath_runtime *rt = make_runtime();
    tmp_join(good, test_data_dir(), from);
    tmp_copy(dir, good);
    for (int i = 0; i < MAX_CHANGES; i++) apply(dir, &b->changes[i]);
    for (int load = LATH_LOAD_MAP; load <= LATH_LOAD_COPY; load++) {
        lath_model_options o = LATH_MODEL_OPTIONS_INIT;
        o.load = (lath_load)load;
        memset(&err, 0x55, sizeof(err));
        lath_status st = lath_model_open(rt, dir, &o, &m, &err);
        if (st != b->status)
            fail_msg("%s: status %d (%s), want %d", b->what, (int)st, st ? err.msg : "", (int)b->status);
        assert_int_equal(err.status, st);
        assert_int_equal(err.item, -1);
        assert_ptr_equal(m, &good);
        for (int i = 0; i < MAX_PARTS && b->parts[i]; i++) {
            if (!strstr(err.msg, b->parts[i])) fail_msg("%s: \"%s\", want \"%s\" in it", b->what, err.msg, b->parts[i]);
        }
        assert_int_equal(lath_model_open(rt, dir, &o, &m, NULL), b->status); /* no record: the same */
    }
    lath_runtime_destroy(rt);
    tmp_remove(dir);
    if (atomic_load(&blocks_out) != 0) fail_msg("%s: %ld blocks are not released", b->what, atomic_load(&blocks_out));
}

#define RUN_ALL(from, table) \
    for (size_t i = 0; i < sizeof(table) / sizeof((table)[0]); i++) run_case(from, &(table)[i])

static const char plain[] = "golden/bert/mean_norm_gelu", dense[] = "golden/bert/dense_tanh";

static void test_config(void **state)
{
    (void)state;
    RUN_ALL(plain, config_cases);
}

static void test_weights(void **state)
{
    (void)state;
    RUN_ALL(plain, weight_cases);
}

static void test_modules(void **state)
{
    (void)state;
    RUN_ALL(plain, module_cases);
}

static void test_dense(void **state)
{
    (void)state;
    RUN_ALL(dense, dense_cases);
}

/* The message has the count and the first names, the log has every one. */
static void test_missing_are_logged(void **state)
{
    char good[TMP_PATH], dir[TMP_PATH];
    lath_model *m = NULL;
    lath_runtime *rt = make_runtime();
    (void)state;
    tmp_join(good, test_data_dir(), plain);
    tmp_copy(dir, good);
    tmp_replace(dir, "config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 4");
    tmp_replace(dir, "config.json", "\"vocab_size\": 200", "\"vocab_size\": 300");
    log_lines = 0;
    log_text[0] = 0;
    assert_int_equal(lath_model_open(rt, dir, NULL, &m, &err), LATH_ERR_FORMAT);
    assert_non_null(strstr(err.msg, "32 tensors missing, 1 wrong: tensor \"embeddings.word_embeddings.weight\": shape "
                                    "[200,30], want [300,30]; no tensor"));
    assert_int_equal(log_lines, 33);
    static const char *const names[] = {
        "query.weight", "query.bias", "key.weight", "value.bias", "output.LayerNorm.bias", "intermediate.dense.weight"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) assert_non_null(strstr(log_text, names[i]));
    assert_non_null(strstr(log_text, "no tensor \"encoder.layer.3.output.dense.bias\"\n"));
    lath_runtime_destroy(rt);
    tmp_remove(dir);
}

/* A file that is cut anywhere is refused and never read behind its end. */
static void test_cut_weights(void **state)
{
    char good[TMP_PATH], dir[TMP_PATH];
    size_t size;
    lath_runtime *rt = make_runtime();
    (void)state;
    tmp_join(good, test_data_dir(), plain);
    tmp_copy(dir, good);
    char *bytes = tmp_read(dir, "model.safetensors", &size);
    const size_t cuts[] = {0, 1, 7, 8, 9, 100, 3799, 3800, 3801, 40000, size - 4096, size - 1};
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        lath_model *m = NULL;
        tmp_write_bytes(dir, "model.safetensors", bytes, cuts[i]);
        assert_int_equal(lath_model_open(rt, dir, NULL, &m, &err), LATH_ERR_FORMAT);
        assert_non_null(strstr(err.msg, "/model.safetensors: "));
        assert_null(m);
    }
    free(bytes);
    lath_runtime_destroy(rt);
    tmp_remove(dir);
    assert_int_equal(atomic_load(&blocks_out), 0);
}

/* ------------------------------------------------------------------------------------------------- what is no fault */

static const broken fine_cases[] = {
    {"nothing changed", {{END, 0, 0, 0}}, LATH_OK, {0}},
    {"fewer layers", {CONFIG("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1")}, LATH_OK, {0}},
    {"plain directory", {{DELETE, "modules.json", 0, 0}}, LATH_OK, {0}},
    {"defaults",
     {CONFIG("\"layer_norm_eps\": 1e-12,", ""), CONFIG("\"position_embedding_type\": \"absolute\",", ""),
      CONFIG("\"hidden_act\": \"gelu\",", "")},
     LATH_OK,
     {0}},
    {"whole numbers as reals", {CONFIG("\"hidden_size\": 30", "\"hidden_size\": 3e1")}, LATH_OK, {0}},
    {"byte order mark",
     {{WRITE, "1_Pooling/config.json", "\xEF\xBB\xBF{\"pooling_mode_cls_token\": true}", 0}},
     LATH_OK,
     {0}},
    {"no quantisation",
     {CONFIG("\"vocab_size\": 200", "\"vocab_size\": 200, \"quantization_config\": null")},
     LATH_OK,
     {0}},
    {"unknown fields",
     {CONFIG("\"vocab_size\": 200", "\"vocab_size\": 200, \"some_field\": {\"a\": [1]}")},
     LATH_OK,
     {0}},
    {"truncate_dim over the width",
     {{WRITE, "config_sentence_transformers.json", "{\"truncate_dim\": 5000}", 0}},
     LATH_OK,
     {0}},
    {"no prompts",
     {{WRITE, "config_sentence_transformers.json", "{\"prompts\": {}, \"default_prompt_name\": null}", 0}},
     LATH_OK,
     {0}},
    {"dropout", {MODULES("models.Normalize", "models.Dropout")}, LATH_OK, {0}},
    {"null", {{WRITE, "sentence_bert_config.json", "{\"max_seq_length\": null}", 0}}, LATH_OK, {0}},
};

static void test_fine(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(fine_cases) / sizeof(fine_cases[0]); i++) {
        char good[TMP_PATH], dir[TMP_PATH];
        const lath_text text = {"water", 5};
        float v[30];
        lath_model *m = NULL;
        lath_embedder *e = NULL;
        lath_runtime *rt = make_runtime();
        tmp_join(good, test_data_dir(), plain);
        tmp_copy(dir, good);
        for (int k = 0; k < MAX_CHANGES; k++) apply(dir, &fine_cases[i].changes[k]);
        lath_status st = lath_model_open(rt, dir, NULL, &m, &err);
        if (st != LATH_OK) fail_msg("%s: %s", fine_cases[i].what, err.msg);
        assert_ok(lath_embedder_create(m, NULL, &e, &err), err);
        assert_ok(lath_embed(e, &text, 1, v, NULL, &err), err);
        for (int k = 0; k < 30; k++) assert_true(isfinite(v[k]));
        lath_embedder_destroy(e);
        lath_model_close(m);
        lath_runtime_destroy(rt);
        tmp_remove(dir);
        assert_int_equal(atomic_load(&blocks_out), 0);
    }
}

/* --------------------------------------------------------------------------------------------------- weights of NaN */

static lath_status embed_one(lath_model *m, const char *text)
{
    const lath_text t = {text, strlen(text)};
    lath_embedder *e = NULL;
    float v[30];
    assert_ok(lath_embedder_create(m, NULL, &e, &err), err);
    lath_status st = lath_embed(e, &t, 1, v, NULL, &err);
    lath_embedder_destroy(e);
    return st;
}

/* "water" is token 179 and "river" 181 of the test vocabulary. */
static void test_not_finite(void **state)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    static const struct {
        const char *tensor;
        size_t element;
        lath_status open, water, river;
        const char *part;
    } rows[] = {
        {"embeddings.LayerNorm.weight", 7, LATH_ERR_FORMAT, 0, 0,
         "tensor \"embeddings.LayerNorm.weight\": element 7 is not finite"},
        {"encoder.layer.1.output.dense.bias", 29, LATH_ERR_FORMAT, 0, 0,
         "tensor \"encoder.layer.1.output.dense.bias\": element 29 is not finite"},
        {"encoder.layer.1.attention.self.query.weight", 3 * 30 + 4, 0, LATH_ERR_FORMAT, LATH_ERR_FORMAT,
         "tensor \"encoder.layer.1.attention.self.query.weight\": element [3,4] is not finite"},
        {"encoder.layer.0.output.dense.weight", 29 * 37 + 36, 0, LATH_ERR_FORMAT, LATH_ERR_FORMAT,
         "tensor \"encoder.layer.0.output.dense.weight\": element [29,36] is not finite"},
        {"embeddings.word_embeddings.weight", 179 * 30 + 5, 0, LATH_ERR_FORMAT, LATH_OK,
         "tensor \"embeddings.word_embeddings.weight\": element [179,5] is not finite"},
        {"embeddings.position_embeddings.weight", 2 * 30, 0, LATH_ERR_FORMAT, LATH_ERR_FORMAT,
         "tensor \"embeddings.position_embeddings.weight\": element [2,0] is not finite"},
        {"embeddings.position_embeddings.weight", 39 * 30, 0, LATH_OK, LATH_OK, NULL},
        {"embeddings.token_type_embeddings.weight", 30, 0, LATH_OK, LATH_OK, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char good[TMP_PATH], dir[TMP_PATH];
        lath_model *m = NULL;
        lath_runtime *rt = make_runtime();
        tmp_join(good, test_data_dir(), plain);
        tmp_copy(dir, good);
        tmp_patch_tensor(dir, rows[i].tensor, rows[i].element * 4, &bad[i % 3], 4);
        lath_status st = lath_model_open(rt, dir, NULL, &m, &err);
        if (st != rows[i].open) fail_msg("%s: open: %d", rows[i].tensor, (int)st);
        if (st == LATH_OK) {
            for (int again = 0; again < 2; again++) {
                assert_int_equal(embed_one(m, "river"), rows[i].river);
                assert_int_equal(embed_one(m, "water"), rows[i].water);
            }
        }
        if (rows[i].part && !strstr(err.msg, rows[i].part)) fail_msg("%s: \"%s\"", rows[i].tensor, err.msg);
        if (rows[i].part) assert_non_null(strstr(err.msg, "/model.safetensors: "));
        lath_model_close(m);
        lath_runtime_destroy(rt);
        tmp_remove(dir);
    }
}

/* Finite weights whose results are not: the text is named. */
static void test_overflow(void **state)
{
    char good[TMP_PATH], dir[TMP_PATH];
    const float huge = 3e38f;
    lath_model *m = NULL;
    lath_runtime *rt = make_runtime();
    (void)state;
    tmp_join(good, test_data_dir(), plain);
    tmp_copy(dir, good);
    tmp_patch_tensor(dir, "encoder.layer.1.output.LayerNorm.weight", 0, &huge, 4);
    tmp_patch_tensor(dir, "encoder.layer.1.output.LayerNorm.bias", 0, &huge, 4);
    assert_ok(lath_model_open(rt, dir, NULL, &m, &err), err);
    lath_status st = embed_one(m, "river water");
    assert_int_equal(st, LATH_ERR_FORMAT);
    assert_int_equal(err.item, 0);
    assert_non_null(strstr(err.msg, "not finite"));
    lath_model_close(m);
    lath_runtime_destroy(rt);
    tmp_remove(dir);
}

/* ------------------------------------------------------------------------------------------------- paths, arguments */

static void test_paths(void **state)
{
    char dir[TMP_PATH], path[TMP_PATH];
    lath_model *m = NULL;
    lath_runtime *rt = make_runtime();
    (void)state;
    tmp_make(dir);
    tmp_write(dir, "a.gguf", "GGUF");
    tmp_write(dir, "a.bin", "x");
    tmp_join(path, dir, "missing");
    assert_int_equal(lath_model_open(rt, path, NULL, &m, &err), LATH_ERR_NOT_FOUND);
    assert_non_null(strstr(err.msg, "/missing: no such file or directory"));
    assert_int_equal(lath_model_open(rt, "", NULL, &m, &err), LATH_ERR_NOT_FOUND);
    tmp_join(path, dir, "a.bin");
    assert_int_equal(lath_model_open(rt, path, NULL, &m, &err), LATH_ERR_NOT_FOUND);
    assert_non_null(strstr(err.msg, "/a.bin: no model directory"));
    tmp_join(path, dir, "a.gguf");
    assert_int_equal(lath_model_open(rt, path, NULL, &m, &err), LATH_ERR_FORMAT);
    assert_non_null(strstr(err.msg, "/a.gguf: "));
    assert_int_equal(lath_model_open(rt, dir, NULL, &m, &err), LATH_ERR_NOT_FOUND); /* an empty directory */
    assert_non_null(strstr(err.msg, "/config.json"));
    assert_null(m);
    lath_runtime_destroy(rt);
    tmp_remove(dir);
}

static void test_arguments(void **state)
{
    char path[TMP_PATH];
    lath_model *m = NULL;
    lath_runtime *rt = make_runtime();
    (void)state;
    tmp_join(path, test_data_dir(), plain);
    assert_int_equal(lath_model_open(NULL, path, NULL, &m, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_model_open(rt, NULL, NULL, &m, &err), LATH_ERR_USAGE);
    assert_int_equal(lath_model_open(rt, path, NULL, NULL, &err), LATH_ERR_USAGE);
    assert_string_equal(err.msg, "lath_model_open: an argument is missing");
    lath_model_options o = LATH_MODEL_OPTIONS_INIT;
    o.struct_size--;
    assert_int_equal(lath_model_open(rt, path, &o, &m, &err), LATH_ERR_USAGE);
    assert_non_null(strstr(err.msg, "version"));
    o = (lath_model_options)LATH_MODEL_OPTIONS_INIT;
    o.precision = LATH_PRECISION_BF16;
    assert_int_equal(lath_model_open(rt, path, &o, &m, &err), LATH_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "precision"));
    o.precision = LATH_PRECISION_INT8;
    assert_int_equal(lath_model_open(rt, path, &o, &m, &err), LATH_ERR_UNSUPPORTED);
    o.precision = (lath_precision)99;
    assert_int_equal(lath_model_open(rt, path, &o, &m, &err), LATH_ERR_USAGE);
    o = (lath_model_options)LATH_MODEL_OPTIONS_INIT;
    o.load = (lath_load)7;
    assert_int_equal(lath_model_open(rt, path, &o, &m, &err), LATH_ERR_USAGE);
    assert_non_null(strstr(err.msg, "load: no such value: 7"));
    assert_null(m);
    o = (lath_model_options)LATH_MODEL_OPTIONS_INIT;
    o.precision = LATH_PRECISION_EXACT;
    assert_ok(lath_model_open(rt, path, &o, &m, &err), err);
    lath_model_close(m);
    lath_model_close(NULL);
    lath_runtime_destroy(rt);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_modules),
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_missing_are_logged),
        cmocka_unit_test(test_cut_weights),
        cmocka_unit_test(test_fine),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_arguments),
    };
    return TEST_RUN(tests);
}
