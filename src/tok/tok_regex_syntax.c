/* SPDX-License-Identifier: Apache-2.0
 * tok_regex_syntax.c: a pattern of the reference (Oniguruma's regular expressions, Ruby flavour) in PCRE2's syntax.
 *
 * Every class becomes the list of its code points, from the tables of what the reference matches; groups and literal
 * text are copied. What reads differently is rewritten: (?m), \h, \O, \v, {,n}, the greedy {n,m}+ and {n}?. What has
 * no equivalent is refused: absent operators, conditions, callouts, options in the middle of an alternative, \X, and
 * caseless text that the reference would match with strings of another length ("ss" and U+00DF).
 *
 * A negated class stays negated ([^...]), so that (?i) folds it as the reference does.
 */
#include "base/unicode.h"
#include "base/unicode_regex_tables.h"
#include "base/utf8.h"
#include "tok/tok_regex.h"

enum { LIMIT = 0x110000, WORDS = LIMIT / 64, DEPTH_MOST = 200, CLASS_DEPTH_MOST = 20 };

typedef struct set {
    uint64_t w[WORDS];
} set;

typedef struct level {
    size_t start; /* of the group in out */
    bool caseless;
} level;

typedef struct rewriter {
    const char *s;
    size_t n, i;
    buf *out;
    arena mem;                           /* of the sets */
    set *sets[2 * CLASS_DEPTH_MOST + 4]; /* used over and over: see set_for */
    lath_error *err;
    level levels[DEPTH_MOST];
    int depth;
    bool caseless, named, numbered;
    size_t atom;       /* where in out the atom begins that a quantifier would take; SIZE_MAX: there is none */
    bool at_start;     /* nothing but options in this group so far */
    uint32_t last_low; /* caseless: the literal letter before, small; 0: none */
} rewriter;

#define REFUSE(r, ...) err_set((r)->err, LATH_ERR_UNSUPPORTED, __VA_ARGS__)
#define MALFORMED(r, ...) err_set((r)->err, LATH_ERR_FORMAT, __VA_ARGS__)

/* ------------------------------------------------------------------------------------------------------------- sets */

/* A set by its use, emptied: ONE for a short while; INSIDE + 2 * depth for what stands in a class, one more for its parts
 * before "&&". NULL: no memory. */
enum { ONE, INSIDE };

static set *set_for(rewriter *r, int use)
{
    if (!r->sets[use]) return r->sets[use] = arena_zero(&r->mem, sizeof(set));
    memset(r->sets[use], 0, sizeof(set));
    return r->sets[use];
}

static void set_add(set *s, uint32_t first, uint32_t last)
{
    for (uint32_t c = first; c <= last;) {
        if ((c & 63) == 0 && last - c >= 63) {
            s->w[c >> 6] = UINT64_MAX;
            c += 64;
        } else {
            s->w[c >> 6] |= (uint64_t)1 << (c & 63);
            c++;
        }
    }
}

static void set_invert(set *s)
{
    for (size_t i = 0; i < WORDS; i++) s->w[i] = ~s->w[i];
}

static bool set_has(const set *s, uint32_t c) { return s->w[c >> 6] >> (c & 63) & 1; }

/* Surrogates are in no text: they join what is around them. */
static bool in_run(const set *s, uint32_t c, bool before)
{
    return c >= 0xD800 && c <= 0xDFFF ? before : set_has(s, c);
}

/* \\x{1F600} */
static void put_code(buf *out, uint32_t c)
{
    char text[12];
    size_t at = sizeof(text);
    text[--at] = '}';
    do text[--at] = "0123456789ABCDEF"[c & 15];
    while (c >>= 4);
    text[--at] = '{';
    text[--at] = 'x';
    text[--at] = '\\';
    buf_append(out, text + at, sizeof(text) - at);
}

