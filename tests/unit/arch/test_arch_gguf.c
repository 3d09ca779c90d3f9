/* SPDX-License-Identifier: Apache-2.0
 *
 * test_arch_gguf.c: what metadata of GGUF files becomes: for each architecture some keys beside the usual ones, and the fields of the configuration
 * that come of them, or why they are refused. (What models make of it is compared with the reference by test_decoders --gguf.)
 */
#include "arch/arch_gguf.h"

#include <math.h>

#include "support/gguf_file.h"
#include "support/test.h"
#include "support/tmpdir.h"

enum { MAX_KEYS = 6, MAX_FIELDS = 6 };

static char dir[TMP_PATH];

/* A key behind "ARCHITECTURE.". */
typedef struct extra {
    const char *name;
    gguf_kind kind;
    double number;
    const char *text;
    int n_list; /* of bools, GGUF_ARRAY: all true but the last */
} extra;

typedef struct field {
    const char *name; /* with dots: inside an object */
    double number;
    const char *text; /* a text, a bool ("true"), a list with blanks, or "none" */
} field;

typedef struct row {
    const char *arch;
    int layers;
    extra keys[MAX_KEYS];
    field fields[MAX_FIELDS];
    const char *why; /* it is refused */
} row;

#define I(key, n)                 \
    {                             \
        key, GGUF_U32, n, NULL, 0 \
    }
#define R(key, n)                 \
    {                             \
        key, GGUF_F32, n, NULL, 0 \
    }
#define T(key, s)                 \
    {                             \
        key, GGUF_STRING, 0, s, 0 \
    }
#define BOOL(key, n)               \
    {                              \
        key, GGUF_BOOL, n, NULL, 0 \
    }
#define BOOLS(key, n)               \
    {                               \
        key, GGUF_ARRAY, 0, NULL, n \
    }
/* A key that the usual ones have and this file has not. */
#define NONE(key)                        \
    {                                    \
        key, GGUF_KIND_COUNT, 0, NULL, 0 \
    }
#define S "sliding_attention "
#define F "full_attention "
#define L "linear_attention "

