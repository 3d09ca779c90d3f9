/* SPDX-License-Identifier: Apache-2.0
 * test_nomic_config.c: every value of a nomic-bert configuration that is refused, and the value beside it that is not, in the checkpoints' own form
 * and in that of transformers 5. */
#include "arch/arch.h"
#include "base/json.h"
#include "support/test.h"

typedef struct field {
    const char *key, *value; /* NULL: the field is left out */
} field;

static const field own[] = {
    {"model_type", "\"nomic_bert\""},
    {"n_embd", "12"},
    {"n_layer", "2"},
    {"n_head", "2"},
    {"n_inner", "20"},
    {"n_positions", "64"},
    {"vocab_size", "90"},
    {"type_vocab_size", "2"},
    {"activation_function", "\"swiglu\""},
    {"rotary_emb_fraction", "1.0"},
};
static const field modern[] = {
    {"model_type", "\"nomic_bert\""},  {"hidden_size", "12"},       {"num_hidden_layers", "2"},
    {"num_attention_heads", "2"},      {"intermediate_size", "20"}, {"vocab_size", "90"},
    {"max_position_embeddings", "64"}, {"type_vocab_size", "2"},
};
enum { OWN, MODERN, MOST_CHANGES = 3 };
static const struct {
    const field *fields;
    size_t n;
} forms[] = {{own, sizeof(own) / sizeof(own[0])}, {modern, sizeof(modern) / sizeof(modern[0])}};

typedef struct row {
    int form;
    field changes[MOST_CHANGES];
    lath_status status;
    const char *part; /* of the message */
} row;

