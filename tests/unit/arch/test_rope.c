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
#define DYNAMIC(factor) "\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":" factor "}"
#define LONGROPE(short_factor, long_factor, length)                                                    \
    "\"rope_scaling\":{\"type\":\"su\",\"short_factor\":" short_factor ",\"long_factor\":" long_factor \
    "},\"original_max_position_embeddings\":" length
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
    {DYNAMIC("2"), LATH_OK, NULL},
    {DYNAMIC("null"), LATH_ERR_FORMAT, "rope type \"dynamic\": want \"factor\", a number over 0"},
    {DYNAMIC("\"2\""), LATH_ERR_FORMAT, "\"factor\": want a number"},
    {DYNAMIC("0.5"), LATH_ERR_FORMAT, "rope type \"dynamic\": factor 0.5 is out of range"},
    {DYNAMIC("1e9"), LATH_ERR_FORMAT, "rope type \"dynamic\": factor 1e+09 is out of range"},
    {LONGROPE("[1,1.5,2,3]", "[2,3,4,9]", "64"), LATH_OK, NULL},
    {LONGROPE("[1,1.5,2,3]", "[2,3,4,9]", "null"), LATH_ERR_FORMAT,
     "want \"original_max_position_embeddings\", 2 or more"},
    {LONGROPE("[1,1.5,2,3]", "[2,3,4,9]", "1"), LATH_ERR_FORMAT,
     "want \"original_max_position_embeddings\", 2 or more"},
    {LONGROPE("[1,1.5,2,3]", "[2,3,4,9]", "true"), LATH_ERR_FORMAT, "\"original_max_position_embeddings\": want"},
    {LONGROPE("[1,1.5,2]", "[2,3,4,9]", "64"), LATH_ERR_FORMAT, "want \"short_factor\", an array of 4 numbers over 0"},
    {LONGROPE("[1,1.5,2,3]", "null", "64"), LATH_ERR_FORMAT, "want \"long_factor\", an array of 4 numbers over 0"},
    {LONGROPE("[1,1.5,2,3]", "[2,3,4,0]", "64"), LATH_ERR_FORMAT, "want \"long_factor\", an array of 4 numbers over 0"},
    {LONGROPE("[1,1.5,2,\"3\"]", "[2,3,4,9]", "64"), LATH_ERR_FORMAT, "want \"short_factor\", an array of 4 numbers"},
    {LONGROPE("[1,1.5,2,3]", "[2,3,4,1e400]", "64"), LATH_ERR_FORMAT, "want \"long_factor\""},
    {LONGROPE("7", "[2,3,4,9]", "64"), LATH_ERR_FORMAT, "want \"short_factor\", an array"},
    {"\"rope_scaling\":{\"rope_type\":\"mrope\"}", LATH_ERR_UNSUPPORTED, "rope type \"mrope\" is not supported"},
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