static const row rows[] = {
    {"llama",
     2,
     {{0}},
     {{"model_type", 0, "llama"},
      {"head_dim", 16, NULL},
      {"rope_theta", 10000, NULL},
      {"rope_scaling", 0, "none"},
      {"vocab_size", 3, NULL},
      {"tie_word_embeddings", 0, "true"}},
     NULL},
    {"llama",
     2,
     {I("attention.key_length", 24), I("attention.value_length", 24), I("rope.dimension_count", 24),
      R("rope.scale_linear", 4)},
     {{"head_dim", 24, NULL},
      {"rope_scaling.rope_type", 0, "linear"},
      {"rope_scaling.factor", 4, NULL},
      {"partial_rotary_factor", 0, "none"}},
     NULL},
    {"llama", 2, {R("rope.scaling.factor", 4), T("rope.scaling.type", "none")}, {{"rope_scaling", 0, "none"}}, NULL},
    {"llama", 2, {R("rope.scaling.factor", 1)}, {{"rope_scaling", 0, "none"}}, NULL},
    {"llama", 2, {I("attention.sliding_window", 0)}, {{"model_type", 0, "llama"}, {"sliding_window", 0, "none"}}, NULL},
    {"llama", 2, {I("attention.sliding_window", 7)}, {{"model_type", 0, "mistral"}, {"sliding_window", 7, NULL}}, NULL},
    {"qwen2",
     2,
     {BOOL("attention.causal", 0), R("rope.freq_base", 1e6)},
     {{"is_causal", 0, "false"}, {"rope_theta", 1e6, NULL}},
     NULL},
    {"qwen3",
     2,
     {T("rope.scaling.type", "yarn"), R("rope.scaling.factor", 4), I("rope.scaling.original_context_length", 32),
      R("rope.scaling.yarn_beta_fast", 16), R("rope.scaling.yarn_attn_factor", 1.5)},
     {{"rope_scaling.rope_type", 0, "yarn"},
      {"rope_scaling.factor", 4, NULL},
      {"rope_scaling.original_max_position_embeddings", 32, NULL},
      {"rope_scaling.beta_fast", 16, NULL},
      {"rope_scaling.attention_factor", 1.5, NULL},
      {"rope_scaling.beta_slow", 0, "none"}},
     NULL},
    {"qwen3",
     2,
     {T("rope.scaling.type", "yarn"), R("rope.scaling.yarn_ext_factor", 0.5)},
     {{0}},
     "qwen3.rope.scaling.yarn_ext_factor\": this value"},
    {"qwen3", 2, {I("attention.sliding_window", 7)}, {{0}}, "key \"qwen3.attention.sliding_window\" is not supported"},
    {"qwen3moe",
     2,
     {I("expert_count", 8), I("expert_used_count", 2), I("expert_feed_forward_length", 5)},
     {{"num_experts", 8, NULL},
      {"num_experts_per_tok", 2, NULL},
      {"moe_intermediate_size", 5, NULL},
      {"norm_topk_prob", 0, "true"},
      {"model_type", 0, "qwen3_moe"}},
     NULL},
    {"qwen3moe",
     2,
     {I("expert_count", 8), I("expert_used_count", 2)},
     {{0}},
     "key \"qwen3moe.expert_feed_forward_length\": is not there"},
    {"qwen3moe",
     2,
     {I("expert_count", 8), I("expert_used_count", 2), I("expert_feed_forward_length", 5),
      R("expert_weights_scale", 2)},
     {{0}},
     "key \"qwen3moe.expert_weights_scale\" is not supported"},
    {"gemma2",
     3,
     {{0}},
     {{"sliding_window", 4096, NULL},
      {"attn_logit_softcapping", 50, NULL},
      {"final_logit_softcapping", 30, NULL},
      {"query_pre_attn_scalar", 16, NULL},
      {"layer_types", 0, S F S}},
     NULL},
    {"gemma2",
     46,
     {I("attention.key_length", 24), I("attention.value_length", 24), R("attn_logit_softcapping", 20),
      I("attention.sliding_window", 9)},
     {{"query_pre_attn_scalar", 16, NULL}, {"attn_logit_softcapping", 20, NULL}, {"sliding_window", 9, NULL}},
     NULL},
    {"gemma3",
     7,
     {I("attention.sliding_window", 9)},
     {{"sliding_window", 9, NULL},
      {"rope_local_base_freq", 10000, NULL},
      {"layer_types", 0, S S S S S F S},
      {"final_logit_softcapping", 0, "none"},
      {"hidden_act", 0, "gelu_pytorch_tanh"}},
     NULL},
    {"gemma3",
     3,
     {I("attention.sliding_window", 9), I("attention.sliding_window_pattern", 2), R("rope.freq_base_swa", 500)},
     {{"layer_types", 0, S F S}, {"rope_local_base_freq", 500, NULL}},
     NULL},
    {"gemma3",
     3,
     {I("attention.sliding_window", 9), BOOLS("attention.sliding_window_pattern", 3)},
     {{"layer_types", 0, S S F}},
     NULL},
    {"gemma3",
     3,
     {I("attention.sliding_window", 9), BOOLS("attention.sliding_window_pattern", 2)},
     {{0}},
     "sliding_window_pattern\": want a bool for each layer"},
    {"gemma3",
     3,
     {I("attention.sliding_window", 9), T("attention.sliding_window_pattern", "x")},
     {{0}},
     "sliding_window_pattern\": want a whole number"},
    {"gemma3", 2, {{0}}, {{"layer_types", 0, F F}, {"sliding_window", 0, "none"}}, NULL},
    {"gemma3",
     62,
     {I("attention.key_length", 24), I("attention.value_length", 24)},
     {{"query_pre_attn_scalar", 16, NULL}, {"head_dim", 24, NULL}},
     NULL},
    {"gemma3",
     61,
     {I("attention.key_length", 24), I("attention.value_length", 24)},
     {{"query_pre_attn_scalar", 24, NULL}},
     NULL},
    {"phi3",
     2,
     {I("rope.dimension_count", 12), I("attention.sliding_window", 0)},
     {{"partial_rotary_factor", 12.5 / 16, NULL}, {"sliding_window", 0, "none"}},
     NULL},
    {"phi3", 2, {I("attention.sliding_window", 5)}, {{"sliding_window", 5, NULL}}, NULL},
    {"granite",
     2,
     {R("logit_scale", 3), R("residual_scale", 0.5)},
     {{"logits_scaling", 3, NULL},
      {"residual_multiplier", 0.5, NULL},
      {"attention_multiplier", 0.25, NULL},
      {"embedding_multiplier", 0, "none"}},
     NULL},
    {"granite", 2, {R("logit_scale", 3), R("attention.scale", 2)}, {{"attention_multiplier", 2, NULL}}, NULL},
    {"granite",
     2,
     {R("logit_scale", 3), BOOL("rope.scaling.finetuned", 0)},
     {{0}},
     "\"granite.rope.scaling.finetuned\": this value is not supported"},
    {"granite", 2, {{0}}, {{0}}, "key \"granite.logit_scale\": is not there"},
    {"smollm3", 5, {{0}}, {{"no_rope_layers", 0, "1 1 1 0 1 "}}, NULL},
    {"bert",
     2,
     {R("attention.layer_norm_epsilon", 0.5), BOOL("attention.causal", 0)},
     {{"layer_norm_eps", 0.5, NULL}, {"hidden_act", 0, "gelu"}, {"type_vocab_size", 1, NULL}},
     NULL},
    {"bert",
     2,
     {R("attention.layer_norm_epsilon", 0.5), BOOL("attention.causal", 1)},
     {{0}},
     "key \"bert.attention.causal\": this value is not supported"},
    {"bert", 2, {{0}}, {{0}}, "key \"bert.attention.layer_norm_epsilon\": is not there"},
    {"nomic-bert",
     2,
     {R("attention.layer_norm_epsilon", 0.5), R("rope.freq_base", 1000)},
     {{"model_type", 0, "nomic_bert"}, {"rope_theta", 1000, NULL}, {"type_vocab_size", 0, NULL}},
     NULL},
    {"qwen35",
     5,
     {{0}},
     {{"model_type", 0, "qwen3_5_text"},
      {"layer_types", 0, L L L F L},
      {"linear_num_value_heads", 6, NULL},
      {"linear_value_head_dim", 12, NULL},
      {"num_hidden_layers", 5, NULL},
      {"partial_rotary_factor", 1, NULL}},
     NULL},
    {"qwen35",
     3,
     {I("nextn_predict_layers", 1), BOOLS("attention.recurrent_layers", 3), I("full_attention_interval", 1),
      I("rope.dimension_count", 4)},
     {{"num_hidden_layers", 2, NULL},
      {"layer_types", 0, L L},
      {"linear_key_head_dim", 8, NULL},
      {"linear_num_key_heads", 2, NULL},
      {"linear_conv_kernel_dim", 4, NULL},
      {"partial_rotary_factor", 4.5 / 16, NULL}},
     NULL},
    {"qwen35", 3, {I("full_attention_interval", 2)}, {{"layer_types", 0, L F L}}, NULL},
    {"qwen35", 3, {I("full_attention_interval", 0)}, {{0}}, "key \"qwen35.full_attention_interval\": want 1 or more"},
    {"qwen35",
     2,
     {BOOLS("attention.recurrent_layers", 3)},
     {{0}},
     "key \"qwen35.attention.recurrent_layers\": want a bool for each block"},
    {"qwen35", 2, {I("nextn_predict_layers", 2)}, {{0}}, "key \"qwen35.nextn_predict_layers\": as many as"},
    {"qwen35", 2, {I("ssm.inner_size", 50)}, {{0}}, "key \"qwen35.ssm.inner_size\": want a multiple"},
    {"qwen35", 2, {I("ssm.inner_size", 0)}, {{0}}, "key \"qwen35.ssm.inner_size\": want a multiple"},
    {"qwen35", 2, {I("ssm.time_step_rank", 0)}, {{0}}, "key \"qwen35.ssm.time_step_rank\": want 1 or more"},
    {"qwen35", 2, {T("rope.dimension_sections", "x")}, {{0}}, "\"qwen35.rope.dimension_sections\": want whole"},
    {"qwen35", 2, {BOOLS("rope.dimension_sections", 5)}, {{0}}, "\"qwen35.rope.dimension_sections\": want whole"},
    {"qwen35", 2, {NONE("ssm.conv_kernel")}, {{0}}, "key \"qwen35.ssm.conv_kernel\": is not there"},
    {"qwen35", 2, {NONE("ssm.state_size")}, {{0}}, "key \"qwen35.ssm.state_size\": is not there"},
    {"qwen35", 2, {NONE("ssm.group_count")}, {{0}}, "key \"qwen35.ssm.group_count\": is not there"},
    {"qwen35", 2, {NONE("ssm.time_step_rank")}, {{0}}, "key \"qwen35.ssm.time_step_rank\": is not there"},
    {"qwen35", 2, {NONE("ssm.inner_size")}, {{0}}, "key \"qwen35.ssm.inner_size\": is not there"},
    {"qwen35", 2, {NONE("block_count")}, {{0}}, "key \"qwen35.block_count\": is not there"},
    {"qwen35", 2, {I("expert_count", 4)}, {{0}}, "key \"qwen35.expert_count\" is not supported"},
    {"qwen35moe",
     2,
     {NONE("feed_forward_length"), I("expert_count", 8), I("expert_used_count", 2), I("expert_feed_forward_length", 5),
      I("expert_shared_feed_forward_length", 7)},
     {{"model_type", 0, "qwen3_5_moe_text"},
      {"num_experts", 8, NULL},
      {"num_experts_per_tok", 2, NULL},
      {"moe_intermediate_size", 5, NULL},
      {"shared_expert_intermediate_size", 7, NULL},
      {"intermediate_size", 0, "none"}},
     NULL},
    {"qwen35moe",
     2,
     {I("expert_count", 8), I("expert_used_count", 2), I("expert_feed_forward_length", 5)},
     {{0}},
     "key \"qwen35moe.expert_shared_feed_forward_length\": is not there"},
    {"qwen3next",
     4,
     {I("expert_count", 8), I("expert_used_count", 2), I("expert_feed_forward_length", 5),
      I("expert_shared_feed_forward_length", 7)},
     {{"model_type", 0, "qwen3_next"},
      {"norm_topk_prob", 0, "true"},
      {"decoder_sparse_step", 1, NULL},
      {"intermediate_size", 48, NULL},
      {"layer_types", 0, L L L F}},
     NULL},
};