#define BAD LATH_ERR_FORMAT
#define NOT LATH_ERR_UNSUPPORTED
static const row rows[] = {
    {OWN, {{0}}, LATH_OK, NULL},
    {MODERN, {{0}}, LATH_OK, NULL},

    /* sizes: there, in range, the same under both names */
    {OWN, {{"n_embd", NULL}}, BAD, "no \"hidden_size\""}, /* n_embd tells the forms apart */
    {OWN, {{"n_layer", NULL}}, BAD, "no \"n_layer\""},
    {OWN, {{"n_head", NULL}}, BAD, "no \"n_head\""},
    {OWN, {{"n_inner", NULL}}, BAD, "no \"n_inner\""},
    {OWN, {{"vocab_size", NULL}}, BAD, "no \"vocab_size\""},
    {OWN, {{"n_positions", NULL}}, BAD, "no \"n_positions\""},
    {MODERN, {{"hidden_size", NULL}}, BAD, "no \"hidden_size\""},
    {MODERN, {{"num_hidden_layers", NULL}}, BAD, "no \"num_hidden_layers\""},
    {MODERN, {{"num_attention_heads", NULL}}, BAD, "no \"num_attention_heads\""},
    {MODERN, {{"intermediate_size", NULL}}, BAD, "no \"intermediate_size\""},
    {MODERN, {{"max_position_embeddings", NULL}}, BAD, "no \"n_positions\""},
    {OWN, {{"n_embd", "0"}}, BAD, "\"n_embd\""},
    {OWN, {{"n_embd", "65538"}}, BAD, "\"n_embd\""},
    {OWN, {{"n_layer", "1025"}}, BAD, "\"n_layer\""},
    {OWN, {{"n_head", "-2"}}, BAD, "\"n_head\""},
    {OWN, {{"n_inner", "\"20\""}}, BAD, "\"n_inner\""},
    {OWN, {{"n_positions", "16777217"}}, BAD, "\"n_positions\""},
    {OWN, {{"type_vocab_size", "-1"}}, BAD, "\"type_vocab_size\""},
    {OWN, {{"type_vocab_size", "0"}}, LATH_OK, NULL},
    {OWN, {{"hidden_size", "12"}}, LATH_OK, NULL},
    {OWN, {{"hidden_size", "14"}}, BAD, "n_embd 12 and hidden_size 14 differ"},
    {OWN, {{"num_hidden_layers", "3"}}, BAD, "n_layer 2 and num_hidden_layers 3 differ"},
    {OWN, {{"num_attention_heads", "1"}}, BAD, "n_head 2 and num_attention_heads 1 differ"},
    {OWN, {{"intermediate_size", "21"}}, BAD, "n_inner 20 and intermediate_size 21 differ"},
    {OWN, {{"max_position_embeddings", "32"}}, LATH_OK, NULL}, /* n_positions counts */

    /* heads */
    {OWN, {{"n_head", "5"}}, BAD, "12 features are not 5 heads of 2"},
    {OWN, {{"head_dim", "6"}}, LATH_OK, NULL},
    {OWN, {{"head_dim", "4"}}, BAD, "12 features are not 2 heads of 4"},
    {OWN, {{"num_heads_kv", "2"}}, LATH_OK, NULL},
    {OWN, {{"num_heads_kv", "1"}}, NOT, "num_heads_kv 1"},
    {MODERN, {{"head_dim", "8"}}, BAD, "12 features are not 2 heads of 8"},

    /* other models of the same code */
    {OWN, {{"prenorm", "true"}}, NOT, "prenorm true"},
    {OWN, {{"parallel_block", "true"}}, NOT, "parallel_block true"},
    {OWN, {{"causal", "true"}}, NOT, "causal true"},
    {OWN, {{"use_rms_norm", "true"}}, NOT, "use_rms_norm true"},
    {OWN, {{"norm_mlp", "true"}}, NOT, "norm_mlp true"},
    {OWN, {{"rotary_head_dim", "true"}}, NOT, "rotary_head_dim true"},
    {OWN, {{"scale_attn_weights", "false"}}, NOT, "scale_attn_weights false"},
    {OWN, {{"scale_attn_weights", "true"}}, LATH_OK, NULL},
    {OWN, {{"scale_attn_by_inverse_layer_idx", "true"}}, NOT, "scale_attn_by_inverse_layer_idx true"},
    {OWN, {{"prenorm", "1"}}, BAD, "\"prenorm\""},
    {OWN, {{"causal", "null"}}, LATH_OK, NULL},
    {OWN, {{"num_experts", "8"}}, NOT, "num_experts 8: a mixture of experts"},
    {OWN, {{"num_experts", "0"}}, LATH_OK, NULL},
    {OWN, {{"moe_every_n_layers", "2"}}, NOT, "moe_every_n_layers 2: a mixture of experts"},
    {OWN, {{"moe_every_n_layers", "-1"}}, LATH_OK, NULL},
    {OWN, {{"img_size", "224"}}, NOT, "img_size 224: an encoder of images"},
    {OWN, {{"rotary_emb_scale_base", "512"}}, NOT, "rotary_emb_scale_base"},
    {OWN, {{"rotary_emb_scale_base", "null"}}, LATH_OK, NULL},

    /* biases */
    {OWN, {{"qkv_proj_bias", "\"no\""}}, BAD, "\"qkv_proj_bias\""},
    {OWN, {{"mlp_fc1_bias", "0"}}, BAD, "\"mlp_fc1_bias\""},
    {OWN, {{"mlp_fc2_bias", "0"}}, BAD, "\"mlp_fc2_bias\""},

    /* activations */
    {OWN, {{"activation_function", NULL}}, BAD, "no \"activation_function\""},
    {OWN, {{"activation_function", "\"reglu\""}}, NOT, "activation_function \"reglu\""},
    {OWN, {{"activation_function", "\"geglu\""}}, LATH_OK, NULL},
    {OWN, {{"activation_function", "\"glu\""}}, LATH_OK, NULL},
    {OWN, {{"activation_function", "\"gelu\""}}, LATH_OK, NULL},
    {OWN, {{"hidden_act", "\"silu\""}}, LATH_OK, NULL},
    {OWN, {{"hidden_act", "\"gelu\""}}, BAD, "activation_function \"swiglu\" and hidden_act \"gelu\" differ"},
    {OWN, {{"hidden_act", "\"mish\""}}, NOT, "hidden_act \"mish\""},
    {MODERN, {{"hidden_act", "\"gelu\""}}, LATH_OK, NULL},
    {MODERN, {{"hidden_act", "\"mish\""}}, NOT, "hidden_act \"mish\""},

    /* rotary positions of the own form */
    {OWN, {{"rotary_emb_fraction", NULL}}, NOT, "rotary_emb_fraction 0"},
    {OWN, {{"rotary_emb_fraction", "1.5"}}, NOT, "rotary_emb_fraction 1.5"},
    {OWN, {{"rotary_emb_fraction", "-1"}}, NOT, "rotary_emb_fraction -1"},
    {OWN, {{"rotary_emb_fraction", "0.5"}}, BAD, "rotary_emb_fraction 0.5 of heads of 6 features are no pairs"},
    {OWN, {{"rotary_emb_fraction", "0.1"}}, BAD, "are no pairs"},
    {OWN, {{"n_embd", "16"}, {"rotary_emb_fraction", "0.5"}}, LATH_OK, NULL},
    {OWN, {{"rotary_emb_base", "0"}}, BAD, "rotary_emb_base is out of range"},
    {OWN, {{"rotary_emb_base", "-1000"}}, BAD, "rotary_emb_base is out of range"},
    {OWN, {{"rotary_emb_base", "1e-300"}}, BAD, "rotary embeddings is out of range"},
    {OWN, {{"rope_parameters", "{\"rope_theta\":10000}"}}, LATH_OK, NULL},
    {OWN, {{"rope_parameters", "{\"rope_theta\":1000}"}}, BAD, "rotary_emb_base 10000 and rope_theta 1000 differ"},
    {OWN, {{"rotary_emb_interleaved", "true"}}, LATH_OK, NULL},
    {OWN, {{"rotary_emb_interleaved", "1"}}, BAD, "\"rotary_emb_interleaved\""},
    {OWN, {{"rotary_scaling_factor", "2"}}, LATH_OK, NULL},
    {OWN, {{"rotary_scaling_factor", "0.5"}}, BAD, "rotary_scaling_factor 0.5"},
    {OWN, {{"rotary_scaling_factor", "-2"}}, BAD, "rotary_scaling_factor -2"},
    {OWN, {{"rotary_scaling_factor", "1000000"}}, BAD, "rotary_scaling_factor 1e+06"},
    {OWN, {{"rotary_scaling_factor", "2"}, {"n_head", "6"}}, BAD, "rotary_scaling_factor 2"}, /* one pair only */
    {OWN, {{"rotary_scaling_factor", "2"}, {"max_trained_positions", "0"}}, BAD, "\"max_trained_positions\""},

    /* and of the other */
    {MODERN, {{"rope_parameters", "{\"rope_theta\":500,\"rope_type\":\"default\"}"}}, LATH_OK, NULL},
    {MODERN, {{"rope_parameters", "{\"rope_theta\":0,\"rope_type\":\"default\"}"}}, BAD, "rope_theta is out of range"},
    {MODERN, {{"rope_parameters", "{\"rope_type\":\"wavelet\"}"}}, NOT, "rope type \"wavelet\""},
    {MODERN, {{"rope_parameters", "{\"rope_type\":\"linear\"}"}}, BAD, "want \"factor\""},
    {MODERN, {{"rope_parameters", "[]"}}, BAD, "\"rope_parameters\""},
    {MODERN, {{"rope_parameters", "{\"partial_rotary_factor\":0.7}"}}, NOT, "heads of 6 features of which 4 turn"},

    /* norms */
    {OWN, {{"layer_norm_epsilon", "1e-12"}}, LATH_OK, NULL},
    {OWN, {{"layer_norm_epsilon", "1"}}, BAD, "layer_norm_eps is out of range"},
    {OWN, {{"layer_norm_epsilon", "-1e-9"}}, BAD, "layer_norm_eps is out of range"},
    {OWN, {{"layer_norm_epsilon", "1e-5"}, {"layer_norm_eps", "1e-12"}}, BAD, "not layer_norm_epsilon"},
    {OWN, {{"layer_norm_epsilon", "1e-5"}, {"layer_norm_eps", "1e-5"}}, LATH_OK, NULL},
    {MODERN, {{"layer_norm_eps", "2"}}, BAD, "layer_norm_eps is out of range"},
};