static void put_set(buf *out, const set *s, bool negated)
{
    buf_str(out, negated ? "[^" : "[");
    bool before = false;
    uint32_t first = 0;
    for (uint32_t c = 0; c <= LIMIT; c++) {
        if (c < LIMIT && (c & 63) == 0 && s->w[c >> 6] == (before ? UINT64_MAX : 0) && (c >> 11) != 0x1B) {
            c += 63;
            continue;
        }
        bool now = c < LIMIT && in_run(s, c, before);
        if (now && !before) first = c;
        if (!now && before) {
            uint32_t last = c - 1;
            while (last >= 0xD800 && last <= 0xDFFF) last--;
            put_code(out, first);
            if (first != last) buf_char(out, '-');
            if (first != last) put_code(out, last);
        }
        before = now;
    }
    buf_char(out, ']');
}

/* PCRE2 has no class without members. */
static void put_class(rewriter *r, const set *s, bool negated)
{
    bool empty = true;
    for (size_t i = 0; i < WORDS && empty; i++) empty = s->w[i] == 0;
    if (empty)
        buf_str(r->out, negated ? "(?s:.)" : "(?!)(?s:.)");
    else
        put_set(r->out, s, negated);
}

/* ---------------------------------------------------------------------------------------------- classes of the tables */

static uint8_t gc_value(uint32_t c)
{
    return uni_gc_2[(uint32_t)uni_gc_1[c >> UNI_GC_SHIFT] << UNI_GC_SHIFT | (c & ((1u << UNI_GC_SHIFT) - 1))];
}

/* Characters with a flag, or (flag 0) of a category whose name begins with `name`. Block by block of the table, of which
 * many are the same. */
static void add_by_table(set *s, uint32_t flag, const char *name)
{
    enum { BLOCK = 1 << UNI_GC_SHIFT };
    bool wanted[UNI_GC_COUNT];
    int32_t before = -1;
    uint64_t bits[BLOCK / 64];
    for (int k = 0; k < UNI_GC_COUNT; k++) wanted[k] = name && strncmp(uni_gc_names[k], name, strlen(name)) == 0;
    for (uint32_t c = 0; c < LIMIT; c += BLOCK) {
        uint8_t block = uni_gc_1[c >> UNI_GC_SHIFT];
        if (block != before) {
            memset(bits, 0, sizeof(bits));
            for (uint32_t i = 0; i < BLOCK; i++) {
                uint8_t v = uni_gc_2[(uint32_t)block << UNI_GC_SHIFT | i];
                if (flag ? v & flag : wanted[v & UNI_GC_MASK]) bits[i >> 6] |= (uint64_t)1 << (i & 63);
            }
            before = block;
        }
        for (uint32_t i = 0; i < BLOCK / 64; i++) s->w[(c >> 6) + i] |= bits[i];
    }
}