static bool names_key(const row *r, const char *key)
{
    for (int i = 0; i < MAX_KEYS && r->keys[i].name; i++)
        if (strcmp(r->keys[i].name, key) == 0) return true;
    return false;
}

static void put_extra(gguf_file_maker *f, const char *arch, const extra *e)
{
    char key[160];
    snprintf(key, sizeof(key), "%s.%s", arch, e->name);
    if (e->kind == GGUF_KIND_COUNT) {
        return;
    } else if (e->kind == GGUF_STRING) {
        gguf_make_text(f, key, e->text);
    } else if (e->kind == GGUF_F32) {
        gguf_make_f32(f, key, (float)e->number);
    } else if (e->kind == GGUF_ARRAY) {
        int64_t list[8];
        for (int i = 0; i < e->n_list; i++) list[i] = i + 1 < e->n_list;
        gguf_make_ints(f, key, GGUF_BOOL, list, (size_t)e->n_list);
    } else {
        gguf_make_int(f, key, e->kind, (int64_t)e->number);
    }
}

static void put_file(const row *r)
{
    static const char *const tokens[3] = {"a", "b", "c"};
    const bool encoder = strstr(r->arch, "bert") != NULL;
    const bool hybrid = strstr(r->arch, "qwen35") || strstr(r->arch, "next");
    gguf_file_maker f;
    gguf_make(&f);
    gguf_make_text(&f, "general.architecture", r->arch);
    gguf_make_texts(&f, "tokenizer.ggml.tokens", tokens, 3);
    const extra usual[] = {I("context_length", 64),      I("embedding_length", 32),
                           I("block_count", r->layers),  I("feed_forward_length", 48),
                           I("attention.head_count", 2), R("attention.layer_norm_rms_epsilon", 0.25)};
    const extra delta[] = {I("ssm.conv_kernel", 4), I("ssm.state_size", 8), I("ssm.group_count", 2),
                           I("ssm.time_step_rank", 6), I("ssm.inner_size", 72)};
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]) - encoder; i++)
        if (!names_key(r, usual[i].name)) put_extra(&f, r->arch, &usual[i]);
    for (size_t i = 0; hybrid && i < sizeof(delta) / sizeof(delta[0]); i++)
        if (!names_key(r, delta[i].name)) put_extra(&f, r->arch, &delta[i]);
    for (int i = 0; i < MAX_KEYS && r->keys[i].name; i++) put_extra(&f, r->arch, &r->keys[i]);
    gguf_make_write(&f, dir, "m.gguf");
}

