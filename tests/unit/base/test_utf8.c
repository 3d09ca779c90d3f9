/* SPDX-License-Identifier: Apache-2.0
 * test_utf8.c: every scalar value both ways; every sequence of one, two and three bytes and the borders of four
 * against table 3-7 of The Unicode Standard, written here as ranges; replacement of ill-formed parts against what
 * Python's bytes.decode("utf-8", "replace") gave. */
#include "base/utf8.h"

#include "support/test.h"

typedef struct text {
    const char *s;
    size_t n;
} text;
#define T(s)             \
    {                    \
        s, sizeof(s) - 1 \
    }

#define R "\357\277\275" /* U+FFFD */

static lath_error err;

static void test_scalars(void **state)
{
    (void)state;
    for (uint32_t cp = 0; cp <= 0x10FFFF; cp++) {
        if (cp >= 0xD800 && cp <= 0xDFFF) continue;
        char s[8] = "\xFF\xFF\xFF\xFF\xFF\xFF\xFF";
        uint32_t back = 0xFFFFFFFF;
        size_t n = utf8_encode(cp, s), want = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
        if (n != want || utf8_decode(s, sizeof(s), &back) != n || back != cp) fail_msg("U+%04X", cp);
        if (utf8_decode(s, n, &back) != n || utf8_first_invalid(s, n) != n) fail_msg("U+%04X", cp);
        for (size_t cut = 1; cut < n; cut++) {
            if (utf8_decode(s, cut, &back) != 0 || utf8_first_invalid(s, cut) != 0)
                fail_msg("U+%04X cut to %zu", cp, cut);
        }
    }
}

static void test_encoded_bytes(void **state)
{
    static const struct {
        uint32_t cp;
        text want;
    } rows[] = {
        {0, T("\0")},
        {0x7F, T("\x7F")},
        {0x80, T("\xC2\x80")},
        {0xE9, T("\xC3\xA9")},
        {0x7FF, T("\xDF\xBF")},
        {0x800, T("\xE0\xA0\x80")},
        {0x4E2D, T("\xE4\xB8\xAD")},
        {0xD7FF, T("\xED\x9F\xBF")},
        {0xE000, T("\xEE\x80\x80")},
        {0xFFFF, T("\xEF\xBF\xBF")},
        {0x10000, T("\xF0\x90\x80\x80")},
        {0x1F600, T("\xF0\x9F\x98\x80")},
        {0x10FFFF, T("\xF4\x8F\xBF\xBF")},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char s[4];
        assert_int_equal(utf8_encode(rows[i].cp, s), rows[i].want.n);
        assert_memory_equal(s, rows[i].want.s, rows[i].want.n);
    }
}