static bool add_named(set *s, const char *name)
{
    size_t low = 0, high = UNI_N_CLASSES;
    while (low < high) {
        size_t mid = (low + high) / 2;
        int c = strcmp(uni_classes[mid].name, name);
        if (c == 0) {
            const uni_range *v = uni_class_ranges + uni_classes[mid].at;
            for (size_t k = 0; k < uni_classes[mid].count; k++) set_add(s, v[k].first, v[k].last);
            return true;
        }
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return false;
}

/* Long names of categories: without '_', small letters. */
static const struct {
    const char *name, *category;
} long_names[] = {
    {"letter", "L"},
    {"uppercaseletter", "Lu"},
    {"lowercaseletter", "Ll"},
    {"titlecaseletter", "Lt"},
    {"modifierletter", "Lm"},
    {"otherletter", "Lo"},
    {"mark", "M"},
    {"nonspacingmark", "Mn"},
    {"spacingmark", "Mc"},
    {"enclosingmark", "Me"},
    {"number", "N"},
    {"decimalnumber", "Nd"},
    {"letternumber", "Nl"},
    {"othernumber", "No"},
    {"punctuation", "P"},
    {"punct", "P"}, /* [[:punct:]] has symbols, too */
    {"connectorpunctuation", "Pc"},
    {"dashpunctuation", "Pd"},
    {"openpunctuation", "Ps"},
    {"closepunctuation", "Pe"},
    {"initialpunctuation", "Pi"},
    {"finalpunctuation", "Pf"},
    {"otherpunctuation", "Po"},
    {"symbol", "S"},
    {"mathsymbol", "Sm"},
    {"currencysymbol", "Sc"},
    {"modifiersymbol", "Sk"},
    {"othersymbol", "So"},
    {"separator", "Z"},
    {"spaceseparator", "Zs"},
    {"lineseparator", "Zl"},
    {"paragraphseparator", "Zp"},
    {"control", "Cc"},
    {"format", "Cf"},
    {"unassigned", "Cn"},
    {"privateuse", "Co"},
};

/* name: small letters, without blanks, '-' and '_'. Oniguruma's \w and \p{Word} take superscript digits and fractions of
 * Latin-1; in brackets they do not. */
static bool add_property(set *s, const char *name, bool in_class)
{
    size_t n = strlen(name);
    if (n == 0) return false;
    if (!in_class && strcmp(name, "word") == 0) {
        add_by_table(s, UNI_RE_WORD, NULL);
        return true;
    }
    if (n <= 2) {
        char category[3] = {(char)(name[0] - 'a' + 'A'), name[1], 0};
        if (strcmp(category, "Lc") == 0) {
            add_by_table(s, 0, "Lu");
            add_by_table(s, 0, "Ll");
            add_by_table(s, 0, "Lt");
            return true;
        }
        for (int k = 0; k < UNI_GC_COUNT; k++) {
            if (strncmp(uni_gc_names[k], category, n) != 0) continue;
            add_by_table(s, 0, category);
            return true;
        }
        return false;
    }
    for (size_t k = 0; k < sizeof(long_names) / sizeof(long_names[0]); k++) {
        if (strcmp(long_names[k].name, name) != 0) continue;
        add_by_table(s, 0, long_names[k].category);
        return true;
    }
    if (strcmp(name, "any") == 0) {
        set_add(s, 0, LIMIT - 1);
        return true;
    }
    char posix[24] = "[:";
    if (n + 3 < sizeof(posix)) {
        memcpy(posix + 2, name, n + 1);
        if (add_named(s, posix)) return true;
    }
    return add_named(s, name);
}

/* r->i is behind "\p" or "\P", at '{'. */
static lath_status read_property(rewriter *r, set *s, bool in_class, bool *negated)
{
    const char *end = memchr(r->s + r->i, '}', r->n - r->i);
    size_t n = end ? (size_t)(end - (r->s + r->i)) : 0, k = 0;
    char name[64];
    if (!end || n >= sizeof(name)) return MALFORMED(r, "a property name without its end");
    const char *p = r->s + r->i + 1;
    if (p < end && *p == '^') {
        *negated = !*negated;
        p++;
    }
    for (; p < end; p++) {
        if (*p == ' ' || *p == '_' || *p == '-') continue;
        name[k++] = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
    }
    name[k] = 0;
    if (!add_property(s, name, in_class)) return REFUSE(r, "the property \"%s\" is not supported", name);
    r->i += n + 1;
    return LATH_OK;
}

/* Classes of one letter: \w \d \s \h and their opposites. r->i is behind the letter. false: it is no such letter. */
static bool letter_class(set *s, char c, bool in_class, bool *negated)
{
    *negated = c >= 'A' && c <= 'Z';
    switch (c) {
    case 'w':
    case 'W': return add_property(s, "word", in_class);
    case 's':
    case 'S': add_by_table(s, UNI_RE_SPACE, NULL); return true;
    case 'd':
    case 'D': add_by_table(s, 0, "Nd"); return true;
    case 'h':
    case 'H':
        set_add(s, '0', '9');
        set_add(s, 'A', 'F');
        set_add(s, 'a', 'f');
        return true;
    default: return false;
    }
}

/* ---------------------------------------------------------------------------------------------------------- escapes */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static size_t read_hex(rewriter *r, size_t most, uint32_t *out)
{
    size_t k = 0;
    *out = 0;
    for (; k < most && r->i < r->n && hex_value(r->s[r->i]) >= 0; k++, r->i++)
        *out = *out * 16 + (uint32_t)hex_value(r->s[r->i]);
    return k;
}

/* A code point written as an escape. r->i is behind the backslash. *is_code false: it is something else, r->i is
 * where it was. */
static lath_status read_code(rewriter *r, uint32_t *out, bool *is_code)
{
    char c = r->s[r->i];
    static const char from[] = "ntrfvae", to[] = "\n\t\r\f\v\a\x1B";
    const char *at = c ? strchr(from, c) : NULL;
    *is_code = true;
    if (at) {
        *out = (uint32_t)to[at - from];
        r->i++;
        return LATH_OK;
    }
    if (c == 'x' && r->i + 1 < r->n && r->s[r->i + 1] == '{') {
        r->i += 2;
        size_t k = read_hex(r, 8, out);
        if (k == 0 || r->i >= r->n || r->s[r->i++] != '}') return MALFORMED(r, "\\x{...} without its end");
    } else if (c == 'x') {
        r->i++;
        if (read_hex(r, 2, out) == 0 || *out >= 0x80) return REFUSE(r, "\\x of a byte that is no character");
    } else if (c == 'u') {
        r->i++;
        if (read_hex(r, 4, out) != 4) return MALFORMED(r, "\\u without four digits");
    } else if (c == '0') {
        r->i++;
        *out = 0;
        for (int k = 0; k < 2 && r->i < r->n && r->s[r->i] >= '0' && r->s[r->i] <= '7'; k++)
            *out = *out * 8 + (uint32_t)(r->s[r->i++] - '0');
    } else {
        *is_code = false;
        return LATH_OK;
    }
    if (*out >= LIMIT || (*out >= 0xD800 && *out <= 0xDFFF)) return MALFORMED(r, "an escape that is no character");
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------- bracketed classes */

/* "[:^alpha:]": r->i is at '['. *is false: it is none. */
static lath_status read_posix(rewriter *r, set *s, bool *is)
{
    *is = false;
    if (r->n - r->i < 5 || r->s[r->i + 1] != ':') return LATH_OK;
    const char *p = r->s + r->i + 2, *stop = r->s + r->n;
    bool negated = p < stop && *p == '^';
    if (negated) p++;
    char name[24] = "[:";
    size_t k = 2;
    while (p < stop && *p >= 'a' && *p <= 'z' && k < sizeof(name) - 1) name[k++] = *p++;
    if (stop - p < 2 || p[0] != ':' || p[1] != ']') return LATH_OK;
    set *one = set_for(r, ONE);
    if (!one) return err_nomem(r->err, sizeof(set));
    if (!add_named(one, name)) return LATH_OK;
    if (negated) set_invert(one);
    for (size_t i = 0; i < WORDS; i++) s->w[i] |= one->w[i];
    r->i = (size_t)(p + 2 - r->s);
    *is = true;
    return LATH_OK;
}

/* One member of a class: a character (*is_code), or a class that is added to s. r->i moves behind it. */
static lath_status read_member(rewriter *r, set *s, uint32_t *code, bool *is_code)
{
    size_t len;
    if (r->s[r->i] != '\\') {
        *code = uni_next(r->s + r->i, &len);
        *is_code = true;
        r->i += len;
        return LATH_OK;
    }
    if (++r->i >= r->n) return MALFORMED(r, "it ends with a backslash");
    char c = r->s[r->i];
    bool property = (c == 'p' || c == 'P') && r->i + 1 < r->n && r->s[r->i + 1] == '{', negated = c == 'P';
    set *one = set_for(r, ONE);
    if (!one) return err_nomem(r->err, sizeof(set));
    *is_code = false;
    if (property) {
        r->i++;
        TRY(read_property(r, one, true, &negated));
    } else if (letter_class(one, c, true, &negated)) {
        r->i++;
    } else {
        if (c == 'b') { /* a backspace in a class */
            *code = 8;
            *is_code = true;
            r->i++;
            return LATH_OK;
        }
        if (strchr("RXNOGKkgcCM", c) && c) return REFUSE(r, "\\%c in a class is not supported", c);
        TRY(read_code(r, code, is_code));
        if (*is_code) return LATH_OK;
        *code = uni_next(r->s + r->i, &len);
        *is_code = true;
        r->i += len;
        return LATH_OK;
    }
    for (size_t i = 0; i < WORDS; i++) s->w[i] |= negated ? ~one->w[i] : one->w[i];
    return LATH_OK;
}

/* A member of a class, or two with '-' between them. */
static lath_status read_range(rewriter *r, set *s)
{
    uint32_t low, high;
    bool is_code;
    TRY(read_member(r, s, &low, &is_code));
    if (!is_code) return LATH_OK;
    high = low;
    if (r->i + 1 < r->n && r->s[r->i] == '-' && r->s[r->i + 1] != ']') {
        r->i++;
        if (r->s[r->i] == '[') return REFUSE(r, "a range that ends in a class");
        TRY(read_member(r, s, &high, &is_code));
        if (!is_code || high < low) return MALFORMED(r, "a range of a class that ends before it begins");
    }
    set_add(s, low, high);
    return LATH_OK;
}

/* r->i is behind '['. Leaves it behind the ']' that closes the class. *negated: it began with '^'. */
static lath_status read_class(rewriter *r, set *s, bool *negated, int depth)
{
    set *all = NULL, *inner; /* all: of the parts before "&&" */
    *negated = r->i < r->n && r->s[r->i] == '^';
    if (*negated) r->i++;
    for (bool first = true;; first = false) {
        if (r->i >= r->n) return MALFORMED(r, "a class without its end");
        char c = r->s[r->i];
        if (c == ']' && !first) break;
        if (c == '&' && r->i + 1 < r->n && r->s[r->i + 1] == '&') {
            bool first_part = !all;
            if (first_part && !(all = set_for(r, INSIDE + 2 * depth + 1))) return err_nomem(r->err, sizeof(set));
            for (size_t i = 0; i < WORDS; i++) all->w[i] = first_part ? s->w[i] : all->w[i] & s->w[i];
            memset(s, 0, sizeof(*s));
            r->i += 2;
            continue;
        }
        if (c == '[') {
            bool posix, inner_negated;
            TRY(read_posix(r, s, &posix));
            if (posix) continue;
            if (depth >= CLASS_DEPTH_MOST) return REFUSE(r, "classes nested deeper than %d", (int)CLASS_DEPTH_MOST);
            inner = set_for(r, INSIDE + 2 * (depth + 1));
            if (!inner) return err_nomem(r->err, sizeof(set));
            r->i++;
            TRY(read_class(r, inner, &inner_negated, depth + 1));
            if (inner_negated && r->caseless) return REFUSE(r, "a negated class in a class under (?i)");
            for (size_t i = 0; i < WORDS; i++) s->w[i] |= inner_negated ? ~inner->w[i] : inner->w[i];
            continue;
        }
        TRY(read_range(r, s));
    }
    r->i++;
    for (size_t i = 0; all && i < WORDS; i++) s->w[i] &= all->w[i];
    return LATH_OK;
}

static lath_status rewrite_class(rewriter *r)
{
    bool negated;
    set *s = set_for(r, INSIDE);
    if (!s) return err_nomem(r->err, sizeof(set));
    r->i++;
    TRY(read_class(r, s, &negated, 0));
    r->atom = r->out->len;
    put_class(r, s, negated);
    return LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------- outside classes */

/* Under (?i) the reference also matches characters that stand for several ("ss" and U+00DF, "fi" and U+FB01). */
static lath_status check_caseless(rewriter *r, uint32_t c)
{
    static const char *const pairs[] = {"ss", "st", "ff", "fi", "fl"};
    uint32_t low = c >= 'A' && c <= 'Z' ? c + 32 : c, before = r->last_low;
    r->last_low = low;
    if (!r->caseless) return LATH_OK;
    uint8_t category = c < 0x80 ? UNI_GC_LL : gc_value(c) & UNI_GC_MASK;
    if (c >= 0x80 && (uni_gc_names[category][0] == 'L' || uni_gc_names[category][0] == 'M'))
        return REFUSE(r, "letters outside ASCII under (?i)");
    for (size_t k = 0; k < sizeof(pairs) / sizeof(pairs[0]); k++) {
        if (before == (uint32_t)pairs[k][0] && low == (uint32_t)pairs[k][1])
            return REFUSE(r, "\"%s\" under (?i) also stands for one character", pairs[k]);
    }
    return LATH_OK;
}

static lath_status put_literal(rewriter *r, uint32_t c)
{
    TRY(check_caseless(r, c));
    r->atom = r->out->len;
    bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (plain)
        buf_char(r->out, (char)c);
    else
        put_code(r->out, c);
    return LATH_OK;
}

static lath_status put_word_boundary(rewriter *r, bool opposite)
{
    set *s = set_for(r, ONE);
    if (!s) return err_nomem(r->err, sizeof(set));
    add_by_table(s, UNI_RE_WORD, NULL);
    r->atom = r->out->len;
    buf_str(r->out, opposite ? "(?!" : "(?:");
    buf_str(r->out, "(?<=");
    put_set(r->out, s, false);
    buf_str(r->out, ")(?!");
    put_set(r->out, s, false);
    buf_str(r->out, ")|(?<!");
    put_set(r->out, s, false);
    buf_str(r->out, ")(?=");
    put_set(r->out, s, false);
    buf_str(r->out, "))");
    return LATH_OK;
}

/* \k<name>, \g<name>: copied. r->i is at the letter. */
static lath_status copy_reference(rewriter *r)
{
    char letter = r->s[r->i], close = r->i + 1 < r->n && r->s[r->i + 1] == '\'' ? '\'' : '>';
    const char *end = r->i + 2 < r->n ? memchr(r->s + r->i + 2, close, r->n - r->i - 2) : NULL;
    if (!end || (r->s[r->i + 1] != '<' && r->s[r->i + 1] != '\'')) return MALFORMED(r, "\\%c without a name", letter);
    size_t n = (size_t)(end + 1 - (r->s + r->i));
    r->atom = r->out->len;
    buf_char(r->out, '\\');
    buf_append(r->out, r->s + r->i, n);
    r->i += n;
    return LATH_OK;
}

static lath_status rewrite_escape(rewriter *r)
{
    if (++r->i >= r->n) return MALFORMED(r, "it ends with a backslash");
    char c = r->s[r->i];
    bool negated = c == 'P', is_code;
    uint32_t code;
    size_t len;
    set *s = set_for(r, ONE);
    if (!s) return err_nomem(r->err, sizeof(set));
    if ((c == 'p' || c == 'P') && r->i + 1 < r->n && r->s[r->i + 1] == '{') {
        r->i++;
        TRY(read_property(r, s, false, &negated));
    } else if (letter_class(s, c, false, &negated)) {
        r->i++;
    } else {
        if (c == 'k' || c == 'g') return copy_reference(r);
        if (c >= '1' && c <= '9') {
            r->numbered = true;
            r->atom = r->out->len;
            buf_char(r->out, '\\');
            while (r->i < r->n && r->s[r->i] >= '0' && r->s[r->i] <= '9') buf_char(r->out, r->s[r->i++]);
            buf_str(r->out, "(?:)"); /* a digit behind it is not part of the number */
            return LATH_OK;
        }
        if (c && strchr("AzZGKRN", c)) {
            r->atom = r->out->len;
            buf_char(r->out, '\\');
            buf_char(r->out, c);
            r->i++;
            return LATH_OK;
        }
        if (c == 'b' || c == 'B') {
            r->i++;
            return put_word_boundary(r, c == 'B');
        }
        if (c == 'O') {
            r->atom = r->out->len;
            buf_str(r->out, "(?s:.)");
            r->i++;
            return LATH_OK;
        }
        if (c && strchr("XyYcCM", c)) return REFUSE(r, "\\%c is not supported", c);
        TRY(read_code(r, &code, &is_code));
        if (is_code) return put_literal(r, code);
        code = uni_next(r->s + r->i, &len);
        r->i += len;
        return put_literal(r, code);
    }
    r->atom = r->out->len;
    r->last_low = 0;
    put_class(r, s, negated);
    return LATH_OK;
}

/* "(?imx-imx)" or "(?imx-imx:": r->i is behind "(?". */
static lath_status rewrite_options(rewriter *r, level here)
{
    bool off = false, caseless = r->caseless;
    char on_text[8] = "", off_text[8] = "";
    size_t n_on = 0, n_off = 0;
    for (; r->i < r->n && r->s[r->i] != ')' && r->s[r->i] != ':'; r->i++) {
        char c = r->s[r->i];
        if (c == '-') {
            off = true;
            continue;
        }
        if (c != 'i' && c != 'm' && c != 'x') return REFUSE(r, "a group that begins \"(?%c\" is not supported", c);
        if (c == 'i') caseless = !off;
        if (n_on > 5 || n_off > 5) return REFUSE(r, "too many options");
        if (off)
            off_text[n_off++] = c == 'm' ? 's' : c;
        else
            on_text[n_on++] = c == 'm' ? 's' : c;
    }
    if (r->i >= r->n) return MALFORMED(r, "a group without its end");
    bool isolated = r->s[r->i++] == ')';
    if (isolated && !r->at_start) return REFUSE(r, "options in the middle of an alternative");
    buf_printf(r->out, n_off ? "(?%s-%s%c" : "(?%s%s%c", on_text, off_text, isolated ? ')' : ':');
    if (!isolated) {
        if (r->depth >= DEPTH_MOST) return REFUSE(r, "groups nested deeper than %d", (int)DEPTH_MOST);
        r->levels[r->depth++] = here;
    }
    r->caseless = caseless;
    r->at_start = true;
    r->atom = SIZE_MAX;
    return LATH_OK;
}

/* r->i is at '('. */
static lath_status rewrite_group(rewriter *r)
{
    const char *p = r->s + r->i, *stop = r->s + r->n;
    static const char *const simple[] = {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!"};
    level here = {r->out->len, r->caseless};
    size_t len = 0;
    if (stop - p >= 2 && p[1] == '*') return REFUSE(r, "a callout is not supported");
    if (stop - p < 2 || p[1] != '?') {
        len = 1;
    } else {
        for (size_t k = 0; k < sizeof(simple) / sizeof(simple[0]) && !len; k++) {
            size_t n = strlen(simple[k]);
            if ((size_t)(stop - p) >= n && memcmp(p, simple[k], n) == 0) len = n;
        }
        if (!len && stop - p >= 3 && p[2] == '#') {
            const char *end = memchr(p, ')', (size_t)(stop - p));
            if (!end) return MALFORMED(r, "a comment without its end");
            r->i = (size_t)(end + 1 - r->s);
            return LATH_OK;
        }
        if (!len && stop - p >= 3 && (p[2] == '<' || p[2] == '\'')) {
            const char *end = memchr(p + 3, p[2] == '<' ? '>' : '\'', (size_t)(stop - p - 3));
            if (!end) return MALFORMED(r, "a group name without its end");
            len = (size_t)(end + 1 - p);
            r->named = true;
        }
        if (!len) {
            r->i += 2;
            return rewrite_options(r, here);
        }
    }
    if (r->depth >= DEPTH_MOST) return REFUSE(r, "groups nested deeper than %d", (int)DEPTH_MOST);
    r->levels[r->depth++] = here;
    buf_append(r->out, p, len);
    r->i += len;
    r->at_start = true;
    r->atom = SIZE_MAX;
    return LATH_OK;
}

/* What stands at r->i as "{n}", "{n,}", "{,m}" or "{n,m}": its length, 0 when it is none. */
static size_t interval_length(const rewriter *r, bool *no_low, bool *exact)
{
    size_t k = r->i + 1, digits = 0, more = 0;
    for (; k < r->n && r->s[k] >= '0' && r->s[k] <= '9'; k++) digits++;
    bool comma = k < r->n && r->s[k] == ',';
    if (comma) {
        for (k++; k < r->n && r->s[k] >= '0' && r->s[k] <= '9'; k++) more++;
    }
    if (k >= r->n || r->s[k] != '}' || digits + more == 0) return 0;
    *no_low = digits == 0;
    *exact = !comma;
    return k + 1 - r->i;
}

/* Puts the atom with its quantifiers so far into a group of its own. */
static void wrap_atom(rewriter *r)
{
    char *p = buf_reserve(r->out, 4);
    if (!p) return;
    memmove(r->out->data + r->atom + 3, r->out->data + r->atom, r->out->len - r->atom);
    memcpy(r->out->data + r->atom, "(?:", 3);
    r->out->len += 3;
    buf_char(r->out, ')');
}

/* A quantifier behind the atom. r->i is at it. */
static lath_status rewrite_quantifier(rewriter *r, size_t interval, bool no_low, bool exact)
{
    if (r->atom == SIZE_MAX) return MALFORMED(r, "a quantifier with nothing before it");
    if (interval) {
        buf_char(r->out, '{');
        if (no_low) buf_char(r->out, '0');
        buf_append(r->out, r->s + r->i + 1, interval - 1);
        r->i += interval;
        /* Here {n,m}+ repeats what is repeated, and {n}? makes it optional. */
        bool plus = r->i < r->n && r->s[r->i] == '+', ask = exact && r->i < r->n && r->s[r->i] == '?';
        if (plus || ask) wrap_atom(r);
        if (!plus && !ask && r->i < r->n && r->s[r->i] == '?') buf_char(r->out, r->s[r->i++]);
    } else {
        buf_char(r->out, r->s[r->i++]);
        if (r->i < r->n && (r->s[r->i] == '?' || r->s[r->i] == '+')) buf_char(r->out, r->s[r->i++]);
    }
    bool no, ex,
        again = r->i < r->n && (r->s[r->i] == '*' || r->s[r->i] == '+' || r->s[r->i] == '?' ||
                                (r->s[r->i] == '{' && interval_length(r, &no, &ex)));
    if (again && r->out->data && r->out->len && r->out->data[r->out->len - 1] != ')') wrap_atom(r);
    return LATH_OK;
}

static lath_status rewrite_one(rewriter *r)
{
    char c = r->s[r->i];
    bool no_low = false, exact = false;
    size_t len, interval = c == '{' ? interval_length(r, &no_low, &exact) : 0;
    if (c == '*' || c == '+' || c == '?' || interval) {
        r->last_low = 0;
        return rewrite_quantifier(r, interval, no_low, exact);
    }
    if (c == '(') {
        r->last_low = 0;
        return rewrite_group(r);
    }
    if (c == ')') {
        if (r->depth == 0) return MALFORMED(r, "a ')' without its '('");
        level l = r->levels[--r->depth];
        r->caseless = l.caseless;
        r->atom = l.start;
        r->at_start = false;
        r->last_low = 0;
        buf_char(r->out, ')');
        r->i++;
        return LATH_OK;
    }
    if (c == '|') {
        buf_char(r->out, '|');
        r->i++;
        r->atom = SIZE_MAX;
        r->at_start = false;
        r->last_low = 0;
        return LATH_OK;
    }
    r->at_start = false;
    if (c == '[' || c == '.' || c == '^' || c == '$') r->last_low = 0;
    if (c == '[') return rewrite_class(r);
    if (c == '\\') return rewrite_escape(r);
    if (c == '.' || c == '^' || c == '$' || c == '#' || c == ' ' || c == '\n' || c == '\t') {
        r->atom = r->out->len;
        buf_char(r->out, c); /* blanks and '#' as they are: (?x) decides what they mean */
        r->i++;
        return LATH_OK;
    }
    uint32_t code = uni_next(r->s + r->i, &len);
    r->i += len;
    return put_literal(r, code);
}

lath_status tok_regex_rewrite(const lath_allocator *alloc, tok_string pattern, buf *out, lath_error *err)
{
    rewriter *r = alloc_zero(alloc, sizeof(*r));
    if (!r) return err_nomem(err, sizeof(*r));
    *r = (rewriter){.s = pattern.s, .n = pattern.n, .out = out, .err = err, .atom = SIZE_MAX, .at_start = true};
    arena_init(&r->mem, alloc);
    lath_status st = LATH_OK;
    while (r->i < r->n && st == LATH_OK && !out->failed) st = rewrite_one(r);
    if (st == LATH_OK && !out->failed && r->depth > 0) st = MALFORMED(r, "a group without its end");
    if (st == LATH_OK && r->named && r->numbered) st = REFUSE(r, "numbered references beside named groups");
    if (st == LATH_OK) st = buf_status(out, err);
    arena_deinit(&r->mem);
    alloc_release(alloc, r, sizeof(*r));
    return st;
}