static const json_value *find(const json_value *config, const char *name)
{
    char outer[64];
    const char *dot = strchr(name, '.');
    if (!dot) return json_get(config, name);
    snprintf(outer, sizeof(outer), "%.*s", (int)(dot - name), name);
    return json_get(json_get(config, outer), dot + 1);
}

static void check_field(const row *r, const json_value *config, const field *f)
{
    char have[512] = "";
    const json_value *v = find(config, f->name);
    if (!f->text) {
        const double x = !v                     ? (double)NAN
                         : v->kind == JSON_INT  ? (double)v->u.integer
                         : v->kind == JSON_REAL ? v->u.real
                                                : (double)NAN;
        if (x != f->number) fail_msg("%s, %d layers: %s is %g, want %g", r->arch, r->layers, f->name, x, f->number);
        return;
    }
    if (!v)
        snprintf(have, sizeof(have), "none");
    else if (v->kind == JSON_STRING)
        snprintf(have, sizeof(have), "%s", v->u.string.data);
    else if (v->kind == JSON_BOOL)
        snprintf(have, sizeof(have), "%s", v->u.boolean ? "true" : "false");
    for (const json_value *e = v && v->kind == JSON_ARRAY ? v->u.items.first : NULL; e; e = e->next) {
        if (e->kind == JSON_STRING)
            snprintf(have + strlen(have), sizeof(have) - strlen(have), "%s ", e->u.string.data);
        else
            snprintf(have + strlen(have), sizeof(have) - strlen(have), "%lld ", (long long)e->u.integer);
    }
    if (strcmp(have, f->text) != 0)
        fail_msg("%s, %d layers: %s is \"%s\", want \"%s\"", r->arch, r->layers, f->name, have, f->text);
}

