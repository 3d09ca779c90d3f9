/* SPDX-License-Identifier: Apache-2.0
 * test_bert_families.c: what the configurations of BERT-like families mean: the window and the first position that they leave, and what is
 * refused, with the field's name. Expected values: the classes of transformers 5.24. */
#include "arch/arch.h"
#include "base/json.h"
#include "support/test.h"

#define SIZES                                                                                                          \
    "\"vocab_size\":90,\"hidden_size\":12,\"num_hidden_layers\":2,\"num_attention_heads\":3,\"intermediate_size\":20," \
    "\"max_position_embeddings\":514"
#define TYPED SIZES ",\"type_vocab_size\":1"
#define DISTIL \
    "\"vocab_size\":90,\"dim\":12,\"n_layers\":2,\"n_heads\":3,\"hidden_dim\":20,\"max_position_embeddings\":514"

typedef struct row {
    const char *type, *config;
    lath_status status;
    const char *part; /* of the message */
    int32_t window, pos0, pad_id, n_types;
} row;

static const row rows[] = {
    {"bert", TYPED, LATH_OK, NULL, 514, 0, -1, 1},
    {"roberta", TYPED, LATH_OK, NULL, 512, 2, 1, 1},
    {"roberta", TYPED ",\"pad_token_id\":0", LATH_OK, NULL, 513, 1, 0, 1},
    {"xlm-roberta", TYPED ",\"pad_token_id\":1", LATH_OK, NULL, 512, 2, 1, 1},
    {"camembert", TYPED ",\"pad_token_id\":512", LATH_OK, NULL, 1, 513, 512, 1},
    {"camembert", TYPED ",\"pad_token_id\":513", LATH_ERR_FORMAT, "behind pad_token_id 513", 0, 0, 0, 0},
    {"data2vec-text", TYPED ",\"pad_token_id\":-1", LATH_ERR_FORMAT, "\"pad_token_id\"", 0, 0, 0, 0},
    {"roberta", TYPED ",\"pad_token_id\":null", LATH_ERR_FORMAT, "pad_token_id is null", 0, 0, 0, 0},
    {"roberta", SIZES, LATH_ERR_FORMAT, "no \"type_vocab_size\"", 0, 0, 0, 0},
    {"roberta", TYPED ",\"is_decoder\":true", LATH_ERR_UNSUPPORTED, "is_decoder", 0, 0, 0, 0},
    {"xlm-roberta", TYPED ",\"position_embedding_type\":\"relative_key_query\"", LATH_ERR_UNSUPPORTED,
     "position_embedding_type \"relative_key_query\"", 0, 0, 0, 0},
    {"roberta", TYPED ",\"hidden_act\":\"quick_gelu\"", LATH_ERR_UNSUPPORTED, "hidden_act \"quick_gelu\"", 0, 0, 0, 0},
    {"roberta", TYPED ",\"layer_norm_eps\":2", LATH_ERR_FORMAT, "layer_norm_eps", 0, 0, 0, 0},
    {"mpnet", SIZES, LATH_OK, NULL, 512, 2, 1, 0},
    {"mpnet", SIZES ",\"pad_token_id\":0", LATH_OK, NULL, 512, 2, 1, 0}, /* the reference takes 1 all the same */
    {"mpnet", SIZES ",\"relative_attention_num_buckets\":16", LATH_ERR_UNSUPPORTED, "relative_attention_num_buckets 16",
     0, 0, 0, 0},
    {"distilbert", DISTIL, LATH_OK, NULL, 514, 0, -1, 0},
    {"distilbert", DISTIL ",\"sinusoidal_pos_embds\":true", LATH_OK, NULL, 514, 0, -1, 0},
    {"distilbert", DISTIL ",\"sinusoidal_pos_embds\":1", LATH_ERR_FORMAT, "\"sinusoidal_pos_embds\"", 0, 0, 0, 0},
    {"distilbert", DISTIL ",\"activation\":\"mish\"", LATH_ERR_UNSUPPORTED, "activation \"mish\"", 0, 0, 0, 0},
    {"distilbert", SIZES, LATH_ERR_FORMAT, "no \"dim\"", 0, 0, 0, 0},
    {"electra", TYPED, LATH_ERR_FORMAT, "no \"embedding_size\"", 0, 0, 0, 0},
    {"electra", TYPED ",\"embedding_size\":5", LATH_OK, NULL, 514, 0, -1, 1},
    {"jina_embeddings_v3", TYPED, LATH_OK, NULL, 514, 0, -1, 1},
    {"jina_embeddings_v3", TYPED ",\"pad_token_id\":1,\"head_dim\":4", LATH_OK, NULL, 514, 0, -1, 1},
    {"jina_embeddings_v3", SIZES, LATH_ERR_FORMAT, "no \"type_vocab_size\"", 0, 0, 0, 0},
    {"jina_embeddings_v3", TYPED ",\"head_dim\":6", LATH_ERR_FORMAT, "not num_attention_heads 3 of 6", 0, 0, 0, 0},
    {"jina_embeddings_v3", TYPED ",\"hidden_act\":\"mish\"", LATH_ERR_UNSUPPORTED, "hidden_act \"mish\"", 0, 0, 0, 0},
    {"jina_embeddings_v3", TYPED ",\"layer_norm_eps\":1", LATH_ERR_FORMAT, "layer_norm_eps", 0, 0, 0, 0},
    {"jina_embeddings_v3", TYPED ",\"rope_parameters\":{\"rope_type\":\"wavelet\"}", LATH_ERR_UNSUPPORTED,
     "rope type \"wavelet\"", 0, 0, 0, 0},
    {"jina_embeddings_v3", TYPED ",\"rope_parameters\":{\"partial_rotary_factor\":0.5}", LATH_ERR_UNSUPPORTED,
     "heads of 4 features of which 2 turn", 0, 0, 0, 0},
    {"ernie", TYPED ",\"use_task_id\":true", LATH_OK, NULL, 514, 0, -1, 1},
    {"ernie", TYPED ",\"use_task_id\":true,\"task_type_vocab_size\":0", LATH_ERR_FORMAT, "\"task_type_vocab_size\"", 0,
     0, 0, 0},
};

static void test_configurations(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const row *r = &rows[i];
        char text[512];
        arena a;
        json_value *config;
        lath_error err = {0};
        arena_init(&a, alloc_default());
        const int n = snprintf(text, sizeof(text), "{%s}", r->config);
        assert_ok(json_parse(&a, "config.json", text, (size_t)n, NULL, &config, &err), err);
        const arch_desc *d = arch_find(r->type);
        assert_non_null(d);
        assert_string_equal(d->name, r->type);
        arch_model m = {.desc = d, .mem = &a, .weights = arena_zero(&a, d->model_size)};
        lath_status st = d->parse(&m, config, "config.json", &err);
        if (st != r->status) fail_msg("%s {%s}: status %d, \"%s\"", r->type, r->config, (int)st, err.msg);
        if (st == LATH_OK) {
            assert_int_equal(m.dims.max_positions, r->window);
            assert_int_equal(m.dims.pos0, r->pos0);
            assert_int_equal(m.dims.pad_id, r->pad_id);
            assert_int_equal(m.dims.n_types, r->n_types);
        } else if (!strstr(err.msg, r->part) || strncmp(err.msg, "config.json: ", 13) != 0) {
            fail_msg("%s {%s}: \"%s\"", r->type, r->config, err.msg);
        }
        arena_deinit(&a);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_configurations)};
    return TEST_RUN(tests);
}
