/* SPDX-License-Identifier: Apache-2.0
 * test_rope.c: what configurations of rotary embeddings are refused, with the words: types, numbers that are missing, and bases and factors that
 * leave frequencies which f32 does not hold. Good values are compared with the reference by the golden models. */
#include "arch/arch_rope.h"
#include "support/test.h"

typedef struct row {
    const char *config;
    lath_status status;
    const char *part; /* of the message */
} row;

#define LLAMA3(factor, low, high)                                                               \
    "\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":" factor ",\"low_freq_factor\":" low \
    ",\"high_freq_factor\":" high ",\"original_max_position_embeddings\":64}"
#define LINEAR(factor) "\"rope_scaling\":{\"type\":\"linear\",\"factor\":" factor "}"
#define YARN(more) "\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4" more "}"
#define RANGE "the base or the scaling of its rotary embeddings is out of range"

static const row rows[] = {
    {"", LATH_OK, NULL},
    {"\"rope_theta\":1", LATH_OK, NULL},
    {"\"rope_theta\":1e10", LATH_OK, NULL},
    {"\"rope_theta\":0", LATH_ERR_FORMAT, "rope_theta is out of range"},
    {"\"rope_theta\":-3", LATH_ERR_FORMAT, "rope_theta is out of range"},
    {"\"rope_theta\":1e999", LATH_ERR_FORMAT, "rope_theta is out of range"},
    {"\"rope_theta\":1e308", LATH_ERR_FORMAT, RANGE},
    {"\"rope_theta\":1e-308", LATH_ERR_FORMAT, RANGE},
    {"\"rope_theta\":true", LATH_ERR_FORMAT, "\"rope_theta\": want a number"},
    {LINEAR("4"), LATH_OK, NULL},
    {LINEAR("0"), LATH_ERR_FORMAT, "want \"factor\", a number over 0"},
    {LINEAR("1e999"), LATH_ERR_FORMAT, "want \"factor\", a number over 0"},
    {LINEAR("1e308"), LATH_ERR_FORMAT, RANGE},
    {LINEAR("1e-308"), LATH_ERR_FORMAT, RANGE},
    {LLAMA3("8", "1", "4"), LATH_OK, NULL},
    {LLAMA3("8", "4", "4"), LATH_ERR_FORMAT, "high_freq_factor 4 is not over low_freq_factor 4"},
    {LLAMA3("8", "4", "1"), LATH_ERR_FORMAT, "high_freq_factor 1 is not over low_freq_factor 4"},
    {LLAMA3("1e300", "1", "4"), LATH_ERR_FORMAT, RANGE},
    {YARN(""), LATH_OK, NULL},
    {YARN(",\"attention_factor\":1e999"), LATH_ERR_FORMAT, RANGE},
    {YARN(",\"beta_fast\":0"), LATH_ERR_FORMAT, "beta_fast"},
    {"\"rope_scaling\":{\"rope_type\":\"longrope\"}", LATH_ERR_UNSUPPORTED, "rope type \"longrope\" is not supported"},
    {"\"rope_scaling\":[]", LATH_ERR_FORMAT, "\"rope_scaling\": want an object"},
    {"\"partial_rotary_factor\":0", LATH_ERR_FORMAT, "partial_rotary_factor leaves nothing"},
    {"\"partial_rotary_factor\":1.5", LATH_ERR_FORMAT, "partial_rotary_factor leaves nothing"},
};

static void test_configurations(void **state)
{
    static const arch_rope_spec spec = {
        .theta_key = "rope_theta", .scaled = true, .theta = 1e4, .head_dim = 8, .max_positions = 512};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const row *r = &rows[i];
        char text[512];
        arena a;
        json_value *config;
        nn_rope rope;
        lath_error err = {0};
        arena_init(&a, alloc_default());
        const int n = snprintf(text, sizeof(text), "{%s}", r->config);
        assert_ok(json_parse(&a, "config.json", text, (size_t)n, NULL, &config, &err), err);
        const lath_status st = arch_rope_parse(config, "config.json", &spec, &a, &rope, &err);
        if (st != r->status) fail_msg("{%s}: status %d, \"%s\"", r->config, (int)st, err.msg);
        if (st == LATH_OK)
            assert_int_equal(rope.n_pairs, 4);
        else if (!strstr(err.msg, r->part) || strncmp(err.msg, "config.json: ", 13) != 0)
            fail_msg("{%s}: \"%s\"", r->config, err.msg);
        arena_deinit(&a);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_configurations)};
    return TEST_RUN(tests);
}