static void test_rows(void **state)
{
    (void)state;
    char path[TMP_PATH];
    tmp_make(dir);
    tmp_join(path, dir, "m.gguf");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        lath_error err = {0};
        weights *w = NULL;
        arena mem;
        arch_gguf g;
        arena_init(&mem, alloc_default());
        put_file(&rows[i]);
        assert_ok(weights_open(alloc_default(), path, FILE_MAP, &w, &err), err);
        const lath_status st = arch_gguf_read(w, &mem, &g, &err);
        if (rows[i].why) {
            if (st == LATH_OK || !strstr(err.msg, rows[i].why) || !strstr(err.msg, "m.gguf"))
                fail_msg("%s: \"%s\", want \"%s\" in it", rows[i].arch, err.msg, rows[i].why);
        } else {
            assert_ok(st, err);
            for (int k = 0; k < MAX_FIELDS && rows[i].fields[k].name; k++)
                check_field(&rows[i], g.config, &rows[i].fields[k]);
            assert_non_null(arch_find(g.model_type));
        }
        weights_close(w);
        arena_deinit(&mem);
    }
    tmp_remove(dir);
}

/* The rules by which rows of weights are stored, by architecture. */
static void test_stored(void **state)
{
    (void)state;
    static const struct {
        row r;
        uint32_t stored;
    } kinds[] = {
        {{"llama", 1, {{0}}, {{0}}, NULL}, ARCH_STORED_ROPE_PAIRS},
        {{"granite", 1, {R("logit_scale", 1)}, {{0}}, NULL}, ARCH_STORED_ROPE_PAIRS},
        {{"smollm3", 1, {{0}}, {{0}}, NULL}, ARCH_STORED_ROPE_PAIRS},
        {{"qwen3", 1, {{0}}, {{0}}, NULL}, 0},
        {{"phi3", 1, {{0}}, {{0}}, NULL}, 0},
        {{"gemma3", 1, {{0}}, {{0}}, NULL}, ARCH_STORED_WHOLE_NORMS},
        {{"gemma2", 1, {{0}}, {{0}}, NULL}, ARCH_STORED_WHOLE_NORMS},
        {{"qwen35", 1, {{0}}, {{0}}, NULL}, ARCH_STORED_WHOLE_NORMS | ARCH_STORED_DECAY | ARCH_STORED_TILED_HEADS}};
    char path[TMP_PATH];
    tmp_make(dir);
    tmp_join(path, dir, "m.gguf");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        lath_error err = {0};
        weights *w = NULL;
        arena mem;
        arch_gguf g;
        arena_init(&mem, alloc_default());
        put_file(&kinds[i].r);
        assert_ok(weights_open(alloc_default(), path, FILE_COPY, &w, &err), err);
        assert_ok(arch_gguf_read(w, &mem, &g, &err), err);
        assert_int_equal(g.stored, kinds[i].stored);
        weights_close(w);
        arena_deinit(&mem);
    }
    tmp_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_stored)};
    return TEST_RUN(tests);
}