/* {"key":value,...} of the form with the row's changes; every change has its place. */
static void configuration(const row *r, buf *b)
{
    const field *base = forms[r->form].fields;
    const char *comma = "";
    buf_char(b, '{');
    for (size_t i = 0; i < forms[r->form].n; i++) {
        const char *value = base[i].value;
        for (int c = 0; c < MOST_CHANGES && r->changes[c].key; c++) {
            if (strcmp(r->changes[c].key, base[i].key) == 0) value = r->changes[c].value;
        }
        if (!value) continue;
        buf_printf(b, "%s\"%s\":%s", comma, base[i].key, value);
        comma = ",";
    }
    for (int c = 0; c < MOST_CHANGES && r->changes[c].key; c++) {
        bool there = false;
        for (size_t i = 0; i < forms[r->form].n; i++) there |= strcmp(r->changes[c].key, base[i].key) == 0;
        if (!there) buf_printf(b, ",\"%s\":%s", r->changes[c].key, r->changes[c].value);
    }
    buf_char(b, '}');
}

static void test_values(void **state)
{
    const arch_desc *d = arch_find("nomic_bert");
    (void)state;
    assert_non_null(d);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const row *r = &rows[i];
        arena a;
        buf text;
        json_value *config;
        lath_error err = {0};
        arena_init(&a, alloc_default());
        buf_init(&text, alloc_default(), 4096);
        configuration(r, &text);
        assert_ok(buf_status(&text, &err), err);
        assert_ok(json_parse(&a, "config.json", text.data, text.len, NULL, &config, &err), err);
        arch_model m = {.desc = d, .mem = &a, .weights = arena_zero(&a, d->model_size)};
        const lath_status st = d->parse(&m, config, "config.json", &err);
        if (st != r->status) fail_msg("%s: status %d, \"%s\"", buf_cstr(&text), (int)st, st ? err.msg : "");
        if (st == LATH_OK)
            assert_int_equal(m.dims.max_positions, 64);
        else if (!strstr(err.msg, r->part) || strncmp(err.msg, "config.json: ", 13) != 0)
            fail_msg("%s: \"%s\"", buf_cstr(&text), err.msg);
        buf_deinit(&text);
        arena_deinit(&a);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_values)};
    return TEST_RUN(tests);
}
