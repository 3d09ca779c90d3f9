/* SPDX-License-Identifier: Apache-2.0
 * test_unicode.c: the generated tables against single values and totals that the reference package gave. */
#include "support/test.h"

#include "base/unicode.h"

static void flags_of_characters(void **state)
{
    (void)state;
    static const struct {
        uint32_t c, flags;
    } cases[] = {
        {'a', UNI_WORD},
        {'A', UNI_WORD | UNI_LOWER},
        {' ', UNI_SPACE},
        {'\n', UNI_SPACE},
        {0x0B, UNI_SPACE | UNI_CONTROL}, /* a control character before it is white space */
        {0x85, UNI_SPACE | UNI_CONTROL},
        {0x00, UNI_CONTROL},
        {0x7F, UNI_CONTROL},
        {0xFFFD, UNI_CONTROL},
        {0x00AD, UNI_CONTROL},
        {0xE000, UNI_CONTROL}, /* private use */
        {0x0378, 0},           /* unassigned: stays */
        {'$', UNI_PUNCT},
        {'_', UNI_PUNCT | UNI_WORD},
        {0x3000, UNI_SPACE},
        {0x4E2D, UNI_CJK | UNI_WORD},
        {0xF900, UNI_CJK | UNI_WORD | UNI_NFD},
        {0x2B81E, UNI_CJK},
        {0x2B91F, UNI_WORD}, /* a hole in the reference's list of ideographs */
        {0x0301, UNI_MN | UNI_MARK | UNI_WORD | UNI_CCC},
        {0x093E, UNI_MARK | UNI_WORD},
        {0x1D165, UNI_MARK | UNI_WORD | UNI_CCC},
        {0xAC01, UNI_WORD | UNI_NFD},
        {0x00C9, UNI_WORD | UNI_NFD | UNI_LOWER},
        {0x10FFFD, UNI_CONTROL}, /* private use too */
        {0x10FFFF, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (uni_flags(cases[i].c) != cases[i].flags)
            fail_msg("U+%04X: flags %x, want %x", cases[i].c, uni_flags(cases[i].c), cases[i].flags);
    }
}

static void lower_case(void **state)
{
    (void)state;
    uint32_t out[UNI_LOWER_MAX];
    static const uint32_t pairs[][2] = {{'A', 'a'},     {'a', 'a'},       {0xC9, 0xE9},   {0x2126, 0x3C9},
                                        {0x3A3, 0x3C3}, {0x10A0, 0x2D00}, {0x1E9E, 0xDF}, {0x10FFFF, 0x10FFFF}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        assert_int_equal(uni_lower(pairs[i][0], out), 1);
        assert_int_equal(out[0], pairs[i][1]);
    }
    assert_int_equal(uni_lower(0x130, out), 2);
    assert_int_equal(out[0], 0x69);
    assert_int_equal(out[1], 0x307);
}

static void decomposition(void **state)
{
    (void)state;
    static const uint32_t cases[][6] = {
        /* character, count, result */
        {0x41, 1, 0x41},
        {0xC9, 2, 0x45, 0x301},
        {0x1E69, 3, 0x73, 0x323, 0x307},
        {0xAC00, 2, 0x1100, 0x1161},
        {0xAC01, 3, 0x1100, 0x1161, 0x11A8},
        {0xD7A3, 3, 0x1112, 0x1175, 0x11C2},
        {0x344, 2, 0x308, 0x301},
        {0x1D15E, 2, 0x1D157, 0x1D165},
        {0xF900, 1, 0x8C48},
        {0xFB01, 1, 0xFB01},
        {0x1FA7, 4, 0x3C9, 0x314, 0x342, 0x345},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t out[UNI_NFD_MAX];
        assert_int_equal(uni_nfd(cases[i][0], out), cases[i][1]);
        for (uint32_t k = 0; k < cases[i][1]; k++) assert_int_equal(out[k], cases[i][2 + k]);
    }
}

static void combining_classes(void **state)
{
    (void)state;
    assert_int_equal(uni_ccc('a'), 0);
    assert_int_equal(uni_ccc(0x334), 1);
    assert_int_equal(uni_ccc(0x301), 230);
    assert_int_equal(uni_ccc(0x323), 220);
    assert_int_equal(uni_ccc(0x345), 240);
    assert_int_equal(uni_ccc(0x5B0), 10);
    assert_int_equal(uni_ccc(0x1D165), 216);
}

/* How many code points have each property: counts made from the package's answers. */
static void totals(void **state)
{
    (void)state;
    size_t n[10] = {0}, lower = 0;
    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        uint32_t f = uni_flags(c), out[UNI_LOWER_MAX];
        for (int b = 0; b < 10; b++) n[b] += f >> b & 1;
        lower += uni_lower(c, out) != 1 || out[0] != c;
    }
    static const size_t want[10] = {25, 137681, 726, 81264, 1549, 2097, 144667, 13232, 1488, 810};
    for (int b = 0; b < 10; b++) {
        if (n[b] != want[b]) fail_msg("flag %d: %zu characters, want %zu", b, n[b], want[b]);
    }
    assert_int_equal(lower, 1488);
}

static void reading(void **state)
{
    (void)state;
    const char *s = "a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80";
    static const uint32_t want[] = {'a', 0xE9, 0x4E2D, 0x1F600};
    static const size_t lens[] = {1, 2, 3, 4};
    size_t at = 0, len;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(uni_next(s + at, &len), want[i]);
        assert_int_equal(len, lens[i]);
        at += len;
        assert_int_equal(uni_before(s, at, &len), want[i]);
        assert_int_equal(len, lens[i]);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(flags_of_characters), cmocka_unit_test(lower_case), cmocka_unit_test(decomposition),
    cmocka_unit_test(combining_classes),   cmocka_unit_test(totals),     cmocka_unit_test(reading),
};
TEST_MAIN(tests)