/* Table 3-7: length of the well-formed sequence at p, 0 when there is none. */
static size_t well_formed(const unsigned char *p, size_t n)
{
    static const struct {
        unsigned char first_lo, first_hi, second_lo, second_hi;
        size_t len;
    } table[] = {
        {0x00, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
        {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
        {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (p[0] < table[i].first_lo || p[0] > table[i].first_hi) continue;
        if (table[i].len == 1) return 1;
        if (n < table[i].len || p[1] < table[i].second_lo || p[1] > table[i].second_hi) return 0;
        for (size_t k = 2; k < table[i].len; k++) {
            if (p[k] < 0x80 || p[k] > 0xBF) return 0;
        }
        return table[i].len;
    }
    return 0;
}

static void check(const unsigned char *p, size_t n)
{
    uint32_t cp;
    size_t want = well_formed(p, n);
    if (utf8_decode((const char *)p, n, &cp) != want)
        fail_msg("%02X %02X %02X %02X (%zu): want %zu", p[0], p[1], p[2], p[3], n, want);
}

static void test_sequences(void **state)
{
    static const unsigned char borders[] = {0x00, 0x41, 0x7F, 0x80, 0x81, 0x8F, 0x90, 0x9F,
                                            0xA0, 0xBE, 0xBF, 0xC0, 0xC2, 0xE0, 0xF0, 0xFF};
    unsigned char p[4] = {0};
    (void)state;
    for (unsigned a = 0; a < 256; a++) {
        for (unsigned b = 0; b < 256; b++) {
            p[0] = (unsigned char)a;
            p[1] = (unsigned char)b;
            check(p, 1);
            check(p, 2);
            for (size_t c = 0; c < sizeof(borders); c++) {
                p[2] = borders[c];
                check(p, 3);
                for (size_t d = 0; d < sizeof(borders); d++) {
                    p[3] = borders[d];
                    check(p, 4);
                }
            }
        }
    }
}

/* The word at a time loop: an invalid byte at every place of texts of every length, behind characters of every
 * width. */
static void test_first_invalid(void **state)
{
    static const text chars[] = {T("a"), T("\xC3\xA9"), T("\xE4\xB8\xAD"), T("\xF0\x9F\x98\x80")};
    (void)state;
    assert_int_equal(utf8_first_invalid(NULL, 0), 0);
    for (size_t w = 0; w < 4; w++) {
        for (size_t n = 0; n < 40; n++) {
            char s[256];
            size_t len = 0;
            for (size_t i = 0; i < n; i++) { /* a mark of another width among them */
                const text *c = i % 5 == 4 ? &chars[0] : &chars[w];
                memcpy(s + len, c->s, c->n);
                len += c->n;
            }
            assert_int_equal(utf8_first_invalid(s, len), len);
            s[len] = (char)0x80;
            assert_int_equal(utf8_first_invalid(s, len + 1), len);
            for (size_t k = 0; k < 20; k++) s[len + 1 + k] = 'z';
            assert_int_equal(utf8_first_invalid(s, len + 21), len);
            s[len] = (char)0xE4; /* a head without its tail */
            assert_int_equal(utf8_first_invalid(s, len + 21), len);
            assert_int_equal(utf8_first_invalid(s, len + 1), len);
        }
    }
}

static const struct {
    text in, want;
} lossy[] = {
    {T(""), T("")},
    {T("\141\142\143"), T("\141\142\143")},
    {T("\200"), T(R)},
    {T("\277\200"), T(R R)},
    {T("\141\200\142"), T("\141" R "\142")},
    {T("\300\200"), T(R R)},
    {T("\301\277"), T(R R)},
    {T("\302"), T(R)},
    {T("\302\101"), T(R "\101")},
    {T("\302\302\251"), T(R "\302\251")},
    {T("\337\277\277"), T("\337\277" R)},
    {T("\340\200\200"), T(R R R)},
    {T("\340\237\277"), T(R R R)},
    {T("\340\240"), T(R)},
    {T("\340\240\101"), T(R "\101")},
    {T("\340\240\200\200"), T("\340\240\200" R)},
    {T("\341\200"), T(R)},
    {T("\341\200\342\200\200"), T(R "\342\200\200")},
    {T("\355\237\277"), T("\355\237\277")},
    {T("\355\240\200"), T(R R R)},
    {T("\355\260\200\170"), T(R R R "\170")},
    {T("\355\240\200\355\260\200"), T(R R R R R R)},
    {T(R), T(R)},
    {T("\360\200\200\200"), T(R R R R)},
    {T("\360\217\277\277"), T(R R R R)},
    {T("\360\220\200"), T(R)},
    {T("\360\220\200\101"), T(R "\101")},
    {T("\360\220\101"), T(R "\101")},
    {T("\360\237\230\200"), T("\360\237\230\200")},
    {T("\360\237\230\360\237\230\200"), T(R "\360\237\230\200")},
    {T("\361\200\200\341\200\302\101"), T(R R R "\101")},
    {T("\364\217\277\277"), T("\364\217\277\277")},
    {T("\364\220\200\200"), T(R R R R)},
    {T("\365\200\200\200"), T(R R R R)},
    {T("\370\210\200\200\200"), T(R R R R R)},
    {T("\374\204\200\200\200\200"), T(R R R R R R)},
    {T("\376\377"), T(R R)},
    {T("\377"), T(R)},
    {T("\061\062\063\064\065\066\067\070\200\040\071"), T("\061\062\063\064\065\066\067\070" R "\040\071")},
    {T("\061\062\063\064\065\066\067\344\270"), T("\061\062\063\064\065\066\067" R)},
    {T("\344\270\255\344\270"), T("\344\270\255" R)},
    {T("\141\000\200\000\142"), T("\141\000" R "\000\142")},
    {T("\217\337\364\101\177\357\200\302"), T(R R R "\101\177" R R)},
    {T("\101\356\237\101\177\340\340\177\240\177\357\340"), T("\101" R "\101\177" R R "\177" R "\177" R R)},
    {T("\360\200\240"), T(R R R)},
    {T("\364\360\101\360\360\337\101\240\101\357\217\300\340"), T(R R "\101" R R R "\101" R "\101" R R R)},
    {T("\357\200\360\300\357"), T(R R R R)},
    {T("\220\200\360\360\364\237\302\200\357\377\177\360\101"), T(R R R R R R "\302\200" R R "\177" R "\101")},
    {T("\237\355\365\357\340\301\341\360\341\302\300\240"), T(R R R R R R R R R R R R)},
    {T("\377\240\177\360\300"), T(R R "\177" R R)},
    {T("\355\301\341\300\361\177\200\356\340\220\301"), T(R R R R R "\177" R R R R R)},
    {T("\355\340\101\365\177"), T(R R "\101" R "\177")},
    {T("\360\301\301\377\302\361\355\360\341\177\177"), T(R R R R R R R R R "\177\177")},
    {T("\355\377\365\177\101\377\300"), T(R R R "\177\101" R R)},
    {T("\360\365\341\300\377\337\365\302\000\341\302\220\361"), T(R R R R R R R R "\000" R "\302\220" R)},
    {T("\355\101\237\300"), T(R "\101" R R)},
    {T("\240\337\337\355\177"), T(R R R R "\177")},
    {T("\341\337\357\277\217"), T(R R "\357\277\217")},
    {T("\357\277\377\340\302\365\337\240\217"), T(R R R R R "\337\240" R)},
    {T("\220\217\240\365"), T(R R R R)},
    {T("\000\355\360\220\277\300"), T("\000" R R R)},
    {T("\217\340\357"), T(R R R)},
    {T("\361\360\301\217\377\356\361\364"), T(R R R R R R R R)},
    {T("\101\341\365\357\337\337\337\337\200\355\364\337\101"), T("\101" R R R R R R "\337\200" R R R "\101")},
    {T("\177\237\341\220\200\301"), T("\177" R "\341\220\200" R)},
    {T("\101\200\000\360\217\357\200\302\361\000\177\237"), T("\101" R "\000" R R R R R "\000\177" R)},
    {T("\337\217\364\277\302\361\302\355\200\200\355\341"), T("\337\217" R R R R R "\355\200\200" R R)},
    {T("\355\300\177\217\200\301\277\355\377\220"), T(R R "\177" R R R R R R R)},
    {T("\000\237\356\302\217\377\357\000\356\300\364"), T("\000" R R "\302\217" R R "\000" R R R)},
    {T("\377\277\356\302"), T(R R R R)},
    {T("\302\240\357\357\356"), T("\302\240" R R R)},
    {T("\364\240\361\237\240\337\240\237"), T(R R R "\337\240" R)},
    {T("\355\302\000\000\277\355\277\237\377\361\302"), T(R R "\000\000" R R R R R R R)},
    {T("\302\302\177\240\200\240\355\237\301\237"), T(R R "\177" R R R R R R)},
    {T("\361\361\000\355\364\302\364\177\365\200"), T(R R "\000" R R R R "\177" R R)},
    {T("\377\237\355\220\340\364\301\177\337"), T(R R R R R R "\177" R)},
    {T("\337\177\220\220\217\000\217\360\341\364"), T(R "\177" R R R "\000" R R R R)},
    {T("\361\361\355\365\302"), T(R R R R R)},
    {T("\357\357\217\000\000"), T(R R "\000\000")},
    {T("\364\200\356\217\340\237\237\000\277\237\300\356\240\360"), T(R R R R R "\000" R R R R R)},
    {T("\277\357\340\217\101\302\341\365"), T(R R R R "\101" R R R)},
    {T("\356\340\356\217\357\217\356\356\000\341\220\361"), T(R R R R R R "\000" R R)},
};

static void test_lossy(void **state)
{
    buf b;
    (void)state;
    buf_init(&b, alloc_default(), 1 << 16);
    for (size_t i = 0; i < sizeof(lossy) / sizeof(lossy[0]); i++) {
        buf_clear(&b);
        buf_str(&b, "|");
        char *copy = malloc(lossy[i].in.n + 1); /* a block of its own size for the sanitizer */
        assert_non_null(copy);
        memcpy(copy, lossy[i].in.s, lossy[i].in.n);
        copy = realloc(copy, lossy[i].in.n ? lossy[i].in.n : 1);
        utf8_append_lossy(&b, copy, lossy[i].in.n);
        free(copy);
        if (b.len != lossy[i].want.n + 1 || memcmp(b.data + 1, lossy[i].want.s, lossy[i].want.n) != 0)
            fail_msg("case %zu", i);
        assert_int_equal(utf8_first_invalid(b.data, b.len), b.len);
    }
    assert_ok(buf_status(&b, &err), err);
    buf_deinit(&b);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalars),       cmocka_unit_test(test_encoded_bytes), cmocka_unit_test(test_sequences),
        cmocka_unit_test(test_first_invalid), cmocka_unit_test(test_lossy),
    };
    return TEST_RUN(tests);
}
